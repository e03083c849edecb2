"""Contents: kept once, as deltas, beside the journal when large, and verified."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.domain.document import content_id
from filepact.errors import FilepactError, NotFoundError
from filepact.store import upkeep
from filepact.store.content import LONGEST_CHAIN
from filepact.store.sqlite import SqliteStore
from tests.store.making import change, contents, do, operation, proposal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.workspace.journal import JournalStore

TEXT = "".join(f"line {n}: {random.Random(n).random()}\n" for n in range(400)).encode()


def versions(text: bytes, count: int) -> Iterator[bytes]:
    """A text and edits of it, each of one line of the one before."""
    lines = text.splitlines(keepends=True)
    yield text
    for number in range(count):
        lines[number * 7 % len(lines)] = b"edit %d\n" % number
        yield b"".join(lines)


@pytest.mark.parametrize(
    ("batch", "excess", "least", "chosen", "seen"),
    [
        ([(1, 5), (2, 5)], 5, 0, [1], 1),
        ([(1, 5), (2, 5)], 6, 0, [1, 2], 2),
        ([(1, 5), (2, 5)], 0, 0, [], 0),
        ([(1, 5), (2, 5), (3, 5)], 0, 2, [1, 2], 2),
        ([(1, None), (2, 5), (3, 5)], 1, 0, [2], 2),
        ([(1, 5)], 9, 3, [1], 1),
        ([], 9, 3, [], 0),
    ],
)
def test_as_many_contents_go_as_make_up_for_what_is_too_much(
    batch: list[tuple[int, int | None]], excess: int, least: int, chosen: list[int], seen: int
) -> None:
    assert upkeep._choose(batch, excess, least) == (chosen, seen)


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    database = apsw.Connection(str(path))
    found = database.execute(query).fetchall()
    database.close()
    return found


def files(path: Path) -> list[Path]:
    return sorted(file for file in (path.parent / "contents").rglob("*") if file.is_file())


def test_small_edits_of_one_file_take_some_bytes_each(store: JournalStore, path: Path) -> None:
    steps = list(versions(TEXT, 100))
    for before, after in pairwise(steps):
        do(store, before, after)
    for data in steps:
        assert store.content(content_id(data)) == data
    [(deltas, size, deepest)] = rows(
        path, "SELECT count(*), sum(stored), max(depth) FROM content WHERE base IS NOT NULL"
    )
    assert deepest == LONGEST_CHAIN
    assert deltas == 101 - 4  # The first is whole, and one after each full chain.
    assert size / deltas < 100


def test_what_somebody_else_made_of_a_file_is_kept_as_an_edit_too(
    store: JournalStore, path: Path
) -> None:
    one, two, three = versions(TEXT, 2)
    do(store, None, one)
    do(store, two, three)
    assert rows(path, "SELECT count(*) FROM content WHERE base IS NULL") == [(1,)]


def test_equal_contents_are_kept_once(store: JournalStore) -> None:
    do(store, None, TEXT, path="a")
    do(store, None, TEXT, path="b")
    do(store, TEXT, None, path="a")
    store.propose(proposal(change("c", None, TEXT)), contents(TEXT))
    assert store.statistics().contents == 1


def test_an_unlike_content_is_kept_whole(store: JournalStore, path: Path) -> None:
    do(store, TEXT, random.Random(5).randbytes(20_000))
    assert rows(path, "SELECT count(*) FROM content WHERE base IS NULL") == [(2,)]


def test_large_contents_are_files_beside_the_journal(store: JournalStore, path: Path) -> None:
    large = random.Random(1).randbytes(200_000)
    head = random.Random(2).randbytes(100_000)
    tail = random.Random(3).randbytes(100_000)
    do(store, None, large)
    do(store, large, head + large + tail)  # Large even as a delta.
    do(store, head + large + tail, b"x" + head + large + tail)
    kept = files(path)
    assert len(kept) == 2
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in kept)
    assert all(file.parent.stat().st_mode & 0o777 == 0o700 for file in kept)
    for data in (large, head + large + tail, b"x" + head + large + tail):
        assert store.content(content_id(data)) == data
    assert store.statistics().bytes_on_disk > 400_000


def test_an_empty_content_is_a_content(store: JournalStore) -> None:
    do(store, b"", b"x")
    assert store.content(content_id(b"")) == b""


@pytest.mark.parametrize("name", ["", "zz", "ab", content_id(b"never"), "\udcff"])
def test_an_unknown_content_is_not_found(store: JournalStore, name: str) -> None:
    with pytest.raises(FilepactError) as caught:
        store.content(name)
    assert caught.value.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE image SET data = zeroblob(50)",
        "UPDATE image SET data = x'' WHERE number = 2",
        "UPDATE content SET size = size + 1",
        "UPDATE content SET base = 2 WHERE number = 1",
        "DELETE FROM image",
        "UPDATE image SET data = (SELECT data FROM image WHERE number = 3) WHERE number = 2",
    ],
)
def test_a_damaged_content_is_an_error_and_never_wrong_bytes(
    store: JournalStore, path: Path, damage: str
) -> None:
    one, two, three = versions(TEXT, 2)
    do(store, one, two)
    do(store, two, three)
    rows(path, damage)
    with pytest.raises(FilepactError) as caught:
        store.content(content_id(two))
    assert caught.value.code == "STATE_ERROR"


def test_a_lost_file_is_an_error(store: JournalStore, path: Path) -> None:
    large = random.Random(1).randbytes(200_000)
    do(store, None, large)
    [file] = files(path)
    file.unlink()
    with pytest.raises(FilepactError) as caught:
        store.content(content_id(large))
    assert caught.value.code == "STATE_ERROR"
    assert str(path.parent) not in caught.value.report()


def test_a_folder_that_cannot_be_written_is_told_without_its_path(
    store: JournalStore, path: Path
) -> None:
    (path.parent / "contents").write_text("in the way")
    with pytest.raises(FilepactError) as caught:
        do(store, None, random.Random(1).randbytes(200_000))
    assert caught.value.code == "STATE_ERROR"
    assert str(path.parent) not in caught.value.report()
    assert store.last_seq() == 0


# -- making room ------------------------------------------------------------------------------


def test_pruning_gives_up_the_oldest_and_keeps_the_newest(store: JournalStore, path: Path) -> None:
    steps = list(versions(TEXT, 100))
    for number, (before, after) in enumerate(pairwise(steps)):
        do(store, before, after, created=float(number))
    before = store.statistics()
    assert before.oldest == 0.0
    stored = rows(path, "SELECT sum(stored) FROM content")[0][0]
    pruned = store.prune(keep_bytes=stored // 2, keep_seconds=0)
    after = store.statistics()
    assert pruned.contents == before.contents - after.contents
    assert pruned.bytes_kept == rows(path, "SELECT sum(stored) FROM content")[0][0]
    assert pruned.bytes_kept <= stored // 2
    assert pruned.bytes_freed == stored - pruned.bytes_kept
    assert pruned.oldest == after.oldest
    assert after.operations == 100
    gone = [data for data in steps if is_gone(store, data)]
    assert gone == steps[: len(gone)]
    assert 0 < len(gone) < 101
    # From the operation on whose state before is still there, everything is there.
    assert after.oldest == float(len(gone))
    for data in steps[len(gone) :]:
        assert store.content(content_id(data)) == data
    assert store.prune(keep_bytes=stored // 2, keep_seconds=0).contents == 0


def is_gone(store: JournalStore, data: bytes) -> bool:
    try:
        return store.content(content_id(data)) != data
    except NotFoundError:
        return True


def test_pruning_keeps_what_may_still_be_needed(store: JournalStore) -> None:
    now = 4_000_000_000.0  # later than any clock that runs this test
    store.propose(proposal(change("p", b"p1", b"p2")), contents(b"p1", b"p2"))
    store.propose(proposal(change("q", None, b"q1"), created=now), contents(b"q1"))
    do(store, b"old1", b"old2", path="a")
    do(store, b"shared", b"old3", path="b")
    store.begin(operation(change("c", b"c1", b"c2")), contents(b"c1", b"c2"))
    do(store, b"shared", b"n2", path="d", created=now)
    store.prune(keep_bytes=0, keep_seconds=60)
    gone = {b"old1", b"old2", b"old3"}
    kept = {b"p1", b"p2", b"q1", b"c1", b"c2", b"shared", b"n2"}
    assert {data for data in gone | kept if is_gone(store, data)} == gone


def test_what_was_given_up_can_be_kept_again(store: JournalStore) -> None:
    do(store, b"1", b"2")
    store.prune(keep_bytes=0, keep_seconds=0)
    assert store.statistics().contents == 0
    assert store.statistics().oldest is None
    assert is_gone(store, b"1")
    do(store, b"2", b"1")
    assert store.content(content_id(b"1")) == b"1"
    assert store.content(content_id(b"2")) == b"2"


def test_pruning_removes_files_and_gives_the_disk_back(store: JournalStore, path: Path) -> None:
    source = random.Random(4)
    for number in range(20):
        do(store, None, source.randbytes(60_000), path=f"small{number}")
        do(store, None, source.randbytes(90_000), path=f"large{number}")
    (files(path)[0].parent / "stray.new").write_bytes(b"from a crash")
    before = store.statistics().bytes_on_disk
    store.prune(keep_bytes=500_000, keep_seconds=0)
    assert before > 2_000_000
    assert store.statistics().bytes_on_disk < 800_000
    assert 0 < len(files(path)) < 20
    assert not [file for file in files(path) if file.suffix == ".new"]


def test_a_delta_in_a_file_survives_the_pruning_of_its_base(
    store: JournalStore, path: Path
) -> None:
    large = random.Random(1).randbytes(200_000)
    grown = random.Random(2).randbytes(100_000) + large
    do(store, None, large)
    do(store, large, grown)
    do(store, None, grown, path="elsewhere", created=4_000_000_000.0)
    store.prune(keep_bytes=0, keep_seconds=60)
    assert is_gone(store, large)
    assert store.content(content_id(grown)) == grown
    assert len(files(path)) == 1


def test_pruning_an_empty_journal_does_nothing(store: JournalStore) -> None:
    pruned = store.prune(keep_bytes=0, keep_seconds=0)
    assert (pruned.contents, pruned.bytes_freed, pruned.bytes_kept) == (0, 0, 0)


def test_another_process_prunes_while_one_reads(store: JournalStore, path: Path) -> None:
    large = random.Random(1).randbytes(200_000)
    do(store, None, large)
    other = SqliteStore(str(path))
    assert other.content(content_id(large)) == large
    other.prune(keep_bytes=0, keep_seconds=0)
    other.close()
    assert is_gone(store, large)

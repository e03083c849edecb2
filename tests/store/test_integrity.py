"""A damaged journal: what the check says of it, and what is kept of it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.domain.document import content_id
from filepact.errors import FilepactError, NotFoundError
from filepact.store import integrity
from filepact.store.integrity import check_journal, salvage
from filepact.store.sqlite import SqliteStore
from tests.store.making import ROOT, do, proposal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


PAGE = 4_096
FILES = 200
FOLDER = "d" * 200


def noise(number: int, size: int = 1_500) -> bytes:
    """Bytes that do not become smaller."""
    whole = b"".join(content_id(b"%d %d" % (number, at)).encode() for at in range(size // 32))
    return bytes.fromhex(whole.decode())[:size]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of operations on different files, whose tables have many pages."""
    path = tmp_path_factory.mktemp("made") / "journal.db"
    store = SqliteStore(str(path))
    for number in range(FILES):
        do(store, None, noise(number), path=f"{FOLDER}/f{number}")
    store.close()
    return path


@pytest.fixture
def filled(made: Path, path: Path) -> Path:
    shutil.copyfile(made, path)
    return path


def page_of(path: Path, table: str) -> int:
    """The first byte of a leaf page in the middle of a table."""
    database = apsw.Connection(str(path))
    root = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    database.close()
    data = path.read_bytes()
    start = (root - 1) * PAGE
    kind, cells = data[start], int.from_bytes(data[start + 3 : start + 5], "big")
    if kind in (0x0D, 0x0A):
        return start
    cell = int.from_bytes(data[start + 12 + 2 * (cells // 2) :][:2], "big")
    return (int.from_bytes(data[start + cell : start + cell + 4], "big") - 1) * PAGE


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def readable(store: SqliteStore) -> set[str]:
    """The files whose new contents can be had."""
    found: set[str] = set()
    for one in store.operations(limit=None):
        [change] = one.changes.changes
        assert change.after is not None
        # What is lost is known to be so; anything else than this error is a mistake.
        with suppress(NotFoundError):
            assert content_id(store.content(change.after.content)) == change.after.content
            found.add(change.path.path)
    return found


def test_a_sound_journal_is_found_sound_and_left_as_it_is(filled: Path) -> None:
    path = filled
    before = path.read_bytes()
    said: list[str] = []
    found = check_journal(str(path), said.append)
    assert found.sound
    assert (found.contents, found.damaged, found.unusable) == (FILES, (), ())
    assert path.read_bytes() == before
    assert said


def test_a_journal_in_use_can_be_checked(path: Path) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    assert check_journal(str(path)).sound
    do(store, b"1", b"2")
    assert check_journal(str(path)).contents == 2
    store.close()


def test_one_damaged_content_is_named_with_all_that_needs_it(path: Path) -> None:
    store = SqliteStore(str(path))
    first = do(store, None, noise(1), path="a")
    do(store, noise(1), noise(1) + b"more", path="a")
    do(store, None, b"sound", path="b")
    store.propose(proposal(*first.changes.changes), {content_id(noise(1)): noise(1)})
    store.close()
    data = path.read_bytes()
    overwrite(path, data.index(noise(1)[100:200]), b"!")
    found = check_journal(str(path))
    assert not found.sound
    assert found.problems == ()
    assert set(found.damaged) == {content_id(noise(1)), content_id(noise(1) + b"more")}
    assert [one.path for one in found.unusable] == [f"{ROOT}/a"] * 3
    assert len({one.id for one in found.unusable}) == 3


def test_a_text_that_is_damaged_says_whose_it_is(filled: Path) -> None:
    path = filled
    overwrite(path, path.read_bytes().index(noise(7)[100:200]), b"!")
    store = SqliteStore(str(path))
    with pytest.raises(FilepactError) as caught:
        store.content(content_id(noise(7)))
    assert caught.value.code == "STATE_ERROR"
    [one] = [
        one
        for one in store.operations(limit=None)
        if one.changes.changes[0].path.path == f"{FOLDER}/f7"
    ]
    assert one.id in caught.value.message
    assert f"{ROOT}/{FOLDER}/f7" in caught.value.message
    assert store.content(content_id(noise(8))) == noise(8)
    store.close()


@pytest.mark.parametrize(
    "table", ["image", "content", "operation", "operation_change", "operation_change_path"]
)
def test_what_lies_beside_a_damaged_page_is_kept(filled: Path, table: str) -> None:
    path = filled
    done = SqliteStore(str(path)).operations(limit=None)
    overwrite(path, page_of(path, table), os.urandom(PAGE))
    damaged = path.read_bytes()
    assert not check_journal(str(path)).sound
    result = salvage(str(path))
    assert result.lost or table == "operation_change_path"
    [aside] = path.parent.glob("damaged-*")
    assert (aside / "journal.db").read_bytes() == damaged
    assert check_journal(str(path)).sound
    store = SqliteStore(str(path))
    kept = store.operations(limit=None, newest_first=False)
    assert {one.id for one in kept} <= {one.id for one in done}
    assert len(readable(store)) >= FILES // 2
    assert do(store, None, b"new", path="new").seq > kept[-1].seq
    store.close()


def test_large_contents_that_are_damaged_are_put_aside_and_never_deleted(path: Path) -> None:
    store = SqliteStore(str(path))
    for number in (1, 2):
        do(store, None, noise(number, 200_000), path=f"f{number}")
    store.close()
    [broken, sound] = sorted(path.parent.glob("contents/??/*"))
    overwrite(broken, 1_000, b"damage")
    data = broken.read_bytes()
    result = salvage(str(path))
    assert len(result.lost) == 1
    [aside] = path.parent.glob("damaged-*/contents/*")
    assert aside.read_bytes() == data
    assert sound.exists()
    store = SqliteStore(str(path))
    assert len(readable(store)) == 1
    store.close()


def cut(path: Path, log: bytes) -> None:
    path.write_bytes(b"")
    path.with_name("journal.db-wal").write_bytes(log)


def garble(path: Path, log: bytes) -> None:
    path.with_name("journal.db-wal").write_bytes(b"garbage!" * 4 + log[32:])


@pytest.mark.parametrize("damage", [cut, garble])
def test_what_stands_in_the_log_alone_is_kept(
    path: Path, damage: Callable[[Path, bytes], None]
) -> None:
    store = SqliteStore(str(path))
    before = path.read_bytes()
    for number in range(10):
        do(store, None, noise(number), path=f"f{number}")
    log = path.with_name("journal.db-wal").read_bytes()
    store.close()
    path.write_bytes(before)
    damage(path, log)
    result = salvage(str(path))
    assert result.operations == 10
    store = SqliteStore(str(path))
    assert len(readable(store)) == 10
    store.close()
    assert not path.with_name("journal.db.new").exists()


@pytest.mark.parametrize(
    "junk", [b"no database at all" * 1_000, b"SQLite format 3\0" + b"\xff" * 9_000, b"\0" * 4_096]
)
def test_where_nothing_can_be_read_an_empty_journal_takes_its_place(
    path: Path, junk: bytes
) -> None:
    path.write_bytes(junk)
    assert not check_journal(str(path)).sound
    result = salvage(str(path))
    assert (result.operations, len(result.lost)) == (0, 1)
    store = SqliteStore(str(path))
    assert store.operations() == ()
    store.close()
    [aside] = path.parent.glob("damaged-*/journal.db")
    assert aside.read_bytes() == junk


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_ends_in_a_sound_journal(filled: Path, seed: int) -> None:
    path = filled
    size = path.stat().st_size
    # Not the first page, in which the tables are named.
    at = PAGE + int.from_bytes(content_id(b"%d" % seed).encode()[:6], "big") % (size - 3 * PAGE)
    overwrite(path, at, noise(seed, 2 * PAGE))
    if check_journal(str(path)).sound:
        return
    salvage(str(path))
    assert check_journal(str(path)).sound
    store = SqliteStore(str(path))
    readable(store)
    do(store, None, b"new", path="new")
    store.close()


def test_a_row_that_names_another_that_is_not_there_is_found(filled: Path) -> None:
    database = apsw.Connection(str(filled))
    database.execute("PRAGMA foreign_keys = OFF")
    database.execute("DELETE FROM operation WHERE id IN (SELECT min(id) FROM operation)")
    database.close()
    found = check_journal(str(filled))
    assert not found.sound
    assert found.problems


def test_a_check_that_takes_long_says_how_far_it_is_and_holds_few_contents(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(str(path))
    for number in range(4):
        do(store, None, noise(number), path=f"f{number}")
    store.close()
    monkeypatch.setattr(integrity, "_PATIENT", -1.0)
    monkeypatch.setattr(integrity, "_LOADED", 2_000)
    said: list[str] = []
    assert check_journal(str(path), said.append).contents == 4
    assert sum("of 4 contents" in one for one in said) == 4


def test_a_journal_without_a_log_beside_it_is_salvaged(filled: Path) -> None:
    overwrite(filled, page_of(filled, "operation_change"), b"\xff" * PAGE)
    assert not filled.with_name(f"{filled.name}-wal").exists()
    salvage(str(filled))
    assert check_journal(str(filled)).sound


def test_a_page_that_is_damaged_under_a_sound_log_is_read_from_the_log(path: Path) -> None:
    store = SqliteStore(str(path))
    for number in range(10):
        do(store, None, noise(number), path=f"f{number}")
    store._database.shorten_log()
    do(store, None, b"last", path="last")
    files = {one: path.with_name(path.name + one) for one in ("", "-wal")}
    before = {one: file.read_bytes() for one, file in files.items()}
    store.close()
    for one, file in files.items():
        file.write_bytes(before[one])
    overwrite(path, before[""].index(noise(7)[100:200]), b"!")
    result = salvage(str(path))
    assert (result.operations, len(result.lost)) == (11, 1)
    store = SqliteStore(str(path))
    assert readable(store) == {"last", *(f"f{number}" for number in range(10) if number != 7)}
    store.close()


def test_who_did_what_and_where_is_kept_when_their_names_are_lost(path: Path) -> None:
    store = SqliteStore(str(path))
    done = do(store, None, b"1")
    store.close()
    database = apsw.Connection(str(path))
    database.execute("PRAGMA foreign_keys = OFF")
    database.execute("DELETE FROM session")
    database.execute("DELETE FROM root")
    database.close()
    assert not check_journal(str(path)).sound
    salvage(str(path))
    assert check_journal(str(path)).sound
    store = SqliteStore(str(path))
    [found] = store.operations()
    assert (found.id, found.session.actor.name) == (done.id, "unknown")
    assert found.changes.changes[0].path.path == "a.txt"
    store.close()

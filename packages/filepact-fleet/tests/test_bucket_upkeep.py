"""What nothing names goes, and nothing else does."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from filepact.errors import (
    InvalidParamsError,
    OutcomeUnknownError,
    SharedDamagedError,
    SharedGoneError,
)
from filepact_fleet.objects.bucket import over
from filepact_fleet.objects.upkeep import BucketLifecycle
from fleet_objects import Shared, name

if TYPE_CHECKING:
    from filepact_fleet.objects.bucket import Bucket
    from filepact_fleet.objects.heads import Head
    from filepact_fleet.objects.upkeep import BucketPruneResult


def collect(shared: Shared, grace: float = 0, remembered: float = 3_600) -> BucketPruneResult:
    upkeep = BucketLifecycle(shared.workspace, shared.bucket)
    return upkeep.collect(name(), "tests", grace=grace, remembered=remembered)


def packs(shared: Shared) -> set[str]:
    return {one.name for one in shared.bucket.list("packs/")}


def test_what_nothing_names_is_removed_in_a_later_round(shared: Shared) -> None:
    shared.put({"a": b"old"})
    (old,) = packs(shared)
    shared.put({"a": b"new"})
    first = collect(shared)
    assert (first.removed, first.marked) == (0, 1)
    assert old in packs(shared)
    second = collect(shared)
    assert (second.removed, second.marked) == (1, 0)
    assert old not in packs(shared)
    assert shared.again().read() == {"a": b"new"}


def test_what_was_found_lately_stays(shared: Shared) -> None:
    shared.put({"a": b"old"})
    shared.put({"a": b"new"})
    for _ in range(3):
        assert collect(shared, grace=3_600).removed == 0
    assert len(packs(shared)) == 2


def test_what_a_checkout_may_name_stays_until_it_goes_on(shared: Shared) -> None:
    upkeep = BucketLifecycle(shared.workspace, shared.bucket)
    head = shared.put({"a": b"old"})
    upkeep.note("one", head.number)
    newer = shared.put({"a": b"new"})
    for _ in range(3):
        assert collect(shared).removed == 0
    assert [(one.name, one.number) for one in upkeep.checkouts()] == [("one", head.number)]
    upkeep.note("one", newer.number)
    assert collect(shared).removed == 1
    shared.put({"a": b"newest"})
    collect(shared)
    assert collect(shared).held == 1
    shared.bucket.delete("checkouts/one")
    assert collect(shared).removed == 1


def test_what_is_just_being_written_stays(shared: Shared) -> None:
    shared.put({"a": b"1"})
    shared.bucket.create("packs/cwriting00-0", b"not named yet")
    assert collect(shared).removed == 0
    assert "packs/cwriting00-0" in packs(shared)


def test_many_small_packs_become_one(shared: Shared) -> None:
    for number in range(70):
        shared.put({f"f{number}": b"%d" % number})
    before = shared.read()
    result = collect(shared)
    assert result.packed == 70
    assert shared.again().read() == before
    assert collect(shared).removed >= 70
    assert len(packs(shared)) == 1
    assert shared.again().read() == before


def test_a_note_that_cannot_be_understood_removes_nothing(shared: Shared) -> None:
    shared.put({"a": b"old"})
    shared.put({"a": b"new"})
    collect(shared)
    whole = shared.bucket.get("gc")[0]
    odd = [
        re.sub(rb"\[[0-9]+,", b"[1e999,", whole),
        re.sub(rb"[0-9.]+\]", b"NaN]", whole),
        re.sub(rb"[0-9.]+\]", b"[" * 100_000, whole),
    ]
    for spoilt in (b"", b"[]", b'{"workspace": "another", "marks": {}}', b"\xff", *odd):
        assert spoilt != whole
        shared.bucket.replace("gc", spoilt)
        assert collect(shared).removed == 0
    shared.bucket.replace("checkouts/odd", b"\xff\xfe")
    assert collect(shared).removed == 1


def test_no_time_is_no_grace(shared: Shared) -> None:
    with pytest.raises(InvalidParamsError):
        collect(shared, grace=-1)


def test_the_figures_are_those_of_the_objects(shared: Shared) -> None:
    shared.put({"a": b"x" * 1_000, "b": b"y"})
    found = BucketLifecycle(shared.workspace, shared.bucket).figures()
    assert (found.files, found.size) == (2, 1_001)
    assert 0 < found.named <= found.stored
    assert found.objects == len(list(shared.bucket.list("")))


def test_a_check_names_the_files_that_cannot_be_read(shared: Shared) -> None:
    shared.put({"a": b"1"})
    head = shared.put({"b": b"2"})
    upkeep = BucketLifecycle(shared.workspace, shared.bucket)
    assert list(upkeep.check()) == []
    shared.bucket.replace(shared.workspace.files(head)["b"].pack, b"?")
    (found,) = upkeep.check()
    assert found[0] == "b"
    assert isinstance(found[1], SharedDamagedError)


# -- pages of ids ------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head has few ids, and so has a page."""
    for module in ("heads", "repository"):
        monkeypatch.setattr(f"filepact_fleet.objects.{module}.LATEST", 4)


def pages(shared: Shared) -> set[str]:
    return {one.name for one in shared.bucket.list("changes/")}


def changed(shared: Shared, times: int) -> list[Head]:
    return [shared.put({"a": b"%d" % number}) for number in range(times)]


@pytest.mark.usefixtures("few")
def test_pages_of_ids_go_when_they_are_old_and_no_checkout_may_ask_for_them(shared: Shared) -> None:
    upkeep = BucketLifecycle(shared.workspace, shared.bucket)
    heads = changed(shared, 40)
    there = pages(shared)
    assert len(there) > 5
    collect(shared)
    collect(shared)
    assert pages(shared) == there  # they are not old
    upkeep.note("one", heads[0].number)
    collect(shared, remembered=0)
    collect(shared, remembered=0)
    assert pages(shared) == there  # a checkout stands before them
    upkeep.note("one", heads[20].number)
    first = collect(shared, remembered=0)
    assert (first.removed, pages(shared)) == (0, there)
    upkeep.note("one", shared.workspace.newest().number)
    collect(shared)
    left = pages(shared)
    assert 1 <= len(left) < len(there)
    # Whoever stands there is told of all that came since, and so is whoever began something then.
    again = shared.again().workspace
    again.expect(heads[20].workspace, heads[20].number, heads[20].change)
    assert again.newest().since < heads[20].number
    assert all(again.made(one.change, after=heads[20].number) for one in heads[20:])
    assert not again.made("cnever0000", after=heads[20].number)
    # Of what was begun before nobody knows, and that is not taken for nothing.
    assert not again.made(heads[0].change)
    with pytest.raises(OutcomeUnknownError):
        again.made(heads[0].change, after=heads[0].number)
    changed(shared, 30)
    for _ in range(2):
        upkeep.note("one", shared.workspace.newest().number + 1)
        collect(shared, remembered=0)
    assert len(pages(shared)) == 1
    late = shared.again().workspace
    late.expect(heads[0].workspace, heads[0].number, heads[0].change)
    assert late.newest().number == shared.workspace.newest().number
    late = shared.again().workspace
    late.expect("wanother", heads[0].number, heads[0].change)
    with pytest.raises(SharedGoneError):
        late.newest()


class KilledError(BaseException):
    """A process ends here."""


class Killed:
    """A bucket whose user is killed at one of its requests."""

    def __init__(self, bucket: Bucket, at: int) -> None:
        self._bucket, self.left = bucket, at

    def __getattr__(self, method: str) -> Any:
        self.left -= 1
        if not self.left:
            raise KilledError
        return getattr(self._bucket, method)


@pytest.mark.usefixtures("few")
def test_upkeep_that_is_killed_at_any_request_leaves_all_that_counts() -> None:
    store = pytest.importorskip("obstore.store", reason="obstore is not installed")
    for at in range(1, 200):
        shared = Shared(over(store.MemoryStore()))
        shared.workspace.create(name(), "tests")
        heads = changed(shared, 14)
        killed = 0
        for _ in range(2):
            side = Shared(Killed(shared.bucket, at))  # type: ignore[arg-type]
            try:
                collect(side, remembered=0)
            except KilledError:
                killed += 1
            heads += changed(shared, 3)
        other = shared.again()
        assert all(other.workspace.made(one.change) for one in heads[-6:])
        assert not other.workspace.made("cnever0000")
        assert other.read() == {"a": b"2"}
        if not killed:
            break
    assert (killed, at > 20) == (0, True)


@pytest.mark.usefixtures("few")
def test_upkeep_beside_writers_takes_nothing_from_them(shared: Shared) -> None:
    heads: list[Head] = []
    done = threading.Event()

    def write() -> None:
        side = shared.again()
        while not done.is_set():
            heads.append(side.put({"a": b"%d" % len(heads)}))

    writer = threading.Thread(target=write)
    writer.start()
    upkeep, removed = shared.again(), 0
    try:
        while removed < 200 and writer.is_alive():
            removed += collect(upkeep, grace=0.5, remembered=0).removed
    finally:
        done.set()
        writer.join()
    assert removed >= 200
    assert all(shared.again().workspace.made(one.change) for one in heads[-3:])
    assert not shared.again().workspace.made("cnever0000")
    assert shared.again().read() == {"a": b"%d" % (len(heads) - 1)}

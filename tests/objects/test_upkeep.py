"""What nothing names goes, and nothing else does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from filepact.errors import InvalidParamsError, SharedDamagedError
from filepact.objects.upkeep import BucketLifecycle
from tests.objects.conftest import name

if TYPE_CHECKING:
    from filepact.objects.upkeep import BucketPruneResult
    from tests.objects.conftest import Shared


def collect(shared: Shared, grace: float = 0) -> BucketPruneResult:
    return BucketLifecycle(shared.workspace, shared.bucket).collect(name(), "tests", grace=grace)


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

"""Versions of a shared workspace, over a store in memory whose conditions are real."""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from filepact.errors import (
    InvalidParamsError,
    NoChangeError,
    ObjectStoreFailedError,
    OutcomeUnknownError,
    SharedBusyError,
    SharedConflictError,
    SharedDamagedError,
    SharedGoneError,
    TooLargeError,
)
from filepact_fleet.manifest import FileState
from filepact_fleet.objects.bucket import StaleItemError, UnknownResultError
from filepact_fleet.objects.heads import HEAD, LATEST
from filepact_fleet.objects.packs import LARGEST_CONTENT
from filepact_fleet.objects.repository import BucketWorkspace
from fleet_objects import Shared, name

if TYPE_CHECKING:
    from filepact_fleet.objects.bucket import Bucket


def test_a_new_workspace_is_empty_and_there_is_only_one(shared: Shared) -> None:
    assert shared.read() == {}
    with pytest.raises(InvalidParamsError):
        shared.again().workspace.create(name(), "somebody")


def test_where_there_is_none_it_is_said(bucket: Bucket) -> None:
    with pytest.raises(SharedGoneError):
        BucketWorkspace(bucket).newest()


def test_what_one_publishes_another_reads(shared: Shared) -> None:
    head = shared.put({"a.txt": b"one\n", "b/c.txt": b"two\n" * 1_000})
    assert head.number == 1
    other = shared.again()
    assert other.read() == {"a.txt": b"one\n", "b/c.txt": b"two\n" * 1_000}
    shared.put({"a.txt": None, "b/d.txt": b"one\n"})
    assert other.read() == {"b/d.txt": b"one\n", "b/c.txt": b"two\n" * 1_000}


def test_a_renamed_file_is_not_written_again(shared: Shared) -> None:
    shared.put({"a": b"as it is"})
    before = {one.name for one in shared.bucket.list("packs/")}
    shared.put({"a": None, "b": b"as it is"})
    assert {one.name for one in shared.bucket.list("packs/")} == before
    assert shared.read() == {"b": b"as it is"}


def test_nothing_is_a_version_that_changes_nothing(shared: Shared) -> None:
    head = shared.put({"a": b"x"})
    assert shared.put({"a": b"x"}) == head
    assert shared.put({"none": None}) == head


def test_a_change_whose_file_is_another_by_now_is_refused_as_a_whole(shared: Shared) -> None:
    shared.put({"a": b"1", "b": b"1"})
    other = shared.again()
    known = {
        path: one.state for path, one in other.workspace.files(other.workspace.newest()).items()
    }
    shared.put({"b": b"2"})
    with pytest.raises(SharedConflictError) as caught:
        other.put({"a": b"mine", "b": b"mine"}, lambda path, there: there == known[path])
    assert caught.value.details["path"] == "b"
    assert shared.read() == {"a": b"1", "b": b"2"}
    other.put({"a": b"mine"}, lambda path, there: there == known[path])
    assert shared.read() == {"a": b"mine", "b": b"2"}


def test_the_same_change_twice_is_one_version(shared: Shared) -> None:
    shared.put({"a": b"1"}, change="csame00000")
    shared.put({"a": b"2"})
    # The second might have been made of something else, so it is not told that it was done.
    with pytest.raises(NoChangeError):
        shared.again().put({"a": b"1"}, change="csame00000")
    assert shared.read() == {"a": b"2"}


def test_however_long_ago_a_change_was_made_it_is_known(shared: Shared) -> None:
    first = name()
    shared.put({"a": b"0"}, change=first)
    for number in range(3 * LATEST):
        head = shared.put({"a": b"%d" % number})
    assert first not in head.latest
    assert len(head.latest) <= 2 * LATEST
    other = shared.again().workspace
    assert other.made(first)
    assert not other.made("cnever0000")
    shared.bucket.replace(head.earlier, b"[]")
    with pytest.raises(SharedDamagedError):
        other.made(first)
    shared.bucket.delete(head.earlier)
    with pytest.raises(SharedDamagedError):
        other.made(first)


def test_what_was_sent_by_one_that_is_gone_is_not_done_after_it_was_said_not_to_be(
    shared: Shared,
) -> None:
    shared.put({"a": b"1"})
    head = shared.workspace.newest()
    assert not shared.again().workspace.made("cgone00000")
    assert shared.workspace.newest().tag == head.tag
    assert not shared.again().workspace.made("cgone00000", fence=name())
    with pytest.raises(StaleItemError):
        # The server had it in its queue.
        shared.bucket.swap(HEAD, b"of the one that is gone", head.tag)
    assert shared.read() == {"a": b"1"}


def test_a_request_is_done_once_by_whatever_machine(shared: Shared) -> None:
    content = sha256(b"x").hexdigest()
    wanted: dict[str, FileState | None] = {"a": FileState(content, 1, 0o644)}
    told = (wanted, lambda _name: b"x", lambda *_: True)
    shared.workspace.publish(name(), "one", *told, "casked0000")
    shared.put({"a": b"y"})
    with pytest.raises(NoChangeError):
        shared.again().workspace.publish(name(), "other", *told, "casked0000")
    assert shared.workspace.made("casked0000")
    assert shared.read() == {"a": b"y"}


def test_many_files_are_named_in_shards_and_few_changes_in_the_head(shared: Shared) -> None:
    files: dict[str, bytes | None] = {f"d{n % 7}/f{n}.txt": b"%d\n" % n for n in range(2_500)}
    head = shared.put(files)
    assert len(head.shards) == 4
    assert not head.delta
    head = shared.put({"d1/f1.txt": b"new\n"})
    assert len(head.shards) == 4
    assert set(head.delta) == {"d1/f1.txt"}
    again = shared.put({f"e/{n}": b"e" for n in range(300)})
    assert not again.delta
    assert shared.again().read() == {**files, "d1/f1.txt": b"new\n"} | {
        f"e/{n}": b"e" for n in range(300)
    }


def test_only_the_shards_that_change_are_written_again(shared: Shared) -> None:
    head = shared.put({f"f{n}": b"%d" % n for n in range(2_500)})
    for number in range(257):
        after = shared.put({"f1": b"v%d" % number, f"x{number % 2}": b"y%d" % number})
    assert len(set(head.shards) & set(after.shards)) == 4  # the head still has it all
    after = shared.put({f"f{n}": b"z" for n in range(0, 2_500, 9)})
    assert not after.delta


def test_a_file_is_not_a_folder_as_well(shared: Shared) -> None:
    shared.put({"a/b": b"1"})
    for path in ("a", "a/b/c"):
        with pytest.raises(SharedConflictError):
            shared.put({path: b"2"})
    shared.put({"a/b": None, "a": b"2"})
    assert shared.read() == {"a": b"2"}


@pytest.mark.parametrize(
    "path",
    ["../up", "/abs", "a//b", "a/./b", "a\0b", ".git/config", "x/.GIT/hooks/y", "", "a" * 300],
)
def test_a_name_that_no_checkout_may_have_is_not_published(shared: Shared, path: str) -> None:
    with pytest.raises(InvalidParamsError):
        shared.put({path: b"x"})


def test_a_file_that_is_too_large_is_not_published(shared: Shared) -> None:
    state = FileState(sha256(b"").hexdigest(), LARGEST_CONTENT + 1, 0o644)
    with pytest.raises(TooLargeError):
        shared.workspace.publish(name(), "t", {"a": state}, lambda _: b"", lambda *_: True)


def test_other_bytes_than_were_named_are_a_mistake_of_ours(shared: Shared) -> None:
    state = FileState(sha256(b"x").hexdigest(), 1, 0o644)
    with pytest.raises(ValueError, match="other bytes"):
        shared.workspace.publish(name(), "t", {"a": state}, lambda _: b"y", lambda *_: True)


def test_sixteen_writers_in_two_processes_lose_nothing(shared: Shared) -> None:
    shared.put({"count": b"0"})
    sides = [shared.again(), shared.again()]
    tries = 3

    def run(side: Shared) -> None:
        for _ in range(tries):
            while True:
                files = side.workspace.files(side.workspace.newest())
                entry = files["count"]
                now = int(side.workspace.content(entry))
                try:
                    side.put({"count": b"%d" % (now + 1)}, lambda _, there: there == entry.state)  # noqa: B023
                    break
                except (SharedConflictError, SharedBusyError):
                    continue

    threads = [threading.Thread(target=run, args=(sides[n % 2],)) for n in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert shared.read() == {"count": b"%d" % (16 * tries)}
    assert shared.workspace.newest().number == 1 + 16 * tries


def test_a_workspace_that_was_made_anew_is_another(shared: Shared) -> None:
    other = shared.again()
    other.workspace.newest()
    shared.bucket.delete(HEAD)
    with pytest.raises(SharedGoneError):
        other.workspace.newest()
    shared.again().workspace.create(name(), "somebody")
    with pytest.raises(SharedGoneError):
        other.workspace.newest()


def test_what_went_back_is_not_the_newest(shared: Shared) -> None:
    shared.put({"a": b"1"})
    old, _ = shared.bucket.get(HEAD)
    shared.put({"a": b"2"})
    seen = shared.put({"a": b"3"})
    shared.bucket.replace(HEAD, old)
    with pytest.raises(SharedGoneError):
        shared.put({"b": b"mine"})
    for _ in range(2):
        shared.again().put({"a": b"4"})
        later = shared.again().workspace
        later.expect(seen.workspace, seen.number, seen.change)
        with pytest.raises(SharedGoneError):
            later.newest()
    assert shared.again().read() == {"a": b"4"}


# -- answers that are lost ---------------------------------------------------------------------


class Losing:
    """A bucket that carries out some requests and gives no answer, or does not carry them out."""

    def __init__(self, bucket: Bucket, lose: list[str], fail_reads: int = 0) -> None:
        self._bucket = bucket
        self.lose = lose
        self.fail_reads = fail_reads

    def __getattr__(self, name: str) -> object:
        return getattr(self._bucket, name)

    def get_other(self, name: str, tag: str) -> tuple[bytes, str] | None:
        if self.fail_reads and not self.lose:
            self.fail_reads -= 1
            raise ObjectStoreFailedError("down")
        return self._bucket.get_other(name, tag)

    def create(self, name: str, data: bytes) -> str:
        return self._lossy(name, lambda: self._bucket.create(name, data))

    def swap(self, name: str, data: bytes, tag: str) -> str:
        return self._lossy(name, lambda: self._bucket.swap(name, data, tag))

    def _lossy(self, name: str, act: object) -> str:
        kind = self.lose.pop(0) if self.lose else ""
        if kind == "moved":
            raise StaleItemError(name)
        if kind == "unsent":
            raise UnknownResultError("cut")
        tag = str(act())  # type: ignore[operator]
        if kind == "lost":
            raise UnknownResultError("cut")
        return tag


@pytest.mark.parametrize(
    "lose",
    [["", "lost"], ["", "unsent"], ["lost", ""], ["unsent", "lost"], ["", "moved"], ["", "unsent", "lost"],
     ["moved", "lost"]],
)  # fmt: skip
def test_a_lost_answer_is_looked_for_and_nothing_is_done_twice(
    shared: Shared, lose: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filepact_fleet.objects.bucket._FIRST_WAIT", 0)
    shared.put({"a": b"1"})
    side = Shared(Losing(shared.bucket, lose))  # type: ignore[arg-type]
    head = side.put({"a": b"2", "b": b"3"})
    assert head.number == 2
    assert not lose
    assert shared.again().read() == {"a": b"2", "b": b"3"}
    assert shared.again().workspace.newest().number == 2


def test_where_nobody_can_tell_it_is_said_that_nobody_can(shared: Shared) -> None:
    side = Shared(Losing(shared.bucket, ["", "lost"], fail_reads=99))  # type: ignore[arg-type]
    with pytest.raises(OutcomeUnknownError):
        side.put({"a": b"2"})
    assert shared.again().read() == {"a": b"2"}


@pytest.mark.parametrize("then", [b"", b"{}"])
def test_a_workspace_that_goes_after_a_lost_answer_leaves_it_unknown(
    shared: Shared, then: bytes
) -> None:
    side = Shared(Losing(shared.bucket, ["", "lost"]))  # type: ignore[arg-type]
    side.workspace.newest()
    swap = side.bucket.swap

    def gone(name: str, data: bytes, tag: str) -> str:
        try:
            return swap(name, data, tag)
        finally:
            shared.bucket.delete(HEAD)
            if then:
                shared.bucket.replace(HEAD, then)

    side.bucket.swap = gone  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknownError):
        side.put({"a": b"2"})


def test_a_failed_look_before_anything_was_sent_says_that_nothing_was_done(shared: Shared) -> None:
    side = Shared(Losing(shared.bucket, []))  # type: ignore[arg-type]
    side.read()
    side.bucket.fail_reads = 1  # type: ignore[attr-defined]
    with pytest.raises(ObjectStoreFailedError):
        side.put({"a": b"2"})
    assert shared.read() == {}


def test_a_change_that_others_always_come_before_ends(shared: Shared) -> None:
    side = Shared(Losing(shared.bucket, ["", *["moved"] * 99]))  # type: ignore[arg-type]
    with pytest.raises(SharedBusyError):
        side.put({"a": b"2"})
    assert shared.read() == {}


def test_a_conflict_after_a_lost_answer_is_told_only_when_it_is_certain(shared: Shared) -> None:
    shared.put({"a": b"1"})
    side = Shared(Losing(shared.bucket, ["", "unsent"]))  # type: ignore[arg-type]
    (known,) = side.workspace.files(side.workspace.newest()).values()
    asked = []

    def agrees(_path: str, there: FileState | None) -> bool:
        asked.append(there)
        if len(asked) == 2:
            shared.put({"a": b"theirs"})
            side.workspace.newest()
        return there == known.state

    with pytest.raises((SharedConflictError, SharedBusyError)):
        side.put({"a": b"mine"}, agrees)
    assert shared.again().read() == {"a": b"theirs"}


# -- what others have put there ----------------------------------------------------------------


def test_a_pack_that_is_cut_short_or_changed_or_gone_is_damage(shared: Shared) -> None:
    head = shared.put({"a": b"0123456789" * 100, "b": b"xyz"})
    entry = shared.workspace.files(head)["a"]
    whole, _ = shared.bucket.get(entry.pack)
    for damaged in (whole[: entry.length // 2], b"\0" * len(whole), whole[:-1] + b"\xff" * 1):
        shared.bucket.replace(entry.pack, damaged)
        with pytest.raises(SharedDamagedError):
            shared.again().read()
    shared.bucket.delete(entry.pack)
    with pytest.raises(SharedDamagedError):
        shared.again().read()

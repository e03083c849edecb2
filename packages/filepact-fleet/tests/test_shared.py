"""Checkouts of a shared workspace: two machines, each with a folder, a journal and a state folder of its own."""

from __future__ import annotations

import os
import shutil
import threading
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import (
    InvalidParamsError,
    NoChangeError,
    ObjectStoreFailedError,
    PathBlockedError,
    SharedConflictError,
    SharedGoneError,
    StateFailedError,
    WriteFailedError,
)
from filepact.fs.root import Root
from filepact.tools.registry import CallContext
from filepact_fleet import sharing
from filepact_fleet.checkout import FolderFiles, SharedRoot
from filepact_fleet.checkout_index import CheckoutIndex
from filepact_fleet.objects.bucket import UnknownResultError, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.workspace.workspace import Workspace
    from filepact_fleet.objects.bucket import Bucket

URL = "s3://team/project"
PERSON = Session("p1", Actor("person", "somebody"))


class Failing:
    """A bucket whose next requests of some kinds fail."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.down: set[str] = set()
        self.before: dict[str, Callable[[], None]] = {}
        self.act: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self.down:
            raise ObjectStoreFailedError("down", outcome="not_applied")
        act = self.before.pop(name, None)
        if act is not None:
            act()
        return self.act.get(name) or getattr(self.bucket, name)


class Side:
    """One machine's checkout."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder, self.state = folder, state
        self.workspace = self.open()

    def open(self, **options: Any) -> Workspace:
        return open_workspace(
            [str(self.folder)], state_dir=str(self.state), settings=Settings(), **options
        )

    def call(self, tool: str, session: str = "s", **arguments: Any) -> str:
        context = CallContext(session=Session(session, Actor("agent", "tester")))
        return open_toolbox(self.workspace).call(tool, arguments, context).text

    def asked(self, path: str, old: str, new: str, **of: str) -> Any:
        """An edit for a request that has an id."""
        context = CallContext(session=Session("s", Actor("agent", "tester"), **of))
        arguments = {"path": path, "old_string": old, "new_string": new}
        return open_toolbox(self.workspace).call("edit_file", arguments, context)

    def read(self, path: str) -> str:
        return self.call("read_file", path=path)

    def edit(self, path: str, old: str, new: str) -> str:
        return self.call("edit_file", path=path, old_string=old, new_string=new)

    def files(self) -> dict[str, bytes]:
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def sync(self, **options: bool) -> sharing.SyncResult:
        return sharing.sync_checkout(self.workspace, "somebody", **options)


class Place(NamedTuple):
    place: sharing.SharedPlace
    bucket: Failing
    checkout: Callable[[], Side]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    store = pytest.importorskip("obstore.store", reason="obstore is not installed")
    bucket = Failing(over(store.MemoryStore()))
    monkeypatch.setattr(sharing, "open_bucket", lambda _url: bucket)
    place = sharing.SharedPlace(URL)
    place.create("somebody")
    first = tmp_path / "first"
    (first / "d").mkdir(parents=True)
    (first / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    (first / "d/b.txt").write_text("b\n")
    (first / "run").write_text("#!/bin/sh\n")
    (first / "run").chmod(0o755)
    place.take_in(str(first), "somebody")
    made: list[Side] = []

    def checkout() -> Side:
        folder, state = tmp_path / f"w{len(made)}", tmp_path / f"s{len(made)}"
        folder.mkdir()
        sharing.begin_checkout(URL, str(folder), str(state))
        made.append(Side(folder, state))
        return made[-1]

    yield Place(place, bucket, checkout)
    for one in made:
        one.workspace.close()


def test_a_checkout_has_the_files_and_their_rights(shared: Place) -> None:
    side = shared.checkout()
    assert set(side.files()) == {"a.txt", "d/b.txt", "run"}
    assert (side.folder / "run").stat().st_mode & 0o777 == 0o755


def test_what_one_agent_was_told_is_done_the_other_reads(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    assert "Done" in one.edit("a.txt", "one", "ONE")
    assert "ONE" in other.read("a.txt")
    assert "Done" in other.edit("a.txt", "seven", "SEVEN")
    assert "SEVEN" in one.read("a.txt")
    assert one.files() == other.files()


def test_new_moved_and_removed_files_come_as_one(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    before = shared.place.workspace.newest().number
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n*** Move to: e/moved.txt\n@@\n-one\n+ONE\n two\n"
        "*** Delete File: d/b.txt\n*** Add File: new.txt\n+new\n*** End Patch\n"
    )
    answer = one.call("patch_apply", patch=patch)
    assert shared.place.workspace.newest().number == before + 1, answer
    assert "new" in other.read("new.txt")
    assert other.files() == one.files()
    assert set(other.files()) == {"e/moved.txt", "new.txt", "run"}


def test_a_change_that_comes_second_is_made_anew_on_what_came_first(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    one.read("a.txt")
    # Between the look and the exchange of one, the other is faster.
    shared.bucket.before["swap"] = lambda: other.edit("a.txt", "seven", "SEVEN")
    assert "Done" in one.edit("a.txt", "one", "ONE")
    text = one.files()["a.txt"]
    assert text.startswith(b"ONE\n")
    assert text.endswith(b"SEVEN\n")
    assert "ONE" in other.read("a.txt")
    assert shared.place.workspace.newest().number == 3


def test_who_brings_an_older_version_takes_back_nothing_that_was_published_meanwhile(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = shared.checkout(), shared.checkout()
    other.edit("a.txt", "seven", "SEVEN")
    bring = SharedRoot._bring

    def late(*arguments: Any) -> Any:
        # A version has been asked for; until it is brought, another thread of this machine is told "Done".
        monkeypatch.setattr(SharedRoot, "_bring", bring)
        assert "Done" in one.edit("a.txt", "one", "ONE")
        return bring(*arguments)

    monkeypatch.setattr(SharedRoot, "_bring", late)
    for _ in range(2):
        text = one.read("a.txt")
        assert "ONE" in text
        assert "SEVEN" in text
    assert one.sync().conflicts == ()
    other.read("a.txt")
    assert one.files() == other.files()


def test_a_change_of_lines_that_are_gone_is_refused_and_changes_nothing(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    shared.bucket.before["swap"] = lambda: other.edit("a.txt", "one", "uno")
    assert "STRING_NOT_FOUND" in one.edit("a.txt", "one", "ONE")
    assert one.files() == other.files()


def test_undo_here_takes_back_what_was_done_here_and_keeps_what_others_did(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    one.edit("a.txt", "one", "ONE")
    other.edit("a.txt", "seven", "SEVEN")
    one.workspace.undo(PERSON)
    assert other.read("a.txt").count("SEVEN") == 1
    assert "ONE" not in other.read("a.txt")
    with pytest.raises(NoChangeError):
        one.workspace.undo(PERSON)  # what others did is not taken back unless it is named


def test_an_approval_is_fitted_to_what_others_did(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    with one.open(mode="preview") as careful:
        one.workspace.close()
        one.workspace = careful
        one.edit("a.txt", "one", "ONE")
        (waits,) = careful.pending()
        careful.approve(waits.id, Approval(PERSON.actor, ""))
        assert "ONE" in other.read("a.txt")
        one.workspace = one.open()


def test_without_the_server_nothing_is_read_or_written(shared: Place) -> None:
    side = shared.checkout()
    before = side.files()
    shared.bucket.down |= {"get_other", "get"}
    assert "OBJECT_STORE_ERROR" in side.read("a.txt")
    assert "OBJECT_STORE_ERROR" in side.edit("a.txt", "one", "ONE")
    assert side.workspace.log() == ()  # that asks nobody
    side.workspace.close()
    side.workspace = side.open()
    assert side.workspace.log() == ()
    shared.bucket.down.clear()
    shared.bucket.down |= {"create"}
    assert "OBJECT_STORE_ERROR" in side.edit("a.txt", "one", "ONE")
    assert side.files() == before
    shared.bucket.down.clear()
    assert "Done" in side.edit("a.txt", "one", "ONE")


def test_a_workspace_that_was_removed_is_said(shared: Place) -> None:
    side = shared.checkout()
    before = side.files()
    shared.bucket.bucket.delete("head")
    assert codes(side) == {"SHARED_GONE"}
    assert side.files() == before
    side.workspace.close()
    side.workspace = side.open()
    assert codes(side) == {"SHARED_GONE"}


def codes(side: Side) -> set[str]:
    """With which calls of every kind are refused."""
    calls = [
        side.read("a.txt"),
        side.call("read_file", path="never.txt"),
        side.call("grep", pattern="one"),
        side.call("directory_tree"),
        side.edit("a.txt", "one", "ONE"),
        side.call("write_file", path="new.txt", content="new\n"),
    ]
    return {one.partition(":")[0] for one in calls}


def emptied(bucket: Bucket) -> None:
    for one in list(bucket.list("")):
        bucket.delete(one.name)


@pytest.mark.parametrize("again", [False, True])
def test_another_workspace_at_the_place_is_not_taken_for_the_one_that_was_there(
    shared: Place, tmp_path: Path, again: bool
) -> None:
    side = shared.checkout()
    assert "Done" in side.edit("a.txt", "one", "ONE")
    before = side.files()
    emptied(shared.bucket.bucket)
    place = sharing.SharedPlace(URL)
    place.create("somebody else")
    if again:
        side.workspace.close()
        side.workspace = side.open()
    assert codes(side) == {"SHARED_GONE"}
    # What was done here is still told.
    assert [one.tool for one in side.workspace.log()] == ["edit_file"]
    assert [len(operations) for _, operations in side.workspace.turns()] == [1]
    for _ in range(5):  # it is further than the one before was
        other = place.workspace.newest()
        place.workspace.rewrite(f"c{other.number:09}", "somebody else", {})
    assert codes(side) == {"SHARED_GONE"}
    with pytest.raises(SharedGoneError):
        side.sync()
    assert side.files() == before
    assert place.workspace.files(place.workspace.newest()) == {}
    # A person makes it anew of what the folder has, which goes on as a checkout then.
    side.workspace.close()
    place.take_in(str(side.folder), "somebody")
    sharing.begin_checkout(URL, str(side.folder), str(side.state))
    side.workspace = side.open()
    assert "Done" in side.edit("a.txt", "ONE", "1")
    fresh = shared.checkout()
    assert fresh.files() == side.files()
    with pytest.raises(InvalidParamsError):
        sharing.begin_checkout(URL, str(side.folder), str(side.state))


def test_an_older_state_that_was_put_back_is_not_taken_for_the_newest(shared: Place) -> None:
    side, other = shared.checkout(), shared.checkout()
    old, _ = shared.bucket.bucket.get("head")
    assert "Done" in side.edit("a.txt", "one", "ONE")
    assert "Done" in side.edit("a.txt", "two", "TWO")
    before = side.files()
    shared.bucket.bucket.replace("head", old)
    assert codes(side) == {"SHARED_GONE"}
    # Whoever has not seen what is lost goes on, past the version that this one has seen.
    for number in range(3):
        assert "Done" in other.call("write_file", path=f"{number}", content="x\n")
    side.workspace.close()
    side.workspace = side.open()
    assert codes(side) == {"SHARED_GONE"}
    assert side.files() == before


def test_of_two_processes_neither_takes_an_older_state_for_the_newest(shared: Place) -> None:
    side = shared.checkout()
    twin = Side(side.folder, side.state)
    other = shared.checkout()
    assert "Done" in other.edit("a.txt", "one", "ONE")
    old, _ = shared.bucket.bucket.get("head")
    assert "Done" in other.edit("a.txt", "two", "TWO")
    assert "TWO" in side.read("a.txt")
    shared.bucket.bucket.replace("head", old)
    assert codes(twin) == {"SHARED_GONE"}
    twin.workspace.close()


def test_a_folder_that_was_wiped_is_neither_shown_as_empty_nor_sent(shared: Place) -> None:
    side, other = shared.checkout(), shared.checkout()
    before = side.files()
    side.workspace.close()
    shutil.rmtree(side.folder)
    side.folder.mkdir()
    side.workspace = side.open()
    assert codes(side) == {"PATH_BLOCKED"}
    with pytest.raises(PathBlockedError):
        side.sync()
    assert "one" in other.read("a.txt")
    side.workspace.close()
    sharing.begin_checkout(URL, str(side.folder), str(side.state))
    side.workspace = side.open()
    assert "Done" in side.edit("a.txt", "one", "ONE")
    assert side.files() == before | {"a.txt": before["a.txt"].replace(b"one", b"ONE")}
    for one in side.folder.iterdir():
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    assert set(side.sync(ours=True).sent) == set(before)
    assert "NOT_FOUND" in other.read("a.txt")
    side.workspace.close()
    side.workspace = side.open()
    assert "Done" in side.call("write_file", path="new.txt", content="new\n")


def test_a_folder_that_is_deleted_under_a_session_removes_nothing(shared: Place) -> None:
    side, other = shared.checkout(), shared.checkout()
    assert "one" in side.read("a.txt")
    shutil.rmtree(side.folder)
    assert codes(side) == {"PATH_BLOCKED"}
    assert "Done" in other.edit("a.txt", "two", "TWO")
    assert codes(side) == {"PATH_BLOCKED"}
    side.folder.mkdir()  # a new one is not the one that this session has
    assert codes(side) == {"PATH_BLOCKED"}
    assert list(side.folder.iterdir()) == []
    assert "TWO" in other.read("a.txt")


def test_a_change_that_was_cut_off_is_not_settled_by_another_workspace(shared: Place) -> None:
    side = shared.checkout()
    before = side.files()

    def die() -> None:
        raise KilledError

    shared.bucket.before["swap"] = die
    with pytest.raises(KilledError):
        side.edit("a.txt", "one", "ONE")
    kept = {one.name: shared.bucket.bucket.get(one.name)[0] for one in shared.bucket.list("")}
    emptied(shared.bucket.bucket)
    place = sharing.SharedPlace(URL)
    place.create("somebody else")
    side.workspace = side.open()
    assert side.workspace.recovered == ()
    assert codes(side) == {"SHARED_GONE"}
    assert place.workspace.newest().number == 0
    # The server gets back what it had: now it can be told.
    for name, data in kept.items():
        shared.bucket.bucket.replace(name, data)
    assert "one" in side.read("a.txt")
    assert states(side, "edit_file") == ["rolled_back"]
    assert side.files() == before


# -- what other programs change -----------------------------------------------------------------


def test_sync_sends_what_any_program_changed_as_one_version(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    (one.folder / "n.txt").write_text("n")
    (one.folder / "a.txt").unlink()
    (one.folder / "run").chmod(0o644)
    (one.folder / ".gitignore").write_text("build/\n")
    (one.folder / "build").mkdir()
    (one.folder / "build/x").write_text("not sent")
    (one.folder / ".git").mkdir()
    (one.folder / ".git/config").write_text("not sent")
    (one.folder / "link").symlink_to("n.txt")
    status = sharing.shared_status(one.workspace)
    assert status.ours == (".gitignore", "a.txt", "n.txt", "run")
    done = one.sync()
    assert set(done.sent) == {".gitignore", "a.txt", "n.txt", "run"}
    assert any("link" in said for said in done.left_out)
    assert one.sync().sent == ()
    other.read("n.txt")
    assert set(other.files()) == {".gitignore", "d/b.txt", "n.txt", "run"}
    assert (other.folder / "run").stat().st_mode & 0o777 == 0o644


def test_sync_merges_what_both_changed(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    text = (one.folder / "a.txt").read_text()
    (one.folder / "a.txt").write_text(text.replace("seven", "SEVEN"))
    other.edit("a.txt", "one", "ONE")
    done = one.sync()
    assert (done.brought, done.sent, done.conflicts) == (("a.txt",), ("a.txt",), ())
    assert "SEVEN" in other.read("a.txt")
    assert one.files() == other.files()


@pytest.mark.parametrize("word", ["ours", "theirs"])
def test_what_does_not_fit_stays_until_a_person_says_which(shared: Place, word: str) -> None:
    one, other = shared.checkout(), shared.checkout()
    text = (one.folder / "a.txt").read_text()
    (one.folder / "a.txt").write_text(text.replace("one", "mine"))
    (one.folder / "more").write_text("more")
    other.edit("a.txt", "one", "there")
    other.call("write_file", path="b", content="b\n")
    done = one.sync()
    assert (done.conflicts, done.sent) == (("a.txt",), ("more",))
    assert b"mine" in one.files()["a.txt"]
    assert one.files()["b"] == b"b\n"
    assert "SHARED_CONFLICT" in one.edit("a.txt", "two", "zwei")
    with pytest.raises(InvalidParamsError):
        one.sync(ours=True, theirs=True)
    done = one.sync(**{word: True})
    assert done.conflicts == ()
    other.read("a.txt")
    assert one.files() == other.files()
    assert (b"mine" in one.files()["a.txt"]) == (word == "ours")
    if word == "theirs":
        newest = one.workspace.log(limit=1)[0]
        one.workspace.undo(PERSON, newest.id)
        assert b"mine" in one.files()["a.txt"]


def test_sync_goes_on_when_others_are_faster(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    text = (one.folder / "a.txt").read_text()
    (one.folder / "a.txt").write_text(text.replace("seven", "SEVEN"))
    one.read("d/b.txt")
    shared.bucket.before["swap"] = lambda: other.edit("a.txt", "one", "ONE")
    assert one.sync().sent == ("a.txt",)
    other.read("a.txt")
    assert one.files() == other.files()
    assert b"ONE" in one.files()["a.txt"]


def test_an_agents_change_takes_along_what_a_program_made_of_the_same_file(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    text = (one.folder / "a.txt").read_text()
    (one.folder / "a.txt").write_text(text.replace("seven", "SEVEN"))
    assert "Done" in one.edit("a.txt", "one", "ONE")
    assert "SEVEN" in other.read("a.txt")


def test_a_link_is_not_published(shared: Place) -> None:
    side = shared.checkout()
    (side.folder / "l").symlink_to("a.txt")
    before = side.files()
    assert any("l:" in one for one in side.sync().left_out)
    assert side.files() == before


# -- processes and crashes -------------------------------------------------------------------------


def test_two_processes_of_one_machine_share_a_checkout(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    with one.open() as second:
        twin = Side.__new__(Side)
        twin.folder, twin.state, twin.workspace = one.folder, one.state, second
        one.edit("a.txt", "one", "1")
        twin.edit("a.txt", "two", "2")
        other.edit("a.txt", "three", "3")
        one.edit("a.txt", "four", "4")
        twin.edit("a.txt", "five", "5")
        assert other.read("a.txt").count("│") == 7
        assert other.files()["a.txt"] == b"1\n2\n3\n4\n5\nsix\nseven\n" == one.files()["a.txt"]


class KilledError(BaseException):
    """Stands for the end of the process at this place."""


@pytest.mark.parametrize("point", ["uploaded", "swapped", "applied"])
def test_cut_off_at_any_point_a_change_is_there_or_not_and_the_folder_follows(
    shared: Place, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = shared.checkout(), shared.checkout()
    one.read("a.txt")

    def die(*_: object, **__: object) -> None:
        raise KilledError

    target = {
        "uploaded": "filepact_fleet.objects.repository.BucketWorkspace._exchange",
        "swapped": "filepact.fs.root.Root.apply",
        "applied": "filepact.workspace.commit.Committer._settle",
    }[point]
    with monkeypatch.context() as patched:
        patched.setattr(target, die)
        with pytest.raises(KilledError):
            one.edit("a.txt", "one", "ONE")
    # What somebody adds just beside it must not keep the folder from following.
    there = "ONE" in other.read("a.txt")
    assert there == (point != "uploaded")
    assert "Done" in other.edit("a.txt", "two\n", "beside\n2\n")
    one.workspace = one.open()  # another process, after the first is gone
    assert ("ONE" in one.read("a.txt")) == there
    assert one.files() == other.files()
    assert "Done" in one.edit("a.txt", "three", "THREE")
    assert "THREE" in other.read("a.txt")
    # The journal says of it what is so: whoever is asked once more does it once more, or does not.
    assert states(one, "edit_file") == ["applied", "applied" if there else "rolled_back"]


def states(side: Side, tool: str) -> list[str]:
    """How the operations of a tool have ended, newest first."""
    return [found.state for found in side.workspace.log(limit=20) if found.tool == tool]


def test_cut_off_while_what_others_did_is_brought_the_folder_follows(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = shared.checkout(), shared.checkout()

    note = CheckoutIndex.note

    def die(index: CheckoutIndex, files: Any, *rest: Any, **named: Any) -> None:
        if files:
            raise KilledError
        note(index, files, *rest, **named)

    other.edit("a.txt", "one\n", "one\nmore\n")
    with monkeypatch.context() as patched:
        # All is done, but what the file came from by now is not noted.
        patched.setattr(CheckoutIndex, "note", die)
        with pytest.raises(KilledError):
            one.read("a.txt")
    other.edit("a.txt", "more\n", "yet more\nmore\n")
    one.workspace = one.open()
    assert "yet more" in one.read("a.txt")
    assert one.files() == other.files()


@pytest.mark.parametrize("looks", ["with a call", "at the next start"])
def test_what_one_process_had_half_brought_is_not_taken_back_after_another_went_on(
    shared: Place, looks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = 0.0 if looks == "with a call" else 1e9
    monkeypatch.setattr("filepact.workspace.recovery._LATER", later)
    one, other = shared.checkout(), shared.checkout()
    really, calls = Root.apply, []

    def die(*told: Any) -> None:
        calls.append(told)
        if len(calls) == 2:
            raise KilledError
        really(*told)

    other.edit("a.txt", "one\n", "1\n")
    other.edit("d/b.txt", "b\n", "B\n")
    with monkeypatch.context() as patched:
        patched.setattr(Root, "apply", die)
        with pytest.raises(KilledError):
            one.read("a.txt")
        with monkeypatch.context() as busy:
            # A process that begins now finds one of the files in use, and leaves the operation for later.
            busy.setattr("filepact.fs.locks.FileLocks.try_hold", lambda *_: None)
            one.workspace = one.open()
    for path in ("a.txt", "d/b.txt"):
        one.read(path)
    if looks == "at the next start":
        one.workspace = one.open()
    assert {found.state for found in one.workspace.log(limit=20)} == {"applied"}
    assert one.files() == other.files()
    assert one.sync().conflicts == ()
    assert "Done" in one.edit("a.txt", "two", "2")
    other.read("a.txt")
    assert one.files() == other.files()
    assert b"1\n2\n" in other.files()["a.txt"]


@pytest.mark.parametrize("done", [True, False])
def test_what_nobody_can_tell_of_is_told_when_the_server_answers_again(
    shared: Place, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = shared.checkout(), shared.checkout()
    one.read("a.txt")
    really, silent = shared.bucket.bucket.swap, True

    def swap(name: str, data: bytes, tag: str) -> str:
        if not silent:
            return really(name, data, tag)
        if done:
            really(name, data, tag)
        shared.bucket.down |= {"get", "get_other"}
        raise UnknownResultError("no answer")

    shared.bucket.act = {"swap": swap}
    monkeypatch.setattr("filepact_fleet.objects.repository._UNSURE_TRIES", 2)
    assert "OUTCOME_UNKNOWN" in one.edit("a.txt", "one", "ONE")
    assert "OBJECT_STORE_ERROR" in one.read("a.txt")
    silent = False
    shared.bucket.down.clear()
    assert ("ONE" in one.read("a.txt")) == done
    assert states(one, "edit_file") == ["applied" if done else "rolled_back"]
    assert ("ONE" in other.read("a.txt")) == done
    assert one.files() == other.files()


def test_a_change_under_a_given_id_is_made_anew_where_another_was_faster(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    one.read("a.txt")
    shared.bucket.before["swap"] = lambda: other.edit("a.txt", "seven", "SEVEN")
    asked = one.asked("a.txt", "one", "ONE", change="cfirst0000", request="cfirst0000")
    assert "Done" in asked.text
    assert states(one, "edit_file") == ["applied", "rolled_back"]
    assert "ONE" in other.read("a.txt")


def test_what_was_asked_for_at_another_machine_is_not_done_twice(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    change = {"change": "casked0000", "request": "casked0000"}
    assert "Done" in one.asked("a.txt", "one\n", "one\nmore\n", **change).text
    again = other.asked("a.txt", "one\n", "one\nmore\n", **change)
    assert again.code == "NO_CHANGE"
    assert other.files()["a.txt"].count(b"more") == 1
    context = CallContext(session=Session("s", PERSON.actor, **change))
    found = open_toolbox(other.workspace).done_before(context, "casked0000")
    assert "another machine" in found.text  # type: ignore[union-attr]
    other.read("a.txt")
    assert one.files() == other.files()


@pytest.mark.parametrize("faster", [False, True])
def test_a_change_that_is_cut_off_here_and_asked_for_again_elsewhere_is_one(
    shared: Place, faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, third = shared.checkout(), shared.checkout(), shared.checkout()
    change = {"change": "ccutoff000", "request": "ccutoff000"}

    def die(*_: object, **__: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr("filepact_fleet.objects.repository.BucketWorkspace._exchange", die)
        with pytest.raises(KilledError):
            one.asked("a.txt", "one\n", "one\nmore\n", **change)
    if faster:
        # The other machine makes it anew, under the id of a second try.
        shared.bucket.before["swap"] = lambda: third.edit("a.txt", "seven", "SEVEN")
    assert "Done" in other.asked("a.txt", "one\n", "one\nmore\n", **change).text
    one.workspace = one.open()
    assert one.read("a.txt").count("more") == 1
    done = [
        found.id
        for side in (one, other)
        for found in side.workspace.log(limit=20)
        if found.tool == "edit_file" and found.state == "applied"
    ]
    # The journals of both may have it, as the same change.
    assert len(set(done)) == 1
    assert one.files() == other.files()


def test_a_folder_that_refuses_what_is_published_says_so_and_follows(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = shared.checkout(), shared.checkout()

    def refuse(*_: object) -> None:
        raise WriteFailedError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr("filepact.fs.root.Root.apply", refuse)
        answer = one.edit("a.txt", "one", "ONE")
    assert "WRITE_ERROR" in answer
    assert "shared workspace has the change" in answer
    assert states(one, "edit_file") == ["applied"]
    assert "ONE" in other.read("a.txt")
    assert "ONE" in one.read("a.txt")


def test_a_checkout_that_was_cut_off_is_gone_on_with(
    shared: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "late"
    folder.mkdir()
    calls: list[str] = []
    really = Root.replace

    def second(self: Root, path: str, data: bytes, **more: Any) -> Any:
        calls.append(path)
        if len(calls) == 2:
            raise KilledError
        return really(self, path, data, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Root, "replace", second)
        with pytest.raises(KilledError):
            sharing.begin_checkout(URL, str(folder), str(tmp_path / "state"))
    assert sharing.begin_checkout(URL, str(folder), str(tmp_path / "state")) == (1, 3)
    with pytest.raises(InvalidParamsError):
        sharing.begin_checkout(URL, str(folder), str(tmp_path / "state"))


# -- folders -----------------------------------------------------------------------------------------


def test_an_export_is_what_was_imported(shared: Place, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    shared.place.write_out(str(target))
    shared.place.write_out(str(target))  # what is there already is left
    assert (target / "d/b.txt").read_text() == "b\n"
    (target / "d/b.txt").write_text("mine")
    with pytest.raises(SharedConflictError):
        shared.place.write_out(str(target))
    assert (target / "d/b.txt").read_text() == "mine"
    with pytest.raises(SharedConflictError):
        shared.place.take_in(str(target), "somebody")
    assert shared.place.take_in(str(target), "somebody", replace=True).files == 3


def test_upkeep_keeps_what_a_checkout_stands_at(shared: Place) -> None:
    one, other = shared.checkout(), shared.checkout()
    (one.folder / "a.txt").write_text("here\n")
    for number in range(3):
        other.call("write_file", path="d/b.txt", content=f"{number}\n")
    for _ in range(3):
        shared.place.collect("somebody", 0)
    assert one.sync().conflicts == ()
    assert not list(shared.place.check())
    assert other.read("a.txt").count("here") == 1


def test_a_folder_that_cannot_be_looked_through_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("a")
    monkeypatch.setattr("filepact.fs.walk.MAX_ENTRIES", 0)
    with Root.open(str(tmp_path)) as root, pytest.raises(InvalidParamsError):
        list(FolderFiles(root).states())


def test_a_file_that_is_written_to_is_not_sent_as_something_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with Root.open(str(tmp_path)) as root:
        files = FolderFiles(root, ["gone"])
        ((path, state),) = files.states()
        assert (path, state.size) == ("a", 1)
        (tmp_path / "a").write_text("b")
        with pytest.raises(NoChangeError):
            files.content("a", state.content)
        assert state.content == sha256(b"a").hexdigest()


# -- what a checkout remembers --------------------------------------------------------------------------


class Version(NamedTuple):
    """A version, as an index notes it."""

    number: int
    change: str
    workspace: str = "w0001"


def test_an_index_outlives_lines_that_were_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "checkouts/x.jsonl"
    index = CheckoutIndex(str(path))
    assert not index.exists()
    with pytest.raises(StateFailedError):
        index.load()
    index.begin(URL, "one")
    entry = ("ab" * 32, 1, 0o644, "packs/c0000-0", 0, 1)
    index.note({"a": entry, "b": entry}, Version(3, "c0003"))  # type: ignore[dict-item, arg-type]
    with path.open("ab") as stream:
        stream.write(b'{"files": {"c": [')
    index.note({"b": None})
    other = CheckoutIndex(str(path))
    other.load()
    assert (set(other.files), other.number, other.change, other.url) == ({"a"}, 3, "c0003", URL)
    for number in range(1_100):
        index.note({}, Version(number, "c"))  # type: ignore[arg-type]
    assert (index.number, index.change, index.workspace) == (1_099, "c", "w0001")
    assert len(path.read_bytes().splitlines()) < 1_000
    other.load()
    assert set(other.files) == {"a"}
    path.write_bytes(b"{}\n")
    with pytest.raises(StateFailedError):
        CheckoutIndex(str(path)).load()
    path.unlink()
    with pytest.raises(StateFailedError):
        index.note({})


def test_an_index_that_another_process_writes_anew_loses_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "x.jsonl")
    CheckoutIndex(path).begin(URL, "one")
    entry = ("ab" * 32, 1, 0o644, "packs/c0000-0", 0, 1)

    def write(number: int) -> None:
        index = CheckoutIndex(path)
        for turn in range(600):
            at = Version(turn, "c")
            index.note({f"{number}-{turn % 3}": entry}, at)  # type: ignore[dict-item, arg-type]
        index.note({f"{number}-last": entry})  # type: ignore[dict-item]

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    index = CheckoutIndex(path)
    index.load()
    assert {f"{number}-last" for number in range(4)} <= set(index.files)
    assert len(index.files) == 16
    assert index.number == 599


def test_an_index_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "checkouts").write_text("a file")
    with pytest.raises(StateFailedError):
        CheckoutIndex(str(tmp_path / "checkouts/x.jsonl")).begin(URL, "one")
    link = tmp_path / "l.jsonl"
    index = CheckoutIndex(str(tmp_path / "i.jsonl"))
    index.begin(URL, "one")
    (tmp_path / "i.jsonl").rename(tmp_path / "j.jsonl")
    (tmp_path / "i.jsonl").symlink_to(tmp_path / "j.jsonl")
    with pytest.raises(StateFailedError):
        index.note({"a": None})
    assert not link.exists()


def test_a_folder_that_is_no_checkout_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with (
        open_workspace(
            [str(tmp_path / "r")], state_dir=str(tmp_path / "s"), settings=Settings()
        ) as workspace,
        pytest.raises(InvalidParamsError),
    ):
        sharing.shared_status(workspace)


def test_two_checkouts_are_not_one_workspace_and_nothing_stays_open(
    shared: Place, tmp_path: Path
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        sharing.begin_checkout(URL, str(folder), str(tmp_path / "both"))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(InvalidParamsError):
        open_workspace(
            [str(folder) for folder in folders],
            state_dir=str(tmp_path / "both"),
            settings=Settings(),
        )
    assert len(os.listdir("/proc/self/fd")) == len(before)


# -- histories ---------------------------------------------------------------------------------------------


class Done(NamedTuple):
    begun: float
    ended: float
    kind: str
    value: tuple[str, ...]


def run_history(
    shared: Place, sides: int, writers: int, turns: int
) -> tuple[list[Done], list[str]]:
    """Let writers on several machines append to one file and read it; what they saw, and the end."""
    machines = [shared.checkout() for _ in range(sides)]
    machines[0].call("write_file", path="log", content="begin\n")
    history: list[Done] = []

    def run(number: int) -> None:
        machine = machines[number % sides]
        done = attempt = 0
        while done < turns:
            attempt += 1
            token = f"w{number}.{attempt}"
            begun = time.monotonic()
            answer = machine.call(
                *("edit_file", f"s{number}"),
                path="log",
                old_string="begin\n",
                new_string=f"begin\n{token}\n",
            )
            kind = "write" if answer.startswith("Done") else answer.partition(":")[0]
            done += kind == "write"
            history.append(Done(begun, time.monotonic(), kind, (token,)))
            begun = time.monotonic()
            text = machine.call("read_file", f"s{number}", path="log")
            lines = [line.partition("│")[2] for line in text.splitlines() if "│" in line]
            history.append(Done(begun, time.monotonic(), "read", tuple(reversed(lines[1:]))))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(writers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    machines[0].read("log")
    return history, list(reversed(machines[0].files()["log"].decode().split()[1:]))


def check_history(history: list[Done], final: list[str]) -> None:
    """Whether every operation can have happened at one moment between its beginning and its end.

    New lines stand first in the file, so reversed it only grows: every read is a beginning of the end, and
    the order in time of what did not overlap is the order in the file.
    """
    place = {token: number for number, token in enumerate(final)}
    assert len(place) == len(final), "done twice"
    points: list[tuple[float, float, int]] = []
    for one in history:
        if one.kind == "write":
            assert one.value[0] in place, "lost"
            points.append((one.begun, one.ended, place[one.value[0]] + 1))
        elif one.kind == "read":
            assert list(one.value) == final[: len(one.value)], "read what never was"
            points.append((one.begun, one.ended, len(one.value)))
        else:
            assert one.value[0] not in place, f"refused with {one.kind}, and done"
    ended = sorted(points, key=lambda one: one[1])
    reached, index = 0, 0
    for begun, _, count in sorted(points):
        while index < len(ended) and ended[index][1] < begun:
            reached, index = max(reached, ended[index][2]), index + 1
        assert count >= reached, "stale"


def test_two_machines_and_many_writers_of_one_file_lose_nothing(shared: Place) -> None:
    history, final = run_history(shared, 2, 6, 2)
    check_history(history, final)
    assert len(final) == 12


@pytest.mark.slow
def test_sixteen_writers_on_two_machines_lose_nothing(shared: Place) -> None:
    history, final = run_history(shared, 2, 16, 6)
    check_history(history, final)
    assert len(final) == 96


def test_the_check_of_histories_finds_what_is_wrong() -> None:
    good = [Done(0, 1, "write", ("a",)), Done(2, 3, "read", ("a",)), Done(4, 5, "write", ("b",))]
    check_history(good, ["a", "b"])
    for bad, final in (
        ([*good, Done(6, 7, "read", ("a",))], ["a", "b"]),  # stale
        (good, ["a"]),  # lost
        (good, ["b", "a"]),  # another order
        ([*good, Done(0, 9, "read", ("c",))], ["a", "b"]),  # never was
        ([*good, Done(0, 9, "SHARED_BUSY", ("b",))], ["a", "b"]),
    ):
        with pytest.raises(AssertionError):
            check_history(bad, final)

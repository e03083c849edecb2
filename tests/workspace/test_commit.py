"""Late writes, failures half way, and ends that the journal cannot take down."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.errors import StaleFileError, StateFailedError, WriteFailedError
from filepact.fs import atomic, kernel
from filepact.fs.atomic import DisplacedFile
from filepact.fs.kernel import FileSync
from filepact.fs.root import Root
from filepact.tools.registry import CallContext
from filepact.workspace import displaced_files
from tests.needs import LEASES, PROCESSES
from tests.workspace.acting import edit, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.fs.in_place import WriteResult
    from filepact.fs.staged import StagedChange
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace


def rescued(tmp_path: Path) -> list[bytes]:
    return [path.read_bytes() for path in (tmp_path / "state" / "rescued").glob("*")]


def test_a_program_that_had_the_old_file_open_loses_nothing(
    workspace: Workspace, session: Session, root: Path, tmp_path: Path
) -> None:
    (root / "a.txt").write_text("old\n")
    with (root / "a.txt").open("r+b") as editor:
        edit(workspace, session, "a.txt", "old", "new")
        editor.seek(0, 2)
        editor.write(b"typed by hand\n")
    workspace.close()
    assert (root / "a.txt").read_text() == "new\n"
    assert rescued(tmp_path) == [b"old\ntyped by hand\n"]


def test_a_late_write_is_kept_soon_and_noted_in_the_journal(
    workspace: Workspace, session: Session, root: Path, tmp_path: Path
) -> None:
    (root / "a.txt").write_text("old\n")
    with (root / "a.txt").open("r+b") as editor:
        receipt = edit(workspace, session, "a.txt", "old", "new")
        editor.write(b"OLD")
    assert receipt.operation is not None
    end = time.monotonic() + 60
    while "is kept in" not in workspace.operation(receipt.operation).note:
        assert time.monotonic() < end
        threading.Event().wait(0.01)
    assert rescued(tmp_path) == [b"OLD\n"]


@LEASES
def test_a_program_that_goes_on_writing_into_the_old_file_loses_no_line(
    workspace: Workspace,
    session: Session,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = threading.Semaphore(0)
    monkeypatch.setattr(displaced_files, "_LOOKS", (0.0, 0.0))
    monkeypatch.setattr(displaced_files, "_AGAIN", 0.0)
    real = DisplacedFile.has_writer
    monkeypatch.setattr(DisplacedFile, "has_writer", lambda one: (looks.release(), real(one))[1])
    (root / "a.log").write_text("old\n")
    with (root / "a.log").open("a") as appender:
        edit(workspace, session, "a.log", "old", "new")
        for number in range(5):
            appender.write(f"line {number}\n")
            appender.flush()
            # Each line comes after the look at which a file without a writer is let go.
            assert looks.acquire(timeout=30)
    workspace.close()
    lines = "".join(f"line {number}\n" for number in range(5))
    kept = sorted(rescued(tmp_path), key=len)
    assert kept[-1].decode() == f"old\n{lines}"
    assert len(kept) <= 2
    assert (root / "a.log").read_text() == "new\n"


@PROCESSES
def test_many_replaced_files_are_not_kept_open_for_long(
    workspace: Workspace, session: Session
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(300):
        write(workspace, session, "a.txt", f"{number}\n")
    assert len(os.listdir("/proc/self/fd")) - before < 280


def both(workspace: Workspace, session: Session, **texts: str) -> Receipt:
    """Change several text files in one operation."""
    with workspace.draft(session, "t") as draft:
        targets = draft.open_all([f"{name}.txt" for name in texts])
        for target, text in zip(targets, texts.values(), strict=True):
            draft.write(target, text)
        return workspace.submit(draft, "several")


def acting(
    monkeypatch: pytest.MonkeyPatch, root: Path, name: str, act: Callable[[], object]
) -> None:
    """Let somebody act right before a file takes on its new text."""
    real = Root.apply

    def applied(self: Root, one: StagedChange) -> None:
        if one.shown == name:
            act()
        real(self, one)

    monkeypatch.setattr(Root, "apply", applied)


def test_nothing_is_touched_when_one_of_several_cannot_be_staged(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    (root / "b.txt").chmod(0o444)
    before = {name: (root / name).stat().st_ino for name in ("a.txt", "b.txt")}
    applied: list[str] = []
    monkeypatch.setattr(Root, "apply", lambda _root, one: applied.append(one.shown))
    with pytest.raises(WriteFailedError) as caught:
        both(workspace, session, a="A\n", b="B\n")
    assert caught.value.details["outcome"] == "not_applied"
    assert applied == []
    assert {path.name: path.stat().st_ino for path in root.iterdir()} == before
    assert workspace.log()[0].state == "rolled_back"


def test_what_was_done_is_taken_back_with_the_very_files_that_were_there(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "gone"):
        (root / f"{name}.txt").write_text(f"{name}\n")
    inodes = {path.name: path.stat().st_ino for path in root.iterdir()}
    acting(monkeypatch, root, "b.txt", lambda: (root / "b.txt").write_text("person's\n"))
    with workspace.draft(session, "t") as draft:
        a, gone, new, b = draft.open_all(["a.txt", "gone.txt", "made/new.txt", "b.txt"])
        draft.write(a, "A\n")
        draft.delete(gone, emptied_by=None)
        draft.write(new, "new\n")
        draft.write(b, "B\n")
        with pytest.raises(StaleFileError) as caught:
            workspace.submit(draft, "four")
    assert caught.value.details["outcome"] == "not_applied"
    assert {path.name: path.stat().st_ino for path in root.iterdir()} == inodes
    assert (root / "b.txt").read_text() == "person's\n"
    assert workspace.log()[0].state == "rolled_back"


def test_taking_back_makes_no_file_and_writes_none(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")

    def full() -> None:
        def refused(*_: object, **__: object) -> int:
            raise OSError(errno.ENOSPC, "no")

        (root / "b.txt").write_text("person's\n")
        real = os.open
        monkeypatch.setattr(os, "write", refused)
        monkeypatch.setattr(
            os,
            "open",
            lambda path, flags, *more, **named: (
                refused() if flags & os.O_CREAT else real(path, flags, *more, **named)
            ),
        )

    acting(monkeypatch, root, "b.txt", full)
    with pytest.raises(StaleFileError) as caught:
        both(workspace, session, a="A\n", b="B\n")
    monkeypatch.undo()
    assert caught.value.details["outcome"] == "not_applied"
    assert {path.name: path.read_text() for path in root.iterdir()} == {
        "a.txt": "a\n",
        "b.txt": "person's\n",
    }


def test_what_cannot_be_taken_back_is_said_and_can_be_undone_later(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\nx\ny\nz\n")
    (root / "b.txt").write_text("b\n")

    def person() -> None:
        (root / "a.txt").write_text("A\nx\ny\nperson's\n")
        (root / "b.txt").write_text("person's\n")

    acting(monkeypatch, root, "b.txt", person)
    with pytest.raises(WriteFailedError) as caught:
        both(workspace, session, a="A\nx\ny\nz\n", b="B\n")
    monkeypatch.undo()
    assert "a.txt" in caught.value.message
    assert caught.value.details["outcome"] == "in_part"
    (operation,) = workspace.log()
    assert operation.id == caught.value.details["operation"]
    assert operation.state == "interrupted"
    assert [str(path) for path in operation.changes.paths] == ["a.txt"]
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_text() == "a\nx\ny\nperson's\n"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b.txt"]


def test_without_an_exchange_what_was_done_is_written_back(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")

    def missing(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no")

    monkeypatch.setattr(atomic, "renameat2", missing)
    acting(monkeypatch, root, "b.txt", lambda: (root / "b.txt").write_text("person's\n"))
    with pytest.raises(StaleFileError) as caught:
        both(workspace, session, a="A\n", b="B\n")
    assert caught.value.details["outcome"] == "not_applied"
    assert (root / "a.txt").read_text() == "a\n"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b.txt"]


@PROCESSES
@pytest.mark.parametrize("edited", [False, True])
def test_a_folder_goes_where_a_file_that_is_open_would_stay_in_it(
    workspace: Workspace,
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    edited: bool,
) -> None:
    """As of FUSE and NFS, where such a file gets a hidden name when it is removed."""
    folder = root / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    if edited:
        write(workspace, session, "folder/a.txt", "b\n")
    rmdir = os.rmdir

    def kept(name: str, *, dir_fd: int | None = None) -> None:
        held = []
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                held.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        if any(str(folder) in one for one in held):
            raise OSError(errno.ENOTEMPTY, "a hidden name")
        rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", kept)
    sent = {"action": "delete", "path": "folder"}
    done = open_toolbox(workspace, own=True).call("manage_files", sent, CallContext(session))
    assert not done.failed
    assert not folder.exists()
    assert workspace.log()[0].note == ""


def test_a_call_that_is_stopped_in_between_is_mended_by_the_next(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")

    def stopped() -> None:
        raise KeyboardInterrupt

    acting(monkeypatch, root, "b.txt", stopped)
    with pytest.raises(KeyboardInterrupt):
        both(workspace, session, a="A\n", b="B\n")
    monkeypatch.undo()
    assert (root / "a.txt").read_text() == "A\n"
    assert workspace.log()[0].state == "rolled_back"
    assert (root / "a.txt").read_text() == "a\n"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b.txt"]


def test_an_intention_that_the_journal_s_disk_refuses_is_taken_back_by_the_next_call(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("old\n")

    def failing(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(FileSync, "begin", lambda _self, _descriptor: False)
        patched.setattr(kernel, "data_sync", failing)
        with pytest.raises(StateFailedError) as caught:
            edit(workspace, session, "a.txt", "old", "new")
    assert caught.value.details["outcome"] == "not_applied"
    (told,) = workspace.log()
    assert told.state == "rolled_back"
    assert not workspace.unfinished()
    assert {path.name: path.read_text() for path in root.iterdir()} == {"a.txt": "old\n"}


def test_a_folder_that_was_made_for_nothing_goes_again(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "b.txt").write_text("b\n")
    with workspace.draft(session, "t") as draft:
        new, b = draft.open_all(["made/deep/new.txt", "b.txt"])
        draft.write(new, "new\n")
        draft.write(b, "B\n")
        (root / "b.txt").write_text("person's\n")
        with pytest.raises(StaleFileError):
            workspace.submit(draft, "two")
    assert sorted(path.name for path in root.iterdir()) == ["b.txt"]


# -- the end ------------------------------------------------------------------------------------


@pytest.fixture
def unwilling(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have the journal refuse to take down so many ends from now on."""
    store = workspace._store
    real = store.finish
    left = 0

    def finish(*what: object, **named: object) -> None:
        nonlocal left
        if left:
            left -= 1
            raise StateFailedError("the disk with the state folder is full")
        real(*what, **named)  # type: ignore[arg-type]

    def refuse(times: int) -> None:
        nonlocal left
        left = times

    monkeypatch.setattr(store, "finish", finish)
    return refuse


def test_an_end_that_is_refused_once_is_told_in_the_room_that_is_kept(
    workspace: Workspace,
    session: Session,
    root: Path,
    tmp_path: Path,
    unwilling: Callable[[int], None],
) -> None:
    kept = tmp_path / "state" / "room"
    write(workspace, session, "a.txt", "a\n")
    size = kept.stat().st_size
    unwilling(1)
    receipt = write(workspace, session, "a.txt", "A\n")
    assert receipt.confirmed
    assert workspace.log()[0].state == "applied"
    assert kept.stat().st_size == 0
    write(workspace, session, "a.txt", "AA\n")
    assert kept.stat().st_size == size > 0


@pytest.mark.parametrize(
    "next_call",
    [
        lambda workspace, _session: workspace.log(),
        lambda workspace, session: workspace.undo(session, dry_run=True),
        lambda workspace, session: workspace.reader(session),
        lambda workspace, session: edit(workspace, session, "a.txt", "A", "B"),
    ],
    ids=["log", "undo", "read", "edit"],
)
def test_a_change_whose_end_cannot_be_told_is_done_and_the_next_call_tells_it(
    workspace: Workspace,
    session: Session,
    root: Path,
    unwilling: Callable[[int], None],
    next_call: Callable[[Workspace, Session], object],
) -> None:
    (root / "a.txt").write_text("a\n")
    unwilling(2)
    receipt = edit(workspace, session, "a.txt", "a", "A")
    assert (receipt.status, receipt.confirmed) == ("applied", False)
    assert receipt.notes
    assert (root / "a.txt").read_text() == "A\n"
    assert [one.id for one in workspace.unfinished()] == [receipt.operation]
    next_call(workspace, session)
    assert workspace.unfinished() == ()
    assert receipt.operation in {one.id for one in workspace.log() if one.state == "applied"}


def test_the_journal_s_refusal_never_hides_why_a_change_was_taken_back(
    workspace: Workspace,
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    unwilling: Callable[[int], None],
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    acting(monkeypatch, root, "b.txt", lambda: (root / "b.txt").write_text("person's\n"))
    unwilling(2)
    with pytest.raises(StaleFileError):
        both(workspace, session, a="A\n", b="B\n")
    assert (root / "a.txt").read_text() == "a\n"
    assert workspace.log()[0].state == "rolled_back"


def test_without_room_for_the_end_nothing_is_begun(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")

    def refused(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no")

    monkeypatch.setattr(os, "pwrite", refused)
    with pytest.raises(StateFailedError) as caught:
        edit(workspace, session, "a.txt", "a", "A")
    assert caught.value.details["outcome"] == "not_applied"
    assert (root / "a.txt").read_text() == "a\n"
    assert workspace.unfinished() == ()
    assert workspace.log() == ()


def test_a_folder_that_is_not_known_to_be_durable_is_told_to_programs_too(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")
    monkeypatch.setattr(Root, "sync", lambda *_: False)
    receipt = edit(workspace, session, "a.txt", "a", "A")
    assert (receipt.status, receipt.confirmed) == ("applied", False)
    assert workspace.log()[0].state == "applied"


@PROCESSES
def test_a_change_of_many_files_makes_each_folder_durable_once(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(70):
        (root / f"f{number}.txt").write_text("a\n")
    synced: list[str] = []
    real = Root.sync
    monkeypatch.setattr(
        Root, "sync", lambda self, one: synced.append(one.shown) is None and real(self, one)
    )
    before = len(os.listdir("/proc/self/fd"))
    both(workspace, session, **{f"f{number}": "A\n" for number in range(70)})
    assert len(synced) == 1
    assert len(os.listdir("/proc/self/fd")) - before <= 75
    assert {path.read_text() for path in root.iterdir()} == {"A\n"}


@pytest.mark.parametrize("files", [1, 65])
def test_an_old_text_whose_folder_is_moved_away_is_removed_or_told(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    names = [f"d/f{number}.txt" for number in range(files)]
    (root / "d").mkdir()
    for name in names:
        (root / name).write_text("a\n")
    real = Root.settle

    def moved(self: Root, one: StagedChange) -> WriteResult:
        if (root / "d").exists():
            (root / "d").rename(root / "elsewhere")
        return real(self, one)

    monkeypatch.setattr(Root, "settle", moved)
    with workspace.draft(session, "t") as draft:
        for target in draft.open_all(names):
            draft.write(target, "A\n")
        receipt = workspace.submit(draft, "all")
    assert receipt.status == "applied"
    left = [path.name for path in (root / "elsewhere").iterdir() if path.suffix == ".tmp"]
    assert bool(left) == bool(receipt.notes) == (files > 64)
    assert (root / "elsewhere" / "f0.txt").read_text() == "A\n"

"""Late writes, failures half way, and what recovery makes of a crash at chosen moments."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, RootId, WorkspacePath
from filepact.domain.operation import ChangeId, Operation, Session
from filepact.errors import FilepactError, StaleFileError, WriteFailedError
from filepact.fs.root import Root
from tests.workspace.acting import edit, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.fs.place import Place
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
    end = time.monotonic() + 10
    while "is kept in" not in workspace.operation(receipt.operation).note:
        assert time.monotonic() < end
        threading.Event().wait(0.01)
    assert rescued(tmp_path) == [b"OLD\n"]


def test_many_replaced_files_are_not_kept_open_for_long(
    workspace: Workspace, session: Session
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(300):
        write(workspace, session, "a.txt", f"{number}\n")
    assert len(os.listdir("/proc/self/fd")) - before < 280


def test_what_cannot_be_taken_back_is_said_and_can_be_undone_later(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    held = workspace.guard.roots[0]
    real = held.replace
    calls: list[str] = []

    def failing(path: str, *arguments: object, **named: object) -> object:
        calls.append(path)
        if path == "b.txt":
            raise WriteFailedError("b.txt: no space is left on the device; nothing was changed")
        if len(calls) > 2:
            raise StaleFileError("a.txt: another program changed the file at this moment")
        return real(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(held, "replace", failing)
    with workspace.draft(session, "t") as draft:
        first, second = draft.open_all(["a.txt", "b.txt"])
        draft.write(first, "A\n")
        draft.write(second, "B\n")
        with pytest.raises(WriteFailedError) as caught:
            workspace.submit(draft, "both")
    assert "a.txt" in caught.value.message
    monkeypatch.undo()
    (operation,) = workspace.log()
    assert operation.state == "interrupted"
    assert [str(path) for path in operation.changes.paths] == ["a.txt"]
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_text() == "a\n"


class Crash:
    """Puts an intention into the journal as a process would that dies right after."""

    def __init__(self, workspace: Workspace, session: Session, root: Path) -> None:
        self.workspace = workspace
        self.session = session
        self.root = root

    def begin(
        self, *changes: tuple[str, bytes | None, bytes | None], change_id: str = "c0123456789"
    ) -> Operation:
        made = []
        contents: dict[str, bytes] = {}
        for path, before, after in changes:
            sides = []
            for data in (before, after):
                sides.append(Revision.of(data, 0o644) if data is not None else None)
                if data is not None:
                    contents[Revision.of(data, 0o644).content] = data
            made.append(FileChange(WorkspacePath(RootId(str(self.root)), path), *sides))
        operation = Operation(
            id=ChangeId(change_id),
            seq=0,
            kind="change",
            session=self.session,
            tool="t",
            summary="cut off",
            changes=ChangeSet(tuple(made)),
            created=time.time(),
            directories=((RootId(str(self.root)), "made"),),
            state="intended",
            note="kept",
        )
        return self.workspace._store.begin(operation, contents)


@pytest.fixture
def crash(open_here: Callable[..., Workspace], session: Session, root: Path) -> Crash:
    return Crash(open_here(), session, root)


def put(root: Path, name: str, data: bytes) -> None:
    (root / name).write_bytes(data)
    (root / name).chmod(0o644)


def test_an_intention_without_effect_is_taken_back(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"a\n")
    (root / "made").mkdir()
    crash.begin(("a.txt", b"a\n", b"A\n"), ("made/new.txt", None, b"n\n"))
    workspace = open_here()
    (settled,) = workspace.recovered
    assert settled.state == "rolled_back"
    assert settled.note.startswith("kept; ")
    assert (root / "a.txt").read_bytes() == b"a\n"
    assert not (root / "made").exists()
    assert workspace.unsettled() == ()


def test_a_half_done_change_is_taken_back(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"A\n")
    put(root, "b.txt", b"b\n")
    crash.begin(("a.txt", b"a\n", b"A\n"), ("b.txt", b"b\n", b"B\n"), ("gone.txt", b"g\n", None))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert (root / "a.txt").read_bytes() == b"a\n"
    assert (root / "b.txt").read_bytes() == b"b\n"
    assert (root / "gone.txt").read_bytes() == b"g\n"


def test_a_change_that_was_done_whole_is_completed(
    crash: Crash, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    put(root, "a.txt", b"A\n")
    crash.begin(("a.txt", b"a\n", b"A\n"))
    workspace = open_here()
    (settled,) = workspace.recovered
    assert settled.state == "applied"
    assert settled.directories == ((RootId(str(root)), "made"),)
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"a\n"


def test_what_somebody_wrote_after_the_crash_is_left_alone(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"theirs\n")
    put(root, "b.txt", b"B\n")
    crash.begin(("a.txt", b"a\n", b"A\n"), ("b.txt", b"b\n", b"B\n"))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert (root / "a.txt").read_bytes() == b"theirs\n"
    assert (root / "b.txt").read_bytes() == b"b\n"


@pytest.mark.timeout(10)
def test_a_file_of_any_size_does_not_hold_up_the_next_start(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"theirs\n")
    os.truncate(root / "a.txt", 1 << 40)
    crash.begin(("a.txt", b"a\n", b"A\n"))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert (root / "a.txt").stat().st_size == 1 << 40


def test_what_cannot_be_taken_back_after_a_crash_stays_undoable(
    crash: Crash, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    put(root, "a.txt", b"A\n")
    crash.begin(("a.txt", b"a\n", b"A\n"), ("b.txt", b"b\n", b"B\n"))
    put(root, "b.txt", b"b\n")
    (root / "a.txt").chmod(0o444)
    operation = crash.workspace._store.operation("c0123456789")
    changed = FileChange(
        operation.changes.paths[0], Revision.of(b"a\n", 0o644), Revision.of(b"A\n", 0o444)
    )
    # The same intention, for a file that became write-protected by the change itself.
    crash.workspace._store.finish(operation.id, state="rolled_back")
    crash.workspace._store.begin(
        Operation(
            id=ChangeId("c1111111111"),
            seq=0,
            kind="change",
            session=session,
            tool="t",
            summary="cut off",
            changes=ChangeSet((changed, operation.changes.changes[1])),
            created=time.time(),
            state="intended",
        ),
        {Revision.of(data, 0).content: data for data in (b"a\n", b"A\n", b"b\n", b"B\n")},
    )
    workspace = open_here()
    (settled,) = workspace.recovered
    assert settled.state == "interrupted"
    assert [str(path) for path in settled.changes.paths] == ["a.txt"]
    with pytest.raises(FilepactError):
        workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"A\n"


def test_temporary_files_of_a_crash_are_removed_and_foreign_text_in_them_kept(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, tmp_path: Path
) -> None:
    put(root, "a.txt", b"a\n")
    put(root, "b.txt", b"b\n")
    put(root, "c.txt", b"c\n")
    put(root, ".filepact-c0123456789-0.tmp", b"A")
    put(root, ".filepact-c0123456789-1.tmp", b"somebody's text\n")
    put(root, ".filepact-c0123456789-2.tmp", b"c\n")
    crash.begin(("a.txt", b"a\n", b"A\n"), ("b.txt", b"b\n", b"B\n"), ("c.txt", b"c\n", b"C\n"))
    (settled,) = open_here().recovered
    assert settled.state == "rolled_back"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b.txt", "c.txt"]
    assert rescued(tmp_path) == [b"somebody's text\n"]


def test_what_recovery_looks_up_grows_with_the_files_and_no_faster(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    place = Root.place

    def counted(self: Root, path: str, **how: bool) -> Place:
        looked.append(path)
        return place(self, path, **how)

    monkeypatch.setattr(Root, "place", counted)
    figures: list[int] = []
    for count in (20, 80):
        names = [f"{count}-{number}.txt" for number in range(count)]
        for name in names:
            put(root, name, b"a\n")
        crash.begin(*((name, b"a\n", b"A\n") for name in names), change_id=f"c{count:010}")
        looked.clear()
        workspace = open_here()
        figures.append(len(looked))
        (settled,) = workspace.recovered
        assert settled.state == "rolled_back"
    assert figures[1] <= 5 * figures[0]


def test_an_operation_that_another_process_is_doing_is_left_alone(
    crash: Crash, open_here: Callable[..., Workspace], root: Path
) -> None:
    put(root, "a.txt", b"a\n")
    crash.begin(("a.txt", b"a\n", b"A\n"))
    key = crash.workspace.guard.find("a.txt", "write").lock_key
    with crash.workspace._state.locks.hold([key]):
        assert open_here().recovered == ()
    assert len(open_here().recovered) == 1


def test_an_operation_of_another_root_is_left_to_whoever_has_it(
    crash: Crash, open_here: Callable[..., Workspace], root: Path, tmp_path: Path
) -> None:
    put(root, "a.txt", b"a\n")
    crash.begin(("a.txt", b"a\n", b"A\n"))
    (tmp_path / "other").mkdir()
    other = open_here(roots=[str(tmp_path / "other")])
    assert other.recovered == ()
    assert len(other.unsettled()) == 1

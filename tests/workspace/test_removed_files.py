"""A file that is removed is kept itself, and comes back itself where it is as it was."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.errors import FilepactError
from filepact.fs import in_place
from filepact.tools.edit import manage_files
from tests.workspace.acting import delete, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[], list[Path]]:
    """The removed files in the state folder."""
    return lambda: sorted((tmp_path / "state" / "removed").glob("*"))


def remove_folder(workspace: Workspace, session: Session, path: str) -> None:
    with workspace.draft(session, "manage_files") as draft:
        summary = manage_files.run(draft, {"action": "delete", "path": path})
        workspace.submit(draft, summary)


def facts(path: Path) -> tuple[int, ...]:
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_mtime_ns, found.st_uid, found.st_nlink


@pytest.mark.parametrize("again", [False, True], ids=["same-process", "next-process"])
def test_undo_and_redo_of_a_removal_are_about_the_very_file(
    root: Path,
    tmp_path: Path,
    session: Session,
    kept: Callable[[], list[Path]],
    again: bool,
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "a.txt").chmod(0o640)
    os.utime(root / "a.txt", ns=(1, 10**18 + 7))
    before = facts(root / "a.txt")
    workspace = open_workspace([str(root)], state_dir=str(tmp_path / "state"))
    try:
        delete(workspace, session, "a.txt")
        for _ in range(2):
            assert not (root / "a.txt").exists()
            assert [facts(one) for one in kept()] == [before]
            if again:
                workspace.close()
                workspace = open_workspace([str(root)], state_dir=str(tmp_path / "state"))
            assert not workspace.undo(session, dry_run=False).notes
            assert (facts(root / "a.txt"), kept()) == (before, [])
            workspace.redo(session)
    finally:
        workspace.close()


def test_files_of_a_folder_that_comes_back_are_the_very_files(
    root: Path, workspace: Workspace, session: Session, kept: Callable[[], list[Path]]
) -> None:
    (root / "d" / "e").mkdir(parents=True)
    names = [f"d/{number}" for number in range(70)] + ["d/e/k"]
    for name in names:
        (root / name).write_text("the same\n")
    before = {name: facts(root / name) for name in names}
    remove_folder(workspace, session, "d")
    assert len(kept()) == len(names)
    workspace.undo(session, dry_run=False)
    assert ({name: facts(root / name) for name in names}, kept()) == (before, [])


@pytest.mark.parametrize("what", ["bytes", "mode", "attribute", "time", "name"])
def test_a_file_that_is_another_since_it_was_removed_stays_away_and_its_bytes_come_back(
    root: Path,
    workspace: Workspace,
    session: Session,
    tmp_path: Path,
    kept: Callable[[], list[Path]],
    what: str,
) -> None:
    (root / "a.txt").write_text("a\n")
    before = facts(root / "a.txt")
    with (root / "a.txt").open("r+") as held:
        delete(workspace, session, "a.txt")
        (one,) = kept()
        match what:
            case "bytes":
                held.write("b")
                held.flush()
                os.utime(held.fileno(), ns=(1, before[2]))
            case "mode":
                os.fchmod(held.fileno(), 0o777)
            case "attribute":
                if not hasattr(os, "setxattr"):
                    pytest.skip("the system has none")
                os.setxattr(held.fileno(), "user.new", b"1")
            case "time":
                os.utime(held.fileno(), ns=(1, 1))
            case "name":
                os.link(one, tmp_path / "elsewhere")
    now = one.read_bytes()
    told = workspace.undo(session, dry_run=False).notes
    came = facts(root / "a.txt")
    assert (root / "a.txt").read_text() == "a\n"
    assert (came[1:], came[0] == before[0]) == (before[1:], False)
    assert any("made anew" in note for note in told)
    assert kept() == [one]
    assert one.read_bytes() == now
    if what == "bytes":
        (rescued,) = (tmp_path / "state" / "rescued").iterdir()
        assert rescued.read_bytes() == b"b\n"


def test_what_is_written_to_a_file_that_came_back_is_no_late_write(
    root: Path, tmp_path: Path, session: Session
) -> None:
    (root / "a.txt").write_text("a\n")
    with open_workspace([str(root)], state_dir=str(tmp_path / "state")) as workspace:
        with (root / "a.txt").open("a") as held:
            delete(workspace, session, "a.txt")
            workspace.undo(session, dry_run=False)
            held.write("more\n")
        assert (root / "a.txt").read_text() == "a\nmore\n"
    assert not (tmp_path / "state" / "rescued").exists()


def test_what_is_written_to_a_removed_file_until_it_is_let_go_is_rescued(
    root: Path, workspace: Workspace, session: Session, tmp_path: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    with (root / "a.txt").open("a") as held:
        delete(workspace, session, "a.txt")
        (watched,) = workspace._committer._late._queues[0]
        assert watched.displaced.has_writer() == (sys.platform == "linux")
        held.write("late\n")
    workspace.close()
    (rescued,) = (tmp_path / "state" / "rescued").iterdir()
    assert rescued.read_bytes() == b"a\nlate\n"


def test_a_file_with_other_names_is_not_kept_and_comes_back_as_a_name_of_it(
    root: Path, workspace: Workspace, session: Session, kept: Callable[[], list[Path]]
) -> None:
    (root / "a.txt").write_text("a\n")
    os.link(root / "a.txt", root / "twin")
    delete(workspace, session, "a.txt")
    assert kept() == []
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").samefile(root / "twin")


def test_a_new_file_of_the_same_bytes_is_a_new_file(
    root: Path, workspace: Workspace, session: Session, kept: Callable[[], list[Path]]
) -> None:
    (root / "a.txt").write_text("a\n")
    os.utime(root / "a.txt", ns=(1, 1))
    delete(workspace, session, "a.txt")
    write(workspace, session, "a.txt", "a\n")
    assert (root / "a.txt").stat().st_mtime_ns > 1
    assert len(kept()) == 1


def test_where_the_state_is_on_another_disk_nothing_is_kept_and_all_comes_back(
    root: Path, session: Session
) -> None:
    other = "/dev/shm"
    if not os.path.isdir(other) or os.stat(other).st_dev == root.stat().st_dev:
        pytest.skip("no other file system is at hand")
    state = f"{other}/filepact-{os.getpid()}"
    try:
        (root / "a.txt").write_text("a\n")
        with open_workspace([str(root)], state_dir=state) as workspace:
            delete(workspace, session, "a.txt")
            assert not os.listdir(f"{state}/removed")
            workspace.undo(session, dry_run=False)
            assert (root / "a.txt").read_text() == "a\n"
    finally:
        shutil.rmtree(state)


def test_on_a_disk_that_is_nearly_full_a_removal_makes_room(
    root: Path,
    workspace: Workspace,
    session: Session,
    kept: Callable[[], list[Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (root / "a.txt").write_text("a\n")
    monkeypatch.setattr(in_place, "_FREE", 1 << 62)
    delete(workspace, session, "a.txt")
    assert kept() == []
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("most", ["files", "bytes"])
def test_of_too_many_removed_files_those_go_that_went_first(
    root: Path,
    workspace: Workspace,
    session: Session,
    kept: Callable[[], list[Path]],
    monkeypatch: pytest.MonkeyPatch,
    most: str,
) -> None:
    monkeypatch.setattr(in_place, "_MOST_FILES" if most == "files" else "_MOST_KEPT", 8)
    for name in "abcdefghij":
        (root / name).write_text(name)
        delete(workspace, session, name)
    assert len(kept()) == 10
    workspace.close()
    assert sorted(one.read_text() for one in kept()) == [*"efghij"]


def test_removed_files_go_with_what_the_journal_gives_up(
    root: Path, workspace: Workspace, session: Session, kept: Callable[[], list[Path]]
) -> None:
    (root / "a.txt").write_text(os.urandom(100_000).hex())
    delete(workspace, session, "a.txt")
    workspace.prune(1 << 30)
    assert len(kept()) == 1
    workspace.prune(0)
    assert kept() == []
    with pytest.raises(FilepactError):
        workspace.undo(session, dry_run=False)

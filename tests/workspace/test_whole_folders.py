"""A folder of many files that is moved: one renaming and one change, and all that is in it goes along."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import PathBlockedError, StaleFileError
from filepact.fs import atomic
from filepact.tools.registry import CallContext
from filepact.workspace import folders
from filepact.workspace.selection import Selection
from filepact_index import open_indexes
from tests.workspace.acting import edit

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.tools.results import CallResult
    from filepact.workspace.workspace import Workspace

AGENT = Session("s", Actor("agent", "tester"))
PERSON = Session("p", Actor("person", "ann"))
PERSON_APPROVES = Approval(PERSON.actor)
FILES = 12


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dozen files are many."""
    monkeypatch.setattr(folders, "MOST_APART", 10)
    monkeypatch.setattr(folders, "MOST_OPENED", 11)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    inner = folder / "many" / "inner"
    inner.mkdir(parents=True)
    for number in range(FILES):
        (inner / f"{number}.txt").write_text(f"{number}\n")
    (inner / "0.txt").chmod(0o640)
    os.link(inner / "1.txt", folder / "other name")
    (inner / "link").symlink_to("2.txt")
    inner.chmod(0o755)
    return folder


def move(workspace: Workspace, path: str = "many", to: str = "x/much") -> CallResult:
    sent = {"action": "move", "path": path, "to": to}
    return open_toolbox(workspace, own=True).call("manage_files", sent, CallContext(AGENT))


def everything(root: Path) -> dict[str, tuple[int, int, int, int]]:
    """Inode, mode, names and time of all that there is."""
    found = {str(path.relative_to(root)): path.lstat() for path in root.rglob("*")}
    return {
        name: (one.st_ino, one.st_mode, one.st_nlink, one.st_mtime_ns)
        for name, one in found.items()
    }


def test_it_is_one_change_there_and_back_and_there_again(root: Path, workspace: Workspace) -> None:
    before = everything(root)
    outcome = move(workspace)
    assert not outcome.failed, outcome.text
    there = {name.replace("many", "x/much"): what for name, what in before.items()}
    after = everything(root)
    assert {name: after.get(name) for name in there} == there
    assert not (root / "many").exists()
    (operation,) = workspace.log()
    assert operation.summary == f"move the folder many with {FILES + 1} files to x/much"
    assert [(one.path.path, one.kind) for one in operation.changes.changes] == [
        ("many", "delete"),
        ("x/much", "create"),
    ]
    workspace.undo(PERSON)
    assert everything(root) == before
    workspace.redo(PERSON)
    assert {name: everything(root).get(name) for name in there} == there
    workspace.undo(PERSON)
    assert everything(root) == before


def test_what_a_person_makes_of_it_meanwhile_goes_back_with_it(
    root: Path, workspace: Workspace
) -> None:
    move(workspace)
    inner = root / "x" / "much" / "inner"
    (inner / "3.txt").write_text("mine\n")
    (inner / "new.txt").write_text("new\n")
    (inner / "4.txt").unlink()
    (root / "x" / "much").chmod(0o700)
    workspace.undo(PERSON)
    back = root / "many" / "inner"
    assert (back / "3.txt").read_text() == "mine\n"
    assert (back / "new.txt").read_text() == "new\n"
    assert not (back / "4.txt").exists()
    assert (root / "many").stat().st_mode & 0o777 == 0o700
    assert not (root / "x").exists()


@pytest.mark.parametrize("taken", ["another folder", "no folder", "its former name"])
def test_where_the_folder_is_not_there_or_its_name_is_taken_nothing_goes_back(
    root: Path, workspace: Workspace, taken: str
) -> None:
    move(workspace)
    if taken == "its former name":
        (root / "many").mkdir()
    else:
        (root / "x" / "much").rename(root / "elsewhere")
    if taken == "another folder":
        (root / "x" / "much").mkdir()
    before = everything(root)
    with pytest.raises(StaleFileError):
        workspace.undo(PERSON)
    assert everything(root) == before


def test_nothing_of_it_is_taken_for_a_change_of_others(root: Path, workspace: Workspace) -> None:
    workspace.external.snapshot()
    move(workspace)
    (root / "x" / "much" / "inner" / "3.txt").write_text("mine\n")
    found = workspace.external.detect(PERSON).operation
    assert found is not None
    assert [one.path.path for one in found.changes.changes] == ["x/much/inner/3.txt"]
    assert found.changes.changes[0].kind == "modify"
    workspace.undo(PERSON, found.id)
    workspace.undo(PERSON)
    assert workspace.external.detect(PERSON).operation is None
    assert (root / "many" / "inner" / "3.txt").read_text() == "3\n"


def test_where_the_system_does_not_rename_it_nothing_is_changed(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(root)

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "cross-device")

    monkeypatch.setattr(atomic, "rename_free", refuse)
    assert move(workspace).code == "WRITE_ERROR"
    assert {name: one[:3] for name, one in everything(root).items()} == {
        name: one[:3] for name, one in before.items()
    }
    assert [one.state for one in workspace.log()] == ["rolled_back"]


@pytest.mark.parametrize("name", [".git/config", ".env", "id_rsa", "-rf", "HEAD"])
def test_a_name_about_which_a_rule_has_something_to_say_is_looked_at_by_itself(
    root: Path, workspace: Workspace, name: str
) -> None:
    special = root / "many" / name
    special.parent.mkdir(exist_ok=True)
    special.write_text("x\n")
    for beside in ("objects", "refs") if name == "HEAD" else ():
        (special.parent / beside).mkdir()
    outcome = move(workspace)
    assert outcome.failed or not workspace.log(), outcome.text
    assert special.exists()


def test_a_link_that_would_lead_out_of_the_root_stays(root: Path, workspace: Workspace) -> None:
    (root / "deep").mkdir()
    (root / "many").rename(root / "deep" / "many")
    (root / "deep" / "many" / "up").symlink_to("../../other name")
    assert move(workspace, "deep/many", "many").failed
    assert (root / "deep" / "many").exists()


def test_more_than_the_most_is_refused_with_a_reason(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filepact.tools.edit.MOST_MOVED", FILES)
    assert move(workspace).code == "FILE_TOO_LARGE"
    assert (root / "many").exists()


def test_an_agent_does_not_move_back_what_it_may_not_move(root: Path, workspace: Workspace) -> None:
    move(workspace)
    (root / "x" / "much" / ".env").write_text("TOKEN=1\n")
    box = open_toolbox(workspace, own=True)
    outcome = box.call("history", {"action": "undo"}, CallContext(AGENT))
    assert outcome.code == PathBlockedError.code
    workspace.undo(PERSON)
    assert (root / "many" / ".env").exists()


def test_a_move_that_waits_is_done_when_it_is_approved(open_here, root: Path) -> None:
    workspace = open_here("preview")
    before = everything(root)
    assert not move(workspace).failed
    assert everything(root) == before
    (proposal,) = workspace.pending()
    workspace.approve(proposal.id, PERSON_APPROVES)
    assert (root / "x" / "much").stat().st_ino == before["many"][0]


def test_a_turn_with_edits_in_it_is_refused_as_a_whole_and_the_way_is_said(
    root: Path, workspace: Workspace
) -> None:
    before = everything(root)
    edit(workspace, AGENT, "many/inner/5.txt", "5", "five")
    move(workspace)
    edit(workspace, AGENT, "x/much/inner/6.txt", "6", "six")
    ids = [one.id for one in workspace.log()]
    with pytest.raises(StaleFileError) as refused:
        workspace.undo_selected(PERSON, Selection(tuple(ids)))
    assert [f"filepact undo {one}" in refused.value.hint for one in ids] == [True] * 3
    for one in ids:
        workspace.undo(PERSON, one)
    assert everything(root).keys() == before.keys()
    assert (root / "many" / "inner" / "5.txt").read_text() == "5\n"
    assert (root / "many" / "inner" / "6.txt").read_text() == "6\n"


def test_two_moves_go_back_as_one(root: Path, workspace: Workspace) -> None:
    before = everything(root)
    move(workspace)
    move(workspace, "x/much", "y")
    workspace.undo_selected(PERSON, Selection(tuple(one.id for one in workspace.log())))
    assert everything(root) == before


def test_what_an_editor_shows_is_moved_by_itself(root: Path, workspace: Workspace) -> None:
    folders.MOST_OPENED = 100
    workspace.editors.open("many/inner/7.txt", "typed\n", client="e", version=1)
    assert not move(workspace).failed
    assert len(workspace.log()[0].changes.changes) > 2


def test_what_is_searched_and_read_afterwards_is_there_by_its_new_name(
    root: Path, workspace: Workspace
) -> None:
    workspace.keep_search_index(open_indexes)
    box = open_toolbox(workspace, own=True)

    def asked(tool: str, **sent: str) -> str:
        return box.call(tool, sent, CallContext(AGENT)).text

    assert "many/inner/8.txt" in asked("grep", pattern="8")
    assert "8" in asked("read_file", path="many/inner/8.txt")
    move(workspace)
    found = asked("grep", pattern="8")
    assert ("x/much/inner/8.txt" in found, "many/" in found) == (True, False)
    assert "NOT_FOUND" in asked("read_file", path="many/inner/8.txt")
    wrote = asked("write_file", path="x/much/inner/8.txt", content="eight\n")
    assert "8.txt, 1 line (+1 -1)" in wrote
    workspace.undo(PERSON)
    workspace.undo(PERSON)
    assert "many/inner/8.txt" in asked("grep", pattern="8")

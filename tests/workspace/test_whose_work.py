"""Whose work goes back, by every way back: one table; and what a way back says of what stays."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import (
    BY_EDITOR,
    BY_NOBODY,
    BY_SEVERAL,
    PAST_THE_DOORS,
    UNOBSERVED,
    Actor,
    Session,
)
from filepact.errors import FilepactError
from filepact.tools.edit import manage_files
from filepact.workspace.selection import NEWEST, Selection
from tests.workspace.acting import delete, edit, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

ROBOT = Session("robot-1", Actor("agent", "robot"), turn="turn-a")
OTHER = Session("other-1", Actor("agent", "other"), turn="turn-b")
ADA = Session("cli-1", Actor("person", "ada"))
SEEN = Session("seen", Actor("program", "unknown"))


def by_hand(workspace: Workspace, root: Path, name: str, tool: str) -> None:
    """Write a file past all doors, and have it found."""
    workspace.external.resnapshot()
    (root / name).write_text("by hand\n")
    assert workspace.external.detect(SEEN, tool=tool).operation


WORK: dict[str, Callable[[Workspace, Path], object]] = {
    "agent": lambda here, _: write(here, ROBOT, "agent", "1\n"),
    "script": lambda here, _: write(here, Session("p", Actor("program", "x.py")), "script", "1\n"),
    "person": lambda here, _: write(here, ADA, "person", "1\n"),
    "typed": lambda here, root: by_hand(here, root, "typed", BY_EDITOR),
    "between calls": lambda here, root: by_hand(here, root, "between calls", BY_NOBODY),
    "guard": lambda here, root: by_hand(here, root, "guard", PAST_THE_DOORS),
    "not watched": lambda here, root: by_hand(here, root, "not watched", UNOBSERVED),
}
"""Who did something, and how it comes into the journal; each makes the file of its name."""

ONLY_NAMED = frozenset({"person", "typed", "between calls", "guard", "not watched"})
"""Whose work goes back only if it is named, or everybody's is wanted."""


def way(**said: object) -> Callable[[Workspace, str], object]:
    return lambda here, _: here.undo_selected(ADA, Selection(**said))  # type: ignore[arg-type]


WAYS: dict[str, tuple[Callable[[Workspace, str], object], frozenset[str]]] = {
    "undo": (lambda here, _: here.undo(ADA), ONLY_NAMED),
    "undo --since": (way(since=0.0), ONLY_NAMED),
    "undo --since --all": (way(since=0.0, everybody=True), frozenset()),
    "undo ID": (lambda here, its: here.undo(ADA, its), frozenset()),
    "undo ID ID": (lambda here, its: here.undo_selected(ADA, Selection((its,))), frozenset()),
    "restore": (lambda here, _: here.restore(ADA, "start"), ONLY_NAMED),
    "restore --all": (way(checkpoint="start", everybody=True), frozenset()),
    # It is named, whoever did it.
    "restore --before ID": (
        lambda here, its: here.undo_selected(ADA, Selection(before=its)),
        frozenset(),
    ),
    "undo PATH": (
        lambda here, its: here.undo_selected(
            ADA, Selection(places=tuple(tuple(one) for one in here.operation(its).changes.paths))
        ),
        ONLY_NAMED,
    ),
    "undo --turn": (way(turn=NEWEST), frozenset(WORK) - {"agent"}),
    "undo --agent": (way(agent="robot"), frozenset(WORK) - {"agent"}),
    "undo --session": (way(session=ROBOT), frozenset(WORK) - {"agent"}),
    "the agent itself": (
        lambda here, _: here.past(ROBOT).undo(None, dry_run=False),
        frozenset(WORK) - {"agent"},
    ),
}
"""The ways back, and whose work each of them leaves."""


@pytest.mark.parametrize("who", WORK)
@pytest.mark.parametrize("how", WAYS)
def test_whose_work_goes_back(workspace: Workspace, root: Path, who: str, how: str) -> None:
    workspace.checkpoint("start")
    WORK[who](workspace, root)
    back, leaves = WAYS[how]
    if who in leaves:
        with pytest.raises(FilepactError) as caught:
            back(workspace, workspace.log(limit=1)[0].id)
        assert caught.value.code in ("NO_CHANGE", "INVALID_PARAMS")
        assert (root / who).exists()
    else:
        back(workspace, workspace.log(limit=1)[0].id)
        assert not (root / who).exists()
        workspace.redo(ADA)
        assert (root / who).exists()


def refused(call: Callable[[], object]) -> FilepactError:
    with pytest.raises(FilepactError) as caught:
        call()
    return caught.value


def test_a_restore_leaves_what_others_did_and_names_it(workspace: Workspace, root: Path) -> None:
    (root / "mine").write_text("1\n2\n3\n")
    (root / "a").write_text("a\n")
    workspace.checkpoint("start")
    edit(workspace, ROBOT, "a", "a", "b")
    workspace.external.resnapshot()
    (root / "mine").write_text("1\n2\n3\nan hour of work\n")
    (root / "new").write_text("mine\n")
    workspace.external.detect(SEEN, tool=BY_NOBODY)
    write(workspace, ADA, "own", "by a command\n")
    write(workspace, ROBOT, "x.py", "x\n")
    done = workspace.restore(ADA, "start")
    assert (root / "a").read_text() == "a\n"
    assert not (root / "x.py").exists()
    assert (root / "mine").read_text() == "1\n2\n3\nan hour of work\n"
    assert sorted(path.name for path in root.iterdir()) == ["a", "mine", "new", "own"]
    said = " ".join(done.notes)
    assert all(name in said for name in ("mine", "new", "own", "--all"))
    workspace.undo_selected(ADA, Selection(checkpoint="start", everybody=True))
    assert sorted(path.name for path in root.iterdir()) == ["a", "mine"]
    assert (root / "mine").read_text() == "1\n2\n3\n"
    for _ in range(2):
        workspace.redo(ADA)
    assert sorted(path.name for path in root.iterdir()) == ["a", "mine", "new", "own", "x.py"]


def test_what_was_undone_or_redone_since_and_stays_is_named(
    workspace: Workspace, root: Path
) -> None:
    made = ("taken back", "brought back", "both")
    ids = [write(workspace, ROBOT, name, "1\n").operation for name in made]
    workspace.undo(ADA, ids[1])
    workspace.checkpoint("start")
    workspace.undo(ADA, ids[0])
    workspace.redo(ADA, ids[1])
    workspace.undo(ADA, ids[2])
    workspace.redo(ADA, ids[2])
    write(workspace, ROBOT, "newer", "1\n")
    done = workspace.restore(ADA, "start")
    assert not (root / "newer").exists()
    said = "Left as it is, a person's own: brought back, taken back."
    assert done.notes[:2] == (said, "`--all` takes these back too.")
    assert said in refused(lambda: workspace.restore(ADA, "start")).hint
    everything = workspace.undo_selected(ADA, Selection(checkpoint="start", everybody=True))
    assert not any("Left" in one for one in everything.notes)
    assert sorted(os.listdir(root)) == ["both", "taken back"]


def test_with_paths_what_is_left_elsewhere_is_not_named(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("a\n")
    workspace.checkpoint("start")
    edit(workspace, ROBOT, "a", "a", "b")
    workspace.external.resnapshot()
    (root / "a").write_text("b\nmine\n")
    (root / "other").write_text("mine\n")
    workspace.external.detect(SEEN, tool=BY_NOBODY)
    place = (str(root), "a")
    done = workspace.undo_selected(ADA, Selection(checkpoint="start", places=(place,)))
    assert "Left as it is, not known whose: a." in done.notes
    assert (root / "a").read_text() == "a\nmine\n"


def test_of_several_sessions_somebody_has_to_say_whose(workspace: Workspace, root: Path) -> None:
    workspace.checkpoint("start")
    write(workspace, ROBOT, "a", "1\n")
    write(workspace, OTHER, "b", "1\n")
    for said in ({"checkpoint": "start"}, {"since": 0.0}):
        error = refused(lambda said=said: workspace.undo_selected(ADA, Selection(**said)))  # type: ignore[misc]
        assert error.code == "INVALID_PARAMS"
        assert "--session" in error.hint
        # One session alone was at work on this file, so nobody has to say whose is meant.
        one = Selection(**said, places=((workspace.guard.roots[0].path, "a"),))  # type: ignore[arg-type]
        done = workspace.undo_selected(ADA, one)
        assert [file.path for file in done.files] == ["a"]
        workspace.redo(ADA)
    asked: list[str] = []

    def agrees(plan: object) -> bool:
        asked.append(str(plan))
        return len(asked) > 1

    whole = Selection(checkpoint="start")
    assert refused(lambda: workspace.undo_selected(ADA, whole, agrees=agrees)).code == "NO_CHANGE"
    assert len(list(root.iterdir())) == 2
    done = workspace.undo_selected(ADA, replace(whole, agent="robot"))
    assert [path.name for path in root.iterdir()] == ["b"]
    assert any("other" in note and note.endswith("b.") for note in done.notes)
    workspace.redo(ADA)
    workspace.undo_selected(ADA, whole, agrees=agrees)
    assert list(root.iterdir()) == []


def test_what_is_not_of_the_last_session_is_asked_about(workspace: Workspace, root: Path) -> None:
    write(workspace, OTHER, "old", "1\n")
    write(workspace, ROBOT, "new", "1\n")
    workspace.undo(ADA)
    error = refused(lambda: workspace.undo(ADA))
    assert error.code == "INVALID_PARAMS"
    assert str(workspace.log(limit=3)[-1].id) in error.hint
    assert (root / "old").exists()
    workspace.undo(ADA, agrees=lambda _plan: True)
    assert not (root / "old").exists()


def test_a_bare_undo_names_what_it_passes_by(workspace: Workspace, root: Path) -> None:
    write(workspace, ROBOT, "agent", "1\n")
    passed = []
    for tool in (BY_NOBODY, BY_SEVERAL, UNOBSERVED):
        by_hand(workspace, root, tool, tool)
        passed.append(f"`filepact undo {workspace.log(limit=1)[0].id}` does")
    notes = " ".join(workspace.undo(ADA).notes)
    assert [one in notes for one in passed] == [True] * 3
    assert "since several agents were at work" in notes
    assert not (root / "agent").exists()
    workspace.undo(ADA, workspace.log(limit=2)[-1].id)
    hint = refused(lambda: workspace.undo(ADA)).hint
    assert [one in hint for one in passed] == [True, True, False]  # One is undone by now.


MOVED: dict[str, Callable[[Workspace], object]] = {
    "undo": lambda here: here.undo(ADA, agrees=lambda _plan: True),
    "undo --turn": lambda here: here.undo_selected(ADA, Selection(turn=NEWEST)),
    "undo --session": lambda here: here.undo_selected(ADA, Selection(session=ROBOT)),
    "undo PATH": lambda here: here.undo_selected(
        ADA, Selection(places=((here.log(limit=1)[0].changes.paths[0].root, "d"),))
    ),
    "restore": lambda here: here.restore(ADA, "start"),
    "redo": lambda here: here.redo(ADA, next(one.id for one in here.log() if one.kind == "undo")),
    "the agent itself": lambda here: here.past(ROBOT).undo(None, dry_run=False),
}
"""Ways back that would remove a file."""


@pytest.mark.parametrize("after", ["recorded", "not seen", "with lines added"])
@pytest.mark.parametrize("how", MOVED)
def test_what_somebody_moved_stays_and_is_named(
    workspace: Workspace, root: Path, how: str, after: str
) -> None:
    text = "".join(f"{number}\n" for number in range(9))
    (root / "other").write_text(text)
    workspace.checkpoint("start")
    write(workspace, ROBOT, "d/f", text)
    if how == "redo":
        delete(workspace, ROBOT, "d/f")
        workspace.undo(ADA)
    workspace.external.resnapshot()
    (root / "d").rename(root / "e")
    if after == "with lines added":
        (root / "e/f").write_text(text + "mine\n")
    by = ""
    if after == "recorded":
        found = workspace.external.detect(SEEN, tool=BY_NOBODY).operation
        assert found
        by = found.id
    before = [(one.id, one.undone_by) for one in workspace.log()]
    error = refused(lambda: MOVED[how](workspace))
    assert error.code == "STALE_FILE"
    assert "d/f: somebody moved it to e/f" in error.message
    assert [(one.id, one.undone_by) for one in workspace.log()] == before
    if by and how not in ("redo", "the agent itself"):
        ids = error.message.partition("`filepact undo ")[2].partition("`")[0].split()
        assert ids[-1] == by
        workspace.undo_selected(ADA, Selection(tuple(ids)))
        assert not (root / "e/f").exists()
        assert not (root / "d/f").exists()
    assert (root / "other").read_text() == text


@pytest.mark.parametrize("by", [ROBOT, SEEN])
def test_what_was_renamed_and_written_and_then_moved_on_stays_and_is_named(
    workspace: Workspace, root: Path, by: Session
) -> None:
    (root / "first").write_text("".join(f"{number}\n" for number in range(9)))
    time.sleep(0.2)  # It is older than what is done to it.
    workspace.external.resnapshot()
    (root / "first").rename(root / "second")
    with (root / "second").open("a") as file:
        file.write("more\n")
    done = workspace.external.detect(ROBOT, tool="Bash").operation
    (root / "e").mkdir()
    (root / "second").rename(root / "e" / "second")
    with (root / "e" / "second").open("a") as file:
        file.write("last\n")
    tool = "Bash" if by is ROBOT else BY_NOBODY
    moved = workspace.external.detect(by, tool=tool).operation
    assert done
    assert moved
    receipt = workspace.undo_selected(ADA, Selection((done.id,)), partly=True)
    (left,) = receipt.left
    assert left.path == "second"
    assert "somebody moved it to e/second" in left.reason
    assert f"`filepact undo {done.id} {moved.id}` takes all of that back" in left.reason
    assert (root / "e" / "second").exists()
    workspace.undo_selected(ADA, Selection((done.id, moved.id)))
    assert not (root / "e").exists()
    assert (root / "first").read_text().endswith("8\n")


@pytest.mark.parametrize(
    ("session", "left"),
    [("hooks", {"later"}), ("mcp", {"a", "sub"}), ("inner", {"a", "b", "later"})],
)
def test_a_session_goes_back_with_all_that_it_was_asked_for(
    workspace: Workspace, root: Path, session: str, left: set[str]
) -> None:
    """Also what our own server did for it, or an agent that it started; either of these alone takes nothing along."""
    at = {name: replace(ROBOT, id=name) for name in ("hooks", "inner", "mcp")}
    for name in ("hooks", "inner"):
        workspace.asked.turn(at[name], "do it")
    write(workspace, at["hooks"], "a", "1\n")
    write(workspace, at["mcp"], "b", "1\n")
    write(workspace, at["inner"], "sub", "1\n")
    write(workspace, replace(at["mcp"], turn=""), "later", "1\n")
    workspace.undo_selected(ADA, Selection(session=at[session]))
    assert {one.name for one in root.iterdir()} == left


def test_what_was_moved_keeps_nothing_else_from_going_back(
    workspace: Workspace, root: Path
) -> None:
    write(workspace, ROBOT, "a", "1\n")
    write(workspace, ROBOT, "b", "2\n")
    (root / "a").rename(root / "mine")
    done = workspace.undo_selected(ADA, Selection(turn=NEWEST))
    assert [(one.path, one.lost) for one in done.left] == [("a", True)]
    assert [one.undone_by is None for one in workspace.log()] == [True, False, True]
    (root / "mine").rename(root / "a")
    workspace.undo_selected(ADA, Selection(turn=NEWEST))
    assert list(root.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs hard links and the births of files")
def test_a_twin_that_was_there_before_is_not_what_was_moved(
    workspace: Workspace, root: Path
) -> None:
    (root / "mine").write_text("1\n")
    time.sleep(0.2)  # Older than the turn by more than what the births of files may be wrong by.
    workspace.asked.turn(ROBOT)
    workspace.external.resnapshot()
    shutil.copy2(root / "mine", root / "copy")
    os.link(root / "mine", root / "name")
    assert workspace.external.detect(ROBOT).operation
    (root / "copy").unlink()
    (root / "name").unlink()
    error = refused(lambda: workspace.undo(ADA))
    assert error.code == "NO_CHANGE"
    # The same bytes and time at a name that came later: that is it.
    workspace.external.resnapshot()
    (root / "old").write_text("2\n")
    workspace.external.resnapshot()
    (root / "old").rename(root / "new")
    assert workspace.external.detect(ROBOT).operation
    (root / "new").rename(root / "newer")
    done = workspace.undo(ADA)
    assert [one.reason for one in done.left] == [
        "new: somebody moved it to newer since, and it stays there"
    ]
    assert (root / "old").read_text() == (root / "newer").read_text() == "2\n"
    assert "somebody moved it to newer" in refused(lambda: workspace.undo(ADA)).message


def test_a_name_that_became_another_files_goes_back_without_what_that_one_holds(
    workspace: Workspace, root: Path
) -> None:
    """The file was written by that name since, which is done in place; its other name is a person's."""
    (root / "mine").write_text("mine\n")
    (root / "name").write_text("one\n")
    workspace.external.resnapshot()
    (root / "name").unlink()
    os.link(root / "mine", root / "name")
    assert workspace.external.detect(ROBOT).operation
    edit(workspace, ROBOT, "name", "mine", "ours")
    assert (root / "mine").read_text() == "ours\n"
    workspace.undo_selected(ADA, Selection(session=ROBOT))
    assert (root / "name").read_text() == "one\n"
    assert not (root / "name").samefile(root / "mine")
    assert (root / "mine").read_text() == "ours\n"  # A file of its own now, it keeps its text.


def test_the_folders_of_files_that_are_gone_go(workspace: Workspace, root: Path) -> None:
    for who in (ROBOT, OTHER):
        write(workspace, who, "n/m/f", "1\n")
        (root / "n/m/f").unlink()
        if who == OTHER:
            (root / "n/mine").write_text("x\n")
        notes = " ".join(workspace.undo(ADA).notes)
        assert [one.name for one in root.rglob("*")] == (["n", "mine"] if who == OTHER else [])
        assert ("the folder n stays: it is not empty" in notes) == (who == OTHER)
        (root / "n/mine").unlink(missing_ok=True)
        if who == ROBOT:
            workspace.redo(ADA)
            assert (root / "n/m").is_dir()
            workspace.undo(ADA)
    (root / "n").rmdir()
    write(workspace, ROBOT, "n/f", "1\n")
    (root / "n/f").rename(root / "n/g")
    (root / "n/g").write_text("mine")
    assert "folder n stays: it is not empty" in refused(lambda: workspace.undo(ADA)).hint


def test_a_folder_that_was_left_empty_goes_and_comes_back_with_all_else(
    workspace: Workspace, root: Path
) -> None:
    for name in ("d/e/f", "k/f", "a"):
        write(workspace, ROBOT, name, "1\n")
    for name in ("d/e/f", "k/f"):
        delete(workspace, ROBOT, name)
    (root / "d/e").chmod(0o700)
    remove = {"action": "delete", "path": "k/g"}
    write(workspace, ROBOT, "k/g/h", "1\n")
    with workspace.draft(ROBOT, "manage_files") as draft:
        workspace.submit(draft, manage_files.run(draft, remove))
    for _ in range(2):
        workspace.undo_selected(ADA, Selection(session=ROBOT))
        assert os.listdir(root) == []
        workspace.redo(ADA)
        assert sorted(os.listdir(root)) == ["a", "d", "k"]
        assert (root / "d/e").stat().st_mode & 0o777 == 0o700
    # What holds something of a person's stays, and what a person has removed is not made anew.
    (root / "d/mine").write_text("mine\n")
    (root / "k").rmdir()
    assert workspace.undo_selected(ADA, Selection(session=ROBOT)).left
    assert sorted(str(one.relative_to(root)) for one in root.rglob("*")) == ["d", "d/mine"]
    workspace.redo(ADA)
    assert sorted(os.listdir(root)) == ["a", "d"]
    assert sorted(os.listdir(root / "d")) == ["e", "mine"]


def test_what_is_left_of_an_operation_after_an_undo_of_some_paths_goes_back_and_no_more(
    workspace: Workspace, root: Path
) -> None:
    (root / "d").mkdir()
    for name in ("a", "d/b"):
        (root / name).write_text("1\n2\n3\n")
    whole = Selection(session=ROBOT)
    here = workspace.guard.roots[0].path
    write(workspace, ROBOT, "d/made", "1\n")
    with workspace.draft(ROBOT, "patch_apply") as draft:
        *targets, made = draft.open_all(["a", "d/b", "d/made"])
        for target in targets:
            draft.write(target, "one\n2\n3\n")
        draft.delete(made, emptied_by=None)
        workspace.submit(draft, "two files, and a third")
    edit(workspace, ROBOT, "d/b", "3", "three")
    # What was made and removed again came to nothing below d, and does not come back with the rest.
    workspace.undo_selected(ADA, replace(whole, places=((here, "d"),)))
    assert (root / "d/b").read_text() == "1\n2\n3\n"
    workspace.undo_selected(ADA, whole)
    assert (root / "a").read_text() == "1\n2\n3\n"
    assert os.listdir(root / "d") == ["b"]
    for _ in range(2):
        workspace.redo(ADA)
    # Of d/b the last change alone, of a the one before: that one is in force in d/b.
    workspace.undo_selected(ADA, Selection(places=((here, "d/b"), (here, "a"))))
    assert (root / "d/b").read_text() == "one\n2\n3\n"
    workspace.undo_selected(ADA, whole)
    assert (root / "d/b").read_text() == (root / "a").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("partly", [False, True])
def test_where_all_else_is_as_it_was_no_undo_in_part_is_advised(
    workspace: Workspace, root: Path, partly: bool
) -> None:
    (root / "a").write_text("1\n2\n3\n")
    workspace.checkpoint("start")
    edit(workspace, ROBOT, "a", "2", "two")
    write(workspace, ROBOT, "b", "new\n")
    (root / "a").write_text("1\nby hand\n3\n")
    (root / "b").unlink()
    whole = Selection(checkpoint="start")
    error = refused(lambda: workspace.undo_selected(ADA, whole, partly=partly))
    assert (error.code, "a: the same lines" in error.message) == ("STALE_FILE", True)
    assert "--partly" not in error.hint
    assert "of 2 files" not in error.message


def test_a_checkpoint_is_restored_again_and_in_part(workspace: Workspace, root: Path) -> None:
    for name in ("a", "b", "c"):
        (root / name).write_text("1\n2\n3\n")
    workspace.checkpoint("start")
    for name in ("a", "b", "c"):
        edit(workspace, ROBOT, name, "2", "two")
    (root / "a").unlink()
    whole = Selection(checkpoint="start")
    error = refused(lambda: workspace.undo_selected(ADA, whole))
    assert error.code == "STALE_FILE"
    assert "--partly" in error.hint
    here = workspace.guard.roots[0].path
    workspace.undo_selected(ADA, replace(whole, places=((here, "c"),)))
    done = workspace.undo_selected(ADA, whole, partly=True)
    assert [one.path for one in done.left] == ["a"]
    assert [(root / name).read_text() for name in ("b", "c")] == ["1\n2\n3\n"] * 2
    edit(workspace, ROBOT, "b", "3", "three")
    workspace.undo_selected(ADA, whole, partly=True)
    assert (root / "b").read_text() == "1\n2\n3\n"
    assert not (root / "a").exists()


def test_an_undo_and_its_redo_since_a_checkpoint_come_to_nothing(
    workspace: Workspace, root: Path
) -> None:
    agent = Session("s-1", Actor("agent", "one"))
    workspace.checkpoint("before")
    write(workspace, agent, "a.txt", "text\n")
    workspace.checkpoint("after")
    for _ in range(2):
        workspace.undo(agent)
        workspace.redo(agent)
    assert refused(lambda: workspace.restore(agent, "after")).code == "NO_CHANGE"
    assert (root / "a.txt").read_text() == "text\n"
    # An agent's undo alone is taken back as its other work is.
    workspace.undo(agent)
    workspace.restore(agent, "after")
    assert (root / "a.txt").read_text() == "text\n"
    workspace.restore(agent, "before")
    assert not (root / "a.txt").exists()


def test_a_redo_brings_back_some_files_and_leaves_others(workspace: Workspace, root: Path) -> None:
    with workspace.draft(ROBOT, "patch_apply") as draft:
        for target in draft.open_all(["a", "b", "c"]):
            draft.write(target, "1\n")
        workspace.submit(draft, "three files")
    undo = workspace.undo(ADA).operation
    here = workspace.guard.roots[0].path
    assert refused(lambda: workspace.redo(ADA, places=((here, "d"),))).code == "NO_CHANGE"
    workspace.redo(ADA, places=((here, "c"),))
    assert [path.name for path in root.iterdir()] == ["c"]
    # That is a decision of a person, so nobody takes it back unasked, and no undo of the agent's work does.
    part = workspace.log(limit=1)[0].id
    assert part in refused(lambda: workspace.undo(ADA)).hint
    assert refused(lambda: workspace.undo_selected(ADA, Selection(turn=NEWEST))).code == "NO_CHANGE"
    asked: list[str] = []
    workspace.undo(ADA, agrees=lambda plan: not asked.append(plan.doubt))
    assert part in asked[0]
    assert list(root.iterdir()) == []
    workspace.redo(ADA)
    assert [path.name for path in root.iterdir()] == ["c"]
    (root / "a").write_text("mine\n")
    error = refused(lambda: workspace.redo(ADA, undo))
    assert error.code == "STALE_FILE"
    assert "--partly" in error.hint
    done = workspace.redo(ADA, undo, partly=True)
    assert [one.path for one in done.left] == ["a"]
    assert (root / "b").read_text() == "1\n"
    # What is left of it can still be brought back.
    (root / "a").unlink()
    workspace.redo(ADA, undo)
    assert sorted(path.name for path in root.iterdir()) == ["a", "b", "c"]


def test_a_save_does_not_end_what_can_be_redone(workspace: Workspace, root: Path) -> None:
    write(workspace, ROBOT, "a", "1\n")
    workspace.undo(ADA)
    by_hand(workspace, root, "mine", BY_NOBODY)
    workspace.redo(ADA)
    assert (root / "a").exists()


def test_a_refusal_names_what_is_in_between_and_how_both_go_back(
    workspace: Workspace, root: Path
) -> None:
    path = root / "f.py"
    path.write_text("a = 1\nb = 2\nc = 3\n")
    write(workspace, ROBOT, "g.py", "1\n")
    edit(workspace, ROBOT, "f.py", "b = 2", "b   =   5")
    first = workspace.log(limit=1)[0].id
    workspace.external.resnapshot()
    path.write_text("a = 1\nb = 5\nc = 3\n")
    formatted = workspace.external.detect(SEEN, tool=BY_NOBODY).operation
    assert formatted
    error = refused(lambda: workspace.undo(ADA))
    assert error.code == "STALE_FILE"
    command = f"filepact undo {first} {formatted.id}"
    assert f"`{command}`" in error.hint
    workspace.undo_selected(ADA, Selection(tuple(command.split()[2:])))
    assert path.read_text() == "a = 1\nb = 2\nc = 3\n"
    # An agent hears of nobody's work but its own.
    workspace.redo(ADA)
    error = refused(lambda: workspace.past(ROBOT).undo(first, dry_run=False))
    assert str(formatted.id) not in error.report()


def test_no_command_is_named_that_would_be_refused(workspace: Workspace, root: Path) -> None:
    path = root / "f.py"
    path.write_text("b = 2\n")
    edit(workspace, ROBOT, "f.py", "b = 2", "b = 5")
    workspace.external.resnapshot()
    path.write_text("b = 6\n")
    workspace.external.detect(SEEN, tool=BY_NOBODY)
    path.write_text("b = 7\n")
    assert "filepact undo" not in refused(lambda: workspace.undo(ADA)).hint


def test_what_the_same_call_lost_is_named_with_its_size(workspace: Workspace, root: Path) -> None:
    (root / "id_rsa").write_text("a secret\n")
    (root / "a").write_text("1\n")
    write(workspace, OTHER, "older", "1\n")
    workspace.external.resnapshot()
    (root / "id_rsa").unlink()
    (root / "a").write_text("2\n")
    found = workspace.external.detect(ROBOT)
    assert found.lost
    done = workspace.undo(ADA)
    assert (root / "a").read_text() == "1\n"
    assert [(one.path, one.bytes, one.lost) for one in done.left] == [("id_rsa", 9, True)]
    assert any("id_rsa" in note and "9 bytes" in note for note in done.notes)
    workspace.redo(ADA)
    own = workspace.past(ROBOT).undo(None, dry_run=True)
    assert [(one.path, one.bytes) for one in own.left] == [("id_rsa", None)]
    assert not any("9 bytes" in note for note in own.notes)
    workspace.undo(ADA)
    # It was told of; what is older is another session's, and asked about as such.
    error = refused(lambda: workspace.undo(ADA))
    assert (error.code, (root / "older").exists()) == ("INVALID_PARAMS", True)


def test_nothing_older_goes_back_in_the_place_of_what_is_lost(
    workspace: Workspace, root: Path
) -> None:
    (root / "id_rsa").write_text("a secret\n")
    write(workspace, ROBOT, "older", "1\n")
    workspace.external.resnapshot()
    (root / "id_rsa").unlink()
    workspace.external.detect(ROBOT)
    error = refused(lambda: workspace.undo(ADA))
    assert error.code == "INVALID_PARAMS"
    assert (root / "older").exists()
    assert str(workspace.log(limit=2)[1].id) in error.hint


def test_what_is_lost_keeps_nothing_else_of_a_turn_from_going_back(
    workspace: Workspace, root: Path
) -> None:
    (root / "id_rsa").write_text("a secret\n")
    workspace.external.resnapshot()
    (root / "id_rsa").unlink()
    workspace.external.detect(ROBOT)
    write(workspace, ROBOT, "a", "1\n")
    done = workspace.undo_selected(ADA, Selection(turn=NEWEST))
    assert [one.path for one in done.left] == ["id_rsa"]
    assert list(root.iterdir()) == []
    assert refused(lambda: workspace.undo_selected(ADA, Selection(turn=NEWEST))).code in (
        "NO_CHANGE",
        "NOT_FOUND",
    )


def test_a_protection_that_came_with_a_turn_goes_back_with_it_and_no_other(
    workspace: Workspace, root: Path
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("1\n")
    workspace.external.resnapshot()
    (root / "a").chmod(0o444)
    (root / "b").write_text("2\n")
    workspace.external.detect(ROBOT)
    workspace.undo_selected(ADA, Selection(turn=NEWEST))
    assert (root / "a").stat().st_mode & 0o777 == 0o644
    assert (root / "b").read_text() == "1\n"
    workspace.redo(ADA)
    assert (root / "a").stat().st_mode & 0o777 == 0o444
    assert refused(lambda: edit(workspace, ROBOT, "a", "1", "2")).code == "WRITE_ERROR"
    (root / "b").chmod(0o444)
    assert refused(lambda: workspace.undo_selected(ADA, Selection(turn=NEWEST))).code == (
        "WRITE_ERROR"
    )


def test_the_newest_turn_is_the_one_that_began_last_though_an_earlier_one_goes_on(
    workspace: Workspace,
) -> None:
    write(workspace, ROBOT, "a", "1\n")
    write(workspace, OTHER, "b", "2\n")
    write(workspace, ROBOT, "in the background", "3\n")
    assert [number for number, _ in workspace.turns()] == [1, 2]
    workspace.undo_selected(ADA, Selection(turn=NEWEST))
    assert [workspace.operation(one.id).undone_by is None for one in workspace.log()[1:]] == [
        *(True, False, True)
    ]


def test_the_newest_turn_is_the_one_that_began_last_though_nothing_was_recorded_of_an_earlier_one_by_then(
    workspace: Workspace,
) -> None:
    for session in (ROBOT, OTHER):
        workspace.asked.turn(session)
    write(workspace, OTHER, "b", "2\n")
    write(workspace, ROBOT, "in the background", "1\n")
    assert [(number, len(found)) for number, found in workspace.turns()] == [(1, 1), (2, 1)]
    assert workspace.turns()[0][1][0].session.turn == OTHER.turn
    workspace.undo_selected(ADA, Selection(turn=NEWEST))
    assert [one.undone_by is None for one in workspace.log()[1:]] == [True, False]
    # What a later one did late is not that of the one that began last, of which nothing is recorded.
    workspace.asked.turn(replace(ROBOT, turn="nothing recorded"))
    refused(lambda: workspace.undo_selected(ADA, Selection(turn=NEWEST, agent=ROBOT.agent)))

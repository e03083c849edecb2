"""Whatever becomes of a name, whichever kind of entry it was and is: one operation, that goes back and forth."""

from __future__ import annotations

import os
import shutil
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, WorkspacePath
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact.workspace.folder_steps import FolderSteps
from filepact.workspace.journal import new_operation
from filepact.workspace.selection import Selection
from tests.entries import facts
from tests.kinds import SEEN, make, name_of, put, seen, tree
from tests.unprivileged import unprivileged

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

PERSON = Session("p", Actor("person", "p"))
AGENT = Session("a", Actor("agent", "a"))


class Place:
    """A folder in which an agent changes names past the doors."""

    def __init__(self, root: Path, workspace: Workspace, pairs: list[tuple[str, str]]) -> None:
        self.root, self.workspace, self.pairs = root, workspace, pairs
        (root / "kept").write_text("kept\n")
        make(root, 0, pairs)
        workspace.external.resnapshot()
        workspace.checkpoint("start")
        self.was = tree(root)
        make(root, 1, pairs)
        workspace.external.detect(AGENT, tool="bash")
        workspace.checkpoint("changed")
        self.now = tree(root)

    def is_as(self, wanted: dict[str, object]) -> bool:
        found = tree(self.root)
        assert found == wanted
        return self.workspace.external.detect(AGENT, tool="bash").operation is None


def test_whatever_becomes_of_names_goes_back_and_forth_as_one_operation(
    root: Path, workspace: Workspace
) -> None:
    place = Place(root, workspace, SEEN)
    assert len(workspace.log()) == 1
    assert workspace.undo(PERSON).notes == ()
    assert place.is_as(place.was)
    workspace.redo(PERSON)
    assert place.is_as(place.now)
    workspace.undo(PERSON, partly=True)
    assert place.is_as(place.was)
    workspace.redo(PERSON)
    assert place.is_as(place.now)
    workspace.restore(PERSON, "start")
    assert place.is_as(place.was)


@pytest.mark.parametrize(
    "pair", [*permutations(("file", "link", "empty", "deep"), 2)], ids=" to ".join
)
def test_one_name_that_becomes_something_else_goes_back_and_forth(
    root: Path, workspace: Workspace, pair: tuple[str, str]
) -> None:
    if not seen(pair):
        return
    place = Place(root, workspace, [pair])
    workspace.undo(PERSON)
    assert place.is_as(place.was)
    workspace.redo(PERSON)
    assert place.is_as(place.now)


def test_partly_leaves_what_the_person_has_made_of_a_name_and_says_so(
    root: Path, workspace: Workspace
) -> None:
    pairs = [("file", "folder"), ("folder", "file"), ("link", "folder"), ("folder", "link")]
    place = Place(root, workspace, [*pairs, ("file", "other")])
    (root / "file-folder/mine").write_text("mine\n")
    (root / "folder-file").write_text("mine\n")
    (root / "link-folder/k").write_text("mine\n")
    (root / "folder-link").unlink()
    (root / "folder-link").symlink_to("mine")
    with pytest.raises(FilepactError) as refused:
        workspace.undo(PERSON)
    assert refused.value.code == "STALE_FILE"
    assert tree(root)["file-other"] == place.now["file-other"]
    said = " ".join(workspace.undo(PERSON, partly=True).notes)
    assert tree(root)["file-other"] == place.was["file-other"]
    assert (root / "file-folder/mine").read_text() == "mine\n"
    assert (root / "folder-file").read_text() == "mine\n"
    assert (root / "link-folder/k").read_text() == "mine\n"
    assert os.readlink(root / "folder-link") == "mine"
    for pair in pairs:
        assert name_of(pair) in said


@pytest.mark.parametrize("kind", ["file", "link"])
def test_partly_makes_no_folder_for_what_does_not_come_back(
    root: Path, workspace: Workspace, kind: str
) -> None:
    (root / "a").mkdir()
    (root / "a" / "x").write_text("1\n")
    (root / "y").write_text("1\n")
    workspace.external.resnapshot()
    for name in ("a/x", "y"):
        (root / name).write_text("2\n")
    workspace.external.detect(AGENT, tool="bash")
    shutil.rmtree(root / "a")
    workspace.external.detect(PERSON, tool="bash")
    (root / "a").symlink_to("y") if kind == "link" else (root / "a").write_text("3\n")
    workspace.external.detect(AGENT, tool="bash")
    done = workspace.undo_selected(PERSON, Selection(session=AGENT), partly=True)
    assert "a/x" in " ".join(done.notes)
    assert tree(root).keys() == {"y"}
    assert (root / "y").read_text() == "1\n"
    workspace.redo(PERSON)
    assert tree(root).keys() == {"a", "y"}


def test_partly_removes_the_folders_from_which_all_goes(root: Path, workspace: Workspace) -> None:
    (root / "a").mkdir()
    (root / "a" / "x").write_text("x\n")
    workspace.external.resnapshot()
    was = tree(root)
    (root / "a").rename(root / "b")
    for name in ("c", "d"):
        (root / name).mkdir()
        (root / name / "y").write_text("y\n")
    workspace.external.detect(AGENT, tool="bash")
    (root / "d" / "y").write_text("mine\n")
    workspace.undo(PERSON, partly=True)
    assert tree(root).keys() == was.keys() | {"d", "d/y"}


def test_a_file_that_cannot_be_written_is_one_that_partly_leaves(
    root: Path, workspace: Workspace
) -> None:
    place = Place(root, workspace, [("file", "other"), ("link", "elsewhere")])
    (root / "file-other").chmod(0o400)
    with pytest.raises(FilepactError) as refused:
        workspace.undo(PERSON)
    assert refused.value.code == "WRITE_ERROR"
    assert tree(root)["link-elsewhere"] == place.now["link-elsewhere"]
    assert "file-other" in " ".join(workspace.undo(PERSON, partly=True).notes)
    assert tree(root)["link-elsewhere"] == place.was["link-elsewhere"]
    assert (root / "file-other").read_text() == "other\n"


@pytest.mark.parametrize(
    "kinds",
    [
        ("link", "deep", "empty", "other"),
        ("other", "nothing", "empty", "link"),
        ("file", "link", "empty", "nothing"),
        ("empty", "deep", "other", "deep"),
    ],
    ids=" ".join,
)
def test_several_changes_of_kind_go_back_one_by_one_and_together(
    root: Path, workspace: Workspace, kinds: tuple[str, ...]
) -> None:
    (root / "kept").write_text("kept\n")
    put(root / "a", kinds[0])
    workspace.external.resnapshot()
    seen_at = [tree(root)]
    for kind in kinds[1:]:
        put(root / "a", kind)
        if workspace.external.detect(AGENT, tool="bash").operation is None:
            seen_at[-1] = tree(root)
        else:
            seen_at.append(tree(root))
    for wanted in seen_at[-2::-1]:
        workspace.undo(PERSON)
        assert without_empty(tree(root)) == without_empty(wanted)
    for wanted in seen_at[1:]:
        workspace.redo(PERSON)
        assert without_empty(tree(root)) == without_empty(wanted)
    workspace.undo_selected(PERSON, Selection(session=AGENT))
    assert without_empty(tree(root)) == without_empty(seen_at[0])


def without_empty(found: dict[str, object]) -> dict[str, object]:
    """Without folders in which nothing lies, which are not seen when they come or go by themselves."""
    return {
        name: held
        for name, held in found.items()
        if held[1] or any(other.startswith(f"{name}/") for other in found)  # type: ignore[index]
    }


# -- renames ---------------------------------------------------------------------------------


def renamed(root: Path, workspace: Workspace, text: str = "one\ntwo\nthree\n") -> None:
    """An agent's shell moves a file, and changes another."""
    (root / "old").write_text(text)
    (root / "other").write_text("other\n")
    workspace.external.resnapshot()
    (root / "old").rename(root / "new")
    (root / "other").write_text("OTHER\n")
    workspace.external.detect(AGENT, tool="bash")


@pytest.mark.parametrize("end", ["old", "new"])
def test_one_end_of_a_rename_goes_back_with_the_other(
    root: Path, workspace: Workspace, end: str
) -> None:
    renamed(root, workspace)
    selection = Selection(places=((workspace.guard.roots[0].path, end),))
    workspace.undo_selected(PERSON, selection)
    assert sorted(tree(root)) == ["old", "other"]
    assert (root / "other").read_text() == "OTHER\n"


def test_a_file_that_is_renamed_back_keeps_what_a_person_wrote_into_it(
    root: Path, workspace: Workspace
) -> None:
    renamed(root, workspace)
    (root / "new").write_text("one\ntwo\nthree\nmine\n")
    receipt = workspace.undo(PERSON, workspace.log()[-1].id)
    assert tree(root).keys() == {"old", "other"}
    assert (root / "old").read_text() == "one\ntwo\nthree\nmine\n"
    assert any("new" in note for note in receipt.notes)
    workspace.redo(PERSON)
    assert (root / "new").read_text() == "one\ntwo\nthree\nmine\n"
    assert not (root / "old").exists()


def test_a_rename_with_changed_lines_goes_back_without_them_and_with_the_persons(
    root: Path, workspace: Workspace
) -> None:
    (root / "old").write_text("one\ntwo\nthree\nfour\nfive\n")
    workspace.external.resnapshot()
    (root / "old").unlink()
    (root / "new").write_text("ONE\ntwo\nthree\nfour\nfive\n")
    workspace.external.detect(AGENT, tool="bash")
    (root / "new").write_text("ONE\ntwo\nthree\nfour\nfive\nmine\n")
    workspace.undo(PERSON)
    assert tree(root).keys() == {"old"}
    assert (root / "old").read_text() == "one\ntwo\nthree\nfour\nfive\nmine\n"


def test_a_name_that_is_no_text_goes_and_comes_back(root: Path, workspace: Workspace) -> None:
    odd = os.fsdecode(b"bad\xff")
    (root / odd).write_text("here before\n")
    (root / f"{odd}-folder").mkdir()
    (root / f"{odd}-folder/f").write_text("in it\n")
    workspace.external.resnapshot()
    was = tree(root)
    (root / odd).unlink()
    shutil.rmtree(root / f"{odd}-folder")
    (root / f"new-{odd}").write_text("new\n")
    workspace.external.detect(AGENT, tool="bash")
    now = tree(root)
    workspace.undo(PERSON)
    assert tree(root) == was
    workspace.redo(PERSON)
    assert tree(root) == now


def test_empty_folders_that_come_within_others_go_back_with_them(
    root: Path, workspace: Workspace
) -> None:
    put(root / "old", "deep")
    (root / "old/x/y/empty/in/it").mkdir(parents=True)
    (root / "old/x").chmod(0o700)
    workspace.external.resnapshot()
    was = tree(root)
    (root / "old").rename(root / "new")
    workspace.external.detect(AGENT, tool="bash")
    now = tree(root)
    for _ in range(2):
        workspace.undo(PERSON)
        assert tree(root) == was
        workspace.redo(PERSON)
        assert tree(root) == now


@pytest.mark.parametrize("kind", ["file", "link", "deep"])
@pytest.mark.parametrize("made", ["file", "link", "deep"])
def test_partly_keeps_the_other_name_of_what_cannot_have_its_own_again(
    root: Path, workspace: Workspace, kind: str, made: str
) -> None:
    place, other = root / "name", root / "other name"
    put(place, kind)
    (root / "app.py").write_text("before\n")
    workspace.external.resnapshot()
    place.rename(other)
    (root / "app.py").write_text("after\n")
    workspace.external.detect(AGENT, tool="bash")
    put(place, made)
    if made == "file":
        place.write_text("of the person\n")
    elif made == "link":
        place.unlink()
        place.symlink_to("of the person")
    else:
        next(one for one in place.rglob("*") if one.is_file()).write_text("of the person\n")
    there = {name: it for name, it in tree(root).items() if name != "app.py"}
    said = " ".join(workspace.undo(PERSON, partly=True).notes)
    assert (root / "app.py").read_text() == "before\n"
    now = tree(root)
    if (kind, made) != ("deep", "deep"):
        assert {name: it for name, it in now.items() if name != "app.py"} == there
        assert "other name" in said
    else:  # All that can go back has gone.
        assert {it for name, it in now.items() if name != "app.py"} >= {*there.values()}


@pytest.mark.parametrize("other", ["file", "link"])
def test_empty_folders_go_back_with_a_folder_that_has_changed_names_with_something_else(
    root: Path, workspace: Workspace, other: str
) -> None:
    (root / "folder/empty/in it").mkdir(parents=True)
    put(root / "other", other)
    workspace.external.resnapshot()
    was = tree(root)
    (root / "other").rename(root / "aside")
    (root / "folder").rename(root / "other")
    (root / "aside").rename(root / "folder")
    now = tree(root)
    workspace.external.detect(AGENT, tool="bash")
    for _ in range(2):
        workspace.undo(PERSON)
        assert tree(root) == was
        workspace.redo(PERSON)
        assert tree(root) == now


def test_folders_of_ordinary_rights_that_get_another_name_keep_their_times(
    root: Path, workspace: Workspace
) -> None:
    (root / "old/in").mkdir(parents=True)
    (root / "old/in/k").write_text("in it\n")
    os.utime(root / "old/in", (1, 1))
    workspace.external.resnapshot()
    was = facts(root / "old")
    (root / "old").rename(root / "new")
    workspace.external.detect(AGENT, tool="bash")
    for _ in range(2):
        workspace.undo(PERSON)
        assert facts(root / "old") == was
        workspace.redo(PERSON)
        assert facts(root / "new") == was


def test_a_folder_that_nobody_may_look_into_is_not_made_anew_by_undo(
    root: Path, workspace: Workspace
) -> None:
    (root / "old").mkdir()
    (root / "old/k").write_text("in it\n")
    (root / "old").chmod(0)
    unprivileged(workspace.external.resnapshot)
    (root / "old").rename(root / "new")
    unprivileged(partial(workspace.external.detect, AGENT, tool="bash"))
    with pytest.raises(FilepactError) as refused:
        unprivileged(partial(workspace.undo, PERSON))
    assert refused.value.code == "NOT_FOUND"
    assert os.listdir(root) == ["new"]
    assert not (root / "new").stat().st_mode & 0o777


def test_a_removal_that_is_taken_back_leaves_the_folders_their_times(
    root: Path, workspace: Workspace
) -> None:
    (root / "a").mkdir()
    (root / "a/k").write_text("in it\n")
    os.utime(root / "a", (1, 1))
    was, (held,) = facts(root), workspace.guard.roots
    folder = FileChange(WorkspacePath(held.path, "a"), held.folder_state("a"), None)
    file = FileChange(WorkspacePath(held.path, "a/k"), Revision.of(b"in it\n", 0o644), None)
    removal = new_operation(AGENT, "manage_files", "delete a", ChangeSet((folder, file)))
    steps = FolderSteps(removal, workspace.guard.root_of)
    (root / "a/k").rename(root / "a/aside")
    (root / "a/aside").rename(root / "a/k")
    assert facts(root) != was
    steps.take_back()
    assert facts(root) == was


def _in_a_shut_folder(root: Path, *, folder: bool) -> None:
    """What an agent does to a folder of its own into which it may put nothing, by making that possible for the moment."""
    shut = root / "shut"
    shut.chmod(0o755)
    if folder:
        shutil.rmtree(shut)
        return
    (shut / "gone").unlink()
    (shut / "was").rename(shut / "is")
    (shut / "link").unlink()
    (shut / "link").symlink_to("is")
    (shut / "turns").unlink()
    (shut / "turns").mkdir()
    (shut / "turns/k").write_text("made\n")
    shut.chmod(0o555)


@pytest.mark.parametrize("folder", [False, True], ids=["in it", "the folder"])
def test_what_was_done_in_a_folder_that_is_shut_goes_back_and_forth_and_it_stays_shut(
    root: Path, workspace: Workspace, folder: bool
) -> None:
    shut = root / "shut"
    shut.mkdir()
    for name in ("gone", "was", "turns"):
        (shut / name).write_text(f"{name}\n")
    (shut / "link").symlink_to("was")
    shut.chmod(0o555)
    workspace.external.resnapshot()
    was = tree(root)
    _in_a_shut_folder(root, folder=folder)
    workspace.external.detect(AGENT, tool="bash")
    now = tree(root)
    for _ in range(2):
        done = unprivileged(partial(workspace.undo, PERSON))
        assert (done.notes, tree(root)) == ((), was)
        unprivileged(partial(workspace.redo, PERSON))
        assert tree(root) == now
    # That it was opened for the moment is no change of it.
    assert {"shut" in map(str, one.changes.paths) for one in workspace.log()} == {folder}
    assert workspace.external.detect(AGENT, tool="bash").operation is None


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="nobody else sees what it has besides"
)
@pytest.mark.parametrize("there", [True, False], ids=["closed", "made"])
def test_a_folder_that_is_closed_to_everybody_goes_back_and_forth_with_its_mode(
    root: Path, workspace: Workspace, there: bool
) -> None:
    if there:
        (root / "shuts").mkdir()
    workspace.external.resnapshot()
    was = tree(root)
    (root / "shuts").mkdir(exist_ok=True)
    (root / "shuts").chmod(0)
    workspace.external.detect(AGENT, tool="bash")
    now = tree(root)
    for _ in range(2):
        assert unprivileged(partial(workspace.undo, PERSON)).notes == ()
        assert tree(root) == was
        assert unprivileged(partial(workspace.redo, PERSON)).notes == ()
        assert tree(root) == now


def test_an_agent_whose_undo_is_refused_for_one_file_hears_how_the_others_go_back(
    root: Path, workspace: Workspace
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("old\n")
    with workspace.draft(AGENT, "patch_apply") as draft:
        for target in draft.open_all(["a", "b"]):
            draft.write(target, "new\n")
        done = workspace.submit(draft, "two files").operation
    (root / "a").unlink()
    os.mkfifo(root / "a")
    with pytest.raises(FilepactError) as refused:
        workspace.undo(AGENT)
    assert f"filepact undo {done} --partly" in (refused.value.hint or "")
    assert (root / "b").read_text() == "new\n"
    workspace.undo(PERSON, done, partly=True)
    assert (root / "b").read_text() == "old\n"


@pytest.mark.parametrize("mode", [0, 0o100, 0o300])
def test_that_a_folder_was_closed_to_its_owner_is_taken_back(
    root: Path, workspace: Workspace, mode: int
) -> None:
    (root / "shuts").mkdir()
    (root / "shuts/a").write_text("a\n")
    workspace.external.resnapshot()
    (root / "shuts").chmod(mode)
    unprivileged(partial(workspace.external.detect, AGENT, tool="bash"))
    assert unprivileged(partial(workspace.external.detect, AGENT)).operation is None
    unprivileged(partial(workspace.undo, PERSON))
    assert (root / "shuts").stat().st_mode & 0o777 == 0o755
    unprivileged(partial(workspace.redo, PERSON))
    assert (root / "shuts").stat().st_mode & 0o777 == mode

"""A folder that Git takes for a repository is version control inside, whatever it is called."""

from __future__ import annotations

import shutil
import subprocess
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Approval
from filepact.errors import PathBlockedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.draft import Draft
    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ann"))
PARTS = {
    "HEAD": "ref: refs/heads/main\n",
    "config": "[core]\n",
    "objects/info/keep": "x\n",
    "refs/heads/keep.txt": "x\n",
}


def write(workspace: Workspace, session: Session, *paths: str, dry_run: bool = False):
    with workspace.draft(session, "write_file") as draft:
        draft.dry_run = dry_run
        for path, target in zip(paths, draft.open_all(list(paths)), strict=True):
            draft.write(target, next(text for name, text in PARTS.items() if path.endswith(name)))
        return workspace.submit(draft, "write")


def refuse(workspace: Workspace, session: Session, change: Callable[[Draft], object]) -> None:
    """A change of these files is refused."""

    def make() -> None:
        with workspace.draft(session, "tool") as draft:
            change(draft)
            workspace.submit(draft, "change")

    with pytest.raises(PathBlockedError) as caught:
        make()
    assert caught.value.details["rule"] == "version control internals"


def is_repository(folder: Path) -> bool:
    return all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


@pytest.mark.parametrize("order", list(permutations(PARTS)), ids=" ".join)
def test_no_order_of_ordinary_writes_makes_one(
    workspace: Workspace, session: Session, root: Path, order: tuple[str, ...]
) -> None:
    refused = 0
    for name in order:
        try:
            write(workspace, session, f"docs/x/{name}")
        except PathBlockedError:
            refused += 1
    assert refused
    assert not is_repository(root / "docs" / "x")


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("folder", ["docs/x/", ""])
def test_nor_does_one_change_of_all_files(
    workspace: Workspace, session: Session, root: Path, folder: str, dry_run: bool
) -> None:
    with pytest.raises(PathBlockedError):
        write(workspace, session, *(folder + name for name in PARTS), dry_run=dry_run)
    assert not is_repository(root / folder)


def test_nor_a_folder_that_takes_what_it_needs_from_another(
    workspace: Workspace, session: Session
) -> None:
    write(workspace, session, "x/HEAD")
    refuse(workspace, session, lambda draft: draft.write(draft.open("x/commondir"), "../y\n"))


def test_nor_folders_that_are_made_or_moved(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "x/HEAD")
    write(workspace, session, "x/refs/heads/keep.txt")
    refuse(workspace, session, lambda draft: draft.folders.make("x/objects"))
    (root / "y").mkdir()
    (root / "y" / "pack").write_text("x\n")
    names = ["y/pack", "x/objects/pack"]
    refuse(workspace, session, lambda draft: draft.move(*draft.open_all(names), None))
    assert not is_repository(root / "x")


def test_nor_proposals_that_a_person_approves_one_by_one(
    workspace: Workspace, session: Session, root: Path
) -> None:
    workspace.mode = "preview"
    waiting = [write(workspace, session, f"x/{name}").operation for name in PARTS]
    for one in waiting[:3]:
        workspace.approve(str(one), PERSON)
    with pytest.raises(PathBlockedError):
        workspace.approve(str(waiting[3]), PERSON)
    assert not is_repository(root / "x")


def test_nor_what_is_brought_back(workspace: Workspace, session: Session, root: Path) -> None:
    write(workspace, session, "x/HEAD")
    undone = workspace.undo(session).operation
    for name in ("objects/info/keep", "refs/heads/keep.txt"):
        write(workspace, session, f"x/{name}")
    with pytest.raises(PathBlockedError):
        workspace.redo(session, str(undone))
    assert not is_repository(root / "x")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_nothing_in_one_that_is_there_is_changed(
    workspace: Workspace, session: Session, root: Path
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(root / "store")], check=True)
    for name in PARTS:
        with pytest.raises(PathBlockedError):
            write(workspace, session, f"store/{name}")
    refuse(
        workspace, session, lambda draft: draft.delete(draft.open("store/HEAD"), emptied_by=None)
    )


def test_the_same_names_elsewhere_are_free(workspace: Workspace, session: Session) -> None:
    for path in ("src/config", "src/objects/info/keep", "lib/refs/heads/keep.txt", "doc/HEAD"):
        assert write(workspace, session, path).status == "applied"

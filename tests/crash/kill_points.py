"""Kills a change at its Nth call into C, for every N, and looks at what is left each time.

Run as a program: ``kill_points.py SCENARIO FOLDER STEP FIRST``.  It stays single-threaded and
forks a child for each point, so a point costs a few milliseconds.  The child opens the
workspace, makes one change and is killed (SIGKILL, by itself, from a profiling hook) just before
the Nth call of a C function; system calls are among them.  The parent then opens the workspace
as the next start would, which recovers, and checks the promises.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from filepact.fs.kernel import capset
from filepact.tools.edit import manage_files
from filepact.tools.registry import CallContext
from filepact.workspace import folders
from tests.workspace.acting import delete, edit, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.workspace.workspace import Workspace

SESSION = Session("s", Actor("agent", "crash"))
PERSON = Approval(Actor("person", "ann"))
LINKS = {"link": "nothere.txt"}
BEFORE = {"a.txt": b"one\ntwo\n", "b.txt": b"b\r\n", "sub/c.txt": b"c\n"}


def three_files(workspace: Workspace) -> None:
    with workspace.draft(SESSION, "patch_apply") as draft:
        first, second, third = draft.open_all(["a.txt", "new/deep/n.txt", "sub/c.txt"])
        draft.write(first, "ONE\ntwo\n")
        draft.write(second, "n\n")
        draft.write(third, "C\n")
        workspace.submit(draft, "three files")


def several_moves(workspace: Workspace) -> None:
    """Two files get other names, and a third another text, at once."""
    with workspace.draft(SESSION, "patch_apply") as draft:
        one, to, two, there, third = draft.open_all(
            ["a.txt", "x/a.txt", "b.txt", "sub/b.txt", "sub/c.txt"], itself=["a.txt", "b.txt"]
        )
        draft.move(one, to, None)
        draft.move(two, there, None)
        draft.write(third, "C\n")
        workspace.submit(draft, "several moves")


def move_whole(workspace: Workspace) -> None:
    """Move a folder as one change, as if it held many files."""
    folders.MOST_APART = 0
    manage(workspace, action="move", path="sub", to="x/y")


def remove_link(workspace: Workspace) -> None:
    with workspace.draft(SESSION, "patch_apply") as draft:
        draft.delete(draft.open("link", itself=True), emptied_by=None)
        workspace.submit(draft, "delete a link")


def manage(workspace: Workspace, **sent: str) -> None:
    with workspace.draft(SESSION, "manage_files") as draft:
        summary = manage_files.run(draft, sent)
        workspace.submit(draft, summary)


def turn(workspace: Workspace) -> None:
    """A program makes a folder of a file, a link of another and of the link, and a file of a folder.

    It also moves a repository, and puts a link to it in its place.
    """
    root = Path(workspace.guard.roots[0].path)
    (root / "repo/.git/refs").mkdir(parents=True)
    (root / "repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    (root / "repo/r.txt").write_text("r\n")
    workspace.external.resnapshot()
    for name in ("a.txt", "b.txt", "link"):
        (root / name).unlink()
    (root / "a.txt/deep").mkdir(parents=True)
    (root / "a.txt/deep/k").write_text("k\n")
    (root / "b.txt").symlink_to("elsewhere")
    (root / "link").symlink_to("elsewhere")
    shutil.rmtree(root / "sub")
    (root / "sub").write_text("sub\n")
    (root / "repo").rename(root / "moved")
    (root / "repo").symlink_to("moved")
    workspace.external.detect(SESSION)


def turn_back(workspace: Workspace) -> None:
    turn(workspace)
    undo(workspace)


def shut(workspace: Workspace) -> None:
    """A program changes names in a folder that takes none, for whoever has no more rights than others."""
    sub = Path(workspace.guard.roots[0].path) / "sub"
    sub.chmod(0o555)
    workspace.external.resnapshot()
    sub.chmod(0o700)
    (sub / "c.txt").rename(sub / "d.txt")
    (sub / "empty").rmdir()
    (sub / "empty").write_text("no folder\n")
    sub.chmod(0o555)
    workspace.external.detect(SESSION)


def shut_back(workspace: Workspace) -> None:
    shut(workspace)
    undo(workspace)


def propose(workspace: Workspace) -> None:
    workspace.mode = "preview"
    three_files(workspace)


def approve(workspace: Workspace) -> None:
    workspace.approve(workspace.pending()[0].id, PERSON)


def undo(workspace: Workspace) -> None:
    workspace.undo(SESSION, dry_run=False)


def delete_back(workspace: Workspace) -> None:
    delete(workspace, SESSION, "a.txt")
    undo(workspace)


def join(workspace: Workspace) -> None:
    """Give a file a second name, so that it is written in place."""
    root = Path(workspace.guard.roots[0].path)
    os.link(root / "a.txt", root / "joined.txt")


RENAME = "diff --git a/{0} b/{1}\nsimilarity index 60%\nrename from {0}\nrename to {1}\n--- a/{0}\n+++ b/{1}\n{2}"
LINES = {"a.txt": "@@ -1,2 +1,2 @@\n-one\n+1\n two\n", "b.txt": "@@ -1 +1 @@\n-b\r\n+B\r\n"}


def hand_on(workspace: Workspace, *names: str) -> None:
    """Rename files by a patch that changes their lines as well; the first name and the last may be one."""
    pairs = pairwise(names)
    patch = "".join(RENAME.format(old, new, LINES[old]) for old, new in pairs)
    done = open_toolbox(workspace).call("patch_apply", {"patch": patch}, CallContext(SESSION))
    assert not done.failed, done.text


def rename_joined(workspace: Workspace) -> None:
    hand_on(workspace, "a.txt", "sub/new.txt")


def swap_joined(workspace: Workspace) -> None:
    hand_on(workspace, "a.txt", "b.txt", "a.txt")


def join_both(workspace: Workspace) -> None:
    join(workspace)
    root = Path(workspace.guard.roots[0].path)
    os.link(root / "b.txt", root / "sub/joined.txt")


def swapped(workspace: Workspace) -> None:
    join_both(workspace)
    swap_joined(workspace)


def renamed_back(workspace: Workspace) -> None:
    join(workspace)
    rename_joined(workspace)
    undo(workspace)


def renamed(workspace: Workspace) -> None:
    join(workspace)
    rename_joined(workspace)


SCENARIOS: dict[str, tuple[Callable[[Workspace], object] | None, Callable[[Workspace], object]]] = {
    "replace": (None, lambda w: edit(w, SESSION, "a.txt", "one", "1")),
    "in-place": (join, lambda w: edit(w, SESSION, "a.txt", "one", "1")),
    "create": (None, lambda w: write(w, SESSION, "x/y/new.txt", "new\n")),
    "delete": (None, lambda w: delete(w, SESSION, "a.txt")),
    "three": (None, three_files),
    "undo-delete": (lambda w: delete(w, SESSION, "a.txt"), undo),
    "redo-delete": (delete_back, lambda w: w.redo(SESSION)),
    "approve": (propose, approve),
    "undo": (lambda w: edit(w, SESSION, "a.txt", "one", "1"), undo),
    "delete-link": (None, remove_link),
    "undo-link": (remove_link, undo),
    "move-folder": (None, lambda w: manage(w, action="move", path="sub", to="x/y")),
    "undo-move-folder": (lambda w: manage(w, action="move", path="sub", to="x/y"), undo),
    "move-whole": (None, move_whole),
    "undo-move-whole": (move_whole, undo),
    "moves": (None, several_moves),
    "undo-moves": (several_moves, undo),
    "delete-folder": (None, lambda w: manage(w, action="delete", path="sub")),
    "undo-delete-folder": (lambda w: manage(w, action="delete", path="sub"), undo),
    "undo-turn": (turn, undo),
    "redo-turn": (turn_back, lambda w: w.redo(SESSION)),
    "undo-shut": (shut, undo),
    "redo-shut": (shut_back, lambda w: w.redo(SESSION)),
    "rename-joined": (join, rename_joined),
    "undo-rename-joined": (renamed, undo),
    "redo-rename-joined": (renamed_back, lambda w: w.redo(SESSION)),
    "swap-joined": (join, swap_joined),
    "swap-both-joined": (join_both, swap_joined),
    "undo-swap-both-joined": (swapped, undo),
    "undo-create": (lambda w: write(w, SESSION, "x/y/new.txt", "new\n"), undo),
}


Tree = dict[str, tuple[int, str, bytes | str | None]]


def tree(folder: Path) -> Tree:
    """All files with their bytes, and all folders, each with its mode and the first of its names."""
    first: dict[int, str] = {}
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            first.setdefault(path.lstat().st_ino, path.name),
            os.readlink(os.fsencode(path))
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None,
        )
        for path in sorted(folder.rglob("*"))
    }


def fresh(base: Path) -> Path:
    with contextlib.suppress(FileNotFoundError):
        (base / "root/sub").chmod(0o700)
    shutil.rmtree(base, ignore_errors=True)
    for name, data in BEFORE.items():
        path = base / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, target in LINKS.items():
        (base / "root" / name).symlink_to(target)
    (base / "root" / "sub" / "empty").mkdir()
    (base / "root" / "sub").chmod(0o700)
    (base / "root" / "a.txt").chmod(0o640)
    return base / "root"


def opened(base: Path) -> Workspace:
    return open_workspace([str(base / "root")], state_dir=str(base / "state"))


def child(base: Path, act: Callable[[Workspace], object], point: int) -> None:
    """Act, killed before the given call; exit status 0 when the act ended earlier."""
    workspace = opened(base)
    calls = 0

    def hook(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        if event == "c_call":
            calls += 1
            if calls == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(hook)
    act(workspace)
    sys.setprofile(None)
    (base / "acknowledged").touch()
    os._exit(0)


def check_proposal(workspace: Workspace, proposed: str, *, done: bool) -> None:
    """What was approved is done, or waits under its id, and its author hears nothing else."""
    said = workspace.proposal(proposed).state
    assert said == ("committed" if done else "proposed"), f"done: {done}, proposal: {said}"
    with workspace.draft(SESSION, "edit_file") as draft:
        seen = draft.open("a.txt").document
    assert seen is not None
    assert seen.data == b"ONE\ntwo\n", "its author sees neither what was done nor what it proposed"
    if not done:
        workspace.approve(proposed, PERSON)
        assert [one.state for one in workspace.log()] == ["applied"]
        workspace.undo(SESSION)


def check(
    base: Path,
    before: Tree,
    after: Tree,
    proposed: str = "",
) -> None:
    """The promises after a crash: old or new, never between; journal and disk agree."""
    workspace = opened(base)
    try:
        now = tree(base / "root")
        assert now in (before, after), f"torn: {sorted(now)} {now}"
        assert not workspace.unfinished(), "an operation is neither done nor taken back"
        twice = [one for one in (base / "state").glob("removed/*") if one.stat().st_nlink > 1]
        assert not twice, "a file is in its place and among the removed ones"
        if (base / "acknowledged").exists():
            assert now == after, "an acknowledged change is lost"
        newest = workspace.log(limit=1)
        done = bool(newest) and newest[0].state == "applied"
        if proposed:
            check_proposal(workspace, proposed, done=done)
        if now == after and newest:
            assert done, "done on disk, not in the journal"
        if done:
            # What the journal calls done can be taken back, and nothing else is touched.
            with contextlib.suppress(FilepactError):
                workspace.undo(SESSION, dry_run=True)
    finally:
        workspace.close()


def main(scenario: str, folder: str, step: int, first: int) -> None:
    prepare, act = SCENARIOS[scenario]
    if scenario.endswith("-shut") and sys.platform == "linux":
        capset(0)
    base = Path(folder)
    root = fresh(base)
    workspace = opened(base)
    if prepare is not None:
        prepare(workspace)
    before = tree(root)
    act(workspace)
    after = tree(root)
    workspace.close()
    point, points, proposed = first, 0, ""
    while True:
        root = fresh(base)
        if prepare is not None:
            workspace = opened(base)
            prepare(workspace)
            proposed = "".join(one.id for one in workspace.pending())
            workspace.close()
        pid = os.fork()
        if pid == 0:
            try:
                child(base, act, point)
            finally:
                os._exit(3)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
            raise SystemExit(f"{scenario}: the child failed at point {point}")
        try:
            check(base, before, after, proposed)
        except AssertionError as error:
            raise SystemExit(f"{scenario}, killed before call {point}: {error}") from None
        if os.WIFEXITED(status):
            break
        points += 1
        point += step
    print(f"{scenario}: {points} points")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

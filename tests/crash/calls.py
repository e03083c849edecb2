"""Spoils every call into the C library that changes something, one after the other.

Run as a program: ``python -m tests.crash.calls [--step N] [KIND ...]``.  It builds `shim.c`, which
the C library's own functions are called through, and starts itself once more under it.  For each
point of each kind of change a child is forked that opens a workspace and makes the change; one
call of it is killed, fails once or from then on, or does half of its work.  What the child answers
is compared with the disk, in the same process, after the next call of it, and after the next start.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

AGENT = Session("s", Actor("agent", "crash"))
PERSON = Session("p", Actor("person", "ada"))
BEFORE = {"a.txt": "one\ntwo\n" + "x" * 30_000, "gone.txt": "gone\n", "keep.txt": "keep\n"}
COUNT, FAIL, KILL, SHORT = range(4)

Tree = dict[str, tuple[bytes, int] | None]


@dataclass(frozen=True)
class Way:
    """How a call is spoiled."""

    how: int
    error: int = 0
    sticky: bool = False


WAYS = {
    "killed": Way(KILL),
    "EIO once": Way(FAIL, errno.EIO),
    "EIO from then on": Way(FAIL, errno.EIO, sticky=True),
    "ENOSPC once": Way(FAIL, errno.ENOSPC),
    "ENOSPC from then on": Way(FAIL, errno.ENOSPC, sticky=True),
    "half written": Way(SHORT),
}


def change(workspace: Workspace) -> Receipt:
    """A file replaced, one made in new folders, one removed."""
    with workspace.draft(AGENT, "patch_apply") as draft:
        replaced, made, removed = draft.open_all(["a.txt", "new/deep/n.txt", "gone.txt"])
        draft.write(replaced, BEFORE["a.txt"].replace("one", "ONE"))
        draft.write(made, "n\n" * 100)
        draft.delete(removed, emptied_by=None)
        return workspace.submit(draft, "three files")


def propose(workspace: Workspace) -> None:
    workspace.mode = "preview"
    change(workspace)
    workspace.mode = "auto"


def nothing(_workspace: Workspace) -> None:
    pass


def approve(workspace: Workspace) -> Receipt:
    (waits,) = workspace.pending()
    return workspace.approve(waits.id, Approval(PERSON.actor))


def undo(workspace: Workspace) -> Receipt:
    return workspace.undo(PERSON, dry_run=False)


KINDS: dict[str, tuple[Callable[[Workspace], object], Callable[[Workspace], Receipt]]] = {
    "patch": (nothing, change),
    "undo": (change, undo),
    "approve": (propose, approve),
}


def tree(root: Path) -> Tree:
    """All files with their bytes and rights, and all folders; no temporary files."""
    return {
        str(path.relative_to(root)): (
            (path.read_bytes(), path.stat().st_mode & 0o777) if path.is_file() else None
        )
        for path in root.rglob("*")
        if not path.name.startswith(".filepact-")
    }


def files(found: Tree) -> Tree:
    return {path: held for path, held in found.items() if held is not None}


def tree_as_it_is(found: Tree) -> Tree:
    return found


def opened(base: Path) -> Workspace:
    return open_workspace([str(base / "root")], state_dir=str(base / "state"))


def fresh(base: Path, kind: str) -> Path:
    """A root with files, and a journal, right before the change."""
    shutil.rmtree(base, ignore_errors=True)
    root = base / "root"
    root.mkdir(parents=True)
    for name, text in BEFORE.items():
        (root / name).write_text(text)
    (root / "a.txt").chmod(0o640)
    with opened(base) as workspace:
        KINDS[kind][0](workspace)
    return root


class Spoiler:
    """The functions of the shim that this process runs under."""

    def __init__(self) -> None:
        shim = ctypes.CDLL(None)
        self._spoil, self._spoiled = shim.spoil, shim.spoiled
        self._spoiled.restype = ctypes.c_long
        self._spoil.argtypes = [ctypes.c_char_p, ctypes.c_long, *[ctypes.c_int] * 3]

    def begin(self, base: Path, at: int, way: Way) -> None:
        self._spoil(os.fsencode(base) + b"/", at, way.error, way.sticky, way.how)

    def end(self) -> int:
        count: int = self._spoiled()
        self._spoil(b"", 0, 0, 0, COUNT)
        return count


def child(base: Path, kind: str, at: int, way: Way) -> None:
    """Make the change with one call spoiled, and write down what was answered."""
    spoiler = Spoiler()
    workspace = opened(base)
    root = base / "root"
    said: dict[str, object]
    spoiler.begin(base, at, way)
    try:
        receipt = KINDS[kind][1](workspace)
        said = {"done": True, "confirmed": receipt.confirmed, "notes": receipt.notes}
    except FilepactError as error:
        said = {"done": False, "code": error.code, "outcome": error.details.get("outcome", "")}
    said["calls"] = spoiler.end()
    at_once = tree(root)
    workspace.log(limit=1)
    said["unsettled"] = len(workspace.unfinished())
    after_next = tree(root)
    # Folders that a failing device did not let go may go now.
    said["moved"] = files(at_once) != files(after_next)
    (base / "said.json").write_text(json.dumps(said))
    os.kill(os.getpid(), signal.SIGKILL)


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".filepact-*")]


def run(base: Path, kind: str, at: int, way: Way, before: Tree, after: Tree) -> tuple[str, int]:
    """One point; what came of it, and how many calls there were.

    Raises:
        AssertionError: Something was not as it was promised.
    """
    root = fresh(base, kind)
    pid = os.fork()
    if pid == 0:
        try:
            child(base, kind, at, way)
        finally:
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the child came to an end by an exception"
    answer = base / "said.json"
    said = json.loads(answer.read_text()) if answer.exists() else {}
    now = tree(root)
    partly = said.get("outcome") == "in_part"
    # A folder that the device does not let go is told in a note, and stays.
    like = files if said.get("notes") else tree_as_it_is
    if said:
        assert way.how != KILL or said["calls"] < at, "it was not killed"
        assert not said["moved"], "the next call has changed files"
        assert not said["unsettled"], "neither done nor taken back after the next call"
        if said["done"]:
            assert like(now) == like(after), "told as done, and is not"
        elif not partly:
            assert now == before, f"told as refused ({said['code']}), and is there"
    with opened(base) as workspace:
        found = tree(root)
        if not partly:
            assert like(found) in (like(before), like(after)), f"torn: {sorted(found)}"
            assert not said or found == now, "the next start has changed files"
        assert not leftovers(root), f"left: {leftovers(root)}"
        assert not workspace.unfinished(), "neither done nor taken back after the next start"
        check_record(workspace, kind, root, like(before), like(after), like)
    if not said:
        return "killed, done" if found == after else "killed, not there", at
    if said["done"]:
        return "done" if said["confirmed"] else "done, not confirmed", said["calls"]
    return f"{said['code']}{', in part' if partly else ''}", said["calls"]


def check_record(
    workspace: Workspace,
    kind: str,
    root: Path,
    before: Tree,
    after: Tree,
    like: Callable[[Tree], Tree],
) -> None:
    """The log says what is there, and what is there can be taken back."""
    newest = workspace.log(limit=1)
    found = like(tree(root))
    done = found == after
    if found not in (before, after):
        if kind == "approve":
            assert workspace.pending(), "it is half done, and does not wait"
        assert newest[0].state == "interrupted", "half of it is there, and the log does not say so"
        workspace.undo(PERSON, newest[0].id, dry_run=False)
        assert like(tree(root)) == before, "what is there in part cannot be taken back"
        return
    state = (
        newest[0].state
        if newest and newest[0].kind == ("undo" if kind == "undo" else "change")
        else ""
    )
    if kind == "approve":
        assert bool(workspace.pending()) != done, "it is done and waits, or neither"
    if kind == "undo":
        assert (state == "applied") == done, f"the log says {state}"
        (workspace.redo if done else workspace.undo)(PERSON, dry_run=False)
        assert like(tree(root)) == (before if done else after), (
            "undo and redo do not go on from there"
        )
        return
    assert (state == "applied") == done, f"the log says {state or 'nothing'}"
    if done:
        workspace.undo(PERSON, dry_run=False)
        assert like(tree(root)) == before, "undo does not bring back what was there"


def sweep(base: Path, kind: str, name: str, step: int) -> tuple[int, Counter[str], list[str]]:
    """Every point of one kind of change spoiled in one way: how many, what came of them, wrong."""
    root = fresh(base, kind)
    before = tree(root)
    with opened(base) as workspace:
        KINDS[kind][1](workspace)
    after = tree(root)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    at, points = 1, 0
    while True:
        try:
            outcome, calls = run(base, kind, at, WAYS[name], before, after)
        except AssertionError as error:
            outcome, calls = "WRONG", at
            wrong.append(f"{kind}, {name}, call {at}: {error}")
        if calls < at:
            return points, outcomes, wrong
        outcomes[outcome] += 1
        points += 1
        at += step


def build(folder: Path) -> Path:
    """The shim, compiled.

    Raises:
        SystemExit: There is no compiler, or no such system.
    """
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        raise SystemExit("skipped: no C compiler here, or not Linux")
    made = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.crash.calls", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--step", type=int, default=1, help="spoil only every so-manieth call")
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.base is None:
        with tempfile.TemporaryDirectory() as folder:
            shim = build(Path(folder))
            command = [sys.executable, "-m", "tests.crash.calls", *arguments, "--base", folder]
            return subprocess.run(
                command, env=os.environ | {"LD_PRELOAD": str(shim)}, check=False
            ).returncode
    total, wrong = 0, []
    for kind in given.kinds or KINDS:
        for name in WAYS:
            points, outcomes, found = sweep(given.base / "w", kind, name, given.step)
            total += points
            wrong += found
            print(f"{kind}, {name}: {points} points, {dict(outcomes)}", flush=True)
    for one in wrong:
        print(one)
    print(f"{total} points, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

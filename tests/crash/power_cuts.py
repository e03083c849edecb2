"""Power cuts after answers: what was answered stays, whatever a person does before the next start.

Run as a program: ``python -m tests.crash.power_cuts [--cuts N]``.  A cut is simulated as the hardest
that a disk may do which keeps what it said was written: the journal's write-ahead log ends where it
was synchronised last, since how an operation ended is not; and of the old texts that were removed
some are there again, since their removal is not either.  Then a person edits, removes or takes
back some of the files, and the next start finds what it finds.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from tests.crash.calls import build

AGENT = Session("s", Actor("agent", "crash"))
PERSON = Session("p", Actor("person", "ada"))
NAMES = [f"f{number}.txt" for number in range(4)]
LINES = 12


def text_of(name: str, version: int) -> str:
    return f"{name} version {version}\n" + "".join(f"line {one}\n" for one in range(LINES))


def work(base: Path, seed: int) -> None:
    """Some operations, each of which is written down once it is answered; then the end."""
    rng = random.Random(seed)
    shim = ctypes.CDLL(None)
    shim.synced.restype = ctypes.c_long
    shim.watch(os.fsencode(base / "state" / "journal.db-wal"))
    workspace = open_workspace([str(base / "root")], state_dir=str(base / "state"))
    versions = dict.fromkeys(NAMES, 0)
    answered: list[dict[str, object]] = []
    for number in range(1, rng.randint(2, 5)):
        chosen = rng.sample(NAMES, rng.randint(1, len(NAMES)))
        was: dict[str, str | None] = {}
        becomes: dict[str, str | None] = {}
        with workspace.draft(AGENT, "patch_apply") as draft:
            for name, target in zip(chosen, draft.open_all(chosen), strict=True):
                was[name] = target.document.text if target.document else None
                if was[name] is not None and rng.random() < 0.2:
                    draft.delete(target, emptied_by=None)
                    becomes[name] = None
                else:
                    versions[name] = number
                    becomes[name] = text_of(name, number)
                    draft.write(target, text_of(name, number))
            receipt = workspace.submit(draft, f"operation {number}")
        # As the draft had them: an operation's files are numbered in the order of its changes.
        order = [one.path for one in workspace.operation(str(receipt.operation)).changes.paths]
        answered.append({"id": receipt.operation, "was": was, "becomes": becomes, "order": order})
    (base / "answered.json").write_text(json.dumps({"answered": answered, "synced": shim.synced()}))
    os.kill(os.getpid(), signal.SIGKILL)


def one(base: Path, seed: int) -> str:
    """One cut; what a person did before the next start.

    Raises:
        AssertionError: Something was not as it was promised.
    """
    rng = random.Random(seed)
    root = base / "root"
    root.mkdir()
    for name in NAMES:
        (root / name).write_text(text_of(name, 0))
    pid = os.fork()
    if pid == 0:
        try:
            work(base, seed)
        finally:
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the child came to an end by an exception"
    said = json.loads((base / "answered.json").read_text())
    log = base / "state" / "journal.db-wal"
    assert said["synced"] > 0, "nothing was synchronised"
    os.truncate(log, said["synced"])
    (base / "state" / "journal.db-shm").unlink()
    last = said["answered"][-1]
    for number, name in enumerate(last["order"]):
        if last["was"][name] is not None and rng.random() < 0.5:
            back = root / f".filepact-{last['id']}-{number}.tmp"
            back.write_text(last["was"][name])
            back.chmod(0o644)
    done = rng.choice(("nothing", "edited one", "edited all", "removed one", "went back in one"))
    files = sorted(path for path in root.iterdir() if not path.name.startswith("."))
    touched = files if done == "edited all" else rng.sample(files, min(1, len(files)))
    for path in touched if done != "nothing" else []:
        if done == "removed one":
            path.unlink()
        elif done == "went back in one":
            path.write_text(text_of(path.name, 0))
        else:
            path.write_text(path.read_text() + "typed by a person\n")
    found = {path.name: path.read_text() for path in root.iterdir() if path.name[0] != "."}
    with open_workspace([str(root)], state_dir=str(base / "state")) as workspace:
        now = {path.name: path.read_text() for path in root.iterdir()}
        assert now == found, f"the start has changed files: {sorted(now)} {sorted(found)}"
        assert not workspace.unfinished(), "an operation is not settled"
        for operation in said["answered"]:
            state = workspace.operation(operation["id"]).state
            assert state == "applied", f"what was answered is {state} ({done})"
        # A file that was made and then edited is not removed by undo, nor one removed and remade.
        replaced = None not in [*last["was"].values(), *last["becomes"].values()]
        if done.startswith("edited") and replaced:
            workspace.undo(PERSON, last["id"], dry_run=False)
            for name, text in last["was"].items():
                typed = "typed by a person\n" if root / name in touched else ""
                assert (root / name).read_text() == text + typed, "undo is not right"
    return done


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.crash.power_cuts", description=__doc__)
    parser.add_argument("--cuts", type=int, default=20, help="how many")
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.base is None:
        with tempfile.TemporaryDirectory() as folder:
            shim = build(Path(folder))
            words = [sys.executable, "-m", "tests.crash.power_cuts", *arguments, "--base", folder]
            return subprocess.run(
                words, env=os.environ | {"LD_PRELOAD": str(shim)}, check=False
            ).returncode
    did: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(given.cuts):
        base = given.base / "w"
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        try:
            did[one(base, seed)] += 1
        except AssertionError as error:
            wrong.append(f"cut {seed}: {error}")
    for said in wrong:
        print(said)
    print(f"{given.cuts} power cuts, {len(wrong)} wrong; a person meanwhile: {dict(did)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A tree with more files than are looked at, by hooks, a guard and runs with and without layers: for `scripts/deep`.

Run as a program: ``python -m tests.faces.large_trees [--files N]``.  Beyond `MOST_FILES` of them something is
changed by each; whatever is not recorded has to be said, at once and by every command that may be asked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.fs.watch import MOST_FILES
from test_hook_daemon import Hooks
from tests import forked
from tests.faces.guarded import Folder, wait_until_idle

if TYPE_CHECKING:
    from collections.abc import Callable

SAID = "not watched here"


def plant(root: Path, files: int) -> list[str]:
    """Files in folders of a hundred; their names in order."""
    names = []
    for number in range(files):
        folder = f"d{number // 5_000:03}/e{number // 100:05}"
        if number % 100 == 0:
            (root / folder).mkdir(parents=True, exist_ok=True)
        names.append(f"{folder}/{number:07}.txt")
        (root / names[-1]).write_text(f"{number}\n")
    return names


class Large:
    """The tree, and commands about it."""

    def __init__(self, place: Path, files: int) -> None:
        self.hooks = Hooks(place)
        self.root = self.hooks.root
        self.names = plant(self.root, files)
        self.beyond = max(0, files + 2 - MOST_FILES)  # with those that are there already
        self.place = place
        self.first, self.last, self.other = self.names[0], self.names[-1], self.names[-2]

    def says(self, *words: str, state: Path) -> str:
        done = forked.run(
            [words[0], "--state", str(state), *words[1:]],
            cwd=self.root,
            env={**self.hooks.environment, "FILEPACT_ROOT": str(self.root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return " ".join((done.stdout + done.stderr).split())

    def text(self, name: str) -> str:
        return (self.root / name).read_text()

    def check_said(self, state: Path) -> None:
        """All that may be asked tells it, and the number is true; then all comes back."""
        wanted = f"{self.beyond:,} file" if self.beyond else ""
        for words in (("doctor",), ("log",), ("undo", "--unattended")):
            said = self.says(*words, state=state)
            assert (SAID in said) == bool(self.beyond), (words, said)
            assert wanted in said, (words, said)
            assert not (self.beyond and "All is well" in said), said

    def by_hooks(self) -> None:
        hooks = self.hooks
        hooks.call("SessionStart")
        (pid,) = hooks.daemons()
        wait_until_idle(pid)
        # The names stand in the command; that of the last is made within it.
        command = f"echo x > {self.first}; echo x > {self.other}; sh {self.place / 'hidden.sh'}"
        (self.place / "hidden.sh").write_text(f"echo x > {self.last}; echo x > {self.names[1]}")
        told = hooks.call("PreToolUse", command=command)
        assert (SAID in told) == bool(self.beyond), told
        subprocess.run(["sh", "-c", command], cwd=self.root, check=True)
        hooks.call("PostToolUse", command=command)
        self.check_said(hooks.state)
        kept = ["x\n"] if self.beyond else []
        assert [self.text(one) for one in (self.first, self.names[1])] == ["0\n", "1\n"]
        assert self.text(self.other) == f"{len(self.names) - 2}\n"
        assert self.text(self.last) in (kept or [f"{len(self.names) - 1}\n"])
        hooks.kill()

    def by_guard(self) -> None:
        folder = Folder.__new__(Folder)
        folder.root, folder.state = self.root, self.place / "guard"
        folder.config = self.place / "settings.toml"
        folder.config.write_text(f"[recording]\nquiet = 0.5\nlongest = 2\nfiles = {MOST_FILES}\n")
        folder.common = ("--state", str(folder.state), "--config", str(folder.config))
        with folder.guard() as process:
            state = json.loads(folder.run_here("guard", str(self.root), "--status", "--json"))
            assert state["unwatched"] == self.beyond, state
            wait_until_idle(process.pid)
            folder.shell(f"echo x > {self.names[2]}; echo x > {self.last}")
        # At its end it looks for the last time; until then scans come the less often the longer they take.
        (made, *_) = folder.log()
        assert self.names[2] in [one["path"] for one in made["files"]]
        for words in (("doctor",), ("log",), ("undo", "--unattended", made["id"])):
            said = folder.run_here(*words, "--root", str(self.root))
            assert (SAID in said) == bool(self.beyond), (words, said)
        assert self.text(self.names[2]) == "2\n"

    def by_run(self, *options: str) -> None:
        state = self.place / f"run{len(options)}"
        script = f"echo y > {self.names[3]}; echo y > {self.last}"
        before = self.text(self.last)
        said = self.says("run", *options, "--", "sh", "-c", script, state=state)
        if options:
            assert (SAID in said) == bool(self.beyond), said
            self.check_said(state)
        else:
            # A layer has all that was changed, wherever it is.
            assert "2 files changed" in said, said
            back = self.says("undo", "--unattended", state=state)
            assert self.text(self.last) == before, back
        assert self.text(self.names[3]) == "3\n", said


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.faces.large_trees", description=__doc__)
    parser.add_argument("--files", type=int, default=120_000, help="how many")
    given = parser.parse_args(arguments)
    # Other names for the folders that are searched for secrets are nobody's matter here.
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        large = Large(Path(place), given.files)
        ways: dict[str, Callable[[], None]] = {
            "hooks": large.by_hooks,
            "guard": large.by_guard,
            "run": large.by_run,
            "run --layers off": lambda: large.by_run("--layers", "off"),
        }
        wrong, took = [], []
        for name, act in ways.items():
            begun = time.monotonic()
            try:
                act()
            except AssertionError as error:
                wrong.append(f"{name}: {error}")
            took.append(f"{name} {time.monotonic() - begun:.0f} s")
    for said in wrong:
        print(f"WRONG {said}")
    print(f"{given.files:,} files, {len(wrong)} wrong: {', '.join(took)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

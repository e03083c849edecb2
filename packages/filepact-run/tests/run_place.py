"""A root in which `filepact run` is used as people use it, and the command as a user who is no administrator."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import forked

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 30.0
TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
AS_NOBODY = """
import ctypes, encodings, os, pkgutil, pwd
from importlib import import_module
import filepact, filepact_run
from filepact.extension import extensions
from filepact_cli.main import run
extensions()
# Where the interpreter lies only an administrator may read, perhaps.
for package in (filepact, filepact_run, encodings):
    for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if "__main__" not in one.name and "mbcs" not in one.name and "oem" not in one.name:
            import_module(one.name)
nobody = pwd.getpwnam("nobody")
os.setgroups([])
os.setresgid(*3 * [nobody.pw_gid])
os.setresuid(*3 * [nobody.pw_uid])
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a process that has always been nobody's
root = os.environ["HOME"].replace("/home", "/root")
os.chdir(root)
script = "echo x > a.txt; mkdir d; echo y > d/b; echo z > /etc/filepact-x; exit 5"
raise SystemExit(run(["--root", root, "run", "--layers", "required", "--", "sh", "-c", script]))
"""


class Place:
    """A root with a state folder and a home of its own, and the command in it."""

    def __init__(self, base: Path) -> None:
        self.root, self.home = base / "root", base / "home"
        self.shorter: dict[str, float] = {}
        self.root.mkdir()
        self.home.mkdir()
        self.environment = {
            **os.environ,
            "HOME": str(self.home),
            "FILEPACT_STATE_DIR": str(base / "state"),
        }

    def file(self, name: str, text: str = TEXT) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def options(self, **more: Any) -> dict[str, Any]:
        return {
            "cwd": self.root,
            "env": self.environment,
            "text": True,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            # Known to processes that are forked alone.
            **({"shorter": self.shorter} if self.shorter else {}),
            **more,
        }

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return forked.run(words, stdin=subprocess.DEVNULL, **self.options())

    def run(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.command("run", *options, "--", "sh", "-c", script)

    def facts(self, *words: str) -> Any:
        return json.loads(self.command(*words, "--json").stdout)

    def beside(self, script: str, meanwhile: Callable[[], object]) -> str:
        """Run a script that says when it has begun, and waits; do something; its messages."""
        words = ("run", "--", "sh", "-c", script)
        with forked.Command(words, **self.options(stdin=subprocess.PIPE)) as process:
            assert process.stdout.readline() == "begun\n"
            meanwhile()
            return str(process.communicate("go\n")[1])

    def state(self) -> dict[str, str | None]:
        return {
            str(path.relative_to(self.root)): None
            if path.is_dir() and not path.is_symlink()
            else os.readlink(path)
            if path.is_symlink()
            else path.read_text()
            for path in sorted(self.root.rglob("*"))
        }

    def left_over(self) -> list[str]:
        """What is left of runs here though it had the time to end.

        A process that was killed closes its files before it is gone.
        """
        until = time.monotonic() + PATIENCE
        while (found := self._mounts_and_processes()) and time.monotonic() < until:
            pass
        return found

    def _mounts_and_processes(self) -> list[str]:
        """Mounts of ours, and processes that work here or have this place in their words."""
        word = str(self.root.parent)
        found = [
            line for line in Path("/proc/self/mounts").read_text().splitlines() if word in line
        ]
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                try:
                    words = (process / "cmdline").read_bytes()
                    folder = os.readlink(process / "cwd")
                except OSError:
                    continue
                if word.encode() in words or folder.startswith(word):
                    found.append(f"{process.name} {words!r}")
        return found

    def operations(self) -> list[str]:
        return [one["id"] for one in self.facts("log")["operations"]]

    def waiting(self) -> list[Any]:
        return list(self.facts("pending")["pending"])

    def undo(self, *words: str) -> None:
        done = self.command("undo", "--unattended", *words)
        assert done.returncode == 0, done.stderr

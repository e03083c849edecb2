"""Every check of the guard taken out in turn: some test has to notice.

A check is a statement that raises a refusal by its own judgement; one that only puts a refusal of
the system into words is none, and the tests of those run as another user.  The source is copied, one such statement becomes
``pass``, and the tests that are about it run on the copy until one fails.  A check whose absence
no test notices is a survivor: it is either not needed or not tested.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src"

FS = (
    "tests/fs/test_resolve.py",
    "tests/fs/test_root.py",
    "tests/fs/test_mounts.py",
    "tests/agreement/test_resolvers.py",
    "tests/fs/test_read.py",
)
DOOR = (
    "tests/workspace/test_guard.py",
    "tests/workspace/test_changes.py",
    "tests/workspace/test_content_net.py",
)

GUARDED: dict[str, tuple[str, ...]] = {
    "filepact/fs/path_form.py": FS,
    "filepact/fs/resolve.py": FS,
    "filepact/fs/mounts.py": FS,
    "filepact/fs/read_only_root.py": (*FS, "tests/fs/test_home_secrets.py"),
    "filepact/fs/read.py": (*FS, "tests/fs/test_atomic.py", "tests/fs/test_walk.py"),
    "filepact/workspace/guard.py": DOOR,
    "filepact/workspace/location.py": DOOR,
    "filepact/workspace/authorizer.py": DOOR,
}
"""Modules that refuse, and the tests that are about them, those that notice most first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One statement that refuses."""

    module: str
    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.first}: {self.text}"

    @property
    def name(self) -> str:
        """What it is called whatever stands above it."""
        return f"{self.module}: {self.text}"


NOTICED: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("noticed.json").read_text(encoding="utf-8")
)
"""Tests that noticed each check once, which are asked first, so that most need no others.

More than one where several checks of a module read alike.
"""


def checks() -> Iterator[Check]:
    """Every check in the guarded modules."""
    for module in GUARDED:
        tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
        handled = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node not in handled and node.exc is not None:
                text = ast.unparse(node).partition("\n")[0][:70]
                yield Check(module, node.lineno, node.end_lineno or node.lineno, text)


PLUGINS = ("-p", "xdist", "-p", "timeout")
"""Those that the project's settings name; all that are installed take longer to load than most tests do."""


def without(check: Check, copy: Path) -> None:
    """Take a check out of a copy of the source."""
    path = copy / check.module
    lines = (SOURCE / check.module).read_text(encoding="utf-8").splitlines(keepends=True)
    first = lines[check.first - 1]
    indent = first[: len(first) - len(first.lstrip())]
    before = first[: first.index("raise")] if "raise" in first else indent
    lines[check.first - 1 : check.last] = [f"{before}pass\n"]
    path.write_text("".join(lines), encoding="utf-8")


def notices(check: Check, copy: Path) -> str:
    """The test that fails without a check; empty when none does."""
    without(check, copy)
    try:
        known = NOTICED.get(check.name, [])
        for tests in filter(None, (known, *([file] for file in GUARDED[check.module]))):
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p"),
                    *("no:cacheprovider", *PLUGINS, "-m", "not slow", "--timeout=60", *tests),
                ],
                cwd=REPOSITORY,
                env=os.environ
                | {
                    "PYTHONPATH": str(copy),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                },
                capture_output=True,
                text=True,
                check=False,
            )
            # A test that is gone is not one that noticed; the whole files are asked then.
            if done.returncode == 1 or (done.returncode and tests != known):
                failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
                return failed[0] if failed else f"{' '.join(tests)}: does not run"
        return ""
    finally:
        shutil.copyfile(SOURCE / check.module, copy / check.module)


def survivors(folder: Path, *, part: int = 0, parts: int = 1) -> tuple[int, list[Check]]:
    """How many checks were taken out, and those that no test missed.

    Args:
        folder: An empty folder for copies of the source.
        part: Which share of the checks is tried, from 0.
        parts: How many shares there are.
    """
    tried = list(checks())[part::parts]
    copies = [folder / f"copy{number}" for number in range(2)]
    for copy in copies:
        # With what is compiled: all but the one module is as it was.
        shutil.copytree(SOURCE, copy)

    def work(number: int) -> list[Check]:
        return [check for check in tried[number::2] if not notices(check, copies[number])]

    with ThreadPoolExecutor(len(copies)) as pool:
        found = [check for some in pool.map(work, range(len(copies))) for check in some]
    return len(tried), found

"""The program in a Linux without what macOS does not have: `tests.as_macos`."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.architecture.project import ROOT
from tests.as_macos import missing, python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=missing() or "it is here"),
]

FLOORS = (
    *(
        f"tests/fs/test_{what}.py"
        for what in ("atomic", "in_place", "inotify", "kept_copies", "kernel", "locks", "mounts")
    ),
    *(f"tests/fs/test_{what}.py" for what in ("resolve", "root", "staged", "state", "systems")),
    *("tests/fs/test_walk.py", "tests/store/test_files.py", "tests/faces/test_cli_servers.py"),
    *(
        f"tests/workspace/test_{what}.py"
        for what in ("recovery", "selected_undo", "true_names", "letter_case", "kinds")
    ),
)
"""The floors fs, store and workspace whole take three times as long: `.github/workflows/ci.yml` runs them."""

PROGRAM = """
import fcntl, os, signal, socket, sys
from filepact.fs import kernel
print(sys.platform, kernel.renameat2.__module__, kernel.openat2.__module__)
for module in (fcntl, os, signal, socket):
    for name in ("F_OFD_SETLK", "O_PATH", "getxattr", "sigtimedwait", "SO_PEERCRED"):
        assert not hasattr(module, name), name
try:
    os.stat(f"/proc/{os.getpid()}")
except FileNotFoundError:
    print("no /proc")
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with some words in the stand-in."""
    command = [*python(folder), *words]
    return subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_nothing_of_linux_is_left_there(tmp_path: Path) -> None:
    done = run(tmp_path, "-I", "-c", PROGRAM)
    assert done.stdout.startswith("darwin filepact.fs.darwin filepact.fs.kernel\n"), done


def test_every_step_of_the_tour_comes_out(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "filepact", "tour")
    assert done.returncode == 0, done
    assert "13 of 13" in done.stdout
    # The exchange of two names is that of macOS, and nothing of what it falls back on.
    assert "cannot exchange" not in done.stdout


def test_the_floors_that_lean_on_the_system_hold(tmp_path: Path) -> None:
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--short", *FLOORS)
    done = run(tmp_path, *words, f"--basetemp={tmp_path / 'tests'}")
    assert done.returncode == 0, done.stdout[-4000:]

"""What tests need of the system, and not every system has: it is asked for, and where it is missing they are skipped."""

from __future__ import annotations

import os
import sys

import pytest

from filepact.fs.kernel import inotify_init, openat2
from filepact.fs.read import has_proc
from filepact.fs.sandbox import landlock_abi

__all__ = [
    "BARE_PYTHON",
    "CAPABILITIES",
    "CONFIG_FOLDER",
    "DESCRIPTORS",
    "HELD_FILES",
    "LANDLOCK",
    "LEASES",
    "LINUX_PROGRAMS",
    "MOUNTS",
    "NOTICES",
    "ONE_STEP",
    "PROCESSES",
    "STATE_FOLDER",
    "UNNAMED_FILES",
]

if sys.platform == "win32":
    _LEASES = False
else:
    import fcntl

    _LEASES = hasattr(fcntl, "F_SETLEASE")


def _needs(here: bool, missing: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not here, reason=missing)


def _one_step() -> bool:
    folder = os.open("/", os.O_RDONLY)
    try:
        os.close(openat2(folder, ".", os.O_RDONLY, 0))
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _notices() -> bool:
    try:
        os.close(inotify_init())
    except OSError:
        return False
    return True


CONFIG_FOLDER = "Library/Application Support" if sys.platform == "darwin" else ".config"
STATE_FOLDER = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
"""Where in a person's home folder programs have their settings, and what they keep."""

BARE_PYTHON = _needs(
    "macos_fcntl" not in sys.modules,
    "the stand-in for macOS is an environment of Python's, and imports before anybody else does",
)
LINUX_PROGRAMS = _needs(
    "macos_fcntl" not in sys.modules or os.path.lexists("/proc/self"),
    "a browser that is built for Linux needs /proc, which the stand-in for macOS covers",
)
NOTICES = _needs(_notices(), "the system gives no notices of changes")
ONE_STEP = _needs(_one_step(), "the system has no openat2")
LANDLOCK = _needs(landlock_abi() > 0, "the system has no Landlock")
HELD_FILES = _needs(has_proc(), "no file can be held here without being opened")
LEASES = _needs(_LEASES, "the system does not tell here who writes a file")
UNNAMED_FILES = _needs(hasattr(os, "O_TMPFILE"), "every file has a name here")
DESCRIPTORS = _needs(os.path.exists("/dev/fd"), "what a shell has open has no name here")
PROCESSES = _needs(os.path.lexists("/proc/self"), "programs are not told in /proc here")
MOUNTS = _needs(os.path.lexists("/proc/self/mountinfo"), "mounts are not told in /proc here")
CAPABILITIES = _needs(
    os.path.lexists("/proc/sys/kernel/cap_last_cap"), "root has no capabilities here"
)

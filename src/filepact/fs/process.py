"""What other processes are, for people who wonder whom they wait for."""

from __future__ import annotations

import os
import struct
import sys
from contextlib import suppress

__all__ = ["described", "locked_by"]

_LONGEST = 80
_STATES = {"T": ", which is stopped", "t": ", which a debugger holds", "Z": ", which has ended"}


def described(pid: int) -> str:
    """A process by its number, its command and what keeps it, as far as the system tells."""
    command = state = ""
    # Behind the second wall, and on systems without it, the number has to do.
    with suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as told:
            words = told.read(4_096).split(b"\0")
        text = " ".join(word.decode("utf-8", "replace") for word in words if word)
        command = "".join(one if one.isprintable() else "?" for one in text)
        with open(f"/proc/{pid}/stat", "rb") as told:
            # The name in parentheses may hold anything, parentheses too.
            state = told.read(4_096).rpartition(b")")[2].split()[0].decode()
    if len(command) > _LONGEST:
        command = f"{command[: _LONGEST - 3]}..."
    said = f"process {pid}" + (f": {command}" if command else "")
    return said + _STATES.get(state, "")


def locked_by(path: str, first: int, count: int) -> str:
    """The process that holds a record lock on some bytes of a file; empty where none is known.

    The file stays open for good: closing it would free what this process has locked in it by
    other descriptors, as SQLite does (see "Advisory record locking" in fcntl_locking(2)).
    """
    import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

    if sys.platform == "darwin":
        form, wanted = "qqihh", (first, count, 0, fcntl.F_WRLCK, os.SEEK_SET)
    else:
        form, wanted = "hhqqi0q", (fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        found = struct.unpack(
            form, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(form, *wanted))
        )
    except OSError:
        return ""
    kind, pid = (found[3], found[2]) if sys.platform == "darwin" else (found[0], found[4])
    return described(pid) if kind != fcntl.F_UNLCK and pid > 0 else ""

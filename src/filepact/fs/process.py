"""What other processes are, for people who wonder whom they wait for."""

from __future__ import annotations

from contextlib import suppress

__all__ = ["described"]

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

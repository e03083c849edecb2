"""Which processes are above another, and which of them are known to be agents' programs.

Such a program is noted in the state folder while it has a call of its own under way, or is run by us: a file for
each, so that to look one up opens no other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.person import Ancestor, Caller, beyond_host, caller, host_among

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ancestors", "forget_host", "note_host", "who_calls"]

_MOST: Final = 64
_NOTES: Final = "hooks"
_PREFIX: Final = "host-"
_WORDS: Final = 4_096
_NAME: Final = 256


def ancestors(process: int, *, commands: bool = True) -> tuple[tuple[Ancestor, ...], bool]:
    """A process and those above it, the nearest first, and whether these are all.

    Args:
        process: The number of the first one.
        commands: Whether their command lines are wanted as well.
    """
    found: list[Ancestor] = []
    while process and len(found) < _MOST:
        try:
            # The name stands in brackets and may hold any; what follows the last one is numbers.
            told = _read(f"/proc/{process}/stat", _WORDS).partition("(")[2]
            name, _, rest = told.rpartition(")")
            numbers = rest.split()
            words = _read(f"/proc/{process}/cmdline", _WORDS) if commands else ""
            said = tuple(words.rstrip("\0").split("\0")) if words else ()
            found.append(Ancestor(process, numbers[19], name, said))
            process = int(numbers[1])
        except (OSError, ValueError, IndexError):
            return tuple(found), False
    return tuple(found), bool(found) and not process


def who_calls(states: Iterable[str], *, serves: bool = False) -> Caller:
    """Who has called this program.

    Args:
        states: State folders that may hold notes.
        serves: Whether it serves the program that has started it, so that only what is above that one counts.
    """
    chain, known = ancestors(os.getppid())
    if serves:
        chain = tuple(beyond_host(chain))
    noted: dict[tuple[int, str], str] = {}
    for state in dict.fromkeys(states):
        for one in chain:
            with suppress(OSError):
                noted[one.process, one.started] = _read(_note(state, one), _NAME) or one.program
    # Some agents set their variables for their servers as well.
    return caller(chain, noted, {} if serves else os.environ, known=known)


def note_host(state: str, above: Sequence[Ancestor], agent: str) -> Ancestor | None:
    """Note the program for which a hook was called, or that we run.

    Args:
        state: The state folder.
        above: The processes above the hook, the nearest first.
        agent: The agent's name; empty where it is not known yet.

    Returns:
        The program; None where a person may be it.
    """
    host = host_among(above)
    if host is None:
        return None
    folder = os.path.join(state, _NOTES)
    try:
        os.makedirs(state, 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(_note(state, host), flags, 0o600)
    except OSError:
        return host  # Noted before, or there is no folder to note anything in.
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(agent or host.agent)
    _forget(folder)
    return host


def forget_host(state: str, host: tuple[int, str]) -> None:
    """Take back what `note_host` has noted of a process, by its number and start time."""
    with suppress(OSError):
        os.unlink(os.path.join(state, _NOTES, f"{_PREFIX}{host[0]}-{host[1]}"))


def _forget(folder: str) -> None:
    """Remove the notes of processes that are gone, so that there are never more of them than processes."""
    for name in os.listdir(folder):
        if not name.startswith(_PREFIX):
            continue
        process, _, started = name.removeprefix(_PREFIX).partition("-")
        # What a sandbox does not show is not gone.
        there, _ = ancestors(int(process), commands=False) if process.isdigit() else ((), False)
        gone = there[0].started != started if there else not os.path.lexists(f"/proc/{process}")
        if gone and os.path.lexists("/proc/self"):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _note(state: str, one: Ancestor) -> str:
    return os.path.join(state, _NOTES, f"{_PREFIX}{one.process}-{one.started}")


def _read(path: str, most: int) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most).decode("utf-8", "replace")
    finally:
        os.close(descriptor)

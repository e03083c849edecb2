"""How a server is started, and the plain way to do so: a warden of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from filepact.lsp.failures import GoneError

__all__ = ["GIBIBYTE", "WARDEN", "Ends", "Launch", "Starter", "start_warden", "warden_command"]

GIBIBYTE: Final = 1024**3
WARDEN: Final = os.path.join(os.path.dirname(__file__), "warden.py")  # noqa: PTH118, PTH120 - names only

Ends = tuple[int, int, int, int]
"""The warden's ends of a server's input, output and complaints, and of the line to us."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started.

    Attributes:
        command: The program, absolute or found on the environment's path, and its arguments;
            `{root}` in these stands for the folder.
        folder: The working folder, absolute.
        environment: All variables that it sees.
        memory: Bytes that it may use with all that it starts; 0 for any number.
        starter: Who starts its warden; None for ourselves.
    """

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    memory: int = 0
    starter: Starter | None = field(default=None, compare=False, repr=False)

    @property
    def words(self) -> tuple[str, ...]:
        """The command as it is for this folder."""
        program, *others = self.command
        return (program, *(word.replace("{root}", self.folder) for word in others))


Starter = Callable[[Launch, Ends], Callable[[], object]]
"""Starts a warden with its ends, which stay the caller's to close, and hands back what is to be
called when it is gone.  Raises `GoneError` if it cannot."""


def warden_command(line: int | str, memory: int) -> list[str]:
    """What starts a warden, to be followed by the server's command.

    Args:
        line: The number of its end of the line to us, or what stands for that.
        memory: Bytes that the server may use; 0 for any number.
    """
    return [sys.executable, "-I", "-S", WARDEN, str(line), str(memory)]


def start_warden(launch: Launch, ends: Ends) -> Callable[[], object]:
    """Start a warden as a child of ours.

    Raises:
        GoneError: It cannot be started.
    """
    stdin, stdout, stderr, line = ends
    try:
        child = subprocess.Popen(  # noqa: S603 - programs that people have installed or named
            [*warden_command(line, launch.memory), *launch.words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=launch.folder,
            env=dict(launch.environment),
            pass_fds=(line,),
            start_new_session=True,
        )
    except OSError as error:
        raise GoneError(f"cannot start: {os.strerror(error.errno or 0)}") from error
    return child.wait

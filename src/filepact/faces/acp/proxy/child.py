"""The agent's program: started, heard, and gone with this one, whatever happens to either."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact import lsp
from filepact.errors import InvalidParamsError
from filepact.wire.pipes import read_some, write_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Child"]

_PATIENCE: Final = 3.0  # seconds to end by itself when its input ends
_AFTER_TERM: Final = 2.0
_STDERR: Final = 2
_KILLED: Final = -signal.SIGKILL


class Child:
    """The agent's program.

    Args:
        command: The program and its arguments.

    It is started at once, and `begun` waits for that.
    """

    def __init__(self, command: Sequence[str]) -> None:
        # Behind a process that ends all that the agent starts, be it that we are killed: the
        # system closes our end of the line to it then.
        self._line, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - the person's own command
                [
                    sys.executable,
                    "-I",
                    "-S",
                    f"{lsp.__path__[0]}/supervisor.py",
                    "run",
                    str(end),
                    "0",
                    *command,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(end,),
                start_new_session=True,
            )
        self._command = command
        self._status: int | None = None
        self._said = b""
        self._agent = 0

    def begun(self) -> None:
        """Wait until it has begun, and begin to listen to its standard error.

        Raises:
            InvalidParamsError: It cannot be started.
        """
        heard = self._hear(None)
        if heard is not None and heard[0] == "supervisor":
            heard = self._hear(None)
        word, number = heard or ("failed", 0)
        if word != "started":
            self._status = _KILLED
            self._line.close()
            self._process.communicate()
            raise InvalidParamsError(
                f"the agent cannot be started: {self._command[0]}: {os.strerror(number)}",
                hint="Give its command after `--`, as the editor has it.",
                command=self._command[0],
            )
        self._agent = number
        self._listener = threading.Thread(target=self._listen, name="agent-words", daemon=True)
        self._listener.start()

    @property
    def pipes(self) -> tuple[int, int]:
        """Descriptors to read what it says, and to write what it is to hear."""
        if self._process.stdout is None or self._process.stdin is None:
            raise AssertionError
        return self._process.stdout.fileno(), self._process.stdin.fileno()

    def end(self) -> int:
        """Let it end, or end it, with everything that it started; its exit status.

        A second call does nothing.
        """
        if self._status is not None:
            return self._status
        self._status = _KILLED
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        ended = self._hear(_PATIENCE)
        if ended is None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._agent, signal.SIGTERM)
            ended = self._hear(_AFTER_TERM)
        if ended is not None and ended[0] == "ended":
            self._status = ended[1]
        self._line.close()
        self._process.wait()
        return self._status

    def _hear(self, patience: float | None) -> tuple[str, int] | None:
        """What is said of the agent next: how it began, or how it ended."""
        until = None if patience is None else time.monotonic() + patience
        while b"\n" not in self._said:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._line], [], [], left)[0]:
                return None
            data = self._line.recv(256)
            if not data:
                return None
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        word, _, number = line.decode("ascii", "replace").partition(" ")
        return word, int(number)

    def _listen(self) -> None:
        """Pass on what it writes to its standard error, so that its pipe never fills up."""
        if self._process.stderr is None:
            return
        while data := read_some(self._process.stderr.fileno()):
            # An editor may not read it, and the agent must not have to wait for that.
            write_at_once(_STDERR, data)

"""The agent's program: started, heard, and gone with this one, whatever happens to either."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.errors import InvalidParamsError
from filepact.faces.wire.pipes import read_some, write_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Child"]

_PATIENCE: Final = 3.0  # seconds to end by itself when its input ends
_AFTER_TERM: Final = 2.0
_STDERR: Final = 2

_WATCH: Final = 'read -r _; kill -9 "-$1" 2>/dev/null'
"""Waits for the end of its input, which comes when the last holder of the other end is gone, be
it by SIGKILL, and then ends every process that the agent has started."""


class Child:
    """A program with a process group of its own.

    Args:
        command: The program and its arguments.

    Raises:
        InvalidParamsError: It cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the person's own command
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise InvalidParamsError(
                f"the agent cannot be started: {command[0]}: {error.strerror}",
                hint="Give its command after `--`, as the editor has it.",
                command=command[0],
            ) from None
        self._status: int | None = None
        self._watch = subprocess.Popen(  # noqa: S603 - our own words
            ["/bin/sh", "-c", _WATCH, "sh", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
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
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        for patience, then in ((_PATIENCE, signal.SIGTERM), (_AFTER_TERM, signal.SIGKILL)):
            try:
                self._process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, then)
        self._status = self._process.wait()
        # What it started and left behind; and the watch, whose input ends now, finds nobody.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._watch.kill()
        self._watch.wait()
        return self._status

    def _listen(self) -> None:
        """Pass on what it writes to its standard error, so that its pipe never fills up."""
        if self._process.stderr is None:
            return
        while data := read_some(self._process.stderr.fileno()):
            # An editor may not read it, and the agent must not have to wait for that.
            write_at_once(_STDERR, data)

"""An interactive shell of a person on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PATIENCE = 120.0
QUIET = 1.5


class Shell:
    """An interactive bash of a person on a terminal of its own."""

    def __init__(
        self, root: Path, environment: Mapping[str, str], answers: Mapping[bytes, bytes]
    ) -> None:
        """Start it in a folder; a terminal answers some questions that programs ask it."""
        self._answers = answers
        self._text = getincrementaldecoder("utf-8")(errors="replace")
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.chdir(root)
            environment = {"TERM": "dumb", **environment, "PS1": "outer> "}
            words = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
            os.execvpe("bash", words, environment)  # noqa: S606 - a test
        self._shown = ""
        self.until("outer> ")

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, wanted: str) -> str:
        """All that is shown up to and with a text, from where the last one ended."""
        end = time.monotonic() + PATIENCE
        while wanted not in self._shown:
            ready = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, f"{wanted!r} is not in {self._shown!r}"
            self._read()
        found, self._shown = self._shown.split(wanted, 1)
        return found + wanted

    def _read(self) -> None:
        data = os.read(self._terminal, 65_536)
        for question, answer in self._answers.items():
            if question in data:
                os.write(self._terminal, answer)
        self._shown += self._text.decode(data)

    def quiet(self) -> str:
        """All that is shown from where the last one ended until nothing more comes."""
        end = time.monotonic() + PATIENCE
        while select.select([self._terminal], [], [], QUIET)[0]:
            assert time.monotonic() < end, self._shown
            self._read()
        found, self._shown = self._shown, ""
        return found

    def line(self, text: str, wanted: str = "") -> str:
        """Type a line; what is shown after its echo, up to a text."""
        self.type(f"{text}\n")
        self.until(f"{text}\r\n")
        return self.until(wanted) if wanted else ""

    def status(self) -> str:
        self.line("echo ended with $?.", "ended with ")
        return self.until(".")[:-1]

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.close(self._terminal)
        os.waitpid(self._pid, 0)

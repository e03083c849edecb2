"""Language servers for a process that is about to confine itself, so that it can start none later.

What it starts would be as confined as itself, and could not even be run.  A nursery is a small
process made before; it starts servers' wardens outside the wall, but only those that were agreed
upon before anybody was served: whoever should take over the confined process gains no way to run
anything else.  The servers' pipes and their wardens' lines are made here and handed over, so that
they are served and ended as always.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from filepact.lsp.failures import GoneError
from filepact.lsp.launch import warden_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from filepact.lsp.launch import Ends, Launch

__all__ = ["Nursery"]

_MATRON: Final = os.path.join(os.path.dirname(__file__), "matron.py")  # noqa: PTH118, PTH120 - names only
_SEND_SECONDS: Final = 5.0
_END_SECONDS: Final = 5.0


class Nursery:
    """A process that starts servers for us.

    Make one with `start`, and agree with it upon what may be started.  It ends with us, however we
    end; servers that run then are ended by their own wardens.  Every method may be called from any
    thread.
    """

    def __init__(self, line: socket.socket, child: subprocess.Popen[bytes]) -> None:
        self._line = line
        self._child = child
        self._guard = threading.Lock()
        self._agreed: dict[tuple[tuple[str, ...], int], int] | None = None
        self._over = ""

    @classmethod
    def start(cls) -> Nursery:
        """Start the process; it gets nothing of what we have open, and nothing of our memory.

        Raises:
            GoneError: It cannot be started.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(_SEND_SECONDS)
        with theirs:
            try:
                child = subprocess.Popen(  # noqa: S603 - a program of our own
                    [sys.executable, "-I", "-S", _MATRON, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise GoneError(f"cannot start: {os.strerror(error.errno or 0)}") from error
        return cls(ours, child)

    @property
    def pid(self) -> int:
        """The process."""
        return self._child.pid

    def agree(
        self, launches: Iterable[Launch], roots: Iterable[str], environment: Mapping[str, str]
    ) -> None:
        """Say what may be started, once and for all.

        Args:
            launches: Servers; only their commands and what they may use count.
            roots: In these folders and in all beneath them.
            environment: With these variables.

        Raises:
            ValueError: Something was agreed upon before.
        """
        if self._agreed is not None:
            raise ValueError("a nursery agrees only once")
        kinds = dict.fromkeys((one.command, one.memory) for one in launches)
        self._agreed = {kind: number for number, kind in enumerate(kinds)}
        wardens = [warden_command("{line}", memory) for _, memory in kinds]
        agreement = {
            "wardens": wardens,
            "commands": [command for command, _ in kinds],
            "roots": list(roots),
            "environment": dict(environment),
        }
        self._send(json.dumps(agreement).encode("ascii"), ())

    def start_warden(self, launch: Launch, ends: Ends) -> Callable[[], object]:
        """Have a warden started; that it cannot be is said on its line.

        Raises:
            GoneError: The process is gone, or the launch was not agreed upon.
        """
        number = (self._agreed or {}).get((launch.command, launch.memory))
        if number is None:
            raise GoneError("cannot start: it was not known when this process confined itself")
        self._send(number.to_bytes(4) + os.fsencode(launch.folder), ends)
        return _nothing

    def close(self) -> None:
        """End the process; servers that it has started go on."""
        with self._guard:
            self._over = self._over or "it was ended"
            self._line.close()
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _send(self, piece: bytes, ends: tuple[int, ...]) -> None:
        with self._guard:
            if not self._over:
                try:
                    data = len(piece).to_bytes(4) + piece
                    sent = socket.send_fds(self._line, [data], ends) if ends else 0
                    self._line.sendall(data[sent:])
                except OSError:
                    # That may have been half of a piece; nothing behind it would be understood.
                    self._over = "it has ended"
                    self._line.close()
            if self._over:
                raise GoneError(f"cannot start: another process has to do it, and {self._over}")


def _nothing() -> None:
    """Nobody has to be asked how a warden ended that is no child of ours."""

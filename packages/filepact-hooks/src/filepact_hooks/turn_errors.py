"""Which errors a turn has left: when it ends, the daemon of hooks asks the servers that its program has started.

A server listens at an abstract socket that goes by its process: one that has confined itself can make it, and none is
left behind.  Linux alone has such sockets, and says what a program has started.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from filepact.opening import descendants
from filepact_hooks.client import peer

if TYPE_CHECKING:
    from filepact.domain.operation import Session
    from filepact_hooks.tool_call import HostProcess

    class TurnSummary(Protocol):
        """Has the lines about the errors of a turn."""

        def __call__(self, *, session: Session) -> str: ...


__all__ = ["TurnErrors", "TurnSummary", "errors_left"]

_PATIENCE: Final = 3.0  # seconds for all servers of a program; hosts wait for 30 to 60
_LONGEST: Final = 1_000
_LARGEST: Final = 65_536
_MOST_TURNS: Final = 100


class TurnErrors:
    """Answers which errors turns have left; nothing runs for it before a turn is known.

    Args:
        summary: Told the session of a turn, has the lines about its errors; empty for nothing.
    """

    def __init__(self, summary: TurnSummary) -> None:
        self._summary = summary
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._listening: socket.socket | None = None
        self._closed = False

    def note(self, session: Session) -> None:
        """A call of this session, of the turn in it, may have changed files."""
        if not session.turn or sys.platform != "linux":
            return
        with self._lock:
            self._sessions[session.turn] = session
            while len(self._sessions) > _MOST_TURNS:
                del self._sessions[next(iter(self._sessions))]
            if self._listening is None and not self._closed:
                # Without it nothing is told, and all else goes on.
                with suppress(OSError, RuntimeError):
                    self._listening = listening = socket.socket(socket.AF_UNIX)
                    listening.bind(_name(os.getpid()))
                    listening.listen()
                    args = (listening,)
                    threading.Thread(
                        target=self._listen, args=args, name="turns", daemon=True
                    ).start()

    def close(self) -> None:
        """Answer nobody any more."""
        with self._lock:
            self._closed = True
            if self._listening is not None:
                with suppress(OSError):
                    self._listening.shutdown(socket.SHUT_RDWR)  # which ends what waits for somebody
                self._listening.close()

    def _listen(self, listening: socket.socket) -> None:
        while not self._closed:
            try:
                asking, _ = listening.accept()
            except OSError:
                return
            with asking, suppress(Exception):  # the next turn is answered, whatever becomes of this
                asking.settimeout(_PATIENCE)
                if peer(asking)[1] == os.geteuid():
                    session = self._sessions.get(_read(asking, _LONGEST))
                    said = self._summary(session=session) if session is not None else ""
                    asking.sendall(said.encode("utf-8", "replace"))


def errors_left(host: HostProcess, turn: str) -> str:
    """The errors that a turn has left, as servers of ours know them; empty where none does.

    Args:
        host: The program of the turn, which has started the servers.
        turn: Its name.
    """
    until, said = time.monotonic() + _PATIENCE, list[str]()
    for one in descendants(host[0]):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(max(until - time.monotonic(), 0.01))
            asking.connect(_name(one.process))
            # Whoever comes first may take such a name.
            if peer(asking)[1] == os.geteuid():
                asking.sendall(turn.encode("utf-8", "replace")[:_LONGEST])
                asking.shutdown(socket.SHUT_WR)
                said.append(_read(asking, _LARGEST))
    return "\n".join(filter(None, said))


def _name(process: int) -> str:
    return f"\0filepact-turns-{process}"


def _read(connection: socket.socket, most: int) -> str:
    with connection.makefile("rb") as stream:
        return stream.read(most).decode("utf-8", "replace")

"""The daemon of hooks: one for the same roots, which answers their events at a Unix socket.

Only the person whose process it is can reach the socket.  It ends when nothing was asked for a while;
what it knows of the files is kept for the next one.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.app import ancestors, forget_host, note_host
from filepact.config.person import read_settings
from filepact.config.settings import HookSettings
from filepact.errors import FilepactError
from filepact.opening import note_turns
from filepact_hooks.agents import AGENTS
from filepact_hooks.client import PROBE, PROTOCOL, peer
from filepact_hooks.judge import answer_unread
from filepact_hooks.service import HookDaemon

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact.domain.person import Ancestor
    from filepact_hooks.agents import HookAnswer, HookMode
    from filepact_hooks.client import HookRequest
    from filepact_hooks.tool_call import HostProcess

__all__ = ["serve"]

_BEFORE_US: Final = 15  # seconds that a daemon which is about to end may take
_PATIENCE: Final = 10.0  # seconds for a client to say what it wants
_LOOK: Final = 60.0  # seconds after which it looks whether anybody can still reach it
_AGAIN: Final = 1.0  # seconds, where it should have ended and something is under way
_POLL: Final = 0.2  # seconds, while a person is asked about a command
_COMMANDS: Final = 2.0  # seconds, while a command may run
_NOTE: Final = 60.0  # seconds between two notes of when an agent was heard of
_HEAD: Final = 65_536
_BACKLOG: Final = 64


def serve(request: HookRequest, told: int) -> int:
    """Answer events until nobody has any; the working folder is that of the sockets.

    Args:
        request: The first one, which says for which roots this is.
        told: A pipe that is closed once there is somebody to answer; why there is not goes into it.

    Returns:
        The exit code.
    """
    lock = os.open(f"{request.key}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    # Another one may be about to end; whoever waits for too long is ended by the system.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_BEFORE_US)
    fcntl.flock(lock, fcntl.LOCK_EX)
    signal.alarm(0)
    os.truncate(lock, 0)
    os.write(lock, b"%d\n" % os.getpid())  # for people
    name = f"{request.key}.sock"
    Path(name).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o077)
    listening.bind(name)
    # By it what comes with rights of its own is told from what does not, and folders are made again.
    os.umask(mask)
    listening.listen(_BACKLOG)
    os.close(told)
    listener = _Listener(request, listening)
    signal.signal(signal.SIGTERM, listener.interrupt)
    try:
        listener.run()
    finally:
        # Who comes now finds no socket, starts another daemon, and that one waits for the lock.
        with suppress(OSError):
            Path(name).unlink(missing_ok=True)
        listening.close()
        listener.close()
    return 0


class _Listener:
    """Answers at a socket that listens.

    Args:
        request: Says for which roots.
        listening: The socket.
    """

    def __init__(self, request: HookRequest, listening: socket.socket) -> None:
        self._request = request
        self._listening = listening
        self._place = Path(listening.getsockname())
        self._service = HookDaemon(request.roots, request.state, request.config)
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._watched: dict[HostProcess, int] = {}
        self._noted: dict[str, float] = {}
        self._hosts: set[HostProcess] = set()
        self._turns: dict[HostProcess, dict[str, str]] = {}
        self._selector = selectors.DefaultSelector()
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ)

    def run(self) -> None:
        """Answer until nothing was asked for a while and no call is under way, or the socket is gone."""
        asked = time.monotonic()
        while True:
            left = asked + self._idle() - time.monotonic()
            try:
                wait = max(0.0, min(left, _LOOK)) or _AGAIN
                watches = self._service.poll() or any(one.is_alive() for one in self._threads)
                often = _POLL if watches else _COMMANDS if self._service.busy else wait
                connection = self._next(min(wait, often))
            except TimeoutError:
                self._threads = [one for one in self._threads if one.is_alive()]
                over = left <= _LOOK and not self._service.busy
                if not self._threads and (over or not self._place.exists()):
                    return
                continue
            except _InterruptedError:
                return
            if connection is None:
                continue
            asked = time.monotonic()
            thread = threading.Thread(target=self._let_in, args=(connection,), name="event")
            thread.daemon = True
            thread.start()
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]

    def _next(self, seconds: float) -> socket.socket | None:
        """The next connection; None where only a host has ended.

        Raises:
            TimeoutError: There was none.
        """
        found = [key.data for key, _ in self._selector.select(seconds)]
        if not found:
            raise TimeoutError
        for host in filter(None, found):
            with self._lock:
                descriptor = self._watched.pop(host)
                self._selector.unregister(descriptor)
                os.close(descriptor)
            self._service.ended(host)
        with suppress(BlockingIOError, ConnectionAbortedError):
            connection, _ = self._listening.accept()
            return connection
        return None

    def _watch_hosts(self) -> None:
        """Be told when a process ends with which a call is over, where the system can tell."""
        if sys.platform != "linux":
            return
        with self._lock:
            for host in self._service.awaited - self._watched.keys():
                descriptor = -1
                with suppress(OSError):
                    descriptor = os.pidfd_open(host[0])
                if descriptor < 0 or host not in _identities(ancestors(host[0], commands=False)[0]):
                    self._service.ended(host)
                    if descriptor >= 0:
                        os.close(descriptor)
                else:
                    self._watched[host] = descriptor
                    self._selector.register(descriptor, selectors.EVENT_READ, host)

    def interrupt(self, *_: object) -> None:
        """End what waits for events."""
        raise _InterruptedError

    def close(self) -> None:
        for thread in self._threads:
            thread.join(_PATIENCE)
        with suppress(FilepactError):
            self._service.close()

    def _idle(self) -> float:
        try:
            return read_settings(self._request.config or None).hooks.idle
        except FilepactError:
            return HookSettings().idle

    def _let_in(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            process, user = peer(connection)
            if user not in (None, os.geteuid()):
                return
            connection.settimeout(_PATIENCE)
            head, data, heard = _read(connection)
            above, _ = ancestors(process, commands=False)
            answer = self._answer(head, data, tuple(_identities(above)), heard)
            # Before the call begins, and so before what it starts can decide anything.
            self._note_hosts(head[1], above)
            self._note_turns()
            out = answer.out.encode("utf-8", "replace")
            remark = answer.remark.encode("utf-8", "replace")
            connection.sendall(b"%d\n%b%b" % (len(out), out, remark))
            connection.close()
            self._note(head[1], data)
            self._watch_hosts()

    def _note_hosts(self, agent: str, above: tuple[Ancestor, ...]) -> None:
        """Note which programs have a call under way: what decides below one of them is no person."""
        going = self._service.under_way
        for host in self._hosts - going:
            forget_host(self._request.state, host)
        self._hosts &= going
        if going.isdisjoint(_identities(above)) or self._hosts & {*_identities(above[1:])}:
            return
        with suppress(OSError):
            told, _ = ancestors(above[0].process)
            found = note_host(self._request.state, told[1:], AGENTS[agent].actor)
            if found is not None:
                self._hosts.update(_identities((found,)))

    def _note_turns(self) -> None:
        """Note for which turns they call tools of ours, so that our servers know what belongs together."""
        turns = {host: self._service.turns_of(host) for host in self._hosts}
        for host, found in turns.items():
            if found != self._turns.get(host, {}):
                note_turns(self._request.state, host, found)
        self._turns = turns

    def _note(self, agent: str, data: bytes) -> None:
        """Note that an agent's program has called its hook: `doctor` tells when it was."""
        now = time.monotonic()
        if now - self._noted.get(agent, -_NOTE) >= _NOTE and PROBE.encode() not in data:
            self._noted[agent] = now
            Path(f"{self._request.key}.{agent}").touch(0o600)

    def _answer(
        self, head: list[str], data: bytes, above: tuple[HostProcess, ...], heard: int
    ) -> HookAnswer:
        protocol, agent, event, word, config, *roots = head
        mode: HookMode = "strict" if word == "strict" else "record" if word == "record" else ""
        if protocol != PROTOCOL or agent not in AGENTS:
            raise ValueError(protocol)
        if (config, *roots) != (self._request.config, *self._request.roots):
            return answer_unread(
                AGENTS[agent], data, event, mode, "this process is for other folders"
            )
        return self._service.answer(agent, data, event, mode=mode, above=above, heard=heard)


def _identities(above: Iterable[Ancestor]) -> Iterator[HostProcess]:
    """Processes as they are told from others, but for the first of all, which takes orphans in."""
    return ((one.process, one.started) for one in above if one.process > 1)


class _InterruptedError(Exception):
    """Somebody wants the daemon to end."""


def _read(connection: socket.socket) -> tuple[list[str], bytes, int]:
    """The head and the event that a client sends, and when it was, in nanoseconds since the epoch; 0 for now.

    Raises:
        ValueError: It is not what a client sends.
    """
    with connection.makefile("rb") as stream:
        length = int(stream.readline(20))
        if not 0 < length <= _HEAD:
            raise ValueError(length)
        head = os.fsdecode(stream.read(length)).split("\0")
        wanted = int(stream.readline(20))
        data = stream.read(wanted)
        if len(data) != wanted:
            raise ValueError(wanted)
        said = stream.read(20)
        return head, data, int(said) if said.isdigit() else 0

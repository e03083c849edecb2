"""One language server as a process: started behind a warden, drained, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.lsp.failures import GoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Launch", "ServerProcess"]

_WARDEN: Final = os.path.join(os.path.dirname(__file__), "warden.py")  # noqa: PTH118, PTH120 - names only
_CHUNK = 256 * 1024
_UNREAD_LIMIT = 64 * 1024 * 1024
_COMPLAINTS = 16 * 1024
_START_SECONDS = 20.0
_KILL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started.

    Attributes:
        command: The program, absolute or found on the environment's path, and its arguments.
        folder: The working folder, absolute.
        environment: All variables that it sees.
    """

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]


class ServerProcess:
    """A running server.

    Make one with `start`; every method belongs to the event loop that it was started in.
    """

    def __init__(self, process: asyncio.subprocess.Process, line: socket.socket) -> None:
        self._process = process
        self._line = line
        self._complaints: deque[bytes] = deque()
        self._complained = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._said: dict[str, int] = {}
        self._ended = asyncio.Event()

    @classmethod
    async def start(
        cls,
        launch: Launch,
        on_output: Callable[[bytes], None],
        on_end: Callable[[str], None],
    ) -> ServerProcess:
        """Start a server and begin to read it.

        Args:
            launch: What to start.
            on_output: Called with the bytes of its standard output.
            on_end: Called once, with the reason, when it has ended by itself or was stopped.

        Raises:
            GoneError: It cannot be started.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", _WARDEN, str(theirs.fileno()), *launch.command),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    cwd=launch.folder,
                    env=dict(launch.environment),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise GoneError(f"cannot start: {os.strerror(error.errno or 0)}") from error
        running = cls(process, ours)
        try:
            await asyncio.wait_for(running._hear(), _START_SECONDS)
        except (TimeoutError, asyncio.CancelledError):
            await running.kill()
            raise
        if "started" not in running._said:
            await running.kill()
            number = running._said.get("failed", 0)
            raise GoneError(f"cannot start: {os.strerror(number) if number else 'no answer'}")
        running._tasks = [
            asyncio.create_task(running._read(on_output)),
            asyncio.create_task(running._drain()),
            asyncio.create_task(running._watch(on_end)),
        ]
        return running

    @property
    def pid(self) -> int:
        """The server's own process, below the warden's."""
        return self._said.get("started", 0)

    @property
    def complaints(self) -> str:
        """The end of what it wrote to its standard error."""
        return b"".join(self._complaints).decode("utf-8", "replace")[-_COMPLAINTS:]

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._ended.is_set()

    def write(self, data: bytes) -> None:
        """Send bytes to its standard input; they wait in memory while it does not read.

        Raises:
            GoneError: It is gone, or has left too much unread.
        """
        pipe = self._process.stdin
        if self.ended or pipe is None or pipe.is_closing():
            raise GoneError("the server has ended")
        if pipe.transport.get_write_buffer_size() > _UNREAD_LIMIT:
            raise GoneError(f"the server has left {_UNREAD_LIMIT:,} bytes unread")
        pipe.write(data)

    async def stop(self, grace: float) -> None:
        """Close its input, give it some seconds to end, then kill it and all it has started."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), grace)
        await self.kill()

    async def kill(self) -> None:
        """End it and all that it has started; returns when they are gone."""
        self._line.close()  # the warden's sign
        try:
            await asyncio.wait_for(self._process.wait(), _KILL_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        me = asyncio.current_task()
        others = [task for task in self._tasks if task is not me]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._ended.set()
        if self._process.stdin is not None:
            self._process.stdin.close()
        # Without this a pipe that a stray process still holds would stay open with us.
        self._process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001

    async def _hear(self) -> bool:
        """Take down what the warden says next; False when it is gone."""
        loop = asyncio.get_running_loop()
        try:
            data = await loop.sock_recv(self._line, 256)
        except OSError:
            return False
        for said in data.decode("ascii", "replace").splitlines():
            word, _, number = said.partition(" ")
            self._said[word] = int(number) if number.lstrip("-").isdigit() else 0
        return bool(data)

    async def _read(self, on_output: Callable[[bytes], None]) -> None:
        pipe = self._process.stdout
        while pipe is not None and (data := await pipe.read(_CHUNK)):
            on_output(data)

    async def _drain(self) -> None:
        """Read its standard error, or it would stand still once the pipe is full."""
        pipe = self._process.stderr
        while pipe is not None and (data := await pipe.read(_CHUNK)):
            self._complaints.append(data[-_COMPLAINTS:])
            self._complained += len(self._complaints[-1])
            while self._complained - len(self._complaints[0]) >= _COMPLAINTS:
                self._complained -= len(self._complaints.popleft())

    async def _watch(self, on_end: Callable[[str], None]) -> None:
        while "ended" not in self._said and await self._hear():
            pass
        # What it wrote before it ended is read first; a stray writer cannot keep us.
        await asyncio.wait(self._tasks[:2], timeout=1)
        self._ended.set()
        status = self._said.get("ended")
        if status is None:
            reason = "the server was killed with its warden"
        elif status < 0:
            reason = f"the server was ended by {signal.Signals(-status).name}"
        else:
            reason = f"the server ended with status {status}"
        on_end(reason)

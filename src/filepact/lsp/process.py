"""One language server as a process: started behind a warden, drained, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

from filepact.lsp.failures import GoneError
from filepact.lsp.launch import GIBIBYTE, start_warden

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.lsp.launch import Launch

__all__ = ["ServerProcess"]

_CHUNK: Final = 256 * 1024
_UNREAD_LIMIT: Final = 64 * 1024 * 1024
_COMPLAINTS: Final = 16 * 1024
_START_SECONDS: Final = 20.0
_KILL_SECONDS: Final = 5.0
_REST_SECONDS: Final = 1.0


class ServerProcess:
    """A running server.

    Make one with `start`; every method belongs to the event loop that it was started in.

    Args:
        line: Our end of the line to its warden.
        stdin: Our end of its standard input.
    """

    def __init__(self, line: socket.socket, stdin: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._line = line
        self._stdin = stdin
        self._unsent = bytearray()
        self._reading: dict[int, asyncio.Event] = {}
        self._complaints: deque[bytes] = deque()
        self._complained = 0
        self._said: dict[str, int] = {}
        self._ended = asyncio.Event()
        self._gone = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

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
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (
            os.pipe() for _ in range(3)
        )
        for number in (to_stdin, from_stdout, from_stderr):
            os.set_blocking(number, False)
        running = cls(ours, to_stdin)
        try:
            starter = launch.starter or start_warden
            reap = starter(launch, (stdin, stdout, stderr, theirs.fileno()))
        except BaseException:
            ours.close()
            for number in (to_stdin, from_stdout, from_stderr):
                os.close(number)
            raise
        finally:
            theirs.close()
            for number in (stdin, stdout, stderr):
                os.close(number)
        running._listen(from_stdout, on_output)
        running._listen(from_stderr, running._complain)
        begun = asyncio.Event()
        running._watching = asyncio.create_task(running._watch(begun, on_end, reap))
        try:
            await asyncio.wait_for(begun.wait(), _START_SECONDS)
        except (TimeoutError, asyncio.CancelledError):
            await running.kill()
            raise
        if "started" not in running._said:
            await running.kill()
            number = running._said.get("failed", 0)
            raise GoneError(f"cannot start: {os.strerror(number) if number else 'no answer'}")
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
        if self.ended or self._stdin < 0:
            raise GoneError("the server has ended")
        if len(self._unsent) > _UNREAD_LIMIT:
            raise GoneError(f"the server has left {_UNREAD_LIMIT:,} bytes unread")
        sent = 0 if self._unsent else self._push(data)
        if sent < len(data):
            if not self._unsent:
                self._loop.add_writer(self._stdin, self._flush)
            self._unsent += memoryview(data)[sent:]

    async def stop(self, grace: float) -> None:
        """Close its input, give it some seconds to end, then kill it and all it has started."""
        self._close_stdin()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), grace)
        await self.kill()

    async def kill(self) -> None:
        """End it and all that it has started; returns when they are gone, cancelled or not."""
        ending, cancelled = asyncio.create_task(self._end()), False
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                cancelled = True  # Half an end would leave descriptors and a process behind.
        if cancelled:
            raise asyncio.CancelledError
        ending.result()

    async def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)  # the warden's sign
        try:
            await asyncio.wait_for(self._gone.wait(), _KILL_SECONDS)
        except TimeoutError:
            warden = self._said.get("warden", 0)
            if warden:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(warden, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), _KILL_SECONDS)
        self._ended.set()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        self._line.close()
        self._close_stdin()
        # A stray process may still hold the other end of a pipe.
        for number in list(self._reading):
            self._unlisten(number)

    def _push(self, data: bytes | bytearray) -> int:
        """Send as much as the pipe takes now."""
        try:
            return os.write(self._stdin, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise GoneError("the server has ended") from error

    def _flush(self) -> None:
        try:
            del self._unsent[: self._push(self._unsent[:_CHUNK])]
        except GoneError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._stdin)

    def _close_stdin(self) -> None:
        number, self._stdin = self._stdin, -1
        if number >= 0:
            self._loop.remove_writer(number)
            os.close(number)

    def _listen(self, number: int, take: Callable[[bytes], None]) -> None:
        """Pass on all that comes through a pipe."""
        self._reading[number] = asyncio.Event()

        def read() -> None:
            try:
                data = os.read(number, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                take(data)
            else:
                self._unlisten(number)

        self._loop.add_reader(number, read)

    def _unlisten(self, number: int) -> None:
        self._loop.remove_reader(number)
        self._reading.pop(number).set()
        os.close(number)

    def _complain(self, data: bytes) -> None:
        """Keep the end of its standard error, which has to be read or it would stand still."""
        self._complaints.append(data[-_COMPLAINTS:])
        self._complained += len(self._complaints[-1])
        while self._complained - len(self._complaints[0]) >= _COMPLAINTS:
            self._complained -= len(self._complaints.popleft())

    async def _hear(self) -> bool:
        """Take down what the warden says next; False when it is gone."""
        try:
            data = await self._loop.sock_recv(self._line, 256)
        except OSError:
            return False
        for said in data.decode("ascii", "replace").splitlines():
            word, _, number = said.partition(" ")
            self._said[word] = int(number) if number.lstrip("-").isdigit() else 0
        return bool(data)

    async def _watch(
        self, begun: asyncio.Event, on_end: Callable[[str], None], reap: Callable[[], object]
    ) -> None:
        """Follow the warden until it is gone."""
        while not self._said.keys() & {"started", "failed"} and await self._hear():
            pass
        begun.set()
        while not self._said.keys() & {"ended", "failed"} and await self._hear():
            pass
        # What it wrote before it ended is read first; a stray writer cannot keep us.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                for event in list(self._reading.values()):
                    await event.wait()
        self._ended.set()
        if "started" in self._said:
            on_end(self._reason())
        while await self._hear():
            pass
        reap()
        self._gone.set()

    def _reason(self) -> str:
        status, heavy = self._said.get("ended"), self._said.get("heavy")
        if heavy is not None:
            used = f"{heavy / GIBIBYTE:.1f} GiB"
            return f"the server was ended because it used {used} of memory, more than it may"
        if status is None:
            return "the server was killed with its warden"
        if status < 0:
            return f"the server was ended by {signal.Signals(-status).name}"
        return f"the server ended with status {status}"

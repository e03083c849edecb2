"""A language server as a process: how it is started, its pipes, its supervisor, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections import deque
from typing import TYPE_CHECKING, Final

from filepact_diagnostics.lsp.failures import ServerExitedError
from filepact_diagnostics.lsp.forkserver import GIBIBYTE, supervisor_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_diagnostics.lsp.forkserver import Descriptors, ProcessOptions

__all__ = ["ServerProcess"]


_CHUNK: Final = 256 * 1024
_UNREAD_LIMIT: Final = 64 * 1024 * 1024
_STDERR_KEPT: Final = 16 * 1024
_START_SECONDS: Final = 20.0
_KILL_SECONDS: Final = 5.0
_REST_SECONDS: Final = 1.0


def _start_supervisor(launch: ProcessOptions, descriptors: Descriptors) -> Callable[[], object]:
    """Start a supervisor as a child of this process."""
    stdin, stdout, stderr, line = descriptors
    try:
        child = subprocess.Popen(  # noqa: S603 - programs that people have installed or named
            [*supervisor_command(line, launch.memory, launch.sandbox), *launch.words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=launch.folder,
            env=dict(launch.environment),
            pass_fds=(line,),
            start_new_session=True,
        )
    except OSError as error:
        raise ServerExitedError(f"cannot start: {os.strerror(error.errno or 0)}") from error
    return child.wait


class ServerProcess:
    """A running server.

    Make one with `start`; every method belongs to the event loop that it was started in.

    Args:
        line: Our end of the line to its supervisor.
        stdin: Our end of its standard input.
    """

    def __init__(self, line: socket.socket, stdin: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._line = line
        self._stdin = stdin
        self._unsent = bytearray()
        self._reading: dict[int, asyncio.Event] = {}
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._reported: dict[str, int] = {}
        self._told = asyncio.Event()
        self._ended = asyncio.Event()
        self._gone = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        launch: ProcessOptions,
        on_output: Callable[[bytes], None],
        on_end: Callable[[str], None],
    ) -> ServerProcess:
        """Start a server and begin to read it.

        Args:
            launch: What to start.
            on_output: Called with the bytes of its standard output.
            on_end: Called once, with the reason, when it has ended by itself or was stopped.

        Raises:
            ServerExitedError: It cannot be started.
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
            starter = launch.starter or _start_supervisor
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
        running._add_pipe(from_stdout, on_output)
        running._add_pipe(from_stderr, running._keep_stderr)
        begun = asyncio.Event()
        running._watching = asyncio.create_task(running._watch(begun, on_end, reap))
        try:
            await asyncio.wait_for(begun.wait(), _START_SECONDS)
        except (TimeoutError, asyncio.CancelledError):
            await running.kill()
            raise
        if "started" not in running._reported:
            await running.kill()
            number = running._reported.get("failed", 0)
            raise ServerExitedError(
                f"cannot start: {os.strerror(number) if number else 'no answer'}"
            )
        return running

    @property
    def pid(self) -> int:
        """The server's own process, a child of the supervisor's."""
        return self._reported.get("started", 0)

    @property
    def stderr(self) -> str:
        """The end of what it wrote to its standard error."""
        return b"".join(self._stderr).decode("utf-8", "replace")[-_STDERR_KEPT:]

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._ended.is_set()

    def write(self, data: bytes) -> None:
        """Send bytes to its standard input; they wait in memory while it does not read.

        Raises:
            ServerExitedError: It is gone, or has left too much unread.
        """
        if self.ended or self._stdin < 0:
            raise ServerExitedError("the server has ended")
        if len(self._unsent) > _UNREAD_LIMIT:
            raise ServerExitedError(f"the server has left {_UNREAD_LIMIT:,} bytes unread")
        sent = 0 if self._unsent else self._push(data)
        if sent < len(data):
            if not self._unsent:
                self._loop.add_writer(self._stdin, self._flush)
            self._unsent += memoryview(data)[sent:]

    async def cpu_ticks(self, seconds: float) -> int:
        """Clock ticks for which it, with all it has started, has worked; -1 if it does, or the supervisor has not said so in time."""
        self._reported.pop("worked", None)
        self._told.clear()
        try:
            self._line.send(b"?")
            async with asyncio.timeout(seconds):
                await self._told.wait()
        except (OSError, TimeoutError):
            return -1
        return self._reported.get("worked", -1)

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
            self._line.shutdown(socket.SHUT_WR)  # the supervisor reads an end of file
        try:
            await asyncio.wait_for(self._gone.wait(), _KILL_SECONDS)
        except TimeoutError:
            supervisor = self._reported.get("supervisor", 0)
            if supervisor:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(supervisor, signal.SIGKILL)
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
            self._drop_pipe(number)

    def _push(self, data: bytes | bytearray) -> int:
        """Send as much as the pipe takes now."""
        try:
            return os.write(self._stdin, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ServerExitedError("the server has ended") from error

    def _flush(self) -> None:
        try:
            del self._unsent[: self._push(self._unsent[:_CHUNK])]
        except ServerExitedError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._stdin)

    def _close_stdin(self) -> None:
        number, self._stdin = self._stdin, -1
        if number >= 0:
            self._loop.remove_writer(number)
            os.close(number)

    def _add_pipe(self, number: int, take: Callable[[bytes], None]) -> None:
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
                self._drop_pipe(number)

        self._loop.add_reader(number, read)

    def _drop_pipe(self, number: int) -> None:
        self._loop.remove_reader(number)
        self._reading.pop(number).set()
        os.close(number)

    def _keep_stderr(self, data: bytes) -> None:
        """Keep the end of its standard error; unread, the pipe would fill and block the server."""
        self._stderr.append(data[-_STDERR_KEPT:])
        self._stderr_size += len(self._stderr[-1])
        while self._stderr_size - len(self._stderr[0]) >= _STDERR_KEPT:
            self._stderr_size -= len(self._stderr.popleft())

    async def _read_line(self) -> bool:
        """Read what the supervisor reports next; False when it is gone."""
        try:
            data = await self._loop.sock_recv(self._line, 256)
        except OSError:
            return False
        for said in data.decode("ascii", "replace").splitlines():
            word, _, number = said.partition(" ")
            self._reported[word] = int(number) if number.lstrip("-").isdigit() else 0
            if word == "worked":
                self._told.set()
        return bool(data)

    async def _watch(
        self, begun: asyncio.Event, on_end: Callable[[str], None], reap: Callable[[], object]
    ) -> None:
        """Follow the supervisor until it is gone."""
        while not self._reported.keys() & {"started", "failed"} and await self._read_line():
            pass
        begun.set()
        while not self._reported.keys() & {"ended", "failed"} and await self._read_line():
            pass
        # What it wrote before it ended is read first; a stray writer cannot keep us.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                for event in list(self._reading.values()):
                    await event.wait()
        self._ended.set()
        if "started" in self._reported:
            on_end(self._reason())
        while await self._read_line():
            pass
        reap()
        self._gone.set()

    def _reason(self) -> str:
        status, heavy = self._reported.get("ended"), self._reported.get("heavy")
        if heavy is not None:
            used = f"{heavy / GIBIBYTE:.1f} GiB"
            return f"the server was ended because it used {used} of memory, more than it may"
        if status is None:
            return "the server was killed with its supervisor"
        if status < 0:
            return f"the server was ended by {signal.Signals(-status).name}"
        return f"the server ended with status {status}"

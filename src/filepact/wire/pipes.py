"""The two pipes to the client: one thread reads; what cannot be written at once, another one writes.

Standard input and output are moved aside first, so that neither a stray print nor a child process
can put a byte between the messages, or take one.

Where clients come over a network, the socket at which they are waited for.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from filepact.wire.framing import MessageReader
from filepact.wire.messages import ErrorResponse

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from filepact.wire.messages import Message

__all__ = [
    "MessagePipes",
    "listen",
    "read_some",
    "standard_pipes",
    "stopped_by_signals",
    "widen",
    "write_all",
    "write_at_once",
]

_CHUNK = 1 << 16
_WIDE = 1 << 20
_LONG = 0.03  # seconds after which another thread reads on
_LOOKS = 20  # how often it is looked for that in vain before nobody looks any more
_LAST_WRITE = 2.0  # seconds for a client that is slow to take the last answers


def listen(host: str, port: int, *, backlog: int = 64) -> socket.socket:
    """A socket that listens at an address, whose connections send at once what they are given.

    The event loop sees to that for sockets that name their protocol, and those that Python makes by itself do not.
    Otherwise the second part of an answer waits until the first one is acknowledged.

    Raises:
        OSError: That cannot be had.
    """
    import socket  # noqa: PLC0415 - takes its time to load, and a client at pipes needs none

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family, backlog=backlog)
    return socket.socket(made.family, made.type, socket.IPPROTO_TCP, fileno=made.detach())


@contextmanager
def standard_pipes() -> Iterator[tuple[int, int]]:
    """Take standard input and output for the protocol, and leave harmless ones in their place."""
    source, sink = (os.dup(fd) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    printed, sys.stdout = sys.stdout, sys.stderr
    try:
        yield source, sink
    finally:
        sys.stdout = printed
        os.dup2(source, 0)
        os.dup2(sink, 1)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop``, in a thread of its own, on SIGTERM and SIGINT.

    A handler in Python is not enough: a signal that comes just before the main thread waits for a lock does not wake it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGTERM, signal.SIGINT)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)

    def watch() -> None:
        while number := os.read(woken, 1)[0]:
            if number in signals:
                stop()

    watcher = threading.Thread(target=watch, name="filepact-signals", daemon=True)
    watcher.start()
    earlier = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: not one of Python's
        signal.set_wakeup_fd(earlier)
        os.write(wake, b"\0")
        watcher.join()
        os.close(woken)
        os.close(wake)


class MessagePipes:
    """Messages from and to one client.

    Args:
        source: Descriptor to read from.
        sink: Descriptor to write to.
        decode: Decodes JSON, as `MessageReader` wants it.
        encode: Encodes JSON on one line, as UTF-8 without a line end.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        decode: Callable[[bytes], Any],
        encode: Callable[[Message], bytes],
    ) -> None:
        self._encode = encode
        self._source = source
        self._sink = sink
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._unwritten = 0  # pieces that the writing thread has still to write
        self._turn = threading.Lock()
        self._writer: threading.Thread | None = None
        self._lines = MessageReader(decode)
        self._more = False  # there are messages behind the one that is being taken
        self._waiting = select.poll()
        self._waiting.register(source, select.POLLIN)
        self._change = threading.Condition()
        self._reader: threading.Thread | None = None
        self._aside: float | None = None  # since when the reading thread does something else
        self._looks = 0
        self._watch: threading.Thread | None = None
        self._read_on: Callable[[], None] = _nothing

    def start(
        self,
        receive: Callable[[Message], None],
        *,
        ended: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        """Begin to read and write.

        Args:
            receive: Takes each message, in order, in the reading thread.
            ended: Called after the last message, in the reading thread.
            lost: Called when the client takes no more answers, in the writing thread.
        """
        self._writer = threading.Thread(
            target=self._write, args=(lost,), name="wire-writer", daemon=True
        )
        self._writer.start()

        def read_on() -> None:
            self._reader = threading.Thread(
                target=self._read, args=(receive, ended), name="wire-reader", daemon=True
            )
            self._reader.start()

        self._read_on = read_on
        read_on()

    def run_alone(self, work: Callable[[], None]) -> bool:
        """Do something in the reading thread, where `receive` is called, if nothing waits to be read.

        Two threads that hand each other work and answers take longer than most of the work.  If it
        takes long, another thread reads on, so that it can be cancelled, and other messages are taken.

        Returns:
            Whether it was done.
        """
        if self._more or self._waiting.poll(0):
            return False
        with self._change:
            if self._reader is not threading.current_thread():
                return False
            self._aside = time.monotonic()
            self._look()
        try:
            work()
        finally:
            with self._change:
                if self._reader is threading.current_thread():
                    self._aside = None
        return True

    def _look(self) -> None:
        """Have somebody look whether this takes long; asks a thread only if none looks already."""
        if self._watch is None:
            self._watch = threading.Thread(target=self._watching, name="wire-watch", daemon=True)
            self._watch.start()
        elif self._looks >= _LOOKS:
            self._change.notify_all()
        self._looks = 0

    def _watching(self) -> None:
        with self._change:
            while True:
                self._change.wait(_LONG if self._looks < _LOOKS else None)
                self._looks += 1
                if self._aside is not None and time.monotonic() - self._aside >= _LONG:
                    self._aside = None
                    self._read_on()

    def send(self, message: Message) -> None:
        """Send a message, after those before it; from any thread, without waiting."""
        data = self._encode(message) + b"\n"
        with self._turn:
            if not self._unwritten:
                data = data[_write_now(self._sink, data) :]
            if data:
                self._unwritten += 1
                self._outgoing.put(data)

    def close(self) -> None:
        """Wait until everything is sent, if the client takes it."""
        self._outgoing.put(None)
        if self._writer is not None:
            self._writer.join(_LAST_WRITE)

    # -- reading --------------------------------------------------------------------------

    def _read(self, receive: Callable[[Message], None], ended: Callable[[], None]) -> None:
        def take(item: Message | ErrorResponse) -> None:
            if isinstance(item, ErrorResponse):
                self.send(item.reply)
            else:
                receive(item)

        reads = True
        try:
            while reads and (data := read_some(self._source)):
                items = list(self._lines.feed(data))
                for number, item in enumerate(items, start=1):
                    self._more = number < len(items)
                    take(item)
                with self._change:
                    reads = self._reader is threading.current_thread()
            for item in self._lines.end() if reads else ():
                take(item)
        finally:
            if reads:
                ended()

    # -- writing --------------------------------------------------------------------------

    def _write(self, lost: Callable[[], None]) -> None:
        while (data := self._outgoing.get()) is not None:
            if not write_all(self._sink, data):
                # Who takes no answers has left; there is nothing more to hear from it.
                lost()
                return
            with self._turn:
                self._unwritten -= 1


def _nothing() -> None:
    """Nothing is read yet."""


def widen(pipe: int) -> None:
    """Enlarge the buffer of a pipe, so that long lines cause fewer wake-ups."""
    with suppress(OSError, AttributeError, ImportError):
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE)


def read_some(source: int, most: int = _CHUNK) -> bytes:
    """The next bytes of a pipe; empty at its end."""
    while True:
        try:
            return os.read(source, most)
        except BlockingIOError:
            # Who is at the other end made the pipe non-blocking for itself, and so for us.
            select.select([source], [], [])
        except OSError:
            return b""


def _write_now(sink: int, data: bytes) -> int:
    """Write what a pipe takes without waiting; how many bytes that were.

    No flag of the pipe says so: they are those of the program at the other end as well.
    """
    try:
        return os.pwritev(sink, [data], -1, os.RWF_NOWAIT)
    except (OSError, AttributeError):
        return 0  # It is full, or closed, or the system has no such call.


def write_all(sink: int, data: bytes) -> bool:
    """Write to a pipe; whether there is still somebody to read it."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(sink, rest) :]
        except BlockingIOError:
            select.select([], [sink], [])
        except OSError:
            return False
    return True


def write_at_once(sink: int, data: bytes) -> None:
    """Write as much as a pipe takes without waiting; the rest is lost."""
    while data and select.select([], [sink], [], 0)[1]:
        try:
            # A pipe that can be written to takes so much at once.
            data = data[os.write(sink, data[: select.PIPE_BUF]) :]
        except OSError:
            return

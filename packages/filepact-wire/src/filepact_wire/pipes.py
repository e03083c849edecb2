"""The two pipes to the client: who reads does the work; what cannot be written at once, another thread writes.

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
from collections import deque
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from filepact.errors import no_threads
from filepact.values import begun
from filepact_wire.framing import MessageReader
from filepact_wire.messages import ErrorResponse

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

    from filepact_wire.messages import Message

    Wait = Literal["", "disk", "client"]

__all__ = [
    "MessagePipes",
    "listen",
    "read_some",
    "standard_pipes",
    "stopped_by_signals",
    "unconfirmed",
    "widen",
    "write_all",
    "write_at_once",
]

_CHUNK = 1 << 16
_WIDE = 1 << 20
_LONG = 0.01  # seconds after which another thread reads on
_LOOKS = 60  # how often it is looked for that in vain before nobody looks any more
_HELD = 0.001  # seconds after which answers are sent that were to go with those after them
_PIECES = 1_000  # of which one write is made; the system takes 1,024
_SET_SIZE, _WITHOUT_WAITING = (
    1_031,
    8,
)  # F_SETPIPE_SZ and RWF_NOWAIT of Linux: macOS has none, and refuses them
_QUEUE = 256  # pieces of work that may wait; then the client waits
_UNREAD = 1 << 25  # bytes that the client may leave unread; then nothing more is read of it
_LAST_WRITE = 2.0  # seconds for a client that is slow to take the last answers


def listen(host: str, port: int, *, backlog: int = 512) -> socket.socket:
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


def unconfirmed(connection: int) -> int:
    """How many bytes that were sent over a connection the other system has not confirmed; 0 where nobody can tell."""
    import fcntl  # noqa: PLC0415 - no such module everywhere
    import termios  # noqa: PLC0415

    try:
        told = fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(told, sys.byteorder)


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
    """Call ``stop``, in a thread of its own, on SIGTERM, SIGINT, and on SIGHUP where that is not ignored.

    A handler in Python is not enough: a signal that comes just before the main thread waits for a lock does not wake it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [signal.SIGTERM, signal.SIGINT]
    # As it is where a program is to outlast its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)

    def watch() -> None:
        while number := os.read(woken, 1)[0]:
            if number in signals:
                stop()

    watcher = threading.Thread(target=watch, name="filepact-signals", daemon=True)
    if not begun(watcher):
        os.close(woken)
        os.close(wake)
        raise no_threads()
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


def _nothing(*_anything: object) -> None:
    """Nothing is to be done."""


class MessagePipes:
    """Messages from and to one client, and the work that they ask for.

    The thread that reads does the work too, piece by piece as it comes, and sends the answers together: threads that
    hand each other work and answers take longer than most of the work.  Whoever takes long, or waits while there is
    more to do, leaves the reading to another thread, and goes on aside.  So a message is always read soon, and a
    short piece does not wait for the end of a long one.

    Args:
        source: Descriptor to read from; duplicated, so that it may be closed while somebody still waits for more of it.
        sink: Descriptor to write to.
        decode: Decodes JSON, as `MessageReader` wants it.
        encode: Encodes JSON on one line, as UTF-8 without a line end.
        workers: Most pieces of work at once; one that waits for a person is one of them.

    Attributes:
        takes_batches: Whether the client may send several messages as one.
        before: Called before messages are sent, by one thread at a time.
        receive: Takes each message, in order, in the reading thread.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        decode: Callable[[bytes], Any],
        encode: Callable[[Message], bytes],
        *,
        workers: int,
    ) -> None:
        self.before: Callable[[], None] = _nothing
        self.takes_batches: Callable[[], bool] = lambda: False
        self._encode = encode
        self._source = os.dup(source)
        self._sink = sink
        self._turn = threading.Lock()  # guards what is sent
        self._held: list[bytes] = []  # messages that go with those after them
        self._held_size = 0
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._unwritten = 0  # bytes that the writing thread has still to write
        self._writer: threading.Thread | None = None
        self._lines = MessageReader(
            decode,
            batches=lambda: self.takes_batches(),  # noqa: PLW0108 - it is set later
        )
        self._waiting = select.poll()
        self._waiting.register(self._source, select.POLLIN)
        self.receive: Callable[[Message], None] = _nothing
        self._ended: Callable[[], None] = _nothing
        self._work: deque[tuple[Callable[[], None], Wait]] = deque()
        self._workers = workers
        self._lock = threading.Lock()  # guards who does what
        self._reader: threading.Thread | None = None  # None: one was called to it
        self._more = False  # there are messages behind the one that is being taken
        self._only_reads = False  # what work there is is left to the others
        self._aside = 0  # threads that work without reading
        self._at_work: float | None = None  # since when the reading thread is
        self._rest = threading.Condition(self._lock)
        self._resting = 0
        self._room = threading.Condition(self._lock)
        self._look = threading.Condition(self._lock)
        self._looks = 0
        self._looked = 0.0  # when what had come was last taken, and what was held was sent
        self._watch: threading.Thread | None = None
        self._over = False  # nothing comes any more
        self._ends = False  # the reading thread says so itself, after the last work
        self._closed = False

    def start(
        self,
        receive: Callable[[Message], None],
        *,
        ended: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        """Begin to read and write.

        Args:
            receive: As of the attribute, which it may change.
            ended: Called after the last message, in a thread of its own if there is one.
            lost: Called when the client takes no more answers, in the writing thread.

        Raises:
            NoThreadsError: The system gives none.
        """
        self.receive, self._ended = receive, ended
        self._writer = _begin("writer", self._write, lost)
        if self._writer is None or _begin("reader", self._attend) is None:
            os.close(self._source)
            raise no_threads()

    def run(self, work: Callable[[], None], waits: Wait = "") -> None:
        """Have something done, after what came before it has begun; to be called by `receive`.

        Args:
            work: What is to be done; it must not raise.
            waits: For what it waits: the disk, so that other work is done meanwhile, or the client, which is to be
                heard meanwhile; empty for neither.
        """
        self._work.append((work, waits))

    def send(self, message: Message) -> None:
        """Send a message, after those before it; from any thread, without waiting."""
        data = self._encode(message) + b"\n"
        goes_on = self._more or self._work
        with self._turn:
            self._held.append(data)
            self._held_size += len(data)
            if goes_on and self._held_size < _CHUNK and self._reader is threading.current_thread():
                return  # It sends this before it waits for anything.
            self._send_held()

    def close(self) -> None:
        """Wait until everything is sent, if the client takes it."""
        self._flush()
        self._outgoing.put(None)
        with self._lock:
            self._closed = True
            for waiting in (self._rest, self._room, self._look):
                waiting.notify_all()
        if self._writer is not None:
            self._writer.join(_LAST_WRITE)

    # -- reading, and the work ------------------------------------------------------------

    def _attend(self) -> None:
        """Read and work whenever nobody else reads."""
        me = threading.current_thread()
        while True:
            with self._lock:
                self._resting += 1
                while self._reader is not None and not self._closed:
                    self._rest.wait()
                self._resting -= 1
                if self._closed:
                    return
                self._reader = me
            try:
                while self._step():
                    pass
            except BaseException:
                self._end()
                if self._ends:
                    self._ended()
                raise
            if self._reader is me:
                if self._ends:
                    self._ended()
                return  # Nothing comes any more.

    def _step(self) -> bool:
        """Do the next of what the reading thread does; whether it still is this one."""
        if self._unwritten >= _UNREAD:
            with self._lock:
                self._wait_for_client()
        if self._work and self._aside < self._workers:
            now = time.monotonic()
            if now - self._looked >= _HELD or self._work[0][1]:
                if self._held:
                    self._flush()
                # What came meanwhile may cancel what waits.
                if not self._over and len(self._work) < _QUEUE and self._waiting.poll(0):
                    self._take()
                now = self._looked = time.monotonic()
            return self._do(*self._work.popleft(), now)
        with self._lock:
            if self._work and self._aside < self._workers:
                return True
            self._only_reads = True
        if self._held:
            self._flush()
        if self._over:
            return False
        if len(self._work) >= _QUEUE:
            with self._lock:
                self._room.wait_for(lambda: self._closed or len(self._work) < _QUEUE)
        self._take()
        return True

    def _wait_for_client(self) -> None:
        """Wait until it has taken answers; with the lock."""
        self._room.wait_for(lambda: self._closed or self._unwritten < _UNREAD)

    def _take(self) -> None:
        """Take the messages that have come, or wait for some."""
        data = read_some(self._source)
        with self._lock:
            self._only_reads = False
            self._over = self._closed
        if self._over or not data:
            os.close(
                self._source
            )  # Only the thread that reads may: nobody waits for more of it then.
        if self._over:
            return
        items = self._lines.feed(data) if data else self._lines.end()
        for number, item in enumerate(items, start=1):
            self._more = number < len(items)
            if isinstance(item, ErrorResponse):
                self.send(item.reply)
            else:
                self.receive(item)
        if not data:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._ends = _begin("end", self._ended) is None

    def _do(self, work: Callable[[], None], waits: Wait, now: float) -> bool:
        """Do a piece of work; whether this is the reading thread after it."""
        me = threading.current_thread()
        with self._lock:
            if waits == "client" or (waits and self._work):
                self._leave_reading()
            else:
                self._at_work = now
                # Somebody looks whether this takes long; a thread is woken for that only if none looks already.
                if self._watch is None:
                    self._watch = _begin("watch", self._watching)
                elif self._looks >= _LOOKS:
                    self._look.notify()
                self._looks = 0
        work()
        with self._lock:
            if self._reader is me:
                self._at_work = None
                return True
            if not (self._only_reads and self._work):
                self._aside -= 1
                return False
        self._work_aside()
        return False

    def _leave_reading(self) -> None:
        """Have another thread read; with the lock."""
        self._reader, self._at_work = None, None
        self._aside += 1
        if self._resting:
            self._rest.notify()
        else:
            # Where there is none, this one reads on when it is done.
            _begin("reader", self._attend)

    def _work_aside(self) -> None:
        """Do what the reading thread leaves to others because there are as many as may be."""
        while True:
            with self._lock:
                if self._unwritten >= _UNREAD:
                    self._wait_for_client()
                if not (self._only_reads and self._work):
                    self._aside -= 1
                    return
                work, _ = self._work.popleft()
                self._room.notify_all()
            work()

    def _watching(self) -> None:
        with self._lock:
            while not self._closed:
                self._look.wait(_LONG if self._looks < _LOOKS else None)
                self._looks += 1
                if self._at_work is not None and time.monotonic() - self._at_work >= _LONG:
                    self._leave_reading()

    # -- writing --------------------------------------------------------------------------

    def _flush(self) -> None:
        with self._turn:
            if self._held:
                self._send_held()

    def _send_held(self) -> None:
        """Send what was held back, without waiting; with the turn."""
        self.before()
        held, size = self._held, self._held_size
        self._held, self._held_size = [], 0
        written = 0 if self._unwritten else _write_now(self._sink, held)
        if written < size:
            self._unwritten += size - written
            self._outgoing.put(b"".join(held)[written:])

    def _write(self, lost: Callable[[], None]) -> None:
        while (data := self._outgoing.get()) is not None:
            if not write_all(self._sink, data):
                # Who takes no answers has left; there is nothing more to hear from it.
                lost()
                return
            with self._turn:
                self._unwritten -= len(data)
            with self._lock:
                self._room.notify_all()


def _begin(name: str, work: Callable[..., None], *args: object) -> threading.Thread | None:
    """A thread that does something; None where the system gives none."""
    thread = threading.Thread(target=work, args=args, name=f"wire-{name}", daemon=True)
    return thread if begun(thread) else None


def widen(pipe: int) -> None:
    """Enlarge the buffer of a pipe, so that long lines cause fewer wake-ups."""
    with suppress(OSError, ImportError):
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        fcntl.fcntl(pipe, _SET_SIZE, _WIDE)


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


def _write_now(sink: int, pieces: Sequence[bytes]) -> int:
    """Write what a pipe takes without waiting; how many bytes that were.

    No flag of the pipe says so: they are those of the program at the other end as well.
    """
    try:
        return os.pwritev(sink, pieces[:_PIECES], -1, _WITHOUT_WAITING)
    except (OSError, AttributeError, NotImplementedError):
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

"""The peers of the proxy: an editor or an agent at the end of two pipes, or both behind one conductor."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.values import dataclass
from filepact_acp.proxy.line import encode, parse
from filepact_wire.framing import ByteLineReader
from filepact_wire.messages import INVALID_REQUEST, error_response
from filepact_wire.pipes import read_some, widen, write_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_wire.messages import Message

__all__ = ["LONGEST", "ConductorConnection", "ConductorSide", "PipeConnection"]

LONGEST: Final = 64 * 1_048_576
"""Most bytes of one line that is passed on."""

_SHORT, _MOST = 1 << 16, 1 << 20  # bytes that are read at once
_AT_ONCE: Final = select.PIPE_BUF  # a pipe that can be written to takes so much without waiting
_HELD: Final = 2 * LONGEST  # bytes that wait for a neighbour before who sends them waits too
_LAST_WRITE: Final = 2.0  # seconds for a neighbour that is slow to take the last lines


class PipeConnection:
    """Lines from and to one neighbour.

    Args:
        name: For the names of threads.
        source: Descriptor to read from.
        sink: Descriptor to write to.
    """

    def __init__(self, name: str, source: int, sink: int) -> None:
        self._name = name
        self._source = source
        self._sink = sink
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._held = 0
        self._writing = False
        self._open = True
        self._writer = threading.Thread(target=self._write, name=f"{name}-writer", daemon=True)

    def start(self, receive: Callable[[bytes | None], None], *, ended: Callable[[], None]) -> None:
        """Begin to read and write.

        Args:
            receive: Takes each line, in order, in the reading thread; None for one too long.
            ended: Called once the neighbour sends nothing more.
        """

        def read() -> None:
            cutter = ByteLineReader(LONGEST)
            most = _SHORT
            try:
                while data := read_some(self._source, most):
                    # What a pipe cannot hold at once is a long line, with more of it to come.
                    most = _MOST if len(data) == most else _SHORT
                    for line in cutter.feed(data):
                        receive(line)
                for line in cutter.end():
                    receive(line)
            finally:
                ended()

        for pipe in (self._source, self._sink):
            widen(pipe)
        self._writer.start()
        threading.Thread(target=read, name=f"{self._name}-reader", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send a line after those before it; waits only for a neighbour that takes nothing."""
        data = line + b"\n"
        with self._changed:
            if self._idle and len(data) <= _AT_ONCE and select.select([], [self._sink], [], 0)[1]:
                # Another thread would have to wake up for it, which takes longer than writing.
                try:
                    data = data[os.write(self._sink, data) :]
                except BlockingIOError:
                    pass
                except OSError:
                    self._open = False
            if data and self._open:
                self._changed.wait_for(lambda: self._held < _HELD or not self._open)
                self._waiting.append(data)
                self._held += len(data)
                self._changed.notify_all()

    def close(self) -> None:
        """Send what waits, if the neighbour takes it, and nothing afterwards."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or not self._open, _LAST_WRITE)
            self._open = False
            self._changed.notify_all()

    @property
    def _idle(self) -> bool:
        return self._open and not self._waiting and not self._writing

    def _write(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or not self._open)
                if not self._waiting:
                    return
                data = self._waiting.popleft()
                self._held -= len(data)
                self._writing = True
            if not write_all(self._sink, data):
                with self._changed:
                    self._open = False
                    self._writing = False
                    self._waiting.clear()
                    self._changed.notify_all()
                return


Which = Literal["editor", "agent"]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a conductor spells envelopes: of requests, and of notifications."""

    request: str
    notification: str


_MARKED: Final = _Dialect("_proxy/successor", "_proxy/successor")
_DIALECTS: Final = {
    "_proxy/initialize": _MARKED,
    "proxy/initialize": _Dialect("proxy/successor", "proxy/successor"),
    "initialize": _Dialect("_proxy/successor/request", "_proxy/successor/notification"),
}
_ENVELOPES: Final = frozenset(
    name for dialect in _DIALECTS.values() for name in (dialect.request, dialect.notification)
)


class ConductorSide:
    """One of the two sides, as the proxy knows sides.

    Args:
        chain: Where it belongs.
        which: Whose side it is.
    """

    def __init__(self, chain: ConductorConnection, which: Which) -> None:
        self._chain = chain
        self._which: Which = which
        self.receive: Callable[[bytes | None], None] = lambda _line: None

    def start(self, receive: Callable[[bytes | None], None], *, ended: Callable[[], None]) -> None:
        """Begin to listen; the chain itself begins with the second of its sides."""
        self.receive = receive
        self._chain.started(ended)

    def send(self, line: bytes) -> None:
        """Send a line to this side."""
        self._chain.send(self._which, line)

    def close(self) -> None:
        """Nothing is held for a side alone."""
        self._chain.close()


class ConductorConnection:
    """The conductor, taken apart into an editor and an agent.

    Args:
        conductor: The pipes to it.
    """

    def __init__(self, conductor: PipeConnection) -> None:
        self._conductor = conductor
        self._lock = threading.Lock()
        self._dialect: _Dialect | None = None
        self._count = 0
        self._sent: dict[int, tuple[Which, Any]] = {}
        self._waiting = 2
        self.editor = ConductorSide(self, "editor")
        self.agent = ConductorSide(self, "agent")

    def started(self, ended: Callable[[], None]) -> None:
        """A side listens."""
        self._waiting -= 1
        if not self._waiting:
            self._conductor.start(self._receive, ended=ended)

    def close(self) -> None:
        """Send what waits, and nothing afterwards."""
        self._conductor.close()

    # -- from the conductor ---------------------------------------------------------------

    def _receive(self, raw: bytes | None) -> None:
        message = None if raw is None else parse(raw).message
        if raw is None or message is None:
            return
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if self._dialect is None:
            self._begin(message, method, params)
        elif method is None:
            self._answered(message)
        elif isinstance(method, str) and method in _ENVELOPES:
            kept: Message = {name: message[name] for name in ("jsonrpc", "id") if name in message}
            inner = {name: params[name] for name in ("method", "params") if name in params}
            self.agent.receive(encode({**kept, **inner}))
        else:
            self.editor.receive(raw)

    def _begin(self, message: Message, method: Any, params: Message) -> None:
        dialect = _DIALECTS.get(method) if isinstance(method, str) else None
        meta = params.get("_meta")
        marked = isinstance(meta, dict) and meta.get("proxy") is True
        if dialect is None or (method == "initialize" and not marked):
            reason = (
                "This is a proxy without an agent. Give the agent's command after `--`, or let a "
                "conductor start it."
            )
            told = error_response(message.get("id"), INVALID_REQUEST, reason)
            self._conductor.send(encode(told))
            return
        self._dialect = dialect
        if isinstance(meta, dict):
            params = {**params, "_meta": {key: meta[key] for key in meta if key != "proxy"}}
        self.editor.receive(encode({**message, "method": "initialize", "params": params}))

    def _answered(self, message: Message) -> None:
        wanted = message.get("id")
        with self._lock:
            known = self._sent.pop(wanted, None) if isinstance(wanted, int) else None
        if known is not None:
            which, original = known
            side = self.editor if which == "editor" else self.agent
            side.receive(encode({**message, "id": original}))

    # -- to the conductor -----------------------------------------------------------------

    def send(self, which: Which, line: bytes) -> None:
        """Send a line to one side of the chain."""
        message = parse(line).message
        if message is None:
            return
        if isinstance(message.get("method"), str):
            message = self._numbered(which, message)
            if which == "agent" and message is not None:
                message = self._in_envelope(message)
        if message is not None:
            self._conductor.send(encode(message))

    def _numbered(self, which: Which, message: Message) -> Message | None:
        """A request under a number of ours: both sides' requests share one space here.

        None for what would cancel another one than it means, because that is answered, or went no further.
        """
        with self._lock:
            if "id" in message:
                self._count += 1
                self._sent[self._count] = (which, message["id"])
                return {**message, "id": self._count}
            if message["method"] != "$/cancel_request":
                return message
            params = message.get("params")
            params = params if isinstance(params, dict) else {}
            told = (which, params.get("requestId"))
            number = next((one for one, known in self._sent.items() if known == told), None)
            return {**message, "params": {**params, "requestId": number}} if number else None

    def _in_envelope(self, message: Message) -> Message:
        dialect = self._dialect or _MARKED
        outer: Message = {name: message[name] for name in ("jsonrpc", "id") if name in message}
        inner = {name: message[name] for name in ("method", "params") if name in message}
        method = dialect.request if "id" in message else dialect.notification
        return {**outer, "method": method, "params": inner}

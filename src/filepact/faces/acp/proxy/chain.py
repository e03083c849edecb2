"""A place in a chain of proxies: a conductor stands on both sides, on one pair of pipes.

What belongs to the agent's side comes and goes in envelopes.  Three spellings of them are in use;
the one in which the conductor introduces itself is kept.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.faces.acp.proxy.line import encode, parse
from filepact.wire.messages import INVALID_REQUEST, error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.acp.proxy.side import Side
    from filepact.wire.messages import Message

__all__ = ["Chain", "Link"]

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


class Link:
    """One of the two sides, as the proxy knows sides.

    Args:
        chain: Where it belongs.
        which: Whose side it is.
    """

    def __init__(self, chain: Chain, which: Which) -> None:
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


class Chain:
    """The conductor, taken apart into an editor and an agent.

    Args:
        conductor: The pipes to it.
    """

    def __init__(self, conductor: Side) -> None:
        self._conductor = conductor
        self._lock = threading.Lock()
        self._dialect: _Dialect | None = None
        self._count = 0
        self._sent: dict[int, tuple[Which, Any]] = {}
        self._waiting = 2
        self.editor = Link(self, "editor")
        self.agent = Link(self, "agent")

    def started(self, ended: Callable[[], None]) -> None:
        """A side listens."""
        self._waiting -= 1
        if not self._waiting:
            self._conductor.start(self._heard, ended=ended)

    def close(self) -> None:
        """Send what waits, and nothing afterwards."""
        self._conductor.close()

    # -- from the conductor ---------------------------------------------------------------

    def _heard(self, raw: bytes | None) -> None:
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
            if which == "agent":
                message = self._in_envelope(message)
        self._conductor.send(encode(message))

    def _numbered(self, which: Which, message: Message) -> Message:
        """A request under a number of ours: both sides' requests share one space here."""
        with self._lock:
            if "id" in message:
                self._count += 1
                self._sent[self._count] = (which, message["id"])
                return {**message, "id": self._count}
            params = message.get("params")
            if message["method"] == "$/cancel_request" and isinstance(params, dict):
                told = (which, params.get("requestId"))
                for number, known in self._sent.items():
                    if known == told:
                        return {**message, "params": {**params, "requestId": number}}
            return message

    def _in_envelope(self, message: Message) -> Message:
        dialect = self._dialect or _MARKED
        outer: Message = {name: message[name] for name in ("jsonrpc", "id") if name in message}
        inner = {name: message[name] for name in ("method", "params") if name in message}
        method = dialect.request if "id" in message else dialect.notification
        return {**outer, "method": method, "params": inner}

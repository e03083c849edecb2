"""Requests of our own to the editor, and its answers."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from filepact.faces.acp.proxy.line import encode
from filepact.faces.acp.proxy.traffic import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.faces.wire.lines import Message

__all__ = ["Questions", "Reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request.

    Attributes:
        kind: ``silent`` when the editor did not answer in time or has gone, ``cancelled`` when
            nobody wants the answer any more.
        value: The result; of an error its message.
    """

    kind: Literal["result", "error", "cancelled", "silent"]
    value: Any = None


@dataclass(slots=True, eq=False)
class _Question:
    session: str
    request: object
    answered: threading.Event = field(default_factory=threading.Event)
    reply: Reply = Reply("silent")


class Questions:
    """What the editor was asked and has not answered.

    Args:
        send: Takes a line for the editor.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._open: dict[str, _Question] = {}
        self._count = 0
        self._over = False
        self._mine = threading.local()

    def ask(
        self,
        method: str,
        params: Message,
        *,
        patience: float | None = None,
    ) -> Reply:
        """Ask, and wait for the answer.

        Args:
            method: Of the protocol.
            params: With the session's id.
            patience: Seconds to wait; None for as long as it takes a person.
        """
        request = getattr(self._mine, "request", None)
        question = _Question(str(params.get("sessionId")), request)
        with self._lock:
            if self._over:
                return Reply("silent")
            self._count += 1
            name = f"{OURS}{self._count}"
            self._open[name] = question
        self._send(encode({"jsonrpc": "2.0", "id": name, "method": method, "params": params}))
        heard = question.answered.wait(patience)
        with self._lock:
            self._open.pop(name, None)
        if not heard or question.reply.kind == "cancelled":
            told = {"method": "$/cancel_request", "params": {"requestId": name}}
            self._send(encode({"jsonrpc": "2.0", **told}))
        return question.reply

    def answered(self, name: str, message: Message) -> None:
        """The editor has answered; what nobody waits for any more is ignored."""
        with self._lock:
            question = self._open.pop(name, None)
        if question is None:
            return
        error = message.get("error")
        if error is not None:
            said = error.get("message") if isinstance(error, dict) else None
            refused = said if isinstance(said, str) and said else "the editor refused"
            question.reply = Reply("error", refused)
        else:
            question.reply = Reply("result", message.get("result"))
        question.answered.set()

    @contextmanager
    def asked_for(self, request: object) -> Iterator[None]:
        """What this thread asks meanwhile is asked because of a request of the agent."""
        self._mine.request = request
        try:
            yield
        finally:
            self._mine.request = None

    def drop(self, session: str) -> None:
        """Nobody waits any more for what a session asked."""
        self._drop(lambda question: question.session == session, "cancelled")

    def drop_for(self, request: object) -> None:
        """Nobody waits any more for what was asked because of a request."""
        self._drop(lambda question: question.request is request, "cancelled")

    def end(self) -> None:
        """The editor has gone."""
        with self._lock:
            self._over = True
        self._drop(lambda _question: True, "silent")

    def _drop(
        self, which: Callable[[_Question], bool], kind: Literal["cancelled", "silent"]
    ) -> None:
        with self._lock:
            dropped = [name for name, question in self._open.items() if which(question)]
            questions = [self._open.pop(name) for name in dropped]
        for question in questions:
            question.reply = Reply(kind)
            question.answered.set()

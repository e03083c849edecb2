"""The proxy's own requests to the editor, and the editor's answers."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from filepact.values import dataclass, field
from filepact_acp.errors import ClientResponseError
from filepact_acp.proxy.line import encode
from filepact_acp.proxy.protocol import OURS
from filepact_wire import messages
from filepact_wire.pending_requests import PendingRequests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact_acp.agents import ConnectionInfo
    from filepact_wire.messages import Message, RequestId

__all__ = ["AccessCounts", "EditorRequest", "EditorRequests", "EditorResult", "ProxyContext"]

_MOMENT: Final = 0.5  # seconds
_MOST: Final = 100  # questions that were taken back and may be answered yet


@dataclass(frozen=True, slots=True)
class EditorResult:
    """The result of a request to the editor.

    Attributes:
        kind: ``silent`` when the editor did not answer in time or has gone, ``cancelled`` when
            nobody wants the answer any more.
        value: The result; of an error a `ClientResponseError`.
    """

    kind: Literal["result", "error", "cancelled", "silent"]
    value: Any = None


class _Wanted(Protocol):
    """A request of the agent, because of which the editor is asked."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for what comes of it."""


@dataclass(slots=True, eq=False)
class EditorRequest:
    """One that waits for its answer.

    Attributes:
        request: The request of the agent because of which is asked; None for no one's.
        to_person: Whether it is put to the person.
        on_reply: Takes the reply; None where a thread waits for it.
        deadline: When it is given up, on the clock that only goes forward; None for never.
        on_late_reply: Takes an answer that comes after nobody wanted it any more; None for nobody.
        reply: What came of it.
        replied: Set once there is a reply, where a thread waits for it.
        id: Of the request; None where the editor has gone.
    """

    session: str
    request: _Wanted | None
    to_person: bool = False
    on_reply: Callable[[EditorResult], None] | None = None
    deadline: float | None = None
    on_late_reply: Callable[[EditorResult], None] | None = None
    reply: EditorResult = EditorResult("silent")
    replied: threading.Event = field(default_factory=threading.Event)
    id: RequestId | None = None

    def take(self, reply: EditorResult) -> None:
        """Hand the reply to whoever waits for it."""
        if self.on_reply is not None:
            self.on_reply(reply)
            return
        self.reply = reply
        self.replied.set()


def _is_late(now: float, question: EditorRequest) -> bool:
    return question.deadline is not None and question.deadline <= now


class EditorRequests:
    """Requests that the editor has not answered yet.

    Args:
        send: Takes a line for the editor.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._open: PendingRequests[EditorRequest] = PendingRequests(OURS)
        self._given_up: dict[RequestId, Callable[[EditorResult], None]] = {}
        self._mine = threading.local()
        self._impatient: threading.Thread | None = None
        self._timed = threading.Event()
        self._ended = threading.Event()

    def tell(self, method: str, params: Message) -> None:
        """Tell the editor something that it does not answer."""
        self._send(encode(messages.notification(method, params)))

    def ask(
        self,
        method: str,
        params: Message,
        *,
        patience: float | None = None,
        late: Callable[[EditorResult], None] | None = None,
    ) -> EditorResult:
        """Ask, and wait for the answer.

        Args:
            method: Of the protocol.
            params: With the session's id.
            patience: Seconds to wait; None for as long as it takes a person.
            late: Takes an answer that comes although the question was taken back.
        """
        return self.end_of(self.begin(method, params, late=late), patience=patience)

    def begin(
        self,
        method: str,
        params: Message,
        *,
        late: Callable[[EditorResult], None] | None = None,
        send: Callable[[bytes], object] | None = None,
    ) -> EditorRequest:
        """Ask, and go on; `end_of` waits for the answer."""
        because = getattr(self._mine, "because", None)
        question = EditorRequest(
            *(str(params.get("sessionId")), because, method == "session/request_permission"),
            on_late_reply=late,
        )
        question.id = self._put(method, params, question, send or self._send)
        if question.id is not None and because is not None and not because.is_wanted:
            # It has ended since, and with it what was asked before this.
            self._drop(lambda one: one is question)
        return question

    def begin_together(
        self,
        first: tuple[str, Message],
        second: tuple[str, Message],
        *,
        late: Callable[[EditorResult], None],
    ) -> tuple[EditorRequest, EditorRequest]:
        """Ask for two things with nothing in between; as `begin`, which `late` is of the second."""
        lines: list[bytes] = []
        asked = (
            self.begin(*first, send=lines.append),
            self.begin(*second, late=late, send=lines.append),
        )
        self._send(b"\n".join(lines))
        return asked

    def end_of(self, question: EditorRequest, *, patience: float | None = None) -> EditorResult:
        """Wait for the answer to a question.

        Args:
            question: Of `begin`.
            patience: Seconds to wait; None for as long as it takes a person.
        """
        if question.id is not None and not question.replied.wait(patience):
            if self._open.pop(question.id) is None:
                question.replied.wait()  # another thread has taken the answer and is handing it over
            else:
                self._not_wanted(question.id)
        return question.reply

    def ask_then(
        self,
        method: str,
        params: Message,
        then: Callable[[EditorResult], None],
        *,
        request: _Wanted,
        patience: float,
    ) -> None:
        """Ask, and have the reply taken by the thread that learns it, whichever that is.

        Args:
            method: Of the protocol.
            params: With the session's id.
            then: Takes the reply; it must not ask in its turn.
            request: The request of the agent because of which is asked.
            patience: Seconds until the editor counts as silent, or a little more.
        """
        until = time.monotonic() + patience
        session = str(params.get("sessionId"))
        question = EditorRequest(session, request, on_reply=then, deadline=until)
        if self._put(method, params, question, self._send) is None:
            then(EditorResult("silent"))
            return
        with self._lock:
            if self._impatient is None:
                self._impatient = threading.Thread(
                    target=self._give_up, name="acp-patience", daemon=True
                )
                self._impatient.start()
        if not self._timed.is_set():
            self._timed.set()

    def _put(
        self,
        method: str,
        params: Message,
        question: EditorRequest,
        send: Callable[[bytes], object],
    ) -> RequestId | None:
        """Send a question; the id, which is None where the editor has gone."""
        name = self._open.add(question)
        if name is not None:
            send(encode(messages.request(name, method, params)))
        return name

    def _not_wanted(self, name: RequestId) -> None:
        self._send(encode(messages.notification("$/cancel_request", {"requestId": name})))

    def receive_answer(self, name: str, message: Message) -> None:
        """The editor has answered; what nobody waits for any more is ignored."""
        question = self._open.pop(name)
        with self._lock:
            take = self._given_up.pop(name, None) if question is None else question.take
        if take is None:
            return
        error = message.get("error")
        if error is not None:
            take(EditorResult("error", ClientResponseError.of(error)))
        else:
            take(EditorResult("result", message.get("result")))

    @contextmanager
    def asked_for(self, request: _Wanted) -> Iterator[None]:
        """Count this thread's requests to the editor as made for a request of the agent.

        Args:
            request: The request.
        """
        self._mine.because = request
        try:
            yield
        finally:
            del self._mine.because

    def drop(self, session: str, *, to_person: bool = False) -> None:
        """Cancel all requests of a session, or only those that are put to the person."""
        self._drop(
            lambda question: question.session == session and (question.to_person or not to_person)
        )

    def drop_for(self, request: object) -> None:
        """Cancel all requests that were made for a request of the agent."""
        self._drop(lambda question: question.request is request)

    def end(self) -> None:
        """The editor has gone."""
        pending = self._open.close()
        self._ended.set()
        self._timed.set()
        for question in pending.values():
            question.take(EditorResult("silent"))

    def _drop(self, which: Callable[[EditorRequest], bool]) -> None:
        with self._lock:
            # An answer that comes at this moment finds what takes late ones.
            questions = self._open.pop_where(which)
            for name, question in questions.items():
                if question.on_late_reply is not None:
                    self._given_up[name] = question.on_late_reply
            while len(self._given_up) > _MOST:
                del self._given_up[next(iter(self._given_up))]
        for name, question in questions.items():
            question.take(EditorResult("cancelled"))
            self._not_wanted(name)

    def _give_up(self) -> None:
        """End the waiting for those that nobody waits for in a thread of its own."""
        while not self._ended.is_set():
            self._timed.wait()
            self._timed.clear()
            ends = [one.deadline for one in self._open.entries() if one.deadline is not None]
            # What is asked meanwhile ends later.  A moment is slept in any case: to wake up for
            # every question would take time from its answer.
            self._ended.wait(max(_MOMENT, min(ends, default=0.0) - time.monotonic()))
            now = time.monotonic()
            late = self._open.pop_where(partial(_is_late, now))
            for name, question in late.items():
                question.take(EditorResult("silent"))
                self._not_wanted(name)
            if ends:
                self._timed.set()


class AccessCounts:
    """Counts of accesses through each door of one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("reads", "writes", "asked", "refused", "calls", "past"), 0)

    def count(self, what: str, number: int = 1) -> None:
        """Something has come through."""
        with self._lock:
            self._counts[what] += number

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each was used.

        ``reads`` and ``writes`` through the protocol, permissions ``asked`` for and ``refused`` by
        the rules, ``calls`` of tools, and files changed ``past`` all of these.
        """
        with self._lock:
            return dict(self._counts)

    def __str__(self) -> str:
        counts = self.counts
        return (
            f"{counts['reads']} reads and {counts['writes']} writes through the protocol, "
            f"{counts['asked']} permissions asked for ({counts['refused']} refused by the rules), "
            f"{counts['calls']} calls of tools, {counts['past']} files changed without filepact"
        )


@dataclass(frozen=True, slots=True)
class ProxyContext:
    """The ways from the service back to both sides.

    Attributes:
        to_editor: Takes a line for the editor.
        to_agent: Takes a line for the agent.
        questions: Asks the editor.
        connection: What both sides have said about themselves.
        access_counts: Counts what comes through.
    """

    to_editor: Callable[[bytes], None]
    to_agent: Callable[[bytes], None]
    questions: EditorRequests
    connection: ConnectionInfo
    access_counts: AccessCounts = field(default_factory=AccessCounts)

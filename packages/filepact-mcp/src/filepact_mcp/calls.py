"""Tool calls of one client: each gets one answer.

A cancelled call gets none.  Calls wait for the client's folders, if it was asked for some.
"""

from __future__ import annotations

import math
import threading
import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from filepact.values import dataclass, late_logger, replace
from filepact_mcp.app import APP_TOOLS
from filepact_mcp.clients import (
    NOTES,
    ClientQuestions,
    conversation_in,
    page_for,
    turn_and_call,
)
from filepact_mcp.results import ToolResponse, call_result
from filepact_wire.messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ErrorResponse,
    notification,
    response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.operation import Actor, Session
    from filepact.tools.registry import CallResult
    from filepact_mcp.clients import ClientFolders, ClientHooks
    from filepact_mcp.protocol import ToolRequest
    from filepact_mcp.results import ServerInfo, ToolCache
    from filepact_mcp.tasks import Task, TaskList
    from filepact_wire.messages import Message, RequestId
    from filepact_wire.pipes import Wait

__all__ = [
    "PROGRESS_EVERY",
    "TASK_AFTER",
    "WORKERS",
    "CallExecutor",
    "ElicitationConnection",
    "ElicitationHandler",
    "ElicitationRequest",
    "FrameHandler",
    "ToolExecutor",
    "as_number",
    "throttled",
]

_log = late_logger(__name__)

WORKERS: Final = 8
"""Most calls that are carried out at once."""

PROGRESS_EVERY: Final = 0.2
"""Least seconds between two words about the progress of a call."""

TASK_AFTER: Final = 5.0
"""Seconds after which a call is answered with a task, where its client knows tasks."""


@dataclass(frozen=True, slots=True)
class ElicitationConnection:
    """The way from one call to the person at its client.

    Attributes:
        modes: In which the client asks.
        ask: Puts a question, with its parameters, for so many seconds or until the call is cancelled, and has
            what they said, or None; None where a question is a call's answer, which comes again with it.
        told: Sends the client a notification.
        state: Of a call that comes again.
        answers: What it comes again with.
        apps: Whether the client shows the frame of the review, which makes calls of its own.
    """

    modes: frozenset[str]
    ask: Callable[[Message, float, Callable[[], bool]], Message | None] | None = None
    told: Callable[..., None] = lambda _method, **_params: None
    state: str | None = None
    answers: Mapping[str, object] | None = None
    apps: bool = False


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """The answer to a call of the modern era while the person is asked.

    Attributes:
        requests: What the client is to ask the person, by keys.
        state: What the client sends back with the answers.
    """

    requests: Mapping[str, Message]
    state: str


class ElicitationHandler(Protocol):
    """Puts what calls leave waiting to the person at a client."""

    def ask(
        self,
        outcome: CallResult,
        channel: ElicitationConnection,
        session: Session,
        /,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        """The answer to a call once the person was asked, or what asks them."""

    def resume(
        self,
        channel: ElicitationConnection,
        session: Session,
        /,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult:
        """The answer to a call that comes again with what the person said."""


class FrameHandler(Protocol):
    """Answers the calls that the frame of the review makes."""

    def call(
        self,
        channel: ElicitationConnection,
        session: Session,
        /,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        """The answer to a call of the frame's."""

    def document(self) -> str:
        """The HTML of the frame."""


class ToolExecutor:
    """Carries out calls; used from several threads at once.

    Args:
        session_factory: Makes the session of an actor; asked once for each.
        folders: Told by the client before its first call, if it has any; None for a client that is not asked.
        page: What one answer may take, in bytes; None for what is known of the client.
        within: Goes before every name of a conversation that a host tells: two users of a gateway may
            tell the same.
        chat: Puts what waits to the person; None where that is not wanted.
        app: Makes what answers the calls of the review's frame; None where there is none.
        hooks: What is known of the client's, if it may have some.

    Attributes:
        asks: Whether a call may put something to the person.
    """

    def __init__(
        self,
        tools: ToolCache,
        *,
        session_factory: Callable[[Actor], Session],
        folders: ClientFolders | None = None,
        page: int | None = None,
        within: str = "",
        chat: ElicitationHandler | None = None,
        app: Callable[[], FrameHandler] | None = None,
        hooks: ClientHooks | None = None,
    ) -> None:
        self._hooks = hooks
        self._beside = [] if hooks is None else [hooks.beside]
        self._within = within
        self._chat = chat
        self._app = app
        self._tools = tools
        self._session_factory = session_factory
        self._sessions: dict[Actor, tuple[Session, int]] = {}
        self._latest: tuple[Actor, tuple[Session, int]] | None = None
        self._lock = threading.Lock()
        self._folders = folders
        self._page = page
        self.asks = chat is not None or app is not None

    def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        actor: Actor,
        meta: Mapping[str, object] | None,
        cancelled: Callable[[], bool],
        progress: Callable[[int, str], None],
        channel: ElicitationConnection | None = None,
    ) -> CallResult | ErrorResponse | ElicitationRequest:
        """Call a tool and wait for it; a refusal is an error of the protocol, not of the tool.

        Args:
            name: The tool.
            arguments: As they were sent.
            actor: Who calls.
            meta: What the client's notes beside the call are.
            cancelled: Whether nobody waits any more.
            progress: Told how far it is.
            channel: The way to the person.
        """
        from filepact.tools.registry import CallContext, UnknownToolError  # noqa: PLC0415 - with the tools

        refusal = None
        if self._folders is not None and not self._folders.settled:
            refusal = self._folders.wait(cancelled)
        try:
            session, page = self._session(actor, meta)
            toolbox, chat = self._tools.toolbox(), self._chat
            hooks = self._hooks if name in self._tools.changing else None
            if hooks is not None and not session.turn:
                session = replace(session, turn=hooks.turn_of(session.call))
            call = CallContext(session, cancelled, progress, page, refusal=refusal)
            about: dict[str, Any] = {"tool": name, "arguments": arguments, "cancelled": cancelled}
            if channel is not None and channel.state is not None:
                # It is not made again: whatever it has done was done when it came first.
                if chat is None:
                    return ErrorResponse(INVALID_PARAMS, "there is no such request state")
                return chat.resume(channel, call.session, **about)
            if self._app is not None and channel is not None and channel.apps and name in APP_TOOLS:
                return self._app().call(channel, call.session, **about)
            outcome = self._first(toolbox.call(name, arguments, call), actor)
            if hooks is not None:
                hooks.changed(session)
            if chat is None or channel is None:
                return outcome
            return chat.ask(outcome, channel, call.session, **about)
        except UnknownToolError as error:
            return ErrorResponse(INVALID_PARAMS, str(error))
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # The exception's text may name host paths: for the log only.
            _log.exception("%s could not be called", name)
            return ErrorResponse(INTERNAL_ERROR, "internal error; the server's log has the details")

    def _first(self, outcome: CallResult, actor: Actor) -> CallResult:
        """The answer, and with the first one what is said beside it."""
        if not self._beside:
            return outcome
        with self._lock:
            said = self._beside.pop()(actor.name) if self._beside else ""
        return replace(outcome, note=f"{outcome.note}\n{said}") if said else outcome

    def write_records(self) -> None:
        """As of `ToolCache`, for a call that is not answered."""
        self._tools.write_records()

    def answer(
        self,
        asked: ToolRequest,
        facts: ServerInfo,
        *,
        cancelled: Callable[[], bool],
        tell: Callable[[Message], None],
        channel: ElicitationConnection | None = None,
    ) -> ToolResponse:
        """Carry a request out and answer it.

        Args:
            asked: The request.
            facts: What the server says of itself.
            cancelled: Whether nobody waits any more.
            tell: Takes notifications for the client.
            channel: The way to the person.
        """
        outcome = self.call(
            asked.name,
            asked.arguments,
            actor=asked.actor,
            meta=asked.meta,
            cancelled=cancelled,
            progress=_tell_nobody if asked.token is None else _progress(asked.token, tell),
            channel=channel,
        )
        if isinstance(outcome, ErrorResponse):
            return ToolResponse(replace(outcome, id=asked.id).reply)
        if isinstance(outcome, ElicitationRequest):
            return ToolResponse(response(asked.id, facts.asking(outcome.requests, outcome.state)))
        result = call_result(outcome)
        if asked.modern:
            result = facts.modern(result)
        message = {"jsonrpc": "2.0", "id": asked.id, "result": result}
        return ToolResponse(message, outcome.on_sent, outcome.on_lost)

    def waits_for(self, name: str) -> Wait:
        """For what a call waits, as far as that is known."""
        if self._folders is not None and not self._folders.settled:
            return "client"
        return "disk" if name in self._tools.changing else ""

    def _session(self, actor: Actor, meta: Mapping[str, object] | None) -> tuple[Session, int]:
        """The session of a call, and what its answer may take."""
        latest = self._latest
        if latest is not None and latest[0] is actor:
            known = latest[1]
        else:
            with self._lock:
                if actor not in self._sessions:
                    made = self._session_factory(actor), page_for(actor.name, self._page)
                    self._sessions[actor] = made
                known = self._sessions[actor]
            self._latest = actor, known
        if not meta or NOTES.isdisjoint(meta):
            return known
        session, page = known
        turn, called = turn_and_call(meta)
        named = "" if session.conversation is None else conversation_in(actor.name, meta)
        if not (turn or called or named):
            return known
        conversation = f"{self._within}{named}" if named else session.conversation
        return replace(session, conversation=conversation, turn=turn, call=called), page


@dataclass(slots=True, eq=False)
class _RunningCall:
    """A call that waits or runs.

    Attributes:
        begun: Whether somebody has taken it on, to carry it out or to refuse it; guarded by the lock.
        cancelled: The call should come to an end.
        wanted: The client still wants to hear of it; guarded by the lock.
        task: What it was answered with; guarded by the lock.
        timer: Has it answered so.
    """

    request: ToolRequest
    begun: bool = False
    cancelled: bool = False
    wanted: bool = True
    task: Task | None = None
    timer: threading.Timer | None = None


class CallExecutor:
    """The calls of one client.

    Args:
        send: Takes what the client is to get; must not block.
        run: Has something done, now or soon, which waits for something; see `MessagePipes.run`.
        questions: Of this client, for its person.
        task_after: Seconds after which a call is answered with a task, if its client knows tasks.
    """

    def __init__(
        self,
        service: ToolExecutor,
        facts: ServerInfo,
        send: Callable[[Message], None],
        run: Callable[[Callable[[], None], Wait], None],
        questions: ClientQuestions | None = None,
        task_after: float = TASK_AFTER,
    ) -> None:
        self._task_after = task_after
        self._questions = questions or ClientQuestions(send)
        self._service = service
        self._facts = facts
        self._send = send
        self._run = run
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._running: set[_RunningCall] = set()
        self._by_id: dict[RequestId, _RunningCall] = {}
        self._finished = False
        self._awaited = False  # somebody waits for the end of calls

    @cached_property
    def tasks(self) -> TaskList:
        """The tasks of the client."""
        from filepact_mcp.tasks import TaskList  # noqa: PLC0415 - few clients know them

        return TaskList(self._facts)

    def begin(self, asked: ToolRequest) -> None:
        """Have a call carried out, unless all is over."""
        call = _RunningCall(asked)
        if asked.tasks:
            # The list is made here, by the one thread that takes messages: no two make it at once.
            call.timer = threading.Timer(self._task_after, self._hand_out, (call, self.tasks))
            call.timer.daemon = True
        with self._lock:
            if self._finished:
                return
            self._running.add(call)
            # Of two calls with one id the later can be cancelled, and both are answered.
            self._by_id[asked.id] = call
            if call.timer is not None:
                call.timer.start()
        self._run(partial(self._carry_out, call), self._service.waits_for(asked.name))

    def go_on(self, task: Task, state: str, answers: Mapping[str, object]) -> None:
        """Have the call of a task carried on, once the person was asked."""
        asked = replace(task.request, state=state, answers=answers)
        call = _RunningCall(asked, wanted=False, task=task)
        task.cancel = partial(self._end_task, call)
        with self._lock:
            if self._finished:
                return
            self._running.add(call)
        self._run(partial(self._carry_out, call), self._service.waits_for(asked.name))

    def _hand_out(self, call: _RunningCall, tasks: TaskList) -> None:
        """Answer a call that takes long with a task; it goes on."""
        with self._lock:
            if call not in self._running or not call.wanted or self._finished:
                return
            call.task, named = tasks.begin(call.request, partial(self._end_task, call))
            call.wanted = False
            if self._by_id.get(call.request.id) is call:
                del self._by_id[call.request.id]
            self._send(named)
            self._ended.notify_all()

    def _end_task(self, call: _RunningCall) -> None:
        """Have the work of a task come to an end; what has not begun does not begin."""
        with self._lock:
            waits, call.begun, call.cancelled = not call.begun, True, True
        if waits:
            self._end(call, ToolResponse(response(call.request.id, {})))

    def cancel(self, wanted: RequestId) -> None:
        """End a call and do not answer it; one that is unknown or answered is ignored."""
        with self._lock:
            call = self._by_id.pop(wanted, None) or self._by_id.pop(as_number(wanted), None)
            if call is not None:
                call.cancelled = True
                call.wanted = False
                if not call.begun:
                    call.begun = True
                    self._running.discard(call)
                self._ended.notify_all()

    def settle(self, patience: float) -> None:
        """Wait until every call is answered or unwanted, or for so many seconds."""
        with self._lock:
            self._awaited = True
            self._ended.wait_for(lambda: not any(call.wanted for call in self._running), patience)

    def finish(self) -> None:
        """Cancel every call and wait for it, so that no change is left half done.

        Calls that have not begun are not begun any more.
        """
        with self._lock:
            self._finished = self._awaited = True
            waiting = [call for call in self._running if not call.begun]
            for call in self._running:
                call.begun = call.cancelled = True
        for call in waiting:
            refusal = ErrorResponse(CONNECTION_CLOSED, "Connection closed", call.request.id)
            self._end(call, ToolResponse(refusal.reply))
        with self._lock:
            self._ended.wait_for(lambda: not self._running)
        if "tasks" in vars(self):
            self.tasks.close()

    # -- where it is run ------------------------------------------------------------------

    def _carry_out(self, call: _RunningCall) -> None:
        with self._lock:
            begun, call.begun = call.begun, True
        if not begun:
            self._end(call, self._answer(call))

    def _end(self, call: _RunningCall, answer: ToolResponse) -> None:
        """Answer a call, if it still is wanted."""
        if call.timer is not None:
            call.timer.cancel()
        with self._lock:
            try:
                if call.task is not None:
                    self.tasks.end(call.task, answer, cancelled=call.cancelled)
                    self._service.write_records()
                elif not call.wanted:
                    answer.lost()
                    self._service.write_records()
                else:
                    answer.sent()
                    self._send(answer.message)
                    call.wanted = False
            finally:
                self._running.discard(call)
                if self._by_id.get(call.request.id) is call:
                    del self._by_id[call.request.id]
                if self._awaited:
                    self._ended.notify_all()

    def _answer(self, call: _RunningCall) -> ToolResponse:
        asked = call.request

        def tell(message: Message) -> None:
            with self._lock:
                if call.wanted:
                    self._send(message)

        return self._service.answer(
            asked,
            self._facts,
            cancelled=partial(getattr, call, "cancelled"),
            tell=tell,
            channel=self._channel(asked) if self._service.asks or asked.state is not None else None,
        )

    def _channel(self, asked: ToolRequest) -> ElicitationConnection:
        ask, told = self._questions.ask, self._questions.told
        return ElicitationConnection(
            asked.modes,
            None if asked.modern else ask,
            told,
            asked.state,
            asked.answers,
            asked.apps,
        )


def _progress(token: RequestId, send: Callable[[Message], None]) -> Callable[[int, str], None]:
    """Return a function that tells a client how far its call is, under the client's token."""

    def tell(done: int, what: str) -> None:
        params = {"progressToken": token, "progress": done, "message": what}
        send(notification("notifications/progress", params))

    return throttled(tell)


def throttled(tell: Callable[[int, str], None]) -> Callable[[int, str], None]:
    """Pass on how far a call is, a few times a second, and only when it is further."""
    told, told_at = -1, -math.inf

    def report(done: int, what: str) -> None:
        nonlocal told, told_at
        now = time.monotonic()
        if done > told and now - told_at >= PROGRESS_EVERY:
            told, told_at = done, now
            tell(done, what)

    return report


def _tell_nobody(_done: int, _what: str) -> None:
    """The client did not ask to hear of the progress."""


def as_number(wanted: RequestId) -> RequestId:
    """The id that is meant where there is none such; some clients spell a number of theirs as text when cancelling."""
    try:
        return int(wanted)
    except ValueError:
        return wanted

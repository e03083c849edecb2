"""What the proxy does itself: sessions in their folders, files, permissions, and the tools."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError
from filepact.faces.acp.client_buffers import PATIENCE
from filepact.faces.acp.errors import CANCELLED, INVALID, refuse
from filepact.faces.acp.permissions import (
    Calls,
    Ruling,
    call_of,
    choose,
    own_reading,
    read_question,
    rule_on,
)
from filepact.faces.acp.proxy.editor_buffers import Texts
from filepact.faces.acp.proxy.files import FileRequests, failure
from filepact.faces.acp.proxy.line import encode, without_overrides
from filepact.faces.acp.proxy.protocol import (
    READ,
    WRITE,
    Acted,
    Bind,
    Cancel,
    Close,
    Configure,
    Document,
    Drop,
    Open,
    Reported,
    Request,
    Settled,
    Turn,
)
from filepact.faces.acp.proxy.tool_socket import Listener
from filepact.faces.acp.proxy.watch import Watch
from filepact.faces.acp.record import Record
from filepact.wire.keyed_executor import KeyedExecutor
from filepact.wire.messages import response

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.acp.agents import Facts
    from filepact.faces.acp.proxy.protocol import Step
    from filepact.faces.acp.proxy.questions import Links
    from filepact.faces.acp.sessions import Bound, Sessions
    from filepact.tools.registry import Toolbox
    from filepact.wire.messages import Message
    from filepact.workspace.workspace import Mode

__all__ = ["Service"]

_log = logging.getLogger(__name__)

_WORKERS: Final = 32

_TRIAL = ""
"""The name of a session that is not one yet; no editor can mean it."""


@dataclass(frozen=True, slots=True)
class _Opening:
    """A session that the agent has not given an id yet.

    Attributes:
        session: Its id, where the editor names it.
        alone: Whether only our server of tools can be called as it is.
        watched: Of its own, to look at the files while the agent prepares the session.
    """

    cwd: str
    additional: tuple[str, ...]
    session: str | None
    alone: bool
    watched: Bound | None


class Service:
    """One connection's.

    Args:
        links: The ways back.
        sessions: Binds sessions to their folders.
        serve: Serves the tools over a descriptor until the other end closes; None leaves the
            agent without them.
        watch: Whether it is looked for what is written past the doors.
        patience: Seconds in which the editor has to say what it shows of a file.
    """

    def __init__(
        self,
        links: Links,
        sessions: Sessions,
        serve: Callable[[Toolbox, Bound, Facts, int], None] | None = None,
        *,
        watch: bool = True,
        patience: float = PATIENCE,
    ) -> None:
        self._links = links
        self._sessions = sessions
        self._serve = serve
        self._listener: Listener | None = None
        self._lock = threading.RLock()
        self._opening: dict[str, _Opening] = {}
        self._tokens: dict[str, str] = {}
        self._served: dict[str, Bound] = {}
        self._cancelled: set[str] = set()
        self._answered_for: set[str] = set()
        self._watched: dict[str, Bound] = {}
        self._record = Record(links.facts, self._let_go)
        self._recorded: dict[str, Bound] = {}
        self._calls = Calls()
        executor = KeyedExecutor(_WORKERS, "acp-files")
        self._texts = Texts(links.questions, links.facts, executor.run, patience)
        self._watch = (
            Watch(links.facts, links.doors, self._texts.looked, self._let_go) if watch else None
        )
        self._files = FileRequests(
            self._texts, links.questions, links.facts, self._to_agent, executor
        )

    def entry(self, token: str) -> Message:
        """The server of tools as a session's request names it."""
        with self._lock:
            if self._listener is None:
                self._listener = Listener(self._serve_tools)
            return self._listener.entry(token)

    def check(self, folders: tuple[str, ...]) -> str:
        """Why there can be no session in these folders; empty when there can.

        Where a folder's own rules are wrong, nobody knows what they would have forbidden.
        """
        with self._lock:
            try:
                # Held until the session is opened, which then need not open the folders again.
                self._sessions.start(_TRIAL, folders[0], folders[1:])
            except FilepactError as error:
                return f"{error.message}. {error.hint}"
            return ""

    def do(self, step: Step) -> None:
        """Do what the traffic decided."""
        match step:
            case Request():
                self._answer(step)
            case Configure(session, mode):
                self._configure(session, mode)
            case Cancel(session, request):
                self._cancel(session, request)
            case Turn(session, begins):
                self._turn(session, begins=begins)
            case Acted(session):
                self._acted(session)
            case Reported(session, call):
                self._reported(session, call)
            case Settled(wanted, message):
                self._record.answered(wanted, message)
            case Document(method, params):
                self._hear_of_file(method, params)
            case Open() | Bind() | Drop() | Close():
                self._change_sessions(step)
            case _:
                raise AssertionError(step)

    def close(self) -> None:
        """Finish what has begun, and forget everything."""
        self._files.close()
        if self._listener is not None:
            self._listener.close()
        for session in tuple(self._recorded):
            self._unwatch(session)
        if self._watch is not None:
            self._watch.close()
        self._record.close()
        self._sessions.end_all()
        facts, doors = self._links.facts, self._links.doors
        if any(doors.counts.values()):
            _log.info("%s %s: %s", facts.agent, facts.version, doors)

    def _to_agent(self, message: Message | bytes) -> None:
        self._links.to_agent(message if isinstance(message, bytes) else encode(message))

    # -- sessions -------------------------------------------------------------------------

    def _change_sessions(self, step: Open | Bind | Drop | Close) -> None:
        with self._lock:
            match step:
                case Open(token, cwd, additional, session, alone):
                    self._sessions.start(token, cwd, additional)
                    watched = None
                    if self._watch is not None:
                        watched = self._sessions.start(f"watch {token}", cwd, additional)
                        self._watch.begin(watched)
                    self._opening[token] = _Opening(cwd, additional, session, alone, watched)
                    self._sessions.end(_TRIAL)
                case Bind(token, session):
                    self._begin(session, self._opening.pop(token))
                    self._sessions.end(token)
                    self._tokens[token] = session
                    if token in self._served:
                        self._served[token].id = session
                case Drop(token):
                    opening = self._opening.pop(token, None)
                    if self._watch is not None and opening is not None and opening.watched:
                        self._watch.end(opening.watched)
                    self._sessions.end(token)
                    self._shut(token)
                case Close(session):
                    self._end_turn(session)
                    self._sessions.end(session)
                    self._unwatch(session)
                    for token in [key for key, one in self._tokens.items() if one == session]:
                        del self._tokens[token]
                        self._shut(token)

    def _begin(self, session: str, opening: _Opening) -> None:
        self._start(session, opening)
        self._unwatch(session)
        # Of their own, so that what is looked at and written to stays open when the session is
        # closed.
        recorded = self._start(f"record {session}", opening)
        self._recorded[session] = recorded
        if opening.alone and self._sessions.settings.proxying.answer_own:
            self._answered_for.add(session)
        if opening.watched is not None:
            opening.watched.id = session
            self._watched[session] = opening.watched

    def _unwatch(self, session: str) -> None:
        self._calls.forget(session)
        self._answered_for.discard(session)
        self._links.questions.grants.forget(session)
        watched = self._watched.pop(session, None)
        if self._watch is not None and watched is not None:
            self._watch.end(watched)
        recorded = self._recorded.pop(session, None)
        if recorded is not None:
            self._record.end(recorded, session)

    def _let_go(self, watched: Bound) -> None:
        with self._lock:
            self._sessions.release(watched)

    def _shut(self, token: str) -> None:
        """Let no server of tools in any more for a session."""
        if self._listener is not None:
            self._listener.forget(token)

    def _start(self, session: str, opening: _Opening) -> Bound:
        return self._sessions.start(session, opening.cwd, opening.additional)

    def _bound(self, session: Any) -> Bound | None:
        """A session by its id.

        An agent may ask for files before it has said which id the session got that it is making.
        """
        if not isinstance(session, str) or session == _TRIAL:
            return None
        with self._lock:
            bound = self._sessions.get(session)
            if bound is not None:
                return bound
            waiting = [
                (token, one)
                for token, one in self._opening.items()
                if one.session in (session, None)
            ]
            if len(waiting) != 1:
                return None
            token, _ = waiting[0]
            return self._sessions.get(token)

    def _hear_of_file(self, method: str, params: Message) -> None:
        with suppress(FilepactError):
            bound = self._bound(params.get("sessionId"))
            if bound is not None:
                self._texts.said(bound, method, params)

    def mode(self, session: str) -> Mode | None:
        """Whether a session's allowed changes are done or wait; None where there is no such."""
        with self._lock:
            bound = self._sessions.get(session)
        return None if bound is None else bound.mode or bound.workspace.mode

    def _configure(self, session: str, mode: Mode) -> None:
        with self._lock:
            served = [one for one in self._served.values() if one.id == session]
            bound = self._sessions.get(session)
            for one in (*served, *([] if bound is None else [bound])):
                one.mode = mode

    # -- turns ----------------------------------------------------------------------------

    def _turn(self, session: str, *, begins: bool) -> None:
        if begins:
            self._cancelled.discard(session)
            bound = self._sessions.get(session)
            if bound is not None:
                bound.workspace.asked.turn(session)
        else:
            self._end_turn(session)
        watched = self._watched.get(session)
        if self._watch is not None and watched is not None:
            self._watch.turn(watched, begins=begins)

    def _acted(self, session: str) -> None:
        watched = self._watched.get(session)
        if self._watch is not None and watched is not None:
            self._watch.look(watched)

    def _reported(self, session: str, call: Message) -> None:
        bound = self._recorded.get(session)
        if bound is not None:
            self._calls.learn(session, call, bound.roots[0])
        # Who loads a session is told once more what happened in it.
        again = any(one.session == session for one in tuple(self._opening.values()))
        if bound is not None and not again:
            self._record.told(bound, session, call)

    def _cancel(self, session: str | None, request: Any) -> None:
        if session is None:
            self._files.cancel(request)
            return
        self._cancelled.add(session)
        self._end_turn(session)

    def _end_turn(self, session: str) -> None:
        """Drop what a session still has to write."""
        bound = self._sessions.get(session)
        if bound is not None:
            bound.turn += 1
        self._links.questions.drop(session)

    # -- what is answered here ------------------------------------------------------------

    def _answer(self, request: Request) -> None:
        session = request.params.get("sessionId")
        bound = self._bound(session)
        if request.method == "session/request_permission":
            self._permit(request, bound)
        elif bound is None:
            unknown = refuse(INVALID, "unknown_session", "No such session is open.")
            self._to_agent(failure(request.id, unknown))
        elif request.method == WRITE and session in self._cancelled:
            late = refuse(CANCELLED, "cancelled", "The turn was cancelled.")
            self._to_agent(failure(request.id, late))
        else:
            self._links.doors.count("reads" if request.method == READ else "writes")
            self._files.take(request, bound)

    def _permit(self, request: Request, bound: Bound | None) -> None:
        """Answer what the rules decide, and pass on what a person has to."""
        self._links.doors.count("asked")
        if bound is not None:
            asked = read_question(request.params, bound.roots[0])
            asked = self._calls.whole(bound.id, call_of(request.params), asked)
            ruling = rule_on(asked, bound.workspace.guard, self._links.facts.agent)
            if ruling.verdict != "person":
                _log.warning("%s: %s by the rules. %s", asked.title, ruling.verdict, ruling.why)
                if ruling.verdict == "deny":
                    self._links.doors.count("refused")
                answer = choose(request.params.get("options"), ruling.verdict)
                self._record.ruled(bound, request.params, asked, ruling, answer)
                self._to_agent(response(request.id, answer))
                return
            if bound.id in self._answered_for and own_reading(asked, self._links.facts.agent):
                # The tool asks the rules itself about what it is to read.
                answer = choose(request.params.get("options"), "allow")
                if answer["outcome"]["outcome"] == "selected":
                    ruling = Ruling("allow", rule="own tools")
                    self._record.ruled(bound, request.params, asked, ruling, answer)
                    self._to_agent(response(request.id, answer))
                    return
            self._record.passed(request.id, bound, request.params, asked)
        self._links.to_editor(without_overrides(request.line).passed)

    def _serve_tools(self, token: str, descriptor: int) -> None:
        """Serve the tools to the agent's connection, until either end closes it."""
        if self._serve is None:
            return
        # Not at the top: loads what checks arguments, for which no editor should wait.
        from filepact.faces.acp.proxy.tools import EditorTools  # noqa: PLC0415 - see above

        name = f"tools {token} {descriptor}"
        with self._lock:
            session = self._tokens.get(token)
            known = self._sessions.get(session or token)
            if known is None:
                return
            bound = self._sessions.start(name, known.roots[0], known.roots[1:])
            bound.id = session or token
            bound.mode = known.mode
            self._served[token] = bound
        try:
            semantics = self._sessions.semantics(bound)
            seconds = self._sessions.settings.serving.timeout
            toolbox = EditorTools(bound, self._texts, self._links, semantics, seconds=seconds)
            self._serve(toolbox, bound, self._links.facts, descriptor)
        finally:
            with self._lock:
                self._served.pop(token, None)
                self._sessions.end(name)

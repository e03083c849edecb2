"""The proxy's own work: sessions in their folders, files, permissions, the tools, and external changes."""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.config.person import home_folder
from filepact.domain.operation import Actor
from filepact.errors import FilepactError
from filepact.values import replace
from filepact.workspace.file_snapshot import unwatched_said
from filepact_acp.client_buffers import PATIENCE
from filepact_acp.errors import CANCELLED, INVALID, refuse
from filepact_acp.keyed_executor import KeyedExecutor
from filepact_acp.permissions import (
    PermissionDecision,
    call_of,
    choose,
    own_reading,
    raw_input,
)
from filepact_acp.proxy.editor_buffers import EditorTexts
from filepact_acp.proxy.files import FileRequests, failure
from filepact_acp.proxy.line import encode, without_overrides
from filepact_acp.proxy.protocol import (
    READ,
    WRITE,
    AgentRequest,
    AgentResponse,
    CancelRequest,
    DocumentNotification,
    SessionCancel,
    SessionEnd,
    SessionOpen,
    SessionReport,
    SessionResponse,
    SessionSettings,
    SessionTurn,
    ToolCallEnd,
    ToolCallMessage,
)
from filepact_acp.proxy.tool_socket import ToolSocket
from filepact_acp.record import PermissionLogWriter
from filepact_acp.settings import ProxySettings
from filepact_hooks.call_files import files_of
from filepact_hooks.tool_call import named_commands, read_tool_call
from filepact_wire.messages import response

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.tools.registry import Toolset
    from filepact.workspace.workspace import Mode
    from filepact_acp.agents import ConnectionInfo
    from filepact_acp.proxy.editor_requests import AccessCounts, ProxyContext
    from filepact_acp.proxy.protocol import Step
    from filepact_acp.sessions import AcpSession, Sessions
    from filepact_wire.messages import Message

__all__ = ["ExternalWatcher", "ProxyExecutor"]

_log = logging.getLogger(__name__)

Task = Literal["learn", "refresh", "look", "read", "end", "attend"]


class ExternalWatcher:
    """One thread that looks, so that nobody waits for it.

    What the files hold is read while there is nothing else to do.

    Args:
        facts: Who the agent is.
        doors: Counts what is found.
        looked: Told when the agent's steps up to here were looked at.
        let_go: Told when nothing is looked at any more for a session.
    """

    def __init__(
        self,
        facts: ConnectionInfo,
        doors: AccessCounts,
        looked: Callable[[AcpSession], None],
        let_go: Callable[[AcpSession], None],
    ) -> None:
        self._facts = facts
        self._doors = doors
        self._looked = looked
        self._let_go = let_go
        self._changed = threading.Condition()
        self._tasks: deque[tuple[Task, AcpSession, str]] = deque()
        self._unread: deque[AcpSession] = deque()
        self._working: list[AcpSession] = []
        self._attended: set[tuple[int, str]] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="acp-watch", daemon=True)
        self._thread.start()

    def begin(self, bound: AcpSession) -> None:
        """Learn what is there before the agent begins."""
        self._put("learn", bound)

    def turn(self, bound: AcpSession, *, begins: bool) -> None:
        """Take what a person has done until now for known, or look at what the agent has done."""
        if not begins:
            if bound in self._working:
                self._working.remove(bound)
            self._put("look", bound)
            return
        others = [
            other
            for other in self._working
            if other is not bound and other.workspace is bound.workspace
        ]
        if bound not in self._working:
            self._working.append(bound)
        if others:
            # Another agent is at work here: what it has done is not the person's.
            self._put("look", others[0])
        else:
            bound.workspace.external.mark()
            self._put("refresh", bound)

    def look(self, bound: AcpSession) -> None:
        """Look at what the agent has done so far in its turn."""
        with self._changed:
            waiting = ("look", bound, bound.turn_name) in tuple(self._tasks)[1:]
        if not waiting:
            self._put("look", bound)

    def attend(self, bound: AcpSession, call: Message, *, wait: bool) -> None:
        """Keep what the commands of a call may change, as it is before they run.

        Args:
            bound: Whose call.
            call: As the agent shows it.
            wait: Whether they do not run before this has returned; for a moment at most.
        """
        for command in named_commands(raw_input(call)):
            self._put("attend", bound, command)
        if wait:
            with self._changed:
                self._changed.wait_for(lambda: not self._waits("attend", bound), _PATIENCE)

    def _waits(self, task: Task, bound: AcpSession) -> bool:
        return any(one[:2] == (task, bound) for one in self._tasks)

    def end(self, bound: AcpSession) -> None:
        """Look for the last time, and let go of the session."""
        if bound in self._working:
            self.turn(bound, begins=False)
        self._put("end", bound)

    def close(self) -> None:
        """Do what is still to be done, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _put(self, task: Task, bound: AcpSession, command: str = "") -> None:
        with self._changed:
            # By the time that it is done another turn may have begun.
            self._tasks.append((task, bound, command or bound.turn_name))
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tasks or self._unread or self._closing)
                if not self._tasks and self._closing:
                    return
                task, bound, turn = self._tasks[0] if self._tasks else ("read", self._unread[0], "")
            try:
                self._do(task, bound, turn)
            except FilepactError as error:
                _log.warning("what was written past the doors is not known: %s", error.message)
            except Exception:  # noqa: BLE001 - looking must not end what is looked at
                _log.exception("what was written past the doors is not known")
            if task != "read":
                with self._changed:
                    self._tasks.popleft()
                    self._changed.notify_all()

    def _do(self, task: Task, bound: AcpSession, turn: str) -> None:
        outside = bound.workspace.external
        if task == "look":
            actor = Actor("agent", self._facts.agent, self._facts.version)
            looked = outside.detect(replace(bound.caller(actor), turn=turn))
            if looked.operation is not None:
                changes = len(looked.operation.changes.changes)
                self._doors.count("past", changes)
                _log.warning(
                    "%s; `filepact show %s`", looked.operation.summary, looked.operation.id
                )
            if looked.unkept:
                _log.warning("changed past the doors, and not kept: %s", ", ".join(looked.unkept))
            if bound not in self._working:
                self._attended = {one for one in self._attended if one[0] != id(bound)}
                outside.let_go(self._attended)
            self._looked(bound)
        elif task == "attend":
            does = read_tool_call("bash", {"command": turn})
            may = files_of(does, bound.workspace.guard, bound.roots[0], home_folder() or "")
            self._attended.add((id(bound), turn))
            if unkept := outside.attend((id(bound), turn), may, self._attended):
                _log.warning("if that command changes them, no undo brings these back: %s", unkept)
        elif task == "refresh":
            outside.resnapshot(contents=False)
            self._unread.append(bound)
        elif task == "learn":
            outside.snapshot(contents=False, cancelled=self._nobody_needs_it)
            if outside.unwatched:
                _log.warning("%s", unwatched_said(outside.unwatched))
            self._unread.append(bound)
        elif task == "read":
            self._unread.popleft()
            if not outside.read_contents(cancelled=lambda: bool(self._tasks) or self._closing):
                self._unread.appendleft(bound)
        else:
            self._unread = deque(one for one in self._unread if one is not bound)
            self._let_go(bound)

    def _nobody_needs_it(self) -> bool:
        """Whether everything ends before an agent has begun."""
        return self._closing and not any(task == "look" for task, *_ in tuple(self._tasks))


_log = logging.getLogger(__name__)

_WORKERS: Final = 32
_PATIENCE: Final = (
    2.0  # seconds that the agent's next word waits at most for what has to come before
)


class ProxyExecutor:
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
        links: ProxyContext,
        sessions: Sessions,
        serve: Callable[[Toolset, AcpSession, ConnectionInfo, int], None] | None = None,
        *,
        watch: bool = True,
        patience: float = PATIENCE,
    ) -> None:
        self._links = links
        self._sessions = sessions
        self._serve = serve
        self._listener: ToolSocket | None = None
        self._lock = threading.RLock()
        # By the token under which each was opened; one that was loaded again has several.
        self._by_token: dict[str, AcpSession] = {}
        self._checked: AcpSession | None = None
        self._record = PermissionLogWriter(links.connection, self._let_go)
        executor = KeyedExecutor(_WORKERS, "acp-files")
        self._texts = EditorTexts(
            links.questions, links.connection, executor.run, sessions.buffers, patience
        )
        self._watch = (
            ExternalWatcher(
                links.connection, links.access_counts, self._texts.end_step, self._let_go
            )
            if watch
            else None
        )
        self._files = FileRequests(
            self._texts, links.questions, links.connection, self._to_agent, executor
        )

    def entry(self, token: str) -> Message:
        """The server of tools as a session's request names it."""
        with self._lock:
            if self._listener is None:
                self._listener = ToolSocket(self._serve_tools)
            return self._listener.entry(token)

    def check(self, folders: tuple[str, ...]) -> str:
        """Why there can be no session in these folders; empty when there can.

        Where a folder's own rules are wrong, nobody knows what they would have forbidden.
        """
        with self._lock:
            try:
                # Held until the session is opened, which then need not open the folders again.
                checked = self._sessions.open("", folders[0], folders[1:])
            except FilepactError as error:
                return f"{error.message}. {error.hint}"
            self._sessions.end(self._checked)
            self._checked = checked
            return ""

    def do(self, step: Step) -> None:
        """Do what the traffic decided."""
        match step:
            case AgentRequest():
                self._answer(step)
            case SessionSettings(session, mode):
                self._configure(session, mode)
            case CancelRequest(None, request, line):
                # Of what is answered here the editor knows nothing.
                if not self._files.cancel(request):
                    self._links.to_editor(line)
            case CancelRequest(str(session)):
                self._cancel(session)
            case SessionReport(session):
                self._report(session)
            case SessionTurn(session, begins, words):
                self._turn(session, words, begins=begins)
            case ToolCallEnd(session):
                self._after_step(session)
            case ToolCallMessage(session, call):
                self._reported(session, call)
            case AgentResponse(wanted, message):
                self._record.record_answer(wanted, message)
            case DocumentNotification(method, params):
                self._receive_file_event(method, params)
            case SessionOpen() | SessionResponse() | SessionCancel() | SessionEnd():
                self._change_sessions(step)
            case _:
                raise AssertionError(step)

    def close(self) -> None:
        """Finish what has begun, and forget everything."""
        self._files.close()
        if self._listener is not None:
            self._listener.close()
        with self._lock:
            for session in dict.fromkeys(self._by_token.values()):
                self._unwatch(session)
        if self._watch is not None:
            self._watch.close()
        self._record.close()
        self._sessions.end_all()
        facts, doors = self._links.connection, self._links.access_counts
        if any(doors.counts.values()):
            _log.info("%s %s: %s", facts.agent, facts.version, doors)

    def _to_agent(self, message: Message | bytes) -> None:
        self._links.to_agent(message if isinstance(message, bytes) else encode(message))

    # -- sessions -------------------------------------------------------------------------

    def _change_sessions(
        self, step: SessionOpen | SessionResponse | SessionCancel | SessionEnd
    ) -> None:
        with self._lock:
            match step:
                case SessionOpen():
                    self._open(step)
                case SessionResponse(token, session_id):
                    self._bind(self._by_token[token], session_id)
                case SessionCancel(token):
                    self._end(self._by_token[token])
                case SessionEnd(session_id):
                    self._end_turn(session_id)
                    session = self._sessions.get(session_id)
                    if session is not None:
                        self._end(session)

    def _open(self, step: SessionOpen) -> None:
        session = self._sessions.open(step.session or step.token, step.cwd, step.additional)
        self._sessions.end(self._checked)
        self._checked = None
        session.opening, session.requested_id = True, step.session
        chosen: ProxySettings = self._sessions.settings.extensions.get("acp") or ProxySettings()
        session.answers_own = step.alone and chosen.answer_own
        self._by_token[step.token] = session
        if self._watch is not None:
            # Looked at while the agent prepares the session, and once more when it is over.
            self._sessions.hold(session)
            self._watch.begin(session)

    def _bind(self, session: AcpSession, session_id: str) -> None:
        """Let a session be found by the id that the agent gives it, in place of an earlier one."""
        earlier = self._sessions.get(session_id)
        if earlier is not None:
            session.cancelled = earlier.cancelled
            self._unwatch(earlier)
            for token, one in self._by_token.items():
                if one is earlier:
                    self._by_token[token] = session
        self._sessions.bind(session, session_id)
        session.opening = False
        # What is written down of it is written later, when it may have been closed.
        self._sessions.hold(session)
        session.recorded = True

    def _end(self, session: AcpSession) -> None:
        """A session is over: nothing more comes by its server of tools."""
        self._sessions.end(session)
        self._unwatch(session)
        for token in [token for token, one in self._by_token.items() if one is session]:
            del self._by_token[token]
            if self._listener is not None:
                self._listener.forget(token)

    def _unwatch(self, session: AcpSession) -> None:
        if self._watch is not None:
            self._watch.end(session)
        if session.recorded:
            session.recorded = False
            self._record.end(session)

    def _let_go(self, session: AcpSession) -> None:
        with self._lock:
            self._sessions.release(session)

    def _find(self, session_id: Any) -> AcpSession | None:
        """A session by its id.

        An agent may ask for files before it has said which id the session got that it is making.
        """
        if not isinstance(session_id, str):
            return None
        with self._lock:
            session = self._sessions.get(session_id)
            if session is not None:
                return session
            opening = [
                one
                for one in self._by_token.values()
                if one.opening and one.requested_id in (session_id, None)
            ]
            return opening[0] if len(opening) == 1 else None

    def _receive_file_event(self, method: str, params: Message) -> None:
        with suppress(FilepactError):
            session = self._find(params.get("sessionId"))
            if session is not None:
                self._texts.receive_notification(session, method, params)

    def mode(self, session_id: str) -> Mode | None:
        """Whether a session's allowed changes are done or wait; None where there is no such."""
        with self._lock:
            session = self._sessions.get(session_id)
        return None if session is None else session.mode or session.workspace.mode

    def _configure(self, session_id: str, mode: Mode) -> None:
        with self._lock:
            for session in self._sessions.named(session_id):
                session.mode = mode

    # -- turns ----------------------------------------------------------------------------

    def _turn(self, session_id: str, words: str, *, begins: bool) -> None:
        session = self._sessions.get(session_id)
        if not begins:
            if session is not None:
                session.end_turn(early=False)
            self._links.questions.drop(session_id, to_person=True)
        else:
            with self._lock:
                for one in self._sessions.named(session_id):
                    one.begin_turn()
        if begins and session is not None:
            facts = self._links.connection
            actor = Actor("agent", facts.agent, facts.version)
            session.workspace.asked.turn(session.caller(actor), words)
        if self._watch is not None and session is not None:
            self._watch.turn(session, begins=begins)

    def _report(self, session_id: str) -> None:
        """Write what came before the end of a turn, and tell the errors that it has added and left, as its last word."""
        session = self._sessions.get(session_id)
        if session is not None:
            self._files.finish(session, _PATIENCE)
        if session is None or session.cancelled or session.turn_errors is None:
            return
        text = ""
        with suppress(Exception):  # a turn ends, whatever becomes of its last word
            text = session.turn_errors()
        if text:
            # As Markdown the lines would be one paragraph, and what stands in <> would be no text.
            head, _, found = text.partition("\n")
            content = {"type": "text", "text": f"\n\n{head}\n```\n{found}\n```\n"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            self._links.questions.tell(
                "session/update", {"sessionId": session_id, "update": update}
            )

    def _after_step(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if self._watch is not None and session is not None:
            self._watch.look(session)

    def _reported(self, session_id: str, call: Message) -> None:
        session = self._sessions.get(session_id)
        if session is None:
            return
        session.calls.learn(call, session.roots[0])
        if self._watch is not None and call.get("status") in (None, "pending", "in_progress"):
            self._watch.attend(session, call, wait=False)
        with self._lock:
            again = any(
                one.opening and one.requested_id == session_id for one in self._by_token.values()
            )
        # Who loads a session is told once more what happened in it.
        if not again:
            self._record.record_call(session, call)

    def _cancel(self, session_id: str) -> None:
        with self._lock:
            for session in self._sessions.named(session_id):
                session.cancelled = True
        self._end_turn(session_id)

    def _end_turn(self, session_id: str) -> None:
        """Drop what a session still has to write."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.end_turn(early=True)
        self._links.questions.drop(session_id)

    # -- what is answered here ------------------------------------------------------------

    def _answer(self, request: AgentRequest) -> None:
        session = self._find(request.params.get("sessionId"))
        if request.method == "session/request_permission":
            self._permit(request, session)
        elif session is None:
            unknown = refuse(INVALID, "unknown_session", "No such session is open.")
            self._to_agent(failure(request.id, unknown))
        elif request.method == WRITE and session.cancelled:
            late = refuse(CANCELLED, "cancelled", "The turn was cancelled.")
            self._to_agent(failure(request.id, late))
        else:
            self._links.access_counts.count("reads" if request.method == READ else "writes")
            self._files.take(request, session)

    def _permit(self, request: AgentRequest, session: AcpSession | None) -> None:
        """Answer what the rules decide, and pass on what a person has to."""
        self._links.access_counts.count("asked")
        if session is not None:
            asked, ruling = session.judge(request.params, self._links.connection.agent)
            if ruling.verdict != "person":
                _log.warning("%s: %s by the rules. %s", asked.title, ruling.verdict, ruling.why)
                if ruling.verdict == "deny":
                    self._links.access_counts.count("refused")
                answer = choose(request.params.get("options"), ruling.verdict)
                self._record.record_ruling(session, request.params, asked, ruling, answer)
                self._to_agent(response(request.id, answer))
                return
            if (
                session.answers_own
                and not session.opening
                and own_reading(asked, self._links.connection.agent)
            ):
                # The tool asks the rules itself about what it is to read.
                answer = choose(request.params.get("options"), "allow")
                if answer["outcome"]["outcome"] == "selected":
                    ruling = PermissionDecision("allow", rule="own tools")
                    self._record.record_ruling(session, request.params, asked, ruling, answer)
                    self._to_agent(response(request.id, answer))
                    return
            self._record.record_question(request.id, session, request.params, asked)
            if self._watch is not None:
                self._watch.attend(session, call_of(request.params), wait=True)
        self._links.to_editor(without_overrides(request.line).encoded)

    def _serve_tools(self, token: str, descriptor: int) -> None:
        """Serve the tools to the agent's connection, until either end closes it."""
        if self._serve is None:
            return
        # Not at the top: loads what checks arguments, for which no editor should wait.
        from filepact_acp.proxy.tools import EditorTools  # noqa: PLC0415 - see above

        with self._lock:
            session = self._by_token.get(token)
            if session is None:
                return
            self._sessions.hold(session)
        try:
            semantics = self._sessions.semantics(session)
            seconds = self._sessions.settings.server.timeout
            toolbox = EditorTools(session, self._texts, self._links, semantics, seconds=seconds)
            self._serve(toolbox, session, self._links.connection, descriptor)
        finally:
            self._let_go(session)

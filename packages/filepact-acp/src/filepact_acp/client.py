"""A client's file system for agents, on the protocol's official package."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, suppress
from functools import partial, wraps
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from acp import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
    WriteTextFileResponse,
)
from pydantic import BaseModel, ValidationError

from filepact.config.person import read_settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError, InvalidParamsError
from filepact.values import replace
from filepact_acp import files
from filepact_acp.agents import ConnectionInfo, quirks_of
from filepact_acp.approvals import ApprovalRequest
from filepact_acp.cancellation import (
    KeyedLock,
    ScopeCancelledError,
    ThreadCalls,
    wait_registered,
)
from filepact_acp.editor_documents import EditorDocuments
from filepact_acp.errors import (
    CANCELLED,
    INVALID,
    MISSING,
    REFUSED,
    ClientRequestError,
    refuse,
    to_refusal,
)
from filepact_acp.files import Question
from filepact_acp.permissions import call_of, choose
from filepact_acp.record import PermissionLogWriter
from filepact_acp.sdk_hooks import listen
from filepact_acp.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from acp.schema import PermissionOption

    from filepact.config.settings import Settings
    from filepact.workspace.buffers import Delivery
    from filepact.workspace.workspace import Mode
    from filepact_acp.files import Change
    from filepact_acp.sdk_hooks import Start
    from filepact_acp.sessions import AcpSession

__all__ = ["ClientFileSystem"]

_log = logging.getLogger("filepact.acp")

_PATIENCE: Final = 5.0  # seconds that a request waits for its session's start to be answered
_GRACE: Final = 0.1  # seconds until a read is served before that: some agents answer only after it

_CLIENT: Final = Actor("program", "client")
_NOBODY: Final = "nobody waited for an answer any more"


class ClientFileSystem:
    """The two methods on files; a class of a client's own can inherit it.

    Args:
        state_dir: The state folder, never inside a session's folders; None takes the person's.
        read: Whether reading is announced.
        write: Whether writing is announced.
        mode: Whether allowed writes are done, or wait for a person.
        ask: Asks a person and says whether the change may be done; None leaves it waiting.
        settings: What people have set; None reads the person's and the administrator's files.
        home: The person's home folder, whose secrets links may lead to; None for the one of
            whoever runs this.
        on_delivery: Makes the edits of a change in the editor that shows the file, before the
            change is answered; False says that it did not.
        on_note: Is told in a sentence what a person should know, such as that texts were merged.
        on_change: Is told of every change that an agent has made or asks for, of what becomes of
            it, and of what `undo` and `redo` do; before the agent is answered.

    Attributes:
        buffers: What the client's editors say about the files that they show.
    """

    def __init__(  # noqa: PLR0913 - options of a public class, by name
        self,
        *,
        state_dir: str | None = None,
        read: bool = True,
        write: bool = True,
        mode: Mode = "auto",
        ask: Callable[[Question], Awaitable[bool]] | None = None,
        settings: Settings | None = None,
        home: str | None = None,
        on_delivery: Callable[[Delivery], Awaitable[bool | None]] | None = None,
        on_note: Callable[[str], None] | None = None,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        self._can_read = read
        self._can_write = write
        self._ask = ask
        # Read once, and now: a file that is wrong is not for the first session to find.
        in_force = read_settings() if settings is None else settings
        self._sessions = Sessions(state_dir, mode=mode, settings=in_force, home=home)
        self.buffers = EditorDocuments(self._sessions, on_delivery, on_note)
        self._on_change = on_change
        self._facts = ConnectionInfo()
        self._record: PermissionLogWriter | None = None
        self._numbers = count()
        self._connection: Any = None
        self._began = False
        self._agent = Actor("agent", self._facts.agent)
        self._locks = KeyedLock()
        self._calls = ThreadCalls()
        self._starts: list[Start] = []
        self._early: dict[str, AcpSession] = {}
        self._settled = asyncio.Event()

    def capabilities(self) -> ClientCapabilities:
        """Return the value of ``clientCapabilities``."""
        fs = FileSystemCapabilities(read_text_file=self._can_read, write_text_file=self._can_write)
        return ClientCapabilities(fs=fs)

    # -- sessions -------------------------------------------------------------------------

    def __init_subclass__(cls, **options: Any) -> None:
        """See to it that a class with an ``on_connect`` of its own listens as well."""
        super().__init_subclass__(**options)
        own = cls.on_connect
        if not hasattr(own, "listens"):

            @wraps(own)
            def on_connect(self: ClientFileSystem, connection: Any) -> None:
                ClientFileSystem.on_connect(self, connection)
                own(self, connection)

            on_connect.listens = True  # type: ignore[attr-defined]
            cls.on_connect = on_connect  # type: ignore[method-assign]

    def on_connect(self, connection: Any) -> None:
        """Learn sessions from what passes over a connection; the package calls this itself."""
        if connection is not self._connection:
            self._connection = connection
            listen(connection, self)

    on_connect.listens = True  # type: ignore[attr-defined]

    def agent_named(self, name: str, version: str) -> None:
        """Take the name and the version that the agent gives itself."""
        self._facts.agent = name or ConnectionInfo().agent
        self._facts.version = version
        self._agent = Actor("agent", self._facts.agent, version)

    @asynccontextmanager
    async def starting(self, start: Start) -> AsyncIterator[None]:
        """A session is being started; requests for it may come before the answer."""
        self._starts.append(start)
        try:
            yield
        finally:
            self._starts.remove(start)
            self._settled.set()
            self._settled = asyncio.Event()
            if not self._starts:
                for session_id in tuple(self._early):
                    await self._end(self._early.pop(session_id))

    async def session_started(
        self, session_id: str, cwd: str, additional_directories: Sequence[str] = ()
    ) -> None:
        """Bind a session to its folders, in place of those it had."""
        earlier = self._sessions.get(session_id)
        if earlier is not None:
            await self._end(earlier, keep=True)
        bound = self._sessions.open(session_id, cwd, additional_directories)
        self._sessions.bind(bound, session_id)
        self._began = True
        self.buffers.settle()

    async def session_closed(self, session_id: str) -> None:
        """Forget a session, once what is being done for it has ended."""
        bound = self._sessions.get(session_id)
        if bound is not None:
            await self._end(bound)

    async def _end(self, bound: AcpSession, *, keep: bool = False) -> None:
        """Finish what is being done for a session; its folders may be kept open for its next start."""
        self._drop(bound)
        bound.ending = True
        if self._record is not None and bound.recorded:
            bound.recorded = False
            self._record.end(bound)
        await self._calls.wait_finished(bound)
        if not keep:
            self._sessions.end(bound)

    def turn_started(self, session_id: str) -> None:
        """A session may write again, if its last turn was cancelled."""
        bound = self._sessions.get(session_id)
        if bound is not None:
            bound.begin_turn()

    def turn_cancelled(self, session_id: str) -> None:
        """Drop what a session still has to write, and what it wants to until its next turn."""
        bound = self._sessions.get(session_id)
        if bound is not None:
            bound.cancelled = True
            self._drop(bound)

    def turn_ended(self, session_id: str) -> None:
        """Close the questions of a session; what came before the end is written."""
        bound = self._sessions.get(session_id)
        if bound is not None:
            self._drop(bound, early=False)

    def _drop(self, bound: AcpSession, *, early: bool = True) -> None:
        bound.end_turn(early=early)
        for question, change in tuple(bound.waiting.items()):
            if change:
                _withdraw(bound, change)
            question.cancel()

    def close(self) -> None:
        """Forget all sessions; call it when the connection is closed."""
        if self._record is not None:
            self._record.close()
            self._record = None
        self._sessions.end_all()

    # -- what an agent tells and asks -----------------------------------------------------

    def update_received(self, params: dict[str, Any]) -> None:
        """Take an agent's report of a call of its tools; learned from the connection."""
        session_id, update = params.get("sessionId"), params.get("update")
        bound = self._sessions.get(session_id)
        if bound is not None and isinstance(update, dict) and "toolCallId" in update:
            call = {name: value for name, value in update.items() if name != "sessionUpdate"}
            bound.calls.learn(call, bound.roots[0])
            bound.calls.keep(call)
            # Who loads a session is told once more what happened in it.
            if not any(known == session_id for known, _ in self._starts):
                self._recording(bound).record_call(bound, call)

    async def permission(
        self, params: dict[str, Any], ask: Callable[[dict[str, Any]], Awaitable[Any]]
    ) -> Any:
        """Answer what the rules decide, and have `request_permission` answer the rest.

        Args:
            params: Of the request, as it was sent.
            ask: Calls that method, which gets the tool call with all that was told of it before.
        """
        bound = self._sessions.get(params.get("sessionId"))
        if bound is None:
            return await ask(params)
        with suppress(ScopeCancelledError):
            # What is open when a turn is cancelled is answered, and what comes after that as well.
            if not bound.cancelled:
                return await wait_registered(bound.waiting, self._permit(bound, params, ask))
        return {"outcome": {"outcome": "cancelled"}}

    async def _permit(
        self,
        bound: AcpSession,
        params: dict[str, Any],
        ask: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        asked, ruling = await asyncio.to_thread(bound.judge, params, self._facts.agent)
        record = self._recording(bound)
        if ruling.verdict != "person":
            answer = choose(params.get("options"), ruling.verdict)
            record.record_ruling(bound, params, asked, ruling, answer)
            said = f"{asked.title or 'A tool call'}: {ruling.verdict} by the rules. {ruling.why}"
            await self.buffers.tell((said,))
            return answer
        call = bound.calls.joined(call_of(params))
        try:
            ToolCallUpdate.model_validate(call)
        except ValidationError:
            # What was reported of it before is not of the protocol.
            call = call_of(params)
        number, result = next(self._numbers), None
        record.record_question(number, bound, params, asked)
        try:
            result = await ask({**params, "toolCall": call})
        finally:
            plain = result.model_dump(by_alias=True) if isinstance(result, BaseModel) else result
            record.record_answer(number, {"result": plain})
        return result

    def _recording(self, bound: AcpSession) -> PermissionLogWriter:
        """Return the writer of questions and reports, which holds the session until all is written."""
        if self._record is None:
            loop = asyncio.get_running_loop()

            def let_go(session: AcpSession) -> None:
                with suppress(RuntimeError):
                    # The loop is closed: so are the sessions, or they will be with the process.
                    loop.call_soon_threadsafe(self._sessions.release, session)

            self._record = PermissionLogWriter(self._facts, let_go)
        if not bound.recorded:
            bound.recorded = True
            self._sessions.hold(bound)
        return self._record

    # -- what was changed -----------------------------------------------------------------

    async def changes(self, session_id: str, limit: int = 50) -> tuple[Change, ...]:
        """List the changes of a session, done and pending, the newest first, each with its diff.

        Raises:
            InvalidParamsError: No such session is open.
        """
        bound = self._open(session_id)
        found: tuple[Change, ...] = await self._calls.run(
            bound, _go_on, files.changes, bound, limit
        )
        return found

    async def undo(self, session_id: str, change: str | None = None) -> Change:
        """Take back one change of a session, the newest in force unless one is named.

        Raises:
            InvalidParamsError: No such session is open.
            FilepactError: There is nothing to undo, or the same lines were changed since.
        """
        return await self._go_back(files.undo, session_id, change)

    async def redo(self, session_id: str, change: str | None = None) -> Change:
        """Bring back what was undone last in a session, or the change named.

        Raises:
            InvalidParamsError: No such session is open.
            FilepactError: There is nothing to redo, or the same lines were changed since.
        """
        return await self._go_back(files.redo, session_id, change)

    async def _go_back(
        self, back: Callable[..., Change], session_id: str, change: str | None
    ) -> Change:
        bound = self._open(session_id)
        done: Change = await self._calls.run(bound, _go_on, back, bound, change)
        await self.buffers.tell(done.receipt.notes)
        self._tell(done)
        return done

    def _open(self, session_id: str) -> AcpSession:
        bound = self._sessions.get(session_id)
        if bound is None or bound.ending:
            raise InvalidParamsError(f"no session {session_id!r} is open")
        return bound

    def _tell(self, change: Change) -> None:
        if self._on_change is None:
            return
        try:
            self._on_change(change)
        except Exception:  # noqa: BLE001 - a client's own, which must not undo the answer
            _log.exception("a change could not be told of")

    # -- methods of the protocol ----------------------------------------------------------

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        """Answer ``fs/read_text_file``."""
        if not self._can_read:
            raise RequestError.method_not_found("fs/read_text_file")
        quirks = quirks_of(self._agent.name)
        try:
            bound = await self._find(session_id, early=True)
            session = Session(session_id, self._agent, session_id)
            async with self._locks.hold(files.key(bound, session, path)):
                self._check_open(bound)
                work = partial(files.excerpt, bound, session, path, line, limit)
                part = await self._calls.run(bound, _go_on, work)
        except ClientRequestError as refusal:
            if refusal.code == MISSING and quirks.missing_is_empty:
                return ReadTextFileResponse(content="")
            raise _request_error(refusal) from None
        if quirks.counts_lines and part.total is not None:
            meta = {"originalLineCount": part.total}
            return ReadTextFileResponse(content=part.text, field_meta=meta)
        return ReadTextFileResponse(content=part.text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **meta: Any
    ) -> WriteTextFileResponse:
        """Answer ``fs/write_text_file``; the text is on the disk then."""
        if not self._can_write:
            raise RequestError.method_not_found("fs/write_text_file")
        form = meta if quirks_of(self._agent.name).tells_form else None
        try:
            bound = await self._find(session_id)
            session, dropped = bound.caller(self._agent), Event()
            if bound.cancelled:
                raise refuse(CANCELLED, "cancelled", "The turn was cancelled.")
            turn, drops = bound.turn, bound.drops
            async with self._locks.hold(files.key(bound, session, path)):
                self._check_open(bound)
                work = partial(
                    files.write,
                    *(bound, session, path, content, drops),
                    dropped=dropped.is_set,
                    form=form,
                )
                receipt = await self._calls.run(bound, dropped.set, work)
                await self.buffers.tell(receipt.notes)
            if receipt.status == "unchanged":
                return WriteTextFileResponse()
            place = path if self._on_change is None else files.named(bound, session, path)
            change = files.Change(bound.id, receipt.status, receipt, (place,), time.time())
            self._tell(change)
            if receipt.status == "pending":
                if dropped.is_set():
                    _withdraw(bound, change.id)
                    self._tell(replace(change, state="refused"))
                    raise refuse(CANCELLED, "cancelled", "The request was cancelled.")
                await self._settle(bound, path, change, turn)
        except ClientRequestError as refusal:
            raise _request_error(refusal) from None
        return WriteTextFileResponse()

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002 - the protocol's
        tool_call: ToolCallUpdate,  # noqa: ARG002 - the protocol's
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        """Say no, once; a client that can ask a person puts its own method in this place."""
        for option in options:
            if option.kind == "reject_once":
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take no notice; a client that shows what an agent does has a method of its own."""

    async def _settle(self, bound: AcpSession, path: str, asked: Change, turn: int) -> None:
        """Ask a person about a stored change, and do it or not; tell what became of it."""
        dialog = ApprovalRequest(bound.workspace, asked.id, Actor("person", "client"))
        try:
            while dialog.is_open:
                rule = asked.receipt.rule if dialog.receipt is None else dialog.receipt.rule
                diff = await asyncio.to_thread(dialog.diff)
                question = Question(dialog.change, path, diff, rule)
                allowed = await self._decision(bound, dialog, question)
                await self._carry_out(bound, dialog, path, turn, allowed=allowed)
        except BaseException:
            if bound.workspace.newest(asked.id).state == "rejected":
                self._tell(replace(asked, state="refused"))
            raise
        if dialog.receipt is None or not dialog.done:
            raise refuse(
                REFUSED,
                "approval_required",
                f"This change waits for a person as {dialog.change}: the file changed each time "
                "while they looked at it.",
            )
        self._tell(replace(asked, state="applied", receipt=dialog.receipt, when=time.time()))

    async def _decision(
        self, bound: AcpSession, dialog: ApprovalRequest, question: Question
    ) -> bool:
        """Ask the person whether a pending change is allowed.

        Raises:
            ClientRequestError: Nobody can be asked, and it waits; or its turn ended, and it waits no more.
        """
        waits = refuse(
            REFUSED,
            "approval_required",
            f"This change waits for a person as {question.change} ({question.rule}). "
            "The person finds it with `filepact review --list`, and decides there.",
        )
        if self._ask is None:
            raise waits
        try:
            return await wait_registered(bound.waiting, self._ask(question), question.change)
        except asyncio.CancelledError:
            dialog.withdraw(_CLIENT, _NOBODY)
            raise
        except ScopeCancelledError:
            raise _too_late() from None
        except Exception:  # noqa: BLE001 - a client's own, whose text is not for the agent
            _log.exception("a person could not be asked")
            raise waits from None

    async def _carry_out(
        self, bound: AcpSession, dialog: ApprovalRequest, path: str, turn: int, *, allowed: bool
    ) -> None:
        session = bound.caller(self._agent)
        async with self._locks.hold(files.key(bound, session, path)):
            self._check_open(bound)
            if bound.turn != turn:
                dialog.withdraw(_CLIENT, _NOBODY)
                raise _too_late()
            try:
                work = partial(dialog.carry_out, allowed=allowed)
                await self._calls.run(bound, _go_on, work)
            except FilepactError as error:
                raise to_refusal(error, path, bound.roots) from None
            if dialog.done and dialog.receipt is not None:
                await self.buffers.tell(dialog.receipt.notes)

    # -- finding the session --------------------------------------------------------------

    async def _find(self, session_id: str, *, early: bool = False) -> AcpSession:
        """The session of a request, if need be once its start has been answered.

        Args:
            session_id: As it was sent.
            early: Whether folders of a session that is being started will do.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (_GRACE if early else _PATIENCE)
        while (bound := self._sessions.get(session_id)) is None and self._is_starting(session_id):
            try:
                async with asyncio.timeout_at(until):
                    await self._settled.wait()
            except TimeoutError:
                if not early:
                    break
                known = self._bind_early(session_id)
                if known is not None:
                    return known
                early, until = False, loop.time() + _PATIENCE
        if bound is None:
            raise self._unknown()
        return bound

    def _unknown(self) -> ClientRequestError:
        said = "No such session is open."
        if self._connection is None and not self._began:
            said += " This client is told of none: nothing calls its on_connect or session_started."
            _log.warning("%s", said)
        return refuse(INVALID, "unknown_session", said)

    def _is_starting(self, session_id: str) -> bool:
        return any(known in ("", session_id) for known, _ in self._starts)

    def _bind_early(self, session_id: str) -> AcpSession | None:
        """The folders that a session will have, if there is only one answer to that."""
        roots = {roots for known, roots in self._starts if known in ("", session_id)}
        if len(roots) != 1:
            return None
        bound = self._early.get(session_id)
        if bound is None:
            (folders,) = roots
            bound = self._early[session_id] = self._sessions.open(
                session_id, folders[0], folders[1:]
            )
        return bound

    def _check_open(self, bound: AcpSession) -> None:
        """Refuse what waited while its session was closed or got other folders."""
        if bound.ending:
            raise refuse(CANCELLED, "cancelled", "The session was closed before this was done.")


def _go_on() -> None:
    """A read or a decision is finished, whoever waits for it."""


def _withdraw(bound: AcpSession, change: str) -> None:
    """Let a change that nobody waits for any more wait for nobody."""
    with suppress(FilepactError):
        bound.workspace.reject(change, Approval(_CLIENT, _NOBODY))


def _too_late() -> ClientRequestError:
    return refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")


def _request_error(refusal: ClientRequestError) -> RequestError:
    return RequestError(refusal.code, refusal.message, refusal.data)

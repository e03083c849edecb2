"""An agent's files, on the protocol's official package: its client's texts, guarded and undoable."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from filepact.app import open_toolbox, open_workspace
from filepact.config.person import read_settings
from filepact.domain.document import Document
from filepact.domain.operation import Actor, Session
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    InvalidParamsError,
    TooLargeError,
)
from filepact.tools.answers import failure, receipt_facts, render_receipt
from filepact.tools.engine import TOOLS
from filepact.tools.registry import CallContext, CallResult
from filepact.values import replace
from filepact.workspace.buffers import Buffers
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.excerpt import ExcerptOptions, excerpt_of
from filepact.workspace.journal import new_turn
from filepact.workspace.receipt import Receipt
from filepact_acp.approvals import ApprovalRequest
from filepact_acp.buffer_sync import BufferSync
from filepact_acp.cancellation import CancelScope, ScopeCancelledError, run_to_completion
from filepact_acp.client_buffers import PATIENCE, named_files
from filepact_acp.client_methods import TEXT_LIMIT, ClientMethods, FileCapabilities
from filepact_acp.session_buffers import ClientDocuments, PendingWrite, SessionBuffers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from acp.schema import ClientCapabilities, Implementation

    from filepact.config.settings import Settings
    from filepact.text.lines import Unit
    from filepact.tools.registry import Tool
    from filepact.workspace.draft import Draft
    from filepact.workspace.workspace import Mode
    from filepact_acp.session_buffers import ClientFile

__all__ = ["AgentFiles", "SessionFiles"]

_LOOKING = frozenset(tool.name for tool in TOOLS if tool.kind == "reads")

_HIGHEST = 2**32 - 1

_T = TypeVar("_T")


class SessionFiles:
    """The files of one session.

    Every method waits for those before it.  One that is cancelled ends only when what it had
    begun has ended or was taken back.

    Args:
        buffers: The client's texts of the session's folders, whose workspace is closed with this.
        remote: The client's methods.
        texts: What the client tells of by itself.
        person: In whose name a person is asked about changes that wait; None leaves them waiting.

    Attributes:
        workspace: For looking back: the journal, pending changes, diffs.
    """

    def __init__(
        self,
        buffers: SessionBuffers,
        remote: ClientMethods,
        texts: ClientDocuments,
        person: Actor | None = None,
    ) -> None:
        self.workspace = buffers.workspace
        self._buffers = buffers
        self._session = buffers.session
        self._remote = remote
        self._person = person
        self._sync = BufferSync(buffers, remote, texts)
        self._toolbox = open_toolbox(self.workspace)
        self._lock = asyncio.Lock()
        self._stops: set[CancelScope] = set()
        self._closed = False

    def turn_started(self) -> None:
        """The person asks for something: what is done from now on belongs to another turn.

        Learned from the connection; an agent on another calls it itself.
        """
        self._session = replace(self._session, turn=new_turn())

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, each with the name, the description and the schema for a model."""
        return self._toolbox.tools

    async def close(self) -> None:
        """End the session's files; what is being done with them ends or is taken back first."""
        for stop in self._stops:
            stop.cancel()
        async with self._lock:
            if not self._closed:
                self._closed = True
                await asyncio.to_thread(self.workspace.close)

    # -- for the agent --------------------------------------------------------------------

    async def read(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        """A file's text or some of its lines: the client's where it offers that, else the disk's.

        Args:
            path: Absolute.
            line: 1-based; None and 0 begin at the first.
            limit: Most lines; None goes to the end.

        Raises:
            FilepactError: There is nothing to be shown; nothing is asked of the client for a
                path that may not be used.
        """
        return await self._run(lambda stop: self._read(path, line, limit, stop))

    async def write(self, path: str, content: str) -> CallResult:
        """Give a file a new text: through the client where it offers that, else on the disk.

        Args:
            path: Absolute.
            content: The whole text.

        Returns:
            What was done; without a receipt when it is the client that did it.

        Raises:
            ApprovalRequiredError: It waits for a person.
            FilepactError: The file is what it was.
        """
        return await self._run(lambda stop: self._write(path, content, stop))

    async def call(self, tool: str, arguments: Mapping[str, object]) -> CallResult:
        """Call one of the tools over what the client shows; a refusal is an answer.

        Raises:
            UnknownToolError: There is no such tool.
        """
        outcome = await self._run(lambda stop: self._call(tool, arguments, stop))
        outcome.on_sent()
        return outcome

    async def undo(self, operation: str | None = None) -> CallResult:
        """Take back one operation, the newest in force unless one is named."""
        return await self._run(lambda stop: self._undo(operation, stop))

    async def _run(self, work: Callable[[CancelScope], Coroutine[Any, Any, _T]]) -> _T:
        async def run(stop: CancelScope) -> _T:
            self._stops.add(stop)
            try:
                async with stop.holding(self._lock):
                    if self._closed:
                        stop.cancel()
                    stop.check()
                    return await work(stop)
            except ScopeCancelledError:
                # Who was cancelled does not hear it.
                raise InvalidParamsError("this session's files were closed") from None
            finally:
                self._stops.discard(stop)

        return await run_to_completion(run)

    # -- reading --------------------------------------------------------------------------

    async def _read(self, path: str, line: int | None, limit: int | None, stop: CancelScope) -> str:
        _check_path(path)
        # The protocol knows no others, and has no say about what lies beyond.
        line, limit = _within(line), _within(limit)
        asked = await self._sync.look(path)
        if not self._remote.offers.read or self._buffers.is_sure(asked.path):
            return await asyncio.to_thread(self._read_here, asked, line, limit)
        if limit is None and (asked.size or 0) > TEXT_LIMIT:
            raise TooLargeError(
                f"{path}: has {asked.size:,} bytes, too many to be read whole",
                hint="Read some of its lines, with line and limit.",
                path=path,
            )
        small = (asked.size or 0) <= EDIT_LIMIT
        if small and await asyncio.to_thread(self._buffers.may_be_older, asked.path):
            # Only of all of it can be told whether anybody typed it.
            await self._sync.take(asked, await stop.wait_for(self._remote.read(asked.name)))
            return await asyncio.to_thread(self._read_here, asked, line, limit)
        text = await stop.wait_for(self._remote.read(asked.name, line, limit))
        whole = limit is None and (line or 0) <= 1 and small
        if await self._sync.take(asked, text, read=True, whole=whole):
            if (
                small
                and not whole
                and not await asyncio.to_thread(self._is_saved, asked, line, limit, text)
            ):
                # What was typed counts as shown once it is known where it stands.
                await self._sync.take(asked, await stop.wait_for(self._remote.read(asked.name)))
                await asyncio.to_thread(self._read_here, asked, line, limit)
            return text
        return await asyncio.to_thread(self._read_here, asked, line, limit)

    def _is_saved(self, asked: ClientFile, line: int | None, limit: int | None, text: str) -> bool:
        """Whether the disk has the same in some lines; they count as shown then."""
        with suppress(FilepactError):
            disk = self._buffers.stored(asked.path)
            if disk is not None:
                part = excerpt_of(
                    disk.text, ExcerptOptions(max(line or 1, 1) - 1, limit, TEXT_LIMIT), ""
                )
                if part.text.replace("\r\n", "\n") == text.replace("\r\n", "\n"):
                    shown = (part.start, part.start + len(part.text))
                    self.workspace.reader(self._session).remember(disk, [shown])
                    return True
        return False

    def _read_here(self, asked: ClientFile, line: int | None, limit: int | None) -> str:
        wanted = ExcerptOptions(max(line or 1, 1) - 1, limit, TEXT_LIMIT)
        return self.workspace.reader(self._session).excerpt(asked.path, wanted).text

    # -- changing -------------------------------------------------------------------------

    async def _call(
        self, tool: str, arguments: Mapping[str, object], stop: CancelScope
    ) -> CallResult:
        try:
            paths = named_files(tool, arguments)
            await self._sync.catch_up(paths, stop, searching=tool == "grep")
            call = CallContext(self._session, cancelled=lambda: stop.cancelled)
            refusal = await self._try_and_save(tool, arguments, paths, call, stop)
            if refusal is not None:
                return refusal
            before = await asyncio.to_thread(self._sync.files_before, paths)
            outcome = await asyncio.to_thread(self._toolbox.call, tool, arguments, call)
            receipt = outcome.receipt or {}
            if receipt.get("status") == "pending":
                outcome = await self._answered(outcome, str(receipt["operation"]), paths, stop)
                receipt = outcome.receipt or {}
            if receipt.get("status") != "applied":
                return outcome
            return await self._sync.carry_out(outcome, str(receipt["operation"]), before, stop)
        except FilepactError as error:
            return failure(error)

    async def _try_and_save(
        self,
        tool: str,
        arguments: Mapping[str, object],
        paths: Sequence[str],
        call: CallContext,
        stop: CancelScope,
    ) -> CallResult | None:
        """Before a change of unsaved text: see that it can be made, and let the client save.

        Editors that find a file changed on the disk under text that they have not saved ask the
        person which of both is to go; under text that they have saved they load it again.

        Returns:
            The tool's refusal; None when the change can be made.
        """
        for_now = self.workspace.mode == "preview" or arguments.get("dry_run") is True
        if tool in _LOOKING or for_now or not self._buffers.to_save(paths):
            return None
        trial = {**arguments, "dry_run": True}
        outcome = await asyncio.to_thread(self._toolbox.call, tool, trial, call)
        if outcome.failed:
            return outcome
        if (outcome.receipt or {}).get("status") == "preview":
            await self._sync.save(paths, stop)
        return None

    async def _answered(
        self, outcome: CallResult, change: str, paths: Sequence[str], stop: CancelScope
    ) -> CallResult:
        """Put a pending change to the person; returns what came of it.

        Raises:
            UserDeniedError: The person said no.
        """
        if self._person is None:
            return outcome
        dialog = ApprovalRequest(self.workspace, change, self._person, name=self._buffers.name_of)
        while dialog.is_open:
            question, call_id = await asyncio.to_thread(dialog.question), dialog.call_id
            try:
                allowed: bool | None = True
                if question is not None:
                    asking = self._remote.choose(question.call, question.options)
                    allowed = dialog.understand(await stop.wait_for(asking))
                if allowed is None:
                    break
                await self._sync.catch_up(paths, stop)
                if allowed:
                    await self._sync.save(paths, stop)
                await asyncio.to_thread(dialog.carry_out, allowed=allowed)
            except ScopeCancelledError:
                actor = self._session.actor
                await asyncio.to_thread(dialog.withdraw, actor, "it was cancelled")
                raise
            finally:
                if question is not None:
                    await self._remote.close(call_id, done=dialog.done)
        if dialog.done:
            # What was said to this change is in the answer to it, and is not told again.
            await asyncio.to_thread(self.workspace.acknowledge_answer, self._session, change)
        return outcome if dialog.receipt is None else _outcome(dialog.receipt)

    async def _undo(self, operation: str | None, stop: CancelScope) -> CallResult:
        try:
            plan = await asyncio.to_thread(
                self.workspace.undo, self._session, operation, dry_run=True
            )
            paths = [file.path for file in plan.files]
            await self._sync.catch_up(paths, stop)
            await self._sync.save(paths, stop)
            before = await asyncio.to_thread(self._sync.files_before, paths)
            receipt = await asyncio.to_thread(
                self.workspace.undo, self._session, operation, dry_run=False
            )
            outcome = _outcome(receipt)
            return await self._sync.carry_out(outcome, str(receipt.operation), before, stop)
        except FilepactError as error:
            return failure(error)

    # -- writing --------------------------------------------------------------------------

    async def _write(self, path: str, content: str, stop: CancelScope) -> CallResult:
        _check_path(path)
        _check_content(path, content)
        await self._sync.catch_up([path], stop)
        before = await asyncio.to_thread(self._sync.files_before, [path])
        made = await asyncio.to_thread(self._make, path, content, stop)
        if isinstance(made, Receipt):
            outcome = _outcome(made)
            if made.status == "pending":
                outcome = await self._answered(outcome, str(made.operation), [path], stop)
            facts = outcome.receipt or {}
            if facts["status"] == "pending":
                raise ApprovalRequiredError(
                    f"{path}: waits for a person as {facts['operation']} ({made.rule})",
                    hint="The person finds it with `filepact review --list`, and decides there.",
                    path=path,
                )
            if facts["status"] == "applied":
                outcome = await self._sync.carry_out(outcome, str(facts["operation"]), before, stop)
            return outcome
        news, draft = made
        news = await self._sync.hand_over(news, stop)
        self._sync.mark(news)
        note = await asyncio.to_thread(self._buffers.settle, news)
        self.workspace.record_write(draft)
        said = [f"The client has written {path}.", *draft.notes, note]
        return CallResult("\n".join(filter(None, said)))

    def _make(
        self, path: str, content: str, stop: CancelScope
    ) -> Receipt | tuple[PendingWrite, Draft]:
        """Draft a write: for the client to carry out, or carried out here where it is not the client's."""
        asked = self._buffers.ask(path)
        with self.workspace.draft(self._session, "fs/write_text_file") as draft:
            target = draft.open(path)
            draft.write(target, content)
            stop.check()
            waits = draft.asks or self.workspace.mode == "preview"
            old = target.document
            # No message can carry bytes that are no text.
            of_itself = old is not None and (not draft.opened or old.source.encoding.damaged)
            if asked is None or waits or of_itself or not self._remote.offers.write:
                return self.workspace.submit(draft, f"write {target.location.shown}")
            changes, document, text = draft.changes.changes, target.document, content
            if document is not None and changes and changes[0].after is not None:
                after = changes[0].after
                data = draft.result().contents[after.content]
                document = Document(target.location.path, data, after, document.named_encoding)
            if document is not None:
                text = document.text
        return PendingWrite(asked, document, self._buffers.in_client_style(asked.path, text)), draft


def _outcome(receipt: Receipt) -> CallResult:
    return CallResult(render_receipt(receipt), receipt=receipt_facts(receipt))


def _within(number: int | None) -> int | None:
    return None if number is None else min(max(number, 0), _HIGHEST)


def _check_path(path: str) -> None:
    if not path.startswith("/") or "\0" in path:
        raise InvalidParamsError("the path has to be absolute", path=path)


def _check_content(path: str, content: str) -> None:
    try:
        content.encode()
    except UnicodeEncodeError:
        raise InvalidParamsError(f"{path}: the content holds half a character") from None


class AgentFiles:
    """The files of one connection to a client; make it in the agent's ``on_connect``.

    What the client announces, the documents that it tells of and the ends of its sessions are
    learned from the connection.

    Args:
        connection: What ``on_connect`` is given, or anything with its methods on files.
        state_dir: The state folder, never inside a session's folders; None takes the person's.
        agent: The agent's name, for rules and for the journal.
        version: The agent's version.
        mode: Whether allowed changes are done, or wait for a person.
        ask: Whether the client's person is asked about changes that wait; else they stay waiting
            for the person's own command.
        settings: What people have set; None reads the person's and the administrator's files.
        home: The person's home folder, whose secrets links may lead to; None for the one of
            whoever runs this.
        unit: What columns count in the client's notices about documents.
        patience: Seconds in which the client has to say what it shows of a file.
    """

    def __init__(  # noqa: PLR0913 - options of a public class, by name
        self,
        connection: Any,
        *,
        state_dir: str | None = None,
        agent: str = "acp agent",
        version: str = "",
        mode: Mode = "auto",
        ask: bool = True,
        settings: Settings | None = None,
        home: str | None = None,
        unit: Unit = "utf-16",
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        # Read once, and now: a file that is wrong is not for the first session to find.
        in_force = read_settings() if settings is None else settings
        self._workspace = partial(
            open_workspace, state_dir=state_dir, mode=mode, settings=in_force, home=home
        )
        self._connection = connection
        self._agent = Actor("agent", agent, version)
        self._ask = ask
        self._client = "acp client"
        self._texts = ClientDocuments(unit)
        self._sessions: dict[str, SessionFiles] = {}
        self.offers = FileCapabilities()
        self._listen()

    # -- what the client says -------------------------------------------------------------

    def initialized(
        self,
        client_capabilities: ClientCapabilities | None,
        client_info: Implementation | None = None,
    ) -> None:
        """Take down what the client offers; learned from the connection where there is one."""
        fs = None if client_capabilities is None else client_capabilities.fs
        self.offers = FileCapabilities(
            fs is not None and fs.read_text_file is True,
            fs is not None and fs.write_text_file is True,
        )
        if client_info is not None:
            self._client = client_info.name

    async def notification(self, method: str, params: object) -> bool:
        """Take down a notice about a document; False for any other, which is not looked at.

        Raises:
            InvalidParamsError: It does not fit what is known of the document.
        """
        if not method.startswith("document/"):
            return False
        self._texts.receive(method, params)
        return True

    def _listen(self) -> None:
        """Learn from what passes over the connection."""
        # The package hands notices that it has no method for to nobody.
        wire = getattr(self._connection, "_conn", None)
        handler = getattr(wire, "_handler", None)
        if wire is None or handler is None:
            return

        async def handle(method: str, params: Any, is_notification: bool) -> Any:
            if is_notification and method.startswith("document/"):
                with suppress(InvalidParamsError):
                    await self.notification(method, params)
                return None
            if method == "initialize" and isinstance(params, dict):
                self.offers = FileCapabilities.of(params.get("clientCapabilities"))
                info = params.get("clientInfo")
                if isinstance(info, dict) and isinstance(info.get("name"), str):
                    self._client = info["name"][:200] or self._client
            if method == "session/prompt" and isinstance(params, dict):
                prompted = self._sessions.get(str(params.get("sessionId")))
                if prompted is not None:
                    prompted.turn_started()
            answer = await handler(method, params, is_notification)
            if method in {"session/close", "session/delete", "nes/close"}:
                session_id = params.get("sessionId") if isinstance(params, dict) else None
                self._texts.forget(str(session_id))
                await self.session_closed(str(session_id))
            return answer

        wire._handler = handle  # noqa: SLF001 - see above

    # -- sessions -------------------------------------------------------------------------

    async def session(
        self, session_id: str, cwd: str, additional_directories: Sequence[str] | None = None
    ) -> SessionFiles:
        """Open the files of a session, in place of those it had.

        Args:
            session_id: As the client knows it.
            cwd: The session's working folder, from which relative paths go.
            additional_directories: Its other folders.

        Raises:
            InvalidParamsError: A folder is not absolute.
            NotFoundError: A folder is not there.
        """
        roots = tuple(dict.fromkeys((cwd, *(additional_directories or ()))))
        if not all(root.startswith("/") for root in roots):
            raise InvalidParamsError("a session's folders have to be absolute paths")
        await self.session_closed(session_id)
        caller = Session(session_id, self._agent, session_id)
        buffers = await asyncio.to_thread(self._open, roots, caller)
        remote = ClientMethods(self._connection, session_id, self.offers, patience=self._patience)
        asks = self._ask and self._connection is not None
        person = Actor("person", self._client) if asks else None
        files = SessionFiles(buffers, remote, self._texts, person)
        # Another may have been opened under this name while the folders were.
        await self.session_closed(session_id)
        self._sessions[session_id] = files
        return files

    def _open(self, roots: tuple[str, ...], caller: Session) -> SessionBuffers:
        held = Buffers()
        workspace = self._workspace(roots, buffers=held)
        return SessionBuffers(workspace, held, session=caller, client=self._client, folders=roots)

    def get(self, session_id: str) -> SessionFiles | None:
        """The files of a session that was opened and has not ended."""
        return self._sessions.get(session_id)

    async def session_closed(self, session_id: str) -> None:
        """Forget a session, once what is being done for it has ended."""
        files = self._sessions.pop(session_id, None)
        if files is not None:
            await files.close()

    async def close(self) -> None:
        """Forget all sessions; call it when the connection has ended."""
        for session_id in tuple(self._sessions):
            await self.session_closed(session_id)

"""One session's files for an agent: read, written and changed by tools, in step with its client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from filepact.app import open_toolbox
from filepact.domain.document import Document
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    NotFoundError,
    TooLargeError,
)
from filepact.faces.acp.delivery import Delivery
from filepact.faces.acp.named import named_files
from filepact.faces.acp.remote import TEXT_LIMIT
from filepact.faces.acp.shown import News
from filepact.faces.acp.waiting import Stop, to_its_end
from filepact.tools.answer import receipt_facts, render_receipt
from filepact.tools.registry import Call, Outcome
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.excerpt import Wanted
from filepact.workspace.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from filepact.domain.operation import Session
    from filepact.faces.acp.notices import OpenTexts
    from filepact.faces.acp.remote import Remote
    from filepact.faces.acp.shown import Asked, Shown
    from filepact.tools.registry import Tool
    from filepact.workspace.workspace import Workspace

__all__ = ["SessionFiles"]


class SessionFiles:
    """The files of one session.

    Every method waits for those before it.  One that is cancelled ends only when what it had
    begun has ended or was taken back.

    Args:
        workspace: The session's folders; closed with this.
        shown: The client's texts of them.
        session: Who asks.
        remote: The client's methods.
        texts: What the client tells of by itself.

    Attributes:
        workspace: For looking back: the journal, pending changes, diffs.
    """

    def __init__(
        self,
        workspace: Workspace,
        shown: Shown,
        *,
        session: Session,
        remote: Remote,
        texts: OpenTexts,
    ) -> None:
        self.workspace = workspace
        self._shown = shown
        self._session = session
        self._remote = remote
        self._texts = texts
        self._delivery = Delivery(workspace, shown, session=session, remote=remote, texts=texts)
        self._toolbox = open_toolbox(workspace)
        self._lock = asyncio.Lock()
        self._closed = False

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, each with the name, the description and the schema for a model."""
        return self._toolbox.tools

    async def close(self) -> None:
        """End the session's files, once what is being done with them has ended."""
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

    async def write(self, path: str, content: str) -> Receipt | None:
        """Give a file a new text: through the client where it offers that, else on the disk.

        Args:
            path: Absolute.
            content: The whole text.

        Returns:
            What was done and recorded on the disk; None when the client did it.

        Raises:
            ApprovalRequiredError: It waits for a person.
            FilepactError: The file is what it was.
        """
        return await self._run(lambda stop: self._write(path, content, stop))

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Outcome:
        """Call one of the tools over what the client shows; a refusal is an answer.

        Raises:
            UnknownToolError: There is no such tool.
        """
        return await self._run(lambda stop: self._call(tool, arguments, stop))

    async def undo(self, operation: str | None = None) -> Outcome:
        """Take back one operation, the newest in force unless one is named."""
        return await self._run(lambda stop: self._undo(operation, stop))

    async def _run(self, work: Callable[[Stop], Any]) -> Any:
        async def run(stop: Stop) -> Any:
            async with stop.holding(self._lock):
                if self._closed:
                    raise InvalidParamsError("this session's files were closed")
                return await work(stop)

        return await to_its_end(run)

    # -- reading --------------------------------------------------------------------------

    async def _read(self, path: str, line: int | None, limit: int | None, stop: Stop) -> str:
        _check_path(path)
        asked = await asyncio.to_thread(self._look, path)
        if not self._remote.offers.read or self._shown.is_sure(asked.path):
            return await asyncio.to_thread(self._read_here, asked, line, limit)
        if limit is None and (asked.size or 0) > TEXT_LIMIT:
            raise TooLargeError(
                f"{path}: has {asked.size:,} bytes, too many to be read whole",
                hint="Read some of its lines, with line and limit.",
                path=path,
            )
        text = await stop.unless(self._remote.read(asked.name, line, limit))
        whole = limit is None and (line or 0) <= 1
        await asyncio.to_thread(self._take_note, asked, text, whole=whole)
        return text

    def _look(self, path: str) -> Asked:
        asked = self._shown.ask(path)
        if asked is None:
            raise NotAFileError(f"{path}: is not a file", path=path)
        self._shown.keep_open(self._texts.present(), can_ask=self._remote.offers.read)
        return asked

    def _read_here(self, asked: Asked, line: int | None, limit: int | None) -> str:
        count = None if limit is None else max(limit, 0)
        wanted = Wanted(max(line or 1, 1) - 1, count, TEXT_LIMIT)
        return self.workspace.reader(self._session).excerpt(asked.path.absolute, wanted).text

    def _take_note(self, asked: Asked, text: str, *, whole: bool) -> None:
        """Ask the rules about what a file holds, and remember that the agent has seen it."""
        agent = self._session.agent
        self.workspace.guard.check_held(asked.path, "read", text.encode(), agent=agent)
        if whole and (asked.size or 0) <= EDIT_LIMIT:
            self._keep({asked: text})
            self._shown.note_seen(asked.path)

    # -- in step with the client ----------------------------------------------------------

    async def _catch_up(self, paths: Sequence[str], stop: Stop, *, searching: bool = False) -> None:
        """Ask the client for its present text of files that are about to be used."""
        wanted = await asyncio.to_thread(self._wanted, paths, searching=searching)
        found: dict[Asked, str | None] = {}
        for asked, is_named in wanted.items():
            try:
                found[asked] = await stop.unless(self._remote.read(asked.name))
            except NotFoundError:
                found[asked] = None
            except FilepactError as error:
                if is_named and not await self._is_for_the_disk(asked, error):
                    raise
        stop.check()
        await asyncio.to_thread(self._keep, found)

    def _wanted(self, paths: Sequence[str], *, searching: bool) -> dict[Asked, bool]:
        """The files to ask for, and whether the call names them."""
        can_ask = self._remote.offers.read
        doubtful = self._shown.keep_open(self._texts.present(), can_ask=can_ask)
        wanted: dict[Asked, bool] = {}
        if not can_ask:
            return wanted
        for path in paths:
            try:
                asked = self._shown.ask(path)
            except FilepactError:
                # The tool says why.
                continue
            if asked is not None and (asked.size or 0) <= EDIT_LIMIT:
                wanted[asked] = True
        if searching:
            for asked in (*doubtful, *self._shown.unsaved()):
                wanted.setdefault(asked, False)
        return {
            asked: is_named
            for asked, is_named in wanted.items()
            if not self._shown.is_sure(asked.path)
        }

    async def _is_for_the_disk(self, asked: Asked, error: FilepactError) -> bool:
        """Whether a client cannot show a file because what it holds is no text."""
        if error.code not in {"READ_ERROR", "BINARY_FILE", "ENCODING_UNSAFE", "INVALID_PARAMS"}:
            return False
        return not await asyncio.to_thread(self._shown.is_text, asked)

    def _keep(self, found: Mapping[Asked, str | None]) -> None:
        for asked, text in found.items():
            self._shown.keep(asked, text)
            name = self._shown.open_name(asked.path)
            if name is not None and text is not None:
                self._texts.confirm(name, text)

    # -- changing -------------------------------------------------------------------------

    async def _call(self, tool: str, arguments: Mapping[str, object], stop: Stop) -> Outcome:
        try:
            paths = named_files(tool, arguments)
            await self._catch_up(paths, stop, searching=tool == "grep")
            call = Call(self._session, cancelled=lambda: stop.called)
            before = await asyncio.to_thread(self._delivery.before, paths)
            outcome = await asyncio.to_thread(self._toolbox.call, tool, arguments, call)
            receipt = outcome.receipt or {}
            if receipt.get("status") != "applied":
                return outcome
            return await self._delivery.carry_out(outcome, str(receipt["operation"]), before, stop)
        except FilepactError as error:
            return Outcome(error.report(), failed=True, code=error.code)

    async def _undo(self, operation: str | None, stop: Stop) -> Outcome:
        try:
            plan = await asyncio.to_thread(
                self.workspace.undo, self._session, operation, dry_run=True
            )
            paths = [file.path for file in plan.files]
            await self._catch_up(paths, stop)
            before = await asyncio.to_thread(self._delivery.before, paths)
            receipt = await asyncio.to_thread(
                self.workspace.undo, self._session, operation, dry_run=False
            )
            outcome = Outcome(render_receipt(receipt), receipt=receipt_facts(receipt))
            return await self._delivery.carry_out(outcome, str(receipt.operation), before, stop)
        except FilepactError as error:
            return Outcome(error.report(), failed=True, code=error.code)

    # -- writing --------------------------------------------------------------------------

    async def _write(self, path: str, content: str, stop: Stop) -> Receipt | None:
        _check_path(path)
        _check_content(path, content)
        await self._catch_up([path], stop)
        before = await asyncio.to_thread(self._delivery.before, [path])
        made = await asyncio.to_thread(self._make, path, content, stop)
        if isinstance(made, Receipt):
            if made.status == "pending":
                raise ApprovalRequiredError(
                    f"{path}: waits for a person as {made.operation} ({made.rule})",
                    hint=f"The person can say `filepact approve {made.operation}`.",
                    path=path,
                )
            if made.status == "applied":
                outcome = Outcome(render_receipt(made))
                await self._delivery.carry_out(outcome, str(made.operation), before, stop)
            return made
        await stop.unless(self._remote.write(made.asked.name, made.text))
        self._delivery.mark(made)
        await asyncio.to_thread(self._settle_written, made)
        return None

    def _make(self, path: str, content: str, stop: Stop) -> Receipt | News:
        """What the client is to write, or what became of it where it is not for the client."""
        asked = self._shown.ask(path)
        with self.workspace.draft(self._session, "fs/write_text_file") as draft:
            target = draft.open(path)
            draft.write(target, content)
            stop.check()
            here = not self._remote.offers.write or asked is None
            if here or draft.asks or self.workspace.mode == "preview":
                return self.workspace.submit(draft, f"write {target.spot.shown}")
            changes, document, text = draft.changes.changes, target.document, content
            if document is not None and changes and changes[0].after is not None:
                after = changes[0].after
                data = draft.contents[after.content]
                document = Document(target.spot.path, data, after, document.given)
                text = document.text
        return News(asked, document, self._shown.as_shown(asked.path, text))

    def _settle_written(self, news: News) -> None:
        self._shown.settle(news)
        self._shown.note_seen(news.asked.path)


def _check_path(path: str) -> None:
    if not path.startswith("/") or "\0" in path:
        raise InvalidParamsError("the path has to be absolute", path=path)


def _check_content(path: str, content: str) -> None:
    try:
        content.encode()
    except UnicodeEncodeError:
        raise InvalidParamsError(f"{path}: the content holds half a character") from None

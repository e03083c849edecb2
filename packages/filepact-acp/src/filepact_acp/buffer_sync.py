"""Synchronisation of a client's buffers with an agent's tools.

Before a call the client is asked for the present text of each file that it names; after it, the
client is given the new texts, and what it refuses is taken back.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError, NotAFileError, StaleFileError, WriteFailedError
from filepact.values import replace
from filepact.workspace.documents import EDIT_LIMIT
from filepact_acp.cancellation import CancelScope, ScopeCancelledError
from filepact_acp.client_buffers import ClientWrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.domain.document import Document, WorkspacePath
    from filepact.tools.registry import CallResult
    from filepact_acp.client_methods import ClientMethods
    from filepact_acp.session_buffers import (
        ClientDocuments,
        ClientFile,
        PendingWrite,
        SessionBuffers,
    )

__all__ = ["BufferSync"]

_log = logging.getLogger("filepact.acp")

_PATIENCE = 10.0  # seconds for a client to take back what was undone
_ROUNDS: Final = 5  # how often somebody may type while it is seen what there is to save


class BufferSync:
    """Keeps one session's texts and its client's the same.

    Args:
        buffers: The client's texts of the session's folders.
        remote: The client's methods.
        texts: What the client tells of by itself.
    """

    def __init__(
        self, buffers: SessionBuffers, remote: ClientMethods, texts: ClientDocuments
    ) -> None:
        self._workspace = buffers.workspace
        self._buffers = buffers
        self._session = buffers.session
        self._remote = remote
        self._texts = texts
        self._late: set[asyncio.Future[None]] = set()

    # -- before a call: what the client shows ---------------------------------------------

    async def catch_up(
        self, paths: Sequence[str], stop: CancelScope, *, searching: bool = False
    ) -> None:
        """Ask the client for its present text of files that are about to be used."""
        doubtful = await self.listen()
        if not self._remote.offers.read:
            return
        wanted = await asyncio.to_thread(self._wanted, paths)
        if searching:
            for asked in (*doubtful, *await asyncio.to_thread(self._buffers.unsaved)):
                wanted.setdefault(asked, False)
        for asked, is_named in wanted.items():
            if self._buffers.is_sure(asked.path):
                continue
            try:
                await self.take(asked, await self._ask(asked, stop))
            except FilepactError:
                # A search goes on without what it may not see.
                if is_named:
                    raise
        stop.check()

    async def listen(self) -> tuple[ClientFile, ...]:
        """Take over what the client tells of by itself; the files about which there is a doubt."""
        present, can_ask = self._texts.present(), self._remote.offers.read
        return await asyncio.to_thread(self._buffers.keep_open, present, can_ask=can_ask)

    async def look(self, path: str) -> ClientFile:
        """One file that is about to be read, with what the client tells of by itself.

        Raises:
            NotAFileError: It is a folder, or nothing that a client can show.
            FilepactError: It may not be read.
        """
        present, can_ask = self._texts.present(), self._remote.offers.read

        def look() -> ClientFile:
            asked = self._buffers.ask(path)
            if asked is None:
                raise NotAFileError(f"{path}: is not a file", path=path)
            self._buffers.keep_open(present, can_ask=can_ask)
            return asked

        return await asyncio.to_thread(look)

    async def take(
        self, asked: ClientFile, text: str | None, *, read: bool = False, whole: bool = True
    ) -> bool:
        """Take over what the client says that a file holds.

        Args:
            asked: The file.
            text: Its text; None when the client has no such file.
            read: Whether the agent is to see the text.
            whole: Whether it is all of it.

        Returns:
            Whether it is what the file is for a reader; else the disk is.

        Raises:
            FilepactError: What it holds may not be read.
        """

        def take() -> bool:
            if read and text is not None:
                self._buffers.check(asked.path, text)
            if not whole:
                return True
            return self._buffers.keep(asked, text, read=read).kind in ("same", "unsaved")

        counts = await asyncio.to_thread(take)
        name = self._buffers.open_name(asked.path) if whole else None
        if name is not None and text is not None:
            self._texts.confirm(name, text)
        return counts

    async def _ask(self, asked: ClientFile, stop: CancelScope) -> str | None:
        present = partial(self._buffers.stored, asked.path)
        return await stop.wait_for(self._remote.text(asked.name, present))

    def _wanted(self, paths: Sequence[str]) -> dict[ClientFile, bool]:
        """The files that a call names, as far as the client can have a text of them."""
        wanted: dict[ClientFile, bool] = {}
        for path in paths:
            try:
                asked = self._buffers.ask(path)
            except FilepactError:
                # The tool says why.
                continue
            if asked is not None and (asked.size or 0) <= EDIT_LIMIT:
                wanted[asked] = True
        return wanted

    async def save(self, paths: Sequence[str], stop: CancelScope) -> None:
        """Ask the client to save its unsaved text of files that are about to be changed.

        Raises:
            FilepactError: It refused.
        """
        if not self._remote.offers.write:
            return
        for one in await asyncio.to_thread(self._buffers.to_save, paths):
            saves: PendingWrite | None = one
            for _ in range(_ROUNDS):
                text = await self.fetch(one.file, stop)
                if saves is None or text is None or text == saves.text:
                    break
                await self.take(one.file, text)
                again = await asyncio.to_thread(self._buffers.to_save, [one.file.path])
                saves = next(iter(again), None)
            if saves is not None:
                await asyncio.to_thread(self._buffers.saved, await self.hand_over(saves, stop))

    async def fetch(self, asked: ClientFile, stop: CancelScope) -> str | None:
        """Ask for the client's present text of a file; None where it does not say.

        Raises:
            FilepactError: It refused, or did not answer in time.
        """
        name = self._buffers.open_name(asked.path)
        text = None if name is None else self._texts.text(name)
        if text is None and self._remote.offers.read:
            text = await self._ask(asked, stop)
        return text

    async def hand_over(
        self, news: PendingWrite, stop: CancelScope, lost: dict[ClientFile, str] | None = None
    ) -> PendingWrite:
        """Give the client a new text, with what was typed until it has that.

        Args:
            news: The text.
            stop: Ends the waiting.
            lost: Takes what was typed where the text stands, if both do not go together; without it the
                client is given that again at once.

        Returns:
            What it was given.

        Raises:
            FilepactError: It cannot be joined with what was typed, the client does not say what it
                shows, or it refuses the text.
        """
        with self._texts.following(self._buffers.open_name(news.file.path)) as told:
            showed = await self.fetch(news.file, stop)
            if showed is not None and showed != news.text:
                news = await asyncio.to_thread(self._buffers.merge, news, showed)
            if news.document is None:
                await self._give(news, stop)
                return news
            if told is None and not self._remote.offers.read:
                showed = None
            styled = partial(self._buffers.in_client_style, news.file.path)
            typing = news.over is not None and told is None
            out = ClientWrite(news.document, styled, showed, typing=typing)
            typed: dict[ClientFile, str] = {} if lost is None else lost
            try:
                return await self._hand_over(news, out, told, stop, typed)
            finally:
                if lost is None:
                    await self.give_back(typed)

    async def _hand_over(
        self,
        news: PendingWrite,
        out: ClientWrite,
        told: list[str] | None,
        stop: CancelScope,
        lost: dict[ClientFile, str],
    ) -> PendingWrite:
        seen = None
        try:
            while True:
                while told is None and out.waits:
                    seen = await self._ask(news.file, stop)
                    out.looked(seen)
                if out.meant is not news.document:
                    over = news.over or news.document
                    news = replace(news, document=out.meant, text=out.text, over=over)
                seen = await self._give(news, stop, asks=told is None and out.asks)
                if told is not None:
                    # What it tells by itself before its answer is what it showed before the text.
                    end = told.index(news.text) if news.text in told else len(told)
                    seen = told[end - 1] if end else None
                    del told[: end + 1]
                if out.given(seen):
                    return news
        except StaleFileError:
            if seen is not None and out.was_given:
                lost[news.file] = seen
            raise

    async def _give(
        self, news: PendingWrite, stop: CancelScope, *, asks: bool = False
    ) -> str | None:
        """Send the client a text, and with nothing in between what it is asked for it: what it shows.

        Returns:
            What it showed right before it had the text; None where it was not asked or did not say.
        """
        name = news.file.name
        with self._remote.together() if asks else nullcontext():
            # The first of both is sent first: each is on its way when it first waits.
            looking = asyncio.ensure_future(self._remote.read(name)) if asks else None
            asking = asyncio.ensure_future(self._remote.write(name, news.text))
            try:
                await stop.wait_for(asyncio.shield(asking))
                with suppress(FilepactError):
                    return None if looking is None else await looking
            except ScopeCancelledError:
                # The client may write it all the same, and is not interrupted in the middle.
                asking.add_done_callback(partial(self._answered_late, news))
                raise
            finally:
                if looking is not None:
                    looking.cancel()
        return None

    async def give_back(self, lost: Mapping[ClientFile, str]) -> None:
        """Give the client again what it showed where a change was made that is taken back now."""
        for asked, seen in lost.items():
            with suppress(FilepactError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._remote.write(asked.name, seen)
                # It is the client's own again, and what that saves is a change of its own.
                await asyncio.to_thread(self._buffers.keep, asked, seen)

    # -- after it: what the client is given -----------------------------------------------

    def files_before(self, paths: Sequence[str]) -> dict[WorkspacePath, Document]:
        """The files of a client that cannot be told of a change, as it has them."""
        found: dict[WorkspacePath, Document] = {}
        if not self._remote.offers.write:
            for path in paths:
                try:
                    asked = self._buffers.ask(path)
                except FilepactError:
                    continue
                document = None if asked is None else self._buffers.present(asked.path)
                if document is not None:
                    found[document.path] = document
        return found

    async def carry_out(
        self,
        outcome: CallResult,
        operation: str,
        before: Mapping[WorkspacePath, Document],
        stop: CancelScope,
    ) -> CallResult:
        """Tell the client what an operation did; one that it refuses is taken back.

        Raises:
            FilepactError: The client's refusal.
        """
        news = await asyncio.to_thread(self._news, operation)
        if not self._remote.offers.write:
            notes = await asyncio.to_thread(self._leave, news, before)
            return _with(outcome, notes)
        told: list[PendingWrite] = []
        lost: dict[ClientFile, str] = {}
        notes = []
        for one in news:
            try:
                stop.check()
                given = await self.hand_over(one, stop, lost)
            except (FilepactError, ScopeCancelledError) as error:
                await self.take_back(operation, told, lost, error)
                raise
            told.append(given)
            self.mark(given)
            notes.append(await asyncio.to_thread(self._buffers.settle, given, operation))
        if stop.cancelled:
            await self.take_back(operation, told, lost, ScopeCancelledError())
            raise ScopeCancelledError
        return _with(outcome, notes)

    def _answered_late(self, news: PendingWrite, asking: asyncio.Future[None]) -> None:
        if asking.cancelled() or asking.exception() is not None or news.document is None:
            return
        looking = asyncio.ensure_future(asyncio.to_thread(self._record_late_save, news.document))
        self._late.add(looking)
        looking.add_done_callback(self._late.discard)

    def _record_late_save(self, told: Document) -> None:
        try:
            found = self._workspace.editors.record_late_save(told)
        except Exception:  # noqa: BLE001 - the session may have ended meanwhile
            _log.debug("what a client did late could not be looked at", exc_info=True)
            return
        if found is not None:
            _log.warning(
                "%s: the client made a change that was taken back when its call was cancelled; it "
                "is in the log as %s",
                told.path.path,
                found.id,
            )

    def _news(self, operation: str) -> tuple[PendingWrite, ...]:
        return self._buffers.pending_writes(self._workspace.operation(operation))

    def _leave(
        self, news: Sequence[PendingWrite], before: Mapping[WorkspacePath, Document]
    ) -> list[str]:
        notes: list[str] = []
        for one in news:
            known = before.get(one.file.path)
            if self._buffers.holds(one.file.path):
                notes.append(
                    f"{one.file.path.path}: the client takes no writes; it shows the old text "
                    "until the file is loaded again there."
                )
            self._buffers.mark_outdated(one.file.path, known)
        return notes

    def mark(self, news: PendingWrite) -> None:
        """Remember that the client was given a text, and has yet to say what it shows."""
        name = self._buffers.open_name(news.file.path)
        if name is not None:
            self._texts.record_sent(name, news.text)

    async def take_back(
        self,
        operation: str,
        told: Sequence[PendingWrite],
        lost: Mapping[ClientFile, str],
        reason: Exception,
    ) -> None:
        """Undo an operation that the client refused, and give it the old texts of the rest.

        Raises:
            WriteFailedError: Others have changed the files meanwhile; the operation stays.
        """
        try:
            undone = await asyncio.to_thread(
                self._workspace.undo, self._session, operation, dry_run=False
            )
        except FilepactError as error:
            raise WriteFailedError(
                f"{reason}; and the change could not be taken back: {error.message}",
                hint=f"The person can take it back: {operation} in `filepact log`.",
            ) from None
        await self.give_back(lost)
        for one in await asyncio.to_thread(self._news, str(undone.operation)):
            if any(one.file.path == earlier.file.path for earlier in told):
                try:
                    async with asyncio.timeout(_PATIENCE):
                        given = await self.hand_over(one, CancelScope())
                except (FilepactError, TimeoutError):
                    continue
                self.mark(given)
                await asyncio.to_thread(self._buffers.settle, given, str(undone.operation))


def _with(outcome: CallResult, notes: Sequence[str]) -> CallResult:
    return replace(outcome, text="\n".join(filter(None, [outcome.text, *notes])))

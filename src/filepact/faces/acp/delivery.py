"""What was done to files is told to the client that shows them, and taken back if it says no."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from filepact.errors import FilepactError, WriteFailedError
from filepact.faces.acp.waiting import StoppedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Session
    from filepact.faces.acp.asked import News
    from filepact.faces.acp.notices import OpenTexts
    from filepact.faces.acp.remote import Remote
    from filepact.faces.acp.shown import Shown
    from filepact.faces.acp.waiting import Stop
    from filepact.tools.registry import Outcome
    from filepact.workspace.workspace import Workspace

__all__ = ["Delivery"]

_log = logging.getLogger("filepact.acp")

_PATIENCE = 10.0  # seconds for a client to take back what was undone


class Delivery:
    """Hands a session's client the new texts of files.

    Args:
        workspace: The session's folders.
        shown: The client's texts of them.
        session: Who changes them.
        remote: The client's methods.
        texts: What the client tells of by itself.
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
        self._workspace = workspace
        self._shown = shown
        self._session = session
        self._remote = remote
        self._texts = texts
        self._late: set[asyncio.Future[None]] = set()

    def before(self, paths: Sequence[str]) -> dict[WorkspacePath, Document]:
        """The files of a client that cannot be told of a change, as it has them."""
        found: dict[WorkspacePath, Document] = {}
        if not self._remote.offers.write:
            for path in paths:
                try:
                    asked = self._shown.ask(path)
                except FilepactError:
                    continue
                document = None if asked is None else self._shown.present(asked.path)
                if document is not None:
                    found[document.path] = document
        return found

    async def carry_out(
        self,
        outcome: Outcome,
        operation: str,
        before: Mapping[WorkspacePath, Document],
        stop: Stop,
    ) -> Outcome:
        """Tell the client what an operation did; one that it refuses is taken back.

        Raises:
            FilepactError: The client's refusal.
        """
        news = await asyncio.to_thread(self._news, operation)
        if not self._remote.offers.write:
            notes = await asyncio.to_thread(self._leave, news, before)
            return _with(outcome, notes)
        told: list[News] = []
        notes = []
        for one in news:
            try:
                stop.check()
                await self._hand_over(one, stop)
            except (FilepactError, StoppedError) as error:
                await self.take_back(operation, told, error)
                raise
            told.append(one)
            self.mark(one)
            notes.append(await asyncio.to_thread(self._shown.settle, one, operation))
        if stop.called:
            await self.take_back(operation, told, StoppedError())
            raise StoppedError
        return _with(outcome, notes)

    async def _hand_over(self, news: News, stop: Stop) -> None:
        asking = asyncio.ensure_future(self._remote.write(news.asked.name, news.text))
        try:
            await stop.unless(asyncio.shield(asking))
        except StoppedError:
            # The client may write it all the same, and is not interrupted in the middle.
            asking.add_done_callback(partial(self._answered_late, news))
            raise

    def _answered_late(self, news: News, asking: asyncio.Future[None]) -> None:
        if asking.cancelled() or asking.exception() is not None or news.document is None:
            return
        looking = asyncio.ensure_future(asyncio.to_thread(self._own_up, news.document))
        self._late.add(looking)
        looking.add_done_callback(self._late.discard)

    def _own_up(self, told: Document) -> None:
        try:
            found = self._workspace.unsaved.own_up(told)
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

    def _news(self, operation: str) -> tuple[News, ...]:
        return self._shown.news(self._workspace.operation(operation))

    def _leave(self, news: Sequence[News], before: Mapping[WorkspacePath, Document]) -> list[str]:
        notes: list[str] = []
        for one in news:
            known = before.get(one.asked.path)
            if one.asked.path in {asked.path for asked in self._shown.unsaved()}:
                notes.append(
                    f"{one.asked.path.path}: the client takes no writes; it shows the old text "
                    "until the file is loaded again there."
                )
            self._shown.untold(one.asked.path, known)
        return notes

    def mark(self, news: News) -> None:
        """Remember that the client was given a text, and has yet to say what it shows."""
        name = self._shown.open_name(news.asked.path)
        if name is not None:
            self._texts.told(name, news.text)

    async def take_back(self, operation: str, told: Sequence[News], reason: Exception) -> None:
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
                f"{reason}; and what was done could not be taken back: {error.message}",
                hint=f"The person can say `filepact undo {operation}`.",
            ) from None
        for one in await asyncio.to_thread(self._news, str(undone.operation)):
            if any(one.asked.path == earlier.asked.path for earlier in told):
                try:
                    async with asyncio.timeout(_PATIENCE):
                        await self._remote.write(one.asked.name, one.text)
                except (FilepactError, TimeoutError):
                    continue
                self.mark(one)
                await asyncio.to_thread(self._shown.settle, one, str(undone.operation))


def _with(outcome: Outcome, notes: Sequence[str]) -> Outcome:
    return replace(outcome, text="\n".join(filter(None, [outcome.text, *notes])))

"""What the tools start from is what the client shows, asked for just before they do."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from filepact.errors import FilepactError, NotAFileError
from filepact.workspace.documents import EDIT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.acp.asked import Asked
    from filepact.faces.acp.notices import OpenTexts
    from filepact.faces.acp.remote import Remote
    from filepact.faces.acp.shown import Shown
    from filepact.faces.acp.waiting import Stop

__all__ = ["InStep"]


class InStep:
    """Keeps one session's texts in step with its client's.

    Args:
        shown: The client's texts.
        remote: The client's methods.
        texts: What the client tells of by itself.
    """

    def __init__(self, shown: Shown, *, remote: Remote, texts: OpenTexts) -> None:
        self._shown = shown
        self._remote = remote
        self._texts = texts

    async def catch_up(self, paths: Sequence[str], stop: Stop, *, searching: bool = False) -> None:
        """Ask the client for its present text of files that are about to be used."""
        doubtful = await self.listen()
        if not self._remote.offers.read:
            return
        wanted = await asyncio.to_thread(self._wanted, paths)
        if searching:
            for asked in (*doubtful, *self._shown.unsaved()):
                wanted.setdefault(asked, False)
        for asked, is_named in wanted.items():
            if self._shown.is_sure(asked.path):
                continue
            try:
                await self.take(asked, await self._ask(asked, stop))
            except FilepactError:
                # A search goes on without what it may not see.
                if is_named:
                    raise
        stop.check()

    async def listen(self) -> tuple[Asked, ...]:
        """Take over what the client tells of by itself; the files about which there is a doubt."""
        present, can_ask = self._texts.present(), self._remote.offers.read
        return await asyncio.to_thread(self._shown.keep_open, present, can_ask=can_ask)

    async def look(self, path: str) -> Asked:
        """One file that is about to be read, with what the client tells of by itself.

        Raises:
            NotAFileError: It is a folder, or nothing that a client can show.
            FilepactError: It may not be read.
        """
        present, can_ask = self._texts.present(), self._remote.offers.read

        def look() -> Asked:
            asked = self._shown.ask(path)
            if asked is None:
                raise NotAFileError(f"{path}: is not a file", path=path)
            self._shown.keep_open(present, can_ask=can_ask)
            return asked

        return await asyncio.to_thread(look)

    async def take(
        self, asked: Asked, text: str | None, *, read: bool = False, whole: bool = True
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
                self._shown.check(asked.path, text)
            if not whole:
                return True
            return self._shown.keep(asked, text, read=read).kind in ("same", "unsaved")

        counts = await asyncio.to_thread(take)
        name = self._shown.open_name(asked.path) if whole else None
        if name is not None and text is not None:
            self._texts.confirm(name, text)
        return counts

    async def _ask(self, asked: Asked, stop: Stop) -> str | None:
        present = partial(self._shown.stored, asked.path)
        return await stop.unless(self._remote.text(asked.name, present))

    def _wanted(self, paths: Sequence[str]) -> dict[Asked, bool]:
        """The files that a call names, as far as the client can have a text of them."""
        wanted: dict[Asked, bool] = {}
        for path in paths:
            try:
                asked = self._shown.ask(path)
            except FilepactError:
                # The tool says why.
                continue
            if asked is not None and (asked.size or 0) <= EDIT_LIMIT:
                wanted[asked] = True
        return wanted

    async def save(self, paths: Sequence[str], stop: Stop) -> None:
        """Have the client save what it shows of files that are about to be changed.

        Raises:
            FilepactError: It refused.
        """
        if self._remote.offers.write:
            for one in await asyncio.to_thread(self._shown.to_save, paths):
                await stop.unless(self._remote.write(one.asked.name, one.text))
                await asyncio.to_thread(self._shown.saved, one)

"""The files that a client's own editors show, and what is typed in them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.document import RootId, WorkspacePath
from filepact.errors import FilepactError, InvalidParamsError
from filepact.workspace.buffers import Typed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from filepact.text.lines import Unit
    from filepact.workspace.buffers import Delivery
    from filepact_acp.sessions import Sessions

__all__ = ["EditorDocuments"]

_EDITOR: Final = "editor"
_PATIENCE: Final = 10.0  # seconds for an editor to make edits; the disk has them already
_MOMENT: Final = 0.1  # seconds in which it says what was typed, if that is why it did not make them

_log = logging.getLogger("filepact.acp")


class EditorDocuments:
    """Notices of editors about their files, for every session whose folders hold them.

    The methods do not wait for anything but the disk, and are called in the order in which things
    happen in the editor.  Before there is a session, what is said is kept until there is one.

    Args:
        sessions: Whose files they are.
        deliver: Makes the edits of a change in the editor; an answer of False says that it did not.
        note: Is told in a sentence what a person should know.
    """

    def __init__(
        self,
        sessions: Sessions,
        deliver: Callable[[Delivery], Awaitable[bool | None]] | None,
        note: Callable[[str], None] | None,
    ) -> None:
        self._sessions = sessions
        self._buffers = sessions.buffers
        self._deliver = deliver
        self._note = note
        self._shown: dict[str, WorkspacePath] = {}
        self._homeless: set[str] = set()
        self._delivering = asyncio.Lock()
        self._typed = asyncio.Event()

    # -- what an editor says --------------------------------------------------------------

    def open(self, path: str, text: str, version: int = 0) -> None:
        """An editor shows a file, with all of its text as the editor has it; also once more.

        Args:
            path: Absolute.
            text: Saved or not.
            version: The editor's count of changes.

        Raises:
            InvalidParamsError: The path is not absolute.
        """
        if not path.startswith("/") or "\0" in path:
            raise InvalidParamsError(f"{path!r} is not an absolute path")
        if not self._house(path, text, version):
            there = self._shown.get(path) or WorkspacePath(RootId("/"), _plain(path))
            self._buffers.open(there, text, client=_EDITOR, version=version, base=None)
            self._shown[path] = there
            self._homeless.add(path)

    def change(
        self, path: str, changes: str | Sequence[Typed], version: int, *, unit: Unit = "utf-16"
    ) -> None:
        """Its text has changed.

        Args:
            path: As it was opened.
            changes: The whole new text, or changes that are made one after the other.
            version: Later than the last one.  Edits that were delivered count one as well.
            unit: What columns count.

        Raises:
            InvalidParamsError: The file is not open, or a place is none.
            StaleFileError: The version is not a later one: open the file again with its whole text.
        """
        typed = (Typed(changes),) if isinstance(changes, str) else changes
        there = self._there(path)
        self._buffers.change(there, typed, client=_EDITOR, version=version, unit=unit)
        self._typed.set()

    def saved(self, path: str) -> None:
        """The editor has written its text to the disk by itself.

        Raises:
            InvalidParamsError: The file is not open.
        """
        there = self._there(path)
        for workspace in self._sessions.workspaces:
            try:
                stored = workspace.editors.stored(path)
            except FilepactError:
                continue
            buffer = self._buffers.saved(there, client=_EDITOR, base=stored)
            if buffer.is_unsaved and (buffer.text or stored is not None):
                self._say(f"{path}: was saved by the editor, but the disk has something else.")
            return

    def close(self, path: str) -> None:
        """The editor no longer shows it; text that was not saved is gone, as it is there."""
        there = self._shown.pop(path, None)
        self._homeless.discard(path)
        if there is not None:
            self._buffers.close(there, client=_EDITOR)

    def text(self, path: str) -> str | None:
        """The text of a file that an editor shows; None for any other."""
        there = self._shown.get(path)
        buffer = None if there is None else self._buffers.get(there)
        return None if buffer is None else buffer.text

    def names(self, path: WorkspacePath) -> tuple[str, ...]:
        """The names by which editors opened a file."""
        return tuple(name for name, there in self._shown.items() if there == path)

    def take(self) -> tuple[Delivery, ...]:
        """The edits that editors have to make, each once; for clients that are not told them."""
        return self._buffers.take(_EDITOR)

    # -- what becomes of it ---------------------------------------------------------------

    def settle(self) -> None:
        """Look whether the folders of the sessions hold files that were in none before."""
        for path in tuple(self._homeless):
            buffer = self._buffers.get(self._shown[path])
            if buffer is not None and self._house(path, buffer.text, buffer.version):
                self._homeless.discard(path)

    async def tell(self, notes: Sequence[str]) -> None:
        """Hand on what a change said, and have editors make its edits before it is answered."""
        for note in notes:
            self._say(note)
        if self._deliver is None:
            return
        # One after the other, so that nobody answers before the edits are made that were its own.
        async with self._delivering:
            buffers = self._buffers
            while (delivery := buffers.hand_over(_EDITOR)) is not None:
                self._typed.clear()
                said = await self._made(self._deliver, delivery)
                if not said:
                    buffers.made(delivery)
                elif not await self._typed_since(delivery):
                    buffers.refused(delivery)
                    self._say(
                        f"{delivery.path.absolute}: the disk has a change that the editor {said}; "
                        "both are brought together when it is changed next."
                    )

    async def _made(
        self, deliver: Callable[[Delivery], Awaitable[bool | None]], delivery: Delivery
    ) -> str:
        """Have an editor make edits; what it did instead, empty where it has made them."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return "" if await deliver(delivery) is not False else "did not make"
        except TimeoutError:
            return "did not say in time that it made"
        except Exception:  # noqa: BLE001 - an editor's, which must not undo the answer
            _log.exception("an editor could not make edits")
            return "did not make"

    async def _typed_since(self, delivery: Delivery) -> bool:
        """Whether the editor has told of something typed, for which the edits are made anew."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT):
                while self._buffers.is_waited_for(delivery):
                    await self._typed.wait()
                    self._typed.clear()
        return not self._buffers.is_waited_for(delivery)

    def _house(self, path: str, text: str, version: int) -> bool:
        """Open a file in a workspace whose folders hold it; whether there is one."""
        before = self._shown.get(path)
        known = None if before is None else self._buffers.get(before)
        for workspace in self._sessions.workspaces:
            try:
                buffer = workspace.editors.open(path, text, client=_EDITOR, version=version)
            except FilepactError:
                continue
            if before is not None and before.absolute != buffer.path.absolute:
                self._buffers.close(before, client=_EDITOR)
            elif known is not None and known.base is not None:
                # It is still the same text that grew: what the disk has got since is not in it.
                self._buffers.saved(buffer.path, client=_EDITOR, base=known.base)
            self._shown[path] = buffer.path
            return True
        return False

    def _there(self, path: str) -> WorkspacePath:
        there = self._shown.get(path)
        if there is None:
            raise InvalidParamsError(
                f"{path}: is not open", hint="Open it first, with its whole text."
            )
        return there

    def _say(self, note: str) -> None:
        if self._note is None:
            _log.info("%s", note)
        else:
            self._note(note)


def _plain(path: str) -> str:
    """A path's parts as far as its letters tell; which links it goes through is not known yet."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    if not parts:
        raise InvalidParamsError("/ is not a file")
    return "/".join(parts)

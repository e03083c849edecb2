"""A client's texts as editor buffers of one session's workspace, and what it has to be told.

Plain calls that a thread runs, one at a time.  A text that the client has and the disk has not is
kept as a buffer, so that every tool starts from it.  The file as it was when both last agreed is
remembered, so that a text which is only older than the disk is not taken for an unsaved one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, NotFoundError
from filepact.faces.acp.asked import Asked, Manner, News
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.seen import Lately
from filepact.workspace.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Operation
    from filepact.faces.acp.notices import OpenText
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.standing import Standing
    from filepact.workspace.workspace import Workspace

__all__ = ["Shown"]

_AGREED_LIMIT = 16 * 1_048_576


class Shown:
    """The client's texts of one session.

    Args:
        workspace: The session's, with ``buffers``.
        buffers: Where unsaved text is kept.
        session: Who asks.
        client: The client's name.
        folders: The session's folders as they were sent.
    """

    def __init__(
        self,
        workspace: Workspace,
        buffers: Buffers,
        *,
        session: Session,
        client: str,
        folders: Iterable[str],
    ) -> None:
        self._workspace = workspace
        self._buffers = buffers
        self._session = session
        self._client = client
        self._own = Session(f"client {client}", Actor("program", client))
        self._spellings: dict[str, str] = {}
        for folder in folders:
            root = workspace.guard.find(folder, "list").root.path
            self._spellings.setdefault(root, folder)
        self._agreed: Lately[WorkspacePath, Document] = Lately(_AGREED_LIMIT)
        self._manners: dict[WorkspacePath, Manner] = {}
        self._open: dict[WorkspacePath, OpenText] = {}
        self._held: dict[WorkspacePath, Asked] = {}

    # -- what the client shows ------------------------------------------------------------

    def ask(self, path: str) -> Asked | None:
        """What to ask the client for before a file is used; None when it cannot have a text.

        Raises:
            FilepactError: The session may not read the file.
        """
        spot = self._workspace.guard.find(path, "read", agent=self._session.agent)
        if spot.place.kind not in ("file", "missing") or spot.place.path == ".":
            return None
        name = f"{self._spellings[spot.root.path].rstrip('/')}/{spot.place.path}"
        size = None if spot.place.kind == "missing" else spot.place.size
        return Asked(spot.path, name, size)

    def unsaved(self) -> tuple[Asked, ...]:
        """The files of which the client had another text than the disk."""
        return tuple(self._held.values())

    def to_save(self, paths: Iterable[str]) -> tuple[News, ...]:
        """What the client shows of files and has not saved, and can save without losing anything.

        Where others have written to the disk meanwhile it cannot: both have to be merged.
        """
        found: list[News] = []
        for path in paths:
            with suppress(FilepactError):
                asked = self.ask(path)
                if asked is None or asked.path not in self._held:
                    continue
                buffer = self._buffers.get(asked.path)
                stored = self._workspace.editors.stored(asked.path.absolute)
                if buffer is not None and _revision(buffer.base) == _revision(stored):
                    text = self.as_shown(asked.path, buffer.text)
                    found.append(News(asked, self.present(asked.path), text))
        return tuple(found)

    def saved(self, news: News) -> None:
        """The client was asked to save what it shows of a file, and may have done it."""
        self.settle(news)
        self.keep(news.asked, news.text)

    def keep(self, asked: Asked, text: str | None, *, read: bool = False) -> Standing:
        """Take over what the client says that a file holds.

        Args:
            asked: The file.
            text: Its text; None when the client has no such file.
            read: Whether the agent sees the text.

        Returns:
            What the text is beside what the disk has.

        Raises:
            FilepactError: What the disk has may not be read, or is too large.
        """
        known = self._buffers.get(asked.path)
        self._drop(asked.path)
        disk = self._disk(asked.path, self._session if read else self._own)
        found = standing(
            text,
            disk,
            agreed=self._agreed.get(asked.path),
            known=None if known is None else known.text,
        )
        if text is None or found.kind == "nothing":
            return found
        if found.kind in ("mangled", "doubtful"):
            if found.kind == "doubtful":
                self._buffers.doubt(asked.path, client=self._client)
            elif found.base is not None:
                self._agree(found.base)
            return found
        self._manners[asked.path] = Manner.of(text)
        if found.kind == "same" and disk is not None:
            self._agree(disk)
        elif found.kind == "unsaved":
            if found.base is not None:
                self._agree(found.base)
            self._hold(asked, text.removeprefix("\ufeff"), found.base)
            if read:
                self.note_seen(asked.path)
        return found

    def keep_open(self, documents: Iterable[OpenText], *, can_ask: bool) -> tuple[Asked, ...]:
        """The same for all documents that the client tells of by itself.

        Those that may not be used are passed over.

        Args:
            documents: What it shows.
            can_ask: Whether the client can be asked where its notices leave a doubt.

        Returns:
            The files about which there is a doubt.
        """
        was, self._open = self._open, {}
        doubtful: list[Asked] = []
        for one in documents:
            with suppress(FilepactError):
                asked = self.ask(one.path)
                if asked is None or (asked.size or 0) > EDIT_LIMIT:
                    continue
                self._open[asked.path] = one
                if can_ask and not one.sure:
                    doubtful.append(asked)
                elif asked.path not in was or was[asked.path].stamp != one.stamp:
                    self._keep_one(asked, one)
        for path in was.keys() - self._open.keys():
            self._drop(path)
        return tuple(doubtful)

    def _keep_one(self, asked: Asked, one: OpenText) -> None:
        text = one.likely
        if one.saved is not None and text is not None:
            # What was saved is what both have alike, whatever was typed since.
            self.keep(asked, one.saved)
        self.keep(asked, text)

    def open_name(self, path: WorkspacePath) -> str | None:
        """How the client names a document that it tells of by itself; None for any other."""
        one = self._open.get(path)
        return None if one is None else one.path

    def is_sure(self, path: WorkspacePath) -> bool:
        """Whether the client's notices say what it shows of a file."""
        one = self._open.get(path)
        return one is not None and one.sure

    def may_be_older(self, path: WorkspacePath) -> bool:
        """Whether the disk has changed since the client and the disk had the same text."""
        agreed = self._agreed.get(path)
        return agreed is not None and _revision(agreed) != _revision(self.stored(path))

    # -- what the client has to be told ---------------------------------------------------

    def news(self, operation: Operation) -> tuple[News, ...]:
        """What an operation that was just done made of files, as the client is to have it."""
        self._workspace.editors.take(self._client)
        found: list[News] = []
        for change in operation.changes.changes:
            before, after = change.before, change.after
            if after is None or (before is not None and before.content == after.content):
                continue
            document = self.present(change.path)
            if document is None or document.revision.content != after.content:
                continue
            with suppress(FilepactError):
                asked = self.ask(change.path.absolute)
                if asked is not None:
                    found.append(News(asked, document, self.as_shown(asked.path, document.text)))
        return tuple(found)

    def as_shown(self, path: WorkspacePath, text: str) -> str:
        """A text of a file as the client shows such texts."""
        return self._manners.get(path, Manner()).shown(text)

    def check(self, path: WorkspacePath, text: str) -> None:
        """Ask the rules about what a file holds, wherever that came from.

        Raises:
            PathBlockedError: The agent may not see it.
        """
        agent = self._session.agent
        self._workspace.guard.check_held(path, "read", text.encode(), agent=agent)

    def note_seen(self, path: WorkspacePath) -> None:
        """The agent has seen what the file holds."""
        with suppress(FilepactError):
            self._workspace.reader(self._session, proposed=False).document(path.absolute)

    def settle(self, news: News, operation: str = "") -> str:
        """See what the client's write left on the disk; the answer is what there is to say.

        The same text in other bytes, such as other line ends, is put back as the file had it.

        Args:
            news: What the client was given.
            operation: What made it so; empty where nothing in the journal did.
        """
        path, shown, meant = news.asked.path, news.asked.path.path, news.document
        self._drop(path)
        if meant is None:
            disk = self.present(path)
            if disk is not None:
                self._agree(disk)
                return ""
            return _gone(shown)
        try:
            left = self._workspace.unsaved.look_after(
                meant, client=self._client, operation=operation
            )
        except FilepactError:
            return f"{shown}: what the client made of it could not be looked at; read it again."
        if left.document is None:
            return _gone(shown)
        self._agree(left.document)
        if left.kind == "form":
            return (
                f"{shown}: the client wrote it with other line ends or in another encoding; "
                "the file has its own again."
            )
        if left.kind == "text":
            return (
                f"{shown}: the disk has another text than the client was given, which may not have "
                "saved it yet, or formats what it saves; read the file again."
            )
        return ""

    def untold(self, path: WorkspacePath, before: Document | None) -> None:
        """The client cannot be told of a file's new text: what it shows is older, not unsaved.

        Args:
            path: The file.
            before: What it was, with what the client had not saved.
        """
        if path in self._held and before is not None:
            self._agree(before)
        self._drop(path)

    def present(self, path: WorkspacePath) -> Document | None:
        """A file as it is now, with what the client has not saved; None if it cannot be read."""
        with suppress(FilepactError):
            return self._disk(path, self._own)
        return None

    # -- parts ----------------------------------------------------------------------------

    def stored(self, path: WorkspacePath) -> Document | None:
        """What the disk has of a file; None for nothing that can be read."""
        with suppress(FilepactError):
            return self._workspace.editors.stored(path.absolute)
        return None

    def _hold(self, asked: Asked, text: str, base: Document | None) -> None:
        self._buffers.open(asked.path, text, client=self._client, version=1, base=base)
        self._held[asked.path] = asked

    def _drop(self, path: WorkspacePath) -> None:
        self._buffers.close(path, client=self._client)
        self._held.pop(path, None)

    def _agree(self, disk: Document) -> None:
        self._agreed.put(disk.path, disk)

    def _disk(self, path: WorkspacePath, session: Session) -> Document | None:
        """A file as it is now, seen by a session; without a buffer that is what the disk has.

        Raises:
            FilepactError: It may not be read, or is too large.
        """
        try:
            return self._workspace.reader(session, proposed=False).document(path.absolute)
        except NotFoundError:
            return None


def _revision(document: Document | None) -> str:
    return "" if document is None else document.revision.content


def _gone(shown: str) -> str:
    return f"{shown}: is not on the disk, though the client was given its text."

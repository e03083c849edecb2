"""What the editor shows of a file, asked before it is used and told after it was changed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from filepact.errors import FilepactError
from filepact.faces.acp.errors import CANCELLED, REFUSED, refuse
from filepact.faces.acp.proxy.traffic import READ
from filepact.text.position import Position
from filepact.workspace.buffers import Typed
from filepact.workspace.documents import EDIT_LIMIT

if TYPE_CHECKING:
    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Session
    from filepact.faces.acp.proxy.questions import Questions, Reply
    from filepact.faces.acp.proxy.traffic import Facts
    from filepact.faces.acp.sessions import Bound
    from filepact.faces.wire.lines import Message
    from filepact.workspace.guard import Spot
    from filepact.workspace.receipt import Receipt

__all__ = ["PATIENCE", "Texts", "text_in"]

EDITOR: Final = "editor"
"""The name of the editor's connection among the buffers."""

_HERE: Final = ("", "localhost")
PATIENCE: Final = 30.0  # seconds for an editor to say what it shows, or to take what was written


class Texts:
    """The editor's texts.

    Args:
        questions: Asks the editor.
        facts: What it can do.
    """

    def __init__(self, questions: Questions, facts: Facts) -> None:
        self._questions = questions
        self._facts = facts
        self._versions = 0
        self._told: set[str] = set()
        self._feeds: set[str] = set()

    # -- what the editor shows ------------------------------------------------------------

    def fetch(self, bound: Bound, session: Session, path: str) -> None:
        """Learn what the editor shows of a file; unsaved text of it counts from now on.

        What it cannot or will not say leaves what the disk has.

        Raises:
            FilepactError: The rules refuse the file, and the editor was not asked.
            Refusal: The turn ended meanwhile.
        """
        if not self._facts.reads:
            return
        spot = bound.workspace.guard.find(path, "read", agent=session.agent)
        asked = self.question(bound, spot, path)
        if asked is not None:
            reply = self._questions.ask(READ, asked, patience=PATIENCE)
            self.heard(bound, spot, reply)

    def question(self, bound: Bound, spot: Spot, path: str) -> Message | None:
        """What the editor is to be asked of a file; None when there is nothing to ask.

        Args:
            bound: The session's folders.
            spot: The file, for the reading of which the rules were asked.
            path: As the agent sent it.
        """
        if not self._facts.reads:
            return None
        if spot.place.kind not in ("file", "missing") or spot.place.size > EDIT_LIMIT:
            # Too large to be changed here: it is read where it is.
            return None
        name = spot.path.absolute
        if name in self._told:
            # The editor says by itself what happens to files that it has announced.
            return None
        return {"sessionId": bound.id, "path": path if path.startswith("/") else name}

    def heard(self, bound: Bound, spot: Spot, reply: Reply) -> None:
        """Take what the editor said when it was asked.

        Raises:
            Refusal: The turn ended meanwhile.
        """
        text, name = text_in(reply), spot.path.absolute
        editors = bound.workspace.editors
        if text is None or self._saved(bound, name, text):
            editors.close(name, client=EDITOR)
            return
        self._versions += 1
        editors.open(name, text, client=EDITOR, version=self._versions)

    def agreed(self, spot: Spot) -> None:
        """The editor shows of a file just what the disk has, and has shown nothing else."""
        self._feeds.discard(spot.path.absolute)

    def _saved(self, bound: Bound, name: str, text: str) -> bool:
        """Whether the editor shows what the disk has, in its own way of showing it."""
        try:
            stored = bound.workspace.editors.stored(name)
            if stored is None:
                return not text
            known = stored.text
        except FilepactError:
            return True
        if known == text:
            self._feeds.discard(name)
            return True
        if "\r\n" in known and "\r\n" not in text:
            self._feeds.add(name)
        else:
            self._feeds.discard(name)
        # An editor that shows bytes of which nobody knows what they mean has made something up.
        return not stored.source.encoding.known or _plain(known) == _plain(text)

    def said(self, bound: Bound, method: str, params: Message) -> None:
        """Take what the editor says of a file by itself; nonsense is ignored."""
        path = _path_of(params)
        if path is None:
            return
        editors, version = bound.workspace.editors, params.get("version")
        # What lacks a member, or has one of another type, is nonsense too.
        with suppress(FilepactError, AttributeError, LookupError, TypeError, ValueError):
            if method == "document/didOpen":
                opened = editors.open(
                    path, str(params["text"]), client=EDITOR, version=_whole(version)
                )
                self._told.add(opened.path.absolute)
            elif method == "document/didChange":
                typed = [_typed(one) for one in params["contentChanges"]]
                editors.change(path, typed, client=EDITOR, version=_whole(version))
            elif method == "document/didSave":
                editors.saved(path, client=EDITOR)
            else:
                buffer = editors.buffer(path)
                editors.close(path, client=EDITOR)
                if buffer is not None:
                    self._told.discard(buffer.path.absolute)

    # -- what the editor is told ----------------------------------------------------------

    def deliver(self, bound: Bound, session: Session, receipt: Receipt) -> None:
        """Give the editor the new texts of a change that was done, or take the change back.

        Raises:
            Refusal: The editor did not want it, or the turn ended; the files are what they were.
        """
        bound.workspace.editors.take(EDITOR)
        if not self._facts.writes or receipt.status != "applied" or receipt.operation is None:
            return
        operation = bound.workspace.operation(receipt.operation)
        for change in operation.changes.changes:
            if change.after is None:
                continue
            text = self._text_for(bound, change.path)
            if text is None:
                continue
            told = {"sessionId": bound.id, "path": change.path.absolute, "content": text}
            reply = self._questions.ask("fs/write_text_file", told, patience=PATIENCE)
            if reply.kind in {"error", "cancelled"}:
                self._take_back(bound, session, operation.id, reply.kind, str(reply.value))
            with suppress(FilepactError):
                self._settle(bound, change.path)

    def _text_for(self, bound: Bound, path: WorkspacePath) -> str | None:
        """A file's text with the line ends that the editor has in its copy; None for no text."""
        buffer = bound.workspace.editors.buffer(path.absolute)
        if buffer is not None:
            return buffer.text
        try:
            stored = bound.workspace.editors.stored(path.absolute)
            text = None if stored is None else stored.text
        except FilepactError:
            return None
        if text is not None and path.absolute in self._feeds:
            return text.replace("\r\n", "\n")
        return text

    def _settle(self, bound: Bound, path: WorkspacePath) -> None:
        """The editor has the new text and, as the protocol wants it, has saved it."""
        self._told.discard(path.absolute)
        bound.workspace.editors.close(path.absolute, client=EDITOR)

    def _take_back(
        self, bound: Bound, session: Session, operation: str, kind: str, said: str
    ) -> None:
        try:
            bound.workspace.undo(session, operation, dry_run=False)
        except FilepactError:
            raise refuse(
                REFUSED,
                "editor_refused",
                f"The editor did not take this change ({said}), but it is on the disk as "
                f"{operation} and could not be taken back; `filepact show {operation}` shows it.",
            ) from None
        if kind == "cancelled":
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was done.")
        raise refuse(REFUSED, "editor_refused", f"The editor refused this change: {said}")


def text_in(reply: Reply) -> str | None:
    """The text that an editor answered with; None for no text.

    Raises:
        Refusal: The turn ended meanwhile.
    """
    if reply.kind == "cancelled":
        raise refuse(CANCELLED, "cancelled", "The turn ended before this was done.")
    if reply.kind != "result" or not isinstance(reply.value, dict):
        return None
    text = reply.value.get("content")
    return text if isinstance(text, str) else None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\n")


def _path_of(params: Message) -> str | None:
    """The path in a ``file:`` address."""
    uri = params.get("uri")
    if not isinstance(uri, str):
        return None
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in _HERE else None


def _whole(version: object) -> int:
    if type(version) is not int:
        raise TypeError
    return version


def _typed(change: Message) -> Typed:
    text = change["text"]
    if not isinstance(text, str):
        raise TypeError
    where = change.get("range")
    if where is None:
        return Typed(text)
    return Typed(text, _position(where["start"]), _position(where["end"]))


def _position(place: Message) -> Position:
    return Position(_whole(place["line"]), _whole(place["character"]))

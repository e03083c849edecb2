"""The texts that one server holds open, and the notifications that bring it from one to the next.

No I/O happens here: whoever changes a text gets what has to be sent, in order.  Versions come from
one counter for all documents of a server and only rise, also when a document is closed and opened
again, so that an answer about an earlier text can never pass for one about this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from filepact.text.ends import common_head, common_tail
from filepact.text.position import LineIndex, Position, Unit
from filepact.wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Document", "Documents", "Notification", "SyncKind", "position_value"]

Notification = tuple[str, dict[str, Any]]
"""A method and its parameters."""

_INCREMENTAL_FROM = 4_096
"""Below this many characters the whole text is as quick, and leaves nothing to be understood."""


@dataclass(frozen=True, slots=True)
class SyncKind:
    """What a server wants to be told about open documents.

    Attributes:
        open_close: That they are opened and closed.
        change: 0 nothing, 1 the whole text, 2 what changed.
        save: That they were saved.
        save_text: With their text.
    """

    open_close: bool = True
    change: int = 1
    save: bool = False
    save_text: bool = False

    @property
    def texts(self) -> bool:
        """Whether it takes texts from us at all, and not only from the disk."""
        return self.open_close or bool(self.change)


@dataclass(frozen=True, slots=True)
class Document:
    """An open document.

    Attributes:
        path: Absolute.
        language: The protocol's name of its language.
        version: Of its present text.
        text: As the server has it.
    """

    path: str
    language: str
    version: int
    text: str

    @property
    def uri(self) -> str:
        """Its name in the protocol."""
        return uri_of(self.path)


class Documents:
    """The open documents of one server, those used last at the end.

    Args:
        language: The protocol's name of a path's language.
    """

    def __init__(self, language: Callable[[str], str]) -> None:
        self._language = language
        self._open: dict[str, Document] = {}
        self._shown: set[str] = set()
        self._version = 0
        self.kind = SyncKind()
        self.unit: Unit = "utf-16"

    def __contains__(self, path: str) -> bool:
        return path in self._open

    def get(self, path: str) -> Document | None:
        """The document of a path; None when it is not open."""
        return self._open.get(path)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all open documents, those used last at the end."""
        return tuple(self._open)

    def was_shown(self, path: str) -> bool:
        """Whether the server has had a text of ours for a path since it was started."""
        return path in self._shown

    def hold(self, path: str, text: str) -> list[Notification]:
        """Make the server see this text: open the document, or change it if it differs."""
        before = self._open.pop(path, None)
        if before is None:
            return self._opened(path, text)
        self._open[path] = before
        return [] if before.text == text else self._changed(before, text)

    def repeat(self, path: str) -> list[Notification]:
        """Send the text of an open document once more, under a new version."""
        return self._changed(self._open[path], self._open[path].text)

    def saved(self, path: str) -> list[Notification]:
        """Say that an open document is on the disk as it is; nothing if the server did not ask."""
        document = self._open.get(path)
        if document is None or not self.kind.save:
            return []
        params: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        if self.kind.save_text:
            params["text"] = document.text
        return [("textDocument/didSave", params)]

    def close(self, path: str) -> list[Notification]:
        """Close a document; from here on the server reads the disk."""
        document = self._open.pop(path, None)
        if document is None or not self.kind.open_close:
            return []
        return [("textDocument/didClose", {"textDocument": {"uri": document.uri}})]

    def reopen(self) -> list[Notification]:
        """Open all documents again, for a server that was started anew."""
        documents = list(self._open.values())
        self._open.clear()
        self._shown.clear()
        return [sent for one in documents for sent in self._opened(one.path, one.text)]

    def _opened(self, path: str, text: str) -> list[Notification]:
        self._version += 1
        document = Document(path, self._language(path), self._version, text)
        self._open[path] = document
        self._shown.add(path)
        if not self.kind.open_close:
            return []
        item = {
            "uri": document.uri,
            "languageId": document.language,
            "version": document.version,
            "text": text,
        }
        return [("textDocument/didOpen", {"textDocument": item})]

    def _changed(self, before: Document, text: str) -> list[Notification]:
        if not self.kind.change:
            return [*self.close(before.path), *self._opened(before.path, text)]
        self._version += 1
        self._open[before.path] = Document(before.path, before.language, self._version, text)
        name = {"uri": before.uri, "version": self._version}
        change = self._difference(before.text, text) if self.kind.change == 2 else {"text": text}
        params = {"textDocument": name, "contentChanges": [change]}
        return [("textDocument/didChange", params)]

    def _difference(self, before: str, after: str) -> dict[str, Any]:
        """What changed between two texts as one replacement; the whole text where it is short."""
        if len(after) < _INCREMENTAL_FROM or before == after:
            return {"text": after}
        start = common_head(before, after)
        tail = common_tail(before[start:], after[start:])
        # A replacement must not begin or end within CR LF: what is a line end is not the same then.
        if start and before[start - 1] == "\r":
            start -= 1
        if tail and before[len(before) - tail] == "\n":
            tail -= 1
        place = LineIndex(before).position if "\r" in before else partial(_place, before)
        places = [position_value(place(at, self.unit)) for at in (start, len(before) - tail)]
        return {
            "range": {"start": places[0], "end": places[1]},
            "text": after[start : len(after) - tail],
        }


def _place(text: str, offset: int, unit: Unit) -> Position:
    """Where an offset is in a text whose lines all end at LF, without looking at all of them."""
    start = text.rfind("\n", 0, offset) + 1
    column = LineIndex(text[start:offset]).position(offset - start, unit).column
    return Position(text.count("\n", 0, start), column)


def position_value(position: Position) -> dict[str, int]:
    """A position as the protocol writes it."""
    return {"line": position.line, "character": position.column}

"""The texts that a client holds open, brought from one to the next by what it says changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact.errors import InvalidParamsError
from filepact.text.position import LineIndex, Position
from filepact.wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.text.position import Unit

__all__ = ["Documents", "document_path"]


class Documents:
    """All open documents.

    Attributes:
        unit: What columns count; agreed on when the conversation begins.
    """

    def __init__(self, unit: Unit = "utf-16") -> None:
        self.unit: Unit = unit
        self._texts: dict[str, str] = {}
        self._lost: set[str] = set()

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of each, by its absolute path."""
        return self._texts

    def lost(self, path: str) -> bool:
        """Whether a change could not be followed; nothing is known of the text until it comes whole."""
        return path in self._lost

    @property
    def first_lost(self) -> str | None:
        """One of which that is so; None if there is none."""
        return min(self._lost, default=None)

    def open(self, params: Any) -> str:
        """Take a document that was opened; the answer is its path."""
        item = params["textDocument"]
        path, text = document_path(item), item["text"]
        if not isinstance(text, str):
            raise TypeError("a document has a text")
        self._texts[path] = text
        self._lost.discard(path)
        return path

    def change(self, params: Any) -> str:
        """Take what changed in one; the answer is its path.

        Raises:
            InvalidParamsError: It is not open, or there is no such place in it.
        """
        path = document_path(params["textDocument"])
        if path not in self._texts:
            raise InvalidParamsError("a document changed that is not open")
        try:
            text = self._texts[path]
            for one in params["contentChanges"]:
                whole = one.get("range") is None
                text = _text(one) if whole else self._changed(text, one)
                if whole:
                    self._lost.discard(path)
        except (AttributeError, KeyError, TypeError, ValueError, InvalidParamsError):
            self._lost.add(path)
            raise
        self._texts[path] = text
        return path

    def close(self, params: Any) -> str:
        """Forget one that was closed; the answer is its path."""
        path = document_path(params["textDocument"])
        self._texts.pop(path, None)
        self._lost.discard(path)
        return path

    def _changed(self, text: str, change: Any) -> str:
        index, place = LineIndex(text), change["range"]
        start, end = (
            index.offset(Position(one["line"], one["character"]), self.unit)
            for one in (place["start"], place["end"])
        )
        if end < start:
            raise ValueError("a range ends before it begins")
        return text[:start] + _text(change) + text[end:]


def document_path(document: Any) -> str:
    """The absolute path of a document that a client names.

    Raises:
        InvalidParamsError: It is no file of this machine.
    """
    uri = document["uri"]
    path = path_of(uri) if isinstance(uri, str) else None
    if path is None:
        raise InvalidParamsError("only files of this machine are known here")
    return path


def _text(change: Any) -> str:
    text = change["text"]
    if not isinstance(text, str):
        raise TypeError("a change has a text")
    return text

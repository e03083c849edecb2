"""A file that a client is asked for, and what it is told of one: values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from filepact.domain.document import Document, WorkspacePath

__all__ = ["PATIENCE", "Asked", "Manner", "News"]

PATIENCE: Final = 30.0
"""Seconds in which an editor has to say what it shows of a file; a person is not asked for that."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A file that the client may have another text of.

    Attributes:
        path: Its one true name.
        name: The name for the client, which spells it, below the session's folders as they were sent.
        size: Bytes on the disk; None when there is no such file.
    """

    path: WorkspacePath
    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class News:
    """A file's new text, for the client.

    Attributes:
        document: The file as it is to be; None for one that was not there or stays as it is.
        text: The text with line ends as the client shows them.
    """

    asked: Asked
    document: Document | None
    text: str


@dataclass(frozen=True, slots=True)
class Manner:
    """How a client shows a file's text where that differs from the file.

    Attributes:
        mark: A byte-order mark stands at the start.
        plain: Lines end in LF, whatever they end in on the disk.
    """

    mark: bool = False
    plain: bool = False

    @classmethod
    def of(cls, text: str) -> Manner:
        """The manner of a text that a client has sent."""
        return cls(text.startswith("\ufeff"), "\n" in text and "\r" not in text)

    def shown(self, text: str) -> str:
        """A file's text in this manner."""
        if self.plain:
            text = text.replace("\r\n", "\n")
        return f"\ufeff{text}" if self.mark else text

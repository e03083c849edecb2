"""What each session has read, so that its writes can be told from stale ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filepact.domain.document import Document, WorkspacePath

__all__ = ["Seen"]

_LIMIT = 64 * 1024 * 1024


class Seen:
    """The newest document that a session saw of each file, oldest dropped over a size limit.

    Args:
        limit: Bytes of documents kept, over all sessions.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._documents: OrderedDict[tuple[str, WorkspacePath], Document] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, session: str, document: Document) -> None:
        """Remember what a session knows of a file from now on."""
        key = (session, document.path)
        with self._lock:
            known = self._documents.pop(key, None)
            if known is not None:
                self._size -= len(known.data)
            self._documents[key] = document
            self._size += len(document.data)
            while self._size > self._limit and len(self._documents) > 1:
                _, dropped = self._documents.popitem(last=False)
                self._size -= len(dropped.data)

    def last(self, session: str, path: WorkspacePath) -> Document | None:
        """What the session saw of a file last, if it is still known."""
        with self._lock:
            return self._documents.get((session, path))

    def forget(self, session: str, path: WorkspacePath) -> None:
        """Drop what a session knew of a file, for example because it deleted it."""
        with self._lock:
            known = self._documents.pop((session, path), None)
            if known is not None:
                self._size -= len(known.data)

"""Pending requests: what was sent to the other side and is not answered yet; no I/O."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_wire.messages import RequestId

__all__ = ["PendingRequests"]

_T = TypeVar("_T")


class PendingRequests(Generic[_T]):
    """A table of requests by id, for all threads.

    Each entry leaves it exactly once, for whoever takes it out: with its answer, when it is given
    up, or when the connection ends.  An answer that finds no entry came late or was made up.

    Args:
        prefix: Makes ids texts that begin so; empty for numbers.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._lock = threading.Lock()
        self._entries: dict[RequestId, _T] = {}
        self._count = 0
        self._closed = False

    def add(self, entry: _T) -> RequestId | None:
        """Enter a request.

        Returns:
            The id to send it with; None once the table was closed.
        """
        with self._lock:
            if self._closed:
                return None
            self._count += 1
            wanted = f"{self._prefix}{self._count}" if self._prefix else self._count
            self._entries[wanted] = entry
            return wanted

    def pop(self, wanted: object) -> _T | None:
        """Take out one request; None where it is not pending."""
        if not isinstance(wanted, int | str) or isinstance(wanted, bool):
            return None
        with self._lock:
            return self._entries.pop(wanted, None)

    def pop_where(self, applies: Callable[[_T], bool]) -> dict[RequestId, _T]:
        """Take out all requests to which something applies, the oldest first."""
        with self._lock:
            found = {wanted: entry for wanted, entry in self._entries.items() if applies(entry)}
            for wanted in found:
                del self._entries[wanted]
            return found

    def entries(self) -> tuple[_T, ...]:
        """All that is pending, the oldest first."""
        with self._lock:
            return tuple(self._entries.values())

    def close(self) -> dict[RequestId, _T]:
        """Take out everything, and enter nothing more."""
        with self._lock:
            self._closed = True
            found, self._entries = self._entries, {}
            return found

"""Texts that a server takes for the ones before, because it looks only at size and whole seconds.

Such a server keeps what it made of a file while the file's size and its time in seconds are the
same.  A text that is as long as one that it had within the same second is a twin: it has to be
sent once more when the second is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Twins"]


class Twins:
    """What one server was given, and when.

    Args:
        clock: The system's time in seconds, by which the server dates what it is given.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._given: dict[str, tuple[int, dict[int, str]]] = {}
        self._again: set[str] = set()
        self._active = 0

    def given(self, path: str, text: str, *, replaced: bool) -> None:
        """The server was given a text.

        Args:
            path: Of the file.
            text: Its text.
            replaced: Whether the server may have had another before, which we do not know.
        """
        second, size = int(self._clock()), len(text.encode("utf-8", "replace"))
        then, texts = self._given.get(path, (None, dict[int, str]()))
        if then is None:
            twin = replaced and second == self._active
        else:
            twin = then == second and texts.get(size, text) != text
        if twin:
            self._again.add(path)
        self._given[path] = (second, {size: text} if then != second else {**texts, size: text})

    def left(self, path: str) -> None:
        """The server looks at the disk again for a file, of whose time we know nothing."""
        self._given.pop(path, None)
        self._again.discard(path)

    def at_work(self) -> None:
        """The server looks at files now, and may keep what it makes of them."""
        self._active = int(self._clock())

    def __bool__(self) -> bool:
        return bool(self._again)

    @property
    def pause(self) -> float:
        """Seconds until all twins can be told apart; 0 also when there are none."""
        if not self._again:
            return 0.0
        last = max(self._given[path][0] for path in self._again)
        return max(last + 1 - self._clock(), 0.0)

    def take(self) -> set[str]:
        """The paths of all twins, which are none any more once they are sent again."""
        again, self._again = self._again, set()
        return again

    def forget(self) -> None:
        """The server starts anew."""
        self._given.clear()
        self._again.clear()
        self._active = 0

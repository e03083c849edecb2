"""Texts that a server takes for the ones before, because it looks only at size and whole seconds.

Such a server keeps what it made of a file while the file's size and its time in seconds are the
same.  A text that is as long as another that it may have got within the same second is a twin: it
has to be sent once more when that second is over.  When a text was got is known only from both
sides: not before it was sent, and not after the server has answered something behind it.
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
        self._got: dict[str, tuple[int | None, dict[int, str]]] = {}
        self._again: set[str] = set()
        self._answered = 0
        self._waiting = False

    def __bool__(self) -> bool:
        return bool(self._again)

    def given(self, path: str, text: str, *, replaced: bool) -> None:
        """The server is sent a text.

        Args:
            path: Of the file.
            text: Its text.
            replaced: Whether the server may have had another before, which we do not know.
        """
        second, size = int(self._clock()), len(text.encode("utf-8", "replace"))
        known = path in self._got
        last, texts = self._got.get(path, (0, dict[int, str]()))
        if last is not None and last < second:
            texts = {}
        elif texts.get(size, text) != text:
            self._again.add(path)
        if not known and replaced and (self._waiting or self._answered >= second):
            self._again.add(path)
        self._got[path] = (None, {**texts, size: text})

    def left(self, path: str) -> None:
        """The server looks at the disk again for a file, of whose time we know nothing."""
        self._got.pop(path, None)
        self._again.discard(path)

    def sent(self) -> None:
        """Something was sent that the server has not answered yet."""
        self._waiting = True

    def answered(self) -> None:
        """The server has answered something behind all that was sent."""
        self._waiting, self._answered = False, int(self._clock())
        for path, (last, texts) in self._got.items():
            if last is None:
                self._got[path] = (self._answered, texts)

    @property
    def pause(self) -> float:
        """Seconds until what the server has got so far can be told from what it gets then."""
        return max(self._answered + 1 - self._clock(), 0.0)

    def take(self) -> set[str]:
        """The paths of all twins, which are none any more once they are sent again."""
        again, self._again = self._again, set()
        return again

    def forget(self) -> None:
        """The server starts anew."""
        self._got.clear()
        self._again.clear()
        self._waiting = False

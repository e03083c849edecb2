"""What sessions should hear besides what they asked, each piece until an answer has told it."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["News", "Unheard"]

_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class News:
    """Something that a session should hear.

    Attributes:
        about: What it is known by when it was heard; two with the same are one.
        text: One sentence, or several lines that belong together.
    """

    about: str
    text: str


class Unheard:
    """News of sessions, until they were heard; of very many only the last ones."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[News]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def add(self, session: str, text: str) -> None:
        """Have a session hear something."""
        with self._lock:
            news = News(f"{id(self)}-{next(self._numbers)}", text)
            self._waiting[session] = [*self._waiting.get(session, []), news][-_MOST:]

    def news(self, session: str) -> tuple[News, ...]:
        """What there is to hear for a session; it stays until it was `heard`."""
        with self._lock:
            return tuple(self._waiting.get(session, ()))

    def heard(self, session: str, news: Iterable[News]) -> None:
        """An answer that told these was sent."""
        about = {one.about for one in news}
        with self._lock:
            rest = [one for one in self._waiting.pop(session, ()) if one.about not in about]
            if rest:
                self._waiting[session] = rest

"""Answers that reach their reader whole: lines on a page, and a footer that says what is on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["PAGE", "Page", "beginning", "cut_to", "size_of"]

PAGE: Final = 40_000
"""What an answer may take where its reader is known to be shown that much."""

_LINE: Final = 20
"""Who is shown answers of so many bytes is shown a line for each 20 of them; hosts count both."""


def size_of(text: str) -> int:
    """What a text takes of a page: its bytes as UTF-8, which no host counts less than."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "backslashreplace"))


def beginning(text: str, most: int) -> str:
    """As many of a text's first characters as take no more of a page than that."""
    most = max(most, 0)
    shown = text[:most]
    while (size := size_of(shown)) > most:
        shown = shown[: min(len(shown) - 1, len(shown) * most // size)]
    return shown


def cut_to(text: str, most: int) -> str:
    """The beginning of a text, cut so that it takes so much of a page, with the cut said."""
    if size_of(text) <= most:
        return text
    mark = "\n[the rest does not fit here]"
    data = text.encode("utf-8", "backslashreplace")[: max(most - len(mark), 0)]
    return data.decode("utf-8", "ignore") + mark


class Page:
    """Lines, one below the other, as long as there is room.

    Args:
        most: What all of it may take, with its footer.

    Attributes:
        worth: How many of the things that are counted it shows.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: list[tuple[str, int]] = []
        self._used = 0
        self._lines = 1  # the footer's
        self.worth = 0

    @property
    def left(self) -> int:
        """What is left of the page, without the footer."""
        return self._most - self._used

    @property
    def rows(self) -> int:
        """How many rows are on it."""
        return len(self._rows)

    def add(self, row: str, worth: int = 1, size: int = 0) -> bool:
        """Put a row on the page if there is room; for the first there always is.

        Args:
            row: One line, or several that belong together.
            worth: How many of the things that are counted it shows.
            size: What it takes, its end included, if that is known and it is one line.
        """
        lines = 1
        if not size:
            size, lines = size_of(row) + 1, row.count("\n") + 1
        if self._rows and (
            self._used + size > self._most or (self._lines + lines) * _LINE > self._most
        ):
            return False
        self._rows.append((row, worth))
        self._used += size
        self._lines += lines
        self.worth += worth
        return True

    def add_all(self, rows: Sequence[str], size: int) -> bool:
        """Put lines on the page, one thing on each, if there is room for all of them.

        Args:
            rows: The lines.
            size: What they take together, their ends included.
        """
        lines = self._lines + len(rows)
        if self._used + size > self._most or lines * _LINE > self._most:
            return False
        self._rows += [(row, 1) for row in rows]
        self._used += size
        self._lines = lines
        self.worth += len(rows)
        return True

    def close(self, footer: Callable[[int], str]) -> str:
        """The whole page; rows that the footer leaves no room for are taken off again.

        Args:
            footer: Given the worth of what is on the page, says what that is.
        """
        while self._used + size_of(last := footer(self.worth)) > self._most:
            if len(self._rows) <= 1:
                break
            row, worth = self._rows.pop()
            self._used -= size_of(row) + 1
            self.worth -= worth
        return "\n".join([*(row for row, _worth in self._rows), last])

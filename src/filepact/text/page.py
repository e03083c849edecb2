"""Pages: answers of a bounded size, with a footer that says what is on them.

Line numbers before the lines, a mark where a long line was cut, and a last line in brackets are not in
the file.  A model that sends a whole text back may leave them in, which `left_in` notices.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, chain, count, pairwise, repeat
from operator import add
from typing import TYPE_CHECKING, Final

from filepact.text.lines import chomp, split_lines
from filepact.text.raw_bytes import with_escapes
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "GOES_ON",
    "LABEL",
    "PAGE",
    "LineWriter",
    "beginning",
    "cut_mark",
    "cut_to",
    "fits_in",
    "left_in",
    "numbered",
    "numbered_lines",
    "size_of",
]

PAGE: Final = 40_000
"""What an answer may take where its reader is known to be shown that much."""

_NUL: Final = 3
"""What the escape of a NUL takes more than it."""

_LINE: Final = 20
"""Who is shown answers of so many bytes is shown a line for each 20 of them; hosts count both."""


def size_of(text: str) -> int:
    """The size of a text on a page: its bytes as UTF-8, at least what any host counts."""
    return _encoded(text) + (_NUL * text.count("\0") if "\0" in text else 0)


def _encoded(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "backslashreplace"))


def beginning(text: str, most: int) -> str:
    """Cut a text to its first characters that fit into a size."""
    most = max(most, 0)
    shown = text[:most]
    while (size := size_of(shown)) > most:
        shown = shown[: min(len(shown) - 1, len(shown) * most // size)]
    return shown


def cut_to(text: str, most: int) -> str:
    """Cut a text to a size, with a note about the cut at its end."""
    if size_of(text) <= most:
        return text
    mark = "\n[the rest does not fit here]"
    data = with_escapes(text).encode()[: max(most - len(mark), 0)]
    return data.decode("utf-8", "ignore") + mark


def fits_in(page: int, size: int, rows: int, each: int = 0) -> bool:
    """Whether some rows, and a footer, fit on a page.

    Args:
        page: What all of it may take.
        size: What it takes, without the ends of the rows.
        rows: How many.
        each: What stands before each besides.
    """
    return size + rows * (each + 1) <= page and (rows + 1) * _LINE <= page


class LineWriter:
    """Collects lines until a page is full.

    Args:
        most: What all of it may take, with its footer.

    Attributes:
        worth: How many of the things that are counted it shows.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: list[str] = []
        self._worths: list[int] = []
        self._used = 0
        self._lines = 1  # the footer's
        self.worth = 0

    @property
    def left(self) -> int:
        """The size that is left on the page, without the footer."""
        return self._most - self._used

    @property
    def rows(self) -> int:
        """The number of rows on the page."""
        return len(self._rows)

    def add(self, row: str, worth: int = 1, size: int = 0) -> bool:
        """Add a row if there is room; the first is always added.

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
        self._rows.append(row)
        self._worths.append(worth)
        self._used += size
        self._lines += lines
        self.worth += worth
        return True

    def fill(
        self, lines: Sequence[str], *, first: int = 0, width: int = 0, holds_nul: bool = True
    ) -> int:
        """Add rows as long as there is room.

        Args:
            lines: None of them holds a line end.
            first: The number of the first line.
            width: Characters of a line's number; 0: they are not numbered.
            holds_nul: Whether a NUL may be in them, which is shown wider than it is.

        Returns:
            How many.
        """
        each = 1 + (size_of(numbered(first, width)) if width else 0)
        measure: Callable[[str], int] = size_of
        if not holds_nul:
            measure = len if all(map(str.isascii, lines)) else _encoded
        sizes = list(accumulate(map(measure, lines)))
        room = self._most - self._used
        fit = len(sizes)
        if fit and sizes[-1] + fit * each > room:
            fit = bisect_right(range(fit), room, key=lambda at: sizes[at] + (at + 1) * each)
        fit = min(fit, self._most // _LINE - self._lines)
        if fit <= 0:
            return 0
        rows: Iterable[str] = lines[:fit]
        if width:
            rows = numbered_lines(rows, first, width)
        self._rows += rows
        self._worths += [1] * fit
        self._used += sizes[fit - 1] + fit * each
        self._lines += fit
        self.worth += fit
        return fit

    def close(self, footer: Callable[[int], str]) -> str:
        """Finish the page: add the footer, and remove the rows that it leaves no room for.

        Args:
            footer: Given the worth of what is on the page, says what that is.
        """
        while self._used + size_of(last := footer(self.worth)) > self._most:
            if len(self._rows) <= 1:
                break
            self._used -= size_of(self._rows.pop()) + 1
            self.worth -= self._worths.pop()
        return "\n".join([*self._rows, last])


# -- what a reader adds to the lines of a file ----------------------------------------------


_NUMBERS: Final = 100  # that are written out together


LABEL: Final = 3
"""What stands before a line takes besides its number."""


def numbered(number: int, width: int) -> str:
    """The prefix of a line, with its number."""
    return f"{number:>{width}}\u2502"


def numbered_lines(lines: Iterable[str], first: int, width: int) -> Iterable[str]:
    """Lines that hold no ends, with their numbers.

    Args:
        lines: They.
        first: The number of the first.
        width: Characters of a number.
    """
    block, skipped = divmod(first, _NUMBERS)
    later = map(_numbers, count(block + 1), repeat(width))
    return map(add, chain(_numbers(block, width)[skipped:], chain.from_iterable(later)), lines)


@lru_cache(maxsize=256)
def _numbers(block: int, width: int) -> tuple[str, ...]:
    first = block * _NUMBERS
    return tuple(numbered(number, width) for number in range(first, first + _NUMBERS))


GOES_ON: Final = " [the line goes on]"
"""What stands at the end of a line of which no more was read."""

_NUMBERED: Final = late_regex(r"[ ]*(-?\d+)\u2502")
_CUT: Final = late_regex(r" \[(\+[\d,]+ characters|the line goes on)\]$")
_FOOTER: Final = late_regex(r"\[[^\]\n]* \| revision [0-9a-f]{12}( \|[^\n]*)?\]$")

_SIGNS: Final = ("\u2502", " characters]", GOES_ON, " | revision ")

_LONG: Final = 500
"""Characters from which on a line is taken for a long one that was cut, where no file can tell."""

_SHORT: Final = 20
"""Where one can: fewer would stand in many a line."""


def cut_mark(more: int) -> str:
    """The mark at the end of a line of which so many characters are not shown."""
    return f" [+{more:,} characters]"


def left_in(text: str, there: str) -> str:
    """Name what a new text holds of the additions of read_file, such as line numbers; empty for none.

    Args:
        text: The new text.
        there: The one that it is meant to replace, which may hold such marks itself.
    """
    if not any(sign in text for sign in _SIGNS):
        return ""
    lines = [line for line in map(chomp, split_lines(text)) if line.strip()]
    old = [chomp(line) for line in split_lines(there)]
    known = set(old)
    if _FOOTER.fullmatch(lines[-1]) and lines.pop() not in known:
        return "the last line of read_file in brackets"
    if _are_numbered(lines) and not _are_numbered([line for line in old if line.strip()]):
        return "the line numbers of read_file"
    for line in lines:
        found = _CUT.search(line)
        if found is not None and line not in known and _was_cut(line[: found.start()], old):
            return f"the mark{found[0]} of read_file, where a long line was cut"
    return ""


def _are_numbered(lines: list[str]) -> bool:
    """Whether nearly every line begins with a number, and the numbers ascend."""
    numbers = [int(found[1]) for line in lines if (found := _NUMBERED.match(line))]
    if not numbers or 10 * len(numbers) < 9 * len(lines):
        return False
    # Blank lines are numbered as well; only those that were added have none.
    return all(a < b <= a + 2 for a, b in pairwise(numbers))


def _was_cut(shown: str, old: list[str]) -> bool:
    if not old:
        return len(shown) >= _LONG
    return len(shown) >= _SHORT and any(shown in line for line in old)

"""Places in a text as editors name them: a line and a column, in one of three units.

The lines are those of the Language Server Protocol: they end at LF, CR LF or CR and nowhere else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, count
from operator import add
from typing import Literal

from filepact.errors import InvalidParamsError

__all__ = ["LineIndex", "Position", "Unit"]

Unit = Literal["utf-8", "utf-16", "utf-32"]
"""What a column counts: bytes, 16-bit units (two for a character beyond U+FFFF), or characters."""

_ENDS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two characters.

    Attributes:
        line: 0-based.
        column: Units from the line's start, 0-based.
    """

    line: int
    column: int


class LineIndex:
    """Where the lines of a text start.

    Args:
        text: The text; it is not copied.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._starts = _starts(text)

    @property
    def lines(self) -> int:
        """How many lines there are; a text that ends with a line end has an empty last one."""
        return len(self._starts)

    def offset(self, position: Position, unit: Unit = "utf-16") -> int:
        """The offset of a position, in characters.

        A column beyond the line's end is its end, as the protocol has it.

        Raises:
            InvalidParamsError: There is no such line, or the column cuts a character.
        """
        if not 0 <= position.line < len(self._starts):
            raise InvalidParamsError(
                f"there is no line {position.line} (the first is 0) in a text of "
                f"{len(self._starts)} lines",
                hint="Send the whole text; what is known of it is not what you mean.",
            )
        start = self._starts[position.line]
        line = self.line(position.line)
        column = max(position.column, 0)
        if self._ascii or unit == "utf-32" or line.isascii():
            return start + min(column, len(line))
        return start + _characters(line, column, unit)

    def position(self, offset: int, unit: Unit = "utf-16") -> Position:
        """The position of an offset in characters; one within CR LF is before it."""
        number = bisect_right(self._starts, offset) - 1
        before = self.line(number)[: offset - self._starts[number]]
        return Position(number, _units(before, unit))

    def line(self, number: int) -> str:
        """A line without its end; the first is 0."""
        start = self._starts[number]
        last = number + 1 == len(self._starts)
        line = self._text[start:] if last else self._text[start : self._starts[number + 1]]
        return line if last else line.removesuffix("\n").removesuffix("\r")


def _starts(text: str) -> list[int]:
    if text.count("\r") != text.count("\r\n"):
        return [0, *[found.end() for found in _ENDS.finditer(text)]]
    # Nearly all texts; without a line of Python for each of theirs.
    lengths = accumulate(map(len, text.split("\n")), initial=0)
    starts = list(map(add, lengths, count()))
    starts.pop()
    return starts


def _units(text: str, unit: Unit) -> int:
    if unit == "utf-32" or text.isascii():
        return len(text)
    if unit == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(char > "\uffff" for char in text)


def _characters(line: str, column: int, unit: Unit) -> int:
    """How many characters a number of units is; all of them when it is more than the line has."""
    codec = "utf-8" if unit == "utf-8" else "utf-16-le"
    width = 1 if unit == "utf-8" else 2
    encoded = line.encode(codec, "surrogatepass")
    if column * width >= len(encoded):
        return len(line)
    try:
        # Lone surrogates are whole characters of a text; halves of a pair are not.
        before = encoded[: column * width].decode(codec, "surrogatepass")
        behind = encoded[column * width :].decode(codec, "surrogatepass")
    except UnicodeDecodeError:
        before = behind = ""
    if before + behind != line or len(before) + len(behind) != len(line):
        raise InvalidParamsError(
            f"column {column} lies within a character, counted in {unit}",
            hint="Count columns in the units that were agreed on.",
        )
    return len(before)

"""Lines of a text, their ends, positions in them, and what two texts have in common at both ends.

A line ends at LF, and so at CRLF.  Only in a text that has no LF at all does CR end a line, as on
the classic Mac.  Form feed, vertical tab, U+0085 and U+2028 never end one: editors, compilers and
patch programs do not count them either.  `LineIndex` alone counts as the Language Server Protocol
does, where every CR ends a line.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from itertools import accumulate, count
from operator import add
from typing import TYPE_CHECKING, Final, Literal

from filepact.errors import InvalidParamsError
from filepact.text.compare import common_head, common_tail, compare_lines
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DiffLines",
    "LineCounts",
    "LineIndex",
    "Position",
    "Unit",
    "adopt_line_ends",
    "chomp",
    "common_head",
    "common_tail",
    "is_open",
    "line_ends",
    "line_of",
    "line_range",
    "line_start",
    "line_starts",
    "line_window",
    "middle_of",
    "middles_of",
    "split_lines",
    "with_line_ends_of",
]

Terminator = Literal["\n", "\r\n", "\r"]
LineEnds = Literal["lf", "crlf", "cr", "mixed", "none"]

_BLOCK = 8_192
"""Characters in which line ends are counted together."""
_WIDTH = 64
"""Characters of a line, about."""
_SMALLEST = 256
"""Characters in which they are looked for one by one."""


def split_lines(text: str) -> list[str]:
    """The lines with their ends; joined they are the text, and only the last may lack an end."""
    separator = "\r" if "\n" not in text and "\r" in text else "\n"
    pieces = text.split(separator)
    last = pieces.pop()
    lines = [piece + separator for piece in pieces]
    if last:
        lines.append(last)
    return lines


class LineCounts:
    """How many lines end in each part of a text, so that any line is found without counting from the top.

    Attributes:
        total: How many lines the text has.
        ends: The kind of their ends.
    """

    def __init__(self, text: str) -> None:
        separator = _separator(text)
        counts = (text.count(separator, at, at + _BLOCK) for at in range(0, len(text), _BLOCK))
        self._before = list(accumulate(counts, initial=0))
        self.total = self._before[-1] + (not text.endswith(separator) and bool(text))
        self.ends = line_ends(text)

    def start(self, text: str, line: int) -> int:
        """The offset at which a line starts, 0-based; the text's end for those behind the last.

        Args:
            text: The same text.
            line: Which.
        """
        if line <= 0 or line >= self.total:
            return 0 if line <= 0 else len(text)
        block = max(bisect_left(self._before, line) - 1, 0)
        return line_start(text, line - self._before[block], block * _BLOCK)


def line_window(
    text: str, first: int, count: int, marks: LineCounts | None = None, most: int = sys.maxsize
) -> tuple[list[str], int, int]:
    """Cut some lines out of a text.

    Args:
        text: The text; only the wanted part of it is cut into lines.
        marks: What is known of its lines.
        first: 0-based number of the first line wanted.
        count: Most lines wanted.
        most: Characters after which no further line is cut.

    Returns:
        The lines without their ends; how many lines the text has; where the first line starts.
    """
    marks = marks or LineCounts(text)
    separator, start, total = _separator(text), marks.start(text, first), marks.total
    if first >= total:
        return [], total, start
    # As far as the end nothing has to be counted.
    end = len(text) if count >= total - first else line_start(text, count, start)
    if end - start > most:
        end = text.find(separator, start + most) + 1 or end
    part = text[start:end]
    lines = part.split(separator)
    if not lines[-1]:
        lines.pop()
    if separator == "\n" and "\r" in part:
        # Without LF after it a CR is a character, also at the end of the text.
        last = [] if part.endswith("\n") else lines[-1:]
        lines = [line.removesuffix("\r") for line in lines[: len(lines) - len(last)]] + last
    return lines, total, start


def line_start(text: str, count: int, start: int = 0) -> int:
    """The offset after so many lines, counted from a line's start; the text's end after the last."""
    separator = _separator(text)
    # Blocks are counted, smaller ones towards both ends: far quicker than going from line to line.
    step = min(_BLOCK, _WIDTH * count)
    while count and start < len(text):
        found = text.count(separator, start, start + step)
        if found < count:
            count -= found
            start += step
            step = min(_BLOCK, 4 * step)
        elif step > _SMALLEST:
            step //= 4
        else:
            break
    for _ in range(count):
        start = text.find(separator, start) + 1
        if not start:
            return len(text)
    return min(start, len(text))


def chomp(line: str) -> str:
    """A line without its end."""
    return line[: len(line) - len(terminator_of(line))]


def terminator_of(line: str) -> Terminator | Literal[""]:
    """The end of one line, empty when it has none."""
    if line.endswith("\n"):
        return "\r\n" if line.endswith("\r\n") else "\n"
    return "\r" if line.endswith("\r") else ""


def line_ends(text: str) -> LineEnds:
    """The kind of a text's line ends."""
    if "\r" not in text:
        return "lf" if "\n" in text else "none"
    total = text.count("\n")
    if not total:
        return "cr"
    both = text.count("\r\n")
    if not both:
        return "lf"
    return "crlf" if both == total else "mixed"


def is_open(text: str) -> bool:
    """Whether the last line lacks an end, so that what follows goes on with it."""
    return bool(text) and not text.endswith(_separator(text))


def line_of(text: str, offset: int) -> int:
    """The 1-based number of the line in which the character at ``offset`` stands.

    The end of a text after a last line end counts as one more line.
    """
    return text.count(_separator(text), 0, offset) + 1


def line_range(text: str, start: int, end: int) -> tuple[int, int]:
    """The lines, from 0, that have some of the characters ``[start, end)``: the first, and the one after the last."""
    separator = _separator(text)
    first = text.count(separator, 0, start)
    return first, first + text.count(separator, start, max(end - 1, start)) + (start < end)


def line_starts(lines: Sequence[str]) -> list[int]:
    """The offset in the text at which each of its lines starts, and at the end the text's length."""
    return [0, *accumulate(map(len, lines))]


def adopt_line_ends(text: str, like: str) -> str:
    """A text with the line ends of the file it is meant for, whether it was sent with LF or CRLF.

    A line that the file has too keeps its end; any other takes the end that most lines around it
    have.  Only in a file that has both is a text explicit all of whose lines end in CRLF.  A CR
    without LF is a character, but for files whose lines end in CR.
    """
    ends = line_ends(like)
    if "\n" not in text or ends == "none" or (ends == "lf" and "\r" not in text):
        return text
    if ends == "lf":
        return text.replace("\r\n", "\n")
    if ends == "cr":
        return text.replace("\r\n", "\n").replace("\n", "\r")
    if "\r\r\n" in like:
        # As it is shown, such a line ends in CR and LF.
        known = {line.removesuffix("\r") for line in like.split("\n")}
        *lines, last = text.split("\n")
        lines = [line if line in known else line.removesuffix("\r") for line in lines]
        return _adopt_mixed("\n".join((*lines, last)), like)
    if line_ends(text) == "crlf":
        return text
    bare = text.replace("\r\n", "\n")
    return bare.replace("\n", "\r\n") if ends == "crlf" else _adopt_mixed(bare, like)


def with_line_ends_of(like: str, text: str) -> str:
    """A text as it would be in a file whose line ends somebody converted since."""
    ends = line_ends(text)
    if line_ends(like) in ("none", ends):
        return text
    bare = text.replace("\r", "\n") if ends == "cr" else text.replace("\r\n", "\n")
    return adopt_line_ends(bare, like)


def _adopt_mixed(text: str, like: str) -> str:
    lines, known = text.split("\n"), like.split("\n")
    open_end, known_open = lines.pop(), known.pop()
    known_ends = ["\r\n" if line.endswith("\r") else "\n" for line in known]
    known = [line.removesuffix("\r") for line in known]
    if known_open:
        known.append(known_open)
        known_ends.append("")
    bare = [*lines, open_end] if open_end else lines
    ends: list[str] = []
    at = 0
    for region in compare_lines(known, bare):
        ends.extend(known_ends[at : region.old_start])
        own = known_ends[region.old_start : region.old_end]
        count = region.new_end - region.new_start
        ends.extend(own if len(own) == count else [_nearby(known_ends, region.old_start)] * count)
        at = region.old_end
    ends.extend(known_ends[at:])
    ends = [end or _nearby(known_ends, len(known_ends)) for end in ends]
    if open_end:
        ends[-1] = ""
    return "".join(line + end for line, end in zip(bare, ends, strict=True))


def _nearby(ends: Sequence[str], at: int) -> str:
    """The end that most of the few lines around a place have; a tie goes to the line before it."""
    before = [end for end in ends[max(at - 3, 0) : at] if end]
    around = before + [end for end in ends[at : at + 3] if end]
    both = around.count("\r\n")
    if 2 * both == len(around):
        return before[-1] if before else around[0]
    return "\r\n" if 2 * both > len(around) else "\n"


def _separator(text: str) -> Literal["\n", "\r"]:
    return "\r" if "\n" not in text and "\r" in text else "\n"


# -- what two texts have in common -----------------------------------------------------------
#
# Most changes touch a few lines of a long text.  Cutting the equal ends off first, by comparing whole
# slices, makes a comparison line by line cost what the change costs, not what the file costs.


_MARGIN: Final = 64


@dataclass(frozen=True, slots=True)
class DiffLines:
    """The lines in which two texts differ, with some equal ones around.

    Attributes:
        old: Those of the one text.
        new: Those of the other.
        start: Where they start in both texts, in code points.
        first: 0-based number of the first of them.
        whole_head: They start where the texts start.
        whole_tail: They end where the texts end.
    """

    old: str
    new: str
    start: int
    first: int
    whole_head: bool
    whole_tail: bool


def middles_of(first: str, *others: str) -> list[str]:
    """Several texts without the lines that all of them share at both ends, but for a margin."""
    head = min(common_head(first, other) for other in others)
    tail = min(common_tail(first[head:], other[head:]) for other in others)
    start = _before_margin(first, head)
    kept = _after_margin(first[len(first) - tail :])
    return [text[start : len(text) - tail + kept] for text in (first, *others)]


def _before_margin(text: str, head: int, margin: int = _MARGIN) -> int:
    """The start of the margin before the first difference."""
    start = head
    for _ in range(margin + 1):
        start = text.rfind("\n", 0, start)
        if start < 0:
            break
    return start + 1


def _after_margin(shared: str, margin: int = _MARGIN) -> int:
    """The length of the margin after the last difference."""
    kept = 0
    for _ in range(margin + 1):
        at = shared.find("\n", kept)
        if at < 0:
            return len(shared)
        kept = at + 1
    return kept


def middle_of(old: str, new: str, margin: int = _MARGIN) -> DiffLines:
    """Cut off the lines that two texts share at both ends, but for a margin.

    Lines end at LF.  The margin, of so many lines, leaves room for showing a change among its neighbours,
    and for choosing between equally good places for it.
    """
    head = common_head(old, new)
    start = _before_margin(old, head, margin)
    tail = common_tail(old[head:], new[head:])
    old_end, new_end = len(old) - tail, len(new) - tail
    shared = old[old_end:]
    kept = _after_margin(shared, margin)
    return DiffLines(
        old=old[start : old_end + kept],
        new=new[start : new_end + kept],
        start=start,
        first=old.count("\n", 0, start),
        whole_head=start == 0,
        whole_tail=kept == len(shared),
    )


# -- positions as editors name them -----------------------------------------------------------


Unit = Literal["utf-8", "utf-16", "utf-32"]
"""What a column counts: bytes, 16-bit units (two for a character beyond U+FFFF), or characters."""

_ENDS = late_regex(r"\r\n|\r|\n")


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
    """Positions of the Language Server Protocol in a text: lines end at LF, CR LF or CR.

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
                hint="Send the whole text; the known text differs from yours.",
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
    """The number of characters of a column in units; at most all of the line's."""
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

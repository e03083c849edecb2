"""Lines of a text and their ends.

A line ends at LF, and so at CRLF.  Only in a text that has no LF at all does CR end a line, as on
the classic Mac.  Form feed, vertical tab, U+0085 and U+2028 never end one: editors, compilers and
patch programs do not count them either.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from filepact.text.compare import compare_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LineEnds",
    "LineIndex",
    "Terminator",
    "adopt_line_ends",
    "chomp",
    "chomp_all",
    "line_ends",
    "line_of",
    "line_start",
    "line_terminator",
    "line_window",
    "split_lines",
    "terminator_of",
    "with_line_ends_of",
]

Terminator = Literal["\n", "\r\n", "\r"]
LineEnds = Literal["lf", "crlf", "cr", "mixed", "none"]

_BLOCK = 65_536
"""Characters in which line ends are counted together."""


def split_lines(text: str) -> list[str]:
    """The lines with their ends; joined they are the text, and only the last may lack an end."""
    return _split(text, _separator(text))


def _split(text: str, separator: str) -> list[str]:
    pieces = text.split(separator)
    last = pieces.pop()
    lines = [piece + separator for piece in pieces]
    if last:
        lines.append(last)
    return lines


def line_window(text: str, first: int, count: int) -> tuple[list[str], int]:
    """Some lines with their ends, and how many lines the text has.

    Args:
        text: The text; only the wanted part of it is cut into lines.
        first: 0-based number of the first line wanted.
        count: Most lines wanted.
    """
    separator = _separator(text)
    total = text.count(separator) + (not text.endswith(separator) and bool(text))
    if first >= total:
        return [], total
    start = line_start(text, first)
    end = line_start(text, min(count, total - first), start)
    return _split(text[start:end], separator), total


def line_start(text: str, count: int, start: int = 0) -> int:
    """Where the text goes on after so many lines from a line's start on; its end after the last."""
    separator = _separator(text)
    # Whole blocks are counted, which is far quicker than going from line to line.
    while start < len(text) and (found := text.count(separator, start, start + _BLOCK)) < count:
        count -= found
        start += _BLOCK
    for _ in range(count):
        start = text.find(separator, start) + 1
        if not start:
            return len(text)
    return min(start, len(text))


def chomp(line: str) -> str:
    """A line without its end."""
    return line[: len(line) - len(terminator_of(line))]


def chomp_all(lines: list[str]) -> list[str]:
    """The lines of a text without their ends."""
    if any("\r" in line for line in lines):
        return [chomp(line) for line in lines]
    return [line.removesuffix("\n") for line in lines]


def terminator_of(line: str) -> Terminator | Literal[""]:
    """The end of one line, empty when it has none."""
    if line.endswith("\n"):
        return "\r\n" if line.endswith("\r\n") else "\n"
    return "\r" if line.endswith("\r") else ""


def line_ends(text: str) -> LineEnds:
    """Which line ends a text has."""
    if "\r" not in text:
        return "lf" if "\n" in text else "none"
    total = text.count("\n")
    if not total:
        return "cr"
    both = text.count("\r\n")
    if not both:
        return "lf"
    return "crlf" if both == total else "mixed"


def line_terminator(text: str) -> Terminator:
    r"""The line end that most lines have; the first line's when two are equally frequent.

    A text without line ends gets ``\n``.
    """
    total = text.count("\n")
    if not total:
        return "\r" if "\r" in text else "\n"
    both = text.count("\r\n")
    if 2 * both == total:
        return "\r\n" if text[text.index("\n") - 1] == "\r" else "\n"
    return "\r\n" if 2 * both > total else "\n"


def line_of(text: str, offset: int) -> int:
    """The 1-based number of the line in which the character at ``offset`` stands.

    The end of a text after a last line end counts as one more line.
    """
    return text.count(_separator(text), 0, offset) + 1


class LineIndex:
    """Where the lines of one text start, for many lookups.

    Attributes:
        lines: The lines with their ends.
        starts: Offset of each line's first character, in code points.
    """

    __slots__ = ("_size", "lines", "starts")

    def __init__(self, text: str) -> None:
        self.lines = split_lines(text)
        self.starts = [0, *accumulate(map(len, self.lines))]
        self._size = self.starts.pop()

    def line_at(self, offset: int) -> int:
        """The 0-based number of the line that holds ``offset``; the last for the text's end."""
        return max(bisect_right(self.starts, offset) - 1, 0)

    def start(self, line: int) -> int:
        """Where the line with a 0-based number starts; the text's end for the one after the last."""
        return self.starts[line] if line < len(self.starts) else self._size


def adopt_line_ends(text: str, like: str) -> str:
    """A text by someone who thinks in LF, with the line ends of the file it is meant for.

    A line that the file has too keeps its end; any other takes the end that most lines around it
    have.  A text with a CR in it is returned unchanged: its author was explicit.
    """
    if "\r" in text or "\n" not in text:
        return text
    match line_ends(like):
        case "lf" | "none":
            return text
        case "crlf":
            return text.replace("\n", "\r\n")
        case "cr":
            return text.replace("\n", "\r")
        case "mixed":
            return _adopt_mixed(split_lines(text), split_lines(like))


def with_line_ends_of(like: str, text: str) -> str:
    """A text as it would be in a file whose line ends somebody converted since."""
    ends = line_ends(like)
    if ends in ("none", line_ends(text)):
        return text
    lines = split_lines(text)
    bare = "\n".join(map(chomp, lines)) + ("\n" if lines and terminator_of(lines[-1]) else "")
    return adopt_line_ends(bare, like)


def _adopt_mixed(lines: list[str], known: list[str]) -> str:
    bare = [chomp(line) for line in lines]
    known_ends = [terminator_of(line) for line in known]
    ends: list[str] = []
    at = 0
    for region in compare_lines([chomp(line) for line in known], bare):
        ends.extend(known_ends[at : region.old_start])
        own = known_ends[region.old_start : region.old_end]
        count = region.new_end - region.new_start
        ends.extend(own if len(own) == count else [_nearby(known_ends, region.old_start)] * count)
        at = region.old_end
    ends.extend(known_ends[at:])
    ends = [end or _nearby(known_ends, len(known_ends)) for end in ends]
    if not lines[-1].endswith("\n"):
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

"""Places of a text whose lines are those that were sent, but for blanks and typography.

The search is for the loosest comparison of all, so that a second place is seen even if it differs
from the first in a way that a stricter comparison would tell.  It looks for one rare word of what
was sent and compares the lines around each place where the word stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from filepact.text.ladder import BLANKS, body_of, fold

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Alike", "Line", "find_alike"]

_WORD = re.compile(r"[^\s'\"\-\u00ad\u00b4\u2010-\u2015\u2018-\u201f\u2032\u2033\u2212]+")
_LEAST_EVIDENCE = 8
_MOST_WORDS = 4
_MOST_SENT = 20_000
_MOST_COMPARED = 50_000
_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file: ``[start, end)`` without its end, ``after`` where the next begins."""

    start: int
    end: int
    after: int


@dataclass(frozen=True, slots=True)
class Alike:
    """A place whose lines are alike.

    Attributes:
        lines: For each line that was sent the file's line; None for a blank line that the file
            does not have.
        missed: Blank lines of the file that were not sent: before which line sent each one stands.
        blanks_at_edges: How many blank lines at the edges of what was sent are not in the file.
    """

    lines: tuple[Line | None, ...]
    missed: tuple[int, ...]
    blanks_at_edges: int

    @property
    def start(self) -> int:
        """Where the first line that is in the file begins."""
        return next(line.start for line in self.lines if line is not None)

    @property
    def after(self) -> int:
        """Where the line after the last one that is in the file begins."""
        return next(line.after for line in reversed(self.lines) if line is not None)

    @property
    def blank_lines_off(self) -> int:
        """How many blank lines what was sent has too many or too few, between the others."""
        extra = sum(line is None for line in self.lines) - self.blanks_at_edges
        return extra + len(self.missed)


class _Exhausted(Exception):  # noqa: N818 - an answer, not an error
    """So many lines were compared that the search is given up."""


def find_alike(text: str, sent: list[str], separator: str) -> list[Alike]:
    """All places whose lines that are not blank are alike; few are enough to tell there are several.

    Blank lines between them may be one or two more or fewer.

    Args:
        text: The text to search.
        sent: The lines that were sent, without their ends.
        separator: What ends a line of the text; a CR before an LF belongs to the end.

    Returns:
        The places in order; empty also when too little or too much was sent to know it again, or
        when the text repeats itself so much that the search takes too long.
    """
    if len(sent) > _MOST_SENT:
        return []
    bodies = [(index, fold(body_of(line))) for index, line in enumerate(sent)]
    bodies = [(index, body) for index, body in bodies if body]
    if sum(len(body) for _, body in bodies) < _LEAST_EVIDENCE:
        return []
    anchor = _rarest(text, [body for _, body in bodies])
    if anchor is None:
        return []
    try:
        return _Search(text, sent, bodies, separator).places(*anchor)
    except _Exhausted:
        return []


def _rarest(text: str, bodies: list[str]) -> tuple[int, str] | None:
    """The line and the word to look for: one that every comparison leaves as it is."""
    words: dict[str, int] = {}
    for index, body in enumerate(bodies):
        for word in _WORD.findall(body):
            words.setdefault(word, index)
    best, least = None, 0
    for word in sorted(words, key=len, reverse=True)[:_MOST_WORDS]:
        count = text.count(word)
        if not count:
            return None
        if best is None or count < least:
            best, least = word, count
        if count == 1:
            break
    return None if best is None else (words[best], best)


class _Search:
    """One search; counts what it compares."""

    __slots__ = ("bodies", "budget", "gaps", "sent", "separator", "text")

    def __init__(
        self, text: str, sent: list[str], bodies: list[tuple[int, str]], separator: str
    ) -> None:
        self.text = text
        self.sent = sent
        self.bodies = bodies
        self.separator = separator
        self.gaps = [after - before - 1 for (before, _), (after, _) in pairwise(bodies)]
        self.budget = _MOST_COMPARED

    def places(self, index: int, word: str) -> list[Alike]:
        """The places where the line ``index`` of those that are not blank holds the word."""
        found: list[Alike] = []
        at = self.text.find(word)
        while at != -1 and len(found) < _MOST_PLACES:
            line = self._line_at(at)
            if self._alike(line, self.bodies[index][1]):
                place = self._around(line, index)
                if place is not None:
                    found.append(place)
            at = self.text.find(word, line.after)
        return found

    def _line_at(self, offset: int) -> Line:
        start = self.text.rfind(self.separator, 0, offset) + 1
        return self._line_from(start, self.text.find(self.separator, offset))

    def _line_from(self, start: int, found: int) -> Line:
        if found == -1:
            return Line(start, len(self.text), len(self.text))
        wide = self.separator == "\n" and self.text.startswith("\r", found - 1) and found > start
        return Line(start, found - wide, found + 1)

    def _before(self, line: Line) -> Line | None:
        if not line.start:
            return None
        start = self.text.rfind(self.separator, 0, line.start - 1) + 1
        return self._line_from(start, line.start - 1)

    def _next(self, line: Line) -> Line | None:
        if line.after >= len(self.text):
            return None
        return self._line_from(line.after, self.text.find(self.separator, line.after))

    def _alike(self, line: Line, body: str) -> bool:
        self.budget -= 1
        if self.budget < 0:
            raise _Exhausted
        if line.end - line.start < len(body):
            return False
        there = self.text[line.start : line.end].strip(BLANKS)
        return len(there) == len(body) and (there == body or fold(there) == body)

    def _around(self, line: Line, index: int) -> Alike | None:
        """The place around one line that is alike, if the others are alike too."""
        anchor = line
        found = [line]
        gaps: list[list[Line]] = []
        for i in range(index - 1, -1, -1):
            step = self._walk(line, self.gaps[i], self.bodies[i][1], self._before)
            if step is None:
                return None
            line, gap = step
            found.insert(0, line)
            gaps.insert(0, gap[::-1])
        line = anchor
        for i in range(index + 1, len(self.bodies)):
            step = self._walk(line, self.gaps[i - 1], self.bodies[i][1], self._next)
            if step is None:
                return None
            line, gap = step
            found.append(line)
            gaps.append(gap)
        return self._place(found, gaps)

    def _walk(
        self, line: Line, gap: int, body: str, following: Callable[[Line], Line | None]
    ) -> tuple[Line, list[Line]] | None:
        """The next line that is not blank, if it is alike, and the blank ones up to there."""
        blank: list[Line] = []
        while len(blank) <= gap + 2:
            near = following(line)
            if near is None:
                return None
            if self._alike(near, body):
                return near, blank
            if not self._alike(near, ""):
                return None
            blank.append(near)
            line = near
        return None

    def _place(self, found: list[Line], gaps: list[list[Line]]) -> Alike:
        """Blank lines are paired from the top; what is over is missing on one side."""
        lines: list[Line | None] = [None] * len(self.sent)
        missed: list[int] = []
        for (index, _), line in zip(self.bodies, found, strict=True):
            lines[index] = line
        for (before, _), gap, wanted in zip(self.bodies, gaps, self.gaps, strict=False):
            for i, blank in enumerate(gap):
                if i < wanted:
                    lines[before + 1 + i] = blank
                else:
                    missed.append(before + 1 + wanted)
        first, last = self.bodies[0][0], self.bodies[-1][0]
        self._edge(lines, range(first - 1, -1, -1), found[0], self._before)
        self._edge(lines, range(last + 1, len(lines)), found[-1], self._next)
        edges = lines[:first].count(None) + lines[last + 1 :].count(None)
        return Alike(tuple(lines), tuple(missed), edges)

    def _edge(
        self,
        lines: list[Line | None],
        indexes: range,
        line: Line,
        following: Callable[[Line], Line | None],
    ) -> None:
        """Pair the blank lines before the first or after the last line that is not blank."""
        near: Line | None = line
        for index in indexes:
            near = following(near) if near is not None else None
            if near is None or not self._alike(near, ""):
                return
            lines[index] = near

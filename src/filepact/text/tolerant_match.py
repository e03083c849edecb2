"""Finds lines of a text that are those that were sent, but for blanks and typography.

Every step (`STEPS`) compares whole lines and overlooks one kind of slip.  There is no step for a text
that is merely similar: what differs in a letter is another text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

__all__ = [
    "STEPS",
    "TYPOGRAPHY",
    "LineMatch",
    "Step",
    "TextLine",
    "body_of",
    "differing",
    "find_alike",
    "fold",
    "indent_of",
    "rival_of",
    "trail_of",
    "unnumbered",
]

Step = Literal[
    "exact",
    "line ends",
    "trailing blanks",
    "indentation",
    "line numbers",
    "typography",
    "blank line",
]

STEPS: dict[Step, str] = {
    "exact": "the same characters",
    "line ends": "the same lines with the file's own line ends",
    "trailing blanks": "the same lines but for blanks at their ends; the file's were kept",
    "indentation": "the same lines but for their indentation; the file's was kept",
    "line numbers": "the same lines after taking the line numbers off that came before them",
    "typography": "the same lines but for typographic quotes, dashes or blanks; "
    "the file's were kept",
    "blank line": "the same lines but for one blank line; the file's were kept",
}
"""In the order in which they are tried: what was found, for people."""

TYPOGRAPHY = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000",
}
"""For a key of the keyboard the characters that word processors put in its place."""

_KEYBOARD = str.maketrans({odd: plain for plain, odds in TYPOGRAPHY.items() for odd in odds})

BLANKS = " \t" + TYPOGRAPHY[" "]
"""What may stand around a line's body."""

_NUMBERED = late_regex(r"[ \t]*(\d{1,9})([\u2502\u2192|\t])", re.ASCII)


def fold(text: str) -> str:
    """A text with quotes, dashes and blanks as on a keyboard, character by character."""
    return text if text.isascii() else text.translate(_KEYBOARD)


def body_of(line: str) -> str:
    """A line without the blanks around it."""
    return line.strip(BLANKS)


def indent_of(line: str) -> str:
    """The blanks at the beginning of a line; all of it when there is nothing else."""
    return line[: len(line) - len(line.lstrip(BLANKS))]


def trail_of(line: str) -> str:
    """The blanks at the end of a line."""
    return line[len(line.rstrip(BLANKS)) :]


def differing(sent: list[str], there: list[str]) -> tuple[Step, ...]:
    """The steps that are needed to see lines as the same, in the order of `STEPS`.

    Args:
        sent: Lines without their ends, none of them blank.
        there: The file's lines, each found for the one that was sent.
    """
    parts: tuple[tuple[Step, Callable[[str], str]], ...] = (
        ("trailing blanks", trail_of),
        ("indentation", indent_of),
        ("typography", body_of),
    )
    pairs = [(one, other) for one, other in zip(sent, there, strict=True) if one != other]
    return tuple(step for step, part in parts if any(part(a) != part(b) for a, b in pairs))


def unnumbered(old: str, new: str) -> tuple[str, str] | None:
    """Both texts without the line numbers that a program showed before each line.

    Every line of the old text that is not empty must have one, the numbers ascend by one, and
    all are set off by the same sign.  In the new text a line may lack it, as lines do that were
    added.

    Returns:
        None when these are no such numbers.
    """
    first: int | None = None
    sign = ""
    stripped = []
    for index, line in enumerate(old.split("\n")):
        match = _NUMBERED.match(line)
        if match is None:
            if line.strip():
                return None
            stripped.append(line)
            continue
        if first is None:
            first, sign = int(match[1]) - index, match[2]
        if int(match[1]) - index != first or match[2] != sign:
            return None
        stripped.append(line[match.end() :])
    if not any(line.strip() for line in stripped):
        return None
    fresh = []
    for line in new.split("\n"):
        match = _NUMBERED.match(line)
        fresh.append(line[match.end() :] if match and match[2] == sign else line)
    return "\n".join(stripped), "\n".join(fresh)


# -- the places -----------------------------------------------------------------------------
#
# The search uses the loosest comparison of all, so that a second place is seen even if a stricter
# comparison would tell it from the first.  It looks for one rare word of what was sent and compares
# the lines around each place where the word stands.


_WORD = late_regex(r"[^\s'\"\-\u00ad\u00b4\u2010-\u2015\u2018-\u201f\u2032\u2033\u2212]+")
_LEAST_EVIDENCE = 8
_MOST_WORDS = 4
_MOST_SENT = 20_000
_MOST_COMPARED = 50_000
_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of the file: ``[start, end)`` without its end, ``after`` where the next begins."""

    start: int
    end: int
    after: int


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A place whose lines are alike.

    Attributes:
        lines: For each line that was sent the file's line; None for a blank line that the file
            does not have.
        missed: Blank lines of the file that were not sent: before which line sent each one stands.
        blanks_at_edges: How many blank lines at the edges of what was sent are not in the file.
    """

    lines: tuple[TextLine | None, ...]
    missed: tuple[int, ...]
    blanks_at_edges: int

    @property
    def start(self) -> int:
        """The offset of the first line that is in the file."""
        return next(line.start for line in self.lines if line is not None)

    @property
    def after(self) -> int:
        """The offset after the last line that is in the file."""
        return next(line.after for line in reversed(self.lines) if line is not None)

    @property
    def blank_lines_off(self) -> int:
        """The number of blank lines missing or added between the others."""
        extra = sum(line is None for line in self.lines) - self.blanks_at_edges
        return extra + len(self.missed)


class _Exhausted(Exception):  # noqa: N818 - an answer, not an error
    """So many lines were compared that the search is given up."""


def find_alike(text: str, sent: list[str], separator: str) -> list[LineMatch]:
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
    """The rarest word that every comparison leaves as it is, and its line."""
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

    def places(self, index: int, word: str) -> list[LineMatch]:
        """The places where the line ``index`` of those that are not blank holds the word."""
        found: list[LineMatch] = []
        at = self.text.find(word)
        while at != -1 and len(found) < _MOST_PLACES:
            line = self._line_at(at)
            if self._alike(line, self.bodies[index][1]):
                place = self._around(line, index)
                if place is not None:
                    found.append(place)
            at = self.text.find(word, line.after)
        return found

    def _line_at(self, offset: int) -> TextLine:
        start = self.text.rfind(self.separator, 0, offset) + 1
        return self._line_from(start, self.text.find(self.separator, offset))

    def _line_from(self, start: int, found: int) -> TextLine:
        if found == -1:
            return TextLine(start, len(self.text), len(self.text))
        wide = self.separator == "\n" and self.text.startswith("\r", found - 1) and found > start
        return TextLine(start, found - wide, found + 1)

    def _before(self, line: TextLine) -> TextLine | None:
        if not line.start:
            return None
        start = self.text.rfind(self.separator, 0, line.start - 1) + 1
        return self._line_from(start, line.start - 1)

    def _next(self, line: TextLine) -> TextLine | None:
        if line.after >= len(self.text):
            return None
        return self._line_from(line.after, self.text.find(self.separator, line.after))

    def _alike(self, line: TextLine, body: str) -> bool:
        self.budget -= 1
        if self.budget < 0:
            raise _Exhausted
        if line.end - line.start < len(body):
            return False
        there = self.text[line.start : line.end].strip(BLANKS)
        return len(there) == len(body) and (there == body or fold(there) == body)

    def _around(self, line: TextLine, index: int) -> LineMatch | None:
        """The place around one line that is alike, if the others are alike too."""
        anchor = line
        found = [line]
        gaps: list[list[TextLine]] = []
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
        self, line: TextLine, gap: int, body: str, following: Callable[[TextLine], TextLine | None]
    ) -> tuple[TextLine, list[TextLine]] | None:
        """The next line that is not blank, if it is alike, and the blank ones up to there."""
        blank: list[TextLine] = []
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

    def _place(self, found: list[TextLine], gaps: list[list[TextLine]]) -> LineMatch:
        """Blank lines are paired from the top; what is over is missing on one side."""
        lines: list[TextLine | None] = [None] * len(self.sent)
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
        return LineMatch(tuple(lines), tuple(missed), edges)

    def _edge(
        self,
        lines: list[TextLine | None],
        indexes: range,
        line: TextLine,
        following: Callable[[TextLine], TextLine | None],
    ) -> None:
        """Pair the blank lines before the first or after the last line that is not blank."""
        near: TextLine | None = line
        for index in indexes:
            near = following(near) if near is not None else None
            if near is None or not self._alike(near, ""):
                return
            lines[index] = near


# -- rivals ---------------------------------------------------------------------------------
#
# Lines that are found at one place only are still not what was meant if the place that was meant
# has been rewritten since, and the found one differs from it only in blanks.  Then some of the
# lines that were sent stand elsewhere exactly as sent.  Such a rival is only a reason to refuse.


_MOST_PAIRS = 200_000
_FEW = 30


def rival_of(text: str, place: LineMatch, sent: list[str], separator: str) -> int | None:
    """The line of another place that the lines may have been sent for.

    Of the lines that were sent, as they were sent, there stand at such a place either the first
    and the last, as far apart or with more than half of them in between; or at least half, in
    their distances, and more than at the place that was found.

    Args:
        text: The file's text.
        place: The only place whose lines are alike.
        sent: The lines that were sent, without their ends.
        separator: What ends a line of the text; a CR before an LF belongs to the end.

    Returns:
        The 1-based number of the line at which it begins or would begin; None when there is none.
        Where the lines repeat too often to tell, it is a line in which one of them stands.
    """
    wanted: dict[str, list[int]] = {}
    for index, line in enumerate(sent):
        if body_of(line):
            wanted.setdefault(line, []).append(index)
    inked = sum(map(len, wanted.values()))
    if inked < 2:
        return None
    least = max(_kept(text, place, sent) + 1, (inked + 1) // 2, 2)
    standing = _elsewhere(text, place, wanted, separator, least)
    if not standing:
        return None
    if sum(len(wanted[line]) for _, line in standing) > _MOST_PAIRS:
        return standing[0][0] + 1
    found = _between_edges(standing, wanted)
    if found is None:
        found = _by_distance(standing, wanted, least)
    return None if found is None else found + 1


def _elsewhere(
    text: str, place: LineMatch, wanted: dict[str, list[int]], separator: str, least: int
) -> list[tuple[int, str]]:
    """The 0-based numbers of lines outside the place that stand as they were sent, in order.

    None are told where too few stand there to make a rival.
    """
    if len(wanted) <= _FEW:
        found = _starts_by_search(text, place, wanted, separator, least)
    else:
        found = _starts_by_lines(text, place, wanted, separator)
    standing: list[tuple[int, str]] = []
    number = past = 0
    for at, line in found:
        number += text.count(separator, past, at)
        past = at
        standing.append((number, line))
    return standing


def _starts_by_search(
    text: str, place: LineMatch, wanted: dict[str, list[int]], separator: str, least: int
) -> list[tuple[int, str]]:
    """The offsets of the lines outside the place, by one search a line."""
    first, last = _edges(wanted)
    found: list[tuple[int, str]] = []
    edges = {first, last}
    missing = 0
    spare = sum(map(len, wanted.values())) - least
    for line in dict.fromkeys((first, last, *wanted)):
        places = list(_places(text, place, line, separator))
        found += [(at, line) for at in places]
        if not places:
            edges.discard(line)
            missing += len(wanted[line])
            if missing > spare and not {first, last} <= edges:
                return []
    return sorted(found)


def _places(text: str, place: LineMatch, line: str, separator: str) -> Iterator[int]:
    """Every offset outside the place at which a line stands."""
    size = len(line)
    if place.start > 0 and text.startswith(line) and _ends_at(text, size, separator):
        yield 0
    needle = separator + line
    at = text.find(needle)
    while at != -1:
        inside = place.start <= at + 1 < place.after
        if not inside and _ends_at(text, at + 1 + size, separator):
            yield at + 1
        at = text.find(needle, at + 1)


def _starts_by_lines(
    text: str, place: LineMatch, wanted: Container[str], separator: str
) -> list[tuple[int, str]]:
    """The possible starts for many lines: every line of the text costs a little."""
    found: list[tuple[int, str]] = []
    at = 0
    for line in text.split(separator):
        bare = line.removesuffix("\r") if separator == "\n" else line
        if bare in wanted and not place.start <= at < place.after:
            found.append((at, bare))
        at += len(line) + 1
    return found


def _ends_at(text: str, offset: int, separator: str) -> bool:
    """Whether a line ends at an offset."""
    return (
        offset == len(text)
        or text.startswith(separator, offset)
        or (separator == "\n" and text.startswith("\r\n", offset))
    )


def _edges(wanted: dict[str, list[int]]) -> tuple[str, str]:
    """The first and the last of the lines."""
    first = min(wanted, key=lambda line: wanted[line][0])
    return first, max(wanted, key=lambda line: wanted[line][-1])


def _between_edges(standing: list[tuple[int, str]], wanted: dict[str, list[int]]) -> int | None:
    """The start of a block between the first and the last of the lines that were sent.

    In another distance than was sent it takes more than half of all lines, from the one to the other.
    """
    first, last = _edges(wanted)
    top, end = wanted[first][0], wanted[last][-1]
    inked = sum(map(len, wanted.values()))
    lasts = [at for at, (_, line) in enumerate(standing) if line == last]
    for at, (number, line) in enumerate(standing):
        if line != first:
            continue
        for until in lasts[bisect_right(lasts, at) :]:
            distance = standing[until][0] - number
            if distance > 2 * (end - top):
                break
            if distance == end - top or 2 * (until - at + 1) > inked:
                return number
    return None


def _by_distance(
    standing: list[tuple[int, str]], wanted: dict[str, list[int]], least: int
) -> int | None:
    """The start of a block of which at least so many lines keep their distances."""
    votes = Counter(number - index for number, line in standing for index in wanted[line])
    begin, count = votes.most_common(1)[0]
    return max(begin, 0) if count >= least else None


def _kept(text: str, place: LineMatch, sent: list[str]) -> int:
    """The number of lines in the place that are exactly as sent, blank ones aside."""
    return sum(
        line is not None and text[line.start : line.end] == one and bool(body_of(one))
        for one, line in zip(sent, place.lines, strict=True)
    )

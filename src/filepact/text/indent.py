"""From the indentation that an author uses to the one that the file has.

Lines that stand on both sides show how the two relate.  What follows from them with certainty is
used: a copy without its common indentation, two blanks for four, blanks for tabs.  Where they
contradict each other, or say too little about a new depth, there is no answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

from filepact.text.ladder import indent_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Indentation"]

_UNITS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Indentation:
    """How an author's indentation relates to a file's.

    Attributes:
        known: What the author's and the file's indentation of one line are, without repetition.
        same: No line is indented differently.
        sent: The author's other indentations, of new lines.
        around: The file's text around the place; its lines show the unit.
    """

    known: tuple[tuple[str, str], ...]
    same: bool
    sent: tuple[str, ...]
    around: str

    @classmethod
    def learn(
        cls, pairs: Iterable[tuple[str, str]], fresh: Iterable[str], around: str
    ) -> Indentation:
        """Learn from lines.

        Args:
            pairs: Lines as they were sent, with the file's; none is blank.
            fresh: Lines that are to be new in the file.
            around: The file's text around; of its first and last line only a part.
        """
        known = dict.fromkeys((indent_of(sent), indent_of(there)) for sent, there in pairs)
        same = all(sent == there for sent, there in known)
        indents = dict.fromkeys(indent_of(line) for line in fresh if line.strip())
        return cls(tuple(known), same, tuple(indents), around)

    def tells_apart(self, sent: str) -> bool:
        """Whether lines that the author indents so have one indentation in the file."""
        return len({there for one, there in self.known if one == sent}) < 2

    def file_indent(self, sent: str, neighbours: Iterable[tuple[str, str]]) -> str | None:
        """What the file has for an indentation of the author's; None when that is not certain.

        Args:
            sent: The author's indentation.
            neighbours: The indentations of the nearest lines before and after, where they are
                lines that stand on both sides: the author's and the file's.
        """
        if self.same:
            return sent
        if len({one for one, _ in self.known}) == 1:
            return self._from_one(sent)
        line = self._line()
        if line is not None:
            return line.follow(sent)
        # No rule covers all lines, as where some are aligned by hand: a neighbour at the same
        # depth is the only witness.
        if self.tells_apart(sent):
            return next((there for one, there in neighbours if one == sent), None)
        return None

    def _from_one(self, sent: str) -> str | None:
        """From one depth that is known."""
        if len(self.known) > 1:
            return None
        known, there = self.known[0]
        if sent == known:
            return there
        unit = _unit(self.around)
        if unit is None or there.strip(unit[0]) or not _pure(known + sent):
            return None
        if "\t" in known + sent:
            step: int | None = 1
        else:
            widths = {len(known), len(sent), *map(len, self.sent)}
            step = reduce(gcd, (width - min(widths) for width in widths))
            step = step if step in _UNITS else None
            if unit == "\t" and known and there and step is not None:
                # Two ways to count the levels, and both have to come to the same.
                step = step if len(known) == step * len(there) else None
        if step is None or (unit != "\t" and step != len(unit) and "\t" not in known + sent):
            return None
        levels, rest = divmod(len(sent) - len(known), step)
        size = len(there) + levels * len(unit)
        return None if rest or size < 0 else unit[0] * size

    def _line(self) -> _Straight | None:
        """The one linear relation that all lines obey."""
        if not _pure("".join(one for one, _ in self.known)):
            return None
        blank = "".join(there for _, there in self.known)
        if not _pure(blank):
            return None
        points = sorted({(len(one), len(there)) for one, there in self.known})
        (x0, y0), (x1, y1) = points[0], points[-1]
        run, rise = x1 - x0, y1 - y0
        if run <= 0 or rise <= 0:
            return None
        if any((y - y0) * run != (x - x0) * rise for x, y in points):
            return None
        tabs = "\t" in "".join(one for one, _ in self.known)
        return _Straight(x0, y0, run, rise, "\t" if tabs else " ", blank[0])


@dataclass(frozen=True, slots=True)
class _Straight:
    """From the author's widths to the file's along a straight line."""

    x: int
    y: int
    run: int
    rise: int
    sent_char: str
    file_char: str

    def follow(self, sent: str) -> str | None:
        if sent.strip(self.sent_char):
            return None
        steps, rest = divmod((len(sent) - self.x) * self.rise, self.run)
        size = self.y + steps
        return None if rest or size < 0 else self.file_char * size


def _pure(indent: str) -> bool:
    """Whether it consists of tabs only or of blanks only."""
    return not indent.strip(" ") or not indent.strip("\t")


def _unit(around: str) -> str | None:
    """A tab, or the blanks by which lines are indented more than the line before, mostly."""
    lines = around.replace("\r", "\n").split("\n")[1:-1]
    indents = [indent_of(line) for line in lines if line.strip()]
    tabbed = sum(indent.startswith("\t") for indent in indents)
    blank = sum(indent.startswith(" ") for indent in indents)
    if tabbed or not blank:
        return "\t" if tabbed and not blank else None
    steps = Counter(
        len(after) - len(before)
        for before, after in pairwise(indents)
        if len(after) > len(before) and not (before + after).strip(" ")
    )
    if not steps:
        return None
    width, count = steps.most_common(1)[0]
    return " " * width if width in {*_UNITS, 8} and 2 * count > steps.total() else None

"""Carries a change of an author's copy over to the file's lines that the copy stands for.

Lines that the author left alone stay as the file has them, byte for byte.  Lines that are new or
changed take the file's indentation and line ends, and where the author changed only a part of a
line, the rest of it keeps the file's characters.
"""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from functools import reduce
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

from filepact.text.compare import compare_lines
from filepact.text.edit import Edit, EditList
from filepact.text.tolerant_match import body_of, fold, indent_of, trail_of
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.text.compare import DiffRange
    from filepact.text.tolerant_match import LineMatch, TextLine

__all__ = ["RebaseError", "carry"]

_UNITS = (2, 3, 4)
_PIECES = late_regex(r"\w+|\W")
_AROUND = 6_000
_LEAST_LIKENESS = 0.5


class RebaseError(Exception):
    """Raised if a change cannot be carried over with certainty; the message is the end of a sentence."""


def carry(text: str, place: LineMatch, sent: list[str], new: list[str]) -> EditList:
    """Compute the edits that change the file's lines as the author's copy was changed.

    Args:
        text: The file's text.
        place: The lines that the author's copy stands for.
        sent: The copy, without line ends.
        new: What shall be there, without line ends.

    Raises:
        RebaseError: There is more than one way to do it.
    """
    return _Carrying(text, place, sent, new).edits()


@dataclass(frozen=True, slots=True)
class _Pair:
    """A line of the author's copy with the file's line that it stands for."""

    sent: str
    there: str


class _Carrying:
    """Carries over one change."""

    __slots__ = ("indentation", "new", "pairs", "place", "regions", "sent", "text")

    def __init__(self, text: str, place: LineMatch, sent: list[str], new: list[str]) -> None:
        self.text = text
        self.place = place
        self.sent = sent
        self.new = new
        self.regions = compare_lines(sent, new)
        self.pairs = [
            None if line is None else _Pair(one, text[line.start : line.end])
            for one, line in zip(sent, place.lines, strict=True)
        ]
        around = text[max(place.start - _AROUND, 0) : place.after + _AROUND]
        self.indentation = _Indentation.learn(
            [(pair.sent, pair.there) for pair in self.pairs if pair and body_of(pair.sent)],
            [line for region in self.regions for line in new[region.new_start : region.new_end]],
            around,
        )

    def edits(self) -> EditList:
        uneven = any(
            one.old_end - one.old_start != one.new_end - one.new_start for one in self.regions
        )
        if uneven and not self._distinct():
            raise RebaseError("lines that are the same in what was sent differ in the file")
        edits: list[Edit] = []
        for region in self.regions:
            edits += self._region(region)
        return EditList(tuple(edits)).trim(self.text)

    def _distinct(self) -> bool:
        """Whether lines that are equal in the copy are also equal in the file."""
        known: dict[str, str] = {}
        return all(
            known.setdefault(pair.sent, pair.there) == pair.there
            for pair in self.pairs
            if pair and body_of(pair.sent)
        )

    def _region(self, region: DiffRange) -> list[Edit]:
        olds = range(region.old_start, region.old_end)
        news = range(region.new_start, region.new_end)
        if len(olds) == len(news):
            return [
                edit for old, new in zip(olds, news, strict=True) for edit in self._one(old, new)
            ]
        missed = range(region.old_start + 1, region.old_end)
        if any(before in missed for before in self.place.missed):
            raise RebaseError("a blank line of the file stands among the lines that change")
        if not olds:
            return [self._insertion(region)]
        lines = [self.place.lines[old] for old in olds]
        present = [line for line in lines if line is not None]
        if len(present) < len(lines):
            if not news and not any(self.sent[old].strip() for old in olds):
                # Blank lines are taken away, some of which the file does not have.
                return [Edit(line.start, line.after, "") for line in present]
            raise RebaseError("a blank line among the lines that change is not in the file")
        return [self._replacement(region, present)]

    # -- line for line ---------------------------------------------------------------------

    def _one(self, old: int, new: int) -> list[Edit]:
        """Replace one line by one."""
        line, pair, fresh = self.place.lines[old], self.pairs[old], self.new[new]
        if line is None or pair is None:
            raise RebaseError("a blank line that is to be changed is not in the file")
        if not body_of(fresh):
            return [Edit(line.start, line.end, "")]
        if not body_of(pair.sent):
            return [Edit(line.start, line.end, self._fresh(new, old, old + 1))]
        indent, sent_indent = indent_of(fresh), indent_of(pair.sent)
        if indent == sent_indent:
            depth: str | None = indent_of(pair.there)
            if not self.indentation.tells_apart(indent) and not _similar(pair.sent, fresh):
                depth = None
        else:
            depth = self.indentation.file_indent(indent, ())
        if depth is None:
            raise self._no_depth(fresh)
        trail = trail_of(fresh)
        if trail == trail_of(pair.sent):
            trail = trail_of(pair.there)
        body = _carried(body_of(pair.sent), body_of(pair.there), body_of(fresh))
        return [Edit(line.start, line.end, depth + body + trail)]

    # -- some lines for others -------------------------------------------------------------

    def _insertion(self, region: DiffRange) -> Edit:
        """Insert new lines between two."""
        at = region.old_start
        if at in self.place.missed:
            raise RebaseError("the file has a blank line where the new lines belong")
        before = self.place.lines[at - 1] if at else None
        after = self.place.lines[at] if at < len(self.sent) else None
        lines = self._fresh_lines(region)
        if before is not None:
            end = self._terminator(before)
            if before.end == before.after:
                return Edit(before.after, before.after, "".join(end + line for line in lines))
            return Edit(before.after, before.after, "".join(line + end for line in lines))
        if after is None:
            raise RebaseError("new lines stand between blank lines that the file does not have")
        end = self._terminator(after)
        return Edit(after.start, after.start, "".join(line + end for line in lines))

    def _replacement(self, region: DiffRange, lines: list[TextLine]) -> Edit:
        """Replace lines by a different number of lines."""
        for old in range(region.old_start, region.old_end):
            pair = self.pairs[old]
            if pair and region.new_end > region.new_start:
                self._check_plain(pair)
        fresh = self._fresh_lines(region)
        ends = [self._terminator(line) for line in lines]
        ends += ends[-1:] * (len(fresh) - len(ends))
        ends = ends[: len(fresh)]
        if ends and lines[-1].end == lines[-1].after:
            ends[-1] = ""
        text = "".join(line + end for line, end in zip(fresh, ends, strict=True))
        return Edit(lines[0].start, lines[-1].after, text)

    def _check_plain(self, pair: _Pair) -> None:
        if body_of(pair.sent) != body_of(pair.there):
            raise RebaseError(
                "the file has typographic characters in a line that is not changed line for line"
            )

    def _fresh_lines(self, region: DiffRange) -> list[str]:
        return [
            self._fresh(new, region.old_start, region.old_end)
            for new in range(region.new_start, region.new_end)
        ]

    def _fresh(self, new: int, start: int, end: int) -> str:
        """A new line, in the file's indentation."""
        fresh = self.new[new]
        if not body_of(fresh):
            return ""
        neighbours = [
            (indent_of(pair.sent), indent_of(pair.there))
            for pair in (self._nearest(start - 1, -1), self._nearest(end, 1))
            if pair is not None
        ]
        if len({there for one, there in neighbours if one == indent_of(fresh)}) > 1:
            neighbours = []
        depth = self.indentation.file_indent(indent_of(fresh), neighbours)
        if depth is None:
            raise self._no_depth(fresh)
        slips = any(
            pair and trail_of(pair.sent) and not trail_of(pair.there) for pair in self.pairs
        )
        return depth + body_of(fresh) + ("" if slips else trail_of(fresh))

    def _nearest(self, index: int, step: int) -> _Pair | None:
        """The nearest line that is not blank, in one direction."""
        while 0 <= index < len(self.pairs):
            pair = self.pairs[index]
            if pair and body_of(pair.sent):
                return pair
            index += step
        return None

    def _terminator(self, line: TextLine) -> str:
        """The line's own end, or the one before it for a last line that has none."""
        if line.end < line.after:
            return self.text[line.end : line.after]
        start = line.start
        if not start:
            return "\n"
        return "\r\n" if self.text.startswith("\r\n", max(start - 2, 0)) else self.text[start - 1]

    def _no_depth(self, line: str) -> RebaseError:
        shown = body_of(line)
        shown = shown if len(shown) <= 60 else shown[:59] + "\u2026"
        return RebaseError(f"the indent of this line in the file is not certain: {shown}")


def _similar(sent: str, fresh: str) -> bool:
    one, other = body_of(sent)[:300], body_of(fresh)[:300]
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _LEAST_LIKENESS


def _carried(sent: str, there: str, fresh: str) -> str:
    """The author's new line with the file's characters where the line was left alone."""
    if sent == there:
        return fresh
    old, new = _PIECES.findall(sent), _PIECES.findall(fresh)
    if len(old) * len(new) > 1_000_000:
        raise RebaseError("a line with typographic characters is too long to compare")
    offsets = [0]
    for piece in old:
        offsets.append(offsets[-1] + len(piece))
    parts: list[str] = []
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for kind, old_start, old_end, new_start, new_end in blocks:
        if kind == "equal":
            parts.append(there[offsets[old_start] : offsets[old_end]])
            continue
        changed = "".join(new[new_start:new_end])
        if changed != fold(changed) and sent != fold(sent):
            raise RebaseError("typographic characters were sent where the file has plain ones")
        parts.append(changed)
    return "".join(parts)


# -- indentation -----------------------------------------------------------------------------
#
# Lines that stand on both sides show how the author's indentation relates to the file's.  What follows
# from them with certainty is used: a copy without its common indentation, two blanks for four, blanks
# for tabs.  Where they contradict each other, or say too little about a new depth, there is no answer.


@dataclass(frozen=True, slots=True)
class _Indentation:
    """The relation of an author's indentation to a file's.

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
    ) -> _Indentation:
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
        """Whether the file gives this indentation of the author's exactly one indentation."""
        return len({there for one, there in self.known if one == sent}) < 2

    def file_indent(self, sent: str, neighbours: Iterable[tuple[str, str]]) -> str | None:
        """The file's indentation for one of the author's; None when that is not certain.

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
        """Derive an indentation from a single known one."""
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
        """Find the linear relation between widths that holds for all lines."""
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
    """Maps the author's indentation widths to the file's by a linear function."""

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
    """Whether an indentation consists of tabs only or of blanks only."""
    return not indent.strip(" ") or not indent.strip("\t")


def _unit(around: str) -> str | None:
    """The usual step of indentation: a tab, or a number of blanks."""
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

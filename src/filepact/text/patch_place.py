"""Finds where the hunks of a patch belong in a file: every line compared, nothing guessed.

A hunk goes where its header says, moved by as much as the hunk before it was; else to the one
place that holds its lines, below its anchors where it has some.  What stands in several places is
refused.  When asked to be lenient, a hunk may also stand where up to two lines at the edges of its
context differ: but only where its header says, with all removed lines there, and nowhere else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from filepact.errors import PatchAmbiguousError
from filepact.text.lines import chomp
from filepact.text.patch_model import MOST_SHOWN, HunkErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.errors import FilepactError
    from filepact.text.patch_model import Hunk

__all__ = ["HunkMatcher"]

_MOST_COMPARED = 50_000_000
_ANCHOR_COST = 4
_MOST_COUNTED = 16
_LOOK_AHEAD = 8
_EDGE = 2
# By so many lines a header may be wrong without anything having moved.
_MISCOUNTED = 3


class HunkMatcher:
    """The lines of one file, and the search for hunks in them.

    Args:
        lines: The file's lines with their ends; only the last may lack one.
        exact: Line ends have to match too.
        open_end: The last line lacks its end.
        name: How the file is called in errors.
        lenient: A few lines at the edges of a hunk's context may differ.
        check: Asked before each hunk; raises to end the work.

    Attributes:
        loosened: Numbers, from 0, of the hunks whose context differs from the file.
        twins: For hunks that went where their headers say, by number from 0, the 0-based lines at
            which the same lines stand as well.
    """

    def __init__(
        self,
        lines: Sequence[str],
        *,
        exact: bool,
        open_end: bool,
        name: str,
        lenient: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.loosened: list[int] = []
        self.twins: dict[int, list[int]] = {}
        self._lenient = lenient
        self._check = check
        self._lines = lines
        self._exact = exact
        check()
        self._name = name
        self._keys = self._keyed(lines)
        self._places: dict[str, list[int]] = {}
        self._refusals = HunkErrors(self._keys, self._places, name)
        self._outline: _Outline | None = None
        self._compared = self._counted = 0
        self._open_end = open_end

    def place(self, hunks: Sequence[Hunk]) -> list[int]:
        """The 0-based line at which each hunk's old lines begin.

        Raises:
            PatchAmbiguousError: A hunk's lines stand in several places, none of them stated.
            PatchContextMismatchError: A hunk's lines stand nowhere after the hunk before it.
        """
        found: list[int] = []
        drift = after = 0
        for number, hunk in enumerate(hunks):
            self._check()
            at = self._place_one(hunks, number, after, drift)
            found.append(at)
            if hunk.old_start is not None:
                drift = at - _stated(hunk, hunk.old_start)
            after = at + len(hunk.old)
        self._check_drifts(hunks, found)
        return found

    def _check_drifts(self, hunks: Sequence[Hunk], found: list[int]) -> None:
        """Refuse places that the hunks around make doubtful.

        A hunk that fits its stated line, and as well where the next one's shift says: lines were
        added above it or below it, and nobody can tell.  A hunk that is shifted between two that
        agree on another shift: what it was made for is gone, and a twin of it was found.
        """
        shifts = _shifts(hunks, found)
        before: int | None = 0
        for number, (hunk, later) in enumerate(pairwise(hunks)):
            shift, next_shift = shifts[number], shifts[number + 1]
            if shift is None or next_shift is None or hunk.old_start is None:
                before = shift
                continue
            at = found[number] - shift + next_shift
            after = found[number - 1] + len(hunks[number - 1].old) if number else 0
            if (
                at != found[number]
                and after <= at <= found[number + 1] - len(hunk.old)
                and self._fits(hunk, self._keyed(hunk.old), at)
            ):
                raise self._refusals.ambiguous(hunk, number, sorted((found[number], at)))
            moved = abs(shift - next_shift) > _MISCOUNTED
            if moved and next_shift == before and later.old_start != hunk.old_start:
                raise self._refusals.twin(hunk, number, self._keyed(hunk.old), at, found[number])
            before = shift

    @staticmethod
    def far(hunks: Sequence[Hunk], found: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Hunks that went far from their stated lines, and nothing else says that they should.

        They have no anchor, and no other hunk has moved by as much.  What was at the stated lines
        may have been rewritten, and a twin of it been found.

        Yields:
            The hunk's number, its stated line and the one where it stands, all from 1.
        """
        shifts = _shifts(hunks, found)
        alike = Counter(shifts)
        for number, (hunk, shift) in enumerate(zip(hunks, shifts, strict=True)):
            if shift is None or abs(shift) <= _MISCOUNTED or hunk.anchors:
                continue
            if alike[shift] == 1:
                at = found[number] + 1
                yield number + 1, at - shift, at

    def _place_one(self, hunks: Sequence[Hunk], number: int, after: int, drift: int) -> int:
        hunk = hunks[number]
        keys = self._keyed(hunk.old)
        expected = None if hunk.old_start is None else _stated(hunk, hunk.old_start) + drift
        if not keys:
            return self._place_bare(hunk, number, after, None if drift else expected)
        if expected is not None and expected >= after and self._fits(hunk, keys, expected):
            if others := self._others(hunk, keys, expected):
                self.twins[number] = others
            return expected
        if self._result_stands(hunk, expected):
            raise self._mismatch(hunk, number, expected)
        anchored = self._anchored(hunk, number) if hunk.anchors else None
        candidates = self._search(hunk, keys, after, anchored)
        if not candidates:
            if self._lenient and expected is not None and self._fits_loosely(hunk, expected, after):
                self.loosened.append(number)
                return expected
            if anchored is not None and (others := self._search(hunk, keys, after)):
                raise self._refusals.elsewhere(hunk, number, others, "not below its anchor")
            if after and (others := self._search(hunk, keys, 0)):
                raise self._refusals.elsewhere(hunk, number, others, "above the hunk before it")
            raise self._mismatch(hunk, number, expected)
        if len(candidates) == 1:
            if expected is not None and self._stands_changed(hunk, keys, expected):
                raise self._refusals.twin(hunk, number, keys, expected, candidates[0])
            return candidates[0]
        at = self._choose(hunks[number:], candidates, after, anchored)
        if at is None and hunk.old_start is None and len(candidates) < MOST_SHOWN:
            at = self._in_order(hunks, number, candidates)
        if at is None:
            raise self._refusals.ambiguous(hunk, number, candidates)
        return at

    def _place_bare(self, hunk: Hunk, number: int, after: int, stated: int | None) -> int:
        """The place of a hunk without old lines, of which only the header or the anchors tell."""
        if not self._lines and not hunk.anchors:
            return 0
        if hunk.at_end:
            return len(self._lines)
        if hunk.anchors and hunk.old_start is None:
            below = [at + 1 for at in self._anchored(hunk, number).starts if at >= after - 1]
            if len(below) > 1:
                raise self._refusals.ambiguous(hunk, number, below)
            if below:
                return below[0]
        if stated is None or not after <= stated <= len(self._lines):
            raise self._refusals.no_context(hunk, number)
        if not self._ends_agree(hunk, stated):
            raise self._mismatch(hunk, number, stated)
        return stated

    def _choose(
        self, hunks: Sequence[Hunk], candidates: list[int], after: int, anchored: _Anchored | None
    ) -> int | None:
        """The place of the first of these hunks among several, if its anchor or a later hunk tells."""
        hunk = hunks[0]
        if anchored is not None:
            near = [at for at in candidates if anchored.touches(at, at + len(hunk.old))]
            if len(near) == 1 and len(candidates) < MOST_SHOWN:
                return near[0]
        if hunk.old_start is None:
            return None
        # A later hunk with one place only shows by how much the whole patch is off.
        for later in hunks[1 : 1 + _LOOK_AHEAD]:
            places = self._search(later, self._keyed(later.old), after) if later.old else []
            if len(places) == 1 and later.old_start is not None:
                shift = places[0] - _stated(later, later.old_start)
                if _stated(hunk, hunk.old_start) + shift in candidates:
                    return _stated(hunk, hunk.old_start) + shift
        return None

    def _in_order(self, hunks: Sequence[Hunk], number: int, candidates: list[int]) -> int | None:
        """The only place of a hunk without numbers that the hunks around it leave, or none.

        It follows what a hunk of context alone names; else it leaves room for all hunks after it.
        """
        if number and hunks[number - 1].old and not hunks[number - 1].changes:
            return candidates[0]
        fitting = [at for at in candidates if self._has_room(hunks, number, at)]
        return fitting[0] if len(fitting) == 1 else None

    def _has_room(self, hunks: Sequence[Hunk], number: int, at: int) -> bool:
        """Whether the hunks after one find places below it, each below the one before."""
        after = at + len(hunks[number].old)
        for later in range(number + 1, len(hunks)):
            hunk = hunks[later]
            if not hunk.old or hunk.old_start is not None:
                break
            anchored = self._anchored(hunk, later) if hunk.anchors else None
            places = self._search(hunk, self._keyed(hunk.old), after, anchored)
            if not places:
                return False
            after = places[0] + len(hunk.old)
        return True

    def _anchored(self, hunk: Hunk, number: int) -> _Anchored:
        self._outline = self._outline or _Outline(self._keys, self._check)
        before = self._outline.looked
        anchored = self._outline.below(hunk.anchors)
        self._charge(_ANCHOR_COST * (self._outline.looked - before), hunk)
        if anchored.missing:
            raise self._refusals.no_anchor(hunk, number, anchored.missing)
        return anchored

    def _charge(self, compared: int, hunk: Hunk) -> None:
        """Count compared lines, and give up when they become too many."""
        self._compared += compared
        if self._compared > _MOST_COMPARED:
            raise PatchAmbiguousError(
                f"{self._name}: too many places look like the hunk at line {hunk.line} of the patch",
                hint="Correct the line numbers in the hunk headers.",
                patch_line=hunk.line,
            )

    def _keyed(self, lines: Sequence[str]) -> list[str]:
        if self._exact:
            return list(lines)
        if any("\r" in line for line in lines):
            return [chomp(line) for line in lines]
        return [line.removesuffix("\n") for line in lines]

    def _fits(self, hunk: Hunk, keys: list[str], at: int) -> bool:
        if at < 0 or at + len(keys) > len(self._keys):
            return False
        self._compared += len(keys)
        if hunk.at_end and at + len(keys) != len(self._keys):
            return False
        return self._keys[at : at + len(keys)] == keys and self._ends_agree(hunk, at + len(keys))

    def _fits_loosely(self, hunk: Hunk, at: int, after: int) -> bool:
        """Whether the hunk fits at ``at`` but for a few lines at the edges of its context.

        What remains has to include the neighbours of every change, and to stand there only.
        """
        keys = self._keyed(hunk.old)
        head, tail = _context(hunk.lines), _context(hunk.lines[::-1])
        if not hunk.removes or at < after or not 0 < at + len(keys) <= len(self._keys):
            return False
        there = self._keys[at : at + len(keys)]
        differing = [i for i, key in enumerate(keys) if key != there[i]]
        first, last = min(head - 1, _EDGE), len(keys) - min(tail - 1, _EDGE)
        core = keys[max(first, 0) : min(last, len(keys))]
        return (
            len(differing) <= _EDGE
            and all(i < first or i >= last for i in differing)
            and head + tail >= len(differing) + 2
            and self._ends_agree(hunk, at + len(keys))
            and self._stands_once(core)
        )

    def _stands_once(self, core: list[str]) -> bool:
        counted = 0
        for place in self._index().get(core[0], ()):
            self._compared += len(core)
            counted += self._keys[place : place + len(core)] == core
            if counted > 1 or self._compared > _MOST_COMPARED:
                return False
        return counted == 1

    def _ends_agree(self, hunk: Hunk, end: int) -> bool:
        """Whether what the hunk says about the end of the file is so at ``end``."""
        old_open, new_open = (_is_open(side) for side in (hunk.old, hunk.new))
        if not old_open and not new_open:
            return True
        if end != len(self._lines):
            return False
        return self._open_end == old_open or not hunk.old

    def _result_stands(self, hunk: Hunk, expected: int | None) -> bool:
        """Whether the lines that the hunk would make are at its place already."""
        if not any(line[0] == "+" for line in hunk.lines):
            return False
        keys = self._keyed(hunk.new)
        places = {expected, None if hunk.new_start is None else hunk.new_start - 1}
        return any(
            at is not None and at >= 0 and self._keys[at : at + len(keys)] == keys for at in places
        )

    def _index(self) -> dict[str, list[int]]:
        """The line numbers of each distinct line of the file."""
        if not self._places:
            for at, key in enumerate(self._keys):
                self._places.setdefault(key, []).append(at)
        return self._places

    def _others(self, hunk: Hunk, keys: list[str], at: int) -> list[int]:
        """Other places where the hunk fits; for few hunks that is seen without an index."""
        rarest = max(keys, key=len)
        if not rarest.strip():
            return []
        self._counted += 1
        indexed = self._places or self._counted > _MOST_COUNTED
        count = len(self._index()[rarest]) if indexed else self._keys.count(rarest)
        if count == 1:
            return []
        return [place for place in self._search(hunk, keys, 0) if place != at]

    def _stands_changed(self, hunk: Hunk, keys: list[str], at: int) -> bool:
        """Whether most lines of a hunk, or all that it removes, are where its header says.

        Then the others were changed there, and a place that has all of them is only its twin.
        """
        if at < 0:
            return False
        there = self._keys[at : at + len(keys)]
        told = [any(map(str.isalnum, key)) for key in keys]
        same = [a == b for a, b in zip(keys, there, strict=False)]
        same += [False] * (len(keys) - len(same))
        signs = [line[0] for line in hunk.lines if line[0] != "+"]
        removed = [i for i, sign in enumerate(signs) if sign == "-" and told[i]]
        if removed and all(same[i] for i in removed):
            return True
        return 2 * sum(map(bool.__and__, same, told)) > sum(told)

    def _mismatch(self, hunk: Hunk, number: int, expected: int | None) -> FilepactError:
        return self._refusals.mismatch(
            hunk,
            number,
            self._keyed(hunk.old),
            expected,
            stands=self._result_stands(hunk, expected),
        )

    def _search(
        self, hunk: Hunk, keys: list[str], after: int, anchored: _Anchored | None = None
    ) -> list[int]:
        """The first few places from ``after`` on where the hunk fits."""
        index = self._index()
        counts = [len(index.get(key, ())) for key in keys]
        rarest = counts.index(min(counts))
        places = index.get(keys[rarest], [])
        spans = anchored.spans(len(keys)) if anchored else [(after, len(self._keys))]
        found: list[int] = []
        for first, limit in spans:
            low = bisect_left(places, max(first, after) + rarest)
            for number in range(low, bisect_left(places, limit + rarest)):
                at = places[number] - rarest
                self._charge(0, hunk)
                if self._fits(hunk, keys, at):
                    found.append(at)
                    if len(found) == MOST_SHOWN:
                        return found
        return found


def _stated(hunk: Hunk, start: int) -> int:
    """The 0-based index that a header's line number means; without lines it is the one before."""
    return start - 1 if hunk.old else start


def _shifts(hunks: Sequence[Hunk], found: Sequence[int]) -> list[int | None]:
    """By how many lines each hunk is off its stated line; None where nothing tells."""
    return [
        None if not hunk.old or hunk.old_start is None else at - _stated(hunk, hunk.old_start)
        for hunk, at in zip(hunks, found, strict=True)
    ]


def _context(lines: Sequence[str]) -> int:
    """The number of lines before the first change."""
    return next((i for i, line in enumerate(lines) if line[0] != " "), len(lines))


def _is_open(side: Sequence[str]) -> bool:
    return bool(side) and not side[-1].endswith("\n")


# -- anchors ------------------------------------------------------------------------------------
#
# A chain of anchors names a part of the file: ``class A``, then ``def f`` in it.  Anchors only narrow.
# The lines of a hunk have to stand in the part that the last one opens, so an anchor that is
# understood wrongly makes a patch fail, and never lets it in.


_ASKED_EVERY = 65_536

# A signature may end, and its block begin, at the depth of its first line.
_CONTINUING = (")", "]", "{")


class _Outline:
    """The lines of a file as anchors see them; made once for all hunks.

    Args:
        lines: The lines of the file without their ends.
        check: Asked now and then; raises to end the work.

    Attributes:
        looked: How many lines have been looked at, for whoever has to bound it.
    """

    def __init__(self, lines: Sequence[str], check: Callable[[], None]) -> None:
        self.looked = len(lines)
        self._lines = [line.strip() for line in lines]
        self._ends = _ends_of_blocks(lines, check)
        self._places: dict[str, list[int]] = {}
        for at, line in enumerate(self._lines):
            self._places.setdefault(line, []).append(at)

    def below(self, anchors: Sequence[str]) -> _Anchored:
        """The parts of the file that a chain of anchors names, the outermost first."""
        parts = [(0, len(self._lines))]
        for anchor in anchors:
            parts = list(self._narrowed(anchor, parts))
            if not parts:
                return _Anchored([], anchor)
        return _Anchored(parts, "")

    def _narrowed(self, anchor: str, parts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        reached = 0
        for first, limit in parts:
            # Parts come in order of their starts; what an earlier one covered has been looked at.
            for at in self._standing(anchor, max(first, reached), limit):
                yield at, min(self._ends[at] or limit, limit)
            reached = max(reached, limit)

    def _standing(self, anchor: str, start: int, end: int) -> Sequence[int]:
        """The places of an anchor: as a whole line; else as the beginning of one line only."""
        places = self._places.get(anchor, [])
        whole = places[bisect_left(places, start) : bisect_left(places, end)]
        self.looked += 1 + len(whole)
        if whole:
            return whole
        self.looked += max(end - start, 0)
        begun = [
            at
            for at in range(start, end)
            if self._lines[at].startswith(anchor)
            and not _continues_word(self._lines[at][len(anchor)])
        ]
        return begun if len(begun) == 1 else ()


class _Anchored:
    """The parts of a file that a chain of anchors names.

    A line that deeper lines follow opens what is indented below it; any other line opens the rest
    of what it stands in.

    Args:
        parts: The anchor's 0-based line, and the line after the part that it opens; in order.
        missing: The first anchor that is not found, or an empty string.
    """

    def __init__(self, parts: list[tuple[int, int]], missing: str) -> None:
        self.missing = missing
        self._parts = parts
        self.starts = [start for start, _ in parts]

    def spans(self, length: int) -> Iterator[tuple[int, int]]:
        """The ranges in which ``length`` lines may begin, below an anchor or including it.

        Yields:
            The first line, and the one after the last, of each stretch, in order and apart from each other.
        """
        reached = 0
        for start, end in self._parts:
            first, limit = max(start - length + 1, reached), max(end, start + 2)
            if first < limit:
                yield first, limit
            reached = max(reached, limit)

    def touches(self, start: int, end: int) -> bool:
        """Whether an anchor is one of the lines ``[start, end)`` or the one above them."""
        at = bisect_left(self.starts, start - 1)
        return at < len(self.starts) and self.starts[at] < end


def _continues_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _ends_of_blocks(lines: Sequence[str], check: Callable[[], None]) -> list[int]:
    """For each line the line after what is indented below it; 0 where nothing is."""
    ends = [0] * len(lines)
    opened: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
        if not at % _ASKED_EVERY:
            check()
        text = line.lstrip()
        if not text:
            continue
        depth = len(line[: len(line) - len(text)].expandtabs(8))
        continuing = text.startswith(_CONTINUING)
        while opened and (opened[-1][1] > depth or (opened[-1][1] == depth and not continuing)):
            start, _ = opened.pop()
            ends[start] = at if ends[start] else 0
        if opened and opened[-1][1] < depth:
            ends[opened[-1][0]] = len(lines)
        if not continuing:
            opened.append((at, depth))
    return ends

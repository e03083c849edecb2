"""Where the hunks of a patch belong in a file: every line compared, nothing guessed.

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
from filepact.text.anchors import Outline
from filepact.text.lines import chomp
from filepact.text.patch_refusals import MOST_SHOWN, Refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.errors import FilepactError
    from filepact.text.anchors import Anchored
    from filepact.text.hunks import Hunk

__all__ = ["Placement"]

_MOST_COMPARED = 50_000_000
_ANCHOR_COST = 4
_MOST_COUNTED = 16
_LOOK_AHEAD = 8
_EDGE = 2
# By so many lines a header may be wrong without anything having moved.
_MISCOUNTED = 3


class Placement:
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
        self._refusals = Refusals(self._keys, self._places, name)
        self._outline: Outline | None = None
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
        shifts = [
            None if not hunk.old or hunk.old_start is None else at - _stated(hunk, hunk.old_start)
            for hunk, at in zip(hunks, found, strict=True)
        ]
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
        shifts = [
            None if not hunk.old or hunk.old_start is None else at - _stated(hunk, hunk.old_start)
            for hunk, at in zip(hunks, found, strict=True)
        ]
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
            if not self._lines and not hunk.anchors:
                return 0
            if hunk.at_end and not hunk.anchors:
                return len(self._lines)
            if expected is None or drift or not after <= expected <= len(self._lines):
                raise self._refusals.no_context(hunk, number)
            if not self._ends_agree(hunk, expected):
                raise self._mismatch(hunk, number, expected)
            return expected
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
        if anchored is not None:
            near = [at for at in candidates if anchored.touches(at, at + len(keys))]
            if len(near) == 1 and len(candidates) < MOST_SHOWN:
                return near[0]
        # A later hunk with one place only shows by how much the whole patch is off.
        if hunk.old_start is not None:
            for later in hunks[number + 1 : number + 1 + _LOOK_AHEAD]:
                places = self._search(later, self._keyed(later.old), after) if later.old else []
                if len(places) == 1 and later.old_start is not None:
                    shifted = (
                        _stated(hunk, hunk.old_start) + places[0] - _stated(later, later.old_start)
                    )
                    if shifted in candidates:
                        return shifted
        raise self._refusals.ambiguous(hunk, number, candidates)

    def _anchored(self, hunk: Hunk, number: int) -> Anchored:
        self._outline = self._outline or Outline(self._keys, self._check)
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
        removes = any(line[0] == "-" for line in hunk.lines)
        if not removes or at < after or not 0 < at + len(keys) <= len(self._keys):
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
        """Where each line of the file stands."""
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
        self, hunk: Hunk, keys: list[str], after: int, anchored: Anchored | None = None
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


def _context(lines: Sequence[str]) -> int:
    """How many lines stand before the first change."""
    return next((i for i, line in enumerate(lines) if line[0] != " "), len(lines))


def _is_open(side: Sequence[str]) -> bool:
    return bool(side) and not side[-1].endswith("\n")

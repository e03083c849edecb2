"""Compares two texts line by line: few changed regions, in bounded time.

The shortest edit script reads best while it is short, so it is tried first.  Where it gets long,
the texts are divided at lines that stand exactly once on both sides and the pieces are compared
alone.  All work is counted; a piece that is left when the count runs out is one whole
replacement, which is correct and merely longer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from math import isqrt
from typing import TYPE_CHECKING

from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "DiffRange",
    "common_head",
    "common_tail",
    "compare_lines",
    "cut_cost",
    "edit_distance",
    "other_cuts",
]

_TOTAL_STEPS = 1_000_000
_MOST_FOR_LINES = 4_000_000
_FIRST_TRY_STEPS = 30_000


@dataclass(frozen=True, slots=True)
class DiffRange:
    """Old lines ``[old_start, old_end)`` became new lines ``[new_start, new_end)``; 0-based."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


_Run = tuple[int, int, int]
"""A run of equal lines: (first old line, first new line, number of lines)."""


def compare_lines(old: list[str], new: list[str]) -> list[DiffRange]:
    """Compare two lists of lines.  Returns the regions that differ, in order; no two touch.

    The lines between two regions are equal one by one.  Equal texts give an empty list.
    """
    head = common_head(old, new)
    if head == len(old) == len(new):
        return []
    tail = common_tail(old[head:], new[head:])
    rows, columns = len(old) - head - tail, len(new) - head - tail
    runs: list[_Run]
    there = set(old[head : head + rows])
    if there.isdisjoint(new[head : head + columns]):
        runs = []  # Nothing of it is left, or all of it is new.
    else:
        numbers: dict[str, int] = {}
        left = [numbers.setdefault(old[head + i], len(numbers)) for i in range(rows)]
        right = [numbers.setdefault(new[head + i], len(numbers)) for i in range(columns)]
        runs = _Comparison(left, right).runs()
    shifted = [(i + head, j + head, count) for i, j, count in runs]
    regions = _between([(0, 0, head), *shifted, (len(old) - tail, len(new) - tail, tail)])
    return _settle(regions, old, new)


def common_head(a: Sequence[object], b: Sequence[object]) -> int:
    """The length of the common beginning of two texts, or of two lists of lines.

    Whole slices are compared, which is far quicker than one by one.
    """
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_tail(a: Sequence[object], b: Sequence[object]) -> int:
    """The length of their common end."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _between(runs: Iterable[_Run]) -> list[DiffRange]:
    """The regions between runs of equal lines."""
    regions = []
    old_at = new_at = 0
    for i, j, count in runs:
        if i > old_at or j > new_at:
            regions.append(DiffRange(old_at, i, new_at, j))
        old_at, new_at = i + count, j + count
    return regions


class _Comparison:
    """Two sequences of line numbers and the work still allowed on them."""

    def __init__(self, left: list[int], right: list[int]) -> None:
        self._left = left
        self._right = right
        self._steps = _TOTAL_STEPS + min(8 * (len(left) + len(right)), _MOST_FOR_LINES)

    def runs(self) -> list[_Run]:
        """Equal runs in ascending order."""
        found: list[_Run] = []
        # A stack, not recursion: hostile texts can nest as deeply as they have lines.
        gaps = [(0, len(self._left), 0, len(self._right))]
        while gaps:
            gap = self._trim(gaps.pop(), found)
            if gap[0] < gap[1] and gap[2] < gap[3]:
                gaps.extend(self._divide(gap, found))
        found.sort()
        return found

    def _trim(self, gap: tuple[int, int, int, int], found: list[_Run]) -> tuple[int, int, int, int]:
        """Take equal lines off both ends."""
        a, a_end, b, b_end = gap
        left, right = self._left, self._right
        a_from, b_from, a_to = a, b, a_end
        while a < a_end and b < b_end and left[a] == right[b]:
            a += 1
            b += 1
        while a < a_end and b < b_end and left[a_end - 1] == right[b_end - 1]:
            a_end -= 1
            b_end -= 1
        if a > a_from:
            found.append((a_from, b_from, a - a_from))
        if a_to > a_end:
            found.append((a_end, b_end, a_to - a_end))
        return a, a_end, b, b_end

    def _divide(
        self, gap: tuple[int, int, int, int], found: list[_Run]
    ) -> list[tuple[int, int, int, int]]:
        """Solve a gap, or return smaller gaps between fixed lines."""
        a, a_end, b, b_end = gap
        self._steps -= a_end - a + b_end - b
        if self._steps <= 0:
            return []
        # Lines without any partner cannot be part of an answer; without them scripts are short.
        shared = set(self._left[a:a_end]) & set(self._right[b:b_end])
        if not shared:
            return []
        rows = [i for i in range(a, a_end) if self._left[i] in shared]
        columns = [j for j in range(b, b_end) if self._right[j] in shared]
        if self._script(rows, columns, _FIRST_TRY_STEPS, found):
            return []
        anchors = self._anchors(rows, columns)
        if not anchors:
            self._script(rows, columns, self._steps, found)
            return []
        gaps = []
        for i, j in anchors:
            gaps.append((a, i, b, j))
            a, b = i, j
        gaps.append((a, a_end, b, b_end))
        return gaps

    def _anchors(self, rows: list[int], columns: list[int]) -> list[tuple[int, int]]:
        """Lines that stand once on each side, the longest chain that keeps its order."""
        only_left, only_right = self._once(self._left, rows), self._once(self._right, columns)
        pairs = [(i, only_right[line]) for line, i in only_left.items() if line in only_right]
        pairs.sort()
        tops: list[int] = []  # the smallest new line that ends a chain of each length
        ends: list[int] = []
        before: list[int] = []
        for index, (_, j) in enumerate(pairs):
            length = bisect_left(tops, j)
            before.append(ends[length - 1] if length else -1)
            tops[length : length + 1] = [j]
            ends[length : length + 1] = [index]
        chain = []
        index = ends[-1] if ends else -1
        while index >= 0:
            chain.append(pairs[index])
            index = before[index]
        return chain[::-1]

    @staticmethod
    def _once(lines: list[int], places: list[int]) -> dict[int, int]:
        seen: dict[int, int] = {}
        for i in places:
            seen[lines[i]] = -1 if lines[i] in seen else i
        return {line: i for line, i in seen.items() if i >= 0}

    def _script(self, rows: list[int], columns: list[int], steps: int, found: list[_Run]) -> bool:
        """Add the runs of a shortest edit script, unless that takes more than ``steps``.

        The greedy search of Myers: ``reach[k]`` is how far one gets on diagonal ``k`` with so
        many edits; each round's state is kept to walk back.
        """
        a = [self._left[i] for i in rows]
        b = [self._right[j] for j in columns]
        n, m = len(a), len(b)
        allowed = min(steps, self._steps)
        most = min(n + m, isqrt(2 * max(allowed, 0)))
        reach = [-1] * (2 * most + 3)
        middle = most + 1
        reach[middle + 1] = 0
        rounds: list[array[int]] = []
        spent = 0
        for edits in range(most + 1):
            # Only every other diagonal is looked at in a round.
            rounds.append(array("i", reach[middle - edits - 1 : middle + edits + 2 : 2]))
            low, high = -edits + 2 * max(0, edits - m), edits - 2 * max(0, edits - n)
            fewer = reach[middle + low - 1]
            for at in range(middle + low, middle + high + 1, 2):
                more = reach[at + 1]
                x = more if fewer < more else fewer + 1
                fewer = more
                y = x - at + middle
                if x < n and y < m and a[x] == b[y]:
                    start = x
                    x += 1
                    y += 1
                    while x < n and y < m and a[x] == b[y]:
                        x += 1
                        y += 1
                    spent += x - start
                reach[at] = x
                if x >= n and y >= m:
                    self._steps -= spent
                    self._walk_back(rounds, rows, columns, found)
                    return True
            spent += edits + 1
            if spent > allowed + 2 * (n + m):
                break
        self._steps -= spent
        return False

    @staticmethod
    def _walk_back(
        rounds: list[array[int]], rows: list[int], columns: list[int], found: list[_Run]
    ) -> None:
        x, y = len(rows), len(columns)
        for edits in range(len(rounds) - 1, -1, -1):
            reach, below = rounds[edits], (edits + x - y) // 2
            down = reach[below] < reach[below + 1]
            start = reach[below + 1] if down else reach[below] + 1
            while x > start:
                x -= 1
                y -= 1
                found.append((rows[x], columns[y], 1))
            if down:
                y -= 1
            else:
                x -= 1


def _settle(regions: list[DiffRange], old: Sequence[str], new: Sequence[str]) -> list[DiffRange]:
    """Slide each pure insertion or removal to where a person would cut.

    ``x A B A y`` minus ``A B`` or minus ``B A`` is the same text.  The cut before a line of
    little indentation, after a blank line, reads best; among equals the last is taken.
    """
    settled: list[DiffRange] = []
    for index, region in enumerate(regions):
        removed, added = region.old_end - region.old_start, region.new_end - region.new_start
        if removed and added:
            settled.append(region)
            continue
        lines, start = (old, region.old_start) if removed else (new, region.new_start)
        size = removed or added
        previous, following = settled[-1] if settled else None, regions[index + 1 : index + 2]
        up = min(region.old_start, region.new_start)
        up = region.old_start - previous.old_end - 1 if previous else up
        down = (following[0].old_start - 1 if following else len(old)) - region.old_end
        best, best_cost = 0, cut_cost(lines, start, size)
        for shift, cost in other_cuts(lines, start, size, up, down):
            if cost < best_cost or (shift > 0 and cost == best_cost):
                best, best_cost = shift, cost
        ends = region.old_start, region.old_end, region.new_start, region.new_end
        settled.append(DiffRange(*(at + best for at in ends)))
    return settled


def other_cuts(
    lines: Sequence[str], start: int, size: int, up: int, down: int
) -> Iterator[tuple[int, tuple[int, int, bool]]]:
    """How far a stretch of lines may be cut elsewhere in the same text, first down, and the cost of each cut."""
    for way, most in ((1, down), (-1, up)):
        for shift in range(way, way * (most + 1), way):
            at = start + shift - (way > 0)
            if lines[at : at + 1] != lines[at + size : at + size + 1]:
                break
            yield shift, cut_cost(lines, start + shift, size)


def cut_cost(lines: Sequence[str], start: int, size: int) -> tuple[int, int, bool]:
    """The cost of cutting before ``start`` and after ``size`` lines; smaller reads better."""
    indent, blanks = 0, 0
    for place in (start, start + size):
        # Blank lines are as deep as what follows: a block that was put at the end begins with them.
        line = next(filter(str.strip, (one[:200] for one in lines[place : place + 4])), "")
        indent += len(line) - len(line.lstrip(" \t"))
        blanks -= place > 0 and not lines[place - 1][:200].strip()
    return indent, blanks, start + size < len(lines)


def edit_distance(one: str, other: str, most: int) -> int | None:
    """The number of characters to insert, delete, replace or swap with the next; None for more than a bound."""
    if len(set(one) ^ set(other)) > 2 * most:
        return None
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, char in enumerate(one, start=1):
        row = [at]
        for to, char_there in enumerate(other, start=1):
            best = min(last[to] + 1, row[-1] + 1, last[to - 1] + (char != char_there))
            if at > 1 and to > 1 and char == other[to - 2] and one[at - 2] == char_there:
                best = min(best, before[to - 2] + 1)
            row.append(best)
        if min(row) > most:
            return None
        before, last = last, row
    return last[-1] if last[-1] <= most else None

"""Checks whether a change still has its place in a text that somebody has changed since.

A merge goes by lines that are equal.  That is not enough where lines stand more than once, or were
copied: then the lines that a change was made for may be found under another name.  So before a
change is carried over, what names its place is looked for: the lines that enclose it, and lines
that stand only once.  This is used to refuse only; where a change goes is not decided here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from filepact.text.compare import DiffRange, compare_lines, cut_cost, other_cuts
from filepact.text.edit import merge
from filepact.text.lines import split_lines
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["ChangeConflict", "has_slid", "is_same_run", "lost_place"]

_CLOSING = (")", "]", "}")
_OPENING = ("{", "(", "[")
# Remarks and directives stand at any depth, and enclose nothing.
_REMARK = late_regex(r"#(?:[\s!-]|$|(?:if|el|end|def|undef|inc|pragma|region))|//|--\s|/\*|\*[\s/]")
_HEADING = late_regex(r"#{1,6} .*\S|\[.*\]")


@dataclass(frozen=True, slots=True)
class ChangeConflict:
    """A change that has no certain place any more.

    Attributes:
        line: 1-based number of its first line in the text that it was made for.
        other_line: 1-based number of the line at which a merge would put it.
        reason: What is different, as the end of a sentence.
    """

    line: int
    other_line: int
    reason: str


def lost_place(
    base: str, mine: str, theirs: str, sent: Sequence[tuple[int, int]] = ()
) -> ChangeConflict | None:
    """The first change from ``base`` to ``mine`` that has no certain place in ``theirs``.

    Args:
        base: The text that both others come from.
        mine: The text with the changes that are to be carried over.
        theirs: The text that they go to; it merges with ``mine`` without a conflict.
        sent: Ranges of lines of ``base``, from 0, that were named as what the changes are for.
    """
    lines, own, other = split_lines(base), split_lines(mine), split_lines(theirs)
    changes, since = compare_lines(lines, own), compare_lines(lines, other)
    if not changes or not since:
        return None
    search = _Search(lines, other, since, own)
    for change in changes:
        run = next((a for a in sent if a[0] <= change.old_start <= change.old_end <= a[1]), None)
        lost = search.lost(change, own[change.new_start : change.new_end], run)
        if lost is not None:
            return lost
    return None


def is_same_run(
    lines: list[str], others: list[str], before: tuple[int, int], after: tuple[int, int]
) -> bool:
    """Whether the lines of a stretch of one text are, one by one, those of a stretch of another one.

    Args:
        lines: The lines of the one text.
        others: Those of the other one.
        before: The range of lines of the stretch in the one, from 0.
        after: So in the other.
    """
    (first, end), (there, stop) = before, after
    # Where equal lines follow each other, what was removed may be any of them: all is as it was before it, or after it.
    if (first, lines[:end]) == (there, others[:stop]):
        return True
    if (len(lines) - end, lines[first:]) == (len(others) - stop, others[there:]):
        return True
    partners = _partners(len(lines), compare_lines(lines, others))
    return partners[first:end] == list(range(there, stop))


def has_slid(base: str, mine: str, theirs: str, sent: Iterable[tuple[int, int, int]]) -> bool:
    """Whether a comparison puts a change elsewhere than it was, or may be, sent to, among lines that others changed.

    Among equal lines a comparison may cut elsewhere, which makes the same text only of lines that stay as they were.

    Args:
        base: The text that both others come from.
        mine: The text with the changes.
        theirs: The text that they go to.
        sent: Ranges of lines of ``base``, from 0, each with the number of lines that it becomes.
    """
    lines, own = split_lines(base), split_lines(mine)
    since = compare_lines(lines, split_lines(theirs))
    told: list[DiffRange] = []
    slid, grown = False, 0
    for first, end, size in sent:
        at, grown = first + grown, grown + size - (end - first)
        kept, last = lines[first:end], at + size - (end - first)
        begins, ends_so = own[at : at + end - first] == kept, own[last : at + size] == kept
        if kept and last > at and begins != ends_so:
            # All that was sent stays, with something before it or behind it.
            cut = (end, end, at + end - first, at + size) if begins else (first, first, at, last)
            told.append(DiffRange(*cut))
            continue
        for a in compare_lines(lines[first:end], own[at : at + size]):
            ends = (first + a.old_start, first + a.old_end, at + a.new_start, at + a.new_end)
            told.append(DiffRange(*ends))
            low, high = _reach(told[-1], lines, own, first, end)
            touched = (other.old_start < high and other.old_end > low for other in since)
            slid = slid or ((low, high) != ends[:2] and any(touched))
    return slid or merge(base, mine, theirs, told).text != merge(base, mine, theirs).text


def _reach(
    one: DiffRange, lines: list[str], own: list[str], first: int, end: int
) -> tuple[int, int]:
    """The lines among which an insertion or a removal may be cut, within a range, and read as well."""
    removed, added = one.old_end - one.old_start, one.new_end - one.new_start
    text, start, size = (lines, one.old_start, removed) if removed else (own, one.new_start, added)
    up, down = (0, 0) if removed and added else (one.old_start - first, end - one.old_end)
    cost, reach = cut_cost(text, start, size), [0]
    for shift, other in other_cuts(text, start, size, up, down):
        # The end of a block belongs to what it ends.
        passed = text[start + shift - (shift > 0)].lstrip()[:1]
        reach += [shift] * (other <= cost and passed not in ("", *_CLOSING))
    return one.old_start + min(reach), one.old_end + max(reach)


class _Search:
    """Two versions of a text, which lines of the one are which of the other, and those of a third."""

    def __init__(
        self, base: list[str], other: list[str], since: list[DiffRange], own: list[str]
    ) -> None:
        self._own = {"", *map(str.rstrip, own)}
        self._base, self._other = _Layout(base), _Layout(other)
        self._since = since
        self._ends = [region.old_end for region in since]
        self._there = _partners(len(base), since)
        self._back = [-1] * len(other)
        for i, j in enumerate(self._there):
            if j >= 0:
                self._back[j] = i
        once, also = (_once(layout.keys) for layout in (self._base, self._other))
        both = sorted((i, also[key]) for key, i in once.items() if key in also)
        self._known = [i for i, j in both if self._there[i] == j]
        self._moved = [(i, j) for i, j in both if self._there[i] != j]
        self._gone = [i for i in sorted(once.values()) if self._there[i] < 0]
        self._twins: dict[tuple[int, int, tuple[str, ...]], tuple[list[int], list[int]]] = {}

    def lost(
        self, change: DiffRange, new: Sequence[str], sent: tuple[int, int] | None = None
    ) -> ChangeConflict | None:
        """Why a change, of lines that were sent, has no certain place; None when it has one."""
        first, end = change.old_start, change.old_end
        if first == end:
            there = first + self._shift(first)
            depth = _shallowest(new)
            if sent and self._is_rewritten(*sent):
                why = "none of the lines that were sent is there any more"
                return ChangeConflict(first + 1, there + 1, why)
        elif (there := self._there[first]) < 0:
            run = tuple(self._base.keys[first:end])
            moved = not new and self._base.stands_once(run) and not self._own.issuperset(run)
            at = next(self._other.standing(run, 0, len(self._back)), -1) if moved else -1
            why = "the lines that were to go were put in again somewhere else"
            # Else both sides made the same change.
            return ChangeConflict(first + 1, at + 1, why) if at >= 0 else None
        else:
            depth = _shallowest(self._base.lines[first:end])
        around = self._base.around(first, depth)
        now = self._other.around(there, depth)
        why = self._enclosed_otherwise(around, now) or self._named_elsewhere(around, now)
        for one, at in ((first, there - 1), (end - 1, there + end - first)):
            key = self._base.keys[one] if new and first < end else ""
            if key and self._other.keys[max(at, 0) : at + 1] == [key] and self._back[at] < 0:
                why = why or "an equal line has come beside it"
        put = [line.rstrip() for line in new]
        for at in (there - len(put), there + end - first):
            beside = slice(at, at + len(put)) if at >= 0 and any(put) else slice(0)
            if put and self._other.keys[beside] == put and -1 in self._back[beside]:
                why = why or "the lines that would come there were put in beside it"
        if not why and sent and self._is_elsewhere(sent, first, there, depth):
            why = "the lines that were sent stand somewhere else as they were"
        if not why and sent and self._is_parted(sent, first, end, there, around):
            why = "lines that were sent side by side are so only somewhere else"
        if not why and not (sent and self._is_named_by(*sent, around)):
            why = self._among_twins(first, end, there, depth, around, removed=not new) or (
                "" if around else self._without_neighbours(first, end, there)
            )
        return ChangeConflict(first + 1, there + 1, why) if why else None

    def _is_rewritten(self, first: int, end: int) -> bool:
        """Whether none of these lines is left, except that others changed a single one in its place."""
        lines = [at for at in range(first, end) if self._base.keys[at]]
        if not lines or any(self._there[at] >= 0 for at in lines):
            return False
        region = self._since[bisect_left(self._ends, lines[0] + 1)]
        size = region.new_end - region.new_start
        return len(lines) > 1 or region.old_end - region.old_start != size

    def _shift(self, at: int) -> int:
        """By how many lines the seam before a line of the base has moved."""
        passed = self._since[: bisect_left(self._ends, at + 1)]
        return passed[-1].new_end - passed[-1].old_end if passed else 0

    # -- what encloses it -----------------------------------------------------------------

    def _enclosed_otherwise(self, around: list[int], now: list[int]) -> str:
        """Why an enclosing line does not enclose the place any more; empty when all do."""
        for header in around:
            key = self._base.keys[header]
            there = self._there[header]
            if there >= 0:
                if there not in now:
                    return f"it would stand outside of what `{_shown(key)}` begins"
                continue
            new = [at for at in self._other.places.get(key, ()) if self._back[at] < 0]
            if new:
                if not any(at in now for at in new):
                    return f"`{_shown(key)}`, which was above it, stands elsewhere now"
            elif self._base.depths[header] >= 0 and not self._is_renamed(header, now):
                return f"`{_shown(key)}`, which was above it, is gone, and nothing has its place"
        return ""

    def _is_renamed(self, header: int, now: list[int]) -> bool:
        """Whether one line was put in the place of a header, and nothing beside it."""
        low, high = header, header + 1
        while low and self._there[low - 1] < 0:
            low -= 1
        while high < len(self._there) and self._there[high] < 0:
            high += 1
        first = self._there[low - 1] + 1 if low else 0
        last = self._there[high] if high < len(self._there) else len(self._back)
        depth = self._base.depths[header]
        before = sum(self._base.depths[at] == depth for at in self._base.statements(low, high))
        after = [
            at for at in self._other.statements(first, last) if self._other.depths[at] == depth
        ]
        return 0 < len(after) <= before and any(
            at in now and not self._was_there(self._other.keys[at]) for at in after
        )

    def _was_there(self, key: str) -> bool:
        """Whether a line stood somewhere else in the base."""
        return any(self._there[at] < 0 for at in self._base.places.get(key, ()))

    def _named_elsewhere(self, around: list[int], now: list[int]) -> str:
        """Why a unique line beside the place does not identify it any more; empty when none moved."""
        for header, new in zip(around, now, strict=False):
            if _has(self._known, header):
                break
            for at, there in self._moved:
                was = header <= at < self._base.ends[header]
                if was != (new <= there < self._other.ends[new]):
                    return f"`{_shown(self._base.keys[at])}` is near it only before or after"
        return ""

    def _is_elsewhere(self, sent: tuple[int, int], first: int, there: int, depth: int) -> bool:
        """Whether the lines that were sent stand whole at another place only, and nothing tells it from this one."""
        run, other = tuple(self._base.keys[slice(*sent)]), self._other
        places = list(islice(other.standing(run, 0, len(self._back)), 2))
        if len(places) != 1 or places[0] + first - sent[0] == there:
            return False
        for header in self._base.around(first, depth)[:1]:
            if bisect_left(self._known, header) < bisect_left(self._known, self._base.ends[header]):
                return False
        here, found = (other.around(at, depth) for at in (there, places[0] + first - sent[0]))
        return [other.keys[at] for at in found] == [other.keys[at] for at in here]

    def _is_parted(
        self, sent: tuple[int, int], first: int, end: int, there: int, around: list[int]
    ) -> bool:
        """Whether neighbours within what was sent are not so at the place, and have come together somewhere else."""
        named = any(_has(self._known, header) for header in around)
        for at in range(max(first, sent[0] + 1), min(end, sent[1] - 1) + 1):
            pair, now = tuple(self._base.keys[at - 1 : at + 1]), there + at - first
            if tuple(self._other.keys[max(now - 1, 0) : now + 1]) == pair or (named and all(pair)):
                continue  # Or what encloses it tells; a blank line is anybody's.
            for one in self._other.standing(pair, 0, len(self._back)):
                was = self._back[one]
                if was < 0 or self._back[one + 1] != was + 1:
                    return True
        return False

    def _is_named_by(self, first: int, end: int, around: list[int]) -> bool:
        """Whether a run of lines stands once, before and now, with a neighbour and all around it told apart."""
        run, there = tuple(self._base.keys[first:end]), self._there[first]
        if there < 0 or self._there[first:end] != list(range(there, there + len(run))):
            return False
        if not (self._base.stands_once(run) and self._other.stands_once(run)):
            return False
        if any(self._has_remark(header, end) for header in around):
            return True
        for header in around:
            if first <= header < end:
                continue
            if self._there[header] < 0:
                # Renamed, or another one with the same lines: a line of its own has to tell.
                within = min(end, self._base.ends[header])
                if bisect_left(self._known, first) == bisect_left(self._known, within):
                    return False
            elif len(self._other.places[self._base.keys[header]]) > 1:
                return False
        before, after = self._base.above(first), self._base.below(end)
        return (before >= 0 and self._there[before] == self._other.above(there)) or (
            after < len(self._there) and self._there[after] == self._other.below(there + len(run))
        )

    def _has_remark(self, header: int, end: int) -> bool:
        """Whether a header only has something behind it by now, and all lines from there to an end are as they were."""
        above, key = self._there[header - 1] if header else -1, self._base.keys[header]
        below = list(range(above + 2, above + 1 + end - header))
        stays = (not header or above >= 0) and self._there[header + 1 : end] == below
        return stays and self._other.keys[above + 1].startswith((f"{key} ", f"{key}\t"))

    # -- which of several equal places it is ----------------------------------------------

    def _among_twins(
        self, first: int, end: int, there: int, depth: int, around: list[int], *, removed: bool
    ) -> str:
        """Whether its lines stand several times, and nothing tells which are meant."""
        low, high, new = first, end, there
        if first == end:
            if first in (0, len(self._there)):
                return ""
            low -= first > 0 and self._there[first - 1] == there - 1 >= 0
            high += first < len(self._there) and self._there[first] == there
            new -= first - low
            if low == high:
                return "the lines on both sides of it were changed"
        if bisect_left(self._known, low) < bisect_left(self._known, high):
            return ""
        index = bisect_left(self._known, low)
        above = self._known[index - 1] if index else -1
        below = self._known[index] if index < len(self._known) else len(self._there)
        text = tuple(self._base.keys[low:high])
        if self._is_unnamed(around):
            every = self._base.standing(text, 0, len(self._there))
            if len(list(islice(every, 2))) > 1:
                return "its lines stand more than once, and what told them apart is gone"
        named = next((header for header in around if _has(self._known, header)), None)
        if self._is_tied(above, low, high, below, new, depth):
            # One kept neighbour does not tell it from one that came; of equal ones side by side any may go.
            here = {new - high + low, new + high - low} if removed else ()
            others = [at for at in self._other.standing(text, 0, len(self._back)) if at not in here]
            if named is not None or not others[1:] or not self._base.stands_once(text):
                return ""
            run = tuple(self._base.keys[max(low - 1, 0) : high + 1])
            once = len([*islice(self._other.standing(run, 0, len(self._back)), 2)]) < 2
            kept = once and all(self._kept_neighbours(low, high, new))
            return "" if kept else "its lines stood once, and stand more than once now"
        limit = [below, self._there[below] if below < len(self._there) else len(self._back)]
        if named is not None:
            limit[0] = min(limit[0], self._base.ends[named])
            limit[1] = min(limit[1], self._other.ends[self._there[named]])
        known = (above, limit[0], text)
        if known not in self._twins:
            start = self._there[above] + 1 if above >= 0 else 0
            self._twins[known] = (
                list(self._base.standing(text, above + 1, limit[0])),
                list(self._other.standing(text, start, limit[1])),
            )
        before, after = self._twins[known]
        same = len(before) == len(after)
        if not same or bisect_left(before, low) != bisect_left(after, new):
            return "equal lines were added or removed, and nothing near tells which are meant"
        return ""

    def _is_unnamed(self, around: list[int]) -> bool:
        """Whether lines near the place are gone that stood nowhere else."""
        for header in around:
            if _has(self._known, header):
                return False
            low = bisect_left(self._gone, header)
            if low < bisect_left(self._gone, max(self._base.ends[header], header + 1)):
                return True
        return False

    def _is_tied(self, above: int, low: int, high: int, below: int, new: int, depth: int) -> bool:
        """Whether all is as it was between the place and a line that stands only once near it."""
        known = self._there[above] if above >= 0 else -1
        if low - above == new - known and all(
            self._there[at] - at == new - low for at in range(above + 1, low)
        ):
            own = self._base.depths[above] if above >= 0 else 0
            told = self._base.statements(above + 1, low)
            if own <= depth and all(self._base.depths[at] >= own for at in told):
                return True
        if not depth or below >= len(self._there) or self._there[below] - below != new - low:
            return False
        return all(self._there[at] - at == new - low for at in range(high, below)) and all(
            self._base.depths[at] >= depth for at in self._base.statements(high, below + 1)
        )

    def _without_neighbours(self, first: int, end: int, there: int) -> str:
        """Whether the lines before and after it are others, where no line encloses it."""
        kept = any(self._kept_neighbours(first, end, there)) or self._is_kept_in_place(
            first, end, there
        )
        return "" if kept else "the lines before it and after it are others now"

    def _kept_neighbours(self, first: int, end: int, there: int) -> tuple[bool, bool]:
        """Whether the nearest lines above and below it, that are not blank, are those of before."""
        above, now_above = self._base.above(first), self._other.above(there)
        below, now_below = self._base.below(end), self._other.below(there + end - first)
        return (
            now_above == (self._there[above] if above >= 0 else -1),
            now_below == (self._there[below] if below < len(self._there) else len(self._back)),
        )

    def _is_kept_in_place(self, first: int, end: int, there: int) -> bool:
        """Whether lines that stand once are as far as before from the nearest that are there still, on both sides."""
        low, high, last = first - 1, end, there + end - first
        while low >= 0 and self._there[low] < 0:
            low -= 1
        while high < len(self._there) and self._there[high] < 0:
            high += 1
        above = self._there[low] if low >= 0 else -1
        below = self._there[high] if high < len(self._there) else len(self._back)
        run = tuple(self._base.keys[first:end])
        return (
            bool(run)
            and (first - low, high - end) == (there - above, below - last)
            and self._other.stands_once(run)
            and self._base.stands_once(run)
        )


class _Layout:
    """The lines of a text, and which of them stand below which."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.keys = [line.rstrip() for line in lines]
        self.depths = [-1 if _REMARK.match(key.lstrip()) else _depth(key) for key in self.keys]
        self.places: dict[str, list[int]] = {}
        for at, key in enumerate(self.keys):
            self.places.setdefault(key, []).append(at)
        self._above = [-1] * len(lines)
        self._before = [-1] * len(lines)
        self.ends = [len(lines)] * len(lines)
        open_lines: list[int] = []
        for at, depth in enumerate(self.depths):
            if depth < 0:
                continue
            while open_lines and self.depths[open_lines[-1]] >= depth:
                passed = open_lines.pop()
                self.ends[passed] = at
                if self.depths[passed] == depth:
                    self._before[at] = passed
            self._above[at] = open_lines[-1] if open_lines else -1
            open_lines.append(at)

    def around(self, at: int, depth: int) -> list[int]:
        """The lines that enclose a line, or a seam before it, of this depth; the innermost first."""
        found: list[int] = []
        header = self.above(at)
        while header >= 0 and self.depths[header] >= depth:
            header = self._above[header]
        while header >= 0:
            found.append(header)
            part = header
            while part >= 0 and self.keys[part].lstrip().startswith(_CLOSING):
                part = self._before[part]
                if part >= 0:
                    found.append(part)
            if self.keys[part].strip() in _OPENING:
                # A bracket on a line of its own belongs to the line above it.
                title = self._before[part]
                if title == part - 1 >= 0 and not self.keys[title].lstrip().startswith(_CLOSING):
                    found.append(title)
            header = self._above[header]
        if not found and (heading := self._heading(at)) >= 0:
            found.append(heading)
        return found

    def _heading(self, at: int) -> int:
        """The nearest heading above a line of a text without indentation."""
        for index in range(at - 1, -1, -1):
            if _HEADING.fullmatch(self.keys[index]) and (
                self.keys[index][0] == "["
                or not (
                    (index and self.keys[index - 1])
                    or (index + 1 < len(self.keys) and self.keys[index + 1])
                )
            ):
                return index
        return -1

    def statements(self, first: int, end: int) -> Iterator[int]:
        """Lines that are neither blank nor a remark nor the end of something."""
        for at in range(max(first, 0), min(end, len(self.keys))):
            if self.depths[at] >= 0 and not self.keys[at].lstrip().startswith(("@", *_CLOSING)):
                yield at

    def standing(self, text: tuple[str, ...], first: int, end: int) -> Iterator[int]:
        """The places of a sequence of lines, between two lines."""
        places = self.places.get(text[0], [])
        for at in places[bisect_left(places, first) : bisect_left(places, end - len(text) + 1)]:
            if tuple(self.keys[at : at + len(text)]) == text:
                yield at

    def stands_once(self, text: tuple[str, ...]) -> bool:
        return len(list(islice(self.standing(text, 0, len(self.keys)), 2))) == 1

    def above(self, at: int) -> int:
        """The nearest line before one that is not blank; -1 when there is none."""
        at -= 1
        while at >= 0 and self.depths[at] < 0:
            at -= 1
        return at

    def below(self, at: int) -> int:
        """The line itself, or the next that is not blank."""
        while at < len(self.depths) and self.depths[at] < 0:
            at += 1
        return at


def _partners(count: int, since: list[DiffRange]) -> list[int]:
    """For each line of the base its number in the other text; -1 where it has none."""
    there: list[int] = []
    new = 0
    for region in since:
        there.extend(range(new, new + region.old_start - len(there)))
        there.extend([-1] * (region.old_end - region.old_start))
        new = region.new_end
    there.extend(range(new, new + count - len(there)))
    return there


def _once(keys: list[str]) -> dict[str, int]:
    """Lines that stand only once, but for blank ones."""
    counted = Counter(keys)
    return {key: at for at, key in enumerate(keys) if key and counted[key] == 1}


def _has(numbers: list[int], wanted: int) -> bool:
    at = bisect_left(numbers, wanted)
    return at < len(numbers) and numbers[at] == wanted


def _depth(line: str) -> int:
    """How far a line is indented; -1 when it is blank."""
    body = line.lstrip(" \t")
    return len(line[: len(line) - len(body)].expandtabs(8)) if body.strip() else -1


def _shallowest(lines: Sequence[str]) -> int:
    return min((depth for depth in map(_depth, lines) if depth >= 0), default=0)


def _shown(key: str) -> str:
    bare = key.strip()
    return bare if len(bare) <= 60 else bare[:60] + "…"

"""Edits of a text as values, and three-way merge by lines.

A merge has both changes, or is a conflict; never markers, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.text.compare import DiffRange, compare_lines
from filepact.text.lines import common_head, common_tail, line_starts, middle_of, split_lines
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

__all__ = ["Conflict", "Edit", "EditList", "MergeResult", "MergeSide", "merge"]


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters ``[start, end)`` of the text before give way to ``text``; code points."""

    start: int
    end: int
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a range of a text: {self.start}..{self.end}")


@dataclass(frozen=True, slots=True)
class EditList:
    """Edits that happen at once, in ascending order; all places are those of the text before.

    Several insertions at one place stay in the order in which they are given.
    """

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        for before, after in zip(self.edits, self.edits[1:], strict=False):
            if before.end > after.start:
                raise ValueError(f"edits overlap or are out of order: {before}, {after}")

    def __bool__(self) -> bool:
        return bool(self.edits)

    @classmethod
    def between(cls, old: str, new: str) -> Self:
        """The edits, line by line, that make one text of another."""
        if old == new:
            return cls(())
        middle = middle_of(old, new)
        before, after = split_lines(middle.old), split_lines(middle.new)
        old_at, new_at = line_starts(before), line_starts(after)
        return cls(
            tuple(
                Edit(
                    middle.start + old_at[region.old_start],
                    middle.start + old_at[region.old_end],
                    middle.new[new_at[region.new_start] : new_at[region.new_end]],
                )
                for region in compare_lines(before, after)
            )
        )

    def apply(self, text: str) -> str:
        """The text after the edits.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        parts: list[str] = []
        at = 0
        for edit in self.edits:
            parts += (text[at : edit.start], edit.text)
            at = edit.end
        parts.append(text[at:])
        return "".join(parts)

    def trim(self, text: str) -> EditList:
        """The same change without what each edit leaves as it is.

        Args:
            text: The text before.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        trimmed = []
        for edit in self.edits:
            old, new = text[edit.start : edit.end], edit.text
            if old == new:
                continue
            head = common_head(old, new)
            tail = common_tail(old[head:], new[head:])
            trimmed.append(Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail]))
        return EditList(tuple(trimmed))

    def following(self, others: EditList) -> EditList | None:
        """The same edits of a text in which others were made before; None where they meet.

        What both add at one place stands in the order in which it was added.
        """
        found = []
        for edit in self.edits:
            moved = 0
            for one in others.edits:
                if one.end <= edit.start:
                    moved += len(one.text) - (one.end - one.start)
                elif one.start < edit.end:
                    return None
            found.append(Edit(edit.start + moved, edit.end + moved, edit.text))
        return EditList(tuple(found))

    def _check_within(self, text: str) -> None:
        if self.edits and self.edits[-1].end > len(text):
            raise ValueError(f"{self.edits[-1]} reaches beyond a text of {len(text)} characters")


@dataclass(frozen=True, slots=True)
class MergeSide:
    """The lines of one of the three texts at a conflict.

    Attributes:
        start: 1-based number of its first line there; of the next line when it has none.
        lines: The lines with their ends.
    """

    start: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed, each in its own way."""

    base: MergeSide
    mine: MergeSide
    theirs: MergeSide


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The outcome of a merge.

    Attributes:
        text: The merged text; None when there is a conflict.
        conflicts: Where both sides changed the same lines differently.
        taken: What came from their side: regions from the lines of ``mine`` to the lines of
            ``text``; empty when there is a conflict.
    """

    text: str | None
    conflicts: tuple[Conflict, ...]
    taken: tuple[DiffRange, ...]


def merge(base: str, mine: str, theirs: str) -> MergeResult:
    """Bring two changes of one text together.

    Changes conflict when both changed or removed a same line of the base, or both add lines at
    the same point, and the results differ: then nobody but a person knows what is wanted.
    Changes of neighbouring lines are both kept.
    """
    if theirs in (mine, base):
        return MergeResult(mine, (), ())
    lines, own, other = split_lines(base), split_lines(mine), split_lines(theirs)
    if mine == base:
        return MergeResult(theirs, (), tuple(compare_lines(own, other)))
    merged: list[str] = []
    taken: list[DiffRange] = []
    conflicts: list[Conflict] = []
    at = own_at = other_at = 0
    for start, end, own_part, other_part in _groups(lines, own, other):
        merged.extend(lines[at:start])
        own_at += start - at
        other_at += start - at
        own_end = own_at + end - start + _growth(own_part)
        other_end = other_at + end - start + _growth(other_part)
        ours, yours = own[own_at:own_end], other[other_at:other_end]
        if not other_part or ours == yours:
            merged.extend(ours)
        elif not own_part:
            taken.extend(
                DiffRange(
                    r.old_start - start + own_at,
                    r.old_end - start + own_at,
                    r.new_start - other_at + len(merged),
                    r.new_end - other_at + len(merged),
                )
                for r in other_part
            )
            merged.extend(yours)
        else:
            conflicts.append(
                Conflict(
                    MergeSide(start + 1, tuple(lines[start:end])),
                    MergeSide(own_at + 1, tuple(ours)),
                    MergeSide(other_at + 1, tuple(yours)),
                )
            )
        at, own_at, other_at = end, own_end, other_end
    if conflicts:
        return MergeResult(None, tuple(conflicts), ())
    merged.extend(lines[at:])
    return MergeResult("".join(merged), (), tuple(taken))


def _growth(regions: Sequence[DiffRange]) -> int:
    return sum(r.new_end - r.new_start - (r.old_end - r.old_start) for r in regions)


def _groups(
    base: list[str], own: list[str], other: list[str]
) -> list[tuple[int, int, list[DiffRange], list[DiffRange]]]:
    """Ranges of the base in which changes of both sides meet, with these changes."""
    changes = [(region, True) for region in compare_lines(base, own)]
    changes += [(region, False) for region in compare_lines(base, other)]
    changes.sort(key=lambda change: (change[0].old_start, change[0].old_end))
    # After a last line without an end nothing can follow, so there every seam is one place.
    ended = all(map(_is_ended, (base, own, other)))
    closed = -1 if ended else len(base)
    groups: list[tuple[int, int, list[DiffRange], list[DiffRange]]] = []
    for region, is_own in changes:
        if groups and _meets(groups[-1], region, closed):
            start, end, own_part, other_part = groups.pop()
            end = max(end, region.old_end)
        else:
            start, end, own_part, other_part = region.old_start, region.old_end, [], []
        (own_part if is_own else other_part).append(region)
        groups.append((start, end, own_part, other_part))
    return groups


def _meets(
    group: tuple[int, int, list[DiffRange], list[DiffRange]], region: DiffRange, closed: int
) -> bool:
    """Whether a change shares a line, or a point of insertion, with those before it."""
    _, end, own_part, other_part = group
    if region.old_start < end:
        return True
    if region.old_start > end:
        return False
    return end == closed or (
        # What only replaces has a clear order with its neighbours; two that add have none.
        _adds(region) and any(_adds(r) for r in own_part + other_part if r.old_end == end)
    )


def _adds(region: DiffRange) -> bool:
    return region.new_end - region.new_start > region.old_end - region.old_start


def _is_ended(lines: list[str]) -> bool:
    """Whether more lines can follow; a CR ends a line only where the text has no LF."""
    return not lines or lines[-1].endswith("\n") or (lines[0][-1] == lines[-1][-1] == "\r")

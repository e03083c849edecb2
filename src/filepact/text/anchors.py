"""Which part of a file a chain of anchors names: ``class A``, then ``def f`` in it.

Anchors only narrow.  The lines of a hunk have to stand in the part that the last one opens, so an
anchor that is understood wrongly makes a patch fail, and never lets it in.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Anchored"]

# A signature may end, and its block begin, at the depth of its first line.
_CONTINUING = (")", "]", "{")


class Anchored:
    """The parts of a file that a chain of anchors names.

    A line that deeper lines follow opens what is indented below it; any other line opens the rest
    of what it stands in.

    Args:
        lines: The lines of the file without their ends.
        anchors: The outermost first.
    """

    def __init__(self, lines: Sequence[str], anchors: Sequence[str]) -> None:
        ends = _ends_of_blocks(lines)
        parts = [(0, len(lines))]
        self.missing = ""
        for anchor in anchors:
            parts = list(_narrowed(lines, anchor, parts, ends))
            if not parts:
                self.missing = anchor
                break
        self._starts = [start for start, _ in parts]
        depth = [0] * (len(lines) + 1)
        for start, end in parts:
            depth[start] += 1
            depth[end] -= 1
        self._inside: list[bool] = []
        covering = 0
        for change in depth:
            covering += change
            self._inside.append(covering > 0)

    def holds(self, start: int, end: int) -> bool:
        """Whether the lines ``[start, end)`` begin below an anchor or include it."""
        return self._inside[start] or self.touches(start, end)

    def touches(self, start: int, end: int) -> bool:
        """Whether an anchor is one of the lines ``[start, end)`` or the one above them."""
        at = bisect_left(self._starts, start - 1)
        return at < len(self._starts) and self._starts[at] < end


def _narrowed(
    lines: Sequence[str], anchor: str, parts: list[tuple[int, int]], ends: list[int]
) -> Iterator[tuple[int, int]]:
    reached = 0
    for first, limit in parts:
        # Parts come in order of their starts; what an earlier one covered has been looked at.
        for at in _standing(lines, anchor, max(first, reached), limit):
            yield at, min(ends[at] or limit, limit)
        reached = max(reached, limit)


def _standing(lines: Sequence[str], anchor: str, start: int, end: int) -> list[int]:
    """Where the anchor stands: as a whole line; else as the beginning of one line only."""
    begun: list[int] = []
    whole: list[int] = []
    for at in range(start, end):
        if anchor in lines[at]:
            line = lines[at].strip()
            if line == anchor:
                whole.append(at)
            elif line.startswith(anchor) and not _continues_word(line[len(anchor)]):
                begun.append(at)
    return whole or (begun if len(begun) == 1 else [])


def _continues_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _ends_of_blocks(lines: Sequence[str]) -> list[int]:
    """For each line the line after what is indented below it; 0 where nothing is."""
    ends = [0] * len(lines)
    opened: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
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

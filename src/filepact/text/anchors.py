"""Which part of a file a chain of anchors names: ``class A``, then ``def f`` in it.

Anchors only narrow.  The lines of a hunk have to stand in the part that the last one opens, so an
anchor that is understood wrongly makes a patch fail, and never lets it in.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Anchored", "Outline"]

_ASKED_EVERY = 65_536

# A signature may end, and its block begin, at the depth of its first line.
_CONTINUING = (")", "]", "{")


class Outline:
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

    def below(self, anchors: Sequence[str]) -> Anchored:
        """The parts of the file that a chain of anchors names, the outermost first."""
        parts = [(0, len(self._lines))]
        for anchor in anchors:
            parts = list(self._narrowed(anchor, parts))
            if not parts:
                return Anchored([], anchor)
        return Anchored(parts, "")

    def _narrowed(self, anchor: str, parts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        reached = 0
        for first, limit in parts:
            # Parts come in order of their starts; what an earlier one covered has been looked at.
            for at in self._standing(anchor, max(first, reached), limit):
                yield at, min(self._ends[at] or limit, limit)
            reached = max(reached, limit)

    def _standing(self, anchor: str, start: int, end: int) -> Sequence[int]:
        """Where the anchor stands: as a whole line; else as the beginning of one line only."""
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


class Anchored:
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
        self._starts = [start for start, _ in parts]

    def spans(self, length: int) -> Iterator[tuple[int, int]]:
        """Where ``length`` lines may begin that stand below an anchor or include it.

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
        at = bisect_left(self._starts, start - 1)
        return at < len(self._starts) and self._starts[at] < end


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

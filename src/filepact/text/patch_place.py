"""Where the hunks of a patch belong in a file: every line compared, nothing guessed.

A hunk goes where its header says, moved by as much as the hunk before it was; else to the one
place that holds its lines, below its anchors where it has some.  What stands in several places is
refused.  When asked to be lenient, a hunk may also stand where up to two lines at the edges of its
context differ: but only where its header says, with all removed lines there, and nowhere else.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from filepact.errors import PatchAmbiguousError, PatchContextMismatchError
from filepact.text.anchors import Anchored
from filepact.text.lines import chomp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.text.hunks import Hunk

__all__ = ["Placement"]

_MOST_COMPARED = 50_000_000
_MOST_SHOWN = 6
_LOOK_AHEAD = 8
_NEARBY = 30
_LONGEST = 120
_EDGE = 2


class Placement:
    """The lines of one file, and the search for hunks in them.

    Args:
        lines: The file's lines with their ends; only the last may lack one.
        exact: Line ends have to match too.
        open_end: The last line lacks its end.
        name: How the file is called in errors.
        lenient: A few lines at the edges of a hunk's context may differ.

    Attributes:
        loosened: Numbers, from 0, of the hunks whose context differs from the file.
    """

    def __init__(
        self,
        lines: Sequence[str],
        *,
        exact: bool,
        open_end: bool,
        name: str,
        lenient: bool = False,
    ) -> None:
        self.loosened: list[int] = []
        self._lenient = lenient
        self._lines = lines
        self._exact = exact
        self._name = name
        self._keys = self._keyed(lines)
        self._places: dict[str, list[int]] | None = None
        self._compared = 0
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
            at = self._place_one(hunks, number, after, drift)
            found.append(at)
            if hunk.old_start is not None:
                drift = at - _stated(hunk, hunk.old_start)
            after = at + len(hunk.old)
        self._check_drifts(hunks, found)
        return found

    def _check_drifts(self, hunks: Sequence[Hunk], found: list[int]) -> None:
        """Refuse a hunk that fits its stated line, and as well where the next one's shift says.

        Then lines were added above it or below it, and nobody can tell.
        """
        for number, (hunk, later) in enumerate(pairwise(hunks)):
            if not hunk.old or hunk.old_start is None or later.old_start is None:
                continue
            shift = found[number + 1] - _stated(later, later.old_start)
            at = _stated(hunk, hunk.old_start) + shift
            after = found[number - 1] + len(hunks[number - 1].old) if number else 0
            if (
                at != found[number]
                and after <= at <= found[number + 1] - len(hunk.old)
                and self._fits(hunk, self._keyed(hunk.old), at)
            ):
                raise self._ambiguous(hunk, number, sorted((found[number], at)))

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
                raise self._no_context(hunk, number)
            if not self._ends_agree(hunk, expected):
                raise self._mismatch(hunk, number, expected)
            return expected
        if expected is not None and expected >= after and self._fits(hunk, keys, expected):
            return expected
        if self._result_stands(hunk, expected):
            raise self._mismatch(hunk, number, expected)
        anchored = Anchored(self._keys, hunk.anchors) if hunk.anchors else None
        if anchored is not None and anchored.missing:
            raise self._no_anchor(hunk, number, anchored.missing)
        candidates = self._search(hunk, keys, after, anchored)
        if not candidates:
            if self._lenient and expected is not None and self._fits_loosely(hunk, expected, after):
                self.loosened.append(number)
                return expected
            raise self._mismatch(hunk, number, expected)
        if len(candidates) == 1:
            return candidates[0]
        if anchored is not None:
            near = [at for at in candidates if anchored.touches(at, at + len(keys))]
            if len(near) == 1 and len(candidates) < _MOST_SHOWN:
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
        raise self._ambiguous(hunk, number, candidates)

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
        if self._places is None:
            self._places = {}
            for at, key in enumerate(self._keys):
                self._places.setdefault(key, []).append(at)
        return self._places

    def _search(
        self, hunk: Hunk, keys: list[str], after: int, anchored: Anchored | None = None
    ) -> list[int]:
        """The first few places from ``after`` on where the hunk fits."""
        index = self._index()
        counts = [len(index.get(key, ())) for key in keys]
        rarest = counts.index(min(counts))
        places = index.get(keys[rarest], [])
        found: list[int] = []
        for place in places[bisect_left(places, after + rarest) :]:
            if self._compared > _MOST_COMPARED:
                raise PatchAmbiguousError(
                    f"{self._name}: too many places look like the hunk at line {hunk.line} of "
                    "the patch",
                    hint="Correct the line numbers in the hunk headers.",
                    patch_line=hunk.line,
                )
            at = place - rarest
            if self._fits(hunk, keys, at) and (not anchored or anchored.holds(at, at + len(keys))):
                found.append(at)
                if len(found) == _MOST_SHOWN:
                    break
        return found

    def _ambiguous(self, hunk: Hunk, number: int, found: list[int]) -> PatchAmbiguousError:
        shown = ", ".join(str(at + 1) for at in found)
        more = " and more" if len(found) == _MOST_SHOWN else ""
        return PatchAmbiguousError(
            f"{self._title(hunk, number)} fits in several places: lines {shown}{more}",
            hint="Correct the line numbers in the hunk's header, or give it more context lines.",
            hunk=number + 1,
            patch_line=hunk.line,
            lines=tuple(at + 1 for at in found),
        )

    def _no_anchor(self, hunk: Hunk, number: int, anchor: str) -> PatchContextMismatchError:
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} stands below an anchor that the file does not have: "
            f"{_shown(anchor)}",
            hint="Copy the anchor after @@ from the file, or leave it out.",
            hunk=number + 1,
            patch_line=hunk.line,
        )

    def _no_context(self, hunk: Hunk, number: int) -> PatchContextMismatchError:
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} only adds lines, and nothing shows where",
            hint="Give the hunk context lines, and counts that agree with them.",
            hunk=number + 1,
            patch_line=hunk.line,
        )

    def _mismatch(self, hunk: Hunk, number: int, expected: int | None) -> PatchContextMismatchError:
        wanted = self._keyed(hunk.old)
        at = self._nearest(wanted, expected)
        there = self._keys[at : at + len(wanted)]
        index = next((i for i, (a, b) in enumerate(zip(wanted, there, strict=False)) if a != b), -1)
        if index < 0:
            index = len(there)
        line = at + index + 1
        hint = f"Read the file around line {line} and make the patch for what it holds now."
        if self._result_stands(hunk, expected):
            why = "What it would make stands there already."
            hint = "Leave this hunk out, or read the file and make a new patch."
        elif index >= len(wanted):
            why = "The patch and the file differ in whether a line end closes the file."
        elif index >= len(there):
            why = f"The file ends after {len(self._lines)} lines; the patch expects there"
            why += f"\n  {_shown(wanted[index])}"
        else:
            why = (
                f"Line {line} of the file is\n  {_shown(there[index])}\n"
                f"but line {_patch_line(hunk, index)} of the patch has\n  {_shown(wanted[index])}"
            )
            if wanted[index].split() == there[index].split():
                why += "\nThey differ in blanks only."
        body = "\n".join(f"  {_shown(text)}" for text in map(chomp, hunk.lines[:12]))
        return PatchContextMismatchError(
            f"{self._title(hunk, number)} does not fit. {why}\nThe hunk begins\n{body}",
            hint=hint,
            hunk=number + 1,
            patch_line=hunk.line,
            line=line,
        )

    def _nearest(self, wanted: list[str], expected: int | None) -> int:
        """The place that has most of the wanted lines; near the stated one among equals."""
        stated = min(max(expected or 0, 0), len(self._keys))
        head = wanted[:200]
        tried = {stated}
        for index, key in enumerate(head[:50]):
            if len(tried) < _NEARBY and self._places is not None:
                # A line that stands everywhere shows nothing.
                places = self._places.get(key, [])
                tried.update(at - index for at in places[:4] if at >= index)

        def likeness(at: int) -> tuple[int, int]:
            there = self._keys[at : at + len(head)]
            same = sum(a == b for a, b in zip(head, there, strict=False))
            return same, -abs(at - stated)

        return max(tried, key=likeness)

    def _title(self, hunk: Hunk, number: int) -> str:
        prefix = f"{self._name}: " if self._name else ""
        return f"{prefix}hunk {number + 1} (line {hunk.line} of the patch)"


def _stated(hunk: Hunk, start: int) -> int:
    """The 0-based index that a header's line number means; without lines it is the one before."""
    return start - 1 if hunk.old else start


def _context(lines: Sequence[str]) -> int:
    """How many lines stand before the first change."""
    return next((i for i, line in enumerate(lines) if line[0] != " "), len(lines))


def _is_open(side: Sequence[str]) -> bool:
    return bool(side) and not side[-1].endswith("\n")


def _patch_line(hunk: Hunk, index: int) -> int:
    """The 1-based line of the patch that holds the hunk's old line ``index``."""
    line = hunk.line
    for text in hunk.lines:
        line += 1
        if text[0] != "+":
            index -= 1
        if index < 0:
            break
        line += not text.endswith("\n")
    return line


def _shown(line: str) -> str:
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"

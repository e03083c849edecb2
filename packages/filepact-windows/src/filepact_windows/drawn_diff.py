"""A diff as lines that a window can draw, each with its sign, its numbers and the words that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.text.diff import pair_lines, refine
from filepact.text.diff_lines import COMPARED, HUNK, classify, split_lines
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.text.diff_lines import Sign

__all__ = ["DiffLine", "beside", "diff_lines", "first_lines", "span_of"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff.

    Attributes:
        sign: What it is.
        text: Without its sign and its end; of what is outside a hunk, and of a hunk's head, the whole.
        old: Its number in the file before, 0 for none.
        new: The same afterwards.
        words: Where it differs from the line that it became, or was; empty where all of it does.
    """

    sign: Sign
    text: str
    old: int = 0
    new: int = 0
    words: tuple[tuple[int, int], ...] = ()


def first_lines(head: str) -> tuple[int, int]:
    """The numbers of the first lines, before and after, that the head of a hunk tells."""
    found = HUNK.match(head)
    return (int(found[1]), int(found[3])) if found else (0, 0)


def span_of(hunk: str) -> tuple[range, range] | None:
    """The numbers of the lines that a hunk shows, before and after; None for what has no head."""
    found = HUNK.match(hunk)
    if found is None:
        return None
    numbers = [1 if one is None else int(one) for one in found.groups()]
    # Of no lines the head names the one above.
    starts = [first + (not count) for first, count in (numbers[:2], numbers[2:])]
    return (
        range(starts[0], starts[0] + numbers[1]),
        range(starts[1], starts[1] + numbers[3]),
    )


def diff_lines(diff: str) -> tuple[DiffLine, ...]:
    """The lines of a diff, which `readable` has seen before.

    Words are compared until that has taken its share of time; what comes after differs as a whole.
    """
    found: list[DiffLine] = []
    old = new = 0
    for sign, line in classify(split_lines(diff)):
        text = line.removesuffix("\n").removesuffix("\r")
        if sign == "@":
            old, new = first_lines(line)
        if sign in ("h", "@"):
            found.append(DiffLine(sign, text))
            continue
        if sign == "\\":
            found.append(DiffLine(sign, text[1:]))
            continue
        before, after = (old if sign != "+" else 0), (new if sign != "-" else 0)
        found.append(DiffLine(sign, text[1:], before, after))
        old += sign != "+"
        new += sign != "-"
    return tuple(_with_words(found))


def _with_words(lines: list[DiffLine]) -> list[DiffLine]:
    room = COMPARED
    for removed, added in _blocks(lines):
        old, new = ([lines[at].text for at in some] for some in (removed, added))
        room -= sum(map(len, old)) + sum(map(len, new))
        if room <= 0:
            break
        for i, j in pair_lines(old, new):
            words = refine(old[i], new[j])
            for at, spans in ((removed[i], words[0]), (added[j], words[1])):
                one = lines[at]
                lines[at] = DiffLine(one.sign, one.text, one.old, one.new, tuple(spans))
    return lines


def _blocks(lines: Sequence[DiffLine]) -> Iterator[tuple[list[int], list[int]]]:
    """Removed lines with the lines that took their place, as indices, where there are both."""
    removed: list[int] = []
    added: list[int] = []
    for at, line in enumerate(lines):
        if line.sign == "\\":
            continue
        if line.sign == "+":
            added.append(at)
            continue
        if removed and added:
            yield removed, added
        if line.sign != "-" or added:
            removed, added = [], []
        if line.sign == "-":
            removed.append(at)
    if removed and added:
        yield removed, added


def beside(lines: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """The lines of a hunk in two columns, before and after; None for nothing."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in lines:
        if line.sign == "-" and not added:
            removed.append(line)
        elif line.sign == "+":
            added.append(line)
        elif line.sign == "\\" and (removed or added):
            (added or removed).append(line)
        else:
            yield from _pairs(removed, added)
            removed, added = ([line] if line.sign == "-" else []), []
            if line.sign != "-":
                yield line, line
    yield from _pairs(removed, added)


def _pairs(
    removed: Sequence[DiffLine], added: Sequence[DiffLine]
) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    for at in range(max(len(removed), len(added))):
        yield (
            removed[at] if at < len(removed) else None,
            added[at] if at < len(added) else None,
        )

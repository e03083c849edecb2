"""Places that lines were perhaps sent for, although they stand alike somewhere else.

Lines that are alike to those sent at one place only are still not what was meant if the place
that was meant has been rewritten since, and the one that was found is its twin in other blanks.
Then the lines as they were sent have left traces: some of them stand elsewhere without any slip.
Likeness is used here to refuse only; nothing is ever written to a rival.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from filepact.text.ladder import body_of

if TYPE_CHECKING:
    from filepact.text.alike import Alike

__all__ = ["rival_of"]

_MOST_PAIRS = 200_000


def rival_of(text: str, place: Alike, sent: list[str], separator: str) -> int | None:
    """The line of another place that the lines may have been sent for.

    It is one where the first and the last line stand exactly as they were sent, as X

    Args:
        text: The file's text.
        place: The only place whose lines are alike.
        sent: The lines that were sent, without their ends.
        separator: What ends a line of the text; a CR before an LF belongs to the end.

    Returns:
        The 1-based number of the line at which it begins or would begin; None when there is none.
        Where the lines repeat too often to tell, it is a line in which one of them stands.
    """
    wanted: dict[str, list[int]] = {}
    for index, line in enumerate(sent):
        if body_of(line):
            wanted.setdefault(line, []).append(index)
    inked = sum(map(len, wanted.values()))
    if inked < 2:
        return None
    standing = _elsewhere(text, place, wanted, separator)
    if not standing:
        return None
    if sum(len(wanted[line]) for _, line in standing) > _MOST_PAIRS:
        return standing[0][0] + 1
    found = _between_edges(standing, wanted)
    if found is None:
        found = _by_distance(
            standing, wanted, max(_kept(text, place, sent) + 1, (inked + 1) // 2, 2)
        )
    return None if found is None else found + 1


def _elsewhere(
    text: str, place: Alike, wanted: dict[str, list[int]], separator: str
) -> list[tuple[int, str]]:
    """The 0-based numbers of lines outside the place that stand as they were sent."""
    first = text.count(separator, 0, place.start)
    after = text.count(separator, 0, place.after) + (place.after == len(text))
    if separator == "\n" and "\r" in text:
        text = text.replace("\r\n", "\n")
    return [
        (number, line)
        for number, line in enumerate(text.split(separator))
        if line in wanted and not first <= number < after
    ]


def _between_edges(standing: list[tuple[int, str]], wanted: dict[str, list[int]]) -> int | None:
    """A line where the first of those sent stands, and the last where it would be or not far off.

    In another distance than was sent it takes more than half of all lines, from the one to the other.
    """
    top = min(indexes[0] for indexes in wanted.values())
    end = max(indexes[-1] for indexes in wanted.values())
    first = next(line for line, indexes in wanted.items() if indexes[0] == top)
    last = next(line for line, indexes in wanted.items() if indexes[-1] == end)
    inked = sum(map(len, wanted.values()))
    lasts = [at for at, (_, line) in enumerate(standing) if line == last]
    for at, (number, line) in enumerate(standing):
        if line != first:
            continue
        for until in lasts[bisect_right(lasts, at) :]:
            distance = standing[until][0] - number
            if distance > 2 * (end - top):
                break
            if distance == end - top or 2 * (until - at + 1) > inked:
                return number
    return None


def _by_distance(
    standing: list[tuple[int, str]], wanted: dict[str, list[int]], least: int
) -> int | None:
    """Where the block would begin of which so many lines stand in their distances."""
    votes = Counter(number - index for number, line in standing for index in wanted[line])
    begin, count = votes.most_common(1)[0]
    return max(begin, 0) if count >= least else None


def _kept(text: str, place: Alike, sent: list[str]) -> int:
    """How many lines that are not blank stand in the place as they were sent."""
    return sum(
        line is not None and text[line.start : line.end] == one and bool(body_of(one))
        for one, line in zip(sent, place.lines, strict=True)
    )

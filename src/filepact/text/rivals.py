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
    from collections.abc import Container, Iterator

    from filepact.text.alike import Alike

__all__ = ["rival_of"]

_MOST_PAIRS = 200_000
_FEW = 30


def rival_of(text: str, place: Alike, sent: list[str], separator: str) -> int | None:
    """The line of another place that the lines may have been sent for.

    Of the lines that were sent, as they were sent, there stand at such a place either the first
    and the last, as far apart or with more than half of them in between; or at least half, in
    their distances, and more than at the place that was found.

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
    least = max(_kept(text, place, sent) + 1, (inked + 1) // 2, 2)
    standing = _elsewhere(text, place, wanted, separator, least)
    if not standing:
        return None
    if sum(len(wanted[line]) for _, line in standing) > _MOST_PAIRS:
        return standing[0][0] + 1
    found = _between_edges(standing, wanted)
    if found is None:
        found = _by_distance(standing, wanted, least)
    return None if found is None else found + 1


def _elsewhere(
    text: str, place: Alike, wanted: dict[str, list[int]], separator: str, least: int
) -> list[tuple[int, str]]:
    """The 0-based numbers of lines outside the place that stand as they were sent, in order.

    None are told where too few stand there to make a rival.
    """
    if len(wanted) <= _FEW:
        found = _starts_by_search(text, place, wanted, separator, least)
    else:
        found = _starts_by_lines(text, place, wanted, separator)
    standing: list[tuple[int, str]] = []
    number = past = 0
    for at, line in found:
        number += text.count(separator, past, at)
        past = at
        standing.append((number, line))
    return standing


def _starts_by_search(
    text: str, place: Alike, wanted: dict[str, list[int]], separator: str, least: int
) -> list[tuple[int, str]]:
    """Where the lines stand outside the place; each line costs a search, so few are made."""
    first, last = _edges(wanted)
    found: list[tuple[int, str]] = []
    edges = {first, last}
    missing = 0
    spare = sum(map(len, wanted.values())) - least
    for line in dict.fromkeys((first, last, *wanted)):
        places = list(_places(text, place, line, separator))
        found += [(at, line) for at in places]
        if not places:
            edges.discard(line)
            missing += len(wanted[line])
            if missing > spare and not {first, last} <= edges:
                return []
    return sorted(found)


def _places(text: str, place: Alike, line: str, separator: str) -> Iterator[int]:
    """Every offset outside the place at which a line stands."""
    size = len(line)
    if place.start > 0 and text.startswith(line) and _ends_at(text, size, separator):
        yield 0
    needle = separator + line
    at = text.find(needle)
    while at != -1:
        inside = place.start <= at + 1 < place.after
        if not inside and _ends_at(text, at + 1 + size, separator):
            yield at + 1
        at = text.find(needle, at + 1)


def _starts_by_lines(
    text: str, place: Alike, wanted: Container[str], separator: str
) -> list[tuple[int, str]]:
    """The same for many lines: every line of the text costs a little."""
    found: list[tuple[int, str]] = []
    at = 0
    for line in text.split(separator):
        bare = line.removesuffix("\r") if separator == "\n" else line
        if bare in wanted and not place.start <= at < place.after:
            found.append((at, bare))
        at += len(line) + 1
    return found


def _ends_at(text: str, offset: int, separator: str) -> bool:
    """Whether a line ends at an offset."""
    return (
        offset == len(text)
        or text.startswith(separator, offset)
        or (separator == "\n" and text.startswith("\r\n", offset))
    )


def _edges(wanted: dict[str, list[int]]) -> tuple[str, str]:
    """The first and the last of the lines."""
    first = min(wanted, key=lambda line: wanted[line][0])
    return first, max(wanted, key=lambda line: wanted[line][-1])


def _between_edges(standing: list[tuple[int, str]], wanted: dict[str, list[int]]) -> int | None:
    """A line where the first of those sent stands, and the last where it would be or not far off.

    In another distance than was sent it takes more than half of all lines, from the one to the other.
    """
    first, last = _edges(wanted)
    top, end = wanted[first][0], wanted[last][-1]
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

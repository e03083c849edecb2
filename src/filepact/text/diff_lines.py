"""A diff as lines that a window can draw, each with its sign, its numbers and the words that differ; or cut to what fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from filepact.text.diff import pair_lines, refine
from filepact.text.lines import common_head
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "COMPARED",
    "DiffLine",
    "Sign",
    "beside",
    "classify",
    "cut_diff",
    "diff_lines",
    "first_lines",
    "span_of",
    "split_lines",
]

Sign = Literal[" ", "-", "+", "\\", "@", "h"]
"""The sign of a line within a hunk; ``@`` begins one, and ``h`` stands outside of all."""

COMPARED: Final = 100_000
"""Characters of changed lines among which words are compared."""

_HUNK: Final = late_regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


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


def split_lines(diff: str) -> list[str]:
    """Lines with their LF; no other character ends a line of a diff."""
    return re.findall(r"[^\n]*\n|[^\n]+", diff)


def classify(lines: Iterable[str]) -> Iterator[tuple[Sign, str]]:
    """Each line with what it is.

    Inside a hunk its counts decide, because a removed line may look like a header.
    """
    old = new = 0
    for line in lines:
        sign = line[:1]
        if sign in ("-", "+", " ") and (old > 0 or new > 0):
            old -= sign != "+"
            new -= sign != "-"
            yield sign, line  # type: ignore[misc]  # one of three
        elif sign == "\\":
            yield "\\", line
        elif found := _HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in found.group(2, 4))
            yield "@", line
        else:
            yield "h", line


def first_lines(head: str) -> tuple[int, int]:
    """The numbers of the first lines, before and after, that the head of a hunk tells."""
    found = _HUNK.match(head)
    return (int(found[1]), int(found[3])) if found else (0, 0)


def span_of(hunk: str) -> tuple[range, range] | None:
    """The numbers of the lines that a hunk shows, before and after; None for what has no head."""
    found = _HUNK.match(hunk)
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


# -- what fits into an answer ---------------------------------------------------------------------


def cut_diff(diff: str, limit: int) -> str:
    """At most ``limit`` characters of a diff, then a line on what is left out.

    Room goes to what changed: long lines are cut first, changed ones around the change, then context is
    left out.  A limit of 0 leaves the diff as it is.
    """
    if limit <= 0 or len(diff) <= limit:
        return diff
    # The line on the rest is longest when everything is left out, so that length is set aside.
    room = max(limit - len(_left_out(diff)), 0)
    lines = diff[: room + 1].split("\n")
    if max(map(len, lines)) <= max(limit // 40, 40):
        # No more has room than stands there, unless lines around are left out.
        end = diff.rfind("\n", 0, room) + 1
        if diff[end] != "\\" and not any(line[:1] == " " for line in lines):
            return (diff[:end] + _left_out(diff[end:]))[:limit]
    else:
        kept, done = _filled(diff, limit, room)
        if done == len(diff):
            return kept
    kept, done = _filled(diff, limit, room, context=False)
    return (kept + _left_out(diff[done:]))[:limit]


def _left_out(rest: str) -> str:
    if not rest:
        return "... the lines around were left out\n"
    lines = rest.count("\n") + (not rest.endswith("\n"))
    return f"... {lines:,} more lines ({len(rest):,} characters) left out\n"


def _filled(diff: str, limit: int, room: int, *, context: bool = True) -> tuple[str, int]:
    """The lines of a diff that fit, long ones cut, and where in the diff they end."""
    kept: list[str] = []
    used = done = 0
    for line, size in _shortened(diff, limit):
        shown = line if context or line[0] != " " else ""
        used += len(shown)
        if used > room:
            break
        kept.append(shown)
        done += size
    return "".join(kept), done


def _shortened(diff: str, limit: int) -> Iterator[tuple[str, int]]:
    """The lines of a diff, each cut to a part of the limit, and how long it was."""
    most = max(limit // 8, 60)
    removed: list[list[str]] = []
    added: list[list[str]] = []
    held = 0
    for sign, line in classify(_lines_in(diff)):
        if sign == "-" and not added:
            removed.append([line])
        elif sign == "+":
            added.append([line])
        elif sign == "\\" and (removed or added):
            (added or removed)[-1].append(line)  # It says of this line that it has no end.
        else:
            yield from _run(removed, added, most)
            removed, added, held = [[line]] if sign == "-" else [], [], 0
            if sign != "-":
                yield _cut_line(line, 0, max(limit // 40, 40)) if sign == " " else line, len(line)
                continue
        held += min(len(line), most)
        if held > limit:  # No more of them have room.
            yield from _run(removed, added, most)
            removed, added, held = [], [], 0
    yield from _run(removed, added, most)


def _lines_in(diff: str) -> Iterator[str]:
    """Split lines as `split_lines` does, one at a time."""
    at = 0
    while at < len(diff):
        end = diff.find("\n", at) + 1 or len(diff)
        yield diff[at:end]
        at = end


def _run(removed: list[list[str]], added: list[list[str]], most: int) -> Iterator[tuple[str, int]]:
    """Removed lines and those that took their place, long ones cut around the first difference."""
    for lines, others in ((removed, added), (added, removed)):
        for at, (line, *tail) in enumerate(lines):
            shown = line
            if len(line) > most + _MARKS:
                other = others[at][0] if at < len(others) else line[:1]
                shown = _cut_line(line, common_head(line[1:], other[1:]), most)
            yield "".join((shown, *tail)), sum(map(len, (line, *tail)))


def _cut_line(line: str, focus: int, most: int) -> str:
    """A line of a hunk; of a long one the part around an offset, with how much is left out at both sides."""
    text = line[1:].removesuffix("\n")
    if len(text) <= most + _MARKS:
        return line
    start = max(min(focus - most // 4, len(text) - most), 0)
    rest = len(text) - start - most
    before = f"[{start:,} characters]..." if start else ""
    after = f"...[{rest:,} characters]" if rest else ""
    return f"{line[0]}{before}{text[start : start + most]}{after}\n"


_MARKS: Final = 60
"""Characters that the marks of a cut line take; a line that is longer by no more is not cut."""

"""The lines of a diff, each with what it is; and a diff cut to what fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from filepact.text.lines import common_head
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["COMPARED", "HUNK", "Sign", "classify", "cut_diff", "split_lines"]

Sign = Literal[" ", "-", "+", "\\", "@", "h"]
"""The sign of a line within a hunk; ``@`` begins one, and ``h`` stands outside of all."""

COMPARED: Final = 100_000
"""Characters of changed lines among which words are compared."""

HUNK: Final = late_regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
"""The head of a hunk: first line and count before, and after; a count of one may be left out."""


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
        elif found := HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in found.group(2, 4))
            yield "@", line
        else:
            yield "h", line


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

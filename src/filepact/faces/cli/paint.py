"""A unified diff for a reader: files, places and, inside changed lines, the changed words.

Painting never changes a character: the spans put together are the diff, so one path serves the
terminal and the patch in a pipe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.faces.cli.screen import Span
from filepact.text.hidden import readable
from filepact.text.refine import pair_lines, refine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.faces.cli.screen import Screen, Style

__all__ = ["Tally", "paint_diff", "show_diff", "tally"]

_COMPARED: Final = 100_000
"""Characters of changed lines among which words are compared."""

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Tally:
    """How many lines a diff adds and removes."""

    added: int
    removed: int


def paint_diff(diff: str) -> tuple[Span, ...]:
    """The diff as styled spans; their texts put together are the diff.

    Words are compared until that has taken its share of time; what comes after is whole lines.
    """
    return tuple(_paint(_lines(diff)))


def show_diff(diff: str, screen: Screen) -> tuple[Span, ...]:
    """The diff for a screen, as people are shown one everywhere; painted for a terminal only."""
    shown = readable(diff)
    return paint_diff(shown) if screen.terminal else (Span(shown),)


def tally(diff: str) -> Tally:
    """Count the added and removed lines of all hunks."""
    kinds = [kind for kind, _ in _classify(_lines(diff))]
    return Tally(kinds.count("+"), kinds.count("-"))


def _lines(diff: str) -> list[str]:
    """Lines with their LF; no other character ends a line of a diff."""
    return re.findall(r"[^\n]*\n|[^\n]+", diff)


def _classify(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each line with what it is: its sign, ``@``, a backslash, or ``h`` for a header.

    Inside a hunk its counts decide, because a removed line may look like a header.
    """
    old = new = 0
    for line in lines:
        sign = line[:1]
        if (old > 0 or new > 0) and sign in " +-":
            old -= sign in " -"
            new -= sign in " +"
            yield sign, line
        elif sign == "\\":
            yield sign, line
        elif found := _HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in found.groups())
            yield "@", line
        else:
            yield "h", line


def _paint(lines: Sequence[str]) -> Iterator[Span]:
    room = _COMPARED
    removed: list[str] = []
    added: list[str] = []
    for kind, line in _classify(lines):
        if kind == "-" and not added:
            removed.append(line)
            continue
        if kind == "+":
            added.append(line)
            continue
        if kind == "\\" and (removed or added):
            # The mark belongs to the line above it, in the middle of a change as well.
            block = added or removed
            block[-1] += line
            continue
        room -= sum(map(len, removed)) + sum(map(len, added)) if removed and added else 0
        yield from _paint_change(removed, added, words=room > 0)
        removed, added = ([line] if kind == "-" else []), []
        if kind in ("@", "h"):
            yield from _paint_header(kind, line)
        elif kind in (" ", "\\"):
            yield from _line_end(line, "dim" if kind == "\\" else "plain")
    room -= sum(map(len, removed)) + sum(map(len, added))
    yield from _paint_change(removed, added, words=room > 0)


def _paint_header(kind: str, line: str) -> Iterator[Span]:
    if kind == "@":
        yield Span(line, "place")
    elif line.startswith(("--- ", "+++ ", "diff --git ")):
        yield Span(line, "strong")
    else:
        yield Span(line, "dim")


def _paint_change(removed: Sequence[str], added: Sequence[str], *, words: bool) -> Iterator[Span]:
    """A block of removed lines and the lines that took their place."""
    if not (words and removed and added):
        yield from _paint_lines(removed, "remove")
        yield from _paint_lines(added, "add")
        return
    old = [_body(line) for line in removed]
    new = [_body(line) for line in added]
    partners = dict(pair_lines(old, new))
    old_words: dict[int, list[tuple[int, int]]] = {}
    new_words: dict[int, list[tuple[int, int]]] = {}
    for i, j in partners.items():
        old_words[i], new_words[j] = refine(old[i], new[j])
    for i, line in enumerate(removed):
        yield from _paint_line(line, old_words.get(i, []), "remove", "removed word")
    for j, line in enumerate(added):
        yield from _paint_line(line, new_words.get(j, []), "add", "added word")


def _paint_lines(lines: Sequence[str], style: Style) -> Iterator[Span]:
    """Whole lines, those between two that want more in one span."""
    plain: list[str] = []
    for line in lines:
        if line.endswith("\r\n") or "\n\\" in line:
            yield Span("".join(plain), style)
            plain = []
            yield from _paint_line(line, (), style, style)
        else:
            plain.append(line)
    yield Span("".join(plain), style)


def _body(line: str) -> str:
    """A line without its sign, its line feed and the mark of a missing one."""
    return line[1:].partition("\n")[0]


def _paint_line(
    line: str, words: Sequence[tuple[int, int]], style: Style, word_style: Style
) -> Iterator[Span]:
    body = _body(line)
    yield Span(line[0], style)
    at = 0
    for start, end in words:
        if start > at:
            yield Span(body[at:start], style)
        yield Span(body[start:end], word_style)
        at = end
    rest = line[1 + at :]
    end_of_line, newline, mark = rest.partition("\n")
    yield from _line_end(end_of_line + newline, style)
    if mark:
        yield Span(mark, "dim")


def _line_end(text: str, style: Style) -> Iterator[Span]:
    """Text up to a line's end, with a carriage return that is the same on both sides apart."""
    if text.endswith("\r\n"):
        yield Span(text[:-2], style)
        yield Span("\r", "line end")
        yield Span("\n")
    else:
        yield Span(text, style)

"""The lines of matches, as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.fs.trigrams import NO_LINE, find_lines
from filepact.text.confusables import MAX_WIDTH, shown_line
from filepact.text.query import QueryMatch
from filepact.text.secrets import find_secrets, may_hold_secrets, redact
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.text.query import Query

__all__ = ["MatchLine", "MatchSpan", "guarded_line", "lines_of", "matches_at", "spans_in"]

_MOST_LINES = 50
"""Most lines of one multiline match that are shown."""

_MOST_OF_LINE: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class MatchLine:
    """A line that is shown.

    Attributes:
        number: 1-based.
        matched: Whether it is part of a match; else it is context.
        hits: How many matches begin on it.
        start: Offset of its first byte in the text, where that has no CRLF.
    """

    number: int
    text: str
    matched: bool
    hits: int = 0
    start: int = 0


def lines_of(
    text: bytes, hits: list[QueryMatch], context: int, show: Callable[..., str]
) -> tuple[tuple[MatchLine, ...], ...]:
    """The lines of some matches with their context, each line once, in runs."""
    lines: dict[int, MatchLine] = {}
    for hit in hits:
        _add_before(lines, text, hit, context, show)
        at = _add_match(lines, text, hit, show)
        for number in range(hit.last_line + 1, hit.last_line + 1 + context):
            if at >= len(text):
                break
            end = _line_end(text, at)
            if number not in lines:
                lines[number] = MatchLine(number, show(text, at, end), matched=False, start=at)
            at = end + 1
    groups: list[list[MatchLine]] = []
    for number in sorted(lines):
        if not groups or groups[-1][-1].number < number - 1:
            groups.append([])
        groups[-1].append(lines[number])
    return tuple(map(tuple, groups))


def _add_before(
    lines: dict[int, MatchLine],
    text: bytes,
    hit: QueryMatch,
    context: int,
    show: Callable[..., str],
) -> None:
    end = hit.line_start - 1
    for number in range(hit.line - 1, max(0, hit.line - 1 - context), -1):
        if number in lines:
            return
        start = text.rfind(b"\n", 0, end) + 1
        lines[number] = MatchLine(number, show(text, start, end), matched=False, start=start)
        end = start - 1


def _add_match(
    lines: dict[int, MatchLine], text: bytes, hit: QueryMatch, show: Callable[..., str]
) -> int:
    """Add the lines of one match; returns the offset behind the last of them."""
    at, focus = hit.line_start, hit.start
    last = min(hit.last_line, hit.line + _MOST_LINES - 1)
    for number in range(hit.line, last + 1):
        end = hit.line_end if number == hit.last_line else _line_end(text, at)
        earlier = lines.get(number)
        begins = int(number == hit.line) + (earlier.hits if earlier else 0)
        known = earlier if earlier and earlier.matched else None
        shown = known.text if known else show(text, at, end, focus=focus)
        if number == last and last < hit.last_line:
            shown += f" [+{hit.last_line - last:,} lines of this match]"
        lines[number] = MatchLine(number, shown, matched=True, hits=begins, start=at)
        at = focus = end + 1
    return hit.line_end + 1


def guarded_line(text: bytes, start: int, end: int, *, focus: int | None = None) -> str:
    """A line as it is shown, without the tokens in it."""
    shown = shown_line(text, start, end, focus=focus)
    if not may_hold_secrets(text, start, end):
        return shown
    if end - start > MAX_WIDTH:
        # A token that the cut goes through would not be known any more.
        whole = text[start : min(end, start + _MOST_OF_LINE)].decode(
            "utf-8", errors="surrogateescape"
        )
        return "[a long line with a secret in it, not shown]" if find_secrets(whole) else shown
    return redact(shown)


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


# -- where texts match ------------------------------------------------------------------------

MatchSpan = tuple[int, int, int, int]
"""Where a match stands: its line's start, its own start and end, and its line's end."""


def spans_in(query: Query, texts: Sequence[bytes]) -> dict[int, list[MatchSpan] | None]:
    """Which of some texts a query may match in, by position.

    Returns:
        For each its matches, the first of each line; None where they are not known.
    """
    lines = None
    if query.by_lines:
        lines = find_lines(texts, query.needs, fold=not query.exact)
    if lines is None:
        return dict.fromkeys(query.among(texts))
    found: dict[int, list[MatchSpan] | None] = {}
    plain = len(query.plain)
    matching: dict[int, tuple[int, int]] = {}
    if not plain:
        parts = [texts[at][start:end] for at, start, _, end in lines]
        if not query.keeps_cr:
            parts = [part.removesuffix(b"\r") for part in parts]
        matching = query.matching(parts)
    for number, (at, start, hit, end) in enumerate(lines):
        match = (hit - start, hit - start + plain) if plain else matching.get(number)
        if start == NO_LINE or (match is not None and match[0] < 0):
            found[at] = None
        elif match is not None:
            spans = found.setdefault(at, [])
            if spans is not None:
                spans.append((start, start + match[0], start + match[1], end))
    return found


def matches_at(text: bytes, spans: Sequence[MatchSpan]) -> Iterator[QueryMatch]:
    """Matches in a text, from where they stand."""
    number, counted = 1, 0
    for start, begin, end, behind in spans:
        number += text.count(b"\n", counted, start)
        counted = start
        yield QueryMatch(number, number, begin, end, start, behind)

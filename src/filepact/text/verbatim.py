"""Places where a text stands character by character, in whatever line ends."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from filepact.text.lines import adopt_line_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.text.ladder import Step

__all__ = ["STRICT", "Ends", "Search", "ends_of", "fit"]

Ends = Literal["lf", "cr", "wide"]
"""What ends a text's lines: LF, CR, or some of them CRLF."""

_MOST_TRIED = 50


def ends_of(text: str) -> Ends:
    """What ends the lines, found without looking at all of them."""
    if "\r" not in text:
        return "lf"
    if "\n" not in text:
        return "cr"
    return "wide" if "\r\n" in text else "lf"


@dataclass(frozen=True, slots=True)
class Search:
    """One step's way to find the places.

    Attributes:
        hay: The text to search, or a form of it.
        needle: What to find in there.
        origin: From an offset in ``hay`` to the one in the text; None when they are the same.
        new: The text to put there, before it takes the line ends of the place.
        known: The one place, when it is known already.
    """

    hay: str
    needle: str
    origin: Callable[[int], int] | None
    new: str
    known: tuple[int, int] | None = None

    def spans(self) -> Iterator[tuple[int, int]]:
        """Ranges of the text, left to right, none overlapping the one before."""
        size = len(self.needle)
        at = self.hay.find(self.needle)
        while at != -1:
            yield self._span(at, at + size)
            at = self.hay.find(self.needle, at + size)

    def only(self) -> tuple[int, int] | None:
        """The one place; None when there are several, even if they overlap.

        Raises:
            LookupError: There is none.
        """
        if self.known is not None:
            return self.known
        at = self.hay.find(self.needle)
        if at == -1:
            raise LookupError
        if self.hay.find(self.needle, at + 1) != -1:
            return None
        return self._span(at, at + len(self.needle))

    def count(self) -> int:
        """How many places there are, of several; at least 2, as one may overlap itself."""
        return max(self.hay.count(self.needle), 2)

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return (start, end) if self.origin is None else (self.origin(start), self.origin(end))


def _exact(text: str, old: str, new: str, ends: Ends) -> Search | None:
    """The same characters."""
    if ends == "wide" and "\n" in old and "\r" not in old:
        # Such a text cannot mean one kind of line end among others, and its first LF must not
        # be taken for the second half of a CRLF.
        return None
    return Search(text, old, None, new)


def _line_ends(text: str, old: str, new: str, ends: Ends) -> Search | None:
    """The same characters when every line end counts as LF."""
    if "\n" not in old:
        return None
    bare = old.replace("\r\n", "\n")
    if bare != old:
        # An author who sees CRLF where the file has something else sees it everywhere.
        new = new.replace("\r\n", "\n")
    match ends:
        case "cr":
            return Search(text.replace("\r", "\n"), bare.replace("\r", "\n"), None, new)
        case "wide":
            return _wide(text, bare, new)
        case "lf":
            return Search(text, bare, None, new) if bare != old else None


STRICT: dict[Step, Callable[[str, str, str, Ends], Search | None]] = {
    "exact": _exact,
    "line ends": _line_ends,
}
"""The steps that overlook at most the kind of line end, in their order."""


def _wide(text: str, old: str, new: str) -> Search | None:
    near = _by_longest_line(text, old)
    if near is not None and len(near) < 2:
        return Search(text, old, None, new, near[0]) if near else None
    hay = text.replace("\r\n", "\n")
    if old not in hay:
        return None
    # Where in the searched text the LFs stand that were CRLF.
    wide = [match.start() - i for i, match in enumerate(re.finditer("\r\n", text))]
    return Search(hay, old, lambda offset: offset + bisect_left(wide, offset), new)


def _by_longest_line(text: str, old: str) -> list[tuple[int, int]] | None:
    """The places, found around those of the longest line; None when that line is not rare."""
    if "\r" in old:
        return None
    lines = old.split("\n")
    longest = max(range(len(lines)), key=lambda i: len(lines[i]))
    if not lines[longest]:
        return None
    spans: list[tuple[int, int]] = []
    at = text.find(lines[longest])
    tried = 0
    while at != -1:
        tried += 1
        if tried > _MOST_TRIED:
            return None
        start = _back(text, at, lines[:longest])
        end = _on(text, at + len(lines[longest]), lines[longest + 1 :])
        if start is not None and end is not None:
            spans.append((start, end))
        at = text.find(lines[longest], at + 1)
    return spans


def _back(text: str, at: int, lines: list[str]) -> int | None:
    """Where these lines begin, if they stand right before an offset."""
    for line in reversed(lines):
        if not text.endswith("\n", 0, at):
            return None
        at -= 2 if text.endswith("\r\n", 0, at) else 1
        if not text.endswith(line, 0, at):
            return None
        at -= len(line)
    return at


def _on(text: str, at: int, lines: list[str]) -> int | None:
    """Where these lines end, if they stand right after an offset."""
    for line in lines:
        if text.startswith("\r\n", at):
            at += 2
        elif text.startswith("\n", at):
            at += 1
        else:
            return None
        if not text.startswith(line, at):
            return None
        at += len(line)
    return at


def fit(text: str, ends: Ends, new: str, start: int, end: int) -> str:
    """The new text with the line ends of its place ``[start, end)``."""
    if "\n" not in new or "\r" in new or ends == "lf":
        return new
    if ends == "cr":
        return adopt_line_ends(new, "\r")
    region = text[start:end]
    if "\n" not in region:
        # Within one line: the line's own end, or at the end of the text the one before.
        after = text.find("\n", end)
        after = text.rfind("\n", 0, start) if after == -1 else after
        region = text[max(after - 1, 0) : after + 1]
        region = region if region == "\r\n" else "\n"
    return adopt_line_ends(new, region)

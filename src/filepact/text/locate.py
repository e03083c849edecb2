"""Where a text to be replaced stands: exactly there, once, or the request is refused.

The steps are tried in order and the first that finds something decides.  No step guesses: what
it finds is the same text but for what the step's name says, and two such places are two too many.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from filepact.errors import (
    AmbiguousMatchError,
    InvalidParamsError,
    NoChangeError,
    StringNotFoundError,
)
from filepact.text.edit import Edit, EditList
from filepact.text.lines import adopt_line_ends, line_ends
from filepact.text.nearest import explain_miss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.text.lines import LineEnds

__all__ = ["Placement", "Step", "place"]

Step = Literal["exact", "line ends"]

_LISTED = 20


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a replacement goes.

    Attributes:
        edits: One for each place.
        step: How the places were found; ``line ends``: equal but for the kind of line end.
        lines: 1-based number of the line in which each place begins.
    """

    edits: EditList
    step: Step
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Request:
    """A replacement that is asked for, and the kind of line ends of the text."""

    text: str
    old: str
    new: str
    ends: LineEnds


@dataclass(frozen=True, slots=True)
class _Search:
    """One step's way to find the places.

    Attributes:
        hay: The text to search, or a form of it.
        needle: What to find in there.
        origin: From an offset in ``hay`` to the one in the text.
        new: The text to put there, before it takes the line ends of the place.
    """

    hay: str
    needle: str
    origin: Callable[[int], int]
    new: str

    def spans(self) -> Iterator[tuple[int, int]]:
        """Ranges of the text, left to right, none overlapping the one before."""
        size = len(self.needle)
        at = self.hay.find(self.needle)
        while at != -1:
            yield self.origin(at), self.origin(at + size)
            at = self.hay.find(self.needle, at + size)

    def count(self) -> int:
        """How many places there are; 2 when there is one that overlaps itself."""
        count = self.hay.count(self.needle)
        if count == 1 and self.hay.find(self.needle, self.hay.find(self.needle) + 1) != -1:
            return 2
        return count


def place(text: str, old: str, new: str, *, replace_all: bool = False, name: str = "") -> Placement:
    r"""Find the text to be replaced.  Both texts are plain: ``$``, ``\1`` and ``&`` mean themselves.

    Bare LFs of ``new`` become the line ends that the place has; a ``new`` with a CR in it says
    itself what it wants.

    Args:
        text: The file's text.
        old: What to replace, any part of the text; must not be empty.
        new: What to put there.
        replace_all: Replace every place, left to right; else there has to be exactly one.
        name: How the file is called in messages.

    Raises:
        InvalidParamsError: ``old`` is empty.
        NoChangeError: The text would stay as it is.
        AmbiguousMatchError: There are several places.
        StringNotFoundError: There is no place.
    """
    shown = name or "the file"
    if not old:
        raise InvalidParamsError(
            f"{shown}: the text to replace is empty",
            hint="Send the lines next to which the text belongs, and send them again with it.",
        )
    if old == new:
        raise _no_change(shown)
    request = _Request(text, old, new, line_ends(text))
    for step, prepare in _STEPS.items():
        search = prepare(request)
        count = search.count() if search is not None else 0
        if search is None or not count:
            continue
        if count > 1 and not replace_all:
            raise _ambiguous(text, search, count, shown)
        spans = list(search.spans())
        edits = EditList(
            tuple(Edit(start, end, _fit(request, search.new, start, end)) for start, end in spans)
        )
        if all(
            text.startswith(edit.text, edit.start, edit.end)
            and len(edit.text) == edit.end - edit.start
            for edit in edits.edits
        ):
            raise _no_change(shown)
        return Placement(edits, step, _lines_of(text, [start for start, _ in spans], request.ends))
    explanation = explain_miss(text, old)
    raise StringNotFoundError(
        f"{shown}: the text to replace is not in the file.\n{explanation.message}",
        hint=explanation.hint,
        path=name,
        nearest=explanation.line,
    )


# -- the steps ----------------------------------------------------------------------------


def _exact(request: _Request) -> _Search | None:
    """The same characters."""
    if "\n" in request.old and "\r" not in request.old and request.ends in ("crlf", "mixed"):
        # Such a text cannot mean one kind of line end among others, and its first LF must not
        # be taken for the second half of a CRLF.
        return None
    return _Search(request.text, request.old, _same, request.new)


def _line_ends(request: _Request) -> _Search | None:
    """The same characters when every line end counts as LF."""
    if "\n" not in request.old:
        return None
    old, new = request.old.replace("\r\n", "\n"), request.new
    if old != request.old:
        # An author who sees CRLF where the file has something else sees it everywhere.
        new = new.replace("\r\n", "\n")
    match request.ends:
        case "cr":
            return _Search(request.text.replace("\r", "\n"), old.replace("\r", "\n"), _same, new)
        case "crlf" | "mixed":
            # Where in the searched text the LFs stand that were CRLF.
            wide = [m.start() - i for i, m in enumerate(re.finditer("\r\n", request.text))]
            return _Search(
                request.text.replace("\r\n", "\n"),
                old,
                lambda offset: offset + bisect_left(wide, offset),
                new,
            )
        case "lf" | "none":
            return _Search(request.text, old, _same, new)


def _same(offset: int) -> int:
    return offset


_STEPS: dict[Step, Callable[[_Request], _Search | None]] = {
    "exact": _exact,
    "line ends": _line_ends,
}


def _fit(request: _Request, new: str, start: int, end: int) -> str:
    """The new text with the line ends of its place."""
    text = request.text
    if "\n" not in new or "\r" in new or request.ends in ("lf", "none"):
        return new
    if request.ends != "mixed":
        return adopt_line_ends(new, "\r\n" if request.ends == "crlf" else "\r")
    region = text[start:end]
    if "\n" not in region:
        # Within one line: the line's own end, or at the end of the text the one before.
        after = text.find("\n", end)
        after = text.rfind("\n", 0, start) if after == -1 else after
        region = text[max(after - 1, 0) : after + 1]
        region = region if region == "\r\n" else "\n"
    return adopt_line_ends(new, region)


def _lines_of(text: str, offsets: list[int], ends: LineEnds) -> tuple[int, ...]:
    """The 1-based line numbers of ascending offsets."""
    separator = "\r" if ends == "cr" else "\n"
    numbers = []
    line, at = 1, 0
    for offset in offsets:
        line += text.count(separator, at, offset)
        numbers.append(line)
        at = offset
    return tuple(numbers)


# -- refusals -----------------------------------------------------------------------------


def _ambiguous(text: str, search: _Search, count: int, shown: str) -> AmbiguousMatchError:
    starts = [start for (start, _), _ in zip(search.spans(), range(_LISTED), strict=False)]
    lines = _lines_of(text, starts, line_ends(text))
    distinct = list(dict.fromkeys(lines))
    more = f" and {count - _LISTED:,} more places" if count > _LISTED else ""
    return AmbiguousMatchError(
        f"{shown}: the text to replace stands in {count:,} places, "
        f"{'line' if len(distinct) == 1 else 'lines'} "
        f"{', '.join(map(str, distinct))}{more}",
        hint="Send more of the lines around the place that is meant, or set replace_all to "
        "replace every one.",
        lines=lines,
        count=count,
    )


def _no_change(shown: str) -> NoChangeError:
    return NoChangeError(
        f"{shown}: the new text is the same as the old one",
        hint="Nothing was changed; send what should be different.",
    )

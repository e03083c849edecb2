"""Where a text to be replaced stands: exactly there, once, or the request is refused.

The steps are tried in order and the first that finds something decides.  No step guesses: what
it finds is the same text but for what the step's name says, and two such places are two too many.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.errors import (
    AmbiguousMatchError,
    InvalidParamsError,
    NoChangeError,
    StringNotFoundError,
)
from filepact.text.alike import find_alike
from filepact.text.carry import Uncertain, carry
from filepact.text.edit import Edit, EditList
from filepact.text.ladder import STEPS, Step, differing, unnumbered
from filepact.text.lines import adopt_line_ends, line_ends, line_terminator
from filepact.text.nearest import explain_miss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.text.alike import Alike
    from filepact.text.lines import LineEnds

__all__ = ["Placement", "Step", "place"]

_LISTED = 20


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a replacement goes.

    Attributes:
        edits: What changes; for a place that was found by its lines only the lines that change.
        steps: How the places were found, strictest first; several where several slips come
            together.
        lines: 1-based number of the line in which each place begins.
        spans: The places, in code points of the text.
    """

    edits: EditList
    steps: tuple[Step, ...]
    lines: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def step(self) -> Step:
        """The step that decided, which overlooks more than those before it."""
        return self.steps[-1]

    @property
    def exact(self) -> bool:
        """Whether the text was found character by character."""
        return self.steps == ("exact",)

    @property
    def words(self) -> str:
        """How it was found, for people."""
        return "; ".join(STEPS[step] for step in self.steps)


@dataclass(frozen=True, slots=True)
class _Request:
    """A replacement that is asked for, and the kind of line ends of the text."""

    text: str
    old: str
    new: str
    ends: LineEnds
    every: bool
    shown: str


@dataclass(frozen=True, slots=True)
class _Search:
    """One step's way to find the places.

    Attributes:
        hay: The text to search, or a form of it.
        needle: What to find in there.
        origin: From an offset in ``hay`` to the one in the text; None when they are the same.
        new: The text to put there, before it takes the line ends of the place.
    """

    hay: str
    needle: str
    origin: Callable[[int], int] | None
    new: str

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
        at = self.hay.find(self.needle)
        if at == -1:
            raise LookupError
        if self.hay.find(self.needle, at + 1) != -1:
            return None
        return self._span(at, at + len(self.needle))

    def count(self) -> int:
        """How many places there are; at least 2, as one may overlap itself."""
        return max(self.hay.count(self.needle), 2)

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return (start, end) if self.origin is None else (self.origin(start), self.origin(end))


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
    request = _Request(text, old, new, line_ends(text), replace_all, shown)
    reason = ""
    try:
        placement = _characters(request) or _lines(request)
        if placement is None and (bare := unnumbered(old, new)) is not None and bare[0]:
            placement = _without_numbers(request, *bare)
    except Uncertain as uncertain:
        placement, reason = None, f" Its lines are there, but {uncertain}."
    if placement is not None:
        return placement
    explanation = explain_miss(text, old)
    raise StringNotFoundError(
        f"{shown}: the text to replace is not in the file.{reason}\n{explanation.message}",
        hint=explanation.hint,
        path=name,
        nearest=explanation.line,
    )


def _without_numbers(request: _Request, old: str, new: str) -> Placement | None:
    """The same request without the line numbers in its texts."""
    if old == new:
        raise _no_change(request.shown)
    bare = _Request(request.text, old, new, request.ends, request.every, request.shown)
    placement = _characters(bare) or _lines(bare)
    if placement is None:
        return None
    others = [step for step in placement.steps if step != "exact"]
    steps = [step for step in STEPS if step == "line numbers" or step in others]
    return Placement(placement.edits, tuple(steps), placement.lines, placement.spans)


# -- found by its characters --------------------------------------------------------------


def _characters(request: _Request) -> Placement | None:
    """The first of the strict steps that finds something.

    Raises:
        AmbiguousMatchError: There are several places.
        NoChangeError: The text would stay as it is.
    """
    for step, prepare in _STRICT.items():
        search = prepare(request)
        if search is None:
            continue
        try:
            only = search.only()
        except LookupError:
            continue
        if only is None and not request.every:
            raise _ambiguous(request, search)
        spans = tuple(search.spans()) if only is None else (only,)
        edits = tuple(
            Edit(start, end, _fit(request, search.new, start, end)) for start, end in spans
        )
        if all(request.text[edit.start : edit.end] == edit.text for edit in edits):
            raise _no_change(request.shown)
        lines = _lines_of(request.text, [start for start, _ in spans], request.ends)
        return Placement(EditList(edits), (step,), lines, spans)
    return None


def _exact(request: _Request) -> _Search | None:
    """The same characters."""
    if "\n" in request.old and "\r" not in request.old and request.ends in ("crlf", "mixed"):
        # Such a text cannot mean one kind of line end among others, and its first LF must not
        # be taken for the second half of a CRLF.
        return None
    return _Search(request.text, request.old, None, request.new)


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
            return _Search(request.text.replace("\r", "\n"), old.replace("\r", "\n"), None, new)
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
            return _Search(request.text, old, None, new)


_STRICT: dict[Step, Callable[[_Request], _Search | None]] = {
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


# -- found by its lines -------------------------------------------------------------------


def _lines(request: _Request) -> Placement | None:
    """The one place whose lines are those that were sent, but for blanks and typography.

    Raises:
        AmbiguousMatchError: There are several places.
        NoChangeError: The text would stay as it is.
        Uncertain: There is one, but the change cannot be carried over to it with certainty.
    """
    old, new = (part.replace("\r\n", "\n") for part in (request.old, request.new))
    if "\r" in old or "\r" in new:
        return None
    whole = old.endswith("\n")
    sent = old.removesuffix("\n").split("\n")
    places = find_alike(request.text, sent, "\r" if request.ends == "cr" else "\n")
    if not places:
        return None
    if len(places) > 1:
        raise _alike(request, places)
    (place,) = places
    if place.blank_lines_off + bool(place.blanks_at_edges) > 1 or place.blanks_at_edges > 2:
        return None
    if whole and new and not new.endswith("\n"):
        raise Uncertain("the new text lacks the line end that the old text has at its end")
    fresh = new.removesuffix("\n").split("\n") if whole else new.split("\n")
    if whole and not new:
        fresh = []
    edits = carry(request.text, place, sent, fresh, line_terminator(request.text))
    if not edits:
        raise _no_change(request.shown)
    (line,) = _lines_of(request.text, [place.start], request.ends)
    return Placement(edits, _steps_of(request, place, sent), (line,), ((place.start, place.end),))


def _steps_of(request: _Request, place: Alike, sent: list[str]) -> tuple[Step, ...]:
    pairs = [
        (one, request.text[line.start : line.end])
        for one, line in zip(sent, place.lines, strict=True)
        if line is not None
    ]
    steps = differing([one for one, _ in pairs], [there for _, there in pairs])
    if place.blank_lines_off or place.blanks_at_edges:
        steps = (*steps, "blank line")
    return steps or ("line ends",)


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


def _ambiguous(request: _Request, search: _Search) -> AmbiguousMatchError:
    starts = [start for (start, _), _ in zip(search.spans(), range(_LISTED), strict=False)]
    lines = _lines_of(request.text, starts, request.ends)
    distinct = list(dict.fromkeys(lines))
    count = search.count()
    more = f" and {count - _LISTED:,} more places" if count > _LISTED else ""
    return AmbiguousMatchError(
        f"{request.shown}: the text to replace stands in {count:,} places, "
        f"{'line' if len(distinct) == 1 else 'lines'} "
        f"{', '.join(map(str, distinct))}{more}",
        hint="Send more of the lines around the place that is meant, or set replace_all to "
        "replace every one.",
        lines=lines,
        count=count,
    )


def _alike(request: _Request, places: list[Alike]) -> AmbiguousMatchError:
    lines = _lines_of(request.text, [place.start for place in places], request.ends)
    return AmbiguousMatchError(
        f"{request.shown}: the text to replace is not in the file as it was sent, and but for "
        f"blanks, blank lines and typography it stands in several places, lines "
        f"{', '.join(map(str, lines))}",
        hint="Send the lines exactly as the file has them at the place that is meant, with more "
        "of the lines around it.",
        lines=lines,
        count=len(places),
    )


def _no_change(shown: str) -> NoChangeError:
    return NoChangeError(
        f"{shown}: the new text is the same as the old one",
        hint="Nothing was changed; send what should be different.",
    )

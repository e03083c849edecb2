"""Finds where a text to be replaced stands: exactly there, once, or the request is refused.

The steps are tried in order and the first that finds something decides: the same characters, the
same with other line ends, then whole lines that are the same but for blanks and typography
(:mod:`~filepact.text.tolerant_match`).  No step guesses, and two places are one too many.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import islice, repeat
from typing import TYPE_CHECKING, Final, Literal

from filepact.errors import (
    AmbiguousMatchError,
    InvalidParamsError,
    NoChangeError,
    StringNotFoundError,
)
from filepact.text.edit import Edit, EditList, RequestMatch
from filepact.text.lines import adopt_line_ends, line_ends
from filepact.text.miss_report import explain_miss
from filepact.text.reapply import RebaseError, carry
from filepact.text.tolerant_match import STEPS, Step, differing, find_alike, rival_of, unnumbered
from filepact.values import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.text.tolerant_match import LineMatch, Step

__all__ = ["MOST_PLACES", "MatchResult", "place"]

MOST_PLACES: Final = 200_000
"""Most places that are replaced at once."""

_LISTED = 20

_Ends = Literal["lf", "cr", "wide"]
"""What ends a text's lines: LF, CR, or some of them CRLF."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The places of a replacement, and how they were found.

    Attributes:
        edits: What changes; for a place that was found by its lines only the lines that change.
        steps: How the places were found, strictest first; several where several slips come
            together.
        spans: The places, in code points of the text.
        text: The text.
        breaks: Places of whole lines that were removed with the end of the last, which was not sent.
        asked: What was sent, at each place.
    """

    edits: EditList
    steps: tuple[Step, ...]
    spans: tuple[tuple[int, int], ...]
    text: str = field(repr=False)
    breaks: int = 0
    asked: tuple[RequestMatch, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the text was found character by character."""
        return self.steps == ("exact",)

    @property
    def words(self) -> str:
        """How it was found, for people."""
        return f"{', '.join(self.steps)} ({'; '.join(STEPS[step] for step in self.steps)})"


@dataclass(frozen=True, slots=True)
class _Request:
    """A requested replacement, and the kind of line ends of the text."""

    text: str
    old: str
    new: str
    ends: _Ends
    every: bool
    shown: str


def place(
    text: str, old: str, new: str, *, replace_all: bool = False, name: str = ""
) -> MatchResult:
    r"""Find the text to be replaced.  Both texts are plain: ``$``, ``\1`` and ``&`` mean themselves.

    The lines of ``new`` end as those of the place do, whether they were sent with LF or CRLF.

    Args:
        text: The file's text.
        old: What to replace, any part of the text; must not be empty.
        new: What to put there.
        replace_all: Replace every place, left to right; else there has to be exactly one.
        name: How the file is called in messages.

    Raises:
        InvalidParamsError: ``old`` is empty, or stands in more than `MOST_PLACES` places.
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
    request = _Request(text, old, new, _ends_of(text), replace_all, shown)
    reason = ""
    try:
        placement = _characters(request) or _lines(request)
        if placement is None and (bare := unnumbered(old, new)) is not None:
            placement = _without_numbers(request, *bare)
    except RebaseError as uncertain:
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


def _without_numbers(request: _Request, old: str, new: str) -> MatchResult | None:
    """The match of a request without the line numbers in its texts."""
    if old == new:
        raise _no_change(request.shown)
    bare = _Request(request.text, old, new, request.ends, request.every, request.shown)
    placement = _characters(bare) or _lines(bare)
    if placement is None:
        return None
    others = [step for step in placement.steps if step != "exact"]
    steps = [step for step in STEPS if step == "line numbers" or step in others]
    return replace(placement, steps=tuple(steps))


# -- found by its characters --------------------------------------------------------------


def _characters(request: _Request) -> MatchResult | None:
    """The first of the strict steps that finds something.

    Raises:
        AmbiguousMatchError: There are several places.
        NoChangeError: The text would stay as it is.
    """
    for step, prepare in _STRICT.items():
        search = prepare(request.text, request.old, request.new, request.ends)
        if search is None:
            continue
        try:
            only = search.only()
        except LookupError:
            continue
        if only is None and not request.every:
            raise _ambiguous(request, search)
        spans = (only,) if only else tuple(islice(search.spans(), MOST_PLACES + 1))
        if len(spans) > MOST_PLACES:
            raise _too_many(request, search.count())
        breaks = 0
        if not request.new and request.old[-1] not in "\r\n":
            ends = (*(start for start, _ in spans[1:]), len(request.text))
            longer = tuple(map(_with_break, repeat(request.text), spans, ends))
            breaks = sum(map(tuple.__ne__, longer, spans))
            spans = longer
        edits = tuple(
            Edit(start, end, _fit(request.text, request.ends, search.new, start, end))
            for start, end in spans
        )
        if all(request.text[edit.start : edit.end] == edit.text for edit in edits):
            raise _no_change(request.shown)
        sent = request.old, request.new
        asked = tuple(
            RequestMatch(edit.start, edit.end, edit.text, *sent, every=request.every)
            for edit in edits
        )
        return MatchResult(EditList(edits), (step,), spans, request.text, breaks, asked)
    return None


def _with_break(text: str, span: tuple[int, int], most: int) -> tuple[int, int]:
    """A place that goes away; where it is whole lines, with the end of the last, if that is not of the next place."""
    start, end = span
    if start and text[start - 1] not in "\r\n":
        return span
    after = next((len(one) for one in ("\r\n", "\n", "\r") if text.startswith(one, end)), 0)
    return start, end + after if end + after <= most else end


def _ends_of(text: str) -> _Ends:
    """The kind of line ends, found without a look at all lines."""
    if "\r" not in text:
        return "lf"
    if "\n" not in text:
        return "cr"
    return "wide" if "\r\n" in text else "lf"


@dataclass(frozen=True, slots=True)
class _Search:
    """The search of one step for the places of a text.

    Attributes:
        text: The text to search, or a form of it.
        needle: What to find in there.
        origin: From an offset in ``text`` to the one in the text; None when they are the same.
        new: The text to put there, before it takes the line ends of the place.
    """

    text: str
    needle: str
    origin: Callable[[int], int] | None
    new: str

    def spans(self) -> Iterator[tuple[int, int]]:
        """Ranges of the text, left to right, none overlapping the one before."""
        size = len(self.needle)
        at = self.text.find(self.needle)
        while at != -1:
            yield self._span(at, at + size)
            at = self.text.find(self.needle, at + size)

    def only(self) -> tuple[int, int] | None:
        """The one place; None when there are several, even if they overlap.

        Raises:
            LookupError: There is none.
        """
        at = self.text.find(self.needle)
        if at == -1:
            raise LookupError
        if self.text.find(self.needle, at + 1) != -1:
            return None
        return self._span(at, at + len(self.needle))

    def count(self) -> int:
        """The number of places, of several; at least 2, since matches may overlap."""
        return max(self.text.count(self.needle), 2)

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return (start, end) if self.origin is None else (self.origin(start), self.origin(end))


def _exact(text: str, old: str, new: str, ends: _Ends) -> _Search | None:
    """Search for exactly the same characters."""
    if ends == "wide" and "\n" in old and "\r" not in old:
        # Such a text cannot mean one kind of line end among others, and its first LF must not
        # be taken for the second half of a CRLF.
        return None
    return _Search(text, old, None, new)


def _line_ends(text: str, old: str, new: str, ends: _Ends) -> _Search | None:
    """Search for the same characters, with every line end as LF."""
    if "\n" not in old:
        return None
    bare = old.replace("\r\n", "\n")
    if bare != old:
        # An author who sees CRLF where the file has something else sees it everywhere.
        new = new.replace("\r\n", "\n")
    match ends:
        case "cr":
            return _Search(text.replace("\r", "\n"), bare.replace("\r", "\n"), None, new)
        case "wide":
            return _wide(text, bare, new)
        case "lf":
            return _Search(text, bare, None, new) if bare != old else None


_STRICT: dict[Step, Callable[[str, str, str, _Ends], _Search | None]] = {
    "exact": _exact,
    "line ends": _line_ends,
}
"""The steps that overlook at most the kind of line end, in their order."""


def _wide(text: str, old: str, new: str) -> _Search | None:
    hay = text.replace("\r\n", "\n")
    if old not in hay:
        return None
    if len(text) - len(hay) == hay.count("\n"):
        return _Search(hay, old, lambda offset: offset + hay.count("\n", 0, offset), new)
    # Where in the searched text the LFs stand that were CRLF.
    wide = [match.start() - i for i, match in enumerate(re.finditer("\r\n", text))]
    return _Search(hay, old, lambda offset: offset + bisect_left(wide, offset), new)


def _fit(text: str, ends: _Ends, new: str, start: int, end: int) -> str:
    """The new text with the line ends of its place ``[start, end)``."""
    if "\n" not in new:
        return new
    if ends != "wide":
        return adopt_line_ends(new, "\r" if ends == "cr" else "\n" if "\n" in text else "")
    if line_ends(new) == "crlf":
        return new
    region = text[start:end]
    if "\n" not in region:
        # Within one line: the line's own end, or at the end of the text the one before.
        after = text.find("\n", end)
        after = text.rfind("\n", 0, start) if after == -1 else after
        region = text[max(after - 1, 0) : after + 1]
        region = region if region == "\r\n" else "\n"
    return adopt_line_ends(new, region)


# -- found by its lines -------------------------------------------------------------------


def _lines(request: _Request) -> MatchResult | None:
    """The one place whose lines equal those that were sent, but for blanks and typography.

    Raises:
        AmbiguousMatchError: There are several places, or the lines may be meant for another one.
        NoChangeError: The text would stay as it is.
        RebaseError: There is one, but the change cannot be carried over to it with certainty.
    """
    old, new = (part.replace("\r\n", "\n") for part in (request.old, request.new))
    if "\r" in old or "\r" in new:
        return None
    whole = old.endswith("\n")
    sent = old.removesuffix("\n").split("\n")
    separator = "\r" if request.ends == "cr" else "\n"
    places = find_alike(request.text, sent, separator)
    if not places:
        return None
    if len(places) > 1:
        raise _alike(request, places)
    (place,) = places
    if place.blank_lines_off + bool(place.blanks_at_edges) > 1 or place.blanks_at_edges > 2:
        return None
    rival = rival_of(request.text, place, sent, separator)
    if rival is not None:
        raise _rivalled(request, place, rival)
    if whole and new and not new.endswith("\n"):
        raise RebaseError("the new text lacks the line end that the old text has at its end")
    fresh = new.removesuffix("\n").split("\n") if whole else new.split("\n")
    if whole and not new:
        fresh = []
    edits = carry(request.text, place, sent, fresh)
    if not edits:
        raise _no_change(request.shown)
    start, end = place.start, place.after
    after = edits.apply(request.text)
    put = after[start : len(after) - len(request.text) + end]
    said = RequestMatch(start, end, put, request.old, request.new, exact=False)
    steps = _steps_of(request, place, sent)
    return MatchResult(edits, steps, ((start, end),), request.text, asked=(said,))


def _steps_of(request: _Request, place: LineMatch, sent: list[str]) -> tuple[Step, ...]:
    pairs = [
        (one, request.text[line.start : line.end])
        for one, line in zip(sent, place.lines, strict=True)
        if line is not None
    ]
    steps = differing([one for one, _ in pairs], [there for _, there in pairs])
    if place.blank_lines_off or place.blanks_at_edges:
        steps = (*steps, "blank line")
    return steps or ("line ends",)


def _lines_of(text: str, offsets: list[int]) -> tuple[int, ...]:
    """The 1-based line numbers of ascending offsets."""
    separator = "\r" if _ends_of(text) == "cr" else "\n"
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
    lines = _lines_of(request.text, starts)
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


def _too_many(request: _Request, count: int) -> InvalidParamsError:
    return InvalidParamsError(
        f"{request.shown}: the text to replace stands in {count:,} places, and at most "
        f"{MOST_PLACES:,} are replaced at once",
        hint="Send a longer text to replace, or the whole file with write_file.",
        count=count,
        limit=MOST_PLACES,
    )


def _alike(request: _Request, places: list[LineMatch]) -> AmbiguousMatchError:
    lines = _lines_of(request.text, [place.start for place in places])
    return AmbiguousMatchError(
        f"{request.shown}: the text to replace is not in the file as it was sent. Ignoring "
        f"blanks, blank lines and typography, it is in several places: lines "
        f"{', '.join(map(str, lines))}",
        hint="Send the lines exactly as the file has them at the place that is meant, with more "
        "of the lines around it.",
        lines=lines,
        count=len(places),
    )


def _rivalled(request: _Request, place: LineMatch, rival: int) -> AmbiguousMatchError:
    (line,) = _lines_of(request.text, [place.start])
    return AmbiguousMatchError(
        f"{request.shown}: the text to replace is not in the file as it was sent. Ignoring blanks, "
        f"blank lines and typography, it is at line {line}; but at line {rival} some of its "
        f"lines are exactly as they were sent, and others may have been rewritten",
        hint="Read both places again, and send the lines exactly as the file has them at the one "
        "that is meant.",
        lines=tuple(sorted((line, rival))),
        count=2,
    )


def _no_change(shown: str) -> NoChangeError:
    return NoChangeError(
        f"{shown}: the new text is the same as the old one",
        hint="Nothing was changed; send what should be different.",
    )

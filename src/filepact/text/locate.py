"""Where a text to be replaced stands: exactly there, once, or the request is refused.

The steps are tried in order and the first that finds something decides.  No step guesses: what
it finds is the same text but for what the step's name says, and two such places are two too many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

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
from filepact.text.nearest import explain_miss
from filepact.text.rivals import rival_of
from filepact.text.verbatim import STRICT, ends_of, fit

if TYPE_CHECKING:
    from filepact.text.alike import Alike
    from filepact.text.verbatim import Ends, Search

__all__ = ["MOST_PLACES", "Placement", "Step", "place"]

MOST_PLACES: Final = 200_000
"""Most places that are replaced at once."""

_LISTED = 20


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a replacement goes.

    Attributes:
        edits: What changes; for a place that was found by its lines only the lines that change.
        steps: How the places were found, strictest first; several where several slips come
            together.
        spans: The places, in code points of the text.
        text: The text.
    """

    edits: EditList
    steps: tuple[Step, ...]
    spans: tuple[tuple[int, int], ...]
    text: str = field(repr=False)

    @property
    def lines(self) -> tuple[int, ...]:
        """The 1-based number of the line in which each place begins."""
        return _lines_of(self.text, [start for start, _ in self.spans])

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
        return f"{', '.join(self.steps)} ({'; '.join(STEPS[step] for step in self.steps)})"


@dataclass(frozen=True, slots=True)
class _Request:
    """A replacement that is asked for, and the kind of line ends of the text."""

    text: str
    old: str
    new: str
    ends: Ends
    every: bool
    shown: str


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
    request = _Request(text, old, new, ends_of(text), replace_all, shown)
    reason = ""
    try:
        placement = _characters(request) or _lines(request)
        if placement is None and (bare := unnumbered(old, new)) is not None:
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
    return Placement(placement.edits, tuple(steps), placement.spans, request.text)


# -- found by its characters --------------------------------------------------------------


def _characters(request: _Request) -> Placement | None:
    """The first of the strict steps that finds something.

    Raises:
        AmbiguousMatchError: There are several places.
        NoChangeError: The text would stay as it is.
    """
    for step, prepare in STRICT.items():
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
        edits = tuple(
            Edit(start, end, fit(request.text, request.ends, search.new, start, end))
            for start, end in spans
        )
        if all(request.text[edit.start : edit.end] == edit.text for edit in edits):
            raise _no_change(request.shown)
        return Placement(EditList(edits), (step,), spans, request.text)
    return None


# -- found by its lines -------------------------------------------------------------------


def _lines(request: _Request) -> Placement | None:
    """The one place whose lines are those that were sent, but for blanks and typography.

    Raises:
        AmbiguousMatchError: There are several places, or the lines may be meant for another one.
        NoChangeError: The text would stay as it is.
        Uncertain: There is one, but the change cannot be carried over to it with certainty.
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
        raise Uncertain("the new text lacks the line end that the old text has at its end")
    fresh = new.removesuffix("\n").split("\n") if whole else new.split("\n")
    if whole and not new:
        fresh = []
    edits = carry(request.text, place, sent, fresh)
    if not edits:
        raise _no_change(request.shown)
    span = place.start, place.after
    return Placement(edits, _steps_of(request, place, sent), (span,), request.text)


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


def _lines_of(text: str, offsets: list[int]) -> tuple[int, ...]:
    """The 1-based line numbers of ascending offsets."""
    separator = "\r" if ends_of(text) == "cr" else "\n"
    numbers = []
    line, at = 1, 0
    for offset in offsets:
        line += text.count(separator, at, offset)
        numbers.append(line)
        at = offset
    return tuple(numbers)


# -- refusals -----------------------------------------------------------------------------


def _ambiguous(request: _Request, search: Search) -> AmbiguousMatchError:
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


def _alike(request: _Request, places: list[Alike]) -> AmbiguousMatchError:
    lines = _lines_of(request.text, [place.start for place in places])
    return AmbiguousMatchError(
        f"{request.shown}: the text to replace is not in the file as it was sent, and but for "
        f"blanks, blank lines and typography it stands in several places, lines "
        f"{', '.join(map(str, lines))}",
        hint="Send the lines exactly as the file has them at the place that is meant, with more "
        "of the lines around it.",
        lines=lines,
        count=len(places),
    )


def _rivalled(request: _Request, place: Alike, rival: int) -> AmbiguousMatchError:
    (line,) = _lines_of(request.text, [place.start])
    return AmbiguousMatchError(
        f"{request.shown}: the text to replace is not in the file as it was sent. But for blanks, "
        f"blank lines and typography it stands at line {line}; but at line {rival} some of its "
        f"lines stand exactly as they were sent, and others may have been rewritten",
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

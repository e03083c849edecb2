"""Places several replacements in one text, one after the other, all or none.

Each is placed on the result of those before it.  One that touches a character which an earlier
one wrote must lie wholly inside what that one put there, and match it exactly.  A place that
reaches across the border would mix what the author saw with what the author only intends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from filepact.errors import FilepactError, InvalidParamsError, NoChangeError
from filepact.text.edit import Edit, EditList
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.text.edit import RequestMatch
    from filepact.text.locate import MatchResult

__all__ = ["EditRequest", "EditSet", "place_all"]

_NOBODY = "\0"


@dataclass(frozen=True, slots=True)
class EditRequest:
    """One requested replacement.

    Attributes:
        old: What to replace.
        new: What to put there.
        replace_all: Replace every place; else there has to be exactly one.
    """

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class EditSet:
    """Several replacements, placed.

    Attributes:
        edits: What all of them do together, in places of the text before the first.
        placements: Each one's own, in places of the text before it.
        every: Which of them replace every place.
        exact: Whether each was found character by character.
        steps: What was sent, at its places: each replacement in the text after those before it.
    """

    edits: EditList
    placements: tuple[MatchResult, ...]
    every: Literal["none", "some", "all"] = "none"
    exact: bool = True
    steps: tuple[tuple[RequestMatch, ...], ...] = ()


def place_all(
    text: str,
    wanted: Sequence[EditRequest],
    *,
    name: str = "",
    check: Callable[[], None] = lambda: None,
) -> EditSet:
    """Place replacements one after the other.

    Args:
        text: The text before all of them.
        wanted: The replacements in order, at least one and at most 50,000; with more than one,
            errors say which it is about.
        name: How the file is called in messages.
        check: Asked before each; raises to end the work.

    Raises:
        InvalidParamsError: One is empty, or reaches across what an earlier one wrote.
        NoChangeError: One of them would change nothing, or all together leave the text as it is.
        AmbiguousMatchError: One has several places.
        StringNotFoundError: One has no place.
    """
    from filepact.text.locate import place  # noqa: PLC0415 - a server that only reads needs none of it

    if len(wanted) == 1:
        (one,) = wanted
        only = place(text, one.old, one.new, replace_all=one.replace_all, name=name)
        return EditSet(
            only.edits, (only,), "all" if one.replace_all else "none", only.exact, (only.asked,)
        )
    marks = _Marks(text, name or "the file")
    now = text
    placements = []
    for number, one in enumerate(wanted, 1):
        check()
        try:
            placement = place(now, one.old, one.new, replace_all=one.replace_all, name=name)
        except FilepactError as error:
            raise _numbered(error, number, len(wanted)) from None
        marks.add(placement, number)
        now = placement.edits.apply(now)
        placements.append(placement)
    if now == text:
        raise NoChangeError(
            f"{name or 'the file'}: the edits together leave the file as it is",
            hint="Nothing was changed; read the file again if you expected otherwise.",
        )
    kinds = {one.replace_all for one in wanted}
    every: Literal["none", "some", "all"] = (
        "some" if len(kinds) == 2 else "all" if kinds.pop() else "none"
    )
    exact = all(one.exact for one in placements)
    steps = tuple(one.asked for one in placements)
    return EditSet(EditList.between(text, now), tuple(placements), every, exact, steps)


def _numbered(error: FilepactError, number: int, count: int) -> FilepactError:
    """The error, saying which replacement it is about."""
    return type(error)(
        f"edit {number} of {count}: {error.message}",
        hint=f"{error.hint} None of the edits was made.",
        **error.details,
    )


# -- who wrote what -----------------------------------------------------------------------


class _Marks:
    """For each character of the text as it is now, which replacement it is from.

    Two strings that are as long as the text and are edited as the text is, so that the cost is
    that of the text's own edits.
    """

    __slots__ = ("placed", "shown", "writers")

    def __init__(self, text: str, shown: str) -> None:
        self.writers = _NOBODY * len(text)
        self.placed = self.writers
        self.shown = shown

    def add(self, placement: MatchResult, number: int) -> None:
        """Check one more replacement, and mark what it writes.

        Raises:
            InvalidParamsError: It reaches across what an earlier one wrote.
        """
        if self.writers.strip(_NOBODY):
            for start, end in placement.spans:
                other = self._crossed(start, end, exact=placement.exact)
                if other is not None:
                    raise InvalidParamsError(
                        f"{self.shown}: edits {other} and {number} overlap: edit {number} "
                        f"reaches across the border of what edit {other} wrote",
                        hint="Make one edit of the two, or let the later one replace only text "
                        "that the earlier one leaves alone. None of the edits was made.",
                        edits=(other, number),
                    )
        sign = chr(number)
        written = placement.edits.trim(placement.text)
        self.writers = _marked(written, self.writers, sign)
        self.placed = _claimed(self.placed, placement, sign)

    def _crossed(self, start: int, end: int, *, exact: bool) -> int | None:
        """The replacement that wrote a part of this place without enclosing it."""
        for sign in sorted(set(self.writers[start:end]) - {_NOBODY}):
            if not exact or self.placed[start:end].strip(sign):
                return ord(sign)
        return None


def _marked(edits: EditList, marks: str, sign: str) -> str:
    return EditList(
        tuple(Edit(edit.start, edit.end, sign * len(edit.text)) for edit in edits.edits)
    ).apply(marks)


def _claimed(marks: str, placement: MatchResult, sign: str) -> str:
    """Marks after a replacement whose whole places, as they are then, are its own."""
    grown = [0] * len(placement.spans)
    at = 0
    for edit in placement.edits.edits:
        while edit.start > placement.spans[at][1]:
            at += 1
        grown[at] += len(edit.text) - (edit.end - edit.start)
    claims = [
        Edit(start, end, sign * max(end - start + more, 0))
        for (start, end), more in zip(placement.spans, grown, strict=True)
    ]
    return EditList(tuple(claims)).apply(marks)

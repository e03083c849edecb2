"""What was made for the text that a session knows, brought to what the file holds now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.errors import (
    AmbiguousMatchError,
    FilepactError,
    PatchAmbiguousError,
    StaleFileError,
)
from filepact.text.bearings import lost_place
from filepact.text.diff import cut_diff, unified
from filepact.text.edit import EditList
from filepact.text.lines import line_ends, with_line_ends_of
from filepact.text.merge import merge
from filepact.workspace.seen import Known
from filepact.workspace.target import Target, existing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DIFF_IN_ERROR", "Carried", "carried", "placed", "since"]

DIFF_IN_ERROR = 4_000
"""Characters of a difference in a refusal or a note."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A change of a file that may have moved.

    Attributes:
        edits: The change, in places of what the file holds now.
        known: What the session knows of the file then; None where the change says it.
        notes: Sentences for the answer.
    """

    edits: EditList
    known: Known | None = None
    notes: tuple[str, ...] = ()


def placed(target: Target, make: Callable[[str], EditList]) -> Carried:
    """Edits of what a file holds now.

    They were made for what the session knows.  When the file moved since, they are placed there and
    carried over; only what does not fit there is looked for in the present text.

    Args:
        target: An existing file.
        make: Computes the edits for a text; raises when they do not fit it.

    Raises:
        StaleFileError: Their place in the present text is not certain.
    """
    document, seen = existing(target), target.seen
    if not target.moved or seen is None:
        return Carried(make(document.text))
    try:
        text = seen.text
        if text == document.text:
            return Carried(make(text))
        edits = make(text)
    except FilepactError as error:
        edits = make(document.text)
        if isinstance(error, AmbiguousMatchError | PatchAmbiguousError):
            # One of several places is left, and nobody said that it was this one.
            raise _stale(target, "what you send stood in several places when you read it") from None
        note = "The file had changed since you read it; the edit fits what it holds now."
        return Carried(edits, notes=(note,))
    found = carried(target, seen, edits.apply(text))
    return Carried(found.edits, seen.edited(edits), found.notes)


def carried(target: Target, seen: Known, mine: str) -> Carried:
    """A session's whole text, brought line by line into a file that moved since it was read.

    The session goes on knowing its own text: made from that, its next change is merged again.

    Args:
        target: An existing file.
        seen: What the session knows of it.
        mine: The text that it made of what it knows.

    Raises:
        StaleFileError: Both sides changed the same lines, or a place is not certain.
    """
    now = existing(target).text
    known, wanted = (with_line_ends_of(now, text) for text in (seen.text, mine))
    merged = merge(known, wanted, now)
    if merged.text is None:
        raise _stale(target, "somebody changed the same lines since you read it")
    lost = lost_place(known, wanted, now)
    if lost is not None:
        raise _stale(
            target,
            f"somebody changed it since you read it, and whether line {lost.line} of what you "
            f"read is line {lost.there} now is not certain: {lost.why}",
        )
    note = (
        "The file had changed since you read it; both changes were merged, line by line:\n"
        + since(target)
    )
    edits = EditList.between(now, merged.text)
    return Carried(edits, Known(mine, seen.revision), (note,))


def since(target: Target) -> str:
    """What happened to a file since the session read it, as a diff."""
    if target.seen is None or target.document is None:
        return ""
    name, now = target.spot.shown, target.document.text
    known = with_line_ends_of(now, target.seen.text)
    ends = (
        f"(its line ends were {line_ends(target.seen.text)} and are {line_ends(now)})\n"
        if known != target.seen.text
        else ""
    )
    return ends + cut_diff(unified(known, now, old_name=name, new_name=name), DIFF_IN_ERROR)


def _stale(target: Target, why: str) -> StaleFileError:
    return StaleFileError(
        f"{target.spot.shown}: {why}:\n{since(target)}",
        hint="Read the file again and make the change for what it holds now.",
        path=target.spot.shown,
        revision=existing(target).revision.short,
    )

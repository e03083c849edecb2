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
from filepact.text.bearings import Lost, lost_place
from filepact.text.diff import cut_diff, unified
from filepact.text.edit import EditList
from filepact.text.lines import adopt_line_ends, line_ends, with_line_ends_of
from filepact.text.merge import merge
from filepact.workspace.seen import Known
from filepact.workspace.target import Target, existing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DIFF_IN_ERROR", "Carried", "carried", "kept_typed", "placed", "since"]

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
    edits, lost = _joined(target, seen.text, mine)
    if edits is None:
        why = "somebody changed the same lines since you read it"
        if lost is not None:
            why = (
                f"somebody changed it since you read it, and whether line {lost.line} of what you "
                f"read is line {lost.there} now is not certain: {lost.why}"
            )
        raise _stale(target, why)
    note = (
        "The file had changed since you read it; both changes were merged, line by line:\n"
        + since(target)
    )
    return Carried(edits, Known(mine, seen.revision), (note,))


def kept_typed(target: Target, saved: str, mine: str) -> Carried:
    """A whole text of a session that never read the file, beside what an editor holds unsaved.

    The session can know no more than the disk has, so it means to take nothing away that was typed.

    Args:
        target: An existing file.
        saved: The text that the disk has.
        mine: The text that it is to have.

    Raises:
        StaleFileError: Somebody typed in lines that the new text changes, or a place is not
            certain.
    """
    name, revision = target.spot.shown, existing(target).revision
    text = adopt_line_ends(mine, saved)
    edits, _ = _joined(target, saved, text)
    if edits is None:
        told = {} if target.hidden else {"revision": revision.short}
        raise StaleFileError(
            f"{name}: an editor holds unsaved text of it, in the same lines",
            hint="Read the file, which shows what was typed, and make the change for that.",
            path=name,
            **told,
        )
    return Carried(
        edits, Known(text, revision), (f"{name}: the unsaved text of an editor was kept.",)
    )


def _joined(target: Target, base: str, mine: str) -> tuple[EditList | None, Lost | None]:
    """What leads from one text to another, as edits of what the file holds now.

    None where both changed the same lines, or a place is not certain; the latter is said.
    """
    now = existing(target).text
    known, wanted = (with_line_ends_of(now, text) for text in (base, mine))
    merged = merge(known, wanted, now)
    if merged.text is None:
        return None, None
    lost = lost_place(known, wanted, now)
    return (EditList.between(now, merged.text) if lost is None else None), lost


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

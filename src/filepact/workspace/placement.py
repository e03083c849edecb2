"""The place of what was sent, in a file that may have changed since it was read."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

from filepact.errors import (
    AmbiguousMatchError,
    FilepactError,
    PatchAmbiguousError,
    PatchContextMismatchError,
    StaleFileError,
    StringNotFoundError,
)
from filepact.text.codec import rewrite
from filepact.text.compare import compare_lines
from filepact.text.edit import EditList, TextRequest, merge, prove, replaced
from filepact.text.landmarks import ChangeConflict, has_slid, is_same_run, lost_place
from filepact.text.lines import (
    adopt_line_ends,
    line_ends,
    line_range,
    split_lines,
    with_line_ends_of,
)
from filepact.text.page import beginning
from filepact.text.raw_bytes import RawByteText, holds_raw_bytes
from filepact.values import dataclass, replace
from filepact.workspace.read_tracker import KnownText
from filepact.workspace.target import DIFF_IN_NOTE, existing, since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.domain.document import Document
    from filepact.text.edit import RequestMatch
    from filepact.workspace.read_tracker import Span
    from filepact.workspace.target import Target

__all__ = [
    "EditResult",
    "Made",
    "RebasedFile",
    "as_shown",
    "carried_whole",
    "edits_of",
    "holds_already",
    "kept_typed",
    "placed",
]


class EditResult(Protocol):
    """A tool's edits of one text, with whatever else it says about them."""

    @property
    def edits(self) -> EditList: ...

    @property
    def exact(self) -> bool:
        """Whether all that was sent as the text before stands there word for word."""

    @property
    def every(self) -> Literal["none", "some", "all"]:
        """Which of the edits are meant for every place of what they replace."""

    @property
    def steps(self) -> tuple[tuple[RequestMatch, ...], ...]:
        """The replacements that were sent, at their places: each step in the text after the one before; empty where that is not told."""


Made = TypeVar("Made", bound=EditList | EditResult)
"""The edits that a tool makes of a text, or what has them."""


def edits_of(made: EditList | EditResult) -> EditList:
    """The edits that a tool has made."""
    return made if isinstance(made, EditList) else made.edits


def as_shown(make: Callable[[str], Made]) -> Callable[[str], Made]:
    """A tool's way to make edits, which is given a text as it is shown where they do not fit it as it is."""

    def made(text: str) -> Made:
        try:
            return make(text)
        except (PatchContextMismatchError, StringNotFoundError):
            if not holds_raw_bytes(text):
                raise
            shown = RawByteText(text)
            found: Any = make(shown.shown)
            edits = shown.edits(edits_of(found))
            if edits is None:
                raise
            if isinstance(found, EditList):
                return cast("Made", edits)
            prove(shown.shown, found.edits.apply(shown.shown), _asked(found))
            return cast("Made", replace(found, edits=edits, steps=()))

    return made


@dataclass(frozen=True, slots=True)
class RebasedFile(Generic[Made]):
    """A change of a file that may have moved.

    Attributes:
        edits: The change, in places of what the file holds now.
        known: What the session knows of the file then; None where the change says it.
        notes: Sentences for the answer.
        made: The edits as the tool made them, for what the session knows or for the present text.
        asked: What they were made of.
    """

    edits: EditList
    asked: TextRequest
    known: KnownText | None = None
    notes: tuple[str, ...] = ()
    made: Made | None = None

    def bytes_of(self, target: Target) -> bytes:
        """The bytes that the file is to hold: what was asked for and nothing else."""
        source, name = existing(target).source, target.location.shown
        return rewrite(source, self.edits, name=name, asked=self.asked)

    def text_of(self, target: Target) -> str:
        """The text of these bytes, of a file that may go away with it."""
        before = existing(target).text
        return prove(before, self.edits.apply(before), self.asked, target.location.shown)


def placed(target: Target, make: Callable[[str], Made]) -> RebasedFile[Made]:
    """Edits of what a file holds now.

    They were made for what the session knows.  When the file moved since, they are placed there and
    carried over; only what does not fit there is looked for in the present text.  An old text with one
    place in what is known and several now is refused, and one of which every place is meant is replaced
    in the present text.

    Args:
        target: An existing file.
        make: Computes the edits for a text; raises when they do not fit it.

    Raises:
        StaleFileError: Their place in the present text is not certain.
        AmbiguousMatchError: An old text has several places by now.
        PatchAmbiguousError: So have the lines of a hunk.
    """
    document, seen = existing(target), target.seen
    if not target.moved or seen is None or seen.text == document.text:
        made = make(document.text)
        return RebasedFile(edits_of(made), _asked(made), made=made)
    seen = seen.with_ends_of(document.text)
    then, now = _tried(make, seen.text), _tried(make, document.text)
    better = not isinstance(now, FilepactError) and _is_exact(now) and not _is_exact(then)
    if isinstance(then, FilepactError) or (
        better and _is_one_place(now, document.text, then, seen)
    ):
        if isinstance(now, FilepactError):
            raise now
        if isinstance(then, AmbiguousMatchError | PatchAmbiguousError):
            # One of several places is left, and nobody said that it was this one.
            raise _stale(target, "the text you sent was in several places when you read the file")
        note = "The file had changed since you read it; the edit fits what it holds now."
        return RebasedFile(edits_of(now), _asked(now), notes=(note,), made=now)
    if isinstance(now, AmbiguousMatchError | PatchAmbiguousError) and not now.details.get("stated"):
        raise now
    every, sent = _said(then)
    if better and every == "none":
        raise _stale(
            target, "the text you sent stands elsewhere by now, and where it was only much like it"
        )
    if isinstance(now, FilepactError):
        if every != "none":
            raise _stale(target, "somebody changed the places of a text to be replaced everywhere")
    elif every == "all" or (every == "some" and _keeps_places(target, seen, then, now)):
        note = f"The file had changed since you read it; each place that it has now was changed:\n{since(target, DIFF_IN_NOTE)}"
        return RebasedFile(edits_of(now), _asked(now), notes=(note,), made=now)
    elif _is_known_again(seen, document.text, sent, _said(now)[1]):
        note = "The file is again as you knew it before; the edit was made in that."
        return RebasedFile(edits_of(now), _asked(now), notes=(note,), made=now)
    try:
        found = _carried(target, seen, edits_of(then).apply(seen.text), sent, _asked(then))
    except StaleFileError:
        if every != "none" or isinstance(now, FilepactError):
            raise
        if not _is_same_place(now, document.text, then, seen):
            raise
        note = _what_changed(target, seen, document.text)
        return RebasedFile(edits_of(now), _asked(now), seen.edited(edits_of(then)), (note,), now)
    if (
        every != "none"
        and not isinstance(now, FilepactError)
        and found.edits.apply(document.text) != edits_of(now).apply(document.text)
    ):
        raise _stale(target, "a text to be replaced everywhere has other places now")
    return RebasedFile(found.edits, found.asked, seen.edited(edits_of(then)), found.notes, then)


def _what_changed(target: Target, seen: KnownText, text: str) -> str:
    """A sentence about a file that others changed beside an edit: its layout alone, or what the difference shows."""
    before, after = _plain(seen.text, text)
    if before == after:
        return (
            "The layout of the file was changed since you read it; the edit fits what it holds now."
        )
    return (
        "The file had changed since you read it; the edit fits what it holds now:\n"
        f"{since(target, DIFF_IN_NOTE)}"
    )


def _tried(make: Callable[[str], Made], text: str) -> Made | FilepactError:
    try:
        return make(text)
    except FilepactError as error:
        return error


def _is_exact(made: EditList | EditResult | FilepactError) -> bool:
    return isinstance(made, EditList) or (not isinstance(made, FilepactError) and made.exact)


def _is_one_place(now: Made | FilepactError, text: str, then: Made, seen: KnownText) -> bool:
    """Whether edits fit a text and a known one at the same place but for its layout; or that text was known before."""
    if isinstance(now, FilepactError) or any(one == text for one, _ in seen.older):
        return not isinstance(now, FilepactError)
    return _is_same_place(now, text, then, seen)


def _is_same_place(now: Made, text: str, then: Made, seen: KnownText) -> bool:
    """Whether edits fit a text and a known one at the same place but for its layout."""
    base, mine = _plain(seen.text, edits_of(then).apply(seen.text))
    theirs, made = _plain(text, edits_of(now).apply(text))
    if merge(base, mine, theirs).text != made or lost_place(base, mine, theirs) is not None:
        return False
    # Lines that were sent are those there, as well: a blank one may have come from the other side.
    lines, others = split_lines(base), split_lines(theirs)
    runs = (
        [line_range(one, *span) for span in _said(what)[1]]
        for one, what in ((seen.text, then), (text, now))
    )
    before, after = runs
    return len(before) == len(after) and all(
        lines[slice(*one)] == others[slice(*other)] or is_same_run(lines, others, one, other)
        for one, other in zip(before, after, strict=True)
    )


def _plain(*texts: str) -> list[str]:
    """Texts as they would be with one blank for each step of depth, and with what a keyboard has."""
    from filepact.text.tolerant_match import body_of, fold, indent_of  # noqa: PLC0415 - readers need none

    sides = [[(indent_of(one), body_of(one)) for one in fold(text).splitlines()] for text in texts]
    sizes = [[(len(indent.expandtabs(8)), body) for indent, body in side] for side in sides]
    steps = sorted({size for side in sizes for size, body in side if body})
    return [
        "".join(f"{' ' * bisect_left(steps, size) if body else ''}{body}\n" for size, body in side)
        for side in sizes
    ]


def _said(made: EditList | EditResult) -> tuple[str, Sequence[Span]]:
    """Which edits are meant for every place, and where what was sent as the text before stands."""
    if isinstance(made, EditList):
        return "none", ()
    if made.every != "none":
        return made.every, ()
    return "none", [(one.start, one.end) for one in _asked(made).at_once() if one.old]


def _keeps_places(
    target: Target, seen: KnownText, then: EditList | EditResult, now: EditList | EditResult
) -> bool:
    """Whether what is meant for one place goes where it was sent to, beside what is meant for every place."""
    text = existing(target).text
    asked = [_asked(made) for made in (then, now)]
    before, after = (
        sorted((one for one in some.at_once() if not one.every), key=lambda one: one.start)
        for some in asked
    )
    singles = sum(not step[0].every for step in asked[0].steps)
    mine, wanted = replaced(seen.text, before), replaced(text, after)
    if mine is None or not singles == len(before) == len(after):
        return False
    spans = [(one.start, one.end) for one in before]
    found, _ = _joined(target, seen.text, mine, spans, TextRequest((tuple(before),)))
    return found is not None and found[0].apply(text) == wanted


def _asked(made: EditList | EditResult) -> TextRequest:
    """The request that a tool has made edits of; themselves, where it does not tell."""
    steps = () if isinstance(made, EditList) else made.steps
    return TextRequest(steps) if steps else TextRequest.as_made(edits_of(made))


def _is_known_again(
    seen: KnownText, text: str, before: Sequence[Span], after: Sequence[Span]
) -> bool:
    """Whether a text is one that the session knew before, with what was sent where it was since."""
    lines, others = split_lines(seen.text), split_lines(text)
    return (
        0 < len(before) == len(after)
        and any(one == text for one, _ in seen.older)
        and all(
            is_same_run(lines, others, line_range(seen.text, *one), line_range(text, *other))
            for one, other in zip(before, after, strict=True)
        )
    )


def _carried(
    target: Target,
    seen: KnownText,
    mine: str,
    sent: Sequence[Span] = (),
    of: TextRequest | None = None,
) -> RebasedFile[EditResult]:
    """A session's whole text, brought line by line into a file that moved since it was read.

    The session goes on knowing its own text: made from that, its next change is merged again.

    Args:
        target: An existing file.
        seen: What the session knows of it.
        mine: The text that it made of what it knows.
        sent: The parts of what it knows that it named as the text before.
        of: What it asked for; None for its whole text.

    Raises:
        StaleFileError: Both sides changed the same lines, or a place is not certain.
    """
    merged, lost = _joined(target, seen.text, mine, sent, of)
    if merged is None:
        why = "somebody changed the same lines since you read it"
        if lost is not None:
            why = (
                f"somebody changed it since you read it, and whether line {lost.line} of what you "
                f"read is line {lost.other_line} now is not certain: {lost.reason}"
            )
        raise _stale(target, why)
    note = "What others changed before was kept."
    if seen.revision.content != existing(target).revision.content:
        note = "The file had changed since you read it; both changes were merged, line by line:\n"
        note += since(target, DIFF_IN_NOTE)
    return RebasedFile(*merged, KnownText(mine, seen.revision), (note,))


def carried_whole(target: Target, seen: KnownText, mine: str) -> RebasedFile[EditResult]:
    """As `_carried`; a text that has what others brought in was made from that, by whatever way it was read.

    Raises:
        StaleFileError: Both sides changed the same lines, or a place is not certain.
    """
    try:
        return _carried(target, seen, mine)
    except StaleFileError:
        merged = _of_present(target, seen.text, mine)
        if merged is None:
            raise
    note = "The new text has most of what was changed since you read the file, and was taken for one of what it holds now; what was only put in stays. That was:\n"
    notes = (note + since(target, DIFF_IN_NOTE),)
    return RebasedFile(*merged, KnownText(mine, seen.revision), notes)


def _of_present(target: Target, base: str, mine: str) -> tuple[EditList, TextRequest] | None:
    """The edits of a text that was made from most of what others have made of ``base``; None where it was not.

    Lines that they only put in, and that it lacks, stay: they may have come last.
    """
    texts = (base, existing(target).text, mine)
    lines, now, sent = (split_lines(text) for text in texts)
    # Who has what they made has their layout.
    base_keys, keys, wanted = ([line.rstrip() for line in one] for one in (lines, now, sent))
    (went, came), (lost, put_in) = _differing(base_keys, keys), _differing(keys, wanted)
    # By place and not by number: a line of theirs may be one of mine by chance, and one that was moved came and went.
    kept, back = came.keys() - lost.keys(), {*went.values()} & {*put_in.values()}
    nearer = len(lost) + len(put_in) < sum(map(len, _differing(base_keys, wanted)))
    if back or not nearer or 4 * len(kept) < max(3 * len(came), 1):
        return None
    if all(came[at] in base_keys for at in kept):
        return None  # Lines that were there before may be mine by chance.
    for one in reversed(compare_lines(base_keys, keys)):
        if one.old_start == one.old_end and not any(
            line in wanted for line in keys[one.new_start : one.new_end] if line
        ):
            del now[one.new_start : one.new_end]
    for one in reversed(compare_lines(now, sent)):
        lacks = {line.rstrip() for line in now[one.old_start : one.old_end] if line.strip()}
        if one.new_start == one.new_end and not lacks.isdisjoint(came.values()):
            if not lacks <= {*came.values()}:
                return None
            del now[one.old_start : one.old_end]
    return _joined(target, "".join(now), mine)[0]


def _differing(old: list[str], new: list[str]) -> list[dict[int, str]]:
    """The lines of each text that are not blank and that the other one has not there, by their numbers."""
    spans = [(a.old_start, a.old_end, a.new_start, a.new_end) for a in compare_lines(old, new)]
    gone = {at: old[at] for span in spans for at in range(*span[:2]) if old[at]}
    return [gone, {at: new[at] for span in spans for at in range(*span[2:]) if new[at]}]


def kept_typed(target: Target, saved: str, mine: str) -> RebasedFile[EditResult]:
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
    name, revision = target.location.shown, existing(target).revision
    text = adopt_line_ends(mine, saved)
    merged, _ = _joined(target, saved, text)
    if merged is None:
        told = {} if target.hidden else {"revision": revision.short}
        raise StaleFileError(
            f"{name}: an editor holds unsaved text of it, in the same lines",
            hint="Read the file, which shows what was typed, and make the change for that.",
            path=name,
            **told,
        )
    return RebasedFile(
        *merged, KnownText(text, revision), (f"{name}: the unsaved text of an editor was kept.",)
    )


def holds_already(
    target: Target, before: Document | None, make: Callable[[str], EditList | EditResult]
) -> bool:
    """Whether an edit was sent once more that the session's own proposal holds.

    It is one for what the proposal starts from, and takes nothing away from where that ends.

    Args:
        target: The file as the proposal leaves it.
        before: What the proposal starts from; None for no proposal.
        make: Computes the edits for a text.
    """
    if before is None or target.document is None:
        return False
    try:
        mine = edits_of(make(before.text)).apply(before.text)
    except FilepactError:
        return False
    return merge(before.text, mine, target.document.text).text == target.document.text


def _joined(
    target: Target, base: str, mine: str, sent: Sequence[Span] = (), of: TextRequest | None = None
) -> tuple[tuple[EditList, TextRequest] | None, ChangeConflict | None]:
    """Rebase the difference of two texts onto the file's present text, with what was asked for.

    None where both changed the same lines, or a place is not certain; the latter is said.
    """
    now = existing(target).text
    known = with_line_ends_of(now, base)
    # The lines around a change say more of its ends than what others have put in since.
    wanted = with_line_ends_of(now if line_ends(known) == "none" else known, mine)
    merged = merge(known, wanted, now)
    if merged.text is None or (of and merged.text != now and _is_slid(base, of, now, merged.text)):
        return None, None
    lost = lost_place(known, wanted, now, [line_range(base, *one) for one in sent])
    steps = (of or TextRequest.whole(base, mine, mine)).steps
    proven = TextRequest(steps, base, merged.pieces)
    if (old := proven.doubled(now)) is not None:
        raise AmbiguousMatchError(
            f"{target.location.shown}: the text to replace stands in {now.count(old)} places by now, "
            f"and stood in one when you read the file: {beginning(old, 60)}",
            hint="Read the file again, and send more of the lines around the place that is meant.",
            path=target.location.shown,
        )
    return ((merged.edits, proven) if lost is None else None), lost


def _is_slid(base: str, of: TextRequest, now: str, merged: str) -> bool:
    """Whether a comparison puts a step of what was sent elsewhere than it was sent to, among lines that others changed."""
    text, there = base, now
    for step in of.steps:
        after = replaced(text, step)
        if after is None:
            return False  # The proof says so.
        known = with_line_ends_of(now, text)
        wanted = with_line_ends_of(now if line_ends(known) == "none" else known, after)
        if has_slid(known, wanted, there, _lines_sent(text, step)):
            return True
        if len(of.steps) > 1:
            # Of several each is made in what the one before it has left.
            there = merge(known, wanted, there).text or ""
        text = after
    return len(of.steps) > 1 and there != merged


def _lines_sent(text: str, step: Sequence[RequestMatch]) -> Iterator[tuple[int, int, int]]:
    """The lines of a text that a step is about, and how many they become."""
    end = "\n" if "\n" in text else "\r"
    for one in step:
        first, last = line_range(text, one.start, one.end)
        more = one.put.count(end) - text.count(end, one.start, one.end)
        yield from one.runs or [(first, last, last - first + more)]


def _stale(target: Target, why: str) -> StaleFileError:
    return StaleFileError(
        f"{target.location.shown}: {why}:\n{since(target)}",
        hint="Read the file again and make the change for what it holds now.",
        path=target.location.shown,
        revision=existing(target).revision.short,
    )

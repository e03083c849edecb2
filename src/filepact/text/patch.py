"""Applies a patch to a text: every hunk or none, and nothing guessed."""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from filepact.errors import FilepactError, PatchAmbiguousError, PatchContextMismatchError
from filepact.text.edit import Edit, EditList, RequestMatch
from filepact.text.lines import chomp, line_range, split_lines
from filepact.text.locate import place
from filepact.text.patch_model import (
    FilePatch,
    Hunk,
    already_applied,
    already_there,
    created_text,
    holds_more,
    reverse,
)
from filepact.text.patch_parse import is_envelope, parse
from filepact.text.patch_place import HunkMatcher
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "FilePatch",
    "Hunk",
    "PatchResult",
    "apply",
    "created_text",
    "is_envelope",
    "parse",
    "reverse",
]


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The edits that a patch makes in a text.

    Attributes:
        edits: The changes, as offsets in the text that was given.
        notes: What was not as the patch says, one sentence each.
        twins: Where the lines of a hunk stand as well, one sentence each, for whoever has not
            read the file.
        far: Hunks that stand far from their stated lines, with nothing else that says they belong
            there: number of the hunk, its stated line and its line, all from 1.
        asked: The hunks, at their places.
        exact: Whether all of them stand there as the patch has them.
    """

    edits: EditList
    notes: tuple[str, ...]
    twins: tuple[str, ...] = ()
    far: tuple[tuple[int, int, int], ...] = ()
    asked: tuple[RequestMatch, ...] = ()
    exact: bool = True


def apply(
    text: str, patch: FilePatch, *, name: str = "", check: Callable[[], None] = lambda: None
) -> PatchResult:
    """Find the place of every hunk and make the edits.

    Lines match without regard to their ends, unless the patch itself has both kinds; lines that
    stay keep their bytes, and added lines take the end that the file has there.

    Args:
        text: The whole text of the file.
        patch: One part of a parsed patch.
        name: How the file is called in errors.
        check: Asked before each hunk is placed; raises to end the work.

    Raises:
        PatchContextMismatchError: A line that the patch expects is not there.
        PatchAmbiguousError: A hunk fits in several places, none of them the stated one.
        PatchAlreadyAppliedError: The text already holds what the patch would make of it.
    """
    if patch.creates and text:
        raise already_applied(name) if created_text(patch) == text else already_there(name)
    applied = _applied(text, patch, name, check)
    if patch.deletes and applied.edits.apply(text):
        raise holds_more(name)
    return applied


def _applied(text: str, patch: FilePatch, name: str, check: Callable[[], None]) -> PatchResult:
    target = _Target.of(text, "\n", check)
    try:
        return _placed(target, patch, name)
    except (PatchContextMismatchError, PatchAmbiguousError) as error:
        if "\r" in text and "\n" not in text:
            # Patch programs see one line here, but whoever reads the file sees many.
            target = _Target.of(text, "\r", check)
            with suppress(PatchContextMismatchError):
                return _placed(target, patch, name)
        told = all(hunk.old_start is not None or hunk.anchors for hunk in patch.hunks)
        is_missing = isinstance(error, PatchContextMismatchError)
        if (is_missing or told) and _is_applied(target, patch, name):
            raise already_applied(name) from None
        if is_missing:
            with suppress(PatchContextMismatchError, PatchAmbiguousError):
                return _placed(target, patch, name, lenient=True)
            with suppress(FilepactError):
                if _distinguishes_ends(patch.hunks):
                    raise
                return _placed_alike(text, target, patch, name)
        raise


def _placed_alike(text: str, target: _Target, patch: FilePatch, name: str) -> PatchResult:
    """A patch of whose hunks some differ from the file in blanks or typography, each with one place.

    Such a hunk is placed as an edit is, and made anew of what the file has there.

    Raises:
        FilepactError: One has none, or several.
    """
    hunks: list[Hunk] = []
    notes: list[str] = []
    for number, hunk in enumerate(patch.hunks, 1):
        target.check()
        old, new = "".join(hunk.old), "".join(hunk.new)
        if not hunk.changes or not old or old in text:
            hunks.append(hunk)
            continue
        shorter = hunk.lines[:-1]
        if hunk.lines[-1].strip() in ("", "-") and shorter:
            ended = replace(hunk, lines=shorter)
            if ended.old and text.endswith("".join(ended.old)):
                hunks.append(ended)
                notes.append(
                    f"Hunk {number} has a blank line more than the end of the file; it was left out."
                )
                continue
        found = place(text, old, new, name=name)
        ((start, end),) = found.spans
        first, last = line_range(text, start, end)
        offset = sum(map(len, target.lines[:first]))
        there = "".join(target.lines[first:last])
        moved = EditList(
            tuple(Edit(e.start - offset, e.end - offset, e.text) for e in found.edits.edits)
        )
        signed = [
            *(f"-{line}" for line in target.lines[first:last]),
            *(f"+{line}" for line in split_lines(moved.apply(there))),
        ]
        hunks.append(replace(hunk, lines=tuple(signed)))
        notes.append(f"Hunk {number} was placed by: {found.words}.")
    made = _placed(target, replace(patch, hunks=tuple(hunks)), name)
    asked = tuple(
        replace(one, old="".join(sent.old), new="".join(sent.new), exact=False)
        for one, sent in zip(made.asked, patch.hunks, strict=True)
    )
    return replace(made, notes=(*notes, *made.notes), asked=asked, exact=not notes)


@dataclass(frozen=True, slots=True)
class _Target:
    """The lines of the file with their ends; ``end`` is LF, or CR where it has no LF at all."""

    lines: list[str]
    end: str
    check: Callable[[], None]

    @classmethod
    def of(cls, text: str, end: str, check: Callable[[], None]) -> _Target:
        lines = [line + end for line in text.split(end)]
        last = lines.pop().removesuffix(end)
        return cls([*lines, last] if last else lines, end, check)

    @property
    def open_end(self) -> bool:
        return bool(self.lines) and not self.lines[-1].endswith(self.end)

    def end_of(self, at: int) -> str:
        """The line end of one line; empty for the last line if it has none, and outside."""
        if not 0 <= at < len(self.lines) or not self.lines[at].endswith(self.end):
            return ""
        return "\r\n" if self.lines[at].endswith("\r\n") else self.end


def _placed(target: _Target, patch: FilePatch, name: str, *, lenient: bool = False) -> PatchResult:
    hunks, lines = patch.hunks, target.lines
    exact = _distinguishes_ends(hunks)
    placement = HunkMatcher(
        lines, exact=exact, open_end=target.open_end, name=name, lenient=lenient, check=target.check
    )
    places = placement.place(hunks)
    offsets = [0, *accumulate(map(len, lines))]
    notes = list(_notes(hunks, places, placement.loosened))
    alike = [
        exact or _ends_alike(lines[at : at + len(hunk.old)], hunk.old)
        for hunk, at in zip(hunks, places, strict=True)
    ]
    # An insertion without context follows the hunks that could be compared.
    compared = [same for hunk, same in zip(hunks, alike, strict=True) if hunk.old]
    bare_as_is = all(compared) if compared else exact or _are_mixed(lines)
    edits: list[Edit] = []
    asked: list[RequestMatch] = []
    for number, (hunk, at, same) in enumerate(zip(hunks, places, alike, strict=True)):
        writer = _Writer(target, hunk, as_is=same if hunk.old else bare_as_is)
        changes = list(writer.changes(at))
        for start, end, new in changes:
            _append(edits, offsets[start], offsets[end], new)
        asked.append(writer.asked(at, changes, offsets, loosened=number in placement.loosened))
        there = lines[at : at + len(hunk.old)]
        if not writer.as_is and hunk.old and _are_mixed((*there, *hunk.old)):
            note = "The line ends of the patch differ from the file's; the file's were kept."
            notes.extend([note] if note not in notes else [])
        if writer.as_is and hunk.old and not _are_mixed(hunk.old) and _are_mixed(hunk.new):
            ends = "LF" if there[0].endswith("\r\n") else "CRLF"
            notes.append(f"The patch adds lines that end in {ends}, unlike those around them.")
    twins = tuple(
        f"Hunk {number + 1} went to line {places[number] + 1} as its header says; the same lines stand "
        f"also at {_lines(others)}."
        for number, others in placement.twins.items()
    )
    far = tuple(placement.far(hunks, places))
    return PatchResult(EditList(tuple(edits)), tuple(notes), twins, far, tuple(asked))


def _lines(places: Sequence[int]) -> str:
    shown = ", ".join(str(at + 1) for at in places[:5]) + (", ..." if len(places) > 5 else "")
    return f"{'line' if len(places) == 1 else 'lines'} {shown}"


def _append(edits: list[Edit], start: int, end: int, new: str) -> None:
    if edits and edits[-1].end == start:
        last = edits.pop()
        start, new = last.start, last.text + new
    edits.append(Edit(start, end, new))


class _Writer:
    """The new lines of one hunk, with line ends as the file has them around there."""

    def __init__(self, target: _Target, hunk: Hunk, *, as_is: bool) -> None:
        self._target = target
        self._hunk = hunk
        self.as_is = as_is

    def changes(self, at: int) -> Iterator[tuple[int, int, str]]:
        """Each run of changed lines: file lines ``[start, end)`` and the text for them."""
        added: list[str] = []
        start = at
        for line in (*self._hunk.lines, " "):
            if line[0] == "-":
                at += 1
            elif line[0] == "+":
                added.append(line[1:])
            else:
                # Lines without context go below a last line that lacks its end.
                below = not self._hunk.old and start == len(self._target.lines)
                as_is = self.as_is and not (below and self._target.open_end)
                new = "".join(added) if as_is else self._adapted(start, at, added)
                if new != "".join(self._target.lines[start:at]):
                    yield start, at, new
                added, start, at = [], at + 1, at + 1

    def asked(
        self, at: int, changes: list[tuple[int, int, str]], offsets: list[int], *, loosened: bool
    ) -> RequestMatch:
        """The hunk as it was sent, at its place; of one whose context differs there, what it changes."""
        sent = list(self._hunk.lines)
        while loosened and sent[-1][0] == " ":
            sent.pop()
        while loosened and sent[0][0] == " ":
            sent.pop(0)
            at += 1
        old, new = ([line[1:] for line in sent if line[0] != sign] for sign in "+-")
        done, last, put = at, at + len(old), []
        for start, end, text in changes:
            put += [*self._target.lines[done:start], text]
            done = end
        put += self._target.lines[done:last]
        ends = self._hunk.at_end or any(one and one[-1][-1:] != "\n" for one in (old, new))
        told = self._hunk.old_start is not None or self._hunk.anchors or ends
        sides, every = ("".join(put), "".join(old), "".join(new)), None if told else False
        runs = tuple((start, end, len(split_lines(text))) for start, end, text in changes)
        return RequestMatch(offsets[at], offsets[last], *sides, every=every, runs=runs)

    def _adapted(self, start: int, end: int, added: list[str]) -> str:
        if not added:
            return ""
        parts = [chomp(line) + self._end_at(start, end, i) for i, line in enumerate(added)]
        if not added[-1].endswith("\n"):
            parts[-1] = added[-1]
        open_end = end == len(self._target.lines) and self._target.open_end
        if open_end and (not self._hunk.old or self._hunk.old[-1].endswith("\n")):
            # The patch does not know that the file lacks its last line end; it stays so.
            parts[-1] = chomp(added[-1])
            if start == end:
                parts.insert(0, self._end_at(start, end, 0))
        return "".join(parts)

    def _end_at(self, start: int, end: int, index: int) -> str:
        """The end for the added line ``index``: its predecessor's, or the nearest there is."""
        order = [min(start + index, end - 1)] if end > start else []
        order += [start - 1, start, start - 2]
        for at in order:
            if self._target.end_of(at):
                return self._target.end_of(at)
        return "\r\n" if self._hunk.lines[0].endswith("\r\n") else "\n"


def _is_applied(target: _Target, patch: FilePatch, name: str) -> bool:
    back = reverse(patch).hunks
    # The result of a bare removal is nothing, and nothing is found everywhere.
    if not back or not all(hunk.old for hunk in back):
        return False
    try:
        HunkMatcher(
            target.lines,
            exact=_distinguishes_ends(back),
            open_end=target.open_end,
            name=name,
            check=target.check,
        ).place(back)
    except (PatchContextMismatchError, PatchAmbiguousError):
        return False
    return True


def _notes(hunks: Sequence[Hunk], places: Sequence[int], loosened: Sequence[int]) -> Iterator[str]:
    for number, (hunk, at) in enumerate(zip(hunks, places, strict=True), 1):
        if hunk.repaired:
            yield f"The counts in the header of hunk {number} were wrong; its lines decided."
        if number - 1 in loosened:
            yield (
                f"Context of hunk {number} differs from the file at its edge; all lines that it "
                "removes were there, and the file's context was kept."
            )
        if hunk.old and hunk.old_start not in (None, at + 1):
            yield (
                f"Hunk {number} was placed at line {at + 1}; its header says line {hunk.old_start}."
            )


def _ends_alike(there: Sequence[str], old: Sequence[str]) -> bool:
    """Whether lines that are the same but for their ends have the same ends."""
    return all(a == b or chomp(a) != chomp(b) for a, b in zip(there, old, strict=False))


def _distinguishes_ends(hunks: Sequence[Hunk]) -> bool:
    """Whether the patch has lines with CRLF and lines with LF, so that the difference counts."""
    return _are_mixed(line for hunk in hunks for line in hunk.lines)


def _are_mixed(lines: Iterable[str]) -> bool:
    return len({line.endswith("\r\n") for line in lines if line.endswith("\n")}) > 1

"""Edits of a text as values, three-way merge by lines, and the proof that a result is what was asked.

A merge has both changes, or there is none; never markers, never a guess.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from filepact.errors import UnprovenError
from filepact.text.compare import compare_lines
from filepact.text.lines import common_head, common_tail, line_starts, middle_of, split_lines
from filepact.values import dataclass, late_regex, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from filepact.text.compare import DiffRange

__all__ = [
    "Edit",
    "EditList",
    "MergeResult",
    "RequestMatch",
    "TextRequest",
    "goes_on",
    "merge",
    "prove",
    "replaced",
]


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters ``[start, end)`` of the text before give way to ``text``; code points."""

    start: int
    end: int
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a range of a text: {self.start}..{self.end}")


@dataclass(frozen=True, slots=True)
class EditList:
    """Edits that happen at once, in ascending order; all places are those of the text before.

    Several insertions at one place stay in the order in which they are given.
    """

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        for before, after in zip(self.edits, self.edits[1:], strict=False):
            if before.end > after.start:
                raise ValueError(f"edits overlap or are out of order: {before}, {after}")

    def __bool__(self) -> bool:
        return bool(self.edits)

    @classmethod
    def between(cls, old: str, new: str) -> Self:
        """The edits, line by line, that make one text of another."""
        if old == new:
            return cls(())
        middle = middle_of(old, new)
        before, after = split_lines(middle.old), split_lines(middle.new)
        old_at, new_at = line_starts(before), line_starts(after)
        return cls(
            tuple(
                Edit(
                    middle.start + old_at[region.old_start],
                    middle.start + old_at[region.old_end],
                    middle.new[new_at[region.new_start] : new_at[region.new_end]],
                )
                for region in compare_lines(before, after)
            )
        )

    def apply(self, text: str) -> str:
        """The text after the edits.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        parts: list[str] = []
        at = 0
        for edit in self.edits:
            parts += (text[at : edit.start], edit.text)
            at = edit.end
        parts.append(text[at:])
        return "".join(parts)

    def trim(self, text: str) -> EditList:
        """These edits without the text at their ends that they leave as it is.

        Args:
            text: The text before.

        Raises:
            ValueError: An edit reaches beyond the text.
        """
        self._check_within(text)
        trimmed = []
        for edit in self.edits:
            old, new = text[edit.start : edit.end], edit.text
            if old == new:
                continue
            head = common_head(old, new)
            tail = common_tail(old[head:], new[head:])
            trimmed.append(Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail]))
        return EditList(tuple(trimmed))

    def following(self, others: EditList) -> EditList | None:
        """These edits shifted behind earlier ones; None where they overlap.

        What both add at one place stands in the order in which it was added.
        """
        found = []
        for edit in self.edits:
            moved = 0
            for one in others.edits:
                if one.end <= edit.start:
                    moved += len(one.text) - (one.end - one.start)
                elif one.start < edit.end:
                    return None
            found.append(Edit(edit.start + moved, edit.end + moved, edit.text))
        return EditList(tuple(found))

    def _check_within(self, text: str) -> None:
        if self.edits and self.edits[-1].end > len(text):
            raise ValueError(f"{self.edits[-1]} reaches beyond a text of {len(text)} characters")


Piece = tuple[str, str, str]
"""A part of the base of a merge, and what it is in both texts made of that: mine, and theirs."""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The outcome of a merge.

    Attributes:
        text: The merged text; None where both sides changed the same lines, each in its own way.
        pieces: The three texts in parts.
    """

    text: str | None
    pieces: tuple[Piece, ...]

    @property
    def edits(self) -> EditList:
        """The edits, line by line, that make the merged text of theirs."""
        found: list[Edit] = []
        at = 0
        for base, mine, theirs in self.pieces:
            if mine not in (base, theirs):
                edits = EditList.between(theirs, mine).edits
                found += [Edit(at + one.start, at + one.end, one.text) for one in edits]
            at += len(theirs)
        return EditList(tuple(found))


def merge(base: str, mine: str, theirs: str, told: Sequence[DiffRange] = ()) -> MergeResult:
    """Bring two changes of one text together.

    There is no result when both changed or removed a same line of the base, or both add lines at
    the same point, and what they made differs: then nobody but a person knows what is wanted.  Nor where
    both moved the same lines, each to another place, nor where nothing would be left of my change.
    Changes of neighbouring lines are both kept.  My changes may be ``told``; else the lines are compared.
    """
    pieces: list[Piece] = [(base, mine, theirs)]
    if mine != base and theirs not in (mine, base):
        pieces = []
        lines, own, other = split_lines(base), split_lines(mine), split_lines(theirs)
        at = own_at = other_at = 0
        for start, end, own_growth, other_growth in _groups(lines, own, other, told):
            same = "".join(lines[at:start])
            own_at, other_at = own_at + start - at, other_at + start - at
            own_end = own_at + end - start + own_growth
            other_end = other_at + end - start + other_growth
            parts = lines[start:end], own[own_at:own_end], other[other_at:other_end]
            pieces += (same, same, same), ("".join(parts[0]), "".join(parts[1]), "".join(parts[2]))
            at, own_at, other_at = end, own_end, other_end
        pieces += [("".join(lines[at:]),) * 3]
    return MergeResult(_met(pieces), tuple(pieces))


def _met(pieces: Sequence[Piece]) -> str | None:
    """The text that a merge makes of its parts; None where both sides have changed one, and differ."""
    if any(mine != base and theirs not in (base, mine) for base, mine, theirs in pieces):
        return None
    text = "".join(theirs if mine == base else mine for base, mine, theirs in pieces)
    if not all(mine in (base, theirs) for base, mine, theirs in pieces):
        return None if _is_uneven(pieces) or text == "".join(one[2] for one in pieces) else text
    return None if _is_uneven(pieces) else text


def _is_uneven(pieces: Sequence[Piece]) -> bool:
    """Whether a line that I changed stands more or less often in a merge than both changes together make of it.

    So it comes out where both moved it, and where a line that I put in is taken for one that they only moved.
    """
    mine_more, more, both = Counter[str](), Counter[str](), Counter[str]()
    for base, mine, theirs in pieces:
        sides = ((mine_more, mine), (more, theirs), (both, theirs if mine == base else mine))
        for counted, text in sides:
            if text != base:
                counted.update(line.rstrip() for line in split_lines(text))
                counted.subtract(line.rstrip() for line in split_lines(base))
    for line, own in mine_more.items():
        # What both sides put in, or took away, may be the same.
        alike = min(own, more[line], key=abs) if own * more[line] > 0 else 0
        least, most = sorted((own + more[line], own + more[line] - alike))
        if not least <= both[line] <= most:
            return True
    return False


def goes_on(base: str, mine: str, theirs: str) -> bool:
    """Whether my text was made from theirs and not from the base.

    Then it has each line that they put in, one of which at least stands nowhere in the base, and none that
    they took away and that stood once.
    """
    before = Counter(split_lines(base))
    changed, own = Counter(split_lines(theirs)), Counter(split_lines(mine))
    changed.subtract(before)
    own.subtract(before)
    return any(more > 0 and not before[line] for line, more in changed.items()) and all(
        own[line] >= more if more > 0 else own[line] <= more or before[line] > 1 or not line.strip()
        for line, more in changed.items()
        if more
    )


def _groups(
    base: list[str], own: list[str], other: list[str], told: Sequence[DiffRange]
) -> list[tuple[int, int, int, int]]:
    """Ranges of the base in which changes of both sides meet, and by how many lines each side is longer there."""
    changes = [(region, True) for region in told or compare_lines(base, own)]
    changes += [(region, False) for region in compare_lines(base, other)]
    changes.sort(key=lambda change: (change[0].old_start, change[0].old_end))
    # After a last line without an end nothing can follow, so there every seam is one place.
    ended = all(map(_is_ended, (base, own, other)))
    closed = -1 if ended else len(base)
    groups: list[tuple[int, int, int, int]] = []
    start = end = mine = yours = 0
    adds = False
    for region, is_own in changes:
        more = region.new_end - region.new_start - (region.old_end - region.old_start)
        # What only replaces has a clear order with its neighbours; two that add at one point have none.
        meets = region.old_start == end and (end == closed or (adds and more > 0))
        if groups and (meets or region.old_start < end):
            groups.pop()
        else:
            start, end, mine, yours, adds = region.old_start, region.old_start, 0, 0, False
        if region.old_end >= end:
            adds = more > 0 or (adds and region.old_end == end)
        end = max(end, region.old_end)
        mine, yours = mine + more * is_own, yours + more * (not is_own)
        groups.append((start, end, mine, yours))
    return groups


def _is_ended(lines: list[str]) -> bool:
    """Whether more lines can follow; a CR ends a line only where the text has no LF."""
    return not lines or lines[-1].endswith("\n") or (lines[0][-1] == lines[-1][-1] == "\r")


# -- proof -------------------------------------------------------------------------------------
#
# Places are found in many ways, and then joined, shifted and merged.  Before anything is written, the text is
# built once more from what was sent and the places alone.  Where it comes out as another one, it is refused.


_ENDS = late_regex(r"\r*\n|\r")
_MOST_MATCHES: Final = 500
"""So many replacements of several steps are looked at one by one, each beside those before it."""


@dataclass(frozen=True, slots=True)
class RequestMatch:
    """A replacement that was asked for, at the place that was found for it.

    Attributes:
        start: Where the place begins, in characters of the text before.
        end: Where it ends.
        put: What comes there.
        old: What was sent as standing there; None for whatever does.
        new: What was sent to come there.
        exact: Whether nothing but line ends is other than it was sent; else blanks and typography may be.
        every: Whether all places of ``old`` were meant, or the only one; None where more than that tells the place.
        runs: Lines of the text that go, from 0, each with the number of those that come; empty where nobody told.
    """

    start: int
    end: int
    put: str
    old: str | None
    new: str
    exact: bool = True
    every: bool | None = None
    runs: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TextRequest:
    """The request for a text, at the places that were found for it.

    Attributes:
        steps: Replacements that happen at once, each step on the result of the one before it.
        base: The text that the first step is for; None for the one that is changed.
        pieces: How the result of the steps, which is mine, meets what is changed, which is theirs; empty
            where nothing has to be merged.
    """

    steps: tuple[tuple[RequestMatch, ...], ...] = ()
    base: str | None = None
    pieces: tuple[Piece, ...] = ()

    @classmethod
    def whole(cls, before: str, put: str, sent: str) -> Self:
        """All of a text is to be another one."""
        return cls(((RequestMatch(0, len(before), put, None, sent),),))

    @classmethod
    def as_made(cls, edits: EditList) -> Self:
        """Edits of the text itself, as they are."""
        return cls(
            (tuple(RequestMatch(e.start, e.end, e.text, None, e.text) for e in edits.edits),)
        )

    def at_once(self) -> Iterator[RequestMatch]:
        """All replacements in the text before all steps; not those where an earlier step wrote, and none of very many."""
        if len(self.steps) > 1 and sum(map(len, self.steps)) > _MOST_MATCHES:
            return
        for number, step in enumerate(self.steps):
            for one in step:
                start, end = one.start, one.end
                for earlier in reversed(self.steps[:number]):
                    grown = _grown(earlier, start, end)
                    if grown is None:
                        break
                    start, end = start - grown, end - grown
                else:
                    yield replace(one, start=start, end=end, runs=())

    def doubled(self, before: str) -> str | None:
        """A text that had one place where it was to be replaced, and has several in what is changed."""
        base = before if self.base is None else self.base
        sent = (one.old for step in self.steps for one in step if one.old and not one.every)
        return next((old for old in sent if before.count(old) > 1 >= base.count(old)), None)


def _grown(step: Sequence[RequestMatch], start: int, end: int) -> int | None:
    """The characters by which a step has moved a range of the text after it; None where it wrote there."""
    grown = 0
    for one in step:
        at = one.start + grown
        if at + len(one.put) <= start:
            grown += len(one.put) - one.end + one.start
        elif at < end:
            return None
    return grown


def prove(before: str, after: str, asked: TextRequest, name: str = "") -> str:
    """A text that is another one with what was asked, each once at its place, and with nothing else.

    Args:
        before: The text that is changed.
        after: What is to be written.
        asked: What was asked, and where it belongs.
        name: How the file is called in errors.

    Raises:
        UnprovenError: It is not.
    """
    text: str | None = before if asked.base is None else asked.base
    for step in asked.steps:
        text = text if text is None else replaced(text, step)
    if asked.pieces and text is not None:
        base, mine, theirs = ("".join(side) for side in zip(*asked.pieces, strict=True))
        merged = asked.base is None or _bare(base) == _bare(asked.base)
        merged = merged and (not asked.steps or _bare(mine) == _bare(text)) and theirs == before
        text = _met(asked.pieces) if merged else None
    if text is None or after not in (text, text.removeprefix("\ufeff")) or asked.doubled(before):
        raise UnprovenError(
            f"{name or 'the file'}: what would be written is not what was asked",
            hint="This is a mistake in filepact: please report it. Read the file again, and make the change "
            "in smaller parts.",
            path=name,
        )
    return after


def replaced(text: str, step: Sequence[RequestMatch]) -> str | None:
    """A text with replacements at their places; None where one does not hold, or is not given, what was sent."""
    if not _is_counted(text, step):
        return None
    parts: list[str] = []
    at = 0
    for one in step:
        there, last = text[one.start : one.end], one.end == len(text)
        fits = at <= one.start <= one.end <= len(text)
        fits = fits and _is_as_sent(one.put, one.new, one, last=last)
        ended = last or not one.new  # the break of lines that go away is not always sent
        if not fits or (one.old is not None and not _is_as_sent(there, one.old, one, last=ended)):
            return None
        parts += (text[at : one.start], one.put)
        at = one.end
    return "".join((*parts, text[at:]))


def _is_counted(text: str, step: Sequence[RequestMatch]) -> bool:
    """Whether what is replaced everywhere, or in its only place, stands as often as that; lines count as whole ones."""
    if not step or not step[0].exact or not step[0].old or step[0].every is None:
        return True
    one, old = step[0], step[0].old
    there = text[one.start : one.end]
    # A line break that goes with it was not sent.
    there = there if one.new or old[-1] in "\r\n" else there.rstrip("\r\n")
    if one.every:
        return len(step) in (text.count(there), _bare(text).count(_bare(there)))
    once = len(step) > 1 or text.find(there, text.find(there) + 1) < 0
    if not once and old[-1] in "\r\n" and text[max(one.start - 1, 0) : one.start] in "\r\n":
        text, there = (f"\n{_bare(part).removesuffix(chr(10))}\n" for part in (text, there))
        once = text.find(there, text.find(there) + 1) < 0
    return once


def _is_as_sent(text: str, sent: str, of: RequestMatch, *, last: bool) -> bool:
    """Whether a text is what was sent, but for the kind of line ends, and one at the end where that may be."""
    one, other = (text, sent) if text == sent else (_bare(text), _bare(sent))
    if one == other or (last and one.strip("\n") == other.strip("\n")):
        return True
    if of.exact:
        return False
    from filepact.text.tolerant_match import fold  # noqa: PLC0415 - a server that only reads needs none of it

    return "".join(fold(text).split()) == "".join(fold(sent).split())


def _bare(text: str) -> str:
    """A text with every line end as LF; a CR before one is a part of it, since who sends a text cannot tell."""
    return _ENDS.sub("\n", text) if "\r" in text else text

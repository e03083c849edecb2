"""A proposal laid out for a window of some width, of which any row can be drawn by itself.

What is kept is a line of the diff and where its rows begin, so that a window of twenty rows costs the
same whatever the change is.  Everything a stranger wrote went through `readable` or `visible`.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.operation import PREVIEW_MODE, who
from filepact.text.confusables import readable, visible
from filepact.values import dataclass
from filepact_cli.render import count
from filepact_windows.drawn_diff import DiffLine, beside, diff_lines
from filepact_windows.syntax import highlight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from filepact_cli.review import ReviewFile, ReviewItem

__all__ = ["Look", "PageLine", "Piece", "ReviewPage", "fit", "page_of", "width_of"]

Look = Literal[
    "plain", "dim", "strong", "title", "warn", "bad", "place", "add", "remove", "add word",
    "remove word", "comment", "string", "number", "keyword", "other",
]  # fmt: skip
"""How a piece of text looks; ``other`` is what others have changed."""

Piece = tuple[str, Look, Look]
"""Text, how it looks, and what it stands on: ``add``, ``remove`` or ``plain``."""

_TAB: Final = "→   "
_LONG: Final = 4_000
"""Characters of a line from which on rows are cut without measuring each sign."""
_LEAST: Final = 8


@dataclass(frozen=True, slots=True)
class PageLine:
    """One line of a page.

    Attributes:
        hunk: The index of the hunk that it belongs to; -1 for none.
        text: Of what is no line of a diff.
        look: The same.
        left: The line of a diff; in two columns the one before.
        right: In two columns the one after.
        file: The file's name, for its colours.
    """

    hunk: int
    text: str = ""
    look: Look = "plain"
    left: DiffLine | None = None
    right: DiffLine | None = None
    file: str = ""

    @property
    def is_head(self) -> bool:
        """Whether a hunk begins with it."""
        return self.left is None and self.right is None and self.look == "place"


class ReviewPage:
    """Lines, and the rows that they take.

    Args:
        lines: The lines.
        item: The proposal that they show; None for none.
    """

    def __init__(self, lines: Iterable[PageLine], item: ReviewItem | None = None) -> None:
        self.item = item
        self.lines = tuple(lines)
        self.two = False
        self.width = 0
        self._rows = array("Q", [0])
        self._places: dict[int, tuple[int, int]] = {}
        self._shown = self.lines
        numbers = [max(one.left.old, one.left.new) for one in self.lines if one.left is not None]
        self._digits = max(3, len(str(max(numbers, default=0))))

    @property
    def height(self) -> int:
        """Rows of all lines."""
        return self._rows[-1]

    def lay_out(self, width: int, *, two: bool) -> None:
        """Divide the lines into rows.

        Args:
            width: Columns of the window.
            two: Whether what was and what becomes of it stand beside each other.
        """
        if (width, two) == (self.width, self.two):
            return
        self.width, self.two = width, two
        self._shown = tuple(_columns(self.lines)) if two else self.lines
        rows, places = array("Q", [0]), dict[int, tuple[int, int]]()
        taken = 0
        for line in self._shown:
            before, taken = taken, taken + self._height_of(line)
            rows.append(taken)
            if line.hunk >= 0:
                places[line.hunk] = places.get(line.hunk, (before, 0))[0], taken
        self._rows, self._places = rows, places

    def rows_of(self, hunk: int) -> tuple[int, int]:
        """The first row of a hunk, and the one below its last; both 0 for no such hunk."""
        return self._places.get(hunk, (0, 0))

    def line_at(self, row: int) -> PageLine | None:
        """The line that a row is of; None beyond the end."""
        if not 0 <= row < self.height:
            return None
        return self._shown[bisect_right(self._rows, row) - 1]

    def row(self, row: int) -> Iterator[Piece]:
        """Yield the pieces of a row, from left to right, at most as wide as the window."""
        line = self.line_at(row)
        if line is None:
            return
        part = row - self._rows[bisect_right(self._rows, row) - 1]
        if line.left is None and line.right is None:
            start, end = _bounds(line.text, max(self.width, _LEAST), part, words=True)
            yield (line.text[start:end], line.look, "plain")
        elif self.two and line.hunk >= 0:
            half = self._half
            yield from _filled(self._side(line.left, line.file, half, part, old=True), half)
            yield ("│", "dim", "plain")
            yield from self._side(line.right, line.file, half, part, old=False)
        else:
            side = line.left if line.left is not None else line.right
            yield from self._side(side, line.file, self.width, part)

    def find(self, text: str, after: int) -> int | None:
        """The first row below a row, and then from the top, whose line has a text, whatever its case."""
        wanted = text.casefold()
        for first, last in ((after + 1, self.height), (0, after + 1)):
            for line, row in zip(self._shown, self._rows, strict=False):
                if first <= row < last and any(wanted in one.casefold() for one in _texts(line)):
                    return row
        return None

    # -- one line -------------------------------------------------------------------------

    @property
    def _half(self) -> int:
        return max((self.width - 1) // 2, _LEAST)

    def _room(self, width: int) -> int:
        return max(width - self._digits - 2, _LEAST)

    def _height_of(self, line: PageLine) -> int:
        if line.left is None and line.right is None:
            return _rows_of(line.text, max(self.width, _LEAST), words=True)
        room = self._room(self._half if self.two and line.hunk >= 0 else self.width)
        return max(_rows_of(one, room, words=True) for one in _texts(line))

    def _side(
        self, line: DiffLine | None, file: str, width: int, part: int, *, old: bool | None = None
    ) -> Iterator[Piece]:
        """A row of one line of a diff: its number, its sign and its text."""
        if line is None:
            return
        ground: Look = "add" if line.sign == "+" else "remove" if line.sign == "-" else "plain"
        number = line.old if old or (old is None and line.sign == "-") else line.new
        first = "↪" if part else str(number) if number else ""
        look: Look = ground if ground != "plain" else "dim"
        yield (f"{first:>{self._digits}} ", look if ground != "plain" else "dim", "plain")
        yield (line.sign, look, ground) if part == 0 else (" ", "plain", "plain")
        room = self._room(width)
        start, end = _bounds(line.text, room, part, words=True)
        if line.sign == "\\":
            yield (line.text[start:end], "dim", "plain")
            return
        yield from _painted(line, file, start, end, ground)


def _painted(line: DiffLine, file: str, start: int, end: int, ground: Look) -> Iterator[Piece]:
    """A part of a line in its colours, cut where they or its words change."""
    kinds = [(one.start, one.end, one.kind) for one in highlight(line.text, file)]
    edges = {start, end}
    for first, last in (*((a, b) for a, b, _ in kinds), *line.words):
        edges |= {min(max(first, start), end), min(max(last, start), end)}
    plain: Look = ground if ground != "plain" and not kinds else "plain"
    word: Look = "add word" if ground == "add" else "remove word"
    for first, last in pairwise(sorted(edges)):
        look: Look = next((kind for a, b, kind in kinds if a <= first < b), plain)
        on = word if any(a <= first < b for a, b in line.words) else ground
        yield (line.text[first:last], look, on)


def _filled(pieces: Iterable[Piece], width: int) -> Iterator[Piece]:
    taken = 0
    for piece in pieces:
        taken += width_of(piece[0])
        yield piece
    yield (" " * max(width - taken, 0), "plain", "plain")


def _texts(line: PageLine) -> list[str]:
    sides = [one.text for one in (line.left, line.right) if one is not None]
    return sides or [line.text]


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1


def fit(text: str, width: int) -> str:
    """A text cut to a width, with a sign that it was."""
    if width_of(text) <= width:
        return text
    return f"{_part(text, max(width - 1, 1), 0)}…"


def _rows_of(text: str, room: int, *, words: bool = False) -> int:
    if len(text) * 2 <= room or (len(text) <= room and text.isascii()):
        return 1
    step = _step(text, room, words)
    return max(-(-len(text) // step), 1) if step else len(_cuts(text, room, words)) - 1


def _bounds(text: str, room: int, part: int, *, words: bool = False) -> tuple[int, int]:
    """The characters of a text that stand in one of its rows."""
    if step := _step(text, room, words):
        return min(part * step, len(text)), min((part + 1) * step, len(text))
    cuts = _cuts(text, room, words)
    return (cuts[part], cuts[part + 1]) if part + 1 < len(cuts) else (len(text), len(text))


def _step(text: str, room: int, words: bool) -> int:
    """How many characters a row of a text has; 0 where each has to be measured."""
    if text.isascii() and (not words or len(text) > _LONG):
        return room
    return max(room // 2, 1) if len(text) > _LONG else 0


def _part(text: str, room: int, part: int) -> str:
    start, end = _bounds(text, room, part)
    return text[start:end]


@lru_cache(maxsize=512)
def _cuts(text: str, room: int, words: bool) -> tuple[int, ...]:
    """Where the rows of a text begin, and its end; with `words` after a blank, where there is one."""
    cuts, taken, blank = [0], 0, 0
    for at, char in enumerate(text):
        wide = _width(char)
        if taken + wide > room:
            cut = blank if words and blank > cuts[-1] else at
            cuts.append(cut)
            taken = width_of(text[cut:at])
        taken += wide
        if char == " ":
            blank = at + 1
    return (*cuts, len(text))


def page_of(item: ReviewItem, more: str = "", request: str = "") -> ReviewPage:
    """A proposal as a page.

    Args:
        item: The proposal.
        more: Lines about it that are no part of it, such as what servers say.
        request: What the person had asked for; empty where that is not known.
    """
    return ReviewPage(_lines(item, more, request), item)


# -- a proposal --------------------------------------------------------------------------------------


def _columns(lines: Sequence[PageLine]) -> Iterator[PageLine]:
    """The lines of hunks in two columns, all others as they are."""
    some: list[PageLine] = []
    for line in (*lines, None):
        if line is not None and line.left is not None and line.hunk >= 0:
            some.append(line)
            continue
        if some:
            first = some[0]
            for left, right in beside([one.left for one in some if one.left is not None]):
                yield PageLine(first.hunk, left=left, right=right, file=first.file)
            some = []
        if line is not None:
            yield line


def _lines(item: ReviewItem, more: str, request: str) -> Iterator[PageLine]:
    yield from _head(item, request)
    for text in visible(more).splitlines():
        yield PageLine(-1, f"  ! {_tabless(text)}", "warn")
    if item.since:
        yield PageLine(-1, "")
        yield PageLine(-1, "Others have changed since you saw it:", "other")
        yield from _changed(item.since)
    at = 0
    total = len(item.hunks)
    for file in item.files:
        yield PageLine(-1, "")
        yield from _file_head(file)
        for hunk in file.hunks:
            lines = diff_lines(readable(hunk.diff).replace("\t", _TAB))
            place = next((one.text for one in lines if one.sign == "@"), "")
            counts = f"+{hunk.added} -{hunk.removed}"
            yield PageLine(
                at, f"hunk {hunk.number} of {total}  {counts}  {place}".rstrip(), "place"
            )
            for line in lines:
                if line.sign not in ("@", "h"):
                    yield PageLine(at, left=line, file=file.shown)
                elif not line.text.startswith(("@@", "--- ", "+++ ", "diff --git ")):
                    yield PageLine(at, line.text, "dim")
            at += 1


def _head(item: ReviewItem, request: str) -> Iterator[PageLine]:
    proposal = item.entry.proposal
    yield PageLine(-1, _line(proposal.summary), "title")
    actor = who(proposal.session.actor)
    turn = f", turn {_line(proposal.session.turn)}" if proposal.session.turn else ""
    yield PageLine(-1, f"{proposal.id}  {actor}{turn}  {_line(proposal.tool)}", "dim")
    if request:
        yield PageLine(-1, f"\u201c{_line(request)}\u201d")
    for rule in item.rules:
        if rule.name == PREVIEW_MODE:
            yield PageLine(-1, "every change waits for you: review mode", "dim")
            continue
        why = f": {_line(rule.why)}" if rule.why else ""
        place = f" ({_line(rule.place)})" if rule.place else ""
        yield PageLine(-1, f"waits for {_line(rule.name)}{why}{place}", "dim")
    if item.entry.status == "moved":
        yield PageLine(
            -1, "MOVED: others have changed its files; it is shown again before it is done.", "warn"
        )
    elif item.entry.status == "stale":
        yield PageLine(-1, "STALE: the same lines were changed; it cannot be done as it is.", "bad")
    if not item.divisible:
        yield PageLine(-1, "It goes back, and is decided about as a whole.", "warn")


def _file_head(file: ReviewFile) -> Iterator[PageLine]:
    first = file.hunks[0]
    verb = {"create": "new ", "delete": "removed ", "rename": "renamed "}.get(first.kind, "")
    more = f" from {_line(first.origin.path)}" if first.origin is not None else ""
    hunks = f"  {count(len(file.hunks), 'hunk')}" if len(file.hunks) > 1 else ""
    yield PageLine(-1, f"{verb}{_line(file.shown)}{more}{hunks}", "strong")
    if file.moved is None:
        return
    for text in visible(file.moved.said).splitlines():
        yield PageLine(-1, f"  {_tabless(text)}", "warn")
    if file.moved.since:
        yield PageLine(-1, "  Changed meanwhile by others:", "other")
        yield from _changed(file.moved.since)


def _changed(diff: str) -> Iterator[PageLine]:
    """Yield the changes of others, as lines that belong to no hunk."""
    for line in diff_lines(readable(diff).replace("\t", _TAB)):
        if line.sign == "h":
            continue
        sign = "" if line.sign == "@" else line.sign
        yield PageLine(-1, f"  {sign}{line.text}", "dim" if line.sign in "@ " else "other")


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _tabless(text: str) -> str:
    return text.replace("\t", _TAB)

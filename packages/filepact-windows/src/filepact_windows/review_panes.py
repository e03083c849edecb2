"""The parts of the review's window: what waits, the change, and lines of text; drawn row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from filepact.domain.operation import who
from filepact.text.confusables import visible
from filepact_cli.review import in_groups
from filepact_windows.review_page import fit, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from filepact_cli.review import ReviewEntry
    from filepact_windows.review_page import Look, Piece, ReviewPage
    from filepact_windows.review_selection import ReviewSelection

__all__ = ["LIST", "DiffList", "ProposalList", "TextLine"]

LIST: Final = 28
"""Columns of what waits."""

_LOOKS: Final[dict[Look, Style]] = {
    "plain": Style(),
    "dim": Style(dim=True),
    "strong": Style(bold=True),
    "title": Style(bold=True, color="cyan"),
    "warn": Style(color="yellow"),
    "bad": Style(bold=True, color="red"),
    "place": Style(color="cyan"),
    "add": Style(color="green"),
    "remove": Style(color="red"),
    "add word": Style(color="green", reverse=True),
    "remove word": Style(color="red", reverse=True),
    "comment": Style(dim=True, italic=True),
    "string": Style(color="yellow"),
    "number": Style(color="magenta"),
    "keyword": Style(bold=True, color="blue"),
    "other": Style(color="magenta"),
}
_REVERSE: Final = Style(reverse=True)
_VERDICTS: Final = {True: "✓", False: "✗", None: " "}


def _segments(pieces: Sequence[Piece], width: int) -> Strip:
    """A row of a window, filled to its width."""
    found, taken = [], 0
    for text, look, ground in pieces:
        if text:
            on = _LOOKS[ground] if ground.endswith("word") else _LOOKS[look]
            found.append(Segment(text, on))
            taken += width_of(text)
    return Strip([*found, Segment(" " * max(width - taken, 0))]).crop(0, width)


class TextLine(Widget):
    """One line of text, in one look."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._text, self._look = "", "plain"

    def say(self, text: str, look: Look = "plain") -> None:
        """Show another text."""
        self._text, self._look = text, look
        self.refresh()

    def says(self, text: str) -> bool:
        """Whether it shows this text."""
        return self._text == text

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        text = fit(self._text, width) if y == 0 else ""
        return _segments([(text, self._look, "plain")], width)  # type: ignore[list-item]  # a look


class ProposalList(ScrollView):
    """The waiting proposals, by agent and turn."""

    can_focus = False

    def __init__(self, selection: ReviewSelection) -> None:
        super().__init__(id="list")
        self._selection = selection
        self._rows: list[tuple[ReviewEntry | None, str]] = []

    def show(self) -> None:
        """Draw what waits now."""
        rows: list[tuple[ReviewEntry | None, str]] = []
        for group in in_groups(self._selection.entries):
            known = self._selection.requests.get(group.turn or "")
            turn = known or group.turn or group.session.id
            rows.append((None, f"{who(group.session.actor)} {visible(turn)}"))
            rows += ((entry, "") for entry in group.entries)
        self._rows = rows
        self.virtual_size = Size(LIST, len(rows))
        at = next((y for y, (one, _) in enumerate(rows) if one == self._selection.current), 0)
        top = self.scroll_offset.y
        if not top < at < top + max(self.size.height, 1):
            self.scroll_to(y=max(at - 1, 0), animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= len(self._rows):
            return Strip.blank(width)
        entry, text = self._rows[at]
        if entry is None:
            return _segments([(fit(text, width), "title", "plain")], width)
        accepted, rejected = self._selection.marked(entry.id)
        mark = {"fresh": "●", "moved": "~", "stale": "!"}[entry.status]
        if accepted or rejected:
            mark = f"{'✓' if accepted else ''}{'✗' if rejected else ''}"
        names = [self._selection.review.workspace.show(one) for one in entry.proposal.changes.paths]
        more = f" and {len(names) - 1}" if len(names) > 1 else ""
        more += "" if entry.lines is None else " +{} -{}".format(*entry.lines)
        name = " ".join(visible(names[0]).split())
        room = width - 4 - len(more)
        if width_of(name) > room:
            name = f"…{name[len(name) - max(room - 1, 1) :]}"
        current = entry == self._selection.current
        asks: Look = "warn" if entry.asked else "plain"
        said = f"{entry.letter} {fit(name, room)}{more}"
        strip = _segments([(f"{mark:<2}", asks, "plain"), (said, asks, "plain")], width)
        return strip.apply_style(_REVERSE) if current else strip

    def on_click(self, event: events.Click) -> None:
        """Look at the proposal that was clicked at."""
        at = event.y + self.scroll_offset.y
        if at < len(self._rows) and (entry := self._rows[at][0]) is not None:
            self.app.look_at(entry)  # type: ignore[attr-defined]  # it is ours


class DiffList(ScrollView):
    """One proposal, of which the rows that are seen are drawn."""

    can_focus = False

    def __init__(self, selection: ReviewSelection) -> None:
        super().__init__(id="diff")
        self._selection = selection
        self.page: ReviewPage | None = None
        self.two = False
        self.found = -1

    def show(self, page: ReviewPage | None) -> None:
        """Draw another proposal, or the same one anew."""
        self.page, self.found = page, -1
        self.lay_out()

    def lay_out(self) -> None:
        """Fit the page into the window."""
        width = max(self.scrollable_content_region.width - 1, 1)
        if self.page is not None:
            self.page.lay_out(width, two=self.two)
            self.virtual_size = Size(width, self.page.height)
        else:
            self.virtual_size = Size(width, 1)
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        """The window has another size."""
        self.lay_out()
        self.to_hunk(top=True)

    def to_hunk(self, *, top: bool = False) -> None:
        """Bring the hunk that is looked at into view.

        Args:
            top: With all that stands above, if it is the first one, though it may be out of view then.
        """
        if self.page is None:
            return
        at, rows = self._selection.hunk, self.size.height
        first, end = self.page.rows_of(at)
        if at == 0 and (top or end <= rows):
            first = 0
        self.scroll_to(y=first, animate=False, force=True)
        self.refresh()

    @property
    def shows_hunk(self) -> bool:
        """Whether any of the hunk that is looked at is in view."""
        if self.page is None:
            return False
        first, end = self.page.rows_of(self._selection.hunk)
        top = self.scroll_offset.y
        return bool(first < top + self.size.height and top < end)

    def find(self, text: str) -> bool:
        """Bring the next row with a text into view."""
        if self.page is None:
            return False
        found = self.page.find(text, self.found if self.found >= 0 else self.scroll_offset.y - 1)
        if found is None:
            return False
        self.found = found
        self.scroll_to(y=max(found - 2, 0), animate=False, force=True)
        line = self.page.line_at(found)
        if line is not None and line.hunk >= 0:
            self._selection.hunk = line.hunk
        self.refresh()
        return True

    def render_line(self, y: int) -> Strip:
        width, page = self.scrollable_content_region.width, self.page
        at = y + self.scroll_offset.y
        if page is None or (line := page.line_at(at)) is None:
            return Strip.blank(width)
        current = line.hunk >= 0 and line.hunk == self._selection.hunk
        bar = "▌" if current else " "
        pieces = [*page.row(at)]
        if line.is_head and page.item is not None:
            mark = self._selection.mark_of(page.item.hunks[line.hunk].number)
            said = {True: "accept ", False: "reject ", None: ""}[mark]
            pieces.insert(0, (f"{_VERDICTS[mark]} {said}" if said else "", "strong", "plain"))
        strip = _segments([(bar, "title", "plain"), *pieces], width)
        return strip.apply_style(_REVERSE) if at == self.found else strip

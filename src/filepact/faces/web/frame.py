"""The frame of every page: its head, what waits beside it, diffs, and the parts of forms."""

from __future__ import annotations

import time
from itertools import pairwise
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.operation import moment, who
from filepact.faces.web.elements import Element, document, join, tag
from filepact.text.confusables import readable
from filepact.text.diff_lines import beside, diff_lines, split_lines
from filepact.text.syntax import highlight
from filepact.values import dataclass
from filepact.workspace.review import in_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from filepact.text.diff_lines import DiffLine
    from filepact.workspace.review import ReviewEntry, ReviewGroup

__all__ = [
    "MOST_LINES",
    "MOST_REASON",
    "SHORT",
    "PageContext",
    "View",
    "age",
    "button_form",
    "diff_table",
    "dim",
    "drawn",
    "framed",
    "is_wide",
    "message_page",
    "nothing_field",
    "reason_field",
    "secret_field",
    "turn_link",
    "turn_place",
]

View = Literal["unified", "split"]

MOST_REASON: Final = 2_000
"""Characters of a reason."""

MOST_LINES: Final = 2_000  # of diffs on one page
_COLOURED: Final = 1_000  # lines of a hunk that are coloured
_WIDE: Final = 4_000  # characters of one line
_STEPS: Final = ((60, 1, "s"), (3_600, 60, "m"), (86_400, 3_600, "h"), (5_184_000, 86_400, "d"))
SHORT: Final = {"moved": "moved", "stale": "no place"}
_KEYS: Final = (
    ("j k", "next, previous hunk"),
    ("y n", "accept, reject the hunk"),
    ("a d", "accept, reject the file"),
    ("A D", "accept, reject the proposal"),
    ("c", "write a reason"),
    ("e", "edit the file's new text"),
    ("s", "split hunks, or join them"),
    ("v", "unified, or side by side"),
    ("f", "fold, unfold the file"),
    ("J K", "next, previous proposal"),
    ("g", "what waits"),
    ("t", "turn as a whole"),
    ("l", "timeline"),
    ("u U", "undo, redo"),
    ("Esc", "leave a field"),
    ("?", "these keys"),
)


@dataclass(frozen=True, slots=True)
class PageContext:
    """What every page shows, beside its own.

    Attributes:
        secret: Goes with every form, so that no other page can send one.
        version: Of what waits, as the page knows it.
        waiting: What waits.
        view: How diffs are drawn.
        said: What came of the last decision, and whether it is bad news.
        undoable: The operation that is taken back by one key; empty for none.
        redoable: Whether something can be brought back.
    """

    secret: str
    version: str
    waiting: tuple[ReviewEntry, ...]
    view: View = "unified"
    said: tuple[tuple[str, bool], ...] = ()
    undoable: str = ""
    redoable: bool = False


def is_wide(diff: str) -> bool:
    return len(diff) > _WIDE and any(len(line) > _WIDE for line in split_lines(diff))


def drawn(diff: str) -> tuple[DiffLine, ...]:
    """The lines of a diff with nothing hidden in them, none longer than a page bears."""
    if is_wide(diff):
        diff = "".join(map(_shortened, split_lines(diff)))
    return diff_lines(readable(diff))


def _shortened(line: str) -> str:
    if len(line) <= _WIDE:
        return line
    return f"{line[:_WIDE]} [{len(line) - _WIDE:,} more characters]\n"


# -- the frame of every page ---------------------------------------------------------------------------


def framed(context: PageContext, title: str, *content: Element, kind: str) -> Element:
    """A whole page around its content."""
    head = (
        tag("link", rel="stylesheet", href="/page.css"),
        tag("script", src="/page.js", defer=True),
    )
    count = len(context.waiting)
    links = tag(
        "nav",
        tag("a", "filepact", href="/", class_="name"),
        tag(
            "a",
            *("Waiting ", tag("b", str(count), id="count", class_="some" if count else None)),
            href="/",
            id="inbox",
        ),
        tag("a", "Timeline", href="/log", id="timeline"),
        tag("a", "In advance", href="/grants", id="grants"),
        button_form(context, "/undo", "Undo", "undo", shown=bool(context.undoable)),
        button_form(context, "/redo", "Redo", "redo", shown=context.redoable),
        tag("button", "Keys ?", type="button", id="help", hidden=True),
        aria_label="Review",
    )
    said = tag(
        *("div", *(tag("p", text, class_="bad" if bad else "good") for text, bad in context.said)),
        id="said",
        role="status",
    )
    keys = tag(
        "dialog",
        tag("h2", "Keys"),
        tag("dl", *(join((tag("dt", key), tag("dd", what))) for key, what in _KEYS)),
        tag("form", tag("button", "Close"), method="dialog"),
        id="keys",
    )
    news = tag("p", class_="news", id="news", role="status", hidden=True)
    main = tag("main", said, news, *content)
    waits = f"({count}) " if count else ""
    return document(
        f"{waits}{title}",
        head,
        (tag("header", links), tag("div", _side(context), main, class_="panes"), keys),
        data_kind=kind,
        data_version=context.version,
    )


def button_form(
    context: PageContext, target: str, label: str, name: str, *, shown: bool
) -> Element:
    if not shown:
        return Element()
    return tag(
        *("form", secret_field(context), tag("button", label, id=name)),
        method="post",
        action=target,
    )


def secret_field(context: PageContext) -> Element:
    return tag("input", type="hidden", name="secret", value=context.secret)


def _side(context: PageContext) -> Element:
    """What waits, beside whatever is looked at."""
    groups = in_groups(context.waiting)
    content = [_side_group(one) for one in groups] or [tag("p", "Nothing waits.", class_="dim")]
    return tag("aside", *content, id="side", aria_label="What waits")


def _side_group(group: ReviewGroup) -> Element:
    return tag(
        *("section", turn_link(group)),
        tag("ul", *(tag("li", _side_entry(one)) for one in group.entries)),
    )


def turn_link(group: ReviewGroup) -> Element:
    turn = f", turn {group.turn}" if group.turn else ""
    return tag(
        "h3",
        tag("a", who(group.session.actor), dim(turn), href=turn_place(group), class_="turn"),
    )


def turn_place(group: ReviewGroup) -> str:
    """Where a turn is shown as a whole: named by its first proposal, so that no name needs to be quoted."""
    return f"/turn/{group.entries[0].id}"


def _side_entry(entry: ReviewEntry) -> Element:
    names = [path.path for path in entry.proposal.changes.paths]
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return tag(
        "a",
        tag("span", basename(names[0]), dim(more), class_="file"),
        dim(dirname(names[0])),
        tag("small", SHORT.get(entry.status, ""), class_="bad"),
        href=f"/p/{entry.id}",
        data_id=entry.id,
        class_="entry",
    )


def dim(text: str) -> Element:
    return tag("small", text) if text else Element()


def age(created: float) -> Element:
    """How long ago something was, with the moment itself."""
    seconds = max(0, int(time.time() - created))
    short = next(
        (f"{seconds // unit}{letter}" for most, unit, letter in _STEPS if seconds < most), ""
    )
    return tag(
        "time", short or moment(created)[:10], title=moment(created), datetime=moment(created)
    )


def message_page(context: PageContext, title: str, *lines: str) -> Element:
    """A page that says something, such as why something was refused."""
    content = tag("section", tag("h1", title), *(tag("p", line) for line in lines), class_="card")
    return framed(context, title, content, kind="message")


# -- diffs ---------------------------------------------------------------------------------------------


def diff_table(lines: Iterable[DiffLine], view: View = "unified", file: str = "") -> Element:
    """Lines of a diff, in one column or in two.

    Args:
        lines: The lines.
        view: Whether in one column or two.
        file: By whose name they are coloured; very many are not.
    """
    some = [one for one in lines if not (one.sign == "h" and one.text.startswith(("--- ", "+++ ")))]
    file = file if len(some) <= _COLOURED else ""
    if view == "unified":
        return tag("table", *(_row(one, file) for one in some), class_="diff unified")
    columns = (tag("col", class_="no"), tag("col"))
    return tag("table", *columns, *columns, *_split_rows(some, file), class_="diff split")


_CLASSES: Final = {"+": "add", "-": "del", "@": "at", "h": "at", "\\": "end", " ": None}


def _row(line: DiffLine, file: str) -> Element:
    if line.sign in ("@", "h", "\\"):
        return tag("tr", tag("td", line.text.strip(), colspan=4), class_=_CLASSES[line.sign])
    return tag(
        *("tr", *_numbers(line.old, line.new)),
        tag("td", line.sign, class_="sign"),
        _text(line, file),
        class_=_CLASSES[line.sign],
    )


def _numbers(*numbers: int) -> Iterator[Element]:
    for number in numbers:
        yield tag("td", str(number) if number else "", class_="no")


def _text(line: DiffLine, file: str) -> Element:
    """A line in its colours, cut where they or its words change."""
    text = line.text
    kinds = [(one.start, one.end, one.kind) for one in highlight(text, file)] if file else []
    if not kinds and not line.words:
        return tag("td", text, class_="text")
    edges = {0, len(text)}
    for start, end in (*((start, end) for start, end, _ in kinds), *line.words):
        edges |= {min(start, len(text)), min(end, len(text))}
    parts: list[str] = []
    for start, end in pairwise(sorted(edges)):
        part = text[start:end]
        kind = next((kind for first, last, kind in kinds if first <= start < last), "")
        marked = any(first <= start < last for first, last in line.words)
        if marked or kind:
            part = tag("mark" if marked else "span", part, class_=kind or None)
        parts.append(part)
    return tag("td", *parts, class_="text")


def _split_rows(lines: Sequence[DiffLine], file: str) -> Iterator[Element]:
    for before, after in beside(lines):
        one = before or after
        if one is not None and one.sign in ("@", "h"):
            yield tag("tr", tag("td", one.text.strip(), colspan=4), class_="at")
        else:
            yield tag("tr", *_half(before, "old", file), *_half(after, "new", file))


def _half(line: DiffLine | None, side: Literal["old", "new"], file: str) -> Iterator[Element]:
    if line is None:
        yield tag("td", class_="no none")
        yield tag("td", class_="none")
        return
    number = line.old if side == "old" else line.new
    kind = _CLASSES[line.sign]
    yield tag("td", str(number) if number else "", class_=f"no {kind or ''}".strip())
    text = _text(line, file)
    yield text if kind is None else Element(text.replace('class="text"', f'class="text {kind}"', 1))


def nothing_field() -> Element:
    """What the Enter key of a field presses: nothing is decided by it."""
    return tag(
        "button", name="do", value="nothing:", class_="default", tabindex="-1", aria_hidden="true"
    )


def reason_field() -> Element:
    return tag(
        "input",
        name="reason",
        maxlength=MOST_REASON,
        placeholder="reason, for the agent",
        aria_label="Reason, for the agent",
        autocomplete="off",
        class_="reason",
    )

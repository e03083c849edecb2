"""The frame of every page: its head, what waits beside it, diffs, and the parts of forms."""

from __future__ import annotations

import time
from itertools import pairwise
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.operation import moment, who
from filepact.text.confusables import readable
from filepact.text.diff_lines import split_lines
from filepact.values import dataclass, field
from filepact_cli.review import in_groups
from filepact_windows.drawn_diff import beside, diff_lines, span_of
from filepact_windows.syntax import highlight
from filepact_windows.web.elements import Element, document, join, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.workspace.hunks import ProposalHunk
    from filepact_cli.review import ReviewEntry, ReviewGroup
    from filepact_windows.drawn_diff import DiffLine

__all__ = [
    "MOST_LINES",
    "MOST_REASON",
    "SHORT",
    "LineSelection",
    "PageContext",
    "SkippedLines",
    "View",
    "age",
    "became",
    "button_form",
    "counts",
    "diff_table",
    "dim",
    "drawn",
    "fold",
    "folded",
    "framed",
    "is_wide",
    "message_page",
    "neighbours",
    "nothing_field",
    "reason_field",
    "request_of",
    "secret_field",
    "turn_link",
    "turn_place",
]

View = Literal["unified", "split"]

MOST_REASON: Final = 2_000
"""Characters of a reason."""

MOST_LINES: Final = 2_000  # of diffs on one page
_PART: Final = 100  # rows of one table: a browser lays out those that are seen
_COLOURED: Final = 1_000  # lines of a hunk that are coloured
_CONTEXT: Final = 3  # lines around the changes of a hunk
_UNFOLDED: Final = 1_000  # unchanged lines that are shown at one place
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
    ("x X", "unfold, fold the lines above the hunk, below it"),
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
    """The state that every page shows, beside its own content.

    Attributes:
        secret: Goes with every form, so that no other page can send one.
        version: Of what waits, as the page knows it.
        waiting: What waits.
        view: How diffs are drawn.
        said: What came of the last decision, and whether it is bad news.
        undoable: The operation that is taken back by one key; empty for none.
        redoable: Whether something can be brought back.
        project: The name of the first folder.
        requests: What a person asked for in each turn, by the turn's name, as far as it is known.
    """

    secret: str
    version: str
    waiting: tuple[ReviewEntry, ...]
    view: View = "unified"
    said: tuple[tuple[str, bool], ...] = ()
    undoable: str = ""
    redoable: bool = False
    project: str = ""
    requests: Mapping[str, str] = field(default_factory=dict)


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
        tag("a", context.project or "filepact", href="/", class_="name", title="filepact"),
        tag(
            "a",
            "Waiting ",
            tag("b", str(count), id="count", class_="some" if count else None),
            href="/",
            id="inbox",
        ),
        tag("a", "Timeline", href="/log", id="timeline"),
        tag("a", "Pre-approved", href="/grants", id="grants"),
        button_form(context, "/undo", "Undo", "undo", shown=bool(context.undoable)),
        button_form(context, "/redo", "Redo", "redo", shown=context.redoable),
        tag("button", tag("span", "Keys "), "?", type="button", id="help", hidden=True),
        aria_label="Review",
    )
    said = tag(
        "div",
        *(tag("p", text, class_="bad" if bad else "good") for text, bad in context.said),
        id="said",
        role="status",
    )
    keys = tag(
        "dialog",
        tag("h2", "Keys", id="keys-title"),
        tag("dl", *(join((tag("dt", key), tag("dd", what))) for key, what in _KEYS)),
        tag("form", tag("button", "Close"), method="dialog"),
        id="keys",
        aria_labelledby="keys-title",
    )
    news = tag("p", class_="news", id="news", role="status", hidden=True)
    main = tag("main", said, news, *content)
    waits = f"({count}) " if count else ""
    return document(
        f"{waits}{title}{f' - {context.project}' if context.project else ''}",
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
        "form",
        secret_field(context),
        tag("button", label, id=name),
        method="post",
        action=target,
    )


def secret_field(context: PageContext) -> Element:
    return tag("input", type="hidden", name="secret", value=context.secret)


def _side(context: PageContext) -> Element:
    """Return the list of waiting proposals, beside the page's own content."""
    groups = in_groups(context.waiting)
    content = [_side_group(context, one) for one in groups] or [
        tag("p", "Nothing waits.", class_="dim")
    ]
    return tag("aside", *content, id="side", aria_label="What waits")


def _side_group(context: PageContext, group: ReviewGroup) -> Element:
    return tag(
        "section",
        turn_link(context, group),
        tag("ul", *(tag("li", _side_entry(one)) for one in group.entries)),
    )


def turn_link(context: PageContext, group: ReviewGroup) -> Element:
    """Who proposes, and for what the person had asked, as far as that is known."""
    known = group.turn in context.requests
    turn = f", turn {group.turn}" if group.turn and not known else ""
    return tag(
        "h2",
        tag("a", who(group.session.actor), dim(turn), href=turn_place(group), class_="turn"),
        request_of(context, group.turn),
    )


def request_of(context: PageContext, turn: str) -> Element:
    """What the person had asked for in a turn; nothing where that is not known."""
    request = context.requests.get(turn, "")
    return tag("q", readable(request), class_="request") if request else Element()


def turn_place(group: ReviewGroup) -> str:
    """Where a turn is shown as a whole: named by its first proposal, so that no name needs to be quoted."""
    return f"/turn/{group.entries[0].id}"


def _side_entry(entry: ReviewEntry) -> Element:
    names = [path.path for path in entry.proposal.changes.paths]
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return tag(
        "a",
        tag(
            "span",
            became(entry),
            " ",
            basename(names[0]),
            dim(more),
            " ",
            counts(entry.lines),
            class_="file",
        ),
        dim(dirname(names[0])),
        tag("small", SHORT.get(entry.status, ""), class_="bad"),
        href=f"/p/{entry.id}",
        data_id=entry.id,
        class_="entry asks" if entry.asked else "entry",
    )


def neighbours(context: PageContext, entry: ReviewEntry) -> Element:
    """Which of how many it is, with the ones before and after it."""
    every = [one.id for group in in_groups(context.waiting) for one in group.entries]
    if len(every) < 2 or entry.id not in every:
        return Element()
    at = every.index(entry.id)
    return tag(
        "nav",
        tag("a", "previous", href=f"/p/{every[at - 1]}", rel="prev") if at else dim("previous"),
        tag("b", f"{at + 1} of {len(every)}"),
        tag("a", "next", href=f"/p/{every[at + 1]}", rel="next")
        if at + 1 < len(every)
        else dim("next"),
        class_="place",
        aria_label="Proposals",
    )


def counts(lines: tuple[int, int] | None) -> Element:
    """How many lines are added and removed; nothing where that is not known."""
    if lines is None:
        return Element()
    return join(
        (
            tag("b", f"+{lines[0]:,}", class_="plus"),
            Element(" "),
            tag("b", Element(f"&minus;{lines[1]:,}"), class_="minus"),
        )
    )


def became(entry: ReviewEntry) -> Element:
    """Return Git's letter for the fate of a proposal's files, with its word."""
    words = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed"}
    letter = entry.letter
    return tag("abbr", letter, title=words[letter], class_=f"became {letter}")


def dim(text: str) -> Element:
    return tag("small", text) if text else Element()


def age(created: float) -> Element:
    """How long ago something was, with the moment itself."""
    seconds = max(0, int(time.time() - created))
    short = next(
        (f"{seconds // unit}{letter}" for most, unit, letter in _STEPS if seconds < most), ""
    )
    return tag(
        "time",
        f"{short} ago" if short else moment(created)[:10],
        title=moment(created),
        datetime=moment(created),
    )


def message_page(context: PageContext, title: str, *lines: str) -> Element:
    """A page that says something, such as why something was refused."""
    parts = (line if isinstance(line, Element) else tag("p", line) for line in lines)
    content = tag("section", tag("h1", title), *parts, class_="card")
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
    number = tag("col", class_="no")
    if view == "unified":
        columns = [number, number, tag("col", class_="sign"), tag("col")]
        rows = [_row(one, file) for one in some]
    else:
        columns = [number, tag("col")] * 2
        rows = list(_split_rows(some, file))
    tables = [
        tag("table", *columns, *rows[start : start + _PART], class_=f"diff {view}")
        for start in range(0, max(1, len(rows)), _PART)
    ]
    return tables[0] if len(tables) == 1 else join(tag("div", one, class_="part") for one in tables)


_CLASSES: Final = {"+": "add", "-": "del", "@": "at", "h": "at", "\\": "end", " ": None}


def _row(line: DiffLine, file: str) -> Element:
    if line.sign in ("@", "h", "\\"):
        return tag("tr", tag("td", line.text.strip(), colspan=4), class_=_CLASSES[line.sign])
    return tag(
        "tr",
        *_numbers(line.old, line.new),
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


@dataclass(frozen=True, slots=True)
class SkippedLines:
    """Unchanged lines between hunks, of which a page shows how many there are until they are asked for.

    Attributes:
        id: Names them in the page and in its address.
        start: The number of the first one, before the change.
        stop: Of the one after the last; 0 where they go to the end of the file.
        shift: By how much their numbers are larger afterwards.
    """

    id: str
    start: int
    stop: int
    shift: int


@dataclass(frozen=True, slots=True)
class LineSelection:
    """Lines between hunks that a page is to show.

    Attributes:
        names: Which.
        text: What a file held before.
    """

    names: frozenset[str] = frozenset()
    text: Callable[[WorkspacePath], str | None] = lambda _path: None


def folded(hunks: Sequence[ProposalHunk], *, fine: bool) -> dict[str, SkippedLines]:
    """The lines above each hunk of a file, and below the last, that no hunk shows."""
    found: dict[str, SkippedLines] = {}
    end, shift = 1, 0
    for hunk in hunks:
        spans = span_of(hunk.diff)
        if spans is None:
            return {}
        old, new = spans
        if old.start > end:
            name = f"above{hunk.number}"
            found[name] = SkippedLines(name, end, old.start, shift)
        end, shift = old.stop, new.stop - old.stop
    last = hunks[-1].diff[:-1].rsplit("\n", _CONTEXT)[1:] if hunks else [""]
    # With less context than usual, or with a remark about its last line, the file ends there.
    if not last[-1].startswith("\\") and (fine or all(one.startswith(" ") for one in last)):
        name = f"below{hunks[-1].number}"
        found[name] = SkippedLines(name, end, 0, shift)
    return found


def fold(
    context: PageContext,
    lines: SkippedLines,
    place: str,
    unfolded: LineSelection | None,
    path: WorkspacePath,
) -> Element:
    """Lines that are folded, or were asked for, with the link that does the one or the other.

    Args:
        context: Of the page.
        lines: Which.
        place: The address of the page, to which names can be added.
        unfolded: What was asked for; None where others are on the page, whose lines have the same names.
        path: The file.
    """
    count = lines.stop - lines.start
    what = f"{count:,} unchanged line{'s' * (count != 1)}" if lines.stop else "the rest of the file"
    asked = unfolded or LineSelection()
    names = ",".join(sorted(asked.names ^ {lines.id}))
    address = f"{place}&open={names}#{lines.id}" if names else f"{place}#{lines.id}"
    is_open = lines.id in asked.names
    link = tag("a", f"{'fold' if is_open else '…'} {what}", href=address, rel="nofollow")
    text = asked.text(path) if is_open else None
    rows = _unfolded(lines, text, context.view, path.path) if is_open else Element()
    return tag("section", link, rows, class_="fold", id=None if unfolded is None else lines.id)


def _unfolded(lines: SkippedLines, text: str | None, view: View, file: str) -> Element:
    if text is None:
        return tag("p", "They are not kept any more.", class_="dim")
    every = split_lines(text)
    some = every[lines.start - 1 : (lines.stop or len(every) + 1) - 1]
    if not some:
        return tag("p", "There are no more lines.", class_="dim")
    if (left := len(some) - _UNFOLDED) > 0:
        some = some[:_UNFOLDED]
    head = f"@@ -{lines.start},{len(some)} +{lines.start + lines.shift},{len(some)} @@\n"
    shown = drawn(head + "".join(f" {one}" for one in some))[1:]
    more = tag("p", f"{left:,} more are not shown here.", class_="dim") if left > 0 else Element()
    return join((diff_table(shown, view, file), more))


def nothing_field() -> Element:
    """Return the button that a field's Enter key presses: nothing is decided by it."""
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

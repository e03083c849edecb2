"""Pages of what waits for a person: the list, a proposal with its hunks, a turn as a whole, a text to edit."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import PREVIEW_MODE, who
from filepact.text.diff_lines import split_lines
from filepact.values import dataclass
from filepact_cli.review import in_groups
from filepact_windows.drawn_diff import first_lines
from filepact_windows.web.elements import Element, join, tag
from filepact_windows.web.frame import (
    MOST_LINES,
    SHORT,
    LineSelection,
    age,
    became,
    button_form,
    counts,
    diff_table,
    dim,
    drawn,
    fold,
    folded,
    framed,
    is_wide,
    neighbours,
    nothing_field,
    reason_field,
    request_of,
    secret_field,
    turn_link,
    turn_place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.operation import Proposal
    from filepact.domain.permission_log import SessionApproval
    from filepact.workspace.hunks import ProposalHunk
    from filepact_cli.review import ReviewFile, ReviewGroup, ReviewItem
    from filepact_windows.drawn_diff import DiffLine
    from filepact_windows.web.frame import PageContext

__all__ = [
    "STATUS",
    "ReviewPages",
    "edit_page",
    "grants_page",
    "inbox_page",
    "kind_of",
    "proposal_page",
    "turn_page",
]

STATUS: Final = {
    "moved": "Others have changed these files since, elsewhere: what fits them now is shown before it is done.",
    "stale": "Others have changed the same lines since: this finds no place any more.",
}


@dataclass(frozen=True, slots=True)
class _Slice:
    """A range of lines of a hunk's diff."""

    number: int
    start: int
    stop: int


class ReviewPages:
    """A proposal in pages of a bounded size, which know what of it a person was shown.

    Args:
        item: The proposal.
        seen: The numbers of the pages that were shown before, from 1 on.
        most: Lines of one page.
    """

    def __init__(self, item: ReviewItem, seen: set[int], most: int = MOST_LINES) -> None:
        self.item = item
        self.seen = seen
        self._hunks = {hunk.number: hunk for hunk in item.hunks}
        lines = {number: len(split_lines(one.diff)) for number, one in self._hunks.items()}
        self._pages = list(_divide(lines, most))
        self._cut = {number for number, one in self._hunks.items() if is_wide(one.diff)}
        self._split: tuple[int, list[str]] = (0, [])

    @property
    def count(self) -> int:
        """How many pages there are, one at least."""
        return max(1, len(self._pages))

    @property
    def total(self) -> int:
        """How many hunks there are."""
        return len(self._hunks)

    def shown(self, *pages: int) -> frozenset[int]:
        """The hunks of which every character was shown, or will be once somebody has these pages as well."""
        missing = {
            one.number
            for number, page in enumerate(self._pages, 1)
            if number not in self.seen and number not in pages
            for one in page
        }
        return frozenset(self._hunks) - missing - self._cut

    @property
    def cut(self) -> frozenset[int]:
        """The hunks with lines that no page shows whole."""
        return frozenset(self._cut)

    def ends(self, number: int, page: int) -> bool:
        """Whether a hunk, of which a page shows some, ends on it."""
        return all(one.number != number for one in (*self._pages, [])[page])

    def lines(self, page: int) -> dict[int, tuple[DiffLine, ...]]:
        """The lines of one page, by the numbers of their hunks."""
        found: dict[int, tuple[DiffLine, ...]] = {}
        for one in self._pages[page - 1] if self._pages else ():
            found[one.number] = self._of(one)
        return found

    def _of(self, part: _Slice) -> tuple[DiffLine, ...]:
        """The lines of a part; of a long hunk no others are drawn."""
        number = part.number
        if self._split[0] != number:
            self._split = (number, split_lines(self._hunks[number].diff))
        lines = self._split[1]
        if part.start == 0:
            return drawn("".join(lines[: part.stop]))
        begin = next(at for at, line in enumerate(lines) if line.startswith("@@ -"))
        above = Counter(line[:1] for line in lines[begin + 1 : part.start])
        some = lines[part.start : part.stop]
        first = first_lines(lines[begin])
        old, new = (at + above[" "] + above[sign] for at, sign in zip(first, "-+", strict=True))
        head = f"@@ -{old},{len(some)} +{new},{len(some)} @@\n"
        return drawn(head + "".join(some))[1:]


def _divide(lines: dict[int, int], most: int) -> Iterator[list[_Slice]]:
    page: list[_Slice] = []
    room = most
    for number, count in lines.items():
        start = 0
        while start < count or (count == 0 and start == 0):
            if room <= 0 or (page and start == 0 and count > room):
                yield page
                page, room = [], most
            stop = min(count, start + room)
            page.append(_Slice(number, start, stop))
            room -= max(1, stop - start)
            start = max(stop, 1)
    if page:
        yield page


# -- what waits ----------------------------------------------------------------------------------------


def inbox_page(context: PageContext) -> Element:
    """The list of what waits, by agent, session and turn."""
    groups = in_groups(context.waiting)
    if not groups:
        content = tag(
            "section",
            tag("h1", "Nothing waits"),
            tag("p", "What agents propose appears here by itself.", class_="dim"),
            class_="card",
        )
    else:
        count = len(context.waiting)
        head = tag(
            "h1", f"{count:,} changes wait for you" if count > 1 else "1 change waits for you"
        )
        content = join((head, *(_group_card(context, one) for one in groups)))
    return framed(context, "Waiting", content, kind="inbox")


def _group_card(context: PageContext, group: ReviewGroup) -> Element:
    count = len(group.entries)
    rows = [
        tag(
            "tr",
            tag("td", tag("a", one.id, href=f"/p/{one.id}", class_="go")),
            tag("td", became(one), " ", one.proposal.summary),
            tag("td", counts(one.lines), class_="counts"),
            # That every change waits says nothing of one of them.
            tag("td", tag("small", one.proposal.rule if one.asked else "", class_="warn")),
            tag("td", tag("small", SHORT.get(one.status, ""), class_="bad")),
            tag("td", age(one.proposal.created), class_="when"),
            class_="asks" if one.asked else None,
        )
        for one in group.entries
    ]
    return tag(
        "section",
        turn_link(context, group),
        tag("table", *rows, class_="list"),
        _group_form(context, group, ()) if count > 1 else Element(),
        class_="card",
    )


def _group_form(context: PageContext, group: ReviewGroup, accept: Sequence[str]) -> Element:
    """The buttons about all of a turn; only what was shown can be accepted."""
    ids = [str(one.id) for one in group.entries]
    buttons: list[Element] = []
    if accept:
        label = f"Accept all {len(accept)}" if len(accept) > 1 else f"Accept {accept[0]}"
        buttons.append(
            tag(
                "button", label, name="do", value=f"accept:{','.join(accept)}", class_="yes all-yes"
            )
        )
    else:
        buttons.append(tag("a", f"Review all {len(ids)}", href=turn_place(group), class_="button"))
    label = f"Reject all {len(ids)}" if len(ids) > 1 else f"Reject {ids[0]}"
    buttons.append(
        tag("button", label, name="do", value=f"reject:{','.join(ids)}", class_="no all-no")
    )
    return tag(
        *("form", secret_field(context), nothing_field(), reason_field(), *buttons),
        method="post",
        action=turn_place(group),
        class_="decide",
    )


# -- a proposal ----------------------------------------------------------------------------------------


def proposal_page(
    context: PageContext, pages: ReviewPages, page: int, unfolded: LineSelection
) -> Element:
    """A proposal with its hunks, each with its buttons."""
    item = pages.item
    body = _proposal(context, pages, page, unfolded)
    return framed(context, item.entry.proposal.summary, body, kind="proposal")


def turn_page(
    context: PageContext, group: ReviewGroup, shown: Sequence[ReviewPages], left: Sequence[str]
) -> Element:
    """All proposals of a turn, one below the other.

    Args:
        context: Of the page.
        group: The turn.
        shown: Its proposals, as many as the page bears.
        left: The ids of the others.
    """
    bodies = [_proposal(context, one, 1) for one in shown]
    accept = [
        str(one.item.entry.id)
        for one in shown
        if one.shown(1) == {hunk.number for hunk in one.item.hunks}
    ]
    more = [
        tag("p", "Not shown here: ", tag("a", one, href=f"/p/{one}"), class_="warn card")
        for one in left
    ]
    form = _group_form(context, group, accept) if accept else Element()
    title = tag("h1", f"All that one request has waiting: {len(group.entries)}")
    head = tag("section", title, turn_link(context, group), form, class_="card")
    return framed(context, "A turn", head, *bodies, *more, kind="turn")


def _proposal(
    context: PageContext, pages: ReviewPages, page: int, unfolded: LineSelection | None = None
) -> Element:
    item = pages.item
    proposal = item.entry.proposal
    lines = pages.lines(page)
    whole = pages.shown(page)
    every = [hunk.number for hunk in item.hunks]
    divisible = item.divisible and len(every) > 1
    files = [
        _file(context, pages, page, file, lines, unfolded, parts=divisible)
        for file in item.files
        if any(hunk.number in lines for hunk in file.hunks)
    ]
    form = tag(
        "form",
        secret_field(context),
        nothing_field(),
        tag("input", type="hidden", name="fine", value="1") if item.fine else Element(),
        tag(
            "div",
            reason_field(),
            _also_field() if proposal.session.agent and proposal.rules else Element(),
            _decision(
                every, whole, "all", "proposal" if len(every) == 1 else f"all {len(every)} hunks"
            ),
            class_="decide",
        ),
        *files,
        _pages_bar(item, page, pages.count),
        method="post",
        action=f"/p/{item.entry.id}",
        class_="proposal",
        data_id=item.entry.id,
    )
    about = _about(context, item, "h2" if unfolded is None else "h1")
    return tag("article", about, _cut_note(pages), form, class_="card")


def _also_field() -> Element:
    return tag(
        "label",
        "Accept from now on, too: ",
        tag("input", name="also", maxlength=200, placeholder="docs/**", autocomplete="off"),
        class_="also",
        title="Accepts later changes by this session to files like these, if the same rules ask",
    )


def _about(context: PageContext, item: ReviewItem, heading: str) -> Element:
    """Return a proposal's heading, its author, and the reason why it waits."""
    proposal = item.entry.proposal
    added = sum(hunk.added for hunk in item.hunks)
    removed = sum(hunk.removed for hunk in item.hunks)
    fine = "Join hunks" if item.fine else "Split hunks"
    view = "Unified" if context.view == "split" else "Side by side"
    other = "unified" if context.view == "split" else "split"
    place = f"/p/{proposal.id}"
    tools = [
        tag("a", fine, href=place if item.fine else f"{place}?fine=1", class_="split button"),
        tag(
            "a",
            view,
            href=f"{place}?view={other}{'&fine=1' if item.fine else ''}",
            class_="view button",
        ),
        tag("a", "What language servers find", href=f"{place}/diagnostics", class_="ask button"),
    ]
    rules = [
        tag(
            "li",
            "every change waits for you: review mode" if rule.name == PREVIEW_MODE else rule.name,
            dim(f" {rule.why}" if rule.why else ""),
            dim(f" ({rule.place})" if rule.place else ""),
            class_="dim" if rule.name == PREVIEW_MODE else None,
        )
        for rule in item.rules
    ]
    return join(
        (
            neighbours(context, item.entry),
            tag(heading, proposal.summary),
            request_of(context, proposal.session.turn),
            tag("p", *_facts(context, proposal, added, removed), class_="facts"),
            tag("p", STATUS[item.entry.status], class_="warn") if item.entry.moved else Element(),
            *_moved(item),
            tag("ul", *rules, class_="rules", aria_label="Why it waits") if rules else Element(),
            tag("p", *tools, class_="tools"),
            tag("div", class_="found", hidden=True),
        )
    )


def _facts(context: PageContext, proposal: Proposal, added: int, removed: int) -> Iterator[Element]:
    yield tag("b", who(proposal.session.actor), class_="who")
    yield tag("code", proposal.id)
    yield tag("span", f"session {proposal.session.id}")
    if proposal.session.turn and proposal.session.turn not in context.requests:
        yield tag("span", f"turn {proposal.session.turn}")
    yield tag("span", proposal.tool)
    yield age(proposal.created)
    yield tag("span", counts((added, removed)))


def _moved(item: ReviewItem) -> Iterator[Element]:
    """Yield the changes of others to the files meanwhile."""
    said = [(one.said, one.since) for one in item.entry.moved]
    if item.since:
        said.append(("Shown again, since others had changed this:", item.since))
    for text, since in said:
        head, _, rest = text.partition("\n")
        more = tag("pre", rest, class_="said") if rest else Element()
        yield tag(
            "details",
            tag("summary", head or "What others have changed"),
            diff_table(drawn(since)[:MOST_LINES]) if since else more,
        )


def _cut_note(pages: ReviewPages) -> Element:
    if not pages.cut:
        return Element()
    return tag(
        "p",
        "Lines of more than 4,000 characters are cut here, so that this cannot be accepted in the page: "
        f"filepact approve {pages.item.entry.id}",
        class_="warn",
    )


def _decision(numbers: Sequence[int], whole: frozenset[int], kind: str, what: str) -> Element:
    """The two buttons about some hunks; nothing is accepted that was not shown."""
    value = ",".join(map(str, numbers))
    can = whole.issuperset(numbers)
    return join(
        (
            tag(
                "button",
                f"Accept {what}",
                name="do",
                value=f"accept:{value}",
                class_=f"yes {kind}-yes",
                disabled=not can,
                title=None if can else "not all of it was shown yet",
            ),
            tag(
                "button",
                f"Reject {what}",
                name="do",
                value=f"reject:{value}",
                class_=f"no {kind}-no",
            ),
        )
    )


def _file(
    context: PageContext,
    pages: ReviewPages,
    page: int,
    file: ReviewFile,
    lines: dict[int, tuple[DiffLine, ...]],
    unfolded: LineSelection | None,
    *,
    parts: bool,
) -> Element:
    item, whole = pages.item, pages.shown(page)
    numbers = [hunk.number for hunk in file.hunks]
    index = item.files.index(file)
    several = parts and len(item.files) > 1
    edit = tag("a", "Edit", href=f"/p/{item.entry.id}/edit?file={index}", class_="edit button")
    head = tag(
        "summary",
        tag("b", file.shown, class_="path"),
        tag("small", kind_of(file)),
        counts((sum(one.added for one in file.hunks), sum(one.removed for one in file.hunks))),
    )
    buttons = (
        _decision(numbers, whole, "file", "file") if several else Element(),
        edit if item.divisible and file.hunks[0].kind in ("create", "modify") else Element(),
    )
    folds = folded(file.hunks, fine=item.fine) if file.hunks[0].kind == "modify" else {}
    place = f"/p/{item.entry.id}?page={page}{'&fine=1' if item.fine else ''}"

    def fold_at(name: str) -> Element:
        found = folds.get(name)
        if found is None:
            return Element()
        return fold(context, found, place, unfolded, file.path)

    parts_of: list[Element] = []
    for hunk in file.hunks:
        some = lines.get(hunk.number)
        if some is None:
            continue
        # A long hunk is on several pages: what is above it is on the first, what is below on the last.
        if some[:1] and some[0].sign == "@":
            parts_of.append(fold_at(f"above{hunk.number}"))
        # Among others on a page it has no name of its own: theirs are the same.
        name = None if unfolded is None else f"h{hunk.number}"
        drawn_hunk = _hunk(context, hunk, some, whole, total=pages.total, parts=parts, name=name)
        parts_of.append(drawn_hunk)
        if pages.ends(hunk.number, page):
            parts_of.append(fold_at(f"below{hunk.number}"))
    return tag(
        *("details", head, tag("p", *buttons, class_="tools"), *parts_of),
        open=True,
        class_="sheet",
    )


def kind_of(file: ReviewFile) -> str:
    """Return the kind of a file's change in words; empty where only its text changes."""
    kind = file.hunks[0].kind
    names = {"create": "new file", "delete": "removed", "rename": "another name", "modify": ""}
    return names[kind]


def _hunk(
    context: PageContext,
    hunk: ProposalHunk,
    lines: Sequence[DiffLine],
    whole: frozenset[int],
    *,
    total: int,
    parts: bool,
    name: str | None,
) -> Element:
    head = tag(
        "p",
        tag("span", f"hunk {hunk.number} of {total}"),
        _decision([hunk.number], whole, "hunk", "hunk") if parts else Element(),
        class_="head",
    )
    return tag(
        *("section", head, diff_table(lines, context.view, hunk.path.path)),
        class_="hunk",
        id=name,
        tabindex="0",
        aria_label=f"hunk {hunk.number} of {total}",
    )


def _pages_bar(item: ReviewItem, page: int, count: int) -> Element:
    if count < 2:
        return Element()
    fine = "&fine=1" if item.fine else ""
    links: list[Element] = []
    for label, number in (("Back", page - 1), ("Next", page + 1)):
        if 0 < number <= count:
            place = f"/p/{item.entry.id}?page={number}{fine}"
            links.append(tag("a", label, href=place, class_=f"button {label.lower()}"))
    return tag("p", f"page {page} of {count} ", *links, class_="tools")


# -- approvals in advance ------------------------------------------------------------------------------


def grants_page(
    context: PageContext, every: Sequence[SessionApproval], counting: frozenset[str]
) -> Element:
    """Return the page of approvals in advance, with a button to revoke each that still counts."""
    rows = [
        tag(
            "tr",
            tag("td", one.id),
            tag("td", one.pattern, tag("br"), dim(", ".join(one.rules))),
            tag("td", who(one.session.actor), dim(f" session {one.session.id}")),
            tag("td", f"by {one.by}, with ", tag("a", one.change, href=f"/o/{one.change}")),
            tag(
                "td",
                button_form(context, f"/grants/{one.id}", "Revoke", "revoke", shown=True)
                if one.id in counting
                else dim("counts no more"),
            ),
        )
        for one in every
    ]
    content = tag(
        "section",
        tag("h1", "Pre-approved"),
        tag("table", *rows, class_="list") if rows else tag("p", "Nothing.", class_="dim"),
        class_="card",
    )
    return framed(context, "Pre-approved", content, kind="grants")


# -- editing -------------------------------------------------------------------------------------------


def edit_page(context: PageContext, item: ReviewItem, index: int, text: str) -> Element:
    """A field with what a file is to hold, which the person may change before it is done."""
    file = item.files[index]
    place = f"/p/{item.entry.id}"
    form = tag(
        "form",
        secret_field(context),
        tag("input", type="hidden", name="file", value=str(index)),
        tag(
            "textarea",
            Element("\n"),
            text,
            name="text",
            rows=30,
            spellcheck="false",
            aria_label=file.shown,
        ),
        tag(
            "p",
            reason_field(),
            tag("button", "Propose this text instead", name="do", value="edit:", class_="yes"),
            tag("a", "Leave it as it is", href=place, class_="button"),
            class_="decide",
        ),
        method="post",
        action=f"{place}/edit",
    )
    about = tag(
        "p",
        "Nothing is done yet: your text is shown as a proposal of its own. The agent's is kept.",
        class_="dim",
    )
    content = tag("section", tag("h1", file.shown), about, form, class_="card edit-form")
    return framed(context, f"Edit {file.shown}", content, kind="edit")

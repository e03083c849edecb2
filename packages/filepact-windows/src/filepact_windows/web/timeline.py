"""The timeline: what was done, by file, agent and turn, with a small picture of it."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from filepact.domain.operation import moment, who
from filepact_windows.web.elements import Element, join, tag
from filepact_windows.web.frame import (
    age,
    button_form,
    counts,
    diff_table,
    drawn,
    framed,
    is_wide,
    request_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.operation import Operation
    from filepact.workspace.receipt import Receipt
    from filepact_windows.web.frame import PageContext

__all__ = ["operation_page", "timeline_page"]

_SLOTS: Final = 60
_HEIGHT: Final = 60
_WIDTH: Final = 10
_COLOURS: Final = 6
_LINES: Final = 5_000
_FILES: Final = 3


def timeline_page(
    context: PageContext,
    operations: Sequence[Operation],
    shown: dict[str, tuple[str, ...]],
    wanted: dict[str, str],
    *,
    more: int | None,
) -> Element:
    """Operations, newest first.

    Args:
        context: Of the page.
        operations: Those that are shown.
        shown: The names of each one's files, by its id.
        wanted: What they were selected by: ``path``, ``agent``, ``turn``.
        more: What older ones begin before; None for no older ones.
    """
    content = [
        tag("h1", "Timeline"),
        _selection(wanted),
        activity(operations),
        *_days(context, operations, shown, wanted),
    ]
    if not operations:
        content.append(tag("p", "Nothing was done here.", class_="dim"))
    if more is not None:
        place = _place({**wanted, "before": str(more)})
        content.append(tag("p", tag("a", "Older", href=place, class_="button next")))
    return framed(context, "Timeline", tag("section", *content, class_="card"), kind="log")


def _selection(wanted: dict[str, str]) -> Element:
    field = tag(
        "input",
        name="path",
        value=wanted.get("path", ""),
        placeholder="file or folder",
        aria_label="File or folder",
    )
    kept = [
        tag("input", type="hidden", name=name, value=value)
        for name, value in wanted.items()
        if name != "path"
    ]
    chips = [
        tag(
            "a",
            f"{name} {value}",
            href=_place({k: v for k, v in wanted.items() if k != name}),
            class_="button",
        )
        for name, value in wanted.items()
    ]
    return tag(
        "form",
        field,
        *kept,
        tag("button", "Show"),
        *chips,
        method="get",
        action="/log",
        class_="decide",
    )


def _place(wanted: dict[str, str]) -> str:
    return f"/log?{urlencode(wanted)}" if wanted else "/log"


def activity(operations: Sequence[Operation]) -> Element:
    """Bars of how much was done when, in a colour for each agent."""
    if len(operations) < 2:
        return Element()
    first, last = operations[-1].created, operations[0].created
    step = max((last - first) / _SLOTS, 1.0)
    names = [
        name for name, _ in Counter(who(one.session.actor) for one in operations).most_common()
    ]
    colour = {name: f"c{min(at, _COLOURS - 1)}" for at, name in enumerate(names)}
    slots: list[Counter[str]] = [Counter() for _ in range(_SLOTS)]
    for one in operations:
        at = min(_SLOTS - 1, int((one.created - first) / step))
        slots[max(0, at)][colour[who(one.session.actor)]] += 1
    highest = max(sum(slot.values()) for slot in slots)
    bars = [bar for at, slot in enumerate(slots) for bar in _bars(at, slot, highest)]
    picture = tag(
        "svg",
        tag("title", f"{len(operations)} operations from {moment(first)} to {moment(last)}"),
        *bars,
        viewBox=f"0 0 {_SLOTS * _WIDTH} {_HEIGHT}",
        role="img",
        preserveAspectRatio="none",
    )
    legend = [tag("span", tag("i", class_=colour[name]), name) for name in names[:_COLOURS]]
    return tag("figure", picture, tag("figcaption", *legend), class_="activity")


def _bars(at: int, slot: Counter[str], highest: int) -> Iterator[Element]:
    below = 0.0
    for name in sorted(slot):
        height = _HEIGHT * slot[name] / highest
        below += height
        yield tag(
            "rect",
            x=at * _WIDTH + 1,
            y=f"{_HEIGHT - below:.1f}",
            width=_WIDTH - 2,
            height=f"{height:.1f}",
            class_=name,
        )


def _days(
    context: PageContext,
    operations: Sequence[Operation],
    shown: dict[str, tuple[str, ...]],
    wanted: dict[str, str],
) -> Iterator[Element]:
    day, turn = "", ""
    rows: list[Element] = []
    for one in operations:
        date = time.strftime("%A, %Y-%m-%d", time.localtime(one.created))
        if date != day:
            if rows:
                yield tag("table", *rows, class_="list")
            day, turn, rows = date, "", []
            yield tag("h2", date)
        now = f"{one.session.id} {one.session.turn}"
        if now != turn:
            turn = now
            rows.append(_turn_row(context, one, wanted))
        rows.append(_row(one, shown.get(one.id, ()), wanted))
    if rows:
        yield tag("table", *rows, class_="list")


def _turn_row(context: PageContext, one: Operation, wanted: dict[str, str]) -> Element:
    name = who(one.session.actor)
    links = [tag("a", name, href=_place({**wanted, "agent": one.session.actor.name}), class_="who")]
    if one.session.turn:
        links.append(
            tag(
                "a",
                request_of(context, one.session.turn) or f"turn {one.session.turn}",
                href=_place({**wanted, "turn": one.session.turn}),
            )
        )
    return tag("tr", tag("td", *links, colspan=5), class_="turn")


def _row(one: Operation, names: Sequence[str], wanted: dict[str, str]) -> Element:
    files = [
        tag("a", name, href=_place({**wanted, "path": name}), class_="file")
        for name in names[:_FILES]
    ]
    if len(names) > _FILES:
        files.append(tag("small", f" and {len(names) - _FILES:,} more"))
    return tag(
        "tr",
        tag("td", tag("a", one.id, href=f"/o/{one.id}", class_="go")),
        tag("td", one.summary, tag("br"), *files),
        tag("td", tag("small", _state(one))),
        tag("td", counts(one.lines), class_="counts"),
        tag("td", age(one.created), class_="when"),
        class_="undone" if one.undone_by else None,
    )


def _state(one: Operation) -> str:
    if one.undone_by:
        return f"undone by {one.undone_by}"
    return "" if one.state == "applied" else one.state.replace("_", " ")


def operation_page(context: PageContext, operation: Operation, receipt: Receipt) -> Element:
    """One operation with its diff."""
    lines = drawn(receipt.diff)
    cut = len(lines) > _LINES or is_wide(receipt.diff)
    rows = [
        ("who", f"{who(operation.session.actor)}, session {operation.session.id}"),
        ("turn", operation.session.turn),
        ("tool", operation.tool),
        ("approved by", operation.approved_by),
        ("state", _state(operation) or "in force"),
        ("note", operation.note),
    ]
    facts = tag("dl", *(join((tag("dt", name), tag("dd", value))) for name, value in rows if value))
    can_go = operation.undone_by is None and operation.was_done
    note = f"The beginning is shown: filepact diff {operation.id}" if cut else ""
    content = tag(
        "article",
        tag("h1", operation.summary),
        request_of(context, operation.session.turn),
        tag("p", tag("code", operation.id), age(operation.created), class_="facts"),
        facts,
        button_form(
            context, f"/o/{operation.id}/undo", "Take this back", "take-back", shown=can_go
        ),
        tag("p", note, class_="warn") if note else Element(),
        tag("section", diff_table(lines[:_LINES], context.view), class_="hunk"),
        class_="card",
    )
    return framed(context, operation.summary, content, kind="operation")

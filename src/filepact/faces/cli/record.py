"""Operations, proposals and receipts as people and programs read them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import PAST_THE_DOORS, Operation
from filepact.errors import FilepactError
from filepact.faces.cli.paint import Tally, show_diff, tally
from filepact.faces.cli.screen import DONE, NOTHING, Answer, Span
from filepact.text.hidden import visible
from filepact.tools.answer import receipt_facts, render_receipt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.domain.asked import Question
    from filepact.domain.operation import Actor, Proposal
    from filepact.faces.cli.screen import Screen, Style
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

__all__ = [
    "HOW_TO_DECIDE",
    "age",
    "answer_receipt",
    "asked",
    "count",
    "details",
    "facts",
    "line",
    "lines_of",
    "listed",
    "moment",
    "size",
    "state",
    "who",
]

HOW_TO_DECIDE: Final = "Look with `filepact diff ID`, then `filepact approve ID` or `reject ID`.\n"

_STEPS = ((60, 1, "s"), (3_600, 60, "m"), (86_400, 3_600, "h"), (5_184_000, 86_400, "d"))
_STATE_STYLES: dict[str, Style] = {
    "applied": "good",
    "interrupted": "bad",
    "rolled back": "warn",
    "intended": "warn",
}
_VERDICT_STYLES: dict[str, Style] = {
    "allowed": "good",
    "refused": "bad",
    "cancelled": "warn",
    "waits": "warn",
}
_FILES_SHOWN = 3
_RECEIPT_STYLES: dict[str, Style] = {"applied": "good", "preview": "warn", "pending": "warn"}


def age(created: float, now: float) -> str:
    """How long ago, in one short word; older than two months: the day."""
    seconds = max(0, int(now - created))
    for limit, unit, letter in _STEPS:
        if seconds < limit:
            return f"{seconds // unit}{letter}"
    return time.strftime("%Y-%m-%d", time.localtime(created))


def count(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(taken: int) -> str:
    """Bytes for people, in steps of 1,000."""
    left = float(taken)
    for unit in ("bytes", "kB", "MB"):
        if left < 1_000:
            return f"{left:.0f} {unit}" if unit == "bytes" else f"{left:.1f} {unit}"
        left /= 1_000
    return f"{left:.1f} GB"


def moment(created: float) -> str:
    """When, in local time with its distance from UTC, as ISO 8601 has it."""
    local = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(created))
    return f"{local[:-2]}:{local[-2:]}"


def state(change: Operation | Proposal) -> str:
    """What has become of it, in words."""
    if isinstance(change, Operation) and change.undone_by is not None:
        return f"undone by {change.undone_by}"
    return change.state.replace("_", " ")


def who(actor: Actor) -> str:
    """Who acts, in one line that begins with what they are, so that no name can pass for another.

    Of a person or a program of theirs not how the word came; `filepact show` has that.
    """
    name = str(actor) if actor.kind == "agent" else actor.name
    return f"{actor.kind} {' '.join(visible(name).split())}"


def details(workspace: Workspace, change: Operation | Proposal) -> list[Span]:
    """What is known about an operation or a proposal, a line for each thing."""
    actor = change.session.actor
    how = f", {visible(actor.version)}" if actor.kind != "agent" and actor.version else ""
    rows = [
        ("operation" if isinstance(change, Operation) else "proposal", change.id),
        ("what", change.summary),
        ("when", f"{moment(change.created)}, {age(change.created, time.time())} ago"),
        ("who", f"{who(actor)} (session {change.session.id}{how})"),
        ("tool", "none: past the doors" if change.tool == PAST_THE_DOORS else change.tool),
        ("state", state(change)),
    ]
    if change.target:
        rows.append(("of", change.target))
    if isinstance(change, Operation):
        rows += [("approved by", change.approved_by), ("note", change.note)]
    else:
        rows += [("waits for", change.rule), ("reason", change.reason)]
    for one in change.changes.changes:
        before, after = (side.short if side else "none" for side in (one.before, one.after))
        rows.append((one.kind, f"{workspace.show(one.path)}  {before} -> {after}"))
    return [
        span
        for name, value in rows
        if value
        for span in (Span(f"{name:<12}", "dim"), Span(f"{' '.join(value.splitlines())}\n"))
    ]


def line(
    change: Operation | Proposal, counted: Tally | None, *, now: float, width: int = 0
) -> tuple[Span, ...]:
    """An operation or a proposal on one line.

    Args:
        change: The operation or proposal.
        counted: Its lines, from `lines_of`.
        now: Seconds since the epoch.
        width: Room for the actor's name, so that lines below each other stand in columns.
    """
    spans = [
        Span(change.id, "title"),
        Span(f"  {age(change.created, now):>4}  ", "dim"),
        Span(f"{who(change.session.actor):<{width}}  ", "dim"),
        Span(change.summary),
        Span(f"  {count(len(change.changes.changes), 'file')}", "dim"),
    ]
    if counted is not None:
        spans += [Span(f" +{counted.added}", "add"), Span(f" -{counted.removed}", "remove")]
    became = state(change)
    if became not in ("applied", "proposed"):
        spans.append(Span(f"  ({became})", _STATE_STYLES.get(became, "warn")))
    return (*_one_line(spans), Span("\n"))


def _one_line(spans: Sequence[Span]) -> list[Span]:
    """The same without line ends, which a summary by a stranger may hold."""
    return [replace(span, text=" ".join(span.text.splitlines())) for span in spans]


def lines_of(workspace: Workspace, change: Operation | Proposal) -> Tally | None:
    """Added and removed lines; None when the contents were given up to make room."""
    if isinstance(change, Operation) and change.lines is not None:
        return Tally(*change.lines)
    try:
        return tally(workspace.diff(change))
    except FilepactError:
        return None


def facts(
    workspace: Workspace, change: Operation | Proposal, counted: Tally | None
) -> dict[str, object]:
    """All there is to know about an operation or a proposal, but for its diff."""
    known: dict[str, object] = {
        "id": change.id,
        "kind": change.kind,
        "state": change.state,
        "summary": change.summary,
        "tool": change.tool,
        "created": moment(change.created),
        "actor": {
            "kind": change.session.actor.kind,
            "name": change.session.actor.name,
            "version": change.session.actor.version,
        },
        "session": change.session.id,
        "target": change.target,
        "added": counted.added if counted else None,
        "removed": counted.removed if counted else None,
        "files": [
            {
                "path": workspace.show(one.path),
                "change": one.kind,
                "before": one.before.short if one.before else None,
                "after": one.after.short if one.after else None,
            }
            for one in change.changes.changes
        ],
    }
    if isinstance(change, Operation):
        known |= {
            "seq": change.seq,
            "undone_by": change.undone_by,
            "approved_by": change.approved_by,
            "note": change.note,
        }
    else:
        known |= {"rule": change.rule, "reason": change.reason}
    return known


def listed(
    workspace: Workspace, changes: Sequence[Operation | Proposal]
) -> tuple[list[Span], list[dict[str, object]]]:
    """Operations or proposals one a line, for people and for programs."""
    spans: list[Span] = []
    known: list[dict[str, object]] = []
    now = time.time()
    width = min(24, max((len(who(one.session.actor)) for one in changes), default=0))
    for change in changes:
        counted = lines_of(workspace, change)
        spans += line(change, counted, now=now, width=width)
        known.append(facts(workspace, change, counted))
    return spans, known


def asked(
    workspace: Workspace, questions: Sequence[Question]
) -> tuple[list[Span], list[dict[str, object]]]:
    """Questions and reports of agents one a line, for people and for programs."""
    now = time.time()
    width = min(24, max((len(who(one.session.actor)) for one in questions), default=0))
    spans = [
        span for one in questions for span in _question_line(workspace, one, now=now, width=width)
    ]
    return spans, [_question_facts(one) for one in questions]


def _question_line(
    workspace: Workspace, question: Question, *, now: float, width: int
) -> list[Span]:
    """All that a stranger wrote is made visible here, in a pipe too: nobody applies this."""
    spans = [
        Span(f"{age(question.when, now):>4}  ", "dim"),
        Span(f"{who(question.session.actor):<{width}}  ", "dim"),
        Span(f"{question.verdict:<9}", _VERDICT_STYLES.get(question.verdict, "plain")),
    ]
    if question.change:
        spans.append(Span(f"  {question.change}", "title"))
    by = " ".join(filter(None, (question.by and f"by {question.by}", question.how)))
    if question.title or question.how != "read":
        spans.append(Span(f"  {visible(question.title) or 'no title'}"))
    if by and question.how != "read":
        spans.append(Span(f"  ({visible(by)})", "dim"))
    if question.reason:
        spans.append(Span(f"  {visible(question.reason)}"))
    root = question.root.rstrip("/")
    inside = question.root == workspace.guard.roots[0].path
    for place, file in enumerate(question.files[:_FILES_SHOWN]):
        path = file.path if inside or file.path.startswith("/") else f"{root}/{file.path}"
        verb = f"  {question.action} " if place == 0 else ", "
        spans.append(Span(f"{verb}{visible(path)}"))
        if file.added is not None:
            spans.append(Span(f" +{file.added}", "add"))
            spans.append(Span(f" -{file.removed}", "remove"))
    more = max(0, len(question.files) - _FILES_SHOWN) + question.more
    if more:
        spans.append(Span(f" and {count(more, 'more file')}", "dim"))
    return [*_one_line(spans), Span("\n")]


def _question_facts(question: Question) -> dict[str, object]:
    actor = question.session.actor
    return {
        "when": moment(question.when),
        "session": question.session.id,
        "actor": {"kind": actor.kind, "name": actor.name, "version": actor.version},
        "root": question.root,
        "title": question.title,
        "action": question.action,
        "verdict": question.verdict,
        "by": question.by,
        "how": question.how,
        "files": [
            {"path": file.path, "added": file.added, "removed": file.removed}
            for file in question.files
        ],
        "more": question.more,
        "change": question.change,
        "reason": question.reason,
    }


def answer_receipt(receipt: Receipt, screen: Screen) -> Answer:
    """What a change came to, with its whole diff."""
    said = render_receipt(replace(receipt, diff=""))
    head, _, notes = said.partition("\n")
    style = _RECEIPT_STYLES.get(receipt.status, "dim")
    spans = [Span(f"{head}\n", style)]
    if notes:
        spans.append(Span(f"{notes}\n", "dim"))
    if receipt.status == "pending":
        spans.append(Span(HOW_TO_DECIDE, "dim"))
    return Answer(
        (*spans, *show_diff(receipt.diff, screen)),
        {
            **receipt_facts(receipt),
            "summary": receipt.summary,
            "notes": list(receipt.notes),
            "diff": receipt.diff,
        },
        NOTHING if receipt.status == "unchanged" else DONE,
    )

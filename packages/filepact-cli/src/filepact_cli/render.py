"""Renders diffs, operations, proposals and receipts, as text for people and as JSON objects.

Painting a diff never changes a character: its spans put together are the diff, so one path serves
the terminal and the patch in a pipe.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal
from unicodedata import east_asian_width

from filepact.domain.operation import (
    BY_NOBODY,
    BY_SEVERAL,
    PAST_THE_DOORS,
    UNOBSERVED,
    Operation,
    decider_of,
    moment,
    who,
)
from filepact.errors import FilepactError
from filepact.text.confusables import readable, visible
from filepact.text.diff import pair_lines, refine
from filepact.text.diff_lines import COMPARED, classify, split_lines
from filepact.values import asdict, dataclass, field, replace
from filepact_cli.context import login_name
from filepact_cli.screen import DONE, FAILED, NOTHING, CommandAnswer, TerminalText
from filepact_cli.wording import fitted, how_to_decide, waiting_for_people

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from filepact.domain.operation import Actor, Proposal
    from filepact.domain.permission_log import PermissionRecord
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace
    from filepact_cli.screen import Style, Terminal

__all__ = [
    "CheckResult",
    "LineCounts",
    "age",
    "answer_receipt",
    "asked",
    "by_whom",
    "count",
    "cut",
    "details",
    "facts",
    "line",
    "lines_of",
    "listed",
    "paint_diff",
    "show_diff",
    "state",
    "tally",
    "when",
    "width",
]


Level = Literal["ok", "none", "warn", "fail"]
"""``none``: what could be there is not, and nothing is wrong with that."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        next: What to do; empty when there is nothing to do.
        facts: What programs may want to know besides.
    """

    name: str
    level: Level
    message: str
    next: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LineCounts:
    """The numbers of lines that a diff adds and removes."""

    added: int
    removed: int


def paint_diff(diff: str) -> tuple[TerminalText, ...]:
    """The diff as styled spans; their texts put together are the diff.

    Words are compared until that has taken its share of time; what comes after is whole lines.
    """
    return tuple(_paint(split_lines(diff)))


def show_diff(diff: str, screen: Terminal) -> tuple[TerminalText, ...]:
    """The diff for a screen, as people are shown one everywhere; painted for a terminal only."""
    shown = readable(diff)
    return paint_diff(shown) if screen.terminal else (TerminalText(shown),)


def tally(diff: str) -> LineCounts:
    """Count the added and removed lines of all hunks."""
    kinds = [kind for kind, _ in classify(split_lines(diff))]
    return LineCounts(kinds.count("+"), kinds.count("-"))


def _paint(lines: Sequence[str]) -> Iterator[TerminalText]:
    room = COMPARED
    removed: list[str] = []
    added: list[str] = []
    for kind, line in classify(lines):
        if kind == "-" and not added:
            removed.append(line)
            continue
        if kind == "+":
            added.append(line)
            continue
        if kind == "\\" and (removed or added):
            # The mark belongs to the line above it, in the middle of a change as well.
            block = added or removed
            block[-1] += line
            continue
        room -= sum(map(len, removed)) + sum(map(len, added)) if removed and added else 0
        yield from _paint_change(removed, added, words=room > 0)
        removed, added = ([line] if kind == "-" else []), []
        if kind in ("@", "h"):
            yield from _paint_header(kind, line)
        elif kind in (" ", "\\"):
            yield from _line_end(line, "dim" if kind == "\\" else "plain")
    room -= sum(map(len, removed)) + sum(map(len, added))
    yield from _paint_change(removed, added, words=room > 0)


def _paint_header(kind: str, line: str) -> Iterator[TerminalText]:
    if kind == "@":
        yield TerminalText(line, "place")
    elif line.startswith(("--- ", "+++ ", "diff --git ")):
        yield TerminalText(line, "strong")
    else:
        yield TerminalText(line, "dim")


def _paint_change(
    removed: Sequence[str], added: Sequence[str], *, words: bool
) -> Iterator[TerminalText]:
    """A block of removed lines and the lines that took their place."""
    if not (words and removed and added):
        yield from _paint_lines(removed, "remove")
        yield from _paint_lines(added, "add")
        return
    old = [_body(line) for line in removed]
    new = [_body(line) for line in added]
    partners = dict(pair_lines(old, new))
    old_words: dict[int, list[tuple[int, int]]] = {}
    new_words: dict[int, list[tuple[int, int]]] = {}
    for i, j in partners.items():
        old_words[i], new_words[j] = refine(old[i], new[j])
    for i, line in enumerate(removed):
        yield from _paint_line(line, old_words.get(i, []), "remove", "removed word")
    for j, line in enumerate(added):
        yield from _paint_line(line, new_words.get(j, []), "add", "added word")


def _paint_lines(lines: Sequence[str], style: Style) -> Iterator[TerminalText]:
    """Whole lines, those between two that want more in one span."""
    plain: list[str] = []
    for line in lines:
        if line.endswith("\r\n") or "\n\\" in line:
            yield TerminalText("".join(plain), style)
            plain = []
            yield from _paint_line(line, (), style, style)
        else:
            plain.append(line)
    yield TerminalText("".join(plain), style)


def _body(line: str) -> str:
    """A line without its sign, its line feed and the mark of a missing one."""
    return line[1:].partition("\n")[0]


def _paint_line(
    line: str, words: Sequence[tuple[int, int]], style: Style, word_style: Style
) -> Iterator[TerminalText]:
    body = _body(line)
    yield TerminalText(line[0], style)
    at = 0
    for start, end in words:
        if start > at:
            yield TerminalText(body[at:start], style)
        yield TerminalText(body[start:end], word_style)
        at = end
    rest = line[1 + at :]
    end_of_line, newline, mark = rest.partition("\n")
    yield from _line_end(end_of_line + newline, style)
    if mark:
        yield TerminalText(mark, "dim")


def _line_end(text: str, style: Style) -> Iterator[TerminalText]:
    """Text up to a line's end, with a carriage return that is the same on both sides apart."""
    if text.endswith("\r\n"):
        yield TerminalText(text[:-2], style)
        yield TerminalText("\r", "line end")
        yield TerminalText("\n")
    else:
        yield TerminalText(text, style)


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
_WHO, _KIND, _LEAST, _NARROW, _WIDE = 20, 6, 8, 70, 96  # columns
_SEEN = (PAST_THE_DOORS, UNOBSERVED, BY_NOBODY, BY_SEVERAL)
_RECEIPT_STYLES: dict[str, Style] = {"applied": "good", "preview": "warn", "pending": "warn"}


def age(created: float, now: float) -> str:
    """The age of a moment in one short word, such as ``5m``; of more than two months, the day."""
    seconds = max(0, int(now - created))
    for limit, unit, letter in _STEPS:
        if seconds < limit:
            return f"{seconds // unit}{letter}"
    return time.strftime("%Y-%m-%d", time.localtime(created))


def when(created: float, now: float, room: int | None = None) -> str:
    """How long ago something was, on a wide line after the clock or the day; of more than two months, the day alone."""
    ago, wide = age(created, now), room is None or room >= _WIDE
    if "-" in ago or (room or _WIDE) < _NARROW:
        return ago
    form = f"{'%H:%M' if now - created < 86_400 else '%b %d'}, " * wide
    return f"{time.strftime(form, time.localtime(created))}{ago} ago"


def count(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def state(change: Operation | Proposal) -> str:
    """The state of an operation or a proposal, in words."""
    if isinstance(change, Operation) and change.undone_by is not None:
        return f"undone by {change.undone_by}"
    return change.state.replace("_", " ")


def details(workspace: Workspace, change: Operation | Proposal) -> list[TerminalText]:
    """Everything known about an operation or a proposal, one fact a line."""
    actor = change.session.actor
    how = f", {visible(actor.version)}" if actor.kind != "agent" and actor.version else ""
    rows = [
        ("operation" if isinstance(change, Operation) else "proposal", change.id),
        ("what", change.summary),
        ("when", f"{moment(change.created)}, {age(change.created, time.time())} ago"),
        ("who", f"{who(actor)} (session {change.session.id}{how})"),
        ("turn", change.session.turn),
        ("tool", "none: without filepact" if change.tool == PAST_THE_DOORS else change.tool),
        ("state", state(change)),
    ]
    if change.target:
        rows.append(("of", change.target))
    if isinstance(change, Operation):
        rows += [("approved by", change.approved_by), ("note", change.note)]
        if decider_of(change.approved_by) == "a program":
            rows.append(("unseen", "no person looked at this before it was done"))
    else:
        rows += [("waits for", change.rule), ("reason", change.reason)]
    for one in change.changes.changes:
        before, after = (side.short if side else "none" for side in (one.before, one.after))
        rows.append((one.kind, f"{workspace.show(one.path)}  {before} -> {after}"))
    return [
        span
        for name, value in rows
        if value
        for span in (
            TerminalText(f"{name:<12}", "dim"),
            TerminalText(f"{' '.join(value.splitlines())}\n"),
        )
    ]


def line(
    workspace: Workspace,
    change: Operation | Proposal,
    counted: LineCounts | None,
    *,
    now: float,
    by: int = 0,
    room: int | None = None,
) -> tuple[TerminalText, ...]:
    """An operation or a proposal on one line: id, age, who, what was done, the path first.

    Args:
        workspace: Where it was done.
        change: The operation or proposal.
        counted: Its lines, from `lines_of`.
        now: Seconds since the epoch.
        by: Room for the actor's name, so that lines below each other stand in columns.
        room: Columns of the terminal, which the line never takes more of; None for any number.
    """
    became = state(change).partition(" by ")[0]  # by what, `show` tells
    ends: list[TerminalText] = []
    if counted is not None and (counted.added or counted.removed):  # else bytes, or only names
        ends.append(TerminalText(f"  +{counted.added}", "add"))
        ends.append(TerminalText(f" -{counted.removed}", "remove"))
    if became not in ("applied", "proposed"):
        ends.append(TerminalText(f"  ({became})", _STATE_STYLES.get(became, "warn")))
    elif isinstance(change, Operation) and change.was_unasked and change.session.agent:
        ends.append(TerminalText("  (not approved here)", "warn"))
    if isinstance(change, Operation) and decider_of(change.approved_by) == "a program":
        ends.append(TerminalText("  (approved by a program)", "warn"))
    actor = cut(by_whom(change.session.actor), by or _WHO, first=True)
    column = 14 if room is None or room >= _WIDE else 8 if room >= _NARROW else 4
    heads = [
        TerminalText(change.id, "title"),
        TerminalText(f"  {when(change.created, now, room):>{column}}  {actor:<{by}}  ", "dim"),
    ]
    kind, what = _what(workspace, change)
    said = f"{kind:<{_KIND}}  " if kind else ""
    if room is not None:
        left = room - sum(width(span.text) for span in (*heads, *ends)) - len(said)
        what = cut(what, max(_LEAST, left))
        what += " " * (left - width(what))
    return (*_one_line([*heads, TerminalText(said + what), *ends]), TerminalText("\n"))


def by_whom(actor: Actor) -> str:
    """An actor in a list: ``you``, or what it is and its name."""
    you = actor.kind == "person" and actor.name == login_name()
    return "you" if you else who(actor)


def _what(workspace: Workspace, change: Operation | Proposal) -> tuple[str, str]:
    """Return a change's kind, as a word, and its files, deleted ones first.

    Of what was only seen on the disk there is no word: its summary tells more.
    """
    if change.tool in _SEEN:
        return "", change.summary
    files = {one.path: one for one in change.changes.changes}
    names = {path: workspace.show(path) for path in files}
    gone = [one for one in files.values() if one.after is None]
    come = [one for one in files.values() if one.before is None]
    edited = [one for one in files.values() if one.before and one.after]
    kind: str = change.kind
    if kind != "change":
        target = f"{change.target}: " if change.target[:1] == "c" else ""
        return kind, target + _some([names[path] for path in files])
    if len(gone) == len(come) == 1 and not edited and gone[0].before == come[0].after:
        return "move", f"{names[gone[0].path]} -> {names[come[0].path]}"
    sides = [one for one in (gone, come, edited) if one]
    if len(sides) == 1:
        (only,) = sides
        kind = "delete" if only is gone else "create" if only is come else "edit"
        return kind, _some([names[one.path] for one in only])
    words = [f"deletes {names[one.path]}" for one in gone]
    words += [f"{names[one.path]} (new)" for one in come] + [names[one.path] for one in edited]
    return "change", _some(words)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _FILES_SHOWN
    shown = ", ".join(names[:_FILES_SHOWN]) or "nothing"
    return f"{shown} and {count(more, 'more file')}" if more > 0 else shown


def width(text: str) -> int:
    """Columns that a text takes on a terminal, with what could move the cursor written out."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in visible(text))


def cut(text: str, room: int, *, first: bool = False) -> str:
    """Text of one line within some columns; of what is too long the middle is left out.

    Args:
        text: The text.
        room: The columns.
        first: Whether the end is left out instead: what the text begins with says the most.
    """
    text = " ".join(text.splitlines())
    if width(text) <= room:
        return text
    head, tail = "", ""
    for sign in text:
        if width(head + sign) > (room - 3 if first else (room - 3) // 3):
            break
        head += sign
    for sign in reversed(text):
        if width(head + sign + tail) > room - 3:
            break
        tail = sign + tail
    return f"{head}...{tail}"


def _one_line(spans: Sequence[TerminalText]) -> list[TerminalText]:
    """Return the texts without line ends, which a summary by a stranger may hold."""
    return [replace(span, text=" ".join(span.text.splitlines())) for span in spans]


def lines_of(workspace: Workspace, change: Operation | Proposal) -> LineCounts | None:
    """Added and removed lines; None when the contents were given up to make room."""
    if isinstance(change, Operation) and change.lines is not None:
        return LineCounts(*change.lines)
    try:
        return tally(workspace.diff(change))
    except FilepactError:
        return None


def facts(
    workspace: Workspace, change: Operation | Proposal, counted: LineCounts | None
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
        "turn": change.session.turn,
        "call": change.session.call,
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
    workspace: Workspace,
    changes: Sequence[Operation | Proposal],
    screen: Terminal,
    *,
    indent: int = 0,
) -> tuple[list[TerminalText], list[dict[str, object]]]:
    """Operations or proposals one a line, for people and for programs.

    Args:
        workspace: Where they were done.
        changes: The operations or proposals.
        screen: What they are shown on.
        indent: Columns that stand before each line already.
    """
    room = None if screen.columns is None else screen.columns - indent
    spans: list[TerminalText] = []
    known: list[dict[str, object]] = []
    now = time.time()
    by = max((len(by_whom(one.session.actor)) for one in changes), default=0)
    by = min(by, _WHO if room is None else min(_WHO, room // (4 if room >= _NARROW else 6)))
    for change in changes:
        counted = lines_of(workspace, change)
        spans += line(workspace, change, counted, now=now, by=by, room=room)
        known.append(facts(workspace, change, counted))
    return spans, known


def asked(
    workspace: Workspace, questions: Sequence[PermissionRecord]
) -> tuple[list[TerminalText], list[dict[str, object]]]:
    """Questions and reports of agents one a line, for people and for programs."""
    now = time.time()
    width = min(24, max((len(who(one.session.actor)) for one in questions), default=0))
    spans = [
        span for one in questions for span in _question_line(workspace, one, now=now, width=width)
    ]
    return spans, [_question_facts(one) for one in questions]


def _question_line(
    workspace: Workspace, question: PermissionRecord, *, now: float, width: int
) -> list[TerminalText]:
    """All that a stranger wrote is made visible here, in a pipe too: nobody applies this."""
    spans = [
        TerminalText(f"{age(question.when, now):>4}  ", "dim"),
        TerminalText(f"{who(question.session.actor):<{width}}  ", "dim"),
        TerminalText(f"{question.verdict:<9}", _VERDICT_STYLES.get(question.verdict, "plain")),
    ]
    if question.change:
        spans.append(TerminalText(f"  {question.change}", "title"))
    by = " ".join(filter(None, (question.by and f"by {question.by}", question.how)))
    if question.title or question.how != "read":
        spans.append(TerminalText(f"  {visible(question.title) or 'no title'}"))
    if by and question.how != "read":
        spans.append(TerminalText(f"  ({visible(by)})", "dim"))
    if question.reason:
        spans.append(TerminalText(f"  {visible(question.reason)}"))
    root = question.root.rstrip("/")
    inside = question.root == workspace.guard.roots[0].path
    for place, file in enumerate(question.files[:_FILES_SHOWN]):
        path = file.path if inside or file.path.startswith("/") else f"{root}/{file.path}"
        verb = f"  {question.action} " if place == 0 else ", "
        spans.append(TerminalText(f"{verb}{visible(path)}"))
        if file.added is not None:
            spans.append(TerminalText(f" +{file.added}", "add"))
            spans.append(TerminalText(f" -{file.removed}", "remove"))
    more = max(0, len(question.files) - _FILES_SHOWN) + question.more
    if more:
        spans.append(TerminalText(f" and {count(more, 'more file')}", "dim"))
    return [*_one_line(spans), TerminalText("\n")]


def _question_facts(question: PermissionRecord) -> dict[str, object]:
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


def answer_receipt(receipt: Receipt, screen: Terminal, *, diff: bool = True) -> CommandAnswer:
    """The answer for a receipt, with the whole diff unless people do not want it."""
    from filepact.tools.answers import receipt_facts, render_receipt  # noqa: PLC0415 - most commands change nothing

    said = render_receipt(replace(receipt, diff="", as_sent=False))
    head, _, notes = said.partition("\n")
    head, names, rest = head.partition(" Operation ")
    style = _RECEIPT_STYLES.get(receipt.status, "dim")
    if receipt.status == "pending":
        head = waiting_for_people(head)
    spans = [TerminalText(f"{head}\n", style)]
    if names:  # on a line of its own, which no terminal wraps
        spans.append(TerminalText(f"Operation {rest}\n", "dim"))
    if notes:
        spans.append(TerminalText(f"{notes}\n", "dim"))
    spans = [TerminalText(fitted(span.text, screen.columns), span.style) for span in spans]
    if receipt.status == "pending" and screen.terminal:  # what no person reads may be an agent's
        spans.append(TerminalText(how_to_decide(screen.columns), "dim"))
    lost = any(one.lost for one in receipt.left)
    return CommandAnswer(
        (*spans, *show_diff(receipt.diff if diff else "", screen)),
        {
            **receipt_facts(receipt),
            "summary": receipt.summary,
            "notes": list(receipt.notes),
            "left": [asdict(one) for one in receipt.left],
            "diff": receipt.diff,
        },
        NOTHING if receipt.status == "unchanged" else FAILED if lost else DONE,
    )

"""Commands over the journal: log and diffs, undo and redo, checkpoints, review of proposals."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from itertools import islice
from shlex import quote
from textwrap import wrap
from typing import TYPE_CHECKING, Final, TypedDict

from filepact.domain.operation import NOBODY_LOOKED, Proposal, moment
from filepact.errors import InvalidParamsError, NoChangeError, NotFoundError, UnattendedError
from filepact.text.confusables import visible
from filepact.values import replace
from filepact.workspace.file_snapshot import unwatched_in, unwatched_said
from filepact.workspace.selection import Selection
from filepact_cli.context import called_by, find_context, here, moved_here, opened, person
from filepact_cli.render import (
    age,
    answer_receipt,
    asked,
    by_whom,
    count,
    cut,
    details,
    facts,
    listed,
    show_diff,
    tally,
    when,
)
from filepact_cli.screen import CommandAnswer, TerminalText, plain, remark
from filepact_cli.turns import files_shown, log_turns, select, time_named

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from filepact.domain.operation import Checkpoint, Operation, Session
    from filepact.workspace.history import Agrees
    from filepact.workspace.hunks import ProposalHunk
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.undo_plan import UndoChange
    from filepact.workspace.workspace import Workspace
    from filepact_cli.context import CommandContext
    from filepact_cli.screen import Terminal

__all__ = [
    "agrees",
    "at_terminal",
    "checkpoint",
    "decider",
    "diff",
    "hunks_of",
    "log",
    "redo",
    "restore",
    "show",
    "shown_change",
    "undo",
]


_USUAL_LIMIT: Final = 20
_PAGE: Final = 100
_WIDTH: Final = 80
_WHO: Final = 30  # columns of a name


class _How(TypedDict):
    """How to go back, as `Workspace.undo` has it."""

    dry_run: bool
    partly: bool
    agrees: Agrees | None


def log(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Operations, or what agents asked and told, newest first."""
    since = None if arguments.since is None else time_named(arguments.since, time.time())
    limit = arguments.limit
    if limit is None and since is None and not arguments.all:
        limit = _USUAL_LIMIT
    if arguments.asked or arguments.reads:
        return _log_asked(arguments, limit, since)
    if arguments.turns:
        if arguments.path is not None:
            raise InvalidParamsError(
                "--turns lists turns of the whole folder", hint="Leave PATH out."
            )
        with opened(arguments) as workspace:
            return log_turns(workspace, limit, since)
    with opened(arguments) as workspace:
        path = None if arguments.path is None else here(workspace, arguments.path)
        operations = (
            workspace.log(path=path, limit=limit)
            if since is None
            else tuple(islice(_operations_since(workspace, path, since), limit))
        )
        spans, known = listed(workspace, operations, screen)
        requests = workspace.asked.requests()
        spans = [*_below_requests(spans, operations, requests, screen.columns or _WIDTH)]
        _tell_unwatched(find_context(arguments), workspace, operations)
    if not spans:
        spans = [*plain(_nothing(arguments))]
        if moved := moved_here(find_context(arguments), arguments.config):
            spans.append(TerminalText(f"{moved[0]}.\n{moved[1]}\n", "warn"))
    return CommandAnswer(tuple(spans), {"operations": known}, long=True)


def _below_requests(
    spans: Sequence[TerminalText],
    operations: Sequence[Operation],
    requests: Mapping[str, str],
    room: int,
) -> Iterator[TerminalText]:
    """Lines of operations, and above those of one turn what the person had asked for, if that is known."""
    left, turn, begins, now = iter(operations), "", True, time.time()
    for span in spans:
        if begins and turn != (turn := (one := next(left)).session.turn) and turn in requests:
            told = f"\u201d  {when(one.created, now)}"
            words = cut(visible(requests[turn]), room - 1 - len(told), first=True)
            yield TerminalText(f"\u201c{words}{told}\n", "dim")
        yield span
        begins = span.text == "\n"


def _operations_since(workspace: Workspace, path: str | None, since: float) -> Iterator[Operation]:
    """Newest first, read in pages.

    A clock that was set back leaves operations out of the order of time, hence a whole page that is older ends it.
    """
    before = None
    while page := workspace.log(path=path, limit=_PAGE, before_seq=before):
        found = [operation for operation in page if operation.created >= since]
        yield from found
        if not found:
            return
        before = page[-1].seq


def _nothing(arguments: Namespace) -> str:
    since = "" if arguments.since is None else f" since {arguments.since}"
    if arguments.path is not None:
        return f"No operations on {arguments.path}{since}.\n"
    return f"Nothing was done here{since}.\n" if since else "Nothing was done here yet.\n"


def _log_asked(arguments: Namespace, limit: int | None, since: float | None) -> CommandAnswer:
    with opened(arguments) as workspace:
        found = workspace.asked.questions(
            path=None if arguments.path is None else here(workspace, arguments.path),
            limit=limit if since is None else None,
            reads=arguments.reads,
        )
        questions = found if since is None else [one for one in found if one.when >= since][:limit]
        spans, known = asked(workspace, questions)
    said = "read anything" if arguments.reads else "asked for anything"
    when = "" if arguments.since is None else f" since {arguments.since}"
    return CommandAnswer(
        tuple(spans) or plain(f"No agent has {said} here{when}.\n"),
        {"reads" if arguments.reads else "asked": known},
        long=True,
    )


def show(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """One operation or proposal, with its diff."""
    with opened(arguments) as workspace:
        change = _change(workspace, arguments.operation)
        text = workspace.diff(change)
        known = facts(workspace, change, tally(text))
        hunks = hunks_of(workspace, change)
        if len(hunks) > 1:
            known["hunks"] = [
                {"number": one.number, "path": workspace.show(one.path), "diff": one.diff}
                for one in hunks
            ]
        shown = shown_change(workspace, change, hunks, screen)
        spans = [*details(workspace, change), TerminalText("\n"), *shown]
    return CommandAnswer(tuple(spans), {**known, "diff": text}, long=True)


def hunks_of(workspace: Workspace, change: Operation | Proposal) -> tuple[ProposalHunk, ...]:
    """The hunks by which a change can be decided about in part; empty for one that cannot be."""
    return workspace.approving.hunks(change) if isinstance(change, Proposal) else ()


def shown_change(
    workspace: Workspace,
    change: Operation | Proposal,
    hunks: Sequence[ProposalHunk],
    screen: Terminal,
    only: Collection[int] | None = None,
) -> Iterator[TerminalText]:
    """The diff, with the numbers of hunks where there are several; or only some of them."""
    if len(hunks) < 2:
        yield from show_diff(workspace.diff(change), screen)
        return
    for one in hunks:
        if only is not None and one.number not in only:
            continue
        name = visible(workspace.show(one.path))
        yield TerminalText(f"hunk {one.number} of {len(hunks)}  {name}\n", "title")
        yield from show_diff(one.diff, screen)


def diff(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Print what one operation changed, as a patch."""
    with opened(arguments) as workspace:
        change = _change(workspace, arguments.operation)
        text = workspace.diff(change)
        # A program gets the files' own bytes, so that the diff is a patch in any encoding.
        patch = workspace.patch(change).decode("utf-8", "surrogateescape")
    spans = show_diff(text, screen) if screen.terminal else plain(patch)
    return CommandAnswer(spans, {"id": change.id, "diff": text}, long=True)


def undo(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Take operations back."""
    context = find_context(arguments)
    try:
        with opened(arguments, context) as workspace:
            _tell_unwatched(context, workspace, workspace.log(limit=_USUAL_LIMIT))
            selection = select(workspace, arguments)
            session = decider(arguments, screen)
            how = _how(workspace, arguments, screen)
            if selection == Selection(selection.ids[:1]):
                # Only so is what only passed by left out, and an undo itself undone.
                one = selection.ids[0] if selection.ids else None
                receipt = workspace.undo(session, one, **how)
            else:
                receipt = workspace.undo_selected(session, selection, **how)
            return _went_back(receipt, arguments, screen)
    except (NoChangeError, NotFoundError) as error:
        if moved := moved_here(context, arguments.config):
            raise type(error)(error.message, hint=f"{moved[0]}. {moved[1]}") from None
        raise


def _tell_unwatched(
    context: CommandContext, workspace: Workspace, operations: Sequence[Operation]
) -> None:
    """Say that there are files that nobody looks at, or looked at when operations were found."""
    from filepact.opening import unwatched_files  # noqa: PLC0415 - loads the database

    files = unwatched_files(context.state, [root.path for root in workspace.guard.roots])
    said = unwatched_said(files) if files else ""
    if files is None:  # what a run has looked at by itself stands with its operations alone
        said = next(filter(None, (unwatched_in(one.note) for one in operations)), "")
    if said:
        remark(f"filepact: {said}.\n")


def redo(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Bring back what was undone."""
    with opened(arguments) as workspace:
        selection = select(workspace, arguments)
        if len(selection.ids) > 1:
            raise InvalidParamsError(
                "`filepact redo` takes one operation", hint="Say it once for each."
            )
        receipt = workspace.redo(
            decider(arguments, screen),
            next(iter(selection.ids), None),
            places=selection.places,
            **_how(workspace, arguments, screen),
        )
        return _went_back(receipt, arguments, screen)


def restore(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Take back what was done since a checkpoint, or since an operation began."""
    name, paths = arguments.name, arguments.paths
    if arguments.before is not None and name is not None:
        name, paths = None, [name, *paths]
    if name is None and arguments.before is None:
        raise InvalidParamsError(
            "name a checkpoint, or with --before an operation",
            hint="`filepact checkpoint` lists checkpoints, `filepact log` operations.",
        )
    with opened(arguments) as workspace:
        selection = replace(
            select(workspace, arguments, paths),
            checkpoint=name or "",
            before=arguments.before or "",
        )
        session = decider(arguments, screen)
        receipt = workspace.undo_selected(session, selection, **_how(workspace, arguments, screen))
    if receipt.status == "applied":
        forward = f"`filepact redo {receipt.operation}` goes forward again."
        receipt = replace(receipt, notes=(*receipt.notes, forward))
    return _went_back(receipt, arguments, screen)


def _went_back(receipt: Receipt, arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """The answer to an undo and its like: what became of each file, and the diff only where it is wanted."""
    answer = answer_receipt(receipt, screen, diff=arguments.diff or arguments.dry_run)
    states = {visible(one.path): (one.before, one.after) for one in receipt.files}
    files = []
    for one in receipt.files:
        kind = "delete" if one.after is None else "create"
        kind = kind if (one.before is None) != (one.after is None) else "modify"
        files.append((visible(one.path), kind, one.added, one.removed))
    first, *others = answer.spans
    return replace(answer, spans=(first, *files_shown(files, states), *others))


def _how(workspace: Workspace, arguments: Namespace, screen: Terminal) -> _How:
    """Return the options of an undo or redo, with the question to the person for a doubtful plan."""
    asks = at_terminal(screen) and not arguments.unattended

    def agrees_to(plan: UndoChange) -> bool:
        screen.write(tuple(_plan_shown(workspace, plan, screen)))
        return agrees("Take that back?" if plan.kind == "undo" else "Bring that back?", screen)

    return {
        "dry_run": arguments.dry_run,
        "partly": arguments.partly,
        "agrees": agrees_to if asks else None,
    }


def _plan_shown(workspace: Workspace, plan: UndoChange, screen: Terminal) -> Iterator[TerminalText]:
    """Why a plan is in doubt, and a line for each who did what it takes back: how many files, how old."""
    now, width = time.time(), screen.columns or _WIDTH
    doubt = f"{plan.doubt[:1].upper()}{plan.doubt[1:]}."
    yield TerminalText(
        "\n".join(wrap(visible(doubt), width, break_on_hyphens=False)) + "\n", "warn"
    )
    files: dict[str, tuple[dict[str, None], list[float]]] = {}
    meant = {path for part in plan.parts for path in part.files}  # a redo has no parts
    for operation in plan.operations:
        if own := [path for path in operation.changes.paths if path in meant or not meant]:
            paths, ages = files.setdefault(by_whom(operation.session.actor), ({}, []))
            paths.update((workspace.show(path), None) for path in own)
            ages.append(operation.created)
    for by, (paths, ages) in files.items():
        old = {age(ages[0], now): None, age(ages[-1], now): None}
        head = f"  {cut(by, _WHO)}  {count(len(paths), 'file')}, {' to '.join(old)} ago: "
        yield TerminalText(head, "strong")
        yield TerminalText(f"{cut(', '.join(map(visible, paths)), max(8, width - len(head)))}\n")
    for note in map(visible, plan.notes):
        yield TerminalText("\n".join(wrap(note, width, break_on_hyphens=False)) + "\n", "dim")


def checkpoint(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Name this moment; without a name, list those that have one."""
    if arguments.name is None:
        return _checkpoints(arguments)
    with opened(arguments) as workspace:
        made = workspace.checkpoint(arguments.name)
    return CommandAnswer(
        (
            TerminalText(f"Checkpoint {made.name!r} is set.", "good"),
            TerminalText(f" Come back to it with `filepact restore {quote(made.name)}`.\n"),
        ),
        _checkpoint_facts(made),
    )


def _checkpoints(arguments: Namespace) -> CommandAnswer:
    """The checkpoints of the first root, oldest first."""
    with opened(arguments) as workspace:
        found = workspace.checkpoints()
    now = time.time()
    spans = [
        span
        for one in found
        for span in (
            TerminalText(one.name, "title"),
            TerminalText(f"  {age(one.created, now)}  after operation {one.seq}\n", "dim"),
        )
    ]
    return CommandAnswer(
        tuple(spans) or plain("No checkpoint is set here.\n"),
        {"checkpoints": [_checkpoint_facts(one) for one in found]},
    )


def _checkpoint_facts(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "name": checkpoint.name,
        "root": checkpoint.root,
        "seq": checkpoint.seq,
        "created": moment(checkpoint.created),
    }


def _change(workspace: Workspace, change_id: str | None) -> Operation | Proposal:
    """The operation of an id, else the proposal; without an id the newest operation."""
    if change_id is None:
        newest = workspace.log(limit=1)
        if not newest:
            raise NoChangeError("nothing was done here yet")
        return newest[0]
    try:
        operation = workspace.operation(change_id)
    except NotFoundError as error:
        try:
            return workspace.proposal(change_id)
        except NotFoundError:
            raise error from None
    if operation.state == "rolled_back":
        # An attempt of which nothing is left: what was approved waits again.
        with suppress(NotFoundError):
            proposal = workspace.proposal(operation.id)
            return proposal if proposal.state == "proposed" else operation
    return operation


_NAMED: Final = 6  # programs that one decision came through; the first of them say the most


def at_terminal(screen: Terminal) -> bool:
    """Whether a person reads what is said here, and types what is asked."""
    asks = sys.stdin is not None and sys.stdin.isatty()
    return asks and screen.terminal and not screen.json


def decider(arguments: Namespace, screen: Terminal) -> Session:
    """Return the session of the person or program that decides, as the journal keeps it.

    Raises:
        UnattendedError: Neither is a person there, nor does the caller say that none is needed.
    """
    there = at_terminal(screen)
    if not there and not arguments.unattended and not getattr(arguments, "dry_run", False):
        raise UnattendedError(
            f"`filepact {arguments.command}` needs a person at a terminal, and there is none",
            # Who reads this may be an agent, so it says no way to do without a person.
            hint="A person types it in a terminal of their own.",
        )
    caller = called_by(arguments)
    said = ", ".join(visible(one).replace("\n", " ") for one in caller.programs[:_NAMED])
    how = f"{'typed at a terminal' if there else NOBODY_LOOKED}, {caller}"
    return person(how=f"{how}, from {said}" if said else how, program=not there)


def agrees(question: str, screen: Terminal) -> bool:
    """Whether the person at the terminal says yes; an end of the input is a no."""
    while True:
        screen.ask(f"{question} [y/N] ")
        said = sys.stdin.readline()
        word = said.strip().lower()
        if word in ("y", "yes"):
            return True
        if word in ("", "n", "no"):
            return False

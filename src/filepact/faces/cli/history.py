"""The commands that look back and go back: log, show, diff, undo, redo and checkpoints."""

from __future__ import annotations

import time
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from filepact.errors import NoChangeError, NotFoundError
from filepact.faces.cli.deciding import decider
from filepact.faces.cli.paint import show_diff, tally
from filepact.faces.cli.place import here, opened
from filepact.faces.cli.record import age, answer_receipt, asked, details, facts, listed, moment
from filepact.faces.cli.screen import Answer, Span, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.operation import Checkpoint, Operation, Proposal
    from filepact.faces.cli.screen import Screen
    from filepact.workspace.workspace import Workspace

__all__ = ["checkpoint", "checkpoints", "diff", "log", "redo", "restore", "show", "undo"]


def log(arguments: Namespace, _screen: Screen) -> Answer:
    """Operations, or what agents asked and told, newest first."""
    if arguments.asked or arguments.reads:
        return _log_asked(arguments)
    with opened(arguments) as workspace:
        operations = workspace.log(
            path=None if arguments.path is None else here(workspace, arguments.path),
            limit=None if arguments.all else arguments.limit,
        )
        spans, known = listed(workspace, operations)
    return Answer(
        tuple(spans) or plain("Nothing was done here yet.\n"), {"operations": known}, long=True
    )


def _log_asked(arguments: Namespace) -> Answer:
    with opened(arguments) as workspace:
        questions = workspace.asked.questions(
            path=None if arguments.path is None else here(workspace, arguments.path),
            limit=None if arguments.all else arguments.limit,
            reads=arguments.reads,
        )
        spans, known = asked(workspace, questions)
    if arguments.reads:
        return Answer(
            tuple(spans) or plain("No agent has read anything here.\n"), {"reads": known}, long=True
        )
    return Answer(
        tuple(spans) or plain("No agent has asked for anything here.\n"),
        {"asked": known},
        long=True,
    )


def show(arguments: Namespace, screen: Screen) -> Answer:
    """One operation or proposal, with its diff."""
    with opened(arguments) as workspace:
        change = _change(workspace, arguments.operation)
        text = workspace.diff(change)
        known = facts(workspace, change, tally(text))
        spans = [*details(workspace, change), Span("\n"), *show_diff(text, screen)]
    return Answer(tuple(spans), {**known, "diff": text}, long=True)


def diff(arguments: Namespace, screen: Screen) -> Answer:
    """What one operation changed, as a patch and nothing else."""
    with opened(arguments) as workspace:
        change = _change(workspace, arguments.operation)
        text = workspace.diff(change)
        # A program gets the files' own bytes, so that the diff is a patch in any encoding.
        patch = workspace.patch(change).decode("utf-8", "surrogateescape")
    spans = show_diff(text, screen) if screen.terminal else plain(patch)
    return Answer(spans, {"id": change.id, "diff": text}, long=True)


def undo(arguments: Namespace, screen: Screen) -> Answer:
    """Take an operation back."""
    with opened(arguments) as workspace:
        return answer_receipt(
            workspace.undo(
                decider(arguments, screen), arguments.operation, dry_run=arguments.dry_run
            ),
            screen,
        )


def redo(arguments: Namespace, screen: Screen) -> Answer:
    """Bring back what was undone."""
    with opened(arguments) as workspace:
        return answer_receipt(
            workspace.redo(
                decider(arguments, screen), arguments.operation, dry_run=arguments.dry_run
            ),
            screen,
        )


def restore(arguments: Namespace, screen: Screen) -> Answer:
    """Bring files back to a checkpoint."""
    with opened(arguments) as workspace:
        return answer_receipt(
            workspace.restore(
                decider(arguments, screen), arguments.name, dry_run=arguments.dry_run
            ),
            screen,
        )


def checkpoint(arguments: Namespace, _screen: Screen) -> Answer:
    """Name this moment."""
    with opened(arguments) as workspace:
        made = workspace.checkpoint(arguments.name)
    return Answer(
        (
            Span(f"Checkpoint {made.name!r} is set.", "good"),
            Span(f" Come back to it with `filepact restore {quote(made.name)}`.\n"),
        ),
        _checkpoint_facts(made),
    )


def checkpoints(arguments: Namespace, _screen: Screen) -> Answer:
    """The checkpoints of the first root, oldest first."""
    with opened(arguments) as workspace:
        found = workspace.checkpoints()
    now = time.time()
    spans = [
        span
        for one in found
        for span in (
            Span(one.name, "title"),
            Span(f"  {age(one.created, now)}  after operation {one.seq}\n", "dim"),
        )
    ]
    return Answer(
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

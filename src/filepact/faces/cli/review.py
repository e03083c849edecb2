"""The commands of a person whose word is wanted: pending, approve and reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.domain.operation import Approval
from filepact.errors import InvalidParamsError, ProposalChangedError
from filepact.faces.cli.deciding import agrees, at_terminal, decider
from filepact.faces.cli.paint import show_diff
from filepact.faces.cli.place import here, opened
from filepact.faces.cli.record import (
    HOW_TO_DECIDE,
    answer_receipt,
    count,
    details,
    facts,
    listed,
)
from filepact.faces.cli.screen import DONE, NOTHING, Answer, Span, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal
    from filepact.faces.cli.screen import Screen
    from filepact.workspace.guard import Spot
    from filepact.workspace.workspace import Workspace

__all__ = ["approve", "pending", "reject"]


def pending(arguments: Namespace, _screen: Screen) -> Answer:
    """What waits for a person, oldest first."""
    with opened(arguments) as workspace:
        waiting = workspace.pending()
        spans, known = listed(workspace, waiting)
    if waiting:
        spans.append(Span(f"\n{HOW_TO_DECIDE}", "dim"))
    return Answer(tuple(spans) or plain("Nothing waits for you.\n"), {"pending": known}, long=True)


def approve(arguments: Namespace, screen: Screen) -> Answer:
    """Do what was proposed; a person at a terminal is shown it and asked."""
    word = Approval(decider(arguments, screen).actor)
    with opened(arguments) as workspace:
        proposal = workspace.proposal(arguments.operation)
        asks = at_terminal(screen) and not arguments.unattended
        while True:
            if asks and not _agrees(workspace, proposal, screen):
                return Answer(plain("Nothing is done; it waits as before.\n"), code=NOTHING)
            try:
                return answer_receipt(workspace.approve(proposal.id, word), screen)
            except ProposalChangedError as changed:
                if not asks:
                    raise
                proposal = workspace.proposal(str(changed.details["proposal"]))
                screen.write(plain(f"\nNothing is done: {changed.message}.\n\n"))
                if since := str(changed.details["since"]):
                    screen.write(plain("What has happened since:\n\n"))
                    screen.write((*show_diff(since, screen), Span("\nWhat it is now:\n\n")))


def _agrees(workspace: Workspace, proposal: Proposal, screen: Screen) -> bool:
    """Whether a person at the terminal says yes to what they are shown now."""
    proposal.check_waits()
    diff = show_diff(workspace.diff(proposal), screen)
    screen.page((*details(workspace, proposal), Span("\n"), *diff))
    return agrees(f"\nDo {proposal.id}?", screen)


def reject(arguments: Namespace, screen: Screen) -> Answer:
    """Refuse what was proposed."""
    if bool(arguments.operation) == arguments.all:
        raise InvalidParamsError(
            "name one change, or all of them",
            hint="`filepact reject ID`, or `filepact reject --all`.",
        )
    if (arguments.agent or arguments.path) and not arguments.all:
        raise InvalidParamsError("--agent and --path go with --all", hint="Leave them out.")
    approval = Approval(decider(arguments, screen).actor, arguments.reason)
    with opened(arguments) as workspace:
        if arguments.all:
            chosen = _chosen(workspace, arguments)
            workspace.reject_all(chosen, approval)
        else:
            chosen = (workspace.reject(arguments.operation, approval),)
        refused = [workspace.proposal(one.id) for one in chosen]
        known = [facts(workspace, one, None) for one in refused]
    reason = f": {arguments.reason}" if arguments.reason else "."
    if not arguments.all:
        return Answer((Span(f"Rejected {refused[0].id}{reason}\n", "warn"),), known[0])
    said = f"Rejected {count(len(refused), 'change')}{reason}\n" if refused else "Nothing waits.\n"
    return Answer((Span(said, "warn"),), {"rejected": known}, DONE if refused else NOTHING)


def _chosen(workspace: Workspace, arguments: Namespace) -> tuple[Proposal, ...]:
    """What waits, as far as it is meant."""
    spot = None
    if arguments.path is not None:
        spot = workspace.guard.find(here(workspace, arguments.path), "list")
    return tuple(
        one
        for one in workspace.pending()
        if (not arguments.agent or one.session.actor.name == arguments.agent)
        and (spot is None or any(_is_in(spot, path) for path in one.changes.paths))
    )


def _is_in(spot: Spot, path: WorkspacePath) -> bool:
    folder = spot.place.path
    inside = folder in (".", path.path) or path.path.startswith(f"{folder}/")
    return path.root == spot.root.path and inside

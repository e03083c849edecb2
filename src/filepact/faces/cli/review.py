"""The commands of a person whose word is wanted: pending, approve and reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.domain.operation import Approval
from filepact.faces.cli.deciding import agrees, at_terminal, decider
from filepact.faces.cli.paint import show_diff
from filepact.faces.cli.place import opened
from filepact.faces.cli.record import (
    HOW_TO_DECIDE,
    answer_receipt,
    details,
    facts,
    lines_of,
    listed,
)
from filepact.faces.cli.screen import NOTHING, Answer, Span, plain
from filepact.workspace.waiting import check_waits

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.faces.cli.screen import Screen

__all__ = ["approve", "pending", "reject"]


def pending(arguments: Namespace, _screen: Screen) -> Answer:
    """What waits for a person, oldest first."""
    with opened(arguments) as workspace:
        waiting = workspace.pending()
        spans, known = listed(workspace, waiting)
    if waiting:
        spans.append(Span(f"\n{HOW_TO_DECIDE}", "dim"))
    return Answer(tuple(spans) or plain("Nothing waits for you.\n"), {"pending": known})


def approve(arguments: Namespace, screen: Screen) -> Answer:
    """Do what was proposed; a person at a terminal is shown it and asked."""
    word = Approval(decider(arguments, screen).actor)
    with opened(arguments) as workspace:
        proposal = workspace.proposal(arguments.operation)
        if at_terminal(screen) and not arguments.unattended:
            check_waits(proposal)
            diff = show_diff(workspace.diff(proposal), screen)
            screen.write((*details(workspace, proposal), Span("\n"), *diff))
            if not agrees(f"\nDo {proposal.id}?", screen):
                return Answer(plain("Nothing is done; it waits as before.\n"), code=NOTHING)
        return answer_receipt(workspace.approve(proposal.id, word), screen)


def reject(arguments: Namespace, screen: Screen) -> Answer:
    """Refuse what was proposed."""
    word = Approval(decider(arguments, screen).actor, arguments.reason)
    with opened(arguments) as workspace:
        refused = workspace.reject(arguments.operation, word)
        known = facts(workspace, refused, lines_of(workspace, refused))
    reason = f": {refused.reason}" if refused.reason else "."
    return Answer((Span(f"Rejected {refused.id}{reason}\n", "warn"),), known)

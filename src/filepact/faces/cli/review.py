"""The commands of a person whose word is wanted: pending, approve and reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.domain.operation import Approval
from filepact.faces.cli.place import opened, person
from filepact.faces.cli.record import answer_receipt, facts, lines_of, listed
from filepact.faces.cli.screen import Answer, Span, plain

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
        spans.append(
            Span(
                "\nLook with `filepact diff ID`, then `filepact approve ID` or `reject ID`.\n",
                "dim",
            )
        )
    return Answer(tuple(spans) or plain("Nothing waits for you.\n"), {"pending": known})


def approve(arguments: Namespace, screen: Screen) -> Answer:
    """Do what was proposed."""
    with opened(arguments) as workspace:
        return answer_receipt(
            workspace.approve(arguments.operation, Approval(person().actor)), screen
        )


def reject(arguments: Namespace, _screen: Screen) -> Answer:
    """Refuse what was proposed."""
    with opened(arguments) as workspace:
        refused = workspace.reject(arguments.operation, Approval(person().actor, arguments.reason))
        known = facts(workspace, refused, lines_of(workspace, refused))
    reason = f": {refused.reason}" if refused.reason else "."
    return Answer((Span(f"Rejected {refused.id}{reason}\n", "warn"),), known)

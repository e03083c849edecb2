"""Our own questions to the person, in the editor's dialog for permissions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import Actor, Approval
from filepact.faces.acp.errors import CANCELLED, REFUSED, refuse
from filepact.text.hidden import visible

if TYPE_CHECKING:
    from filepact.faces.acp.errors import Refusal
    from filepact.faces.acp.proxy.questions import Questions
    from filepact.faces.acp.proxy.traffic import Facts
    from filepact.faces.acp.sessions import Bound
    from filepact.faces.wire.lines import Message
    from filepact.workspace.receipt import Receipt

__all__ = ["settle", "waits"]

_ALLOW: Final = "filepact-allow"
_REJECT: Final = "filepact-reject"
_LONGEST: Final = 60_000  # characters of a diff in a dialog


def settle(
    questions: Questions,
    facts: Facts,
    bound: Bound,
    receipt: Receipt,
    *,
    patience: float | None = None,
) -> Receipt:
    """Ask the person about a change that waits, and do it or not.

    Args:
        questions: Asks the editor.
        facts: Which version of the protocol it speaks.
        bound: The session.
        receipt: Of the change, which is pending.
        patience: Seconds after which the change is left waiting; None for as long as it takes.

    Returns:
        The receipt of what was done, or the same when the editor has no dialog or nobody answers.

    Raises:
        Refusal: The person said no, or the turn ended first.
        FilepactError: It was allowed and could not be done.
    """
    change = str(receipt.operation)
    asked = _question(bound.id, change, receipt, modern=facts.protocol > 1)
    reply = questions.ask("session/request_permission", asked, patience=patience)
    if reply.kind == "cancelled":
        bound.workspace.reject(change, Approval(Actor("program", "editor"), "the turn ended"))
        raise refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")
    outcome = reply.value.get("outcome") if isinstance(reply.value, dict) else None
    if reply.kind != "result" or not isinstance(outcome, dict):
        return receipt
    person = Approval(Actor("person", "editor"))
    if outcome.get("outcome") == "selected" and outcome.get("optionId") == _ALLOW:
        return bound.workspace.approve(change, person, to_agent=True)
    bound.workspace.reject(change, person)
    raise refuse(REFUSED, "denied", "The person refused this change.")


def waits(receipt: Receipt) -> Refusal:
    """The refusal for a change that stays with the person."""
    change = receipt.operation
    return refuse(
        REFUSED,
        "approval_required",
        f"This change waits for a person as {change} ({receipt.rule}); nothing is changed yet. "
        f"`filepact approve {change}` does it. Do not send it again.",
    )


def _question(session: str, change: str, receipt: Receipt, *, modern: bool) -> Message:
    title = f"filepact: {visible(receipt.summary)} ({visible(receipt.rule)})"
    diff = visible(receipt.diff)
    if len(diff) > _LONGEST:
        diff = f"{diff[:_LONGEST]}\n... `filepact diff {change}` shows the rest"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", diff)), default=0))
    text = f"{fence}diff\n{diff}\n{fence}"
    shown = {"type": "content", "content": {"type": "text", "text": text}}
    call = {
        "toolCallId": f"filepact-{change}",
        "title": title,
        "kind": "edit",
        "status": "pending",
        "content": [shown],
    }
    options = [
        {"optionId": _ALLOW, "name": "Allow this change", "kind": "allow_once"},
        {"optionId": _REJECT, "name": "Refuse it", "kind": "reject_once"},
    ]
    if modern:
        subject = {"type": "tool_call", "toolCall": call}
        return {"sessionId": session, "title": title, "subject": subject, "options": options}
    return {"sessionId": session, "toolCall": call, "options": options}

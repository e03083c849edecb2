"""Our own questions to the person, in the editor's dialog for permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.domain.operation import Actor, Approval
from filepact.errors import ProposalChangedError
from filepact.faces.acp.errors import CANCELLED, REFUSED, refuse
from filepact.faces.acp.proposed import ROUNDS, exhibit, left_waiting, renewed

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal
    from filepact.faces.acp.agents import ConnectionInfo
    from filepact.faces.acp.errors import ClientRequestError
    from filepact.faces.acp.proposed import ProposalSummary
    from filepact.faces.acp.proxy.questions import EditorRequests
    from filepact.faces.acp.sessions import AcpSession
    from filepact.wire.messages import Message
    from filepact.workspace.receipt import Receipt

__all__ = ["settle", "waits"]


def settle(
    questions: EditorRequests,
    facts: ConnectionInfo,
    bound: AcpSession,
    receipt: Receipt,
    approve: Callable[[str, Approval], Receipt],
    *,
    patience: float | None = None,
) -> Receipt:
    """Ask the person about a change that waits, and do it or not.

    Nobody is asked about what they have allowed for longer than once.  Where the files moved while
    they looked, they are shown what fits now, and asked about that.

    Args:
        questions: Asks the editor.
        facts: Which version of the protocol it speaks.
        bound: The session.
        receipt: Of the change, which is pending.
        approve: Does it, once it was allowed.
        patience: Seconds after which the change is left waiting; None for as long as it takes.

    Returns:
        The receipt of what was done, or the same when the editor has no dialog or nobody answers.

    Raises:
        ClientRequestError: The person said no, or the turn ended first.
        FilepactError: It was allowed and could not be done.
    """
    since = ""
    for _ in range(ROUNDS):
        try:
            return _ask(questions, facts, bound, receipt, approve, patience, since)
        except ProposalChangedError as changed:
            receipt, since = renewed(bound.workspace, changed), str(changed.details["since"])
    return receipt


def _ask(
    questions: EditorRequests,
    facts: ConnectionInfo,
    bound: AcpSession,
    receipt: Receipt,
    approve: Callable[[str, Approval], Receipt],
    patience: float | None,
    since: str,
) -> Receipt:
    workspace, person = bound.workspace, Approval(Actor("person", "editor"))
    proposal = workspace.proposal(str(receipt.operation))
    if bound.grants.cover(proposal):
        return approve(proposal.id, person)
    shown = _exhibit(bound, proposal, since, modern=facts.protocol > 1)
    options = bound.grants.options(proposal, workspace.guard.policy, whole=shown.whole)
    asked = _question(bound, proposal, shown, options, modern=facts.protocol > 1)
    reply = questions.ask("session/request_permission", asked, patience=patience)
    done = False
    try:
        if reply.kind == "cancelled":
            workspace.reject(proposal.id, Approval(Actor("program", "editor"), "the turn ended"))
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")
        outcome = reply.value.get("outcome") if isinstance(reply.value, dict) else None
        if reply.kind != "result" or not isinstance(outcome, dict):
            return receipt
        chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        if bound.grants.hear(proposal, chosen, options):
            receipt = approve(proposal.id, person)
            done = True
            return receipt
        if left_waiting(chosen):
            return receipt
        if outcome.get("outcome") == "cancelled":
            workspace.reject(proposal.id, Approval(person.actor, "closed without an answer"))
            closed = refuse(
                REFUSED, "denied", "The question was closed without an answer; nothing was changed."
            )
            closed.data["closed"] = True
            raise closed
        workspace.reject(proposal.id, person)
        raise refuse(REFUSED, "denied", "The person refused this change.")
    finally:
        if reply.kind != "silent":
            _close(questions, bound.id, proposal, done=done)


def waits(receipt: Receipt) -> ClientRequestError:
    """The refusal for a change that stays with the person."""
    change = receipt.operation
    return refuse(
        REFUSED,
        "approval_required",
        f"This change waits for a person as {change} ({receipt.rule}); nothing is changed yet. "
        "The person finds it with `filepact pending`, and decides there. Do not send it again.",
    )


def _exhibit(bound: AcpSession, proposal: Proposal, since: str, *, modern: bool) -> ProposalSummary:
    def name(path: WorkspacePath) -> str | None:
        """As the editor calls the folder, whatever links lead to it."""
        for root, given in zip(bound.workspace.guard.roots, bound.roots, strict=False):
            if root.path == path.root:
                return f"{given.rstrip('/')}/{path.path}"
        return path.absolute

    return exhibit(bound.workspace, proposal, name, modern=modern, since=since)


def _question(
    bound: AcpSession,
    proposal: Proposal,
    shown: ProposalSummary,
    options: list[Message],
    *,
    modern: bool,
) -> Message:
    title = f"filepact: {shown.title}"
    call: Message = {
        "toolCallId": _call(proposal),
        "title": title,
        "kind": "edit",
        "status": "pending",
        "content": list(shown.contents) if modern else shown.blocks,
        "locations": list(shown.locations),
    }
    if not modern:
        return {"sessionId": bound.id, "toolCall": call, "options": options}
    asked: Message = {
        "sessionId": bound.id,
        "title": title,
        "subject": {"type": "tool_call", "toolCall": call},
        "options": options,
    }
    # What is in the call stays with the call; what is said besides is for the question alone.
    return {**asked, "description": shown.text} if shown.text else asked


def _call(proposal: Proposal) -> str:
    return f"filepact-{proposal.id}"


def _close(questions: EditorRequests, session: str, proposal: Proposal, *, done: bool) -> None:
    """The editor need not show the call as one that waits."""
    update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": _call(proposal),
        "status": "completed" if done else "failed",
    }
    questions.tell("session/update", {"sessionId": session, "update": update})

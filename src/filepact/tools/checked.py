"""What language servers say of a change, before it is done and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.errors import NewErrorsError

if TYPE_CHECKING:
    from filepact.semantic.insight import Insight
    from filepact.semantic.update import WorkspaceUpdate
    from filepact.tools.registry import Call
    from filepact.workspace.draft import Draft
    from filepact.workspace.receipt import Receipt

__all__ = ["NEW_ERRORS_RULE", "follow", "foresee", "hold_to", "remember"]

NEW_ERRORS_RULE: Final = "new errors"
"""Stands for a rule where a person is asked because servers find new errors."""


def foresee(insight: Insight, draft: Draft, call: Call) -> WorkspaceUpdate | None:
    """What servers would find, where a change is only shown or may be refused for it.

    Args:
        insight: The servers.
        draft: The change; if errors are not allowed, it may come to ask for approval.
        call: Who wants it.

    Raises:
        NewErrorsError: It would bring errors, and these are refused.
    """
    changes = draft.changes
    strict = insight.new_errors != "allow" and not draft.dry_run and not draft.asks
    if not changes or not (draft.dry_run or strict):
        return None
    update = insight.foresee(
        changes, draft.contents, session=call.session, cancelled=call.cancelled
    )
    if strict:
        hold_to(insight, draft, update)
    return update


def remember(insight: Insight, draft: Draft, call: Call) -> float | None:
    """Ask what servers find before a change where that cannot be asked afterwards.

    Args:
        insight: The servers.
        draft: The change.
        call: Who wants it.

    Returns:
        How many seconds are left for following it; None for all that are allowed.
    """
    if not draft.changes or draft.dry_run or draft.asks:
        return None
    return insight.remember(
        draft.changes, draft.contents, session=call.session, cancelled=call.cancelled
    )


def hold_to(insight: Insight, draft: Draft, update: WorkspaceUpdate) -> None:
    """Refuse a change that would bring errors, or have a person asked, as it is set.

    A change about which servers cannot say enough in time is allowed, and a note says so.

    Args:
        insight: The servers, and what is set.
        draft: The change.
        update: What they would find.

    Raises:
        NewErrorsError: It would bring errors, and these are refused.
    """
    findings = update.findings
    errors = [one for one in findings.new if one.severity == "error"] if findings else []
    if errors and insight.new_errors == "deny":
        count = len(errors)
        listed = insight.listed(errors)
        raise NewErrorsError(
            f"the change would bring {count} new {'error' if count == 1 else 'errors'}, "
            f"nothing was written:\n{listed}",
            hint="Send a change that brings none, all of its files together; dry_run shows what the "
            "language servers would find.",
            errors=count,
        )
    if errors and insight.new_errors == "ask":
        draft.require(NEW_ERRORS_RULE)
        draft.notes.append(f"It would bring new errors:\n{insight.listed(errors)}")
        return
    if update.kind == "none":
        return
    silent = [one for one in update.servers if one.confirmed_by == "none"]
    if silent or findings is None:
        why = "; ".join(f"{one.server}: {one.message}" for one in silent) or update.message
        draft.notes.append(f"Not checked for new errors: {why or 'no answer in time'}.")
    elif not findings.complete:
        draft.notes.append("Checked for new errors only in part: not all files were looked at.")


def follow(
    insight: Insight,
    draft: Draft,
    receipt: Receipt,
    call: Call,
    foreseen: WorkspaceUpdate | None,
    seconds: float | None = None,
) -> str:
    """What a receipt says of it; empty where no server knows the files.

    Args:
        insight: The servers.
        draft: The change; its files need not be locked any more.
        receipt: What came of it.
        call: Who wanted it.
        foreseen: What was found before it was done.
        seconds: How long it may take; None for as long as is set.
    """
    if receipt.status == "preview" and foreseen is not None:
        return insight.line(foreseen)
    if receipt.status != "applied":
        return ""
    update = insight.follow(
        draft.changes,
        draft.contents,
        session=call.session,
        seconds=seconds,
        cancelled=call.cancelled,
    )
    return insight.line(update)

"""Holds a change to what language servers find in it, before it is done, and reports it after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.errors import NewErrorsError

if TYPE_CHECKING:
    from filepact.semantic.service import SemanticWorkspace
    from filepact.semantic.updates import WorkspaceUpdate
    from filepact.tools.registry import CallContext
    from filepact.workspace.draft import Draft
    from filepact.workspace.receipt import Receipt

__all__ = ["NEW_ERRORS_RULE", "follow", "foresee", "hold_to", "remember"]

NEW_ERRORS_RULE: Final = "new errors"
"""Stands for a rule where a person is asked because servers find new errors."""


def foresee(
    semantics: SemanticWorkspace, draft: Draft, call: CallContext
) -> WorkspaceUpdate | None:
    """The servers' findings for a change that is only shown, or that they may cause to be refused.

    Args:
        semantics: The servers.
        draft: The change; if errors are not allowed, it may come to ask for approval.
        call: Who wants it.

    Raises:
        NewErrorsError: It would bring errors, and these are refused.
    """
    changes = draft.changes
    strict = semantics.new_errors != "allow" and not draft.dry_run and not draft.asks
    if not changes or not (draft.dry_run or strict):
        return None
    update = semantics.preview(
        changes, draft.versions, session=call.session, cancelled=call.cancelled
    )
    if strict:
        hold_to(semantics, draft, update)
    return update


def remember(semantics: SemanticWorkspace, draft: Draft, call: CallContext) -> float | None:
    """Record diagnostics before a change for files whose diagnostics it makes unobtainable.

    Args:
        semantics: The servers.
        draft: The change.
        call: Who wants it.

    Returns:
        How many seconds are left for following it; None for all that are allowed.
    """
    if draft.dry_run or draft.asks:
        return None
    if all(one.before and one.after for one in draft.changes.changes):
        return None  # A text that was there can be shown to servers again.
    return semantics.baseline(
        draft.changes, draft.versions, session=call.session, cancelled=call.cancelled
    )


def hold_to(semantics: SemanticWorkspace, draft: Draft, update: WorkspaceUpdate) -> None:
    """Refuse a change that would bring new errors, or require approval for it, as it is set.

    A change about which servers cannot say enough in time is allowed, and a note says so.

    Args:
        semantics: The servers, and what is set.
        draft: The change.
        update: What they would find.

    Raises:
        NewErrorsError: It would bring errors, and these are refused.
    """
    findings = update.findings
    errors = [one for one in findings.new if one.severity == "error"] if findings else []
    if errors and semantics.new_errors == "deny":
        count = len(errors)
        listed = semantics.listed(errors)
        raise NewErrorsError(
            f"the change would bring {count} new {'error' if count == 1 else 'errors'}, "
            f"nothing was written:\n{listed}",
            hint="Send a change that brings none, all of its files together; dry_run shows what the "
            "language servers would find.",
            errors=count,
        )
    if errors and semantics.new_errors == "ask":
        draft.require(NEW_ERRORS_RULE)
        draft.notes.append(f"It would bring new errors:\n{semantics.listed(errors)}")
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
    semantics: SemanticWorkspace,
    draft: Draft,
    receipt: Receipt,
    call: CallContext,
    foreseen: WorkspaceUpdate | None,
    seconds: float | None = None,
) -> str:
    """The receipt's line about diagnostics; empty where no server knows the files.

    Args:
        semantics: The servers.
        draft: The change; its files need not be locked any more.
        receipt: What came of it.
        call: Who wanted it.
        foreseen: What was found before it was done.
        seconds: How long it may take; None for as long as is set.
    """
    if receipt.status == "preview" and foreseen is not None:
        return semantics.line(foreseen)
    if receipt.status != "applied":
        return ""
    update = semantics.verify(
        draft.changes,
        draft.versions,
        session=call.session,
        seconds=seconds,
        cancelled=call.cancelled,
        brief=True,
    )
    return semantics.line(update)

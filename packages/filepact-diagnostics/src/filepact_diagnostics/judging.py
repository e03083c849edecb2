"""What language servers find in a call's change: before it, where they may cause it to be refused, and for its receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.errors import NewErrorsError, NotJudgedError
from filepact_diagnostics.semantic.service import SemanticWorkspace

if TYPE_CHECKING:
    from filepact.tools.answers import CallContext
    from filepact.workspace.draft import Draft
    from filepact.workspace.receipt import Receipt
    from filepact_diagnostics.semantic.updates import WorkspaceUpdate

__all__ = ["NEW_ERRORS_RULE", "ServerJudge"]

NEW_ERRORS_RULE: Final = "new errors"
"""Stands for a rule where a person is asked because servers find new errors."""
_LONGEST: Final = 20.0


def _judged(update: WorkspaceUpdate) -> bool:
    """Whether no server has failed, or was too late, that can prove its answers."""
    silent = [one for one in update.servers if not one.proven and one.message]
    return update.kind != "failed" and all(one.confirmed_by != "none" for one in silent)


class ServerJudge(SemanticWorkspace):
    """The language servers of a workspace, as the engine of tools asks them."""

    def check(self, draft: Draft, call: CallContext) -> WorkspaceUpdate | None:
        """The servers' findings for a change that is only shown, or that they may cause to be refused.

        If errors are not allowed, the draft may come to ask for approval.

        Raises:
            NewErrorsError: It would bring errors, and these are refused.
            NotJudgedError: These are refused, and a server that knows it has not answered.
        """
        strict = self.new_errors != "allow" and not draft.dry_run and not draft.asks
        if not (draft.dry_run or strict):
            return None
        changes = draft.changes
        if not changes:
            return None
        # What takes all of a call's time keeps its change from being made.
        seconds = min(self.budget, call.deadline.left / 2)
        update = self.preview(
            changes, draft.versions, session=call.session, seconds=seconds, cancelled=call.cancelled
        )
        if strict and not _judged(update) and self.mode != "off":
            left = min(call.deadline.left / 2, _LONGEST)
            update = self.preview(
                changes,
                draft.versions,
                session=call.session,
                seconds=left,
                cancelled=call.cancelled,
                patient=True,
            )
        if strict:
            self._refuse_new_errors(draft, update)
        return update

    def note_before(self, draft: Draft, call: CallContext) -> float | None:
        """Record diagnostics before a change for files whose diagnostics it makes unobtainable.

        Returns:
            How many seconds are left for following it; None for all that are allowed.
        """
        if draft.dry_run or draft.asks:
            return None
        if all(one.before and one.after for one in draft.changes.changes):
            return None  # A text that was there can be shown to servers again.
        return self.baseline(
            draft.changes,
            draft.versions,
            session=call.session,
            seconds=call.deadline.left / 2,
            cancelled=call.cancelled,
        )

    def report(
        self,
        draft: Draft,
        receipt: Receipt,
        call: CallContext,
        checked: WorkspaceUpdate | None,
        seconds: float | None = None,
    ) -> str:
        """The receipt's line about diagnostics; empty where no server knows the files.

        Args:
            draft: The change; its files need not be locked any more.
            receipt: What came of it.
            call: Who wanted it.
            checked: What was found before it was done.
            seconds: How long it may take; None for as long as is set.
        """
        if receipt.status == "preview" and checked is not None:
            return self.line(checked, session=call.session)
        if receipt.status != "applied":
            return ""
        update = self.verify(
            draft.changes,
            draft.versions,
            session=call.session,
            seconds=min(self.budget if seconds is None else seconds, call.deadline.left),
            cancelled=call.cancelled,
            brief=True,
        )
        return self.line(update, session=call.session)

    def _refuse_new_errors(self, draft: Draft, update: WorkspaceUpdate) -> None:
        """Refuse a change that would bring new errors, or require approval for it, as it is set.

        Of one that servers have judged in part, or cannot prove anything about, a note says so.
        """
        findings = update.findings
        errors = [one for one in findings.new if one.severity == "error"] if findings else []
        if errors and self.new_errors == "deny":
            count = len(errors)
            listed = self.list_diagnostics(errors)
            raise NewErrorsError(
                f"the change would bring {count} new {'error' if count == 1 else 'errors'}, "
                f"nothing was written:\n{listed}",
                hint="Send a change that brings none, all of its files together; dry_run shows what the "
                "language servers would find.",
                errors=count,
            )
        if errors and self.new_errors == "ask":
            draft.require(NEW_ERRORS_RULE)
            draft.notes.append(f"It would bring new errors:\n{self.list_diagnostics(errors)}")
            return
        if update.kind == "none":
            return
        silent = [one for one in update.servers if not one.proven]
        why = "; ".join(f"{one.server}: {one.message}" for one in silent) or update.message
        if self.new_errors == "deny" and not _judged(update):
            raise NotJudgedError(
                f"it is not known whether the change brings new errors, nothing was written: {why}",
                hint="Send it again in a moment: the server goes on. If it stays so, the person can set "
                'new_errors = "ask" or "allow" under [diagnostics], or switch that server off.',
            )
        if silent or findings is None:
            draft.notes.append(f"Not checked for new errors: {why or 'no answer in time'}.")
        elif not findings.complete:
            draft.notes.append("Checked for new errors only in part: not all files were looked at.")

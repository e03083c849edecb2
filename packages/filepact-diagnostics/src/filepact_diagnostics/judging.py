"""What language servers find in a call's change: before it, where they may cause it to be refused, and for its receipt."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import CHECKED, CHECKED_PARTLY, UNCHECKED
from filepact.errors import FilepactError, NewErrorsError, NotJudgedError
from filepact.values import late_logger, replace
from filepact.workspace.moves import whole_moves
from filepact_diagnostics.semantic import receipt_lines
from filepact_diagnostics.semantic.service import SemanticWorkspace
from filepact_diagnostics.semantic.updates import WorkspaceUpdate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.domain.change import ChangeSet
    from filepact.domain.operation import Session
    from filepact.tools.answers import CallContext
    from filepact.workspace.documents import DocumentCache
    from filepact.workspace.draft import Draft
    from filepact.workspace.history import SessionHistory
    from filepact.workspace.pending import SessionEvent
    from filepact.workspace.receipt import Receipt
    from filepact_diagnostics.lsp.diagnostics import Diagnostic

__all__ = ["NEW_ERRORS_RULE", "ServerJudge"]

NEW_ERRORS_RULE: Final = "new errors"
"""Stands for a rule where a person is asked because servers find new errors."""
_LONGEST: Final = 20.0
_MOST_SESSIONS: Final = 1_000
_WAY: Final = "Send a change that brings none, all of its files together; dry_run shows what the language servers would find."
_NOT_THERE: Final = (
    "Changes of yours that wait for a person do not count, though you are shown the files with them: "
    "go on from these once `history` (status) says that they were made."
)
_WAY_BACK: Final = "Mend it by an edit, all of its files together; or ask the person, whose own undo nothing refuses."
_WHOLE: Final = "a folder of so many files moves as one, and servers know some of them"
_log = late_logger(__name__)


def _judged(update: WorkspaceUpdate, *, whole: bool = False) -> bool:
    """Whether no server has failed, or was too late, that can prove its answers; if `whole`, also about doubtful files."""
    if whole and update.findings and update.findings.doubtful and update.findings.pending:
        return False
    silent = [one for one in update.servers if not one.proven and one.message]
    return update.kind != "failed" and all(one.confirmed_by != "none" for one in silent)


class ServerJudge(SemanticWorkspace):
    """The language servers of a workspace, as the engine of tools asks them."""

    def _moves_known(self, changes: ChangeSet) -> bool:
        """Whether a folder moves as one with files that servers know, which nobody has opened."""
        counts = self.mode != "off" and self.new_errors != "allow"
        moved = [old.path for old, _ in whole_moves(changes.changes)] if counts else []
        return any(self._servers[one.root].disk.knows_below(one) for one in moved)

    def check(self, draft: Draft, call: CallContext) -> WorkspaceUpdate | None:
        """The servers' findings for a change that is only shown, or that they may cause to be refused.

        If errors are not allowed, the draft may come to ask for approval.

        Raises:
            NewErrorsError: It would bring errors, and these are refused.
            NotJudgedError: These are refused, and a server that knows it has not answered.
        """
        refuses = self.new_errors == "deny" or (self.new_errors == "ask" and not draft.asks)
        if not draft.changes or not (refuses or draft.dry_run):
            return None
        update = self._judge(draft.changes, draft.versions, call, patient=not draft.dry_run)
        if not draft.dry_run:
            waits = self._workspace.pending() if _errors(update) else ()
            waiting = any(one.session.id == call.session.id for one in waits)
            way = f"{_WAY} {_NOT_THERE}" if waiting else _WAY
            rule, draft.judged = self._verdict(update, way, draft.notes)
            if rule:
                draft.require(rule)
            may_see = self._may_see(call.session)
            hidden = [one for one in draft.changes.paths if not may_see(one)]
            if any(self._servers[one.root].disk.knows(one) for one in hidden):
                draft.judged = UNCHECKED  # A person is asked about it, and no server was.
        return update

    def check_undo(
        self, past: SessionHistory, call: CallContext, changes: ChangeSet, versions: DocumentCache
    ) -> str:
        """The rule by which a person is asked about what an agent takes or brings back; empty for none.

        Raises:
            NewErrorsError: There would be more errors than there are now, and these are refused.
            NotJudgedError: As for `check`.
        """
        if self.new_errors == "allow":
            return ""
        update = self._judge(changes, versions, call, patient=True)
        past.confirm = lambda receipt: self.confirm(changes, versions, call, receipt, update)
        rule, _ = self._verdict(update, _WAY_BACK, [])
        return rule

    def confirm(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        call: CallContext,
        receipt: Receipt,
        checked: WorkspaceUpdate | None,
        moved: bool = False,
    ) -> WorkspaceUpdate | None:
        """What servers find in a change that is done; None where they could foresee it.

        What comes and goes they see on the disk alone, and what others have written meanwhile, which is
        known already if `moved`.  If it has brought errors, it is taken back.

        Raises:
            NewErrorsError: It has brought errors, and was taken back.
            NotJudgedError: Only this could tell, no server has answered in time, and it was taken back.
        """
        if checked is None or receipt.status != "applied" or self.new_errors != "deny":
            return None
        seconds = min(max(call.deadline.left / 2, self.budget), _LONGEST)
        # Of calls that were judged at once, each without the others, the second look sees the first's.
        held = self._confirming.acquire(timeout=seconds)
        try:
            moved = moved or self.moved(changes, checked.turn)
            doubtful = moved or (checked.findings and checked.findings.doubtful)
            if not doubtful and all(one.before and one.after for one in changes.changes):
                return None
            ask = partial(self.verify, session=call.session, cancelled=call.cancelled, patient=True)
            update = ask(changes, versions, seconds=seconds, before=checked.before)
            if _errors(update) or (doubtful and not _judged(update, whole=True)):
                self._take_back(update, changes, call, receipt)
        finally:
            if held:
                self._confirming.release()
        return update

    def _take_back(
        self, update: WorkspaceUpdate, changes: ChangeSet, call: CallContext, receipt: Receipt
    ) -> None:
        """Take back what was done and may not be; it stays where others have gone on from it."""
        try:
            again = replace(call.session, change="", request="")
            back = self._workspace.undo(again, receipt.operation).operation
            self.renew(changes)
        except FilepactError as error:
            _log.warning("%s brought errors and stays: %s", receipt.operation, error.message)
            return
        done = f"it was done as {receipt.operation} and taken back by {back}"
        self._refuse(update, _errors(update), done)
        raise _not_judged(update, done)

    def follow(self, changes: ChangeSet, versions: DocumentCache, session: Session) -> None:
        """Ask about a change that a person has approved, without waiting; a later answer tells of it."""
        self.verify(changes, versions, session=session, seconds=0.0)

    def note_before(self, draft: Draft, call: CallContext) -> float | None:
        """Record diagnostics before a change for files whose diagnostics it makes unobtainable.

        Returns:
            How many seconds are left for following it; None for all that are allowed.
        """
        if draft.dry_run or draft.asks:
            return None
        return self.baseline(
            draft.changes,
            draft.versions,
            session=call.session,
            seconds=min(call.deadline.left / 2, _LONGEST),
            cancelled=call.cancelled,
            patient=self.new_errors == "deny",
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
        update = self.confirm(draft.changes, draft.versions, call, receipt, checked)
        if update is None:
            update = self.verify(
                draft.changes,
                draft.versions,
                session=call.session,
                seconds=min(self.budget if seconds is None else seconds, call.deadline.left),
                cancelled=call.cancelled,
                brief=True,
            )
            if _errors(update):
                others = self.confirm(draft.changes, draft.versions, call, receipt, checked, True)
                update = others or update
        return self.line(update, session=call.session)

    def line(self, update: WorkspaceUpdate, *, session: Session) -> str:
        """The lines of a receipt about an update; empty where no server knows the files.

        How far a server's answers go is told to a session once.
        """
        told = self._told.setdefault(session.id, set())
        while len(self._told) > _MOST_SESSIONS:
            del self._told[next(iter(self._told))]
        return receipt_lines.describe(update, self._show, warnings=self._warnings, told=told)

    def list_diagnostics(self, found: Iterable[Diagnostic]) -> str:
        """The first of some diagnostics, one on each line."""
        return "\n".join(receipt_lines.list_found(found, self._show))

    def events(self, session_id: str) -> tuple[SessionEvent, ...]:
        """The diagnostics found after the receipts of changes; told until they are acknowledged."""
        return self._deferred.unheard.of(session_id)

    def waits(self, session_id: str) -> bool:
        """Whether servers are still asked about changes of a session."""
        return bool(self._deferred.pending(session_id))

    def acknowledge(self, session_id: str, news: Sequence[SessionEvent]) -> None:
        """The session was told these; what is not about servers is left out."""
        self._deferred.unheard.acknowledge(session_id, news)

    def _judge(
        self, changes: ChangeSet, versions: DocumentCache, call: CallContext, *, patient: bool
    ) -> WorkspaceUpdate:
        """What servers would find in a change; if `patient`, they are waited for."""
        if self._moves_known(changes):
            return WorkspaceUpdate("failed", False, False, False, _WHOLE)
        ask = partial(self.preview, session=call.session, cancelled=call.cancelled)
        # What takes all of a call's time keeps its change from being made.
        left = call.deadline.left / 2
        update = ask(changes, versions, seconds=min(self.budget, left))
        if _judged(update) or not patient or self.mode == "off":
            return update
        left = min(call.deadline.left / 2, _LONGEST)
        return ask(changes, versions, seconds=left, patient=True)

    def _verdict(self, update: WorkspaceUpdate, way: str, notes: list[str]) -> tuple[str, str]:
        """The rule by which a person is asked about a change, and `Draft.judged`.

        Args:
            update: What servers would find.
            way: What to do if it is refused.
            notes: Takes how far it was checked.
        """
        errors, findings = _errors(update), update.findings
        doubtful = findings.doubtful if findings else frozenset()
        if self.new_errors == "deny":
            sure = [one for one in errors if one.path not in doubtful]
            self._refuse(update, sure, "nothing was written", way)
        elif errors:
            notes.append(f"It would bring new errors:\n{self.list_diagnostics(errors)}")
            return NEW_ERRORS_RULE, ""
        if update.kind == "none" and not doubtful:
            return "", ""
        if findings is None or any(not one.proven for one in update.servers):
            doubtful = frozenset({""})
            notes.append(f"Not checked for new errors: {_why(update) or 'no answer in time'}.")
        elif not findings.complete:
            notes.append("Checked for new errors only in part: not all files were looked at.")
            return "", UNCHECKED if doubtful else CHECKED_PARTLY
        return "", UNCHECKED if doubtful else CHECKED

    def _refuse(
        self, update: WorkspaceUpdate, errors: Sequence[Diagnostic], done: str, way: str = _WAY
    ) -> None:
        """Refuse a change that brings errors, or of which that is not known."""
        if errors:
            count = f"{len(errors)} new {'error' if len(errors) == 1 else 'errors'}"
            said = f"the change would bring {count}, {done}:\n{self.list_diagnostics(errors)}"
            raise NewErrorsError(said, hint=way, errors=len(errors))
        if not _judged(update) and update.kind != "none":
            raise _not_judged(update, done)


def _not_judged(update: WorkspaceUpdate, done: str) -> NotJudgedError:
    return NotJudgedError(
        f"it is not known whether the change brings new errors, {done}: {_why(update)}",
        hint="Send it again in a moment, as the server goes on, or in parts. If it stays so, the person can set "
        'new_errors = "ask" or "allow" under [diagnostics], or switch that server off.',
    )


def _errors(update: WorkspaceUpdate) -> list[Diagnostic]:
    findings = update.findings
    return [one for one in findings.new if one.severity == "error"] if findings else []


def _why(update: WorkspaceUpdate) -> str:
    """Why it is not known what servers find."""
    silent = [one for one in update.servers if not one.proven]
    return "; ".join(f"{one.server}: {one.message}" for one in silent) or update.message or ""

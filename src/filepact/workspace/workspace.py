"""The workspace: every read, change, approval and undo goes through here."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.document import FOLDER
from filepact.domain.operation import ChangeId, Checkpoint, Operation, Proposal, ProposalLimits
from filepact.errors import FilepactError
from filepact.text.page import PAGE
from filepact.workspace.approval import Approvals
from filepact.workspace.buffers import Buffers
from filepact.workspace.commit import Committer
from filepact.workspace.documents import EDITORCONFIG, DocumentCache, Documents, EncodingSettings
from filepact.workspace.draft import Draft
from filepact.workspace.editors import BufferWriter, Editors
from filepact.workspace.external import ExternalChanges
from filepact.workspace.history import (
    SessionHistory,
    SessionLimit,
    UndoChange,
    add_checkpoint,
    operations_on,
    plan_redo,
    plan_restore,
    plan_undo,
)
from filepact.workspace.journal import new_id
from filepact.workspace.observe import ExternalFiles
from filepact.workspace.pending import PendingProposals, check_free
from filepact.workspace.permission_log import PermissionLog
from filepact.workspace.read_tracker import KnownTextCache
from filepact.workspace.rebase import Rebase, RebaseResult
from filepact.workspace.receipt import (
    FileTexts,
    Receipt,
    done_receipt,
    patch_of,
    show_changes,
    summary_of,
    texts_of,
)
from filepact.workspace.recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import Approval, Session
    from filepact.domain.policy import Action, Decision
    from filepact.fs.state import StateFolder
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStatistics, JournalStore
    from filepact.workspace.pending import SessionEvent
    from filepact.workspace.read_tracker import KnownTextWriter
    from filepact.workspace.reader import Reader
    from filepact.workspace.receipt import ChangeDiff, Hides

__all__ = ["Mode", "Workspace"]

Mode = Literal["auto", "preview"]
"""``auto``: what the rules allow is done at once.  ``preview``: every change waits for a person."""

_JOURNAL_LIMIT = 1 << 30
_JOURNAL_KEPT = 86_400.0


class Workspace:
    """Roots, journal and rules together; a context manager that closes them.

    Args:
        guard: The roots and the rules over them.
        store: The journal; closed with the workspace.
        state: The state folder, for locks and rescued texts.
        mode: Whether allowed changes are done or wait.
        encodings: What is said about files' encodings; None asks only ``.editorconfig``.
        buffers: Of editors that other workspaces serve too; None makes new ones.
        lasting: What sessions know beyond the end of the process; None keeps nothing.
        limits: How much may wait for a person, and for how long.
    """

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        state: StateFolder,
        *,
        mode: Mode = "auto",
        encodings: EncodingSettings | None = None,
        buffers: Buffers | None = None,
        lasting: KnownTextWriter | None = None,
        limits: ProposalLimits = ProposalLimits(),  # noqa: B008 - frozen
    ) -> None:
        self.guard = guard
        self.mode = mode
        self._store = store
        self._state = state
        self._seen = KnownTextCache(lasting=lasting)
        self._buffers = Buffers() if buffers is None else buffers
        self._documents = Documents(encodings or EncodingSettings(guard), self._buffers)
        self.editors = Editors(guard, self._documents, self._buffers)
        self._patience = SessionLimit()
        self._waiting = PendingProposals(
            store, self._seen, self._documents.given, guard.hides, limits
        )
        self._committer = Committer(store, state, root_of=guard.root_of, show=self.show)
        self.external = ExternalChanges(guard, store, state.locks)
        self.raw_files = ExternalFiles(guard, self._documents.given)
        self.asked = PermissionLog(guard, store)
        self.unsaved = BufferWriter(
            guard, self._documents, self._buffers, self._committer, store, state.locks
        )
        self._fitting = Rebase(guard, self._documents, store, state.locks)
        self._approving = Approvals(
            guard,
            store,
            self._waiting,
            fitting=self._fitting,
            shown=self._shown,
            do=self._do,
            hides=self._hides,
            given=self._documents.given,
        )
        self._recovery = Recovery(store, state, guard.root_of, self.show, self._approving.renew)
        self._mend = partial(self._recovery.mend, self._committer)
        self.recovered = self._recovery.run()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Look once more for late writes, then close journal and roots."""
        self._committer.close()
        self.external.close()
        self.asked.close()
        self._seen.close()
        # Nobody waits for an answer now, so this is the time to keep the journal small.
        with suppress(FilepactError):
            self._store.prune(keep_bytes=_JOURNAL_LIMIT, keep_seconds=_JOURNAL_KEPT)
        self._store.close()
        for root in self.guard.roots:
            root.close()

    def show(self, path: WorkspacePath) -> str:
        """A path as people and agents see it."""
        return self.guard.show(path.root, path.path)

    def reader(
        self,
        session: Session,
        *,
        proposed: bool = True,
        deadline: Deadline = FOREVER,
        progress: Callable[[int, str], None] = lambda _done, _what: None,
        page: int = PAGE,
    ) -> Reader:
        """The port of tools that read.

        Args:
            session: Who reads.
            proposed: Whether what the session has proposed counts as done.
            deadline: When it has to be over.
            progress: Told how far it is.
            page: What its answers should fit into.
        """
        from filepact.workspace.reader import Reader  # noqa: PLC0415 - a server starts without

        self._mend()
        documents = self._documents
        return Reader(
            self.guard,
            self._seen,
            session,
            documents=documents.over(self._waiting.of(session)) if proposed else documents,
            asked=self.asked,
            deadline=deadline,
            progress=progress,
            page=page,
        )

    # -- changing -------------------------------------------------------------------------

    def draft(self, session: Session, tool: str, deadline: Deadline = FOREVER) -> Draft:
        """The port of tools that write; a context manager that holds the files' locks.

        It goes on with what the session has proposed.
        """
        self._mend()
        return Draft(
            self.guard,
            self._state.locks,
            self._seen,
            documents=self._documents.over(self._waiting.of(session), once=True),
            session=session,
            tool=tool,
            deadline=deadline,
            refused=partial(self.asked.refused, session, tool),
        )

    def submit(self, draft: Draft, summary: str) -> Receipt:
        """Stage what a draft holds, and do it where the rules and the mode allow it.

        Call it while the draft is open, so that its locks are held.

        Raises:
            StaleFileError: A program without our locks changed a file just now.
            WriteFailedError: The system refused.
        """
        notes = tuple(draft.notes)
        if not draft.step:
            return self._nothing_new(draft, summary, notes)
        changes, contents, grows = draft.changes, draft.contents, draft.grows
        if [one.changes for one in grows] == [changes]:
            return self._nothing_new(draft, summary, notes)
        self.guard.check_together(changes, agent=draft.session.agent)
        shown = self._shown_draft(draft, changes)
        step = self._shown_draft(draft, draft.step).diff if grows else ""
        draft.deadline.check()
        if draft.dry_run:
            return Receipt(None, "preview", summary, shown.files, shown.diff, notes, step=step)
        if not changes:
            # All is to be as it was before the session proposed anything.
            self._waiting.withdraw(grows)
            names = ", ".join(one.id for one in grows)
            return Receipt(None, "withdrawn", f"{summary}, and so take back {names}", notes=notes)
        rules = [one.rule for one in grows]
        rules += [draft.asks or ("preview mode" if (draft.mode or self.mode) == "preview" else "")]
        rule = ", ".join(dict.fromkeys(filter(None, rules)))
        said = summary_of(shown.files) if grows else summary
        proposal = self._proposal(draft.session, draft.tool, said, changes, rule)
        if rule:
            self._waiting.propose(proposal, contents, grows, draft.known)
            if grows:
                names = ", ".join(one.id for one in grows)
                notes = (*notes, f"In place of {names}: it holds what you proposed there as well.")
            return Receipt(
                proposal.id, "pending", summary, shown.files, shown.diff, notes, rule, step
            )
        fitted = RebaseResult(changes.compared, contents, ())
        operation = self._do(proposal, fitted, shown, draft.versions)
        self._seen.wrote(draft.session, draft.known)
        return done_receipt(operation, shown, notes)

    def _nothing_new(self, draft: Draft, summary: str, notes: tuple[str, ...]) -> Receipt:
        """The files are as they are to be, or wait to become so."""
        if draft.holds:
            waits = draft.holds[-1]
            notes = (*notes, f"{waits.id} holds this already; there is no second proposal.")
            if draft.dry_run:
                return Receipt(None, "unchanged", summary, notes=notes)
            shown = self._shown(waits.changes, self._versions(), draft.session)
            return Receipt(waits.id, "pending", summary, shown.files, shown.diff, notes, waits.rule)
        if not draft.dry_run:
            if self._buffers and (draft.mode or self.mode) == "auto":
                self.unsaved.agree(draft.opened)
            self._seen.wrote(draft.session, draft.known)
        return Receipt(None, "unchanged", summary, notes=notes)

    def wrote(self, draft: Draft) -> None:
        """Mark the draft's texts as known: another program has written them for its session."""
        self._seen.wrote(draft.session, draft.known)

    def _versions(self, content: Callable[[str], bytes] | None = None) -> DocumentCache:
        """The states that changes name: of the journal, or whose bytes somebody has."""
        return DocumentCache(content or self._store.content, self._documents.given)

    def _shown(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        session: Session | None,
        deadline: Deadline = FOREVER,
    ) -> ChangeDiff:
        """A change set as a session may see it, or a person who is to decide about it."""
        return show_changes(
            *(changes, versions, self.show, self._hides(session)),
            to_agent=session is not None and bool(session.agent),
            deadline=deadline,
        )

    def _shown_draft(self, draft: Draft, changes: ChangeSet) -> ChangeDiff:
        """The changes of a draft as its author may see them."""
        return show_changes(
            *(changes, draft.versions, self.show, draft.hides),
            to_agent=bool(draft.session.agent),
            deadline=draft.deadline,
        )

    def _hides(self, session: Session | None) -> Hides:
        if session is None:
            return lambda _path, _held: False
        return lambda path, held: self.guard.hides(path, session.agent, held)

    def _proposal(
        self,
        session: Session,
        tool: str,
        summary: str,
        changes: ChangeSet,
        rule: str = "",
    ) -> Proposal:
        return Proposal(
            id=new_id(),
            session=session,
            tool=tool,
            summary=summary,
            changes=changes,
            created=time.time(),
            rule=rule,
        )

    def _do(
        self,
        proposal: Proposal,
        fitted: RebaseResult,
        shown: ChangeDiff,
        versions: DocumentCache,
        approval: Approval | None = None,
    ) -> Operation:
        """Commit a proposal whose files are locked."""
        operation = Operation(
            id=proposal.id,
            seq=0,
            kind=proposal.kind,
            session=proposal.session,
            tool=proposal.tool,
            summary=proposal.summary,
            changes=fitted.changes,
            created=time.time(),
            target=proposal.target,
            state="intended",
            approved_by="" if approval is None else str(approval.actor),
            note=" ".join(fitted.notes),
            lines=shown.lines,
        )
        if self._buffers:
            self.unsaved.save(fitted.changes, fitted.contents)
        done = self._committer.commit(operation, fitted.contents)
        session = proposal.session
        if any(
            change.path.path.rpartition("/")[2] == EDITORCONFIG for change in done.changes.changes
        ):
            # It may say something else about the other files now.
            versions = self._versions(fitted.contents.__getitem__)
        for change in done.changes.changes:
            if FOLDER in (change.before, change.after):
                continue
            before, after = versions.sides(change)
            if after is None:
                if before is not None:
                    self._seen.forget(session, before.path)
                continue
            self._buffers.deliver(after)
            # Who goes back is shown what that changes.
            held = (one for one in (before, after) if one is not None)
            if done.kind != "change" and not self.guard.hides(after.path, session.agent, held):
                self._seen.shown_change(session, before, after)
        return done

    # -- approving ------------------------------------------------------------------------

    def pending(self) -> tuple[Proposal, ...]:
        """Changes that wait for a person, oldest first, of this workspace's roots."""
        self._mend()
        return self._approving.pending()

    def proposes(self, session: Session, path: WorkspacePath) -> bool:
        """Whether a change of a file by this session waits for a person."""
        return self._waiting.of(session).of(path) is not None

    def news(self, session: Session) -> tuple[SessionEvent, ...]:
        """The notices about decisions on a session's proposals, each until it was `heard`."""
        return self._waiting.news(session.id)

    def heard(self, session: Session, news: Sequence[SessionEvent]) -> None:
        """The session was told these; what is not of its proposals is left out."""
        self._waiting.heard(session.id, news)

    def answered(self, session: Session, change_id: str) -> None:
        """Drop the notice about a proposal, which the answer itself tells."""
        self._waiting.answered(session.id, ChangeId(change_id))

    def proposal(self, change_id: str) -> Proposal:
        """One proposal by its id or the beginning of it."""
        return self._store.proposal(change_id)

    def newest(self, change_id: str) -> Proposal:
        """The proposal that stands in the place of another by now: mostly that itself."""
        return self._store.proposal(self._waiting.newest(self.proposal(change_id).id))

    def approve(self, change_id: str, approval: Approval, *, to_agent: bool = False) -> Receipt:
        """Do what was proposed: the bytes, paths, types and modes that stand under the id.

        Args:
            change_id: The proposal, or the beginning of its id, four characters at least.
            approval: Who says so.
            to_agent: Whether the answer goes to the agent that proposed it: then it tells nothing
                of what files hold that the agent may not read.

        Raises:
            NoChangeError: It does not wait any more.
            PathBlockedError: A rule denies it by now; the proposal stays.
            ProposalChangedError: A file has moved since; what fits it now waits under another id,
                which the details name as ``proposal``, and has to be looked at.
            ProposalExpiredError: Nobody has decided about it in time.
            StaleFileError: The same lines were changed since; the proposal stays.
        """
        return self._approving.approve(change_id, approval, to_agent=to_agent)

    def reject(self, change_id: str, approval: Approval) -> Proposal:
        """Refuse what was proposed; the reason is kept for the agent, what it was to hold is not.

        Args:
            change_id: As for `approve`.
            approval: Who says so, and why.
        """
        return self._approving.reject(change_id, approval)

    def reject_all(self, proposals: Sequence[Proposal], approval: Approval) -> None:
        """Refuse several of those that wait, or none where one does not any more."""
        self._approving.reject_all(tuple(proposals), approval)

    # -- going back -----------------------------------------------------------------------

    def undo(
        self, session: Session, change_id: str | None = None, *, dry_run: bool = False
    ) -> Receipt:
        """Take back one operation, the newest in force unless one is named."""
        self._mend()
        plan = plan_undo(self._store, self._root_ids(), change_id)
        return self._carry_out(plan, session, dry_run=dry_run)

    def redo(
        self, session: Session, change_id: str | None = None, *, dry_run: bool = False
    ) -> Receipt:
        """Bring back what was undone last, or the operation named."""
        self._mend()
        plan = plan_redo(self._store, self._root_ids(), change_id)
        return self._carry_out(plan, session, dry_run=dry_run)

    def restore(self, session: Session, name: str, *, dry_run: bool = False) -> Receipt:
        """Bring every file of the first root back to a checkpoint, as one new operation."""
        plan = plan_restore(self._store, self.guard.roots[0].path, name)
        return self._carry_out(plan, session, dry_run=dry_run)

    def checkpoint(self, name: str) -> Checkpoint:
        """Name this place in the first root's journal."""
        return add_checkpoint(self._store, self.guard.roots[0].path, name)

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        return self._store.checkpoints(self.guard.roots[0].path)

    def past(
        self,
        session: Session,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        deadline: Deadline = FOREVER,
        page: int = PAGE,
    ) -> SessionHistory:
        """A session's view of its own operations and proposals."""
        self._mend()
        return SessionHistory(
            *(self._store, self._waiting, session),
            roots=self._root_ids(),
            go_back=lambda plan, dry_run: self._go_back(plan, session, deadline, dry_run=dry_run),
            diff=lambda change: self._shown(change.kept, self._versions(), session, deadline).diff,
            patience=self._patience,
            cancelled=cancelled,
            page=page,
        )

    def _go_back(
        self, plan: UndoChange, session: Session, deadline: Deadline, *, dry_run: bool
    ) -> Receipt:
        """Carry out for an agent what was planned: where a change would wait, this waits too.

        Raises:
            NoChangeError: A change of the same files by this session waits already.
        """
        rules = [
            decision.rule.name
            for change in plan.changes.changes
            if (decision := self._permit(change, session.agent)).verdict == "ask"
        ]
        if not rules and self.mode == "preview":
            rules = ["preview mode"]
        check_free(self._waiting.of(session), plan.changes.paths, self.show)
        rule = ", ".join(dict.fromkeys(rules))
        return self._carry_out(plan, session, deadline, dry_run=dry_run, rule=rule)

    def _permit(self, change: FileChange, agent: str = "") -> Decision:
        action: Action = "write"
        if change.after is None:
            action = "delete"
        elif change.before is None and agent:
            action = "create"
        return self.guard.permit(change.path, action, agent=agent)

    def _carry_out(
        self,
        plan: UndoChange,
        session: Session,
        deadline: Deadline = FOREVER,
        *,
        dry_run: bool,
        rule: str = "",
    ) -> Receipt:
        proposal = self._proposal(session, plan.kind, plan.summary, plan.changes, rule)
        proposal = replace(proposal, kind=plan.kind, target=plan.target)
        reader = session if session.agent else None
        for change in plan.changes.changes:
            self._permit(change)
        self.guard.check_together(plan.changes, agent=session.agent)
        with self._fitting.locked(plan.changes):
            steps = (plan.changes, *plan.earlier)
            fitted = self._fitting.fit_all(steps, self._hides(reader), deadline)
            versions = self._versions(fitted.contents.__getitem__)
            shown = self._shown(fitted.changes, versions, reader, deadline)
            deadline.check()
            if dry_run:
                return Receipt(None, "preview", plan.summary, shown.files, shown.diff, fitted.notes)
            if rule:
                proposal = replace(proposal, changes=fitted.changes)
                self._waiting.propose(proposal, fitted.contents)
                return Receipt(
                    *(proposal.id, "pending", plan.summary, shown.files, shown.diff),
                    notes=fitted.notes,
                    rule=rule,
                )
            return done_receipt(self._do(proposal, fitted, shown, versions), shown)

    # -- looking back ---------------------------------------------------------------------

    def log(
        self, *, path: str | None = None, limit: int | None = 20, before_seq: int | None = None
    ) -> tuple[Operation, ...]:
        """Operations on this workspace's roots, newest first."""
        self._mend()
        roots = self._root_ids()
        relative = None
        if path is not None:
            spot = self.guard.find(path, "list")
            roots, relative = (spot.root.path,), spot.place.path
        return operations_on(self._store, roots, relative, limit, before_seq)

    def operation(self, change_id: str) -> Operation:
        """One operation by its id or the beginning of it."""
        return self._store.operation(change_id)

    def diff(self, change: Operation | Proposal) -> str:
        """The unified diff of an operation or a proposal, as it was shown."""
        return self.receipt(change).diff

    def texts(self, change: Operation | Proposal) -> tuple[FileTexts, ...]:
        """The texts of the files before and after, for faces that render them themselves."""
        return texts_of(change.changes, self._versions())

    def receipt(self, change: Operation | Proposal) -> Receipt:
        """The receipt of an operation or a proposal, from what the journal kept of it."""
        shown = show_changes(change.kept, self._versions(), self.show)
        if not isinstance(change, Proposal):
            return done_receipt(change, shown)
        return Receipt(
            change.id, "pending", change.summary, shown.files, shown.diff, (), change.rule
        )

    def patch(self, change: Operation | Proposal) -> bytes:
        """The change as a patch for programs, in the bytes of the files.

        Raises:
            NotFoundError: They are not kept any more.
        """
        return patch_of(change.changes, self._store.content)

    def unsettled(self) -> tuple[Operation, ...]:
        """Operations that were begun and are neither done nor taken back, over all roots."""
        return self._store.unfinished()

    @property
    def changeable(self) -> tuple[RootId, ...]:
        """Every folder that agents may change, here or in another workspace of this journal."""
        return tuple(dict.fromkeys((*self._root_ids(), *self._store.roots())))

    def statistics(self) -> JournalStatistics:
        """Figures of the journal, over all roots."""
        return self._store.statistics()

    def _root_ids(self) -> tuple[RootId, ...]:
        return tuple(root.path for root in self.guard.roots)

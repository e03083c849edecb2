"""The workspace: every read, change, approval and undo goes through here."""

from __future__ import annotations

import threading
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.operation import ChangeId, Checkpoint, Operation, Proposal, ProposalLimits
from filepact.errors import FilepactError
from filepact.text.confusables import meanings
from filepact.text.page import PAGE
from filepact.workspace.approval import Approvals
from filepact.workspace.audit import audited
from filepact.workspace.authorizer import SessionPermissions
from filepact.workspace.buffers import Buffers
from filepact.workspace.commit import Committer
from filepact.workspace.documents import DocumentCache, Documents, EncodingSettings
from filepact.workspace.draft import Draft
from filepact.workspace.editors import Editors
from filepact.workspace.external import ExternalChanges
from filepact.workspace.history import SessionHistory, UndoExecutor
from filepact.workspace.journal import add_checkpoint, new_proposal
from filepact.workspace.pending import PendingProposals, SessionLimit
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
from filepact.workspace.selection import Selection, operations_on, turns_on
from filepact.workspace.undo_plan import plan_redo, plan_selection, plan_undo
from filepact.workspace.writer import ChangeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import Approval, Session
    from filepact.domain.policy import Rule
    from filepact.fs.state import StateFolder
    from filepact.workspace.audit import AuditLog
    from filepact.workspace.external_files import ExternalFiles
    from filepact.workspace.guard import Guard
    from filepact.workspace.history import Agrees
    from filepact.workspace.journal import JournalStatistics, JournalStore
    from filepact.workspace.pending import SessionEvent
    from filepact.workspace.read_tracker import KnownTextWriter
    from filepact.workspace.reader import Reader
    from filepact.workspace.receipt import ChangeDiff
    from filepact.workspace.search import OpenIndexes, SearchIndexes
    from filepact.workspace.selection import Place, Turns
    from filepact.workspace.writer import ChangePublisher

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
        audit: The audit log; closed with the workspace.  None for none.
        publisher: Of a root whose changes others have too: each call begins with the newest, each change makes one.
    """

    def __init__(  # noqa: PLR0913 - the parts that it puts together
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
        audit: AuditLog | None = None,
        publisher: ChangePublisher | None = None,
    ) -> None:
        self.guard = guard
        self.mode = mode
        self.audit = audit
        self.publisher = publisher
        self._store = store = store if audit is None else audited(store, audit)
        self._state = state
        self._seen = KnownTextCache(lasting=lasting)
        buffers = Buffers() if buffers is None else buffers
        self._documents = Documents(encodings or EncodingSettings(guard), buffers)
        self._patience = SessionLimit()
        self._waiting = PendingProposals(
            store, self._seen, self._documents.given, guard.hides, limits
        )
        self._committer = Committer(store, state, root_of=guard.root_of, show=self.show)
        self.external = ExternalChanges(guard, store, state.locks)
        self.asked = PermissionLog(guard, store, audit)
        self.editors = Editors(guard, self._documents, buffers, self._committer, store, state.locks)
        self._fitting = Rebase(guard, self._documents, store, state.locks)
        self._writer = ChangeWriter(
            *(guard, store, self._documents, self._seen),
            committer=self._committer,
            editors=self.editors,
        )
        self.approving = Approvals(
            *(guard, store, self._waiting), fitting=self._fitting, writer=self._writer
        )
        self._plans = UndoExecutor(
            *(guard, store, self._waiting, state), fitting=self._fitting, writer=self._writer
        )
        self._open_indexes: OpenIndexes | None = None
        self._indexes: SearchIndexes | None = None
        self._making = threading.Lock()
        self.recovery = Recovery(store, state, guard.root_of, self.show, self.approving.renew)
        self._mend = partial(self.recovery.mend, self._committer)
        if publisher is not None:
            parts, guard.moves_whole = (self._committer, self.recovery), False
            publisher.bind(*parts, fitting=self._fitting, writer=self._writer)
            self._mend = partial(self._mend, publisher.refresh)
        self.recovered = self.recovery.run()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def raw_files(self) -> ExternalFiles:
        """Files as other programs read them."""
        from filepact.workspace.external_files import ExternalFiles  # noqa: PLC0415 - for servers

        return ExternalFiles(self.guard, self._documents.given)

    def close(self) -> None:
        """Look once more for late writes, then close journal and roots."""
        if self._indexes is not None:
            self._indexes.close()
        self._committer.close()
        self.external.close()
        self.asked.close()
        self._seen.close()
        # Nobody waits for an answer now, so this is the time to keep the journal small.
        with suppress(FilepactError):
            found = self._store.prune(keep_bytes=_JOURNAL_LIMIT, keep_seconds=_JOURNAL_KEPT)
            self._committer.tidy(found)
        self._store.close()
        if self.audit is not None:
            self.audit.close()
        for root in self.guard.roots:
            root.close()

    def prune(self, keep_bytes: int) -> None:
        """Keep the journal below a size; the oldest contents are given up, however young."""
        if self._store.statistics().bytes_on_disk > keep_bytes:
            with suppress(FilepactError):
                self._committer.tidy(self._store.prune(keep_bytes=keep_bytes, keep_seconds=0))

    def auditing(self, session: Session, tool: str, asked: str) -> AbstractContextManager[None]:
        """A call of a session, which the audit log tells of when it is over.

        Args:
            session: Whose.
            tool: What is called.
            asked: The path that it names.
        """
        return nullcontext() if self.audit is None else self.audit.call(session, tool, asked)

    def show(self, path: WorkspacePath) -> str:
        """A path as people and agents see it."""
        return self.guard.show(path.root, path.path)

    @property
    def state_folder(self) -> str:
        """The true path of the state folder."""
        return self._state.path

    def parts(self) -> tuple[JournalStore, PendingProposals, Rebase, ChangeWriter]:
        """The parts that decide about changes and make them, for a package whose changes come from elsewhere."""
        return self._store, self._waiting, self._fitting, self._writer

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
        if proposed and not self._waiting.has_none(session):
            documents = documents.with_proposals(self._waiting.of(session))
        return Reader(
            self.guard,
            self._seen,
            session,
            documents=documents,
            asked=self.asked,
            deadline=deadline,
            progress=progress,
            page=page,
            indexes=self._open_indexes and partial(self._search_indexes, self._open_indexes),
        )

    def keep_search_index(self, opened: OpenIndexes) -> None:
        """Remember what files hold, from the first search on, for the searches that come; for servers."""
        self._open_indexes = opened

    def _search_indexes(self, opened: OpenIndexes) -> SearchIndexes:
        """The search indexes, made with the first search."""
        with self._making:
            known = self.guard, self._documents.given_in, self._state
            self._indexes = self._indexes or opened(*known)
            return self._indexes

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
            documents=self._documents.with_proposals(self._waiting.of(session), once=True),
            session=session,
            tool=tool,
            deadline=deadline,
            granted=SessionPermissions(self._store, session),
            refused=partial(self.asked.refused, session, tool),
        )

    def submit(self, draft: Draft, summary: str) -> Receipt:
        """Stage what a draft holds, and do it where the rules and the mode allow it.

        Call it while the draft is open, so that its locks are held.

        Raises:
            StaleFileError: A program without our locks changed a file just now.
            WriteFailedError: The system refused.
        """
        notes, result = tuple(draft.notes), draft.result()
        changes, contents, grows = result.changes, result.contents, result.extends
        if not result.step or [one.changes for one in grows] == [changes]:
            return self._nothing_new(draft, summary, notes)
        agent = draft.session.agent
        self.guard.check_together(changes, agent=agent)
        shown = self._shown_draft(draft, changes, to_agent=bool(agent))
        own = self._shown_draft(draft, result.step, to_agent=bool(agent)) if grows else None
        step = own.diff if own else ""
        draft.deadline.check()
        if draft.dry_run:
            notes += self._writer.linked(changes)
            return Receipt(None, "preview", summary, shown.files, shown.diff, notes, step=step)
        if not changes:
            # All is to be as it was before the session proposed anything.
            self._waiting.withdraw(grows)
            names = ", ".join(one.id for one in grows)
            return Receipt(None, "withdrawn", f"{summary}, and so take back {names}", notes=notes)
        rules = [one.rule for one in grows]
        every = (draft.mode or self.mode) == "preview"
        rules += [draft.asks or (draft.granted.preview(changes.paths) if every else "")]
        rule = Proposal.asked_by(rules, draft.judged)
        said = summary_of(shown.files) if grows else summary
        proposal = new_proposal(draft.session, draft.tool, said, changes, rule)
        if rule:
            notes += self._writer.linked(changes)
            self._waiting.propose(proposal, contents, grows, draft.known)
            if grows:
                names = ", ".join(one.id for one in grows)
                notes = (*notes, f"In place of {names}: it holds what you proposed there as well.")
            facts = summary, shown.files, shown.diff, notes, rule, step
            return Receipt(proposal.id, "pending", *facts, as_sent=not draft.surprises)
        fitted = RebaseResult(changes.compared, contents, ())
        operation = self._writer.write(
            *(proposal, fitted, shown, draft.versions),
            draft.granted.approval if draft.granted.used else None,
            held=draft.held,
        )
        self._seen.record_write(draft.session, draft.known)
        if operation.approved_by:
            notes = (*notes, *draft.granted.notes)
        return done_receipt(operation, shown, notes, as_sent=not draft.surprises)

    def _nothing_new(self, draft: Draft, summary: str, notes: tuple[str, ...]) -> Receipt:
        """The files are as they are to be, or wait to become so."""
        if draft.holds:
            waits = draft.holds[-1]
            notes = (*notes, f"{waits.id} holds this already; there is no second proposal.")
            if draft.dry_run:
                return Receipt(None, "unchanged", summary, notes=notes)
            shown = self._writer.shown(waits.changes, self._writer.versions(), draft.session)
            return Receipt(waits.id, "pending", summary, shown.files, shown.diff, notes, waits.rule)
        if not draft.dry_run:
            if self.editors.buffers and (draft.mode or self.mode) == "auto":
                self.editors.agree(draft.opened)
            self._seen.record_write(draft.session, draft.known)
        return Receipt(None, "unchanged", summary, notes=notes)

    def record_write(self, draft: Draft) -> None:
        """Mark the draft's texts as known: another program has written them for its session."""
        self._seen.record_write(draft.session, draft.known)

    def _shown_draft(self, draft: Draft, changes: ChangeSet, *, to_agent: bool) -> ChangeDiff:
        """The changes of a draft as its author may see them."""
        return show_changes(
            *(changes, draft.versions, self.show, draft.hides),
            to_agent=to_agent,
            deadline=draft.deadline,
        )

    # -- approving ------------------------------------------------------------------------

    def pending(self) -> tuple[Proposal, ...]:
        """Changes that wait for a person, oldest first, of this workspace's roots."""
        self._mend()
        return self.approving.pending()

    def proposes(self, session: Session, path: WorkspacePath) -> bool:
        """Whether a change of a file by this session waits for a person."""
        return self._waiting.of(session).of(path) is not None

    def events(self, session: Session) -> tuple[SessionEvent, ...]:
        """The notices about decisions on a session's proposals, each until it is acknowledged."""
        return self._waiting.events(session.id)

    def acknowledge(self, session: Session, news: Sequence[SessionEvent]) -> None:
        """The session was told these; what is not of its proposals is left out."""
        self._waiting.acknowledge(session.id, news)

    def acknowledge_answer(self, session: Session, change_id: str) -> None:
        """Drop the notice about a proposal, which the answer itself tells."""
        self._waiting.acknowledge_answer(session.id, ChangeId(change_id))

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
        return self.approving.approve(change_id, approval, to_agent=to_agent)

    def reject(self, change_id: str, approval: Approval) -> Proposal:
        """Refuse what was proposed; the reason is kept for the agent, what it was to hold is not."""
        return self.approving.reject(change_id, approval)

    def reject_all(self, proposals: Sequence[Proposal], approval: Approval) -> None:
        """Refuse several of those that wait, or none where one does not any more."""
        self.approving.reject_all(tuple(proposals), approval)

    # -- going back -----------------------------------------------------------------------

    def undo(
        self,
        session: Session,
        change_id: str | None = None,
        *,
        dry_run: bool = False,
        partly: bool = False,
        agrees: Agrees | None = None,
    ) -> Receipt:
        """Take back one operation, the newest in force unless one is named; else as `undo_selected`."""
        self._mend()
        plan = plan_undo(self._store, self._root_ids(), change_id)
        return self._plans.carry_out(plan, session, dry_run=dry_run, partly=partly, agrees=agrees)

    def undo_selected(
        self,
        session: Session,
        selection: Selection,
        *,
        partly: bool = False,
        dry_run: bool = False,
        agrees: Agrees | None = None,
    ) -> Receipt:
        """Take back all operations that are selected and in force, as one new operation.

        Args:
            session: Who wants it.
            selection: What is meant.
            partly: Whether files of which something else was made meanwhile are left as they are,
                and the others go back; else nothing does.
            dry_run: Whether it is only shown.
            agrees: As for `UndoExecutor.carry_out`.

        Raises:
            InvalidParamsError: It is not plain what is meant, and nobody can be asked.
            NoChangeError: Nothing of it is in force.
            NotFoundError: There is no such operation, checkpoint or turn.
            StaleFileError: Some files cannot go back; the details list them as ``conflicts``.
        """
        self._mend()
        plan = plan_selection(self._store, self._root_ids(), selection)
        return self._plans.carry_out(plan, session, dry_run=dry_run, partly=partly, agrees=agrees)

    def take_back(
        self, of: Operation, rules: Mapping[WorkspacePath, Rule]
    ) -> tuple[dict[ChangeId, Literal["approve", "redo"]], list[WorkspacePath]]:
        """Take back what nobody was asked about; see `UndoExecutor.take_back`."""
        return self._plans.take_back(of, rules, self._root_ids())

    def sessions_named(self, begins: str) -> tuple[str, ...]:
        """The ids of sessions that begin so, of which there is something in the journal."""
        return self._store.sessions_named(begins)

    def redo(
        self,
        session: Session,
        change_id: str | None = None,
        *,
        places: Sequence[Place] = (),
        dry_run: bool = False,
        partly: bool = False,
        agrees: Agrees | None = None,
    ) -> Receipt:
        """Bring back what was undone last, or the operation named, in some places or all; else as `undo_selected`."""
        self._mend()
        given = self._root_ids(), change_id, places, self._fitting.moved
        plan = plan_redo(self._store, *given)
        return self._plans.carry_out(plan, session, dry_run=dry_run, partly=partly, agrees=agrees)

    def restore(self, session: Session, name: str, *, dry_run: bool = False) -> Receipt:
        """Take back what agents did in the first root since a checkpoint was set."""
        return self.undo_selected(session, Selection(checkpoint=name), dry_run=dry_run)

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
            plans=self._plans,
            deadline=deadline,
            preview=self.mode == "preview",
            patience=self._patience,
            cancelled=cancelled,
            page=page,
        )

    # -- looking back ---------------------------------------------------------------------

    def log(
        self, *, path: str | None = None, limit: int | None = 20, before_seq: int | None = None
    ) -> tuple[Operation, ...]:
        """Operations on this workspace's roots, newest first; of a checkout as far as they are known here."""
        self.recovery.mend(self._committer)
        root, relative = (None, None) if path is None else self.named(path)
        roots = self._root_ids() if root is None else (root,)
        return operations_on(self._store, roots, relative, limit, before_seq)

    def named(self, path: str) -> tuple[RootId, str]:
        """The name as it was typed, in escapes as lists show it, or that to which it leads: on which was done something last."""
        own = self.guard.find(path, "list", follow=False)
        names = [own.lookup.relative, own.place.path]
        with suppress(FilepactError):
            names.append(self.guard.find(path, "list").place.path)
        if own.place.kind == "missing" and "\\" in own.place.path:
            names += meanings(own.place.path)
        last = {one: operations_on(self._store, (own.root.path,), one, 1, None) for one in names}
        return own.root.path, max(last, key=lambda one: last[one][0].seq if last[one] else 0)

    def turns(self, limit: int | None = 20, since: float | None = None) -> Turns:
        """Operations by turn, or by session where no turn is known; see `turns_on`."""
        self.recovery.mend(self._committer)
        return turns_on(self._store, self._root_ids(), limit, since)

    def operation(self, change_id: str) -> Operation:
        """One operation by its id or the beginning of it."""
        return self._store.operation(change_id)

    def versions(self) -> DocumentCache:
        """The states that changes of the journal name."""
        return self._writer.versions()

    def diff(self, change: Operation | Proposal) -> str:
        """The unified diff of an operation or a proposal, as it was shown."""
        return self.receipt(change).diff

    def texts(self, change: Operation | Proposal) -> tuple[FileTexts, ...]:
        """The texts of the files before and after, for faces that render them themselves."""
        return texts_of(change.changes, self._writer.versions())

    def receipt(self, change: Operation | Proposal) -> Receipt:
        """The receipt of an operation or a proposal, from what the journal kept of it."""
        shown = show_changes(change.kept, self._writer.versions(), self.show)
        if not isinstance(change, Proposal):
            return done_receipt(change, shown)
        return Receipt(
            change.id, "pending", change.summary, shown.files, shown.diff, (), change.rule
        )

    def show_changes(self, changes: ChangeSet) -> ChangeDiff:
        """Changes from states to states of the journal, as a person sees them.

        Raises:
            NotFoundError: A state is not kept any more.
        """
        return show_changes(changes, self._writer.versions(), self.show)

    def patch(self, change: Operation | Proposal) -> bytes:
        """The change as a patch for programs, in the bytes of the files.

        Raises:
            NotFoundError: They are not kept any more.
        """
        return patch_of(change.changes, self._store.content)

    def unfinished(self) -> tuple[Operation, ...]:
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

"""Undo, redo and restore, planned as change sets like any other, and a session's view of its own past.

A session can look at its own changes, take them back and hear what a person said to them.  What others
did is not in its view, not even what they changed.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.operation import BY_EDITOR, Checkpoint, Proposal
from filepact.errors import InvalidParamsError, NoChangeError, NotFoundError
from filepact.workspace.journal import new_proposal
from filepact.workspace.pending import check_free
from filepact.workspace.rebase import not_kept
from filepact.workspace.receipt import Receipt, done_receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact.domain.document import Revision, RootId, WorkspacePath
    from filepact.domain.operation import Operation, OperationKind, Session
    from filepact.domain.policy import Action, Decision
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.pending import PendingProposals
    from filepact.workspace.rebase import Rebase
    from filepact.workspace.writer import ChangeWriter


__all__ = [
    "SessionHistory",
    "SessionLimit",
    "UndoChange",
    "UndoExecutor",
    "add_checkpoint",
    "operations_on",
    "plan_redo",
    "plan_restore",
    "plan_undo",
]

_DONE = ("applied", "interrupted")


@dataclass(frozen=True, slots=True)
class UndoChange:
    """The change set of an undo, redo or restore, made from the journal's states.

    Attributes:
        target: The operation that is taken back, or the checkpoint's name.
        earlier: What goes back after `changes`, of the same files, newest first: somebody else wrote
            in between, and that stays.
    """

    kind: OperationKind
    target: str
    summary: str
    changes: ChangeSet
    earlier: tuple[ChangeSet, ...] = ()


def operations_on(
    store: JournalStore,
    roots: Sequence[RootId],
    path: str | None,
    limit: int | None,
    before_seq: int | None,
) -> tuple[Operation, ...]:
    """Operations on any of some roots, or on one path in them, newest first."""
    found = {
        operation.id: operation
        for root in roots
        for operation in store.operations(root=root, path=path, limit=limit, before_seq=before_seq)
    }
    return tuple(sorted(found.values(), key=lambda operation: -operation.seq)[:limit])


def plan_undo(store: JournalStore, roots: Iterable[RootId], change_id: str | None) -> UndoChange:
    """Plan to take back one operation: the one named, else the newest that is in force.

    An undo that is named is taken back by a redo; a redo that is named is undone by undoing what
    it brought back.
    """
    if change_id is None:
        operation = _newest_in_force(store, frozenset(roots))
    else:
        operation = store.operation(change_id)
    if operation.kind == "undo":
        return plan_redo(store, roots, operation.id)
    if operation.kind == "redo":
        operation = store.operation(store.operation(operation.target).target)
    if operation.state not in _DONE:
        raise NoChangeError(
            f"{operation.id} changed nothing ({operation.state.replace('_', ' ')})",
            hint="There is nothing to take back.",
        )
    if operation.undone_by is not None:
        raise NoChangeError(
            f"{operation.id} is already undone, by {operation.undone_by}",
            hint=f"`filepact redo {operation.id}` brings it back.",
        )
    for change in operation.changes.changes:
        if not change.retraceable:
            raise not_kept(change.path.path)
    return UndoChange(
        "undo",
        operation.id,
        f"undo {operation.id} ({operation.summary})",
        operation.changes.inverse(),
    )


def plan_redo(store: JournalStore, roots: Iterable[RootId], change_id: str | None) -> UndoChange:
    """Plan to bring back what was undone: the operation or undo named, else the last undo.

    Without a name, only undos after the last new change count, as in an editor.
    """
    if change_id is None:
        undo = _last_undo(store, frozenset(roots))
    else:
        undo = store.operation(change_id)
        if undo.kind != "undo":
            if undo.undone_by is None:
                raise NoChangeError(
                    f"{undo.id} is not undone",
                    hint="`filepact log` shows which operations are.",
                )
            undo = store.operation(undo.undone_by)
    if undo.undone_by is not None:
        raise NoChangeError(f"{undo.id} was already redone, by {undo.undone_by}")
    original = store.operation(undo.target)
    return UndoChange(
        "redo", undo.id, f"redo {original.id} ({original.summary})", undo.changes.inverse()
    )


def plan_restore(store: JournalStore, root: RootId, name: str) -> UndoChange:
    """Plan to bring every file back to what it was when a checkpoint was set."""
    checkpoint = store.checkpoint(name, root)
    runs: dict[WorkspacePath, list[tuple[Revision | None, Revision | None]]] = {}
    unread: set[WorkspacePath] = set()
    operations = store.operations(
        root=root, after_seq=checkpoint.seq, limit=None, newest_first=False
    )
    for operation in operations:
        if operation.state not in _DONE:
            continue
        for change in operation.changes.changes:
            if change.path.root != root:
                continue
            if not change.retraceable:
                # What was never read cannot come back, and must not keep the rest from coming back.
                unread.add(change.path)
                continue
            known = runs.setdefault(change.path, [])
            if known and (known[-1][1] == change.before or change.path in unread):
                known[-1] = (known[-1][0], change.after)
            else:
                known.append((change.before, change.after))
            unread.discard(change.path)
    back = [
        [FileChange(path, after, before) for before, after in reversed(known) if before != after]
        for path, known in runs.items()
    ]
    steps = tuple(ChangeSet(tuple(filter(None, step))) for step in zip_longest(*back))
    if not steps:
        raise NoChangeError(
            f"nothing has changed since the checkpoint {name!r}",
            hint="`filepact log` shows what happened.",
        )
    return UndoChange("restore", name, f"restore the checkpoint {name!r}", steps[0], steps[1:])


def _newest_in_force(store: JournalStore, roots: frozenset[RootId]) -> Operation:
    for operation in _newest_first(store, roots):
        # A redo is not a candidate: what it brought back is in force again and is.  Nor is what
        # somebody typed in their own editor: that is not taken back unless it is named.
        if (
            operation.kind in ("change", "restore")
            and operation.tool != BY_EDITOR
            and operation.state in _DONE
            and operation.undone_by is None
            and all(change.retraceable for change in operation.changes.changes)
        ):
            return operation
    raise NoChangeError("there is nothing to undo here", hint="`filepact log` shows what happened.")


def _last_undo(store: JournalStore, roots: frozenset[RootId]) -> Operation:
    for operation in _newest_first(store, roots):
        if operation.state not in _DONE:
            continue
        if operation.kind in ("change", "restore"):
            break
        if operation.kind == "undo" and operation.undone_by is None:
            return operation
    raise NoChangeError(
        "there is nothing to redo: no undo since the last change",
        hint="`filepact redo OPERATION` brings back an operation by its id.",
    )


def _newest_first(store: JournalStore, roots: frozenset[RootId]) -> Iterable[Operation]:
    """Operations that touch one of the roots, newest first, read in pages."""
    before: int | None = None
    while True:
        page = store.operations(before_seq=before, limit=100)
        if not page:
            return
        for operation in page:
            if any(path.root in roots for path in operation.changes.paths):
                yield operation
        before = page[-1].seq


def add_checkpoint(store: JournalStore, root: RootId, name: str) -> Checkpoint:
    """Name the present place in a root's journal."""
    checkpoint = Checkpoint(check_name(name), root, store.last_seq(), time.time())
    store.add_checkpoint(checkpoint)
    return checkpoint


def check_name(name: str) -> str:
    """A checkpoint's name as it may be: short, printable, no path."""
    if not name or len(name) > 100 or not name.isprintable() or "/" in name:
        raise InvalidParamsError(
            f"{name!r} cannot be the name of a checkpoint",
            hint="Use up to 100 printable characters without a slash.",
        )
    return name


_STEP: Final = 0.2
_DECIDED: Final = 10


class SessionLimit:
    """Bounds how many sessions wait for a person at the same time; further ones do not wait."""

    def __init__(self, most: int = 2) -> None:
        self._room = BoundedSemaphore(most)

    def wait(self, seconds: float, over: Callable[[], bool], cancelled: Callable[[], bool]) -> None:
        """Wait until something is over, nobody wants to know any more, or the time has passed."""
        if not self._room.acquire(blocking=False):
            return
        try:
            until = time.monotonic() + seconds
            while not over() and not cancelled():
                left = until - time.monotonic()
                if left <= 0:
                    return
                time.sleep(min(_STEP, left))
        finally:
            self._room.release()


class UndoExecutor:
    """Carries out plans of going back: fits them to what the files hold, and writes them."""

    def __init__(
        self,
        guard: Guard,
        waiting: PendingProposals,
        *,
        fitting: Rebase,
        writer: ChangeWriter,
    ) -> None:
        self._guard = guard
        self._waiting = waiting
        self._fitting = fitting
        self._writer = writer

    def diff(self, change: Operation | Proposal, session: Session, deadline: Deadline) -> str:
        """The diff of a change, as a session may see it."""
        versions = self._writer.versions()
        return self._writer.shown(change.kept, versions, session, deadline).diff

    def go_back(
        self,
        plan: UndoChange,
        session: Session,
        deadline: Deadline,
        *,
        dry_run: bool,
        preview: bool,
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
        if not rules and preview:
            rules = ["preview mode"]
        check_free(self._waiting.of(session), plan.changes.paths, self._writer.show)
        rule = ", ".join(dict.fromkeys(rules))
        return self.carry_out(plan, session, deadline, dry_run=dry_run, rule=rule)

    def _permit(self, change: FileChange, agent: str = "") -> Decision:
        action: Action = "write"
        if change.after is None:
            action = "delete"
        elif change.before is None and agent:
            action = "create"
        return self._guard.permit(change.path, action, agent=agent)

    def carry_out(
        self,
        plan: UndoChange,
        session: Session,
        deadline: Deadline = FOREVER,
        *,
        dry_run: bool,
        rule: str = "",
    ) -> Receipt:
        """Carry out what was planned, or only show it; where rules want a person's word, it waits."""
        proposal = replace(
            new_proposal(session, plan.kind, plan.summary, plan.changes),
            rule=rule,
            kind=plan.kind,
            target=plan.target,
        )
        reader = session if session.agent else None
        for change in plan.changes.changes:
            self._permit(change)
        self._guard.check_together(plan.changes, agent=session.agent)
        with self._fitting.locked(plan.changes):
            steps = (plan.changes, *plan.earlier)
            fitted = self._fitting.fit_all(steps, self._writer.hides(reader), deadline)
            versions = self._writer.versions(fitted.contents.__getitem__)
            shown = self._writer.shown(fitted.changes, versions, reader, deadline)
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
            return done_receipt(self._writer.write(proposal, fitted, shown, versions), shown)


class SessionHistory:
    """The operations and proposals of one session.

    Args:
        store: The journal.
        waiting: What sessions have proposed.
        session: Whose they are.
        roots: The folders in use.
        plans: Carries out what is planned, or has it wait.
        deadline: When it has to be over.
        preview: Whether every change waits for a person.
        patience: Bounds how many wait.
        cancelled: Whether nobody waits for the answer any more.
        page: What one answer may take, in bytes as UTF-8.
    """

    def __init__(  # noqa: PLR0913 - the parts of an engine, by name
        self,
        store: JournalStore,
        waiting: PendingProposals,
        session: Session,
        *,
        roots: Iterable[RootId],
        plans: UndoExecutor,
        deadline: Deadline,
        preview: bool,
        patience: SessionLimit,
        cancelled: Callable[[], bool],
        page: int,
    ) -> None:
        self.page = page
        self._roots = tuple(roots)
        self._plans = plans
        self._deadline = deadline
        self._preview = preview
        self._store = store
        self._waiting = waiting
        self._session = session
        self._patience = patience
        self._cancelled = cancelled

    def diff(self, change: Operation | Proposal) -> str:
        """The diff of a change, as the session may see it."""
        return self._plans.diff(change, self._session, self._deadline)

    def log(self, limit: int) -> tuple[Operation, ...]:
        """The session's own operations, newest first."""
        return self._store.operations(session=self._session, limit=limit)

    def change(self, change_id: str | None) -> Operation | Proposal:
        """One change by its id or the beginning of it; the newest where none is named.

        Raises:
            NotFoundError: The session has no such change.
        """
        if change_id is None:
            newest = self.log(1)
            if not newest:
                raise NotFoundError("you have changed nothing yet")
            return newest[0]
        found: Operation | Proposal
        try:
            found = self._store.operation(change_id)
            if found.state == "rolled_back":
                # Where it was approved, it waits again.
                with suppress(NotFoundError):
                    proposal = self._store.proposal(found.id)
                    found = proposal if proposal.state == "proposed" else found
        except NotFoundError:
            found = self._proposal(change_id)
        if found.session.id not in self._store.sessions(self._session):
            raise self._not_its_own(change_id)
        return found

    def undo(self, change_id: str | None, *, dry_run: bool) -> Receipt:
        """Take back one of the session's own operations, or a proposal of its own that waits.

        Without an id it is the newest operation in force.

        Raises:
            NotFoundError: The session has no such change.
            NoChangeError: There is nothing to take back.
        """
        change = self._newest(undone=False) if change_id is None else self.change(change_id)
        if isinstance(change, Proposal):
            return self._withdraw(change, dry_run=dry_run)
        plan = plan_undo(self._store, self._roots, change.id)
        return self._go_back(plan, dry_run=dry_run)

    def redo(self, change_id: str | None, *, dry_run: bool) -> Receipt:
        """Bring back what the session has undone itself; arguments and errors as for `undo`."""
        change = self._newest(undone=True) if change_id is None else self.change(change_id)
        plan = plan_redo(self._store, self._roots, change.id)
        if self._store.operation(plan.target).session.id not in self._store.sessions(self._session):
            raise NoChangeError(
                f"{change.id} was undone by somebody else",
                hint="Ask the person whether it is to come back.",
            )
        return self._go_back(plan, dry_run=dry_run)

    def status(self, wait: float = 0.0) -> tuple[Proposal, ...]:
        """The session's proposals: those that wait, and the last on which somebody has decided.

        Args:
            wait: Seconds to wait until one of those that wait is decided.
        """
        waiting = frozenset(one.id for one in self._open())
        if wait and waiting:

            def decided() -> bool:
                return not waiting <= {one.id for one in self._open()}

            self._patience.wait(wait, decided, self._cancelled)
        done = [
            *self._store.proposals(session=self._session, state="committed"),
            *self._store.proposals(session=self._session, state="rejected"),
            *self._store.proposals(session=self._session, state="expired"),
        ]
        done.sort(key=lambda proposal: proposal.created)
        return (*self._open(), *done[: -_DECIDED - 1 : -1])

    def _go_back(self, plan: UndoChange, *, dry_run: bool) -> Receipt:
        return self._plans.go_back(
            *(plan, self._session, self._deadline), dry_run=dry_run, preview=self._preview
        )

    def _open(self) -> tuple[Proposal, ...]:
        return self._store.proposals(session=self._session)

    def _proposal(self, change_id: str) -> Proposal:
        try:
            return self._store.proposal(change_id)
        except NotFoundError:
            raise self._not_its_own(change_id) from None

    def _not_its_own(self, change_id: str) -> NotFoundError:
        return NotFoundError(
            f"there is no change {change_id!r} of yours",
            hint="history with action log lists yours; people see all with `filepact log`.",
        )

    def _newest(self, *, undone: bool) -> Operation:
        """The newest change in force; with ``undone`` the last undo if no change came after it."""
        for operation in self._own():
            if operation.kind == "undo":
                if undone and operation.undone_by is None:
                    return operation
            elif operation.kind != "redo":
                if undone:
                    break
                if operation.undone_by is None:
                    return operation
        what = (
            "redo: no undo of yours since your last change"
            if undone
            else "undo: no change of yours"
        )
        raise NoChangeError(f"there is nothing to {what}")

    def _own(self) -> Iterator[Operation]:
        before: int | None = None
        while page := self._store.operations(session=self._session, before_seq=before, limit=100):
            yield from (one for one in page if one.state in ("applied", "interrupted"))
            before = page[-1].seq

    def _withdraw(self, proposal: Proposal, *, dry_run: bool) -> Receipt:
        if proposal.state != "proposed":
            raise NoChangeError(f"{proposal.id} does not wait: it was {proposal.state}")
        summary = f"take back the proposal {proposal.id} ({proposal.summary})"
        if dry_run:
            return Receipt(None, "preview", summary)
        self._waiting.withdraw([proposal])
        return Receipt(None, "withdrawn", summary)

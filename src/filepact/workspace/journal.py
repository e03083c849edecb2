"""The journal: the port that every store implements, and the ids of changes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, Protocol

from filepact.domain.operation import (
    ChangeId,
    Checkpoint,
    JournalStatistics,
    Operation,
    Proposal,
    PruneResult,
)
from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from filepact.domain.audit import JournalSummary
    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import (
        Approval,
        OperationState,
        ProposalLimits,
        ProposalState,
        Session,
    )
    from filepact.domain.permission_log import PermissionRecord, RecordKind, SessionApproval


__all__ = [
    "JournalDatabase",
    "JournalStatistics",
    "JournalStore",
    "PruneResult",
    "add_checkpoint",
    "changed_since",
    "moved_since",
    "new_id",
    "new_operation",
    "new_proposal",
    "new_turn",
    "operation_of",
]


_MANY: Final = 2_000  # operations that may have moved a file
_FEW: Final = 20  # changes of a file that are looked at


class JournalStore(Protocol):
    """Proposals, operations, checkpoints and contents, durable and shared by processes.

    Every method is one transaction, may be called from any thread, and may also raise
    `TimedOutError` (another process held the journal too long) or `StateFailedError` (the
    journal is damaged, or the disk is full).  Where an id is looked up, its beginning does when
    no other id begins so: `NotFoundError` for none, `InvalidParamsError` for several, or for less
    than four characters.

    Contents come with the row that needs them: ``contents`` maps content ids to bytes and must
    hold every content that the change set names and the store does not have.

    Attributes:
        name: Which journal this is, as records of the audit log name it.
    """

    name: str

    def content(self, content_id: str) -> bytes:
        """Stored bytes.

        Raises:
            NotFoundError: They were never stored, or were given up to make room.
        """

    # -- proposals ----------------------------------------------------------------------------

    def propose(
        self,
        proposal: Proposal,
        contents: Mapping[str, bytes],
        *,
        supersedes: Sequence[ChangeId] = (),
        limits: ProposalLimits | None = None,
        rest: Proposal | None = None,
        decided: Approval | None = None,
    ) -> None:
        """Keep a proposal for a person; on disk when this returns.

        Args:
            proposal: What is proposed.
            contents: As everywhere.
            supersedes: Proposals that wait and whose place it takes; nobody can commit them any
                more.
            limits: How much may wait with it; None for any.
            rest: A second one that is kept with it, or neither.
            decided: Where a person has divided or changed what is superseded: who, and what its
                author is told of it.  What it was to hold is kept then.

        Raises:
            NoChangeError: One of these does not wait any more; nothing was kept.
            PendingFullError: There is no room; nothing was kept.
        """

    def proposal(self, change_id: str) -> Proposal:
        """One proposal, in any state, by its id or the beginning of it."""

    def proposals(
        self,
        *,
        root: RootId | None = None,
        session: Session | None = None,
        state: ProposalState = "proposed",
        limit: int | None = None,
    ) -> tuple[Proposal, ...]:
        """Proposals in one state, oldest first.

        Args:
            root: Only those that change a file there.
            session: Only those of this session, and of others of the same actor in the same
                conversation.
            state: The state.
            limit: The newest so many; None for all.
        """

    def sessions(self, session: Session) -> frozenset[str]:
        """The ids of the session itself and of others of its actor in the same conversation."""

    def sessions_named(self, begins: str) -> tuple[str, ...]:
        """A few ids of sessions that begin so, in order."""

    def reject(self, change_ids: Sequence[ChangeId], approval: Approval) -> None:
        """Refuse proposals for a person, with the reason; what they alone needed is given up.

        Raises:
            NoChangeError: One was committed, rejected or superseded before; nothing is refused.
            ProposalExpiredError: One has expired; the same.
        """

    def expire(self, before: float) -> None:
        """Settle what was proposed before a time and waits still; what it alone needed goes."""

    # -- operations ---------------------------------------------------------------------------

    def begin(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        meanwhile: Callable[[], None] | None = None,
    ) -> Operation:
        """Write down an intention, on disk when this returns, before its effect.

        The proposal with this id, if there is one, is committed by it.  If nothing of it is left
        in the end, the proposal waits again, and the next attempt takes the place of this one.

        Args:
            operation: What is intended.
            contents: As everywhere.
            meanwhile: What is done once while the disk is waited for, or before that.  It has no effect
                that outlasts this process, and raises nothing.

        Returns:
            The operation as ``intended``, with its place in the journal.

        Raises:
            NoChangeError: An operation with this id was begun before, or the proposal was
                superseded.
            UserDeniedError: A person rejected the proposal.
            ProposalExpiredError: It has expired.
            ValueError: The proposal is another change.
        """

    def adopt(self, operation: Operation, contents: Mapping[str, bytes]) -> Operation:
        """Write down what somebody did already, as ``applied``; on disk when this returns.

        There is no intention and no effect of ours, so a crash leaves nothing to be settled.
        Contents that are not among ``contents`` are known by their ids only.

        Returns:
            The operation with its place in the journal.

        Raises:
            NoChangeError: An operation with this id was begun before.
        """

    def finish(
        self,
        change_id: ChangeId,
        *,
        state: OperationState,
        note: str = "",
        changes: ChangeSet | None = None,
    ) -> None:
        """Write down what became of an operation; may be lost by a power cut, not by a crash.

        An undo that turns out applied marks its target as undone; an applied redo marks the undo
        that is its target as taken back, and what that had undone as in force.  Called again, it
        replaces the note.  The proposal of one that was rolled back waits again.

        Args:
            change_id: The whole id.
            state: What it came to.
            note: What a person should know; replaces the note it was begun with.
            changes: What it really did, when that is less than was intended.
        """

    def unfinished(self) -> tuple[Operation, ...]:
        """Operations that were begun and not finished, oldest first."""

    def operation(self, change_id: str) -> Operation:
        """One operation, in any state, by its id or the beginning of it."""

    def operations(
        self,
        *,
        root: RootId | None = None,
        path: str | None = None,
        session: Session | None = None,
        turn: str | None = None,
        after_seq: int = 0,
        before_seq: int | None = None,
        limit: int | None = 50,
        newest_first: bool = True,
    ) -> tuple[Operation, ...]:
        """Finished operations in the order of the journal.

        Args:
            root: Only those that changed a file in this root.
            path: Only those that changed this file, or a file below this folder; relative to
                its root, ``""`` or ``"."`` for all of it.
            session: As for `proposals`.
            turn: Only those of this turn.
            after_seq: Only later ones than this.
            before_seq: Only earlier ones than this.
            limit: At most so many; None for all.
            newest_first: The order, and which ones a limit keeps.
        """

    def partial_undos(self, after_seq: int) -> tuple[Operation, ...]:
        """Undos in force, later than a place, that left some files of what they took back."""

    def turns(
        self, roots: Sequence[RootId], *, begins: str = "", limit: int | None = None
    ) -> tuple[str, ...]:
        """The names of the turns in which files were changed, the one first that began last, or changed its first.

        Args:
            roots: Only turns that changed a file in one of these.
            begins: Only names that begin so.
            limit: At most so many; None for all.
        """

    def last_seq(self) -> int:
        """The place of the newest operation, finished or not; 0 in an empty journal."""

    def now(self) -> float:
        """The time of all who use the journal, seconds since the epoch.

        What one machine says and another one compares with the time is said and compared by this.
        """

    # -- checkpoints --------------------------------------------------------------------------

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; on disk when this returns.

        Raises:
            InvalidParamsError: The root has one of this name.
        """

    def checkpoint(self, name: str, root: RootId) -> Checkpoint:
        """The checkpoint of this whole name.

        Raises:
            NotFoundError: The root has none of this name.
        """

    def checkpoints(self, root: RootId) -> tuple[Checkpoint, ...]:
        """All checkpoints of a root, oldest first."""

    # -- approvals in advance -----------------------------------------------------------------

    def add_session_approval(self, given: SessionApproval) -> None:
        """Keep an approval in advance; on disk when this returns."""

    def revoke_session_approval(self, approval_id: str, when: float) -> None:
        """Have one count no more; on disk when this returns."""

    def session_approvals(self, session: str | None = None) -> tuple[SessionApproval, ...]:
        """The approvals given to a session, or to any; newest first."""

    # -- questions and reports ----------------------------------------------------------------

    def note(self, question: PermissionRecord) -> None:
        """Keep a question or a report, and give up the oldest beyond ten thousand.

        May be lost by a power cut, not by a crash.
        """

    def questions(
        self,
        *,
        root: RootId | None = None,
        session: str | None = None,
        limit: int | None = 50,
        kind: RecordKind = "asked",
    ) -> tuple[PermissionRecord, ...]:
        """Questions, reports and refusals, or what else the permission log has, the newest first.

        Args:
            root: Only those of sessions that work in this folder.
            session: Only those of the session with this id.
            limit: At most so many; None for all.
            kind: Which.
        """

    # -- upkeep -------------------------------------------------------------------------------

    def roots(self) -> tuple[RootId, ...]:
        """Every folder that something was ever written down about."""

    def statistics(self) -> JournalStatistics:
        """Figures for people."""

    def prune(self, *, keep_bytes: int, keep_seconds: float) -> PruneResult:
        """Give up the contents of the oldest operations until the rest is small enough.

        Operations stay in the journal.  Contents are never given up while a proposal waits, an
        operation is unfinished, or one that was begun lately needs them.

        Args:
            keep_bytes: How many bytes the stored contents may take.
            keep_seconds: How far back contents are kept whatever they take.
        """

    def version(self) -> object:
        """A value that differs whenever the journal has changed since."""

    def close(self) -> None:
        """Let go of the journal; anything else afterwards is a `StateFailedError`."""


class JournalDatabase(JournalStore, Protocol):
    """A journal that does not lie in the state folder."""

    def move_root(self, old: RootId, new: RootId) -> int:
        """Have the history of a folder belong to another; how many operations it has."""

    def account(self) -> JournalSummary:
        """The journal's account of operations, to be compared with the audit log."""


def new_operation(session: Session, tool: str, summary: str, changes: ChangeSet) -> Operation:
    """An operation that is begun now: who wants it, its tool, one line about it, what it does."""
    return operation_of(new_proposal(session, tool, summary, changes), changes)


def operation_of(
    proposal: Proposal,
    changes: ChangeSet,
    *,
    approved_by: str = "",
    note: str = "",
    lines: tuple[int, int] | None = None,
) -> Operation:
    """The operation that does a proposal now.

    Args:
        proposal: What was proposed.
        changes: The same as it fits what the files hold by now.
        approved_by: The person who said yes; empty for none.
        note: What a person should know besides.
        lines: How many lines it adds and removes, if that may be told.
    """
    return Operation(
        id=proposal.id,
        seq=0,
        kind=proposal.kind,
        session=proposal.session,
        tool=proposal.tool,
        summary=proposal.summary,
        changes=changes,
        created=time.time(),
        target=proposal.target,
        state="intended",
        approved_by=approved_by,
        note=note,
        lines=lines,
    )


def new_proposal(
    session: Session, tool: str, summary: str, changes: ChangeSet, rule: str = ""
) -> Proposal:
    """A proposal that is made now, and the rule that wants it approved; else as `new_operation`."""
    return Proposal(
        id=ChangeId(session.change) if session.change else new_id(),
        session=session,
        tool=tool,
        summary=summary,
        changes=changes,
        created=time.time(),
        rule=rule,
    )


def new_id() -> ChangeId:
    """``c`` and ten characters without look-alikes: fifty bits, not to be guessed."""
    return ChangeId(_name("c"))


def new_turn() -> str:
    """The name of a turn that begins now, where the host has none: ``t`` and ten such characters."""
    return _name("t")


_LETTERS = b"0123456789abcdefghjkmnpqrstvwxyz" * 8
"""What each byte becomes."""


def _name(kind: str) -> str:
    return kind + os.urandom(10).translate(_LETTERS).decode("ascii")


def moved_since(
    store: JournalStore, operations: Sequence[Operation], gone: Iterable[WorkspacePath]
) -> tuple[dict[WorkspacePath, tuple[Operation, ...]], set[WorkspacePath]]:
    """By the names that some files may have got since some operations, the operations that gave it; and all other names that came."""
    by: dict[WorkspacePath, tuple[Operation, ...]] = dict.fromkeys(gone, ())
    others: set[WorkspacePath] = set()
    ours, first = {one.id for one in operations}, min((one.seq for one in operations), default=0)
    for one in store.operations(after_seq=first, limit=_MANY, newest_first=False):
        if one.id not in ours and one.was_done and one.undone_by is None:
            went = [x.path for x in one.changes.changes if not x.after and x.path in by]
            came = [x.path for x in one.changes.changes if not x.before]
            before = dict.fromkeys(each for path in went for each in by[path])
            by |= dict.fromkeys(came if went else (), (*before, one))
            others |= {*came} if not went else set()
    return by, others


def changed_since(
    store: JournalStore, operations: Sequence[Operation], paths: Iterable[WorkspacePath]
) -> list[Operation]:
    """The changes of some files since some operations, as far as they are in force, oldest first; a few of each file."""
    ours = {one.id for one in operations}
    found: dict[ChangeId, Operation] = {}
    for path in paths if ours else ():
        of = [one.seq for one in operations if path in one.changes.paths]
        for one in store.operations(
            root=path.root, path=path.path, after_seq=min(of, default=0), limit=_FEW
        ):
            changed = one.was_done and one.undone_by is None and path in one.changes.paths
            if changed and one.id not in ours and one.kind in ("change", "restore"):
                found[one.id] = one
    return sorted(found.values(), key=lambda one: one.seq)


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

"""The journal in tables: every method of the port, over whatever database holds them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TypeVar

from filepact.domain.document import RootId
from filepact.domain.operation import PARTLY, Checkpoint
from filepact.errors import InvalidParamsError, NotFoundError
from filepact.store import upkeep
from filepact.store.rows import (
    NO_LIMIT,
    OF_SESSION,
    by_id,
    finished,
    from_text,
    in_state,
    insert_changes,
    insert_directories,
    insert_operation,
    insert_proposal,
    insert_question,
    insert_session_approval,
    missing,
    of_session,
    only,
    root_number,
    select_operations,
    select_proposals,
    select_questions,
    select_session_approvals,
    to_path,
    to_text,
    turns,
)
from filepact.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.operation import (
        Approval,
        ChangeId,
        JournalStatistics,
        Operation,
        OperationState,
        Proposal,
        ProposalLimits,
        ProposalState,
        PruneResult,
        Session,
    )
    from filepact.domain.permission_log import PermissionRecord, RecordKind, SessionApproval
    from filepact.store.content import ContentStore
    from filepact.store.rows import Sides
    from filepact.store.transaction import Database, Transaction

_Answer = TypeVar("_Answer")

__all__ = ["SqlStore"]

_NAMED_AT_MOST = 5
_APPLIED = (
    "UPDATE operation SET state = 'applied', note = ? WHERE id = ? AND state = 'intended'"
    " AND kind NOT IN ('undo', 'redo') RETURNING seq"
)


class SqlStore:
    """Satisfies `filepact.workspace.journal.JournalStore`, where every method is described.

    What must be known after a power cut is synchronised to the disk; how an operation ended is
    not, since that can be seen from the files.

    Args:
        database: Where the tables are.
        contents: What keeps the contents of files there.
    """

    def __init__(self, database: Database, contents: ContentStore) -> None:
        self._database = database
        self._contents = contents
        self.name = upkeep.OWN

    @property
    def contents(self) -> ContentStore:
        """The store of file contents."""
        return self._contents

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Ask several things in the words of the tables; as `Database.read`."""
        return self._database.read(work)

    def write(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Change something in the words of the tables; as `Database.write`."""
        return self._database.write(work, durable=True)

    def go_to(self, tx: Transaction, seq: int | None) -> None:
        """Have the next operation come to this place, or behind the last one."""

    def version(self) -> object:
        return self._database.version()

    def close(self) -> None:
        self._database.close()

    def content(self, content_id: str) -> bytes:
        return self._database.read(lambda tx: self._contents.find(tx, content_id))

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
        def work(tx: Transaction) -> list[Path]:
            for earlier in supersedes:
                upkeep.check_waits(tx, earlier)
            taken = tx.one(
                "SELECT 1 FROM proposal WHERE id = ?1 UNION ALL"
                " SELECT 1 FROM operation WHERE id = ?1",
                (proposal.id,),
            )
            if taken is not None:
                raise InvalidParamsError(f"the id {proposal.id} is taken")
            upkeep.supersede(tx, supersedes, proposal.id, decided)
            if limits is not None:
                upkeep.check_room(tx, proposal, contents, limits)
            for one in (proposal, rest):
                if one is not None:
                    sides = self._sides(tx, one.changes, contents)
                    number = insert_proposal(tx, one)
                    insert_changes(tx, "proposal", number, one.changes, sides)
            gone = supersedes if decided is None else ()
            return upkeep.release(tx, self._contents, gone)

        self._remove(self._database.write(work, durable=True))

    def proposal(self, change_id: str) -> Proposal:
        found = self._database.read(lambda tx: select_proposals(tx, *by_id("p", change_id)))
        return only(found, change_id, "proposal")

    def proposals(
        self,
        *,
        root: RootId | None = None,
        session: Session | None = None,
        state: ProposalState = "proposed",
        limit: int | None = None,
    ) -> tuple[Proposal, ...]:
        tail, values = in_state(state)
        if session is not None:
            tail += "AND " + OF_SESSION.replace("{owner}", "p")
            values += of_session(session)
        if root is not None:
            tail += (
                "AND EXISTS (SELECT 1 FROM proposal_change c JOIN root r ON r.number = c.root"
                " WHERE c.owner = p.number AND r.path = ?) "
            )
            values.append(to_path(root))
        order = "ORDER BY p.number DESC LIMIT ?"
        most = NO_LIMIT if limit is None else limit
        return self._database.read(
            lambda tx: select_proposals(tx, tail + order, [*values, most])[::-1]
        )

    def sessions(self, session: Session) -> frozenset[str]:
        rows = self._database.read(
            lambda tx: tx.all(
                "SELECT s.id FROM conversation c JOIN session s ON s.number = c.session"
                " WHERE c.name = ? AND s.actor_name = ?",
                of_session(session)[1:],
            )
        )
        return frozenset(from_text(row[0]) for row in rows) | {session.id}

    def sessions_named(self, begins: str) -> tuple[str, ...]:
        rows = self._database.read(
            lambda tx: tx.all(
                "SELECT DISTINCT id FROM session WHERE id >= ?1 AND id < ?1 || char(1114111)"
                " ORDER BY id LIMIT ?2",
                (to_text(begins), _NAMED_AT_MOST + 1),
            )
        )
        return tuple(from_text(row[0]) for row in rows)

    def reject(self, change_ids: Sequence[ChangeId], approval: Approval) -> None:
        def work(tx: Transaction) -> list[Path]:
            for one in change_ids:
                upkeep.check_waits(tx, one)
            upkeep.reject(tx, change_ids, approval)
            return upkeep.release(tx, self._contents, change_ids)

        self._remove(self._database.write(work, durable=True))
        self._database.shrink()

    def expire(self, before: float) -> None:
        if not self._database.read(lambda tx: upkeep.has_expired(tx, before)):
            return
        self._remove(
            self._database.write(
                lambda tx: upkeep.release(tx, self._contents, upkeep.expire(tx, before)),
                durable=True,
            )
        )
        self._database.shrink()

    def _remove(self, files: list[Path]) -> None:
        """Remove files of contents that were given up, once the rows that did so are durable."""
        if files:
            self._database.write(lambda tx: self._contents.remove_strays(tx, files), durable=True)

    # -- operations ---------------------------------------------------------------------------

    def _begin(self, tx: Transaction, operation: Operation, contents: Mapping[str, bytes]) -> int:
        upkeep.commit_proposal(tx, operation)
        return _insert(tx, operation, self._sides(tx, operation.changes, contents))

    def adopt(self, operation: Operation, contents: Mapping[str, bytes]) -> Operation:
        def work(tx: Transaction) -> int:
            upkeep.commit_proposal(tx, operation)
            sides = self._sides(tx, operation.changes, contents, all_kept=False)
            seq = _insert(tx, operation, sides)
            tx.run("UPDATE operation SET state = 'applied' WHERE seq = ?", (seq,))
            _mark(tx, operation.id, operation.kind, operation.target)
            return seq

        seq = self._database.write(work, durable=True)
        return replace(operation, seq=seq, state="applied")

    def finish(
        self,
        change_id: ChangeId,
        *,
        state: OperationState,
        note: str = "",
        changes: ChangeSet | None = None,
    ) -> None:
        self._database.write(
            lambda tx: self._finish(tx, change_id, state, note, changes), durable=False
        )

    def _finish(
        self,
        tx: Transaction,
        change_id: ChangeId,
        state: OperationState,
        note: str,
        changes: ChangeSet | None,
    ) -> None:
        # Mostly nothing else has to be known of it.
        plain = state == "applied" and changes is None
        if plain and tx.one(_APPLIED, (to_text(note), change_id)) is not None:
            return
        row = tx.one("SELECT seq, state, kind, target FROM operation WHERE id = ?", (change_id,))
        if row is None:
            raise missing(change_id, "operation")
        seq, earlier, kind, target = row
        tx.run(
            "UPDATE operation SET state = ?, note = ? WHERE seq = ?", (state, to_text(note), seq)
        )
        if state == "rolled_back" and earlier == "intended":
            upkeep.reopen(tx, change_id)
        if changes is not None:
            sides = self._sides(tx, changes, {})
            tx.run("UPDATE operation SET added = NULL, removed = NULL WHERE seq = ?", (seq,))
            tx.run("DELETE FROM operation_change WHERE owner = ?", (seq,))
            insert_changes(tx, "operation", seq, changes, sides)
        if state == "applied" and earlier != "applied":
            # Only once: a later note must not take back what was redone meanwhile.
            _mark(tx, change_id, kind, target)

    def unfinished(self) -> tuple[Operation, ...]:
        tail = "WHERE o.state = 'intended' ORDER BY o.seq"
        return self._database.read(lambda tx: select_operations(tx, tail))

    def operation(self, change_id: str) -> Operation:
        found = self._database.read(lambda tx: select_operations(tx, *by_id("o", change_id)))
        return only(found, change_id, "operation")

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
        most = NO_LIMIT if limit is None else limit

        def work(tx: Transaction) -> tuple[Operation, ...]:
            tail, values = finished(
                tx, root, path, session, turn, (after_seq, before_seq), most, newest_first
            )
            return select_operations(tx, tail, values)

        return self._database.read(work)

    def partial_undos(self, after_seq: int) -> tuple[Operation, ...]:
        tail = (
            "WHERE o.seq > ? AND o.kind = 'undo' AND o.undone_by IS NULL AND instr(o.target, ?) > 0"
        )
        return self._database.read(lambda tx: select_operations(tx, tail, (after_seq, PARTLY)))

    def turns(
        self, roots: Sequence[RootId], *, begins: str = "", limit: int | None = None
    ) -> tuple[str, ...]:
        most = NO_LIMIT if limit is None else limit
        return self._database.read(lambda tx: turns(tx, roots, begins, most))

    def now(self) -> float:
        return time.time()

    def last_seq(self) -> int:
        newest = "SELECT coalesce(max(seq), 0) FROM operation"
        return int(self._database.read(lambda tx: tx.value(newest)))

    def _sides(
        self,
        tx: Transaction,
        changes: ChangeSet,
        contents: Mapping[str, bytes],
        *,
        all_kept: bool = True,
    ) -> list[Sides]:
        """Keep both contents of each change, each against what the file held before."""
        put = self._contents.put if all_kept else self._contents.put_if_given
        sides: list[Sides] = []
        for change in changes.changes:
            before = after = None
            if change.before is not None:
                name = change.before.content
                before = self._contents.number(tx, name)
                if before is None:
                    before = put(tx, name, contents, base=_last_content(tx, change))
            if change.after is not None:
                after = put(tx, change.after.content, contents, base=before)
            sides.append((before, after))
        return sides

    # -- checkpoints --------------------------------------------------------------------------

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        def work(tx: Transaction) -> None:
            key = (root_number(tx, checkpoint.root), to_text(checkpoint.name))
            taken = tx.one("SELECT 1 FROM checkpoint WHERE root = ? AND name = ?", key)
            if taken is not None:
                raise InvalidParamsError(
                    f"there is a checkpoint {checkpoint.name!r} already",
                    hint="Choose another name.",
                )
            tx.run(
                "INSERT INTO checkpoint VALUES (?, ?, ?, ?)",
                (*key, checkpoint.seq, checkpoint.created),
            )

        self._database.write(work, durable=True)

    def checkpoint(self, name: str, root: RootId) -> Checkpoint:
        checkpoints = self.checkpoints(root)
        for checkpoint in checkpoints:
            if checkpoint.name == name:
                return checkpoint
        names = ", ".join(repr(checkpoint.name) for checkpoint in checkpoints[-_NAMED_AT_MOST:])
        raise NotFoundError(
            f"there is no checkpoint {name!r}",
            hint=f"The latest are {names}." if names else "No checkpoint was set here.",
        )

    def checkpoints(self, root: RootId) -> tuple[Checkpoint, ...]:
        rows = self._database.read(
            lambda tx: tx.all(
                "SELECT c.name, c.seq, c.created FROM checkpoint c JOIN root r"
                " ON r.number = c.root WHERE r.path = ? ORDER BY c.seq, c.created, c.name",
                (to_path(root),),
            )
        )
        return tuple(Checkpoint(from_text(name), root, seq, created) for name, seq, created in rows)

    # -- approvals in advance -----------------------------------------------------------------

    def add_session_approval(self, given: SessionApproval) -> None:
        self._database.write(lambda tx: insert_session_approval(tx, given), durable=True)

    def revoke_session_approval(self, approval_id: str, when: float) -> None:
        revoke = "UPDATE session_approval SET revoked = ? WHERE id = ?"
        self._database.write(lambda tx: tx.run(revoke, (when, approval_id)), durable=True)

    def session_approvals(self, session: str | None = None) -> tuple[SessionApproval, ...]:
        return self._database.read(lambda tx: select_session_approvals(tx, session))

    # -- questions and reports ----------------------------------------------------------------

    def note(self, question: PermissionRecord) -> None:
        self._database.write(lambda tx: insert_question(tx, question), durable=False)

    def questions(
        self,
        *,
        root: RootId | None = None,
        session: str | None = None,
        limit: int | None = 50,
        kind: RecordKind = "asked",
    ) -> tuple[PermissionRecord, ...]:
        most = NO_LIMIT if limit is None else limit
        return self._database.read(lambda tx: select_questions(tx, root, session, most, kind=kind))

    # -- upkeep -------------------------------------------------------------------------------

    def roots(self) -> tuple[RootId, ...]:
        found = self._database.read(lambda tx: tx.all("SELECT path FROM root ORDER BY number"))
        return tuple(RootId(os.fsdecode(path)) for (path,) in found)

    def move_root(self, old: RootId, new: RootId) -> int:
        """Have what is known of a folder belong to where it lies now; see `upkeep.move_root`."""
        return self._database.write(lambda tx: upkeep.move_root(tx, old, new), durable=True)

    def statistics(self) -> JournalStatistics:
        return upkeep.statistics(self._database)

    def prune(self, *, keep_bytes: int, keep_seconds: float) -> PruneResult:
        return upkeep.prune(
            self._database, self._contents, keep_bytes=keep_bytes, horizon=self.now() - keep_seconds
        )


def _insert(tx: Transaction, operation: Operation, sides: list[Sides]) -> int:
    """Insert an operation as intended, with all that belongs to it; its place."""
    seq = insert_operation(tx, operation)
    insert_changes(tx, "operation", seq, operation.changes, sides)
    if operation.directories:
        insert_directories(tx, seq, operation.directories)
    tx.many(
        "UPDATE content SET last_seq = ? WHERE number = ? AND kept <> 'gone'",
        [(seq, number) for pair in sides for number in pair if number is not None],
    )
    return seq


def _mark(tx: Transaction, change_id: str, kind: str, target: str | bytes) -> None:
    """Mark the operations that an undo or a redo names as taken back, or in force again."""
    if kind == "redo":
        undo = from_text(target)
        named = _targets(tx, undo)
        _release(tx, undo, named)
        for one in _undos(tx, named):
            # It is in force again, and what it took back is not.
            _take(tx, one, _targets(tx, one))
        _take(tx, change_id, [undo])
    elif kind == "undo":
        named = _whole(from_text(target))
        for one in _undos(tx, named):
            _release(tx, one, _targets(tx, one))
        _take(tx, change_id, named)


def _take(tx: Transaction, by: str, named: list[str]) -> None:
    tx.many("UPDATE operation SET undone_by = ? WHERE id = ?", [(by, one) for one in named])


def _release(tx: Transaction, by: str, named: list[str]) -> None:
    tx.many(
        "UPDATE operation SET undone_by = NULL WHERE undone_by = ? AND id = ?",
        [(by, one) for one in named],
    )


def _whole(target: str) -> list[str]:
    """The operations that were taken back wholly, of an undo's target."""
    return [one for one in target.split() if not one.endswith(PARTLY)]


def _targets(tx: Transaction, undo: str) -> list[str]:
    row = tx.one("SELECT target FROM operation WHERE id = ?", (undo,))
    return [] if row is None else _whole(from_text(row[0]))


def _undos(tx: Transaction, ids: list[str]) -> list[str]:
    """The operations among these that are undos."""
    found = tx.among("SELECT id FROM operation WHERE id IN {wanted} AND kind = 'undo'", ids)
    return [row[0] for row in found]


def _last_content(tx: Transaction, change: FileChange) -> int | None:
    """The number of a file's newest content in the journal: a good base for its next one."""
    row = tx.one(
        "SELECT coalesce(c.after, c.before) FROM operation_change c JOIN root r"
        " ON r.number = c.root WHERE r.path = ? AND c.path = ? ORDER BY c.owner DESC LIMIT 1",
        (to_path(change.path.root), to_path(change.path.path)),
    )
    return row[0] if row is not None else None

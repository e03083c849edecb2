"""The journal in one SQLite file, for one machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.domain.document import RootId
from filepact.domain.operation import PARTLY, Checkpoint
from filepact.errors import InvalidParamsError, NotFoundError, StateFailedError
from filepact.store import upkeep
from filepact.store.connection import Database
from filepact.store.content import ContentStore
from filepact.store.rows import (
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
    from filepact.domain.permission_log import PermissionRecord
    from filepact.domain.session_approval import SessionApproval
    from filepact.store.connection import Transaction
    from filepact.store.rows import Sides

__all__ = ["SqliteStore"]

_NAMED_AT_MOST = 5


class SqliteStore:
    """Satisfies `filepact.workspace.journal.JournalStore`, where every method is described.

    What must be known after a power cut is synchronised to the disk; how an operation ended is
    not, since that can be seen from the files.

    Args:
        path: The file; made when missing, in a folder that is there.  Large contents are kept in
            the folder ``contents`` beside it.  Where it cannot be written, it is only read.
        locked_by: As for `Database`.

    Raises:
        StateFailedError: The file is no journal, or of a newer filepact; it is left as it is.
        TimedOutError: Another process held it for too long.
    """

    def __init__(
        self,
        path: str,
        *,
        locked_by: Callable[[str, int, int], str] = lambda _path, _first, _count: "",
    ) -> None:
        self._database = Database(path, locked_by=locked_by)
        self._contents = ContentStore(Path(path).parent / "contents")

    def version(self) -> object:
        return self._database.version()

    def close(self) -> None:
        self._database.close()

    def content(self, content_id: str) -> bytes:
        try:
            with self._database.reading() as tx:
                return self._contents.find(tx, content_id)
        except StateFailedError:
            # The view may tell of a file that another process has just pruned; look again.
            try:
                with self._database.reading() as tx:
                    return self._contents.find(tx, content_id)
            except StateFailedError as error:
                raise self._unusable(content_id, error) from error

    def _unusable(self, content_id: str, error: StateFailedError) -> StateFailedError:
        """The error for a damaged content, with the operations that need it."""
        from filepact.store.integrity import unusable  # noqa: PLC0415 - rarely needed

        needs: list[str] = []
        with suppress(StateFailedError), self._database.reading() as tx:
            for (number,) in tx.all(
                "SELECT number FROM content WHERE hex(id) = ?", (content_id.upper(),)
            ):
                needs = [
                    f"{one.id} ({one.summary}) in {one.path}" for one in unusable(tx, [number])
                ]
        if not needs:
            return error
        more = f" and {len(needs) - _NAMED_AT_MOST} others" if len(needs) > _NAMED_AT_MOST else ""
        return StateFailedError(
            f"a text in the journal is damaged, which is needed by {'; '.join(needs[:_NAMED_AT_MOST])}{more}",
            hint="Nothing was changed. All else can be taken back: name another operation of "
            "`filepact log`. `filepact state check` says what is damaged.",
            content=content_id[:12],
        )

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
        with self._database.writing(durable=True) as tx:
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
            files = upkeep.release(tx, self._contents, gone)
        self._remove(files)

    def proposal(self, change_id: str) -> Proposal:
        with self._database.reading() as tx:
            found = select_proposals(tx, *by_id("p", change_id))
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
        with self._database.reading() as tx:
            if limit is None:
                return select_proposals(tx, tail + "ORDER BY p.number", values)
            tail += "ORDER BY p.number DESC LIMIT ?"
            return select_proposals(tx, tail, [*values, limit])[::-1]

    def sessions(self, session: Session) -> frozenset[str]:
        with self._database.reading() as tx:
            rows = tx.all(
                "SELECT s.id FROM conversation c JOIN session s ON s.number = c.session"
                " WHERE c.name = ? AND s.actor_name = ?",
                of_session(session)[1:],
            )
        return frozenset(from_text(row[0]) for row in rows) | {session.id}

    def sessions_named(self, begins: str) -> tuple[str, ...]:
        with self._database.reading() as tx:
            rows = tx.all(
                "SELECT DISTINCT id FROM session WHERE id >= ?1 AND id < ?1 || char(1114111)"
                " ORDER BY id LIMIT ?2",
                (to_text(begins), _NAMED_AT_MOST + 1),
            )
        return tuple(from_text(row[0]) for row in rows)

    def reject(self, change_ids: Sequence[ChangeId], approval: Approval) -> None:
        with self._database.writing(durable=True) as tx:
            for one in change_ids:
                upkeep.check_waits(tx, one)
            upkeep.reject(tx, change_ids, approval)
            files = upkeep.release(tx, self._contents, change_ids)
        self._remove(files)
        upkeep.shrink(self._database)

    def expire(self, before: float) -> None:
        with self._database.reading() as tx:
            if not upkeep.has_expired(tx, before):
                return
        with self._database.writing(durable=True) as tx:
            files = upkeep.release(tx, self._contents, upkeep.expire(tx, before))
        self._remove(files)
        upkeep.shrink(self._database)

    def _remove(self, files: list[Path]) -> None:
        """Remove files of contents that were given up, once the rows that did so are durable."""
        if files:
            with self._database.writing(durable=True) as tx:
                self._contents.remove_strays(tx, files)

    # -- operations ---------------------------------------------------------------------------

    def begin(self, operation: Operation, contents: Mapping[str, bytes]) -> Operation:
        with self._database.writing(durable=True) as tx:
            upkeep.commit_proposal(tx, operation)
            seq = _insert(tx, operation, self._sides(tx, operation.changes, contents))
        return replace(operation, seq=seq, state="intended")

    def adopt(self, operation: Operation, contents: Mapping[str, bytes]) -> Operation:
        with self._database.writing(durable=True) as tx:
            upkeep.commit_proposal(tx, operation)
            sides = self._sides(tx, operation.changes, contents, all_kept=False)
            seq = _insert(tx, operation, sides)
            tx.run("UPDATE operation SET state = 'applied' WHERE seq = ?", (seq,))
        return replace(operation, seq=seq, state="applied")

    def finish(
        self,
        change_id: ChangeId,
        *,
        state: OperationState,
        note: str = "",
        changes: ChangeSet | None = None,
    ) -> None:
        with self._database.writing(durable=False) as tx:
            row = tx.one(
                "SELECT seq, state, kind, target FROM operation WHERE id = ?",
                (change_id,),
            )
            if row is None:
                raise missing(change_id, "operation")
            seq, earlier, kind, target = row
            tx.run(
                "UPDATE operation SET state = ?, note = ? WHERE seq = ?",
                (state, to_text(note), seq),
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
        with self._database.reading() as tx:
            return select_operations(tx, "WHERE o.state = 'intended' ORDER BY o.seq")

    def operation(self, change_id: str) -> Operation:
        with self._database.reading() as tx:
            found = select_operations(tx, *by_id("o", change_id))
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
        most = -1 if limit is None else limit
        with self._database.reading() as tx:
            tail, values = finished(
                tx, root, path, session, turn, (after_seq, before_seq), most, newest_first
            )
            return select_operations(tx, tail, values)

    def partial_undos(self, after_seq: int) -> tuple[Operation, ...]:
        tail = "WHERE o.seq > ? AND o.kind = 'undo' AND o.undone_by IS NULL AND instr(o.target, ?)"
        with self._database.reading() as tx:
            return select_operations(tx, tail, (after_seq, PARTLY))

    def turns(
        self, roots: Sequence[RootId], *, begins: str = "", limit: int | None = None
    ) -> tuple[str, ...]:
        with self._database.reading() as tx:
            return turns(tx, roots, begins, -1 if limit is None else limit)

    def last_seq(self) -> int:
        with self._database.reading() as tx:
            return int(tx.value("SELECT coalesce(max(seq), 0) FROM operation"))

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
        with self._database.writing(durable=True) as tx:
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
        with self._database.reading() as tx:
            rows = tx.all(
                "SELECT c.name, c.seq, c.created FROM checkpoint c JOIN root r"
                " ON r.number = c.root WHERE r.path = ? ORDER BY c.seq, c.created, c.name",
                (to_path(root),),
            )
        return tuple(Checkpoint(from_text(name), root, seq, created) for name, seq, created in rows)

    # -- approvals in advance -----------------------------------------------------------------

    def add_session_approval(self, given: SessionApproval) -> None:
        with self._database.writing(durable=True) as tx:
            insert_session_approval(tx, given)

    def revoke_session_approval(self, approval_id: str, when: float) -> None:
        with self._database.writing(durable=True) as tx:
            tx.run("UPDATE session_approval SET revoked = ? WHERE id = ?", (when, approval_id))

    def session_approvals(self, session: str | None = None) -> tuple[SessionApproval, ...]:
        with self._database.reading() as tx:
            return select_session_approvals(tx, session)

    # -- questions and reports ----------------------------------------------------------------

    def note(self, question: PermissionRecord) -> None:
        with self._database.writing(durable=False) as tx:
            insert_question(tx, question)

    def questions(
        self,
        *,
        root: RootId | None = None,
        session: str | None = None,
        limit: int | None = 50,
        reads: bool = False,
    ) -> tuple[PermissionRecord, ...]:
        with self._database.reading() as tx:
            most = -1 if limit is None else limit
            return select_questions(tx, root, session, most, reads=reads)

    # -- upkeep -------------------------------------------------------------------------------

    def roots(self) -> tuple[RootId, ...]:
        with self._database.reading() as tx:
            found = tx.all("SELECT path FROM root ORDER BY number")
        return tuple(RootId(os.fsdecode(path)) for (path,) in found)

    def statistics(self) -> JournalStatistics:
        return upkeep.statistics(self._database)

    def prune(self, *, keep_bytes: int, keep_seconds: float) -> PruneResult:
        return upkeep.prune(
            self._database, self._contents, keep_bytes=keep_bytes, keep_seconds=keep_seconds
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
    """Those of some operations that are undos themselves."""
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

"""What can be done to a database that holds journals, and the way of a journal into it and back.

Copying goes by values and not by rows, in the words of the journal's own reading and writing, so that
both ends are what those two understand.  What is there already is compared and left as it is: a copy
that was cut off is gone on with, and one that is whole does nothing.
"""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

import psycopg

from filepact.domain.document import RootId
from filepact.domain.operation import Session
from filepact.domain.permission_log import RecordKind
from filepact.errors import InvalidParamsError, NotFoundError, StateFailedError
from filepact.store import connection as sqlite
from filepact.store.connection import open_to_read
from filepact.store.content import ContentStore
from filepact.store.rows import (
    from_text,
    insert_changes,
    insert_directories,
    insert_operation,
    insert_proposal,
    insert_question,
    insert_session_approval,
    root_number,
    select_operations,
    select_proposals,
    select_questions,
    select_session_approvals,
    session_number,
    to_session,
    to_text,
)
from filepact.store.schema import MIGRATIONS as FILE_MIGRATIONS
from filepact.store.schema import check
from filepact.store.sqlite import SqliteStore
from filepact.values import replace
from filepact_fleet.databases import StoreResult, StoreStatus, check_package
from filepact_fleet.postgres import PostgresStore
from filepact_fleet.postgres_connection import migrate_database
from filepact_fleet.postgres_schema import MIGRATIONS, state_of
from filepact_fleet.postgres_words import open_connection, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.change import ChangeSet
    from filepact.domain.operation import Operation, Proposal, StoreOptions
    from filepact.store.rows import Sides
    from filepact.store.sql import SqlStore
    from filepact.store.transaction import Transaction

__all__ = ["StoreDatabase", "copy_journal"]

_Answer = TypeVar("_Answer")
_BATCH: Final = 200
_HELD: Final = 64 * 1024 * 1024
_SIZE: Final = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"
)
_PARTS: Final = (
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
    " WHERE i.inhparent = to_regclass('operation_all') ORDER BY c.relname"
)


class StoreDatabase:
    """A database that the settings name, whatever state it is in.

    Args:
        options: Which one.
        name: The name of the state folder.
        file: Where the journal of the state folder is, if there is one.

    Raises:
        InvalidParamsError: What speaks to databases is not installed.
    """

    def __init__(self, options: StoreOptions, name: str, file: str) -> None:
        check_package()
        self._options = options
        self._name = name
        self._file = file
        self.workspace = options.workspace or name

    def status(self) -> StoreStatus:
        """What is known of it, as far as it can be read."""

        def ask(connection: psycopg.Connection[Any]) -> StoreStatus:
            def value(query: str, *values: Any) -> Any:
                return connection.execute(query.encode(), values or None).fetchall()[0][0]

            found = StoreStatus(
                server=str(value("SHOW server_version")),
                tables=state_of(connection),
                newest=len(MIGRATIONS),
                standby=bool(value("SELECT pg_is_in_recovery()")),
                workspace=self.workspace,
            )
            if not found.tables:
                return found
            return replace(
                found,
                workspaces=value("SELECT count(*) FROM workspace"),
                operations=value(
                    "SELECT count(*) FROM operation_all o JOIN workspace w"
                    " ON w.number = o.workspace WHERE w.name = %s",
                    self.workspace,
                ),
                partitions=tuple(row[0] for row in connection.execute(_PARTS).fetchall()),
                bytes=int(value(_SIZE)),
            )

        return self._asking(ask)

    def _asking(self, ask: Callable[[psycopg.Connection[Any]], _Answer]) -> _Answer:
        try:
            with open_connection(self._options.url) as connection, connection.transaction():
                path = f'"{self._options.schema}"'
                connection.execute("SELECT set_config('search_path', %s, true)", (path,))
                return ask(connection)
        except psycopg.Error as error:
            raise told(error) from error

    def migrate(self, width: Literal["day", "month"] = "month") -> list[int]:
        """Bring its tables to the newest version; the steps that were done."""
        return migrate_database(self._options.url, self._options.schema, width=width)

    def prune(self, days: float) -> tuple[str, ...]:
        """Drop the partitions of which all is so old, of all workspaces; their names."""
        with closing(self._opened()) as store:
            dropped = store.drop_before(
                datetime.fromtimestamp(store.now(), UTC) - timedelta(days=days)
            )
            names = store.workspaces()
        for name in names:
            with closing(self._opened(name)) as store:
                store.give_up_dropped()
        return dropped

    def _opened(self, workspace: str = "") -> PostgresStore:
        return PostgresStore(
            self._options.url,
            workspace=workspace or self.workspace,
            holder=self._name,
            schema=self._options.schema,
        )

    def copy(
        self, *, back: bool = False, tell: Callable[[str], None] = lambda _said: None
    ) -> StoreResult:
        """Copy the journal of the state folder into the database, which is left as it is.

        Args:
            back: Whether it is copied out of the database instead, into a state folder that has no
                journal yet, or part of this one.
            tell: Is told how far this is.

        Raises:
            NotFoundError: There is no journal in the state folder.
            InvalidParamsError: The target has other operations in the same places.
        """
        with closing(self._opened()) as store:
            if back:
                with closing(SqliteStore(self._file)) as target:
                    return copy_journal(store, target, tell)
            if not Path(self._file).exists():
                raise NotFoundError("there is no journal in the state folder to copy")
            with closing(_FileSource(self._file)) as source:
                return copy_journal(source, store, tell)


class _FileSource:
    """A journal in a file, which is only read."""

    def __init__(self, path: str) -> None:
        self._connection = open_to_read(path)
        self.contents = ContentStore(str(Path(path).parent / "contents"))
        if check(self._connection) < len(FILE_MIGRATIONS):
            self._connection.close()
            raise StateFailedError(
                "the journal in the state folder is of an earlier version",
                hint="Call any command once without FILEPACT_STORE and [store], then copy it.",
            )

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        self._connection.execute("BEGIN")
        try:
            return work(sqlite.Transaction(self._connection))
        finally:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def copy_journal(
    source: _FileSource | SqlStore, target: SqlStore, tell: Callable[[str], None]
) -> StoreResult:
    """Copy a whole journal into another, and compare both.

    Raises:
        InvalidParamsError: The target has other operations in the same places; nothing of these
            was changed.
        StateFailedError: A content of the source is damaged, or the two are not the same in the end.
    """
    return _Copy(source, target, tell).run()


class _Copy:
    def __init__(
        self, source: _FileSource | SqlStore, target: SqlStore, tell: Callable[[str], None]
    ) -> None:
        self._source, self._target, self._tell = source, target, tell
        self._copied = 0
        self._held: dict[int, bytes] = {}

    def run(self) -> StoreResult:
        contents = self._contents()
        self._conversations()
        operations = self._operations()
        proposals = self._proposals()
        self._small()
        for number in contents.values():
            self._target.read(partial(self._check, number=number))
        return StoreResult(operations, proposals, len(contents), self._copied)

    def _check(self, tx: Transaction, *, number: int) -> None:
        """Read a content of the target, which compares it with its id."""
        self._target.contents.load(tx, number)

    # -- contents -----------------------------------------------------------------------------

    def _contents(self) -> dict[str, int]:
        """Copy what is kept, and the ids of the rest; the numbers of what is kept, in the target."""
        rows = self._source.read(
            lambda tx: tx.all(
                "SELECT lower(hex(id)), number, base, kept, size, last_seq FROM content"
                " ORDER BY number"
            )
        )
        names = {number: name for name, number, *_ in rows}
        found: dict[str, int] = {}
        for at in range(0, len(rows), _BATCH):
            batch = rows[at : at + _BATCH]
            data = self._source.read(partial(self._loaded, rows=batch))
            found |= self._target.write(partial(self._put, rows=batch, data=data, names=names))
            self._tell(f"{at + len(batch):,} of {len(rows):,} contents")
        return found

    def _loaded(self, tx: Transaction, rows: list[Any]) -> dict[str, bytes]:
        """The bytes of some contents; each is compared with its id."""
        data: dict[str, bytes] = {}
        for name, number, _, kept, _, _ in rows:
            if kept != "gone":
                data[name] = self._source.contents.load(tx, number, self._held)
                self._held[number] = data[name]
        if sum(map(len, self._held.values())) > _HELD:
            self._held.clear()
        return data

    def _put(
        self, tx: Transaction, rows: list[Any], data: dict[str, bytes], names: dict[int, str]
    ) -> dict[str, int]:
        found: dict[str, int] = {}
        store = self._target.contents
        for name, _, base, kept, _, last_seq in rows:
            known = store.number(tx, name)
            if kept == "gone":
                store.put_if_given(tx, name, {})
                continue
            if known is None:
                near = None if base is None else store.number(tx, names[base])
                known = store.put(tx, name, data, base=near)
                self._copied += 1
            tx.run(
                "UPDATE content SET last_seq = ? WHERE number = ? AND last_seq < ?",
                (last_seq, known, last_seq),
            )
            found[name] = known
        return found

    # -- operations and proposals -------------------------------------------------------------

    def _conversations(self) -> None:
        rows = self._source.read(
            lambda tx: tx.all(
                "SELECT s.id, s.actor_kind, s.actor_name, s.actor_version, '', '',"
                " s.actor_user, c.name"
                " FROM conversation c JOIN session s ON s.number = c.session"
            )
        )

        def work(tx: Transaction) -> None:
            for *session, name in rows:
                one = to_session(session)
                known = Session(one.id, one.actor, conversation=from_text(name))
                session_number(tx, known)

        if rows:
            self._target.write(work)

    def _operations(self) -> int:
        """Copy what is not there; how many both have."""
        last = count = 0
        tail = "WHERE o.seq > ? ORDER BY o.seq LIMIT ?"
        while True:
            since = last
            some = self._source.read(partial(select_operations, tail=tail, values=(since, _BATCH)))
            if not some:
                return count
            self._target.write(partial(self._put_operations, some=some))
            last = some[-1].seq
            count += len(some)
            self._compare(since, last, some)
            self._tell(f"{count:,} operations")

    def _put_operations(self, tx: Transaction, some: tuple[Operation, ...]) -> None:
        seqs = [one.seq for one in some]
        taken = dict(tx.among("SELECT seq, id FROM operation WHERE seq IN {wanted}", seqs))
        for one in some:
            if one.seq in taken:
                if taken[one.seq] != one.id:
                    raise InvalidParamsError(
                        f"the other journal has {taken[one.seq]} in the place of {one.id}",
                        hint="Nothing of it was changed. Name another workspace in [store], or"
                        " another state folder.",
                    )
                continue
            self._target.go_to(tx, one.seq)
            own = insert_operation(tx, one)
            tx.run("UPDATE operation SET seq = ? WHERE seq = ?", (one.seq, own))
            insert_changes(tx, "operation", one.seq, one.changes, _sides(tx, one.changes))
            insert_directories(tx, one.seq, one.directories)
            tx.run(
                "UPDATE operation SET state = ?, undone_by = ? WHERE seq = ?",
                (one.state, one.undone_by, one.seq),
            )
            self._copied += 1
        self._target.go_to(tx, None)

    def _compare(self, after: int, last: int, some: tuple[Operation, ...]) -> None:
        """What was copied must read the same; what went on since then may have."""
        tail = "WHERE o.seq > ? AND o.seq <= ? ORDER BY o.seq"
        found = self._target.read(lambda tx: select_operations(tx, tail, (after, last)))
        if [*map(_first, found)] != [*map(_first, some)]:
            raise StateFailedError(
                f"the operations after place {after} are not the same in both journals",
                hint="The journal that was copied from is as it was.",
            )

    def _proposals(self) -> int:
        some = self._source.read(lambda tx: select_proposals(tx, "ORDER BY p.number"))
        for at in range(0, len(some), _BATCH):
            batch = some[at : at + _BATCH]
            self._target.write(partial(self._put_proposals, some=batch))
        return len(some)

    def _put_proposals(self, tx: Transaction, some: tuple[Proposal, ...]) -> None:
        ids = [one.id for one in some]
        known = {row[0] for row in tx.among("SELECT id FROM proposal WHERE id IN {wanted}", ids)}
        for one in some:
            if one.id in known:
                continue
            settled = one.state in ("superseded", "expired")
            number = insert_proposal(tx, replace(one, state="rejected") if settled else one)
            insert_changes(tx, "proposal", number, one.changes, _sides(tx, one.changes))
            tx.run(
                "UPDATE proposal SET superseded_by = ?, expired = ?, decided_by = ? WHERE number = ?",
                (
                    *(one.superseded_by or None, int(one.state == "expired")),
                    *(to_text(one.decided_by), number),
                ),
            )
            self._copied += 1

    # -- the rest -----------------------------------------------------------------------------

    def _small(self) -> None:
        """Copy roots, checkpoints, approvals in advance, and questions."""
        roots = self._source.read(lambda tx: tx.all("SELECT path FROM root ORDER BY number"))
        places = self._source.read(
            lambda tx: tx.all(
                "SELECT r.path, c.name, c.seq, c.created FROM checkpoint c JOIN root r"
                " ON r.number = c.root"
            )
        )
        given = self._source.read(lambda tx: select_session_approvals(tx, None))[::-1]
        asked = self._source.read(_all_questions)

        def work(tx: Transaction) -> None:
            for (path,) in roots:
                root_number(tx, _root(path))
            for path, name, seq, created in places:
                key = (root_number(tx, _root(path)), name)
                if tx.one("SELECT 1 FROM checkpoint WHERE root = ? AND name = ?", key) is None:
                    tx.run("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", (*key, seq, created))
            known = {one.id for one in select_session_approvals(tx, None)}
            for one in given:
                if one.id not in known:
                    insert_session_approval(tx, one)
                    revoke = "UPDATE session_approval SET revoked = ? WHERE id = ?"
                    tx.run(revoke, (one.revoked, one.id))
            noted = set(_all_questions(tx))
            for question in asked[::-1]:
                if question not in noted:
                    insert_question(tx, question)

        self._target.write(work)


def _first(one: Operation) -> Operation:
    """An operation without what may become of it later."""
    return replace(one, state="applied", undone_by=None, note="")


def _all_questions(tx: Transaction) -> tuple[Any, ...]:
    kinds = get_args(RecordKind)
    some = [one for kind in kinds for one in select_questions(tx, None, None, 1 << 62, kind=kind)]
    return tuple(sorted(some, key=lambda one: one.when, reverse=True))


def _root(path: bytes) -> RootId:
    return RootId(from_text(path))


def _sides(tx: Transaction, changes: ChangeSet) -> list[Sides]:
    def number(content: str) -> int:
        return int(tx.value("SELECT number FROM content WHERE id = ?", (bytes.fromhex(content),)))

    return [
        (
            None if one.before is None else number(one.before.content),
            None if one.after is None else number(one.after.content),
        )
        for one in changes.changes
    ]

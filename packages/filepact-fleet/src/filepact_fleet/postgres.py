"""The journal of a workspace in a PostgreSQL database that many machines use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.domain.document import content_id
from filepact.domain.operation import JournalEvent
from filepact.store import upkeep
from filepact.store.content import ContentStore
from filepact.store.rows import select_operations, to_text
from filepact.store.sql import SqlStore
from filepact.values import replace
from filepact_fleet.postgres_connection import PATIENCE, PostgresDatabase
from filepact_fleet.postgres_schema import drop_partitions, make_partitions
from filepact_fleet.postgres_together import FENCED, begin_together, fenced_off, finish_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from filepact.domain.audit import JournalSummary
    from filepact.domain.change import ChangeSet
    from filepact.domain.operation import ChangeId, Operation, OperationState
    from filepact.store.transaction import Transaction

__all__ = ["PostgresStore"]

_BATCH: Final = 2_048
_EVENTS: Final = """
WITH seen AS (
    SELECT coalesce(max(version), 0) AS version FROM reader
    WHERE workspace = current_setting('filepact.workspace')::bigint AND name = ?1
)
SELECT e.version, e.what, e.change FROM event e WHERE e.version > (SELECT version FROM seen)
AND e.version <= (SELECT max(version) FROM (SELECT f.version FROM event f
    WHERE f.version > (SELECT version FROM seen) ORDER BY f.version, f.number LIMIT ?2) first)
ORDER BY e.version, e.number
"""
_SEEN: Final = """
INSERT INTO reader AS r (workspace, name, version)
VALUES (current_setting('filepact.workspace')::bigint, ?, ?)
ON CONFLICT (workspace, name) DO UPDATE SET version = greatest(r.version, excluded.version)
"""
_DROPPED: Final = f"""
SELECT number FROM content WHERE kept <> 'gone' AND last_seq > 0 AND last_seq < (
    SELECT coalesce((SELECT min(seq) FROM operation), w.seq + 1) FROM workspace w
    WHERE w.number = current_setting('filepact.workspace')::bigint
)
AND number NOT IN ({upkeep.PROPOSED}) LIMIT ?
"""
_GO_TO: Final = """
UPDATE workspace w SET seq = coalesce(?::bigint, (SELECT max(seq) FROM operation), w.seq)
WHERE w.number = current_setting('filepact.workspace')::bigint
"""
_OURS: Final = "WHERE o.state = 'intended' AND o.holder = current_setting('filepact.holder') "
_OURS_OR_NOBODYS: Final = (
    "WHERE o.state = 'intended' AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.holder = o.holder"
    " AND l.holder <> current_setting('filepact.holder') AND l.expires > now()) "
)
_NOT_AS_NOW: Final = "AND NOT (o.holder = current_setting('filepact.holder') AND o.token = ?) "
_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"


class _RowContents(ContentStore):
    """Contents of any size, in rows."""

    def __init__(self) -> None:
        super().__init__("")

    def _write_large(self, *_content: object) -> str:
        return "row"

    def files(self, *_numbers: object) -> list[Path]:
        return []

    def remove_strays(self, *_files: object) -> None:
        return


class PostgresStore(SqlStore):
    """The journal of one workspace in a database.

    Args:
        url: Where the database is, without a password.
        workspace: The name of the workspace.
        holder: Whose operations those that are begun here are: a state folder, or a gateway.
        schema: The schema with the tables.
        patience: As for `PostgresDatabase`.
        lease: As for `PostgresDatabase`.
        takes_over: Whether what other holders have begun is settled here when they are not heard
            of any more.  Only right where the files of the workspace are the same for both.

    Raises:
        StoreUnreachableError: The server does not answer.
        StoreSchemaError: The tables are missing, or of another version.
    """

    def __init__(
        self,
        url: str,
        *,
        workspace: str,
        holder: str,
        schema: str = "filepact",
        patience: float = PATIENCE,
        lease: float = 30.0,
        takes_over: bool = False,
    ) -> None:
        self._server = PostgresDatabase(
            url,
            workspace=workspace,
            holder=holder,
            schema=schema,
            patience=patience,
            lease=lease,
        )
        self._takes_over = takes_over
        super().__init__(self._server, _RowContents())
        self.name = f"database {content_id(f'{url} {schema} {workspace}'.encode())[:12]}"

    @property
    def waiting(self) -> int:
        """How many calls of this process wait to write, those counted that are being done."""
        return self._server.waiting

    def begin(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        meanwhile: Callable[[], None] | None = None,
    ) -> Operation:
        if meanwhile is not None:
            meanwhile()
        seq = self._server.write(
            lambda tx: self._begin(tx, operation, contents),
            durable=True,
            together=begin_together,
            given=(operation, contents),
        )
        return replace(operation, seq=seq, state="intended")

    def finish(
        self,
        change_id: ChangeId,
        *,
        state: OperationState,
        note: str = "",
        changes: ChangeSet | None = None,
    ) -> None:
        self._server.write(
            lambda tx: self._finish(tx, change_id, state, note, changes),
            durable=True,
            together=finish_together if changes is None else None,
            given=(change_id, state, note),
        )

    def _finish(
        self,
        tx: Transaction,
        change_id: ChangeId,
        state: OperationState,
        note: str,
        changes: ChangeSet | None,
    ) -> None:
        fenced = "SELECT " + FENCED + " FROM operation WHERE id = ?"
        found = tx.one(fenced, (change_id,))
        if found is not None and found[0]:
            raise fenced_off(change_id)
        super()._finish(tx, change_id, state, note, changes)

    def unfinished(self) -> tuple[Operation, ...]:
        """As in the journal's protocol; what others have begun only where it may be taken over."""
        whose = _OURS_OR_NOBODYS if self._takes_over else _OURS
        stale = "SELECT 1 FROM operation o " + whose + _NOT_AS_NOW + "LIMIT 1"
        token = self._server.token
        if self._server.read(lambda tx: tx.one(stale, (token,))) is not None:
            self._server.write(lambda tx: _claim(tx, whose), durable=True)
        return self._server.read(lambda tx: select_operations(tx, whose + "ORDER BY o.seq"))

    def go_to(self, tx: Transaction, seq: int | None) -> None:
        """As for `SqlStore`; within a transaction that goes behind the last place in the end."""
        tx.run(_GO_TO, (None if seq is None else seq - 1,))

    def account(self) -> JournalSummary:
        """What it tells of operations; of those that other state folders have begun, their logs tell."""
        ours = "CASE WHEN holder = current_setting('filepact.holder') THEN logged ELSE 0 END"
        return self._server.read(lambda tx: upkeep.account(tx, self.name, ours, drops=True))

    def now(self) -> float:
        """As in the journal's protocol: by the clock of the server."""
        return float(self._server.read(lambda tx: tx.value(_NOW)))

    def last_seq(self) -> int:
        """As in the journal's protocol; also after older operations were dropped."""
        query = (
            "SELECT seq FROM workspace WHERE number = current_setting('filepact.workspace')::bigint"
        )
        return int(self._server.read(lambda tx: tx.value(query)))

    # -- events -------------------------------------------------------------------------------

    def events(self, reader: str, *, limit: int = 1_000) -> tuple[JournalEvent, ...]:
        """What a reader was not told of yet, in order.

        Args:
            reader: Its name.
            limit: About so many: those of one transaction are never divided.
        """
        rows = self._server.read(lambda tx: tx.all(_EVENTS, (to_text(reader), limit)))
        return tuple(JournalEvent(*row) for row in rows)

    def seen(self, reader: str, version: int) -> None:
        """Note that a reader has dealt with all events up to those of a version."""
        values = (to_text(reader), version)
        self._server.write(lambda tx: tx.run(_SEEN, values), durable=True)

    # -- upkeep -------------------------------------------------------------------------------

    def workspaces(self) -> tuple[str, ...]:
        """The names of all workspaces in the database."""
        names = "SELECT name FROM workspace ORDER BY name"
        return tuple(name for (name,) in self._server.read(lambda tx: tx.all(names)))

    def drop_before(self, before: datetime) -> tuple[str, ...]:
        """Drop the partitions that are older than a time, of all workspaces; their names.

        What they alone needed in this workspace is given up.
        """
        dropped = self._server.maintain(lambda connection: drop_partitions(connection, before))
        self._server.maintain(make_partitions)
        self.give_up_dropped()
        return tuple(dropped)

    def give_up_dropped(self) -> int:
        """Give up contents that only operations needed which are no longer there; how many."""
        count = 0
        while True:
            gone = self._server.write(self._give_up_some, durable=True)
            count += gone
            if not gone:
                return count

    def _give_up_some(self, tx: Transaction) -> int:
        numbers = [number for (number,) in tx.all(_DROPPED, (_BATCH,))]
        upkeep.give_up(tx, self._contents, numbers)
        return len(numbers)


def _claim(tx: Transaction, whose: str) -> None:
    """Make operations that nobody goes on with ours; whoever began them cannot end them now."""
    tx.run(
        "UPDATE lease SET token = nextval('token') WHERE expires <= now()"
        " AND holder <> current_setting('filepact.holder') AND holder IN"
        " (SELECT o.holder FROM operation o " + whose + ")"
    )
    tx.run(
        "UPDATE operation o SET holder = current_setting('filepact.holder'),"
        " token = current_setting('filepact.token')::bigint, logged = NULL " + whose
    )

"""One journal in a PostgreSQL database: connections, transactions that may be tried again, errors.

Writers of a workspace follow one another by the lock on its row, in one process by a queue: whoever
comes to its head takes all that wait with it into one transaction.  Nothing is kept in a session of
the server (no ``SET`` outside a transaction, no prepared statement, no lock that outlasts one), so a
pooler may give every transaction another one.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import psycopg
from psycopg import pq

from filepact.errors import (
    FilepactError,
    StateFailedError,
    StoreFencedError,
    StoreFullError,
    StoreUnreachableError,
    StoreUnsureError,
    TimedOutError,
)
from filepact_fleet.postgres_schema import migrate
from filepact_fleet.postgres_together import ALONE
from filepact_fleet.postgres_words import (
    PostgresTransaction,
    check_tables,
    is_passing,
    only_reads,
    open_connection,
    to_stored,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg.errors import Diagnostic

    from filepact.store.transaction import Transaction
    from filepact_fleet.postgres_schema import Width

__all__ = ["PostgresDatabase", "migrate_database"]

_Answer = TypeVar("_Answer")

PATIENCE: Final = 15.0
_LONGEST_NAP: Final = 0.25
_CONNECTIONS: Final = 8
_BATCH: Final = 256
_GATHERING: Final = 0.002
_LEASE: Final = 30.0

_HEAD: Final = (
    "SELECT set_config('search_path', %(path)s, true),"
    " set_config('filepact.workspace', %(workspace)s, true),"
    " set_config('filepact.holder', %(holder)s, true),"
    " set_config('statement_timeout', %(limit)s, true),"
    " set_config('lock_timeout', %(limit)s, true),"
    " set_config('idle_in_transaction_session_timeout', %(idle)s, true),"
    " set_config('synchronous_commit', %(synchronous)s, true)"
)
_HOLD: Final = (
    "WITH held AS (UPDATE workspace SET version = version + 1"
    " WHERE number = current_setting('filepact.workspace')::bigint RETURNING version)"
    " SELECT set_config('filepact.version', version::text, true)"
    " FROM held"
)
_TRY: Final = (
    "INSERT INTO attempt (process, number) VALUES (%s, %s)"
    " ON CONFLICT (process) DO UPDATE SET number = excluded.number, done = now()"
)
_WAIT: Final = (
    "SELECT 1 FROM workspace WHERE number = current_setting('filepact.workspace')::bigint"
    " FOR UPDATE"
)
_TOLD: Final = "SELECT number FROM attempt WHERE process = %s"
_LEASED: Final = (
    "SELECT token, set_config('filepact.token', token::text, true) FROM lease WHERE holder = %s"
)
_RENEWED: Final = (
    "INSERT INTO lease (holder, expires) VALUES (%s, now() + make_interval(secs => %s))"
    " ON CONFLICT (holder) DO UPDATE SET expires = excluded.expires"
    " RETURNING token, set_config('filepact.token', token::text, true)"
)


class _LostError(Exception):
    """Nothing came of a transaction; it may be tried again.

    Args:
        error: What is told if it is not.
    """

    def __init__(self, error: FilepactError) -> None:
        super().__init__(error.message)
        self.error = error


def commit(connection: psycopg.Connection[Any], line: psycopg.Pipeline) -> None:
    """Commit, and wait for the answer.

    Raises:
        psycopg.OperationalError: Somebody has cut off the server's wait for its standby, and a server
            that is promoted may not have the change.  The server itself calls that committed.
    """
    kinds: list[str | None] = []

    def note(said: Diagnostic) -> None:
        kinds.append(said.severity_nonlocalized)

    connection.add_notice_handler(note)
    try:
        connection.execute("COMMIT")
        line.sync()
    finally:
        connection.remove_notice_handler(note)
    if "WARNING" in kinds:
        raise psycopg.OperationalError("a standby was not waited for")


class _Unit:
    """Something that waits to be done in a transaction, and then its answer."""

    def __init__(
        self, work: Callable[[Transaction], Any], durable: bool, together: Any, given: Any
    ) -> None:
        self.work = work
        self.durable = durable
        self.together = together
        self.given = given
        self.leads = False
        self.told = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None


class PostgresDatabase:
    """The journal of one workspace; threads and processes share it.

    Args:
        url: Where the database is, without a password: libpq finds that in ``PGPASSWORD`` or in a
            password file.
        workspace: The name of the workspace; made when missing.
        holder: Whose operations those that are begun here are: a state folder, or a gateway.
        schema: The schema with the tables.
        patience: How long to wait for other writers and for a server that is away, in seconds.
        lease: For how long a holder counts as alive that nothing is heard of, in seconds.

    Raises:
        StoreUnreachableError: The server does not answer.
        StoreSchemaError: The tables are missing, or of another version.
    """

    read_only = False

    def __init__(
        self,
        url: str,
        *,
        workspace: str,
        holder: str,
        schema: str = "filepact",
        patience: float = PATIENCE,
        lease: float = _LEASE,
    ) -> None:
        self._url = url
        self._schema = schema
        self._patience = patience
        self._lease = lease
        self.holder = holder
        self.token = 0
        self._renewed = 0.0
        self._idle: list[psycopg.Connection[Any]] = []
        self._guard = threading.Lock()
        self._room = threading.BoundedSemaphore(_CONNECTIONS)
        self._led = False
        self._process = os.urandom(16).hex()
        self._attempts = 0
        self._crowd = 0
        self._waiting: list[_Unit] = []
        self.waiting = 0
        self._closed = False
        self._password: str | None = None
        self._workspace = ""
        try:
            self._workspace = str(self._again(lambda: self._enter(workspace)))
        except BaseException:
            self.close()
            raise

    def _enter(self, name: str) -> int:
        """The number of the workspace, which is made when it is missing."""
        known = "SELECT number FROM workspace WHERE name = %s"
        stored = (to_stored(name),)
        with self._lent() as connection, _ended(connection):
            self._set_up(connection, "BEGIN")
            check_tables(connection)
            rows = connection.execute(known, stored).fetchall()
            if not rows:
                connection.execute(
                    "INSERT INTO workspace (name) VALUES (%s) ON CONFLICT DO NOTHING", stored
                )
                rows = connection.execute(known, stored).fetchall()
            connection.execute("COMMIT")
            return int(rows[0][0])

    # -- connections --------------------------------------------------------------------------

    @contextmanager
    def _lent(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection; one that failed is not used again."""
        if not self._room.acquire(timeout=self._patience):
            raise TimedOutError("all connections to the database of the journal are in use")
        try:
            if self._closed:
                raise StateFailedError("the journal is closed")
            with self._guard:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self._connect()
            try:
                yield connection
            finally:
                idle = connection.info.transaction_status == pq.TransactionStatus.IDLE
                with self._guard:
                    keep = idle and not self._closed
                    if keep:
                        self._idle.append(connection)
                if not keep:
                    connection.close()
        finally:
            self._room.release()

    def _connect(self) -> psycopg.Connection[Any]:
        """A new connection; none to a standby, which may not have yet what was written last."""
        limit = max(2 * self._patience, 1.0)
        connection = open_connection(self._url, self._password, limit=limit)
        if connection.info.parameter_status("in_hot_standby") == "on":
            connection.close()
            raise _LostError(only_reads())
        self._password = connection.info.password
        return connection

    def _set_up(
        self, connection: psycopg.Connection[Any], begin: str, *, durable: bool = True
    ) -> None:
        connection.execute(cast("Any", begin))
        limit = str(int(self._patience * 1_000))
        connection.execute(
            _HEAD,
            {
                "path": f'"{self._schema}"',
                "workspace": self._workspace,
                "holder": self.holder,
                "limit": limit,
                "idle": str(int(self._patience * 2_000)),
                "synchronous": "on" if durable else "off",
            },
        )

    def _again(self, attempt: Callable[[], _Answer]) -> _Answer:
        """Try until it works, or fails for good, or takes too long."""
        end = time.monotonic() + self._patience
        nap = 0.005
        while True:
            try:
                return attempt()
            except _LostError as lost:
                error: FilepactError = lost.error
            except psycopg.Error as found:
                if not is_passing(found):
                    raise told(found) from found
                error = told(found)
                self._forget()
            if time.monotonic() + nap > end:
                raise error from None
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    def _forget(self) -> None:
        """Close the connections that lie idle: what broke one has broken them all."""
        with self._guard:
            gone, self._idle = self._idle, []
        for one in gone:
            one.close()

    # -- transactions -------------------------------------------------------------------------

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """As `filepact.store.transaction.Database`."""

        def attempt() -> _Answer:
            with self._lent() as connection, _ended(connection), connection.pipeline():
                self._set_up(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                answer = work(PostgresTransaction(connection))
                connection.execute("COMMIT")
            return answer

        return self._again(attempt)

    def write(
        self,
        work: Callable[[Transaction], _Answer],
        *,
        durable: bool,
        together: Any = None,
        given: Any = None,
    ) -> _Answer:
        """As `filepact.store.transaction.Database`.

        Args:
            work: As there.
            durable: As there.
            together: Does many of the same kind at once; for each it answers as ``work`` would,
                with an exception, or with `ALONE`.
            given: What it needs for this one.
        """
        unit = _Unit(work, durable, together, given)
        try:
            with self._guard:
                self.waiting += 1
                self._waiting.append(unit)
                unit.leads, self._led = not self._led, True
            if not unit.leads:
                unit.told.wait()
            if unit.leads:
                self._lead()
        except BaseException:
            self._withdraw(unit)
            raise
        finally:
            with self._guard:
                self.waiting -= 1
        if unit.error is not None:
            raise unit.error
        return cast("_Answer", unit.answer)

    def _lead(self) -> None:
        """Do what waits, one's own first, and have the next that waits go on."""
        if self._crowd > 1:
            # Those who have just been answered come again at once; one message for all is cheaper.
            end = time.monotonic() + _GATHERING
            while len(self._waiting) < self._crowd and time.monotonic() < end:
                time.sleep(_GATHERING / 4)
        with self._guard:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
        self._crowd = len(batch)
        try:
            self._do(batch)
        finally:
            with self._guard:
                self._hand_on()
            for unit in batch:
                unit.told.set()

    def _hand_on(self) -> None:
        """Have the first that waits lead, if any does."""
        self._led = bool(self._waiting)
        if self._led:
            self._waiting[0].leads = True
            self._waiting[0].told.set()

    def _withdraw(self, unit: _Unit) -> None:
        """Take back what its thread does not wait for any more, if nobody has begun with it."""
        with self._guard:
            if unit in self._waiting:
                self._waiting.remove(unit)
                if unit.leads:
                    self._hand_on()

    def _do(self, batch: list[_Unit]) -> None:
        """Do what waits in one transaction, and give everyone an answer or an error."""
        try:
            self._again(lambda: self._attempt(batch))
        except FilepactError as error:
            if len(batch) > 1 and type(error) in (StateFailedError, StoreFullError):
                # One that the database does not take must not stop the others.
                self._do_each(batch)
                return
            for unit in batch:
                # Each thread raises one of its own.
                unit.error = unit.error or type(error)(
                    error.message, hint=error.hint, **error.details
                )
        except BaseException as error:
            for unit in batch:
                unit.error = unit.error or error
            if not isinstance(error, Exception):
                raise

    def _do_each(self, batch: list[_Unit]) -> None:
        """Do one after the other; what is left when this thread is stopped fails for that."""
        for at, unit in enumerate(batch):
            try:
                self._do([unit])
            except BaseException as stopped:
                for other in batch[at + 1 :]:
                    other.error = stopped
                raise

    def _attempt(self, batch: list[_Unit]) -> None:
        for unit in batch:
            unit.answer, unit.error = None, None
        committing = renews = False
        self._attempts = number = self._attempts + 1
        token, now = 0, time.monotonic()
        try:
            with self._lent() as connection, _ended(connection), connection.pipeline() as line:
                durable = any(unit.durable for unit in batch)
                self._set_up(connection, "BEGIN", durable=durable)
                held = connection.execute(_HOLD)
                renews = not self.token or time.monotonic() - self._renewed > self._lease / 3
                if renews:
                    leased = connection.execute(_RENEWED, (self.holder, self._lease))
                else:
                    leased = connection.execute(_LEASED, (self.holder,))
                rows = held.fetchall()
                if not rows:
                    raise StateFailedError("the workspace is no longer in the database")
                connection.execute(_TRY, (self._process, number))
                token = self._check_lease(leased.fetchall())
                self._work(PostgresTransaction(connection), batch)
                if all(unit.error for unit in batch):
                    connection.execute("ROLLBACK")
                    return
                committing = True
                commit(connection, line)
        except psycopg.Error as error:
            if committing and is_passing(error):
                self._find_out(number)
            else:
                raise
        self.token = token
        self._renewed = now if renews else self._renewed

    def _check_lease(self, rows: list[tuple[Any, ...]]) -> int:
        """The token of the holder; not where another one has taken over what it had begun."""
        token = int(rows[0][0]) if rows else 0
        if self.token not in (0, token):
            self.token = 0
            raise StoreFencedError(
                "another gateway took over what this one had begun, because this one was silent",
                hint="Nothing was changed. Try again: the other gateway settles what was begun before.",
            )
        return token

    def _work(self, tx: PostgresTransaction, batch: list[_Unit]) -> None:
        alone = batch
        if len(batch) > 1:
            alone = self._work_together(tx, batch)
        for unit in alone:
            if len(batch) > 1:
                tx.ask("SAVEPOINT one")
            try:
                unit.answer = unit.work(tx)
            except (FilepactError, ValueError) as error:
                unit.error = error
                if len(batch) > 1:
                    tx.ask("ROLLBACK TO SAVEPOINT one")
            else:
                if len(batch) > 1:
                    tx.ask("RELEASE SAVEPOINT one")

    def _work_together(self, tx: PostgresTransaction, batch: list[_Unit]) -> list[_Unit]:
        """Do those of a kind at once; the others."""
        alone: list[_Unit] = []
        kinds: dict[Any, list[_Unit]] = {}
        for unit in batch:
            if unit.together is None:
                alone.append(unit)
            else:
                kinds.setdefault(unit.together, []).append(unit)
        for together, units in kinds.items():
            answers = together(tx, [unit.given for unit in units])
            for unit, answer in zip(units, answers, strict=True):
                if answer is ALONE:
                    alone.append(unit)
                elif isinstance(answer, Exception):
                    unit.error = answer
                else:
                    unit.answer = answer
        return alone

    def _find_out(self, number: int) -> None:
        """Whether a transaction was committed whose end was not heard.

        Its number among those of this process says so, and not the server's own: after a crash that
        may be given to another one.

        Raises:
            _LostError: It was not; it may be tried again.
            StoreUnsureError: That cannot be told.
        """

        def ask() -> bool:
            with self._lent() as connection, _ended(connection), connection.pipeline() as line:
                self._set_up(connection, "BEGIN")
                # Whoever holds this may be that transaction itself, which is ended then.
                connection.execute(_WAIT)
                rows = connection.execute(_TOLD, (self._process,)).fetchall()
                # The lock is a change as well: a standby that has it has that transaction too.
                commit(connection, line)
            return bool(rows) and rows[0][0] == number

        self._forget()
        try:
            committed = self._again(ask)
        except FilepactError as error:
            raise _unsure() from error
        if not committed:
            raise _LostError(
                StoreUnreachableError("the database of the journal did not commit a change")
            )

    # -- the rest -----------------------------------------------------------------------------

    def version(self) -> object:
        """As `filepact.store.transaction.Database`."""
        query = "SELECT version FROM workspace WHERE number = ?"
        return self.read(lambda tx: tx.value(query, (int(self._workspace),)))

    def size(self) -> int:
        """Bytes of the contents of this workspace; rows are not counted."""
        stored = "SELECT coalesce(sum(stored), 0) FROM content"
        return int(self.read(lambda tx: tx.value(stored)))

    def shrink(self) -> None:
        """The server does this by itself."""

    def maintain(self, work: Callable[[psycopg.Connection[Any]], _Answer]) -> _Answer:
        """Do something to the tables of all workspaces."""

        def attempt() -> _Answer:
            with self._lent() as connection, _ended(connection):
                self._set_up(connection, "BEGIN")
                answer = work(connection)
                connection.execute("COMMIT")
            return answer

        return self._again(attempt)

    def close(self) -> None:
        """As `filepact.store.transaction.Database`."""
        self._closed = True
        self._forget()


def migrate_database(url: str, schema: str = "filepact", *, width: Width = "month") -> list[int]:
    """Bring the tables of a database to the newest version; the steps that were done.

    Raises:
        StoreSchemaError: They are of a newer filepact.
        StoreUnreachableError: The server does not answer.
    """
    try:
        with open_connection(url) as connection, connection.transaction():
            return migrate(connection, schema, width=width)
    except psycopg.Error as error:
        raise told(error) from error


@contextmanager
def _ended(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Leave no transaction open, whatever happens inside."""
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            connection.rollback()
        raise


def _unsure() -> StoreUnsureError:
    return StoreUnsureError(
        "the connection broke while a change was being recorded; whether it was recorded is unknown",
        hint="When the server is up, look with `filepact log` before you do it again.",
    )

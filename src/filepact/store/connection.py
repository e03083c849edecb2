"""One SQLite file that threads and processes share: transactions, waiting, and errors."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from filepact.errors import StateFailedError, TimedOutError
from filepact.store.content import sync
from filepact.store.schema import MIGRATIONS, check, migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact.store.transaction import FileSync

_Answer = TypeVar("_Answer")

__all__ = ["IN_USE", "Database", "Transaction", "open_to_read", "unfit", "use_log"]

_PATIENCE = 10.0
_LONGEST_NAP = 0.02
_PAGES = 2_000
_DAMAGED = (
    "`filepact doctor --journal` says what is damaged, `filepact doctor --repair` keeps the rest."
)
_FIRST_PAGE = 512
_LOG_BEGINS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
# Bytes that SQLite locks: of the file while anybody has it open, of its shared memory to write.
# See "File Locking" in its os.h and "WAL-Index Locks" in its documentation of the file format.
IN_USE = (0x4000_0002, 510)
"""The first of these bytes of the file, and their number."""
_WRITE = (120, 1)


class Transaction:
    """The queries and changes inside a transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        """Run a statement that answers nothing."""
        self._connection.execute(query, values).fetchall()

    def many(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run it once for each row of values."""
        self._connection.executemany(query, rows)

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer."""
        return self._connection.execute(query, values).fetchall()

    def one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of the answer, if any."""
        rows = self._connection.execute(query, values).fetchall()
        return rows[0] if rows else None

    def among(self, query: str, wanted: Iterable[int | str], *values: Any) -> list[tuple[Any, ...]]:
        """Every row of the answer to a query about any number of values.

        Args:
            query: Names them as ``{wanted}``, where it could name a table of one column.
            wanted: The values.
            values: What ``?2`` and those after it stand for.
        """
        rows = query.replace("{wanted}", "(SELECT value FROM json_each(?1))")
        return self.all(rows, (json.dumps(list(wanted)), *values))

    def value(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; for queries that always answer."""
        return self._connection.execute(query, values).fetchall()[0][0]


class Database:
    """A connection that one thread uses at a time, inside `reading` or `writing`.

    Other processes have connections of their own.  SQLite's own way to wait favours whoever
    wrote last, so that some processes starve; here each waits short random times.

    Args:
        path: The file, made with mode 0600 when missing; its folder is there.  Where it cannot be
            written, it is only read.
        patience: How long to wait for other processes, in seconds.
        locked_by: Says which process holds a lock on some bytes of a file, by the file, the first
            byte and their number; empty when that is not known.
        disk: Puts a file on its disk while something else is done; closed with this.  None where nothing does.

    Raises:
        StateFailedError: It is no journal, or not of this version; it is left as it is.
        TimedOutError: Another process held it for too long.
    """

    def __init__(
        self,
        path: str,
        *,
        patience: float = _PATIENCE,
        locked_by: Callable[[str, int, int], str] = lambda _path, _first, _count: "",
        disk: FileSync | None = None,
    ) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._memory = f"{path}-shm"
        self._places = self._path, self._log, self._memory
        self._disk = disk
        self._patience = patience
        self._locked_by = locked_by
        self._waiting_since = 0.0
        self._turn = Lock()
        self._syncing = Lock()
        self._commits = 0
        self._synced = -1  # the folder is synchronised with the first
        self._unsynced: OSError | None = None
        self._log_handle: int | None = None
        with self._told():
            self._refuse_cut()
            before = _identities(self._statuses())[0]
            self._connection = apsw.Connection(path)
            try:
                self.read_only = self._connection.readonly("main")
                if self.read_only:
                    self._open_to_read()
                else:
                    self._prepare()
                self._tx = Transaction(self._connection)
                self._files = _identities(self._statuses())
                self._check_opened(before)
                if self._files[1] is not None:
                    self._log_handle = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
            except BaseException:
                self._connection.close()
                raise

    def _refuse_cut(self) -> None:
        """Refuse a file that does not fit its log.

        Raises:
            StateFailedError: One of them was emptied or overwritten.
        """
        if unfit(self._path):
            raise _cut()

    def _check_opened(self, before: tuple[int, int] | None) -> None:
        """Refuse a file that took the place of the one that was opened."""
        if before not in (None, self._files[0]):
            raise _taken_away()

    def _open_to_read(self) -> None:
        """Open the file again where nothing can be written, not even what readers share."""
        self._connection.close()
        self._connection = open_to_read(self._path, shared=False)
        self._connection.set_busy_handler(self._wait)
        if check(self._connection) < len(MIGRATIONS):
            raise StateFailedError(
                "the journal is of an earlier version and cannot be written here",
                hint="Make the state folder writable, or name a copy of it with --state.",
            )

    def _prepare(self) -> None:
        connection = self._connection
        connection.set_busy_handler(self._wait)
        if os.stat(self._path).st_size == 1:
            raise apsw.NotADBError("SQLite would take it for empty and write over it")
        version = check(connection)
        # By path, because closing a descriptor of its own would drop the locks that SQLite
        # holds on the file in this process.  The log beside it gets the mode of the file.
        if os.stat(self._path).st_mode & 0o077:
            os.chmod(self._path, 0o600)
        _protect(connection)
        # Commits are written, and those that have to be durable are synchronised by `_sync`, many at a time.
        connection.pragma("synchronous", "normal")
        connection.pragma("foreign_keys", True)
        connection.pragma("temp_store", "memory")
        if version == 0:
            # Only an empty file can take this on; without it pruning would not free the disk.
            connection.pragma("auto_vacuum", "incremental")
        mode = use_log(connection, self._patience)
        if mode != "wal":
            raise StateFailedError(
                f"the journal cannot be shared here (journal mode {mode})",
                hint="Put the state folder on a local disk.",
            )
        migrate(connection)

    def _wait(self, before: int) -> bool:
        """Called by SQLite whenever somebody else holds what it needs."""
        now = time.monotonic()
        if before == 0:
            self._waiting_since = now
        if now - self._waiting_since > self._patience:
            return False
        time.sleep(_nap(0.0002, min(_LONGEST_NAP, 0.001 * (before + 1))))
        return True

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One unchanging view of the journal for several queries, as `read`."""
        with self._turn:
            try:
                yield self._begin("BEGIN")
            except BaseException as error:
                self._end(error)
                raise
            self._end()

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator[Transaction]:
        """A transaction that is committed at the end, or rolled back by any exception; as `write`."""
        with self._turn:
            try:
                yield self._begin("BEGIN IMMEDIATE", durable=durable)
            except BaseException as error:
                self._end(error)
                raise
            self._end()
            self._commits += 1
        if durable:
            self._sync()

    def _sync(self, meanwhile: Callable[[], None] | None = None) -> None:
        """Put all that was committed so far on the disk, and do something else until it is there.

        Others may commit meanwhile: who waits here for its turn mostly finds that it was synchronised with
        another's commit.
        """
        own = self._commits
        if meanwhile is not None and self._syncing.locked():
            meanwhile()
            meanwhile = None
        with self._syncing:
            if self._synced >= own:
                if meanwhile is not None:
                    meanwhile()
                return
            if self._unsynced is not None:
                raise _not_synced(self._unsynced)
            if self._log_handle is None:
                raise StateFailedError("the journal is closed")
            upto = self._commits
            try:
                self._put_on_disk(self._log_handle, meanwhile)
                if self._synced < 0:
                    sync(os.path.dirname(self._path) or ".")
            except OSError as error:
                self._unsynced = error
                raise self._failure(error) from error
            self._synced = upto

    def _put_on_disk(self, descriptor: int, meanwhile: Callable[[], None] | None) -> None:
        if meanwhile is not None:
            # Who ends after one change would wait for the end of this, some 30 ms, longer than it gains.
            if self._disk is not None and self._synced >= 0 and self._disk.begin(descriptor):
                try:
                    meanwhile()
                finally:
                    self._disk.wait()
                return
            meanwhile()
        if self._disk is not None:
            self._disk.now(descriptor)
        else:
            os.fsync(descriptor)

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """As `filepact.store.transaction.Database`."""
        with self.reading() as tx:
            return work(tx)

    def write(
        self,
        work: Callable[[Transaction], _Answer],
        *,
        durable: bool,
        meanwhile: Callable[[], None] | None = None,
    ) -> _Answer:
        """As `filepact.store.transaction.Database`; ``meanwhile`` is done once while the disk is waited for, and raises nothing."""
        # As `writing`, without what a generator costs: every change of a file comes here twice.
        with self._turn:
            try:
                answer = work(self._begin("BEGIN IMMEDIATE", durable=durable))
            except BaseException as error:
                self._end(error)
                raise
            self._end()
            self._commits += 1
        if durable:
            self._sync(meanwhile)
        return answer

    def _begin(self, how: str, *, durable: bool = False) -> Transaction:
        if how != "BEGIN":
            if self.read_only:
                raise StateFailedError(
                    "the state folder can only be read, so nothing can be changed",
                    hint="Make it writable, or choose another with --state or FILEPACT_STATE_DIR.",
                )
            if durable and self._unsynced is not None:
                raise _not_synced(self._unsynced)
        self._connection.execute(how)
        if how != "BEGIN":
            self._check_place()
        return self._tx

    def _end(self, error: BaseException | None = None) -> None:
        """Commit what was begun, or take it back because of an error.

        Raises:
            StateFailedError: It cannot be committed, or the error is one of the database.
            TimedOutError: The same.
        """
        try:
            try:
                if error is None:
                    self._connection.execute("COMMIT")
            finally:
                # Some failures, such as a full disk, have rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except (apsw.Error, OSError) as failed:
            raise self._failure(failed) from failed
        if isinstance(error, apsw.Error | OSError):
            raise self._failure(error) from error

    def _check_place(self) -> None:
        """Refuse to write where the journal's files were removed, replaced or overwritten.

        SQLite keeps its files open and goes on in them after they were removed or replaced.

        Raises:
            StateFailedError: They were.
        """
        # Mostly all is as it was, which is told at once; else what is wrong has to be found out.
        with suppress(FileNotFoundError):
            file, log, memory = map(os.stat, self._places)
            same = (
                (file.st_dev, file.st_ino),
                (log.st_dev, log.st_ino),
                (memory.st_dev, memory.st_ino),
            ) == self._files and file.st_size >= _FIRST_PAGE
            if same and self._log_handle is not None:
                begins = os.pread(self._log_handle, 4, 0)
                if not begins or begins in _LOG_BEGINS:
                    return
        found = self._statuses()
        if _identities(found) != self._files:
            raise _taken_away()
        if found[0] is None or found[0][2] < _FIRST_PAGE:
            raise _cut()
        if self._log_is_overwritten():
            raise StateFailedError(
                "the journal's write-ahead log was overwritten by another program",
                hint=f"Nothing was changed. End this program, then: {_DAMAGED}",
            )

    def _log_is_overwritten(self) -> bool:
        """Whether the log no longer begins as a write-ahead log does.

        SQLite looks at this only when it opens the log, and would then forget all in it.
        """
        begins = b"" if self._log_handle is None else os.pread(self._log_handle, 4, 0)
        return bool(begins) and begins not in _LOG_BEGINS

    def _statuses(self) -> list[tuple[int, int, int] | None]:
        """Device, inode and size of the file, its log and its shared memory; None for what is gone."""
        found: list[tuple[int, int, int] | None] = []
        for path in self._places:
            try:
                status = os.stat(path)
                found.append((status.st_dev, status.st_ino, status.st_size))
            except FileNotFoundError:
                found.append(None)
        return found

    def shorten_log(self) -> None:
        """Put the write-ahead log into the file and cut it, unless somebody is reading."""
        with self._turn, self._told():
            self._check_place()
            self._connection.set_busy_handler(None)
            try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError:
                return  # It only takes longer to become small.
            finally:
                self._connection.set_busy_handler(self._wait)

    def shrink(self) -> None:
        """Give free pages back to the disk."""
        before, free = -1, 0
        while free != before:
            with self.writing(durable=False) as tx:
                before = tx.value("PRAGMA freelist_count")
                tx.run(f"PRAGMA incremental_vacuum({_PAGES})")
                free = tx.value("PRAGMA freelist_count")
        self.shorten_log()

    def version(self) -> tuple[int, int]:
        """A value that differs when any connection, this one included, has committed since."""
        with self.reading() as tx:
            found = tx.one("PRAGMA data_version")
        return (found[0] if found else 0), self._connection.total_changes()

    def size(self) -> int:
        """Bytes of the file and of the write-ahead log beside it."""
        return sum(
            os.path.getsize(file) for file in (self._path, self._log) if os.path.exists(file)
        )

    def close(self) -> None:
        with self._turn, self._told():
            if self._log_handle is not None and (
                _identities(self._statuses()) != self._files or self._log_is_overwritten()
            ):
                # It would put its log into a file that others may have made anew, and remove
                # theirs; or put into the file what somebody wrote into the log.
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._connection.close()
            if self._log_handle is not None:
                os.close(self._log_handle)
                self._log_handle = None
            if self._disk is not None:
                self._disk.close()

    def _holder(self) -> str:
        """Who writes to the journal, else who has it open, as far as the system tells."""
        for file, (first, count) in ((self._memory, _WRITE), (self._path, IN_USE)):
            holder = self._locked_by(file, first, count)
            if holder:
                return holder
        return "another process"

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into ours, without host paths."""
        try:
            yield
        except (apsw.Error, OSError) as error:
            raise self._failure(error) from error

    def _failure(self, error: apsw.Error | OSError) -> StateFailedError | TimedOutError:
        """The error for one of SQLite or of the system."""
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return TimedOutError(
                f"{self._holder()} kept the journal busy for {self._patience:g} s",
                hint="Try again; if this repeats, look at what that process does.",
            )
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            return StateFailedError(
                f"the journal's file {os.path.basename(self._path)} is damaged, or is not a journal",
                hint=_DAMAGED,
            )
        if isinstance(error, apsw.FullError):
            return StateFailedError(
                "the disk with the state folder is full", hint="Make room and try again."
            )
        if isinstance(error, apsw.ConnectionClosedError):
            return StateFailedError("the journal is closed")
        if isinstance(error, apsw.Error):
            return StateFailedError(
                f"the journal cannot be used ({type(error).__name__})",
                hint="Check that the state folder exists, is writable and is on a local disk.",
            )
        return StateFailedError(
            f"the state folder cannot be used ({error.strerror})",
            hint="Check that the state folder exists, is writable and is on a local disk.",
        )


def _identities(found: Sequence[tuple[int, int, int] | None]) -> tuple[tuple[int, int] | None, ...]:
    """Device and inode of files; None for those that are gone.

    Two processes with different shared memory would write over each other.
    """
    return tuple(None if one is None else one[:2] for one in found)


def unfit(path: str) -> bool:
    """Whether a journal's file or its log was emptied or overwritten, while the log has something.

    SQLite would take an emptied file for new and remove the log, and forget a log that begins
    with something else; either may hold everything.
    """
    log = f"{path}-wal"
    if not os.path.exists(path) or not os.path.exists(log) or os.path.getsize(log) == 0:
        return False
    with open(log, "rb") as file:
        begins = file.read(4)
    return os.path.getsize(path) < _FIRST_PAGE or begins not in _LOG_BEGINS


def open_to_read(path: str, *, shared: bool = True) -> apsw.Connection:
    """A connection that changes nothing in a journal.

    Args:
        path: Its file.
        shared: Whether it can be written here, by other processes too.

    Raises:
        StateFailedError: It is another program's, or of a newer filepact; or its log cannot be
            read, because its index cannot be written here.
    """
    from urllib.parse import quote  # noqa: PLC0415 - few journals are only read

    log = f"{path}-wal"
    # Without a log there is nothing to be shared, and nobody who could write.
    still = "" if shared or (os.path.exists(log) and os.path.getsize(log)) else "&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(
        f"file://{quote(os.fsencode(os.path.join(os.getcwd(), path)))}?mode=ro{still}", flags=flags
    )
    try:
        connection.set_busy_timeout(int(_PATIENCE * 1_000))
        _protect(connection)
        check(connection)
    except apsw.CantOpenError as error:
        connection.close()
        raise StateFailedError(
            "the journal's write-ahead log cannot be read in a folder that cannot be written",
            hint="Make the state folder writable, or name a copy of it with --state.",
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _protect(connection: apsw.Connection) -> None:
    connection.pragma("mmap_size", 0)
    connection.pragma("trusted_schema", False)
    connection.pragma("cell_size_check", True)


def use_log(database: apsw.Connection, patience: float) -> str:
    """The journal mode after a switch to a write-ahead log; SQLite does not wait here when two processes do so.

    Args:
        database: The open file.
        patience: Seconds after which the refusal stands.

    Raises:
        apsw.BusyError: Others switch all that time.
    """
    since = time.monotonic()
    while True:
        try:
            return str(database.pragma("journal_mode", "wal"))
        except apsw.BusyError:
            if time.monotonic() - since > patience:
                raise
            time.sleep(_nap(0.001, _LONGEST_NAP))


def _nap(least: float, most: float) -> float:
    """Seconds between two, so that those who wait for the same do not wake together."""
    return least + (most - least) * int.from_bytes(os.urandom(4), "big") / 2**32


def _not_synced(error: OSError) -> StateFailedError:
    """The refusal of what has to be durable after the disk once failed.

    What could not be put on the disk then is not tried again by the system, and what comes after it in the
    log is lost with it in a power cut.
    """
    return StateFailedError(
        f"the journal could not be written to its disk ({error.strerror})",
        hint="Check the disk, then start this program again.",
    )


def _taken_away() -> StateFailedError:
    return StateFailedError(
        "the journal's files were removed or replaced while this program had them open",
        hint="Nothing was changed. Put them back, or start this program again.",
    )


def _cut() -> StateFailedError:
    return StateFailedError(
        "the journal's file was emptied, or its log with the latest changes was overwritten",
        hint="Nothing was changed. End all filepact processes, which restore what they can. "
        f"Then {_DAMAGED}",
    )

"""One SQLite file shared by threads and processes: transactions, waiting, and errors told."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from threading import Lock
from typing import TYPE_CHECKING, Any

import apsw

from filepact.errors import StateFailedError, TimedOutError
from filepact.store.schema import check, migrate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Database", "View"]

_PATIENCE = 10.0
_LONGEST_NAP = 0.02
_DAMAGED = (
    "Nothing was written to it. Move the state folder away to start anew, or restore the file."
)


class View:
    """Queries inside a transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        """Do something that answers nothing."""
        self._connection.execute(query, values).fetchall()

    def many(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Do the same once for each row of values."""
        self._connection.executemany(query, rows)

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer."""
        return self._connection.execute(query, values).fetchall()

    def one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of the answer, if any."""
        rows = self.all(query, values)
        return rows[0] if rows else None

    def value(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; for queries that always answer."""
        return self.all(query, values)[0][0]


class Database:
    """A connection that one thread uses at a time, inside `reading` or `writing`.

    Other processes have connections of their own.  SQLite's own way to wait favours whoever
    wrote last, so that some processes starve; here each waits short random times.

    Args:
        path: The file, made with mode 0600 when missing; its folder is there.
        patience: How long to wait for other processes, in seconds.

    Raises:
        StateFailedError: It is no journal, or not of this version; it is left as it is.
        TimedOutError: Another process held it for too long.
    """

    def __init__(self, path: str, *, patience: float = _PATIENCE) -> None:
        self._path = Path(path)
        self._log = self._path.with_name(f"{self._path.name}-wal")
        self._patience = patience
        self._random = SystemRandom()
        self._waiting_since = 0.0
        self._synchronous = ""
        self._lock = Lock()
        with self._told():
            self._connection = apsw.Connection(path)
            self._view = View(self._connection)
            try:
                self._prepare()
                self._files = self._identities()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        connection = self._connection
        connection.set_busy_handler(self._wait)
        if self._path.stat().st_size == 1:
            raise apsw.NotADBError("SQLite would take it for empty and write over it")
        version = check(connection)
        # By path, because closing a descriptor of its own would drop the locks that SQLite
        # holds on the file in this process.  The log beside it gets the mode of the file.
        if self._path.stat().st_mode & 0o077:
            self._path.chmod(0o600)
        connection.pragma("mmap_size", 0)
        connection.pragma("trusted_schema", False)
        connection.pragma("cell_size_check", True)
        connection.pragma("foreign_keys", True)
        connection.pragma("temp_store", "memory")
        if version == 0:
            # Only an empty file can take this on; without it pruning would not free the disk.
            connection.pragma("auto_vacuum", "incremental")
        self._use_log(time.monotonic())
        migrate(connection)

    def _use_log(self, since: float) -> None:
        """Switch to a write-ahead log; SQLite does not wait here when two processes do so."""
        mode = None
        while mode is None:
            try:
                mode = self._connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() - since > self._patience:
                    raise
                time.sleep(self._random.uniform(0.001, _LONGEST_NAP))
        if mode != "wal":
            raise StateFailedError(
                f"the journal cannot be shared here (journal mode {mode})",
                hint="Put the state folder on a local disk.",
            )

    def _wait(self, before: int) -> bool:
        """Called by SQLite whenever somebody else holds what it needs."""
        now = time.monotonic()
        if before == 0:
            self._waiting_since = now
        if now - self._waiting_since > self._patience:
            return False
        time.sleep(self._random.uniform(0.0002, min(_LONGEST_NAP, 0.001 * (before + 1))))
        return True

    @contextmanager
    def reading(self) -> Iterator[View]:
        """One unchanging view of the journal for several queries."""
        with self._lock, self._told(), self._transaction("BEGIN"):
            yield self._view

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator[View]:
        """A transaction that is committed at the end, or rolled back by any exception.

        Args:
            durable: Whether it is on the disk when the block is left, so that a power cut does
                not undo it; otherwise only a crash of this process does not.
        """
        with self._lock, self._told():
            wanted = "full" if durable else "normal"
            if wanted != self._synchronous:
                self._connection.pragma("synchronous", wanted)
                self._synchronous = wanted
            with self._transaction("BEGIN IMMEDIATE"):
                self._check_place()
                yield self._view

    def _check_place(self) -> None:
        """Refuse to write into files that nobody will find again.

        SQLite keeps its files open and goes on in them after they were removed or replaced.

        Raises:
            StateFailedError: They were.
        """
        if self._identities() != self._files:
            raise StateFailedError(
                "the journal's files were removed or replaced while this program had them open",
                hint="Nothing was changed. Put them back, or start this program again.",
            )

    def _identities(self) -> tuple[tuple[int, int] | None, ...]:
        """Device and inode of the file and of its write-ahead log; None for what is gone."""
        found: list[tuple[int, int] | None] = []
        for path in (self._path, self._log):
            try:
                status = path.stat()
            except FileNotFoundError:
                found.append(None)
            else:
                found.append((status.st_dev, status.st_ino))
        return tuple(found)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # Some failures, such as a full disk, have rolled back already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def shorten_log(self) -> None:
        """Put the write-ahead log into the file and cut it, unless somebody is reading."""
        with self._lock, self._told():
            self._connection.set_busy_handler(None)
            try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError:
                return  # It only takes longer to become small.
            finally:
                self._connection.set_busy_handler(self._wait)

    def size(self) -> int:
        """Bytes of the file and of the write-ahead log beside it."""
        return sum(file.stat().st_size for file in (self._path, self._log) if file.exists())

    def close(self) -> None:
        with self._lock, self._told():
            self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite and of the system as ours, without host paths."""
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as error:
            raise TimedOutError(
                f"other processes kept the journal busy for {self._patience:g} s",
                hint="Try again; if it stays so, see which filepact processes run.",
            ) from error
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise StateFailedError(
                f"the journal's file {self._path.name} is damaged or no journal",
                hint=_DAMAGED,
            ) from error
        except apsw.FullError as error:
            raise StateFailedError(
                "the disk with the state folder is full", hint="Make room and try again."
            ) from error
        except apsw.ConnectionClosedError as error:
            raise StateFailedError("the journal is closed") from error
        except apsw.Error as error:
            raise StateFailedError(
                f"the journal cannot be used ({type(error).__name__})",
                hint="See that the state folder is there, writable and on a local disk.",
            ) from error
        except OSError as error:
            raise StateFailedError(
                f"the state folder cannot be used ({error.strerror})",
                hint="See that the state folder is there, writable and on a local disk.",
            ) from error

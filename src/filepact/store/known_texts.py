"""Texts that sessions know, kept between two processes of one conversation.

A file of its own beside the journal: nothing in it has to survive a power cut, it is written all
the time, and it is thrown away when it is damaged.
"""

from __future__ import annotations

import json
import os
import time
from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw

from filepact.domain.document import KnownTextRecord, Revision, WorkspacePath
from filepact.store.connection import use_log
from filepact.store.content import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.domain.document import RootId

__all__ = ["KEPT", "SqliteKnownTexts"]

KEPT: Final = 86_400.0
"""Seconds for which it is kept: who goes on with a conversation mostly does so within a day."""

_LIMIT: Final = 32 * 1024 * 1024
_VERSION: Final = 1
_UNPACKED: Final = 256  # texts that are not unpacked again
_SMALL: Final = 16_384  # most bytes of such a text
_PATIENCE: Final = 2_000  # milliseconds that another process is waited for
_TABLE: Final = f"""
CREATE TABLE known (
    conversation TEXT NOT NULL,
    root BLOB NOT NULL,
    path BLOB NOT NULL,
    at REAL NOT NULL,
    revision TEXT NOT NULL,
    mode INTEGER NOT NULL,
    read INTEGER NOT NULL,
    shown TEXT,
    size INTEGER NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (conversation, root, path)
) STRICT;
CREATE INDEX known_at ON known (at);
PRAGMA user_version = {_VERSION};
"""


class _Open(NamedTuple):
    """A connection, and the device and inode of its file."""

    database: apsw.Connection
    file: tuple[int, int]


class SqliteKnownTexts:
    """The texts by conversation and file; a failure of any kind only means that nothing is known.

    Args:
        path: The file; made when the first text is kept, with mode 0600.
        kept: Seconds for which a text is kept.
        limit: Most bytes of packed texts.
    """

    def __init__(self, path: str, *, kept: float = KEPT, limit: int = _LIMIT) -> None:
        self._path = path
        self._kept = kept
        self._limit = limit
        # The last record of each file that was looked up, beside the row that it was made of.
        self._unpacked: OrderedDict[
            tuple[str, WorkspacePath], tuple[tuple[Any, ...], KnownTextRecord]
        ] = OrderedDict()
        self._reading: _Open | None = None
        self._writing: _Open | None = None
        # Who looks something up never waits for who writes.
        self._reading_lock, self._writing_lock = Lock(), Lock()

    def get(self, conversation: str, path: WorkspacePath) -> KnownTextRecord | None:
        """The stored text of a file, unless it is too old."""
        with self._reading_lock, suppress(apsw.Error, ValueError, OSError):
            if (file := _identity(self._path)) is None:
                return None
            self._reading = self._opened(self._reading, file)
            row: tuple[Any, ...] | None = self._reading.database.execute(
                "SELECT revision, mode, read, shown, size, text FROM known"
                " WHERE conversation = ? AND root = ? AND path = ? AND at > ?",
                (conversation, *_names(path), time.time() - self._kept),
            ).get
            if row is not None:
                return self._record((conversation, path), row)
        return None

    def _record(self, key: tuple[str, WorkspacePath], row: tuple[Any, ...]) -> KnownTextRecord:
        """The record of a row; equal rows share one record, since most are looked up again and again."""
        before = self._unpacked.get(key)
        if before is not None and before[0] == row:
            return before[1]
        revision, mode, read, shown, size, packed = row
        text = unpack(packed, size).decode("utf-8", "surrogatepass")
        spans = None if shown is None else tuple((a, b) for a, b in json.loads(shown))
        record = KnownTextRecord(text, Revision(revision, mode), spans, bool(read))
        if size <= _SMALL:
            self._unpacked[key] = row, record
            self._unpacked.move_to_end(key)
        if len(self._unpacked) > _UNPACKED:
            self._unpacked.popitem(last=False)
        return record

    def paths(self, conversation: str, root: RootId) -> frozenset[WorkspacePath]:
        """The files of a root of which a text is stored that is not too old."""
        with self._reading_lock, suppress(apsw.Error, ValueError, OSError):
            if (file := _identity(self._path)) is None:
                return frozenset()
            self._reading = self._opened(self._reading, file)
            rows: list[tuple[Any, ...]] = self._reading.database.execute(
                "SELECT path FROM known WHERE conversation = ? AND root = ? AND at > ?",
                (conversation, _bytes(root), time.time() - self._kept),
            ).fetchall()
            names = (path.decode("utf-8", "surrogateescape") for (path,) in rows)
            return frozenset(WorkspacePath(root, name) for name in names)
        return frozenset()

    def put(self, known: Mapping[tuple[str, WorkspacePath], KnownTextRecord | None]) -> None:
        """Keep what is known of files by conversation; None forgets it."""
        with self._writing_lock:
            try:
                self._put(known)
            except (apsw.CorruptError, apsw.NotADBError):
                self._throw_away()
            except (apsw.Error, OSError, ValueError):
                return

    def _put(self, known: Mapping[tuple[str, WorkspacePath], KnownTextRecord | None]) -> None:
        self._writing = self._opened(self._writing, _identity(self._path))
        database, now = self._writing.database, time.time()
        with database:
            for (conversation, path), one in known.items():
                key = (conversation, *_names(path))
                if one is None:
                    database.execute(
                        "DELETE FROM known WHERE conversation = ? AND root = ? AND path = ?", key
                    )
                    continue
                data = one.text.encode("utf-8", "surrogatepass")
                shown = None if one.shown is None else json.dumps(one.shown)
                state = (one.revision.content, one.revision.mode, int(one.read))
                database.execute(
                    "INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*key, now, *state, shown, len(data), pack(data)),
                )
            database.execute("DELETE FROM known WHERE at <= ?", (now - self._kept,))
            self._make_room(database)

    def _make_room(self, database: apsw.Connection) -> None:
        """Give up the oldest while all of it is too much."""
        excess = database.execute("SELECT coalesce(sum(length(text)), 0) FROM known").get
        excess -= self._limit
        while excess > 0:
            rowid, size = database.execute(
                "SELECT rowid, length(text) FROM known ORDER BY at LIMIT 1"
            ).fetchall()[0]
            database.execute("DELETE FROM known WHERE rowid = ?", (rowid,))
            excess -= size

    def _opened(self, before: _Open | None, there: tuple[int, int] | None) -> _Open:
        """The file that is there now: SQLite would go on in one that was removed or replaced."""
        if before is not None:
            if there == before.file:
                return before
            before.database.close()
        os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        file = _identity(self._path) or (0, 0)
        database = apsw.Connection(self._path)
        database.set_busy_timeout(_PATIENCE)
        use_log(database, _PATIENCE / 1_000)
        # What a power cut takes is only knowledge; the file stays whole.
        database.pragma("synchronous", "normal")
        with database:
            version = database.pragma("user_version")
            if version != _VERSION:
                database.execute("DROP TABLE IF EXISTS known")
                database.execute(_TABLE)
        return _Open(database, file)

    def _throw_away(self) -> None:
        self._let_go()
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(self._path + end)

    def _let_go(self) -> None:
        for opened in (self._reading, self._writing):
            if opened is not None:
                with suppress(apsw.Error):
                    opened.database.close()
        self._reading = self._writing = None

    def close(self) -> None:
        """Close the file; it is opened again when it is used again."""
        with self._writing_lock, self._reading_lock:
            self._let_go()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _names(path: WorkspacePath) -> tuple[bytes, bytes]:
    """The root and the path as bytes, since names need not be UTF-8."""
    return _bytes(path.root), _bytes(path.path)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")

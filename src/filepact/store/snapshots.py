"""Snapshots of roots, kept between two processes that observe them, with what their files held.

A file of its own beside the journal.  Nothing in it has to survive a power cut: an older state of it
is caught up with from the journal and the disk.  It is thrown away when it is damaged.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import apsw

from filepact.domain.document import (
    FOLDER,
    Revision,
    RootId,
    SnapshotFile,
    SnapshotRecord,
    WorkspacePath,
)
from filepact.store.connection import use_log
from filepact.store.states import to_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["SqliteSnapshots"]

_VERSION: Final = 3
_PATIENCE: Final = 2_000  # milliseconds that another process is waited for
_STAMP: Final = Struct("=QqqqI")
_TABLES: Final = f"""
CREATE TABLE file (
    root BLOB NOT NULL,
    path BLOB NOT NULL,
    stamp BLOB,
    content TEXT,
    mode INTEGER,
    held INTEGER NOT NULL,
    racy INTEGER NOT NULL,
    attributes BLOB,
    PRIMARY KEY (root, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_content ON file (content);
CREATE TABLE content (id TEXT PRIMARY KEY, packed BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE facts (number INTEGER PRIMARY KEY, facts TEXT NOT NULL) STRICT;
PRAGMA user_version = {_VERSION};
"""
_WITHOUT_ATTRIBUTES: Final = 2
_ADDED: Final = f"""
ALTER TABLE file ADD COLUMN attributes BLOB;
PRAGMA user_version = {_VERSION};
"""


class SqliteSnapshots:
    """The stored snapshot of some roots; a failure of any kind only means that there is none.

    Args:
        path: The file; made when something is stored, with mode 0600.

    Attributes:
        folder: Where it is.
        aside: Its name among those of other roots.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.folder, self.aside = str(self._path.parent), self._path.stem
        self._lock = Lock()
        self._database: apsw.Connection | None = None

    def load(self) -> SnapshotRecord | None:
        """The snapshot as it was saved last; None for none."""
        if not self._path.exists():
            return None
        with self._lock:
            try:
                return _read(self._opened())
            except (apsw.Error, OSError, ValueError, KeyError, TypeError):
                self._throw_away()
        return None

    def save(self, snapshot: SnapshotRecord, gone: tuple[WorkspacePath, ...]) -> bool:
        """Store what has changed of a snapshot, all of it or nothing.

        Args:
            snapshot: With the files that are to be stored anew, and everything else as it is now.
            gone: The files that are not to be known any more.

        Returns:
            Whether it is stored.
        """
        with self._lock:
            try:
                database = self._opened()
                with database:
                    _write(database, snapshot, gone)
            except (apsw.CorruptError, apsw.NotADBError):
                self._throw_away()
            except (apsw.Error, OSError, ValueError):
                return False
            else:
                return True
        return False

    def unwatched(self) -> int:
        """How many files of the roots are not looked at, when it was saved last; 0 where nobody knows."""
        if not self._path.exists():
            return 0
        with self._lock, suppress(apsw.Error, OSError, ValueError, TypeError):
            query = "SELECT json_extract(facts, '$.unwatched') FROM facts"
            rows: list[tuple[Any, ...]] = self._opened().execute(query).fetchall()
            return sum(int(found or 0) for (found,) in rows)
        return 0

    def inodes(self) -> dict[str, int]:
        """The inodes of the roots when it was saved last; none where nobody knows."""
        with self._lock, suppress(apsw.Error, OSError, ValueError, TypeError):
            query = "SELECT json_extract(facts, '$.inodes') FROM facts"
            rows: list[tuple[Any, ...]] = self._opened().execute(query).fetchall()
            return {root: int(one) for (found,) in rows for root, one in json.loads(found).items()}
        return {}

    def rename(self, path: str) -> bool:
        """Keep it under another path; whether it is there."""
        with self._lock, suppress(OSError):
            self._let_go()
            self._path.replace(path)
            return True
        return False

    def content(self, name: str) -> bytes | None:
        """The stored bytes of a content, compressed; None where they are not stored."""
        with self._lock, suppress(apsw.Error, OSError, ValueError):
            query = "SELECT packed FROM content WHERE id = ?"
            rows: list[tuple[Any, ...]] = self._opened().execute(query, (name,)).fetchall()
            for (packed,) in rows:
                return bytes(packed)
        return None

    def clear(self) -> None:
        """Forget the snapshot."""
        with self._lock:
            self._throw_away()

    def close(self) -> None:
        """Close the file; it is opened again when it is used again."""
        with self._lock:
            self._let_go()

    def _opened(self) -> apsw.Connection:
        if self._database is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._path.touch(mode=0o600)
            database = apsw.Connection(str(self._path))
            try:
                database.set_busy_timeout(_PATIENCE)
                use_log(database, _PATIENCE / 1_000)
                database.pragma("synchronous", "normal")
                with database:
                    version = database.pragma("user_version")
                    if version == _WITHOUT_ATTRIBUTES:
                        database.execute(_ADDED)
                    elif version != _VERSION:
                        for table in ("file", "content", "facts"):
                            database.execute(f"DROP TABLE IF EXISTS {table}")
                        database.execute(_TABLES)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database

    def _let_go(self) -> None:
        if self._database is not None:
            with suppress(apsw.Error):
                self._database.close()
        self._database = None

    def _throw_away(self) -> None:
        self._let_go()
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + end).unlink(missing_ok=True)


def _read(database: apsw.Connection) -> SnapshotRecord | None:
    found: list[tuple[Any, ...]] = database.execute("SELECT facts FROM facts").fetchall()
    for (text,) in found:
        facts: dict[str, Any] = json.loads(text)
        folders = {root: _folders(some) for root, some in facts["folders"].items()}
        rows = database.execute(
            "SELECT root, path, stamp, content, mode, held, racy, attributes FROM file"
        )
        return SnapshotRecord(
            facts["seq"],
            facts["inodes"],
            folders,
            # That of an earlier version does not say.
            hidden=facts.get("hidden", {}),
            ends=facts["ends"],
            looked=facts.get("looked", {}),
            unwatched=facts.get("unwatched", 0),
            files=list(_files(rows.fetchall())),
        )
    return None


def _folders(stored: Any) -> dict[str, Revision]:
    """The states of folders; earlier versions knew only their modes, or their names."""
    if not isinstance(stored, dict):
        return dict.fromkeys(stored, FOLDER)
    return {
        name: (Revision.folder(one) if one else FOLDER)
        if isinstance(one, int)
        else Revision.folder(one[0], to_attributes(json.dumps(one[1:]).encode()))
        for name, one in stored.items()
    }


def _of_folder(state: Revision) -> int | list[Any]:
    mode = state.mode & 0o7777
    if state.attributes is None:
        # More than permission bits, so that it is none of those that nobody knows.
        return mode or state.mode & ~FOLDER.mode
    return [mode, *json.loads(state.attributes.packed())]


def _files(rows: list[tuple[Any, ...]]) -> Iterator[tuple[WorkspacePath, SnapshotFile]]:
    for root, path, stamp, content, mode, held, racy, attributes in rows:
        yield (
            WorkspacePath(RootId(_text(root)), _text(path)),
            SnapshotFile(
                None if stamp is None else _STAMP.unpack(stamp),
                None if content is None else Revision(content, mode, to_attributes(attributes)),
                None,
                held,
                bool(racy),
            ),
        )


def _write(
    database: apsw.Connection, snapshot: SnapshotRecord, gone: tuple[WorkspacePath, ...]
) -> None:
    inodes: Mapping[RootId, int] = snapshot.inodes
    facts = {
        "seq": snapshot.seq,
        "inodes": dict(inodes),
        "folders": {
            root: {name: _of_folder(state) for name, state in some.items()}
            for root, some in snapshot.folders.items()
        },
        "hidden": {root: sorted(some) for root, some in snapshot.hidden.items()},
        "ends": dict(snapshot.ends),
        "looked": dict(snapshot.looked),
        "unwatched": snapshot.unwatched,
    }
    database.execute("INSERT OR REPLACE INTO facts VALUES (1, ?)", (json.dumps(facts),))
    files = list(snapshot.files)
    before = _contents(database, [*gone, *(path for path, _ in files)])
    for path in gone:
        database.execute("DELETE FROM file WHERE root = ? AND path = ?", _names(path))
    for path, file in files:
        revision = file.revision
        content, mode = (None, None) if revision is None else (revision.content, revision.mode)
        if file.packed is not None:
            row = (content, file.packed)
            database.execute("INSERT OR IGNORE INTO content VALUES (?, ?)", row)
        stamp = None if file.stamp is None else _STAMP.pack(*file.stamp)
        kept = None if revision is None else revision.attributes
        attributes = None if kept is None else kept.packed()
        state = (*_names(path), stamp, content, mode, file.held, int(file.racy), attributes)
        database.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?)", state)
    database.executemany(
        "DELETE FROM content WHERE id = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM file WHERE content = ?1 AND held)",
        [(one,) for one in before],
    )


def _contents(database: apsw.Connection, paths: list[WorkspacePath]) -> set[str]:
    """The contents of stored files, which may not be needed any more."""
    query: Callable[..., Any] = database.execute
    return {
        content
        for path in paths
        for (content,) in query(
            "SELECT content FROM file WHERE root = ? AND path = ? AND held", _names(path)
        ).fetchall()
    }


def _names(path: WorkspacePath) -> tuple[bytes, bytes]:
    """The root and the path as bytes, since names need not be UTF-8."""
    return _bytes(path.root), _bytes(path.path)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")

"""What the processes of a gateway have in common: a secret, the sessions that ended, and answers to repeats.

A file of its own beside the journal.  A power cut may take its last rows; what was done stands in the
journal all the same, under the id that the request gives it.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import apsw

from filepact.errors import StateFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SqliteGatewayStore"]

_VERSION: Final = 1
_PATIENCE: Final = 5_000  # milliseconds that another process is waited for
_MOST: Final = 20_000  # answers that are kept
_TABLES: Final = f"""
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE ended (session TEXT PRIMARY KEY, until REAL NOT NULL) STRICT;
CREATE TABLE answer (
    request TEXT PRIMARY KEY,
    asked TEXT NOT NULL,
    at REAL NOT NULL,
    result TEXT
) STRICT;
CREATE INDEX answer_at ON answer (at);
PRAGMA user_version = {_VERSION};
"""


class SqliteGatewayStore:
    """The common facts of a gateway's processes; from any thread.

    Args:
        path: The file; made with mode 0600 where there is none.
        kept: Seconds for which answers are kept.

    Raises:
        StateFailedError: It cannot be used.
    """

    def __init__(self, path: str, *, kept: float = 86_400.0) -> None:
        self._lock = Lock()
        self._kept = kept
        self._claims = 0
        try:
            Path(path).touch(mode=0o600)
            self._database = apsw.Connection(path)
            self._database.set_busy_timeout(_PATIENCE)
            self._use_log()
            self._database.pragma("synchronous", "normal")
            self._make_tables()
        except (apsw.Error, OSError) as error:
            raise _failed(error) from None

    def _use_log(self) -> None:
        """Switch to a write-ahead log; SQLite does not wait here when two processes do so.

        As the journal's own way, which only the composition root may know.
        """
        until = time.monotonic() + _PATIENCE / 1_000
        while True:
            try:
                self._database.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.005)
            else:
                return

    def _make_tables(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")  # All workers may begin at the same moment.
        if self._database.pragma("user_version") != _VERSION:
            for table in ("secret", "ended", "answer"):
                self._database.execute(f"DROP TABLE IF EXISTS {table}")
            self._database.execute(_TABLES)
        self._database.execute("COMMIT")

    def _run(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                found: list[tuple[Any, ...]] = self._database.execute(query, values).fetchall()
                return found
        except apsw.Error as error:
            raise _failed(error) from None

    def secret(self, name: str, made: bytes) -> bytes:
        """The secret of this name: what was put there first, by whatever process."""
        self._run("INSERT OR IGNORE INTO secret VALUES (?, ?)", (name, made))
        ((value,),) = self._run("SELECT value FROM secret WHERE name = ?", (name,))
        return bytes(value)

    # -- sessions -----------------------------------------------------------------------------

    def now(self) -> float:
        """What time it is for all who know the sessions, seconds since the epoch."""
        return time.time()

    def end(self, session: str, until: float) -> float:
        """Have a session be unknown everywhere, up to a time after which nobody takes it anyway.

        Returns:
            For how many seconds others may still go by what they had heard before.
        """
        self._run("DELETE FROM ended WHERE until < ?", (self.now(),))
        self._run("INSERT OR REPLACE INTO ended VALUES (?, ?)", (session, until))
        return 0.0

    def up_to_date(self) -> bool:
        """Whether `has_ended` goes by what others have told by now."""
        return True

    def hear(self) -> None:
        """Have it go by that; may wait for a database."""

    def has_ended(self, session: str) -> bool:
        """Whether a session was ended, by whatever process."""
        return bool(self._run("SELECT 1 FROM ended WHERE session = ?", (session,)))

    # -- requests that are sent again ---------------------------------------------------------

    def claim(self, request: str, asked: str) -> tuple[str, Mapping[str, Any] | None] | None:
        """Note that a request is going to be carried out.

        Args:
            request: What it is known by.
            asked: What is asked for, in short: another request under the same name is none.

        Returns:
            None if nobody has before; else what was asked for then, and its answer if that is known.
        """
        now = time.time()
        self._claims += 1
        if self._claims % 100 == 1:
            self._run("DELETE FROM answer WHERE at < ?", (now - self._kept,))
            self._run(
                "DELETE FROM answer WHERE rowid IN"
                " (SELECT rowid FROM answer ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (_MOST,),
            )
        query = "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, NULL) RETURNING 1"
        if self._run(query, (request, asked, now)):
            return None
        return self.find(request) or self.claim(request, asked)

    def find(self, request: str) -> tuple[str, Any] | None:
        """What was asked for when a request was claimed, and its answer if that is known; None for neither."""
        found = self._run("SELECT asked, result FROM answer WHERE request = ?", (request,))
        return next(((str(one), result and json.loads(result)) for one, result in found), None)

    def keep(self, request: str, result: Mapping[str, Any]) -> None:
        """Keep the answer to a request that was claimed."""
        text = json.dumps(result, separators=(",", ":"))
        self._run("UPDATE answer SET result = ? WHERE request = ?", (text, request))

    def release(self, request: str, asked: str) -> None:
        """Have a request be as if it had never come, if no answer to it is kept."""
        query = "DELETE FROM answer WHERE request = ? AND asked = ? AND result IS NULL"
        self._run(query, (request, asked))

    def ready(self) -> bool:
        """Whether the file can be read."""
        try:
            self._run("SELECT 1", ())
        except StateFailedError:
            return False
        return True

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()


def _failed(error: Exception) -> StateFailedError:
    return StateFailedError(
        f"the gateway's own file in the state folder cannot be used ({type(error).__name__})",
        hint="Check that the folder is writable and its disk has room.",
    )

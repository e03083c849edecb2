"""Making a sound journal of what can be read of a damaged one, which is kept aside.

SQLite refuses a page that is damaged, and goes on with others: each table is read from its
beginning and from its end up to the damage, and in between row by row.  Every content is put
together and compared with its id; what names a row that is lost is given a stand-in.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from filepact.domain.figures import Salvaged
from filepact.errors import StateFailedError
from filepact.store.connection import Database, View
from filepact.store.content import Contents
from filepact.store.integrity import damaged_contents, unusable
from filepact.store.schema import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["salvage"]

# Tables by the column that leads to their rows, those first that others name.
_TABLES: Final = {
    "root": "number",
    "session": "number",
    "content": "number",
    "image": "number",
    "proposal": "number",
    "proposal_change": "owner",
    "operation": "seq",
    "operation_change": "owner",
    "operation_directory": "owner",
    "checkpoint": "root",
    "question": "number",
    "question_file": "owner",
    "conversation": "session",
}
# What a row may name: the column, the table, and a stand-in for a row that is lost.
_NAMED: Final = (
    ("session", ("proposal", "operation", "question", "conversation"), "session"),
    (
        "root",
        ("proposal_change", "operation_change", "operation_directory", "checkpoint", "question"),
        "root",
    ),
    ("before", ("proposal_change", "operation_change"), "content"),
    ("after", ("proposal_change", "operation_change"), "content"),
)
_STAND_INS: Final = {
    "session": "INSERT INTO session VALUES (?1, 'lost ' || ?1, 'agent', 'unknown', '')",
    "root": "INSERT INTO root VALUES (?1, CAST('/lost/' || ?1 AS BLOB))",
    "content": "INSERT INTO content (number, id, size, kept, base, depth, stored)"
    " VALUES (?1, ?2, 0, 'gone', NULL, 0, 0)",
}
_PARTS: Final = ("proposal_change", "operation_change", "operation_directory", "question_file")
_FARTHEST: Final = 200_000
_NOTE: Final = "; part of what it did was lost when the journal was damaged"
_LOG_HEAD, _FRAME_HEAD = struct.Struct(">IIIIIIII"), struct.Struct(">IIIIII")
_LOG_BEGINS: Final = (0x377F_0682, 0x377F_0683)
_LEAST: Final = 512
_BROKEN: Final = (apsw.CorruptError, apsw.IOError)


def salvage(path: str, tell: Callable[[str], None] = lambda _said: None) -> Salvaged:
    """Put a sound journal in the place of a damaged one; nobody else may have it open meanwhile.

    Args:
        path: Its file.
        tell: Is told what is being done.

    Raises:
        StateFailedError: It is another program's or of a newer filepact; it is left as it is.
    """
    place = Path(path)
    aside = place.with_name(f"damaged-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    aside.mkdir(mode=0o700)
    tell(f"copying the damaged journal to {aside.name}")
    for end in ("", "-wal"):
        if (file := place.with_name(place.name + end)).exists():
            _copy(file, aside / file.name)
    work, fresh = aside / "reading", place.with_name(f"{place.name}.new")
    work.mkdir(mode=0o700)
    try:
        rows = _read_all(aside, work / place.name, tell)
    finally:
        shutil.rmtree(work)
    for end in ("", "-wal", "-shm"):
        fresh.with_name(fresh.name + end).unlink(missing_ok=True)
    with closing(Database(str(fresh))) as database:
        lost = _write_all(database, rows)
        contents = Contents(place.parent / "contents")
        tell("comparing every content with its id")
        lost += _give_up_damaged(database, contents, aside, tell)
        with database.reading() as view:
            operations = view.value("SELECT count(*) FROM operation")
            kept = view.value("SELECT count(*) FROM content WHERE kept <> 'gone'")
            if view.all("PRAGMA foreign_key_check") or view.value("PRAGMA integrity_check") != "ok":
                raise StateFailedError(
                    "what could be read of the journal makes no sound one",
                    hint=f"The damaged one is as it was; a copy lies in {aside.name}.",
                )
    # The log goes first: SQLite would play it into the journal that comes into this place.
    for end in ("-shm", "-wal"):
        place.with_name(place.name + end).unlink(missing_ok=True)
    fresh.replace(place)
    _sync(place.parent)
    return Salvaged(str(aside), operations, kept, tuple(lost))


# -- reading ----------------------------------------------------------------------------------


class _Read:
    """The rows of the tables, by the columns that they have, and how many cannot be read."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {}
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.unread: Counter[str] = Counter()


def _read_all(aside: Path, work: Path, tell: Callable[[str], None]) -> _Read:
    """Read a copy, with the log as far as it fits: SQLite forgets a log that begins with damage."""
    read = _Read()
    base, log = aside / work.name, aside / f"{work.name}-wal"
    shutil.copyfile(base, work)
    if log.exists():
        data = log.read_bytes()
        if work.stat().st_size < _LEAST or data[:4] not in map(_as_bytes, _LOG_BEGINS):
            _play(data, work)
        else:
            shutil.copyfile(log, work.with_name(log.name))
    try:
        connection = apsw.Connection(str(work))
        with closing(connection):
            connection.pragma("trusted_schema", False)
            check(connection)
            for table, key in _TABLES.items():
                tell(f"reading {table}")
                _read_table(connection, table, key, read)
    except (apsw.NotADBError, apsw.CorruptError):
        read.unread["whole"] = 1
    return read


def _as_bytes(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _play(log: bytes, file: Path) -> None:
    """Put the pages of a log into a file, those of its newest generation, up to a commit."""
    size = _LOG_HEAD.unpack_from(log)[2] if log[:4] in map(_as_bytes, _LOG_BEGINS) else 4_096
    frames: list[tuple[int, int, bytes, bytes]] = []
    for at in range(
        _LOG_HEAD.size, len(log) - size - _FRAME_HEAD.size + 1, size + _FRAME_HEAD.size
    ):
        number, commits = _FRAME_HEAD.unpack_from(log, at)[:2]
        start = at + _FRAME_HEAD.size
        frames.append((number, commits, log[at + 8 : at + 16], log[start : start + size]))
    # Most frames of a log are of one generation, and garbage has none.
    salts = Counter(salt for _, _, salt, _ in frames).most_common(1)
    ours = [frame for frame in frames if salts and frame[2] == salts[0][0]]
    last = max((at for at, frame in enumerate(ours) if frame[1]), default=-1)
    with file.open("r+b") as pages:
        for number, _, _, page in ours[: last + 1]:
            pages.seek((number - 1) * size)
            pages.write(page)


def _read_table(connection: apsw.Connection, table: str, key: str, read: _Read) -> None:
    try:
        columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    except _BROKEN:
        columns = []
    read.columns[table] = columns
    if not columns:
        # Earlier versions had fewer tables, but never without this one.
        read.unread["whole"] += table == "operation"
        return
    query = f"SELECT {', '.join(columns)} FROM {table}"
    place = columns.index(key)
    with suppress(*_BROKEN):
        read.rows[table] = connection.execute(f"{query} NOT INDEXED ORDER BY {key}").fetchall()
        return
    found: dict[tuple[Any, ...], None] = {}
    for order in ("ASC", "DESC"):
        rows = connection.execute(f"{query} ORDER BY {key} {order}")
        try:
            for row in rows:
                found[row] = None
        except _BROKEN:
            continue
        break
    else:
        _read_between(connection, f"{query} WHERE {key} = ?", place, found, table, read)
    read.rows[table] = sorted(found, key=lambda row: row[place])


def _read_between(
    connection: apsw.Connection,
    query: str,
    place: int,
    found: dict[tuple[Any, ...], None],
    table: str,
    read: _Read,
) -> None:
    """Ask for each row that the ways from both ends did not come to."""
    known = {row[place] for row in found}
    owners = {"proposal_change": "proposal", "question_file": "question"}.get(table, "operation")
    wanted: Iterable[int] = (row[0] for row in read.rows.get(owners, ()))
    if table not in _PARTS:
        wanted = range(1, min(max(known, default=0) + 1_000, _FARTHEST))
    for number in wanted:
        # Of what has parts some may have been read, and others not.
        if number in known and table not in _PARTS:
            continue
        try:
            for row in connection.execute(query, (number,)):
                found[row] = None
        except _BROKEN:
            read.unread[table] += 1


# -- writing ----------------------------------------------------------------------------------


def _write_all(database: Database, read: _Read) -> list[str]:
    """Insert what was read; what is lost for certain, in words."""
    if read.unread.pop("whole", 0):
        return ["nothing of it could be read"]
    refused: Counter[str] = Counter()
    with database.writing(durable=True) as view:
        # Some rows name others that are lost; they are seen to at the end of the transaction.
        view.run("PRAGMA defer_foreign_keys = ON")
        for table, rows in read.rows.items():
            columns = read.columns[table]
            marks = ", ".join("?" * len(columns))
            query = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            for row in rows:
                try:
                    view.run(query, row)
                except (apsw.ConstraintError, apsw.MismatchError):
                    refused[table] += 1
        lost = [
            f"{count} rows of the table {table}"
            for table, count in sorted((read.unread + refused).items())
        ]
        lost += _stand_in(view)
    return lost


def _stand_in(view: View) -> list[str]:
    """Give what names lost rows something to name, and take out what belongs to none."""
    for column, tables, named in _NAMED:
        for table in tables:
            for (number,) in view.all(
                f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"
                f" AND {column} NOT IN (SELECT number FROM {named})"
            ):
                values: list[Any] = [number]
                if named == "content":
                    values.append(hashlib.sha256(f"lost {number}".encode()).digest())
                view.run(_STAND_INS[named], values)
    lost: list[str] = []
    for owner in ("operation", "proposal"):
        without = f"{_TABLES[owner]} NOT IN (SELECT owner FROM {owner}_change)"
        for (one,) in view.all(f"SELECT id FROM {owner} WHERE {without}"):
            lost.append(f"{owner} {one}: which files it changed")
        view.run(f"DELETE FROM {owner} WHERE {without}")
    for table in _PARTS:
        owner, _, _ = table.partition("_")
        view.run(f"DELETE FROM {table} WHERE owner NOT IN (SELECT {_TABLES[owner]} FROM {owner})")
    view.run(
        "UPDATE content SET base = NULL, kept = 'gone' WHERE base NOT IN"
        " (SELECT number FROM content)"
    )
    view.run(
        "DELETE FROM image WHERE number NOT IN (SELECT number FROM content WHERE kept = 'row')"
    )
    gaps = (
        "SELECT id FROM operation WHERE seq IN (SELECT owner FROM operation_change"
        " GROUP BY owner HAVING count(*) <= max(position))"
    )
    lost += [f"operation {one}: some of the files that it changed" for (one,) in view.all(gaps)]
    view.run(f"UPDATE operation SET note = note || ? WHERE id IN ({gaps})", (_NOTE,))
    first, last, count = view.all(
        "SELECT coalesce(min(seq), 1), coalesce(max(seq), 0), count(*) FROM operation"
    )[0]
    if count <= last - first:
        lost.append(f"{last - first + 1 - count} operations between the places {first} and {last}")
    return lost


def _give_up_damaged(
    database: Database, contents: Contents, aside: Path, tell: Callable[[str], None]
) -> list[str]:
    """Keep only the ids of contents that cannot be read, and put their files aside."""
    with database.writing(durable=True) as view:
        damaged = damaged_contents(view, contents, tell)
        lost = [
            f"a content of {one.path}: {one.id} ({one.summary})" for one in unusable(view, damaged)
        ]
        for file in filter(Path.exists, contents.files(view, damaged)):
            (aside / "contents").mkdir(mode=0o700, exist_ok=True)
            file.rename(aside / "contents" / f"{file.parent.name}{file.name}")
        for number in damaged:
            contents.drop(view, number)
    return lost


def _copy(source: Path, target: Path) -> None:
    """A copy that is on the disk when this returns."""
    shutil.copyfile(source, target)
    target.chmod(0o600)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

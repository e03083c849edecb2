"""Checks that everything in a journal can be read, and makes a sound journal of what can be.

SQLite refuses a page that is damaged, and goes on with others: each table is read from its
beginning and from its end up to the damage, and in between row by row.  Every content is put
together and compared with its id; what names a row that is lost is given a stand-in.  The damaged
journal is kept aside.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from filepact.domain.audit import JournalSummary
from filepact.domain.operation import ContentProblem, JournalCheckResult, SalvageResult
from filepact.errors import StateFailedError
from filepact.store import connection as connections
from filepact.store.connection import Database, open_to_read, unfit
from filepact.store.content import ContentStore, sync
from filepact.store.rows import from_text
from filepact.store.schema import check
from filepact.store.upkeep import OWN, account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filepact.store.transaction import Transaction

__all__ = ["check_journal", "damaged_contents", "read_account", "salvage", "unusable"]

_TELLS_RECORDS: Final = 10  # the version of the tables that names records of the audit log
_LOADED: Final = 64 * 1024 * 1024
_PROBLEMS: Final = 20
_PATIENT: Final = 1.0
_TOUCHED: Final = (
    "SELECT o.id, o.summary, r.path, c.path, lower(hex(k.id))"
    " FROM {kind}_change c JOIN {kind} o ON o.{key} = c.owner JOIN root r ON r.number = c.root"
    " JOIN content k ON k.number IN (c.before, c.after)"
    " WHERE k.number IN {{wanted}}{only} ORDER BY c.owner, c.position"
)


def check_journal(
    path: str, tell: Callable[[str], None] = lambda _said: None
) -> JournalCheckResult:
    """Read everything in a journal, and change nothing.

    Args:
        path: Its file; other processes may use it meanwhile.
        tell: Is told how far this is, once a second.

    Raises:
        StateFailedError: It is no journal, or of a newer filepact.
    """
    if unfit(path):
        return JournalCheckResult(("the file was emptied, or its log overwritten",))
    problems: list[str] = []
    contents = ContentStore(os.path.join(os.path.dirname(path), "contents"))
    try:
        with _reading(path) as tx:
            if tx.value("PRAGMA user_version") == 0:
                return JournalCheckResult()  # Nothing was written to it yet.
            tell("reading the journal's tables")
            with _noting(problems, "the structure"):
                for (said,) in tx.all(f"PRAGMA integrity_check({_PROBLEMS})"):
                    if said != "ok":
                        problems.append(" ".join(str(said).split()))
                if tx.all("PRAGMA foreign_key_check"):
                    problems.append("rows name others that are not there")
            damaged: list[int] = []
            kept = unfinished = 0
            lost: tuple[ContentProblem, ...] = ()
            names: list[str] = []
            strays: list[str] = []
            with _noting(problems, "the contents"):
                kept = tx.value("SELECT count(*) FROM content WHERE kept <> 'gone'")
                damaged = damaged_contents(tx, contents, tell)
                names = [_name(tx, number) for number in damaged]
            with _noting(problems, "the operations"):
                lost = unusable(tx, damaged)
                unfinished = tx.value("SELECT count(*) FROM operation WHERE state = 'intended'")
            with _noting(problems, "the contents in files"):
                strays = [str(file) for file in contents.strays(tx)]
            return JournalCheckResult(
                tuple(problems), kept, tuple(names), lost, tuple(strays), unfinished
            )
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return JournalCheckResult((f"the file cannot be read as a journal ({error})",))


def read_account(path: str | None) -> JournalSummary:
    """A journal's account of its operations and of what is open.

    Args:
        path: Its file; other processes may use it meanwhile.  None for one that is not there.

    Raises:
        StateFailedError: It cannot be read as a journal, or is of a newer filepact.
    """
    if path is None:
        return JournalSummary(OWN, {})
    try:
        with _reading(path) as tx:
            version = tx.value("PRAGMA user_version")
            if version == 0:
                return JournalSummary(OWN, {})
            return account(tx, OWN, "logged" if version >= _TELLS_RECORDS else "NULL")
    except apsw.Error as error:
        raise StateFailedError(
            f"the journal cannot be read ({error})",
            hint="`filepact doctor --journal` says what is damaged, `filepact doctor --repair` keeps the rest.",
        ) from None


@contextmanager
def _reading(path: str) -> Iterator[Transaction]:
    """A transaction that only reads a journal."""
    # Other processes may use it meanwhile, but not where nothing can be written.
    connection = open_to_read(path, shared=os.access(Path(path).parent, os.W_OK))
    try:
        connection.execute("BEGIN")
        yield connections.Transaction(connection)
    finally:
        connection.close()


@contextmanager
def _noting(problems: list[str], what: str) -> Iterator[None]:
    """Note a damaged page as a problem, in place of the exception."""
    try:
        yield
    except (apsw.CorruptError, apsw.IOError) as error:
        problems.append(f"{what} cannot be read: {error}")


def _name(tx: Transaction, number: int) -> str:
    return str(tx.value("SELECT lower(hex(id)) FROM content WHERE number = ?", (number,)))


def damaged_contents(
    tx: Transaction, contents: ContentStore, tell: Callable[[str], None] = lambda _said: None
) -> list[int]:
    """The contents that cannot be read, by number; every one is put together and compared."""
    damaged: list[int] = []
    loaded: dict[int, bytes] = {}
    held = 0
    numbers = [
        number
        for (number,) in tx.all("SELECT number FROM content WHERE kept <> 'gone' ORDER BY number")
    ]
    said = time.monotonic()
    for done, number in enumerate(numbers):
        if time.monotonic() - said > _PATIENT:
            said = time.monotonic()
            tell(f"{done:,} of {len(numbers):,} contents read")
        try:
            data = contents.load(tx, number, loaded)
        except (StateFailedError, apsw.CorruptError, apsw.IOError, ValueError, OSError):
            damaged.append(number)
            continue
        if held + len(data) > _LOADED:
            loaded.clear()
            held = 0
        loaded[number] = data
        held += len(data)
    return damaged


def unusable(tx: Transaction, numbers: list[int]) -> tuple[ContentProblem, ...]:
    """The operations, and the proposals that wait, that need some contents, file by file."""
    if not numbers:
        return ()
    rows = tx.among(_TOUCHED.format(kind="operation", key="seq", only=""), numbers)
    waiting = " AND o.state = 'proposed'"
    rows += tx.among(_TOUCHED.format(kind="proposal", key="number", only=waiting), numbers)
    found: dict[tuple[str, str], ContentProblem] = {}
    for change_id, summary, root, path, content in rows:
        name = f"{from_text(root).rstrip('/')}/{from_text(path)}"
        one = ContentProblem(from_text(change_id), from_text(summary), name, content)
        # Both sides of one change may be damaged.
        found.setdefault((one.id, name), one)
    return tuple(found.values())


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
    "session_approval": "number",
}
# What a row may name: the column, the table, and a stand-in for a row that is lost.
_NAMED: Final = (
    (
        "session",
        ("proposal", "operation", "question", "conversation", "session_approval"),
        "session",
    ),
    (
        "root",
        (
            "proposal_change",
            "operation_change",
            "operation_directory",
            "checkpoint",
            "question",
            "session_approval",
        ),
        "root",
    ),
    ("before", ("proposal_change", "operation_change"), "content"),
    ("after", ("proposal_change", "operation_change"), "content"),
)
_STAND_INS: Final = {
    "session": "INSERT INTO session VALUES (?1, 'lost ' || ?1, 'agent', 'unknown', '', '')",
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
_BROKEN: Final = (apsw.CorruptError, apsw.IOError, UnicodeDecodeError)


def salvage(path: str, tell: Callable[[str], None] = lambda _said: None) -> SalvageResult:
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
        contents = ContentStore(str(place.parent / "contents"))
        tell("comparing every content with its id")
        lost += _give_up_damaged(database, contents, aside, tell)
        with database.reading() as tx:
            operations = tx.value("SELECT count(*) FROM operation")
            kept = tx.value("SELECT count(*) FROM content WHERE kept <> 'gone'")
            if tx.all("PRAGMA foreign_key_check") or tx.value("PRAGMA integrity_check") != "ok":
                raise StateFailedError(
                    "the readable part of the journal is not a valid journal",
                    hint=f"The damaged one is unchanged; a copy is in {aside.name}.",
                )
    # The log goes first: SQLite would play it into the journal that comes into this place.
    for end in ("-shm", "-wal"):
        place.with_name(place.name + end).unlink(missing_ok=True)
    fresh.replace(place)
    sync(place.parent)
    return SalvageResult(str(aside), operations, kept, tuple(lost))


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
        try:
            for row in connection.execute(f"{query} ORDER BY {key} {order}"):
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
    """Read, one by one, the rows between the places where both directions stopped."""
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
    with database.writing(durable=True) as tx:
        # Some rows name others that are lost; they are seen to at the end of the transaction.
        tx.run("PRAGMA defer_foreign_keys = ON")
        for table, rows in read.rows.items():
            columns = read.columns[table]
            marks = ", ".join("?" * len(columns))
            query = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            for row in rows:
                try:
                    tx.run(query, row)
                except (apsw.ConstraintError, apsw.MismatchError):
                    refused[table] += 1
        lost = [
            f"{count} rows of the table {table}"
            for table, count in sorted((read.unread + refused).items())
        ]
        lost += _stand_in(tx)
    return lost


def _stand_in(tx: Transaction) -> list[str]:
    """Insert stand-ins for lost rows that others name, and delete parts without an owner."""
    for column, tables, named in _NAMED:
        for table in tables:
            for (number,) in tx.all(
                f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"
                f" AND {column} NOT IN (SELECT number FROM {named})"
            ):
                values: list[Any] = [number]
                if named == "content":
                    values.append(hashlib.sha256(f"lost {number}".encode()).digest())
                tx.run(_STAND_INS[named], values)
    lost: list[str] = []
    for owner in ("operation", "proposal"):
        without = f"{_TABLES[owner]} NOT IN (SELECT owner FROM {owner}_change)"
        for (one,) in tx.all(f"SELECT id FROM {owner} WHERE {without}"):
            lost.append(f"{owner} {one}: which files it changed")
        tx.run(f"DELETE FROM {owner} WHERE {without}")
    for table in _PARTS:
        owner, _, _ = table.partition("_")
        tx.run(f"DELETE FROM {table} WHERE owner NOT IN (SELECT {_TABLES[owner]} FROM {owner})")
    tx.run(
        "UPDATE content SET base = NULL, kept = 'gone' WHERE base NOT IN"
        " (SELECT number FROM content)"
    )
    tx.run("DELETE FROM image WHERE number NOT IN (SELECT number FROM content WHERE kept = 'row')")
    gaps = (
        "SELECT id FROM operation WHERE seq IN (SELECT owner FROM operation_change"
        " GROUP BY owner HAVING count(*) <= max(position))"
    )
    lost += [f"operation {one}: some of the files that it changed" for (one,) in tx.all(gaps)]
    tx.run(f"UPDATE operation SET note = note || ? WHERE id IN ({gaps})", (_NOTE,))
    first, last, count = tx.all(
        "SELECT coalesce(min(seq), 1), coalesce(max(seq), 0), count(*) FROM operation"
    )[0]
    if count <= last - first:
        lost.append(f"{last - first + 1 - count} operations between the places {first} and {last}")
    return lost


def _give_up_damaged(
    database: Database, contents: ContentStore, aside: Path, tell: Callable[[str], None]
) -> list[str]:
    """Keep only the ids of contents that cannot be read, and put their files aside."""
    with database.writing(durable=True) as tx:
        damaged = damaged_contents(tx, contents, tell)
        lost = [
            f"a content of {one.path}: {one.id} ({one.summary})" for one in unusable(tx, damaged)
        ]
        for file in filter(Path.exists, contents.files(tx, damaged)):
            (aside / "contents").mkdir(mode=0o700, exist_ok=True)
            file.rename(aside / "contents" / f"{file.parent.name}{file.name}")
        for number in damaged:
            contents.drop(tx, number)
    return lost


def _copy(source: Path, target: Path) -> None:
    """Copy a file durably."""
    shutil.copyfile(source, target)
    target.chmod(0o600)
    sync(target)
    sync(target.parent)

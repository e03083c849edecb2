"""What is said to PostgreSQL and what it says: queries in its words, texts, and errors in ours."""

from __future__ import annotations

import logging
import math
import re
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import psycopg
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    StateFailedError,
    StoreFullError,
    StoreReadOnlyError,
    StoreSchemaError,
    StoreUnreachableError,
    TimedOutError,
)
from filepact.store.rows import TextBytes
from filepact_fleet.postgres_schema import MIGRATIONS, state_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

__all__ = [
    "PostgresTransaction",
    "check_tables",
    "is_passing",
    "only_reads",
    "open_connection",
    "to_stored",
    "told",
]

_Answer = TypeVar("_Answer")

_NO_ROOM: Final = ("53100", "53200", "54000")
_LATE: Final = ("55P03", "57014")
_AGAIN: Final = ("40001", "40P01")
_AWAY: Final = ("57P01", "57P02", "57P03", "57P05", "53300")
_REFUSED: Final = (
    "authentication failed",
    "does not exist",
    "no password supplied",
    "no pg_hba.conf entry",
    "permission denied for database",
)
_UNTRUSTED: Final = (
    "root certificate file",
    "certificate verify failed",
    "does not match host name",
    "server does not support SSL",
)
_NO_TABLES: Final = ("42P01", "42703", "42883", "3F000", "42704")

# It would write of lost connections to wherever a server's log goes; we tell of them.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# Text that PostgreSQL does not take, and the character that stands before what is put for it.
_ODD: Final = re.compile("[\x00\x1a\ud800-\udfff]")
_PUT: Final = re.compile("\x1a([0-9a-f]{4})")


class _WholeNumbers(Loader):
    """Sums come as numerics; all of ours are whole."""

    def load(self, data: bytes | bytearray | memoryview) -> int:
        return int(bytes(data))


def told(error: psycopg.Error) -> FilepactError:
    """The error for one of PostgreSQL; it names no host, no user and no password."""
    state = error.sqlstate or ""
    if state in _LATE:
        return TimedOutError(
            "the database of the journal took too long",
            hint="Try again; if this repeats, look at what else writes to this workspace.",
        )
    if state in _NO_ROOM:
        return StoreFullError(
            f"the database of the journal has no room ({state})",
            hint="Nothing was changed. Make room there and try again.",
        )
    if state == "25006":
        return only_reads()
    if state in _NO_TABLES:
        return _unmigrated(state)
    if state.startswith("28") or state == "3D000":
        return _no_login()
    if _by_statement(error):
        return StateFailedError(
            "the pooler before the journal's database pools by statement, and a change takes a transaction",
            hint="Nothing was changed. Have it pool by transaction (pool_mode = transaction), or by session.",
        )
    if state in _AGAIN or state in _AWAY or state.startswith("08") or not state:
        return StoreUnreachableError(
            f"the database of the journal does not answer ({state or type(error).__name__})",
            hint="Nothing was changed. Try again when the server is up.",
        )
    return StateFailedError(
        f"the database of the journal refused a statement ({state})",
        hint="Nothing was changed. `filepact store status` says what the database is.",
        sqlstate=state,
    )


def only_reads() -> StoreReadOnlyError:
    """The error for a server that takes no changes."""
    return StoreReadOnlyError(
        "the database of the journal is read-only: a standby, or set so",
        hint="Name the primary server in the address, for example with"
        " target_session_attrs=read-write and all its hosts.",
    )


def _no_login() -> StateFailedError:
    return StateFailedError(
        "the server of the journal's database refuses this login, or has no such database",
        hint="See the address in [store] or FILEPACT_STORE, and the password in PGPASSWORD or the"
        " password file.",
    )


def check_tables(connection: psycopg.Connection[Any]) -> None:
    """Refuse a schema whose tables are missing or of another version.

    Raises:
        StoreSchemaError: They are.
    """
    version = state_of(connection)
    if version is None or version < len(MIGRATIONS):
        raise _unmigrated()


def _unmigrated(state: str = "") -> StoreSchemaError:
    return StoreSchemaError(
        f"the database has no tables of this filepact{f' ({state})' if state else ''}",
        hint="`filepact store migrate` makes them.",
    )


def _by_statement(error: psycopg.Error) -> bool:
    """Whether a pooler refuses transactions, which it says with the code of many faults that pass."""
    return error.sqlstate == "08P01" and "statement pooling" in str(error)


def is_passing(error: psycopg.Error) -> bool:
    """Whether it may be gone in a moment, and nothing came of what was sent."""
    state = error.sqlstate or ""
    if _by_statement(error):
        return False
    return state in _AGAIN or state in _AWAY or state.startswith("08") or not state


class _Connection(psycopg.Connection[Any]):
    """One that is closed when it says nothing for too long.

    The server's own limits do not help against a host that hangs, nor do they end a commit that
    waits for a standby which is away.

    Attributes:
        limit: Seconds of silence.
    """

    limit = math.inf

    def wait(self, gen: Generator[Any, Any, _Answer], *given: Any, **named: Any) -> _Answer:
        return super().wait(self._limited(gen), *given, **named)

    def _limited(self, gen: Generator[Any, Any, _Answer]) -> Generator[Any, Any, _Answer]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    heard = now
                elif now - heard > self.limit:
                    self.close()
                    raise psycopg.OperationalError("the server has said nothing for too long")
                wanted = gen.send(ready)
        except StopIteration as ended:
            return cast("_Answer", ended.value)


def open_connection(
    url: str, password: str | None = None, *, limit: float = math.inf
) -> psycopg.Connection[Any]:
    """A connection that keeps nothing in its session.

    Args:
        url: Where to.
        password: That of an earlier connection; the file that it came from may be out of reach.
        limit: Seconds after which a server that says nothing counts as away.

    Raises:
        InvalidParamsError: The address cannot be understood, or has a password in it.
        psycopg.Error: There is none.
    """
    try:
        options = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise InvalidParamsError(
            "the address of the store cannot be understood",
            hint="Write postgresql://user@host:5432/database.",
        ) from None
    if options.get("password") and password is None:
        raise InvalidParamsError(
            "the address of the store has a password in it, which settings and logs would show",
            hint="Put it into PGPASSWORD, or into the password file: see docs/how-to/postgres.md.",
        )
    if password:
        options["password"] = password
    defaults: dict[str, Any] = {
        "connect_timeout": 5,
        "application_name": "filepact",
        "keepalives_idle": 10,
        "tcp_user_timeout": 15_000,
    }
    try:
        connection = _Connection.connect(
            **(defaults | options), autocommit=True, prepare_threshold=None
        )
    except psycopg.OperationalError as error:
        # What refuses a login comes without its code, and so does what libpq itself refuses.
        said = str(error)
        if any(one in said for one in _UNTRUSTED):
            raise StateFailedError(
                "the server of the journal's database is not the one that the address asks for: its certificate is"
                " missing, for another name, or signed by somebody who is not trusted",
                hint="Nothing was sent. Look at sslmode, sslrootcert and the host in the address.",
            ) from None
        if any(one in said for one in _REFUSED):
            raise _no_login() from None
        raise
    connection.limit = limit
    connection.adapters.register_loader("numeric", _WholeNumbers)
    return connection


@cache
def _translated(query: str) -> str:
    """A query that was written for SQLite, as PostgreSQL wants it, with named values."""
    query = query.replace("%", "%%").replace("char(1114111)", "chr(1114111)")
    query = query.replace("instr(", "strpos(").replace("CROSS JOIN", "JOIN")
    query = re.sub(r"lower\(hex\(([a-z.]+)\)\)", r"encode(\1, 'hex')", query)
    if query.startswith("INSERT OR IGNORE"):
        query = f"INSERT{query.removeprefix('INSERT OR IGNORE')} ON CONFLICT DO NOTHING"
    # The index has the beginnings of paths only.
    short = "substring({} FROM 1 FOR 512)"
    query = query.replace(
        "c.path = ?", f"({short.format('c.path')} = {short.format('?9::bytea')} AND c.path = ?9)"
    )
    numbers = iter(range(1, 100))
    nine = 0

    def put(found: re.Match[str]) -> str:
        nonlocal nine
        if found[1] == "9":
            nine = nine or next(numbers)
            return f"%(p{nine})s"
        return f"%(p{found[1] or next(numbers)})s"

    return re.sub(r"\?(\d?)", put, query)


def to_stored(value: Any) -> Any:
    """A value as PostgreSQL takes it."""
    if type(value) is TextBytes:
        value = value.decode("utf-8", "surrogatepass")
    if type(value) is str and not value.isprintable():
        return _ODD.sub(lambda found: f"\x1a{ord(found[0]):04x}", value)
    return value


def _read(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row as it was before it was stored."""
    if any(type(one) is str and "\x1a" in one for one in row):
        return tuple(
            _PUT.sub(lambda found: chr(int(found[1], 16)), one) if type(one) is str else one
            for one in row
        )
    return row


class PostgresTransaction:
    """What can be asked and done inside a transaction; `filepact.store.transaction.Transaction`.

    What answers nothing is sent with the next statement that does.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        self.ask(_translated(query), _named(values))

    def many(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        text = _translated(query)
        for values in rows:
            self.ask(text, _named(values))

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.ask(_translated(query), _named(values)).rows()

    def one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        rows = self.all(query, values)
        return rows[0] if rows else None

    def among(self, query: str, wanted: Iterable[int | str], *values: Any) -> list[tuple[Any, ...]]:
        chosen = [to_stored(one) for one in wanted]
        if not chosen:
            listed = "(NULL)"
        elif type(chosen[0]) is str:
            listed = "(SELECT unnest(?1::text[]))"
        else:
            listed = "(SELECT unnest(?1::bigint[]))"
        text = _translated(query.replace("{wanted}", listed))
        return self.ask(text, {"p1": chosen, **_named(values, first=2)}).rows()

    def value(self, query: str, values: Sequence[Any] = ()) -> Any:
        return self.all(query, values)[0][0]

    def ask(self, query: str, values: Any = None) -> _Asked:
        """Send a statement in PostgreSQL's own words."""
        return _Asked(self._connection.execute(cast("Any", query), values))


class _Asked:
    """A statement that was sent; the answer may be under way."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    def rows(self) -> list[tuple[Any, ...]]:
        """Every row of the answer, waited for."""
        return [_read(row) for row in self._cursor.fetchall()]


def _named(values: Sequence[Any], first: int = 1) -> dict[str, Any]:
    return {f"p{number}": to_stored(one) for number, one in enumerate(values, first)}

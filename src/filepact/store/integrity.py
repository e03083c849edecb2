"""Whether everything in a journal can be read, and what cannot be taken back where it cannot."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

from filepact.domain.figures import Integrity, Unusable
from filepact.errors import StateFailedError
from filepact.store.connection import View, open_to_read, unfit
from filepact.store.content import Contents
from filepact.store.rows import from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["check_journal", "damaged_contents", "unusable"]

_LOADED: Final = 64 * 1024 * 1024
_PROBLEMS: Final = 20
_PATIENT: Final = 1.0
_TOUCHED: Final = (
    "SELECT o.id, o.summary, r.path, c.path, lower(hex(k.id))"
    " FROM {kind}_change c JOIN {kind} o ON o.{key} = c.owner JOIN root r ON r.number = c.root"
    " JOIN content k ON k.number IN (c.before, c.after)"
    " WHERE k.number IN (SELECT value FROM json_each(?)){only} ORDER BY c.owner, c.position"
)


def check_journal(path: str, tell: Callable[[str], None] = lambda _said: None) -> Integrity:
    """Read everything in a journal, and change nothing.

    Args:
        path: Its file; other processes may use it meanwhile.
        tell: Is told how far this is, once a second.

    Raises:
        StateFailedError: It is no journal, or of a newer filepact.
    """
    if unfit(Path(path)):
        return Integrity(("the file was emptied, or its log overwritten",))
    problems: list[str] = []
    contents = Contents(Path(path).parent / "contents")
    try:
        with _view(path) as view:
            if view.value("PRAGMA user_version") == 0:
                return Integrity()  # Nothing was written to it yet.
            tell("reading the journal's tables")
            with _noting(problems, "the structure"):
                for (said,) in view.all(f"PRAGMA integrity_check({_PROBLEMS})"):
                    if said != "ok":
                        problems.append(" ".join(str(said).split()))
                if view.all("PRAGMA foreign_key_check"):
                    problems.append("rows name others that are not there")
            damaged: list[int] = []
            kept = unfinished = 0
            lost: tuple[Unusable, ...] = ()
            names: list[str] = []
            strays: list[str] = []
            with _noting(problems, "the contents"):
                kept = view.value("SELECT count(*) FROM content WHERE kept <> 'gone'")
                damaged = damaged_contents(view, contents, tell)
                names = [_name(view, number) for number in damaged]
            with _noting(problems, "the operations"):
                lost = unusable(view, damaged)
                unfinished = view.value("SELECT count(*) FROM operation WHERE state = 'intended'")
            with _noting(problems, "the contents in files"):
                strays = [str(file) for file in contents.strays(view)]
            return Integrity(tuple(problems), kept, tuple(names), lost, tuple(strays), unfinished)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return Integrity((f"the file cannot be read as a journal ({error})",))


@contextmanager
def _view(path: str) -> Iterator[View]:
    """One unchanging view of a journal that is only read."""
    connection = open_to_read(Path(path))
    try:
        connection.execute("BEGIN")
        yield View(connection)
    finally:
        connection.close()


@contextmanager
def _noting(problems: list[str], what: str) -> Iterator[None]:
    """A problem in place of the exception that a damaged page is."""
    try:
        yield
    except (apsw.CorruptError, apsw.IOError) as error:
        problems.append(f"{what} cannot be read: {error}")


def _name(view: View, number: int) -> str:
    return str(view.value("SELECT lower(hex(id)) FROM content WHERE number = ?", (number,)))


def damaged_contents(
    view: View, contents: Contents, tell: Callable[[str], None] = lambda _said: None
) -> list[int]:
    """The contents that cannot be read, by number; every one is put together and compared."""
    damaged: list[int] = []
    loaded: dict[int, bytes] = {}
    held = 0
    numbers = [
        number
        for (number,) in view.all("SELECT number FROM content WHERE kept <> 'gone' ORDER BY number")
    ]
    said = time.monotonic()
    for done, number in enumerate(numbers):
        if time.monotonic() - said > _PATIENT:
            said = time.monotonic()
            tell(f"{done:,} of {len(numbers):,} contents read")
        try:
            data = contents.load(view, number, loaded)
        except (StateFailedError, apsw.CorruptError, apsw.IOError, ValueError, OSError):
            damaged.append(number)
            continue
        if held + len(data) > _LOADED:
            loaded.clear()
            held = 0
        loaded[number] = data
        held += len(data)
    return damaged


def unusable(view: View, numbers: list[int]) -> tuple[Unusable, ...]:
    """The operations, and the proposals that wait, that need some contents, file by file."""
    if not numbers:
        return ()
    wanted = (json.dumps(numbers),)
    rows = view.all(_TOUCHED.format(kind="operation", key="seq", only=""), wanted)
    waiting = " AND o.state = 'proposed'"
    rows += view.all(_TOUCHED.format(kind="proposal", key="number", only=waiting), wanted)
    found: dict[tuple[str, str], Unusable] = {}
    for change_id, summary, root, path, content in rows:
        name = f"{from_text(root).rstrip('/')}/{from_text(path)}"
        one = Unusable(from_text(change_id), from_text(summary), name, content)
        # Both sides of one change may be damaged.
        found.setdefault((one.id, name), one)
    return tuple(found.values())

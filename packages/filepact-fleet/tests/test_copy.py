"""A journal is copied from a file into a database, and back."""

from __future__ import annotations

import itertools
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.domain.operation import Actor, Approval, Checkpoint, Session, StoreOptions
from filepact.domain.permission_log import LoggedFile, PermissionRecord, SessionApproval
from filepact.errors import FilepactError
from filepact.store.sqlite import SqliteStore
from tests.postgres import server
from tests.store import making
from tests.store.making import (
    OTHER,
    ROOT,
    SESSION,
    change,
    contents,
    do,
    new_id,
    operation,
    proposal,
)

if TYPE_CHECKING:
    from filepact.store.sql import SqlStore

pytest.importorskip("psycopg", reason="psycopg is not installed")

from filepact_fleet import postgres_upkeep
from filepact_fleet.postgres import PostgresStore
from filepact_fleet.postgres_schema import MIGRATIONS
from filepact_fleet.postgres_upkeep import StoreDatabase

NUMBERS = itertools.count()
VERSION_1 = Path(making.__file__).with_name("version_1.sql")


@pytest.fixture
def options() -> StoreOptions:
    return StoreOptions(server().url, f"copy {os.getpid()} {next(NUMBERS)}")


@pytest.fixture
def upkeep(options: StoreOptions, path: Path) -> StoreDatabase:
    return StoreDatabase(options, "a state folder", str(path))


def opened(options: StoreOptions) -> PostgresStore:
    return PostgresStore(options.url, workspace=options.workspace, holder="a state folder")


def fill(store: SqlStore) -> None:
    """Everything that a journal can hold."""
    big = os.urandom(100_000)
    chat = Session("s\0", Actor("agent", "na\udcefve", "1", "ada"), conversation="c1", turn="t1")
    first = do(store, None, b"1\n" * 500, session=chat, lines=(500, 0))
    do(store, b"1\n" * 500, b"1\n" * 499 + b"2\n", path="a.txt", directories=((OTHER, "x"),))
    do(store, None, big, path="caf\udce9", root=OTHER)
    back = store.begin(
        operation(change("a.txt", b"2", b"1"), kind="undo", target=first.id), contents(b"1", b"2")
    )
    store.finish(back.id, state="applied", note="undone")
    store.adopt(operation(change("b", b"unknown", b"known")), contents(b"known"))
    waits, other, third = (proposal(change("p", None, one)) for one in (b"p", b"q", b"r"))
    for one in (waits, other, third):
        store.propose(one, contents(b"p", b"q", b"r"))
    store.reject([other.id], Approval(Actor("person", "ada"), "no"))
    store.propose(proposal(change("p", None, b"s")), contents(b"s"), supersedes=[third.id])
    done = store.begin(operation(change("p", None, b"p"), id=waits.id, approved_by="ada"), {})
    store.finish(done.id, state="rolled_back", note="full")
    done = store.begin(operation(change("p", None, b"p"), id=waits.id, approved_by="ada"), {})
    store.finish(done.id, state="applied")
    store.add_checkpoint(Checkpoint("here", ROOT, 3, 1.5))
    for number in range(2):
        store.add_session_approval(
            SessionApproval(
                *(f"g{number}", chat, OTHER, "*.txt", ("ask",), waits.id, 1.0, "ada", 9.0)
            )
        )
    store.revoke_session_approval("g1", 2.0)
    for how in ("read", "asked"):
        store.note(
            PermissionRecord(
                *(1.0, SESSION, ROOT, "t", "read", (LoggedFile("f", 1, 2),), "allowed"),
                *("ada", how, 0),
            )
        )


def everything(store: SqlStore) -> list[object]:
    return [
        store.operations(limit=None),
        store.unfinished(),
        *(
            store.proposals(state=one)
            for one in ("proposed", "rejected", "superseded", "committed")
        ),
        store.checkpoints(ROOT),
        store.questions(limit=None),
        store.questions(limit=None, kind="reads"),
        store.questions(limit=None, kind="turns"),
        store.session_approvals(),
        set(store.roots()),
        store.sessions(Session("other", Actor("agent", "na\udcefve"), conversation="c1")),
        store.last_seq(),
        store.statistics().contents,
    ]


def test_a_copy_is_the_same_journal_and_a_second_one_does_nothing(
    path: Path, options: StoreOptions, upkeep: StoreDatabase
) -> None:
    with closing(SqliteStore(str(path))) as store:
        fill(store)
        before = everything(store)
    file = path.read_bytes()
    done = upkeep.copy()
    assert (done.operations, done.proposals) == (6, 4)
    assert done.copied > 10
    with closing(opened(options)) as store:
        assert everything(store) == before
        for one in store.operations(limit=None):
            for each in one.changes.changes:
                for side in (each.before, each.after):
                    if (
                        side is not None
                        and side.content != change("x", None, b"unknown").after.content
                    ):
                        assert store.content(side.content)
        assert upkeep.copy().copied == 0
        assert path.read_bytes() == file
        # What goes on in the database is left as it is by another copy.
        newest = store.operations(limit=1)[0]
        assert do(store, None, b"new", path="new").seq == newest.seq + 1
        assert upkeep.copy().copied == 0
        assert store.last_seq() == newest.seq + 1


def test_a_copy_that_was_cut_off_is_gone_on_with(
    path: Path, options: StoreOptions, upkeep: StoreDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteStore(str(path))) as store:
        fill(store)
        before = everything(store)
    monkeypatch.setattr(postgres_upkeep, "_BATCH", 2)
    monkeypatch.setattr(postgres_upkeep, "_HELD", 1_000)

    def cut(said: str) -> None:
        if said.startswith("4 operations"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upkeep.copy(tell=cut)
    upkeep.copy()
    with closing(opened(options)) as store:
        assert everything(store) == before


def test_a_journal_comes_back_into_a_file(
    tmp_path: Path, options: StoreOptions, upkeep: StoreDatabase, path: Path
) -> None:
    with closing(opened(options)) as store:
        fill(store)
        before = everything(store)
    upkeep.copy(back=True)
    assert upkeep.copy(back=True).copied == 0
    with closing(SqliteStore(str(path))) as store:
        assert everything(store) == before
        assert do(store, None, b"new", path="new").seq == before[-2] + 1


def test_another_journal_in_the_same_place_is_not_mixed_with(
    path: Path, options: StoreOptions, upkeep: StoreDatabase
) -> None:
    with closing(SqliteStore(str(path))) as store:
        do(store, None, b"1", id=new_id())
    with closing(opened(options)) as store:
        other = do(store, None, b"2")
        with pytest.raises(FilepactError) as caught:
            upkeep.copy()
        assert caught.value.code == "INVALID_PARAMS"
        assert store.operations() == (other,)


def test_a_copy_that_is_another_change_in_the_end_is_told(
    path: Path, options: StoreOptions, upkeep: StoreDatabase
) -> None:
    same = new_id()
    with closing(SqliteStore(str(path))) as store:
        do(store, None, b"1", id=same)
    with closing(opened(options)) as store:
        do(store, None, b"2", id=same)
    with pytest.raises(FilepactError) as caught:
        upkeep.copy()
    assert caught.value.code == "STATE_ERROR"


def test_a_journal_of_an_earlier_version_is_not_copied(path: Path, upkeep: StoreDatabase) -> None:
    with closing(apsw.Connection(str(path))) as database:
        database.execute(VERSION_1.read_text())
    with pytest.raises(FilepactError) as caught:
        upkeep.copy()
    assert caught.value.code == "STATE_ERROR"


def test_nothing_to_copy_is_told(upkeep: StoreDatabase) -> None:
    with pytest.raises(FilepactError) as caught:
        upkeep.copy()
    assert caught.value.code == "NOT_FOUND"


def test_the_state_of_a_database_is_told_before_and_after_its_tables_are_made(
    options: StoreOptions, upkeep: StoreDatabase
) -> None:
    with closing(opened(options)) as store:
        do(store, None, b"1")
    found = upkeep.status()
    newest = len(MIGRATIONS)
    assert (found.tables, found.newest, found.operations) == (newest, newest, 1)
    assert not found.standby
    assert found.workspace == options.workspace
    assert "operation_rest" in found.partitions
    empty = StoreDatabase(StoreOptions(server().url, schema="not_there"), "it", "")
    assert empty.status().tables is None
    assert upkeep.migrate() == []
    assert upkeep.prune(days=30) == ()

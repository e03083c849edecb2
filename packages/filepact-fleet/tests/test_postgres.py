"""What is the database's own about a journal: its tables, leases, events, faults."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from tests.postgres import Server, server
from tests.store.making import OTHER, ROOT, change, contents, do, operation, proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.operation import Operation

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from filepact.store.content import LONGEST_CHAIN  # noqa: E402
from filepact_fleet import postgres_connection, postgres_schema, postgres_together  # noqa: E402
from filepact_fleet.postgres import PostgresStore  # noqa: E402
from filepact_fleet.postgres_connection import migrate_database  # noqa: E402
from filepact_fleet.postgres_words import open_connection, told  # noqa: E402

NUMBERS = itertools.count()


def fresh(name: str = "it") -> str:
    return f"{name} {os.getpid()} {next(NUMBERS)}"


def store_of(workspace: str, holder: str = "", **given: Any) -> PostgresStore:
    url = given.pop("url", None) or server().url
    return PostgresStore(url, workspace=workspace, holder=holder or f"of {workspace}", **given)


@pytest.fixture
def name() -> str:
    """That of the workspace."""
    return fresh()


@pytest.fixture
def store(name: str) -> Iterator[PostgresStore]:
    with closing(store_of(name)) as opened:
        yield opened


@pytest.fixture
def schema() -> Iterator[str]:
    name = f"test_{os.getpid()}_{next(NUMBERS)}"
    yield name
    with open_connection(server().url) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


def code(act: Callable[[], object]) -> str:
    with pytest.raises(FilepactError) as caught:
        act()
    return caught.value.code


def asked(schema: str, query: str, *values: object) -> list[tuple[Any, ...]]:
    with open_connection(server().url) as connection, connection.transaction():
        connection.execute("SELECT set_config('search_path', %s, true)", (schema,))
        cursor = connection.execute(query, values or None)
        return cursor.fetchall() if cursor.description else []


# -- tables -----------------------------------------------------------------------------------


def test_tables_are_made_once_however_many_want_to(schema: str) -> None:
    url = server().url
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: migrate_database(url, schema), range(4)))
    assert sorted(map(len, done)) == [0, 0, 0, len(postgres_schema.MIGRATIONS)]
    with closing(store_of("it", schema=schema)) as store:
        assert do(store, None, b"1").seq == 1


def test_a_database_without_tables_is_told_from_one_that_is_not_there(schema: str) -> None:
    assert code(lambda: store_of("it", schema=schema)) == "STORE_SCHEMA"
    elsewhere = server().url.replace("/postgres?", "/nothing?")
    assert code(lambda: store_of("it", url=elsewhere)) == "STATE_ERROR"


def test_tables_of_a_newer_version_or_of_another_step_are_left_alone(schema: str) -> None:
    migrate_database(server().url, schema)
    asked(schema, "INSERT INTO migration VALUES (99, 'x')")
    assert code(lambda: migrate_database(server().url, schema)) == "STORE_SCHEMA"
    assert code(lambda: store_of("it", schema=schema)) == "STORE_SCHEMA"
    asked(schema, "DELETE FROM migration WHERE number = 99")
    asked(schema, "UPDATE migration SET checksum = 'another' WHERE number = 1")
    assert code(lambda: migrate_database(server().url, schema)) == "STORE_SCHEMA"


def test_missing_steps_are_done_all_or_none(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate_database(server().url, schema)
    steps = postgres_schema.MIGRATIONS
    further = "ALTER TABLE root_all ADD COLUMN further text"
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", (*steps, further, "CREATE TABLE ("))
    assert code(lambda: migrate_database(server().url, schema)) == "STATE_ERROR"
    assert asked(schema, "SELECT max(number) FROM migration") == [(len(steps),)]
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", (*steps, further))
    assert migrate_database(server().url, schema) == [len(steps) + 1]
    assert asked(schema, "SELECT further FROM root_all") == []


def test_workspaces_see_nothing_of_each_other() -> None:
    with closing(store_of(fresh("one"))) as one, closing(store_of(fresh("two"))) as two:
        done = do(one, None, b"1")
        assert do(two, None, b"2", path="b").seq == 1
        assert code(lambda: two.operation(done.id)) == "NOT_FOUND"
        assert code(lambda: two.content(done.changes.changes[0].after.content)) == "NOT_FOUND"
        assert [one.seq for one in two.operations()] == [1]
        assert two.roots() == (ROOT,)


def test_a_query_that_names_no_workspace_finds_nothing_and_fails() -> None:
    with pytest.raises(psycopg.errors.UndefinedObject):
        asked("filepact", "SELECT * FROM operation")


def test_names_longer_than_an_index_takes_are_kept(store: PostgresStore) -> None:
    long = "/".join(["d" * 250] * 14)
    odd = os.urandom(6_000).hex()
    session = Session(odd, Actor("agent", odd[::-1], odd), conversation=odd, turn=odd)
    done = do(store, None, b"1", path=long, session=session)
    assert [one.id for one in store.operations(path=long, root=ROOT)] == [done.id]
    assert [one.id for one in store.operations(turn=odd)] == [done.id]
    assert store.sessions(session) == {odd}
    assert store.operation(done.id).session.actor == session.actor


def test_text_that_the_database_does_not_take_comes_back_as_it_was(store: PostgresStore) -> None:
    for text in ("\0", "\x1a", "\x1a0000", "a\udcffb", "100 % ?1 {wanted}", "\U0010ffff"):
        done = do(store, None, text.encode("utf-8", "replace"), note=text, summary=text)
        assert (store.operation(done.id).summary, store.unfinished()) == (text, ())


# -- time -------------------------------------------------------------------------------------


def test_partitions_are_made_ahead_and_take_what_came_before_them(schema: str) -> None:
    migrate_database(server().url, schema, width="day")
    with closing(store_of("it", schema=schema)) as store:
        done = do(store, None, b"1")
        later = datetime.now(UTC) + timedelta(days=30)
        asked(schema, "UPDATE operation_all SET recorded = %s", later)
        asked(schema, "UPDATE operation_change_all SET recorded = %s", later)
        with open_connection(server().url) as connection, connection.transaction():
            connection.execute("SELECT set_config('search_path', %s, true)", (schema,))
            made = postgres_schema.make_partitions(connection, later)
            assert postgres_schema.make_partitions(connection, later) == []
        assert f"operation_{later:%Y_%m_%d}" in made
        part = "SELECT tableoid::regclass::text, id FROM operation_all"
        assert asked(schema, part) == [(f"operation_{later:%Y_%m_%d}", done.id)]
        assert store.operation(done.id).changes == done.changes


def test_what_is_recorded_while_its_partition_is_made_is_in_it(schema: str) -> None:
    migrate_database(server().url, schema, width="day")
    later = datetime.now(UTC) + timedelta(days=30)

    def make() -> list[str]:
        with open_connection(server().url) as connection, connection.transaction():
            connection.execute("SELECT set_config('search_path', %s, true)", (schema,))
            return postgres_schema.make_partitions(connection, later)

    with closing(store_of("it", schema=schema)), ThreadPoolExecutor(1) as pool:
        with open_connection(server().url) as writer, writer.transaction():
            writer.execute("SELECT set_config('search_path', %s, true)", (schema,))
            writer.execute(
                "INSERT INTO event_all (workspace, version, recorded, what, change)"
                " VALUES (1, 1, %s, 'it', 'c')",
                (later,),
            )
            made = pool.submit(make)
            waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
            while not made.done() and not asked(schema, waits, "event_rest"):
                pass
        assert f"event_{later:%Y_%m_%d}" in made.result()
    part = "SELECT tableoid::regclass::text FROM event_all WHERE change = 'c'"
    assert asked(schema, part) == [(f"event_{later:%Y_%m_%d}",)]


def test_who_may_make_no_schema_makes_the_tables_in_one_that_is_there(schema: str) -> None:
    asked("public", f"CREATE ROLE {schema} LOGIN")
    asked("public", f"CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    try:
        url = server().url.replace("filepact@", f"{schema}@")
        assert len(migrate_database(url, schema)) == len(postgres_schema.MIGRATIONS)
        assert code(lambda: migrate_database(url, f"{schema}_other")) == "STATE_ERROR"
        with closing(store_of("it", url=url, schema=schema)) as store:
            do(store, None, b"1")
    finally:
        asked("public", f"DROP SCHEMA {schema} CASCADE")
        asked("public", f"DROP ROLE {schema}")


def test_partitions_that_are_old_are_dropped_and_what_is_newer_stays(schema: str) -> None:
    migrate_database(server().url, schema, width="day")
    with closing(store_of("it", schema=schema)) as store:
        old, new = do(store, None, b"1"), do(store, b"1", b"2")
        past = datetime.now(UTC) - timedelta(days=30)
        with open_connection(server().url) as connection, connection.transaction():
            connection.execute("SELECT set_config('search_path', %s, true)", (schema,))
            postgres_schema.make_partitions(connection, past)
        asked(schema, "UPDATE operation_all SET recorded = %s WHERE seq = %s", past, old.seq)
        changed = "UPDATE operation_change_all SET recorded = %s WHERE owner = %s"
        asked(schema, changed, past, old.seq)
        dropped = store.drop_before(datetime.now(UTC) - timedelta(days=7))
        assert f"operation_{past:%Y_%m_%d}" in dropped
        assert [one.id for one in store.operations()] == [new.id]
        assert code(lambda: store.operation(old.id)) == "NOT_FOUND"
        assert store.content(new.changes.changes[0].before.content) == b"1"
        assert store.last_seq() == 2
        assert do(store, b"2", b"3").seq == 3


def test_a_partition_with_an_operation_under_way_is_kept(schema: str) -> None:
    migrate_database(server().url, schema, width="day")
    with closing(store_of("it", schema=schema)) as store:
        begun = store.begin(operation(change("a", None, b"1")), contents(b"1"))
        assert store.drop_before(datetime.now(UTC) + timedelta(days=9)) == ()
        assert store.unfinished() == (begun,)


# -- the order of writers, and events -----------------------------------------------------------


def test_writers_in_many_threads_and_stores_get_places_without_holes() -> None:
    name = fresh()
    stores = [store_of(name, f"gateway {number}") for number in range(3)]

    def work(thread: int) -> list[int]:
        one = stores[thread % 3]
        return [do(one, None, b"%d %d" % (thread, n), path=f"{thread}").seq for n in range(8)]

    with ThreadPoolExecutor(9) as pool:
        found = [seq for seqs in pool.map(work, range(9)) for seq in seqs]
    assert sorted(found) == list(range(1, 73))
    for one in stores:
        one.close()


def test_what_is_done_together_is_what_it_would_be_alone() -> None:
    name = fresh()
    with closing(store_of(name)) as store, closing(store_of(name)) as alone:
        waits = proposal(change("p", None, b"p"))
        store.propose(waits, contents(b"p"))
        known = do(store, None, b"0", path="0")
        given = [
            operation(change("a", None, b"1"), change("b", b"1", b"2", root=OTHER), lines=(1, 0)),
            operation(change("a", b"1", b"\0" * 9_000), directories=((ROOT, "x"),)),
            operation(change("p", None, b"p"), id=waits.id, approved_by="ada"),
            operation(change("a", b"1", b"2"), id=known.id),
            operation(change("c", b"not", b"given")),
            operation(change("0", b"0", b"00"), session=Session("s\0", Actor("agent", "b", ""))),
        ]
        data = contents(b"1", b"2", b"\0" * 9_000, b"p", b"00")
        results: dict[str, object] = {}

        def begin(one: Any) -> None:
            try:
                results[one.id] = store.begin(one, data)
            except (FilepactError, ValueError) as error:
                results[one.id] = error

        with blocked(name):
            threads = [threading.Thread(target=begin, args=(one,)) for one in given]
            for one in threads:
                one.start()
            wait_for(store, len(given))
        for one in threads:
            one.join()
        assert results[known.id].code == "NO_CHANGE"
        assert type(results[given[4].id]) is ValueError
        for one in given[:3] + given[5:]:
            found = alone.operation(one.id)
            assert found == results[one.id]
            assert found.changes == one.changes
            assert (found.directories, found.lines) == (one.directories, one.lines)
            assert found.session == one.session
            for side in (found.changes.changes[0].before, found.changes.changes[0].after):
                assert side is None or alone.content(side.content) in data.values() or b"0"
        assert alone.proposal(waits.id).state == "committed"
        assert sorted(one.seq for one in alone.unfinished()) == [2, 3, 4, 5]


class blocked:  # noqa: N801 - reads as what it does
    """Keeps all writers of a workspace waiting."""

    def __init__(self, workspace: str) -> None:
        self.connection = open_connection(server().url)
        self.workspace = workspace

    def __enter__(self) -> None:
        self.connection.execute("BEGIN")
        self.connection.execute(
            "SELECT 1 FROM filepact.workspace WHERE name = %s FOR UPDATE", (self.workspace,)
        )

    def __exit__(self, *_error: object) -> None:
        self.connection.close()


def wait_for(store: PostgresStore, count: int) -> None:
    """Until so many wait to write, those counted that somebody is trying to do."""
    while store.waiting < count:
        threading.Event().wait(0.005)


def at_once(store: PostgresStore, name: str, *works: Callable[[], object]) -> list[Any]:
    """What each of some changes comes to that wait for their turn together, after another one."""
    found: list[Any] = [None] * len(works)

    def run(at: int) -> None:
        try:
            found[at] = works[at]()
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            found[at] = error

    threads = [threading.Thread(target=wrote(store, lambda _tx: None))]
    threads += [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    with blocked(name):
        for count, one in enumerate(threads, 1):
            one.start()
            wait_for(store, count)
    for one in threads:
        one.join()
    return found


def wrote(store: PostgresStore, work: Callable[[Any], object]) -> Callable[[], object]:
    """A change of the database."""
    return lambda: store._server.write(work, durable=True)


def refused(tx: Any) -> object:
    """What the database does not take."""
    return tx.all("SELECT 1 / 0")


def mistaken(_tx: Any) -> object:
    raise LookupError("a mistake")


class Stopped(BaseException):
    """What a signal has a thread end with."""


def stopped(*_given: object) -> object:
    raise Stopped


def test_what_the_database_does_not_take_stops_no_other_change(
    store: PostgresStore, name: str
) -> None:
    waits, data = proposal(change("p", None, b"p")), contents(b"p", b"1")
    refusal, none, mistake, begun = at_once(
        store,
        name,
        wrote(store, refused),
        lambda: store.propose(waits, data),
        wrote(store, mistaken),
        lambda: store.begin(operation(change("a", None, b"1")), data),
    )
    assert (refusal.code, none, type(mistake)) == ("STATE_ERROR", None, LookupError)
    assert store.proposal(waits.id).state == "proposed"
    assert store.unfinished() == (begun,)


def test_a_mistake_in_one_change_leaves_nothing_of_those_with_it_and_all_are_told(
    store: PostgresStore, name: str
) -> None:
    one = operation(change("a", None, b"1"))
    begin = partial(store.begin, one, contents(b"1"))
    found = at_once(store, name, begin, wrote(store, mistaken))
    assert [*map(type, found)] == [LookupError] * 2
    assert store.unfinished() == ()
    assert begin().seq == 1


def test_who_is_stopped_with_changes_of_others_to_do_tells_them_that_they_are_not_done(
    store: PostgresStore, name: str
) -> None:
    one = operation(change("a", None, b"1"))
    begin = partial(store.begin, one, contents(b"1"))
    found = at_once(store, name, wrote(store, refused), wrote(store, stopped), begin)
    assert [*map(type, found)] == [Stopped] * 3
    assert store.unfinished() == ()
    assert begin().seq == 1


@pytest.fixture
def stop() -> Iterator[Callable[[], None]]:
    """Stops the main thread, wherever it is."""
    before = signal.signal(signal.SIGUSR1, stopped)
    yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_who_is_stopped_while_it_waits_for_its_turn_has_done_nothing(
    store: PostgresStore, name: str, stop: Callable[[], None]
) -> None:
    def stop_second() -> None:
        wait_for(store, 2)
        stop()

    with ThreadPoolExecutor(2) as pool:
        with blocked(name):
            first = pool.submit(do, store, None, b"1")
            wait_for(store, 1)
            pool.submit(stop_second)
            with pytest.raises(Stopped):
                do(store, None, b"2")
        done = first.result()
    assert store.operations() == (done,)


def test_who_is_stopped_before_it_has_begun_leaves_the_lead_to_the_next(
    store: PostgresStore, stop: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits for many that never come.
    monkeypatch.setattr(postgres_connection, "_GATHERING", 600.0)
    store._server._crowd = 100

    def stop_first() -> None:
        wait_for(store, 2)
        store._server._crowd = 0
        stop()

    def follow() -> Operation:
        wait_for(store, 1)
        return do(store, None, b"1")

    with ThreadPoolExecutor(2) as pool:
        second = pool.submit(follow)
        pool.submit(stop_first)
        with pytest.raises(Stopped):
            do(store, None, b"2")
        done = second.result()
    assert store.operations() == (done,)


def test_what_has_no_new_contents_or_no_files_is_done_together_as_well(
    store: PostgresStore, name: str
) -> None:
    do(store, None, b"1", path="a")
    chat = Session("s2", Actor("agent", "b", ""), conversation="c")
    folders = [operation(directories=((ROOT, one),), session=chat) for one in ("x", "y")]
    copies = [operation(change(one, None, b"1")) for one in ("b", "c")]
    for some in (folders, copies):
        begun = at_once(store, name, *(partial(store.begin, one, {}) for one in some))
        found = [store.operation(one.id) for one in some]
        assert [one.seq for one in found] == [one.seq for one in begun]
        assert [one.changes for one in found] == [one.changes for one in some]
        assert [one.directories for one in found] == [one.directories for one in some]
    assert store.sessions(chat) == {"s2"}


def test_a_workspace_that_is_gone_from_the_database_takes_nothing(
    store: PostgresStore, name: str
) -> None:
    asked("filepact", "DELETE FROM workspace WHERE name = %s", name)
    assert code(lambda: do(store, None, b"1")) == "STATE_ERROR"


def test_who_finds_all_connections_in_use_for_too_long_is_told(store: PostgresStore) -> None:
    store._server._patience = 0.05
    with ExitStack() as stack:
        for _ in range(postgres_connection._CONNECTIONS):
            stack.enter_context(store._server._lent())
        assert code(store.last_seq) == "TIMEOUT"
    store._server._patience = 15.0
    assert store.last_seq() == 0


def test_events_are_told_in_the_order_of_their_transactions_and_none_is_missed() -> None:
    name = fresh()
    with closing(store_of(name)) as store, closing(store_of(name, "another")) as other:
        waits = proposal(change("p", None, b"p"))
        store.propose(waits, contents(b"p"))
        first = do(other, None, b"1")
        store.begin(operation(change("p", None, b"p"), id=waits.id), {})
        seen = store.events("reader")
        assert [(one.what, one.change_id) for one in seen] == [
            ("proposal proposed", waits.id),
            ("operation intended", first.id),
            ("operation applied", first.id),
            ("proposal committed", waits.id),
            ("operation intended", waits.id),
        ]
        # Until it is told that they were dealt with, they come again.
        assert store.events("reader") == seen
        store.seen("reader", seen[2].version)
        assert other.events("reader") == seen[3:]
        assert other.events("reader", limit=1) == seen[3:]
        assert len(store.events("another reader")) == 5


# -- leases -------------------------------------------------------------------------------------


def test_what_another_has_begun_is_left_to_it_while_it_lives() -> None:
    name = fresh()
    with (
        closing(store_of(name, "dead")) as dead,
        closing(store_of(name, "heir", takes_over=True)) as heir,
    ):
        begun = dead.begin(operation(change("a", None, b"1")), contents(b"1"))
        assert dead.unfinished() == (begun,)
        assert heir.unfinished() == ()


def test_what_a_dead_gateway_had_begun_is_taken_over_and_its_late_word_refused() -> None:
    name = fresh()
    with (
        closing(store_of(name, f"dead {name}", lease=0.0)) as dead,
        closing(store_of(name, f"heir {name}", takes_over=True)) as heir,
        closing(store_of(name, f"modest {name}")) as modest,
    ):
        begun = dead.begin(operation(change("a", None, b"1")), contents(b"1"))
        assert modest.unfinished() == ()
        assert heir.unfinished() == (begun,)
        assert code(lambda: dead.finish(begun.id, state="applied")) == "STORE_FENCED"
        # It goes on with another token, and still may not end what is another's now.
        assert code(lambda: dead.finish(begun.id, state="applied")) == "STORE_FENCED"
        heir.finish(begun.id, state="rolled_back")
        assert do(dead, None, b"2", path="b").state == "applied"
        assert heir.operation(begun.id).state == "rolled_back"


def test_a_process_of_the_same_holder_ends_what_another_of_it_has_begun() -> None:
    name = fresh()
    with closing(store_of(name)) as one, closing(store_of(name)) as two:
        begun = one.begin(operation(change("a", None, b"1")), contents(b"1"))
        assert two.unfinished() == (begun,)
        two.finish(begun.id, state="applied")
        assert one.operation(begun.id).state == "applied"


# -- faults -------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_an_error_without_its_address() -> None:
    with pytest.raises(FilepactError) as caught:
        store_of("it", url="postgresql://ada@/secrets?host=/nonexistent", patience=0.0)
    assert caught.value.code == "STORE_UNREACHABLE"
    assert not {"ada", "secrets", "nonexistent"} & set(caught.value.report().split())
    for url in ("postgresql://[", "postgresql://ada:secret@/x", "postgresql:///x?password=secret"):
        assert code(lambda url=url: store_of("it", url=url)) == "INVALID_PARAMS"


def test_a_connection_that_breaks_between_two_calls_is_made_anew(store: PostgresStore) -> None:
    do(store, None, b"1")
    end_connections()
    assert do(store, b"1", b"2").seq == 2


def end_connections() -> None:
    asked(
        "filepact",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )


@pytest.mark.parametrize("late", [False, True], ids=["before the commit", "after the commit"])
def test_a_commit_whose_answer_is_lost_is_done_exactly_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    real = postgres_connection.commit
    lost: list[bool] = []

    def commit(connection: Any, line: Any) -> None:
        if lost:
            real(connection, line)
            return
        lost.append(True)
        if late:
            real(connection, line)
        end_connections()
        connection.execute("SELECT 1").fetchall()

    monkeypatch.setattr(postgres_connection, "commit", commit)
    begun = store.begin(operation(change("a", None, b"1")), contents(b"1"))
    assert lost
    assert store.unfinished() == (begun,)
    assert store.last_seq() == 1


def test_a_commit_of_which_nobody_can_be_asked_is_told_as_that(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(connection: Any, line: Any) -> None:
        end_connections()
        store._server._url = "postgresql://ada@/x?host=/nonexistent"
        store._server._patience = 0.1
        connection.execute("SELECT 1").fetchall()

    monkeypatch.setattr(postgres_connection, "commit", commit)
    assert code(lambda: do(store, None, b"1")) == "STORE_UNSURE"


def test_a_database_that_only_reads_says_so(schema: str) -> None:
    migrate_database(server().url, schema)
    with closing(store_of("it", schema=schema)) as store:
        do(store, None, b"1")
    url = f"{server().url}&options=-c%20default_transaction_read_only%3Don"
    with closing(store_of("it", schema=schema, url=url)) as store:
        assert store.last_seq() == 1
        assert code(lambda: do(store, None, b"2")) == "STORE_READ_ONLY"


def test_who_waits_too_long_for_other_writers_is_told() -> None:
    name = fresh()
    with closing(store_of(name)) as store, blocked(name):
        # Not before it is open, which may take a busy machine longer.
        store._server._patience = 0.3
        assert code(lambda: do(store, None, b"1")) == "TIMEOUT"


def test_a_closed_journal_says_so(store: PostgresStore) -> None:
    store.close()
    assert code(store.last_seq) == "STATE_ERROR"


CLIENT = """
import sys
from filepact_fleet.postgres import PostgresStore
from tests.store.making import change, contents, operation
url, name = sys.argv[1:]
store = PostgresStore(url, workspace=name, holder="killed", patience=60)
for number in range(10_000):
    data = b"%d" % number
    done = store.begin(operation(change("a", None, data)), contents(data))
    store.finish(done.id, state="applied")
    print(done.id, flush=True)
"""


def client(url: str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, url, name], stdout=subprocess.PIPE, text=True
    )


def test_what_a_killed_process_was_told_is_in_the_journal() -> None:
    name = fresh()
    with client(server().url, name) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(5)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().split()
    with closing(store_of(name, "killed")) as store:
        finished = [one.id for one in store.operations(limit=None, newest_first=False)]
        open_still = [one.id for one in store.unfinished()]
    assert finished[: len(told)] == told
    assert len(finished) + len(open_still) <= len(told) + 2


@pytest.mark.slow(measured=True)
def test_a_server_that_crashes_loses_nothing_and_nothing_is_done_twice() -> None:
    one = Server(server().binaries, fsync="on")
    try:
        migrate_database(one.url)
        name = fresh()
        told = []
        with client(one.url, name) as process:
            assert process.stdout is not None
            for _ in range(3):
                told += [process.stdout.readline().strip() for _ in range(20)]
                one.restart()
            told += [process.stdout.readline().strip() for _ in range(20)]
            process.send_signal(signal.SIGKILL)
            told += process.stdout.read().split()
        with closing(store_of(name, "killed", url=one.url)) as store:
            finished = [one.id for one in store.operations(limit=None, newest_first=False)]
        assert finished[: len(told)] == told
        assert len(set(finished)) == len(finished) <= len(told) + 1
    finally:
        one.remove()


# -- what is told, and what is begun and ended together ---------------------------------------------


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("57014", "TIMEOUT"),
        ("53100", "STORE_FULL"),
        ("25006", "STORE_READ_ONLY"),
        ("42P01", "STORE_SCHEMA"),
        ("28P01", "STATE_ERROR"),
        ("08006", "STORE_UNREACHABLE"),
        ("40001", "STORE_UNREACHABLE"),
        ("23505", "STATE_ERROR"),
    ],
)
def test_each_error_of_the_database_has_a_code_of_ours(state: str, wanted: str) -> None:
    assert told(psycopg.errors.lookup(state)("x")).code == wanted


def test_a_password_of_an_earlier_connection_is_used_again() -> None:
    with open_connection(server().url, "not needed here") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def together(rows: list[tuple[Any, ...]], *changes: Any, given: dict[str, bytes]) -> Any:
    kept = postgres_together._Contents(rows)
    try:
        return kept.sides(changes, given), len(kept.fresh)
    except (LookupError, ValueError) as error:
        return type(error), len(kept.fresh)


def test_contents_that_cannot_be_begun_together_leave_nothing_behind() -> None:
    one, two = change("a", None, b"one\n"), change("a", b"one\n", b"two\n")
    old, new = contents(b"one\n"), contents(b"two\n")
    (name,) = old
    assert together([], one, given=old) == ([(None, -1)], 1)
    assert together([], one, one, given=old) == ([(None, -1), (None, -1)], 1)
    assert together([(name, 7, 0, "row")], two, given=old | new) == ([(7, -1)], 1)
    assert together([(name, 7, 9_999, "row")], two, given=old | new) == ([(7, -1)], 1)
    long = b"".join(b"%d\n" % number for number in range(9_000))
    grown = change("a", long, long + b"more\n")
    row, given = (*contents(long), 7, LONGEST_CHAIN, "row"), contents(long, long + b"more\n")
    assert together([row], grown, given=given) == ([(7, -1)], 1)
    assert together([(name, 7, 0, "row")], two, given=new) == (LookupError, 0)
    assert together([(name, 0, 0, "gone")], two, given=old | new) == (LookupError, 0)
    assert together([], one, two, given=old) == (ValueError, 0)
    assert together([], change("a", b"one\n", None), given=old) == ([(-1, None)], 1)


def test_folders_alone_and_kept_contents_are_begun(store: PostgresStore) -> None:
    do(store, None, b"one\n", path="a")
    again = operation(change("b", None, b"one\n"))
    assert store.begin(again, {}).seq == 2
    folders = operation(directories=((ROOT, "new"), (OTHER, "deep/new")))
    assert store.begin(folders, {}).directories == folders.directories
    with pytest.raises(ValueError, match="not given"):
        store.begin(operation(change("c", None, b"never given\n")), {})
    assert code(lambda: store.begin(again, {}))
    assert code(lambda: store.finish(operation().id, state="applied")) == "NOT_FOUND"


class Rows:
    """A transaction that answers every question with the same rows."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.answer = list(rows)

    def ask(self, *_question: object) -> Rows:
        return self

    def rows(self) -> list[tuple[Any, ...]]:
        return self.answer


def test_what_cannot_be_done_together_is_left_to_be_done_alone() -> None:
    alone: Any = postgres_together.ALONE
    one = operation(change("a", None, b"one\n"))
    nothing: Any = Rows()
    assert postgres_together.begin_together(nothing, [(one, {}), (one, {})]) == [alone, alone]
    found: Any = Rows(
        ("c1", 1, "intended", "change", False),
        ("c2", 2, "intended", "change", True),
        ("c3", 3, "applied", "change", False),
        ("c4", 4, "intended", "change", False),
    )
    given: list[Any] = [(name, "applied", "") for name in ("c1", "c2", "c3", "c4", "c4", "c5")]
    done, fenced, *others, missing = postgres_together.finish_together(found, given)
    assert done is None
    assert (fenced.code, missing.code) == ("STORE_FENCED", "NOT_FOUND")
    assert others == [alone] * 3
    assert postgres_together.finish_together(found, given[2:3]) == [alone]

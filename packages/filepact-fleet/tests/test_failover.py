"""A journal in a database with a standby: what is acknowledged is on both, and goes on at the other."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from filepact.errors import FilepactError
from tests.postgres import Server, server
from tests.store.making import change, contents, operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from filepact_fleet.postgres import PostgresStore  # noqa: E402
from filepact_fleet.postgres_connection import migrate_database  # noqa: E402
from filepact_fleet.postgres_words import open_connection  # noqa: E402

PATIENCE = 60.0
NUMBERS = itertools.count()
WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class Pair:
    """A server, and a standby without which it acknowledges nothing."""

    def __init__(self) -> None:
        self.primary = Server(server().binaries)
        migrate_database(self.primary.url)
        self.standby = Server(self.primary.binaries, of=self.primary)
        self.asked("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.asked("SELECT pg_reload_conf()")
        self.wait_for("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    @property
    def url(self) -> str:
        """Where either of them is that takes changes."""
        hosts = f"{self.primary.folder},{self.standby.folder}"
        return f"postgresql://filepact@/postgres?host={hosts}&target_session_attrs=read-write"

    def asked(self, query: str) -> list[tuple[Any, ...]]:
        """What the primary answers."""
        with open_connection(self.primary.url) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def wait_for(self, query: str) -> list[tuple[Any, ...]]:
        """What the primary answers, once it is anything."""
        end = time.monotonic() + PATIENCE
        while not (found := self.asked(query)):
            assert time.monotonic() < end, query
            threading.Event().wait(0.02)
        return found

    def store(self, url: str = "", **given: Any) -> PostgresStore:
        return PostgresStore(url or self.url, workspace="it", **({"holder": "of it"} | given))


@pytest.fixture
def pair() -> Iterator[Pair]:
    one = Pair()
    try:
        yield one
    finally:
        one.standby.remove()
        one.primary.remove()


def code(act: Callable[[], object]) -> str:
    with pytest.raises(FilepactError) as caught:
        act()
    return caught.value.code


class Writer:
    """Begins and ends one operation after the other until it is stopped.

    Attributes:
        begun: What it was told that it is begun.
        ended: What it was told that it is ended.
        refused: What it was told that it is not begun, and with which code.
    """

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.refused: dict[str, str] = {}
        self.stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                self.once()
        finally:
            self.stopped.set()

    def once(self) -> None:
        data = b"%d" % next(NUMBERS)
        one = operation(change("a", None, data))
        try:
            self.store.begin(one, contents(data))
        except FilepactError as error:
            self.refused[one.id] = error.code
            return
        self.begun.append(one.id)
        with suppress(FilepactError):
            self.store.finish(one.id, state="applied")
            self.ended.append(one.id)

    def wait_for(self, count: int) -> None:
        """Until it was told of so many more that they are ended."""
        count += len(self.ended)
        while len(self.ended) < count and not self.stopped.is_set():
            threading.Event().wait(0.02)


@pytest.mark.slow
def test_a_standby_that_takes_over_has_what_was_acknowledged_and_writers_go_on(pair: Pair) -> None:
    gateways = [pair.store(holder=f"of {number}", patience=90.0) for number in range(2)]
    patient = [Writer(one) for one in gateways * 2]
    hasty = Writer(pair.store(holder="hasty"))
    hasty.store._server._patience = 0.5
    writers = [*patient, hasty]
    with ThreadPoolExecutor(len(writers)) as pool:
        ends = [pool.submit(one.run) for one in writers]
        try:
            for one in patient:
                one.wait_for(10)
            # It may not have yet what was acknowledged last: no answer is better than an old one.
            alone = {"url": pair.standby.url, "patience": 0.2}
            assert code(lambda: pair.store(**alone)) == "STORE_READ_ONLY"
            pair.primary.stop("immediate")
            known = len(hasty.refused)
            while len(hasty.refused) < known + 3 and not hasty.stopped.is_set():
                threading.Event().wait(0.02)
            assert code(lambda: pair.store(**alone)) == "STORE_READ_ONLY"
            assert code(lambda: pair.store(patience=0.2)) == "STORE_UNREACHABLE"
            pair.standby.promote()
            for one in writers:
                one.wait_for(10)
        finally:
            for one in writers:
                one.stopped.set()
    for end in ends:
        end.result()
    with open_connection(pair.standby.url) as connection:
        rows = connection.execute("SELECT id, state FROM filepact.operation_all").fetchall()
    states = dict(rows)
    assert len(states) == len(rows) == patient[0].store.last_seq()
    for one in writers:
        one.store.close()
        assert set(one.begun) <= set(states)
        assert {states[id_] for id_ in one.ended} == {"applied"}
        assert not {id_ for id_, why in one.refused.items() if why != "STORE_UNSURE"} & set(states)
    # Whoever had time enough was told of nothing.
    assert [one.refused for one in patient] == [{}] * len(patient)
    assert [one.begun for one in patient] == [one.ended for one in patient]
    assert set(hasty.refused.values()) <= {"STORE_UNREACHABLE", "STORE_UNSURE", "TIMEOUT"}


@pytest.mark.slow
def test_nothing_is_acknowledged_that_the_standby_does_not_have(pair: Pair) -> None:
    with (
        closing(pair.store(patience=2.0)) as hasty,
        closing(pair.store(patience=30.0)) as store,
        ThreadPoolExecutor(1) as pool,
    ):
        pair.standby.stop()
        # The server itself waits for ever; who asks does not.
        waits = operation(change("a", None, b"1"))
        assert code(lambda: hasty.begin(waits, contents(b"1"))) == "STORE_UNSURE"
        # Somebody ends that wait, and this one's; the server calls it committed then.
        for (pid,) in pair.asked(WAITS):
            pair.asked(f"SELECT pg_cancel_backend({pid})")
        while pair.asked(WAITS):
            threading.Event().wait(0.02)
        late = operation(change("b", None, b"2"))
        asked = pool.submit(store.begin, late, contents(b"2"))
        ((first,),) = pair.wait_for(WAITS)
        pair.asked(f"SELECT pg_cancel_backend({first})")
        pair.wait_for(f"{WAITS} AND pid <> {first}")
        assert not asked.done()
        pair.standby.start()
        assert asked.result().seq == 2
        assert [one.id for one in store.unfinished()] == [waits.id, late.id]

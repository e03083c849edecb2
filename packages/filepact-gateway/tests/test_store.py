"""What the processes of a gateway have in common, in a real file."""

from __future__ import annotations

import itertools
import os
import time
from importlib import import_module

import apsw
import pytest

from filepact.domain.operation import StoreOptions
from filepact.errors import StateFailedError, StoreUnreachableError
from filepact.fs.state import open_state
from filepact_fleet.checkout_index import CheckoutIndex
from filepact_gateway.opening import open_gateway_store
from filepact_gateway.store import SqliteGatewayStore
from tests.postgres import Server, server

NUMBERS = itertools.count()


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "gateway.db")


@pytest.fixture(params=["file", "database"])
def opened(request, path):
    """Opens what gateways have in common, as another one would."""
    scope = f"test {os.getpid()} {next(NUMBERS)}"

    def opened(**options):
        local = SqliteGatewayStore(path, **options)
        if request.param == "file":
            return local
        url = server().url
        postgres = import_module("filepact_gateway.shared_store")
        return postgres.PostgresGatewayStore(local, url, scope=scope, holder=scope, **options)

    return opened


def test_the_first_secret_is_the_one_of_all_processes(opened):
    one, other = opened(), opened()
    assert one.secret("s", b"first") == other.secret("s", b"second") == b"first"
    one.close()
    other.close()
    again = opened()
    assert again.secret("s", b"third") == b"first"
    again.close()


def test_a_session_that_was_ended_is_known_everywhere_until_nobody_takes_it_anyway(opened):
    one, other = opened(), opened()

    def ended(session):
        """Whether the other one knows, as a gateway asks it."""
        if not other.up_to_date():
            other.hear()
        return other.has_ended(session)

    assert not ended("s")
    time.sleep(one.end("s", one.now() + 60))
    assert ended("s")
    time.sleep(one.end("old", one.now() - 1))
    time.sleep(one.end("t", one.now() + 60))
    assert (ended("s"), ended("t")) == (True, True)
    again = opened()
    assert (again.has_ended("s"), again.has_ended("old")) == (True, False)
    for store in (one, other, again):
        store.close()


def test_what_ended_sessions_are_known_is_kept_while_the_database_is_away(path):
    postgres = import_module("filepact_gateway.shared_store")
    own = Server(server().binaries)
    try:
        import_module("filepact_fleet.postgres_connection").migrate_database(own.url)
        one, other = (
            postgres.PostgresGatewayStore(SqliteGatewayStore(path), own.url, scope="s", holder=name)
            for name in ("one", "other")
        )
        one.end("s", one.now() + 60)
        other.hear()
        own.stop()
        for store in (one, other):
            store._database._patience = 0.1
        with pytest.raises(StoreUnreachableError):
            one.end("t", one.now() + 60)
        other.hear()
        assert (other.has_ended("s"), other.up_to_date()) == (True, True)
        own.start()
        one.end("t", one.now() + 60)
        time.sleep(postgres._HEARD)
        assert not other.up_to_date()
        other.hear()
        assert other.has_ended("t")
        one.close()
        other.close()
    finally:
        own.remove()


def test_a_request_is_claimed_once_and_its_answer_kept(opened):
    one, other = opened(), opened()
    assert other.find("k") is None
    assert one.claim("k", "write a") is None
    assert other.claim("k", "write a") == other.find("k") == ("write a", None)
    one.keep("k", {"content": ["é"]})
    assert other.find("k") == ("write a", {"content": ["é"]})
    assert other.claim("k", "write b") == ("write a", {"content": ["é"]})
    one.release("k", "write a")
    assert other.claim("k", "write b") is not None
    assert one.claim("l", "write a") is None
    one.release("l", "another use")
    assert other.claim("l", "write a") == ("write a", None)
    one.release("l", "write a")
    assert other.claim("l", "write b") is None
    one.close()
    other.close()


def test_old_answers_are_given_up(opened):
    store = opened(kept=0.0)
    assert store.claim("k", "x") is None
    for number in range(100):
        store.claim(f"other {number}", "x")
    assert store.claim("k", "x") is None
    store.close()


def test_a_file_of_another_version_is_begun_anew(path):
    database = apsw.Connection(path)
    database.execute("CREATE TABLE ended (x); PRAGMA user_version = 99")
    database.close()
    store = SqliteGatewayStore(path)
    assert store.ready()
    assert not store.has_ended("s")
    store.close()


def test_a_file_that_cannot_be_used_is_told(path, tmp_path):
    with pytest.raises(StateFailedError):
        SqliteGatewayStore(str(tmp_path / "missing" / "gateway.db"))
    store = SqliteGatewayStore(path)
    store.close()
    assert not store.ready()
    with pytest.raises(StateFailedError):
        store.has_ended("s")


def test_gateways_that_serve_the_same_shared_workspace_know_each_others_requests(tmp_path):
    options = StoreOptions(server().url)
    place = f"s3://team/{os.getpid()}"

    def gateway(name, url):
        root, state = tmp_path / name, str(tmp_path / f"state of {name}")
        root.mkdir()
        if url:
            CheckoutIndex(open_state(state).checkout(str(root))).begin(url, name)
        return open_gateway_store(state, {"": [str(root)]}, options)

    places = {"one": place, "two": place, "other": f"{place}-2", "disk": "", "disk2": ""}
    stores = {name: gateway(name, url) for name, url in places.items()}
    assert stores["one"].claim("k", "write a") is None
    assert stores["two"].claim("k", "write a") == ("write a", None)
    for name in ("other", "disk", "disk2"):
        assert stores[name].claim("k", "write a") is None
    for one in stores.values():
        one.close()


def test_processes_that_open_a_new_file_at_the_same_moment_wait_for_each_other(path, monkeypatch):
    """SQLite refuses at once where two switch to a write-ahead log."""

    class Hasty(apsw.Connection):
        refused = 3

        def pragma(self, name, *values):
            if name == "journal_mode" and Hasty.refused:
                Hasty.refused -= 1
                raise apsw.BusyError("database is locked")
            return super().pragma(name, *values)

    monkeypatch.setattr(apsw, "Connection", Hasty)
    store = SqliteGatewayStore(path)
    assert Hasty.refused == 0
    assert store.ready()
    store.close()

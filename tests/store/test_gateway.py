"""What the processes of a gateway have in common, in a real file."""

from __future__ import annotations

import time

import apsw
import pytest

from filepact.errors import StateFailedError
from filepact.store.gateway import SqliteGatewayStore


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "gateway.db")


def test_the_first_secret_is_the_one_of_all_processes(path):
    one, other = SqliteGatewayStore(path), SqliteGatewayStore(path)
    assert one.secret("s", b"first") == other.secret("s", b"second") == b"first"
    one.close()
    other.close()
    again = SqliteGatewayStore(path)
    assert again.secret("s", b"third") == b"first"
    again.close()


def test_a_session_that_was_ended_is_known_everywhere_until_nobody_takes_it_anyway(path):
    one, other = SqliteGatewayStore(path), SqliteGatewayStore(path)
    assert not other.has_ended("s")
    one.end("s", time.time() + 60)
    one.end("old", time.time() - 1)
    assert other.has_ended("s")
    one.end("t", time.time() + 60)
    assert not other.has_ended("old")
    one.close()
    other.close()


def test_a_request_is_claimed_once_and_its_answer_kept(path):
    one, other = SqliteGatewayStore(path), SqliteGatewayStore(path)
    assert one.claim("k", "write a") is None
    assert other.claim("k", "write a") == ("write a", None)
    one.keep("k", {"content": ["é"]})
    assert other.claim("k", "write b") == ("write a", {"content": ["é"]})
    one.close()
    other.close()


def test_old_answers_are_given_up(path):
    store = SqliteGatewayStore(path, kept=0.0)
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

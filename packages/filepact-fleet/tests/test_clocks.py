"""Machines whose clocks differ by a day use one journal in a database: the server's clock decides."""

from __future__ import annotations

import itertools
import os
import time
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import (
    PREVIEW_MODE,
    Actor,
    Approval,
    ProposalLimits,
    StoreOptions,
)
from filepact.domain.policy import Policy
from filepact.errors import SessionUnknownError
from filepact.values import replace
from filepact.workspace.authorizer import SessionPermissions
from filepact.workspace.pending import PendingProposals
from filepact.workspace.read_tracker import KnownTextCache
from filepact.workspace.session_approvals import SessionApprovals
from filepact_gateway.store import SqliteGatewayStore
from filepact_gateway.tokens import SessionTokens
from tests.postgres import server
from tests.store.making import ROOT, SESSION, change, contents, do, proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytest.importorskip("psycopg", reason="psycopg is not installed")

from filepact_fleet import postgres_upkeep
from filepact_fleet.postgres import PostgresStore
from filepact_fleet.postgres_connection import migrate_database
from filepact_fleet.postgres_words import open_connection
from filepact_gateway.shared_store import PostgresGatewayStore

NUMBERS = itertools.count()
DAY = 86_400.0
ADA = Approval(Actor("person", "ada", ""))


@pytest.fixture(params=[-DAY, DAY], ids=["a day behind", "a day ahead"])
def elsewhere(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """From then on this process is on a machine whose clock is wrong."""
    right = time.time
    return lambda: monkeypatch.setattr(time, "time", lambda: right() + request.param)


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    name = f"clocks {os.getpid()} {next(NUMBERS)}"
    with closing(PostgresStore(server().url, workspace=name, holder=name)) as opened:
        yield opened


def test_what_was_approved_in_advance_ends_at_all_machines_at_the_same_time(
    store: PostgresStore, elsewhere: Callable[[], None]
) -> None:
    waits = proposal(change("a", None, b"1"), rule=PREVIEW_MODE)
    (path,) = waits.changes.paths
    store.propose(waits, contents(b"1"))
    approvals = SessionApprovals(store, Policy(()))
    given = approvals.give(waits, "a", ADA)
    over = replace(given, id=f"g{given.id[::-1][:-1]}", pattern="b", expires=store.now() - 60)
    store.add_session_approval(over)
    elsewhere()
    assert SessionPermissions(store, SESSION).allows(path, PREVIEW_MODE)
    there = path._replace(path="b")
    assert not SessionPermissions(store, SESSION).allows(there, PREVIEW_MODE)
    assert [one.id for one in approvals.in_force()] == [given.id]
    approvals.revoke(given.id)
    assert not SessionPermissions(store, SESSION).allows(path, PREVIEW_MODE)


def test_what_one_machine_proposes_does_not_expire_by_the_clock_of_another(
    store: PostgresStore, elsewhere: Callable[[], None]
) -> None:
    def machine() -> PendingProposals:
        limits = ProposalLimits(days=1)
        return PendingProposals(store, KnownTextCache(), lambda _path: None, limits=limits)

    here, theirs, late = (proposal(change(one, None, b"1")) for one in "abc")
    machine().propose(here, contents(b"1"))
    store.propose(replace(late, created=store.now() - DAY - 60), contents(b"1"))
    elsewhere()
    machine().propose(theirs, contents(b"1"))
    machine().expire()
    states = [store.proposal(one.id).state for one in (here, theirs, late)]
    assert states == ["proposed", "proposed", "expired"]


def test_a_session_lasts_as_long_at_every_gateway(
    tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    scope = f"clocks {os.getpid()} {next(NUMBERS)}"

    def gateway(name: str) -> PostgresGatewayStore:
        local = SqliteGatewayStore(str(tmp_path / name))
        return PostgresGatewayStore(local, server().url, scope=scope, holder=name)

    def tokens(store: PostgresGatewayStore, lasts: float) -> SessionTokens:
        secret = store.secret("sessions", os.urandom(32))
        return SessionTokens(secret, lasts=lasts, has_ended=store.has_ended, clock=store.now)

    with closing(gateway("one")) as one:
        session, token = tokens(one, 3_600.0).open("2025-11-25", ("c", "1"), user="", realm="")
        elsewhere()
        with closing(gateway("two")) as two:
            found = tokens(two, 3_600.0).read(token, user="", realm="")
            assert found == session
            with pytest.raises(SessionUnknownError):
                tokens(two, -60.0).read(token, user="", realm="")
            two.end(session.id, session.begun + 3_600.0)
            two.end("another", session.begun + 3_600.0)
            two.hear()
            with pytest.raises(SessionUnknownError):
                tokens(two, 3_600.0).read(token, user="", realm="")


def test_what_is_old_is_not_dropped_by_the_clock_of_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ahead(datetime):
        """The clock of a machine that is 30 days ahead."""

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return super().now(tz) + timedelta(days=30)

    schema = f"clocks_{os.getpid()}_{next(NUMBERS)}"
    options = StoreOptions(server().url, "it", schema=schema)
    migrate_database(options.url, schema, width="day")
    try:
        with closing(
            PostgresStore(options.url, workspace="it", holder="it", schema=schema)
        ) as store:
            done = do(store, None, b"1", root=ROOT)
            monkeypatch.setattr(postgres_upkeep, "datetime", Ahead)
            assert postgres_upkeep.StoreDatabase(options, "it", "").prune(days=7) == ()
            assert store.operation(done.id).state == "applied"
    finally:
        with open_connection(options.url) as connection:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())

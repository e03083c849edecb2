"""Several workers are one gateway: sessions, cancellation, a worker that is killed, and the end."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.faces.gateway.running import Client, RunningGateway
from tests.faces.small_server import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def workers(base: Path) -> Iterator[RunningGateway]:
    running = RunningGateway(base, [str(base / "root"), "--workers", "2"])
    yield running
    assert running.end() == 0


def children(process: int) -> set[int]:
    path = f"/proc/{process}/task/{process}/children"
    with open(path) as stream:
        return {int(one) for one in stream.read().split()}


def test_any_worker_answers_any_request_of_a_session(workers: RunningGateway):
    client = workers.opened()
    assert {client.call("read_file", path="a.txt").status for _ in range(12)} == {200}
    other = Client(workers.address)
    other.session = client.session
    assert client.send("DELETE", mcp_session_id=client.session).status == 204
    assert {other.ask("ping").code for _ in range(6)} == {"SESSION_UNKNOWN"}


def test_a_worker_that_is_killed_is_started_anew_and_sessions_go_on(workers: RunningGateway):
    client = workers.opened()
    before = children(workers.process.pid)
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    assert wait_for(lambda: len(children(workers.process.pid) - before) == 1)
    assert {client.call("read_file", path="a.txt").status for _ in range(8)} == {200}


def test_workers_end_with_their_gateway(base: Path):
    running = RunningGateway(base, [str(base / "root"), "--workers", "2"])
    assert running.watched("/readyz").status == 200
    there = children(running.process.pid)
    assert running.end() == 0
    assert [one for one in there if os.path.exists(f"/proc/{one}")] == []

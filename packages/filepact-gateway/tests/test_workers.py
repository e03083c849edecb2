"""Several workers are one gateway: sessions, cancellation, a worker that is killed, and the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from filepact_gateway.metrics import Metrics
from gateway_running import Client, RunningGateway, children, in_thread
from tests.faces.small_server import wait_for
from tests.postgres import Server, binaries
from tests.postgres import server as database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def workers(base: Path) -> Iterator[RunningGateway]:
    running = RunningGateway(base, [str(base / "root"), "--workers", "2"])
    yield running
    assert running.end() == 0


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


@pytest.mark.parametrize("workers", ["1", "2"])
def test_who_loses_its_terminal_ends_as_on_sigterm(base: Path, workers: str):
    running = RunningGateway(base, [str(base / "root"), "--workers", workers])
    client = running.opened()
    path = f"hung-up-{workers}.txt"
    asked = [in_thread(lambda: appended(client, path)) for _ in range(20)]
    there = {running.process.pid, *children(running.process.pid)}
    for one in there:
        os.kill(one, signal.SIGHUP)  # as a terminal does it
    assert running.process.wait(60) == 0
    done = [one() for one in asked].count("done")
    file = base / "root" / path
    assert (file.read_text().count("x") if file.exists() else 0) == done
    assert running.end() == 0


def appended(client: Client, path: str) -> str:
    """What is told of a line that is added."""
    try:
        answer = client.call(
            "write_file", id_=os.urandom(8).hex(), path=path, content="x\n", append=True
        )
    except OSError:
        return "not taken any more"
    return "done" if answer.status == 200 and not answer.result["isError"] else "refused"


def test_workers_that_nobody_watches_over_end_and_give_the_address_back(base: Path):
    running = RunningGateway(base, [str(base / "root"), "--workers", "2"])
    client = running.opened()
    there = children(running.process.pid)
    running.kill()
    assert wait_for(lambda: not any(os.path.exists(f"/proc/{one}") for one in there))
    words = [str(base / "root"), "--workers", "2", "--listen", running.address]
    again = RunningGateway(base, words)
    assert client.call("read_file", path="a.txt").status == 200
    assert again.end() == 0


HANGING = """
import os, time
from filepact_gateway.metrics import Metrics
from filepact_gateway.server import WorkerPipes, run_workers

metrics = Metrics(2)

def work(number):
    metrics.worker = number
    metrics.begin_again()
    metrics.beat()
    os.write(1, f"{number} {os.getpid()}\\n".encode())
    while True:
        metrics.beat()
        time.sleep(0.05)

run_workers(WorkerPipes(2), work, metrics.beats, drain=0.0, look=0.2)
print(metrics.value("filepact_gateway_restarts_total"))
"""


def test_a_worker_that_ended_before_it_served_counts_as_started_anew():
    metrics = Metrics(2)
    for worker in (0, 1, 0):
        metrics.worker = worker
        metrics.begin_again()
    assert metrics.value("filepact_gateway_restarts_total") == 1


def test_a_worker_that_hangs_is_killed_and_started_anew():
    it = subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True)
    assert it.stdout is not None
    try:
        first = dict(it.stdout.readline().split() for _ in range(2))
        assert set(first) == {"0", "1"}
        os.kill(int(first["1"]), signal.SIGSTOP)
        number, process = it.stdout.readline().split()
        assert (number, process != first["1"]) == ("1", True)
        assert not os.path.exists(f"/proc/{first['1']}")
    finally:
        it.terminate()
        said = it.communicate(timeout=60)[0]
    assert (it.returncode, float(said) >= 1) == (0, True)


@pytest.mark.slow
def test_a_worker_that_finds_no_database_does_not_end_the_others(base: Path):
    database()  # skips where there is no server
    place = binaries()
    assert place is not None
    own = Server(place)
    try:
        migrate = pytest.importorskip("filepact_fleet.postgres_connection").migrate_database
        migrate(own.url)
        running = RunningGateway(
            *(base, [str(base / "root"), "--workers", "2"]),
            settings=f'[store]\nurl = "{own.url}"\n',
            state="another",
            shorter={
                "filepact_fleet.postgres:PostgresStore.patience": 3.0,
                "filepact_gateway.shared_store:PostgresDatabase.patience": 3.0,
            },
        )
        client = running.opened()
        assert client.call("write_file", path="d.txt", content="1\n").result["isError"] is False
        own.stop()
        os.kill(min(children(running.process.pid)), signal.SIGKILL)
        stderr = running.process.stderr
        assert stderr is not None
        while b"STORE_UNREACHABLE" not in (line := stderr.readline()):
            assert line
        assert running.process.poll() is None
        own.start()
        assert client.call("write_file", path="d.txt", content="2\n").result["isError"] is False
        assert wait_for(lambda: running.metric("filepact_gateway_restarts_total") >= 1)
        assert running.end() == 0
    finally:
        own.remove()

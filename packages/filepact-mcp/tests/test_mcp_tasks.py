"""Calls that take long, for clients that know tasks: named, asked for, answered, cancelled."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import Session
from filepact.tools.registry import CallResult, Toolset
from filepact_mcp import tasks
from filepact_mcp.calls import (
    TASK_AFTER,
    WORKERS,
    CallExecutor,
    ElicitationRequest,
    ToolExecutor,
)
from filepact_mcp.protocol import ClientMessage, ServerProtocol, TaskRequest, ToolRequest
from filepact_mcp.results import (
    CAPABILITIES_KEY,
    TASKS_KEY,
    ServerInfo,
    ToolCache,
    ToolResponse,
)
from filepact_mcp.tasks import TaskList
from filepact_wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND
from tests.faces.envelopes import handshake, modern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faces.line_client import LineClient

UNDECLARED = -32021
KNOWS = {CAPABILITIES_KEY: {"extensions": {TASKS_KEY: {}}}}


class Asking:
    """A person's dialog that comes after a while: of each call that says so one question, then its answer."""

    def ask(self, outcome: CallResult, channel: Any, _session: Session, /, **_about: Any) -> Any:
        if "done" not in outcome.text or not channel.modes:
            return outcome
        return ElicitationRequest({"one": {"method": "elicitation/create"}, "two": {}}, "the state")

    def resume(self, channel: Any, _session: Session, /, **_about: Any) -> CallResult:
        assert channel.state == "the state"
        return CallResult(f"heard {json.dumps(channel.answers, sort_keys=True)}")


class Client:
    """One that knows tasks, of a server that hands them out after 0.1 s."""

    def __init__(self, executor: CallExecutor, protocol: ServerProtocol, sent: Queue[Any]) -> None:
        self.executor = executor
        self.protocol = protocol
        self.sent = sent
        self.number = 0

    def ask(self, method: str, *, knows: Any = KNOWS, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {
            "jsonrpc": "2.0",
            "id": self.number,
            "method": method,
            "params": modern(**params, _meta=knows),
        }
        for step in self.protocol.take(message):
            if isinstance(step, ToolRequest):
                self.executor.begin(step)
            elif isinstance(step, TaskRequest):
                return self.executor.tasks.answer(step, self.executor.go_on)
            elif isinstance(step, ClientMessage):
                return step.message
        while True:
            answer = self.sent.get(timeout=30)
            if answer.get("id") == self.number:
                return answer

    def call(self, name: str, knows: Any = KNOWS, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", knows=knows, name=name, arguments=arguments)["result"]

    def until(self, name: str, *states: str) -> dict[str, Any]:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            told = self.ask("tasks/get", taskId=name)["result"]
            if told["status"] in states:
                return told
            time.sleep(0.01)
        raise AssertionError(f"it never was {states}")


@pytest.fixture
def facts(small: Any) -> ServerInfo:
    return ServerInfo(name="small", version="1", instructions="", tools=list)


@pytest.fixture
def client(small: Any, engine: Any, facts: ServerInfo) -> Iterator[Client]:
    sent: Queue[Any] = Queue()
    service = ToolExecutor(
        ToolCache(lambda: Toolset(small.TOOLS, engine)),
        session_factory=lambda actor: Session("s", actor),
        chat=Asking(),
    )
    with ThreadPoolExecutor(WORKERS) as threads:
        executor = CallExecutor(
            *(service, facts, sent.put, lambda work, _waits: threads.submit(work)), task_after=0.1
        )
        yield Client(executor, ServerProtocol(facts), sent)
        executor.finish()


def test_a_call_that_takes_long_is_answered_with_a_task_and_goes_on(client: Client) -> None:
    named = client.call("wait", steps=40)
    assert named["resultType"] == "task"
    assert named["status"] == "working"
    assert named["ttlMs"] is None
    assert {"taskId", "createdAt", "lastUpdatedAt", "pollIntervalMs"} <= named.keys()
    assert "content" not in named
    told = client.until(named["taskId"], "completed")
    assert told["resultType"] == "complete"
    assert told["result"]["content"][0]["text"] == "done"
    assert told["createdAt"] <= told["lastUpdatedAt"]
    assert told["ttlMs"] >= 3_600_000
    # Asking again tells the same.
    assert client.ask("tasks/get", taskId=named["taskId"])["result"]["result"] == told["result"]


def test_the_list_of_tasks_is_made_before_a_timer_or_a_worker_could_make_another(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers: list[int] = []

    class Watched(TaskList):
        def __init__(self, facts: ServerInfo) -> None:
            makers.append(threading.get_ident())
            super().__init__(facts)

    monkeypatch.setattr(tasks, "TaskList", Watched)
    named = [client.call("wait", steps=40)["taskId"] for _ in range(2)]
    assert [client.until(one, "completed")["status"] for one in named] == ["completed"] * 2
    assert makers == [threading.get_ident()]


def test_a_call_that_is_quick_is_answered_as_ever_and_leaves_no_task(client: Client) -> None:
    answer = client.call("who")
    assert answer["resultType"] == "complete"
    time.sleep(0.3)
    assert client.sent.empty()


def test_who_does_not_declare_tasks_waits_for_the_answer(client: Client) -> None:
    assert client.call("wait", knows={}, steps=30)["content"][0]["text"] == "done"
    for method in ("tasks/get", "tasks/cancel"):
        refused = client.ask(method, knows={}, taskId="x")["error"]
        assert refused["code"] == UNDECLARED
        assert refused["data"] == {"requiredCapabilities": {"extensions": {TASKS_KEY: {}}}}


def test_a_tools_error_completes_a_task_and_the_protocols_fails_it(facts: ServerInfo) -> None:
    tasks = TaskList(facts)
    request = ToolRequest(1, "read", {}, None, None, modern=True)  # type: ignore[arg-type]

    def ended(message: dict[str, Any], *, cancelled: bool = False) -> dict[str, Any]:
        task, _ = tasks.begin(request, lambda: None)
        tasks.end(task, ToolResponse(message), cancelled=cancelled)
        asked = TaskRequest(2, "tasks/get", task.name, {})
        told: dict[str, Any] = tasks.answer(asked, lambda *_: None)["result"]
        return told

    wrong = {"content": [], "isError": True}
    assert ended({"result": wrong})["result"] == wrong
    assert ended({"result": wrong}, cancelled=True)["status"] == "cancelled"
    failed = ended({"error": {"code": -32603, "message": "internal"}})
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert "result" not in failed


def test_a_task_is_cancelled_and_what_it_did_is_told(client: Client, engine: Any) -> None:
    named = client.call("slow")
    assert client.ask("tasks/cancel", taskId=named["taskId"])["result"]["resultType"] == "complete"
    told = client.until(named["taskId"], "completed", "cancelled")
    # It had written its file when it heard: that is no cancelled call.
    assert engine.files["slow"] == "done"
    assert told["status"] == "completed"
    assert "wait for it" in told["result"]["content"][0]["text"]


def test_a_task_that_never_began_is_cancelled(client: Client, engine: Any) -> None:
    busy = [client.call("wait")["taskId"] for _ in range(WORKERS)]
    late = client.call("write", path="b", content="x")
    assert late["resultType"] == "task"
    client.ask("tasks/cancel", taskId=late["taskId"])
    assert client.until(late["taskId"], "cancelled")["status"] == "cancelled"
    for one in busy:
        client.ask("tasks/cancel", taskId=one)
    for one in busy:
        client.until(one, "completed", "cancelled")
    assert "b" not in engine.files


def test_a_word_that_a_call_is_not_wanted_does_not_end_its_task(client: Client) -> None:
    named = client.call("wait", steps=40)
    client.executor.cancel(client.number)
    assert client.until(named["taskId"], "completed")["result"]["content"][0]["text"] == "done"


def test_a_person_is_asked_within_a_task_and_the_answers_may_come_one_by_one(
    client: Client,
) -> None:
    asking = {CAPABILITIES_KEY: {"extensions": {TASKS_KEY: {}}, "elicitation": {"form": {}}}}
    named = client.call("wait", knows=asking, steps=30)
    asked = client.until(named["taskId"], "input_required")["inputRequests"]
    assert len(asked) == 2
    first, second = asked
    said = {first: {"action": "accept"}, "another": {"action": "decline"}}
    client.ask("tasks/update", taskId=named["taskId"], inputResponses=said)
    left = client.ask("tasks/get", taskId=named["taskId"])["result"]
    assert (left["status"], [*left["inputRequests"]]) == ("input_required", [second])
    client.ask(
        "tasks/update", taskId=named["taskId"], inputResponses={second: {"action": "decline"}}
    )
    told = client.until(named["taskId"], "completed")["result"]["content"][0]["text"]
    assert told == 'heard {"one": {"action": "accept"}, "two": {"action": "decline"}}'
    # Who answers once more changes nothing.
    client.ask(
        "tasks/update", taskId=named["taskId"], inputResponses={second: {"action": "accept"}}
    )
    assert client.until(named["taskId"], "completed")["result"]["content"][0]["text"] == told


def test_a_question_of_a_task_that_is_cancelled_is_closed(client: Client) -> None:
    asking = {CAPABILITIES_KEY: {"extensions": {TASKS_KEY: {}}, "elicitation": {"form": {}}}}
    named = client.call("wait", knows=asking, steps=30)
    asked = client.until(named["taskId"], "input_required")["inputRequests"]
    client.ask("tasks/cancel", taskId=named["taskId"])
    answers = {key: {"action": "accept"} for key in asked}
    client.ask("tasks/update", taskId=named["taskId"], inputResponses=answers)
    told = client.ask("tasks/get", taskId=named["taskId"])["result"]
    assert told["status"] == "cancelled"
    assert "inputRequests" not in told


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_that_is_not_there_is_refused(client: Client, method: str) -> None:
    refused = client.ask(method, taskId="nothing", inputResponses={})["error"]
    assert refused["code"] == INVALID_PARAMS
    assert "no such task" in refused["message"]
    assert client.ask(method, inputResponses={})["error"]["code"] == INVALID_PARAMS
    assert client.ask(method, taskId=5, inputResponses={})["error"]["code"] == INVALID_PARAMS


def test_what_the_connection_leaves_unasked_is_given_up(client: Client, engine: Any) -> None:
    class Event:
        key, text = "k", "news"

    told: list[str] = []
    engine.unheard.of = lambda _session: (Event(),)
    engine.acknowledge = lambda _call, _news: told.append("heard")
    first, second = (client.call("wait", steps=30)["taskId"] for _ in range(2))
    for one in (first, second):
        while client.executor.tasks._tasks[one].status == "working":
            time.sleep(0.01)
    assert told == []
    client.ask("tasks/get", taskId=first)
    client.ask("tasks/get", taskId=first)
    assert told == ["heard"]  # news that came with a result counts as heard once that is asked for
    client.executor.finish()
    assert told == ["heard"]


def test_tasks_are_kept_for_an_hour_and_never_too_many(facts: ServerInfo) -> None:
    now = [1_000.0]
    kept = TaskList(facts, lambda: now[0])
    request = ToolRequest(1, "read", {}, None, None, modern=True)  # type: ignore[arg-type]

    def made() -> str:
        task, _ = kept.begin(request, lambda: None)
        kept.end(task, ToolResponse({"result": {"content": []}}), cancelled=False)
        return task.name

    def known(name: str) -> bool:
        return "result" in kept.answer(TaskRequest(2, "tasks/get", name, {}), lambda *_: None)

    running, _ = kept.begin(request, lambda: None)
    names = [made() for _ in range(250)]
    assert [known(one) for one in (names[0], names[60], names[-1], running.name)] == [
        False,
        True,
        True,
        True,
    ]
    now[0] += 3_700
    assert [known(one) for one in (names[-1], running.name)] == [False, True]


def test_only_the_newest_era_knows_tasks(facts: ServerInfo) -> None:
    plain = ServerProtocol(facts)
    plain.take({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake()})
    (refused,) = plain.take(
        {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "x"}}
    )
    assert refused.message["error"]["code"] == METHOD_NOT_FOUND  # type: ignore[union-attr]


@pytest.mark.slow(after=TASK_AFTER)
def test_a_real_server_hands_out_a_task(program: tuple[LineClient, Any]) -> None:
    client, _ = program
    found = client.ask("server/discover", modern())["result"]["capabilities"]
    assert found["extensions"] == {TASKS_KEY: {}}
    params = modern(name="wait", arguments={"steps": 650}, _meta=KNOWS)
    named = client.ask("tools/call", params)["result"]
    assert named["resultType"] == "task"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        told = client.ask("tasks/get", modern(taskId=named["taskId"], _meta=KNOWS))["result"]
        if told["status"] != "working":
            break
        time.sleep(0.1)
    assert told["result"]["content"][0]["text"] == "done"

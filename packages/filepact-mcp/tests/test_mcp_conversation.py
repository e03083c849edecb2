"""What is decided about each message, and what is in flight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

from filepact.domain.operation import Actor, Session
from filepact.errors import PathBlockedError
from filepact.tools.registry import Toolset
from filepact_mcp.calls import WORKERS, CallExecutor, ToolExecutor
from filepact_mcp.clients import ClientFolders
from filepact_mcp.protocol import (
    CancelCall,
    ClientMessage,
    FoldersRequest,
    FoldersResponse,
    ServerProtocol,
    ToolRequest,
)
from filepact_mcp.results import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    ServerInfo,
    ToolCache,
    describe_tool,
)
from filepact_wire.messages import INVALID_PARAMS
from tests.faces.envelopes import handshake, modern

TESTER = Actor("agent", "tester", "7")
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}


@pytest.fixture
def facts(small):
    listed = [describe_tool(one) for one in small.TOOLS]
    return ServerInfo(name="small", version="1.2", instructions="Be gentle.", tools=lambda: listed)


@pytest.fixture
def conversation(facts):
    return ServerProtocol(facts)


def request(number, method, params=None) -> dict:
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else message | {"params": params}


def greeting(**capabilities) -> dict:
    return request(0, "initialize", handshake(capabilities=capabilities))


# -- decisions --------------------------------------------------------------------------------


def test_a_call_is_carried_out_for_who_shook_hands(conversation):
    (greeted,) = conversation.take(greeting())
    assert isinstance(greeted, ClientMessage)
    assert conversation.take(READY) == []
    params = {"name": "read", "arguments": {"path": "a"}, "_meta": {"progressToken": 5}}
    assert conversation.take(request("q", "tools/call", params)) == [
        ToolRequest("q", "read", {"path": "a"}, TESTER, 5, modern=False)
    ]


def test_a_call_is_carried_out_for_who_its_envelope_names(conversation):
    params = modern(name="who")
    assert conversation.take(request(1, "tools/call", params)) == [
        ToolRequest(1, "who", {}, TESTER, None, modern=True)
    ]


def test_each_envelope_is_taken_as_it_is_whatever_the_one_before_said(conversation):
    def called(**changes) -> object:
        (step,) = conversation.take(request(1, "tools/call", modern(name="who", _meta=changes)))
        return step.actor.name if isinstance(step, ToolRequest) else step.message["error"]["code"]

    other = {CLIENT_KEY: {"name": "other", "version": "1"}}
    asking = {CAPABILITIES_KEY: {"elicitation": {"form": {}}}}
    said = [called(), called(**other), called(**{CLIENT_KEY: {"name": 5}}), called()]
    assert said == ["tester", "other", INVALID_PARAMS, "tester"]
    params = modern(name="who", _meta=asking)
    assert conversation.take(request(2, "tools/call", params))[0].modes == {"form"}
    assert conversation.take(request(3, "tools/call", modern(name="who")))[0].modes == frozenset()
    assert called(**{CAPABILITIES_KEY: {"elicitation": 5}}) == INVALID_PARAMS


@pytest.mark.parametrize("extra", [{"surprise": 1}, {"result": {}}])
def test_what_a_message_has_besides_a_request_is_ignored(conversation, extra):
    conversation.take(greeting())
    (answer,) = conversation.take(request(1, "ping") | extra)
    assert answer.message["result"] == {}


def test_a_handshake_that_is_refused_leaves_the_one_before(conversation):
    conversation.take(greeting())
    (refused,) = conversation.take(request(1, "initialize", {}))
    assert "error" in refused.message
    (called,) = conversation.take(request(2, "tools/call", {"name": "who"}))
    assert called.actor == TESTER


def test_notifications_of_other_things_are_nothing(conversation):
    for method in ("notifications/progress", "no/such/notification", "initialize", "tools/call"):
        assert conversation.take({"jsonrpc": "2.0", "method": method}) == []
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "7"},
    }
    assert conversation.take(cancel) == [CancelCall("7")]


@pytest.mark.parametrize("params", [None, {}, {"requestId": None}, {"requestId": [1]}])
def test_a_cancellation_of_nothing_is_nothing(conversation, params):
    conversation.take(request(1, "odd"))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert conversation.take(cancel) == []


def test_folders_are_asked_for_once_and_after_each_change(conversation):
    conversation.take(greeting(roots={}))
    (asked,) = conversation.take(READY)
    assert isinstance(asked, FoldersRequest)
    assert asked.question["method"] == "roots/list"
    assert conversation.take(READY) == []
    conversation.take(request(7, "tools/call", {"name": "look"}))
    (again,) = conversation.take(CHANGED)
    assert again.question["id"] != asked.question["id"]
    stale = {"jsonrpc": "2.0", "id": asked.question["id"], "result": {"roots": []}}
    assert conversation.take(stale) == []
    told = stale | {"id": again.question["id"]}
    assert conversation.take(told) == [FoldersResponse(told)]


def test_who_has_no_folders_is_not_asked(conversation):
    conversation.take(greeting())
    assert conversation.take(READY) == []
    assert conversation.take(CHANGED) == []


def test_without_a_handshake_nobody_is_asked(conversation):
    conversation.take(request(1, "tools/list", modern()))
    conversation.take(greeting(roots={}))
    assert [type(step) for step in conversation.take(READY)] == []


# -- in flight --------------------------------------------------------------------------------


@pytest.fixture
def sent():
    return Queue()


@pytest.fixture
def flights(small, engine, facts, sent):
    service = ToolExecutor(
        ToolCache(lambda: Toolset(small.TOOLS, engine)),
        session_factory=lambda actor: Session("s", actor),
        folders=ClientFolders(lambda _folders: None),
    )
    with ThreadPoolExecutor(WORKERS) as threads:
        flights = CallExecutor(service, facts, sent.put, lambda work, _waits: threads.submit(work))
        yield flights
        flights.finish()


def call(number, name, token=None, **arguments) -> ToolRequest:
    return ToolRequest(number, name, arguments, TESTER, token, modern=False)


def waiting(flights, sent, count) -> None:
    """Begin calls that last, and see each of them at work."""
    for number in range(count):
        flights.begin(call(number, "wait", token=number))
    for _ in range(count):
        assert sent.get(timeout=30)["method"] == "notifications/progress"


def answers(sent) -> dict:
    everything = [sent.get_nowait() for _ in range(sent.qsize())]
    return {one["id"]: one for one in everything if "id" in one}


def test_two_calls_with_one_id_are_both_answered_and_the_later_can_be_cancelled(flights, sent):
    flights.begin(call(1, "wait", token=1, steps=30))
    flights.begin(call(1, "wait", token=2))
    told = {sent.get(timeout=30)["params"]["progressToken"] for _ in range(2)}
    assert told == {1, 2}
    flights.cancel("1")
    flights.settle(30)
    assert answers(sent)[1]["result"]["content"][0]["text"] == "done"
    flights.cancel(1)


def test_a_number_that_is_cancelled_as_text_is_found(flights, sent):
    flights.begin(call(7, "wait", token=7))
    assert sent.get(timeout=30)["method"] == "notifications/progress"
    flights.cancel("7")
    flights.settle(30)
    assert answers(sent) == {}


@pytest.mark.parametrize(("first", "later"), [(1, "1"), ("1", 1)], ids=["number", "text"])
def test_a_number_and_a_text_that_spells_it_are_two_ids(flights, sent, first, later):
    flights.begin(call(first, "wait", token="first"))
    flights.begin(call(later, "wait", token="later", steps=30))
    told = {sent.get(timeout=30)["params"]["progressToken"] for _ in range(2)}
    assert told == {"first", "later"}
    flights.cancel(first)
    flights.settle(30)
    said = answers(sent)
    assert list(said) == [later]
    assert said[later]["result"]["content"][0]["text"] == "done"


def test_a_call_that_is_cancelled_while_it_waits_is_not_begun(flights, sent, engine):
    waiting(flights, sent, WORKERS)
    flights.begin(call("late", "write", path="b", content="x"))
    flights.cancel("late")
    flights.finish()
    assert "b" not in engine.files
    assert sorted(answers(sent)) == list(range(WORKERS))


def test_at_the_end_calls_are_cancelled_and_those_that_wait_are_refused(flights, sent, engine):
    waiting(flights, sent, WORKERS)
    flights.begin(call("late", "write", path="b", content="x"))
    flights.finish()
    said = answers(sent)
    assert said["late"]["error"]["message"] == "Connection closed"
    assert said[0]["result"]["content"][0]["text"] == "cancelled"
    assert "b" not in engine.files
    flights.begin(call("later", "who"))
    assert sent.empty()


# -- the end ----------------------------------------------------------------------------------


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("arguments", [{}, {"arguments": None}], ids=["direct", "package"])
def test_a_signal_does_not_wait_for_calls_that_may_be_answered(program, arguments):
    client, process = program
    client.shake_hands()
    client.begin("tools/call", {"name": "wait", "_meta": {"progressToken": 1}} | arguments)
    client.notes.get(timeout=30)
    client.hang_up()
    process.terminate()
    assert process.wait(30) == 0
    assert process.stderr.read() == b""


# -- what is not loaded -----------------------------------------------------------------------


def test_folders_that_cannot_be_used_are_a_line_in_the_log(caplog):
    def narrow(_folders):
        raise PathBlockedError("no")

    folders = ClientFolders(narrow)
    folders.hold_calls()
    assert not folders.receive({"result": {"roots": [{"uri": "file:///a"}]}})
    refusal = folders.wait()
    assert refusal is not None
    assert refusal.code == "FOLDERS_UNKNOWN"
    assert "could not be used" in caplog.text


def test_a_server_loads_no_package_for_the_protocol_whatever_it_is_sent():
    program = (
        "import sys; import tests.faces.small_server as small; "
        "small.start(small.SmallEngine()); "
        "assert not {'mcp', 'anyio', 'asyncio'} & sys.modules.keys()"
    )
    lines = [
        request(1, "initialize", handshake()),
        READY,
        request(2, "tools/list"),
        request(3, "tools/call", {"name": "who"}),
        request(4, "odd"),
        request(5, "tools/call", {"name": 5}),
    ]
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.returncode == 0
    assert sorted(json.loads(line)["id"] for line in ran.stdout.splitlines()) == [1, 2, 3, 4, 5]

"""The suite's agent in this process, with clients that send malformed or unexpected messages."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from types import SimpleNamespace

import pytest
from acp import connect_to_agent

from acp_conformance import CHECKS, Plan
from acp_conformance.agent import serve
from acp_conformance.client import ClientExecutor
from acp_conformance.connection import RequestResult
from acp_conformance.report import CheckFailedError, short
from acp_conformance.scratch import CheckLog, prepare
from right_client import RightClient

PATIENCE = 20


@pytest.fixture
def agent(tmp_path):
    """Start the agent in a thread; answers its folder and the client's ends of two pipes."""
    started = []

    def start(plan):
        scratch = prepare(str(tmp_path.resolve()), plan)
        (theirs_in, to_agent), (from_agent, theirs_out) = os.pipe(), os.pipe()
        source, sink = os.fdopen(theirs_in, "rb"), os.fdopen(theirs_out, "wb")
        thread = threading.Thread(target=serve, args=(scratch.path, source, sink), daemon=True)
        thread.start()
        ends = os.fdopen(from_agent, "rb"), os.fdopen(to_agent, "wb")
        started.append((thread, *ends, source, sink))
        return scratch, *ends

    yield start
    for thread, *files in started:
        files[1].close()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        for file in files:
            file.close()


def talk(files, *messages):
    """Send messages one by one; the agent's lines until it has answered each that has an id."""
    source, sink = files
    heard = []
    for message in messages:
        sink.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sink.flush()
        while "id" in message:
            heard.append(json.loads(source.readline()))
            if heard[-1].get("id") == message["id"] and "method" not in heard[-1]:
                break
    return heard


INITIALIZE = {"id": "i", "method": "initialize", "params": {"protocolVersion": 1}}


def new_session(cwd):
    return {"id": "n", "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}


def prompt(session="check-1"):
    return {"id": "p", "method": "session/prompt", "params": {"sessionId": session, "prompt": []}}


def found(scratch):
    log = CheckLog(scratch)
    actions = list(log.follow())
    assert actions == []
    return log


def test_every_check_runs_in_a_thread_as_it_does_in_a_process(agent):
    plan = Plan(driven=True, patience=PATIENCE)
    scratch, source, sink = agent(plan)
    client = RightClient()

    async def scene():
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), source
        )
        flow, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop=loop), sink
        )
        writer = asyncio.StreamWriter(flow, protocol, None, loop)
        connection = connect_to_agent(client, writer, reader)
        driver = ClientExecutor(connection, scratch, client.capabilities())
        try:
            return await driver.run(SimpleNamespace(returncode=None), longest=100)
        finally:
            await connection.close()
            reading.close()
            flow.close()
            await asyncio.sleep(0)

    report = asyncio.run(scene())
    assert [(one.id, one.why) for one in report.failed()] == []
    assert len(report.verdicts) == len(CHECKS)


def test_a_client_without_files_has_most_checks_skipped(agent):
    scratch, *files = agent(Plan(only=("reads", "sessions.early-request", "ids"), patience=0.2))
    talk(files, INITIALIZE, new_session(scratch.work.path), prompt())
    report = found(scratch).report()
    assert report.count("failed") == 0
    wanted = {f"the client does not announce {name}TextFile" for name in ("read", "write")}
    assert {one.why for one in report.verdicts if one.outcome == "skipped"} == wanted


def test_strange_messages_end_nothing(agent):
    scratch, *files = agent(Plan(only=("ids.lines", "ids.form", "ids.once"), patience=0.2))
    sink = files[1]
    sink.write(b"Loading...\n[]\n\xff\n")
    for strange in (
        {"method": 7},
        {"method": ["session/new"], "id": 1},
        {"method": "session/prompt", "params": {"sessionId": []}},
        {"method": "session/cancel", "params": [1]},
        {"id": "never", "result": {}},
        {"id": 3},
        {"id": None, "error": {"code": -32700, "message": "parse error"}},
    ):
        sink.write(json.dumps(strange).encode() + b"\n")
    offered = {"fs": {"writeTextFile": True}}
    started = {**INITIALIZE, "params": {"protocolVersion": 1, "clientCapabilities": offered}}
    talk(files, started, new_session(scratch.work.path), prompt("nobody's"))
    source = files[0]
    sink.write(json.dumps({"jsonrpc": "2.0", **prompt()}).encode() + b"\n")
    sink.flush()
    while (message := json.loads(source.readline())).get("id") != "p":
        if message.get("method") == "fs/write_text_file":
            sink.write(json.dumps({"id": message["id"], "result": None}).encode() + b"\n")
            sink.flush()
    why = {one.id: one.why for one in found(scratch).report().verdicts}
    assert "3 lines are none" in why["ids.lines"]
    assert "jsonrpc is None" in why["ids.form"]
    assert "'never'" in why["ids.once"]


def test_what_the_agent_does_not_know_is_refused(agent):
    _, *files = agent(Plan(only=("capabilities.version",)))
    load = {"id": "l", "method": "session/load", "params": {}}
    refused, begun = talk(files, load, {"id": "a", "method": "authenticate", "params": {}})
    assert refused["error"]["code"] == -32601
    assert begun["result"] == {}


def test_without_a_prompt_the_checks_begin_after_a_time(agent):
    scratch, *files = agent(Plan(wait=0.2, only=("capabilities.version",)))
    talk(files, INITIALIZE, new_session(scratch.work.path))
    log = CheckLog(scratch)
    while not log.over:
        tuple(log.follow())
    assert log.report().count("passed") == 1


def test_without_a_session_no_check_runs(agent):
    scratch, *files = agent(Plan(wait=0.2))
    talk(files, INITIALIZE)
    files[1].close()
    while not (log := found(scratch)).over:
        pass
    assert "session" in log.trouble
    assert log.report().verdicts == ()


def test_a_client_that_is_silent_is_tried_no_further(agent):
    scratch, *files = agent(Plan(only=("windows",), patience=0.1))
    offered = {"fs": {"readTextFile": True}}
    started = {**INITIALIZE, "params": {"protocolVersion": 1, "clientCapabilities": offered}}
    talk(files, started, new_session(scratch.work.path), prompt())
    first, *others = found(scratch).report().verdicts
    assert first.outcome == "failed"
    assert {one.outcome for one in others} == {"skipped"}
    assert others[0].why == f"not tried: the client had stopped answering in {first.id}"


def test_what_only_a_driven_client_does_is_skipped_for_others(agent):
    scratch, *files = agent(Plan(only=("cancellation.late-write", "sessions.two-sessions")))
    talk(files, INITIALIZE, new_session(scratch.work.path), prompt())
    assert [one.outcome for one in found(scratch).report().verdicts] == ["skipped", "skipped"]


# -- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"error": {"code": -32603, "message": "no"}},
        {"error": "no"},
        {"result": None},
        {"result": {"content": 7}},
        {"result": {}},
    ],
)
def test_an_answer_without_text_has_no_content(message):
    with pytest.raises(CheckFailedError):
        _ = RequestResult(message).content


def test_a_refusal_with_another_number_is_said():
    with pytest.raises(CheckFailedError, match="-32603 'no' instead of -32602 or -32002"):
        RequestResult({"error": {"code": -32603, "message": "no"}}).refused(-32602, -32002)
    with pytest.raises(CheckFailedError, match="and not refused"):
        RequestResult({"result": {}}).refused()


def test_long_values_are_shown_by_their_beginning():
    assert short("a" * 500) == f"'{'a' * 79}... (502 characters)"


def test_a_log_that_is_being_written_is_read_to_its_last_whole_line(tmp_path):
    scratch = prepare(str(tmp_path), Plan())
    log = CheckLog(scratch)
    log.add(client={"clientInfo": {"name": "x"}})
    scratch.add("report.jsonl", b'{"over": tr')
    assert list(log.follow()) == []
    assert log.started
    assert not log.over
    scratch.add("report.jsonl", b"ue}\n")
    assert list(log.follow()) == []
    assert log.over


def test_the_plan_comes_back_as_it_was(tmp_path):
    plan = Plan(at="session", wait=1.5, only=("ids", "meta.odd"))
    assert Plan.load(prepare(str(tmp_path), plan)) == plan

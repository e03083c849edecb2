"""The MCP face over real pipes: both eras, failures, cancellation, and hostile lines."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from filepact.errors import PathBlockedError
from filepact.tools.registry import Toolset
from filepact_mcp import INSTRUCTIONS_LIMIT, serve
from filepact_mcp.server import encode
from filepact_wire.framing import LINE_LIMIT, MessageReader
from filepact_wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorResponse,
)
from filepact_wire.pipes import standard_pipes
from tests.faces.envelopes import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    SERVER_KEY,
    VERSION_KEY,
    handshake,
    modern,
)

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]

# -- the two eras ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_handshake_settles_on_the_version_asked_for(client, version):
    settled = client.shake_hands(version)
    assert settled["protocolVersion"] == version
    assert settled["serverInfo"] == {"name": "small", "version": "1.2"}
    assert settled["instructions"] == "Be gentle."
    assert settled["capabilities"] == {"tools": {"listChanged": False}}
    assert client.text("read", path="a") == "one\ntwo\n"


def test_a_handshake_with_an_unknown_version_settles_on_the_newest(client):
    assert client.shake_hands("1999-01-01")["protocolVersion"] == "2025-11-25"


def test_a_client_without_a_handshake_is_served_call_by_call(client):
    discovered = client.ask("server/discover", modern())["result"]
    assert discovered["supportedVersions"] == VERSIONS
    assert discovered["instructions"] == "Be gentle."
    assert discovered["ttlMs"] > 0
    assert discovered["_meta"][SERVER_KEY]["name"] == "small"
    listed = client.ask("tools/list", modern())["result"]
    assert [one["name"] for one in listed["tools"]][:2] == ["read", "write"]
    called = client.ask("tools/call", modern(name="read", arguments={"path": "a"}))["result"]
    assert called["content"] == [{"type": "text", "text": "one\ntwo\n"}]
    assert called["resultType"] == "complete"


@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"_meta": 5}])
def test_a_probe_without_its_envelope_is_told_so_and_decides_nothing(client, params):
    assert client.ask("server/discover", params)["error"]["code"] == -32602
    assert client.shake_hands("2025-11-25")["protocolVersion"] == "2025-11-25"
    assert client.ask("server/discover", params)["error"]["code"] == -32601


def test_a_probe_and_a_handshake_at_once_are_both_answered(client):
    probe = client.begin("server/discover", modern())
    greeting = client.begin("initialize", handshake())
    assert "result" in client.answer(probe)
    assert "result" in client.answer(greeting)


@pytest.mark.parametrize("version", ["2099-01-01", "2025-11-25"])
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_a_probe_that_is_refused_names_all_versions_and_decides_nothing(client, method, version):
    refused = client.ask(method, modern(_meta={VERSION_KEY: version}))["error"]
    assert refused["code"] == -32022
    assert refused["data"]["supported"] == VERSIONS
    assert client.ask("tools/list")["error"]["code"] == INVALID_PARAMS
    assert client.ask("server/discover", modern())["result"]["supportedVersions"] == VERSIONS
    assert client.shake_hands("2025-11-25")["protocolVersion"] == "2025-11-25"
    assert client.ask("tools/list", modern())["error"]["code"] == -32600


def test_a_call_with_an_envelope_decides_against_handshakes(client):
    assert "result" in client.ask("tools/list", modern())
    refused = client.ask("initialize", handshake())["error"]
    assert refused["code"] == -32022
    assert refused["data"]["supported"] == ["2026-07-28"]


@pytest.mark.parametrize(
    ("changes", "member"),
    [
        ({"capabilities": None}, "capabilities"),
        ({"capabilities": {"roots": True}}, "capabilities.roots"),
        ({"capabilities": {"experimental": {"x": True}}}, "capabilities.experimental.x"),
        ({"clientInfo": {"name": "x"}}, "clientInfo.version"),
        (
            {"clientInfo": {"name": "x", "version": "1", "icons": [{"src": "x", "sizes": [5]}]}},
            "clientInfo.icons[0].sizes[0]",
        ),
    ],
)
def test_what_is_malformed_is_named(client, changes, member):
    refused = client.ask("initialize", handshake(**changes))["error"]
    assert (refused["code"], refused["data"]) == (INVALID_PARAMS, member)
    client.shake_hands()
    refused = client.ask("tools/call", {"name": "read", "arguments": "{}"})["error"]
    assert refused["data"] == "arguments"


@pytest.mark.parametrize("cursor", ["x", " ", 5, True, []])
@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_place_in_a_list_that_nobody_was_given_is_refused(client, era, cursor):
    if era == "handshake":
        client.shake_hands()
    dressed = modern if era == "modern" else dict
    refused = client.ask("tools/list", dressed(cursor=cursor))["error"]
    assert (refused["code"], refused["data"]) == (INVALID_PARAMS, "cursor")
    for left_out in ("", None):
        assert "tools" in client.ask("tools/list", dressed(cursor=left_out))["result"]


def test_in_the_version_that_has_them_several_messages_may_come_as_one(client):
    client.shake_hands("2025-03-26")
    asked = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "x"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "c"},
    ]
    client.send(asked)
    assert client.answer("a")["result"] == {}
    assert "tools" in client.answer("b")["result"]
    assert client.answer("c")["error"]["code"] == INVALID_REQUEST


def test_in_other_versions_several_messages_as_one_are_none(client):
    client.shake_hands("2025-06-18")
    client.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"}])
    assert client.answer(None)["error"]["code"] == INVALID_REQUEST


def test_a_first_line_may_begin_with_the_mark_of_windows(client):
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake()}
    client.send(b"\xef\xbb\xbf" + json.dumps(message).encode() + b"\n")
    assert "result" in client.answer(0)


def test_no_character_of_an_answer_ends_a_line_for_any_reader(client):
    client.shake_hands()
    text = "a\u2028b\u2029c\x85d"
    assert text in json.dumps(client.call("write", path=text, content="x"), ensure_ascii=False)
    assert not any(one.decode().rstrip("\n").splitlines()[1:] for one in client.raw)


def test_an_unknown_version_without_a_handshake_names_the_known_ones(client):
    refused = client.ask("tools/list", modern(_meta={VERSION_KEY: "2031-01-01"}))["error"]
    assert refused["code"] == -32022
    assert refused["data"]["supported"] == VERSIONS


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "no/such/method"])
def test_a_method_that_is_not_served_is_said_to_be_missing(client, method):
    client.shake_hands()
    assert client.ask(method)["error"]["code"] == -32601


def test_a_call_before_the_handshake_is_refused(client):
    refused = client.ask("tools/call", {"name": "read", "arguments": {"path": "a"}})
    assert refused["error"]["code"] == INVALID_PARAMS


def test_every_question_is_answered_once(program):
    client, process = program
    first = client.begin("initialize", handshake())
    client.notify("notifications/initialized")
    questions = [first, client.begin("tools/list"), client.begin("ping")]
    call = client.begin("tools/call", {"name": "read", "arguments": {"path": "a"}})
    for question in [*questions, call]:
        assert "result" in client.answer(question)
    client.hang_up()
    assert client.wait_for_the_end() == []
    assert process.wait(30) == 0
    assert process.stderr.read() == b""


# -- tools ------------------------------------------------------------------------------------


def test_tools_are_listed_with_title_hints_and_schemas(client):
    client.shake_hands()
    listed = {one["name"]: one for one in client.ask("tools/list")["result"]["tools"]}
    assert list(listed) == [
        "read",
        "write",
        "fail",
        "wait",
        "meet",
        "chatter",
        "who",
        "size",
        "slow",
    ]
    assert listed["read"]["title"] == "Read"
    assert listed["read"]["description"] == "Read a file."
    # Each hint has a default: a tool writes, may destroy, is not idempotent, has an open world.
    assert listed["read"]["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    assert listed["write"]["annotations"] == {"openWorldHint": False, "idempotentHint": True}
    assert "createDirs" in listed["write"]["inputSchema"]["properties"]
    assert not any("outputSchema" in one for one in listed.values())


def test_a_reading_tool_answers_text_and_nothing_else(client):
    client.shake_hands()
    assert client.call("read", path="a") == {
        "content": [{"type": "text", "text": "one\ntwo\n"}],
        "isError": False,
    }


def test_bytes_come_in_base64(client):
    client.shake_hands()
    assert b64decode(client.text("read", path="a", raw="true")) == b"one\ntwo\n"


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_writing_tool_answers_text_alone_and_a_receipt_that_no_model_is_shown(
    client, engine, era
):
    arguments = {"path": "b", "content": "x", "create_dirs": True}
    if era == "handshake":
        client.shake_hands()
        answer = client.call("write", **arguments)
    else:
        answer = client.ask("tools/call", modern(name="write", arguments=arguments))["result"]
    assert answer["content"] == [{"type": "text", "text": "Done: write b."}]
    assert "structuredContent" not in answer
    assert answer["_meta"]["filepact/receipt"] == {
        "operation": "c0123456789",
        "status": "applied",
        "files": [{"path": "b", "before": None, "after": "0" * 12, "added": 1, "removed": 0}],
    }
    assert engine.files["b"] == "x"


# fmt: off
FAILURES = [
    ("read", {"path": "gone"}, "NOT_FOUND: gone: no such file\nLook again."),
    ("read", {}, "INVALID_PARAMS: path is missing"),
    ("write", {"file_path": "b", "content": "x"}, "INVALID_PARAMS: unknown parameter file_path, did you mean path?"),
    ("fail", {}, "INTERNAL: fail failed unexpectedly"),
]
# fmt: on


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize(("tool", "arguments", "said"), FAILURES)
def test_a_failed_tool_says_why(client, era, tool, arguments, said):
    if era == "handshake":
        client.shake_hands()
        answer = client.call(tool, **arguments)
    else:
        params = modern(name=tool, arguments=arguments)
        answer = client.ask("tools/call", params)["result"]
    assert answer["isError"] is True
    assert answer["content"][0]["text"].startswith(said)
    assert "structuredContent" not in answer
    assert "somebody" not in str(answer)


def test_an_unknown_tool_is_an_error_that_names_the_known_ones(client):
    client.shake_hands()
    refused = client.ask("tools/call", {"name": "explode", "arguments": {}})["error"]
    assert refused["code"] == INVALID_PARAMS
    assert "known: read, write" in refused["message"]


def test_a_session_that_cannot_be_made_is_an_error_that_tells_nothing(in_thread, small, engine):
    def no_session(_actor):
        raise OSError("/home/somebody/state")

    def work(pipes) -> None:
        small.start(engine, pipes=pipes, session_factory=no_session)

    client = in_thread(work)
    client.shake_hands()
    refused = client.ask("tools/call", {"name": "who"})["error"]
    assert refused["code"] == INTERNAL_ERROR
    assert "somebody" not in refused["message"]


def test_a_call_may_leave_its_arguments_out(client):
    client.shake_hands()
    answer = client.ask("tools/call", {"name": "who"})["result"]
    assert answer["content"][0]["text"] == "s0 tester 7"


def test_an_answer_that_is_not_utf_8_arrives_in_escapes(client):
    client.shake_hands()
    assert client.text("read", path="odd") == "name \\xff end"


def test_a_large_answer_arrives_whole_also_through_pipes_that_do_not_block(
    in_thread, small, engine
):
    client = in_thread(lambda pipes: small.start(engine, pipes=pipes), blocking=False)
    client.shake_hands()
    assert client.text("read", path="large") == "x" * small.LARGE


def test_several_calls_run_at_once(client):
    client.shake_hands()
    calls = [client.begin("tools/call", {"name": "meet"}) for _ in range(3)]
    for call in calls:
        assert client.answer(call)["result"]["content"][0]["text"] == "met"


# -- who calls --------------------------------------------------------------------------------


def test_a_client_has_one_session_in_its_own_name(client):
    client.shake_hands()
    assert {client.text("who"), client.text("who")} == {"s0 tester 7"}


def test_without_a_handshake_each_name_has_its_session(client):
    def who(**meta) -> str:
        params = modern(name="who", arguments={}, _meta=meta)
        return client.ask("tools/call", params)["result"]["content"][0]["text"]

    other = {"name": "other\n\x1b[31m", "version": "1"}
    assert [who(), who(**{CLIENT_KEY: other}), who()] == [
        "s0 tester 7",
        "s1 other[31m 1",
        "s0 tester 7",
    ]
    nameless = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
    answer = client.ask("tools/call", {"name": "who", "arguments": {}, "_meta": nameless})
    assert answer["result"]["content"][0]["text"] == "s2 unknown"


# -- what a caller should hear besides ---------------------------------------------------------


def test_news_are_told_with_the_next_answer_and_then_no_more(client, engine):
    client.shake_hands()
    engine.unheard.add("", "Ann said no: not here")
    assert client.text("who") == "s0 tester 7\n\nAnn said no: not here"
    assert client.text("who") == "s0 tester 7"


def test_a_refusal_tells_the_news_as_well(client, engine):
    client.shake_hands()
    engine.unheard.add("", "Ann said no: not here")
    answer = client.call("read", path="gone")
    assert answer["isError"] is True
    text = answer["content"][0]["text"]
    assert text.startswith("NOT_FOUND")
    assert text.endswith("\n\nAnn said no: not here")
    assert client.text("who") == "s0 tester 7"


def test_news_are_told_again_after_an_answer_that_nobody_is_shown(client, engine):
    client.shake_hands()
    engine.unheard.add("", "Ann said no: not here")
    assert b64decode(client.text("read", path="a", raw=True)) == b"one\ntwo\n"
    call = client.begin("tools/call", {"name": "wait", "_meta": {"progressToken": "t"}})
    client.notes.get(timeout=30)
    client.notify("notifications/cancelled", requestId=call)
    assert engine.cancelled.wait(30)
    assert client.ask("tools/call", {"name": "explode"})["error"]["code"] == INVALID_PARAMS
    assert client.text("who").endswith("\n\nAnn said no: not here")
    assert client.text("who") == "s0 tester 7"


def test_who_gave_a_call_up_hears_later_what_it_had_done(client, engine):
    client.shake_hands()
    call = client.begin("tools/call", {"name": "slow", "_meta": {"progressToken": "t"}})
    client.notes.get(timeout=30)
    client.notify("notifications/cancelled", requestId=call)
    assert engine.cancelled.wait(30)
    told = next(text for _ in range(10_000) if (text := client.text("who")) != "s0 tester 7")
    assert "Done: wait for it." in told
    assert engine.files["slow"] == "done"
    assert client.text("who") == "s0 tester 7"


def test_calls_at_once_tell_the_news_rather_twice_than_never(client, engine):
    client.shake_hands()
    engine.unheard.add("", "Ann said no: not here")
    calls = [client.begin("tools/call", {"name": "meet"}) for _ in range(3)]
    texts = [client.answer(call)["result"]["content"][0]["text"] for call in calls]
    assert any("not here" in text for text in texts)
    assert client.text("who") == "s0 tester 7"


# -- how long an answer may be ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("tester", 40_000),
        ("claude-code", 40_000),
        ("codex-mcp-client", 9_000),
        ("gemini-cli-mcp-client-fs", 32_000),
        ("qwen-cli-mcp-client-fs", 19_000),
        ("Visual Studio Code", 7_500),
    ],
)
@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_an_answer_may_take_what_the_client_passes_on(client, era, name, page):
    info = {"name": name, "version": "1"}
    if era == "handshake":
        client.ask("initialize", handshake(clientInfo=info))
        assert client.text("size") == str(page)
    else:
        asked = client.ask("tools/call", modern(name="size", _meta={CLIENT_KEY: info}))
        assert asked["result"]["content"][0]["text"] == str(page)


def test_what_the_person_set_goes_before_what_is_known_of_the_client(in_thread, small, engine):
    client = in_thread(lambda pipes: small.start(engine, pipes=pipes, page=5_000))
    client.ask("initialize", handshake(clientInfo={"name": "codex-mcp-client", "version": "1"}))
    assert client.text("size") == "5000"


# -- cancellation and progress ----------------------------------------------------------------


def test_a_cancelled_call_is_told_so_and_not_answered(client, engine):
    client.shake_hands()
    call = client.begin("tools/call", {"name": "wait", "_meta": {"progressToken": "t"}})
    client.notes.get(timeout=30)
    client.notify("notifications/cancelled", requestId=call, reason="enough")
    assert engine.cancelled.wait(30)
    assert client.ask("ping")["result"] == {}
    client.hang_up()
    assert client.wait_for_the_end() == []


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_call_that_lasts_is_cancelled_while_many_short_ones_pass(client, engine, era):
    if era == "handshake":
        client.shake_hands()
    asked = dict if era == "handshake" else modern
    lasting = client.begin("tools/call", asked(name="wait", _meta={"progressToken": "t"}))
    short = [client.begin("tools/call", asked(name="who")) for _ in range(64)]
    for call in short:
        assert "tester" in client.answer(call)["result"]["content"][0]["text"]
    assert not engine.cancelled.is_set()
    more = [client.begin("tools/call", asked(name="who")) for _ in range(32)]
    client.notify("notifications/cancelled", requestId=lasting)
    more += [client.begin("tools/call", asked(name="who")) for _ in range(32)]
    assert engine.cancelled.wait(30)
    for call in more:
        client.answer(call)
    client.hang_up()
    assert client.wait_for_the_end() == []


def test_a_stray_cancellation_is_ignored(client):
    client.shake_hands()
    done = client.begin("tools/call", {"name": "who"})
    client.answer(done)
    for stray in (done, 10**6, "x", None, [1], {}):
        client.notify("notifications/cancelled", requestId=stray)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    assert client.text("who") == "s0 tester 7"


def test_progress_is_told_a_few_times_a_second(client):
    client.shake_hands()
    params = {"name": "wait", "arguments": {"steps": 60}, "_meta": {"progressToken": 0}}
    assert client.ask("tools/call", params)["result"]["content"][0]["text"] == "done"
    told = [client.notes.get_nowait()["params"] for _ in range(client.notes.qsize())]
    values = [one["progress"] for one in told]
    assert values == sorted(set(values))
    assert 2 <= len(told) < 30
    assert {one["progressToken"] for one in told} == {0}
    assert told[0]["message"] == "step 0"


def test_without_a_token_no_progress_is_told(client):
    client.shake_hands()
    assert client.text("wait", steps=3) == "done"
    assert client.notes.empty()


# -- the client's folders ---------------------------------------------------------------------


@pytest.fixture
def narrowed():
    return []


@pytest.fixture
def rooted(in_thread, small, engine, narrowed):
    """A client whose folders are recorded; one of them makes the server say something."""

    def narrow(folders):
        if not any(map(os.path.isabs, folders)):
            raise PathBlockedError("no folder", hint="Share one.")
        narrowed.append(list(folders))
        return "a folder is outside" if "/outside" in folders else None

    return in_thread(lambda pipes: small.start(engine, pipes=pipes, narrow=narrow))


def tell_folders(client, *uris) -> None:
    question = client.asked.get(timeout=30)
    assert question["method"] == "roots/list"
    roots = [{"uri": uri} for uri in uris]
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}})


def test_the_clients_folders_narrow_before_the_first_call(rooted, narrowed, caplog):
    rooted.shake_hands(roots={"listChanged": True})
    call = rooted.begin("tools/call", {"name": "who"})
    tell_folders(rooted, "file:///a%20b/%25c", "file://localhost/d", "file:///outside")
    rooted.answer(call)
    assert narrowed == [["/a b/%c", "/d", "/outside"]]
    assert "a folder is outside" in caplog.text


def test_folders_that_change_are_asked_for_again(rooted, narrowed):
    rooted.shake_hands(roots={"listChanged": True})
    tell_folders(rooted, "file:///a")
    rooted.text("who")
    rooted.notify("notifications/roots/list_changed")
    tell_folders(rooted, "file:///b")
    rooted.text("who")
    rooted.hang_up()
    rooted.wait_for_the_end()
    assert narrowed == [["/a"], ["/b"]]


def test_no_folder_of_this_machine_narrows_nothing(rooted, narrowed):
    rooted.shake_hands(roots={})
    tell_folders(rooted, "file://server/share")
    rooted.text("who")
    assert narrowed == []


def test_a_client_that_refuses_to_tell_is_served(rooted, narrowed):
    rooted.shake_hands(roots={})
    question = rooted.asked.get(timeout=30)
    error = {"code": -32601, "message": "no"}
    rooted.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
    assert rooted.text("who") == "s0 tester 7"
    assert narrowed == []


def test_an_empty_list_leaves_in_force_what_is(rooted, narrowed):
    rooted.shake_hands(roots={"listChanged": True})
    tell_folders(rooted, "file:///a")
    rooted.text("who")
    rooted.notify("notifications/roots/list_changed")
    tell_folders(rooted)
    assert rooted.text("who") == "s0 tester 7"
    assert narrowed == [["/a"]]


def test_a_path_for_a_uri_is_taken_as_it_is(rooted, narrowed):
    rooted.shake_hands(roots={})
    tell_folders(rooted, "/a b/%41", "vscode-remote://x/y")
    rooted.text("who")
    assert narrowed == [["/a b/%41"]]


NOT_TOLD = [
    {"error": {"code": -32603, "message": "not yet"}},
    {"error": {}},
    {"result": {"roots": 5}},
    {"result": {"roots": {}}},
    {"result": {"roots": [{"uri": "file:///a%00"}]}},
    {"result": {"roots": [{"uri": "file:///a/\ud800"}]}},
    {"result": {"roots": [{"uri": "FILE://localhost/a/\ud800"}]}},
    {"result": {"roots": ["/a"]}},
    {"result": {"roots": [{"uri": 5}]}},
    {"result": {"roots": [{"uri": "a/b"}, {"uri": ""}]}},
    {"result": {"roots": [{"uri": "file:sub"}, {"uri": "vscode-remote://x/y"}]}},
    {"result": {}},
]


@pytest.mark.parametrize("told", NOT_TOLD)
def test_who_does_not_tell_is_refused_at_once_and_asked_again_with_the_next_call(
    rooted, narrowed, told
):
    rooted.shake_hands(roots={})
    question = rooted.asked.get(timeout=30)
    rooted.send({"jsonrpc": "2.0", "id": question["id"], **told})
    call = rooted.begin("tools/call", {"name": "who"})
    question = rooted.asked.get(timeout=30)
    rooted.send({"jsonrpc": "2.0", "id": question["id"], **told})
    result = rooted.answer(call)["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("FOLDERS_UNKNOWN")
    assert narrowed == []
    call = rooted.begin("tools/call", {"name": "who"})
    tell_folders(rooted, "file:///a")
    assert rooted.answer(call)["result"]["content"][0]["text"] == "s0 tester 7"
    assert narrowed == [["/a"]]


def test_a_client_that_is_silent_may_use_nothing_until_it_tells(in_thread, small, engine, narrowed):
    def narrow(folders):
        narrowed.append(list(folders))

    def start(pipes):
        small.start(engine, pipes=pipes, narrow=narrow, patience=0.0)

    client = in_thread(start)
    client.shake_hands(roots={})
    for _ in range(2):
        assert client.call("who")["content"][0]["text"].startswith("FOLDERS_UNKNOWN")
    tell_folders(client, "file:///a")
    assert client.text("who") == "s0 tester 7"
    assert narrowed == [["/a"]]


def test_a_call_before_the_handshake_is_over_waits_as_well(rooted, narrowed):
    capabilities = {"roots": {}}
    rooted.ask("initialize", handshake() | {"capabilities": capabilities})
    call = rooted.begin("tools/call", {"name": "who"})
    tell_folders(rooted, "file:///a")
    assert rooted.answer(call)["result"]["content"][0]["text"] == "s0 tester 7"
    assert narrowed == [["/a"]]


def test_folders_that_cannot_be_used_are_none(in_thread, small, engine):
    def narrow(_folders):
        raise PathBlockedError("no folder", hint="Share one.")

    client = in_thread(lambda pipes: small.start(engine, pipes=pipes, narrow=narrow))
    client.shake_hands(roots={})
    tell_folders(client, "file:///a")
    call = client.begin("tools/call", {"name": "who"})
    tell_folders(client, "file:///a")
    said = client.answer(call)["result"]["content"][0]["text"]
    assert said.startswith("FOLDERS_UNKNOWN")
    assert "Share one." in said


def test_a_client_that_hangs_up_without_telling_ends_what_waits(rooted):
    rooted.shake_hands(roots={})
    call = rooted.begin("tools/call", {"name": "who"})
    rooted.hang_up()
    assert rooted.answer(call)["result"]["isError"]
    rooted.wait_for_the_end()


def test_a_client_without_folders_is_not_asked(rooted):
    rooted.shake_hands()
    rooted.text("who")
    assert rooted.asked.empty()


# -- hostile and broken lines -----------------------------------------------------------------

DEEP = 100_000

# fmt: off
LINES = [
    (b"[" * DEEP + b"]" * DEEP, PARSE_ERROR, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"x","params":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}", PARSE_ERROR, None),
    (b"{", PARSE_ERROR, None),
    (b"not json", PARSE_ERROR, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', METHOD_NOT_FOUND, 1),
    (b'{"jsonrpc":"2.0","id":"q","params":{"x":"\\ud800"},"method":"no/such"}', METHOD_NOT_FOUND, "q"),
    (b'{"jsonrpc":"2.0","id":"q","method":"x","params":' + b'{"a":' * 400 + b'"\\ud800"' + b"}" * 401, PARSE_ERROR, "q"),
    (b'"\\ud800"', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"\\ud83d"}}', INVALID_PARAMS, "q"),
    (b"x" * (LINE_LIMIT + 1), INVALID_REQUEST, None),
    (b"[]", INVALID_REQUEST, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, None),
    (b"5", INVALID_REQUEST, None),
    (b"null", INVALID_REQUEST, None),
    (b"{}", INVALID_REQUEST, None),
    (b'{"id":"q","method":"ping"}', INVALID_REQUEST, "q"),
    (b'{"jsonrpc":"1.0","id":"q","method":"ping"}', INVALID_REQUEST, "q"),
    (b'{"jsonrpc":"2.0","id":"q"}', INVALID_REQUEST, "q"),
    (b'{"jsonrpc":"2.0","id":"q","method":5}', INVALID_REQUEST, "q"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":"q","method":"ping","params":[1]}', INVALID_PARAMS, "q"),
    (b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":5}}', INVALID_PARAMS, "q"),
    (b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"who","arguments":[1]}}', INVALID_PARAMS, "q"),
]
IGNORED = [
    b"",
    b"   \t ",
    b"Content-Length: 52",
    b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r",
    b'{"jsonrpc":"2.0","id":99,"result":{}}',
    b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":99,"error":5}',
    b'{"jsonrpc":"2.0","id":99,"result":5}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","method":"no/such/notification"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}',
]
# fmt: on


@pytest.mark.parametrize(("line", "code", "wanted"), LINES)
def test_a_line_that_is_no_message_is_refused_and_the_server_lives(client, line, code, wanted):
    client.shake_hands()
    client.send(line + b"\n")
    assert client.answer(wanted)["error"]["code"] == code
    assert client.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    "half", [rb"\ud83d", rb"\ude00", rb"\ud83d\ud83d", b"\xff", b"\xed\xa0\xbd"]
)
@pytest.mark.parametrize("warm", [True, False])
def test_half_of_a_character_in_an_argument_is_told_by_the_name_of_the_argument(client, half, warm):
    client.shake_hands()
    if warm:
        client.text("who")
    call = b'"method":"tools/call","params":{"name":"read","arguments":{"path":"a%b"}}'
    client.send(b'{"jsonrpc":"2.0","id":"q",' + call % half + b"}\n")
    result = client.answer("q")["result"]
    assert result["isError"]
    assert "INVALID_PARAMS: path: line 1, column 2 holds half of a" in result["content"][0]["text"]


@pytest.mark.parametrize("line", IGNORED)
def test_a_line_that_asks_nothing_is_ignored(client, line):
    client.shake_hands()
    client.send(line + b"\n")
    assert client.ask("ping")["result"] == {}
    client.hang_up()
    assert client.wait_for_the_end() == []


def test_a_hundred_megabytes_without_a_line_end_are_refused_once(client):
    client.shake_hands()
    for _ in range(100):
        client.send(b"x" * 1_000_000)
    client.send(b"\n")
    assert client.answer(None)["error"]["code"] == INVALID_REQUEST
    assert client.ask("ping")["result"] == {}
    client.hang_up()
    assert client.wait_for_the_end() == []


def test_a_header_before_each_message_is_skipped(client):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake()})
    client.send(f"Content-Length: {len(body)}\r\n\r\n{body}\n".encode())
    assert "result" in client.answer(1)


@given(st.lists(st.integers(0, 200), max_size=8))
def test_messages_are_the_same_however_the_bytes_are_cut(cuts):
    stream = b'{"jsonrpc":"2.0","id":1,"method":"a"}\r\n\n{"x\n' + b"y" * 60 + b"\n"
    stream += b'{"jsonrpc":"2.0","method":"\xc3\xa4"}'
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = MessageReader(from_json, limit=50)
    found = []
    for start, end in itertools.pairwise(places):
        found += reader.feed(stream[start:end])
    found += reader.end()
    assert [one.code if isinstance(one, ErrorResponse) else one["method"] for one in found] == [
        "a",
        PARSE_ERROR,
        INVALID_REQUEST,
        "ä",
    ]


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(data):
    reader = MessageReader(from_json)
    for item in [*reader.feed(data + b"\n" + data), *reader.end()]:
        json.dumps(item.reply if isinstance(item, ErrorResponse) else item)


# -- the pipes ----------------------------------------------------------------------------------


def test_input_that_cannot_be_read_is_the_end(small, engine):
    server_in, to_server = os.pipe()
    small.start(engine, pipes=(to_server, to_server))
    os.close(server_in)
    os.close(to_server)


def test_standard_pipes_are_taken_and_given_back(capfd):
    with standard_pipes() as (source, sink):
        print("stray")
        os.write(1, b"stray\n")
        os.write(sink, b"message\n")
        assert os.read(0, 1) == b""
    os.close(source)
    os.close(sink)
    print("back")
    said, complained = capfd.readouterr()
    assert said == "message\nback\n"
    assert complained == "stray\nstray\n"


# -- beginning and end ------------------------------------------------------------------------


def test_instructions_that_are_too_long_are_a_mistake_of_ours(small, engine):
    with pytest.raises(ValueError, match="too long"):
        serve(
            Toolset(small.TOOLS, engine),
            name="x",
            version="1",
            instructions="x" * (INSTRUCTIONS_LIMIT + 1),
            session_factory=lambda actor: actor,
            narrow=lambda _folders: None,
        )


def test_half_a_message_and_the_end_is_a_clean_exit(program):
    client, process = program
    client.send(b'{"jsonrpc":"2.0","id":1,"meth')
    client.hang_up()
    (refused,) = client.wait_for_the_end()
    assert refused["error"]["code"] == PARSE_ERROR
    assert process.wait(30) == 0


def test_a_script_that_is_piped_in_is_answered_whole(client, engine):
    engine.meeting = threading.Barrier(4)
    client.shake_hands()
    calls = [client.begin("tools/call", {"name": "meet"}) for _ in range(3)]
    for _ in calls:
        assert engine.begun.acquire(timeout=30)
    client.hang_up()
    engine.meeting.wait(30)
    answers = {one["id"]: one for one in client.wait_for_the_end()}
    assert [answers[call]["result"]["content"][0]["text"] for call in calls] == ["met"] * 3


def test_a_call_that_lasts_is_cancelled_when_the_client_has_left(client, engine):
    client.shake_hands()
    client.begin("tools/call", {"name": "wait"})
    client.hang_up()
    (answer,) = client.wait_for_the_end()
    assert answer["result"]["content"][0]["text"] == "cancelled"
    assert engine.cancelled.is_set()


def test_the_server_leaves_when_nobody_takes_its_answers(small, engine):
    server_in, to_server = os.pipe()
    nobody, server_out = os.pipe()
    os.close(nobody)
    os.write(to_server, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
    small.start(engine, pipes=(server_in, server_out))
    for descriptor in (server_in, to_server, server_out):
        os.close(descriptor)


def test_a_signal_to_this_very_process_ends_only_the_server(small, engine):
    server_in, to_server = os.pipe()
    from_server, server_out = os.pipe()

    def client() -> None:
        for message in (
            {"id": 1, "method": "initialize", "params": handshake()},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "who"}},
        ):
            os.write(to_server, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        with open(from_server, "rb") as answers:
            answers.readline()
            answers.readline()
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=client)
    thread.start()
    small.start(engine, pipes=(server_in, server_out))
    thread.join()
    for descriptor in (to_server, server_out):
        os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_cleanly_also_during_a_call(program, number):
    client, process = program
    client.shake_hands()
    client.begin("tools/call", {"name": "wait", "_meta": {"progressToken": 1}})
    client.notes.get(timeout=30)
    process.send_signal(number)
    assert process.wait(30) == 0
    assert process.stderr.read() == b""


def test_nothing_but_the_protocol_reaches_standard_output(program):
    client, process = program
    client.shake_hands()
    assert client.text("chatter") == "read '' and b''"
    client.hang_up()
    client.wait_for_the_end()
    assert process.wait(30) == 0
    said = process.stderr.read()
    for word in (b"print", b"descriptor", b"child"):
        assert word in said
    assert all(line.startswith(b'{"jsonrpc":"2.0"') for line in client.raw)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain\n" * 2_000,
        '1\u2502say "a\\b"\tc\r\n' * 500,
        "\x00\x01\x1f\x7f\u2028" * 1_000,
        "\ud800" + "long " * 1_000,
        "\U0001f600\xe4" * 2_500,
    ],
)
def test_every_text_is_encoded_whole(text, monkeypatch):
    monkeypatch.delitem(sys.modules, "pydantic_core")  # as in a server, which does not load it
    blocks = [{"type": "text", "text": text}, {"type": "text", "text": text.upper()}]
    message = {"id": 1, "result": {"content": blocks, "isError": False, text[:5_000]: None}}
    line = encode(message)
    assert b"\n" not in line
    assert json.loads(line) == message

"""A gateway speaks Streamable HTTP: what it takes, what it refuses, and how, in both protocol eras."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from filepact_gateway.exchange import CallPool, GatewayCall
from filepact_gateway.tokens import SessionTokens
from gateway_running import BOTH, RunningGateway

if TYPE_CHECKING:
    from pathlib import Path

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


# -- the era of handshakes -------------------------------------------------------------------------


def test_a_handshake_opens_a_session_in_which_tools_are_called(gateway, base):
    client = gateway.client()
    opened = client.open()
    assert opened.status == 200
    assert opened.result["protocolVersion"] == "2025-11-25"
    assert client.session.isascii()
    assert client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    (base / "root" / "b.txt").write_text("one\n")
    assert "one" in client.call("read_file", path="b.txt").text
    edited = client.call("edit_file", path="b.txt", old_string="one", new_string="1")
    assert edited.result["isError"] is False
    assert (base / "root" / "b.txt").read_text() == "1\n"
    operation = edited.result["_meta"]["filepact/receipt"]["operation"]
    assert client.call("history", action="undo", change=operation).result["isError"] is False
    assert (base / "root" / "b.txt").read_text() == "one\n"


def test_a_request_that_is_not_ordinary_is_answered_by_the_protocol_package(gateway):
    answer = gateway.opened().ask("resources/list")
    assert answer.status == 200
    assert answer.message["error"]["code"] == -32601


def test_a_place_in_a_list_that_nobody_was_given_is_refused(gateway):
    client = gateway.opened()
    answers = (
        client.ask("tools/list", {"cursor": "x"}),
        client.without_session("tools/list", cursor="x"),
    )
    assert [one.message["error"]["code"] for one in answers] == [-32602] * 2


def test_a_handshake_that_is_not_ordinary_opens_a_session_as_well(gateway):
    client = gateway.client()
    told = {"name": "odd", "version": "1", "icons": []}
    assert client.open(clientInfo=told).status == 200
    assert client.ask("ping").result == {}


def test_a_session_that_its_client_ends_is_unknown_from_then_on(gateway):
    client = gateway.opened()
    assert client.send("DELETE", mcp_session_id=client.session).status == 204
    gone = client.ask("ping")
    assert (gone.status, gone.code) == (404, "SESSION_UNKNOWN")
    again = client.send("DELETE", mcp_session_id=client.session)
    assert (again.status, again.code) == (404, "SESSION_UNKNOWN")


@pytest.mark.parametrize("session", ["none", "a.b", "é.x", "WyJ4Il0.AAAA", "x" * 3_000])
def test_a_session_id_that_was_made_up_is_unknown(gateway, session):
    answer = gateway.client().post(PING, mcp_session_id=session)
    assert (answer.status, answer.code) == (404, "SESSION_UNKNOWN")


def test_a_session_id_counts_only_as_it_was_made():
    def tokens(now: float, secret: bytes = b"one") -> SessionTokens:
        return SessionTokens(secret, lasts=60, has_ended=lambda _id: False, clock=lambda: now)

    _, token = tokens(1_000).open("2025-11-25", ("a", "1"), user="ann", realm="docs")
    found = tokens(1_060).read(token, user="ann", realm="docs")
    assert (found.client, found.version) == (("a", "1"), "2025-11-25")
    for reader, user, realm in (
        (tokens(1_061), "ann", "docs"),
        (tokens(1_000, b"two"), "ann", "docs"),
        (tokens(1_000), "bob", "docs"),
        (tokens(1_000), "", "docs"),
        (tokens(1_000), "ann", ""),
    ):
        with pytest.raises(Exception) as caught:
            reader.read(token, user=user, realm=realm)
        assert caught.value.code == "SESSION_UNKNOWN"


def test_a_request_without_a_session_is_refused(gateway):
    assert gateway.client().post(PING).status == 400


def test_another_process_goes_on_with_a_session(gateway, base):
    other = RunningGateway(base, [str(base / "root")])
    try:
        client = gateway.opened()
        there = other.client()
        there.session = client.session
        assert "two" in there.call("read_file", path="a.txt").text
        assert there.send("DELETE", mcp_session_id=client.session).status == 204
        assert client.ask("ping").code == "SESSION_UNKNOWN"
    finally:
        assert other.end() == 0


def test_in_the_version_that_has_them_several_messages_may_come_as_one(gateway, base):
    client = gateway.client()
    client.open("2025-03-26")
    file = base / "root" / "batch.txt"
    file.touch()
    called = {
        "name": "write_file",
        "arguments": {"path": "batch.txt", "content": "x\n", "append": True},
    }
    asked = [
        PING | {"id": "a"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": called},
        {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": called},
        {"jsonrpc": "2.0", "id": "d", "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": "e"},
    ]
    for times in (1, 2):
        (told,) = client.post(asked).messages
        found = {one["id"]: one for one in told}
        assert found["a"]["result"] == {}
        assert [found[name]["result"]["isError"] for name in "bc"] == [False, False]
        assert [found[name]["error"]["code"] for name in "de"] == [-32600, -32600]
        assert file.read_text() == "x\n" * 2 * times
    assert client.post([asked[1]]).status == 202
    assert client.post([]).status == 400
    other = gateway.opened()
    assert other.post([PING]).message["error"]["code"] == -32600


def test_the_address_may_end_with_a_slash(gateway):
    client = gateway.client("/mcp/")
    assert client.open().status == 200
    assert client.call("read_file", path="a.txt").status == 200


# -- the era without handshakes --------------------------------------------------------------------


def test_without_a_handshake_every_request_stands_for_itself(gateway, base):
    client = gateway.client()
    assert "2026-07-28" in client.without_session("server/discover").result["supportedVersions"]
    (base / "root" / "c.txt").write_text("one\n")
    arguments = {"path": "c.txt", "old_string": "one", "new_string": "1"}
    edited = client.without_session("tools/call", name="edit_file", arguments=arguments)
    assert edited.status == 200
    assert "mcp-session-id" not in edited.headers
    assert (base / "root" / "c.txt").read_text() == "1\n"
    undone = client.without_session("tools/call", name="history", arguments={"action": "undo"})
    assert undone.result["isError"] is False
    assert (base / "root" / "c.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp_method": "tools/list"}, -32020),
        ({"mcp_method": ""}, -32020),
        ({"mcp_protocol_version": "2025-11-25"}, -32020),
    ],
)
def test_headers_that_say_something_else_than_the_message_are_refused(gateway, headers, code):
    answer = gateway.client().without_session("server/discover", headers)
    assert (answer.status, answer.message["error"]["code"]) == (400, code)


def test_a_handshake_is_no_method_of_the_era_without_one(gateway):
    answer = gateway.client().without_session("initialize")
    assert (answer.status, answer.message["error"]["code"]) == (404, -32601)


def test_what_needs_no_answer_is_taken_and_does_nothing(gateway):
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert gateway.client().post(note, mcp_protocol_version="2026-07-28").status == 202


@pytest.mark.parametrize("params", [[1], "x", 1])
def test_an_answer_is_taken_whatever_else_is_in_it(gateway, params):
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}, "params": params}
    assert gateway.opened().post(answer).status == 202


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
def test_there_is_no_stream_to_listen_to_or_to_go_on_with(gateway, method):
    client = gateway.opened()
    answer = client.send(
        method, mcp_session_id=client.session, accept="text/event-stream", last_event_id="4"
    )
    assert answer.status == 405
    assert answer.headers["allow"] == "POST, DELETE"


def test_a_name_that_leads_here_from_elsewhere_is_refused(gateway):
    port = gateway.address.partition(":")[2]
    assert gateway.client().post(PING, host=f"evil.example:{port}").status == 421
    assert gateway.client().post(PING, host=f"localhost:{port}").status == 400  # no session


def test_a_page_of_elsewhere_may_not_ask(gateway):
    assert gateway.client().post(PING, origin="https://evil.example").status == 403
    assert gateway.client().post(PING, origin="null").status == 403
    assert gateway.client().post(PING, origin=f"http://{gateway.address}").status == 400
    preflight = {"origin": "https://evil.example", "access_control_request_method": "POST"}
    assert gateway.client().send("OPTIONS", **preflight).status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "text/plain"}, 415),
        ({"content_type": ""}, 415),
        ({"accept": "text/html"}, 406),
        ({"mcp_protocol_version": "1999-01-01"}, 400),
    ],
)
def test_a_form_that_is_not_of_the_protocol_is_refused(gateway, headers, status):
    assert gateway.client().post(PING, **headers).status == status


def test_a_client_that_takes_no_streams_gets_json(gateway):
    client = gateway.opened()
    answer = client.ask("ping", accept="application/json")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"[" * 5_000, b'{"jsonrpc": "2.0", "id": {}, "method": "x"}', b"\xff", b"1"],
)
def test_what_is_no_message_is_refused(gateway, body):
    assert gateway.client().post(body).status == 400


@pytest.mark.parametrize("path", ["/", "/mcp//", "/mcp/other", "/mcp/../mcp", "/healthz"])
def test_there_is_nothing_at_other_paths(gateway, path):
    assert gateway.client(path).post(PING).status == 404


def test_a_request_that_is_too_large_is_refused_before_all_of_it_came(tmp_path: Path):
    (tmp_path / "root").mkdir()
    running = RunningGateway(
        tmp_path, [str(tmp_path / "root")], settings="[serve]\nmegabytes = 1\n"
    )
    try:
        client = running.client()
        answer = client.post(json.dumps(PING | {"params": {"x": "y" * 1_000_000}}).encode())
        assert (answer.status, answer.code) == (413, "REQUEST_TOO_LARGE")
        parts = (b"y" * 100_000 for _ in range(11))
        usual = {"content_type": "application/json", "accept": BOTH}
        chunked = client.send("POST", parts, **usual)  # whose length is not told
        assert (chunked.status, chunked.code) == (413, "REQUEST_TOO_LARGE")
    finally:
        assert running.end() == 0


# -- what is told to whoever watches ---------------------------------------------------------------


def test_health_and_metrics_are_told_at_an_address_of_their_own(gateway):
    assert gateway.watched("/healthz").status == 200
    assert gateway.watched("/readyz").status == 200
    before = gateway.metric("filepact_gateway_sessions_total")
    gateway.opened()
    assert gateway.metric("filepact_gateway_sessions_total") == before + 1
    assert gateway.watched("/mcp").status == 404
    other = gateway.client()
    other.address = gateway.health
    refused = other.send("POST", path="/healthz")
    assert (refused.status, refused.headers["allow"]) == (405, "GET")
    assert gateway.client().send("GET", path="/metrics").status == 404


def test_at_the_end_calls_that_no_thread_has_come_to_are_skipped_and_the_others_waited_for() -> (
    None
):
    begun, go = threading.Event(), threading.Event()

    def work(_call: Any) -> Any:
        begun.set()
        assert go.wait(60)
        raise RuntimeError

    async def end() -> list[Any]:
        pool, loop = CallPool(1), asyncio.get_running_loop()
        calls = [GatewayCall(loop, work) for _ in range(3)]
        for one in calls:
            pool.begin(one)
        await asyncio.to_thread(begun.wait, 60)
        closing = asyncio.create_task(asyncio.to_thread(pool.close))
        found = [await one.next(60) for one in calls[1:]]
        assert not closing.done()
        go.set()
        found.append(await calls[0].next(60))
        await closing
        return found

    assert asyncio.run(end()) == [None, None, None]

"""Calls at a gateway: progress, cancellation, limits, clients that leave or take nothing, and the end."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

import pytest

from filepact.errors import GatewayBusyError, RateLimitedError
from filepact_gateway.limits import LimitChecks
from filepact_gateway.settings import CallLimits
from gateway_running import BOTH, PATIENCE, Client, in_thread, running_calls
from tests.faces.envelopes import modern
from tests.faces.small_server import wait_for


def raw(gateway, message: dict, **headers: str) -> socket.socket:
    """A connection on which a request was sent, and from which nothing was read."""
    host, _, port = gateway.address.partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect((host, int(port)))
    connection.sendall(request(gateway, message, **headers))
    return connection


def request(gateway, message: dict, **headers: str) -> bytes:
    body = json.dumps(message).encode()
    lines = {
        "Host": gateway.address,
        "Content-Type": "application/json",
        "Accept": BOTH,
        "Content-Length": str(len(body)),
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    head = "".join(f"{key}: {value}\r\n" for key, value in lines.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def called(name: str, wanted: int = 1, **arguments: Any) -> dict:
    params = modern(name=name, arguments=arguments)
    return {"jsonrpc": "2.0", "id": wanted, "method": "tools/call", "params": params}


def said(name: str) -> dict[str, str]:
    return {
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": "tools/call",
        "mcp_name": name,
    }


# -- progress and cancellation ---------------------------------------------------------------------


def test_progress_makes_a_stream_that_ends_with_the_answer(small_gateway):
    client = small_gateway().opened()
    params = {"name": "wait", "arguments": {"steps": 30}, "_meta": {"progressToken": "p"}}
    answer = client.ask("tools/call", params)
    assert answer.headers["content-type"] == "text/event-stream"
    *notes, last = answer.messages
    assert {note["method"] for note in notes} == {"notifications/progress"}
    assert last["result"]["content"][0]["text"] == "done"


def test_a_client_without_streams_gets_the_answer_alone(small_gateway):
    client = small_gateway().opened()
    params = {"name": "wait", "arguments": {"steps": 10}, "_meta": {"progressToken": "p"}}
    answer = client.ask("tools/call", params, accept="application/json")
    assert [one["result"]["content"][0]["text"] for one in answer.messages] == ["done"]


def test_a_cancelled_call_ends_and_is_not_answered(small_gateway):
    gateway = small_gateway()
    client = gateway.opened()
    other = Client(gateway.address)
    other.session = client.session
    answer = in_thread(lambda: client.call("wait", id_=5, steps=100_000))
    assert gateway.engine.waiting.wait(PATIENCE)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    assert other.post(note).status == 202
    assert answer().messages == []
    assert gateway.engine.cancelled.is_set()
    unanswered = "filepact_gateway_calls_total", 'outcome="unanswered"'
    assert wait_for(lambda: gateway.metrics.value(*unanswered) == 1)


@pytest.mark.parametrize(("wanted", "other"), [(5, "5"), ("5", 5)], ids=["number", "text"])
def test_a_number_and_a_text_that_spells_it_are_two_ids(small_gateway, wanted, other):
    gateway = small_gateway()
    client = gateway.opened()
    ended, goes_on = (
        in_thread(lambda i=i, n=n: client.call("wait", id_=i, steps=n))
        for i, n in ((wanted, 100_000), (other, 60))
    )
    assert wait_for(lambda: running_calls(gateway) == 2)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wanted}}
    assert client.post(note).status == 202
    assert ended().messages == []
    assert goes_on().text == "done"


def test_a_number_that_is_cancelled_as_text_is_found(small_gateway):
    gateway = small_gateway()
    client = gateway.opened()
    answer = in_thread(lambda: client.call("wait", id_=5, steps=100_000))
    assert gateway.engine.waiting.wait(PATIENCE)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "5"}}
    assert client.post(note).status == 202
    assert answer().messages == []


def test_nobody_cancels_the_calls_of_another_session(small_gateway):
    gateway = small_gateway()
    client, stranger = gateway.opened(), gateway.opened()
    answer = in_thread(lambda: client.call("wait", id_=5, steps=60))
    assert wait_for(lambda: running_calls(gateway))
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    assert stranger.post(note).status == 202
    assert answer().text == "done"
    # It may run elsewhere, so the other workers are told.
    assert [wanted for _, wanted in gateway.elsewhere] == [5]


def test_without_handshakes_whoever_leaves_has_cancelled(small_gateway):
    gateway = small_gateway()
    connection = raw(gateway, called("wait", steps=100_000), **said("wait"))
    assert gateway.engine.waiting.wait(PATIENCE)
    connection.close()
    assert gateway.engine.cancelled.wait(PATIENCE)
    assert wait_for(lambda: not running_calls(gateway))


def test_in_a_session_the_call_of_whoever_leaves_goes_on(small_gateway):
    gateway = small_gateway()
    client = gateway.opened()
    message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call"}
    message["params"] = {"name": "wait", "arguments": {"steps": 40}}
    connection = raw(gateway, message, mcp_session_id=client.session)
    assert wait_for(lambda: running_calls(gateway))
    connection.close()
    assert wait_for(lambda: not running_calls(gateway))
    assert not gateway.engine.cancelled.is_set()
    assert client.call("who").status == 200


# -- limits ----------------------------------------------------------------------------------------


def waiting(gateway) -> int:
    """How many calls wait in line."""
    uses = gateway.endpoint._limits._uses
    return max(use.waiting for (kind, _), use in uses.items() if kind == "user")


def test_calls_beyond_those_at_once_wait_in_line(small_gateway):
    gateway = small_gateway(CallLimits(session_at_once=2))
    client = gateway.opened()
    answers = [in_thread(lambda: client.call("meet")) for _ in range(2)]
    assert wait_for(lambda: running_calls(gateway) == 2)
    later = [in_thread(lambda: client.call("who")) for _ in range(20)]
    assert wait_for(lambda: waiting(gateway) == 20)
    # Another session has a line of its own.
    assert gateway.opened().call("meet").text == "met"
    assert [one().text for one in answers] == ["met", "met"]
    assert [one().result["isError"] for one in later] == [False] * 20
    assert wait_for(lambda: waiting(gateway) == 0)


@pytest.mark.parametrize("modern", [False, True])
def test_what_is_more_than_may_wait_is_refused_so_that_the_model_hears_of_it(small_gateway, modern):
    gateway = small_gateway(CallLimits(user_at_once=2, user_waiting=1), drain=0.5)
    client = gateway.opened()
    answers = [in_thread(lambda: client.call("wait", steps=100_000)) for _ in range(2)]
    assert wait_for(lambda: running_calls(gateway) == 2)
    waits = in_thread(lambda: client.call("who"))
    assert wait_for(lambda: waiting(gateway) == 1)
    if modern:
        refused = client.without_session("tools/call", name="who", arguments={})
        assert refused.result["resultType"] == "complete"
    else:
        refused = client.call("who")
    assert (refused.status, refused.result["isError"]) == (200, True)
    assert refused.text.startswith("TOO_MANY_CALLS")
    assert int(refused.headers["retry-after"]) >= 1
    gateway.endpoint.close()
    assert waits().status == 202
    gateway.end()
    for one in answers:
        one()


def test_a_call_waits_as_long_as_a_call_may_take(small_gateway):
    gateway = small_gateway(CallLimits(session_at_once=1), waits=0.1, drain=1.0)
    client = gateway.opened()
    answer = in_thread(lambda: client.call("wait", id_=5, steps=100_000))
    assert wait_for(lambda: running_calls(gateway) == 1)
    refused = client.call("who")
    assert (refused.status, refused.result["isError"]) == (200, True)
    assert refused.text.startswith("TOO_MANY_CALLS")
    assert wait_for(lambda: waiting(gateway) == 0)
    gateway.end()
    answer()


def test_a_call_that_is_given_up_in_line_is_not_begun(small_gateway):
    gateway = small_gateway(CallLimits(session_at_once=1), drain=1.0)
    client = gateway.opened()
    answer = in_thread(lambda: client.call("wait", id_=5, steps=100_000))
    assert wait_for(lambda: running_calls(gateway) == 1)
    cancelled = in_thread(lambda: client.call("meet", id_=6))
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "meet"}}
    gone = raw(gateway, message, mcp_session_id=client.session)
    assert wait_for(lambda: waiting(gateway) == 2)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}}
    assert client.post(note).status == 202
    assert cancelled().messages == []
    gone.close()
    assert wait_for(lambda: waiting(gateway) == 0)
    # Neither has come to where the other one would be met.
    assert client.post({**note, "params": {"requestId": 5}}).status == 202
    assert answer().messages == []
    assert client.call("who").result["isError"] is False
    done = ("filepact_gateway_calls_total", 'outcome="done"')
    assert wait_for(lambda: gateway.metrics.value(*done) == 1)  # it is counted behind its answer


def test_a_session_may_make_so_many_calls_within_a_minute(small_gateway):
    gateway = small_gateway(CallLimits(session_calls=2))
    client = gateway.opened()
    assert [client.ask("ping").status for _ in range(2)] == [200, 200]
    refused = client.ask("ping")
    assert (refused.status, refused.code) == (429, "RATE_LIMITED")
    assert 1 <= int(refused.headers["retry-after"]) <= 30
    assert gateway.opened().ask("ping").status == 200


def test_what_was_used_comes_back_with_time():
    now = 0.0
    counter = LimitChecks(
        CallLimits(session_calls=60, user_calls=90, user_megabytes=6), lambda: now
    )
    for _ in range(60):
        counter.count("s", "u", 0)
    with pytest.raises(RateLimitedError) as caught:
        counter.count("s", "u", 0)
    assert caught.value.details["retry_after"] == 1
    now = 1.0
    counter.count("s", "u", 0)
    for _ in range(29):
        counter.count("t", "u", 0)
    now = 1.0
    counter.count("other", "v", 6_000_000)
    with pytest.raises(RateLimitedError) as caught:
        counter.count("other", "v", 3_000_000)
    assert caught.value.details["retry_after"] == 30
    now = 31.0
    counter.count("other", "v", 3_000_000)


def test_a_call_that_is_over_makes_room_for_the_one_that_has_waited_longest():
    counter = LimitChecks(
        CallLimits(session_at_once=2, user_at_once=3, session_waiting=2, user_waiting=4),
        lambda: 0.0,
    )
    started: list[str] = []
    over = {}

    def enter(name: str, session: str, user: str = "u") -> None:
        over[name] = counter.enter(session, user, lambda: started.append(name))

    for name, session in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b")):
        enter(name, session)
    assert started == ["a1", "a2", "b1"]
    enter("a4", "a")
    with pytest.raises(GatewayBusyError):
        enter("a5", "a")
    enter("c1", "c")
    with pytest.raises(GatewayBusyError):
        enter("c2", "c")
    enter("d1", "d", "v")
    assert started == ["a1", "a2", "b1", "d1"]
    # The session has room before its user has, who is next in line there.
    over["a1"]()
    assert started[4:] == ["b2"]
    over["c1"]()
    for name in ("b1", "a2", "b2", "a3", "a4"):
        over[name]()
        over[name]()
    assert started[5:] == ["a3", "a4"]
    enter("e1", "e")
    assert started[7:] == ["e1"]


# -- clients that take nothing ---------------------------------------------------------------------


def test_a_client_that_takes_no_answer_is_cut_off_and_keeps_nobody_waiting(small_gateway):
    gateway = small_gateway(patience=0.5)
    connection = raw(gateway, called("read", path="large"), **said("read"))
    # What it was sent is more than all buffers between the two take.
    connection.sendall(request(gateway, called("read", 2, path="large"), **said("read")) * 3)
    assert gateway.opened().call("who").status == 200
    assert wait_for(lambda: gateway.metrics.value("filepact_gateway_aborted_total"))
    assert gateway.opened().call("who").status == 200
    connection.close()


@pytest.mark.parametrize("streams", [False, True])
def test_answers_that_nobody_takes_count_as_calls_in_flight(small_gateway, streams):
    gateway = small_gateway(CallLimits(user_at_once=3), patience=PATIENCE)
    message = called("read", path="large")
    if streams:
        message["params"]["_meta"]["progressToken"] = "p"
    stuck = [raw(gateway, message, **said("read")) for _ in range(3)]
    sent = "filepact_gateway_sent_bytes_total"
    assert wait_for(lambda: gateway.metrics.value(sent) > 9_000_000)
    listed = in_thread(lambda: gateway.client().without_session("tools/list"))
    assert wait_for(lambda: waiting(gateway) == 1)
    for one in stuck:
        one.close()
    assert listed().status == 200
    assert wait_for(lambda: not running_calls(gateway))
    assert gateway.opened().call("who").status == 200


def test_a_client_that_sends_no_more_of_its_request_is_cut_off(small_gateway):
    gateway = small_gateway(patience=0.5)
    host, _, port = gateway.address.partition(":")
    body = request(gateway, called("who"), **said("who"))
    for begun in (body[:-5], body[:20], b""):
        with socket.create_connection((host, int(port))) as half:
            half.settimeout(PATIENCE)
            half.sendall(begun)
            with contextlib.suppress(ConnectionResetError):
                assert half.recv(1) == b""
    assert gateway.opened().call("who").status == 200


def is_cut_off(connection: socket.socket, part: bytes) -> bool:
    """Whether a connection is closed while more is sent on it, a little at a time."""
    connection.settimeout(0.02)

    def cut() -> bool:
        try:
            connection.sendall(part)
            return connection.recv(65_536) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    return wait_for(cut)


def test_a_client_that_never_ends_the_head_of_its_next_request_is_cut_off(small_gateway):
    gateway = small_gateway(patience=0.5)
    with raw(gateway, called("who"), **said("who")) as connection:
        connection.settimeout(PATIENCE)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"POST /mcp HTTP/1.1\r\n")
        assert is_cut_off(connection, b"x")
    assert gateway.opened().call("who").status == 200


def test_a_client_that_never_ends_a_request_that_was_refused_is_cut_off(small_gateway):
    gateway = small_gateway(patience=0.5)
    host, _, port = gateway.address.partition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        head = f"POST /mcp HTTP/1.1\r\nHost: {gateway.address}\r\nTransfer-Encoding: chunked"
        connection.sendall(f"{head}\r\n\r\n1\r\nx\r\n".encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 415")
        assert is_cut_off(connection, b"1\r\nx\r\n")
    assert gateway.opened().call("who").status == 200


def test_what_needs_no_tool_is_answered_while_every_thread_is_busy(small_gateway):
    gateway = small_gateway(threads=1, drain=1.0)
    client = gateway.opened()
    answer = in_thread(lambda: client.call("wait", steps=100_000))
    assert gateway.engine.waiting.wait(PATIENCE)
    assert gateway.opened().ask("ping").result == {}
    gateway.end()
    answer()


# -- the end ---------------------------------------------------------------------------------------


def test_calls_of_either_era_are_cancelled_when_their_time_to_end_is_over(small_gateway):
    gateway = small_gateway(drain=1.0)
    client = gateway.opened()
    answers = [in_thread(lambda: client.call("wait", steps=100_000))]
    message = called("wait", steps=100_000)
    answers.append(in_thread(lambda: Client(gateway.address).post(message, **said("wait"))))
    assert wait_for(lambda: running_calls(gateway) == 2)
    gateway.end()
    assert gateway.engine.cancelled.is_set()
    assert [(one().status, one().code) for one in answers] == [(503, "SHUTTING_DOWN")] * 2


def test_a_call_that_is_cancelled_at_the_end_is_answered_also_where_a_stream_has_begun(
    small_gateway, monkeypatch
):
    monkeypatch.setattr("filepact_gateway.handler._SILENT", 0.05)
    gateway = small_gateway(drain=1.0)
    client = gateway.opened()
    answer = in_thread(lambda: client.call("wait", steps=100_000))
    assert wait_for(lambda: running_calls(gateway) == 1)
    gateway.end()
    assert b": still at work" in answer().body
    assert (answer().status, answer().code) == (200, "SHUTTING_DOWN")


def test_calls_in_flight_are_finished_and_nothing_more_is_taken(small_gateway):
    gateway = small_gateway()
    clients = [gateway.opened() for _ in range(2)]
    answers = [in_thread(lambda one=one: one.call("meet")) for one in clients]
    assert wait_for(lambda: running_calls(gateway) == 2)
    gateway.endpoint.draining = True
    refused = clients[0].ask("ping")
    assert (refused.status, refused.code) == (503, "SHUTTING_DOWN")
    gateway.loop.call_soon_threadsafe(gateway.worker.end)
    gateway.engine.meeting.wait(PATIENCE)
    assert [one().text for one in answers] == ["met", "met"]
    gateway.end()
    with pytest.raises(ConnectionError):
        clients[0].ask("ping")

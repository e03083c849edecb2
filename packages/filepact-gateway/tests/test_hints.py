"""Every refusal of a gateway says what to do next, and who does that gets on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from filepact_gateway.settings import CallLimits
from gateway_running import RunningGateway, in_thread, running_calls
from tests.faces.small_server import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from gateway_running import Answer


def hint(answer: Answer, code: str) -> str:
    data = answer.message["error"]["data"]
    assert data["code"] == code
    said: str = data["hint"]
    return said


def test_who_begins_a_new_session_in_place_of_one_that_has_ended_gets_on(small_gateway):
    client = small_gateway().opened()
    client.send("DELETE", mcp_session_id=client.session)
    assert "initialize" in hint(client.call("who"), "SESSION_UNKNOWN")
    client.session = ""
    assert client.open().status == 200
    assert client.call("who").status == 200


def test_who_waits_for_an_answer_or_so_many_seconds_gets_on(small_gateway):
    gateway = small_gateway(CallLimits(session_at_once=2, session_waiting=0))
    client = gateway.opened()
    answers = [in_thread(lambda: client.call("meet")) for _ in range(2)]
    assert wait_for(lambda: running_calls(gateway) == 2)
    refused = client.call("who").text
    assert refused.startswith("TOO_MANY_CALLS")
    assert "Wait for an answer" in refused
    assert gateway.opened().call("meet").text == "met"
    assert [one().text for one in answers] == ["met", "met"]
    assert client.call("who").status == 200
    client = small_gateway(CallLimits(session_calls=60)).opened()
    while not (answer := client.call("who")).result["isError"]:
        pass
    assert answer.text.startswith("RATE_LIMITED")
    assert re.search(r"in \d+ seconds", answer.text)
    assert wait_for(lambda: not client.call("who").result["isError"])


def test_who_sends_less_or_another_key_gets_on(tmp_path: Path):
    (tmp_path / "root").mkdir()
    limits = "[serve]\nmegabytes = 1\n"
    running = RunningGateway(tmp_path, [str(tmp_path / "root")], settings=limits)
    try:
        client = running.opened()
        half = "x" * 600_000 + "\n"
        large = client.call("write_file", path="a.txt", content=half + half)
        assert "in several steps" in hint(large, "REQUEST_TOO_LARGE")
        for more in (False, True):
            done = client.call("write_file", path="a.txt", content=half, append=more)
            assert done.result["isError"] is False
        assert (tmp_path / "root" / "a.txt").read_text() == half + half
        for key, content in (("k1", "one\n"), ("k1", "two\n"), ("k2", "two\n")):
            sent = {"path": "b.txt", "content": content}
            answer = client.call("write_file", headers={"idempotency_key": key}, **sent)
            if answer.status != 200:
                assert (key, content) == ("k1", "two\n")
                assert "a new key" in hint(answer, "OTHER_REQUEST")
        assert (tmp_path / "root" / "b.txt").read_text() == "two\n"
    finally:
        assert running.end() == 0

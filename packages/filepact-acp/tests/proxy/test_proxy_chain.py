"""The proxy in a chain, where one program stands for both of its neighbours."""

import json
import subprocess
import sys

import pytest

DIALECTS = [
    ("_proxy/initialize", "_proxy/successor", "_proxy/successor", {}),
    ("proxy/initialize", "proxy/successor", "proxy/successor", {}),
    (
        "initialize",
        "_proxy/successor/request",
        "_proxy/successor/notification",
        {"_meta": {"proxy": True, "kept": 1}},
    ),
]


class Conductor:
    def __init__(self, tmp_path):
        (tmp_path / "work").mkdir()
        command = [sys.executable, "-m", "filepact", "acp", "--state", str(tmp_path / "state")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.process:
            self.process.stdin.close()
            assert self.process.wait(20) == 0

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def hear(self):
        message = json.loads(self.process.stdout.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("hello", "request_", "notification", "more"), DIALECTS)
def test_a_conductor_hosts_it(tmp_path, hello, request_, notification, more):
    work = str(tmp_path / "work")
    with Conductor(tmp_path) as conductor:
        conductor.send(id=1, method=hello, params={"protocolVersion": 1, **more})
        heard = conductor.hear()
        assert heard["method"] == request_
        inner = heard["params"]
        assert inner["method"] == "initialize"
        fs = {"readTextFile": True, "writeTextFile": True}
        assert inner["params"]["clientCapabilities"] == {"fs": fs}
        assert inner["params"].get("_meta") == ({"kept": 1} if more else None)
        result = {"protocolVersion": 1, "agentInfo": {"name": "far", "version": "1"}}
        conductor.send(id=heard["id"], result=result)
        assert conductor.hear() == {"id": 1, "result": result}

        params = {"cwd": work, "mcpServers": []}
        conductor.send(id=2, method="session/new", params=params)
        heard = conductor.hear()
        assert heard["params"]["params"]["mcpServers"][0]["name"] == "filepact"
        conductor.send(id=heard["id"], result={"sessionId": "s1"})
        opened = conductor.hear()
        assert (opened["id"], opened["result"]["sessionId"]) == (2, "s1")
        assert [one["id"] for one in opened["result"]["configOptions"]] == ["filepact.mode"]

        # The agent's requests come in envelopes, under ids that the conductor made.
        path = f"{work}/a.txt"
        params = {"sessionId": "s1", "path": path, "content": "a\n"}
        conductor.send(
            id=3, method=request_, params={"method": "fs/write_text_file", "params": params}
        )
        assert conductor.hear() == {"id": 3, "result": {}}
        assert (tmp_path / "work" / "a.txt").read_text() == "a\n"

        params = {"sessionId": "s1", "command": "ls"}
        conductor.send(
            id=4, method=request_, params={"method": "terminal/create", "params": params}
        )
        heard = conductor.hear()
        assert (heard["method"], heard["params"]) == ("terminal/create", params)
        # Here both sides' requests have one space of ids: a cancellation names the one that is meant, or is none.
        for wanted in (heard["id"] - 1, heard["id"], 3, 4):
            params = {"method": "$/cancel_request", "params": {"requestId": wanted}}
            conductor.send(method=notification, params=params)
        given_up = {"method": "$/cancel_request", "params": {"requestId": heard["id"]}}
        assert conductor.hear() == given_up
        conductor.send(id=heard["id"], result={"terminalId": "t"})
        assert conductor.hear() == {"id": 4, "result": {"terminalId": "t"}}

        params = {"sessionId": "s1"}
        conductor.send(method="session/cancel", params=params)
        envelope = {"method": "session/cancel", "params": params}
        assert conductor.hear() == {"method": notification, "params": envelope}
        envelope = {"method": "session/update", "params": {"sessionId": "s1"}}
        conductor.send(method=notification, params=envelope)
        assert conductor.hear() == envelope


def test_without_an_agent_and_a_conductor_it_says_what_to_do(tmp_path):
    with Conductor(tmp_path) as conductor:
        conductor.send(id=1, method="initialize", params={"protocolVersion": 1})
        error = conductor.hear()["error"]
        assert error["code"] == -32600
        assert "after `--`" in error["message"]

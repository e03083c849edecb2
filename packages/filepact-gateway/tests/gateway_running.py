"""A gateway as a process of its own, and a plain client that sends what it is told to."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.faces.envelopes import CLIENT, modern
from tests.forked import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["BOTH", "Answer", "Client", "RunningGateway", "children", "in_thread", "running_calls"]

PATIENCE = 60
BOTH = "application/json, text/event-stream"


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        messages: The messages of the body, of a stream each.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def message(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def result(self) -> dict[str, Any]:
        return self.message["result"]

    @property
    def text(self) -> str:
        return self.result["content"][0]["text"]

    @property
    def code(self) -> str:
        """The stable code of a refusal of the gateway's."""
        return self.message["error"]["data"]["code"]


def children(process: int) -> set[int]:
    """The processes that a process has begun and that are there."""
    try:
        with open(f"/proc/{process}/task/{process}/children") as stream:
            return {int(one) for one in stream.read().split()}
    except FileNotFoundError:
        return set()


def read_messages(kind: str, body: bytes) -> list[dict[str, Any]]:
    if kind.startswith("text/event-stream"):
        found = re.findall(rb"^data: (.*?)\r?$", body, flags=re.MULTILINE)
        return [json.loads(one) for one in found]
    return [json.loads(body)] if body and kind == "application/json" else []


class Client:
    """One client of a gateway.

    Args:
        address: Host and port.
        path: Of the endpoint.
        headers: Sent with everything.
    """

    def __init__(self, address: str, path: str = "/mcp", **headers: str) -> None:
        self.address = address
        self.path = path
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}
        self.session = ""
        self._last = 0

    def send(
        self,
        method: str,
        body: bytes | Iterable[bytes] | None = None,
        *,
        path: str = "",
        **headers: str,
    ) -> Answer:
        """One request of HTTP."""
        wanted = {**self.headers, **{key.replace("_", "-"): one for key, one in headers.items()}}
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            connection.request(method, path or self.path, body, wanted)
            response = connection.getresponse()
            got = {key.lower(): value for key, value in response.getheaders()}
            data = response.read()
        finally:
            connection.close()
        kind = got.get("content-type", "")
        return Answer(response.status, got, data, read_messages(kind, data))

    def post(self, message: object, **headers: str) -> Answer:
        """A message, or bytes, as clients send them; a header that is empty is left out."""
        usual = {"content_type": "application/json", "accept": BOTH}
        if self.session:
            usual["mcp_session_id"] = self.session
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        wanted = {key: value for key, value in {**usual, **headers}.items() if value}
        return self.send("POST", body, **wanted)

    def ask(self, method: str, params: object = None, *, id_: Any = None, **headers: str) -> Answer:
        """A request of the handshake era."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": id_ or self._last, "method": method}
        return self.post(message if params is None else message | {"params": params}, **headers)

    def open(self, version: str = "2025-11-25", **changes: Any) -> Answer:
        """The handshake; the session is used from then on."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT} | changes
        answer = self.ask("initialize", params)
        self.session = answer.headers.get("mcp-session-id", "")
        return answer

    def call(
        self,
        tool: str,
        *,
        id_: Any = None,
        headers: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Answer:
        """A call of a tool in the session."""
        params = {"name": tool, "arguments": arguments}
        return self.ask("tools/call", params, id_=id_, **(headers or {}))

    def without_session(
        self, method: str, headers: Mapping[str, str] | None = None, **params: Any
    ) -> Answer:
        """A request of the era without handshakes."""
        self._last += 1
        message = {
            "jsonrpc": "2.0",
            "id": self._last,
            "method": method,
            "params": modern(**params),
        }
        said = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
        if named := params.get("name", params.get("taskId")):
            said["mcp_name"] = named
        return self.post(message, **{**said, "mcp_session_id": "", **(headers or {})})


class RunningGateway:
    """`filepact serve`, until it is ended.

    Args:
        base: A folder for its home, its state and its settings.
        words: Of the command, after its name.
        settings: Its settings file.
        shorter: As for `Command`.
    """

    def __init__(
        self,
        base: Path,
        words: Sequence[str],
        *,
        settings: str = "",
        state: str = "state",
        shorter: Mapping[str, float] | None = None,
    ) -> None:
        (base / "home").mkdir(exist_ok=True)
        config = base / "settings.toml"
        config.write_text(settings)
        command = [
            *("serve", *words, "--state", str(base / state), "--config", str(config)),
            *("--health", "127.0.0.1:0"),
        ]
        if "--listen" not in words:
            command += ["--listen", "127.0.0.1:0"]
        variables = {
            key: value for key, value in os.environ.items() if not key.startswith("FILEPACT_")
        }
        self.process = Command(
            command,
            shorter,
            stderr=subprocess.PIPE,
            env=variables | {"HOME": str(base / "home")},
        )
        assert self.process.stderr is not None
        said = b""
        found: list[bytes] = []
        while len(found) < 2:
            line = self.process.stderr.readline()
            assert line, said
            said += line
            found = re.findall(rb" at http://(\S+?)(?:/mcp)?\n", said)
        self.address, self.health = (one.decode() for one in found)

    def client(self, path: str = "/mcp", **headers: str) -> Client:
        return Client(self.address, path, **headers)

    def opened(self, **headers: str) -> Client:
        """A client with a session."""
        client = self.client(**headers)
        assert client.open().status == 200
        return client

    def watched(self, path: str) -> Answer:
        return Client(self.health).send("GET", path=path)

    def metric(self, name: str) -> float:
        text = self.watched("/metrics").body.decode()
        (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, flags=re.MULTILINE)
        return float(value)

    def end(self) -> int:
        """End it as an operator does; its exit code."""
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        if code:
            os.set_blocking(self.process.stderr.fileno(), False)
            print(f"the gateway ended with {code}, and said: {self.process.stderr.read()!r}")
        self.process.stderr.close()
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Begin something; what is answered waits for what comes of it."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(PATIENCE)
        return found[0]

    return result


def running_calls(gateway: Any) -> float:
    """How many calls a gateway carries out."""
    return gateway.metrics.value("filepact_gateway_running_calls")

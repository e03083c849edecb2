"""Clients that speak lines to the small server, in this process or to a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue

import pytest

PROGRAM = Path(__file__).with_name("small_server.py")

CLIENT = {"name": "tester", "version": "7"}
PATIENCE = 30  # seconds until a test gives up on an answer


class LineClient:
    """One client: sends lines, and sorts what comes back."""

    def __init__(self, to_server: int, from_server: int) -> None:
        self.to_server = to_server
        self.notes: Queue = Queue()
        self.asked: Queue = Queue()
        self.raw: list[bytes] = []
        self._answers: Queue = Queue()
        self._held: dict = {}
        self._last = 0
        self._reader = threading.Thread(target=self._read, args=(from_server,), daemon=True)
        self._reader.start()

    def _read(self, from_server: int) -> None:
        with open(from_server, "rb") as stream:
            for line in stream:
                self.raw.append(line)
                message = json.loads(line)
                if "method" not in message:
                    self._answers.put(message)
                else:
                    (self.asked if "id" in message else self.notes).put(message)
        self._answers.put(None)

    def send(self, message) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.to_server, data) :]

    def notify(self, method: str, **params) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: dict | None = None) -> int:
        """Send a request and do not wait."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method}
        self.send(message if params is None else message | {"params": params})
        return self._last

    def answer(self, wanted) -> dict:
        """Wait for the answer to one request; answers to others are kept."""
        while wanted not in self._held:
            message = self._answers.get(timeout=PATIENCE)
            assert message is not None, "the server has left"
            self._held[message["id"]] = message
        return self._held.pop(wanted)

    def ask(self, method: str, params: dict | None = None) -> dict:
        return self.answer(self.begin(method, params))

    def shake_hands(self, version: str = "2025-06-18", **capabilities) -> dict:
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": CLIENT}
        answer = self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, tool: str, **arguments) -> dict:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def text(self, tool: str, **arguments) -> str:
        (block,) = self.call(tool, **arguments)["content"]
        return block["text"]

    def hang_up(self) -> None:
        if self.to_server >= 0:
            os.close(self.to_server)
            self.to_server = -1

    def wait_for_the_end(self) -> list[dict]:
        """Every answer until the server closes its end."""
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive()
        rest = list(self._held.values())
        while (message := self._answers.get(timeout=PATIENCE)) is not None:
            rest.append(message)
        return rest


@pytest.fixture(scope="session")
def small():
    """The module of the small server."""
    spec = importlib.util.spec_from_file_location("small_server", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_server"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def in_thread():
    """Run a function that serves a pair of pipes in a thread; answers a client for it."""
    started = []

    def start(serve_pipes, *, blocking: bool = True) -> LineClient:
        server_in, to_server = os.pipe()
        from_server, server_out = os.pipe()
        os.set_blocking(server_in, blocking)
        os.set_blocking(server_out, blocking)

        def work() -> None:
            try:
                serve_pipes((server_in, server_out))
            finally:
                os.close(server_out)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        client = LineClient(to_server, from_server)
        started.append((client, thread))
        return client

    yield start
    for client, thread in started:
        client.hang_up()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture
def engine(small):
    return small.SmallEngine()


@pytest.fixture
def client(in_thread, small, engine) -> LineClient:
    """A client of the small server, which runs in a thread."""
    return in_thread(lambda pipes: small.start(engine, pipes=pipes))


@pytest.fixture
def program():
    """A client of the small server as a process of its own, and the process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    client = LineClient(os.dup(process.stdin.fileno()), os.dup(process.stdout.fileno()))
    process.stdin.close()
    process.stdout.close()
    yield client, process
    client.hang_up()
    if process.poll() is None:
        process.kill()
    process.wait(PATIENCE)
    process.stderr.close()

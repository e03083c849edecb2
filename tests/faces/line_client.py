"""A client that speaks lines over a pair of pipes, as an agent's program does."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from contextlib import contextmanager
from queue import Queue
from typing import TYPE_CHECKING, Any

from tests.forked import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = {"name": "tester", "version": "7"}
PATIENCE = 90  # seconds until a test gives up on an answer


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


@contextmanager
def serving(
    *words: str | os.PathLike[str], start: type[subprocess.Popen[Any]] = Command, **options: Any
) -> Iterator[tuple[subprocess.Popen[Any], LineClient]]:
    """A server process, and a client of it that hangs up in the end and waits for the server's.

    Args:
        words: The command's arguments.
        start: What starts it; `subprocess.Popen` takes a whole command line.
        options: Of `subprocess.Popen`.
    """
    process = start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    assert process.stdin is not None
    assert process.stdout is not None
    client = LineClient(os.dup(process.stdin.fileno()), os.dup(process.stdout.fileno()))
    process.stdin.close()
    process.stdout.close()
    try:
        yield process, client
    finally:
        client.hang_up()
        process.wait(PATIENCE)

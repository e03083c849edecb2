"""The client at the other end of a connection, without any protocol package in between.

One thread reads and one writes, so that neither a client that sends nothing nor one that takes
nothing can hold a check longer than its time.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from filepact.faces.acp.check.messages import Message, Reply
from filepact.faces.acp.check.outcome import Failed, shown
from filepact.faces.wire.lines import Cutter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import BufferedReader
    from typing import BinaryIO

__all__ = ["Closed", "Key", "NoAnswer", "Peer", "key_of"]

_LIMIT = 256 * 1024 * 1024
_CHUNK = 1024 * 1024

Key = tuple[str, object]
"""An id with its type: 1, 1.0, True and "1" are four."""


class NoAnswer(Failed):
    """The client did not answer in time."""


class Closed(NoAnswer):
    """The client has closed the connection."""


def key_of(number: object) -> Key:
    """What tells an id from all others."""
    return type(number).__name__, number if isinstance(number, (int, str)) else repr(number)


class Peer:
    """The client.

    Args:
        source: Gives bytes as soon as there are any.
        sink: Takes bytes.
        hear: Is given every request and notification of the client, in the reading thread.

    Attributes:
        deadline: Until when waiting makes sense, on the monotonic clock.
        strange: Lines that are no JSON objects, shortened.
        unasked: Answers to nothing that was asked, and second answers.
        sloppy: What is wrong with the form of messages.
        errors: Every refusal so far.
        closed: The connection has ended.
    """

    def __init__(
        self, source: BufferedReader, sink: BinaryIO, hear: Callable[[Message], None]
    ) -> None:
        self._source = source
        self._sink = sink
        self._hear = hear
        self._change = threading.Condition()
        self._replies: dict[Key, Reply] = {}
        self._open: set[Key] = set()
        self._outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._next = 0
        self.deadline = time.monotonic()
        self.strange: list[str] = []
        self.unasked: list[str] = []
        self.sloppy: list[str] = []
        self.errors: list[Reply] = []
        self.closed = False

    def start(self) -> None:
        """Begin to read and to write."""
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    # -- sending ----------------------------------------------------------------------------

    def send(self, *messages: Mapping[str, Any]) -> None:
        """Send messages in one piece."""
        whole = [json.dumps({"jsonrpc": "2.0", **one}, ensure_ascii=True) for one in messages]
        self.send_bytes("".join(f"{one}\n" for one in whole).encode())

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, without waiting until they are taken."""
        self._outbox.put(data)

    def request(self, method: str, params: object, number: object = None) -> Message:
        """A request that is not sent yet; its answer is waited for by its id.

        Args:
            method: Its name.
            params: As JSON knows them.
            number: The id; None takes the next number, from 0.
        """
        if number is None:
            number, self._next = self._next, self._next + 1
        with self._change:
            self._open.add(key_of(number))
            self._replies.pop(key_of(number), None)
        return {"id": number, "method": method, "params": params}

    def ask(self, method: str, params: object, number: object = None) -> Reply:
        """Send a request and wait for its answer."""
        request = self.request(method, params, number)
        self.send(request)
        return self.wait(request)

    # -- waiting ----------------------------------------------------------------------------

    def wait(self, request: Message) -> Reply:
        """The answer to a request.

        Raises:
            NoAnswer: There was none in time.
        """
        key = key_of(request["id"])
        self.until(lambda: key in self._replies, f"{request['method']} was not answered")
        return self._replies[key]

    def answered(self, request: Message) -> bool:
        """Whether a request was answered already."""
        with self._change:
            return key_of(request["id"]) in self._replies

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds; it is looked at after each message.

        Raises:
            Closed: The connection ended before.
            NoAnswer: The time was over before.
        """
        with self._change:
            while not holds():
                if self.closed:
                    raise Closed(f"{what}: the client closed the connection")
                left = self.deadline - time.monotonic()
                if left <= 0:
                    raise NoAnswer(f"{what} in time")
                self._change.wait(left)

    def wake(self) -> None:
        """Let who waits look again."""
        with self._change:
            self._change.notify_all()

    # -- the two threads --------------------------------------------------------------------

    def _write(self) -> None:
        while data := self._outbox.get():
            try:
                self._sink.write(data)
                self._sink.flush()
            except (OSError, ValueError):
                return

    def _read(self) -> None:
        cutter = Cutter(_LIMIT)
        while True:
            try:
                data = self._source.read1(_CHUNK)
            except (OSError, ValueError):
                data = b""
            if not data:
                break
            for line in cutter.feed(data):
                self._take(line or b"(a line of more than 256 MiB)")
        self._outbox.put(b"")
        with self._change:
            self.closed = True
            self._change.notify_all()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.strange.append(line[:80].decode(errors="replace"))
            return
        if message.get("jsonrpc") != "2.0":
            self.sloppy.append(f"jsonrpc is {shown(message.get('jsonrpc'))}")
        if isinstance(message.get("method"), str):
            self._hear(message)
        elif "method" in message:
            self.sloppy.append(f"a method is {shown(message['method'])}")
        else:
            self._note(message)
        self.wake()

    def _note(self, message: Message) -> None:
        reply = Reply(message)
        if ("result" in message) == ("error" in message):
            self.sloppy.append("an answer has not exactly one of result and error")
        key = key_of(message.get("id"))
        with self._change:
            if "error" in message:
                self.errors.append(reply)
            if key in self._open:
                self._open.discard(key)
                self._replies[key] = reply
            elif message.get("id") is not None:
                # JSON-RPC answers with null what could not be read; nobody waits for that.
                self.unasked.append(shown(message.get("id")))

"""The JSON-RPC connection to the client under test: bytes and lines, without a protocol package.

One thread reads and one writes, so that neither a client that sends nothing nor one that reads
nothing can hold a check longer than its time.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acp_conformance.report import CheckFailedError, as_object, short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import BufferedReader
    from typing import BinaryIO

__all__ = [
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "READ",
    "REQUEST_CANCELLED",
    "RESOURCE_NOT_FOUND",
    "WRITE",
    "Connection",
    "ConnectionClosedError",
    "Message",
    "RequestResult",
    "RequestTimeoutError",
]

READ, WRITE = "fs/read_text_file", "fs/write_text_file"

METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
RESOURCE_NOT_FOUND, REQUEST_CANCELLED = -32002, -32800

_LIMIT = 256 * 1024 * 1024
_CHUNK = 1024 * 1024

Message = dict[str, Any]

_IdKey = tuple[str, object]
"""An id with its type: 1, 1.0, True and "1" are four."""


class RequestTimeoutError(CheckFailedError):
    """The client did not answer in time."""


class ConnectionClosedError(RequestTimeoutError):
    """The client has closed the connection."""


@dataclass(frozen=True, slots=True)
class RequestResult:
    """One response, as it came over the wire."""

    message: Message

    @property
    def is_error(self) -> bool:
        """Whether it is an error."""
        return "error" in self.message

    @property
    def result(self) -> Any:
        """The result.

        Raises:
            CheckFailedError: It is an error.
        """
        if "result" not in self.message:
            raise CheckFailedError(f"it was refused: {self.error_text}")
        return self.message["result"]

    @property
    def error(self) -> Message:
        """The error.

        Raises:
            CheckFailedError: There is none.
        """
        found = self.message.get("error")
        if not isinstance(found, dict):
            raise CheckFailedError(
                f"it was answered {short(self.message.get('result'))} and not refused"
            )
        return found

    @property
    def code(self) -> object:
        """The error's number; None for a result."""
        found = self.message.get("error")
        return found.get("code") if isinstance(found, dict) else None

    @property
    def error_text(self) -> str:
        """The error's code and message, for a reader."""
        found = self.message.get("error")
        if not isinstance(found, dict):
            return short(found)
        return f"{found.get('code')} {short(found.get('message'))}"

    @property
    def content(self) -> str:
        """The text that a read gave.

        Raises:
            CheckFailedError: There is none.
        """
        content = as_object(self.result, "the result").get("content")
        if not isinstance(content, str):
            raise CheckFailedError(f"content is {short(content)} and no text")
        return content

    def refused(self, *codes: int) -> None:
        """Go on only if it is an error, with one of some numbers if any are given.

        Raises:
            CheckFailedError: It is something else.
        """
        error = self.error
        if codes and error.get("code") not in codes:
            wanted = " or ".join(map(str, codes))
            raise CheckFailedError(f"it was refused with {self.error_text} instead of {wanted}")


def _id_key(number: object) -> _IdKey:
    """A key that is equal only for ids of equal type and value."""
    return type(number).__name__, number if isinstance(number, (int, str)) else repr(number)


class Connection:
    """A connection to the client under test.

    Args:
        source: Gives bytes as soon as there are any.
        sink: Takes bytes.
        on_message: Called with every request and notification of the client, in the reading
            thread.

    Attributes:
        deadline: Until when to wait for answers, on the monotonic clock.
        malformed_lines: Lines that are no JSON objects, shortened.
        unexpected_replies: Ids of responses to no request, and of second responses.
        form_errors: What is wrong with the form of messages.
        refusals: Every error response so far.
        closed: The connection has ended.
    """

    def __init__(
        self, source: BufferedReader, sink: BinaryIO, on_message: Callable[[Message], None]
    ) -> None:
        self._source = source
        self._sink = sink
        self._on_message = on_message
        self._change = threading.Condition()
        self._replies: dict[_IdKey, RequestResult] = {}
        self._open: set[_IdKey] = set()
        self._outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._next = 0
        self.deadline = time.monotonic()
        self.malformed_lines: list[str] = []
        self.unexpected_replies: list[str] = []
        self.form_errors: list[str] = []
        self.refusals: list[RequestResult] = []
        self.closed = False

    def start(self) -> None:
        """Start the reading and the writing thread."""
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    # -- sending ----------------------------------------------------------------------------

    def send(self, *messages: Mapping[str, Any]) -> None:
        """Send messages in one write."""
        whole = [json.dumps({"jsonrpc": "2.0", **one}, ensure_ascii=True) for one in messages]
        self.send_bytes("".join(f"{one}\n" for one in whole).encode())

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, without waiting until they are taken."""
        self._outbox.put(data)

    def request(self, method: str, params: object, number: object = None) -> Message:
        """A request with a registered id, not sent yet.

        Args:
            method: Its name.
            params: As JSON knows them.
            number: The id; None takes the next number, from 0.
        """
        if number is None:
            number, self._next = self._next, self._next + 1
        with self._change:
            self._open.add(_id_key(number))
            self._replies.pop(_id_key(number), None)
        return {"id": number, "method": method, "params": params}

    def ask(self, method: str, params: object, number: object = None) -> RequestResult:
        """Send a request and wait for its answer."""
        request = self.request(method, params, number)
        self.send(request)
        return self.wait(request)

    # -- waiting ----------------------------------------------------------------------------

    def wait(self, request: Message) -> RequestResult:
        """The answer to a request.

        Raises:
            RequestTimeoutError: There was none in time.
        """
        key = _id_key(request["id"])
        self.until(lambda: key in self._replies, f"{request['method']} was not answered")
        return self._replies[key]

    def answered(self, request: Message) -> bool:
        """Whether a request was answered already."""
        with self._change:
            return _id_key(request["id"]) in self._replies

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition, which is tested after each message.

        Raises:
            ConnectionClosedError: The connection ended first.
            RequestTimeoutError: The deadline passed first.
        """
        with self._change:
            while not holds():
                if self.closed:
                    raise ConnectionClosedError(f"{what}: the client closed the connection")
                left = self.deadline - time.monotonic()
                if left <= 0:
                    raise RequestTimeoutError(f"{what} in time")
                self._change.wait(left)

    # -- the two threads --------------------------------------------------------------------

    def _write(self) -> None:
        while data := self._outbox.get():
            try:
                self._sink.write(data)
                self._sink.flush()
            except (OSError, ValueError):
                return

    def _read(self) -> None:
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                data = self._source.read1(_CHUNK)
            except (OSError, ValueError):
                data = b""
            if not data:
                break
            *ends, rest = data.split(b"\n")
            for end in ends:
                # Of a line that is too long, nothing is kept but that there was one.
                line = b"".join([*parts, end]) if size <= _LIMIT else b"(more than 256 MiB)"
                parts, size = [], 0
                if line.strip():
                    self._take(line)
            size += len(rest)
            if size <= _LIMIT:
                parts.append(rest)
            else:
                parts.clear()
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
            self.malformed_lines.append(line[:80].decode(errors="replace"))
            return
        if message.get("jsonrpc") != "2.0":
            self.form_errors.append(f"jsonrpc is {short(message.get('jsonrpc'))}")
        if isinstance(message.get("method"), str):
            self._on_message(message)
        elif "method" in message:
            self.form_errors.append(f"a method is {short(message['method'])}")
        else:
            self._take_reply(message)
        with self._change:
            self._change.notify_all()

    def _take_reply(self, message: Message) -> None:
        reply = RequestResult(message)
        if ("result" in message) == ("error" in message):
            self.form_errors.append("an answer has not exactly one of result and error")
        key = _id_key(message.get("id"))
        with self._change:
            if "error" in message:
                self.refusals.append(reply)
            if key in self._open:
                self._open.discard(key)
                self._replies[key] = reply
            elif message.get("id") is not None:
                # The id of a response to what could not be parsed is null; nobody waits for it.
                self.unexpected_replies.append(short(message.get("id")))

"""Bytes from a client -> JSON-RPC messages, one a line; what is not one is refused, not fatal.

No I/O happens here.  Every limit answers early: a line that grows too long is refused when it
passes the limit, and nesting is bounded by the parser, so that no message can exhaust the stack.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LINE_LIMIT",
    "PARSE_ERROR",
    "Cutter",
    "LineReader",
    "Message",
    "Refusal",
    "RequestId",
    "request_id",
]

LINE_LIMIT = 32 * 1024 * 1024
"""Most bytes of one message."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Message = dict[str, Any]
RequestId = int | str

# Clients that gave up on this framing try that of language servers; their header is no message.
_HEADER = re.compile(rb"[A-Za-z][A-Za-z-]{0,63}:[^{\[]*")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a line is not a message.

    Attributes:
        id: The request that it would have been; None when that cannot be known.
    """

    code: int
    reason: str
    id: RequestId | None = None

    @property
    def reply(self) -> Message:
        """The answer to send."""
        return {
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {"code": self.code, "message": self.reason},
        }


class Cutter:
    """Cuts a stream of bytes into lines.

    Args:
        limit: Most bytes of one line.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Take the next bytes; yields the lines they complete, None as soon as one is too long."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            yield from self._hold(end)
            yield from self.end()
        yield from self._hold(rest)

    def end(self) -> Iterator[bytes | None]:
        """The stream is over; a last line needs no line end."""
        line = b"".join(self._parts).strip()
        self._parts.clear()
        self._held = 0
        self._skipping = False
        if line:
            yield line

    def _hold(self, part: bytes) -> Iterator[None]:
        if self._skipping or not part:
            return
        self._held += len(part)
        if self._held <= self.limit:
            self._parts.append(part)
            return
        self._parts.clear()
        self._skipping = True
        yield None


class LineReader:
    """Cuts a stream of bytes into messages.

    Args:
        limit: Most bytes of one line.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._cutter = Cutter(limit)

    def feed(self, data: bytes) -> Iterator[Message | Refusal]:
        """Take the next bytes; yields what they complete."""
        return self._read(self._cutter.feed(data))

    def end(self) -> Iterator[Message | Refusal]:
        """The stream is over; a last line needs no line end."""
        return self._read(self._cutter.end())

    def _read(self, lines: Iterator[bytes | None]) -> Iterator[Message | Refusal]:
        for line in lines:
            if line is None:
                limit = self._cutter.limit
                yield Refusal(INVALID_REQUEST, f"the message is longer than {limit:,} bytes")
            elif not _HEADER.fullmatch(line):
                message = _message(line)
                if message is not None:
                    yield message


def request_id(message: Message) -> RequestId | None:
    """The id by which a request wants its answer; None when there is none that can be used."""
    found = message.get("id")
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _message(line: bytes) -> Message | Refusal | None:
    """One line as a message; None for what must not be answered."""
    from pydantic_core import from_json  # noqa: PLC0415 - who only passes lines on needs it not

    try:
        parsed = from_json(line, cache_strings="keys")
    except ValueError as error:
        return Refusal(PARSE_ERROR, f"not JSON: {error}", _salvaged_id(line))
    if not isinstance(parsed, dict):
        return Refusal(INVALID_REQUEST, "a message is one JSON object")
    wanted = request_id(parsed)
    if "method" not in parsed and ("result" in parsed or "error" in parsed):
        return parsed if wanted is not None else None
    if "id" in parsed and wanted is None:
        return Refusal(INVALID_REQUEST, "id must be a whole number or a text")
    if parsed.get("jsonrpc") != "2.0":
        return Refusal(INVALID_REQUEST, 'jsonrpc must be "2.0"', wanted)
    if not isinstance(parsed.get("method"), str):
        return Refusal(INVALID_REQUEST, "method must be a text", wanted)
    if not isinstance(parsed.get("params", {}), dict | None):
        if wanted is None:
            return None
        return Refusal(INVALID_PARAMS, "params must be an object", wanted)
    return parsed


def _salvaged_id(line: bytes) -> RequestId | None:
    """The id of a message that only a lenient parser accepts, so that its sender is answered.

    Half of a surrogate pair in an argument is such a case, and models do send it.
    """
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return request_id(parsed) if isinstance(parsed, dict) else None

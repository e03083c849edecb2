"""Framing of JSON-RPC messages: one a line (MCP, ACP), or a ``Content-Length`` header (LSP); no I/O.

Limits hold early: a message that grows too long is refused when it passes the limit.  A line or a
body that is no message costs only itself.  A header that cannot be understood ends the
conversation, since nobody knows where the next message begins.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, Final

from filepact.values import dataclass, late_regex
from filepact_wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorResponse,
    Message,
    RequestId,
    request_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "BODY_LIMIT",
    "HEADER_LIMIT",
    "LINE_LIMIT",
    "ByteLineReader",
    "FrameError",
    "FrameReader",
    "InvalidMessage",
    "Message",
    "MessageReader",
    "frame",
    "one_line",
    "read_batch",
    "read_message",
]

LINE_LIMIT: Final = 32 * 1024 * 1024
"""Most bytes of one message that is a line."""

BODY_LIMIT: Final = 64 * 1024 * 1024
"""Most bytes of one message after a header."""

HEADER_LIMIT: Final = 8 * 1024
"""Most bytes before a message; programs that start servers print a line or two there."""

_END = b"\r\n\r\n"
_LENGTH = late_regex(rb"(?im)^content-length:[ \t]*(\d{1,12})[ \t]*\r?$")


class FrameError(Exception):
    """The error for bytes that cannot be cut into messages any more; its text says why."""


@dataclass(frozen=True, slots=True)
class InvalidMessage:
    """A body that is no message.

    Attributes:
        reason: What is wrong with it.
        size: Its bytes.
    """

    reason: str
    size: int


class FrameReader:
    """Cuts a stream of bytes into messages.

    Args:
        limit: Most bytes of one body.
    """

    def __init__(self, limit: int = BODY_LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._wanted: int | None = None
        self._looked = 0

    def feed(self, data: bytes) -> Iterator[Message | InvalidMessage]:
        """Take the next bytes; yields what they complete.

        Raises:
            FrameError: A header is too long, has no length, or one over the limit.
        """
        self._held += data
        while True:
            if self._wanted is None and not self._header():
                return
            size = self._wanted
            if size is None or len(self._held) < size:
                return
            body = bytes(self._held[:size])
            del self._held[:size]
            self._wanted = None
            yield _message(body)

    def _header(self) -> bool:
        """Whether a header is complete; its length is then known and it is gone."""
        end = self._held.find(_END, max(self._looked - len(_END), 0))
        if end < 0:
            self._looked = len(self._held)
            if len(self._held) > HEADER_LIMIT:
                raise FrameError(f"a header is longer than {HEADER_LIMIT:,} bytes")
            return False
        if end > HEADER_LIMIT:
            raise FrameError(f"a header is longer than {HEADER_LIMIT:,} bytes")
        lengths = {int(found) for found in _LENGTH.findall(bytes(self._held[: end + 2]))}
        if len(lengths) != 1:
            said = "no Content-Length" if not lengths else "more than one Content-Length"
            raise FrameError(f"a header has {said}")
        (size,) = lengths
        if size > self._limit:
            raise FrameError(f"a message of {size:,} bytes is over {self._limit:,}")
        del self._held[: end + len(_END)]
        self._wanted, self._looked = size, 0
        return True


def frame(message: Message) -> bytes:
    """A message as bytes, header first; halves of surrogate pairs become question marks."""
    try:
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Servers written in Rust or Go end when they read an escaped half of a pair.
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        body = text.encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _message(body: bytes) -> Message | InvalidMessage:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        return InvalidMessage(f"not JSON: {type(error).__name__}", len(body))
    if not isinstance(parsed, dict):
        return InvalidMessage("a message is one JSON object", len(body))
    return parsed


# -- one message a line ------------------------------------------------------------------------

_BATCH: Final = 100  # messages that may come as one


def one_line(data: bytes) -> bytes:
    """JSON in which nothing ends a line for any reader: some end one at characters that JSON leaves as they are."""
    if not data.isascii():
        for end, escaped in _ENDS:
            data = data.replace(end, escaped)
    return data


_ENDS: Final = (
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
    ("\x85".encode(), rb"\u0085"),
)

# Clients that gave up on this framing try that of language servers; their header is no message.
_HEADER: Final = late_regex(rb"[A-Za-z][A-Za-z-]{0,63}:[^{\[]*")


class ByteLineReader:
    """Cuts a stream of bytes into lines, which keep all but the line feed; blank ones are left out.

    Args:
        limit: Most bytes of one line.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Take the next bytes; the lines they complete, None as soon as one is too long."""
        found: list[bytes | None] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            if self._parts or self._skipping or len(end) > self.limit:
                found += self._hold(end)
                found += self.end()
            elif end and not end.isspace():
                found.append(end)
        if rest:
            found += self._hold(rest)
        return found

    def end(self) -> Iterator[bytes | None]:
        """The stream is over; a last line needs no line end."""
        line = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        self._skipping = False
        if line and not line.isspace():
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


class MessageReader:
    """Cuts a stream of bytes into messages.

    Nesting is bounded by the decoder, so that no message can exhaust the stack.

    Args:
        decode: Decodes JSON; raises a `ValueError` for anything else, and for too deep a nesting.
        limit: Most bytes of one line.
        batches: Whether a line may hold several messages, as a list.
    """

    def __init__(
        self,
        decode: Callable[[bytes], Any],
        limit: int = LINE_LIMIT,
        *,
        batches: Callable[[], bool] = lambda: False,
    ) -> None:
        self._decode = decode
        self._batches = batches
        self._cutter = ByteLineReader(limit)

    def feed(self, data: bytes) -> list[Message | ErrorResponse]:
        """Take the next bytes; what they complete."""
        return self._read(self._cutter.feed(data))

    def end(self) -> list[Message | ErrorResponse]:
        """The stream is over; a last line needs no line end."""
        return self._read(self._cutter.end())

    def _read(self, lines: Iterable[bytes | None]) -> list[Message | ErrorResponse]:
        found: list[Message | ErrorResponse] = []
        for line in lines:
            if line is None:
                said = f"the message is longer than {self._cutter.limit:,} bytes"
                found.append(ErrorResponse(INVALID_REQUEST, said))
                continue
            clean = line.strip().removeprefix(BOM_UTF8)  # with which pipes of Windows begin
            if clean[:1] == b"[" and self._batches():
                batch = read_batch(clean, self._decode)
                found += [batch] if isinstance(batch, ErrorResponse) else batch
            elif clean[:1] == b"{" or not _HEADER.fullmatch(clean):
                message = read_message(clean, self._decode)
                if message is not None:
                    found.append(message)
        return found


def read_batch(
    line: bytes, decode: Callable[[bytes], Any]
) -> list[Message | ErrorResponse] | ErrorResponse:
    """The messages of a list of such, as MCP 2025-03-26 has them, but for those that must not be answered."""
    try:
        parsed = decode(line)
    except ValueError as error:
        return ErrorResponse(PARSE_ERROR, f"not JSON: {error}")
    if not isinstance(parsed, list) or not 0 < len(parsed) <= _BATCH:
        return ErrorResponse(INVALID_REQUEST, f"a batch has 1 to {_BATCH} messages")
    return [one for one in map(_checked, parsed) if one is not None]


def read_message(line: bytes, decode: Callable[[bytes], Any]) -> Message | ErrorResponse | None:
    """One line as a message; None for what must not be answered."""
    try:
        parsed = decode(line)
    except ValueError as error:
        return ErrorResponse(PARSE_ERROR, f"not JSON: {error}", _salvaged_id(line))
    return _checked(parsed)


def _checked(parsed: Any) -> Message | ErrorResponse | None:
    if not isinstance(parsed, dict):
        return ErrorResponse(INVALID_REQUEST, "a message is one JSON object")
    wanted = request_id(parsed)
    if "method" not in parsed and ("result" in parsed or "error" in parsed):
        return parsed if wanted is not None else None
    if "id" in parsed and wanted is None:
        return ErrorResponse(INVALID_REQUEST, "id must be a whole number or a text")
    if parsed.get("jsonrpc") != "2.0":
        return ErrorResponse(INVALID_REQUEST, 'jsonrpc must be "2.0"', wanted)
    if not isinstance(parsed.get("method"), str):
        return ErrorResponse(INVALID_REQUEST, "method must be a text", wanted)
    if not isinstance(parsed.get("params", {}), dict | None):
        if wanted is None:
            return None
        return ErrorResponse(INVALID_PARAMS, "params must be an object", wanted)
    return parsed


def _salvaged_id(line: bytes) -> RequestId | None:
    """The id of a message that only a lenient parser accepts, so that its sender is answered."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return request_id(parsed) if isinstance(parsed, dict) else None

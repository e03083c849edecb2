"""Bytes -> messages, and messages -> bytes, as language servers write them: a length, then JSON.

No I/O happens here.  A body that is no JSON object costs only itself, since its length is known; a
header that cannot be understood ends the conversation, since nobody knows where the next begins.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BODY_LIMIT",
    "HEADER_LIMIT",
    "FrameReader",
    "FramingError",
    "Garbled",
    "Message",
    "frame",
]

BODY_LIMIT: Final = 64 * 1024 * 1024
"""Most bytes of one message."""

HEADER_LIMIT: Final = 8 * 1024
"""Most bytes before a message; programs that start servers print a line or two there."""

Message = dict[str, Any]

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d{1,12})[ \t]*\r?$")


class FramingError(Exception):
    """What the other side sends cannot be cut into messages any more; the text says why."""


@dataclass(frozen=True, slots=True)
class Garbled:
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

    def feed(self, data: bytes) -> Iterator[Message | Garbled]:
        """Take the next bytes; yields what they complete.

        Raises:
            FramingError: A header is too long, has no length, or one over the limit.
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
                raise FramingError(f"a header is longer than {HEADER_LIMIT:,} bytes")
            return False
        if end > HEADER_LIMIT:
            raise FramingError(f"a header is longer than {HEADER_LIMIT:,} bytes")
        lengths = {int(found) for found in _LENGTH.findall(bytes(self._held[: end + 2]))}
        if len(lengths) != 1:
            said = "no Content-Length" if not lengths else "more than one Content-Length"
            raise FramingError(f"a header has {said}")
        (size,) = lengths
        if size > self._limit:
            raise FramingError(f"a message of {size:,} bytes is over {self._limit:,}")
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


def _message(body: bytes) -> Message | Garbled:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        return Garbled(f"not JSON: {type(error).__name__}", len(body))
    if not isinstance(parsed, dict):
        return Garbled("a message is one JSON object", len(body))
    return parsed

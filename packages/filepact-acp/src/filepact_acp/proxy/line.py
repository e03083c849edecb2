"""One line that passes: its bytes as they came, and the message that they spell."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from filepact.values import dataclass
from filepact_wire.framing import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact_wire.messages import Message

__all__ = ["GUARDED", "MessageLine", "encode", "parse", "without_overrides"]

GUARDED: Final = frozenset(
    {"fs/read_text_file", "fs/write_text_file", "session/request_permission"}
)
"""What an agent asks for that is dealt with here."""

OVERRIDES: Final = frozenset(
    {
        *("args", "command", "content", "cwd", "env", "limit", "line", "method", "options"),
        *("output_byte_limit", "outputByteLimit", "path", "session_id", "sessionId"),
        *("terminal_id", "terminalId", "tool_call", "toolCall", "update"),
    }
)
"""Names in ``_meta`` that some clients put in the place of the parameters that they are told."""

_LONG: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class MessageLine:
    """A line.

    Attributes:
        raw: Its bytes, without the line feed.
        message: The JSON object in it; None when it is none.  Bytes that are no UTF-8 are half
            characters in it.
        plain: Whether every reader finds the same in what is looked at here: all of a request
            that is dealt with here; of others the method, the id, the names of the parameters and
            of what may override them.  Two members of one name are read as the first by some and
            as the last by others.
    """

    raw: bytes
    message: Message | None
    plain: bool = True

    @property
    def encoded(self) -> bytes:
        """The bytes to pass on: as they came, or the message encoded as it was understood here."""
        return self.raw if self.plain or self.message is None else encode(self.message)


class _Reading(threading.local):
    """A JSON decoder of one thread; made once, since making it takes as long as reading a short line."""

    def __init__(self) -> None:
        self.doubtful: list[dict[str, Any]] = []
        self.decode = json.JSONDecoder(object_pairs_hook=self._members).decode

    def _members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.doubtful.append(found)
        return found


_reading = _Reading()
_decode = json.JSONDecoder().decode
_writer = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def parse(raw: bytes, *, doubt: bool = True) -> MessageLine:
    """Read a line; what is not JSON, or no object, has no message.

    Args:
        raw: The line.
        doubt: Whether it has to be known that every reader finds the same message in it; a long
            line is read several times as fast without.
    """
    if not doubt and len(raw) > _LONG:
        with suppress(ValueError):
            found = _fast().from_json(raw)
            return MessageLine(raw, found if isinstance(found, dict) else None)
    _reading.doubtful = []
    try:
        text, whole = _text(raw)
        message = _reading.decode(text) if doubt else _decode(text)
    except (ValueError, RecursionError):
        return MessageLine(raw, None)
    if not isinstance(message, dict):
        return MessageLine(raw, None)
    doubtful = _reading.doubtful
    plain = not doubt or (whole and not doubtful) or _is_plain(message, doubtful, whole=whole)
    return MessageLine(raw, message, plain)


def _text(raw: bytes) -> tuple[str, bool]:
    """The characters of a line, and whether all of its bytes are some.

    Raises:
        UnicodeDecodeError: It is in another encoding than UTF-8, with bytes that are none there.
    """
    encoding = json.detect_encoding(raw)
    try:
        return raw.decode(encoding, "surrogatepass"), True
    except UnicodeDecodeError:
        if not encoding.startswith("utf-8"):
            raise
        return raw.decode(encoding, "surrogateescape"), False


def _is_guarded(message: Message) -> bool:
    method = message.get("method")
    return isinstance(method, str) and method in GUARDED


def _is_plain(message: Message, doubtful: list[dict[str, Any]], *, whole: bool) -> bool:
    if _is_guarded(message):
        return whole and not doubtful
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    looked_at = (message, params, meta, message.get("result"))
    return not any(one is other for one in doubtful for other in looked_at)


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as one line, without its end."""
    return one_line(_encoded(message))


def _encoded(message: Mapping[str, Any]) -> bytes:
    result = message.get("result")
    text = result.get("content") if isinstance(result, dict) else None
    if isinstance(text, str) and len(text) > _LONG:
        with suppress(ValueError):
            others = {name: value for name, value in message.items() if name != "result"}
            return b'%s,"result":%s}' % (_encoded(others)[:-1], _with_text(text, message["result"]))
    # Half a character becomes \\udcxx, which is how JSON spells it.
    return _writer.encode(message).encode("utf-8", "backslashreplace")


def _with_text(text: str, result: Mapping[str, Any]) -> bytes:
    """A result with a long text, which is most of the work.

    Raises:
        ValueError: It holds half a character.
    """
    others = {name: value for name, value in result.items() if name != "content"}
    rest = b",%s" % _encoded(others)[1:] if others else b"}"
    return b'{"content":%s%s' % (_fast().to_json(text), rest)


def _fast() -> Any:
    """The fastest JSON library; loaded late, since short lines do not need it."""
    import pydantic_core  # noqa: PLC0415 - see above

    return pydantic_core


def without_overrides(line: MessageLine) -> MessageLine:
    """The line without what its ``_meta`` would put in the place of real parameters."""
    params = line.message.get("params") if line.message is not None else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if line.message is None or not isinstance(meta, dict) or not OVERRIDES & meta.keys():
        return line
    kept = {name: value for name, value in meta.items() if name not in OVERRIDES}
    message = {**line.message, "params": {**line.message["params"], "_meta": kept}}
    return MessageLine(encode(message), message)

"""One line that passes: its bytes as they came, and the message that they spell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.faces.wire.lines import Message

__all__ = ["Line", "encode", "parse", "without_overrides"]

OVERRIDES: Final = frozenset(
    {
        *("args", "command", "content", "cwd", "env", "limit", "line", "method", "options"),
        *("output_byte_limit", "outputByteLimit", "path", "session_id", "sessionId"),
        *("terminal_id", "terminalId", "tool_call", "toolCall", "update"),
    }
)
"""Names in ``_meta`` that some clients put in the place of the parameters that they are told."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line.

    Attributes:
        raw: Its bytes, without the line's end.
        message: The JSON object in it; None when it is none.
        plain: Whether every reader finds the same message in the bytes.  Two members of one name
            are read as the first by some and as the last by others.
    """

    raw: bytes
    message: Message | None
    plain: bool = True

    @property
    def passed(self) -> bytes:
        """What to pass on: the bytes, or the message as it was understood here."""
        return self.raw if self.plain or self.message is None else encode(self.message)


def parse(raw: bytes) -> Line:
    """Read a line; what is not JSON, or no object, has no message."""
    plain = True

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal plain
        found = dict(pairs)
        plain = plain and len(found) == len(pairs)
        return found

    try:
        parsed = json.loads(raw, object_pairs_hook=members)
    except (ValueError, RecursionError):
        return Line(raw, None)
    return Line(raw, parsed if isinstance(parsed, dict) else None, plain)


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as one line, without its end."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    # Half a character becomes \\udcxx, which is how JSON spells it.
    return text.encode("utf-8", "backslashreplace")


def without_overrides(line: Line) -> Line:
    """The line without what its ``_meta`` would put in the place of real parameters."""
    params = line.message.get("params") if line.message is not None else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if line.message is None or not isinstance(meta, dict) or not OVERRIDES & meta.keys():
        return line
    kept = {name: value for name, value in meta.items() if name not in OVERRIDES}
    message = {**line.message, "params": {**line.message["params"], "_meta": kept}}
    return Line(encode(message), message)

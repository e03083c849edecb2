"""Names and lines as they are shown: nothing invisible in a name, no endless line."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_WIDTH", "shown_line", "shown_name"]

MAX_WIDTH: Final = 300
"""Most characters of a line that are shown around a match."""

# Control characters, line and paragraph separators, direction marks, and bytes that are no
# UTF-8.  Joiners stay: names of people and emoji are written with them.
_UNSEEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def shown_name(name: str) -> str:
    """A name or path with control and direction characters written as escapes."""
    return name if name.isprintable() else _UNSEEN.sub(_escape, name)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shown_line(text: bytes, start: int, end: int, *, focus: int | None = None) -> str:
    """A line as it is shown: whole, or cut around a place when it is long.

    Args:
        text: The text.
        start: Offset of the line's first byte.
        end: Offset behind its last byte, without LF; a CR there is not shown.
        focus: Offset that must be seen; the line's beginning when None.
    """
    if end > start and text[end - 1] == 13:
        end -= 1
    if end - start <= MAX_WIDTH:
        return text[start:end].decode("utf-8", errors="replace")
    # Four bytes a character at most, so this window is always wide enough to cut from.
    place = start if focus is None else min(max(focus, start), end)
    first = max(start, place - 4 * MAX_WIDTH)
    before = text[first:place].decode("utf-8", errors="ignore")
    behind = text[place : min(end, place + 4 * MAX_WIDTH)].decode("utf-8", errors="ignore")
    if first == start and place + 4 * MAX_WIDTH >= end and len(before) + len(behind) <= MAX_WIDTH:
        return text[start:end].decode("utf-8", errors="replace")
    lead = before[-(MAX_WIDTH // 3) :]
    tail = behind[: MAX_WIDTH - len(lead)]
    left = "..." if first > start or len(lead) < len(before) else ""
    return f"{left}{lead}{tail}... [line of {end - start:,} bytes, cut]"

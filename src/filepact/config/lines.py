"""On which line of a TOML text everything stands: the standard library's reader keeps no places.

The text has been read by that reader already and is known to be TOML, so only as much is looked at
as is needed to tell keys, tables, elements and the ends of values apart.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Key", "Lines"]

Key = tuple[str | int, ...]
"""From the outermost table inwards: names of keys, and 0-based numbers of elements."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_PART = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|("(?:\\.|[^"\\])*")|'([^']*)')[ \t]*""")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'", re.DOTALL
)
_BARE = re.compile(r"[^,\]}#\n]*")


class Lines:
    """The places in one text.

    Args:
        text: Valid TOML.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._own: dict[Key, int] = {}
        self._first: dict[Key, int] = {}
        self._newest: dict[Key, int] = {}
        self._read()

    def of(self, key: Sequence[str | int]) -> int:
        """The 1-based line on which a key stands: its own, else the first line of what is in it.

        Of a key that is not there it is the line of the table that it would stand in, else 1.
        """
        wanted = tuple(key)
        while wanted:
            found = self._own.get(wanted) or self._first.get(wanted)
            if found:
                return found
            wanted = wanted[:-1]
        return 1

    def _mark(self, key: Key, at: int) -> None:
        line = bisect_left(self._ends, at) + 1
        self._own.setdefault(key, line)
        for length in range(1, len(key)):
            self._first.setdefault(key[:length], line)

    def _read(self) -> None:
        at = self._blank(0)
        table: Key = ()
        while at < len(self._text):
            if self._text[at] == "[":
                many = self._text.startswith("[[", at)
                parts, end = self._dotted(at + 1 + many)
                table = self._table(parts, many=many)
                self._mark(table, at)
                at = end + 1 + many
            else:
                at = self._pair(table, at)
            at = self._blank(at)

    def _table(self, parts: list[str], *, many: bool) -> Key:
        """The key of a header, in the newest element of each list of tables on its way."""
        key: Key = ()
        for number, part in enumerate(parts, start=1):
            key = (*key, part)
            if many and number == len(parts):
                self._newest[key] = self._newest.get(key, -1) + 1
            if key in self._newest:
                key = (*key, self._newest[key])
        return key

    def _pair(self, table: Key, at: int) -> int:
        parts, end = self._dotted(at)
        key = (*table, *parts)
        self._mark(key, at)
        return self._value(key, self._blank(end + 1))

    def _value(self, key: Key, at: int) -> int:
        """The place behind a value; what is in it is marked."""
        char = self._text[at]
        if char in "\"'":
            found = _STRING.match(self._text, at)
            return found.end() if found else len(self._text)
        if char not in "[{":
            found = _BARE.match(self._text, at)
            return found.end() if found else len(self._text)
        number = 0
        at = self._blank(at + 1)
        while self._text[at] not in "]}":
            if char == "{":
                at = self._pair(key, at)
            else:
                self._mark((*key, number), at)
                at = self._value((*key, number), at)
                number += 1
            at = self._blank(at)
            if self._text[at] == ",":
                at = self._blank(at + 1)
        return at + 1

    def _dotted(self, at: int) -> tuple[list[str], int]:
        """The names in a dotted key without their quotes, and the place behind it."""
        parts: list[str] = []
        while (found := _PART.match(self._text, at)) is not None:
            bare, double, single = found.groups()
            parts.append(tomllib.loads(f"k = {double}")["k"] if double else bare or single)
            at = found.end()
            if not self._text.startswith(".", at):
                break
            at += 1
        return parts, at

    def _blank(self, at: int) -> int:
        """The place of the next thing that is not blank and no comment."""
        found = _BLANK.match(self._text, at)
        return found.end() if found else at

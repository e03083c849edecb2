"""Problems of settings files: what is wrong, in which file, on which line, with which key.

What is wrong with rules is collected, so that all of it can be said at once.  Any other wrong setting
is refused at once, and `policy lint` reads the rest again without it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Key",
    "ProblemList",
    "SettingsProblem",
    "TomlPositions",
    "key_text",
    "no_toml",
    "refusal",
    "refuse",
]

_WHERE = late_regex(r"at line (\d+)")

_HINT = "Correct the file; `filepact policy lint` lists everything that is wrong in it."


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """A fault in a file of settings or rules.

    Attributes:
        file: How the file is called in messages.
        line: 1-based.
        key: The key, from the outermost table inwards; tables of a list are counted from 1.
        message: What is wrong.
        unmet: Whether it is only that something else is expected.
    """

    file: str
    line: int
    key: str
    message: str
    unmet: bool = False

    def __str__(self) -> str:
        key = f", {self.key}" if self.key else ""
        return f"{self.file}, line {self.line}{key}: {self.message}"


class ProblemList:
    """The problems found in one file so far.

    Args:
        text: What the file holds; valid TOML.
        name: How it is called in messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.found: list[SettingsProblem] = []
        self._lines = TomlPositions(text)

    def line(self, key: Key) -> int:
        """The line on which a key stands."""
        return self._lines.of(key)

    def add(self, key: Key, said: str, *, unmet: bool = False) -> None:
        """Take one down."""
        self.found.append(SettingsProblem(self.name, self.line(key), key_text(key), said, unmet))


def refuse(problems: Sequence[SettingsProblem]) -> None:
    """Go no further if anything is wrong.

    Raises:
        InvalidParamsError: Something is; it tells the first, by its line, and how many there are.
    """
    if not problems:
        return
    first = min(problems, key=lambda problem: problem.line)
    more = len(problems) - 1
    raise InvalidParamsError(
        f"{first}" + (f" (and {more} more)" if more else ""),
        hint=_HINT,
        file=first.file,
        line=first.line,
        key=first.key,
    )


def no_toml(text: str, name: str, error: ValueError) -> SettingsProblem:
    """The TOML reader's error as a problem."""
    found = _WHERE.search(str(error))
    line = int(found[1]) if found else 1 + text.count("\n")
    return SettingsProblem(name, line, "", f"is not TOML: {error}")


def key_text(key: Key) -> str:
    """A key as people write it, with ``[2]`` for the second table of a list."""
    words = ""
    for number, part in enumerate(key):
        if isinstance(part, int):
            words += f"[{part + 1}]"
        else:
            name = part if re.fullmatch(r"[\w-]+", part) else f'"{part}"'
            words += f".{name}" if number else name
    return words


def refusal(text: str, name: str, path: Key, why: str) -> InvalidParamsError:
    """An error about one key of a settings file, with the file, the line and the key.

    Args:
        text: What the file holds.
        name: How the file is called in messages.
        path: The key, from the outermost table inwards.
        why: What is wrong with it.
    """
    problem = SettingsProblem(name, TomlPositions(text).of(path), key_text(path), why)
    return InvalidParamsError(
        str(problem),
        hint="Correct the file; nothing starts until then.",
        file=name,
        line=problem.line,
        key=problem.key,
    )


# -- positions in a TOML text ----------------------------------------------------------------
#
# The standard library's reader keeps none.  The text has been read by that reader already and is known to be
# TOML, so only as much is looked at as is needed to tell keys, tables, elements and the ends of values apart.


Key = tuple[str | int, ...]
"""From the outermost table inwards: names of keys, and 0-based numbers of elements."""

_BLANK = late_regex(r"(?:[ \t\r\n]|#[^\n]*)*")
_PART = late_regex(r"""[ \t]*(?:([A-Za-z0-9_-]+)|("(?:\\.|[^"\\])*")|'([^']*)')[ \t]*""")
_STRING = late_regex(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'", re.DOTALL
)
_BARE = late_regex(r"[^,\]}#\n]*")


class TomlPositions:
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
        import tomllib  # noqa: PLC0415 - not before there is a file

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

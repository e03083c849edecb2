"""Reads ``.editorconfig`` files: the encoding and the line ends of the files below their folder.

Only ``root``, ``charset`` and ``end_of_line`` are read.  The patterns are those of EditorConfig, written as globs of
our own: there ``**`` may stand anywhere, ``{1..9}`` is a range of numbers, and braces around one
word are plain characters.  A pattern that is none, or stands for too many, matches nothing.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from filepact.errors import SearchFailedError
from filepact.text.detect_encoding import find_charset
from filepact.text.glob import MAX_ALTERNATIVES, MAX_LENGTH, Glob
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EditorConfig", "Property", "parse_editorconfig"]

_PIECE = late_regex(r"\\.|\[(?:\\.|[^\]/])*\]|[^\\\[{},]+|.", re.DOTALL)
_RANGE = late_regex(r"([+-]?\d{1,9})\.\.([+-]?\d{1,9})")
_STARS = late_regex(r"(?<!\\)\*\*+")
_NAMES = {"utf-8-bom": "utf-8-sig", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le"}
_MOST_SECTIONS = 1_000
_MOST_NESTED = 10
_MOST_TEXT = 20_000
_MOST_LOOSE = 6
_UNSET = "unset"
_LINE_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}

Property = Literal["charset", "end_of_line"]


@dataclass(frozen=True, slots=True)
class EditorConfig:
    """The properties that one file sets.

    Attributes:
        root: Whether files in the folders above say nothing any more.
        sections: What is set: the patterns of files, the property and its value.
    """

    root: bool
    sections: tuple[tuple[tuple[Glob, ...], str, str], ...]

    def said(self, name: Property, path: str) -> str | None:
        """The value of a property, empty when it is unset, None when nothing is said.

        Of ``charset`` it is Python's name of the encoding, of ``end_of_line`` the characters.  What is
        no such value is passed over, as if it were not there.

        Args:
            name: The property.
            path: The file, relative to the folder of the ``.editorconfig``.
        """
        for globs, key, value in reversed(self.sections):
            if key == name and any(glob.matches(path) for glob in globs):
                return value
        return None


def parse_editorconfig(text: str) -> EditorConfig:
    """Read the text of an ``.editorconfig``; what cannot be understood is passed over."""
    root = False
    pattern: str | None = None
    sections: list[tuple[tuple[Glob, ...], str, str]] = []
    for line in text.removeprefix("\ufeff").splitlines():
        stripped = line.strip()
        if stripped.startswith("[") and stripped.endswith("]"):
            pattern = stripped[1:-1]
            continue
        key, equals, value = stripped.partition("=")
        if not equals or stripped.startswith(("#", ";")):
            continue
        key = key.strip().lower()
        value = re.split(r"\s[#;]", value.strip(), maxsplit=1)[0].strip().lower()
        if key == "root" and pattern is None:
            root = value == "true"
        elif pattern is not None and len(sections) < _MOST_SECTIONS:
            said = _value(key, value)
            if said is not None:
                sections.append((tuple(_globs(pattern)), key, said))
    return EditorConfig(root, tuple(sections))


def _value(key: str, value: str) -> str | None:
    """A property's value as `EditorConfig.said` has it; None for another property, and for none."""
    if key == "charset":
        return "" if value == _UNSET else _NAMES.get(value) or find_charset(value)
    if key == "end_of_line":
        return "" if value == _UNSET else _LINE_ENDS.get(value)
    return None


def _globs(pattern: str) -> Iterator[Glob]:
    """The globs of a section's pattern; none when it is malformed."""
    try:
        forms = [form for text in _expand(pattern) for form in _tied(text)]
    except _TooManyError:
        return
    if len(forms) > MAX_ALTERNATIVES:
        return
    for form in forms:
        with suppress(SearchFailedError):
            yield Glob.parse(form)


class _TooManyError(ValueError):
    """A pattern expands to too many others."""


def _expand(pattern: str) -> list[str]:
    """All patterns that the braces expand to."""
    if len(pattern) > MAX_LENGTH:
        raise _TooManyError
    pieces = _PIECE.findall(pattern)
    closing: dict[int, int] = {}
    opened: list[int] = []
    for at, piece in enumerate(pieces):
        if piece == "{":
            opened.append(at)
            if len(opened) > _MOST_NESTED:
                raise _TooManyError
        elif piece == "}":
            if not opened:
                return [pattern]  # Braces that do not pair are plain characters.
            closing[opened.pop()] = at
    return [pattern] if opened else _expand_part(pieces, 0, len(pieces), closing)


def _expand_part(pieces: list[str], at: int, end: int, closing: dict[int, int]) -> list[str]:
    results = [""]
    while at < end:
        options = [pieces[at]]
        if at in closing:
            options = _options(pieces, at + 1, closing[at], closing)
            at = closing[at]
        results = [result + option for result in results for option in options]
        if len(results) > MAX_ALTERNATIVES or sum(map(len, results)) > _MOST_TEXT:
            raise _TooManyError
        at += 1
    return results


def _options(pieces: list[str], start: int, end: int, closing: dict[int, int]) -> list[str]:
    """The alternatives within a pair of braces."""
    numbers = _RANGE.fullmatch("".join(pieces[start:end]))
    if numbers:
        low, high = sorted((int(numbers[1]), int(numbers[2])))
        if high - low >= MAX_ALTERNATIVES:
            raise _TooManyError
        return [str(number) for number in range(low, high + 1)]
    borders = [start - 1]
    at = start
    while at < end:
        if pieces[at] == ",":
            borders.append(at)
        at = closing.get(at, at) + 1
    borders.append(end)
    options = [
        option
        for left, right in pairwise(borders)
        for option in _expand_part(pieces, left + 1, right, closing)
    ]
    # Without a comma there is nothing to choose from, and the braces are plain characters.
    return options if len(borders) > 2 else [f"{{{option}}}" for option in options]


def _tied(text: str) -> list[str]:
    """A pattern with ``**`` only between slashes: within a name it matches the name or folders too."""
    loose = [
        found.span()
        for found in _STARS.finditer(text)
        if text[: found.start()].rpartition("/")[2] or text[found.end() :].partition("/")[0]
    ]
    if not loose:
        return [text]
    if len(loose) > _MOST_LOOSE:
        return []
    # A pattern without a slash is one for names at any depth, which must not change by this.
    forms = ["" if "/" in text else "**/"]
    at = 0
    for start, end in loose:
        before = text[at:start]
        forms = [f"{form}{before}{stars}" for form in forms for stars in ("*", "*/**/*")]
        at = end
    return [form + text[at:] for form in forms]

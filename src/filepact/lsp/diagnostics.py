"""What servers find wrong with files, as values, and how sure it is that they mean this text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from filepact.errors import InvalidParamsError
from filepact.text.position import LineIndex, Position, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Confirmation",
    "Delta",
    "Diagnostic",
    "Report",
    "Severity",
    "compare",
    "read_diagnostics",
]

Severity = Literal["error", "warning", "information", "hint"]

Confirmation = Literal["version", "pull", "probe", "quiet window", "none"]
"""How it is known that an answer is about the present text.

``version``: the server named the text's version.  ``pull``: it answered a question that was asked
after it had the text.  ``probe``: it took the text up as a whole after having been told all, and
answered another question behind it.  ``quiet window``: it published, and then nothing for the time
that its policy names.  ``none``: it is not known.
"""

_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "information", "hint")
_MOST = 5_000
_MESSAGE_LENGTH = 2_000
_FAR = 2**31
_ENDS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that a server finds wrong.

    Attributes:
        path: The file, absolute.
        start: Where it begins; columns count characters.
        end: Where it ends, exclusive.
        severity: How bad it is.
        code: The server's name for it; may be empty.
        source: Which part of the server says so; the server's name if it does not tell.
        message: For a reader.
        line: The line where it begins, without the blanks around it.
    """

    path: str
    start: Position
    end: Position
    severity: Severity
    code: str
    source: str
    message: str
    line: str

    @property
    def likeness(self) -> tuple[str, ...]:
        """What stays the same of it when lines above it come and go."""
        return (self.path, self.source, self.severity, self.code, self.message, self.line)


@dataclass(frozen=True, slots=True)
class Report:
    """What one server says about one file.

    Attributes:
        server: Its name.
        path: The file, absolute.
        diagnostics: What it finds; empty where that is not known to be about the present text.
        confirmed_by: How that is known.
        reason: Why it is not known; else empty.
        complete: False if the list was cut, or parts of it could not be read.
        seconds: From the question to the answer.
    """

    server: str
    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    confirmed_by: Confirmation = "none"
    reason: str = ""
    complete: bool = True
    seconds: float = 0.0

    @property
    def fresh(self) -> bool:
        """Whether the list is about the present text."""
        return self.confirmed_by != "none"


@dataclass(frozen=True, slots=True)
class Delta:
    """What differs between two lists of diagnostics.

    Attributes:
        new: Only in the later one.
        fixed: Only in the earlier one.
        total: How many the later one has.
    """

    new: tuple[Diagnostic, ...]
    fixed: tuple[Diagnostic, ...]
    total: int


def compare(before: Iterable[Diagnostic], after: Iterable[Diagnostic]) -> Delta:
    """The difference of two lists, by what diagnostics say and not by where they stand."""
    earlier, later = list(before), list(after)
    was, now = [one.likeness for one in earlier], [one.likeness for one in later]
    if was == now:
        return Delta((), (), len(later))
    return Delta(_only(later, now, was), _only(earlier, was, now), len(later))


def _only(
    wanted: Sequence[Diagnostic],
    likeness: Sequence[tuple[str, ...]],
    other: Sequence[tuple[str, ...]],
) -> tuple[Diagnostic, ...]:
    had = Counter(other)
    found = []
    for one, like in zip(wanted, likeness, strict=True):
        if had[like]:
            had[like] -= 1
        else:
            found.append(one)
    return tuple(found)


def read_diagnostics(
    path: str, text: str, items: Any, unit: Unit, server: str, endings: tuple[str, ...] = ()
) -> tuple[tuple[Diagnostic, ...], bool]:
    """The diagnostics that a server has sent, in the order of the text, and whether these are all.

    Args:
        path: The file that they are about, absolute.
        text: Its text as the server has it.
        items: What was sent.
        unit: What its columns count.
        server: Stands for a missing source.
        endings: Are cut off messages.
    """
    if not isinstance(items, list):
        return (), False
    places = _Places(text, unit)
    found: list[Diagnostic] = []
    whole = len(items) <= _MOST
    for item in items[:_MOST]:
        try:
            span = item["range"]
            start, end = places.read(span["start"]), places.read(span["end"])
            severity = item.get("severity")
            code = item.get("code")
            code = code.get("value", "") if isinstance(code, dict) else code
            found.append(
                Diagnostic(
                    path,
                    start,
                    end,
                    _SEVERITIES[severity - 1] if severity in (1, 2, 3, 4) else "error",
                    "" if code is None else str(code)[:100],
                    str(item.get("source") or server)[:100],
                    _message(item["message"], endings),
                    places.stripped(start.line),
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError, InvalidParamsError):
            whole = False
    found.sort(key=_order)
    return tuple(found), whole


def _message(value: Any, endings: tuple[str, ...]) -> str:
    text = str(value.get("value", "") if isinstance(value, dict) else value)
    for ending in endings:
        text = text.removesuffix(ending)
    return text[:_MESSAGE_LENGTH]


def _order(one: Diagnostic) -> tuple[Any, ...]:
    start, end = one.start, one.end
    return (
        *(start.line, start.column, end.line, end.column),
        *(one.severity, one.code, one.message),
    )


class _Places:
    """Places in one text, as a server counts; made for many on few lines."""

    def __init__(self, text: str, unit: Unit) -> None:
        self._unit = unit
        self._lines = _ENDS.split(text) if "\r" in text else text.split("\n")
        self._lengths: dict[int, int] = {}
        self._stripped: dict[int, str] = {}

    def read(self, value: Any) -> Position:
        """A place in characters; one behind the last line is the end of the text."""
        line, column = value["line"], value["character"]
        if not isinstance(line, int) or not isinstance(column, int):
            raise TypeError("a place has two numbers")
        length = self._lengths.get(line)
        if length is None:
            if line < 0:
                raise ValueError("the first line is 0")
            if line >= len(self._lines):
                line, column = len(self._lines) - 1, _FAR
            text = self._lines[line]
            length = self._lengths[line] = len(text) if text.isascii() else -1
        if length < 0:
            text = self._lines[line]
            return Position(line, LineIndex(text).offset(Position(0, column), self._unit))
        return Position(line, min(max(column, 0), length))

    def stripped(self, number: int) -> str:
        """A line without the blanks around it."""
        found = self._stripped.get(number)
        if found is None:
            found = self._stripped[number] = self._lines[number].strip()
        return found

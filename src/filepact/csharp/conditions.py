"""Conditions of project files, as far as they can be decided without building."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.csharp.expressions import UnknownExpressionError, closing, version_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["holds"]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<quote>') | (?P<sign>==|!=|<=|>=|<|>|\(|\)|!|,)
    | (?P<word>[A-Za-z_][\w.-]*) | (?P<number>-?\d[\w.]*) | (?P<mark>[$@%]\()
    )""",
    re.VERBOSE,
)
_MAX_LENGTH: Final = 5_000
_MAX_DEPTH: Final = 50
_TRUE: Final = frozenset({"true", "on", "yes", "!false", "!off", "!no"})
_FALSE: Final = frozenset({"false", "off", "no", "!true", "!on", "!yes"})


def holds(condition: str, expand: Callable[[str], str], exists: Callable[[str], bool]) -> bool:
    """Whether a condition holds; an empty one does.

    Args:
        condition: As it stands in the file.
        expand: Replaces what stands in `$(...)`.
        exists: Whether a file is there.

    Raises:
        UnknownExpressionError: It cannot be decided here.
    """
    if not condition.strip():
        return True
    if len(condition) > _MAX_LENGTH:
        raise UnknownExpressionError(f"{condition[:80]}...")
    reader = _Reader(condition, _tokens(condition), expand, exists)
    result = reader.either(0)
    if reader.at != len(reader.tokens):
        raise UnknownExpressionError(condition[:200])
    return result


def _tokens(condition: str) -> list[tuple[str, str]]:
    """The parts of a condition, each with its kind: text, sign or word."""
    tokens: list[tuple[str, str]] = []
    at, end = 0, len(condition.rstrip())
    while at < end:
        found = _TOKEN.match(condition, at)
        if found is None:
            raise UnknownExpressionError(condition[:200])
        kind, text, at = str(found.lastgroup), found[0].strip(), found.end()
        if kind == "quote":
            start, at = at, _end_of_quoted(condition, at)
            kind, text = "text", f"'{condition[start : at - 1]}'"
        elif kind == "mark":
            # A reference without quotes goes up to its closing parenthesis.
            start, at = found.start("mark"), _end_of_reference(condition, at - 1)
            kind, text = "text", f"'{condition[start:at]}'"
        tokens.append(("text" if kind == "number" else kind, text))
    return tokens


def _end_of_quoted(condition: str, at: int) -> int:
    """Where a text in quotes ends, quotes within its references left alone."""
    while at < len(condition):
        if condition[at] == "'":
            return at + 1
        reference = condition[at] in "$@%" and condition[at + 1 : at + 2] == "("
        at = _end_of_reference(condition, at + 1) if reference else at + 1
    raise UnknownExpressionError(condition[:200])


def _end_of_reference(condition: str, at: int) -> int:
    end = closing(condition, at)
    if end < 0:
        raise UnknownExpressionError(condition[:200])
    return end + 1


@dataclass(slots=True)
class _Reader:
    """Reads the parts from left to right; what it reads past an outcome is not evaluated."""

    condition: str
    tokens: list[tuple[str, str]]
    expand: Callable[[str], str]
    exists: Callable[[str], bool]
    at: int = 0
    idle: int = 0

    def either(self, depth: int) -> bool:
        result = self._both(depth)
        while self._word("or"):
            self.idle += result
            right = self._both(depth)
            self.idle -= result
            result = result or right
        return result

    def _both(self, depth: int) -> bool:
        result = self._one(depth)
        while self._word("and"):
            self.idle += not result
            right = self._one(depth)
            self.idle -= not result
            result = result and right
        return result

    def _one(self, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            raise self._unknown()
        kind, text = self._next()
        if text == "!":
            return not self._one(depth + 1)
        if text == "(":
            result = self.either(depth + 1)
            if self._next()[1] != ")":
                raise self._unknown()
            return result
        if kind == "word" and self._peek() == "(":
            return self._function(text.lower())
        if kind not in ("text", "word"):
            raise self._unknown()
        left = self._expanded(text)
        sign = self._peek()
        if sign not in _COMPARED:
            return self._truth(left)
        self.at += 1
        kind, text = self._next()
        if kind not in ("text", "word"):
            raise self._unknown()
        right = self._expanded(text)
        return False if self.idle else _compare(left, sign, right, self.condition)

    def _function(self, name: str) -> bool:
        self.at += 1
        kind, text = self._next()
        if kind not in ("text", "word") or self._next()[1] != ")":
            raise self._unknown()
        value = self._expanded(text)
        if self.idle:
            return False
        if name == "exists":
            return self.exists(value)
        if name == "hastrailingslash":
            return value.endswith(("/", "\\"))
        raise self._unknown()

    def _expanded(self, text: str) -> str:
        text = text[1:-1] if text.startswith("'") else text
        if self.idle:
            return ""
        if "@(" in text or "%(" in text:
            raise self._unknown()
        return self.expand(text)

    def _truth(self, value: str) -> bool:
        if self.idle:
            return False
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise self._unknown()

    def _word(self, word: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at][0] == "word"
        if found and self._peek().lower() == word:
            self.at += 1
            return True
        return False

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise self._unknown()
        self.at += 1
        return self.tokens[self.at - 1]

    def _unknown(self) -> UnknownExpressionError:
        return UnknownExpressionError(self.condition.strip()[:200])


_COMPARED: Final = frozenset({"==", "!=", "<", ">", "<=", ">="})


def _compare(left: str, sign: str, right: str, condition: str) -> bool:
    if sign in ("==", "!="):
        return _same(left, right) == (sign == "==")
    one, other = version_of(left, condition), version_of(right, condition)
    return {"<": one < other, ">": one > other, "<=": one <= other, ">=": one >= other}[sign]


def _same(left: str, right: str) -> bool:
    """Whether two values are equal: numbers as numbers, truths as truths, texts without case."""
    left, right = left.lower(), right.lower()
    if left == right:
        return True
    if (left in _TRUE and right in _TRUE) or (left in _FALSE and right in _FALSE):
        return True
    try:
        return float(left) == float(right)
    except ValueError:
        return False

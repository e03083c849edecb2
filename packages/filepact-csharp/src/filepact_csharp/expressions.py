"""MSBuild expressions: `$(...)`, the few functions on properties that projects really use, and conditions."""

from __future__ import annotations

import operator
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from filepact_csharp.frameworks import parse_framework

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact_csharp.projects import FileTree, ProjectMessage

__all__ = ["MAX_VALUE", "ProjectProperties", "UnknownPropertyError", "holds"]

MAX_VALUE: Final = 100_000
"""Longest value of a property, in characters."""

MAX_WORK: Final = 20_000_000
"""Most characters that the expressions of one project become, all together."""

_MAX_NESTED: Final = 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_STATIC = re.compile(r"\[([A-Za-z.]+)\]::([A-Za-z]+)", re.ASCII)
_VERSION = re.compile(r"v?(\d+(?:\.\d+){0,3})(?:[-+].*)?")


class UnknownPropertyError(Exception):
    """Something that is not evaluated here; the message quotes it."""


@dataclass(slots=True)
class ProjectProperties:
    """The properties of a project while it is read.

    Attributes:
        files: For functions that look for files.
        root: The folder that is not left.
        fixed: Names, in lower case, of those that a project cannot change.
        spoiled: Those whose value could not be found out, each with the place and the reason.
    """

    files: FileTree
    root: str
    fixed: frozenset[str] = frozenset()
    spoiled: dict[str, ProjectMessage] = field(default_factory=dict)
    _values: dict[str, str] = field(default_factory=dict)
    _work: int = 0

    def get(self, name: str) -> str:
        """A value; empty if there is none."""
        return self._values.get(name.lower(), "")

    def put(self, name: str, value: str) -> None:
        """Set a value, unless it is one that a project cannot change."""
        if name.lower() not in self.fixed:
            self.force(name, value[:MAX_VALUE])

    def force(self, name: str, value: str) -> None:
        """Set a value even so."""
        self._values[name.lower()] = value
        self.spoiled.pop(name.lower(), None)

    def spoil(self, name: str, why: ProjectMessage) -> None:
        """Make every value unknown from here on, except those that a project cannot change."""
        if name.lower() not in self.fixed:
            self.spoiled[name.lower()] = why

    def expand(self, text: str, depth: int = 0) -> str:
        """A text with all that stands in `$(...)` replaced.

        Raises:
            UnknownPropertyError: Something in it is not evaluated here.
        """
        if "$(" not in text:
            return text
        parts: list[str] = []
        at = size = 0
        while (start := text.find("$(", at)) >= 0:
            end = closing(text, start + 1)
            if end < 0 or depth >= _MAX_NESTED:
                raise UnknownPropertyError(text[start : start + 80])
            value = self._value(text[start + 2 : end].strip(), depth + 1)
            size += start - at + len(value)
            self._work += start - at + len(value)
            if self._work > MAX_WORK:
                raise UnknownPropertyError(f"{text[:80]}, after too many others")
            if size > MAX_VALUE:
                raise UnknownPropertyError(f"{text[:80]} is longer than {MAX_VALUE:,} characters")
            parts += [text[at:start], value]
            at = end + 1
        return "".join(parts) + text[at:]

    def _value(self, inner: str, depth: int) -> str:
        if found := _NAME.match(inner):
            if found[0].lower() in self.spoiled:
                raise UnknownPropertyError(f"$({found[0]})")
            value, at = self.get(found[0]), found.end()
        elif found := _STATIC.match(inner):
            arguments, at = self._arguments(inner, found.end(), depth)
            value = self._static(f"{found[1]}::{found[2]}".lower(), arguments, inner)
        else:
            raise UnknownPropertyError(f"$({inner[:80]})")
        while at < len(inner):
            value, at = self._method(value, inner, at, depth)
        return value

    def _method(self, value: str, inner: str, at: int, depth: int) -> tuple[str, int]:
        """A method of texts that is called on a value, and where it ends."""
        found = _NAME.match(inner, at + 1) if inner[at] == "." else None
        if found is None:
            raise UnknownPropertyError(f"$({inner[:80]})")
        name = found[0].lower()
        if name == "length":
            return str(len(value)), found.end()
        arguments, at = self._arguments(inner, found.end(), depth)
        method = _METHODS.get((name, len(arguments)))
        if method is None:
            raise UnknownPropertyError(f"$({inner[:80]})")
        try:
            return method(value, arguments), at
        except ValueError as error:
            raise UnknownPropertyError(f"$({inner[:80]})") from error

    def _arguments(self, inner: str, at: int, depth: int) -> tuple[list[str], int]:
        """The arguments in parentheses from a place on, and where they end."""
        if at >= len(inner) or inner[at] != "(" or (end := closing(inner, at)) < 0:
            raise UnknownPropertyError(f"$({inner[:80]})")
        return [self.expand(_unquoted(one), depth) for one in _split(inner[at + 1 : end])], end + 1

    def _static(self, name: str, arguments: list[str], inner: str) -> str:
        function = _FUNCTIONS.get((name, len(arguments)))
        if function is not None:
            return function(arguments)
        if name in _COMPARISONS and len(arguments) == 2:
            one, other = (version_of(argument, inner) for argument in arguments)
            return _truth(_COMPARISONS[name](one, other))
        match name, arguments:
            case "msbuild::getpathoffileabove", [file, *start]:
                folder = self._above(
                    start[0] if start else self.get("MSBuildThisFileDirectory"), file
                )
                return posixpath.join(folder, file) if folder else ""
            case "msbuild::getdirectorynameoffileabove", [start, file]:
                return self._above(start, file)
            case "msbuild::gettargetframeworkversion", [moniker, *_]:
                return parse_framework(moniker).version
            case "msbuild::normalizepath" | "system.io.path::getfullpath", [first, *more]:
                return self._normal([first, *more])
            case "msbuild::normalizedirectory", [first, *more]:
                return self._normal([first, *more]).rstrip("/") + "/"
            case "system.io.path::combine", [first, *more]:
                return posixpath.join(_slashes(first), *map(_slashes, more))
            case "system.io.file::exists", [path]:
                return _truth(self.files.has(self._normal([path])))
            case _:
                raise UnknownPropertyError(f"$({inner[:80]})")

    def _normal(self, parts: Sequence[str]) -> str:
        folder = self.get("MSBuildProjectDirectory") or self.root
        return posixpath.normpath(posixpath.join(folder, *map(_slashes, parts)))

    def _above(self, start: str, file: str) -> str:
        """The nearest folder at or above one that holds a file, within the root; else empty."""
        folder = self._normal([start])
        while folder == self.root or folder.startswith(f"{self.root.rstrip('/')}/"):
            if self.files.has(posixpath.join(folder, _slashes(file))):
                return folder
            if folder == self.root:
                break
            folder = posixpath.dirname(folder)
        return ""


_METHODS: Final[dict[tuple[str, int], Callable[[str, list[str]], str]]] = {
    ("startswith", 1): lambda value, args: _truth(value.startswith(args[0])),
    ("endswith", 1): lambda value, args: _truth(value.endswith(args[0])),
    ("contains", 1): lambda value, args: _truth(args[0] in value),
    ("equals", 1): lambda value, args: _truth(value == args[0]),
    ("tolower", 0): lambda value, _args: value.lower(),
    ("tolowerinvariant", 0): lambda value, _args: value.lower(),
    ("toupper", 0): lambda value, _args: value.upper(),
    ("toupperinvariant", 0): lambda value, _args: value.upper(),
    ("tostring", 0): lambda value, _args: value,
    ("trim", 0): lambda value, _args: value.strip(),
    ("trim", 1): lambda value, args: value.strip(args[0]),
    ("trimstart", 1): lambda value, args: value.lstrip(args[0]),
    ("trimend", 1): lambda value, args: value.rstrip(args[0]),
    ("replace", 2): lambda value, args: _replaced(value, *args),
    ("indexof", 1): lambda value, args: str(value.find(args[0])),
    ("substring", 1): lambda value, args: value[_index(args[0], value) :],
    ("substring", 2): lambda value, args: value[_index(args[0], value) :][: _index(args[1], value)],
}


_FUNCTIONS: Final[dict[tuple[str, int], Callable[[list[str]], str]]] = {
    ("msbuild::isosplatform", 1): lambda args: _truth(args[0].lower() == "linux"),
    ("msbuild::gettargetframeworkidentifier", 1): lambda args: parse_framework(args[0]).identifier,
    ("msbuild::gettargetplatformidentifier", 1): lambda args: parse_framework(args[0]).platform,
    ("msbuild::istargetframeworkcompatible", 2): lambda args: _truth(_compatible(*args)),
    ("msbuild::ensuretrailingslash", 1): lambda args: (
        posixpath.join(args[0], "") if args[0] else ""
    ),
    ("msbuild::valueordefault", 2): lambda args: args[0] or args[1],
    ("system.io.path::getfilename", 1): lambda args: posixpath.basename(_slashes(args[0])),
    ("system.io.path::getfilenamewithoutextension", 1): lambda args: posixpath.splitext(
        posixpath.basename(_slashes(args[0]))
    )[0],
    ("system.io.path::getdirectoryname", 1): lambda args: posixpath.dirname(_slashes(args[0])),
    ("system.string::isnullorempty", 1): lambda args: _truth(not args[0]),
}
"""Static functions that need nothing of the project, by name and number of arguments."""

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "msbuild::versiongreaterthanorequals": operator.ge,
    "msbuild::versiongreaterthan": operator.gt,
    "msbuild::versionlessthan": operator.lt,
    "msbuild::versionlessthanorequals": operator.le,
    "msbuild::versionequals": operator.eq,
}


def version_of(text: str, where: str) -> tuple[int, int, int, int]:
    """A version as four numbers.

    Raises:
        UnknownPropertyError: It is none; the message quotes `where`.
    """
    found = _VERSION.fullmatch(text.strip())
    if found is None or len(found[1]) > 40:
        raise UnknownPropertyError(where[:80])
    numbers = [int(one) for one in found[1].split(".")]
    first, second, third, fourth = [*numbers, 0, 0, 0][:4]
    return first, second, third, fourth


def _truth(value: bool) -> str:
    return "True" if value else "False"


def _slashes(path: str) -> str:
    return path.replace("\\", "/")


def _replaced(value: str, old: str, new: str) -> str:
    if not old or len(value) + value.count(old) * len(new) > MAX_VALUE:
        raise ValueError(old)
    return value.replace(old, new)


def _index(text: str, value: str) -> int:
    number = int(text)
    if not 0 <= number <= len(value):
        raise ValueError(text)
    return number


def _compatible(has: str, wants: str) -> bool:
    """Whether code for one framework can use code for another, within a family."""
    one, other = parse_framework(has), parse_framework(wants)
    if not one.identifier or not other.identifier:
        raise UnknownPropertyError(f"IsTargetFrameworkCompatible('{has[:30]}', '{wants[:30]}')")
    if other.identifier == ".NETStandard" and one.identifier == ".NETCoreApp":
        return True
    if one.identifier != other.identifier or (other.platform and one.platform != other.platform):
        return False
    return version_of(one.version, has) >= version_of(other.version, wants)


def closing(text: str, start: int) -> int:
    """The index of the parenthesis that closes the one at an index; -1 if there is none."""
    depth, quote = 0, ""
    for at in range(start, len(text)):
        one = text[at]
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"`":
            quote = one
        elif one == "(":
            depth += 1
        elif one == ")":
            depth -= 1
            if depth == 0:
                return at
    return -1


def _split(text: str) -> list[str]:
    """Arguments between commas, those within quotes and parentheses left alone."""
    parts, depth, quote, start = [], 0, "", 0
    for at, one in enumerate(text):
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"`":
            quote = one
        elif one in "()":
            depth += 1 if one == "(" else -1
        elif one == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [one.strip() for one in parts] if text.strip() else []


def _unquoted(text: str) -> str:
    quoted = len(text) >= 2 and text[0] in "'\"`" and text[-1] == text[0]
    return text[1:-1] if quoted else text


# -- conditions ------------------------------------------------------------------------------------

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
        UnknownPropertyError: It cannot be decided here.
    """
    if not condition.strip():
        return True
    if len(condition) > _MAX_LENGTH:
        raise UnknownPropertyError(f"{condition[:80]}...")
    reader = _Reader(condition, _tokens(condition), expand, exists)
    result = reader.either(0)
    if reader.at != len(reader.tokens):
        raise UnknownPropertyError(condition[:200])
    return result


def _tokens(condition: str) -> list[tuple[str, str]]:
    """The parts of a condition, each with its kind: text, sign or word."""
    tokens: list[tuple[str, str]] = []
    at, end = 0, len(condition.rstrip())
    while at < end:
        found = _TOKEN.match(condition, at)
        if found is None:
            raise UnknownPropertyError(condition[:200])
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
    """The index at which a quoted text ends; quotes within its references do not count."""
    while at < len(condition):
        if condition[at] == "'":
            return at + 1
        reference = condition[at] in "$@%" and condition[at + 1 : at + 2] == "("
        at = _end_of_reference(condition, at + 1) if reference else at + 1
    raise UnknownPropertyError(condition[:200])


def _end_of_reference(condition: str, at: int) -> int:
    end = closing(condition, at)
    if end < 0:
        raise UnknownPropertyError(condition[:200])
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

    def _unknown(self) -> UnknownPropertyError:
        return UnknownPropertyError(self.condition.strip()[:200])


_COMPARED: Final = frozenset({"==", "!=", "<", ">", "<=", ">="})


def _compare(left: str, sign: str, right: str, condition: str) -> bool:
    if sign in ("==", "!="):
        return _same(left, right) == (sign == "==")
    one, other = version_of(left, condition), version_of(right, condition)
    return {"<": one < other, ">": one > other, "<=": one <= other, ">=": one >= other}[sign]


def _same(left: str, right: str) -> bool:
    """Whether two values are equal: numbers, truths, texts without case."""
    left, right = left.lower(), right.lower()
    if left == right:
        return True
    if (left in _TRUE and right in _TRUE) or (left in _FALSE and right in _FALSE):
        return True
    try:
        return float(left) == float(right)
    except ValueError:
        return False

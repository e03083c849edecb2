"""Edits of JSON as people write it: comments, commas at the end, indentation and order stay.

A path is the keys and indexes that lead to a value.  Every edit computes a new text; what it is not
about stays as it is.  Lines end in LF here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["append", "drop", "put", "read"]

# Atomic groups, since Pythons before 3.11.5 match possessive repetitions of alternatives wrongly.
_BLANK: Final = late_regex(r"(?>(?:[ \t\r\n]|//[^\n]*|/\*(?>(?:[^*]|\*(?!/))*)\*/)*)")
_STRING: Final = late_regex(r'"(?>(?:[^"\\\x00-\x1f]|\\.)*)"')
_PLAIN: Final = late_regex(r"-?\d[\d.eE+-]*|true|false|null")
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class _Node:
    """A value and where it stands; of an object or a list also what is in it.

    Attributes:
        start: Where it begins.
        end: Behind its last character.
        value: As Python has it.
        parts: By key or index: where the entry begins (its key), and its value.
        comma: Whether a comma stands behind the last entry.
    """

    start: int
    end: int
    value: object
    parts: Mapping[str | int, tuple[int, _Node]]
    comma: bool = False


def read(text: str) -> object:
    """The value of a text; an empty one, or one of comments alone, is an empty object.

    Raises:
        ValueError: It is no JSON, or names a key twice; the message says in which line.
    """
    return _parse(text).value


def put(text: str, path: Sequence[str | int], value: object) -> str:
    """Give a value to a key, which is added behind the others where it is missing.

    Raises:
        ValueError: As `read`; or something on the way is no object.
    """
    if not _BLANK.fullmatch(text):
        return _put(text, _parse(text), path, value)
    empty = f"{text}\n" if text and not text.endswith("\n") else text
    return put(f"{empty}{{}}\n", path, value)


def _put(text: str, top: _Node, path: Sequence[str | int], value: object) -> str:
    node, depth = top, 0
    while depth < len(path) and path[depth] in node.parts:
        node = node.parts[path[depth]][1]
        depth += 1
    if depth == len(path):
        shown = _render(text, value, _indent_at(text, node.start))
        return f"{text[: node.start]}{shown}{text[node.end :]}"
    if not isinstance(node.value, dict):
        raise ValueError(f"{_name(path[:depth])} is not an object")  # noqa: TRY004 - of a text, not of a call
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _insert(text, node, f"{json.dumps(path[depth], ensure_ascii=False)}: ", value)


def append(text: str, path: Sequence[str | int], value: object) -> str:
    """Add a value at the end of a list.

    Raises:
        ValueError: As `read`; or there is no list.
    """
    node = _find(_parse(text), path)
    if not isinstance(node.value, list):
        raise ValueError(f"{_name(path)} is not a list")  # noqa: TRY004 - the same
    return _insert(text, node, "", value)


def drop(text: str, path: Sequence[str | int]) -> str:
    """Remove an entry with its comma; comments around it stay, one behind it in its line goes.

    Raises:
        ValueError: As `read`; or there is no such entry.
    """
    holder = _find(_parse(text), path[:-1])
    if path[-1] not in holder.parts:
        raise ValueError(f"{_name(path)} is not there")
    keys = list(holder.parts)
    place = keys.index(path[-1])
    start, node = holder.parts[path[-1]]
    end = node.end
    if place + 1 < len(keys) or holder.comma:
        end = _skip(text, end) + 1
    elif place:
        # The last one: the comma before it goes, and what stands between stays.
        before = holder.parts[keys[place - 1]][1].end
        comma = _skip(text, before)
        kept = text[comma + 1 : start]
        kept = kept if kept.strip(" \t") else ""
        rest = text[end:]
        text = f"{text[:comma]}{kept}"
        return _without_lines(f"{text}{rest}", len(text), len(text), last=True)
    if len(keys) == 1 and not (text[holder.start + 1 : start] + text[end : holder.end - 1]).strip():
        return f"{text[: holder.start + 1]}{text[holder.end - 1 :]}"
    return _without_lines(text, start, end)


def _without_lines(text: str, start: int, end: int, *, last: bool = False) -> str:
    """Take out a stretch, with its lines where nothing else stands in them."""
    line = text.rfind("\n", 0, start) + 1
    behind = re.compile(r"[ \t]*(?://[^\n]*)?(\n)?").match(text, end)
    if behind is not None and behind[1] and not text[line:start].strip():
        return f"{text[:line]}{text[behind.end() :]}"
    if not last:
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    return f"{text[:start]}{text[end:]}"


def _insert(text: str, holder: _Node, key: str, value: object) -> str:
    """Put an entry behind the last one of an object or a list."""
    close = holder.end - 1
    if not holder.parts:
        inside = text[holder.start + 1 : close]
        outer = _indent_at(text, holder.start)
        inner = outer + _unit(text)
        shown = f"{key}{_render(text, value, inner)}"
        kept = inside.rstrip()
        return f"{text[: holder.start + 1]}{kept}\n{inner}{shown}\n{outer}{text[close:]}"
    first = next(iter(holder.parts.values()))[0]
    last = list(holder.parts.values())[-1][1].end
    line = text.rfind("\n", 0, first) + 1
    if text[line:first].strip():
        # All in one line, as it may well stay.
        at, joint, tail = last, ", ", ""
        if holder.comma:
            at, joint, tail = _skip(text, last) + 1, " ", ","
        return f"{text[:at]}{joint}{key}{json.dumps(value, ensure_ascii=False)}{tail}{text[at:]}"
    inner = text[line:first]
    shown = f"{key}{_render(text, value, inner)}"
    comma, at = ("," if not holder.comma else ""), last
    if holder.comma:
        at = _skip(text, last) + 1
    # A comment in the line of the last entry is about that.
    note = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)?").match(text, at)
    stop = min(note.end(), close) if note else at
    rest = text[at:stop].rstrip()
    tail = "," if holder.comma else ""
    return (
        f"{text[:last]}{comma}{text[last:at]}{rest}\n{inner}{shown}{tail}{text[at + len(rest) :]}"
    )


def _render(text: str, value: object, indent: str) -> str:
    """A value as people write settings: an object over several lines, a list in one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + _unit(text)
    shown = [
        f"{json.dumps(key, ensure_ascii=False)}: {_render(text, one, inner)}"
        for key, one in value.items()
    ]
    between = f",\n{inner}"
    return f"{{\n{inner}{between.join(shown)}\n{indent}}}"


def _unit(text: str) -> str:
    """By how much the text indents: what its first indented entry has more than what holds it."""
    for found in re.finditer(r"[{\[]\s*?\n([ \t]+)(?=\S)", text):
        outer = _indent_at(text, found.start())
        if found[1].startswith(outer) and len(found[1]) > len(outer):
            return found[1][len(outer) :]
    return "  "


def _indent_at(text: str, place: int) -> str:
    line = text.rfind("\n", 0, place) + 1
    blank = re.compile(r"[ \t]*").match(text, line)
    return blank[0] if blank else ""


def _find(top: _Node, path: Sequence[str | int]) -> _Node:
    node = top
    for depth, key in enumerate(path):
        if key not in node.parts:
            raise ValueError(f"{_name(path[: depth + 1])} is not there")
        node = node.parts[key][1]
    return node


def _name(path: Sequence[str | int]) -> str:
    return ".".join(map(str, path)) or "the whole"


# -- parsing -------------------------------------------------------------------------------------


def _parse(text: str) -> _Node:
    start = _skip(text, 0)
    if start == len(text):
        return _Node(0, 0, {}, {})
    node = _value(text, start, 0)
    end = _skip(text, node.end)
    if end < len(text):
        raise _wrong(text, end, "the end")
    return node


def _value(text: str, at: int, depth: int) -> _Node:
    if depth > _DEEPEST:
        raise _wrong(text, at, "less depth")
    if text[at : at + 1] in ("{", "["):
        return _holder(text, at, depth)
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise _wrong(text, at, "a value")
    try:
        return _Node(at, found.end(), json.loads(found[0]), {})
    except ValueError:
        raise _wrong(text, at, "a value") from None


def _holder(text: str, start: int, depth: int) -> _Node:
    """An object or a list."""
    named = text[start] == "{"
    closing = "}" if named else "]"
    parts: dict[str | int, tuple[int, _Node]] = {}
    at, comma = _skip(text, start + 1), False
    while text[at : at + 1] != closing:
        if parts and not comma:
            raise _wrong(text, at, f"a comma or {closing}")
        begin, key = at, len(parts)
        if named:
            found = _STRING.match(text, at)
            if found is None:
                raise _wrong(text, at, "a key in quotation marks")
            key = _value(text, at, depth).value  # type: ignore[assignment]  # a string
            at = _skip(text, found.end())
            if text[at : at + 1] != ":":
                raise _wrong(text, at, "a colon")
            at = _skip(text, at + 1)
        if key in parts:
            raise _wrong(text, begin, "a key that was not used before")
        node = _value(text, at, depth + 1)
        parts[key] = (begin, node)
        at = _skip(text, node.end)
        comma = text[at : at + 1] == ","
        if comma:
            at = _skip(text, at + 1)
    values = {key: node.value for key, (_, node) in parts.items()}
    value = values if named else list(values.values())
    return _Node(start, at + 1, value, parts, comma)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, wanted: str) -> ValueError:
    line = text.count("\n", 0, at) + 1
    return ValueError(f"line {line}: expected {wanted}")

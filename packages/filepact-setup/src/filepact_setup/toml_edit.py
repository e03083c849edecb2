"""Edits of TOML as people write it: comments, blanks and order stay.

A path is the keys that lead to a value.  Only the usual form is edited, a table below a header of its
own with a line or more for each key; what an edit makes of any other form is found out by reading it
again, and refused.  Lines end in LF here.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from filepact.text.lines import split_lines
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["drop", "put", "read"]

_BARE: Final = late_regex(r"[A-Za-z0-9_-]+")
_HEADER: Final = late_regex(r"[ \t]*\[")
_SIMPLE: Final = late_regex(r"""[ \t]*(?:[A-Za-z0-9_-]+|"[^"\\]*"|'[^']*')[ \t]*=""")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header, a key with its value, or lines that say nothing.

    Attributes:
        text: Its lines.
        table: The path of the table that it begins or belongs to.
        header: Whether it begins that; of a list of tables too.
        key: The path of what it sets, from the table on; empty for what sets nothing.
    """

    text: str
    table: tuple[str, ...]
    header: bool
    key: tuple[str, ...]


def read(text: str) -> dict[str, Any]:
    """The value of a text.

    Raises:
        ValueError: It is no TOML; the message says in which line.
    """
    return tomllib.loads(text)


def put(text: str, path: Sequence[str], value: object) -> str:
    """Give a value to a key; a mapping becomes a table with a header, at the end where it is new.

    Raises:
        ValueError: The text is no TOML.
    """
    if isinstance(value, dict):
        return _put_table(text, tuple(path), value)
    *above, key = path
    table, known = tuple(above), _statements(text)
    line = f"{_key(key)} = {_render(value)}\n"
    for place, one in enumerate(known):
        if one.key and (*one.table, *one.key) == (*table, key):
            name = ".".join(map(_key, one.key))
            note = re.search(r"[ \t]*#[^\n\"']*$", one.text.rstrip("\n"))
            line = f"{name} = {_render(value)}{note[0] if note else ''}\n"
            return _joined([*known[:place], _plain(line), *known[place + 1 :]])
    of_table = [number for number, one in enumerate(known) if one.table == table]
    dotted = [
        number
        for number, one in enumerate(known)
        if len(one.key) > 1 and (*one.table, *one.key[:-1]) == table
    ]
    if dotted:
        place, beside = dotted[-1], known[dotted[-1]]
        way = ".".join(map(_key, (*beside.key[:-1], key)))
        line = f"{way} = {_render(value)}\n"
        return _joined([*known[: place + 1], _plain(line), *known[place + 1 :]])
    if table and not of_table:
        return _put_table(text, table, {key: value})
    # Behind the last key of the table: what follows that is about what comes then.
    keyed = [number for number in of_table if known[number].key or known[number].header]
    if keyed:
        place = keyed[-1] + 1
        return _joined([*known[:place], _plain(line), *known[place:]])
    place = next((number for number, one in enumerate(known) if one.header), len(known))
    gap = [_plain("\n")] if place < len(known) else []
    return _joined([*known[:place], _plain(line), *gap, *known[place:]])


def drop(text: str, path: Sequence[str]) -> str:
    """Remove a key, or a table with those below it.

    Raises:
        ValueError: The text is no TOML, or has the entry in no form that is known.
    """
    whole, known = tuple(path), _statements(text)
    gone = {
        number
        for number, one in enumerate(known)
        if one.table[: len(whole)] == whole or (one.key and (*one.table, *one.key) == whole)
    }
    if not gone:
        raise ValueError(f"{'.'.join(path)} is missing, or in an unknown form")
    first, last = min(gone), max(gone)
    if known[first].header:
        # What stands behind the last key belongs to what comes then; one gap goes with the table.
        while last in gone and not (known[last].key or known[last].header):
            gone.discard(last)
            last -= 1
        if first and not known[first - 1].text.strip():
            gone.add(first - 1)
    elif not first and len(known) > 1 and not known[1].text.strip():
        gone.add(1)
    return "".join(one.text for number, one in enumerate(known) if number not in gone)


def _put_table(text: str, path: tuple[str, ...], value: Mapping[str, object]) -> str:
    """A table in the place of the one that is there, else at the end."""
    known = _statements(text)
    at = [number for number, one in enumerate(known) if one.table[: len(path)] == path]
    block = _block(path, value)
    if at:
        end = at[-1] + 1
        while not (known[end - 1].key or known[end - 1].header):
            end -= 1
        kept = [one for one in known[at[0] : end] if one.table[: len(path)] != path]
        return _joined([*known[: at[0]], _plain(block), *kept, *known[end:]])
    gap = "\n" if text.strip() and not text.endswith("\n\n") else ""
    return _joined([*known, _plain(f"{gap}{block}")])


def _block(path: tuple[str, ...], value: Mapping[str, object]) -> str:
    own = [(key, one) for key, one in value.items() if not isinstance(one, dict)]
    below = [(key, one) for key, one in value.items() if isinstance(one, dict)]
    blocks = ["\n".join(f"{_key(key)} = {_render(one)}" for key, one in own)]
    if own or not below:
        blocks[0] = f"[{'.'.join(map(_key, path))}]\n{blocks[0]}".rstrip("\n")
    blocks += [_block((*path, key), one).rstrip("\n") for key, one in below]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _render(value: object) -> str:
    # A TOML basic string takes what a JSON string takes, but for the one that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(text: str) -> _Statement:
    return _Statement(text, (), header=False, key=())


def _joined(statements: Sequence[_Statement]) -> str:
    """The text, where only the last line may lack an end."""
    lines = [one.text for one in statements if one.text]
    ended = [one if one.endswith("\n") else f"{one}\n" for one in lines[:-1]]
    return "".join([*ended, *lines[-1:]])


def _statements(text: str) -> list[_Statement]:
    """The statements of a text, put together the text.

    Raises:
        ValueError: It is no TOML.
    """
    tomllib.loads(text)
    found: list[_Statement] = []
    table: tuple[str, ...] = ()
    held = ""
    for line in split_lines(text):
        held += line
        if held.count('"""') % 2 or held.count("'''") % 2:
            continue
        try:
            value = tomllib.loads(held)
        except tomllib.TOMLDecodeError:
            continue
        header = bool(value) and _HEADER.match(held) is not None
        # The one key of a line without dots may well have a table as its value.
        key = tuple(value) if _SIMPLE.match(held) else _way(value)
        if header:
            key = ()
            table = _way(value)
        found.append(_Statement(held, table, header, key))
        held = ""
    return [*found, *([_Statement(held, table, header=False, key=())] if held else [])]


def _way(value: object) -> tuple[str, ...]:
    """The keys down to what a header begins, or the key of a line."""
    keys: list[str] = []
    while True:
        if isinstance(value, list) and len(value) == 1 and value[0] == {}:
            value = value[0]
        if not isinstance(value, dict) or len(value) != 1:
            return tuple(keys)
        ((key, value),) = value.items()
        keys.append(key)

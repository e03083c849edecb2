"""Puts settings into a text of JSON or TOML, and takes them out again.

What is wanted is a mapping: of mappings below it each entry is put in by itself, of lists each item
that is missing, and everything else as a whole.  Each edit is read again, so that a text in a form that
nobody thought of is refused and not spoilt.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.values import dataclass, field
from filepact_setup import json_edit, toml_edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["OWN", "SettingsChange", "SettingsFormat", "put_in", "read_settings_text", "take_out"]

OWN: Final = "filepact"
"""The key of entries that are ours as a whole, in every file."""

SettingsFormat = Literal["json", "toml"]
Path = tuple[str | int, ...]


@dataclass(slots=True)
class SettingsChange:
    """The values put into a text; lists and plain values only, to be kept as JSON.

    Attributes:
        holders: Paths of mappings and lists that were made for it, outermost first.
        values: Path, value, and the value that it had in a list of one; that is empty for none.
        items: Path of a list, and what was added to it.
    """

    holders: list[list[Any]] = field(default_factory=list)
    values: list[list[Any]] = field(default_factory=list)
    items: list[list[Any]] = field(default_factory=list)


def read_settings_text(text: str, kind: SettingsFormat) -> dict[str, Any]:
    """The mapping that a text holds.

    Raises:
        ValueError: It is in no form that is known; the message says why.
    """
    value = json_edit.read(text) if kind == "json" else toml_edit.read(text)
    if not isinstance(value, dict):
        raise ValueError("it is not an object with keys")  # noqa: TRY004 - of a text, not of a call
    return value


class _Editing:
    """A text that is edited in steps, and what it holds."""

    def __init__(self, text: str, kind: SettingsFormat) -> None:
        self._kind = kind
        self.text = text
        self.value = read_settings_text(text, kind)

    def put(self, path: Path, value: object) -> None:
        edit = json_edit.put if self._kind == "json" else toml_edit.put
        wanted = deepcopy(self.value)
        holder: Any = wanted
        for key in path[:-1]:
            holder = holder.setdefault(key, {}) if isinstance(holder, dict) else holder[key]
        holder[path[-1]] = value
        self._take(edit(self.text, path, value), wanted)  # type: ignore[arg-type]  # no index in TOML

    def append(self, path: Path, value: object) -> None:
        wanted = deepcopy(self.value)
        _at(wanted, path).append(value)
        if self._kind == "toml":
            self.put(path, _at(wanted, path))
        else:
            self._take(json_edit.append(self.text, path, value), wanted)

    def drop(self, path: Path) -> None:
        wanted = deepcopy(self.value)
        del _at(wanted, path[:-1])[path[-1]]
        if self._kind == "toml" and isinstance(path[-1], int):
            self.put(path[:-1], _at(wanted, path[:-1]))
            return
        edit = json_edit.drop if self._kind == "json" else toml_edit.drop
        self._take(edit(self.text, path), wanted)  # type: ignore[arg-type]  # the same

    def _take(self, text: str, wanted: dict[str, Any]) -> None:
        try:
            found = read_settings_text(text, self._kind)
        except ValueError:
            found = {}
        # A table of TOML without anything in it may be there or not.
        if found != wanted and (self._kind == "json" or _filled(found) != _filled(wanted)):
            raise ValueError("it is written in a form that cannot be edited safely")
        self.text, self.value = text, found


def put_in(text: str, wants: Mapping[str, Any], kind: SettingsFormat) -> tuple[str, SettingsChange]:
    """Put settings into a text.

    Args:
        text: What the file holds; empty for a new one.
        wants: The settings.
        kind: The format.

    Returns:
        The text, and what was put in; what was there already is not told.

    Raises:
        ValueError: The text is in no form that is known, or has something else in a place where a
            mapping or a list is wanted.
    """
    editing, change = _Editing(text, kind), SettingsChange()
    _put_in(editing, wants, (), change)
    return editing.text, change


def _put_in(editing: _Editing, wants: Mapping[str, Any], path: Path, done: SettingsChange) -> None:
    for key, value in wants.items():
        place = (*path, key)
        have = _at(editing.value, path)
        if not isinstance(have, dict):
            raise ValueError(f"{'.'.join(map(str, path))} is not an object with keys")  # noqa: TRY004 - of a text
        if key not in have:
            _note(value, place, done)
            editing.put(place, value)
        elif key == OWN or not isinstance(value, dict | list):
            if have[key] != value or type(have[key]) is not type(value):
                done.values.append([list(place), value, [have[key]]])
                editing.put(place, value)
        elif isinstance(value, dict):
            _put_in(editing, value, place, done)
        elif not isinstance(have[key], list):
            raise ValueError(f"{'.'.join(map(str, place))} is not a list")
        else:
            for item in value:
                if item not in _at(editing.value, place):
                    done.items.append([list(place), item])
                    editing.append(place, item)


def _note(value: object, place: Path, done: SettingsChange) -> None:
    """Note a value that was put where nothing was, each part of it by itself."""
    if isinstance(value, dict) and place[-1] != OWN:
        done.holders.append([*place])
        for key, one in value.items():
            _note(one, (*place, key), done)
    elif isinstance(value, list):
        done.holders.append([*place])
        done.items += [[[*place], item] for item in value]
    else:
        done.values.append([[*place], value, []])


def take_out(
    text: str,
    wants: Mapping[str, Any],
    kind: SettingsFormat,
    *,
    change: SettingsChange | None,
    is_ours: Callable[[object], bool],
) -> str:
    """Take settings out of a text that others may have edited since.

    Entries under the key `OWN` go, and items that are known as ours; of anything else only what was
    put in and is still as it was put in.

    Args:
        text: What the file holds.
        wants: Settings of the kind that was put in: where to look.
        kind: The format.
        change: What was put in, if that is known.
        is_ours: Whether an item of a list is ours, whatever exactly it says.

    Raises:
        ValueError: The text is in no form that is known.
    """
    editing = _Editing(text, kind)
    emptied: list[Path] = []
    for found, value in [] if change is None else change.items:
        items, place = _get(editing.value, tuple(found)), tuple(found)
        if isinstance(items, list) and value in items:
            editing.drop((*place, items.index(value)))
    for found, value, before in [] if change is None else reversed(change.values):
        place = tuple(found)
        if _get(editing.value, place, editing) == value:
            if before:
                editing.put(place, before[0])
            else:
                editing.drop(place)
    while (own := next(_own(editing.value, wants, (), is_ours), None)) is not None:
        editing.drop(own)
        emptied += [own[:depth] for depth in range(len(own) - 1, 0, -1)]
    made = emptied if change is None else [tuple(one) for one in reversed(change.holders)]
    for place in made:
        if _get(editing.value, place, editing) in ({}, []):
            editing.drop(place)
    return editing.text


def _own(
    have: object, wants: object, path: Path, is_ours: Callable[[object], bool]
) -> Iterator[Path]:
    """Paths of entries that are ours, in the places where they are wanted."""
    if isinstance(have, dict) and isinstance(wants, dict):
        for key, value in wants.items():
            if key in have and key == OWN:
                yield (*path, key)
            elif key in have:
                yield from _own(have[key], value, (*path, key), is_ours)
    elif isinstance(have, list):
        yield from _items(have, path, is_ours)


def _items(have: Sequence[object], path: Path, is_ours: Callable[[object], bool]) -> Iterator[Path]:
    """Items that are ours; of one that holds others too, what is ours in its lists."""
    for number, item in enumerate(have):
        if is_ours(item):
            yield (*path, number)
        elif isinstance(item, dict):
            for key, value in item.items():
                if isinstance(value, list):
                    yield from _items(value, (*path, number, key), is_ours)


def _filled(value: Any) -> Any:
    """A value without mappings that hold nothing."""
    if not isinstance(value, dict):
        return value
    below = {key: _filled(one) for key, one in value.items()}
    return {key: one for key, one in below.items() if one != {}}


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def _get(value: Any, path: Sequence[str | int], missing: object = None) -> Any:
    """The value at a path; another where there is none."""
    try:
        return _at(value, path)
    except (KeyError, IndexError, TypeError):
        return missing

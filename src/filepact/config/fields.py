"""Values in tables, taken only if they are what they have to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.config.lines import Key
    from filepact.config.problems import Problems

__all__ = ["Fields"]

_MOST_CHARACTERS = 500
_MOST_TEXTS = 200
_MOST_IN_ALL = 10_000


class Fields:
    """The fields of a file's tables.

    Args:
        problems: Takes what is wrong with them.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def known(self, key: Key, table: Mapping[str, Any], names: Sequence[str]) -> None:
        """Take down what a table holds besides these."""
        for name in table:
            if name not in names:
                self._problems.add((*key, name), f"is not known; known are {', '.join(names)}")

    def text(
        self,
        key: Key,
        table: Mapping[str, Any],
        name: str,
        default: str = "",
        *,
        needed: bool = False,
        most: int = _MOST_CHARACTERS,
    ) -> str:
        """A text of one line, or the default."""
        if name not in table:
            if needed:
                self._problems.add(key, f"has no {name}")
            return default
        return self._one((*key, name), table[name], most) or default

    def texts(
        self,
        key: Key,
        table: Mapping[str, Any],
        name: str,
        default: tuple[str, ...] = (),
        *,
        needed: bool = False,
    ) -> tuple[str, ...]:
        """Texts of one line each, at least one, or the default."""
        here = (*key, name)
        if name not in table:
            if needed:
                self._problems.add(key, f"has no {name}")
            return default
        values = table[name]
        if not isinstance(values, list) or not values:
            self._problems.add(here, 'has to be a list of texts, such as ["..."]')
            return default
        if len(values) > _MOST_TEXTS:
            self._problems.add(here, f"has more than {_MOST_TEXTS} elements; make two tables of it")
            return default
        if sum(len(value) for value in values if isinstance(value, str)) > _MOST_IN_ALL:
            # Comparing patterns with each other takes a time that grows with their square.
            self._problems.add(here, f"is longer than {_MOST_IN_ALL:,} characters in all")
            return default
        return tuple(
            self._one((*here, number), value, _MOST_CHARACTERS)
            for number, value in enumerate(values)
        )

    def _one(self, key: Key, value: object, most: int) -> str:
        if not isinstance(value, str):
            self._problems.add(key, "has to be a text in quotes")
        elif not value.strip():
            self._problems.add(key, "is empty")
        elif len(value) > most:
            self._problems.add(key, f"is longer than {most} characters")
        elif any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in value):
            self._problems.add(key, "has a control character in it")
        else:
            return value
        return ""

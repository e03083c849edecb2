"""What is wrong in a settings file: values first, so that all of it can be told at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.config.lines import Lines
from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.config.lines import Key

__all__ = ["Problem", "Problems", "no_toml", "refuse", "written"]

_WHERE = re.compile(r"at line (\d+)")

_HINT = "Correct the file; `filepact policy lint` lists everything that is wrong in it."


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        file: How the file is called in messages.
        line: 1-based.
        key: The key, from the outermost table inwards; tables of a list are counted from 1.
        said: What is wrong.
        unmet: Whether it is only that something else is expected.
    """

    file: str
    line: int
    key: str
    said: str
    unmet: bool = False

    def __str__(self) -> str:
        key = f", {self.key}" if self.key else ""
        return f"{self.file}, line {self.line}{key}: {self.said}"


class Problems:
    """What was found wrong in one file so far.

    Args:
        text: What the file holds; valid TOML.
        name: How it is called in messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.found: list[Problem] = []
        self._lines = Lines(text)

    def line(self, key: Key) -> int:
        """The line on which a key stands."""
        return self._lines.of(key)

    def add(self, key: Key, said: str, *, unmet: bool = False) -> None:
        """Take one down."""
        self.found.append(Problem(self.name, self.line(key), written(key), said, unmet))


def refuse(problems: Sequence[Problem]) -> None:
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


def no_toml(text: str, name: str, error: ValueError) -> Problem:
    """What the TOML reader says about a text that is none."""
    found = _WHERE.search(str(error))
    line = int(found[1]) if found else 1 + text.count("\n")
    return Problem(name, line, "", f"is not TOML: {error}")


def written(key: Key) -> str:
    """A key as people write it, with ``[2]`` for the second table of a list."""
    words = ""
    for number, part in enumerate(key):
        if isinstance(part, int):
            words += f"[{part + 1}]"
        else:
            name = part if re.fullmatch(r"[\w-]+", part) else f'"{part}"'
            words += f".{name}" if number else name
    return words

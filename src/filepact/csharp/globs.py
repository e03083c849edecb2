"""Which files a project's items name: lists of names and wildcards, as the build reads them.

A list is separated by semicolons; both kinds of slashes separate folders.  ``*`` and ``?`` stay
within a name, ``**`` is any number of folders.  Wildcards overlook upper and lower case; names without any do
not.  All takes time linear in the path for each pattern.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAX_PATTERN", "Membership", "Pattern", "Step", "split_list", "unescape"]

MAX_PATTERN: Final = 2_000
"""Longest pattern, in characters; what is longer matches nothing."""

_WILD = re.compile(r"[*?]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_DEEP = "**"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One name or wildcard of a list.

    Attributes:
        folder: The absolute folder that is given without wildcards; of a plain name, the whole path.
        parts: What has to follow beneath it, in lower case; empty for a plain name.
    """

    folder: str
    parts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, folder: str) -> Pattern | None:
        """A pattern as it stands in a file of a folder; None if it is empty or too long.

        Args:
            text: One entry of a list.
            folder: The absolute folder from which it counts.
        """
        text = text.strip().replace("\\", "/")
        if not text or len(text) > MAX_PATTERN:
            return None
        names = [name for name in text.split("/") if name not in ("", ".")]
        first = next((at for at, name in enumerate(names) if _WILD.search(name)), len(names))
        fixed = unescape("/".join(names[:first]))
        start = "/" if text.startswith("/") else folder
        base = posixpath.normpath(posixpath.join(start, fixed))
        wild: list[str] = []
        for name in names[first:]:
            if name == "..":
                # After a wildcard it leads nowhere that could be said beforehand.
                return None
            if not (name == _DEEP and wild and wild[-1] == _DEEP):
                wild.append("*" if name == "*.*" else name.lower())
        if wild and wild[-1] == _DEEP:
            wild.append("*")
        return cls(base, tuple(wild))

    @property
    def ending(self) -> str:
        """With what the names of all files that it matches end, in lower case; may be empty."""
        return re.split(r"[*?]", self.parts[-1])[-1] if self.parts else ""

    def matches(self, path: str) -> bool:
        """Whether it names a file, by its absolute path."""
        if not self.parts:
            return path == self.folder
        above = "/" if self.folder == "/" else f"{self.folder}/"
        if not path.startswith(above):
            return False
        if self.parts[0] == _DEEP and len(self.parts) == 2 and self.parts[1] == f"*{self.ending}":
            return path.lower().endswith(self.ending)
        return _match(self.parts, path[len(above) :].lower().split("/"))


@dataclass(frozen=True, slots=True)
class Step:
    """One item of a project: files that come, or files that go.

    Attributes:
        adds: Whether they come.
        patterns: Which.
        excluding: Which of them do not come.
    """

    adds: bool
    patterns: tuple[Pattern, ...]
    excluding: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """Which files belong to a project, whether they are there or not.

    Attributes:
        steps: In the order in which the project names them; the last that names a file decides.
    """

    steps: tuple[Step, ...] = ()
    _sorted: list[tuple[_Names, _Names]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )
    _plain: dict[str, list[int]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _wild: list[int] = field(default_factory=list, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Projects of the old style name thousands of files one by one.
        for number, step in enumerate(self.steps):
            names, excluding = _Names.of(step.patterns), _Names.of(step.excluding)
            self._sorted.append((names, excluding))
            for path in names.plain:
                self._plain.setdefault(path, []).append(number)
            if names.wild:
                self._wild.append(number)

    def includes(self, path: str) -> bool:
        """Whether a file belongs to the project, or would if it were there."""
        for number in sorted({*self._plain.get(path, ()), *self._wild}, reverse=True):
            names, excluding = self._sorted[number]
            if names.name(path):
                if not self.steps[number].adds:
                    return False
                if not excluding.name(path):
                    return True
        return False

    def added(self) -> Iterable[Pattern]:
        """All patterns by which files come."""
        return (one for step in self.steps if step.adds for one in step.patterns)

    @property
    def wildcards(self) -> int:
        """How many patterns a file may have to be compared with."""
        return sum(len(names.wild) + len(more.wild) for names, more in self._sorted)


@dataclass(frozen=True, slots=True)
class _Names:
    """Patterns, sorted into those that are names and those that are wildcards."""

    plain: frozenset[str]
    wild: tuple[Pattern, ...]

    @classmethod
    def of(cls, patterns: tuple[Pattern, ...]) -> _Names:
        plain = frozenset(one.folder for one in patterns if not one.parts)
        return cls(plain, tuple(one for one in patterns if one.parts))

    def name(self, path: str) -> bool:
        return path in self.plain or any(one.matches(path) for one in self.wild)


def split_list(text: str) -> list[str]:
    """The entries of a list that is separated by semicolons, without empty ones."""
    return [one.strip() for one in text.split(";") if one.strip()]


def unescape(text: str) -> str:
    """A text in which `%2A` and its like stand for characters, without them."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _match(parts: tuple[str, ...], names: list[str]) -> bool:
    """Whether wildcards match the names of a path, from left to right, going back to the last ``**``."""
    at = name = 0
    deep, behind = -1, 0
    while name < len(names):
        if at < len(parts) and parts[at] == _DEEP:
            deep, behind = at, name
            at += 1
        elif at < len(parts) and _match_name(parts[at], names[name]):
            at += 1
            name += 1
        elif deep >= 0:
            behind += 1
            at, name = deep + 1, behind
        else:
            return False
    return all(one == _DEEP for one in parts[at:])


def _match_name(pattern: str, name: str) -> bool:
    """The same for the characters of one name."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    at = place = 0
    star, behind = -1, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, behind = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at += 1
            place += 1
        elif star >= 0:
            behind += 1
            at, place = star + 1, behind
        else:
            return False
    return set(pattern[at:]) <= {"*"}

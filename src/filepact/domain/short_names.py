"""Short names: ``secret~1.yam`` may stand for ``secrets.yaml``.

Some file systems give every long name a second one of eight and three characters, and open the
file under either: no dots in front, no blanks, at most six characters, ``~`` and a number, three
characters of the ending.  Where many names begin alike only two characters are left of the name,
with four hexadecimal digits behind them.  A short name does not tell which long one it stands
for, so rules are asked about every name of theirs for which it may.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

from filepact.text.patterns import split_pattern
from filepact.text.wildcard import literal_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.text.patterns import PatternSet

__all__ = ["ShortNames", "is_short"]

_SHORT: Final = re.compile(r"([^.]{1,6})~(\d{1,6})(?:\.([^.~]{1,3}))?")
_LONGEST: Final = 8
_STEM: Final = 6
_DIGEST: Final = re.compile(r"..[0-9a-f]{4}")
_CHANGED: Final = str.maketrans("+,;=[]", "______", " .")
_MOST_PATHS: Final = 2_000


def is_short(name: str) -> bool:
    """Whether a keyed name has the shape of a short name."""
    found = _SHORT.fullmatch(name) if "~" in name else None
    return found is not None and len(found[1]) + 1 + len(found[2]) <= _LONGEST


class ShortNames:
    """The names in lists of patterns, by the short names that may stand for them.

    Args:
        lists: Gitignore patterns over keyed names; what takes back counts for nothing.
    """

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._lists = tuple(lists)
        self._by_ending: dict[str | None, list[str]] | None = None

    def covering(self, parts: Sequence[str], patterns: PatternSet) -> frozenset[int]:
        """The numbers of the lists that cover a path for which short names in another may stand.

        Args:
            parts: The keyed names in the path, from the top.
            patterns: The same lists, compiled.
        """
        choices = [(part, *self.readings(part)) for part in parts]
        if prod(map(len, choices)) > _MOST_PATHS:
            # Nobody can mean so many of them honestly.
            return frozenset(range(len(self._lists)))
        return frozenset().union(*map(patterns.matching, product(*choices)))

    def readings(self, name: str) -> frozenset[str]:
        """Names that the patterns cover and that a name may stand for, when it is a short one."""
        if not is_short(name):
            return frozenset()
        if self._by_ending is None:
            self._by_ending = _sorted_by_ending(self._lists)
        stem, _, rest = name.rpartition("~")
        number, _, ending = rest.partition(".")
        kept = min(_STEM, _LONGEST - 1 - len(number))
        found = {
            _long_name(part, stem, kept, ending)
            for part in (*self._by_ending.get(ending, ()), *self._by_ending.get(None, ()))
        }
        return frozenset(long for long in found if long is not None)


def _sorted_by_ending(lists: Iterable[Iterable[str]]) -> dict[str | None, list[str]]:
    """The parts of all patterns by the ending in a short name; None for those of any ending."""
    split = (split_pattern(pattern) for patterns in lists for pattern in patterns)
    parts = {part for negated, parts in split if not negated for part in parts if part != "**"}
    found: dict[str | None, list[str]] = {}
    for part in parts:
        if literal_length(part) == len(part):
            found.setdefault(_split(part)[1][:3], []).append(part)
        elif _one_ending(part):
            found.setdefault(part[2:5], []).append(part)
        elif literal_length(part) == len(part) - 1 and part.endswith("*"):
            found.setdefault(None, []).append(part)
    return found


def _one_ending(part: str) -> bool:
    return (
        part.startswith("*.") and part.count(".") == 1 and literal_length(part[1:]) == len(part) - 1
    )


def _long_name(part: str, stem: str, kept: int, ending: str) -> str | None:
    """A name that a part of a pattern covers and that a short name may stand for.

    Args:
        part: The part of the pattern, which has the same ending or any.
        stem: The short name in front of its ``~``.
        kept: How many characters of a longer name it would have there.
        ending: What stands behind its dot.
    """
    if part.endswith("*"):
        base = part[:-1].lstrip(".").translate(_CHANGED)
        if not (stem.startswith(base[:kept]) or _is_digest(stem, base)):
            return None
        return f"{part[:-1]}{stem[len(base) :]}" + (f".{ending}" if ending else "")
    if part.startswith("*"):
        return f"{stem}{part[1:]}"
    base = _split(part)[0]
    return part if base[:kept] == stem or _is_digest(stem, base) else None


def _is_digest(stem: str, base: str) -> bool:
    return _DIGEST.fullmatch(stem) is not None and stem[:2] == base[:2]


def _split(name: str) -> tuple[str, str]:
    """A name without its ending, and the ending, as they go into a short name."""
    bare = name.lstrip(".")
    base, dot, ending = bare.rpartition(".")
    return (base if dot else bare).translate(_CHANGED), (ending if dot else "").translate(_CHANGED)

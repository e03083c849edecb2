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

_SHORT: Final = re.compile(r"([^.~]{1,6})~(\d{1,6})(?:\.([^.~]{1,3}))?")
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
        self._names: tuple[str, ...] | None = None

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
        if self._names is None:
            self._names = tuple({part for each in self._lists for part in _parts(each)})
        stem, _, rest = name.partition("~")
        number, _, ending = rest.partition(".")
        kept = min(_STEM, _LONGEST - 1 - len(number))
        found = {_long_name(part, stem, kept, ending) for part in self._names}
        return frozenset(long for long in found if long is not None)


def _parts(patterns: Iterable[str]) -> set[str]:
    split = (split_pattern(pattern) for pattern in patterns)
    return {part for negated, parts in split if not negated for part in parts if part != "**"}


def _long_name(part: str, stem: str, kept: int, ending: str) -> str | None:
    """A name that a part of a pattern covers and that a short name may stand for.

    Args:
        part: The part of the pattern.
        stem: The short name in front of its ``~``.
        kept: How many characters of a longer name it would have there.
        ending: What stands behind its dot.
    """
    plain = literal_length(part)
    if plain == len(part):
        base, its_ending = _split(part)
        fits = base[:kept] == stem or _is_digest(stem, base)
        return part if fits and its_ending[:3] == ending else None
    if part[plain:] == "*":
        base = part[:-1].lstrip(".").translate(_CHANGED)
        if not base or not (stem.startswith(base[:kept]) or _is_digest(stem, base)):
            return None
        return f"{part[:-1]}{stem[len(base) :]}" + (f".{ending}" if ending else "")
    if part.startswith("*.") and part.count(".") == 1 and literal_length(part[1:]) == len(part) - 1:
        return f"{stem}{part[1:]}" if part[2:5] == ending else None
    return None


def _is_digest(stem: str, base: str) -> bool:
    return _DIGEST.fullmatch(stem) is not None and stem[:2] == base[:2]


def _split(name: str) -> tuple[str, str]:
    """A name without its ending, and the ending, as they go into a short name."""
    bare = name.lstrip(".")
    base, dot, ending = bare.rpartition(".")
    return (base if dot else bare).translate(_CHANGED), (ending if dot else "").translate(_CHANGED)

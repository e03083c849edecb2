"""Matches a path against many lists of gitignore patterns at once.

Most patterns are plain names, endings or beginnings, and are looked up; only the others are
expressions, and of those only the ones whose last part fits the name at hand are tried.  What a
name answers is remembered, so a path costs a look-up for each of its parts.

As in an ignore file, a pattern without a slash is one for names at any depth, any other counts
from the top, and ``!`` takes back what an earlier pattern of the same list covers.  Unlike there
a slash at the end changes nothing, and ``x/**`` covers ``x`` as well.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from filepact.text.glob import literal_length, translate
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["NameIndex", "PatternSet", "split_pattern"]

_REMEMBERED = 50_000
_WILD = late_regex(r"[*?\[\]\\]")
_CLASS = late_regex(r"\[[^\]\[\\]+\]")


def split_pattern(pattern: str) -> tuple[bool, tuple[str, ...]]:
    """Whether a pattern takes back, and its parts; the first is ``**`` unless it is anchored.

    A pattern of no parts covers nothing.
    """
    negated = pattern.startswith("!")
    text = pattern[negated:].rstrip("/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if parts and "/" not in text:
        parts.insert(0, "**")
    while len(parts) > 1 and parts[-1] == "**":
        parts.pop()
    return negated, tuple(parts)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One pattern of one list.

    Attributes:
        number: The list.
        order: Its place in the list.
        negated: Whether it takes back.
        parts: Those of the pattern.
        plain: Whether those above the name are plain, but for a first ``**``.
    """

    number: int
    order: int
    negated: bool
    parts: tuple[str, ...]
    plain: bool

    def covers(self, parts: Sequence[str]) -> bool:
        """Whether a path fits whose last part does."""
        if not self.plain:
            return _expression("/".join(self.parts)).fullmatch("/".join(parts)) is not None
        loose = self.parts[0] == "**"
        wanted = self.parts[loose:-1]
        start = len(parts) - 1 - len(wanted)
        return (start >= 0 if loose else start == 0) and tuple(parts[start:-1]) == wanted


class PatternSet:
    """Compiled lists of patterns.

    Args:
        lists: Patterns of each list; in the same form (letter case and so on) as the paths
            that will be asked about.

    Raises:
        GlobError: A pattern cannot be understood.
    """

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._literal: dict[str, list[_Pattern]] = {}
        self._ends: dict[str, list[_Pattern]] = {}
        self._starts: dict[str, list[_Pattern]] = {}
        self._others: list[tuple[re.Pattern[str], _Pattern]] = []
        self._everything: frozenset[int] = frozenset()
        for number, patterns in enumerate(lists):
            for order, pattern in enumerate(patterns):
                self._add(number, order, *split_pattern(pattern))
        self._any_end = tuple(self._ends)
        self._any_start = tuple(self._starts)
        self._any_other = _union(expression.pattern for expression, _ in self._others)
        self._remembered: dict[str, tuple[_Pattern, ...]] = {}

    def _add(self, number: int, order: int, negated: bool, parts: tuple[str, ...]) -> None:
        if not parts:
            return
        if parts == ("**",):
            # Of everything only a list as a whole can be taken back, by leaving it out.
            if not negated:
                self._everything |= {number}
            return
        name = parts[-1]
        plain = all(_plain(part) is not None for part in parts[parts[0] == "**" : -1])
        if not plain:
            translate("/".join(parts))  # Compiled when it is needed; what is wrong is said now.
        found = _Pattern(number, order, negated, parts, plain)
        whole = _plain(name)
        if whole is not None:
            self._literal.setdefault(whole, []).append(found)
        elif name[0] == "*" and (ending := _plain(name[1:])):
            self._ends.setdefault(ending, []).append(found)
        elif name[-1] == "*" and (start := _plain(name[:-1])):
            self._starts.setdefault(start, []).append(found)
        else:
            self._others.append((re.compile(translate(name), re.DOTALL), found))

    def matching(self, parts: Sequence[str]) -> frozenset[int]:
        """The numbers of the lists that cover a path: itself, or by a folder that it lies in.

        Args:
            parts: The names in the path, from the top.
        """
        covering = self._everything
        for depth, name in enumerate(parts, start=1):
            found = self._remembered.get(name)
            if found is None:
                found = self._look_up(name)
            if found:
                covering |= _deciding(found, parts[:depth])
        return covering

    def _look_up(self, name: str) -> tuple[_Pattern, ...]:
        found = list(self._literal.get(name, ()))
        if name.endswith(self._any_end):
            for ending, patterns in self._ends.items():
                if name.endswith(ending):
                    found += patterns
        if name.startswith(self._any_start):
            for start, patterns in self._starts.items():
                if name.startswith(start):
                    found += patterns
        if self._any_other is not None and self._any_other.fullmatch(name):
            found += [pattern for expression, pattern in self._others if expression.fullmatch(name)]
        found.sort(key=lambda pattern: (pattern.number, pattern.order))
        answer = tuple(found)
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[name] = answer
        return answer

    def suspecting(self) -> NameIndex:
        """A quick question about a name: could any list cover a path that ends in it?

        It remembers nothing, for trees in which nearly every name is another one.
        """
        return NameIndex(
            everything=bool(self._everything),
            literal=_covering(self._literal),
            ends=_covering(self._ends),
            starts=_covering(self._starts),
            others=[
                (expression.pattern, pattern.parts[-1])
                for expression, pattern in self._others
                if not pattern.negated
            ],
        )


class NameIndex:
    """The names that a path can end in which some list covers, and perhaps a few more.

    Args:
        everything: Whether every name is one.
        literal: Names.
        ends: How others end.
        starts: How others begin.
        others: What still others look like: an expression, and the pattern that it is made of.
    """

    def __init__(
        self,
        *,
        everything: bool,
        literal: Iterable[str],
        ends: Iterable[str],
        starts: Iterable[str],
        others: Sequence[tuple[str, str]],
    ) -> None:
        self._everything = everything
        self._literal = frozenset(literal)
        self._ends, self._starts = tuple(ends), tuple(starts)
        other = _union(expression for expression, _ in others)
        self._other = None if other is None else other.fullmatch
        # Nearly every name is told to be none by one look at its last characters and its first.
        tails = [*self._ends, *(_WILD.split(pattern)[-1] for _, pattern in others)]
        self._tail = min(map(len, tails), default=1)
        self._tails = frozenset(tail[-self._tail :] for tail in tails if self._tail)
        self._head = min(map(len, self._starts), default=1)
        self._heads = frozenset(start[: self._head] for start in self._starts)
        self._others = [_CLASS.sub("?", pattern) for _, pattern in others]

    @cached_property
    def hints(self) -> Callable[[bytes], bool]:
        """Whether a name that matches may stand in some names, or one that copies of it have.

        The names are in ASCII and lower case, with a slash or more before, between and behind them.  What it
        says of a name that does not match costs time only.
        """
        import re2  # noqa: PLC0415 - only walks ask

        odd = any(sign in pattern for pattern in self._others for sign in "[]\\")
        pieces = [_WILD.split(pattern) for pattern in self._others]
        if self._everything or odd or not all(parts[-1] for parts in pieces):
            return lambda _names: True
        before, behind = r"(?:[/#.]|copy of )", r"[/#.~_-]"
        whole, ends, starts = (
            "|".join(map(re2.escape, names)) for names in (self._literal, self._ends, self._starts)
        )
        some = (r"[^/]*".join(map(re2.escape, parts)) for parts in pieces)
        ways = [
            *([f"{before}(?:{whole}){behind}"] if whole else ()),
            *([f"(?:{ends}){behind}"] if ends else ()),
            *([f"{before}(?:{starts})"] if starts else ()),
            *(f"{one}{behind}" for one in some),
            *(r" copy", r" \(\d"),  # in such a copy two parts of the name are apart
        ]
        found = re2.compile("|".join(ways).encode()).search
        return lambda names: found(names) is not None

    def __call__(self, name: str) -> bool:
        return bool(self.among([name]))

    def among(self, names: Sequence[str]) -> list[int]:
        """The indices of the matching names among many."""
        if self._everything:
            return list(range(len(names)))
        literal, other = self._literal, self._other
        ends, tail, tails = self._ends, -self._tail, self._tails
        starts, head, heads = self._starts, self._head, self._heads
        return [
            at
            for at, name in enumerate(names)
            if name in literal
            or (name[:head] in heads and name.startswith(starts))
            or (
                (not tail or name[tail:] in tails)
                and (name.endswith(ends) or (other is not None and other(name) is not None))
            )
        ]


def _covering(known: dict[str, list[_Pattern]]) -> Iterable[str]:
    """The names for which some pattern does more than take back."""
    return [name for name, found in known.items() if not all(one.negated for one in found)]


def _deciding(found: tuple[_Pattern, ...], parts: Sequence[str]) -> frozenset[int]:
    """Of patterns that fit the last name, sorted by list: the lists whose last one covers."""
    verdicts: dict[int, bool] = {}
    for pattern in found:
        if pattern.covers(parts):
            verdicts[pattern.number] = not pattern.negated
    return frozenset(number for number, covers in verdicts.items() if covers)


@lru_cache(maxsize=4_096)
def _expression(pattern: str) -> re.Pattern[str]:
    """Compiled when a name is met for the first time that needs it, for few ever are."""
    return re.compile(translate(pattern), re.DOTALL)


def _plain(name: str) -> str | None:
    """The name that a pattern without wildcards matches; None when it has some."""
    return name if literal_length(name) == len(name) else None


def _union(sources: Iterable[str]) -> re.Pattern[str] | None:
    joined = "|".join(sources)
    return re.compile(joined, re.DOTALL) if joined else None

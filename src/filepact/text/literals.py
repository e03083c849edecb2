"""The literals that a pattern cannot match without, so that other texts need not be searched."""

from __future__ import annotations

import re
from typing import Final

from filepact.values import late_regex

__all__ = ["SHORTEST", "Needs", "needs_of"]

SHORTEST: Final = 2
"""Bytes that a literal needs to be looked up."""

Needs = tuple[tuple[bytes, ...], ...]
"""What a text must hold to match: of each inner group at least one literal.  Without groups, any text."""

_MOST_GROUPS: Final = 16
_MOST_ALTERNATIVES: Final = 32
_DEEPEST: Final = 50

_Groups = list[list[bytes]]
"""As `Needs`, while a pattern is read."""

_GROUP = late_regex(r"\((?!\?)|\(\?:|\(\?P?<\w+>", re.ASCII)
_COUNTS = late_regex(r"\{(\d+)(?:,\d*)?\}", re.ASCII)


class _UnsureError(Exception):
    """The pattern has something of which it is not sure what it means."""


def needs_of(pattern: str, *, literal: bool, case_sensitive: bool) -> Needs:
    """The literals that every text must hold in which a pattern of RE2 matches.

    Letters of ASCII may have either case in the text.  What is doubtful needs nothing.

    Args:
        pattern: The pattern.
        literal: Whether it is plain text.
        case_sensitive: Whether case matters; if not, letters beyond ASCII are not relied on.
    """
    if literal:
        groups = _words(pattern, case_sensitive)
    else:
        reader = _PatternReader(pattern, case_sensitive)
        try:
            groups = reader.alternatives()
        except _UnsureError:
            return ()
    groups.sort(key=_worth, reverse=True)
    return tuple(tuple(dict.fromkeys(group)) for group in groups[:_MOST_GROUPS])


def _words(text: str, case_sensitive: bool) -> _Groups:
    """The parts of plain text that can be relied on: each within one line."""
    parts = [""]
    for char in text:
        if char in "\r\n" or not (case_sensitive or char.isascii()):
            parts.append("")
        else:
            parts[-1] += char
    encoded = (part.encode("utf-8", "replace") for part in parts)
    return [[part] for part in encoded if len(part) >= SHORTEST]


def _worth(group: list[bytes]) -> int:
    """How much a group tells: as much as its shortest literal."""
    return min(map(len, group))


class _PatternReader:
    """Reads the syntax of RE2, as far as it is plain."""

    def __init__(self, pattern: str, case_sensitive: bool) -> None:
        self._pattern = pattern
        self._case_sensitive = case_sensitive
        self._at = 0

    def alternatives(self, depth: int = 0) -> _Groups:
        """The literals needed up to the end, or to the bracket that closes a group."""
        if depth > _DEEPEST:
            raise _UnsureError
        branches = [self._branch(depth)]
        while self._next() == "|":
            self._at += 1
            branches.append(self._branch(depth))
        if bool(depth) != (self._next() == ")"):
            raise _UnsureError
        if len(branches) == 1:
            return branches[0]
        if not all(branches):
            return []
        # Of each branch what tells most: one of these is in the text.
        either = [literal for branch in branches for literal in max(branch, key=_worth)]
        return [either] if len(either) <= _MOST_ALTERNATIVES else []

    def _branch(self, depth: int) -> _Groups:
        needed: _Groups = []
        run = ""
        while (char := self._next()) not in ("", "|", ")"):
            inside: _Groups | None = None
            letter = ""
            if char == "(":
                inside = self._group(depth)
            else:
                letter = self._letter(char)
            least = self._least()
            if letter and least is None:
                run += letter
                continue
            # A repeated letter ends a run, which it belongs to if it is there once at least.
            needed += _words(run + letter if least else run, self._case_sensitive)
            run = ""
            if inside is not None and least != 0:
                needed += inside
        return needed + _words(run, self._case_sensitive)

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _group(self, depth: int) -> _Groups:
        opened = _GROUP.match(self._pattern, self._at)
        if opened is None:
            raise _UnsureError
        self._at = opened.end()
        inside = self.alternatives(depth + 1)
        self._at += 1
        return inside

    def _letter(self, char: str) -> str:
        """Pass over one part of the pattern; the letter that it stands for, or nothing."""
        self._at += 1
        if char in "*+?":
            raise _UnsureError
        if char == "[":
            self._pass_class()
            return ""
        if char in ".^$":
            return ""
        if char != "\\":
            return char
        escaped = self._next()
        self._at += 1
        if escaped and escaped in "dDwWsSbBAz":
            return ""
        if escaped == "t":
            return "\t"
        if escaped.isascii() and escaped.isprintable() and escaped and not escaped.isalnum():
            return escaped
        raise _UnsureError

    def _pass_class(self) -> None:
        at = self._at + (self._next() == "^")
        first = at
        while at < len(self._pattern):
            char = self._pattern[at]
            if char == "]" and at > first:
                self._at = at + 1
                return
            if char == "[" or (char == "\\" and self._pattern[at + 1 : at + 2] in ("", "Q", "E")):
                raise _UnsureError
            at += 1 + (char == "\\")
        raise _UnsureError

    def _least(self) -> int | None:
        """Pass over a repetition; how often at least, None where there is none."""
        char = self._next()
        counts = _COUNTS.match(self._pattern, self._at)
        if counts is not None:
            least = int(counts[1])
            self._at = counts.end()
        elif char and char in "*?+":
            least = int(char == "+")
            self._at += 1
        else:
            return None
        if self._next() == "?":
            self._at += 1
        if (self._next() and self._next() in "*?+") or _COUNTS.match(self._pattern, self._at):
            raise _UnsureError
        return least

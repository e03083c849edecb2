"""Names that patterns stand for: examples of one pattern, and one that two patterns share.

They are how rules are compared with each other before any file is asked about.  A wildcard is
tried as nothing, as one and as two characters that stand in no pattern, so that only another
wildcard covers what it stands for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from filepact.text.patterns import split_pattern
from filepact.text.wildcard import WildcardError, translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["FRESH", "left_out", "shared", "witnesses"]

FRESH: Final = "\ue000"
"""A character of no meaning, which nobody writes into a pattern."""

_OTHER: Final = "\ue001"
_CANDIDATES: Final = "".join(map(chr, range(0x21, 0x7F))) + FRESH + _OTHER
_FEW: Final = 3
_BASES: Final = 5
_MOST_LEFT_OUT: Final = 12
_LEFT_OUT: Final = re.compile(r"\[[!^]([^\]]+)")
# Longer than what anybody writes ? for.
_LONG: Final = FRESH * 9
_FOLDERS: Final = ((), (FRESH,), (_LONG,), (_LONG, _OTHER + _LONG))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a pattern for a name: one character, or any number of them.

    Attributes:
        chars: Characters that it stands for, some of them only; empty for ``*``.
        fits: Compares one character; None for ``*``.
    """

    chars: str
    fits: re.Pattern[str] | None

    def examples(self, also: str) -> str:
        """Some of its characters, and of those that are to be tried besides all that it fits."""
        fits = self.fits
        return self.chars[:_FEW] + "".join(c for c in also if fits is not None and fits.match(c))


_STAR = _Piece("", None)


def witnesses(pattern: str, also: str = "") -> tuple[tuple[str, ...], ...]:
    """Paths that a pattern stands for, ``!`` or not, in lower case; none if it stands for nothing.

    Args:
        pattern: As `text.patterns` takes it.
        also: Characters to try besides for wildcards, because other patterns leave them out.
    """
    _negated, parts = split_pattern(pattern.casefold())
    if parts == ("**",):
        return ((), *_FOLDERS[1:])
    # Each wildcard alone in all its forms while the others stand at one form, for each form.
    forms = [_forms(part, also) for part in parts]
    found: dict[tuple[str, ...], None] = {}
    for base in range(_BASES):
        chosen = [each[min(base, len(each) - 1)] for each in forms]
        for number, each in enumerate(forms):
            for form in each:
                names = [*chosen[:number], form, *chosen[number + 1 :]]
                path = tuple(name for group in names for name in group)
                if all(name not in ("", ".", "..") for name in path):
                    found[path] = None
    return tuple(found)


def left_out(patterns: Iterable[str]) -> str:
    """The characters that classes with ``!`` leave out, ends of ranges among them, in lower case."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for members in _LEFT_OUT.findall(pattern.casefold()):
            found |= dict.fromkeys(members.replace("-", "").replace("\\", ""))
    return "".join(found)[:_MOST_LEFT_OUT]


def shared(one: str, other: str) -> tuple[str, ...] | None:
    """A path that two patterns stand for both, ``!`` or not, or None when there is none.

    It is about the very name, not about what lies in a folder that one of them names.
    """
    return _shared_path(split_pattern(one.casefold())[1], split_pattern(other.casefold())[1])


def _forms(part: str, also: str) -> tuple[tuple[str, ...], ...]:
    """Names, or several one below the other, that a part of a pattern stands for."""
    if part == "**":
        return _FOLDERS
    runs = ("", FRESH, FRESH + _OTHER, _LONG, *also)
    pieces = _pieces(part)
    found: dict[str, None] = {}
    for base in runs:
        plain = [base if piece.fits is None else piece.chars[:1] for piece in pieces]
        found["".join(plain)] = None
        for number, piece in enumerate(pieces):
            for form in runs if piece.fits is None else piece.examples(also):
                found["".join([*plain[:number], form, *plain[number + 1 :]])] = None
    return tuple((name,) for name in found if name) or ((FRESH,),)


def _shared_path(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...] | None:
    # From the ends of both to their beginnings, because patterns may be as long as one likes.
    ends: dict[tuple[int, int], tuple[str, ...]] = {(len(one), len(other)): ()}
    for i in range(len(one), -1, -1):
        for j in range(len(other), -1, -1):
            a = one[i] if i < len(one) else None
            b = other[j] if j < len(other) else None
            found = ends.get((i, j))
            # A ** stands for no folder, or for one more of those that the other goes through.
            for folders, part, skip, take in (
                (a, b, (i + 1, j), (i, j + 1)),
                (b, a, (i, j + 1), (i + 1, j)),
            ):
                if found is None and folders == "**":
                    found = ends.get(skip)
                    if found is None and part is not None and part != "**" and take in ends:
                        name = _shared_name((_STAR,), _pieces(part))
                        found = None if name is None else (name, *ends[take])
            if a is not None and b is not None and "**" not in (a, b) and (i + 1, j + 1) in ends:
                name = _shared_name(_pieces(a), _pieces(b))
                found = None if name is None else (name, *ends[i + 1, j + 1])
            if found is not None:
                ends[i, j] = found
    return ends.get((0, 0))


def _shared_name(one: tuple[_Piece, ...], other: tuple[_Piece, ...]) -> str | None:
    """One name that both stand for."""
    ends: dict[tuple[int, int], str] = {(len(one), len(other)): ""}
    for i in range(len(one), -1, -1):
        for j in range(len(other), -1, -1):
            a = one[i] if i < len(one) else None
            b = other[j] if j < len(other) else None
            found = ends.get((i, j))
            for star, piece, skip, take in (
                (a, b, (i + 1, j), (i, j + 1)),
                (b, a, (i, j + 1), (i + 1, j)),
            ):
                if found is None and star is not None and star.fits is None:
                    found = ends.get(skip)
                    if found is None and piece is not None and piece.chars and take in ends:
                        found = piece.chars[0] + ends[take]
            if a is not None and b is not None and (i + 1, j + 1) in ends:
                char = _shared_char(a, b)
                found = found if char is None else char + ends[i + 1, j + 1]
            if found is not None:
                ends[i, j] = found
    found = ends.get((0, 0))
    if found == "":
        return FRESH if _STAR in one and _STAR in other else None
    return found


def _shared_char(one: _Piece, other: _Piece) -> str | None:
    """A character that both stand for; None for a ``*``, which is dealt with by itself."""
    if one.fits is None or other.fits is None:
        return None
    for char in one.chars + other.chars:
        if one.fits.match(char) and other.fits.match(char):
            return char
    return None


@lru_cache(maxsize=1_000)
def _pieces(part: str) -> tuple[_Piece, ...]:
    return tuple(_read_pieces(part))


def _read_pieces(part: str) -> Iterator[_Piece]:
    at = 0
    while at < len(part):
        char = part[at]
        if char == "*":
            yield _STAR
            at += 1
            continue
        end = at + 1
        if char == "\\":
            end += 1
        elif char == "[":
            end = _class_end(part, at)
        fits = re.compile(translate(part[at:end]), re.DOTALL)
        candidates = part[at:end] + _CANDIDATES if char in "[?\\" else char
        chars = dict.fromkeys(c for c in candidates if c != "/" and fits.fullmatch(c))
        if char == "?":
            chars = dict.fromkeys((FRESH, _OTHER))
        elif char == "[" and FRESH in chars:
            # Nearly everything fits: what stands in no pattern tells the most.
            chars = dict.fromkeys((FRESH, *chars))
        yield _Piece("".join(chars), fits)
        at = end


def _class_end(part: str, at: int) -> int:
    """The place behind a class, which is the first at which it can be understood."""
    for end in range(at + 2, len(part) + 1):
        if part[end - 1] == "]":
            try:
                translate(part[at:end])
            except WildcardError:
                continue
            return end
    raise WildcardError("the class [ is not closed", at)

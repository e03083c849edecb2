"""Names as rules compare them: as the most lenient system would read them.

Systems that ignore letter case, normalise, leave invisible characters out, cut dots and blanks
off the end or open streams take many spellings for one name.  Rules compare the `key`, which is the
same for all of them, on every system: a folder may be copied, shared or mounted elsewhere tomorrow.
Letters that only look alike stay different, as they are everywhere.  What cannot be told from a name
alone is read besides: what it is a copy of (`copied`), and which long name a short one may stand for
(`ShortNames`).
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, Final

from filepact.text.glob import literal_length
from filepact.text.pattern_set import split_pattern
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.text.pattern_set import PatternSet

__all__ = ["ShortNames", "are_plain", "copied", "is_plain", "is_short", "key", "looks_copied"]


@cache
def _ignorable() -> dict[int, None]:
    """Default ignorable code points that are not format characters, for `str.translate`.

    Joiners and fillers, variation selectors, and places that are reserved for more of them.
    """
    several = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0)
    ranges = ((0x180B, 0x1810), (0xFE00, 0xFE10), (0xFFF0, 0xFFF9), (0xE0000, 0xE1000))
    return dict.fromkeys(chain(several, *(range(*one) for one in ranges)))


@lru_cache(maxsize=65_536)
def key(part: str) -> str:
    """One part of a path as rules compare it; the key of a key is the key."""
    plain = part.lower() if part.isascii() else _folded(part)
    head, colon, _stream = plain.partition(":")
    if colon and head:
        plain = head
    return plain.rstrip(". ") or plain


def is_plain(part: str) -> bool:
    """Whether the key of a part is the part in lower case, which is quicker to make."""
    return part.isascii() and part[-1:] not in ". " and ":" not in part


def are_plain(parts: str) -> bool:
    """Whether `is_plain` holds for all parts, joined by slashes."""
    return is_plain(parts) and "./" not in parts and " /" not in parts and "//" not in parts


def _folded(part: str) -> str:
    # What is left out may stand between two characters that belong together, and some
    # compatibility characters become such ones.
    folded = _visible(unicodedata.normalize("NFKC", _visible(part)).casefold())
    return unicodedata.normalize("NFKC", folded)


def _visible(text: str) -> str:
    return "".join(c for c in text.translate(_ignorable()) if unicodedata.category(c) != "Cf")


# -- copies ---------------------------------------------------------------------------------
#
# What editors, systems and people call copies of a file: backups, swap files, numbered ones.  A copy of
# a file with a password in it has the password in it.


_WORDS: Final = "bak|backup|bck|bkp|old|orig|original|prev|previous|sav|save|saved|copy|tmp|temp"
_STAMP: Final = r"\d{1,4}|\d{4}-?\d\d-?\d\d(?:[t_.-]?[\d:-]{4,8})?"
_COPY: Final = late_regex(
    # Emacs saves and locks; vim's swap files
    r"#(?P<hash>[^/]+)#|\.#(?P<lock>[^/]+)|\.(?P<swap>[^/]+)\.sw[a-p]"
    # x~, x.~1~, x.bak, x.bak2, x-old, x.old.1, x.orig~
    rf"|(?P<end>[^/]+?)(?:\.?~\d*~?|[._-](?:{_WORDS})[._-]?(?:{_STAMP})?|[._](?:{_STAMP}))"
    # what people and desktops make: x copy.json, x - copy 2, x (1).json, copy of x
    r"|(?P<stem>[^/]+?)(?: (?:- )?copy(?: \d+)?| \(\d+\))(?P<ending>\.[^/.]*)?|copy of (?P<of>[^/]+)"
)
_MARKS: Final = late_regex(rf"~|#|\.sw[a-p]|copy|\(\d|[._-](?:{_WORDS}|\d{{1,4}})")
_ROUNDS: Final = 3


def looks_copied(names: str) -> bool:
    """Whether one of some names, joined by slashes, may be that of a copy; quick."""
    return _MARKS.search(names) is not None


@lru_cache(maxsize=65_536)
def copied(name: str) -> str:
    """The name of what a copy was made of, as far as its own tells; the same for any other.

    Args:
        name: One part of a path, as its `key`.
    """
    for _ in range(_ROUNDS):
        found = _COPY.fullmatch(name) if looks_copied(name) else None
        if found is None:
            break
        parts = found.groupdict("")
        name = "".join(
            parts[one] for one in ("hash", "lock", "swap", "end", "stem", "ending", "of")
        )
    return name


# -- short names ----------------------------------------------------------------------------
#
# ``secret~1.yam`` may stand for ``secrets.yaml``.  Some file systems give every long name a second one of
# eight and three characters, and open the file under either: no dots in front, no blanks, at most six
# characters, ``~`` and a number, three characters of the ending.  Where many names begin alike only two
# characters are left of the name, with four hexadecimal digits behind them.  A short name does not tell
# which long one it stands for, so rules are asked about every name of theirs for which it may.


_SHORT: Final = late_regex(r"([^.]{1,6})~(\d{1,6})(?:\.([^.~]{1,3}))?")
_LONGEST: Final = 8
_STEM: Final = 6
_DIGEST: Final = late_regex(r"..[0-9a-f]{4}")
_CHANGED: Final = str.maketrans("+,;=[]", "______", " .")
_MOST_PATHS: Final = 2_000


def is_short(name: str) -> bool:
    """Whether a keyed name has the shape of a short name."""
    found = _SHORT.fullmatch(name) if "~" in name else None
    return found is not None and len(found[1]) + 1 + len(found[2]) <= _LONGEST


class ShortNames:
    """The names in lists of patterns, looked up by short names.

    Args:
        lists: Gitignore patterns over keyed names; what takes back counts for nothing.
    """

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._lists = tuple(lists)
        self._sorted: dict[tuple[str | None, str], list[str]] | None = None

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
        """The long names that the patterns cover, of a short name; none for any other name."""
        if not is_short(name):
            return frozenset()
        if self._sorted is None:
            self._sorted = _indexed(self._lists)
        stem, _, rest = name.rpartition("~")
        number, _, ending = rest.partition(".")
        kept = min(_STEM, _LONGEST - 1 - len(number))
        found = {
            _long_name(part, stem, kept, ending)
            for place in product((ending, None), (stem[0], ""))
            for part in self._sorted.get(place, ())
        }
        return frozenset(long for long in found if long is not None)


def _indexed(lists: Iterable[Iterable[str]]) -> dict[tuple[str | None, str], list[str]]:
    """The parts of all patterns by the ending, None for any, and the first character, empty for any, of short names."""
    split = (split_pattern(pattern) for patterns in lists for pattern in patterns)
    parts = {part for negated, parts in split if not negated for part in parts if part != "**"}
    found: dict[tuple[str | None, str], list[str]] = {}
    for part in parts:
        if literal_length(part) == len(part):
            base, ending = _split(part)
            found.setdefault((ending[:3], base[:1]), []).append(part)
        elif _one_ending(part):
            found.setdefault((part[2:5], ""), []).append(part)
        elif literal_length(part) == len(part) - 1 and part.endswith("*"):
            start = part[:-1].lstrip(".").translate(_CHANGED)[:1]
            found.setdefault((None, start), []).append(part)
    return found


def _one_ending(part: str) -> bool:
    return (
        part.startswith("*.") and part.count(".") == 1 and literal_length(part[1:]) == len(part) - 1
    )


def _long_name(part: str, stem: str, kept: int, ending: str) -> str | None:
    """The long name of a short one that a part of a pattern covers; None when there is none.

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

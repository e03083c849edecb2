"""A name as rules compare it: what the most lenient system would take it for.

Systems that ignore letter case, normalise, leave invisible characters out, cut dots and blanks
off the end or open streams take many spellings for one name.  Rules compare the
:func:`key`, which is the same for all of them, on every system: a folder may be copied, shared or
mounted elsewhere tomorrow.  Letters that only look alike stay different, as they are everywhere.
Short names cannot be told from the name alone; :mod:`filepact.domain.short_names` reads them.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import chain
from typing import Final

__all__ = ["are_plain", "is_plain", "key"]

_IGNORABLE: Final = dict.fromkeys(
    chain(
        # Default ignorable code points that are not format characters: joiners and fillers,
        # variation selectors, and places that are reserved for more of them.
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xFFF0, 0xFFF9),
        range(0xE0000, 0xE1000),
    )
)


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
    """The same about all of many parts, joined by slashes."""
    return is_plain(parts) and "./" not in parts and " /" not in parts and "//" not in parts


def _folded(part: str) -> str:
    # What is left out may stand between two characters that belong together, and some
    # compatibility characters become such ones.
    folded = _visible(unicodedata.normalize("NFKC", _visible(part)).casefold())
    return unicodedata.normalize("NFKC", folded)


def _visible(text: str) -> str:
    return "".join(c for c in text.translate(_IGNORABLE) if unicodedata.category(c) != "Cf")

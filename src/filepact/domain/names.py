"""A name as rules compare it: what the most lenient system would take it for."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["is_plain", "key"]

_SHORT_NAME = re.compile(r"git~\d+")


@lru_cache(maxsize=65_536)
def key(part: str) -> str:
    """One part of a path as rules compare it."""
    if part.isascii():
        plain = part.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", part).casefold())
        plain = "".join(c for c in folded if not _ignorable(c))
    head, colon, _stream = plain.partition(":")
    if colon and head:
        plain = head
    plain = plain.rstrip(". ") or plain
    return ".git" if _SHORT_NAME.fullmatch(plain) else plain


def is_plain(part: str) -> bool:
    """Whether the key of a part is the part in lower case, which is quicker to make."""
    return part.isascii() and part[-1:] not in ". " and ":" not in part and "~" not in part


def _ignorable(char: str) -> bool:
    """Format and variation characters, which some file systems leave out of comparisons."""
    return unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f" or char == "\u034f"

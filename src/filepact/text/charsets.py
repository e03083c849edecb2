"""Which encodings count as such, by whatever name somebody uses for them.

A list of those that are wanted, not of those that are not: Python also calls transformations
like base64 or escapes codecs, has some that read what they cannot write, and takes new names from
any module that is installed.  Missing on purpose are UTF-7, HZ and ISO-2022-KR, whose same text
has many forms, encodings that read two bytes as one character, and EBCDIC, whose lines end in
other characters than those that editors count.
"""

from __future__ import annotations

import codecs
import re
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache
from typing import Final

__all__ = [
    "STATEFUL",
    "UNIT",
    "WIDER",
    "find_charset",
    "is_faithful",
    "is_misleading",
    "is_stable",
]

UNIT: Final = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
"""Bytes of a unit of the encodings that are no extension of ASCII."""

_UNICODE = (
    "utf_8", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le",
)  # fmt: skip

# One byte, one character, and no two bytes the same one; the first 128 are ASCII.
_SINGLE = (
    "ascii", "cp1125", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "cp1258", "cp437", "cp720", "cp737", "cp775", "cp850", "cp852", "cp855", "cp856",
    "cp857", "cp858", "cp860", "cp861", "cp862", "cp863", "cp865", "cp866", "cp869", "cp874",
    "hp_roman8", "iso8859_1", "iso8859_10", "iso8859_11", "iso8859_13", "iso8859_14",
    "iso8859_15", "iso8859_16", "iso8859_2", "iso8859_3", "iso8859_4", "iso8859_5", "iso8859_6",
    "iso8859_7", "iso8859_8", "iso8859_9", "koi8_r", "koi8_t", "koi8_u", "kz1048", "latin_1",
    "mac_croatian", "mac_cyrillic", "mac_greek", "mac_iceland", "mac_latin2", "mac_roman",
    "mac_romanian", "mac_turkish", "palmos", "ptcp154", "tis_620",
)  # fmt: skip

# Several bytes a character, none of them a line end.
_MULTIPLE = (
    "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213", "euc_jp",
    "euc_kr", "gb18030", "gb2312", "gbk", "johab", "shift_jis", "shift_jis_2004",
    "shift_jisx0213",
)  # fmt: skip

_STATEFUL = (
    "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3",
    "iso2022_jp_ext",
)  # fmt: skip

STATEFUL: Final = frozenset(_STATEFUL)
"""Encodings in which a byte means one thing or another after an escape sequence."""

WIDER: Final = {
    "gb2312": ("gb18030",),
    "gbk": ("gb18030",),
    "shift_jis": ("cp932",),
    "euc_kr": ("cp949",),
    "big5": ("cp950", "big5hkscs"),
}
"""What is really written under an old name: the same table with more characters in it."""

# Those of them in which no byte of a letter is one of ASCII.
_HIGH = frozenset(
    codecs.lookup(name).name
    for name in ("euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb2312")
)

# Python reads source in them, and what it reads is not what anybody sees.
_MISLEADING = frozenset(
    {
        *("hz", "idna", "iso2022_kr", "punycode", "raw_unicode_escape", "unicode_escape", "utf_7"),
        *("cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500", "cp864", "cp875"),
    }
)

_KNOWN = frozenset((*_UNICODE, *_SINGLE, *_MULTIPLE, *_STATEFUL))
_UNSTABLE = frozenset((*_MULTIPLE, *_STATEFUL))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.: -]{0,39}")
# What editors and browsers put around a name.
_AROUND = re.compile(r"^(?:x-|8bit-|2byte-)|-(?:unix|dos|mac)$", re.IGNORECASE)
# Names that Python does not know.
_FURTHER = {
    "iso_8859_8_i": "iso8859_8",
    "iso_latin_1": "latin_1",
    "windows_31j": "cp932",
    "windows_874": "cp874",
    "utf_8_bom": "utf_8_sig",
    "utf16be": "utf_16_be",
    "utf16le": "utf_16_le",
}


@lru_cache(maxsize=256)
def find_charset(name: str) -> str | None:
    """Python's name of an encoding, such as ``iso8859-1`` for ``Latin1``; None for any other word.

    The names without a byte order, ``utf-16`` and ``utf-32``, are returned as such.
    """
    if not _NAME.fullmatch(name):
        return None
    for word in (name, _AROUND.sub("", name)):
        plain = normalize_encoding(word).lower().replace(".", "_")
        module = _FURTHER.get(plain) or aliases.get(plain, plain)
        if module in _KNOWN:
            return codecs.lookup(module).name
    return None


def is_misleading(name: str) -> bool:
    """Whether a name is of an encoding that makes other text of ASCII than stands there."""
    plain = normalize_encoding(name).lower().replace(".", "_")
    return aliases.get(plain, plain) in _MISLEADING


def is_faithful(codec: str) -> bool:
    """Whether every byte that looks like ASCII is ASCII in an encoding.

    Args:
        codec: Python's name, from :func:`find_charset`.
    """
    return codec not in UNIT and (codec not in _UNSTABLE or codec in _HIGH)


def is_stable(codec: str) -> bool:
    """Whether every text in an encoding has one form in bytes only, so that it can be written whole.

    Args:
        codec: Python's name, from :func:`find_charset`.
    """
    return codec not in _UNSTABLE

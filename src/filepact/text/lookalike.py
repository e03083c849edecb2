"""Letters that a reader takes for ASCII letters, and names that are taken for others."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TWIN_SIGNS", "UNSEEN", "find_look_alikes", "resembles"]

# Letters, marks and blanks by category, and yet nothing is seen where they stand.
UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for codes in (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
    for code in codes
}
"""Characters that leave no trace on a screen though their category says otherwise."""

TWIN_SIGNS: Final = frozenset("\u037e\u1fef\u2010\u2024\u2212\u2215\u2236\u29f8\ua789\u01c3")
"""Signs that most fonts draw like ``; ` - . / : !`` of ASCII."""

# Letters of other scripts that most fonts draw like letters of ASCII.
_TWINS: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0501\u04bb\u051b\u051d\u04cf"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0405\u0406\u0408\u050c"
    "\u03bf\u03bd\u03c1\u03b9\u03ba\u03c5\u03c7"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0585\u057d\u0570\u0578\u0581\u13a0\u13a1\u13a2\u13aa\u13b3\u13b7\u13bb\u13c0\u13c2\u13c3",
    "aeopcyxsijdhqwl"
    "ABEKMHOPCTXYSIJG"
    "ovpikux"
    "ABEZHIKMNOPTYX"
    "ouhngDRTAWMHGHZ",
)  # fmt: skip
_SCRIPTS: Final = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
# Fullwidth and mathematical letters, which are those of ASCII in another dress.
_DRESSED: Final = re.compile("[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]")
_TWIN: Final = re.compile(f"[{''.join(map(chr, _TWINS))}]|{_DRESSED.pattern}")
_WORD: Final = re.compile(r"[^\W\d_]+")


def find_look_alikes(text: str) -> list[tuple[int, int]]:
    """Words in which letters of another script pass for those of ASCII, by their offsets.

    They mix both, or consist of nothing but such letters in a line that has no other letter of
    their script.
    """
    if text.isascii() or not _TWIN.search(text):
        return []
    found: list[tuple[int, int]] = []
    at = 0
    for line in text.split("\n"):
        if not line.isascii():
            found += [(at + start, at + end) for start, end in _in_line(line)]
        at += len(line) + 1
    return found


def _in_line(line: str) -> list[tuple[int, int]]:
    at_home: set[str] | None = None
    found: list[tuple[int, int]] = []
    for word in _WORD.finditer(line):
        letters = word[0]
        if letters.isascii():
            continue
        plain = letters.translate(_TWINS)
        twins = [letter for letter, other in zip(letters, plain, strict=True) if letter != other]
        mixed = any(letter.isascii() for letter in letters)
        if mixed and (twins or _DRESSED.search(letters)):
            found.append(word.span())
        elif len(letters) > 1 and len(twins) == len(letters):
            at_home = _scripts(line) if at_home is None else at_home
            if not any(script in unicodedata.name(letters[0], "") for script in at_home):
                found.append(word.span())
    return found


def _scripts(line: str) -> set[str]:
    """The scripts of which a line has letters that look like none of ASCII."""
    others = {char for char in line if char > "\x7f" and char.translate(_TWINS) == char}
    names = [unicodedata.name(char, "") for char in others]
    return {script for script in _SCRIPTS if any(script in name for name in names)}


def resembles(name: str, others: Iterable[str]) -> str:
    """The name beside a new one that a reader would take it for; empty when there is none."""
    if name.isascii():
        return ""
    plain = _plain_form(name)
    return next((other for other in others if other != name and _plain_form(other) == plain), "")


def _plain_form(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).translate(_TWINS)
    return "".join(
        char for char in folded if unicodedata.category(char) != "Cf" and char not in UNSEEN
    )

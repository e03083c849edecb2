"""Characters that a reader does not see, or takes for others, and how they are made visible.

There are two questions.  What a person is shown has to show everything: :func:`visible`.  Whether
a change puts in something that looks like a trick is asked more narrowly, because texts in many
languages, emoji and formulas need joiners, marks and letters of several scripts:
:func:`adds_hidden`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from filepact.text.ends import middle_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["adds_hidden", "find_look_alikes", "resembles", "visible"]

# Letters, marks and blanks by category, and yet nothing is seen where they stand.
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for codes in (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
    for code in codes
}

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

# What no text in any language needs: controls, orders about direction, tags outside of a flag,
# fillers, and characters without a width of which the neighbours make no use.
_ALWAYS: Final = (
    "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"
    "\u061c\u202a-\u202e\u2066-\u2069"
    "\u034f\u115f\u1160\u17b4\u17b5\u180e\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\uffa0\ufff0-\ufff8\ud800-\udfff"
    "\U000e0000-\U000e001f\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_JOINERS: Final = "\u200b-\u200d\ufeff\ufe00-\ufe0e\U000e0100-\U000e01ef"
_TAGS: Final = "\U000e0020-\U000e007f"
_ANY: Final = re.compile(f"[{_ALWAYS}{_JOINERS}{_TAGS}\r\ufe0f]")
_TRICKS: Final = re.compile(
    f"[{_ALWAYS}]"
    r"|\r(?!\n|\Z)"
    rf"|(?<![^\s\x21-\x7e])[{_JOINERS}]"
    r"|(?<=[a-zA-Z])\ufe0f"
    rf"|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]"
)
_PLAIN: Final = re.compile(r"[\t\n\f\x20-\x7e]*(?:\r\n[\t\n\f\x20-\x7e]*)*\Z")


def visible(text: str) -> str:
    r"""The text with every character that is hidden, obeyed or taken for another written out.

    Line ends and tabs stay.  What is written out has the form ``\u202e``.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    twins = {place for start, end in find_look_alikes(text) for place in range(start, end)}
    return "".join(
        char
        if char in "\n\t"
        or (char.isprintable() and char not in _UNSEEN and not (char > "\x7f" and place in twins))
        else _written_out(char)
        for place, char in enumerate(text)
    )


def _written_out(char: str) -> str:
    return char.encode("unicode_escape", errors="backslashreplace").decode("ascii")


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


def adds_hidden(before: str, after: str) -> str:
    """The first character that a change puts in though no honest text needs it there.

    Args:
        before: The text as it was.
        after: The text as it is to be.

    Returns:
        What it is, such as ``U+202E RIGHT-TO-LEFT OVERRIDE``; empty when there is none.
    """
    if _PLAIN.match(after):
        return ""
    # Lines that both have are not looked at: a change of a long text is short.
    middle = middle_of(before, after)
    tricks = _tricks(middle.new)
    if not tricks:
        return ""
    tricks.subtract(_tricks(middle.old))
    return next((_described(char) for char, count in tricks.items() if count > 0), "")


def _tricks(text: str) -> Counter[str]:
    text = text.removeprefix("\ufeff")  # A byte-order mark at the start hides nothing.
    tricks: Counter[str] = Counter()
    if _ANY.search(text):
        # In a text without LF the lines end in CR.
        lines = text if "\n" in text else text.replace("\r", "\n")
        tricks.update(found[0] for found in _TRICKS.finditer(lines))
    tricks.update(text[start:end] for start, end in find_look_alikes(text))
    return tricks


def _described(what: str) -> str:
    if len(what) > 1:
        letter = next(char for char in what if char > "\x7f")
        return (
            f"U+{ord(letter):04X} {unicodedata.name(letter, 'LETTER')} in a word of other letters"
        )
    name = unicodedata.name(what, "CONTROL CHARACTER")
    return f"U+{ord(what):04X} {name}"


def resembles(name: str, others: Iterable[str]) -> str:
    """The name beside a new one that a reader would take it for; empty when there is none."""
    if name.isascii():
        return ""
    plain = _plain_form(name)
    return next((other for other in others if other != name and _plain_form(other) == plain), "")


def _plain_form(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).translate(_TWINS)
    return "".join(
        char for char in folded if unicodedata.category(char) != "Cf" and char not in _UNSEEN
    )

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
from typing import Final

from filepact.text.ends import middle_of
from filepact.text.lookalike import UNSEEN, find_look_alikes

__all__ = ["adds_hidden", "visible"]

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
        or (char.isprintable() and char not in UNSEEN and not (char > "\x7f" and place in twins))
        else _written_out(char)
        for place, char in enumerate(text)
    )


def _written_out(char: str) -> str:
    return char.encode("unicode_escape", errors="backslashreplace").decode("ascii")


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
    # In a file whose lines end in CR it is a line end.
    ends = "\r" if "\r" in before and "\n" not in before else ""
    tricks = _tricks(middle.new, ends)
    if not tricks:
        return ""
    tricks.subtract(_tricks(middle.old, ends))
    return next((_described(char) for char, count in tricks.items() if count > 0), "")


def _tricks(text: str, ends: str) -> Counter[str]:
    text = text.removeprefix("\ufeff")  # A byte-order mark at the start hides nothing.
    tricks: Counter[str] = Counter()
    if _ANY.search(text):
        tricks.update(found[0] for found in _TRICKS.finditer(text) if found[0] != ends)
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

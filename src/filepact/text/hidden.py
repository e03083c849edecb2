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
from filepact.text.lookalike import TWIN_SIGNS, UNSEEN, find_look_alikes

__all__ = ["adds_hidden", "readable", "visible"]

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
_PUSHED: Final = re.compile(r"(?<![ \t])(?:[ ]{200}|\t{40})[ \t]*(?=[^ \t\r\n])")
"""More blanks than any window is wide, and something behind them."""

_LONG_BLANKS: Final = (" " * 200, "\t" * 40)
_WAITING_SIGNS: Final = re.compile(
    r"(?<![\u0370-\u03ff\u1f00-\u1fff])[\u037e\u1fef]|[\u2024\ua789]"
)

_HUNK: Final = re.compile(r"^(?=@@ )", re.MULTILINE)
# Every line of a file ends so; what else stands in a hunk, and the header after it, does not.
_CRLF: Final = re.compile(
    r"(?:[+\- ](?!\+\+ |-- )[^\n]*\r\n|(?:--- |\+\+\+ |[@\\a-zA-Z])[^\n]*\n)*"
)
_PLAIN: Final = re.compile(r"[\t\n\f\x20-\x7e]*(?:\r\n[\t\n\f\x20-\x7e]*)*\Z")


def visible(text: str) -> str:
    r"""The text with every character that is hidden, obeyed or taken for another written out.

    Line ends and tabs stay.  What is written out has the form ``\u202e``.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    table = {
        ord(char): _written_out(char)
        for char in set(text) - {"\n", "\t"}
        if not char.isprintable() or char in UNSEEN or char in TWIN_SIGNS
    }
    parts: list[str] = []
    done = 0
    for start, end in find_look_alikes(text):
        twins = (char if char <= "\x7f" else _written_out(char) for char in text[start:end])
        parts += (text[done:start].translate(table), *twins)
        done = end
    return "".join((*parts, text[done:].translate(table)))


def readable(diff: str) -> str:
    """A diff as every person is shown one who decides: whole, with nothing hidden in it.

    A carriage return at the end of each line of a hunk is noise and stays; at the end of some it is
    written out, and so are blanks that push what follows out of sight.
    """
    if "\r\n" not in diff:
        return _uncovered(diff)
    return "".join(
        "\r\n".join(map(_uncovered, hunk.split("\r\n")))
        if _CRLF.fullmatch(hunk)
        else _uncovered(hunk)
        for hunk in _HUNK.split(diff)
    )


def _uncovered(text: str) -> str:
    return _PUSHED.sub(lambda found: f"[{len(found[0]):,} blanks]", visible(text))


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
    pushed = any(blanks in after for blanks in _LONG_BLANKS)
    if not pushed and _PLAIN.match(after):
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
    tricks.update(_WAITING_SIGNS.findall(text))
    tricks.update("  " for _ in _PUSHED.finditer(text))
    return tricks


def _described(what: str) -> str:
    if what == "  ":
        return "blanks that push what follows out of sight"
    if len(what) > 1:
        letter = next(char for char in what if char > "\x7f")
        return (
            f"U+{ord(letter):04X} {unicodedata.name(letter, 'LETTER')} in a word of other letters"
        )
    name = unicodedata.name(what, "CONTROL CHARACTER")
    return f"U+{ord(what):04X} {name}"

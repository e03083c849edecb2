"""In what two similar lines differ, in words and made visible."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.text.ends import common_head

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Contrast",
    "anchor",
    "contrast_lines",
    "contrast_part",
    "excerpt",
    "fold",
    "squeeze",
    "words_of",
]

_LONGEST_SHOWN = 160
_SHOWN_BEFORE = 60
_LONGEST_LINE = 2_000
_WORD = re.compile(r"\w{3,}")

_PLAIN = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000",
    "...": "\u2026",
    "": "\u00ad\u200b\u200c\u200d\u2060\ufeff",
}
_TYPOGRAPHY = str.maketrans({odd: plain for plain, odds in _PLAIN.items() for odd in odds})
_VISIBLE = str.maketrans({" ": "\u00b7", "\t": "\u2192"})
_INNER_BLANKS = re.compile(r"(?<=[^ \t])[ \t]+(?=[^ \t])")


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two lines that differ.

    Attributes:
        what: What differs, as a part of a sentence.
        sent: The line that was sent, cut around the difference, blanks visible if they matter.
        there: The file's line, in the same way.
    """

    what: str
    sent: str
    there: str


def fold(text: str) -> str:
    """A text without letter case and typography: quotes, dashes and blanks as on a keyboard.

    It has as many lines as before, but a line may have more or fewer characters.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text.translate(_TYPOGRAPHY)).casefold()


def squeeze(text: str) -> str:
    """A text without the blanks and tabs in its lines."""
    return text.replace(" ", "").replace("\t", "")


def excerpt(line: str, at: int = 0) -> str:
    """What is shown of a line: all, or of a long one the part around an offset."""
    if len(line) <= _LONGEST_SHOWN:
        return line
    start = max(min(at - _SHOWN_BEFORE, len(line) - _LONGEST_SHOWN), 0)
    end = start + _LONGEST_SHOWN
    return ("\u2026" if start else "") + line[start:end] + ("\u2026" if end < len(line) else "")


def contrast_part(sent: str, line: str, first: int, last: int) -> Contrast:
    """Contrast what was sent with a part of a line, given in folded characters but blanks."""
    start = _offset(line, first)
    end = start + _offset(line[start:], last - first)
    # Blanks around it belong to the comparison as far as some were sent.
    if sent[:1].isspace():
        start = len(line[:start].rstrip())
    if not sent[-1:].isspace():
        end = start + len(line[start:end].rstrip())
    return contrast_lines(sent, line[start:end], column=start + 1)


def contrast_lines(sent: str, there: str, *, column: int = 1) -> Contrast:
    """Contrast a line that was sent with the file's, of a long one only what matters.

    Args:
        sent: The line that was sent, without its end.
        there: The file's line or the part of it that is compared.
        column: 1-based column of the file at which ``there`` starts.
    """
    if len(there) > max(_LONGEST_LINE, 2 * len(sent)):
        folded = fold(sent[:_LONGEST_LINE])
        start = anchor(fold(there), folded, words_of(folded))
        there = there[start : start + len(sent)]
        column += start
    if max(len(sent), len(there)) > _LONGEST_LINE:
        start = max(common_head(sent, there) - _SHOWN_BEFORE, 0)
        sent, there = sent[start : start + _LONGEST_LINE], there[start : start + _LONGEST_LINE]
        column += start
    return _contrast(sent, there, column)


def words_of(line: str) -> list[str]:
    """Its longest words, at most ten."""
    return sorted(set(_WORD.findall(line)), key=lambda word: (-len(word), word))[:10]


def anchor(line: str, target: str, words: list[str]) -> int:
    """Where in a long line something like the target may start: where a piece of it stands."""
    for size in (96, 48, 24, 12):
        for at in range(0, max(len(target) - size, 0) + 1, max(len(target) // 6, 1)):
            found = line.find(target[at : at + size])
            if found != -1:
                return max(found - at, 0)
    word = next((word for word in words if word in line), "")
    return max(line.find(word) - target.find(word), 0)


def _offset(line: str, count: int) -> int:
    """The last offset before which there are so many folded characters that are not blank."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        size = len(squeeze(fold(line[low:middle])))
        if size <= count:
            low = middle
            count -= size
        else:
            high = middle - 1
    return low


def _contrast(sent: str, there: str, column: int) -> Contrast:
    differing = [
        describe(sent, there)
        for kind, (_, describe) in _KINDS.items()
        if _plain(sent, without=kind) != _plain(there, without=kind)
    ]
    blanks = sent.translate(_TYPOGRAPHY) != there.translate(_TYPOGRAPHY)
    if sent.strip() == there.strip() == "":
        differing = ["blanks on a line that is otherwise empty"]
    elif not sent.strip():
        differing = ["a blank line was sent that the file does not have there"]
    elif not there.strip():
        differing = ["the file has a blank line there that was not sent"]
    elif _plain(sent) != _plain(there):
        if squeeze(fold(sent)) == squeeze(fold(there)):
            differing = ["blanks between words or signs"]
        else:
            blanks = _indentation(sent) != _indentation(there)
            first = common_head(sent.lstrip(), there.lstrip()) + len(_indentation(there))
            differing = [f"the text from column {column + first} on"]
            differing += [_say_indentation(sent, there)] if blanks else []
    at = common_head(sent, there)
    sent, there = excerpt(sent, at), excerpt(there, at)
    if blanks:
        sent, there = sent.translate(_VISIBLE), there.translate(_VISIBLE)
    return Contrast("; ".join(differing) or "nothing that can be seen", sent, there)


def _plain(line: str, *, without: str = "") -> str:
    """A line with every kind of difference taken out but one."""
    for kind, (take_out, _) in _KINDS.items():
        if kind != without:
            line = take_out(line)
    return line


def _say_typography(sent: str, there: str) -> str:
    for ours, theirs in zip(sent, there, strict=False):
        if ours != theirs and (not ours.isascii() or not theirs.isascii()):
            return f"the file has {_named(theirs)} where {_named(ours)} was sent"
    return "typographic or invisible characters"


def _say_indentation(sent: str, there: str) -> str:
    ours, theirs = _indentation(sent), _indentation(there)
    if "\t" in theirs and "\t" not in ours:
        return "the file is indented with tabs, blanks were sent"
    if "\t" in ours and "\t" not in theirs:
        return "the file is indented with blanks, tabs were sent"
    unit = "tab" if "\t" in theirs else "blank"
    plural = "" if len(theirs) == 1 else "s"
    return f"the file is indented by {len(theirs)} {unit}{plural}, not by {len(ours)}"


def _say_inner(sent: str, there: str) -> str:
    ours, theirs = "\t" in sent.strip(), "\t" in there.strip()
    if ours == theirs:
        return "the number of blanks within the line"
    kinds = ("tabs", "blanks") if theirs else ("blanks", "tabs")
    return f"the file has {kinds[0]} within the line where {kinds[1]} were sent"


def _say_trailing(sent: str, there: str) -> str:
    if len(there) - len(there.rstrip()) > len(sent) - len(sent.rstrip()):
        return "the file has blanks at the end of the line"
    return "blanks at the end of the line were sent that the file does not have"


_KINDS: dict[str, tuple[Callable[[str], str], Callable[[str, str], str]]] = {
    "typography": (lambda line: line.translate(_TYPOGRAPHY), _say_typography),
    "form": (
        lambda line: unicodedata.normalize("NFC", line),
        lambda _sent, _there: "accents are composed differently (Unicode normal form)",
    ),
    "case": (str.casefold, lambda _sent, _there: "letter case"),
    "indentation": (lambda line: line.lstrip(" \t"), _say_indentation),
    "inner": (lambda line: _INNER_BLANKS.sub(" ", line), _say_inner),
    "trailing": (lambda line: line.rstrip(" \t"), _say_trailing),
}


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _named(char: str) -> str:
    shown = f"{char} " if char.isprintable() and not char.isspace() else ""
    return f"{shown}U+{ord(char):04X} {unicodedata.name(char, 'UNNAMED CHARACTER')}"

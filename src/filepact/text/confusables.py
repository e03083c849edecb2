"""Characters, names and bytes that are not what they seem, and how they are made visible.

What a person is shown has to show everything: `visible`, `readable`, `shown_name`,
`with_bytes_shown`.  Whether a change puts in something that looks like a trick is asked more narrowly,
because texts in many languages, emoji and formulas need joiners, marks and letters of several scripts:
`adds_hidden`, `resembles`, `trips_programs`, `disguises`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from filepact.text.detect_encoding import (
    STATEFUL,
    UNIT,
    WIDER,
    heeded,
    is_faithful,
    misleading,
    names_encoding,
)
from filepact.text.lines import common_head, common_tail, middle_of
from filepact.text.raw_bytes import escaped
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact.text.codec import SourceText

__all__ = [
    "MAX_WIDTH",
    "adds_hidden",
    "disguises",
    "encoding_named",
    "find_look_alikes",
    "folded_name",
    "meanings",
    "name_in_escapes",
    "readable",
    "resembles",
    "shown_line",
    "shown_name",
    "trips_programs",
    "visible",
    "with_bytes_shown",
    "without_escapes",
]

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
_ANY: Final = late_regex(f"[{_ALWAYS}{_JOINERS}{_TAGS}\r\ufe0f]")
_TRICKS: Final = late_regex(
    f"[{_ALWAYS}]"
    r"|\r(?!\n|\Z)"
    rf"|(?<![^\s\x21-\x7e])[{_JOINERS}]"
    r"|(?<=[a-zA-Z])\ufe0f"
    rf"|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]"
)
_PUSHED: Final = late_regex(r"(?<![ \t])(?:[ ]{200}|\t{40})[ \t]*(?=[^ \t\r\n])")
"""More blanks than any window is wide, and something behind them."""

_LONG_BLANKS: Final = (" " * 200, "\t" * 40)
_WAITING_SIGNS: Final = late_regex(
    r"(?<![\u0370-\u03ff\u1f00-\u1fff])[\u037e\u1fef]|[\u2024\ua789]"
)

_HUNK: Final = late_regex(r"^(?=@@ )", re.MULTILINE)
# Every line of a file ends so; what else stands in a hunk, and the header after it, does not.
_CRLF: Final = late_regex(
    r"(?:[+\- ](?!\+\+ |-- )[^\n]*\r\n|(?:--- |\+\+\+ |[@\\a-zA-Z])[^\n]*\n)*"
)
_PLAIN: Final = late_regex(r"[\t\n\f\x20-\x7e]*(?:\r\n[\t\n\f\x20-\x7e]*)*\Z")


def visible(text: str) -> str:
    r"""The text with every character that is hidden, obeyed or taken for another written out.

    Line ends and tabs stay.  What is written out has the form ``\u202e``.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    table = {
        ord(char): _written_out(char)
        for char in set(text) - {"\n", "\t"}
        if not char.isprintable() or char in _INVISIBLE or char in _TWIN_SIGNS
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
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"  # a byte that is no UTF-8
    return char.encode("unicode_escape", errors="backslashreplace").decode("ascii")


def adds_hidden(before: str, after: str) -> str:
    """The first character that a change puts in though no honest text needs it there.

    Args:
        before: The text as it was.
        after: The text as it is to be.

    Returns:
        What it is, such as ``U+202E RIGHT-TO-LEFT OVERRIDE``; empty when there is none.
    """
    # Lines that both have are not looked at: a change of a long text is short.
    head = common_head(before, after)
    end = after.find("\n", len(after) - common_tail(before[head:], after[head:]))
    near = after[after.rfind("\n", 0, head) + 1 : end + 1 or len(after)]
    if _PLAIN.match(near) and not any(blanks in near for blanks in _LONG_BLANKS):
        return ""
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


# -- letters and signs that look like those of ASCII ----------------------------------------


# Letters, marks and blanks by category, and yet nothing is seen where they stand.
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for codes in (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
    for code in codes
}
# Signs that most fonts draw like ``; ` - . / : !`` of ASCII.
_TWIN_SIGNS: Final = frozenset("\u037e\u1fef\u2010\u2024\u2212\u2215\u2236\u29f8\ua789\u01c3")
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
_DRESS: Final = "[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]"
_DRESSED: Final = late_regex(_DRESS)
_TWIN: Final = late_regex(f"[{''.join(map(chr, _TWINS))}]|{_DRESS}")
_WORD: Final = late_regex(r"[^\W\d_]+")


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
    """The first of other names that looks the same to a reader; empty when there is none."""
    if name.isascii() and " " not in name:
        return ""
    plain = _plain_form(name)
    return next((other for other in others if other != name and _plain_form(other) == plain), "")


def _plain_form(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).translate(_TWINS)
    return "".join(
        char for char in folded if unicodedata.category(char) != "Cf" and char not in _INVISIBLE
    )


# -- names and lines as they are shown ------------------------------------------------------


MAX_WIDTH: Final = 300
"""Most characters of a line that are shown around a match."""

# Control characters, line and paragraph separators, direction marks, and bytes that are no
# UTF-8.  Joiners stay: names of people and emoji are written with them.
_UNSEEN = late_regex(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def shown_name(name: str) -> str:
    """A name or path with control and direction characters written as escapes."""
    return name if name.isprintable() else _UNSEEN.sub(escaped, name)


_NO_NAME: Final = late_regex("[\0\ud800-\udc7f\udd00-\udfff]")
_ESCAPED: Final = late_regex(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})")


def meanings(shown: str) -> Iterator[str]:
    """The names that `shown_name` or `name_in_escapes` may have written so: with bytes that are no UTF-8 first."""
    for lowest in (0xDC00, 0):

        def char(found: re.Match[str], lowest: int = lowest) -> str:
            code = int(found[1] or found[2], 16)
            if 0x20 <= code < 0x7F:
                return found[0]  # Nobody writes an escape for these.
            return chr(code + lowest if found[1] and code >= 0x80 else code)

        name = _ESCAPED.sub(char, shown)
        if any("\ud800" <= one <= "\udbff" for one in name):
            # Two escapes stand for one character.
            name = name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        # No file has a NUL in its name, nor half of a character.
        if name != shown and not _NO_NAME.search(name):
            yield name


def folded_name(name: str) -> str:
    """A name without letter case, Unicode form, kinds of blanks, and what nobody sees."""
    if name.isascii():
        return name.casefold()
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(
        char
        for char in unicodedata.normalize("NFKC", folded)
        if char not in _INVISIBLE and unicodedata.category(char) != "Cf"
    )


def name_in_escapes(name: str, asked: str) -> str:
    """A name that is suggested: in escapes as JSON has them, where it cannot be told from another by looking at it.

    Args:
        name: The name.
        asked: The one that leads to nothing.
    """
    odd = any(
        char in _INVISIBLE or unicodedata.category(char) in ("Cf", "Zs")
        for char in name
        if char > "\x7f"
    )
    same = _plain_form(asked).endswith(_plain_form(name))
    if odd or same or unicodedata.normalize("NFC", name) != name:
        parts = (
            one if one.isascii() or "\ud800" <= one <= "\udfff" else json.dumps(one)[1:-1]
            for one in name
        )
        name = "".join(parts)
    return shown_name(name)


def without_escapes(name: str) -> str:
    """A name without the escapes that it may have been copied with; otherwise as it is."""
    return [name, *meanings(name)][-1] if "\\" in name else name


def shown_line(text: bytes, start: int, end: int, *, focus: int | None = None) -> str:
    """A line as it is shown: whole, or cut around a place when it is long.

    Args:
        text: The text.
        start: Offset of the line's first byte.
        end: Offset behind its last byte, without LF; a CR there is not shown.
        focus: Offset that must be seen; the line's beginning when None.
    """
    if end > start and text[end - 1] == 13:
        end -= 1
    if end - start <= MAX_WIDTH:
        return text[start:end].decode("utf-8", errors="surrogateescape")
    # Four bytes a character at most, so this window is always wide enough to cut from.
    place = start if focus is None else min(max(focus, start), end)
    first = max(start, place - 4 * MAX_WIDTH)
    before = text[first:place].decode("utf-8", errors="surrogateescape")
    behind = text[place : min(end, place + 4 * MAX_WIDTH)].decode("utf-8", errors="surrogateescape")
    if first == start and place + 4 * MAX_WIDTH >= end and len(before) + len(behind) <= MAX_WIDTH:
        return text[start:end].decode("utf-8", errors="surrogateescape")
    lead = before[-(MAX_WIDTH // 3) :]
    tail = behind[: MAX_WIDTH - len(lead)]
    left = "..." if first > start or len(lead) < len(before) else ""
    return f"{left}{lead}{tail}... [line of {end - start:,} bytes, cut]"


# -- names that trip programs -----------------------------------------------------------------
#
# ``rm -rf *`` beside a file called ``-rf``, a folder called ``~``, a name that a shell's expansion would
# run, names that Windows keeps for devices (Microsoft, "Naming Files, Paths, and Namespaces"): all of
# them are legal here.  Brackets, ``$``, ``&``, ``!`` and quotes alone are not among them, since
# frameworks and titles of documents have them.


_TRIPS: Final = late_regex(
    r"(?:^|/)(?:"
    # an option; a home folder; nothing that shows, or nothing but dots
    r"-|~(?:/|\Z)|[^/]*[*?<>|`]|\s*(?:/|\Z)|\.{3,}(?:/|\Z)"
    # what an expansion would run, or a blank that nobody sees
    r"|[^/]*\$[({]|\s|[^/]*\s(?:/|\Z)"
    # a device; with an ending it is an everyday name elsewhere
    r"|(?i:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:/|\Z)"
    r")"
)


def trips_programs(path: str) -> bool:
    """Whether a program would misread one part of a relative path."""
    return _TRIPS.search(path) is not None


# -- bytes that programs take for other signs ---------------------------------------------------
#
# Some encodings write a letter with bytes that are ASCII by themselves: in Shift-JIS the second byte of
# U+8868 is a backslash.  A program that takes the file for ASCII, as shells and compilers do, obeys
# that byte, and no view of the text shows it.


_ACTING: Final = frozenset("\\|`")
"""What joins lines, ends strings early, or starts another program."""


def encoding_named(source: SourceText | None) -> str:
    """The encoding that decides a file's bytes, for people; empty for plain UTF-8."""
    if source is None:
        return ""
    encoding = source.encoding
    if encoding.name == "utf-8" and encoding.known and not encoding.bom and not encoding.rival:
        return ""
    return encoding.traced if encoding.bom or _decides(source) else ""


def with_bytes_shown(source: SourceText) -> str:
    r"""The text, with the bytes behind each letter that a program may take for ASCII signs.

    They stand in brackets as such a program sees them: ``\x95`` and a backslash.
    """
    shown = {}
    for char, data in _signs(source).items():
        read = "".join(chr(byte) if byte < 0x80 else f"\\x{byte:02x}" for byte in data)
        shown[ord(char)] = f"{char}[{read}]"
    return source.text.translate(shown) if shown else source.text


def disguises(before: SourceText | None, after: SourceText) -> bool:
    """Whether after a change programs may read the bytes otherwise than people, and did not before.

    What the person's own settings or the caller say of a file is taken for known to them.

    Args:
        before: The file as it was; None for no file, or for one that held no text.
        after: The file as it is to be.
    """
    if after.data.isascii() and not names_encoding(after.data):
        return False
    word = misleading(after.data, after.name)
    if word and (before is None or misleading(before.data, before.name) != word):
        return True
    encoding = after.encoding
    if encoding.origin in ("settings", "caller") or not encoding.known or encoding.rival:
        return False
    heeds = heeded(after.data, after.name, encoding.name)
    declared = encoding.origin == "declared"
    if before is not None and _same(before, after):
        return not heeds and not _acting(after) <= _acting(before)
    if is_faithful(encoding.name):
        return declared and not heeds and _decides(after)
    return declared or _decides(after)


def _decides(source: SourceText) -> bool:
    """Whether the same text would be other bytes in UTF-8."""
    name = source.encoding.name
    if name == "utf-8":
        return bool(source.encoding.rival)
    return (
        name in UNIT or not source.data.isascii() or (name in STATEFUL and b"\x1b" in source.data)
    )


def _same(before: SourceText, after: SourceText) -> bool:
    """Whether the encoding is the same before and after, or a wider one under the same name."""
    old, new = before.encoding.name, after.encoding.name
    return _decides(before) and (
        old == new or new in WIDER.get(old, ()) or old in WIDER.get(new, ())
    )


def _acting(source: SourceText) -> set[str]:
    """The signs among the bytes of letters that programs act upon.

    One with a line end after it stands for one that ends a line.
    """
    found: set[str] = set()
    for char, data in _signs(source).items():
        acting = _ACTING & {chr(byte) for byte in data}
        found |= acting
        if data.endswith(b"\\") and any(f"{char}{end}" in source.text for end in "\r\n"):
            found.add("\\\n")
    return found


def _signs(source: SourceText) -> dict[str, bytes]:
    """The letters of a text among whose bytes are signs of ASCII, with these bytes."""
    name = source.encoding.name
    if is_faithful(name) or name in UNIT or name in STATEFUL or source.data.isascii():
        return {}
    found = {}
    for char in {one for one in source.text if one > "\x7f"}:
        data = char.encode(name, "ignore")
        if any(byte < 0x80 and not chr(byte).isalnum() for byte in data):
            found[char] = data
    return found

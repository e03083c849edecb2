"""Detects the encoding of a file: by evidence, in one order, and never by statistics.

A byte-order mark goes first, then what somebody said who knows the file, then what the file says
itself, then strict UTF-8, then the zeros of UTF-16 and UTF-32.  Evidence that the bytes do not
bear out counts for nothing, and the next is looked at.  What is left is carried byte for byte as an
unknown 8-bit encoding, or is no text.

A few bytes that are no text make neither a text binary nor UTF-8 another encoding: a text that is
UTF-8 but for them stays so, and a few NULs are characters of any text.

Letters beyond ASCII that are UTF-8 without one mistake are hardly ever anything else, while a rule
for many files and a line that was copied along are often wrong.  Where these two disagree nobody
can know, so such a file has a rival encoding: it is shown as UTF-8, and only what is the same in
both can be put in.
"""

from __future__ import annotations

import codecs
import re
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from filepact.values import dataclass, late_regex, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "STATEFUL",
    "UNIT",
    "UTF_8",
    "WIDER",
    "Encoding",
    "NamedEncoding",
    "Origin",
    "declared",
    "find_charset",
    "heeded",
    "is_faithful",
    "is_stable",
    "misleading",
    "names_encoding",
    "recognise",
]

Origin = Literal["caller", "settings", ".editorconfig", "declared", ""]
"""Who says so; empty where the bytes alone tell."""


@dataclass(frozen=True, slots=True)
class NamedEncoding:
    """An encoding that somebody named from outside the file.

    Attributes:
        codec: Python's name, from :func:`~filepact.text.detect_encoding.find_charset`.
        origin: Who named it.
    """

    codec: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Encoding:
    """A file's encoding, and how it is known.

    Attributes:
        name: Python's name of the codec, without a byte-order mark: ``utf-8``, ``utf-16-le``.
        bom: The byte-order mark at the file's start.
        known: False for an 8-bit encoding of which nothing is known; it is carried as Latin-1.
        origin: Who says so, where it was not the bytes; of a rival who named that.
        rival: Another encoding that the file is said to be in, though its bytes are UTF-8.
        damaged: Whether some bytes are not of it, which the others are; the text carries each of them as
            a lone surrogate, as Python's ``surrogateescape`` does.  Of UTF-16 it is the last byte alone.
    """

    name: str
    bom: bytes = b""
    known: bool = True
    origin: Origin = ""
    rival: str = ""
    damaged: bool = False

    @property
    def label(self) -> str:
        """The encoding, for people."""
        if not self.known:
            return "unknown 8-bit (shown as Latin-1)"
        return f"{self.name} with BOM" if self.bom else self.name

    @property
    def traced(self) -> str:
        """The label, and in one word who said so; plain UTF-8 needs no witness."""
        if self.name == "utf-8" and not (self.rival or self.bom):
            return self.name
        if self.rival:
            who = "the file itself" if self.origin == "declared" else self.origin
            return f"{self.label}, though {who} says {self.rival}"
        if not self.origin or self.name == "utf-8":
            return self.label
        return f"{self.label} ({self.origin})"


UTF_8 = Encoding("utf-8")
# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKED = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)
# Of each unit of ASCII text, in which bytes the NULs are.
_WIDE = (
    (Encoding("utf-32-le"), 4, (1, 2, 3)),
    (Encoding("utf-32-be"), 4, (0, 1, 2)),
    (Encoding("utf-16-le"), 2, (1,)),
    (Encoding("utf-16-be"), 2, (0,)),
)

# Of a wide text without a mark, the part of characters that has to be ASCII.
_ASCII_SHARE = 0.7
# Those that do not stand in texts; those that do are tab, line ends, form feed, vertical tab,
# backspace, escape (terminal colours), and the end-of-file mark of old systems.
_CONTROLS = bytes(set(range(32)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B}) + b"\x7f"

# One byte in a hundred may be a control, and a few of a text that is shorter.
_FEW = 8
_EIGHTH = 8
_TENTH = 10

_CONTROL_CHARACTERS = late_regex(f"[{re.escape(_CONTROLS.decode())}]")

_DAMAGED = late_regex("[\udc80-\udcff]")
_HALVES = late_regex("[\udc00-\udcff]")
_CUT = late_regex(r"\A[\udc80-\udcbf]{2,3}|[\udcc2-\udcf4][\udc80-\udcbf]{1,2}\Z")
# Bytes that may be letters of an 8-bit encoding where no others are: not the last, and the one before
# it only within a word.
_LETTERS = late_regex(r"[\udc80-\udcfd]|[A-Za-z]\udcfe|\udcfe[A-Za-z]")

_BINARY_STARTS = late_regex(
    rb"""
      \x89PNG\r\n | \xff\xd8\xff | GIF8[79]a(?=.{0,6}[^\t-\r\x20-\x7e])   # pictures
    | PK(?:\x03\x04|\x05\x06|\x07\x08) | \x1f\x8b | BZh[1-9]1AY&SY | \xfd7zXZ\x00
    | 7z\xbc\xaf\x27\x1c | \x28\xb5\x2f\xfd | Rar!\x1a\x07                # archives
    | \x7fELF | \xca\xfe\xba\xbe | \xfe\xed\xfa[\xce\xcf] | [\xce\xcf]\xfa\xed\xfe | \x00asm
    | !<arch>\n | .{257}ustar
    | %PDF- | \xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 | SQLite\x20format\x203\x00
    """,
    re.VERBOSE | re.DOTALL,
)


def recognise(
    data: bytes, *, complete: bool, name: str = "", given: NamedEncoding | None = None
) -> tuple[str, Encoding] | None:
    """The text of a file and its encoding, or None when it is not text.

    Args:
        data: The file's bytes, or its first ones.
        complete: Whether this is all of it; if not, a character may be cut at its end.
        name: The file's name, which tells what kinds of declarations it can have.
        given: What somebody said about it from outside.
    """
    for encoding in _MARKED:
        if data.startswith(encoding.bom):
            rest = data[len(encoding.bom) :]
            text = _read(rest, encoding.name, complete=complete)
            if text is not None:
                return text, encoding
            if complete and (text := _cut(rest, encoding.name)) is not None:
                return text, replace(encoding, damaged=True)
    if data.startswith(codecs.BOM_UTF8) and not _is_binary(data):
        text = _carried(data[len(codecs.BOM_UTF8) :], complete=complete)[0]
        return text, Encoding("utf-8", codecs.BOM_UTF8, damaged=True)
    if _BINARY_STARTS.match(data):
        return None
    return _as_said(data, name, given, complete=complete) or _of_itself(data, complete=complete)


def _as_said(
    data: bytes, name: str, given: NamedEncoding | None, *, complete: bool
) -> tuple[str, Encoding] | None:
    """The text in the first encoding that somebody or the file itself names, and the bytes bear out."""
    witnesses = [] if given is None else [given]
    own = declared(data, name, complete=complete)
    if own is not None:
        witnesses.append(NamedEncoding(own, "declared"))
    for witness in witnesses:
        codec = witness.codec.removesuffix("-sig")
        for form in (codec, *WIDER.get(codec, ())):
            text = _borne_out(data, form, witness.origin, complete=complete)
            if text is not None:
                found = text, Encoding(form, origin=witness.origin)
                return _against_utf_8(data, own, *found, complete=complete) or found
        carried = _all_but_few(data, codec, witness.origin, complete=complete)
        if carried is not None:
            return carried[0], Encoding(carried[1], origin=witness.origin, damaged=True)
    return None


def _all_but_few(
    data: bytes, codec: str, origin: Origin, *, complete: bool
) -> tuple[str, str] | None:
    """The text in an encoding that was named, though a few bytes are not of it, and the form it has."""
    sure = origin in ("settings", "caller")
    if codec in UNIT:
        text = _cut(data, codec) if complete and (origin == "caller" or b"\0" in data) else None
        return None if text is None else (text, codec)
    if codec in STATEFUL or codec in ("utf-16", "utf-32") or _is_binary(data):
        return None
    text, letters, damaged = _carried(data, complete=complete)
    if codec == "utf-8":
        return (text, codec) if sure or damaged <= max(len(data) // _TENTH, _FEW) else None
    if letters >= damaged:
        return None  # It is UTF-8, which most rules for many files do not mean to deny.
    forms = {
        form: codecs.getincrementaldecoder(form)("surrogateescape").decode(data, complete)
        for form in (codec, *WIDER.get(codec, ()))
    }
    form, text = min(forms.items(), key=lambda one: len(_DAMAGED.findall(one[1])))
    damaged = len(_DAMAGED.findall(text))
    letters = len(text) - len(text.encode("ascii", "ignore")) - damaged
    if not (sure or letters > damaged) or text.encode(form, "surrogateescape") != data:
        return None
    return text, form


def _cut(data: bytes, codec: str) -> str | None:
    """UTF-16 behind which half a unit is left, carried as a surrogate that there is only once; else None."""
    if UNIT.get(codec) != 2 or len(data) % 2 == 0:
        return None
    text = data[:-1].decode(codec, "surrogatepass")
    if _CONTROL_CHARACTERS.search(text) or _HALVES.search(text):
        return None
    return text + chr(0xDC00 + data[-1])


def _of_itself(data: bytes, *, complete: bool) -> tuple[str, Encoding] | None:
    """The text as the bytes alone tell; None for no text."""
    if b"\0" in data:
        wide = _recognise_wide(data, complete=complete)
        if wide is not None or not _few_controls(data):
            return wide
    text = _read(data, "utf-8", complete=complete)
    if text is not None:
        return text, UTF_8
    if _is_binary(data):
        return None
    text, letters, damaged = _carried(data, complete=complete)
    # The bytes of another encoding hardly ever make letters of UTF-8, and not as many as they fail to.
    if letters >= damaged or not (letters or _LETTERS.search(text)):
        return text, Encoding("utf-8", damaged=True)
    if b"\0" in data and damaged > len(data) // _TENTH:
        return None
    return data.decode("latin-1"), Encoding("latin-1", known=False)


def _carried(data: bytes, *, complete: bool) -> tuple[str, int, int]:
    """Bytes as UTF-8 with what is damaged, how many letters beyond ASCII they make, and how many do not.

    A letter that is cut at either end counts as one.
    """
    text = codecs.utf_8_decode(data, "surrogateescape", complete)[0]
    cut = _CUT.findall(text)
    damaged = len(_DAMAGED.findall(text))
    letters = len(text) - len(text.encode("ascii", "ignore")) - damaged
    return text, letters + len(cut), damaged - len("".join(cut))


def _against_utf_8(
    data: bytes, own: str | None, text: str, encoding: Encoding, *, complete: bool
) -> tuple[str, Encoding] | None:
    """UTF-8, where the bytes are valid UTF-8 and a loose word names another encoding.

    A caller or a person who names this very file, or a few, is believed.
    """
    loose = encoding.origin in (".editorconfig", "declared")
    if not loose or encoding.name == "utf-8" or encoding.name in UNIT or data.isascii():
        return None
    other = _read(data, "utf-8", complete=complete)
    if other is None or other == text:
        return None
    if own == "utf-8":
        return other, Encoding("utf-8", origin="declared")
    return other, Encoding("utf-8", origin=encoding.origin, rival=encoding.name)


def _borne_out(data: bytes, codec: str, origin: Origin, *, complete: bool) -> str | None:
    """The text in an encoding that was named, or None when the bytes speak against it."""
    if codec in ("utf-16", "utf-32"):
        return None  # Without a mark, which was looked for before, it names no byte order.
    if codec in UNIT:
        text = _read(data, codec, complete=complete)
        if text is None or origin == "caller":
            return text
        # A rule for many files meets some that it was not made for.  ASCII read in pairs is
        # almost always Chinese, but a wide text without one character below U+0100 is rare.
        plain = b"\0" in data and not _CONTROL_CHARACTERS.search(text)
        return text if plain else None
    if b"\0" in data and not _few_controls(data):
        return None
    if codec == "utf-8":
        return _read(data, codec, complete=complete)
    if not data.isascii() and _is_binary(data):
        return None  # Most of these encodings read anything, also what is no text.
    return _read(data, codec, complete=complete)


def _controls(data: bytes) -> int:
    return len(data) - len(data.translate(None, _CONTROLS))


def _few_controls(data: bytes) -> bool:
    """Whether a text with NULs in it is one: for binary files hardly ever one byte in fifty is a control."""
    return _controls(data) <= max(
        len(data) // 100, min((len(data) + _EIGHTH // 2) // _EIGHTH, _FEW)
    )


def _is_binary(data: bytes) -> bool:
    return not _few_controls(data) if b"\0" in data else _controls(data) > len(data) // 100


def _recognise_wide(data: bytes, *, complete: bool) -> tuple[str, Encoding] | None:
    """UTF-16 or UTF-32 without a mark, for text that is mostly ASCII."""
    for encoding, unit, zeros in _WIDE:
        units = len(data) // unit
        least = units * _ASCII_SHARE
        if units < 2 or any(data[place::unit].count(0) < least for place in zeros):
            continue
        text = _read(data, encoding.name, complete=complete, errors="strict")
        if text is None or _CONTROL_CHARACTERS.search(text):
            continue
        if len(text.encode("ascii", "ignore")) >= least:
            return text, encoding
    return None


def _read(
    data: bytes, codec: str, *, complete: bool, errors: Literal["strict", ""] = ""
) -> str | None:
    """The text of bytes without their mark, or None when they are not in this encoding.

    Lone surrogates pass in UTF-16 and UTF-32, where files really have them, unless ``strict``.
    """
    try:
        if codec == "utf-8":
            return codecs.utf_8_decode(data, "strict", complete)[0]
        handling = errors or ("surrogatepass" if codec in UNIT else "strict")
        if complete:
            return data.decode(codec, handling)
        return codecs.getincrementaldecoder(codec)(handling).decode(data)
    except UnicodeError:
        return None


# -- declarations in the file ----------------------------------------------------------------
#
# Which forms count depends on what the file is, by its name or by how it begins: a sentence about
# encodings in a text must not be taken for one of these.  All of them can only be read when the
# file extends ASCII, so a file that says it is UTF-16 in them is not.


_HEAD = 1_024
"""Bytes in which a declaration has to stand; browsers look as far."""

_MENTIONS = (b"coding", b"charset", b"fenc")
_AT_END = (b"fenc", b"fileencoding")
_COMMENT = late_regex(rb"[ \t\f]*(?:#|\r?$)")
_CODING = late_regex(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_EMACS_LINE = late_regex(rb"-\*-(.*?)-\*-")
_EMACS = late_regex(rb"(?:^|[; \t])(?:file)?coding[ \t]*:[ \t]*([-\w.:]+)", re.IGNORECASE)
_VIM = late_regex(
    rb"(?:^|[ \t])(?:vim?(?:[<=>]?\d+)?|ex):[ \t]*(?:.*?[ \t:])?(?:fileencoding|fenc)=([-\w.]+)"
)
_XML = late_regex(rb"<\?xml[ \t\r\n][^>]*?encoding[ \t\r\n]*=[ \t\r\n]*[\"']([-\w.:]+)[\"']")
_CSS = late_regex(rb'@charset "([^"\r\n]{1,40})";')
_META = late_regex(
    rb"<meta[ \t\r\n/][^>]*?charset[ \t\r\n]*=[ \t\r\n]*[\"']?[ \t\r\n]*([-\w.:]+)", re.IGNORECASE
)
_HTML_COMMENT = late_regex(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_HTML_START = late_regex(
    rb"(?>(?:\s|<!--.*?-->|<\?xml[^>]*>)*)<(?:!doctype[ \t\r\n]+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_SCRIPT = late_regex(rb"#!.*\b(?:python|ruby)")

_CODED = (".py", ".pyi", ".pyw", ".pyx", ".pxd", ".rb", ".rake")
_STYLES = (".css", ".scss", ".sass", ".less")
_PAGES = (".html", ".htm", ".xhtml", ".xht", ".shtml")


def declared(data: bytes, name: str = "", *, complete: bool = True) -> str | None:
    """The encoding that a file names in itself, by Python's name; None when it names none.

    Known are the coding line of Python and Ruby, ``-*- coding: x -*-`` in the first two lines,
    ``fileencoding=`` in a Vim modeline of the first or last five, the XML declaration, ``<meta
    charset>`` and ``@charset``.

    Args:
        data: The file's bytes, or its first ones.
        name: The file's name, whose ending tells what kind of file it is.
        complete: Whether this is all of the file, so that its end can be looked at.
    """
    for word, _ in _named(data, name, complete=complete):
        codec = find_charset(word)
        if codec is not None and codec not in UNIT and codec not in ("utf-16", "utf-32"):
            return codec.removesuffix("-sig")
    return None


def names_encoding(data: bytes) -> bool:
    """Whether a file may name an encoding in itself; false is certain."""
    small = data[:_HEAD].lower()
    return any(word in small for word in _MENTIONS) or any(
        word in data[-_HEAD:] for word in _AT_END
    )


def heeded(data: bytes, name: str, codec: str) -> bool:
    """Whether programs that read such a file use this encoding because the file declares it."""
    return any(programs and find_charset(word) == codec for word, programs in _named(data, name))


def misleading(data: bytes, name: str) -> str:
    """A word in a file that has programs read other text than stands there; empty for none."""
    words = (word for word, programs in _named(data, name) if programs and _is_misleading(word))
    return next(words, "")


def _named(data: bytes, name: str, *, complete: bool = True) -> Iterator[tuple[str, bool]]:
    """Every name of an encoding that stands where one counts, the weightiest first.

    With each, whether it is for the programs that such files are made for, or for editors alone.
    """
    head = data[:_HEAD]
    tail = data[max(len(data) - _HEAD, _HEAD) :] if complete else b""
    small = head.lower()
    if not any(word in small for word in _MENTIONS) and not any(word in tail for word in _AT_END):
        return
    for found, programs in _words(head, tail, name.lower()):
        if found is not None:
            yield found[1].decode("ascii", "replace"), programs


def _words(head: bytes, tail: bytes, name: str) -> Iterator[tuple[re.Match[bytes] | None, bool]]:
    yield _XML.match(head), True
    if name.endswith(_STYLES):
        yield _CSS.match(head), True
    if name.endswith(_PAGES) or _HTML_START.match(head):
        yield _META.search(_HTML_COMMENT.sub(b"", head)), True
    lines = _lines(head)
    variables = [_EMACS_LINE.search(line) for line in lines[:2]]
    for line in variables:
        if line is not None:
            yield _EMACS.search(line[1]), False
    if name.endswith(_CODED) or _SCRIPT.match(head):
        yield _CODING.match(lines[0]), True
        # The second line counts only where the first is none of the program's.
        if len(lines) > 1 and _COMMENT.match(lines[0]):
            yield _CODING.match(lines[1]), True
    if b"fenc" in head or b"fileencoding" in head:
        for text in lines[:5]:
            yield _VIM.search(text), False
    if tail:
        for text in _lines(tail.rstrip(b"\r\n"))[-5:]:
            yield _VIM.search(text), False


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n" if b"\n" in data else b"\r")


# -- names of encodings ------------------------------------------------------------------------
#
# A list of the encodings that are wanted, by whatever name somebody uses for them: Python also calls
# transformations like base64 or escapes codecs, has some that read what they cannot write, and takes
# new names from any module that is installed.  Missing on purpose are UTF-7, HZ and ISO-2022-KR, whose
# same text has many forms, encodings that read two bytes as one character, and EBCDIC, whose lines end
# in other characters than those that editors count.


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

# Those of them in which no byte of a letter is one of ASCII, by the names of `find_charset`.
_HIGH = frozenset({"euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb2312"})

# Python reads source in them, and what it reads is not what anybody sees.
_MISLEADING = frozenset(
    {
        *("hz", "idna", "iso2022_kr", "punycode", "raw_unicode_escape", "unicode_escape", "utf_7"),
        *("cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500", "cp864", "cp875"),
    }
)

_KNOWN = frozenset((*_UNICODE, *_SINGLE, *_MULTIPLE, *_STATEFUL))
_UNSTABLE = frozenset((*_MULTIPLE, *_STATEFUL))
_NAME = late_regex(r"[A-Za-z0-9][A-Za-z0-9_.: -]{0,39}")
# What editors and browsers put around a name.
_AROUND = late_regex(r"^(?:x-|8bit-|2byte-)|-(?:unix|dos|mac)$", re.IGNORECASE)
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


def _is_misleading(name: str) -> bool:
    """Whether a name is of an encoding that makes other text of ASCII than stands there."""
    plain = normalize_encoding(name).lower().replace(".", "_")
    return aliases.get(plain, plain) in _MISLEADING


def is_faithful(codec: str) -> bool:
    """Whether every byte that looks like ASCII is ASCII in an encoding.

    Args:
        codec: Python's name, from `find_charset`.
    """
    return codec not in UNIT and (codec not in _UNSTABLE or codec in _HIGH)


def is_stable(codec: str) -> bool:
    """Whether every text in an encoding has one form in bytes only, so that it can be written whole.

    Args:
        codec: Python's name, from `find_charset`.
    """
    return codec not in _UNSTABLE

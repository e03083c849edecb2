"""What a file's bytes are: by evidence, in one order, and never by statistics.

A byte-order mark goes first, then what somebody said who knows the file, then what the file says
itself, then strict UTF-8, then the zeros of UTF-16 and UTF-32.  Evidence that the bytes do not
bear out counts for nothing, and the next is asked.  What is left is carried byte for byte as an
unknown 8-bit encoding, or is no text.

Letters beyond ASCII that are UTF-8 without one mistake are hardly ever anything else, while a rule
for many files and a line that was copied along are often wrong.  Where these two disagree nobody
can know, so such a file has a rival encoding: it is shown as UTF-8, and only what is the same in
both can be put in.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from filepact.text.charsets import UNIT, WIDER
from filepact.text.declared import declared

__all__ = ["CONTROLS", "UTF_8", "Encoding", "Given", "Origin", "recognise"]

Origin = Literal["caller", "settings", ".editorconfig", "declared", ""]
"""Who says so; empty where the bytes alone tell."""


@dataclass(frozen=True, slots=True)
class Given:
    """An encoding that somebody named from outside the file.

    Attributes:
        codec: Python's name, from :func:`~filepact.text.charsets.find_charset`.
        origin: Who named it.
    """

    codec: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes stand for its text.

    Attributes:
        name: Python's name of the codec, without a byte-order mark: ``utf-8``, ``utf-16-le``.
        bom: The byte-order mark at the file's start.
        known: False for an 8-bit encoding of which nothing is known; it is carried as Latin-1.
        origin: Who says so, where it was not the bytes; of a rival who named that.
        rival: Another encoding that the file is said to be in, though its bytes are UTF-8.
    """

    name: str
    bom: bytes = b""
    known: bool = True
    origin: Origin = ""
    rival: str = ""

    @property
    def label(self) -> str:
        """The encoding as people are told."""
        if not self.known:
            return "unknown 8-bit (shown as Latin-1)"
        return f"{self.name} with BOM" if self.bom else self.name

    @property
    def traced(self) -> str:
        """The label, and in one word who said so; plain UTF-8 needs no witness."""
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
CONTROLS = bytes(set(range(32)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B}) + b"\x7f"
"""Control characters that do not stand in texts; those that do are tab, line ends, form feed,
vertical tab, backspace, escape (terminal colours), and the end-of-file mark of old systems."""

_CONTROL_CHARACTERS = re.compile(f"[{re.escape(CONTROLS.decode())}]")

_BINARY_STARTS = re.compile(
    rb"""
      \x89PNG\r\n | \xff\xd8\xff | GIF8[79]a(?=.{0,6}[^\t-\r\x20-\x7e])   # pictures
    | PK(?:\x03\x04|\x05\x06|\x07\x08) | \x1f\x8b | BZh[1-9]1AY&SY | \xfd7zXZ\x00
    | 7z\xbc\xaf\x27\x1c | \x28\xb5\x2f\xfd | Rar!\x1a\x07                # archives
    | \x7fELF | \xca\xfe\xba\xbe | \xfe\xed\xfa[\xce\xcf] | [\xce\xcf]\xfa\xed\xfe | \x00asm
    | %PDF- | \xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 | SQLite\x20format\x203\x00
    """,
    re.VERBOSE | re.DOTALL,
)


def recognise(
    data: bytes, *, complete: bool, name: str = "", given: Given | None = None
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
            text = _read(data[len(encoding.bom) :], encoding.name, complete=complete)
            if text is not None:
                return text, encoding
    if _BINARY_STARTS.match(data):
        return None
    witnesses = [] if given is None else [given]
    own = declared(data, name, complete=complete)
    if own is not None:
        witnesses.append(Given(own, "declared"))
    for witness in witnesses:
        codec = witness.codec.removesuffix("-sig")
        for form in (codec, *WIDER.get(codec, ())):
            text = _borne_out(data, form, witness.origin, complete=complete)
            if text is not None:
                found = text, Encoding(form, origin=witness.origin)
                return _against_utf_8(data, own, *found, complete=complete) or found
    if b"\0" in data:
        return _recognise_wide(data, complete=complete)
    text = _read(data, "utf-8", complete=complete)
    if text is not None:
        return text, UTF_8
    if _has_controls(data):
        return None
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return data[len(bom) :].decode("latin-1"), Encoding("latin-1", bom, known=False)


def _against_utf_8(
    data: bytes, own: str | None, text: str, encoding: Encoding, *, complete: bool
) -> tuple[str, Encoding] | None:
    """The same bytes as UTF-8 when they are that too and a loose word names something else.

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
    if b"\0" in data:
        return None
    if codec == "utf-8":
        return _read(data, codec, complete=complete)
    if not data.isascii() and _has_controls(data):
        return None  # Most of these encodings read anything, also what is no text.
    return _read(data, codec, complete=complete)


def _has_controls(data: bytes) -> bool:
    return len(data) - len(data.translate(None, CONTROLS)) > len(data) // 100


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

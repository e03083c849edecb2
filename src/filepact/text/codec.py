"""Bytes to text and back, losing nothing: by evidence, never by statistics.

What cannot be told for sure is either carried as it is or refused.  A file in an unknown 8-bit
encoding is shown as Latin-1, so that each byte is one character and survives; only ASCII can be
put into it.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from filepact.errors import BinaryFileError, EncodingUnsafeError, InvalidParamsError
from filepact.text.edit import Edit, EditList
from filepact.text.lines import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Encoding", "SourceText", "decode", "detect", "encode", "encode_new", "rewrite"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes stand for its text.

    Attributes:
        name: Python's name of the codec, without a byte-order mark: ``utf-8``, ``utf-16-le``.
        bom: The byte-order mark at the file's start.
        known: False for an 8-bit encoding of which nothing is known; it is carried as Latin-1.
    """

    name: str
    bom: bytes = b""
    known: bool = True

    @property
    def label(self) -> str:
        """The encoding as people are told."""
        if not self.known:
            return "unknown 8-bit (shown as Latin-1)"
        return f"{self.name} with BOM" if self.bom else self.name


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, line ends as they stand and without a byte-order mark, and its encoding."""

    text: str
    encoding: Encoding


_UTF_8 = Encoding("utf-8")
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
_UNIT = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}

# Of a wide text without a mark, the part of characters that has to be ASCII.
_ASCII_SHARE = 0.7
# Control characters that stand in texts: tab, line ends, form feed, vertical tab, backspace,
# escape (terminal colours), and the end-of-file mark of old systems.
_CONTROLS = bytes(set(range(32)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B}) + b"\x7f"
_CONTROL_CHARACTERS = re.compile(f"[{re.escape(_CONTROLS.decode())}]")

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


def detect(head: bytes, *, complete: bool) -> Encoding | None:
    """The encoding of a file, from its first bytes.

    Args:
        head: How the file begins.
        complete: Whether this is all of it; if not, a character may be cut at its end.

    Returns:
        The encoding, or None when the file does not hold text.
    """
    found = _recognise(head, complete=complete)
    return None if found is None else found.encoding


def decode(data: bytes, *, name: str = "", encoding: str | None = None) -> SourceText:
    """All bytes of a file as text.

    Args:
        data: The bytes.
        name: How the file is called in messages.
        encoding: A codec that the caller knows to be the right one; None goes by evidence.

    Raises:
        BinaryFileError: The bytes are not text.
        EncodingUnsafeError: The bytes are not in the encoding named, or it would change them.
        InvalidParamsError: There is no such encoding.
    """
    if encoding is not None:
        return _decode_as(data, encoding, name)
    found = _recognise(data, complete=True)
    if found is None:
        raise BinaryFileError(
            f"{name or 'the file'}: does not hold text ({len(data):,} bytes)",
            hint="Read it with encoding base64.",
            path=name,
        )
    return found


def encode(text: str, encoding: Encoding, *, name: str = "") -> bytes:
    """A text as the bytes of a file, with its byte-order mark.

    Lone surrogates pass in UTF-16 and UTF-32, where files really have them.

    Raises:
        EncodingUnsafeError: A character cannot be written.  In an unknown 8-bit encoding that is
            every one outside ASCII, for nobody knows which bytes it would be; `rewrite` carries
            those that the file has already.
    """
    if not encoding.known and not text.isascii():
        at = next(i for i, char in enumerate(text) if char > "\x7f")
        raise _unsafe(text, at, encoding, name)
    return encoding.bom + _to_bytes(text, encoding, name)


def encode_new(text: str, name: str) -> bytes:
    """A text as the bytes of a new file: UTF-8, without a mark unless the text starts with it.

    Raises:
        EncodingUnsafeError: A lone surrogate, which no encoding can write.
    """
    return encode(text, _UTF_8, name=name)


def rewrite(source: SourceText, edits: EditList, *, name: str = "") -> bytes:
    """A file's bytes after edits of its text; those outside the edits are what they were.

    A byte-order mark sent along with the text of a file that has one is not written twice.

    Raises:
        EncodingUnsafeError: What an edit puts in cannot be written in the file's encoding, or
            the encoding could not be told from the result.
        ValueError: An edit reaches beyond the text.
    """
    encoding = source.encoding
    edits = edits.trim(source.text)
    if encoding.bom and not source.text.startswith("\ufeff"):
        edits = _without_mark(edits)
    text = edits.apply(source.text)
    for start, removed, put in _replacements(source.text, edits):
        bad = _first_unwritable(removed, put, encoding)
        if bad is not None:
            raise _unsafe(text, start + bad, encoding, name)
    data = encoding.bom + _to_bytes(text, encoding, name)
    if text and _is_told(source.text, encoding) and not _is_told(text, encoding):
        raise EncodingUnsafeError(
            f"{name or 'the file'}: is in {encoding.label} without a byte-order mark, and after "
            "this edit nothing would tell so any more",
            hint="Convert the file to UTF-8, or give it a byte-order mark, then edit it.",
            path=name,
        )
    return data


def _is_told(text: str, encoding: Encoding) -> bool:
    """Whether a wide text without a mark would be known for one."""
    if encoding.bom or encoding.name not in _UNIT:
        return True
    return detect(_to_bytes(text, encoding, ""), complete=True) == encoding


def _recognise(data: bytes, *, complete: bool) -> SourceText | None:
    """The text and its encoding, or None when it is not text."""
    for encoding in _MARKED:
        if data.startswith(encoding.bom):
            text = _read(data[len(encoding.bom) :], encoding, complete=complete)
            if text is not None:
                return SourceText(text, encoding)
    if _BINARY_STARTS.match(data):
        return None
    if b"\0" in data:
        return _recognise_wide(data, complete=complete)
    text = _read(data, _UTF_8, complete=complete)
    if text is not None:
        return SourceText(text, _UTF_8)
    if len(data) - len(data.translate(None, _CONTROLS)) > len(data) // 100:
        return None
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return SourceText(data[len(bom) :].decode("latin-1"), Encoding("latin-1", bom, known=False))


def _recognise_wide(data: bytes, *, complete: bool) -> SourceText | None:
    """UTF-16 or UTF-32 without a mark, for text that is mostly ASCII."""
    for encoding, unit, zeros in _WIDE:
        units = len(data) // unit
        least = units * _ASCII_SHARE
        if units < 2 or any(data[place::unit].count(0) < least for place in zeros):
            continue
        text = _read(data, encoding, complete=complete, errors="strict")
        if text is None or _CONTROL_CHARACTERS.search(text):
            continue
        if len(text.encode("ascii", "ignore")) >= least:
            return SourceText(text, encoding)
    return None


def _read(
    data: bytes, encoding: Encoding, *, complete: bool, errors: str = "surrogatepass"
) -> str | None:
    """The text of bytes without their mark, or None when they are not in this encoding."""
    unit = _UNIT.get(encoding.name)
    try:
        if unit is None:
            return codecs.utf_8_decode(data, "strict", complete)[0]
        if not complete:
            return codecs.getincrementaldecoder(encoding.name)(errors).decode(data)
        return data.decode(encoding.name, errors)
    except UnicodeDecodeError:
        return None


def _decode_as(data: bytes, codec: str, name: str) -> SourceText:
    """Bytes in an encoding that the caller named."""
    try:
        wanted = codecs.lookup(codec).name.removesuffix("-sig")
        "".encode(wanted)
    except (LookupError, ValueError):
        raise InvalidParamsError(
            f"there is no text encoding {codec!r}", hint="Leave it out, or name one such as utf-8."
        ) from None
    # ``utf-16`` alone leaves it to the mark which of the two it is.
    marked = (e for e in _MARKED if e.name.startswith(wanted) and data.startswith(e.bom))
    encoding = next(marked, Encoding(wanted))
    shown = name or "the file"
    try:
        text = data[len(encoding.bom) :].decode(encoding.name, _errors(encoding))
        same = encoding.bom + text.encode(encoding.name, _errors(encoding)) == data
    except UnicodeError as error:
        raise EncodingUnsafeError(
            f"{shown}: is not in the encoding {wanted}: {error}",
            hint="Leave the encoding out, or name the right one.",
            path=name,
        ) from None
    if not same:
        raise EncodingUnsafeError(
            f"{shown}: {wanted} reads it, but would write other bytes for the same text",
            hint="Leave the encoding out; every byte is kept then.",
            path=name,
        )
    return SourceText(text, encoding)


def _errors(encoding: Encoding) -> str:
    return "surrogatepass" if encoding.name in _UNIT else "strict"


def _to_bytes(text: str, encoding: Encoding, name: str) -> bytes:
    try:
        return text.encode(encoding.name, _errors(encoding))
    except UnicodeEncodeError as error:
        raise _unsafe(text, error.start, encoding, name) from None


def _without_mark(edits: EditList) -> EditList:
    """The edits without a byte-order mark put before the text."""
    match edits.edits:
        case (Edit(start=0, text=put) as first, *others) if put.startswith("\ufeff"):
            return EditList((Edit(0, first.end, put[1:]), *others))
    return edits


def _replacements(text: str, edits: EditList) -> Iterator[tuple[int, str, str]]:
    """Of each edit: where it starts in the text after, what goes, what comes."""
    growth = accumulate((len(e.text) - (e.end - e.start) for e in edits.edits), initial=0)
    for edit, shift in zip(edits.edits, growth, strict=False):
        yield edit.start + shift, text[edit.start : edit.end], edit.text


def _first_unwritable(removed: str, put: str, encoding: Encoding) -> int | None:
    """The place of the first character of ``put`` that is new and cannot be written."""
    if put.isascii():
        return None
    if not encoding.known:
        # What the edit takes out it may put back, in the same order: the reader saw those bytes
        # as these characters, so they are the same bytes again.
        carried = iter(removed)
        return next((i for i, c in enumerate(put) if c > "\x7f" and c not in carried), None)
    try:
        put.encode(encoding.name)
    except UnicodeEncodeError as error:
        return error.start
    return None


def _unsafe(text: str, at: int, encoding: Encoding, name: str) -> EncodingUnsafeError:
    char = text[at]
    line = line_of(text, at)
    column = at - text.rfind("\n" if "\n" in text else "\r", 0, at)
    lone = "\ud800" <= char <= "\udfff"
    title = "LONE SURROGATE" if lone else unicodedata.name(char, "UNNAMED CHARACTER")
    if lone:
        hint = "Send the character whole; half of a surrogate pair cannot be written."
    elif not encoding.known:
        hint = (
            "Use ASCII characters or an escape there. Which encoding the file is in is not known, "
            "so nobody can say which bytes would be right."
        )
    else:
        hint = "Use a character that the encoding has, or an escape, or convert the file first."
    return EncodingUnsafeError(
        f"{name or 'the text'}: U+{ord(char):04X} ({title}) at line {line}, column {column} "
        f"cannot be written in {encoding.label}",
        hint=hint,
        path=name,
        line=line,
        column=column,
        character=f"U+{ord(char):04X}",
    )

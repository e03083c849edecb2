"""Bytes to text and back, losing nothing.

What a file is, is told by :mod:`~filepact.text.evidence`.  What cannot be told for sure is either
carried as it is or refused.  A file in an unknown 8-bit encoding is shown as Latin-1, so that each
byte is one character and survives; only ASCII can be put into it.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from filepact.errors import BinaryFileError, EncodingUnsafeError
from filepact.text.charsets import STATEFUL, UNIT, is_stable
from filepact.text.declared import declared
from filepact.text.edit import Edit, EditList
from filepact.text.evidence import UTF_8, Encoding, Given, recognise
from filepact.text.splice import FirmLineError, splice
from filepact.text.unwritable import mistaken, refuse, settle

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Encoding",
    "Given",
    "SourceText",
    "decode",
    "detect",
    "encode",
    "encode_new",
    "rewrite",
    "rewrite_whole",
]

_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, line ends as they stand and without a byte-order mark.

    Attributes:
        text: The text.
        encoding: How its bytes stand for it.
        data: The bytes that it was read from.
        given: What somebody said about the encoding from outside the file.
        name: The file's name, for messages and for what it tells about the file's kind.
    """

    text: str
    encoding: Encoding
    data: bytes = field(repr=False)
    given: Given | None = None
    name: str = ""


def detect(
    head: bytes, *, complete: bool, name: str = "", given: Given | None = None
) -> Encoding | None:
    """The encoding of a file, from its first bytes.

    Args:
        head: How the file begins.
        complete: Whether this is all of it; if not, a character may be cut at its end.
        name: The file's name, which tells what kinds of declarations it can have.
        given: What somebody said about the encoding from outside the file.

    Returns:
        The encoding, or None when the file does not hold text.
    """
    found = recognise(head, complete=complete, name=name, given=given)
    return None if found is None else found[1]


def decode(data: bytes, *, name: str = "", given: Given | None = None) -> SourceText:
    """All bytes of a file as text.

    Args:
        data: The bytes.
        name: The file's name; it tells what kinds of declarations the file can have.
        given: What somebody said about the encoding from outside the file; it counts as far as
            the bytes bear it out.

    Raises:
        BinaryFileError: The bytes are not text.
    """
    found = recognise(data, complete=True, name=name, given=given)
    if found is None:
        raise BinaryFileError(
            f"{name or 'the file'}: does not hold text ({len(data):,} bytes)",
            hint="Read it with encoding base64.",
            path=name,
        )
    return SourceText(*found, data, given, name)


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
        refuse(text, at, encoding, name)
    return encoding.bom + _to_bytes(text, encoding, name)


def encode_new(text: str, name: str, given: Given | None = None) -> bytes:
    """A text as the bytes of a new file: UTF-8, unless somebody or the text itself names another.

    A mark at the start of the text makes it UTF-8 with that mark.

    Args:
        text: What the file shall hold.
        name: Its name; it tells what kinds of declarations it can have.
        given: What was said about its encoding from outside.

    Raises:
        EncodingUnsafeError: A character cannot be written.
    """
    if text.startswith("\ufeff") and given is None:
        return encode(text, UTF_8, name=name)
    encoding = _encoding_of_new(text, name, given)
    _check_escapes(encoding, text, name)
    data = encode(text.removeprefix("\ufeff") if encoding.bom else text, encoding, name=name)
    back = _first_changed(text, encoding)
    if back is not None:
        refuse(text, back, encoding, name)
    if encoding.name != "utf-8" and not encoding.bom:
        found = recognise(data, complete=True, name=name, given=given)
        if found is not None and found[0] != text:
            raise mistaken(encoding, name, "Write it in UTF-8, or add a few words.")
    return data


def _encoding_of_new(text: str, name: str, given: Given | None) -> Encoding:
    """What a text that is written for the first time is to be in."""
    if given is not None:
        codec = given.codec.removesuffix("-sig")
        codec = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(codec, codec)
        # A mark where one was asked for, and where without it a file is hard to tell.
        marked = codec != given.codec or codec in UNIT
        return Encoding(codec, _MARKS[codec] if marked else b"", origin=given.origin)
    said = declared(text.encode("utf-8", "replace"), name)
    return Encoding(said, origin="declared") if said else UTF_8


def rewrite(source: SourceText, edits: EditList, *, name: str = "") -> bytes:
    """A file's bytes after edits of its text; those outside the edits are what they were.

    A byte-order mark sent along with the text of a file that has one is not written twice.

    Raises:
        EncodingUnsafeError: What an edit puts in cannot be written in the file's encoding, a line
            of an edit cannot be written without changing the rest of it, or the encoding could
            not be told from the result.
        ValueError: An edit reaches beyond the text.
    """
    name = name or source.name
    edits = edits.trim(source.text)
    if not edits:
        return source.data
    text = edits.apply(source.text)
    if not source.data:
        return encode_new(text, name, source.given)
    encoding = source.encoding
    if encoding.bom and not source.text.startswith("\ufeff"):
        edits = _without_mark(edits)
        text = edits.apply(source.text)
    encoding = _encoding_after(source, text)
    _check_escapes(encoding, source.data.decode("latin-1"), name)
    _check_escapes(encoding, text, name)
    for start, removed, put in _replacements(source.text, edits):
        bad = _first_unwritable(removed, put, encoding)
        if bad is not None:
            refuse(text, start + bad, encoding, name)
    if encoding.rival and not is_stable(encoding.rival):
        _check_borders(source, edits, name)
    if is_stable(encoding.name):
        data = encoding.bom + _to_bytes(text, encoding, name)
    else:
        try:
            data = splice(source.text, source.data, edits, encoding.name)
        except FirmLineError as error:
            raise EncodingUnsafeError(
                f"{name or 'the file'}: line {error.line} holds bytes that {encoding.label} has "
                "more than one form for, and they would not come out as they are",
                hint="Leave this line as it is; other lines of the file can be edited.",
                path=name,
                line=error.line,
            ) from None
    if not _reads_back(source, data, text):
        raise mistaken(
            encoding,
            name,
            "Put a byte-order mark before its text (U+FEFF), or convert the file to UTF-8 first."
            if encoding.name in UNIT
            else "Leave the line that names the encoding as it is, or convert the file to UTF-8 "
            "first.",
        )
    return data


def rewrite_whole(source: SourceText, text: str, *, name: str = "") -> bytes:
    """A file's bytes with another text; lines that it keeps keep their bytes.

    Raises:
        EncodingUnsafeError: As :func:`rewrite`.
    """
    encoding = source.encoding
    if encoding.name == "utf-8" and encoding.known and not encoding.rival:
        # Equal text is equal bytes here, so which lines are the same need not be found out.
        edits = EditList((Edit(0, len(source.text), text),))
    else:
        edits = EditList.between(source.text, text)
    return rewrite(source, edits, name=name)


def _check_escapes(encoding: Encoding, text: str, name: str) -> None:
    """Refuse to write what escapes make of bytes: any ASCII may stand for any letters there."""
    if encoding.name in STATEFUL and not (text.isascii() and "\x1b" not in text):
        raise EncodingUnsafeError(
            f"{name or 'the file'}: is in {encoding.traced}, where escapes make letters of ASCII; "
            "such a file is read and not written",
            hint="Convert the file to UTF-8 first, with a program made for that.",
            path=name,
        )


def _check_borders(source: SourceText, edits: EditList, name: str) -> None:
    """Refuse edits that would tear a character, were the file in its rival encoding."""
    rival = source.encoding.rival
    for edit in edits.edits:
        start = max(source.text.rfind(end, 0, edit.start) for end in "\r\n") + 1
        pieces = (source.text[start : edit.start], source.text[edit.start : edit.end])
        torn = not edit.text.isascii()
        try:
            for piece in pieces:
                piece.encode().decode(rival)
        except UnicodeError:
            torn = True
        if torn:
            raise mistaken(source.encoding, name, settle(source.encoding))


def _encoding_after(source: SourceText, text: str) -> Encoding:
    """What the file is to be in after an edit: the same, unless it is free to change.

    ASCII alone is the same bytes in all encodings that extend it, so a file of nothing else may
    get its encoding with its first character beyond.
    """
    encoding = source.encoding
    free = (
        encoding.known
        and not encoding.bom
        and encoding.origin in ("", "declared")
        and encoding.name not in UNIT
        and encoding.name not in STATEFUL
        and source.data.isascii()
    )
    return _encoding_of_new(text, source.name, None) if free and not text.isascii() else encoding


def _reads_back(source: SourceText, data: bytes, text: str) -> bool:
    """Whether the bytes after an edit would be known for the text that they stand for."""
    encoding = source.encoding
    if encoding.bom or not encoding.known or not data:
        return True
    if encoding.name == "utf-8" and source.given is None:
        said = declared(data, source.name)
        if said is None or said == "utf-8":
            return True
    found = recognise(data, complete=True, name=source.name, given=source.given)
    if found is None or not found[1].known or (found[1].rival and not encoding.rival):
        return False
    # A mark may be given to a file that had none.
    return found[0] == (text.removeprefix("\ufeff") if found[1].bom else text)


def _to_bytes(text: str, encoding: Encoding, name: str) -> bytes:
    try:
        return text.encode(encoding.name, "surrogatepass" if encoding.name in UNIT else "strict")
    except UnicodeEncodeError as error:
        refuse(text, error.start, encoding, name)


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
    if put.isascii() and is_stable(encoding.name):
        return None
    if not encoding.known or encoding.rival:
        # What the edit takes out it may put back, in the same order: the reader saw those bytes
        # as these characters, so they are the same bytes again.
        carried = iter(removed)
        return next((i for i, c in enumerate(put) if c > "\x7f" and c not in carried), None)
    try:
        put.encode(encoding.name)
    except UnicodeEncodeError as error:
        return error.start
    return _first_changed(put, encoding)


def _first_changed(put: str, encoding: Encoding) -> int | None:
    """The place of the first character that is written but would be read as another."""
    if is_stable(encoding.name):
        return None
    codec = encoding.name
    if put.encode(codec).decode(codec) == put:
        return None
    return next((i for i, c in enumerate(put) if c.encode(codec).decode(codec) != c), 0)

"""Bytes of files as text and back, losing nothing.

:mod:`~filepact.text.detect_encoding` tells what a file is.  What cannot be told for sure is either
carried as it is or refused.  A file in an unknown 8-bit encoding is shown as Latin-1, so that each
byte is one character and survives; only ASCII can be put into it.  A few bytes that are not of a file's
encoding survive as lone surrogates (:mod:`~filepact.text.raw_bytes`).
"""

from __future__ import annotations

import codecs
import unicodedata
from itertools import accumulate
from typing import TYPE_CHECKING, NoReturn

from filepact.errors import BinaryFileError, EncodingUnsafeError
from filepact.text.detect_encoding import (
    STATEFUL,
    UNIT,
    UTF_8,
    Encoding,
    NamedEncoding,
    declared,
    is_stable,
    recognise,
)
from filepact.text.edit import Edit, EditList, TextRequest, prove
from filepact.text.lines import line_of
from filepact.text.raw_bytes import escaped
from filepact.values import dataclass, field, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.text.detect_encoding import Origin

__all__ = [
    "Encoding",
    "NamedEncoding",
    "SourceText",
    "decode",
    "detect",
    "encode",
    "encode_new",
    "rewrite",
    "rewrite_whole",
]

_HALF = late_regex("[\udc00-\udcff]")
_LONE = late_regex("[\ud800-\udfff]")
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
    given: NamedEncoding | None = None
    name: str = ""


def detect(
    head: bytes, *, complete: bool, name: str = "", given: NamedEncoding | None = None
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


def decode(data: bytes, *, name: str = "", given: NamedEncoding | None = None) -> SourceText:
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
            hint="Read its bytes with encoding base64, or have a program turn it into text, such as "
            "pdftotext or unzip.",
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
        _refuse(text, at, encoding, name)
    return encoding.bom + _to_bytes(text, encoding, name)


def encode_new(text: str, name: str, given: NamedEncoding | None = None) -> bytes:
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
    if encoding.name in STATEFUL:
        _check_escapes(encoding, text, name)
    data = encode(text.removeprefix("\ufeff") if encoding.bom else text, encoding, name=name)
    back = _first_changed(text, encoding)
    if back is not None:
        _refuse(text, back, encoding, name)
    if encoding.name != "utf-8" and not encoding.bom:
        found = recognise(data, complete=True, name=name, given=given)
        if found is not None and found[0] != text:
            raise _mistaken(encoding, name, "Write it in UTF-8, or add a few words.")
    _check_text(data, name, given)
    return data


def _encoding_of_new(text: str, name: str, given: NamedEncoding | None) -> Encoding:
    """The encoding of a text that is written for the first time."""
    if given is not None:
        codec = given.codec.removesuffix("-sig")
        codec = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(codec, codec)
        # A mark where one was asked for, and where without it a file is hard to tell.
        marked = codec != given.codec or codec in UNIT
        return Encoding(codec, _MARKS[codec] if marked else b"", origin=given.origin)
    said = declared(text.encode("utf-8", "replace"), name)
    return Encoding(said, origin="declared") if said else UTF_8


def rewrite(
    source: SourceText, edits: EditList, *, name: str = "", asked: TextRequest | None = None
) -> bytes:
    """A file's bytes after edits of its text; those outside the edits are what they were.

    A byte-order mark sent along with the text of a file that has one is not written twice.

    Raises:
        UnprovenError: The edits do not do what was ``asked``; None asks for just them.
        EncodingUnsafeError: What an edit puts in cannot be written in the file's encoding, a line
            of an edit cannot be written without changing the rest of it, or the encoding could
            not be told from the result.
        ValueError: An edit reaches beyond the text.
    """
    name = name or source.name
    text = prove(source.text, edits.apply(source.text), asked or TextRequest.as_made(edits), name)
    edits = edits.trim(source.text)
    if not edits:
        return source.data
    if not source.data:
        return encode_new(text, name, source.given)
    encoding = source.encoding
    if encoding.bom and not source.text.startswith("\ufeff"):
        edits = _without_mark(edits)
        text = edits.apply(source.text)
    encoding = _encoding_after(source, text)
    if encoding.name in STATEFUL:
        _check_escapes(encoding, source.data.decode("latin-1"), name)
        _check_escapes(encoding, text, name)
    for start, removed, put in _replacements(source.text, edits):
        bad = _first_unwritable(removed, put, encoding)
        if bad is not None:
            _refuse(text, start + bad, encoding, name)
    if encoding.rival and not is_stable(encoding.rival):
        _check_borders(source, edits, name)
    if is_stable(encoding.name):
        data = encoding.bom + _to_bytes(text, encoding, name)
    else:
        try:
            coding = encoding.name, _errors(encoding)
            data = _splice(source.text, source.data, edits, coding)
        except _FirmLineError as error:
            raise EncodingUnsafeError(
                f"{name or 'the file'}: line {error.line} holds bytes that {encoding.label} can "
                "write in more than one way, so saving would change them",
                hint="Leave this line as it is; other lines of the file can be edited.",
                path=name,
                line=error.line,
            ) from None
    if not encoding.damaged and not _reads_back(source, data, text):
        way = "Leave the line that names the encoding as it is"
        if encoding.name in UNIT:
            way = "Put a byte-order mark before its text (U+FEFF)"
        raise _mistaken(encoding, name, f"{way}, or convert the file to UTF-8 first.")
    _check_text(data, name, source.given)
    return data


def rewrite_whole(
    source: SourceText, text: str, *, name: str = "", sent: str | None = None
) -> bytes:
    """A file's bytes with another text; lines that it keeps keep their bytes.

    Raises:
        EncodingUnsafeError: As :func:`rewrite`.
        UnprovenError: It is another text than was ``sent``.
    """
    asked = TextRequest.whole(source.text, text, text if sent is None else sent)
    encoding = source.encoding
    # Where equal text is equal bytes, it need not be found out which lines are the same.
    plain = encoding.name == "utf-8" and encoding.known and not encoding.rival
    whole = EditList((Edit(0, len(source.text), text),))
    edits = whole if plain else EditList.between(source.text, text)
    return rewrite(source, edits, name=name, asked=asked)


def _check_text(data: bytes, name: str, given: NamedEncoding | None) -> None:
    """Refuse to make a binary file of a text: no tool could show or edit it any more."""
    if b"\0" in data and recognise(data, complete=True, name=name, given=given) is None:
        raise EncodingUnsafeError(
            f"{name or 'the file'}: with so many NUL characters (U+0000) it would be no text any more",
            hint="Write the escape of the language, such as \\0 or \\x00 (in JSON: \\\\0), in place "
            "of the character.",
            path=name,
            character="U+0000",
        )


def _check_escapes(encoding: Encoding, text: str, name: str) -> None:
    """Refuse to write encodings with escape sequences: any ASCII may be part of letters there."""
    if not text.isascii() or "\x1b" in text:
        raise EncodingUnsafeError(
            f"{name or 'the file'}: is in {encoding.traced}, where escapes make letters of ASCII; "
            "such a file can be read but not written",
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
            raise _mistaken(source.encoding, name, _settle(source.encoding))


def _encoding_after(source: SourceText, text: str) -> Encoding:
    """The file's encoding after an edit: the same, unless nothing but ASCII was in it.

    ASCII alone is the same bytes in all encodings that extend it, so a file of nothing else may
    get its encoding with its first character beyond.
    """
    encoding = source.encoding
    plain = encoding.name not in UNIT and encoding.name not in STATEFUL
    free = encoding.known and not encoding.bom and encoding.origin in ("", "declared") and plain
    free = free and source.data.isascii()
    return _encoding_of_new(text, source.name, None) if free and not text.isascii() else encoding


def _reads_back(source: SourceText, data: bytes, text: str) -> bool:
    """Whether the bytes after an edit would be detected and decoded as the text that was meant."""
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
    last = b""
    if encoding.damaged and encoding.name in UNIT and (half := _HALF.search(text)):
        if half.end() < len(text):
            raise EncodingUnsafeError(
                f"{name or 'the file'}: ends within a character of {encoding.label}, behind which nothing "
                "can be put",
                hint=f"Take its last byte, {escaped(half)}, out of the text with the same change.",
                path=name,
            )
        text, last = text[:-1], bytes((ord(half[0]) - 0xDC00,))
    try:
        return text.encode(encoding.name, _errors(encoding)) + last
    except UnicodeEncodeError as error:
        _refuse(text, error.start, encoding, name)


def _errors(encoding: Encoding) -> str:
    """How Python is to treat the lone surrogates of a text in an encoding, which new text never has."""
    if encoding.name in UNIT:
        return "surrogatepass"
    return "surrogateescape" if encoding.damaged else "strict"


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
    if encoding.name in UNIT:
        carried = iter(_LONE.findall(removed))
        lone = _LONE.finditer(put)
        return next((found.start() for found in lone if found[0] not in carried), None)
    try:
        put.encode(encoding.name, _errors(encoding))
    except UnicodeEncodeError as error:
        return error.start
    return _first_changed(put, encoding)


def _first_changed(put: str, encoding: Encoding) -> int | None:
    """The place of the first character that is written but would be read as another."""
    if is_stable(encoding.name):
        return None
    coding = encoding.name, _errors(encoding)
    if put.encode(*coding).decode(*coding) == put:
        return None
    return next((i for i, c in enumerate(put) if c.encode(*coding).decode(*coding) != c), 0)


# -- refusals --------------------------------------------------------------------------------------


_SAY_SO = (
    "say in which encoding the file is: in the settings ([encodings]), in .editorconfig (charset), "
    "or in a line of the file itself that its kind has for this."
)


def _mistaken(encoding: Encoding, name: str, hint: str) -> EncodingUnsafeError:
    """An error about a file that would be read in another encoding than the one it is written in."""
    return EncodingUnsafeError(
        f"{name or 'the file'}: is in {encoding.label}, and with this text it would be taken for "
        "something else"
        + ("" if encoding.bom or encoding.name not in UNIT else "; it has no byte-order mark"),
        hint=hint,
        path=name,
    )


def _refuse(text: str, at: int, encoding: Encoding, name: str) -> NoReturn:
    """Refuse one character of a text.

    Args:
        text: What was to be written.
        at: The character's place in it.
        encoding: What it was to be written in.
        name: The file; empty for a mere text.
    """
    char = text[at]
    line = line_of(text, at)
    column = at - text.rfind("\n" if "\n" in text else "\r", 0, at)
    lone = "\ud800" <= char <= "\udfff"
    title = "LONE SURROGATE" if lone else unicodedata.name(char, "UNNAMED CHARACTER")
    if lone:
        hint = "Send the character whole; half of a surrogate pair cannot be written."
    elif not encoding.known:
        hint = f"Use ASCII characters or an escape there, or {_SAY_SO}"
    elif encoding.rival:
        hint = _settle(encoding)
    else:
        hint = f"Use a character that the encoding has, or an escape{_way_out(encoding.origin)}."
    raise EncodingUnsafeError(
        f"{name or 'the text'}: U+{ord(char):04X} ({title}) at line {line}, column {column} "
        f"cannot be written in {encoding.traced}",
        hint=hint,
        path=name,
        line=line,
        column=column,
        character=f"U+{ord(char):04X}",
    )


def _settle(encoding: Encoding) -> str:
    """The advice for a file with a rival encoding."""
    line = "correct the line of the file that names the encoding"
    rule = "have .editorconfig or the settings ([encodings]) say which it is"
    return (
        f"The bytes are UTF-8. Use ASCII characters or an escape there, or first "
        f"{line if encoding.origin == 'declared' else rule}."
    )


def _way_out(origin: Origin) -> str:
    ways = {
        "declared": "change the line in it that names its encoding",
        "settings": "have the settings ([encodings]) say so",
        ".editorconfig": "have .editorconfig say so",
    }
    return (
        f", or convert the file and {ways[origin]}" if origin in ways else ", or convert it first"
    )


# -- encodings in which a text has more than one form in bytes ----------------------------------
#
# Where two sequences of bytes are the same character, a text that is written anew is not what it was.
# So only the lines of the edits are written anew, and only if they come out as they are when nothing
# is changed in them.  Where they do not, and each character has its own bytes, only those of the edits
# are exchanged.


class _FirmLineError(ValueError):
    """A line cannot be written as it stands; ``line`` is its 1-based number."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


def _splice(text: str, data: bytes, edits: EditList, coding: tuple[str, str]) -> bytes:
    """The bytes after edits of their text; those of all other lines are what they were.

    Args:
        text: What the bytes are in the encoding.
        data: All bytes.
        edits: Edits of the text.
        coding: An encoding in which LF and CR are one byte that means nothing else, and its `_errors`.

    Raises:
        _FirmLineError: A line of an edit would get other bytes, or another text, than it should.
    """
    separator = "\n" if "\n" in text else "\r"
    if text.count(separator) != data.count(separator.encode()):
        raise _FirmLineError(1)
    parts: list[bytes] = []
    done = 0
    borders = _Borders(text, data, separator)
    for start, end, inner in _blocks(text, edits, separator):
        first, last = borders.at(start), borders.at(end)
        old, chunk = text[start:end], data[first:last]
        new = inner.apply(old)
        if _comes_back(old, chunk, coding):
            written = _line_bytes(new, coding, line_of(text, start))
        else:
            written = _exchange(old, chunk, inner, coding, line_of(text, start))
        if written.decode(*coding) != new:
            raise _FirmLineError(line_of(text, start))
        parts += (data[done:first], written)
        done = last
    return b"".join((*parts, data[done:]))


def _blocks(text: str, edits: EditList, separator: str) -> Iterator[tuple[int, int, EditList]]:
    """The whole lines around the edits: from where to where, and the edits within them."""
    held: list[Edit] = []
    start = end = 0
    for edit in edits.edits:
        left = text.rfind(separator, 0, edit.start) + 1
        right = edit.end
        if right and text[right - 1] != separator:
            right = text.find(separator, right) + 1 or len(text)
        if held and left >= end:
            yield start, end, _within(held, start)
            held = []
        if not held:
            start = left
        held.append(edit)
        end = right
    if held:
        yield start, end, _within(held, start)


def _within(edits: list[Edit], start: int) -> EditList:
    return EditList(tuple(Edit(e.start - start, e.end - start, e.text) for e in edits))


class _Borders:
    """From borders of lines in the text to those in the bytes, going forward only."""

    def __init__(self, text: str, data: bytes, separator: str) -> None:
        self._text = text
        self._data = data
        self._separator = separator
        self._byte = separator.encode()
        self._at = 0
        self._place = 0

    def at(self, offset: int) -> int:
        """The byte at which a line starts, or the end of all bytes."""
        if offset == len(self._text):
            return len(self._data)
        for _ in range(self._text.count(self._separator, self._at, offset)):
            self._place = self._data.index(self._byte, self._place) + 1
        self._at = offset
        return self._place


def _line_bytes(text: str, coding: tuple[str, str], line: int) -> bytes:
    try:
        return text.encode(*coding)
    except UnicodeEncodeError:  # Half of what only two characters together have bytes for.
        raise _FirmLineError(line) from None


def _exchange(old: str, chunk: bytes, edits: EditList, coding: tuple[str, str], line: int) -> bytes:
    """The bytes of lines in which only those characters are others that the edits name."""
    places = _places(chunk, coding)
    parts: list[bytes] = []
    done = 0
    for edit in edits.edits:
        first, last = places.get(edit.start), places.get(edit.end)
        if first is None or last is None:
            raise _FirmLineError(line + line_of(old, edit.start) - 1)
        parts += (chunk[done:first], edit.text.encode(*coding))
        done = last
    return b"".join((*parts, chunk[done:]))


def _places(chunk: bytes, coding: tuple[str, str]) -> dict[int, int]:
    """At which byte each character starts; those between two that share their bytes are left out."""
    decoder = codecs.getincrementaldecoder(coding[0])(coding[1])
    places = {0: 0}
    size = 0
    for at in range(len(chunk)):
        read = len(decoder.decode(chunk[at : at + 1]))
        if read:
            size += read
            places[size] = at + 1
    return places


def _comes_back(text: str, data: bytes, coding: tuple[str, str]) -> bool:
    try:
        return text.encode(*coding) == data and data.decode(*coding) == text
    except UnicodeError:
        return False

"""Edits of bytes line by line, for encodings in which a text has more than one form in bytes.

Where two sequences of bytes are the same character, a text that is written anew is not what it was.  So only the lines of the edits are written anew,
and only if they come out as they are when nothing is changed in them.  Where they do not, and
each character has its own bytes, only those of the edits are exchanged.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from filepact.text.edit import Edit, EditList
from filepact.text.lines import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FirmLineError", "splice"]


class FirmLineError(ValueError):
    """A line cannot be written as it stands; ``line`` is its 1-based number."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


def splice(text: str, data: bytes, edits: EditList, codec: str) -> bytes:
    """The bytes after edits of their text; those of all other lines are what they were.

    Args:
        text: What the bytes are in the encoding.
        data: All bytes.
        edits: Edits of the text.
        codec: An encoding in which LF and CR are one byte that means nothing else.

    Raises:
        FirmLineError: A line of an edit would get other bytes, or another text, than it should.
    """
    separator = "\n" if "\n" in text else "\r"
    if text.count(separator) != data.count(separator.encode()):
        raise FirmLineError(1)
    parts: list[bytes] = []
    done = 0
    borders = _Borders(text, data, separator)
    for start, end, inner in _blocks(text, edits, separator):
        first, last = borders.at(start), borders.at(end)
        old, chunk = text[start:end], data[first:last]
        new = inner.apply(old)
        if _comes_back(old, chunk, codec):
            written = _written(new, codec, line_of(text, start))
        else:
            written = _exchange(old, chunk, inner, codec, line_of(text, start))
        if written.decode(codec) != new:
            raise FirmLineError(line_of(text, start))
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


def _written(text: str, codec: str, line: int) -> bytes:
    try:
        return text.encode(codec)
    except UnicodeEncodeError:  # Half of what only two characters together have bytes for.
        raise FirmLineError(line) from None


def _exchange(old: str, chunk: bytes, edits: EditList, codec: str, line: int) -> bytes:
    """The bytes of lines in which only those characters are others that the edits name."""
    places = _places(chunk, codec)
    parts: list[bytes] = []
    done = 0
    for edit in edits.edits:
        first, last = places.get(edit.start), places.get(edit.end)
        if first is None or last is None:
            raise FirmLineError(line + line_of(old, edit.start) - 1)
        parts += (chunk[done:first], edit.text.encode(codec))
        done = last
    return b"".join((*parts, chunk[done:]))


def _places(chunk: bytes, codec: str) -> dict[int, int]:
    """At which byte each character starts; those between two that share their bytes are left out."""
    decoder = codecs.getincrementaldecoder(codec)()
    places = {0: 0}
    size = 0
    for at in range(len(chunk)):
        read = len(decoder.decode(chunk[at : at + 1]))
        if read:
            size += read
            places[size] = at + 1
    return places


def _comes_back(text: str, data: bytes, codec: str) -> bool:
    try:
        return text.encode(codec) == data and data.decode(codec) == text
    except UnicodeError:
        return False

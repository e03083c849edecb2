"""Reads the names that a Git index lists, and nothing else of it.

Versions 2 to 4, with hashes of either length (gitformat-index(5)).  The bytes may be anybody's: no
count in them is believed beyond the bytes that are there.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["IndexNames", "InvalidIndexError", "read_index"]

_BEFORE_HASH = 40
_FLAGS = 2
_EXTENDED = 0x4000
_LENGTH = 0x0FFF
_HASHES = (20, 32)
_MOST_NAME = 65_536


class InvalidIndexError(ValueError):
    """These bytes are no index that is understood."""


class IndexNames(NamedTuple):
    """The entries of an index.

    Attributes:
        names: Paths from the top of the work tree, slashes between their parts, as they stand.
        shared: The hash, in hexadecimal, of the index that this one adds to; empty mostly.
    """

    names: list[bytes]
    shared: str


def read_index(data: bytes) -> IndexNames:
    """Read the names of an index file.

    Raises:
        InvalidIndexError: The bytes are cut off, or something else.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise InvalidIndexError("not an index of version 2, 3 or 4")
    for width in _HASHES:
        try:
            names, end = _entries(data, width, packed=version == 4)
            return IndexNames(names, _shared(data, end, width))
        except (IndexError, InvalidIndexError):
            # Which hash it has stands in another file; with the wrong one nothing fits.
            continue
    raise InvalidIndexError("the entries and the end of the file do not fit")


def _entries(data: bytes, width: int, *, packed: bool) -> tuple[list[bytes], int]:
    """All names, and where the entries end."""
    names: list[bytes] = []
    at, fixed = 12, _BEFORE_HASH + width + _FLAGS
    last = b""
    limit = len(data) - width
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = at + fixed
        if start >= limit:
            raise InvalidIndexError("cut off")
        flags = data[start - 2] << 8 | data[start - 1]
        if flags & _EXTENDED:
            start += 2
        if packed:
            drop, start = _number(data, start)
            end = data.find(b"\0", start, start + _MOST_NAME)
            if drop > len(last) or end < 0:
                raise InvalidIndexError("a name does not fit the one before it")
            last = last[: len(last) - drop] + data[start:end]
            if len(last) > _MOST_NAME:
                raise InvalidIndexError("a name is too long")
            at = end + 1
        else:
            end = start + (flags & _LENGTH)
            if flags & _LENGTH == _LENGTH:
                end = data.find(b"\0", end)
            if end < 0 or end >= limit or data[end]:
                raise InvalidIndexError("a name has no end")
            last = data[start:end]
            at = end + 8 - (end - at) % 8
        names.append(last)
    return names, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as offsets in packs are written, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 0x7F
        if value > _MOST_NAME:
            raise InvalidIndexError("a name is too long")
    return value, at + 1


def _shared(data: bytes, at: int, width: int) -> str:
    """The hash of the shared index, from the extensions behind the entries."""
    shared = ""
    limit = len(data) - width
    while at < limit:
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"link":
            shared = data[at + 8 : at + 8 + width].hex()
        at += 8 + size
    if at != limit:
        raise InvalidIndexError("the end does not fit")
    return shared

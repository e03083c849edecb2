"""Strong names: the public key by which others let an assembly see what is internal."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

__all__ = ["public_key", "read_key"]

_MAX_KEY_FILE: Final = 100_000

_PUBLIC, _PAIR = 0x06, 0x07
_BLOB_VERSION: Final = 0x02
_SIGNS: Final = 0x2400
_HASHES: Final = 0x8004
_MAGIC: Final = {b"RSA1": _PUBLIC, b"RSA2": _PAIR}
_HEAD = struct.Struct("<BBHI4sII")
_MAX_BITS: Final = 16_384


def public_key(content: bytes) -> bytes | None:
    """The public key as .NET writes it into an assembly's name; None if there is none to be found.

    Args:
        content: A key file: a pair of keys, a public key alone, or one that is in that form already.
    """
    # A public key as .NET has it: two numbers for how it signs, its length, and the key.
    if len(content) > 12 and content[12:13] == bytes([_PUBLIC]):
        whole = struct.unpack_from("<I", content, 8)[0]
        content = content[12 : 12 + whole]
    if len(content) < _HEAD.size:
        return None
    kind, version, _, _, magic, bits, exponent = _HEAD.unpack_from(content)
    if (
        version != _BLOB_VERSION
        or _MAGIC.get(magic) != kind
        or bits % 8
        or not 0 < bits <= _MAX_BITS
    ):
        return None
    modulus = content[_HEAD.size : _HEAD.size + bits // 8]
    if len(modulus) != bits // 8:
        return None
    key = _HEAD.pack(_PUBLIC, _BLOB_VERSION, 0, _SIGNS, b"RSA1", bits, exponent) + modulus
    return struct.pack("<III", _SIGNS, _HASHES, len(key)) + key


def read_key(path: str) -> bytes | None:
    """The public key of a key file; None if it cannot be read or has none."""
    try:
        with Path(path).open("rb") as handle:
            return public_key(handle.read(_MAX_KEY_FILE))
    except OSError:
        return None

"""Bytes made small: whole, or as what differs from bytes that are kept anyway.

A delta names how much the two share at their beginnings and ends; what stands between is
compressed with the neighbourhood of the same place in the base as dictionary.  Trimming first
keeps one changed line in ten megabytes at some dozens of bytes, where a dictionary alone reaches
only a part of so large a text.
"""

from __future__ import annotations

import struct

import zstandard

__all__ = ["pack", "pack_against", "unpack", "unpack_against"]

_LEVEL = 3
_HEADER = struct.Struct("<QQ")
_NEIGHBOURHOOD = 65_536
_LONGEST_DICTIONARY = 8_388_608
_STEP = 65_536


def pack(data: bytes) -> bytes:
    """Compressed bytes that need nothing else to be read."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


def unpack(packed: bytes, size: int) -> bytes:
    """What `pack` was given.

    Args:
        packed: What `pack` returned.
        size: How many bytes it must come to.

    Raises:
        ValueError: It is not what `pack` returned.
    """
    return _decompress(zstandard.ZstdDecompressor(), packed, size)


def pack_against(data: bytes, base: bytes) -> bytes:
    """Compressed bytes that need ``base`` to be read."""
    start = _shared(data, base)
    end = _shared_end(data, base, min(len(data), len(base)) - start)
    middle = data[start : len(data) - end]
    header = _HEADER.pack(start, end)
    if not middle:
        return header
    near = _near(base, start, end)
    if near is None:
        return header + pack(middle)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL,
        source_size=len(middle),
        dict_size=len(near.as_bytes()),
        # The window has to reach back over the text into the dictionary.
        window_log=max(10, (len(middle) + len(near.as_bytes())).bit_length()),
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters, dict_data=near)
    return header + compressor.compress(middle)


def unpack_against(packed: bytes, base: bytes, size: int) -> bytes:
    """What `pack_against` was given.

    Args:
        packed: What `pack_against` returned.
        base: The same bytes that it was given.
        size: How many bytes it must come to.

    Raises:
        ValueError: It is not what `pack_against` returned for this base.
    """
    if len(packed) < _HEADER.size:
        raise ValueError("a delta without its header")
    start, end = _HEADER.unpack_from(packed)
    length = size - start - end
    if length < 0 or start + end > len(base):
        raise ValueError("a delta of another base")
    middle = b""
    if length:
        near = _near(base, start, end)
        decompressor = zstandard.ZstdDecompressor(dict_data=near, max_window_size=1 << 27)
        middle = _decompress(decompressor, packed[_HEADER.size :], length)
    return base[:start] + middle + base[len(base) - end :]


def _decompress(decompressor: zstandard.ZstdDecompressor, packed: bytes, size: int) -> bytes:
    try:
        # Without a limit, a damaged frame may ask for any amount of memory.
        if zstandard.frame_content_size(packed) != size:
            raise ValueError("compressed bytes of another length")
        return decompressor.decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError("damaged compressed bytes") from error


def _near(base: bytes, start: int, end: int) -> zstandard.ZstdCompressionDict | None:
    """The base around the place that changed; None when too little is there to help."""
    first = max(0, start - _NEIGHBOURHOOD)
    last = min(len(base), len(base) - end + _NEIGHBOURHOOD, first + _LONGEST_DICTIONARY)
    near = base[first:last]
    if len(near) < 8:
        return None
    return zstandard.ZstdCompressionDict(near, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _shared(one: bytes, two: bytes) -> int:
    """How many bytes two texts share at their beginnings."""
    limit = min(len(one), len(two))
    at = 0
    step = _STEP
    while at < limit and step:
        if one[at : at + step] == two[at : at + step]:
            at = min(at + step, limit)
        else:
            step //= 2
    return at


def _shared_end(one: bytes, two: bytes, limit: int) -> int:
    """How many bytes, at most ``limit``, two texts share at their ends."""
    at = 0
    step = _STEP
    while at < limit and step:
        width = min(step, limit - at)
        left = one[len(one) - at - width : len(one) - at]
        if left == two[len(two) - at - width : len(two) - at]:
            at += width
        else:
            step = width // 2
    return at

"""Zstandard: Python's own from 3.14 on, before that its backport; loaded when something is packed."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["compress", "decompress", "packed_size"]

_LEVEL = 3
_TINY = 64
_FRAME = b"\x28\xb5\x2f\xfd\x20"
"""How a frame begins that says in one byte how much it holds (RFC 8878, 3.1.1)."""
_LARGEST_WINDOW = 27  # as a power of two


def compress(data: bytes, level: int = _LEVEL, *, near: bytes = b"") -> bytes:
    """One frame, which says how many bytes were packed.

    Args:
        data: The bytes.
        level: How hard it is tried.
        near: Bytes that are much like them, without which they cannot be read again then.
    """
    if len(data) <= _TINY and not near:
        # Nothing is gained by trying; a block that is not compressed has its length, and says that it is the last.
        size = len(data)
        return b"%b%c%b%b" % (_FRAME, size, (size << 3 | 1).to_bytes(3, "little"), data)
    zstd = _zstd()
    parameter, options, dictionary = zstd.CompressionParameter, {}, None
    options[parameter.compression_level] = level
    if near:
        # The window has to reach back over the text into the dictionary.
        options[parameter.window_log] = max(10, (len(data) + len(near)).bit_length())
        dictionary = zstd.ZstdDict(near, is_raw=True).as_undigested_dict
    packed: bytes = zstd.compress(data, options=options, zstd_dict=dictionary)
    return packed


def decompress(packed: bytes, size: int | None = None, *, near: bytes = b"") -> bytes:
    """The bytes that `compress` was given.

    Args:
        packed: What it returned.
        size: How many they must be; None for as many as the frame says.
        near: As it was given.

    Raises:
        ValueError: It is not what `compress` returned, or of another size.
    """
    zstd = _zstd()
    try:
        said = zstd.get_frame_info(packed).decompressed_size
        if said is None or (size is not None and said != size):
            raise ValueError("compressed bytes of another length")
        decompressor = zstd.ZstdDecompressor(
            zstd.ZstdDict(near, is_raw=True) if near else None,
            {zstd.DecompressionParameter.window_log_max: _LARGEST_WINDOW},
        )
        # Without a limit, a damaged frame may ask for any amount of memory.
        data: bytes = decompressor.decompress(packed, said + 1)
    except (zstd.ZstdError, EOFError) as error:
        raise ValueError("damaged compressed bytes") from error
    if not decompressor.eof or len(data) != said:
        raise ValueError("compressed bytes that end too early")
    return data


def packed_size(packed: bytes) -> int:
    """How many bytes `compress` was given, of which nothing is unpacked for it."""
    return int(_zstd().get_frame_info(packed).decompressed_size or 0)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd

"""Recognises pictures by their first bytes, and says whether a whole one decodes, by walking its parts.

A picture that does not decode must not reach a model: its service refuses that request and every later
one of the same conversation.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.errors import BinaryFileError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_PICTURE", "MAX_SIDE", "Image", "check_picture", "flaw_of", "picture_of"]

MAX_PICTURE: Final = 3_750_000
"""Largest picture that is shown, in bytes: the services of models take 5 MB of base64."""

MAX_SIDE: Final = 8_000
"""Most pixels of a side that they take."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
_ALONE = frozenset({0x01, 0xFF, *range(0xD0, 0xDA)})
_CUT: Final = "it ends too early"
_DAMAGED: Final = "its data is damaged"


class Image(NamedTuple):
    """A picture.

    Attributes:
        name: Its format, for people.
        mime: The same for programs.
        width: Pixels; 0 where its first bytes do not say.
        height: The same.
    """

    name: str
    mime: str
    width: int = 0
    height: int = 0


def picture_of(head: bytes) -> Image | None:
    """The picture that begins with these bytes; None for everything but PNG, JPEG, GIF and WebP."""
    if head.startswith(_PNG):
        size = head[16:24] if head[12:16] == b"IHDR" else b""
        return Image("PNG", "image/png", _big(size[:4]), _big(size[4:]))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return Image("GIF", "image/gif", _little(head[6:8]), _little(head[8:10]))
    if head.startswith(b"\xff\xd8\xff"):
        return Image("JPEG", "image/jpeg", *_jpeg(head))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Image("WebP", "image/webp", *_webp(head))
    return None


def check_picture(shown: str, data: bytes, size: int) -> Image | None:
    """The picture that a file holds; None for any other file.

    Args:
        shown: How the file is called.
        data: What it holds; of one that is larger than `MAX_PICTURE`, how it begins.
        size: How many bytes it has.

    Raises:
        TooLargeError: It is one, and too large for those who look at it.
        BinaryFileError: It is one, and does not decode.
    """
    picture = picture_of(data)
    if picture is None:
        return None
    pixels = f"{picture.width:,} x {picture.height:,} pixels and " if picture.width else ""
    what = f"{shown}: is a {picture.name} of {pixels}{size:,} bytes"
    limits = {"size": size, "width": picture.width, "height": picture.height}
    if size > MAX_PICTURE or max(picture.width, picture.height) > MAX_SIDE:
        most = f"{MAX_PICTURE:,} bytes" if size > MAX_PICTURE else f"{MAX_SIDE:,} pixels a side"
        raise TooLargeError(
            f"{what}; pictures are shown up to {most}",
            hint="Make a smaller one of it with a program for pictures, or ask the person for one; "
            "encoding base64 reads its bytes in parts.",
            path=shown,
            **limits,
        )
    if flaw := flaw_of(picture, data):
        raise BinaryFileError(
            f"{what}, but it does not decode: {flaw}",
            hint="Make it anew, or ask the person for a whole one; encoding base64 reads its bytes.",
            path=shown,
            **limits,
        )
    return picture


def flaw_of(picture: Image, data: bytes) -> str:
    """Why a picture does not decode, as the end of a sentence; empty when all of it is there.

    Args:
        picture: What `picture_of` makes of it.
        data: All its bytes.
    """
    check = {"PNG": _check_png, "GIF": _check_gif, "JPEG": _check_jpeg, "WebP": _check_webp}
    try:
        check[picture.name](data)
    except IndexError:
        return _CUT
    except _DamagedError as flaw:
        return str(flaw)
    return "" if picture.width and picture.height else "it has no size"


class _DamagedError(ValueError):
    """A part of a picture that no program decodes."""


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _part(data: bytes, start: int, size: int) -> bytes:
    """A range of bytes, all of which have to be there."""
    part = data[start : start + size]
    if len(part) < size:
        raise _DamagedError(_CUT)
    return part


# -- PNG ------------------------------------------------------------------------------------------


_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PASSES: Final = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)
_AT_ONCE: Final = 1_048_576


def _check_png(data: bytes) -> None:
    """All chunks with their sums, and as much data as the size in pixels needs."""
    at, kind = len(_PNG), b""
    head, has_palette = b"", False
    packed: list[bytes] = []
    while kind != b"IEND":
        size, kind = _big(_part(data, at, 4)), _part(data, at + 4, 4)
        body = _part(data, at + 8, size)
        if zlib.crc32(kind + body) != _big(_part(data, at + 8 + size, 4)):
            raise _DamagedError("a checksum is wrong")
        if not head and (kind != b"IHDR" or size != 13):
            raise _DamagedError("it has no header")
        head = head or body
        has_palette |= kind == b"PLTE"
        if kind == b"IDAT":
            packed.append(body)
        at += 12 + size
    width, height, depth, colour = _big(head[:4]), _big(head[4:8]), head[8], head[9]
    if depth not in _DEPTHS.get(colour, ()) or head[10:12] != b"\0\0" or head[12] > 1:
        raise _DamagedError("its header is none of a PNG")
    if colour == 3 and not has_palette:
        raise _DamagedError("it has no palette")
    if max(width, height) <= MAX_SIDE:
        _inflate(packed, _rows(width, height, depth * _CHANNELS[colour], interlaced=head[12] == 1))


def _rows(width: int, height: int, bits: int, *, interlaced: bool) -> list[tuple[int, int]]:
    """Runs of rows: how many, and the bytes of each with the one for its filter."""
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = [
        (-(-(width - left) // right), -(-(height - top) // down))
        for left, top, right, down in passes
    ]
    return [(high, 1 + -(-wide * bits // 8)) for wide, high in sizes if wide > 0 and high > 0]


def _inflate(packed: list[bytes], runs: list[tuple[int, int]]) -> None:
    """Unpack the pixels piece by piece, and look at the filter of each row."""
    stream = zlib.decompressobj()
    rest = b"".join(packed)
    held = b""
    for total, size in runs:
        rows = total
        while rows:
            while len(held) < size:
                try:
                    piece = stream.decompress(rest, max(_AT_ONCE, size))
                except zlib.error:
                    raise _DamagedError(_DAMAGED) from None
                if not piece:
                    raise _DamagedError(_CUT)
                rest, held = stream.unconsumed_tail, held + piece
            count = min(len(held) // size, rows)
            if max(held[: count * size : size]) > 4:
                raise _DamagedError(_DAMAGED)
            held, rows = held[count * size :], rows - count
    more = len(held)
    while rest and not stream.eof and more <= _AT_ONCE:
        try:
            piece = stream.decompress(rest, _AT_ONCE)
        except zlib.error:
            raise _DamagedError(_DAMAGED) from None
        rest, more = stream.unconsumed_tail, more + len(piece)
    if more > _AT_ONCE:
        raise _DamagedError("its data goes on behind its last row")


# -- GIF ------------------------------------------------------------------------------------------


_MOST_BLOCKS: Final = 4_096
"""Blocks of up to 255 bytes of an image whose codes are looked at."""
_MOST_CODES: Final = 4_096


def _check_gif(data: bytes) -> None:
    """All blocks up to the trailer, one of which is an image."""
    at = 13 + _colours(data[10])
    images = 0
    # Some programs leave out the trailer, and none needs it.
    while not (images and at >= len(data)) and (kind := data[at]) != 0x3B:
        if kind == 0x2C:
            pixels = _little(_part(data, at + 5, 2)) * _little(_part(data, at + 7, 2))
            if not pixels:
                raise _DamagedError("an image in it has no size")
            at += 10 + _colours(data[at + 9])
            if not 1 <= data[at] <= 11 or not data[at + 1]:
                raise _DamagedError(_DAMAGED)
            images += 1
            at += 1
            if images == 1:
                # Services of models look at the first image alone.
                _check_codes(data, at, pixels)
        elif kind == 0x21:
            at += 2
        else:
            raise _DamagedError(_DAMAGED)
        while data[at]:
            at += 1 + data[at]
        at += 1
    if not images:
        raise _DamagedError("it holds no image")


def _check_codes(data: bytes, at: int, wanted: int) -> None:
    """The codes of an image, as far as they are looked at: each is known by then, and all pixels are there."""
    size = data[at - 1]
    parts: list[bytes] = []
    while data[at] and len(parts) < _MOST_BLOCKS:
        parts.append(_part(data, at + 1, data[at]))
        at += 1 + data[at]
    if _pixels(b"".join(parts), size, wanted) < wanted and not data[at]:
        raise _DamagedError(_CUT)


def _pixels(packed: bytes, size: int, wanted: int) -> int:
    """How many pixels codes stand for; no more are counted than are wanted."""
    clear = 1 << size
    known = [1] * clear + [0, 0]  # for how many each code stands
    width, last, made, held, bits = size + 1, 0, 0, 0, 0
    for byte in packed:
        held |= byte << bits
        bits += 8
        while bits >= width:
            code = held & (1 << width) - 1
            held >>= width
            bits -= width
            if code == clear:
                del known[clear + 2 :]
                width, last = size + 1, 0
                continue
            if made >= wanted or code == clear + 1:
                return made
            if code > len(known) or (code == len(known) and not last):
                raise _DamagedError(_DAMAGED)
            if last and len(known) < _MOST_CODES:
                known.append(last + 1)
            last = known[code]
            made += last
            width += len(known) == 1 << width < _MOST_CODES
    return made


def _colours(packed: int) -> int:
    """The bytes of a table of colours."""
    return 3 << (packed & 7) + 1 if packed & 0x80 else 0


# -- JPEG -----------------------------------------------------------------------------------------


def _jpeg(head: bytes) -> tuple[int, int]:
    """From the first frame's header, which segments of other kinds stand before."""
    with suppress(IndexError, _DamagedError):  # How it begins may be all that there is.
        for kind, body, _end in _segments(head):
            if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAME:
                return _big(body[3:5]), _big(body[1:3])
    return 0, 0


def _segments(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each segment of a JPEG up to its end: its kind, what it holds, and where it ends."""
    at = 2
    while True:
        if data[at] != 0xFF:
            raise _DamagedError(_DAMAGED)
        kind = data[at + 1]
        if kind in _ALONE:
            at += 1 if kind == 0xFF else 2
            if kind == 0xD9:
                yield kind, b"", at
                return
            continue
        size = max(_big(_part(data, at + 2, 2)), 2)
        yield kind, _part(data, at + 4, size - 2), at + 2 + size
        at += 2 + size
        if kind == 0xDA:
            # In a scan FF stands for itself with 00 behind it, and begins a restart with D0 to D7.
            at = data.find(b"\xff", at)
            while at >= 0 and (data[at + 1] == 0 or 0xD0 <= data[at + 1] <= 0xD7):
                at = data.find(b"\xff", at + 2)
            if at < 0:
                raise _DamagedError(_CUT)


def _check_jpeg(data: bytes) -> None:
    """All segments up to the end of the image: tables, a frame of a kind that is in use, and its scans."""
    kinds: set[int] = set()
    tables: set[tuple[int, int]] = set()
    frame: dict[int, int] = {}
    for kind, body, end in _segments(data):
        sound = True
        if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAME:
            if kind > 0xC2 or body[0] != 8:
                raise _DamagedError("it is of a kind that hardly any program reads")
            # Each part has a number, how often it is sampled, and its table.
            frame = dict(zip(body[6::3], body[8::3], strict=False))
            sound = 0xC0 not in kinds and len(body) == 6 + 3 * body[5] and len(frame) == body[5] > 0
            sound &= all(0 < by >> 4 < 5 and 0 < by & 15 < 5 for by in body[7::3])
            kinds.add(0xC0)
        elif kind in (0xC4, 0xDB):
            tables |= {(kind, number) for number in _tables(kind, body)}
        elif kind == 0xDA:
            until = 1 + 2 * body[0]
            parts = dict(zip(body[1:until:2], body[2:until:2], strict=False))
            sound = len(body) == 4 + 2 * body[0] and len(parts) == body[0] > 0
            sound &= not (data[end] == 0xFF and data[end + 1])
            sound &= all((0xDB, frame.get(number, -1)) in tables for number in parts)
            first, last = body[-3], body[-2]
            sound &= all(
                first or (0xC4, by >> 4) in tables or body[-1] >> 4 for by in parts.values()
            )
            sound &= all(not last or (0xC4, 16 | by & 15) in tables for by in parts.values())
        kinds.add(kind)
        if not sound:
            raise _DamagedError(_DAMAGED)
    if not kinds >= {0xDA, 0xDB, 0xC4}:
        raise _DamagedError("it holds no image")


def _tables(kind: int, body: bytes) -> Iterator[int]:
    """The numbers of the tables in a segment, each of which has to be whole."""
    at = 0
    while at < len(body):
        number, counts = body[at], body[at + 1 : at + 17]
        if kind == 0xDB:
            size, sound = 64 << (number >> 4), number >> 4 < 2
        else:
            # So many codes of each length from 1 to 16 bits have to have room.
            size, sound = (
                16 + sum(counts),
                sum(many << 15 - by for by, many in enumerate(counts)) <= 1 << 16,
            )
        if not sound or at + 1 + size > len(body):
            raise _DamagedError(_DAMAGED)
        yield number & 15 if kind == 0xDB else number
        at += 1 + size


# -- WebP -----------------------------------------------------------------------------------------


def _webp(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return 0, 0


def _check_webp(data: bytes) -> None:
    """All chunks within the stated size, with an image among them, or frames with one each."""
    chunks = _part(data, 12, _little(data[4:8]) - 4)
    if True not in [*_images(chunks)]:
        raise _DamagedError("it holds no image")


def _images(chunks: bytes) -> Iterator[bool]:
    """Of each chunk whether it holds an image that begins as it should."""
    at = 0
    while at < len(chunks):
        kind, size = _part(chunks, at, 4), _little(_part(chunks, at + 4, 4))
        body = _part(chunks, at + 8, size)
        if kind == b"ANMF":
            yield True in [*_images(body[16:])]
        elif kind == b"VP8 ":
            first = _little(_part(body, 0, 3)) >> 5
            # It begins anew, is of a known kind and to be shown.
            known = not body[0] & 1 and body[0] >> 1 & 7 < 4 and body[0] & 16
            if not known or _part(body, 3, 3) != b"\x9d\x01\x2a" or 10 + first > size:
                raise _DamagedError(_DAMAGED)
            yield True
        elif kind == b"VP8L":
            if _part(body, 0, 5)[0] != 0x2F or body[4] >> 5:
                raise _DamagedError(_DAMAGED)
            yield True
        else:
            yield False
        at += 8 + size + size % 2

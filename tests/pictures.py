"""Whole pictures, made of their parts."""

from __future__ import annotations

import struct
import zlib


def chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def png(width: int, height: int, more: int = 0, rows: bytes | None = None) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(width) for _ in range(height)) if rows is None else rows
    body = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"teSt", bytes(more))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(body) + chunk(b"IEND", b"")


def segment(kind: int, data: bytes) -> bytes:
    return bytes((0xFF, kind)) + struct.pack(">H", len(data) + 2) + data


def jpeg(width: int, height: int, *, comment: int = 0) -> bytes:
    """A grey picture: both tables have one code, of one bit, and each block takes both."""
    blocks = -(-width // 8) * -(-height // 8)
    tables = b"".join(segment(0xC4, bytes((kind, 1)) + bytes(16)) for kind in (0x00, 0x10))
    frame = segment(0xC0, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    scan = segment(0xDA, b"\1\1\0\0\x3f\0") + bytes(-(-blocks // 4))
    texts = segment(0xFE, bytes(60_000)) * comment
    return (
        b"\xff\xd8"
        + texts
        + segment(0xDB, b"\0" + b"\1" * 64)
        + frame
        + tables
        + scan
        + b"\xff\xd9"
    )


def gif(width: int, height: int) -> bytes:
    """Each pixel is the code 0 behind one that empties the table, of three bits both."""
    codes = "101" + "000100" * (width * height)
    codes = codes.rjust(-(-len(codes) // 8) * 8, "0")
    data = int(codes, 2).to_bytes(len(codes) // 8, "little")
    blocks = b"".join(
        bytes((len(data[at : at + 255]),)) + data[at : at + 255] for at in range(0, len(data), 255)
    )
    size = struct.pack("<HH", width, height)
    return (
        b"GIF89a"
        + size
        + b"\x80\0\0"
        + bytes(6)
        + b","
        + bytes(4)
        + size
        + b"\0\2"
        + blocks
        + b"\0;"
    )


def webp(width: int, height: int, *, extended: bool = False) -> bytes:
    """Five codes of one symbol each, so that no pixel takes a bit."""
    codes = sum(1 << 3 + 4 * at for at in range(5))
    bits = (width - 1) | (height - 1) << 14 | codes << 32
    body = b"/" + bits.to_bytes(8, "little")
    parts = b"VP8L" + struct.pack("<I", len(body)) + body + b"\0"
    if extended:
        size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        parts = b"VP8X" + struct.pack("<I", 10) + bytes(4) + size + parts
    return b"RIFF" + struct.pack("<I", len(parts) + 4) + b"WEBP" + parts


PICTURES = {
    "a.png": (png(12, 10), "image/png", "12 x 10"),
    "b": (gif(7, 5), "image/gif", "7 x 5"),
    "c.jpg": (jpeg(30, 20), "image/jpeg", "30 x 20"),
    "behind comments.jpg": (jpeg(30, 20, comment=3), "image/jpeg", "30 x 20"),
    "d.webp": (webp(10, 4), "image/webp", "10 x 4"),
    "e.webp": (webp(10, 4, extended=True), "image/webp", "10 x 4"),
}


def damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 0xFF,)) + data[at + 1 :]


BROKEN = {
    "signature.png": b"\x89PNG\r\n\x1a\n",
    "sum.png": damaged(png(12, 10), 50),
    "none.png": png(0, 0),
    "few rows.png": png(12, 10, rows=bytes(13 * 9)),
    "filter.png": png(12, 10, rows=b"\7" * 130),
    "no deflate.png": png(12, 10, rows=b"").replace(zlib.compress(b""), b"\x78\x9c" + bytes(6)),
    "header.png": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", b"\0\0\0\1\0\0\0\1\x09\5\0\0\0") + chunk(b"IEND", b""),
    "palette.png": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", b"\0\0\0\1\0\0\0\1\x08\3\0\0\0") + chunk(b"IEND", b""),
    "first.png": b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""),
    "bomb.png": png(1, 1, rows=bytes(20_000_000)),
    "sum of rows.png": png(2, 2).replace(
        zlib.compress(bytes(6)), changed := zlib.compress(bytes(6))[:-1] + b"\x99"
    ).replace(struct.pack(">I", zlib.crc32(b"IDAT" + zlib.compress(bytes(6)))), struct.pack(">I", zlib.crc32(b"IDAT" + changed))),
    "no such table.jpg": jpeg(8, 8).replace(b"\xff\xdb\0\x43\0", b"\xff\xdb\0\x43\1"),
    "no such codes.jpg": jpeg(8, 8).replace(b"\xff\xc4\0\x14\x10", b"\xff\xc4\0\x14\x11"),
    "no such part.jpg": jpeg(8, 8).replace(b"\xff\xda\0\x08\1\1", b"\xff\xda\0\x08\1\2"),
    "too many codes.jpg": jpeg(8, 8).replace(b"\x10\1" + bytes(16), b"\x10\3" + bytes(18)).replace(b"\xff\xc4\0\x14\x10", b"\xff\xc4\0\x16\x10"),
    "sampled.jpg": jpeg(8, 8).replace(b"\1\x11\0", b"\1\x15\0"),
    "two frames.jpg": jpeg(8, 8).replace(b"\xff\xda", segment(0xC0, bytes((8, 0, 8, 0, 8, 1, 1, 17, 0))) + b"\xff\xda"),
    "few codes.gif": gif(7, 5).replace(b"," + bytes(4) + b"\7\0\5\0", b"," + bytes(4) + b"\7\0\6\0"),
    "no code yet.gif": gif(2, 2).replace(b"\0\2\4", b"\0\2\4\xff\xff\xff\xff\0"),
    "not shown.webp": b"RIFF\x18\0\0\0WEBPVP8 \x0c\0\0\0" + b"\0\0\0\x9d\x01\x2a\1\0\1\0\0\0",
    "junk.jpg": b"\xff\xd8\xff" + bytes(range(200)),
    "no image.jpg": b"\xff\xd8\xff\xd9",
    "no tables.jpg": b"\xff\xd8" + segment(0xC0, bytes((8, 0, 8, 0, 8, 1, 1, 17, 0))) + segment(0xDA, bytes(6)) + b"\0\xff\xd9",
    "lossless.jpg": jpeg(8, 8).replace(b"\xff\xc0", b"\xff\xc3"),
    "parts.jpg": jpeg(8, 8).replace(b"\x08\x00\x08\x00\x08\x01", b"\x08\x00\x08\x00\x08\x02"),
    "no scan.jpg": jpeg(8, 8)[:-3] + b"\xff\xd9",
    "ten.gif": b"GIF89a\7\0\5\0",
    "empty.gif": b"GIF89a\7\0\5\0\0\0\0;",
    "no size.gif": gif(7, 5).replace(b"," + bytes(4) + b"\7\0", b"," + bytes(4) + b"\0\0"),
    "block.gif": gif(7, 5).replace(b",", b"\x99", 1),
    "code.gif": gif(7, 5).replace(b"\5\0\0\2", b"\5\0\0\x63"),
    "twelve.webp": b"RIFF\4\0\0\0WEBP",
    "no image.webp": webp(10, 4, extended=True)[:12] + b"VP8X\x0a\0\0\0" + bytes(10),
    "lossless.webp": damaged(webp(10, 4), 20),
    "lossy.webp": webp(10, 4).replace(b"VP8L", b"VP8 "),
}  # fmt: skip

"""Pictures: what a file says that it is, and whether all of it is there."""

from __future__ import annotations

import struct
import zlib

import pytest

from filepact.text.picture import flaw_of, picture_of
from tests.pictures import BROKEN, PICTURES, chunk


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_a_format_and_a_size_and_no_flaw(name: str) -> None:
    data, mime, pixels = PICTURES[name]
    found = picture_of(data)
    assert (found.mime, f"{found.width} x {found.height}") == (mime, pixels)
    assert flaw_of(found, data) == ""


@pytest.mark.parametrize("name", BROKEN)
def test_a_picture_that_does_not_decode_has_a_flaw(name: str) -> None:
    assert flaw_of(picture_of(BROKEN[name]), BROKEN[name])


@pytest.mark.parametrize("name", ["a.png", "b", "c.jpg", "d.webp", "e.webp"])
def test_a_picture_that_is_cut_anywhere_is_never_answered_as_one(name: str) -> None:
    data, *_ = PICTURES[name]
    # Behind its last image a GIF needs no trailer.
    for cut in range(len(data) - (name == "b")):
        picture = picture_of(data[:cut])
        assert picture is None or flaw_of(picture, data[:cut])


def packed_codes(pixels: bytes, size: int) -> bytes:
    """The codes of an image of a GIF, which grow with their number, in blocks."""
    clear, bits, known, last = 1 << size, "", {}, b""
    width = size + 1

    def put(code: int) -> None:
        nonlocal bits
        bits = f"{code:0{width}b}{bits}"

    def code_of(run: bytes) -> int:
        return run[0] if len(run) == 1 else known[run]

    put(clear)
    for at in range(len(pixels)):
        run = last + pixels[at : at + 1]
        if len(run) == 1 or run in known:
            last = run
            continue
        put(code_of(last))
        known[run] = clear + 2 + len(known)
        width += known[run] == 1 << width and width < 12
        if known[run] == 4_095:
            put(clear)
            known, width = {}, size + 1
        last = pixels[at : at + 1]
    put(code_of(last))
    put(clear + 1)
    bits = bits.rjust(-(-len(bits) // 8) * 8, "0")
    data = int(bits, 2).to_bytes(len(bits) // 8, "little")
    parts = [data[at : at + 255] for at in range(0, len(data), 255)]
    return bytes((size,)) + b"".join(bytes((len(part),)) + part for part in parts) + b"\0"


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("own", [b"\0", b"\x80" + bytes(6)], ids=["no colours", "own colours"])
def test_every_code_of_the_first_image_of_a_gif_is_followed(size: int, own: bytes) -> None:
    pixels = bytes(at * at * 7 % (1 << size) for at in range(99 * 90))
    head = b"GIF89a" + struct.pack("<HH", 99, 90) + b"\0\0\0," + bytes(4)
    for high, whole in ((90, True), (91, False)):
        data = head + struct.pack("<HH", 99, high) + own + packed_codes(pixels, size) + b";"
        assert (flaw_of(picture_of(data), data) == "") is whole
    # An image after the first one is not looked at so closely.
    more = head[13:] + struct.pack("<HH", 99, 91) + own + packed_codes(pixels, size) + b";"
    data = head + struct.pack("<HH", 99, 90) + own + packed_codes(pixels, size) + more
    assert not flaw_of(picture_of(data), data)


def test_every_way_of_a_png_to_order_its_rows_is_read() -> None:
    for width, height in ((1, 1), (4, 1), (3, 5), (8, 8), (9, 7)):
        rows = [
            (-(-(width - left) // right), -(-(height - top) // down))
            for left, top, right, down in (
                *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
                *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
            )
        ]
        packed = b"".join(
            (b"\0" + bytes(-(-wide * 3 // 1))) * high for wide, high in rows if wide > 0 < high
        )
        head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
        for data, whole in ((packed, True), (packed[:-1], False)):
            body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
            whole_one = b"\x89PNG\r\n\x1a\n" + body
            assert (flaw_of(picture_of(whole_one), whole_one) == "") is whole

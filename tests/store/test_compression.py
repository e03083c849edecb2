"""Compressed bytes: small beside what they are like, refused where they are damaged, whatever has written them."""

from __future__ import annotations

import random

import pytest

from filepact.compression import _zstd, compress, decompress
from filepact.store.content import pack, pack_against, unpack, unpack_against

TEXT = b"".join(b"line %d of the text, %d\n" % (at, at * 7919 % 1000) for at in range(2_000))

LIKE = TEXT[:9_000] + TEXT[500:2500] + TEXT[11_000:]

# What versions of filepact that used another library (zstandard 0.25) have put into journals.
EARLIER = bytes.fromhex("28b52ffd204b9d000030616263202e0a04003c03c00a7026f8c41101")
EARLIER_DELTA = bytes.fromhex(
    "2823000000000000c6a200000000000028b52ffd60d006ad03007032323139383837363534343332312620d0228915"
    "16e40107362fd30f02ac0eaaaa04e8402320e613d0030820ee0750405c10a080b821400171458002e28e0005c4250"
    "10a885b021410d7042820ee0950405c14a02071dc9128a83001df9108222e3c1245c48d71a288b832ce28cacd56c0"
    "040502"
)


def test_journals_of_earlier_versions_are_read() -> None:
    assert unpack(EARLIER, 75) == b"abc abc abc abc abc abc.\n" * 3
    assert unpack_against(EARLIER_DELTA, TEXT, len(LIKE)) == LIKE
    assert len(pack_against(LIKE, TEXT)) <= len(EARLIER_DELTA)


@pytest.mark.parametrize("size", [0, 1, 2, 31, 63, 64, 65])
def test_a_few_bytes_are_packed_as_the_library_packs_what_cannot_be_made_smaller(size: int) -> None:
    data = random.Random(size).randbytes(size)
    zstd = _zstd()
    level = {zstd.CompressionParameter.compression_level: 3}
    assert compress(data) == zstd.compress(data, options=level)
    assert decompress(compress(data), size) == data
    assert zstd.decompress(compress(data)) == data


def test_they_come_back_whole_alone_and_beside_what_they_are_like() -> None:
    changed = TEXT[:9_000] + b"one more line\n" * 200 + TEXT[12_000:]
    for data in (b"", b"x", TEXT, changed):
        assert decompress(compress(data)) == data
        assert unpack(pack(data), len(data)) == data
        assert unpack_against(pack_against(data, TEXT), TEXT, len(data)) == data
        assert decompress(compress(data, near=TEXT), len(data), near=TEXT) == data
    assert len(compress(changed, near=TEXT)) < len(compress(changed)) // 10


@pytest.mark.parametrize("near", [b"", TEXT], ids=["alone", "beside another"])
def test_what_is_damaged_is_refused_or_shows_in_its_id(near: bytes) -> None:
    chance = random.Random(7)
    packed = compress(TEXT[::-1], near=near)
    for size in (0, 1, 5, len(packed) // 2, len(packed) - 1):
        with pytest.raises(ValueError, match="bytes"):
            decompress(packed[:size], near=near)
    for _ in range(200):
        at = chance.randrange(len(packed))
        broken = packed[:at] + bytes([packed[at] ^ (1 << chance.randrange(8))]) + packed[at + 1 :]
        try:
            data = decompress(broken, len(TEXT), near=near)
        except ValueError:
            continue
        assert len(data) == len(TEXT)  # its content is checked by its id, where it is used


def test_a_frame_that_asks_for_other_sizes_than_it_should_is_refused() -> None:
    packed = compress(TEXT)
    for size in (0, len(TEXT) - 1, len(TEXT) + 1):
        with pytest.raises(ValueError, match="another length"):
            decompress(packed, size)
    with pytest.raises(ValueError, match="damaged"):
        decompress(b"no frame at all")

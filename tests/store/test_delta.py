"""Packing bytes, whole and against others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.store.content import pack, pack_against, unpack, unpack_against

PIECES = st.lists(
    st.sampled_from([b"", b"a", b"line one\n", b"line two\n", b"\0" * 40, b"xyz" * 99])
)
BYTES = st.one_of(st.binary(max_size=300), PIECES.map(b"".join))


@given(BYTES)
def test_what_was_packed_comes_back(data: bytes) -> None:
    assert unpack(pack(data), len(data)) == data


@given(BYTES, BYTES)
def test_what_was_packed_against_a_base_comes_back(data: bytes, base: bytes) -> None:
    assert unpack_against(pack_against(data, base), base, len(data)) == data


@given(BYTES, BYTES, BYTES, BYTES)
def test_an_edit_in_the_middle_comes_back(head: bytes, old: bytes, new: bytes, tail: bytes) -> None:
    base, data = head + old + tail, head + new + tail
    assert unpack_against(pack_against(data, base), base, len(data)) == data


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 3_000_000])
@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_one_line_in_a_large_text_takes_some_bytes(size: int, where: float) -> None:
    base = random.Random(1).randbytes(size)
    at = int(size * where)
    data = base[:at] + b"a new line\n" + base[at:]
    packed = pack_against(data, base)
    assert len(packed) < 100
    assert unpack_against(packed, base, len(data)) == data


def test_what_is_alike_near_by_is_not_stored_again() -> None:
    block = random.Random(1).randbytes(5_000)
    base = b"first\n" + block + b"last\n"
    data = b"changed\n" + block + b"changed too\n"
    assert len(pack_against(data, base)) < 200


@pytest.mark.parametrize(
    ("packed", "size"),
    [
        (b"", 5),
        (b"garbage", 5),
        (pack(b"hello"), 4),
        (pack(b"hello")[:-1], 5),
        (pack(b"hello" * 99)[:-3], 495),
    ],
)
def test_damage_is_an_error(packed: bytes, size: int) -> None:
    with pytest.raises(ValueError):
        unpack(packed, size)


def test_a_delta_does_not_fit_another_base() -> None:
    packed = pack_against(b"one two three", b"one 2 three")
    for wrong in (b"", b"one"):
        with pytest.raises(ValueError):
            unpack_against(packed, wrong, 13)
    with pytest.raises(ValueError):
        unpack_against(packed, b"one 2 three", 3)
    with pytest.raises(ValueError):
        unpack_against(packed[:7], b"one 2 three", 13)

"""Random texts with random damage: what comes back, what an edit leaves, and what an escape can become."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.text.codec import decode, rewrite, rewrite_whole
from filepact.text.edit import Edit, EditList
from filepact.text.query import Query, searchable
from filepact.text.raw_bytes import RawByteText, describe_raw_bytes, restore, with_escapes
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Callable

LETTERS = "aZ09 \\x\tfé大😀"
LINE = st.text(LETTERS, max_size=12)
RAW = st.sampled_from("\0\udcff\udc80\udce9\udcc3")
DAMAGED = st.lists(
    st.tuples(
        st.one_of(LINE, st.just(r"\xff"), st.just(r"\x00"), RAW),
        st.sampled_from(["", "\n", "\r\n"]),
    ),
    max_size=24,
).map(lambda pieces: "".join(piece + end for piece, end in pieces))
RAW_CHARACTERS = [*map(chr, range(0xDC80, 0xDD00)), "\0"]


def many(test: Callable[..., None]) -> Callable[..., None]:
    """A property test, which is one of the slow tests where it runs in full."""
    test = settings(max_examples=often(40, 2_000), deadline=None)(test)
    return pytest.mark.slow(test) if often(0, 1) else test


def raw_in(text: str) -> Counter[str]:
    return Counter(char for char in text if char in RAW_CHARACTERS)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """UTF-8 with one to five bytes that are none at random places, and enough text around them."""
    data = bytearray(("größe 大 text\n" * 40 + draw(DAMAGED)).encode("utf-8", "surrogateescape"))
    for byte in draw(
        st.lists(st.sampled_from([0, 0x80, 0xC3, 0xE6, 0xFF]), min_size=1, max_size=5)
    ):
        data.insert(draw(st.integers(0, len(data))), byte)
    cut = draw(st.sampled_from([0, 0, 1, 2]))
    return bytes(data[: len(data) - cut])


@many
@given(files(), st.data())
def test_damaged_text_comes_back_and_an_edit_keeps_every_other_byte(
    data: bytes, draw: st.DataObject
) -> None:
    source = decode(data)
    assert source.encoding.name == "utf-8"
    assert rewrite(source, EditList(())) == data
    shown = with_escapes(source.text)
    shown.encode()
    assert "\0" not in shown
    # Read and written back unchanged is unchanged.
    assert rewrite_whole(source, restore(source.text, shown)) == data
    start = draw.draw(st.integers(0, len(source.text)))
    end = draw.draw(st.integers(start, min(len(source.text), start + 9)))
    put = draw.draw(LINE)
    before, after = (
        part.encode("utf-8", "surrogateescape") for part in (source.text[:start], source.text[end:])
    )
    assert rewrite(source, EditList((Edit(start, end, put),))) == before + put.encode() + after


@many
@given(files())
def test_lines_beside_damage_are_found(data: bytes) -> None:
    text = searchable(data + b"\nneedle 1\nbad \xff needle \0 2\nneedle 3", name="a.log")
    assert text is not None
    lines = text.split(b"\n")
    found = Query.compile("needle").find(text)
    assert [lines[one.line - 1] for one in found] == [line for line in lines if b"needle" in line]
    assert len(Query.compile("größe 大").find(text)) == sum(
        "größe 大".encode() in line for line in lines
    )


@many
@given(DAMAGED, DAMAGED)
def test_new_text_makes_no_raw_byte(there: str, sent: str) -> None:
    sent = with_escapes(sent)
    found = restore(there, sent)
    assert with_escapes(found) == sent
    assert raw_in(found) <= raw_in(there)
    assert restore(there, with_escapes(there)) == there


@many
@given(DAMAGED, st.data())
def test_a_place_in_the_shown_text_is_one_in_the_text(text: str, draw: st.DataObject) -> None:
    shown = RawByteText(text)
    start = draw.draw(st.integers(0, len(text)))
    end = draw.draw(st.integers(start, len(text)))
    sent = (Edit(len(with_escapes(text[:start])), len(with_escapes(text[:end])), "new"),)
    assert shown.edits(EditList(sent)) == EditList((Edit(start, end, "new"),))
    for at, char in enumerate(text):
        place = len(with_escapes(text[:at]))
        for inner in range(1, len(with_escapes(char))):
            assert shown.edits(EditList((Edit(place + inner, place + inner, "x"),))) is None


@pytest.mark.parametrize(
    ("there", "sent", "wanted"),
    [
        ("a \udcff b", r"A \xff B", "A \udcff B"),
        ("a \udcff b", r"a \xfe b", r"a \xfe b"),
        ("a \udcff b", r"a \xff \xff b", "a \udcff \\xff b"),
        ("one \udcff\ntwo\n", "zero\none \\xff\r\nTwo\n", "zero\none \udcff\r\nTwo\n"),
        ("\\xff \udcff\n", "\\xff 1 \\xff\n", "\\xff 1 \udcff\n"),
        ("x\0\n", "x\\x00\ny\\x00\n", "x\0\ny\\x00\n"),
        ("clean\n", r"\xff", r"\xff"),
        ("half \ud83d of a pair", r"half \ud83d, of", "half \ud83d, of"),
    ],
)
def test_escapes_stand_for_the_bytes_that_were_there(there: str, sent: str, wanted: str) -> None:
    assert restore(there, sent) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clean é\n", ""),
        ("a\n\udcff\n", r"1 byte that is no text (\xff), in line 2"),
        ("\0a\rb\0\r", r"2 bytes that are no text (\x00), in lines 1, 2"),
        ("\udcff\n" * 9, r"9 bytes that are no text (\xff), in lines 1, 2, 3, 4, 5, ..."),
    ],
)
def test_raw_bytes_are_counted_and_said_with_their_lines(text: str, said: str) -> None:
    assert describe_raw_bytes(text) == said

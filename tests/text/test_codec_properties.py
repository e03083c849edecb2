from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filepact.errors import EncodingUnsafeError
from filepact.text.codec import decode, detect, encode, rewrite
from filepact.text.edit import Edit, EditList

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\r", ""])
LINES = st.lists(st.tuples(TEXTS, ENDS), max_size=8).map(
    lambda lines: "".join(line + end for line, end in lines)
)
MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
EIGHT_BIT = ["latin-1", "cp1252", "cp1251", "shift-jis", "euc-kr", "gb18030"]


def comes_back(data: bytes) -> bool:
    """Whether the bytes are text; if so they have to be the same again after decoding."""
    encoding = detect(data, complete=True)
    if encoding is None:
        return False
    source = decode(data)
    assert source.encoding == encoding
    assert rewrite(source, EditList(())) == data
    if encoding.known:
        assert encode(source.text, encoding) == data
    return True


@given(st.sampled_from(sorted(MARKS)), LINES)
def test_marked_text_is_known_and_comes_back(codec: str, text: str) -> None:
    data = MARKS[codec] + text.encode(codec)
    assert comes_back(data)
    if not (codec == "utf-16-le" and text.startswith("\0")):
        assert decode(data).text == text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200))
def test_utf_8_without_nul_is_text_unless_it_starts_as_a_binary_format(text: str) -> None:
    data = text.encode()
    if comes_back(data) and not data.startswith(codecs.BOM_UTF8):
        assert decode(data).text == text


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=2),
    st.sampled_from(sorted(MARKS)),
)
def test_wide_ascii_needs_no_mark(text: str, codec: str) -> None:
    assert decode(text.encode(codec)).text == text


@given(st.sampled_from(EIGHT_BIT), LINES)
def test_text_in_an_8_bit_encoding_comes_back(codec: str, text: str) -> None:
    comes_back(text.encode(codec, "ignore"))


@given(
    st.one_of(
        st.binary(max_size=300),
        st.tuples(st.sampled_from(sorted(MARKS.values())), st.binary()).map(b"".join),
    )
)
@example(b"\xff\xfe\x00\x00")
@example(b"\xff\xfe\x00\x00\x00\x00\x11\x00")
@example(b"\xef\xbb\xbf\xef\xbb\xbf")
@example(b"\xfe\xff\xd8\x00")
@example(b"\xef\xbb\xbf\xff")
def test_any_bytes_that_count_as_text_come_back(data: bytes) -> None:
    comes_back(data)
    detect(data, complete=False)


@st.composite
def files_with_edits(draw: st.DrawFn) -> tuple[bytes, EditList]:
    codec = draw(st.sampled_from([*sorted(MARKS), "latin-1"]))
    text = draw(LINES)
    data = MARKS.get(codec, b"") + text.encode(codec, "ignore")
    if detect(data, complete=True) is None:
        data = b"plain\r\ntext\n"
    size = len(decode(data).text)
    start = draw(st.integers(0, size))
    end = draw(st.integers(start, size))
    return data, EditList((Edit(start, end, draw(TEXTS)),))


@given(files_with_edits())
def test_bytes_outside_an_edit_are_what_they_were(case: tuple[bytes, EditList]) -> None:
    data, edits = case
    source = decode(data)
    (edit,) = edits.edits
    try:
        after = rewrite(source, edits)
    except EncodingUnsafeError:
        assert not source.encoding.known
        return
    before_edit = rewrite(source, EditList((Edit(edit.start, len(source.text), ""),)))
    from_edit_on = rewrite(source, EditList((Edit(0, edit.end, ""),)))
    assert after.startswith(before_edit)
    assert after.endswith(from_edit_on[len(source.encoding.bom) :])


@pytest.mark.parametrize("codec", sorted(MARKS))
@given(text=st.text(min_size=1, max_size=20))
def test_text_put_in_is_read_back(codec: str, text: str) -> None:
    source = decode(MARKS[codec] + "a|b".encode(codec))
    edits = EditList((Edit(1, 2, text),))
    assert decode(rewrite(source, edits)).text == f"a{text}b"

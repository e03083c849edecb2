from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filepact.errors import EncodingUnsafeError
from filepact.text.codec import NamedEncoding, decode, detect, encode, rewrite
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


GIVEN = [
    *("iso8859-1", "cp1250", "cp1251", "cp1252", "cp1253", "koi8-r", "ascii", "mac-roman"),
    *("shift_jis", "cp932", "gb18030", "gbk", "euc_kr", "euc_jp", "big5", "big5hkscs"),
    *("iso2022_jp", "iso2022_jp_2004", "utf-16-le", "utf-16-be", "utf-32-le", "utf-8"),
]
WORDS = ["日本", "大きさ", "한국", "Привет", "größe", "žluť", "ελλ", "x = 1", "\t", "~\\", "ｱ", "①"]


def lines_of(data: bytes, encoding: str) -> list[bytes]:
    """Lines as bytes, for a test that must not believe the decoder."""
    feed = "\n".encode(encoding)
    if feed not in data:
        feed = "\r".encode(encoding)
    lines = [b""]
    for at in range(0, len(data), len(feed)):
        lines[-1] += data[at : at + len(feed)]
        if data[at : at + len(feed)] == feed:
            lines.append(b"")
    return lines


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, NamedEncoding | None]:
    """Text in every kind of encoding, and bytes that nobody knows anything about."""
    kind = draw(st.sampled_from(["marked", "given", "declared", "wide", "unknown", "random"]))
    words = st.one_of(TEXTS, st.sampled_from(WORDS))
    pieces = draw(st.lists(st.tuples(words, ENDS), max_size=8))
    text = "".join(line + end for line, end in pieces)
    if kind == "marked":
        codec = draw(st.sampled_from(sorted(MARKS)))
        return MARKS[codec] + text.encode(codec), None
    if kind == "wide":
        codec = draw(st.sampled_from(sorted(MARKS)))
        return ("plain text\n" * 9 + text).encode(codec), None
    if kind == "random":
        codec = draw(st.sampled_from(GIVEN))
        given = draw(st.sampled_from([None, NamedEncoding(codec, "settings")]))
        return draw(st.binary(max_size=200)), given
    codec = draw(st.sampled_from(GIVEN))
    if kind == "declared":
        text = f"# coding: {codec}\n{text}"
        return text.encode("ascii" if codec.startswith("utf-") else codec, "ignore"), None
    data = text.encode(codec, "ignore")
    return data, NamedEncoding(codec, "settings") if kind == "given" else None


@settings(max_examples=4 * settings().max_examples)
@given(files(), st.data())
def test_all_bytes_outside_the_edited_lines_are_what_they_were(
    file: tuple[bytes, NamedEncoding | None], draw: st.DataObject
) -> None:
    data, given = file
    if detect(data, complete=True, name="a.py", given=given) is None:
        return
    source = decode(data, name="a.py", given=given)
    size = len(source.text)
    start = draw.draw(st.integers(0, size))
    end = draw.draw(st.integers(start, min(size, start + 20)))
    put = draw.draw(st.one_of(TEXTS, st.sampled_from(WORDS)))
    if not source.encoding.known:
        put = put.encode("ascii", "ignore").decode()
    edits = EditList((Edit(start, end, put),))
    wanted = edits.apply(source.text)
    try:
        after = rewrite(source, edits)
    except EncodingUnsafeError:
        assert source.encoding.known
        return
    trimmed = edits.trim(source.text)
    if not trimmed:
        assert after == data
        return
    if source.encoding.damaged:
        assert after == source.encoding.bom + wanted.encode("utf-8", "surrogateescape")
    elif source.encoding.known and "\0" not in wanted:
        again = decode(after, name="a.py", given=given)
        assert again.text == wanted.removeprefix("\ufeff" if source.encoding.bom else "")
    first, last = trimmed.edits[0].start, trimmed.edits[0].end
    codec = source.encoding.name
    separator = "\n" if "\n" in source.text else "\r"
    head = source.text.count(separator, 0, first)
    tail = source.text.count(separator, last)
    body, changed = data.removeprefix(source.encoding.bom), after.removeprefix(source.encoding.bom)
    old, new = lines_of(body, codec), lines_of(changed, codec)
    assert changed.startswith(b"".join(old[:head]))
    assert changed.endswith(b"".join(old[len(old) - tail :]) if tail else b"")
    if separator == "\n" and "\n" in wanted:
        assert new[:head] == old[:head]


@pytest.mark.parametrize("codec", sorted(MARKS))
@given(text=st.text(min_size=1, max_size=20))
def test_text_put_in_is_read_back(codec: str, text: str) -> None:
    source = decode(MARKS[codec] + "a|b".encode(codec))
    edits = EditList((Edit(1, 2, text),))
    assert decode(rewrite(source, edits)).text == f"a{text}b"

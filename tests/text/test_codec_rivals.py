"""Files about which two witnesses disagree, and other traps: nothing is ever written in the wrong one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from filepact.errors import EncodingUnsafeError
from filepact.text.codec import NamedEncoding, SourceText, decode, detect, encode_new, rewrite
from filepact.text.edit import Edit, EditList

LATIN = NamedEncoding("iso8859-1", ".editorconfig")
LIES = [
    ("a.txt", "", LATIN),
    ("a.py", "# coding: latin-1\n", None),
    ("a.html", '<meta charset="windows-1252">\n', None),
    ("a.css", '@charset "iso-8859-15";\n', None),
    ("a.xml", '<?xml version="1.0" encoding="ISO-8859-1"?>\n', None),
    ("a.c", "/* vim: set fileencoding=latin1 : */\n", None),
    ("a.el", ";; -*- coding: koi8-r -*-\n", None),
]


def replacing(source: SourceText, old: str, new: str) -> EditList:
    start = source.text.index(old)
    return EditList((Edit(start, start + len(old), new),))


@pytest.mark.parametrize(("name", "line", "said"), LIES, ids=[name for name, _, _ in LIES])
def test_utf_8_that_is_said_to_be_something_else_takes_only_what_is_the_same_in_both(
    name: str, line: str, said: NamedEncoding | None
) -> None:
    data = f"{line}größe = 1\n".encode()
    source = decode(data, name=name, given=said)
    assert "größe" in source.text
    assert source.encoding.rival
    assert source.encoding.rival in source.encoding.traced
    assert detect(data, complete=True, name=name, given=said) == source.encoding
    changed = data.replace(b"= 1", b"= 22")
    assert rewrite(source, replacing(source, "= 1", "= 22")) == changed
    assert rewrite(source, replacing(source, "größe = 1", "# größe = 22")) == changed.replace(
        b"gr", b"# gr"
    )
    for put in ("é", "größer ö"):
        with pytest.raises(EncodingUnsafeError) as caught:
            rewrite(source, replacing(source, "größe", put), name=name)
        assert "UTF-8" in caught.value.hint
        assert caught.value.details["line"] == 1 + bool(line)


def test_a_line_that_was_wrong_can_be_corrected_and_then_everything_can_be_written() -> None:
    data = "# coding: latin-1\nname = 'é'\n".encode()
    source = decode(data, name="a.py")
    after = rewrite(source, replacing(source, "latin-1", "utf-8"))
    assert after == data.replace(b"latin-1", b"utf-8")
    again = decode(after, name="a.py")
    assert again.encoding.rival == ""
    assert rewrite(again, replacing(again, "é", "☃")).endswith("'☃'\n".encode())


def test_a_person_and_a_caller_are_believed() -> None:
    for origin in ("settings", "caller"):
        source = decode("é".encode(), given=NamedEncoding("cp1252", origin))
        assert (source.text, source.encoding.rival) == ("Ã©", "")
    assert decode("é".encode(), given=NamedEncoding("utf-8", ".editorconfig")).encoding.rival == ""


def test_a_file_that_says_itself_that_it_is_utf_8_is_believed_before_editorconfig() -> None:
    data = "# coding: utf-8\n'é'\n".encode()
    source = decode(data, name="a.py", given=LATIN)
    assert source.encoding.rival == ""
    assert rewrite(source, replacing(source, "é", "☃")) == data.replace("é".encode(), "☃".encode())
    # Its bytes have to bear it out.
    assert decode(b"# coding: utf-8\n'\xe9'\n", name="a.py", given=LATIN).text.endswith("'é'\n")


def test_ascii_is_never_disputed() -> None:
    source = decode(b"x = 1\n", given=LATIN)
    assert source.encoding.traced == "iso8859-1 (.editorconfig)"
    assert rewrite(source, replacing(source, "1", "é")) == b"x = \xe9\n"


@pytest.mark.parametrize("text", ["Ã©", "x = 'Â»'\n"])
def test_text_that_would_read_back_as_utf_8_is_not_written_in_another_encoding(text: str) -> None:
    assert "é" in decode("é".encode(), given=LATIN).text
    with pytest.raises(EncodingUnsafeError):
        encode_new(text, "a.txt", LATIN)
    for data in (b"old\n", b"old \xe9\n"):
        source = decode(data, given=LATIN)
        with pytest.raises(EncodingUnsafeError):
            rewrite(source, EditList((Edit(0, len(source.text), text),)))
    assert encode_new(f"{text} é ", "a.txt", LATIN) == f"{text} é ".encode("latin-1")


@pytest.mark.parametrize("codec", ["gb18030", "shift_jis", "euc_kr", "cp1252"])
def test_a_line_that_would_make_a_rival_is_not_put_in(codec: str) -> None:
    source = decode("x = 'ß²'\n".encode(), name="a.py")
    with pytest.raises(EncodingUnsafeError):
        rewrite(source, EditList((Edit(0, 0, f"# coding: {codec}\n"),)))


def test_no_character_of_a_rival_is_torn() -> None:
    # Six bytes: two characters of UTF-8, three of GB 18030.
    data = "y = '大大'\n".encode()
    said = NamedEncoding("gb18030", ".editorconfig")
    source = decode(data, given=said)
    assert source.encoding.rival == "gb18030"
    whole = replacing(source, "大大", "")
    assert rewrite(source, whole) == data.replace("大大".encode(), b"")
    first = source.text.index("大")
    for torn in ((first, first + 1, ""), (first + 1, first + 1, "x"), (first, first + 2, "大")):
        with pytest.raises(EncodingUnsafeError):
            rewrite(source, EditList((Edit(*torn),)))
    assert rewrite(source, replacing(source, "y", "zz")) == data.replace(b"y", b"zz")


RIVALS = ["iso8859-1", "cp1252", "koi8-r", "gb18030", "shift_jis", "euc_kr", "big5"]


@settings(max_examples=3 * settings().max_examples)
@given(st.sampled_from(RIVALS), st.lists(st.sampled_from("aß²¢大é \nя"), max_size=12), st.data())
def test_an_edit_of_a_disputed_file_means_the_same_in_both_encodings(
    codec: str, letters: list[str], draw: st.DataObject
) -> None:
    data = "".join(letters).encode()
    source = decode(data, given=NamedEncoding(codec, ".editorconfig"))
    assume(source.encoding.rival)
    rival = source.encoding.rival
    start = draw.draw(st.integers(0, len(source.text)))
    end = draw.draw(st.integers(start, len(source.text)))
    put = draw.draw(st.sampled_from(["", "x", "a\nb", "é", "~"]))
    try:
        after = rewrite(source, EditList((Edit(start, end, put),)))
    except EncodingUnsafeError:
        return
    assert after.decode() == source.text[:start] + put + source.text[end:]
    if after == data:
        return  # nothing has changed in either, wherever the edit of nothing stands
    first, last = (len(source.text[:at].encode()) for at in (start, end))
    if put.isascii():
        kept = (data[:first].decode(rival), data[last:].decode(rival))
        assert after.decode(rival) == kept[0] + put + kept[1]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_wide_file_without_a_mark_can_be_given_one(codec: str) -> None:
    data = "plain text\n".encode(codec)
    source = decode(data)
    marked = rewrite(source, EditList((Edit(0, 0, "\ufeff"),)))
    assert marked == "\ufeff".encode(codec) + data
    assert decode(marked).encoding.bom
    both = EditList((Edit(0, len(source.text), "\ufeff大きさ"),))
    assert rewrite(source, both) == "\ufeff大きさ".encode(codec)


def test_a_mark_can_be_given_to_a_file_that_a_person_calls_utf_8() -> None:
    source = decode("é\n".encode(), given=NamedEncoding("utf-8", "settings"))
    assert rewrite(source, EditList((Edit(0, 0, "\ufeff"),))) == "\ufeffé\n".encode()


@pytest.mark.parametrize(
    ("said", "text", "codec"),
    [
        ("gb2312", "朱镕基", "gb18030"),
        ("gbk", "𠀀", "gb18030"),
        ("shift_jis", "①髙", "cp932"),
        ("euc-kr", "똠방", "cp949"),
        ("big5", "裏€", "cp950"),
    ],
)
def test_an_old_name_stands_for_the_wider_table_that_is_really_written(
    said: str, text: str, codec: str
) -> None:
    data = f"# coding: {said}\nx = '{text}'\n".encode(codec)
    source = decode(data, name="a.py")
    assert source.text.endswith(f"x = '{text}'\n")
    assert source.encoding.traced == f"{codec} (declared)"
    assert rewrite(source, replacing(source, "x", "yy")) == data.replace(b"x", b"yy")


def test_the_end_of_what_was_read_of_a_file_is_not_the_end_of_the_file() -> None:
    head = b"a\n" * 2_000 + b"# vim: fenc=koi8-r:\n"
    cut = detect(head, complete=False)
    whole = detect(head, complete=True)
    assert cut is not None
    assert whole is not None
    assert (cut.traced, whole.traced) == ("utf-8", "koi8-r (declared)")


# -- several forms of one character -------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "twice"),
    [
        ("cp932", b"\xfb\xfc"),  # as Windows writes it; Python has NEC's form
        ("cp932", b"\xfa\x54"),
        ("cp932", b"\x87\x90"),
        ("big5", b"\xa1\xc3"),
        ("cp950", b"\xa2\xcc"),
        ("big5hkscs", b"\x88\x62\xa1\xc3"),
        ("johab", b"\x84B"),
    ],
)
@pytest.mark.parametrize("size", [1, 30])
def test_of_two_forms_of_a_character_each_stays_what_it_is(
    codec: str, twice: bytes, size: int
) -> None:
    line = twice * size + b" = 2" + twice + b"\r\n"
    source = decode(line * 2, given=NamedEncoding(codec, "settings"))
    for old, new in ((" = 2", "3"), ("2", "中" if codec != "johab" else "한"), ("=", "")):
        changed = (line * 2).replace(old.encode(), new.encode(codec), 1)
        assert rewrite(source, replacing(source, old, new)) == changed
    first = EditList((Edit(0, len(twice.decode(codec)), ""),))
    assert rewrite(source, first) == (line * 2)[len(twice) :]


def test_several_edits_of_a_line_with_such_characters_are_made_together() -> None:
    data = b"a\xfb\xfcb\xfb\xfcc\n\xfb\xfcd\n"
    source = decode(data, given=NamedEncoding("cp932", "settings"))
    places = (source.text.index(letter) for letter in "abcd")
    edits = EditList(tuple(Edit(at, at + 1, "日") for at in places))
    wanted = data
    for letter in (b"a", b"b", b"c\n", b"d"):
        wanted = wanted.replace(letter, "日".encode("cp932") + letter[1:])
    assert rewrite(source, edits) == wanted


@pytest.mark.parametrize("other", [b"", b"\xa2\xa4"])
def test_two_characters_that_share_their_bytes_are_not_torn(other: bytes) -> None:
    data = b"\x88\x62 " + other + b"\n"
    source = decode(data, given=NamedEncoding("big5hkscs", "settings"))
    with pytest.raises(EncodingUnsafeError):
        rewrite(source, EditList((Edit(1, 1, "x"),)))


def test_four_bytes_of_gb_18030_are_one_character() -> None:
    text = "𠀀 = ḿ\n第二行\n"
    data = text.encode("gb18030")
    source = decode(data, given=NamedEncoding("gb18030", "settings"))
    for old, new in (("𠀀", "𠀁"), ("ḿ", ""), ("第", "€é")):
        edits = replacing(source, old, new)
        assert rewrite(source, edits) == edits.apply(text).encode("gb18030")

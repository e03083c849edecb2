from __future__ import annotations

import codecs
import gzip
import sys
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from filepact.errors import BinaryFileError, EncodingUnsafeError
from filepact.text.codec import (
    Encoding,
    NamedEncoding,
    SourceText,
    decode,
    detect,
    encode,
    encode_new,
    rewrite,
    rewrite_whole,
)
from filepact.text.edit import Edit, EditList

if TYPE_CHECKING:
    from filepact.text.detect_encoding import Origin

SOURCE = "# Größe, 大きさ, 😀\r\nx = 1\n\tif x:\n" * 3
ASCII = "def f(a, b):\n    return a + b\n" * 4
NOTHING = EditList(())


def replacing(source: SourceText, old: str, new: str) -> EditList:
    start = source.text.index(old)
    return EditList((Edit(start, start + len(old), new),))


def zipped() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "text")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (b"", "utf-8"),
        (ASCII.encode(), "utf-8"),
        (SOURCE.encode(), "utf-8"),
        (b"\x1b[31mred\x1b[0m \x07\n", "utf-8"),
        (codecs.BOM_UTF8, "utf-8 with BOM"),
        (codecs.BOM_UTF8 + SOURCE.encode(), "utf-8 with BOM"),
        (codecs.BOM_UTF16_LE + SOURCE.encode("utf-16-le"), "utf-16-le with BOM"),
        (codecs.BOM_UTF16_BE + SOURCE.encode("utf-16-be"), "utf-16-be with BOM"),
        (codecs.BOM_UTF32_LE + SOURCE.encode("utf-32-le"), "utf-32-le with BOM"),
        (codecs.BOM_UTF32_BE + SOURCE.encode("utf-32-be"), "utf-32-be with BOM"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\x00", "utf-16-le with BOM"),
        (codecs.BOM_UTF16_LE + b"\x00\x00a\x00", "utf-16-le with BOM"),
        (ASCII.encode("utf-16-le"), "utf-16-le"),
        (ASCII.encode("utf-16-be"), "utf-16-be"),
        (ASCII.encode("utf-32-le"), "utf-32-le"),
        (ASCII.encode("utf-32-be"), "utf-32-be"),
        ("Größe: 大きさ of the 😀 thing\r\n".encode("utf-16-le"), "utf-16-le"),
        ("Größe\n".encode("latin-1"), "unknown 8-bit (shown as Latin-1)"),
        ("“quoted” \u2013 5 €\n".encode("cp1252"), "unknown 8-bit (shown as Latin-1)"),
        ("日本語のテキスト\n".encode("shift-jis"), "unknown 8-bit (shown as Latin-1)"),
        ("Привет\n".encode("koi8-r"), "unknown 8-bit (shown as Latin-1)"),
        (codecs.BOM_UTF8 + b"caf\xe9\n", "utf-8 with BOM"),
        ("Größe 大\n\udcff raw\n".encode("utf-8", "surrogateescape"), "utf-8"),
        ("log 日\udce6\udc97".encode("utf-8", "surrogateescape"), "utf-8"),
        (b"cut \xe6\x97", "utf-8"),
        (b"\x97\xa5 cut\n", "utf-8"),
        (b"b\xffd \xfe byte\n", "utf-8"),
        (b"\xfeorn\n", "unknown 8-bit (shown as Latin-1)"),
        (b"text with a NUL\x00 in it\n", "utf-8"),
        (b"a\x00b\x00c\x00\n" * 2 + b"plain line\n" * 200, "utf-8"),
        (b"caf\xe9 and a NUL\x00\n", "unknown 8-bit (shown as Latin-1)"),
        ("Gr\xf6\xdfe Ã¤\n".encode("latin-1"), "unknown 8-bit (shown as Latin-1)"),
        (b"GIF89a is the name of a format\n", "utf-8"),
        (b"PK is what they call him\n", "utf-8"),
    ],
)
def test_the_encoding_is_told_by_evidence_and_every_byte_comes_back(
    data: bytes, label: str
) -> None:
    source = decode(data)
    assert source.encoding.label == label
    assert "\ufeff" not in source.text
    assert rewrite(source, NOTHING) == data
    assert detect(data, complete=True) == source.encoding
    if source.encoding.known:
        assert encode(source.text, source.encoding) == data


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        b"\xff\xd8\xff\xe0abc",
        b"GIF89a\x10\x10\xf7 ",
        zipped(),
        gzip.compress(b"text", mtime=0),
        b"%PDF-1.7\n1 0 obj\n",
        b"\x7fELF\x01\x01",
        b"\xca\xfe\xba\xbe4",
        b"SQLite format 3\x00" + bytes(84),
        b"text with many NULs" + b"\x00 in it\n" * 12,
        b"!<arch>\nmain.o/\n",
        b"notes.txt" + bytes(248) + b"ustar\x0000" + b"text\n" * 4_000,
        "\u65e5\u672c\u8a9e\n".encode("utf-16-le") * 8,
        bytes(64),
        bytes(range(256)),
        b"\x00\x01\x02\x03" * 16,
        b"\x01\x02\x03\x04\xff\xfe\x80" * 20,
        b"".join(n.to_bytes(2, "little") for n in range(1, 200)),
        b"".join(n.to_bytes(2, "little") for n in range(900, 1_000)),
        b"a\x00",
        ASCII.encode("utf-16-le") + b"\x00\xd8",
        codecs.BOM_UTF16_LE + b"a\x00\x01\x00b",
        codecs.BOM_UTF32_LE + b"a\x00\x00\x00b",
        Path(sys.executable).read_bytes()[:100_000],
    ],
    ids=lambda data: repr(data[:8]),
)
def test_what_is_not_text_is_refused(data: bytes) -> None:
    assert detect(data, complete=True) is None
    with pytest.raises(BinaryFileError) as caught:
        decode(data, name="a.bin")
    assert "a.bin" in caught.value.message
    assert "base64" in caught.value.hint


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_half_a_unit_at_the_end_of_named_utf_16_is_kept(codec: str) -> None:
    data = "größer\n".encode(codec) + b"\7"
    source = decode(data, given=NamedEncoding(codec, "caller"))
    assert (source.text, source.encoding.damaged) == ("größer\n\udc07", True)
    assert rewrite(source, replacing(source, "größer", "x")) == "x\n".encode(codec) + b"\7"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_head_cut_anywhere_is_told_as_the_whole_is(codec: str) -> None:
    data = (ASCII + "größer 😀 大").encode(codec)
    whole = detect(data, complete=True)
    assert whole is not None
    for cut in range(40, len(data)):
        assert detect(data[:cut], complete=False) == whole


@pytest.mark.parametrize("codec", ["latin-1", "shift-jis", "cp1251"])
def test_a_file_in_an_unknown_encoding_is_carried(codec: str) -> None:
    text = {"latin-1": "Größe = 1\n", "shift-jis": "日本 = 1\n", "cp1251": "Привет = 1\n"}[codec]
    data = text.encode(codec)
    source = decode(data)
    assert not source.encoding.known
    assert rewrite(source, replacing(source, "1", "22")) == data.replace(b"1", b"22")
    # The whole line sent back as it was shown: what was there already is put back.
    line = source.text
    assert rewrite(source, replacing(source, line, line.replace("1", "22"))) == data.replace(
        b"1", b"22"
    )
    both = "# " + line.replace("1", "22")
    assert rewrite(source, replacing(source, line, both)) == b"# " + data.replace(b"1", b"22")


@pytest.mark.parametrize(
    ("new", "column"),
    [("ä = 1", 1), ("é = ä", 5), ("é = é", 5), ("\ufeffé = 1", 1), ("é = 大", 5)],
)
def test_nothing_outside_ascii_is_put_into_a_file_in_an_unknown_encoding(
    new: str, column: int
) -> None:
    source = decode(b"x = 0\n\xe9 = 1\n")
    with pytest.raises(EncodingUnsafeError) as caught:
        rewrite(source, replacing(source, "é = 1", new), name="a.txt")
    assert caught.value.details["line"] == 2
    assert caught.value.details["column"] == column
    with pytest.raises(EncodingUnsafeError):
        encode(source.text, source.encoding)
    assert encode("ascii", source.encoding) == b"ascii"


@pytest.mark.parametrize(
    ("text", "encoding", "character", "line", "column"),
    [
        ("a\nb\ud800", Encoding("utf-8"), "U+D800", 2, 2),
        ("a\r\n\r\n é ☃", Encoding("latin-1"), "U+2603", 3, 4),
        ("a\rbc☃", Encoding("ascii"), "U+2603", 2, 3),
        ("\x80", Encoding("latin-1", known=False), "U+0080", 1, 1),
    ],
)
def test_a_character_that_cannot_be_written_is_named_with_its_place(
    text: str, encoding: Encoding, character: str, line: int, column: int
) -> None:
    with pytest.raises(EncodingUnsafeError) as caught:
        encode(text, encoding, name="a.txt")
    assert character in caught.value.message
    assert f"line {line}, column {column}" in caught.value.message
    assert caught.value.hint
    assert caught.value.details["character"] == character


def test_a_character_is_named() -> None:
    with pytest.raises(EncodingUnsafeError, match="SNOWMAN"):
        encode("☃", Encoding("cp1252"))
    with pytest.raises(EncodingUnsafeError, match="LONE SURROGATE"):
        encode_new("\udc80", "a.txt")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_lone_surrogates_of_a_file_are_carried_but_none_is_put_in(codec: str) -> None:
    mark = "\ufeff".encode(codec)
    data = mark + "a\ud800b\udc00c".encode(codec, "surrogatepass")
    source = decode(data)
    assert encode(source.text, source.encoding) == data
    changed = rewrite(source, replacing(source, "b", "x"))
    assert changed == mark + "a\ud800x\udc00c".encode(codec, "surrogatepass")
    with pytest.raises(EncodingUnsafeError):
        rewrite(source, replacing(source, "b", "\ud801"))
    # One that stands within what is replaced can stand in what comes.
    changed = rewrite(source, replacing(source, "a\ud800b", "x\ud800y"))
    assert changed == mark + "x\ud800y\udc00c".encode(codec, "surrogatepass")
    with pytest.raises(EncodingUnsafeError):
        rewrite(source, replacing(source, "a\ud800b", "x\ud800y\ud800z"))


def test_a_new_file_is_utf_8_and_may_hold_anything_but_lone_surrogates() -> None:
    assert encode_new("é\0\r\n", "a.txt") == "é\0\r\n".encode()
    assert decode(encode_new("\ufeffé", "a.txt")).encoding.label == "utf-8 with BOM"


def test_a_mark_that_is_sent_along_is_not_written_twice() -> None:
    data = codecs.BOM_UTF8 + b"old\n"
    source = decode(data)
    assert rewrite(source, EditList((Edit(0, 3, "\ufeffnew"),))) == codecs.BOM_UTF8 + b"new\n"
    # One that stands in the text already is text.
    double = decode(codecs.BOM_UTF8 + data)
    assert double.text == "\ufeffold\n"
    assert rewrite(double, NOTHING) == codecs.BOM_UTF8 + data
    # Without a mark in the file the author may want one.
    plain = decode(b"old\n")
    assert rewrite(plain, EditList((Edit(0, 0, "\ufeff"),))) == data


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-32-be"])
def test_a_wide_text_without_a_mark_stays_one_that_is_told(codec: str) -> None:
    source = decode("plain text".encode(codec))
    assert rewrite(source, replacing(source, "plain", "é")) == "é text".encode(codec)
    assert rewrite(source, replacing(source, "plain text", "")) == b""
    with pytest.raises(EncodingUnsafeError, match="byte-order mark"):
        rewrite(source, replacing(source, "plain text", "大きさ"))
    named = decode("大きさ".encode(codec), given=NamedEncoding(codec, "caller"))
    assert rewrite(named, replacing(named, "き", "x")) == "大xさ".encode(codec)


@pytest.mark.parametrize(
    "codec",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "latin-1"],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "mixed"])
def test_only_the_bytes_of_the_edited_line_change(codec: str, ends: str) -> None:
    lines = [f"line é {n}" for n in range(20)]
    cycle = ["\n", "\r\n", "\n", "\r"] if ends == "mixed" else [ends]
    pieces = [line + cycle[n % len(cycle)] for n, line in enumerate(lines)]
    data = "".join(pieces).encode(codec)
    source = decode(data)
    after = rewrite(source, replacing(source, "line é 11", "row 11"))
    assert after == "".join(pieces).replace("line é 11", "row 11").encode(codec)


@pytest.mark.parametrize(
    ("data", "codec", "text", "label"),
    [
        ("日本".encode("shift-jis"), "shift_jis", "日本", "shift_jis"),
        ("Größe".encode("latin-1"), "iso8859-1", "Größe", "iso8859-1"),
        ("Größe".encode("latin-1"), "iso8859-2", "Größe", "iso8859-2"),
        ("日本\n".encode("iso2022_jp"), "iso2022_jp", "日本\n", "iso2022_jp"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "utf-16", "é", "utf-16-be with BOM"),
        ("é".encode("utf-16-be"), "utf-16-be", "é", "utf-16-be"),
        (codecs.BOM_UTF8 + b"a", "utf-8-sig", "a", "utf-8 with BOM"),
        (codecs.BOM_UTF8 + b"a", "utf-8", "a", "utf-8 with BOM"),
        (b"a", "utf-8-sig", "a", "utf-8"),
        ("é".encode(), "cp1252", "Ã©", "cp1252"),
        # What the bytes do not bear out counts for nothing.
        (codecs.BOM_UTF8 + "é".encode(), "iso8859-1", "é", "utf-8 with BOM"),
        (b"caf\xe9", "utf-8", "caf\udce9", "utf-8"),
        (b"\x81", "cp1252", "\udc81", "cp1252"),
        ("é☃".encode(), "ascii", "é☃", "utf-8"),
        ("é".encode(), "utf-16", "é", "utf-8"),
        (ASCII.encode("utf-16-le"), "iso8859-1", ASCII, "utf-16-le"),
    ],
)
def test_a_named_encoding_is_used_where_the_bytes_are_in_it(
    data: bytes, codec: str, text: str, label: str
) -> None:
    source = decode(data, given=NamedEncoding(codec, "caller"))
    assert source.text == text
    assert source.encoding.label == label
    assert rewrite(source, NOTHING) == data
    assert detect(data, complete=True, given=NamedEncoding(codec, "caller")) == source.encoding


def test_a_rule_for_many_files_makes_no_chinese_of_ascii_and_no_text_of_pictures() -> None:
    assert decode(b"ascii\n", given=NamedEncoding("utf-16-le", ".editorconfig")).text == "ascii\n"
    wide = "大 é\n".encode("utf-16-le")
    assert decode(wide, given=NamedEncoding("utf-16-le", ".editorconfig")).text == "大 é\n"
    for data in (b"\x89PNG\r\n\x1a\n" + bytes(9), b"\xff\x01\x02\x03" * 9, b"\xe9\0" * 9):
        with pytest.raises(BinaryFileError):
            decode(data, given=NamedEncoding("iso8859-1", ".editorconfig"))


@pytest.mark.parametrize(
    ("origin", "traced"),
    [("settings", "cp1252 (settings)"), (".editorconfig", "cp1252 (.editorconfig)")],
)
def test_who_said_so_is_told(origin: Origin, traced: str) -> None:
    assert decode(b"caf\xe9", given=NamedEncoding("cp1252", origin)).encoding.traced == traced
    assert decode(b"cafe", given=NamedEncoding("utf-8", origin)).encoding.traced == "utf-8"
    assert decode(b"# coding: cp1252", name="a.py").encoding.traced == "cp1252 (declared)"
    assert decode(b"cafe").encoding.traced == "utf-8"


JAPANESE = "x = '日本'\n".encode("shift_jis")
GIVEN_SJIS = NamedEncoding("shift_jis", "settings")


def test_a_character_that_would_be_read_as_another_is_not_written() -> None:
    source = decode(JAPANESE, given=GIVEN_SJIS)
    assert "\N{YEN SIGN}".encode("shift_jis") == b"\\"
    for put in ("\N{YEN SIGN}", "本\N{YEN SIGN}"):
        with pytest.raises(EncodingUnsafeError) as caught:
            rewrite(source, replacing(source, "本", put), name="a.txt")
        assert caught.value.details["character"] == "U+00A5"
        with pytest.raises(EncodingUnsafeError):
            encode_new(put, "a.txt", GIVEN_SJIS)
    assert rewrite(source, replacing(source, "本", "語")) == "x = '日語'\n".encode("shift_jis")


def test_characters_that_have_another_form_in_bytes_stay_and_the_others_can_be_edited() -> None:
    # Two bytes of this encoding are the same character; only one of them is written.
    same = "①\n".encode("cp932"), b"\xfa\x54\n", b"\x81\xca\n"
    ambiguous = decode(b"".join(same), given=NamedEncoding("cp932", "settings"))
    assert rewrite(ambiguous, replacing(ambiguous, "①", "②")) == "②\n".encode("cp932") + b"".join(
        same[1:]
    )
    assert rewrite(ambiguous, EditList((Edit(0, 4, "x"),))) == b"x" + same[2]


def test_line_ends_that_are_no_bytes_of_their_own_keep_all_lines_as_they_are() -> None:
    source = decode(JAPANESE * 2, given=GIVEN_SJIS)
    odd = replace(source, data=JAPANESE)
    with pytest.raises(EncodingUnsafeError):
        rewrite(odd, replacing(odd, "x", "y"))


@pytest.mark.parametrize("end", ["\r", "\r\n", ""])
def test_lines_with_other_ends_are_found_in_several_bytes_a_character(end: str) -> None:
    text = end.join(["日本", "x = 1", "語"]) + end
    source = decode(text.encode("gb18030"), given=NamedEncoding("gb18030", "settings"))
    for old, new in (("1", "国"), ("語", ""), ("日本", "日\n本"), (f"1{end}", "")):
        edits = replacing(source, old, new)
        assert rewrite(source, edits) == edits.apply(text).encode("gb18030")


def test_a_declaration_is_believed_kept_and_not_contradicted() -> None:
    head = "# coding: latin-1\n"
    data = f"{head}x = 'é'\n".encode("latin-1")
    source = decode(data, name="a.py")
    assert source.text == f"{head}x = 'é'\n"
    assert rewrite(source, replacing(source, "é", "öß")) == data.replace(b"\xe9", b"\xf6\xdf")
    with pytest.raises(EncodingUnsafeError) as caught:
        rewrite(source, replacing(source, "é", "☃"))
    assert (caught.value.details["line"], caught.value.details["column"]) == (2, 6)
    assert "change the line" in caught.value.hint
    with pytest.raises(EncodingUnsafeError):
        rewrite(source, replacing(source, "latin-1", "utf-8"))
    # Lines that would make mojibake of a UTF-8 file are not put in.
    utf_8 = decode("x = 'é'\n".encode(), name="a.py")
    with pytest.raises(EncodingUnsafeError):
        rewrite(utf_8, EditList((Edit(0, 0, head),)))
    assert rewrite(utf_8, EditList((Edit(0, 0, "# coding: utf-8\n"),)))
    # An unknown file may be told what it is; its bytes stay.
    unknown = decode(b"x = '\xe9'\n", name="a.py")
    assert decode(rewrite(unknown, EditList((Edit(0, 0, head),))), name="a.py").text == source.text


def test_a_file_of_ascii_gets_its_encoding_with_the_first_other_character() -> None:
    source = decode(b"# coding: latin-1\nx = 1\n", name="a.py")
    assert rewrite(source, replacing(source, "1\nx = 1", "1\nx = 'é'")).endswith(b"= '\xe9'\n")
    changed = "# coding: utf-8\nx = '☃'\n"
    assert rewrite(source, EditList.between(source.text, changed)) == changed.encode()
    plain = decode(b"x = 1\n", name="a.py")
    told = "# coding: koi8-r\nx = 'я'\n"
    assert rewrite(plain, EditList.between(plain.text, told)) == told.encode("koi8-r")
    given = decode(b"x = 1\n", name="a.py", given=NamedEncoding("cp1252", "settings"))
    assert rewrite(given, replacing(given, "1", "€")) == b"x = \x80\n"


@pytest.mark.parametrize(
    ("text", "name", "given", "data"),
    [
        ("é\n", "a.txt", None, "é\n".encode()),
        ("é\n", "a.txt", NamedEncoding("iso8859-1", ".editorconfig"), b"\xe9\n"),
        ("é\n", "a.txt", NamedEncoding("utf-8-sig", ".editorconfig"), "\ufeffé\n".encode()),
        ("\ufeffé\n", "a.txt", NamedEncoding("utf-8-sig", ".editorconfig"), "\ufeffé\n".encode()),
        ("é", "a.txt", NamedEncoding("utf-16-le", ".editorconfig"), b"\xff\xfe\xe9\0"),
        ("é", "a.txt", NamedEncoding("utf-16", "caller"), b"\xff\xfe\xe9\0"),
        ("# coding: latin-1\né", "a.py", None, b"# coding: latin-1\n\xe9"),
        ("# coding: latin-1\né", "a.md", None, "# coding: latin-1\né".encode()),
        ("# coding: utf-16\né", "a.py", None, "# coding: utf-16\né".encode()),
    ],
)
def test_a_new_file_is_in_what_was_said_about_it(
    text: str, name: str, given: NamedEncoding | None, data: bytes
) -> None:
    assert encode_new(text, name, given) == data
    assert decode(data, name=name, given=given).text == text.removeprefix("\ufeff")
    empty = decode(b"", name=name, given=given)
    assert rewrite(empty, EditList((Edit(0, 0, text),))) == data


@pytest.mark.parametrize("origin", ["caller", "settings", ".editorconfig"])
def test_a_new_file_that_its_encoding_cannot_hold_is_refused_with_the_way_out(
    origin: Origin,
) -> None:
    with pytest.raises(EncodingUnsafeError) as caught:
        encode_new("a☃", "a.txt", NamedEncoding("cp1252", origin))
    assert "convert" in caught.value.hint
    assert caught.value.details["column"] == 2


@pytest.mark.parametrize("package", [hypothesis, pytest], ids=lambda package: package.__name__)
def test_every_source_of_an_installed_package_comes_back(package: object) -> None:
    folder = Path(str(package.__file__)).parent
    files = [f for f in sorted(folder.rglob("*")) if f.suffix in {".py", ".txt"} and f.is_file()]
    assert files
    for file in files:
        data = file.read_bytes()
        source = decode(data, name=file.name)
        assert encode(source.text, source.encoding) == data
        assert rewrite(source, NOTHING) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\nb\nc\n", "a\nx\nc\n"),
        (b"a\r\nb\r\n", "b\r\na\r\n"),
        (b"a\n", ""),
        (b"a\n", "a\n"),
        (b"aa", "a"),
        (b"a\n", "a\n\u00e9\U0001f600\n"),
        ("\u00e9\nb\n".encode(), "b\n\u00e9\n"),
        (codecs.BOM_UTF8 + b"a\nb\n", "\ufeffx\nb\n"),
        (codecs.BOM_UTF8 * 2 + b"a\nb\n", "\ufeffa\nc\n"),
        ("a\n\u00e9\n".encode("utf-16"), "b\n\u00e9\n"),
        ("gr\u00f6\u00dfe\nb\n".encode("latin-1"), "gr\u00f6\u00dfe\nc\n"),
    ],
)
def test_a_whole_new_text_gives_the_bytes_that_its_edits_line_by_line_give(
    data: bytes, text: str
) -> None:
    source = decode(data, name="a.txt")
    assert rewrite_whole(source, text) == rewrite(source, EditList.between(source.text, text))


@pytest.mark.parametrize("data", [b"a\nb\n", "\u00e9\nb\n".encode(), b"gr\xf6\xdfe\nb\n"])
def test_a_whole_new_text_that_cannot_be_written_is_refused(data: bytes) -> None:
    source = decode(data, name="a.txt")
    with pytest.raises(EncodingUnsafeError):
        rewrite_whole(source, source.text + "\ud801\n")

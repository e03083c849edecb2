"""Bytes that people see as one thing and programs take for another."""

from __future__ import annotations

import pytest

from filepact.errors import EncodingUnsafeError
from filepact.text.codec import NamedEncoding, decode, encode_new, rewrite_whole
from filepact.text.confusables import disguises, encoding_named, with_bytes_shown

SHIFT_JIS = NamedEncoding("shift_jis", "settings")
COMMENTED = "# vim: fenc=shift_jis\n# 一行目 日本語の説明 表\n# 能力とサポート\nx=1\n"


def made(text: str, name: str, given: NamedEncoding | None = None) -> bool:
    """Whether a new file of this text is noticed."""
    return disguises(None, decode(encode_new(text, name, given), name=name, given=given))


def changed(before: str, after: str, name: str, given: NamedEncoding | None = None) -> bool:
    """Whether a file that is there already, and is changed so, is noticed."""
    source = decode(encode_new(before, name, given), name=name, given=given)
    data = rewrite_whole(source, after, name=name)
    return disguises(source, decode(data, name=name, given=given))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("build.sh", "#!/bin/sh\n# vim: fenc=shift_jis\necho 'touch x' ポ sh\n"),
        ("a.c", "// -*- coding: shift_jis -*-\nint f(){\n  // 表\n  return 0;\n}\n"),
        ("a.sh", "# vim: fenc=gbk\n# 文\n"),
        ("a.sh", "# vim: fenc=big5\n# 功\n"),
        ("a.py", "# coding: shift_jis\n# 日本\n"),
        ("a.sh", "# vim: fenc=shift_jis\n"),
        ("a.sh", "# vim: fenc=latin1\n# caf\u00e9\n"),
        ("a.py", "# coding: utf-7\n# +AAo-import os\n"),
        ("a.py", "# coding: unicode_escape\n# \\u000aimport os\n"),
        ("a.py", "# coding: hz\n# ~{<:Ky~}\n"),
    ],
)
def test_a_new_file_that_programs_read_otherwise_is_noticed(name: str, text: str) -> None:
    assert made(text, name)


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("a.py", "# coding: latin-1\n# caf\u00e9\n", None),
        ("a.html", "<html><meta charset=windows-1251>Привет\n", None),
        ("a.sh", "# vim: fenc=utf-8\n# 日本\n", None),
        ("a.sh", "# vim: fenc=latin1\n", None),
        ("a.txt", "coding: shift_jis is a word of this sentence\n表\n", None),
        ("a.txt", "日本 表\n", SHIFT_JIS),
        ("a.txt", "日本\n", None),
    ],
)
def test_a_new_file_in_which_all_agree_or_that_a_person_vouches_for_is_not(
    name: str, text: str, given: NamedEncoding | None
) -> None:
    assert not made(text, name, given)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x=1", "x=2"),
        ("説明", "説明と表示"),
        ("日本語", "ニホンゴ"),
        ("能力とサポート", "サポート能力"),
        ("x=1", "x=1  # データのソート"),
    ],
)
def test_a_file_that_is_in_such_an_encoding_can_be_worked_on(old: str, new: str) -> None:
    assert not changed(COMMENTED, COMMENTED.replace(old, new), "a.sh")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# vim: fenc=shift_jis\n# 日本\n", "# vim: fenc=shift_jis\n# 日本\necho x ポ sh\n"),
        ("# vim: fenc=shift_jis\n# 表 日本\n", "# vim: fenc=shift_jis\n# 日本 表\nx\n"),
        ("# vim: fenc=shift_jis\nx\n", "# vim: fenc=shift_jis\nx ポ sh\n"),
        ("# 日本\n", "# vim: fenc=shift_jis\n# 日\n"),
    ],
)
def test_what_it_did_not_hold_before_and_programs_act_upon_is_noticed(
    before: str, after: str
) -> None:
    if before.startswith("# vim"):
        assert changed(before, after, "a.sh")
    else:
        old = decode(before.encode(), name="a.sh")
        assert disguises(old, decode(encode_new(after, "a.sh"), name="a.sh"))


def test_a_program_that_heeds_what_the_file_says_sees_what_people_see() -> None:
    text = "# coding: shift_jis\n# 日本\n"
    assert not changed(text, f"{text}print('ポ sh')\n", "a.py")


def test_the_bytes_that_programs_take_for_signs_stand_behind_their_letters() -> None:
    data = "表 ポ 亜 日\n".encode("shift_jis")
    shown = with_bytes_shown(decode(data, given=SHIFT_JIS))
    assert shown == "表[\\x95\\] ポ[\\x83|] 亜 日\n"
    assert with_bytes_shown(decode("表 ポ\n".encode())) == "表 ポ\n"


@pytest.mark.parametrize(
    ("data", "name", "named"),
    [
        ("日本\n".encode(), "a.txt", False),
        (b"plain\n", "a.txt", False),
        (b"# coding: latin-1\n", "a.py", False),
        (b"# coding: latin-1\n\xe9\n", "a.py", True),
        (b"caf\xe9\n", "a.txt", True),
        (b"\xef\xbb\xbfx\n", "a.txt", True),
        ("é\n".encode("utf-16"), "a.txt", True),
        (b"# vim: fenc=iso-2022-jp\n\x1b$BF|\x1b(B\n", "a.txt", True),
        ("# vim: fenc=latin1\n# \u00e9\n".encode(), "a.sh", True),
    ],
)
def test_an_encoding_is_named_where_it_decides_the_bytes(
    data: bytes, name: str, named: bool
) -> None:
    assert bool(encoding_named(decode(data, name=name))) is named


def test_no_file_is_written_in_which_escapes_make_letters_of_ascii() -> None:
    for text in ("# vim: fenc=iso-2022-jp\n# 日本\n", "# vim: fenc=iso-2022-jp\n\x1b$BF|\x1b(B\n"):
        with pytest.raises(EncodingUnsafeError):
            encode_new(text, "a.sh")
    data = b"# vim: fenc=iso-2022-jp\n# \x1b$BF|\x1b(B\nx\n"
    source = decode(data, name="a.sh")
    assert "日" in source.text
    with pytest.raises(EncodingUnsafeError):
        rewrite_whole(source, source.text.replace("x", "y"))
    assert rewrite_whole(source, source.text) == data
    plain = decode(b"# vim: fenc=iso-2022-jp\nx\n", name="a.sh")
    assert rewrite_whole(plain, plain.text.replace("x", "y")) == plain.data.replace(b"x", b"y")

from __future__ import annotations

import codecs
import encodings
import pkgutil
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.detect_encoding import STATEFUL, UNIT, declared, find_charset, is_stable


@pytest.mark.parametrize(
    ("data", "name", "codec"),
    [
        # Python and Ruby, in the first two lines.
        (b"# -*- coding: latin-1 -*-\n", "a.py", "iso8859-1"),
        (b"# coding=cp1252\n", "a.py", "cp1252"),
        (b"#!/usr/bin/env python\n# vim: set coding: koi8-r :\n", "run", "koi8-r"),
        (b"#!/usr/bin/python3\r\n# coding: koi8-r\r\n", "run", "koi8-r"),
        (b"\n# coding: koi8-r\n", "A.PY", "koi8-r"),
        (b"# a\r# coding: koi8-r\r", "a.py", "koi8-r"),
        (b"x = 1\n# coding: koi8-r\n", "a.py", None),
        (b"\n\n# coding: koi8-r\n", "a.py", None),
        (b"x = 1  # coding: koi8-r\n", "a.py", None),
        (b"# encoding: windows-31j\n", "a.rb", "cp932"),
        (b"# coding: latin-1\n", "a.md", None),
        (b"# coding: latin-1\n", "", None),
        (b"# coding: utf-8\n", "a.py", "utf-8"),
        (b"# coding: utf-8-sig\n", "a.py", "utf-8"),
        # What is no encoding of a text, or cannot be the one of this line.
        (b"# coding: rot13\n", "a.py", None),
        (b"# coding: utf-16\n", "a.py", None),
        (b"# coding: utf-16-le\n", "a.py", None),
        (b"# coding: utf-7\n", "a.py", None),
        (b"# coding: klingon\n", "a.py", None),
        # XML.
        (b'<?xml version="1.0" encoding="ISO-8859-2"?>\n<a/>', "a.xml", "iso8859-2"),
        (b"<?xml version='1.0'\n encoding = 'Shift_JIS' standalone='yes'?>", "", "shift_jis"),
        (b' <?xml version="1.0" encoding="ISO-8859-2"?>', "a.xml", None),
        (b'<?xml version="1.0"?><a encoding="ISO-8859-2"/>', "a.xml", None),
        # HTML.
        (b'<meta charset="windows-1251">', "a.html", "cp1251"),
        (b"<!doctype html><html><head><META CHARSET=gb2312 />", "", "gb2312"),
        (
            b'<!-- a --><!-- b --><HTML><meta name="a" content="text/html; charset=EUC-KR">',
            "page",
            "euc_kr",
        ),
        (b"<html><!-- <meta charset=big5> --><meta charset=koi8-u>", "a.htm", "koi8-u"),
        (b"<html><!-- <meta charset=big5>", "a.htm", None),
        (b"<html>" + b" " * 1_024 + b"<meta charset=big5>", "a.html", None),
        (b"page = '<meta charset=big5>'\n", "a.py", None),
        # CSS.
        (b'@charset "iso-8859-15";\na {}', "a.css", "iso8859-15"),
        (b' @charset "iso-8859-15";', "a.css", None),
        (b'@charset "iso-8859-15";', "a.txt", None),
        # Editors.
        (b"; -*- coding: sjis-unix; mode: lisp -*-\n", "a.el", "shift_jis"),
        (b";; -*- mode: lisp; coding: iso-latin-1-dos -*-\n", "a.el", "iso8859-1"),
        (b"#!/bin/sh\n# -*- Coding: euc-jp -*-\n", "a.sh", "euc_jp"),
        (b"\n\n;; -*- coding: euc-jp -*-\n", "a.el", None),
        (b";; -*- decoding: euc-jp -*-\n", "a.el", None),
        (b";; -*- coding: raw-text -*-\n", "a.el", None),
        (b"/* vim: set fileencoding=latin1 : */\n", "a.c", "iso8859-1"),
        (b"a\nb\n # vi:ts=4:fenc=8bit-cp1252\n", "a", "cp1252"),
        (b"a\n" * 2_000 + b"# ex: fenc=2byte-euc-jp sw=2\n\n", "a", "euc_jp"),
        (b"a\n" * 2_000 + b"# vim600: se fenc=cp949:\na\na\na\na\n", "a", "cp949"),
        (b"a\n" * 2_000 + b"# vim: se fenc=cp949:\na\na\na\na\na\n", "a", None),
        (b"a\na\na\na\na\n# vim: fenc=cp949\n" + b"a\n" * 1_500, "a", None),
        (b"the fileencoding=latin1 of vim: a story\n", "a", None),
        # The weightiest goes first.
        (b'<?xml version="1.0" encoding="utf-8"?><html><meta charset=big5>', "a.html", "utf-8"),
        (b"", "a.py", None),
    ],
)
def test_what_a_file_says_about_its_encoding(data: bytes, name: str, codec: str | None) -> None:
    assert declared(data, name) == codec


@given(st.binary(max_size=200), st.sampled_from(["a.py", "a.html", "a.css", ""]))
def test_anything_can_be_asked(data: bytes, name: str) -> None:
    for text in (data, b"# vim: fenc=" + data, b"<meta charset=" + data, b"#coding:" + data):
        declared(text, name)


@pytest.mark.parametrize(
    "piece",
    [b"<!----> ", b"<!--", b"-*- coding:a;", b"vim: fenc", b"<meta charset", b"<?xml encoding >"],
)
def test_a_hostile_head_takes_no_time(piece: bytes) -> None:
    start = time.process_time()  # and not what a busy machine adds
    for _ in range(20):
        declared(piece * 1_000, "a.html")
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("Latin1", "iso8859-1"),
        ("ISO_8859-1:1987", "iso8859-1"),
        ("iso-8859-8-i", "iso8859-8"),
        ("UTF8", "utf-8"),
        ("utf-8-bom", "utf-8-sig"),
        ("utf-16be", "utf-16-be"),
        ("x-sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc_kr"),
        ("windows-874", "cp874"),
        ("macintosh", "mac-roman"),
        *((name, None) for name in ("base64", "rot13", "hex", "idna", "punycode", "utf-7")),
        *((name, None) for name in ("unicode_escape", "raw_unicode_escape", "undefined", "hz")),
        *((name, None) for name in ("", "a\0b", "é", "os", "../os", "x" * 99, "cp037", "mbcs")),
    ],
)
def test_only_real_character_sets_are_found(name: str, codec: str | None) -> None:
    assert find_charset(name) == codec


def _all() -> list[str]:
    modules = (module.name for module in pkgutil.iter_modules(encodings.__path__))
    return sorted({codec for module in modules if (codec := find_charset(module)) is not None})


@pytest.mark.parametrize("codec", _all())
def test_each_character_set_keeps_what_is_relied_on(codec: str) -> None:
    """Line ends are one byte; where whole texts are written, no two bytes are one character."""
    assert find_charset(codec) == codec
    if codec in UNIT or codec.startswith(("utf-16", "utf-32", "utf-8")):
        return
    assert "a\r\n1".encode(codec) == b"a\r\n1"
    assert codecs.lookup(codec)._is_text_encoding
    read: dict[str, bytes] = {}
    for number in range(256):
        byte = bytes([number])
        try:
            text = byte.decode(codec)
        except UnicodeError:
            continue
        assert text not in read
        read[text] = byte
        assert text.encode(codec) == byte
    if is_stable(codec):
        assert bytes(range(128)).decode(codec) == bytes(range(128)).decode("ascii")
        assert all(len(text) == 1 for text in read)
    elif codec not in STATEFUL:
        for lead in range(128, 256):
            for end in ("\n", "\r"):
                try:
                    text = (bytes([lead]) + end.encode()).decode(codec)
                except UnicodeError:
                    continue
                assert text[1:] == end

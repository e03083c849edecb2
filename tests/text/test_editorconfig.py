from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.editorconfig import parse_editorconfig


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*", ["a", "a/b.c"], []),
        ("*.txt", ["a.txt", "b/a.txt"], ["a.txt.c", "a"]),
        ("a.txt", ["a.txt", "b/a.txt"], ["ba.txt"]),
        ("/a.txt", ["a.txt"], ["b/a.txt"]),
        ("b/*.txt", ["b/a.txt"], ["a.txt", "c/b/a.txt", "b/c/a.txt"]),
        ("b/**", ["b/a", "b/c/a"], ["a", "c/b/a"]),
        ("b/**/c", ["b/c", "b/x/c", "b/x/y/c"], ["b/xc", "c"]),
        ("**/c", ["c", "a/c"], ["ac"]),
        ("**.c", ["a.c", "x/y/a.c"], ["a.cc"]),
        ("b/**.c", ["b/a.c", "b/x/y/a.c"], ["a.c", "c/b/a.c"]),
        ("a**z", ["az", "a1z", "a/z", "x/a1/2z"], ["ba/z", "a"]),
        ("a?.c", ["ab.c"], ["a.c", "a/.c"]),
        ("[ab].c", ["a.c", "b.c"], ["c.c"]),
        ("[!ab].c", ["c.c"], ["a.c"]),
        ("*.{js,py}", ["a.js", "x/a.py"], ["a.c"]),
        ("{a,b/{c,d}}.x", ["a.x", "b/c.x", "b/d.x"], ["c.x"]),
        ("{a}.x", ["{a}.x"], ["a.x"]),
        ("{}.x", ["{}.x"], [".x"]),
        ("{a,}.x", ["a.x", ".x"], ["b.x"]),
        ("{a.x", ["{a.x"], ["a.x"]),
        ("a}.x", ["a}.x"], ["a.x"]),
        ("{a,b.x", ["{a,b.x"], ["a.x"]),
        ("a,b", ["a,b"], ["a"]),
        ("v{1..12}.x", ["v1.x", "v12.x"], ["v0.x", "v13.x", "v1..12.x"]),
        ("v{3..1}.x", ["v2.x"], ["v4.x"]),
        ("v{-1..1}.x", ["v-1.x", "v0.x"], ["v2.x"]),
        (r"a\*.x", ["a*.x"], ["ab.x"]),
        (r"\{a,b\}", ["{a,b}"], ["a"]),
        ("[a.x", [], ["a.x"]),
        ("v{1..999999}.x", [], ["v1.x"]),
        ("{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}{q,r}", [], ["acegikmoq"]),
        ("a**b**c**d**e**f**g**h", [], ["abcdefgh"]),
        ("../a", [], ["a"]),
        ("b/", [], ["b", "b/a"]),
    ],
)
def test_which_files_a_section_is_about(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    config = parse_editorconfig(f"[{pattern}]\ncharset = latin1\n")
    assert [path for path in [*matching, *others] if config.said("charset", path)] == matching


@pytest.mark.parametrize(
    ("written", "codec"),
    [
        ("charset = latin1", "iso8859-1"),
        ("charset=utf-8", "utf-8"),
        ("  CharSet =UTF-8-BOM ", "utf-8-sig"),
        ("charset = utf-16be", "utf-16-be"),
        ("charset = utf-16le ; Windows", "utf-16-le"),
        ("charset = utf-16le # Windows", "utf-16-le"),
        ("charset = shift_jis", "shift_jis"),
        ("charset = unset", ""),
        ("charset = klingon", None),
        ("charset = base64", None),
        ("charset", None),
        ("# charset = latin1", None),
        ("; charset = latin1", None),
        ("indent_style = tab", None),
    ],
)
def test_the_charset_of_a_section(written: str, codec: str | None) -> None:
    assert parse_editorconfig(f"\ufeff[*]\r\n{written}\r\n").said("charset", "a.txt") == codec


def test_the_last_section_that_says_something_counts() -> None:
    text = (
        "root = TRUE\ncharset = latin1\n[*]\ncharset = latin1\n[*.c]\ncharset = utf-8\n"
        "[*]\nindent_size = 2\nroot = false\n[b/*]\ncharset = unset\n"
    )
    config = parse_editorconfig(text)
    assert config.root
    found = {path: config.said("charset", path) for path in ("a", "a.c", "b/a.c")}
    assert found == {"a": "iso8859-1", "a.c": "utf-8", "b/a.c": ""}
    assert not parse_editorconfig("root = no\n[a]\nroot = true\n").root
    assert parse_editorconfig("charset = latin1\n").said("charset", "a") is None


@given(st.text(st.sampled_from("ab*?[]{},.!\\/-12\u00e9"), max_size=40))
def test_any_pattern_is_read_and_asked_in_little_time(pattern: str) -> None:
    config = parse_editorconfig(f"[{pattern}]\ncharset = latin1\n")
    config.said("charset", "a/b/ab12/b.a")


@pytest.mark.parametrize("piece", ["{", "{a,", "**a", "{1..9}", "[", "*a", "{a,b}", "{{{"])
def test_a_hostile_pattern_costs_little(piece: str) -> None:
    start = time.process_time()  # and not what a busy machine adds
    config = parse_editorconfig(f"[{piece * 400}]\ncharset = latin1\n" * 20)
    config.said("charset", "a/" * 100 + "a" * 100)
    assert time.process_time() - start < 10

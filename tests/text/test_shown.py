"""How names and long lines are shown."""

from __future__ import annotations

import pytest

from filepact.text.confusables import MAX_WIDTH, meanings, shown_line, shown_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain.txt", "plain.txt"),
        ("with blank.txt", "with blank.txt"),
        ("näme\u202fpm.png", "näme\u202fpm.png"),
        ("a\nb", r"a\x0ab"),
        ("\x1b[31m", r"\x1b[31m"),
        ("evil\u202etxt.exe", r"evil\u202etxt.exe"),
        ("\u2066x", r"\u2066x"),
        ("\udcff.bin", r"\xff.bin"),
        ("\u2028", r"\u2028"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
)
def test_control_and_direction_characters_are_escaped(name, shown):
    assert shown_name(name) == shown


@pytest.mark.parametrize(
    ("shown", "meant"),
    [
        (r"a\xe9.txt", ["a\udce9.txt", "a\u00e9.txt"]),
        (r"a\x0ab", ["a\nb"]),
        (r"e\u0301", ["e\u0301"]),
        (r"\ud83d\ude00", ["\U0001f600"]),
        (r"a\x41\x2f", []),  # nobody writes an escape for these
        (r"a\u0000b", []),
        (r"a\x00b", []),
        (r"\ud800", []),
        ("plain", []),
    ],
)
def test_escapes_mean_names_that_a_file_may_have(shown, meant):
    assert [*dict.fromkeys(meanings(shown))] == meant


def test_a_short_line_is_shown_whole_without_its_carriage_return():
    assert shown_line(b"ab\r\ncd", 0, 3) == "ab"
    assert shown_line(b"\xff", 0, 1).encode("utf-8", "surrogateescape") == b"\xff"
    assert shown_line(b"", 0, 0) == ""


def test_a_long_line_is_cut_around_the_match():
    text = b"a" * 5_000 + b"NEEDLE" + b"b" * 5_000
    shown = shown_line(text, 0, len(text), focus=5_000)
    assert "NEEDLE" in shown
    assert shown.startswith("...a")
    assert shown.endswith("b... [line of 10,006 bytes, cut]")
    assert len(shown) < MAX_WIDTH + 60


def test_a_long_line_is_cut_behind_its_beginning_without_a_match():
    text = "é".encode() * 5_000
    shown = shown_line(text, 0, len(text))
    assert shown.startswith("é" * MAX_WIDTH + "...")


def test_a_line_of_few_but_wide_characters_is_shown_whole():
    text = "é".encode() * 200
    assert shown_line(text, 0, len(text), focus=398) == "é" * 200


def test_a_window_that_begins_within_a_character_drops_it():
    text = b"x" + "é".encode() * 5_000
    shown = shown_line(text, 0, len(text), focus=5_001)
    assert "\ufffd" not in shown

"""No character that steers, hides or pretends reaches a person raw, in any rendering."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import pytest

from filepact.text.diff import unified
from filepact_cli.render import paint_diff, show_diff
from filepact_cli.screen import CommandAnswer, Terminal, TerminalText, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
FORMULA_LETTERS = "\uff43\U0001d41c"


@cache
def all_of_them() -> list[str]:
    return [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if (unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") and char not in "\n\t")
        or (unicodedata.category(char) == "Zs" and char != " ")
        or char in BLANK
        or 0xFE00 <= ord(char) <= 0xFE0F
        or 0xE0100 <= ord(char) <= 0xE01EF
        or ord(char) in (0xE000, 0xF8FF, 0xF0000, 0xFFFFD, 0x100000, 0x10FFFD, 0xD800, 0xDFFF)
    ]


def rendered(spans: Sequence[TerminalText], *, terminal: bool, colour: bool = False) -> str:
    stream = io.BytesIO()
    Terminal(stream, terminal=terminal, colour=colour, json=False).write(spans)
    return stream.getvalue().decode("utf-8", errors="surrogateescape")


def diffs() -> list[tuple[str, str]]:
    """One diff for each character, with it in the path and in the old and the new text."""
    return [
        (char, unified(f"a{char}b\n", f"c{char}d\n", old_name=f"x{char}y", new_name=f"x{char}y"))
        for char in all_of_them()
    ]


def test_the_characters_are_more_than_four_hundred_and_hold_all_orders_about_direction() -> None:
    assert len(all_of_them()) > 400
    assert set(DIRECTION) <= set(all_of_them())


@pytest.mark.parametrize("colour", [False, True])
def test_a_diff_on_a_terminal_has_none_of_them_raw(colour: bool) -> None:
    ours = {"\x1b"} if colour else set()
    raw = [
        f"U+{ord(char):04X}"
        for char, diff in diffs()
        if char not in ours and char in rendered(paint_diff(diff), terminal=True, colour=colour)
    ]
    assert raw == []


def test_a_diff_for_reading_has_none_of_them_raw_in_a_pipe_either() -> None:
    screen = Terminal(io.BytesIO(), terminal=False, colour=False, json=False)
    raw = [
        f"U+{ord(char):04X}"
        for char, diff in diffs()
        if char in rendered(show_diff(diff, screen), terminal=False)
    ]
    assert raw == []


@pytest.mark.parametrize("terminal", [False, True])
def test_json_has_none_of_them_raw_and_loses_none(terminal: bool) -> None:
    for char, diff in diffs():
        stream = io.BytesIO()
        screen = Terminal(stream, terminal=terminal, colour=False, json=True)
        screen.answer(CommandAnswer((), {f"x{char}y": diff}))
        text = stream.getvalue()
        assert char.encode("utf-8", errors="surrogatepass") not in text, f"U+{ord(char):04X}"
        assert json.loads(text) == {f"x{char}y": diff}


@pytest.mark.parametrize("letter", ["\u0430", "\u0441", "\u03bf", "\u0585", *FORMULA_LETTERS])
def test_a_look_alike_letter_in_a_word_is_written_out(letter: str) -> None:
    diff = unified("config\n", f"{letter}onfig\n", old_name="f", new_name=f"{letter}onfig.py")
    assert letter not in rendered((TerminalText(diff),), terminal=True)
    screen = Terminal(io.BytesIO(), terminal=False, colour=False, json=False)
    assert letter not in rendered(show_diff(diff, screen), terminal=False)


def test_a_patch_in_a_pipe_keeps_every_character() -> None:
    for _char, diff in diffs():
        if not any("\ud800" <= char <= "\udfff" for char in diff):
            assert rendered(plain(diff), terminal=False) == diff


def test_line_ends_of_other_systems_stay_in_a_diff_for_reading() -> None:
    diff = unified("one\r\n", "two\r\n", old_name="f", new_name="f")
    screen = Terminal(io.BytesIO(), terminal=False, colour=False, json=False)
    assert rendered(show_diff(diff, screen), terminal=False) == diff

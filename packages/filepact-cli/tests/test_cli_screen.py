"""What reaches a terminal, what reaches a pipe, and how a diff is coloured."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.confusables import visible
from filepact.text.diff import unified
from filepact_cli.render import LineCounts, paint_diff, tally
from filepact_cli.screen import CommandAnswer, Terminal, TerminalText, plain

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine


def shown(*spans: TerminalText, terminal: bool = True, colour: bool = False) -> str:
    stream = io.BytesIO()
    Terminal(stream, terminal=terminal, colour=colour, json=False).write(spans)
    return stream.getvalue().decode("utf-8", errors="surrogateescape")


@pytest.mark.parametrize(
    ("text", "on_a_terminal"),
    [
        ("plain text, tabs\tand lines\n", "plain text, tabs\tand lines\n"),
        ("\u00e9\u4e2d\U0001f600", "\u00e9\u4e2d\U0001f600"),
        ("private \ue0b0", "private \\ue0b0"),
        ("p\u0430ss", "p\\u0430ss"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb", "a\\rb"),
        ("a\x08b\x00", "a\\x08b\\x00"),
        ("admin\u202etxt.exe", "admin\\u202etxt.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("blank\u3164name", "blank\\u3164name"),
        ("no\u00a0break", "no\\xa0break"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("selector\U000e0100", "selector\\U000e0100"),
        ("line\u2028separator", "line\\u2028separator"),
    ],
)
def test_a_terminal_gets_no_character_that_steers_or_hides(text: str, on_a_terminal: str) -> None:
    assert shown(TerminalText(text)) == on_a_terminal
    assert shown(TerminalText(text), terminal=False) == text


def test_a_name_that_is_not_utf_8_is_escaped_on_a_terminal_and_kept_in_a_pipe() -> None:
    name = b"caf\xe9".decode("utf-8", errors="surrogateescape")
    assert shown(TerminalText(name)) == "caf\\xe9"
    stream = io.BytesIO()
    Terminal(stream, terminal=False, colour=False, json=False).write(plain(name))
    assert stream.getvalue() == b"caf\xe9"


def test_colours_end_with_each_line() -> None:
    text = shown(TerminalText("one\ntwo\n", "add"), TerminalText("three", "plain"), colour=True)
    assert text == "\x1b[32mone\x1b[0m\n\x1b[32mtwo\x1b[0m\nthree"


def test_without_colour_styles_leave_no_trace() -> None:
    assert shown(TerminalText("one\n", "add"), TerminalText("two", "bad")) == "one\ntwo"


@pytest.mark.parametrize(("terminal", "lines"), [(False, 1), (True, 3)])
def test_json_is_one_object_in_ascii(terminal: bool, lines: int) -> None:
    stream = io.BytesIO()
    screen = Terminal(stream, terminal=terminal, colour=False, json=True)
    screen.answer(CommandAnswer(plain("not shown"), {"name": "caf\u00e9 \udce9"}))
    assert json.loads(stream.getvalue()) == {"name": "caf\u00e9 \udce9"}
    assert stream.getvalue().isascii()
    assert stream.getvalue().count(b"\n") == lines


# -- diffs --------------------------------------------------------------------------------------

TEXTS = st.lists(
    st.sampled_from(
        ["a\n", "b\n", "-- a\n", "++ b\n", "@@ -1 +1 @@\n", "one two\r\n", "\u2028x\n", "\n"]
    )
).map("".join)


@given(TEXTS, TEXTS, st.booleans())
def test_painting_changes_no_character(old: str, new: str, cut: bool) -> None:
    new = new.removesuffix("\n") if cut else new
    diff = unified(old, new, old_name="f", new_name="f")
    assert "".join(span.text for span in paint_diff(diff)) == diff


@given(TEXTS, TEXTS)
def test_lines_that_look_like_headers_are_counted_as_what_they_are(old: str, new: str) -> None:
    diff = unified(old, new, old_name="f", new_name="f")
    counted = tally(diff)
    assert len(new.split("\n")) - len(old.split("\n")) == counted.added - counted.removed


def test_the_words_that_changed_stand_out() -> None:
    diff = unified("port = 80\n", "port = 8080\n", old_name="f", new_name="f")
    styles = {span.text: span.style for span in paint_diff(diff)}
    assert styles["80"] == "removed word"
    assert styles["8080"] == "added word"
    assert styles["port = "] == "add"
    assert styles["--- a/f\n"] == "strong"
    assert styles["@@ -1 +1 @@\n"] == "place"


def test_lines_without_a_partner_have_no_words() -> None:
    diff = unified("alpha beta\n", "unrelated thing entirely\n", old_name="f", new_name="f")
    assert {span.style for span in paint_diff(diff)} == {
        "strong",
        "place",
        "remove",
        "add",
        "plain",
    } - {"plain"}


def test_words_are_compared_in_as_many_lines_as_people_read() -> None:
    old = "".join(f"line {number} {'abc def ' * 6}\n" for number in range(60_000))
    diff = unified(old, old.replace("def", "xyz"), old_name="f", new_name="f")
    small = unified("port = 80\n", "port = 8080\n", old_name="g", new_name="g")
    spans = paint_diff(small + diff)
    assert "".join(span.text for span in spans) == small + diff
    assert "added word" in {span.style for span in spans}
    assert len(spans) < 1_000


def test_carriage_returns_of_a_whole_file_are_not_shown_but_a_new_one_is() -> None:
    same = unified("a one\r\nb\r\n", "a two\r\nb\r\n", old_name="f", new_name="f")
    assert "\\r" not in shown(*paint_diff(same))
    ends = unified("a one\n", "a one\r\n", old_name="f", new_name="f")
    assert "\\r" in shown(*paint_diff(ends))
    assert shown(*paint_diff(same), terminal=False) == same


def test_a_missing_newline_stays_with_its_line() -> None:
    diff = unified("a\nb", "a\nc", old_name="f", new_name="f")
    spans = paint_diff(diff)
    assert [span.style for span in spans if span.text.startswith("\\ No newline")] == ["dim", "dim"]
    assert tally(diff) == LineCounts(1, 1)
    alone = unified("a\nb", "x\na\nb", old_name="f", new_name="f")
    assert [s.style for s in paint_diff(alone) if s.text.startswith("\\ No")] == ["dim"]


def test_what_is_visible_already_is_returned_as_it_is() -> None:
    text = "def f():\n\treturn 1\n"
    assert visible(text) is text


@pytest.mark.parametrize("last", [b"x", b"\x00\xd8"], ids=["odd byte", "half of a character"])
def test_what_utf_8_has_no_bytes_for_is_shown_as_an_escape(cli: CommandLine, last: bytes) -> None:
    (cli.root / "u.txt").write_bytes(b"\xff\xfea\x00\n\x00" + last)
    shown = cli("read", "u.txt").out
    assert "2\u2502\\ud" in shown
    assert cli.json("read", "u.txt")["lines"][0] == "a"

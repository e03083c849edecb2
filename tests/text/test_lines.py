from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text import lines as lines_module
from filepact.text.lines import (
    adopt_line_ends,
    chomp,
    line_ends,
    line_of,
    line_starts,
    line_window,
    split_lines,
)

TEXTS = st.text(alphabet="ab\n\r\f\u2028", max_size=40)


@pytest.mark.parametrize(
    ("text", "lines", "ends"),
    [
        ("", [], "none"),
        ("a", ["a"], "none"),
        ("\n", ["\n"], "lf"),
        ("a\nb", ["a\n", "b"], "lf"),
        ("a\r\nb\r\n", ["a\r\n", "b\r\n"], "crlf"),
        ("a\r\nb\nc\n", ["a\r\n", "b\n", "c\n"], "mixed"),
        ("a\r\nb\nc\r\n", ["a\r\n", "b\n", "c\r\n"], "mixed"),
        ("a\rb\r", ["a\r", "b\r"], "cr"),
        ("a\rb\n", ["a\rb\n"], "lf"),
        ("a\rb\r\n", ["a\rb\r\n"], "crlf"),
        (
            "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg",
            ["a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg"],
            "none",
        ),
    ],
)
def test_a_line_ends_at_lf_and_at_cr_only_when_there_is_no_lf(
    text: str, lines: list[str], ends: str
) -> None:
    assert split_lines(text) == lines
    assert line_ends(text) == ends


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("", ""),
        ("a", "a"),
        ("a\n", "a"),
        ("a\r\n", "a"),
        ("a\r", "a"),
        ("\r\r\n", "\r"),
        ("a\f", "a\f"),
    ],
)
def test_chomp_takes_one_line_end_off(line: str, bare: str) -> None:
    assert chomp(line) == bare


@pytest.mark.parametrize(
    ("text", "offset", "line"),
    [
        ("", 0, 1),
        ("a\nb", 1, 1),
        ("a\nb", 2, 2),
        ("a\n", 2, 2),
        ("a\r\nb", 2, 1),
        ("a\r\nb", 3, 2),
        ("a\rb", 2, 2),
        ("a\rb\nc", 2, 1),
    ],
)
def test_an_offset_has_a_line_number(text: str, offset: int, line: int) -> None:
    assert line_of(text, offset) == line


@given(TEXTS)
def test_lines_joined_are_the_text_and_their_starts_are_known(text: str) -> None:
    lines = split_lines(text)
    starts = line_starts(lines)
    assert "".join(lines) == text
    for number, line in enumerate(lines):
        assert text.startswith(line, starts[number])
        assert line_of(text, starts[number]) == number + 1
    assert starts[len(lines)] == len(text)


@pytest.mark.parametrize(
    ("text", "like", "adopted"),
    [
        ("a\nb\n", "x\ny\n", "a\nb\n"),
        ("a\nb\n", "", "a\nb\n"),
        ("a\nb\n", "x", "a\nb\n"),
        ("a\nb", "x\r\ny", "a\r\nb"),
        ("a\nb\n", "x\ry", "a\rb\r"),
        ("a", "x\r\n", "a"),
        ("", "x\r\n", ""),
        # So does one sent with CRLF; a CR alone is a character.
        ("a\r\nb\n", "x\ny\n", "a\nb\n"),
        ("a\r\nb\r\n", "x\ny\n", "a\nb\n"),
        ("a\r\nb\n", "x\r\n", "a\r\nb\r\n"),
        ("a\r\nb\n", "x\r", "a\rb\r"),
        ("a\rb\n", "x\r\ny\r\n", "a\rb\r\n"),
        ("a\rb\r", "x\n", "a\rb\r"),
        ("a\r\r\nb\r\n", "x\r\n", "a\r\r\nb\r\n"),
        # As they are shown, lines that end in CR CR LF end in CRLF.
        ("a\r\nb\r\nC\n", "a\r\r\nb\r\nc\r\n", "a\r\r\nb\r\nC\r\n"),
        # In a file of both kinds CRLF throughout is what the author wants.
        ("a\r\nb\r\n", "a\r\nb\n", "a\r\nb\r\n"),
        ("a\r\nc\nb\n", "a\r\nb\n", "a\r\nc\r\nb\n"),
        # Mixed: known lines keep their own end, a changed line that of the one it replaces.
        ("a\nb\nc\n", "a\r\nb\nc\r\n", "a\r\nb\nc\r\n"),
        ("a\nB\nc\n", "a\r\nb\nc\r\n", "a\r\nB\nc\r\n"),
        ("A\nB\nC\n", "a\r\nb\nc\r\n", "A\r\nB\nC\r\n"),
        ("b\nc\n", "a\r\nb\nc\r\n", "b\nc\r\n"),
        # New lines take the end that is usual around them.
        ("a\nnew\nb\nc\nd\ne\nf\ng\nh\n", "a\r\nb\r\nc\r\nd\ne\nf\ng\nh\n",
         "a\r\nnew\r\nb\r\nc\r\nd\ne\nf\ng\nh\n"),
        ("a\nb\nc\nd\ne\nf\ng\nnew\nh\n", "a\r\nb\r\nc\r\nd\ne\nf\ng\nh\n",
         "a\r\nb\r\nc\r\nd\ne\nf\ng\nnew\nh\n"),
        # As many of each around: the line before decides; at the top the first one after.
        ("a\nnew\nb\n", "a\r\nb\n", "a\r\nnew\r\nb\n"),
        ("new\na\nb\n", "a\r\nb\n", "new\r\na\r\nb\n"),
        # The last line of the file had no end, so it has to be given one.
        ("a\nb\nc\nnew\n", "a\r\nb\nc", "a\r\nb\nc\nnew\n"),
        ("a\nb\nc\n", "a\nb\r\nc", "a\nb\r\nc\r\n"),
        ("a\nb\nc\nd", "a\r\nb\nc", "a\r\nb\nc\nd"),
        ("a\nb", "a\nb\r\nc\n", "a\nb"),
    ],
)  # fmt: skip
def test_a_text_in_lf_takes_the_line_ends_of_the_file(text: str, like: str, adopted: str) -> None:
    assert adopt_line_ends(text, like) == adopted


@given(TEXTS)
def test_a_file_sent_back_in_lf_is_the_file_again(like: str) -> None:
    shown = like.replace("\r", "\n") if line_ends(like) == "cr" else like.replace("\r\n", "\n")
    assert adopt_line_ends(shown, like) == like


@given(st.text(alphabet="abc\n", max_size=30), TEXTS)
def test_adopting_changes_nothing_but_line_ends(text: str, like: str) -> None:
    adopted = adopt_line_ends(text, like)
    assert adopted.replace("\r\n", "\n").replace("\r", "\n") == text


WINDOW_TEXTS = [
    "",
    "a",
    "a\n",
    "a\nb",
    "a\r\nb\r\n",
    "a\rb\rc",
    "a\nb\rc",
    "\n\n\n",
    "a\nb\nc\nd\ne\n",
]


@pytest.mark.parametrize("text", WINDOW_TEXTS)
@pytest.mark.parametrize("first", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
@pytest.mark.parametrize("block", [1, 2, 3, 65_536])
def test_a_window_is_what_splitting_and_slicing_gives(
    text: str, first: int, count: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    lines = split_lines(text)
    wanted = [chomp(line) for line in lines[first : first + count]]
    found, total, start = line_window(text, first, count)
    assert (found, total) == (wanted, len(lines))
    assert start == len("".join(lines[:first]))

"""Lines and columns as editors count them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.errors import InvalidParamsError
from filepact.text.lines import LineIndex, Position

UNITS = ["utf-8", "utf-16", "utf-32"]


@pytest.mark.parametrize(
    ("text", "line", "column", "unit", "offset"),
    [
        ("abc", 0, 1, "utf-16", 1),
        ("abc", 0, 99, "utf-16", 3),
        ("a\nb", 1, 0, "utf-16", 2),
        ("a\r\nb", 1, 0, "utf-16", 3),
        ("a\rb", 1, 1, "utf-16", 3),
        ("a\r\n", 0, 9, "utf-16", 1),
        ("a\n", 1, 0, "utf-16", 2),
        ("a\u2028b\fc", 0, 5, "utf-16", 5),
        ("\U0001f600x", 0, 2, "utf-16", 1),
        ("\U0001f600x", 0, 4, "utf-8", 1),
        ("\U0001f600x", 0, 1, "utf-32", 1),
        ("é\U0001f600\nxé", 1, 3, "utf-8", 5),
        ("é\U0001f600\nxé", 1, 9, "utf-8", 5),
    ],
)
def test_a_position_is_an_offset(text, line, column, unit, offset):
    assert LineIndex(text).offset(Position(line, column), unit) == offset


@pytest.mark.parametrize(
    ("text", "line", "column", "unit"),
    [
        ("a", 1, 0, "utf-16"),
        ("a", -1, 0, "utf-16"),
        ("\U0001f600x", 0, 1, "utf-16"),
        ("éx", 0, 1, "utf-8"),
    ],
)
def test_a_place_that_is_none_is_refused(text, line, column, unit):
    with pytest.raises(InvalidParamsError):
        LineIndex(text).offset(Position(line, column), unit)


def test_a_text_that_ends_with_a_line_end_has_an_empty_last_line():
    assert LineIndex("a\nb\n").lines == 3
    assert LineIndex("").lines == 1


@given(
    st.lists(st.sampled_from(["a", "é", "\U0001f600", "\r\n", "\n", "\r", "\ud800"]), max_size=12),
    st.sampled_from(UNITS),
    st.data(),
)
def test_an_offset_comes_back_from_its_position(pieces, unit, data):
    text = "".join(pieces)
    offset = data.draw(st.integers(0, len(text)))
    index = LineIndex(text)
    back = index.offset(index.position(offset, unit), unit)
    within = text[offset - 1 : offset + 1] == "\r\n"
    assert back == offset - within

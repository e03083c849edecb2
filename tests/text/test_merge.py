from __future__ import annotations

import pytest

from filepact.text.edit import merge

BASE = "a\nb\nc\nd\ne\n"


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "expected"),
    [
        pytest.param(BASE, BASE, BASE, BASE, id="nothing changed"),
        pytest.param(BASE, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", id="apart"),
        pytest.param(BASE, "a\nB\nc\nd\ne\n", "a\nb\nC\nd\ne\n", "a\nB\nC\nd\ne\n", id="beside"),
        pytest.param(BASE, "a\nX\nc\nd\ne\n", "a\nX\nc\nd\nE\n", "a\nX\nc\nd\nE\n", id="one same"),
        pytest.param(BASE, "x\n" + BASE, BASE + "y\n", "x\n" + BASE + "y\n", id="both ends"),
        pytest.param(
            BASE, "a\nc\nd\ne\n", "a\nb\nx\nc\nd\ne\n", "a\nx\nc\nd\ne\n", id="beside a removal"
        ),
        pytest.param(
            BASE, "a\nB\nc\nd\ne\n", "a\nx\nb\nc\nd\ne\n", "a\nx\nB\nc\nd\ne\n", id="before"
        ),
        pytest.param("a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"),
        pytest.param("a\rb\rc\r", "A\rb\rc\r", "a\rb\rC\r", "A\rb\rC\r", id="classic Mac"),
        pytest.param("a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n", id="final newline added"),
        pytest.param("", "x\n", "x\n", "x\n", id="same file made twice"),
    ],
)
def test_changes_of_different_lines_are_both_kept(base: str, mine: str, theirs: str, expected: str):
    result = merge(base, mine, theirs)
    assert result.text == expected
    assert merge(base, theirs, mine).text == expected


@pytest.mark.parametrize(
    ("base", "mine", "theirs"),
    [
        pytest.param(BASE, "a\nX\nc\nd\ne\n", "a\nY\nc\nd\ne\n", id="same line"),
        pytest.param(BASE, "a\nc\nd\ne\n", "a\nY\nc\nd\ne\n", id="removed and changed"),
        pytest.param(BASE, BASE + "x\n", BASE + "y\n", id="same point"),
        pytest.param(BASE, "a\nB\nx\nc\nd\ne\n", "a\nb\ny\nc\nd\ne\n", id="both add after b"),
        pytest.param("a\nb\n", "a\nb", "a\nb\nc\n", id="line end removed, line added"),
        pytest.param("a\nb", "a\nb\n", "a\nb\nc", id="line end added twice"),
        pytest.param("a\r\n", "a\n", "b\r\n", id="line end and text"),
        pytest.param("", "x\n", "y\n", id="two new files"),
    ],
)
def test_two_ways_for_the_same_lines_are_a_conflict(base: str, mine: str, theirs: str):
    for own, other in ((mine, theirs), (theirs, mine)):
        result = merge(base, own, other)
        assert result.text is None


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (BASE, "a\nB\nc\nd\ne\nf\n"),
        ("new\n" + BASE, "a\nB\nc\nd\ne\nf\n"),
        ("a\nb\nc\nd\n", "x\na\nb\nC\nC\nd\ne\n"),
    ],
)
def test_the_edits_of_a_merge_make_it_of_the_other_side(mine: str, theirs: str):
    for own, other in ((mine, theirs), (theirs, mine)):
        result = merge(BASE, own, other)
        assert result.edits.apply(other) == result.text
        assert ["".join(side) for side in zip(*result.pieces, strict=True)] == [BASE, own, other]

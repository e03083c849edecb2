"""A proposal laid out for a window: every character is in some row, and no row is wider than it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.diff import unified
from filepact_windows.drawn_diff import diff_lines
from filepact_windows.review_page import PageLine, ReviewPage, fit, page_of, width_of
from reviewing import NEW, OLD, propose, reviewing
from tests.hostile.test_views import all_of_them

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace
    from filepact_cli.review import Review


@pytest.fixture
def review(open_here: Callable[..., Workspace], root: Path) -> Review:
    return reviewing(open_here, root)


def rows(page: ReviewPage, width: int = 60, *, two: bool = False) -> list[str]:
    page.lay_out(width, two=two)
    return ["".join(text for text, *_ in page.row(at)) for at in range(page.height)]


def of(old: str, new: str, name: str = "a.txt") -> ReviewPage:
    lines = diff_lines(unified(old, new, old_name=name, new_name=name))
    return ReviewPage(PageLine(0, left=one, file=name) for one in lines if one.sign in " +-\\")


def test_a_page_tells_who_what_why_and_each_hunk(review: Review) -> None:
    page = page_of(review.item(propose(review)))
    shown = "\n".join(rows(page))
    assert "write a.txt" in shown
    assert "agent tester 1.0, turn t1" in shown
    assert "every change waits for you" in shown
    assert "hunk 3 of 3  +1 -0  @@ -36,5 +35,6 @@" in shown
    assert "  3 -line 3" in shown
    first, end = page.rows_of(1)
    assert rows(page)[first].startswith("hunk 2 of 3")
    assert page.rows_of(2)[0] == end
    assert page.rows_of(9) == (0, 0)


def test_what_others_changed_is_marked(review: Review, root: Path) -> None:
    change_id = propose(review)
    (root / "a.txt").write_text(OLD.replace("line 12\n", "a person's\n"))
    shown = "\n".join(rows(page_of(review.item(change_id), "1 new error\tx")))
    assert "MOVED" in shown
    assert "+a person's" in shown
    assert "! 1 new error→   x" in shown
    result = review.decide(review.item(change_id), {1})
    assert "Others have changed since" in "\n".join(rows(page_of(review.item(str(result.waits)))))
    (root / "a.txt").write_text(OLD.replace("line 3\n", "mine\n"))
    assert "STALE" in "\n".join(rows(page_of(review.item(str(result.waits)))))


def test_nothing_that_a_stranger_wrote_is_drawn_raw(review: Review, root: Path) -> None:
    (root / "n\u202e\x1b.txt").write_text("")
    text = "a\u202eb\x1b[2J\x07 \u0441onfig\u200b\rx\ny\n"
    item = review.item(propose(review, "n\u202e\x1b.txt", text))
    for two in (False, True):
        shown = "\n".join(rows(page_of(item), 120, two=two))
        assert all(char.isprintable() for char in shown.replace("\n", ""))
        assert "\u202e" not in shown
        for sign in ("\\u202e", "\\x1b[2J", "\\x07", "\\u0441onfig", "\\r"):
            assert sign in shown


def test_two_columns_have_what_was_on_the_left(review: Review) -> None:
    shown = rows(page_of(review.item(propose(review))), 60, two=True)
    (row,) = [one for one in shown if "third" in one]
    left, _, right = row.partition("│")
    assert "-line 3" in left
    assert "+third" in right
    assert {width_of(one.partition("│")[0]) for one in shown if "│" in one} == {29}


def test_text_is_found_from_a_row_on_and_then_from_the_top(review: Review) -> None:
    page = page_of(review.item(propose(review)))
    shown = rows(page)
    at = page.find("THIRD", -1)
    assert at is not None
    assert "third" in shown[at]
    assert page.find("third", at) == at
    assert page.find("nowhere", 0) is None
    assert page.line_at(len(shown)) is None
    assert not [*page.row(len(shown))]


def test_words_that_differ_and_syntax_have_looks_of_their_own() -> None:
    page = of('x = "old"  # why\n', 'x = "new"  # why\n', "a.py")
    page.lay_out(60, two=False)
    pieces = [piece for at in range(page.height) for piece in page.row(at)]
    assert ("old", "string", "remove word") in pieces
    assert ("new", "string", "add word") in pieces
    assert any(look == "comment" for _, look, _ in pieces)


def test_renames_removals_and_line_ends_are_told(review: Review, root: Path) -> None:
    (root / "a.txt").write_text(OLD.rstrip("\n"))
    shown = "\n".join(rows(page_of(review.item(propose(review, text=NEW)))))
    assert "No newline at end of file" in shown
    assert "new c.txt" in "\n".join(rows(page_of(review.item(propose(review, "c.txt", "x\n")))))


@pytest.mark.parametrize("char", ["x", "\u3042"])
def test_a_very_long_line_costs_no_more_than_its_rows(char: str) -> None:
    page = of("", char * 200_000 + "\n")
    page.lay_out(50, two=False)
    last = "".join(text for text, *_ in page.row(page.height - 1))
    assert char in last
    assert width_of(last) <= 50


TEXT = st.text(alphabet="ab \u3042\u0301\u00e9", max_size=120)


@given(TEXT, st.integers(30, 60), st.booleans())
def test_every_character_is_in_some_row_and_no_row_is_too_wide(
    text: str, width: int, two: bool
) -> None:
    page = of("", f"{text}\n")
    shown = rows(page, width, two=two)
    assert all(width_of(one) <= width for one in shown)
    page.lay_out(width, two=two)
    body = "".join(
        text
        for at in range(page.height)
        for text, _look, ground in page.row(at)
        if ground != "plain"
    )
    assert body.replace("+", "", 1).lstrip(" ") == text.lstrip(" ")


@given(TEXT, st.integers(8, 30))
def test_lines_of_words_are_divided_whole(text: str, width: int) -> None:
    page = ReviewPage([PageLine(-1, text)])
    shown = rows(page, width)
    assert "".join(shown) == text
    assert all(width_of(one) <= width for one in shown)
    assert width_of(fit(text, width)) <= width


@pytest.mark.parametrize("two", [False, True])
def test_none_of_four_hundred_characters_that_steer_or_hide_is_drawn_raw(
    review: Review, root: Path, two: bool
) -> None:
    chars = [char for char in all_of_them() if not "\ud800" <= char <= "\udfff"]
    held = chars[1:]  # a file with the first of them is no text
    (root / "a.txt").write_text("".join(f"old{char}text\n" for char in held))
    text = "".join(f"new{char}text <b>&amp;{char}\n" for char in held)
    item = review.item(propose(review, text=text))
    page = page_of(item, "".join(chars))
    shown = "\n".join(rows(page, 100, two=two))
    assert [f"U+{ord(char):04X}" for char in chars if char in shown] == []
    assert "<b>&amp;" in shown

"""A diff as lines: signs, numbers, the words that differ, and two columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from filepact.text.diff import split_hunks, unified
from filepact_windows.drawn_diff import DiffLine, beside, diff_lines

OLD = "one\ntwo\nthree old words\nfour\nfive\n"
NEW = "one\ntwo\nthree new words\nfour\nextra\nfive\n"


def lines(old: str, new: str) -> tuple[DiffLine, ...]:
    return diff_lines(unified(old, new, old_name="a", new_name="a"))


def test_each_line_has_its_sign_and_its_numbers() -> None:
    shown = [(one.sign, one.old, one.new, one.text) for one in lines(OLD, NEW)]
    assert shown == [
        ("h", 0, 0, "--- a/a"),
        ("h", 0, 0, "+++ b/a"),
        ("@", 0, 0, "@@ -1,5 +1,6 @@"),
        (" ", 1, 1, "one"),
        (" ", 2, 2, "two"),
        ("-", 3, 0, "three old words"),
        ("+", 0, 3, "three new words"),
        (" ", 4, 4, "four"),
        ("+", 0, 5, "extra"),
        (" ", 5, 6, "five"),
    ]


def test_the_words_that_differ_are_marked() -> None:
    (removed,) = [one for one in lines(OLD, NEW) if one.sign == "-"]
    ((start, end),) = removed.words
    assert removed.text[start:end] == "old"
    assert all(not one.words for one in lines("", NEW))


def test_a_missing_last_line_end_and_carriage_returns_are_no_text() -> None:
    found = lines("a\r\nb", "a\r\nc")
    assert [one.sign for one in found] == ["h", "h", "@", " ", "-", "\\", "+", "\\"]
    assert found[3].text == "a"


def test_two_columns_hold_what_was_and_what_became_of_it() -> None:
    hunk = lines(OLD, NEW)[3:]
    pairs = [(a and a.text, b and b.text) for a, b in beside(hunk)]
    assert pairs[2] == ("three old words", "three new words")
    assert pairs[4] == (None, "extra")
    assert pairs[5] == ("five", "five")
    more = [(a and a.text, b and b.text) for a, b in beside(lines("a\nb\nc", "x\ny\n")[3:])]
    assert more == [("a", "x"), ("b", "y"), ("c", None), (" No newline at end of file", None)]
    again = [(a and a.sign, b and b.sign) for a, b in beside(lines("a\nq\nb\n", "a\n\n")[3:])]
    assert again == [(" ", " "), ("-", "+"), ("-", None)]


def test_beyond_a_share_of_text_whole_lines_differ() -> None:
    old = "".join(f"word {number} of many\n" for number in range(9_000))
    found = lines(old, old.replace("many", "some"))
    assert not any(one.words for one in found)


TEXTS = st.lists(st.sampled_from(["a", "b b", "-", "+ x", "@@ -1 +1 @@", "\\"]), max_size=9).map(
    lambda some: "".join(f"{one}\n" for one in some)
)


@given(TEXTS, TEXTS)
def test_the_lines_tell_both_texts(old: str, new: str) -> None:
    for text, _edit in split_hunks(old, new, 99):
        found = diff_lines(text)[1:]
        for side, signs, said in ((old, " -", "old"), (new, " +", "new")):
            mine = [one for one in found if one.sign in signs]
            assert "".join(f"{one.text}\n" for one in mine) == side
            assert [getattr(one, said) for one in mine] == list(range(1, len(mine) + 1))
        columns = list(beside(found))
        assert [a for a, _ in columns if a] == [one for one in found if one.sign in " -"]
        assert [b for _, b in columns if b] == [one for one in found if one.sign in " +"]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.edit import Edit, EditList, common_head

TEXTS = st.text(alphabet="ab\n\r", max_size=30)


def edits(*parts: tuple[int, int, str]) -> EditList:
    return EditList(tuple(Edit(*part) for part in parts))


@st.composite
def texts_with_edits(draw: st.DrawFn) -> tuple[str, EditList]:
    text = draw(TEXTS)
    places = sorted(
        draw(st.lists(st.integers(0, len(text)), max_size=8).map(lambda p: p[: len(p) // 2 * 2]))
    )
    pairs = zip(places[::2], places[1::2], strict=True)
    return text, EditList(tuple(Edit(start, end, draw(TEXTS)) for start, end in pairs))


@pytest.mark.parametrize(
    ("text", "list_", "after"),
    [
        ("abc", edits(), "abc"),
        ("abc", edits((0, 0, "x")), "xabc"),
        ("abc", edits((3, 3, "x")), "abcx"),
        ("abc", edits((0, 3, "")), ""),
        ("abc", edits((0, 1, "x"), (1, 2, "yy")), "xyyc"),
        ("abc", edits((1, 1, "1"), (1, 1, "2")), "a12bc"),
        ("a\U0001f600c", edits((2, 3, "x")), "a\U0001f600x"),
    ],
)
def test_edits_are_applied_at_once(text: str, list_: EditList, after: str) -> None:
    assert list_.apply(text) == after
    assert bool(list_) is bool(list_.edits)


@pytest.mark.parametrize("bad", [(-1, 0), (2, 1)])
def test_a_range_that_is_none_is_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not a range"):
        Edit(*bad, "")


@pytest.mark.parametrize("bad", [((0, 2, ""), (1, 3, "")), ((2, 2, ""), (0, 1, ""))])
def test_edits_that_overlap_or_are_not_in_order_are_refused(
    bad: tuple[tuple[int, int, str], ...],
) -> None:
    with pytest.raises(ValueError, match="overlap"):
        edits(*bad)


@pytest.mark.parametrize("method", ["apply", "trim"])
def test_an_edit_beyond_the_text_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match="beyond"):
        getattr(edits((2, 4, "x")), method)("abc")


@pytest.mark.parametrize(
    ("text", "list_", "trimmed"),
    [
        ("abcdef", edits((0, 6, "abXdef")), edits((2, 3, "X"))),
        ("abc", edits((0, 3, "abc")), edits()),
        ("abc", edits((1, 1, "")), edits()),
        ("aaa", edits((0, 3, "aaaa")), edits((3, 3, "a"))),
        ("aaaa", edits((0, 4, "aa")), edits((2, 4, ""))),
        ("abab", edits((0, 2, "xb"), (2, 4, "ax")), edits((0, 1, "x"), (3, 4, "x"))),
    ],
)
def test_trimming_leaves_what_really_changes(text: str, list_: EditList, trimmed: EditList) -> None:
    assert list_.trim(text) == trimmed


@given(texts_with_edits())
def test_trimming_means_the_same_change(case: tuple[str, EditList]) -> None:
    text, list_ = case
    after = list_.apply(text)
    assert list_.trim(text).apply(text) == after
    for edit in list_.trim(text).edits:
        old = text[edit.start : edit.end]
        assert old != edit.text
        assert not old or not edit.text or (old[0] != edit.text[0] and old[-1] != edit.text[-1])


@given(TEXTS, TEXTS)
def test_the_edits_between_two_texts_lead_from_one_to_the_other(old: str, new: str) -> None:
    between = EditList.between(old, new)
    assert between.apply(old) == new
    assert bool(between) is (old != new)


def test_the_edits_between_two_texts_are_by_lines() -> None:
    old = "".join(f"line {n}\n" for n in range(50))
    new = old.replace("line 7\n", "line seven\n").replace("line 30\n", "")
    starts = [old.index("line 7\n"), old.index("line 30\n")]
    assert EditList.between(old, new) == edits(
        (starts[0], starts[0] + 7, "line seven\n"), (starts[1], starts[1] + 8, "")
    )


@given(TEXTS, TEXTS, TEXTS)
def test_the_common_head_is_found_whatever_its_length(head: str, a: str, b: str) -> None:
    left, right = head + a, head + b
    count = common_head(left, right)
    assert left[:count] == right[:count]
    assert left[count : count + 1] != right[count : count + 1] or count == len(left) == len(right)

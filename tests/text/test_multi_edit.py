from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filepact.errors import (
    AmbiguousMatchError,
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    StringNotFoundError,
    TimedOutError,
)
from filepact.text.edit import Edit, EditList, TextRequest
from filepact.text.multi_edit import EditRequest, place_all

TEXT = "alpha = one\nbeta = two\n\tgamma = three\ndelta = four\n"


def after(text: str, *pairs: tuple[str, str]) -> str:
    return place_all(text, [EditRequest(*pair) for pair in pairs], name="a.py").edits.apply(text)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("one", "1")], TEXT.replace("one", "1")),
        ([("one", "1"), ("two", "2")], TEXT.replace("one", "1").replace("two", "2")),
        ([("two", "2"), ("one", "1")], TEXT.replace("one", "1").replace("two", "2")),
        # Inside what an earlier one wrote.
        ([("one", "1 + 2"), ("+ 2", "+ 3")], TEXT.replace("one", "1 + 3")),
        ([("one", "1 + 2"), ("1 + 2", "3")], TEXT.replace("one", "3")),
        ([("one", "1 + 2"), ("1 + 2", "")], TEXT.replace("one", "")),
        ([("alpha = one", "alpha = 1"), ("alpha = 1", "x")], TEXT.replace("alpha = one", "x")),
        # Beside it, also right beside it, and in what an earlier one only repeated.
        ([("one", "1"), ("alpha = ", "a = ")], TEXT.replace("alpha = one", "a = 1")),
        ([("alpha = one\nbeta", "alpha = 1\nbeta"), ("beta = two", "b = 2")],
         TEXT.replace("alpha = one\nbeta = two", "alpha = 1\nb = 2")),
        # Where an earlier one only took something away.
        ([("beta = two\n", ""), ("one\n\tgamma", "1\n\tg")],
         "alpha = 1\n\tg = three\ndelta = four\n"),
        # Each by its own step.
        ([("one", "1"), ("gamma = three \ndelta = four", "gamma = 3 \ndelta = 4")],
         TEXT.replace("one", "1").replace("three", "3").replace("four", "4")),
        ([("    gamma = three\n", "    gamma = 3\n    new = x\n"), ("new = x", "old = x")],
         TEXT.replace("gamma = three", "gamma = 3\n\told = x")),
        ([("    gamma = three\n", "    gamma = 3\n"), ("\tgamma = 3", "g = 4")],
         TEXT.replace("\tgamma = three", "g = 4")),
    ],
)  # fmt: skip
def test_each_is_placed_on_the_result_of_those_before(
    pairs: list[tuple[str, str]], expected: str
) -> None:
    assert after(TEXT, *pairs) == expected


def test_every_place_may_be_replaced_before_and_after_others() -> None:
    wanted = [
        EditRequest(" =", ":", replace_all=True),
        EditRequest("one", "1"),
        EditRequest("t", "T", True),
    ]
    result = place_all(TEXT, wanted)
    assert result.edits.apply(TEXT) == ("alpha: 1\nbeTa: Two\n\tgamma: Three\ndelTa: four\n")
    assert [len(one.spans) for one in result.placements] == [4, 1, 4]


@pytest.mark.parametrize(
    "pairs",
    [
        [("one\nbeta", "1\nb2"), ("b2 = two", "c")],
        [("alpha = one", "x = 1"), ("x = 1\nbeta", "y")],
        [("one", "1"), ("alpha = 1\n", "x\n")],
        [("one", "1"), ("  alpha = 1\n  beta = two", "  x")],
        [("one", "1 + 2\nnew line"), ("    new line \n", "    x\n")],
        [("two", "2"), ("one", "1"), ("= 1\nb", "x")],
    ],
)
def test_one_that_reaches_across_what_another_wrote_is_refused_with_both_numbers(
    pairs: list[tuple[str, str]],
) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        after(TEXT, *pairs)
    other, own = caught.value.details["edits"]
    assert own == len(pairs)
    assert 1 <= other < own
    assert f"edits {other} and {own} overlap" in caught.value.message


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([("one", "1"), ("nowhere", "x")], StringNotFoundError),
        ([("one", "1"), ("= t", "x")], AmbiguousMatchError),
        ([("one", "1"), ("", "x")], InvalidParamsError),
        ([("one", "1"), ("two", "two")], NoChangeError),
        ([("one", "1"), ("1", "one")], NoChangeError),
    ],
)
def test_one_that_fails_fails_all_and_is_named(
    pairs: list[tuple[str, str]], error: type[FilepactError]
) -> None:
    with pytest.raises(error) as caught:
        after(TEXT, *pairs)
    if "together" not in caught.value.message:
        assert "edit 2 of 2" in caught.value.message


def test_of_one_replacement_the_message_does_not_count() -> None:
    with pytest.raises(StringNotFoundError) as caught:
        after(TEXT, ("nowhere", "x"))
    assert "edit 1" not in caught.value.message


def test_a_thousand_replacements_are_made() -> None:
    text = "".join(f"line {n} is here\n" for n in range(1_000))
    wanted = [EditRequest(f"line {n} is", f"row {n} was") for n in range(999, -1, -1)]
    expected = "".join(f"row {n} was here\n" for n in range(1_000))
    assert place_all(text, wanted).edits.apply(text) == expected


def test_it_is_asked_before_each_replacement_whether_to_go_on() -> None:
    asked: list[int] = []

    def check() -> None:
        asked.append(len(asked))
        if len(asked) == 3:
            raise TimedOutError("over")

    wanted = [EditRequest(str(n), "x") for n in range(9)]
    with pytest.raises(TimedOutError):
        place_all("0 1 2 3 4 5 6 7 8", wanted, check=check)
    assert asked == [0, 1, 2]


@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=10),
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["", "x", "x\ny", "w0 w1", "w3"])),
        min_size=2,
        max_size=5,
    ),
)
def test_replacements_are_told_as_they_would_be_made_at_once(
    words: list[int], wanted: list[tuple[int, str]]
) -> None:
    before = now = "\n".join(f"w{word}" for word in words)
    requests: list[EditRequest] = []
    for word, new in wanted:
        one = EditRequest(f"w{word}", new, replace_all=now.count(f"w{word}") > 1)
        with suppress(FilepactError):
            now = place_all(before, [*requests, one]).edits.apply(before)
            requests.append(one)
    assume(requests)
    placed = place_all(before, requests)
    told = sorted(TextRequest(placed.steps).at_once(), key=lambda one: one.start)
    # Whole lines that go away take their break along.
    assert all(one.old and one.old in before[one.start : one.end] for one in told)
    if len(told) == sum(map(len, placed.steps)):
        edits = EditList(tuple(Edit(one.start, one.end, one.put) for one in told))
        assert edits.apply(before) == now


def test_what_an_earlier_replacement_wrote_is_not_told_as_made_at_once() -> None:
    placed = place_all(TEXT, [EditRequest("one", "1 + 2"), EditRequest("2", "3")])
    assert [one.old for one in TextRequest(placed.steps).at_once()] == ["one"]


@pytest.mark.parametrize(("number", "told"), [(500, 500), (501, 0)])
def test_very_many_replacements_are_not_told_as_made_at_once(number: int, told: int) -> None:
    text = "\n".join(f"w{n}." for n in range(number))
    placed = place_all(text, [EditRequest(f"w{n}.", "x") for n in range(number)])
    assert len([*TextRequest(placed.steps).at_once()]) == told

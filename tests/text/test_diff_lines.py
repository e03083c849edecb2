"""A diff that is cut to what fits."""

from __future__ import annotations

import json

import pytest

from filepact.text.diff import unified
from filepact.text.diff_lines import classify, cut_diff


def diff(old: str, new: str) -> str:
    return unified(old, new, old_name="f", new_name="f")


NUMBERS = "".join(f"{number}\n" for number in range(1, 41))
PLOT = '{"o":"' + "A" * 9_000 + '",\n'
ROW = json.dumps([{"id": number, "text": "x" * 20} for number in range(2_000)])


@pytest.mark.parametrize(
    ("head", "signs"),
    [
        ("@@ -1 +1 @@", "@-+hh"),
        ("@@ -1,1 +1,1 @@", "@-+hh"),
        ("@@ -1,2 +1,1 @@", "@-+-h"),
        ("@@ -1,2 +1,2 @@", "@-+-+"),
    ],
)
def test_a_hunk_has_as_many_lines_as_its_head_says(head: str, signs: str) -> None:
    lines = [head, "-a", "+b", "--- x", "+++ y"]
    assert "".join(sign for sign, _line in classify(lines)) == signs


def test_a_cut_diff_says_what_is_left_out() -> None:
    text = diff(NUMBERS, NUMBERS.replace("15\n", "a new line\n" * 40))
    cut = cut_diff(text, 300)
    assert cut.startswith("--- a/f\n+++ b/f\n@@ ")
    assert cut.endswith(" characters) left out\n")
    kept = cut[: cut.rindex("...")].splitlines()
    # Context goes first, and what is left out is counted.
    assert "-15" in kept
    assert not [line for line in kept if line.startswith(" ")]
    assert f"{text.count(chr(10)) - len(kept) - 3} more lines" in cut
    assert cut_diff(text, 0) == text
    assert cut_diff(text, len(text)) == text
    assert len(cut_diff(text, 5)) == 5


@pytest.mark.parametrize("limit", [400, 4_000, 8_000])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PLOT + '"s":"x = 1"}\n', PLOT + '"s":"x = 2"}\n'),
        ('{"s":"x = 1",\n' + PLOT, '{"s":"x = 2",\n' + PLOT),
        ("A" * 9_000 + "x = 1" + "B" * 9_000, "A" * 9_000 + "x = 2" + "B" * 9_000),
        (ROW.replace('"id": 999,', "x = 1"), ROW.replace('"id": 999,', "x = 2")),
        (PLOT * 4 + "x = 1\n" + PLOT * 3, PLOT * 4 + "x = 2\n" + PLOT * 3),
    ],
    ids=["above", "below", "within", "one line", "around"],
)
def test_what_changed_is_shown_beside_the_longest_line(old: str, new: str, limit: int) -> None:
    cut = cut_diff(diff(old, new), limit)
    assert len(cut) <= limit
    changed = [line for line in cut.splitlines() if line[:1] in ("-", "+")]
    assert ["x = 1" in changed[-2], "x = 2" in changed[-1]] == [True, True]
    assert "characters]" in cut or cut.endswith("around were left out\n")
    # Nothing that looks whole is not.
    known = set(diff(old, new).splitlines())
    marks = ("characters]", "left out")
    assert all(line in known or any(mark in line for mark in marks) for line in cut.splitlines())


def test_both_sides_of_many_long_lines_are_cut_around_what_differs_in_each() -> None:
    old = "".join(f"{'A' * 2_000}{number}\n" for number in range(4))
    cut = cut_diff(diff(old, old.replace("A1", "A!").replace("A2", "A?")), 4_000)
    for sign, end in (("-", "1"), ("-", "2"), ("+", "!"), ("+", "?")):
        assert any(line[0] == sign and line.endswith(end) for line in cut.splitlines())

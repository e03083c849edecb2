from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.text.diff import pair_lines, refine


@pytest.mark.parametrize(
    ("old", "new", "removed", "added"),
    [
        ("same", "same", [], []),
        ("f(a, b)", "f(a, c)", ["b"], ["c"]),
        ("return x", "return  x", [" "], ["  "]),
        ("a.b", "a.b.c", [], [".c"]),
        ("one two three", "uno due three", ["one two"], ["uno due"]),
        ("", "new", [], ["new"]),
        ("été", "hiver", ["été"], ["hiver"]),
        ("x" * 2_001, "y", ["x" * 2_001], ["y"]),
        ("x" * 2_001, "", ["x" * 2_001], []),
    ],
)
def test_what_changed_in_a_line_is_found_by_words(
    old: str, new: str, removed: list[str], added: list[str]
):
    spans = refine(old, new)
    assert [old[a:b] for a, b in spans[0]] == removed
    assert [new[a:b] for a, b in spans[1]] == added


@settings(deadline=None)
@given(st.text("ab ,\n"), st.text("ab ,\n"))
def test_what_is_not_marked_is_equal_but_for_blanks(old: str, new: str):
    def rest(line: str, spans: list[tuple[int, int]]) -> str:
        at, kept = 0, ""
        for start, end in spans:
            assert at <= start < end <= len(line)
            kept += line[at:start]
            at = end
        return "".join((kept + line[at:]).split())

    removed, added = refine(old, new)
    assert rest(old, removed) == rest(new, added)


@pytest.mark.parametrize(
    ("removed", "added", "pairs"),
    [
        ([], ["a"], []),
        (["x = 1\n"], ["x = 2\n"], [(0, 0)]),
        (["x = 1\n"], ["# why\n", "x = 2\n"], [(0, 1)]),
        (["import a\n", "x = f(1)\n"], ["x = f(2)\n"], [(1, 0)]),
        (["alpha beta\n"], ["gamma delta\n"], []),
        (["\n"], ["  \n"], [(0, 0)]),
        ([f"line {i}\n" for i in range(60)], ["line 0\n"] * 60, [(i, i) for i in range(60)]),
        (["a b\n"] * 60, ["c d\n"] * 60, []),
    ],
)
def test_a_removed_line_is_paired_with_what_became_of_it(
    removed: list[str], added: list[str], pairs: list[tuple[int, int]]
):
    assert pair_lines(removed, added) == pairs

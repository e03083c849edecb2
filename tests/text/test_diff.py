from __future__ import annotations

import random
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filepact.text import diff as diff_module
from filepact.text.diff import (
    DiffRange,
    compare_lines,
    quote_name,
    split_hunks,
    takes_back,
    unified,
    unified_binary,
)
from filepact.text.edit import Edit
from filepact.text.lines import line_starts

NO_NEWLINE = "\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", []),
        ("", "", []),
        ("", "a", [DiffRange(0, 0, 0, 1)]),
        ("ab", "", [DiffRange(0, 2, 0, 0)]),
        ("abc", "axc", [DiffRange(1, 2, 1, 2)]),
        ("abcd", "bcde", [DiffRange(0, 1, 0, 0), DiffRange(4, 4, 3, 4)]),
        ("Uxyxyxy", "xyxyxyU", [DiffRange(0, 1, 0, 0), DiffRange(7, 7, 6, 7)]),
        ("aaa", "aa", [DiffRange(2, 3, 2, 2)]),
    ],
)
def test_regions_are_those_a_person_would_name(old: str, new: str, expected: list[DiffRange]):
    assert compare_lines(old, new) == expected


@pytest.mark.parametrize("direction", [1, -1])
def test_an_added_function_is_shown_whole(direction: int):
    def function(name: str) -> list[str]:
        return [f"def {name}():\n", "    x = 1\n", "    return x\n", "\n", "\n"]

    texts = [function("a") + function("c"), function("a") + function("b") + function("c")]
    (region,) = compare_lines(*texts[::direction])
    sizes = (region.old_end - region.old_start, region.new_end - region.new_start)
    assert sizes == (0, 5)[::direction]
    assert max((region.old_start, region.old_end), (region.new_start, region.new_end))[0] == 5


def test_a_slide_stops_before_the_neighbouring_region():
    old = ["x\n", "\n", "\n", "\n", "y\n"]
    new = ["z\n", "\n", "\n", "\n", "\n", "y\n"]
    regions = compare_lines(old, new)
    assert regions[0].old_start == 0
    assert all(a.old_end < b.old_start for a, b in pairwise(regions))


@cache
@cache
def hostile_texts() -> dict[str, tuple[list[str], list[str]]]:
    rng = random.Random(3)
    few = [str(rng.randrange(101)) for _ in range(64_000)]
    distinct = [str(i) for i in range(20_000)]
    nested = [f"x{i // 2}" for i in range(40_000)]
    return {
        "few values, all changed": (few, [str(rng.randrange(101)) for _ in range(64_000)]),
        "few values, turned round": (few, few[32_000:] + few[:32_000]),
        "all lines moved": (distinct, rng.sample(distinct, len(distinct))),
        "all lines reversed": (distinct, distinct[::-1]),
        "two values": ([rng.choice("ab") for _ in range(9_000)], list("ab" * 4_000)),
        "first line moved to the end": (nested, [*nested[1:], nested[0], "z"]),
        "one long line": (["a" * 10_000_000], ["a" * 9_999_999 + "b"]),
        "nothing in common": (distinct, [f"y{i}" for i in range(30_000)]),
    }


HOSTILE = (
    "few values, all changed",
    "few values, turned round",
    "all lines moved",
    "all lines reversed",
    "two values",
    "first line moved to the end",
    "one long line",
    "nothing in common",
)


def test_every_hostile_text_is_compared():
    assert tuple(hostile_texts()) == HOSTILE


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_texts_take_bounded_time_and_stay_correct(case: str):
    old, new = hostile_texts()[case]
    rebuilt: list[str] = []
    at = 0
    for region in compare_lines(old, new):
        rebuilt += old[at : region.old_start] + new[region.new_start : region.new_end]
        at = region.old_end
    assert rebuilt + old[at:] == new


def test_many_scattered_changes_of_repeated_lines_are_found_one_by_one():
    rng = random.Random(5)
    old = [str(rng.randrange(101)) for _ in range(20_000)]
    new = list(old)
    for place in rng.sample(range(20_000), 200):
        new[place] = "new"
    assert sum(r.old_end - r.old_start for r in compare_lines(old, new)) == 200


def test_unique_lines_divide_texts_that_differ_nearly_everywhere():
    old = [line for i in range(2_000) for line in (f"anchor {i}", "}", f"old {i}")]
    new = [line for i in range(2_000) for line in (f"anchor {i}", f"new {i}", "}")]
    regions = compare_lines(old, new)
    assert sum(r.old_end - r.old_start for r in regions) == 2_000


def diff(old: str | None, new: str | None, name: str = "f", **more: int) -> str:
    return unified(old, new, old_name=name, new_name=name, **more)


NUMBERS = "".join(f"{i}\n" for i in range(1, 31))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\n", "a\n", ""),
        (None, None, ""),
        ("a\n", "b\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"),
        (None, "a\nb\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("a\n", None, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (
            "a",
            "a\n",
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
        ),
        ("a\r\n", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+a\n"),
        (
            "a\rb\r",
            "a\rc\r",
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\rb\r\n\\ No newline at end of file\n+a\rc\r\n"
            + NO_NEWLINE,
        ),
        ("a\x0cb\u2028c\x85d\n", "", "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\x0cb\u2028c\x85d\n"),
        (None, "", "diff --git a/f b/f\nnew file mode 100644\n"),
        ("", None, "diff --git a/f b/f\ndeleted file mode 100644\n"),
    ],
)
def test_a_unified_diff_is_what_patch_programs_read(
    old: str | None, new: str | None, expected: str
):
    assert diff(old, new) == expected


def test_near_changes_share_a_hunk_and_far_ones_do_not():
    near = NUMBERS.replace("10\n", "ten\n").replace("17\n", "x\n")
    far = NUMBERS.replace("10\n", "ten\n").replace("18\n", "x\n")
    assert [line for line in diff(NUMBERS, near).split("\n") if line.startswith("@@")] == [
        "@@ -7,14 +7,14 @@"
    ]
    assert diff(NUMBERS, far).count("@@ -") == 2


def test_without_context_an_insertion_names_the_line_before_it():
    text = diff("a\nb\n", "a\nx\nb\n", context=0)
    assert text.split("\n")[2:] == ["@@ -1,0 +2 @@", "+x", ""]


@pytest.mark.parametrize(
    ("old", "new", "modes", "expected"),
    [
        ("a\n", "a\n", (0o644, 0o644), []),
        (
            "a\n",
            "a\n",
            (0o644, 0o755),
            ["diff --git a/f b/f", "old mode 100644", "new mode 100755"],
        ),
        (
            None,
            "a\n",
            (None, 0o755),
            ["diff --git a/f b/f", "new file mode 100755", "--- /dev/null"],
        ),
        (None, "a\n", (None, 0o644), ["--- /dev/null"]),
        ("a\n", None, (0o755, None), ["diff --git a/f b/f", "deleted file mode 100755"]),
    ],
)
def test_modes_are_shown_when_they_change(
    old: str | None,
    new: str | None,
    modes: tuple[int | None, int | None],
    expected: list[str],
):
    text = unified(old, new, old_name="f", new_name="f", old_mode=modes[0], new_mode=modes[1])
    assert text.split("\n")[: len(expected) or None] == (expected or [""])


def test_another_name_is_a_rename():
    text = unified("a\n", "b\n", old_name="x", new_name="y z")
    assert text.startswith(
        "diff --git a/x b/y z\nrename from x\nrename to y z\n--- a/x\n+++ b/y z\t"
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain", "plain"),
        ("é漢", "é漢"),
        ('q"', '"q\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("line\nend\x01\x7f", '"line\\nend\\001\\177"'),
    ],
)
def test_names_are_quoted_as_git_does(name: str, written: str):
    assert quote_name(name) == written


def test_a_name_with_blanks_is_closed_by_a_tab():
    assert diff("a\n", "b\n", "x y").startswith("--- a/x y\t\n+++ b/x y\t\n")


def test_binary_contents_get_one_line():
    assert unified_binary(3, 12, "a b.png") == "Binary file a b.png changed (3 -> 12 bytes)\n"


_LINES = st.lists(st.sampled_from(["a\n", "  b\n", "\n", "}\n"]), max_size=3)


@example(["}\n", "\n"], ["a\n"], 18, ["}\n"], [], ["a\n"], 9)
@example(["  b\n"], ["  b\n"], 18, ["}\n"], ["  b\n"], [], 9)
@given(_LINES, _LINES, st.integers(0, 18), _LINES, _LINES, _LINES, st.integers(0, 56))
def test_a_change_is_cut_as_if_all_lines_were_compared(
    first: list[str],
    block: list[str],
    times: int,
    last: list[str],
    gone: list[str],
    came: list[str],
    at: int,
):
    lines = [*first, *block * times, *last]
    old, new = ([*lines[:at], *some, *lines[at:]] for some in (gone, came))
    starts = line_starts(old)
    edits = [edit for _, edit in split_hunks("".join(old), "".join(new))]
    assert edits == [
        Edit(
            *(starts[one.old_start], starts[one.old_end]),
            "".join(new[one.new_start : one.new_end]),
        )
        for one in joined(compare_lines(old, new))
    ]


def joined(regions: list[DiffRange]) -> list[DiffRange]:
    """Regions that one hunk shows are one."""
    found: list[DiffRange] = []
    for one in regions:
        if found and one.old_start - found[-1].old_end <= 6:
            first = found.pop()
            found.append(DiffRange(first.old_start, one.old_end, first.new_start, one.new_end))
        else:
            found.append(one)
    return found


_TEXTS = st.lists(st.sampled_from("abcd"), max_size=8)


@given(_TEXTS, _TEXTS, _TEXTS, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(0, 2))
def test_what_says_quickly_that_nothing_is_taken_back_is_right(
    earlier: list[str], now: list[str], text: list[str], end: str, kept: int
):
    # Each is made from the one before, as texts are, by lines of its own between.
    now = [*earlier[:kept], *now, *earlier[kept + len(now) :]]
    text = [*earlier[: len(text)], *text[:3], *now[len(text) :]]
    texts = ["".join(f"{line}{end}" for line in some) for some in (earlier, now, text)]
    with pytest.MonkeyPatch.context() as patched:
        quickly = takes_back(*texts)
        patched.setattr(diff_module, "_stands_again", lambda *_: True)
        assert takes_back(*texts) == quickly

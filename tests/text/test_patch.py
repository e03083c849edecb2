from __future__ import annotations

import re

import pytest

from filepact.errors import (
    FilepactError,
    PatchAlreadyAppliedError,
    PatchAmbiguousError,
    PatchContextMismatchError,
    PatchMalformedError,
    TimedOutError,
)
from filepact.text.diff import unified
from filepact.text.edit import EditList, RequestMatch
from filepact.text.patch import PatchResult, apply, created_text, parse, reverse

OLD = "".join(f"line {i}\n" for i in range(1, 21))
NEW = OLD.replace("line 5\n", "five\n").replace("line 15\n", "line 15\nextra\n")
FIVE = " line 4\n-line 5\n+five\n line 6\n"
TWO_HUNKS = f"@@ -4,3 +4,3 @@\n{FIVE}@@ -15,2 +15,3 @@\n line 15\n+extra\n line 16\n"
NO_NEWLINE = "\\ No newline at end of file\n"


def run(text: str, patch: str, *, back: bool = False) -> str:
    (one,) = parse(patch)
    return apply(text, reverse(one) if back else one, name="f").edits.apply(text)


def refusal(text: str, patch: str) -> FilepactError:
    with pytest.raises(FilepactError) as caught:
        run(text, patch)
    return caught.value


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(unified(OLD, NEW, old_name="f", new_name="f"), id="diff"),
        pytest.param(TWO_HUNKS, id="no file header"),
        pytest.param("--- f\n+++ f\n" + TWO_HUNKS, id="no prefixes"),
        pytest.param("\n\n" + TWO_HUNKS + "\n\n", id="empty lines around"),
        pytest.param(TWO_HUNKS.rstrip("\n"), id="last line end lost"),
        pytest.param(TWO_HUNKS.replace("@@\n", "@@ def f():\n"), id="section text"),
        pytest.param(TWO_HUNKS.replace("@@ -15", "\n@@ -15"), id="empty line between hunks"),
        pytest.param(TWO_HUNKS.replace(",3 +", ",9 +").replace("15,2", "15,1"), id="counts"),
        pytest.param(TWO_HUNKS.replace("-4,3 +4,3", "-4,90 +4,90"), id="counts too large"),
        pytest.param(TWO_HUNKS.replace("-4,3 +4,3", "-4 +4"), id="counts too small"),
        pytest.param(TWO_HUNKS.replace("-4", "-1").replace("-15", "-1"), id="all numbers 1"),
        pytest.param(TWO_HUNKS.replace("-4", "-6").replace("-15", "-17"), id="numbers shifted"),
        pytest.param(TWO_HUNKS.replace("-4", "-900").replace("-15", "-901"), id="beyond the end"),
        pytest.param(TWO_HUNKS.replace("-4", "-0").replace("-15", "-0"), id="all numbers 0"),
        pytest.param(f"@@ ... @@\n{FIVE}@@\n line 15\n+extra\n line 16\n", id="no numbers"),
        pytest.param(f"@@ @@\n{FIVE}@@ … @@ x\n line 15\n+extra\n line 16\n", id="no numbers 2"),
        pytest.param(TWO_HUNKS.replace("\n", "\r\n"), id="CRLF patch"),
        pytest.param(f"Here it is:\n```diff\n--- a/f\n+++ b/f\n{TWO_HUNKS}```\nDone.", id="fence"),
        pytest.param(f"{TWO_HUNKS}\nThis changes two places:\n * five\n * extra\n", id="prose"),
        pytest.param("Index: f\n=====\n--- f\t(revision 1)\n+++ f\t(x)\n" + TWO_HUNKS, id="svn"),
        pytest.param(f"--- a/f\n+++ b/f\n{TWO_HUNKS}-- \n2.39.5\n\n", id="mailed"),
        pytest.param(
            "From 0123456789012345678901234567890123456789 Mon Sep 17\nSubject: x\n\n---\n"
            f" f | 2 +-\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n{TWO_HUNKS}-- \n2.3",
            id="mailed by git",
        ),
    ],
)
def test_a_patch_applies_as_people_and_models_write_it(patch: str):
    assert run(OLD, patch) == NEW


def test_a_patch_is_taken_back():
    assert run(NEW, TWO_HUNKS, back=True) == OLD
    (patch,) = parse(TWO_HUNKS)
    assert reverse(reverse(patch)) == patch


def test_a_patch_finds_its_lines_below_others():
    above = "new\n" * 7
    assert run(above + OLD, TWO_HUNKS) == above + NEW


def test_a_context_line_that_lost_its_blank_is_an_empty_line():
    assert run("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n") == "a\n\nc\n"
    assert run("a\r\n\r\nb\r\n", "@@ -1,3 +1,3 @@\r\n a\r\n\r\n-b\r\n+c\r\n") == "a\r\n\r\nc\r\n"
    assert run("a\n\nb\n", "@@ -9,9 +9,9 @@\n a\n\n-b\n+c\n\n\n") == "a\n\nc\n"


def test_lines_that_look_like_headers_are_lines_while_the_counts_hold():
    old, new = "a\n-- x\n++ y\nb\n", "a\n++ x\n-- y\nb\n"
    assert run(old, unified(old, new, old_name="f", new_name="f")) == new
    assert run(old, unified(old, "a\n++ y\nb\n", old_name="f", new_name="f")) == "a\n++ y\nb\n"


@pytest.mark.parametrize(
    ("text", "patch", "expected"),
    [
        pytest.param(
            OLD.replace("\n", "\r\n"), TWO_HUNKS, NEW.replace("\n", "\r\n"), id="LF patch, CRLF"
        ),
        pytest.param(
            OLD.replace("\n", "\r"), TWO_HUNKS, NEW.replace("\n", "\r"), id="LF patch, CR file"
        ),
        pytest.param(
            "a\r\nb\nc\r\n", "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+x\n c\n", "a\r\nB\nx\nc\r\n", id="mixed"
        ),
        pytest.param(
            "a\r\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\n+b\r\n", "a\r\nb\r\n", id="patch tells apart"
        ),
        pytest.param("a\r\n", "@@ -0,0 +1 @@\n+x\n", "x\r\na\r\n", id="insertion only, CRLF"),
        pytest.param("a\r\nb\n", "@@ -2,0 +3 @@\n+x\n", "a\r\nb\nx\n", id="insertion only, mixed"),
        pytest.param("", "@@ -0,0 +1 @@\n+x\r\n", "x\r\n", id="empty file"),
        pytest.param(
            "a\r\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\r\nb\r\nc", id="open end, added"
        ),
        pytest.param("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc", id="open end, changed"),
        pytest.param("a\nb", "@@ -1,2 +1 @@\n a\n-b\n", "a\n", id="open end, removed"),
        pytest.param("b", "@@ -1 +1,2 @@\n b\n+c\n", "b\nc", id="open end, single line"),
        pytest.param(
            "a\r\nb", f"@@ -1,2 +1,2 @@\n a\n-b\n{NO_NEWLINE}+b\n", "a\r\nb\r\n", id="end added"
        ),
        pytest.param(
            "a\r\nb\r\n", f"@@ -1,2 +1,2 @@\n a\n-b\n+b\n{NO_NEWLINE}", "a\r\nb", id="end removed"
        ),
        pytest.param("a\n", "@@ -1 +1,2 @@\r\n a\r\n+b\r\n", "a\nb\n", id="CRLF patch, LF file"),
        pytest.param(
            "a\n",
            f"@@ -1 +1 @@\r\n-a\r\n+b\r\n{NO_NEWLINE}",
            "b",
            id="CRLF patch, end removed",
        ),
    ],
)
def test_added_lines_take_the_line_ends_of_the_file(text: str, patch: str, expected: str):
    assert run(text, patch) == expected


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb"])
def test_lines_without_context_begin_below_a_last_line_without_end(text: str):
    (patch,) = parse("@@ -2,0 +3 @@\n+c\n")
    end = text[1:-1]
    assert apply(text, patch).edits.apply(text) == f"{text}{end}c"


def test_without_context_lines_go_to_the_stated_line_only():
    assert run("a\nb\n", "@@ -1,0 +2,2 @@\n+x\n+y\n") == "a\nx\ny\nb\n"
    assert run("a\nb\n", "@@ -2 +1,0 @@\n-b\n") == "a\n"
    assert run("a\nb\n", "@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-b\n+B\n") == "A\nB\n"


def test_touching_changes_become_one_edit():
    (patch,) = parse("@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-b\n+B\n")
    applied = apply("a\nb\n", patch)
    assert [(edit.start, edit.end, edit.text) for edit in applied.edits.edits] == [(0, 4, "A\nB\n")]


def test_lines_that_stay_are_no_edit():
    (patch,) = parse("@@ -1,2 +1,2 @@\n-a\n+a\n b\n")
    asked = RequestMatch(0, 4, "a\nb\n", "a\nb\n", "a\nb\n")
    assert apply("a\nb\n", patch) == PatchResult(EditList(()), (), asked=(asked,))


REPEATED = "x\nsame\ny\n"
SHIFTED = "@@ -4,3 +4,3 @@\n x\n-same\n+new\n y\n@@ -7 +7 @@\n-only\n+one\n"


def test_a_later_hunk_tells_by_how_much_all_are_shifted():
    text = "top\n" * 2 + REPEATED * 2 + "only\n" + REPEATED * 2
    expected = "top\n" * 2 + REPEATED + "x\nnew\ny\none\n" + REPEATED * 2
    assert run(text, SHIFTED) == expected


def test_a_hunk_that_fits_its_line_but_not_the_shift_of_the_next_is_ambiguous():
    error = refusal("top\n" * 3 + REPEATED * 2 + "only\n" + REPEATED * 2, SHIFTED)
    assert type(error) is PatchAmbiguousError
    assert error.details["lines"] == (4, 7)


@pytest.mark.parametrize(
    ("text", "patch", "notes"),
    [
        (OLD, TWO_HUNKS, []),
        (
            "top\n" + OLD,
            TWO_HUNKS,
            [
                "Hunk 1 was placed at line 5; its header says line 4.",
                "Hunk 2 was placed at line 16; its header says line 15.",
            ],
        ),
        (
            OLD,
            f"@@ @@\n{FIVE}",
            [],
        ),
        (
            OLD,
            f"@@ -4,5 +4,5 @@\n{FIVE}",
            ["The counts in the header of hunk 1 were wrong; its lines decided."],
        ),
        (
            OLD.replace("\n", "\r\n"),
            TWO_HUNKS,
            ["The line ends of the patch differ from the file's; the file's were kept."],
        ),
    ],
)
def test_notes_say_what_was_not_as_the_patch_says(text: str, patch: str, notes: list[str]):
    (one,) = parse(patch)
    assert list(apply(text, one).notes) == notes


@pytest.mark.parametrize(
    ("text", "patch", "expected", "said"),
    [
        pytest.param(
            OLD.replace("line 6", "line six"),
            TWO_HUNKS,
            PatchContextMismatchError,
            ["hunk 1", "Line 6 of the file is\n  line six\n", "line 5 of the patch", "  line 6"],
            id="context differs",
        ),
        pytest.param(
            OLD.replace("line 16", "  line 16"),
            TWO_HUNKS,
            PatchContextMismatchError,
            ["hunk 2 (line 6 of the patch)", "differ in blanks only"],
            id="blanks differ",
        ),
        pytest.param(
            OLD.replace("line 5\n", ""), TWO_HUNKS, PatchContextMismatchError, [], id="line gone"
        ),
        pytest.param(
            OLD.replace("line 5\n", "five\n"),
            TWO_HUNKS,
            PatchContextMismatchError,
            ["hunk 1", "stands there already"],
            id="half applied",
        ),
        pytest.param(
            "line 4\n", TWO_HUNKS, PatchContextMismatchError, ["ends after 1"], id="short"
        ),
        pytest.param("", TWO_HUNKS, PatchContextMismatchError, ["ends after 0"], id="empty"),
        pytest.param("x\n" * 9, TWO_HUNKS, PatchContextMismatchError, ["  x\n"], id="another file"),
        pytest.param(NEW, TWO_HUNKS, PatchAlreadyAppliedError, ["already"], id="applied"),
        pytest.param(
            NEW.replace("\n", "\r\n"), TWO_HUNKS, PatchAlreadyAppliedError, [], id="applied, CRLF"
        ),
        pytest.param(
            NEW.replace("\n", "\r"), TWO_HUNKS, PatchAlreadyAppliedError, [], id="applied, CR"
        ),
        pytest.param(
            "a\nnew\nb\n" + "a\nb\n",
            "@@ -1,2 +1,3 @@\n a\n+new\n b\n",
            PatchAlreadyAppliedError,
            [],
            id="applied, and a like place elsewhere",
        ),
        pytest.param(
            OLD.replace("line 4\n", "new\n") + OLD + OLD,
            f"@@ -90,3 +90,3 @@\n{FIVE}",
            PatchAmbiguousError,
            ["lines 24, 44"],
            id="two places",
        ),
        pytest.param(
            "a\nb\n" * 9, "@@ @@\n a\n-b\n+c\n", PatchAmbiguousError, ["and more"], id="many places"
        ),
        pytest.param(
            "x\nb\ny\nb\n", "@@ -1,1 +0,0 @@\n-b\n", PatchAmbiguousError, [], id="removal, twice"
        ),
        pytest.param(
            "a\n", "@@ -1,0 +0,0 @@\n-b\n", PatchContextMismatchError, [], id="removal, not there"
        ),
        pytest.param(
            "a\n", "@@ -9,0 +10 @@\n+b\n", PatchContextMismatchError, ["only adds"], id="beyond"
        ),
        pytest.param(
            "a\nb\n", "@@ -1,3 +1,4 @@\n+x\n", PatchContextMismatchError, ["only adds"], id="count"
        ),
        pytest.param("a\n", "@@ @@\n+x\n", PatchContextMismatchError, ["only adds"], id="nowhere"),
        pytest.param(
            "b\na\n",
            "@@ -1 +1 @@\n-a\n+c\n@@ -4,0 +4 @@\n+x\n",
            PatchContextMismatchError,
            ["hunk 2"],
            id="insertion in a shifted file",
        ),
        pytest.param(
            "b\na\n",
            "@@ -2 +2 @@\n-a\n+c\n@@ -1 +1 @@\n-b\n+x\n",
            PatchContextMismatchError,
            ["hunk 2"],
            id="hunks out of order",
        ),
        pytest.param(
            "a\nb\n",
            f"@@ -1 +1 @@\n-a\n+c\n{NO_NEWLINE}",
            PatchContextMismatchError,
            ["a line end closes"],
            id="end inside the file",
        ),
        pytest.param(
            "a\n",
            f"@@ -1 +1 @@\n-a\n{NO_NEWLINE}+b\n{NO_NEWLINE}",
            PatchContextMismatchError,
            ["a line end closes"],
            id="file has an end",
        ),
        pytest.param(
            "a\n",
            f"@@ -1 +1 @@\n-a\n{NO_NEWLINE}+a\n",
            PatchAlreadyAppliedError,
            [],
            id="line end added already",
        ),
        pytest.param(
            "a\nb\nc\n",
            f"@@ -1,0 +2 @@\n+x\n{NO_NEWLINE}",
            PatchContextMismatchError,
            ["a line end closes"],
            id="insertion with an end inside the file",
        ),
        pytest.param(
            "a\r\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\r\n+c\n", PatchContextMismatchError, [], id="exact"
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_place(
    text: str, patch: str, expected: type[FilepactError], said: list[str]
):
    error = refusal(text, patch)
    assert type(error) is expected
    assert error.hint
    assert error.message.startswith("f: ")
    for part in said:
        assert part in error.message


def test_an_error_shows_the_hunk_in_bounded_length():
    patch = "@@ -1,40 +1,40 @@\n" + "".join(f"-{i}{'x' * 900}\n+{i}\n" for i in range(40))
    error = refusal("y" * 5_000 + "\n", patch)
    assert len(error.message) < 2_500
    assert "-0xxx" in error.message
    assert error.details["patch_line"] == 1
    assert error.details["line"] == 1


GIT = "diff --git a/f b/f\n"


def test_a_file_is_created_from_its_patch():
    (patch,) = parse(f"--- /dev/null\n+++ b/f\n@@ -0,0 +1,9 @@\n+a\n+b\n{NO_NEWLINE}")
    assert created_text(patch) == "a\nb"
    assert apply("", patch).edits.apply("") == "a\nb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\nb", PatchAlreadyAppliedError), ("a\n", PatchContextMismatchError)],
)
def test_a_file_that_exists_is_not_created(text: str, expected: type[FilepactError]):
    error = refusal(text, f"--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n{NO_NEWLINE}")
    assert type(error) is expected


def test_a_created_file_cannot_have_context():
    (patch,) = parse("--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n b\n")
    with pytest.raises(PatchMalformedError) as caught:
        created_text(patch)
    assert caught.value.details["line"] == 5


@pytest.mark.parametrize(
    ("patch", "text", "fits"),
    [
        ("--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", "a\nb\n", True),
        ("--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", "a\nb\nc\n", False),
        (GIT + "deleted file mode 100644\n", "", True),
        (GIT + "deleted file mode 100644\n", "a\n", False),
    ],
)
def test_a_deletion_names_every_line(patch: str, text: str, fits: bool):
    if fits:
        assert run(text, patch) == ""
    else:
        assert type(refusal(text, patch)) is PatchContextMismatchError


@pytest.mark.slow
def test_a_large_patch_with_wrong_numbers_applies():
    old = [f"line {i} {'x' * 40}\n" for i in range(60_000)]
    new = [f"new {i}\n" if i % 10 == 5 else line for i, line in enumerate(old)]
    before, after = "".join(old), "".join(new)
    patch = unified(before, after, old_name="f", new_name="f").replace("@@ -", "@@ -1")
    assert run(before, patch) == after


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("unit", "count", "tail"),
    [("a\n", 50_000, "x\n"), ("a\nb\n", 40_000, "x\n"), ("a\n" * 50 + "b\n", 1_000, "")],
)
def test_repetition_is_refused_in_bounded_time(unit: str, count: int, tail: str):
    text = unit * count + tail
    hunk = "".join(f" {line}\n" for line in (unit * (count // 2)).split("\n")[:-1])
    patch = ("@@ -7777777,9 +1,9 @@\n" + hunk + "+new\n b\n a\n") * 3
    assert refusal(text, patch).code in ("PATCH_AMBIGUOUS", "PATCH_CONTEXT_MISMATCH")


EDGES = "".join(f"line {n}\n" for n in range(1, 31))
CHANGE = (
    "@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+ten\n line 11\n line 12\n line 13\n"
)


def placed(text: str, patch: str) -> str | None:
    try:
        return run(text, patch)
    except PatchContextMismatchError:
        return None


@pytest.mark.parametrize(
    ("differing", "fits"),
    [
        ([7], True),
        ([8], True),
        ([7, 8], True),
        ([7, 13], True),
        ([12, 13], True),
        ([7, 8, 13], False),
        ([9], False),
        ([10], False),
        ([11], False),
        ([7, 8, 9], False),
    ],
)
def test_at_most_two_lines_at_the_edges_of_context_may_differ(differing: list[int], fits: bool):
    text = EDGES
    for number in differing:
        text = text.replace(f"line {number}\n", f"other {number}\n")
    expected = text.replace("line 10\n", "ten\n") if fits else None
    assert placed(text, CHANGE) == expected
    if fits:
        (one,) = parse(CHANGE)
        (note,) = apply(text, one).notes
        assert "Context of hunk 1 differs" in note


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        pytest.param("top\n" + EDGES, CHANGE, id="not at its line"),
        pytest.param(EDGES + EDGES[EDGES.index("line 9\n") :], CHANGE, id="also elsewhere"),
        pytest.param(EDGES, CHANGE.replace("-line 10\n+ten\n", "+ten\n"), id="only adds"),
        pytest.param(EDGES, re.sub("@@.*@@", "@@ @@", CHANGE), id="no numbers"),
    ],
)
def test_context_has_to_be_whole_where_the_place_is_less_than_certain(text: str, patch: str):
    assert placed(text.replace("line 7\n", "other\n", 1), patch) is None


def test_what_is_applied_is_not_applied_again_by_leniency():
    text = EDGES.replace("line 10\n", "ten\n").replace("line 7\n", "other\n")
    assert placed(text, CHANGE) is None


def test_line_ends_are_kept_where_context_differs():
    text = EDGES.replace("line 7\n", "other\n").replace("\n", "\r\n")
    assert placed(text, CHANGE) == text.replace("line 10\r\n", "ten\r\n")


def two_places(first: str, second: str, between: int = 40) -> str:
    filler = "".join(f"filler {n}\n" for n in range(between))
    return f"{filler}{first}{filler}{second}{filler}"


BLOCK = "def stop():\n    self.halt()\n    return None\n"
BLOCK_PATCH = " def stop():\n-    self.halt()\n+    self.end()\n     return None\n"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(BLOCK.replace("halt", "pause"), id="removed line gone"),
        pytest.param("def end():\n    self.halt()\n    return 1\n", id="context gone"),
        pytest.param(BLOCK.replace("None", "0"), id="context differs"),
    ],
)
def test_what_was_changed_at_its_place_is_not_looked_for_in_a_twin(changed: str):
    patch = f"@@ -41,3 +41,3 @@\n{BLOCK_PATCH}"
    assert placed(two_places(changed, "other\n"), patch) is None
    assert placed(two_places(changed, BLOCK), patch) is None
    assert placed(two_places("other\n", BLOCK), patch) is not None


def test_a_hunk_is_not_shifted_between_two_that_are_not():
    text = two_places("gone 1\ngone 2\ngone 3\n", BLOCK, 60) + "end\n"
    first = "@@ -3,2 +3,2 @@\n filler 2\n-filler 3\n+three\n"
    block = f"@@ -61,3 +61,3 @@\n{BLOCK_PATCH}"
    last = "@@ -186,2 +186,2 @@\n filler 59\n-end\n+END\n"
    single = text.replace("filler 2\nfiller 3\n", "only 2\nonly 3\n", 1)
    assert placed(single, first.replace("filler", "only") + block) is not None
    assert placed(single, first.replace("filler", "only") + block + last) is None
    assert placed(single, block + last) is None


def test_a_twin_that_was_not_taken_is_named_with_what_was_changed():
    error = refusal(
        two_places(BLOCK.replace("halt", "pause"), BLOCK), f"@@ -41,3 +41,3 @@\n{BLOCK_PATCH}"
    )
    assert error.code == "PATCH_CONTEXT_MISMATCH"
    assert (error.details["line"], error.details["twin"]) == (42, 84)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(f"@@ -15,2 +15,3 @@\n line 15\n+extra\n line 16\n@@\n{FIVE}", id="order"),
        pytest.param(
            f"*** Begin Patch\n*** Update File: f\n@@ line 7\n{FIVE}*** End Patch\n", id="anchor"
        ),
    ],
)
def test_lines_that_stand_where_a_hunk_may_not_go_are_named(patch: str):
    error = refusal(OLD.replace("line 8", "  line 8"), patch)
    assert error.code == "PATCH_CONTEXT_MISMATCH"
    assert error.details["line"] == 4
    assert "line end" not in error.message


def test_a_hunk_for_the_end_says_when_the_file_goes_on_there():
    update = "*** Begin Patch\n*** Update File: f\n@@\n{}*** End of File\n*** End Patch\n"
    error = refusal(OLD, update.format(FIVE))
    assert error.code == "PATCH_CONTEXT_MISMATCH"
    assert "line end" not in error.message


def test_the_same_lines_elsewhere_are_told_of_a_hunk_that_its_number_placed():
    (one,) = parse(f"@@ -41,3 +41,3 @@\n{BLOCK_PATCH}")
    assert apply(two_places("other\n", "other\n").replace("other\n", BLOCK), one).twins
    assert not apply(two_places(BLOCK, "other\n"), one).twins


def test_it_is_asked_before_each_hunk_whether_to_go_on():
    asked: list[int] = []

    def check() -> None:
        asked.append(len(asked))
        if len(asked) == 3:
            raise TimedOutError("over")

    hunks = "".join(f"@@ -{n} +{n} @@\n-{n}\n+x\n" for n in range(1, 9))
    (patch,) = parse(f"--- a/f\n+++ b/f\n{hunks}")
    with pytest.raises(TimedOutError):
        apply("1\n2\n3\n4\n5\n6\n7\n8\n", patch, check=check)
    assert len(asked) == 3

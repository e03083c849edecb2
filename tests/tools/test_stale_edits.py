"""A bounded form of bench/stale_edits.py: what was made for a text that was read is placed there.

Every case goes through the tools of a real workspace; the file is changed between the read and the
call.  A change is right, or it is refused.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bench.stale_cases import MUST_REFUSE, SERIES, Stale
from bench.stale_edits import World, measure

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path

COUNT = 14
ALL_RIGHT = (
    "uniform entries, one added above",
    "uniform entries, one added below",
    "uniform entries, one removed above",
    "uniform entries, one removed below",
    "repeated hunk, lines added or removed above",
)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Counter[str]]:
    return measure(COUNT, 11)


@pytest.mark.parametrize("series", SERIES)
def test_nothing_is_written_to_a_wrong_place(outcomes: dict[str, Counter[str]], series: str):
    assert sum(outcomes[series].values()) == COUNT
    assert outcomes[series]["WRONG"] == 0


@pytest.mark.parametrize("series", ALL_RIGHT)
def test_what_can_be_told_is_done(outcomes: dict[str, Counter[str]], series: str):
    assert outcomes[series]["right"] == COUNT


def test_ordinary_changes_by_two_are_kept_together(outcomes: dict[str, Counter[str]]):
    assert outcomes["ordinary changes elsewhere"]["right"] >= COUNT - 1


@pytest.mark.parametrize("series", MUST_REFUSE)
def test_what_cannot_be_told_is_refused(outcomes: dict[str, Counter[str]], series: str):
    assert outcomes[series]["refused"] == COUNT


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as world:
        yield world


LOAD = "def load(path):\n    data = read(path)\n    return parse(data)\n"
LEGACY = (
    "def load(path):\n    return cached(path)\n\n\n"
    "def load_legacy(path):\n    data = read(path)\n    return parse(data)\n"
)
BODY = {
    "old_string": "    data = read(path)\n    return parse(data)\n",
    "new_string": "    data = read(path, 'utf-8')\n    return parse(data)\n",
}
TWO = "def one():\n    a = 1\n    return a\n\n\ndef two():\n    return 2\n"
TWO_NOW = "def one():\n    return 1\n\n\ndef two():\n    a = 1\n    return a\n"
ONE = (
    "*** Begin Patch\n*** Update File: {path}\n@@ def one():\n"
    "     a = 1\n-    return a\n+    return a + 1\n*** End Patch\n"
)
BARE = "@@\n     a = 1\n-    return a\n+    return a + 1\n"
PORTS = {"old_string": "  port: 80\n", "new_string": "  port: 443\n"}


@pytest.mark.parametrize(
    ("read", "now", "tool", "arguments"),
    [
        pytest.param(LOAD, LEGACY, "edit_file", BODY, id="copied aside"),
        pytest.param(
            "A:\n  port: 80\nB:\n  port: 81\n",
            "A:\n  port: 8080\nB:\n  port: 80\n",
            "edit_file",
            PORTS,
            id="values swapped",
        ),
        pytest.param(TWO, TWO_NOW, "patch_apply", {"patch": ONE}, id="moved below another anchor"),
        pytest.param(TWO, TWO_NOW, "patch_apply", {"patch": BARE}, id="without numbers"),
        pytest.param(
            "# Install\n\nrun x\n\n# Use\n\nuse x\n",
            "# Install\n\nrun y\n\n# Old ways\n\nrun x\n\n# Use\n\nuse x\n",
            "edit_file",
            {"old_string": "run x\n", "new_string": "run x --fast\n"},
            id="another heading",
        ),
    ],
)
def test_lines_that_stand_below_another_name_now_are_left_alone(
    world: World, read: str, now: str, tool: str, arguments: dict[str, str]
):
    outcome, text = world.run(Stale("", "txt", read, now, tool, arguments, None))
    assert outcome == "refused"
    assert text.startswith("STALE_FILE")


def test_one_place_that_is_left_of_several_is_not_taken_for_the_one_that_was_meant(world: World):
    arguments = {"old_string": "    return a\n", "new_string": "    return b\n"}
    read = "def one():\n    return a\n\n\ndef two():\n    return a\n"
    now = "def one():\n    return 1\n\n\ndef two():\n    return a\n"
    outcome, text = world.run(Stale("", "py", read, now, "edit_file", arguments, None))
    assert outcome == "refused"
    assert text.startswith("STALE_FILE")


def test_what_does_not_fit_what_was_read_may_fit_what_the_file_holds(world: World):
    arguments = {"old_string": "three\n", "new_string": "3\n"}
    case = Stale("", "txt", "one\n", "one\nthree\n", "edit_file", arguments, "one\n3\n")
    assert world.run(case)[0] == "right"


@pytest.mark.parametrize(("read", "told"), [(True, False), (False, True)])
def test_equal_lines_elsewhere_are_told_to_who_has_not_read_the_file(
    world: World, read: bool, told: bool
):
    text = "one\ntwo\nthree\n" * 3
    right = "one\ntwo\nthree\none\n2\nthree\none\ntwo\nthree\n"
    arguments = {"patch": "@@ -4,3 +4,3 @@\n one\n-two\n+2\n three\n"}
    outcome, answer = world.run(
        Stale("", "txt", text, text, "patch_apply", arguments, right), read=read
    )
    assert outcome == "right"
    assert ("lines 1, 7" in answer) == told


@pytest.mark.parametrize(
    ("header", "unread"),
    [
        ("@@ -1,3 +1,3 @@", "refused"),
        ("@@ -20,3 +20,3 @@", "refused"),
        ("@@ -9,3 +9,3 @@", "right"),
        ("@@ -12,3 +12,3 @@", "right"),
        ("@@", "right"),
    ],
)
def test_a_hunk_goes_far_from_its_header_only_in_a_file_that_was_read(
    world: World, header: str, unread: str
):
    text = "".join(f"{n}\n" for n in range(1, 9)) + "zone\n one\n two\n three\n" + "end\n" * 9
    patch = f"--- a/{{path}}\n+++ b/{{path}}\n{header}\n  one\n- two\n+ 2\n  three\n"
    case = Stale(
        "", "txt", text, text, "patch_apply", {"patch": patch}, text.replace(" two\n", " 2\n")
    )
    outcome, answer = world.run(case, read=False)
    assert outcome == unread, answer
    assert outcome == "right" or answer.startswith("PATCH_CONTEXT_MISMATCH")
    assert world.run(case)[0] == "right"


def test_a_hunk_may_go_as_far_as_another_one_says_that_all_has_moved(world: World):
    text = "new\n" * 10 + "".join(f"{n}\n" for n in range(1, 21))
    hunks = "@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n@@ -12,3 +12,3 @@\n 12\n-13\n+thirteen\n 14\n"
    right = text.replace("\n3\n", "\nthree\n").replace("\n13\n", "\nthirteen\n")
    case = Stale("", "txt", text, text, "patch_apply", {"patch": hunks}, right)
    assert world.run(case, read=False)[0] == "right"


def test_a_function_that_was_only_renamed_is_still_found(world: World):
    now = LOAD.replace("load(", "load_file(")
    right = now.replace("read(path)", "read(path, 'utf-8')")
    assert world.run(Stale("", "py", LOAD, now, "edit_file", BODY, right))[0] == "right"


@pytest.mark.parametrize(("ends", "now_ends"), [("\n", "\r\n"), ("\r\n", "\n")])
def test_line_ends_that_somebody_converted_are_kept(world: World, ends: str, now_ends: str):
    read = LOAD.replace("\n", ends)
    now = ("import x\n" + LOAD).replace("\n", now_ends)
    right = now.replace("read(path)", "read(path, 'utf-8')")
    assert world.run(Stale("", "py", read, now, "edit_file", BODY, right))[0] == "right"


@pytest.mark.parametrize(
    ("read", "now"),
    [
        ("cc\r\nload(path)\r\ncc\r\n", "cc\nload(path)\r\nnew\ncc\n"),
        ("aa\n\nload(path)\n", "aa\n\nnew\nload(path)\r\n"),
    ],
    ids=["other ends around it", "its end alone"],
)
def test_an_edited_line_keeps_its_end_where_others_put_lines_in(world: World, read: str, now: str):
    body = {"old_string": "load(path)", "new_string": "load_file(path)"}
    right = now.replace("load(", "load_file(")
    assert world.run(Stale("", "txt", read, now, "edit_file", body, right))[0] == "right"


def test_the_answer_names_the_lines_of_the_file_as_it_is(world: World):
    now = "import x\n" * 7 + LOAD
    right = now.replace("read(path)", "read(path, 'utf-8')")
    outcome, text = world.run(Stale("", "py", LOAD, now, "edit_file", BODY, right))
    assert outcome == "right"
    assert "(line 9)" in text

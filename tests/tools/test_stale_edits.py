"""A bounded form of bench/stale_edits.py: what was made for a text that was read is placed there.

Every case goes through the tools of a real workspace; the file is changed between the read and the
call.  A change is right, or it is refused.
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

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
        ("@@ -1,3 +1,3 @@", "right"),
        ("@@ -20,3 +20,3 @@", "right"),
        ("@@ -9,3 +9,3 @@", "right"),
        ("@@ -12,3 +12,3 @@", "right"),
        ("@@", "right"),
    ],
)
def test_a_hunk_that_removes_lines_goes_where_they_stand_whatever_its_header_says(
    world: World, header: str, unread: str
):
    text = "".join(f"{n}\n" for n in range(1, 9)) + "zone\n one\n two\n three\n" + "end\n" * 9
    patch = f"--- a/{{path}}\n+++ b/{{path}}\n{header}\n  one\n- two\n+ 2\n  three\n"
    case = Stale(
        "", "txt", text, text, "patch_apply", {"patch": patch}, text.replace(" two\n", " 2\n")
    )
    outcome, answer = world.run(case, read=False)
    assert outcome == unread, answer
    assert world.run(case)[0] == "right"


@pytest.mark.parametrize(("line", "unread"), [(1, "right"), (9, "right"), (20, "refused")])
def test_a_hunk_that_only_adds_goes_far_from_its_header_only_in_a_file_that_was_read(
    world: World, line: int, unread: str
):
    text = "".join(f"{n}\n" for n in range(1, 9)) + "zone\n one\n two\n three\n" + "end\n" * 9
    patch = f"@@ -{line},3 +{line},4 @@\n  one\n  two\n+ more\n  three\n"
    right = text.replace(" two\n", " two\n more\n")
    case = Stale("", "txt", text, text, "patch_apply", {"patch": patch}, right)
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
    assert "edit f1.py, line 9 (+1 -1)" in text


# -- what the session wrote is gone, or stands elsewhere as well -------------------------------------

THREE = "a\nb\nc\n"


def test_a_whole_text_that_was_sent_before_is_not_said_to_be_there(world: World):
    sent = {"content": "a\nc\n"}
    case = Stale("", "txt", THREE, THREE, "write_file", sent, None, first=sent)
    outcome, text = world.run(case)
    assert outcome == "refused"
    assert text.startswith("STALE_FILE")
    revision = re.search(r"send expected_revision (\w+)", text)
    assert revision
    case = Stale(
        "",
        "txt",
        THREE,
        THREE,
        "write_file",
        {**sent, "expected_revision": revision[1]},
        "a\nc\n",
        first=sent,
    )
    assert world.run(case)[0] == "right"


def test_a_file_that_was_emptied_and_filled_again_is_not_said_to_be_empty(world: World):
    sent = {"content": ""}
    case = Stale("", "md", "x\n", "# Review\n", "write_file", sent, None, first=sent)
    assert world.run(case)[1].startswith("STALE_FILE")
    case = Stale("", "md", "x\n", "# Review\n", "write_file", sent, "", sent, read_again=True)
    assert world.run(case)[0] == "right"


OPENS = ["package a", *(f"// {n}" for n in range(30)), "r := open()", "use(r)"]


OPENED = {"old_string": "open()", "new_string": "util.Open()", "replace_all": True}
PACKAGE = {"old_string": "package a", "new_string": "package b"}


@pytest.mark.parametrize("edits", [OPENED, {"edits": [OPENED]}, {"edits": [OPENED, PACKAGE]}])
def test_every_place_that_the_file_has_now_is_replaced(world: World, edits: dict[str, Any]):
    now = [*OPENS[:5], "q := open()", "use(q)", *OPENS[5:], "s := open()"]
    text = "\n".join(now) + "\n"
    right = text.replace("open()", "util.Open()")
    if PACKAGE in edits.get("edits", ()):
        right = right.replace("package a", "package b")
    case = Stale("", "go", "\n".join(OPENS) + "\n", text, "edit_file", edits, right)
    assert world.run(case)[0] == "right"


METHOD = "    def free(self, i):\n        self.slots.append(i)\n"
ONE_CLASS = f"class A:\n    x = 1\n\n{METHOD}\n\nclass Kind:\n    y = 1\n"
TWO_CLASSES = ONE_CLASS.replace(
    "\n\nclass Kind", f"\n\nclass Fast:\n    z = 2\n\n{METHOD}\n\nclass Kind"
)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("edit_file", {"old_string": METHOD, "new_string": ""}, "AMBIGUOUS_MATCH"),
        (
            "edit_file",
            {
                "edits": [
                    {"old_string": METHOD, "new_string": ""},
                    {"old_string": "x = 1", "new_string": "x = 2"},
                ]
            },
            "AMBIGUOUS_MATCH",
        ),
        (
            "patch_apply",
            {
                "patch": "*** Begin Patch\n*** Update File: {path}\n@@\n     def free(self, i):\n"
                "-        self.slots.append(i)\n+        pass\n*** End Patch\n"
            },
            "PATCH_AMBIGUOUS",
        ),
    ],
)
def test_what_has_got_a_second_place_since_it_was_read_is_refused(
    world: World, tool: str, arguments: dict[str, Any], code: str
):
    outcome, text = world.run(Stale("", "py", ONE_CLASS, TWO_CLASSES, tool, arguments, None))
    assert outcome == "refused"
    assert text.startswith(code)


def test_a_change_that_git_took_away_is_made_again(world: World):
    text = "package a\n\nfunc A() {\n\t// nothing here\n}\n"
    old = "func A() {\n\t// nothing here\n}"
    sent = {"old_string": old, "new_string": f"{old}\n\nfunc B() {{\n\t// nothing here\n}}"}
    right = text.replace(old, sent["new_string"])
    outcome, answer = world.run(Stale("", "go", text, text, "edit_file", sent, right, first=sent))
    assert outcome == "right"
    assert "again as you knew it before" in answer


@pytest.mark.parametrize("listed", [False, True])
def test_what_stands_in_the_file_word_for_word_is_not_looked_for_by_its_lines_in_what_was_known(
    world: World, listed: bool
):
    text = "def a():\n    one = 1\n    return one\n\n\nclass B:\n    def b():\n        one = 1\n"
    sent: dict[str, Any] = {"old_string": "\n    one = 1\n", "new_string": "\n    one = 2\n"}
    right = text.replace("    one = 1\n    return", "    one = 2\n    return")
    if listed:
        sent = {"edits": [sent]}
    case = Stale("", "py", text, text, "edit_file", sent, right, first=sent)
    outcome, answer = world.run(case)
    assert outcome == "right", answer


BLOCKS = [
    [
        f"func Test{n}(t *testing.T) {{",
        "\tt.Parallel()",
        "\ttests := []struct {",
        "\t}{",
        "\t}",
        f"\t_ = {n}",
        "}",
        "",
    ]
    for n in (1, 2, 3)
]


def test_lines_that_stand_once_are_found_below_a_header_that_got_a_remark(world: World):
    lines = [line for block in BLOCKS for line in block]
    now = [line + " //nolint" * (at == 8) for at, line in enumerate(lines)]
    old = lines[9:15]
    sent = {
        "old_string": "\n".join(old),
        "new_string": "\n".join([*old[:2], "\t\tmore int", *old[2:]]),
    }
    right = "\n".join([*now[:11], "\t\tmore int", *now[11:]])
    case = Stale("", "go", "\n".join(lines), "\n".join(now), "edit_file", sent, right)
    assert world.run(case)[0] == "right"


def test_a_text_that_has_what_a_formatter_brought_in_was_made_from_that(world: World):
    lines = [f"line {n}" for n in range(1, 31)]
    now = [line + " //nolint" if at in (4, 14, 20, 24) else line for at, line in enumerate(lines)]
    mine = [*now[:24], "line 25 by the agent", *now[25:]]
    sent, before = ("\n".join(one) + "\n" for one in (mine, lines))
    case = Stale("", "go", before, "\n".join(now) + "\n", "write_file", {"content": sent}, sent)
    outcome, answer = world.run(case)
    assert outcome == "right", answer
    assert "most of what was changed" in answer


def test_lines_that_came_last_stay_beside_a_text_that_has_the_others(world: World):
    lines = [f"line {n}" for n in range(1, 31)]
    others = [
        line + " //nolint" if at in (4, 14, 20, 24, 26) else line for at, line in enumerate(lines)
    ]
    mine = [*others[:24], "line 25 by the agent", *others[25:]]
    now = [*others[:8], "a person's, come last", *others[8:]]
    right = [*mine[:8], "a person's, come last", *mine[8:]]
    before, there, sent, wanted = ("\n".join(one) + "\n" for one in (lines, now, mine, right))
    case = Stale("", "go", before, there, "write_file", {"content": sent}, wanted)
    outcome, answer = world.run(case)
    assert outcome == "refused", answer
    others += ["more 1 //nolint", "more 2 //nolint", "more 3 //nolint"]
    mine, now, right = ([*one, *others[-3:]] for one in (mine, now, right))
    before, there, sent, wanted = ("\n".join(one) + "\n" for one in (lines, now, mine, right))
    case = Stale("", "go", before, there, "write_file", {"content": sent}, wanted)
    outcome, answer = world.run(case)
    assert outcome == "right", answer


def test_lines_that_came_last_stay_where_others_were_rewritten_too(world: World):
    body = "".join(f"step {n}\n" for n in range(1, 9))
    there, sent = f"#!/bin/sh\n\n{body}\ntask default\n", f"#!/bin/bash\n\n{body}"
    right = there.replace("#!/bin/sh", "#!/bin/bash")
    case = Stale("", "sh", "#!/bin/sh\n\nold\n", there, "write_file", {"content": sent}, right)
    outcome, answer = world.run(case)
    assert outcome == "right", answer
    sent = sent.replace("step 8\n", "")
    there = there.replace("\ntask default", "old\ntask default")
    case = Stale("", "sh", "#!/bin/sh\n\nold\n", there, "write_file", {"content": sent}, None)
    outcome, answer = world.run(case)
    assert outcome == "refused", answer


def test_a_text_in_the_layout_of_before_was_not_made_from_what_a_formatter_left(world: World):
    before = "a {\n  x: 1;\n  y: 2;\n}\n"
    sent = before.replace("2", "3")
    there = sent.replace("  ", "\t")
    case = Stale("", "css", before, there, "write_file", {"content": sent}, None)
    outcome, answer = world.run(case)
    assert outcome == "refused", answer


# -- hunks without numbers, and hunks that differ in blanks ------------------------------------------

ANCHORED = (
    "function a() {\n  one();\n}\n\nfunction b() {\n  two();\n}\n\nfunction c() {\n  three();\n}\n"
)
EQUAL = "t1 {\n  old();\n  x();\n}\nt2 {\n  old();\n  x();\n}\n"
BETWEEN = "a1\n  x();\nmid\n  x();\nend\n  x();\nlast\n"
HELP = "Commands:\n  deploy x\n                       Resolve it\n  list\n"
ENDING = "a\nfunction z() {\n  return 1;\n}\n"


@pytest.mark.parametrize(
    ("text", "hunks", "right"),
    [
        pytest.param(
            ANCHORED,
            "@@\n function b() {\n@@\n }\n+\n+function b2() {}\n",
            ANCHORED.replace("two();\n}\n", "two();\n}\n\nfunction b2() {}\n"),
            id="below a hunk of context",
        ),
        pytest.param(
            EQUAL,
            "@@\n-  old();\n+  neu();\n   x();\n" * 2,
            EQUAL.replace("old", "neu"),
            id="in order",
        ),
        pytest.param(EQUAL, "@@\n-  old();\n+  neu();\n   x();\n", None, id="one of two"),
        pytest.param(
            BETWEEN,
            "@@\n-mid\n+MID\n@@\n-  x();\n+  y();\n@@\n-end\n+END\n",
            "a1\n  x();\nMID\n  y();\nEND\n  x();\nlast\n",
            id="between",
        ),
        pytest.param(BETWEEN, "@@\n-  x();\n+  y();\n", None, id="several"),
        pytest.param(
            HELP,
            "@@\n   deploy x\n                      Resolve it\n+  work\n   list\n",
            HELP.replace("  list", "  work\n  list"),
            id="blanks",
        ),
        pytest.param(
            HELP + HELP,
            "@@\n   deploy x\n                      Resolve it\n+  work\n   list\n",
            None,
            id="blanks, twice",
        ),
        pytest.param(
            ENDING, "@@\n-function z() {\n-  return 1;\n-}\n-\n", "a\n", id="a blank line more"
        ),
    ],
)
def test_hunks_without_numbers_have_the_places_that_their_order_leaves(
    world: World, text: str, hunks: str, right: str | None
):
    patch = f"*** Begin Patch\n*** Update File: {{path}}\n{hunks}*** End Patch"
    outcome, answer = world.run(Stale("", "ts", text, text, "patch_apply", {"patch": patch}, right))
    assert outcome == ("refused" if right is None else "right"), answer
    assert right is not None or "line numbers in the hunk" not in answer


def test_a_file_that_a_patch_deletes_and_adds_is_written_anew(world: World):
    patch = "*** Begin Patch\n*** Delete File: {path}\n*** Add File: {path}\n+new\n*** End Patch"
    assert (
        world.run(Stale("", "ts", ENDING, ENDING, "patch_apply", {"patch": patch}, "new\n"))[0]
        == "right"
    )
    patch = "*** Begin Patch\n*** Add File: {path}\n+new\n*** Delete File: {path}\n*** End Patch"
    assert (
        world.run(Stale("", "ts", ENDING, ENDING, "patch_apply", {"patch": patch}, None))[0]
        == "refused"
    )


@pytest.mark.parametrize(
    ("text", "old", "right"),
    [
        ("a\nb\nc\n", "b", "a\nc\n"),
        ("a\r\nb\r\nc\r\n", "b", "a\r\nc\r\n"),
        ("a\nxb\nc\n", "b", "a\nx\nc\n"),
        ("a\nbx\nc\n", "b", "a\nx\nc\n"),
        ("a\nb\n\nc\n", "b\n", "a\n\nc\n"),
        ("a\nb", "b", "a\n"),
    ],
)
def test_whole_lines_go_with_their_line_break(world: World, text: str, old: str, right: str):
    sent = {"old_string": old, "new_string": ""}
    outcome, answer = world.run(Stale("", "txt", text, text, "edit_file", sent, right))
    assert outcome == "right"
    assert ("with its line break" in answer) == (len(text) - len(right) > len(old))


SECTIONS = "a\n[u]\nd = 1\ne = 2\n"
ABOVE = {"old_string": "[u]\n", "new_string": "[u]\nd = 1\n[p]\nq = 1\n[u]\n"}
LAST = {"old_string": "e = 2", "new_string": "e = 3"}
ABOVE_PATCH = {
    "patch": "*** Begin Patch\n*** Update File: {path}\n@@\n a\n+[u]\n+d = 1\n+[p]\n+q = 1\n [u]\n*** End Patch"
}


@pytest.mark.parametrize(
    ("read", "now", "tool", "arguments"),
    [
        # What comes and what was there begin alike: the line that somebody took away would be back.
        (SECTIONS, SECTIONS.replace("d = 1\n", ""), "edit_file", ABOVE),
        (SECTIONS, SECTIONS.replace("d = 1\n", ""), "patch_apply", ABOVE_PATCH),
        (SECTIONS, SECTIONS.replace("[u]", "[v]"), "edit_file", ABOVE),
        (SECTIONS, SECTIONS.replace("d = 1\n", ""), "edit_file", {"edits": [ABOVE, LAST]}),
        (SECTIONS, SECTIONS.replace("d = 1\n", ""), "edit_file", {"edits": [LAST, ABOVE]}),
    ],
)
def test_lines_that_are_equal_to_changed_ones_are_not_taken_for_them(
    world: World, read: str, now: str, tool: str, arguments: dict[str, str]
):
    outcome, text = world.run(Stale("", "ini", read, now, tool, arguments, None))
    assert (outcome, text[:10]) == ("refused", "STALE_FILE")


@pytest.mark.parametrize("change", [("e = 2", "e = 3"), ("a\n", "b\n")])
def test_lines_that_are_equal_to_what_others_left_alone_are_put_in(
    world: World, change: tuple[str, str]
):
    now = SECTIONS.replace(*change)
    right = now.replace(*ABOVE.values())
    case = Stale("", "ini", SECTIONS, now, "edit_file", ABOVE, right)
    assert world.run(case)[0] == "right"
    if change[0] == "a\n":
        several = {"edits": [ABOVE, LAST, {"old_string": "q = 1", "new_string": "q = 7"}]}
        all_of_it = right.replace("e = 2", "e = 3").replace("q = 1", "q = 7")
        case = Stale("", "ini", SECTIONS, now, "edit_file", several, all_of_it)
        assert world.run(case)[0] == "right"


ADDS = "def add(a):\n    x = 1\n    y = 2\n    return x + y\n\n\n"
MODULE = f"import os\n\n\n{ADDS}def none():\n    return 0\n"
HUNK = " def add(a):\n     x = 1\n-    y = 2\n+    y = 3\n     return x + y\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"old_string": "    y = 2\n", "new_string": "    y = 3\n"}),
        ("patch_apply", {"patch": f"--- a/f\n+++ b/f\n@@ -4,4 +4,4 @@\n{HUNK}"}),
        (
            "patch_apply",
            {"patch": f"*** Begin Patch\n*** Update File: {{path}}\n@@\n{HUNK}*** End Patch"},
        ),
        ("write_file", {"content": MODULE.replace("y = 2", "y = 3")}),
    ],
)
def test_of_a_function_that_was_copied_beside_itself_nobody_knows_which_is_meant(
    world: World, tool: str, arguments: dict[str, str]
):
    now = MODULE.replace(ADDS, ADDS * 2)
    assert world.run(Stale("", "py", MODULE, now, tool, arguments, None))[0] == "refused"


DEEP_AND_FLAT = (
    "def flat():\n    one = read()\n    return one\n\n\n"
    "def deep():\n    if ready:\n        one = read()\n        return one\n"
)
DEEP = {
    "old_string": "        one = read()\n        return one\n",
    "new_string": "        one_new = read()\n        return one_new\n",
}


def test_a_change_that_was_taken_away_is_not_made_in_lines_that_only_look_like_it(world: World):
    right = DEEP_AND_FLAT.replace(DEEP["old_string"], DEEP["new_string"])
    again = Stale("", "py", DEEP_AND_FLAT, DEEP_AND_FLAT, "edit_file", DEEP, right, first=DEEP)
    assert world.run(again)[0] == "right"


def test_lines_that_came_elsewhere_just_as_they_were_sent_are_not_passed_over(world: World):
    read = DEEP_AND_FLAT.replace("        one = read()\n", "        one = later()\n")
    stale = Stale("", "py", read, DEEP_AND_FLAT, "edit_file", DEEP, None)
    outcome, answer = world.run(stale)
    assert outcome == "refused", answer
    assert answer.startswith("STALE_FILE")


@pytest.mark.parametrize("last_first", [False, True])
def test_each_edit_of_a_list_is_placed_as_carefully_as_a_single_one(world: World, last_first: bool):
    """Lines that stand whole below a copy of their header, and a list that Git took away."""
    body = "    if a:\n        wait(a)\n    return a\n"
    read = f"def one(a):\n{body}\n\nlast = 1\n"
    now = read.replace(body, body.replace("    return a\n", "") + body)
    edits = [
        {"old_string": body, "new_string": body.replace("wait", "await")},
        {"old_string": "last = 1\n", "new_string": "last = 1\nmore = 2\n"},
    ]
    sent = {"edits": edits[::-1] if last_first else edits}
    for arguments in (edits[0], sent):
        outcome, answer = world.run(Stale("", "py", read, now, "edit_file", arguments, None))
        assert outcome == "refused", answer
        assert "stand somewhere else as they were" in answer
    right = read.replace("wait", "await") + "more = 2\n"
    again = Stale("", "py", read, read, "edit_file", sent, right, first=sent)
    assert world.run(again)[0] == "right"


@pytest.mark.parametrize("everywhere_first", [False, True])
def test_an_edit_beside_one_that_is_meant_everywhere_goes_where_it_was_sent_to(
    world: World, everywhere_first: bool
):
    read = "def one():\n    return old()\n\n\ndef two():\n    wait()\n    return old()\n"
    edits = [
        {"old_string": "old()", "new_string": "new()", "replace_all": True},
        {"old_string": "    wait()\n", "new_string": "    wait(2)\n"},
    ]
    sent = {"edits": edits if everywhere_first else edits[::-1]}
    now = "old()\n\n\n" + read
    right = now.replace("old()", "new()").replace("wait()", "wait(2)")
    assert world.run(Stale("", "py", read, now, "edit_file", sent, right))[0] == "right"
    # Where the single one has no certain place, none is made.
    moved = now.replace("    wait()\n", "").replace("def one():\n", "def one():\n    wait()\n")
    assert world.run(Stale("", "py", read, moved, "edit_file", sent, None))[0] == "refused"


_TWICE = "d\ng\ne\nh\n"
_LISTED = "*** Begin Patch\n*** Update File: {path}\n@@\n"


@pytest.mark.parametrize(
    ("read", "now", "tool", "arguments"),
    [
        pytest.param(
            _TWICE,
            _TWICE.replace("d", "Z"),
            "patch_apply",
            {"patch": "@@ -1,3 +1,5 @@\n+d\n+N\n d\n g\n e\n"},
            id="put before an equal line that was rewritten",
        ),
        pytest.param(
            _TWICE,
            _TWICE.replace("d", "Z"),
            "edit_file",
            {"old_string": "d\ng\n", "new_string": "d\nN\nd\ng\n"},
            id="before or after a line that was rewritten",
        ),
        pytest.param(
            "k\nn\n",
            "k4\n",
            "patch_apply",
            {"patch": _LISTED + " k\n+n\n n\n*** End Patch\n"},
            id="between two lines that are gone",
        ),
        pytest.param(
            "b\na\n-\nc\nd\ne\n",
            "b\na\n-\nc\nd\na\ne\n",
            "patch_apply",
            {"patch": _LISTED + " b\n a\n -\n+c\n+x\n+e\n c\n d\n-e\n+\n+d\n*** End Patch\n"},
            id="a block that begins and ends as its neighbours",
        ),
        pytest.param(
            "a\na\n\na\n}\n}\n",
            "a\na\n\nnew\n}\n}\n",
            "patch_apply",
            {"patch": _LISTED + " a\n a\n-\n-a\n }\n }\n*** End Patch\n"},
            id="one of two equal stretches removed, and rewritten",
        ),
    ],
)
def test_a_change_does_not_slide_over_equal_lines_that_somebody_rewrote(
    world: World, read: str, now: str, tool: str, arguments: dict[str, str]
):
    outcome, text = world.run(Stale("", "txt", read, now, tool, arguments, None))
    assert outcome == "refused", text
    assert text.startswith("STALE_FILE")


@pytest.mark.parametrize(
    ("read", "now", "old", "new", "right"),
    [
        pytest.param(
            "a {\n  x;\n}\nb {\n  y;\n}\n",
            "a {\n  x;\n} // end\nb {\n  y;\n}\n",
            "  x;\n}\n",
            "  x;\n}\nc {\n  w;\n}\n",
            "a {\n  x;\n} // end\nc {\n  w;\n}\nb {\n  y;\n}\n",
            id="below the end of a block",
        ),
        pytest.param(
            "@cached\ndef a():\n    pass\n",
            "@cached(60)\ndef a():\n    pass\n",
            "@cached\ndef a():\n",
            "@cached\ndef new():\n    q()\n\n@cached\ndef a():\n",
            "@cached\ndef new():\n    q()\n\n@cached(60)\ndef a():\n    pass\n",
            id="above a blank line",
        ),
    ],
)
def test_where_one_cut_reads_best_a_rewritten_line_beside_it_is_kept(
    world: World, read: str, now: str, old: str, new: str, right: str
):
    arguments = {"old_string": old, "new_string": new}
    assert world.run(Stale("", "txt", read, now, "edit_file", arguments, right))[0] == "right"


_ONE, _TWO = "def one():\n    x = 1\n    return x\n", "def two():\n    y = 2\n    return y\n"
_ANOTHER = "def three():\n    return 0\n"


@pytest.mark.parametrize(
    ("read", "now", "mine"),
    [
        pytest.param(
            f"import a\n\n{_ONE}\n{_TWO}",
            f"import a\nimport os\n\n{_TWO}\n{_ONE}",
            f"import a\nimport os\n\n{_ONE.replace('return x', 'return x + 1')}\n{_TWO}",
            id="an import that both put in, and what was moved",
        ),
        pytest.param(
            f"import a\n\n{_ONE}\n{_TWO}",
            f"import a\n\n{_TWO}\n{_ANOTHER}\n{_ONE}",
            f"import a\n\n{_ANOTHER}\n{_ONE.replace('1', '2')}\n{_TWO}",
            id="a function that both put in, and what was moved",
        ),
        pytest.param(
            "steps:\n- make\n- make\n",
            "steps:\n- make\n- make\n- make\n",
            "- make\n- all\nsteps:\n- make\nsteps: 78\n- new\n",
            id="an equal line that both put in",
        ),
        pytest.param(
            "## Added\n- a\n## Changed\n- fix\n- fix\n- b\n## Changed\n- c\n",
            "- a\n## Changed\n- fix\n- fix\n- b\n## Changed\n- c\n## Added\n",
            "## Added\n- a\n## Changed\n- fix\n- 67\n## Added\n- b\n## Changed\n- c\n- new\n",
            id="a heading that was moved, and another one like it",
        ),
    ],
)
def test_a_whole_text_that_has_lines_of_somebody_by_chance_does_not_take_back_what_they_did(
    world: World, read: str, now: str, mine: str
):
    outcome, text = world.run(Stale("", "py", read, now, "write_file", {"content": mine}, None))
    assert outcome == "refused", text


_PASS, _ON = "def a():\n    pass\n", "[s]\nz = 1\non = true\n"
_LIST = "## A\n\n- one\n- fix\n"


@pytest.mark.parametrize(
    ("read", "last", "changed", "put"),
    [
        pytest.param(
            _PASS, "    pass\n", "    return 1\n", "\n\ndef b():\n    pass\n", id="function"
        ),
        pytest.param(_ON, "on = true\n", "on = false\n", "\n[c]\ng = 2\non = true\n", id="table"),
        pytest.param(_LIST, "- fix\n", "- fixed\n", "\n## B\n\n- two\n- fix\n", id="section"),
    ],
)
@pytest.mark.parametrize("tool", ["write_file", "edit_file", "patch_apply"])
def test_what_is_put_at_the_end_does_not_take_a_last_line_that_somebody_changed(
    world: World, tool: str, read: str, last: str, changed: str, put: str
):
    patch = f"@@\n {last}{''.join(f'+{one}' for one in put.splitlines(keepends=True))}"
    arguments = {
        "write_file": {"content": read + put},
        "edit_file": {"old_string": last, "new_string": last + put},
        "patch_apply": {
            "patch": f"*** Begin Patch\n*** Update File: {{path}}\n{patch}*** End Patch"
        },
    }[tool]
    now = read.replace(last, changed)
    assert world.run(Stale("", "txt", read, now, tool, arguments, now + put))[0] == "right"


def test_what_was_taken_from_the_end_comes_back_there_though_the_last_line_was_changed(
    world: World,
):
    from filepact.text.edit import merge  # noqa: PLC0415 - undo and approvals merge by it

    put = "\n[c]\ng = 2\non = true\n"
    now = _ON.replace("true", "false")
    assert merge(_ON, _ON + put, now).text == now + put


NARROW = "class A:\n  def one(self):\n    x = 1\n    return x\n\n  def two(self):\n    y = 2\n    return y\n"
ONE = {
    "old_string": "    x = 1\n    return x\n",
    "new_string": "    x = 10\n    log(x)\n    return x\n",
}


def _wide(text: str) -> str:
    return "".join(
        " " * (len(line) - len(line.lstrip(" "))) + line for line in text.splitlines(keepends=True)
    )


@pytest.mark.parametrize("change", [("", ""), ("y = 2", "y = 3"), ("def one", "def uno")])
def test_in_a_file_that_a_formatter_indented_otherwise_an_edit_has_its_place(
    world: World, change: tuple[str, str]
):
    now = _wide(NARROW.replace(*change))
    right = now.replace("x = 1\n", "x = 10\n        log(x)\n")
    assert world.run(Stale("", "py", NARROW, now, "edit_file", ONE, right))[0] == "right"


@pytest.mark.parametrize(
    "now",
    [
        NARROW.replace(ONE["old_string"], f"    if q:\n{_wide(ONE['old_string'])}"),
        NARROW.replace(ONE["old_string"], "    return 5\n") + "\n\nif q:\n  if x:\n" + _wide(ONE["old_string"]),
    ],
)  # fmt: skip
def test_lines_that_stand_deeper_than_all_else_are_not_only_indented_otherwise(
    world: World, now: str
):
    assert world.run(Stale("", "py", NARROW, now, "edit_file", ONE, None))[0] == "refused"


def _lines(words: str) -> str:
    """A line for each word, indented by its dots; one for `-` is empty."""
    lines = ("" if word == "-" else word.replace(".", " ") for word in words.split())
    return "".join(f"{line}\n" for line in lines)


def _replaced(old: str, new: str) -> dict[str, Any]:
    return {"old_string": _lines(old), "new_string": _lines(new)}


def _hunk(*lines: str) -> dict[str, Any]:
    body = "".join(f"{line}\n" for line in lines)
    return {"patch": f"*** Begin Patch\n*** Update File: {{path}}\n@@\n{body}*** End Patch"}


@pytest.mark.parametrize(
    ("read", "now", "tool", "arguments"),
    [
        pytest.param(
            "a b c d e f",
            "a c d e b f",
            "edit_file",
            {"edits": [_replaced("b", ""), _replaced("d", "b d")]},
            id="both move a line, each to another place",
        ),
        pytest.param(
            "a b c d e f",
            "a c d e b f",
            "write_file",
            {"content": _lines("b a c d e f")},
            id="both move a line, and nothing would be left of the one move",
        ),
        pytest.param(
            "u a - p q - - r s",
            "- - p q r s",
            "edit_file",
            _replaced("a", "a -"),
            id="a blank line of others is taken for the one to put in",
        ),
        pytest.param(
            "} c -", "} -", "edit_file", _replaced("} c -", "} c - ..n c -"), id="all that was sent stays"
        ),
        pytest.param(
            "z o r l n - f r l n - o n -",
            "z o r l n - o n - - f r l",
            "edit_file",
            _replaced("r l n - f r", "r l k r m f r"),
            id="a blank line stands before what followed it no more",
        ),
        pytest.param(
            "a a - - - c c",
            "a a - - - a c c",
            "write_file",
            {"content": _lines("a a - - - a c")},
            id="a whole text has a line of somebody by chance",
        ),
        pytest.param(
            "x d e m f - y d e m e m m f - z d e m f -",
            "x d e m f - y d e m e m m f - z d e m f",
            "patch_apply",
            _hunk(" e", " m", "+m", " f", " "),
            id="a patch had several places, and its result stands at another",
        ),
        pytest.param(
            "x } i { - } o o } - n w",
            "x } i { - n w } o o } - n w",
            "edit_file",
            _replaced("- } o o }", ""),
            id="a blank line from the other side of what was sent",
        ),
    ],
)  # fmt: skip
def test_what_no_equal_lines_excuse_is_refused(
    world: World, read: str, now: str, tool: str, arguments: dict[str, Any]
):
    outcome, text = world.run(Stale("", "txt", _lines(read), _lines(now), tool, arguments, None))
    assert (outcome, bool(re.match("[A-Z_]+: ", text))) == ("refused", True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_edit_has_the_same_care_whatever_the_ends_of_the_lines_are(world: World, end: str):
    read, now = (
        _lines(text).replace("\n", end)
        for text in ("....t ....m ....t ....t e on", "....t ....t ....t ....m e on")
    )
    edit = _replaced("....t ....m", "....t ....m ..s n ....m")
    case = Stale("", "txt", read, now, "edit_file", edit, None)
    assert world.run(case)[0] == "refused"

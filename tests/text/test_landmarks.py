"""Whether a change that is carried over lands where it was made for."""

from __future__ import annotations

import pytest

from filepact.text.edit import merge
from filepact.text.landmarks import lost_place

JSON = """{
  "services": [
    {
      "name": "alpha",
      "cpu": 1,
      "zone": "eu"
    },
    {
      "name": "beta",
      "cpu": 1,
      "zone": "eu"
    }
  ]
}
"""
NEW = '    {\n      "name": "new",\n      "cpu": 1,\n      "zone": "eu"\n    },\n'
BETA = '"name": "beta",\n      "cpu": 1'
MINE = JSON.replace(BETA, BETA + "0")

BRACES = "void load(char *path)\n{\n    read(path);\n    parse();\n}\n"
SIGNED = "def load(\n    path,\n):\n    read(path)\n    parse()\n"
NESTED = "class A:\n    def f(self):\n        if x:\n            go()\n            stop()\n"
DIRECTIVES = "int f(void)\n{\n    a();\n    b();\n    c();\n}\n"
INI = "[alpha]\ncpu = 1\nzone = eu\n\n[beta]\ncpu = 1\nzone = eu\n"


@pytest.mark.parametrize(
    ("base", "mine", "theirs"),
    [
        pytest.param(JSON, MINE, JSON.replace("    {\n", NEW + "    {\n", 1), id="entry above"),
        pytest.param(JSON, MINE, JSON.replace("alpha", "omega"), id="another entry renamed"),
        pytest.param(
            BRACES, BRACES.replace("parse", "scan"), "int a;\n" + BRACES, id="brace on its own line"
        ),
        pytest.param(
            BRACES,
            BRACES.replace("parse", "scan"),
            BRACES.replace("load", "load_file"),
            id="function renamed",
        ),
        pytest.param(
            SIGNED, SIGNED.replace("parse", "scan"), "import x\n" + SIGNED, id="long signature"
        ),
        pytest.param(
            NESTED,
            NESTED.replace("stop()", "end()"),
            NESTED.replace("if x:", "if y:"),
            id="condition changed",
        ),
        pytest.param(
            DIRECTIVES,
            DIRECTIVES.replace("c()", "d()"),
            DIRECTIVES.replace("    b", "#if B\n    b").replace("b();\n", "b();\n#endif\n"),
            id="directives at the margin",
        ),
        pytest.param(
            INI,
            INI.replace("[beta]\ncpu = 1", "[beta]\ncpu = 2"),
            INI.replace("[beta]", "[new]\ncpu = 1\nzone = eu\n\n[beta]"),
            id="section above",
        ),
        pytest.param("a\nb\n", "a\nb\nc\n", "x\na\nb\n", id="added at the end"),
        pytest.param("a\nb\n", "c\na\nb\n", "a\nb\nx\n", id="added at the beginning"),
        pytest.param(
            "a\nx\na\nx\n", "a\nx\na\ny\n", "b\na\nx\na\nx\n", id="only the first is above"
        ),
        pytest.param("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", id="both made the same change"),
    ],
)
def test_a_place_that_is_as_it_was_is_certain(base: str, mine: str, theirs: str):
    assert lost_place(base, mine, theirs) is None


@pytest.mark.parametrize(
    ("base", "mine", "theirs"),
    [
        pytest.param(
            BRACES,
            BRACES.replace("parse", "scan"),
            "void load(char *path)\n{\n    cached(path);\n}\n\n" + BRACES.replace("load", "old"),
            id="brace on its own line",
        ),
        pytest.param(
            SIGNED,
            SIGNED.replace("parse", "scan"),
            "def load(\n    path,\n):\n    cached(path)\n\n\n" + SIGNED.replace("load", "old"),
            id="long signature",
        ),
        pytest.param(
            JSON,
            MINE,
            JSON.replace("alpha", "x").replace("beta", "alpha").replace("x", "beta"),
            id="names changed places",
        ),
        pytest.param(
            JSON,
            MINE,
            JSON.replace("beta", "omega").replace("    {\n", NEW + "    {\n", 1),
            id="renamed, and one added",
        ),
        pytest.param(
            INI,
            INI.replace("[beta]\ncpu = 1", "[beta]\ncpu = 2"),
            INI.replace("[beta]\ncpu = 1", "[beta]\ncpu = 9\n\n[old]\ncpu = 1"),
            id="section copied aside",
        ),
        pytest.param(
            "a\nx\na\nx\n", "a\nx\na\ny\n", "x\na\nx\na\nx\nb\n", id="equal lines on both sides"
        ),
        pytest.param("a\nb\nc\n", "a\nB\nc\n", "x\ny\nb\nz\n", id="no neighbour left"),
        pytest.param(
            " a\n b\n c\n d\n",
            " a\n b\n C\n d\n",
            " c\n b\n a\n e\n c\n d\n",
            id="sorted anew, and one neighbour left",
        ),
    ],
)
def test_a_place_that_nothing_names_any_more_is_lost(base: str, mine: str, theirs: str):
    lost = lost_place(base, mine, theirs)
    assert lost is not None
    assert base.splitlines()[lost.line - 1] == theirs.splitlines()[lost.other_line - 1]


@pytest.mark.slow
def test_many_changes_among_equal_lines_are_all_looked_at():
    base = "start\n" + "  same\n" * 20_000
    mine = base.replace("  same\n" * 10, "  same\n" * 9 + "  other\n")
    assert lost_place(base, mine, "new\n" + base) is None
    assert lost_place(base, mine, base.replace("start", "other") + "  same\n") is not None


def test_which_of_two_equal_lines_is_meant_is_not_certain_once_one_has_come_beside_it() -> None:
    base, mine = "a\nb\nc\nd\n", "a\nb!\nc\nd\n"
    lost = lost_place(base, mine, "a\nb\nb\nc\nD\n")
    assert lost is not None
    assert lost.line == 2
    # Either may go away: what is left is the same.
    assert lost_place(base, "a\nc\nd\n", "a\nb\nb\nc\nD\n") is None


TWO_TRIES = """def one(a):
    if a:
        go()
    if a:
        stop()


def two(a):
    if a:
        go()
    else:
        stop()
"""


def test_below_a_header_with_a_remark_lines_that_stand_once_keep_their_place() -> None:
    mine = TWO_TRIES.replace("    if a:\n        stop()", "    if not a:\n        stop()")
    theirs = TWO_TRIES.replace("def one(a):", "def one(a):  # noqa")
    sent = [(3, 5)]
    assert lost_place(TWO_TRIES, mine, theirs, sent) is None
    # With another change on the way there they may be others' by now.
    moved = theirs.replace(
        "        go()\n    if a:\n        stop()", "        gone()\n    if a:\n        stop()"
    )
    assert lost_place(TWO_TRIES, mine, moved, sent) is not None
    assert lost_place(TWO_TRIES, mine, theirs.replace("  # noqa", "b"), sent) is not None


ONE_WAIT = """def one(a):
    add(2, a.first)
    if a.waits:
        add(3, a.next)
    return a


"""


def test_lines_that_were_sent_and_stand_whole_behind_a_copy_have_no_certain_place() -> None:
    mine = ONE_WAIT.replace("a.next", "a.last")
    header, *body = ONE_WAIT.splitlines(keepends=True)
    copied = "".join([header, *body[:4], *body])
    hunk = (1, 7)
    assert merge(ONE_WAIT, mine, copied).text == copied.replace("a.next", "a.last", 1)
    lost = lost_place(ONE_WAIT, mine, copied, [hunk])
    assert lost is not None
    assert lost.other_line == 4
    # The lines of another function are not those that were sent.
    beside = "".join([header, *body[:4], "def two(a):\n", *body])
    assert lost_place(ONE_WAIT, mine, beside, [hunk]) is None


def test_lines_that_were_to_go_and_were_moved_are_not_gone() -> None:
    base = "".join(f"{name}()\n" for name in ("one", "two", "three", "four", "five"))
    mine = base.replace("two()\nthree()\n", "")
    theirs = mine.replace("five()\n", "five()\ntwo()\nthree()\n")
    assert merge(base, mine, theirs).text is None
    lost = lost_place(base, mine, theirs)
    assert lost is not None
    assert (lost.line, lost.other_line) == (2, 4)
    assert lost_place(base, mine, mine + "six()\n") is None
    assert lost_place(base, theirs + "six()\n", theirs) is None


@pytest.mark.parametrize(
    "theirs", ["#!/bin/sh\n# first\nset -eu\ngo\n", "#!/bin/sh\n# first\nset -e\ngo\nstop\n"]
)
def test_lines_that_somebody_put_in_beside_the_place_are_not_put_in_twice(theirs: str) -> None:
    base, mine = "# first\nset -e\ngo\n", "#!/bin/sh\nset -e\ngo\n"
    assert (merge(base, mine, theirs).text or "").count("#!/bin/sh\n") == 2
    assert lost_place(base, mine, theirs) is not None
    # Another line there is no reason.
    assert lost_place(base, mine, theirs.replace("/sh", "/zsh")) is None


@pytest.mark.parametrize(
    ("gone", "come", "is_lost"),
    [
        ("    x = 1\n", "    x = 2\n", False),  # one line, changed in its place
        ("    x = 1\n", "", True),
        ("    x = 1\n    y = 2\n", "    z = 3\n    w = 4\n", True),
    ],
)
def test_lines_are_not_put_in_beside_lines_that_are_all_gone(
    gone: str, come: str, is_lost: bool
) -> None:
    base = "def one():\n    x = 1\n    y = 2\n    return 0\n"
    mine, theirs = base.replace(gone, gone + "    log()\n"), base.replace(gone, come)
    assert merge(base, mine, theirs).text == base.replace(gone, come + "    log()\n")
    sent = (1, 1 + gone.count("\n"))
    assert (lost_place(base, mine, theirs, [sent]) is not None) == is_lost

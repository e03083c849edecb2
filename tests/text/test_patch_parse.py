from __future__ import annotations

from contextlib import suppress

import pytest

from filepact.errors import InvalidParamsError, PatchMalformedError
from filepact.text.diff import unified
from filepact.text.patch import parse, reverse
from filepact.text.patch_parse import MOST_LINES

NO_NEWLINE = "\\ No newline at end of file\n"
HUNK = "@@ -1 +1 @@\n-a\n+b\n"
GONE = "@@ -1 +0,0 @@\n-a\n"
GIT = "diff --git a/f b/f\n"


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("@@ -1 +1 @@\n-a\n+b\n", (None, None, "")),
        ("--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        ("--- b/f\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        ("--- a/f\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n", ("a/f", "a/f", "")),
        ("--- f.orig\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", ("f.orig", "f", "")),
        ("--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-a\n+b\n", ("x y", "x y", "")),
        (
            "--- x y\t2024-01-02 03:04:05.678 +0100\n+++ x y 2024-01-02 03:04:05 +0100\n" + HUNK,
            ("x y", "x y", ""),
        ),
        ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", (None, "f", "creates")),
        ("--- /dev/null\n+++ a/f\n@@ -0,0 +1 @@\n+b\n", (None, "a/f", "creates")),
        ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", ("f", None, "deletes")),
        (
            "--- f\t1970-01-01 00:00:00.000 +0000\n+++ f\t2024-01-01 00:00:00\n@@ -0,0 +1 @@\n+b\n",
            (None, "f", "creates"),
        ),
        (
            "--- f\t2024-01-01 00:00:00\n+++ f\t1969-12-31 19:00:00 -0500\n@@ -1 +0,0 @@\n-b\n",
            ("f", None, "deletes"),
        ),
        (
            "--- f\t1970-01-01 00:00:00\n+++ f\t2024-01-01 00:00:00\n@@ -1 +1 @@\n-a\n+b\n",
            ("f", "f", ""),
        ),
        (
            '--- "a/q\\"\\\\\\t\\303\\251é"\n+++ "b/q\\"\\\\\\t\\303\\251é"\n@@ -1 +1 @@\n-a\n+b\n',
            ('q"\\\téé', 'q"\\\téé', ""),
        ),
        (GIT + "new file mode 100644\nindex 000..e69\n", (None, "f", "creates")),
        (GIT + "deleted file mode 100644\n", ("f", None, "deletes")),
        (GIT + "old mode 100644\nnew mode 100755\n", ("f", "f", "")),
        (GIT + "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        (GIT + "@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        ("diff --git f f\n--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        ("diff --git a/f a/f\n--- a/f\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n", ("a/f", "a/f", "")),
        ("diff --git i/f w/f\n--- i/f\n+++ w/f\n@@ -1 +1 @@\n-a\n+b\n", ("f", "f", "")),
        (
            "diff --git w/f w/f\nnew file mode 100644\n--- /dev/null\n+++ w/f\n@@ -0,0 +1 @@\n+a\n",
            (None, "w/f", "creates"),
        ),
        (
            "diff --git b/f a/f\ndeleted file mode 100644\n--- b/f\n+++ /dev/null\n" + GONE,
            ("f", None, "deletes"),
        ),
        (
            "diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n",
            ("x y", "x y", ""),
        ),
        (
            "diff --git a/x y b/z\nsimilarity index 90%\nrename from x y\nrename to z\n",
            ("x y", "z", "renames"),
        ),
        (
            'diff --git "a/q\\"" b/z\nrename from "q\\""\nrename to z\n--- "a/q\\""\n+++ b/z\n'
            + HUNK,
            ('q"', "z", "renames"),
        ),
        (
            'diff --git a/z "b/q\\""\nrename old z\nrename new "q\\""\n',
            ("z", 'q"', "renames"),
        ),
    ],
)
def test_headers_name_the_files(patch: str, expected: tuple[str | None, str | None, str]):
    for text in (patch, patch.replace("\n", "\r\n")):
        (one,) = parse(text)
        kinds = [kind for kind in ("creates", "deletes", "renames") if getattr(one, kind)]
        assert (one.old_path, one.new_path, "".join(kinds)) == expected
        back = reverse(one)
        assert (back.new_path, back.old_path) == expected[:2]
        assert (back.creates, back.deletes) == (one.deletes, one.creates)


@pytest.mark.parametrize(
    ("header", "modes"),
    [
        ("old mode 100644\nnew mode 100755\n", (0o100644, 0o100755)),
        ("old mode 100600\nnew mode 100700\n", (0o100644, 0o100755)),
        ("old mode 100644\nnew mode 100600\n", (None, None)),
        ("new file mode 100755\n", (None, 0o100755)),
        ("deleted file mode 100644\n", (0o100644, None)),
    ],
)
def test_modes_are_those_git_knows(header: str, modes: tuple[int | None, int | None]):
    (one,) = parse(GIT + header)
    assert (one.old_mode, one.new_mode) == modes


def test_a_patch_of_several_files_is_read_in_order():
    text = (
        "notes first\n"
        + unified("a\n", "b\n", old_name="one", new_name="one")
        + unified(None, "", old_name="two", new_name="two")
        + "\n"
        + unified(None, "x\n", old_name="three", new_name="three", new_mode=0o755)
        + "diff -u four four\nOnly in five: six\n"
        + unified("a", "b\n", old_name="four", new_name="four").replace("@@ -1 +1", "@@ -1,7 +1,7")
        + unified("a\n", None, old_name="seven", new_name="seven")
    )
    patches = parse(text)
    assert [one.new_path or one.old_path for one in patches] == [
        "one",
        "two",
        "three",
        "four",
        "seven",
    ]
    assert [one.line for one in patches][:3] == [2, 7, 10]
    assert [hunk.repaired for one in patches for hunk in one.hunks] == [False, False, True, False]


def test_counts_too_large_do_not_swallow_the_next_file():
    first = unified("a\n", "b\n", old_name="one", new_name="one").replace("-1 +1", "-1,5 +1,5")
    patches = parse(first + unified("a\n", "b\n", old_name="two", new_name="two"))
    assert [one.new_path for one in patches] == ["one", "two"]


PLAIN = "--- a/f\n+++ b/f\n"


@pytest.mark.parametrize(
    ("patch", "line", "said"),
    [
        pytest.param("", None, "no hunk", id="empty"),
        pytest.param("please change a to b\n", None, "no hunk", id="prose"),
        pytest.param("3c3\n< a\n---\n> b\n", None, "no hunk", id="normal diff"),
        pytest.param("1c\nb\n.\nw\n", None, "no hunk", id="ed script"),
        pytest.param(
            "text\n--- a\n*** Begin Patch\n*** Update File: f\n",
            3,
            "outside of one",
            id="another format",
        ),
        pytest.param("*** f\n--- f\n***************\n", 3, "context diff", id="context diff"),
        pytest.param("@@@ -1 -1 +1 @@@\n", None, "combined", id="combined diff"),
        pytest.param(GIT + "@@@ -1 -1 +1 @@@\n", 2, "combined", id="combined git diff"),
        pytest.param(PLAIN, 1, "without hunks", id="header only"),
        pytest.param(GIT + "index 1..2\n", 1, "without hunks", id="git header only"),
        pytest.param("--- a/f\n" + HUNK, 1, "partner", id="no +++"),
        pytest.param("+++ b/f\n" + HUNK, 1, "partner", id="no ---"),
        pytest.param(PLAIN + "@@ -a +b @@\n-a\n", 3, "hunk header", id="letters for numbers"),
        pytest.param(PLAIN + "@@ -1,3 +1,3\n", 3, "without lines", id="no body"),
        pytest.param(PLAIN + "@@ -1,2 +1,2 @@\n a\nb\n", 5, "inside a hunk", id="unsigned line"),
        pytest.param(PLAIN + HUNK + "rubbish\n", 6, "inside a hunk", id="rubbish after a hunk"),
        pytest.param(PLAIN + HUNK + "-- \n2.3\nx\n" + HUNK, 9, "no file", id="stray hunk"),
        pytest.param(
            PLAIN + "@@ -1,2 +1 @@\n-a\n" + NO_NEWLINE + "-b\n+c\n", 6, "after the end", id="end"
        ),
        pytest.param(PLAIN + f"@@ -1 +1 @@\n{NO_NEWLINE}-a\n+b\n", 4, "no line", id="end first"),
        pytest.param(
            PLAIN + f"@@ -1 +1 @@\n-a\n{NO_NEWLINE}{NO_NEWLINE}+b\n", 6, "no line", id="end twice"
        ),
        pytest.param("--- /dev/null\n+++ /dev/null\n" + HUNK, 1, "both sides", id="no file"),
        pytest.param(
            GIT + "--- /dev/null\n+++ /dev/null\n" + HUNK, 2, "both sides", id="no file, git"
        ),
        pytest.param("--- \n+++ b/f\n" + HUNK, 1, "no file name", id="empty name"),
        pytest.param('--- "a/f\n+++ b/f\n' + HUNK, 1, "quoted", id="open quotes"),
        pytest.param('--- "a/\\q"\n+++ b/f\n' + HUNK, 1, "escape", id="unknown escape"),
        pytest.param('--- "a/\\777"\n+++ b/f\n' + HUNK, 1, "escape", id="octal over a byte"),
        pytest.param('--- "a/\\377"\n+++ b/f\n' + HUNK, 1, "UTF-8", id="not UTF-8"),
        pytest.param(GIT + "new file mode 120000\n", 2, "symbolic link", id="link"),
        pytest.param(GIT + "index 1..2 120000\n" + PLAIN + HUNK, 2, "link", id="link in index"),
        pytest.param(GIT + "new file mode 160000\n", 2, "submodule", id="submodule"),
        pytest.param(GIT + "new file mode 040000\n", 2, "folder", id="folder"),
        pytest.param(GIT + "new mode 104755\n", 2, "regular", id="setuid"),
        pytest.param(GIT + "old mode rwx\n", 2, "regular", id="no mode"),
        pytest.param(GIT + "copy from f\ncopy to g\n", 2, "copy", id="copy"),
        pytest.param(GIT + "GIT binary patch\nliteral 3\n", 2, "not text", id="binary patch"),
        pytest.param(
            GIT + "index 1..2\nBinary files a/f and b/f differ\n", 3, "not text", id="binary, git"
        ),
        pytest.param(PLAIN + HUNK + "Binary files x and y differ\n", 6, "not text", id="binary"),
        pytest.param("Binary file f changed (1 -> 2 bytes)\n", 1, "not text", id="our notice"),
        pytest.param(GIT + "rename from f\n", 1, "half", id="half a rename"),
        pytest.param(
            GIT + "new file mode 100644\ndeleted file mode 100644\n", 1, "half", id="new and gone"
        ),
        pytest.param(GIT + "--- a/g\n+++ b/f\n" + HUNK, 2, "differs", id="names differ"),
        pytest.param(GIT + "--- a/f\n+++ b/../g\n" + HUNK, 2, "differs", id="names differ, new"),
        pytest.param(
            "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/z\n" + HUNK,
            4,
            "differs",
            id="rename and name differ",
        ),
        pytest.param(
            GIT + "new file mode 100644\n" + PLAIN + HUNK, 3, "contradicts", id="new, but old"
        ),
        pytest.param(
            GIT + "deleted file mode 100644\n" + PLAIN + HUNK, 3, "contradicts", id="gone, but new"
        ),
        pytest.param(
            "diff --git a/x y b/z\nold mode 100644\nnew mode 100755\n", 1, "told apart", id="names"
        ),
        pytest.param('diff --git "a/f b/f\n', 1, "quoted", id="open quotes, git"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_line(
    patch: str, line: int | None, said: str
):
    with pytest.raises(PatchMalformedError) as caught:
        parse(patch)
    if said != "combined" or line:
        assert said in caught.value.message
        assert caught.value.details.get("line") == line
    assert caught.value.hint


@pytest.mark.slow(after=4)
@pytest.mark.parametrize(
    "text",
    [
        "@@ -1 +1 @@\n" * 100_000,
        "--- a\n+++ b\n" * 100_000,
        "@@ -1,9 +1,9 @@\n" + "\n" * 400_000,
        ("@@ -1,9 +1,9 @@\n-a\n" + "\n" * 50) * 9_000,
        "--- a" + " " * 3_000_000 + "\n+++ b\n" + HUNK,
        "@@" + " " * 3_000_000 + "\n",
        "@@ -1,9 +1,9" + " " * 3_000_000 + "x\n",
        '--- "' + "\\" * 3_000_000 + "\n+++ b\n",
        "diff --git " + "a " * 1_000_000 + "\n",
        "diff --git a/f b/f\n" * 50_000,
    ],
)
def test_garbage_is_read_or_refused_in_linear_time(text: str):
    with suppress(PatchMalformedError):
        assert parse(text)


@pytest.mark.parametrize("line", ["+x\n", "junk\n", "*** Begin Patch\n"])
def test_a_patch_of_too_many_lines_is_refused_unread(line: str):
    with pytest.raises(InvalidParamsError):
        parse(line * (MOST_LINES + 1))

"""Patches from ``*** Begin Patch`` to ``*** End Patch``: read, placed below anchors, refused."""

from __future__ import annotations

import pytest

from filepact.errors import (
    FilepactError,
    PatchAlreadyAppliedError,
    PatchContextMismatchError,
    PatchMalformedError,
)
from filepact.text.patch import apply, created_text, is_envelope, parse
from filepact.text.patch import reverse as reversed_patch

TWINS = """\
class A:
    size = 1

    def f(self):
        x = 1
        return x

    def g(
        self,
    ):
        x = 1
        return x


class B:
    def f(self):
        x = 1
        return x


def main():
    pass
"""
HUNK = "         x = 1\n-        return x\n+        return 2\n"


@pytest.mark.parametrize("indent", [" ", "    ", "\t"])
def test_an_envelope_that_is_set_in_as_a_whole_is_read(indent: str) -> None:
    body = "*** Begin Patch\n*** Update File: a.py\n@@ class A:\n-    size = 1\n+    size = 2\n\n     def f(self):\n*** End Patch\n"
    set_in = "".join(f"{indent}{line}\n" if line else "\n" for line in body.splitlines())
    assert parse(set_in) == parse(body)
    assert is_envelope(set_in)


def test_a_header_without_the_first_line_of_its_format_says_so() -> None:
    with pytest.raises(PatchMalformedError, match="outside of one"):
        parse("*** Update File: a.py\n@@\n-a\n+b\n")


def envelope(*parts: str) -> str:
    return "*** Begin Patch\n" + "".join(parts) + "*** End Patch\n"


def update(body: str, name: str = "f.py") -> str:
    return envelope(f"*** Update File: {name}\n", body)


def applied(text: str, body: str) -> str:
    (patch,) = parse(update(body))
    return apply(text, patch).edits.apply(text)


def changed_line(body: str) -> int:
    """The 1-based line that the patch of TWINS changed."""
    lines = zip(TWINS.splitlines(), applied(TWINS, body).splitlines(), strict=True)
    (line,) = [number for number, (old, new) in enumerate(lines, 1) if old != new]
    return line


@pytest.mark.parametrize(
    ("anchors", "line"),
    [
        ("@@ class B:\n", 18),
        ("@@ class B\n", 18),
        ("@@ class B: @@\n", 18),
        ("@@ class B:\n@@ def f(self):\n", 18),
        ("@@ class A:\n@@     def f(self):\n", 6),
        ("@@ class A:\n@@ def g(\n", 12),
        ("@@ def g(\n", 12),
        ("@@ class A:\n@@ size = 1\n@@ def g(\n", 12),
    ],
)
def test_a_hunk_stands_in_the_part_that_its_anchors_open(anchors: str, line: int):
    assert changed_line(anchors + HUNK) == line


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("@@\n" + HUNK, "PATCH_AMBIGUOUS", id="three places"),
        pytest.param("@@ class A:\n" + HUNK, "PATCH_AMBIGUOUS", id="two places below"),
        pytest.param("@@ def f(self):\n" + HUNK, "PATCH_AMBIGUOUS", id="two anchors"),
        pytest.param("@@ def main():\n" + HUNK, "PATCH_CONTEXT_MISMATCH", id="stands elsewhere"),
        pytest.param("@@ class C:\n" + HUNK, "PATCH_CONTEXT_MISMATCH", id="no such anchor"),
        pytest.param("@@ class\n" + HUNK, "PATCH_CONTEXT_MISMATCH", id="anchor begins two lines"),
        pytest.param(
            "@@ class B:\n@@ def g(\n" + HUNK,
            "PATCH_CONTEXT_MISMATCH",
            id="anchor not in the other",
        ),
        pytest.param(
            "@@ def f(self):\n+    y = 2\n", "PATCH_AMBIGUOUS", id="only adds below two anchors"
        ),
        pytest.param(
            "@@ class B:\n" + HUNK + "*** End of File\n", "PATCH_CONTEXT_MISMATCH", id="not the end"
        ),
        pytest.param("@@\n         x  = 1\n-y\n", "PATCH_CONTEXT_MISMATCH", id="blanks differ"),
    ],
)
def test_what_stands_in_no_or_in_several_places_is_refused(body: str, code: str):
    with pytest.raises(FilepactError) as caught:
        applied(TWINS, body)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("body", "above"),
    [
        ("@@ class B:\n+    y = 2\n", "class B:"),
        ("@@ class A:\n@@ def g(\n+    y = 2\n", "    def g("),
    ],
)
def test_lines_that_are_only_added_stand_right_below_their_anchor(body: str, above: str):
    lines = applied(TWINS, body).split("\n")
    at = lines.index("    y = 2")
    assert lines[at - 1].startswith(above)
    assert lines[:at] + lines[at + 1 :] == TWINS.split("\n")


HEADERS = (
    "diff --git a/f.py b/f.py\n",
    "index 12ab..34cd 100644\n",
    "--- a/f.py\n+++ b/f.py\n",
    "diff --git a/f.py b/f.py\nindex 12ab..34cd 100644\n--- a/f.py\n+++ b/f.py\n",
    "--- f.py\n+++ f.py\n",
)


@pytest.mark.parametrize("headers", HEADERS)
def test_header_lines_of_the_other_format_are_passed_over(headers: str):
    assert applied("a\nb\n", f"{headers}@@ -1,2 +1,2 @@\n a\n-b\n+B\n") == "a\nB\n"
    for hunk in ("", "@@ -0,0 +1 @@\n"):
        (made,) = parse(envelope(f"*** Add File: f.py\n--- /dev/null\n+++ b/f.py\n{hunk}+x\n"))
        assert created_text(made) == "x\n"


def test_comments_that_look_like_headers_are_lines():
    assert applied("-- a\n-- b\n", "--- a\n+++ b\n -- b\n") == "++ b\n-- b\n"


@pytest.mark.parametrize("quoted", ['"q r.py"', "`q r.py`", "'q r.py'", '"q\\040r.py"'])
def test_a_name_may_stand_in_quotes(quoted: str):
    (patch,) = parse(update("@@\n-a\n+b\n", quoted))
    assert patch.old_path == patch.new_path == "q r.py"


def test_a_rewritten_body_is_not_looked_for_in_another_block():
    text = TWINS.replace(
        "x = 1\n        return x\n\n    def g", "y = 1\n        return y\n\n    def g"
    )
    text = text.replace("        x = 1\n        return x\n\n\nclass B", "        pass\n\n\nclass B")
    assert text.count("x = 1") == 1
    with pytest.raises(PatchContextMismatchError):
        applied(text, "@@ class A:\n@@ def f(self):\n" + HUNK)


def test_the_neighbour_of_an_anchor_is_meant():
    text = "# one\nsame\n# two\nsame\n# three\nsame\n"
    assert applied(text, "@@ # two\n-same\n+changed\n") == text.replace("two\nsame", "two\nchanged")
    assert applied(text, "@@\n # two\n-same\n+changed\n") == text.replace(
        "two\nsame", "two\nchanged"
    )


@pytest.mark.parametrize(
    ("text", "body", "expected"),
    [
        ("a\nb\n", "@@\n+c\n", "a\nb\nc\n"),
        ("a\nb\n", "+c\n", "a\nb\nc\n"),
        ("", "@@\n+c\n", "c\n"),
        ("a\nb", "@@\n+c\n", "a\nb\nc"),
        ("a\r\nb\r\n", "@@\n a\n-b\n+c\n", "a\r\nc\r\n"),
        ("a\nb\na\nb\n", "@@\n a\n-b\n+c\n*** End of File\n", "a\nb\na\nc\n"),
        ("a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a\nb\nc\nd\n", "@@\n-a\n+1\n@@\n-c\n+3\n\n\n", "1\nb\n3\nd\n"),
        ("a\nb\n", "@@ -7,9 +7,9 @@ x\n-b\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@ ... @@\n-b\n+c\n", "a\nc\n"),
        ("a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"),
        ("*** End Patch\nb\n", "@@\n *** End Patch\n-b\n+c\n", "*** End Patch\nc\n"),
        ("x\x0cy\u2028z\n", "@@\n-x\x0cy\u2028z\n+w\x85v\n", "w\x85v\n"),
    ],
)
def test_hunks_without_anchors_are_found_by_their_lines(text: str, body: str, expected: str):
    assert applied(text, body) == expected


def test_hunks_follow_each_other():
    with pytest.raises(PatchContextMismatchError):
        applied("a\nb\nc\n", "@@\n-c\n+3\n@@\n-a\n+1\n")


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "```\n{}```\n",
        "Here it is:\n\n```diff\n{}```\n\n- and more\n+ words\n",
        "apply_patch <<'EOF'\n{}EOF\n",
        "\n\n  {}",
        'cat <<"PATCH" | apply_patch\n{}PATCH',
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_envelope_is_known_in_its_wrapping(wrap: str, end: str):
    patch = wrap.format(update("@@\n-a\n+b\n")).replace("\n", end)
    assert is_envelope(patch)
    (one,) = parse(patch)
    assert (one.old_path, one.new_path) == ("f.py", "f.py")
    assert apply("a\n", one).edits.apply("a\n") == "b\n"


def test_a_diff_of_a_file_that_holds_an_envelope_is_a_diff():
    patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n *** Begin Patch\n-a\n+b\n"
    assert not is_envelope(patch)
    text = "*** Begin Patch\na\n"
    (one,) = parse(patch)
    assert apply(text, one).edits.apply(text) == "*** Begin Patch\nb\n"


def test_every_operation_is_read_in_order():
    add, delete, move, rename = parse(
        envelope(
            "*** Add File: new.txt\n+one\n++two\n+\n\n",
            "*** Delete File: with blank.txt\n",
            "  *** Update File: old.txt\n*** Move to: to/new name.txt\n@@\n-a\n+b\n",
            "*** Update File: é.txt\n*** Move to: e.txt\n",
        )
    )
    assert (add.old_path, add.new_path, add.creates, add.whole) == (None, "new.txt", True, True)
    assert created_text(add) == "one\n+two\n\n"
    assert (delete.old_path, delete.deletes, delete.hunks) == ("with blank.txt", True, ())
    assert (move.old_path, move.new_path, move.renames) == ("old.txt", "to/new name.txt", True)
    assert (rename.old_path, rename.new_path, rename.hunks) == ("é.txt", "e.txt", ())


def test_a_padded_header_ends_a_new_file():
    first, second = parse(envelope("*** Add File: a\n+1\n", "  *** Add File: b\n+2\n"))
    assert [created_text(first), created_text(second)] == ["1\n", "2\n"]


def test_an_empty_file_can_be_made():
    (one,) = parse(envelope("*** Add File: empty\n"))
    assert created_text(one) == ""


@pytest.mark.parametrize(
    ("patch", "line"),
    [
        pytest.param("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n", 5, id="cut off"),
        pytest.param(envelope(), 2, id="empty"),
        pytest.param(envelope("*** Frobnicate File: f\n"), 2, id="unknown header"),
        pytest.param(envelope("*** Update File: f\n"), 2, id="no hunks"),
        pytest.param(envelope("*** Update File:\n"), 2, id="no name"),
        pytest.param(envelope("*** Update File: f\n@@\n"), 3, id="empty hunk"),
        pytest.param(envelope("*** Update File: f\n@@\nword\n"), 4, id="no sign"),
        pytest.param(envelope("*** Add File: f\nword\n"), 3, id="no plus"),
        pytest.param(envelope("*** Add File: f\n+a\n\n+b\n"), 4, id="empty line in a new file"),
        pytest.param(envelope("*** Delete File: f\n-a\n"), 3, id="lines of a deleted file"),
        pytest.param(envelope("*** Move to: f\n"), 2, id="move of nothing"),
        pytest.param(envelope("*** Update File: f\n", "@@ a\n" * 9, "-a\n"), 3, id="many anchors"),
        pytest.param(
            envelope("*** Update File: f\n@@\n-a\n*** End of File\n+b\n"), 6, id="after the end"
        ),
        pytest.param(envelope("*** Add File: f\n+a\n") * 2, 5, id="two envelopes"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_line(patch: str, line: int):
    with pytest.raises(PatchMalformedError) as caught:
        parse(patch)
    assert caught.value.details["line"] == line


def test_an_update_is_taken_back():
    (patch,) = parse(update("@@ class B:\n" + HUNK))
    new = apply(TWINS, patch).edits.apply(TWINS)
    assert apply(new, reversed_patch(patch)).edits.apply(new) == TWINS
    with pytest.raises(PatchAlreadyAppliedError):
        apply(new, patch)
    (added,) = parse(envelope("*** Add File: f\n+a\n"))
    assert reversed_patch(added).deletes
    assert apply("a\n", reversed_patch(added)).edits.apply("a\n") == ""
    (moved,) = parse(envelope("*** Update File: f\n*** Move to: g\n"))
    assert (reversed_patch(moved).old_path, reversed_patch(moved).new_path) == ("g", "f")


def test_a_deletion_without_lines_cannot_be_taken_back():
    (patch,) = parse(envelope("*** Delete File: f\n"))
    with pytest.raises(PatchMalformedError):
        reversed_patch(patch)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    "text",
    ["  " * 20_000 + "x\n", "".join(f"{' ' * n}x\n" for n in range(1_500)), "x\n" * 20_000],
    ids=["one long line", "ever deeper", "equal lines"],
)
def test_many_anchors_are_looked_for_in_bounded_time(text: str):
    with pytest.raises(FilepactError):
        applied(text, "@@ x\n" * 8 + " x\n-y\n")


@pytest.mark.slow
def test_many_hunks_with_anchors_cost_bounded_time():
    text = "def f():\n    pass\n" * 3_000
    with pytest.raises(FilepactError):
        applied(text, "@@ def f():\n@@ pass\n-none\n+x\n" * 3_000)
    many = "".join(f"def f{n}():\n    pass\n" for n in range(9_000))
    hunks = [f"@@ def f{n}():\n-    pass\n+    x\n" for n in range(2_000)]
    assert applied(many, "".join(hunks)).count("x\n") == 2_000
    with pytest.raises(FilepactError) as caught:
        applied(many, "".join(hunks).replace("():", ""))
    assert caught.value.code == "PATCH_AMBIGUOUS"

"""patch_apply on a real workspace: several files as one, in every format, and taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import StaleFileError
from filepact.tools.registry import CallContext, CallResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tool = Callable[..., CallResult]

IMAGE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
CALL = CallContext(Session("s1", Actor("agent", "tester")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "f.py").write_bytes(b"def f():\r\n    return 1\r\n")
    (folder / "a.txt").write_bytes(b"one\ntwo\n")
    (folder / "b.txt").write_bytes(b"bee\n")
    (folder / "image.png").write_bytes(IMAGE)
    return folder


@pytest.fixture
def tool(root: Path, tmp_path: Path) -> Iterator[Tool]:
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        toolbox = open_toolbox(workspace)

        def call(name: str = "patch_apply", /, **arguments: object) -> CallResult:
            return toolbox.call(name, arguments, CALL)

        call.workspace = workspace  # type: ignore[attr-defined]
        call.undo = partial(workspace.undo, CALL.session)  # type: ignore[attr-defined]
        call.redo = partial(workspace.redo, CALL.session)  # type: ignore[attr-defined]
        yield call


def envelope(*parts: str) -> str:
    return "*** Begin Patch\n" + "".join(parts) + "*** End Patch\n"


UPDATE = "*** Update File: a.txt\n@@\n one\n-two\n+2\n"


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_an_envelope_changes_all_its_files_at_once(tool: Tool, root: Path):
    patch = envelope(
        UPDATE,
        "*** Add File: new/deep/n.txt\n+new\n",
        "*** Delete File: image.png\n",
        "*** Update File: src/f.py\n*** Move to: lib/g.py\n@@ def f():\n-    return 1\n+    return 2\n",
    )
    done = tool(patch=patch)
    assert not done.failed, done.text
    assert files(root) == {
        "a.txt": b"one\n2\n",
        "b.txt": b"bee\n",
        "new/deep/n.txt": b"new\n",
        "lib/g.py": b"def f():\r\n    return 2\r\n",
    }


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("*** Update File: b.txt\n@@\n-none\n+x\n", "PATCH_CONTEXT_MISMATCH"),
        ("*** Delete File: none.txt\n", "NOT_FOUND"),
        ("*** Delete File: src\n", "NOT_A_FILE"),
        ("*** Add File: ../out.txt\n+x\n", "PATH_BLOCKED"),
        ("*** Add File: id_rsa\n+x\n", "PATH_BLOCKED"),
        ("*** Update File: ./a.txt\n@@\n-one\n+x\n", "INVALID_PARAMS"),
        ("*** Update File: a.txt\n@@\n-two\n+x\n", "PATCH_CONTEXT_MISMATCH"),
        ("*** Delete File: a.txt\n", "PATCH_MALFORMED"),
        ("*** Add File: a.txt\n+x\n", "PATCH_MALFORMED"),
        ("*** Update File: a.txt\n*** Move to: c.txt\n", "PATCH_MALFORMED"),
        ("*** Update File: b.txt\n*** Move to: a.txt\n", "PATCH_MALFORMED"),
    ],
)
def test_one_part_that_is_refused_leaves_every_file_as_it_was(
    part: str, code: str, tool: Tool, root: Path
):
    before = files(root)
    done = tool(patch=envelope(UPDATE, part))
    assert done.failed
    assert done.code == code
    assert files(root) == before


def test_what_an_envelope_overwrites_is_said(tool: Tool, root: Path):
    done = tool(
        patch=envelope(
            "*** Add File: a.txt\n+all new\n",
            "*** Update File: src/f.py\n*** Move to: b.txt\n",
        )
    )
    assert not done.failed, done.text
    assert "a.txt existed and was overwritten" in done.text
    assert "b.txt existed and was overwritten" in done.text
    # Nobody had read them, so the answer shows what they held.
    assert "-one" in done.text
    assert "-bee" in done.text
    assert files(root) == {
        "a.txt": b"all new\n",
        "b.txt": b"def f():\r\n    return 1\r\n",
        "image.png": IMAGE,
    }


@pytest.mark.parametrize(
    "part",
    ["*** Delete File: b.txt\n", "*** Update File: a.txt\n*** Move to: b.txt\n"],
)
def test_what_somebody_wrote_meanwhile_is_not_lost(part: str, tool: Tool, root: Path):
    tool("read_file", path="b.txt")
    (root / "b.txt").write_bytes(b"theirs\n")
    done = tool(patch=envelope(part))
    assert done.code == "STALE_FILE"
    assert (root / "b.txt").read_bytes() == b"theirs\n"


@pytest.mark.parametrize(
    ("path", "patch", "code"),
    [
        ("a.txt", envelope(UPDATE), ""),
        ("./a.txt", envelope(UPDATE), ""),
        ("b.txt", envelope(UPDATE), "INVALID_PARAMS"),
        ("a.txt", envelope(UPDATE, "*** Delete File: b.txt\n"), "INVALID_PARAMS"),
        ("a.txt", envelope("*** Update File: a.txt\n*** Move to: c.txt\n"), "INVALID_PARAMS"),
    ],
)
def test_a_path_beside_an_envelope_has_to_name_its_one_file(
    path: str, patch: str, code: str, tool: Tool
):
    assert tool(path=path, patch=patch).code == code


def test_an_absolute_path_beside_an_envelope_may_name_its_one_file(tool: Tool, root: Path):
    assert not tool(path=str(root / "a.txt"), patch=envelope(UPDATE)).failed


def test_an_envelope_is_taken_back_where_it_says_all(tool: Tool, root: Path):
    before = files(root)
    patch = envelope(UPDATE, "*** Add File: c.txt\n+see\n")
    assert not tool(patch=patch).failed
    assert not tool(patch=patch, reverse=True).failed
    assert files(root) == before
    assert tool(patch=envelope("*** Delete File: a.txt\n"), reverse=True).code == "PATCH_MALFORMED"


def test_context_that_differs_is_told(tool: Tool, root: Path):
    text = "".join(f"line {n}\n" for n in range(9))
    (root / "long.txt").write_text(text)
    patch = "@@ -2,5 +2,5 @@\n other 1\n line 2\n-line 3\n+three\n line 4\n line 5\n"
    done = tool(path="long.txt", patch=patch)
    assert not done.failed
    assert "Context of hunk 1 differs" in done.text
    assert (root / "long.txt").read_text() == text.replace("line 3", "three")


@pytest.mark.parametrize("header", ["", "--- c.txt\n+++ c.txt\n"])
def test_lines_added_to_nothing_create_a_file_that_is_missing(header: str, tool: Tool, root: Path):
    done = tool(path="c.txt", patch=f"{header}@@ -0,0 +1 @@\n+one\n")
    assert not done.failed, done.text
    assert (root / "c.txt").read_bytes() == b"one\n"
    assert tool(path="d.txt", patch="@@ -1 +1 @@\n-a\n+one\n").code == "NOT_FOUND"


def test_parts_that_edit_one_file_follow_each_other(tool: Tool, root: Path):
    patch = envelope(
        UPDATE,
        "*** Update File: b.txt\n@@\n-bee\n+B\n",
        UPDATE.replace("+2", "+3").replace("-two", "-2"),
    )
    assert not tool(patch=patch).failed
    assert (root / "a.txt").read_bytes() == b"one\n3\n"
    assert not tool(patch=patch, reverse=True).failed
    assert (root / "a.txt").read_bytes() == b"one\ntwo\n"


RENAME = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"


@pytest.mark.parametrize(
    ("patch", "summary"),
    [
        (envelope("*** Delete File: image.png\n"), "delete image.png"),
        (RENAME.format("a.txt", "z.txt"), "rename a.txt to z.txt"),
        (envelope("*** Add File: n.txt\n+new\n"), "create n.txt"),
        (envelope(UPDATE), "apply a patch of 1 hunk to a.txt (+1 -1)"),
        (
            envelope(UPDATE, "*** Delete File: b.txt\n"),
            "patch a.txt (1 hunk), delete b.txt",
        ),
    ],
)
def test_an_answer_says_what_becomes_of_each_file(patch: str, summary: str, tool: Tool):
    assert tool(patch=patch).text.startswith(f"Done: {summary}.")


def test_a_rename_is_shown_by_its_names_and_what_else_changed(tool: Tool, root: Path):
    text = "".join(f"line {n}\n" for n in range(2_000))
    (root / "long.txt").write_text(text)
    (root / "copy.txt").write_text(text + "one more\n")
    (root / "image2.png").write_bytes(IMAGE * 2)
    done = tool(
        patch=RENAME.format("long.txt", "new.txt")
        + RENAME.format("copy.txt", "other.txt")
        + "--- a/copy.txt\n+++ b/other.txt\n@@ -2001 +2001 @@\n-one more\n+and more\n"
        + RENAME.format("image2.png", "image3.png")
    )
    assert not done.failed, done.text
    for old, new in (("long", "new"), ("copy", "other")):
        assert f"rename from {old}.txt\nrename to {new}.txt\n" in done.receipt["diff"]
    assert "rename from image2.png\nrename to image3.png\n" in done.receipt["diff"]
    assert "-one more\n+and more\n" in done.receipt["diff"]
    assert len(done.receipt["diff"]) < 1_500
    assert len(done.text) < 200
    assert (root / "new.txt").read_text() == text


def test_what_is_no_text_is_told_as_made_or_gone(tool: Tool):
    done = tool(patch=envelope("*** Delete File: image.png\n"))
    assert f"Binary file image.png deleted ({len(IMAGE)} bytes)" in done.receipt["diff"]


@pytest.mark.slow
def test_files_that_are_too_large_to_be_edited_can_be_renamed_and_deleted(
    tool: Tool, root: Path, tmp_path: Path
):
    (root / "big.log").write_bytes((b"x" * 99 + b"\n") * 105_000)
    edit = "*** Update File: big.log\n{}@@\n-none\n+x\n"
    assert tool(patch=envelope(edit.format(""))).code == "FILE_TOO_LARGE"
    assert tool(patch=envelope(edit.format("*** Move to: x\n"))).failed
    assert not tool(patch=RENAME.format("big.log", "old.log")).failed
    assert (root / "old.log").stat().st_size == 10_500_000
    done = tool(patch=envelope("*** Delete File: old.log\n"))
    assert not done.failed, done.text
    assert len(done.text) < 1_000
    assert not (root / "old.log").exists()
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        workspace.undo(CALL.session)
        workspace.undo(CALL.session)
    assert (root / "big.log").stat().st_size == 10_500_000


def test_a_rename_as_a_patch_is_what_git_takes(
    tool: Tool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (root / "long.txt").write_text("".join(f"line {n}\n" for n in range(20)))
    shutil.copytree(root, tmp_path / "other")
    patch = envelope(
        "*** Update File: long.txt\n*** Move to: sub/new.txt\n@@\n-line 9\n+nine\n",
        "*** Delete File: b.txt\n",
    )
    assert not tool(patch=patch).failed
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        (operation,) = workspace.log()
        sent = workspace.patch(operation)
    assert b"rename from long.txt\nrename to sub/new.txt\n" in sent
    command = ["git", "apply", "-p1"]
    subprocess.run(command, cwd=tmp_path / "other", input=sent, check=True, capture_output=True)
    assert files(tmp_path / "other") == files(root)


def test_a_new_file_over_another_is_named_as_overwriting_it(tool: Tool, root: Path):
    answer = tool(patch=envelope("*** Add File: b.txt\n+new\n"))
    # Nobody had read it, so the answer shows what it held.
    assert answer.text.startswith("Done: overwrite b.txt. ")
    assert "-bee\n+new" in answer.text
    assert (root / "b.txt").read_bytes() == b"new\n"


def test_a_new_name_in_the_headers_says_how_to_rename_and_that_can_be_followed(
    tool: Tool, root: Path
):
    patch = "--- a/b.txt\n+++ b/new.txt\n@@ -1 +1 @@\n-bee\n+fly\n"
    refused = tool(patch=patch)
    assert refused.code == "NOT_FOUND"
    lines = refused.text.partition("above them: ")[2].removesuffix(".").split(", ")
    assert not tool(patch="\n".join((*lines, patch))).failed
    assert not (root / "b.txt").exists()
    assert (root / "new.txt").read_bytes() == b"fly\n"
    again = tool(patch="--- a/gone.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-bee\n+fly\n")
    assert "rename" not in again.text


def test_comments_of_sql_with_wrong_counts_are_lines_of_their_hunks(tool: Tool, root: Path):
    (root / "s.sql").write_text("-- one\nselect 1;\nx\n-- two more\ny\n")
    patch = "@@ -1,9 +1,9 @@\n--- one\n+++ uno\n@@ -3,7 +3,7 @@\n x\n--- two more\n+++ dos mas\n@@ -5 +5 @@\n-y\n+z\n"
    assert not tool(patch=f"--- a/s.sql\n+++ b/s.sql\n{patch}").failed
    assert (root / "s.sql").read_text() == "++ uno\nselect 1;\nx\n++ dos mas\nz\n"


def test_line_ends_that_a_patch_adds_are_said_and_a_missing_last_one_is_no_other_kind(
    tool: Tool, root: Path
):
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    answer = tool(patch="--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,2 +1,3 @@\n a\r\n+x\n b\r\n")
    assert "end in LF, unlike" in answer.text
    (root / "open.txt").write_bytes(b"a\nb")
    answer = tool(patch="--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n")
    assert "line ends" not in answer.text
    assert (root / "open.txt").read_bytes() == b"A\nb"


NAMES = ("a.txt", "b.txt", "c.txt", "d.sh")


@pytest.mark.parametrize("edited", [False, True], ids=["only", "edited"])
@pytest.mark.parametrize(
    "moves",
    [
        {"a.txt": "b.txt", "b.txt": "a.txt"},
        {"a.txt": "b.txt", "b.txt": "new.txt"},
        {"a.txt": "b.txt", "b.txt": "c.txt", "c.txt": "a.txt"},
        {"a.txt": "d.sh", "d.sh": "new.sh", "b.txt": "c.txt", "c.txt": "b.txt"},
    ],
    ids=["swap", "chain", "circle", "two"],
)
def test_files_that_exchange_or_hand_on_their_names_are_renamed_as_git_says(
    tool: Tool, root: Path, moves: dict[str, str], edited: bool
):
    shutil.rmtree(root / "src")
    (root / "image.png").unlink()
    for number, name in enumerate(NAMES):
        (root / name).write_text(
            "".join(f"{name} has {line * (number + 3)}\n" for line in range(80))
        )
    (root / "d.sh").chmod(0o755)
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *words], check=True)
    before = all_of(root)
    held = {name: ((root / name).read_text(), (root / name).stat().st_mode) for name in moves}
    for old, new in moves.items():
        text, mode = held[old]
        (root / new).write_text(text.replace(f"{old} has 180\n", "changed\n") if edited else text)
        (root / new).chmod(mode)
    for name in moves.keys() - set(moves.values()):
        (root / name).unlink()
    after = all_of(root)
    subprocess.run([*git, "add", "-A"], check=True)
    patch = subprocess.run(
        [*git, "diff", "--cached", "-M", "-B"], check=True, capture_output=True, text=True
    ).stdout
    assert patch.count("rename from") == len(moves)
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    assert all_of(root) == before
    for step, wanted in (
        ({"patch": patch}, after),
        ({"patch": patch, "reverse": True}, before),
        ({"patch": patch, "dry_run": True}, before),
        ({"patch": patch}, after),
    ):
        done = tool(**step)
        assert not done.failed, done.text
        assert all_of(root) == wanted
    assert tool.undo().status == "applied"
    assert all_of(root) == before


@pytest.mark.parametrize("edited", [False, True], ids=["only", "edited"])
@pytest.mark.parametrize("twins", ["a", "b", "ab"])
@pytest.mark.parametrize("onto", ["a.txt", "new.txt"], ids=["swap", "chain"])
def test_files_whose_names_are_handed_on_stay_one_with_their_other_names(
    tool: Tool, root: Path, onto: str, twins: str, edited: bool
):
    for one in twins:
        os.link(root / f"{one}.txt", root / f"{one}-twin.txt")
    before = files(root)
    lines = ("@@ -1,2 +1,2 @@\n-one\n+1\n two\n", "@@ -1 +1 @@\n-bee\n+B\n") if edited else ("", "")
    texts = (b"1\ntwo\n", b"B\n") if edited else (before["a.txt"], before["b.txt"])
    patch = "".join(
        RENAME.format(old, new).replace("100%", "60%")
        + (f"--- a/{old}\n+++ b/{new}\n{hunk}" if hunk else "")
        for old, new, hunk in (("a.txt", "b.txt", lines[0]), ("b.txt", onto, lines[1]))
    )
    shown = tool(patch=patch, dry_run=True)
    told = len(twins) if edited else 0
    assert shown.text.count("stays one file") == told
    assert "keep the old text" not in shown.text
    after = before | {"b.txt": texts[0], onto: texts[1]}
    if onto != "a.txt":
        del after["a.txt"]
    now = {"a": ("b.txt", texts[0]), "b": (onto, texts[1])}
    after |= {f"{one}-twin.txt": now[one][1] for one in twins}
    inodes = {one: (root / f"{one}-twin.txt").stat().st_ino for one in twins}
    assert files(root) == before
    done = tool(patch=patch)
    assert not done.failed, done.text
    assert done.text.count("in place") == told, done.text
    for _ in range(2):
        assert files(root) == after
        for one in twins:
            for name in (now[one][0], f"{one}-twin.txt"):
                assert (root / name).stat().st_ino == inodes[one], name
        assert "hard link" not in str([x for x in tool.undo().notes if "in place" not in x])  # type: ignore[attr-defined]
        assert files(root) == before
        for one in twins:
            for name in (f"{one}.txt", f"{one}-twin.txt"):
                assert (root / name).stat().st_ino == inodes[one], name
        tool.redo()  # type: ignore[attr-defined]
    assert not [one for one in os.listdir(root) if one.startswith(".filepact")]


@pytest.mark.parametrize("twin", ["root/src/twin.txt", "twin.txt"], ids=["here", "elsewhere"])
@pytest.mark.parametrize("keeps", [True, False], ids=["keep", "replace"])
@pytest.mark.parametrize("form", ["git", "envelope"])
def test_a_file_that_is_renamed_with_other_lines_stays_one_with_its_other_names_where_a_person_wants_it(
    tool: Tool, root: Path, twin: str, form: str, keeps: bool
):
    tool.workspace.guard.roots[0].keeps_links = keeps  # type: ignore[attr-defined]
    os.link(root / "a.txt", root.parent / twin)
    before, there = files(root), "root/" in twin
    lines = "@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
    git = RENAME.format("a.txt", "new.txt").replace("100%", "60%")
    patch = {
        "git": f"{git}--- a/a.txt\n+++ b/new.txt\n{lines}",
        "envelope": envelope("*** Update File: a.txt\n*** Move to: new.txt\n", lines),
    }[form]
    shown = tool(patch=patch, dry_run=True)
    one = there and keeps
    told = "a.txt has 2 names (hard links); the others keep"
    assert (shown.text.count(told), shown.text.count("stays one file")) == (not one, one)
    assert files(root) == before
    done = tool(patch=patch)
    assert (done.text.count("hard link"), "in place" in done.text) == (1, one)
    for _ in range(2):
        after = before | {"new.txt": b"1\ntwo\n"}
        after |= {"src/twin.txt": b"1\ntwo\n"} if one else {}
        del after["a.txt"]
        assert files(root) == after
        assert (root.parent / twin).read_bytes() == (b"1\ntwo\n" if one else b"one\ntwo\n")
        assert (root / "new.txt").samefile(root.parent / twin) == one
        back = tool.undo().notes  # type: ignore[attr-defined]
        assert files(root) == before
        assert (root.parent / twin).read_bytes() == b"one\ntwo\n"
        joined = (root / "a.txt").samefile(root.parent / twin)
        assert joined == there, back
        assert joined or "hard link" in str(back)
        tool.redo()  # type: ignore[attr-defined]


def test_names_of_one_file_that_are_renamed_with_other_lines_differ_only_where_they_are_to(
    tool: Tool, root: Path
):
    os.link(root / "a.txt", root / "twin.txt")
    before = files(root)
    first = "@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
    for second, joined in ((first, True), (first.replace("+1\n", "+I\n"), False), ("", False)):
        patch = "".join(
            RENAME.format(old, new).replace("100%", "60%")
            + (f"--- a/{old}\n+++ b/{new}\n{hunk}" if hunk else "")
            for old, new, hunk in (("a.txt", "x.txt", first), ("twin.txt", "y.txt", second))
        )
        assert not (done := tool(patch=patch)).failed, done.text
        assert (root / "x.txt").read_bytes() == b"1\ntwo\n"
        if second:
            wanted = b"one\ntwo\n".replace(b"one", b"1" if joined else b"I")
            assert (root / "y.txt").read_bytes() == wanted
        else:
            assert (root / "y.txt").read_bytes() == b"one\ntwo\n"
        assert (root / "x.txt").samefile(root / "y.txt") == joined
        tool.undo()  # type: ignore[attr-defined]
        assert files(root) == before
        if not (root / "a.txt").samefile(root / "twin.txt"):
            (root / "twin.txt").unlink()
            os.link(root / "a.txt", root / "twin.txt")


def test_a_rename_without_other_lines_tells_nothing_of_other_names(tool: Tool, root: Path):
    os.link(root / "a.txt", root / "twin.txt")
    patch = RENAME.format("a.txt", "new.txt")
    assert "hard link" not in tool(patch=patch, dry_run=True).text + tool(patch=patch).text
    assert (root / "new.txt").samefile(root / "twin.txt")


@pytest.mark.parametrize("waits", [False, True], ids=["at-once", "approved"])
def test_another_name_of_a_file_that_a_moved_one_overwrites_keeps_what_it_held(
    root: Path, tmp_path: Path, waits: bool
):
    os.link(root / "b.txt", root / "twin.txt")
    before = files(root)
    moved = envelope("*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+1\n")
    opened = partial(open_workspace, [str(root)], state_dir=str(tmp_path / "state"))
    with closing(opened(mode="preview" if waits else "auto")) as workspace:
        done = open_toolbox(workspace).call("patch_apply", {"patch": moved}, CALL)
        assert not done.failed, done.text
    with closing(opened()) as workspace:
        for one in workspace.pending():
            (root / "b.txt").write_bytes(b"bee\nmore\n")  # Both names have it.
            with pytest.raises(StaleFileError):
                workspace.approve(one.id, Approval(Actor("person", "p")))
            (root / "b.txt").write_bytes(b"bee\n")
            workspace.approve(one.id, Approval(Actor("person", "p")))
        after = files(root)
        assert (after["b.txt"], after["twin.txt"]) == (b"1\ntwo\n", before["b.txt"])
        workspace.undo(CALL.session)
        assert files(root) == before


def all_of(root: Path) -> dict[str, tuple[bytes, int]]:
    """All files with their permission bits, but for Git's own."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mode)
        for path in root.iterdir()
        if path.is_file()
    }


def test_quotes_around_a_name_are_a_part_of_it_only_where_a_file_has_them(tool: Tool, root: Path):
    for name in ('"a.txt"', '"q.txt"', "`b.txt`"):
        (root / name).write_bytes(b"one\ntwo\n")
    before = files(root)
    part = "*** Update File: {}\n@@\n one\n-two\n+2\n"
    for twice in (part.format('"a.txt"'), '*** Delete File: "a.txt"\n', part.format("`b.txt`")):
        assert tool(patch=envelope(twice)).code == "PATCH_AMBIGUOUS"
    assert files(root) == before
    changed = {}
    for name, sent, path in [
        ('"a.txt"', '"a.txt"', '"a.txt"'),
        ("a.txt", "a.txt", None),
        ('"q.txt"', '"q.txt"', None),
        ("`b.txt`", "`b.txt`", "`b.txt`"),
        ("src/f.py", '"src/f.py"', None),
    ]:
        body = part.format(sent)
        if name == "src/f.py":
            body = '*** Delete File: "src/f.py"\n'
        assert not tool(patch=envelope(body), **({"path": path} if path else {})).failed
        changed[name] = b"one\n2\n"
    del changed["src/f.py"]
    assert files(root) == {k: v for k, v in before.items() if k != "src/f.py"} | changed


def test_an_envelope_exchanges_two_names(tool: Tool, root: Path):
    patch = envelope(
        "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+1\n",
        "*** Update File: b.txt\n*** Move to: a.txt\n@@\n-bee\n+B\n",
    )
    assert not tool(patch=patch).failed
    assert files(root)["a.txt"] == b"B\n"
    assert files(root)["b.txt"] == b"1\ntwo\n"

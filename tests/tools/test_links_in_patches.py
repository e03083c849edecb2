"""A patch that deletes or renames a symbolic link acts on the link itself, as Git does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext, CallResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

    Patch = Callable[..., CallResult]

SESSION = Session("s1", Actor("agent", "tester"))
PERSON = Session("s2", Actor("person", "ann"))
DELETE = "*** Begin Patch\n*** Delete File: {}\n*** End Patch\n"
GIT_DELETE = (
    "diff --git a/{0} b/{0}\ndeleted file mode 120000\nindex 8f0a6e5..0000000\n--- a/{0}\n"
    "+++ /dev/null\n@@ -1 +0,0 @@\n-{1}\n\\ No newline at end of file\n"
)
GIT_RENAME = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "real.txt").write_text("one\ntwo\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    for name, target in {
        "link.txt": "real.txt",
        "dangling": "nothere.txt",
        "out": "../outside.txt",
        "absolute": str(folder / "real.txt"),
        "sub/up.txt": "../real.txt",
        "folder": "sub",
        "circle": "circle",
    }.items():
        (folder / name).symlink_to(target)
    return folder


@pytest.fixture
def patch(workspace: Workspace) -> Patch:
    toolbox = open_toolbox(workspace)

    def call(text: str, **arguments: object) -> CallResult:
        return toolbox.call("patch_apply", {"patch": text, **arguments}, CallContext(SESSION))

    return call


def tree(root: Path) -> dict[str, str]:
    """Every link with the name that it leads to, and every file with its text."""
    return {
        str(one.relative_to(root)): f"-> {os.readlink(one)}"
        if one.is_symlink()
        else one.read_text()
        for one in root.rglob("*")
        if one.is_symlink() or one.is_file()
    }


LINKS = ["link.txt", "dangling", "out", "absolute", "sub/up.txt", "folder", "circle"]


@pytest.mark.parametrize("name", LINKS)
def test_deleting_a_link_leaves_what_it_leads_to_and_undo_brings_it_back(
    name: str, patch: Patch, workspace: Workspace, root: Path
):
    before = tree(root)
    done = patch(DELETE.format(name))
    assert not done.failed, done.text
    assert tree(root) == {one: text for one, text in before.items() if one != name}
    workspace.undo(PERSON)
    assert tree(root) == before
    workspace.redo(PERSON)
    assert name not in tree(root)
    assert not list(root.rglob(".filepact-*"))


@pytest.mark.parametrize(
    ("name", "told"), [("out", False), ("absolute", True), ("sub/up.txt", True)]
)
def test_an_agent_is_not_told_where_a_link_leads_outside(
    name: str, *, told: bool, patch: Patch, workspace: Workspace, root: Path
):
    target = os.readlink(root / name)
    done = patch(DELETE.format(name))
    assert not done.failed, done.text
    assert (target in done.receipt["diff"]) is told
    (operation,) = workspace.log(limit=1)
    assert target in workspace.diff(operation), "the person sees it"


@pytest.mark.parametrize("name", ["link.txt", "dangling", "out"])
def test_gits_own_deletion_of_a_link_is_taken_where_it_leads_there(
    name: str, patch: Patch, root: Path
):
    before = tree(root)
    other = patch(GIT_DELETE.format(name, "elsewhere"))
    assert other.code == "PATCH_CONTEXT_MISMATCH"
    assert tree(root) == before
    done = patch(GIT_DELETE.format(name, os.readlink(root / name)))
    assert not done.failed, done.text
    assert tree(root) == {one: text for one, text in before.items() if one != name}


@pytest.mark.parametrize("name", ["link.txt", "dangling", "out", "absolute", "folder"])
def test_renaming_a_link_moves_the_link_and_undo_moves_it_back(
    name: str, patch: Patch, workspace: Workspace, root: Path
):
    before = tree(root)
    done = patch(GIT_RENAME.format(name, "new"))
    assert not done.failed, done.text
    expected = {one: text for one, text in before.items() if one != name}
    assert tree(root) == {**expected, "new": before[name]}
    workspace.undo(PERSON)
    assert tree(root) == before


def test_what_is_shown_of_it_is_what_git_shows(patch: Patch, workspace: Workspace):
    assert not patch(DELETE.format("link.txt")).failed
    (operation,) = workspace.log()
    for shown in (workspace.diff(operation), workspace.patch(operation).decode()):
        assert "deleted file mode 120000\n" in shown
        assert "-real.txt\n\\ No newline at end of file\n" in shown


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(
            GIT_RENAME.format("sub/up.txt", "up.txt"), "PATH_BLOCKED", id="leads out then"
        ),
        pytest.param(GIT_RENAME.format("link.txt", "sub/real.txt"), "", id="leads to itself"),
        pytest.param(GIT_RENAME.format("link.txt", "real.txt"), "INVALID_PARAMS", id="over a file"),
        pytest.param(
            "*** Begin Patch\n*** Update File: link.txt\n*** Move to: new\n@@\n-one\n+1\n"
            "*** End Patch\n",
            "INVALID_PARAMS",
            id="edited on the way",
        ),
        pytest.param(
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n"
            "+real.txt\n\\ No newline at end of file\n",
            "PATCH_MALFORMED",
            id="made",
        ),
        pytest.param(GIT_RENAME.format("link.txt", "id_rsa"), "PATH_BLOCKED", id="protected name"),
    ],
)
def test_what_a_link_may_not_become_is_refused(text: str, code: str, patch: Patch, root: Path):
    before = tree(root)
    done = patch(text)
    assert done.code == code
    assert (tree(root) == before) == bool(code)


@pytest.mark.parametrize(("name", "mode"), [("real.txt", "120000"), ("link.txt", "100644")])
def test_what_is_deleted_has_to_be_what_git_says_that_it_is(
    name: str, mode: str, patch: Patch, root: Path
):
    (root / "real.txt").write_text("real.txt")
    before = tree(root)
    text = GIT_DELETE.format(name, "real.txt").replace("120000", mode)
    assert patch(text).code == "PATCH_CONTEXT_MISMATCH"
    assert tree(root) == before


def test_a_deletion_of_a_link_is_not_taken_back_by_making_one_from_a_patch(
    patch: Patch, root: Path
):
    (root / "link.txt").unlink()
    before = tree(root)
    assert patch(GIT_DELETE.format("link.txt", "/etc"), reverse=True).code == "PATCH_MALFORMED"
    assert tree(root) == before


def test_editing_through_a_link_changes_what_it_leads_to_and_keeps_the_link(
    patch: Patch, root: Path
):
    done = patch("*** Begin Patch\n*** Update File: link.txt\n@@\n-one\n+1\n*** End Patch\n")
    assert not done.failed, done.text
    assert (root / "link.txt").is_symlink()
    assert (root / "real.txt").read_text() == "1\ntwo\n"


def test_a_link_that_leads_elsewhere_by_now_is_not_brought_back_over_a_file(
    patch: Patch, workspace: Workspace, root: Path
):
    assert not patch(DELETE.format("link.txt")).failed
    (root / "link.txt").write_text("a person's\n")
    with pytest.raises(Exception, match="link") as caught:
        workspace.undo(PERSON)
    assert caught.value.code == "STALE_FILE"
    assert (root / "link.txt").read_text() == "a person's\n"


def test_a_file_and_a_link_to_it_are_changed_together(patch: Patch, root: Path):
    done = patch(
        "*** Begin Patch\n*** Delete File: link.txt\n*** Update File: real.txt\n@@\n-one\n+1\n"
        "*** End Patch\n"
    )
    assert not done.failed, done.text
    assert "link.txt" not in tree(root)
    assert (root / "real.txt").read_text() == "1\ntwo\n"

"""Undo, redo and restore: what goes back, what stays, what is refused."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import (
    FOLDER,
    LINK,
    Revision,
    RootId,
    WorkspacePath,
    content_id,
)
from filepact.errors import FilepactError
from filepact.text.locate import place
from filepact.tools.registry import CallContext
from filepact.workspace import receipt
from tests.workspace.acting import delete, edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(FilepactError) as caught:
        call()
    return caught.value.code


def test_undo_and_redo_walk_back_and_forth(
    workspace: Workspace, session: Session, root: Path
) -> None:
    for text in ("one\n", "two\n", "three\n"):
        write(workspace, session, "a.txt", text)
    path = root / "a.txt"
    workspace.undo(session, dry_run=False)
    assert path.read_text() == "two\n"
    workspace.undo(session, dry_run=False)
    assert path.read_text() == "one\n"
    workspace.redo(session, dry_run=False)
    assert path.read_text() == "two\n"
    workspace.undo(session, dry_run=False)
    workspace.undo(session, dry_run=False)
    assert not path.exists()
    assert refused(lambda: workspace.undo(session, dry_run=False)) == "NO_CHANGE"
    for text in ("one\n", "two\n", "three\n"):
        workspace.redo(session, dry_run=False)
        assert path.read_text() == text
    assert refused(lambda: workspace.redo(session, dry_run=False)) == "NO_CHANGE"


def test_a_new_change_ends_what_can_be_redone(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "one\n")
    write(workspace, session, "a.txt", "two\n")
    workspace.undo(session, dry_run=False)
    write(workspace, session, "a.txt", "other\n")
    assert refused(lambda: workspace.redo(session, dry_run=False)) == "NO_CHANGE"
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_an_undo_that_there_is_nothing_to_redo_of_bars_no_earlier_one(
    workspace: Workspace, session: Session, root: Path, folder: bool
) -> None:
    """A person has done so by hand meanwhile, or the folder that was to go had stayed."""
    if folder:
        workspace.external.resnapshot()
        (root / "made").mkdir()
        workspace.external.detect(session, tool="bash")
    else:
        write(workspace, session, "made", "made\n")
    write(workspace, session, "other", "other\n")
    workspace.undo(session)
    if folder:
        (root / "made/mine").write_text("mine\n")
    workspace.undo(session)
    if not folder:
        (root / "made").write_text("made\n")
    workspace.redo(session)
    assert (root / "other").read_text() == "other\n"
    assert refused(lambda: workspace.redo(session)) == "NO_CHANGE"


def test_undo_of_one_operation_keeps_later_edits(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n")
    first = edit(workspace, session, "a.txt", "1\n", "one\n")
    edit(workspace, session, "a.txt", "7\n", "seven\n")
    (root / "a.txt").write_text("one\n2\n3\nby hand\n4\n5\n6\nseven\n")
    receipt = workspace.undo(session, first.operation, dry_run=False)
    assert (root / "a.txt").read_text() == "1\n2\n3\nby hand\n4\n5\n6\nseven\n"
    assert receipt.notes


def test_undo_never_overwrites_what_somebody_else_wrote_since(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "new.txt", "mine\n")
    (root / "new.txt").write_text("theirs\n")
    with pytest.raises(FilepactError) as caught:
        workspace.undo(session, dry_run=False)
    assert caught.value.code == "STALE_FILE"
    assert "+theirs" in caught.value.message
    assert (root / "new.txt").read_text() == "theirs\n"

    (root / "b.txt").write_text("one\n")
    edit(workspace, session, "b.txt", "one", "two")
    (root / "b.txt").write_text("three\n")
    with pytest.raises(FilepactError) as caught:
        workspace.undo(session, dry_run=False)
    assert caught.value.code == "STALE_FILE"
    assert "+three" in caught.value.message
    assert "+one" in caught.value.message
    assert (root / "b.txt").read_text() == "three\n"


def test_undo_does_not_double_a_line_that_somebody_moved_on(
    root: Path, workspace: Workspace, session: Session
):
    (root / "order.txt").write_text("a\nb\nc\nd\ne\nf\ng\n")
    read(workspace, session, "order.txt")
    moved = write(workspace, session, "order.txt", "a\nc\nd\ne\nb\nf\ng\n")
    (root / "order.txt").write_text("a\nc\nb\nd\ne\nf\ng\n")
    code = refused(lambda: workspace.undo(session, moved.operation, dry_run=False))
    assert (code, (root / "order.txt").read_text()) == ("STALE_FILE", "a\nc\nb\nd\ne\nf\ng\n")


def test_undo_of_a_deletion_is_refused_when_the_name_is_taken(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    delete(workspace, session, "a.txt")
    (root / "a.txt").write_text("new\n")
    assert refused(lambda: workspace.undo(session, dry_run=False)) == "STALE_FILE"
    assert (root / "a.txt").read_text() == "new\n"


def test_undo_removes_the_folders_that_were_made_and_are_empty(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "x/y/a.txt", "a\n")
    assert (root / "x/y/a.txt").exists()
    workspace.undo(session, dry_run=False)
    assert list(root.iterdir()) == []
    workspace.redo(session, dry_run=False)
    assert (root / "x/y/a.txt").read_text() == "a\n"
    (root / "x/kept.txt").write_text("kept\n")
    workspace.undo(session, dry_run=False)
    assert (root / "x/kept.txt").read_text() == "kept\n"


def test_undo_by_id_twice_is_refused_and_redo_by_id_works(
    workspace: Workspace, session: Session, root: Path
) -> None:
    first = write(workspace, session, "a.txt", "a\n")
    write(workspace, session, "b.txt", "b\n")
    undo = workspace.undo(session, first.operation, dry_run=False)
    assert not (root / "a.txt").exists()
    assert refused(lambda: workspace.undo(session, first.operation, dry_run=False)) == "NO_CHANGE"
    workspace.redo(session, first.operation, dry_run=False)
    assert (root / "a.txt").read_text() == "a\n"
    assert refused(lambda: workspace.redo(session, undo.operation, dry_run=False)) == "NO_CHANGE"
    assert refused(lambda: workspace.redo(session, first.operation, dry_run=False)) == "NO_CHANGE"


def test_undo_of_an_undo_is_a_redo_and_undo_of_a_redo_undoes_the_original(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "a\n")
    undo = workspace.undo(session, dry_run=False)
    redo = workspace.undo(session, undo.operation, dry_run=False)
    assert (root / "a.txt").exists()
    workspace.undo(session, redo.operation, dry_run=False)
    assert not (root / "a.txt").exists()
    kinds = [operation.kind for operation in workspace.log()]
    assert kinds == ["undo", "redo", "undo", "change"]


def test_a_previewed_undo_changes_nothing(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "a\n")
    receipt = workspace.undo(session, dry_run=True)
    assert receipt.status == "preview"
    assert "-a" in receipt.diff
    assert (root / "a.txt").exists()
    assert len(workspace.log()) == 1


def test_restore_brings_back_a_checkpoint_as_one_operation(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    edit(workspace, session, "a.txt", "a", "A")
    workspace.checkpoint("before")
    edit(workspace, session, "a.txt", "A", "AA")
    edit(workspace, session, "a.txt", "AA", "AAA")
    write(workspace, session, "new.txt", "n\n")
    delete(workspace, session, "b.txt")
    receipt = workspace.restore(session, "before", dry_run=False)
    assert (root / "a.txt").read_text() == "A\n"
    assert (root / "b.txt").read_text() == "b\n"
    assert not (root / "new.txt").exists()
    assert len(receipt.files) == 3
    assert refused(lambda: workspace.restore(session, "before", dry_run=False)) == "NO_CHANGE"
    # To undo once more is to go further back; what is meant has to be said.
    assert refused(lambda: workspace.undo(session)) == "INVALID_PARAMS"
    workspace.redo(session)
    assert (root / "a.txt").read_text() == "AAA\n"
    assert not (root / "b.txt").exists()


def test_restore_keeps_what_a_person_wrote_elsewhere_in_the_file(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n")
    workspace.checkpoint("start")
    edit(workspace, session, "a.txt", "1\n", "one\n")
    (root / "a.txt").write_text("one\n2\n3\n4\nfive by hand\n")
    workspace.restore(session, "start", dry_run=False)
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\nfive by hand\n"


def test_restore_keeps_what_a_person_wrote_before_later_changes_of_the_file(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    workspace.checkpoint("start")
    edit(workspace, session, "a.txt", "1\n", "one\n")
    (root / "a.txt").write_text("one\n2\n3\n4\nfive by hand\n6\n7\n8\n9\n")
    edit(workspace, session, "a.txt", "9\n", "nine\n")
    receipt = workspace.restore(session, "start", dry_run=True)
    assert "five by hand" not in [line[1:] for line in receipt.diff.splitlines() if line[:1] == "-"]
    workspace.restore(session, "start")
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\nfive by hand\n6\n7\n8\n9\n"
    assert refused(lambda: workspace.restore(session, "start")) == "NO_CHANGE"
    workspace.redo(session)
    assert (root / "a.txt").read_text() == "one\n2\n3\n4\nfive by hand\n6\n7\n8\nnine\n"


def test_restore_after_an_undo_keeps_what_a_person_wrote_in_between(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n")
    workspace.checkpoint("start")
    edit(workspace, session, "a.txt", "1\n", "one\n")
    with (root / "a.txt").open("a") as stream:
        stream.write("by hand\n")
    workspace.undo(session, dry_run=False)
    assert refused(lambda: workspace.restore(session, "start")) == "NO_CHANGE"
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\nby hand\n"


def test_restore_is_refused_where_an_earlier_change_met_a_person_s_lines(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    (root / "b.txt").write_text("b\n")
    workspace.checkpoint("start")
    edit(workspace, session, "a.txt", "1\n", "one\n")
    edit(workspace, session, "b.txt", "b\n", "B\n")
    by_hand = "one by hand\n2\n3\n4\n5\n6\n7\n8\n"
    (root / "a.txt").write_text(f"{by_hand}9\n")
    edit(workspace, session, "a.txt", "9\n", "nine\n")
    assert refused(lambda: workspace.restore(session, "start")) == "STALE_FILE"
    assert (root / "a.txt").read_text() == f"{by_hand}nine\n"
    assert (root / "b.txt").read_text() == "B\n"


def test_unknown_names_are_refused_by_code(workspace: Workspace, session: Session) -> None:
    assert refused(lambda: workspace.undo(session, "cnothing", dry_run=False)) == "NOT_FOUND"
    assert refused(lambda: workspace.restore(session, "no", dry_run=False)) == "NOT_FOUND"
    workspace.checkpoint("name")
    assert refused(lambda: workspace.checkpoint("name")) == "INVALID_PARAMS"
    assert refused(lambda: workspace.checkpoint("a/b")) == "INVALID_PARAMS"
    assert [checkpoint.name for checkpoint in workspace.checkpoints()] == ["name"]


def test_the_journal_survives_a_restart(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    first = open_here()
    write(first, session, "a.txt", "a\n")
    second = open_here()
    assert len(second.log()) == 1
    second.undo(session, dry_run=False)
    assert not (root / "a.txt").exists()
    assert first.log()[0].kind == "undo"


def test_the_log_can_be_asked_for_one_path(workspace: Workspace, session: Session) -> None:
    write(workspace, session, "a.txt", "a\n")
    write(workspace, session, "b.txt", "b\n")
    assert [operation.summary for operation in workspace.log(path="a.txt")] == ["write a.txt"]


def test_the_patch_of_an_operation_holds_the_files_own_bytes(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "latin.txt").write_bytes(b"caf\xe9\nplain\n")
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    with workspace.draft(session, "t") as draft:
        latin, bom, empty = draft.open_all(["latin.txt", "bom.txt", "empty"])
        draft.edit(latin, lambda text: place(text, "plain", "simple").edits)
        draft.edit(bom, lambda text: place(text, "one", "1").edits)
        draft.write(empty, "")
        workspace.submit(draft, "all three")
    patch = workspace.patch(workspace.log()[0])
    subprocess.run(["git", "apply", "-R"], cwd=root, input=patch, check=True)
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_a_patch_says_what_changed_besides_the_bytes_and_stays_a_patch(
    workspace: Workspace, session: Session, root: Path
) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("attributes are set as on Linux")
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.txt").write_text("b\n")
    (root / "d").mkdir()
    workspace.external.resnapshot()
    (root / "a.txt").write_text("one\n2\n")
    os.setxattr(root / "a.txt", "user.x\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +0,0 @@\n-b", b"1")
    os.setxattr(root / "b.txt", "user.mark", b"1")
    (root / "d").chmod(0o700)
    if not os.geteuid():
        os.chown(root / "b.txt", 1234, -1)
    found = workspace.external.detect(session).operation
    patch = workspace.patch(found)
    said = patch.decode().splitlines()
    assert {"b.txt: attribute + user.mark", "d: mode 0755 -> 0700"} <= {*said}
    assert any(one.startswith("a.txt: attribute + user.x\\x0a--- a/b.txt\\x0a+++") for one in said)
    if not os.geteuid():
        assert f"b.txt: owner 0:{os.getegid()} -> 1234:{os.getegid()}" in said
    subprocess.run(["git", "apply", "-R"], cwd=root, input=patch, check=True)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert (root / "b.txt").read_text() == "b\n"
    (root / "a.txt").write_text("one\n2\n")
    taken = open_toolbox(workspace).call(
        *("patch_apply", {"patch": patch.decode(), "reverse": True}), CallContext(session)
    )
    assert not taken.failed, taken.text
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_an_operation_that_changed_nothing_cannot_be_undone(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    with workspace.draft(session, "t") as draft:
        first, second = draft.open_all(["a.txt", "b.txt"])
        draft.write(first, "A\n")
        draft.write(second, "B\n")
        (root / "b.txt").write_text("theirs\n")
        assert refused(lambda: workspace.submit(draft, "both")) == "STALE_FILE"
    (operation,) = workspace.log()
    assert operation.state == "rolled_back"
    assert refused(lambda: workspace.undo(session, operation.id, dry_run=False)) == "NO_CHANGE"
    workspace.checkpoint("here")
    assert refused(lambda: workspace.restore(session, "here", dry_run=False)) == "NO_CHANGE"


def test_a_failed_operation_does_not_end_what_can_be_redone(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "a\n")
    workspace.undo(session, dry_run=False)
    with workspace.draft(session, "t") as draft:
        draft.write(draft.open("b.txt"), "b\n")
        (root / "b.txt").write_text("theirs\n")
        assert refused(lambda: workspace.submit(draft, "b")) == "STALE_FILE"
    workspace.redo(session, dry_run=False)
    assert (root / "a.txt").read_text() == "a\n"


def test_undo_finds_its_operation_behind_many_of_other_roots(
    open_here: Callable[..., Workspace], session: Session, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    here, there = open_here(), open_here(roots=[str(tmp_path / "other")])
    write(here, session, "a.txt", "a\n")
    for number in range(105):
        write(there, session, "b.txt", f"{number}\n")
    here.undo(session, dry_run=False)
    assert not (root / "a.txt").exists()
    assert (tmp_path / "other" / "b.txt").read_text() == "104\n"


def change(path: str, before: Revision | None, after: Revision | None) -> FileChange:
    return FileChange(WorkspacePath(RootId("/r"), path), before, after)


def patched(*changes: FileChange, contents: tuple[bytes, ...] = ()) -> str:
    known = {content_id(data): data for data in contents}
    return receipt.patch_of(ChangeSet(changes), known.__getitem__).decode()


def test_a_patch_tells_of_files_and_not_of_folders() -> None:
    made = Revision.of(b"a\n", 0o644)
    patch = patched(
        change("sub", None, FOLDER), change("sub/a.txt", None, made), contents=(b"a\n",)
    )
    assert "+a\n" in patch
    assert patch.count("diff --git") == 1


def test_a_patch_says_which_contents_were_not_kept() -> None:
    made = Revision.of(b"a\n", 0o644)
    patch = patched(change("big.bin", Revision.unread("x", 0o644), made), contents=(b"a\n",))
    assert "big.bin" in patch
    assert "not kept" in patch
    assert "+a" not in patch


def test_a_link_is_no_earlier_name_of_a_file_with_the_same_bytes() -> None:
    link, file = Revision.of(b"nowhere", LINK), Revision.of(b"nowhere", 0o644)
    patch = patched(change("link", link, None), change("file", None, file), contents=(b"nowhere",))
    assert "rename" not in patch
    assert "deleted file mode 120000" in patch
    assert "new file mode 100644" in patch


def test_bytes_that_are_no_text_are_told_by_their_size() -> None:
    old, new = b"\0old", b"\0\1new!"
    patch = patched(
        change("a.bin", Revision.of(old, 0o644), Revision.of(new, 0o644)), contents=(old, new)
    )
    assert "a.bin" in patch
    assert str(len(old)) in patch
    assert str(len(new)) in patch
    assert "\0" not in patch


def test_of_very_many_files_only_equal_ones_are_taken_for_renamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, alike, same = b"1\n2\n3\n4\n", b"1\n2\n3\nfour\n", b"same\n"
    changes = (
        change("old.txt", Revision.of(old, 0o644), None),
        change("new.txt", None, Revision.of(alike, 0o644)),
        change("from.txt", Revision.of(same, 0o644), None),
        change("to.txt", None, Revision.of(same, 0o644)),
    )
    assert patched(*changes, contents=(old, alike, same)).count("rename from") == 2
    monkeypatch.setattr(receipt, "_FEW_PAIRS", 0)
    patch = patched(*changes, contents=(old, alike, same))
    assert patch.count("rename from") == 1
    assert "rename from from.txt\nrename to to.txt\n" in patch

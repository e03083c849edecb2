"""What is shown of changes: texts for who renders them, encodings, sizes, and what only proposals have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import RootId
from filepact.errors import NoChangeError, NotAFileError, StaleFileError
from filepact.workspace import receipt as receipts
from filepact.workspace.buffers import Typed
from filepact.workspace.selection import Selection
from tests.workspace.acting import delete, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Operation, Session
    from filepact.workspace.workspace import Workspace

EDITOR = "zed 1"


def changed_outside(
    workspace: Workspace, session: Session, root: Path, *files: tuple[str, bytes | None, bytes]
) -> Operation:
    for name, before, _ in files:
        if before is not None:
            (root / name).write_bytes(before)
    workspace.external.resnapshot()
    for name, _, after in files:
        (root / name).write_bytes(after)
    found = workspace.external.detect(session)
    assert found.operations
    return found.operations[-1]


def test_texts_are_those_of_files_that_are_text_and_were_kept(
    workspace: Workspace, session: Session, root: Path
) -> None:
    operation = changed_outside(
        *(workspace, session, root),
        ("a.txt", b"one\n", b"two\n"),
        ("b.bin", b"\0\1", b"\0\2"),
        ("c.txt", None, b"new\n"),
    )
    assert [(one.path.path, one.before, one.after) for one in workspace.texts(operation)] == [
        ("a.txt", "one\n", "two\n"),
        ("c.txt", None, "new\n"),
    ]
    lost = changed_outside(workspace, session, root, ("id_rsa", b"first", b"other"))
    assert workspace.texts(lost) == ()


def test_a_file_that_changed_its_encoding_says_both(
    workspace: Workspace, session: Session, root: Path
) -> None:
    text = "\u00fcber\n"
    operation = changed_outside(
        *(workspace, session, root),
        ("a.txt", text.encode("utf-16"), text.encode() + b"more\n"),
        ("b.txt", text.encode("utf-16"), (text + "more\n").encode("utf-16")),
    )
    first, _, second = workspace.diff(operation).partition("b.txt")
    assert ", then utf-8" in first
    assert ", then" not in second


def test_a_file_that_is_too_large_to_be_shown_is_told_by_its_size(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = changed_outside(workspace, session, root, ("a.txt", b"small\n", b"large\n" * 100))
    monkeypatch.setattr(receipts, "EDIT_LIMIT", 100)
    shown = workspace.diff(operation)
    assert "600" in shown
    assert "+large" not in shown


# -- what only proposals and buffers have ------------------------------------------------------


def test_newer_texts_are_those_that_proposals_and_editors_have(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    for name in ("a.txt", "gone.txt", "typed.txt", "same.txt"):
        (root / name).write_text(f"{name}\n")
    preview = open_here("preview")
    write(preview, session, "a.txt", "proposed\n")
    delete(preview, session, "gone.txt")
    preview.editors.open("typed.txt", "typed\n", client=EDITOR, version=1)
    preview.editors.open("same.txt", "same.txt\n", client=EDITOR, version=1)
    documents = preview.reader(session)._documents
    found = documents.newer_texts(RootId(str(root)))
    assert {path.path: text for path, text in found.items()} == {
        "a.txt": "proposed\n",
        "typed.txt": "typed\n",
    }
    assert documents.held_in(RootId(str(root))) == {"a.txt", "gone.txt", "typed.txt"}


def test_an_editor_names_files_and_no_root(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    with pytest.raises(NotAFileError):
        workspace.editors.locate(".")
    there = workspace.editors.locate("a.txt")
    found = workspace.editors.stored(there)
    assert found is not None
    assert found.text == "one\n"
    missing = workspace.editors.locate("late.txt")
    assert workspace.editors.stored(missing) is None
    (root / "late.txt").write_text("late\n")
    found = workspace.editors.stored(missing)
    assert found is not None
    assert found.text == "late\n"


def test_of_several_files_that_were_written_past_the_doors_each_has_its_own_before(
    workspace: Workspace, session: Session, root: Path
) -> None:
    changed_outside(
        *(workspace, session, root), ("a.txt", b"one\n", b"two\n"), ("b.txt", b"1\n", b"2\n")
    )
    now = workspace.editors.stored("b.txt")
    assert now is not None
    before = workspace.editors.before_external(now)
    assert before is not None
    assert before.text == "1\n"


def test_a_second_writing_that_is_in_the_log_already_is_not_told_twice(
    workspace: Workspace, session: Session, root: Path
) -> None:
    sent = "one\ntwo\n"
    operation = str(write(workspace, session, "a.txt", "one\ntyped\ntwo\n").operation)
    (meant,) = workspace.editors.written(operation)
    workspace.external.resnapshot()
    (root / "a.txt").write_text(sent)
    assert workspace.external.detect(session).operation is not None
    before = len(workspace.log())
    kept = workspace.editors.restore_merge(meant, sent, session, client=EDITOR)
    assert kept == meant
    assert (root / "a.txt").read_text() == meant.text
    assert len(workspace.log()) == before + 1


def test_text_that_somebody_types_on_is_not_taken_for_what_was_sent(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    workspace.editors.open("a.txt", "typed\n", client=EDITOR, version=1)
    shown = workspace.editors.shown("a.txt")
    assert shown is not None
    workspace.editors.buffers.change(
        workspace.editors.locate("a.txt").path, [Typed("typed on\n")], client=EDITOR, version=2
    )
    with pytest.raises(StaleFileError):
        workspace.editors.agree([shown])
    assert (root / "a.txt").read_text() == "one\n"


# -- undoing what is as it was -----------------------------------------------------------------


def test_what_has_not_changed_since_is_not_restored(
    workspace: Workspace, session: Session, root: Path
) -> None:
    first = write(workspace, session, "a.txt", "one\n")
    workspace.undo(session, first.operation, dry_run=False)
    with pytest.raises(NoChangeError):
        workspace.undo_selected(session, Selection(before=str(first.operation)))

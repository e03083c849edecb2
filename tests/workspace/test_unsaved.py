"""What editors have typed, and what they make of what they were given, beside the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import PAST_THE_DOORS, Actor, Session
from filepact.errors import EncodingUnsafeError, StaleFileError
from filepact.workspace.buffers import Typed
from tests.workspace.acting import edit, write

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.document import Document, WorkspacePath
    from filepact.workspace.workspace import Workspace

EDITOR = "zed 1"
AGENT = "tester"


def typed_in(workspace: Workspace, name: str, text: str) -> WorkspacePath:
    """Somebody has a file open and has typed in it."""
    buffer = workspace.editors.open(
        name, workspace.editors.stored(name).text, client=EDITOR, version=1
    )
    workspace.editors.buffers.change(
        workspace.editors.locate(name).path, [Typed(text)], client=EDITOR, version=2
    )
    return buffer.path


def given(workspace: Workspace, session: Session) -> Document:
    """A change that an editor was given to write, and that was taken back."""
    receipt = edit(workspace, session, "a.txt", "one", "two")
    told = workspace.editors.stored("a.txt")
    workspace.undo(session, receipt.operation)
    return told


# -- the disk and an editor, brought together -------------------------------------------------


@pytest.mark.parametrize("saves", [True, False])
def test_what_was_typed_and_what_others_wrote_become_one_text_in_both(
    workspace: Workspace, root: Path, saves: bool
) -> None:
    (root / "a.txt").write_text("one\n\ntwo\n\nthree\n")
    path = typed_in(workspace, "a.txt", "1\n\ntwo\n\nthree\n")
    (root / "a.txt").write_text("one\n\ntwo\n\n3\n")
    over = workspace.editors.stored("a.txt")
    meant = workspace.editors.merge(path, agent=AGENT)
    assert meant.text == "1\n\ntwo\n\n3\n"
    assert (root / "a.txt").read_text() == over.text, "the editor is told first"
    if saves:
        (root / "a.txt").write_text(meant.text)
    left = workspace.editors.check_saved(meant, client=EDITOR, over=over)
    assert left.document == meant
    assert (root / "a.txt").read_text() == meant.text
    (done,) = workspace.log()
    assert done.session.actor.name == EDITOR
    workspace.undo(Session("person", Actor("person", "tester")), done.id)
    assert (root / "a.txt").read_text() == over.text


def test_what_was_typed_in_lines_that_others_wrote_is_shown_and_both_stay(
    workspace: Workspace, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    path = typed_in(workspace, "a.txt", "typed\n")
    (root / "a.txt").write_text("written\n")
    with pytest.raises(StaleFileError) as caught:
        workspace.editors.merge(path, agent=AGENT)
    assert "-one\n+typed\n" in caught.value.message
    assert caught.value.details["path"] == "a.txt"
    assert (root / "a.txt").read_text() == "written\n"
    assert workspace.editors.buffers.get(workspace.editors.locate("a.txt").path).text == "typed\n"


def test_what_was_typed_in_a_secret_is_not_shown(workspace: Workspace, root: Path) -> None:
    (root / "id_rsa").write_text("KEY\n")
    path = typed_in(workspace, "id_rsa", "TYPED\n")
    (root / "id_rsa").write_text("OTHER\n")
    with pytest.raises(StaleFileError) as caught:
        workspace.editors.merge(path, agent=AGENT)
    report = caught.value.report()
    assert not [word for word in ("KEY", "TYPED", "OTHER") if word in report]
    assert (root / "id_rsa").read_text() == "OTHER\n"


def test_what_nobody_can_know_is_not_brought_together(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    path = typed_in(workspace, "a.txt", "typed\n")
    workspace.editors.buffers.doubt(workspace.editors.locate("a.txt").path, client=EDITOR)
    with pytest.raises(EncodingUnsafeError):
        workspace.editors.merge(path, agent=AGENT)
    assert (root / "a.txt").read_text() == "one\n"


def test_a_removed_file_in_which_nobody_typed_does_not_come_back(
    workspace: Workspace, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    path = typed_in(workspace, "a.txt", "one\n")
    (root / "a.txt").unlink()
    assert workspace.editors.merge(path, agent=AGENT) is None
    assert not (root / "a.txt").exists()
    assert workspace.log() == ()


# -- what an editor makes of what it was given ------------------------------------------------


def test_what_an_editor_makes_of_a_file_is_looked_at(
    workspace: Workspace, session: Session, root: Path
) -> None:
    made = str(write(workspace, session, "a.txt", "one\ntwo\n").operation)
    meant = workspace.editors.stored("a.txt")

    def left() -> str:
        return workspace.editors.check_saved(meant, client=EDITOR, operation=made).kind

    assert left() == "same"
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert left() == "form"
    assert (root / "a.txt").read_bytes() == b"one\ntwo\n"
    assert len(workspace.log()) == 1, "the same text is nobody's change"
    (root / "a.txt").write_text("one\ntwo, formatted\n")
    assert left() == "text"
    assert [one.session.actor.name for one in workspace.log()] == [EDITOR, "tester"]
    workspace.undo(session, workspace.log()[0].id)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    (root / "a.txt").unlink()
    assert left() == "gone"
    assert not (root / "a.txt").exists()


def test_a_change_that_an_editor_makes_after_it_was_taken_back_is_in_the_log(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    told = given(workspace, session)
    assert (root / "a.txt").read_text() == "one\n"
    (root / "a.txt").write_bytes(told.data)
    late = workspace.editors.record_late_save(told)
    assert (late.tool, late.session.id) == (PAST_THE_DOORS, session.id)
    assert workspace.log()[0].id == late.id
    assert workspace.editors.record_late_save(told) is None, "it is known by now"
    workspace.undo(session, late.id)
    assert (root / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("now", ["one\n", "by hand\n", None])
def test_what_is_not_the_change_that_was_taken_back_is_not_blamed_on_the_session(
    workspace: Workspace, session: Session, root: Path, now: str | None
) -> None:
    (root / "a.txt").write_text("one\n")
    told = given(workspace, session)
    if now is None:
        (root / "a.txt").unlink()
    else:
        (root / "a.txt").write_text(now)
    before = workspace.log()
    assert workspace.editors.record_late_save(told) is None
    assert workspace.log() == before


def test_of_a_file_that_no_change_was_made_of_nothing_is_owned_up_to(
    workspace: Workspace, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    assert workspace.editors.record_late_save(workspace.editors.stored("a.txt")) is None
    assert workspace.log() == ()


def test_a_change_is_owned_up_to_among_others_of_the_same_operation(
    workspace: Workspace, session: Session, root: Path
) -> None:
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("one\n")
    with workspace.draft(session, "patch_apply") as draft:
        for target in draft.open_all(["a.txt", "b.txt"]):
            draft.write(target, "two\n")
        receipt = workspace.submit(draft, "write both")
    told = workspace.editors.stored("b.txt")
    workspace.undo(session, receipt.operation)
    (root / "b.txt").write_bytes(told.data)
    late = workspace.editors.record_late_save(told)
    assert [change.path.path for change in late.changes.changes] == ["b.txt"]
    assert (root / "a.txt").read_text() == "one\n"


# -- what an agent writes by itself, and sends as well ----------------------------------------


def test_a_merged_text_that_its_author_writes_over_with_what_it_sent_is_put_back(
    workspace: Workspace, session: Session, root: Path
) -> None:
    sent = "one\ntwo\n"
    operation = str(write(workspace, session, "a.txt", "one\ntyped\ntwo\n").operation)
    (meant,) = workspace.editors.written(operation)

    def keep() -> str:
        kept = workspace.editors.restore_merge(meant, sent, session, client=EDITOR)
        return "" if kept is None else kept.text

    (root / "a.txt").write_text(sent)
    assert keep() == meant.text
    assert (root / "a.txt").read_text() == meant.text
    assert [one.session.actor.name for one in workspace.log()] == [EDITOR, "tester", "tester"]
    assert keep() == meant.text
    # Anything else is nobody's second writing.
    (root / "a.txt").write_text("other\n")
    assert keep() == "other\n"
    (root / "a.txt").unlink()
    assert keep() == ""
    assert len(workspace.log()) == 3


def test_what_came_before_a_text_written_past_the_doors_is_known_while_it_is_the_last(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    workspace.external.snapshot()
    (root / "a.txt").write_text("two\n")
    now = workspace.editors.stored("a.txt")
    assert workspace.editors.before_external(now) is None
    assert workspace.external.detect_in(now.path, session).operation is not None
    assert workspace.external.detect_in(now.path, session).operation is None
    assert workspace.editors.before_external(now).text == "one\n"
    workspace.external.mark()
    (root / "a.txt").write_text("three\n")
    # What the person did before the mark has not been told apart yet.
    assert workspace.external.detect_in(now.path, session).operation is None
    write(workspace, session, "a.txt", "four\n")
    assert workspace.editors.before_external(workspace.editors.stored("a.txt")) is None

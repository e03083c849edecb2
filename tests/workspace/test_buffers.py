"""Unsaved text of editors: read by every tool, saved before a change, told what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import Document, Revision, RootId, WorkspacePath
from filepact.domain.operation import BY_EDITOR, Actor, Approval
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    ProposalChangedError,
    StaleFileError,
)
from filepact.text.edit import Edit, EditList
from filepact.text.lines import Position
from filepact.text.query import Query
from filepact.workspace.buffers import Buffers, Typed
from filepact.workspace.documents import merge_unsaved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace

EDITOR = "zed 1"


def show(workspace: Workspace, session: Session, name: str, text: str, version: int = 1) -> None:
    """An editor opens a file that it has read, and has typed in it."""
    workspace.editors.open(name, text, client=EDITOR, version=version)


def there(workspace: Workspace, name: str) -> WorkspacePath:
    return workspace.editors.locate(name).path


def replace_once(workspace: Workspace, session: Session, name: str, old: str, new: str):
    with workspace.draft(session, "edit_file") as draft:
        target = draft.open_existing(name)

        def make(text: str) -> EditList:
            at = text.index(old)
            return EditList((Edit(at, at + len(old), new),))

        draft.edit(target, make)
        return workspace.submit(draft, f"edit {name}")


def test_what_is_read_is_what_the_person_sees(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("saved\n")
    show(workspace, session, "a.txt", "typed\n")
    reader = workspace.reader(session)
    assert reader.window("a.txt", first=0, count=9).lines == ("typed",)
    assert reader.document("a.txt").data == b"typed\n"
    workspace.editors.buffers.close(there(workspace, "a.txt"), client=EDITOR)
    assert reader.document("a.txt").data == b"saved\n"


def test_a_file_that_only_an_editor_has_can_be_read_and_edited(
    workspace: Workspace, session: Session, root: Path
) -> None:
    show(workspace, session, "new/a.txt", "one\ntwo\n")
    assert workspace.reader(session).document("new/a.txt").text == "one\ntwo\n"
    replace_once(workspace, session, "new/a.txt", "two", "three")
    assert (root / "new/a.txt").read_text() == "one\nthree\n"
    workspace.undo(session, dry_run=False)
    assert (root / "new/a.txt").read_text() == "one\ntwo\n"


def test_a_search_finds_what_was_typed_and_not_what_the_disk_has(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("saved\n")
    show(workspace, session, "a.txt", "typed\n")
    reader = workspace.reader(session)

    def found(pattern: str) -> int:
        query = Query.compile(pattern)
        return reader.grep(
            ".", query, glob="**", limit=9, offset=0, context=0, mode="content"
        ).matches

    assert found("typed") == 1
    assert found("saved") == 0


def test_a_change_saves_the_unsaved_text_first_and_undo_leaves_it(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    show(workspace, session, "a.txt", "one\ntwo\nthree\n")
    replace_once(workspace, session, "a.txt", "one", "ONE")
    assert (root / "a.txt").read_bytes() == b"ONE\r\ntwo\r\nthree\r\n"
    newest, editors = workspace.log()
    assert (newest.session.actor.name, editors.session.actor.name) == ("tester", EDITOR)
    assert editors.summary == "unsaved text of a.txt"
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


def test_undo_without_an_id_never_takes_back_what_a_person_typed(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.txt").write_text("one\n")
    replace_once(workspace, session, "b.txt", "one", "1")
    show(workspace, session, "a.txt", "one\ntwo\ntyped\n")
    replace_once(workspace, session, "a.txt", "one", "1")
    workspace.undo(session)
    assert (root / "a.txt").read_text() == "one\ntwo\ntyped\n"
    workspace.undo(session)
    assert (root / "b.txt").read_text() == "one\n"
    with pytest.raises(NoChangeError):
        workspace.undo(session)
    assert (root / "a.txt").read_text() == "one\ntwo\ntyped\n"
    typed = next(one for one in workspace.log() if one.tool == BY_EDITOR)
    workspace.undo(session, typed.id)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_an_editor_is_told_the_fewest_edits_once_and_in_its_own_line_ends(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    show(workspace, session, "a.txt", "one\ntwo\nthree\n", version=7)
    replace_once(workspace, session, "a.txt", "two", "2")
    (told,) = workspace.editors.buffers.take(EDITOR)
    assert (told.version, told.text) == (7, "one\n2\nthree\n")
    assert told.edits.apply("one\ntwo\nthree\n") == told.text
    assert [edit.start for edit in told.edits.edits] == [4]
    assert workspace.editors.buffers.take(EDITOR) == ()
    buffer = workspace.editors.buffers.get(there(workspace, "a.txt"))
    assert (buffer.text, buffer.version) == (told.text, 8)


def test_what_others_wrote_to_the_disk_is_merged_with_what_was_typed(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n\ntwo\n\nthree\n")
    show(workspace, session, "a.txt", "one\n\ntwo\n\nthree\n")
    workspace.editors.buffers.change(
        there(workspace, "a.txt"),
        [Typed("1", Position(0, 0), Position(0, 3))],
        client=EDITOR,
        version=2,
    )
    (root / "a.txt").write_text("one\n\ntwo\n\n3\n")
    receipt = replace_once(workspace, session, "a.txt", "two", "2")
    assert "both were merged" in receipt.notes[0]
    assert (root / "a.txt").read_text() == "1\n\n2\n\n3\n"


def test_what_an_editor_showed_counts_as_saved_once_it_was_merged_into_a_disk_that_had_changed(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n\ntwo\n\nthree\n")
    show(workspace, session, "a.txt", "one\n\ntwo\n\nthree\n")
    place, typed = there(workspace, "a.txt"), "1\n\ntwo\n\nthree\n"
    workspace.editors.buffers.change(place, [Typed(typed)], client=EDITOR, version=2)
    (root / "a.txt").write_text("one\n\ntwo\n\n3\n")
    replace_once(workspace, session, "a.txt", "two", "2")
    agreed = workspace.editors.buffers.history(place).agreed
    assert agreed is not None
    assert agreed.text == typed


def test_what_was_typed_over_what_others_wrote_is_refused(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    show(workspace, session, "a.txt", "one\ntwo\n")
    workspace.editors.buffers.change(
        there(workspace, "a.txt"), [Typed("mine\ntwo\n")], client=EDITOR, version=2
    )
    (root / "a.txt").write_text("theirs\ntwo\n")
    with pytest.raises(StaleFileError) as caught:
        replace_once(workspace, session, "a.txt", "two", "2")
    assert "unsaved" in caught.value.message
    assert (root / "a.txt").read_text() == "theirs\ntwo\n"


def test_a_buffer_in_which_nobody_typed_is_older_than_a_disk_that_changed(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    show(workspace, session, "a.txt", "one\ntwo\n")
    (root / "a.txt").write_bytes(b"one\r\nmore\r\n")
    assert workspace.reader(session).document("a.txt").text == "one\r\nmore\r\n"
    query = Query.compile("two")
    found = workspace.reader(session).grep(
        ".", query, glob="**", limit=9, offset=0, context=0, mode="content"
    )
    assert not found.matches
    replace_once(workspace, session, "a.txt", "one", "1")
    assert (root / "a.txt").read_bytes() == b"1\r\nmore\r\n"
    # Nothing of it was anybody's unsaved text, and the editor is told what it lacks.
    assert [one.tool for one in workspace.log()] == ["edit_file"]
    assert [one.text for one in workspace.editors.buffers.take(EDITOR)] == ["1\nmore\n"]
    (root / "a.txt").unlink()
    with pytest.raises(NotFoundError):
        workspace.reader(session).document("a.txt")


def test_a_preview_saves_nothing_and_an_approval_merges_what_was_typed_since(
    workspace: Workspace, open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    cautious = open_here(mode="preview")
    (root / "a.txt").write_text("one\n\ntwo\n")
    show(cautious, session, "a.txt", "one\n\ntwo\n\nthree\n")
    receipt = replace_once(cautious, session, "a.txt", "one", "1")
    assert receipt.status == "pending"
    assert (root / "a.txt").read_text() == "one\n\ntwo\n"
    cautious.editors.buffers.change(
        there(cautious, "a.txt"), [Typed("one\n\ntwo\n\n3\n")], client=EDITOR, version=2
    )
    person = Approval(Actor("person", "ann"))
    with pytest.raises(ProposalChangedError) as caught:
        cautious.approve(receipt.operation, person)
    assert (root / "a.txt").read_text() == "one\n\ntwo\n"
    cautious.approve(str(caught.value.details["proposal"]), person)
    assert (root / "a.txt").read_text() == "1\n\ntwo\n\n3\n"


def test_text_that_the_encoding_cannot_hold_is_said_and_the_disk_is_left_alone(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"caf\xe9\nx\n")
    show(workspace, session, "a.txt", "caf\xe9\nx \u20ac\n")
    with pytest.raises(FilepactError) as caught:
        replace_once(workspace, session, "a.txt", "x", "y")
    assert caught.value.code == "ENCODING_UNSAFE"
    assert (root / "a.txt").read_bytes() == b"caf\xe9\nx\n"


def test_a_file_that_is_no_longer_text_is_no_longer_in_a_buffer(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    show(workspace, session, "a.txt", "one\n")
    with workspace.draft(session, "t") as draft:
        draft.put(draft.open("a.txt"), b"\0\1")
        workspace.submit(draft, "binary")
    assert workspace.editors.buffers.get(there(workspace, "a.txt")) is None


def test_changes_come_in_order_and_from_the_editor_that_has_the_file(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    show(workspace, session, "a.txt", "one\n", version=5)
    with pytest.raises(StaleFileError):
        workspace.editors.buffers.change(
            there(workspace, "a.txt"), [Typed("two\n")], client=EDITOR, version=5
        )
    with pytest.raises(InvalidParamsError):
        workspace.editors.buffers.change(
            there(workspace, "a.txt"), [Typed("two\n")], client="other", version=6
        )
    backwards = Typed("x", Position(0, 2), Position(0, 1))
    with pytest.raises(InvalidParamsError):
        workspace.editors.buffers.change(
            there(workspace, "a.txt"), [Typed("two\n"), backwards], client=EDITOR, version=6
        )
    assert workspace.editors.buffers.get(there(workspace, "a.txt")).text == "one\n"
    typed = [Typed("\U0001f600", Position(0, 0), Position(0, 1)), Typed("!", Position(0, 2))]
    workspace.editors.buffers.change(there(workspace, "a.txt"), typed, client=EDITOR, version=6)
    assert workspace.editors.buffers.get(there(workspace, "a.txt")).text == "\U0001f600!ne\n"
    workspace.editors.buffers.close(there(workspace, "a.txt"), client="other")
    assert workspace.editors.buffers.get(there(workspace, "a.txt")) is not None
    workspace.editors.buffers.close(there(workspace, "a.txt"), client=EDITOR)
    assert workspace.editors.buffers.get(there(workspace, "a.txt")) is None


def test_what_was_saved_by_the_editor_is_the_new_ground(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    show(workspace, session, "a.txt", "one\n")
    workspace.editors.buffers.change(
        there(workspace, "a.txt"), [Typed("two\n")], client=EDITOR, version=2
    )
    (root / "a.txt").write_text("two\n")
    workspace.editors.buffers.saved(
        there(workspace, "a.txt"), client=EDITOR, base=workspace.editors.stored("a.txt")
    )
    replace_once(workspace, session, "a.txt", "two", "three")
    assert (root / "a.txt").read_text() == "three\n"
    assert len(workspace.log()) == 1, "nothing was unsaved"


@pytest.mark.parametrize("unsaved", [False, True])
@pytest.mark.parametrize("line", [0, 4])
def test_what_is_typed_while_a_change_is_made_refuses_it_in_the_same_lines_alone(
    workspace: Workspace, session: Session, root: Path, unsaved: bool, line: int
) -> None:
    (root / "a.txt").write_text("one\n\ntwo\n\nthree\n")
    start = "one\n\n2\n\nthree\n" if unsaved else "one\n\ntwo\n\nthree\n"
    show(workspace, session, "a.txt", start)
    typed = Typed("typed", Position(line, 0), Position(line, 5 if line else 3))
    with workspace.draft(session, "t") as draft:
        draft.write(draft.open("a.txt"), start.replace("three", "3"))
        workspace.editors.buffers.change(
            there(workspace, "a.txt"), [typed], client=EDITOR, version=2
        )
        if line:
            with pytest.raises(StaleFileError):
                workspace.submit(draft, "t")
            assert "two" in (root / "a.txt").read_text()
            return
        workspace.submit(draft, "t")
    written = start.replace("three", "3")
    assert (root / "a.txt").read_text() == written
    (told,) = workspace.editors.buffers.take(EDITOR)
    assert (told.version, told.text) == (2, written.replace("one", "typed"))
    # Taken back, what was typed stays.
    workspace.undo(session, workspace.log()[0].id, dry_run=False)
    (told,) = workspace.editors.buffers.take(EDITOR)
    assert told.text == start.replace("one", "typed")


def test_a_secret_cannot_be_held_open(workspace: Workspace, session: Session, root: Path) -> None:
    (root / "id_rsa").write_text("KEY\n")
    show(workspace, session, "id_rsa", "KEY\n")
    with pytest.raises(FilepactError) as caught:
        workspace.reader(session).document("id_rsa")
    assert caught.value.code == "PATH_BLOCKED"


FILE = WorkspacePath(RootId("/r"), "a.txt")


def stored(text: str) -> Document:
    return Document(FILE, text.encode(), Revision.of(text.encode(), 0o644))


def test_what_was_saved_of_a_text_is_no_other_change_beside_what_was_typed_on() -> None:
    """Another program has saved it meanwhile; the lines that both have are not put in twice."""
    base, saved, typed = "i\na\n\nd\nf\n\nk\n", "i\na\n\nd\nf\nn\nk\n", "i\na\n\nd\n\nf\nn\nk\n"
    both = merge_unsaved(stored(saved), stored(base), typed)
    assert both is not None
    assert both.text == typed
    beside = merge_unsaved(stored(base.replace("k", "m")), stored(base), typed)
    assert beside is not None
    assert beside.text == typed.replace("k", "m")


@pytest.mark.parametrize(
    ("typed", "shown", "told"),
    [
        (Typed("0\n", Position(0, 0)), "0\none\ntwo\n3\n", 1),
        (Typed("mine", Position(2, 0), Position(2, 5)), "one\ntwo\nmine\n", 0),
    ],
)
def test_what_is_typed_while_a_file_is_written_stays(typed: Typed, shown: str, told: int) -> None:
    buffers = Buffers()
    before = stored("one\ntwo\nthree\n")
    buffer = buffers.open(FILE, before.text, client=EDITOR, version=1, base=before)
    buffers.change(FILE, [typed], client=EDITOR, version=2)
    buffers.deliver(stored("one\ntwo\n3\n"), (buffer, before))
    now = buffers.get(FILE)
    assert now is not None
    assert now.text == shown
    deliveries = buffers.take(EDITOR)
    assert [(one.version, one.text) for one in deliveries] == [(2, shown)] * told
    buffers.deliver(stored("other\n"))
    assert buffers.get(FILE).text == "other\n"


def test_an_editor_can_leave_the_edits_and_keeps_what_it_has(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n\ntwo\n")
    show(workspace, session, "a.txt", "1\n\ntwo\n")
    replace_once(workspace, session, "a.txt", "two", "2")
    (told,) = workspace.editors.buffers.take(EDITOR)
    workspace.editors.buffers.refused(told)
    # It has nothing that the disk never had, so what is read is the disk.
    assert workspace.editors.buffers.get(there(workspace, "a.txt")).text == "1\n\ntwo\n"
    assert workspace.reader(session).document("a.txt").text == "1\n\n2\n"
    assert (root / "a.txt").read_text() == "1\n\n2\n"
    workspace.editors.buffers.refused(told)
    # What it has started from the file before, so both come together again.
    receipt = replace_once(workspace, session, "a.txt", "1", "one")
    assert "both were merged" in receipt.notes[0]
    assert (root / "a.txt").read_text() == "one\n\n2\n"


def test_edits_are_told_as_lines_and_columns_that_can_be_made_one_after_the_other(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("\U0001f600 one\n\ntwo\n")
    show(workspace, session, "a.txt", "\U0001f600 one\n\ntwo\n")
    with workspace.draft(session, "t") as draft:
        draft.write(draft.open("a.txt"), "\U0001f600 1\n\n2\n")
        workspace.submit(draft, "t")
    (told,) = workspace.editors.buffers.take(EDITOR)
    for unit in ("utf-8", "utf-16", "utf-32"):
        buffers = Buffers()
        buffers.open(FILE, told.before.text, client=EDITOR, version=1, base=None)
        buffers.change(FILE, told.typed(unit), client=EDITOR, version=2, unit=unit)
        assert buffers.get(FILE).text == told.text
    assert told.typed()[0].start == Position(2, 0)

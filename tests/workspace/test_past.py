"""What a session can do about its own changes: look at them, take them back, hear of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from filepact.workspace.pending import SessionLimit
from tests.workspace.acting import edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ann"))


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(FilepactError) as caught:
        action()
    return caught.value.code


def test_a_session_lists_its_own_operations_and_no_others(
    workspace: Workspace, session: Session, other: Session
) -> None:
    first = write(workspace, session, "a.txt", "a\n")
    write(workspace, other, "b.txt", "b\n")
    second = write(workspace, session, "c.txt", "c\n")
    log = workspace.past(session).log(10)
    assert [one.id for one in log] == [second.operation, first.operation]
    assert [one.id for one in workspace.past(session).log(1)] == [second.operation]


def test_what_others_did_can_be_neither_shown_nor_taken_back(
    workspace: Workspace, session: Session, other: Session, root: Path
) -> None:
    theirs = str(write(workspace, other, "b.txt", "b\n").operation)
    past = workspace.past(session)
    assert code_of(lambda: past.change(theirs)) == "NOT_FOUND"
    assert code_of(lambda: past.undo(theirs, dry_run=False)) == "NOT_FOUND"
    assert code_of(lambda: past.undo(None, dry_run=False)) == "NO_CHANGE"
    assert code_of(lambda: past.change("cnothing")) == "NOT_FOUND"
    assert (root / "b.txt").read_text() == "b\n"


def test_the_newest_own_change_is_undone_and_redone(
    workspace: Workspace, session: Session, other: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "one\n")
    edit(workspace, session, "a.txt", "one", "two")
    write(workspace, other, "b.txt", "b\n")
    past = workspace.past(session)
    assert past.undo(None, dry_run=True).status == "preview"
    assert (root / "a.txt").read_text() == "two\n"
    assert past.undo(None, dry_run=False).status == "applied"
    assert (root / "a.txt").read_text() == "one\n"
    assert past.redo(None, dry_run=False).status == "applied"
    assert (root / "a.txt").read_text() == "two\n"
    assert (root / "b.txt").exists()


def test_an_own_undo_keeps_what_others_changed_since_or_refuses(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "1\n2\n3\n4\n5\n")
    change = edit(workspace, session, "a.txt", "1\n", "one\n").operation
    (root / "a.txt").write_text("one\n2\n3\n4\nby hand\n")
    past = workspace.past(session)
    past.undo(change, dry_run=False)
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\nby hand\n"
    change = edit(workspace, session, "a.txt", "1\n", "one\n").operation
    (root / "a.txt").write_text("mine\n2\n3\n4\nby hand\n")
    assert code_of(lambda: past.undo(change, dry_run=False)) == "STALE_FILE"
    assert (root / "a.txt").read_text() == "mine\n2\n3\n4\nby hand\n"


def test_what_a_person_has_undone_is_not_brought_back(
    workspace: Workspace, session: Session, root: Path
) -> None:
    change = write(workspace, session, "a.txt", "a\n").operation
    workspace.undo(Session("p", PERSON.actor), change, dry_run=False)
    assert code_of(lambda: workspace.past(session).redo(change, dry_run=False)) == "NO_CHANGE"
    assert not (root / "a.txt").exists()


def test_in_preview_mode_an_undo_waits_as_any_change_does(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    preview = open_here("preview")
    change = str(write(preview, session, "a.txt", "a\n").operation)
    preview.approve(change, PERSON)
    past = preview.past(session)
    receipt = past.undo(change, dry_run=False)
    assert receipt.status == "pending"
    assert (root / "a.txt").exists()
    assert code_of(lambda: read(preview, session, "a.txt")) == "NOT_FOUND"
    assert code_of(lambda: past.undo(change, dry_run=False)) == "NO_CHANGE"
    preview.approve(str(receipt.operation), PERSON)
    assert not (root / "a.txt").exists()
    assert preview.operation(change).undone_by == receipt.operation


def test_an_undo_of_a_file_that_rules_ask_about_waits(
    workspace: Workspace, session: Session, root: Path
) -> None:
    change = str(write(workspace, session, "conftest.py", "x = 1\n").operation)
    workspace.approve(change, PERSON)
    assert workspace.past(session).undo(change, dry_run=False).status == "pending"
    assert (root / "conftest.py").exists()


def test_the_diff_of_a_file_that_may_not_be_read_is_hidden(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / ".env").write_text("TOKEN=SECRET\n")
    change = str(write(workspace, session, ".env", "TOKEN=mine\n").operation)
    workspace.approve(change, PERSON)
    past = workspace.past(session)
    assert "SECRET" not in past.diff(past.change(change))
    (root / ".env").write_text("TOKEN=OTHER_SECRET\n")
    with pytest.raises(FilepactError) as caught:
        past.undo(change, dry_run=False)
    assert "SECRET" not in caught.value.report()


def test_a_proposal_is_taken_back_by_its_author(
    open_here: Callable[..., Workspace], session: Session, other: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    preview = open_here("preview")
    change = str(edit(preview, session, "a.txt", "one", "two").operation)
    assert code_of(lambda: preview.past(other).undo(change, dry_run=False)) == "NOT_FOUND"
    past = preview.past(session)
    assert past.undo(change, dry_run=True).status == "preview"
    assert len(preview.pending()) == 1
    assert past.undo(change, dry_run=False).status == "withdrawn"
    assert preview.pending() == ()
    assert read(preview, session, "a.txt") == "one\n"
    assert preview.events(session) == ()
    assert code_of(lambda: past.undo(change, dry_run=False)) == "NO_CHANGE"


def test_status_tells_what_waits_and_what_was_decided(
    open_here: Callable[..., Workspace], session: Session, other: Session
) -> None:
    preview = open_here("preview")
    refused = str(write(preview, session, "a.txt", "a\n").operation)
    done = str(write(preview, session, "b.txt", "b\n").operation)
    waits = str(write(preview, session, "c.txt", "c\n").operation)
    write(preview, other, "d.txt", "d\n")
    preview.reject(refused, Approval(PERSON.actor, "no"))
    preview.approve(done, PERSON)
    found = {one.id: (one.state, one.reason) for one in preview.past(session).status()}
    assert found == {
        waits: ("proposed", ""),
        done: ("committed", ""),
        refused: ("rejected", "no"),
    }


def test_waiting_for_a_decision_ends_with_it(
    open_here: Callable[..., Workspace], session: Session
) -> None:
    preview, person = open_here("preview"), open_here()
    change = str(write(preview, session, "a.txt", "a\n").operation)
    asked = threading.Event()

    def not_cancelled() -> bool:
        asked.set()
        return False

    def decide() -> None:
        asked.wait(30)
        person.reject(change, PERSON)

    thread = threading.Thread(target=decide)
    thread.start()
    (one,) = preview.past(session, cancelled=not_cancelled).status(wait=50)
    thread.join()
    assert one.state == "rejected"


def test_who_waits_for_the_decision_on_one_change_does_not_hear_of_another(
    open_here: Callable[..., Workspace], session: Session
) -> None:
    preview, person = open_here("preview"), open_here()
    first, second = (str(write(preview, session, name, "a\n").operation) for name in ("a", "b"))
    to_decide, looks = [second, first], 0

    def not_cancelled() -> bool:
        nonlocal looks
        looks += 1
        if to_decide:
            person.reject(to_decide.pop(0), PERSON)
        return False

    past = preview.past(session, cancelled=not_cancelled)
    past.status(50, first)
    assert not to_decide
    decided = looks
    past.status(50, first)  # It is decided.
    assert looks == decided


def test_waiting_for_a_decision_ends_when_nobody_wants_to_know(
    open_here: Callable[..., Workspace], session: Session
) -> None:
    preview = open_here("preview")
    write(preview, session, "a.txt", "a\n")
    (one,) = preview.past(session, cancelled=lambda: True).status(wait=50)
    assert one.state == "proposed"


def test_where_nothing_waits_nobody_does(workspace: Workspace, session: Session) -> None:
    def never_asked() -> bool:
        raise AssertionError

    assert workspace.past(session, cancelled=never_asked).status(wait=50) == ()


def test_no_more_sessions_wait_at_once_than_there_is_room_for(
    open_here: Callable[..., Workspace], session: Session
) -> None:
    patience, asked = SessionLimit(most=1), []

    def over() -> bool:
        # Whoever comes while another waits is answered before it has asked anything.
        patience.wait(50, lambda: asked.append("over"), lambda: asked.append("cancelled"))
        return True

    patience.wait(50, over, lambda: False)
    assert asked == []
    patience.wait(0, lambda: asked.append("over"), lambda: False)
    assert asked == ["over"], "the room is free again, and the time has passed at once"


def test_without_an_id_the_newest_change_is_shown(
    workspace: Workspace, session: Session, other: Session
) -> None:
    past = workspace.past(session)
    assert code_of(lambda: past.change(None)) == "NOT_FOUND"
    write(workspace, session, "a.txt", "a\n")
    newest = write(workspace, session, "b.txt", "b\n").operation
    write(workspace, other, "c.txt", "c\n")
    assert past.change(None).id == newest


def test_undo_goes_back_one_change_at_a_time_and_redo_forward(
    workspace: Workspace, session: Session, root: Path
) -> None:
    def now() -> str:
        return (root / "a.txt").read_text()

    for text in ("one\n", "two\n", "three\n"):
        write(workspace, session, "a.txt", text)
    past = workspace.past(session)
    assert code_of(lambda: past.redo(None, dry_run=False)) == "NO_CHANGE"
    past.undo(None, dry_run=False)
    past.undo(None, dry_run=False)
    assert now() == "one\n"
    past.redo(None, dry_run=False)
    assert now() == "two\n"
    past.undo(None, dry_run=False)
    assert now() == "one\n"
    past.redo(None, dry_run=False)
    past.redo(None, dry_run=False)
    assert now() == "three\n"
    assert code_of(lambda: past.redo(None, dry_run=False)) == "NO_CHANGE"
    past.undo(None, dry_run=False)
    write(workspace, session, "b.txt", "b\n")
    assert code_of(lambda: past.redo(None, dry_run=False)) == "NO_CHANGE"
    assert now() == "two\n", "a new change ends what could be brought back"

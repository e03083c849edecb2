"""What a session has proposed and nobody has decided: its own view of the files, and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from filepact.text.query import Query
from tests.workspace.acting import delete, edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ann"))


@pytest.fixture
def preview(open_here: Callable[..., Workspace], root: Path) -> Workspace:
    (root / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    return open_here("preview")


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(FilepactError) as caught:
        action()
    return caught.value.code


def hits(workspace: Workspace, session: Session, pattern: str, path: str = ".") -> list[str]:
    found = workspace.reader(session).grep(
        path,
        Query.compile(pattern),
        glob="**/*",
        limit=50,
        offset=0,
        context=0,
        mode="content",
    )
    return [file.path for file in found.files]


def names(workspace: Workspace, session: Session, pattern: str = "**/*") -> list[str]:
    return [*workspace.reader(session).find(".", pattern, limit=50).paths]


def tree(workspace: Workspace, session: Session, path: str = ".", depth: int = 3) -> str:
    reader = workspace.reader(session)
    return reader.tree(path, depth=depth, include_files=True, pattern=None, budget=100).text


# -- its own view -----------------------------------------------------------------------------


def test_a_session_reads_what_it_has_proposed_and_others_read_the_disk(
    preview: Workspace, session: Session, other: Session, root: Path
) -> None:
    edit(preview, session, "a.py", "return 1", "return 10")
    assert "return 10" in read(preview, session, "a.py")
    assert "return 10" not in read(preview, other, "a.py")
    assert "return 10" not in (root / "a.py").read_text()


def test_a_search_finds_what_was_proposed_for_the_session_alone(
    preview: Workspace, session: Session, other: Session
) -> None:
    edit(preview, session, "a.py", "return 1", "return 10")
    assert hits(preview, session, "return 10") == ["a.py"]
    assert hits(preview, session, "return 1$") == []
    assert hits(preview, other, "return 10") == []


def test_a_proposed_file_is_found_drawn_searched_and_edited(
    preview: Workspace, session: Session, other: Session, root: Path
) -> None:
    write(preview, session, "pkg/new.py", "value = 1\n")
    assert "pkg/new.py" in names(preview, session)
    assert "new.py" in tree(preview, session)
    assert "new.py" in tree(preview, session, "pkg")
    assert "new.py" not in tree(preview, session, depth=1)
    assert hits(preview, session, "value = 1") == ["pkg/new.py"]
    assert hits(preview, session, "value = 1", "pkg") == ["pkg/new.py"]
    assert hits(preview, session, "value = 1", "pkg/new.py") == ["pkg/new.py"]
    edit(preview, session, "pkg/new.py", "1", "2")
    assert read(preview, session, "pkg/new.py") == "value = 2\n"
    assert "pkg/new.py" not in names(preview, other)
    assert "new.py" not in tree(preview, other)
    assert code_of(lambda: read(preview, other, "pkg/new.py")) == "NOT_FOUND"
    assert not (root / "pkg").exists()


def test_a_file_that_is_to_go_is_gone_for_the_session_that_proposed_it(
    preview: Workspace, session: Session, other: Session
) -> None:
    delete(preview, session, "a.py")
    assert code_of(lambda: read(preview, session, "a.py")) == "NOT_FOUND"
    assert code_of(lambda: edit(preview, session, "a.py", "1", "2")) == "NOT_FOUND"
    assert code_of(lambda: hits(preview, session, "return", "a.py")) == "NOT_FOUND"
    assert names(preview, session) == []
    assert "a.py" not in tree(preview, session)
    assert hits(preview, session, "return") == []
    assert names(preview, other) == ["a.py"]
    assert "return 1" in read(preview, other, "a.py")


def test_an_answer_names_the_proposal_that_it_shows(preview: Workspace, session: Session) -> None:
    receipt = edit(preview, session, "a.py", "return 1", "return 10")
    reader = preview.reader(session)
    assert reader.marked("text") == "text"
    reader.window("a.py", first=0, count=10)
    assert str(receipt.operation) in reader.marked("text")


def test_an_answer_says_that_the_disk_has_moved_meanwhile(
    preview: Workspace, session: Session, root: Path
) -> None:
    edit(preview, session, "a.py", "return 1", "return 10")
    quiet, told = preview.reader(session), preview.reader(session)
    quiet.window("a.py", first=0, count=10)
    before = quiet.marked("")
    (root / "a.py").write_text("# by hand\n" + (root / "a.py").read_text())
    text = told.window("a.py", first=0, count=10).lines
    assert "# by hand" not in text
    assert told.marked("") != before


# -- one proposal that grows --------------------------------------------------------------------


def test_the_next_change_of_a_file_grows_its_proposal(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = edit(preview, session, "a.py", "return 1", "return 10")
    second = edit(preview, session, "a.py", "return 10", "return 11")
    (waiting,) = preview.pending()
    assert waiting.id == second.operation != first.operation
    assert "-    return 1\n+    return 11\n" in preview.diff(waiting)
    preview.approve(waiting.id, PERSON)
    assert (root / "a.py").read_text().count("return 11") == 1


def test_the_receipt_shows_all_that_waits_under_its_id_and_what_was_new(
    preview: Workspace, session: Session
) -> None:
    edit(preview, session, "a.py", "return 1", "return 10")
    receipt = edit(preview, session, "a.py", "return 2", "return 20")
    assert "return 10" in receipt.diff
    assert "+    return 20" in receipt.diff
    assert "+    return 20" in receipt.step
    assert "+    return 10" not in receipt.step


def test_what_was_superseded_can_be_neither_approved_nor_rejected(
    preview: Workspace, session: Session, root: Path
) -> None:
    before = (root / "a.py").read_text()
    first = edit(preview, session, "a.py", "return 1", "return 10")
    second = edit(preview, session, "a.py", "return 10", "return 11")
    for decide in (preview.approve, preview.reject):
        with pytest.raises(FilepactError) as caught:
            decide(str(first.operation), PERSON)
        assert caught.value.code == "NO_CHANGE"
        assert caught.value.details["superseded_by"] == second.operation
    assert (root / "a.py").read_text() == before
    gone = preview.proposal(str(first.operation))
    assert (gone.state, gone.superseded_by) == ("superseded", second.operation)


def test_an_equal_change_is_answered_with_the_proposal_that_waits(
    preview: Workspace, session: Session
) -> None:
    first = edit(preview, session, "a.py", "return 2\n", "return 20\n")
    again = edit(preview, session, "a.py", "return 2\n", "return 20\n")
    assert (again.operation, again.status) == (first.operation, "pending")
    text = read(preview, session, "a.py")
    assert write(preview, session, "a.py", text).operation == first.operation
    assert len(preview.pending()) == 1


def test_an_equal_change_is_known_behind_later_ones(preview: Workspace, session: Session) -> None:
    edit(preview, session, "a.py", "return 2\n", "return 20\n")
    second = edit(preview, session, "a.py", "def one():", "def uno():")
    again = edit(preview, session, "a.py", "return 2\n", "return 20\n")
    assert again.operation == second.operation
    assert read(preview, session, "a.py").count("return 20") == 1


def test_a_dry_run_goes_on_with_what_waits_and_stores_nothing(
    preview: Workspace, session: Session
) -> None:
    first = edit(preview, session, "a.py", "return 1", "return 10")
    receipt = write(preview, session, "a.py", "return 100\n", dry_run=True)
    assert receipt.status == "preview"
    assert [one.id for one in preview.pending()] == [first.operation]


def test_a_change_back_to_what_it_started_from_takes_the_proposal_back(
    preview: Workspace, session: Session, root: Path
) -> None:
    before = (root / "a.py").read_text()
    edit(preview, session, "a.py", "return 1", "return 10")
    receipt = write(preview, session, "a.py", before)
    assert receipt.status == "withdrawn"
    assert preview.pending() == ()
    assert read(preview, session, "a.py") == before
    assert preview.events(session) == ()


def test_a_change_of_one_file_grows_a_proposal_over_several(
    preview: Workspace, session: Session, root: Path
) -> None:
    with preview.draft(session, "patch_apply") as draft:
        one, two = draft.open_all(["b.py", "c.py"])
        draft.write(one, "b = 1\n")
        draft.write(two, "c = 1\n")
        preview.submit(draft, "create both")
    edit(preview, session, "c.py", "c = 1", "c = 2")
    (waiting,) = preview.pending()
    assert {path.path for path in waiting.changes.paths} == {"b.py", "c.py"}
    preview.approve(waiting.id, PERSON)
    assert (root / "b.py").read_text() == "b = 1\n"
    assert (root / "c.py").read_text() == "c = 2\n"


def test_a_change_of_files_of_two_proposals_makes_them_one(
    preview: Workspace, session: Session, root: Path
) -> None:
    write(preview, session, "b.py", "b = 1\n")
    write(preview, session, "c.py", "c = 1\n")
    assert len(preview.pending()) == 2
    with preview.draft(session, "patch_apply") as draft:
        one, two = draft.open_all(["b.py", "c.py"])
        draft.write(one, "b = 2\n")
        draft.write(two, "c = 2\n")
        preview.submit(draft, "change both")
    (waiting,) = preview.pending()
    preview.approve(waiting.id, PERSON)
    assert (root / "b.py").read_text() + (root / "c.py").read_text() == "b = 2\nc = 2\n"


def test_a_file_that_is_proposed_and_given_up_again_leaves_nothing(
    preview: Workspace, session: Session
) -> None:
    write(preview, session, "new.py", "x\n")
    receipt = delete(preview, session, "new.py")
    assert receipt.status == "withdrawn"
    assert preview.pending() == ()


def test_a_file_that_is_to_go_can_be_written_anew(
    preview: Workspace, session: Session, root: Path
) -> None:
    delete(preview, session, "a.py")
    write(preview, session, "a.py", "fresh\n")
    (waiting,) = preview.pending()
    preview.approve(waiting.id, PERSON)
    assert (root / "a.py").read_text() == "fresh\n"


def test_what_builds_on_a_change_that_was_asked_about_waits_with_it(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "plain.txt").write_text("plain\n")
    with workspace.draft(session, "patch_apply") as draft:
        one, two = draft.open_all(["plain.txt", "conftest.py"])
        draft.write(one, "changed\n")
        draft.write(two, "x = 1\n")
        assert workspace.submit(draft, "both").status == "pending"
    receipt = edit(workspace, session, "plain.txt", "changed", "changed twice")
    assert receipt.status == "pending"
    assert (root / "plain.txt").read_text() == "plain\n"
    assert write(workspace, session, "free.txt", "x\n").status == "applied"


# -- when a person has decided ------------------------------------------------------------------


def test_after_an_approval_the_files_are_what_they_are_and_the_session_hears_of_it(
    preview: Workspace, session: Session, root: Path
) -> None:
    receipt = edit(preview, session, "a.py", "return 1", "return 10")
    preview.approve(str(receipt.operation), PERSON)
    assert read(preview, session, "a.py") == (root / "a.py").read_text()
    (said,) = preview.events(session)
    assert str(receipt.operation) in said.text
    reader = preview.reader(session)
    reader.window("a.py", first=0, count=10)
    assert reader.marked("text") == "text"


def test_after_a_rejection_the_session_knows_what_it_had_read_before(
    preview: Workspace, session: Session, root: Path
) -> None:
    before = read(preview, session, "a.py")
    receipt = edit(preview, session, "a.py", "return 1", "return 10")
    preview.reject(str(receipt.operation), PERSON)
    assert read(preview, session, "a.py") == before
    (root / "a.py").write_text(before + "# by hand\n")
    # Made from what was read before: the person's line stays, and what was refused stays out.
    write(preview, session, "a.py", before.replace("return 2", "return 20"))
    (waiting,) = preview.pending()
    preview.approve(waiting.id, PERSON)
    assert (root / "a.py").read_text() == before.replace("return 2", "return 20") + "# by hand\n"


def test_only_the_newest_of_a_grown_proposal_is_news(preview: Workspace, session: Session) -> None:
    edit(preview, session, "a.py", "return 1", "return 10")
    second = edit(preview, session, "a.py", "return 10", "return 11")
    assert preview.events(session) == ()
    preview.reject(str(second.operation), Approval(PERSON.actor, "no"))
    (said,) = preview.events(session)
    assert str(second.operation) in said.text


def test_lines_changed_on_the_disk_meanwhile_are_kept_by_an_approval(
    preview: Workspace, session: Session, root: Path
) -> None:
    edit(preview, session, "a.py", "return 1", "return 10")
    (root / "a.py").write_text("# by hand\n" + (root / "a.py").read_text())
    receipt = edit(preview, session, "a.py", "return 10", "return 11")
    assert code_of(lambda: preview.approve(str(receipt.operation), PERSON)) == "PROPOSAL_CHANGED"
    (fitted,) = preview.pending()
    assert "by hand" not in preview.diff(fitted).split("@@")[0]
    preview.approve(fitted.id, PERSON)
    text = (root / "a.py").read_text()
    assert text.startswith("# by hand\n")
    assert "return 11" in text


def test_the_same_lines_changed_on_the_disk_meanwhile_are_refused_at_the_approval(
    preview: Workspace, session: Session, root: Path
) -> None:
    receipt = edit(preview, session, "a.py", "return 1", "return 10")
    by_hand = (root / "a.py").read_text().replace("return 1", "return 7")
    (root / "a.py").write_text(by_hand)
    assert code_of(lambda: preview.approve(str(receipt.operation), PERSON)) == "STALE_FILE"
    assert (root / "a.py").read_text() == by_hand
    assert len(preview.pending()) == 1


def test_a_change_that_builds_on_what_was_refused_meanwhile_is_refused(
    preview: Workspace, session: Session, open_here: Callable[..., Workspace]
) -> None:
    first = edit(preview, session, "a.py", "return 1", "return 10")
    person = open_here()
    with preview.draft(session, "write_file") as draft:
        target = draft.open("a.py")
        draft.write(target, "all new\n")
        person.reject(str(first.operation), PERSON)
        assert code_of(lambda: preview.submit(draft, "write a.py")) == "STALE_FILE"
    assert preview.pending() == ()


def test_what_waits_is_known_to_a_later_process_of_the_same_session(
    preview: Workspace, session: Session, open_here: Callable[..., Workspace]
) -> None:
    receipt = edit(preview, session, "a.py", "return 1", "return 10")
    preview.close()
    later = open_here("preview")
    assert "return 10" in read(later, session, "a.py")
    grown = edit(later, session, "a.py", "return 10", "return 11")
    assert [one.id for one in later.pending()] == [grown.operation]
    assert grown.operation != receipt.operation


def test_a_proposed_file_in_another_encoding_is_searched_as_it_will_be(
    preview: Workspace, session: Session, root: Path
) -> None:
    (root / "wide.txt").write_bytes("eins\nzwei\n".encode("utf-16"))
    edit(preview, session, "wide.txt", "zwei", "drei")
    assert hits(preview, session, "drei") == ["wide.txt"]
    assert read(preview, session, "wide.txt") == "eins\ndrei\n"


def test_a_file_that_may_not_be_read_has_one_proposal_whatever_is_sent_for_it(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / ".env").write_text("TOKEN=right\n")
    first = write(workspace, session, ".env", "TOKEN=wrong\n")
    assert write(workspace, session, ".env", "TOKEN=wrong\n").operation == first.operation
    wrong = write(workspace, session, ".env", "TOKEN=another\n")
    right = write(workspace, session, ".env", "TOKEN=right\n")
    assert (wrong.status, right.status) == ("pending", "pending")
    assert len(workspace.pending()) == 1


def test_a_later_session_of_the_same_conversation_goes_on_with_what_waits(
    preview: Workspace, session: Session, open_here: Callable[..., Workspace]
) -> None:
    mine = Session("s1", session.actor, "host talk")
    receipt = edit(preview, mine, "a.py", "return 1", "return 10")
    preview.close()
    later = open_here("preview")
    resumed = Session("s7", session.actor, "host talk")
    assert "return 10" in read(later, resumed, "a.py")
    assert str(receipt.operation) in {one.id for one in later.past(resumed).status()}
    strangers = (
        Session("s8", session.actor, "another talk"),
        Session("s9", session.actor, ""),
        Session("s10", session.actor),
        Session("s11", Actor("agent", "another"), "host talk"),
    )
    for stranger in strangers:
        assert "return 10" not in read(later, stranger, "a.py")
        assert later.past(stranger).status() == ()
    grown = edit(later, resumed, "a.py", "return 10", "return 11")
    assert [one.id for one in later.pending()] == [grown.operation]
    later.reject(str(grown.operation), PERSON)
    assert len(later.events(resumed)) == 1


def test_a_later_session_of_the_same_conversation_takes_its_own_changes_back(
    workspace: Workspace, session: Session, root: Path
) -> None:
    change = write(workspace, Session("s1", session.actor, "host talk"), "a.txt", "a\n").operation
    stranger = workspace.past(Session("s8", session.actor, "another talk"))
    assert code_of(lambda: stranger.undo(change, dry_run=False)) == "NOT_FOUND"
    resumed = workspace.past(Session("s7", session.actor, "host talk"))
    assert resumed.undo(None, dry_run=False).status == "applied"
    assert not (root / "a.txt").exists()

"""The review: what was shown is what is done, in whatever window, and what moves is shown again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import WorkspacePath
from filepact.domain.operation import Actor, ChangeId, Session
from filepact.errors import InvalidParamsError, NoChangeError, NotFoundError, StaleFileError
from filepact_cli.review import Review, in_groups
from tests.workspace.acting import delete, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = (
    OLD.replace("line 3\n", "third\n").replace("line 20\n", "").replace("line 38\n", "line 38\nx\n")
)
TURN = Session("s3", Actor("agent", "tester", "1.0"), turn="t1")


@pytest.fixture
def preview(open_here: Callable[..., Workspace], root: Path) -> Workspace:
    (root / "a.txt").write_text(OLD)
    (root / "b.txt").write_text(OLD)
    return open_here("preview")


@pytest.fixture
def review(preview: Workspace) -> Review:
    return Review(preview, Session("cli", Actor("person", "ann")))


def propose(review: Review, session: Session, path: str = "a.txt", text: str = NEW) -> ChangeId:
    return ChangeId(str(write(review.workspace, session, path, text).operation))


def told(review: Review, session: Session) -> str:
    return " ".join(one.text for one in review.workspace.events(session))


def test_what_waits_is_grouped_by_agent_session_and_turn(
    review: Review, session: Session, other: Session
) -> None:
    ids = [
        propose(review, session),
        propose(review, other, "b.txt"),
        propose(review, TURN, "c.txt", "new\n"),
        propose(review, session, "d.txt", "new\n"),
    ]
    groups = in_groups(review.waiting())
    assert [[one.id for one in group.entries] for group in groups] == [
        [ids[0], ids[3]],
        [ids[2]],
        [ids[1]],
    ]
    assert [group.turn for group in groups] == ["", "t1", ""]


def test_what_a_rule_asks_about_comes_first_in_its_turn(review: Review, session: Session) -> None:
    plain = [propose(review, session), propose(review, session, "d.txt", "new\n")]
    asked = propose(review, session, "AGENTS.md", "# Be kind\n")
    (group,) = in_groups(review.waiting())
    assert [(one.id, one.asked) for one in group.entries] == [
        (asked, True),
        *((one, False) for one in plain),
    ]


def test_a_proposal_is_shown_with_files_hunks_and_the_rule_that_wants_a_word(
    review: Review, session: Session
) -> None:
    item = review.item(propose(review, session))
    assert [(one.shown, [hunk.number for hunk in one.hunks]) for one in item.files] == [
        ("a.txt", [1, 2, 3])
    ]
    assert item.entry.status == "fresh"
    assert [one.name for one in item.rules] == ["preview mode"]
    odd = review.item(propose(review, session, "e.txt", "a\u202eb\n"))
    assert [(one.name, bool(one.why)) for one in odd.rules] == [("hidden characters", True)]
    assert odd.files[0].hunks[0].kind == "create"


def test_accepted_hunks_are_done_and_the_reason_reaches_the_agent(
    review: Review, session: Session, root: Path
) -> None:
    item = review.item(propose(review, session))
    result = review.decide(item, {1}, {2, 3}, "only the first")
    assert result.receipt is not None
    assert result.waits is None
    assert (root / "a.txt").read_text() == OLD.replace("line 3\n", "third\n")
    assert "only the first" in told(review, session)


def test_hunks_can_be_split_into_runs_of_changed_lines(
    review: Review, session: Session, root: Path
) -> None:
    text = OLD.replace("line 3\n", "third\n").replace("line 5\n", "fifth\n")
    change_id = propose(review, session, text=text)
    assert len(review.item(change_id).hunks) == 1
    item = review.item(change_id, fine=True)
    assert len(item.hunks) == 2
    result = review.decide(item, {2})
    assert (root / "a.txt").read_text() == OLD.replace("line 5\n", "fifth\n")
    assert [one.id for one in review.waiting()] == [result.waits]


def test_where_others_have_changed_the_file_elsewhere_nothing_is_done_and_it_is_shown_again(
    review: Review, session: Session, root: Path
) -> None:
    item = review.item(propose(review, session))
    (root / "a.txt").write_text(OLD.replace("line 12\n", "a person's\n"))
    (entry,) = review.waiting()
    assert entry.status == "moved"
    assert "a person's" in entry.moved[0].since
    result = review.renew(item.entry.id)
    assert result.moved
    item = review.item(str(result.waits))
    assert not review.renew(item.entry.id).moved
    (root / "a.txt").write_text(OLD.replace("line 14\n", "a person's\n"))
    result = review.decide(item, {1}, {2, 3})
    assert result.moved
    assert result.receipt is None
    assert "third" not in (root / "a.txt").read_text()
    again = review.item(str(result.waits))
    assert again.since == result.since
    assert "a person's" in again.since
    assert review.decide(again, {1, 2, 3}).receipt is not None
    assert (root / "a.txt").read_text() == NEW.replace("line 14\n", "a person's\n")


def test_where_the_same_lines_were_changed_it_says_so_and_waits(
    review: Review, session: Session, root: Path
) -> None:
    item = review.item(propose(review, session))
    (root / "a.txt").write_text(OLD.replace("line 3\n", "a person's\n"))
    (entry,) = review.waiting()
    assert entry.status == "stale"
    assert "a person's" in entry.moved[0].said
    with pytest.raises(StaleFileError):
        review.decide(item, {1, 2, 3})
    assert [one.id for one in review.waiting()] == [entry.id]
    (failed,) = review.accept_all([entry.id])
    assert failed.error is not None
    assert failed.error.code == "STALE_FILE"


def test_a_file_that_is_as_it_should_be_has_moved_and_fits(
    review: Review, session: Session, root: Path
) -> None:
    propose(review, session)
    (root / "a.txt").write_text(NEW)
    (entry,) = review.waiting()
    assert entry.status == "moved"
    assert entry.moved[0].said
    assert not entry.moved[0].since


def test_of_several_each_is_done_or_told_why_not(
    review: Review, session: Session, other: Session, root: Path
) -> None:
    ids = [propose(review, session), propose(review, other, "a.txt", OLD + "end\n")]
    done, again = review.accept_all(ids)
    assert done.receipt is not None
    assert again.moved
    assert (root / "a.txt").read_text() == NEW
    (refused, twice) = review.reject_all([ChangeId(str(again.waits)), ids[0]], "not now")
    assert refused.error is None
    assert twice.error is not None
    assert "not now" in told(review, other)
    assert not review.waiting()


def test_what_was_done_is_undone_and_redone(review: Review, session: Session, root: Path) -> None:
    with pytest.raises(NoChangeError):
        review.undo()
    item = review.item(propose(review, session))
    review.decide(item, {1, 2, 3})
    done = review.last_done
    review.undo()
    assert (root / "a.txt").read_text() == OLD
    review.redo()
    assert (root / "a.txt").read_text() == NEW
    assert review.last_done == done
    review.undo()
    assert (root / "a.txt").read_text() == OLD
    review.decide(review.item(propose(review, session, "b.txt")), {1}, {2, 3})
    with pytest.raises(NoChangeError):
        review.redo()


def test_an_edited_text_is_accepted_and_what_was_proposed_is_kept(
    review: Review, session: Session, root: Path
) -> None:
    first = propose(review, session)
    path = WorkspacePath(review.workspace.guard.roots[0].path, "a.txt")
    assert review.proposed_text(first, path) == NEW
    edited = review.edit(first, {path: NEW.replace("third", "3rd")}, "a number")
    review.decide(review.item(edited), {1, 2, 3})
    assert (root / "a.txt").read_text() == NEW.replace("third", "3rd")
    assert "third" in review.workspace.diff(review.workspace.proposal(first))
    assert "a number" in told(review, session)


def test_what_goes_back_is_decided_about_as_a_whole(
    review: Review, session: Session, root: Path
) -> None:
    review.decide(review.item(propose(review, session)), {1, 2, 3})
    review.workspace.past(session).undo(str(review.last_done), dry_run=False)
    (entry,) = review.waiting()
    item = review.item(entry.id)
    assert not item.divisible
    assert len(item.hunks) == 3
    with pytest.raises(InvalidParamsError):
        review.decide(item, {1}, {2})
    assert review.decide(item, {1, 2, 3}).receipt is not None
    assert (root / "a.txt").read_text() == OLD


def test_a_renamed_file_is_one_hunk_with_its_old_name(
    review: Review, session: Session, root: Path
) -> None:
    with review.workspace.draft(session, "move") as draft:
        old, new = draft.open_all(["a.txt", "z.txt"], there=["a.txt"], itself=["a.txt"])
        draft.move(old, new, None)
        receipt = review.workspace.submit(draft, "move")
    item = review.item(str(receipt.operation))
    assert [(one.kind, one.origin and one.origin.path) for one in item.hunks] == [
        ("rename", "a.txt")
    ]
    (root / "a.txt").write_text(OLD + "more\n")
    (file,) = review.item(str(receipt.operation)).files
    assert file.moved is not None


def test_waiting_ends_when_something_new_waits_or_a_file_moves(
    review: Review, session: Session, root: Path, open_here: Callable[..., Workspace]
) -> None:
    seen = review.waiting()
    another = Review(open_here("preview"), review.session)
    threading.Timer(0.1, propose, (another, session)).start()
    seen = review.wait(seen, 60)
    assert len(seen) == 1
    changed = OLD.replace("line 12\n", "other\n")
    threading.Timer(0.1, (root / "a.txt").write_text, (changed,)).start()
    seen = review.wait(seen, 60)
    assert [one.status for one in seen] == ["moved"]
    assert review.wait(seen, 0) == seen
    ended = threading.Event()
    ended.set()
    assert review.wait(seen, 60, ended) == seen


def test_hunks_are_kept_for_a_few_proposals_only(review: Review, session: Session) -> None:
    ids = [propose(review, session, f"{number}.txt", "x\n") for number in range(10)]
    hunks = [review.item(one).hunks[0].diff for one in ids]
    assert [review.item(one).hunks[0].diff for one in ids] == hunks
    assert len(review._parts) < len(ids)
    assert review.item(ids[-1]) == review.item(ids[-1])


def test_servers_are_asked_where_there_are_some(review: Review, session: Session) -> None:
    change_id = propose(review, session)
    assert not review.diagnostics(change_id)
    asks = Review(review.workspace, review.session, lambda proposal: f"of {proposal.id}")
    assert asks.diagnostics(change_id) == f"of {change_id}"


def test_a_removed_file_has_no_text_to_edit(review: Review, session: Session) -> None:
    receipt = delete(review.workspace, session, "a.txt")
    item = review.item(str(receipt.operation))
    assert review.proposed_text(item.entry.id, item.files[0].path) is None
    review.reject_all([item.entry.id])
    with pytest.raises(NoChangeError):
        review.item(str(receipt.operation))


def test_what_is_decided_about_while_it_is_looked_at_is_left_out(
    review: Review, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_id = propose(review, session)
    (root / "a.txt").write_text(OLD.replace("line 12\n", "a person's\n"))
    stale = review._proposals()
    review.reject_all([change_id])
    # What was listed a moment before: the store has given up its texts.
    monkeypatch.setattr(review, "_proposals", lambda: stale)
    assert review.waiting() == ()
    monkeypatch.undo()
    broken = propose(review, session, "b.txt")
    monkeypatch.setattr(
        review.workspace.approving, "moved_files", lambda _one: review.workspace.proposal("c000")
    )
    with pytest.raises(NotFoundError):
        review.waiting()
    assert review.workspace.proposal(broken).state == "proposed"

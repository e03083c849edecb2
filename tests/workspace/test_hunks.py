"""Hunks of a proposal: what of it a person accepts is done, to the byte, and the rest stays what it was."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import WorkspacePath
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    ProposalChangedError,
)
from filepact.text.edit import Edit, EditList
from tests.workspace.acting import read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ann"))
WHY = Approval(Actor("person", "ann"), "keep the old name")
OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = (
    OLD.replace("line 3\n", "third\n").replace("line 20\n", "").replace("line 38\n", "line 38\nx\n")
)


@pytest.fixture
def preview(open_here: Callable[..., Workspace], root: Path) -> Workspace:
    (root / "a.txt").write_text(OLD)
    return open_here("preview")


def propose(workspace: Workspace, session: Session, path: str = "a.txt", text: str = NEW) -> str:
    return str(write(workspace, session, path, text).operation)


def accept(workspace: Workspace, change_id: str, numbers: set[int]) -> Receipt:
    receipt, _waits = workspace.approving.decide(change_id, PERSON, accept=numbers)
    assert receipt is not None
    return receipt


def emptied(text: str) -> EditList:
    return EditList((Edit(0, len(text), ""),))


def texts(workspace: Workspace, session: Session) -> list[str]:
    return [one.text for one in workspace.events(session)]


def test_each_hunk_of_the_diff_has_a_number(preview: Workspace, session: Session) -> None:
    proposal = preview.proposal(propose(preview, session))
    found = preview.approving.hunks(proposal)
    assert [(one.number, one.added, one.removed) for one in found] == [
        (1, 1, 1),
        (2, 0, 1),
        (3, 1, 0),
    ]
    shown = preview.diff(proposal)
    assert shown.endswith("".join(one.diff for one in found))


def test_accepted_hunks_are_done_and_the_others_wait(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = propose(preview, session)
    receipt = accept(preview, first, {1, 3})
    assert receipt.status == "applied"
    some = OLD.replace("line 3\n", "third\n").replace("line 38\n", "line 38\nx\n")
    assert (root / "a.txt").read_text() == some
    (rest,) = preview.pending()
    assert (told := texts(preview, session))
    assert first in told[0]
    assert str(rest.id) in told[0]
    assert "hunks 1, 3 accepted" in told[0]
    with pytest.raises(NoChangeError):
        preview.approve(first, PERSON)
    # The author sees the file as if the rest were done.
    assert read(preview, session, "a.txt") == NEW
    preview.approve(rest.id, PERSON)
    assert (root / "a.txt").read_text() == NEW
    preview.undo(session)
    preview.undo(session, receipt.operation)
    assert (root / "a.txt").read_text() == OLD


def test_the_others_can_be_rejected_with_a_reason_that_reaches_the_author(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = propose(preview, session)
    preview.approving.decide(first, WHY, accept={2}, reject={1, 3})
    assert (root / "a.txt").read_text() == OLD.replace("line 20\n", "")
    assert not preview.pending()
    told = " ".join(texts(preview, session))
    assert "hunks 1, 3 rejected: keep the old name" in told


def test_hunks_can_be_rejected_and_nothing_is_done(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = propose(preview, session)
    assert preview.approving.decide(first, WHY, reject={2})[0] is None
    (left,) = preview.pending()
    assert (root / "a.txt").read_text() == OLD
    assert any("hunk 2 rejected" in one for one in texts(preview, session))
    preview.approve(left.id, PERSON)
    assert (root / "a.txt").read_text() == NEW.replace("line 19\n", "line 19\nline 20\n")


def test_all_hunks_are_the_proposal_itself(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = propose(preview, session)
    assert accept(preview, first, {1, 2, 3}).operation == first
    assert (root / "a.txt").read_text() == NEW


@pytest.mark.parametrize("numbers", [set(), {0}, {4}, {1, 99}])
def test_hunks_that_are_not_there_are_refused(
    preview: Workspace, session: Session, root: Path, numbers: set[int]
) -> None:
    first = propose(preview, session)
    with pytest.raises(InvalidParamsError):
        preview.approving.decide(first, PERSON, accept=numbers)
    with pytest.raises(InvalidParamsError):
        preview.approving.decide(first, PERSON, reject=numbers)
    with pytest.raises(InvalidParamsError):
        preview.approving.decide(first, PERSON, accept={1, 2}, reject={2, 3})
    assert [one.id for one in preview.pending()] == [first]
    assert (root / "a.txt").read_text() == OLD


def test_files_that_come_go_or_are_no_text_are_one_hunk_each(
    preview: Workspace, session: Session, root: Path
) -> None:
    (root / "gone.txt").write_text("gone\n")
    (root / "moved.txt").write_text("moved\n" * 30)
    (root / "wide.txt").write_bytes(OLD.encode("utf-16"))
    with preview.draft(session, "patch_apply") as draft:
        names = ["a.txt", "gone.txt", "moved.txt", "new.txt", "there.txt", "wide.txt"]
        one, gone, moved, new, there, wide = draft.open_all(names)
        draft.write(one, NEW)
        draft.write(wide, NEW)
        draft.write(new, "new\n" * 20)
        draft.write(there, "moved\n" * 30)
        for target in (gone, moved):
            draft.delete(target, emptied_by=emptied)
        receipt = preview.submit(draft, "all")
    found = preview.approving.hunks(preview.proposal(str(receipt.operation)))
    numbers = {(one.path.path, at): one.number for at, one in enumerate(found)}
    by_name = {path: number for (path, _at), number in numbers.items()}
    assert len(found) == 7
    assert set(by_name) == {"a.txt", "gone.txt", "new.txt", "there.txt", "wide.txt"}
    second = sorted(number for (path, _at), number in numbers.items() if path == "a.txt")[1]
    chosen = {second, by_name["new.txt"], by_name["there.txt"]}
    accept(preview, str(receipt.operation), chosen)
    assert (root / "a.txt").read_text() == OLD.replace("line 20\n", "")
    assert (root / "gone.txt").exists()
    assert (root / "new.txt").exists()
    assert not (root / "moved.txt").exists()
    assert (root / "there.txt").exists()
    assert (root / "wide.txt").read_bytes() == OLD.encode("utf-16")
    (rest,) = preview.pending()
    assert {one.path for one in rest.changes.paths} == {"a.txt", "gone.txt", "wide.txt"}
    preview.approve(rest.id, PERSON)
    assert (root / "wide.txt").read_bytes().decode("utf-16") == NEW
    assert not (root / "gone.txt").exists()


def test_an_undo_is_decided_about_as_a_whole(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text(OLD)
    auto = open_here()
    write(auto, session, "a.txt", NEW)
    preview = open_here("preview")
    receipt = preview.past(session).undo(None, dry_run=False)
    assert receipt.status == "pending"
    with pytest.raises(InvalidParamsError):
        accept(preview, str(receipt.operation), {1})


def test_a_file_that_has_moved_meanwhile_is_shown_again(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = propose(preview, session)
    (root / "a.txt").write_text("top\n" + OLD)
    with pytest.raises(ProposalChangedError) as caught:
        accept(preview, first, {1})
    assert (root / "a.txt").read_text() == "top\n" + OLD
    waiting = preview.pending()
    assert len(waiting) == 2
    preview.approve(str(caught.value.details["proposal"]), PERSON)
    assert (root / "a.txt").read_text() == "top\n" + OLD.replace("line 3\n", "third\n")


def test_a_person_may_change_the_text_before_accepting_it_and_both_are_kept(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = preview.proposal(propose(preview, session))
    path = first.changes.paths[0]
    edited = preview.approving.edit(first.id, {path: NEW.replace("third", "3rd")}, PERSON)
    assert (root / "a.txt").read_text() == OLD
    assert any("a person has changed it" in one for one in texts(preview, session))
    preview.approve(edited.id, PERSON)
    assert (root / "a.txt").read_text() == NEW.replace("third", "3rd")
    assert "+third" in preview.diff(preview.proposal(first.id))
    assert "+3rd" in preview.diff(preview.operation(edited.id))
    assert first.id in preview.operation(edited.id).summary


def test_an_edit_of_what_is_not_proposed_or_to_what_is_there_is_refused(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = preview.proposal(propose(preview, session))
    path = first.changes.paths[0]
    other = WorkspacePath(path.root, "other.txt")
    for wrong in ({other: "x"}, {path: OLD}):
        with pytest.raises(InvalidParamsError):
            preview.approving.edit(first.id, wrong, PERSON)
    (root / "gone.txt").write_text("x\n")
    with preview.draft(session, "patch_apply") as draft:
        (target,) = draft.open_all(["gone.txt"])
        draft.delete(target, emptied_by=emptied)
        removal = preview.proposal(str(preview.submit(draft, "remove").operation))
    with pytest.raises(InvalidParamsError):
        preview.approving.edit(removal.id, dict.fromkeys(removal.changes.paths, "x"), PERSON)


def test_whatever_is_chosen_is_done_to_the_byte_and_nothing_else(
    open_here: Callable[..., Workspace], root: Path
) -> None:
    preview = open_here("preview")
    for seed in range(60):
        dice = random.Random(seed)
        ends = dice.choice(["\n", "\r\n"])
        lines = [f"{dice.choice('abc')}{number}{ends}" for number in range(dice.randrange(1, 80))]
        old = "".join(lines)
        for _ in range(dice.randrange(1, 8)):
            at = dice.randrange(len(lines)) if lines else 0
            if lines and dice.random() < 0.5:
                del lines[at]
            else:
                lines.insert(at, f"new {dice.random()}{ends}")
        new = "".join(lines)
        name, session = f"f{seed}.txt", Session(f"s{seed}", Actor("agent", "tester"))
        file = root / name
        file.write_bytes(old.encode())
        if new == old:
            continue
        proposal = preview.proposal(propose(preview, session, name, new))
        hunks = preview.approving.hunks(proposal)
        chosen = {one.number for one in hunks if dice.random() < 0.5} or {1}
        moved = dice.random() < 0.2
        if moved:
            file.write_bytes(b"foreign\n" + old.encode())
        held = file.read_bytes()
        try:
            receipt = accept(preview, proposal.id, chosen)
        except FilepactError:
            assert moved, seed
            assert file.read_bytes() == held
        else:
            done = preview.operation(str(receipt.operation))
            accepted = [one.diff for one in hunks if one.number in chosen]
            body = f"\n{preview.diff(done)}"
            assert (body.count("\n+") - 1, body.count("\n-") - 1) == (
                sum(f"\n{one}".count("\n+") for one in accepted),
                sum(f"\n{one}".count("\n-") for one in accepted),
            ), seed
            for rest in preview.pending():
                preview.approve(rest.id, PERSON)
            assert file.read_bytes() == new.encode(), seed
        for left in preview.pending():
            preview.reject(left.id, PERSON)


def test_lines_that_are_shown_together_can_be_decided_about_apart(
    preview: Workspace, session: Session, root: Path
) -> None:
    new = OLD.replace("line 3\n", "third\n").replace("line 5\n", "fifth\n").replace("line 7\n", "")
    proposal = preview.proposal(propose(preview, session, text=new))
    assert len(preview.approving.hunks(proposal)) == 1
    assert len(preview.approving.hunks(proposal, fine=True)) == 3
    preview.approving.decide(proposal.id, WHY, accept={1}, reject={3}, fine=True)
    assert (root / "a.txt").read_text() == OLD.replace("line 3\n", "third\n")
    (rest,) = preview.pending()
    preview.approve(rest.id, PERSON)
    assert (root / "a.txt").read_text() == new.replace("line 6\n", "line 6\nline 7\n")


def test_files_that_have_moved_are_told(preview: Workspace, session: Session, root: Path) -> None:
    proposal = preview.proposal(propose(preview, session))
    assert preview.approving.moved(proposal) == ()
    (root / "a.txt").write_text("another\n")
    assert preview.approving.moved(proposal) == proposal.changes.paths
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to("elsewhere")
    assert preview.approving.moved(proposal) == proposal.changes.paths


def test_of_several_files_one_is_edited_and_a_whole_one_is_rejected_for_good(
    preview: Workspace, session: Session, root: Path
) -> None:
    with preview.draft(session, "patch_apply") as draft:
        one, new = draft.open_all(["a.txt", "new.txt"])
        draft.write(one, NEW)
        draft.write(new, "new\n")
        first = preview.proposal(str(preview.submit(draft, "both").operation))
    path = next(path for path in first.changes.paths if path.path == "a.txt")
    edited = preview.approving.edit(first.id, {path: NEW.replace("third", "3rd")}, PERSON)
    assert {one.path for one in edited.changes.paths} == {"a.txt", "new.txt"}
    found = preview.approving.hunks(preview.proposal(edited.id))
    (whole,) = (one.number for one in found if one.path.path == "new.txt")
    some = min(one.number for one in found if one.path.path == "a.txt")
    preview.approving.decide(edited.id, WHY, accept={some}, reject={whole})
    assert (root / "a.txt").read_text() == OLD.replace("line 3\n", "3rd\n")
    assert not (root / "new.txt").exists()
    (rest,) = preview.pending()
    assert {one.path for one in rest.changes.paths} == {"a.txt"}
    # What has been decided about has no hunks any more.
    assert preview.approving.hunks(preview.proposal(edited.id)) == ()


def test_what_is_done_of_a_part_says_of_how_many_files_it_is(
    preview: Workspace, session: Session, root: Path
) -> None:
    with preview.draft(session, "patch_apply") as draft:
        for target in draft.open_all(["b.txt", "c.txt", "e/d.txt"]):
            draft.write(target, "x\n")
        first = str(preview.submit(draft, "three files").operation)
    receipt = accept(preview, first, {3})
    assert "1 of 3" in receipt.summary
    assert "1 of 3" in preview.operation(str(receipt.operation)).summary
    (rest,) = preview.pending()
    assert "2 of 3" in rest.summary
    assert sorted(one.name for one in root.iterdir()) == ["a.txt", "e"]


def test_all_hunks_can_be_rejected_one_by_one(
    preview: Workspace, session: Session, root: Path
) -> None:
    first = propose(preview, session)
    receipt, waits = preview.approving.decide(first, WHY, reject={1, 2, 3})
    assert (receipt, waits) == (None, None)
    assert preview.pending() == ()
    assert (root / "a.txt").read_text() == OLD

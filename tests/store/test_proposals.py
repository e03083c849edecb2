"""Proposals that wait for a person, and named places in the journal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import RootId, WorkspacePath
from filepact.domain.operation import Actor, Approval, ChangeId, Checkpoint
from filepact.errors import FilepactError
from tests.store.making import OTHER, ROOT, change, contents, do, operation, proposal

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.operation import Proposal
    from filepact.store.sql import SqlStore
    from filepact.workspace.journal import JournalStore
    from tests.store.conftest import Reopen

ADA = Actor("person", "ada")


def refused(act: Callable[[], object]) -> FilepactError:
    with pytest.raises(FilepactError) as caught:
        act()
    return caught.value


@pytest.fixture
def waiting(store: JournalStore) -> Proposal:
    wanted = proposal(change("a.txt", b"old", b"new"), kind="undo", target="cx", rule="preview")
    store.propose(wanted, contents(b"old", b"new"))
    return wanted


def test_a_proposal_comes_back_as_it_was_after_a_restart(
    waiting: Proposal, store: JournalStore, reopen: Reopen
) -> None:
    store.close()
    again = reopen()
    assert again.proposal(waiting.id) == waiting
    assert again.proposal(waiting.id[:6]) == waiting
    assert again.content(waiting.changes.changes[0].after.content) == b"new"
    assert again.last_seq() == 0
    assert again.operations() == ()
    again.close()


def test_proposals_are_listed_by_state_and_root_oldest_first(
    waiting: Proposal, store: JournalStore
) -> None:
    second = proposal(change("b", None, b"2", root=OTHER), change("b", None, b"2"))
    store.propose(second, contents(b"2"))
    third = proposal(change("c", None, b"2", root=OTHER))
    store.propose(third, {})
    assert store.proposals() == (waiting, second, third)
    assert store.proposals(root=ROOT) == (waiting, second)
    assert store.proposals(root=OTHER) == (second, third)
    store.reject([second.id], Approval(ADA, "no"))
    assert store.proposals(root=OTHER) == (third,)
    assert store.proposals(state="rejected") == (replace(second, state="rejected", reason="no"),)


def test_an_id_is_proposed_once(waiting: Proposal, store: JournalStore) -> None:
    done = do(store, None, b"1", path="b")
    assert refused(lambda: store.propose(waiting, {})).code == "INVALID_PARAMS"
    taken = replace(waiting, id=done.id)
    assert refused(lambda: store.propose(taken, {})).code == "INVALID_PARAMS"
    assert len(store.proposals()) == 1


def test_beginning_a_proposal_commits_it_and_uses_it_up(
    waiting: Proposal, store: JournalStore
) -> None:
    wanted = operation(*waiting.changes.changes, id=waiting.id, approved_by="ada")
    store.begin(wanted, {})
    assert store.proposal(waiting.id).state == "committed"
    assert store.proposals() == ()
    store.finish(waiting.id, state="applied")
    assert refused(lambda: store.begin(wanted, {})).code == "NO_CHANGE"
    assert refused(lambda: store.reject([waiting.id], Approval(ADA))).code == "NO_CHANGE"
    assert store.proposal(waiting.id).state == "committed"


def test_what_was_rolled_back_waits_again_and_its_next_attempt_takes_the_place_of_the_first(
    waiting: Proposal, store: JournalStore
) -> None:
    wanted = operation(*waiting.changes.changes, id=waiting.id, approved_by="ada")
    store.begin(wanted, {})
    store.finish(waiting.id, state="rolled_back", note="the disk was full")
    assert store.proposals() == (waiting,)
    assert store.proposal(waiting.id).decided_by == ""
    assert store.operation(waiting.id).note == "the disk was full"
    second = store.begin(wanted, {})
    store.finish(waiting.id, state="applied")
    (done,) = store.operations()
    assert (done.id, done.seq, done.state, done.note) == (waiting.id, second.seq, "applied", "")
    # A note that comes late, for the attempt that was rolled back, opens nothing again.
    store.finish(waiting.id, state="rolled_back")
    assert store.proposals() == ()


def test_a_proposal_is_begun_as_what_it_is_and_as_nothing_else(
    waiting: Proposal, store: JournalStore
) -> None:
    (shown,) = waiting.changes.changes
    for other in (
        change("a.txt", b"old", b"newer"),
        change("b.txt", b"old", b"new"),
        change("a.txt", b"older", b"new"),
        change("a.txt", None, b"new"),
        replace(shown, after=replace(shown.after, mode=0o755)),
    ):
        data = contents(b"old", b"new", b"newer", b"older")
        with pytest.raises(ValueError):
            store.begin(operation(other, id=waiting.id), data)
    assert store.proposals() == (waiting,)
    assert store.last_seq() == 0


def test_a_beginning_that_fails_leaves_the_proposal_waiting(
    waiting: Proposal, store: JournalStore
) -> None:
    with pytest.raises(ValueError):
        store.begin(operation(change("z", None, b"not given"), id=waiting.id), {})
    assert store.proposal(waiting.id).state == "proposed"


@pytest.mark.parametrize(("reason", "said"), [("too bold", "ada: too bold"), ("", "by ada")])
def test_what_a_person_rejected_cannot_be_begun(
    waiting: Proposal, store: JournalStore, reason: str, said: str
) -> None:
    store.reject([waiting.id], Approval(ADA, reason))
    assert store.proposal(waiting.id).reason == reason
    error = refused(lambda: store.begin(operation(*waiting.changes.changes, id=waiting.id), {}))
    assert error.code == "USER_DENIED"
    assert error.message.endswith(said)
    assert store.last_seq() == 0
    assert refused(lambda: store.reject([waiting.id], Approval(ADA))).code == "NO_CHANGE"


def test_rejecting_what_is_not_there_is_not_found(store: JournalStore) -> None:
    error = refused(lambda: store.reject([ChangeId("cnone")], Approval(ADA)))
    assert error.code == "NOT_FOUND"


def test_a_beginning_of_several_ids_names_them(store: JournalStore) -> None:
    for name in ("cq1", "cq2"):
        store.propose(proposal(change("a", None, b"1"), id=ChangeId(name)), contents(b"1"))
    error = refused(lambda: store.proposal("cq"))
    assert error.code == "INVALID_PARAMS"
    assert "cq1, cq2" in error.message


def test_what_is_known_of_a_folder_goes_to_where_it_lies_now(store: SqlStore) -> None:
    below, new = RootId(f"{ROOT}/sub"), RootId("/mnt/moved")
    first = do(store, None, b"1")
    inner = do(store, None, b"1", root=below)
    apart = do(store, None, b"1", root=OTHER)
    store.add_checkpoint(Checkpoint("start", ROOT, 1, 1.5))
    waits = proposal(change("a.txt", b"1", b"2"))
    store.propose(waits, contents(b"1", b"2"))
    second = do(store, b"1", b"2", root=new)
    assert store.move_root(ROOT, new) == 2
    assert {*store.roots()} == {new, f"{new}/sub", OTHER}
    assert [one.id for one in store.operations(root=new)] == [second.id, first.id]
    assert store.operation(inner.id).changes.paths == (
        WorkspacePath(RootId(f"{new}/sub"), "a.txt"),
    )
    assert store.operation(apart.id) == apart
    assert [one.seq for one in store.checkpoints(new)] == [1]
    assert [one.id for one in store.proposals(root=new)] == [waits.id]
    assert refused(lambda: store.move_root(ROOT, new)).code == "NOT_FOUND"
    store.add_checkpoint(Checkpoint("start", OTHER, 2, 1.5))
    assert refused(lambda: store.move_root(OTHER, new)).code == "INVALID_PARAMS"
    assert store.operation(apart.id) == apart


def test_checkpoints_are_kept_by_root_and_name(store: JournalStore, reopen: Reopen) -> None:
    early = Checkpoint("before", ROOT, 0, 1.5)
    late = Checkpoint("after", ROOT, 3, 2.5)
    other = Checkpoint("before", OTHER, 2, 2.0)
    for one in (late, early, other):
        store.add_checkpoint(one)
    store.close()
    again = reopen()
    assert again.checkpoints(ROOT) == (early, late)
    assert again.checkpoint("before", OTHER) == other
    error = refused(lambda: again.add_checkpoint(replace(early, seq=9)))
    assert error.code == "INVALID_PARAMS"
    assert again.checkpoint("before", ROOT) == early
    error = refused(lambda: again.checkpoint("bef", ROOT))
    assert error.code == "NOT_FOUND"
    assert "'after'" in error.hint
    assert refused(lambda: again.checkpoint("x", ROOT.__class__("/no"))).code == "NOT_FOUND"
    again.close()


def test_a_proposal_takes_the_place_of_others_and_nobody_can_decide_about_these(
    waiting: Proposal, store: JournalStore
) -> None:
    later = proposal(change("a.txt", b"old", b"newer"))
    store.propose(later, contents(b"newer"), supersedes=[waiting.id])
    assert store.proposals() == (later,)
    gone = replace(waiting, state="superseded", superseded_by=later.id)
    assert store.proposal(waiting.id) == gone
    assert store.proposals(state="superseded") == (gone,)
    assert store.proposals(state="rejected") == ()
    reject = refused(lambda: store.reject([waiting.id], Approval(ADA)))
    wanted = operation(*waiting.changes.changes, id=waiting.id)
    begin = refused(lambda: store.begin(wanted, {}))
    for error in (reject, begin):
        assert (error.code, error.details["superseded_by"]) == ("NO_CHANGE", later.id)


def test_what_does_not_wait_any_more_cannot_be_superseded(
    waiting: Proposal, store: JournalStore
) -> None:
    store.reject([waiting.id], Approval(ADA, "no"))
    later = proposal(change("a.txt", b"old", b"newer"))
    error = refused(lambda: store.propose(later, contents(b"newer"), supersedes=[waiting.id]))
    assert error.code == "NO_CHANGE"
    assert store.proposals() == ()


def test_proposals_are_listed_by_session(waiting: Proposal, store: JournalStore) -> None:
    other = replace(waiting.session, id="another")
    second = replace(proposal(change("b", None, b"2")), session=other)
    store.propose(second, contents(b"2"))
    assert store.proposals(session=other) == (second,)
    assert store.proposals(session=waiting.session) == (waiting,)

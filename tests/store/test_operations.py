"""Operations: begun, finished, found again, taken back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, RootId, WorkspacePath, content_id
from filepact.domain.operation import Actor, ChangeId, Session
from filepact.domain.permission_log import PermissionRecord
from filepact.errors import FilepactError, NoChangeError, NotFoundError
from tests.store.making import OTHER, ROOT, SESSION, change, contents, do, new_id, operation

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.operation import Operation
    from filepact.workspace.journal import JournalStore
    from tests.store.conftest import Reopen


@pytest.mark.parametrize(
    ("begins", "found"),
    [
        ("", ["a", "b-1", "b-2", "b-3", "b-4", "b-5"]),  # one more than are named to a person
        ("b", ["b-1", "b-2", "b-3", "b-4", "b-5", "b-6"]),
        ("b-2", ["b-2"]),
        ("c", ["c \U0001f600"]),
        ("d", []),
        ("b-22", []),
    ],
)
def test_sessions_are_found_by_how_their_names_begin(
    store: JournalStore, begins: str, found: list[str]
) -> None:
    for name in ("b-3", "b-1", "a", "b-2", "c \U0001f600", "b-4", "b-6", "b-5", "b-1"):
        session = replace(SESSION, id=name)
        store.begin(operation(change("a", None, b"x"), session=session), contents(b"x"))
    assert list(store.sessions_named(begins)) == found


def test_an_operation_comes_back_as_it_was(store: JournalStore, reopen: Reopen) -> None:
    odd = "caf\udce9/\udcff.txt"  # a name that is not UTF-8
    folders = ((OTHER, "x"), (ROOT, odd))
    begun = store.begin(
        operation(
            change("a.txt", b"old\n", b"new\n"),
            change("b.txt", None, b"made\n", root=OTHER),
            change(odd, b"gone\n", None),
            FileChange(
                WorkspacePath(ROOT, "run.sh"),
                Revision.of(b"", 0o644),
                Revision.of(b"", 0o755),
            ),
            session=Session(
                "s\0\n", Actor("program", "na\udcefve"), turn="turn 1", call="na\udcefve"
            ),
            summary=f"edit {odd}",
            approved_by="ada",
            note="merged",
            directories=folders,
        ),
        contents(b"old\n", b"new\n", b"made\n", b"gone\n", b""),
    )
    assert begun.seq == 1
    assert begun.state == "intended"
    store.finish(begun.id, state="applied", note=f"see {odd}")
    store.close()
    again = reopen()
    found = again.operation(begun.id)
    assert found == replace(begun, state="applied")
    assert (found.session.turn, found.session.call) == ("turn 1", "na\udcefve")
    assert found.note == f"see {odd}"
    assert again.content(begun.changes.changes[0].after.content) == b"new\n"
    assert again.content(begun.changes.changes[2].before.content) == b"gone\n"
    assert [one.id for one in again.operations(path=odd)] == [begun.id]
    assert [one.id for one in again.operations(path="caf\udce9")] == [begun.id]
    again.close()


def test_places_in_the_journal_follow_each_other(store: JournalStore) -> None:
    assert store.last_seq() == 0
    assert [do(store, None, b"a", path=f"{n}").seq for n in range(4)] == [1, 2, 3, 4]
    assert store.last_seq() == 4


def test_an_operation_is_unfinished_until_it_is_finished(store: JournalStore) -> None:
    first = store.begin(operation(change("a", None, b"1"), note="noted"), contents(b"1"))
    second = store.begin(operation(change("b", None, b"2")), contents(b"2"))
    assert store.unfinished() == (first, second)
    assert store.unfinished()[0].note == "noted"
    assert store.operations() == ()
    store.finish(first.id, state="rolled_back", note="disk full")
    assert store.unfinished() == (second,)
    assert [(one.id, one.state, one.note) for one in store.operations()] == [
        (first.id, "rolled_back", "disk full")
    ]
    assert store.last_seq() == 2


def test_an_id_is_begun_once(store: JournalStore) -> None:
    done = do(store, None, b"a")
    with pytest.raises(FilepactError) as caught:
        store.begin(operation(change("b", None, b"a"), id=done.id), {})
    assert caught.value.code == "NO_CHANGE"
    assert store.last_seq() == 1


def test_an_operation_that_did_less_is_kept_as_what_it_did(store: JournalStore) -> None:
    one, two = change("a", None, b"1"), change("b", None, b"2")
    begun = store.begin(operation(one, two), contents(b"1", b"2"))
    store.finish(begun.id, state="interrupted", changes=ChangeSet((two,)), note="half")
    assert store.operation(begun.id).changes.changes == (two,)
    assert store.operations(path="a") == ()


def test_finishing_what_was_not_begun_is_an_error(store: JournalStore) -> None:
    with pytest.raises(FilepactError) as caught:
        store.finish(ChangeId("cnone"), state="applied")
    assert caught.value.code == "NOT_FOUND"


def test_bytes_that_were_not_given_are_an_error_and_nothing_is_kept(store: JournalStore) -> None:
    wanted = operation(change("a", b"1", b"2"))
    for given in ({}, contents(b"1")):
        with pytest.raises(ValueError):
            store.begin(wanted, given)
    assert store.last_seq() == 0
    assert store.statistics().contents == 0
    store.begin(wanted, contents(b"1", b"2"))
    # What is known need not be given again.
    store.begin(operation(change("a", b"2", b"1")), {})


# -- undo and redo ----------------------------------------------------------------------------


def undo(store: JournalStore, target: Operation, **fields: object) -> Operation:
    return take_back(store, target, "undo", **fields)


def take_back(
    store: JournalStore, target: Operation, kind: str, state: str = "applied"
) -> Operation:
    begun = store.begin(
        replace(target, id=new_id(), kind=kind, target=target.id, changes=target.changes.inverse()),
        {},
    )
    store.finish(begun.id, state=state)
    return store.operation(begun.id)


def undone_by(store: JournalStore, one: Operation) -> str | None:
    return store.operation(one.id).undone_by


def test_an_applied_undo_marks_its_target(store: JournalStore) -> None:
    done = do(store, b"1", b"2")
    back = undo(store, done)
    assert undone_by(store, done) == back.id
    assert undone_by(store, back) is None


@pytest.mark.parametrize("state", ["rolled_back", "interrupted"])
def test_an_undo_that_failed_marks_nothing(store: JournalStore, state: str) -> None:
    done = do(store, b"1", b"2")
    undo(store, done, state=state)
    assert undone_by(store, done) is None


def test_a_redo_takes_back_the_undo(store: JournalStore) -> None:
    done = do(store, b"1", b"2")
    back = undo(store, done)
    again = take_back(store, back, "redo")
    assert undone_by(store, done) is None
    assert undone_by(store, back) == again.id


def test_a_late_note_on_an_undo_does_not_undo_what_was_redone(store: JournalStore) -> None:
    done = do(store, b"1", b"2")
    back = undo(store, done)
    take_back(store, back, "redo")
    store.finish(back.id, state="applied", note="another program wrote late")
    assert undone_by(store, done) is None
    assert store.operation(back.id).note == "another program wrote late"


def test_a_redo_of_an_earlier_undo_leaves_a_later_one_in_force(store: JournalStore) -> None:
    done = do(store, b"1", b"2")
    first = undo(store, done)
    second = undo(store, done)
    take_back(store, first, "redo")
    assert undone_by(store, done) == second.id


def test_a_restore_marks_nothing(store: JournalStore) -> None:
    done = do(store, b"1", b"2")
    begun = store.begin(operation(change("a", b"2", b"1"), kind="restore", target=done.id), {})
    store.finish(begun.id, state="applied")
    assert undone_by(store, done) is None


# -- looking back -----------------------------------------------------------------------------


@pytest.fixture
def history(store: JournalStore) -> JournalStore:
    for number, (root, name) in enumerate(
        [
            (ROOT, "src/a.py"),
            (ROOT, "src/deep/b.py"),
            (OTHER, "src/a.py"),
            (ROOT, "src.py"),
            (ROOT, "src/a.py"),
            (ROOT, "src0"),
        ]
    ):
        do(store, None, b"%d" % number, path=name, root=root)
    begun = store.begin(
        operation(change("src/a.py", None, b"x"), change("z", None, b"x", root=OTHER)),
        contents(b"x"),
    )
    store.finish(begun.id, state="interrupted")
    store.begin(operation(change("src/a.py", None, b"x")), {})  # unfinished
    return store


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({}, [7, 6, 5, 4, 3, 2, 1]),
        ({"limit": 2}, [7, 6]),
        ({"limit": None}, [7, 6, 5, 4, 3, 2, 1]),
        ({"limit": 0}, []),
        ({"limit": 2, "newest_first": False}, [1, 2]),
        ({"after_seq": 5}, [7, 6]),
        ({"before_seq": 3}, [2, 1]),
        ({"after_seq": 2, "before_seq": 5, "newest_first": False}, [3, 4]),
        ({"root": ROOT}, [7, 6, 5, 4, 2, 1]),
        ({"root": OTHER}, [7, 3]),
        ({"root": RootId("/home/ada")}, []),
        ({"root": ROOT, "limit": 1}, [7]),
        ({"root": ROOT, "limit": 2, "before_seq": 5}, [4, 2]),
        ({"root": ROOT, "limit": 1, "newest_first": False}, [1]),
        ({"root": ROOT, "path": "src/a.py"}, [7, 5, 1]),
        ({"root": ROOT, "path": "src"}, [7, 5, 2, 1]),
        ({"root": ROOT, "path": "src/"}, [7, 5, 2, 1]),
        ({"root": ROOT, "path": "."}, [7, 6, 5, 4, 2, 1]),
        ({"root": ROOT, "path": ""}, [7, 6, 5, 4, 2, 1]),
        ({"path": "src/a.py"}, [7, 5, 3, 1]),
        ({"path": "nothing"}, []),
        ({"root": OTHER, "path": "z", "after_seq": 6}, [7]),
    ],
)
def test_operations_are_found_by_root_path_and_place(
    history: JournalStore, asked: dict[str, object], places: list[int]
) -> None:
    assert [one.seq for one in history.operations(**asked)] == places


def test_an_operation_is_found_by_the_beginning_of_its_id(store: JournalStore) -> None:
    for name in ("cabcd", "cabce", "cabceef", "cb"):
        do(store, None, b"1", path=name, id=ChangeId(name))
    assert store.operation("cabcd").id == "cabcd"
    assert store.operation("cabce").id == "cabce"
    assert store.operation("cabcee").id == "cabceef"
    assert store.operation("cb").id == "cb"
    with pytest.raises(FilepactError) as caught:
        store.operation("cab")
    assert caught.value.code == "INVALID_PARAMS"
    assert "cabcd, cabce, cabceef" in caught.value.message


def test_too_little_of_an_id_stands_for_nothing(store: JournalStore) -> None:
    do(store, None, b"1", id=ChangeId("cabcd"))
    for name in ("c", "ca", "cab"):
        with pytest.raises(FilepactError) as caught:
            store.operation(name)
        assert caught.value.code == "INVALID_PARAMS"
    assert store.operation("cabc").id == "cabcd"


def test_many_ids_that_begin_alike_are_not_all_named(store: JournalStore) -> None:
    for number in range(9):
        do(store, None, b"1", path=f"{number}", id=ChangeId(f"cx{number}"))
    with pytest.raises(FilepactError) as caught:
        store.operation("cx")
    assert "cx0, cx1, cx2, cx3, cx4 and others" in caught.value.message


@pytest.mark.parametrize("name", ["", "cz", "%", "c\udcff", "c0000000000000", "C"])
def test_an_unknown_id_is_not_found(store: JournalStore, name: str) -> None:
    do(store, None, b"1", id=ChangeId("c0a"))
    for find in (store.operation, store.proposal):
        with pytest.raises(FilepactError) as caught:
            find(name)
        assert caught.value.code == "NOT_FOUND"


# -- threads ----------------------------------------------------------------------------------


def test_threads_share_one_store(store: JournalStore) -> None:
    def work(thread: int) -> list[int]:
        seqs = []
        for number in range(25):
            data = b"%d %d" % (thread, number)
            seqs.append(do(store, None, data, path=f"{thread}/{number}").seq)
            assert store.content(next(iter(contents(data)))) == data
            assert store.operations(limit=5)
        return seqs

    with ThreadPoolExecutor(6) as pool:
        found = [seq for seqs in pool.map(work, range(6)) for seq in seqs]
    assert sorted(found) == list(range(1, 151))
    assert store.unfinished() == ()


def test_the_journal_is_consistent_by_its_own_account(history: JournalStore, path: Path) -> None:
    history.close()
    database = apsw.Connection(str(path))
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()


def test_what_somebody_did_already_is_applied_at_once(store: JournalStore) -> None:
    done = store.adopt(operation(change("a", b"1", b"2")), contents(b"1", b"2"))
    assert (done.state, done.seq) == ("applied", 1)
    assert store.operation(done.id) == done
    assert store.unfinished() == ()
    with pytest.raises(NoChangeError):
        store.adopt(done, contents(b"1", b"2"))


def test_contents_that_were_not_kept_are_known_by_their_ids(store: JournalStore) -> None:
    done = store.adopt(operation(change("a", b"1", b"2"), change("b", b"1", None)), contents(b"2"))
    assert store.operation(done.id).changes == done.changes
    assert store.statistics().oldest is not None
    with pytest.raises(NotFoundError):
        store.content(content_id(b"1"))
    do(store, b"2", b"1")
    assert store.content(content_id(b"1")) == b"1"
    assert store.adopt(operation(change("a", b"1", b"3")), {}).state == "applied"
    assert store.content(content_id(b"1")) == b"1"


def test_how_many_lines_an_operation_changed_is_kept_until_it_turns_out_to_be_less(
    store: JournalStore,
) -> None:
    begun = store.begin(operation(change("a", None, b"1\n"), lines=(1, 0)), contents(b"1\n"))
    assert store.operation(begun.id).lines == (1, 0)
    store.finish(begun.id, state="applied")
    assert store.operation(begun.id).lines == (1, 0)
    store.finish(begun.id, state="interrupted", changes=begun.changes)
    assert store.operation(begun.id).lines is None
    assert do(store, b"1\n", b"2\n").lines is None


def test_turns_come_in_the_order_in_which_they_began_as_far_as_that_is_known(
    store: JournalStore,
) -> None:
    def changes(turn: str) -> None:
        done = operation(change("a", None, b"1"), session=replace(SESSION, turn=turn))
        store.adopt(done, contents(b"1"))

    def begins(turn: str) -> None:
        store.note(PermissionRecord(1.0, SESSION, ROOT, turn, "run", (), "told", how="turn"))

    begins("first")
    changes("unknown")
    begins("second")
    changes("second")
    begins("third")
    changes("third")
    changes("first")
    begins("third")
    assert store.turns([ROOT]) == ("third", "second", "first", "unknown")
    changes("after all")
    assert store.turns([ROOT], limit=2) == ("after all", "third")
    assert store.turns([ROOT], begins="f") == ("first",)
    assert store.turns([OTHER]) == ()

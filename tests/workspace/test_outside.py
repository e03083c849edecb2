"""What is written past all doors is seen, in the journal, and can be undone."""

import os
import threading
from dataclasses import replace

import pytest

from filepact.domain.operation import Actor, Session
from filepact.errors import NoChangeError, StaleFileError
from filepact.workspace import outside as outside_module
from tests.workspace.acting import write

PERSON = Session("p", Actor("person", "p"))


@pytest.fixture
def outside(workspace):
    return workspace.outside


def told(looked):
    return (
        {(change.path.path, change.kind) for change in looked.operation.changes.changes}
        if looked.operation
        else set()
    )


def test_changed_made_and_removed_files_are_one_operation_that_can_be_undone(
    root, workspace, outside, session
):
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "gone.bin").write_bytes(b"\0\1\2")
    (root / "kept.txt").write_text("kept")
    outside.refresh()
    (root / "a.txt").write_bytes(b"one\n")
    (root / "new").mkdir()
    (root / "new" / "b.txt").write_text("b")
    (root / "gone.bin").rename(root / "moved.bin")
    looked = outside.look(session)
    assert told(looked) == {
        ("a.txt", "modify"),
        ("gone.bin", "delete"),
        ("moved.bin", "create"),
        ("new/b.txt", "create"),
    }
    operation = workspace.log()[0]
    assert operation == looked.operation
    assert (operation.tool, operation.state, operation.session) == ("outside", "applied", session)
    assert operation.summary == "4 files changed past the doors"
    assert outside.look(session) == outside_module.Looked()

    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (root / "gone.bin").read_bytes() == b"\0\1\2"
    assert not (root / "moved.bin").exists()
    assert outside.look(session).operation is None
    workspace.redo(PERSON, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"one\n"
    assert outside.look(session).operation is None


def test_rights_that_change_are_a_change_and_equal_bytes_are_none(root, outside, session):
    (root / "a.sh").write_text("x")
    (root / "b.sh").write_text("x")
    outside.refresh()
    (root / "a.sh").chmod(0o755)
    os.utime(root / "b.sh", (1, 1))
    assert told(outside.look(session)) == {("a.sh", "modify")}


def test_what_goes_through_the_doors_is_not_somebody_elses(
    root, open_here, outside, workspace, session
):
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    outside.refresh()
    write(workspace, session, "a.txt", "two\n")
    write(open_here(), session, "b.txt", "two\n")
    write(workspace, session, "c.txt", "new\n")
    assert outside.look(session).operation is None
    (root / "a.txt").write_text("three\n")
    looked = outside.look(session)
    assert told(looked) == {("a.txt", "modify")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "two\n"
    outside.refresh()
    assert outside.look(session).operation is None


def test_what_is_done_while_it_looks_is_not_somebody_elses(root, workspace, outside, session):
    for number in range(200):
        (root / f"{number}.txt").write_text("0\n")
    outside.refresh()
    over = threading.Event()

    def work():
        for number in range(200):
            write(workspace, session, f"{number}.txt", f"{number + 1}\n")
        over.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not over.is_set():
        assert outside.look(PERSON).operation is None
    thread.join()
    assert outside.look(PERSON).operation is None


def test_what_changes_while_no_agent_works_is_the_persons(root, outside, session):
    (root / "a.txt").write_text("one\n")
    assert outside.look(session).operation is None  # nothing is known yet
    outside.refresh()
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").write_text("b\n")
    outside.refresh()
    assert outside.look(session).operation is None
    (root / "b.txt").unlink()
    outside.refresh()
    assert outside.look(session).operation is None


def test_a_change_within_the_clocks_grain_is_seen(root, outside, session):
    path = root / "a.txt"
    path.write_text("one\n")
    outside.refresh()
    status = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert told(outside.look(session)) == {("a.txt", "modify")}


def test_an_undo_keeps_what_was_changed_later_or_refuses(root, workspace, outside, session):
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n")
    outside.refresh()
    (root / "a.txt").write_text("one\n2\n3\n4\n5\n")
    operation = outside.look(session).operation
    (root / "a.txt").write_text("one\n2\n3\n4\nfive\n")
    workspace.undo(PERSON, operation.id, dry_run=False)
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\nfive\n"
    outside.refresh()
    (root / "a.txt").write_text("uno\n")
    operation = outside.look(session).operation
    (root / "a.txt").write_text("due\n")
    with pytest.raises(StaleFileError):
        workspace.undo(PERSON, operation.id, dry_run=False)
    assert (root / "a.txt").read_text() == "due\n"


def test_what_agents_may_not_read_is_neither_read_nor_kept_but_said(
    root, workspace, outside, session
):
    (root / "id_rsa").write_text("secret")
    (root / "a.txt").write_text("a")
    outside.refresh()
    (root / "id_rsa").write_text("other secret")
    looked = outside.look(session)
    assert looked.operation is None
    assert looked.unkept == ("id_rsa",)
    (root / "id_rsa").unlink()
    (root / "a.txt").write_text("b")
    looked = outside.look(session)
    assert told(looked) == {("a.txt", "modify")}
    assert "not kept: id_rsa" in looked.operation.note
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    with pytest.raises(NoChangeError):
        workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert (root / "a.txt").read_text() == "a"
    assert not (root / "id_rsa").exists()


def test_large_files_links_and_ignored_ones_are_not_kept(root, outside, session, monkeypatch):
    monkeypatch.setattr(outside_module, "LARGEST", 100)
    monkeypatch.setattr(outside_module, "BUDGET", 90)
    (root / "large").write_bytes(b"x" * 101)
    (root / "one").write_bytes(os.urandom(40))
    (root / "two").write_bytes(os.urandom(40))  # over what may be held together
    (root / "linked").write_text("x")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "m.js").write_text("x")
    (root / "later").write_text("x")
    outside.refresh()
    (root / "large").write_bytes(b"y" * 101)
    (root / "two").write_bytes(b"2")
    (root / "linked").unlink()
    (root / "linked").symlink_to("one")
    (root / "node_modules" / "m.js").write_text("y")
    (root / ".gitignore").write_text("later\n")
    (root / "later").write_text("y")
    looked = outside.look(session)
    assert told(looked) == {(".gitignore", "create")}
    assert sorted(looked.unkept) == ["large", "linked", "two"]
    for number in range(8):
        (root / f"big{number}").write_bytes(b"x" * 200)
    (root / "one").write_bytes(b"1")
    looked = outside.look(session)
    assert told(looked) == {("one", "modify")}
    assert "and 3 more" in looked.operation.note
    # What is known now was small enough when it was seen.
    (root / "large").write_bytes(b"z")
    assert outside.look(session).unkept == ("large",)


def test_a_file_that_is_being_written_is_left_for_the_next_look(
    root, outside, session, monkeypatch
):
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    outside.refresh()
    (root / "a.txt").write_text("two\n")
    glance = type(outside._guard.roots[0]).glance
    calls = {"a.txt": 0}

    def moving(self, path):
        stamp = glance(self, path)
        if path == "a.txt":
            calls[path] += 1
            return (*stamp[:-1], stamp[-1] + calls[path])
        return stamp

    monkeypatch.setattr(type(outside._guard.roots[0]), "glance", moving)
    assert outside.look(session).operation is None
    monkeypatch.undo()
    assert told(outside.look(session)) == {("a.txt", "modify")}


def test_a_cut_off_entry_is_completed_and_touches_no_file(
    root, workspace, open_here, outside, session
):
    (root / "a.txt").write_text("one\n")
    outside.refresh()
    (root / "a.txt").write_text("two\n")
    store, finish = workspace._store, workspace._store.finish
    store.finish = lambda *_, **__: None
    outside.look(session)
    store.finish = finish
    again = open_here()
    (settled,) = again.recovered
    assert settled.state == "applied"
    assert (root / "a.txt").read_text() == "two\n"
    again.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "one\n"


def test_learning_can_be_given_up(root, outside, session):
    (root / "a.txt").write_text("one\n")
    outside.learn(cancelled=lambda: True)
    assert replace(outside.look(session), operation=None).unkept == ()

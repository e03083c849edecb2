"""What is written past all doors is seen, in the journal, and can be undone."""

import mmap
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from filepact.app import open_workspace
from filepact.compression import compress
from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, NamedFiles, WorkspacePath, content_id
from filepact.domain.operation import Actor, Session
from filepact.domain.protected import AGENT_LOGS
from filepact.errors import FilepactError, StaleFileError
from filepact.fs import watch
from filepact.fs.path_form import is_beneath
from filepact.fs.root import Root
from filepact.workspace import file_snapshot, file_states, observe
from filepact.workspace.external import ChangeList, ExternalChanges, KnownFileLimits
from filepact.workspace.file_snapshot import CallFiles
from filepact.workspace.file_states import CallRange
from filepact.workspace.journal import new_operation
from filepact.workspace.selection import Selection
from tests.hostile.sweeps import often
from tests.needs import NOTICES
from tests.unprivileged import unprivileged
from tests.workspace.acting import read, write

PERSON = Session("p", Actor("person", "p"))


@pytest.fixture
def outside(workspace):
    return workspace.external


def limited(workspace, **limits):
    """Another one over the same workspace, with narrower limits."""
    return ExternalChanges(
        workspace.guard, workspace._store, workspace._state.locks, KnownFileLimits(**limits)
    )


def code_of(call):
    with pytest.raises(FilepactError) as caught:
        call()
    return caught.value.code


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
    outside.resnapshot()
    (root / "a.txt").write_bytes(b"one\n")
    (root / "new").mkdir()
    (root / "new" / "b.txt").write_text("b")
    (root / "gone.bin").rename(root / "moved.bin")
    looked = outside.detect(session)
    assert told(looked) == {
        ("a.txt", "modify"),
        ("gone.bin", "delete"),
        ("moved.bin", "create"),
        ("new/b.txt", "create"),
    }
    operation = workspace.log()[0]
    assert operation == looked.operation
    assert (operation.tool, operation.state, operation.session) == ("outside", "applied", session)
    assert operation.summary == "4 files changed without filepact"
    assert outside.detect(session) == ChangeList()

    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (root / "gone.bin").read_bytes() == b"\0\1\2"
    assert not (root / "moved.bin").exists()
    assert outside.detect(session).operation is None
    workspace.redo(PERSON, dry_run=False)
    assert (root / "a.txt").read_bytes() == b"one\n"
    assert outside.detect(session).operation is None


def test_rights_that_change_are_a_change_and_equal_bytes_are_none(root, outside, session):
    (root / "a.sh").write_text("x")
    (root / "b.sh").write_text("x")
    outside.resnapshot()
    (root / "a.sh").chmod(0o755)
    os.utime(root / "b.sh", (1, 1))
    assert told(outside.detect(session)) == {("a.sh", "modify")}


def test_what_goes_through_the_doors_is_not_somebody_elses(
    root, open_here, outside, workspace, session
):
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    outside.resnapshot()
    write(workspace, session, "a.txt", "two\n")
    write(open_here(), session, "b.txt", "two\n")
    write(workspace, session, "c.txt", "new\n")
    assert outside.detect(session).operation is None
    (root / "a.txt").write_text("three\n")
    looked = outside.detect(session)
    assert told(looked) == {("a.txt", "modify")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "two\n"
    outside.resnapshot()
    assert outside.detect(session).operation is None


def test_what_is_done_while_it_looks_is_not_somebody_elses(root, workspace, outside, session):
    for number in range(200):
        (root / f"{number}.txt").write_text("0\n")
    outside.resnapshot()
    over = threading.Event()

    def work():
        for number in range(200):
            write(workspace, session, f"{number}.txt", f"{number + 1}\n")
        over.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not over.is_set():
        assert outside.detect(PERSON).operation is None
    thread.join()
    assert outside.detect(PERSON).operation is None


def test_what_changes_while_no_agent_works_is_the_persons(root, outside, session):
    (root / "a.txt").write_text("one\n")
    assert outside.detect(session).operation is None  # nothing is known yet
    outside.resnapshot()
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").write_text("b\n")
    outside.resnapshot()
    assert outside.detect(session).operation is None
    (root / "b.txt").unlink()
    outside.resnapshot()
    assert outside.detect(session).operation is None


def test_a_change_within_the_clocks_grain_is_seen(root, outside, session):
    path = root / "a.txt"
    path.write_text("one\n")
    outside.resnapshot()
    status = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert told(outside.detect(session)) == {("a.txt", "modify")}


def test_an_undo_keeps_what_was_changed_later_or_refuses(root, workspace, outside, session):
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n")
    outside.resnapshot()
    (root / "a.txt").write_text("one\n2\n3\n4\n5\n")
    operation = outside.detect(session).operation
    (root / "a.txt").write_text("one\n2\n3\n4\nfive\n")
    workspace.undo(PERSON, operation.id, dry_run=False)
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\nfive\n"
    outside.resnapshot()
    (root / "a.txt").write_text("uno\n")
    operation = outside.detect(session).operation
    (root / "a.txt").write_text("due\n")
    with pytest.raises(StaleFileError):
        workspace.undo(PERSON, operation.id, dry_run=False)
    assert (root / "a.txt").read_text() == "due\n"


def test_what_agents_may_not_read_is_neither_read_nor_kept_but_said(
    root, workspace, outside, session
):
    (root / "id_rsa").write_text("first secret")
    (root / "a.txt").write_text("a")
    outside.resnapshot()
    (root / "id_rsa").write_text("other secret")
    looked = outside.detect(session)
    assert looked.operation is None
    assert looked.unkept == ("id_rsa",)
    assert workspace.log() == (looked.lost,)
    assert "secret" not in workspace.diff(looked.lost)
    assert b"secret" not in workspace.patch(looked.lost)
    assert code_of(lambda: workspace.undo(PERSON, looked.lost.id, dry_run=False)) == "NOT_FOUND"
    # It is the last that was done, and nothing older is undone in its place.
    assert code_of(lambda: workspace.undo(PERSON, dry_run=False)) == "NOT_FOUND"
    (root / "id_rsa").unlink()
    (root / "a.txt").write_text("b")
    looked = outside.detect(session)
    assert told(looked) == {("a.txt", "modify")}
    assert "not kept: id_rsa" in looked.operation.note
    assert [one.id for one in looked.operations] == [
        one.id for one in reversed(workspace.log(limit=2))
    ]
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "a"
    assert not (root / "id_rsa").exists()


def test_another_name_of_a_secret_at_home_is_not_read_and_a_pipe_is_nothing(
    root, tmp_path, session
):
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("secret")
    (root / "a.txt").write_text("a")
    workspace = open_workspace(
        [str(root)], state_dir=str(tmp_path / "state"), home=str(tmp_path / "home")
    )
    try:
        assert workspace.external.snapshot().kept == 1
        os.mkfifo(root / "pipe")
        os.link(tmp_path / "home" / ".ssh" / "id_rsa", root / "plain.txt")
        looked = workspace.external.detect(session)
        assert (looked.operation, looked.unkept) == (None, ("plain.txt",))
        assert workspace.external.detect(session) == ChangeList()
    finally:
        workspace.close()


@pytest.mark.parametrize("name", ["notes.txt", "new.txt"])
def test_a_private_key_is_not_put_into_the_journal_whatever_its_file_is_called(
    root, workspace, outside, session, name
):
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF\n" * 4
    key += "-----END PRIVATE KEY-----\n"
    (root / "notes.txt").write_text("nothing")
    outside.resnapshot()
    (root / name).write_text(key)
    looked = outside.detect(session)
    assert (looked.operation, looked.unkept) == (None, (name,))


def test_what_the_rules_keep_from_being_written_does_not_keep_the_rest_from_coming_back(
    root, open_here, session
):
    (root / ".filepact.toml").write_text(
        '[[deny]]\nname = "plans"\npaths = ["plan.txt"]\nactions = ["write"]\nwhy = "final"\n'
    )
    (root / "plan.txt").write_text("final")
    (root / "a.txt").write_text("a")
    workspace = open_here()
    workspace.external.snapshot()
    (root / "plan.txt").write_text("other")
    (root / "a.txt").write_text("b")
    looked = workspace.external.detect(session)
    assert told(looked) == {("a.txt", "modify")}
    assert looked.unkept == ("plan.txt",)
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "a"


def test_a_person_takes_back_what_a_program_did_to_the_rules_of_a_project_and_an_agent_does_not(
    root, workspace, outside, session
):
    (root / ".filepact.toml").write_text("")
    outside.resnapshot()
    (root / ".filepact.toml").write_text("# other rules")
    looked = outside.detect(session)
    assert told(looked) == {(".filepact.toml", "modify")}
    assert looked.operation.was_unasked
    undo = workspace.past(session).undo
    assert code_of(lambda: undo(looked.operation.id, dry_run=False)) == "PATH_BLOCKED"
    workspace.undo(PERSON, looked.operation.id)
    assert (root / ".filepact.toml").read_text() == ""


def test_what_came_through_a_door_into_a_file_that_is_not_read_is_not_somebody_elses(
    root, open_here, session
):
    (root / ".filepact.toml").write_text(
        '[[ask]]\nname = "plans"\npaths = ["plan.txt"]\nactions = ["read"]\nwhy = "private"\n'
    )
    workspace = open_here()
    workspace.external.snapshot()
    assert write(workspace, session, "plan.txt", "mine\n").status == "applied"
    assert workspace.external.detect(session) == ChangeList()
    (root / "plan.txt").write_text("theirs\n")
    assert workspace.external.detect(session).unkept == ("plan.txt",)


def test_what_another_process_did_through_its_own_door_is_not_somebody_elses(
    root, tmp_path, outside, session
):
    (root / "a.txt").write_text("one\n")
    outside.snapshot()
    command = [sys.executable, "-m", "filepact", "edit", "a.txt"]
    command += ["--root", str(root), "--state", str(tmp_path / "state")]
    command += ["--old", "one", "--new", "two"]
    subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=True,
    )
    assert (root / "a.txt").read_text() == "two\n"
    assert outside.detect(session) == ChangeList()


def test_large_files_and_ignored_ones_are_not_kept(root, workspace, session):
    outside = limited(workspace, file=100, changed=200, memory=90)
    (root / "a-large").write_bytes(b"x" * 101)
    (root / "b-one").write_bytes(os.urandom(40))
    (root / "c-two").write_bytes(os.urandom(60))  # over what may be held together
    (root / "linked").write_text("x")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "m.js").write_text("x")
    learned = outside.snapshot()
    assert (learned.files, learned.unkept, learned.complete) == (4, 2, True)
    assert outside.snapshot() == learned
    (root / "a-large").write_bytes(b"y" * 101)
    (root / "c-two").write_bytes(b"2")
    (root / "linked").unlink()
    (root / "linked").symlink_to("b-one")
    (root / "node_modules" / "m.js").write_text("y")
    (root / "new").write_bytes(b"z" * 201)
    looked = outside.detect(session)
    assert told(looked) == {("linked", "modify")}
    assert looked.unkept == ("a-large", "c-two", "new")
    (root / "linked").unlink()
    (root / "linked").symlink_to("c-two")
    assert told(outside.detect(session)) == {("linked", "modify")}
    # The journal has what a changed file held at the last look, as far as it was small enough.
    (root / "c-two").write_bytes(b"3")
    assert told(outside.detect(session)) == {("c-two", "modify")}
    for number in range(8):
        (root / f"big{number}").write_bytes(b"x" * 300)
    (root / "c-two").write_bytes(b"4")
    looked = outside.detect(session)
    assert told(looked) == {("c-two", "modify")}
    assert "and 3 more" in looked.operation.note


def test_a_known_file_that_is_ignored_from_now_on_is_still_looked_at(root, outside, session):
    (root / "later").write_text("x")
    outside.resnapshot()
    (root / ".gitignore").write_text("later\n")
    (root / "later").write_text("y")
    looked = outside.detect(session)
    assert told(looked) == {(".gitignore", "create"), ("later", "modify")}
    assert outside.detect(session) == ChangeList()


def test_a_large_file_that_was_only_renamed_can_be_taken_back(root, workspace, session):
    outside = limited(workspace, file=100)
    (root / "old").write_bytes(b"x" * 101)
    outside.snapshot()
    (root / "old").rename(root / "new")
    looked = outside.detect(session)
    assert told(looked) == {("old", "delete"), ("new", "create")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "old").read_bytes() == b"x" * 101
    assert not (root / "new").exists()


def test_folders_that_came_with_a_file_go_with_it_and_others_stay(
    root, workspace, outside, session
):
    (root / "empty").mkdir()
    outside.resnapshot()
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c.txt").write_text("c")
    (root / "empty" / "d.txt").write_text("d")
    outside.detect(session)
    workspace.undo(PERSON, dry_run=False)
    assert [one.name for one in root.iterdir()] == ["empty"]


def test_beyond_the_most_files_nothing_is_taken_for_new_or_gone(root, workspace, session):
    for name in "bcde":
        (root / name).write_text(name)
    outside = limited(workspace, files=3)
    learned = outside.snapshot()
    assert (learned.files, learned.unwatched) == (3, 1)
    (root / "e").write_text("other")
    (root / "a").write_text("a")
    assert told(outside.detect(session)) == {("a", "create")}
    (root / "a").unlink()
    (root / "b").unlink()
    assert told(outside.detect(session)) == {("a", "delete"), ("b", "delete")}


def test_of_a_folder_with_more_names_than_are_listed_nothing_is_taken_for_new(
    root, workspace, session, monkeypatch
):
    monkeypatch.setattr(watch, "MAX_ENTRIES", 20)
    (root / "a.txt").write_text("one")
    (root / "flat").mkdir()
    for number in range(40):
        (root / "flat" / f"{number:02}").write_text("a person's")
    outside = limited(workspace, files=2)
    assert outside.snapshot().unwatched == 39 + 1
    # The system lists names in an order of its own, so that others come to the front by now.
    for number in range(0, 40, 2):
        (root / "flat" / f"{number:02}").unlink()
    (root / "a.txt").write_text("two")
    assert told(outside.detect(session)) == {("a.txt", "modify")}
    workspace.undo(PERSON, dry_run=False)
    assert len([*(root / "flat").iterdir()]) == 20


def test_no_more_are_counted_than_anybody_waits_for(root, workspace, monkeypatch):
    for module in (file_snapshot, watch):
        monkeypatch.setattr(module, "MOST_COUNTED", 5)
    for number in range(20):
        (root / f"{number:02}").write_text("x")
    outside = limited(workspace, files=3)
    assert outside.snapshot().unwatched == 5
    assert file_snapshot.unwatched_said(5).startswith("more than 5 files")


def test_a_folder_that_may_have_been_there_does_not_go_with_the_file_that_came(
    root, workspace, session
):
    (root / "a.txt").write_text("one")
    (root / "b.txt").write_text("one")
    (root / "z" / "empty").mkdir(parents=True)
    outside = limited(workspace, files=2)
    outside.snapshot()
    # Of what is not looked at something is seen all the same, once there are fewer files.
    (root / "a.txt").unlink()
    (root / "z" / "empty" / "new.txt").write_text("new")
    outside.detect(session)
    for operation in workspace.log():
        workspace.undo(PERSON, operation.id, dry_run=False)
    assert (root / "z" / "empty").is_dir()


def test_a_root_inside_another_is_looked_at_once(root, open_here, session):
    (root / "in").mkdir()
    workspace = open_here(roots=[str(root), str(root / "in")])
    workspace.external.snapshot()
    (root / "in" / "a.txt").write_text("a")
    looked = workspace.external.detect(session)
    assert [one.path.root for one in looked.operation.changes.changes] == [str(root / "in")]


@pytest.mark.parametrize("mode", [0, 0o400, 0o100])
def test_what_cannot_be_looked_into_is_not_gone(root, outside, session, mode):
    (root / "in").mkdir()
    (root / "in" / "a.txt").write_text("a")
    outside.resnapshot()
    (root / "in").chmod(mode)
    try:
        looked = unprivileged(lambda: outside.detect(session))
        assert told(looked) == {("in", "modify")}
    finally:
        (root / "in").chmod(0o755)


def test_what_was_touched_and_closed_then_is_told_when_it_can_be_looked_into(
    root, outside, session
):
    (root / "in").mkdir()
    (root / "in" / "a.txt").write_text("a")
    outside.resnapshot()
    (root / "in" / "a.txt").write_text("b")
    (root / "in").chmod(0)
    try:
        assert told(unprivileged(lambda: outside.detect(session))) == {("in", "modify")}
    finally:
        (root / "in").chmod(0o755)
    assert told(outside.detect(session)) == {("in", "modify"), ("in/a.txt", "modify")}


def test_a_root_that_is_no_longer_there_is_no_deletion(root, outside, session):
    (root / "a.txt").write_text("a")
    outside.resnapshot()
    shutil.move(root, root.parent / "elsewhere")
    assert code_of(lambda: outside.detect(session)) == "PATH_BLOCKED"
    shutil.move(root.parent / "elsewhere", root)
    assert outside.detect(session) == ChangeList()


def test_a_folder_that_became_a_link_holds_nothing_any_more(root, tmp_path, outside, session):
    (root / "in").mkdir()
    (root / "in" / "a.txt").write_text("a")
    outside.resnapshot()
    shutil.move(root / "in", tmp_path / "in")
    (root / "in").symlink_to(tmp_path / "in")
    looked = outside.detect(session)
    assert told(looked) == {("in/a.txt", "delete"), ("in", "modify")}
    assert looked.unkept == ()


def test_a_file_that_is_being_written_is_left_for_the_next_look(
    root, outside, session, monkeypatch
):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    (root / "a.txt").write_text("two\n")
    read, most = Root.read, [0]

    def moving(self, path, **limits):
        contents = read(self, path, **limits)
        if most[0]:
            most[0] -= 1
            (root / path).write_text(f"while it is read {most[0]}\n")
        return contents

    monkeypatch.setattr(Root, "read", moving)
    most[0] = 3
    assert outside.detect(session) == ChangeList()
    most[0] = 1
    assert told(outside.detect(session)) == {("a.txt", "modify")}
    assert outside.detect(session) == ChangeList()


def test_a_file_that_changes_once_more_before_it_is_told_is_told_next_time(
    root, workspace, outside, session, monkeypatch
):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    (root / "a.txt").write_text("two\n")
    ask = workspace._store.unfinished

    def slow():
        (root / "a.txt").write_text("three\n")
        return ask()

    monkeypatch.setattr(workspace._store, "unfinished", slow)
    assert outside.detect(session) == ChangeList()
    monkeypatch.undo()
    assert told(outside.detect(session)) == {("a.txt", "modify")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "one\n"


def test_a_file_under_way_through_a_door_waits_for_its_end(root, workspace, outside, session):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    finish = workspace._store.finish
    waiting = []
    workspace._store.finish = lambda *args, **named: waiting.append((args, named))
    write(workspace, session, "a.txt", "two\n")
    assert outside.detect(session) == ChangeList()
    workspace._store.finish = finish
    for args, named in waiting:
        finish(*args, **named)
    assert outside.detect(session) == ChangeList()
    (root / "a.txt").write_text("three\n")
    assert told(outside.detect(session)) == {("a.txt", "modify")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "two\n"


def test_another_process_that_looks_too_does_not_report_it_again(
    root, open_here, outside, session, other
):
    there = open_here().external
    (root / "a.txt").write_text("one\n")
    (root / "id_rsa").write_text("secret")
    outside.snapshot()
    there.snapshot()
    (root / "a.txt").write_text("two\n")
    (root / "id_rsa").write_text("other secret")
    assert told(outside.detect(session)) == {("a.txt", "modify")}
    assert there.detect(other) == ChangeList()
    (root / "a.txt").unlink()
    assert told(there.detect(other)) == {("a.txt", "delete")}
    assert outside.detect(session) == ChangeList()


def test_contents_that_the_journal_gave_up_are_said_to_be_gone(root, workspace, outside, session):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    (root / "a.txt").write_text("two\n")
    looked = outside.detect(session)
    workspace._store.prune(keep_bytes=0, keep_seconds=-1_000)
    assert code_of(lambda: workspace.undo(PERSON, dry_run=False)) == "NOT_FOUND"
    assert (root / "a.txt").read_text() == "two\n"
    assert workspace.operation(looked.operation.id).undone_by is None


def test_a_checkpoint_is_restored_but_for_what_was_not_kept(root, workspace, outside, session):
    (root / "a.txt").write_text("one\n")
    (root / "id_rsa").write_text("secret")
    outside.resnapshot()
    workspace.checkpoint("here")
    (root / "a.txt").write_text("two\n")
    (root / "id_rsa").write_text("other secret")
    outside.detect(session)
    workspace.restore(PERSON, "here", dry_run=False)
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "id_rsa").read_text() == "other secret"


KILLED = """
import os, signal, sys
from filepact.app import open_workspace
from filepact.domain.protected import AGENT_LOGS
from filepact.domain.document import WorkspacePath
from filepact.domain.operation import Actor, Session
from filepact.store import sql

root, state, where = sys.argv[1:]
workspace = open_workspace([root], state_dir=state)
workspace.external.snapshot()
open(f"{root}/a.txt", "w").write("two\\n")

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if where == "inside":
    sql.insert_changes = die
workspace.external.detect(Session("s", Actor("agent", "a")))
die()
"""


@pytest.mark.parametrize(("where", "entries"), [("inside", 0), ("after", 1)])
def test_a_killed_look_leaves_a_whole_entry_or_none_and_every_file_alone(
    root, tmp_path, open_here, where, entries
):
    (root / "a.txt").write_text("one\n")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(root), str(tmp_path / "state"), where],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    workspace = open_here()
    assert workspace.recovered == ()
    assert (root / "a.txt").read_text() == "two\n"
    assert len(workspace.log()) == entries
    if entries:
        workspace.undo(PERSON, dry_run=False)
        assert (root / "a.txt").read_text() == "one\n"


def test_learning_can_be_given_up(root, outside, session):
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    asked = iter([False, True])
    learned = outside.snapshot(cancelled=lambda: next(asked))
    assert (learned.complete, learned.files, learned.kept) == (False, 2, 1)
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").write_text("two\n")
    looked = outside.detect(session)
    assert told(looked) == {("a.txt", "modify")}
    assert looked.unkept == ("b.txt",)
    assert outside.snapshot().complete


def test_learning_can_be_given_up_before_anything_is_known(root, outside, session):
    (root / "in").mkdir()
    (root / "in" / "a.txt").write_text("one\n")
    assert not outside.snapshot(cancelled=lambda: True).complete
    assert outside.detect(session) == ChangeList()
    assert outside.snapshot().complete


@pytest.mark.slow(after=1, measured=True)
@pytest.mark.parametrize("folders", [10, often(40, 100)])
def test_thousands_of_files_are_known_and_what_changes_among_them_is_found(
    root, outside, session, folders
):
    for folder in range(folders):
        (root / f"{folder}").mkdir()
        for number in range(100):
            (root / f"{folder}" / f"{number}.txt").write_text(f"{folder} {number}\n")
            os.utime(root / f"{folder}" / f"{number}.txt", (1, 1))
    assert outside.snapshot().kept == 100 * folders
    assert outside.detect(session) == ChangeList()
    (root / "5" / "50.txt").write_text("x")
    assert told(outside.detect(session)) == {("5/50.txt", "modify")}


# -- whose it was: the person's before a turn begins, the agent's from then on ------------------


@pytest.fixture(params=[pytest.param("noticed", marks=NOTICES), "looked for"])
def watched(request, root, outside):
    """The files as they are known when a turn begins, with the system's notices and without."""
    for name in ("a.txt", "b.txt", "c.txt", "sub/d.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("one\n")
        os.utime(root / name, (1, 1))
    outside.resnapshot()
    if request.param == "looked for":
        for snapshot in outside._files._snapshots.values():
            snapshot.watcher.distrust()
        outside.resnapshot()
    return outside


def test_what_was_changed_before_a_turn_is_the_persons_however_late_it_is_looked_at(
    root, watched, session
):
    (root / "a.txt").write_text("mine\n")
    (root / "b.txt").unlink()
    (root / "mine.txt").write_text("mine\n")
    watched.mark()
    (root / "c.txt").write_text("two\n")
    (root / "sub" / "d.txt").unlink()
    watched.resnapshot()
    assert told(watched.detect(session)) == {("c.txt", "modify"), ("sub/d.txt", "delete")}
    assert watched.detect(session) == ChangeList()


def test_what_is_changed_right_after_a_turn_has_begun_is_later_by_its_stamp(root, outside):
    """Where no notice tells of it, the stamp alone says whose it is; clocks of stamps go in steps."""
    for number in range(20):
        outside.resnapshot()
        outside.mark()
        (root / f"{number}.txt").touch()
        assert (root / f"{number}.txt").stat().st_ctime_ns > outside._files.marks[-1]


def test_what_a_turn_makes_while_everything_is_looked_at_anew_is_its_own(
    root, outside, session, monkeypatch
):
    """The file is made after the notices were read, and before it is scanned."""
    outside.resnapshot()
    watcher = outside._files._snapshots[outside._guard.roots[0].path].watcher
    for number in range(2):
        watcher._last = float("-inf")  # the last time was long ago
        made, scanned = root / f"{number}.txt", observe.scan

        def scan_late(*given, made=made, scanned=scanned, **more):
            made.write_text("the agent's\n")
            return scanned(*given, **more)

        outside.mark()
        with monkeypatch.context() as patched:
            patched.setattr(observe, "scan", scan_late)
            outside.resnapshot()
        assert made.exists()
        looked = outside.detect(session)
        found = {one.path.path for each in looked.operations for one in each.changes.changes}
        assert made.name in found


def test_a_turn_takes_back_only_what_it_did_when_it_began_before_anybody_looked(
    root, workspace, watched, session
):
    (root / "a.txt").write_text("mine\n")
    watched.mark()
    (root / "c.txt").write_text("two\n")
    watched.resnapshot()
    assert told(watched.detect(session)) == {("c.txt", "modify")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.txt").read_text() == "mine\n"
    assert (root / "c.txt").read_text() == "one\n"


def test_a_persons_new_file_is_never_removed_with_what_an_agent_wrote_into_it(
    root, workspace, watched, session
):
    (root / "new.txt").write_text("mine\n")
    watched.mark()
    (root / "new.txt").write_text("mine\nthe agent's\n")
    watched.resnapshot()
    looked = watched.detect(session)
    assert looked.operation is None
    assert looked.unkept == ("new.txt",)
    assert code_of(lambda: workspace.undo(PERSON, looked.lost.id, dry_run=False)) == "NOT_FOUND"
    assert (root / "new.txt").read_text() == "mine\nthe agent's\n"


def test_a_persons_text_is_not_taken_back_with_what_an_agent_wrote_over_it_at_once(
    root, watched, session
):
    (root / "a.txt").write_text("mine\n")
    watched.mark()
    (root / "a.txt").write_text("the agent's\n")
    watched.resnapshot()
    looked = watched.detect(session)
    noticed = watched._files._snapshots.popitem()[1].watcher._trusted
    # Without notices it cannot be known that the person had changed it, too.
    assert looked.unkept == (("a.txt",) if noticed else ())


def test_a_turn_that_begins_before_the_files_are_known_is_seen_without_contents(
    root, workspace, outside, session
):
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("one\n")
    outside.mark()
    (root / "b.txt").write_text("two\n")
    (root / "new.txt").write_text("new\n")
    outside.snapshot()
    outside.resnapshot()
    looked = outside.detect(session)
    assert looked.operation is None
    assert set(looked.unkept) == {"b.txt", "new.txt"}
    # Nobody knows how large they were, if they were there at all.
    assert {one.before.unread_size for one in looked.lost.changes.changes} == {None}
    assert "bytes" not in looked.lost.note
    assert code_of(lambda: workspace.undo(PERSON, looked.lost.id, dry_run=False)) == "NOT_FOUND"
    assert outside.detect(session) == ChangeList()
    (root / "b.txt").write_text("three\n")
    assert told(outside.detect(session)) == {("b.txt", "modify")}


def test_a_turn_that_begins_before_the_last_one_was_looked_at_hides_nothing_of_it(
    root, watched, session
):
    watched.mark()
    (root / "a.txt").write_text("the first turn's\n")
    watched.mark()
    (root / "b.txt").write_text("the second turn's\n")
    watched.resnapshot()
    assert ("a.txt", "modify") in told(watched.detect(session))
    watched.resnapshot()
    (root / "c.txt").write_text("the second turn's\n")
    assert ("c.txt", "modify") in told(watched.detect(session))


def test_what_is_made_in_a_turn_that_the_last_look_came_late_for_can_be_taken_back(
    root, workspace, outside, session
):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    if outside._files._snapshots[outside._guard.roots[0].path].watcher._notices is None:
        pytest.skip("no notices on this file system")
    outside.mark()
    outside.resnapshot()
    (root / "first.txt").write_text("1\n")
    (root / "mine.txt").write_text("mine\n")
    outside.mark()  # the second turn begins before anybody looked
    assert outside.detect(session).operation is not None
    (root / "second.txt").write_text("2\n")
    outside.resnapshot()
    assert told(outside.detect(session)) == {("second.txt", "create")}
    workspace.undo(PERSON)
    assert not (root / "second.txt").exists()


def test_two_turns_before_the_files_are_known_are_both_seen(root, outside, session):
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text("one\n")
    outside.mark()
    (root / "a.txt").write_text("two\n")
    outside.mark()
    (root / "b.txt").write_text("two\n")
    outside.snapshot()
    outside.resnapshot()
    first = outside.detect(session)
    outside.resnapshot()
    assert {*first.unkept, *outside.detect(session).unkept} == {"a.txt", "b.txt"}


def test_stamps_are_enough_to_see_a_change_and_contents_come_later(root, outside, session):
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("one\n")
    assert outside.snapshot(contents=False).kept == 0
    outside.mark()
    (root / "b.txt").write_text("two\n")
    outside.resnapshot(contents=False)
    assert outside.read_contents()
    (root / "a.txt").write_text("two\n")
    looked = outside.detect(session)
    assert told(looked) == {("a.txt", "modify")}
    assert looked.unkept == ("b.txt",)


def test_a_file_that_another_thread_is_reading_is_waited_for(root, outside, session, monkeypatch):
    (root / "a.txt").write_text("before\n")
    outside.snapshot(contents=False)
    [(path, _)] = outside._unread
    real, reading, written = outside._files.read, threading.Event(), threading.Event()

    def read_late(*file, limit=-1):
        reading.set()
        # Whoever does not wait for us has written it by then.
        written.wait(0.3)
        return real(*file, limit=limit)

    monkeypatch.setattr(outside._files, "read", read_late)
    reader = threading.Thread(target=outside.read_contents)
    reader.start()
    reading.wait()
    outside.read_first({path})
    (root / "a.txt").write_text("after\n")
    written.set()
    reader.join()
    looked = outside.detect(session)
    assert told(looked) == {("a.txt", "modify")}
    assert looked.unkept == ()


def test_reading_contents_goes_on_where_it_was_left(root, outside):
    for number in range(4):
        (root / f"{number}.txt").write_text("one\n")
    outside.snapshot(contents=False)
    asked = iter([False, True])
    assert not outside.read_contents(cancelled=lambda: next(asked))
    outside.resnapshot(contents=False)
    assert outside.read_contents()
    assert outside.snapshot().kept == 4


def test_a_turn_looks_at_nothing_that_was_not_touched(root, outside, session, monkeypatch):
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    monkeypatch.setattr(
        file_snapshot, "_RACY", 0
    )  # else what was written just now is looked at again
    outside.snapshot()
    if outside._files._snapshots[outside._guard.roots[0].path].watcher._notices is None:
        pytest.skip("no notices on this file system")
    looked_at = []
    find = watch.stamps_at

    def stamps_at(root, names, *wanted, **more):
        looked_at.extend(names := [*names])
        return find(root, names, *wanted, **more)

    for module in (watch, file_snapshot):
        monkeypatch.setattr(module, "stamps_at", stamps_at)
    monkeypatch.setattr(observe, "scan", lambda *_, **__: pytest.fail("everything was looked at"))
    outside.mark()
    outside.resnapshot()
    (root / "b.txt").write_text("two\n")
    assert told(outside.detect(session)) == {("b.txt", "modify")}
    assert set(looked_at) == {"b.txt"}


def test_a_mark_waits_for_nobody_who_looks(root, outside, session, monkeypatch):
    (root / "a.txt").write_text("one\n")
    outside.snapshot()
    marked = threading.Event()
    catch_up = outside._catch_up

    def slow():
        assert marked.wait(20)
        return catch_up()

    monkeypatch.setattr(outside, "_catch_up", slow)
    looking = threading.Thread(target=outside.detect, args=(session,))
    looking.start()
    outside.mark()
    marked.set()
    looking.join(20)
    assert not looking.is_alive()


@pytest.mark.parametrize("kept", [one for each in AGENT_LOGS.values() for one in each])
def test_what_agents_keep_for_themselves_is_not_told_and_what_steers_them_is(
    root, outside, session, kept
):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    name = kept.replace("*", "4") + ("x/log.json" if kept.endswith("/") else "")
    for path in (name, f"sub/{name}", ".claude/settings.json", "AGENTS.md", ".fast-agent/a.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("{}\n")
    seen = {path for path, _ in told(outside.detect(session))}
    assert seen == {f"sub/{name}", ".claude/settings.json", "AGENTS.md", ".fast-agent/a.md"}
    (root / name).write_text("{1}\n")
    assert outside.detect(session) == ChangeList()


def test_what_agents_keep_for_themselves_stands_in_the_documents():
    page = Path(__file__).parents[2] / "docs" / "explanation" / "external-changes.md"
    text = page.read_text(encoding="utf-8")
    for agent, kept in AGENT_LOGS.items():
        assert f"({agent})" in text
        assert all(f"`{one}`" in text for one in kept)


def test_what_was_written_before_a_change_of_ours_is_told_though_that_has_covered_it(
    root, workspace, outside, session
):
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    outside.resnapshot()
    for number in (2, 4):
        (root / "a.txt").write_text(f"{number} by somebody else\n")
        read(workspace, session, "a.txt")
        write(workspace, session, "a.txt", f"{number + 1} through a door\n")
    (root / "b.txt").unlink()
    write(workspace, session, "b.txt", "anew\n")
    looked = outside.detect(PERSON)
    assert looked.operation is None
    assert [
        [(change.path.path, change.kind) for change in one.changes.changes] for one in looked.missed
    ] == [[("a.txt", "modify"), ("b.txt", "delete")], [("a.txt", "modify")]]
    assert looked.operations == looked.missed
    assert "-3 through a door" in workspace.diff(looked.missed[1])
    assert outside.detect(PERSON) == ChangeList()


def test_what_a_change_of_ours_has_covered_waits_for_a_look_at_that_file(
    root, workspace, outside, session
):
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("one\n")
    outside.resnapshot()
    (root / "a.txt").rename(root / "moved.txt")
    write(workspace, session, "a.txt", "anew\n")
    (root / "b.txt").write_text("two\n")
    looked = outside.detect(session, wanted=lambda path: path.path == "b.txt")
    assert told(looked) == {("b.txt", "modify")}
    assert looked.missed == ()
    looked = outside.detect(PERSON)
    assert told(looked) == {("moved.txt", "create")}
    (missed,) = looked.missed
    assert {(one.path.path, one.kind) for one in missed.changes.changes} == {("a.txt", "delete")}
    assert outside.detect(PERSON) == ChangeList()


def test_a_private_key_that_a_change_of_ours_has_covered_is_not_told(
    root, workspace, outside, session
):
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF\n" * 4
    key += "-----END PRIVATE KEY-----\n"
    (root / "a.txt").write_text(key)
    outside.resnapshot()
    (root / "a.txt").write_text("nothing\n")
    write(workspace, session, "a.txt", "mine\n")
    assert outside.detect(PERSON) == ChangeList()


def test_a_secret_that_another_process_saw_change_is_told_when_it_goes(
    root, open_here, outside, session
):
    (root / "id_rsa").write_text("first secret")
    other = open_here().external
    outside.resnapshot()
    other.resnapshot()
    (root / "id_rsa").write_text("other secret")
    assert outside.detect(session).unkept == ("id_rsa",)
    (root / "id_rsa").unlink()
    assert other.detect(session).unkept == ("id_rsa",)


def test_a_link_that_agents_may_not_read_is_said_to_have_changed(root, outside, session):
    (root / "id_rsa").symlink_to("first")
    outside.resnapshot()
    (root / "id_rsa").unlink()
    (root / "id_rsa").symlink_to("second")
    looked = outside.detect(session)
    assert (looked.operation, looked.unkept) == (None, ("id_rsa",))


def test_more_than_fits_is_told_and_not_kept(root, workspace, session):
    external = limited(workspace, memory=10)
    external.snapshot()
    for name in ("a", "b", "c"):
        (root / f"{name}.txt").write_text(name * 40)
    looked = external.detect(session)
    assert told(looked) == {(f"{name}.txt", "create") for name in "abc"}
    assert external.snapshot().kept < 3
    external.close()


def test_what_was_changed_in_other_roots_is_left_to_who_has_them(
    root, tmp_path, open_here, outside, session
):
    (tmp_path / "other").mkdir()
    both = open_here(roots=[str(root), str(tmp_path / "other")])
    outside.resnapshot()
    with both.draft(session, "write_file") as draft:
        for target in draft.open_all([str(root / "a.txt"), str(tmp_path / "other" / "b.txt")]):
            draft.write(target, "new\n")
        assert both.submit(draft, "two roots").status == "applied"
    assert outside.detect(PERSON) == ChangeList()


def test_whoever_asks_for_one_file_does_not_wait_for_a_look(root, outside, session):
    (root / "a.txt").write_text("one\n")
    outside.resnapshot()
    (root / "a.txt").write_text("two\n")
    path = WorkspacePath(str(root), "a.txt")
    found = []

    def ask():
        found.append(outside.detect_in(path, session))

    with outside._lock:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert found == [ChangeList()]
    assert told(outside.detect_in(path, session)) == {("a.txt", "modify")}


def test_waiting_ends_once_something_is_touched_or_it_is_time(root, outside):
    outside.resnapshot()
    if not outside.is_watched:
        pytest.skip("no notices on this file system")
    ends, end = os.pipe()
    with os.fdopen(ends, "rb"), os.fdopen(end, "wb", buffering=0) as stop:
        assert outside.wait(ends, 0) == "quiet"
        (root / "a.txt").write_text("one\n")
        assert outside.wait(ends, 60) == "touched"
        assert not outside.was_touched()
        stop.write(b"x")
        assert outside.wait(ends, None) == "stopped"


def test_what_is_ignored_by_the_next_snapshot_stays_known(root, workspace, outside, session):
    (root / "a.log").write_text("1")
    outside.resnapshot()
    (root / ".gitignore").write_text("*.log\n")
    outside.resnapshot()
    (root / "a.log").unlink()
    assert told(outside.detect(session)) == {("a.log", "delete")}
    workspace.undo(PERSON, dry_run=False)
    assert (root / "a.log").read_text() == "1"


def git(root, *words):
    for command in words:
        subprocess.run(["git", *command.split()], cwd=root, check=True, capture_output=True)


def with_a_hidden_folder(root):
    git(root, "init -q", "config user.email a@b", "config user.name a")
    (root / ".gitignore").write_text("*.log\ndata/\n")
    for name in ("data/mine", "run.log", "build/mine", "build/x", "pkg/out/mine"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("of the person")
    (root / "pkg/.gitignore").write_text("out/\n")
    (root / ".git/info/exclude").write_text("/excluded\n")
    (root / "excluded").write_text("of the person")


def branched(root):
    git(root, "add .gitignore pkg", "commit -qm one", "branch other")
    git(root, "rm -q .gitignore pkg/.gitignore", "commit -qm two", "checkout -q other")


LOOKS = {
    "a rule is dropped": (
        lambda _root: None,
        lambda root: (root / ".gitignore").write_text("dist/\n"),
    ),
    "the ignore file is removed": (
        lambda _root: None,
        lambda root: (root / ".gitignore").unlink(),
    ),
    "one below moves": (
        lambda root: (root / "lib").mkdir(),
        lambda root: (root / "pkg/.gitignore").rename(root / "lib/.gitignore"),
    ),
    "a rule brings one back": (
        lambda _root: None,
        lambda root: (root / ".gitignore").write_text("*.log\ndata/\n!run.log\n"),
    ),
    "the list of excluded files is emptied": (
        lambda _root: None,
        lambda root: (root / ".git/info/exclude").write_text(""),
    ),
    "another branch has no rules": (branched, lambda root: git(root, "checkout -q master")),
    "an ignored file is tracked": (lambda _root: None, lambda root: git(root, "add -f build/x")),
    "a folder becomes a repository": (
        lambda _root: None,
        lambda root: git(root, "init -q pkg", "-C pkg add -f out/mine"),
    ),
    "the repository goes": (lambda _root: None, lambda root: shutil.rmtree(root / ".git")),
}


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "scanned"])
@pytest.mark.parametrize("way", LOOKS)
def test_what_is_only_seen_now_was_not_created(root, workspace, session, way, watched):
    prepare, change = LOOKS[way]
    with_a_hidden_folder(root)
    git(root, "checkout -qB master")
    prepare(root)
    found = workspace.external
    found.resnapshot()
    if not watched:
        for snapshot in found._files._snapshots.values():
            snapshot.watcher.distrust()
    before = {
        str(one.relative_to(root)): one.read_bytes()
        for one in root.rglob("*")
        if one.is_file() and one.read_bytes() == b"of the person"
    }
    change(root)
    (root / "made").write_text("by the agent")
    looked = found.detect(session)
    (root / "again").write_text("by the agent")
    looks = (looked, found.detect(session))
    for one in looks:
        assert not {name for name, _ in told(one)} & before.keys()
        lost = () if one.lost is None else one.lost.changes.paths
        # What was committed has gone indeed.
        assert [x.path for x in lost] == [".git"] * (way == "the repository goes" and one is looked)
    assert ("made", "create") in told(looked)
    for one in reversed(looks):
        workspace.undo(PERSON, one.operation.id, dry_run=False)
    assert {name: (root / name).read_bytes() for name in before} == before
    assert not (root / "made").exists()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "scanned"])
def test_a_mount_is_no_change_of_files(root, outside, session, watched):
    (root / "in/deep").mkdir(parents=True)
    (root / "in/deep/a.txt").write_text("beneath")
    outside.resnapshot()
    if not watched:
        for snapshot in outside._files._snapshots.values():
            snapshot.watcher.distrust()
    if subprocess.run(["mount", "-t", "tmpfs", "none", root / "in"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (root / "in/other").write_text("of another file system")
        assert outside.detect(session) == ChangeList()
    finally:
        subprocess.run(["umount", "-l", root / "in"], check=True)
    assert outside.detect(session) == ChangeList()
    (root / "in/deep/a.txt").write_text("changed")
    assert told(outside.detect(session)) == {("in/deep/a.txt", "modify")}


def test_what_is_only_seen_now_can_be_undone_from_then_on(root, workspace, outside, session):
    (root / ".gitignore").write_text("*.log\n")
    (root / "keep.log").write_text("mine")
    outside.resnapshot()
    (root / ".gitignore").write_text("*.log\n!keep.log\n")
    outside.detect(session)
    outside.read_contents()
    (root / "keep.log").write_text("the agent's")
    looked = outside.detect(session)
    assert told(looked) == {("keep.log", "modify")}
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert (root / "keep.log").read_text() == "mine"


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "scanned"])
@pytest.mark.parametrize("there", [True, False], ids=["known folder", "new folder"])
def test_what_a_command_makes_and_hides_is_created_by_it(
    root, workspace, outside, session, there, watched
):
    if there:
        (root / "report").mkdir()
        (root / "report/old").write_text("old")
    outside.resnapshot()
    if not watched:
        for snapshot in outside._files._snapshots.values():
            snapshot.watcher.distrust()
    (root / "report").mkdir(exist_ok=True)
    (root / "report/new").write_text("new")
    (root / "a.log").write_text("new")
    (root / ".gitignore").write_text("report/\n*.log\n")
    looked = outside.detect(session)
    assert told(looked) == {
        (".gitignore", "create"),
        ("report/new", "create"),
        ("a.log", "create"),
    }
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert sorted(str(one.relative_to(root)) for one in root.rglob("*")) == (
        ["report", "report/old"] if there else []
    )


RULES = {
    "the file gets another rule": (".gitignore", ".gitignore", "*.log\nlogs/\n*.tmp\n"),
    "another file gets the same": (".gitignore", ".ignore", "*.log\n*.tmp\n"),
    "one below gets another rule": (".ignore", "pkg/.gitignore", "*.tmp\n*.log\n"),
    "Git's own list gets it": (".git/info/exclude", ".gitignore", "*.log\n*.tmp\n"),
    "that list gets another rule": (
        ".git/info/exclude",
        ".git/info/exclude",
        "*.log\nlogs\n*.tmp\n",
    ),
    "a folder is ignored by another rule": (".gitignore", ".gitignore", "logs\n*.log\n*.tmp\n"),
}


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "scanned"])
@pytest.mark.parametrize("way", RULES)
def test_what_was_ignored_before_a_command_as_it_is_after_it_is_not_created_by_it(
    root, workspace, outside, session, way, watched
):
    """A person's program writes on while an agent's command changes an ignore file."""
    before, after, rules = RULES[way]
    git(root, "init -q")
    (root / "pkg/in").mkdir(parents=True)
    (root / before).write_text("*.log\nlogs/\n")
    outside.resnapshot()
    if not watched:
        for snapshot in outside._files._snapshots.values():
            snapshot.watcher.distrust()
    (root / after).write_text(rules)
    (root / "pkg/logs").mkdir()
    persons = ["pkg/a.log", "pkg/in/a.log", "pkg/logs/today"]
    for name in (*persons, "pkg/in/made.tmp"):
        (root / name).write_text("new")
    looked = outside.detect(session)
    kind = "modify" if after in (before, ".git/info/exclude") else "create"
    assert told(looked) == {(after, kind), ("pkg/in/made.tmp", "create")}
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert all((root / name).exists() for name in persons)
    assert not (root / "pkg/in/made.tmp").exists()


def test_known_files_below_a_folder_that_is_hidden_are_still_told_of(
    root, workspace, outside, session
):
    (root / "report").mkdir()
    (root / "report/a").write_text("a")
    (root / "report/b").write_text("b")
    outside.resnapshot()
    (root / ".gitignore").write_text("report/\n")
    assert told(outside.detect(session)) == {(".gitignore", "create")}
    (root / "report/c").write_text("made by a build, and ignored")
    (root / "report/a").write_text("other")
    (root / "report/b").unlink()
    looked = outside.detect(session)
    assert told(looked) == {("report/a", "modify"), ("report/b", "delete")}
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert (root / "report/a").read_text() == "a"
    assert (root / "report/b").read_text() == "b"


@pytest.mark.parametrize("moved", ["report", "report/deep"])
def test_known_files_below_a_folder_that_is_hidden_are_told_of_when_that_is_moved(
    root, outside, session, monkeypatch, moved
):
    """A notice tells of the folder alone."""
    monkeypatch.setattr(file_snapshot, "_RACY", 0)
    (root / "report/deep/er").mkdir(parents=True)
    (root / "report/deep/er/a").write_text("a")
    outside.resnapshot()
    (root / ".gitignore").write_text("report/\n")
    assert told(outside.detect(session)) == {(".gitignore", "create")}
    assert told(outside.detect(session)) == set()
    (root / moved).rename(root / "mine")
    assert ("report/deep/er/a", "delete") in told(outside.detect(session))
    assert told(outside.detect(session)) == set()


@pytest.mark.parametrize("rights", [0o644, 0o600])
def test_a_file_that_nobody_has_read_loses_another_of_its_names(root, outside, session, rights):
    (root / "a").write_text("a")
    os.link(root / "a", root / "b")
    outside.resnapshot(contents=False)
    (root / "a").unlink()
    (root / "b").chmod(rights)
    (root / ".gitignore").write_text("x\n")  # So that all files are looked at.
    changed = {("b", "modify")} if rights == 0o600 else set()
    looked = outside.detect(session)
    assert told(looked) == {("a", "delete"), (".gitignore", "create"), *changed}
    (root / "c").write_text("c")
    assert told(outside.detect(session)) == {("c", "create")}


@pytest.mark.parametrize(
    ("then", "named", "found"),
    [
        (lambda folder: (folder / "new").write_text("new"), False, {("in/new", "create")}),
        (
            lambda folder: (folder / "new").write_text("new"),
            True,
            {("in", "modify"), ("in/new", "create")},
        ),
        (lambda folder: folder.chmod(0o750), False, {("in", "modify")}),
    ],
    ids=["a file comes", "in a folder that is named", "other rights"],
)
def test_rights_that_a_person_may_have_given_a_folder_while_they_were_asked_are_theirs(
    root, workspace, outside, session, then, named, found
):
    (root / "in").mkdir()
    outside.resnapshot()
    begun = time.time_ns()
    (root / "in").chmod(0o700)
    since = later_than(root)
    then(root / "in")
    looked = outside.detect(session, span=CallRange(since, 0, begun, lambda _path: named))
    assert told(looked) == found
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert (root / "in").stat().st_mode & 0o777 == (
        0o700 if found == {("in/new", "create")} else 0o755
    )
    assert not (root / "in/new").exists()
    rest = {("in", "modify")} - found
    assert told(outside.detect(PERSON)) == rest


def test_a_folder_that_came_back_with_rights_that_nobody_knew_is_seen_to_get_others(
    root, workspace, outside, session
):
    outside.resnapshot()
    (root / "in").mkdir()
    came = ChangeSet((FileChange(WorkspacePath(str(root), "in"), None, FOLDER),))
    kept = {FOLDER.content: compress(b"", 1)}
    workspace._store.adopt(new_operation(session, "undo", "undo", came), kept)
    assert told(outside.detect(session)) == set()
    (root / "in").chmod(0o500)
    assert told(outside.detect(session)) == {("in", "modify")}


def later_than(root):
    """A time later than that of whatever was changed until now, by the clock of the disk."""
    probe = root.parent / "probe"
    probe.write_text("")
    begun = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns <= begun + 2 * file_snapshot.COARSE:
        probe.write_text("")
    return begun + file_snapshot.COARSE


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        ("in", "mine", {("in", "delete"), ("mine", "create")}),
        ("in/a", "mine", set()),
        ("a", "in/mine", set()),
    ],
)
def test_both_names_of_what_was_moved_are_nobodys_though_a_call_that_may_not_run_yet_has_one(
    root, workspace, outside, session, old, new, more
):
    """That call would take a file back of which the person has the other name, or remove it."""
    (root / "in").mkdir()
    for name in ("a", "in/a", "in/b"):
        (root / name).write_text(name)
    outside.resnapshot()
    (root / old).rename(root / new)
    moved = [one for one in ("a", "in/a", "in/b") if f"{one}/".startswith(f"{old}/")]
    nobody = Session("nobody", Actor("program", "unknown"))
    unnamed = outside.detect(nobody, wanted=lambda path: not is_beneath(path.path, "in"))
    assert told(unnamed) == {
        *((one, "delete") for one in moved),
        *((one.replace(old, new), "create") for one in moved),
        *more,
    }
    assert told(outside.detect(session)) == set()


def test_whoever_missed_a_change_relies_on_no_notices_any_more(root, outside, session, monkeypatch):
    # As if the file had been left alone for a while: what was written just now is looked at anyway.
    monkeypatch.setattr(file_snapshot, "_RACY", 0)
    (root / "a.txt").write_text("x" * 100)
    outside.resnapshot()
    if not outside.is_watched:
        pytest.skip("no notices on this file system")
    assert outside.detect(session) == ChangeList()
    monkeypatch.setattr(observe, "_SCAN_EVERY", -1.0)
    with (root / "a.txt").open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as bytes_:
        outside.detect(session)
        bytes_[:5] = b"other"
        bytes_.flush()
        assert told(outside.detect(session)) == {("a.txt", "modify")}
        assert not outside.is_watched
        bytes_[:5] = b"third"
        bytes_.flush()
        assert told(outside.detect(session)) == {("a.txt", "modify")}


def test_without_notices_what_went_after_a_mark_is_found_and_what_went_before_is_the_persons(
    root, outside, session
):
    for name in ("before/a.txt", "after/deep/a.txt", "b.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "before" / "keep.txt").write_text("keep")
    outside.resnapshot()
    for snapshot in outside._files._snapshots.values():
        snapshot.watcher.distrust()
    (root / "before" / "a.txt").unlink()
    outside.mark()
    shutil.rmtree(root / "after")
    outside.resnapshot()
    assert told(outside.detect(session)) == {
        (name, "delete") for name in ("after", "after/deep", "after/deep/a.txt")
    }


def test_a_file_or_link_that_goes_while_it_is_read_is_left_for_the_next_look(
    root, outside, session, monkeypatch
):
    outside.resnapshot()
    (root / "a.txt").write_text("a")
    (root / "link").symlink_to("a.txt")
    read, read_link = Root.read, Root.read_link

    def gone(one, path, **how):
        found = read(one, path, **how)
        (root / path).unlink()
        return found

    def other(one, path):
        found = read_link(one, path)
        (root / path).unlink()
        (root / path).symlink_to("elsewhere")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Root, "read", gone)
        patch.setattr(Root, "read_link", other)
        assert outside.detect(session) == ChangeList()
    assert told(outside.detect(session)) == {("link", "create")}


@pytest.mark.parametrize("when", ["first", "later"])
def test_a_pipe_that_goes_is_told_to_whoever_looks_and_is_not_to_be_had_back(root, open_here, when):
    person = Session("guard", Actor("program", "unknown"))
    (root / "d").mkdir()
    (root / "a").write_text("a\n")
    workspace = open_here()
    if when != "later":
        os.mkfifo(root / "d" / "pipe")
    workspace.external.resnapshot()
    if when == "later":
        os.mkfifo(root / "d" / "pipe")
        assert workspace.external.detect(person) == ChangeList()
    assert workspace.external.detect(person) == ChangeList()
    (root / "a").write_text("b\n")
    shutil.rmtree(root / "d")
    found = workspace.external.detect(person)
    assert found.unkept == ("d/pipe",)
    assert workspace.external.detect(person) == ChangeList()
    assert "d/pipe" in found.operation.note
    done = workspace.undo(PERSON, found.operation.id, dry_run=False)
    assert "d/pipe" in {one.path for one in done.left}
    assert ((root / "a").read_text(), [*(root / "d").iterdir()]) == ("a\n", [])


@pytest.mark.parametrize("what", ["a pipe", "an ignored file", "an ignored folder"])
def test_a_file_that_comes_where_something_was_that_is_not_looked_at_goes_with_an_undo(
    root, workspace, outside, session, what
):
    (root / ".ignore").write_text("*.log\nout/\n")
    place = {"a pipe": "pipe", "an ignored file": "a.log", "an ignored folder": "out/x"}[what]
    (root / "out").mkdir()
    os.mkfifo(root / place) if what == "a pipe" else (root / place).write_text("mine\n")
    outside.resnapshot()
    shutil.rmtree(root / "out")
    (root / place).unlink(missing_ok=True)
    outside.detect(PERSON)
    (root / ".ignore").unlink()
    (root / place).parent.mkdir(exist_ok=True)
    (root / place).write_text("made\n")
    workspace.undo(PERSON, outside.detect(session).operation.id, dry_run=False)
    assert [*root.iterdir()] == [root / ".ignore"]


def test_an_ignored_folder_that_gets_other_rights_was_there_before(
    root, workspace, outside, session
):
    (root / "d").mkdir()
    (root / "d/known").write_text("known\n")
    outside.resnapshot()
    (root / ".ignore").write_text("d/\n")
    outside.detect(PERSON)
    (root / "d/mine").write_text("mine\n")
    for mode in (0o700, 0o750):
        (root / "d").chmod(mode)
        assert told(outside.detect(PERSON)) == {("d", "modify")}
    (root / ".ignore").unlink()
    workspace.undo(PERSON, outside.detect(session).operation.id, dry_run=False)
    assert (root / "d/mine").read_text() == "mine\n"


@pytest.mark.parametrize("what", ["moved", "inner moved", "exchanged", "removed"])
def test_known_files_of_a_folder_that_is_ignored_by_now_are_seen_to_go_with_it(
    root, outside, session, monkeypatch, what
):
    monkeypatch.setattr(file_states, "is_racy", lambda _stamp, _now: False)
    (root / "d/e").mkdir(parents=True)
    (root / "d/e/known").write_text("known\n")
    (root.parent / "other/e").mkdir(parents=True)
    (root.parent / "other/e/x").write_text("x\n")
    outside.resnapshot()
    (root / ".ignore").write_text("d/\n")
    outside.detect(session)
    if what == "removed":
        shutil.rmtree(root / "d")
    elif what == "inner moved":
        (root / "d/e").rename(root / "moved")
    else:
        (root / "d").rename(root / "moved")
    if what == "exchanged":
        (root.parent / "other").rename(root / "d")
    assert ("d/e/known", "delete") in told(outside.detect(PERSON))
    (root / ".ignore").unlink()
    assert "d/e/known" not in {path for path, _ in told(outside.detect(session))}


def test_an_ignored_file_that_is_tracked_by_the_time_that_it_comes_again_is_seen(
    root, outside, session
):
    (root / ".gitignore").write_text("*.log\n")
    git(root, "init -q")
    outside.resnapshot()
    (root / "a.log").write_text("1\n")
    assert told(outside.detect(session)) == set()
    git(root, "add -f a.log")
    (root / "a.log").unlink()
    outside.detect(PERSON)
    (root / "a.log").write_text("2\n")
    assert told(outside.detect(session)) == {("a.log", "create")}


def test_a_pipe_that_came_and_went_between_two_looks_is_told_to_nobody(root, outside, session):
    os.mkfifo(root / "pipe")
    (root / "pipe").unlink()
    assert outside.detect(session) == ChangeList()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("place", ["a", "d"])
def test_a_pipe_in_place_of_a_file_or_folder_is_a_removal(root, workspace, session, place, late):
    (root / "a").write_text("a\n")
    (root / "d").mkdir()
    (root / "d" / "k").write_text("k\n")
    workspace.external.resnapshot()
    shutil.rmtree(root / "d") if place == "d" else (root / "a").unlink()
    (root / "other").write_text("made\n")
    found = workspace.external.detect(session).operation if late else None
    os.mkfifo(root / place)
    found = found or workspace.external.detect(session).operation
    gone = {str(path) for one in workspace.log() for path in one.changes.paths}
    assert gone >= ({"d", "d/k"} if place == "d" else {"a"})
    # All else goes back, and what stands there is named.
    done = workspace.undo(PERSON, found.id, dry_run=False)
    assert not (root / "other").exists()
    assert place in {one.path for one in done.left}
    assert (root / place).is_fifo()


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("place", ["a", "d"])
def test_a_pipe_that_had_taken_the_place_of_a_file_or_folder_and_goes_is_told_once(
    root, workspace, session, place, scanned
):
    (root / "a").write_text("a\n")
    (root / "d").mkdir()
    (root / "d" / "k").write_text("k\n")
    workspace.external.resnapshot()
    shutil.rmtree(root / "d") if place == "d" else (root / "a").unlink()
    os.mkfifo(root / place)
    if scanned:
        (root / ".gitignore").write_text("*.log\n")
    assert place in workspace.external.detect(session).unkept
    assert workspace.external.detect(session) == ChangeList()
    (root / place).unlink()
    found = workspace.external.detect(session)
    assert found.unkept == (place,)
    assert workspace.external.detect(session) == ChangeList()


def test_what_moves_with_its_folder_is_not_read_again(
    root, workspace, outside, session, monkeypatch
):
    (root / "old").mkdir()
    for number in range(20):
        (root / "old" / f"{number}.txt").write_text(f"{number}\n")
    monkeypatch.setattr(file_states, "is_racy", lambda _stamp, _now: False)
    outside.snapshot()
    outside.resnapshot()
    (root / "old").rename(root / "new")
    (root / "new" / "7.txt").write_text("seven\n")
    (root / "new" / "8.txt").rename(root / "new" / ".env")
    with monkeypatch.context() as patch:
        read = []
        whole = Root.read
        patch.setattr(
            Root, "read", lambda self, path, **how: read.append(path) or whole(self, path, **how)
        )
        looked = outside.detect(session)
    assert read == ["new/7.txt"]
    found = told(looked)
    assert {("old/1.txt", "delete"), ("new/1.txt", "create"), ("new/7.txt", "create")} <= found
    assert "new/.env" in {one.path.path for one in looked.lost.changes.changes}
    (after,) = [x.after for x in looked.operation.changes.changes if x.path.path == "new/7.txt"]
    assert after.content == content_id(b"seven\n")
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert {f"old/{number}.txt" for number in range(20)} >= {
        str(one.relative_to(root)) for one in (root / "old").iterdir()
    }
    assert (root / "old" / "7.txt").read_text() == "7\n"


def test_a_folder_that_moved_after_a_person_took_a_file_from_it_comes_back_with_its_rights(
    root, workspace, outside, session
):
    (root / "shut").mkdir(0o700)
    for name in ("a", "b"):
        (root / "shut" / name).write_text(f"{name}\n" * 9)
    outside.resnapshot()
    (root / "shut" / "b").write_text("other\n")
    outside.detect(session)
    (root / "shut" / "b").rename(root / "taken")
    outside.detect(PERSON)
    (root / "shut").rename(root / "moved")
    outside.detect(session)
    done = workspace.undo_selected(PERSON, Selection(session=session), partly=True)
    assert (root / "shut").stat().st_mode & 0o777 == 0o700
    assert (root / "taken").read_text() == "other\n"
    assert any("shut/b" in note for note in done.notes)


def test_a_socket_that_keeps_a_folder_is_named(root, workspace, outside, session):
    (root / "kept").mkdir()
    (root / "kept" / "a").write_text("a\n")
    outside.resnapshot()
    (root / "kept").rename(root / "moved")
    outside.detect(session)
    os.mkfifo(root / "moved" / "pipe")
    done = workspace.undo_selected(PERSON, Selection(session=session))
    assert "the folder moved stays: it is not empty: moved/pipe (no file)" in str(done.notes)
    assert (root / "moved" / "pipe").is_fifo()
    assert (root / "kept" / "a").read_text() == "a\n"


def test_what_cannot_go_back_is_named_also_where_all_else_is_as_it_should_be(
    root, workspace, outside, session
):
    outside.resnapshot()
    none = frozenset()
    outside.attend("call", CallFiles(none, none, none, False, True, NamedFiles()), ["call"])
    (root / "made").write_text("made\n")
    os.mkfifo(root / "pipe")
    outside.detect(session)
    (root / "made").unlink()
    with pytest.raises(FilepactError, match="pipe") as caught:
        workspace.undo_selected(PERSON, Selection(session=session))
    assert caught.value.code != "NO_CHANGE"
    assert (root / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["plain", os.fsdecode(b"no text \xfe")])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "scanned"])
def test_all_that_a_folder_held_is_told_when_it_goes(root, outside, session, name, watched):
    (root / name / "in").mkdir(parents=True)
    for one in ("a", "in/b"):
        (root / name / one).write_text(one)
    outside.resnapshot()
    if not watched:
        for snapshot in outside._files._snapshots.values():
            snapshot.watcher.distrust()
    shutil.rmtree(root / name)
    gone = (name, f"{name}/in", f"{name}/a", f"{name}/in/b")
    assert told(outside.detect(session)) == {(one, "delete") for one in gone}


def test_a_known_file_that_is_moved_to_where_nobody_looked_was_not_there_before(
    root, workspace, outside, session
):
    """A command removes what ignore files named, and these, and puts something else there."""
    (root / "in").mkdir()
    (root / "in/a").write_text("a")
    (root / ".ignore").write_text("out/\n")
    (root / "out").mkdir()
    (root / "out/old").write_text("old")
    outside.resnapshot()
    (root / ".ignore").unlink()
    shutil.rmtree(root / "out")
    (root / "in").rename(root / "out")
    looked = outside.detect(session)
    assert {("in/a", "delete"), ("out/a", "create"), (".ignore", "delete")} <= told(looked)
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert (root / "in/a").read_text() == "a"
    assert not (root / "out/a").exists()


def test_an_ignored_file_that_a_change_of_ours_has_made_known_is_looked_at_from_then_on(
    root, workspace, outside, session, monkeypatch
):
    monkeypatch.setattr(file_snapshot, "_RACY", 0)
    (root / ".ignore").write_text("out/\n")
    (root / "out/deep").mkdir(parents=True)
    (root / "out/deep/a").write_text("old\n")
    outside.resnapshot()
    assert told(outside.detect(session)) == set()
    workspace.reader(session).document("out/deep/a")
    write(workspace, session, "out/deep/a", "ours\n")
    for _ in range(2):
        assert told(outside.detect(session)) == set()
    (root / "out/deep/a").write_text("of a person\n")
    looked = outside.detect(PERSON)
    assert told(looked) == {("out/deep/a", "modify")}
    workspace.undo(PERSON, looked.operation.id, dry_run=False)
    assert (root / "out/deep/a").read_text() == "ours\n"


@pytest.mark.parametrize("there", [False, True])
def test_of_several_pipes_each_is_told_to_whoever_may_have_made_it(root, outside, session, there):
    if there:
        os.mkfifo(root / "there")
    outside.resnapshot()
    none = frozenset()
    outside.attend("call", CallFiles(none, none, none, False, True, NamedFiles()), ["call"])
    os.mkfifo(root / "one")
    os.mkfifo(root / "other")
    assert outside.detect(session, wanted=lambda path: path.path == "one").unkept == ("one",)
    assert outside.detect(session).unkept == ("other",)

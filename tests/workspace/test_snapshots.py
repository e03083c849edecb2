"""A snapshot that is kept tells the next process what happened while nobody looked."""

import os

import apsw
import pytest

from filepact.app import open_observed, open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY, Actor, Session
from filepact.store.snapshots import SqliteSnapshots
from tests.unprivileged import unprivileged
from tests.workspace.acting import write

AGENT = Session("a", Actor("agent", "some-agent"))
NOBODY = Session("n", Actor("program", "unknown"))
KEY = f"-----BEGIN {'PRIVATE'} KEY-----\n" + "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n" * 12
KEY += f"-----END {'PRIVATE'} KEY-----\n"


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "root"
    made.mkdir()
    (made / "a.txt").write_text("one\n")
    (made / "b.bin").write_bytes(b"\0\1\2")
    (made / "sub" / "empty").mkdir(parents=True)
    return made


@pytest.fixture
def begin(root, tmp_path):
    def begin():
        state = str(tmp_path / "state")
        opened = open_observed((str(root),), state_dir=state, settings=Settings())
        opened.external.snapshot()
        return opened

    return begin


def kinds(operation):
    return {(one.path.path, one.kind) for one in operation.changes.changes}


def stored(tmp_path):
    (found,) = (tmp_path / "state" / "snapshots").glob("*.db")
    return found


def test_what_happened_while_nothing_ran_is_found_and_can_be_undone(root, begin):
    begin().close()
    (root / "a.txt").write_text("two\n")
    (root / "b.bin").unlink()
    (root / "sub" / "empty" / "new.txt").write_text("new")
    with begin() as workspace:
        found = workspace.external.detect(NOBODY, tool=BY_NOBODY)
        assert kinds(found.operation) == {
            ("a.txt", "modify"),
            ("b.bin", "delete"),
            ("sub/empty/new.txt", "create"),
        }
        assert found.operation.directories == ()
        workspace.undo(NOBODY, found.operation.id)
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "b.bin").read_bytes() == b"\0\1\2"
    assert os.listdir(root / "sub" / "empty") == []


def test_what_was_reported_before_is_not_found_again(root, begin):
    with begin() as workspace:
        (root / "a.txt").write_text("two\n")
        assert workspace.external.detect(AGENT, tool="Bash").operation is not None
    with begin() as workspace:
        assert workspace.external.detect(NOBODY).operations == ()


def test_what_came_through_the_journal_meanwhile_is_no_change_of_others(root, begin, tmp_path):
    begin().close()
    with open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=Settings()) as other:
        write(other, AGENT, "a.txt", "by a tool\n")
    with begin() as workspace:
        assert workspace.external.detect(NOBODY).operations == ()


def test_a_file_that_changed_within_the_clock_of_its_file_system_is_read_again(root, begin):
    begin().close()
    before = (root / "a.txt").stat()
    (root / "a.txt").write_text("two\n")
    os.utime(root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    with begin() as workspace:
        found = workspace.external.detect(NOBODY)
        assert kinds(found.operation) == {("a.txt", "modify")}


@pytest.mark.parametrize("damage", [b"", b"no database at all\n" * 100])
def test_a_damaged_snapshot_is_taken_anew(root, begin, tmp_path, damage):
    begin().close()
    stored(tmp_path).write_bytes(damage)
    with begin() as workspace:
        assert workspace.external.detect(NOBODY).operations == ()
        (root / "a.txt").write_text("two\n")
        assert kinds(workspace.external.detect(AGENT).operation) == {("a.txt", "modify")}
    with begin() as workspace:
        assert workspace.external.detect(NOBODY).operations == ()


def test_stored_bytes_that_are_not_those_of_the_file_are_given_to_nobody(root, begin, tmp_path):
    begin().close()
    database = apsw.Connection(str(stored(tmp_path)))
    database.execute("UPDATE content SET packed = (SELECT max(packed) FROM content)")
    database.close()
    (root / "a.txt").write_text("two\n")
    (root / "b.bin").write_bytes(b"\3")
    with begin() as workspace:
        found = workspace.external.detect(NOBODY)
        assert len(found.unkept) == 1
        assert len(found.operation.changes.changes) == 1


def test_that_a_folder_is_closed_to_everybody_is_known_to_the_next_process(root, begin):
    (root / "sub").chmod(0)

    def look():
        with begin() as workspace:
            return workspace.external.detect(NOBODY, tool=BY_NOBODY).operation

    assert unprivileged(look) is None
    assert unprivileged(look) is None
    (root / "sub").chmod(0o755)
    assert kinds(unprivileged(look)) >= {("sub", "modify")}


def test_another_folder_in_the_place_of_the_root_is_no_change_of_its_files(root, begin):
    begin().close()
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    (root / "other.txt").write_text("other")
    with begin() as workspace:
        assert workspace.external.detect(NOBODY).operations == ()


def test_no_secret_is_stored(root, begin, tmp_path):
    (root / "key.txt").write_text(KEY)
    (root / ".env").write_text("TOKEN=abcdefgh")
    with begin() as workspace:
        (root / "later.txt").write_text(KEY)
        workspace.external.detect(AGENT)
    data = b"".join(one.read_bytes() for one in (tmp_path / "state" / "snapshots").iterdir())
    assert b"TOKEN" not in data
    store = SqliteSnapshots(str(stored(tmp_path)))
    held = {path.path: file.held for path, file in store.load().files}
    store.close()
    assert held["a.txt"] > 0
    assert held["key.txt"] == held["later.txt"] == held[".env"] == 0


def test_contents_that_nobody_needs_are_given_up(root, begin, tmp_path):
    with begin() as workspace:
        for number in range(5):
            (root / "a.txt").write_text(f"{number}\n")
            workspace.external.detect(AGENT)
    database = apsw.Connection(str(stored(tmp_path)))
    assert database.execute("SELECT count(*) FROM content").get == 2
    database.close()


def test_files_that_are_left_are_found_by_the_next_look(root, begin):
    with begin() as workspace:
        (root / "a.txt").write_text("two\n")
        (root / "b.bin").write_bytes(b"\4")
        first = workspace.external.detect(
            AGENT, tool="Bash", wanted=lambda path: path.path == "a.txt"
        )
        assert kinds(first.operation) == {("a.txt", "modify")}
        second = workspace.external.detect(AGENT, tool="Bash")
        assert kinds(second.operation) == {("b.bin", "modify")}


def test_an_undo_that_names_nothing_passes_by_what_no_agent_did(root, begin):
    with begin() as workspace:
        (root / "a.txt").write_text("by the agent\n")
        workspace.external.detect(AGENT, tool="Bash")
        (root / "b.bin").write_bytes(b"by a person")
        workspace.external.detect(NOBODY, tool=BY_NOBODY)
        workspace.undo(NOBODY)
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "b.bin").read_bytes() == b"by a person"


def test_a_store_that_cannot_be_written_only_means_that_nothing_is_kept(root, begin, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "snapshots").write_text("in the way")
    with begin() as workspace:
        (root / "a.txt").write_text("two\n")
        found = workspace.external.detect(AGENT)
        workspace.undo(AGENT, found.operation.id)
    assert (root / "a.txt").read_text() == "one\n"


def test_what_was_ignored_is_remembered_as_having_been_there(root, begin):
    (root / ".gitignore").write_text("data/\n*.log\n")
    (root / "data").mkdir()
    (root / "data/mine").write_text("of the person")
    (root / "run.log").write_text("of the person")
    begin().close()
    (root / "late.log").write_text("made while nothing looked, and ignored then")
    with begin() as workspace:
        workspace.external.detect(NOBODY, tool=BY_NOBODY)
        (root / "later.log").write_text("the same")
        workspace.external.detect(NOBODY, tool=BY_NOBODY)
    with begin() as workspace:
        (root / ".gitignore").unlink()
        (root / "new").write_text("new")
        found = workspace.external.detect(AGENT, tool="Bash")
        assert kinds(found.operation) == {(".gitignore", "delete"), ("new", "create")}
        assert found.lost is None

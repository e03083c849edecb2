"""Which files are opened as a journal, and what is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.domain.document import content_id
from filepact.errors import FilepactError, StateFailedError
from filepact.fs import kernel
from filepact.fs.kernel import FileSync
from filepact.store.connection import Database
from filepact.store.integrity import check_journal, salvage
from filepact.store.schema import MIGRATIONS, migrate
from filepact.store.sqlite import SqliteStore
from tests.needs import LANDLOCK
from tests.store.making import OTHER, ROOT, change, contents, do, operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION_1 = Path(__file__).with_name("version_1.sql")
"""A journal of the first released tables; never to be changed."""


def refused(path: Path) -> FilepactError:
    with pytest.raises(FilepactError) as caught:
        SqliteStore(str(path))
    assert str(path.parent) not in caught.value.report()
    return caught.value


def test_a_new_journal_is_for_its_owner_alone(path: Path) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    assert {file.name for file in path.parent.iterdir()} > {"journal.db", "journal.db-wal"}
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    store.close()
    store.close()


@pytest.mark.parametrize(
    "junk", [b"x", b"not a database" * 10, b"\0" * 5_000, b"SQLite format 3\0"]
)
def test_what_is_no_database_is_left_alone(path: Path, junk: bytes) -> None:
    path.write_bytes(junk)
    assert refused(path).code == "STATE_ERROR"
    assert path.read_bytes() == junk


@pytest.mark.parametrize("name", ["journal.db", "journal.db-wal", "journal.db-shm"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_journal_that_is_taken_away_under_a_running_program_takes_nothing_more(
    path: Path, name: str, *, replaced: bool
) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1", path="a")
    (path.parent / name).rename(path.parent / "elsewhere")
    if replaced:
        (path.parent / name).write_bytes(b"")
    with pytest.raises(FilepactError) as caught:
        do(store, None, b"2", path="b")
    assert caught.value.code == "STATE_ERROR"
    (path.parent / name).unlink(missing_ok=True)
    (path.parent / "elsewhere").rename(path.parent / name)
    do(store, None, b"3", path="c")
    store.close()
    assert len(SqliteStore(str(path)).operations()) == 2


def test_a_removed_log_keeps_others_out_until_its_program_has_ended(path: Path) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    path.with_name("journal.db-wal").unlink()
    assert refused(path).code == "STATE_ERROR"
    store.close()
    store = SqliteStore(str(path))
    assert do(store, None, b"2").seq == 1
    store.close()


@pytest.mark.parametrize("names", [("",), ("", "-wal", "-shm"), ("-shm",)])
def test_who_lost_the_journal_does_no_harm_to_the_one_in_its_place(
    path: Path, names: tuple[str, ...]
) -> None:
    early = SqliteStore(str(path))
    do(early, None, b"1", path="a")
    for name in names:
        path.with_name(path.name + name).unlink()
    late = SqliteStore(str(path))
    do(late, None, b"2", path="b")
    with pytest.raises(FilepactError):
        do(early, None, b"3", path="c")
    early.close()
    assert do(late, None, b"4", path="d").state == "applied"
    late.close()
    again = SqliteStore(str(path))
    assert [one.changes.changes[0].path.path for one in again.operations()][:2] == ["d", "b"]
    assert again._database._connection.pragma("integrity_check") == "ok"
    again.close()


def test_a_journal_that_is_emptied_under_a_running_program_takes_nothing_and_is_put_back(
    path: Path,
) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    os.truncate(path, 0)
    assert refused(path).code == "STATE_ERROR"
    with pytest.raises(FilepactError) as caught:
        do(store, None, b"2", path="b")
    assert caught.value.code == "STATE_ERROR"
    store.close()
    assert len(SqliteStore(str(path)).operations()) == 1


@pytest.mark.parametrize("emptied", [True, False])
def test_a_log_that_does_not_fit_the_journal_is_left_alone(path: Path, *, emptied: bool) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    log = path.with_name("journal.db-wal")
    kept = log.read_bytes()
    store.close()
    if emptied:
        path.write_bytes(b"")
    else:
        kept = b"garbage!" + kept[8:]
    file = path.read_bytes()
    log.write_bytes(kept)
    assert refused(path).code == "STATE_ERROR"
    assert not check_journal(str(path)).sound
    assert (path.read_bytes(), log.read_bytes()) == (file, kept)


def test_a_file_in_which_nothing_was_written_yet_is_sound(path: Path) -> None:
    path.touch()
    assert check_journal(str(path)).sound


def test_a_log_that_is_overwritten_under_a_running_program_is_noticed(path: Path) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    with path.with_name("journal.db-wal").open("r+b") as log:
        log.write(b"garbage!" * 4)
    with pytest.raises(FilepactError) as caught:
        do(store, None, b"2", path="b")
    assert caught.value.code == "STATE_ERROR"
    before = path.read_bytes()
    store.close()
    # What the log has now does not get into the file.
    assert path.read_bytes() == before
    assert salvage(str(path)).operations == 1


READER = """
import os, sys
from filepact.errors import FilepactError
from filepact.fs.sandbox import CHANGE, READ, restrict
from filepact.store.sqlite import SqliteStore
state = os.open(sys.argv[1], os.O_RDONLY)
rest = [os.open(one, os.O_RDONLY) for one in (sys.prefix, sys.base_prefix, "/usr", "/lib")]
restrict([(one, READ) for one in (state, *rest)])
store = SqliteStore(os.path.join(sys.argv[1], "journal.db"))
[one] = store.operations()
print(store.content(one.changes.changes[0].after.content).decode())
try:
    store.finish(one.id, state="applied")
except FilepactError as error:
    print(error.code)
"""


@LANDLOCK
@pytest.mark.parametrize("left", ["nothing", "log", "log and memory"])
def test_a_journal_that_cannot_be_written_is_read(path: Path, left: str) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"text")
    names = {"nothing": (), "log": ("-wal",), "log and memory": ("-wal", "-shm")}[left]
    kept = {name: path.with_name(path.name + name).read_bytes() for name in names}
    before = path.read_bytes()
    store.close()
    if kept:
        path.write_bytes(before)
    for name, data in kept.items():
        path.with_name(path.name + name).write_bytes(data)
    told = subprocess.run(
        [sys.executable, "-c", READER, str(path.parent)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if left == "log":
        # SQLite has no place to put its index of the log.
        assert "STATE_ERROR" in told.stderr or "StateFailedError" in told.stderr
    else:
        assert told.stdout.split() == ["text", "STATE_ERROR"], told.stderr


def test_a_damaged_journal_is_an_error_and_not_overwritten(path: Path) -> None:
    store = SqliteStore(str(path))
    for number in range(50):
        do(store, None, b"%d" % number * 99, path=f"{number}")
    store.close()
    data = bytearray(path.read_bytes())
    data[4_096:] = b"\xa5" * (len(data) - 4_096)
    path.write_bytes(data)
    with pytest.raises(FilepactError) as caught:
        SqliteStore(str(path)).operations()
    assert caught.value.code == "STATE_ERROR"
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "making",
    ["CREATE TABLE theirs (a)", "PRAGMA user_version = 3", "PRAGMA application_id = 7"],
)
def test_a_database_of_another_program_is_left_alone(path: Path, making: str) -> None:
    database = apsw.Connection(str(path))
    database.execute(making)
    database.close()
    before = path.read_bytes()
    assert refused(path).code == "STATE_ERROR"
    assert path.read_bytes() == before


def test_a_journal_of_a_newer_version_is_left_alone(path: Path) -> None:
    SqliteStore(str(path)).close()
    database = apsw.Connection(str(path))
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    before = path.read_bytes()
    error = refused(path)
    assert error.code == "STATE_ERROR"
    assert error.details == {"version": len(MIGRATIONS) + 1, "known": len(MIGRATIONS)}
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert refused(tmp_path / "none" / "journal.db").code == "STATE_ERROR"


def test_a_place_that_is_a_folder_is_an_error(path: Path) -> None:
    path.mkdir()
    assert refused(path).code == "STATE_ERROR"


def test_a_closed_journal_says_so(path: Path) -> None:
    store = SqliteStore(str(path))
    store.close()
    for act in (store.last_seq, store.unfinished, lambda: do(store, None, b"1")):
        with pytest.raises(FilepactError) as caught:
            act()
        assert caught.value.code == "STATE_ERROR"


def test_a_full_disk_is_an_error_and_the_journal_goes_on(path: Path) -> None:
    store = SqliteStore(str(path))
    pages = store._database._connection.pragma("page_count")
    store._database._connection.pragma("max_page_count", pages)
    noise = b"".join(content_id(b"%d" % n).encode() for n in range(500))
    with pytest.raises(FilepactError) as caught:
        do(store, None, noise)
    assert caught.value.code == "STATE_ERROR"
    store._database._connection.pragma("max_page_count", 1_000_000)
    assert do(store, None, noise).seq == 1
    store.close()


def test_a_disk_that_is_full_before_there_is_a_journal_is_named_as_such() -> None:
    database = apsw.Connection(":memory:")
    database.pragma("max_page_count", 5)
    with pytest.raises(apsw.FullError):
        migrate(database)


def test_who_waits_too_long_is_told(path: Path) -> None:
    SqliteStore(str(path)).close()
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    impatient = Database(str(path), patience=0.05)
    with pytest.raises(FilepactError) as caught, impatient.writing(durable=True):
        raise AssertionError("not reached")
    assert caught.value.code == "TIMEOUT"
    with impatient.reading() as view:  # Readers do not wait for a writer.
        assert view.value("SELECT count(*) FROM operation") == 0
    impatient.shorten_log()
    holder.execute("ROLLBACK")
    with impatient.writing(durable=True) as view:
        view.run("INSERT INTO root (path) VALUES (x'2f')")
    impatient.close()
    holder.close()


def test_transactions_that_wait_for_the_disk_reach_it_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(str(path), disk=FileSync())
    real, synchronised, begun, go = kernel.data_sync, [], Event(), Event()

    def slow(descriptor: int) -> None:
        begun.set()
        assert go.wait(60)
        real(descriptor)
        synchronised.append(database._commits)

    def write(number: int) -> int:
        name = b"/%d" % number
        database.write(
            lambda tx: tx.run("INSERT INTO root (path) VALUES (?)", (name,)), durable=True
        )
        # On the disk, or at least asked for, before anybody is told.
        return synchronised[-1]

    def written() -> int:
        return int(database.read(lambda tx: tx.value("SELECT count(*) FROM root")))

    monkeypatch.setattr(kernel, "data_sync", slow)
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(write, 0)]
        assert begun.wait(60)
        # The others are not kept from writing while the disk is busy with the first.
        calls += [pool.submit(write, number) for number in range(1, 8)]
        late = time.monotonic() + 60
        while written() < 8:
            assert time.monotonic() < late
        assert not any(call.done() for call in calls)
        go.set()
        assert [call.result() >= number for number, call in enumerate(calls, 1)]
    assert len(synchronised) == 2
    database.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FileSync]:
    found = FileSync()
    with (tmp_path / "any").open("wb") as file:
        if not found.begin(file.fileno()):
            pytest.skip("the system cannot do it")
        found.wait()
    yield found
    found.close()


@pytest.mark.parametrize("able", [True, False])
def test_something_is_done_while_the_disk_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, disk: FileSync, able: bool
) -> None:
    database = Database(str(path), disk=disk)
    order: list[str] = []
    real, waited = kernel.data_sync, disk.wait

    def synchronised(descriptor: int) -> None:
        order.append("synchronised")
        real(descriptor)

    def wait() -> None:
        waited()
        order.append("waited")

    monkeypatch.setattr(kernel, "data_sync", synchronised)
    monkeypatch.setattr(disk, "wait", wait)
    if not able:
        monkeypatch.setattr(disk, "_calls", None)
    for number in range(3):
        name = b"/%d" % number
        database.write(
            lambda tx, name=name: tx.run("INSERT INTO root (path) VALUES (?)", (name,)),
            durable=True,
            meanwhile=lambda: order.append("meanwhile"),
        )
    # The first is put there as where the system cannot do more: many a process has no second.
    ends = "waited" if able else "synchronised"
    assert order == ["meanwhile", "synchronised", *["meanwhile", ends] * 2]
    database.close()


def test_a_failure_of_the_disk_that_was_waited_for_is_told_and_remembered(
    path: Path, monkeypatch: pytest.MonkeyPatch, disk: FileSync
) -> None:
    database = Database(str(path), disk=disk)
    waited, done = disk.wait, []

    def failing() -> None:
        waited()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk, "wait", failing)
    database.write(lambda tx: tx.run("DELETE FROM root"), durable=True)
    for told in ("Input/output error", "could not be written to its disk"):
        with pytest.raises(StateFailedError, match=told):
            database.write(
                lambda tx: tx.run("DELETE FROM root"),
                durable=True,
                meanwhile=lambda: done.append(1),
            )
    assert done == [1]
    database.close()


def test_who_waits_for_another_s_turn_at_the_disk_does_something_until_then(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(str(path), disk=FileSync())
    real, begun, go, done = kernel.data_sync, Event(), Event(), Event()

    def slow(descriptor: int) -> None:
        begun.set()
        assert go.wait(60)
        real(descriptor)

    def write(name: bytes, meanwhile: Callable[[], None] | None) -> None:
        database.write(
            lambda tx: tx.run("INSERT INTO root (path) VALUES (?)", (name,)),
            durable=True,
            meanwhile=meanwhile,
        )

    monkeypatch.setattr(kernel, "data_sync", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(write, b"/1", None)
        assert begun.wait(60)
        second = pool.submit(write, b"/2", done.set)
        assert done.wait(60)
        assert not first.done()
        assert not second.done()
        go.set()
        first.result()
        second.result()
    database.close()


def test_after_the_disk_has_failed_once_nothing_is_said_to_be_durable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(str(path), disk=FileSync())

    def write(number: int, *, durable: bool = True) -> None:
        name = b"/%d" % number
        database.write(
            lambda tx: tx.run("INSERT INTO root (path) VALUES (?)", (name,)), durable=durable
        )

    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    write(1)
    with monkeypatch.context() as patched:
        patched.setattr(kernel, "data_sync", failing)
        with pytest.raises(StateFailedError, match="Input/output error"):
            write(2)
    # The system says of the next attempt that all went well, and it did not.
    with pytest.raises(StateFailedError, match="could not be written to its disk") as told:
        write(3)
    assert "start this program again" in told.value.hint
    write(4, durable=False)
    database.close()
    again = Database(str(path))
    assert again.read(lambda tx: tx.value("SELECT count(*) FROM root")) == 3
    again.write(lambda tx: tx.run("DELETE FROM root"), durable=True)
    again.close()


@pytest.mark.parametrize("made", [False, True], ids=["make it", "switch to the shared log"])
def test_who_cannot_make_the_journal_ready_in_time_is_told(path: Path, made: bool) -> None:
    if made:
        SqliteStore(str(path)).close()
    reader = apsw.Connection(str(path))
    if made:
        reader.pragma("journal_mode", "delete")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    with pytest.raises(FilepactError) as caught:
        Database(str(path), patience=0.05)
    assert caught.value.code == "TIMEOUT"
    reader.close()
    Database(str(path)).close()


def test_a_log_that_is_being_read_is_left_long(path: Path) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM operation").fetchall()
    do(store, None, b"2", path="b")
    store._database.shorten_log()
    assert do(store, None, b"3", path="c").seq == 3
    reader.close()
    store.close()


# -- versions ---------------------------------------------------------------------------------


def test_a_journal_of_version_1_is_brought_to_the_newest_and_keeps_all(path: Path) -> None:
    database = apsw.Connection(str(path))
    database.execute(VERSION_1.read_text())
    database.close()
    store = SqliteStore(str(path))
    [newest, oldest] = store.operations()
    assert (oldest.id, oldest.seq, oldest.state, oldest.undone_by) == (
        "c00000000a1",
        1,
        "applied",
        "c00000000a2",
    )
    assert oldest.directories == ((ROOT, "src"),)
    assert (newest.kind, newest.target) == ("undo", "c00000000a1")
    assert (newest.session.turn, newest.session.call) == ("", "")
    for one in oldest.changes.changes:
        for side in (one.before, one.after):
            if side is not None:
                assert content_id(store.content(side.content)) == side.content
    [waiting] = store.proposals(root=OTHER)
    assert (waiting.id, waiting.session.turn) == ("c00000000b1", "")
    assert store.checkpoint("start", ROOT).seq == 1
    assert [one.id for one in store.unfinished()] == ["c00000000a3"]
    assert do(store, None, b"new", path="new").seq == 4
    store.close()
    database = apsw.Connection(str(path))
    assert database.pragma("user_version") == len(MIGRATIONS)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()


def test_missing_steps_are_done_all_or_none(path: Path) -> None:
    store = SqliteStore(str(path))
    do(store, None, b"1")
    store.close()
    database = apsw.Connection(str(path))
    further = "ALTER TABLE operation ADD COLUMN further TEXT NOT NULL DEFAULT 'x';"
    with pytest.raises(apsw.SQLError):
        migrate(database, (*MIGRATIONS, further, "CREATE TABLE broken ("))
    assert database.pragma("user_version") == len(MIGRATIONS)
    assert "further" not in str(database.execute("SELECT sql FROM sqlite_schema").fetchall())
    migrate(database, (*MIGRATIONS, further))
    assert database.pragma("user_version") == len(MIGRATIONS) + 1
    assert database.execute("SELECT further FROM operation").fetchall() == [("x",)]
    database.close()


def test_two_stores_in_one_process_share_a_file(path: Path) -> None:
    one, two = SqliteStore(str(path)), SqliteStore(str(path))
    begun = one.begin(operation(change("a", None, b"1")), contents(b"1"))
    assert two.unfinished() == (begun,)
    two.finish(begun.id, state="applied")
    assert one.operation(begun.id).state == "applied"
    two.close()
    assert do(one, b"1", b"2").seq == 2
    one.close()

"""The files of the audit log: one order over all processes, and nothing half-written passes for a record."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from filepact.domain.audit import AuditCheck, line_of
from filepact.errors import StateFailedError
from filepact.fs.audit_file import AuditFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from filepact.domain.audit import AuditCheckResult

LARGE = 1 << 20


def told(event: str, facts: Mapping[str, object]) -> Callable[[int, str], bytes]:
    return lambda seq, before: line_of(seq, before, event, facts, 1_800_000_000.0)


def add(log: AuditFile, number: int = 1, event: str = "read") -> int:
    last = 0
    for at in range(number):
        last = log.append(told, told(event, {"path": f"/project/{at}"}))
    return last


def check(log: AuditFile) -> AuditCheckResult:
    found = AuditCheck()
    return found.end(log.check(found, lambda _said: None))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@pytest.fixture
def log(folder: Path) -> Iterator[AuditFile]:
    log = AuditFile(str(folder), LARGE)
    yield log
    log.close()


def test_records_are_numbered_and_only_their_owner_can_read_them(
    log: AuditFile, folder: Path
) -> None:
    assert not log.begun
    assert check(log).records == 0
    assert [add(log), add(log), add(log)] == [1, 2, 3]
    assert log.begun
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    log.sync()
    log.close()
    assert add(log) == 4
    assert check(log).last == 4


def test_processes_that_are_killed_while_they_append_leave_a_whole_log(folder: Path) -> None:
    children = []
    for _ in range(6):
        gone, here = os.pipe()
        child = os.fork()
        if not child:
            own = AuditFile(str(folder), 20_000)
            while True:
                add(own)
                os.write(here, b".")
        os.close(here)
        children.append((child, gone))
    for number, (child, gone) in enumerate(children):
        # Each has appended some, and is in the middle of more.
        seen = 0
        while seen <= number * 20:
            seen += len(os.read(gone, 64))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(gone)
    log = AuditFile(str(folder), 20_000)
    add(log)
    found = check(log)
    log.close()
    assert not found.problems
    assert len(log.files()) > 1
    assert found.records >= 6


@pytest.mark.parametrize("written", ["all", "half", "nothing"])
def test_a_process_that_dies_when_it_has_begun_a_file_leaves_a_whole_log(
    folder: Path, written: str
) -> None:
    log = AuditFile(str(folder), 1_000)
    add(log)
    while (folder / "000000000001.jsonl").stat().st_size <= 1_000:
        add(log)
    note = (folder / "head").read_bytes()
    first = add(log)
    log.close()
    begun = folder / f"{first:012d}.jsonl"
    record = begun.read_bytes()
    # As if it had died before the note was written.
    begun.write_bytes({"all": record, "half": record[:40], "nothing": b""}[written])
    (folder / "head").write_bytes(note)
    log = AuditFile(str(folder), 1_000)
    last = add(log)
    found = check(log)
    log.close()
    whole = [line for line in begun.read_bytes().splitlines() if line.endswith(b"}")]
    before = {"all": ["read"], "half": ["torn"], "nothing": []}[written]
    assert [json.loads(line)["event"] for line in whole] == [*before, "read"]
    assert (found.records, found.last) == (last, last)
    assert not found.problems


def test_a_record_for_which_there_is_no_room_is_not_there_in_part(
    log: AuditFile, folder: Path
) -> None:
    add(log, 3)
    taken = (folder / "000000000001.jsonl").stat().st_size
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (taken + 20, taken + 20))
            try:
                add(log)
            except StateFailedError:
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert (folder / "000000000001.jsonl").stat().st_size == taken
    assert add(log) == 4
    assert not check(log).problems


def test_what_a_crash_left_behind_the_note_is_taken_over(log: AuditFile, folder: Path) -> None:
    add(log, 2)
    note = (folder / "head").read_bytes()
    add(log, 2)
    (folder / "head").write_bytes(note)
    found = check(log)
    assert not found.problems
    assert found.notes
    assert add(log) == 5
    assert not check(log).notes


def test_what_was_never_opened_needs_no_disk(log: AuditFile, folder: Path) -> None:
    log.sync()
    log.close()
    assert not folder.exists()


@pytest.mark.parametrize("rest", [b'{"seq":3,', b"\0\0\0\0", b"nothing\nof ours", b"nothing\n"])
def test_a_line_that_was_cut_off_is_owned_up_to(log: AuditFile, folder: Path, rest: bytes) -> None:
    add(log, 2)
    with (folder / "000000000001.jsonl").open("ab") as stream:
        stream.write(rest)
    assert check(log).problems
    assert add(log) == 4
    found = check(log)
    assert not found.problems
    assert found.notes
    lines = (folder / "000000000001.jsonl").read_bytes().splitlines()
    assert json.loads(lines[-2])["event"] == "torn"


@pytest.mark.parametrize("left", [0, 1, 400])
def test_a_tail_that_is_gone_stays_to_be_seen(log: AuditFile, folder: Path, left: int) -> None:
    add(log, 5)
    os.truncate(folder / "000000000001.jsonl", left)
    assert check(log).problems
    assert add(log) == 7
    assert check(log).problems


def test_a_file_that_is_gone_stays_to_be_seen(log: AuditFile, folder: Path) -> None:
    add(log, 5)
    (folder / "000000000001.jsonl").unlink()
    assert check(log).problems
    assert add(log) == 7
    assert check(log).problems


@pytest.mark.parametrize("note", [None, b"", b"not a note", b"x y z 1"])
def test_a_note_that_is_gone_stays_to_be_seen(
    log: AuditFile, folder: Path, note: bytes | None
) -> None:
    add(log, 5)
    log.close()
    (folder / "head").unlink()
    if note is not None:
        (folder / "head").write_bytes(note)
    assert check(log).problems
    assert add(log) == 7
    assert check(log).problems


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file")
    log = AuditFile(str(tmp_path / "audit"), LARGE)
    with pytest.raises(StateFailedError):
        add(log)
    assert not log.files()
    with pytest.raises(StateFailedError):
        list(log.lines("000000000001.jsonl"))


def test_a_link_in_the_place_of_a_file_is_not_followed(
    log: AuditFile, folder: Path, tmp_path: Path
) -> None:
    add(log)
    log.close()
    (folder / "000000000001.jsonl").rename(tmp_path / "elsewhere")
    (folder / "000000000001.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateFailedError):
        add(log)


def test_a_key_is_made_once_and_a_damaged_one_is_told(log: AuditFile, folder: Path) -> None:
    add(log)
    made: list[bytes] = []

    def make() -> bytes:
        made.append(bytes(32))
        return made[-1]

    assert log.key(make) == bytes(32)
    assert log.key(make) == bytes(32)
    assert len(made) == 1
    for damaged in ("no key", "", "ab12", "00" * 33):
        (folder / "key").write_text(damaged)
        with pytest.raises(StateFailedError, match="cannot be used"):
            log.key(make)
    (folder / "key").unlink()
    (folder / "key").symlink_to("elsewhere")
    with pytest.raises(StateFailedError, match="cannot be used"):
        log.key(make)
    assert len(made) == 1


def test_a_key_that_one_is_making_is_nowhere_half(log: AuditFile, folder: Path) -> None:
    """Another process waits until it is whole, and takes the same."""
    add(log)
    began, keys = threading.Event(), []

    def slow() -> bytes:
        began.set()
        time.sleep(0.2)
        assert not (folder / "key").exists()
        return bytes([1] * 32)

    def other() -> None:
        began.wait()
        two = AuditFile(str(folder), 1 << 20)
        keys.append(two.key(lambda: bytes([2] * 32)))
        two.close()

    thread = threading.Thread(target=other)
    thread.start()
    keys.append(log.key(slow))
    thread.join()
    assert keys == [bytes([1] * 32)] * 2

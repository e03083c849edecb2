"""Several processes on one journal, and processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import filepact
from filepact.domain.document import content_id
from filepact.errors import TimedOutError
from filepact.fs.locks import locked_by
from filepact.store.connection import Database
from filepact.store.sqlite import SqliteStore
from tests.needs import PROCESSES

WRITER = """
import sys
from filepact.store.sqlite import SqliteStore
from tests.store.making import change, contents, operation
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SqliteStore(path)
before = None
for number in range(count):
    after = f"{name} {number}".encode() * 50
    begun = store.begin(operation(change(name, before, after)), contents(before, after))
    print(begun.seq, begun.id, flush=True)
    if number % 2:
        store.finish(begun.id, state="applied")
        print("finished", begun.id, flush=True)
    before = after
store.close()
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    above = Path(__file__).parents[2]
    source = Path(filepact.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{above}{os.pathsep}{source}"},
    )


def told(process: subprocess.Popen[str]) -> list[list[str]]:
    out, _ = process.communicate(timeout=60)
    return [line.split() for line in out.splitlines() if line.endswith("\n") or line]


def test_processes_get_places_of_their_own_and_lose_nothing(path: Path) -> None:
    # The file is made by whoever comes first.
    processes = [writer(path, name, 200) for name in ("one", "two")]
    with ThreadPoolExecutor(2) as pool:
        lines = [line for answer in pool.map(told, processes) for line in answer]
    assert [process.returncode for process in processes] == [0, 0]
    begun = {line[1]: int(line[0]) for line in lines if line[0] != "finished"}
    assert sorted(begun.values()) == list(range(1, 401))
    store = SqliteStore(str(path))
    known = {*store.operations(limit=None), *store.unfinished()}
    assert {one.id: one.seq for one in known} == begun
    assert len(store.unfinished()) == 200
    for one in known:
        after = one.changes.changes[0].after
        assert after is not None
        assert content_id(store.content(after.content)) == after.content
    store.close()


@pytest.mark.parametrize("lines", [1, 7, 40, 111])
def test_what_a_killed_process_was_told_is_in_the_journal(path: Path, lines: int) -> None:
    process = writer(path, "doomed", 100_000)
    assert process.stdout is not None
    seen = [process.stdout.readline() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.readlines()
    process.wait(timeout=60)
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    acknowledged = [line.split() for line in (*seen, *rest) if line.endswith("\n")]
    store = SqliteStore(str(path))
    for first, second in acknowledged:
        one = store.operation(second)
        if first == "finished":
            assert one.state == "applied"
        else:
            assert one.seq == int(first)
        after = one.changes.changes[0].after
        assert after is not None
        assert content_id(store.content(after.content)) == after.content
    begun = [line for line in acknowledged if line[0] != "finished"]
    # One more may have been written down without anybody having been told.
    assert store.last_seq() - len(begun) in (0, 1)
    store.close()


HOLDER = """
import sys
from filepact.store.connection import Database
with Database(sys.argv[1]).writing(durable=True):
    print("writing", flush=True)
    sys.stdin.read()
"""


@PROCESSES
def test_a_process_that_is_stopped_while_it_writes_is_named_to_who_waits_for_it(path: Path) -> None:
    store = Database(str(path), patience=0.05, locked_by=locked_by)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    for _ in range(2):
        with pytest.raises(TimedOutError) as caught, store.writing(durable=True):
            pass
        assert f"process {process.pid}" in caught.value.message
        assert "stopped" in caught.value.message
        with store.reading() as view:  # Who only looks back waits for nobody.
            assert view.value("SELECT count(*) FROM operation") == 0
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=60)
    with store.writing(durable=True) as view:
        view.run("INSERT INTO root (path) VALUES (x'2f')")
    store.close()

"""No language server, and nothing that one has started, outlives us."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import filepact
from filepact.fs import sandbox
from tests.hostile.sweeps import often
from tests.servers.asking import report_of
from tests.servers.fakes import (
    PROGRAM,
    are_there,
    fake,
    left_of,
    pool_of,
    processes_with,
    wait_for_end,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")

PARENT = str(Path(PROGRAM).with_name("parent_program.py"))
KILLS = often(5, 50)
WALLED = pytest.mark.parametrize(
    "walled",
    [
        pytest.param(False, id="open"),
        pytest.param(
            True,
            id="walled",
            marks=pytest.mark.skipif(
                not sandbox.landlock_abi(), reason="this system has no Landlock"
            ),
        ),
    ],
)
"""Whether the parent has confined itself, and a fork server starts its servers."""


@pytest.fixture
def mark() -> Iterator[str]:
    word = uuid4().hex
    yield word
    for pid in processes_with(word):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start_parent(
    mark: str, folder: Path, orders: list[dict], *, walled: bool = False
) -> subprocess.Popen[str]:
    tables = {
        f"s{number}": {
            "command": [sys.executable, "-I", "-S", PROGRAM, json.dumps(one)],
            "files": {f"*.s{number}": "x"},
            "role": ("types", "lint")[number % 2],
        }
        for number, one in enumerate(orders)
    }
    environment = {"PATH": os.environ["PATH"], "MARK": mark}
    state = ""
    if walled:
        (folder / "state").mkdir(exist_ok=True)
        state = str(folder / "state")
    return subprocess.Popen(
        [sys.executable, PARENT, json.dumps([tables, environment, str(folder), state])],
        env={
            **os.environ,
            "MARK": mark,
            "PYTHONPATH": str(Path(filepact.__file__).parent.parent),
        },
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@WALLED
def test_nothing_is_left_after_the_parent_was_killed_many_times(
    mark: str, tmp_path: Path, walled: bool
) -> None:
    """At its start, while its servers start, and while they work; some of them ignore their end."""
    moments = [(), ("begun",), ("begun", "working")]
    for number in range(KILLS):
        moment = moments[number % 3]
        orders: list[dict] = [{"child": str(tmp_path / f"{number}")} if number % 2 else {}]
        if "working" not in moment:
            orders.append({"stay": True, "hang": True})
        with start_parent(mark, tmp_path, orders, walled=walled) as parent:
            assert parent.stdout is not None
            for said in moment:
                assert parent.stdout.readline().strip() == said
            parent.kill()
        assert left_of(mark) == [], f"kill {number}"


def test_a_server_that_ignores_its_end_is_ended_with_what_it_has_started(
    mark: str, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    pool = pool_of(fake({"stay": True, "child": str(note)}), MARK=mark)
    (report,) = report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): "wrong"}, 30.0)
    assert report.fresh
    assert are_there(3, mark)  # its supervisor, itself, its child
    pool.close()
    assert left_of(mark) == []
    assert wait_for_end(int(note.read_text()))


AS_ELSEWHERE = """
import sys
from filepact_supervisor import supervisor

supervisor._adopt_orphans = lambda: False
supervisor.run(int(sys.argv[1]), 0, "", sys.argv[2:])
"""


@pytest.mark.parametrize("ends", ["the program", "the server"])
def test_where_no_children_are_told_of_a_group_ends_as_a_whole(
    mark: str, tmp_path: Path, ends: str
) -> None:
    """As on macOS; what has made a group of its own is out of reach there, and the documents say so."""
    os.mkfifo(note := tmp_path / "note")
    stays = "trap '' HUP TERM; sleep 600 & echo $! > note;"
    command = ["sh", "-c", f"{stays} {'wait' if ends == 'the program' else 'exit 3'}"]
    ours, theirs = socket.socketpair()
    with subprocess.Popen(
        [sys.executable, "-c", AS_ELSEWHERE, str(theirs.fileno()), *command],
        cwd=tmp_path,
        env={**os.environ, "MARK": mark},
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    ) as process:
        theirs.close()
        try:
            child = int(note.read_text())
            if ends == "the program":
                assert are_there(3, mark)
        finally:
            if ends == "the program":
                ours.close()
        assert wait_for_end(child)
        assert process.wait(60) == -signal.SIGKILL
    ours.close()
    assert left_of(mark) == []


def test_a_server_that_crashes_leaves_nothing_it_has_started(mark: str, tmp_path: Path) -> None:
    pool = pool_of(fake({"crash": 1, "child": str(tmp_path / "note")}), MARK=mark)
    (report,) = report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): "wrong"}, 5.0)
    assert not report.fresh
    pool.close()
    assert left_of(mark) == []


def test_a_server_ends_when_its_supervisor_is_killed(mark: str, tmp_path: Path) -> None:
    pool = pool_of(fake({"stay": True}), MARK=mark)
    report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): "wrong"}, 30.0)
    (status,) = pool.status()
    (supervisor,) = set(processes_with(mark)) - {status.pid}
    os.kill(supervisor, signal.SIGKILL)
    assert wait_for_end(status.pid)
    pool.close()


@pytest.mark.slow
def test_a_supervisor_that_does_not_hear_us_is_killed_with_its_server(
    mark: str, tmp_path: Path
) -> None:
    pool = pool_of(fake({"stay": True}), MARK=mark)
    report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): "wrong"}, 30.0)
    (status,) = pool.status()
    (supervisor,) = set(processes_with(mark)) - {status.pid}
    assert os.getpgid(status.pid) == supervisor  # a group of their own, away from ours
    os.kill(supervisor, signal.SIGSTOP)
    pool.close()
    assert wait_for_end(supervisor, 0)
    assert left_of(mark) == []


@WALLED
def test_a_pool_that_nobody_closes_leaves_nothing(mark: str, tmp_path: Path, walled: bool) -> None:
    """A program that simply comes to its end."""
    with start_parent(mark, tmp_path, [{}], walled=walled) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline().strip() for _ in range(2)] == ["begun", "working"]
        parent.terminate()
    assert left_of(mark) == []


def test_a_server_that_uses_too_much_memory_is_ended_with_a_reason_and_started_again(
    mark: str, tmp_path: Path
) -> None:
    """What it has started counts, wherever that has gone."""
    note, megabyte = tmp_path / "note", 1024 * 1024
    server = fake({"child": str(note), "eat": 200 * megabyte})
    pool = pool_of(server, memory=150 * megabyte, MARK=mark)
    root, files = str(tmp_path), {str(tmp_path / "a.x"): "wrong"}
    assert report_of(pool, root, files, 30.0)[0].fresh
    (before,) = pool.status()
    assert wait_for_end(before.pid)
    assert wait_for_end(int(note.read_text()))
    while not report_of(pool, root, files, 30.0)[0].fresh:
        continue
    (after,) = pool.status()
    assert after.starts == 2
    assert "0.2 GiB of memory" in after.message
    pool.close()
    assert left_of(mark) == []

"""Whose text an answer is about: each way of proving it, when a server is new, ended, stopped or slow."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.sweeps import often
from tests.servers.asking import report_of
from tests.servers.fakes import SECONDS, fake, pool_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact_diagnostics.lsp.diagnostics import FileDiagnostics
    from filepact_diagnostics.lsp.pool import ServerPool

MOMENT = 0.15
LATE = 0.4
SLOW = 2.0
"""Seconds that a question waits; that a file takes to check, longer than that, and than all that are asked in a row."""

PUSH: dict[str, Any] = {"kind": "push", "versions": False, "symbols": True}
ALONE = {"unsaved": "alone", "unsaved_new": "alone"}

# How it is known, what the server does, and what is set for it; {late} stands for what a check takes.
WAYS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "pull": ("pull", {"slow": "late"}, {}),
    "requests passed on": (
        "pull",
        {"kind": "none", "tsserver": "late"},
        {"diagnostics": "tsserver"},
    ),
    "versions": (
        "version",
        {"kind": "push", "late": "late", "newest": True},
        {"once": True, "sync": ALONE},
    ),
    "one list for the last text": (
        "order",
        {**PUSH, "late": "late", "newest": True},
        {"ordered": True, "sync": ALONE},
    ),
    "a list before anything else": ("order", PUSH, {"ordered": True}),
    "nothing before the project is read": (
        "order",
        {**PUSH, "late": "late", "newest": True, "reading": 1.0},
        {"ordered": True, "reading": "reads the project"},
    ),
    "nothing before it says that it is ready": (
        "pull",
        {"slow": "late", "reading": 0.3, "says": "experimental/serverStatus"},
        {"diagnostics": "pull", "reading": "experimental/serverStatus"},
    ),
    "a command that lists": (
        "probe",
        {**PUSH, "mute": True, "command": "late", "reading": 0.3, "says": "language/status"},
        {"probe": "workspace/executeCommand look thisFile false", "reading": "language/status"},
    ),
    "nothing": ("quiet window", {**PUSH, "late": "late"}, {"quiet": 0.2}),
}
SOME = [*WAYS][:: often(3, 1)]
TEXTS = ["right", "wrong", "wrong wrong", "right", "wrong wrong wrong", "right"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def start(way: str, late: float, **more: Any) -> Iterator[ServerPool]:
    _proof, orders, fields = WAYS[way]
    done = {key: late if value == "late" else value for key, value in orders.items()}
    pool = pool_of(fake({**done, **more}, **{"diagnostics": "push", **fields} if fields else {}))
    yield pool
    pool.close()


def ask(pool: ServerPool, folder: Path, text: str, seconds: float) -> FileDiagnostics:
    (report,) = report_of(pool, str(folder), {str(folder / "a.x"): text}, seconds)
    return report


def hold_true(pool: ServerPool, folder: Path, way: str) -> None:
    """Send one text after the other, faster than they are checked; no list is about another one."""
    for text in TEXTS:
        report = ask(pool, folder, text, MOMENT)
        if report.fresh:
            assert len(report.diagnostics) == text.count("wrong"), text
    proof = WAYS[way][0]
    for text in ("wrong wrong", "right", "wrong"):
        report = ask(pool, folder, text, SECONDS)
        assert report.confirmed_by == proof, report.reason
        assert report.fresh == (proof != "quiet window")
        if report.fresh:
            assert len(report.diagnostics) == text.count("wrong"), text
            assert report.complete
        else:
            assert report.reason
            assert not report.complete


def test_after_its_start(tmp_path: Path, way: str) -> None:
    for pool in start(way, 0.1):
        report = ask(pool, tmp_path, "wrong", SECONDS)
        assert (len(report.diagnostics), report.confirmed_by) == (1, WAYS[way][0])
        hold_true(pool, tmp_path, way)


@pytest.mark.parametrize("way", SOME)
def test_after_it_ended(tmp_path: Path, way: str) -> None:
    for pool in start(way, LATE):
        ask(pool, tmp_path, "wrong", SECONDS)
        (status,) = pool.status()
        os.kill(status.pid, signal.SIGKILL)
        while ask(pool, tmp_path, "right", MOMENT).reason.count("ended"):
            pass
        hold_true(pool, tmp_path, way)
        (status,) = pool.status()
        assert status.starts > 1


@pytest.mark.parametrize("way", SOME)
def test_while_it_gets_no_time(tmp_path: Path, way: str) -> None:
    for pool in start(way, 0.1):
        ask(pool, tmp_path, "right", SECONDS)
        (status,) = pool.status()
        over = threading.Event()

        def hold_up(pid: int = status.pid, over: threading.Event = over) -> None:
            while not over.wait(0.03):
                os.kill(pid, signal.SIGSTOP)
                over.wait(0.3)
                os.kill(pid, signal.SIGCONT)

        holding = threading.Thread(target=hold_up)
        holding.start()
        try:
            hold_true(pool, tmp_path, way)
        finally:
            over.set()
            holding.join()


def test_with_a_file_that_takes_longer_than_a_question_waits(tmp_path: Path, way: str) -> None:
    for pool in start(way, LATE):
        hold_true(pool, tmp_path, way)


@pytest.mark.slow
@pytest.mark.parametrize("way", [*WAYS][:: often(4, 1)])
def test_with_a_file_that_takes_seconds(tmp_path: Path, way: str) -> None:
    for pool in start(way, SLOW):
        hold_true(pool, tmp_path, way)

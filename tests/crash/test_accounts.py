"""Audit log and journal after SIGKILL at any moment of many operations: whoever compares them finds nothing wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from filepact.app import check_audit, open_workspace
from filepact.config.settings import Settings

PROJECT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("FILEPACT_KILL_ROUNDS", "6"))
WORKERS = 3

pytestmark = pytest.mark.timeout(0 if "FILEPACT_KILL_ROUNDS" in os.environ else 300)


def test_whoever_is_killed_leaves_two_accounts_that_tell_the_same(tmp_path: Path) -> None:
    roots = [tmp_path / "shared", *(tmp_path / f"own{number}" for number in range(WORKERS))]
    for root in roots:
        root.mkdir()
    state, compared = str(tmp_path / "state"), 0
    open_before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for seed in range(ROUNDS):
        working = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.crash.accounts",
                    tmp_path,
                    str(number),
                    f"{seed}.{number}",
                ],
                cwd=PROJECT,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            for number in range(WORKERS)
        ]
        while any(one.poll() is None for one in working):
            # While others write, and as it is left, before anybody has settled anything.
            found = check_audit(state, Settings(), lambda _said: None)
            assert found.problems == ()
        assert {one.returncode for one in working} == {-signal.SIGKILL}
        found = check_audit(state, Settings(), lambda _said: None)
        assert found.problems == ()
        with open_workspace(list(map(str, roots)), state_dir=state, home=str(tmp_path)):
            pass  # which brings to an end what was cut off
        found = check_audit(state, Settings(), lambda _said: None)
        assert found.problems == ()
        assert found.unlogged == 0
        assert found.operations >= compared
        compared = found.operations
    assert compared > ROUNDS
    if open_before:
        assert len(os.listdir("/proc/self/fd")) <= open_before + 2

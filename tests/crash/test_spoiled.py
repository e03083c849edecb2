"""Calls that are killed, fail or do half of their work; disks nearly full; power cuts: a part of each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.calls import KINDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROJECT = Path(__file__).resolve().parents[2]


def ran(*words: str) -> str:
    """What a program below `tests.crash` prints; the test is skipped where it cannot run."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stderr.startswith("skipped"):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_call_fails_a_change_is_whole_or_not_there_and_the_answer_says_which(
    kind: str,
) -> None:
    said = ran("tests.crash.calls", kind, "--step", os.environ.get("FILEPACT_KILL_STEP", "13"))
    assert int(said.splitlines()[-1].split()[0]) >= 16


def test_on_a_disk_that_is_nearly_full_a_change_is_whole_or_not_there_and_told_as_it_is() -> None:
    assert ", 0 wrong" in ran("tests.crash.near_full", "--sizes", "10")


def test_what_was_answered_stays_after_a_power_cut_whatever_a_person_did() -> None:
    assert ", 0 wrong" in ran("tests.crash.power_cuts", "--cuts", "10")

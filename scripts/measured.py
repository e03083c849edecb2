"""Run pytest, and measure which branches of the core the tests take: under 95 % of any floor it fails.

Slow tests are run and not measured (`conftest.py`): they repeat what quicker ones show, and take
several times as long when every line that they run is counted.

`scripts/test --all` starts it with the interpreter of the test environment.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import coverage
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

CORE = ("text", "domain", "fs", "store", "workspace")
APART = (
    *("fs/inside.py", "fs/namespace.py", "fs/overlay.py", "fs/server_sandbox.py"),
    *("workspace/runs.py", "workspace/run_context.py", "workspace/recorder.py"),
)
"""Modules that run in processes of their own, mostly behind walls that keep them from writing what was
measured; `tests/faces/test_run*.py`, `tests/faces/test_guard.py` and `tests/fs/test_server_sandbox.py`
start them as people do."""

LEAST = 95.0


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        # The workers of pytest-xdist read it as well; pytest-cov combines what they measured.
        os.environ["COVERAGE_FILE"] = str(Path(folder, "coverage"))
        measured = [f"--cov=filepact.{floor}" for floor in CORE]
        status = int(pytest.main([*arguments, *measured, "--cov-report="]))
        if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            enough = report(Path(folder))
            return status or (0 if enough else 1)
    return status


def report(folder: Path) -> bool:
    """Print which share of each floor's lines and branches was run; whether all of them are enough."""
    data, table = coverage.Coverage(), folder / "coverage.json"
    data.load()
    data.json_report(outfile=str(table), ignore_errors=True)
    found = json.loads(table.read_text())["files"]
    files = {name: one for name, one in found.items() if not name.endswith(APART)}
    print(f"\n{'core':<12}{'lines':>14}{'branches':>16}")
    sums = [0, 0, 0, 0]
    few: list[str] = []
    for floor in CORE:
        part = [0, 0, 0, 0]
        for name in on(floor, files):
            figures = files[name]["summary"]
            part[0] += figures["covered_lines"]
            part[1] += figures["num_statements"]
            part[2] += figures["covered_branches"]
            part[3] += figures["num_branches"]
        print(row(floor, part))
        if part[3] and percent(part[2], part[3]) < LEAST:
            few.append(floor)
        sums = [left + right for left, right in zip(sums, part, strict=True)]
    print(row("all", sums))
    for floor in few:
        print(f"fewer than {LEAST:.0f} % of the branches of {floor} were taken; least covered:")
        missed = {name: len(files[name]["missing_branches"]) for name in on(floor, files)}
        for name in sorted(filter(missed.get, missed), key=lambda name: -missed[name])[:10]:
            print(f"  {name}: {missed[name]} branches missed")
    return not few


def on(floor: str, names: Iterable[str]) -> list[str]:
    """Those of some files that lie on a floor."""
    return [name for name in names if f"filepact/{floor}/" in name]


def row(name: str, figures: list[int]) -> str:
    lines, branches = (percent(*figures[at : at + 2]) for at in (0, 2))
    return f"{name:<12}{lines:>8.1f} %{figures[1]:>6}{branches:>8.1f} %{figures[3]:>6}"


def percent(part: int, of: int) -> float:
    return 100.0 * part / of if of else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

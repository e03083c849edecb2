"""Run pytest, and measure which branches of the core, of the search index and of runs the tests take: under 95 % of any floor it fails.

Slow tests are run and not measured (`conftest.py`): they repeat what quicker ones show, and take
several times as long when every line that they run is counted.

Tests marked `foreign` that failed are run once more when nothing else is: `CONTRIBUTING.md` says why.

`scripts/test --all` starts it with the interpreter of the test environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import coverage
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

CORE = ("text", "domain", "fs", "store", "workspace")
FLOORS = (*(f"filepact.{floor}" for floor in CORE), "filepact_index", "filepact_run")
APART = (
    *(f"filepact_run/{name}.py" for name in ("command", "guard", "inside", "namespace")),
    *(f"filepact_run/{name}.py" for name in ("overlay", "recorder", "runs")),
)
"""Modules that run in processes of their own, mostly behind walls that keep them from writing what was
measured; `packages/filepact-run/tests` start them as people do."""

LEAST = 95.0
LEAST_OF = {"filepact_run": 94.0}
"""Of a package of few branches, each of which is almost half a per cent."""
FOREIGN, MOST_AGAIN = "foreign", 6


def main(arguments: list[str]) -> int:
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        # The workers of pytest-xdist read it as well; pytest-cov combines what they measured.
        os.environ["COVERAGE_FILE"] = str(Path(folder, "coverage"))
        measured = [f"--cov={floor}" for floor in FLOORS]
        status = int(pytest.main([*arguments, *measured, "--cov-report="], plugins=[failures]))
        if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            enough = report(Path(folder))
            if status and failures.again(Path(folder)):
                status = 0
            return status or (0 if enough else 1)
    return status


class Failures:
    """What failed, as the process hears of it that the others report to."""

    def __init__(self) -> None:
        self._foreign: dict[str, bool] = {}
        self._others = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # One that brought its process down has no keywords, and is none of these.
            name, foreign = report.nodeid, FOREIGN in report.keywords
            self._foreign[name] = foreign and self._foreign.get(name, True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._others |= report.failed

    def again(self, folder: Path) -> bool:
        """Run foreign tests that failed once more, one by one; whether nothing else has failed."""
        foreign = [name for name, one in self._foreign.items() if one]
        if not foreign:
            return False
        if len(foreign) > MOST_AGAIN:
            print(
                f"\n{len(foreign)} tests that hang on programs of others failed: too many to try again"
            )
            return False
        passed = [name for name in foreign if passes_alone(name, folder / "again.xml")]
        for said, names in (
            ("failed beside others, passed alone", passed),
            (
                "failed beside others, and alone as well",
                [one for one in foreign if one not in passed],
            ),
        ):
            if names:
                print("\n" + f" {said} ".center(80, "="))
                print(*names, sep="\n", flush=True)
        return len(passed) == len(self._foreign) and not self._others


def passes_alone(name: str, said: Path) -> bool:
    """Whether a test passes in a process of its own; one that is skipped there does not."""
    said.unlink(missing_ok=True)
    words = ["-m", "pytest", "-q", "-n", "0", "--no-cov", f"--junit-xml={said}", name]
    # What it prints is not to be taken for another failure of the whole.
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    if done.returncode or not said.exists():
        print(f"\n{name}, alone:\n{done.stdout}{done.stderr}")
        return False
    (suite,) = ET.parse(said).getroot()  # noqa: S314 - pytest's own
    counts = [suite.get(one, "") for one in ("tests", "errors", "failures", "skipped")]
    return counts == ["1", "0", "0", "0"]


def report(folder: Path) -> bool:
    """Print which share of each floor's lines and branches was run; whether all of them are enough."""
    data, table = coverage.Coverage(), folder / "coverage.json"
    data.load()
    data.json_report(outfile=str(table), ignore_errors=True)
    found = json.loads(table.read_text())["files"]
    files = {name: one for name, one in found.items() if not name.endswith(APART)}
    print(f"\n{'floor':<20}{'lines':>14}{'branches':>16}")
    sums = [0, 0, 0, 0]
    few: list[str] = []
    for floor in FLOORS:
        part = [0, 0, 0, 0]
        for name in on(floor, files):
            figures = files[name]["summary"]
            part[0] += figures["covered_lines"]
            part[1] += figures["num_statements"]
            part[2] += figures["covered_branches"]
            part[3] += figures["num_branches"]
        print(row(floor.removeprefix("filepact."), part))
        if part[3] and percent(part[2], part[3]) < LEAST_OF.get(floor, LEAST):
            few.append(floor)
        sums = [left + right for left, right in zip(sums, part, strict=True)]
    print(row("all", sums))
    for floor in few:
        name = floor.removeprefix("filepact.")
        print(
            f"fewer than {LEAST_OF.get(floor, LEAST):.0f} % of the branches of {name} were taken; least covered:"
        )
        missed = {name: len(files[name]["missing_branches"]) for name in on(floor, files)}
        for name in sorted(filter(missed.get, missed), key=lambda name: -missed[name])[:10]:
            print(f"  {name}: {missed[name]} branches missed")
    return not few


def on(floor: str, names: Iterable[str]) -> list[str]:
    """Those of some files that lie on a floor."""
    return [name for name in names if f"{floor.replace('.', '/')}/" in name]


def row(name: str, figures: list[int]) -> str:
    lines, branches = (percent(*figures[at : at + 2]) for at in (0, 2))
    return f"{name:<20}{lines:>8.1f} %{figures[1]:>6}{branches:>8.1f} %{figures[3]:>6}"


def percent(part: int, of: int) -> float:
    return 100.0 * part / of if of else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

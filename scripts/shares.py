"""The test files, dealt out to processes that run side by side.

`tests/shares.json` says how many seconds each file took when it was last measured.  It only decides
which process runs a file: one that it does not know is run all the same.
"""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# What a file that was never measured is taken to need: about what one in the middle does.
UNKNOWN = 2.0


def test_files(project: Path) -> list[str]:
    """Every file that pytest takes for one of tests, by its path in the project."""
    found = {
        path for mark in ("test_*.py", "*_test.py") for path in (project / "tests").rglob(mark)
    }
    return sorted(path.relative_to(project).as_posix() for path in found)


def read_table(path: Path) -> dict[str, float]:
    """Seconds by file; empty where there is no table."""
    try:
        table: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return table


def deal(files: Iterable[str], seconds: Mapping[str, float], shares: int) -> list[list[str]]:
    """Deal files out, each to one share, so that all need about the same time.

    Args:
        files: What is dealt out.
        seconds: What each needs, as far as it is known; more than there are does no harm.
        shares: How many there are.

    Returns:
        The files of each share, in the order of their names.
    """
    dealt: list[list[str]] = [[] for _ in range(shares)]
    sums = [0.0] * shares
    for file in sorted(files, key=lambda file: (-seconds.get(file, UNKNOWN), file)):
        lightest = sums.index(min(sums))
        dealt[lightest].append(file)
        sums[lightest] += seconds.get(file, UNKNOWN)
    return [sorted(share) for share in dealt]


def measured(reports: Iterable[Path]) -> dict[str, float]:
    """Seconds by file, from pytest's reports in XML."""
    sums: Counter[str] = Counter()
    for report in reports:
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own pytest wrote it
            # The module, and below it a class, if there is one.
            parts = case.get("classname", "").split(".")
            names = [at for at, part in enumerate(parts) if part.startswith("test_")]
            if names:
                file = "/".join(parts[: names[0] + 1]) + ".py"
                sums[file] += float(case.get("time", "0"))
    return dict(sums)


def write_table(path: Path, seconds: Mapping[str, float]) -> None:
    """Write a table that does not change with every small difference."""
    table = {file: _rounded(seconds[file]) for file in sorted(seconds)}
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _rounded(seconds: float) -> float:
    """Two digits, and tenths of a second at the finest."""
    if seconds < 0.05:
        return 0.1
    return round(seconds, min(1, 1 - math.floor(math.log10(seconds))))

"""Every test file is run by exactly one of the processes, whatever is known about it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

PROJECT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """A module beside the scripts, which are in no package."""
    spec = importlib.util.spec_from_file_location(name, PROJECT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHARES = script("shares")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_test_file_is_in_exactly_one_share(count: int) -> None:
    table = SHARES.read_table(PROJECT / "tests" / "shares.json")
    dealt = SHARES.deal(SHARES.test_files(PROJECT), table, count)
    assert len(dealt) == count
    every = [file for share in dealt for file in share]
    assert len(every) == len(set(every))
    # Found in another way than the files that are dealt out: by what stands in them.
    holding = {
        path.relative_to(PROJECT).as_posix()
        for path in (PROJECT / "tests").rglob("*.py")
        if any(
            line.startswith(("def test_", "async def test_", "class Test"))
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    }
    assert holding <= set(every)
    assert all((PROJECT / file).is_file() for file in every)


def test_shares_need_about_the_same_time() -> None:
    table = SHARES.read_table(PROJECT / "tests" / "shares.json")
    sums = [
        sum(table.get(file, SHARES.UNKNOWN) for file in share)
        for share in SHARES.deal(SHARES.test_files(PROJECT), table, 2)
    ]
    assert max(sums) < 1.1 * min(sums)


@pytest.mark.parametrize(
    ("table", "dealt"),
    [
        ({}, [["a", "c"], ["b", "d"]]),
        ({"a": 9.0}, [["a"], ["b", "c", "d"]]),
        ({"d": 9.0, "gone": 99.0}, [["d"], ["a", "b", "c"]]),
        ({"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0}, [["a", "d"], ["b", "c"]]),
    ],
    ids=["nothing known", "a long one", "one that is gone", "all known"],
)
def test_the_next_file_goes_to_the_lighter_share(
    table: dict[str, float], dealt: list[list[str]]
) -> None:
    assert SHARES.deal("abcd", table, 2) == dealt


def test_what_was_measured_becomes_a_table(tmp_path: Path) -> None:
    for number, name in enumerate(("tests.below.test_b.TestClass", "tests.test_a")):
        case = f'<testcase classname="{name}" time="{12.34 + number}"/>'
        again = f'<testcase classname="{name}" time="1"/>'
        text = f"<testsuites><testsuite>{case}{again}</testsuite></testsuites>"
        (tmp_path / f"{number}.xml").write_text(text)
    seconds = SHARES.measured(tmp_path.glob("*.xml"))
    SHARES.write_table(tmp_path / "table.json", seconds | {"tests/c.py": 0.001, "tests/d.py": 0.66})
    assert json.loads((tmp_path / "table.json").read_text()) == {
        "tests/test_a.py": 14.0,
        "tests/below/test_b.py": 13.0,
        "tests/c.py": 0.1,
        "tests/d.py": 0.7,
    }
    assert SHARES.read_table(tmp_path / "no-table.json") == {}

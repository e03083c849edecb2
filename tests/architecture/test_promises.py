"""The promises, the page that tells them, and the tests that keep them say the same."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import lru_cache

import pytest

from tests.architecture.project import ROOT, syntax
from tests.promises import PROMISES, Promise

PAGE = ROOT / "docs" / "explanation" / "promises.md"
EVERY = [promise for group in PROMISES.values() for promise in group]


@lru_cache
def names(path: str) -> frozenset[str]:
    """What pytest can collect from a file of ours: functions, classes, and state machines."""
    file = ROOT / "tests" / path
    if not file.exists():
        return frozenset()
    found: set[str] = set()
    for node in syntax(file).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in found if name.startswith(("test_", "Test")))


@pytest.mark.parametrize("promise", EVERY, ids=lambda promise: promise.says)
def test_a_promise_is_kept_by_tests_that_exist(promise: Promise) -> None:
    assert promise.tests, "no test keeps it"
    for path, name in promise.tests:
        assert name in names(path), f"{path}::{name} is not there"


def test_a_test_is_named_once_for_a_promise() -> None:
    for promise in EVERY:
        assert len(set(promise.tests)) == len(promise.tests), promise.says


@lru_cache
def deep_checks() -> frozenset[str]:
    """The names of the checks of `scripts/deep`, which prints them as its help."""
    path = ROOT / "scripts" / "deep"
    said = subprocess.run(
        [sys.executable, path, "--help"], capture_output=True, text=True, check=True
    ).stdout
    return frozenset(
        line.split()[0] for line in said.partition("\nchecks:\n")[2].splitlines() if line
    )


@pytest.mark.parametrize("promise", EVERY, ids=lambda promise: promise.says)
def test_what_attacks_a_promise_is_a_deep_check_or_a_file_of_tests(promise: Promise) -> None:
    assert len(set(promise.attacked)) == len(promise.attacked)
    for name in promise.attacked:
        assert names(name) if name.endswith(".py") else name in deep_checks(), name


def test_the_page_tells_these_promises_and_what_attacks_them_in_this_order_and_no_other() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    told = [line for line in lines if line.startswith(("## ", "| ", "- "))]
    promised: list[str] = []
    for title, group in PROMISES.items():
        promised += [f"## {title}", "| promise | attacked by |", "| --- | --- |"]
        promised += [
            f"| {one.says} | {', '.join(f'`{name}`' for name in one.attacked)} |".replace(
                "|  |", "| |"
            )
            for one in group
        ]
    assert told == promised


def test_every_deep_check_has_a_row_in_its_page() -> None:
    page = (ROOT / "docs" / "how-to" / "run-the-deep-checks.md").read_text(encoding="utf-8")
    rows = {
        name
        for line in page.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert rows == deep_checks()

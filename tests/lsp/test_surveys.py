"""Servers that look at whole projects say which files something is wrong with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.lsp.diagnostics import FileDiagnosticCounts
from tests.lsp.asking import report_of
from tests.lsp.fakes import SECONDS, fake, pool_of
from tests.lsp.real_servers import Tree

if TYPE_CHECKING:
    from pathlib import Path


def file(name: str, *severities: int | None) -> dict:
    items = [{} if one is None else {"severity": one} for one in severities]
    return {"uri": f"file:///p/{name}", "kind": "full", "items": items}


@pytest.mark.parametrize(
    ("survey", "found", "complete"),
    [
        ({"parts": [], "end": {"items": [file("a", 1, 2, None)]}}, [("/p/a", 2, 1)], True),
        (
            {"parts": [{"items": [file("b", 1)]}, {"items": [file("a", 2)]}], "end": {"items": []}},
            [("/p/a", 0, 1), ("/p/b", 1, 0)],
            True,
        ),
        ({"parts": [{"items": [file("b", 1)]}, {"items": [file("b")]}], "end": {}}, [], True),
        ({"parts": [{"items": [file("b", 1)]}]}, [("/p/b", 1, 0)], False),
        (
            {
                "parts": [7, {"items": [7, {"uri": 7}, {"uri": "http://x"}, file("b", 1)]}],
                "end": None,
            },
            [("/p/b", 1, 0)],
            True,
        ),
        (
            {"parts": [], "end": {"items": [{"uri": "file:///p/a", "kind": "unchanged"}]}},
            [],
            True,
        ),
    ],
)
def test_parts_are_put_together(
    tmp_path: Path, survey: dict, found: list[tuple], complete: bool
) -> None:
    pool = pool_of(fake({"survey": survey}))
    report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): ""}, SECONDS)
    (seen,) = pool.survey(str(tmp_path), SECONDS if complete else 0.5)
    pool.close()
    assert seen.files == tuple(FileDiagnosticCounts(*one) for one in found)
    assert seen.complete is complete
    assert bool(seen.reason) is not complete


@pytest.mark.parametrize("orders", [{}, {"crash": 1}])
def test_a_server_that_cannot_says_so(tmp_path: Path, orders: dict) -> None:
    pool = pool_of(fake(orders))
    report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): ""}, 1.0)
    (seen,) = pool.survey(str(tmp_path), 2.0)
    pool.close()
    assert (seen.files, seen.complete) == ((), False)
    assert seen.reason


def test_servers_that_do_not_run_are_not_asked(tmp_path: Path) -> None:
    pool = pool_of(fake({}))
    assert pool.survey(str(tmp_path)) == ()
    pool.close()


def test_a_real_server_finds_dependents_that_nobody_has_opened(tmp_path: Path) -> None:
    tree = Tree(tmp_path.resolve(), "ty", options={"diagnosticMode": "workspace"})
    try:
        tree.write("lib.py", "value: int = 1\n")
        for number in range(3):
            tree.write(f"use{number}.py", "from lib import value\n\nn: int = value\n")
        tree.report("lib.py")
        assert tree.pool.survey(str(tree.root), 2.0)[0].files == ()
        tree.tell(tree.write("lib.py", "value: str = ''\n"))
        tree.report("lib.py")
        (seen,) = tree.pool.survey(str(tree.root), 3.0)
        assert [one.path for one in seen.files] == [tree.path(f"use{n}.py") for n in range(3)]
    finally:
        tree.close()

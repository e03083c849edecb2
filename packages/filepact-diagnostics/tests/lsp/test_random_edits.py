"""However files change, no server's stale answer is taken for a fresh one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.hostile.sweeps import often
from tests.servers.random_edits import LANGUAGES, Edits
from tests.servers.real_servers import Tree

if TYPE_CHECKING:
    from pathlib import Path

EDITS = int(os.environ.get("LSP_EDITS", "0"))
"""More than by default, for a search by hand."""

BOUNDED = {
    "ruff": 60,
    "ty": 60,
    "typescript": 60,
    "basedpyright": 20,
    "clangd": 15,
    "filepact-csharp": 40,
    "gopls": 6,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LANGUAGES)
def test_no_stale_answer_passes_for_fresh(name: str, tmp_path: Path) -> None:
    edit(name, EDITS or BOUNDED[name] // often(3, 1), tmp_path)


def test_no_stale_answer_passes_for_fresh_after_a_few_edits(tmp_path: Path) -> None:
    edit("ty", 6, tmp_path)


def edit(name: str, count: int, tmp_path: Path) -> None:
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    tree = Tree(root.resolve(), name)
    try:
        edits = Edits(tree, seed=7)
        done = []
        for _ in range(count):
            done.append(edits.step())
            assert edits.stale() == [], done[-5:]
            assert edits.unanswered() == []
    finally:
        tree.close()

"""However an agent and other programs change files by turns, nothing stale passes for fresh."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.sweeps import often
from tests.servers.asking import Preview
from tests.servers.random_edits import LANGUAGES, Edits
from tests.servers.real_servers import SECONDS, server
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from pathlib import Path

    from filepact_diagnostics.lsp.diagnostics import FileDiagnostics
    from filepact_diagnostics.semantic.updates import WorkspaceUpdate

EDITS = int(os.environ.get("LSP_EDITS", "0"))
"""More than by default, for a search by hand."""

FULL = {"ruff": 200, "ty": 100, "typescript": 80, "basedpyright": 12, "clangd": 5, "gopls": 2}
BOUNDED = {name: count // often(3, 1) for name, count in FULL.items()}
SLOWEST = ("clangd", "gopls")
"""A cold start of these after each edit takes seconds: here `lsp/test_random_edits.py` and the sync tests have to do."""


class DoorTree:
    """A scene in the shape of a tree: each write goes through the door, or past it."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.scene = Scene(folder, [name], {})
        self.server = server(name)
        self.root = self.scene.root
        self.past = 0
        self.updates: list[WorkspaceUpdate] = []
        self._random = random.Random(seed)

    def path(self, name: str) -> str:
        return self.scene.path(name)

    def text(self, name: str) -> str:
        return self.scene.get(name)

    def write(self, name: str, text: str) -> None:
        # Agents have to ask a person about files that say what is installed and built.
        if name in LANGUAGES[self.server.name].settings:
            self.scene.put(name, text)
        elif self._random.random() < 0.4:
            self.past += 1
            self.scene.put(name, text)
        else:
            self.updates.append(self.scene.write({name: text.encode()}))

    def delete(self, name: str) -> None:
        if self._random.random() < 0.4:
            self.past += 1
            (self.root / name).unlink()
        else:
            self.scene.workspace.reader(AGENT).document(name)
            self.updates.append(self.scene.write({name: None}))

    def tell(self, *_changes: object) -> None:
        """Nobody has to tell: that is what is tested."""

    def report(self, *names: str) -> dict[str, FileDiagnostics]:
        reports = self.scene.semantics.look(names, session=AGENT, seconds=SECONDS)
        return {os.path.relpath(one.path, self.root): one for one in reports}

    def preview(self, name: str, text: str, _others: object) -> Preview:
        before = self._disk(name)
        update = self.scene.foresee({name: text.encode()})
        assert self._disk(name) == before
        return Preview(not update.updated, update.findings, update.message)

    def cold(self, folder: Path) -> dict[str, list[tuple[Any, ...]]]:
        """What a server finds that was started on a copy just now."""
        files = {str(one.relative_to(self.root)): one.read_text() for one in self.all_files()}
        scene = Scene(folder, [self.server.name], files)
        try:
            names = [name for name in files if self.server.language(name)]
            reports = scene.semantics.look(names, session=AGENT, seconds=SECONDS)
            return {os.path.relpath(one.path, scene.root): likes(one) for one in reports}
        finally:
            scene.close()

    def all_files(self) -> list[Path]:
        found = (one for one in self.root.rglob("*") if one.is_file())
        return sorted(one for one in found if ".ruff_cache" not in one.parts)

    def _disk(self, name: str) -> str | None:
        return self.scene.get(name) if (self.root / name).exists() else None


def likes(report: FileDiagnostics) -> list[tuple[Any, ...]]:
    assert report.fresh, report
    return sorted((one.start, one.code, one.message, one.line) for one in report.diagnostics)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [one for one in LANGUAGES if one not in SLOWEST or often(0, 1)])
def test_nothing_stale_passes_for_fresh(name: str, tmp_path: Path) -> None:
    edit(name, EDITS or BOUNDED.get(name, often(4, 8)), tmp_path)


def test_nothing_stale_passes_for_fresh_after_a_few_edits(tmp_path: Path) -> None:
    edit("ty", 10, tmp_path)


def edit(name: str, count: int, tmp_path: Path) -> None:
    tree = DoorTree(tmp_path, name, seed=11)
    try:
        edits = Edits(tree, seed=7)  # type: ignore[arg-type]  # it has what edits need
        done = []
        for _ in range(count):
            done.append(edits.step())
            assert edits.stale() == [], done[-5:]
            assert edits.unanswered() == []
        assert tree.past
        unproven = [one for one in tree.updates if not one.updated and one.kind != "none"]
        assert unproven == []
        names = [str(one.relative_to(tree.root)) for one in tree.all_files()]
        known = [one for one in names if tree.server.language(one)]
        warm = {path: likes(one) for path, one in tree.report(*known).items()}
        assert warm == tree.cold(tmp_path / "cold")
    finally:
        tree.scene.close()

"""Layers and names in other letters: none above a folder where letter case does not tell names apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact_run.namespace import ProgramFailed
from filepact_run.run_folder import RunFolder
from filepact_run.runs import Run
from tests.folding import fold_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace


def test_no_layers_are_made_above_such_a_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_here: Callable[..., Workspace]
) -> None:
    (root / "readme.md").write_text("read me\n")
    workspace = open_here()
    made = RunFolder.make(
        str(tmp_path / "state"),
        command=["true"],
        agent="a",
        mode="auto",
        roots=[str(root)],
        folder=str(root),
    )
    try:
        fold_names(monkeypatch)
        run = Run(workspace, made, home=None, secrets=(), writable=())
        with pytest.raises(ProgramFailed) as caught:
            run.start({}, ["true"])
        assert caught.value.namespaces
    finally:
        monkeypatch.undo()
        made.discard()

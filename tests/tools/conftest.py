"""A workspace over the folder of a test."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.workspace.workspace import Workspace


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        yield workspace

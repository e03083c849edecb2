"""A tree of project files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from project_tree import ProjectTree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    return ProjectTree(tmp_path)

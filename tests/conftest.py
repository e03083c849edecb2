"""A workspace over the folder of a test, with its own state folder, and who works in it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.workspace.workspace import Workspace


@pytest.fixture
def open_here(root: Path, tmp_path: Path) -> Iterator[Callable[..., Workspace]]:
    """Open further workspaces over the same root and journal; closed at the end."""
    with ExitStack() as stack:

        def open_one(
            mode: str = "auto", roots: list[str] | None = None, **options: Any
        ) -> Workspace:
            workspace = open_workspace(
                roots or [str(root)], state_dir=str(tmp_path / "state"), mode=mode, **options
            )
            stack.callback(workspace.close)
            return workspace

        yield open_one


@pytest.fixture
def workspace(open_here: Callable[..., Workspace]) -> Workspace:
    return open_here()


@pytest.fixture
def session() -> Session:
    return Session("s1", Actor("agent", "tester", "1.0"))


@pytest.fixture
def other() -> Session:
    return Session("s2", Actor("agent", "another"))

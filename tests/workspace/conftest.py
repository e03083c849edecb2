"""Files whose settings name their encoding."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

import pytest

from filepact.config.settings import Settings
from filepact.text.glob import Glob

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.workspace.workspace import Workspace


@pytest.fixture
def opened(open_here: Callable[..., Workspace]) -> Callable[..., Workspace]:
    """Open a workspace in which globs have encodings."""

    def open_one(*encodings: tuple[str, str]) -> Workspace:
        chosen = [
            (Glob.parse(glob, braces=True), codecs.lookup(name).name) for glob, name in encodings
        ]
        return open_here(settings=Settings(tuple(chosen)))

    return open_one

"""A journal in a file, as a process has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.workspace.journal import JournalStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def store(path: Path) -> Iterator[JournalStore]:
    # The annotation is checked: the class has the shape that the engine asks for.
    store: JournalStore = SqliteStore(str(path))
    yield store
    store.close()

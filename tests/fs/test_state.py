"""What the state folder keeps by itself: its name among all that use a database, and small notes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from filepact.errors import StateFailedError
from filepact.fs.state import NAME, open_state, read_note

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_has_one_name_whoever_asks_first(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(open_state(str(tmp_path / "s")).name))
        for _ in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert open_state(str(tmp_path / "s")).name == found[0] != ""


def test_a_name_that_a_crash_left_empty_is_made(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    name = open_state(str(tmp_path)).name
    assert name
    assert open_state(str(tmp_path)).name == name


def test_a_name_that_cannot_be_read_is_not_made_anew(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(StateFailedError):
        _ = open_state(str(tmp_path)).name
    assert (tmp_path / NAME).is_dir()


def test_a_note_that_is_a_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "note").mkdir()
    assert read_note(str(tmp_path), "note") == b""

"""Links: symbolic ones with owner and time, and files of several names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from filepact.fs.attributes import file_id
from filepact.fs.links import names_of

if TYPE_CHECKING:
    from pathlib import Path


def test_all_names_of_a_file_are_found_and_no_folder_is_looked_at_twice(tmp_path: Path) -> None:
    for name in ("a", "deep/er/b", "deep/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if name == "a":
            (tmp_path / name).write_text("x")
        else:
            os.link(tmp_path / "a", tmp_path / name)
    looked: list[str] = []

    def open_below(path: str) -> int:
        looked.append(path)
        return os.open(tmp_path / path, os.O_RDONLY | os.O_DIRECTORY)

    found = names_of(file_id((tmp_path / "a").stat()), open_below, near="deep/c", most=3)
    assert sorted(found) == ["a", "deep/c", "deep/er/b"]
    assert len(looked) == len(set(looked))
    alone = tmp_path / "alone"
    alone.write_text("y")
    assert names_of(file_id(alone.stat()), open_below, near="alone", most=2) == []

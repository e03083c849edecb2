"""A folder with a file to change and one to keep, opened for an agent of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import filepact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact import Files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "cart.py").write_bytes(b"total = 0\r\ncount = 1\r\n")
    (folder / ".env").write_text("TOKEN=tok-1234\n")
    return folder


@pytest.fixture
def files(root: Path, tmp_path: Path) -> Iterator[Files]:
    with filepact.open(
        root, agent="helper", rules="built-in", state_dir=tmp_path / "state"
    ) as opened:
        yield opened

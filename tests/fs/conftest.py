"""A root with hostile surroundings, under each resolver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest

from filepact.errors import PathBlockedError
from filepact.fs.root import Root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HIDDEN = "SECRET"


@dataclass(frozen=True)
class Grounds:
    """A root, what lies beside it, and what nobody may reach."""

    outer: Path

    @property
    def root(self) -> Path:
        return self.outer / "root"

    @property
    def outside(self) -> Path:
        return self.outer / "outside"

    def left(self) -> dict[str, str]:
        """Every regular file inside, by name, with its text."""
        return {
            str(path.relative_to(self.root)): path.read_text()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def untouched(self) -> bool:
        """Whether all that lies outside is as it was made."""
        found = {
            str(path.relative_to(self.outer)): path.read_text()
            for folder in (self.outside, self.outer / "root-evil")
            for path in folder.rglob("*")
            if path.is_file()
        }
        return found == {"outside/secret.txt": HIDDEN, "root-evil/secret.txt": HIDDEN}


@pytest.fixture
def grounds(tmp_path: Path) -> Grounds:
    made = Grounds(tmp_path)
    for folder in ("root/src", "root/docs", "outside", "root-evil"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in (
        ("README.md", "readme"),
        ("src/main.py", "main"),
        ("docs/guide.md", "guide"),
    ):
        (made.root / name).write_text(text)
        (made.root / name).chmod(0o644)
    for name in ("outside/secret.txt", "root-evil/secret.txt"):
        (tmp_path / name).write_text(HIDDEN)
    return made


@pytest.fixture(params=["openat2", "walk"])
def resolver(request: pytest.FixtureRequest, tmp_path: Path) -> Literal["openat2", "walk"]:
    if request.param == "openat2":
        try:
            Root.open(tmp_path, resolver="openat2").close()
        except PathBlockedError:
            pytest.skip("this system has no openat2")
    return request.param


@pytest.fixture
def root(grounds: Grounds, resolver: Literal["openat2", "walk"]) -> Iterator[Root]:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with Root.open(grounds.root, resolver=resolver) as opened:
        yield opened
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before, "a descriptor was left open"

"""The suite's own throw-away folder: the only files that it touches.

A session's folder lies beside folders that the session must not reach.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["Folder", "Scratch", "resolved"]


class Folder:
    """A folder that a check may fill.

    Args:
        path: Absolute, with every link resolved.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._path = Path(path)

    def at(self, name: str) -> str:
        """The path of a name in it."""
        return f"{self.path}/{name}"

    def below(self, name: str) -> Folder:
        """A folder in it, made if it is not there."""
        (self._path / name).mkdir(parents=True, exist_ok=True)
        return Folder(self.at(name))

    def put(self, name: str, data: bytes, mode: int | None = None) -> str:
        """Make a file; its path."""
        file = self._path / name
        file.write_bytes(data)
        if mode is not None:
            file.chmod(mode)
        return self.at(name)

    def add(self, name: str, data: bytes) -> None:
        """Add to a file, or make it."""
        with (self._path / name).open("ab") as file:
            file.write(data)

    def get(self, name: str) -> bytes | None:
        """A file's bytes; None if there is no file."""
        file = self._path / name
        return file.read_bytes() if file.is_file() else None

    def link(self, name: str, target: str) -> str:
        """Make a symbolic link; its path."""
        (self._path / name).symlink_to(target)
        return self.at(name)

    def pipe(self, name: str) -> str:
        """Make a named pipe that nobody writes to; its path."""
        os.mkfifo(self._path / name)
        return self.at(name)

    def release(self, name: str) -> None:
        """Let whoever waits for the other end of a named pipe go on."""
        os.close(os.open(self._path / name, os.O_RDWR | os.O_NONBLOCK))

    def mode(self, name: str) -> int:
        """A file's permission bits."""
        return (self._path / name).stat().st_mode & 0o7777

    def names(self) -> list[str]:
        """What is in it, sorted."""
        return sorted(entry.name for entry in self._path.iterdir())

    def is_same(self, path: str) -> bool:
        """Whether a path leads to this very folder."""
        other = Path(path)
        return other.is_dir() and other.samefile(self._path)


class Scratch(Folder):
    """The whole of it.

    Attributes:
        work: The folder of the session that the client opens.
        more: A further folder of sessions that have two.
        other: The folder of another session.
        evil: Beside ``work``, with a name that begins like it.
        outside: No session's.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.work = self.below("work")
        self.more = self.below("more")
        self.other = self.below("other")
        self.evil = self.below("work-evil")
        self.outside = self.below("outside")


def resolved(path: str) -> str:
    """A path without links, as it has to be compared."""
    return str(Path(path).resolve())

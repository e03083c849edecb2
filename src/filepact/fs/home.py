"""The secrets in a person's home folder, by inode: a hard link to one is known for what it is.

No path tells that a file inside a root is also ``~/.ssh/id_ed25519``; its inode does.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HomeSecrets"]

_DEPTH = 3
_MOST = 5_000
# Of the folders in a home those that keep settings begin with a dot; these two can be huge.
_SKIPPED = frozenset({".cache", ".local"})


class HomeSecrets:
    """Which inodes are those of secrets below a home folder.

    Args:
        home: The home folder; None knows no secrets.
        is_secret: Whether a path, relative to the home folder, is that of a secret.
    """

    def __init__(self, home: str | None, is_secret: Callable[[str], bool]) -> None:
        self._home = home
        self._is_secret = is_secret
        self._known: frozenset[tuple[int, int]] | None = None
        self._lock = Lock()

    def learn(self) -> None:
        """Look for them now, for a process that will not be let into the home folder later."""
        with self._lock:
            if self._known is None:
                self._known = frozenset(self._look())

    def holds(self, device: int, inode: int) -> bool:
        """Whether a file is one of them.

        A secret that is not known yet is looked for by its name, so one that was made after the
        first look is found unless its folder is new.
        """
        self.learn()
        return (device, inode) in (self._known or ())

    def _look(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        if self._home is None:
            return found
        folders = [("", self._home, 0)]
        seen = 0
        while folders:
            inside, folder, depth = folders.pop()
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST:
                        return found
                    path = f"{inside}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        deeper = depth + 1 < _DEPTH and (depth > 0 or entry.name[0] == ".")
                        if deeper and entry.name not in _SKIPPED:
                            folders.append((f"{path}/", entry.path, depth + 1))
                    elif self._is_secret(path):
                        with suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            if stat.S_ISREG(status.st_mode):
                                found.add((status.st_dev, status.st_ino))
        return found

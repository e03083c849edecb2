"""Secrets by inode, in a person's home folder and in a root: a hard link to one is known for what it is.

No path tells that a file inside a root is also ``~/.ssh/id_ed25519``, or the ``.env`` beside it; its
inode does.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from filepact.fs.path_form import token_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SecretIndex"]

_DEPTH = 3
_MOST = 5_000
_MOST_IN_ROOT = 50_000
_FRESH = 1.0
"""Seconds for which a look through a root counts."""
# Of the folders in a home those that keep settings begin with a dot; these two can be huge.
_SKIPPED = frozenset({".cache", ".local"})


class SecretIndex:
    """The inodes of secrets below a home folder, and in roots.

    Args:
        home: The home folder; None knows no secrets.
        is_secret: Whether a path, relative to the home folder or to a root, is that of a secret.
    """

    def __init__(self, home: str | None, is_secret: Callable[[str], bool]) -> None:
        self._home = home
        self._is_secret = is_secret
        self._known: frozenset[tuple[int, int]] | None = None
        self._inside: dict[str, tuple[float, frozenset[tuple[int, int]]]] = {}
        self._lock = Lock()

    def learn(self) -> None:
        """Look for them now; a process that is going to confine itself cannot do so later."""
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

    def holds_inside(self, root: str, path: str, device: int, inode: int) -> bool:
        """Whether a file of a root, which has several names, is a secret of that root under another.

        The root is looked through for names of secrets, at most once a second, and of a large one
        the first 50,000 entries, from the top down.

        Args:
            root: Absolute.
            path: The name that it was found by; what is a secret by that is for the rules.
            device: See inode.
            inode: With the device, the file.
        """
        if self._is_secret(path):
            return False
        with self._lock:
            when, known = self._inside.get(root, (0.0, frozenset()))
            if (device, inode) not in known and time.monotonic() - when > _FRESH:
                known = frozenset(self._look_inside(root))
                self._inside[root] = time.monotonic(), known
        return (device, inode) in known

    def _look_inside(self, root: str) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        folders, seen = deque([("", root)]), 0
        while folders and seen < _MOST_IN_ROOT:
            inside, folder = folders.popleft()
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    path = f"{inside}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((f"{path}/", entry.path))
                    # What a change has under a temporary name of ours, for good after a crash, is no secret for that.
                    elif token_of(entry.name) is None and self._is_secret(path):
                        with suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                                found.add((status.st_dev, status.st_ino))
        return found

    def _look(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for entry, _path, _secret in self._entries():
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    found.add((status.st_dev, status.st_ino))
        return found

    def places(self) -> tuple[str, ...]:
        """The secrets below the home folder by their absolute paths; a folder stands for all in it."""
        found: dict[str, None] = {}
        for entry, path, secret in self._entries():
            whole = entry.path[: len(entry.path) - len(path) + len(secret)]
            found[whole] = None
        return tuple(found)

    def _entries(self) -> Iterator[tuple[os.DirEntry[str], str, str]]:
        """The secret files below the home folder, each with its path and how much of that makes it one."""
        folders = [("", self._home, 0, "")] if self._home is not None else []
        seen = 0
        while folders:
            inside, folder, depth, secret = folders.pop()
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST:
                        return
                    path = f"{inside}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        deeper = depth + 1 < _DEPTH and (depth > 0 or entry.name[0] == ".")
                        if deeper and entry.name not in _SKIPPED:
                            above = secret or (path if self._is_secret(path) else "")
                            folders.append((f"{path}/", entry.path, depth + 1, above))
                    elif self._is_secret(path):
                        yield entry, path, secret or path

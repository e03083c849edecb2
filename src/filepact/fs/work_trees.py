"""Git's work trees beneath a root, and which files their indexes track.

Nobody is shown anything of the index: names are only compared with names that a walk has found.
It is read through the root like any file, so one that lies outside is not read at all.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError, NotFoundError
from filepact.text.git_index import InvalidIndexError, read_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["MAX_INDEX_BYTES", "WorkTreeIndex", "WorkTrees"]

MAX_INDEX_BYTES: Final = 64 << 20
"""Largest index that is read; of a larger one it is not known what is tracked."""

_MAX_LINK_BYTES = 4_096
_MOST_TREES = 64


class WorkTreeIndex:
    """The names that the index of one work tree tracks.

    Args:
        prefix: The tree's top with a slash behind it, relative to the root; empty for the root.
        names: The names in its index, relative to its top.
    """

    def __init__(self, prefix: str, names: Sequence[bytes]) -> None:
        self._skip = len(prefix)
        self._names = sorted(names)

    def __call__(self, path: str) -> bool:
        """Whether a path is tracked, or anything below it; it must lie in the tree."""
        name = os.fsencode(path[self._skip :])
        names = self._names
        at = bisect_left(names, name)
        if at < len(names) and names[at] == name:
            return True
        # Names such as `a-b` and `a.b` stand between `a` and what lies below it.
        name += b"/"
        at = bisect_left(names, name, at)
        return at < len(names) and names[at].startswith(name)


class WorkTrees:
    """The work trees of a root; an index that has changed is read again.

    Args:
        root: The root's true path; only compared with.
        read: Reads a file of the root without following links, up to a number of bytes.
        glance: The stamp of a file of the root; None where nothing is.
    """

    def __init__(
        self,
        root: str,
        read: Callable[[str, int], bytes],
        glance: Callable[[str], tuple[int, ...] | None],
    ) -> None:
        self._root = root
        self._bytes = read
        self._glance = glance
        self._known: dict[str, tuple[tuple[int, ...] | None, WorkTreeIndex | None]] = {}

    def at(self, top: str) -> WorkTreeIndex | None:
        """What the tree with this top folder tracks; None where that cannot be told.

        Args:
            top: The folder that holds ``.git``, as a canonical path.
        """
        prefix = "" if top == "." else f"{top}/"
        folder = self._folder(top, f"{prefix}.git")
        if folder is None:
            return None
        # The stamp is taken before the bytes: one that has changed since is read again.
        stamp = self._glance(f"{folder}/index")
        known = self._known.get(top)
        if known is not None and known[0] == stamp:
            return known[1]
        tracked = self._read(folder, prefix)
        while len(self._known) >= _MOST_TREES:
            self._known.pop(next(iter(self._known)), None)
        self._known[top] = stamp, tracked
        return tracked

    def _read(self, folder: str, prefix: str) -> WorkTreeIndex | None:
        try:
            data = self._bytes(f"{folder}/index", MAX_INDEX_BYTES)
        except NotFoundError:
            # Git makes the index with the first file; a folder without a HEAD is none of its own.
            return WorkTreeIndex(prefix, ()) if self._glance(f"{folder}/HEAD") else None
        except FilepactError:
            return None
        try:
            names, shared = read_index(data)
            if shared:
                # What the shared one has and this one has dropped counts too: it is searched
                # once more than it would have to be, and not once less.
                path = f"{folder}/sharedindex.{shared}"
                data = self._bytes(path, MAX_INDEX_BYTES)
                names += read_index(data).names
        except (FilepactError, InvalidIndexError):
            return None
        return WorkTreeIndex(prefix, names)

    def _folder(self, top: str, path: str) -> str | None:
        """The folder that Git keeps a tree's index in, if it lies in the root."""
        try:
            data = self._bytes(path, _MAX_LINK_BYTES)
        except FilepactError:
            return path  # A folder, most of the time.
        # A linked work tree or a submodule says where it lies.
        mark, _, said = os.fsdecode(data).rstrip("\r\n").partition(": ")
        if mark != "gitdir":
            return None
        true = os.path.normpath(os.path.join(self._root, top, said))
        inside = f"{self._root.rstrip('/')}/"
        return true[len(inside) :] if true.startswith(inside) else None

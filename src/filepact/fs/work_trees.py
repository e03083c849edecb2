"""Git's work trees beneath a root, and which files their indexes track.

Nobody is shown anything of the index: names are only compared with names that a walk has found.
It is read through the root like any file, so one that lies outside is not read at all.  Indexes are
understood in versions 2 to 4, with hashes of either length (gitformat-index(5)); their bytes may be
anybody's: no count in them is believed beyond the bytes that are there.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.errors import FilepactError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "MAX_INDEX_BYTES",
    "IndexNames",
    "InvalidIndexError",
    "WorkTreeIndex",
    "WorkTrees",
    "read_index",
]

MAX_INDEX_BYTES: Final = 64 << 20
"""Largest index that is read; of a larger one it is not known what is tracked."""

_MAX_EXCLUDE_BYTES = 262_144
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
        folders = root.rstrip("/").split("/")[:-1]
        tops = ("/".join((*folders[:count], ".git")) for count in range(1, len(folders) + 1))
        self._above = any(map(os.path.lexists, tops))
        self._bytes = read
        self._glance = glance
        self._known: dict[str, tuple[tuple[int, ...] | None, WorkTreeIndex | None]] = {}

    @property
    def begin_above(self) -> bool:
        """Whether the root lies within a work tree of which the top, and so some of the rules, is not read."""
        return self._above and self._glance(".git") is None

    def at(self, top: str) -> WorkTreeIndex | None:
        """The tracked files of the work tree with this top folder; None where they cannot be told.

        Args:
            top: The folder that holds ``.git``, as a canonical path.
        """
        prefix = "" if top == "." else f"{top}/"
        folder = self._folder(top, f"{prefix}.git")
        if folder is None:
            return None
        # The stamp is taken before the bytes: one that has changed since is read again.
        stamp = self._stamp(folder)
        known = self._known.get(top)
        if known is not None and known[0] == stamp:
            return known[1]
        tracked = self._read(folder, prefix)
        while len(self._known) >= _MOST_TREES:
            self._known.pop(next(iter(self._known)), None)
        self._known[top] = stamp, tracked
        return tracked

    def stamp(self, top: str) -> tuple[tuple[int, ...] | None, ...]:
        """A stamp that differs once what the tree with this top folder tracks or excludes may."""
        folder = self._folder(top, ".git" if top == "." else f"{top}/.git")
        if folder is None:
            return ()
        exclude = self._exclude(folder)
        return self._stamp(folder), self._glance(exclude) if exclude else None

    def _stamp(self, folder: str) -> tuple[int, ...] | None:
        """The stamp of an index; before there is one, it tells whether there is a HEAD."""
        return self._glance(f"{folder}/index") or self._glance(f"{folder}/HEAD")

    def exclude(self, top: str) -> str:
        """The text of the exclude file of the tree with this top folder; empty where none is read.

        Work trees that are linked share that of the repository which they belong to.
        """
        folder = self._folder(top, ".git" if top == "." else f"{top}/.git")
        path = "" if folder is None else self._exclude(folder)
        try:
            return os.fsdecode(self._bytes(path, _MAX_EXCLUDE_BYTES)) if path else ""
        except FilepactError:
            return ""

    def _exclude(self, folder: str) -> str:
        """Where the exclude file of the tree with this folder of Git's is; empty outside of the root."""
        try:
            said = os.fsdecode(self._bytes(f"{folder}/commondir", _MAX_LINK_BYTES))
        except FilepactError:
            return f"{folder}/info/exclude"
        common = self._inside(os.path.join(folder, said.rstrip("\r\n")))
        return f"{common}/info/exclude" if common else ""

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
        return self._inside(os.path.join(top, said))

    def _inside(self, path: str) -> str | None:
        """A path from the root, or an absolute one, beneath the root; None where it leads out."""
        true = os.path.normpath(os.path.join(self._root, path))
        inside = f"{self._root.rstrip('/')}/"
        return true[len(inside) :] if true.startswith(inside) else None


_BEFORE_HASH = 40
_FLAGS = 2
_EXTENDED = 0x4000
_LENGTH = 0x0FFF
_HASHES = (20, 32)
_MOST_NAME = 65_536


class InvalidIndexError(ValueError):
    """These bytes are no index that is understood."""


class IndexNames(NamedTuple):
    """The entries of an index.

    Attributes:
        names: Paths from the top of the work tree, slashes between their parts, as they stand.
        shared: The hash, in hexadecimal, of the index that this one adds to; empty mostly.
    """

    names: list[bytes]
    shared: str


def read_index(data: bytes) -> IndexNames:
    """Read the names of an index file.

    Raises:
        InvalidIndexError: The bytes are cut off, or something else.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise InvalidIndexError("not an index of version 2, 3 or 4")
    for width in _HASHES:
        try:
            names, end = _entries(data, width, packed=version == 4)
            return IndexNames(names, _shared(data, end, width))
        except (IndexError, InvalidIndexError):
            # Which hash it has stands in another file; with the wrong one nothing fits.
            continue
    raise InvalidIndexError("the entries and the end of the file do not fit")


def _entries(data: bytes, width: int, *, packed: bool) -> tuple[list[bytes], int]:
    """All names, and where the entries end."""
    names: list[bytes] = []
    at, fixed = 12, _BEFORE_HASH + width + _FLAGS
    last = b""
    limit = len(data) - width
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = at + fixed
        if start >= limit:
            raise InvalidIndexError("cut off")
        flags = data[start - 2] << 8 | data[start - 1]
        if flags & _EXTENDED:
            start += 2
        if packed:
            drop, start = _number(data, start)
            end = data.find(b"\0", start, start + _MOST_NAME)
            if drop > len(last) or end < 0:
                raise InvalidIndexError("a name does not fit the one before it")
            last = last[: len(last) - drop] + data[start:end]
            if len(last) > _MOST_NAME:
                raise InvalidIndexError("a name is too long")
            at = end + 1
        else:
            end = start + (flags & _LENGTH)
            if flags & _LENGTH == _LENGTH:
                end = data.find(b"\0", end)
            if end < 0 or end >= limit or data[end]:
                raise InvalidIndexError("a name has no end")
            last = data[start:end]
            at = end + 8 - (end - at) % 8
        names.append(last)
    return names, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as offsets in packs are written, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 0x7F
        if value > _MOST_NAME:
            raise InvalidIndexError("a name is too long")
    return value, at + 1


def _shared(data: bytes, at: int, width: int) -> str:
    """The hash of the shared index, from the extensions behind the entries."""
    shared = ""
    limit = len(data) - width
    while at < limit:
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"link":
            shared = data[at + 8 : at + 8 + width].hex()
        at += 8 + size
    if at != limit:
        raise InvalidIndexError("the end does not fit")
    return shared

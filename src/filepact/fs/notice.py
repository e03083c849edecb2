"""Notices: the system says which names were touched, so that not every file has to be looked at.

It says so before the call that touched them returns, for whatever programs of this machine do on
file systems of its own.  What another machine writes to a shared one is not noticed, so on such
there are no notices.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from filepact.errors import FilepactError
from filepact.fs.kernel import file_system, notices_from, open_notices
from filepact.fs.stamp import is_temporary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.fs.root import Root

__all__ = ["Noticed", "Notices"]

# Numbers of <linux/magic.h>: file systems that only this machine writes to.
_OWN: Final = frozenset(
    {
        0x0000_EF53,  # ext2, ext3, ext4
        0x0102_1994,  # tmpfs
        0x2FC1_2FC1,  # zfs
        0x5846_5342,  # xfs
        0x794C_7630,  # overlayfs
        0x8584_58F6,  # ramfs
        0x9123_683E,  # btrfs
        0xCA45_1A4E,  # bcachefs
        0xF2F5_2010,  # f2fs
    }
)

# Bits of <sys/inotify.h>.
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW = 0x400, 0x800, 0x2000, 0x4000
_ONLY_FOLDERS, _NOT_UNLINKED, _IS_FOLDER = 0x0100_0000, 0x0400_0000, 0x4000_0000

_CONTENTS: Final = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_WANTED: Final = _CONTENTS | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS | _NOT_UNLINKED
_STRUCTURE: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW
_COMING_AND_GOING: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE

_HEAD: Final = struct.Struct("iIII")
_BLOCK: Final = 1 << 16


class Noticed(NamedTuple):
    """What was touched since the last time.

    Attributes:
        names: Files, by path beneath the root.
        gone: Those of them that were not there for a time at least.  One that exchanged its name
            with another of ours was there all the time.
        come: Those of them that were made, or moved there; they may have gone again.
        folders: Whether folders came, went or moved, or there was too much to tell: then everything
            has to be looked at, and watched anew.
    """

    names: frozenset[str]
    gone: frozenset[str]
    come: frozenset[str]
    folders: bool


class Notices:
    """The notices about the folders of one root; for all threads.

    Args:
        root: The root.
        descriptor: Where they are read.
    """

    def __init__(self, root: Root, descriptor: int) -> None:
        self._root = root
        self._descriptor = descriptor
        self._folders: dict[int, str] = {}
        self._watched: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, root: Root) -> Self | None:
        """Notices about a root; None where the system gives none that can be relied on."""
        try:
            folder = root.open_directory(".", follow=False)
        except FilepactError:
            return None
        try:
            if file_system(folder) not in _OWN:
                return None
            return cls(root, open_notices())
        except OSError:
            return None
        finally:
            os.close(folder)

    def close(self) -> None:
        """Read no more of them."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)

    def watch(self, folders: Iterable[str]) -> bool:
        """Have notices given about folders as well.

        Args:
            folders: Paths beneath the root, ``.`` for the root itself.

        Returns:
            Whether one of them was not watched before; what was in it may have changed until now.

        Raises:
            OSError: There cannot be so many.
        """
        new = set(folders) - self._watched
        for folder in new:
            try:
                descriptor = self._root.open_directory(folder, follow=False)
            except FilepactError:
                continue  # Gone again; the folder above it says so.
            try:
                if file_system(descriptor) not in _OWN:
                    raise OSError(errno.ENOSYS, "a file system that others write to")
                with self._lock:  # so that what is read about it is known to be about it
                    if self._closed:
                        return True
                    number = notices_from(self._descriptor, descriptor, _WANTED)
                    self._folders[number] = "" if folder == "." else f"{folder}/"
            finally:
                os.close(descriptor)
            self._watched.add(folder)
        return bool(new)

    def drain(self) -> Noticed:
        """All that was touched since the last time."""
        with self._lock:
            return self._drain()

    def _drain(self) -> Noticed:
        names: set[str] = set()
        moves = _Moves()
        structure = False
        while data := self._read():
            at = 0
            while at < len(data):
                number, mask, cookie, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = data[at : at + length].rstrip(b"\0")
                at += length
                moved = bool(mask & _IS_FOLDER and mask & _COMING_AND_GOING)
                structure |= moved or bool(mask & _STRUCTURE)
                if name and not mask & _IS_FOLDER:
                    path = self._folders.get(number, "") + os.fsdecode(name)
                    names.add(path)
                    moves.follow(path, mask, cookie)
        return Noticed(frozenset(names), frozenset(moves.gone), frozenset(moves.come), structure)

    def _read(self) -> bytes:
        if self._closed:
            return b""
        try:
            return os.read(self._descriptor, _BLOCK)
        except BlockingIOError:
            return b""


class _Moves:
    """Which names were left by their files, told from those that were exchanged for another.

    An exchange is noticed as two moves, there and back; the name is never free between them.

    Attributes:
        gone: The names that were free for a time.
        come: The names that were taken by a file.
    """

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.come: set[str] = set()
        self._from: dict[int, tuple[str, bool]] = {}
        self._came: dict[str, str] = {}

    def follow(self, path: str, mask: int, cookie: int) -> None:
        """Take one notice, in their order.

        Args:
            path: Whose name it is about.
            mask: What happened to it.
            cookie: The same for both ends of one move.
        """
        if mask & (_MOVED_TO | _CREATE):
            self.come.add(path)
        if mask & _MOVED_TO:
            source, was_gone = self._from.pop(cookie, ("", True))
            exchanged = self._came.get(source) == path and is_temporary(_name(path))
            if exchanged and not was_gone:
                self.gone.discard(source)
            self._came[path] = source
        elif mask & (_MOVED_FROM | _DELETE):
            if mask & _MOVED_FROM:
                self._from[cookie] = (path, path in self.gone)
            self.gone.add(path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]

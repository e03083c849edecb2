"""Notices changes of files without reading them, by inotify.

Inotify says which names were touched, before the call that touched them returns, for whatever programs of this
machine do on file systems of its own.  What another machine writes to a shared one is not noticed, so on such
there is no `InotifyWatcher`.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from filepact.domain.protected import is_in_git, leads_to_git, steers_git
from filepact.errors import FilepactError
from filepact.fs.kernel import file_system, inotify_add_watch, inotify_init, most_watches
from filepact.fs.watch import is_temporary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.fs.locks import FileLocks
    from filepact.fs.root import Root

__all__ = ["FileEvents", "InotifyWatcher", "WatcherLimit", "wait_for"]

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
_LOST: Final = _UNMOUNT | _OVERFLOW
_COMING_AND_GOING: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE

_AT_A_TIME: Final = 1_000
"""Folders that are taken into a share at once."""

_HEAD: Final = struct.Struct("iIII")
_BLOCK: Final = 1 << 16


class FileEvents(NamedTuple):
    """The files that were touched since the events were last read.

    Attributes:
        names: Files, by path beneath the root.
        removed: Those of them that were not there for a time at least.  One that exchanged its name
            with another of ours was there all the time.
        added: Those of them that were made, or moved there; they may have gone again.
        folders: Whether folders came, went or moved, or there was too much to tell: then everything
            has to be looked at, and watched anew.
        moved: The folders that came, went, moved or got other permissions, by path.
        lost: Whether there was too much to tell, the root itself went, or something was mounted in it.
    """

    names: frozenset[str]
    removed: frozenset[str]
    added: frozenset[str]
    folders: bool
    moved: frozenset[str] = frozenset()
    lost: bool = False


class InotifyWatcher:
    """The inotify instance that watches folders of one root; for all threads.

    Args:
        root: The root.
        descriptor: That of the inotify instance.
    """

    def __init__(self, root: Root, descriptor: int) -> None:
        self._root = root
        self._descriptor = descriptor
        self._mounts = root.mounts.changed()
        self._folders: dict[int, str] = {}
        self._watched: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, root: Root) -> Self | None:
        """Begin to watch a root; None where its file system can change without notice."""
        try:
            folder = root.open_directory(".", follow=False)
        except FilepactError:
            return None
        try:
            if file_system(folder) not in _OWN:
                return None
            return cls(root, inotify_init())
        except OSError:
            return None
        finally:
            os.close(folder)

    def close(self) -> None:
        """End the watch."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)

    def fileno(self) -> int:
        """The descriptor, which can be read once something was touched."""
        return self._descriptor

    def watch(self, folders: Iterable[str]) -> bool:
        """Watch folders as well.

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
                if not self.watch_open(folder, descriptor):
                    return True
            finally:
                os.close(descriptor)
        return bool(new)

    def watch_open(self, folder: str, descriptor: int) -> bool:
        """Watch one open folder as well, by this path from now on; errors as for `watch`.

        Returns:
            False once the watch has ended.
        """
        if file_system(descriptor) not in _OWN:
            raise OSError(errno.ENOSYS, "a file system that others write to")
        with self._lock:  # so that what is read about it is known to be about it
            if self._closed:
                return False
            number = inotify_add_watch(self._descriptor, descriptor, _WANTED)
            self._folders[number] = "" if folder == "." else f"{folder}/"
            self._watched.add(folder)
        return True

    def forget(self, folders: Iterable[str]) -> None:
        """Folders are gone, or elsewhere: watch them anew when they are named again."""
        with self._lock:
            self._watched.difference_update(folders)

    def drain(self) -> FileEvents:
        """Read all events since the last call."""
        with self._lock:
            return self._drain()

    def _drain(self) -> FileEvents:
        names: set[str] = set()
        moved: set[str] = set()
        moves = _Moves()
        mounts, self._mounts = self._mounts, self._root.mounts.changed()
        structure = lost = mounts != self._mounts
        while data := self._read():
            at = 0
            while at < len(data):
                number, mask, cookie, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = data[at : at + length].rstrip(b"\0")
                at += length
                path = self._folders.get(number, "") + os.fsdecode(name)
                if name and is_in_git(path):
                    # Git itself writes there with every command.
                    wanted = leads_to_git if mask & _IS_FOLDER else steers_git
                    if not wanted(path):
                        continue
                # Of other folders the one above says that they went.
                lost |= bool(mask & _LOST) or (not path and bool(mask & _STRUCTURE))
                structure |= bool(mask & _STRUCTURE)
                if name and mask & _IS_FOLDER:
                    structure |= bool(mask & _COMING_AND_GOING)
                    moved.add(path)
                elif not path and mask & _ATTRIB:
                    moved.add(".")
                elif name:
                    names.add(path)
                    moves.follow(path, mask, cookie)
        return FileEvents(
            frozenset(names),
            frozenset(moves.gone),
            frozenset(moves.come),
            folders=structure,
            moved=frozenset(moved),
            lost=lost,
        )

    def _read(self) -> bytes:
        if self._closed:
            return b""
        try:
            return os.read(self._descriptor, _BLOCK)
        except BlockingIOError:
            return b""


class WatcherLimit:
    """How many folders an index may watch, so that all of a user leave half of what there is to others.

    A share is locks, each for some folders, which processes of one state folder share, and which end with
    their process.

    Args:
        locks: The locks; None where there are no other processes.
    """

    def __init__(self, locks: FileLocks | None) -> None:
        self._locks = locks
        self._held = ExitStack()
        self._folders = self._last = 0

    def covers(self, folders: int) -> bool:
        """Whether so many folders may be watched, after more was taken where that is needed and to be had."""
        while self._folders < folders:
            if not self._more():
                return False
            self._folders += _AT_A_TIME
        return True

    def close(self) -> None:
        """Leave it to others; it can be taken again."""
        self._held.close()
        self._folders = 0

    def _more(self) -> bool:
        most = most_watches() // 2 // _AT_A_TIME
        if self._locks is None:
            return self._folders < most * _AT_A_TIME
        with suppress(FilepactError):
            for number in (*range(self._last, most), *range(min(self._last, most))):
                held = self._locks.try_hold([f"watched folders {number}"])
                if held is not None:
                    self._held.enter_context(held)
                    self._last = number
                    return True
        return False


def wait_for(descriptors: Iterable[int], seconds: float | None) -> frozenset[int]:
    """Wait until any of some descriptors can be read, or is closed on its other side.

    Args:
        descriptors: Of watchers and pipes.
        seconds: How long; None for as long as it takes.

    Returns:
        Which of them; none when the time was over.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if seconds is None else max(0, int(seconds * 1_000)))
    return frozenset(descriptor for descriptor, _ in found)


class _Moves:
    """Tells names that were free for a time from names whose files were exchanged.

    An exchange comes as two moves, there and back; the name is never free between them.

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
        """Take in one event; they come in order.

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

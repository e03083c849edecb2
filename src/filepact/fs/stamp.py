"""Stamps: what the system says of a file without its bytes, by which a change is noticed.

A stamp says whether to look again, and nothing about what would be found.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.errors import FilepactError, ReadFailedError
from filepact.fs.atomic import token_of
from filepact.fs.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from filepact.fs.root import Root

__all__ = ["Scan", "Stamp", "is_gone", "is_temporary", "moment", "scan", "stamp_at"]

_COARSE: Final = 5  # CLOCK_REALTIME_COARSE of <linux/time.h>
_NAP: Final = 0.0005  # seconds; the clock of stamps goes on every 1 to 10 milliseconds


class Stamp(NamedTuple):
    """A regular file or a link, as the system has it.

    A named tuple, because a scan makes thousands of them.

    Attributes:
        inode: Its number on the file system.
        size: Bytes.
        modified: When the bytes were written last, nanoseconds since the epoch; can be forged.
        changed: When anything about it changed last; cannot be forged without the clock.
        mode: Kind and permission bits.
    """

    inode: int
    size: int
    modified: int
    changed: int
    mode: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def permissions(self) -> int:
        return stat.S_IMODE(self.mode)


class Scan(NamedTuple):
    """All files and links of a root that are not ignored.

    Attributes:
        stamps: By root-relative path, in path order.
        folders: The folders, by path.
        unreadable: Folders that could not be looked into.
        end: The last path that was looked at when there were too many files; else None.
        cancelled: Whether the caller ended it early.
    """

    stamps: dict[str, Stamp]
    folders: frozenset[str]
    unreadable: tuple[str, ...]
    end: str | None
    cancelled: bool


def scan(root: Root, *, skip: Collection[str], most: int, cancelled: Callable[[], bool]) -> Scan:
    """Take the stamps of a root.

    Links are not followed, and our own files of a moment are left out.

    Args:
        root: The folder.
        skip: Folders that are not entered.
        most: Most files and links.
        cancelled: Asked before each folder.

    Raises:
        PathBlockedError: The root is no longer there.
    """
    stamps: dict[str, Stamp] = {}
    folders: set[str] = set()
    last = ""
    cut = False

    def allow(path: str, is_dir: bool) -> bool:
        return not (is_dir and path in skip)

    with walk(root, allow=allow, cancelled=cancelled) as entries:
        for entry in entries:
            if len(stamps) >= most:
                cut = True
                break
            last = entry.path
            if entry.kind == "folder":
                folders.add(entry.path)
            elif entry.kind != "other" and not is_temporary(entry.name):
                try:
                    status = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    stamps[entry.path] = _stamp(status)
    end = last if cut or entries.cut else None
    return Scan(stamps, frozenset(folders), tuple(entries.unreadable), end, entries.cancelled)


def stamp_at(root: Root, path: str) -> Stamp | None:
    """The stamp of one file or link; None where there is none, or behind a link."""
    above, _, name = path.rpartition("/")
    try:
        folder = root.open_directory(above or ".", follow=False)
    except FilepactError:
        return None
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    finally:
        os.close(folder)
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return _stamp(status)
    return None


def is_gone(root: Root, path: str) -> bool:
    """Whether a file without a stamp is not there, and not only in a folder that is closed to us."""
    above, _, name = path.rpartition("/")
    try:
        folder = root.open_directory(above or ".", follow=False)
    except FilepactError as error:
        return not isinstance(error, ReadFailedError)
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(
        status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode
    )


def moment() -> int:
    """Wait, some milliseconds at most, until stamps are later than the time at which this began.

    Returns:
        That time: what is changed from now on has a later stamp, and all else has none.
    """
    begun = time.time_ns()
    while _clock() <= begun:
        time.sleep(_NAP)
    return begun


def _clock() -> int:
    """The earliest time that a stamp may get now; it goes on in steps."""
    return time.clock_gettime_ns(_COARSE) if sys.platform == "linux" else time.time_ns()


def is_temporary(name: str) -> bool:
    """Whether a file's own name is one that we give to files of a moment."""
    return token_of(name) is not None

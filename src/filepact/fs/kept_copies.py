"""Copies of files that are too large to be read before a call which may remove or overwrite them.

A copy has no name, and lies on the disk of the state folder: what stops this process leaves nothing behind.  Where the file
system shares blocks (reflink), a copy takes no room.  Elsewhere the bytes are copied, but for a file that can only be
removed or replaced: that stays open, and its bytes are there for as long as it is, whatever becomes of its name.  A hard link
would do the same, but it changes the time of the file, by which everybody tells whether it was changed.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from filepact.errors import FilepactError
from filepact.fs.atomic import LARGEST
from filepact.fs.attributes import read_attributes
from filepact.fs.read import FileContents, read_whole

if TYPE_CHECKING:
    from collections.abc import Container, Hashable

    from filepact.domain.attributes import Attributes
    from filepact.fs.read_only_root import RootReader
    from filepact.fs.watch import Stamp

__all__ = ["KeptCopies", "Way"]

Way = Literal["", "copy", "open"]
"""How a file is kept: not at all, as a copy, or as the file itself, whose bytes are lost if they are overwritten in place."""

_FICLONE: Final = 0x40049409  # of <linux/fs.h>
_STEP: Final = 8 << 20
_MOST_COPIES: Final = 128


class _Copy(NamedTuple):
    descriptor: int
    stamp: Stamp
    status: os.stat_result
    attributes: Attributes | None
    way: Way


class KeptCopies:
    """Copies of files, by any keys.

    Args:
        folder: Where they are, beside the journal; empty for none.
        most: Bytes that all of them may have together.
        free: Bytes that stay free on the disk of the folder.
    """

    def __init__(self, folder: str, *, most: int = 256 << 20, free: int = 512 << 20) -> None:
        self._folder = folder
        self._most = most
        self._free = free
        self._copies: dict[Hashable, _Copy] = {}

    def keep(
        self,
        key: Hashable,
        root: RootReader,
        path: str,
        stamp: Stamp,
        *,
        in_place: bool,
        racy: bool,
        until: float,
    ) -> Way:
        """Keep a file as it is.

        Args:
            key: By which it is asked for again.
            root: Where it is.
            path: Its name there.
            stamp: Its stamp.
            in_place: Whether it may be overwritten in place, so that a copy is wanted rather than the open file.
            racy: Whether it may be overwritten and keep its stamp, so that the open file would not do.
            until: When copying has to end, by the monotonic clock.
        """
        old = self._copies.get(key)
        if old is not None and old.stamp == stamp and (old.way == "copy" or not in_place):
            return old.way
        self._let_go(key)
        size = sum(one.stamp.size for one in self._copies.values()) + stamp.size
        if not self._folder or stamp.is_link or stamp.size > LARGEST:
            return ""
        if size > self._most or len(self._copies) >= _MOST_COPIES:
            return ""
        try:
            source = root.open_regular(path, follow=False)
        except FilepactError:
            return ""
        copy = -1
        try:
            status = os.fstat(source)
            copy = self._copied(source, stamp.size, in_place=in_place or racy, until=until)
            if _stamped(os.fstat(source)) != stamp[:4] or (copy < 0 and racy):
                return ""
            way: Way = "open" if copy < 0 else "copy"
            held = os.dup(source if copy < 0 else copy)
            self._copies[key] = _Copy(held, stamp, status, read_attributes(source, status), way)
        except OSError:
            return ""
        finally:
            for one in (source, copy):
                if one >= 0:
                    os.close(one)
        return way

    def read(self, key: Hashable, stamp: Stamp) -> FileContents | None:
        """What a file held in the state that it was kept in; None where it is not kept, or was overwritten in place.

        Args:
            key: The file.
            stamp: That state.
        """
        copy = self._copies.get(key)
        if copy is None or copy.stamp != stamp:
            return None
        try:
            data = read_whole(copy.descriptor, LARGEST, "").data
            # The other time of an open file is that at which it lost its name.
            same = copy.way == "copy" or _stamped(os.fstat(copy.descriptor))[:3] == stamp[:3]
        except (FilepactError, OSError):
            return None
        if not same or len(data) != stamp.size:
            return None
        told = copy.status
        return FileContents(
            *(data, stamp.permissions, told.st_dev, told.st_ino, told.st_nlink, copy.attributes)
        )

    def is_kept(self, key: Hashable, stamp: Stamp) -> bool:
        """Whether a file is kept, or is the same as one that is, by another name."""
        return key in self._copies or any(
            (one.stamp.inode, one.stamp.size) == stamp[:2] for one in self._copies.values()
        )

    def release(self, wanted: Container[Hashable] = ()) -> None:
        """Let go of all copies but some."""
        for key in [one for one in self._copies if one not in wanted]:
            self._let_go(key)

    def _let_go(self, key: Hashable) -> None:
        if (copy := self._copies.pop(key, None)) is not None:
            os.close(copy.descriptor)

    def _copied(self, source: int, size: int, *, in_place: bool, until: float) -> int:
        """The descriptor of a copy; -1 for none.  Where nothing is lost by it, only one that takes no room is made."""
        with suppress(OSError), tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            copy = file.fileno()
            if _cloned(source, copy) or (in_place and self._copy(source, copy, size, until)):
                return os.dup(copy)
        return -1

    def _copy(self, source: int, copy: int, size: int, until: float) -> bool:
        disk = os.fstatvfs(copy)
        if disk.f_bavail * disk.f_frsize - size < self._free:
            return False
        at = 0
        while at < size and time.monotonic() < until:
            block = os.pread(source, min(_STEP, size - at), at)
            if not block:
                return False
            at += os.pwrite(copy, block, at)
        return at == size


def _cloned(source: int, copy: int) -> bool:
    """Whether a file shares all blocks of another now; nothing is done where the file system cannot do that."""
    try:
        import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

        fcntl.ioctl(copy, _FICLONE, source)
    except (ImportError, OSError):
        return False
    return True


def _stamped(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

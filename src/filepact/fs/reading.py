"""Reading one regular file, in one state, without ever opening anything else."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from filepact.errors import ReadFailedError, TooLargeError
from filepact.fs.found import HOLD
from filepact.fs.place import Contents, check_regular, unreadable

if TYPE_CHECKING:
    from filepact.fs.border import Border
    from filepact.fs.found import Found

__all__ = ["OPEN", "open_named", "open_regular", "read_whole"]

OPEN = os.O_RDONLY
"""Flags that read, wait for nobody, and never make a terminal this process's own."""
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
    OPEN |= getattr(os, _flag, 0)

_TRIES = 5


def open_regular(found: Found, border: Border, path: str) -> int:
    """Open the very file that was found, and nothing that has taken its place.

    Where the system can hold a file without opening it, nothing else is opened at all: opening
    alone wakes a pipe's writer and some drivers.  Elsewhere O_NONBLOCK keeps it from hanging.

    Raises:
        OSError: ``ELOOP``: a link is in its place; else the system's.
        PathBlockedError: It is no regular file, or another file system's.
    """
    if HOLD and found.handle >= 0:
        try:
            return os.open(f"/proc/self/fd/{found.handle}", OPEN)
        except FileNotFoundError:
            pass  # No /proc here.
    return _open_checked(found.parent, found.name, border, path)


def open_named(parent: int, name: str) -> int:
    """Open a file by its name in a folder, if it is a regular one.

    Raises:
        OSError: ``ELOOP``: it is a link; ``EINVAL``: it is neither file nor link; else the system's.
    """
    if not HOLD:
        return _regular(os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=parent))
    handle = os.open(name, HOLD, dir_fd=parent)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, "a link")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file")
        try:
            return os.open(f"/proc/self/fd/{handle}", OPEN)
        except FileNotFoundError:
            return _regular(os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=parent))
    finally:
        os.close(handle)


def _regular(descriptor: int) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file")


def _open_checked(parent: int, name: str, border: Border, path: str) -> int:
    """Open by name, and look at what was opened."""
    descriptor = os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=parent)
    try:
        status = os.fstat(descriptor)
        check_regular(status.st_mode, path)
        border.check(descriptor, status, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_whole(descriptor: int, limit: int, path: str) -> Contents:
    """Read all bytes of an open file that were there at one moment.

    Raises:
        TooLargeError: It has more bytes than the limit; nothing was read.
        ReadFailedError: The system refused, or a program keeps writing to the file.
    """
    for _ in range(_TRIES):
        before = os.fstat(descriptor)
        if before.st_size > limit:
            raise TooLargeError(
                f"{path}: has {before.st_size:,} bytes, the limit is {limit:,}",
                hint="Read a part of it with lines and offset, or search it with grep.",
                path=path,
                size=before.st_size,
                limit=limit,
            )
        data = _read(descriptor, limit, path)
        after = os.fstat(descriptor)
        # A file that changed between the two looks may have been read half old, half new.
        if _stamp(before) == _stamp(after) and len(data) == after.st_size:
            return Contents(
                data, stat.S_IMODE(after.st_mode), after.st_dev, after.st_ino, after.st_nlink
            )
    raise ReadFailedError(
        f"{path}: a program is writing to it all the time",
        hint="Try again when it is at rest.",
        path=path,
    )


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(descriptor: int, limit: int, path: str) -> bytes:
    """All bytes from the start, one more than the limit at most."""
    blocks: list[bytes] = []
    size = 0
    try:
        while size <= limit and (block := os.pread(descriptor, 1 << 22, size)):
            blocks.append(block)
            size += len(block)
    except OSError as error:
        raise unreadable(error, path) from None
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)

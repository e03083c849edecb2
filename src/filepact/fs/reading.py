"""Reading one regular file, in one state, without ever opening anything else."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from filepact.errors import ReadFailedError, TooLargeError
from filepact.fs.place import Contents, check_regular, unreadable

if TYPE_CHECKING:
    from filepact.fs.resolve import Found

__all__ = ["open_regular", "read_whole"]

_OPEN = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
    _OPEN |= getattr(os, _flag, 0)

_TRIES = 5


def open_regular(found: Found, path: str) -> int:
    """Open a file whose name may have become another kind's since it was looked at.

    Where the system can hold a file without opening it, nothing else is opened at all: opening
    alone wakes a pipe's writer and some drivers.  Elsewhere O_NONBLOCK keeps it from hanging.
    """
    if (hold := getattr(os, "O_PATH", 0)) and os.path.exists("/proc/self/fd"):
        handle = os.open(found.name, hold | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found.parent)
        try:
            mode = os.fstat(handle).st_mode
            if stat.S_ISLNK(mode):
                raise OSError(errno.ELOOP, "a link")
            check_regular(mode, path)
            return os.open(f"/proc/self/fd/{handle}", _OPEN)
        finally:
            os.close(handle)
    return os.open(found.name, _OPEN | os.O_NOFOLLOW, dir_fd=found.parent)


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
            return Contents(data, stat.S_IMODE(after.st_mode))
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

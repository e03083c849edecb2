"""What is where: the values that a root answers with, and how they are told."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from filepact.errors import NotAFileError, PathBlockedError, ReadFailedError, WriteFailedError

__all__ = [
    "Contents",
    "Place",
    "check_regular",
    "kind_of",
    "read_umask",
    "unreadable",
    "write_failed",
]


_PLAIN = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "the system does not permit it",
    errno.EIO: "the device reports an input/output error",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.ENOENT: "the folder is gone",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name leads.

    Attributes:
        path: The canonical name relative to the root, links resolved; ``.`` for the root.
        lock_key: The same for every name of one real file, also before it exists.
        mode: Permission bits, 0 when missing.
        size: Bytes, 0 when missing.
        links: Names the file has (hard links), 0 when missing.
        device: With the inode, the file itself, whatever names it has; 0 when missing.
        inode: See there.
    """

    path: str
    kind: Literal["file", "directory", "missing", "other", "link"]
    lock_key: str
    mode: int = 0
    size: int = 0
    links: int = 0
    device: int = 0
    inode: int = 0


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file held at one moment.

    Attributes:
        device: With the inode, the file that was read, whatever its name led to before or since.
        inode: See there.
        links: Names the file has (hard links).
    """

    data: bytes
    mode: int
    device: int = 0
    inode: int = 0
    links: int = 1


def kind_of(mode: int) -> Literal["file", "directory", "other"]:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "other"


def check_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise NotAFileError(f"{path}: is a folder", path=path)
    if not stat.S_ISREG(mode):
        raise PathBlockedError(
            f"{path}: is not a regular file (a device, pipe or socket)",
            hint="Only regular files can be used.",
            path=path,
        )


def unreadable(error: OSError, path: str) -> ReadFailedError:
    return ReadFailedError(
        f"{path}: {os.strerror(error.errno or 0).lower()}",
        hint="Tell the person: the system does not let filepact read it.",
        path=path,
        errno=error.errno,
    )


def read_umask() -> int:
    """The process's mask, read without changing it where the system tells it."""
    with suppress(OSError, StopIteration, ValueError):
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            line = next(line for line in status if line.startswith("Umask:"))
        return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_failed(error: OSError, shown: str) -> WriteFailedError:
    """The error for a refusal of the system before anything was changed."""
    why = _PLAIN.get(error.errno or 0, os.strerror(error.errno or 0).lower())
    return WriteFailedError(
        f"{shown}: {why}; nothing was changed",
        hint="Tell the person: the system has to allow it first.",
        path=shown,
        errno=error.errno,
    )

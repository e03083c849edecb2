"""Reads one regular file, in one state, and never opens anything else.

Also the values that a root answers with, and the errors for what the system refuses.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from filepact.domain.document import Revision, content_id
from filepact.errors import (
    NotAFileError,
    PathBlockedError,
    ReadFailedError,
    StaleFileError,
    TooLargeError,
    WriteFailedError,
)
from filepact.fs.attributes import read_attributes
from filepact.fs.kernel import getxattr, held
from filepact.fs.path_form import check_new_name, lock_key
from filepact.fs.resolve import HOLD
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.attributes import Attributes
    from filepact.fs.mounts import RootMounts
    from filepact.fs.resolve import Resolution

__all__ = [
    "LARGEST",
    "NO_EXCHANGE",
    "OPEN",
    "FileContents",
    "FileInfo",
    "PathInfo",
    "blocks",
    "check_regular",
    "digest",
    "found_info",
    "has_proc",
    "inode_of",
    "is_link",
    "kind_of",
    "link_target",
    "look_at",
    "made_meanwhile",
    "moved",
    "not_removed",
    "open_named",
    "open_regular",
    "permissions_given",
    "read_regular",
    "read_umask",
    "read_whole",
    "saved_twice",
    "unreadable",
    "write_failed",
]

NO_EXCHANGE = (
    "this file system cannot exchange two names: a save at the same instant could have been "
    "overwritten"
)
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
    errno.EBUSY: "it is mounted there by itself, or something is mounted over it",
    errno.ETXTBSY: "a program of it is running",
}

_HINTS = {
    errno.EBUSY: "Change what it holds with edit_file or write_file; only the person can unmount it.",
    errno.ETXTBSY: "Ask the person to end the program.",
    errno.EPERM: "Tell the person: the system has to allow it first. `lsattr` shows whether it, or its folder, is immutable or append-only.",
    errno.ENOSPC: "Tell the person: some space has to be freed there.",
    errno.EDQUOT: "Tell the person: some space has to be freed there.",
}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The entry that a name leads to, without its contents.

    Attributes:
        path: The canonical name relative to the root, links resolved; ``.`` for the root.
        lock_key: The same for every name of one real file, also before it exists; empty where a file is only read.
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
class FileContents:
    """The contents of a file at one moment.

    Attributes:
        device: With the inode, the file that was read, whatever its name led to before or since.
        inode: See there.
        links: Names the file has (hard links).
        attributes: What it has besides; None where that was not asked.
    """

    data: bytes
    mode: int
    device: int = 0
    inode: int = 0
    links: int = 1
    attributes: Attributes | None = None

    @property
    def revision(self) -> Revision:
        """The state of the file."""
        return Revision.of(self.data, self.mode, self.attributes)


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
    """The umask of this process; only where ``/proc`` does not have it, it is changed for a moment."""
    with suppress(OSError, StopIteration, ValueError):
        with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
            line = next(line for line in status if line.startswith("Umask:"))
        return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_DEFAULT_LIST = "system.posix_acl_default"
_ENTRY = struct.Struct("<HHI")
_OWNER, _GROUP, _MASK, _OTHERS = 0x01, 0x04, 0x10, 0x20


def permissions_given(folder: int, asked: int, mask: int) -> int:
    """The permission bits that the system gives a new entry of a folder.

    The default access list of a folder takes the place of the umask (acl(5)).

    Args:
        folder: Descriptor of the folder; it may be one that only holds it.
        asked: The bits that a program asks for.
        mask: The umask.
    """
    try:
        listed = getxattr(held(folder), _DEFAULT_LIST)[4:]
    except OSError:  # There is none, or the system knows none.
        return asked & ~mask
    rights: dict[int, int] = {tag: bits for tag, bits, _ in _ENTRY.iter_unpack(listed)}
    group = rights.get(_MASK, rights.get(_GROUP, 7))
    return asked & (rights.get(_OWNER, 7) << 6 | group << 3 | rights.get(_OTHERS, 7))


def write_failed(error: OSError, shown: str) -> WriteFailedError:
    """The error for a refusal of the system before anything was changed."""
    why = _PLAIN.get(error.errno or 0, os.strerror(error.errno or 0).lower())
    return WriteFailedError(
        f"{shown}: {why}; nothing was changed",
        hint=_HINTS.get(error.errno or 0, "Tell the person: the system has to allow it first."),
        path=shown,
        errno=error.errno,
    )


def moved(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program changed the file at this moment",
        hint="Nothing was changed. Read the file again.",
        path=shown,
    )


def not_removed(shown: str) -> WriteFailedError:
    return WriteFailedError(
        f"{shown}: the link cannot be removed",
        hint="Nothing was changed. Ask the person to look at the rights of its folder.",
        path=shown,
    )


def made_meanwhile(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: somebody made a file of this name meanwhile",
        hint="Read it and decide again.",
        path=shown,
    )


def saved_twice(shown: str, kept: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program saved the file meanwhile; a text of it that has lost its place "
        f"is kept beside it as {kept}",
        hint="Read the file again, and tell the person about the kept text.",
        path=shown,
        kept=kept,
    )


OPEN = os.O_RDONLY
"""Flags that read, wait for nobody, and never make a terminal this process's own."""
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
    OPEN |= getattr(os, _flag, 0)


@lru_cache
def has_proc() -> bool:
    """Whether what is held can be opened by its descriptor."""
    return bool(HOLD) and os.path.isdir("/proc/self/fd")


_TRIES = 5
_BLOCK = 1 << 22
"""Bytes that are read at a time of a file that has another size than the system says."""


def open_regular(found: Resolution, boundary: RootMounts, path: str) -> int:
    """Open the file that was resolved, and never one that has taken its place since.

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
    return _open_checked(found.parent, found.name, boundary, path)


def inode_of(parent: int, name: str) -> tuple[int, int] | None:
    """Device and inode of what has a name, links not followed; None where nothing is."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_link(parent: int, name: str, expected: Revision) -> bool:
    """Whether a name leads to a link in an expected state."""
    target = link_target(parent, name)
    return target is not None and content_id(target) == expected.content


def link_target(parent: int, name: str) -> bytes | None:
    """The name that a link holds; None for what is none."""
    try:
        return os.readlink(os.fsencode(name), dir_fd=parent)
    except OSError:
        return None


def open_named(parent: int, name: str) -> int:
    """Open a file by its name in a folder, if it is a regular one.

    Raises:
        OSError: ``ELOOP``: it is a link; ``EINVAL``: it is neither file nor link; else the system's.
    """
    if not HOLD:
        return _regular(parent, name)
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
            return _regular(parent, name)
    finally:
        os.close(handle)


def _regular(parent: int, name: str) -> int:
    # First, since a socket cannot be opened, and opening a pipe or a device does something to it.
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise OSError(errno.EINVAL, "not a regular file")
    descriptor = os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=parent)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file")


def _open_checked(parent: int, name: str, boundary: RootMounts, path: str) -> int:
    """Open by name, then check what was opened."""
    descriptor = os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=parent)
    try:
        status = os.fstat(descriptor)
        check_regular(status.st_mode, path)
        boundary.check(descriptor, status, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_whole(
    descriptor: int, limit: int, path: str, before: os.stat_result | None = None
) -> FileContents:
    """Read all bytes of an open file that were there at one moment.

    Args:
        descriptor: The file.
        limit: Most bytes.
        path: Its name in errors.
        before: What the system said of this file a moment ago; None asks it.

    Raises:
        TooLargeError: It has more bytes than the limit; nothing was read.
        ReadFailedError: The system refused, or a program keeps writing to the file.
    """
    before = before or os.fstat(descriptor)
    for _ in range(_TRIES):
        if before.st_size > limit:
            raise TooLargeError(
                f"{path}: has {before.st_size:,} bytes, the limit is {limit:,}",
                hint="Read a part of it with lines and offset, or search it with grep.",
                path=path,
                size=before.st_size,
                limit=limit,
            )
        data = _read(descriptor, before.st_size, limit, path)
        after = os.fstat(descriptor)
        # A file that changed between the two looks may have been read half old, half new.
        times = [(one.st_mtime_ns, one.st_ctime_ns) for one in (before, after)]
        if len(data) == after.st_size == before.st_size and times[0] == times[1]:
            return FileContents(
                data,
                stat.S_IMODE(after.st_mode),
                after.st_dev,
                after.st_ino,
                after.st_nlink,
                read_attributes(descriptor, after),
            )
        before = after
    raise ReadFailedError(
        f"{path}: a program is writing to it all the time",
        hint="Try again when that program has finished.",
        path=path,
    )


def _read(descriptor: int, expected: int, limit: int, path: str) -> bytes:
    """All bytes from the start, one more than the limit at most; arguments as of `read_whole`.

    One more than it should have is asked for, so that a short answer is its end.
    """
    try:
        data = os.pread(descriptor, expected + 1, 0)
        if len(data) == expected:
            return data
        blocks, size = [data], len(data)
        while size <= limit and (block := os.pread(descriptor, _BLOCK, size)):
            blocks.append(block)
            size += len(block)
    except OSError as error:
        raise unreadable(error, path) from None
    return b"".join(blocks)


def read_regular(
    folder: int,
    name: str,
    limit: int,
    check: Callable[[int, os.stat_result], None] = lambda _descriptor, _status: None,
) -> bytes | None:
    """All bytes of a regular file that passes a check, or None when there are more than the limit.

    Raises:
        OSError: The system refused, or it is no regular file.
    """
    descriptor = os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        check(descriptor, status)
        if status.st_size > limit:
            return None
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:
            return data
        # The file changes, or the system has no true size for it, or gives it in pieces.
        pieces = [data]
        got = len(data)
        while got <= limit and (piece := os.read(descriptor, min(limit + 1 - got, 1 << 20))):
            pieces.append(piece)
            got += len(piece)
        return None if got > limit else b"".join(pieces)
    finally:
        os.close(descriptor)


class PathInfo(NamedTuple):
    """The entry that an absolute name leads to.

    Attributes:
        path: The name with every link resolved, as far as something is there.
        kind: What is there.
        file: The device and inode of a file with several names; else None.
    """

    path: str
    kind: Literal["missing", "file", "folder"]
    file: tuple[int, int] | None = None


def look_at(path: str) -> PathInfo:
    """Look at what an absolute name leads to; nothing is opened.

    Raises:
        ValueError: It holds a NUL, or cannot be encoded.
    """
    true = os.path.normpath(path)
    try:
        true = os.path.realpath(path)  # which reads links, and may not be allowed to
        found = os.stat(true)
    except OSError:
        return PathInfo(true, "missing")
    if stat.S_ISDIR(found.st_mode):
        return PathInfo(true, "folder")
    several = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    return PathInfo(true, "file", (found.st_dev, found.st_ino) if several else None)


_PIECE: Final = 1 << 20

LARGEST: Final = 1 << 26
"""Bytes of a file beyond which it cannot be one that we have read or written: far above the limit
of what is edited, far below what a program could put in its place to keep us reading."""


def blocks(descriptor: int, size: int) -> Iterator[bytes]:
    """All bytes of an open file that seems to have so many."""
    # One byte more than that tells whether it is all, without a second look.
    asked, offset = min(_PIECE, size + 1), 0
    while block := os.pread(descriptor, asked, offset):
        yield block
        if len(block) < asked:
            return
        offset += len(block)
        asked = _PIECE


def digest(descriptor: int, size: int | None = None) -> str:
    """SHA-256 of all bytes of an open file, which has so many by its status; empty for one that is larger than any of ours."""
    from hashlib import sha256  # noqa: PLC0415 - a server answers before it needs it

    if size is None:
        size = os.fstat(descriptor).st_size
    if size > LARGEST:
        return ""
    found, read = sha256(), 0
    for block in blocks(descriptor, size):
        found.update(block)
        read += len(block)
        if read > LARGEST:
            return ""  # It grows as we read.
    return found.hexdigest()


def found_info(found: Resolution, *, known: bool = False) -> FileInfo:
    """The entry that a name was resolved to; errors as of `check_new_name`, of one that is not ``known``."""
    rest = "/".join([*found.rest, found.name]) if found.rest else found.name
    key = lock_key(os.fstat(found.parent), rest)
    status = found.status
    if status is None:
        if not known:
            check_new_name(rest)
        return FileInfo(found.path, "missing", key)
    return FileInfo(
        found.path,
        kind_of(status.st_mode),
        key,
        stat.S_IMODE(status.st_mode),
        status.st_size,
        status.st_nlink,
        status.st_dev,
        status.st_ino,
    )

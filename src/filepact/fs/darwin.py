"""System calls of macOS that the standard library does not have, or has in another form; `kernel` says what each is for."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from contextlib import suppress
from fcntl import fcntl
from functools import lru_cache
from typing import Any

__all__ = [
    "EXCHANGE",
    "FORMS_FOLD",
    "NOREPLACE",
    "SET_LOCK",
    "STAMP_CLOCK",
    "WAIT_LOCK",
    "born",
    "copy_list",
    "data_sync",
    "full_sync",
    "getxattr",
    "held",
    "listxattr",
    "lock_holder",
    "lock_request",
    "only_takes",
    "removexattr",
    "renameat2",
    "reserve",
    "setxattr",
    "spelling",
    "true_name",
]

# Of <sys/stdio.h>, <sys/fcntl.h>, <sys/attr.h>, <copyfile.h> and <sys/errno.h>.
EXCHANGE, NOREPLACE = 0x2, 0x4
SET_LOCK, WAIT_LOCK = 90, 91
FORMS_FOLD = True  # on every volume of its own, also where letter case tells names apart
STAMP_CLOCK = 0  # CLOCK_REALTIME of <time.h>
_RESERVE, _TRUE_NAME, _FULL_SYNC = 42, 50, 51
_ALL, _FROM_THE_END = 0x4, 3
_NAME, _BIRTH, _LINKS_THEMSELVES = 0x1, 0x200, 0x1
_ACCESS_LIST = 0x1
_NO_ATTRIBUTE = 93
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

_LOCK = struct.Struct("qqihh")
_ROOM = struct.Struct("Iiqqq")
_LONGEST = 1_024  # bytes of a path
_LONGEST_NAME = 8 + 4 * 256

_libc = ctypes.CDLL(None, use_errno=True)
_int, _uint, _text, _size = ctypes.c_int, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t


@lru_cache
def _function(name: str, *kinds: Any) -> Any:
    found = _libc[name]
    found.argtypes = kinds
    if name.endswith(("getxattr", "listxattr")):
        found.restype = ctypes.c_ssize_t
    return found


def _done(name: str, kinds: tuple[Any, ...], *arguments: Any) -> int:
    """Call a function of the C library.

    Raises:
        OSError: It failed; ``ENOSYS`` where there is none.
    """
    try:
        function = _function(name, *kinds)
    except AttributeError:
        raise OSError(errno.ENOSYS, f"no {name} here") from None
    result: int = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(errno.ENODATA if number == _NO_ATTRIBUTE else number, os.strerror(number))
    return result


def renameat2(directory: int, old: str, new: str, flags: int, to: int = -1) -> None:
    if "\0" in old or "\0" in new:
        raise OSError(errno.EINVAL, "a NUL in a name")
    names = directory, os.fsencode(old), directory if to < 0 else to, os.fsencode(new)
    try:
        _done("renameatx_np", (_int, _text, _int, _text, _uint), *names, flags)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            error.errno = errno.ENOSYS
        raise


def full_sync(descriptor: int) -> None:
    try:
        fcntl(descriptor, _FULL_SYNC)
    except OSError:
        os.fsync(descriptor)  # Disks of other machines know no more than this.


data_sync = full_sync


def reserve(descriptor: int, _at: int, size: int) -> None:
    try:
        fcntl(descriptor, _RESERVE, _ROOM.pack(_ALL, _FROM_THE_END, 0, size, 0))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise


def held(descriptor: int) -> int | str:
    return descriptor


def true_name(descriptor: int) -> str:
    return os.fsdecode(fcntl(descriptor, _TRUE_NAME, bytes(_LONGEST)).partition(b"\0")[0])


def spelling(folder: int, name: str) -> str:
    with suppress(OSError):
        found = _told_of(folder, name, _NAME)
        # Where the name begins, counted from there, and how long it is.
        offset, length = struct.unpack_from("iI", found, 4)
        return os.fsdecode(found[4 + offset : 3 + offset + length])
    return name


def born(folder: int, name: str) -> int | None:
    with suppress(OSError):
        status = os.lstat(name, dir_fd=folder)
        if status.st_nlink == 1 or stat.S_ISDIR(status.st_mode):
            seconds, nanoseconds = struct.unpack_from("=qq", _told_of(folder, name, _BIRTH), 4)
            return int(seconds * 10**9 + nanoseconds)
    return None


def _told_of(folder: int, name: str, attribute: int) -> bytes:
    """Ask for one attribute of a file that is common to all kinds; it stands behind the length of all, of four bytes.

    Raises:
        OSError: It is not told.
    """
    asked, found = (ctypes.c_uint32 * 6)(5, attribute), ctypes.create_string_buffer(_LONGEST_NAME)
    kinds = _int, _text, ctypes.c_void_p, ctypes.c_void_p, _size, ctypes.c_ulong
    place = folder, os.fsencode(name)
    _done("getattrlistat", kinds, *place, asked, found, _LONGEST_NAME, _LINKS_THEMSELVES)
    return found.raw


def only_takes(folder: int) -> bool:
    return bool(getattr(os.fstat(folder), "st_flags", 0) & (stat.UF_APPEND | stat.SF_APPEND))


def copy_list(old: int, new: int) -> bool:
    try:
        kinds = _int, _int, ctypes.c_void_p, ctypes.c_uint32
        _done("fcopyfile", kinds, old, new, None, _ACCESS_LIST)
    except OSError as error:
        return error.errno in _UNSUPPORTED  # There are no lists there.
    return True


def _attribute(call: str, kinds: tuple[Any, ...], target: int | str, *arguments: Any) -> int:
    """Call what there is for an open file and for a path."""
    if isinstance(target, int):
        return _done(f"f{call}", (_int, *kinds), target, *arguments)
    return _done(call, (_text, *kinds), os.fsencode(target), *arguments)


def listxattr(target: int | str) -> list[str]:
    kinds = ctypes.c_void_p, _size, _int
    room = _attribute("listxattr", kinds, target, None, 0, 0)
    found = ctypes.create_string_buffer(room)
    size = _attribute("listxattr", kinds, target, found, room, 0) if room else 0
    return [os.fsdecode(name) for name in found.raw[:size].split(b"\0") if name]


_VALUE = _text, ctypes.c_void_p, _size, ctypes.c_uint32, _int


def getxattr(target: int | str, name: str, *, follow_symlinks: bool = True) -> bytes:
    if name.startswith("system."):
        raise OSError(errno.ENOTSUP, "access lists are no attributes here")
    options, called = int(not follow_symlinks), os.fsencode(name)
    room = _attribute("getxattr", _VALUE, target, called, None, 0, 0, options)
    found = ctypes.create_string_buffer(room)
    size = _attribute("getxattr", _VALUE, target, called, found, room, 0, options)
    return found.raw[:size]


def setxattr(target: int | str, name: str, value: bytes) -> None:
    _attribute("setxattr", _VALUE, target, os.fsencode(name), value, len(value), 0, 0)


def removexattr(target: int | str, name: str) -> None:
    _attribute("removexattr", (_text, _int), target, os.fsencode(name), 0)


def lock_request(kind: int, first: int, count: int) -> bytes:
    return _LOCK.pack(first, count, 0, kind, os.SEEK_SET)


def lock_holder(answer: bytes) -> tuple[int, int]:
    _, _, process, kind, _ = _LOCK.unpack(answer)
    return kind, process

"""System calls that differ from one system to the next, and those of Linux that the standard library does not have.

macOS' own are in `darwin`, and are chosen here alone.  openat2 and renameat2 are reported as missing (``ENOSYS``) where the kernel, the file system or a
container's filter does not offer them, statx and fstatfs by None; callers have another way then.  Of
notices macOS has none that tell everything: what changed there is found by looking.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "BENEATH",
    "EXCHANGE",
    "FORMS_FOLD",
    "NOREPLACE",
    "NO_LINKS",
    "NO_MAGIC_LINKS",
    "NO_MOUNTS",
    "SET_LOCK",
    "STAMP_CLOCK",
    "WAIT_LOCK",
    "FileSync",
    "born",
    "capset",
    "checked",
    "copy_list",
    "data_sync",
    "file_system",
    "full_sync",
    "getxattr",
    "held",
    "inotify_add_watch",
    "inotify_init",
    "library_call",
    "listxattr",
    "lock_holder",
    "lock_request",
    "most_watches",
    "mount_of",
    "names_in",
    "only_takes",
    "openat2",
    "place_of",
    "removexattr",
    "renameat2",
    "reserve",
    "same_places",
    "setxattr",
    "spelling",
    "stamps_in",
    "true_name",
]

NO_MOUNTS = 0x01
NO_MAGIC_LINKS = 0x02
NO_LINKS = 0x04
BENEATH = 0x08

# The number is the same on every architecture: the call is younger than the unified table.
_OPENAT2 = 437
_NUL = "a NUL in a name"  # the kernel would stop at it, and so take another name
_NAMES = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)

# Of <linux/stat.h>, the same on every architecture.
_EMPTY_PATH = 0x1000
_MOUNT_ID = 0x1000
_MOUNT_ID_AT = 144
_NO_FOLLOW = 0x100
_LINKS, _LINKS_AT, _BIRTH, _BIRTH_AT, _TYPE, _MODE_AT = 0x4, 16, 0x800, 80, 0x1, 28
_APPEND, _FLAGS_AT = 0x20, 8
_STATX_SIZE = 256
_ARENAS = -8  # M_ARENA_MAX of <malloc.h>
_NUMBER = (1 << 64) - 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform != "win32" else None


def library_call(name: str, *kinds: Any) -> Any:
    """A function of the C library with its argument types set; None where there is none.

    Converting untyped arguments at each call costs more than the call itself.
    """
    try:
        # By index: an attribute would be shared with whoever calls it in another way.
        found = None if _libc is None else _libc[name]
    except AttributeError:
        return None
    if found is not None:
        found.argtypes = kinds
    return found


_int, _uint, _text, _address = ctypes.c_int, ctypes.c_uint, ctypes.c_char_p, ctypes.c_void_p
_openat2 = library_call("syscall", ctypes.c_long, _int, _text, _address, ctypes.c_size_t)
_statx = library_call("statx", _int, _text, _int, _uint, _address)
_fstatfs = library_call("fstatfs", _int, _address)
_mallopt = library_call("mallopt", _int, _int)
_malloc_trim = library_call("malloc_trim", ctypes.c_size_t)
_inotify_init1 = library_call("inotify_init1", _int)
_inotify_add_watch = library_call("inotify_add_watch", _int, _text, _uint)


class _OpenHow(ctypes.Structure):
    """``struct open_how`` of <linux/openat2.h>."""

    _fields_: ClassVar = [  # type: ignore[mutable-override]  # how ctypes wants it
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


_HOW_SIZE = ctypes.sizeof(_OpenHow)


@lru_cache(maxsize=64)
def _how(flags: int, resolve: int) -> tuple[_OpenHow, int]:
    """The ``open_how`` for some flags, and its address; the kernel only reads it."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    return how, ctypes.addressof(how)


def openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    """Open a path beneath a directory descriptor, resolved in one step by the kernel.

    Returns:
        A descriptor that programs started later do not inherit.

    Raises:
        OSError: ``EXDEV`` for a step outside, ``EAGAIN`` when a rename raced a ``..``,
            ``ENOSYS`` where there is no such call.
    """
    if _openat2 is None or sys.platform != "linux":
        raise OSError(errno.ENOSYS, "no openat2 here")
    if "\0" in path:
        raise OSError(errno.EINVAL, _NUL)
    _structure, address = _how(flags, resolve)
    # As `os.fsencode`, which is four functions.
    result: int = _openat2(_OPENAT2, directory, path.encode(*_NAMES), address, _HOW_SIZE)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# -- what macOS does in another way -----------------------------------------------------------

if sys.platform == "darwin":
    from filepact.fs.darwin import (
        EXCHANGE,
        FORMS_FOLD,
        NOREPLACE,
        SET_LOCK,
        STAMP_CLOCK,
        WAIT_LOCK,
        born,
        copy_list,
        data_sync,
        full_sync,
        getxattr,
        held,
        listxattr,
        lock_holder,
        lock_request,
        only_takes,
        removexattr,
        renameat2,
        reserve,
        setxattr,
        spelling,
        true_name,
    )
else:
    from os import fdatasync as data_sync
    from os import fsync as full_sync
    from os import getxattr, listxattr, removexattr, setxattr

    NOREPLACE, EXCHANGE = 1, 2
    FORMS_FOLD = None  # whether other forms of a name always lead to the same file: a volume tells
    STAMP_CLOCK = 5  # CLOCK_REALTIME_COARSE of <linux/time.h>
    # F_OFD_SETLK and F_OFD_SETLKW of <linux/fcntl.h>: `fcntl` loads later.
    SET_LOCK, WAIT_LOCK = 37, 38
    _renameat2 = library_call("renameat2", _int, _text, _int, _text, _uint)
    _LOCK = struct.Struct("hhqqi0q")

    def renameat2(directory: int, old: str, new: str, flags: int, to: int = -1) -> None:
        """Rename within one directory, or to another, exchanging the two names or refusing to replace.

        Args:
            directory: The directory of the old name.
            old: A name there.
            new: The other name.
            flags: `EXCHANGE` or `NOREPLACE`.
            to: The directory of the new name; -1 for the same.

        Raises:
            OSError: ``EEXIST`` for NOREPLACE over a name in use; ``ENOSYS`` where the system or the
                file system cannot do it.
        """
        if "\0" in old or "\0" in new:
            raise OSError(errno.EINVAL, _NUL)
        names = directory, os.fsencode(old), directory if to < 0 else to, os.fsencode(new)
        try:
            checked(_renameat2, *names, flags)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                error.errno = errno.ENOSYS
            raise

    def reserve(descriptor: int, at: int, size: int) -> None:
        """Take room for more bytes of an open file, from its end on.

        Raises:
            OSError: There is no room.
        """
        os.posix_fallocate(descriptor, at, size)

    def held(descriptor: int) -> int | str:
        """The name of a held file for calls that do not take such a descriptor."""
        return f"/proc/self/fd/{descriptor}"

    def true_name(descriptor: int) -> str:
        """The true absolute path of an open folder, as the disk has it.

        Raises:
            OSError: The system does not tell.
        """
        return os.readlink(f"/proc/self/fd/{descriptor}")

    def spelling(folder: int, name: str) -> str:
        """A name that is in a folder, as the disk has it: in another letter case or form it may lead to the same file."""
        if name in (names := names_in(folder)):
            return name
        from unicodedata import normalize  # noqa: PLC0415 - few names need it

        plain = normalize("NFC", name).casefold()
        return next((one for one in names if normalize("NFC", one).casefold() == plain), name)

    def only_takes(folder: int) -> bool:
        """Whether names can be put into an open folder and never taken out again: it is append-only."""
        found = _statx_of(folder, b"", _EMPTY_PATH, 0)
        return bool(found and ctypes.c_uint64.from_buffer(found, _FLAGS_AT).value & _APPEND)

    def born(folder: int, name: str) -> int | None:
        """When a file or folder was made, nanoseconds since the epoch; None where that is not told.

        Nothing is told of a file with other names.

        Args:
            folder: In which it is; any number for an absolute path.
            name: Its name.
        """
        found = _statx_of(folder, os.fsencode(name), _NO_FOLLOW, _TYPE | _BIRTH | _LINKS)
        links = found and ctypes.c_uint32.from_buffer(found, _LINKS_AT).value
        is_folder = found and ctypes.c_uint16.from_buffer(found, _MODE_AT).value >> 12 == 4
        if found is None or (links > 1 and not is_folder):
            return None
        seconds = ctypes.c_int64.from_buffer(found, _BIRTH_AT).value
        return seconds * 10**9 + ctypes.c_uint32.from_buffer(found, _BIRTH_AT + 8).value

    def copy_list(_old: int, _new: int) -> bool:
        """Give an open file the access list of another, where that is no attribute; whether it has it."""
        return True

    def lock_request(kind: int, first: int, count: int) -> bytes:
        """The argument of `fcntl.fcntl` to lock bytes, to free them, or to ask who has them."""
        return _LOCK.pack(kind, os.SEEK_SET, first, count, 0)

    def lock_holder(answer: bytes) -> tuple[int, int]:
        """The kind of lock that an answer names, and the process that has it."""
        kind, _, _, _, process = _LOCK.unpack(answer)
        return kind, process


def names_in(folder: int) -> list[str]:
    """The names in a folder that may only be held."""
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(opened)
    finally:
        os.close(opened)


def mount_of(descriptor: int) -> int | None:
    """The number of the mount that an open file was reached through, also of a bind mount; None where it is not told."""
    found = _statx_of(descriptor, b"", _EMPTY_PATH, _MOUNT_ID)
    return found and ctypes.c_uint64.from_buffer(found, _MOUNT_ID_AT).value


def place_of(folder: str) -> int:
    """Which folder lies at an absolute path: its number, and above 64 bits the time of its birth; 0 for none."""
    try:
        return os.lstat(folder).st_ino | (born(0, folder) or 0) << 64
    except OSError:
        return 0


def stamps_in(folder: str, paths: Iterable[str]) -> dict[str, tuple[int, int, int, int, int]]:
    """The stamps of what lies in a folder by some relative paths, as snapshots have them; of what is not there, none."""
    found: dict[str, tuple[int, int, int, int, int]] = {}
    for path in paths:
        with suppress(OSError, ValueError):
            one = os.lstat(f"{folder}/{path}")
            found[path] = one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_mode
    return found


def same_places(some: Mapping[Any, int], others: Mapping[Any, int]) -> bool:
    """Whether each name leads to the same folder, of `place_of`, as far as both tell."""
    numbers = ((one, others.get(name, 0)) for name, one in some.items())
    return some.keys() == others.keys() and all(
        one == other if one >> 64 and other >> 64 else one & _NUMBER == other & _NUMBER
        for one, other in numbers
    )


def _statx_of(folder: int, name: bytes, flags: int, mask: int) -> Any:
    if _statx is None or sys.platform != "linux":
        return None
    found = (ctypes.c_char * _STATX_SIZE)()
    done = _statx(folder, name, flags, mask, found) == 0
    return found if done and ctypes.c_uint32.from_buffer(found).value & mask == mask else None


def use_few_arenas() -> None:
    """Have the threads of this process share two arenas of the allocator, before there are more, where it is glibc's.

    Each further arena keeps pages of what a search needed for a moment, and threads of Python hardly ever allocate at
    the same time.
    """
    if _mallopt is not None:
        _mallopt(_ARENAS, 2)


def give_memory_back() -> None:
    """Give pages that the allocator holds, and nothing uses, back to the system, where the C library can."""
    if _malloc_trim is not None:
        _malloc_trim(0)


def file_system(descriptor: int) -> int | None:
    """The kernel's number for the kind of file system of an open file; None when it is not told."""
    if _fstatfs is None or sys.platform != "linux":
        return None
    buffer = (ctypes.c_char * _STATX_SIZE)()
    if _fstatfs(descriptor, buffer) != 0:
        return None
    return ctypes.c_long.from_buffer(buffer).value & 0xFFFF_FFFF


def inotify_init() -> int:
    """Create an inotify instance; reading from its descriptor never waits.

    Raises:
        OSError: There is no inotify here, or there are too many instances.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "no inotify here")
    return checked(_inotify_init1, os.O_NONBLOCK | os.O_CLOEXEC)


def inotify_add_watch(notices: int, folder: int, mask: int) -> int:
    """Watch an open folder and what lies directly in it.

    Args:
        notices: The inotify descriptor.
        folder: A descriptor of the folder.
        mask: The events, in bits of <sys/inotify.h>.

    Returns:
        The watch descriptor: the number by which events name the folder.

    Raises:
        OSError: ``ENOSPC`` when there are too many already.
    """
    # There is no such call for a descriptor; its name in /proc leads to the folder itself.
    return checked(_inotify_add_watch, notices, b"/proc/self/fd/%d" % folder, mask)


# -- to the disk --------------------------------------------------------------------------------

# io_setup, io_destroy, io_submit and io_getevents of <asm/unistd.h>: the C library has none of them.
_ASYNCHRONOUS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
_DATA_SYNC = 3  # IOCB_CMD_FDSYNC of <linux/aio_abi.h>
_setup = library_call("syscall", ctypes.c_long, _uint, _address)
_destroy = library_call("syscall", ctypes.c_long, ctypes.c_ulong)
_submit = library_call("syscall", ctypes.c_long, ctypes.c_ulong, ctypes.c_long, _address)
_getevents = library_call(
    "syscall", ctypes.c_long, ctypes.c_ulong, ctypes.c_long, ctypes.c_long, _address, _address
)


class _Request(ctypes.Structure):
    """``struct iocb`` of <linux/aio_abi.h>, as it is where numbers begin with their lowest byte."""

    _fields_: ClassVar = [  # type: ignore[mutable-override]  # how ctypes wants it
        ("told", ctypes.c_uint64 * 2),
        ("operation", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("rest", ctypes.c_uint64 * 5),
    ]


class FileSync:
    """Has a file put on its disk while its caller goes on; one at a time.

    It is done by the kernel's own threads, so nobody waits for Python's lock because of it.
    """

    def __init__(self) -> None:
        self._calls = _ASYNCHRONOUS.get(os.uname().machine) if sys.platform == "linux" else None
        self._context = ctypes.c_ulong(0)
        self._request = _Request(operation=_DATA_SYNC)
        self._requests = ctypes.c_void_p(ctypes.addressof(self._request))
        self._event = (ctypes.c_int64 * 4)()

    def begin(self, descriptor: int) -> bool:
        """Begin; false, and nothing is done, where the system cannot do it."""
        if self._calls is None or _setup is None:
            return False
        setup, _, submit, _ = self._calls
        if not self._context.value and _setup(setup, 1, ctypes.addressof(self._context)) < 0:
            self._calls = None
            return False
        self._request.descriptor = descriptor
        if _submit(submit, self._context, 1, ctypes.addressof(self._requests)) == 1:
            return True
        self._calls = None
        return False

    def now(self, descriptor: int) -> None:
        """Have the bytes of a file on the disk before this returns."""
        data_sync(descriptor)

    def wait(self) -> None:
        """Wait until what was begun is on the disk.

        Raises:
            OSError: It could not be put there.
        """
        if self._calls is None:
            return
        event = ctypes.addressof(self._event)
        while _getevents(self._calls[3], self._context, 1, 1, event, None) != 1:
            if (number := ctypes.get_errno()) != errno.EINTR:
                raise OSError(number, os.strerror(number))
        if (result := self._event[2]) < 0:
            raise OSError(-result, os.strerror(-result))

    def close(self) -> None:
        """Give back what the kernel keeps for it; nothing is under way."""
        if self._calls is not None and self._context.value:
            _destroy(self._calls[1], self._context)
        self._calls = None


# -- capabilities -----------------------------------------------------------------------------

_CAPABILITIES_3 = 0x2008_0522

_capset = library_call("capset", _address, _address)


def capset(kept: int) -> None:
    """Give up every capability but some.

    Args:
        kept: The bits of those that stay in force, and may be handed on to programs.

    Raises:
        OSError: The system refused.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    low, high = kept & 0xFFFF_FFFF, kept >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    checked(_capset, ctypes.addressof(header), ctypes.addressof(data))


def checked(function: Any, *arguments: Any) -> int:
    """The result of a function of the C library that says by a negative one that it failed.

    Raises:
        OSError: It failed; ``ENOSYS`` where there is no such function, and outside of Linux.
    """
    if function is None or sys.platform != "linux":
        raise OSError(errno.ENOSYS, "no such call here")
    result: int = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@lru_cache
def most_watches() -> int:
    """How many folders all programs of one user may watch at a time."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="utf-8") as setting:
            return int(setting.read())
    except (OSError, ValueError):
        return 8_192

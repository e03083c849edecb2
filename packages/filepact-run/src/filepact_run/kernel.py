"""System calls that a namespace needs: mounts, what this process gives up, and a filter of calls.

Whatever the system does not do is an error here: there is no other way to have it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import TYPE_CHECKING, Final

from filepact.fs.kernel import checked, library_call

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["forbid_calls", "mount", "pin_link", "prctl", "set_mount", "unshare"]

_int, _uint, _text, _address = ctypes.c_int, ctypes.c_uint, ctypes.c_char_p, ctypes.c_void_p
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _NO_FOLLOW, _FROM_EMPTY_PATH = 0x1, 0x100, 0x4
_RECURSIVE = 0x8000

_mount = library_call("mount", _text, _text, _text, ctypes.c_ulong, _text)
_unshare = library_call("unshare", _int)
_prctl = library_call("prctl", _int, *(ctypes.c_ulong,) * 4)
_open_tree = library_call("syscall", ctypes.c_long, _int, _text, _uint)
_move_mount = library_call("syscall", ctypes.c_long, _int, _text, _int, _text, _uint)
_mount_setattr = library_call(
    "syscall", ctypes.c_long, _int, _text, _uint, _address, ctypes.c_size_t
)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system, or a file or folder at a second place.

    Raises:
        OSError: The system refused.
    """
    words = [os.fsencode(word) if word else None for word in (source, target, kind)]
    checked(_mount, *words, flags, os.fsencode(options) if options else None)


def set_mount(target: str, on: int, off: int = 0, *, below: bool = False) -> None:
    """Set and clear attributes of a mount: bits of `mount_setattr(2)`.

    Args:
        target: Its place.
        on: Those to set.
        off: Those to clear.
        below: Whether of all mounts below it as well.

    Raises:
        OSError: The system refused; ``ENOSYS`` before Linux 5.12.
    """
    attributes = (ctypes.c_uint64 * 4)(on, off, 0, 0)
    flags = _RECURSIVE if below else 0
    path = os.fsencode(target)
    checked(_mount_setattr, _MOUNT_SETATTR, -100, path, flags, ctypes.addressof(attributes), 32)


def pin_link(path: str) -> None:
    """Mount a symbolic link over itself: in this namespace its name cannot be removed or given away any more.

    Raises:
        OSError: The system refused.
    """
    place = os.fsencode(path)
    tree = checked(_open_tree, _OPEN_TREE, -100, place, _CLONE | _NO_FOLLOW | os.O_CLOEXEC)
    try:
        checked(_move_mount, _MOVE_MOUNT, tree, b"", -100, place, _FROM_EMPTY_PATH)
    finally:
        os.close(tree)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones: bits of `unshare(2)`.

    Raises:
        OSError: The system refused.
    """
    checked(_unshare, flags)


def prctl(option: int, *arguments: int) -> None:
    """Set something about this process: see `prctl(2)`.

    Raises:
        OSError: The system refused.
    """
    checked(_prctl, option, *arguments, *(0,) * (4 - len(arguments)))


# -- a filter -----------------------------------------------------------------------------------

# Of <linux/audit.h>, with the numbers of the calls that are refused and that of `ioctl`.  None of them
# works without a capability anyway, but for keys and a terminal's input.
_SAME: Final = (428, 429, 430, 431, 432, 433, 442)  # of mounts; the same everywhere
_REFUSED: Final[dict[int, tuple[int, tuple[int, ...]]]] = {
    0xC000_003E: (16, (155, 161, 165, 166, 248, 249, 250, 298, 304, 308, 321, *_SAME)),  # x86-64
    0x4000_0003: (54, (21, 52, 61, 217, 286, 287, 288, 336, 342, 346, 357, *_SAME)),  # x86
    0xC000_00B7: (29, (39, 40, 41, 51, 217, 218, 219, 241, 265, 268, 280, *_SAME)),  # ARM 64
}
# What `io_uring` does in the kernel no filter sees; programs know kernels that have not got it.
_ABSENT: Final = (425, 426, 427)  # setup, enter and register; the same everywhere
_TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they type for the person
_SECCOMP, _FILTER = 22, 2  # of <linux/prctl.h>
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _MISSING = 0x7FFF_0000, 0x0005_0000 | errno.EPERM, 0x0005_0000 | errno.ENOSYS
_X32: Final = 0x4000_0000


def forbid_calls() -> None:
    """Give up calls that reach past namespaces or past this filter: a terminal's input, keys, mounts once more, `io_uring`.

    Privileges must have been given up before.  Where the filter does not know the machine, nothing is.

    Raises:
        OSError: The system refused.
    """
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        return
    code = b"".join(struct.pack("=HBBI", *one) for one in _filter_program())
    held = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(16)
    ctypes.c_ushort.from_buffer(header).value = len(code) // 8
    ctypes.c_void_p.from_buffer(header, ctypes.sizeof(ctypes.c_void_p)).value = ctypes.addressof(
        held
    )
    prctl(_SECCOMP, _FILTER, ctypes.addressof(header))


def _filter_program() -> Iterable[tuple[int, int, int, int]]:
    """The filter, one instruction after the other: code, jump if so, jump if not, number."""
    yield _LOAD, 0, 0, 4  # the architecture
    for machine, (ioctl, refused) in _REFUSED.items():
        # Two for each number, option for the other ABI, and those of a terminal.
        length = 2 * len(refused + _ABSENT) + 3 + 2 + 2 * len(_TERMINAL_INPUT) + 1
        yield _EQUAL, 0, length, machine
        yield _LOAD, 0, 0, 0  # the number
        yield _ANY_BIT, 0, 1, _X32
        yield _RETURN, 0, 0, _REFUSE
        for number in refused:
            yield _EQUAL, 0, 1, number
            yield _RETURN, 0, 0, _REFUSE
        for number in _ABSENT:
            yield _EQUAL, 0, 1, number
            yield _RETURN, 0, 0, _MISSING
        yield _EQUAL, 0, 1 + 2 * len(_TERMINAL_INPUT), ioctl
        yield _LOAD, 0, 0, 24  # the lower half of the second argument
        for number in _TERMINAL_INPUT:
            yield _EQUAL, 0, 1, number
            yield _RETURN, 0, 0, _REFUSE
        yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _REFUSE

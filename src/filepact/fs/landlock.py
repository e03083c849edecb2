"""Landlock: a process gives up, for good, all of the file system but what it names.

What a process may still reach is a list of grants, each a descriptor of a file or a folder with
the rights on it and on all beneath it.  Everything else that this kernel's Landlock knows is
refused from then on, by the kernel, whatever the process does.

Which accesses can be refused depends on the kernel; its answer to that is one number, the ABI.
Of each ABI up to 9 all rights are made use of.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CHANGE", "READ", "USE", "abi", "restrict"]

# The numbers are the same on every architecture: the calls are younger than the unified table.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
_ASK_FOR_ABI = 1
_BENEATH_PATH = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_FOLDER = 1 << 3
_REMOVE_FOLDER = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE_CHARACTER_DEVICE = 1 << 6
_MAKE_FOLDER = 1 << 7
_MAKE_FILE = 1 << 8
_MAKE_SOCKET = 1 << 9
_MAKE_PIPE = 1 << 10
_MAKE_BLOCK_DEVICE = 1 << 11
_MAKE_LINK = 1 << 12
_MOVE = 1 << 13
_TRUNCATE = 1 << 14
_STEER_DEVICE = 1 << 15
_REACH_SOCKET = 1 << 16

READ = _READ_FILE | _READ_FOLDER
"""Files may be read and folders listed."""

USE = _READ_FILE | _WRITE_FILE
"""A device such as ``/dev/null`` may be read and written."""

CHANGE = (
    READ
    | _WRITE_FILE
    | _TRUNCATE
    | _MAKE_FILE
    | _REMOVE_FILE
    | _MAKE_FOLDER
    | _REMOVE_FOLDER
    | _MOVE
)
"""Files and folders may be read, made, written, moved and removed; nothing else made or run."""

# All that may be granted on something that is not a folder.
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _STEER_DEVICE | _REACH_SOCKET

# What each ABI added; before the second, moving between folders was always refused.
_FILE_RIGHTS = {
    1: (1 << 13) - 1,
    2: _MOVE,
    3: _TRUNCATE,
    5: _STEER_DEVICE,
    9: _REACH_SOCKET,
}
_BIND_AND_CONNECT = 0b11  # TCP, from the fourth on
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11  # to processes that are not confined likewise, from the sixth
_ALL_THREADS = 1 << 3  # from the eighth

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@cache
def abi() -> int:
    """What the kernel's Landlock can do, as its number; 0 where there is none.

    It may be missing from the kernel, switched off at the machine's start, or kept from us by a
    container's filter.
    """
    with suppress(OSError):
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_FOR_ABI))
    return 0


def restrict(grants: Iterable[tuple[int, int]]) -> None:
    """Give up everything but some files and folders; this cannot be undone.

    Neither this process nor any that it starts can then reach another file, connect or listen
    over TCP, send signals to processes outside, or gain privileges by running a program.
    Descriptors that are open keep what they may.

    Args:
        grants: Descriptors of files and folders, each with the rights on it and all beneath it.

    Raises:
        OSError: The system refused, and nothing was given up; ``ENOSYS`` where it has no
            Landlock, ``EBUSY`` when other threads run that this kernel would leave as they are.
    """
    version = abi()
    if not version:
        raise OSError(errno.ENOSYS, "no Landlock here")
    if version < 8 and _threads() > 1:
        raise OSError(errno.EBUSY, "other threads are running already")
    handled = 0
    for since, rights in _FILE_RIGHTS.items():
        handled |= rights if since <= version else 0
    ruleset = _call(
        _CREATE_RULESET,
        *_buffer(
            struct.pack(
                "=QQQ",
                handled,
                _BIND_AND_CONNECT if version >= 4 else 0,
                _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0,
            )
        ),
        ctypes.c_uint32(0),
    )
    try:
        for descriptor, wanted in grants:
            rights = wanted & handled
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                rights &= _OF_A_FILE
            rule, _size = _buffer(struct.pack("=Qi", rights, descriptor))
            _call(
                _ADD_RULE,
                ctypes.c_int(ruleset),
                ctypes.c_int(_BENEATH_PATH),
                rule,
                ctypes.c_uint32(0),
            )
        # The kernel asks for this from whoever is not its administrator: a program that runs with
        # more rights than we have must not be confused by being confined.
        zero = ctypes.c_ulong(0)
        _checked(_library().prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero))
        _call(
            _RESTRICT_SELF,
            ctypes.c_int(ruleset),
            ctypes.c_uint32(_ALL_THREADS if version >= 8 else 0),
        )
    finally:
        os.close(ruleset)


def _threads() -> int:
    """How many threads this process has, with those that Python does not know."""
    return os.stat("/proc/self/task").st_nlink - 2


def _buffer(data: bytes) -> tuple[ctypes.c_char_p, ctypes.c_size_t]:
    return ctypes.c_char_p(data), ctypes.c_size_t(len(data))


def _library() -> ctypes.CDLL:
    if _libc is None:
        raise OSError(errno.ENOSYS, "no Landlock here")
    return _libc


def _call(number: int, *arguments: object) -> int:
    return _checked(_library().syscall(ctypes.c_long(number), *arguments))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

"""`fcntl.fcntl` as macOS has it, over that of Linux."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct

SYSTEM = "/proc"
"""Where Linux tells what its processes have open."""

_RESERVE, _TRUE_NAME, _FULL_SYNC = 42, 50, 51
# The commands for locks of an open file, there and here.
_LOCKS = {90: 37, 91: 38}
_fcntl = fcntl.fcntl
_SIZE_STAYS = 1  # FALLOC_FL_KEEP_SIZE
_reserved = ctypes.CDLL(None, use_errno=True).fallocate
_reserved.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long


def as_there(descriptor, command, argument=0):  # type: ignore[no-untyped-def]
    """`fcntl.fcntl` with the commands and the structure of locks that macOS has."""
    if command == _FULL_SYNC:
        return os.fsync(descriptor) or 0
    if command == _TRUE_NAME:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        return os.fsencode(os.readlink(f"{SYSTEM}/self/fd/{number}")).ljust(len(argument), b"\0")
    if command == _RESERVE:
        return _reserve(descriptor, argument)
    if isinstance(argument, bytes) and len(argument) == struct.calcsize("qqihh"):
        first, count, process, kind, whence = struct.unpack("qqihh", argument)
        given = struct.pack("hhqqi0q", kind, whence, first, count, process)
        said = struct.unpack("hhqqi0q", _fcntl(descriptor, _LOCKS.get(command, command), given))
        return struct.pack("qqihh", said[2], said[3], said[4], said[0], said[1])
    return _fcntl(descriptor, command, argument)


def _reserve(descriptor, argument):  # type: ignore[no-untyped-def]
    size, room = os.fstat(descriptor).st_size, struct.unpack("Iiqqq", argument)
    if _reserved(descriptor, _SIZE_STAYS, size, room[3]):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return argument

"""Takes from Linux what macOS does not have, in every Python that is started with it: see `tests.as_macos`.

What then works is no proof that it works on macOS; what does not is a mistake there too.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

import macos_fcntl

# Also in an environment that was made in this one, and is led here by a list of paths.
FOLDER = __file__.rsplit("/", 4)[0]  # of lib/python3.x/site-packages
LIBRARY = os.path.join(FOLDER, "macos.so")
# Where what was at /proc is now; /proc itself where it could not be covered.
SYSTEM = os.path.join(FOLDER, "proc")
if not os.path.lexists(SYSTEM):
    SYSTEM = "/proc"
# Python's own name for what it was built with has the system in it.
os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = f"_sysconfigdata__linux_{os.uname().machine}-linux-gnu"

# -- the kernel: calls that answer that there is no such thing, also in programs that are no Python --------

NUMBERS = {
    "x86_64": {
        "renameat2": 316,
        "statx": 332,
        "machine": 0xC000003E,
        "gone": (253, 254, 294, 206, 209, 300, 319, 138),
    },
    "aarch64": {
        "renameat2": 276,
        "statx": 291,
        "machine": 0xC00000B7,
        "gone": (26, 27, 0, 2, 262, 279, 44),
    },
}
# pidfd_send_signal, pidfd_open, openat2, pidfd_getfd, landlock_*, io_uring_*: the same everywhere.
GONE_EVERYWHERE = (424, 434, 437, 438, 444, 445, 446, 425, 426, 427, 442)
OURS = 0x6D61636F73  # of macos.c
_PRCTL_NO_NEW_PRIVILEGES, _PRCTL_GET_SECCOMP, _PRCTL_SECCOMP, _FILTER = 38, 21, 22, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _MISSING = 0x7FFF0000, 0x00050000 | 38  # ENOSYS


def close_calls() -> None:
    """Close them for this process and all that it starts; once."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PRCTL_GET_SECCOMP, 0, 0, 0, 0) == _FILTER:
        return
    numbers = NUMBERS[os.uname().machine]
    gone = (*numbers["gone"], *GONE_EVERYWHERE)
    steps = [(_LOAD, 0, 0, 0)]
    for number in gone:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _MISSING)]
    # These are for the library alone, which shows a sixth argument that the calls have no use for.
    low = 16 + 5 * 8
    for number in (numbers["renameat2"], numbers["statx"]):
        steps += [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, low)]
        steps += [(_EQUAL, 1, 0, OURS & 0xFFFFFFFF), (_RETURN, 0, 0, _MISSING)]
        steps += [(_RETURN, 0, 0, _ALLOW)]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    code = b"".join(struct.pack("HBBI", *one) for one in steps)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(held))
    prctl.argtypes = ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong
    if prctl(_PRCTL_NO_NEW_PRIVILEGES, 1, None, 0, 0) or prctl(
        _PRCTL_SECCOMP, _FILTER, program, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "this system has no seccomp")


# -- Python: names that it does not have there --------------------------------------------------------------

GONE = {
    os: "O_TMPFILE O_PATH O_DIRECT O_NOATIME O_LARGEFILE O_RSYNC pidfd_open memfd_create listxattr getxattr setxattr"
    " removexattr fdatasync posix_fallocate posix_fadvise sched_getaffinity sched_setaffinity copy_file_range eventfd"
    " splice unshare setns getrandom pipe2 getresuid RWF_NOWAIT RWF_APPEND",
    fcntl: "F_OFD_SETLK F_OFD_SETLKW F_OFD_GETLK F_SETLEASE F_GETLEASE F_SETSIG F_GETSIG F_ADD_SEALS F_NOTIFY"
    " F_GET_SEALS F_SETPIPE_SZ F_GETPIPE_SZ",
    socket: "SO_PEERCRED SOCK_CLOEXEC SOCK_NONBLOCK SO_PASSCRED MSG_CMSG_CLOEXEC",
    select: "epoll",
    signal: "sigtimedwait sigwaitinfo SIGRTMIN SIGRTMAX SIGPWR SIGPOLL",
    __import__("_socket"): "SO_PEERCRED SOCK_CLOEXEC SOCK_NONBLOCK SO_PASSCRED MSG_CMSG_CLOEXEC",
}

_CDLL, _clock_gettime_ns = ctypes.CDLL, time.clock_gettime_ns


def library(name=None, *arguments, **options):  # type: ignore[no-untyped-def]
    """`ctypes.CDLL`, for which the C library is that of macOS."""
    return _CDLL(LIBRARY if name is None else name, *arguments, **options)


# -- /proc, which is not there ---------------------------------------------------------------------------


def watched(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse what looks below ``/proc``, where it could not be covered."""
    if event in {"open", "os.listdir", "os.scandir"} and arguments:
        place = arguments[0]
        named = os.fsdecode(place) if isinstance(place, (str, bytes)) else ""
        if named.startswith("/proc/"):
            raise FileNotFoundError(2, "there is no /proc here", named)


def clock(number: int) -> int:
    """`time.clock_gettime_ns`; the clock of Linux' stamps goes in steps, and is asked for by the number of macOS' own."""
    return _clock_gettime_ns(number or 5)


def fstatvfs(descriptor: int) -> os.statvfs_result:
    """`os.fstatvfs`, which macOS has, by a name: Linux makes it of the call that tells file systems apart, which is closed."""
    return os.statvfs(f"{SYSTEM}/self/fd/{descriptor}")


close_calls()
os.fstatvfs = fstatvfs
for module, names in GONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
macos_fcntl.SYSTEM = SYSTEM
fcntl.fcntl = macos_fcntl.as_there
ctypes.CDLL = library  # type: ignore[misc, assignment]
if SYSTEM == "/proc":
    sys.addaudithook(watched)
time.clock_gettime_ns = clock
sys.platform = "darwin"

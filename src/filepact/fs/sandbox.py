"""The sandbox: a serving process gives up, for good, every file but its roots, its state and libraries.

The guard keeps every path within the roots.  Should it ever be wrong, the kernel still refuses.
What a server needs besides are modules that Python loads when they are first used, the time zone
and two devices; none of them can be changed from inside the sandbox, and nothing can be run.

The kernel's part is Landlock.  What a process may still reach is a list of grants, each a file
descriptor with the rights on that file or folder and on all beneath it.  Which accesses can be
refused depends on the kernel; its answer to that is one number, the ABI.  Of each ABI up to 9 all
rights are made use of.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
import warnings
from contextlib import ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, Literal

from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.fs.root import Root

__all__ = [
    "CHANGE",
    "READ",
    "RUN",
    "USE",
    "SandboxMode",
    "Trial",
    "confine",
    "forbid_mounts",
    "landlock_abi",
    "libraries",
    "restrict",
    "try_sandbox",
]

SandboxMode = Literal["auto", "off", "required"]
"""Whether servers confine themselves: where they can, never, or else do not start."""

Trial = Literal["holds", "leaks", "blocks", "refused"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_HANDLE = getattr(os, "O_PATH", 0) | os.O_CLOEXEC  # stands for a place without opening it

# Read when they are first needed, by Python or by the C library beneath it.
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/usr/share/zoneinfo",
    "/dev/urandom",
)
_DEVICES = ("/dev/null",)


def confine(
    mode: Literal["auto", "required"], roots: Sequence[Root], state: str, *, network: bool = True
) -> bool:
    """Confine this process, and all it starts, for good.

    Threads that run already would stay outside on all but the newest kernels, so this is for a
    process that has none yet.

    Args:
        mode: ``auto`` confines where the system can; ``required`` refuses to go on where it
            cannot.
        roots: The folders that may be used.
        state: The state folder.
        network: Whether it is kept from the network as well.

    Returns:
        Whether the process is confined now.

    Raises:
        InvalidParamsError: It is required and the system cannot do it.
    """
    try:
        _confine(roots, state, network=network)
    except OSError as error:
        if mode == "required":
            why = os.strerror(error.errno or 0)
            why = f"the system refused: {why}" if landlock_abi() else "this system has no Landlock"
            raise InvalidParamsError(
                f"the sandbox is required, but {why}",
                hint='Use a kernel that has Landlock, or set landlock = "auto".',
            ) from None
        return False
    return True


def try_sandbox(roots: Sequence[Root], state: str) -> Trial:
    """Confine a child process and see whether it can still read what lies outside.

    Returns:
        ``holds``: nothing outside could be read, and everything inside could.  ``leaks`` and
        ``blocks``: not so.  ``refused``: the child could not be confined.
    """
    # A program started anew would have to find this very Python and its modules first; this one
    # makes nothing but a few system calls.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside other threads
        child = os.fork()
    if not child:
        answer = 3
        try:
            answer = _look_around(roots, state)
        finally:
            os._exit(answer)
    _child, status = os.waitpid(child, 0)
    results: tuple[Trial, ...] = ("holds", "leaks", "blocks", "refused")
    return results[os.waitstatus_to_exitcode(status)]


def _look_around(roots: Sequence[Root], state: str) -> int:
    above = os.open("/", _HANDLE | os.O_DIRECTORY)
    _confine(roots, state)
    if any(
        _opens(name, directory)
        for name, directory in (("/", None), (".", above), ("/proc/self/root", None))
    ):
        return 1
    inside = (_opens(".", root.fileno()) for root in roots)
    return 0 if all(inside) and _opens(state, None) else 2


def _opens(name: str, directory: int | None) -> bool:
    try:
        os.close(os.open(name, _FOLDER, dir_fd=directory))
    except OSError:
        return False
    return True


def _confine(roots: Sequence[Root], state: str, *, network: bool = True) -> None:
    avoided = [state, *(root.path for root in roots)]
    with suppress(FileNotFoundError):  # removed since we were started in it
        avoided.append(os.getcwd())
    with ExitStack() as stack:

        def handle(path: str) -> int:
            descriptor = os.open(path, _HANDLE)
            stack.callback(os.close, descriptor)
            return descriptor

        grants = [(root.fileno(), CHANGE) for root in roots]
        grants.append((handle(state), CHANGE))
        for path in libraries(_above(avoided)):
            with suppress(OSError):
                grants.append((handle(path), READ))
        for path in _DEVICES:
            with suppress(OSError):
                grants.append((handle(path), USE))
        restrict(grants, network=network)


def _above(folders: Iterable[str]) -> frozenset[str]:
    """Folders with every folder above them."""
    found = set()
    for folder in folders:
        here = os.path.realpath(folder)
        while here not in found:
            found.add(here)
            here = os.path.dirname(here)
    return frozenset(found)


def libraries(never: frozenset[str]) -> list[str]:
    """The folders that Python may still have to read: its modules, and the libraries they link to.

    Args:
        never: Folders that are not taken from the search path for modules, as that holds whatever
            somebody put there: the present folder, or one that holds a root and its neighbours.
    """
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    found = {os.path.join(prefix, name) for prefix in prefixes for name in ("lib", "lib64")}
    found.add(os.path.dirname(os.path.realpath(os.__file__)))  # the standard library
    found.add(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # our own package
    # The first is where Python was started or where its script lies, not a place of libraries.
    searched = sys.path if sys.flags.safe_path else sys.path[1:]
    found.update(path for path in searched if path and os.path.realpath(path) not in never)
    if sys.pycache_prefix:
        # Below it is what was compiled of each of them.
        found.update([f"{sys.pycache_prefix}{path}" for path in found])
    return sorted({*found, *_SYSTEM})


# -- Landlock ---------------------------------------------------------------------------------

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
_MAKE_BLOCK_DEVICE = 1 << 11
_MOVE = 1 << 13
_TRUNCATE = 1 << 14
_STEER_DEVICE = 1 << 15
_REACH_SOCKET = 1 << 16

READ = _READ_FILE | _READ_FOLDER
"""Files may be read and folders listed."""

RUN = READ | _EXECUTE
"""The same, and programs may be run."""

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
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: _MOVE, 3: _TRUNCATE, 5: _STEER_DEVICE, 9: _REACH_SOCKET}
_BIND_AND_CONNECT = 0b11  # TCP, from the fourth on
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11  # to processes that are not confined likewise, from the sixth
_ALL_THREADS = 1 << 3  # from the eighth

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@cache
def landlock_abi() -> int:
    """The version of the kernel's Landlock interface; 0 where there is none.

    It may be missing from the kernel, switched off at the machine's start, or kept from us by a
    container's filter.
    """
    with suppress(OSError):
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_FOR_ABI))
    return 0


def forbid_mounts(top: int) -> bool:
    """Give up mounting and unmounting, making devices, and what lies outside of all file systems.

    Neither this process nor any that it starts can then change where anything is mounted, whatever
    other rights it has or gets, nor send signals to, or speak over abstract sockets with, processes
    outside.  Files stay as they are.

    Args:
        top: A descriptor of the folder that everything lies beneath.

    Returns:
        Whether the kernel can do that.

    Raises:
        OSError: It refused.
    """
    # Before the second ABI it would refuse to move a file from one folder to another as well.
    if landlock_abi() < 2:
        return False
    restrict([(top, _MOVE)], _MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE | _MOVE, network=False)
    return True


def restrict(
    grants: Iterable[tuple[int, int]], only: int | None = None, *, network: bool = True
) -> None:
    """Give up everything but some files and folders; this cannot be undone.

    Neither this process nor any that it starts can then reach another file, connect or listen
    over TCP, send signals to processes outside, or gain privileges by running a program.
    Descriptors that are open keep what they may.

    Args:
        grants: Descriptors of files and folders, each with the rights on it and all beneath it.
        only: The rights that are given up where they are not granted; None for all.
        network: Whether TCP is given up.

    Raises:
        OSError: The system refused, and nothing was given up; ``ENOSYS`` where it has no
            Landlock, ``EBUSY`` when other threads run that this kernel would leave as they are.
    """
    version = landlock_abi()
    if not version:
        raise OSError(errno.ENOSYS, "no Landlock here")
    if version < 8 and _threads() > 1:
        raise OSError(errno.EBUSY, "other threads are running already")
    handled = 0
    for since, rights in _FILE_RIGHTS.items():
        handled |= rights if since <= version else 0
    if only is not None:
        handled &= only
    ruleset = _call(
        _CREATE_RULESET,
        *_buffer(
            struct.pack(
                "=QQQ",
                handled,
                _BIND_AND_CONNECT if network and version >= 4 else 0,
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

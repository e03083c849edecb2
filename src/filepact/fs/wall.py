"""The second wall: a serving process confines itself to its roots, its state and its libraries.

The guard keeps every path within the roots.  Should it ever be wrong, the kernel still refuses.
What a server needs besides are modules that Python loads when they are first used, the time zone
and two devices; none of them can be changed through the wall, and nothing can be run.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from filepact.errors import InvalidParamsError
from filepact.fs import landlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.fs.root import Root

__all__ = ["Trial", "Wall", "WallMode", "libraries", "raise_wall", "try_wall"]

WallMode = Literal["auto", "off", "required"]
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


@dataclass(frozen=True, slots=True)
class Wall:
    """Whether this process is confined.

    Attributes:
        abi: What the kernel's Landlock can do, 0 where there is none.
        on: Whether the process is confined now.
        why: Why it is not; empty when it is.
    """

    abi: int
    on: bool
    why: str = ""


def raise_wall(mode: WallMode, roots: Sequence[Root], state: str) -> Wall:
    """Confine this process, and all it starts, for good.

    Threads that run already would stay outside on all but the newest kernels, so this is for a
    process that has none yet.

    Args:
        mode: ``auto`` confines where the system can; ``required`` refuses to go on where it
            cannot.
        roots: The folders that may be used.
        state: The state folder.

    Raises:
        InvalidParamsError: It is required and the system cannot do it.
    """
    abi = landlock.abi()
    if mode == "off":
        return Wall(abi, on=False, why="it is switched off")
    try:
        _confine(roots, state)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        why = f"the system refused: {why}" if abi else "this system has no Landlock"
        if mode == "required":
            raise InvalidParamsError(
                f"the second wall is required, but {why}",
                hint='Use a kernel that has Landlock, or set landlock = "auto".',
            ) from None
        return Wall(abi, on=False, why=why)
    return Wall(abi, on=True)


def try_wall(roots: Sequence[Root], state: str) -> Trial:
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


def _confine(roots: Sequence[Root], state: str) -> None:
    avoided = [state, *(root.path for root in roots)]
    with suppress(FileNotFoundError):  # removed since we were started in it
        avoided.append(os.getcwd())
    with ExitStack() as stack:

        def handle(path: str) -> int:
            descriptor = os.open(path, _HANDLE)
            stack.callback(os.close, descriptor)
            return descriptor

        grants = [(root.fileno(), landlock.CHANGE) for root in roots]
        grants.append((handle(state), landlock.CHANGE))
        for path in libraries(_above(avoided)):
            with suppress(OSError):
                grants.append((handle(path), landlock.READ))
        for path in _DEVICES:
            with suppress(OSError):
                grants.append((handle(path), landlock.USE))
        landlock.restrict(grants)


def _above(folders: Iterable[str]) -> frozenset[str]:
    """Some folders and all that hold them."""
    found = set()
    for folder in folders:
        here = os.path.realpath(folder)
        while here not in found:
            found.add(here)
            here = os.path.dirname(here)
    return frozenset(found)


def libraries(never: frozenset[str]) -> list[str]:
    """What Python may still have to read: the places of its modules and of what they link to.

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
    return sorted({*found, *_SYSTEM})

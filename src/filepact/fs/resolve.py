"""Names beneath a directory descriptor: where they lead, or a refusal.

Two resolvers with one meaning.  `Openat2` lets the kernel resolve a path in one step that cannot
leave the directory.  `ComponentWalk` opens one part after the other and follows links itself; it
is for kernels without that call, and it finds out how far a name exists that leads to nothing,
and why one was refused.  Both refuse every step above the directory, also a link's, absolute links
that do not begin with the directory's own path, and other file systems than the directory's.
"""

from __future__ import annotations

import os
import stat
import tempfile
from errno import E2BIG, EAGAIN, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV
from typing import TYPE_CHECKING, Literal

from filepact.errors import PathBlockedError
from filepact.fs.form import check_form, check_new_name
from filepact.fs.found import HOLD, Found, Resolver, check_canonical, refused
from filepact.fs.kernel import BENEATH, NO_LINKS, NO_MAGIC_LINKS, openat2
from filepact.fs.steps import FOLDER, ComponentWalk

if TYPE_CHECKING:
    from filepact.fs.border import Border

__all__ = [
    "ComponentWalk",
    "Found",
    "Openat2",
    "Resolver",
    "check_form",
    "check_new_name",
    "choose_resolver",
    "find_exactly",
]

_TRIES = 16

# What the walk can say more about: how far a name exists, whether an absolute link leads back
# inside, what is mounted where; it also copes with a tree in motion and with any length.
_WALK_KNOWS = frozenset({EAGAIN, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV})


class Openat2:
    """Lets the kernel resolve.

    Args:
        true_path: The starting folder's true absolute path, by which the kernel names what is
            beneath it.
        border: Where the folder ends.
    """

    name = "openat2"

    def __init__(self, true_path: str, border: Border) -> None:
        self._prefix = f"{true_path.rstrip('/')}/"
        self._true_path = true_path
        self._border = border
        self._how = BENEATH | NO_MAGIC_LINKS | border.resolve
        self._walk = ComponentWalk(true_path, border)

    def find(self, folder: int, path: str) -> Found:
        above, _, name = path.rpartition("/")
        if path.startswith("/") or name in ("", ".", ".."):
            return self._walk.find(folder, path)
        try:
            parent = _beneath(folder, above or ".", _FOLDER_HANDLE, self._how)
        except OSError as error:
            if error.errno in _WALK_KNOWS:
                return self._walk.find(folder, path)
            raise refused(error, path) from None
        found = None
        try:
            found = self._last(parent, name, path)
        except OSError:
            # No /proc here, or the folder's whole name is longer than it tells, or a mount.
            pass
        finally:
            if found is None:
                os.close(parent)
        return found or self._walk.find(folder, path)

    def _last(self, parent: int, name: str, asked: str) -> Found | None:
        """The last part in its folder; None where the walk has to put the name together.

        A file is never named by what its descriptor is called: a save that exchanges files at
        this moment would give the old file's new name for it.
        """
        true = os.readlink(f"/proc/self/fd/{parent}")
        if true == self._true_path:
            path = name
        elif true.startswith(self._prefix):
            path = f"{true[len(self._prefix) :]}/{name}"
        else:
            # The root was moved, or is mounted elsewhere too.
            return None
        try:
            handle = openat2(parent, name, HOLD, self._how)
        except FileNotFoundError:
            return Found(parent, (), name, path, None)
        kept = False
        try:
            status = os.fstat(handle)
            if stat.S_ISLNK(status.st_mode):
                return None
            if self._border.mounts:
                self._border.check(handle, status, asked)
            kept = True
        finally:
            if not kept:
                os.close(handle)
        return Found(parent, (), name, path, status, handle)

    def open_folder(self, folder: int, path: str) -> int:
        check_canonical(path)
        try:
            found = _beneath(folder, path, _FOLDER_HANDLE, self._how | NO_LINKS)
        except OSError as error:
            if error.errno in (ENAMETOOLONG, E2BIG):
                return self._walk.open_folder(folder, path)
            raise
        if self._border.mounts and not self._border.encloses(found, os.fstat(found)):
            os.close(found)
            raise OSError(EXDEV, "a file system that the kernel makes up")
        return found


# Links before the last part are followed: that is what the kernel is asked for.
_FOLDER_HANDLE = FOLDER & ~os.O_NOFOLLOW


def find_exactly(resolver: Resolver, border: Border, folder: int, path: str) -> Found:
    """What a canonical path leads to when no link is followed, not even at its end.

    Raises:
        OSError: ``ELOOP`` where the last part is a link; else as `Resolver.open_folder`.
        PathBlockedError: It is another file system's.
    """
    if path == ".":
        return resolver.find(folder, path)
    above, _, name = path.rpartition("/")
    check_canonical(path)
    parent = resolver.open_folder(folder, above or ".")
    handle = -1
    try:
        handle, status = _hold(parent, name)
        border.check(handle, status, path)
    except FileNotFoundError:
        return Found(parent, (), name, path, None)
    except BaseException:
        os.close(parent)
        if handle >= 0:
            os.close(handle)
        raise
    return Found(parent, (), name, path, status, handle)


def _hold(parent: int, name: str) -> tuple[int, os.stat_result]:
    """Hold what a name leads to, -1 where that cannot be done; ``ELOOP`` for a link."""
    if not HOLD:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            handle = os.open(name, FOLDER, dir_fd=parent)
            return handle, os.fstat(handle)
        handle = -1
    else:
        handle = os.open(name, HOLD, dir_fd=parent)
        status = os.fstat(handle)
    if stat.S_ISLNK(status.st_mode):
        if handle >= 0:
            os.close(handle)
        raise OSError(ELOOP, "a link")
    return handle, status


def _beneath(folder: int, path: str, flags: int, resolve: int) -> int:
    """`openat2`, asked again while a rename races a step upwards."""
    for _ in range(_TRIES - 1):
        try:
            return openat2(folder, path, flags, resolve)
        except (BlockingIOError, InterruptedError):
            continue
    return openat2(folder, path, flags, resolve)


def choose_resolver(
    true_path: str, wanted: Literal["auto", "openat2", "walk"], border: Border
) -> Resolver:
    """The resolver for a root: the kernel's where it proves itself, else the walk.

    Args:
        true_path: The root's true absolute path.
        wanted: ``auto``, or one of them.
        border: Where the root ends.

    Raises:
        PathBlockedError: The kernel's was demanded and does not work here.
    """
    if wanted != "walk" and _openat2_works():
        return Openat2(true_path, border)
    if wanted == "openat2":
        raise PathBlockedError("this system has no openat2", hint="Use the resolver walk.")
    return ComponentWalk(true_path, border)


def _openat2_works() -> bool:
    """Whether the call refuses a real link that leads out.

    The kernel's version is no proof: a container's filter may answer in its place.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="filepact-probe-") as outer:
            inner = os.path.join(outer, "in")
            os.mkdir(inner)
            os.symlink("..", os.path.join(inner, "out"))
            folder = os.open(inner, FOLDER)
            try:
                for name in (".", "out"):
                    os.close(openat2(folder, name, _FOLDER_HANDLE, BENEATH | NO_MAGIC_LINKS))
            except OSError as error:
                return error.errno == EXDEV
            finally:
                os.close(folder)
    except OSError:
        return False
    return False

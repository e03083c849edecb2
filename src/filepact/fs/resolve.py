"""Resolves names beneath a directory descriptor, or refuses them.

Two resolvers with one meaning.  `Openat2Resolver` lets the kernel resolve a path in one step that cannot
leave the directory.  `PathResolver` opens one part after the other and follows links itself; it
is for kernels without that call, and it finds out how far a name exists that leads to nothing,
and why one was refused.  Both refuse every step above the directory, also a link's, absolute links
that do not begin with the directory's own path, and other file systems than the directory's.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from errno import E2BIG, EAGAIN, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV
from functools import lru_cache
from typing import Literal, Protocol

from filepact.errors import FilepactError, NotFoundError, PathBlockedError, ReadFailedError
from filepact.fs.kernel import (
    BENEATH,
    FORMS_FOLD,
    NO_LINKS,
    NO_MAGIC_LINKS,
    names_in,
    openat2,
    spelling,
    true_name,
)
from filepact.fs.mounts import RootMounts
from filepact.values import dataclass, replace

__all__ = [
    "FOLDER",
    "HOLD",
    "KnownNames",
    "Openat2Resolver",
    "PathResolver",
    "Resolution",
    "Resolver",
    "choose_resolver",
    "find_exactly",
    "is_canonical",
]

HOLD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
"""Flags that hold whatever has a name without opening it, so that no driver and no writer of a
pipe sees it; 0 where the system has no such thing."""

_NAMES_NOTHING = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Resolution:
    """Where a name leads beneath a folder; holds descriptors, so it is closed once.

    Attributes:
        parent: Descriptor of the deepest folder that exists above it; -1 where the name was resolved in one step.
        rest: Names of missing folders between that one and the name.
        name: The last part; ``.`` for the starting folder itself.
        path: The whole canonical name, relative to the starting folder; ``.`` for itself.
        status: What is there, links resolved; None when nothing is.
        handle: Holds what is there without opening it; -1 when nothing is there or the system
            cannot do that.
    """

    parent: int
    rest: tuple[str, ...]
    name: str
    path: str
    status: os.stat_result | None
    handle: int = -1

    def close(self) -> None:
        """Close its descriptors; once."""
        if self.parent >= 0:
            os.close(self.parent)
        if self.handle >= 0:
            os.close(self.handle)


class Resolver(Protocol):
    """Follows names beneath a folder."""

    name: str

    def find(self, folder: int, path: str) -> Resolution:
        """Follow a relative path from a folder's descriptor.

        Raises:
            PathBlockedError: It leads out of the folder, to another file system, or in a circle.
            NotFoundError: A part of it that is used as a folder is none.
        """

    def open_folder(self, folder: int, path: str) -> int:
        """A handle of a folder by its canonical path, without following any link.

        Raises:
            OSError: ``EXDEV`` for a path that is not canonical or leads to another file system;
                else the system's.
        """


@lru_cache(maxsize=4_096)
def is_canonical(path: str) -> bool:
    """Whether a path has no empty part, ``.`` or ``..``: where it holds no link, it is what it leads to."""
    return _NAMES_NOTHING.isdisjoint(path.split("/"))


def _check_canonical(path: str) -> None:
    """Refuse ``..`` where no resolver would look at it; opened as it is, it leads outside."""
    if path != "." and not is_canonical(path):
        raise OSError(EXDEV, "not a canonical path")


def _refused(error: OSError, path: str) -> FilepactError:
    """The error for a system call that failed to resolve a name."""
    if error.errno in (ENOENT, ENOTDIR):
        return _no_folder(path)
    if error.errno == ENAMETOOLONG:
        return PathBlockedError(
            f"{path[:100]}: is too long for this system",
            hint="Send a shorter path.",
            path=path[:100],
        )
    return ReadFailedError(
        f"{path}: {os.strerror(error.errno or 0)}",
        hint="Tell the person: the system does not let filepact look there.",
        path=path,
    )


_OUTSIDE = (
    "leads out of the root",
    "Use a path inside the root; links may only lead to places inside it.",
)
_CIRCLE = "its links lead in a circle or are too many", "Use the file's own path."
_UNREST = (
    "other programs keep replacing folders of this path",
    "Try again when no other program changes the tree.",
)


def _blocked(path: str, why: tuple[str, str]) -> PathBlockedError:
    return PathBlockedError(f"{path}: {why[0]}", hint=why[1], path=path)


def _no_folder(path: str) -> NotFoundError:
    return NotFoundError(
        f"{path}: a part of the path is used as a folder but is not one",
        hint="directory_tree shows what is there.",
        path=path,
    )


_LINKS = 40
_WALK_TRIES = 16

FOLDER = (HOLD or os.O_RDONLY | os.O_CLOEXEC) | os.O_DIRECTORY | os.O_NOFOLLOW
"""Flags for a folder to start from."""


class PathResolver:
    """Resolves one part after the other, and follows links itself.

    Every part is held before it is looked at, so what was looked at is what is used.  A link's
    target is taken as the kernel takes it: the parts of the target come before the parts that are
    left, and ``..`` goes to the folder above the one that was reached.  An absolute link is
    followed when it begins with the root's own true path, and from there on beneath the root's
    handle like any other: whatever has been put in that place meanwhile is never asked.

    Args:
        true_path: The starting folder's true absolute path, by which absolute links may name it.
        boundary: Where the folder ends; None: it is asked of the folder each time.
    """

    name = "walk"

    def __init__(self, true_path: str = "", boundary: RootMounts | None = None) -> None:
        self._true_path = true_path
        self._border = boundary

    def find(self, folder: int, path: str) -> Resolution:
        if path.startswith("/"):
            raise _blocked(path, _OUTSIDE)
        boundary = self._border or RootMounts.around(folder)
        for _ in range(_WALK_TRIES):
            try:
                return _Walk(folder, self._true_path, boundary, path).run()
            except OSError as error:
                # A part changed its kind between looking at it and opening it.
                if error.errno not in (ELOOP, ENOTDIR, ENOENT):
                    raise _refused(error, path) from None
        raise _blocked(path, _UNREST)

    def open_folder(self, folder: int, path: str) -> int:
        _check_canonical(path)
        boundary = self._border or RootMounts.around(folder)
        here = os.dup(folder)
        try:
            for part in path.split("/"):
                if part != ".":
                    below = os.open(part, FOLDER, dir_fd=here)
                    os.close(here)
                    here = below
                    _check_boundary(boundary, here)
        except BaseException:
            os.close(here)
            raise
        return here


class _Walk:
    """The state of one component walk."""

    def __init__(self, folder: int, true_path: str, boundary: RootMounts, path: str) -> None:
        self.start = folder
        self.true_path = true_path
        self.boundary = boundary
        self.path = path
        self.open: list[tuple[int, str]] = []
        self.missing: list[str] = []
        self.leaf: tuple[str, os.stat_result, int] | None = None

    def run(self) -> Resolution:
        try:
            self._go()
            return self._found()
        except BaseException:
            if self.leaf is not None and self.leaf[2] >= 0:
                os.close(self.leaf[2])
            raise
        finally:
            while self.open:
                os.close(self.open.pop()[0])

    def _go(self) -> None:
        pending = deque(self.path.split("/"))
        links = 0
        while pending:
            part = pending.popleft()
            # Also the empty part after a last slash: only a folder's name may end in one.
            if self.leaf is not None:
                raise _no_folder(self.path)
            if part in ("", "."):
                continue
            if part == "..":
                self._up()
            elif self.missing:
                self.missing.append(part)
            elif (target := self._down(part)) is not None:
                links += 1
                if links > _LINKS:
                    raise _blocked(self.path, _CIRCLE)
                if target.startswith("/"):
                    target = self._from_the_top(target)
                pending.extendleft(reversed(target.split("/")))

    def _here(self) -> int:
        return self.open[-1][0] if self.open else self.start

    def _up(self) -> None:
        if self.missing:
            raise _no_folder(self.path)
        if not self.open:
            raise _blocked(self.path, _OUTSIDE)
        os.close(self.open.pop()[0])

    def _from_the_top(self, target: str) -> str:
        """Begin again at the root, if that is where an absolute link's target begins."""
        root = self.true_path
        if not root or not f"{target}/".startswith(f"{root.rstrip('/')}/"):
            raise _blocked(self.path, _OUTSIDE)
        while self.open:
            os.close(self.open.pop()[0])
        return target[len(root) :]

    def _down(self, part: str) -> str | None:
        """Go one part down; the link's target where the part is a link."""
        if not HOLD:
            return self._down_by_name(part)
        try:
            handle = os.open(part, HOLD, dir_fd=self._here())
        except FileNotFoundError:
            self.missing.append(part)
            return None
        kept = False
        try:
            status = os.fstat(handle)
            if stat.S_ISLNK(status.st_mode):
                return os.readlink("", dir_fd=handle)
            self.boundary.check(handle, status, self.path)
            kept = True
        finally:
            if not kept:
                os.close(handle)
        if stat.S_ISDIR(status.st_mode):
            self.open.append((handle, part))
        else:
            self.leaf = (part, status, handle)
        return None

    def _down_by_name(self, part: str) -> str | None:
        """As `_down`, on systems that cannot hold a file without opening it."""
        here = self._here()
        try:
            status = os.stat(part, dir_fd=here, follow_symlinks=False)
        except FileNotFoundError:
            self.missing.append(part)
            return None
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(part, dir_fd=here)
        if stat.S_ISDIR(status.st_mode):
            below = os.open(part, FOLDER, dir_fd=here)
            self.open.append((below, part))
            self.boundary.check(below, os.fstat(below), self.path)
        else:
            self.boundary.check(-1, status, self.path)
            self.leaf = (part, status, -1)
        return None

    def _found(self) -> Resolution:
        names = [name for _, name in self.open]
        if self.missing:
            *rest, name = self.missing
            path = "/".join([*names, *self.missing])
            return Resolution(os.dup(self._here()), tuple(rest), name, path, None)
        if self.leaf is not None:
            name, status, handle = self.leaf
            path = "/".join([*names, name])
            return Resolution(os.dup(self._here()), (), name, path, status, handle)
        status = os.fstat(self._here())
        if not self.open:
            # So that the end is the same: the starting folder as the folder in itself.
            self.open.append((os.dup(self.start), "."))
            names = ["."]
        above = os.dup(self.open[-2][0] if len(self.open) > 1 else self.start)
        handle, name = self.open.pop()
        return Resolution(above, (), name, "/".join(names), status, handle)


def _check_boundary(boundary: RootMounts, folder: int) -> None:
    if not boundary.encloses(folder, os.fstat(folder)):
        raise OSError(EXDEV, "another file system")


_TRIES = 16

# What the walk can say more about: how far a name exists, whether an absolute link leads back
# inside, what is mounted where; it also copes with a tree in motion and with any length.
_WALK_KNOWS = frozenset({EAGAIN, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV})


class Openat2Resolver:
    """Resolves with the system call openat2.

    Args:
        true_path: The starting folder's true absolute path, by which the kernel names what is
            beneath it.
        boundary: Where the folder ends.
    """

    name = "openat2"

    def __init__(self, true_path: str, boundary: RootMounts) -> None:
        self._prefix = f"{true_path.rstrip('/')}/"
        self._true_path = true_path
        self._border = boundary
        self._how = BENEATH | NO_MAGIC_LINKS | boundary.resolve
        self._walk = PathResolver(true_path, boundary)

    def find(self, folder: int, path: str) -> Resolution:
        above, _, name = path.rpartition("/")
        if path.startswith("/") or name in ("", ".", ".."):
            return self._walk.find(folder, path)
        try:
            parent = _beneath(folder, above or ".", _FOLDER_HANDLE, self._how)
        except OSError as error:
            if error.errno in _WALK_KNOWS:
                return self._walk.find(folder, path)
            raise _refused(error, path) from None
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

    def _last(self, parent: int, name: str, asked: str) -> Resolution | None:
        """Resolve the last part in its folder; None where `PathResolver` has to do it.

        A file is never named by what its descriptor is called: a save that exchanges files at
        this moment would give the old file's new name for it.
        """
        true = true_name(parent)
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
            return Resolution(parent, (), name, path, None)
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
        return Resolution(parent, (), name, path, status, handle)

    def open_folder(self, folder: int, path: str) -> int:
        _check_canonical(path)
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


def find_exactly(resolver: Resolver, boundary: RootMounts, folder: int, path: str) -> Resolution:
    """Resolve a canonical path without following any link, not even at its end.

    Raises:
        OSError: ``ELOOP`` where the last part is a link; else as `Resolver.open_folder`.
        PathBlockedError: It is another file system's.
    """
    if path == ".":
        return resolver.find(folder, path)
    above, _, name = path.rpartition("/")
    _check_canonical(path)
    parent = resolver.open_folder(folder, above or ".")
    handle = -1
    try:
        handle, status = _hold(parent, name)
        boundary.check(handle, status, path)
    except FileNotFoundError:
        return Resolution(parent, (), name, path, None)
    except BaseException:
        os.close(parent)
        if handle >= 0:
            os.close(handle)
        raise
    return Resolution(parent, (), name, path, status, handle)


class KnownNames:
    """The true names of what lies beneath an open folder, also where letter case does not tell names apart.

    Attributes:
        folds: Whether the system finds a name by other letters, or other forms of them; None where nothing has told yet.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self.folds: bool | None = FORMS_FOLD

    def correct(self, found: Resolution, *, exact: bool) -> Resolution:
        """A resolution by its true name; with ``exact``, nothing where the true name is another."""
        if self.folds is False or found.path == ".":
            return found
        parts = found.path.split("/")
        at = len(parts) if found.status is not None else len(parts) - len(found.rest) - 1
        if self.folds is None and found.status is not None:
            self.of(found.parent, found.name)
        if not at or not (self.folds or (found.status is None and self.asked())):
            return found
        true = "/".join([self.true("/".join(parts[:at])), *parts[at:]])
        if true == found.path or (exact and found.status is None):
            return found
        if not exact:
            return replace(found, path=true, name=true.rpartition("/")[2])
        if found.handle >= 0:
            os.close(found.handle)
        return replace(found, status=None, handle=-1)

    def asked(self) -> bool:
        """Whether the system finds a name by other letters, by the names in the folder itself where nothing has told yet."""
        for name in () if self.folds is not None else names_in(self._folder):
            self.of(self._folder, name)
        return bool(self.folds)

    def of(self, folder: int, name: str) -> str:
        """The true name of what a name leads to in an open folder."""
        if self.folds is None and (other := name.swapcase()) != name:
            try:
                os.stat(other, dir_fd=folder, follow_symlinks=False)
                self.folds = not {name, other} <= {*names_in(folder)}
            except OSError:
                self.folds = False
        return spelling(folder, name) if self.folds else name

    def true(self, path: str) -> str:
        """A path as the folders on its way have it."""
        true: list[str] = []
        here = os.dup(self._folder)
        try:
            for part in path.split("/"):
                true.append(spelling(here, part))
                if len(true) <= path.count("/"):
                    below = os.open(true[-1], FOLDER, dir_fd=here)
                    os.close(here)
                    here = below
        finally:
            os.close(here)
        return "/".join(true)


def _hold(parent: int, name: str) -> tuple[int, os.stat_result]:
    """Hold what a name leads to without opening it; ``ELOOP`` for a link.

    Returns:
        Its descriptor, -1 where the system cannot hold a file so; its status.
    """
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
    """Call openat2, again while a rename races a step upwards."""
    for _ in range(_TRIES - 1):
        try:
            return openat2(folder, path, flags, resolve)
        except (BlockingIOError, InterruptedError):
            continue
    return openat2(folder, path, flags, resolve)


def choose_resolver(
    true_path: str, wanted: Literal["auto", "openat2", "walk"], boundary: RootMounts
) -> Resolver:
    """The resolver for a root: the kernel's where it proves itself, else the walk.

    Args:
        true_path: The root's true absolute path.
        wanted: ``auto``, or one of them.
        boundary: Where the root ends.

    Raises:
        PathBlockedError: The kernel's was demanded and does not work here.
    """
    if wanted != "walk" and _openat2_works():
        return Openat2Resolver(true_path, boundary)
    if wanted == "openat2":
        raise PathBlockedError("this system has no openat2", hint="Use the resolver walk.")
    return PathResolver(true_path, boundary)


def _openat2_works() -> bool:
    """Whether openat2 refuses a real link that leads out: ``/dev/fd``, which Linux has.

    The kernel's version is no proof: a container's filter may answer in its place.
    """
    try:
        if not os.readlink("/dev/fd").startswith("/"):
            return False
        folder = os.open("/dev", FOLDER)
    except OSError:
        return False
    try:
        for name in (".", "fd"):
            os.close(openat2(folder, name, _FOLDER_HANDLE, BENEATH | NO_MAGIC_LINKS))
    except OSError as error:
        return error.errno == EXDEV
    finally:
        os.close(folder)
    return False

"""Names beneath a directory descriptor: where they lead, or a refusal.

Two resolvers with one meaning.  `Openat2` lets the kernel resolve a path in one step that cannot
leave the directory.  `ComponentWalk` opens one part after the other and follows links itself; it
is for kernels without that call, and it finds out how far a name exists that leads to nothing.
Both refuse absolute links and every step above the directory, also a link's.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol

from filepact.errors import NotFoundError, PathBlockedError, ReadFailedError
from filepact.fs.form import check_form, check_new_name
from filepact.fs.kernel import BENEATH, NO_LINKS, NO_MAGIC_LINKS, openat2

__all__ = [
    "ComponentWalk",
    "Found",
    "Openat2",
    "Resolver",
    "check_form",
    "check_new_name",
    "choose_resolver",
]

_LINKS = 40
_TRIES = 16

# O_PATH gives a handle without opening the file, so no driver sees it; elsewhere a folder has to
# be opened for reading to be used as a starting point.
_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_HANDLE = _HANDLE | getattr(os, "O_DIRECTORY", 0)
_FOLDER = _FOLDER_HANDLE | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a name leads.

    Attributes:
        parent: Descriptor of the deepest folder that exists above it; the caller closes it.
        rest: Names of missing folders between that one and the name.
        name: The last part; ``.`` for the starting folder itself.
        path: The whole canonical name, relative to the starting folder; ``.`` for itself.
        status: What is there, links resolved; None when nothing is.
    """

    parent: int
    rest: tuple[str, ...]
    name: str
    path: str
    status: os.stat_result | None


class Resolver(Protocol):
    """Follows names beneath a folder."""

    name: str

    def find(self, folder: int, path: str) -> Found:
        """Follow a relative path from a folder's descriptor.

        Raises:
            PathBlockedError: It leads out of the folder, or in a circle.
            NotFoundError: A part of it that is used as a folder is none.
        """

    def open_folder(self, folder: int, path: str) -> int:
        """A handle of a folder by its canonical path, without following any link.

        Raises:
            OSError: ``EXDEV`` for a path that is not canonical; else the system's.
        """


class ComponentWalk:
    """Opens part after part and follows links itself."""

    name = "walk"

    def find(self, folder: int, path: str) -> Found:
        if path.startswith("/"):
            raise _outside(path)
        for _ in range(_TRIES):
            try:
                return _Walk(folder).run(path)
            except OSError as error:
                # A part changed its kind between looking at it and opening it.
                if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
                    raise _refused(error, path) from None
        raise PathBlockedError(
            f"{path}: folders on the way are being exchanged",
            hint="Try again when the tree is at rest.",
            path=path,
        )

    def open_folder(self, folder: int, path: str) -> int:
        _check_canonical(path)
        here = os.dup(folder)
        try:
            for part in path.split("/"):
                if part != ".":
                    below = os.open(part, _FOLDER, dir_fd=here)
                    os.close(here)
                    here = below
        except BaseException:
            os.close(here)
            raise
        return here


class _Walk:
    """The state of one component walk."""

    def __init__(self, folder: int) -> None:
        self.start = folder
        self.open: list[tuple[int, str]] = []
        self.missing: list[str] = []
        self.leaf: tuple[str, os.stat_result] | None = None

    def run(self, path: str) -> Found:
        pending = deque(path.split("/"))
        links = 0
        try:
            while pending:
                part = pending.popleft()
                # Also the empty part after a last slash: only a folder's name may end in one.
                if self.leaf is not None:
                    raise _no_folder(path)
                if part in ("", "."):
                    continue
                if part == "..":
                    self._up(path)
                elif self.missing:
                    self.missing.append(part)
                elif (target := self._down(part)) is not None:
                    links += 1
                    if links > _LINKS:
                        raise _circle(path)
                    if target.startswith("/"):
                        raise _outside(path)
                    pending.extendleft(reversed(target.split("/")))
            return self._found()
        finally:
            for descriptor, _ in self.open:
                os.close(descriptor)

    def _here(self) -> int:
        return self.open[-1][0] if self.open else self.start

    def _up(self, path: str) -> None:
        if self.missing:
            raise _no_folder(path)
        if not self.open:
            raise _outside(path)
        os.close(self.open.pop()[0])

    def _down(self, part: str) -> str | None:
        """Take one step; the target when the part is a link."""
        try:
            status = os.stat(part, dir_fd=self._here(), follow_symlinks=False)
        except FileNotFoundError:
            self.missing.append(part)
            return None
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(part, dir_fd=self._here())
        if stat.S_ISDIR(status.st_mode):
            self.open.append((os.open(part, _FOLDER, dir_fd=self._here()), part))
        else:
            self.leaf = (part, status)
        return None

    def _found(self) -> Found:
        names = [name for _, name in self.open]
        if self.missing:
            *rest, name = self.missing
            path = "/".join([*names, *self.missing])
            return Found(os.dup(self._here()), tuple(rest), name, path, None)
        if self.leaf is not None:
            name, status = self.leaf
            return Found(os.dup(self._here()), (), name, "/".join([*names, name]), status)
        status = os.fstat(self._here())
        if not self.open:
            return Found(os.dup(self.start), (), ".", ".", status)
        parent = self.open[-2][0] if len(self.open) > 1 else self.start
        return Found(os.dup(parent), (), names[-1], "/".join(names), status)


class Openat2:
    """Lets the kernel resolve.

    Args:
        true_path: The starting folder's true absolute path, by which the kernel names what is
            beneath it.
    """

    name = "openat2"

    def __init__(self, true_path: str) -> None:
        self._prefix = f"{true_path.rstrip('/')}/"
        self._true_path = true_path
        self._walk = ComponentWalk()

    def find(self, folder: int, path: str) -> Found:
        above, _, name = path.rpartition("/")
        if path.startswith("/") or name in ("", ".", ".."):
            return self._walk.find(folder, path)
        try:
            parent = _beneath(folder, above or ".", _FOLDER_HANDLE, BENEATH | NO_MAGIC_LINKS)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EAGAIN):
                # The walk knows how far the name exists, and copes with a tree in motion.
                return self._walk.find(folder, path)
            raise _refused(error, path) from None
        try:
            return self._last(parent, name) or self._walk.find(folder, path)
        except OSError:
            # No /proc here, or the folder's whole name is longer than it tells.
            return self._walk.find(folder, path)
        finally:
            os.close(parent)

    def _last(self, parent: int, name: str) -> Found | None:
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
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return Found(os.dup(parent), (), name, path, None)
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            return None
        return Found(os.dup(parent), (), name, path, status)

    def open_folder(self, folder: int, path: str) -> int:
        _check_canonical(path)
        return _beneath(folder, path, _FOLDER_HANDLE, BENEATH | NO_MAGIC_LINKS | NO_LINKS)


def _check_canonical(path: str) -> None:
    """Refuse ``..`` where no resolver would look at it; opened as it is, it leads outside."""
    if path != "." and any(part in ("", ".", "..") for part in path.split("/")):
        raise OSError(errno.EXDEV, "not a canonical path")


def _beneath(folder: int, path: str, flags: int, resolve: int) -> int:
    """`openat2`, asked again while a rename races a step upwards."""
    for _ in range(_TRIES - 1):
        try:
            return openat2(folder, path, flags, resolve)
        except (BlockingIOError, InterruptedError):
            continue
    return openat2(folder, path, flags, resolve)


def choose_resolver(true_path: str, wanted: Literal["auto", "openat2", "walk"]) -> Resolver:
    """The resolver for a root: the kernel's where it proves itself, else the walk.

    Raises:
        PathBlockedError: The kernel's was demanded and does not work here.
    """
    if wanted != "walk" and _openat2_works():
        return Openat2(true_path)
    if wanted == "openat2":
        raise PathBlockedError("this system has no openat2", hint="Use the resolver walk.")
    return ComponentWalk()


def _openat2_works() -> bool:
    """Whether the call refuses a real link that leads out.

    The kernel's version is no proof: a container's filter may answer in its place.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="filepact-probe-") as outer:
            inner = os.path.join(outer, "in")
            os.mkdir(inner)
            os.symlink("..", os.path.join(inner, "out"))
            folder = os.open(inner, _FOLDER)
            try:
                os.close(openat2(folder, ".", _HANDLE, BENEATH | NO_MAGIC_LINKS))
                os.close(openat2(folder, "out", _HANDLE, BENEATH | NO_MAGIC_LINKS))
            except OSError as error:
                return error.errno == errno.EXDEV
            finally:
                os.close(folder)
    except OSError:
        return False
    return False


def _refused(error: OSError, path: str) -> Exception:
    if error.errno == errno.EXDEV:
        return _outside(path)
    if error.errno == errno.ELOOP:
        return _circle(path)
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return _no_folder(path)
    if error.errno == errno.ENAMETOOLONG:
        return PathBlockedError(f"{path[:100]}: is too long for this system", path=path[:100])
    return ReadFailedError(f"{path}: {os.strerror(error.errno or 0)}", path=path)


def _outside(path: str) -> PathBlockedError:
    return PathBlockedError(
        f"{path}: leads out of the root",
        hint="Use a path inside the root; links may only lead to places inside it.",
        path=path,
    )


def _circle(path: str) -> PathBlockedError:
    return PathBlockedError(
        f"{path}: its links lead in a circle or are too many",
        hint="Use the file's own path.",
        path=path,
    )


def _no_folder(path: str) -> NotFoundError:
    return NotFoundError(
        f"{path}: a part of the path that is used as a folder is none",
        hint="directory_tree shows what is there.",
        path=path,
    )

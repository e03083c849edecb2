"""Names beneath a folder, resolved one part after the other.

This is the resolver for systems whose kernel has no call that does it in one step.  It also finds
out how far a name exists that leads to nothing, and why a name was refused.

Every part is held before it is looked at, so what was looked at is what is used.  A link's target
is taken as the kernel takes it: the parts of the target come before the parts that are left, and
``..`` goes to the folder above the one that was reached.  An absolute link is followed when it
begins with the root's own true path, and from there on beneath the root's handle like any other:
whatever has been put in that place meanwhile is never asked.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque

from filepact.fs.border import Border
from filepact.fs.found import (
    HOLD,
    Found,
    check_canonical,
    circle,
    no_folder,
    outside,
    refused,
    unrest,
)

__all__ = ["FOLDER", "ComponentWalk"]

_LINKS = 40
_TRIES = 16

FOLDER = (HOLD or os.O_RDONLY | os.O_CLOEXEC) | os.O_DIRECTORY | os.O_NOFOLLOW
"""Flags for a folder to start from."""


class ComponentWalk:
    """Opens part after part and follows links itself.

    Args:
        true_path: The starting folder's true absolute path, by which absolute links may name it.
        border: Where the folder ends; None: it is asked of the folder each time.
    """

    name = "walk"

    def __init__(self, true_path: str = "", border: Border | None = None) -> None:
        self._true_path = true_path
        self._border = border

    def find(self, folder: int, path: str) -> Found:
        if path.startswith("/"):
            raise outside(path)
        border = self._border or Border.around(folder)
        for _ in range(_TRIES):
            try:
                return _Walk(folder, self._true_path, border, path).run()
            except OSError as error:
                # A part changed its kind between looking at it and opening it.
                if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
                    raise refused(error, path) from None
        raise unrest(path)

    def open_folder(self, folder: int, path: str) -> int:
        check_canonical(path)
        border = self._border or Border.around(folder)
        here = os.dup(folder)
        try:
            for part in path.split("/"):
                if part != ".":
                    below = os.open(part, FOLDER, dir_fd=here)
                    os.close(here)
                    here = below
                    _check_border(border, here)
        except BaseException:
            os.close(here)
            raise
        return here


class _Walk:
    """The state of one component walk."""

    def __init__(self, folder: int, true_path: str, border: Border, path: str) -> None:
        self.start = folder
        self.true_path = true_path
        self.border = border
        self.path = path
        self.open: list[tuple[int, str]] = []
        self.missing: list[str] = []
        self.leaf: tuple[str, os.stat_result, int] | None = None

    def run(self) -> Found:
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
                raise no_folder(self.path)
            if part in ("", "."):
                continue
            if part == "..":
                self._up()
            elif self.missing:
                self.missing.append(part)
            elif (target := self._down(part)) is not None:
                links += 1
                if links > _LINKS:
                    raise circle(self.path)
                if target.startswith("/"):
                    target = self._from_the_top(target)
                pending.extendleft(reversed(target.split("/")))

    def _here(self) -> int:
        return self.open[-1][0] if self.open else self.start

    def _up(self) -> None:
        if self.missing:
            raise no_folder(self.path)
        if not self.open:
            raise outside(self.path)
        os.close(self.open.pop()[0])

    def _from_the_top(self, target: str) -> str:
        """Begin again at the root, if that is where an absolute link's target begins."""
        root = self.true_path
        if not root or not f"{target}/".startswith(f"{root.rstrip('/')}/"):
            raise outside(self.path)
        while self.open:
            os.close(self.open.pop()[0])
        return target[len(root) :]

    def _down(self, part: str) -> str | None:
        """Take one step; the target when the part is a link."""
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
            self.border.check(handle, status, self.path)
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
        """The same where nothing can be held without being opened."""
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
            self.border.check(below, os.fstat(below), self.path)
        else:
            self.border.check(-1, status, self.path)
            self.leaf = (part, status, -1)
        return None

    def _found(self) -> Found:
        names = [name for _, name in self.open]
        if self.missing:
            *rest, name = self.missing
            path = "/".join([*names, *self.missing])
            return Found(os.dup(self._here()), tuple(rest), name, path, None)
        if self.leaf is not None:
            name, status, handle = self.leaf
            path = "/".join([*names, name])
            return Found(os.dup(self._here()), (), name, path, status, handle)
        status = os.fstat(self._here())
        if not self.open:
            # So that the end is the same: the starting folder as the folder in itself.
            self.open.append((os.dup(self.start), "."))
            names = ["."]
        above = os.dup(self.open[-2][0] if len(self.open) > 1 else self.start)
        handle, name = self.open.pop()
        return Found(above, (), name, "/".join(names), status, handle)


def _check_border(border: Border, folder: int) -> None:
    if not border.encloses(folder, os.fstat(folder)):
        raise OSError(errno.EXDEV, "another file system")

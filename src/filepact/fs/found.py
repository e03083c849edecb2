"""Where a name leads beneath a folder, and in which words it is said that it leads nowhere."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Protocol

from filepact.errors import FilepactError, NotFoundError, PathBlockedError, ReadFailedError

__all__ = [
    "HOLD",
    "Found",
    "Resolver",
    "check_canonical",
    "circle",
    "no_folder",
    "outside",
    "refused",
    "unrest",
]

HOLD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
"""Flags that hold whatever has a name without opening it, so that no driver and no writer of a
pipe sees it; 0 where the system has no such thing."""

_NAMES_NOTHING = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Found:
    """Where a name leads.

    Attributes:
        parent: Descriptor of the deepest folder that exists above it.
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
        """Let go of it; once."""
        os.close(self.parent)
        if self.handle >= 0:
            os.close(self.handle)


class Resolver(Protocol):
    """Follows names beneath a folder."""

    name: str

    def find(self, folder: int, path: str) -> Found:
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


def check_canonical(path: str) -> None:
    """Refuse ``..`` where no resolver would look at it; opened as it is, it leads outside."""
    if path != "." and not _NAMES_NOTHING.isdisjoint(path.split("/")):
        raise OSError(errno.EXDEV, "not a canonical path")


def refused(error: OSError, path: str) -> FilepactError:
    """What the system's refusal to resolve a name means."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return no_folder(path)
    if error.errno == errno.ENAMETOOLONG:
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


def outside(path: str) -> PathBlockedError:
    return PathBlockedError(
        f"{path}: leads out of the root",
        hint="Use a path inside the root; links may only lead to places inside it.",
        path=path,
    )


def circle(path: str) -> PathBlockedError:
    return PathBlockedError(
        f"{path}: its links lead in a circle or are too many",
        hint="Use the file's own path.",
        path=path,
    )


def unrest(path: str) -> PathBlockedError:
    return PathBlockedError(
        f"{path}: folders on the way are being exchanged",
        hint="Try again when the tree is at rest.",
        path=path,
    )


def no_folder(path: str) -> NotFoundError:
    return NotFoundError(
        f"{path}: a part of the path that is used as a folder is none",
        hint="directory_tree shows what is there.",
        path=path,
    )

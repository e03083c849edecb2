"""Links: symbolic ones, which hold a name, and files of several names (hard links)."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.document import content_id
from filepact.errors import FilepactError, WriteFailedError
from filepact.fs.atomic import StagedFile, inode_of, open_expected, token_of
from filepact.fs.attributes import dress_link
from filepact.fs.read import moved, write_failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.attributes import Attributes
    from filepact.domain.document import Revision

__all__ = ["StagedLink", "is_link", "link_target", "make_link", "name_again", "names_of"]

_MOST: Final = 50_000


class StagedLink:
    """A symbolic link that we have made; as `StagedFile`.  Nobody can write into one.

    Args:
        target: The name that it holds.
        inode: Device and inode.
    """

    def __init__(self, target: bytes, inode: tuple[int, int] | None) -> None:
        self.inode = inode
        self._target = target

    def still(self, parent: int, name: str) -> bool:
        """Whether a name still leads to this link."""
        return inode_of(parent, name) == self.inode and link_target(parent, name) == self._target

    unused = still


def make_link(
    parent: int, temp: str, target: bytes, wanted: Attributes | None, shown: str
) -> tuple[StagedLink, tuple[str, ...]]:
    """A symbolic link under its temporary name, and notes; it leads to a name that is not looked at."""
    try:
        os.symlink(target, os.fsencode(temp), dir_fd=parent)
    except PermissionError:
        raise WriteFailedError(
            f"{shown}: the system does not let this process make links",
            hint="Nothing was changed. Ask the person to do this step.",
            path=shown,
        ) from None
    except OSError as error:
        raise write_failed(error, shown) from None
    notes = () if wanted is None else dress_link(parent, temp, wanted)
    return StagedLink(target, inode_of(parent, temp)), notes


def is_link(parent: int, name: str, expected: Revision) -> bool:
    """Whether a name leads to a link in an expected state."""
    target = link_target(parent, name)
    return target is not None and content_id(target) == expected.content


def link_target(parent: int, name: str) -> bytes | None:
    """The name that a link holds; None for what is none."""
    try:
        return os.readlink(os.fsencode(name), dir_fd=parent)
    except OSError:
        return None


# -- files of several names -----------------------------------------------------------------


def names_of(file: str, opened: Callable[[str], int], *, near: str, most: int) -> list[str]:
    """The names of a file below a folder: first those beside it, then from the top down, in the first 50,000 entries.

    Args:
        file: The file, as `file_id` has it; empty for one of which nothing is looked for.
        opened: A descriptor of a folder, by its path; of that which all are below by ``.``.
        near: One of them, or the path that it had.
        most: How many are looked for.
    """
    found: set[str] = set()
    folders, seen, looked = deque([near.rpartition("/")[0], ""]), 0, set[str]()
    inode = int(file.rpartition(":")[2] or "0", 16)
    while file and folders and seen < _MOST and len(found) < most:
        folder = folders.popleft()
        if folder in looked:
            continue
        looked.add(folder)
        with suppress(OSError, FilepactError), ExitStack() as held:
            descriptor = opened(folder or ".")
            held.callback(os.close, descriptor)
            for entry in held.enter_context(os.scandir(descriptor)):
                seen += 1
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.inode() == inode and token_of(entry.name) is None:
                    status = entry.stat(follow_symlinks=False)
                    if f"{status.st_dev:x}:{status.st_ino:x}" == file:
                        found.add(path)
    return [*found]


def name_again(
    parent: int, temp: str, other: tuple[int, str], after: Revision, shown: str
) -> StagedFile:
    """Give a file one more name, which must be free; ``other`` is the folder and the name by which it is found.

    Raises:
        StaleFileError: It is in another state, or was written since.
        WriteFailedError: The system refused.
    """
    folder, name = other
    file = open_expected(folder, name, after, shown)
    try:
        status, was = os.fstat(file), after.attributes
        now = (status.st_uid, status.st_gid, status.st_mtime_ns)
        if was is None or now != (was.owner, was.group, was.modified):
            raise moved(shown)
        os.link(name, temp, src_dir_fd=folder, dst_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise write_failed(error, shown) from None
    finally:
        os.close(file)
    return StagedFile(status, after.content)

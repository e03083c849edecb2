"""What a file has besides its bytes, carried over to the file that takes its place."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["copy_metadata"]

# Rights that a program file holds belong to the code that was reviewed for them, and access
# labels of a security module are set by its own policy for new files.
_NOT_COPIED = ("security.",)


def copy_metadata(old: int, new: int) -> tuple[str, ...]:
    """Give a new file the owner, extended attributes and access lists of an old one.

    Args:
        old: Descriptor of the file that is going to be replaced.
        new: Descriptor of the one that replaces it.

    Returns:
        Notes on what could not be kept.
    """
    notes: list[str] = []
    was, now = os.fstat(old), os.fstat(new)
    if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
        try:
            os.fchown(new, was.st_uid, was.st_gid)
        except OSError:
            notes.append("the file's owner or group could not be kept")
    if was.st_nlink > 1:
        notes.append(
            f"the file had {was.st_nlink} names (hard links); the others keep the old text"
        )
    if not hasattr(os, "listxattr"):
        return tuple(notes)
    names = []
    with suppress(OSError):
        names = os.listxattr(old)
    for name in names:
        if name.startswith(_NOT_COPIED):
            continue
        try:
            os.setxattr(new, name, os.getxattr(old, name))
        except OSError:
            notes.append(f"the extended attribute {name} could not be kept")
    return tuple(notes)

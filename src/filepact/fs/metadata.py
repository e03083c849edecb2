"""What a file has besides its bytes, carried over to the file that takes its place."""

from __future__ import annotations

import errno
import os

__all__ = ["copy_metadata"]

# Rights that a program file holds belong to the code that was reviewed for them, and access
# labels of a security module are set by its own policy for new files.
_NOT_COPIED = ("security.",)

# File systems that have no such attributes have nothing to lose.
_WITHOUT = (errno.ENOTSUP, errno.ENOSYS)


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
    if hasattr(os, "listxattr"):
        notes += _copy_attributes(old, new)
    return tuple(notes)


def _copy_attributes(old: int, new: int) -> list[str]:
    """Copy the extended attributes, access lists among them, and remove inherited ones."""
    notes: list[str] = []
    try:
        wanted = {name for name in os.listxattr(old) if not name.startswith(_NOT_COPIED)}
        inherited = {name for name in os.listxattr(new) if not name.startswith(_NOT_COPIED)}
    except OSError as error:
        if error.errno in _WITHOUT:
            return notes
        return ["the file's extended attributes and access list could not be read and kept"]
    # A folder's default list would let people read the new file who could not read the old one.
    for name in sorted(inherited - wanted):
        try:
            os.removexattr(new, name)
        except OSError:
            notes.append(f"the new file has the extended attribute {name}, the old one had not")
    for name in sorted(wanted):
        try:
            os.setxattr(new, name, os.getxattr(old, name))
        except OSError:
            notes.append(f"the extended attribute {name} could not be kept")
    return notes

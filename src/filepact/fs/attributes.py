"""Reads what a file or folder has besides its bytes and mode, and gives it to another, never with more rights."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.domain.attributes import (
    ACCESS_LIST,
    DEFAULT_LIST,
    Attributes,
    limited,
    list_closed_to_group,
    list_with_mode,
    without_set_id,
)
from filepact.domain.document import Revision
from filepact.fs.kernel import copy_list, getxattr, held, listxattr, removexattr, setxattr
from filepact.fs.resolve import HOLD

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "SEVERAL_NAMES",
    "attributes_of_link",
    "dress",
    "dress_folder",
    "dress_like",
    "dress_link",
    "file_id",
    "folder_state",
    "not_kept",
    "open_closed",
    "read_attributes",
    "set_time",
]

_LARGEST: Final = 1 << 16
"""Bytes of the extended attributes of one file that are kept."""

_ANY: Final = 1 << 62

_WITHOUT: Final = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP})
"""What is answered where there are no such attributes, so that nothing is lost."""

_LISTS: Final = (ACCESS_LIST, DEFAULT_LIST)
_LEFT_ALONE: Final = (
    *("security.selinux", "security.SMACK64", "security.apparmor", "security.ima", "security.evm"),
    *("user.overlay.", "trusted.overlay."),
)
"""Labels of security modules are set by their own policy for new files; a layer makes notes for itself."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

SEVERAL_NAMES: Final = "names (hard links)"
"""Stands in the note that a name gets a file of its own."""


def read_attributes(
    descriptor: int, status: os.stat_result, *, limit: int = _LARGEST
) -> Attributes:
    """The attributes of an open file or folder, as far as this process may see them.

    Args:
        descriptor: The file; no bytes of it are read.
        status: What the system says of it.
        limit: Most bytes of extended attributes; what is over it is named.
    """
    names: list[str] = []
    omitted: list[str] = []
    try:
        names = listxattr(descriptor)
    except OSError as error:
        if error.errno not in _WITHOUT:
            omitted.append(ACCESS_LIST)  # There may be one.
    linked = file_id(status) if status.st_nlink > 1 else ""
    if not names and not omitted:
        return Attributes(status.st_uid, status.st_gid, modified=status.st_mtime_ns, linked=linked)
    extended: list[tuple[str, bytes]] = []
    # Rights come first: what is left out for its size is a note of some program.
    for name in sorted(filter(_is_kept, names), key=lambda one: (one.startswith("user."), one)):
        try:
            value = getxattr(descriptor, name)
        except OSError as error:
            if error.errno != errno.ENODATA and name == ACCESS_LIST:
                omitted.append(name)
            continue
        if len(value) > limit:
            omitted.append(name)
        else:
            limit -= len(value)
            kept = list_with_mode(value, 0) if name == ACCESS_LIST else value
            extended.append((name, kept))
    return Attributes(
        status.st_uid,
        status.st_gid,
        tuple(sorted(extended)),
        tuple(sorted(omitted)),
        status.st_mtime_ns,
        linked,
    )


def file_id(status: os.stat_result) -> str:
    """An id of a regular file with several names (hard links); empty for any other entry."""
    several = status.st_nlink > 1 and stat.S_ISREG(status.st_mode)
    return f"{status.st_dev:x}:{status.st_ino:x}" if several else ""


def attributes_of_link(status: os.stat_result) -> Attributes:
    """The attributes of a symbolic link."""
    return Attributes(status.st_uid, status.st_gid, modified=status.st_mtime_ns)


def not_kept(folder: int) -> tuple[str, ...]:
    """The attributes that the file system of a held folder, or this process, cannot restore; nothing is tried."""
    told: list[str] = []
    for name, called in (("user.filepact", "extended attributes"), (ACCESS_LIST, "access lists")):
        try:
            getxattr(held(folder), name)
        except OSError as error:
            if error.errno in _WITHOUT:
                told.append(called)
    return (*told, *(["the owner"] if os.geteuid() else []))


def folder_state(parent: int, name: str) -> Revision | None:
    """The state of a folder in another, no link followed; None where none is, or another file system begins."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        # It may not be looked into, so nobody knows what else it has.
        with suppress(OSError):
            here = name == "."
            status = os.fstat(parent) if here else os.lstat(name, dir_fd=parent)
            if stat.S_ISDIR(status.st_mode):
                return Revision.folder(stat.S_IMODE(status.st_mode))
        return None
    except OSError:
        return None
    try:
        status = os.fstat(folder)
        if status.st_dev != os.fstat(parent).st_dev:
            return None
        return Revision.folder(stat.S_IMODE(status.st_mode), read_attributes(folder, status))
    finally:
        os.close(folder)


def _is_kept(name: str) -> bool:
    return not name.startswith(_LEFT_ALONE)


def dress_like(old: int, new: int, expected: Revision, after: Revision) -> tuple[str, ...]:
    """Give a new file what the one has that it replaces, but for what the change is to change.

    Args:
        old: The file that is going to be replaced.
        new: The one that replaces it; closed to all others.
        expected: The state of the old one from which the change was made.
        after: The state of the new one.

    Returns:
        Notes on what could not be kept.
    """
    status = os.fstat(old)
    wanted = read_attributes(old, status, limit=_ANY)
    same = expected.content == after.content
    if not same:
        wanted = wanted.of_other_bytes
    if after.attributes is not None and (
        expected.attributes is None or after.attributes != expected.attributes
    ):
        wanted = wanted.changed(expected.attributes, after.attributes)
    given = None if after.attributes is None else after.attributes.modified
    modified = status.st_mtime_ns if same else given
    if wanted.modified != modified:
        wanted = wanted.written(modified)
    notes = dress(new, after.mode, wanted)
    if not copy_list(old, new):
        notes = (*notes, f"its {_called(ACCESS_LIST)} could not be set")
    if status.st_nlink > 1:
        linked = f"the file had {status.st_nlink} {SEVERAL_NAMES}; the others keep "
        notes = (f"{linked}{'what they had' if same else 'the old text'}", *notes)
    return notes


def dress(descriptor: int, mode: int, wanted: Attributes | None) -> tuple[str, ...]:
    """Give an open file or folder of ours, which nobody else can use yet, a mode and attributes.

    What the system refuses is named, and takes away what it was to limit: nobody gets more rights than the file
    gave that it stands for.

    Args:
        descriptor: The file, closed to all others.
        mode: Its mode, with all bits.
        wanted: What it is to have; None where nobody knows.

    Returns:
        Notes on what could not be given.
    """
    status = os.fstat(descriptor)
    folder = stat.S_ISDIR(status.st_mode)
    if wanted is None:
        limit = without_set_id(mode, user=False, group=folder, folder=folder)
        os.fchmod(descriptor, limit)
        if limit == mode:
            return ()
        return ("it does not set user or group ids any more: nobody knows whose they were",)
    notes: list[str] = []
    now = status
    if (status.st_uid, status.st_gid) != (wanted.owner, wanted.group):
        notes, now = _give_owner(
            partial(os.fchown, descriptor), partial(os.fstat, descriptor), wanted
        )
    same_user, same_group = now.st_uid == wanted.owner, now.st_gid == wanted.group
    limit = without_set_id(mode, user=same_user, group=same_group, folder=folder)
    extended = dict(wanted.extended)
    entries = extended.get(ACCESS_LIST)
    if entries is not None:
        # Before the list, whose entries say the rest.
        os.fchmod(descriptor, limit & 0o700)
        entries = entries if same_group else list_closed_to_group(entries, mode)
        extended[ACCESS_LIST] = list_with_mode(entries, mode)
    missing = _give_extended(descriptor, extended)
    if entries is not None and ACCESS_LIST in missing:
        limit &= limited(mode, entries) | ~0o777
    elif entries is not None:
        same_group = True  # The bits of the group are what is left to all that are named.
    if not same_group or ACCESS_LIST in wanted.omitted:
        # Who is in this group, or was named in a list that nobody could read, gets what everybody has.
        limit = limit & ~0o70 | (limit >> 3 & limit & 0o7) << 3
    os.fchmod(descriptor, limit)
    # Of the bits that set ids the system may drop some.
    found = stat.S_IMODE(os.fstat(descriptor).st_mode) if limit & 0o7000 else limit
    if found != mode:
        notes.append(f"its mode is {found:04o} instead of {mode:04o}")
    notes += [f"its {_called(name)} could not be set" for name in missing]
    if wanted.omitted:
        names = ", ".join(map(_called, wanted.omitted))
        notes.append(f"not all of its extended attributes could be kept: {names}")
    set_time(descriptor, wanted.modified)
    return tuple(notes)


def dress_link(parent: int, name: str, wanted: Attributes) -> tuple[str, ...]:
    """Give a symbolic link of ours its owner, its group and its time; notes as of `dress`."""
    look = partial(os.stat, name, dir_fd=parent, follow_symlinks=False)
    give = partial(os.chown, name, dir_fd=parent, follow_symlinks=False)
    notes: list[str] = []
    with suppress(OSError, NotImplementedError):
        status = look()
        if (status.st_uid, status.st_gid) != (wanted.owner, wanted.group):
            notes, _ = _give_owner(give, look, wanted)
        if wanted.modified is not None:
            times = status.st_atime_ns, wanted.modified
            os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
    return tuple(notes)


def dress_folder(folder: int, state: Revision) -> tuple[str, ...]:
    """Give an open folder the mode and the attributes of a state; notes as of `dress`."""
    mode, status = state.mode & 0o7777, os.fstat(folder)
    wanted = state.attributes
    if wanted and Revision.folder(status.st_mode, read_attributes(folder, status)) == state:
        set_time(folder, wanted.modified)
        return ()
    if wanted is None:
        # What a folder inherits from the one above it stays.
        os.fchmod(folder, mode & 0o777 | status.st_mode & 0o7000)
        return ()
    return dress(folder, mode, wanted)


def open_closed(parent: int, name: str) -> int:
    """Open a folder in another, no link followed, also one of this user's that is closed to everybody.

    Raises:
        OSError: It is none, or another user's.
    """
    with suppress(PermissionError):
        return os.open(name, _FOLDER, dir_fd=parent)
    handle = os.dup(parent) if name == "." else os.open(name, HOLD, dir_fd=parent)
    with ExitStack() as then:
        then.callback(os.close, handle)
        mode, place = stat.S_IMODE(os.fstat(handle).st_mode), f"/proc/self/fd/{handle}"
        os.chmod(place, mode | 0o700)
        then.callback(os.chmod, place, mode)
        return os.open(place, _FOLDER & ~os.O_NOFOLLOW)


def set_time(descriptor: int, modified: int | None) -> None:
    """Give an open file or folder the time of its last change, if it is known; nothing depends on it."""
    if modified is None:
        return
    with suppress(OSError):
        os.utime(descriptor, ns=(os.fstat(descriptor).st_atime_ns, modified))


def _give_owner(
    give: Callable[[int, int], None], look: Callable[[], os.stat_result], wanted: Attributes
) -> tuple[list[str], os.stat_result]:
    """Give an owner and a group; what could not be given, and what the system says of the file then."""
    # A group that it is in may be given by anybody, an owner by root alone.
    for owner in dict.fromkeys((wanted.owner, -1)):
        try:
            give(owner, wanted.group)
        except OSError:
            continue
        break
    now = look()
    told: list[str] = []
    if now.st_uid != wanted.owner:
        told.append(f"its owner could not be set ({wanted.owner}, now {now.st_uid})")
    if now.st_gid != wanted.group:
        told.append(f"its group could not be set ({wanted.group}, now {now.st_gid})")
    return told, now


def _give_extended(descriptor: int, will_be: dict[str, bytes]) -> list[str]:
    """Make the extended attributes those that are wanted; the names of those that could not be set."""
    missing: list[str] = []
    try:
        names = listxattr(descriptor)
    except OSError:
        return [*will_be]
    if not (names or will_be):
        return missing
    there = {*filter(_is_kept, names)}
    # A folder's default list would let people read the new file who could not read the old one.
    for name in sorted(there - will_be.keys()):
        try:
            removexattr(descriptor, name)
        except OSError as error:
            if error.errno != errno.ENODATA:
                missing.append(name)
    for name, value in will_be.items():
        try:
            if name not in there or getxattr(descriptor, name) != value:
                setxattr(descriptor, name, value)
        except OSError:
            missing.append(name)
    return missing


def _called(name: str) -> str:
    if name in _LISTS:
        return "access list" if name == ACCESS_LIST else "default access list"
    return f"extended attribute {name}"

"""Writes a new text over an old one in the same file, where no other file may take its place.

So are written a file that is mounted by itself, whose name is busy; one whose owner or group this process could
not give to another file; one with several names (hard links), which shall go on being one file; and one in a folder
that takes no other file.

A crash in between leaves a file of which a part is old and a part new.  The journal has both texts by then, and the
new one lies beside the file under a temporary name, durably, from before the first byte is written until the last one
is on the disk: recovery knows by that what the file is, and gives it its old text back.  In a folder that takes no
other file, the bytes alone tell.

Here too is how the names of such a file are found, and how one that went is joined to it again; and how a file of
one name that is removed gets another in the state folder, by which the very same file comes back.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.attributes import Attributes
from filepact.domain.document import LINK, content_id
from filepact.errors import FilepactError, OutcomeUnknownError, WriteFailedError
from filepact.fs.atomic import (
    LARGEST,
    DisplacedFile,
    Outcome,
    StagedFile,
    StagedLink,
    open_expected,
    sync,
)
from filepact.fs.attributes import dress, file_id, read_attributes
from filepact.fs.kernel import full_sync, reserve
from filepact.fs.path_form import token_of
from filepact.fs.read import digest, is_link, moved, write_failed
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.document import Revision, WorkspacePath

__all__ = [
    "JOINED",
    "MOUNTED",
    "NOT_OURS",
    "SHUT",
    "USUAL",
    "LinkName",
    "Overwrite",
    "Staging",
    "WriteResult",
    "all_names",
    "check",
    "check_writable",
    "is_torn",
    "keep_removed",
    "may_write",
    "name_again",
    "names_of",
    "removed_place",
    "same_owner",
    "tidy_removed",
    "write_over",
    "write_protected",
]

_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_MOST: Final = 50_000
"""Entries of a folder in use that are looked at for the names of a file."""

_SECTOR: Final = 512
"""Bytes that reach a disk together or not at all."""


_REMOVED: Final = "removed"
_MOST_KEPT: Final = 1 << 30
_MOST_FILES: Final = 10_000
"""Bytes that removed files may take, and how many may be kept; what went first goes first."""

_FREE: Final = 512 << 20
"""Bytes that stay free on a disk on which a removed file is kept."""

JOINED: Final = "it has other names (hard links)"
MOUNTED: Final = "it is mounted there by itself"
NOT_OURS: Final = "its owner or group could not be given to another file"
SHUT: Final = "no other file can be put into its folder"


class Staging(NamedTuple):
    """How a file is replaced.

    Attributes:
        early: Whether its bytes are looked at when the new ones are prepared already, so that nothing of a change
            of several files is done if one is in another state.
        joins: Whether its other names (hard links) may get the new bytes with it.
        why: A reason for which it is written in place, wherever these are; empty for none.
    """

    early: bool = True
    joins: bool = True
    why: str = ""


USUAL: Final = Staging()


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a change that was settled.

    Attributes:
        outcome: ``applied_not_durable``: the file is as wanted, but the system did not confirm
            that it would survive a power cut.
        displaced: The file that was replaced or removed; to be closed by the caller.
        notes: What a person should know.
    """

    outcome: Outcome
    displaced: DisplacedFile | None = None
    notes: tuple[str, ...] = ()

    def close(self) -> None:
        """Close the file that was replaced."""
        if self.displaced is not None:
            self.displaced.close()


class Overwrite:
    """How a file is written in place, if it is.

    Args:
        after: The state that it is in then.
        data: What it holds then.
        why: The reason; empty where another file takes its place.
    """

    def __init__(self, after: Revision, data: bytes, why: str) -> None:
        self.after = after
        self.data = data
        self.why = why


def names_of(
    file: str, opened: Callable[[str], int], *, near: str, most: int, ours: bool = False
) -> list[str]:
    """The names of a file below a folder: first those beside it, then from the top down, in the first 50,000 entries.

    Args:
        file: The file, as `file_id` has it; empty for one of which nothing is looked for.
        opened: A descriptor of a folder, by its path; of that which all are below by ``.``.
        near: One of them, or the path that it had.
        most: How many are looked for.
        ours: Whether temporary names count, which a change gives it for a moment.
    """
    found: set[str] = set()
    folders, seen, looked = deque([near.rpartition("/")[0], ""]), 0, set[str]()
    inode = int(file.rpartition(":")[2] or "0", 16)
    while inode and folders and seen < _MOST and len(found) < most:
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
                elif entry.inode() == inode and (ours or token_of(entry.name) is None):
                    status = entry.stat(follow_symlinks=False)
                    if f"{status.st_dev:x}:{status.st_ino:x}" == file:
                        found.add(path)
    return [*found]


def all_names(status: os.stat_result, opened: Callable[[str], int], near: str) -> list[str]:
    """All names of a file of several, but for temporary ones; none where some are not found.  Arguments as for `names_of`."""
    found = names_of(file_id(status), opened, near=near, most=status.st_nlink, ours=True)
    named = [one for one in found if token_of(one.rpartition("/")[2]) is None]
    return named if len(found) == status.st_nlink else []


class LinkName(StagedFile):
    """A temporary name of a file that has others: whatever it holds by now, nothing is lost with this one."""

    __slots__ = ()

    def _is_at(self, parent: int, name: str, *, free: bool) -> bool:
        with suppress(OSError):
            status = os.lstat(name, dir_fd=parent)
            same = (status.st_dev, status.st_ino) == self.inode
            return same and (status.st_nlink > 1 or not free)
        return False


def name_again(
    parent: int, temp: str, other: tuple[int, str], after: Revision, shown: str
) -> StagedFile:
    """Give a file one more name, which must be free; ``other`` is the folder and the name by which it is found.

    Without a folder it is one that `keep_removed` has kept, and must have all else that it had as well.

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
        if folder < 0 and (status.st_nlink > 1 or read_attributes(file, status) != was):
            raise moved(shown)
        os.link(name, temp, src_dir_fd=folder, dst_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise write_failed(error, shown) from None
    finally:
        os.close(file)
    return StagedFile(status, after.content) if folder < 0 else LinkName(status, after.content)


def removed_place(state: str, path: WorkspacePath, content: str, size: int = -1) -> str:
    """Where a file is that was kept when it was removed, empty for nowhere; without a size, how its place begins."""
    name = content_id("\0".join(path).encode("utf-8", "surrogateescape"))[:16]
    place = os.path.join(state, _REMOVED, f"{content}-{name}-")
    if size < 0:
        return place
    return f"{place}{size:x}" if os.path.lexists(f"{place}{size:x}") else ""


def keep_removed(parent: int, temp: str, place: str) -> bool:
    """Rename a removed file to where it is kept, as `removed_place` has it without a size.

    Returns:
        False, and nothing is done, where it has other names, or the disk is another one or nearly full.
    """
    with suppress(OSError):
        status, disk = os.lstat(temp, dir_fd=parent), os.fstatvfs(parent)
        alone = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if alone and disk.f_bavail * disk.f_frsize >= _FREE:
            with suppress(FileExistsError):
                os.mkdir(os.path.dirname(place), 0o700)
            os.rename(temp, f"{place}{status.st_size:x}", src_dir_fd=parent)
            return True
    return False


def tidy_removed(state: str, oldest: float | None = None) -> None:
    """Give up removed files where they are too many; with a time also what went before it, and all that came back."""
    with suppress(OSError, ValueError):
        folder = os.path.join(state, _REMOVED)
        names = os.listdir(folder)
        size = sum(int(name.rpartition("-")[2], 16) for name in names)
        if oldest is None and size <= _MOST_KEPT and len(names) <= _MOST_FILES:
            return
        found = [(os.lstat(one), one) for one in (os.path.join(folder, name) for name in names)]
        left = _MOST_KEPT * 3 // 4
        for number, (status, one) in enumerate(sorted(found, key=lambda x: -x[0].st_ctime_ns)):
            left -= status.st_size
            many = left < 0 or number >= _MOST_FILES * 3 // 4
            if many or status.st_nlink > 1 or status.st_ctime < (oldest or 0.0):
                os.unlink(one)


def may_write(parent: int, name: str) -> bool:
    """Whether this process could open a file for writing, as any other program has to, or put one into a folder."""
    how = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    if os.access in os.supports_follow_symlinks:
        how["follow_symlinks"] = False
    return os.access(name, os.W_OK, dir_fd=parent, **how)


def write_protected(shown: str) -> WriteFailedError:
    """The error that nobody may write to a file."""
    return WriteFailedError(
        f"{shown}: the file is write-protected for everybody",
        hint="Ask the person to remove the protection (chmod u+w) if it may be changed.",
        path=shown,
    )


def check(parent: int, name: str, expected: Revision, shown: str) -> None:
    """Refuse a file or link that is in another state than is expected."""
    if expected.mode != LINK:
        os.close(open_expected(parent, name, expected, shown))
    elif not is_link(parent, name, expected):
        raise moved(shown)


def check_writable(
    parent: int, name: str, *, expected: Revision, after: Revision | None, shown: str
) -> None:
    """Refuse a file that no other program of this user could write to either.

    A change of the rights alone needs none to the bytes, and one that takes a protection away has its owner's.

    Raises:
        WriteFailedError: It is write-protected.
    """
    if after is not None and after.content == expected.content:
        return
    lifted = after is not None and after.mode & 0o200 and not expected.mode & 0o200
    if expected.is_protected and not lifted:
        raise write_protected(shown)
    if may_write(parent, name):
        return
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return  # What somebody did is found where its bytes are looked at.
    if not stat.S_ISREG(status.st_mode) or (lifted and status.st_uid == os.geteuid()):
        return
    try:
        os.close(os.open(name, os.O_WRONLY | _SAFE, dir_fd=parent))
    except PermissionError as error:
        if error.errno == errno.EPERM:
            raise write_failed(error, shown) from None
        raise WriteFailedError(
            f"{shown}: the system does not let this user write to the file (its mode is "
            f"{stat.S_IMODE(status.st_mode):04o}, its owner {status.st_uid}:{status.st_gid})",
            hint="Ask the person for the right to write to it, or put what is new into another file.",
            path=shown,
            errno=error.errno,
        ) from None
    except OSError as error:
        raise write_failed(error, shown) from None


def same_owner(
    parent: int, name: str, new: StagedFile | StagedLink | None, expected: Revision, after: Revision
) -> bool:
    """Whether a file that is to replace another has the owner and group that it is to have."""
    was, will_be = expected.attributes, after.attributes
    if was is None:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except OSError:
            return True
        was = Attributes(status.st_uid, status.st_gid)
    if will_be and (was.owner, was.group) != (will_be.owner, will_be.group):
        return True  # That is what is changed; what could not be done of it is told.
    return not isinstance(new, StagedFile) or new.owner == (was.owner, was.group)


def write_over(
    parent: int, name: str, new: bytes, *, expected: Revision, after: Revision, shown: str
) -> tuple[str, ...]:
    """Give a file another text, which lies beside it if that can be.

    Args:
        parent: Descriptor of its folder.
        name: The file's name.
        new: The text.
        expected: The state that it must be in.
        after: The state that it is in then.
        shown: How the file is called in messages.

    Returns:
        Notes on what could not be given of its rights and attributes.

    Raises:
        StaleFileError: It is in another state; it was left as it is.
        WriteFailedError: The system refused; it holds what it held.
        OutcomeUnknownError: The system refused in between, and recovery has to bring back the old text.
    """
    try:
        file = os.open(name, os.O_RDWR | _SAFE, dir_fd=parent)
    except OSError as error:
        raise moved(shown) if error.errno == errno.ENOENT else write_failed(error, shown) from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise moved(shown)
        mode = stat.S_IMODE(status.st_mode)
        there = mode == after.mode and digest(file) == after.content
        if there and (after.content, after.mode) != (expected.content, expected.mode):
            return ()  # By another of its names it has the new text, or the rights, already.
        old = os.pread(file, LARGEST + 1, 0)
        if content_id(old) != expected.content or mode != expected.mode:
            raise moved(shown)
        wanted = read_attributes(file, status)
        if after.attributes is not None:
            wanted = wanted.changed(expected.attributes, after.attributes)
        if new != old:
            wanted = replace(wanted, modified=None)  # It is written now.
        # Else a power cut could take the sign and leave a part of the text.
        sync(parent)
        if new != old:
            _exchange_bytes(file, old, new, shown)
        same = wanted == read_attributes(file, status)
        if same and stat.S_IMODE(os.fstat(file).st_mode) == after.mode:
            return ()
        notes = dress(file, after.mode, wanted)
        full_sync(file)
    except OSError as error:
        raise write_failed(error, shown) from None
    finally:
        os.close(file)
    return notes


def _exchange_bytes(file: int, old: bytes, new: bytes, shown: str) -> None:
    """Put one text in the place of another, or leave the old one."""
    try:
        # All the room is taken first, while every byte is there.
        if len(new) > len(old):
            reserve(file, len(old), len(new) - len(old))
        _write(file, new)
    except OSError as error:
        try:
            _write(file, old)
        except OSError:
            raise OutcomeUnknownError(
                f"{shown}: {os.strerror(error.errno or 0).lower()}, while it was written in place, and its old text could not be "
                "written either",
                hint="The journal has the old text, and the next call writes it back. Read the file then, before anything else.",
                path=shown,
            ) from None
        raise write_failed(error, shown) from None


def _write(file: int, data: bytes) -> None:
    at = 0
    while at < len(data):
        at += os.pwrite(file, data[at:], at)
    os.ftruncate(file, len(data))
    full_sync(file)


def is_torn(now: bytes, old: bytes, new: bytes) -> bool:
    """Whether bytes are what a crash leaves of a text that was being written over another: of neither anything else."""
    longest = max(len(old), len(new))
    if len(now) not in (len(old), len(new), longest):
        return False
    kinds = [text.ljust(longest, b"\0")[: len(now)] for text in (old, new, new + old[len(new) :])]
    return all(
        any(now[at : at + _SECTOR] == kind[at : at + _SECTOR] for kind in kinds)
        for at in range(0, len(now), _SECTOR)
    )

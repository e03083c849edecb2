"""The parts of a change of one file: a text under a temporary name, and names that are exchanged or moved.

Every step leaves the old name, the new one or both; none leaves neither.  Bytes that are neither
ours nor the expected ones are never unlinked.  When they cannot go back either, they are put beside
the file under a name that people see.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.document import content_id
from filepact.domain.names import key
from filepact.errors import WriteFailedError
from filepact.fs.attributes import dress, dress_like, dress_link
from filepact.fs.kernel import EXCHANGE, NOREPLACE, full_sync, names_in, renameat2
from filepact.fs.path_form import LONGEST_PART
from filepact.fs.read import (
    LARGEST,
    NO_EXCHANGE,
    blocks,
    digest,
    inode_of,
    link_target,
    made_meanwhile,
    moved,
    open_named,
    saved_twice,
    write_failed,
)
from filepact.values import dataclass

if TYPE_CHECKING:
    from filepact.domain.attributes import Attributes
    from filepact.domain.document import Revision

__all__ = [
    "LARGEST",
    "UNFINISHED",
    "DisplacedFile",
    "OldFile",
    "Outcome",
    "StagedContent",
    "StagedFile",
    "StagedLink",
    "discard",
    "exchange",
    "give_back",
    "make_link",
    "move_entry",
    "move_out",
    "open_expected",
    "put_aside",
    "rename_free",
    "rename_new",
    "reopen",
    "sync",
    "write_temp",
    "write_unnamed",
]


class DisplacedFile:
    """A file that was replaced or removed: it has lost its name and is kept open.

    Args:
        descriptor: Open for reading.
        content: SHA-256 of what it holds, if nobody writes to it.

    Attributes:
        kept: Whether it has a name in the state folder still, where nobody looks for what is written to it.
    """

    kept = False

    def __init__(self, descriptor: int, content: str) -> None:
        self._descriptor = descriptor
        self._content = content

    def status(self) -> os.stat_result:
        """Its `os.stat_result`."""
        return os.fstat(self._descriptor)

    def is_as_it_was(self, size: int) -> bool:
        """Whether its bytes, which are so many by its status, are unchanged."""
        return digest(self._descriptor, size) == self._content

    def late_write(self) -> bytes | None:
        """The bytes that a program wrote to the old file after it was replaced.

        Returns:
            All it holds now; None when it is as it was, has a name yet, or cannot be read any more.
        """
        # All bytes, every time: a write within one tick of the clock leaves the times alone.
        try:
            now = os.fstat(self._descriptor)
            if now.st_nlink and not self.kept:
                return None
            data = b"".join(blocks(self._descriptor, now.st_size))
        except OSError:
            return None
        return None if content_id(data) == self._content else data

    def known_as(self, data: bytes) -> None:
        """Note what it holds now, so that `late_write` tells of later writes only."""
        self._content = content_id(data)

    def has_writer(self) -> bool:
        """Whether a program has it open for writing; False where the system does not tell.

        It is not asked where the file still has a name, and so is not lost.
        """
        try:
            lost = self.kept or not os.fstat(self._descriptor).st_nlink
            return lost and _has_writer(self._descriptor)
        except OSError:
            return False

    def close(self) -> None:
        """Close it; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that we have written, in the state in which we left it.

    Attributes:
        status: What the system said of it when it was written.
        content: SHA-256 of what we wrote.
    """

    status: os.stat_result
    content: str

    @property
    def inode(self) -> tuple[int, int]:
        """Device and inode."""
        return self.status.st_dev, self.status.st_ino

    @property
    def owner(self) -> tuple[int, int]:
        """User and group."""
        return self.status.st_uid, self.status.st_gid

    def still(self, parent: int, name: str) -> bool:
        """Whether a name still leads to this file, unchanged.

        The time counts too: a program that has just emptied the file is about to write to it.
        """
        return self._is_at(parent, name, free=False)

    def unused(self, parent: int, name: str) -> bool:
        """Whether a name still leads to this file, unchanged, and no program has it open for writing."""
        return self._is_at(parent, name, free=True)

    def _is_at(self, parent: int, name: str, *, free: bool) -> bool:
        try:
            descriptor = open_named(parent, name)
        except OSError:
            return False
        try:
            # First: whoever has let go of it by now has written what is looked at then.
            if free and _has_writer(descriptor):
                return False
            now = os.fstat(descriptor)
            same = (now.st_dev, now.st_ino) == self.inode
            same = same and now.st_mtime_ns == self.status.st_mtime_ns
            return same and digest(descriptor, now.st_size) == self.content
        except OSError:
            return False
        finally:
            os.close(descriptor)


def _has_writer(descriptor: int) -> bool:
    """Whether a program has an open file open for writing; False where the system does not tell.

    A lease for reading is refused then.  Whoever opens the file while we have the lease has us signalled, by a signal that
    does nothing.
    """
    try:
        import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

        fcntl.fcntl(descriptor, getattr(fcntl, "F_SETSIG", -1), signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except (ImportError, AttributeError, OSError):
        return False
    return False


_SAFE_OPEN = (
    os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC if hasattr(os, "O_NOFOLLOW") else 0
)

UNFINISHED: Final = 0o600
"""The rights of a text that replaces another and is still being written; it is given its own when all of it is there."""

OldFile = tuple[int, "Revision"]
"""The descriptor of a file that is going to be replaced, and the state that it is expected to be in."""

Outcome = Literal["applied", "applied_not_durable"]
"""``applied_not_durable``: as wanted, but the system did not confirm that it would survive a power
cut."""


# -- links ----------------------------------------------------------------------------------


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


# -- states ----------------------------------------------------------------------------------


def open_expected(
    parent: int, name: str, expected: Revision, shown: str, *, whole: bool = True
) -> int:
    """Open the target, if it is a regular file in the expected state; ``whole`` looks at its bytes."""
    try:
        old = open_named(parent, name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
            raise moved(shown) from None
        raise write_failed(error, shown) from None
    try:
        status = os.fstat(old)
        same = stat.S_IMODE(status.st_mode) == expected.mode
        same = same and (not whole or digest(old, status.st_size) == expected.content)
    except OSError as error:
        os.close(old)
        raise write_failed(error, shown) from None
    if not same:
        os.close(old)
        raise moved(shown)
    return old


# -- steps ----------------------------------------------------------------------------------


class StagedContent:
    """A new text that is on the disk and has no name yet, so that a crash leaves nothing of it.

    Args:
        descriptor: The file.
        data: What it holds.
        content: SHA-256 of that.
        notes: What of the old file could not be kept.

    Attributes:
        like: Device and inode of the old file, where it has all else of one that was held; else None.
    """

    like: tuple[int, int] | None = None

    def __init__(self, descriptor: int, data: bytes, content: str, notes: tuple[str, ...]) -> None:
        self.descriptor = descriptor
        self.data = data
        self.content = content
        self.notes = notes

    def give_name(self, parent: int, temp: str, shown: str) -> StagedFile | None:
        """Give it a temporary name, which must be free, and close it.

        Returns:
            How it was left; None where the system cannot do it, and it is still open.

        Raises:
            WriteFailedError: The name is taken, by what is not ours to remove.
        """
        try:
            os.link(f"/proc/self/fd/{self.descriptor}", temp, dst_dir_fd=parent)
            left = StagedFile(os.fstat(self.descriptor), self.content)
        except FileExistsError as error:
            raise write_failed(error, shown) from None
        except OSError:
            return None
        self.close()  # Whoever has it open for writing from now on is somebody else.
        return left

    def close(self) -> None:
        """Close it, and remove it if it has no name; may be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def write_unnamed(
    parent: int, data: bytes, *, after: Revision, like: OldFile | None
) -> StagedContent | None:
    """Write a new text without a name, as `write_temp` does with one.

    Returns:
        None, and nothing is left, where the system cannot do it.
    """
    flags = getattr(os, "O_TMPFILE", 0)
    if not flags:
        return None
    try:
        rights = _rights_at_first(after, like)
        descriptor = os.open(".", flags | os.O_RDWR | _SAFE_OPEN, rights, dir_fd=parent)
    except OSError:
        return None
    try:
        return StagedContent(descriptor, data, after.content, _fill(descriptor, data, after, like))
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            return None
        raise


def write_temp(
    parent: int, temp: str, data: bytes, *, after: Revision, like: OldFile | None, shown: str
) -> tuple[StagedFile, tuple[str, ...]]:
    """Write the new text beside the target, with the old file's owner and attributes.

    Returns:
        How it was left; notes.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE_OPEN
    try:
        descriptor = os.open(temp, flags, _rights_at_first(after, like), dir_fd=parent)
    except OSError as error:
        # A file of that name is not ours to remove: it may hold what a crash left of a save.
        raise write_failed(error, shown) from None
    try:
        notes = _fill(descriptor, data, after, like)
        return StagedFile(os.fstat(descriptor), after.content), notes
    except BaseException as error:
        discard(parent, temp)
        if isinstance(error, OSError):
            raise write_failed(error, shown) from None
        raise
    finally:
        os.close(descriptor)


def _rights_at_first(after: Revision, like: OldFile | None) -> int:
    """The permission bits that a text is made with; of a new one, the system takes off what it does not give."""
    return after.mode & 0o777 if like is None and after.attributes is None else UNFINISHED


def _fill(descriptor: int, data: bytes, after: Revision, like: OldFile | None) -> tuple[str, ...]:
    """Write a text and have it on the disk; notes on what of an old file could not be kept."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    if like is not None:
        notes = dress_like(like[0], descriptor, like[1], after)
    elif after.attributes or stat.S_IMODE(os.fstat(descriptor).st_mode) != after.mode:
        notes = dress(descriptor, after.mode, after.attributes)
    else:
        notes = ()  # To set the bits that it has would change the mask of the list that its folder has given it.
    full_sync(descriptor)
    return notes


def exchange(parent: int, temp: str, name: str) -> None:
    """Exchange two names in one step.

    Raises:
        OSError: ``ENOSYS`` where the file system cannot do it.
    """
    renameat2(parent, temp, name, EXCHANGE)


def put_aside(parent: int, temp: str, name: str) -> str:
    """Rename another program's text, which cannot go back, to a name that people see.

    Returns:
        The name that it has now.
    """
    mark = f".filepact-rescued-{temp.removeprefix('.filepact-').removesuffix('.tmp')}"
    stem = os.fsencode(name)[: LONGEST_PART - len(mark)].decode("utf-8", "ignore")
    try:
        rename_new(parent, temp, stem + mark)
    except OSError:
        return temp
    sync(parent)
    return stem + mark


def rename_new(parent: int, old: str, new: str, to: int = -1) -> str:
    """Rename to a name that must be free; ``to`` is its folder, where that is another.

    Returns:
        What a person should know; empty for nothing.
    """
    to = parent if to < 0 else to
    try:
        renameat2(parent, old, new, NOREPLACE, to)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        try:
            os.link(old, new, src_dir_fd=parent, dst_dir_fd=to, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            rename_free(parent, old, new, to)  # It has no second names either.
            return NO_EXCHANGE
        if not discard(parent, old):
            return f"it has a second name, {old}, which can be removed"
    return ""


def rename_free(parent: int, old: str, new: str, to: int) -> None:
    """Rename to a name that is free; a folder that its owner may not write to is opened for that moment.

    What a folder has in it for the one above changes with that one, which takes the right to write to it.
    """
    try:
        _rename_looked(parent, old, new, to)
    except PermissionError:
        folder = -1
        with suppress(OSError):
            folder = os.open(old, os.O_DIRECTORY | _SAFE_OPEN, dir_fd=parent)
        if folder < 0:
            raise
        try:
            mode = stat.S_IMODE(os.fstat(folder).st_mode)
            if mode & stat.S_IWUSR:
                raise
            os.fchmod(folder, mode | stat.S_IWUSR)
            try:
                _rename_looked(parent, old, new, to)
            finally:
                os.fchmod(folder, mode)
        finally:
            os.close(folder)


def _rename_looked(parent: int, old: str, new: str, to: int) -> None:
    """Rename to a name that is free; it is looked at as late as possible where the file system cannot refuse to replace."""
    try:
        renameat2(parent, old, new, NOREPLACE, to)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        with suppress(FileNotFoundError):
            os.stat(new, dir_fd=to, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, "the name is taken") from None
        os.rename(old, new, src_dir_fd=parent, dst_dir_fd=to)


def move_entry(parent: int, name: str, to: int, new: str, shown: tuple[str, str]) -> bool:
    """Give an entry another name, which must be free, in one step.

    Args:
        parent: Descriptor of its folder.
        name: Its name there.
        to: Descriptor of the folder of the new name.
        new: The new name.
        shown: How both are called in messages.

    Returns:
        False, and nothing is done, where the system does not do it in one step.

    Raises:
        StaleFileError: It is not there, or the new name is taken.
    """
    if inode_of(parent, name) is None:
        raise moved(shown[0])
    try:
        rename_free(parent, name, new, to)
    except FileExistsError:
        if key(new) != key(name) or new in names_in(to):
            raise made_meanwhile(shown[1]) from None
        # The entry's own name in other letters.
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=to)
        return name not in names_in(parent)
    except FileNotFoundError:
        raise moved(shown[0]) from None
    except OSError:
        return False  # If a copy can be made nowhere either, that says why.
    return True


def move_out(parent: int, name: str, temp: str, shown: str, to: int = -1) -> None:
    """Take a file's name away in one step, whatever the name leads to by then.

    The temporary name is in the folder ``to``, where that is another.  It is always a rename: making a second name and
    removing the first would remove what somebody saved between the two.
    """
    try:
        rename_free(parent, name, temp, parent if to < 0 else to)
    except FileNotFoundError:
        raise moved(shown) from None
    except OSError as error:
        raise write_failed(error, shown) from None


def give_back(parent: int, temp: str, name: str, shown: str, to: int = -1) -> None:
    """Rename what was moved out back to its name, which is in the folder ``to``, where that is another.

    Raises:
        StaleFileError: That is taken by now; what was moved out is put aside.
    """
    try:
        rename_new(parent, temp, name, to)
    except OSError:
        raise saved_twice(shown, put_aside(parent, temp, name)) from None


def sync(parent: int, *, opened: bool = False) -> Outcome:
    """Synchronise a folder, so that its entries survive a power cut; one of `reopen` is ``opened``."""
    try:
        folder = parent if opened else os.open(".", os.O_RDONLY | _SAFE_OPEN, dir_fd=parent)
        try:
            full_sync(folder)
        finally:
            if not opened:
                os.close(folder)
    except OSError as error:
        return sync(parent) if opened and error.errno == errno.EBADF else "applied_not_durable"
    return "applied"


def reopen(parent: int) -> int:
    """A descriptor of its own of a held folder, by which that is synchronised where it may be read."""
    try:
        return os.open(".", os.O_RDONLY | _SAFE_OPEN, dir_fd=parent)
    except OSError:
        return os.dup(parent)


def discard(parent: int, temp: str) -> bool:
    try:
        os.unlink(temp, dir_fd=parent)
    except OSError as error:
        return error.errno == errno.ENOENT
    return True

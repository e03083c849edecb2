"""What changes of one file are made of: a text under a temporary name, and names that are moved.

Every step leaves the old name, the new one or both; none leaves neither.  Bytes that are neither
ours nor the expected ones are never unlinked.  When they cannot go back either, they are put beside
the file under a name that people see.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Final, Literal

from filepact.domain.document import content_id
from filepact.errors import StaleFileError, WriteFailedError
from filepact.fs.form import LONGEST_PART
from filepact.fs.held import Expected, Pristine, digest
from filepact.fs.kernel import EXCHANGE, NOREPLACE, renameat2
from filepact.fs.metadata import copy_metadata
from filepact.fs.place import write_failed
from filepact.fs.reading import open_named

__all__ = [
    "UNFINISHED",
    "Outcome",
    "discard",
    "exchange",
    "give_back",
    "inode_of",
    "made_meanwhile",
    "move_out",
    "moved",
    "not_removed",
    "open_expected",
    "put_aside",
    "rename_new",
    "saved_twice",
    "sync",
    "temporary_name",
    "token_of",
    "write_temp",
]

_SAFE_OPEN = (
    os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC if hasattr(os, "O_NOFOLLOW") else 0
)

_BEGINS, _ENDS = ".filepact-", ".tmp"

UNFINISHED: Final = 0o600
"""The rights of a text that is still being written; it is given its own when all of it is there."""

Outcome = Literal["applied", "applied_not_durable"]
"""``applied_not_durable``: as wanted, but the system did not confirm that it would survive a power
cut."""


def temporary_name(token: str) -> str:
    """The name beside the target under which a change keeps its other text for a moment."""
    return f"{_BEGINS}{token}{_ENDS}"


def token_of(name: str) -> str | None:
    """The token of a temporary name; None for any other name."""
    if not (name.startswith(_BEGINS) and name.endswith(_ENDS)):
        return None
    return name.removeprefix(_BEGINS).removesuffix(_ENDS)


# -- looking ----------------------------------------------------------------------------------


def open_expected(parent: int, name: str, expected: Expected, shown: str) -> int:
    """Open the target, if it is a regular file in the expected state."""
    try:
        old = open_named(parent, name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
            raise moved(shown) from None
        raise write_failed(error, shown) from None
    try:
        status = os.fstat(old)
        same = stat.S_IMODE(status.st_mode) == expected.mode and digest(old) == expected.content
    except OSError as error:
        os.close(old)
        raise write_failed(error, shown) from None
    if not same:
        os.close(old)
        raise moved(shown)
    return old


# -- writing ----------------------------------------------------------------------------------


def write_temp(
    parent: int, temp: str, data: bytes, *, mode: int, like: int | None, shown: str
) -> tuple[Pristine, tuple[str, ...]]:
    """Write the new text beside the target, with the old file's owner and attributes.

    Returns:
        How it was left; notes.
    """
    notes: tuple[str, ...] = ()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE_OPEN
    try:
        descriptor = os.open(temp, flags, UNFINISHED, dir_fd=parent)
    except OSError as error:
        # A file of that name is not ours to remove: it may hold what a crash left of a save.
        raise write_failed(error, shown) from None
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            notes = copy_metadata(like, descriptor)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
        return Pristine(os.fstat(descriptor), content_id(data)), notes
    except BaseException as error:
        discard(parent, temp)
        if isinstance(error, OSError):
            raise write_failed(error, shown) from None
        raise
    finally:
        os.close(descriptor)


def inode_of(parent: int, name: str) -> tuple[int, int] | None:
    """Device and inode that a name leads to itself."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def exchange(parent: int, temp: str, name: str) -> None:
    """Give each of two names what the other leads to, in one step.

    Raises:
        OSError: ``ENOSYS`` where the file system cannot do it.
    """
    renameat2(parent, temp, name, EXCHANGE)


def put_aside(parent: int, temp: str, name: str) -> str:
    """Give somebody's text that has lost its place a name that people see; the name it has."""
    mark = f".filepact-rescued-{temp.removeprefix('.filepact-').removesuffix('.tmp')}"
    stem = os.fsencode(name)[: LONGEST_PART - len(mark)].decode("utf-8", "ignore")
    try:
        rename_new(parent, temp, stem + mark)
    except OSError:
        return temp
    sync(parent)
    return stem + mark


def rename_new(parent: int, old: str, new: str) -> bool:
    """Rename to a name that must be free; False: the old name could not be removed."""
    try:
        renameat2(parent, old, new, NOREPLACE)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.link(old, new, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        return discard(parent, old)
    return True


def move_out(parent: int, name: str, temp: str, shown: str) -> None:
    """Take a file's name away in one step, whatever the name leads to by then.

    Without NOREPLACE a plain rename does it: making a second name and removing the first would
    remove what somebody saved between the two.  The temporary name is looked at first.
    """
    try:
        try:
            renameat2(parent, name, temp, NOREPLACE)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            with suppress(FileNotFoundError):
                os.stat(temp, dir_fd=parent, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, "the temporary name is taken") from None
            os.rename(name, temp, src_dir_fd=parent, dst_dir_fd=parent)
    except FileNotFoundError:
        raise moved(shown) from None
    except OSError as error:
        raise write_failed(error, shown) from None


def give_back(parent: int, temp: str, name: str, shown: str) -> None:
    """Give what was moved out its name again.

    Raises:
        StaleFileError: That is taken by now; what was moved out is put aside.
    """
    try:
        rename_new(parent, temp, name)
    except OSError:
        raise saved_twice(shown, put_aside(parent, temp, name)) from None


def sync(parent: int) -> Outcome:
    """Make the folder's entries durable."""
    try:
        folder = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return "applied_not_durable"
    try:
        os.fsync(folder)
    except OSError:
        return "applied_not_durable"
    finally:
        os.close(folder)
    return "applied"


def discard(parent: int, temp: str) -> bool:
    try:
        os.unlink(temp, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


# -- saying -----------------------------------------------------------------------------------


def moved(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program changed the file at this moment",
        hint="Nothing was changed. Read the file again.",
        path=shown,
    )


def not_removed(shown: str) -> WriteFailedError:
    return WriteFailedError(
        f"{shown}: the link cannot be removed",
        hint="Nothing was changed. Ask the person to look at the rights of its folder.",
        path=shown,
    )


def made_meanwhile(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: somebody made a file of this name meanwhile",
        hint="Read it and decide again.",
        path=shown,
    )


def saved_twice(shown: str, kept: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program saved the file meanwhile; a text of it that has lost its place "
        f"is kept beside it as {kept}",
        hint="Read the file again, and tell the person about the kept text.",
        path=shown,
        kept=kept,
    )

"""Replacing, creating and removing one file so that nobody's bytes are lost.

The new text is written beside the target, made durable, and exchanged with it in one step; then
what came out is looked at.  If it is not what the change started from, it goes back.  So a save
that another program makes at the same moment is never overwritten unseen, and a reader sees the
old text or the new one, never a part.

Where the file system cannot exchange two names, the old file is kept under a second name until
the replacement is checked; a save that falls between the last check and the rename is then
overwritten.  `Written.notes` says so.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from filepact.errors import FilepactError, StaleFileError, WriteFailedError
from filepact.fs.kernel import EXCHANGE, NOREPLACE, renameat2
from filepact.fs.metadata import copy_metadata
from filepact.fs.place import write_failed

__all__ = [
    "Displaced",
    "Expected",
    "Written",
    "create",
    "remove",
    "replace",
    "sync",
    "temporary_name",
]

_BLOCK = 1 << 20
_SAFE_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC if hasattr(os, "O_NOFOLLOW") else 0

_NO_EXCHANGE = (
    "this file system cannot exchange two names: a save at the same instant could have been "
    "overwritten"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """The state a file must be in: SHA-256 of its bytes, and its permission bits."""

    content: str
    mode: int


class Displaced:
    """The file that was replaced, kept open after it lost its name."""

    def __init__(self, descriptor: int, content: str) -> None:
        self._descriptor = descriptor
        self._content = content

    def late_write(self) -> bytes | None:
        """What a program wrote to it after it was replaced; None when nothing."""
        data = _read_all(self._descriptor)
        return None if hashlib.sha256(data).hexdigest() == self._content else data

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Written:
    """What was done.

    Attributes:
        outcome: ``applied_not_durable``: the file is as wanted, but the system did not confirm
            that it would survive a power cut.
        displaced: The file that was replaced or removed; to be closed by the caller.
        notes: What a person should know.
    """

    outcome: Literal["applied", "applied_not_durable"]
    displaced: Displaced | None = None
    notes: tuple[str, ...] = ()


def temporary_name(token: str) -> str:
    """The name beside the target under which a change keeps its other text for a moment."""
    return f".filepact-{token}.tmp"


def create(parent: int, name: str, data: bytes, *, mode: int, token: str, shown: str) -> Written:
    """Make a file that must not exist.

    Args:
        parent: Descriptor of its folder.
        name: Its name there.
        data: What it shall hold.
        mode: Its permission bits.
        token: Makes the temporary name; not to be guessed.
        shown: How the file is called in messages.

    Raises:
        StaleFileError: There is something of that name.
        WriteFailedError: The system refused; nothing was changed.
    """
    temp = temporary_name(token)
    try:
        _write_temp(parent, temp, data, mode=mode, like=None)
        _rename_new(parent, temp, name)
    except OSError as error:
        _discard(parent, temp)
        if error.errno == errno.EEXIST:
            raise StaleFileError(
                f"{shown}: somebody made a file of this name meanwhile",
                hint="Read it and decide again.",
                path=shown,
            ) from None
        raise write_failed(error, shown) from None
    return Written(sync(parent))


def replace(
    parent: int, name: str, data: bytes, *, mode: int, expected: Expected, token: str, shown: str
) -> Written:
    """Give a file that is in an expected state a new content; arguments as for `create`.

    Owner, extended attributes and access lists are kept as far as the system lets us.

    Raises:
        StaleFileError: It is in another state; it was left as it is.
        WriteFailedError: The system refused; nothing was changed.
    """
    if not expected.mode & 0o222:
        raise WriteFailedError(
            f"{shown}: the file is write-protected for everybody",
            hint="Ask the person to remove the protection (chmod u+w) if it may be changed.",
            path=shown,
        )
    temp = temporary_name(token)
    old = _open_expected(parent, name, expected, shown)
    try:
        notes = _write_temp(parent, temp, data, mode=mode, like=old)
        exchanged = _exchange(parent, temp, name, old, expected, shown)
        if not exchanged:
            notes += (_NO_EXCHANGE,)
        outcome = sync(parent)
        if not _discard(parent, temp):
            outcome = "applied_not_durable"
    except BaseException as error:
        _discard_own(parent, temp, data)
        os.close(old)
        if isinstance(error, OSError):
            raise write_failed(error, shown) from None
        raise
    return Written(outcome, Displaced(old, expected.content), notes)


def remove(parent: int, name: str, *, expected: Expected, token: str, shown: str) -> Written:
    """Remove a file that is in an expected state; arguments as for `create`.

    Raises:
        StaleFileError: It is in another state; it was left as it is.
        WriteFailedError: The system refused; nothing was changed.
    """
    temp = temporary_name(token)
    old = _open_expected(parent, name, expected, shown)
    try:
        _rename_new(parent, name, temp)
        if not _unchanged(parent, temp, old, expected):
            _bring_back(parent, temp, name, token, shown)
        outcome = sync(parent)
        if not _discard(parent, temp):
            outcome = "applied_not_durable"
    except BaseException as error:
        os.close(old)
        if isinstance(error, OSError):
            raise write_failed(error, shown) from None
        raise
    return Written(outcome, Displaced(old, expected.content))


# -- looking ----------------------------------------------------------------------------------


def _open_expected(parent: int, name: str, expected: Expected, shown: str) -> int:
    """Open the target, if it is a regular file in the expected state."""
    try:
        old = os.open(name, os.O_RDONLY | _SAFE_OPEN, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            raise _moved(shown) from None
        raise write_failed(error, shown) from None
    status = os.fstat(old)
    same = (
        stat.S_ISREG(status.st_mode)
        and stat.S_IMODE(status.st_mode) == expected.mode
        and _digest(old) == expected.content
    )
    if not same:
        os.close(old)
        raise _moved(shown)
    return old


def _digest(descriptor: int) -> str:
    digest = hashlib.sha256()
    offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _read_all(descriptor: int) -> bytes:
    blocks = []
    offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        blocks.append(block)
        offset += len(block)
    return b"".join(blocks)


def _is(parent: int, name: str, descriptor: int) -> bool:
    """Whether a name leads to the open file."""
    try:
        named = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


def _unchanged(parent: int, name: str, descriptor: int, expected: Expected) -> bool:
    """Whether a name leads to the open file and that still holds what was expected.

    What cannot be read cannot be trusted to be the expected state.
    """
    try:
        return _is(parent, name, descriptor) and _digest(descriptor) == expected.content
    except OSError:
        return False


# -- writing ----------------------------------------------------------------------------------


def _write_temp(
    parent: int, temp: str, data: bytes, *, mode: int, like: int | None
) -> tuple[str, ...]:
    """Write the new text beside the target, with the old file's owner and attributes."""
    notes: tuple[str, ...] = ()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_OPEN
    descriptor = os.open(temp, flags, 0o600, dir_fd=parent)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            notes = copy_metadata(like, descriptor)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return notes


def _exchange(parent: int, temp: str, name: str, old: int, expected: Expected, shown: str) -> bool:
    """Put the new text in place and check what it displaced; False: without an exchange."""
    new = os.open(temp, os.O_RDONLY | _SAFE_OPEN, dir_fd=parent)
    try:
        try:
            renameat2(parent, temp, name, EXCHANGE)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise _moved(shown) from None
            if error.errno != errno.ENOSYS:
                raise
            _rename_checked(parent, temp, name, old, expected, shown)
            return False
        if _unchanged(parent, temp, old, expected):
            return True
        # Somebody saved at this very moment.  Their text is under our temporary name now.
        renameat2(parent, temp, name, EXCHANGE)
        if _is(parent, temp, new):
            raise _moved(shown)
        # And saved once more, over our text: that newer text has to stay in place, and the one
        # before it is kept under a name that people see.
        renameat2(parent, temp, name, EXCHANGE)
        kept = f"{name}.filepact-rescued-{temp[10:18]}"
        _rename_new(parent, temp, kept)
        raise StaleFileError(
            f"{shown}: another program saved the file twice meanwhile; its earlier text is "
            f"kept beside it as {kept}",
            hint="Read the file again.",
            path=shown,
        )
    finally:
        os.close(new)


def _rename_checked(
    parent: int, temp: str, name: str, old: int, expected: Expected, shown: str
) -> None:
    """Replace by a plain rename, checked as late as possible."""
    if not _unchanged(parent, name, old, expected):
        raise _moved(shown)
    os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)


def _rename_new(parent: int, old: str, new: str) -> None:
    """Rename to a name that must be free."""
    try:
        renameat2(parent, old, new, NOREPLACE)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.link(old, new, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        os.unlink(old, dir_fd=parent)


def _bring_back(parent: int, temp: str, name: str, token: str, shown: str) -> None:
    """Return what was to be removed, because it is not what was expected."""
    try:
        _rename_new(parent, temp, name)
    except FileExistsError:
        kept = f"{name}.filepact-rescued-{token[:8]}"
        _rename_new(parent, temp, kept)
        raise StaleFileError(
            f"{shown}: another program saved the file meanwhile; its earlier text is kept "
            f"beside it as {kept}",
            hint="Read the file again.",
            path=shown,
        ) from None
    raise _moved(shown)


def sync(parent: int) -> Literal["applied", "applied_not_durable"]:
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


def _discard(parent: int, temp: str) -> bool:
    try:
        os.unlink(temp, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _discard_own(parent: int, temp: str, data: bytes) -> None:
    """Remove the temporary file after a failure, unless it holds somebody else's text."""
    with suppress(OSError, FilepactError):
        descriptor = os.open(temp, os.O_RDONLY | _SAFE_OPEN, dir_fd=parent)
        try:
            ours = data.startswith(_read_all(descriptor))
        finally:
            os.close(descriptor)
        if ours:
            os.unlink(temp, dir_fd=parent)


# -- saying -----------------------------------------------------------------------------------


def _moved(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program changed the file at this moment",
        hint="Nothing was changed. Read the file again.",
        path=shown,
    )

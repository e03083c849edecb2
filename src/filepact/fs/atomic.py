"""Replacing, creating and removing one file so that nobody's bytes are lost.

The new text is written beside the target, made durable, and exchanged with it in one step; then
what came out is looked at.  If it is not what the change started from, it goes back.  So a save
that another program makes at the same moment is never overwritten unseen, and a reader sees the
old text or the new one, never a part.

Bytes that are neither ours nor the expected ones are never unlinked.  When they cannot go back
either, they are put beside the file under a name that people see.

Where the file system cannot exchange two names, the file is checked as late as possible and then
replaced by a plain rename; a save that falls between the two is overwritten.  `Written.notes`
says so.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from filepact.domain.document import content_id
from filepact.errors import StaleFileError, WriteFailedError
from filepact.fs.form import LONGEST_PART
from filepact.fs.held import Displaced, Expected, Pristine, digest, holds_name, is_unchanged
from filepact.fs.kernel import EXCHANGE, NOREPLACE, renameat2
from filepact.fs.metadata import copy_metadata
from filepact.fs.place import write_failed
from filepact.fs.reading import open_named

__all__ = [
    "Displaced",
    "Expected",
    "Written",
    "create",
    "create_link",
    "remove",
    "remove_link",
    "replace",
    "sync",
    "temporary_name",
]

_SAFE_OPEN = (
    os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC if hasattr(os, "O_NOFOLLOW") else 0
)

_NO_EXCHANGE = (
    "this file system cannot exchange two names: a save at the same instant could have been "
    "overwritten"
)

_UNMOVED = "this process may not move links: what took its place at the same instant could have been removed"

_BEGINS, _ENDS = ".filepact-", ".tmp"
_LEFT = "the old text could not be removed and is still there as {}"


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
    return f"{_BEGINS}{token}{_ENDS}"


def token_of(name: str) -> str | None:
    """The token of a temporary name; None for any other name."""
    if not (name.startswith(_BEGINS) and name.endswith(_ENDS)):
        return None
    return name.removeprefix(_BEGINS).removesuffix(_ENDS)


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
    os.close(_write_temp(parent, temp, data, mode=mode, like=None, shown=shown)[0])
    try:
        clean = _rename_new(parent, temp, name)
    except OSError as error:
        _discard(parent, temp)
        if error.errno == errno.EEXIST:
            raise _made_meanwhile(shown) from None
        raise write_failed(error, shown) from None
    notes = () if clean else (f"the file has a second name, {temp}, which can be removed",)
    return Written(sync(parent), notes=notes)


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
        new, ours, notes = _write_temp(parent, temp, data, mode=mode, like=old, shown=shown)
        try:
            notes += _put_in_place(parent, temp, name, old, expected, new, ours, shown)
        finally:
            os.close(new)
        outcome = sync(parent)
    except BaseException:
        os.close(old)
        raise
    # Only the old file: what could not be put aside is somebody's, and stays.
    if _leads_to(parent, temp, old) and not _discard(parent, temp):
        outcome = "applied_not_durable"
        notes += (_LEFT.format(temp),)
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
        _move_out(parent, name, temp, shown)
        if not is_unchanged(parent, temp, old, expected):
            _bring_back(parent, temp, name, shown)
        outcome = sync(parent)
    except BaseException:
        os.close(old)
        raise
    if not _discard(parent, temp):
        return Written(
            "applied_not_durable", Displaced(old, expected.content), (_LEFT.format(temp),)
        )
    return Written(outcome, Displaced(old, expected.content))


def create_link(parent: int, name: str, target: bytes, *, token: str, shown: str) -> Written:
    """Make a symbolic link, which leads to a name that is not looked at, where nothing is.

    Arguments and errors as for `create`.
    """
    temp = temporary_name(token)
    try:
        os.symlink(target, os.fsencode(temp), dir_fd=parent)
    except PermissionError:
        raise WriteFailedError(
            f"{shown}: the system lets this process make no links",
            hint="Nothing was changed. Ask the person to do this step.",
            path=shown,
        ) from None
    except OSError as error:
        raise write_failed(error, shown) from None
    try:
        clean = _rename_new(parent, temp, name)
    except OSError as error:
        _discard(parent, temp)
        if error.errno == errno.EEXIST:
            raise _made_meanwhile(shown) from None
        raise write_failed(error, shown) from None
    notes = () if clean else (f"the link has a second name, {temp}, which can be removed",)
    return Written(sync(parent), notes=notes)


def remove_link(parent: int, name: str, *, expected: Expected, token: str, shown: str) -> Written:
    """Remove a symbolic link, and not what it leads to; arguments and errors as for `remove`."""
    temp = temporary_name(token)
    if not _is_link(parent, name, expected):
        raise _moved(shown)
    notes: tuple[str, ...] = ()
    try:
        _move_out(parent, name, temp, shown)
    except WriteFailedError as error:
        if error.details.get("errno") not in (errno.EACCES, errno.EPERM):
            raise
        # Whoever is confined may remove links, but move none, which would be to make one.
        if not _is_link(parent, name, expected):
            raise _moved(shown) from None
        temp, notes = name, (_UNMOVED,)
    if temp != name and not _is_link(parent, temp, expected):
        _bring_back(parent, temp, name, shown)
    if not _discard(parent, temp):
        if temp != name:
            _return(parent, temp, name, shown)
        raise WriteFailedError(
            f"{shown}: the link cannot be removed",
            hint="Nothing was changed. Ask the person to look at the rights of its folder.",
            path=shown,
        )
    return Written(sync(parent), notes=notes)


def _is_link(parent: int, name: str, expected: Expected) -> bool:
    """Whether a name is a link that leads where it is expected to."""
    try:
        target = os.readlink(os.fsencode(name), dir_fd=parent)
    except OSError:
        return False
    return content_id(target) == expected.content


# -- looking ----------------------------------------------------------------------------------


def _open_expected(parent: int, name: str, expected: Expected, shown: str) -> int:
    """Open the target, if it is a regular file in the expected state."""
    try:
        old = open_named(parent, name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
            raise _moved(shown) from None
        raise write_failed(error, shown) from None
    try:
        status = os.fstat(old)
        same = stat.S_IMODE(status.st_mode) == expected.mode and digest(old) == expected.content
    except OSError as error:
        os.close(old)
        raise write_failed(error, shown) from None
    if not same:
        os.close(old)
        raise _moved(shown)
    return old


# -- writing ----------------------------------------------------------------------------------


def _write_temp(
    parent: int, temp: str, data: bytes, *, mode: int, like: int | None, shown: str
) -> tuple[int, Pristine, tuple[str, ...]]:
    """Write the new text beside the target, with the old file's owner and attributes.

    Returns:
        Its descriptor, which the caller closes; how it was left; notes.
    """
    notes: tuple[str, ...] = ()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE_OPEN
    try:
        descriptor = os.open(temp, flags, 0o600, dir_fd=parent)
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
        return descriptor, Pristine(os.fstat(descriptor), content_id(data)), notes
    except BaseException as error:
        os.close(descriptor)
        _discard(parent, temp)
        if isinstance(error, OSError):
            raise write_failed(error, shown) from None
        raise


def _put_in_place(
    parent: int,
    temp: str,
    name: str,
    old: int,
    expected: Expected,
    new: int,
    ours: Pristine,
    shown: str,
) -> tuple[str, ...]:
    """Exchange the new text with the target and look at what came out.

    Returns:
        Notes; the new text is in place.

    Raises:
        StaleFileError: Another program saved at this moment; its newest text is in place.
        WriteFailedError: The system refused; nothing was changed.
    """
    try:
        renameat2(parent, temp, name, EXCHANGE)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            _rename_checked(parent, temp, name, old, expected, shown)
            return (_NO_EXCHANGE,)
        _discard(parent, temp)
        if error.errno == errno.ENOENT:
            raise _moved(shown) from None
        raise write_failed(error, shown) from None
    if is_unchanged(parent, temp, old, expected):
        return ()
    # Somebody saved at this very moment.  Their text is under our temporary name now.
    try:
        renameat2(parent, temp, name, EXCHANGE)
    except OSError:
        kept = _put_aside(parent, temp, name)
        if _leads_to(parent, name, new):
            return (f"another program saved the file at the same moment; its text is in {kept}",)
        raise _saved_twice(shown, kept) from None
    if ours.still(parent, temp, new):
        _discard(parent, temp)
        raise _moved(shown)
    # And saved once more, over our text or into it: what is newest has to stay in place.
    with suppress(OSError):
        renameat2(parent, temp, name, EXCHANGE)
    raise _saved_twice(shown, _put_aside(parent, temp, name))


def _leads_to(parent: int, name: str, descriptor: int) -> bool:
    try:
        return holds_name(parent, name, descriptor)
    except OSError:
        return False


def _put_aside(parent: int, temp: str, name: str) -> str:
    """Give somebody's text that has lost its place a name that people see; the name it has."""
    mark = f".filepact-rescued-{temp.removeprefix('.filepact-').removesuffix('.tmp')}"
    stem = os.fsencode(name)[: LONGEST_PART - len(mark)].decode("utf-8", "ignore")
    try:
        _rename_new(parent, temp, stem + mark)
    except OSError:
        return temp
    sync(parent)
    return stem + mark


def _rename_checked(
    parent: int, temp: str, name: str, old: int, expected: Expected, shown: str
) -> None:
    """Replace by a plain rename, checked as late as possible."""
    try:
        if not is_unchanged(parent, name, old, expected):
            raise _moved(shown)
        os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError as error:
        _discard(parent, temp)
        raise write_failed(error, shown) from None
    except StaleFileError:
        _discard(parent, temp)
        raise


def _rename_new(parent: int, old: str, new: str) -> bool:
    """Rename to a name that must be free; False: the old name could not be removed."""
    try:
        renameat2(parent, old, new, NOREPLACE)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.link(old, new, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        return _discard(parent, old)
    return True


def _move_out(parent: int, name: str, temp: str, shown: str) -> None:
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
        raise _moved(shown) from None
    except OSError as error:
        raise write_failed(error, shown) from None


def _bring_back(parent: int, temp: str, name: str, shown: str) -> None:
    """Return what was to be removed, because it is not what was expected."""
    _return(parent, temp, name, shown)
    raise _moved(shown)


def _return(parent: int, temp: str, name: str, shown: str) -> None:
    """Give what was moved out its name again; where that is taken by now, it is put aside."""
    try:
        _rename_new(parent, temp, name)
    except OSError:
        raise _saved_twice(shown, _put_aside(parent, temp, name)) from None


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


# -- saying -----------------------------------------------------------------------------------


def _moved(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program changed the file at this moment",
        hint="Nothing was changed. Read the file again.",
        path=shown,
    )


def _made_meanwhile(shown: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: somebody made a file of this name meanwhile",
        hint="Read it and decide again.",
        path=shown,
    )


def _saved_twice(shown: str, kept: str) -> StaleFileError:
    return StaleFileError(
        f"{shown}: another program saved the file meanwhile; a text of it that has lost its place "
        f"is kept beside it as {kept}",
        hint="Read the file again, and tell the person about the kept text.",
        path=shown,
        kept=kept,
    )

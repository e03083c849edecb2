"""A directory as a capability: what can be done beneath it, and nothing above.

Every verb takes a relative path, resolves it once without leaving the directory, and then works
on descriptors.  The path of a verb that changes something is a canonical one, from `Root.place`;
a link that appeared in it since is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import unicodedata
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, Self

from filepact.domain.document import RootId
from filepact.errors import (
    FilepactError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
    WriteFailedError,
)
from filepact.fs import atomic
from filepact.fs.atomic import Displaced, Expected, Written
from filepact.fs.place import (
    Contents,
    Place,
    check_regular,
    kind_of,
    read_umask,
    unreadable,
    write_failed,
)
from filepact.fs.reading import open_regular, read_whole
from filepact.fs.resolve import check_new_name, choose_resolver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from types import TracebackType

    from filepact.fs.resolve import Found

__all__ = ["Contents", "Displaced", "Expected", "Place", "Root", "Written"]


class Root:
    """A directory that is held open.

    Attributes:
        path: Its true absolute path, for people and programs; never used to open anything.
        resolver: Which resolver is in use, ``openat2`` or ``walk``.
        new_mode: Permission bits of a new file.
    """

    def __init__(
        self, path: RootId, descriptor: int, resolver: Literal["auto", "openat2", "walk"]
    ) -> None:
        self.path = path
        self.new_mode = 0o666 & ~read_umask()
        self._new_folder_mode = 0o777 & ~read_umask()
        self._descriptor = descriptor
        self._resolver = choose_resolver(path, resolver)
        self.resolver = self._resolver.name
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        resolver: Literal["auto", "openat2", "walk"] = "auto",
    ) -> Root:
        """Hold a directory.

        Raises:
            NotFoundError: There is no such directory.
            NotAFileError: It is not a directory.
        """
        if sys.platform == "win32":
            raise PathBlockedError(
                "Windows is not supported yet",
                hint="Run filepact on Linux or macOS, or in WSL.",
            )
        if not os.fspath(path):
            # The system would take the working folder, which nobody has named.
            raise NotFoundError("no folder is named as the root", hint="Name a folder.")
        try:
            true = os.path.realpath(path, strict=True)
            descriptor = os.open(true, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except NotADirectoryError:
            raise NotAFileError(
                f"{path}: is not a folder", hint="Name a folder as the root."
            ) from None
        except OSError as error:
            raise NotFoundError(
                f"{path}: cannot be used as a root ({os.strerror(error.errno or 0)})",
                hint="Name a folder that exists and may be read.",
            ) from None
        return cls(RootId(true), descriptor, resolver)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the directory; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        """Its descriptor, for system calls that take a folder; it stays the root's to close."""
        return self._descriptor

    def alive(self) -> bool:
        """Whether the root's path still leads to this directory."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    # -- looking --------------------------------------------------------------------------

    def place(self, path: str) -> Place:
        """Follow a relative path, which need not lead to anything yet.

        Raises:
            PathBlockedError: It leads out of the root, or the root is no longer there.
        """
        with self._found(path) as found:
            parent = os.fstat(found.parent)
            rest = unicodedata.normalize("NFC", "/".join([*found.rest, found.name])).casefold()
            lock_key = f"{parent.st_dev}:{parent.st_ino}:{rest}"
            status = found.status
            if status is None:
                check_new_name("/".join([*found.rest, found.name]))
                return Place(found.path, "missing", lock_key)
            return Place(
                found.path,
                kind_of(status.st_mode),
                lock_key,
                stat.S_IMODE(status.st_mode),
                status.st_size,
                status.st_nlink,
            )

    def glance(self, path: str) -> tuple[int, ...] | None:
        """A stamp that is another one once a file has changed; None where nothing is.

        Links on the way are not kept from leading out, so nothing but this may be made of it:
        whether to look again.  What is a link itself has the empty stamp.
        """
        try:
            status = os.stat(path, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def read(self, path: str, *, limit: int) -> Contents:
        """Read a regular file whole, in one state.

        Args:
            path: The file.
            limit: Most bytes to read.

        Raises:
            TooLargeError: It has more bytes; nothing was read.
            ReadFailedError: The system refused, or a program keeps writing to the file.
        """
        with self._regular(path) as descriptor:
            return read_whole(descriptor, limit, path)

    @contextmanager
    def stream(self, path: str) -> Iterator[tuple[BufferedReader, int]]:
        """A regular file as an open stream with its size in bytes, for reading a part of it."""
        with self._regular(path) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            yield stream, os.fstat(descriptor).st_size

    def open_directory(self, path: str) -> int:
        """A descriptor of a folder, to walk it; the caller closes it."""
        with self._found(path) as found:
            if found.status is None:
                raise NotFoundError(f"{path}: no such folder", path=path)
            if not stat.S_ISDIR(found.status.st_mode):
                raise NotAFileError(f"{path}: is not a folder", path=path)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                return os.open(found.name, flags, dir_fd=found.parent)
            except OSError as error:
                raise unreadable(error, path) from None

    @contextmanager
    def _found(self, path: str) -> Iterator[Found]:
        if not self.alive():
            raise PathBlockedError(
                "the root is no longer there, or another folder has taken its place",
                hint="Ask the person to start filepact again for the folder that is meant.",
            )
        found = self._resolver.find(self._descriptor, path or ".")
        try:
            yield found
        finally:
            os.close(found.parent)

    @contextmanager
    def _regular(self, path: str) -> Iterator[int]:
        """A descriptor of a regular file; nothing else is ever opened for reading."""
        with self._found(path) as found:
            if found.status is None:
                raise NotFoundError(f"{path}: no such file", path=path)
            check_regular(found.status.st_mode, path)
            try:
                descriptor = open_regular(found, path)
            except FileNotFoundError:
                raise NotFoundError(f"{path}: was removed just now", path=path) from None
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise PathBlockedError(
                        f"{path}: a link took the file's place just now",
                        hint="Try again when the tree is at rest.",
                        path=path,
                    ) from None
                raise unreadable(error, path) from None
        try:
            check_regular(os.fstat(descriptor).st_mode, path)
            yield descriptor
        finally:
            os.close(descriptor)

    # -- changing -------------------------------------------------------------------------

    def replace(
        self, path: str, data: bytes, *, mode: int, expected: Expected | None, token: str
    ) -> Written:
        """Write one file durably, if it is in an expected state.

        Args:
            path: Its canonical path.
            data: What it shall hold.
            mode: Its permission bits.
            expected: The state it must be in; None: it must not exist.
            token: Part of the temporary name; letters, digits and ``-``, not to be guessed.

        Raises:
            StaleFileError: It is in another state, and was left in it.
            WriteFailedError: The system refused; nothing was changed.
        """
        _check_token(token)
        with self._parent(path) as (parent, name):
            if expected is None:
                return atomic.create(parent, name, data, mode=mode, token=token, shown=path)
            return atomic.replace(
                parent, name, data, mode=mode, expected=expected, token=token, shown=path
            )

    def remove(self, path: str, *, expected: Expected, token: str) -> Written:
        """Remove one file, if it is in an expected state; arguments and errors as `replace`."""
        _check_token(token)
        with self._parent(path) as (parent, name):
            return atomic.remove(parent, name, expected=expected, token=token, shown=path)

    def make_directories(self, path: str) -> tuple[str, ...]:
        """Make a folder and the missing ones above it, durably.

        Returns:
            The canonical paths of those that were made, outermost first.
        """
        with self._found(path) as found:
            if found.status is not None:
                if not stat.S_ISDIR(found.status.st_mode):
                    raise NotAFileError(f"{path}: is not a folder", path=path)
                return ()
            names = [*found.rest, found.name]
            prefix = found.path[: -len("/".join(names))]
            here = os.dup(found.parent)
        made: list[str] = []
        try:
            for number, name in enumerate(names, start=1):
                here, new = self._make_one(here, name, path)
                if new:
                    made.append(prefix + "/".join(names[:number]))
        except WriteFailedError:
            for done in reversed(made):
                with suppress(FilepactError):
                    self.remove_directory(done)
            raise
        finally:
            os.close(here)
        return tuple(made)

    def _make_one(self, parent: int, name: str, path: str) -> tuple[int, bool]:
        """Make a folder in another; its descriptor takes the other's place; whether it is new."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        made = True
        try:
            try:
                os.mkdir(name, self._new_folder_mode, dir_fd=parent)
            except FileExistsError:
                made = False  # Somebody else made it just now, which is as good, but theirs.
            atomic.sync(parent)
            below = os.open(name, flags, dir_fd=parent)
        except OSError as error:
            raise WriteFailedError(
                f"{path}: the folder {name} cannot be made ({os.strerror(error.errno or 0)})",
                hint="Nothing was written.",
                path=path,
            ) from None
        os.close(parent)
        return below, made

    def remove_directory(self, path: str) -> bool:
        """Remove a folder if it is empty; whether it was."""
        with self._parent(path) as (parent, name):
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError:
                return False
            atomic.sync(parent)
        return True

    # -- what a crash left ----------------------------------------------------------------

    def leftover(self, directory: str, token: str) -> bytes | None:
        """What the temporary file of a change holds, or None when there is none."""
        name = atomic.temporary_name(_check_token(token))
        path = name if directory == "." else f"{directory}/{name}"
        if self.place(path).kind != "file":
            return None
        return self.read(path, limit=1 << 32).data

    def discard_leftover(self, directory: str, token: str) -> None:
        """Remove the temporary file of a change."""
        name = atomic.temporary_name(_check_token(token))
        with self._parent(name if directory == "." else f"{directory}/{name}") as (parent, leaf):
            with suppress(FileNotFoundError):
                os.unlink(leaf, dir_fd=parent)
            atomic.sync(parent)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a canonical path, no link followed, and the last name."""
        above, _, name = path.rpartition("/")
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"not a canonical path: {path!r}")
        if not self.alive():
            raise PathBlockedError("the root is no longer there")
        try:
            parent = self._resolver.open_folder(self._descriptor, above or ".")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV):
                raise StaleFileError(
                    f"{path}: a folder on the way was moved or replaced meanwhile",
                    hint="Nothing was changed. Look at the tree again.",
                    path=path,
                ) from None
            raise write_failed(error, path) from None
        try:
            yield parent, name
        finally:
            os.close(parent)


def _check_token(token: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{4,64}", token):
        raise ValueError(f"not a token: {token!r}")
    return token

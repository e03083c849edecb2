"""A directory as a capability: reading beneath it, and nothing above.

Every verb takes a relative path, resolves it once without leaving the directory, and then works
on descriptors.  Before each it is looked whether the directory still is where its path leads:
once it was moved, replaced or unmounted, nothing is read from it any more.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Literal, Self

from filepact.domain.document import LINK, RootId
from filepact.errors import (
    FilepactError,
    LocaleError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
)
from filepact.fs.attributes import attributes_of_link
from filepact.fs.kernel import BENEATH, NO_LINKS, NO_MAGIC_LINKS, openat2
from filepact.fs.mounts import MountWatcher, RootMounts, is_made_up
from filepact.fs.path_form import lock_key
from filepact.fs.read import (
    OPEN,
    FileContents,
    FileInfo,
    check_regular,
    found_info,
    has_proc,
    open_regular,
    read_umask,
    read_whole,
    unreadable,
)
from filepact.fs.resolve import (
    HOLD,
    KnownNames,
    Resolution,
    choose_resolver,
    find_exactly,
    is_canonical,
)
from filepact.fs.work_trees import WorkTrees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from io import BufferedReader

    from filepact.fs.home_secrets import SecretIndex
    from filepact.fs.trigrams import FileRead
    from filepact.text.literals import Needs

__all__ = ["FOLDER", "MOVED", "OpenFile", "RootReader", "root_gone"]

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

MOVED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV})
"""What the system says of a canonical path on which something was exchanged."""


class RootReader:
    """A directory that is held open, to read what lies beneath it.

    Attributes:
        path: Its true absolute path, for people and programs; never used to open anything.
        boundary: Where it ends though names go on beneath it.
        resolver: Which resolver is in use, ``openat2`` or ``walk``.
        spelling: How names beneath it are spelled.
        trees: The work trees of Git beneath it.
        mounts: Notices what is mounted beneath it.
    """

    def __init__(
        self,
        path: RootId,
        descriptor: int,
        resolver: Literal["auto", "openat2", "walk"],
        boundary: RootMounts,
        secrets: SecretIndex | None = None,
    ) -> None:
        self.path = path
        self.boundary = boundary
        self._secrets = secrets
        self._descriptor = descriptor
        self._mask = read_umask()  # now, since a sandbox may hide it later
        self._resolver = choose_resolver(path, resolver, boundary)
        self.resolver = self._resolver.name
        self._flags = BENEATH | NO_LINKS | NO_MAGIC_LINKS | boundary.resolve
        self._in_one_step = self.resolver == "openat2" and not boundary.mounts and has_proc()
        self.spelling = KnownNames(descriptor)
        self.trees = WorkTrees(path, self._bytes, self.glance)
        self.mounts = MountWatcher(path)
        status = os.fstat(descriptor)
        self.identity = (status.st_dev, status.st_ino)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        resolver: Literal["auto", "openat2", "walk"] = "auto",
        mounts: bool = False,
        secrets: SecretIndex | None = None,
    ) -> Self:
        """Hold a directory.

        Args:
            path: It, links allowed.
            resolver: How names are resolved beneath it.
            mounts: Whether other file systems that are mounted beneath it belong to it.
            secrets: Files elsewhere that are not read here either, under another name.

        Raises:
            NotFoundError: There is no such directory.
            NotAFileError: It is not a directory.
            PathBlockedError: It lies on a file system that the kernel makes up.
            LocaleError: Names have another encoding than UTF-8 in this process.
        """
        if sys.getfilesystemencoding() != "utf-8":
            raise LocaleError(
                f"names of files are {sys.getfilesystemencoding()} in this process, so rules would miss some",
                hint="Start it with PYTHONUTF8=1, or with a locale of UTF-8.",
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
            hint = "Name a folder that exists and may be read; here ~ and $ are letters of a name."
            if isinstance(error, PermissionError):
                hint = "`chmod u+rwx` opens one of yours; `filepact log` in it tells what it was."
            said = f"{path}: cannot be used as a root ({os.strerror(error.errno or 0)})"
            raise NotFoundError(said, hint=hint) from None
        try:
            _check_files(descriptor, path)
            boundary = RootMounts.around(descriptor, mounts=mounts, secrets=secrets)
            return cls(RootId(true), descriptor, resolver, boundary, secrets)
        except BaseException:
            os.close(descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; may be called twice."""
        if self._descriptor >= 0:
            self.mounts.close()
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        """Its descriptor, for system calls that take a folder; it stays the root's to close."""
        return self._descriptor

    def alive(self) -> bool:
        """Whether the root's path still leads to this directory.

        Not so when it was moved, removed, replaced, unmounted, or something was mounted over it.
        """
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    # -- looking --------------------------------------------------------------------------

    def place(self, path: str, *, follow: bool = True, known: bool = False) -> FileInfo:
        """Follow a relative path, which need not lead to anything yet.

        Args:
            path: The path.
            follow: Whether a link at its end is followed; those before its end always are.
            known: Whether it is the true name of what was there once, which may be an odd one.

        Raises:
            PathBlockedError: It leads out of the root, or the root is no longer there.
        """
        if not follow and (link := self._link(path)) is not None:
            return link
        found = self._find(path, exact=known)
        try:
            return found_info(found, known=known)
        finally:
            found.close()

    def hold(self, path: str, *, known: bool = False) -> OpenFile:
        """Follow a relative path as `place` does, and keep open what it leads to."""
        found = self._find(path, exact=known)
        try:
            return OpenFile(self, found, found_info(found, known=known))
        except BaseException:
            found.close()
            raise

    def hold_in_one_step(self, path: str) -> OpenFile | None:
        """Keep open a regular file to be read, as `hold` does; None where that takes a longer look.

        The system follows no link on the way and crosses no mount, so that a path in canonical form is the file's
        true name, and nothing has to be asked about it.  Nothing is known of the folder that it lies in: what
        changes a file holds it with `hold`.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        if not self._in_one_step or self.spelling.folds is not False or not is_canonical(path):
            return None
        if not self.alive():
            raise root_gone()
        try:
            handle = openat2(self._descriptor, path, HOLD, self._flags)
        except OSError:
            return None
        try:
            status = os.fstat(handle)
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            os.close(handle)
            return None
        mode, size, links = stat.S_IMODE(status.st_mode), status.st_size, status.st_nlink
        info = FileInfo(path, "file", "", mode, size, links, status.st_dev, status.st_ino)
        return OpenFile(self, Resolution(-1, (), path, path, status, handle), info)

    def _link(self, path: str) -> FileInfo | None:
        """The link at the end of a path; None where something else is, or nothing."""
        above, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return None
        with closing(self._find(above or ".")) as found:
            if found.status is None or not stat.S_ISDIR(found.status.st_mode):
                return None
            status = None
            with suppress(OSError), _opened(found) as folder:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                name = self.spelling.of(folder, name)
            if status is None or not stat.S_ISLNK(status.st_mode):
                return None
            return FileInfo(
                name if found.path == "." else f"{found.path}/{name}",
                "link",
                lock_key(found.status, name),
                LINK,
                *(status.st_size, status.st_nlink, status.st_dev, status.st_ino),
            )

    def read_link(self, path: str) -> FileContents:
        """The name that a link leads to, and what the link itself has besides.

        Args:
            path: The link's canonical path, from a `FileInfo`.

        Raises:
            StaleFileError: It is no link any more.
        """
        above, _, name = path.rpartition("/")
        with closing(self._find(above or ".", follow=False)) as found:
            try:
                with _opened(found) as folder:
                    held = os.fsencode(os.readlink(name, dir_fd=folder))
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    return FileContents(held, LINK, attributes=attributes_of_link(status))
            except OSError:
                raise StaleFileError(
                    f"{path}: is no longer a link", hint="Look at the tree again.", path=path
                ) from None

    def glance(self, path: str) -> tuple[int, ...] | None:
        """A stamp that differs once the file has changed; None where nothing is.

        Links on the way are not kept from leading out, so nothing but this may be made of it:
        whether to look again.  What is a link itself has the empty stamp.
        """
        try:
            status = os.stat(path, dir_fd=self._descriptor, follow_symlinks=False)
            if self.spelling.folds and self.spelling.true(path) != path:
                return None
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def has_one_of(self, paths: Iterable[str]) -> bool:
        """Whether there may be anything at one of some paths; of a link, at its end.  As of `glance`."""
        for path in paths:  # noqa: SIM110 - the frame of a generator takes as long as the question
            if os.access(path, os.F_OK, dir_fd=self._descriptor):
                return True
        return False

    def read(self, path: str, *, limit: int, follow: bool = True) -> FileContents:
        """Read a regular file whole, in one state.

        Args:
            path: The file.
            limit: Most bytes to read.
            follow: Whether links are followed.  Who has asked the rules about the canonical path
                of a `FileInfo` reads without: a link that appeared in it since is refused.

        Raises:
            TooLargeError: It has more bytes; nothing was read.
            ReadFailedError: The system refused, or a program keeps writing to the file.
            StaleFileError: A link took the place of the file, or of a folder above it.
        """
        descriptor = self.open_regular(path, follow=follow)
        try:
            return read_whole(descriptor, limit, path)
        finally:
            os.close(descriptor)

    def read_small(
        self,
        paths: Sequence[str],
        needs: Needs = (),
        *,
        fold: bool = False,
        odd: Sequence[bytes] = (),
    ) -> Iterator[FileRead]:
        """Read many files that are not large, without following links, as far as that is quick.

        Each is resolved, held and checked as by `read`, by a library that does it for many in one call.

        Args:
            paths: The files.
            needs: What a file must hold as bytes to be wanted.
            fold: Whether the case of ASCII letters does not matter in that.
            odd: Words by which a file is wanted as well, and by bytes that are no text in UTF-8, if there
                are any.

        Yields:
            What was read of each; None for what `read` has to read, or refuse.
        """
        from filepact.fs.trigrams import read_files  # noqa: PLC0415 - only searches need it

        if not self._quick:
            return iter([None] * len(paths))
        return read_files(self._descriptor, self._flags, paths, needs, fold=fold, odd=odd)

    def list_some(self, paths: Sequence[str]) -> Iterator[list[str] | None]:
        """The names in many folders, without following links, as far as that is quick; as of `list_folders`."""
        from filepact.fs.trigrams import list_folders  # noqa: PLC0415 - only searches need it

        if not self._quick:
            return iter([None] * len(paths))
        return list_folders(self._descriptor, self._flags, paths)

    @property
    def _quick(self) -> bool:
        """Whether the library can do several things in one call as each of them would be done."""
        return self._resolver.name == "openat2" and not self.boundary.mounts and self.alive()

    def _bytes(self, path: str, limit: int) -> bytes:
        return self.read(path, limit=limit, follow=False).data

    @contextmanager
    def stream(self, path: str, *, follow: bool = True) -> Iterator[tuple[BufferedReader, int]]:
        """A regular file as an open stream with its size in bytes, for reading a part of it.

        Arguments and errors as for `read`.
        """
        with open(self.open_regular(path, follow=follow), "rb") as stream:
            yield stream, os.fstat(stream.fileno()).st_size

    def open_directory(self, path: str, *, follow: bool = True) -> int:
        """A descriptor of a folder, to walk it; the caller closes it; arguments as for `read`."""
        with closing(self._find(path, follow=follow)) as found:
            if found.status is None:
                raise NotFoundError(f"{path}: no such folder", path=path)
            if not stat.S_ISDIR(found.status.st_mode):
                raise NotAFileError(f"{path}: is not a folder", path=path)
            try:
                # Every folder is held, so this is the one that was found.
                return os.open(".", FOLDER, dir_fd=found.handle)
            except OSError as error:
                raise unreadable(error, path) from None

    def names(self, path: str) -> tuple[str, ...]:
        """The names of what lies in a folder; none when it is not there."""
        try:
            descriptor = self.open_directory(path, follow=False)
        except FilepactError:
            return ()
        try:
            return tuple(os.listdir(descriptor))
        finally:
            os.close(descriptor)

    def _find(self, path: str, *, follow: bool = True, exact: bool = False) -> Resolution:
        """Resolve a path; the caller closes what it led to.  What is not followed or ``exact`` is a true name."""
        if not self.alive():
            raise root_gone()
        known = self.spelling
        if follow:
            found = self._resolver.find(self._descriptor, path or ".")
            return found if known.folds is False else known.correct(found, exact=exact)
        try:
            found = find_exactly(self._resolver, self.boundary, self._descriptor, path)
        except OSError as error:
            if error.errno in MOVED:
                raise StaleFileError(
                    f"{path}: it or a folder on the way was moved or replaced just now",
                    hint="Look at the tree again.",
                    path=path,
                ) from None
            raise unreadable(error, path) from None
        return found if known.folds is False else known.correct(found, exact=True)

    def open_regular(self, path: str, *, follow: bool) -> int:
        """A descriptor of a regular file; nothing else is ever opened for reading."""
        found = self._find(path, follow=follow)
        try:
            return self.open_found(found, path)
        finally:
            found.close()

    def open_found(self, found: Resolution, path: str) -> int:
        """A descriptor of a regular file that was resolved; the caller closes it; errors as `read`."""
        if found.status is None:
            raise NotFoundError(f"{path}: no such file", path=path)
        if not stat.S_ISREG(found.status.st_mode):
            check_regular(found.status.st_mode, path)
        try:
            descriptor = open_regular(found, self.boundary, path)
        except FileNotFoundError:
            raise NotFoundError(f"{path}: was removed just now", path=path) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise PathBlockedError(
                    f"{path}: a link took the file's place just now",
                    hint="Try again when no other program changes the tree.",
                    path=path,
                ) from None
            raise unreadable(error, path) from None
        try:
            # What is held is this very file, and was looked at then.
            status = found.status if found.handle >= 0 else os.fstat(descriptor)
            if status.st_nlink > 1:
                self._check_name(path, status)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def check_file(self, path: str, descriptor: int, status: os.stat_result) -> None:
        """Refuse an open file that is not the root's, or that is a secret elsewhere.

        Args:
            path: How it is called in the message.
            descriptor: The file.
            status: What the system says of it.

        Raises:
            PathBlockedError: It lies on another file system, or is another name of a secret.
        """
        self.boundary.check(descriptor, status, path)
        self._check_name(path, status)

    def is_secret(self, path: str, device: int, inode: int) -> bool:
        """Whether a file is a secret of the home folder, or of this root, under another name."""
        return self._secrets is not None and (
            self._secrets.holds(device, inode)
            or self._secrets.holds_inside(self.path, path, device, inode)
        )

    def _check_name(self, path: str, status: os.stat_result) -> None:
        """Refuse a file that is another name (a hard link) of a secret elsewhere."""
        if status.st_nlink > 1 and self.is_secret(path, status.st_dev, status.st_ino):
            raise PathBlockedError(
                f"{path}: is another name (a hard link) of a file in which keys, passwords or "
                "tokens of the person are kept",
                hint="Work without this file.",
                path=path,
                rule="links to secrets",
            )


class OpenFile:
    """The entry that a name led to, kept open, so that it is read and changed without another lookup."""

    def __init__(self, root: RootReader, found: Resolution, info: FileInfo) -> None:
        self.info = info
        self._root, self._found = root, found
        self._opened = -1

    @property
    def folder(self) -> int:
        """Descriptor of the folder that it lies in; -1 where folders on the way are missing."""
        return -1 if self._found.rest else self._found.parent

    @property
    def stamp(self) -> tuple[int, ...]:
        """The file's stamp when it was found; empty where nothing is kept open."""
        return () if self.status is None else _stamp(self.status)

    @property
    def status(self) -> os.stat_result | None:
        """The file's status when it was found; None where nothing is kept open."""
        return self._found.status if self._found.handle >= 0 else None

    def present_stamp(self) -> tuple[int, ...]:
        """The file's stamp now."""
        return _stamp(os.fstat(self._found.handle))

    def read(self, *, limit: int) -> FileContents:
        """Read this very file whole, in one state; errors as for `RootReader.read`."""
        self._shut()
        return read_whole(self.reader(), limit, self.info.path, self.status)

    def reader(self) -> int:
        """A descriptor of this very file, open until this is closed; errors as for `RootReader.read`."""
        if self._opened < 0:
            self._opened = self._root.open_found(self._found, self.info.path)
        return self._opened

    def open_again(self, parent: int, name: str) -> tuple[int, os.stat_result] | None:
        """A new descriptor of this very file, and its status, if a name in a folder leads to it; else None.

        In a file system of layers one from before may be blind to what was written since.
        """
        status, info = os.stat(name, dir_fd=parent, follow_symlinks=False), self.info
        same = (status.st_dev, status.st_ino) == (info.device, info.inode)
        if same and self._found.handle >= 0 and has_proc():
            return os.open(f"/proc/self/fd/{self._found.handle}", OPEN), status
        return None

    def read_part(self, start: int, size: int) -> bytes | None:
        """A range of this very file's bytes; None where it changed meanwhile. Errors as for `RootReader.read`."""
        descriptor = self._root.open_found(self._found, self.info.path)
        try:
            data = os.pread(descriptor, size, start)
            same = len(data) == size and _stamp(os.fstat(descriptor)) == self.stamp
        except OSError as error:
            raise unreadable(error, self.info.path) from None
        finally:
            os.close(descriptor)
        return data if same else None

    @contextmanager
    def stream(self) -> Iterator[tuple[BufferedReader, int]]:
        """This very file as an open stream with its size in bytes; errors as for `RootReader.read`."""
        with open(self._root.open_found(self._found, self.info.path), "rb") as stream:
            yield stream, os.fstat(stream.fileno()).st_size

    def close(self) -> None:
        """Let go of it; once."""
        self._shut()
        self._found.close()

    def _shut(self) -> None:
        if self._opened >= 0:
            os.close(self._opened)
            self._opened = -1


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    times = status.st_ctime_ns, status.st_mtime_ns
    return *times, status.st_size, status.st_ino, status.st_dev, status.st_mode, status.st_nlink


def root_gone() -> PathBlockedError:
    """The refusal of everything beneath a root whose path leads elsewhere by now."""
    return PathBlockedError(
        "the root is no longer there, or another folder has taken its place",
        hint="Ask the person to start filepact again for the folder that is meant.",
    )


@contextmanager
def _opened(found: Resolution) -> Iterator[int]:
    """Open a folder that was only held (``O_PATH``), to look at its entries."""
    descriptor = os.open(".", FOLDER, dir_fd=found.handle)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check_files(folder: int, path: str | os.PathLike[str]) -> None:
    if is_made_up(folder):
        raise PathBlockedError(
            f"{path}: is on a file system of the kernel, such as /proc",
            hint="Name a folder of files as the root.",
        )

"""Copies of files that are too large to be read before a call which may remove or overwrite them.

A copy has no name, and lies on the disk of the state folder: what stops this process leaves nothing behind.  Where the file
system shares blocks (reflink), a copy takes no room.  Elsewhere the bytes are copied, but for a file that can only be
removed or replaced: that stays open, and its bytes are there for as long as it is, whatever becomes of its name.

What is too large for the journal as well gets a name besides, and is set aside under it once it is lost: the copy, or the
file itself (hard link), which loses that name with the call.  Such a link changes a time of the file (ctime), by which
everybody tells whether it was changed, and so nothing smaller has one.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from contextlib import suppress
from glob import escape, glob
from os.path import basename, dirname, join
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from filepact.errors import FilepactError
from filepact.fs.atomic import LARGEST, rename_new, sync
from filepact.fs.attributes import dress, read_attributes, set_time
from filepact.fs.read import FileContents, has_proc, made_meanwhile, read_whole, write_failed

if TYPE_CHECKING:
    from collections.abc import Container, Hashable

    from filepact.domain.attributes import Attributes
    from filepact.domain.document import Revision
    from filepact.fs.read_only_root import RootReader
    from filepact.fs.root import Root
    from filepact.fs.watch import Stamp

__all__ = ["KeptCopies", "Way", "find_aside", "put_back"]

Way = Literal["", "copy", "open"]
"""How a file is kept: not at all, as a copy, or as the file itself, whose bytes are lost if they are overwritten in place."""

_FICLONE: Final = 0x40049409  # of <linux/fs.h>
_STEP: Final = 8 << 20
_MOST_COPIES: Final = 128
_ASIDE: Final = "kept"
_LOST: Final = ".lost"
_MOST_ASIDE: Final = 8 << 30
"""Bytes on the disk that all may take that were set aside and are lost; what came first goes first."""


class _Copy(NamedTuple):
    descriptor: int
    stamp: Stamp
    status: os.stat_result
    attributes: Attributes | None
    way: Way


class KeptCopies:
    """Copies of files, by any keys.

    Args:
        folder: Where they are, beside the journal; empty for none.
        aside: By which those with a name are told from those of other roots; empty for none.
        most: Bytes that all of them may have together.
        free: Bytes that stay free on the disk of the folder.
    """

    def __init__(
        self, folder: str, aside: str = "", *, most: int = 256 << 20, free: int = 512 << 20
    ) -> None:
        self._folder = folder
        self._aside = aside and join(dirname(folder), _ASIDE, aside)
        self._most = most
        self._free = free
        self._copies: dict[Hashable, _Copy] = {}

    def keep(
        self,
        key: Hashable,
        root: RootReader,
        path: str,
        stamp: Stamp,
        *,
        in_place: bool,
        racy: bool,
        until: float,
    ) -> Way:
        """Keep a file as it is.

        Args:
            key: By which it is asked for again.
            root: Where it is.
            path: Its name there.
            stamp: Its stamp.
            in_place: Whether it may be overwritten in place, so that a copy is wanted rather than the open file.
            racy: Whether it may be overwritten and keep its stamp, so that the open file would not do.
            until: When copying has to end, by the monotonic clock.
        """
        old = self._copies.get(key)
        if old and old.stamp.is_of_same(stamp) and (old.way == "copy" or not in_place):
            return old.way
        self._let_go(key)
        large = stamp.size > LARGEST
        others = [one.stamp.size for one in self._copies.values() if one.stamp.size <= LARGEST]
        if not (self._aside if large else self._folder) or stamp.is_link:
            return ""
        if len(self._copies) >= _MOST_COPIES or (
            not large and sum(others, stamp.size) > self._most
        ):
            return ""
        source = copy = -1
        try:
            source = root.open_regular(path, follow=False)
            status = os.fstat(source)
            place = self._place_aside(stamp, status.st_dev) if large else ""
            copied = in_place or (racy and not large)
            copy = self._copied(source, stamp, place, in_place=copied, until=until)
            if copy < 0 and ((racy and not large) or _stamped(os.fstat(source)) != stamp[:4]):
                return ""
            way: Way = "open" if copy < 0 else "copy"
            held, attributes = source if copy < 0 else copy, read_attributes(source, status)
            if large and (way == "open" or has_proc()):
                _give_name(held, place, root, path)
            self._copies[key] = _Copy(os.dup(held), stamp, status, attributes, way)
        except (FilepactError, OSError):
            return ""
        finally:
            for one in (source, copy):
                if one >= 0:
                    os.close(one)
        return way

    def read(self, key: Hashable, stamp: Stamp) -> FileContents | None:
        """The bytes of a kept copy; None where there is none, or it was overwritten in place.

        Args:
            key: The file.
            stamp: That state.
        """
        copy = self._copies.get(key)
        if copy is None or copy.stamp != stamp:
            return None
        try:
            data = read_whole(copy.descriptor, LARGEST, "").data
            # The other time of an open file is that at which it lost its name.
            same = copy.way == "copy" or _stamped(os.fstat(copy.descriptor))[:3] == stamp[:3]
        except (FilepactError, OSError):
            return None
        if not same or len(data) != stamp.size:
            return None
        told = copy.status
        return FileContents(
            data, stamp.permissions, told.st_dev, told.st_ino, told.st_nlink, copy.attributes
        )

    def is_kept(self, key: Hashable, stamp: Stamp) -> bool:
        """Whether a file is kept, or is the same as one that is, by another name."""
        return key in self._copies or any(
            (one.stamp.inode, one.stamp.size) == stamp[:2] for one in self._copies.values()
        )

    def is_aside(self, stamp: Stamp) -> bool:
        """Whether a file was set aside in this state; it counts as lost from now on."""
        if stamp.size <= LARGEST or not self._aside:
            return False
        place = self._place(stamp)
        with suppress(OSError):
            os.rename(place, place + _LOST)
        with suppress(OSError):
            found = os.stat(place + _LOST)
            return (found.st_size, found.st_mtime_ns) == stamp[1:3]
        return False

    def release(self, wanted: Container[Hashable] = ()) -> None:
        """Let go of all copies but some."""
        for key in [one for one in self._copies if one not in wanted]:
            self._let_go(key)

    def _let_go(self, key: Hashable) -> None:
        if (copy := self._copies.pop(key, None)) is not None:
            if copy.way == "copy" or os.fstat(copy.descriptor).st_nlink > 1:
                with suppress(OSError):  # It has another name by now, or never had one.
                    os.unlink(self._place(copy.stamp))
            os.close(copy.descriptor)

    def _place(self, stamp: Stamp) -> str:
        return join(self._aside, stamp.set_aside.content)

    def _place_aside(self, stamp: Stamp, disk: int) -> str:
        """Where a file can be set aside; what takes too much room there is given up."""
        os.makedirs(self._aside, 0o700, exist_ok=True)
        if os.stat(self._aside).st_dev != disk:
            raise OSError(errno.EXDEV, "it can only be moved back on one file system")
        place, known = self._place(stamp), {self._place(one.stamp) for one in self._copies.values()}
        left, found = _MOST_ASIDE, [(one, os.stat(one)) for one in glob(f"{escape(self._aside)}/*")]
        for one, status in sorted(found, key=lambda one: -one[1].st_ctime_ns):
            left -= status.st_blocks * 512
            # What a killed process has left is in its own place still, or a copy of what is kept now.
            given_up = one not in known and not one.endswith(_LOST)
            if left < 0 or (given_up and (status.st_nlink > 1 or one == place)):
                os.unlink(one)
        return place

    def _copied(self, file: int, stamp: Stamp, place: str, *, in_place: bool, until: float) -> int:
        """The descriptor of a copy; -1 for none.  Where nothing is lost by it, only one that takes no room is made."""
        with suppress(OSError):
            disk, taken = os.statvfs(self._folder), os.fstat(file).st_blocks * 512
            room = taken <= self._most and disk.f_bavail * disk.f_frsize - taken >= self._free
            named = "" if has_proc() else place
            return _copy(file, self._folder, named, stamp, until if in_place and room else 0.0)
        return -1


def _give_name(file: int, place: str, root: RootReader, path: str) -> None:
    """Give an open file the name by which it can be set aside."""
    held, above = has_proc(), dirname(path) or "."
    parent = os.open("/", os.O_RDONLY) if held else root.open_directory(above, follow=False)
    # Without /proc by its name, which may lead to another file by now.
    named = f"/proc/self/fd/{file}" if held else basename(path)
    try:
        os.link(named, place, src_dir_fd=parent, follow_symlinks=held)
    finally:
        os.close(parent)
    if not os.path.samestat(os.lstat(place), os.fstat(file)):
        os.unlink(place)
        raise OSError(errno.ESTALE, "another file has its name")


def find_aside(state: str, wanted: Revision | None) -> tuple[str, int]:
    """Where in a state folder a file is that was set aside, and its inode; empty where it is not."""
    if wanted is not None and wanted.is_set_aside:
        for place in glob(f"{escape(state)}/{_ASIDE}/*/{wanted.content}*"):
            return place, os.stat(place).st_ino
    return "", 0


def put_back(
    place: str, root: Root, path: str, *, now: Revision | None, other: str, token: str
) -> None:
    """Put a file back that was set aside; one that has another name by now is renamed.

    Args:
        place: Where it is, of `find_aside`.
        root: Where it is put.
        path: Its canonical path.
        now: The state of the file that is there; None: there is none.
        other: The canonical path of its other name; empty for none.
        token: As for `Root.stage`.

    Raises:
        StaleFileError: Something else is there.
        WriteFailedError: The system refused.
    """
    if now is not None:
        root.remove(path, expected=now, token=token)
    folder = dirname(path) or "."
    root.make_directories(folder)
    aside = os.open(dirname(place), os.O_RDONLY | os.O_CLOEXEC)
    parent = root.open_directory(folder, follow=False)
    try:
        if other:
            root.rename(other, path, ())
            os.unlink(place)
        else:
            rename_new(aside, basename(place), basename(path), parent)
        sync(parent)
    except FileExistsError:
        raise made_meanwhile(path) from None
    except OSError as error:
        raise write_failed(error, path) from None
    finally:
        os.close(aside)
        os.close(parent)


def _copy(source: int, folder: str, place: str, stamp: Stamp, until: float) -> int:
    """A copy of an open file, with all that the file has; holes stay holes.

    Args:
        source: The file.
        folder: On whose disk.
        place: Its name, where the system gives it none later; empty for none.
        stamp: That of the file.
        until: When copying has to end, by the monotonic clock; blocks that can be shared are in any case.

    Returns:
        Its descriptor; -1 where the time was too short, or the file is another by now.
    """
    new = os.O_CREAT | os.O_EXCL if place else getattr(os, "O_TMPFILE", 0)
    try:
        copy = os.open(place or folder, new | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        if place:
            raise
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            copy = os.dup(file.fileno())
    whole = False
    try:
        if _cloned(source, copy) or _filled(source, copy, stamp.size, until):
            status = os.fstat(source)
            dress(copy, status.st_mode & 0o7777, read_attributes(source, status))
            # Without it, what was set aside is not taken for whole.
            set_time(copy, status.st_mtime_ns)
            whole = _stamped(status) == stamp[:4]
    finally:
        if not whole:
            os.close(copy)
            if place:
                os.unlink(place)
    return copy if whole else -1


def _filled(source: int, copy: int, size: int, until: float) -> bool:
    os.ftruncate(copy, size)
    at = end = 0
    while at < size and time.monotonic() < until:
        if at == end:
            try:
                at = os.lseek(source, at, os.SEEK_DATA)
                end = min(os.lseek(source, at, os.SEEK_HOLE), size)
            except OSError as error:
                at, end = (size if error.errno == errno.ENXIO else at), size
        elif block := os.pread(source, min(_STEP, end - at), at):
            at += os.pwrite(copy, block, at)
        else:
            return False
    return at >= size


def _cloned(source: int, copy: int) -> bool:
    """Whether a file shares all blocks of another now; nothing is done where the file system cannot do that."""
    try:
        import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

        fcntl.ioctl(copy, _FICLONE, source)
    except (ImportError, OSError):
        return False
    return True


def _stamped(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

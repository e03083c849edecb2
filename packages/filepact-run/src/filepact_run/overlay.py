"""Layers: what a program changed in roots that an overlay lay over.

A layer is the upper folder of an overlay: whole copies of what was written, devices with the
numbers 0 and 0 for what was removed, and a mark on a folder that hides all that lies below it.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from filepact.domain.document import Revision
from filepact.errors import NotFoundError
from filepact.fs.attributes import open_closed, read_attributes
from filepact.fs.kernel import getxattr, removexattr, setxattr
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

__all__ = [
    "TOP",
    "LayerEntry",
    "LayerKind",
    "LayerMount",
    "build_folders",
    "carry",
    "folder_in",
    "is_copy",
    "kind_at",
    "last_change",
    "layer_entries",
    "make_folders",
    "mark_whole",
    "remove_tree",
    "room",
    "settle",
]

LayerKind = Literal["file", "link", "folder", "opaque", "whiteout", "other"]
"""``opaque``: a folder that hides what lies below it.  ``whiteout``: the name is gone."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPAQUE: Final = "user.overlay.opaque"
_ORIGIN: Final = "user.overlay.origin"
TOP: Final = "top"  # a folder beside a layer's, which is as that was made


@dataclass(frozen=True, slots=True)
class LayerMount:
    """A root with the folders that take its changes.

    Attributes:
        root: The root's true path.
        upper: Where changes go; absolute, on a file system that has what an overlay needs.
        work: An empty folder beside it, for the kernel.  Another, `TOP`, is as the upper one was at first.
    """

    root: str
    upper: str
    work: str


class LayerEntry(NamedTuple):
    """One name in a layer.

    Attributes:
        path: Relative to the root.
        mode: Permission bits.
        size: Bytes.
        changed: When anything about it changed last, nanoseconds since the epoch.
    """

    path: str
    kind: LayerKind
    mode: int
    size: int
    changed: int


def layer_entries(upper: str, skip: frozenset[str] = frozenset()) -> Iterator[LayerEntry]:
    """Everything in a layer, a folder before what lies in it; no link is followed.

    Args:
        upper: The layer's folder.
        skip: Paths beneath it that are left out, with all that lies in them.
    """
    yield from _entries(os.open(upper, _FOLDER), "", skip)


def _entries(folder: int, prefix: str, skip: frozenset[str]) -> Iterator[LayerEntry]:
    """The entries of an open folder, which is closed."""
    try:
        for name in sorted(os.listdir(folder)):
            path = prefix + name
            if path in skip:
                continue
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue  # a program is at work
            below = -1
            kind = _kind(status)
            if kind == "folder":
                try:
                    below = open_closed(folder, name)
                except OSError as error:
                    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                        continue
                    raise
                kind = "opaque" if _is_opaque(below) else "folder"
            mode = stat.S_IMODE(status.st_mode)
            yield LayerEntry(path, kind, mode, status.st_size, status.st_ctime_ns)
            if below >= 0:
                yield from _entries(below, f"{path}/", skip)
    finally:
        os.close(folder)


def _kind(status: os.stat_result) -> LayerKind:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISLNK(mode):
        return "link"
    return "whiteout" if stat.S_ISCHR(mode) and status.st_rdev == 0 else "other"


def _is_opaque(folder: int) -> bool:
    try:
        return getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


def is_copy(upper: str, path: str) -> bool:
    """Whether an entry of a layer was copied from the root to be changed; else it was made anew."""
    try:
        getxattr(os.path.join(upper, path), _ORIGIN, follow_symlinks=False)
    except OSError:
        return False
    return True  # whatever it says


def last_change(uppers: Iterable[str]) -> tuple[int, int]:
    """When something in some layers changed last, by the clock of stamps, and how many names they have."""
    last = count = 0
    for upper in uppers:
        last = max(last, os.stat(upper).st_ctime_ns)
        for entry in layer_entries(upper):
            last, count = max(last, entry.changed), count + 1
    return last, count


def mark_whole(upper: str, path: str) -> None:
    """Mark a folder that is the layer's alone: what comes to lie below it is not to be seen through it.

    Raises:
        OSError: The system refused, or there is no such folder.
    """
    folder = _open_below(upper, path)
    try:
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        os.fchmod(folder, mode | 0o700)
        setxattr(folder, _OPAQUE, b"y")
        os.fchmod(folder, mode)
    finally:
        os.close(folder)


def folder_in(upper: str, path: str) -> Revision:
    """The state of a folder in a layer.

    Raises:
        NotFoundError: It is not there any more, or not to be had.
    """
    try:
        folder = _open_below(upper, path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    try:
        status = os.fstat(folder)
        return Revision.folder(stat.S_IMODE(status.st_mode), read_attributes(folder, status))
    finally:
        os.close(folder)


def _open_below(upper: str, path: str) -> int:
    folder = os.open(upper, _FOLDER)
    try:
        for part in path.split("/"):
            below = open_closed(folder, part)
            os.close(folder)
            folder = below
    except BaseException:
        os.close(folder)
        raise
    return folder


def settle(upper: str, keep: frozenset[str]) -> None:
    """Take out of a layer what was committed; no program may use it meanwhile.

    Args:
        upper: The layer's folder.
        keep: Paths beneath it that stay, with all that lies in them.

    Raises:
        OSError: The system refused.
    """
    folder = os.open(upper, _FOLDER)
    try:
        _settle(folder, "", keep)
    finally:
        os.close(folder)


def _settle(folder: int, prefix: str, keep: frozenset[str]) -> None:
    for name in os.listdir(folder):
        path = prefix + name
        if path in keep:
            continue
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=folder)
        elif any(one.startswith(f"{path}/") for one in keep):
            below = open_closed(folder, name)
            try:
                _settle(below, f"{path}/", keep)
                with suppress(OSError):
                    removexattr(below, _OPAQUE)
            finally:
                os.close(below)
        else:
            _remove_folder(folder, name)


def build_folders(
    layer: LayerMount, began: int, is_one: Callable[[str, Callable[[], list[str]]], bool]
) -> tuple[str, ...]:
    """The folders that programs fill and that a layer has, or removes; each without those in it.

    Not those out of which something was moved elsewhere, of which that may be the only copy.

    Args:
        layer: The layer.
        began: When it was empty, nanoseconds since the epoch by the clock of stamps.
        is_one: Whether a folder is one, by its name and, if it needs them, the names in it.
    """
    found: list[str] = []
    inside: set[str] = set()
    moved: set[tuple[int, int]] = set()
    for entry in layer_entries(layer.upper):
        name, place = os.path.basename(entry.path), os.path.join(layer.upper, entry.path)
        if found and entry.path.startswith(f"{found[-1]}/"):
            inside.add(entry.path)
        elif entry.kind in ("folder", "opaque"):
            if is_one(name, partial(os.listdir, place)):
                found.append(entry.path)
        elif entry.kind == "whiteout" and is_one(name, list):
            found.append(entry.path)
        elif entry.kind == "file" and (sign := _sign(place))[1] < began:
            moved.add(sign)  # A file keeps its time where it is moved.
    return tuple(one for one in found if not (moved and _holds(layer.root, one, moved, inside)))


def _sign(path: str) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_size, status.st_mtime_ns


def _holds(
    root: str, folder: str, signs: Collection[tuple[int, int]], besides: Collection[str]
) -> bool:
    """Whether a folder of a root holds a file of some sizes and times, but for some that a layer has."""
    for above, _, names in os.walk(os.path.join(root, folder)):
        for place in (os.path.join(above, name) for name in names):
            if os.path.relpath(place, root) not in besides:
                with suppress(OSError):
                    if _sign(place) in signs:
                        return True
    return False


def carry(layer: LayerMount, path: str) -> None:
    """Move what a layer holds of one folder into the root, file by file and unrecorded.

    What is neither file, link nor folder is left out.  No program may use the layer meanwhile.

    Args:
        layer: The layer.
        path: The folder, relative to the root.

    Raises:
        OSError: The system refused, or a folder above is none in the root; some of it may be moved.
    """
    source, target = os.open(layer.upper, _FOLDER), os.open(layer.root, _FOLDER)
    try:
        *above, name = path.split("/")
        for part in above:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=target)
            source, target = _below(source, part), _below(target, part)
        _carry(source, target, name)
    finally:
        os.close(source)
        os.close(target)


def _below(folder: int, name: str) -> int:
    """Open a folder in another, which is closed."""
    below = os.open(name, _FOLDER, dir_fd=folder)
    os.close(folder)
    return below


def _carry(source: int, target: int, name: str) -> None:
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    kind = _kind(status)
    there = kind_at(target, name)
    if kind == "other":
        return
    if kind != "folder":
        if there is not None and (kind == "whiteout" or there == "folder"):
            _remove_at(target, name)
        if kind == "file" and status.st_mode & 0o7000:
            os.chmod(name, stat.S_IMODE(status.st_mode) & 0o777, dir_fd=source)
        if kind != "whiteout":
            _move(source, target, name)
        return
    below = open_closed(source, name)
    try:
        if there is not None and (there != "folder" or _is_opaque(below)):
            _remove_at(target, name)
            there = None
        if there is None:
            os.mkdir(name, stat.S_IMODE(status.st_mode) & 0o777 | 0o700, dir_fd=target)
        inside = os.open(name, _FOLDER, dir_fd=target)
        try:
            for one in os.listdir(below):
                _carry(below, inside, one)
        finally:
            os.close(inside)
    finally:
        os.close(below)


def kind_at(folder: int, name: str) -> LayerKind | None:
    """The kind of an entry in an open folder, links not followed; None where there is none."""
    try:
        return _kind(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _remove_at(folder: int, name: str) -> None:
    if kind_at(folder, name) == "folder":
        _remove_folder(folder, name)
    else:
        os.unlink(name, dir_fd=folder)


def _move(source: int, target: int, name: str) -> None:
    """Move a file or link over whatever has its name; another file system gets a copy."""
    try:
        os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        import shutil  # noqa: PLC0415 - rarely needed, and slow to load

        places = (f"/proc/self/fd/{folder}/{name}" for folder in (source, target))
        shutil.copy2(*places, follow_symlinks=False)


def make_folders(paths: Iterable[str]) -> None:
    """Make folders, each for its owner alone, as far as they are missing and can be made."""
    for path in paths:
        with suppress(OSError):
            os.makedirs(path, 0o700, exist_ok=True)


def remove_empty(paths: Iterable[str]) -> None:
    """Remove folders in which nothing is."""
    for path in paths:
        with suppress(OSError):
            os.rmdir(path)


def room(path: str) -> int:
    """Bytes that are free for us on a folder's file system."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def remove_tree(path: str) -> None:
    """Remove a file or folder; folders that nobody may enter too, and no link is followed."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    above = os.open(os.path.dirname(path), _FOLDER)
    try:
        _remove_folder(above, os.path.basename(path))
    finally:
        os.close(above)


def _remove_folder(above: int, name: str) -> None:
    with suppress(PermissionError):
        os.chmod(name, 0o700, dir_fd=above)
    folder = os.open(name, _FOLDER, dir_fd=above)
    try:
        for one in os.listdir(folder):
            try:
                os.unlink(one, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.EISDIR, errno.EPERM):
                    raise
                _remove_folder(folder, one)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=above)

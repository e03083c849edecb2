"""Layers: what a program changed in roots that an overlay lay over, and the folders that hold it.

A layer is the upper folder of an overlay: whole copies of what was written, devices with the
numbers 0 and 0 for what was removed, and a mark on a folder that hides all that lies below it.  A
*run* is a folder of the state folder with a layer for each root; it lasts until its layers were
committed or are discarded, whatever has become of the program.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

from filepact.errors import NotFoundError, StateFailedError
from filepact.fs.namespace import LayerMount
from filepact.fs.state import write_note
from filepact.fs.watch import moment
from filepact.values import asdict, dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "LayerEntry",
    "LayerKind",
    "RunFolder",
    "RunRecord",
    "build_folders",
    "carry",
    "existing",
    "is_going_on",
    "layer_entries",
    "list_runs",
    "make_folders",
    "room",
    "settle",
]

LayerKind = Literal["file", "link", "folder", "opaque", "whiteout", "other"]
"""``opaque``: a folder that hides what lies below it.  ``whiteout``: the name is gone."""

_RUNS: Final = "runs"
_RECORD: Final = "run.json"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPAQUE: Final = "user.overlay.opaque"


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
    """The same of an open folder, which is closed."""
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
                    below = _open_folder(name, folder)
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


def _open_folder(name: str, folder: int) -> int:
    """Open a folder of ours, which a program may have closed to everybody."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        os.chmod(name, mode | 0o700, dir_fd=folder)
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        finally:
            os.chmod(name, mode, dir_fd=folder)


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
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


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
            below = _open_folder(name, folder)
            try:
                _settle(below, f"{path}/", keep)
                with suppress(OSError):
                    os.removexattr(below, _OPAQUE)
            finally:
                os.close(below)
        else:
            _remove_folder(folder, name)


def build_folders(
    upper: str, is_one: Callable[[str, Callable[[], list[str]]], bool]
) -> tuple[str, ...]:
    """The folders that programs fill and that a layer has, or removes; each without those in it.

    Args:
        upper: The layer's folder.
        is_one: Whether a folder is one, by its name and, if it needs them, the names in it.
    """
    found: list[str] = []
    for entry in layer_entries(upper):
        if found and entry.path.startswith(f"{found[-1]}/"):
            continue
        name, place = os.path.basename(entry.path), os.path.join(upper, entry.path)
        if entry.kind in ("folder", "opaque"):
            if is_one(name, partial(os.listdir, place)):
                found.append(entry.path)
        elif entry.kind == "whiteout" and is_one(name, list):
            found.append(entry.path)
    return tuple(found)


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
    there = _kind_at(target, name)
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
    below = _open_folder(name, source)
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


def _kind_at(folder: int, name: str) -> LayerKind | None:
    try:
        return _kind(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _remove_at(folder: int, name: str) -> None:
    if _kind_at(folder, name) == "folder":
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
        places = (f"/proc/self/fd/{folder}/{name}" for folder in (source, target))
        shutil.copy2(*places, follow_symlinks=False)


def existing(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths where something is; a link counts."""
    return tuple(path for path in dict.fromkeys(paths) if os.path.lexists(path))


def make_folders(paths: Iterable[str]) -> None:
    """Make folders, each for its owner alone, as far as they are missing and can be made."""
    for path in paths:
        with suppress(OSError):
            os.makedirs(path, 0o700, exist_ok=True)


def room(path: str) -> int:
    """Bytes that are free for us on a folder's file system."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when its program has ended.

    Attributes:
        id: ``r`` and eight hexadecimal digits.
        command: The program with its words.
        agent: The name that rules know the program by.
        mode: ``auto`` or ``review``.
        roots: True paths; the layers have the same order.
        folder: Where the program was started.
        began: When the layers were made, nanoseconds since the epoch, by the clock of stamps.
        created: The same by the calendar, in seconds.
        ended: How the program ended, as shells tell it; None if nobody saw it.
        left: What is still in the layers, by path, with the reason; filled in by a commit.
    """

    id: str
    command: tuple[str, ...]
    agent: str
    mode: str
    roots: tuple[str, ...]
    folder: str
    began: int
    created: float
    ended: int | None = None
    left: dict[str, str] = field(default_factory=dict)


class RunFolder:
    """The folder of one run, held by one process at a time; a context manager that gives it up.

    Attributes:
        record: What is known of it.
        path: Where it is.
    """

    def __init__(self, path: str, record: RunRecord, lock: int) -> None:
        self.path = path
        self.record = record
        self._lock = lock

    @classmethod
    def make(
        cls,
        state: str,
        *,
        command: Sequence[str],
        agent: str,
        mode: str,
        roots: Sequence[str],
        folder: str,
    ) -> RunFolder:
        """Make the folder of a new run.

        Args:
            state: The state folder.
            command: See `RunRecord`, as for the others.
            agent: See there.
            mode: See there.
            roots: See there.
            folder: See there.

        Raises:
            StateFailedError: It cannot be made.
        """
        name = f"r{secrets.token_hex(4)}"
        path = os.path.join(state, _RUNS, name)
        try:
            os.makedirs(path, mode=0o700)
            lock = _take(path)
            for number in range(len(roots)):
                # As open as the root itself is: the overlay's top takes its bits from here.
                bits = stat.S_IMODE(os.stat(roots[number]).st_mode)
                for part in ("upper", "work"):
                    os.makedirs(os.path.join(path, str(number), part), mode=0o700)
                os.chmod(os.path.join(path, str(number), "upper"), bits)
            os.mkdir(os.path.join(path, "private"), 0o700)
        except OSError as error:
            raise _unusable(path, error) from None
        if lock is None:
            raise StateFailedError(f"{path} is taken")
        record = RunRecord(
            *(name, tuple(command), agent, mode, tuple(roots), folder, moment(), time.time())
        )
        run = cls(path, record, lock)
        run.note()
        return run

    @classmethod
    def open(cls, state: str, name: str) -> RunFolder:
        """Take over a run that was left.

        Args:
            state: The state folder.
            name: The run's id, or the beginning of it.

        Raises:
            NotFoundError: There is no such run, or more than one.
            StateFailedError: It is still going on.
        """
        found = [one for one in list_runs(state) if name and one.id.startswith(name)]
        if len(found) != 1:
            what = "several runs" if found else "no run"
            raise NotFoundError(
                f"{what} of which the id begins with {name!r}",
                hint="`filepact runs` lists them.",
            )
        path = os.path.join(state, _RUNS, found[0].id)
        lock = _take(path)
        if lock is None:
            raise StateFailedError(
                f"the run {found[0].id} is still going on",
                hint="Wait until its program has ended, or end it.",
            )
        # Another process may have settled it just before.
        record = _read(path)
        if record is None:
            os.close(lock)
            raise NotFoundError(f"the run {found[0].id} is gone")
        return cls(path, record, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    @property
    def private(self) -> str:
        """The folder for the program's temporary files."""
        return os.path.join(self.path, "private")

    def layers(self) -> tuple[LayerMount, ...]:
        """The layers, of the roots in their order."""
        return tuple(
            LayerMount(root, *(os.path.join(self.path, str(at), one) for one in ("upper", "work")))
            for at, root in enumerate(self.record.roots)
        )

    def settle(self, left: dict[str, str]) -> None:
        """Keep of the layers only what was not committed, as changes that begin now.

        Args:
            left: By absolute path, with the reason.

        Raises:
            StateFailedError: The system refused.
        """
        try:
            for layer in self.layers():
                prefix = f"{layer.root.rstrip('/')}/"
                keep = (one[len(prefix) :] for one in left if one.startswith(prefix))
                settle(layer.upper, frozenset(keep))
        except OSError as error:
            raise _unusable(self.path, error) from None
        self.record = replace(self.record, began=moment())
        self.note(left=left)

    def note(self, *, ended: int | None = None, left: dict[str, str] | None = None) -> None:
        """Keep what is known by now.

        Raises:
            StateFailedError: It cannot be written; what was there stays.
        """
        known = self.record
        self.record = replace(
            known,
            ended=known.ended if ended is None else ended,
            left=known.left if left is None else left,
        )
        write_note(self.path, _RECORD, json.dumps(asdict(self.record)).encode())

    def keep_apart(self, path: str) -> str:
        """Move a file of this machine out of its place; the place that it has now.

        Raises:
            OSError: The system refused.
        """
        folder = os.path.join(self.path, "apart")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        target = os.path.join(folder, f"{secrets.token_hex(2)}-{os.path.basename(path)}")
        try:
            os.rename(path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            target = f"{path}.{self.record.id}"
            os.rename(path, target)
        return target

    def discard(self) -> None:
        """Remove it with all that its layers hold.

        Raises:
            StateFailedError: The system refused; what is left of it is still a run.
        """
        try:
            for name in os.listdir(self.path):
                if name not in (_RECORD, "lock"):
                    _remove(os.path.join(self.path, name))
            _remove(self.path)
        except OSError as error:
            raise _unusable(self.path, error) from None


def list_runs(state: str) -> tuple[RunRecord, ...]:
    """The runs of a state folder, oldest first."""
    folder = os.path.join(state, _RUNS)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    found = (_read(os.path.join(folder, name)) for name in names)
    return tuple(sorted(filter(None, found), key=lambda one: one.created))


def is_going_on(state: str, name: str) -> bool:
    """Whether a process holds a run."""
    lock = _take(os.path.join(state, _RUNS, name))
    if lock is not None:
        os.close(lock)
    return lock is None


def _read(path: str) -> RunRecord | None:
    try:
        with open(os.path.join(path, _RECORD), "rb") as stream:
            found = json.load(stream)
        found["command"], found["roots"] = tuple(found["command"]), tuple(found["roots"])
        return RunRecord(**found)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _take(path: str) -> int | None:
    """Take a run's lock; None where somebody has it."""
    lock = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _remove(path: str) -> None:
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


def _unusable(path: str, error: OSError) -> StateFailedError:
    return StateFailedError(
        f"the folder of a run, {path}, cannot be used: {error.strerror}",
        hint="Make it writable, or room on its disk, and try again.",
    )

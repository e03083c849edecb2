"""Locks of real files, one for each, in this process and across processes.

All locks lie in one file of the state folder, never on anybody's own.  A key is one byte of it, at
an offset of 62 bits: nobody waits for another key, one descriptor holds any number of them, and
the file does not grow.  The names of one folder stand side by side there, so that who needs many
of them locks the folder in one piece: the kernel compares each lock with every other one of the
file.  Such record locks (``F_OFD_SETLK``, see fcntl_locking(2)) belong to the
open file description: the kernel frees them when their holder dies, and threads exclude each
other by them as processes do.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import threading
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

from filepact.errors import StateFailedError, TimedOutError
from filepact.fs.kernel import SET_LOCK, WAIT_LOCK, lock_holder, lock_request
from filepact.values import begun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["PATIENCE", "FileLocks", "ProcessLock", "described", "keep_out", "locked_by"]

PATIENCE: Final = 10.0
"""Seconds that are waited for locks."""

_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_NOTES: Final = 1_024
_LOOK: Final = (
    0.01  # seconds after which a lock is asked for again, where no thread can wait for it
)
_TOLD: Final = 4_096  # bytes of what the holder of a lock tells
_NOTE: Final = struct.Struct("=q")
_MANY: Final = 512  # keys that are locked one by one
_NAMES: Final = 22  # bits of an offset that stand for the name; the others for its folder
_BEFORE: Final = ".before."


class FileLocks:
    """Locks by key.

    Args:
        path: The file; made by the first who holds a lock.  Earlier versions had a folder of this
            name, in which their servers cannot lock any more once it is a file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._holders: set[_Holder] = set()
        self._fresh = True

    def hold(self, keys: Iterable[str], *, timeout: float = PATIENCE) -> _Holder:
        """Hold the locks of all these keys; a context manager frees them.

        They are taken in ascending order everywhere, so two holders never wait for each other in
        a circle.

        Args:
            keys: Names of real files.
            timeout: Seconds to wait for all of them.

        Raises:
            TimedOutError: Somebody else held one of them for longer.
            StateFailedError: The file of locks cannot be used.
        """
        holder = self._take(keys, timeout)
        holder.among = self._holders
        self._holders.add(holder)
        return holder

    def try_hold(self, keys: Iterable[str]) -> _Holder | None:
        """Hold the locks of all these keys if they are free now, as `hold`; else None."""
        try:
            return self._take(keys, 0.0)
        except TimedOutError:
            return None

    def check(self) -> None:
        """Refuse to go on if another lock file has taken the place of the one in use.

        Raises:
            StateFailedError: It was removed or replaced after they were taken.
        """
        # The copy is made at once, whatever other threads do.
        if not all(map(self._is_current, tuple(self._holders))):
            raise StateFailedError(
                "the file of locks was removed or replaced while this call held some",
                hint="Nothing was changed. Try again.",
            )

    def _take(self, keys: Iterable[str], timeout: float) -> _Holder:
        places = sorted({_place(key) for key in keys})
        pieces = dict.fromkeys(places, 1) if len(places) <= _MANY else _together(places)
        end = time.monotonic() + timeout
        while True:
            holder = self._open(end) if places else _Holder()
            try:
                for place, length in pieces.items():
                    holder.take(place, length, end, timeout)
            except OSError as error:
                holder.close()
                raise self._unusable(error) from None
            except BaseException:
                holder.close()
                raise
            if self._is_current(holder):
                holder.note(places)
                return holder
            # Whoever comes now makes a new file, and would not wait for what is held in this one.
            holder.close()

    def _is_current(self, holder: _Holder) -> bool:
        if holder.identity is None:
            return True
        try:
            found = os.stat(self._path)
        except OSError:
            return False
        return holder.identity == (found.st_dev, found.st_ino)

    def _open(self, end: float) -> _Holder:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            if self._fresh:
                self._retire(end)
                self._fresh = False
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise self._unusable(OSError(errno.EINVAL, "it is not a regular file"))
        return _Holder(descriptor, (found.st_dev, found.st_ino))

    def _retire(self, end: float) -> None:
        """Put the file in the place of an earlier version's folder, and wait for who locks there.

        Raises:
            TimedOutError: A program of that version is changing a file.
        """
        folder, name = os.path.split(self._path)
        while os.path.isdir(self._path) and not os.path.islink(self._path):
            os.rename(self._path, f"{self._path}{_BEFORE}{os.urandom(4).hex()}")
            # A file there keeps an earlier version from starting.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        for other in os.listdir(folder):
            if other.startswith(f"{name}{_BEFORE}"):
                _drain(os.path.join(folder, other), end)

    def _unusable(self, error: OSError) -> StateFailedError:
        if error.errno == errno.ENOENT:
            return StateFailedError(
                "the state folder was removed or renamed while this program used it",
                hint="Nothing was changed. Put it back, or start this program again.",
            )
        hint = "Move it away: a new one is made when it is needed."
        if error.errno in _READ_ONLY:
            hint = "Make the state folder writable, or choose another with FILEPACT_STATE_DIR."
        return StateFailedError(
            f"the file of locks {self._path} cannot be used: {error.strerror}", hint=hint
        )


@contextmanager
def keep_out(path: str, first: int, count: int) -> Iterator[bool]:
    """Lock some bytes of an ordinary file, unless another process has locked them.

    Args:
        path: The file, which is there.
        first: The first byte.
        count: How many of them.

    Yields:
        Whether it was to be had.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield _lock(descriptor, first, length=count)
    finally:
        os.close(descriptor)


class ProcessLock:
    """A lock that one process holds for as long as it lives, with a text that it tells others.

    Args:
        path: The file, made when the lock is taken; its folder as well.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take the lock; False where another process holds it.

        Raises:
            StateFailedError: The file cannot be made.
        """
        import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise StateFailedError(
                f"the state folder cannot be written ({error.strerror})",
                hint="Make it writable or free space on its disk, then try again.",
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def tell(self, text: str) -> None:
        """Have others read a text, a line of it, for as long as the lock is held."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.pwrite(self._descriptor, text.encode().ljust(_TOLD)[:_TOLD], 0)

    def told(self, *, after: bool = False) -> str | None:
        """The text of the process that holds the lock; None where none does.

        Args:
            after: Whether that of one that has let go of it counts as well.
        """
        import fcntl  # noqa: PLC0415 - as above

        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            held = after
            if not after:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    held = True
            text = os.pread(descriptor, _TOLD, 0)
        finally:
            os.close(descriptor)
        return text.decode("utf-8", "replace").strip() if held else None

    def release(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class _Holder:
    """An open file description of the file of locks, with what is locked through it.

    Waiting is done in the kernel's queue by a thread, which can be left alone when time is up.
    Asking again and again instead would starve: a busy process frees the lock and takes it back
    long before the other asks next.

    Attributes:
        among: The holders that it counts among until it is closed.
    """

    def __init__(self, descriptor: int = -1, identity: tuple[int, int] | None = None) -> None:
        self._descriptor = descriptor
        self.identity = identity
        self._turn = threading.Lock()
        self._waits = False
        self._closed = identity is None
        self.among: set[_Holder] = set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, place: int, length: int, end: float, timeout: float) -> None:
        """Lock some bytes.

        Raises:
            TimedOutError: They were not to be had in time.
        """
        if _lock(self._descriptor, place, length=length):
            return
        seconds = end - time.monotonic()
        had = threading.Event()
        if seconds > 0:
            self._waits = True
            waiter = threading.Thread(
                target=self._block, args=(place, length, had), name="filepact-lock", daemon=True
            )
            if not begun(waiter):
                self._waits = False
                while time.monotonic() < end and not had.wait(_LOOK):
                    if _lock(self._descriptor, place, length=length):
                        return
                seconds = 0.0
        if not had.wait(max(0.0, seconds)):
            raise _busy(self._noted(place), timeout)

    def _block(self, place: int, length: int, had: threading.Event) -> None:
        locked = False
        with suppress(OSError):
            locked = _lock(self._descriptor, place, length=length, wait=True)
        with self._turn:
            self._waits = False
            if self._closed:
                os.close(self._descriptor)
            elif locked:
                had.set()

    def note(self, places: list[int]) -> None:
        """Write down this process's number for the keys, for the messages of those that wait."""
        with suppress(OSError):
            for place in places if len(places) < _NOTES else range(_NOTES):
                os.pwrite(self._descriptor, _NOTE.pack(os.getpid()), place % _NOTES * _NOTE.size)

    def _noted(self, place: int) -> int:
        """The process that last locked this byte or one that shares its line; 0 for none."""
        with suppress(OSError, struct.error):
            return int(
                _NOTE.unpack(os.pread(self._descriptor, _NOTE.size, place % _NOTES * _NOTE.size))[0]
            )
        return 0

    def close(self) -> None:
        """Free all of them, also those for which a thread still waits."""
        self.among.discard(self)
        with self._turn:
            if self._closed:
                return
            self._closed = True
            if not self._waits:
                os.close(self._descriptor)
                return
            # In the thread's hands the description stays open, so its locks are given up here.
            _lock(self._descriptor, 0, length=0, kind="F_UNLCK")


@lru_cache(maxsize=1_024)
def _place(key: str) -> int:
    from hashlib import sha256  # noqa: PLC0415 - a server answers before it needs it

    device, folder, name = (*key.split(":", 2), "", "")[:3]
    above = sha256(f"{device}:{folder}".encode("utf-8", "surrogatepass")).digest()
    last = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(above[:5], "big") << _NAMES | int.from_bytes(last, "big") >> 256 - _NAMES


def _together(places: list[int]) -> dict[int, int]:
    """The first bytes of what is locked for many places, in ascending order, each with how many of them."""
    found: dict[int, int] = {}
    for folder, some in groupby(places, lambda place: place >> _NAMES):
        first, *more = some
        found |= {folder << _NAMES: 1 << _NAMES} if more else {first: 1}
    return found


def _lock(
    descriptor: int, place: int, *, length: int = 1, kind: str = "F_WRLCK", wait: bool = False
) -> bool:
    """Lock or free bytes; false when somebody else has one of them and this does not wait."""
    import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

    wanted = lock_request(getattr(fcntl, kind), place, length)
    try:
        fcntl.fcntl(descriptor, WAIT_LOCK if wait else SET_LOCK, wanted)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _drain(folder: str, end: float) -> None:
    """Wait until nobody holds a lock of an earlier version, and remove its folder."""
    import fcntl  # noqa: PLC0415 - see above
    import shutil  # noqa: PLC0415 - rarely needed

    for name in os.listdir(folder):
        try:
            descriptor = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # Another process does the same.
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise TimedOutError(
                            "an earlier version of filepact is changing a file",
                            hint="Try again, and restart that program: it can no longer lock files.",
                        ) from None
                    time.sleep(0.01)
        finally:
            os.close(descriptor)
    shutil.rmtree(folder, ignore_errors=True)


def _busy(holder: int, timeout: float) -> TimedOutError:
    who = f" ({described(holder)})" if holder else ""
    return TimedOutError(
        f"another call{who} was changing the same file and did not end within {timeout:g} seconds",
        hint="Try again; if this repeats, look at what that process does.",
    )


_LONGEST = 80
_STATES = {"T": ", which is stopped", "t": ", which a debugger holds", "Z": ", which has ended"}


def described(pid: int) -> str:
    """Describe a process: its number, its command, and whether it is stopped."""
    command = state = ""
    # Inside the sandbox, and on systems without it, the number has to do.
    with suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as told:
            words = told.read(4_096).split(b"\0")
        text = " ".join(word.decode("utf-8", "replace") for word in words if word)
        command = "".join(one if one.isprintable() else "?" for one in text)
        with open(f"/proc/{pid}/stat", "rb") as told:
            # The name in parentheses may hold anything, parentheses too.
            state = told.read(4_096).rpartition(b")")[2].split()[0].decode()
    if len(command) > _LONGEST:
        command = f"{command[: _LONGEST - 3]}..."
    said = f"process {pid}" + (f": {command}" if command else "")
    return said + _STATES.get(state, "")


def locked_by(path: str, first: int, count: int) -> str:
    """The process that holds a record lock on some bytes of a file; empty where none is known.

    The file stays open for good: closing it would free what this process has locked in it by
    other descriptors, as SQLite does (see "Advisory record locking" in fcntl_locking(2)).
    """
    import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

    wanted = lock_request(fcntl.F_WRLCK, first, count)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        kind, pid = lock_holder(fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    except OSError:
        return ""
    return described(pid) if kind != fcntl.F_UNLCK and pid > 0 else ""

"""One lock for each real file, in this process and across processes.

The locks live in the state folder and never on anybody's file.  `flock` belongs to the open file
description: it is freed by the kernel when its holder dies, and, unlike `lockf`, is not lost when
some other part of the program closes the same file.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from filepact.errors import StateFailedError, TimedOutError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FileLocks"]

_STRIPES = 4_096


class FileLocks:
    """Locks by key.  Keys share stripes, so the folder does not grow with the files.

    Args:
        directory: Where the lock files are; made when missing.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self._threads: dict[int, threading.Lock] = {}
        self._guard = threading.Lock()

    @contextmanager
    def hold(self, keys: Iterable[str], *, timeout: float = 10.0) -> Iterator[None]:
        """Hold the locks of all these keys.

        Stripes are taken in ascending order everywhere, so two holders never wait for each other
        in a circle.

        Args:
            keys: Names of real files.
            timeout: Seconds to wait for all of them.

        Raises:
            TimedOutError: Somebody else held one of them for longer.
        """
        end = time.monotonic() + timeout
        with ExitStack() as held:
            for stripe in self._stripes(keys):
                held.enter_context(self._one(stripe, end, timeout))
            yield

    def try_hold(self, keys: Iterable[str]) -> ExitStack | None:
        """Hold the locks if all are free at this moment; else None.

        Returns:
            A context manager that frees them.
        """
        held = ExitStack()
        try:
            for stripe in self._stripes(keys):
                held.enter_context(self._one(stripe, time.monotonic(), 0.0))
        except TimedOutError:
            held.close()
            return None
        return held

    @staticmethod
    def _stripes(keys: Iterable[str]) -> list[int]:
        digests = (hashlib.sha256(os.fsencode(key)).digest() for key in keys)
        return sorted({int.from_bytes(digest[:4], "big") % _STRIPES for digest in digests})

    @contextmanager
    def _one(self, stripe: int, end: float, timeout: float) -> Iterator[None]:
        with self._guard:
            thread_lock = self._threads.setdefault(stripe, threading.Lock())
        if not thread_lock.acquire(timeout=max(0.0, end - time.monotonic())):
            raise _busy(timeout)
        try:
            descriptor = self._lock_file(stripe, end, timeout)
            try:
                yield
            finally:
                os.close(descriptor)  # Closing the only descriptor of its kind frees the lock.
        finally:
            thread_lock.release()

    def _lock_file(self, stripe: int, end: float, timeout: float) -> int:
        import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

        path = os.path.join(self._directory, f"{stripe:03x}")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(path, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _Waiter(descriptor).wait(end - time.monotonic()):
                return descriptor
            raise _busy(timeout) from None
        except OSError as error:
            os.close(descriptor)
            raise _unusable(path, error) from None
        return descriptor


class _Waiter:
    """Waits for a file lock in the kernel's queue, which is fair, but only for so long.

    Asking again and again instead would starve: a busy process frees the lock and takes it back
    long before the other asks next.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = threading.Lock()
        self._locked = threading.Event()
        self._abandoned = False

    def wait(self, seconds: float) -> bool:
        """Whether the lock was had in time; the descriptor is closed when it was not."""
        if seconds <= 0:
            os.close(self._descriptor)
            return False
        threading.Thread(target=self._block, name="filepact-lock", daemon=True).start()
        interrupted = True
        try:
            self._locked.wait(seconds)
            interrupted = False
        finally:
            # Also when a signal ends the wait: nobody else would free what is locked by then.
            with self._turn:
                self._abandoned = not self._locked.is_set()
                if interrupted and not self._abandoned:
                    os.close(self._descriptor)
        return not self._abandoned

    def _block(self) -> None:
        import fcntl  # noqa: PLC0415 - see above

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(self._descriptor)
            return
        with self._turn:
            if self._abandoned:
                os.close(self._descriptor)
            else:
                self._locked.set()


def _unusable(path: str, error: OSError) -> StateFailedError:
    return StateFailedError(
        f"the lock {path} cannot be used: {error.strerror}",
        hint="Choose another state folder, on a local disk that can be written.",
    )


def _busy(timeout: float) -> TimedOutError:
    return TimedOutError(
        f"another call was changing the same file and did not end within {timeout:g} seconds",
        hint="Try again; if it goes on, look for a hanging filepact process.",
    )

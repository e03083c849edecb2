"""Work in lanes: what has one key is done in the order in which it came, the rest side by side."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Lanes"]

_WORKERS: Final = 32
"""Most pieces of work at once; one that waits for a person is one of them."""

_LAST: Final = 5.0  # seconds for what is done elsewhere to end


class Lanes:
    """Threads for work that is done one after the other for each key."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="acp-files")
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}
        self._kept = 0
        self._freed = threading.Condition(self._lock)

    def put(self, key: Hashable, work: Callable[[], None]) -> None:
        """Have something done after what was put before it under this key."""
        with self._lock:
            lane = self._waiting.get(key)
            if lane is not None:
                lane.append(work)
                return
            self._waiting[key] = deque()
        self._pool.submit(self._run, key, work)

    def take(self, key: Hashable) -> bool:
        """Keep a lane for something that is done elsewhere, if nothing is done under this key.

        What is put there meanwhile waits for `free`.
        """
        with self._lock:
            if key in self._waiting:
                return False
            self._waiting[key] = deque()
            self._kept += 1
            return True

    def free(self, key: Hashable) -> None:
        """Go on with what was put in a lane that was kept."""
        with self._lock:
            self._kept -= 1
            self._freed.notify_all()
            lane = self._waiting[key]
            work = lane.popleft() if lane else None
            if work is None:
                del self._waiting[key]
        if work is not None:
            self.aside(lambda: self._run(key, work))

    def aside(self, work: Callable[[], None]) -> None:
        """Have something done in a thread of these, in no lane."""
        with suppress(RuntimeError):  # closed: nothing more is begun
            self._pool.submit(work)

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        with self._lock:
            for lane in self._waiting.values():
                lane.clear()
            self._freed.wait_for(lambda: not self._kept, _LAST)
        self._pool.shutdown(cancel_futures=True)

    def _run(self, key: Hashable, work: Callable[[], None] | None) -> None:
        while work is not None:
            try:
                work()
            finally:
                with self._lock:
                    lane = self._waiting[key]
                    work = lane.popleft() if lane else None
                    if work is None:
                        del self._waiting[key]

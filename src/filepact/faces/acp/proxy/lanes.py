"""Work in lanes: what has one key is done in the order in which it came, the rest side by side."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

__all__ = ["Lanes"]

_WORKERS: Final = 32
"""Most pieces of work at once; one that waits for a person is one of them."""

_LAST: Final = 5.0  # seconds for what is done elsewhere to end


class Lanes:
    """Threads for work that is done one after the other for each key."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="acp-files")
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, deque[Callable[[], None] | threading.Event]] = {}
        self._kept = 0
        self._closed = False
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
        self._end()
        self._hand_on(key)

    @contextmanager
    def left(self, key: Hashable) -> Iterator[None]:
        """Leave the lane in which this thread works, and come back after what was put there.

        For whoever waits for a person: nobody else is to wait with them.
        """
        self._hand_on(key)
        try:
            yield
        finally:
            turn = threading.Event()
            with self._lock:
                lane = self._waiting.get(key)
                if lane is None or self._closed:
                    self._waiting.setdefault(key, deque())
                    turn.set()
                else:
                    lane.append(turn)
            turn.wait()

    def _hand_on(self, key: Hashable) -> None:
        """Have the next piece of work in a lane done by somebody else."""
        work = self._next(key)
        if work is not None:
            self.aside(lambda: self._run(key, work))

    def _next(self, key: Hashable) -> Callable[[], None] | None:
        """The next piece of work in a lane; None where there is none, or where it has a thread."""
        with self._lock:
            lane = self._waiting.get(key)
            work = lane.popleft() if lane else None
            if work is None:
                self._waiting.pop(key, None)
        if isinstance(work, threading.Event):
            work.set()
            return None
        return work

    def aside(self, work: Callable[[], None]) -> None:
        """Have something done in a thread of these, in no lane."""

        def do() -> None:
            try:
                work()
            finally:
                self._end()

        with self._lock:
            self._kept += 1
        try:
            self._pool.submit(do)
        except RuntimeError:  # closed: nothing more is begun
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._kept -= 1
            self._freed.notify_all()

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        with self._lock:
            self._closed = True
            for lane in self._waiting.values():
                for work in lane:
                    if isinstance(work, threading.Event):
                        work.set()
                lane.clear()
            self._freed.wait_for(lambda: not self._kept, _LAST)
        self._pool.shutdown(cancel_futures=True)

    def _run(self, key: Hashable, work: Callable[[], None] | None) -> None:
        while work is not None:
            try:
                work()
            finally:
                work = self._next(key)

"""A thread pool that keeps an order: work with one key runs in sequence, the rest in parallel."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["KeyedExecutor"]

_LAST: Final = 5.0  # seconds for work outside of the pool to end


class KeyedExecutor:
    """Threads for work in sequence by key.

    Args:
        workers: Most pieces of work at once; one that waits for a person is one of them.
        name: Of the threads.
    """

    def __init__(self, workers: int, name: str) -> None:
        self._workers, self._name = workers, name
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._queues: dict[Hashable, deque[Callable[[], None] | threading.Event]] = {}
        self._busy = 0
        self._closed = False
        self._idle = threading.Condition(self._lock)

    def _pool(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - not before there is work

        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix=self._name)
            return self._threads

    def submit(self, key: Hashable, work: Callable[[], None]) -> None:
        """Run something after what was submitted before it with this key."""
        with self._lock:
            queue = self._queues.get(key)
            if queue is not None:
                queue.append(work)
                return
            self._queues[key] = deque()
        self._pool().submit(self._run, key, work)

    def is_free(self, key: Hashable) -> bool:
        """Whether nothing runs with a key, and nothing waits to."""
        with self._lock:
            return key not in self._queues

    def try_acquire(self, key: Hashable) -> bool:
        """Reserve a key for work outside of the pool, unless something runs with this key.

        What is submitted with it meanwhile waits for `release`.
        """
        with self._lock:
            if key in self._queues:
                return False
            self._queues[key] = deque()
            self._busy += 1
            return True

    def release(self, key: Hashable) -> None:
        """Run what was submitted with a key that was reserved."""
        self._end()
        self._hand_over(key)

    @contextmanager
    def suspended(self, key: Hashable) -> Iterator[None]:
        """Let others run with the key of this thread's work, and go on after them.

        For work that waits for a person: nobody else is to wait with it.
        """
        self._hand_over(key)
        try:
            yield
        finally:
            turn = threading.Event()
            with self._lock:
                queue = self._queues.get(key)
                if queue is None or self._closed:
                    self._queues.setdefault(key, deque())
                    turn.set()
                else:
                    queue.append(turn)
            turn.wait()

    def _hand_over(self, key: Hashable) -> None:
        """Have another thread run the next work with a key."""
        work = self._next(key)
        if work is not None:
            self.run(lambda: self._run(key, work))

    def _next(self, key: Hashable) -> Callable[[], None] | None:
        """The next work with a key; None where there is none, or where a thread waits to do it."""
        with self._lock:
            queue = self._queues.get(key)
            work = queue.popleft() if queue else None
            if work is None:
                self._queues.pop(key, None)
        if isinstance(work, threading.Event):
            work.set()
            return None
        return work

    def run(self, work: Callable[[], None]) -> bool:
        """Run something as soon as a thread is free, in no sequence.

        Returns:
            Whether it will be run: nothing is once this was closed.
        """
        with self._lock:
            if self._closed:
                return False
            self._busy += 1
        self._pool().submit(self._do, work)
        return True

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._busy -= 1
            self._idle.notify_all()

    def close(self) -> None:
        """Take nothing more, and wait for what was taken by `run` and for what has begun."""
        with self._lock:
            self._closed = True
            for queue in self._queues.values():
                for work in queue:
                    if isinstance(work, threading.Event):
                        work.set()
                queue.clear()
            self._idle.wait_for(lambda: not self._busy, _LAST)
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _run(self, key: Hashable, work: Callable[[], None] | None) -> None:
        while work is not None:
            try:
                work()
            finally:
                work = self._next(key)

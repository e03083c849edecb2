"""Ordered, cancellable work on an event loop: cancel scopes, locks by key, and calls in threads."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable

__all__ = [
    "CancelScope",
    "KeyedLock",
    "ScopeCancelledError",
    "ThreadCalls",
    "run_to_completion",
    "wait_registered",
]

_T = TypeVar("_T")


class ScopeCancelledError(Exception):
    """Nobody waits any more, and what was begun can end now."""


class CancelScope:
    """Tells one piece of work, in the event loop and in threads, that nobody waits for it any more."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def cancel(self) -> None:
        """Cancel the work: nobody waits for it any more."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits; may be asked from any thread."""
        return self._event.is_set()

    def check(self) -> None:
        """End here if nobody waits.

        Raises:
            ScopeCancelledError: That is so.
        """
        if self._event.is_set():
            raise ScopeCancelledError

    async def wait_for(self, asking: Awaitable[_T]) -> _T:
        """The result of asking somebody else, who may take any time.

        Raises:
            ScopeCancelledError: Nobody waits for it any more.
        """
        asked = asyncio.ensure_future(asking)
        told = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({asked, told}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            raise ScopeCancelledError
        finally:
            for one in (asked, told):
                one.cancel()
            await asyncio.wait({asked, told})

    @asynccontextmanager
    async def holding(self, lock: asyncio.Lock) -> AsyncIterator[None]:
        """Hold a lock, unless nobody waits for it any more."""
        await self.wait_for(lock.acquire())
        try:
            self.check()
            yield
        finally:
            lock.release()


async def run_to_completion(work: Callable[[CancelScope], Coroutine[Any, Any, _T]]) -> _T:
    """Do something that ends in order, also when the caller is cancelled: that waits for it."""
    stop = CancelScope()
    running = asyncio.ensure_future(work(stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.cancel()
        # What becomes of it is nobody's any more; it is looked at so that nothing complains.
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({running})
        raise


async def wait_registered(
    waiting: dict[asyncio.Future[Any], str], asking: Awaitable[_T], name: str = ""
) -> _T:
    """The result of asking somebody; the future stands in a table until then, to be cancelled there.

    Args:
        waiting: The table.
        asking: What is waited for.
        name: What the future is about.

    Raises:
        ScopeCancelledError: The future was cancelled, and not who waits for it.
    """
    future = asyncio.ensure_future(asking)
    waiting[future] = name
    try:
        return await future
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ScopeCancelledError from None
    finally:
        waiting.pop(future, None)


class KeyedLock:
    """A lock for each key, first come first served; one that nobody wants is forgotten."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncIterator[None]:
        """Hold the lock of a key for a block."""
        lock, users = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            users = self._locks[key][1] - 1
            if users:
                self._locks[key] = lock, users
            else:
                del self._locks[key]

    def __len__(self) -> int:
        return len(self._locks)


class ThreadCalls:
    """Calls in threads, by the session that they are for."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, set[asyncio.Future[Any]]] = {}

    async def run(
        self, whose: Hashable, drop: Callable[[], None], work: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Call something in a thread.

        Who gives up waiting still waits until the thread lets go of the files, and is told what it
        did: what was written was written.

        Args:
            whose: Whom it is for.
            drop: Called when nobody wants it any more.
            work: What to call.
            arguments: With what.
        """
        flight = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
        mine = self._flying.setdefault(whose, set())
        mine.add(flight)
        try:
            while not flight.done():
                try:
                    await asyncio.shield(flight)
                except asyncio.CancelledError:
                    drop()
                    task = asyncio.current_task()
                    if task is not None:
                        task.uncancel()
                except Exception:  # noqa: BLE001 - raised below, where the result is taken
                    break
            return flight.result()
        finally:
            mine.discard(flight)
            if not mine:
                self._flying.pop(whose, None)

    async def wait_finished(self, whose: Hashable) -> None:
        """Wait until nothing is being done for somebody."""
        while flying := self._flying.get(whose):
            await asyncio.wait(tuple(flying))
            await asyncio.sleep(0)

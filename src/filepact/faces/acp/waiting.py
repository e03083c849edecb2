"""Work of an event loop that somebody may stop waiting for: it ends in order, never in the middle."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

__all__ = ["Stop", "StoppedError", "to_its_end"]

_T = TypeVar("_T")


class StoppedError(Exception):
    """Nobody waits any more, and what was begun can end now."""


class Stop:
    """Tells one piece of work, in the loop and in its threads, that nobody waits for it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._called = False

    def call(self) -> None:
        """Nobody waits any more."""
        self._called = True
        self._event.set()

    @property
    def called(self) -> bool:
        """Whether nobody waits; may be asked from any thread."""
        return self._called

    def check(self) -> None:
        """End here if nobody waits.

        Raises:
            StoppedError: That is so.
        """
        if self._called:
            raise StoppedError

    async def unless(self, asking: Awaitable[_T]) -> _T:
        """The result of asking somebody else, who may take any time.

        Raises:
            StoppedError: Nobody waits for it any more.
        """
        asked = asyncio.ensure_future(asking)
        told = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({asked, told}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            raise StoppedError
        finally:
            for one in (asked, told):
                one.cancel()
            await asyncio.wait({asked, told})

    @asynccontextmanager
    async def holding(self, lock: asyncio.Lock) -> AsyncIterator[None]:
        """Hold a lock, unless nobody waits for it any more."""
        await self.unless(lock.acquire())
        try:
            self.check()
            yield
        finally:
            lock.release()


async def to_its_end(work: Callable[[Stop], Coroutine[Any, Any, _T]]) -> _T:
    """Do something that ends in order, also when the caller is cancelled: that waits for it."""
    stop = Stop()
    running = asyncio.ensure_future(work(stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.call()
        # What becomes of it is nobody's any more; it is looked at so that nothing complains.
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({running})
        raise

"""What is done for one file one after the other, and what is still being done for a session."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

__all__ = ["Flights", "Queues"]


class Queues:
    """One queue for each key, first come first served; a queue that is empty is forgotten."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[None]:
        """Wait for all that came before under this key; those behind wait for the block's end."""
        lock, users = self._queues.get(key) or (asyncio.Lock(), 0)
        self._queues[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            users = self._queues[key][1] - 1
            if users:
                self._queues[key] = lock, users
            else:
                del self._queues[key]

    def __len__(self) -> int:
        return len(self._queues)


class Flights:
    """Calls in threads, by whom they are for."""

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

    async def landed(self, whose: Hashable) -> None:
        """Wait until nothing is being done for somebody."""
        while flying := self._flying.get(whose):
            await asyncio.wait(tuple(flying))
            await asyncio.sleep(0)

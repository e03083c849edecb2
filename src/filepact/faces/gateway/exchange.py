"""One request of a client and what comes of it: carried out in a thread, waited for in the event loop."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from filepact.values import late_logger

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from filepact.faces.mcp.server import ClientConnection
    from filepact.wire.messages import Message, RequestId

__all__ = ["GatewayCall"]

_log = late_logger(__name__)

_LONGEST: Final = 600.0  # seconds for which an answer is waited for
_HELD: Final = 64  # messages beside the answer that wait for a client


class GatewayCall:
    """A request, and the messages that answer it.

    Args:
        loop: In which they are waited for.
        opened: Makes the conversation that the request is part of, given where its messages go.
        request: The message.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        opened: Callable[[Callable[[Message], None]], ClientConnection],
        request: Message,
    ) -> None:
        self._loop = loop
        self._opened = opened
        self._request = request
        self.wanted: RequestId = request["id"]
        self._connection: ClientConnection | None = None
        self._given_up: str = ""
        self._items: deque[Message | None] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._answered = False

    # -- in a thread --------------------------------------------------------------------------

    def run(self) -> None:
        """Carry the request out; when this returns nothing of it runs any more."""
        try:
            connection = self._opened(self._send)
            self._connection = connection
            if self._given_up == "cancelled":
                return
            connection.receive(self._request)
            connection.settle(_LONGEST)
            connection.finish()
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            _log.exception("a request failed")
        finally:
            if not self._answered:
                self._loop.call_soon_threadsafe(self._take, None)

    def _send(self, message: Message) -> None:
        if "method" not in message:
            self._answered = True
        self._loop.call_soon_threadsafe(self._take, message)

    # -- in the event loop --------------------------------------------------------------------

    def cancel(self) -> None:
        """The client does not want the answer any more."""
        self._given_up = "cancelled"
        if self._connection is not None:
            self._connection.cancel(self.wanted)

    def abandon(self) -> None:
        """The client has gone; what was begun goes on, and its next call tells what came of it."""
        if self._connection is not None:
            self._connection.abandon(self.wanted)

    async def next(self, patience: float) -> Message | None:
        """The next message; None after the last one.

        Raises:
            TimeoutError: There was none for so many seconds.
        """
        if not self._items:
            self._waiter = self._loop.create_future()
            handle = self._loop.call_later(patience, self._wake)
            try:
                await self._waiter
            finally:
                handle.cancel()
                self._waiter = None
            if not self._items:
                raise TimeoutError
        return self._items.popleft()

    def _take(self, item: Message | None) -> None:
        if len(self._items) >= _HELD and item is not None and "method" in item:
            return  # How far it is by now is told again soon.
        self._items.append(item)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

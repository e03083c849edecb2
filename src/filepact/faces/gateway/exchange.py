"""One request of a client and what comes of it: carried out in a thread, waited for in the event loop.

The answers go to a client that is cut off if it takes nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import no_threads
from filepact.values import begun, late_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope, Send

    from filepact.faces.gateway.metrics import Metrics
    from filepact.faces.gateway.requests import HttpAnswer
    from filepact.faces.mcp.server import ClientConnection
    from filepact.wire.messages import Message, RequestId

__all__ = ["CallPool", "GatewayCall", "MergedConnection", "ResponseWriter", "answer_events"]

_log = late_logger(__name__)

_LONGEST: Final = 600.0  # seconds for which an answer is waited for
_ASIDE: Final = "filepact.transport"
_LOOK: Final = 0.02  # seconds after which it is looked whether a client has taken its answer
_HELD: Final = 64  # messages beside the answer that wait for a client


class GatewayCall:
    """A request, and the messages that answer it.

    Args:
        loop: In which they are waited for.
        opened: Makes the conversation that the request is part of, given where its messages go.
        request: The message.
        before: Answers what was carried out before; None where it was not.
        after: Told the answer before it is sent; what it answers is sent.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        opened: Callable[[Callable[[Message], None]], ClientConnection],
        request: Message,
        *,
        before: Callable[[], Message | None] | None = None,
        after: Callable[[Message], Message] | None = None,
    ) -> None:
        self._before, self._after = before, after
        self._loop = loop
        self._opened = opened
        self._request = request
        self.wanted: RequestId = request["id"]
        self._connection: ClientConnection | None = None
        self._given_up: str = ""
        self._items: deque[Message | None] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._answer: Message | None = None
        self._over = loop.create_future()

    # -- in a thread --------------------------------------------------------------------------

    def run(self) -> None:
        """Carry the request out; nothing of it runs any more when its answer is there."""
        try:
            connection = self._opened(self._send)
            self._connection = connection
            if self._given_up == "cancelled":
                return
            if self._before is not None and (answer := self._before()) is not None:
                self._send_on(answer)
                return
            connection.receive(self._request)
            connection.settle(_LONGEST)
            connection.finish()
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            _log.exception("a request failed")
        finally:
            # Told once, with the answer: each word to the event loop wakes it, which takes longer than a small call.
            self._loop.call_soon_threadsafe(self._end, self._answer)

    def _send(self, message: Message) -> None:
        if "method" not in message and self._after is not None:
            message = self._after(message)
        self._send_on(message)

    def _send_on(self, message: Message) -> None:
        if "method" in message:
            self._loop.call_soon_threadsafe(self._take, message)
        else:
            self._answer = message

    # -- in the event loop --------------------------------------------------------------------

    def skip(self) -> None:
        """No thread comes to it any more; from any thread."""
        self._loop.call_soon_threadsafe(self._end, None)

    async def settled(self) -> None:
        """Wait until nothing of it runs any more."""
        await asyncio.shield(self._over)

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

    def _end(self, answer: Message | None) -> None:
        self._over.set_result(None)
        self._take(answer)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class CallPool:
    """Threads that carry calls out, as many as are needed at once; begun and counted in the event loop.

    The standard library's pool tells what became of a call, and takes the interpreter's lock from the event loop
    for it just when that has the answer to send; here the call tells it all itself.

    Args:
        most: Most calls that are carried out at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: SimpleQueue[GatewayCall | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._open = 0

    def begin(self, call: GatewayCall) -> None:
        """Have a thread carry a call out: one of those there are, where the system gives no more.

        Raises:
            NoThreadsError: There is none at all.
        """
        if len(self._threads) < min(self._open + 1, self._most):
            thread = Thread(
                target=self._run, name=f"gateway-call-{len(self._threads)}", daemon=True
            )
            if begun(thread):
                self._threads.append(thread)
            elif not self._threads:
                raise no_threads()
        self._open += 1
        self._waiting.put(call)

    def end(self) -> None:
        """A call is over."""
        self._open -= 1

    def _run(self) -> None:
        while (call := self._waiting.get()) is not None:
            call.run()
            del call  # With its answer, while this thread waits for the next one.

    def close(self) -> None:
        """Skip the calls that no thread has come to, and wait for the others; from any thread."""
        with suppress(Empty):
            while (call := self._waiting.get_nowait()) is not None:
                call.skip()
        for _ in self._threads:
            self._waiting.put(None)
        for one in self._threads:
            one.join()


class MergedConnection:
    """A connection that can write the head of an answer together with its body, so that both ends wake once.

    Args:
        transport: The connection; all else is asked of it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._joining = False
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def join(self) -> None:
        """Keep what is written next until something more is written, or the connection is closed."""
        self._joining = True

    def write(self, data: bytes) -> None:
        """Write, or keep it for a moment."""
        if self._joining:
            self._joining, self._held = False, data
            return
        if self._held:
            data, self._held = self._held + data, b""
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection when all is written."""
        self._joining = False
        self.write(b"")
        self._transport.close()


class ResponseWriter:
    """Sends to one client, and cuts off one that takes nothing.

    Args:
        send: Of the ASGI server.
        scope: Of the request.
        patience: Seconds that a client may take.
        metrics: Counts what is sent.
    """

    def __init__(self, send: Send, scope: Scope, patience: float, metrics: Metrics) -> None:
        self._send_on = send
        self._transport: MergedConnection | None = scope.get("state", {}).get(_ASIDE)
        self._patience = patience
        self._metrics = metrics
        self.begun = False

    def watched(self) -> _Watched:
        """While this is open, the client has only so much time."""
        return _Watched(self._patience, self._abort)

    def _abort(self) -> None:
        if self._transport is not None:
            self._metrics.add("filepact_gateway_aborted_total")
            self._transport.abort()

    async def whole(self, answer: HttpAnswer) -> None:
        """Send an answer that is there at once."""
        self._count(answer.status)
        self.begun = True
        if self._transport is not None:
            self._transport.join()
        with self.watched():
            for event in answer_events(answer):
                await self._send_on(event)
        await self._taken(len(answer.body))

    async def stream(self, data: bytes, *, last: bool = False) -> None:
        """Send a part of a stream of events; the first part begins it."""
        if not self.begun:
            self.begun = True
            self._count(200)
            headers = [
                (b"content-type", b"text/event-stream"),
                (b"cache-control", b"no-cache, no-transform"),
                (b"x-accel-buffering", b"no"),
            ]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        await self._taken(len(data))

    def _count(self, status: int) -> None:
        self._metrics.add("filepact_gateway_requests_total", f'status="{status // 100}xx"')

    async def _send(self, event: dict[str, Any]) -> None:
        with self.watched():
            await self._send_on(event)

    async def _taken(self, sent: int) -> None:
        """Wait until the client has taken what it was sent, but for what the system holds for it.

        So what waits for clients is bounded as their calls in flight are.  Mostly nothing waits.
        """
        self._metrics.add("filepact_gateway_sent_bytes_total", by=sent)
        if self._transport is not None and self._transport.get_write_buffer_size():
            with self.watched():
                while self._transport.get_write_buffer_size():  # noqa: ASYNC110 - only the server is told
                    await asyncio.sleep(_LOOK)


def answer_events(answer: HttpAnswer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events of ASGI by which an answer is sent."""
    headers = [
        (b"content-type", answer.media.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    headers += [
        (key.lower().encode(), value.encode("latin-1", "replace"))
        for key, value in answer.headers.items()
    ]
    return (
        {"type": "http.response.start", "status": answer.status, "headers": headers},
        {"type": "http.response.body", "body": answer.body},
    )


class _Watched:
    """Calls something unless this is left in time."""

    __slots__ = ("_handle", "_late", "_seconds")

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        self._seconds = seconds
        self._late = late

    def __enter__(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._late)

    def __exit__(self, *_: object) -> None:
        self._handle.cancel()

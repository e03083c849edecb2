"""One request of a client and what comes of it: carried out in a thread, waited for in the event loop.

The answers go to a client that is cut off if it takes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import no_threads
from filepact.values import begun, late_logger, replace
from filepact_gateway.requests import HttpAnswer
from filepact_wire import pipes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import Receive, Send

    from filepact_gateway.metrics import Metrics
    from filepact_gateway.requests import HttpRequest
    from filepact_wire.messages import Message

__all__ = [
    "ASIDE",
    "HEAD",
    "CallPool",
    "GatewayCall",
    "MergedConnection",
    "ResponseWriter",
    "answer_events",
    "answer_together",
]

_log = late_logger(__name__)

ASIDE: Final = "filepact.transport"
"""Under which the state of a request has its connection."""

HEAD: Final = "head"
"""What a client has to do before there is a request."""

_ALWAYS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_LOOK: Final = 0.02  # seconds after which it is looked whether a client has taken its answer
_HELD: Final = 64  # messages beside the answer that wait for a client


class GatewayCall:
    """A request, and the messages that answer it.

    Args:
        loop: In which they are waited for.
        work: Carries the request out, given this; what it returns is the answer, None for none.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[GatewayCall], Message | None]
    ) -> None:
        self._loop = loop
        self._work = work
        self._lock = Lock()
        self._wanted = True
        self._cancelled = False
        self._begun = False
        self._items: deque[Message | None] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._over = loop.create_future()
        self.handed_out = False  # answered with the name of a task, and goes on

    # -- in a thread --------------------------------------------------------------------------

    def run(self) -> None:
        """Carry the request out; nothing of it runs any more when its answer is there."""
        # Told once, with the answer: each word to the event loop wakes it, which takes longer than a small call.
        self._loop.call_soon_threadsafe(self._end, self.carry_out())

    def carry_out(self) -> Message | None:
        """The answer, without a word of it to the event loop."""
        try:
            return None if self._cancelled else self._work(self)
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            _log.exception("a request failed")
            return None

    def is_cancelled(self) -> bool:
        """Whether the client does not want the answer any more."""
        return self._cancelled

    def tell(self, message: Message) -> None:
        """Send the client a notification, if it still waits."""
        if self._wanted:
            self._loop.call_soon_threadsafe(self._take, message)

    def close(self) -> bool:
        """Take no more word from the client: whether it waits for the answer that is there now."""
        with self._lock:
            wanted, self._wanted = self._wanted, False
        return wanted

    # -- in the event loop --------------------------------------------------------------------

    def begin(self) -> bool:
        """A thread is going to carry it out; False where it is over before that."""
        self._begun = not self._over.done()
        return self._begun

    def finish(self, answer: Message | None) -> None:
        """Have this be its answer, unless it is begun, or over."""
        if not self._begun and not self._over.done():
            self._end(answer)

    def skip(self) -> None:
        """No thread comes to it any more; from any thread."""
        self._loop.call_soon_threadsafe(self._end, None)

    def hand_out(self) -> bool:
        """Have it be a task from now on; False where its answer is there, or is not wanted."""
        with self._lock:
            self.handed_out = self._wanted
        return self.handed_out

    async def settled(self) -> None:
        """Wait until nothing of it runs any more."""
        if not self._over.done():
            await asyncio.shield(self._over)

    def cancel(self) -> None:
        """The client does not want the answer any more; from any thread.  One that is there by now is sent."""
        self._cancelled = True
        self.abandon()

    def abandon(self) -> None:
        """The client has gone; what was begun goes on, and its next call tells what came of it.

        What was not begun never is.
        """
        with self._lock:
            self._wanted = False
        self._loop.call_soon_threadsafe(self.finish, None)

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

    def begin(self, call: GatewayCall) -> bool:
        """Have a thread carry a call out: one of those there are, where the system gives no more.

        Returns:
            Whether it does; not where the call is over already.

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
        if not call.begin():
            return False
        self._open += 1
        self._waiting.put(call)
        return True

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
        self._arrived = False
        self.due: dict[object, float] = {}
        """What its client has to do, and when the connection is cut off if that is not done."""
        # What is asked for with every request.
        self.is_closing = transport.is_closing
        self.get_write_buffer_size = transport.get_write_buffer_size

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

    def cut_off(self, metrics: Metrics) -> None:
        """Close the connection at once; its client has had its time."""
        metrics.add("filepact_gateway_aborted_total")
        self.due.clear()
        self._transport.abort()

    def close(self) -> None:
        """Close the connection when all is written."""
        self._joining = False
        self.write(b"")
        # Nobody can look at it any more; what the system has taken, it goes on sending.
        self._arrived = not self.get_write_buffer_size()
        self._transport.close()

    def ended(self) -> None:
        """The client sends nothing more, and the connection is about to be closed."""
        self._arrived = self.arrived()

    def arrived(self) -> bool:
        """Whether the client's system has confirmed all that was sent, or had when the connection ended."""
        if self.is_closing():
            return self._arrived
        connection = self._transport.get_extra_info("socket").fileno()
        return not self.get_write_buffer_size() and not pipes.unconfirmed(connection)


class ResponseWriter:
    """Sends to one client, and cuts off one that takes nothing.

    Args:
        request: What the client asks for.
        channel: Its connection, and what the ASGI server receives and sends by.
        patience: Seconds that a client may take.
        metrics: Counts what is sent.
    """

    def __init__(
        self,
        request: HttpRequest,
        channel: tuple[MergedConnection, Receive, Send],
        patience: float,
        metrics: Metrics,
    ) -> None:
        self.request = request
        self._transport, self.receive, self._send_on = channel
        self._patience = patience
        self._metrics = metrics
        self._sent = False
        self.begun = False
        self._transport.due.pop(HEAD, None)

    def hurry(self) -> None:
        """From now on the client has only so much time, until it may `rest`."""
        self._transport.due[self] = time.monotonic() + self._patience

    def rest(self) -> None:
        """The client has done what it was to do."""
        self._transport.due.pop(self, None)

    async def whole(self, answer: HttpAnswer) -> None:
        """Send an answer that is there at once."""
        self._count(answer.status)
        self.begun = True
        self._sent = not self._transport.is_closing()
        self._transport.join()
        self.hurry()
        for event in answer_events(answer):
            await self._send_on(event)
        self.rest()
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
        self._sent = not self._transport.is_closing()
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        await self._taken(len(data))

    def _count(self, status: int) -> None:
        self._metrics.add("filepact_gateway_requests_total", f'status="{status // 100}xx"')

    async def _send(self, event: dict[str, Any]) -> None:
        self.hurry()
        await self._send_on(event)
        self.rest()

    async def delivered(self) -> bool:
        """Whether the client's system has confirmed the answer; waits as long as the client may take to accept it."""
        until = time.monotonic() + self._patience
        while self._sent and not self._transport.arrived():
            if self._transport.is_closing() or time.monotonic() > until:
                return False
            await asyncio.sleep(_LOOK)
        return self._sent

    async def _taken(self, sent: int) -> None:
        """Wait until the client has taken what it was sent, but for what the system holds for it.

        So what waits for clients is bounded as their calls in flight are.  Mostly nothing waits.
        """
        self._metrics.add("filepact_gateway_sent_bytes_total", by=sent)
        if self._transport.get_write_buffer_size():
            self.hurry()
            while self._transport.get_write_buffer_size():  # noqa: ASYNC110 - only the server is told
                await asyncio.sleep(_LOOK)
            self.rest()


class _PartWriter(ResponseWriter):
    """Keeps the answer to one of several messages that came as one.

    Args:
        out: The way to the client.
        place: Which of them it is.
        arrived: Whether the client's system has confirmed the answers to all.
    """

    def __init__(self, out: ResponseWriter, place: int, arrived: asyncio.Future[bool]) -> None:
        alone = {**out.request.headers, "accept": ("application/json",)}
        self.request, self.receive = replace(out.request, headers=alone, place=place), out.receive
        self._all_arrived = arrived
        self.begun = False
        self.body = b""
        self.ready = asyncio.Event()

    async def whole(self, answer: HttpAnswer) -> None:
        self.begun, self.body = True, answer.body
        self.ready.set()

    async def delivered(self) -> bool:
        return await self._all_arrived


async def answer_together(
    takes: Sequence[Callable[[ResponseWriter], Awaitable[HttpAnswer | None]]], out: ResponseWriter
) -> None:
    """Have several messages taken at once, and send what answers them as one.

    Args:
        takes: Each answers a message, or sends the answer to what it is given.
        out: The way to the client.
    """
    arrived: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    parts = [_PartWriter(out, place, arrived) for place, _ in enumerate(takes, 1)]

    async def run(
        take: Callable[[ResponseWriter], Awaitable[HttpAnswer | None]], part: _PartWriter
    ) -> None:
        try:
            if (answer := await take(part)) is not None:
                await part.whole(answer)
        finally:
            part.ready.set()

    tasks = [asyncio.create_task(run(*one)) for one in zip(takes, parts, strict=True)]
    try:
        for part in parts:
            await part.ready.wait()
        told = [part.body for part in parts if part.body]
        await out.whole(HttpAnswer(200, b"[%b]" % b",".join(told)) if told else HttpAnswer(202))
        arrived.set_result(await out.delivered())
    finally:
        if not arrived.done():
            arrived.set_result(False)
            for one in tasks:
                one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answer_events(answer: HttpAnswer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events of ASGI by which an answer is sent."""
    headers = [
        (b"content-type", answer.media.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        *_ALWAYS,
    ]
    headers += [
        (key.lower().encode(), value.encode("latin-1", "replace"))
        for key, value in answer.headers.items()
    ]
    return (
        {"type": "http.response.start", "status": answer.status, "headers": headers},
        {"type": "http.response.body", "body": answer.body},
    )

"""Calls in flight: a few threads carry them out, and each is answered once or, cancelled, never."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from filepact.faces.mcp.ordinary import call_result
from filepact.faces.wire.lines import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.mcp.conversation import CarryOut
    from filepact.faces.mcp.ordinary import ServerFacts
    from filepact.faces.mcp.service import Service
    from filepact.faces.wire.lines import Message, RequestId

__all__ = ["PROGRESS_EVERY", "WORKERS", "Flights", "throttled"]

WORKERS: Final = 8
"""Most calls that are carried out at once."""

PROGRESS_EVERY: Final = 0.2
"""Least seconds between two words about the progress of a call."""

_QUEUE: Final = 256  # calls that may wait for a worker; then the client waits
_CONNECTION_CLOSED: Final = -32000


@dataclass(slots=True, eq=False)
class _Flight:
    """A call on its way.

    Attributes:
        cancelled: The call should come to an end.
        wanted: The client still wants to hear of it; guarded by the lock.
    """

    asked: CarryOut
    cancelled: bool = False
    wanted: bool = True


class Flights:
    """The calls of one client.

    Args:
        send: Takes what the client is to get; must not block.
    """

    def __init__(
        self, service: Service, facts: ServerFacts, send: Callable[[Message], None]
    ) -> None:
        self._service = service
        self._facts = facts
        self._send = send
        self._room = threading.Semaphore(_QUEUE)
        self._waiting: SimpleQueue[_Flight | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._landed = threading.Condition(self._lock)
        self._flying: set[_Flight] = set()
        self._by_id: dict[RequestId, _Flight] = {}
        self._closing = False

    def begin(self, asked: CarryOut) -> None:
        """Have a call carried out soon; waits while too many others wait."""
        self._room.acquire()
        flight = _Flight(asked)
        with self._lock:
            if self._closing:
                self._room.release()
                return
            self._flying.add(flight)
            # Of two calls with one id the later can be cancelled, and both are answered.
            self._by_id[_correlated(asked.id)] = flight
            if len(self._flying) > len(self._threads) < WORKERS:
                thread = threading.Thread(target=self._work, name="mcp-call", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._waiting.put(flight)

    def cancel(self, wanted: RequestId) -> None:
        """End a call and do not answer it; one that is unknown or answered is ignored."""
        with self._lock:
            flight = self._by_id.pop(_correlated(wanted), None)
            if flight is not None:
                flight.cancelled = True
                flight.wanted = False
                self._landed.notify_all()

    def settle(self, patience: float) -> None:
        """Wait until every call is answered or unwanted, or for so many seconds."""
        with self._lock:
            self._landed.wait_for(
                lambda: not any(flight.wanted for flight in self._flying), patience
            )

    def finish(self) -> None:
        """Cancel every call and wait for it, so that no change is left half done.

        Calls that have not begun are not begun any more.
        """
        with self._lock:
            self._closing = True
            for flight in self._flying:
                flight.cancelled = True
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    # -- in the workers' threads ----------------------------------------------------------

    def _work(self) -> None:
        while (flight := self._waiting.get()) is not None:
            self._room.release()
            answer, sent, lost = self._answer(flight)
            with self._lock:
                if not flight.wanted:
                    lost()
                else:
                    sent()
                    self._send(answer)
                    flight.wanted = False
                self._flying.discard(flight)
                key = _correlated(flight.asked.id)
                if self._by_id.get(key) is flight:
                    del self._by_id[key]
                self._landed.notify_all()

    def _answer(self, flight: _Flight) -> tuple[Message, Callable[[], None], Callable[[], None]]:
        """The answer, and what to call when it is sent and when it is not."""
        asked = flight.asked
        if flight.cancelled:
            return (
                Refusal(_CONNECTION_CLOSED, "Connection closed", asked.id).reply,
                _nothing,
                _nothing,
            )
        outcome = self._service.call(
            asked.name,
            asked.arguments,
            actor=asked.actor,
            meta=asked.meta,
            cancelled=lambda: flight.cancelled,
            progress=self._reporter(flight),
        )
        if isinstance(outcome, Refusal):
            return replace(outcome, id=asked.id).reply, _nothing, _nothing
        result = call_result(outcome)
        if asked.modern:
            result = self._facts.modern(result)
        return {"jsonrpc": "2.0", "id": asked.id, "result": result}, outcome.sent, outcome.lost

    def _reporter(self, flight: _Flight) -> Callable[[int, str], None]:
        token = flight.asked.token
        if token is None:
            return _tell_nobody

        def tell(done: int, what: str) -> None:
            params = {"progressToken": token, "progress": done, "message": what}
            with self._lock:
                if flight.wanted:
                    method = "notifications/progress"
                    self._send({"jsonrpc": "2.0", "method": method, "params": params})

        return throttled(tell)


def throttled(tell: Callable[[int, str], None]) -> Callable[[int, str], None]:
    """Pass on how far a call is, a few times a second, and only when it is further."""
    told, told_at = -1, -math.inf

    def report(done: int, what: str) -> None:
        nonlocal told, told_at
        now = time.monotonic()
        if done > told and now - told_at >= PROGRESS_EVERY:
            told, told_at = done, now
            tell(done, what)

    return report


def _nothing() -> None:
    """An answer that tells nothing besides."""


def _tell_nobody(_done: int, _what: str) -> None:
    """The client did not ask to hear of the progress."""


def _correlated(wanted: RequestId) -> RequestId:
    """The id as it is looked up; some clients spell a number of theirs as text when cancelling."""
    if isinstance(wanted, str):
        try:
            return int(wanted)
        except ValueError:
            return wanted
    return wanted

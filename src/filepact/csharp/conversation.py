"""The server's side of a conversation with one client: requests in order, each with an answer.

One thread reads.  It takes cancellations at once and leaves all else to the thread that calls `run`,
which does one thing after the other, so that an answer is always about all that was sent before the
question.  Nothing that a client sends ends the conversation but its end, or bytes that cannot be cut
into messages any more.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError
from filepact.wire.framing import FrameReader, FramingError, Garbled, Message, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Conversation", "RefusedError", "Ticket", "standard_pipes"]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOT_INITIALIZED: Final = -32002
CANCELLED: Final = -32800
REQUEST_FAILED: Final = -32803

_CHUNK: Final = 1 << 16


class RefusedError(Exception):
    """A request that is answered with an error.

    Args:
        message: The reason, for a reader.
        code: The protocol's number.
    """

    def __init__(self, message: str, code: int = REQUEST_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Ticket:
    """One request as the work for it sees it: whether anybody still waits, and where parts go.

    Args:
        send: Takes parts of the answer, if the client wants them one by one.
    """

    def __init__(self, send: Callable[[Any], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self.cancelled = False
        self.send = send

    def cancel(self) -> None:
        """Nobody waits any more; from any thread."""
        with self._lock:
            self.cancelled, stop, self._stop = True, self._stop, None
        if stop is not None:
            stop()

    def stops(self, stop: Callable[[], None] | None) -> None:
        """Name what ends the work that is done now; it is called at once if nobody waits any more."""
        with self._lock:
            over = self.cancelled
            self._stop = None if over else stop
        if over and stop is not None:
            stop()


class Conversation:
    """A conversation with one client.

    Args:
        source: The descriptor to read from.
        sink: The descriptor to write to.
        requests: What is done for each request, by its method.
        notifications: What is done for each notification.
        idle: What is done while nothing else is to be done, again and again until it says that
            nothing is left; whatever comes from the client ends it.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        requests: Mapping[str, Callable[[Any, Ticket], Any]],
        notifications: Mapping[str, Callable[[Any], None]],
        idle: Callable[[Ticket], bool] = lambda _ticket: False,
    ) -> None:
        self._idle = idle
        self._resting: Ticket | None = None
        self._source = source
        self._sink = sink
        self._requests = requests
        self._notifications = notifications
        self._inbox: SimpleQueue[Message | None] = SimpleQueue()
        self._tickets: dict[int | str, Ticket] = {}
        self._writing = threading.Lock()
        self._own = 0
        self._asked: dict[str, Callable[[], None]] = {}
        self._begun = False
        self._over = False

    def run(self) -> int:
        """Talk until the client ends it; the answer is the status for the process to end with."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        while (message := self._next()) is not None:
            method = message.get("method")
            if method == "exit":
                return 0 if self._over else 1
            if not isinstance(method, str):
                self._settle(message.get("id"))
                continue
            if "id" in message:
                self._answer(method, message["id"], message.get("params"))
            elif self._begun and not self._over:
                self._hear(method, message.get("params"))
        return 0 if self._over else 1

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any, done: Callable[[], None]) -> None:
        """Send a request; of its answer it only matters that it has come."""
        self._own += 1
        number = f"own-{self._own}"
        self._asked[number] = done
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    # -- the working thread -----------------------------------------------------------------

    def _next(self) -> Message | None:
        """The next message; until it comes, what can be done beforehand."""
        more = self._begun and not self._over
        while more and self._inbox.empty():
            self._resting = ticket = Ticket()
            if not self._inbox.empty():  # it came before the reading thread could see the ticket
                break
            try:
                more = self._idle(ticket)
            except Exception as error:  # noqa: BLE001 - nobody has asked for it
                more = False
                if not ticket.cancelled:
                    _complain("beforehand", error)
        self._resting = None
        return self._inbox.get()

    def _settle(self, number: Any) -> None:
        done = self._asked.pop(number, None) if isinstance(number, str) else None
        if done is not None:
            done()

    def _hear(self, method: str, params: Any) -> None:
        handler = self._notifications.get(method)
        if handler is None:
            return
        try:
            handler(params)
        except Exception as error:  # noqa: BLE001 - a client's mistake ends nobody's work
            _complain(method, error)

    def _answer(self, method: str, number: Any, params: Any) -> None:
        ticket = self._tickets.get(number) if isinstance(number, int | str) else None
        reply: Message = {"jsonrpc": "2.0", "id": number}
        try:
            reply["result"] = self._result(method, params, ticket or Ticket())
        except RefusedError as error:
            reply["error"] = {"code": error.code, "message": error.message}
        except FilepactError as error:
            reply["error"] = {"code": REQUEST_FAILED, "message": error.message}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _complain(method, error)
            reply["error"] = {"code": INVALID_PARAMS, "message": f"cannot take this {method[:100]}"}
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            if ticket is None or not ticket.cancelled:
                _complain(method, error)
            reply["error"] = {"code": INTERNAL_ERROR, "message": f"{type(error).__name__}"}
        if isinstance(number, int | str):
            self._tickets.pop(number, None)
        if ticket is not None and ticket.cancelled:
            # What ended the work may have ended it in any way.
            reply.pop("result", None)
            reply["error"] = {"code": CANCELLED, "message": "the request was cancelled"}
        self._send(reply)

    def _result(self, method: str, params: Any, ticket: Ticket) -> Any:
        if self._over:
            raise RefusedError("the server was shut down", INVALID_REQUEST)
        if method == "initialize":
            if self._begun:
                raise RefusedError("the conversation has begun already", INVALID_REQUEST)
        elif not self._begun:
            raise RefusedError("the first request is initialize", NOT_INITIALIZED)
        if ticket.cancelled:
            raise RefusedError("the request was cancelled", CANCELLED)
        if method == "shutdown":
            self._over = True
            return None
        handler = self._requests.get(method)
        if handler is None:
            raise RefusedError(f"{method[:100]} is not known here", METHOD_NOT_FOUND)
        result = handler(params, ticket)
        self._begun = True
        return result

    # -- the reading thread -----------------------------------------------------------------

    def _read(self) -> None:
        reader = FrameReader()
        try:
            while data := os.read(self._source, _CHUNK):
                for message in reader.feed(data):
                    self._sort(message)
        except (OSError, FramingError) as error:
            _complain("reading", error)
        for ticket in list(self._tickets.values()):
            ticket.cancel()
        self._put(None)

    def _sort(self, message: Message | Garbled) -> None:
        if isinstance(message, Garbled):
            error = {"code": PARSE_ERROR, "message": message.reason}
            self._send({"jsonrpc": "2.0", "id": None, "error": error})
            return
        number, params = message.get("id"), message.get("params")
        if message.get("method") == "$/cancelRequest" and isinstance(params, dict):
            wanted = params.get("id")
            ticket = self._tickets.get(wanted) if isinstance(wanted, int | str) else None
            if ticket is not None:
                ticket.cancel()
            return
        if isinstance(number, int | str) and isinstance(message.get("method"), str):
            self._tickets[number] = Ticket(self._partial(params))
        self._put(message)

    def _put(self, message: Message | None) -> None:
        self._inbox.put(message)
        resting = self._resting
        if resting is not None:
            resting.cancel()

    def _partial(self, params: Any) -> Callable[[Any], None] | None:
        token = params.get("partialResultToken") if isinstance(params, dict) else None
        if not isinstance(token, int | str):
            return None
        return lambda value: self.notify("$/progress", {"token": token, "value": value})

    def _send(self, message: Message) -> None:
        rest = memoryview(frame(message))
        with self._writing, contextlib.suppress(OSError):  # who reads no answers has left
            while rest:
                rest = rest[os.write(self._sink, rest) :]


def standard_pipes() -> tuple[int, int]:
    """Take standard input and output for the protocol; what else is printed goes to standard error."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return source, sink


def _complain(what: str, error: Exception) -> None:
    print(f"{what[:100]}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr, flush=True)  # noqa: T201 - a server's log

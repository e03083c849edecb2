"""The server's side of JSON-RPC with one client: requests in order, each with an answer.

One thread reads.  It takes cancellations at once and leaves all else to the thread that calls `run`,
which does one thing after the other: an answer is about everything that was sent before the question.
Only the end of the client's bytes, or bytes that cannot be cut into messages, end the connection.
"""

from __future__ import annotations

import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from filepact.errors import FilepactError
from filepact_csharp.files import OpenDocuments
from filepact_wire.framing import FrameError, FrameReader, InvalidMessage, frame
from filepact_wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    REQUEST_FAILED,
    Message,
    error_response,
    notification,
    request,
    request_id,
    response,
)
from filepact_wire.pending_requests import PendingRequests
from filepact_wire.pipes import read_some, write_all
from filepact_wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Connection", "LanguageServer", "RequestContext", "RequestError"]


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        message: The reason, for a reader.
        code: The protocol's number.
    """

    def __init__(self, message: str, code: int = REQUEST_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class RequestContext:
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


class Connection:
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
        requests: Mapping[str, Callable[[Any, RequestContext], Any]],
        notifications: Mapping[str, Callable[[Any], object]],
        idle: Callable[[RequestContext], bool] = lambda _context: False,
    ) -> None:
        self._idle = idle
        self._resting: RequestContext | None = None
        self._source = source
        self._sink = sink
        self._requests = requests
        self._notifications = notifications
        self._inbox: SimpleQueue[Message | None] = SimpleQueue()
        self._contexts: dict[int | str, RequestContext] = {}
        self._writing = threading.Lock()
        self._asked: PendingRequests[Callable[[], None]] = PendingRequests("own-")
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
                done = self._asked.pop(message.get("id"))
                if done is not None:
                    done()
                continue
            if "id" in message:
                self._answer(method, message)
            elif self._begun and not self._over:
                self._hear(method, message.get("params"))
        return 0 if self._over else 1

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send(notification(method, params))

    def request(self, method: str, params: Any, done: Callable[[], None]) -> None:
        """Send a request; of its answer it only matters that it has come."""
        number = self._asked.add(done)
        if number is not None:
            self._send(request(number, method, params))

    # -- the working thread -----------------------------------------------------------------

    def _next(self) -> Message | None:
        """The next message; until it comes, what can be done beforehand."""
        more = self._begun and not self._over
        while more and self._inbox.empty():
            self._resting = context = RequestContext()
            if not self._inbox.empty():  # it came before the reading thread could see the context
                break
            try:
                more = self._idle(context)
            except Exception as error:  # noqa: BLE001 - nobody has asked for it
                more = False
                if not context.cancelled:
                    _complain("beforehand", error)
        self._resting = None
        return self._inbox.get()

    def _hear(self, method: str, params: Any) -> None:
        handler = self._notifications.get(method)
        if handler is None:
            return
        try:
            handler(params)
        except Exception as error:  # noqa: BLE001 - a client's mistake ends nobody's work
            _complain(method, error)

    def _answer(self, method: str, message: Message) -> None:
        number = message["id"]
        wanted = request_id(message)
        context = None if wanted is None else self._contexts.get(wanted)
        try:
            reply = response(
                number, self._result(method, message.get("params"), context or RequestContext())
            )
        except RequestError as error:
            reply = error_response(number, error.code, error.message)
        except FilepactError as error:
            reply = error_response(number, REQUEST_FAILED, error.message)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _complain(method, error)
            reply = error_response(number, INVALID_PARAMS, f"cannot take this {method[:100]}")
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            if context is None or not context.cancelled:
                _complain(method, error)
            reply = error_response(number, INTERNAL_ERROR, type(error).__name__)
        if wanted is not None:
            self._contexts.pop(wanted, None)
        if context is not None and context.cancelled:
            # What ended the work may have ended it in any way.
            reply = error_response(number, REQUEST_CANCELLED, "the request was cancelled")
        self._send(reply)

    def _result(self, method: str, params: Any, context: RequestContext) -> Any:
        if self._over:
            raise RequestError("the server was shut down", INVALID_REQUEST)
        if method == "initialize":
            if self._begun:
                raise RequestError("the conversation has begun already", INVALID_REQUEST)
        elif not self._begun:
            raise RequestError("the first request is initialize", NOT_INITIALIZED)
        if context.cancelled:
            raise RequestError("the request was cancelled", REQUEST_CANCELLED)
        if method == "shutdown":
            self._over = True
            return None
        handler = self._requests.get(method)
        if handler is None:
            raise RequestError(f"{method[:100]} is not known here", METHOD_NOT_FOUND)
        result = handler(params, context)
        self._begun = True
        return result

    # -- the reading thread -----------------------------------------------------------------

    def _read(self) -> None:
        reader = FrameReader()
        try:
            while data := read_some(self._source):
                for message in reader.feed(data):
                    self._sort(message)
        except FrameError as error:
            _complain("reading", error)
        for context in list(self._contexts.values()):
            context.cancel()
        self._put(None)

    def _sort(self, message: Message | InvalidMessage) -> None:
        if isinstance(message, InvalidMessage):
            self._send(error_response(None, PARSE_ERROR, message.reason))
            return
        wanted, params = request_id(message), message.get("params")
        if message.get("method") == "$/cancelRequest" and isinstance(params, dict):
            cancelled = request_id(params)
            context = None if cancelled is None else self._contexts.get(cancelled)
            if context is not None:
                context.cancel()
            return
        if wanted is not None and isinstance(message.get("method"), str):
            self._contexts[wanted] = RequestContext(self._partial(params))
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
        with self._writing:
            write_all(self._sink, frame(message))


class LanguageServer:
    """The common part of all servers: the folder, the open documents, the first messages.

    Attributes:
        name: By which the server is known to clients.
        root: The folder that is served; empty until the client has named it.
        documents: What the client has open.
        requests: What is done for each request, by its method.
        notifications: What is done for each notification.

    Args:
        root: The folder to serve; empty for the one that the client names.
    """

    name = "filepact-csharp"

    def __init__(self, root: str) -> None:
        self.root = root
        self.documents = OpenDocuments()
        self.requests: dict[str, Callable[[Any, RequestContext], Any]] = {
            "initialize": self._initialize
        }
        self.notifications: dict[str, Callable[[Any], object]] = {
            "textDocument/didOpen": self.documents.open,
            "textDocument/didChange": self.documents.change,
            "textDocument/didClose": self.documents.close,
        }
        self._connection: Connection | None = None

    def talk(self, source: int, sink: int) -> int:
        """Serve one client over two file descriptors; the answer is the process's status."""
        self._connection = Connection(source, sink, self.requests, self.notifications, self.warm)
        return self._connection.run()

    def warm(self, _context: RequestContext) -> bool:
        """Do a part of what the first question would have to wait for; whether there is more."""
        return False

    def begin(self, _able: Any) -> dict[str, Any]:
        """Make ready, and tell what the server can do, to a client that can do something itself."""
        raise NotImplementedError

    @property
    def version(self) -> str:
        """Of what the server looks with; empty if that is not known."""
        return ""

    def _initialize(self, params: Any, _context: RequestContext) -> Any:
        able, root = params.get("capabilities") or {}, params.get("rootUri")
        self.root = self.root or path_of(root) or ""
        offered = (able.get("general") or {}).get("positionEncodings") or []
        self.documents.unit = "utf-8" if "utf-8" in offered else "utf-16"
        said = self.begin(able)
        version = {"version": self.version} if self.version else {}
        return {
            "capabilities": {"positionEncoding": self.documents.unit, **said},
            "serverInfo": {"name": self.name, **version},
        }


def _complain(what: str, error: Exception) -> None:
    print(f"{what[:100]}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr, flush=True)  # noqa: T201 - a server's log

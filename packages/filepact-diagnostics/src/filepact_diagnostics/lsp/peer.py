"""JSON-RPC with one language server: requests, notifications and cancellation; no I/O."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from filepact_diagnostics.lsp.failures import (
    RequestFailedError,
    RequestTimeoutError,
    ServerError,
    ServerExitedError,
)
from filepact_wire.framing import FrameError, FrameReader, InvalidMessage, frame
from filepact_wire.messages import (
    INTERNAL_ERROR,
    SERVER_CANCELLED,
    Message,
    ResponseError,
    error_response,
    notification,
    request,
    response,
)
from filepact_wire.pending_requests import PendingRequests

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_wire.messages import RequestId

__all__ = ["ClientProtocol"]

_LONGEST: Final = 600.0  # seconds after which one that must not be cancelled is


class ClientProtocol:
    """Our side of the conversation; it belongs to one event loop.

    Args:
        send: Takes the bytes of one message.
        on_request: Answers the server's requests; may raise `RequestFailedError`.
        on_notification: Takes the server's notifications.
        on_broken: Called once, with the reason, when the conversation cannot go on.

    Attributes:
        heard: How many messages have come; it tells a silent server from a slow one.
        nonsense: How many of them were no messages, answered nothing, or were of a wrong shape.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        on_request: Callable[[str, Any], Any],
        on_notification: Callable[[str, Any], None],
        on_broken: Callable[[str], None],
    ) -> None:
        self._send = send
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_broken = on_broken
        self._reader = FrameReader()
        self._pending = PendingRequests[asyncio.Future[Any]]()
        self._over = ""
        self._alone = asyncio.Lock()
        self.message_count = 0
        self.nonsense = 0

    def feed(self, data: bytes) -> None:
        """Take bytes of the server."""
        if self._over:
            return
        try:
            for message in self._reader.feed(data):
                if isinstance(message, InvalidMessage):
                    self.nonsense += 1
                else:
                    self.message_count += 1
                    self._take(message)
        except FrameError as error:
            self.close(str(error))
            self._on_broken(str(error))

    def notify(self, method: str, params: Any) -> None:
        """Send a notification.

        Raises:
            ServerExitedError: The server is gone.
        """
        if self._over:
            raise ServerExitedError(self._over)
        self._send(frame(notification(method, params)))

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        """Send a request and wait for its result; one that is given up is cancelled at the server.

        Raises:
            RequestFailedError: The answer is an error.
            RequestTimeoutError: There is none in time.
            ServerExitedError: The server is gone.
        """
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        number = self._pending.add(answer)
        if number is None:
            raise ServerExitedError(self._over)
        reason = f"no answer to {method} within {seconds:.1f} s"
        timer = loop.call_later(seconds, self._give_up, number, reason)
        try:
            self._send(frame(request(number, method, params)))
            return await answer
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            timer.cancel()
            self._pending.pop(number)

    async def request_alone(self, method: str, params: Any, seconds: float) -> Any:
        """Send a request once the last one of its kind is answered; an abandoned one is not cancelled."""
        loop = asyncio.get_running_loop()
        end, late = loop.time() + seconds, f"no answer to {method} within {seconds:.1f} s"

        async def ask() -> Any:
            async with self._alone:
                if loop.time() >= end:
                    raise RequestTimeoutError(late)
                return await self.request(method, params, _LONGEST)

        asked = loop.create_task(ask())
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        if not (await asyncio.wait({asked}, timeout=seconds))[0]:
            raise RequestTimeoutError(late)
        return asked.result()

    def close(self, reason: str) -> None:
        """End the conversation; requests that are pending fail with the reason."""
        self._over = self._over or reason
        for answer in self._pending.close().values():
            if not answer.done():
                answer.set_exception(ServerExitedError(self._over))

    def _give_up(self, number: RequestId, reason: str) -> None:
        answer = self._pending.pop(number)
        if answer is not None and not answer.done():
            answer.set_exception(RequestTimeoutError(reason))
            self._cancel(number)

    def _cancel(self, number: RequestId) -> None:
        try:
            self.notify("$/cancelRequest", {"id": number})
        except ServerError:
            return

    def _take(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str) and "id" in message:
            self._answer(method, number, message.get("params"))
        elif isinstance(method, str):
            try:
                self._on_notification(method, message.get("params"))
            except (AttributeError, KeyError, TypeError, ValueError):
                self.nonsense += 1  # of another shape than the protocol's
        else:
            self._settle(number, message)

    def _settle(self, number: object, message: Message) -> None:
        answer = self._pending.pop(number)
        if answer is None or answer.done():
            self.nonsense += 1  # late, or made up
            return
        if not isinstance(message.get("error"), dict):
            answer.set_result(message.get("result"))
            return
        error = ResponseError.of(message["error"])
        again = error.data.get("retriggerRequest", True) if isinstance(error.data, dict) else True
        retry = error.code == SERVER_CANCELLED and bool(again)
        answer.set_exception(RequestFailedError(error.code, error.message[:500], retry=retry))

    def _answer(self, method: str, number: object, params: object) -> None:
        try:
            reply = response(number, self._on_request(method, params))
        except RequestFailedError as error:
            reply = error_response(number, error.code, error.message)
        except (AttributeError, KeyError, TypeError, ValueError):
            self.nonsense += 1
            reply = error_response(number, INTERNAL_ERROR, f"cannot take this {method}")
        try:
            self._send(frame(reply))
        except ServerExitedError as error:
            self.close(str(error))
            self._on_broken(str(error))

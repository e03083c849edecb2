"""JSON-RPC between two equals: requests with answers, notifications, cancellation; no I/O."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from filepact.lsp.failures import (
    INTERNAL_ERROR,
    SERVER_CANCELLED,
    AnswerError,
    GoneError,
    LateError,
    ServerError,
)
from filepact.wire.framing import FrameReader, FramingError, Garbled, Message, frame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Peer"]


class Peer:
    """Our side of a conversation.

    Args:
        send: Takes the bytes of one message.
        on_request: Answers the other side's requests; may raise `AnswerError`.
        on_notification: Takes the other side's notifications.
        on_broken: Called once when the conversation cannot go on, with the reason.
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
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next = 0
        self._over = ""
        self.heard = 0
        """Messages of the other side so far; a silent server is told from a slow one by it."""
        self.nonsense = 0
        """Messages that were none, answered nothing, or could not be taken."""

    def feed(self, data: bytes) -> None:
        """Take bytes of the other side."""
        if self._over:
            return
        try:
            for message in self._reader.feed(data):
                if isinstance(message, Garbled):
                    self.nonsense += 1
                else:
                    self.heard += 1
                    self._take(message)
        except FramingError as error:
            self.close(str(error))
            self._on_broken(str(error))

    def notify(self, method: str, params: Any) -> None:
        """Send a notification.

        Raises:
            GoneError: The other side is gone.
        """
        if self._over:
            raise GoneError(self._over)
        self._send(frame({"jsonrpc": "2.0", "method": method, "params": params}))

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        """Send a request and wait for its answer; a request that is given up is cancelled there.

        Raises:
            AnswerError: The answer is an error.
            LateError: There is none in time.
            GoneError: The other side is gone.
        """
        if self._over:
            raise GoneError(self._over)
        self._next += 1
        number = self._next
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        loop = asyncio.get_running_loop()
        answer = self._waiting[number] = loop.create_future()
        reason = f"no answer to {method} within {seconds:.1f} s"
        timer = loop.call_later(seconds, self._give_up, number, reason)
        try:
            self._send(frame(message))
            return await answer
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            timer.cancel()
            del self._waiting[number]

    def close(self, reason: str) -> None:
        """End the conversation; whoever waits learns why."""
        if self._over:
            return
        self._over = reason
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(GoneError(reason))

    def _give_up(self, number: int, reason: str) -> None:
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_exception(LateError(reason))
            self._cancel(number)

    def _cancel(self, number: int) -> None:
        if not self._over:
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
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            self.nonsense += 1  # late, or made up
            return
        error = message.get("error")
        if not isinstance(error, dict):
            answer.set_result(message.get("result"))
            return
        code = error.get("code")
        code = code if isinstance(code, int) else INTERNAL_ERROR
        data = error.get("data")
        again = data.get("retriggerRequest", True) if isinstance(data, dict) else True
        text = str(error.get("message", ""))[:500]
        answer.set_exception(
            AnswerError(code, text, retry=code == SERVER_CANCELLED and bool(again))
        )

    def _answer(self, method: str, number: object, params: object) -> None:
        reply: Message = {"jsonrpc": "2.0", "id": number}
        try:
            reply["result"] = self._on_request(method, params)
        except AnswerError as error:
            reply["error"] = {"code": error.code, "message": error.message}
        except (AttributeError, KeyError, TypeError, ValueError):
            self.nonsense += 1
            reply["error"] = {"code": INTERNAL_ERROR, "message": f"cannot take this {method}"}
        try:
            self._send(frame(reply))
        except GoneError as error:
            self.close(str(error))
            self._on_broken(str(error))

"""Runs the MCP SDK in a thread of its own, from the first message that needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from filepact.faces.mcp.protocol import REPLAYED
from filepact.values import late_logger
from filepact.wire.messages import INTERNAL_ERROR, ErrorResponse, Message, RequestId, request_id

__all__ = ["Attach", "SdkServer"]

_log = late_logger(__name__)

Take = Callable[[Message | None], object]  # None is the end
Attach = Callable[[Take], None]
Run = Callable[[Attach, Callable[[Message], None]], None]


class SdkServer:
    """A queue of messages to the SDK, and the thread in which it runs.

    Args:
        run: Serves what it is handed until the end, and sends with the other function it is given;
            imports the package first, so it is slow.
        send: Takes what the client is to get; must not block.
    """

    def __init__(self, run: Run, send: Callable[[Message], None]) -> None:
        self._serve = run
        self._send = send
        self._changed = threading.Condition()
        self._early: list[Message | None] = []
        self._open: set[RequestId] = set()
        self._take: Take | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def give(self, message: Message) -> None:
        """Pass a request or notification to the SDK, without waiting for it to start."""
        with self._changed:
            if self._ended:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mcp-package", daemon=True)
                self._thread.start()
            wanted = request_id(message)
            if wanted is not None:
                self._open.add(wanted)
            elif message["method"] == "notifications/cancelled":
                # What is cancelled is never answered, so nobody has to wait for it.
                self._close(request_id({"id": message["params"]["requestId"]}))
            self._hand_over(message)

    def cancel(self, note: Message) -> None:
        """Tell the SDK that a request is cancelled, if it has any that is not answered."""
        with self._changed:
            if self._open:
                self._close(request_id({"id": note["params"]["requestId"]}))
                self._hand_over(note)

    def settle(self, patience: float) -> None:
        """Wait until every request is answered, or for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open, patience)

    def wait_until_there(self) -> None:
        """Wait until the package takes messages, if it was ever given one."""
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or self._take is not None)

    def finish(self) -> None:
        """Bring the package to its end and wait for it, if it ever began."""
        with self._changed:
            self._ended = True
            self._hand_over(None)
        if self._thread is not None:
            self._thread.join()

    def _hand_over(self, item: Message | None) -> None:
        if self._take is None:
            self._early.append(item)
        else:
            self._take(item)

    def _close(self, answered: RequestId | None) -> None:
        if answered is not None:
            self._open.discard(answered)
            self._changed.notify_all()

    # -- in the package's thread ----------------------------------------------------------

    def _run(self) -> None:
        try:
            self._serve(self._attach, self._sent)
        except Exception:  # noqa: BLE001 - what is dealt with directly goes on
            _log.exception("the protocol package has failed")
        self._attach(self._refuse)

    def _attach(self, take: Take) -> None:
        with self._changed:
            for item in self._early:
                take(item)
            self._early.clear()
            self._take = take
            self._changed.notify_all()

    def _sent(self, message: Message) -> None:
        if message.get("id") != REPLAYED:
            self._send(message)
        if "method" not in message:
            with self._changed:
                self._close(request_id(message))

    def _refuse(self, item: Message | None) -> None:
        wanted = None if item is None else request_id(item)
        if wanted is not None:
            reason = "internal error; the server's log has the details"
            self._sent(ErrorResponse(INTERNAL_ERROR, reason, wanted).reply)

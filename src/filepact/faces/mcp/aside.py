"""The protocol package in a thread beside, started by the first message that needs it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from filepact.faces.mcp.lines import INTERNAL_ERROR, Message, Refusal, request_id

__all__ = ["Aside", "Attach", "End"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class End:
    """There will be no more messages.

    Attributes:
        patience: Seconds that those in flight may still take.
    """

    patience: float


Take = Callable[[Message | End], object]
Attach = Callable[[Take], None]


class Aside:
    """Messages for the package, in order, from the moment when there is one.

    Args:
        run: Serves what it is handed, until the end; imports the package first, so it is slow.
        send: Takes what the client is to get; must not block.
    """

    def __init__(self, run: Callable[[Attach], None], send: Callable[[Message], None]) -> None:
        self._serve = run
        self._send = send
        self._lock = threading.Lock()
        self._early: list[Message | End] = []
        self._take: Take | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def give(self, message: Message) -> None:
        """Let the package have a message; does not wait for the package to be there."""
        with self._lock:
            if self._ended:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mcp-package", daemon=True)
                self._thread.start()
            self._hand_over(message)

    def end(self, patience: float) -> None:
        """Tell the package that nothing more comes.

        Args:
            patience: Seconds that what is in flight may still take.
        """
        with self._lock:
            self._ended = True
            self._hand_over(End(patience))

    def join(self) -> None:
        """Wait until the package has come to its end, if it ever began."""
        if self._thread is not None:
            self._thread.join()

    def _hand_over(self, item: Message | End) -> None:
        if self._take is None:
            self._early.append(item)
        else:
            self._take(item)

    def _attach(self, take: Take) -> None:
        with self._lock:
            for item in self._early:
                take(item)
            self._early.clear()
            self._take = take

    def _run(self) -> None:
        try:
            self._serve(self._attach)
        except Exception:  # noqa: BLE001 - what is dealt with directly goes on
            _log.exception("the protocol package has failed")
        self._attach(self._refuse)

    def _refuse(self, item: Message | End) -> None:
        wanted = None if isinstance(item, End) else request_id(item)
        if wanted is not None:
            reason = "internal error; the server's log has the details"
            self._send(Refusal(INTERNAL_ERROR, reason, wanted).reply)

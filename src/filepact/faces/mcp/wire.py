"""The two pipes to the client: one thread reads, one thread writes, nobody else touches them.

Standard input and output are moved aside first, so that neither a stray print nor a child process
can put a byte between the messages, or take one.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING

from filepact.faces.mcp.lines import LineReader, Refusal, request_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.faces.mcp.lines import Message, RequestId
    from filepact.faces.mcp.opening import Opening

__all__ = ["Wire", "standard_pipes"]

_CHUNK = 1 << 16
_LAST_WRITE = 2.0  # seconds for a client that is slow to take the last answers


@contextmanager
def standard_pipes() -> Iterator[tuple[int, int]]:
    """Take standard input and output for the protocol, and leave harmless ones in their place."""
    source, sink = (os.dup(fd) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    printed, sys.stdout = sys.stdout, sys.stderr
    try:
        yield source, sink
    finally:
        sys.stdout = printed
        os.dup2(source, 0)
        os.dup2(sink, 1)


class Wire:
    """Messages from and to one client.

    Args:
        source: Descriptor to read from.
        sink: Descriptor to write to.
        opening: Answers what is asked before `attach`.
    """

    def __init__(self, source: int, sink: int, opening: Opening) -> None:
        self._source = source
        self._sink = sink
        self._opening = opening
        self._outgoing: SimpleQueue[Message | None] = SimpleQueue()
        self._answered: set[RequestId] = set()
        self._lock = threading.Lock()
        self._early: list[Message | None] = []
        self._receive: Callable[[Message | None], None] | None = None
        self._writer = threading.Thread(target=self._write, name="mcp-writer", daemon=True)
        self._reader = threading.Thread(target=self._read, name="mcp-reader", daemon=True)

    def start(self) -> None:
        """Begin to read, and to answer what the opening can answer."""
        self._writer.start()
        self._reader.start()

    def attach(self, receive: Callable[[Message | None], None]) -> None:
        """Hand over every message so far and from now on, in order; None is the end.

        ``receive`` is called in the wire's own threads and must not block.  It may be told of
        the end twice: when nothing more can be read, and when nothing more can be sent.
        """
        with self._lock:
            for message in self._early:
                receive(message)
            self._early.clear()
            self._receive = receive

    def send(self, message: Message) -> None:
        """Send a message, unless it answers what the opening has answered."""
        if self._answered and "method" not in message:
            with self._lock:
                answered = message.get("id")
                if answered in self._answered:
                    self._answered.discard(answered)
                    return
        self._outgoing.put(message)

    def close(self) -> None:
        """Wait until everything is sent, if the client takes it."""
        self._outgoing.put(None)
        self._writer.join(_LAST_WRITE)

    # -- reading --------------------------------------------------------------------------

    def _read(self) -> None:
        lines = LineReader()
        while data := self._next_bytes():
            for item in lines.feed(data):
                self._take(item)
        for item in lines.end():
            self._take(item)
        self._hand_over(None)

    def _next_bytes(self) -> bytes:
        while True:
            try:
                return os.read(self._source, _CHUNK)
            except BlockingIOError:
                # The client made the pipe non-blocking for itself, and so for us.
                select.select([self._source], [], [])
            except OSError:
                return b""

    def _take(self, item: Message | Refusal) -> None:
        if isinstance(item, Refusal):
            self._outgoing.put(item.reply)
            return
        if self._receive is None:
            result = self._opening.answer(item)
            wanted = request_id(item)
            if result is not None and wanted is not None:
                with self._lock:
                    self._answered.add(wanted)
                self._outgoing.put({"jsonrpc": "2.0", "id": wanted, "result": result})
        self._hand_over(item)

    def _hand_over(self, message: Message | None) -> None:
        with self._lock:
            if self._receive is None:
                self._early.append(message)
            else:
                self._receive(message)

    # -- writing --------------------------------------------------------------------------

    def _write(self) -> None:
        while (message := self._outgoing.get()) is not None:
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            # A lone surrogate becomes \udcxx, which is how JSON spells it.
            rest = memoryview(text.encode("utf-8", "backslashreplace") + b"\n")
            while rest:
                try:
                    rest = rest[os.write(self._sink, rest) :]
                except BlockingIOError:
                    select.select([], [self._sink], [])
                except OSError:
                    # Who takes no answers has left; there is nothing more to hear from it.
                    self._hand_over(None)
                    return

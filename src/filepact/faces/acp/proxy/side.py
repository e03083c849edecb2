"""The editor or the agent, at the other end of two pipes."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from filepact.wire.framing import LineCutter
from filepact.wire.pipes import read_some, widen, write_all

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LONGEST", "Side"]

LONGEST: Final = 64 * 1_048_576
"""Most bytes of one line that is passed on."""

_SHORT, _MOST = 1 << 16, 1 << 20  # bytes that are read at once
_AT_ONCE: Final = select.PIPE_BUF  # a pipe that can be written to takes so much without waiting
_HELD: Final = 2 * LONGEST  # bytes that wait for a neighbour before who sends them waits too
_LAST_WRITE: Final = 2.0  # seconds for a neighbour that is slow to take the last lines


class Side:
    """Lines from and to one neighbour.

    Args:
        name: For the names of threads.
        source: Descriptor to read from.
        sink: Descriptor to write to.
    """

    def __init__(self, name: str, source: int, sink: int) -> None:
        self._name = name
        self._source = source
        self._sink = sink
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._held = 0
        self._writing = False
        self._open = True
        self._writer = threading.Thread(target=self._write, name=f"{name}-writer", daemon=True)

    def start(self, receive: Callable[[bytes | None], None], *, ended: Callable[[], None]) -> None:
        """Begin to read and write.

        Args:
            receive: Takes each line, in order, in the reading thread; None for one too long.
            ended: Called once the neighbour sends nothing more.
        """

        def read() -> None:
            cutter = LineCutter(LONGEST)
            most = _SHORT
            try:
                while data := read_some(self._source, most):
                    # What a pipe cannot hold at once is a long line, with more of it to come.
                    most = _MOST if len(data) == most else _SHORT
                    for line in cutter.feed(data):
                        receive(line)
                for line in cutter.end():
                    receive(line)
            finally:
                ended()

        for pipe in (self._source, self._sink):
            widen(pipe)
        self._writer.start()
        threading.Thread(target=read, name=f"{self._name}-reader", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Send a line after those before it; waits only for a neighbour that takes nothing."""
        data = line + b"\n"
        with self._changed:
            if self._idle and len(data) <= _AT_ONCE and select.select([], [self._sink], [], 0)[1]:
                # Another thread would have to wake up for it, which takes longer than writing.
                try:
                    data = data[os.write(self._sink, data) :]
                except BlockingIOError:
                    pass
                except OSError:
                    self._open = False
            if data and self._open:
                self._changed.wait_for(lambda: self._held < _HELD or not self._open)
                self._waiting.append(data)
                self._held += len(data)
                self._changed.notify_all()

    def close(self) -> None:
        """Send what waits, if the neighbour takes it, and nothing afterwards."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or not self._open, _LAST_WRITE)
            self._open = False
            self._changed.notify_all()

    @property
    def _idle(self) -> bool:
        return self._open and not self._waiting and not self._writing

    def _write(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or not self._open)
                if not self._waiting:
                    return
                data = self._waiting.popleft()
                self._held -= len(data)
                self._writing = True
            if not write_all(self._sink, data):
                with self._changed:
                    self._open = False
                    self._writing = False
                    self._waiting.clear()
                    self._changed.notify_all()
                return

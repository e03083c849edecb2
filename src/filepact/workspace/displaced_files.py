"""Watches displaced files for writes by programs that still had them open.

A program that had a file open while it was replaced may write to it afterwards; its text would
vanish with the old file.  Replaced files therefore stay open for a while.  A thread of its own
looks at them, so that no call waits for that and a late text is kept even if no call comes.  One that a
program still has open for writing is kept open for longer, and what is written until it is let go
is kept once more then.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.errors import FilepactError
from filepact.fs.path_form import is_beneath
from filepact.values import begun, dataclass, late_logger, replace

if TYPE_CHECKING:
    from collections.abc import Collection

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import ChangeId
    from filepact.fs.atomic import DisplacedFile
    from filepact.fs.state import StateFolder
    from filepact.workspace.journal import JournalStore

__all__ = ["DisplacedFiles"]

_log = late_logger(__name__)

_MOST = 256
_LOOKS = (0.05, 2.0)
"""Seconds after the replacement at which a file is looked at; after the last it is let go."""
_TOGETHER = 0.05
"""Seconds that a look may come later, so that it comes together with others."""
_AGAIN = 2.0
_LONGEST = 600.0
"""Seconds between further looks at a file that is open for writing, and after which there are no more."""


@dataclass(frozen=True, slots=True)
class _Watched:
    change_id: ChangeId
    path: WorkspacePath
    displaced: DisplacedFile
    since: float
    begun: float
    kept: bool = False


class DisplacedFiles:
    """Watches replaced files, and keeps what is written to them in the state folder.

    Args:
        store: The journal, in which a rescue is noted.
        state: Where rescued texts are put.
    """

    def __init__(self, store: JournalStore, state: StateFolder) -> None:
        self._store = store
        self._state = state
        # One queue for each look; whoever came first is due first.
        self._queues: tuple[deque[_Watched], ...] = tuple(deque() for _ in _LOOKS)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, change_id: ChangeId, path: WorkspacePath, displaced: DisplacedFile) -> None:
        """Take over a file that an operation replaced."""
        with self._changed:
            idle = not any(self._queues)
            now = time.monotonic()
            self._queues[0].append(_Watched(change_id, path, displaced, now, now))
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name="filepact-late-writes", daemon=True
                )
                if begun(thread):
                    self._thread = thread
                else:  # nobody would let go of it
                    self._look(self._queues[0].pop(), last=True)
            elif idle or self._crowded():
                self._changed.notify()

    def let_go(self, folders: Collection[WorkspacePath]) -> bool:
        """Look for the last time at replaced files that lay in folders, whichever operation replaced them; whether there were any."""
        with self._changed:
            every = [one for queue in self._queues for one in queue]
            some = [
                one
                for one in every
                if any(
                    at.root == one.path.root and is_beneath(one.path.path, at.path)
                    for at in folders
                )
            ]
            for queue in self._queues:
                kept = [one for one in queue if one not in some]
                queue.clear()
                queue.extend(kept)
        for one in some:
            self._look(one, last=True)
        return bool(some)

    def close(self) -> None:
        """Look at all files once more and let them go."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        for queue in self._queues:
            while queue:
                self._look(queue.popleft(), last=True)

    def _crowded(self) -> bool:
        return sum(map(len, self._queues)) > _MOST

    def _run(self) -> None:
        while (found := self._next()) is not None:
            look, one, crowded = found
            last = crowded or look + 1 == len(_LOOKS)
            if last and not crowded and self._goes_on(one):
                # As if it had been replaced just now: the last queue is looked at in that order.
                again = replace(one, since=time.monotonic() + _AGAIN - _LOOKS[-1])
                with self._changed:
                    self._queues[-1].append(again)
                continue
            if (left := self._look(one, last=last)) is not None:
                with self._changed:
                    self._queues[min(look + 1, len(_LOOKS) - 1)].append(left)

    def _goes_on(self, one: _Watched) -> bool:
        return time.monotonic() - one.begun < _LONGEST and one.displaced.has_writer()

    def _next(self) -> tuple[int, _Watched, bool] | None:
        """The next file whose time has come, with its look; None when everything ends."""
        with self._changed:
            while not self._closed:
                waiting = [
                    (queue[0].since + _LOOKS[look], look)
                    for look, queue in enumerate(self._queues)
                    if queue
                ]
                if not waiting:
                    self._changed.wait()
                    continue
                due, look = min(waiting)
                # Descriptors are few: the oldest files are let go early when there are too many.
                if crowded := self._crowded():
                    look = max(look for _, look in waiting)
                elif (pause := due - time.monotonic()) > 0:
                    self._changed.wait(pause + _TOGETHER)
                    continue
                return look, self._queues[look].popleft(), crowded
        return None

    def _look(self, one: _Watched, *, last: bool) -> _Watched | None:
        """Look at a file, and keep a late text the first time and when it is let go.

        Returns:
            What is to be looked at again; None when it was let go.
        """
        late = None
        if last or not one.kept:
            with suppress(OSError):
                late = one.displaced.late_write()
        if late is not None:
            try:
                self._rescue(one, late)
            except (FilepactError, OSError):
                _log.exception("a late write to %s could not be kept", one.path)
            one.displaced.known_as(late)
            one = replace(one, kept=True)
        if not last:
            return one
        one.displaced.close()
        return None

    def _rescue(self, one: _Watched, late: bytes) -> None:
        kept = self._state.rescue(one.path.path.rpartition("/")[2], late)
        operation = self._store.operation(one.change_id)
        note = f"another program wrote to the replaced file; its text is kept in {kept}"
        self._store.finish(
            one.change_id,
            state=operation.state,
            note="; ".join(filter(None, [operation.note, note])),
        )

"""Looking, around an agent's turns, for what it has written past all doors."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Literal

from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.faces.acp.agents import ConnectionInfo
    from filepact.faces.acp.proxy.questions import AccessCounts
    from filepact.faces.acp.sessions import AcpSession

__all__ = ["ExternalWatcher"]

_log = logging.getLogger(__name__)

Task = Literal["learn", "refresh", "look", "read", "end"]


class ExternalWatcher:
    """One thread that looks, so that nobody waits for it.

    What the files hold is read while there is nothing else to do.

    Args:
        facts: Who the agent is.
        doors: Counts what is found.
        looked: Told when the agent's steps up to here were looked at.
        let_go: Told when nothing is looked at any more for a session.
    """

    def __init__(
        self,
        facts: ConnectionInfo,
        doors: AccessCounts,
        looked: Callable[[AcpSession], None],
        let_go: Callable[[AcpSession], None],
    ) -> None:
        self._facts = facts
        self._doors = doors
        self._looked = looked
        self._let_go = let_go
        self._changed = threading.Condition()
        self._tasks: deque[tuple[Task, AcpSession]] = deque()
        self._unread: deque[AcpSession] = deque()
        self._working: list[AcpSession] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="acp-watch", daemon=True)
        self._thread.start()

    def begin(self, bound: AcpSession) -> None:
        """Learn what is there before the agent begins."""
        self._put("learn", bound)

    def turn(self, bound: AcpSession, *, begins: bool) -> None:
        """Take what a person has done until now for known, or look at what the agent has done."""
        if not begins:
            if bound in self._working:
                self._working.remove(bound)
            self._put("look", bound)
            return
        others = [
            other
            for other in self._working
            if other is not bound and other.workspace is bound.workspace
        ]
        if bound not in self._working:
            self._working.append(bound)
        if others:
            # Another agent is at work here: what it has done is not the person's.
            self._put("look", others[0])
        else:
            bound.workspace.external.mark()
            self._put("refresh", bound)

    def look(self, bound: AcpSession) -> None:
        """Look at what the agent has done so far in its turn."""
        with self._changed:
            waiting = ("look", bound) in tuple(self._tasks)[1:]
        if not waiting:
            self._put("look", bound)

    def end(self, bound: AcpSession) -> None:
        """Look for the last time, and let go of the session."""
        if bound in self._working:
            self.turn(bound, begins=False)
        self._put("end", bound)

    def close(self) -> None:
        """Do what is still to be done, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _put(self, task: Task, bound: AcpSession) -> None:
        with self._changed:
            self._tasks.append((task, bound))
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tasks or self._unread or self._closing)
                if not self._tasks and self._closing:
                    return
                task, bound = self._tasks[0] if self._tasks else ("read", self._unread[0])
            try:
                self._do(task, bound)
            except FilepactError as error:
                _log.warning("what was written past the doors is not known: %s", error.message)
            except Exception:  # noqa: BLE001 - looking must not end what is looked at
                _log.exception("what was written past the doors is not known")
            if task != "read":
                with self._changed:
                    self._tasks.popleft()

    def _do(self, task: Task, bound: AcpSession) -> None:
        outside = bound.workspace.external
        if task == "look":
            actor = Actor("agent", self._facts.agent, self._facts.version)
            looked = outside.detect(Session(bound.id, actor))
            if looked.operation is not None:
                changes = len(looked.operation.changes.changes)
                self._doors.count("past", changes)
                _log.warning(
                    "%s; `filepact show %s`", looked.operation.summary, looked.operation.id
                )
            if looked.unkept:
                _log.warning("changed past the doors, and not kept: %s", ", ".join(looked.unkept))
            self._looked(bound)
        elif task == "refresh":
            outside.resnapshot(contents=False)
            self._unread.append(bound)
        elif task == "learn":
            outside.snapshot(contents=False, cancelled=self._nobody_needs_it)
            self._unread.append(bound)
        elif task == "read":
            self._unread.popleft()
            if not outside.read_contents(cancelled=lambda: bool(self._tasks) or self._closing):
                self._unread.appendleft(bound)
        else:
            self._unread = deque(one for one in self._unread if one is not bound)
            self._let_go(bound)

    def _nobody_needs_it(self) -> bool:
        """Whether everything ends before an agent has begun."""
        return self._closing and not any(task == "look" for task, _ in tuple(self._tasks))

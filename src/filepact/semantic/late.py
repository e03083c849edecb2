"""Answers that come too late for the receipt of their change, and are told with a later one."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.semantic.asked import Limit
from filepact.semantic.summary import describe_late
from filepact.semantic.verdict import Tally
from filepact.workspace.news import Unheard

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.semantic.case import Case

__all__ = ["Late"]

_PAUSE: Final = 0.2
_SLICE: Final = 0.3
_LAST_QUESTION: Final = 5.0
_PATIENCE: Final = 180.0
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class _Waiting:
    session: str
    case: Case
    patience: Limit


class Late:
    """Goes on asking about changes aside, a little at a time, so that nobody else has to wait.

    Args:
        show: A file's absolute path as a reader knows it.

    Attributes:
        unheard: What has come for each session, and was not told yet.
    """

    def __init__(self, show: Callable[[str], str]) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self.unheard = Unheard()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, session: str, case: Case) -> None:
        """Tell a session, once it is known, what servers find after a change."""
        patience = Limit.after(_PATIENCE, self._over.is_set, patient=True)
        with self._lock:
            self._waiting = [*self._waiting, _Waiting(session, case, patience)][-_MOST:]
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(target=self._work, name="late answers", daemon=True)
                self._thread.start()

    def supersede(self, session: str, case: Case) -> None:
        """Forget what a session waits for where it changes the same files again."""
        paths = {one.path for one in case.steps}
        with self._lock:
            self._waiting = [
                one
                for one in self._waiting
                if one.session != session or not paths >= {step.path for step in one.case.steps}
            ]

    def close(self) -> None:
        """Ask no more."""
        self._over.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_LAST_QUESTION)

    def _work(self) -> None:
        while not self._over.wait(_PAUSE):
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                waiting = list(self._waiting)
            for one in waiting:
                text = self._answer(one)
                if text is None:
                    continue
                with self._lock:
                    if one in self._waiting:
                        self._waiting.remove(one)
                        if text:
                            self.unheard.add(one.session, text)

    def _answer(self, one: _Waiting) -> str | None:
        """What there is to tell; empty when that is nothing any more, None when not yet."""
        if not one.case.stands or not one.patience.rest:
            return ""
        never = self._over.is_set
        if not one.case.answered(Limit.after(_SLICE, never, patient=True)):
            return None
        tally = Tally("dependents")
        servers = one.case.follow(tally, Limit.after(_LAST_QUESTION, never, patient=True))
        findings = tally.findings()
        if findings is None or any(each.kind == "pending" for each in servers):
            return None
        names = [each.server for each in servers if each.confirmed_by != "none"]
        paths = [step.absolute for step in one.case.steps]
        return describe_late(names, findings, paths, self._show)

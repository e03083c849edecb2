"""The sessions of one connection, each with its folders and nothing else."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.errors import InvalidParamsError
from filepact.workspace.buffers import Buffers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.config.settings import Settings
    from filepact.semantic.service import SemanticWorkspace
    from filepact.workspace.workspace import Mode, Workspace

__all__ = ["Bound", "Sessions"]


@dataclass(slots=True, eq=False)
class Bound:
    """One session.

    Attributes:
        turn: Counts what ends a turn; a write that began in an earlier one is dropped.
        cancelled: Its turn was cancelled, and no other has begun: nothing is written for it.
        ending: Nothing more is begun for it.
        mode: Whether its allowed changes are done or wait; None for what holds for all.
    """

    id: str
    roots: tuple[str, ...]
    workspace: Workspace
    turn: int = 0
    cancelled: bool = False
    ending: bool = False
    mode: Mode | None = None


class Sessions:
    """Sessions by id; those with the same folders share a workspace.

    Args:
        state_dir: The state folder; None takes the person's.
        mode: Whether allowed changes are done or wait.
        settings: What people have set.
        home: The person's home folder; None takes the one of whoever runs this.
        look: Makes what language servers make of a workspace; None for none.

    Attributes:
        buffers: What editors have open, for all sessions.
        settings: As they were given.
    """

    def __init__(
        self,
        state_dir: str | None,
        *,
        mode: Mode,
        settings: Settings,
        home: str | None = None,
        look: Callable[[Workspace], SemanticWorkspace | None] | None = None,
    ) -> None:
        self.buffers = Buffers()
        self.settings = settings
        self._open = partial(
            open_workspace,
            state_dir=state_dir,
            mode=mode,
            settings=settings,
            home=home,
            buffers=self.buffers,
        )
        self._bound: dict[str, Bound] = {}
        self._shared: dict[tuple[str, ...], tuple[Workspace, int]] = {}
        self._look = look
        self._insights: dict[Workspace, SemanticWorkspace | None] = {}
        self._looking = threading.Lock()

    def start(self, session_id: str, cwd: str, additional: Sequence[str] = ()) -> Bound:
        """Bind a session to its folders; one that is bound already gets these instead."""
        roots = (cwd, *additional)
        if not all(root.startswith("/") for root in roots):
            raise InvalidParamsError("a session's folders have to be absolute paths")
        known = self._shared.get(roots)
        if known is None:
            known = (self._open(roots), 0)
        self._shared[roots] = (known[0], known[1] + 1)
        self.end(session_id)
        bound = self._bound[session_id] = Bound(session_id, roots, known[0])
        return bound

    def get(self, session_id: str) -> Bound | None:
        """A session that was started and has not ended."""
        return self._bound.get(session_id)

    def semantics(self, bound: Bound) -> SemanticWorkspace | None:
        """What language servers make of a session's files; made when it is first wanted."""
        if self._look is None:
            return None
        with self._looking:
            if bound.workspace not in self._insights:
                self._insights[bound.workspace] = self._look(bound.workspace)
            return self._insights[bound.workspace]

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """Those in use, each once."""
        return tuple(workspace for workspace, _ in self._shared.values())

    def end(self, session_id: str) -> None:
        """Forget a session; a workspace that no other uses is closed."""
        bound = self._bound.pop(session_id, None)
        if bound is not None:
            self._let_go(bound)

    def release(self, bound: Bound) -> None:
        """Forget one that goes by another name now, or has been replaced."""
        for name, known in tuple(self._bound.items()):
            if known is bound:
                self.end(name)

    def _let_go(self, bound: Bound) -> None:
        bound.turn += 1
        bound.ending = True
        workspace, users = self._shared[bound.roots]
        if users > 1:
            self._shared[bound.roots] = (workspace, users - 1)
        else:
            del self._shared[bound.roots]
            with self._looking:
                semantics = self._insights.pop(workspace, None)
            if semantics is None:
                workspace.close()
            else:
                # Servers take their time to end, and whoever ends a session may hold a lock.
                threading.Thread(target=_close, args=(semantics, workspace)).start()

    def end_all(self) -> None:
        """Forget every session."""
        for session_id in tuple(self._bound):
            self.end(session_id)


def _close(semantics: SemanticWorkspace, workspace: Workspace) -> None:
    semantics.close()
    workspace.close()

"""The sessions of one connection, each with its folders and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.errors import InvalidParamsError
from filepact.workspace.buffers import Buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.workspace.workspace import Mode, Workspace

__all__ = ["Bound", "Sessions"]


@dataclass(slots=True)
class Bound:
    """One session.

    Attributes:
        turn: Counts what ends a turn; a write that began in an earlier one is dropped.
    """

    id: str
    roots: tuple[str, ...]
    workspace: Workspace
    turn: int = 0


class Sessions:
    """Sessions by id; those with the same folders share a workspace.

    Args:
        state_dir: The state folder.
        mode: Whether allowed changes are done or wait.
        home: The person's home folder, if links to the secrets in it are to be known.
    """

    def __init__(self, state_dir: str, *, mode: Mode, home: str | None) -> None:
        self._state_dir = state_dir
        self._mode: Mode = mode
        self._home = home
        self._buffers = Buffers()
        self._bound: dict[str, Bound] = {}
        self._shared: dict[tuple[str, ...], tuple[Workspace, int]] = {}

    def start(self, session_id: str, cwd: str, additional: Sequence[str] = ()) -> Bound:
        """Bind a session to its folders; one that is bound already gets these instead."""
        roots = (cwd, *additional)
        if not all(root.startswith("/") for root in roots):
            raise InvalidParamsError("a session's folders have to be absolute paths")
        known = self._shared.get(roots)
        if known is None:
            workspace = open_workspace(
                roots,
                state_dir=self._state_dir,
                mode=self._mode,
                buffers=self._buffers,
                home=self._home,
            )
            known = (workspace, 0)
        self._shared[roots] = (known[0], known[1] + 1)
        self.end(session_id)
        bound = self._bound[session_id] = Bound(session_id, roots, known[0])
        return bound

    def get(self, session_id: str) -> Bound | None:
        """A session that was started and has not ended."""
        return self._bound.get(session_id)

    def end(self, session_id: str) -> None:
        """Forget a session; a workspace that no other uses is closed."""
        bound = self._bound.pop(session_id, None)
        if bound is None:
            return
        bound.turn += 1
        workspace, users = self._shared[bound.roots]
        if users > 1:
            self._shared[bound.roots] = (workspace, users - 1)
        else:
            del self._shared[bound.roots]
            workspace.close()

    def end_all(self) -> None:
        """Forget every session."""
        for session_id in tuple(self._bound):
            self.end(session_id)

"""The sessions of one connection, each with its folders and all that is known of it."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from filepact.app import open_workspace
from filepact.domain.operation import Session
from filepact.errors import InvalidParamsError
from filepact.values import dataclass, field
from filepact.workspace.buffers import Buffers
from filepact.workspace.journal import new_turn
from filepact_acp.permissions import ToolCalls, call_of, read_question, rule_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.config.settings import Settings
    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Actor
    from filepact.tools.engine import ChangeJudge
    from filepact.workspace.workspace import Mode, Workspace
    from filepact_acp.permissions import PermissionDecision, PermissionRequest
    from filepact_wire.messages import Message

__all__ = ["AcpSession", "Sessions"]


@dataclass(slots=True, eq=False)
class AcpSession:
    """One session and its state.

    Attributes:
        id: The agent's; while the agent is still opening the session, the one that was asked for,
            or a name of ours.
        roots: Its folders as they were sent, the working folder first.
        workspace: Of these folders; open as long as somebody holds the session.
        turn: Counts what ends a turn; a question of an earlier one is closed.
        drops: Counts what ends one early; a write that came before is dropped.
        turn_name: What the journal calls the turn that began last; empty before the first.
        cancelled: Its turn was cancelled, and no other has begun: nothing is written for it.
        ending: Nothing more is begun for it.
        ended: It is not found any more, and only held to finish what has begun.
        mode: Whether its allowed changes are done or wait; None for what holds for all.
        opening: The agent has not answered yet that it is open.
        requested_id: While it is opening, the id that was asked for; None where the agent chooses it.
        answers_own: Whether questions about our own reading tools are answered without a person.
        recorded: Whether what the agent asks and reports is being written down.
        calls: What the agent has reported of its tool calls.
        waiting: Futures of questions that are put to the person, each with the change that it is
            about; empty for a question of the agent's own.
        turn_errors: What language servers know of errors that its turn has added and left; None where
            they were asked about nothing.
    """

    id: str
    roots: tuple[str, ...]
    workspace: Workspace
    turn: int = 0
    drops: int = 0
    turn_name: str = ""
    cancelled: bool = False
    ending: bool = False
    ended: bool = False
    mode: Mode | None = None
    opening: bool = False
    requested_id: str | None = None
    answers_own: bool = False
    recorded: bool = False
    calls: ToolCalls = field(default_factory=ToolCalls)
    waiting: dict[Any, str] = field(default_factory=dict)
    turn_errors: Callable[[], str] | None = None
    holds: int = 1

    def caller(self, agent: Actor) -> Session:
        """The session as the journal keeps it, for what its agent does just now."""
        return Session(self.id, agent, self.id, turn=self.turn_name)

    def begin_turn(self) -> None:
        """The person asks for something; it may write again if its last turn was cancelled."""
        self.turn_name = new_turn()
        self.cancelled = False
        self.turn_errors = None

    def end_turn(self, *, early: bool) -> None:
        """The turn is over; if early, what has come and is not written is not written any more."""
        self.turn += 1
        self.drops += early

    def name_of(self, path: WorkspacePath) -> str:
        """A file as the editor calls it, whatever links lead to its folder."""
        for given in self.roots:
            found = self.workspace.guard.inside(given)
            if found is not None and (found[0].path, found[1]) == (path.root, "."):
                return f"{given.rstrip('/')}/{path.path}"
        return path.absolute

    def judge(self, params: Message, agent: str) -> tuple[PermissionRequest, PermissionDecision]:
        """Read the subject of a ``session/request_permission``, and apply the rules to it."""
        asked = read_question(params, self.roots[0])
        asked = self.calls.whole(call_of(params), asked)
        return asked, rule_on(asked, self.workspace.guard, agent)


@dataclass(slots=True, eq=False)
class _Folders:
    """A workspace that sessions with the same folders share.

    Attributes:
        users: Sessions that are held.
        semantics: What language servers make of it; None for none, and until it is wanted.
    """

    workspace: Workspace
    users: int = 0
    semantics: ChangeJudge | None = None
    looked: bool = False


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
        look: Callable[[Workspace], ChangeJudge | None] | None = None,
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
        self._bound: dict[str, AcpSession] = {}
        self._held: list[AcpSession] = []
        self._shared: dict[tuple[str, ...], _Folders] = {}
        self._look = look
        self._looking = threading.Lock()

    def open(self, session_id: str, cwd: str, additional: Sequence[str] = ()) -> AcpSession:
        """Open the folders of a session, which is held and which `get` does not find yet.

        Raises:
            InvalidParamsError: A folder is not absolute.
            FilepactError: A folder cannot be opened.
        """
        roots = (cwd, *additional)
        if not all(root.startswith("/") for root in roots):
            raise InvalidParamsError("a session's folders have to be absolute paths")
        shared = self._shared.get(roots)
        if shared is None:
            shared = self._shared[roots] = _Folders(self._open(roots))
        shared.users += 1
        session = AcpSession(session_id, roots, shared.workspace)
        self._held.append(session)
        return session

    def bind(self, session: AcpSession, session_id: str) -> None:
        """Let a session be found by its id; one that had the id before is ended."""
        self.end(self._bound.get(session_id))
        session.id = session_id
        self._bound[session_id] = session

    def get(self, session_id: object) -> AcpSession | None:
        """A session that was bound to this id, whatever was sent as one, and has not ended."""
        return self._bound.get(session_id) if isinstance(session_id, str) else None

    def named(self, session_id: str) -> list[AcpSession]:
        """All sessions with this id, those that have ended and are still held among them."""
        return [one for one in self._held if one.id == session_id]

    def semantics(self, session: AcpSession) -> ChangeJudge | None:
        """The semantic workspace of a session; made when it is first wanted."""
        if self._look is None:
            return None
        with self._looking:
            shared = self._shared[session.roots]
            if not shared.looked:
                shared.semantics, shared.looked = self._look(session.workspace), True
            return shared.semantics

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """The workspaces in use, each once."""
        return tuple(shared.workspace for shared in self._shared.values())

    def end(self, session: AcpSession | None) -> None:
        """Begin nothing more for a session, and let go of it."""
        if session is None or session.ended:
            return
        session.end_turn(early=True)
        session.ending = session.ended = True
        if self._bound.get(session.id) is session:
            del self._bound[session.id]
        self.release(session)

    def hold(self, session: AcpSession) -> None:
        """Keep a session's workspace open until `release`, also when the session has ended."""
        session.holds += 1

    def release(self, session: AcpSession) -> None:
        """Let go of a session; a workspace of which nobody holds one is closed."""
        session.holds -= 1
        if session.holds > 0 or session not in self._held:
            return
        self._held.remove(session)
        shared = self._shared[session.roots]
        shared.users -= 1
        if shared.users:
            return
        with self._looking:
            del self._shared[session.roots]
        if shared.semantics is None:
            shared.workspace.close()
        else:
            # Servers take their time to end, and whoever ends a session may hold a lock.
            threading.Thread(target=_close, args=(shared.semantics, shared.workspace)).start()

    def end_all(self) -> None:
        """End every session, and hold none any more."""
        for session in tuple(self._held):
            self.end(session)
            session.holds = min(session.holds, 1)
            self.release(session)


def _close(semantics: ChangeJudge, workspace: Workspace) -> None:
    semantics.close()
    workspace.close()

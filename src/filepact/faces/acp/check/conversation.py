"""The agent's part of the conversation around the checks: sessions, prompts, and wishes.

Some checks need a client that opens a second session or cancels a turn.  No agent can ask for
that over the protocol, so it is asked for beside it, of suites that have the client in their hands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from filepact.faces.acp.check.messages import UNKNOWN_METHOD
from filepact.faces.acp.check.outcome import Skipped
from filepact.faces.acp.check.peer import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.acp.check.messages import Message
    from filepact.faces.acp.check.peer import Peer
    from filepact.faces.acp.check.plan import Log, Plan

__all__ = ["Conversation", "Opened"]

_READ = "fs/read_text_file"


@dataclass(slots=True)
class Opened:
    """One session that the client has opened.

    Attributes:
        params: Of its ``session/new``.
        prompt: The prompt that is not answered yet.
        prompts: How many prompts there were.
        cancels: How often a turn was cancelled.
        closed: The client has closed it.
    """

    id: str
    params: Message
    prompt: Message | None = None
    prompts: int = 0
    cancels: int = 0
    closed: bool = False


@dataclass(slots=True)
class Conversation:
    """What the client has said so far.

    Attributes:
        plan: Says whether wishes are fulfilled.
        log: Where wishes are written.
        initialize: The parameters of the client's ``initialize``.
        methods: Everything that it has called, in order.
        sessions: By id.
        early: A read that was sent together with the answer to the first ``session/new``.
    """

    plan: Plan
    log: Log
    early_path: str
    initialize: Message = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)
    sessions: dict[str, Opened] = field(default_factory=dict)
    early: Message | None = None
    peer: Peer = field(init=False)

    @property
    def first_session(self) -> str:
        """The id of the session that the client opened first."""
        return next(iter(self.sessions))

    def capability(self, *names: str) -> object:
        """What the client announced under a path of names; None if nothing."""
        found: Any = self.initialize.get("clientCapabilities")
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    # -- what the client says ---------------------------------------------------------------

    def hear(self, message: Message) -> None:
        """Take in a request or notification, and answer it; prompts are answered later."""
        method, params = message["method"], message.get("params")
        self.methods.append(method)
        if not isinstance(params, dict):
            params = {}
        named = params.get("sessionId")
        known = self.sessions.get(named) if isinstance(named, str) else None
        if method == "session/prompt" and known is not None:
            known.prompt = message
            known.prompts += 1
        elif method == "session/cancel" and known is not None:
            known.cancels += 1
        elif method == "session/new":
            self._open(message, params)
        elif "id" in message:
            self._answer(message, params, known)

    def _open(self, message: Message, params: Message) -> None:
        opened = Opened(f"check-{len(self.sessions) + 1}", params)
        answers: list[Message] = [{"id": message.get("id"), "result": {"sessionId": opened.id}}]
        if not self.sessions and self.capability("fs", "readTextFile") is True:
            asked = {"sessionId": opened.id, "path": self.early_path}
            self.early = self.peer.request(_READ, asked)
            answers.append(self.early)
        self.sessions[opened.id] = opened
        self.peer.send(*answers)

    def _answer(self, message: Message, params: Message, known: Opened | None) -> None:
        result: Message | None = {}
        if message["method"] == "initialize":
            self.initialize = params
            offered: Message = {"close": {}}
            if self.plan.steered:
                offered["additionalDirectories"] = {}
            result = {
                "protocolVersion": 1,
                "agentInfo": {"name": "filepact-check", "version": "1"},
                "agentCapabilities": {"sessionCapabilities": offered},
                "authMethods": [],
            }
        elif message["method"] == "session/close" and known is not None:
            known.closed = True
        elif message["method"] not in {"authenticate", "session/set_mode"}:
            result = None
        if result is None:
            error = {"code": UNKNOWN_METHOD, "message": "The suite's agent has no such method."}
            self.peer.send({"id": message["id"], "error": error})
        else:
            self.peer.send({"id": message["id"], "result": result})

    # -- what the agent wishes --------------------------------------------------------------

    def want_session(self, cwd: str, more: Sequence[str] = ()) -> Opened:
        """A new session, in a turn.

        Raises:
            Skipped: Nobody fulfils wishes.
            NoAnswer: The client does not do it in time.
        """
        before = len(self.sessions)
        self._want("session", cwd=cwd, more=list(more))
        # A prompt comes only after the client has read that the session is open.
        self.peer.until(
            lambda: len(self.sessions) > before and self._newest().prompt is not None,
            "no second session was opened",
        )
        return self._newest()

    def want_prompt(self, opened: Opened) -> None:
        """A further turn of a session; raises as `want_session`."""
        before = opened.prompts
        self._want("prompt", session=opened.id)
        self.peer.until(lambda: opened.prompts > before, "no further prompt was sent")

    def want_cancel(self, opened: Opened) -> None:
        """The end of a session's turn by ``session/cancel``; raises as `want_session`."""
        before = opened.cancels
        self._want("cancel", session=opened.id)
        self.peer.until(lambda: opened.cancels > before, "session/cancel was not sent")

    def want_close(self, opened: Opened) -> None:
        """The end of a session; raises as `want_session`."""
        self.end_turn(opened)
        self._want("close", session=opened.id)
        self.peer.until(lambda: opened.closed, "session/close was not sent")

    def end_turn(self, opened: Opened, reason: str = "end_turn") -> None:
        """Answer a session's prompt, if one waits."""
        prompt, opened.prompt = opened.prompt, None
        if prompt is not None:
            self.peer.send({"id": prompt.get("id"), "result": {"stopReason": reason}})

    def end_other_turns(self) -> None:
        """Answer the prompts of all sessions but the first."""
        for opened in list(self.sessions.values())[1:]:
            self.end_turn(opened)

    def wait_for_client(self) -> bool:
        """Wait until the checks may begin; False if no session was opened in time."""
        try:
            self.peer.until(lambda: bool(self.sessions), "no session was opened")
        except NoAnswer:
            return False
        return True

    def _newest(self) -> Opened:
        return self.sessions[next(reversed(self.sessions))]

    def _want(self, what: str, **facts: object) -> None:
        if not self.plan.steered:
            raise Skipped("only with a client in this process, which does what is asked for")
        self.log.add(wants=what, **facts)

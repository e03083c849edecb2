"""The agent's part of the conversation around the checks: sessions, turns, and further ones.

Some checks need a client that opens a second session or cancels a turn.  An agent cannot ask for
that over the protocol.  Where the suite drives the client itself, it is asked through the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acp_conformance.connection import METHOD_NOT_FOUND, READ, RequestTimeoutError
from acp_conformance.report import CheckSkippedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp_conformance.connection import Connection, Message
    from acp_conformance.scratch import CheckLog, Plan

__all__ = ["ClientRequests", "Session"]


@dataclass(slots=True)
class Session:
    """One session that the client has opened.

    Attributes:
        params: Of its ``session/new``.
        prompt: The prompt that is not answered yet.
        prompts: The number of prompts so far.
        cancels: The number of cancelled turns so far.
        closed: The client has closed it.
    """

    id: str
    params: Message
    prompt: Message | None = None
    prompts: int = 0
    cancels: int = 0
    closed: bool = False


@dataclass(slots=True)
class ClientRequests:
    """Answers the client's requests, and remembers its sessions.

    Attributes:
        initialize: The parameters of the client's ``initialize``.
        methods: The methods that it has called, in order.
        sessions: By id.
        early: A read that was sent together with the answer to the first ``session/new``.
    """

    plan: Plan
    log: CheckLog
    early_path: str
    initialize: Message = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)
    early: Message | None = None
    connection: Connection = field(init=False)

    @property
    def first_session(self) -> str:
        """The id of the session that the client opened first."""
        return next(iter(self.sessions))

    def capability(self, *names: str) -> object:
        """The client's capability under a path of names; None if there is none."""
        found: Any = self.initialize.get("clientCapabilities")
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    # -- the client's messages --------------------------------------------------------------

    def on_message(self, message: Message) -> None:
        """Handle a request or notification; prompts are answered at the end of their turn."""
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
        opened = Session(f"check-{len(self.sessions) + 1}", params)
        answers: list[Message] = [{"id": message.get("id"), "result": {"sessionId": opened.id}}]
        if not self.sessions and self.capability("fs", "readTextFile") is True:
            asked = {"sessionId": opened.id, "path": self.early_path}
            self.early = self.connection.request(READ, asked)
            answers.append(self.early)
        self.sessions[opened.id] = opened
        self.connection.send(*answers)

    def _answer(self, message: Message, params: Message, known: Session | None) -> None:
        result: Message | None = {}
        if message["method"] == "initialize":
            self.initialize = params
            offered: Message = {"close": {}}
            if self.plan.driven:
                offered["additionalDirectories"] = {}
            result = {
                "protocolVersion": 1,
                "agentInfo": {"name": "acp-conformance", "version": "1"},
                "agentCapabilities": {"sessionCapabilities": offered},
                "authMethods": [],
            }
        elif message["method"] == "session/close" and known is not None:
            known.closed = True
        elif message["method"] not in {"authenticate", "session/set_mode"}:
            result = None
        if result is None:
            error = {"code": METHOD_NOT_FOUND, "message": "The suite's agent has no such method."}
            self.connection.send({"id": message["id"], "error": error})
        else:
            self.connection.send({"id": message["id"], "result": result})

    # -- actions that only a driven client takes --------------------------------------------

    def open_session(self, cwd: str, more: Sequence[str] = ()) -> Session:
        """Have the client open a session and start a turn in it.

        Raises:
            CheckSkippedError: The suite does not drive the client.
            RequestTimeoutError: The client does not do it in time.
        """
        before = len(self.sessions)
        self._act("session", cwd=cwd, more=list(more))
        # A prompt comes only after the client has read that the session is open.
        self.connection.until(
            lambda: len(self.sessions) > before and self._newest().prompt is not None,
            "no second session was opened",
        )
        return self._newest()

    def start_turn(self, opened: Session) -> None:
        """Have the client start a further turn; raises as `open_session`."""
        before = opened.prompts
        self._act("prompt", session=opened.id)
        self.connection.until(lambda: opened.prompts > before, "no further prompt was sent")

    def cancel_turn(self, opened: Session) -> None:
        """Have the client cancel a turn; raises as `open_session`."""
        before = opened.cancels
        self._act("cancel", session=opened.id)
        self.connection.until(lambda: opened.cancels > before, "session/cancel was not sent")

    def close_session(self, opened: Session) -> None:
        """Have the client close a session; raises as `open_session`."""
        self.end_turn(opened)
        self._act("close", session=opened.id)
        self.connection.until(lambda: opened.closed, "session/close was not sent")

    def end_turn(self, opened: Session, reason: str = "end_turn") -> None:
        """Answer a session's open prompt, if it has one."""
        prompt, opened.prompt = opened.prompt, None
        if prompt is not None:
            self.connection.send({"id": prompt.get("id"), "result": {"stopReason": reason}})

    def end_other_turns(self) -> None:
        """Answer the prompts of all sessions but the first."""
        for opened in list(self.sessions.values())[1:]:
            self.end_turn(opened)

    def wait_for_session(self) -> bool:
        """Wait for the first session; False if none was opened in time."""
        try:
            self.connection.until(lambda: bool(self.sessions), "no session was opened")
        except RequestTimeoutError:
            return False
        return True

    def _newest(self) -> Session:
        return self.sessions[next(reversed(self.sessions))]

    def _act(self, action: str, **facts: object) -> None:
        if not self.plan.driven:
            raise CheckSkippedError("only with a client object, which the suite drives itself")
        self.log.add(action=action, **facts)

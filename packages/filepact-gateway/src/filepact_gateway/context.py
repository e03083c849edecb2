"""A request with what is known of its conversation, as if all of that had been heard here."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from secrets import token_urlsafe
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, ShuttingDownError
from filepact.tools.answers import failure
from filepact.values import dataclass, replace
from filepact_gateway.repeats import RequestHistory, RequestName, RequestRecord
from filepact_gateway.requests import refused_message
from filepact_mcp.app import knows
from filepact_mcp.calls import ToolExecutor
from filepact_mcp.protocol import (
    ClientMessage,
    ProtocolContext,
    ServerProtocol,
    TaskRequest,
    ToolRequest,
)
from filepact_mcp.results import CAPABILITIES_KEY, CLIENT_KEY, TASKS_KEY, call_result
from filepact_mcp.tasks import KEPT, NO_TASK, came_of, described
from filepact_wire.messages import INTERNAL_ERROR, INVALID_PARAMS, error_response, response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact_gateway.exchange import GatewayCall
    from filepact_gateway.tokens import GatewaySession
    from filepact_mcp.results import ServerInfo, ToolCache
    from filepact_wire.messages import Message

__all__ = ["RealmTools", "RequestContext", "TokenAccess", "UserContext"]

_SILENT: Final = 30.0  # seconds after which a worker that says nothing of its task counts as gone
_BROKEN: Final = error_response(0, INTERNAL_ERROR, "the call failed")


@dataclass(frozen=True, slots=True)
class RealmTools:
    """The tools of a workspace as some users may use them.

    Attributes:
        page: What one answer may take; None for what is known of each client.
    """

    tools: ToolCache
    facts: ServerInfo
    page: int | None = None


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """What somebody might use with a token that allows more.

    Attributes:
        error: Says so, where it is used without.
        challenge: What ``WWW-Authenticate`` says then.
    """

    served: RealmTools
    error: FilepactError
    challenge: str


@dataclass(frozen=True, slots=True)
class UserContext:
    """Who asks, and for what.

    Attributes:
        user: Empty where nobody has to say who they are.
        realm: The name of the workspace.
        wider: None where no scope is lacking.
    """

    user: str
    realm: str
    served: RealmTools
    wider: TokenAccess | None = None

    def seen(self, method: str, params: object) -> UserContext | TokenAccess:
        """As whom a request is answered; or what it is that it would need.  It may have to open the tools.

        Tools that only a scope is lacking for are listed, and a call of one says which: so a client asks its
        user for no more than what is used.
        """
        if self.wider is None:
            return self
        here, there = self.served.tools.names(), self.wider.served.tools.names()
        if not here < there:
            return self
        if method != "tools/call":
            return replace(self, served=self.wider.served, wider=None)
        called = params.get("name") if isinstance(params, dict) else None
        return self.wider if called in there - here else self


class RequestContext:
    """A request with all that is known of the conversation that it belongs to.

    Args:
        caller: Who asks.
        message: What came.
        session: Of the era of handshakes; None for none.
        modern: Whether it is of the other era.
        repeats: Recognises requests that are sent again.
        key: What this one is known by; None where it cannot come again.
    """

    def __init__(
        self,
        caller: UserContext,
        message: Message,
        session: GatewaySession | None,
        *,
        modern: bool,
        repeats: RequestHistory,
        key: RequestName | None,
    ) -> None:
        self._repeats, self._key = repeats, key
        self._change, self._over, self._lock = "", False, Lock()
        self.task = token_urlsafe(18) if modern and _may_be_task(message) else ""
        """The name of the task that the call can become; empty for none."""
        if self.task:
            name = key or RequestName("key", ("task", caller.user, caller.realm), self.task)
            self._change = repeats.change_of(name)
        self._repeated: RequestRecord | None = None
        self.told_again = False  # what was done before
        self.answered: Mapping[str, Any] | None = None
        """The result that the client is sent, where it matters whether it arrives."""
        self.caller = caller
        self.message = message
        self.session = session
        self.modern = modern
        self.opens = not modern and session is None

    @property
    def waits(self) -> bool:
        """Whether the answer needs the tools, which may take their time."""
        return str(self.message["method"]).startswith("tools/")

    @property
    def looks_up(self) -> bool:
        """Whether the answer needs what the gateway keeps."""
        return self.modern and self.message["method"].startswith("tasks/")

    @property
    def line(self) -> str:
        """The session in whose line it waits; empty where there are none."""
        return self.session.id if self.session else ""

    def refused(self, error: FilepactError) -> Message | None:
        """The answer to a call of a tool that is not carried out, for the model; None for any other request."""
        if self.message["method"] != "tools/call":
            return None
        return response(self.message["id"], self._of_era(call_result(failure(error))))

    def failed(self, error: FilepactError) -> Message:
        """The answer where the gateway itself cannot go on, for its client."""
        return refused_message(error, self.message["id"])

    def answer(self, call: GatewayCall) -> Message | None:
        """Carry the request out; in a thread where it `waits`.

        Args:
            call: Knows whether the client still waits, and tells it how far this is.

        Returns:
            The answer; None where the client wants none.
        """
        served = self.caller.served
        opening = None if self.session is None else self.session.opening
        before = ProtocolContext(opening, self.modern)
        # Of a request, one thing is made; the client's folders are not asked for.
        (step,) = ServerProtocol(served.facts, folders=False, before=before).take(self.message)
        if isinstance(step, ClientMessage):
            return step.message
        if isinstance(step, TaskRequest):
            try:
                return self._told_of(step)
            except FilepactError as error:
                return self.failed(error)
        if not isinstance(step, ToolRequest):
            raise TypeError(f"a request that is {type(step).__name__}")
        if (told := self._answered_before()) is not None:
            return told
        tools = ToolExecutor(
            served.tools,
            session_factory=self._named,
            page=served.page,
            within=f"gateway {self.caller.user} ",
        )
        made = tools.answer(step, served.facts, cancelled=call.is_cancelled, tell=call.tell)
        if not call.close() and not call.handed_out:
            made.lost()
            if call.is_cancelled() and self._repeated and self._repeated.by_id:
                # Who has cancelled it does not ask for it again: the same id is another request.
                self._repeats.settle(self._repeated, {}, delivered=True)
            return None
        made.sent()
        told = self._kept(made.message)
        if call.handed_out:
            self.end_task(told, cancelled=call.is_cancelled())
        return told

    # -- tasks --------------------------------------------------------------------------------

    def begin_task(self) -> Message:
        """Note for all workers that the call goes on as a task; the answer that names it."""
        store, key = self._tasks(self.task)
        now = store.now()
        store.claim(key, json.dumps([now, self._change]))
        self.keep_task()
        told = self._of_era(described(self.task, "working", (now, now)))
        return response(self.message["id"], told | {"resultType": "task"})

    def keep_task(self) -> bool:
        """Say that the call goes on; whether its client has cancelled the task."""
        store, key = self._tasks(self.task)
        with self._lock:
            if not self._over:
                store.keep(key, {"at": store.now(), "status": "working", "told": {}})
        return store.find(f"{key} over") is not None

    def end_task(self, answer: Message | None, *, cancelled: bool) -> None:
        """Keep what came of the call, once; where that is not possible, it is looked up what was done."""
        with self._lock, suppress(FilepactError):
            if not self._over:
                self._over = True
                answer = answer or (response(0, {}) if cancelled else _BROKEN)
                status, told = came_of(answer, cancelled=cancelled)
                self._ended(self.task, {"status": status, "told": told})

    def _told_of(self, asked: TaskRequest) -> Message:
        """Answer a request about a task, whichever worker carries its call out."""
        store, key = self._tasks(asked.task)
        (noted, state), ended = store.find(key) or ("", None), store.find(f"{key} ended")
        state = json.loads(ended[0]) if ended else state
        if state is None or state["at"] + KEPT < store.now():
            return error_response(asked.id, INVALID_PARAMS, NO_TASK)
        began, change = json.loads(noted)
        if state["status"] == "working":
            silent = state["at"] + _SILENT < store.now()
            if silent and (found := self._looked_up(change)):
                state = self._ended(asked.task, found)
            if state["status"] != "working" or asked.method == "tasks/cancel":
                store.claim(f"{key} over", "")  # Whoever carries it out gives it up.
        told = described(asked.task, state["status"], (began, state["at"])) | state["told"]
        return response(asked.id, self._of_era(told if asked.method == "tasks/get" else {}))

    def _ended(self, task: str, state: dict[str, Any]) -> dict[str, Any]:
        """Keep how a task ended, or find how it did: what any worker told first stays."""
        store, key = self._tasks(task)
        state = {"at": store.now(), **state}
        earlier = store.claim(f"{key} ended", json.dumps(state))
        return json.loads(earlier[0]) if earlier else state

    def _looked_up(self, change: str) -> dict[str, Any]:
        """What became of a task whose worker is silent, by the journal; empty while another one is at it."""
        tools, asking = self.caller.served.tools.toolbox(), replace(self._asking(), request=change)
        try:
            done = self._repeats.found(tools, change, asking)
        except FilepactError:
            return {}
        if done:
            return {"status": "completed", "told": {"result": self._of_era(done)}}
        said = "the worker that carried the call out is silent, and nothing of it is done by now"
        error = ShuttingDownError(said, hint="Look with history, then send the call again.")
        return {"status": "failed", "told": {"error": self.failed(error)["error"]}}

    def _tasks(self, name: str) -> tuple[Any, str]:
        """What the processes of the gateway have in common, and as what a task of this user's client stands there."""
        client = self.message["params"]["_meta"].get(CLIENT_KEY) or {}
        owner = (self.caller.user, self.caller.realm, client.get("name"), client.get("version"))
        facts = repr(("task", *owner, name))
        return self._repeats.store, sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()

    def _answered_before(self) -> Message | None:
        """The answer, if the request came before and was carried out."""
        if self._key is None:
            return None
        tools, params = self.caller.served.tools.toolbox(), self.message["params"]
        try:
            found = self._repeats.begin(self._key, tools, params, self._asking())
        except FilepactError as error:
            return self.failed(error)
        if isinstance(found, RequestRecord):
            self._repeated = found
        elif found is not None:
            self.told_again = True
            return response(self.message["id"], self._of_era(found))
        return None

    def _kept(self, message: Message) -> Message:
        """The answer to send, now that the request was carried out."""
        if self._repeated is None:
            return message
        tools, result = self.caller.served.tools.toolbox(), message.get("result", {})
        told = self._repeats.end(self._repeated, result, tools, self._asking())
        if self._repeated.by_id and told.get("isError") is False:
            self.answered = told
        return message if told is result else response(message["id"], self._of_era(told))

    def settle(self, *, delivered: bool) -> None:
        """The answer has arrived, or is lost."""
        if self._repeated and self.answered is not None:
            self._repeats.settle(self._repeated, self.answered, delivered=delivered)

    def _of_era(self, result: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(result)
        return self.caller.served.facts.modern(made) if self.modern else made

    def _asking(self) -> Session:
        """A session to look back with, whoever the client says it is."""
        return Session("gateway", Actor("agent", "unknown", user=self.caller.user))

    def _named(self, actor: Actor) -> Session:
        user = self.caller.user
        change = request = self._change
        if self._repeated is not None:
            change, request = self._repeated.change, self._repeated.first
        acting = replace(actor, user=user) if user else actor
        # Without sessions all that a user's program does is one, but for what its host tells apart.
        name = self.session.id if self.session else _lasting(self.caller, actor)
        within = f"gateway {name if self.session else f'{user} {actor}'}"
        return Session(name, acting, within, change=change, request=request, shared=True)


def _lasting(caller: UserContext, actor: Actor) -> str:
    facts = repr((caller.user, caller.realm, actor.name, actor.version))
    return f"mcp-{sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _may_be_task(message: Message) -> bool:
    """Whether a message is a call of a tool by a client that knows tasks."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    declared = meta.get(CAPABILITIES_KEY) if isinstance(meta, dict) else None
    return message["method"] == "tools/call" and knows(declared, TASKS_KEY) is not None

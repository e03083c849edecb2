"""A request with what is known of its conversation, as if all of that had been heard here."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact.faces.mcp.calls import ToolExecutor
from filepact.faces.mcp.protocol import (
    ClientMessage,
    ProtocolContext,
    ServerProtocol,
    ToolRequest,
)
from filepact.faces.mcp.results import call_result
from filepact.tools.answers import failure
from filepact.values import dataclass, replace
from filepact.wire.messages import error_response, response
from filepact_gateway.repeats import RequestHistory, RequestName, RequestRecord
from filepact_gateway.requests import REFUSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.faces.mcp.results import ServerInfo, ToolCache
    from filepact.wire.messages import Message
    from filepact_gateway.tokens import GatewaySession

__all__ = ["RealmTools", "RequestCall", "RequestContext", "TokenAccess", "UserContext"]


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


class RequestCall(Protocol):
    """A request that is being carried out, as far as its client has a part in it."""

    def is_cancelled(self) -> bool:
        """Whether the client does not want the answer any more."""

    def tell(self, message: Message, /) -> None:
        """Send the client a notification, if it still waits."""

    def close(self) -> bool:
        """Take no more word from the client: whether it waits for the answer that is there now."""


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
        repeats: RequestHistory | None,
        key: RequestName | None,
    ) -> None:
        self._repeats, self._key = repeats, key
        self._repeated: RequestRecord | None = None
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
        method: str = self.message["method"]
        return method.startswith("tools/")

    @property
    def line(self) -> str:
        """The session in whose line it waits; empty where there are none."""
        return self.session.id if self.session else ""

    def refused(self, error: FilepactError) -> Message | None:
        """The answer to a call of a tool that is not carried out, for the model; None for any other request."""
        if self.message["method"] != "tools/call":
            return None
        result = call_result(failure(error))
        return response(self.message["id"], self._of_era(result))

    def failed(self, error: FilepactError) -> Message:
        """The answer where the gateway itself cannot go on, for its client."""
        data: dict[str, Any] = {"code": error.code, "hint": error.hint}
        if (seconds := error.details.get("retry_after")) is not None:
            data["retryAfter"] = seconds
        said = f"{error.code}: {error.message}"
        return error_response(self.message["id"], REFUSED, said, data)

    def answer(self, call: RequestCall) -> Message | None:
        """Carry the request out; in a thread where it `waits`.

        Args:
            call: Knows whether the client still waits, and tells it how far this is.

        Returns:
            The answer; None where the client wants none.
        """
        served, opening = self.caller.served, None
        if self.session is not None:
            opening = self.session.opening
        before = ProtocolContext(opening, self.modern)
        # Of a request, one thing is made; the client's folders are not asked for.
        (step,) = ServerProtocol(served.facts, folders=False, before=before).take(self.message)
        if isinstance(step, ClientMessage):
            return step.message
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
        made = tools.answer(
            *(step, served.facts),
            cancelled=call.is_cancelled,
            tell=call.tell,
        )
        if not call.close():
            made.lost()
            if call.is_cancelled() and self._repeats and self._repeated and self._repeated.by_id:
                # Who has cancelled it does not ask for it again: the same id is another request.
                self._repeats.settle(self._repeated, {}, delivered=True)
            return None
        made.sent()
        return self._kept(made.message)

    def _answered_before(self) -> Message | None:
        """The answer, if the request came before and was carried out."""
        if self._repeats is None or self._key is None:
            return None
        tools, params = self.caller.served.tools.toolbox(), self.message["params"]
        try:
            found = self._repeats.begin(self._key, tools, params, self._asking())
        except FilepactError as error:
            return self.failed(error)
        if isinstance(found, RequestRecord):
            self._repeated = found
        elif found is not None:
            return response(self.message["id"], self._of_era(found))
        return None

    def _kept(self, message: Message) -> Message:
        """The answer to send, now that the request was carried out."""
        if self._repeated is None or self._repeats is None:
            return message
        tools, result = self.caller.served.tools.toolbox(), message.get("result", {})
        told = self._repeats.end(self._repeated, result, tools, self._asking())
        if self._repeated.by_id and told.get("isError") is False:
            self.answered = told
        return message if told is result else response(message["id"], self._of_era(told))

    def settle(self, *, delivered: bool) -> None:
        """The answer has arrived, or is lost."""
        if self._repeats and self._repeated and self.answered is not None:
            self._repeats.settle(self._repeated, self.answered, delivered=delivered)

    def _of_era(self, result: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(result)
        return self.caller.served.facts.modern(made) if self.modern else made

    def _asking(self) -> Session:
        """A session to look back with, whoever the client says it is."""
        return Session("gateway", Actor("agent", "unknown", user=self.caller.user))

    def _named(self, actor: Actor) -> Session:
        user = self.caller.user
        change, request = "", ""
        if self._repeated is not None:
            change, request = self._repeated.change, self._repeated.first
        acting = replace(actor, user=user)
        if self.session is not None:
            return Session(
                *(self.session.id, acting, f"gateway {self.session.id}"),
                change=change,
                request=request,
                shared=True,
            )
        # Without sessions all that a user's program does is one, but for what its host tells apart.
        lasting = _lasting(self.caller, actor)
        within = f"gateway {user} {actor}"
        return Session(lasting, acting, within, change=change, request=request, shared=True)


def _lasting(caller: UserContext, actor: Actor) -> str:
    facts = repr((caller.user, caller.realm, actor.name, actor.version))
    return f"mcp-{sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

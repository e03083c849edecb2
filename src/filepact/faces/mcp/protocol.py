"""Decides about each message of a client: answered, carried out, or passed on.  No I/O here.

Ordinary messages, which are nearly all there are, are dealt with directly.  Any other is passed on
to the protocol package, which takes half a second to import and a millisecond for each message, and
knows every corner of the protocol.  A message has one owner: it is never dealt with twice.  The
package has to know in which era it is and who the client is, though, so the first message that is
passed on is preceded by the opening of the conversation once more, under an id of our own; what
the package answers to that goes nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.domain.operation import Actor
from filepact.faces.mcp.fast_path import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    MODERN_VERSION,
    VERSION_KEY,
    elicitation_modes,
    is_ordinary_call,
    is_ordinary_envelope,
    is_ordinary_handshake,
    is_ordinary_meta,
)
from filepact.values import dataclass, field
from filepact.wire.messages import INVALID_PARAMS, ErrorResponse, request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.faces.mcp.fast_path import ServerInfo
    from filepact.wire.messages import Message, RequestId

__all__ = [
    "QUESTION_ID",
    "REPLAYED",
    "CancelCall",
    "ClientMessage",
    "ElicitationResponse",
    "FoldersRequest",
    "FoldersResponse",
    "ProtocolContext",
    "SdkMessage",
    "ServerProtocol",
    "Step",
    "ToolRequest",
    "actor_named",
]

REPLAYED: Final = "filepact:replayed"
"""The id under which the package is told again how the conversation began."""

QUESTION_ID: Final = "filepact:question:"
"""How the ids of questions for a person begin."""

_ROOTS_ID: Final = "filepact:roots:"


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """Send this to the client."""

    message: Message


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """Call a tool and answer with what comes of it.

    Attributes:
        token: Under which the client wants to hear of the progress, if it does.
        modern: Whether the result needs what the modern era adds to it.
        meta: The client's notes beside the call.
        modes: In which ways the client asks its person.
        state: Of a call that comes again with what the person said; None for another.
        answers: What they said.
    """

    id: RequestId
    name: str
    arguments: Mapping[str, object]
    actor: Actor
    token: RequestId | None
    modern: bool
    meta: Mapping[str, object] = field(default_factory=dict, compare=False)
    modes: frozenset[str] = frozenset()
    state: str | None = None
    answers: Mapping[str, object] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class CancelCall:
    """The client does not want the answer to this any more."""

    id: RequestId


@dataclass(frozen=True, slots=True)
class FoldersRequest:
    """Send this question for the client's folders; calls wait for the answer, for a moment."""

    question: Message


@dataclass(frozen=True, slots=True)
class FoldersResponse:
    """The client's answer to that question, as it came."""

    answer: Message


@dataclass(frozen=True, slots=True)
class ElicitationResponse:
    """The client's answer to a question for its person, as it came."""

    answer: Message


@dataclass(frozen=True, slots=True)
class SdkMessage:
    """The package is to have this."""

    message: Message


Step = (
    ClientMessage
    | FoldersRequest
    | CancelCall
    | ToolRequest
    | FoldersResponse
    | ElicitationResponse
    | SdkMessage
)


@dataclass(frozen=True, slots=True)
class ProtocolContext:
    """What is known of a conversation before its first message here.

    Attributes:
        opening: Its handshake, an ordinary one; None for none.
        modern: Whether it is of the era without handshakes.
        within: Goes before every name of a conversation that a host tells: two users of a gateway may
            tell the same.
    """

    opening: Message | None = None
    modern: bool = False
    within: str = ""


class ServerProtocol:
    """One client's messages, in the order in which they come.

    Args:
        facts: What the server says of itself.
        direct: Whether ordinary requests are dealt with here; if not, the package has every one.
        folders: Whether a client that has folders is asked for them.
        before: What is known of a conversation that goes on here.
    """

    def __init__(
        self,
        facts: ServerInfo,
        *,
        direct: bool = True,
        folders: bool = True,
        before: ProtocolContext | None = None,
    ) -> None:
        self._facts = facts
        self._direct = direct
        self._asks_folders = folders
        self._era: Literal["", "handshake", "modern"] = ""
        # The handshake as it was, while it is certain that the package would know the same.
        self._handshake: Message | None = None
        self._ready: Message | None = None
        self._actor = actor_named(None)
        self._modes: frozenset[str] = frozenset()
        self._passing = False
        self._has_folders = False
        self._asked = 0
        opening = None if before is None else before.opening
        if before is not None and before.modern:
            self._era = "modern"
        if opening is not None:
            self._era = "handshake"
            self._handshake = {**opening, "id": REPLAYED}
            self._ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            self._actor = actor_named(opening["params"]["clientInfo"])

    def take(self, message: Message) -> list[Step]:
        """Decide about a message: the actions to take, in order."""
        wanted = request_id(message)
        if "method" not in message:
            if isinstance(wanted, str) and wanted.startswith(QUESTION_ID):
                return [ElicitationResponse(message)]
            asked = self._asked and wanted == f"{_ROOTS_ID}{self._asked}"
            return [FoldersResponse(message)] if asked else []
        if wanted is None:
            return self._notified(message)
        params = message.get("params") or {}
        if not self._era and message["method"] == "server/discover" and not _has_envelope(params):
            # Only clients without a handshake know the method; the envelope is what is missing.
            return [ClientMessage(ErrorResponse(INVALID_PARAMS, _NO_ENVELOPE, wanted).reply)]
        if not self._era:
            # The first request decides, exactly as in the package.
            enveloped = message["method"] != "initialize" and _has_envelope(params)
            self._era = "modern" if enveloped else "handshake"
        if message["method"] == "initialize" and self._era == "handshake":
            return self._greeted(message, wanted, params)
        step = None
        if self._direct and _is_plain(message):
            if self._era == "modern":
                step = self._modern(message["method"], wanted, params)
            elif self._handshake is not None:
                step = self._after_handshake(message["method"], wanted, params)
        return self._pass_on(message) if step is None else [step]

    # -- requests -------------------------------------------------------------------------

    def _greeted(self, message: Message, wanted: RequestId, params: dict[str, Any]) -> list[Step]:
        capabilities = params.get("capabilities")
        has_folders = isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)
        self._has_folders = self._asks_folders and has_folders
        if not (self._direct and _is_plain(message) and is_ordinary_handshake(params)):
            # Whether the package accepts it is not known here; all that follows is the package's.
            steps = self._pass_on(message)
            self._handshake = None
            return steps
        self._handshake = {**message, "id": REPLAYED}
        self._actor = actor_named(params["clientInfo"])
        result = self._facts.initialized(params["protocolVersion"])
        self._modes = elicitation_modes(capabilities, result["protocolVersion"])
        answer = _answer(wanted, result)
        return [answer, SdkMessage(self._handshake)] if self._passing else [answer]

    def _after_handshake(
        self, method: str, wanted: RequestId, params: dict[str, Any]
    ) -> Step | None:
        if not is_ordinary_meta(params.get("_meta", {})):
            return None
        if method == "tools/call":
            return _carry_out(wanted, params, self._actor, self._modes, modern=False)
        if params.keys() - {"_meta"}:
            return None
        if method == "tools/list":
            return _answer(wanted, self._facts.listed())
        return _answer(wanted, {}) if method == "ping" else None

    def _modern(self, method: str, wanted: RequestId, params: dict[str, Any]) -> Step | None:
        if not is_ordinary_envelope(params.get("_meta")):
            return None
        if method == "tools/call":
            meta = params["_meta"]
            modes = elicitation_modes(meta[CAPABILITIES_KEY], MODERN_VERSION)
            actor = actor_named(meta.get(CLIENT_KEY))
            return _carry_out(wanted, params, actor, modes, modern=True)
        if params.keys() - {"_meta"}:
            return None
        if method == "tools/list":
            return _answer(wanted, self._facts.listed_modern())
        return _answer(wanted, self._facts.discovered()) if method == "server/discover" else None

    # -- notifications --------------------------------------------------------------------

    def _notified(self, message: Message) -> list[Step]:
        """Notifications never wake the package: none of them does anything by itself."""
        steps: list[Step] = []
        method = message["method"]
        if method == "notifications/cancelled":
            cancelled = request_id({"id": (message.get("params") or {}).get("requestId")})
            if cancelled is None:
                return []
            steps.append(CancelCall(cancelled))
        elif self._era != "modern" and method == "notifications/initialized":
            self._ready = message
            if self._has_folders and not self._asked:
                steps.append(self._ask_folders())
        elif self._era != "modern" and method == "notifications/roots/list_changed":
            if self._has_folders:
                steps.append(self._ask_folders())
        else:
            return []
        if self._passing:
            steps.append(SdkMessage(message))
        return steps

    def _ask_folders(self) -> FoldersRequest:
        self._asked += 1
        return FoldersRequest(
            {"jsonrpc": "2.0", "id": f"{_ROOTS_ID}{self._asked}", "method": "roots/list"}
        )

    # -- the package ----------------------------------------------------------------------

    def _pass_on(self, message: Message) -> list[Step]:
        steps: list[Step] = []
        if not self._passing:
            self._passing = True
            opening = _MODERN_OPENING if self._era == "modern" else self._handshake
            steps += [SdkMessage(one) for one in (opening, self._ready) if one is not None]
        return [*steps, SdkMessage(message)]


_NO_ENVELOPE: Final = f"params._meta has no {VERSION_KEY}"

_MODERN_OPENING: Final[Message] = {
    "jsonrpc": "2.0",
    "id": REPLAYED,
    "method": "server/discover",
    "params": {"_meta": {VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: {}}},
}


def actor_named(client: Mapping[str, Any] | None) -> Actor:
    """The agent that a client says it is; ``client`` has ``name`` and ``version``."""
    if client is None:
        return Actor("agent", "unknown")
    return Actor("agent", _name(client["name"]) or "unknown", _name(client["version"]))


def _name(text: str) -> str:
    """A client's word for itself, fit for a line of a log."""
    return "".join(char for char in text[:80] if char.isprintable()).strip()


def _is_plain(message: Message) -> bool:
    return message.keys() <= {"jsonrpc", "id", "method", "params"}


def _has_envelope(params: dict[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def _answer(wanted: RequestId, result: dict[str, Any]) -> ClientMessage:
    return ClientMessage({"jsonrpc": "2.0", "id": wanted, "result": result})


def _carry_out(
    wanted: RequestId,
    params: dict[str, Any],
    actor: Actor,
    modes: frozenset[str],
    *,
    modern: bool,
) -> ToolRequest | None:
    if not is_ordinary_call(params, again=modern):
        return None
    meta = params.get("_meta", {})
    token = meta.get("progressToken")
    return ToolRequest(
        *(wanted, params["name"], params.get("arguments", {}), actor, token, modern, meta),
        modes,
        params.get("requestState"),
        params.get("inputResponses", {}),
    )

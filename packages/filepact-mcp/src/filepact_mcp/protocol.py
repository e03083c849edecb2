"""Decides about each message of a client: answered, carried out, or refused.  No I/O here.

A client's first request decides for the connection in which era of the protocol it is: with a
handshake at its beginning, or with an envelope around each request.  A question which versions there
are decides nothing, nor does what is refused.  What is answered to requests
that are unusual, or wrong, is what the official package for servers answers, in other words; tests compare both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.values import dataclass, field, replace
from filepact_mcp.app import knows, shows_apps
from filepact_mcp.clients import QUESTION_ID, actor_named
from filepact_mcp.results import (
    BATCH_VERSION,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    MODERN_VERSION,
    TASKS_KEY,
    VERSION_KEY,
    VERSIONS,
    elicitation_modes,
)
from filepact_wire.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    error_response,
    request_id,
    response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.operation import Actor
    from filepact_mcp.results import ServerInfo
    from filepact_wire.messages import Message, RequestId

    Shape = Callable[[Any], str | None]

__all__ = [
    "UNSUPPORTED_VERSION",
    "CancelCall",
    "ClientMessage",
    "ElicitationResponse",
    "FoldersRequest",
    "FoldersResponse",
    "ProtocolContext",
    "ServerProtocol",
    "Step",
    "TaskRequest",
    "ToolRequest",
]

UNSUPPORTED_VERSION: Final = -32022
"""The protocol's own number for a version that is not served."""

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
        apps: Whether the client shows apps.
        tasks: Whether it may be answered with the name of a task.
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
    apps: bool = False
    tasks: bool = False


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A question about a task, or an answer to one of its own.

    Attributes:
        method: The protocol's name.
        task: The task's id.
        responses: What the person said, by the keys of the questions.
    """

    id: RequestId
    method: str
    task: str
    responses: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CancelCall:
    """The client does not want the answer to this any more."""

    id: RequestId


@dataclass(frozen=True, slots=True)
class FoldersRequest:
    """Send this question for the client's folders; calls wait for the answer."""

    question: Message


@dataclass(frozen=True, slots=True)
class FoldersResponse:
    """The client's answer to that question, as it came."""

    answer: Message


@dataclass(frozen=True, slots=True)
class ElicitationResponse:
    """The client's answer to a question for its person, as it came."""

    answer: Message


Step = (
    ClientMessage
    | FoldersRequest
    | CancelCall
    | ToolRequest
    | TaskRequest
    | FoldersResponse
    | ElicitationResponse
)


@dataclass(frozen=True, slots=True)
class ProtocolContext:
    """The state of a conversation before its first message here.

    Attributes:
        opening: Its handshake, an ordinary one; None for none.
        modern: Whether it is of the era without handshakes.
    """

    opening: Message | None = None
    modern: bool = False


@dataclass(frozen=True, slots=True)
class _Client:
    """A client as the envelope of its message describes it.

    Attributes:
        actor: Who it is.
        modes: In which ways it asks its person.
        apps: Whether it shows apps.
        tasks: Whether it knows tasks.
    """

    actor: Actor
    modes: frozenset[str]
    apps: bool
    tasks: bool


class ServerProtocol:
    """One client's messages, in the order in which they come.

    Args:
        facts: What the server says of itself.
        folders: Whether a client that has folders is asked for them.
        before: What is known of a conversation that goes on here.

    Attributes:
        to_ask: Whether it is asked for them with its next call.
    """

    def __init__(
        self, facts: ServerInfo, *, folders: bool = True, before: ProtocolContext | None = None
    ) -> None:
        self._facts = facts
        self._asks_folders = folders
        self._era: Literal["", "handshake", "modern"] = ""
        self._greeted = self._apps = self._has_folders = False
        self.takes_batches = False
        """Whether several messages may come as one."""
        opening = None if before is None else before.opening
        self._actor = actor_named(None if opening is None else opening["params"]["clientInfo"])
        self._modes: frozenset[str] = frozenset()
        self.to_ask = True
        self._known: tuple[tuple[object, ...], _Client] | None = None
        self._asked = 0
        if before is not None and before.modern:
            self._era = "modern"
        if opening is not None:
            self._era, self._greeted = "handshake", True

    def take(self, message: Message) -> list[Step]:
        """Decide about a message: the actions to take, in order."""
        wanted = request_id(message)
        if "method" not in message:
            if isinstance(wanted, str) and wanted.startswith(QUESTION_ID):
                return [ElicitationResponse(message)]
            asked = self._asked and wanted == f"{_ROOTS_ID}{self._asked}"
            return [FoldersResponse(message)] if asked else []
        method, params = message["method"], message.get("params") or {}
        if wanted is None:
            return self._notified(method, params)
        if not self._era:
            if method == "server/discover" and not _has_envelope(params):
                # Only clients without a handshake know the method; the envelope is what is missing.
                return [_refused(wanted, INVALID_PARAMS, f"params._meta has no {VERSION_KEY}")]
            enveloped = method != "initialize" and _has_envelope(params)
            told = params["_meta"][VERSION_KEY] if enveloped else ""
            if told == MODERN_VERSION and method != "server/discover":
                self._era = "modern"
            if enveloped:
                return [self._modern(method, wanted, params)]
        if self._era == "modern":
            return [self._modern(method, wanted, params)]
        step = self._after_handshake(method, wanted, params)
        if isinstance(step, ToolRequest) and self._has_folders and self.to_ask:
            return [self._ask_folders(), step]
        return [step]

    # -- requests -------------------------------------------------------------------------

    def _after_handshake(self, method: str, wanted: RequestId, params: dict[str, Any]) -> Step:
        if method == "initialize":
            return self._greet(wanted, params)
        if _has_envelope(params):
            return _refused(wanted, INVALID_REQUEST, _OTHER_ERA)
        if method not in _SERVED and not (self._apps and method in _RESOURCES):
            return _unknown(wanted, method)
        if method == "ping":
            wrong = _PING(params)
            return _answer(wanted, {}) if wrong is None else _malformed(wanted, wrong)
        if not self._greeted:
            return _malformed(wanted, "initialize comes first")
        wrong = (_RESOURCES.get(method) or _SERVED[method])(params)
        if wrong is not None:
            return _malformed(wanted, wrong)
        if method == "tools/call":
            return _carry_out(
                wanted, params, self._actor, self._modes, modern=False, apps=self._apps
            )
        if method == "tools/list":
            return _answer(wanted, self._facts.listed(apps=self._apps))
        found = self._facts.resource(method, params.get("uri", ""))
        if found is None:
            return _refused(wanted, _NO_RESOURCE, "Resource not found")
        return _answer(wanted, found)

    def _greet(self, wanted: RequestId, params: dict[str, Any]) -> Step:
        if (wrong := _HANDSHAKE(params)) is not None:
            return _malformed(wanted, wrong)
        self._era, self._greeted = "handshake", True
        capabilities = params["capabilities"]
        self._has_folders = self._asks_folders and capabilities.get("roots") is not None
        self._actor = actor_named(params["clientInfo"])
        self._apps = self._facts.has_app and shows_apps(capabilities)
        result = self._facts.initialized(params["protocolVersion"], apps=self._apps)
        self._modes = elicitation_modes(capabilities, result["protocolVersion"])
        self.takes_batches = result["protocolVersion"] == BATCH_VERSION
        return _answer(wanted, result)

    def _modern(self, method: str, wanted: RequestId, params: dict[str, Any]) -> Step:
        if method == "initialize":
            asked = params.get("protocolVersion")
            return _wrong_version(wanted, _NO_HANDSHAKE, asked, (MODERN_VERSION,))
        meta = params.get("_meta")
        if not (
            isinstance(meta, dict)
            and meta.get(VERSION_KEY) == MODERN_VERSION
            and CAPABILITIES_KEY in meta
        ):
            if missing := _missing_of_envelope(params):
                return _refused(wanted, INVALID_PARAMS, missing)
            told = params["_meta"][VERSION_KEY]
            return _wrong_version(wanted, "Unsupported protocol version", told)
        client = self._client_of(meta)
        apps = self._apps_of(meta) if isinstance(client, str) else client.apps
        shape = _SERVED_MODERN.get(method) or (_RESOURCES.get(method) if apps else None)
        shape = shape or _TASKS.get(method)
        if shape is None:
            return _unknown(wanted, method)
        if isinstance(client, str):
            return _malformed(wanted, client)
        if (wrong := shape(params)) is not None:
            return _malformed(wanted, wrong)
        if method == "tools/call":
            asked = _carry_out(wanted, params, client.actor, client.modes, modern=True, apps=apps)
            return replace(asked, tasks=client.tasks) if client.tasks else asked
        if method in _TASKS:
            if not client.tasks:
                needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_KEY: {}}}}
                return _refused(wanted, _UNDECLARED, "Missing required client capability", needed)
            return TaskRequest(wanted, method, params["taskId"], params.get("inputResponses") or {})
        if method == "tools/list":
            return _answer(wanted, self._facts.listed_modern(apps=apps))
        if method == "server/discover":
            return _answer(wanted, self._facts.discovered(apps=apps))
        found = self._facts.resource(method, params.get("uri", ""))
        if found is None:
            return _refused(wanted, INVALID_PARAMS, "Resource not found")
        return _answer(wanted, self._facts.cached(found))

    def _client_of(self, meta: Mapping[str, Any]) -> _Client | str:
        """Return the client of an envelope, mostly the same as before; or the name of the malformed field."""
        told = meta[CAPABILITIES_KEY], meta.get(CLIENT_KEY), meta.get(_LEVEL_KEY)
        if self._known is None or self._known[0] != told:
            capabilities, client, _ = told
            if (wrong := _ENVELOPE(meta)) is not None:
                return f"._meta{wrong}"
            modes = elicitation_modes(capabilities, MODERN_VERSION)
            knows_tasks = knows(capabilities, TASKS_KEY) is not None
            facts = actor_named(client), modes, self._apps_of(meta), knows_tasks
            self._known = told, _Client(*facts)
        return self._known[1]

    def _apps_of(self, meta: Mapping[str, Any]) -> bool:
        return self._facts.has_app and shows_apps(meta[CAPABILITIES_KEY])

    # -- notifications --------------------------------------------------------------------

    def _notified(self, method: str, params: dict[str, Any]) -> list[Step]:
        if method == "notifications/cancelled":
            cancelled = request_id({"id": params.get("requestId")})
            return [] if cancelled is None else [CancelCall(cancelled)]
        if self._era == "modern" or not self._has_folders:
            return []
        first = method == "notifications/initialized" and self.to_ask
        if first or method == "notifications/roots/list_changed":
            return [self._ask_folders()]
        return []

    def _ask_folders(self) -> FoldersRequest:
        self._asked += 1
        self.to_ask = False
        return FoldersRequest(
            {"jsonrpc": "2.0", "id": f"{_ROOTS_ID}{self._asked}", "method": "roots/list"}
        )


_OTHER_ERA: Final = (
    "this connection serves the handshake protocol era; requests carrying the "
    f"{MODERN_VERSION} envelope are not accepted on it"
)
_NO_HANDSHAKE: Final = (
    f"connection is serving the {MODERN_VERSION} protocol; the initialize handshake is not accepted"
)


def _answer(wanted: RequestId, result: dict[str, Any]) -> ClientMessage:
    return ClientMessage(response(wanted, result))


def _refused(wanted: RequestId, code: int, reason: str, data: object = None) -> ClientMessage:
    return ClientMessage(error_response(wanted, code, reason, data))


def _malformed(wanted: RequestId, wrong: str) -> ClientMessage:
    said = wrong.removeprefix(".")
    return _refused(wanted, INVALID_PARAMS, f"Invalid request parameters: {said}", said)


def _unknown(wanted: RequestId, method: str) -> ClientMessage:
    return _refused(wanted, METHOD_NOT_FOUND, "Method not found", method)


def _wrong_version(
    wanted: RequestId, reason: str, requested: object, supported: tuple[str, ...] = VERSIONS
) -> ClientMessage:
    data: dict[str, Any] = {"supported": [*supported]}
    if isinstance(requested, str):
        data["requested"] = requested
    return _refused(wanted, UNSUPPORTED_VERSION, reason, data)


def _carry_out(
    wanted: RequestId,
    params: dict[str, Any],
    actor: Actor,
    modes: frozenset[str],
    *,
    modern: bool,
    apps: bool,
) -> ToolRequest:
    meta = params.get("_meta") or {}
    token = meta.get("progressToken")
    if isinstance(token, bool) or not isinstance(token, int | str):
        token = None  # as which nobody could be told
    return ToolRequest(
        wanted,
        params["name"],
        params.get("arguments") or {},
        actor,
        token,
        modern,
        meta,
        modes,
        params.get("requestState"),
        params.get("inputResponses") or {},
        apps,
    )


# -- the shapes that the protocol gives the parameters of requests -------------------------------
#
# What has the right shape is accepted whatever else is in it: clients send members of later
# versions, and notes of their own.  A member that is null counts as left out.

_FLAGS: Final = frozenset(("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "1", "0"))
_LEVELS: Final = frozenset(
    ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
)
_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"


def _has_envelope(params: dict[str, Any]) -> bool:
    """Whether these are parameters of a request that says itself in which version it is."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def _missing_of_envelope(params: dict[str, Any]) -> str:
    """Return an error for the incomplete envelope of a request without a handshake; empty if it is whole."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return (
            f"params._meta must be an object carrying the required {VERSION_KEY!r} and "
            f"{CAPABILITIES_KEY!r} envelope keys"
        )
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        return f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
    if not isinstance(meta[VERSION_KEY], str):
        return "the protocol-version envelope value must be a string"
    return ""


# -- shapes of requests: each answers where its value is wrong, as a path from there, or None ----


def _of(*types: type) -> Shape:
    return lambda value: None if isinstance(value, types) else ""


def _among(allowed: frozenset[str]) -> Shape:
    return lambda value: None if isinstance(value, str) and value in allowed else ""


def _with(*needed: str, **members: Shape) -> Shape:
    def wrong(value: Any) -> str | None:
        if not isinstance(value, dict):
            return ""
        for name in needed:
            if value.get(name) is None:
                return f".{name}"
        for name, member in value.items():
            shape = members.get(name)
            if member is not None and shape and (found := shape(member)) is not None:
                return f".{name}{found}"
        return None

    return wrong


def _all(shape: Shape) -> Shape:
    def wrong(value: Any) -> str | None:
        if not isinstance(value, list):
            return ""
        found = ((number, shape(one)) for number, one in enumerate(value))
        return next((f"[{number}]{one}" for number, one in found if one is not None), None)

    return wrong


def _each(shape: Shape) -> Shape:
    def wrong(value: Any) -> str | None:
        if not isinstance(value, dict):
            return ""
        found = ((name, shape(one)) for name, one in value.items())
        return next((f".{name}{one}" for name, one in found if one is not None), None)

    return wrong


def _flag(value: object) -> str | None:
    return None if str(value).lower() in _FLAGS else ""


def _meta(value: object) -> str | None:
    """Of a progress token, null is no value either."""
    if not isinstance(value, dict):
        return ""
    token = value.get("progressToken", "")
    right = isinstance(token, str | int) or (isinstance(token, float) and token.is_integer())
    return None if right else ".progressToken"


_text: Final = _of(str)
_object: Final = _of(dict)
_icon: Final = _with(
    "src",
    src=_text,
    mimeType=_text,
    sizes=_all(_text),
    theme=_among(frozenset(("light", "dark"))),
)
_client: Final = _with(
    "name",
    "version",
    name=_text,
    version=_text,
    title=_text,
    websiteUrl=_text,
    description=_text,
    icons=_all(_icon),
)
_capabilities: Final = _with(
    experimental=_each(_object),
    extensions=_each(_object),
    roots=_with(listChanged=_flag),
    sampling=_with(context=_object, tools=_object),
    elicitation=_with(form=_object, url=_object),
    tasks=_with(
        list=_object,
        cancel=_object,
        requests=_with(elicitation=_with(create=_object), sampling=_with(createMessage=_object)),
    ),
)

_HANDSHAKE: Final = _with(
    "protocolVersion",
    "capabilities",
    "clientInfo",
    protocolVersion=_text,
    capabilities=_capabilities,
    clientInfo=_client,
    _meta=_meta,
)
_ENVELOPE: Final = _with(
    CAPABILITIES_KEY,
    **{CAPABILITIES_KEY: _capabilities, CLIENT_KEY: _client, _LEVEL_KEY: _among(_LEVELS)},
)
_PING: Final = _with(_meta=_meta)
# No list has a second page, so there is no cursor that a client could have been given.
_LIST: Final = _with(cursor=lambda value: None if value == "" else "", _meta=_meta)
_CALL: Final = _with(
    "name",
    name=_text,
    arguments=_object,
    task=_object,
    inputResponses=_object,
    requestState=_text,
    _meta=_meta,
)

_NO_RESOURCE: Final = -32002
"""The protocol's own number for it, before 2026-07-28."""

_RESOURCES: Final = {
    "resources/list": _LIST,
    "resources/templates/list": _LIST,
    "resources/read": _with("uri", uri=_text, _meta=_meta),
}
_SERVED: Final = {"ping": _PING, "tools/list": _LIST, "tools/call": _CALL}
_SERVED_MODERN: Final = {"server/discover": _PING, "tools/list": _LIST, "tools/call": _CALL}
_TASK: Final = _with("taskId", taskId=_text, inputResponses=_object, _meta=_meta)
_TASKS: Final = {
    "tasks/get": _TASK,
    "tasks/update": lambda params: _with("inputResponses")(params) or _TASK(params),
    "tasks/cancel": _TASK,
}

_UNDECLARED: Final = -32021
"""The protocol's own number for what a client has to declare first."""

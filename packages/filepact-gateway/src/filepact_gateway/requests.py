"""What HTTP asks of a request before its message is looked at, and the answers to refusals; no I/O."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import (
    AccessDeniedError,
    FilepactError,
    GatewayBusyError,
    NoThreadsError,
    OtherRequestError,
    RateLimitedError,
    RequestTooLargeError,
    SessionUnknownError,
    ShuttingDownError,
    StateFailedError,
    UnauthorizedError,
)
from filepact.values import dataclass, field, late_regex
from filepact_mcp.results import CAPABILITIES_KEY, VERSION_KEY
from filepact_wire.messages import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorResponse,
    error_response,
    request_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Scope, Send

    from filepact_wire.messages import Message, RequestId

__all__ = [
    "REFUSED",
    "STATUS",
    "HttpAnswer",
    "HttpRequest",
    "RequestChecks",
    "plain",
    "refusal",
    "refused_message",
    "refused_modern",
    "wire_refusal",
]

STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    -32602: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
    -32601: 404,
}
"""The status by which HTTP tells an error, where there was no handshake."""

REFUSED: Final = -32000
"""The number of an error of the gateway itself; its code stands in the data."""

_HEADER_MISMATCH: Final = -32020
"""The protocol's own number for headers that say something else than the message."""

_NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
_WRAPPED: Final = late_regex(r"=\?base64\?(.*)\?=")

_SHOWN: Final = b"mcp-session-id, retry-after, www-authenticate"
"""Headers of answers that pages may read besides what they always may."""

_STATUS_OF: Final[Mapping[type[FilepactError], int]] = {
    UnauthorizedError: 401,
    AccessDeniedError: 403,
    SessionUnknownError: 404,
    OtherRequestError: 409,
    RequestTooLargeError: 413,
    RateLimitedError: 429,
    GatewayBusyError: 429,
    ShuttingDownError: 503,
    StateFailedError: 503,
    NoThreadsError: 503,
}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer that is sent at once.

    Attributes:
        code: For counting refusals; empty for none.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str = "application/json"
    code: str = ""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What was asked for, but for its body.

    Attributes:
        headers: The values of every header as they were sent, by lower-case names.
        peer: The address of whoever is connected; empty where the system does not tell.
        place: Of a message that came with others as one: which of them it is, from 1; 0 for one alone.
    """

    method: str
    path: str
    headers: Mapping[str, tuple[str, ...]]
    peer: str
    place: int = 0

    @classmethod
    def of(cls, scope: Scope) -> HttpRequest:
        """The request of an ASGI scope."""
        headers: dict[str, tuple[str, ...]] = {}
        for key, value in scope["headers"]:
            name = key.decode("latin-1")
            headers[name] = (*headers.get(name, ()), value.decode("latin-1"))
        client = scope.get("client")
        return cls(scope["method"], scope["path"], headers, client[0] if client else "")

    def all_of(self, name: str) -> tuple[str, ...]:
        """Every value of a header."""
        return self.headers.get(name, ())

    def get(self, name: str) -> str:
        """The value of a header that was sent once; empty for none, or for several."""
        values = self.headers.get(name, ())
        return values[0] if len(values) == 1 else ""

    def accepts(self, media: str) -> bool:
        """Whether the client takes an answer of this type."""
        kind = media.partition("/")[0]
        wanted = {
            one.partition(";")[0].strip().lower()
            for value in self.all_of("accept")
            for one in value.split(",")
        }
        return bool(wanted & {media, f"{kind}/*", "*/*"})


class RequestChecks:
    """What every request has to say of itself.

    Args:
        hosts: The names that the gateway has, with the port where that is not the usual one.
        origins: Pages that may ask: schemes and hosts, as browsers send them.
    """

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = frozenset(one.lower() for one in hosts)
        self._origins = frozenset(origins)

    def led_here(self, request: HttpRequest) -> HttpAnswer | None:
        """Whether a name led the client here that is none of ours; None if not.

        A web page can have a browser ask any address under any name that it owns.
        """
        if request.get("host").lower() not in self._hosts:
            return plain(421, "This gateway has another name.")
        return None

    def from_page(self, request: HttpRequest) -> HttpAnswer | None:
        """Whether a page asks that may not, or that only asks whether it may; None if not."""
        if any(one not in self._origins for one in request.all_of("origin")):
            return plain(403, "Pages of this origin may not ask.")
        if request.method != "OPTIONS" or not request.get("access-control-request-method"):
            return None
        return HttpAnswer(
            204,
            headers={
                "Access-Control-Allow-Methods": "POST, DELETE",
                "Access-Control-Allow-Headers": request.get("access-control-request-headers"),
                "Access-Control-Max-Age": "600",
            },
        )

    def shared(self, request: HttpRequest, send: Send) -> Send:
        """Send so that the browser lets the page that asked, if it may, have the answer."""
        origin = request.get("origin")
        if origin not in self._origins:
            return send
        more = (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _SHOWN),
            (b"vary", b"origin"),
        )

        async def sent(event: Any) -> None:
            if event["type"] == "http.response.start":
                told = [one for one in event["headers"] if one[0] != more[0][0]]
                event = {**event, "headers": [*told, *more]}
            await send(event)

        return sent

    @staticmethod
    def post(request: HttpRequest) -> HttpAnswer | None:
        """Whether the form of a POST is one that is not taken; None if it is."""
        media = request.get("content-type").partition(";")[0].strip().lower()
        if media != "application/json":
            return plain(415, "Only application/json is taken.")
        if not request.accepts("application/json"):
            return plain(406, "The answer is application/json or text/event-stream.")
        return None


def _header_mismatch(request: HttpRequest, message: Message) -> str:
    """What the headers of a request without a handshake say otherwise than its message; empty for nothing.

    What stands between a client and a server may look at either, and both have to see the same.
    An envelope that is not whole is for the protocol to refuse.
    """
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    whole = isinstance(meta, dict) and {VERSION_KEY, CAPABILITIES_KEY} <= meta.keys()
    if not (whole and isinstance(params, dict) and isinstance(meta, dict)):
        return ""
    expected = {"mcp-protocol-version": meta[VERSION_KEY], "mcp-method": message["method"]}
    naming = _NAMED.get(message["method"])
    if naming and isinstance(params.get(naming), str):
        expected["mcp-name"] = params[naming]
    for header, value in expected.items():
        told = request.all_of(header)
        if len(told) != 1:
            return f"{header} was sent {len(told)} times"
        if isinstance(value, str) and _plainly(told[0]) != value:
            return f"{header} says something else than the message"
    return ""


def _plainly(value: str) -> str | None:
    """The value of a header, which may be wrapped where it is not fit for one; None where it is broken."""
    wrapped = _WRAPPED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        return b64decode(wrapped[1], validate=True).decode()
    except ValueError:
        return None


def plain(status: int, text: str, **headers: str) -> HttpAnswer:
    """An answer for whoever does not speak the protocol."""
    return HttpAnswer(status, f"{text}\n".encode(), headers, "text/plain; charset=utf-8")


def refusal(
    error: FilepactError, wanted: RequestId | None = None, challenge: str = ""
) -> HttpAnswer:
    """The answer to a request that the gateway refuses, with the code for programs.

    Args:
        error: Why.
        wanted: The request's id, if it is known.
        challenge: What ``WWW-Authenticate`` says.
    """
    headers: dict[str, str] = {}
    message = refused_message(error, wanted)
    if "retryAfter" in message["error"]["data"]:
        headers["Retry-After"] = str(message["error"]["data"]["retryAfter"])
    status = next((_STATUS_OF[one] for one in type(error).__mro__ if one in _STATUS_OF), 400)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    return HttpAnswer(status, _encoded(message), headers, code=error.code)


def refused_message(error: FilepactError, wanted: RequestId | None) -> Message:
    """The same as a message of the protocol."""
    data: dict[str, Any] = {"code": error.code}
    if error.hint:
        data["hint"] = error.hint
    if (seconds := error.details.get("retry_after")) is not None:
        data["retryAfter"] = seconds
    return error_response(wanted, REFUSED, f"{error.code}: {error.message}", data)


def wire_refusal(error: ErrorResponse, data: object = None) -> HttpAnswer:
    """The answer to what is no message, or none that the protocol has."""
    message = error_response(error.id, error.code, error.reason, data)
    return HttpAnswer(STATUS.get(error.code, 400), _encoded(message))


def refused_modern(request: HttpRequest, message: Message) -> HttpAnswer | None:
    """The answer to a message of the era without handshakes that is not carried out; None for one that is."""
    wanted = request_id(message)
    if "method" not in message:
        return wire_refusal(ErrorResponse(INVALID_REQUEST, "answers are not taken", None))
    if wanted is None:
        # No notification means anything here: what is not wanted any more is cancelled by leaving.
        return HttpAnswer(202)
    if message["method"] == "initialize":
        said = "there are no handshakes in this version"
        return wire_refusal(ErrorResponse(METHOD_NOT_FOUND, said, wanted))
    differs = _header_mismatch(request, message)
    return wire_refusal(ErrorResponse(_HEADER_MISMATCH, differs, wanted)) if differs else None


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()

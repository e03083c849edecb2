"""JSON-RPC 2.0 messages and error numbers, for every protocol that is built on it; no I/O."""

from __future__ import annotations

from typing import Any, Final, Self

from filepact.values import dataclass

__all__ = [
    "CONNECTION_CLOSED",
    "CONTENT_MODIFIED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_INITIALIZED",
    "PARSE_ERROR",
    "REQUEST_CANCELLED",
    "REQUEST_FAILED",
    "RESOURCE_NOT_FOUND",
    "SERVER_CANCELLED",
    "ErrorResponse",
    "Message",
    "RequestId",
    "ResponseError",
    "error_response",
    "notification",
    "request",
    "request_id",
    "response",
]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

CONNECTION_CLOSED: Final = -32000
"""MCP: the other side has gone."""

NOT_INITIALIZED: Final = -32002
"""LSP: the first request has to be ``initialize``."""

RESOURCE_NOT_FOUND: Final = -32002
"""ACP: there is no such file.  The number is that of LSP's ``ServerNotInitialized``."""

REQUEST_CANCELLED: Final = -32800
"""LSP and ACP."""

CONTENT_MODIFIED: Final = -32801
"""LSP, as the next two."""
SERVER_CANCELLED: Final = -32802
REQUEST_FAILED: Final = -32803

Message = dict[str, Any]
RequestId = int | str


def request(wanted: RequestId, method: str, params: object = None) -> Message:
    """A request; without ``params`` where they are None."""
    message = {"jsonrpc": "2.0", "id": wanted, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, params: object = None) -> Message:
    """A notification; without ``params`` where they are None."""
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def response(wanted: object, result: object) -> Message:
    """The answer to a request that was carried out."""
    return {"jsonrpc": "2.0", "id": wanted, "result": result}


def error_response(wanted: object, code: int, message: str, data: object = None) -> Message:
    """The answer to a request that was not; without ``data`` where it is None."""
    error: Message = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": wanted, "error": error}


def request_id(message: Message) -> RequestId | None:
    """The id by which a request wants its answer; None when there is none that can be used."""
    found = message.get("id")
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """Why something that was received is not a message, or a request is not carried out.

    Attributes:
        id: The request; None when that cannot be known.
    """

    code: int
    reason: str
    id: RequestId | None = None

    @property
    def reply(self) -> Message:
        """The answer to send."""
        return error_response(self.id, self.code, self.reason)


@dataclass(frozen=True, slots=True)
class ResponseError:
    """The error of an answer.

    Attributes:
        code: One of the numbers above, or the other side's own.
        message: In its words; may be empty.
        data: What it sent along; None for nothing.
    """

    code: int
    message: str
    data: object = None

    @classmethod
    def of(cls, error: object) -> Self:
        """Read the member ``error`` of an answer, whatever its shape."""
        fields = error if isinstance(error, dict) else {}
        code, message = fields.get("code"), fields.get("message")
        return cls(
            code if type(code) is int else INTERNAL_ERROR,
            message if isinstance(message, str) else "",
            fields.get("data"),
        )

"""What can go wrong with a language server; none of it may reach the write that it is about."""

from __future__ import annotations

__all__ = [
    "CANCELLED",
    "CONTENT_MODIFIED",
    "INTERNAL_ERROR",
    "METHOD_NOT_FOUND",
    "SERVER_CANCELLED",
    "AnswerError",
    "GoneError",
    "LateError",
    "ServerError",
]

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
CANCELLED = -32800
CONTENT_MODIFIED = -32801
SERVER_CANCELLED = -32802


class ServerError(Exception):
    """A language server cannot do what was asked of it; the text says why."""


class GoneError(ServerError):
    """The server could not be started, has ended, or was stopped."""


class LateError(ServerError):
    """No answer came in time."""


class AnswerError(ServerError):
    """One side answers a request with an error.

    Args:
        code: The protocol's number.
        message: The reason, for a reader.
        retry: Whether the same request may be sent again.
    """

    def __init__(self, code: int, message: str, *, retry: bool = False) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.retry = retry

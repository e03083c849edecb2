"""Errors of language servers; none of them may make a write fail."""

from __future__ import annotations

__all__ = ["RequestFailedError", "RequestTimeoutError", "ServerError", "ServerExitedError"]


class ServerError(Exception):
    """A language server cannot do what was asked of it; the text says why."""


class ServerExitedError(ServerError):
    """The server could not be started, has ended, or was stopped."""


class RequestTimeoutError(ServerError):
    """No answer came in time."""


class RequestFailedError(ServerError):
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

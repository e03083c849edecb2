"""Errors of the engine as the protocol's: a number, a whole reason, and a stable kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import (
    CallCancelledError,
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    NotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CANCELLED", "INVALID", "MISSING", "REFUSED", "Refusal", "refuse", "to_refusal"]

INVALID, MISSING, REFUSED, CANCELLED = -32602, -32002, -32603, -32800

_KINDS: Mapping[str, str] = {
    "NOT_FOUND": "not_found",
    "NOT_A_FILE": "not_a_file",
    "STALE_FILE": "stale",
    "INVALID_PARAMS": "invalid_params",
    "FILE_TOO_LARGE": "too_large",
    "BINARY_FILE": "not_text",
    "ENCODING_UNSAFE": "encoding",
    "APPROVAL_REQUIRED": "approval_required",
    "USER_DENIED": "denied",
}


class Refusal(Exception):  # noqa: N818 - it is an answer
    """What a request is refused with.

    Args:
        code: The number of JSON-RPC.
        message: The whole reason, for the agent's model.
        data: Facts for programs; ``errorKind`` is stable.
    """

    def __init__(self, code: int, message: str, data: dict[str, object]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def refuse(code: int, kind: str, message: str) -> Refusal:
    """A refusal of the protocol's own."""
    return Refusal(code, message, {"errorKind": kind})


def to_refusal(error: FilepactError, path: str, roots: tuple[str, ...]) -> Refusal:
    """The refusal that says what an error of the engine says.

    Args:
        error: The engine's.
        path: As the agent sent it.
        roots: The session's folders.
    """
    # A message that ends with a diff is followed by a line of its own.
    joint = "\n" if "\n" in error.message else ". "
    message = error.message.rstrip("\n") + (f"{joint}{error.hint}" if error.hint else "")
    data: dict[str, object] = {"errorKind": _kind(error, path, roots)}
    if isinstance(error, NotFoundError):
        return Refusal(MISSING, message, {"uri": path, **data})
    if isinstance(error, (InvalidParamsError, NotAFileError)):
        return Refusal(INVALID, message, data)
    if isinstance(error, CallCancelledError):
        return Refusal(CANCELLED, message, data)
    return Refusal(REFUSED, message, data)


def _kind(error: FilepactError, path: str, roots: tuple[str, ...]) -> str:
    if error.code != "PATH_BLOCKED":
        return _KINDS.get(error.code, error.code.lower())
    if "rule" in error.details:
        return "protected"
    if not any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots):
        return "path_outside_workspace"
    return "symlink_escape" if "leads out of the root" in error.message else "path_blocked"

"""Errors of the engine as the protocol's: a number, a whole reason, and a stable kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filepact.errors import (
    ApprovalRequiredError,
    BinaryFileError,
    CallCancelledError,
    EncodingUnsafeError,
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
    TimedOutError,
    TooLargeError,
    UserDeniedError,
)
from filepact.tools.answers import shortened
from filepact.values import dataclass, late_regex
from filepact_wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    RESOURCE_NOT_FOUND,
    ResponseError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.domain.document import Document

__all__ = [
    "CANCELLED",
    "INVALID",
    "MISSING",
    "REFUSED",
    "ClientRequestError",
    "ClientResponseError",
    "error_of_kind",
    "is_for_the_disk",
    "refuse",
    "to_refusal",
]

INVALID, MISSING = INVALID_PARAMS, RESOURCE_NOT_FOUND
REFUSED, CANCELLED = INTERNAL_ERROR, REQUEST_CANCELLED

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

_OF_TOOLS: Final = late_regex(
    r"\b(read_file|write_file|edit_file|search_files|grep|directory_tree|patch_apply|file_history"
    r"|encoding base64|lines and offset)\b"
)
_HINTS: Mapping[str, str] = {
    "FILE_TOO_LARGE": "Read some of its lines, with line and limit.",
    "BINARY_FILE": "Only text can be read and written here.",
}
"""Where all that the engine advises is about tools."""

_CLASSES: Mapping[str, type[FilepactError]] = {
    "not_found": NotFoundError,
    "not_a_file": NotAFileError,
    "stale": StaleFileError,
    "invalid_params": InvalidParamsError,
    "too_large": TooLargeError,
    "not_text": BinaryFileError,
    "encoding": EncodingUnsafeError,
    "approval_required": ApprovalRequiredError,
    "denied": UserDeniedError,
    "protected": PathBlockedError,
    "path_blocked": PathBlockedError,
    "path_outside_workspace": PathBlockedError,
    "symlink_escape": PathBlockedError,
    "timeout": TimedOutError,
    "cancelled": CallCancelledError,
}

_LONGEST_REASON: Final = 1_000
_WORDLESS: Final = frozenset({"", "error", "internal error", "server error", "failed"})
_ABSENT: Final = late_regex(
    r"ENOENT|no such (file|path)|not found|(does|did) ?n[o']t exist|cannot find|FileNotFound|"
    r"NoSuchFile|file-missing",
    re.IGNORECASE,
)
_UNREADABLE: Final = late_regex(
    r"utf-?8|utf-?16|unicode|decod|encod|charset|codec|malformed input|binary|not (a )?text",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ClientResponseError(ResponseError):
    """The error of an answer, as programs of this protocol spell their reasons."""

    @property
    def kind(self) -> str:
        """The ``errorKind``, of programs that say one."""
        found = self.data.get("errorKind") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def words(self) -> str:
        """Why, as far as it says that; packages put the reason into the data."""
        said = [self.message.strip()]
        if isinstance(self.data, str):
            said.append(self.data)
        elif isinstance(self.data, dict):
            said += [one for one in self.data.values() if isinstance(one, str) and one != self.kind]
        worded = [one for one in said if one.strip(" .").lower() not in _WORDLESS]
        text = ": ".join(dict.fromkeys(worded))[:_LONGEST_REASON]
        return text.encode("utf-8", "backslashreplace").decode()

    @property
    def reason(self) -> str:
        """The words of the error; without any, at least its number."""
        return self.words or self.message.strip() or f"error {self.code}"


def is_for_the_disk(error: ClientResponseError, disk: Document | None) -> bool:
    """Whether an editor that cannot show a file has said that it is for others to look at.

    An editor's refusal is never overruled by what the disk has.  But it has nothing of a file
    that it does not find, and no text of one whose bytes it cannot read.

    Args:
        error: What it answered.
        disk: What the disk has; None for no file.
    """
    if error.code == MISSING or error.kind == "not_found":
        return True
    if error.kind:
        return error.kind in ("not_text", "encoding") and _needs_decoding(disk)
    if disk is None:
        return not error.words or _ABSENT.search(error.words) is not None
    if not _needs_decoding(disk):
        return False
    try:
        readable = bool(disk.text)
    except BinaryFileError:
        readable = False
    return _UNREADABLE.search(error.words) is not None or not (readable or error.words)


def _needs_decoding(disk: Document | None) -> bool:
    """Whether an editor that knows UTF-8 alone cannot show what the disk has."""
    if disk is None:
        return False
    try:
        disk.data.decode()
        name = disk.source.encoding.name
    except (BinaryFileError, UnicodeDecodeError):
        return True
    return name != "utf-8"


class ClientRequestError(Exception):
    """The error with which a request is refused.

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


def refuse(code: int, kind: str, message: str) -> ClientRequestError:
    """A refusal of the protocol's own."""
    return ClientRequestError(code, message, {"errorKind": kind})


def error_of_kind(kind: str, other: type[FilepactError]) -> type[FilepactError]:
    """The error of ours that an ``errorKind`` stands for."""
    return _CLASSES.get(kind, other)


def to_refusal(error: FilepactError, path: str, roots: tuple[str, ...]) -> ClientRequestError:
    """The refusal that says what an error of the engine says.

    Args:
        error: The engine's.
        path: As the agent sent it.
        roots: The session's folders.
    """
    # A message that ends with a diff is followed by a line of its own.
    said, hint = shortened(error.message.rstrip("\n"), _hint(error))
    joint = "\n" if "\n" in said else ". "
    message = said + (f"{joint}{hint}" if hint else "")
    data: dict[str, object] = {"errorKind": _kind(error, path, roots)}
    if isinstance(error, TimedOutError):
        data["retriable"] = True
    if isinstance(error, NotFoundError):
        return ClientRequestError(MISSING, message, {"uri": path, **data})
    if isinstance(error, (InvalidParamsError, NotAFileError)):
        return ClientRequestError(INVALID, message, data)
    if isinstance(error, CallCancelledError):
        return ClientRequestError(CANCELLED, message, data)
    return ClientRequestError(REFUSED, message, data)


def _hint(error: FilepactError) -> str:
    """An error's hint without what concerns the tools, which a caller of these methods has not."""
    sentences = re.split(r"(?<=[.;])\s+", error.hint)
    kept = " ".join(one for one in sentences if not _OF_TOOLS.search(one))
    if kept == error.hint:
        return kept
    kept = kept.removesuffix(";") + ("." if kept.endswith(";") else "")
    return kept or _HINTS.get(error.code, "")


def _kind(error: FilepactError, path: str, roots: tuple[str, ...]) -> str:
    if error.code != "PATH_BLOCKED":
        return _KINDS.get(error.code, error.code.lower())
    if "rule" in error.details:
        return "protected"
    if not any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots):
        return "path_outside_workspace"
    return "symlink_escape" if "leads out of the root" in error.message else "path_blocked"

"""Every error that a caller may act on, with its stable code.

The code is contract: once released it is never renamed or reused.  The message is for the
reader (a language model or a hurried person) and may change at any time.  This module imports
nothing of the project, so that every floor can raise what it means.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "CODES",
    "NOT_ON_WINDOWS",
    "AccessDeniedError",
    "AmbiguousMatchError",
    "ApprovalRequiredError",
    "BelowAgentError",
    "BinaryFileError",
    "CallCancelledError",
    "EncodingUnsafeError",
    "FilepactError",
    "FoldersUnknownError",
    "GatewayBusyError",
    "InvalidParamsError",
    "LocaleError",
    "NewErrorsError",
    "NoChangeError",
    "NoServerError",
    "NoThreadsError",
    "NotAFileError",
    "NotFoundError",
    "ObjectStoreFailedError",
    "ObjectStoreUnsafeError",
    "OtherRequestError",
    "OutcomeUnknownError",
    "PatchAlreadyAppliedError",
    "PatchAmbiguousError",
    "PatchContextMismatchError",
    "PatchMalformedError",
    "PathBlockedError",
    "PendingFullError",
    "ProposalChangedError",
    "ProposalExpiredError",
    "RateLimitedError",
    "ReadFailedError",
    "RequestTooLargeError",
    "SearchFailedError",
    "ServerRefusedError",
    "SessionUnknownError",
    "SharedBusyError",
    "SharedConflictError",
    "SharedDamagedError",
    "SharedGoneError",
    "ShuttingDownError",
    "StaleFileError",
    "StateFailedError",
    "StoreFencedError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreSchemaError",
    "StoreUnreachableError",
    "StoreUnsureError",
    "StringNotFoundError",
    "TimedOutError",
    "TooLargeError",
    "UnattendedError",
    "UnauthorizedError",
    "UserDeniedError",
    "WriteFailedError",
    "no_threads",
    "without_threads",
]

NOT_ON_WINDOWS = """\
filepact does not run on Windows yet. It runs there in WSL, as on Linux. To install it, in a terminal, in the folder of filepact:
  wsl --install
  wsl sudo apt install -y pipx
  wsl pipx install .
Start your agents in WSL as well."""
"""Why nothing works there, and what does."""

Detail = str | int | float | bool | None | tuple["Detail", ...]

CODES: dict[str, type[FilepactError]] = {}
"""Every code with its class; the error reference and its test are made from this table."""


class FilepactError(Exception):
    """Base of all errors that cross a public boundary.

    Args:
        message: What was wrong, and where.
        hint: What to do next; one sentence, or empty.
        details: Facts for programs (paths, line numbers, counts), by name.
    """

    code: ClassVar[str] = "INTERNAL"

    def __init_subclass__(cls, *, code: str) -> None:
        if code in CODES:
            raise TypeError(f"error code {code!r} is taken by {CODES[code].__name__}")
        CODES[code] = cls
        cls.code = code

    def __init__(self, message: str, *, hint: str = "", **details: Detail) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def report(self) -> str:
        """The error as a reader sees it: ``CODE: message``, then the hint on its own line."""
        return f"{self.code}: {self.message}" + (f"\n{self.hint}" if self.hint else "")


class PathBlockedError(FilepactError, code="PATH_BLOCKED"):
    """The path leaves the roots, is not a regular file's, or a rule protects it."""


class NotFoundError(FilepactError, code="NOT_FOUND"):
    """No such file, folder, operation or checkpoint."""


class NotAFileError(FilepactError, code="NOT_A_FILE"):
    """A folder where a file is wanted, or the reverse."""


class TooLargeError(FilepactError, code="FILE_TOO_LARGE"):
    """The file is over the limit for this kind of access."""


class BinaryFileError(FilepactError, code="BINARY_FILE"):
    """The file does not hold text."""


class EncodingUnsafeError(FilepactError, code="ENCODING_UNSAFE"):
    """The text cannot be written in the file's encoding without damage."""


class StringNotFoundError(FilepactError, code="STRING_NOT_FOUND"):
    """The text to replace is not in the file."""


class AmbiguousMatchError(FilepactError, code="AMBIGUOUS_MATCH"):
    """The text to replace stands in several places."""


class NoChangeError(FilepactError, code="NO_CHANGE"):
    """The request would leave everything as it is, or there is nothing to take back."""


class StaleFileError(FilepactError, code="STALE_FILE"):
    """The file is no longer what the request was made for."""


class UnprovenError(FilepactError, code="RESULT_UNPROVEN"):
    """The text to be written is not what was asked: a mistake in placing it, found before anything is done."""


class PatchMalformedError(FilepactError, code="PATCH_MALFORMED"):
    """The patch cannot be understood."""


class PatchContextMismatchError(FilepactError, code="PATCH_CONTEXT_MISMATCH"):
    """The lines that the patch expects are not in the file."""


class PatchAmbiguousError(FilepactError, code="PATCH_AMBIGUOUS"):
    """The lines that the patch expects stand in several places."""


class PatchAlreadyAppliedError(FilepactError, code="PATCH_ALREADY_APPLIED"):
    """The file already holds what the patch would make of it."""


class ApprovalRequiredError(FilepactError, code="APPROVAL_REQUIRED"):
    """A person has to approve this first."""


class UnattendedError(FilepactError, code="UNATTENDED"):
    """A person has to decide this, and a program wants to without saying so."""


class BelowAgentError(FilepactError, code="BELOW_AGENT"):
    """A person has to decide this, and an agent's program has called the command."""


class UserDeniedError(FilepactError, code="USER_DENIED"):
    """A person said no."""


class ProposalChangedError(FilepactError, code="PROPOSAL_CHANGED"):
    """The files have moved since the proposal was shown; what fits them now has to be looked at."""


class ProposalExpiredError(FilepactError, code="PROPOSAL_EXPIRED"):
    """Nobody has decided about the proposal in time."""


class PendingFullError(FilepactError, code="PENDING_FULL"):
    """The limit of waiting proposals is reached: a person has to decide first."""


class NewErrorsError(FilepactError, code="NEW_ERRORS"):
    """Language servers find errors that the change would bring, and a setting refuses these."""


class NotJudgedError(FilepactError, code="NOT_JUDGED"):
    """New errors are refused, and a language server could not say whether a change brings some."""


class NoServerError(FilepactError, code="NO_SERVER"):
    """No language server is there that could do this, or none has answered."""


class ServerRefusedError(FilepactError, code="SERVER_REFUSED"):
    """The language server does not do this here, or its answer cannot be carried out."""


class NamesLeftError(FilepactError, code="NAMES_LEFT"):
    """A rename would leave uses of the old name behind, and nobody has said that they are to stay."""


class InvalidParamsError(FilepactError, code="INVALID_PARAMS"):
    """A parameter is missing, unknown, of the wrong type or out of range."""


class LocaleError(FilepactError, code="LOCALE_NOT_UTF8"):
    """Names of files have another encoding than UTF-8 in this process."""


class TimedOutError(FilepactError, code="TIMEOUT"):
    """The time allowed ran out, or a lock was not free in time."""


class CallCancelledError(FilepactError, code="CANCELLED"):
    """The caller gave up before anything was done."""


class FoldersUnknownError(FilepactError, code="FOLDERS_UNKNOWN"):
    """A client shares folders and has not said which, so that nobody knows what may be used."""


class ReadFailedError(FilepactError, code="READ_ERROR"):
    """The system refused to read."""


class WriteFailedError(FilepactError, code="WRITE_ERROR"):
    """The system refused to write; the message says what is on disk now."""


class SearchFailedError(FilepactError, code="SEARCH_ERROR"):
    """A search pattern cannot be understood or a search could not run."""


class StateFailedError(FilepactError, code="STATE_ERROR"):
    """The state folder or its journal cannot be used."""


class RequestTooLargeError(FilepactError, code="REQUEST_TOO_LARGE"):
    """A request to a gateway has more bytes than one may have."""


class RateLimitedError(FilepactError, code="RATE_LIMITED"):
    """A session or a user has asked for too much of a gateway within a minute."""


class GatewayBusyError(FilepactError, code="TOO_MANY_CALLS"):
    """A session or a user has too many calls in flight at a gateway."""


class NoThreadsError(FilepactError, code="NO_THREADS"):
    """The system gives this program no further thread."""


class SessionUnknownError(FilepactError, code="SESSION_UNKNOWN"):
    """A gateway does not know the session, or it has ended."""


class OtherRequestError(FilepactError, code="OTHER_REQUEST"):
    """The key of a repeated request was used for another one."""


class ShuttingDownError(FilepactError, code="SHUTTING_DOWN"):
    """A gateway takes nothing more, since it is being ended."""


class ObjectStoreFailedError(FilepactError, code="OBJECT_STORE_ERROR"):
    """The server of a shared workspace cannot be reached, or refuses; nothing was changed there."""


class ObjectStoreUnsafeError(FilepactError, code="OBJECT_STORE_UNSAFE"):
    """The server does not keep the conditions that a shared workspace rests on."""


class OutcomeUnknownError(FilepactError, code="OUTCOME_UNKNOWN"):
    """Whether a change is in the shared workspace cannot be found out now, or a file could be given neither text whole."""


class SharedBusyError(FilepactError, code="SHARED_BUSY"):
    """Others changed the shared workspace each time that this change was tried."""


class SharedConflictError(FilepactError, code="SHARED_CONFLICT"):
    """Somebody elsewhere changed the same file of a shared workspace first."""


class SharedGoneError(FilepactError, code="SHARED_GONE"):
    """A shared workspace is not there any more, or what is in its place does not go on from what was seen of it."""


class SharedDamagedError(FilepactError, code="SHARED_DAMAGED"):
    """The shared workspace holds other bytes than filepact wrote there."""


class StoreUnreachableError(StateFailedError, code="STORE_UNREACHABLE"):
    """The database of the journal does not answer; nothing was changed."""


class StoreUnsureError(StateFailedError, code="STORE_UNSURE"):
    """The connection broke while something was committed, and whether it was cannot be found out."""


class StoreFullError(StateFailedError, code="STORE_FULL"):
    """The database of the journal has no room; nothing was changed."""


class StoreSchemaError(StateFailedError, code="STORE_SCHEMA"):
    """The tables in the database are missing, or older or newer than this program."""


class StoreReadOnlyError(StateFailedError, code="STORE_READ_ONLY"):
    """The database of the journal takes no changes: a standby, or one that was set so."""


class StoreFencedError(StateFailedError, code="STORE_FENCED"):
    """Another gateway has taken over what this one had begun, since it was not heard of."""


class UnauthorizedError(FilepactError, code="UNAUTHORIZED"):
    """A gateway does not know who asks: no token came, or none that it takes."""


class AccessDeniedError(FilepactError, code="FORBIDDEN"):
    """Whoever asks may not use this workspace of a gateway."""


def without_threads(error: Exception) -> NoThreadsError | None:
    """The refusal for an exception that says that no thread could be begun; None for any other."""
    if not isinstance(error, RuntimeError) or "start new thread" not in str(error):
        return None
    return no_threads()


def no_threads() -> NoThreadsError:
    """The refusal where the system gives no thread."""
    return NoThreadsError(
        "the system gives this program no further thread",
        hint="Try again when less is running, and read a file again before you change it. What is short is processes "
        "(ulimit -u, or pids.max of the container) or memory.",
        retry_after=1,
    )

"""A call, what comes of it, and the form in which it is answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from filepact.errors import FilepactError
from filepact.text.page import PAGE

if TYPE_CHECKING:
    from filepact.domain.operation import Session

__all__ = ["Attempt", "Call", "Form", "Outcome", "as_json", "plain", "printable"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and how to hear from and talk to the caller meanwhile.

    Attributes:
        cancelled: Whether the caller has lost interest; asked often by long work, from any thread.
        progress: Told how far the work is: a count that grows, and a short text.
        page: What one answer may take to reach the reader uncut, in bytes as UTF-8.
    """

    session: Session
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, str], None] = lambda _done, _what: None
    page: int = PAGE


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one call.

    Attributes:
        text: For the reader; base64 where the answer is bytes.  It can always be encoded.
        failed: Whether the tool refused or broke; ``text`` then begins with the code, unless the
            toolset's form has another place for it.
        receipt: The same as an object for programs, where there is one: for a change of the seven
            tools ``operation``, ``status`` and ``files``.
        whole: Whether the receipt is the whole answer, and ``text`` the same as JSON.
        data: The bytes, where the answer is not text.
    """

    text: str
    failed: bool = False
    code: str = ""
    receipt: dict[str, Any] | None = None
    whole: bool = False
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that is about to be carried out.

    Attributes:
        name: The tool's name.
        call: Who calls.
        work: Carries the call out for whom it is given; raises what goes wrong.
        news: What the caller should hear besides; empty mostly.
    """

    name: str
    call: Call
    work: Callable[[Call], Outcome]
    news: Callable[[], str]


Form = Callable[[Attempt], Outcome]
"""Makes the attempt, and an answer of whatever comes of it; it raises nothing."""


def plain(attempt: Attempt) -> Outcome:
    """Text for a reader; a refusal begins with its code."""
    try:
        outcome = attempt.work(attempt.call)
    except FilepactError as error:
        return Outcome(printable(error.report()), failed=True, code=error.code)
    except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
        # The text of a foreign exception may name host paths or hold contents: log only.
        _log.exception("%s failed", attempt.name)
        return Outcome(
            f"{FilepactError.code}: {attempt.name} failed unexpectedly\n"
            "The server's log has the details; read the file again before you go on.",
            failed=True,
            code=FilepactError.code,
        )
    news = ""
    if outcome.data is None:  # bytes are not added to
        # What was done is done: a journal that cannot be asked must not hide it.
        with suppress(FilepactError):
            news = attempt.news()
    return replace(outcome, text=f"{outcome.text}\n\n{printable(news)}") if news else outcome


def printable(value: Any) -> Any:
    """The value with names that are not UTF-8 written in escapes, so that it can be sent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {printable(name): printable(item) for name, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, list | tuple) else value


def as_json(value: Mapping[str, Any]) -> str:
    """A printable object as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""Tool calls, their outcomes, and the plain form of answers."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.deadline import Deadline
from filepact.errors import FilepactError
from filepact.text.page import PAGE, cut_to, size_of

if TYPE_CHECKING:
    from filepact.domain.operation import Session
    from filepact.workspace.pending import SessionEvent

__all__ = ["CallContext", "CallResult", "Form", "PendingCall", "as_json", "plain", "printable"]

_log = logging.getLogger(__name__)

_FAILURE: Final = 10_000
"""The most characters of a refusal: Claude Code cuts those over 11,000."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The caller of a tool, with its limits and ways to report progress to it.

    Attributes:
        cancelled: Whether the caller has lost interest; asked often by long work, from any thread.
        progress: Told how far the work is: a count that grows, and a short text.
        page: What one answer may take to reach the reader uncut, in bytes as UTF-8.
        deadline: When the work has to be over, set by the toolbox; ``cancelled`` counts in it.
    """

    session: Session
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, str], None] = lambda _done, _what: None
    page: int = PAGE
    deadline: Deadline = field(default_factory=Deadline)


def _nothing() -> None:
    """Nothing was told besides, and nothing done."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The answer to one call.

    Attributes:
        text: For the reader; base64 where the answer is bytes.  It can always be encoded.
        failed: Whether the tool refused or broke; ``text`` then begins with the code, unless the
            toolset's form has another place for it.
        receipt: The same as an object for programs, where there is one: for a change of the seven
            tools ``operation``, ``status`` and ``files``.
        whole: Whether the receipt is the whole answer, and ``text`` the same as JSON.
        sent: To be called when the answer is on its way to the caller: what it tells besides is
            not told again then.
        lost: To be called instead when the caller gave up and is not answered: it hears with a
            later answer what was done by then.
        data: The bytes, where the answer is not text.
        mime: What they are, where a reader can look at them; ``image/png`` and the like.
        note: What is said about them beside them.
    """

    text: str
    failed: bool = False
    code: str = ""
    receipt: dict[str, Any] | None = None
    whole: bool = False
    data: bytes | None = None
    sent: Callable[[], None] = field(default=_nothing, compare=False)
    lost: Callable[[], None] = field(default=_nothing, compare=False)
    mime: str = ""
    note: str = ""


class PendingCall(ABC):
    """A call that is about to be carried out.

    Attributes:
        name: The tool's name.
        call: Who calls.
    """

    def __init__(self, name: str, call: CallContext) -> None:
        self.name = name
        self.call = call

    def known_news(self) -> tuple[SessionEvent, ...]:
        """The news, or none where they cannot be had: what was done must not be hidden by that."""
        try:
            return tuple(self.news())
        except Exception:  # noqa: BLE001 - as said, and it is logged
            _log.exception("the news for %s are not known", self.name)
            return ()

    @abstractmethod
    def work(self, call: CallContext, /) -> CallResult:
        """Carry the call out for whom it is given; raises what goes wrong."""

    @abstractmethod
    def news(self) -> Sequence[SessionEvent]:
        """The notices for the caller besides the answer; empty mostly."""

    @abstractmethod
    def heard(self, news: Sequence[SessionEvent], /) -> None:
        """An answer that told these was sent."""


Form = Callable[[PendingCall], CallResult]
"""Makes the attempt, and an answer of whatever comes of it; it raises nothing."""


def plain(attempt: PendingCall) -> CallResult:
    """Text for a reader; a refusal begins with its code, and news stand at the end."""
    page = attempt.call.page
    room = min(sum(map(_size_of_news, attempt.known_news())), page // 2)
    try:
        outcome = attempt.work(replace(attempt.call, page=page - room))
    except FilepactError as error:
        page = min(page, _FAILURE)
        report = cut_to(printable(error.report()), page - min(room, page // 2))
        outcome = CallResult(report, failed=True, code=error.code)
    except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
        # The text of a foreign exception may name host paths or hold contents: log only.
        _log.exception("%s failed", attempt.name)
        outcome = CallResult(
            f"{FilepactError.code}: {attempt.name} failed unexpectedly\n"
            "The server's log has the details; read the file again before you go on.",
            failed=True,
            code=FilepactError.code,
        )
    if outcome.data is not None:  # bytes are not added to
        return outcome
    return _with_news(outcome, attempt, page)


def _with_news(outcome: CallResult, attempt: PendingCall, page: int) -> CallResult:
    """The answer, and as much of the news as there is room for; the rest is told later."""
    text = outcome.text
    told: list[SessionEvent] = []
    for one in attempt.known_news():
        between = "\n" if told else "\n\n"
        longer = f"{text}{between}{cut_to(printable(one.text), page // 4)}"
        if size_of(longer) <= page:
            text = longer
            told.append(one)
    if not told:
        return outcome
    return replace(outcome, text=text, sent=partial(attempt.heard, told))


def _size_of_news(news: SessionEvent) -> int:
    return size_of(printable(news.text)) + 2


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

"""Elicitation: a change that waits is put to the person in their chat, and their answer is carried out.

The stored proposal is the truth, and this only gets to it sooner: a client that does not answer, refuses,
crashes, or answers when it is too late leaves it waiting.  A person answers about what was shown: nothing can be
accepted in a form that does not show all of it, or that would show what its author may not see.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from threading import BoundedSemaphore, Event, Lock
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.errors import FilepactError, InvalidParamsError, NoChangeError, UserDeniedError
from filepact.text.confusables import readable, visible
from filepact.tools.answers import CallResult, failure
from filepact.values import dataclass, late_logger, replace
from filepact_cli.review import author_of, fenced
from filepact_mcp.calls import ElicitationRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.operation import Session
    from filepact_cli.review import Review, ReviewItem, ReviewResult
    from filepact_mcp.calls import ElicitationConnection
    from filepact_wire.messages import Message

__all__ = ["ElicitationReview"]

_log = late_logger(__name__)

ElicitationMode = Literal["form", "url"]

_LONGEST: Final = 12_000  # characters of a form's message; more is not looked at in a dialog
_LINES: Final = 300
_REASON: Final = 1_000
_OPEN: Final = 4  # questions that calls wait for at once; there are more threads for calls
_KEPT: Final = 32  # questions of the modern era whose answers may still come
_ASKED: Final = 1_000
_AGAIN: Final = 3  # more questions about one change, at the wish of a frame
_LOOK: Final = 0.2
_KEY: Final = "filepact"
_NUMBERS: Final = re.compile(r"\d{1,6}(?:\s*-\s*\d{1,6})?(?:\s*,\s*\d{1,6}(?:\s*-\s*\d{1,6})?)*")


@dataclass(frozen=True, slots=True)
class _Question:
    """A change as the person is asked about it.

    Attributes:
        item: What was shown; its hunks are what an answer is about.
        params: Of ``elicitation/create``.
        until: When it is too late to answer.
        call: Whose call it belongs to: the session, the tool and its arguments.
        outcome: What the call answers if nobody decides.
        framed: Whether a frame has wished for it: what is said then is not said to the agent.
    """

    mode: ElicitationMode
    item: ReviewItem
    params: Message
    until: float
    call: tuple[str, str, object]
    outcome: CallResult
    framed: bool = False


class ElicitationReview:
    """Puts what waits to the person in their chat.  For all threads.

    Args:
        review: Opens the review of the person, as they answer in the chat of a program of this name.
        modes: How the person may be asked.
        seconds: How long they have.
        link: Makes a link to the page of a proposal that lets a browser in once; None where there is no page.
    """

    def __init__(
        self,
        review: Callable[[str], Review],
        modes: frozenset[str],
        seconds: float,
        link: Callable[[str], str] | None = None,
    ) -> None:
        self._review = review
        self._modes = modes if link is not None else modes - {"url"}
        self._seconds = seconds
        self._link = link
        self._room = BoundedSemaphore(_OPEN)
        self._lock = Lock()
        self._asked: OrderedDict[str, int] = OrderedDict()
        self._open: OrderedDict[str, _Question] = OrderedDict()

    # -- asking ---------------------------------------------------------------------------

    def ask(
        self,
        outcome: CallResult,
        channel: ElicitationConnection,
        session: Session,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        """The answer to a call that left something waiting, once the person was asked.

        Args:
            outcome: What the call answers if nobody decides.
            channel: The way to the person.
            session: Whose call it is.
            tool: What was called.
            arguments: With which.
            cancelled: Whether nobody waits for the answer any more.
        """
        change = _waiting(outcome)
        if not change:
            return outcome
        call = (session.id, tool, arguments)
        try:
            review = self._review(session.actor.name)
            question = None
            with suppress(FilepactError):  # somebody was faster
                if channel.modes & self._modes and self._room_for(change, 1):
                    question = self._question(review, change, channel, outcome, call)
            if question is None:
                return outcome
            return self._put(question, review, channel, session, cancelled)
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # What the tool has done is told, whatever goes wrong here.
            _log.exception("the person could not be asked")
            return outcome

    def may_ask(self, item: ReviewItem, channel: ElicitationConnection, *, whole: bool) -> bool:
        """Whether the person can be asked about a change, of which its author may see all, at a client."""
        with self._lock:
            if self._asked.get(item.entry.id, 0) > _AGAIN:
                return False
        modes = channel.modes & self._modes
        return "url" in modes or ("form" in modes and whole and _fits(_message(item)))

    def ask_again(
        self,
        change: str,
        marked: str,
        channel: ElicitationConnection,
        session: Session,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        """Ask about a change that waits, as the person wishes in a frame; a few times at most.

        Args:
            change: The change.
            marked: The hunks that are filled in where only some are to be done; empty for all.
            channel: The way to the person.
            session: Whose call it is.
            tool: What was called.
            arguments: With which.
            cancelled: Whether nobody waits for the answer any more.

        Raises:
            FilepactError: It waits no more, or nobody can be asked about it.
        """
        outcome = CallResult(
            f"{change} waits for a person.", receipt={"operation": change, "status": "pending"}
        )
        call = (session.id, tool, arguments)
        review = self._review(session.actor.name)
        question = None
        if self._room_for(change, 1 + _AGAIN):
            question = self._question(review, change, channel, outcome, call, marked)
        if question is None:
            raise InvalidParamsError(
                "the person cannot be asked about this here, or was asked often enough",
                hint="The person finds it with `filepact review --list`, and decides there.",
            )
        return self._put(replace(question, framed=True), review, channel, session, cancelled)

    def _room_for(self, change: str, most: int) -> bool:
        """Count a question: by sending the same again nobody is worn down."""
        with self._lock:
            before = self._asked.get(change, 0)
            if before >= most:
                return False
            self._asked[change] = before + 1
            while len(self._asked) > _ASKED:
                self._asked.popitem(last=False)
            return True

    def _put(
        self,
        question: _Question,
        review: Review,
        channel: ElicitationConnection,
        session: Session,
        cancelled: Callable[[], bool],
    ) -> CallResult | ElicitationRequest:
        change, outcome = question.item.entry.id, question.outcome
        if channel.ask is None:
            return self._later(question)
        if not self._room.acquire(blocking=False):
            return outcome
        try:
            answer = channel.ask(question.params, self._seconds, cancelled)
            return self._answered(question, review, session, answer, cancelled)
        finally:
            if question.mode == "url":
                channel.told("notifications/elicitation/complete", elicitationId=change)
            self._room.release()

    def resume(
        self,
        channel: ElicitationConnection,
        session: Session,
        *,
        tool: str,
        arguments: object,
        cancelled: Callable[[], bool],
    ) -> CallResult:
        """The answer to a call of the modern era that comes again with what the person said."""
        with self._lock:
            question = self._open.pop(channel.state or "", None)
        if (
            question is None
            or time.monotonic() > question.until
            or question.call != (session.id, tool, arguments)
        ):
            error = NoChangeError(
                "this question is not open: its answer decided nothing, and nothing was called again",
                hint="Call history with action status to see what waits.",
            )
            return failure(error)
        answer = (channel.answers or {}).get(_KEY)
        review = self._review(session.actor.name)
        said = answer if isinstance(answer, dict) else None
        return self._answered(question, review, session, said, cancelled)

    def _later(self, question: _Question) -> ElicitationRequest:
        state = secrets.token_urlsafe(24)
        with self._lock:
            self._open[state] = question
            while len(self._open) > _KEPT:
                self._open.popitem(last=False)
        asked = {"method": "elicitation/create", "params": question.params}
        return ElicitationRequest({_KEY: asked}, state)

    def _question(
        self,
        review: Review,
        change: str,
        channel: ElicitationConnection,
        outcome: CallResult,
        call: tuple[str, str, object],
        marked: str = "",
    ) -> _Question | None:
        """How the person is asked; None where they cannot be."""
        modes = channel.modes & self._modes
        if not modes:
            return None
        item = review.item(change)
        message = _message(item)
        if "form" in modes and _fits(message) and review.shows_author_all(item):
            params: Message = {"message": message, "requestedSchema": _schema(item, marked)}
            return _Question("form", item, params, self._until, call, outcome)
        if "url" not in modes or self._link is None:
            return None
        author = author_of(item.entry.proposal)
        params = {
            "mode": "url",
            "message": f"{author} wants to change files, and you are asked first. "
            f"The change, {change}, is shown and decided about in your browser.",
            "url": self._link(change),
        }
        if channel.ask is not None:
            params["elicitationId"] = change
        return _Question("url", item, params, self._until, call, outcome)

    @property
    def _until(self) -> float:
        return time.monotonic() + self._seconds

    # -- what was answered ----------------------------------------------------------------

    def _answered(
        self,
        question: _Question,
        review: Review,
        session: Session,
        answer: Message | None,
        cancelled: Callable[[], bool],
    ) -> CallResult:
        accepted = answer is not None and answer.get("action") == "accept"
        change = question.item.entry.id
        if question.mode == "url":
            if accepted:
                _wait_for(review, change, question.until, cancelled)
            if review.workspace.proposal(change).state == "proposed":
                return _undecided(question.outcome)
            return _told(question, review, session)
        choice = _choice(question.item, answer) if accepted and answer is not None else None
        if choice is None or cancelled() or time.monotonic() > question.until:
            return _undecided(question.outcome)
        accept, reject, reason = choice
        try:
            result = review.decide(question.item, accept, reject, reason)
        except FilepactError as error:
            # Its words are for the person: they may tell what others have written.
            said = f"The person was asked in the chat, and nothing came of it ({error.code})."
            return replace(question.outcome, text=f"{said}\n{question.outcome.text}")
        return _told(question, review, session, result)


def _waiting(outcome: CallResult) -> str:
    """The proposal that a call has left waiting; empty for none."""
    receipt = outcome.receipt or {}
    if outcome.whole or receipt.get("status") != "pending":
        return ""
    return str(receipt.get("operation") or "")


def _message(item: ReviewItem) -> str:
    """Return the text of a form: all that others have written stands behind a fence, and nothing in it is hidden."""
    proposal = item.entry.proposal
    lines = [
        visible(" ".join(proposal.summary.split())),
        *(
            visible(" ".join(f"asked by the rule {one.name}: {one.why}".split()))
            for one in item.rules
        ),
        "",
    ]
    several = len(item.hunks) > 1
    for hunk in item.hunks:
        if several:
            lines.append(f"hunk {hunk.number} of {len(item.hunks)}:")
        lines.append(readable(hunk.diff).rstrip("\n"))
    shown = fenced("\n".join(lines))
    author = author_of(proposal).replace("`", "'")
    return (
        f"{author} wants to change files; nothing is done yet. Proposal {proposal.id}:\n"
        f"{shown}\n"
        "accept: this is done, exactly as shown. reject: it is given up, and the agent is told the reason. later: "
        "it waits, and `filepact review` shows it."
    )


def _fits(message: str) -> bool:
    """Whether a person can be expected to look at all of it in a dialog."""
    return len(message) <= _LONGEST and message.count("\n") <= _LINES


def _schema(item: ReviewItem, marked: str = "") -> Message:
    fields: Message = {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether this change is made",
            "enum": ["accept", "reject", "later"],
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "description": "Said to the agent",
            "maxLength": _REASON,
        },
    }
    if len(item.hunks) > 1 and item.divisible:
        fields["hunks"] = {
            "type": "string",
            "title": "Hunks",
            "description": "Only these, such as 1, 3-5; the others wait on. Empty for all",
            "maxLength": 200,
        }
        if _numbers(marked, [one.number for one in item.hunks]) and marked.strip():
            # What is to be done stays open all the same: a frame is no person.
            fields["hunks"]["default"] = marked.strip()
    return {"type": "object", "properties": fields, "required": ["decision"]}


def _choice(
    item: ReviewItem, answer: Message
) -> tuple[tuple[int, ...], tuple[int, ...], str] | None:
    """The hunks that are accepted and rejected, and the reason; None for no decision, or for none that is understood."""
    content = answer.get("content")
    if not isinstance(content, dict):
        return None
    reason, named = content.get("reason") or "", content.get("hunks") or ""
    if not isinstance(reason, str) or not isinstance(named, str):
        return None
    numbers = _numbers(named, [one.number for one in item.hunks])
    if not numbers:
        return None
    reason = " ".join(reason.split())[:_REASON]
    match content.get("decision"):
        case "accept":
            return numbers, (), reason
        case "reject":
            return (), numbers, reason
        case _:
            return None


def _numbers(named: str, every: list[int]) -> tuple[int, ...]:
    """Hunks by a list such as ``1, 3-5``; all for an empty one, none for one that makes no sense."""
    if not named.strip():
        return tuple(every)
    if _NUMBERS.fullmatch(named.strip()) is None:
        return ()
    found: set[int] = set()
    for part in named.split(","):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if low < 1 or high > len(every) or low > high:
            return ()
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def _wait_for(review: Review, change: str, until: float, cancelled: Callable[[], bool]) -> None:
    """Wait until a proposal is decided about, in whatever window."""
    pause = Event()
    while not cancelled() and review.workspace.proposal(change).state == "proposed":
        left = until - time.monotonic()
        if left <= 0:
            return
        pause.wait(min(_LOOK, left))


def _undecided(outcome: CallResult) -> CallResult:
    said = "The person was asked in the chat and has not decided; it waits."
    return replace(outcome, text=f"{said}\n{outcome.text}")


def _told(
    question: _Question, review: Review, session: Session, result: ReviewResult | None = None
) -> CallResult:
    """The answer to a call about whose change somebody has decided."""
    workspace, outcome, change = review.workspace, question.outcome, question.item.entry.id
    proposal = workspace.proposal(change)
    about = {change, workspace.newest(change).id}
    receipt = {**(outcome.receipt or {})}
    if result is not None and result.waits is not None:
        about.add(result.waits)
        if question.framed:
            receipt["waits"] = result.waits
    news = [one for one in workspace.events(session) if one.key in about]
    said = " ".join(one.text for one in news)
    done = result.receipt if result is not None else None
    operation = (done.operation if done is not None else None) or (
        change if proposal.state == "committed" else None
    )
    heard = () if question.framed else news  # what a frame is told the agent has yet to hear
    sent = partial(_both, outcome.on_sent, partial(workspace.acknowledge, session, heard))
    if operation is not None:
        receipt |= {"operation": operation, "status": "applied"}
        text = f"{said} Operation {operation}; undo with `filepact undo {operation}`."
        diff = outcome.text.partition("\n")[2]
        text = f"{text}\n{diff}" if diff and proposal.state == "committed" else text
        return replace(outcome, text=text, receipt=receipt, on_sent=sent)
    if question.framed:
        receipt["status"] = "pending" if proposal.state == "superseded" else proposal.state
    elif proposal.state == "rejected":
        error = UserDeniedError(said or f"{change} was rejected by a person", hint="")
        return replace(failure(error), events=outcome.events, on_sent=sent)
    if result is not None and result.waits is not None:
        receipt["operation"] = result.waits
    return replace(outcome, text=said or outcome.text, receipt=receipt, on_sent=sent)


def _both(first: Callable[[], None], second: Callable[[], Any]) -> None:
    first()
    second()

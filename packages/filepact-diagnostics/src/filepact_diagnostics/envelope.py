"""An envelope around each answer: one object of four fields, whatever happened.

They are ``success``, ``data``, ``meta`` and ``error``; the text of an answer is the same object as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError, TimedOutError
from filepact.tools.answers import CallResult, as_json, printable, shortened
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.tools.answers import CallContext
    from filepact.workspace.pending import SessionEvent

__all__ = ["CALL_SECONDS", "CallSummary", "Envelope", "in_envelope"]

CALL_SECONDS: Final = 1_200.0
"""How long one call may take whose answer is an envelope."""


class Envelope:
    """The form of answers in which each is one object; see the module.

    Work that is asked to end when its time is over ends as if the caller had given up, and the
    answer says which of both it was.
    """

    def limit(self, call: CallContext, _news: Sequence[SessionEvent]) -> CallContext:
        return replace(call, cancelled=call.deadline.passed)

    def answer(
        self, call: CallContext, result: CallResult | FilepactError, news: Sequence[SessionEvent]
    ) -> CallResult:
        cancelled = call.cancelled()
        told = () if cancelled else tuple(news)
        error = result if isinstance(result, FilepactError) else None
        meta = CallSummary(
            call.deadline.spent,
            cancelled=cancelled,
            timed_out=call.deadline.stopped == "time" or isinstance(error, TimedOutError),
            limit=call.deadline.seconds,
            events=tuple(one.text for one in told),
        )
        data = result.receipt if isinstance(result, CallResult) else None
        answer = printable(in_envelope(data, meta, error))
        return CallResult(
            as_json(answer),
            failed=error is not None,
            code="" if error is None else error.code,
            receipt=answer,
            whole=True,
            events=told,
        )


@dataclass(frozen=True, slots=True)
class CallSummary:
    """How a call went, whatever came of it.

    Attributes:
        seconds: How long it took.
        cancelled: Whether the caller gave it up before it was over.
        timed_out: Whether it came to its end because its time was over.
        limit: Seconds that it was allowed.
        events: What the caller should hear besides, one sentence each.
    """

    seconds: float
    cancelled: bool = False
    timed_out: bool = False
    limit: float = CALL_SECONDS
    events: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The facts as an object; times in milliseconds."""
        facts: dict[str, Any] = {
            "durationMs": round(self.seconds * 1000),
            "cancelled": self.cancelled,
            "timedOut": self.timed_out,
            "timeoutMs": round(self.limit * 1000),
        }
        return facts | ({"news": list(self.events)} if self.events else {})


def in_envelope(
    data: Mapping[str, Any] | None, meta: CallSummary, error: FilepactError | None = None
) -> dict[str, Any]:
    """The whole answer; without ``error`` the call has succeeded."""
    message, hint = shortened(error.message, error.hint) if error else ("", "")
    return {
        "success": error is None,
        "data": data,
        "meta": meta.facts,
        "error": None if error is None else {"code": error.code, "message": message, "hint": hint},
    }

"""Answers in an envelope: whether it worked, what came of it, how long it took, or what was wrong.

Every answer is one object of four fields, whatever happened: ``success``, ``data``, ``meta`` and
``error``.  Its text is the same object as JSON.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.deadline import Deadline
from filepact.errors import FilepactError, TimedOutError
from filepact.tools.form import CallResult, as_json, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.tools.form import PendingCall

__all__ = ["CALL_SECONDS", "CallSummary", "Envelope", "in_envelope"]

_log = logging.getLogger(__name__)

CALL_SECONDS: Final = 1_200.0
"""How long one call may take."""


@dataclass(frozen=True, slots=True)
class CallSummary:
    """How a call went, whatever came of it.

    Attributes:
        seconds: How long it took.
        cancelled: Whether the caller gave it up before it was over.
        timed_out: Whether it came to its end because its time was over.
        limit: Seconds that it was allowed.
        news: What the caller should hear besides, one sentence each.
    """

    seconds: float
    cancelled: bool = False
    timed_out: bool = False
    limit: float = CALL_SECONDS
    news: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """As an object; times in milliseconds."""
        facts: dict[str, Any] = {
            "durationMs": round(self.seconds * 1000),
            "cancelled": self.cancelled,
            "timedOut": self.timed_out,
            "timeoutMs": round(self.limit * 1000),
        }
        return facts | ({"news": list(self.news)} if self.news else {})


def in_envelope(
    data: Mapping[str, Any] | None, meta: CallSummary, error: FilepactError | None = None
) -> dict[str, Any]:
    """The whole answer; without ``error`` the call has succeeded."""
    return {
        "success": error is None,
        "data": data,
        "meta": meta.facts,
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "hint": error.hint},
    }


class Envelope:
    """The form of a toolset whose every answer is such an object.

    Args:
        limit: Seconds that one call may take; work that is asked to end when they are over ends as
            if the caller had given up, and the answer says which of both it was.
        clock: Seconds that only grow.
    """

    def __init__(
        self, limit: float = CALL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._clock = clock

    def __call__(self, attempt: PendingCall) -> CallResult:
        """Make an attempt and put what comes of it into an envelope."""
        began = self._clock()
        over = False

        def ended() -> bool:
            nonlocal over
            over = over or self._clock() - began >= self._limit
            return over or attempt.call.cancelled()

        data: dict[str, Any] | None = None
        error: FilepactError | None = None
        try:
            deadline = Deadline(self._limit, attempt.call.cancelled, self._clock)
            call = replace(attempt.call, cancelled=ended, deadline=deadline)
            data = attempt.work(call).receipt
        except FilepactError as refused:
            error = refused
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # The text of a foreign exception may name host paths or hold contents: log only.
            _log.exception("%s failed", attempt.name)
            error = FilepactError(
                f"{attempt.name} failed unexpectedly",
                hint="The server's log has the details; look at the file before you go on.",
            )
        cancelled = attempt.call.cancelled()
        news = () if cancelled else attempt.known_news()
        meta = CallSummary(
            self._clock() - began,
            cancelled=cancelled,
            timed_out=over or isinstance(error, TimedOutError),
            limit=self._limit,
            news=tuple(one.text for one in news),
        )
        answer = printable(in_envelope(data, meta, error))
        return CallResult(
            as_json(answer),
            failed=error is not None,
            code="" if error is None else error.code,
            receipt=answer,
            whole=True,
            sent=partial(attempt.heard, news),
        )

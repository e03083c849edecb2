"""The deadline of a call: one value that is handed down with it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final, Literal

from filepact.errors import CallCancelledError, TimedOutError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEFAULT_SECONDS", "FOREVER", "Deadline", "Stopped"]

DEFAULT_SECONDS: Final = 20.0
"""How long one call of a tool may take, where nothing else is set."""

Stopped = Literal["", "time", "cancelled"]
"""Why work ended early; empty where it did not."""


class Deadline:
    """The end of a call's time, or of its caller's interest; whichever comes first.

    Nobody ends the work from outside: it asks at places where it can stop with what it has, or
    before it has done anything.

    Attributes:
        seconds: How long the call may take.
        cancelled: As given.
        stopped: Why the work was told to stop; empty as long as it was not.

    Args:
        seconds: The same, from now on.
        cancelled: Whether the caller has given up.
        clock: Seconds that only grow.
    """

    __slots__ = ("_began", "_clock", "_end", "cancelled", "seconds", "stopped")

    def __init__(
        self,
        seconds: float = math.inf,
        cancelled: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self.cancelled = cancelled
        self._clock = clock
        self._began = clock()
        self._end = self._began + seconds
        self.stopped: Stopped = ""

    @property
    def left(self) -> float:
        """Seconds that are left, never below 0."""
        return max(self._end - self._clock(), 0.0)

    @property
    def spent(self) -> float:
        """Seconds that have gone by."""
        return self._clock() - self._began

    @property
    def why(self) -> Stopped:
        """Why to stop now; empty for going on."""
        if self._clock() >= self._end:
            self.stopped = "time"
            return "time"
        if self.cancelled():
            self.stopped = self.stopped or "cancelled"
            return "cancelled"
        return ""

    def passed(self) -> bool:
        """Whether to stop now."""
        return bool(self.why)

    def within(self, seconds: float) -> Deadline:
        """A deadline for a part of the work: this one, or so many seconds, whichever ends first."""
        return Deadline(min(seconds, self.left), self.cancelled, self._clock)

    def check(self) -> None:
        """Refuse to go on with work that has changed nothing yet.

        Raises:
            TimedOutError: The time is over.
            CallCancelledError: The caller has given up.
        """
        if self._clock() < self._end and not self.cancelled():
            return
        match self.why:
            case "time":
                raise TimedOutError(
                    f"took longer than the {self.seconds:g} seconds that a call may take, and was "
                    "stopped before anything was changed",
                    hint="Ask for less in one call: fewer files, fewer or smaller parts.",
                    seconds=self.seconds,
                )
            case "cancelled":
                raise CallCancelledError(
                    "the call was cancelled before anything was changed",
                    hint="Send it again if it is wanted.",
                )
            case _:
                return


FOREVER: Final = Deadline()
"""No end."""

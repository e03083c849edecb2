"""What servers answered about some files of a root, once it is sure which texts they meant."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from filepact.lsp.outcome import Preview, Update

__all__ = ["Asked", "Limit"]

_T = TypeVar("_T", "Preview", "Update")
_V = TypeVar("_V")

_SLICE: Final = 0.05
_MARGIN: Final = 0.03


@dataclass(frozen=True, slots=True)
class Asked(Generic[_T]):
    """Answers of servers.

    Attributes:
        answers: One of each server; none if nothing came in time.
        reason: Why they may be about other texts than those on the disk; empty if that is
            excluded.
    """

    answers: tuple[_T, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """Until when, and for whom, something is waited for.

    Attributes:
        end: On the system's steady clock.
        cancelled: Whether the caller has lost interest.
        patient: Whether servers that are starting are waited for.
    """

    end: float
    cancelled: Callable[[], bool]
    patient: bool

    @classmethod
    def after(cls, seconds: float, cancelled: Callable[[], bool], *, patient: bool) -> Limit:
        """A limit that many seconds from now."""
        return cls(time.monotonic() + seconds, cancelled, patient)

    @property
    def rest(self) -> float:
        """Seconds that are left."""
        return max(self.end - time.monotonic(), 0.0)

    @property
    def for_servers(self) -> float:
        """Seconds that servers have, so that what they did not answer can still be told."""
        return max(self.rest - _MARGIN, 0.0)

    def wait(self, future: Future[_V]) -> _V | None:
        """The result of something that goes on aside; None if it does not end in time."""
        while True:
            rest = self.rest
            try:
                return future.result(min(rest, _SLICE))
            except CancelledError:
                return None  # the servers were ended meanwhile
            except NotYetError:
                if rest <= 0 or self.cancelled():
                    return None

"""How long a call waits for servers."""

from __future__ import annotations

from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYetError
from typing import TYPE_CHECKING, Final, TypeVar

from filepact.domain.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

__all__ = ["CallDeadline"]

_T = TypeVar("_T")

_SLICE: Final = 0.05
_MARGIN: Final = 0.03


class CallDeadline(Deadline):
    """The deadline of a wait for servers.

    Attributes:
        patient: Whether servers that are starting are waited for.
    """

    __slots__ = ("patient",)

    def __init__(self, seconds: float, cancelled: Callable[[], bool], *, patient: bool) -> None:
        super().__init__(seconds, cancelled)
        self.patient = patient

    def within(self, seconds: float) -> CallDeadline:
        """A deadline for a part of the wait: this one, or so many seconds, whichever ends first."""
        return CallDeadline(min(seconds, self.left), self.cancelled, patient=self.patient)

    @property
    def for_servers(self) -> float:
        """Seconds that servers have; less, so that what they did not answer can still be told."""
        return max(self.left - _MARGIN, 0.0)

    def wait(self, future: Future[_T]) -> _T | None:
        """The result of work on another thread; None if it does not end in time."""
        while True:
            left = self.left
            try:
                return future.result(min(left, _SLICE))
            except CancelledError:
                return None  # the servers were ended meanwhile
            except NotYetError:
                if left <= 0 or self.cancelled():
                    return None

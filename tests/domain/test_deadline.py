"""When a call has to be over, by a clock that the test turns."""

from __future__ import annotations

import pytest

from filepact.domain.deadline import FOREVER, Deadline
from filepact.errors import CallCancelledError, TimedOutError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_passes_and_is_over() -> None:
    clock = Clock()
    deadline = Deadline(5, clock=clock)
    clock.now += 4
    assert (deadline.left, deadline.why, deadline.passed()) == (1, "", False)
    deadline.check()
    clock.now += 2
    assert (deadline.left, deadline.why, deadline.passed()) == (0, "time", True)
    with pytest.raises(TimedOutError):
        deadline.check()


def test_a_caller_who_gives_up_ends_it_before() -> None:
    given_up = False
    deadline = Deadline(5, lambda: given_up, Clock())
    assert not deadline.passed()
    given_up = True
    assert (deadline.why, deadline.left) == ("cancelled", 5)
    with pytest.raises(CallCancelledError):
        deadline.check()


def test_a_part_never_gets_more_time_than_there_is() -> None:
    clock = Clock()
    deadline = Deadline(5, clock=clock)
    part, rest = deadline.within(2), deadline.within(60)
    clock.now += 2
    assert (part.why, rest.why) == ("time", "")
    clock.now += 3
    assert rest.why == "time"
    assert FOREVER.within(1).left <= 1
    FOREVER.check()

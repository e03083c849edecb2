"""The check of histories finds what cannot have been, and passes what can."""

from __future__ import annotations

import time

import pytest

from tests.fleet.histories import Event, digest_of, violations


def read(begun: float, ended: float, *lines: str) -> Event:
    return Event("f", begun, ended, "read", lines=len(lines), digest=digest_of(lines))


def write(begun: float, ended: float, token: str, kind: str = "written") -> Event:
    return Event("f", begun, ended, kind, token, code="CODE" if kind == "refused" else "")  # type: ignore[arg-type]


GOOD = [
    write(0, 1, "a"),
    read(2, 3, "a"),
    write(4, 9, "b"),
    read(5, 6, "a", "b"),
    read(5, 7, "a"),
    write(0, 9, "c", "refused"),
    write(0, 1, "d", "unknown"),
]


def test_what_can_have_been_passes() -> None:
    assert violations(GOOD, {"f": ["a", "b"]}) == []
    assert violations([*GOOD, write(3, 4, "e", "unknown")], {"f": ["a", "b", "e"]}) == []


@pytest.mark.parametrize(
    ("more", "final", "word"),
    [
        ([read(10, 11, "a")], "ab", "stale"),
        ([write(10, 11, "x")], "xab", "stale"),
        ([], "a", "lost"),
        ([], "aab", "twice"),
        ([], "abz", "never asked for"),
        ([read(0, 11, "b")], "ab", "never was"),
        ([read(0, 11, "a", "b", "q")], "ab", "never was"),
        ([], "abc", "refused"),
    ],
)
def test_what_cannot_have_been_is_found(more: list[Event], final: str, word: str) -> None:
    found = violations([*GOOD, *more], {"f": [*final]})
    assert any(word in one for one in found), found


def test_a_long_history_is_checked_quickly() -> None:
    final = [f"t{number}" for number in range(20_000)]
    events = [write(number, number + 40, token) for number, token in enumerate(final)]
    begun = time.process_time()
    assert violations(events, {"f": final}) == []
    took = time.process_time() - begun
    events = [write(number, number + 40, token) for number, token in enumerate(final[:5_000])]
    begun = time.process_time()
    assert violations(events, {"f": final[:5_000]}) == []
    # Four times as many take about four times as long, not sixteen times.
    assert took < 10 * (time.process_time() - begun) + 0.5

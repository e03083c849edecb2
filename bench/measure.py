"""Pairs of measurements, taken by turns, and what is said of them.

Two sides do the same work one right after the other, the first of them drawn by lot, so that what else the
machine does meets both.  A ratio is peer's time by ours, pair by pair; above 1 filepact is faster.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

__all__ = ["Pairs", "Spread", "Timing", "by_turns", "spread"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one piece of work: by the clock, and on processors."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Spread:
    """A median between its quartiles."""

    low: float
    middle: float
    high: float

    def to_json(self) -> list[float]:
        return [float(f"{one:.6g}") for one in (self.low, self.middle, self.high)]


def spread(values: Sequence[float]) -> Spread:
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, middle, high)


@dataclass(slots=True)
class Pairs:
    """What was measured of one operation, ours beside a peer's."""

    ours: list[Timing] = field(default_factory=list)
    theirs: list[Timing] = field(default_factory=list)

    def add(self, ours: Timing, theirs: Timing) -> None:
        self.ours.append(ours)
        self.theirs.append(theirs)

    def ratio(self, of: str) -> Spread:
        """Peer's by ours; ``of`` is ``wall`` or ``cpu``."""
        both = zip(self.theirs, self.ours, strict=True)
        return spread([getattr(a, of) / max(getattr(b, of), 1e-9) for a, b in both])

    def to_json(self) -> dict[str, Any]:
        return {
            "rounds": len(self.ours),
            "ours": _ms(self.ours),
            "theirs": _ms(self.theirs),
            "ratio": {of: self.ratio(of).to_json() for of in ("wall", "cpu")},
        }


def _ms(timings: Sequence[Timing]) -> dict[str, list[float]]:
    """Milliseconds, by each clock."""
    return {
        of: spread([getattr(one, of) * 1_000 for one in timings]).to_json()
        for of in ("wall", "cpu")
    }


def by_turns(
    rounds: int,
    ours: Callable[[int], Timing],
    theirs: Callable[[int], Timing],
    *,
    warm: int = 2,
    seconds: float = 60.0,
    dice: random.Random,
) -> Pairs:
    """Do both, in pairs; the first rounds are not counted, and after so many seconds it is enough."""
    pairs = Pairs()
    end = time.monotonic() + seconds
    for turn in range(-warm, rounds):
        if turn >= min(3, rounds) and time.monotonic() > end:
            break
        done: dict[int, Timing] = {}
        for side in dice.sample((0, 1), 2):
            done[side] = (ours, theirs)[side](turn + warm)
        if turn >= 0:
            pairs.add(done[0], done[1])
    return pairs

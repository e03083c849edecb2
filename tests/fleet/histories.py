"""What many clients saw of some files to which everybody adds lines, and whether that can have been so."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Event", "History", "digest_of", "violations"]

Kind = Literal["written", "refused", "unknown", "read"]


@dataclass(frozen=True, slots=True)
class Event:
    """One operation as its client saw it.

    Attributes:
        file: The file.
        begun: When it was first asked for.
        ended: When its outcome was heard.
        token: What was to be added; empty for a read.
        lines: How many lines a read found.
        digest: Of these lines, the oldest first.
        code: Why it was refused.
    """

    file: str
    begun: float
    ended: float
    kind: Kind
    token: str = ""
    lines: int = 0
    digest: bytes = b""
    code: str = ""


@dataclass(slots=True)
class History:
    """Events of many threads."""

    events: list[Event] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def add(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)


def digest_of(lines: Iterable[str]) -> bytes:
    """A short name of a list of lines: that of its beginning, and one more line."""
    return [*_digests(lines)][-1]


def _digests(lines: Iterable[str]) -> Iterable[bytes]:
    """The names of all beginnings of a list, from the empty one on."""
    return accumulate(
        lines, lambda before, line: sha256(before + line.encode()).digest(), initial=b""
    )


def violations(events: Sequence[Event], final: dict[str, list[str]]) -> list[str]:
    """What of a history cannot have been, in words; in n log n.

    A file only grows, by one line at its end, so that its states are the beginnings of what it is in the
    end, and the number of lines names one.  A history is linearizable if each operation can have
    happened at one moment between its beginning and its end: if a write has its own place, and
    nothing that began after the end of another one is of an earlier state.

    Args:
        events: In any order.
        final: The lines of each file in the end, the oldest first.
    """
    found: list[str] = []
    of_file: defaultdict[str, list[Event]] = defaultdict(list)
    for one in events:
        of_file[one.file].append(one)
    for file, some in of_file.items():
        found += [f"{file}: {one}" for one in _of_one(some, final.get(file, []))]
    return found


def _of_one(events: list[Event], final: list[str]) -> list[str]:
    found: list[str] = []
    place = {token: number for number, token in enumerate(final, start=1)}
    if len(place) != len(final):
        found += [f"{one} was done twice" for one in {*final} if final.count(one) > 1]
    asked = {one.token for one in events if one.kind != "read"}
    found += [f"{one} was never asked for" for one in place.keys() - asked]
    names = [*_digests(final)]
    points: list[tuple[float, float, int, str]] = []
    for one in events:
        if one.kind == "read":
            if one.lines >= len(names) or names[one.lines] != one.digest:
                found.append(f"a read at {one.begun:.3f} found what never was")
            else:
                points.append((one.begun, one.ended, one.lines, f"a read of {one.lines} lines"))
        elif one.token not in place:
            if one.kind == "written":
                found.append(f"{one.token} was acknowledged at {one.ended:.3f}, and is lost")
        elif one.kind == "refused":
            found.append(f"{one.token} was refused with {one.code}, and done")
        else:
            # Of what nobody heard the end of, only the beginning is known.
            ended = one.ended if one.kind == "written" else float("inf")
            points.append((one.begun, ended, place[one.token], f"the write of {one.token}"))
    # Whatever began after the end of another is not of an earlier state.
    by_end = sorted(points, key=lambda one: one[1])
    ends = [one[1] for one in by_end]
    furthest = [*accumulate((one[2] for one in by_end), max, initial=0)]
    for begun, _, state, what in points:
        reached = furthest[bisect_left(ends, begun)]
        # Nobody can have seen what a write makes before it was begun.
        if state < reached + (not what.startswith("a read")):
            found.append(f"{what}, begun at {begun:.3f}: stale, {reached} lines were seen before")
    return found

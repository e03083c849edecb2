"""The limits of a gateway: calls and bytes per minute, calls in flight, and those in line, per session and per user.

Each worker counts for itself; with several, a user may have as many times as much.  Used in the event
loop alone.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

from filepact.errors import GatewayBusyError, RateLimitedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_gateway.settings import CallLimits

__all__ = ["LimitChecks"]

_MINUTE: Final = 60.0
_KNOWN: Final = 20_000  # sessions and users whose use is remembered


class _Use:
    """What one of them has used: a bucket that fills within a minute, calls in flight, and those that wait."""

    __slots__ = ("at", "bytes", "calls", "line", "running", "waiting")

    def __init__(self, now: float, calls: float, size: float) -> None:
        self.at = now
        self.calls, self.bytes = calls, size
        self.running = self.waiting = 0
        self.line: deque[_Place] = deque()


class _Place:
    """A call on its way to be carried out: by the line of its session, then by that of its user."""

    __slots__ = ("gates", "passed", "start")

    def __init__(self, gates: list[tuple[_Use, int]], start: Callable[[], object]) -> None:
        self.gates = gates
        self.passed = 0
        self.start = start


class LimitChecks:
    """Counts what sessions and users ask for.

    Args:
        limits: How much they may.
        clock: Seconds that only grow.
    """

    def __init__(self, limits: CallLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._most = limits.user_megabytes * 1_000_000
        self._uses: OrderedDict[tuple[str, str], _Use] = OrderedDict()

    def count(self, session: str, user: str, size: int) -> None:
        """Count a request that comes.

        Args:
            session: Whose it is; empty for none.
            user: On whose behalf; empty where nobody says who they are.
            size: Its bytes.

        Raises:
            RateLimitedError: It is more than is allowed within a minute.
        """
        now = self._clock()
        # What is larger than a minute's bytes would never be taken: it waits for a full bucket.
        wanted = min(size, self._most)
        uses: list[_Use] = []
        for key, calls in self._keys(session, user):
            use = self._use(key, now, calls)
            uses.append(use)
            short = max(_wait(1 - use.calls, calls), _wait(wanted - use.bytes, self._most))
            if short > 0:
                raise RateLimitedError(
                    f"this {key[0]} has sent too much within a minute",
                    hint=f"Send it again in {math.ceil(short)} seconds.",
                    retry_after=math.ceil(short),
                )
        for use in uses:
            use.calls -= 1
            use.bytes -= size

    def enter(self, session: str, user: str, start: Callable[[], object]) -> Callable[[], None]:
        """Have a call started: now, or when enough of those before it are over.

        Calls wait in the line of their session first, so that nobody waits for the many calls of another session.

        Args:
            session: As for `count`, as the user.
            user: On whose behalf.
            start: Starts it.

        Returns:
            To be called when the call is over, or is given up.

        Raises:
            GatewayBusyError: Too many wait.
        """
        limits, now = self._limits, self._clock()
        most = {
            "session": (limits.session_at_once, limits.session_waiting),
            "user": (limits.user_at_once, limits.user_waiting),
        }
        gates: list[tuple[_Use, int]] = []
        for key, calls in self._keys(session, user):
            use, (at_once, waiting) = self._use(key, now, calls), most[key[0]]
            if use.waiting >= waiting and (use.waiting or use.running >= at_once):
                raise GatewayBusyError(
                    f"{use.running} calls of this {key[0]} are carried out and {use.waiting} wait, which is the limit",
                    hint="Wait for an answer, then send it again.",
                    retry_after=1,
                )
            gates.append((use, at_once))
        place = _Place(gates, start)
        for use, _ in gates:
            use.waiting += 1
        _go_on(place)
        return lambda: _leave(place)

    def _keys(self, session: str, user: str) -> list[tuple[tuple[str, str], int]]:
        """Whose use a call counts for, with the calls that they may make within a minute."""
        own = [(("session", session), self._limits.session_calls)] if session else []
        return [*own, (("user", user), self._limits.user_calls)]

    def _use(self, key: tuple[str, str], now: float, calls: int) -> _Use:
        use = self._uses.get(key)
        if use is None:
            use = self._uses[key] = _Use(now, calls, self._most)
            self._forget()
            return use
        self._uses.move_to_end(key)
        passed, use.at = (now - use.at) / _MINUTE, now
        use.calls = min(calls, use.calls + passed * calls)
        use.bytes = min(self._most, use.bytes + passed * self._most)
        return use

    def _forget(self) -> None:
        """Forget who has asked for nothing for the longest time."""
        while len(self._uses) > _KNOWN:
            free = (one for one, use in self._uses.items() if not use.running + use.waiting)
            key = next(free, None)
            if key is None:
                return
            del self._uses[key]


def _go_on(place: _Place) -> None:
    """Let a call go on as far as there is room, and start it behind the last gate."""
    for use, at_once in place.gates[place.passed :]:
        if use.running >= at_once:
            use.line.append(place)
            return
        use.running += 1
        place.passed += 1
    for use, _ in place.gates:
        use.waiting -= 1
    place.start()


def _leave(place: _Place) -> None:
    """Give up the place of a call, and let those behind it go on."""
    passed, rest = place.gates[: place.passed], place.gates[place.passed :]
    place.gates, place.passed = [], 0
    if rest:
        rest[0][0].line.remove(place)
        for use, _ in (*passed, *rest):
            use.waiting -= 1
    for use, _ in passed:
        use.running -= 1
    for use, at_once in reversed(passed):
        while use.line and use.running < at_once:
            _go_on(use.line.popleft())


def _wait(short: float, per_minute: float) -> float:
    """Seconds until so much more may be asked for."""
    return short * _MINUTE / per_minute if short > 0 else 0.0

"""The limits of a gateway: calls and bytes per minute, and calls in flight, per session and per user.

Each worker counts for itself; with several, a user may have as many times as much.  Used in the event
loop alone.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from filepact.errors import GatewayBusyError, RateLimitedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.config.serving import CallLimits

__all__ = ["LimitChecks"]

_MINUTE: Final = 60.0
_KNOWN: Final = 20_000  # sessions and users whose use is remembered


class _Use:
    """What one of them has used: a bucket that fills within a minute, and calls in flight."""

    __slots__ = ("at", "bytes", "calls", "running")

    def __init__(self, now: float, calls: float, size: float) -> None:
        self.at = now
        self.calls, self.bytes = calls, size
        self.running = 0


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

    def begin(self, session: str, user: str, size: int) -> Callable[[], None]:
        """Count a request that begins; what is answered has to be called when it is over.

        Args:
            session: Whose it is; empty for none.
            user: On whose behalf; empty where nobody says who they are.
            size: Its bytes.

        Raises:
            RateLimitedError: It is more than is allowed within a minute.
            GatewayBusyError: Too many are in flight.
        """
        limits, now = self._limits, self._clock()
        asked = [(("user", user), limits.user_calls, limits.user_at_once)]
        if session:
            asked.append((("session", session), limits.session_calls, limits.session_at_once))
        uses: list[_Use] = []
        for key, calls, at_once in asked:
            use = self._use(key, now, calls)
            uses.append(use)
            if use.running >= at_once:
                raise GatewayBusyError(
                    f"{use.running} calls of this {key[0]} are running, which is the limit",
                    hint="Wait for an answer, then send it again.",
                    retry_after=1,
                )
            short = max(_wait(1 - use.calls, calls), _wait(self._excess(use, size), self._most))
            if short > 0:
                raise RateLimitedError(
                    f"this {key[0]} has sent too much within a minute",
                    hint=f"Send it again in {math.ceil(short)} seconds.",
                    retry_after=math.ceil(short),
                )
        for use in uses:
            use.running += 1
            use.calls -= 1
            use.bytes -= size

        def over() -> None:
            for use in uses:
                use.running -= 1

        return over

    def _excess(self, use: _Use, size: int) -> float:
        # What is larger than a minute's bytes would never be taken: it waits for a full bucket.
        return min(size, self._most) - use.bytes

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
            key = next((one for one, use in self._uses.items() if not use.running), None)
            if key is None:
                return
            del self._uses[key]


def _wait(short: float, per_minute: float) -> float:
    """Seconds until so much more may be asked for."""
    return short * _MINUTE / per_minute if short > 0 else 0.0

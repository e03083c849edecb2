"""Counters of a gateway, in memory that its workers share, as Prometheus reads them.

Every worker adds to a part of its own, and whoever is asked tells the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from mmap import mmap
from typing import Final

__all__ = ["Metrics"]

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SECONDS: Final = "filepact_gateway_call_seconds"
_RESTARTS: Final = "filepact_gateway_restarts_total"
_BEATS: Final = ("beats", "")
_BEGUN: Final = ("begun", "")

_COUNTERS: Final = {
    "filepact_gateway_requests_total": (
        "Requests by the class of their answer.",
        tuple(f'status="{one}"' for one in ("2xx", "4xx", "5xx")),
    ),
    "filepact_gateway_calls_total": (
        "Calls of tools by what came of them.",
        tuple(f'outcome="{one}"' for one in ("done", "failed", "unanswered")),
    ),
    "filepact_gateway_refused_total": (
        "Requests that were refused before anything was looked at, by the code.",
        tuple(
            f'code="{one}"'
            for one in (
                *("UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "TOO_MANY_CALLS"),
                *("REQUEST_TOO_LARGE", "SESSION_UNKNOWN", "SHUTTING_DOWN", "other"),
            )
        ),
    ),
    "filepact_gateway_repeated_total": ("Requests answered with what was done before.", ("",)),
    "filepact_gateway_sessions_total": ("Sessions that were opened.", ("",)),
    "filepact_gateway_received_bytes_total": ("Bytes of requests.", ("",)),
    "filepact_gateway_sent_bytes_total": ("Bytes of answers.", ("",)),
    "filepact_gateway_aborted_total": ("Clients that were too slow, and were cut off.", ("",)),
    "filepact_gateway_restarts_total": ("Workers that were started in the place of others.", ("",)),
}
_GAUGES: Final = {
    "filepact_gateway_running_calls": "Calls of tools in flight.",
    "filepact_gateway_connections": "Open connections.",
}
_CELLS: Final = [
    *((name, label) for name, (_, labels) in _COUNTERS.items() for label in labels),
    *((name, "") for name in _GAUGES),
    *((_SECONDS, f'le="{edge:g}"') for edge in _BUCKETS),
    (_SECONDS, "count"),
    (_SECONDS, "sum"),
    _BEATS,
    _BEGUN,
]
_PLACES: Final = {cell: place for place, cell in enumerate(_CELLS)}
_CELL: Final = 8  # bytes of a number
_BUCKET_CELLS: Final = [f'le="{edge:g}"' for edge in _BUCKETS]


class Metrics:
    """The counters.

    Args:
        workers: How many processes add to them; made before they are forked.
    """

    def __init__(self, workers: int = 1) -> None:
        self._cells = memoryview(mmap(-1, len(_CELLS) * _CELL * workers)).cast("d")
        self._workers = workers
        self.worker = 0
        """The part that this process adds to."""

    def add(self, name: str, label: str = "", by: float = 1.0) -> None:
        """Add to a counter or a gauge; what has no place of its own counts as other."""
        place = _PLACES.get((name, label))
        if place is None:
            place = _PLACES[name, 'code="other"']
        self._cells[self.worker * len(_CELLS) + place] += by

    def called(self, seconds: float) -> None:
        """A call of a tool took so long."""
        if seconds <= _BUCKETS[-1]:
            self.add(_SECONDS, _BUCKET_CELLS[bisect_left(_BUCKETS, seconds)])
        self.add(_SECONDS, "count")
        self.add(_SECONDS, "sum", seconds)

    def begin_again(self) -> None:
        """This process is a worker, and may take the place of one that has ended, with what it had in flight."""
        if self._cells[self.worker * len(_CELLS) + _PLACES[_BEGUN]]:
            self.add(_RESTARTS)
        self.add(*_BEGUN)
        for cell in (*((name, "") for name in _GAUGES), _BEATS):
            self._cells[self.worker * len(_CELLS) + _PLACES[cell]] = 0.0

    def beat(self) -> None:
        """The event loop of this worker turns."""
        self.add(*_BEATS)

    def beats(self, worker: int) -> float:
        """How often that of a worker has said so since it began."""
        return self._cells[worker * len(_CELLS) + _PLACES[_BEATS]]

    def value(self, name: str, label: str = "") -> float:
        """The sum of one counter over all workers."""
        return sum(self._cells[_PLACES[name, label] :: len(_CELLS)])

    def text(self) -> str:
        """All of them, as Prometheus reads them."""
        lines: list[str] = []
        for name, (about, labels) in _COUNTERS.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} counter"]
            lines += [
                f"{name}{f'{{{label}}}' if label else ''} {self.value(name, label):.0f}"
                for label in labels
            ]
        for name, about in _GAUGES.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
            lines.append(f"{name} {self.value(name):.0f}")
        lines += [
            f"# HELP {_SECONDS} How long calls of tools take.",
            f"# TYPE {_SECONDS} histogram",
        ]
        below = 0.0
        for edge in _BUCKETS:
            below += self.value(_SECONDS, f'le="{edge:g}"')
            lines.append(f'{_SECONDS}_bucket{{le="{edge:g}"}} {below:.0f}')
        count = self.value(_SECONDS, "count")
        lines.append(f'{_SECONDS}_bucket{{le="+Inf"}} {count:.0f}')
        lines.append(f"{_SECONDS}_sum {self.value(_SECONDS, 'sum'):.6f}")
        lines.append(f"{_SECONDS}_count {count:.0f}")
        return "\n".join(lines) + "\n"

"""Spans and metrics of OpenTelemetry, made of what the audit log is told, so by every door alike.

The package is imported only where a setting asks for it.  What files hold, paths, patterns, reasons and who
somebody is are in none of it: tools, codes, counts, times and ids of changes are.
"""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.metadata import version as installed
from io import TextIOWrapper
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import InvalidParamsError
from filepact.text.secrets import redact
from filepact.values import late_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["Telemetry", "telemetry_of"]

_log = late_logger(__name__)

_NAME: Final = "filepact"
_LONGEST: Final = 60
_OPEN: Final = 1_000  # changes that have begun, and of which no end is known yet
_COUNTED: Final = {"refused": "refusals", "proposed": "proposals", "decided": "decisions"}


def telemetry_of(provider: str, file: BinaryIO | None) -> Telemetry:
    """Telemetry as the settings have it.

    Args:
        provider: ``provider`` for those that this process has set up itself; a path for a file.
        file: The file, open.

    Raises:
        InvalidParamsError: The package is not installed.
    """
    version = installed(_NAME)
    try:
        if provider == "provider" or file is None:
            from opentelemetry.metrics import get_meter_provider  # noqa: PLC0415 - an extra
            from opentelemetry.trace import get_tracer_provider  # noqa: PLC0415 - the same

            return Telemetry(get_tracer_provider(), get_meter_provider(), version)
        return _in_file(file, version)
    except ImportError as error:
        raise InvalidParamsError(
            f"a package for telemetry is missing: {error.name}",
            hint="Remove telemetry in [audit] from your settings, or install filepact's extra `otel`.",
        ) from error


def _in_file(file: BinaryIO, version: str) -> Telemetry:
    from opentelemetry.sdk.metrics import MeterProvider as Meters  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - the same
        ConsoleMetricExporter,
        PeriodicExportingMetricReader,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace import TracerProvider as Tracers  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace.export import (  # noqa: PLC0415 - the same
        BatchSpanProcessor,
        ConsoleSpanExporter,
    )

    def line(made: Any) -> str:
        return f"{json.dumps(json.loads(made.to_json()))}\n"

    out = TextIOWrapper(file, "utf-8", write_through=True)
    about = Resource({"service.name": _NAME, "service.version": version})
    tracers = Tracers(resource=about, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=out, formatter=line)))
    reader = PeriodicExportingMetricReader(ConsoleMetricExporter(out=out, formatter=line))
    meters = Meters([reader], about, shutdown_on_exit=False)

    def close() -> None:
        tracers.shutdown()
        meters.shutdown()
        out.close()

    return Telemetry(tracers, meters, version, close)


class Telemetry:
    """Makes spans and counts.  For all threads; it raises nothing.

    Args:
        tracers: Where spans go.
        meters: Where counts go.
        version: Of filepact.
        close: Sends what is left.
    """

    def __init__(
        self,
        tracers: TracerProvider,
        meters: MeterProvider,
        version: str,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._tracer: Tracer = tracers.get_tracer(_NAME, version)
        meter = meters.get_meter(_NAME, version)
        self._calls = meter.create_counter("filepact.calls", "1", "Calls that are over")
        self._times = meter.create_histogram("filepact.call.duration", "ms", "How long they took")
        self._changes = meter.create_counter("filepact.changes", "1", "Changes that have ended")
        self._others = {
            event: meter.create_counter(f"filepact.{name}", "1") for event, name in _COUNTED.items()
        }
        self._close = close
        self._lock = Lock()
        self._begun: dict[str, tuple[Mapping[str, object], float]] = {}
        self._failed = False

    def record(self, event: str, facts: Mapping[str, object], when: float) -> None:
        """Record an event of the audit log, with its time."""
        try:
            self._record(event, facts, when)
        except Exception:  # noqa: BLE001 - nobody's work stops for this, and it is logged once
            if not self._failed:
                self._failed = True
                _log.exception("telemetry")

    def close(self) -> None:
        """Send what is left."""
        with suppress(Exception):
            self._close()

    def _record(self, event: str, facts: Mapping[str, object], when: float) -> None:
        match event:
            case "call":
                about = {"filepact.tool": _word(facts["tool"]), "filepact.code": str(facts["code"])}
                took = float(str(facts["ms"]))
                self._calls.add(1, about)
                self._times.record(took, about)
                self._span(
                    f"call {about['filepact.tool']}", when - took / 1_000, when, about, facts
                )
            case "intent":
                with self._lock:
                    known = self._begun.setdefault(str(facts["change"]), (facts, when))
                    if known[0] is not facts:  # a later part of a change of very many files
                        more = {**known[0], "files": [*_files(known[0]), *_files(facts)]}
                        self._begun[str(facts["change"])] = (more, known[1])
                    while len(self._begun) > _OPEN:
                        del self._begun[next(iter(self._begun))]
            case "outcome":
                with self._lock:
                    begun = self._begun.pop(str(facts["change"]), None)
                if begun is not None:
                    self._change(*begun, str(facts["state"]), when)
            case "external":
                self._change(facts, when, "external", when)
            case "refused" | "proposed" | "decided":
                said = facts.get("verdict") or facts.get("code")
                self._others[event].add(1, {"filepact.said": str(said)} if said else {})
            case _:
                pass  # what was read is told by its call

    def _change(self, facts: Mapping[str, object], begun: float, state: str, when: float) -> None:
        counted = {"filepact.state": state, "filepact.kind": str(facts.get("kind"))}
        self._changes.add(1, counted)
        about: dict[str, str | bool | int] = {
            **counted,
            "filepact.change": str(facts.get("change")),
            "filepact.tool": _word(facts.get("tool", "")),
            "filepact.approved": bool(facts.get("approved_by")),
            "filepact.files": len(_files(facts)),
        }
        self._span("change", begun, when, about, facts, failed=state not in ("applied", "external"))

    def _span(
        self,
        name: str,
        begun: float,
        ended: float,
        about: Mapping[str, str | bool | int],
        facts: Mapping[str, object],
        *,
        failed: bool = False,
    ) -> None:
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

        session = facts.get("session")
        whose = {"filepact.actor": str(session.get("kind"))} if isinstance(session, dict) else {}
        start, end = int(begun * 1e9), int(ended * 1e9)
        span = self._tracer.start_span(name, attributes={**about, **whose}, start_time=start)
        if failed or about.get("filepact.code", "OK") != "OK":
            span.set_status(Status(StatusCode.ERROR))
        span.end(max(start, end))


def _files(facts: Mapping[str, object]) -> list[object]:
    files = facts.get("files")
    return list(files) if isinstance(files, list) else []


def _word(name: object) -> str:
    """The name of a tool; an agent's own program may call one as it likes."""
    said = redact(str(name))[:_LONGEST]
    return said if said.replace("_", "").replace("/", "").replace("-", "").isalnum() else "other"

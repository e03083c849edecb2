"""Spans and counts of what the audit log is told, and signed heads in a system's log."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.config.settings import parse_settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError, StateFailedError
from filepact.text.signed_note import read_note, split_notes
from filepact.tools.registry import CallContext

sdk = pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402 - where it is installed
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402 - the same
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402 - the same
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402 - the same
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: E402 - the same
    InMemorySpanExporter,
)

from filepact.workspace.telemetry import Telemetry, telemetry_of  # noqa: E402 - with the package

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

AGENT = Session("s", Actor("agent", "planted-agent"))
PERSON = Approval(Actor("person", "planted-anna"), "planted reason")
PLANTED = "ghp_" + "a1B2" * 9


class Collector:
    """Providers that keep what they get."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(self.tracers, self.meters, "1")

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def counts(self) -> dict[str, int]:
        data = self.reader.get_metrics_data()
        found: dict[str, int] = {}
        for resource in data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = metric.data.data_points
                    found[metric.name] = sum(
                        getattr(one, "value", 0) or one.count for one in points
                    )
        return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (made / "planted-name.txt").write_text(f"one\n{PLANTED}\n")
    (made / ".env").write_text("KEY=planted\n")
    return made


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def workspace(root: Path, tmp_path: Path, collector: Collector):
    opened = open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=parse_settings("", name="f")
    )
    with closing(opened):
        opened.audit.telemetry = collector.telemetry
        yield opened


def work(workspace: Workspace) -> None:
    tools = open_toolbox(workspace)
    call = CallContext(AGENT)
    tools.call("read_file", {"path": "planted-name.txt"}, call)
    tools.call(
        "edit_file", {"path": "planted-name.txt", "old_string": "one", "new_string": "2"}, call
    )
    tools.call("read_file", {"path": ".env"}, call)
    tools.call("read_file", {"path": "gone"}, call)
    tools.call("write_file", {"path": ".env.local", "content": "planted\n"}, call)
    for proposal in workspace.pending():
        workspace.reject(proposal.id, PERSON)


def test_calls_and_changes_are_spans_and_all_of_it_is_counted(
    workspace: Workspace, collector: Collector
) -> None:
    work(workspace)
    calls = [one for one in collector.spans if one.name.startswith("call ")]
    told = [(one.attributes["filepact.tool"], one.attributes["filepact.code"]) for one in calls]
    assert told == [
        ("read_file", "OK"),
        ("edit_file", "OK"),
        ("read_file", "PATH_BLOCKED"),
        ("read_file", "NOT_FOUND"),
        ("write_file", "OK"),
    ]
    assert [one.status.is_ok for one in calls] == [True, True, False, False, True]
    (change,) = (one for one in collector.spans if one.name == "change")
    assert change.attributes["filepact.state"] == "applied"
    assert change.attributes["filepact.files"] == 1
    assert change.attributes["filepact.change"] == workspace.log()[0].id
    assert change.start_time <= change.end_time
    counts = collector.counts()
    assert counts["filepact.calls"] == 5
    assert counts["filepact.call.duration"] == 5
    assert counts["filepact.changes"] == 1
    assert counts["filepact.proposals"] == 1
    assert counts["filepact.decisions"] == 1
    assert counts["filepact.refusals"] == 1


def test_no_content_path_reason_or_name_is_in_them(
    workspace: Workspace, collector: Collector, root: Path
) -> None:
    work(workspace)
    audit = workspace.audit
    assert audit is not None
    audit.called(AGENT, f"planted {PLANTED}", PLANTED, "OK", 0.1)
    every = "".join(one.to_json() for one in collector.spans)
    every += collector.reader.get_metrics_data().to_json()
    assert "planted" not in every
    assert PLANTED not in every
    assert str(root) not in every


def test_a_collector_that_breaks_stops_nobody(workspace: Workspace, root: Path) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    assert workspace.audit is not None
    workspace.audit.telemetry._tracer = Broken()  # type: ignore[union-attr, assignment]
    work(workspace)
    assert (root / "planted-name.txt").read_text() == f"2\n{PLANTED}\n"


def test_a_change_that_was_not_begun_or_was_found_is_told_as_such(collector: Collector) -> None:
    telemetry = collector.telemetry
    session = {"kind": "agent"}
    telemetry.record("intent", {"change": "a", "kind": "change", "session": session}, 1.0)
    telemetry.record("intent", {"change": "a", "files": [{}]}, 1.1)
    telemetry.record("outcome", {"change": "a", "state": "rolled_back"}, 2.0)
    telemetry.record("outcome", {"change": "unknown", "state": "applied"}, 2.0)
    telemetry.record("external", {"change": "b", "kind": "change", "files": [{}, {}]}, 3.0)
    telemetry.record("read", {}, 3.0)
    states = [(one.attributes["filepact.state"], one.status.is_ok) for one in collector.spans]
    assert states == [("rolled_back", False), ("external", True)]
    for number in range(1_200):
        telemetry.record("intent", {"change": str(number), "kind": "change"}, 1.0)
    assert len(telemetry._begun) == 1_000
    telemetry.close()


def test_a_file_gets_lines_of_json(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    settings = parse_settings(f'[audit]\ntelemetry = "{file}"\n', name="f")
    with closing(
        open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=settings)
    ) as workspace:
        work(workspace)
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(one.get("name") == "call read_file" for one in found) == 3
    assert any("resource_metrics" in one for one in found)
    assert file.stat().st_mode & 0o777 == 0o600


def test_without_the_setting_nothing_is_made_and_with_it_the_process_own_providers_are_used(
    root: Path, tmp_path: Path
) -> None:
    for told, there in (("", False), ('telemetry = "provider"\n', True)):
        settings = parse_settings(f"[audit]\n{told}", name="f")
        with closing(
            open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=settings)
        ) as workspace:
            assert workspace.audit is not None
            assert (workspace.audit.telemetry is not None) is there
    assert telemetry_of("provider", None) is not None


# -- the system's log -----------------------------------------------------------------------------


@pytest.fixture
def syslog(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "log"))
        listening.settimeout(30)
        yield listening


def test_a_systems_log_is_told_signed_heads_which_can_be_checked(
    root: Path, tmp_path: Path, syslog: socket.socket
) -> None:
    kept = tmp_path / "heads"
    said = f'[audit]\nsyslog = "{tmp_path / "log"}"\nheads = "{kept}"\n'
    settings = parse_settings(said, name="f")
    with closing(
        open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=settings)
    ) as workspace:
        work(workspace)
        assert workspace.audit is not None
        note = workspace.audit.sign()
        line = syslog.recv(65_536).decode()
        assert line.startswith("<85>filepact[")
        assert "\n" not in line
        assert split_notes(f"Nov 24 10:00:00 host {line[4:]}\nanother line\n")[0] == note
        assert kept.read_text() == note
        # One that was started anew is found again.
        syslog.close()
        (tmp_path / "log").unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
            again.bind(str(tmp_path / "log"))
            again.settimeout(30)
            second = workspace.audit.sign()
            assert split_notes(again.recv(65_536).decode()) == [second]
        (tmp_path / "log").unlink()
        with pytest.raises(StateFailedError):
            workspace.audit.sign()
        # So is one that was not there for a while.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as later:
            later.bind(str(tmp_path / "log"))
            later.settimeout(30)
            third = workspace.audit.sign()
            assert split_notes(later.recv(65_536).decode()) == [third]
    (record,) = (
        json.loads(one)
        for one in (tmp_path / "state/audit/000000000001.jsonl").read_text().splitlines()
        if note in json.loads(one).get("note", "")
    )
    assert "filepact-audit" in read_note(note, record["key"])


def test_a_socket_that_takes_nothing_keeps_nobody_from_work_and_is_told_who_signs(
    root: Path, tmp_path: Path
) -> None:
    settings = parse_settings(f'[audit]\nsyslog = "{tmp_path / "none"}"\n', name="f")
    with closing(
        open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=settings)
    ) as workspace:
        work(workspace)
        assert workspace.audit is not None
        with pytest.raises(StateFailedError):
            workspace.audit.sign()


def test_a_line_that_only_looks_like_one_is_no_note() -> None:
    assert split_notes("x audit head {\n") == []
    assert split_notes('x audit head "a\\n"\n') == ["a\n"]


@pytest.mark.parametrize("wrong", ['syslog = "log"', "telemetry = true", 'telemetry = "here"'])
def test_a_wrong_setting_is_refused(wrong: str) -> None:
    with pytest.raises(FilepactError):
        parse_settings(f"[audit]\n{wrong}\n", name="f")

"""The protocol's own suite for servers, `@modelcontextprotocol/conformance`, against `filepact serve` and `filepact mcp`.

Every scenario is either run, or named here with the reason why it says nothing about this server.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway_running import RunningGateway
from tests.hostile.sweeps import often
from tests.node_programs import NodeError, Programs, install
from tests.suites.stdio_bridge import StdioBridge

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parent.parent.parent
SUITE = "@modelcontextprotocol/conformance"

RUN = {
    "2025-06-18": ("server-initialize", "ping", "tools-list"),
    "2025-11-25": (
        *("server-initialize", "ping", "tools-list", "server-sse-multiple-streams"),
        *("server-session-lifecycle", "dns-rebinding-protection"),
    ),
    "2026-07-28": (
        *("server-stateless", "tools-list", "caching", "server-sse-multiple-streams"),
        *("http-header-validation", "dns-rebinding-protection"),
    ),
}

OVER_STDIO = [
    *(("2025-06-18", name) for name in ("server-initialize", "ping", "tools-list")),
    *(("2025-11-25", name) for name in ("server-initialize", "ping", "tools-list")),
    *(("2026-07-28", name) for name in ("server-stateless", "tools-list", "caching")),
]
"""Those that are not about HTTP: the others are about its headers, streams and sessions.  Every other one shows the way."""

FIXTURE = "it calls tools or asks for inputs that only a server made for the suite has"
NOT_OFFERED = "the server offers tools, and no prompts, resources, completions or levels of logging"
NO_RESUMING = "no stream can be gone on with: there is nothing but the answers to requests"
EXTENSION = "an extension that the server does not offer"
LEFT_OUT = {
    "logging-set-level": NOT_OFFERED,
    "completion-complete": NOT_OFFERED,
    "resources-list": NOT_OFFERED,
    "resources-read-text": NOT_OFFERED,
    "resources-read-binary": NOT_OFFERED,
    "resources-templates-read": NOT_OFFERED,
    "resources-subscribe": NOT_OFFERED,
    "resources-unsubscribe": NOT_OFFERED,
    "sep-2164-resource-not-found": NOT_OFFERED,
    "prompts-list": NOT_OFFERED,
    "prompts-get-simple": NOT_OFFERED,
    "prompts-get-with-args": NOT_OFFERED,
    "prompts-get-embedded-resource": NOT_OFFERED,
    "prompts-get-with-image": NOT_OFFERED,
    "tools-call-simple-text": FIXTURE,
    "tools-call-image": FIXTURE,
    "tools-call-audio": FIXTURE,
    "tools-call-embedded-resource": FIXTURE,
    "tools-call-mixed-content": FIXTURE,
    "tools-call-with-logging": FIXTURE,
    "tools-call-error": FIXTURE,
    "tools-call-with-progress": FIXTURE,
    "tools-call-sampling": FIXTURE,
    "tools-call-elicitation": FIXTURE,
    "json-schema-2020-12": FIXTURE,
    "elicitation-sep1034-defaults": FIXTURE,
    "elicitation-sep1330-enums": FIXTURE,
    "input-required-result-*": FIXTURE,
    "server-sse-polling": NO_RESUMING,
    "http-custom-header-server-validation": FIXTURE,
    "sep-2640-skills-*": EXTENSION,
    "tasks-*": FIXTURE,
}

NO_NOTIFICATIONS = "nothing that the server offers ever changes, so there is nothing to listen to"
NOT_APPLICABLE = {
    "sep-2575-server-rejects-undeclared-capability": FIXTURE,
    "sep-2575-missing-capability-http-400": FIXTURE,
    "sep-2575-http-server-no-independent-requests-on-stream": FIXTURE,
    "sep-2575-server-no-log-without-loglevel": FIXTURE,
    "sep-2575-server-sends-subscription-ack": NO_NOTIFICATIONS,
    "sep-2575-server-tags-subscription-id": NO_NOTIFICATIONS,
    "sep-2575-server-honors-notification-filter": NO_NOTIFICATIONS,
    "sep-2549-prompts-list-caching-hints": NOT_OFFERED,
    "sep-2549-resources-list-caching-hints": NOT_OFFERED,
    "sep-2549-resources-templates-list-caching-hints": NOT_OFFERED,
}
"""Checks of scenarios that are run, which fail for a reason that is not ours."""

BY_HTTP = "sep-2575-http-server-"
"""How the names of checks begin that want a status of HTTP, which standard input and output have not."""


@pytest.fixture(scope="module")
def programs() -> Programs:
    try:
        return install("conformance")
    except NodeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    base = tmp_path_factory.mktemp("conformance")
    (base / "root").mkdir()
    (base / "root" / "a.txt").write_text("one\n")
    running = RunningGateway(base, [str(base / "root")])
    yield f"http://{running.address}/mcp"
    assert running.end() == 0


@pytest.fixture(scope="module")
def stdio(tmp_path_factory) -> Iterator[str]:
    base = tmp_path_factory.mktemp("stdio")
    (base / "root").mkdir()
    (base / "root" / "a.txt").write_text("one\n")
    with StdioBridge(["mcp", str(base / "root"), "--state", str(base / "state")]) as bridge:
        yield bridge.url


def suite(programs: Programs, *words: str) -> str:
    command = programs.command(SUITE, "dist/index.js")
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, timeout=270
    )
    return done.stdout + done.stderr


def checks(programs: Programs, url: str, version: str, scenario: str, out: Path) -> list[Any]:
    said = suite(
        programs,
        *("server", "--url", url, "--scenario", scenario, "--spec-version", version),
        *("--output-dir", str(out), "--timeout", "100000"),
    )
    (found,) = out.glob("*/checks.json")
    listed = json.loads(found.read_text())
    assert listed, said
    return listed


def left_out(name: str) -> bool:
    return name in LEFT_OUT or any(
        rule.endswith("*") and name.startswith(rule[:-1]) for rule in LEFT_OUT
    )


@pytest.mark.slow
def test_every_scenario_of_the_suite_is_run_or_left_out_for_a_reason(programs):
    lines = suite(programs, "list", "--server").splitlines()
    listed = {line.split()[1] for line in lines if line.startswith("  - ")}
    run = {scenario for several in RUN.values() for scenario in several}
    assert run <= listed
    assert {name for name in listed - run if not left_out(name)} == set()
    assert not [rule for rule in LEFT_OUT if "*" not in rule and rule not in listed]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "scenario"),
    [(version, scenario) for version, several in RUN.items() for scenario in several],
)
def test_the_server_passes_a_scenario(programs, url, tmp_path, version, scenario):
    found = checks(programs, url, version, scenario, tmp_path)
    failed = {one["id"]: one for one in found if one["status"] == "FAILURE"}
    assert failed.keys() - NOT_APPLICABLE.keys() == set(), failed
    assert any(one["status"] == "SUCCESS" for one in found)
    # A reason that does not hold any more is taken off the list.
    passed = {one["id"] for one in found if one["status"] == "SUCCESS"}
    assert passed & NOT_APPLICABLE.keys() == set()


@pytest.mark.slow
@pytest.mark.parametrize(("version", "scenario"), OVER_STDIO[:: often(2, 1)])
def test_the_server_passes_a_scenario_over_standard_input_and_output(
    programs, stdio, tmp_path, version, scenario
):
    found = checks(programs, stdio, version, scenario, tmp_path)
    found = [one for one in found if not one["id"].startswith(BY_HTTP)]
    failed = {one["id"]: one for one in found if one["status"] == "FAILURE"}
    assert failed.keys() - NOT_APPLICABLE.keys() == set(), failed
    assert any(one["status"] == "SUCCESS" for one in found)


def test_the_reference_names_every_scenario():
    text = (PROJECT / "docs" / "reference" / "mcp.md").read_text()
    run = {scenario for several in RUN.values() for scenario in several}
    assert [name for name in [*run, *LEFT_OUT, *NOT_APPLICABLE] if f"`{name}`" not in text] == []

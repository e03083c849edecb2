"""What the doctor says of language servers."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from filepact.config.settings import Settings
from filepact_cli.wording import with_install_line
from filepact_diagnostics.lsp.builtin import builtin_servers
from filepact_diagnostics.opening import confines_servers
from tests.servers.fakes import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

UNCONFINED = '[guard]\nlandlock = "off"\n'
"""So that servers are not confined, wherever this runs."""


@pytest.fixture
def settings(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's settings file; nothing that is installed on this machine is found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "settings" / "filepact").mkdir(parents=True)
    (cli.root / "a.x").write_text("wrong\n")
    return tmp_path / "settings" / "filepact" / "filepact.toml"


def table(name: str = "fake", orders: dict[str, Any] | None = None, **fields: Any) -> str:
    """A server that behaves as its orders say, as a table of a settings file."""
    command = [sys.executable, "-I", "-S", PROGRAM, json.dumps(orders or {})]
    said = {"command": command, "first": 5, **fields}
    lines = [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    return "\n".join([f"[servers.{name}]", 'files = {"*.x" = "x"}', *lines, ""])


def checks(cli: CommandLine, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """What the doctor finds, by name."""
    return {one["name"]: one for one in cli.json("doctor", *words, code=code)["checks"]}


@pytest.mark.parametrize(("ends", "said"), [(0, "waits"), (1, "not installed")])
def test_a_stand_in_for_a_server_that_is_not_there_is_not_called_installed(
    cli: CommandLine, settings: Path, tmp_path: Path, ends: int, said: str
) -> None:
    program = tmp_path / "bin" / "rust-analyzer"
    program.write_text(f"#!/bin/sh\nexit {ends}\n")
    program.chmod(0o755)
    settings.write_text(UNCONFINED)
    found = checks(cli)["rust-analyzer"]
    assert said in json.dumps(found)


def test_every_known_server_is_told_with_how_to_install_it(
    cli: CommandLine, settings: Path
) -> None:
    found = checks(cli)
    for server in builtin_servers():
        assert found[server.name]["level"] in ("none", "ok")
        if found[server.name]["level"] == "none":
            assert found[server.name]["next"] == (
                f"To install: {with_install_line(server.install)}"
            )
    assert found["ruff"]["level"] == "none"
    said = cli("doctor").out
    assert "none ruff: not installed\n     To install: pip install ruff\n" in said  # app.py is here
    assert "jdtls" not in said
    assert "jdtls" in cli("doctor", "--all").out
    assert said.endswith("All is well.\n")


def test_a_server_that_is_there_is_told_and_not_started_unasked(
    cli: CommandLine, settings: Path
) -> None:
    settings.write_text(table() + table("second"))
    found = checks(cli)
    first, second = found["fake"], found["second"]
    assert (first["level"], first["program"], first["used"]) == ("ok", sys.executable, True)
    assert "*.x" in first["said"]
    assert (second["level"], second["used"]) == ("ok", False)
    assert "fake goes before it" in second["said"]
    assert "version" not in first


def test_servers_are_started_when_asked_and_their_times_told(
    cli: CommandLine, settings: Path
) -> None:
    settings.write_text(table() + table("other", files={}).replace("files = {}\n", ""))
    found = checks(cli, "--servers")["fake"]
    assert found["level"] == "ok"
    assert 0 < found["started_in"] <= found["first_report_in"]
    assert "first diagnostics after" in found["said"]
    assert cli("doctor", "--servers").err == (
        "filepact: starting fake ...\nfilepact: starting other ...\n"
    )
    (cli.root / "a.x").unlink()
    assert "no file here is for it" in checks(cli, "--servers")["fake"]["said"]


@pytest.mark.parametrize(
    ("orders", "first"),
    [({"first_words": "I am no server"}, 1), ({"refuse": True}, 1), ({"hang": True}, 0.1)],
)
def test_a_server_that_fails_is_something_to_look_at_and_no_failure(
    cli: CommandLine, settings: Path, orders: dict[str, Any], first: float
) -> None:
    settings.write_text(table("broken", orders, first=first))
    found = checks(cli, "--servers")["broken"]
    assert found["level"] == "warn"
    assert found["first_report_in"] is None
    assert found["next"]


def test_a_program_that_lies_in_the_folder_is_named_and_not_started(
    cli: CommandLine, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = cli.root / ".venv" / "bin" / "ruff"
    inside.parent.mkdir(parents=True)
    shutil.copy("/bin/true", inside)
    monkeypatch.setenv("PATH", str(inside.parent))
    found = checks(cli, "--servers")["ruff"]
    assert found["level"] == "warn"
    assert str(inside) in found["said"]


def test_the_way_in_which_c_sharp_is_judged_is_told(cli: CommandLine, settings: Path) -> None:
    settings.write_text(table("mine").replace('"*.x" = "x"', '"*.cs" = "csharp"'))
    found = checks(cli)["C#"]
    assert (found["level"], found["server"]) == ("ok", "mine")
    assert "by a language server" in found["said"]
    ours = ("roslyn", "csharp-ls", "filepact-csharp", "csharp-syntax")
    off = "".join(f"[servers.{name}]\nenabled = false\n" for name in ours)
    settings.write_text(off)
    assert checks(cli)["C#"]["level"] == "none"
    # Nobody wants to hear of a language that is not spoken here.
    assert "C#" not in cli("doctor").out
    (cli.root / "a.cs").write_text("class A {}\n")
    assert "C#" in cli("doctor").out
    settings.write_text(off.replace("[servers.csharp-syntax]\nenabled = false\n", ""))
    found = checks(cli)["C#"]
    assert found["level"] == "none" or "form of each file" in found["said"]


def test_nothing_is_started_where_servers_are_switched_off(
    cli: CommandLine, settings: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    settings.write_text('diagnostics = "off"\n' + table(orders={"log": str(log)}))
    assert checks(cli, "--servers")["fake"]["level"] == "ok"
    assert not log.exists()


def test_the_administrator_s_file_counts_before_the_person_s(
    cli: CommandLine, settings: Path, tmp_path: Path
) -> None:
    house = tmp_path / "etc" / "filepact" / "filepact.toml"
    house.parent.mkdir(parents=True)
    house.write_text(f'[diagnostics]\nnew_errors = "deny"\n{table("house")}')
    settings.write_text(f'diagnostics = "off"\n{table("mine")}[servers.house]\nenabled = false\n')
    answer = cli.json("doctor")
    assert answer["diagnostics"]["mode"] == "auto"
    assert answer["diagnostics"]["new_errors"] == "deny"
    names = [one["name"] for one in answer["checks"]]
    assert names.index("mine") < names.index("basedpyright")
    house.write_text("[servers.ruff]\nrole = 1\n")
    wrong = [one for one in cli.json("doctor", code=1)["checks"] if one["level"] == "fail"]
    assert [one["name"] for one in wrong] == ["settings"]
    assert f"{house}, line 2, servers.ruff.role" in wrong[0]["said"]


def test_what_is_in_force_is_told(cli: CommandLine, settings: Path) -> None:
    settings.write_text('[diagnostics]\nnew_errors = "ask"\nbudget = 1\n')
    answer = cli.json("doctor")
    assert answer["diagnostics"] == {
        "mode": "auto",
        "budget": 1.0,
        "new_errors": "ask",
        "receipts": "errors",
        "idle": 600.0,
        "memory": 2048,
    }
    assert 'new_errors = "ask"' in checks(cli)["diagnostics"]["said"]


def test_a_server_by_which_agents_could_reach_what_is_refused_waits_for_trust(
    cli: CommandLine, settings: Path
) -> None:
    settings.write_text(table(risk="discloses") + table("worse", risk="runs") + UNCONFINED)
    found = checks(cli, "--servers")
    for name in ("fake", "worse"):
        assert (found[name]["level"], found[name]["used"]) == ("none", False)
        assert f"filepact trust {name}" in found[name]["next"]
        assert "version" not in found[name]
    settings.write_text(table(risk="discloses", trusted=True) + table("worse", risk="runs"))
    assert checks(cli)["fake"]["used"] is True


@pytest.mark.skipif(not confines_servers(Settings()), reason="this system cannot confine servers")
def test_a_server_that_only_discloses_is_tried_in_a_sandbox(
    cli: CommandLine, settings: Path
) -> None:
    (cli.root / "a.x").write_text("wrong\n")
    settings.write_text(table(risk="discloses"))
    found = checks(cli, "--servers")["fake"]
    assert (found["level"], found["used"], found["confined"]) == ("ok", True, True)
    assert found["first_report_in"] is not None
    shown = cli.json("trust")["servers"]
    assert [(one["server"], one["trusted"], one["confined"]) for one in shown] == [
        ("fake", False, True)
    ]

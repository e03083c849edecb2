"""What `filepact doctor` says of the agents and editors that are here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.faces.cli.doctor import check_agents
from filepact.faces.cli.hosts import own_command

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, and a search path with nothing but one agent's program."""
    for name in ("CODEX_HOME", "COPILOT_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    home, programs = tmp_path / "home", tmp_path / "programs"
    home.mkdir()
    programs.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    (programs / "claude").write_text("#!/bin/sh\n")
    (programs / "claude").chmod(0o755)
    return programs


def level(cli: CommandLine, name: str) -> str:
    """How a check of an agent came out; empty where there is none."""
    found = check_agents(cli.root, ("--state", str(cli.state)))
    return next((one.level for one in found if one.name == f"agent {name}"), "")


def test_an_agent_that_is_installed_and_not_connected_is_told(cli: CommandLine) -> None:
    assert level(cli, "claude") == "none"
    assert level(cli, "codex") == ""


def test_an_agent_whose_own_tools_are_unguarded_is_told(cli: CommandLine) -> None:
    (cli.root / ".mcp.json").write_text('{"mcpServers": {"filepact": {"command": "filepact"}}}')
    assert level(cli, "claude") == "warn"
    cli("setup", "claude-desktop", "--write", "--unattended")
    assert level(cli, "claude-desktop") == "ok"
    (cli.root / ".mcp.json").write_text("{")
    assert level(cli, "claude") == "warn"


def test_a_hook_of_another_command_is_told_and_never_run(cli: CommandLine, tmp_path: Path) -> None:
    cli("setup", "claude", "--write", "--unattended")
    file = cli.root / ".claude" / "settings.local.json"
    file.write_text(file.read_text().replace('"command": "', f'"command": "touch {tmp_path}/ran; '))
    assert level(cli, "claude") == "warn"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["claude", "opencode"])
def test_the_hook_of_an_agent_is_run_and_answers(cli: CommandLine, name: str) -> None:
    settings = Path(os.environ["XDG_CONFIG_HOME"], "filepact", "filepact.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    cli("setup", name, "--write", "--unattended")
    settings.write_text("[hooks\n")
    assert level(cli, name) == "warn"
    settings.write_text("[hooks]\nidle = 1\n")
    for guard in ("own-tools", "only-filepact", "record"):
        cli("setup", name, "--write", "--guard", guard, "--unattended")
        # That it answers is no proof that the agent's program calls it, where that wants trust first.
        assert level(cli, name) == ("ok" if name == "opencode" else "none")
    found = check_agents(cli.root, ("--state", str(cli.state)))
    assert [one.facts["heard"] for one in found if one.name == f"agent {name}"] == [None]


def test_a_hook_that_is_named_by_the_path_is_run_and_answers(
    cli: CommandLine, programs: Path
) -> None:
    settings = Path(os.environ["XDG_CONFIG_HOME"], "filepact", "filepact.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[hooks]\nidle = 1\n")
    (programs / "filepact").symlink_to(own_command()[0])
    cli("setup", "opencode", "--write", "--unattended")
    plugin = cli.root / ".opencode" / "plugin" / "filepact.js"
    assert '["filepact", "hook", "opencode"' in plugin.read_text()
    assert level(cli, "opencode") == "ok"
    (programs / "filepact").unlink()
    assert level(cli, "opencode") == "warn"


def test_when_an_agents_program_has_called_its_hook_is_told(cli: CommandLine) -> None:
    cli("setup", "claude", "--write", "--unattended")
    settings = Path(os.environ["XDG_CONFIG_HOME"], "filepact", "filepact.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[hooks]\nidle = 1\n")
    event = json.dumps({"session_id": "s", "hook_event_name": "SessionStart"})
    words = ["hook", "claude", "--root", str(cli.root), "--state", str(cli.state)]
    subprocess.run(
        [sys.executable, "-P", "-m", "filepact", *words], input=event, text=True, check=True
    )
    deadline = time.monotonic() + 30
    heard = None
    while heard is None:
        assert time.monotonic() < deadline
        found = check_agents(cli.root, ("--state", str(cli.state)))
        (heard,) = (one.facts["heard"] for one in found if one.name == "agent claude")
    assert isinstance(heard, float)
    assert level(cli, "claude") == "ok"


def test_an_agent_that_has_not_called_its_hook_yet_is_named_at_the_end(cli: CommandLine) -> None:
    cli("setup", "codex", "--write", "--unattended")
    settings = Path(os.environ["XDG_CONFIG_HOME"], "filepact", "filepact.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[hooks]\nidle = 1\n")
    done = cli("doctor")
    assert done.code == 0
    assert "codex" in done.out.splitlines()[-1]

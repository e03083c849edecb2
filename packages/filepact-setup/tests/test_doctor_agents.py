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

from filepact.faces.cli import isolated_command
from filepact_setup.checks import check_agents
from filepact_setup.hosts import host_place

if TYPE_CHECKING:
    from filepact_cli.render import CheckResult
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


def check(cli: CommandLine, name: str, folder: Path | None = None) -> CheckResult | None:
    """The check of an agent that is started in a folder; None where there is none."""
    found = check_agents(folder or cli.root, ("--state", str(cli.state)), str(cli.state))
    return next((one for one in found if one.name == f"agent {name}"), None)


def level(cli: CommandLine, name: str) -> str:
    """How it came out; empty where there is none."""
    found = check(cli, name)
    return found.level if found else ""


def unguarded(cli: CommandLine, name: str, folder: Path | None = None) -> object:
    """Whether a session that is started in a folder is said to be unguarded."""
    found = check(cli, name, folder)
    assert found is not None
    return found.facts["unguarded"]


def ends_soon() -> None:
    """Let the daemons of hooks end soon after the test."""
    settings = Path(os.environ["XDG_CONFIG_HOME"], "filepact", "filepact.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[hooks]\nidle = 1\n")


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
    file = Path.home() / ".claude" / "settings.json"
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
    found = check(cli, name)
    assert found is not None
    assert found.facts["heard"] is None


def test_a_hook_that_is_named_by_the_path_is_run_and_answers(
    cli: CommandLine, programs: Path
) -> None:
    ends_soon()
    (programs / "filepact").symlink_to(Path(sys.executable).with_name("filepact"))
    cli("setup", "opencode", "--team", "--write", "--unattended")
    # As somebody else of the team has it, who has not run it.
    plugin = cli.root / ".opencode" / "plugin" / "filepact.js"
    Path(os.environ["XDG_CONFIG_HOME"], "opencode", "plugin", "filepact.js").unlink()
    assert '["filepact", "hook", "opencode"' in plugin.read_text()
    assert level(cli, "opencode") == "ok"
    (programs / "filepact").unlink()
    assert level(cli, "opencode") == "warn"


def test_when_an_agents_program_has_called_its_hook_is_told(cli: CommandLine) -> None:
    cli("setup", "claude", "--write", "--unattended")
    ends_soon()
    event = json.dumps({"session_id": "s", "hook_event_name": "SessionStart"})
    words = ["hook", "claude", "--root", str(cli.root), "--state", str(cli.state)]
    subprocess.run(
        [sys.executable, "-P", "-m", "filepact", *words], input=event, text=True, check=True
    )
    deadline = time.monotonic() + 30
    heard = None
    while heard is None:
        assert time.monotonic() < deadline
        found = check(cli, "claude")
        assert found is not None
        heard = found.facts["heard"]
    assert isinstance(heard, float)
    assert level(cli, "claude") == "ok"


def test_an_agent_that_has_not_called_its_hook_yet_is_named_at_the_end(cli: CommandLine) -> None:
    cli("setup", "codex", "--write", "--unattended")
    ends_soon()
    done = cli("doctor")
    assert done.code == 0
    assert "codex" in done.out.splitlines()[-1]


def test_where_a_session_is_started_is_what_counts(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_soon()
    tree, other = tmp_path / "tree", tmp_path / "other"
    other.mkdir()
    git = ["git", "-C", str(cli.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    add = ("worktree", "add", "-q", "--detach", str(tree))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "s"), add):
        subprocess.run([*git, *words], check=True)
    assert unguarded(cli, "claude")
    cli("setup", "claude", "--write", "--unattended")
    for folder in (cli.root, cli.root / "src", tree):
        assert not unguarded(cli, "claude", folder)
    assert unguarded(cli, "claude", other)
    monkeypatch.chdir(other)
    assert "claude" in cli("doctor").out.splitlines()[-1]
    monkeypatch.chdir(tree)
    assert "claude" in cli("doctor").out.splitlines()[-1]  # not heard of yet
    assert cli.json("doctor")["ok"]


def test_a_projects_own_file_guards_no_session_that_is_started_below_it(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_soon()
    cli("setup", "claude", "--team", "--write", "--unattended")
    (Path.home() / ".claude" / "settings.json").unlink()
    assert not unguarded(cli, "claude")
    assert unguarded(cli, "claude", cli.root / "src")
    monkeypatch.chdir(cli.root / "src")
    last = cli("doctor").out.splitlines()[-1]
    assert "well" not in last
    assert "claude" in last


@pytest.mark.parametrize(
    ("name", "file", "setting"),
    [
        ("claude", "~/.claude/settings.json", {"disableAllHooks": True}),
        ("claude", ".claude/settings.json", {"disableAllHooks": True}),
        ("claude", ".claude/settings.local.json", {"disableAllHooks": True}),
        ("gemini", "~/.gemini/settings.json", {"hooksConfig": {"enabled": False}}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
    ],
)
def test_hooks_that_the_agents_own_setting_has_switched_off_guard_nothing(
    cli: CommandLine, name: str, file: str, setting: dict[str, object]
) -> None:
    ends_soon()
    cli("setup", name, "--write", "--unattended")
    assert not unguarded(cli, name)
    place = host_place(file, cli.root)
    place.parent.mkdir(exist_ok=True)
    held = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps({**held, **setting}))
    assert unguarded(cli, name)
    assert level(cli, name) == "warn"


def test_a_hook_whose_program_is_gone_guards_nothing(cli: CommandLine) -> None:
    cli("setup", "claude", "--write", "--unattended")
    file = Path.home() / ".claude" / "settings.json"
    file.write_text(file.read_text().replace(isolated_command()[0], "/gone/bin/filepact"))
    assert unguarded(cli, "claude")
    assert level(cli, "claude") == "warn"

"""What `filepact setup` writes, read by the real programs: they start our server and call our hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.agents.installed import MissingError, node_program
from tests.agents.model import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_PATIENCE = 120  # seconds for one run


@dataclass(frozen=True, slots=True)
class SetUp:
    """One agent that `filepact setup` is to connect.

    Attributes:
        name: As `filepact setup` calls it.
        package: From npm, with the script in it and the group in which it is pinned.
        words: What follows the program on the command line.
        tool: What it calls a tool of the server, with ``{}`` for the tool's own name.
        write: Its own call that writes the file ``own.txt``.
        writers: Its own tools that write, which are gone when only filepact is left.
        settings: Files that it has already, by path from its home.
        environment: Its variables; ``ADDRESS`` is the model's address, ``HOME`` the home.
    """

    name: str
    package: tuple[str, str, str]
    words: tuple[str, ...]
    tool: str
    write: Call
    writers: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


AGENTS = (
    SetUp(
        name="claude",
        package=("@anthropic-ai/claude-code-linux-x64", "claude", "hosts"),
        words=(
            *("-p", "go", "--model", "claude-sonnet-4-5", "--output-format", "json"),
            *("--allowedTools", "mcp__filepact,Write"),
        ),
        tool="mcp__filepact__{}",
        write=("Write", {"file_path": "ROOT/own.txt", "content": "own"}),
        writers=("Bash", "Edit", "NotebookEdit", "Write"),
        settings={
            # As after its first question: whether the folder and the server are trusted.
            ".claude/settings.json": '{\n  // mine\n  "enabledMcpjsonServers": ["filepact"]\n}\n'
        },
        environment={
            "ANTHROPIC_BASE_URL": "ADDRESS",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CONFIG_DIR": "HOME/.claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
        },
    ),
    SetUp(
        name="codex",
        package=(
            "@openai/codex-linux-x64",
            "vendor/x86_64-unknown-linux-musl/bin/codex",
            "hosts",
        ),
        words=("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust", "go"),
        tool="mcp__filepact.{}",
        write=("exec_command", {"cmd": "printf own > own.txt"}),
        writers=("exec_command", "apply_patch"),
        settings={
            ".codex/config.toml": (
                '# mine\nmodel = "scripted"\nmodel_provider = "scripted"\n'
                'approval_policy = "never"\nsandbox_mode = "danger-full-access" # for the tests\n\n'
                '[model_providers.scripted]\nname = "scripted"\nbase_url = "ADDRESS/v1"\n'
                'wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
            )
        },
        environment={"SCRIPTED_KEY": "none", "CODEX_HOME": "HOME/.codex"},
    ),
    SetUp(
        name="gemini",
        package=("@google/gemini-cli", "bundle/gemini.js", ""),
        words=("-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-o", "json"),
        tool="mcp_filepact_{}",
        write=("write_file", {"file_path": "own.txt", "content": "own"}),
        writers=("write_file", "replace", "run_shell_command"),
        settings={
            ".gemini/settings.json": (
                '{\n  "security": {"auth": {"selectedType": "gemini-api-key"}},\n'
                '  "general": {"disableAutoUpdate": true},\n'
                '  "privacy": {"usageStatisticsEnabled": false},\n'
                '  "telemetry": {"enabled": false}\n}\n'
            )
        },
        environment={
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": "ADDRESS",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    ),
    SetUp(
        name="opencode",
        package=("opencode-linux-x64", "bin/opencode", "agents"),
        words=("run", "go", "--format", "json"),
        tool="filepact_{}",
        write=("write", {"filePath": "ROOT/own.txt", "content": "own"}),
        writers=("write", "edit", "bash"),
        settings={
            ".config/opencode/opencode.json": (
                '{\n  "model": "scripted/scripted",\n  "autoupdate": false,\n  "provider": {\n'
                '    "scripted": {\n      "npm": "@ai-sdk/openai-compatible",\n'
                '      "options": {"baseURL": "ADDRESS/v1", "apiKey": "none"},\n'
                '      "models": {"scripted": {"tool_call": true}}\n    }\n  }\n}\n'
            )
        },
        environment={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    ),
    SetUp(
        name="copilot",
        package=("@github/copilot-linux-x64", "copilot", "hosts"),
        words=("-p", "go", "--allow-all-tools", "--allow-all-paths"),
        tool="filepact-{}",
        write=("create", {"path": "ROOT/own.txt", "file_text": "own"}),
        writers=(),
        environment={
            "COPILOT_PROVIDER_BASE_URL": "ADDRESS/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "scripted",
            "COPILOT_OFFLINE": "true",
            "COPILOT_HOME": "HOME/.copilot",
        },
    ),
)


class Machine:
    """A project, a home and a program `filepact` that notes how it is called."""

    def __init__(self, agent: SetUp, folder: Path) -> None:
        self.agent = agent
        self.root, self.home, self.log = folder / "root", folder / "home", folder / "calls"
        self.root.mkdir(parents=True)
        self.home.mkdir()
        self.log.mkdir()
        (self.root / "a.txt").write_text("what the server reads\n")
        self.program = folder / "bin" / "filepact"
        self.program.parent.mkdir()
        self.program.write_text(
            f"#!{sys.executable}\nimport os, sys, tempfile\nsys.path[:0] = {sys.path!r}\n"
            f"number, _ = tempfile.mkstemp(dir={str(self.log)!r})\n"
            "os.write(number, ' '.join(sys.argv[1:]).encode())\n"
            "from filepact.faces.cli import run\nraise SystemExit(run())\n"
        )
        self.program.chmod(0o755)
        # The process that answers hooks ends soon after the agent.
        settings = self.home / ".config" / "filepact" / "filepact.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text("[hooks]\nidle = 2\n")

    def run(self, words: Sequence[str], url: str = "") -> subprocess.CompletedProcess[str]:
        values = {"ADDRESS": url, "HOME": str(self.home), "ROOT": str(self.root)}
        return subprocess.run(
            words,
            cwd=self.root,
            env={
                "HOME": str(self.home),
                "PATH": f"{self.program.parent}:/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "NO_COLOR": "1",
                "TMPDIR": str(self.home),
                **{name: _filled(one, values) for name, one in self.agent.environment.items()},
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )

    def setup(self, *words: str) -> None:
        done = self.run([str(self.program), "setup", self.agent.name, *words, "--unattended"])
        assert done.returncode == 0, done.stderr

    def settle(self, url: str) -> None:
        """What the agent has in its settings before anything of ours comes in."""
        for name, text in self.agent.settings.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("ADDRESS", url))

    def calls(self) -> list[str]:
        return [one.read_text().strip() for one in self.log.iterdir()]


def _filled(value: object, values: Mapping[str, str]) -> str:
    text = str(value)
    for name, one in values.items():
        text = text.replace(name, one)
    return text


def _of_folder(call: Call, root: Path) -> Call:
    return call[0], json.loads(json.dumps(call[1]).replace("ROOT", str(root)))


@pytest.fixture(params=AGENTS, ids=[one.name for one in AGENTS])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    agent: SetUp = request.param
    try:
        node_program(agent.package[0], agent.package[1], group=agent.package[2])
    except MissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return Machine(agent, tmp_path)


def drive(machine: Machine, script: Sequence[Call], *options: str) -> ScriptedModel:
    """Set the agent up, and let it carry out a script; the model, with what it was shown."""
    package, program, group = machine.agent.package
    with ScriptedModel(list(script)) as model:
        machine.settle(model.url)
        machine.setup("--write", *options)
        command = node_program(package, program, group=group)
        done = machine.run([*command, *machine.agent.words], model.url)
    assert len(model.answers) == len(script), (
        model.tools,
        done.stdout[-3000:],
        done.stderr[-3000:],
    )
    return model


def test_the_program_starts_our_server_and_calls_our_hook(machine: Machine) -> None:
    agent = machine.agent
    read = (agent.tool.format("read_file"), {"path": "a.txt"})
    model = drive(machine, [read, _of_folder(agent.write, machine.root)])
    assert "what the server reads" in model.answers[0][1]
    calls = machine.calls()
    assert any(call.startswith("mcp ") for call in calls)
    # One before and one after each call of a tool, at least.
    assert sum(call.startswith(f"hook {agent.name}") for call in calls) >= 4
    machine.setup("--remove")
    for name in agent.settings:
        assert "filepact" not in (machine.home / name).read_text() or name.endswith("settings.json")


def test_its_own_writers_are_gone_when_only_filepact_is_left(machine: Machine) -> None:
    agent = machine.agent
    if not agent.writers:
        pytest.skip("no settings file can take them away")
    read: Call = (agent.tool.format("read_file"), {"path": "a.txt"})
    # One of its own first, where it does not wait for the server.
    own: list[Call] = [("Read", {"file_path": "a.txt"})] if agent.name == "claude" else []
    model = drive(machine, [*own, read], "--guard", "only-filepact")
    assert not set(agent.writers) & set(model.tools)

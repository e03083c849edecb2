"""Agents that `filepact setup`, or a plugin of ours, is to connect, each with a home of its own."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.agents.model import Call

__all__ = ["AGENTS", "Machine", "SetUp"]

_PATIENCE = 270  # seconds for one run


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
            ".claude/settings.json": '{\n  "enabledMcpjsonServers": ["filepact"]\n}\n'
        },
        environment={
            "ANTHROPIC_BASE_URL": "ADDRESS",
            # With a key it asks its maker's server what is allowed, for 17 seconds at each start without a network.
            "ANTHROPIC_AUTH_TOKEN": "none",
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


_NOTING = """\
import atexit, os, sys, tempfile
words = sys.orig_argv
at = next((n for n, one in enumerate(words) if one.rpartition("/")[2] == "filepact"), len(words))
called = words[at + 1 :]
if called:
    number, _ = tempfile.mkstemp(dir={log!r})
    os.write(number, " ".join(called).encode())
if called[:1] == ["hook"]:
    real = os.dup(1)
    number, _ = tempfile.mkstemp(dir={said!r})
    os.dup2(number, 1)
    atexit.register(lambda: os.write(real, os.pread(1, 1 << 20, 0)))
"""
"""What every process of the installation does first: it notes how it was called, and what a hook answers."""


class Machine:
    """A project, a home and an installation of filepact that notes how it is called, and what a hook answers."""

    def __init__(self, agent: SetUp, folder: Path) -> None:
        self.agent = agent
        self.root, self.home, self.log = folder / "root", folder / "home", folder / "calls"
        self.root.mkdir(parents=True)
        self.home.mkdir()
        self.said = folder / "said"
        self.log.mkdir()
        self.said.mkdir()
        (self.root / "a.txt").write_text("what the server reads\n")
        # An installation of its own, which can be taken away.
        self.installed = folder / "env"
        venv.create(self.installed, symlinks=True)
        (site,) = self.installed.glob("lib/python*/site-packages")
        noting = _NOTING.format(log=str(self.log), said=str(self.said))
        (site / "noting.py").write_text(noting)
        (site / "filepact.pth").write_text("\n".join([*filter(None, sys.path), "import noting\n"]))
        self.program = self.installed / "bin" / "filepact"
        self.program.write_text(
            f"#!{self.program.with_name('python')}\n"
            "from filepact.faces.cli import run\nraise SystemExit(run())\n"
        )
        self.program.chmod(0o755)
        # The process that answers hooks ends soon after the agent.
        settings = self.home / ".config" / "filepact" / "filepact.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text("[hooks]\nidle = 2\n")

    def run(
        self,
        words: Sequence[str],
        url: str = "",
        *,
        answer: str = "",
        cwd: Path | None = None,
        patience: float = _PATIENCE,
    ) -> subprocess.CompletedProcess[str]:
        values = {"ADDRESS": url, "HOME": str(self.home), "ROOT": str(self.root)}
        return subprocess.run(
            words,
            cwd=cwd or self.root,
            env={
                "HOME": str(self.home),
                "PATH": f"{self.program.parent}:/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "NO_COLOR": "1",
                "TMPDIR": str(self.home),
                **{name: _filled(one, values) for name, one in self.agent.environment.items()},
            },
            input=answer,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
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

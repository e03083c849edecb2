"""Agents as programs of MCP: each with one server, `filepact mcp`, and a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.agents.installed import node_program
from tests.agents.model import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["BOUNDED", "HOSTS", "Host", "drive"]

_PATIENCE = 270  # seconds for all of a script


@dataclass(frozen=True, slots=True)
class Host:
    """One agent that calls a server.

    Attributes:
        name: As people call it; also how the tests are named.
        package: From npm.
        script: In the package; one without an ending is run without Node.
        group: Where it is pinned.
        words: What follows the program on the command line.
        tool: What it calls a tool of the server, with ``{}`` for the tool's own name.
        settings: Files in its home, by path; a mapping is written as JSON.
        environment: Its variables besides those that every program has.
        looks_up: Whether servers' tools are not declared, but looked up and called by another tool.

    In all of them ``URL`` is the model's address, ``HOME`` the home, ``PATHS`` where Python looks, and
    ``SERVER`` the words of the server's command; ``PROGRAM`` and ``ARGUMENTS`` are its two parts.
    """

    name: str
    package: str
    script: str
    group: str
    words: tuple[str, ...]
    tool: str
    settings: Mapping[str, object]
    environment: Mapping[str, str] = field(default_factory=dict)
    looks_up: bool = False

    def calls(self, name: str, arguments: dict[str, object]) -> list[Call]:
        """What its model has to call for a tool of the server; the last one answers."""
        tool = self.tool.format(name)
        if not self.looks_up:
            return [(tool, arguments)]
        call: dict[str, object] = {"name": tool, "arguments": arguments}
        return [("tool_search", {"query": f"select:{tool}"}), ("tool_call", call)]

    def command(self) -> list[str]:
        """The words that start it.

        Raises:
            MissingError: It cannot be had here.
        """
        return node_program(self.package, self.script, group=self.group)


HOSTS = (
    # Proprietary; a program that the tests fetch and run, of which nothing is kept.
    Host(
        name="claude-code",
        package="@anthropic-ai/claude-code-linux-x64",
        script="claude",
        group="hosts",
        words=(
            *("-p", "go", "--model", "claude-sonnet-4-5", "--output-format", "json"),
            *("--mcp-config", "HOME/mcp.json", "--strict-mcp-config"),
            *("--allowedTools", "mcp__filepact"),
        ),
        tool="mcp__filepact__{}",
        settings={
            "mcp.json": {"mcpServers": {"filepact": {"command": "PROGRAM", "args": ["ARGUMENTS"]}}}
        },
        environment={
            "ANTHROPIC_BASE_URL": "URL",
            "ANTHROPIC_AUTH_TOKEN": "none",
            "CLAUDE_CONFIG_DIR": "HOME/.claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Otherwise the tools of servers are not declared but have to be looked up.
            "ENABLE_TOOL_SEARCH": "false",
        },
    ),
    Host(
        name="codex",
        package="@openai/codex-linux-x64",
        script="vendor/x86_64-unknown-linux-musl/bin/codex",
        group="hosts",
        words=("exec", "--skip-git-repo-check", "--json", "go"),
        tool="mcp__filepact.{}",
        settings={
            ".codex/config.toml": (
                'model = "scripted"\nmodel_provider = "scripted"\n'
                'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
                '[model_providers.scripted]\nname = "scripted"\nbase_url = "URL/v1"\n'
                'wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
                # Without it the first request does not wait for the server's tools.
                '[mcp_servers.filepact]\nrequired = true\ncommand = "PROGRAM"\nargs = ARGUMENTS\n'
                # Servers get little of its environment.
                '[mcp_servers.filepact.env]\nPYTHONPATH = "PATHS"\n'
            )
        },
        environment={"SCRIPTED_KEY": "none", "CODEX_HOME": "HOME/.codex"},
    ),
    Host(
        name="gemini-cli",
        package="@google/gemini-cli",
        script="bundle/gemini.js",
        group="",
        words=("-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-o", "json"),
        tool="mcp_filepact_{}",
        settings={
            ".gemini/settings.json": {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "mcpServers": {
                    "filepact": {"command": "PROGRAM", "args": ["ARGUMENTS"], "trust": True}
                },
            }
        },
        environment={
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": "URL",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    ),
    Host(
        name="qwen-code",
        package="@qwen-code/qwen-code",
        script="cli.js",
        group="",
        words=("-p", "go", "--approval-mode", "yolo", "-o", "json", "--auth-type", "openai"),
        tool="mcp__filepact__{}",
        settings={
            ".qwen/settings.json": {
                "security": {"auth": {"selectedType": "openai"}},
                "model": {"name": "scripted"},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"disableAutoUpdate": True},
                "mcpServers": {
                    "filepact": {"command": "PROGRAM", "args": ["ARGUMENTS"], "trust": True}
                },
            }
        },
        environment={
            "OPENAI_BASE_URL": "URL/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "scripted",
        },
        looks_up=True,
    ),
    Host(
        name="opencode",
        package="opencode-linux-x64",
        script="bin/opencode",
        group="agents",
        words=("run", "go", "--format", "json"),
        tool="filepact_{}",
        settings={
            ".config/opencode/opencode.json": {
                "model": "scripted/scripted",
                "autoupdate": False,
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": "URL/v1", "apiKey": "none"},
                        "models": {"scripted": {"tool_call": True}},
                    }
                },
                "mcp": {"filepact": {"type": "local", "command": ["SERVER"], "enabled": True}},
            }
        },
        environment={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    ),
)
BOUNDED = tuple(host for host in HOSTS if host.group == "hosts")
"""Those that show a model something else than the text where a result has both."""


def drive(
    host: Host,
    root: Path,
    home: Path,
    script: Sequence[Call],
    *,
    meanwhile: Mapping[int, Callable[[], None]] | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """Let an agent carry out a script on a folder; what its model was shown of each answer.

    Args:
        host: The agent.
        root: The folder.
        home: Where it and the journal are at home; made here.
        script: Tools by their own names, with arguments.
        meanwhile: What a person does before the call of that number.
        options: More words for `filepact mcp`.
    """
    server = [sys.executable, "-m", "filepact", "mcp", str(root)]
    server += ["--state", str(home / "state"), *options]
    command = host.command()
    calls = [host.calls(name, arguments) for name, arguments in script]
    each = len(calls[0])
    home.mkdir()
    acts = {("", number * each): act for number, act in (meanwhile or {}).items()}
    with ScriptedModel([one for group in calls for one in group], acts) as model:
        paths = os.pathsep.join(filter(None, sys.path))
        values = {"URL": model.url, "HOME": str(home), "PATHS": paths}
        for name, content in host.settings.items():
            filled = _filled(content, values, server)
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled if isinstance(filled, str) else json.dumps(filled))
        done = subprocess.run(
            [*command, *(_filled(word, values, server) for word in host.words)],
            cwd=root,
            env={
                "HOME": str(home),
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "NO_COLOR": "1",
                "TMPDIR": str(home),
                "PYTHONPATH": paths,
                **{
                    name: _filled(value, values, server) for name, value in host.environment.items()
                },
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    shown = [_text_in(text) for _tool, text in model.answers[each - 1 :: each]]
    assert len(shown) == len(script), (shown, done.stdout[-2_000:], done.stderr[-2_000:])
    return shown


def _text_in(shown: str) -> str:
    """The text in an answer that an agent puts into an object."""
    try:
        found = json.loads(shown)
    except ValueError:
        return shown
    texts = found.values() if isinstance(found, dict) else [found]
    return "\n".join(text for text in texts if isinstance(text, str)) or shown


def _filled(value: Any, values: Mapping[str, str], server: Sequence[str]) -> Any:
    """A value with the words in capitals replaced."""
    if isinstance(value, str):
        value = value.replace("ARGUMENTS", json.dumps(server[1:])).replace("PROGRAM", server[0])
        for name, text in values.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {name: _filled(one, values, server) for name, one in value.items()}
    if value == ["ARGUMENTS"]:
        return list(server[1:])
    if value == ["SERVER"]:
        return list(server)
    return [_filled(one, values, server) for one in value] if isinstance(value, list) else value

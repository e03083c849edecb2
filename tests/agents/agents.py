"""The agents that tests drive, as data: how each is had, started, set up, and what its tools are."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.agents.installed import node_program, python_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.agents.model import Call

__all__ = ["AGENTS", "BOUNDED", "Agent", "NodePackage", "PythonPackage", "Tool"]


@dataclass(frozen=True, slots=True)
class NodePackage:
    """A script, or a binary, in a package from npm; `large`: of the large form alone."""

    name: str
    script: str
    large: bool = False

    def command(self) -> list[str]:
        return node_program(self.name, self.script, group="agents" if self.large else "")


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A script of an environment made from a file of pinned packages."""

    requirements: str
    script: str
    python: str = ""

    def command(self) -> list[str]:
        return python_program(self.requirements, self.script, python=self.python)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of an agent; its arguments have ``{path}``, ``{content}``, ``{old}``, ``{new}`` or
    ``{command}`` in them.
    """

    name: str
    arguments: Mapping[str, object]

    def call(self, **values: str) -> Call:
        return self.name, _filled(dict(self.arguments), values)


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent.

    Attributes:
        name: As people call it; also how the tests are named.
        version: That is pinned.
        package: Where it comes from.
        read, write, edit, shell: Its tools; not every agent has the last two.
        serve: The calls that use a tool of the server that its client gave it.
        words: What follows the program on the command line.
        settings: Files in its home, by path; a mapping is written as JSON.
        environment: Its variables besides those that every program has.
        protocol: The newest version of the protocol that it speaks.
        reads: Whether its reading tool asks the client for text.
        writes: Whether its writing tools leave it to the client.
        keeps: A folder of its own that it makes in that of the session.

    In settings, variables and words ``{url}`` is the model's address, ``{home}`` the home.
    """

    name: str
    version: str
    package: NodePackage | PythonPackage
    read: Tool
    write: Tool
    edit: Tool | None
    shell: Tool | None
    serve: Callable[[str, dict[str, object]], list[Call]]
    words: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    protocol: int = 1
    reads: bool = True
    writes: bool = True
    keeps: str = ""

    def command(self, home: Path, url: str) -> list[str]:
        """The words that start it, once `prepare` has filled its home."""
        values = {"home": str(home), "url": url}
        return [*self.package.command(), *_filled(list(self.words), values)]

    def prepare(self, home: Path, url: str) -> dict[str, str]:
        """Write its settings into a home, and give the variables to start it with."""
        values = {"home": str(home), "url": url}
        home.mkdir(parents=True, exist_ok=True)
        for name, content in self.settings.items():
            filled = _filled(content, values)
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled if isinstance(filled, str) else json.dumps(filled))
        return {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "XDG_CONFIG_HOME": f"{home}/.config",
            "XDG_DATA_HOME": f"{home}/.local/share",
            "XDG_STATE_HOME": f"{home}/.local/state",
            "XDG_CACHE_HOME": f"{home}/.cache",
            "TMPDIR": str(home),
            **_filled(dict(self.environment), values),
        }

    def change(self, path: str, text: str, old: str, new: str) -> Call:
        """The call that changes a file, of which it has read the text."""
        if self.edit is None:
            return self.write.call(path=path, content=text.replace(old, new))
        return self.edit.call(path=path, old=old, new=new)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """A value with every ``{name}`` in its strings replaced."""
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {name: _filled(one, values) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(one, values) for one in value]
    return value


def _named(pattern: str) -> Callable[[str, dict[str, object]], list[Call]]:
    """Servers' tools are called like its own, under a name made so."""
    return lambda tool, arguments: [(pattern.format(tool), arguments)]


def _looked_up(pattern: str) -> Callable[[str, dict[str, object]], list[Call]]:
    """They are not declared, but looked up and then called through another tool."""

    def serve(tool: str, arguments: dict[str, object]) -> list[Call]:
        name = pattern.format(tool)
        return [
            ("tool_search", {"query": f"select:{name}"}),
            ("tool_call", {"name": name, "arguments": arguments}),
        ]

    return serve


def _in_a_program(pattern: str) -> Callable[[str, dict[str, object]], list[Call]]:
    """They are functions of programs that the model writes."""

    def serve(tool: str, arguments: dict[str, object]) -> list[Call]:
        name = pattern.format(tool)
        code = f"return await tools.{name}({json.dumps(arguments)});"
        return [
            ("search_tool_functions", {"mode": "best_match", "query": tool}),
            ("search_tool_functions", {"mode": "details", "query": tool, "functions": [name]}),
            ("run_typescript", {"code": code}),
        ]

    return serve


_FILE_READ = {"file_path": "{path}"}
_FILE_WRITE = {"file_path": "{path}", "content": "{content}"}
_FILE_EDIT = {"file_path": "{path}", "old_string": "{old}", "new_string": "{new}"}
_OPENAI = {
    "OPENAI_BASE_URL": "{url}/v1",
    "OPENAI_API_KEY": "none",
    "OPENAI_MODEL": "scripted",
}
_ANTHROPIC = {
    "ANTHROPIC_BASE_URL": "{url}",
    "ANTHROPIC_API_KEY": "none",
    "ANTHROPIC_MODEL": "scripted",
    "ANTHROPIC_SMALL_FAST_MODEL": "scripted",
    "CLAUDE_CONFIG_DIR": "{home}/.claude",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    # Otherwise the tools of servers are not declared but have to be looked up.
    "ENABLE_TOOL_SEARCH": "false",
}

AGENTS = (
    Agent(
        name="code-puppy",
        version="0.0.946",
        package=PythonPackage("requirements.txt", "code-puppy"),
        words=("--acp",),
        settings={
            ".config/code_puppy/puppy.cfg": (
                "[puppy]\npuppy_name = p\nowner_name = o\nmodel = scripted\n"
            ),
            ".local/share/code_puppy/extra_models.json": {
                "scripted": {
                    "type": "custom_openai",
                    "name": "scripted",
                    "context_length": 100_000,
                    "custom_endpoint": {"url": "{url}/v1", "api_key": "none"},
                }
            },
        },
        read=Tool("read_file", _FILE_READ),
        write=Tool("create_file", {**_FILE_WRITE, "overwrite": True}),
        edit=Tool(
            "replace_in_file",
            {"file_path": "{path}", "replacements": [{"old_str": "{old}", "new_str": "{new}"}]},
        ),
        shell=Tool("shell", {"command": "{command}"}),
        serve=_named("filepact_{}"),
    ),
    Agent(
        name="gemini-cli",
        version="0.61.0",
        package=NodePackage("@google/gemini-cli", "bundle/gemini.js"),
        words=("--acp", "-m", "gemini-2.5-flash"),
        settings={
            ".gemini/settings.json": {
                "general": {"disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
            }
        },
        environment={
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        },
        read=Tool("read_file", _FILE_READ),
        write=Tool("write_file", _FILE_WRITE),
        edit=Tool("replace", {**_FILE_EDIT, "instruction": "change it"}),
        shell=Tool("run_shell_command", {"command": "{command}", "description": "go"}),
        serve=_named("mcp_filepact_{}"),
        reads=False,
    ),
    Agent(
        name="qwen-code",
        version="0.24.4",
        package=NodePackage("@qwen-code/qwen-code", "cli.js"),
        words=("--acp",),
        settings={
            ".qwen/settings.json": {
                "security": {"auth": {"selectedType": "openai"}},
                "model": {"name": "scripted"},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"disableAutoUpdate": True},
            }
        },
        environment=_OPENAI,
        read=Tool("read_file", _FILE_READ),
        write=Tool("write_file", _FILE_WRITE),
        edit=Tool("edit", _FILE_EDIT),
        shell=Tool("run_shell_command", {"command": "{command}", "is_background": False}),
        serve=_looked_up("mcp__filepact__{}"),
    ),
    Agent(
        name="kimi-code",
        version="2.1.0",
        package=NodePackage("@moonshot-ai/kimi-code", "dist/main.mjs"),
        words=("acp",),
        environment={
            "KIMI_MODEL_NAME": "scripted",
            "KIMI_MODEL_API_KEY": "none",
            "KIMI_MODEL_PROVIDER_TYPE": "openai",
            "KIMI_MODEL_BASE_URL": "{url}/v1",
            "KIMI_CODE_HOME": "{home}/.kimi-code",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        },
        read=Tool("Read", {"path": "{path}"}),
        write=Tool("Write", {"path": "{path}", "content": "{content}"}),
        edit=Tool("Edit", {"path": "{path}", "old_string": "{old}", "new_string": "{new}"}),
        shell=Tool("Bash", {"command": "{command}"}),
        serve=_named("mcp__filepact__{}"),
    ),
    Agent(
        name="claude-agent-acp",
        version="0.100.0",
        package=NodePackage("@agentclientprotocol/claude-agent-acp", "dist/index.js"),
        environment=_ANTHROPIC,
        read=Tool("Read", _FILE_READ),
        write=Tool("Write", _FILE_WRITE),
        edit=Tool("Edit", _FILE_EDIT),
        shell=Tool("Bash", {"command": "{command}", "description": "go"}),
        serve=_named("mcp__filepact__{}"),
        protocol=2,
        reads=False,
        writes=False,
    ),
    Agent(
        name="claude-code-acp",
        version="0.16.2",
        package=NodePackage("@zed-industries/claude-code-acp", "dist/index.js", large=True),
        environment=_ANTHROPIC,
        read=Tool("mcp__acp__Read", _FILE_READ),
        write=Tool("mcp__acp__Write", _FILE_WRITE),
        edit=Tool("mcp__acp__Edit", _FILE_EDIT),
        shell=Tool("Bash", {"command": "{command}", "description": "go"}),
        serve=_named("mcp__filepact__{}"),
    ),
    Agent(
        name="opencode",
        version="1.18.33",
        package=NodePackage("opencode-linux-x64", "bin/opencode", large=True),
        words=("acp",),
        environment={
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_CONFIG_CONTENT": json.dumps(
                {
                    "model": "scripted/scripted",
                    "permission": {"edit": "ask"},
                    "provider": {
                        "scripted": {
                            "npm": "@ai-sdk/openai-compatible",
                            "name": "scripted",
                            "options": {"baseURL": "{url}/v1", "apiKey": "none"},
                            "models": {"scripted": {"name": "scripted"}},
                        }
                    },
                }
            ),
        },
        read=Tool("read", {"filePath": "{path}"}),
        write=Tool("write", {"filePath": "{path}", "content": "{content}"}),
        edit=Tool("edit", {"filePath": "{path}", "oldString": "{old}", "newString": "{new}"}),
        shell=Tool("bash", {"command": "{command}", "description": "go"}),
        serve=_named("filepact_{}"),
        reads=False,
        writes=False,
    ),
    Agent(
        name="fast-agent",
        version="0.10.46",
        package=PythonPackage("fast-agent.txt", "fast-agent-acp", python="python3.12"),
        words=("--config-path", "{home}/fastagent.config.yaml", "--model", "generic.scripted"),
        settings={"fastagent.config.yaml": "generic:\n  api_key: none\n  base_url: {url}/v1\n"},
        read=Tool("read_text_file", {"path": "{path}"}),
        write=Tool("write_text_file", {"path": "{path}", "content": "{content}"}),
        keeps=".fast-agent",
        edit=None,
        shell=None,
        serve=_named("filepact__{}"),
    ),
    Agent(
        name="mistral-vibe",
        version="3.0.2",
        package=PythonPackage("mistral-vibe.txt", "vibe-acp", python="python3.12"),
        settings={
            ".vibe/config.toml": (
                'active_model = "scripted"\nenable_update_checks = false\n'
                "enable_telemetry = false\n\n"
                '[[providers]]\nname = "local"\napi_base = "{url}/v1"\n'
                'api_key_env_var = ""\n\n'
                '[[models]]\nname = "scripted"\nprovider = "local"\nalias = "scripted"\n'
            )
        },
        environment={"VIBE_HOME": "{home}/.vibe"},
        read=Tool("read_file", {"path": "{path}"}),
        write=Tool("write_file", {"path": "{path}", "content": "{content}"}),
        edit=Tool("edit", _FILE_EDIT),
        shell=Tool("bash", {"command": "{command}"}),
        serve=_in_a_program("mcp_filepact.{}"),
        reads=False,
        writes=False,
    ),
)
"""Every agent that `scripts/deep` drives."""

BOUNDED = tuple(one for one in AGENTS[1:5] if one.name != "qwen-code")
"""Those that the test suite drives; the first takes longer to install and to start than all of these, and
Qwen Code, which has come from Gemini CLI, three times as long as that."""

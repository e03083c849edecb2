"""Agents with none but their own tools, whose hooks call `filepact hook`, and a scripted model."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from filepact_hooks.agents import AGENTS
from tests.agents.installed import node_program
from tests.agents.model import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["HOOKED", "Hooked", "drive", "named", "settle"]

_PATIENCE = 270  # seconds for all of a script


@dataclass(frozen=True, slots=True)
class Hooked:
    """One agent, what starts it, and what its own tools are called.

    Attributes:
        name: On the command line of `filepact hook`.
        package: From npm.
        script: In the package; one without an ending is run without Node.
        group: Where it is pinned.
        words: What follows the program on the command line.
        settings: Files in its home, by path; a mapping is written as JSON.
        environment: Its variables besides those that every program has.
        write: Its call that writes a file, by name and text; None where a patch does.
        read: Its call that reads a file.
        edit: Its call that replaces a text in a file.
        run: Its call that runs a command.

    In all of them ``URL`` is the model's address, ``HOME`` the home, and ``HOOK`` the words that call
    `filepact hook`, for a shell; ``HOOKS`` stands for all of its events with it.
    """

    name: str
    package: str
    script: str
    group: str
    words: tuple[str, ...]
    settings: Mapping[str, object]
    environment: Mapping[str, str]
    write: Callable[[str, str], Call]
    read: Callable[[str], Call]
    edit: Callable[[str, str, str], Call]
    run: Callable[[str], Call]
    hooks: Callable[[str], object] = field(default=lambda _command: None)

    def command(self) -> list[str]:
        """The words that start it.

        Raises:
            MissingError: It cannot be had here.
        """
        return node_program(self.package, self.script, group=self.group)


def _claude_hooks(command: str) -> object:
    once = [{"hooks": [{"type": "command", "command": command}]}]
    tools = [{"matcher": "*", **once[0]}]
    return {
        name: tools if moment in ("before", "after") else once
        for name, moment in AGENTS["claude"].events.items()
    }


def _codex_hooks(command: str) -> object:
    return {name: one for name, one in dict(_claude_hooks(command)).items() if name in _CODEX}


_CODEX = {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"}


def _gemini_hooks(command: str) -> object:
    entry = {"type": "command", "command": command, "name": "filepact"}
    return {name: [{"matcher": "*", "hooks": [entry]}] for name in AGENTS["gemini"].events}


def _copilot_hooks(command: str) -> object:
    return {
        name: [{"type": "command", "bash": f"{command} --event {name}", "timeoutSec": 60}]
        for name in AGENTS["copilot"].events
    }


_PLUGIN = """\
import { spawnSync } from "node:child_process"
const ask = (event, session, facts) => {
  const said = spawnSync("sh", ["-c", HOOK + " --event " + event], {
    input: JSON.stringify({ session_id: session, ...facts }),
    encoding: "utf8",
  }).stdout
  if (said && JSON.parse(said).decision === "deny") throw new Error(JSON.parse(said).reason)
}
const call = (input, args) => ({ tool: input.tool, tool_use_id: input.callID, args })
export const Filepact = async ({ directory: cwd }) => ({
  event: async ({ event }) => {
    if (event.type === "session.created") ask(event.type, event.properties.info.id, { cwd })
    if (event.type === "session.idle") ask(event.type, event.properties.sessionID, { cwd })
  },
  "chat.message": async (input) => ask("chat.message", input.sessionID, { cwd }),
  "tool.execute.before": async (input, output) =>
    ask("tool.execute.before", input.sessionID, { cwd, ...call(input, output.args) }),
  "tool.execute.after": async (input) =>
    ask("tool.execute.after", input.sessionID, { cwd, ...call(input, input.args) }),
})
"""


def _opencode_plugin(command: str) -> object:
    return _PLUGIN.replace("HOOK", json.dumps(command))


def _shell(command: str) -> Call:
    return ("exec_command", {"cmd": command})


def _patch(parts: str) -> Call:
    return ("apply_patch", {"input": f"*** Begin Patch\n{parts}\n*** End Patch"})


HOOKED = (
    Hooked(
        name="claude",
        package="@anthropic-ai/claude-code-linux-x64",
        script="claude",
        group="hosts",
        words=(
            *("-p", "go", "--model", "claude-sonnet-4-5", "--output-format", "json"),
            *("--allowedTools", "Write,Edit,Read,Bash"),
        ),
        settings={".claude/settings.json": {"hooks": "HOOKS"}},
        environment={
            "ANTHROPIC_BASE_URL": "URL",
            "ANTHROPIC_AUTH_TOKEN": "none",
            "CLAUDE_CONFIG_DIR": "HOME/.claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        write=lambda path, text: ("Write", {"file_path": path, "content": text}),
        read=lambda path: ("Read", {"file_path": path}),
        edit=lambda path, old, new: (
            "Edit",
            {"file_path": path, "old_string": old, "new_string": new},
        ),
        run=lambda command: ("Bash", {"command": command, "description": "work"}),
        hooks=_claude_hooks,
    ),
    Hooked(
        name="codex",
        package="@openai/codex-linux-x64",
        script="vendor/x86_64-unknown-linux-musl/bin/codex",
        group="hosts",
        words=("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust", "go"),
        settings={
            ".codex/config.toml": (
                # One that it gives its tool for patches.
                'model = "gpt-5.5"\nmodel_provider = "scripted"\n'
                'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
                "[features]\nhooks = true\n"
                '[model_providers.scripted]\nname = "scripted"\nbase_url = "URL/v1"\n'
                'wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
            ),
            ".codex/hooks.json": {"hooks": "HOOKS"},
        },
        environment={"SCRIPTED_KEY": "none", "CODEX_HOME": "HOME/.codex"},
        write=lambda path, text: _patch(f"*** Add File: {path}\n+{text}"),
        read=lambda path: _shell(f"cat {path}"),
        edit=lambda path, old, new: _patch(f"*** Update File: {path}\n@@\n-{old}\n+{new}"),
        run=_shell,
        hooks=_codex_hooks,
    ),
    Hooked(
        name="gemini",
        package="@google/gemini-cli",
        script="bundle/gemini.js",
        group="",
        words=("-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-o", "json"),
        settings={
            ".gemini/settings.json": {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "tools": {"enableHooks": True},
                "hooks": "HOOKS",
            }
        },
        environment={
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": "URL",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        write=lambda path, text: ("write_file", {"file_path": path, "content": text}),
        read=lambda path: ("read_file", {"file_path": path}),
        edit=lambda path, old, new: (
            "replace",
            {"file_path": path, "old_string": old, "new_string": new, "instruction": "change"},
        ),
        run=lambda command: ("run_shell_command", {"command": command, "description": "work"}),
        hooks=_gemini_hooks,
    ),
    Hooked(
        name="copilot",
        package="@github/copilot-linux-x64",
        script="copilot",
        group="hosts",
        words=("-p", "go", "--allow-all-tools", "--allow-all-paths"),
        settings={".copilot/hooks/filepact.json": {"version": 1, "hooks": "HOOKS"}},
        environment={
            "COPILOT_PROVIDER_BASE_URL": "URL/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "scripted",
            "COPILOT_OFFLINE": "true",
            "COPILOT_HOME": "HOME/.copilot",
        },
        write=lambda path, text: ("create", {"path": path, "file_text": text}),
        read=lambda path: ("view", {"path": path}),
        edit=lambda path, old, new: ("edit", {"path": path, "old_str": old, "new_str": new}),
        run=lambda command: ("bash", {"command": command, "description": "work"}),
        hooks=_copilot_hooks,
    ),
    Hooked(
        name="opencode",
        package="opencode-linux-x64",
        script="bin/opencode",
        group="agents",
        words=("run", "go", "--format", "json"),
        settings={
            ".config/opencode/opencode.json": {
                "model": "scripted/scripted",
                "autoupdate": False,
                "permission": {"*": "allow"},
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": "URL/v1", "apiKey": "none"},
                        "models": {"scripted": {"tool_call": True}},
                    }
                },
            },
            ".config/opencode/plugin/filepact.js": "HOOKS",
        },
        environment={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        write=lambda path, text: ("write", {"filePath": path, "content": text}),
        read=lambda path: ("read", {"filePath": path}),
        edit=lambda path, old, new: (
            "edit",
            {"filePath": path, "oldString": old, "newString": new},
        ),
        run=lambda command: ("bash", {"command": command, "description": "work"}),
        hooks=_opencode_plugin,
    ),
)


def drive(
    agent: Hooked,
    root: Path,
    home: Path,
    script: Sequence[Call],
    *,
    meanwhile: Mapping[int, Callable[[], None]] | None = None,
    options: Sequence[str] = (),
    behind: Sequence[str] = (),
    hook: str = "",
    aside: Mapping[str, Sequence[Call]] | None = None,
) -> list[str]:
    """Let an agent carry out a script with its own tools; what its model was shown of each answer.

    Args:
        agent: The agent.
        root: The folder.
        home: Where it and the journal are at home; made here.
        script: Its own calls.
        meanwhile: What a person does before the call of that number.
        options: More words for `filepact hook`.
        behind: Words before the agent's own, such as `filepact run --`; then it has no hooks.
        hook: What its hooks call instead of `filepact hook`.
        aside: Scripts of the agents that it starts itself, by a word in their prompts.
    """
    home.mkdir()
    if not hook:
        paths = os.pathsep.join(filter(None, sys.path))
        hook = f"env PYTHONPATH={paths} {sys.executable} -m filepact hook {agent.name}"
        hook = " ".join([hook, f"--root {root} --state {home / 'state'}", *options])
    acts = {("", number): act for number, act in (meanwhile or {}).items()}
    with ScriptedModel({"": list(script), **(aside or {})}, acts) as model:
        variables = settle(agent, home, model.url, "" if behind else hook)
        done = subprocess.run(
            [*behind, *named(agent, home), *agent.words]
            if behind
            else [*agent.command(), *agent.words],
            cwd=root,
            env={
                **variables,
                "NO_COLOR": "1",
                **(
                    {"FILEPACT_STATE_DIR": str(home / "state")} if behind else {"TMPDIR": str(home)}
                ),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    shown = [text for _tool, text in model.answers]
    assert len(shown) == len(script), (
        shown,
        model.tools,
        done.stdout[-3_000:],
        done.stderr[-3_000:],
    )
    return shown


def settle(agent: Hooked, home: Path, url: str, hook: str = "") -> dict[str, str]:
    """Write an agent's settings into its home; its variables.

    Args:
        agent: The agent.
        home: Its home.
        url: Where its model is.
        hook: What its hooks call; empty for none.
    """
    values = {"URL": url, "HOME": str(home)}
    for name, content in agent.settings.items():
        if not hook and content == "HOOKS":
            continue
        filled = _filled(content, values, agent, hook)
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled if isinstance(filled, str) else json.dumps(filled))
    return {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        **{name: _filled(value, values, agent, "") for name, value in agent.environment.items()},
    }


def named(agent: Hooked, home: Path) -> list[str]:
    """The agent under its own name, as a package's installer puts it on the path."""
    path = home / "bin" / agent.name
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {shlex.join(agent.command())} "$@"\n')
    path.chmod(0o755)
    return [str(path)]


def _filled(value: Any, values: Mapping[str, str], agent: Hooked, hook: str) -> Any:
    if value == "HOOKS":
        return agent.hooks(hook) if hook else {}
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {name: _filled(one, values, agent, hook) for name, one in value.items()}
    return value

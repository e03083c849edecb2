"""Command `setup`: the lines of configuration with which agents and editors start filepact."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.config.person import read_settings, read_trust
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.faces.cli.context import find_context
from filepact.faces.cli.programs import Programs
from filepact.faces.cli.screen import CommandAnswer, TerminalText

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from filepact.faces.cli.screen import Terminal

__all__ = ["Host", "editors", "hosts", "own_command", "render_hosts", "setup"]


@dataclass(frozen=True, slots=True)
class Host:
    """One agent program and what it wants to be told.

    Attributes:
        name: What people type.
        title: What it is called.
        run: A command line that does it all; empty where the program has none.
        file: The settings file, `~` for the home folder, else relative to the project.
        settings: What to put into it.
    """

    name: str
    title: str
    run: str
    file: str
    settings: str


def own_command() -> tuple[str, ...]:
    """The command that starts this installation of filepact from any folder."""
    started = Path(sys.argv[0]).absolute()
    # Beside the interpreter first: the search path may lead to another installation.
    for candidate in (started, Path(sys.executable).with_name("filepact")):
        if candidate.name == "filepact" and os.access(candidate, os.X_OK):
            return (str(candidate),)
    found = shutil.which("filepact")
    return (str(Path(found).absolute()),) if found else (sys.executable, "-P", "-m", "filepact")


def hosts(command: Sequence[str], arguments: Sequence[str]) -> tuple[Host, ...]:
    """The lines for every known host.

    Args:
        command: How to start filepact.
        arguments: What to add to that, such as ``mcp`` and a folder.
    """
    program, rest = command[0], [*command[1:], *arguments]
    words = shlex.join([program, *rest])
    entry = {"command": program, "args": rest}
    shared = _json({"mcpServers": {"filepact": entry}})
    return (
        Host("claude", "Claude Code", f"claude mcp add filepact -- {words}", ".mcp.json", shared),
        Host(
            "codex",
            "Codex",
            f"codex mcp add filepact -- {words}",
            "~/.codex/config.toml",
            # A TOML basic string takes what a JSON string takes.
            f"[mcp_servers.filepact]\ncommand = {json.dumps(program)}\nargs = {json.dumps(rest)}",
        ),
        Host(
            "gemini",
            "Gemini CLI",
            f"gemini mcp add filepact {words}",
            ".gemini/settings.json",
            shared,
        ),
        Host(
            "vscode",
            "VS Code",
            f"code --add-mcp {shlex.quote(json.dumps({'name': 'filepact', **entry}))}",
            ".vscode/mcp.json",
            _json({"servers": {"filepact": {"type": "stdio", **entry}}}),
        ),
        Host("cursor", "Cursor", "", ".cursor/mcp.json", shared),
        Host(
            "zed",
            "Zed",
            "",
            "~/.config/zed/settings.json",
            _json({"context_servers": {"filepact": {"source": "custom", **entry, "env": {}}}}),
        ),
    )


# How agents are called in the settings of Emacs' agent-shell and of CodeCompanion, by the program's name.
_IN_EMACS = {
    "claude-agent-acp": "agent-shell-anthropic-claude-acp-command",
    "claude-code-acp": "agent-shell-anthropic-claude-acp-command",
    "codex-acp": "agent-shell-openai-codex-acp-command",
    "gemini": "agent-shell-google-gemini-acp-command",
    "opencode": "agent-shell-opencode-acp-command",
}
_IN_CODECOMPANION = {
    "claude-agent-acp": "claude_code",
    "claude-code-acp": "claude_code",
    "codex-acp": "codex",
    "gemini": "gemini_cli",
}


def editors(command: Sequence[str], arguments: Sequence[str], agent: str) -> tuple[Host, ...]:
    """The lines for every known editor, to start filepact in an agent's place.

    Args:
        command: How to start filepact.
        arguments: What to add to that: ``acp``, its options, and the agent's own command.
        agent: The agent's program.
    """
    program, rest = command[0], [*command[1:], *arguments]
    name, title = Path(agent).name, f"{Path(agent).name}, guarded"
    entry = {"command": program, "args": rest}
    # A string of Lua or Emacs Lisp takes what one of JSON takes, where nothing is escaped to ASCII.
    words = [json.dumps(word, ensure_ascii=False) for word in (program, *rest)]
    variable = _IN_EMACS.get(name, "agent-shell-google-gemini-acp-command")
    adapter = _IN_CODECOMPANION.get(name, "gemini_cli")
    return (
        Host(
            "zed",
            "Zed",
            "",
            "~/.config/zed/settings.json",
            _json({"agent_servers": {title: {"type": "custom", **entry, "env": {}}}}),
        ),
        Host(
            "jetbrains",
            "JetBrains",
            "",
            "~/.jetbrains/acp.json",
            _json({"agent_servers": {title: {**entry, "env": {}}}}),
        ),
        Host(
            "emacs",
            "Emacs, agent-shell",
            "",
            "~/.emacs.d/init.el",
            f"(setq {variable}\n      '({' '.join(words)}))",
        ),
        Host(
            "codecompanion",
            "Neovim, CodeCompanion",
            "",
            "~/.config/nvim/init.lua",
            f"""require("codecompanion").setup({{
  adapters = {{
    acp = {{
      {adapter} = function()
        return require("codecompanion.adapters").extend("{adapter}", {{
          commands = {{ default = {{ {", ".join(words)} }} }},
        }})
      end,
    }},
  }},
}})""",
        ),
        Host(
            "avante",
            "Neovim, avante",
            "",
            "~/.config/nvim/init.lua",
            f"""require("avante").setup({{
  provider = "guarded",
  acp_providers = {{
    guarded = {{ command = {words[0]}, args = {{ {", ".join(words[1:])} }} }},
  }},
}})""",
        ),
    )


def render_hosts(chosen: Sequence[Host], *, short: bool = False) -> tuple[TerminalText, ...]:
    """The lines for a reader who copies them.

    Args:
        chosen: Which hosts.
        short: Settings only of a host without a command that does it all.
    """
    spans: list[TerminalText] = []
    for host in chosen:
        spans.append(TerminalText(f"{host.title}\n", "title"))
        if host.run:
            spans.append(TerminalText(f"  {host.run}\n"))
            if short:
                continue
        spans.append(TerminalText(f"  {'or ' if host.run else ''}in {host.file}:\n", "dim"))
        spans += [TerminalText(f"    {line}\n") for line in host.settings.splitlines()]
    return tuple(spans)


def setup(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Print the lines; nothing is written but what `csharp` fetches."""
    if arguments.host == "csharp":
        raise SystemExit(_setup_csharp(screen))
    if arguments.host == "acp":
        return _setup_editors(arguments)
    context = find_context(arguments)
    roots = [os.path.normpath(Path(root).expanduser().absolute()) for root in context.roots]
    serving = ["mcp", *roots, *_options(arguments)]
    command = own_command()
    known = hosts(command, serving)
    answer = _answer(
        [*command, *serving], [one for one in known if arguments.host in (None, one.name)]
    )
    held: list[str] = []
    with suppress(FilepactError):  # `doctor` says what is wrong with the settings
        folder = str(Path(roots[0]).resolve())
        from filepact.app import confines_servers  # noqa: PLC0415 - loads the database

        settings, trust = read_settings(arguments.config), read_trust(context.state)
        chosen = settings.agents_servers(trust, confines=confines_servers(settings))
        held = [one.name for one in Programs(roots).waiting(settings.servers, chosen, folder)]
    said = (
        TerminalText(
            "\nThese language servers are installed, and work for agents once you trust them\n"
        ),
        TerminalText(f"here: {', '.join(held)}. "),
        TerminalText("`filepact trust` tells what that means.\n", "dim"),
    )
    return replace(
        answer,
        spans=(*answer.spans, *(said if held else ())),
        facts={**answer.facts, "waiting_for_trust": held},
    )


def _setup_csharp(screen: Terminal) -> int:
    """Run the set-up of the C# language server; returns its exit status."""
    program = Programs(())("filepact-csharp")
    if program is None:
        raise NotFoundError(
            "the program filepact-csharp is not installed",
            hint="Run: pip install 'filepact[csharp]'",
        )
    command = [program, "setup", *(["--json"] if screen.json else [])]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - what the extra installs


def _setup_editors(arguments: Namespace) -> CommandAnswer:
    """The lines for editors, with the agent's program by its whole path where it is found."""
    try:
        agent = shlex.split(arguments.agent)
    except ValueError as error:
        raise InvalidParamsError(f"--agent: {error}") from None
    if not agent:
        raise InvalidParamsError("--agent names no program", hint='--agent "gemini --acp"')
    # An editor that was started from a desktop has another search path than a terminal.
    found = shutil.which(agent[0])
    started = [str(Path(found).absolute()) if found else agent[0], *agent[1:]]
    command, serving = own_command(), ["acp", *_options(arguments), "--", *started]
    return _answer([*command, *serving], editors(command, serving, agent[0]))


def _options(arguments: Namespace) -> list[str]:
    """The options that every command line for a host has."""
    options: list[str] = []
    if arguments.state:
        options += ["--state", find_context(arguments).state]
    if arguments.config:
        options += ["--config", str(Path(arguments.config).expanduser().absolute())]
    return options


def _answer(command: Sequence[str], chosen: Sequence[Host]) -> CommandAnswer:
    return CommandAnswer(
        render_hosts(chosen),
        {
            "command": list(command),
            "hosts": [
                {
                    "host": host.name,
                    "title": host.title,
                    "run": host.run,
                    "file": host.file,
                    "settings": host.settings,
                }
                for host in chosen
            ],
        },
    )


def _json(value: object, depth: int = 1) -> str:
    """JSON as people write settings: an object over several lines, a list on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    inner, outer = "  " * depth, "  " * (depth - 1)
    entries = (f"{inner}{json.dumps(name)}: {_json(one, depth + 1)}" for name, one in value.items())
    return "{\n" + ",\n".join(entries) + f"\n{outer}}}"

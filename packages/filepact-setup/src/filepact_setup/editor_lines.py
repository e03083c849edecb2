"""The lines that make editors start an agent behind filepact: what `filepact setup acp` prints."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError
from filepact.faces.cli import isolated_command
from filepact.values import dataclass
from filepact_cli.context import find_context
from filepact_cli.screen import CommandAnswer, TerminalText
from filepact_setup.hook_command import check_lasting, entry_options

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

__all__ = ["EditorLines", "agent_command", "editors", "lines_for_editors"]


@dataclass(frozen=True, slots=True)
class EditorLines:
    """The settings by which an editor starts an agent behind filepact.

    Attributes:
        name: What programs call it.
        title: What it is called.
        file: The settings file, ``~`` for the home folder.
        settings: What to put into it.
    """

    name: str
    title: str
    file: str
    settings: str


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


def editors(
    command: Sequence[str], arguments: Sequence[str], agent: str
) -> tuple[EditorLines, ...]:
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
    # What these three do with a file that is open in them loses what was typed, stops, or asks about every change.
    without = [*rest[: rest.index("--")], "--no-editor-files", *rest[rest.index("--") :]]
    words = [json.dumps(word, ensure_ascii=False) for word in (program, *without)]
    variable = _IN_EMACS.get(name, "agent-shell-google-gemini-acp-command")
    adapter = _IN_CODECOMPANION.get(name, "gemini_cli")
    return (
        EditorLines(
            "zed",
            "Zed",
            "~/.config/zed/settings.json",
            _json({"agent_servers": {title: {"type": "custom", **entry, "env": {}}}}),
        ),
        EditorLines(
            "jetbrains",
            "JetBrains",
            "~/.jetbrains/acp.json",
            _json({"agent_servers": {title: {**entry, "env": {}}}}),
        ),
        EditorLines(
            "emacs",
            "Emacs, agent-shell",
            "~/.emacs.d/init.el",
            f"(setq {variable}\n      '({' '.join(words)}))",
        ),
        EditorLines(
            "codecompanion",
            "Neovim, CodeCompanion",
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
        EditorLines(
            "avante",
            "Neovim, avante",
            "~/.config/nvim/init.lua",
            f"""require("avante").setup({{
  provider = "guarded",
  acp_providers = {{
    guarded = {{ command = {words[0]}, args = {{ {", ".join(words[1:])} }} }},
  }},
}})""",
        ),
    )


def _json(value: object, depth: int = 1) -> str:
    """JSON as people write settings: an object over several lines, a list on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    inner, outer = "  " * depth, "  " * (depth - 1)
    entries = (f"{inner}{json.dumps(name)}: {_json(one, depth + 1)}" for name, one in value.items())
    return "{\n" + ",\n".join(entries) + f"\n{outer}}}"


def agent_command(words: str) -> list[str]:
    """The command of an agent, its program by its whole path where it is found.

    Raises:
        InvalidParamsError: There is none in it.
    """
    try:
        agent = shlex.split(words)
    except ValueError as error:
        raise InvalidParamsError(f"--agent: {error}") from None
    if not agent:
        raise InvalidParamsError("--agent names no program", hint='--agent "gemini --acp"')
    # An editor that was started from a desktop has another search path than a terminal.
    found = shutil.which(agent[0])
    return [str(Path(found).absolute()) if found else agent[0], *agent[1:]]


def lines_for_editors(arguments: Namespace) -> CommandAnswer:
    """The lines for editors that start agents."""
    agent = agent_command("gemini --acp" if arguments.agent is None else arguments.agent)
    context = find_context(arguments)
    command, serving = (
        isolated_command(),
        ["acp", *entry_options(arguments, context.state), "--", *agent],
    )
    check_lasting(command)
    chosen = editors(command, serving, agent[0])
    spans: list[TerminalText] = []
    for one in chosen:
        spans.append(TerminalText(f"{one.title}\n", "title"))
        spans.append(TerminalText(f"  in {one.file}:\n", "dim"))
        spans += [TerminalText(f"    {line}\n") for line in one.settings.splitlines()]
    return CommandAnswer(
        tuple(spans),
        {
            "command": [*command, *serving],
            "hosts": [
                {"host": one.name, "title": one.title, "file": one.file, "settings": one.settings}
                for one in chosen
            ],
        },
    )

"""The command lines that hosts run: as they are written, and as they are known again in a file.

That of a hook checks for its own program.  Where that is gone, or cannot be run, a call is refused before it is made;
at other events nothing is said, since a host may take a refusal there for a wish to go on.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import NotFoundError
from filepact.values import late_regex
from filepact_cli.wording import source

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

__all__ = [
    "EXIT",
    "GONE",
    "NAMED",
    "check_lasting",
    "command_lines",
    "entry_options",
    "filled",
    "hook_lines",
    "hook_text",
    "is_hook",
    "with_paths_emptied",
]

NAMED: Final = ("filepact",)
"""The command as it is written where a team reads it: no path of one machine."""

GONE: Final = "filepact is gone: install it again, or remove its hooks: {path}"
EXIT: Final = """{ [ $? = 2 ] || echo "{gone}" >&2; exit 2; }"""
"""An exit code of 2 is a refusal; what filepact itself ends with so has said why."""

_PATHS: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""What a Python that is started by name goes by; emptied, it imports nothing that lies in a project."""

_HOOK: Final = late_regex(
    r"filepact\S*\s(?:.*\s)?hook (?:claude|codex|gemini|copilot|cursor)(?:[\s;]|$)"
)


_CACHES: Final = ("/.cache/", "/Library/Caches/", "/uv/archive-v0/", "/pipx/.cache/")


def is_hook(item: object) -> bool:
    """Whether an item of a list of hooks runs `filepact hook`, of whichever version, and nothing else."""
    lines = command_lines(item)
    return bool(lines) and all(_HOOK.search(line) for line in lines)


def hook_lines(items: object) -> list[str]:
    """The command lines in a list of hooks that run `filepact hook`."""
    return [line for line in command_lines(items) if _HOOK.search(line)]


def command_lines(item: object) -> list[str]:
    """The command lines in an item of a list of hooks."""
    if isinstance(item, list):
        return [line for one in item for line in command_lines(one)]
    if not isinstance(item, dict):
        return []
    own = [one for key, one in item.items() if key in ("command", "bash") and isinstance(one, str)]
    return own + [line for one in item.values() for line in command_lines(one)]


def hook_text(words: Sequence[str]) -> str:
    """The command that a host's hooks run, for a shell; found by its name it is none of the project's own."""
    text = shlex.join(words)
    if words[0] != NAMED[0]:
        return text
    inside = '"${CLAUDE_PROJECT_DIR:-$PWD}"' if "claude" in words else '"$PWD"'
    emptied = " ".join(f"{name}=" for name in _PATHS)
    none = 'echo "No filepact is on the PATH outside of this project." >&2; false'
    return (
        f'case $(command -v filepact) in {inside}/*|[!/]*|"") {none};; *) {emptied} {text};; esac'
    )


def filled(value: Any, words: Mapping[str, str], arguments: Sequence[str] = ()) -> Any:
    """A value with words put in for what stands for them, and ``arguments`` into its lists."""
    if isinstance(value, dict):
        return {key: filled(one, words, arguments) for key, one in value.items()}
    if isinstance(value, list):
        lists = [
            list(arguments)
            if one == "{arguments}" and arguments
            else [filled(one, words, arguments)]
            for one in value
        ]
        return [one for each in lists for one in each]
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(name, word)
    return value


def with_paths_emptied(value: Any) -> Any:
    """A value in which every server that is started by name gets these variables empty."""
    if not isinstance(value, dict):
        return value
    command = value.get("command")
    if command == NAMED[0] and "args" in value:
        return {**value, "env": dict.fromkeys(_PATHS, "")}
    if isinstance(command, list) and command[:1] == [NAMED[0]]:
        return {**value, "environment": dict.fromkeys(_PATHS, "")}
    return {key: with_paths_emptied(one) for key, one in value.items()}


def check_lasting(command: Sequence[str]) -> None:
    """Refuse a program that the next clean-up of a cache takes away.

    Raises:
        NotFoundError: It lies in one.
    """
    named = [os.environ.get(name, "") for name in ("UV_CACHE_DIR", "XDG_CACHE_HOME")]
    caches = (*_CACHES, *(f"{Path(one).absolute()}/" for one in named if one))
    for place in (command[0], os.path.realpath(command[0])):
        if any(cache in place for cache in caches):
            raise NotFoundError(
                f"{command[0]} lies in a cache and goes when that is emptied, as with uvx and pipx run",
                hint=f"Install it to stay, and run this again: uv tool install {source()}",
            )


def entry_options(arguments: Namespace, state: str) -> tuple[str, ...]:
    """The options that every command line for a host has: what this one was told, or its variables."""
    options: list[str] = []
    if arguments.state or os.environ.get("FILEPACT_STATE_DIR"):
        options += ["--state", state]
    config = arguments.config or os.environ.get("FILEPACT_CONFIG")
    if config:
        options += ["--config", str(Path(config).expanduser().absolute())]
    return tuple(options)

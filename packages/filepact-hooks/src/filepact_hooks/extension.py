"""What the package adds to filepact: the command `hook`, and what tells hooks at the end of a turn which errors it has left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from filepact_cli.parser import CommandGroup
    from filepact_hooks.turn_errors import TurnErrors, TurnSummary

__all__ = ["EXTENSION"]


def _add_commands(group: CommandGroup) -> None:
    add = group.add(
        "hook",
        "filepact_hooks.client:answer",
        "answer one hook event of an agent; agents call this, not people",
        "filepact hook claude < event.json",
        "Reads one event from standard input and prints the answer in the agent's format. The exit code is 0, or 2 for a call that cannot be refused in another way.",
        place=("servers and teams", "last"),
    )
    agents = ("claude", "codex", "gemini", "opencode", "copilot", "cursor")
    add("agent", metavar="AGENT", choices=agents, help=f"{', '.join(agents[:-1])} or {agents[-1]}")
    add("--event", metavar="NAME", default="", help="the event, if the input does not name it")
    add(
        "--strict",
        dest="mode",
        action="store_const",
        const="strict",
        help="also refuse a call that cannot be recorded",
    )
    add(
        "--record",
        dest="mode",
        action="store_const",
        const="record",
        help="record what changes, and refuse nothing",
    )
    said = "say nothing in folders that were not set up"
    add("--where-set-up", action="store_true", help=said)


def _open_turn_errors(summary: TurnSummary) -> TurnErrors:
    from filepact_hooks.turn_errors import TurnErrors  # noqa: PLC0415 - where there are servers

    return TurnErrors(summary)


EXTENSION: Final = Extension(
    "hooks", add_commands=_add_commands, open_turn_errors=_open_turn_errors
)

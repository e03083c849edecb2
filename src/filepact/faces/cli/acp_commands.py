"""The commands for the Agent Client Protocol."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filepact.faces.cli.group import Group

__all__ = ["add_acp_commands"]


def add_acp_commands(group: Group) -> None:
    """Add them, in the order in which the help shows them."""
    _add_proxy(group)
    _add_check(group)


def _add_proxy(group: Group) -> None:
    add = group.add(
        "acp",
        "acp:acp",
        "stand between an editor and an agent that speak the Agent Client Protocol",
        "filepact acp -- gemini --acp",
        "Put `filepact acp --` before the agent's command in the editor's settings. Files that the "
        "agent asks for are guarded and recorded, the agent gets the seven tools as well, and "
        "everything else passes as it is. The editor's folders count; --root narrows them. Without "
        "an agent it takes its place in a chain of proxies, when a conductor starts it.",
    )
    add("agent", metavar="AGENT", nargs="*", help="the agent's command, after `--`")
    add(
        "--mode",
        choices=("auto", "preview"),
        default="auto",
        help="auto: do what the rules allow; preview: ask the person about every change (default: auto)",
    )
    add(
        "--explain",
        action="store_true",
        help="say which doors agents use; with an agent, start it, ask who it is, and end it",
    )
    add("--no-tools", action="store_true", help="do not give the agent the seven tools")
    add(
        "--no-watch",
        action="store_true",
        help="do not look for what the agent writes by itself, past the protocol",
    )
    add(
        "--patience",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        help="how long the editor may take to say what it shows of a file; then the request fails "
        "and nothing is written (default: 30)",
    )


def _add_check(group: Group) -> None:
    add = group.add(
        "acp-check",
        "acp_check:acp_check",
        "check how a client of the Agent Client Protocol serves files",
        "filepact acp-check -- my-client --agent {agent}",
        "Starts the client in a folder of its own; the agent that the client starts from there "
        "runs the checks. {agent} stands for the agent's command line as one word, {agent...} for "
        "its words; without either they are put at the end. The exit code is 1 if the client "
        "lacks something that the protocol demands.",
    )
    add("client", metavar="CLIENT", nargs="*", help="the client and its arguments, after --")
    add(
        "--at",
        choices=("prompt", "session"),
        default="prompt",
        help="when the checks begin: at the client's first prompt, or as soon as it has opened a "
        "session (default: prompt)",
    )
    add(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        help="how long the client may take until then; without a prompt the checks begin after "
        "that time (default: 30)",
    )
    add(
        "--patience",
        metavar="SECONDS",
        type=_seconds,
        default=5.0,
        help="how long one check may take (default: 5)",
    )
    add(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="only this check, or the checks of this group; may be given several times",
    )
    add(
        "--say",
        metavar="LINE",
        action="append",
        default=[],
        help="a line for the client's standard input, such as a prompt; may be given several times",
    )
    add("--strict", action="store_true", help="what is only advised counts for the exit code too")
    add("--list", action="store_true", help="list the checks and run none")
    add("--agent", metavar="DIR", help=argparse.SUPPRESS)


def _seconds(text: str) -> float:
    """A span of time above 0."""
    seconds = float(text)
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is no span between 0 and 86400")
    return seconds


_seconds.__name__ = "number"

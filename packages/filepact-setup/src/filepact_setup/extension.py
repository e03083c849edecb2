"""What the package adds to filepact: the commands `setup` and `tour`, and what `filepact doctor` says of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from pathlib import Path

    from filepact_cli.parser import CommandGroup
    from filepact_cli.render import CheckResult

__all__ = ["EXTENSION"]

_PLACE: Final = ("set up", "first")


def _add_commands(group: CommandGroup) -> None:
    from filepact_cli.parser import add_dry_run, add_unattended  # noqa: PLC0415 - the command line is there by then

    add = group.add(
        "setup",
        "filepact_setup.command:setup",
        "connect agents and editors to filepact, in their own settings files",
        "filepact setup claude --write",
        "Shows the changes to the settings of one or more agents; --write makes them. Without a name, lists the agents "
        "found here and how each is connected. Names are claude, codex, gemini, opencode, copilot, vscode, cursor, "
        "zed, windsurf, cline and claude-desktop. With acp, prints the lines that make an editor start its agents "
        "behind filepact.",
        place=_PLACE,
        answers="hosts; of a host that is named: written, command, hosts, files, notes, waiting_for_trust",
    )
    add("hosts", metavar="HOST", nargs="*", help="agent or editor, by its name; or acp")
    add("--write", action="store_true", help="write the files; the old contents are kept")
    add("--remove", action="store_true", help="remove what setup has added")
    add(
        "--guard",
        choices=("own-tools", "only-filepact", "record"),
        help="own-tools: hooks check each call of the agent's own tools against the rules, and record it; "
        "only-filepact: the same, and the agent's own writing tools are switched off; record: hooks only record, and "
        "refuse nothing (default: own-tools where the agent has hooks)",
    )
    said = "put the hooks into the project's files as well, which a team shares"
    add("--team", action="store_true", help=said)
    add(
        "--agent",
        metavar="COMMAND",
        help="with acp, or zed: the command that starts the agent (default with acp: gemini --acp)",
    )
    add_dry_run(add)
    add_unattended(add)
    add = group.add(
        "tour",
        "filepact_setup.tour:tour",
        "see filepact at work: a real server, a real client, and undo",
        "filepact tour",
        "Works on a small made-up project, or on a copy of DIR.",
        place=_PLACE,
        answers="ok, steps, kept",
    )
    add("directory", metavar="DIR", nargs="?", help="folder to copy and use")
    add("--keep", action="store_true", help="keep the temporary folders")


def _check_hosts(folder: Path, arguments: Namespace, state: str) -> Iterator[CheckResult]:
    from filepact_setup.checks import check_agents  # noqa: PLC0415 - only the doctor asks
    from filepact_setup.hook_command import entry_options  # noqa: PLC0415 - with it

    return check_agents(folder, entry_options(arguments, state), state)


def _has_hooks(agent: str, state: str) -> bool:
    from filepact_setup.host_files import read_record  # noqa: PLC0415 - few programs have hooks
    from filepact_setup.hosts import HOSTS  # noqa: PLC0415 - the same

    events = next(host.hooks for host in HOSTS if host.name == agent)
    place = "" if events is None else events.path.lstrip("~")
    return any(path.endswith(place) for path in read_record(state))


EXTENSION: Final = Extension(
    "setup",
    add_commands=_add_commands,
    check_hosts=_check_hosts,
    has_hooks=_has_hooks,
)

"""The commands that say how things stand: status in a few lines, doctor check by check."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from filepact.app import read_trust
from filepact.config.person import read_settings
from filepact.errors import FilepactError
from filepact.faces.cli.checks import (
    CheckResult,
    check_folders,
    check_guard,
    check_journal,
    check_programs,
    check_room,
    check_settings,
    check_state,
    check_wall,
)
from filepact.faces.cli.place import find_place, opened
from filepact.faces.cli.render import age, count, listed, size
from filepact.faces.cli.screen import DONE, FAILED, CommandAnswer, TerminalText
from filepact.faces.cli.servers import check_servers

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.config.settings import Settings
    from filepact.faces.cli.screen import Style, Terminal

__all__ = ["doctor", "status"]

_STYLES: dict[str, Style] = {"ok": "good", "none": "dim", "warn": "warn", "fail": "bad"}


def status(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """What is used here, and what happened last."""
    place = find_place(arguments)
    with opened(arguments, place) as workspace:
        figures = workspace.statistics()
        waiting = workspace.pending()
        newest = workspace.log(limit=1)
        now = time.time()
        rows = [
            ("root", f"{root.path}  (resolver {root.resolver})") for root in workspace.guard.roots
        ]
        rows[0] = (rows[0][0], f"{rows[0][1]}  by {place.origin}")
        kept = f", undo reaches back {age(figures.oldest, now)}" if figures.oldest else ""
        rows += [
            ("state", place.state),
            ("mode", f"{workspace.mode} for this command; a server has its own"),
            (
                "journal",
                f"{size(figures.bytes_on_disk)}, {count(figures.operations, 'operation')}{kept}",
            ),
            ("pending", f"{len(waiting)} here, {figures.proposals} in all"),
        ]
        spans = [
            span
            for name, value in rows
            for span in (TerminalText(f"{name:<9}", "dim"), TerminalText(f"{value}\n"))
        ]
        spans.append(TerminalText("last     ", "dim"))
        last, known_last = listed(workspace, newest)
        spans += last or [TerminalText("nothing yet\n")]
        known = {
            "roots": [
                {"path": root.path, "resolver": root.resolver} for root in workspace.guard.roots
            ],
            "origin": place.origin,
            "state": place.state,
            "mode": workspace.mode,
            "operations": figures.operations,
            "pending": len(waiting),
            "pending_in_all": figures.proposals,
            "journal_bytes": figures.bytes_on_disk,
            "last": known_last[0] if known_last else None,
        }
    return CommandAnswer(tuple(spans), known)


def doctor(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Check everything that can be checked without changing anything."""
    place = find_place(arguments)
    files = list(check_settings(arguments.config, place.roots))
    found = [*check_programs(), *files, *check_state(place.state), *check_room(place.state)]
    with suppress(FilepactError):  # What nobody can open is told below.
        found += check_journal(place.state, screen.patience())
    settings: Settings | None = None
    # With a settings file that is wrong nothing opens, and that has been said.
    if all(one.level != "fail" for one in files):
        try:
            settings = read_settings(arguments.config)
            found.append(check_guard(settings.guard))
            with opened(arguments, place) as workspace:
                found += check_folders(workspace)
                found.append(check_wall(workspace, place.state, settings.guard.landlock))
                found += check_servers(
                    workspace,
                    settings,
                    read_trust(place.state),
                    start=arguments.servers,
                    tell=screen.progress,
                )
        except FilepactError as error:
            found.append(CheckResult("workspace", "fail", error.message, error.hint))
    spans: list[TerminalText] = []
    for one in found:
        spans += [
            TerminalText(f"{one.level:<5}", _STYLES[one.level]),
            TerminalText(f"{one.name}: {one.said}\n"),
        ]
        if one.next:
            spans.append(TerminalText(f"     {one.next}\n", "dim"))
    failed = sum(one.level == "fail" for one in found)
    warned = sum(one.level == "warn" for one in found)
    spans.append(
        TerminalText(
            f"\n{failed} failed, {warned} to look at.\n" if failed or warned else "\nAll is well.\n"
        )
    )
    return CommandAnswer(
        tuple(spans),
        {
            "ok": not failed,
            "guard": None if settings is None else asdict(settings.guard),
            "diagnostics": None if settings is None else asdict(settings.diagnosing),
            "checks": [
                {"name": one.name, "level": one.level, "said": one.said, "next": one.next}
                | dict(one.facts)
                for one in found
            ],
        },
        FAILED if failed else DONE,
    )

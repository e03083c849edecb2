"""Commands `store ...`: the database that the journal is kept in, where the settings name one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.app import state_user
from filepact.config.person import read_settings, state_folder
from filepact.errors import InvalidParamsError, StateFailedError
from filepact.fs.state import open_state
from filepact.values import asdict
from filepact_cli.render import count
from filepact_cli.screen import DONE, FAILED, NOTHING, CommandAnswer, TerminalText, plain
from filepact_cli.wording import size
from filepact_fleet.postgres_upkeep import StoreDatabase

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from filepact_cli.screen import Terminal
    from filepact_fleet.databases import StoreStatus

__all__ = ["copy", "migrate", "prune", "status"]


def status(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Say what the database is, and whether its tables are those of this program."""
    found = _named(arguments).status()
    well = found.tables == found.newest
    return CommandAnswer(tuple(_told(found)), asdict(found), DONE if well else FAILED)


def _told(found: StoreStatus) -> Iterator[TerminalText]:
    yield from _row("server", f"PostgreSQL {found.server}{', which only reads' * found.standby}")
    if found.tables == found.newest:
        yield from _row("tables", f"version {found.tables}, as this program's")
    else:
        said = "none" if found.tables is None else f"version {found.tables}"
        yield from _row("tables", f"{said}; `filepact store migrate` makes version {found.newest}")
    yield from _row("journal", f"{found.workspace}: {count(found.operations, 'operation')}")
    if found.tables is not None:
        yield from _row("in all", f"{count(found.workspaces, 'journal')}, {size(found.bytes)}")
        yield from _row("parts", ", ".join(found.partitions))


def migrate(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Make the tables, or bring them to the newest version."""
    done = _named(arguments).migrate(arguments.partitions)
    said = f"done: step {', '.join(map(str, done))}\n" if done else "nothing to do\n"
    return CommandAnswer(plain(said), {"done": done}, DONE if done else NOTHING)


def copy(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Copy the journal of the state folder into the database, or back."""
    user = state_user(state_folder(arguments.state))
    if user:
        raise StateFailedError(
            f"the journal in the state folder is in use by {user}",
            hint="Nothing was copied. End all filepact servers and the programs that started them.",
        )
    done = _named(arguments).copy(back=arguments.back, tell=screen.patience())
    said = (
        f"{count(done.operations, 'operation')}, {count(done.proposals, 'proposal')} and"
        f" {count(done.contents, 'content')} are the same in both; {done.copied:,} were new\n"
    )
    return CommandAnswer(plain(said), asdict(done), DONE)


def prune(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Drop the partitions that are older than some days."""
    dropped = _named(arguments).prune(arguments.days)
    said = f"dropped {', '.join(dropped)}\n" if dropped else "nothing is that old\n"
    return CommandAnswer(plain(said), {"dropped": list(dropped)}, DONE if dropped else NOTHING)


def _named(arguments: Namespace) -> StoreDatabase:
    """What can be done to the database that the settings name, whatever state it is in."""
    options = read_settings(arguments.config).store
    if options is None:
        raise InvalidParamsError(
            "the journal is in the state folder, and no database is named",
            hint="Set url in [store], or FILEPACT_STORE; see docs/how-to/postgres.md.",
        )
    state = open_state(state_folder(arguments.state))
    return StoreDatabase(options, state.name, state.database)


def _row(name: str, value: str) -> tuple[TerminalText, ...]:
    return TerminalText(f"{name:<9}", "dim"), TerminalText(f"{value}\n")

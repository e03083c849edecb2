"""What the fleet's package adds to filepact: journals in a database, checkouts, and the commands about both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.extension import Extension
from filepact_fleet import STORES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.domain.operation import StoreOptions
    from filepact.extension import SettingInfo
    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact_cli.parser import CommandGroup
    from filepact_fleet.checkout import SharedRoot
    from filepact_fleet.postgres import PostgresStore

__all__ = ["EXTENSION"]


def _add_commands(group: CommandGroup) -> None:
    from filepact_fleet.commands import add_commands  # noqa: PLC0415 - as all here: when it is needed

    add_commands(group)


def _read_settings(found: Mapping[str, Any], text: str, name: str) -> StoreOptions:
    from filepact_fleet.settings import read_store  # noqa: PLC0415

    return read_store(found, text, name)


def _setting_keys() -> tuple[SettingInfo, ...]:
    from filepact_fleet.settings import STORE_KEYS  # noqa: PLC0415

    return STORE_KEYS


def _open_store(options: StoreOptions, name: str) -> PostgresStore:
    from filepact_fleet.databases import open_database  # noqa: PLC0415

    return open_database(options, name)


def _open_publisher(state: StateFolder, roots: Sequence[Root]) -> SharedRoot:
    from filepact_fleet.sharing import open_checkout  # noqa: PLC0415

    return open_checkout(state, roots)


EXTENSION: Final = Extension(
    "fleet",
    add_commands=_add_commands,
    tables=("store",),
    read_settings=_read_settings,
    setting_keys=_setting_keys,
    stores=STORES,
    open_store=_open_store,
    open_publisher=_open_publisher,
    extras={
        "objects": ("obstore", "shared workspaces"),
        "postgres": ("psycopg", "the journal in a database"),
    },
)

"""The settings of the journal in a database: the table `store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.config.keys import TEXT, read_table
from filepact.domain.operation import StoreOptions
from filepact.extension import SettingInfo
from filepact_fleet import STORES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STORE_KEYS", "read_store"]

STORE_KEYS: Final = (
    SettingInfo(
        "store",
        "url",
        "",
        "a PostgreSQL database for the journal, without a password",
        {"type": "string", "pattern": "^postgres(ql)?://"},
        '"postgresql://filepact@db.example:5432/filepact"',
        f"an address that begins with {' or '.join(STORES)}",
    ),
    SettingInfo(
        "store",
        "workspace",
        '""',
        "the journal's name there; empty, one of its own",
        {"type": "string"},
    ),
    SettingInfo("store", "schema", '"filepact"', "the schema with its tables", TEXT),
)


def read_store(found: Mapping[str, Any], text: str, name: str) -> StoreOptions:
    """Where the journal is kept; without an address in the state folder.

    Args:
        found: The file's keys, as the TOML reader gives them.
        text: What the file holds.
        name: How it is called in messages.

    Raises:
        InvalidParamsError: A key or a value in the table is not one that is known.
    """
    chosen = read_table(found, "store", text, name, STORE_KEYS)
    return StoreOptions(**{"url": "", **chosen})

"""The settings of the journal in a database: the table `store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.config.problems import refusal
from filepact.config.settings import known_table
from filepact.domain.operation import StoreOptions
from filepact.extension import SettingInfo
from filepact_fleet import STORES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STORE_KEYS", "read_store"]

_KEYS: Final = ("url", "workspace", "schema")
STORE_KEYS: Final = (
    SettingInfo(
        *("store", "url", "", "a PostgreSQL database for the journal, without a password"),
        {"type": "string", "pattern": "^postgres(ql)?://"},
        '"postgresql://filepact@db.example:5432/filepact"',
    ),
    SettingInfo(
        *("store", "workspace", '""', "the journal's name there; empty, one of its own"),
        {"type": "string"},
    ),
    SettingInfo("store", "schema", '"filepact"', "the schema with its tables", {"type": "string"}),
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
    chosen = known_table(found.get("store", {}), ("store",), _KEYS, text, name)
    for key, value in chosen.items():
        if not isinstance(value, str) or (not value and key != "workspace"):
            raise refusal(text, name, ("store", key), "has to be a text")
    url = chosen.get("url", "")
    if url and not url.startswith(STORES):
        problem = f"has to begin with {' or '.join(STORES)}"
        raise refusal(text, name, ("store", "url"), problem)
    return StoreOptions(**{"url": "", **chosen})

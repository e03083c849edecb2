"""The database that a person's settings name for the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError
from filepact.values import dataclass

if TYPE_CHECKING:
    from filepact.domain.operation import StoreOptions
    from filepact_fleet.postgres import PostgresStore

__all__ = ["StoreResult", "StoreStatus", "check_package", "open_database"]


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What is known of the database that the journal is kept in.

    Attributes:
        server: Its version, in words.
        tables: The version of its tables; None for none.
        newest: The version that this program knows.
        standby: Whether it only reads.
        workspace: The name of this journal in it.
        workspaces: How many there are.
        operations: How many operations this one has.
        partitions: The partitions of the journal, in order.
        bytes: What all tables take.
    """

    server: str
    tables: int | None
    newest: int
    standby: bool
    workspace: str
    workspaces: int = 0
    operations: int = 0
    partitions: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What `filepact store copy` came to.

    Attributes:
        operations: How many operations both journals have now.
        proposals: How many proposals.
        contents: How many contents, each compared by its hash.
        copied: How many rows were new.
    """

    operations: int
    proposals: int
    contents: int
    copied: int


def open_database(options: StoreOptions, name: str) -> PostgresStore:
    """The journal in a database.

    Args:
        options: Which one.
        name: The name of the state folder: whose operations those are that are begun here, and the
            name of the journal where none was chosen.

    Raises:
        InvalidParamsError: What speaks to databases is not installed.
        StoreUnreachableError: The server does not answer.
        StoreSchemaError: It has no tables of ours, or of another version.
    """
    check_package()
    from filepact_fleet.postgres import PostgresStore  # noqa: PLC0415 - an optional package

    return PostgresStore(
        options.url,
        workspace=options.workspace or name,
        holder=name,
        schema=options.schema,
    )


def check_package() -> None:
    """Refuse to go on without the optional package.

    Raises:
        InvalidParamsError: It is not installed.
    """
    try:
        import psycopg  # noqa: F401, PLC0415 - an optional package
    except ImportError:
        raise InvalidParamsError(
            "the settings keep the journal in a database, and its driver is not installed",
            hint="Install filepact's extra `postgres`.",
        ) from None

"""The database that a person's settings name for the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from filepact.domain.operation import StoreOptions
    from filepact.store.postgres import PostgresStore

__all__ = ["check_package", "open_database"]


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
    from filepact.store.postgres import PostgresStore  # noqa: PLC0415 - an optional package

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
            hint="pip install 'filepact[postgres]'",
        ) from None

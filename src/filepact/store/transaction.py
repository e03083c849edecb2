"""The interface of every database for the journal's queries: a transaction, and its opener.

Queries are written once, for SQLite; another database puts them into its own words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_Answer = TypeVar("_Answer")

__all__ = ["Database", "FileSync", "Transaction"]


class FileSync(Protocol):
    """Synchronises a file to disk while its caller goes on; one at a time."""

    def begin(self, descriptor: int, /) -> bool:
        """Begin; false, and nothing is done, where the system cannot do it."""

    def now(self, descriptor: int, /) -> None:
        """Have the bytes of a file on the disk before this returns."""

    def wait(self) -> None:
        """Wait until what was begun is on the disk.

        Raises:
            OSError: It could not be put there.
        """

    def close(self) -> None:
        """Let go of it."""


class Transaction(Protocol):
    """The queries and changes inside a transaction."""

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        """Run a statement that answers nothing."""

    def many(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run it once for each row of values."""

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of the answer."""

    def one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of the answer, if any."""

    def among(self, query: str, wanted: Iterable[int | str], *values: Any) -> list[tuple[Any, ...]]:
        """Every row of the answer to a query about any number of values.

        Args:
            query: Names them as ``{wanted}``, where it could name a table of one column.
            wanted: The values.
            values: What ``?2`` and those after it stand for.
        """

    def value(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; for queries that always answer."""


class Database(Protocol):
    """A database that threads share; opens transactions."""

    def read(self, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Ask several things of one unchanging view of the journal.

        Args:
            work: What asks; it may be called again.
        """

    def write(self, work: Callable[[Transaction], _Answer], *, durable: bool) -> _Answer:
        """Change something, wholly or by any exception not at all.

        No other transaction writes to the same journal meanwhile.

        Args:
            work: What does it; it may be called again where nothing came of it, and has no other
                effect.
            durable: Whether it outlasts a power cut when this returns.
        """

    def version(self) -> object:
        """A value that differs when any connection has committed since."""

    def size(self) -> int:
        """Bytes that the journal takes."""

    def shrink(self) -> None:
        """Give room that is free back, where it can be."""

    def close(self) -> None:
        """Let go of it; anything else afterwards is a `StateFailedError`."""

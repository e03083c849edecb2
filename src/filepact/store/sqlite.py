"""The journal in one SQLite file, for one machine."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.errors import StateFailedError
from filepact.store.connection import Database
from filepact.store.content import ContentStore
from filepact.store.sql import SqlStore
from filepact.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.operation import Operation
    from filepact.store.transaction import FileSync, Transaction

__all__ = ["SqliteStore"]

_NAMED_AT_MOST = 5


class SqliteStore(SqlStore):
    """The journal in a file, and large contents beside it.

    Args:
        path: The file; made when missing, in a folder that is there.  Large contents are kept in
            the folder ``contents`` beside it.  Where it cannot be written, it is only read.
        locked_by: As for `Database`.
        disk: As for `Database`.

    Raises:
        StateFailedError: The file is no journal, or of a newer filepact; it is left as it is.
        TimedOutError: Another process held it for too long.
    """

    def __init__(
        self,
        path: str,
        *,
        locked_by: Callable[[str, int, int], str] = lambda _path, _first, _count: "",
        disk: FileSync | None = None,
    ) -> None:
        self._file = Database(path, locked_by=locked_by, disk=disk)
        contents = os.path.join(os.path.dirname(path), "contents")
        super().__init__(self._file, ContentStore(contents))

    def begin(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        meanwhile: Callable[[], None] | None = None,
    ) -> Operation:
        seq = self._file.write(
            lambda tx: self._begin(tx, operation, contents), durable=True, meanwhile=meanwhile
        )
        return replace(operation, seq=seq, state="intended")

    def content(self, content_id: str) -> bytes:
        try:
            return super().content(content_id)
        except StateFailedError:
            # The view may tell of a file that another process has just pruned; look again.
            try:
                return super().content(content_id)
            except StateFailedError as error:
                raise self._unusable(content_id, error) from error

    def _unusable(self, content_id: str, error: StateFailedError) -> StateFailedError:
        """The error for a damaged content, with the operations that need it."""
        from filepact.store.integrity import unusable  # noqa: PLC0415 - rarely needed

        def work(tx: Transaction) -> list[str]:
            known = "SELECT number FROM content WHERE hex(id) = ?"
            numbers = [number for (number,) in tx.all(known, (content_id.upper(),))]
            return [f"{one.id} ({one.summary}) in {one.path}" for one in unusable(tx, numbers)]

        needs: list[str] = []
        with suppress(StateFailedError):
            needs = self._database.read(work)
        if not needs:
            return error
        more = f" and {len(needs) - _NAMED_AT_MOST} others" if len(needs) > _NAMED_AT_MOST else ""
        return StateFailedError(
            f"a text in the journal is damaged, which is needed by {'; '.join(needs[:_NAMED_AT_MOST])}{more}",
            hint="Nothing was changed. All else can be taken back: name another operation of "
            "`filepact log`. `filepact doctor --journal` says what is damaged.",
            content=content_id[:12],
        )

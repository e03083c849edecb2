"""The journal in one SQLite file, for one machine."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.errors import StateFailedError
from filepact.store.connection import Database
from filepact.store.content import ContentStore
from filepact.store.rows import insert_operation, to_path, to_row, to_text
from filepact.store.sql import SqlStore
from filepact.store.states import to_states
from filepact.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.operation import Operation
    from filepact.store.transaction import FileSync, Transaction

__all__ = ["SqliteStore"]

_NAMED_AT_MOST = 5

_KNOWN: Final = (
    "SELECT 'taken', 0, 0 FROM proposal WHERE id = ?1"
    " UNION ALL SELECT 'taken', 0, 0 FROM operation WHERE id = ?1"
    " UNION ALL SELECT 'session', number, 0 FROM session"
    " WHERE (id, actor_kind, actor_name, actor_version) = (?2, ?3, ?4, ?5)"
    " UNION ALL SELECT 'root', number, 0 FROM root WHERE path = ?6"
    " UNION ALL SELECT 'before', number, depth FROM content WHERE id = ?7 AND kept <> 'gone'"
    " UNION ALL SELECT CASE kept WHEN 'gone' THEN 'gone' ELSE 'after' END, number, depth"
    " FROM content WHERE id = ?8"
    " UNION ALL SELECT 'conversation', 0, 0 FROM conversation c JOIN session s ON s.number = c.session"
    " WHERE c.name = ?9 AND (s.id, s.actor_kind, s.actor_name, s.actor_version) = (?2, ?3, ?4, ?5)"
)
"""What the journal knows of an operation that makes or changes one file."""


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
        def work(tx: Transaction) -> int:
            seq = _begin_one(tx, self._contents, operation, contents)
            return self._begin(tx, operation, contents) if seq is None else seq

        seq = self._file.write(work, durable=True, meanwhile=meanwhile)
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
            "`filepact log`. `filepact state check` says what is damaged.",
            content=content_id[:12],
        )


def _begin_one(
    tx: Transaction, store: ContentStore, operation: Operation, contents: Mapping[str, bytes]
) -> int | None:
    """Begin what is by far the most frequent: one file is made or takes on another text.

    It comes to the same as by the way of all operations, with a third of the statements.

    Returns:
        The operation's place; None, and nothing is done, where anything about it is less usual.
    """
    session, changes = operation.session, operation.changes.changes
    before, after = changes[0].before, changes[0].after
    if len(changes) > 1 or after is None or operation.directories:
        return None
    new, old = contents.get(after.content), None if before is None else contents.get(before.content)
    if new is None or (old is None and before is not None):
        return None
    actor, path = session.actor, changes[0].path
    values = to_row(operation.id, session.id, actor.kind, actor.name, actor.version)
    names = ("" if before is None else before.content), after.content
    keys = to_path(path.root), *map(bytes.fromhex, names), to_text(session.conversation or "")
    found = {what: (number, depth) for what, number, depth in tx.all(_KNOWN, (*values, *keys))}
    wanted = {"session", "root"}
    wanted |= {"before"} if before is not None else set()
    wanted |= {"conversation"} if session.conversation else set()
    if not wanted <= found.keys() <= wanted | {"after"}:
        return None
    seq = insert_operation(tx, operation, found["session"][0])
    base, depth = found.get("before", (None, 0))
    number = found["after"][0] if "after" in found else None
    used = [one for one in (base, number) if one is not None]
    if number is None:
        near = None if base is None or old is None else (base, depth, old)
        number = store.add(tx, after.content, new, near, last_seq=seq)
    tx.run(
        "INSERT INTO operation_change VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, found["root"][0], to_path(path.path), *to_states(changes[0], base, number)),
    )
    for one in used:
        tx.run("UPDATE content SET last_seq = ? WHERE number = ?", (seq, one))
    return seq

"""Proposals, operations and their parts as rows, and rows as values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, RootId, WorkspacePath
from filepact.domain.operation import Actor, Operation, Proposal, Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.store.connection import View

__all__ = [
    "OF_SESSION",
    "from_text",
    "insert_changes",
    "insert_directories",
    "insert_operation",
    "insert_proposal",
    "of_session",
    "root_number",
    "select_operations",
    "select_proposals",
    "session_number",
    "to_path",
    "to_session",
    "to_text",
]

Owner = Literal["proposal", "operation"]
Sides = tuple[int | None, int | None]
"""The numbers of the contents before and after."""

_OPERATIONS = (
    "SELECT o.seq, o.id, o.kind, s.id, s.actor_kind, s.actor_name, s.actor_version, o.tool,"
    " o.summary, o.created, o.target, o.undone_by, o.state, o.approved_by, o.note,"
    " o.added, o.removed"
    " FROM operation o JOIN session s ON s.number = o.session "
)
_PROPOSALS = (
    "SELECT p.number, p.id, p.kind, s.id, s.actor_kind, s.actor_name, s.actor_version, p.tool,"
    " p.summary, p.created, p.target, p.state, p.rule, p.reason, p.superseded_by, p.decided_by,"
    " p.expired"
    " FROM proposal p JOIN session s ON s.number = p.session "
)
_CHANGES = (
    "SELECT c.owner, r.path, c.path, lower(hex(b.id)), c.before_mode, lower(hex(a.id)),"
    " c.after_mode FROM {owner}_change c JOIN root r ON r.number = c.root"
    " LEFT JOIN content b ON b.number = c.before LEFT JOIN content a ON a.number = c.after"
    " WHERE c.owner IN (SELECT value FROM json_each(?)) ORDER BY c.owner, c.position"
)
_DIRECTORIES = (
    "SELECT d.owner, r.path, d.path FROM operation_directory d JOIN root r ON r.number = d.root"
    " WHERE d.owner IN (SELECT value FROM json_each(?)) ORDER BY d.owner, d.position"
)


def to_path(path: str) -> bytes:
    """A path as it is stored, with any bytes that its name stands for."""
    return path.encode("utf-8", "surrogatepass")


def to_text(text: str) -> str | bytes:
    """Free text as it is stored; it may quote a path that is no proper text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return to_path(text)
    return text


def from_text(stored: str | bytes) -> str:
    """The path or text that was stored."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")


OF_SESSION: Final = (
    "{owner}.session IN (SELECT number FROM session WHERE id = ? UNION SELECT c.session"
    " FROM conversation c JOIN session s ON s.number = c.session"
    " WHERE c.name = ? AND s.actor_name = ?) "
)
"""What belongs to a session, or to another of the same actor in the same conversation."""


def of_session(session: Session) -> list[str | bytes]:
    """The values of that condition."""
    return [to_text(session.id), to_text(session.conversation or ""), to_text(session.actor.name)]


# -- writing ----------------------------------------------------------------------------------


def root_number(view: View, root: RootId) -> int:
    """The number of a root; it is given one when it has none."""
    key = (to_path(root),)
    row = view.one("SELECT number FROM root WHERE path = ?", key)
    if row is None:
        return int(view.value("INSERT INTO root (path) VALUES (?) RETURNING number", key))
    return int(row[0])


def session_number(view: View, session: Session) -> int:
    """The number of a session; it is given one when it has none, and its conversation is noted."""
    number = _session_number(view, session)
    if session.conversation:
        view.run(
            "INSERT OR IGNORE INTO conversation VALUES (?, ?)",
            (number, to_text(session.conversation)),
        )
    return number


def _session_number(view: View, session: Session) -> int:
    actor = session.actor
    key = (to_text(session.id), actor.kind, to_text(actor.name), to_text(actor.version))
    row = view.one(
        "SELECT number FROM session WHERE (id, actor_kind, actor_name, actor_version)"
        " = (?, ?, ?, ?)",
        key,
    )
    if row is None:
        return int(
            view.value(
                "INSERT INTO session (id, actor_kind, actor_name, actor_version)"
                " VALUES (?, ?, ?, ?) RETURNING number",
                key,
            )
        )
    return int(row[0])


def insert_proposal(view: View, proposal: Proposal) -> int:
    """Insert a proposal without its changes; its number."""
    return int(
        view.value(
            "INSERT INTO proposal (id, kind, session, tool, summary, created, target, state,"
            " rule, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (
                proposal.id,
                proposal.kind,
                session_number(view, proposal.session),
                to_text(proposal.tool),
                to_text(proposal.summary),
                proposal.created,
                to_text(proposal.target),
                proposal.state,
                to_text(proposal.rule),
                to_text(proposal.reason),
            ),
        )
    )


def insert_operation(view: View, operation: Operation) -> int:
    """Insert an operation as intended, without its changes; its place in the journal."""
    return int(
        view.value(
            "INSERT INTO operation (id, kind, session, tool, summary, created, target, undone_by,"
            " state, approved_by, note, added, removed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, NULL, 'intended', ?, ?, ?, ?)"
            " RETURNING seq",
            (
                operation.id,
                operation.kind,
                session_number(view, operation.session),
                to_text(operation.tool),
                to_text(operation.summary),
                operation.created,
                to_text(operation.target),
                to_text(operation.approved_by),
                to_text(operation.note),
                *(operation.lines or (None, None)),
            ),
        )
    )


def insert_changes(
    view: View, owner: Owner, number: int, changes: ChangeSet, sides: Sequence[Sides]
) -> None:
    """Insert the changes of a proposal or an operation, with the contents of each."""
    view.many(
        "INSERT INTO {owner}_change VALUES (?, ?, ?, ?, ?, ?, ?, ?)".replace("{owner}", owner),
        [
            (
                number,
                position,
                root_number(view, change.path.root),
                to_path(change.path.path),
                before,
                change.before.mode if change.before else None,
                after,
                change.after.mode if change.after else None,
            )
            for position, (change, (before, after)) in enumerate(
                zip(changes.changes, sides, strict=True)
            )
        ],
    )


def insert_directories(view: View, seq: int, directories: Iterable[tuple[RootId, str]]) -> None:
    """Insert the folders that were made for an operation."""
    view.many(
        "INSERT INTO operation_directory VALUES (?, ?, ?, ?)",
        [
            (seq, position, root_number(view, root), to_path(path))
            for position, (root, path) in enumerate(directories)
        ],
    )


# -- reading ----------------------------------------------------------------------------------


def select_operations(view: View, tail: str, values: Sequence[Any] = ()) -> tuple[Operation, ...]:
    """Operations by the end of a query over the table ``o``."""
    rows = view.all(_OPERATIONS + tail, values)
    numbers = [row[0] for row in rows]
    changes = _changes(view, "operation", numbers)
    directories: dict[int, list[tuple[RootId, str]]] = {}
    for owner, root, path in view.all(_DIRECTORIES, (json.dumps(numbers),)):
        directories.setdefault(owner, []).append((RootId(from_text(root)), from_text(path)))
    return tuple(
        Operation(
            id=row[1],
            seq=row[0],
            kind=row[2],
            session=to_session(row[3:7]),
            tool=from_text(row[7]),
            summary=from_text(row[8]),
            changes=changes[row[0]],
            created=row[9],
            target=from_text(row[10]),
            undone_by=row[11],
            state=row[12],
            directories=tuple(directories.get(row[0], ())),
            approved_by=from_text(row[13]),
            note=from_text(row[14]),
            lines=None if row[15] is None else (row[15], row[16]),
        )
        for row in rows
    )


def select_proposals(view: View, tail: str, values: Sequence[Any] = ()) -> tuple[Proposal, ...]:
    """Proposals by the end of a query over the table ``p``."""
    rows = view.all(_PROPOSALS + tail, values)
    changes = _changes(view, "proposal", [row[0] for row in rows])
    return tuple(
        Proposal(
            id=row[1],
            session=to_session(row[3:7]),
            tool=from_text(row[7]),
            summary=from_text(row[8]),
            changes=changes[row[0]],
            created=row[9],
            kind=row[2],
            target=from_text(row[10]),
            state="superseded" if row[14] else "expired" if row[16] else row[11],
            rule=from_text(row[12]),
            reason=from_text(row[13]),
            superseded_by=row[14] or "",
            decided_by=from_text(row[15]),
        )
        for row in rows
    )


def to_session(row: Sequence[Any]) -> Session:
    """A session by its id and what is known of its actor."""
    return Session(from_text(row[0]), Actor(row[1], from_text(row[2]), from_text(row[3])))


def _changes(view: View, owner: Owner, numbers: list[int]) -> dict[int, ChangeSet]:
    found: dict[int, list[FileChange]] = {number: [] for number in numbers}
    query = _CHANGES.replace("{owner}", owner)
    for number, root, path, before, before_mode, after, after_mode in view.all(
        query, (json.dumps(numbers),)
    ):
        found[number].append(
            FileChange(
                WorkspacePath(RootId(from_text(root)), from_text(path)),
                Revision(before, before_mode) if before_mode is not None else None,
                Revision(after, after_mode) if after_mode is not None else None,
            )
        )
    return {number: ChangeSet(tuple(changes)) for number, changes in found.items()}

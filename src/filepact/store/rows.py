"""Rows of the journal as values and values as rows: proposals, operations, agents' questions.

Rows are found by what people type: the beginning of an id, a file or a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import RootId, WorkspacePath
from filepact.domain.operation import Actor, Operation, Proposal, Session
from filepact.domain.permission_log import LoggedFile, PermissionRecord, RecordKind, SessionApproval
from filepact.errors import InvalidParamsError, NotFoundError
from filepact.store.states import to_revision, to_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.domain.operation import ProposalState
    from filepact.store.transaction import Transaction

__all__ = [
    "KEPT",
    "NO_LIMIT",
    "OF_SESSION",
    "TextBytes",
    "by_id",
    "finished",
    "from_text",
    "in_state",
    "insert_changes",
    "insert_directories",
    "insert_operation",
    "insert_proposal",
    "insert_question",
    "insert_session_approval",
    "missing",
    "of_session",
    "only",
    "root_number",
    "select_operations",
    "select_proposals",
    "select_questions",
    "select_session_approvals",
    "session_number",
    "to_path",
    "to_session",
    "to_text",
    "turns",
]

NO_LIMIT: Final = 1 << 62
"""A limit that nothing reaches."""

Owner = Literal["proposal", "operation"]
Sides = tuple[int | None, int | None]
"""The numbers of the contents before and after."""

_OPERATIONS = (
    "SELECT o.seq, o.id, o.kind, s.id, s.actor_kind, s.actor_name, s.actor_version, o.tool,"
    " o.summary, o.created, o.target, o.undone_by, o.state, o.approved_by, o.note,"
    " o.added, o.removed, o.turn, o.call, s.actor_user"
    " FROM operation o JOIN session s ON s.number = o.session "
)
_SESSION_APPROVALS = (
    "SELECT g.id, r.path, g.pattern, g.rules, g.change, g.given, g.given_by, g.expires, g.revoked,"
    " s.id, s.actor_kind, s.actor_name, s.actor_version, '', '', s.actor_user"
    " FROM session_approval g"
    " JOIN session s ON s.number = g.session JOIN root r ON r.number = g.root"
    " WHERE s.id = ?1 OR ?1 IS NULL ORDER BY g.number DESC"
)
_PROPOSALS = (
    "SELECT p.number, p.id, p.kind, s.id, s.actor_kind, s.actor_name, s.actor_version, p.tool,"
    " p.summary, p.created, p.target, p.state, p.rule, p.reason, p.superseded_by, p.decided_by,"
    " p.expired, p.turn, p.call, s.actor_user"
    " FROM proposal p JOIN session s ON s.number = p.session "
)
_CHANGES = (
    "SELECT c.owner, r.path, c.path, lower(hex(b.id)), c.before_mode, lower(hex(a.id)),"
    " c.after_mode, c.before_attributes, c.after_attributes FROM {owner}_change c JOIN root r ON r.number = c.root"
    " LEFT JOIN content b ON b.number = c.before LEFT JOIN content a ON a.number = c.after"
    " WHERE c.owner IN {wanted} ORDER BY c.owner, c.position"
)
_DIRECTORIES = (
    "SELECT d.owner, r.path, d.path FROM operation_directory d JOIN root r ON r.number = d.root"
    " WHERE d.owner IN {wanted} ORDER BY d.owner, d.position"
)


class TextBytes(bytes):
    """Free text that is no proper text, as it is stored."""

    __slots__ = ()


def to_path(path: str) -> bytes:
    """A path as it is stored, with any bytes that its name stands for."""
    return path.encode("utf-8", "surrogatepass")


def to_text(text: str) -> str | TextBytes:
    """Free text as it is stored; it may quote a path that is no proper text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return TextBytes(to_path(text))
    return text


def to_row(*values: Any) -> tuple[Any, ...]:
    """Values as they are stored, each text as by `to_text`."""
    return tuple(to_text(one) if type(one) is str and not one.isascii() else one for one in values)


def from_text(stored: str | bytes) -> str:
    """The path or text that was stored; of what a damaged journal has in its place, all that can be read."""
    if isinstance(stored, str):
        return stored
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "backslashreplace")


OF_SESSION: Final = (
    "{owner}.session IN (SELECT number FROM session WHERE id = ? UNION SELECT c.session"
    " FROM conversation c JOIN session s ON s.number = c.session"
    " WHERE c.name = ? AND s.actor_name = ?) "
)
"""What belongs to a session, or to another of the same actor in the same conversation."""


def of_session(session: Session) -> list[str | bytes]:
    """The values of the condition `OF_SESSION`."""
    return [to_text(session.id), to_text(session.conversation or ""), to_text(session.actor.name)]


# -- writing ----------------------------------------------------------------------------------


def root_number(tx: Transaction, root: RootId) -> int:
    """The number of a root; it is given one when it has none."""
    key = (to_path(root),)
    row = tx.one("SELECT number FROM root WHERE path = ?", key)
    if row is None:
        return int(tx.value("INSERT INTO root (path) VALUES (?) RETURNING number", key))
    return int(row[0])


def session_number(tx: Transaction, session: Session) -> int:
    """The number of a session; it is given one when it has none, and its conversation is noted."""
    number = _session_number(tx, session)
    if session.conversation:
        tx.run(
            "INSERT OR IGNORE INTO conversation VALUES (?, ?)",
            (number, to_text(session.conversation)),
        )
    return number


def _session_number(tx: Transaction, session: Session) -> int:
    actor = session.actor
    key = to_row(session.id, actor.kind, actor.name, actor.version)
    row = tx.one(
        "SELECT number FROM session WHERE (id, actor_kind, actor_name, actor_version)"
        " = (?, ?, ?, ?)",
        key,
    )
    if row is None:
        return int(
            tx.value(
                "INSERT INTO session (id, actor_kind, actor_name, actor_version, actor_user)"
                " VALUES (?, ?, ?, ?, ?) RETURNING number",
                (*key, to_text(actor.user)),
            )
        )
    return int(row[0])


def insert_proposal(tx: Transaction, proposal: Proposal) -> int:
    """Insert a proposal without its changes; its number."""
    return int(
        tx.value(
            "INSERT INTO proposal (id, kind, session, tool, summary, created, target, state,"
            " rule, reason, turn, call) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " RETURNING number",
            to_row(
                proposal.id,
                proposal.kind,
                session_number(tx, proposal.session),
                proposal.tool,
                proposal.summary,
                proposal.created,
                proposal.target,
                proposal.state,
                proposal.rule,
                proposal.reason,
                proposal.session.turn,
                proposal.session.call,
            ),
        )
    )


def insert_operation(tx: Transaction, operation: Operation) -> int:
    """Insert an operation as intended, without its changes; its place in the journal."""
    return int(
        tx.value(
            "INSERT INTO operation (id, kind, session, tool, summary, created, target, undone_by,"
            " state, approved_by, note, added, removed, turn, call, logged)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, NULL, 'intended', ?, ?, ?, ?, ?, ?, ?)"
            " RETURNING seq",
            to_row(
                operation.id,
                operation.kind,
                session_number(tx, operation.session),
                operation.tool,
                operation.summary,
                operation.created,
                operation.target,
                operation.approved_by,
                operation.note,
                *(operation.lines or (None, None)),
                operation.session.turn,
                operation.session.call,
                operation.logged,
            ),
        )
    )


def insert_changes(
    tx: Transaction, owner: Owner, number: int, changes: ChangeSet, sides: Sequence[Sides]
) -> None:
    """Insert the changes of a proposal or an operation, with the contents of each."""
    tx.many(
        "INSERT INTO {owner}_change VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)".replace(
            "{owner}", owner
        ),
        [
            (
                *(number, position, root_number(tx, change.path.root)),
                *(to_path(change.path.path), *to_states(change, before, after)),
            )
            for position, (change, (before, after)) in enumerate(
                zip(changes.changes, sides, strict=True)
            )
        ],
    )


def insert_directories(
    tx: Transaction, seq: int, directories: Iterable[tuple[RootId, str]]
) -> None:
    """Insert the folders that were made for an operation."""
    tx.many(
        "INSERT INTO operation_directory VALUES (?, ?, ?, ?)",
        [
            (seq, position, root_number(tx, root), to_path(path))
            for position, (root, path) in enumerate(directories)
        ],
    )


# -- reading ----------------------------------------------------------------------------------


def select_operations(
    tx: Transaction, tail: str, values: Sequence[Any] = ()
) -> tuple[Operation, ...]:
    """Operations by the end of a query over the table ``o``."""
    rows = tx.all(_OPERATIONS + tail, values)
    numbers = [row[0] for row in rows]
    changes = _changes(tx, "operation", numbers)
    directories: dict[int, list[tuple[RootId, str]]] = {}
    for owner, root, path in tx.among(_DIRECTORIES, numbers):
        directories.setdefault(owner, []).append((RootId(from_text(root)), from_text(path)))
    return tuple(
        Operation(
            id=row[1],
            seq=row[0],
            kind=row[2],
            session=to_session((*row[3:7], *row[17:20])),
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


def select_proposals(
    tx: Transaction, tail: str, values: Sequence[Any] = ()
) -> tuple[Proposal, ...]:
    """Proposals by the end of a query over the table ``p``."""
    rows = tx.all(_PROPOSALS + tail, values)
    changes = _changes(tx, "proposal", [row[0] for row in rows])
    return tuple(
        Proposal(
            id=row[1],
            session=to_session((*row[3:7], *row[17:20])),
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
    """A session by its id, its actor's kind, name and version, its turn and call, and its user."""
    id_, kind, *texts = row
    name, version, turn, call, user = map(from_text, texts)
    return Session(from_text(id_), Actor(kind, name, version, user), turn=turn, call=call)


def insert_session_approval(tx: Transaction, given: SessionApproval) -> None:
    """Keep an approval in advance."""
    tx.run(
        "INSERT INTO session_approval (id, session, root, pattern, rules, change, given, given_by,"
        " expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(given.id, session_number(tx, given.session), root_number(tx, given.root)),
            *(to_text(given.pattern), to_text("\n".join(given.rules)), given.change),
            *(given.given, to_text(given.by), given.expires),
        ),
    )


def select_session_approvals(tx: Transaction, session: str | None) -> tuple[SessionApproval, ...]:
    """Approvals in advance, of a session or of all, newest first."""
    rows = tx.all(_SESSION_APPROVALS, (None if session is None else to_text(session),))
    return tuple(
        SessionApproval(
            id=row[0],
            session=to_session(row[9:16]),
            root=RootId(from_text(row[1])),
            pattern=from_text(row[2]),
            rules=tuple(from_text(row[3]).split("\n")),
            change=row[4],
            given=row[5],
            by=from_text(row[6]),
            expires=row[7],
            revoked=row[8],
        )
        for row in rows
    )


def _changes(tx: Transaction, owner: Owner, numbers: list[int]) -> dict[int, ChangeSet]:
    found: dict[int, list[FileChange]] = {number: [] for number in numbers}
    query = _CHANGES.replace("{owner}", owner)
    for number, root, path, old, mode, new, after_mode, was, is_ in tx.among(query, numbers):
        found[number].append(
            FileChange(
                WorkspacePath(RootId(from_text(root)), from_text(path)),
                to_revision(old, mode, was),
                to_revision(new, after_mode, was if is_ == b"" else is_),
            )
        )
    return {number: ChangeSet(tuple(changes)) for number, changes in found.items()}


KEPT: Final = 10_000
"""The newest so many are kept."""

_QUESTIONS: Final = (
    "SELECT q.number, q.asked, s.id, s.actor_kind, s.actor_name, s.actor_version, r.path, q.title,"
    " q.action, q.verdict, q.decided_by, q.how, q.more, s.actor_user"
    " FROM question q JOIN session s ON s.number = q.session JOIN root r ON r.number = q.root"
    " WHERE (r.path = ?1 OR ?1 IS NULL) AND (s.id = ?2 OR ?2 IS NULL)"
    " AND CASE q.verdict || ' ' || q.how WHEN 'allowed read' THEN 'reads' WHEN 'told turn' THEN 'turns'"
    " ELSE 'asked' END = ?3"
    " ORDER BY q.number DESC LIMIT ?4"
)
_FILES: Final = (
    "SELECT owner, path, added, removed FROM question_file"
    " WHERE owner IN {wanted} ORDER BY owner, position"
)


def insert_question(tx: Transaction, question: PermissionRecord, *, kept: int = KEPT) -> None:
    """Insert a question, and delete all but the newest ``kept``."""
    number = tx.value(
        "INSERT INTO question (asked, session, root, title, action, verdict, decided_by, how, more)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            question.when,
            session_number(tx, question.session),
            root_number(tx, question.root),
            to_text(question.title),
            question.action,
            question.verdict,
            to_text(question.by),
            to_text(question.how),
            question.more,
        ),
    )
    tx.many(
        "INSERT INTO question_file VALUES (?, ?, ?, ?, ?)",
        [
            (number, position, to_path(file.path), file.added, file.removed)
            for position, file in enumerate(question.files)
        ],
    )
    # Only the oldest are ever given up, so that the numbers of the others have no holes.
    tx.run("DELETE FROM question WHERE number <= ?", (number - kept,))


def select_questions(
    tx: Transaction, root: RootId | None, session: str | None, limit: int, *, kind: RecordKind
) -> tuple[PermissionRecord, ...]:
    """The newest questions first."""
    rows = tx.all(
        _QUESTIONS,
        (
            None if root is None else to_path(root),
            None if session is None else to_text(session),
            kind,
            limit,
        ),
    )
    files: dict[int, list[LoggedFile]] = {}
    for owner, path, *lines in tx.among(_FILES, [row[0] for row in rows]):
        files.setdefault(owner, []).append(LoggedFile(from_text(path), *lines))
    return tuple(_question(row, tuple(files.get(row[0], ()))) for row in rows)


def _question(row: tuple[Any, ...], files: tuple[LoggedFile, ...]) -> PermissionRecord:
    return PermissionRecord(
        when=row[1],
        session=to_session((*row[2:6], "", "", row[13])),
        root=RootId(from_text(row[6])),
        title=from_text(row[7]),
        action=row[8],
        files=files,
        verdict=row[9],
        by=from_text(row[10]),
        how=from_text(row[11]),
        more=row[12],
    )


_NAMED_AT_MOST = 5
_LEAST = 4  # characters of an id that stand for it

_ANY = "SELECT 1 FROM operation_change c WHERE "
_ALL = "WHERE o.state <> 'intended' AND "
# The limit stands inside, so that an index read from its end gives the newest at once.
_AMONG = (
    "WHERE o.seq IN (SELECT DISTINCT c.owner FROM operation_change c"
    " CROSS JOIN operation t ON t.seq = c.owner WHERE t.state <> 'intended' AND "
)

_Change = TypeVar("_Change", Operation, Proposal)


def finished(
    tx: Transaction,
    root: RootId | None,
    path: str | None,
    session: Session | None,
    turn: str | None,
    between: tuple[int, int | None],
    limit: int,
    newest_first: bool,
) -> tuple[str, list[Any]]:
    """The end of a query for finished operations; the arguments as in the journal's protocol."""
    order = "DESC" if newest_first else "ASC"
    conditions, values = _touched(tx, root, path)
    among = bool(conditions)
    column = "c.owner" if among else "o.seq"
    if session is not None:
        conditions.append(OF_SESSION.replace("{owner}", "t" if among else "o"))
        values += of_session(session)
    if turn is not None:
        conditions.append(f"{'t' if among else 'o'}.turn = ?")
        values.append(to_text(turn))
    after_seq, before_seq = between
    conditions.append(f"{column} > ?")
    values.append(after_seq)
    if before_seq is not None:
        conditions.append(f"{column} < ?")
        values.append(before_seq)
    tail = " AND ".join(conditions) + f" ORDER BY {column} {order} LIMIT ?"
    values.append(limit)
    return (f"{_AMONG}{tail}) ORDER BY o.seq {order}" if among else _ALL + tail), values


def turns(tx: Transaction, roots: Sequence[RootId], begins: str, limit: int) -> tuple[str, ...]:
    """The names of turns in which some roots were changed; arguments as in the journal's protocol."""
    known = [tx.one("SELECT number FROM root WHERE path = ?", (to_path(one),)) for one in roots]
    # A turn that began before another is the older one, though all that is recorded of it came later.
    rows = tx.among(
        "SELECT k.turn FROM (SELECT o.turn, min(o.seq) AS seq FROM operation o WHERE o.turn <> '' AND o.turn >= ?2"
        " AND o.turn < ?2 || char(1114111) AND o.state <> 'intended' AND EXISTS (SELECT 1 FROM operation_change c"
        " WHERE c.owner = o.seq AND c.root IN {wanted}) GROUP BY o.turn) k LEFT JOIN (SELECT q.title, min(q.number)"
        " AS number FROM question q WHERE q.verdict = 'told' AND q.how = 'turn' GROUP BY q.title) b"
        " ON b.title = k.turn ORDER BY CASE WHEN b.number IS NULL THEN k.seq ELSE min(k.seq)"
        " OVER (PARTITION BY b.number IS NULL ORDER BY b.number DESC) END DESC, b.number DESC LIMIT ?3",
        [row[0] for row in known if row is not None],
        to_text(begins),
        limit,
    )
    return tuple(from_text(row[0]) for row in rows)


def _touched(tx: Transaction, root: RootId | None, path: str | None) -> tuple[list[str], list[Any]]:
    """Conditions on changes ``c`` with their values; none when all of them are meant."""
    conditions: list[str] = []
    values: list[Any] = []
    if root is not None:
        conditions.append("c.root = (SELECT number FROM root WHERE path = ?)")
        values.append(to_path(root))
    if path not in (None, "", "."):
        stored = to_path(str(path).rstrip("/"))
        # "0" is the character after "/", so the range holds all that begins with "path/".
        below = [stored + b"/", stored + b"0"]
        inside = " AND ".join([*conditions, "c.path > ? AND c.path < ?"])
        if tx.one(_ANY + inside + " LIMIT 1", [*values, *below]) is None:
            # A file: this alone lets its own index be used.
            conditions.append("c.path = ?")
            values.append(stored)
        else:
            conditions.append("(c.path = ? OR (c.path > ? AND c.path < ?))")
            values += [stored, *below]
    return conditions, values


def in_state(state: ProposalState) -> tuple[str, list[Any]]:
    """The beginning of a condition on proposals ``p``; two states have columns of their own."""
    kept = "rejected" if state in ("superseded", "expired") else state
    condition = (
        f"WHERE p.state = ? AND p.superseded_by IS {'NOT ' * (state == 'superseded')}NULL"
        f" AND p.expired = {int(state == 'expired')} "
    )
    return condition, [kept]


def by_id(table: str, change_id: str) -> tuple[str, list[Any]]:
    """The end of a query for one id, or for all ids that begin so, few of them."""
    stored = to_text(change_id)
    tail = f"WHERE {table}.id >= ?1 AND {table}.id < ?1 || char(1114111) ORDER BY {table}.id"
    return f"{tail} LIMIT {_NAMED_AT_MOST + 1}", [stored]


def only(found: tuple[_Change, ...], change_id: str, what: str) -> _Change:
    """The one of exactly this id, else the only one whose id begins so.

    Raises:
        NotFoundError: There is none.
        InvalidParamsError: There are several, or too little of the id was given.
    """
    if not change_id or not found:
        raise missing(change_id, what)
    if len(found) > 1 and found[0].id != change_id:
        names = ", ".join(one.id for one in found[:_NAMED_AT_MOST])
        more = " and others" if len(found) > _NAMED_AT_MOST else ""
        raise InvalidParamsError(
            f"several begin with {change_id!r}: {names}{more}", hint="Give more of the id."
        )
    if found[0].id != change_id and len(change_id) < _LEAST:
        # All ids begin alike, so less of one would mean whatever happens to be there alone.
        raise InvalidParamsError(
            f"{change_id!r} is too short a part of the id of {what} {found[0].id}",
            hint=f"Give at least {_LEAST} characters of it.",
        )
    return found[0]


def missing(change_id: str, what: str) -> NotFoundError:
    return NotFoundError(
        f"there is no {what} {change_id!r}",
        hint="`filepact log` shows operations, `filepact review --list` what waits.",
    )

"""Finding rows by what people type: the beginning of an id, a file or a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from filepact.domain.operation import Operation, Proposal
from filepact.errors import InvalidParamsError, NotFoundError
from filepact.store.rows import OF_SESSION, of_session, to_path, to_text

if TYPE_CHECKING:
    from filepact.domain.document import RootId
    from filepact.domain.operation import ProposalState, Session
    from filepact.store.connection import View

__all__ = ["by_id", "finished", "in_state", "missing", "only"]

_NAMED_AT_MOST = 5
_LEAST = 4  # characters of an id that stand for it
_SHORTEST = 4  # characters that say which one is meant: all ids begin alike

_ANY = "SELECT 1 FROM operation_change c WHERE "
_ALL = "WHERE o.state <> 'intended' AND "
# The limit stands inside, so that an index read from its end gives the newest at once.
_AMONG = (
    "WHERE o.seq IN (SELECT DISTINCT c.owner FROM operation_change c"
    " CROSS JOIN operation t ON t.seq = c.owner WHERE t.state <> 'intended' AND "
)

Found = TypeVar("Found", Operation, Proposal)


def finished(
    view: View,
    root: RootId | None,
    path: str | None,
    session: Session | None,
    after_seq: int,
    before_seq: int | None,
    limit: int,
    newest_first: bool,
) -> tuple[str, list[Any]]:
    """The end of a query for finished operations; the arguments as in the journal's protocol."""
    order = "DESC" if newest_first else "ASC"
    conditions, values = _touched(view, root, path)
    among = bool(conditions)
    column = "c.owner" if among else "o.seq"
    if session is not None:
        conditions.append(OF_SESSION.replace("{owner}", "t" if among else "o"))
        values += of_session(session)
    conditions.append(f"{column} > ?")
    values.append(after_seq)
    if before_seq is not None:
        conditions.append(f"{column} < ?")
        values.append(before_seq)
    tail = " AND ".join(conditions) + f" ORDER BY {column} {order} LIMIT ?"
    values.append(limit)
    return (f"{_AMONG}{tail}) ORDER BY o.seq {order}" if among else _ALL + tail), values


def _touched(view: View, root: RootId | None, path: str | None) -> tuple[list[str], list[Any]]:
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
        if view.one(_ANY + inside + " LIMIT 1", [*values, *below]) is None:
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


def only(found: tuple[Found, ...], change_id: str, what: str) -> Found:
    """The one that was meant: of exactly this id, else the only one that begins so."""
    if not change_id or not found:
        raise missing(change_id, what)
    if len(found) > 1 and found[0].id != change_id:
        names = ", ".join(one.id for one in found[:_NAMED_AT_MOST])
        more = " and others" if len(found) > _NAMED_AT_MOST else ""
        raise InvalidParamsError(
            f"several begin with {change_id!r}: {names}{more}",
            hint="Give more of the id.",
        )
    if found[0].id != change_id and len(change_id) < _LEAST:
        # All ids begin alike, so less of one would mean whatever happens to be there alone.
        raise InvalidParamsError(
            f"{change_id!r} is too little of the id of {what} {found[0].id}",
            hint=f"Give at least {_LEAST} characters of it.",
        )
    if len(change_id) < _SHORTEST and found[0].id != change_id:
        raise InvalidParamsError(
            f"{change_id!r} is too short to say which {what} is meant",
            hint=f"Give at least {_SHORTEST} characters of the id.",
        )
    return found[0]


def missing(change_id: str, what: str) -> NotFoundError:
    return NotFoundError(
        f"there is no {what} {change_id!r}",
        hint="`filepact log` shows operations, `filepact status` what waits.",
    )

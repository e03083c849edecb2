"""Finding rows by what people type: the beginning of an id, a file or a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from filepact.domain.operation import Operation, Proposal
from filepact.errors import InvalidParamsError, NotFoundError
from filepact.store.rows import to_path, to_text

if TYPE_CHECKING:
    from filepact.domain.document import RootId

__all__ = ["by_id", "missing", "only", "touched"]

_NAMED_AT_MOST = 5

Found = TypeVar("Found", Operation, Proposal)


def touched(root: RootId | None, path: str | None) -> tuple[str, list[Any]]:
    """A condition on operations ``o``, with its values; empty when all of them are meant."""
    conditions: list[str] = []
    values: list[Any] = []
    if root is not None:
        conditions.append("c.root = (SELECT number FROM root WHERE path = ?)")
        values.append(to_path(root))
    if path not in (None, "", "."):
        stored = to_path(str(path).rstrip("/"))
        # "0" is the character after "/", so the range holds all that begins with "path/".
        conditions.append("(c.path = ? OR (c.path > ? AND c.path < ?))")
        values += [stored, stored + b"/", stored + b"0"]
    if not conditions:
        return "", []
    query = "o.seq IN (SELECT c.owner FROM operation_change c WHERE "
    return query + " AND ".join(conditions) + ")", values


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
    return found[0]


def missing(change_id: str, what: str) -> NotFoundError:
    return NotFoundError(
        f"there is no {what} {change_id!r}",
        hint="`filepact log` shows operations, `filepact status` what waits.",
    )

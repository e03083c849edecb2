"""Many operations begun, or ended, in a handful of statements.

What is common is done here: a change whose contents are given, by a session and in a folder that
are known or new.  Everything else is left to be done by itself, and comes to the same.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import StoreFencedError
from filepact.store.content import LONGEST_CHAIN, pack, pack_best
from filepact.store.rows import (
    from_text,
    missing,
    root_number,
    session_number,
    to_path,
    to_row,
)
from filepact.store.states import to_states
from filepact_fleet.postgres_words import to_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.domain.change import FileChange
    from filepact.domain.operation import Operation, OperationState, Session
    from filepact.store.rows import Sides
    from filepact_fleet.postgres_words import PostgresTransaction

    Begun = tuple[Operation, Mapping[str, bytes]]
    Ended = tuple[str, OperationState, str]

__all__ = ["ALONE", "FENCED", "begin_together", "fenced_off", "finish_together"]

ALONE: Final = object()
"""The answer for what has to be done by itself."""

FENCED: Final = (
    "(state = 'intended' AND NOT (holder = current_setting('filepact.holder')"
    " AND token = current_setting('filepact.token')::bigint))"
)
"""Whether an operation is another's to end."""

_KNOWN: Final = (
    "SELECT id FROM proposal WHERE id = ANY(%(ids)s::text[])"
    " UNION ALL SELECT id FROM operation WHERE id = ANY(%(ids)s::text[])"
)
_KEPT: Final = (
    "SELECT encode(id, 'hex'), number, depth, kept FROM content WHERE id = ANY(%s::bytea[])"
)
_ROOTS: Final = "SELECT path, number FROM root WHERE path = ANY(%s::bytea[])"
_SESSIONS: Final = (
    "SELECT number, id, actor_kind, actor_name, actor_version FROM session"
    " WHERE id = ANY(%s::text[])"
)
_PLACES: Final = (
    "UPDATE workspace SET seq = seq + %s"
    " WHERE number = current_setting('filepact.workspace')::bigint RETURNING seq - %s"
)
_NUMBERS: Final = (
    "SELECT nextval(pg_get_serial_sequence('content_all', 'number')) FROM generate_series(1, %s)"
)
_CONTENTS: Final = (
    "INSERT INTO content (number, id, size, base, depth, stored, last_seq, kept)"
    " SELECT u.*, 'row' FROM unnest(%s::bigint[], %s::bytea[], %s::bigint[], %s::bigint[],"
    " %s::integer[], %s::bigint[], %s::bigint[]) u"
)
_IMAGES: Final = "INSERT INTO image SELECT * FROM unnest(%s::bigint[], %s::bytea[])"
_OPERATIONS: Final = (
    "INSERT INTO operation (seq, id, kind, session, tool, summary, created, target, approved_by,"
    " note, added, removed, turn, call, logged, state) SELECT u.*, 'intended' FROM unnest(%s::bigint[],"
    " %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::float8[], %s::text[],"
    " %s::text[], %s::text[], %s::integer[], %s::integer[], %s::text[], %s::text[], %s::bigint[]) u"
)
_CHANGES: Final = (
    "INSERT INTO operation_change SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::bigint[],"
    " %s::bytea[], %s::bigint[], %s::integer[], %s::bigint[], %s::integer[],"
    " %s::bytea[], %s::bytea[])"
)
_DIRECTORIES: Final = (
    "INSERT INTO operation_directory SELECT * FROM unnest(%s::bigint[], %s::integer[],"
    " %s::bigint[], %s::bytea[])"
)
_USED: Final = (
    "UPDATE content SET last_seq = u.seq FROM unnest(%s::bigint[], %s::bigint[]) u (number, seq)"
    " WHERE content.number = u.number"
)
_TO_END: Final = f"SELECT id, seq, state, kind, {FENCED} FROM operation WHERE id = ANY(%s::text[])"
_ENDED: Final = (
    "UPDATE operation SET state = u.state, note = u.note"
    " FROM unnest(%s::bigint[], %s::text[], %s::text[]) u (seq, state, note)"
    " WHERE operation.seq = u.seq"
)


def fenced_off(change_id: str) -> StoreFencedError:
    """The error for an operation that another gateway has taken over."""
    return StoreFencedError(
        f"{change_id} was taken over by another gateway, because this one was silent",
        hint="`filepact log` shows what became of it.",
        change_id=change_id,
    )


class _Contents:
    """Contents that are kept, and those that are going to be, by their ids."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self.kept = {name: (number, depth) for name, number, depth, kept in rows if kept != "gone"}
        self.gone = {name for name, _, _, kept in rows if kept == "gone"}
        # By a number of their own until the database has given one, counted down from -1.
        self.fresh: list[tuple[str, int, bytes, int | None, int]] = []

    def sides(self, changes: Iterable[FileChange], given: Mapping[str, bytes]) -> list[Sides]:
        """Both contents of each change by number; each is kept against what was before.

        Raises:
            LookupError: One has to be looked into, or was given up.
            ValueError: The bytes of one are missing.
        """
        before_all = len(self.fresh)
        try:
            return [self._pair(one, given) for one in changes]
        except (LookupError, ValueError):
            for name, *_ in self.fresh[before_all:]:
                del self.kept[name]
            del self.fresh[before_all:]
            raise

    def _pair(self, change: FileChange, given: Mapping[str, bytes]) -> Sides:
        before = after = None
        if change.before is not None:
            before = self._number(change.before.content, given, None)
        if change.after is not None:
            base = change.before.content if change.before is not None else None
            after = self._number(change.after.content, given, base)
        return before, after

    def _number(self, name: str, given: Mapping[str, bytes], base: str | None) -> int:
        if name in self.gone:
            raise LookupError(name)
        if name in self.kept:
            return int(self.kept[name][0])
        data = given.get(name)
        if data is None:
            raise ValueError(f"the bytes of content {name} were not given")
        packed, used, depth = pack(data) if base is None else b"", None, 0
        if base is not None:
            number, deep = self.kept[base]
            if base not in given:
                raise LookupError(base)
            packed, well = pack_best(data, given[base])
            if well and deep < LONGEST_CHAIN:
                used, depth = number, deep + 1
            elif well:
                packed = pack(data)
        self.fresh.append((name, len(data), packed, used, depth))
        self.kept[name] = (-len(self.fresh), depth)
        return -len(self.fresh)


def begin_together(tx: PostgresTransaction, given: list[Begun]) -> list[Any]:
    """Begin operations; for each its place, an exception, or `ALONE`."""
    ids = Counter(one.id for one, _ in given)
    sides_of = [
        side.content
        for one, _ in given
        for change in one.changes.changes
        for side in (change.before, change.after)
        if side is not None
    ]
    known_now = tx.ask(_KNOWN, {"ids": list(ids)})
    kept_now = tx.ask(_KEPT, ([bytes.fromhex(name) for name in dict.fromkeys(sides_of)],))
    known = {row[0] for row in known_now.rows()}
    contents = _Contents(kept_now.rows())
    answers: list[Any] = [ALONE] * len(given)
    chosen: list[tuple[int, Operation, list[Sides]]] = []
    for at, (one, data) in enumerate(given):
        if one.id in known or ids[one.id] > 1:
            continue
        try:
            chosen.append((at, one, contents.sides(one.changes.changes, data)))
        except LookupError:
            continue
        except ValueError as error:
            answers[at] = error
    if chosen:
        first = _insert(tx, chosen, contents)
        for place, (at, _, _) in enumerate(chosen):
            answers[at] = first + place
    return answers


def _insert(
    tx: PostgresTransaction, chosen: list[tuple[int, Operation, list[Sides]]], contents: _Contents
) -> int:
    """Insert operations that follow one another; the place of the first."""
    places = tx.ask(_PLACES, (len(chosen), len(chosen)))
    numbered = tx.ask(_NUMBERS, (len(contents.fresh),))
    roots = _roots(tx, [one for _, one, _ in chosen])
    sessions = _sessions(tx, [one.session for _, one, _ in chosen])
    first = int(places.rows()[0][0]) + 1
    numbers = [row[0] for row in numbered.rows()]

    def number(one: int | None) -> int | None:
        return numbers[-1 - one] if one is not None and one < 0 else one

    used: dict[int, int] = {}
    operations, changes, directories = [], [], []
    for seq, (_, one, sides) in enumerate(chosen, first):
        operations.append((seq, *_operation(one, sessions[one.session])))
        for position, (change, pair) in enumerate(zip(one.changes.changes, sides, strict=True)):
            before, after = map(number, pair)
            used |= {side: seq for side in (before, after) if side is not None}
            changes.append(
                (
                    *(seq, position, roots[change.path.root], to_path(change.path.path)),
                    *to_states(change, before, after),
                )
            )
        for position, (root, path) in enumerate(one.directories):
            directories.append((seq, position, roots[root], to_path(path)))
    fresh = [
        (own, bytes.fromhex(name), size, number(base), depth, len(packed), used[own])
        for own, (name, size, packed, base, depth) in zip(numbers, contents.fresh, strict=True)
    ]
    if fresh:
        tx.ask(_CONTENTS, _columns(fresh))
        tx.ask(_IMAGES, (numbers, [one[2] for one in contents.fresh]))
    tx.ask(_OPERATIONS, _columns(operations))
    if changes:
        tx.ask(_CHANGES, _columns(changes))
    if directories:
        tx.ask(_DIRECTORIES, _columns(directories))
    old = {one: seq for one, seq in used.items() if one not in set(numbers)}
    if old:
        tx.ask(_USED, (list(old), list(old.values())))
    return first


def _operation(one: Operation, session: int) -> tuple[Any, ...]:
    return to_row(
        one.id,
        one.kind,
        session,
        one.tool,
        one.summary,
        one.created,
        one.target,
        one.approved_by,
        one.note,
        *(one.lines or (None, None)),
        one.session.turn,
        one.session.call,
        one.logged,
    )


def _columns(rows: list[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """Rows as one list for each column."""
    return tuple([to_stored(one) for one in column] for column in zip(*rows, strict=True))


def _roots(tx: PostgresTransaction, operations: list[Operation]) -> dict[str, int]:
    wanted = dict.fromkeys(
        root
        for one in operations
        for root in (
            *(change.path.root for change in one.changes.changes),
            *(root for root, _ in one.directories),
        )
    )
    rows = tx.ask(_ROOTS, ([to_path(one) for one in wanted],)).rows()
    found = {from_text(path): number for path, number in rows}
    return {one: found.get(one) or root_number(tx, one) for one in wanted}


def _sessions(tx: PostgresTransaction, sessions: list[Session]) -> dict[Session, int]:
    wanted = dict.fromkeys(sessions)
    ids = [to_stored(to_row(one.id)[0]) for one in wanted]
    found = {tuple(row[1:]): row[0] for row in tx.ask(_SESSIONS, (ids,)).rows()}
    numbers: dict[Session, int] = {}
    for one in wanted:
        actor = one.actor
        number = found.get((one.id, actor.kind, actor.name, actor.version))
        if number is None or one.conversation:
            number = session_number(tx, one)
        numbers[one] = number
    return numbers


def finish_together(tx: PostgresTransaction, given: list[Ended]) -> list[Any]:
    """End operations; for each None, an exception, or `ALONE`."""
    ids = Counter(change_id for change_id, _, _ in given)
    rows = tx.ask(_TO_END, ([to_stored(to_row(one)[0]) for one in ids],)).rows()
    found = {row[0]: row[1:] for row in rows}
    answers: list[Any] = []
    ended: list[tuple[Any, ...]] = []
    for change_id, state, note in given:
        row = found.get(change_id)
        if row is None:
            answers.append(missing(change_id, "operation"))
            continue
        seq, was, kind, fenced = row
        simple = kind not in ("undo", "redo") and state != "rolled_back" and was == "intended"
        if not simple or ids[change_id] > 1:
            answers.append(ALONE)
        elif fenced:
            answers.append(fenced_off(change_id))
        else:
            answers.append(None)
            ended.append(to_row(seq, state, note))
    if ended:
        tx.ask(_ENDED, _columns(ended))
    return answers

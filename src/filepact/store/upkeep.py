"""Upkeep of the journal: how proposals end and what they leave behind, and what is given up for room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.domain.document import RootId
from filepact.domain.operation import JournalStatistics, PruneResult
from filepact.errors import (
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    PendingFullError,
    UserDeniedError,
)
from filepact.store.rows import from_text, missing, root_number, select_proposals, to_path, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from filepact.domain.audit import JournalSummary
    from filepact.domain.operation import Approval, Operation, Proposal, ProposalLimits
    from filepact.store.content import ContentStore
    from filepact.store.transaction import Database, Transaction

__all__ = [
    "OWN",
    "PROPOSED",
    "account",
    "check_room",
    "check_waits",
    "commit_proposal",
    "expire",
    "give_up",
    "has_expired",
    "prune",
    "reject",
    "release",
    "reopen",
    "statistics",
]

OWN: Final = "journal.db"
"""The name of a journal in its state folder."""

_MEGABYTE = 1_000_000

# What proposals that wait give files to hold, in roots by number; what only moves is not counted.
_WAITS = """
SELECT coalesce(sum(a.size), 0)
FROM proposal p JOIN proposal_change c ON c.owner = p.number
LEFT JOIN content a ON a.number = c.after AND NOT EXISTS
    (SELECT 1 FROM proposal_change b WHERE b.owner = c.owner AND b.before = c.after)
WHERE p.state = 'proposed' AND c.root IN {wanted}
"""

# Contents that some settled proposals name, no operation (which would have a place), and no
# proposal that waits.
_THEIRS_ALONE = """
WITH named AS (
    SELECT p.state, c.before AS number FROM proposal p JOIN proposal_change c ON c.owner = p.number
    WHERE p.state = 'proposed' OR p.id IN {wanted}
    UNION ALL
    SELECT p.state, c.after FROM proposal p JOIN proposal_change c ON c.owner = p.number
    WHERE p.state = 'proposed' OR p.id IN {wanted}
)
SELECT number FROM content WHERE kept <> 'gone' AND last_seq = 0
AND number IN (SELECT number FROM named WHERE state <> 'proposed')
AND number NOT IN (SELECT number FROM named WHERE state = 'proposed' AND number IS NOT NULL)
"""


# -- proposals --------------------------------------------------------------------------------


def check_waits(tx: Transaction, change_id: str) -> None:
    """Refuse a proposal that does not wait any more, as `Proposal.check_waits`.

    Raises:
        NotFoundError: There is none of this id.
    """
    found = select_proposals(tx, "WHERE p.id = ?", (to_text(change_id),))
    if not found:
        raise missing(change_id, "proposal")
    found[0].check_waits()


def commit_proposal(tx: Transaction, operation: Operation) -> None:
    """Mark the proposal of an operation as committed, or refuse to do it twice.

    This is the last door: whatever a caller forgets, what is begun in the name of a proposal is
    what that proposal holds.  An attempt of which nothing is on the disk makes way for the next.

    Raises:
        ValueError: The operation is another change than was proposed.
    """
    known = "SELECT 1 FROM proposal WHERE id = ?1 UNION ALL SELECT 1 FROM operation WHERE id = ?1"
    if tx.one(known, (operation.id,)) is None:
        return
    found = select_proposals(tx, "WHERE p.id = ?", (operation.id,))
    begun = tx.one("SELECT seq, state FROM operation WHERE id = ?", (operation.id,))
    waits = bool(found) and found[0].state == "proposed"
    if begun is not None and not (waits and begun[1] == "rolled_back"):
        raise NoChangeError(
            f"{operation.id} was already committed", hint="`filepact log` shows what was done."
        )
    if not found:
        return
    if found[0].state == "rejected":
        why = f": {found[0].reason}" if found[0].reason else ""
        raise UserDeniedError(
            f"{operation.id} was rejected by {found[0].decided_by}{why}",
            hint="Propose something else.",
        )
    found[0].check_waits()
    if found[0].changes.exact != operation.changes.exact:
        raise ValueError(f"{operation.id} was proposed as another change")
    if begun is not None:
        tx.run("DELETE FROM operation_directory WHERE owner = ?", (begun[0],))
        tx.run("DELETE FROM operation_change WHERE owner = ?", (begun[0],))
        tx.run("DELETE FROM operation WHERE seq = ?", (begun[0],))
    tx.run(
        "UPDATE proposal SET state = 'committed', decided_by = ? WHERE id = ?",
        (to_text(operation.approved_by), operation.id),
    )


def account(
    tx: Transaction, name: str, logged: str = "logged", *, drops: bool = False
) -> JournalSummary:
    """A journal's account of its operations and of what is open; arguments as of `JournalSummary`.

    ``logged`` is the number of the record of an operation in the log that is here, in SQL.
    """
    from filepact.domain.audit import JournalSummary  # noqa: PLC0415 - only checks need it

    rows = tx.all("SELECT id, seq, created, {logged} FROM operation".replace("{logged}", logged))
    waiting = tx.all("SELECT id FROM proposal WHERE state = 'proposed'")
    waiting += tx.all("SELECT id FROM session_approval WHERE revoked IS NULL")
    operations = {str(one): (seq, created, number) for one, seq, created, number in rows}
    return JournalSummary(name, operations, frozenset(str(one) for (one,) in waiting), drops)


def reopen(tx: Transaction, change_id: str) -> None:
    """Reopen a proposal whose operation was rolled back."""
    tx.run(
        "UPDATE proposal SET state = 'proposed', decided_by = '' WHERE id = ? AND state = 'committed'",
        (to_text(change_id),),
    )


def reject(tx: Transaction, change_ids: Sequence[str], approval: Approval) -> None:
    """Record that a person rejected proposals; all of them wait."""
    who, why = to_text(str(approval.actor)), to_text(approval.reason)
    tx.many(
        "UPDATE proposal SET state = 'rejected', decided_by = ?, reason = ? WHERE id = ?",
        [(who, why, one) for one in change_ids],
    )


def has_expired(tx: Transaction, before: float) -> bool:
    """Whether something waits that was proposed before a time."""
    old = "SELECT 1 FROM proposal WHERE state = 'proposed' AND created < ? LIMIT 1"
    return tx.one(old, (before,)) is not None


def expire(tx: Transaction, before: float) -> list[str]:
    """Settle what was proposed before a time and waits still; the ids."""
    old = tx.all("SELECT id FROM proposal WHERE state = 'proposed' AND created < ?", (before,))
    tx.many("UPDATE proposal SET state = 'rejected', expired = 1 WHERE id = ?", old)
    return [from_text(one) for (one,) in old]


def check_room(
    tx: Transaction, proposal: Proposal, contents: Mapping[str, bytes], limits: ProposalLimits
) -> None:
    """Refuse a proposal for which there is no room beside those that wait.

    Raises:
        PendingFullError: There are too many of its session, or those in its roots are too large.
    """
    roots = sorted({root_number(tx, path.root) for path in proposal.changes.paths})
    ((size,),) = tx.among(_WAITS, roots)
    ((count,),) = tx.all(
        "SELECT count(*) FROM proposal p JOIN session s ON s.number = p.session"
        " WHERE p.state = 'proposed' AND s.id = ?",
        (to_text(proposal.session.id),),
    )
    changes = proposal.changes.changes
    known = {one.before.content for one in changes if one.before is not None}
    fresh = {one.after.content for one in changes if one.after is not None} - known
    more = sum(len(contents[one]) for one in fresh if one in contents)
    if count < limits.count and size + more <= limits.megabytes * _MEGABYTE:
        return
    raise PendingFullError(
        f"no room for another proposal: {count:,} of this session wait already, and in this folder"
        f" {size / _MEGABYTE:,.1f} MB; this one has {more / _MEGABYTE:,.1f} MB (at most"
        f" {limits.count:,} and {limits.megabytes:,} MB may wait)",
        hint="Nothing was stored. A person has to decide about those that wait, or you take some back.",
        pending=count,
        bytes=size,
    )


def supersede(tx: Transaction, earlier: Sequence[str], by: str, decided: Approval | None) -> None:
    """Settle proposals in whose place another one stands.

    Args:
        tx: The transaction.
        earlier: Their ids.
        by: The id of the other one.
        decided: Who has had it so, and what their author is told of it; None for nobody but the author.
    """
    person, reason = ("", "") if decided is None else (str(decided.actor), decided.reason)
    tx.many(
        "UPDATE proposal SET state = 'rejected', superseded_by = ?, decided_by = ?, reason = ?"
        " WHERE id = ?",
        [(by, to_text(person), to_text(reason), one) for one in earlier],
    )


def release(tx: Transaction, contents: ContentStore, change_ids: Sequence[str]) -> list[Path]:
    """Give up contents that only these settled proposals needed.

    Returns:
        The files that held some of it, to be removed once this is on the disk.
    """
    if not change_ids:
        return []
    free = [one for (one,) in tx.among(_THEIRS_ALONE, change_ids)]
    files = contents.files(tx, free)
    give_up(tx, contents, free)
    return files


_BATCH = 2_048

# What proposals that wait need; what settled ones needed alone has gone with them.
PROPOSED = """
SELECT c.before FROM proposal p JOIN proposal_change c ON c.owner = p.number
WHERE p.state = 'proposed' AND c.before IS NOT NULL
UNION
SELECT c.after FROM proposal p JOIN proposal_change c ON c.owner = p.number
WHERE p.state = 'proposed' AND c.after IS NOT NULL
"""


# -- room -------------------------------------------------------------------------------------


def statistics(database: Database) -> JournalStatistics:
    """Figures of the whole journal."""

    def work(tx: Transaction) -> tuple[int, int, int, int, float | None]:
        return (
            tx.value("SELECT count(*) FROM operation"),
            tx.value("SELECT count(*) FROM proposal WHERE state = 'proposed'"),
            tx.value("SELECT count(*) FROM content WHERE kept <> 'gone'"),
            tx.value("SELECT coalesce(sum(stored), 0) FROM content WHERE kept = 'file'"),
            _oldest(tx),
        )

    operations, proposals, contents, beside, oldest = database.read(work)
    return JournalStatistics(operations, proposals, contents, database.size() + beside, oldest)


def prune(
    database: Database, contents: ContentStore, *, keep_bytes: int, horizon: float
) -> PruneResult:
    """Give up contents, oldest last use first, until the rest takes ``keep_bytes`` or less.

    Many short transactions, so that other processes go on between them.  What operations need that
    were made since ``horizon`` stays.
    """
    before, barrier, candidates = database.read(lambda tx: _candidates(tx, horizon))
    total = before
    dropped = at = 0
    least = 1
    while total > keep_bytes and at < len(candidates):
        batch, excess = candidates[at : at + _BATCH], total - keep_bytes

        def work(
            tx: Transaction, batch: list[int] = batch, excess: int = excess, least: int = least
        ) -> tuple[int, int, int]:
            chosen, seen = _choose(_droppable(tx, batch, barrier), excess, least)
            return len(chosen), seen, give_up(tx, contents, chosen)

        chosen, seen, growth = database.write(work, durable=True)
        total += growth
        dropped += chosen
        at += seen
        # What needed them is whole now and takes some of the room again; with ever larger steps
        # that is made up for in few transactions.
        least = min(2 * least, _BATCH)
    # In a transaction of its own: the rows that told of these files are gone from the disk now.
    database.write(contents.remove_strays, durable=True)
    database.shrink()
    return PruneResult(dropped, before - total, total, database.read(_oldest))


def _candidates(tx: Transaction, horizon: float) -> tuple[int, int, list[int]]:
    """The size of all contents, the place from which on they stay, and those before it by last use."""
    barrier = _barrier(tx, horizon)
    rows = tx.all(
        "SELECT number FROM content WHERE kept <> 'gone' AND last_seq < ?"
        " ORDER BY last_seq, number",
        (barrier,),
    )
    total = int(tx.value("SELECT coalesce(sum(stored), 0) FROM content"))
    return total, barrier, [number for (number,) in rows]


def _barrier(tx: Transaction, horizon: float) -> int:
    """The place of the first operation whose contents must stay, else the next free place."""
    return int(
        tx.value(
            "SELECT coalesce(min(seq), (SELECT coalesce(max(seq), 0) + 1 FROM operation))"
            " FROM operation WHERE state = 'intended' OR created >= ?",
            (horizon,),
        )
    )


def _droppable(tx: Transaction, numbers: list[int], barrier: int) -> list[tuple[int, int | None]]:
    """The contents with their stored bytes, or None for one that must stay."""
    proposed = {number for (number,) in tx.all(PROPOSED)}
    stored = dict(
        tx.among(
            "SELECT number, stored FROM content WHERE kept <> 'gone' AND last_seq < ?2"
            " AND number IN {wanted}",
            numbers,
            barrier,
        )
    )
    return [(n, None if n in proposed else stored.get(n)) for n in numbers]


def _choose(batch: list[tuple[int, int | None]], excess: int, least: int) -> tuple[list[int], int]:
    """The first contents that make up for the excess, and how many were looked at."""
    chosen: list[int] = []
    for seen, (number, stored) in enumerate(batch):
        if excess <= 0 and len(chosen) >= least:
            return chosen, seen
        if stored is not None:
            chosen.append(number)
            excess -= stored
    return chosen, len(batch)


def give_up(tx: Transaction, contents: ContentStore, numbers: list[int]) -> int:
    """Drop contents; by how many bytes the stored contents have grown, so mostly negative."""
    growth = 0
    # What is kept must not need what goes.
    for (number,) in tx.among(
        "SELECT number FROM content WHERE base IN {wanted} AND number NOT IN {wanted}", numbers
    ):
        growth += contents.make_whole(tx, number)
    for number in numbers:
        growth -= contents.drop(tx, number)
    return growth


def _oldest(tx: Transaction) -> float | None:
    """The start of the first operation after the last one that lost a content."""
    row = tx.one(
        "SELECT created FROM operation WHERE seq >"
        " (SELECT coalesce(max(last_seq), 0) FROM content WHERE kept = 'gone')"
        " ORDER BY seq LIMIT 1"
    )
    return float(row[0]) if row is not None else None


_OF_ROOTS: Final = (
    *("proposal_change", "operation_change", "operation_directory"),
    *("checkpoint", "question", "session_approval"),
)


def move_root(tx: Transaction, old: RootId, new: RootId) -> int:
    """Have all that is known of a folder, and of those in it, belong to where it lies now.

    Returns:
        How many operations changed something there, those that were done in the new place included.

    Raises:
        NotFoundError: Nothing is known of it.
        InvalidParamsError: Both places have a checkpoint of one name.
    """
    rows = tx.all("SELECT number, path FROM root")
    numbers = {from_text(path): int(number) for number, path in rows}
    moved = [one for one in numbers if one == old or one.startswith(f"{old}/")]
    if not moved:
        raise NotFoundError(
            f"nothing was done in {old}",
            hint="`filepact status` names a folder that was moved here.",
        )
    for one in moved:
        number, place = numbers[one], f"{new}{one[len(old) :]}"
        here = numbers.get(place)
        if here is not None:
            same = "SELECT a.name FROM checkpoint a JOIN checkpoint b ON a.name = b.name"
            both = tx.one(f"{same} WHERE a.root = ? AND b.root = ?", (number, here))
            if both is not None:
                raise InvalidParamsError(
                    f"both folders have a checkpoint {from_text(both[0])!r}",
                    hint="Nothing was changed. Their histories cannot be joined.",
                )
            for table in _OF_ROOTS:
                tx.run(f"UPDATE {table} SET root = ? WHERE root = ?", (number, here))  # noqa: S608
            tx.run("DELETE FROM root WHERE number = ?", (here,))
        tx.run("UPDATE root SET path = ? WHERE number = ?", (to_path(RootId(place)), number))
    count = "SELECT count(DISTINCT owner) FROM operation_change WHERE root = ?"
    return int(tx.value(count, (numbers[moved[0]],)))

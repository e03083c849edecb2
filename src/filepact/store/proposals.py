"""What becomes of proposals: whether one still waits, who used it up, and what it leaves behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from filepact.errors import NoChangeError, PendingFullError, UserDeniedError
from filepact.store.lookup import missing
from filepact.store.rows import from_text, root_number, select_proposals, to_text
from filepact.store.upkeep import give_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from filepact.domain.operation import Approval, Limits, Operation, Proposal
    from filepact.store.connection import View
    from filepact.store.content import Contents

__all__ = [
    "check_room",
    "check_waits",
    "commit_proposal",
    "expire",
    "has_expired",
    "reject",
    "release",
    "reopen",
]

_MEGABYTE = 1_000_000

# What proposals that wait give files to hold, in roots by number; what only moves is not counted.
_WAITS = """
SELECT count(DISTINCT p.number), coalesce(sum(a.size), 0)
FROM proposal p JOIN proposal_change c ON c.owner = p.number
LEFT JOIN content a ON a.number = c.after AND NOT EXISTS
    (SELECT 1 FROM proposal_change b WHERE b.owner = c.owner AND b.before = c.after)
WHERE p.state = 'proposed' AND c.root IN (SELECT value FROM json_each(?))
"""

# Contents that some settled proposals name, no operation (which would have a place), and no
# proposal that waits.
_THEIRS_ALONE = """
WITH named AS (
    SELECT p.state, c.before AS number FROM proposal p JOIN proposal_change c ON c.owner = p.number
    WHERE p.state = 'proposed' OR p.id IN (SELECT value FROM json_each(?1))
    UNION ALL
    SELECT p.state, c.after FROM proposal p JOIN proposal_change c ON c.owner = p.number
    WHERE p.state = 'proposed' OR p.id IN (SELECT value FROM json_each(?1))
)
SELECT number FROM content WHERE kept <> 'gone' AND last_seq = 0
AND number IN (SELECT number FROM named WHERE state <> 'proposed')
AND number NOT IN (SELECT number FROM named WHERE state = 'proposed' AND number IS NOT NULL)
"""


def check_waits(view: View, change_id: str) -> None:
    """As `Proposal.check_waits`.

    Raises:
        NotFoundError: There is none of this id.
    """
    found = select_proposals(view, "WHERE p.id = ?", (to_text(change_id),))
    if not found:
        raise missing(change_id, "proposal")
    found[0].check_waits()


def commit_proposal(view: View, operation: Operation) -> None:
    """Use up the proposal of an operation, or refuse to do a thing twice.

    This is the last door: whatever a caller forgets, what is begun in the name of a proposal is
    what that proposal holds.  An attempt of which nothing is on the disk makes way for the next.

    Raises:
        ValueError: The operation is another change than was proposed.
    """
    found = select_proposals(view, "WHERE p.id = ?", (to_text(operation.id),))
    begun = view.one("SELECT seq, state FROM operation WHERE id = ?", (operation.id,))
    waits = bool(found) and found[0].state == "proposed"
    if begun is not None and not (waits and begun[1] == "rolled_back"):
        raise NoChangeError(
            f"{operation.id} was already committed",
            hint="`filepact log` shows what was done.",
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
        view.run("DELETE FROM operation_directory WHERE owner = ?", (begun[0],))
        view.run("DELETE FROM operation_change WHERE owner = ?", (begun[0],))
        view.run("DELETE FROM operation WHERE seq = ?", (begun[0],))
    view.run(
        "UPDATE proposal SET state = 'committed', decided_by = ? WHERE id = ?",
        (to_text(operation.approved_by), operation.id),
    )


def reopen(view: View, change_id: str) -> None:
    """Have a proposal wait again, of which nothing is on the disk after all."""
    view.run(
        "UPDATE proposal SET state = 'proposed', decided_by = '' WHERE id = ? AND state = 'committed'",
        (to_text(change_id),),
    )


def reject(view: View, change_ids: Sequence[str], approval: Approval) -> None:
    """Write down a person's no; it is known that all of these wait."""
    who, why = to_text(str(approval.actor)), to_text(approval.reason)
    view.many(
        "UPDATE proposal SET state = 'rejected', decided_by = ?, reason = ? WHERE id = ?",
        [(who, why, one) for one in change_ids],
    )


def has_expired(view: View, before: float) -> bool:
    """Whether something waits that was proposed before a time."""
    old = "SELECT 1 FROM proposal WHERE state = 'proposed' AND created < ? LIMIT 1"
    return view.one(old, (before,)) is not None


def expire(view: View, before: float) -> list[str]:
    """Settle what was proposed before a time and waits still; the ids."""
    old = view.all("SELECT id FROM proposal WHERE state = 'proposed' AND created < ?", (before,))
    view.many("UPDATE proposal SET state = 'rejected', expired = 1 WHERE id = ?", old)
    return [from_text(one) for (one,) in old]


def check_room(
    view: View, proposal: Proposal, contents: Mapping[str, bytes], limits: Limits
) -> None:
    """Refuse a proposal for which there is no room beside those that wait.

    Raises:
        PendingFullError: There are too many in its roots, or they are too large.
    """
    roots = sorted({root_number(view, path.root) for path in proposal.changes.paths})
    count, size = view.all(_WAITS, (json.dumps(roots),))[0]
    changes = proposal.changes.changes
    known = {one.before.content for one in changes if one.before is not None}
    fresh = {one.after.content for one in changes if one.after is not None} - known
    more = sum(len(contents[one]) for one in fresh if one in contents)
    if count < limits.count and size + more <= limits.megabytes * _MEGABYTE:
        return
    raise PendingFullError(
        f"no room for another proposal: {count:,} wait already, with {size / _MEGABYTE:,.1f} MB,"
        f" and this one has {more / _MEGABYTE:,.1f} MB (at most {limits.count:,} and"
        f" {limits.megabytes:,} MB may wait)",
        hint="Nothing was stored. A person has to decide about those that wait, or those be taken"
        " back.",
        pending=count,
        bytes=size,
    )


def release(view: View, contents: Contents, change_ids: Sequence[str]) -> list[Path]:
    """Give up what only these settled proposals needed.

    Returns:
        The files that held some of it, to be removed once this is on the disk.
    """
    if not change_ids:
        return []
    free = [one for (one,) in view.all(_THEIRS_ALONE, (json.dumps(list(change_ids)),))]
    files = contents.files(view, free)
    give_up(view, contents, free)
    return files

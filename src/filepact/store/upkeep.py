"""How large the journal is, and making it smaller without losing what may still be needed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from filepact.domain.figures import Pruned, Statistics

if TYPE_CHECKING:
    from filepact.store.connection import Database, View
    from filepact.store.content import Contents

__all__ = ["give_up", "prune", "shrink", "statistics"]

_BATCH = 2_048
_PAGES = 2_000

# What proposals that wait need; what settled ones needed alone has gone with them.
_PROPOSED = """
SELECT c.before FROM proposal p JOIN proposal_change c ON c.owner = p.number
WHERE p.state = 'proposed' AND c.before IS NOT NULL
UNION
SELECT c.after FROM proposal p JOIN proposal_change c ON c.owner = p.number
WHERE p.state = 'proposed' AND c.after IS NOT NULL
"""


def statistics(database: Database) -> Statistics:
    """Figures of the whole journal."""
    with database.reading() as view:
        operations = view.value("SELECT count(*) FROM operation")
        proposals = view.value("SELECT count(*) FROM proposal WHERE state = 'proposed'")
        contents = view.value("SELECT count(*) FROM content WHERE kept <> 'gone'")
        beside = view.value("SELECT coalesce(sum(stored), 0) FROM content WHERE kept = 'file'")
        oldest = _oldest(view)
    return Statistics(operations, proposals, contents, database.size() + beside, oldest)


def prune(
    database: Database, contents: Contents, *, keep_bytes: int, keep_seconds: float
) -> Pruned:
    """Give up contents, oldest last use first, until the rest takes ``keep_bytes`` or less.

    Many short transactions, so that other processes go on between them.
    """
    horizon = time.time() - keep_seconds
    with database.reading() as view:
        before = total = int(view.value("SELECT coalesce(sum(stored), 0) FROM content"))
        barrier = _barrier(view, horizon)
        candidates = [
            number
            for (number,) in view.all(
                "SELECT number FROM content WHERE kept <> 'gone' AND last_seq < ?"
                " ORDER BY last_seq, number",
                (barrier,),
            )
        ]
    dropped = at = 0
    least = 1
    while total > keep_bytes and at < len(candidates):
        with database.writing(durable=True) as view:
            chosen, seen = _choose(
                _droppable(view, candidates[at : at + _BATCH], barrier),
                total - keep_bytes,
                least,
            )
            total += give_up(view, contents, chosen)
        dropped += len(chosen)
        at += seen
        # What needed them is whole now and takes some of the room again; with ever larger steps
        # that is made up for in few transactions.
        least = min(2 * least, _BATCH)
    # In a transaction of its own: the rows that told of these files are gone from the disk now.
    with database.writing(durable=True) as view:
        contents.remove_strays(view)
    shrink(database)
    with database.reading() as view:
        return Pruned(dropped, before - total, total, _oldest(view))


def _barrier(view: View, horizon: float) -> int:
    """The place of the first operation whose contents must stay, else the next free place."""
    return int(
        view.value(
            "SELECT coalesce(min(seq), (SELECT coalesce(max(seq), 0) + 1 FROM operation))"
            " FROM operation WHERE state = 'intended' OR created >= ?",
            (horizon,),
        )
    )


def _droppable(view: View, numbers: list[int], barrier: int) -> list[tuple[int, int | None]]:
    """The contents with their stored bytes, or None for one that must stay."""
    proposed = {number for (number,) in view.all(_PROPOSED)}
    stored = dict(
        view.all(
            "SELECT number, stored FROM content WHERE kept <> 'gone' AND last_seq < ?"
            " AND number IN (SELECT value FROM json_each(?))",
            (barrier, json.dumps(numbers)),
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


def give_up(view: View, contents: Contents, numbers: list[int]) -> int:
    """Drop contents; by how many bytes the stored contents have grown, so mostly negative."""
    growth = 0
    # What is kept must not need what goes.
    for (number,) in view.all(
        "SELECT number FROM content WHERE base IN (SELECT value FROM json_each(?1))"
        " AND number NOT IN (SELECT value FROM json_each(?1))",
        (json.dumps(numbers),),
    ):
        growth += contents.make_whole(view, number)
    for number in numbers:
        growth -= contents.drop(view, number)
    return growth


def _oldest(view: View) -> float | None:
    """When the first operation was begun after the last one that lost a content."""
    row = view.one(
        "SELECT created FROM operation WHERE seq >"
        " (SELECT coalesce(max(last_seq), 0) FROM content WHERE kept = 'gone')"
        " ORDER BY seq LIMIT 1"
    )
    return float(row[0]) if row is not None else None


def shrink(database: Database) -> None:
    """Give free pages back to the disk."""
    before, free = -1, 0
    while free != before:
        with database.writing(durable=False) as view:
            before = view.value("PRAGMA freelist_count")
            view.run(f"PRAGMA incremental_vacuum({_PAGES})")
            free = view.value("PRAGMA freelist_count")
    database.shorten_log()

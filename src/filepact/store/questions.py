"""What agents asked and told as rows: the newest of them, for they are many and small."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.asked import Named, Question
from filepact.domain.document import RootId
from filepact.store.rows import (
    from_text,
    root_number,
    session_number,
    to_path,
    to_session,
    to_text,
)

if TYPE_CHECKING:
    from filepact.store.connection import View

__all__ = ["KEPT", "insert_question", "select_questions"]

KEPT: Final = 10_000
"""The newest so many are kept."""

_QUESTIONS: Final = (
    "SELECT q.number, q.asked, s.id, s.actor_kind, s.actor_name, s.actor_version, r.path, q.title,"
    " q.action, q.verdict, q.decided_by, q.how, q.more"
    " FROM question q JOIN session s ON s.number = q.session JOIN root r ON r.number = q.root"
    " WHERE (?1 IS NULL OR r.path = ?1) AND (?2 IS NULL OR s.id = ?2)"
    " AND (q.verdict = 'allowed' AND q.how = 'read') = ?3"
    " ORDER BY q.number DESC LIMIT ?4"
)
_FILES: Final = (
    "SELECT owner, path, added, removed FROM question_file"
    " WHERE owner IN (SELECT value FROM json_each(?)) ORDER BY owner, position"
)


def insert_question(view: View, question: Question, *, kept: int = KEPT) -> None:
    """Insert one, and give up what is older than the newest ``kept``."""
    number = view.value(
        "INSERT INTO question (asked, session, root, title, action, verdict, decided_by, how, more)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            question.when,
            session_number(view, question.session),
            root_number(view, question.root),
            to_text(question.title),
            question.action,
            question.verdict,
            to_text(question.by),
            to_text(question.how),
            question.more,
        ),
    )
    view.many(
        "INSERT INTO question_file VALUES (?, ?, ?, ?, ?)",
        [
            (number, position, to_path(file.path), file.added, file.removed)
            for position, file in enumerate(question.files)
        ],
    )
    # Only the oldest are ever given up, so that the numbers of the others have no holes.
    view.run("DELETE FROM question WHERE number <= ?", (number - kept,))


def select_questions(
    view: View, root: RootId | None, session: str | None, limit: int, *, reads: bool
) -> tuple[Question, ...]:
    """The newest first; a negative limit is none."""
    rows = view.all(
        _QUESTIONS,
        (
            None if root is None else to_path(root),
            None if session is None else to_text(session),
            reads,
            limit,
        ),
    )
    files: dict[int, list[Named]] = {}
    for owner, path, *lines in view.all(_FILES, (json.dumps([row[0] for row in rows]),)):
        files.setdefault(owner, []).append(Named(from_text(path), *lines))
    return tuple(_question(row, tuple(files.get(row[0], ()))) for row in rows)


def _question(row: tuple[Any, ...], files: tuple[Named, ...]) -> Question:
    return Question(
        when=row[1],
        session=to_session(row[2:6]),
        root=RootId(from_text(row[6])),
        title=from_text(row[7]),
        action=row[8],
        files=files,
        verdict=row[9],
        by=from_text(row[10]),
        how=from_text(row[11]),
        more=row[12],
    )

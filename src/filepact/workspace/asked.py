"""What agents asked a person for, and told of their own work, in this workspace's folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filepact.domain.asked import Question
    from filepact.domain.document import WorkspacePath
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import Store

__all__ = ["Asked"]


class Asked:
    """The record of questions and reports.

    Args:
        guard: The roots.
        store: The journal.
    """

    def __init__(self, guard: Guard, store: Store) -> None:
        self._guard = guard
        self._store = store

    def note(self, question: Question) -> None:
        """Keep a question with its answer, or a report."""
        self._store.note(question)

    def questions(
        self, *, path: str | None = None, session: str | None = None, limit: int | None = 50
    ) -> tuple[Question, ...]:
        """What is known of sessions that work in this workspace's roots, newest first.

        Args:
            path: Only what names this file, or a file beneath this folder.
            session: Only those of the session with this id.
            limit: At most so many; None for all.

        Raises:
            PathBlockedError: The path leads outside.
        """
        named: WorkspacePath | None = None
        if path is not None:
            named = self._guard.find(path, "list").path
        most = limit if named is None else None
        found = [
            question
            for root in self._guard.roots
            for question in self._store.questions(root=root.path, session=session, limit=most)
            if named is None
            or question.concerns(named.path if named.root == question.root else named.absolute)
        ]
        found.sort(key=lambda question: -question.when)
        return tuple(found[:limit])

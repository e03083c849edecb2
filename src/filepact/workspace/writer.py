"""Writes change sets: shows each to its reader, commits it, and tells editors and sessions of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from filepact.domain.deadline import FOREVER, Deadline
from filepact.workspace.documents import EDITORCONFIG, DocumentCache
from filepact.workspace.journal import operation_of
from filepact.workspace.receipt import show_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Approval, Operation, Proposal, Session
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.commit import Committer
    from filepact.workspace.documents import Documents
    from filepact.workspace.editors import BufferWriter
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.read_tracker import KnownTextCache
    from filepact.workspace.rebase import RebaseResult
    from filepact.workspace.receipt import ChangeDiff, Hides

__all__ = ["ChangeWriter"]


class ChangeWriter:
    """What every change goes through once its files are locked and fit."""

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        documents: Documents,
        buffers: Buffers,
        seen: KnownTextCache,
        *,
        committer: Committer,
        unsaved: BufferWriter,
    ) -> None:
        self._guard = guard
        self._store = store
        self._documents = documents
        self._buffers = buffers
        self._seen = seen
        self._committer = committer
        self._unsaved = unsaved

    def versions(self, content: Callable[[str], bytes] | None = None) -> DocumentCache:
        """The states that changes name: of the journal, or whose bytes somebody has."""
        return DocumentCache(content or self._store.content, self._documents.given)

    def show(self, path: WorkspacePath) -> str:
        """A path as people and agents see it."""
        return self._guard.show(path.root, path.path)

    def hides(self, session: Session | None) -> Hides:
        """Whether a session may not see what a file holds; a person may see all."""

        def hidden(path: WorkspacePath, held: Iterable[bytes | Document]) -> bool:
            return session is not None and self._guard.hides(path, session.agent, held)

        return hidden

    def shown(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        session: Session | None,
        deadline: Deadline = FOREVER,
    ) -> ChangeDiff:
        """A change set as a session may see it, or a person who is to decide about it."""
        return show_changes(
            *(changes, versions, self.show, self.hides(session)),
            to_agent=session is not None and bool(session.agent),
            deadline=deadline,
        )

    def linked(self, changes: ChangeSet) -> tuple[str, ...]:
        """What becomes of files with several names (hard links), to be said before it is done."""
        told: list[str] = []
        for change in changes.changes:
            before = change.before
            if not (before and change.after) or before.is_folder or before.is_link:
                continue
            root = self._guard.root_of(change.path.root)
            links = root.place(change.path.path, known=True).links
            if links < 2:
                continue
            shown = self.show(change.path)
            others = root.other_names(change.path.path) if root.keeps_links else None
            if others:
                told.append(
                    f"{shown} has other names (hard links), {', '.join(others)}; it stays one file with them."
                )
            else:
                told.append(
                    f"{shown} has {links} names (hard links); the others keep the old text."
                )
        return tuple(told)

    def write(
        self,
        proposal: Proposal,
        fitted: RebaseResult,
        shown: ChangeDiff,
        versions: DocumentCache,
        approval: Approval | None = None,
        open_folders: Mapping[WorkspacePath, int] = MappingProxyType({}),
    ) -> Operation:
        """Commit a proposal whose files are locked."""
        operation = operation_of(
            proposal,
            fitted.changes,
            approved_by="" if approval is None else str(approval.actor),
            note=" ".join(fitted.notes),
            lines=shown.lines,
        )
        if self._buffers:
            self._unsaved.save(fitted.changes, fitted.contents)
        done = self._committer.commit(operation, fitted.contents, open_folders)
        session = proposal.session
        if any(
            change.path.path.rpartition("/")[2] == EDITORCONFIG for change in done.changes.changes
        ):
            # It may say something else about the other files now.
            versions = self.versions(fitted.contents.__getitem__)
        for change in filter(None, (one.of_file for one in done.changes.changes)):
            before, after = versions.sides(change)
            if after is None:
                if before is not None:
                    self._seen.forget(session, before.path)
                continue
            if self._buffers:
                self._buffers.deliver(after)
            # Who goes back is shown what that changes.
            held = (one for one in (before, after) if one is not None)
            if done.kind != "change" and not self._guard.hides(after.path, session.agent, held):
                self._seen.shown_change(session, before, after)
        return done

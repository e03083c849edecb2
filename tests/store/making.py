"""Values to put into a journal, made in one line."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, RootId, WorkspacePath, content_id
from filepact.domain.operation import Actor, ChangeId, Operation, Proposal, Session

if TYPE_CHECKING:
    from filepact.workspace.journal import JournalStore

ROOT = RootId("/home/ada/project")
OTHER = RootId("/home/ada/notes")
SESSION = Session("s1", Actor("agent", "tester", "1.0"))


def new_id() -> ChangeId:
    return ChangeId(f"c{secrets.token_hex(5)}")


def change(
    path: str, before: bytes | None, after: bytes | None, *, root: RootId = ROOT
) -> FileChange:
    return FileChange(
        WorkspacePath(root, path),
        Revision.of(before, 0o644) if before is not None else None,
        Revision.of(after, 0o644) if after is not None else None,
    )


def contents(*data: bytes | None) -> dict[str, bytes]:
    return {content_id(one): one for one in data if one is not None}


def operation(*changes: FileChange, **fields: Any) -> Operation:
    given: dict[str, Any] = {
        "id": new_id(),
        "seq": 0,
        "kind": "change",
        "session": SESSION,
        "tool": "edit_file",
        "summary": "edit a file",
        "changes": ChangeSet(changes),
        "created": 1_000.5,
    }
    return Operation(**(given | fields))


def proposal(*changes: FileChange, **fields: Any) -> Proposal:
    given: dict[str, Any] = {
        "id": new_id(),
        "session": SESSION,
        "tool": "edit_file",
        "summary": "edit a file",
        "changes": ChangeSet(changes),
        "created": 1_000.5,
    }
    return Proposal(**(given | fields))


def do(
    store: JournalStore,
    before: bytes | None,
    after: bytes | None,
    *,
    path: str = "a.txt",
    root: RootId = ROOT,
    **fields: Any,
) -> Operation:
    """Begin and finish an operation on one file."""
    begun = store.begin(
        operation(change(path, before, after, root=root), **fields), contents(before, after)
    )
    store.finish(begun.id, state="applied")
    return store.operation(begun.id)

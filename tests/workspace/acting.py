"""Short ways to act on a workspace, as a tool would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.text.edit import Edit, EditList
from filepact.text.locate import place

if TYPE_CHECKING:
    from filepact.domain.operation import Session
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace


def write(
    workspace: Workspace, session: Session, path: str, text: str, *, dry_run: bool = False
) -> Receipt:
    with workspace.draft(session, "write_file") as draft:
        draft.dry_run = dry_run
        draft.write(draft.open(path), text)
        return workspace.submit(draft, f"write {path}")


def edit(workspace: Workspace, session: Session, path: str, old: str, new: str) -> Receipt:
    with workspace.draft(session, "edit_file") as draft:
        target = draft.open_existing(path)
        draft.edit(target, lambda text: place(text, old, new).edits)
        return workspace.submit(draft, f"edit {path}")


def delete(workspace: Workspace, session: Session, path: str) -> Receipt:
    with workspace.draft(session, "patch_apply") as draft:
        target = draft.open_existing(path)
        draft.delete(target, emptied_by=lambda text: EditList((Edit(0, len(text), ""),)))
        return workspace.submit(draft, f"delete {path}")


def read(workspace: Workspace, session: Session, path: str) -> str:
    return workspace.reader(session).document(path).text

"""Planning what goes back: undo, redo and restore as change sets like any other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.operation import BY_EDITOR, Checkpoint
from filepact.errors import InvalidParamsError, NoChangeError
from filepact.workspace.rebase import not_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.domain.document import Revision, RootId, WorkspacePath
    from filepact.domain.operation import Operation, OperationKind
    from filepact.workspace.journal import Store

__all__ = ["Plan", "add_checkpoint", "operations_on", "plan_redo", "plan_restore", "plan_undo"]

_DONE = ("applied", "interrupted")


@dataclass(frozen=True, slots=True)
class Plan:
    """What an undo, redo or restore wants, from the states that the journal knows.

    Attributes:
        target: The operation that is taken back, or the checkpoint's name.
    """

    kind: OperationKind
    target: str
    summary: str
    changes: ChangeSet


def operations_on(
    store: Store,
    roots: Sequence[RootId],
    path: str | None,
    limit: int | None,
    before_seq: int | None,
) -> tuple[Operation, ...]:
    """Operations on any of some roots, or on one path in them, newest first."""
    found = {
        operation.id: operation
        for root in roots
        for operation in store.operations(root=root, path=path, limit=limit, before_seq=before_seq)
    }
    return tuple(sorted(found.values(), key=lambda operation: -operation.seq)[:limit])


def plan_undo(store: Store, roots: Iterable[RootId], change_id: str | None) -> Plan:
    """Plan to take back one operation: the one named, else the newest that is in force.

    An undo that is named is taken back by a redo; a redo that is named is undone by undoing what
    it brought back.
    """
    if change_id is None:
        operation = _newest_in_force(store, frozenset(roots))
    else:
        operation = store.operation(change_id)
    if operation.kind == "undo":
        return plan_redo(store, roots, operation.id)
    if operation.kind == "redo":
        operation = store.operation(store.operation(operation.target).target)
    if operation.state not in _DONE:
        raise NoChangeError(
            f"{operation.id} changed nothing ({operation.state.replace('_', ' ')})",
            hint="There is nothing to take back.",
        )
    if operation.undone_by is not None:
        raise NoChangeError(
            f"{operation.id} is already undone, by {operation.undone_by}",
            hint=f"`filepact redo {operation.id}` brings it back.",
        )
    for change in operation.changes.changes:
        if not change.retraceable:
            raise not_kept(change.path.path)
    return Plan(
        "undo",
        operation.id,
        f"undo {operation.id} ({operation.summary})",
        operation.changes.inverse(),
    )


def plan_redo(store: Store, roots: Iterable[RootId], change_id: str | None) -> Plan:
    """Plan to bring back what was undone: the operation or undo named, else the last undo.

    Without a name, only undos after the last new change count, as in an editor.
    """
    if change_id is None:
        undo = _last_undo(store, frozenset(roots))
    else:
        undo = store.operation(change_id)
        if undo.kind != "undo":
            if undo.undone_by is None:
                raise NoChangeError(
                    f"{undo.id} is not undone",
                    hint="`filepact log` shows which operations are.",
                )
            undo = store.operation(undo.undone_by)
    if undo.undone_by is not None:
        raise NoChangeError(f"{undo.id} was already redone, by {undo.undone_by}")
    original = store.operation(undo.target)
    return Plan("redo", undo.id, f"redo {original.id} ({original.summary})", undo.changes.inverse())


def plan_restore(store: Store, root: RootId, name: str) -> Plan:
    """Plan to bring every file back to what it was when a checkpoint was set."""
    checkpoint = store.checkpoint(name, root)
    first: dict[WorkspacePath, Revision | None] = {}
    last: dict[WorkspacePath, Revision | None] = {}
    operations = store.operations(
        root=root, after_seq=checkpoint.seq, limit=None, newest_first=False
    )
    for operation in operations:
        if operation.state not in _DONE:
            continue
        for change in operation.changes.changes:
            # What was never read cannot come back, and must not keep the rest from coming back.
            if change.path.root == root and change.retraceable:
                first.setdefault(change.path, change.before)
                last[change.path] = change.after
    changes = tuple(
        FileChange(path, last[path], first[path]) for path in first if first[path] != last[path]
    )
    if not changes:
        raise NoChangeError(
            f"nothing has changed since the checkpoint {name!r}",
            hint="`filepact log` shows what happened.",
        )
    return Plan("restore", name, f"restore the checkpoint {name!r}", ChangeSet(changes))


def _newest_in_force(store: Store, roots: frozenset[RootId]) -> Operation:
    for operation in _newest_first(store, roots):
        # A redo is not a candidate: what it brought back is in force again and is.  Nor is what
        # somebody typed in their own editor: that is not taken back unless it is named.
        if (
            operation.kind in ("change", "restore")
            and operation.tool != BY_EDITOR
            and operation.state in _DONE
            and operation.undone_by is None
            and all(change.retraceable for change in operation.changes.changes)
        ):
            return operation
    raise NoChangeError("there is nothing to undo here", hint="`filepact log` shows what happened.")


def _last_undo(store: Store, roots: frozenset[RootId]) -> Operation:
    for operation in _newest_first(store, roots):
        if operation.state not in _DONE:
            continue
        if operation.kind in ("change", "restore"):
            break
        if operation.kind == "undo" and operation.undone_by is None:
            return operation
    raise NoChangeError(
        "there is nothing to redo: no undo since the last change",
        hint="`filepact redo OPERATION` brings back an operation by its id.",
    )


def _newest_first(store: Store, roots: frozenset[RootId]) -> Iterable[Operation]:
    """Operations that touch one of the roots, newest first, read in pages."""
    before: int | None = None
    while True:
        page = store.operations(before_seq=before, limit=100)
        if not page:
            return
        for operation in page:
            if any(path.root in roots for path in operation.changes.paths):
                yield operation
        before = page[-1].seq


def add_checkpoint(store: Store, root: RootId, name: str) -> Checkpoint:
    """Name the present place in a root's journal."""
    checkpoint = Checkpoint(check_name(name), root, store.last_seq(), time.time())
    store.add_checkpoint(checkpoint)
    return checkpoint


def check_name(name: str) -> str:
    """A checkpoint's name as it may be: short, printable, no path."""
    if not name or len(name) > 100 or not name.isprintable() or "/" in name:
        raise InvalidParamsError(
            f"{name!r} cannot be the name of a checkpoint",
            hint="Use up to 100 printable characters without a slash.",
        )
    return name

"""Plans of undo, redo and restore: change sets like any other, made from the journal's states.

People select what is to be taken back by what they think in: a turn, a session, a time, a file.  However
many operations that is, it is one plan: what they did to a file one after the other collapses, and where
somebody else wrote in between, it is taken back in steps, around what was written.
"""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import same_state
from filepact.domain.operation import BY_SEVERAL, PARTLY, Checkpoint
from filepact.errors import InvalidParamsError, NoChangeError
from filepact.values import dataclass, field, replace
from filepact.workspace.rebase import not_kept
from filepact.workspace.selection import (
    effective,
    is_in,
    is_in_force,
    known_author,
    left_beside,
    newest_first,
    partly_gone,
    select,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from filepact.domain.document import Revision, RootId, WorkspacePath
    from filepact.domain.operation import ChangeId, Operation, OperationKind
    from filepact.errors import FilepactError
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.selection import Place, Selection

__all__ = [
    "UndoChange",
    "add_checkpoint",
    "net_changes",
    "plan_redo",
    "plan_restore",
    "plan_restore_before",
    "plan_selection",
    "plan_undo",
]

_NAMED: Final = 3  # operations that a summary names


@dataclass(frozen=True, slots=True)
class _Part:
    """What a plan takes back of an operation.

    Attributes:
        files: The files whose changes are taken back.
        whole: Whether no other change of it is in force.
    """

    id: ChangeId
    files: frozenset[WorkspacePath]
    whole: bool


@dataclass(frozen=True, slots=True)
class UndoChange:
    """The change set of an undo, redo or restore, made from the journal's states.

    Attributes:
        target: The operations that are taken back, or the checkpoint's name, as the journal has it.
        earlier: What goes back after `changes`, of the same files, newest first: somebody else wrote
            in between, and that stays.
        unable: Files that cannot be taken back, with the reason.
        notes: What was done meanwhile, and stays.
    """

    kind: OperationKind
    target: str
    summary: str
    changes: ChangeSet
    earlier: tuple[ChangeSet, ...] = ()
    unable: Mapping[WorkspacePath, FilepactError] = field(default_factory=dict)
    parts: tuple[_Part, ...] = ()
    notes: tuple[str, ...] = ()

    def without(self, left: Collection[WorkspacePath]) -> UndoChange:
        """The same but for some files."""
        if not left:
            return self
        earlier = tuple(step.without(left) for step in self.earlier)
        return replace(self, changes=self.changes.without(left), earlier=earlier)

    def target_without(self, left: Collection[WorkspacePath]) -> str:
        """The target if some files are left as they are."""
        if not self.parts:
            return self.target
        named = {
            part.id: part.whole and part.files.isdisjoint(left)
            for part in self.parts
            if not part.files <= set(left)
        }
        return " ".join(one if whole else f"{one}{PARTLY}" for one, whole in named.items())


def net_changes(operations: Iterable[Operation]) -> tuple[ChangeSet, ...]:
    """What operations did, given oldest first: of what follows each other in a file, all at once."""
    runs = _Runs()
    for operation in operations:
        for change in operation.changes.changes:
            runs.add(change)
    return tuple(step.inverse() for step in reversed(runs.steps()))


# -- one operation ---------------------------------------------------------------------------------


def plan_undo(store: JournalStore, roots: Iterable[RootId], change_id: str | None) -> UndoChange:
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
        undone = store.operation(operation.target).taken_back
        if len(undone) > 1:
            return _plan([operation], [operation], {}, store)
        operation = store.operation(next(iter(undone)))
    if not operation.was_done:
        raise NoChangeError(
            f"{operation.id} changed nothing ({operation.state.replace('_', ' ')})",
            hint="There is nothing to take back.",
        )
    if operation.undone_by is not None:
        raise NoChangeError(
            f"{operation.id} is already undone, by {operation.undone_by}",
            hint=f"Redo {operation.id} to bring it back.",
        )
    return _plan([operation], [operation], {}, store)


def plan_redo(store: JournalStore, roots: Iterable[RootId], change_id: str | None) -> UndoChange:
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
    originals = [store.operation(one) for one in list(undo.taken_back)[: _NAMED + 1]]
    said = _named(originals, len(undo.taken_back))
    return UndoChange("redo", undo.id, f"redo {said}", undo.changes.inverse())


def _newest_in_force(store: JournalStore, roots: frozenset[RootId]) -> Operation:
    for operation in newest_first(store, roots):
        # A redo is not a candidate: what it brought back is in force again and is.  Nor is what
        # somebody typed in their own editor: that is not taken back unless it is named.
        if is_in_force(operation) and all(
            change.retraceable for change in operation.changes.changes
        ):
            return known_author(operation)
    raise NoChangeError("there is nothing to undo here", hint="`filepact log` shows what happened.")


def _last_undo(store: JournalStore, roots: frozenset[RootId]) -> Operation:
    for operation in newest_first(store, roots):
        if not operation.was_done:
            continue
        if operation.kind in ("change", "restore"):
            break
        if operation.kind == "undo" and operation.undone_by is None:
            return operation
    raise NoChangeError(
        "there is nothing to redo: no undo since the last change",
        hint="Name the operation, by its id, to bring back an earlier one.",
    )


# -- several ---------------------------------------------------------------------------------------


def plan_selection(
    store: JournalStore, roots: Sequence[RootId], selection: Selection
) -> UndoChange:
    """Plan to take back all that is selected and in force, as one change.

    What was undone before stays undone, and an undo that is selected without what it took back is
    taken back itself.

    Raises:
        NoChangeError: Nothing of it is in force.
        NotFoundError: There is no such operation or turn.
        InvalidParamsError: Several turns are meant.
    """
    chosen, places = select(store, roots, selection)
    taken = effective(store, chosen)
    if not taken:
        raise NoChangeError(
            "there is nothing to undo: no such change is in force",
            hint="`filepact log --turns` shows what was done, and what is undone already.",
        )
    beside = left_beside(store, roots, taken) if selection.turn and not selection.places else []
    notes = [_stays(one) for one in beside[:_NAMED]]
    if len(beside) > _NAMED:
        notes.append(
            f"Nor are {len(beside) - _NAMED:,} more of that time, which `filepact log` shows."
        )
    return replace(_plan(taken, chosen, places, store), notes=tuple(notes))


def _stays(one: Operation) -> str:
    """What a person has to know of an operation that was made while a turn went on, and is not of it."""
    why = "it is of no turn" if one.session.agent else "nobody knows whose it is"
    why = "several agents were at work" if one.tool == BY_SEVERAL else why
    return f"Not taken back, since {why}: {one.id}, {one.summary} (`filepact undo {one.id}` does)."


def _plan(
    taken: Sequence[Operation],
    chosen: Sequence[Operation],
    places: Mapping[str, tuple[Place, ...]],
    store: JournalStore,
) -> UndoChange:
    """The plan that takes operations back, which are given oldest first."""
    gone = _gone(store, chosen)
    runs = _Runs()
    unable: dict[WorkspacePath, FilepactError] = {}
    parts: list[_Part] = []
    for operation in taken:
        within = places.get(operation.id)
        left = [one for one in operation.changes.changes if (operation.id, one.path) not in gone]
        meant = [one for one in left if within is None or any(is_in(one.path, at) for at in within)]
        for change in meant:
            runs.add(change)
            if not change.retraceable:
                unable[change.path] = not_kept(change.path.path)
        if meant:
            files = frozenset(change.path for change in meant)
            of = [operation.id]
            if operation.kind == "redo":
                of = [*store.operation(operation.target).taken_back]
            parts += [_Part(one, files, len(meant) == len(left)) for one in of]
    parts.reverse()
    steps = runs.steps(without=unable)
    if not steps and not unable:
        raise NoChangeError(
            "the files are as they were before that",
            hint="`filepact log` shows what happened.",
        )
    summary = f"undo {_named(taken[::-1], len(taken))}"
    first, *earlier = steps or (ChangeSet(()),)
    return UndoChange("undo", "", summary, first, tuple(earlier), unable, tuple(parts))


def _named(operations: Sequence[Operation], count: int) -> str:
    """Operations in words, newest first."""
    if count == 1:
        return f"{operations[0].id} ({operations[0].summary})"
    names = ", ".join(one.id for one in operations[:_NAMED])
    more = f" and {count - _NAMED:,} more" if count > _NAMED else ""
    return f"{count:,} operations ({names}{more})"


def _gone(store: JournalStore, chosen: Sequence[Operation]) -> set[tuple[str, WorkspacePath]]:
    """The changes of operations that were taken back alone, and are so still."""
    first = min(one.seq for one in chosen)
    names = {one.id for one in chosen}
    gone: set[tuple[str, WorkspacePath]] = set()
    for undo in store.partial_undos(first):
        if undo.id not in names:
            gone |= partly_gone(undo)
    return gone


# -- places in the journal -------------------------------------------------------------------------


def plan_restore(store: JournalStore, root: RootId, name: str) -> UndoChange:
    """Plan to bring every file back to what it was when a checkpoint was set."""
    checkpoint = store.checkpoint(name, root)
    return _restore(
        *(store, (root,), checkpoint.seq, name),
        f"restore the checkpoint {name!r}",
        f"nothing has changed since the checkpoint {name!r}",
    )


def plan_restore_before(store: JournalStore, roots: Sequence[RootId], change_id: str) -> UndoChange:
    """Plan to bring every file of some roots back to what it was before an operation."""
    operation = store.operation(change_id)
    said = f"{operation.id} ({operation.summary})"
    return _restore(
        *(store, roots, operation.seq - 1, operation.id),
        f"restore what was before {said}",
        f"every file is as it was before {said}",
    )


def _restore(
    store: JournalStore,
    roots: Sequence[RootId],
    seq: int,
    target: str,
    summary: str,
    nothing: str,
) -> UndoChange:
    runs = _Runs()
    inside = frozenset(roots)
    for operation in store.operations(after_seq=seq, limit=None, newest_first=False):
        if not operation.was_done:
            continue
        for change in operation.changes.changes:
            if change.path.root not in inside:
                continue
            if change.retraceable:
                runs.add(change)
            else:
                # What was never read cannot come back, and must not keep the rest from coming back.
                runs.skip(change.path)
    steps = runs.steps()
    if not steps:
        raise NoChangeError(nothing, hint="`filepact log` shows what happened.")
    return UndoChange("restore", target, summary, steps[0], steps[1:])


class _Runs:
    """Changes of files in the order of the journal; those that follow each other are one."""

    def __init__(self) -> None:
        self._runs: dict[WorkspacePath, list[tuple[Revision | None, Revision | None]]] = {}
        self._skipped: set[WorkspacePath] = set()

    def add(self, change: FileChange) -> None:
        """Take in the next change of a file."""
        known = self._runs.setdefault(change.path, [])
        if known and (same_state(known[-1][1], change.before) or change.path in self._skipped):
            known[-1] = (known[-1][0], change.after)
        else:
            known.append((change.before, change.after))
        self._skipped.discard(change.path)

    def skip(self, path: WorkspacePath) -> None:
        """Whatever the next change of a file starts from belongs to the one before it."""
        self._skipped.add(path)

    def steps(self, without: Collection[WorkspacePath] = ()) -> tuple[ChangeSet, ...]:
        """What takes all of them back: the newest of each file, then what goes before that."""
        back = [
            [
                FileChange(path, after, before)
                for before, after in reversed(known)
                if not same_state(before, after)
            ]
            for path, known in self._runs.items()
            if path not in without
        ]
        return tuple(
            ChangeSet(tuple(sorted(filter(None, step), key=_order))).with_turns
            for step in zip_longest(*back)
        )


def _order(change: FileChange) -> tuple[bool, int, WorkspacePath]:
    """Folders go last, those that lie in others before these."""
    goes = change.after is None and change.of_file is None
    return goes, -change.path.path.count("/") if goes else 0, change.path


# -- checkpoints -----------------------------------------------------------------------------------


def add_checkpoint(store: JournalStore, root: RootId, name: str) -> Checkpoint:
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

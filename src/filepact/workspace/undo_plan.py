"""Plans of undo, redo and restore: change sets like any other, made from the journal's states.

People select what is to be taken back by what they think in: a turn, a session, a time, a file.  However
many operations that is, it is one plan: what they did to a file one after the other collapses, and where
somebody else wrote in between, it is taken back in steps, around what was written.
"""

from __future__ import annotations

from contextlib import suppress
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final

from filepact.domain.change import ChangeRuns, ChangeSet, FileChange, moved_over
from filepact.domain.operation import PARTLY, SEEN, who
from filepact.errors import NoChangeError, NotFoundError, StaleFileError
from filepact.text.confusables import shown_name
from filepact.values import dataclass, field, replace
from filepact.workspace.file_snapshot import INSTEAD
from filepact.workspace.folder_steps import turning_above
from filepact.workspace.moves import whole_moves
from filepact.workspace.rebase import Conflicts
from filepact.workspace.receipt import not_kept, renames
from filepact.workspace.selection import (
    effective,
    is_in,
    is_in_force,
    is_left_to_name,
    is_passing,
    known_author,
    left_beside,
    left_by,
    lost_with,
    newest_first,
    partly_gone,
    same_work,
    select,
    stays_beside,
    unclaimed,
    whose,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import ChangeId, Operation, OperationKind
    from filepact.errors import FilepactError
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.selection import Place, Selection

    Moved = Callable[[ChangeSet], Collection[WorkspacePath]]

__all__ = [
    "UndoChange",
    "plan_redo",
    "plan_selection",
    "plan_undo",
]

RESTORE: Final = "restore"
"""The tool of an undo that goes back to a checkpoint, or to before an operation."""

_NAMED: Final = 3  # operations that a summary names


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of an operation that a plan takes back.

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
        unable: Files that cannot be brought back, with the reason; they keep nothing else from going back.
        lost: What became of these.
        short: Files that go back only to what an operation left of which no bytes were kept, with the reason.
        operations: What goes back, oldest first.
        tool: As the journal names the command; empty for the kind.
        doubt: Why a person is asked before it is done; empty where what is meant is plain.
        way: How it is said so that it is plain, for who cannot be asked; empty if it is done unasked.
        notes: What the answer says besides.
        beside: What was done at the time of what goes back, is not of it, and stays unless it is named.
    """

    kind: OperationKind
    target: str
    summary: str
    changes: ChangeSet
    earlier: tuple[ChangeSet, ...] = ()
    unable: Mapping[WorkspacePath, FilepactError] = field(default_factory=dict)
    lost: Mapping[WorkspacePath, FileChange] = field(default_factory=dict)
    short: Mapping[WorkspacePath, FilepactError] = field(default_factory=dict)
    parts: tuple[_Part, ...] = ()
    operations: tuple[Operation, ...] = ()
    tool: str = ""
    doubt: str = ""
    way: str = ""
    notes: tuple[str, ...] = ()
    beside: tuple[Operation, ...] = ()

    @property
    def alone(self) -> str:
        """The one operation by whose id alone all of it is named; empty for none."""
        if self.kind == "redo":
            return self.target
        if self.kind != "undo" or not all(part.whole for part in self.parts):
            return ""
        named = [one for one in self.operations if _returns(one)]
        return named[0].id if len(named) == 1 else ""

    @property
    def stay(self) -> Collection[WorkspacePath]:
        """The files that cannot be brought back, and to no other state that was kept either."""
        return self.unable.keys() - self.short.keys()

    def unsized(self, show: Callable[[WorkspacePath], str]) -> UndoChange:
        """This plan for an agent, which is not told how large a file was that it may not see."""
        unable, short = ({x: not_kept(show(x)) for x in some} for some in (self.unable, self.short))
        return replace(self, unable=unable, short=short, lost={})

    def in_part(self, left: Collection[WorkspacePath]) -> UndoChange:
        """This plan without some files; of a redo, a new change, so that the undo stays in force."""
        if self.kind != "redo" or not left:
            return self.without(left)
        said = f"{self.summary}, in part"
        return replace(self.without(left), kind="change", target="", tool="redo", summary=said)

    def without(self, left: Collection[WorkspacePath]) -> UndoChange:
        """This plan without some files."""
        if not left:
            return self
        earlier = tuple(step.without(left) for step in self.earlier)
        return replace(self, changes=self.changes.without(left), earlier=earlier)

    def around(self, stands: Callable[[WorkspacePath], bool]) -> UndoChange:
        """This plan without the files whose place something holds that cannot be removed; ``stands`` tells whether it does."""
        changed = dict.fromkeys(self.changes.paths)
        ways = {path for path in self.unable if stands(path)}
        unable = {k: why for k, why in self.unable.items() if k in ways or k not in changed}
        for path in changed:
            if (way := turning_above(path, ways)) is not None:
                unable[path] = StaleFileError(f"{path.path}: {way.path} stands there, and stays")
        return replace(self.without(unable), unable={**self.short, **unable})

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


def _returns(operation: Operation) -> bool:
    """Whether any of what an operation did can be brought back."""
    return any(change.retraceable for change in operation.changes.changes)


# -- one operation ---------------------------------------------------------------------------------


def plan_undo(store: JournalStore, roots: Iterable[RootId], change_id: str | None) -> UndoChange:
    """Plan to take back one operation: the one named, else the newest that is in force.

    An undo that is named is taken back by a redo; a redo that is named is undone by undoing what
    it brought back.  What the same call did and cannot be brought back is named in the plan.
    """
    doubt = way = ""
    passed: list[Operation] = []
    if change_id is None:
        operation, doubt, way = _newest_in_force(store, frozenset(roots), passed)
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
    lost = lost_with(store, operation)
    taken = [operation] if lost is None else [lost, operation]
    plan = _plan(taken, taken, {}, store)
    said = f"undo {_named([operation], 1)}"
    return replace(plan, summary=said, doubt=doubt, way=way, beside=tuple(passed))


def plan_redo(
    store: JournalStore,
    roots: Iterable[RootId],
    change_id: str | None,
    places: Sequence[Place] = (),
    moved: Moved = lambda changes: changes.paths,
) -> UndoChange:
    """Plan to bring back what was undone: the operation or undo named, else the last undo.

    Without a name, only undos after the last new change count, as in an editor, of which some files have `moved`
    from what they were before; a save of a person is none.  Of some places alone it is a new change, and the undo stays.
    """
    if change_id is None:
        undo = _last_undo(store, frozenset(roots), moved)
    else:
        undo = store.operation(change_id)
        if undo.kind != "undo":
            if undo.undone_by is None:
                hint = "`filepact log`, or history with action log, shows which operations are."
                raise NoChangeError(f"{undo.id} is not undone", hint=hint)
            undo = store.operation(undo.undone_by)
    if undo.undone_by is not None:
        raise NoChangeError(
            f"{undo.id} was already redone, by {undo.undone_by}",
            hint="What it brought back is in force: undo that by its own id.",
        )
    originals = [store.operation(one) for one in list(undo.taken_back)[: _NAMED + 1]]
    said = _named(originals, len(undo.taken_back))
    # What is too large for the journal came back by itself, right after all else.
    after = store.operations(after_seq=undo.seq, limit=1, newest_first=False)
    stay = [
        f"{change.path.path} stays: nothing would bring it back once more"
        for one in after
        if one.kind == "undo" and {*one.taken_back} == {*undo.taken_back}
        for change in one.changes.changes
        if change.after and change.after.is_set_aside
    ]
    plan = UndoChange("redo", undo.id, f"redo {said}", undo.changes.inverse(), operations=(undo,))
    plan = replace(plan, notes=tuple(stay))
    if places:
        some = plan.changes.changes
        meant = [one for one in some if any(is_in(one.path, at) for at in places)]
        if not meant:
            raise NoChangeError(
                f"{undo.id} took nothing back there",
                hint=f"`filepact show {undo.id}` lists its files.",
            )
        kept = {one.path for one in _with_other_ends(meant, some, store)}
        plan = plan.in_part([one.path for one in some if one.path not in kept])
    return plan


def _newest_in_force(
    store: JournalStore, roots: frozenset[RootId], passed: list[Operation]
) -> tuple[Operation, str, str]:
    """The newest operation that can be taken back, with what speaks against it, and how to name it; ``passed`` takes what stays."""
    newest = last = lost = None
    gone: set[tuple[str, WorkspacePath]] = set()
    for operation in newest_first(store, roots):
        gone |= partly_gone(store, operation)
        if operation.was_done and not is_passing(operation):
            last = last or operation
        if operation.kind == "change" and operation.was_done and whose(operation) == "agent":
            newest = newest or operation
        # A redo is not a candidate: what it brought back is in force again and is.  Nor is what
        # only passed by: that is not taken back unless it is named.
        left = [one for one in operation.changes.changes if (operation.id, one.path) not in gone]
        if left and is_left_to_name(operation):
            passed.append(operation)
        if not left or not is_in_force(operation):
            continue
        if not any(change.returns for change in left):
            # What has another half is told of with that.
            half = store.operations(after_seq=operation.seq, limit=1, newest_first=False)
            if not (half and lost_with(store, half[0]) is not None) and left == [
                *operation.changes.changes
            ]:
                lost = lost or operation
            continue
        known_author(operation)
        said = f"{operation.id} ({operation.summary})"
        doubt, way = "", f"`filepact undo {operation.id}` takes it back."
        if lost is not None:
            doubt = f"the last change, {lost.id}, cannot be brought back ({lost.summary}); before it was {said}"
        elif last is not None and (last.kind, last.tool) == ("undo", RESTORE):
            doubt = f"the last was {last.id} ({last.summary}), and {said} is older"
            way = f"`filepact redo {last.id}` goes forward again, `filepact undo {operation.id}` further back."
        elif whose(operation) == "person":
            doubt = f"the last change is a person's own: {said}"
        elif newest is not None and not same_work(newest, operation):
            doubt = f"nothing of the last session's work is in force; {said} is of another one"
        return operation, doubt, way
    if lost is not None:
        path = lost.changes.changes[0]
        raise not_kept(path.path.path, path)
    stays = stays_beside(passed, lambda path: shown_name(path.path))
    hint = " ".join(stays) or "`filepact log` shows what happened."
    if last is not None and (last.kind, last.tool) == ("undo", RESTORE):
        hint = f"`filepact redo {last.id}` goes forward again."
    raise NoChangeError("there is nothing to undo here", hint=hint)


def _last_undo(store: JournalStore, roots: frozenset[RootId], moved: Moved) -> Operation:
    for operation in newest_first(store, roots):
        if not operation.was_done or is_passing(operation):
            continue
        if operation.kind in ("change", "restore"):
            break
        # What is too large for the journal was put back, and nobody removes it again.
        open_ = operation.kind == "undo" and operation.undone_by is None and _returns(operation)
        if open_ and moved(operation.changes):
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
    taken back itself.  What a time alone selects is what agents did; the rest is named in the plan.

    Raises:
        NoChangeError: Nothing of it is in force.
        NotFoundError: There is no such operation, checkpoint or turn.
        InvalidParamsError: Several turns are meant.
    """
    chosen, places = select(store, roots, selection)
    taken = effective(store, chosen)
    left = left_by(store, roots, selection, chosen)
    widely = "`--all` takes these back too."
    if selection.names_work:
        widely = "With `--all`, and without saying whose, these go back too."
    others = _in_words(left, selection.places)
    stays = (*others, widely) if others else ()
    if not taken:
        raise NoChangeError(
            "there is nothing to undo: no such change is in force",
            hint=" ".join(stays)
            or unclaimed(store, roots, selection)
            or "`filepact log --turns`, or history with action log, shows what is undone already.",
        )
    plan = _plan(taken, chosen, places, store)
    if selection.checkpoint:
        said = f"restore the checkpoint {selection.checkpoint!r}"
        plan = replace(plan, tool=RESTORE, summary=said)
    elif selection.before:
        named = store.operation(selection.before)
        said = f"restore what was before {named.id} ({named.summary})"
        plan = replace(plan, tool=RESTORE, summary=said)
    doubt, way = _doubt([*filter(selection.reaches, taken)], selection)
    work = (selection.turn or selection.session) and not selection.places
    beside = left_beside(store, roots, taken) if work else []
    beside = [one for one in beside if selection.turn or whose(one) == "nobody"]
    return replace(plan, doubt=doubt, way=way, notes=stays, beside=tuple(beside))


def _doubt(taken: Sequence[Operation], selection: Selection) -> tuple[str, str]:
    """The reason why a selection needs a person's word, and another way."""
    if selection.only_places:
        own = [one for one in taken if whose(one) == "person"]
        if own:
            names = " ".join(one.id for one in own)
            return f"the last change there is a person's own: {names}", "Name it by its id."
    if selection.names_work or not selection.by_time:
        return "", ""
    if selection.everybody:
        others = [one for one in taken if whose(one) != "agent"]
        # It was named, so nobody needs to be asked; who is there is shown what it comes to.
        return ("it takes back what is not an agent's work" if others else ""), ""
    works: list[Operation] = []
    for one in taken:
        if not any(same_work(one, known) for known in works):
            works.append(one)
    if len(works) < 2:
        return "", ""
    names = ", ".join(f"{one.session.id} ({who(one.session.actor)})" for one in works[:_NAMED])
    more = f" and {len(works) - _NAMED} more" if len(works) > _NAMED else ""
    return (
        f"{len(works)} sessions changed files since then: {names}{more}",
        "Say whose work is meant with --session or --agent, or --all for everybody's.",
    )


def _plan(
    taken: Sequence[Operation],
    chosen: Sequence[Operation],
    places: Mapping[str, tuple[Place, ...]],
    store: JournalStore,
) -> UndoChange:
    """The plan that takes operations back, which are given oldest first."""
    gone = _gone(store, chosen)
    runs, known = ChangeRuns(), _known_from(taken, store)
    unable, instead = _moved_apart(taken), Conflicts()
    parts: list[_Part] = []
    for number, operation in enumerate(taken):
        within = places.get(operation.id)
        left = [one for one in operation.changes.changes if (operation.id, one.path) not in gone]
        meant = [one for one in left if within is None or any(is_in(one.path, at) for at in within)]
        if len(meant) < len(left):
            meant = _with_other_ends(meant, left, store)
        meant = [one for one in meant if number > known.get(one.path, (-1,))[0]]
        runs.note_folders(operation.directories)
        for change in meant:
            if change.after != INSTEAD:
                runs.add(change)
            if not change.retraceable:
                some = instead if change.after == INSTEAD else unable
                some[change.path] = not_kept(change.path.path, change)
        if meant:
            files = frozenset(change.path for change in meant)
            back = operation.kind == "redo" and store.operation(operation.target).taken_back
            of = [*(back or [operation.id])]
            parts += [_Part(one, files, len(meant) == len(left)) for one in of]
    parts.reverse()
    steps = runs.steps(without=unable, rights=True)
    # Folders that were made for files may be left when these have come to nothing.
    if not (steps or unable or instead or known or any(x.directories for x in taken)):
        hint = "`filepact log`, or history with action log, shows what happened."
        raise NoChangeError("the files are as they were before that", hint=hint)
    first, *earlier = steps or (ChangeSet(()),)
    by = {path: (taken[number].id, one) for path, (number, one) in known.items()}
    short = {path: not_kept(path.path, one, by=id_) for path, (id_, one) in by.items()}
    return UndoChange(
        *("undo", "", f"undo {_named(taken[::-1], len(taken))}", first, tuple(earlier)),
        *({**instead, **unable}, runs.of(unable), short, tuple(parts)),
        operations=tuple(taken),
    )


def _known_from(
    taken: Sequence[Operation], store: JournalStore
) -> dict[WorkspacePath, tuple[int, FileChange]]:
    """For files that somebody has changed since a change of which no bytes were kept: its place, oldest first, and that.

    They go back to what it left; one that it made only if it was moved since, and is there by another name.
    """
    found: dict[WorkspacePath, tuple[int, FileChange]] = {}
    later: dict[WorkspacePath, tuple[FileChange, Operation]] = {}
    for number, operation in reversed([*enumerate(taken)]):
        for one in operation.changes.changes:
            if one.returns:
                later[one.path] = one, operation
            elif one.after != INSTEAD and one.path not in found:
                since, by = later.get(one.path, (None, operation))
                kept = bool(since and since.before and one.after)
                if kept and not one.before:
                    kept = since in renames(by.changes.changes, store.content).values()
                found[one.path] = number if kept else -1, one
    return {path: each for path, each in found.items() if each[0] >= 0}


def _moved_apart(taken: Sequence[Operation]) -> Conflicts:
    """Moves of whole folders in which files were changed as well, by either name: nothing goes back if one is ours, else all but that."""
    found = Conflicts()
    for one in taken:
        ends = [end.path for pair in whole_moves(one.changes.changes) for end in pair]
        some = ((x, x.changes.paths) for x in taken)
        both = [x for x, at in some if x is one or any(turning_above(y, ends) for y in at)]
        git = any(basename(end.path) == ".git" for end in ends)
        if len(both) > 1 and (git or SEEN not in one.note):
            ids = ", ".join(f"`filepact undo {each.id}`" for each in both[::-1])
            raise StaleFileError(
                f"{one.id} moved a folder with all that was in it ({one.summary}), and files in it were changed as well",
                hint=f"Nothing was changed. Take them back one after the other: {ids}.",
            )
        why = (
            f"files in that folder were changed as well; `filepact undo {one.id}` comes after that"
        )
        found |= {x: StaleFileError(f"{x.path}: {why}") for x in ends if len(both) > 1}
    return found


def _in_words(operations: Sequence[Operation], places: Sequence[Place]) -> list[str]:
    """Whose files are left at some places, or anywhere: a line for each, with some names."""
    said: list[str] = []
    agents = ", ".join(
        sorted({who(one.session.actor) for one in operations if whose(one) == "agent"})
    )
    of = {"person": "a person's own", "nobody": "not known whose", "agent": f"work of {agents}"}
    for by, words in of.items():
        paths = {
            path.path: None
            for one in operations
            for path in one.changes.paths
            if whose(one) == by and (not places or any(is_in(path, at) for at in places))
        }
        if paths:
            names = ", ".join([*paths][:_NAMED])
            more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
            said.append(f"Left as it is, {words}: {names}{more}.")
    return said


def _with_other_ends(
    meant: Sequence[FileChange], left: Sequence[FileChange], store: JournalStore
) -> list[FileChange]:
    """The changes that are meant with the other ends of renames: a file goes back to one name from the other."""
    paths = {one.path for one in meant}
    for pair in whole_moves(left):
        if not paths.isdisjoint(ends := {one.path for one in pair}):
            # A repository goes with all that lies beside it.
            homes = [x._replace(path=dirname(x.path)) for x in ends if basename(x.path) == ".git"]
            paths |= ends | {
                x.path for x in left if x.path in homes or turning_above(x.path, homes)
            }
    pairs = [*moved_over(left).items()]
    with suppress(NotFoundError):
        pairs += [(new, old.path) for new, old in renames(left, store.content).items()]
    while more := {x for pair in pairs for x in pair if not paths.isdisjoint(pair)} - paths:
        paths |= more
    return [one for one in left if one.path in paths]


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
            gone |= partly_gone(store, undo)
    return gone

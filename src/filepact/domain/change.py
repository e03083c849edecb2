"""Changes as values: the states of files before and after."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from filepact.domain.document import FOLDER, Revision, WorkspacePath, same_state
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from filepact.domain.document import RootId
    from filepact.domain.policy import Action

__all__ = ["ChangeKind", "ChangeRuns", "ChangeSet", "FileChange", "moved_over", "net_changes"]

ChangeKind = Literal["create", "modify", "delete"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file goes from one exact state to another.

    ``None`` means "no file".  Create, modify and delete are one shape, so undo needs no special
    cases; a move is two changes in one set, as in Git.
    """

    path: WorkspacePath
    before: Revision | None
    after: Revision | None

    def __post_init__(self) -> None:
        if self.before == self.after:
            raise ValueError(f"{self.path}: nothing changes")

    @property
    def kind(self) -> ChangeKind:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "modify"

    @property
    def action(self) -> Action:
        """The action that rules are asked about."""
        return "write" if self.kind == "modify" else self.kind

    @property
    def retraceable(self) -> bool:
        """Whether both states were read, so that the change can be shown and taken back."""
        before, after = self.before, self.after
        return (before is None or before.was_read) and (after is None or after.was_read)

    @property
    def returns(self) -> bool:
        """Whether the state before can come back: the journal has it, or the file was set aside."""
        before, after = self.before, self.after
        aside = before is not None and before.is_set_aside
        return self.retraceable or (aside and (after is None or after.was_read))

    @property
    def of_file(self) -> FileChange | None:
        """The part of the change that is about a file or link; None where only a folder comes or goes."""
        before, after = self.before, self.after
        was, is_ = before is not None and before.is_folder, after is not None and after.is_folder
        if not (was or is_):
            return self
        if (was or before is None) and (is_ or after is None):
            return None
        return FileChange(self.path, None if was else before, None if is_ else after)

    @property
    def turns(self) -> bool:
        """Whether a folder takes the place of a file or link, or one of these that of a folder."""
        before, after = self.before, self.after
        if before is None or after is None:
            return False
        return before.is_folder != after.is_folder

    @property
    def of_folder(self) -> bool:
        """Whether a folder stays, and gets other rights."""
        before, after = self.before, self.after
        return bool(before and after and before.is_folder and after.is_folder)

    @property
    def of_one_file(self) -> bool | None:
        """Whether both states are of the very same file, which has several names (hard links); None where nobody knows."""
        was, is_ = self.before and self.before.attributes, self.after and self.after.attributes
        known = was and is_ and was.linked and is_.linked
        return was.linked == is_.linked if was and is_ and known else None

    def inverse(self) -> FileChange:
        return FileChange(self.path, before=self.after, after=self.before)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes that happen together or not at all, each path once."""

    changes: tuple[FileChange, ...]

    def __post_init__(self) -> None:
        if len(self.changes) > 1 and len({one.path for one in self.changes}) < len(self.changes):
            repeated = [p for p, n in Counter(c.path for c in self.changes).items() if n > 1]
            raise ValueError(f"changed twice in one set: {', '.join(map(str, repeated))}")

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return tuple(change.path for change in self.changes)

    @property
    def in_order(self) -> list[tuple[int, FileChange]]:
        """Changes of files with their numbers, removals first.

        So a staged text tells until the end that not all is done: a removal has none.
        """
        if len(self.changes) == 1:
            return [(0, one)] if (one := self.changes[0].of_file) is not None else []
        files = ((number, change.of_file) for number, change in enumerate(self.changes))
        return sorted(
            ((number, change) for number, change in files if change is not None),
            key=lambda one: one[1].after is not None,
        )

    def inverse(self) -> ChangeSet:
        return ChangeSet(tuple(change.inverse() for change in reversed(self.changes)))

    @property
    def compared(self) -> ChangeSet:
        """This change set as it is to be done: a state set aside counts only where nothing would change.

        Such a file is written once more: that it was so already is told to nobody.
        """
        pairs = [(one, one.before and one.before.compared) for one in self.changes]
        if all(was is one.before for one, was in pairs):
            return self
        return ChangeSet(
            tuple(
                one if was == one.after else FileChange(one.path, was, one.after)
                for one, was in pairs
            )
        )

    @property
    def coming(self) -> frozenset[WorkspacePath]:
        """Names of files or links of which folders take the place: nothing lies below them before."""
        return frozenset(
            one.path for one in self.changes if one.turns and one.after and one.after.is_folder
        )

    @property
    def with_turns(self) -> ChangeSet:
        """This change set, with a name above others as a folder; what was seen on the disk tells files only."""
        was = {above for one in self.changes if one.before for above in _above(one.path)}
        will_be = {above for one in self.changes if one.after for above in _above(one.path)}
        solid = {one.path for one in self.changes if one.after and not one.after.is_folder}
        turned = [
            (
                one,
                FOLDER if one.before is None and one.of_file and one.path in was else one.before,
                FOLDER if one.after is None and one.path in will_be else one.after,
            )
            for one in self.changes
            # An empty folder may have come unseen, with the one that it lies in.
            if one.of_file or not one.after or solid.isdisjoint(_above(one.path))
        ]
        return ChangeSet(
            tuple(
                FileChange(one.path, before, after)
                for one, before, after in turned
                if not same_state(before, after)
            )
        )

    @property
    def exact(self) -> tuple[tuple[WorkspacePath, Revision | None, Revision | None], ...]:
        """Every path with the states before and after, so that two of them can be compared."""

        def side(one: FileChange, state: Revision | None) -> Revision | None:
            unknown = state and state.is_folder and not one.of_folder
            return FOLDER if unknown else state and state.compared

        return tuple(
            (one.path, side(one, one.before), side(one, one.after)) for one in self.changes
        )

    @property
    def written_now(self) -> ChangeSet:
        """This change set, where no rewritten file gets an earlier modification time back."""
        return ChangeSet(tuple(map(_written_now, self.changes)))

    @property
    def unread(self) -> ChangeSet:
        """This change set by paths and modes alone, without any bytes."""

        def side(known: Revision | None) -> Revision | None:
            return known and Revision.unread(known.content, known.mode)

        return ChangeSet(
            tuple(FileChange(one.path, side(one.before), side(one.after)) for one in self.changes)
        )

    def without(self, paths: Collection[WorkspacePath]) -> ChangeSet:
        """This change set without some files; what was to be a folder for these alone becomes nothing."""
        left = [one for one in self.changes if one.path not in paths]
        needless = {above for path in paths for above in _above(path)}
        needless -= {above for one in left if one.after for above in _above(one.path)}
        bare = {one for one in left if one.path in needless and one.turns and one.after == FOLDER}
        return ChangeSet(tuple(replace(one, after=None) if one in bare else one for one in left))

    def then(self, later: ChangeSet) -> ChangeSet:
        """Compose two change sets: each file from its state before this one to that after ``later``.

        A file that ends as it began is left out.
        """
        first = {change.path: change for change in self.changes}
        last = {change.path: change for change in later.changes}
        together: list[FileChange] = []
        for path in dict.fromkeys((*first, *last)):
            before = first.get(path, last.get(path))
            after = last.get(path, first.get(path))
            if before and after and not same_state(before.before, after.after):
                together.append(FileChange(path, before.before, after.after))
        return ChangeSet(tuple(together))


class ChangeRuns:
    """Changes of files in the order of the journal; those that follow each other are one."""

    def __init__(self) -> None:
        self._runs: dict[WorkspacePath, list[tuple[Revision | None, Revision | None]]] = {}
        self._made: set[WorkspacePath] = set()
        self._back: set[WorkspacePath] = set()

    def note_folders(self, made: Iterable[tuple[RootId, str]]) -> None:
        """Take in the folders that an operation made for its files, before its changes."""
        for one in {WorkspacePath(*one) for one in made}:
            self._made.add(one)
            if [(x and x.is_folder, y) for x, y in self._runs.get(one, ())] == [(True, None)]:
                self._back.add(one)

    def add(self, change: FileChange) -> None:
        """Take in the next change of a file."""
        known = self._runs.setdefault(change.path, [])
        self._back.discard(change.path)
        if known and _follows(known[-1][1], change.before):
            known[-1] = (known[-1][0], change.after)
        else:
            made = not known and change.before and change.before.is_folder
            before = None if made and change.path in self._made else change.before
            known.append((before, change.after))

    def of(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, FileChange]:
        """The changes of files over the operations, as far as every state in between is known."""
        ends = {path: known[0] for path in paths if len(known := self._runs[path]) == 1}
        return {path: FileChange(path, *one) for path, one in ends.items() if one[0] != one[1]}

    def steps(
        self, without: Collection[WorkspacePath] = (), *, rights: bool = False
    ) -> tuple[ChangeSet, ...]:
        """The change sets that take all of them back: the newest of each file, then the earlier ones.

        With `rights` the last is of folders that went and were made anew, in which way nobody knows; see `with_rights`.
        """
        runs = {x: run for x, run in self._runs.items() if x not in without}
        # A folder that went and came is made for what comes in it alone: then it was another who took it away.
        come = {x for x, run in runs.items() if run[0][0] and not same_state(*run[0])} - self._back
        stay = self._back - {up for x in come for up in _above(x)}
        back = [
            [
                FileChange(path, after, before)
                for before, after in reversed(known)
                if not same_state(before, after)
            ]
            for path, known in runs.items()
            if path not in stay
        ]
        made = [FileChange(x, FOLDER, runs[x][0][0]) for x in sorted(self._back & runs.keys())]
        last = [ChangeSet(tuple(made))] if made and rights else []
        some = (ChangeSet(tuple(sorted(filter(None, x), key=_order))) for x in zip_longest(*back))
        return (*(one.with_turns for one in some), *last)


def _follows(last: Revision | None, before: Revision | None) -> bool:
    """Whether a state is the one that was known last; an empty folder comes and goes unseen."""
    sides = {side is None or side.is_folder for side in (last, before)}
    return same_state(last, before) or sides == {True}


def _order(change: FileChange) -> tuple[bool, int, WorkspacePath]:
    """Folders go last, those that lie in others before these."""
    goes = change.after is None and change.of_file is None
    return goes, -change.path.path.count("/") if goes else 0, change.path


def net_changes(
    done: Iterable[tuple[ChangeSet, Iterable[tuple[RootId, str]]]],
) -> tuple[ChangeSet, ...]:
    """The net changes of change sets, given oldest first with the folders made for each: those that follow each other are one."""
    runs = ChangeRuns()
    for changes, made in done:
        runs.note_folders(made)
        for change in changes.changes:
            runs.add(change)
    return tuple(step.inverse() for step in reversed(runs.steps()))


def moved_over(changes: Collection[FileChange]) -> dict[WorkspacePath, WorkspacePath]:
    """Files that hold what another one held, which does not any more, each with that; one of them was there before and after.

    So it is where a file was moved over another one, or two have changed places.
    """
    sides = [(x, x.before and x.before.content, x.after and x.after.content) for x in changes]
    several = Counter(was for _, was, now in sides if was != now)
    went = {was: x for x, was, now in sides if was != now and several[was] == 1}
    return {
        one.path: old.path
        for one, was, now in sides
        if now and now not in (was, FOLDER.content) and (old := went.get(now)) is not None
        if one.before or old.after
    }


def _written_now(change: FileChange) -> FileChange:
    before, after = change.before, change.after
    if not before or not after or before.is_link or change.turns:
        return change
    if before.content == after.content:
        return change
    held = after.attributes and replace(after.attributes, modified=None)
    return FileChange(change.path, before, Revision(after.content, after.mode, held))


def _above(path: WorkspacePath) -> Iterator[WorkspacePath]:
    """The folders that a path lies in, innermost first."""
    above = path.path.rpartition("/")[0]
    while above:
        yield WorkspacePath(path.root, above)
        above = above.rpartition("/")[0]

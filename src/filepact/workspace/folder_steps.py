"""The folders of an operation: made before its files, removed after them, or in between.

Also those of an operation that others did, as the disk and what was known of it tell.

In between goes a folder in whose place a file or link comes, with all that was in it, and comes one that
takes the place of a file or link.  Such a name *turns*.  What lies below it is there only before, or only
after, so the temporary names of its files are beside it.
"""

from __future__ import annotations

from contextlib import suppress
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.change import FileChange
from filepact.domain.document import FOLDER, Revision, WorkspacePath
from filepact.errors import FilepactError, NotFoundError, StaleFileError, WriteFailedError
from filepact.fs.path_form import folders_above
from filepact.fs.watch import is_gone, is_odd, odd_said
from filepact.values import replace
from filepact.workspace.file_snapshot import CACHES, INSTEAD, PIPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId
    from filepact.domain.operation import Operation
    from filepact.fs.root import Root
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore

    KnownFolders = Mapping[RootId, Mapping[str, Revision]]

__all__ = [
    "FolderChange",
    "FolderSteps",
    "folder_at",
    "folders_alone",
    "lasting",
    "made_folders",
    "missing_folders",
    "remove_folders",
    "same_rights",
    "settle_folders",
    "shut_folders",
    "taken_back",
    "turning_above",
    "with_folders",
    "written",
]

_NOT_HELD: Final = Revision.unread("folder", 0).content
_OPEN: Final = 0o700
"""Permission bits without which nobody can put files into a folder of their own, and close it afterwards."""


class FolderChange(NamedTuple):
    """A folder that came or went, or has other rights.

    Attributes:
        path: Its name.
        before: Its state before; None for no folder.
        after: That now; the same.
        made: Whether programs make it for themselves, or it is a pipe or the like, so that nothing of it is known.
    """

    path: WorkspacePath
    before: Revision | None
    after: Revision | None
    made: bool = False


class FolderSteps:
    """The changes of folders in an operation, in the order in which they are made.

    Args:
        operation: The operation, with the folders that it makes.
        root_of: The open root of a path.

    Attributes:
        moved: Folders that come and go with one that is moved, and need nothing else.
        notes: What a person should know of folders.
    """

    def __init__(self, operation: Operation, root_of: Callable[[RootId], Root]) -> None:
        self.moved: frozenset[WorkspacePath] = frozenset()
        self._root_of = root_of
        self.notes: dict[WorkspacePath, tuple[str, ...]] = {}
        self._coming: dict[WorkspacePath, Revision | None] = {}
        self._going: dict[WorkspacePath, Revision] = {}
        self._staying: dict[WorkspacePath, tuple[Revision, Revision | None]] = {}
        self._turning: set[WorkspacePath] = set()
        self._named: set[WorkspacePath] = set()
        self._new: list[WorkspacePath] = []
        self._opens = _opens(operation)
        changes = operation.changes.changes
        if len(changes) == 1 and not operation.directories and changes[0].of_file is changes[0]:
            return  # So are most operations.
        self._turning = {one.path for one in changes if one.turns}
        before = {one.path: one.before for one in changes}
        after = {one.path: one.after for one in changes}
        coming: dict[WorkspacePath, Revision | None] = {
            path: side for path, side in after.items() if side and side.is_folder
        }
        for root, folder in operation.directories:
            coming.setdefault(WorkspacePath(root, folder), None)
        self._coming = dict(sorted(coming.items()))
        self._going = {
            path: side
            for path, side in sorted(before.items(), reverse=True)
            if side and side.is_folder
        }
        self._named = {path for path in self._coming if path in after}
        # A folder that stays, and is given other rights.
        self._staying = {
            path: (side, self._coming.pop(path))
            for path, side in [*self._going.items()]
            if path in self._coming
        }
        for path in self._staying:
            del self._going[path]

    def beside(self, path: WorkspacePath) -> str | None:
        """The folder for the temporary name of a file, where that is not the file's own."""
        above = turning_above(path, self._turning)
        return None if above is None else dirname(above.path) or "."

    def of_temporary(self, path: WorkspacePath) -> str:
        """The folder of a file's temporary name."""
        return self.beside(path) or dirname(path.path) or "."

    def make(self) -> None:
        """Make the folders that are to be there before any file is written.

        Raises:
            FilepactError: One cannot be made.
        """
        for path, before in [*self._going.items()] if self._opens else []:
            if _is_shut(before) and path not in self.moved:
                self._give(path, _opened(before))
        for path, (before, _) in self._staying.items():
            if _is_shut(before):
                self._give(path, _opened(before))
        for path, state in self._coming.items():
            if not self._turns(path) and path not in self.moved:
                self._make(path, state)

    def turn(self) -> None:
        """Remove the folders that make way, and make those for which a file has made way.

        Call it when the files that go are gone, and none has come.

        Raises:
            StaleFileError: One holds something that the operation does not know of.
            WriteFailedError: The system refused.
        """
        for path in self._turned(self._going):
            if not self._root_of(path.root).remove_directory(path.path):
                raise StaleFileError(
                    f"{path.path}: holds something that was put there meanwhile",
                    hint="Nothing was changed. Look into the folder, and move what is wanted elsewhere.",
                    path=path.path,
                )
        for path in self._turned(self._coming):
            self._make(path, self._coming[path])

    def turn_back(self) -> None:
        """Undo what was done of `turn`; files that have come are to be gone.

        What cannot be undone is found when the files that went are to come back.
        """
        for path in reversed(self._turned(self._coming)):
            with suppress(FilepactError):
                self._root_of(path.root).remove_directory(path.path)
        for path in reversed(self._turned(self._going)):
            with suppress(FilepactError):
                self._make(path, self._going[path])

    def take_back(self) -> None:
        """Undo what was done of `make`, as far as the folders are empty."""
        self.turn_back()
        for path in (one for one in reversed(self._new) if one in self._named):
            with suppress(FilepactError):
                self._root_of(path.root).remove_directory(path.path)
        for path, (before, _) in self._staying.items():
            if _bits(before) is not None:
                self._give(path, before)
        for path, state in self._going.items():
            # What went out of it and came back has left a time.
            now = self._root_of(path.root).folder_state(path.path)
            if (self._opens and now and _is_shut(state)) or (state.attributes and now == state):
                self._give(path, state)

    def settle(self) -> tuple[WorkspacePath, ...]:
        """Remove the folders that go and make no way, and give the others what they are to have.

        Returns:
            Those that stay, since they hold something by now.
        """
        stay: list[WorkspacePath] = []
        for path in self._going:
            root = self._root_of(path.root)
            if self._turns(path) or path in self.moved:
                continue
            with suppress(FilepactError):
                there = root.place(path.path, known=True).kind == "directory"
                if not there or root.remove_directory(path.path):
                    continue
            stay.append(path)
            if self._opens and _is_shut(self._going[path]):
                self._give(path, self._going[path])
        # Innermost first: whatever is done in a folder is the time of its last change.
        for path in reversed(self._new):
            state = self._coming[path]
            if state is not None and (_is_shut(state) or state.attributes is not None):
                self._give(path, state)
        for path, (_, after) in reversed(self._staying.items()):
            if after is not None and _bits(after) is not None:
                self._give(path, after)
        return tuple(stay)

    def remove_made(self) -> None:
        """Remove the folders that the operation names and has made, as far as they are empty; after a crash."""
        self._new = [*self._coming]
        self.take_back()

    def complete(self) -> None:
        """Do what a crash may have left undone once all files had come and gone."""
        for path in self._turned(self._coming):
            with suppress(FilepactError):
                self._make(path, self._coming[path])
        self._new = [path for path in self._coming if path in self._named]
        self.settle()

    def _turned(self, folders: Iterable[WorkspacePath]) -> list[WorkspacePath]:
        return [one for one in folders if self._turns(one) and one not in self.moved]

    def _turns(self, path: WorkspacePath) -> bool:
        return path in self._turning or turning_above(path, self._turning) is not None

    def _make(self, path: WorkspacePath, state: Revision | None) -> None:
        """Make one folder, in which files can be put for the moment."""
        made = None if _bits(state) is None or state is None else _opened(state)
        root = self._root_of(path.root)
        if root.make_directories(path.path, made):
            self._new.append(path)

    def _give(self, path: WorkspacePath, state: Revision) -> None:
        """Give a folder a state, as far as the system lets us."""
        try:
            notes = self._root_of(path.root).set_folder(path.path, state)
        except FilepactError as error:
            notes = (error.message,)
        self.notes[path] = notes


def _opened(state: Revision) -> Revision:
    """The state of a folder in which its owner can make files."""
    return Revision(state.content, state.mode | _OPEN, state.attributes)


def _is_shut(state: Revision) -> bool:
    """Whether a folder has permission bits with which its owner can put no files into it."""
    return _bits(state) is not None and state.mode & _OPEN != _OPEN


def _opens(operation: Operation) -> bool:
    """Whether it does again, or takes back, what a program could do that had opened a folder for it."""
    return operation.kind != "change" or operation.tool == "run"


def shut_folders(operation: Operation, root_of: Callable[[RootId], Root]) -> list[FileChange]:
    """Folders that are opened for the moment, since names come and go in them that this user may not put there.

    Each is a change that changes nothing, so that the journal knows what a crash has to give back; see `lasting`.
    """
    found: dict[WorkspacePath, FileChange] = {}
    changes = operation.changes.changes if _opens(operation) else ()
    named = {WorkspacePath(*one) for one in operation.directories}
    named |= {one.path for one in changes if one.of_file is not one}
    for change in changes:
        sides = [side for side in (change.before, change.after) if side and not side.is_link]
        above = dirname(change.path.path)
        if not above or (len(sides) == 2 and not change.turns):
            continue  # It is written where it is.
        path = WorkspacePath(change.path.root, above)
        if path not in named and (state := root_of(path.root).shut_folder(above)):
            found[path] = FileChange(path, state.aside, state)
        named.add(path)
    return [*found.values()]


def lasting(changes: ChangeSet) -> ChangeSet | None:
    """Changes without those of folders that were only opened for the moment; None where that is all of them."""
    folders = [one for one in changes.changes if one.of_folder]
    passing = [one.path for one in folders if one.before and one.before.compared == one.after]
    return changes.without(passing) if passing else None


def _bits(state: Revision | None) -> int | None:
    """The permission bits of a folder; None where they are not known."""
    if state is None or (state.mode == FOLDER.mode and state.attributes is None):
        return None
    return state.mode & 0o7777


def turning_above(path: WorkspacePath, turning: Iterable[WorkspacePath]) -> WorkspacePath | None:
    """The outermost of some paths in which a path lies; None where it lies in none."""
    if not turning:
        return None
    parts = path.path.split("/")
    above = (WorkspacePath(path.root, "/".join(parts[:end])) for end in range(1, len(parts)))
    return next((one for one in above if one in turning), None)


def missing_folders(
    changes: ChangeSet, root_of: Callable[[RootId], Root]
) -> tuple[tuple[RootId, str], ...]:
    """The folders that have to be made for new files, outermost first."""
    new = [one for one in changes.changes if one.before is None]
    turning = {one.path for one in changes.changes if one.turns} if new else set()
    found: dict[tuple[RootId, str], None] = {}
    for change in new:
        root, path = change.path
        missing: list[tuple[RootId, str]] = []
        way = turning_above(change.path, turning)
        above = dirname(path)
        while above and (
            len(above) > len(way.path)
            if way
            else root_of(root).place(above, known=True).kind == "missing"
        ):
            missing.insert(0, (root, above))
            above = dirname(above)
        found |= dict.fromkeys(missing)
    return tuple(found)


def settle_folders(
    steps: FolderSteps, operation: Operation, store: JournalStore, root_of: Callable[[RootId], Root]
) -> dict[WorkspacePath, str]:
    """Settle folders; who takes back what was made also removes those that were made for it, if empty now.

    Returns:
        Those that stay though they were to go, and why.
    """
    steps.settle()
    back = [] if operation.kind == "redo" else taken_back(operation, store)
    whole = operation.taken_back
    # What was made and removed again needs no change, if the removal goes back as a whole.
    known = (operation, *(one for one in back if whole.get(one.id)))
    gone = {one.path for each in known for one in each.changes.changes if one.after is None}
    made = (_new(one if whole.get(one.id, True) else _emptied(one, gone), back) for one in back)
    # Where the removal goes back in part as well, nobody knows whether the folder was meant: it stays, and that is told.
    partly = [one for one in back if not whole.get(one.id, True)]
    went = [x.path for one in partly for x in one.changes.changes if x.after is None]
    also = [one for one in went if not root_of(one.root).glance(one.path)]
    there = {WorkspacePath(*at) for one in partly for at in _emptied(one, also).directories}
    stay = dict.fromkeys(there, "other changes of the same calls stay as well")
    stay |= {path: why for one in made for path, why in remove_folders(one, root_of).items()}
    # Some may have held only what has gone with the others.
    stay |= dict.fromkeys(steps.settle(), "it is not empty")
    left = ((path, root_of(path.root), why) for path, why in sorted(stay.items()))
    return {x: why + odd_said(root, x.path) for x, root, why in left if root.glance(x.path)}


def taken_back(operation: Operation, store: JournalStore) -> list[Operation]:
    """The operations that an undo, redo or restore takes back."""
    back: list[Operation] = []
    if operation.kind == "change":
        return []
    with suppress(FilepactError):
        if operation.kind == "restore":
            root = operation.changes.paths[0].root
            try:
                after = store.checkpoint(operation.target, root).seq
            except NotFoundError:
                after = store.operation(operation.target).seq - 1
            since = store.operations(root=root, after_seq=after, limit=None)
            back = [one for one in since if one.was_done and one.id != operation.id]
        else:
            named = operation.taken_back or ([operation.target] if operation.kind == "redo" else [])
            back += map(store.operation, named)
    return back


def _emptied(made: Operation, gone: Iterable[WorkspacePath]) -> Operation:
    """The operation that was taken back, with those folders made for it that lost an entry."""
    around = _around(gone)
    return replace(made, directories=tuple(one for one in made.directories if one in around))


def _new(made: Operation, back: Iterable[Operation]) -> Operation:
    """The operation that was taken back, without those of its folders that an earlier one of these had removed."""
    earlier = [x for one in back if one.seq < made.seq for x in one.changes.changes]
    were = {x.path for x in earlier if x.before and x.before.is_folder and x.after is None}
    return replace(made, directories=tuple(x for x in made.directories if x not in were))


def remove_folders(
    operation: Operation, root_of: Callable[[RootId], Root]
) -> dict[WorkspacePath, str]:
    """Remove the folders that were made for an operation, as far as they are empty; those that stay, and why."""
    stay: dict[WorkspacePath, str] = {}
    for root_id, path in reversed(operation.directories):
        try:
            root = root_of(root_id)
            if not root.remove_directory(path) and root.place(path).kind == "directory":
                stay[WorkspacePath(root_id, path)] = "it is not empty"
        except WriteFailedError as error:
            stay[WorkspacePath(root_id, path)] = error.message
        except FilepactError:
            pass  # It is somewhere else now, or something else.
    return stay


# -- what others did ----------------------------------------------------------------------


def with_folders(
    guard: Guard,
    changes: Iterable[FileChange],
    known: KnownFolders,
    was_free: Callable[[WorkspacePath], bool],
    wanted: Callable[[WorkspacePath], bool],
) -> list[FileChange]:
    """Changes of files with the folders that went with them, and that took or left the name of one.

    Of the folders that came with them only those with permission bits of their own are among these, and those that
    were there by another name: others are made where they are needed.

    Args:
        guard: The roots.
        changes: What was found.
        known: The folders that were there before, with their states, by root.
        was_free: Whether a name was free before, for certain.
        wanted: Whether a folder around none of these files counts: else a later look tells of it.
    """
    found: dict[WorkspacePath, FileChange] = {}
    tops: set[WorkspacePath] = set()
    still: set[WorkspacePath] = set()

    def is_gone(folder: WorkspacePath) -> bool:
        """Asked of each folder once, and of none below one that has gone."""
        above = dirname(folder.path)
        if above in known.get(folder.root, {}) and is_gone(WorkspacePath(folder.root, above)):
            tops.add(folder)
        if folder not in tops and folder not in still:
            (tops if folder_at(guard, folder) is None else still).add(folder)
        return folder in tops

    for change in changes:
        root, path = change.path
        before, after, there = change.before, change.after, known.get(root, {})
        if before is None and path in there:
            before = there[path]
        elif after is None:
            above = dirname(path)
            if above not in there or not is_gone(WorkspacePath(root, above)):
                after = folder_at(guard, change.path)
        found[change.path] = FileChange(change.path, before, after)
    around = _around(found if tops else ())
    gone = {
        path: FileChange(path, state, None)
        for root, there in (known.items() if tops else ())
        for path, state in ((WorkspacePath(root, name), state) for name, state in there.items())
        if path not in found and (path in tops or turning_above(path, tops))
        # Where nothing is recorded of a repository, it goes and comes with what it lies in.
        if path in around or (wanted(path) and not _in_git(path))
    }
    stamps = {(one.before.mode, written(one.before)) for one in gone.values() if one.before}
    git = {tail: one.before for path, one in gone.items() if (tail := _in_git(path))}
    for root, path in made_folders(found.values(), known, was_free):
        where = WorkspacePath(root, path)
        state = (own := git.get(_in_git(where))) or folder_at(guard, where)
        moved = own or (state and (state.mode, written(state) or 0) in stamps)
        if state and (moved or not guard.root_of(root).makes(path, state)):
            found.setdefault(where, FileChange(where, None, state))
    return [*(found | gone).values()]


def _in_git(path: WorkspacePath) -> str:
    """The end of the path of Git's folder, or of one in it, from that on; empty for any other."""
    return "".join(f"/{path.path}/".partition("/.git/")[1:])


def _is_git(path: WorkspacePath, state: Revision | None) -> bool:
    return state is not None and state.is_folder and basename(path.path) == ".git"


def written(folder: Revision | None) -> int | None:
    """When a name came or went in a folder last; None where that is not known."""
    return folder.attributes.modified if folder and folder.attributes else None


def same_rights(was: Revision, now: Revision) -> bool:
    """Whether a folder that stays has the same rights, as far as they are known."""
    if None in (_bits(was), _bits(now)):
        return True
    return was == now if was.attributes else (was.mode ^ now.mode) & 0o777 == 0


def folder_at(guard: Guard, path: WorkspacePath) -> Revision | None:
    """The state of a folder; None where none is."""
    with suppress(FilepactError):
        return guard.root_of(path.root).folder_state(path.path)
    return None


def folders_alone(
    guard: Guard,
    changes: Collection[FileChange],
    differing: Iterable[FolderChange],
    renamed: Collection[FileChange] = (),
) -> tuple[list[FileChange], list[FileChange], list[FileChange]]:
    """Folders that came or went without any file, or have other permissions.

    Args:
        guard: The roots.
        changes: What has become of files, with the folders that went along.
        differing: The folders that are different.
        renamed: Those of them that have another name.

    Returns:
        All that can go back; what is only told; and the folders in those that have another name.
    """
    told = {one.path for one in changes}
    along: list[FileChange] = []
    around = _around(one.path for one in changes if one.before is None)
    moved = {one.path for one in renamed}
    back = [*(one for one in changes if one.path not in moved), *renamed]
    # A pipe or the like took the place of a file, and stays when that is to come back.
    gone = (one.path for one in changes if one.after is None)
    odd = (path for path in gone if is_odd(guard.root_of(path.root), path.path))
    lost = [FileChange(path, None, INSTEAD) for path in odd]
    # What a repository held besides what steers it was not looked at, and has gone unless all of it has another place.
    came = [one.after for one in changes if one.before is None and _is_git(one.path, one.after)]
    lost += [
        FileChange(one.path, replace(one.before, content=_NOT_HELD), None)
        for one in changes
        if one.before and one.after is None and _is_git(one.path, one.before)
        if one.before not in came
    ]
    for path, whole, now, made in differing:
        was = whole and whole.as_whole("")
        # Of a pipe or the like that a file has taken the place of, both count.
        is_told = path in told and was != PIPE
        if is_told or path in moved or (was is None and path in around):
            continue
        if turning_above(path, moved):
            along.append(FileChange(path, was, now))
            continue
        cache = made and basename(path.path) in CACHES
        if cache and now:
            continue
        # What this user may not look into holds what nobody knows.
        one = was or now
        if (made and not cache) or (
            one and None in (was, now) and not one.attributes and one.mode & 0o500 != 0o500
        ):
            lost.append(
                FileChange(path, *(one and replace(one, content=_NOT_HELD) for one in (was, now)))
            )
            continue
        state = folder_at(guard, path)
        known = state or is_gone(guard.root_of(path.root), path.path)
        if (state is None) != (now is None) or not known:
            continue  # It is another one by now: a later look tells of it.
        change = FileChange(path, was, now)
        with suppress(FilepactError):
            guard.permit(path, "write" if now is None else "delete", back=True)
            back.append(change)
    return back, lost, along


def _around(paths: Iterable[WorkspacePath]) -> set[WorkspacePath]:
    return {WorkspacePath(one.root, above) for one in paths for above in folders_above(one.path)}


def made_folders(
    changes: Iterable[FileChange], known: KnownFolders, was_free: Callable[[WorkspacePath], bool]
) -> tuple[tuple[RootId, str], ...]:
    """Folders that came with new files, outermost first; not those that may have been there, unknown."""
    made: set[tuple[RootId, str]] = set()
    for change in (changes := [*changes]):
        above = dirname(change.path.path) if change.before is None else ""
        while above and above not in known.get(change.path.root, ()):
            if was_free(WorkspacePath(change.path.root, above)):
                made.add((change.path.root, above))
            above = dirname(above)
    # One that took the place of a file is a change of its own.
    return tuple(sorted(made - {(*change.path,) for change in changes if change.turns}))

"""Entries of an operation that get another name and stay what they are: they are renamed, and not made anew.

So inode, other links, open programs and times stay with them.  A file or link is one when it goes in a state in which
another name comes, and a folder when all that lies in it goes along.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from posixpath import basename, commonprefix, dirname
from typing import TYPE_CHECKING, Final

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import WorkspacePath
from filepact.domain.protected import steers_git
from filepact.errors import FilepactError, StaleFileError, WriteFailedError
from filepact.fs.walk import TreeReader
from filepact.fs.watch import folder_sign
from filepact.text.gitignore import MACHINE_FOLDERS
from filepact.values import dataclass, replace
from filepact.workspace.file_snapshot import CACHES, is_machine_made
from filepact.workspace.folder_steps import folder_at, written

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

    from filepact.domain.document import Document, Revision, RootId
    from filepact.domain.operation import Operation
    from filepact.domain.policy import Rule
    from filepact.fs.in_place import WriteResult
    from filepact.fs.root import Root
    from filepact.workspace.file_states import FileState
    from filepact.workspace.folder_steps import FolderChange, FolderSteps
    from filepact.workspace.guard import Guard
    from filepact.workspace.kept_files import KnownFiles

    Pair = tuple[FileChange, FileChange]
    Changes = dict[WorkspacePath, FileChange]
    States = Mapping[WorkspacePath, FileState | None]

__all__ = [
    "MoveSteps",
    "as_moved",
    "carry",
    "fit_whole",
    "lost_repositories",
    "make_again",
    "moves_of",
    "of_repository",
    "renamed",
    "same_entries",
    "state_key",
    "whole_moves",
    "with_repositories",
]

_COMPARED: Final = 64
"""Entries in the very same state of which the names are compared, and files of which the lines are."""

_UNSEEN: Final = {".git", *MACHINE_FOLDERS}


@dataclass(frozen=True, slots=True)
class Move:
    """One entry that gets another name.

    Attributes:
        source: The name that it has.
        target: The name that it gets, which is free.
        changes: The changes that are done by that: of a folder, those of all that lies in it as well.
    """

    source: WorkspacePath
    target: WorkspacePath
    changes: tuple[FileChange, ...]

    @property
    def folder(self) -> str:
        """Which folder it is that is moved with all that is in it, as `Attributes.linked` has it; else empty."""
        state = self.changes[0].before
        return state.attributes.linked if state and state.is_whole and state.attributes else ""

    @property
    def apart(self) -> tuple[Move, ...]:
        """The moves of what lies in a folder, each by itself."""
        pairs = (*same_entries(self.changes), *whole_moves(self.changes))
        return tuple(Move(old.path, new.path, (old, new)) for old, new in pairs)

    @property
    def states(self) -> tuple[tuple[str, Revision], ...]:
        """The states of what is moved by the paths below the entry; that of the entry itself by an empty one."""
        at = len(self.target.path) + 1
        return tuple(
            (one.path.path[at:], one.after)
            for one in self.changes
            if one.after is not None and one.before is None
        )


def moves_of(changes: ChangeSet) -> tuple[Move, ...]:
    """The moves of a change set, which no change of it has to go before."""
    if len(some := changes.changes) == 1:
        return ()
    turning = {one.path for one in some if one.turns}
    pairs = [x for x in same_entries(some) if not any(_is_below(y.path, turning) for y in x)]
    whole = whole_moves(some)
    ends = {one.path for pair in whole for one in pair}
    homes = {
        _home(old.path): _home(new.path) for old, new in whole if basename(old.path.path) == ".git"
    }
    rest = [x for x in some if x.path not in ends and not _is_below(x.path, turning)]
    folders = _folders(rest, pairs, homes)
    for old, new in whole:
        # One that lies in another folder which is moved goes along.
        for at, (source, target, inside) in enumerate(folders):
            below = old.path.path.removeprefix(source.path.path)
            if _lies_in(old.path, source.path) and new.path.path == target.path.path + below:
                folders[at] = source, target, (*inside, old, new)
                break
        else:
            folders.append((old, new, (old, new)))
    # What comes in one of these comes with that.
    tops = {side.path for one in folders for side in one[:2]}
    apart = [pair for pair in pairs if not any(_is_below(side.path, tops) for side in pair)]
    alone = [Move(pair[0].path, pair[1].path, pair) for pair in apart]
    return (*(Move(old.path, new.path, whole) for old, new, whole in folders), *alone)


class MoveSteps:
    """The moves of an operation, which are done before everything else of it, but for those into a folder that turns.

    Args:
        operation: The operation.
        root_of: The open root of a path.
        folders: Is told which folders come and go with another.

    Attributes:
        paths: The names that change by moves.
        first: The first entry that is moved; None for none.
        late: Moves into a folder for which a file or link makes way.
    """

    def __init__(
        self, operation: Operation, root_of: Callable[[RootId], Root], folders: FolderSteps
    ) -> None:
        changes = operation.changes
        self._root_of = root_of
        self._folders = folders
        self._alone = operation.kind == "change" and operation.tool != "redo"
        self._moves = moves_of(changes)
        turning = {one.path for one in changes.changes if one.turns} if self._moves else set()
        self.late = [one for one in self._moves if _is_below(one.target, turning)]
        self._done: list[Move] = []
        self._whole = {one.path for pair in whole_moves(changes.changes) for one in pair}
        self.first = self._moves[0].source if self._moves else None
        self.paths = _paths(self._moves)
        folders.moved = self.paths

    def do(self) -> frozenset[WorkspacePath]:
        """Do all moves.

        Returns:
            The names of those that can be done by copies only.

        Raises:
            FilepactError: One cannot be done; the others can be taken back.
        """
        whole = self._do_all(one for one in self._moves if one not in self.late)
        if whole:
            self._folders.moved = self.paths - _paths(whole) | self._whole
            self._folders.make()
        return _paths(self._do_all(each for one in whole for each in one.apart))

    def turn(self) -> None:
        """Turn folders, as `FolderSteps.turn` has it, and move into those that have come what is never copied."""
        self._folders.turn()
        self._do_all(self.late)

    def turn_back(self) -> list[FileChange]:
        """Undo what was done of `turn`; as `take_back`."""
        late = [one for one in reversed(self._done) if one in self.late]
        self._done = [one for one in self._done if one not in late]
        kept = self._give_back(late)
        self._folders.turn_back()
        return kept

    def _do_all(self, moves: Iterable[Move]) -> list[Move]:
        left: list[Move] = []
        for one in moves:
            done = rename(self._root_of(one.source.root), one, alone=self._alone)
            (self._done if done else left).append(one)
        return left

    def take_back(self) -> list[FileChange]:
        """Give everything its former name again; the changes of which that cannot be done."""
        done, self._done = self._done[::-1], []
        return self._give_back(done)

    def _give_back(self, done: Iterable[Move]) -> list[FileChange]:
        kept: list[FileChange] = []
        for one in done:
            try:
                back = rename(self._root_of(one.source.root), one, back=True)
            except FilepactError:
                back = False
            kept += [] if back else one.changes
        return kept

    def take_back_after_crash(self) -> None:
        """Give everything that was moved its former name again, as far as nobody has touched it since."""
        for move in self._moves:
            for one in (move, *(move.apart if len(move.changes) > 2 else ())):
                with suppress(FilepactError):
                    root = self._root_of(one.source.root)
                    ends = (one.source.path, one.target.path)
                    there = [root.place(path, follow=False, known=True).kind for path in ends]
                    if there[0] == "missing" != there[1]:
                        rename(root, one, back=True)


def _paths(moves: Iterable[Move]) -> frozenset[WorkspacePath]:
    return frozenset(one.path for move in moves for one in move.changes)


def rename(root: Root, one: Move, *, back: bool = False, alone: bool = False) -> bool:
    """Do a move, or take it back; false, and nothing is done, where only copies can be made.

    A folder that moves `alone` holds nothing: what is there may wait for a person.

    Raises:
        StaleFileError: What is there is something else than what the change starts from, or the new name is taken.
        WriteFailedError: The system refused; nothing was changed.  Of a folder with all that is in it no copy is made.
    """
    old, new = (one.target, one.source) if back else (one.source, one.target)
    states = one.states
    if one.folder:
        _move_whole(root, old.path, new.path, one)
        return True
    ends, whole = (one.source, one.target), len(one.changes) == 2 * len(states)
    names = {x.path[len(at.path) + 1 :] for at in ends for x in _paths((one,)) if _lies_in(x, at)}
    # Of a folder that nobody looks into, what lies in it is known under one of its names only, and not all of it.
    kept = {f"{old.path}/{name}" for name, state in states if name and state.is_whole}
    # With a repository goes whatever else somebody has put beside it.
    homes = {dirname(path[len(old.path) + 1 :]) for path in kept if basename(path) == ".git"}
    kept |= {f"{old.path}/{name}" for name in homes}
    known = "" in homes or not (names or (alone and states[0][1].is_folder))
    known = known or (not whole and back)
    if not known and _holds_only(root, old.path, names, kept) != whole:
        return False
    there = whole or all(root.folder_state(f"{old.path}/{name}") for name, _ in states if name)
    return there and root.rename(old.path, new.path, states)


def _move_whole(root: Root, path: str, to: str, one: Move) -> None:
    place = root.place(path, follow=False, known=True)
    if place.kind != "directory" or f"{place.inode:x}" != one.folder:
        raise StaleFileError(
            f"{path}: is not the folder that was moved",
            hint="Nothing was changed. Look for the folder, and move it by hand if that is wanted.",
            path=path,
        )
    if not root.rename(path, to, one.states):
        raise WriteFailedError(
            f"{path}: the system does not rename this folder to {to} in one step",
            hint="Nothing was changed. Another file system may be mounted in it, or begin there.",
            path=path,
        )


def whole_moves(changes: Iterable[FileChange]) -> list[Pair]:
    """Folders that go with all that lies in them, each with the change by which it comes."""
    changes = [*changes]
    going = {
        (one.path.root, one.before.attributes.linked): one
        for one in changes
        if one.before and not one.after and one.before.is_whole and one.before.attributes
    }
    return [
        (going[key], one)
        for one in (changes if going else ())
        if one.after and not one.before and one.after.is_whole and one.after.attributes
        if (key := (one.path.root, one.after.attributes.linked)) in going
    ]


def fit_whole(
    changes: ChangeSet, current: Callable[[WorkspacePath], Document | None]
) -> Iterator[FileChange]:
    """The changes of folders that move with all that is in them, fitted to the rights that they have by now."""
    for old, new in whole_moves(changes.changes):
        folder = current(old.path)
        if folder is not None and old.before is not None and current(new.path) is None:
            state = folder.revision.as_whole(old.before)
            # What somebody has put into it does not go where programs clear away.
            fits = basename(new.path.path) not in MACHINE_FOLDERS - {".git"} or (
                written(state) == written(old.before)
            )
            if state.is_whole and fits:
                yield from (FileChange(old.path, state, None), FileChange(new.path, None, state))


def lost_repositories(
    changes: ChangeSet, current: Callable[[WorkspacePath], Document | None]
) -> list[WorkspacePath]:
    """Both names of each `.git` that is not where it was moved to: nothing is left that could be torn apart."""
    found: list[WorkspacePath] = []
    for old, new in whole_moves(changes.changes):
        with suppress(FilepactError):
            if basename(old.path.path) == ".git" and not current(old.path):
                found += [old.path, new.path]
    return found


def renamed(
    guard: Guard, changes: Collection[FileChange], differing: Iterable[FolderChange]
) -> list[FileChange]:
    """Folders that nobody looks into and that have another name now, but for those in which something else was changed.

    A cache that is seen by its new name goes back by that, if it is as it was.
    """
    found: list[FileChange] = []
    going = {
        (one.path.root, one.before.attributes.linked): FileChange(one.path, one.before, None)
        for one in differing
        if one.after is None and one.before and one.before.is_whole and one.before.attributes
    }
    for one in differing if going else ():
        root = guard.root_of(one.path.root)
        state, sign = root.folder_state(one.path.path), folder_sign(root, one.path.path)
        old = going.get((one.path.root, sign)) if one.before is None else None
        inside = (_lies_in(other.path, one.path) for other in changes)
        if old and basename(old.path.path) in CACHES and not one.made:
            continue
        if old is None or old.before is None or state is None or any(inside):
            continue
        with suppress(FilepactError):
            guard.permit(old.path, "write", back=True)
            guard.permit(one.path, "delete", back=True)
            number = sign.partition(" ")[0]
            found.append(FileChange(old.path, old.before.as_whole(number), None))
            found.append(FileChange(one.path, None, state.as_whole(number)))
    return found


def carry(files: KnownFiles, changes: list[FileChange], guard: Guard) -> list[FileChange]:
    """Have what is known of files go with the folder that was moved; the changes with those of the folders in it.

    What comes where programs make what they need is known no more.
    """
    inner: list[FileChange] = []
    for move in moves_of(ChangeSet(tuple(changes))):
        (root, old), (_, base), named = move.source, move.target, _paths((move,))
        if move.changes[0].of_file is not None:
            continue
        seen = not is_machine_made(guard.root_of(root), base)
        for path, state in [*files]:
            # Where there was no way but copies, nothing else has gone.
            inside = _lies_in(path, move.source) and path not in named
            if inside and (move.folder or not files.present(path)):
                files.drop(path)
                if seen:
                    files.doubt(path)
                    files.put(WorkspacePath(root, base + path.path[len(old) :]), state)
        for name, folder in files.folders[root].items():
            path, to = WorkspacePath(root, name), WorkspacePath(root, base + name[len(old) :])
            if _lies_in(path, move.source) and path not in named:
                inner.append(FileChange(path, folder, None))
                inner += [FileChange(to, None, folder)] if seen else []
    return [*changes, *inner]


def make_again(
    root: Root, change: FileChange, contents: Mapping[str, bytes], token: str
) -> WriteResult:
    """Give one file another state at once, from bytes that are known; it needs room.

    Raises:
        StaleFileError: It is not in the state that the change starts from.
        WriteFailedError: The system refused; nothing was changed.
    """
    before, path = change.before and change.before.compared, change.path.path
    if change.after is None:
        if before is None:
            raise RuntimeError("a change from nothing to nothing")
        return root.remove(path, expected=before, token=token)
    after = change.after.compared
    return root.replace(
        path,
        contents[after.content],
        mode=after.mode,
        expected=before,
        token=token,
        attributes=after.attributes,
    )


def _holds_only(root: Root, folder: str, names: set[str], kept: set[str]) -> bool:
    """Whether all that lies in a folder is what is known of it, whatever some folders in it hold, and Git's own."""
    at = len(folder) + 1

    def allow(path: str, _folder: bool) -> bool:
        return path not in kept and basename(path) != ".git"  # A repository goes as a whole.

    with TreeReader(root, folder, allow=allow, ignore=False) as entries:
        known = all(entry.path[at:] in names for entry in entries)
        return known and entries.complete and not entries.beyond


def same_entries(changes: Iterable[FileChange]) -> list[Pair]:
    """Files and links that go, each with one that comes in the very same state."""
    going: dict[object, list[FileChange]] = defaultdict(list)
    coming: list[FileChange] = []
    for one in changes:
        if one.after is None and one.before is not None and not one.before.is_folder:
            going[state_key(one, one.before.compared)].append(one)
        elif one.before is None and one.after is not None and not one.after.is_folder:
            coming.append(one)
    found: list[Pair] = []
    for new in coming if going else ():
        if new.after is None or (new.after.attributes is None and not new.after.is_link):
            continue  # It was made, whatever it holds.
        some = going.get(state_key(new, new.after), [])
        if some:
            old = max(some[:_COMPARED], key=lambda one: _alike(one.path.path, new.path.path))
            some.remove(old)
            found.append((old, new))
    return found


def _alike(one: str, other: str) -> int:
    """How many characters the ends of two paths have in common, in whole names."""
    at = len(commonprefix((f"/{one}"[::-1], f"/{other}"[::-1])))
    return f"/{one}"[-at:].count("/") if at else 0


def state_key(one: FileChange, state: Revision) -> object:
    """A key that is the same for two names of which one may get what the other holds."""
    attributes = state.attributes
    modified = None if attributes is None else attributes.modified
    return one.path.root, state.content, state.mode, attributes, modified


def _folders(
    changes: Iterable[FileChange],
    pairs: Iterable[Pair],
    homes: Mapping[WorkspacePath, WorkspacePath],
) -> list[tuple[FileChange, FileChange, tuple[FileChange, ...]]]:
    """Folders that go with all that lies in them, each with one that comes so, and the changes of both."""
    going = {x.path: x for x in changes if x.after is None and x.before and x.before.is_folder}
    coming = {x.path: x for x in changes if x.before is None and x.after and x.after.is_folder}
    if not going or not coming:
        return []
    names = {old.path: new.path for old, new in pairs}
    found: list[tuple[FileChange, FileChange, tuple[FileChange, ...]]] = []
    folders = going.keys() | coming.keys()
    taken: set[WorkspacePath] = set()
    for path, old in sorted(going.items()):
        if _is_below(path, taken):
            continue
        inside = [one for one in changes if _lies_in(one.path, path)]
        home = homes.get(path)
        new = coming.get(home) if home else _counterpart(path, inside, names, going, coming)
        same = new and old.before and old.before.attributes and old.before == new.after
        if new is None or not same or new.path in taken or _lies_in(new.path, path):
            continue
        there = [one for one in changes if _lies_in(one.path, new.path)]
        before = dict(_below(one, path, one.before) for one in inside if not one.after)
        after = dict(_below(one, new.path, one.after) for one in there if not one.before)
        known = len(before) == len(inside) and len(after) == len(there)
        # One in it of the same time and of the other's name is that one rather.
        ends = {basename(path.path), basename(new.path.path)}
        some = (x for x in (*inside, *there) if basename(x.path.path) in ends and len(ends) > 1)
        own = all(written(x.before or x.after) != written(old.before) for x in some)
        unknown = not (before and after) and all(one.path in folders for one in (*inside, *there))
        if known and (before == after or (unknown and own)):
            taken |= {path, new.path}
            found.append((old, new, (old, new, *inside, *there)))
    return found


def of_repository(
    guard: Guard,
    about: tuple[WorkspacePath, FileState | None, FileState | None, Container[str]],
    states: States,
    known: Callable[[WorkspacePath], FileState | None],
    moved: dict[WorkspacePath, WorkspacePath],
) -> bool:
    """Whether a file that steers Git counts by itself: of a repository that an agent has made nothing goes, or comes, back.

    `moved` is given each `.git` that was moved, by the name that it had: it goes as a whole.
    """
    path, old, now, there = about
    top, _, end = f"/{path.path}".partition("/.git/")
    home, root = path._replace(path=f"{top}/.git".lstrip("/")), guard.root_of(path.root)
    recorded = not end or home.path in there
    if old is None and dirname(path.path) not in there:
        # A `.git` that is a file comes where another went: that of a submodule or linked work tree.
        gone = (known(x) for x, it in states.items() if it is None and basename(x.path) == ".git")
        same = (x.revision and now and x.revision == now.revision for x in gone if x)
        return basename(path.path) == ".git" and any(same)
    if now or not end or not old or not old.stamp or folder_at(guard, home):
        return bool(now) or recorded
    some = ((one, it.stamp) for one, it in states.items() if it and it.stamp)
    came = (one.path for one, stamp in some if stamp[:3] == old.stamp[:3] and one.root == path.root)
    tops = (x.removesuffix(f"/{end}") for x in came if dirname(x) not in there)
    if new := next((one for one in tops if root.glance(f"{one}/HEAD")), ""):
        moved[home] = path._replace(path=new)
    return recorded and not new


def with_repositories(
    guard: Guard,
    changes: list[FileChange],
    moved: Mapping[WorkspacePath, WorkspacePath],
    states: States,
    known: Callable[[WorkspacePath], FileState | None],
    kept: Container[str],
) -> tuple[list[FileChange], dict[WorkspacePath, FileChange]]:
    """The changes with each `.git` that was moved as one that goes whole; and by each name what is other in it, as if before."""
    inner: dict[WorkspacePath, FileChange] = {}
    for old, new in moved.items():
        root, state = guard.root_of(new.root), folder_at(guard, new)
        if state is None or state.attributes is None or folder_at(guard, old):
            continue
        came = (x.path[len(new.path) :] for x in states if _lies_in(x, new))
        tails = {x.path[len(old.path) :] for x in states if _lies_in(x, old)}
        for tail in sorted(tails.union(x for x in came if steers_git(f".git{x}"))):
            ends = old._replace(path=old.path + tail), new._replace(path=new.path + tail)
            some = known(ends[0]), states.get(ends[1])
            one, two = (x and x.revision for x in some)
            read = all(x is None or (x.revision and x.revision.content in kept) for x in some)
            # One that is there and does not count is for another look.
            if read and one != two and (two or not root.glance(ends[1].path)):
                inner |= dict.fromkeys(ends, FileChange(ends[0], one, two))
        # Its names come and go with every commit: by when that was last, it is not known.
        bare = replace(state, attributes=replace(state.attributes, modified=None))
        whole = bare.as_whole(folder_sign(root, new.path).partition(" ")[0])
        changes = [one for one in changes if not _is_below(one.path, (old, new))]
        changes += [FileChange(old, whole, None), FileChange(new, None, whole)]
    return changes, inner


def as_moved(
    told: dict[WorkspacePath, Rule],
    changes: Iterable[FileChange],
    inner: Mapping[WorkspacePath, FileChange],
) -> dict[WorkspacePath, Rule]:
    """Rules for files, by the folder with which one went whole, and by its name before if it is a change of its own."""
    ends = [one.path for pair in whole_moves(changes) for one in pair]
    found = {next((x for x in ends if _lies_in(one, x)), one): rule for one, rule in told.items()}
    return found | {inner[one].path: rule for one, rule in told.items() if one in inner}


def _home(repository: WorkspacePath) -> WorkspacePath:
    return repository._replace(path=dirname(repository.path))


def _below(
    one: FileChange, folder: WorkspacePath, state: Revision | None
) -> tuple[str, Revision | None]:
    """The path of an entry in a folder, and its state, but that of Git's own folders, which is not recorded."""
    tail = one.path.path[len(folder.path) :]
    return tail, None if one.of_file is None and "/.git/" in f"{tail}/" else state


def _counterpart(
    path: WorkspacePath,
    inside: list[FileChange],
    names: dict[WorkspacePath, WorkspacePath],
    going: Changes,
    coming: Changes,
) -> FileChange | None:
    """The folder that comes where one goes, by where a file of it goes; without one, by when a name last came in it."""
    for one in inside:
        target = names.get(one.path)
        ends = one.path.path[len(path.path) :]
        if target is not None and target.path.endswith(ends):
            return coming.get(WorkspacePath(path.root, target.path[: -len(ends)]))
    at = path.root, written(going[path].before)
    new = _outermost(coming, at)
    if new is None or _outermost(going, at) != path or any(one.path not in going for one in inside):
        return None
    return coming[new]


def _outermost(some: Changes, at: tuple[RootId, int | None]) -> WorkspacePath | None:
    """The folder of a time; None where several have it that do not lie in it: what they hold would be mixed up."""
    of = ((path, written(one.before or one.after)) for path, one in some.items())
    found = sorted(path for path, time in of if (path.root, time) == at)
    return found[0] if found and all(_lies_in(one, found[0]) for one in found[1:]) else None


def _lies_in(path: WorkspacePath, folder: WorkspacePath) -> bool:
    return path.root == folder.root and path.path.startswith(f"{folder.path}/")


def _is_below(path: WorkspacePath, tops: Iterable[WorkspacePath]) -> bool:
    """Whether a path is one of some, or lies in one."""
    return any(path == one or _lies_in(path, one) for one in tops)

"""Files of several names (hard links) in an operation: each stays the file that it is where that can be.

A name that such a file gets is given to it beside the place, as another text would be, and exchanged with what is there.
A name that it gives up is removed as any other.  So names are handed on in any order, in swaps and chains as well.  Where the
file gets other lines with its name, it is written in place after that, once all names are where they belong; until then a
sign says that the operation is under way, and recovery writes the old text back before it takes back any name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from posixpath import dirname
from typing import TYPE_CHECKING

from filepact.domain.change import FileChange
from filepact.domain.document import ANOTHER_FILE
from filepact.domain.operation import IN_PLACE
from filepact.errors import FilepactError
from filepact.fs.atomic import LARGEST
from filepact.fs.attributes import SEVERAL_NAMES
from filepact.fs.in_place import JOINED, Staging
from filepact.fs.path_form import temporary_name
from filepact.workspace.folder_steps import taken_back
from filepact.workspace.moves import state_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from filepact.domain.document import Revision, RootId, WorkspacePath
    from filepact.domain.operation import Operation
    from filepact.fs.root import Root
    from filepact.fs.staged import StagedChange
    from filepact.workspace.journal import JournalStore

__all__ = [
    "FileNames",
    "file_of",
    "handed",
    "handed_on",
    "stays_joined",
    "stays_one",
    "taking_over",
    "write_joined",
]


def stays_joined(operation: Operation, store: JournalStore) -> bool:
    """Whether the other names of a file (hard links) get what it gets.

    Of one that goes back they may be somebody else's, unless they came to it with this one.  What a program
    did in layers, it saw under the one name alone.
    """
    if operation.kind == "change":
        return operation.tool != "run"
    return any(IN_PLACE in one.note for one in taken_back(operation, store))


_APART = "it was another name (hard link) of a file that is there, and is a file of its own now"
_ALONE = "it was one of several names (hard links) of a file, of which no other was found here, and is a file of its own now"
_LOOKED_FOR = 8  # files of several names in one operation of which those are looked for that stayed


def file_of(change: FileChange) -> str:
    """Which file of several names (hard links) it is that comes; empty for any other, and for one that is here."""
    coming = "" if change.before else _linked(change.after)
    return "" if coming == ANOTHER_FILE else coming


def taking_over(changes: Collection[FileChange], *, back: bool = False) -> frozenset[WorkspacePath]:
    """Names in use that get what another name holds, as in a swap: what they hold is not written to, which may have other names (hard links).

    With `back` also those that get again what had one name alone: it is not the file that has several by now.
    """
    held = {state_key(one, one.before.compared) for one in changes if one.before}
    both = [(one, one.after) for one in changes if one.before and one.after]
    given = {one.path for _, some in _givers(changes).values() for one in some}
    return frozenset(
        one.path
        for one, to in both
        if one.of_one_file is False
        or one.path in given
        or state_key(one, to) in held
        or (back and _linked(one.before) and to.attributes and not _linked(to))
    )


def handed_on(changes: Collection[FileChange]) -> dict[WorkspacePath, tuple[FileChange, bool]]:
    """Names that get a file of several (hard links) which another name gives up.

    Returns:
        For each the change of that name, and whether all names of the file that change are to hold the same.
    """
    found: dict[WorkspacePath, tuple[FileChange, bool]] = {}
    for (_root, file), (some, givers) in _givers(changes).items():
        given = {one.path for one in givers}
        held = [one for one in some if one.after and one.path not in given]
        alike = len({(one.after.content, one.after.mode) for one in held if one.after}) == 1
        found |= {one.path: (givers[0], alike) for one in held if _linked(one.before) != file}
    return found


def _givers(
    changes: Collection[FileChange],
) -> dict[tuple[RootId, str], tuple[list[FileChange], list[FileChange]]]:
    """The changes of files of several names, by the file, where another name gets it; and those of names that give it up."""
    known: dict[tuple[RootId, str], list[FileChange]] = defaultdict(list)
    for one in changes if len(changes) > 1 else ():
        for file in {_linked(one.before), _linked(one.after)} - {"", ANOTHER_FILE}:
            known[one.path.root, file].append(one)
    found: dict[tuple[RootId, str], tuple[list[FileChange], list[FileChange]]] = {}
    for (root, file), some in known.items():
        had = [one for one in some if _linked(one.before) == file]
        coming = sum(_linked(one.after) == file for one in some if one not in had)
        told = [one for one in had if not one.after or _linked(one.after) not in ("", file)]
        # Where it is not said, as of what had one name before it was undone, it is the one that does not stay.
        givers = told if len(told) >= coming else [one for one in had if one.of_one_file is None]
        if coming and givers:
            found[root, file] = some, givers
    return found


def _linked(state: Revision | None) -> str:
    known = state.attributes if state and not state.is_folder else None
    return known.linked if known else ""


class FileNames:
    """The files of several names (hard links) that get other names in an operation, and other lines with that.

    Each stays the file that it is.  Once all names are where they belong, it is written in place, as where it keeps its name.

    Args:
        operation: The operation.
        root_of: The open root of a path.
        joins: Whether the other names of a file may get what it gets.
    """

    def __init__(
        self, operation: Operation, root_of: Callable[[RootId], Root], *, joins: bool
    ) -> None:
        self._token = f"{operation.id}-{len(operation.changes.changes) + 1}"
        self._root_of = root_of
        self._files: dict[WorkspacePath, tuple[FileChange, str]] = {}
        self._written: list[tuple[FileChange, str, StagedChange]] = []
        self._others: dict[str, str] = {}
        self.brings_back = operation.kind != "change" or operation.tool == "redo"
        self._coming = Counter(map(file_of, operation.changes.changes))
        paths = {*operation.changes.paths}
        for path, (source, alike) in handed_on(operation.changes.changes).items():
            root = root_of(path.root)
            others = root.other_names(source.path.path) if not joins and alike else None
            # All its names change so together, whoever gave it these.
            named = others and all(source.path._replace(path=one) in paths for one in others)
            why = stays_one(root, source, alike=alike) if joins or named else ""
            self._files[path] = source, why

    def stage(
        self, change: FileChange, token: str, beside: str | None, kept: str
    ) -> StagedChange | None:
        """Stage that a name gets a file that has another name, or is kept; None where another file has to be made.

        Arguments as for `Root.stage`; ``kept`` is where the file is, if it was removed, and empty for nowhere.
        """
        root, path, after = self._root_of(change.path.root), change.path.path, change.after
        source, why = self._files.get(change.path, (None, ""))
        was, file = source and source.before and source.before.compared, file_of(change)
        if source and was and after and (why or was == after):
            before = change.before and change.before.compared
            given = path, source.path.path
            if one := root.join(*given, after=was, token=token, beside=beside, expected=before):
                if was != after:
                    self._written.append((FileChange(change.path, was, after), why, one))
                return one
        if after is None or not (file or kept):
            return None
        # It had several names: all that come back here are one file, and the one that stayed if there is one.
        if file and file not in self._others and len(self._others) < _LOOKED_FOR:
            self._others[file] = next(iter(root.names_of(file, near=path)), "")
        if not (other := kept or self._others.get(file, "")):
            return None
        joined = root.join(path, other, after=after, token=token, beside=beside)
        if joined is not None:
            joined.place = kept
        return joined

    def made_anew(self, change: FileChange, staged: StagedChange, *, joins: bool) -> None:
        """Tell that a name gets a file of its own, though it was one of several of a file."""
        root, path, file = self._root_of(change.path.root), change.path.path, file_of(change)
        if not joins and change.before and change.after:
            # What takes the place of another file is no name of the one that it was a name of.
            names = root.names_of(_linked(change.after), near=path)
            staged.notes += (_APART,) * any(one != path for one in names)
        if any(source.path == change.path for source, _why in self._files.values()):
            # The other names and the one that gets it keep what they have.
            staged.notes = tuple(one for one in staged.notes if SEVERAL_NAMES not in one)
        if file:
            stayed = self._others.get(file)
            staged.notes += (_APART,) * bool(stayed)
            staged.notes += (_ALONE,) * (stayed == "" and self._coming[file] < 2)
            above = dirname(path) if staged.beside is None else staged.beside
            self._others[file] = staged.temp if above in ("", ".") else f"{above}/{staged.temp}"

    def __bool__(self) -> bool:
        """Whether any is written."""
        return bool(self._written)

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write what has its name; what cannot be written is as it was, or is taken back."""
        for change, why, staged in self._written:
            notes = write_joined(self._root_of, change, contents, self._token, why)
            staged.notes += notes

    def take_back(self, contents: Mapping[str, bytes]) -> list[FileChange]:
        """Give each file its former text again, before its names go back; the changes of which that cannot be done."""
        kept: list[FileChange] = []
        for change, why, _staged in reversed(self._written):
            try:
                write_joined(self._root_of, change.inverse(), contents, self._token, why)
            except FilepactError:
                source, _why = self._files[change.path]
                kept.append(FileChange(source.path, change.before, change.after))
        return kept


def stays_one(root: Root, source: FileChange, *, alike: bool) -> str:
    """The reason for which a file that gets another name and other lines is written in place; empty where it is not."""
    others = root.other_names(source.path.path) if alike and root.keeps_links else None
    return f"{JOINED}, {', '.join(others)}" if others else ""


def write_joined(
    root_of: Callable[[RootId], Root],
    change: FileChange,
    contents: Mapping[str, bytes],
    token: str,
    why: str,
) -> tuple[str, ...]:
    """Write a text in the place of another, in the same file, if that does not hold it already."""
    root, path, before, after = (
        root_of(change.path.root),
        change.path.path,
        change.before,
        change.after,
    )
    if before is None or after is None:
        raise RuntimeError("it is of a file that has its name")
    now = root.read(path, limit=LARGEST).revision
    if now == after:
        return ()  # By another of its names.
    return root.replace(
        path,
        contents[after.content],
        mode=after.mode,
        expected=before,
        token=token,
        attributes=after.attributes,
        how=Staging(why=why),
    ).notes


def handed(
    operation: Operation,
    root_of: Callable[[RootId], Root],
    folder_of: Callable[[WorkspacePath], str],
) -> dict[WorkspacePath, tuple[FileChange, bool]]:
    """Names that are about to get a file with other lines, or have it, each with the change of that without these.

    Args:
        operation: An operation that was cut off.
        root_of: The open root of a path.
        folder_of: The folder of a temporary name.

    Returns:
        With each change, whether the name has the file.
    """
    found: dict[WorkspacePath, tuple[FileChange, bool]] = {}
    files = handed_on(operation.changes.changes)
    for number, one in enumerate(operation.changes.changes if files else ()):
        was = files[one.path][0].before if one.path in files else None
        if was is None or was.compared == one.after:
            continue
        inode, root = int(_linked(was).rpartition(":")[2], 16), root_of(one.path.root)
        aside = f"{folder_of(one.path)}/{temporary_name(f'{operation.id}-{number}')}"
        has, gets = (
            root.place(path, follow=False, known=True).inode == inode
            for path in (one.path.path, aside.removeprefix("./"))
        )
        if has or gets:
            found[one.path] = FileChange(one.path, one.before, was.compared), has
    return found

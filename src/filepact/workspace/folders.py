"""The folders of a draft: made, moved or removed with everything in them."""

from __future__ import annotations

from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final

from filepact.domain.change import FileChange
from filepact.domain.document import FOLDER, Revision, WorkspacePath
from filepact.domain.protected import is_repository
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NotAFileError,
    PathBlockedError,
    TooLargeError,
)
from filepact.fs.walk import TreeReader
from filepact.fs.watch import stamp_at
from filepact.text.confusables import trips_programs
from filepact.values import dataclass
from filepact.workspace.moves import whole_moves
from filepact.workspace.target import leads_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.change import ChangeSet
    from filepact.domain.policy import Action
    from filepact.fs.root import Root
    from filepact.workspace.authorizer import ChangePolicy
    from filepact.workspace.documents import Documents
    from filepact.workspace.guard import Guard
    from filepact.workspace.location import Location, Name
    from filepact.workspace.pending import ProposalFile, ProposalFiles

__all__ = [
    "MOST_APART",
    "MOST_MOVED",
    "MOST_OPENED",
    "FolderContents",
    "ProposalFolders",
    "check_moved",
]

MOST_MOVED: Final = 100_000
"""Most that are moved at once, which is one renaming; the rules are asked about each, under both names."""

MOST_OPENED: Final = 5_000
"""Most that are removed at once, or opened to be moved, where the names alone do not tell that it may be done."""

MOST_APART: Final = 2_000
"""Files and folders up to which each is a change of its own, which goes back alone as well."""

_ENDS: Final[tuple[Action, Action]] = ("delete", "create")
"""What is done to either name of what is moved."""

_LARGEST: Final = 64 << 20
"""Most bytes of them together."""


@dataclass(frozen=True, slots=True)
class FolderContents:
    """A folder's contents, as canonical paths.

    Attributes:
        files: Every file and every link.
        folders: The folder itself and every one in it, outermost first.
        links: Those of the files that are links on the disk.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    links: frozenset[str] = frozenset()


class ProposalFolders:
    """The folders of a change: what a session has proposed counts as done.

    Args:
        guard: The roots and the rules.
        agent: Whose change it is.
        judge: The rules about the change.
        documents: What the session has proposed.
        layers: Takes in what the session has proposed for the folders that are looked at.
        put: Takes in the change of one folder.
    """

    def __init__(
        self,
        guard: Guard,
        agent: str,
        judge: ChangePolicy,
        documents: Documents,
        layers: dict[WorkspacePath, ProposalFile],
        put: Callable[[Location, FileChange], None],
    ) -> None:
        self._layers = layers
        self._guard, self._agent = guard, agent
        self._judge = judge
        self._documents = documents
        self._put = put

    def find(self, path: Name) -> tuple[Location, bool]:
        """The place of a folder, and whether it is there.

        Raises:
            NotAFileError: A file has this name.
        """
        location = self._judge.find(path, follow=False)
        if location.place.path == ".":
            return location, True
        layer = self._look(location)
        if layer is not None and layer.change.after is None:
            return location, False
        if self._is_file(location):
            raise NotAFileError(f"{path}: a file has this name", path=path)
        return location, self.has(location, location.place.path)

    def has(self, location: Location, folder: str) -> bool:
        """Whether there is a folder in the root of a place, or proposed files are in it."""
        proposed = self._documents.proposed
        layers = () if proposed is None else proposed.below(location.root.path, folder)
        return location.root.place(folder, known=True).kind != "missing" or any(
            one.change.after is not None for one in layers
        )

    def inside(self, path: str, most: int = MOST_OPENED) -> FolderContents | None:
        """All that lies in a folder, so many files and folders at most; None for what is no folder.

        Raises:
            InvalidParamsError: It is the root, or a folder that the client shares.
            PathBlockedError: It holds something that is neither file, link nor folder.
            TooLargeError: It holds more than is moved or removed at once.
        """
        location = self._judge.find(path, follow=False)
        here = location.root.path, location.place.path
        if here[1] == "." or here in self._guard.narrowed:
            hint = "Name what lies in it."
            raise InvalidParamsError("the folder you work in stays", hint=hint, path=path)
        bare = path.rstrip("/")
        while bare.endswith("/."):
            bare = bare[:-2].rstrip("/")
        # The system takes such names for a folder that they do not show, and no other program removes that by them.
        if bare.endswith("/.."):
            hint = f"Send the folder by its own name, {location.shown}."
            raise InvalidParamsError(f"{path}: ends in ..", hint=hint, path=path)
        if bare != path and bare and self._judge.find(bare, follow=False).place.kind == "link":
            hint = (
                f"Send {bare} for the link itself, or the folder by its own name, {location.shown}."
            )
            raise NotAFileError(f"{path}: {bare} is a link, and no folder", hint=hint, path=path)
        if self._is_file(location) or not self.has(location, location.place.path):
            return None
        where = location.root, location.place.path, location.shown
        return list_inside(*where, most, self._documents.proposed)

    def check_opened(self, location: Location, inside: FolderContents) -> None:
        """Refuse to open all files in a folder where they are too many, or too large together.

        Raises:
            TooLargeError: They are.
        """
        if len(inside.files) + len(inside.folders) > MOST_OPENED:
            why = f"more than {MOST_OPENED:,} files and folders, some of which have to be opened"
            raise _too_much(location.shown, why)
        stamps = (stamp_at(location.root, path) for path in inside.files)
        size = sum(stamp.size for stamp in stamps if stamp is not None)
        if size > _LARGEST:
            raise _too_much(location.shown, f"{size:,} bytes, the limit is {_LARGEST:,}")

    def named(self, location: Location, path: str) -> WorkspacePath:
        """The true name of a place in the root of another, by which it is opened."""
        return WorkspacePath(location.root.path, path)

    def state(self, location: Location, folder: str) -> Revision:
        """A folder in the root of a place, with all that it has where it is there."""
        return location.root.folder_state(folder) or FOLDER

    def make(self, path: Name, state: Revision = FOLDER) -> None:
        """Make a folder."""
        location = self._judge.find(path)
        self._look(location)
        self._put(location, FileChange(location.path, None, state))

    def remove(self, path: Name) -> None:
        """Remove a folder, which is empty once the changes before this one are done."""
        location = self._judge.find(path)
        self._look(location)
        state = self.state(location, location.place.path)
        self._put(location, FileChange(location.path, state, None))

    def moves_as_one(self, old: Location, new: Location, inside: FolderContents) -> bool:
        """Whether a folder is moved with all that is in it as one change, and no file in it is opened.

        Not where there is little in it, it is known otherwise than the disk has it, or it has a name about which
        more than the name has to be known.

        Raises:
            TooLargeError: It is not, and is too much to have each file opened.
        """
        base, to, root = old.place.path, new.place.path, old.root
        count = len(inside.files) + len(inside.folders)
        if (
            count > MOST_APART
            and root is new.root
            and not self._documents.holds_below(WorkspacePath(root.path, base))
            and self.state(old, base).as_whole("-").is_whole
            and _clears(self._guard, self._agent, root, inside, (base, to))
        ):
            return True
        self.check_opened(old, inside)
        return False

    def move(self, old: Location, new: Location) -> None:
        """Move a folder with all that is in it as one change, whatever the files in it hold.

        Its own two names are locked.  Who is at work on a file in it finds, with that file's lock, that it has gone.
        """
        folder = old.root.place(old.place.path, follow=False, known=True)
        state = self.state(old, old.place.path).as_whole(f"{folder.inode:x}")
        self._put(old, FileChange(old.path, state, None))
        self._put(new, FileChange(new.path, None, state))

    def _look(self, location: Location) -> ProposalFile | None:
        layer = self._documents.layer(location.path)
        if layer is not None:
            self._layers[location.path] = layer
        return layer

    def _is_file(self, location: Location) -> bool:
        return location.place.kind in ("file", "link", "other") or self._documents.holds_file(
            location.path
        )


def list_inside(
    root: Root, base: str, shown: str, most: int, proposed: ProposalFiles | None = None
) -> FolderContents:
    """Everything in a folder, ignored and hidden files too.

    Args:
        root: Where it is.
        base: The folder.
        shown: How it is shown.
        most: Most files and folders.
        proposed: What the session has proposed, which counts as done.

    Raises:
        TooLargeError: It holds more.
        PathBlockedError: It holds something that is neither file, link nor folder.
    """
    files: dict[str, None] = {}
    folders: dict[str, None] = {base: None}
    links: set[str] = set()
    if root.place(base).kind == "directory":
        with TreeReader(root, base, allow=lambda _path, _folder: True, ignore=False) as entries:
            for entry in entries:
                if entry.kind == "folder":
                    folders[entry.path] = None
                elif entry.kind in ("file", "link"):
                    files[entry.path] = None
                    if entry.kind == "link":
                        links.add(entry.path)
                else:
                    raise PathBlockedError(
                        f"{shown}: holds {entry.path}, which is not a regular file",
                        hint="Move or remove the files one by one, or ask the person to do it.",
                        path=shown,
                    )
                if len(files) + len(folders) > most:
                    raise _too_much(shown, f"more than {most:,} files and folders")
            if not entries.complete or entries.beyond:
                raise PathBlockedError(
                    f"{shown}: not everything in it can be seen",
                    hint="Ask the person to do this step.",
                    path=shown,
                )
    for layer in () if proposed is None else proposed.below(root.path, base):
        kept = folders if any(side and side.is_folder for side in layer.sides) else files
        if layer.change.after is None:
            kept.pop(layer.path.path, None)
        else:
            kept[layer.path.path] = None
    return FolderContents(tuple(files), tuple(sorted(folders)), frozenset(links))


def _clears(
    guard: Guard, agent: str, root: Root, inside: FolderContents, ends: tuple[str, str]
) -> bool:
    """Whether the names of all that lies in a folder tell that it may be moved, so that no file has to be opened.

    Not where a root lies in it, a rule has something to say of a name, a link would lead out of the root, or it is
    a repository.

    Args:
        guard: The rules.
        agent: Who moves it.
        root: Where it is.
        inside: What lies in it.
        ends: The name that it has, and the one that it gets.
    """
    at, above = len(ends[0]), f"{root.path.rstrip('/')}/{ends[0]}/"
    lower = {path.lower() for path in (*inside.files, *inside.folders)}
    heads = [path.removesuffix("/head") for path in lower if path.endswith("/head")]
    if (
        not guard.moves_whole
        or any(f"{one.path}/".startswith(above) for one in guard.roots)
        or any(is_repository(one, lambda path: path.lower() in lower) for one in heads)
    ):
        return False
    named: dict[str, list[str]] = {}
    for path in (*inside.files, *(f"{one}/" for one in inside.folders[1:])):
        folder, _, name = path.rstrip("/").rpartition("/")
        named.setdefault(folder[at:], []).append(name + "/" * path.endswith("/"))
    try:
        links = [(one, root.read_link(one).data.decode("utf-8", "replace")) for one in inside.links]
    except FilepactError:
        return False
    return (
        not any(trips_programs(name.rstrip("/")) for names in named.values() for name in names)
        and not any(leads_out(root.path, ends[1] + one[at:], leads) for one, leads in links)
        and all(
            len(allowed.among(f"{end}{folder}/", names)) == len(names)
            for end, change in zip(ends, _ENDS, strict=True)
            for allowed in (
                guard.listing(root, one, agent=agent) for one in ("read", "write", change)
            )
            for folder, names in named.items()
        )
    )


def _too_much(shown: str, why: str) -> TooLargeError:
    return TooLargeError(
        f"{shown}: holds {why}",
        hint="Move or remove parts of it one after the other, or ask the person to do it.",
        path=shown,
    )


def check_moved(guard: Guard, agent: str, changes: ChangeSet) -> None:
    """Refuse an agent to move a folder back with what a person has put into it since, and it may not move.

    Raises:
        PathBlockedError: There is such a thing, or it cannot be seen.
    """
    for old, new in whole_moves(changes.changes):
        root, ends = guard.root_of(old.path.root), (old.path.path, new.path.path)
        if basename(ends[0]) == ".git":  # It goes with all that lies beside it.
            ends = dirname(ends[0]), dirname(ends[1])
        shown = guard.show(root.path, ends[0])
        inside = list_inside(root, ends[0], shown, MOST_MOVED)
        if not _clears(guard, agent, root, inside, ends):
            raise PathBlockedError(
                f"{shown}: holds by now what may not be moved",
                hint="Ask the person to take it back.",
                path=shown,
            )

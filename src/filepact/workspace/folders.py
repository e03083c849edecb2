"""The folders of a draft: made, moved or removed with everything in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.domain.change import FileChange
from filepact.domain.document import FOLDER, Revision, WorkspacePath
from filepact.errors import InvalidParamsError, NotAFileError, PathBlockedError, TooLargeError
from filepact.fs.walk import TreeReader
from filepact.fs.watch import stamp_at
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.workspace.authorizer import ChangePolicy
    from filepact.workspace.documents import Documents
    from filepact.workspace.location import Location, Name
    from filepact.workspace.pending import ProposalFile, ProposalFiles

__all__ = ["MOST", "MOST_MOVED", "FolderContents", "ProposalFolders"]

MOST: Final = 500
"""Most files and folders that are removed at once."""

MOST_MOVED: Final = 2_000
"""Most that are moved at once, which is one renaming; the rules are asked about each, under both names."""

_LARGEST: Final = 64 << 20
"""Most bytes of them together."""


@dataclass(frozen=True, slots=True)
class FolderContents:
    """A folder's contents, as canonical paths.

    Attributes:
        files: Every file and every link.
        folders: The folder itself and every one in it, outermost first.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]


class ProposalFolders:
    """The folders of a change: what a session has proposed counts as done.

    Args:
        judge: The rules about the change.
        documents: What the session has proposed.
        layers: Takes in what the session has proposed for the folders that are looked at.
        put: Takes in the change of one folder.
    """

    def __init__(
        self,
        judge: ChangePolicy,
        documents: Documents,
        layers: dict[WorkspacePath, ProposalFile],
        put: Callable[[Location, FileChange], None],
    ) -> None:
        self._layers = layers
        self._judge = judge
        self._documents = documents
        self._put = put

    def find(self, path: str) -> tuple[Location, bool]:
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
        return location.root.place(folder).kind != "missing" or any(
            one.change.after is not None for one in layers
        )

    def inside(self, path: str, most: int = MOST) -> FolderContents | None:
        """All that lies in a folder, so many files and folders at most; None for what is no folder.

        Raises:
            InvalidParamsError: It is the root.
            PathBlockedError: It holds something that is neither file, link nor folder.
            TooLargeError: It holds more than is moved or removed at once.
        """
        location = self._judge.find(path, follow=False)
        if location.place.path == ".":
            raise InvalidParamsError("the root itself stays where it is", path=path)
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
        return _list_inside(location, self._documents.proposed, most)

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

    def _look(self, location: Location) -> ProposalFile | None:
        layer = self._documents.layer(location.path)
        if layer is not None:
            self._layers[location.path] = layer
        return layer

    def _is_file(self, location: Location) -> bool:
        return location.place.kind in ("file", "link", "other") or self._documents.holds_file(
            location.path
        )


def _list_inside(location: Location, proposed: ProposalFiles | None, most: int) -> FolderContents:
    """Everything in a folder, ignored and hidden files too.

    Args:
        location: The folder.
        proposed: What the session has proposed, which counts as done.
        most: Files and folders that are moved or removed at once.

    Raises:
        TooLargeError: It holds more.
        PathBlockedError: It holds something that is neither file, link nor folder.
    """
    base = location.place.path
    files: dict[str, None] = {}
    folders: dict[str, None] = {base: None}
    if location.place.kind == "directory":
        with TreeReader(location.root, base, allow=_every, ignore=False) as entries:
            for entry in entries:
                if entry.kind == "folder":
                    folders[entry.path] = None
                elif entry.kind in ("file", "link"):
                    files[entry.path] = None
                else:
                    raise PathBlockedError(
                        f"{location.shown}: holds {entry.path}, which is not a regular file",
                        hint="Move or remove the files one by one, or ask the person to do it.",
                        path=location.shown,
                    )
                if len(files) + len(folders) > most:
                    raise _too_much(location, f"more than {most:,} files and folders")
            if not entries.complete or entries.beyond:
                raise PathBlockedError(
                    f"{location.shown}: not everything in it can be seen",
                    hint="Ask the person to do this step.",
                    path=location.shown,
                )
    for layer in () if proposed is None else proposed.below(location.root.path, base):
        kept = folders if any(side and side.is_folder for side in layer.sides) else files
        if layer.change.after is None:
            kept.pop(layer.path.path, None)
        else:
            kept[layer.path.path] = None
    size = 0
    for path in files:
        stamp = stamp_at(location.root, path)
        size += stamp.size if stamp is not None else 0
    if size > _LARGEST:
        raise _too_much(location, f"{size:,} bytes, the limit is {_LARGEST:,}")
    return FolderContents(tuple(files), tuple(sorted(folders)))


def _every(_path: str, _is_folder: bool) -> bool:
    return True


def _too_much(location: Location, why: str) -> TooLargeError:
    return TooLargeError(
        f"{location.shown}: holds {why}",
        hint="Move or remove parts of it one after the other, or ask the person to do it.",
        path=location.shown,
    )

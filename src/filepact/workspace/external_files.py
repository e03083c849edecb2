"""Files as other programs read them: without what editors show, and without proposals."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.document import content_id
from filepact.errors import BinaryFileError, FilepactError
from filepact.fs.outside import existing
from filepact.fs.walk import is_ignored
from filepact.fs.watch import Stamp, stamp_at
from filepact.text.codec import decode
from filepact.values import dataclass
from filepact.workspace.file_snapshot import FileSnapshot, files_below, nested_roots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.fs.watch import RootStamps
    from filepact.text.codec import NamedEncoding
    from filepact.workspace.guard import Guard

__all__ = ["ExternalFile", "ExternalFiles"]

_TRIES: Final = 3
_LARGEST: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file at one moment.

    Attributes:
        stamp: What the system says of it.
        text: What it holds; None where it is no text, a link, or too large.
        content: The name of its bytes; None where they were not read.
    """

    stamp: Stamp
    text: str | None = None
    content: str | None = None


class ExternalFiles:
    """Reads the files of the roots as they are on the disk, without buffers and proposals.

    What is read here is for programs that read the disk by themselves anyway; it goes to no agent.

    Args:
        guard: The roots.
        given: What is said about a file's encoding outside the file.
    """

    def __init__(
        self, guard: Guard, given: Callable[[WorkspacePath], NamedEncoding | None]
    ) -> None:
        self._guard = guard
        self._given = given

    def snapshot(self, root: RootId, overlooks: Callable[[str], bool]) -> FileSnapshot:
        """An empty snapshot of a root without the roots within it; `overlooks` as for `FileSnapshot`."""
        found = self._guard.root_of(root)
        return FileSnapshot(found, nested_roots(found, self._guard), overlooks=overlooks)

    def below(self, path: WorkspacePath, most: int, *, made: bool) -> RootStamps:
        """The files below a folder that ignore rules leave out; arguments as for `files_below`."""
        return files_below(self._guard.root_of(path.root), path.path, most, made=made)

    def stamp(self, path: WorkspacePath) -> Stamp | None:
        """The stamp of a file now; None for no file."""
        return stamp_at(self._guard.root_of(path.root), path.path)

    def take(self, path: WorkspacePath) -> ExternalFile | None:
        """A file with its stamp, both of the same moment; None for no file.

        While somebody keeps writing to it, it is without its text.
        """
        root = self._guard.root_of(path.root)
        stamp = stamp_at(root, path.path)
        for _ in range(_TRIES):
            if stamp is None or stamp.is_link or stamp.size > _LARGEST:
                break
            try:
                data = root.read(path.path, limit=_LARGEST, follow=False).data
            except FilepactError:
                data = None
            again = stamp_at(root, path.path)
            if again == stamp:
                if data is None:
                    break
                return ExternalFile(stamp, self.text(path, data), content_id(data))
            stamp = again
        return None if stamp is None else ExternalFile(stamp)

    def leads_to(self, path: WorkspacePath) -> tuple[str, str]:
        """The kind and the path of what a link leads to within its root; both empty if it leads out of it."""
        with suppress(FilepactError):
            return (to := self._guard.root_of(path.root).place(path.path)).kind, to.path
        return "", ""

    def above(self, root: RootId, names: Sequence[str]) -> tuple[str, ...]:
        """Files of some names in the folders above a root; none of them is read."""
        folders = root.split("/")[:-1]
        tops = ("/".join(folders[: count + 1]) for count in range(len(folders)))
        return existing(f"{top}/{name}" for top in tops for name in names)

    def ignored(self, path: WorkspacePath) -> bool:
        """Whether ignore files name a file, or a folder above it; it need not be there."""
        return is_ignored(self._guard.root_of(path.root), path.path)

    def text(self, path: WorkspacePath, data: bytes) -> str | None:
        """Decode bytes of a file; None if they are not text."""
        try:
            return decode(data, name=path.path, given=self._given(path)).text
        except BinaryFileError:
            return None

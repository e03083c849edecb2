"""The files of the roots as every other program finds them, for whoever has to keep up with them.

What is read here is for programs that read the disk by themselves anyway; it goes to no agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.domain.document import content_id
from filepact.errors import BinaryFileError, FilepactError
from filepact.fs.stamp import Scan, Stamp, stamp_at
from filepact.fs.walk import walk
from filepact.text.codec import decode
from filepact.workspace.lookout import Glance, Lookout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.text.codec import Given
    from filepact.workspace.guard import Guard

__all__ = ["Glance", "Lookout", "Scan", "Stamp", "Surroundings", "Taken"]

_LARGEST: Final = 4_000_000
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """A file at one moment.

    Attributes:
        stamp: What the system says of it.
        text: What it holds; None where it is no text, a link, or too large.
        content: The name of its bytes; None where they were not read.
    """

    stamp: Stamp
    text: str | None = None
    content: str | None = None


def _every(_path: str, _is_folder: bool) -> bool:
    return True


class Surroundings:
    """Looks at the roots; what ignore files name is left out of the whole, and can be named.

    Args:
        guard: The roots.
        given: What is said about a file's encoding outside the file.
    """

    def __init__(self, guard: Guard, given: Callable[[WorkspacePath], Given | None]) -> None:
        self._guard = guard
        self._given = given
        self._skip: Mapping[RootId, frozenset[str]] = {
            root.path: frozenset(
                other.path[len(root.path) :].lstrip("/")
                for other in guard.roots
                if other is not root and other.path.startswith(f"{root.path.rstrip('/')}/")
            )
            for root in guard.roots
        }

    def lookout(self, root: RootId) -> Lookout:
        """Looks at a root again and again; of a root within it, it sees nothing."""
        return Lookout(self._guard.root_of(root), self._skip[root])

    def stamp(self, path: WorkspacePath) -> Stamp | None:
        """The stamp of a file now; None for no file."""
        return stamp_at(self._guard.root_of(path.root), path.path)

    def take(self, path: WorkspacePath) -> Taken | None:
        """A file with its stamp, both of the same moment; None for no file.

        While somebody keeps writing to it, it is without its text.
        """
        root = self._guard.root_of(path.root)
        stamp = stamp_at(root, path.path)
        for _ in range(_TRIES):
            if stamp is None:
                return None
            if stamp.is_link or stamp.size > _LARGEST:
                return Taken(stamp)
            try:
                data = root.read(path.path, limit=_LARGEST, follow=False).data
            except FilepactError:
                data = None
            again = stamp_at(root, path.path)
            if again == stamp:
                return Taken(stamp) if data is None else self._taken(path, stamp, data)
            stamp = again
        return None if stamp is None else Taken(stamp)

    def ignored(self, path: WorkspacePath) -> bool:
        """Whether ignore files name a file, or a folder above it; it need not be there."""
        root, above = self._guard.root_of(path.root), "."
        for part in path.path.split("/"):
            here = part if above == "." else f"{above}/{part}"
            with walk(root, above, allow=_every, max_depth=1) as entries:
                try:
                    seen = any(entry.name == part for entry in entries)
                except FilepactError:
                    return False
            if not seen:
                # What is there and is not seen is ignored; what is not there cannot be asked about.
                return root.glance(here) is not None
            above = here
        return False

    def text(self, path: WorkspacePath, data: bytes) -> str | None:
        """The text that bytes stand for in a file; None where it is none."""
        try:
            return decode(data, name=path.path, given=self._given(path)).text
        except BinaryFileError:
            return None

    def _taken(self, path: WorkspacePath, stamp: Stamp, data: bytes) -> Taken:
        return Taken(stamp, self.text(path, data), content_id(data))

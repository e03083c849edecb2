"""Files as the server sees them: those on the disk, with the client's open documents laid over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.csharp.disk import Disk
from filepact.errors import FilepactError
from filepact.text.codec import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Sources"]

_MAX_SOURCE: Final = 16 * 1024 * 1024


class Sources:
    """The files below a root; a document that is open is there, whatever the disk says.

    Args:
        root: The folder, absolute.
        open_texts: The texts of open documents, by absolute path.
    """

    def __init__(self, root: str, open_texts: Mapping[str, str]) -> None:
        self._disk = Disk(root)
        self._open = open_texts

    def text(self, path: str, most: int) -> str | None:
        """The text of a file; see `filepact.csharp.projects.Files`."""
        shown = self._open.get(path)
        return self._disk.text(path, most) if shown is None else shown

    def below(self, folder: str, ending: str) -> Iterator[str]:
        """The files at any depth beneath a folder; see `filepact.csharp.projects.Files`."""
        above = folder.rstrip("/") + "/"
        extra = {
            one for one in self._open if one.startswith(above) and one.lower().endswith(ending)
        }
        for one in self._disk.below(folder, ending):
            extra.discard(one)
            yield one
        yield from sorted(extra)

    def has(self, path: str) -> bool:
        """Whether there is such a file; see `filepact.csharp.projects.Files`."""
        return path in self._open or self._disk.has(path)

    def source(self, path: str) -> str | None:
        """The text of a source, in whatever encoding; None if it is not there or is no text."""
        shown = self._open.get(path)
        if shown is not None:
            return shown
        try:
            content = self._disk.content(path, _MAX_SOURCE)
            return None if content is None else decode(content, name=path).text
        except FilepactError:
            return None

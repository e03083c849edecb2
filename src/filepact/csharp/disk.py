"""The files below a folder, as a program of its own sees them on the disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.errors import BinaryFileError, PathBlockedError, ReadFailedError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Disk"]

_SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules"})
_MAX_LISTED: Final = 200_000


class Disk:
    """The files below a root; links that lead out of it are not followed.

    What lies in a folder is looked up once: each reading of a solution takes a new one of these.

    Args:
        root: The folder, absolute.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._real = Path(os.path.realpath(root))
        self._listed: dict[str, tuple[str, ...]] = {}

    def text(self, path: str, most: int) -> str | None:
        """The text of a file; see `filepact.csharp.projects.Files`."""
        content = self.content(path, most)
        if content is None:
            return None
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        try:
            return content.decode("utf-16" if wide else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise BinaryFileError(f"{Path(path).name[:80]} is no UTF-8") from error

    def content(self, path: str, most: int) -> bytes | None:
        """The bytes of a file; None if it is not there.

        Args:
            path: The file.
            most: Largest size, in bytes.

        Raises:
            FilepactError: It is there and is not read.
        """
        if not self._inside(path) or not Path(path).is_file():
            return None
        real = Path(os.path.realpath(path))
        name = real.name[:80]
        if not real.is_relative_to(self._real):
            raise PathBlockedError(f"{name} lies outside of the root and is not read")
        try:
            with real.open("rb") as handle:
                content = handle.read(most + 1)
        except OSError as error:
            raise ReadFailedError(f"{name} cannot be read: {error.strerror}") from error
        if len(content) > most:
            raise TooLargeError(f"{name} has more than {most:,} bytes and is not read")
        return content

    def below(self, folder: str, ending: str) -> Iterator[str]:
        """The files at any depth beneath a folder; see `filepact.csharp.projects.Files`."""
        if folder not in self._listed:
            inside = folder == str(self._root) or self._inside(folder)
            self._listed[folder] = tuple(_listed(folder)) if inside else ()
        return (one for one in self._listed[folder] if one.lower().endswith(ending))

    def has(self, path: str) -> bool:
        """Whether there is such a file, also outside of the root."""
        return Path(path).is_file()

    def _inside(self, path: str) -> bool:
        return Path(os.path.normpath(path)).is_relative_to(self._root)


def _listed(folder: str) -> Iterator[str]:
    count = 0
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in names:
            count += 1
            if count > _MAX_LISTED:
                return
            yield os.path.join(above, name)  # noqa: PTH118 - many, and only texts

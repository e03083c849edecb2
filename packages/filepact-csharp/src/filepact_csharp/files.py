"""Files as a server sees them: those on the disk, with the client's open documents laid over them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import (
    BinaryFileError,
    FilepactError,
    InvalidParamsError,
    PathBlockedError,
    ReadFailedError,
    TooLargeError,
)
from filepact.text.codec import decode
from filepact.text.lines import LineIndex, Position
from filepact_wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from filepact.text.lines import Unit

__all__ = ["DiskTree", "OpenDocuments", "SourceTree", "document_path", "folders_above"]

_SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules"})
_MAX_LISTED: Final = 200_000


class DiskTree:
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
        """The text of a file; see `filepact_csharp.projects.FileTree`."""
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
        """The files at any depth beneath a folder; see `filepact_csharp.projects.FileTree`."""
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


# -- open documents --------------------------------------------------------------------------------


class OpenDocuments:
    """All open documents.

    Attributes:
        unit: What columns count; agreed on when the conversation begins.
    """

    def __init__(self, unit: Unit = "utf-16") -> None:
        self.unit: Unit = unit
        self._texts: dict[str, str] = {}
        self._lost: set[str] = set()

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of each, by its absolute path."""
        return self._texts

    def lost(self, path: str) -> bool:
        """Whether a change could not be followed; nothing is known of the text until it comes whole."""
        return path in self._lost

    @property
    def first_lost(self) -> str | None:
        """One of which that is so; None if there is none."""
        return min(self._lost, default=None)

    def open(self, params: Any) -> str:
        """Take a document that was opened; the answer is its path."""
        item = params["textDocument"]
        path, text = document_path(item), item["text"]
        if not isinstance(text, str):
            raise TypeError("a document has a text")
        self._texts[path] = text
        self._lost.discard(path)
        return path

    def change(self, params: Any) -> str:
        """Take what changed in one; the answer is its path.

        Raises:
            InvalidParamsError: It is not open, or there is no such place in it.
        """
        path = document_path(params["textDocument"])
        if path not in self._texts:
            raise InvalidParamsError("a document changed that is not open")
        try:
            text = self._texts[path]
            for one in params["contentChanges"]:
                whole = one.get("range") is None
                text = _text(one) if whole else self._changed(text, one)
                if whole:
                    self._lost.discard(path)
        except (AttributeError, KeyError, TypeError, ValueError, InvalidParamsError):
            self._lost.add(path)
            raise
        self._texts[path] = text
        return path

    def close(self, params: Any) -> str:
        """Forget one that was closed; the answer is its path."""
        path = document_path(params["textDocument"])
        self._texts.pop(path, None)
        self._lost.discard(path)
        return path

    def _changed(self, text: str, change: Any) -> str:
        index, place = LineIndex(text), change["range"]
        start, end = (
            index.offset(Position(one["line"], one["character"]), self.unit)
            for one in (place["start"], place["end"])
        )
        if end < start:
            raise ValueError("a range ends before it begins")
        return text[:start] + _text(change) + text[end:]


def document_path(document: Any) -> str:
    """The absolute path of a document that a client names.

    Raises:
        InvalidParamsError: It is no file of this machine.
    """
    uri = document["uri"]
    path = path_of(uri) if isinstance(uri, str) else None
    if path is None:
        raise InvalidParamsError("only files of this machine are known here")
    return path


def _text(change: Any) -> str:
    text = change["text"]
    if not isinstance(text, str):
        raise TypeError("a change has a text")
    return text


def folders_above(path: str) -> Iterator[str]:
    """All folders that a file lies in."""
    while path := path.rpartition("/")[0]:
        yield path


_MAX_SOURCE: Final = 16 * 1024 * 1024


class SourceTree:
    """The files below a root; a document that is open is there, whatever the disk says.

    Args:
        root: The folder, absolute.
        open_texts: The texts of open documents, by absolute path.
        gone: Files that are not there, whatever the disk says.
    """

    def __init__(
        self, root: str, open_texts: Mapping[str, str], gone: Collection[str] = ()
    ) -> None:
        self._disk = DiskTree(root)
        self._open = open_texts
        self._gone = gone

    def text(self, path: str, most: int) -> str | None:
        """The text of a file; see `filepact_csharp.projects.FileTree`."""
        shown = self._open.get(path)
        if path in self._gone:
            return None
        return self._disk.text(path, most) if shown is None else shown

    def below(self, folder: str, ending: str) -> Iterator[str]:
        """The files at any depth beneath a folder; see `filepact_csharp.projects.FileTree`."""
        above = folder.rstrip("/") + "/"
        extra = {
            one for one in self._open if one.startswith(above) and one.lower().endswith(ending)
        }
        for one in self._disk.below(folder, ending):
            extra.discard(one)
            if one not in self._gone:
                yield one
        yield from sorted(extra)

    def has(self, path: str) -> bool:
        """Whether there is such a file; see `filepact_csharp.projects.FileTree`."""
        return path in self._open or (path not in self._gone and self._disk.has(path))

    def changed(self, ending: tuple[str, ...]) -> dict[str, str | None]:
        """What files with some endings hold that is not on the disk, by path; None for one that is gone."""
        found: dict[str, str | None] = {}
        for path, text in self._open.items():
            if path.lower().endswith(ending):
                try:
                    same = self._disk.text(path, _MAX_SOURCE) == text
                except FilepactError:
                    same = False
                if not same:
                    found[path] = text
        return found | {path: None for path in self._gone if path.lower().endswith(ending)}

    def source(self, path: str) -> str | None:
        """The text of a source, in whatever encoding; None if it is not there or is no text."""
        shown = self._open.get(path)
        if shown is not None or path in self._gone:
            return shown
        try:
            content = self._disk.content(path, _MAX_SOURCE)
            return None if content is None else decode(content, name=path).text
        except FilepactError:
            return None

"""Places in a workspace that the guard let pass, and the refusals of those that are not what is wanted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from filepact.domain.document import WorkspacePath
from filepact.errors import NotAFileError, NotFoundError, PathBlockedError
from filepact.text.confusables import shown_name
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from io import BufferedReader

    from filepact.domain.policy import Action, Decision
    from filepact.fs.read import FileInfo
    from filepact.fs.read_only_root import OpenFile
    from filepact.fs.root import Root

__all__ = ["Location", "Name", "NameRequest", "check_is_file", "not_there"]

Name = str | WorkspacePath
"""A path as somebody sent it, or a file's true name, which is never read as if it had been sent."""


@dataclass(frozen=True, slots=True)
class NameRequest:
    """A name as it was sent, and what it was sent for; see `Guard.find`."""

    root: Root
    relative: str
    sent: str
    action: Action
    agent: str
    missing: Action | None
    follow: bool


@dataclass(frozen=True)
class Location:
    """A place that the guard let pass.

    Attributes:
        shown: The name to show: relative where relative names start, else absolute.
        decision: What the rules said; ``deny`` never gets this far.
        action: The action that they were asked about.
        lookup: What was resolved, to resolve it again.
        near: Where nothing is, looks for what may have been meant.
        held: The place itself, where it is kept open.
    """

    root: Root
    place: FileInfo
    shown: str
    decision: Decision
    action: Action
    lookup: NameRequest = field(compare=False, repr=False)
    near: Callable[[], tuple[str, ...]] = field(default=tuple, compare=False, repr=False)
    held: OpenFile | None = field(default=None, compare=False, repr=False)

    @cached_property
    def path(self) -> WorkspacePath:
        """The true name; a root itself has none."""
        return WorkspacePath(self.root.path, self.place.path)

    @property
    def lock_key(self) -> str:
        return self.place.lock_key

    def stream(self) -> AbstractContextManager[tuple[BufferedReader, int]]:
        """The file as an open stream with its size in bytes, to read a part of it."""
        if self.held is not None:
            return self.held.stream()
        return self.root.stream(self.place.path, follow=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.held is not None:
            self.held.close()

    def close(self) -> None:
        """Let go of the place, where it is kept open; so does the end of a ``with``."""
        if self.held is not None:
            self.held.close()

    def as_sent(self, path: Name) -> str:
        """The path by which this place was found, for messages: as somebody sent it, if so."""
        return path if isinstance(path, str) else self.shown


def not_there(location: Location, said: str, advice: str, *, path: str) -> NotFoundError:
    """The error for a place where nothing is, with names that may have been meant.

    Args:
        location: The place.
        said: What is wrong.
        advice: What to do if none of the names is the one.
        path: The name that was sent.
    """
    near = location.near()
    if near:
        advice = f"Did you mean {' or '.join(map(shown_name, near))}? {advice}"
    return NotFoundError(said, hint=advice, path=path, near=near)


def check_is_file(location: Location, asked: str) -> None:
    """Refuse folders and special files where a file is wanted."""
    if location.place.kind == "directory":
        raise NotAFileError(
            f"{asked}: is a folder",
            hint="Name a file; directory_tree shows what the folder holds.",
            path=asked,
        )
    if location.place.kind == "other":
        raise PathBlockedError(
            f"{asked}: is not a regular file (a device, pipe or socket)",
            hint="Only regular files can be used.",
            path=asked,
        )

"""Places in a workspace that the guard let pass, and the refusals of those that are not what is wanted."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Self

from filepact.domain.document import WorkspacePath
from filepact.domain.policy import AccessRequest, EntryFilter
from filepact.errors import FilepactError, NotAFileError, NotFoundError, PathBlockedError
from filepact.fs.path_form import check_new_name, is_beneath
from filepact.text.confusables import (
    folded_name,
    meanings,
    name_in_escapes,
    shown_name,
    without_escapes,
)
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from contextlib import AbstractContextManager
    from io import BufferedReader

    from filepact.domain.policy import Action, Decision, Policy
    from filepact.fs.read import FileInfo
    from filepact.fs.read_only_root import OpenFile
    from filepact.fs.root import Root

__all__ = [
    "Location",
    "Name",
    "NameRequest",
    "RuleFilter",
    "alike_note",
    "check_is_file",
    "in_other_letters",
    "not_there",
    "unescaped",
]

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
    known: bool = False


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
    def new_mode(self) -> int:
        """The permission bits that a file has there that is made."""
        return self.root.new_mode(self.place.path)

    @property
    def lock_key(self) -> str:
        return self.place.lock_key

    def is_at(self, before: Location) -> bool:
        """Whether this is a file, and has the lock of an earlier place."""
        return self.place.kind == "file" and self.lock_key == before.lock_key

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


def unescaped(root: Root, path: str) -> str:
    """Understand a path as lists and searches show it, which write what cannot be seen as escapes.

    A part that some entry has as it stands is that entry; else one that has it unescaped is meant.
    """
    meant: list[str] = []
    for part in path.split("/"):
        for one in dict.fromkeys((part, *meanings(part))):
            whole = "/".join([*meant, one])
            with suppress(FilepactError):
                if root.place(whole, follow=False, known=True).kind != "missing":
                    break
        else:
            one = part
        meant.append(one)
    return "/".join(meant)


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
        named = " or ".join(name_in_escapes(one, location.shown) for one in near)
        advice = f"Did you mean {named}? {advice}"
    return NotFoundError(said, hint=advice, path=path, near=near, alike=_alike(location, near))


def _alike(location: Location, near: Iterable[str]) -> str:
    """The only one of some names that is the same but for letter case, blanks and Unicode form; or none."""
    asked = without_escapes(location.shown)
    same = [one for one in near if folded_name(one.rstrip("/")) == folded_name(asked)]
    exact = [one for one in same if one.rstrip("/") == asked]
    found = exact or same
    return found[0].rstrip("/") if len(found) == 1 else ""


def alike_note(sent: str, found: str) -> str:
    """A line that says which name another one was understood as; none for one that was copied from an answer."""
    if without_escapes(sent).endswith(found):
        return ""
    known = (
        f"this is {name_in_escapes(found, sent)}, with other blanks, letter case or Unicode form"
    )
    return f"\n[there is no {shown_name(sent)}; {known}]"


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


class RuleFilter(EntryFilter):
    """The filter of a root's entries by rules and shared folders.

    Args:
        policy: The rules.
        asked: The request that is made about each entry.
        narrowed: The folders that are shared; None for all.
    """

    def __init__(
        self, policy: Policy, asked: AccessRequest, narrowed: tuple[str, ...] | None
    ) -> None:
        self._policy = policy
        self._asked = asked
        self._suspicion = policy.suspicion(asked.action, asked.root)
        self._narrowed = narrowed
        self.narrow = narrowed is not None

    @property
    def key(self) -> Hashable:
        return id(self._policy), self._asked.action, self._asked.agent, self._narrowed

    def __call__(self, path: str, is_dir: bool) -> bool:
        if self._suspicion(path.rpartition("/")[2]) and not self._permits(path):
            return False
        return self._shares(path, is_dir)

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        if not self._suspicion.clears(keys):
            names = [key[:-1] if key[-1] == "/" else key for key in keys]
            asked = self._suspicion.among(names)
            hidden = {at for at in asked if not self._permits(prefix + names[at])}
            if hidden:
                self.refused += len(hidden)
                keys = [key for at, key in enumerate(keys) if at not in hidden]
        if self._narrowed is None:
            return keys
        return [key for key in keys if self._shares((prefix + key).rstrip("/"), key[-1] == "/")]

    def _shares(self, path: str, is_dir: bool) -> bool:
        inside = self._narrowed  # A folder may lie on the way to one of these.
        ways = (is_beneath(path, x) or (is_dir and is_beneath(x, path)) for x in inside or ())
        return inside is None or any(ways)

    def _permits(self, path: str) -> bool:
        asked = self._asked
        request = AccessRequest(asked.root, path, asked.action, asked.agent)
        return self._policy.decide(request).verdict == "allow"


def in_other_letters(there: Location, sent: Name) -> WorkspacePath | None:
    """The name that was sent for what has it in other letters, where these do not tell names apart; else None.

    Raises:
        PathBlockedError: No new name may be such.
    """
    if isinstance(sent, WorkspacePath) or not there.root.spelling.folds:
        return None
    above, _, true = there.place.path.rpartition("/")
    name = sent.rstrip("/").rpartition("/")[2]
    if name == true or name.casefold() != true.casefold():
        return None
    check_new_name(name)
    return WorkspacePath(there.root.path, f"{above}/{name}" if above else name)

"""What a shared workspace on object storage holds: its files by path, and where their bytes are.

A manifest comes from a server that others write to, so that nothing in it is taken for granted: a path that leads out of a
folder, or that a checkout would obey, is refused before anything is done with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from filepact.domain.names import key
from filepact.errors import SharedDamagedError
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

__all__ = [
    "MOST_FILES",
    "FileState",
    "ManifestEntry",
    "SharedFiles",
    "SharedHead",
    "check_names",
    "check_path",
    "fault_of",
]

MOST_FILES: Final = 1_000_000
"""More than these are no workspace, but a mistake or an attack."""
_LONGEST_PART: Final = 255
_LONGEST_PATH: Final = 4_096
_NOT_CARRIED: Final = frozenset({".git"})
"""What a program would run or obey that works in a checkout; Git's own folder is not a file of the workspace."""
_OWN: Final = ".filepact-"
"""How the names begin under which a change keeps its other text for a moment."""
_TAME: Final = late_regex(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:[./][A-Za-z0-9][A-Za-z0-9_-]*)*")
_LONGEST_TAME: Final = 200


class FileState(NamedTuple):
    """A file as a manifest names it: SHA-256 of its bytes, how many they are, and its permission bits."""

    content: str
    size: int
    mode: int


class ManifestEntry(NamedTuple):
    """A file of a manifest.

    Attributes:
        content: SHA-256 of its bytes, 64 hexadecimal digits.
        size: How many bytes it has.
        mode: Its permission bits.
        pack: The object that its bytes are in.
        offset: Where they begin there.
        length: How many bytes they take there; compressed if these are fewer than its own.
    """

    content: str
    size: int
    mode: int
    pack: str
    offset: int
    length: int

    @property
    def state(self) -> FileState:
        """What the file is, wherever its bytes are."""
        return FileState(self.content, self.size, self.mode)


class SharedHead(Protocol):
    """One version of a shared workspace."""

    @property
    def workspace(self) -> str:
        """Its id; the same for as long as it is there."""

    @property
    def number(self) -> int:
        """How many versions came before it."""

    @property
    def change(self) -> str:
        """The id of the change that made it."""

    @property
    def parent(self) -> str:
        """The id of the change before it; empty for the first."""

    @property
    def by(self) -> str:
        """Who made it, for people."""


class SharedFiles(Protocol):
    """A workspace that several machines share, as its checkouts need it."""

    def newest(self) -> SharedHead:
        """The newest version; cheap where nothing has changed.

        Raises:
            SharedGoneError: There is no such workspace any more, or what is there does not go on from what was seen before.
            ObjectStoreFailedError: The server cannot be asked.
        """

    def files(self, version: Any) -> Mapping[str, ManifestEntry]:
        """All files of a version.

        Raises:
            SharedDamagedError: It is not what filepact writes.
        """

    def content(self, entry: ManifestEntry) -> bytes:
        """The bytes of a file, checked.

        Raises:
            SharedDamagedError: They are others, or not there.
        """

    def contents(self, entries: Iterable[ManifestEntry]) -> Iterator[tuple[ManifestEntry, bytes]]:
        """The bytes of many files, each content once; errors as `content`."""

    def publish(
        self,
        change: str,
        by: str,
        wanted: Mapping[str, FileState | None],
        contents: Callable[[str], bytes],
        agrees: Callable[[str, FileState | None], bool],
        request: str = "",
    ) -> tuple[SharedHead, Mapping[str, ManifestEntry | None]]:
        """Make one new version in which all these files are so, or none.

        Args:
            change: An id that no other change has.
            by: Who makes it, for people.
            wanted: What each file is to be; None for no file.
            contents: The bytes by their SHA-256.
            agrees: Whether a file may go on from what the newest version has of it.
            request: What it is made for, by an id that is the same wherever that is asked for; empty for nothing.

        Returns:
            A version that has the change, or one after it, and what each of the files was made.

        Raises:
            NoChangeError: What is asked for was done before, for another machine; nothing was changed.
            SharedConflictError: A file is something else by now; nothing was changed.
            SharedBusyError: Others were faster, again and again; nothing was changed.
            OutcomeUnknownError: Whether it was done cannot be found out now.
            ObjectStoreFailedError: The server refuses; nothing was changed.
        """

    def made(self, change: str, *, fence: str = "", after: int | None = None) -> bool:
        """Whether a change was made, or one for this request.

        Args:
            change: The id.
            fence: An id that no other change has: where this one was not made, a version of that name is, which changes
                nothing.  What a writer has sent that is gone, and the server has not done yet, can never be done then.
            after: The version after which it was made, if it was; None where that was not as long ago as ids are kept.

        Raises:
            OutcomeUnknownError: It was to be made so long ago that nobody knows.
            SharedBusyError: Others were faster, again and again.
            ObjectStoreFailedError: The server cannot be asked.
        """


def fault_of(path: str) -> str:
    """What is wrong with a path, in words; empty for nothing."""
    if len(path) <= _LONGEST_TAME and _TAME.fullmatch(path):
        return ""
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "is not text"
    if not path or len(encoded) > _LONGEST_PATH:
        return "is too long or empty"
    if "\0" in path:
        return "has a zero byte in it"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "leads somewhere else, or nowhere"
        if len(part.encode()) > _LONGEST_PART:
            return "has a part that is too long"
        if key(part) in _NOT_CARRIED or part.lower() == "git~1":
            return "lies in Git's own folder"
        if part.startswith(_OWN):
            return "is a name that filepact keeps for itself"
    return ""


def check_path(path: object) -> str:
    """A path of a manifest.

    Raises:
        SharedDamagedError: No checkout may have a file of this name.
    """
    if not isinstance(path, str):
        raise SharedDamagedError("the shared workspace has a file name that is not text")
    fault = fault_of(path)
    if fault:
        shown = path[:200].encode("unicode_escape", "backslashreplace").decode()
        raise SharedDamagedError(
            f"the shared workspace has a file whose name {fault}: {shown}",
            hint="Nothing was done with it. Somebody else writes to this place, or has damaged it.",
        )
    return path


def check_names(paths: Collection[str]) -> None:
    """Check that no file lies in another.

    Args:
        paths: All that there are, quick to look in.

    Raises:
        SharedDamagedError: A path is both a file and a folder.
    """
    known: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in known:
            if above in paths:
                raise SharedDamagedError(
                    f"the shared workspace has a file that is also a folder: {above[:200]!r}"
                )
            known.add(above)
            above = above.rpartition("/")[0]

"""Names, states and contents of files, as values."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from posixpath import dirname
from typing import TYPE_CHECKING, Final, NamedTuple, NewType, Self

from filepact.text.codec import NamedEncoding, SourceText, decode
from filepact.text.detect_encoding import UNIT
from filepact.text.lines import LineCounts
from filepact.text.raw_bytes import describe_raw_bytes
from filepact.text.secrets import holds_private_key, mentions_private_key
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.domain.attributes import Attributes

__all__ = [
    "ANOTHER_FILE",
    "FOLDER",
    "LINK",
    "OVER",
    "UNSEEN",
    "Document",
    "KnownTextRecord",
    "NamedFiles",
    "Revision",
    "RootId",
    "SecretSearch",
    "SnapshotFile",
    "SnapshotRecord",
    "WorkspacePath",
    "content_id",
    "same_bytes",
    "same_state",
]

LINK: Final = 0o120000
"""The mode of a symbolic link, as Git writes it; it has no permission bits of its own."""

_FOLDER_MODE: Final = 0o40000
_KIND: Final = 0o170000

_NAMES_NOTHING = frozenset({"", ".", ".."})

RootId = NewType("RootId", str)
"""A root's true absolute path; no link is left in it."""


ANOTHER_FILE: Final = "0:0"
"""Instead of `Attributes.linked` where a file takes the name of another, and has none besides."""

_ASIDE = 0o1000000
"""Set in the mode of a state that differs, by that, from every state of a real file."""

_SHUT: Final = 0o2000000
"""Set in the mode of a folder without any permission, of which nothing else is known: it is no unknown one."""

_NO_BYTES: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The id of a content without any."""

_UNREAD = "0" * 20
"""How the ids of unread contents begin; that a SHA-256 does so is never going to be seen."""

_SIZED: Final = "512e512e"
"""Follows where their size is known; twelve digits have it, and the rest tells them apart."""

_SET_ASIDE: Final = "512e512f"
"""Instead of that where the file was set aside, so that it can be put back."""


_MOST_CLEAN: Final = 4_096
"""Contents that are remembered to hold no private key."""


def content_id(data: bytes) -> str:
    """The name of exactly these bytes: SHA-256, 64 hexadecimal digits."""
    from hashlib import sha256  # noqa: PLC0415 - takes its time to load; a server answers before

    return sha256(data).hexdigest()


class _Name(NamedTuple):
    root: RootId
    path: str


class WorkspacePath(_Name):
    """A file's one true name: every link resolved, ``/`` between parts, relative to its root, which is ``.`` itself.

    A tuple, since it is the key of most tables, which hash and compare tuples without a function of Python's.
    """

    __slots__ = ()

    def __new__(cls, root: RootId, path: str) -> Self:
        if not _NAMES_NOTHING.isdisjoint(path.split("/")) and path != ".":
            raise ValueError(f"not a canonical path: {path!r}")
        return tuple.__new__(cls, (root, path))

    def __str__(self) -> str:
        return self.path

    @property
    def absolute(self) -> str:
        """The path on the host, for people and for programs that need it; never for opening."""
        return f"{self.root.rstrip('/')}/{self.path}" if self.path != "." else self.root


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that a call names: some with what lies below, what wildcards stand for, and some alone."""

    files: frozenset[WorkspacePath] = frozenset()
    globs: tuple[WorkspacePath, ...] = ()
    alone: frozenset[WorkspacePath] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.files or self.globs or self.alone)

    def over(self, path: WorkspacePath) -> str:
        """The name that stands for a file: its own, or that of a folder above it; empty for none."""
        globs = (one.path for one in self.globs if one.root == path.root)
        if path in self.alone or any(fnmatchcase(path.path, one) for one in globs):
            return path.path
        above = path.path
        while above and WorkspacePath(path.root, above) not in self.files:
            above = dirname(above)
        return above


@dataclass(frozen=True, slots=True)
class Revision:
    """The exact state of a file: its bytes, its permission bits and its attributes.

    Of a symbolic link, the bytes are the name that it leads to, and the mode is `LINK`.

    Attributes:
        content: SHA-256 of the bytes, 64 hexadecimal digits.
        mode: Permission bits, such as ``0o644``, with those that set user and group ids.
        attributes: What it has besides; None where nobody knows, which is the same as any.
    """

    content: str
    mode: int
    attributes: Attributes | None = None

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not Revision:
            return NotImplemented
        return (
            self.content == other.content
            and (self.mode ^ other.mode) in (0, _SHUT)
            and (
                self.attributes is None
                or other.attributes is None
                or self.attributes == other.attributes
            )
        )

    def __hash__(self) -> int:
        return hash((self.content, self.mode & ~_SHUT))

    @classmethod
    def of(cls, data: bytes, mode: int, attributes: Attributes | None = None) -> Revision:
        return cls(content_id(data), mode, attributes)

    @classmethod
    def folder(cls, mode: int, attributes: Attributes | None = None) -> Revision:
        """The state of a folder with these permission bits, which tell how it is made again."""
        told = mode & 0o7777 or (_SHUT if attributes is None else 0)
        return cls(_NO_BYTES, _FOLDER_MODE | told, attributes)

    @classmethod
    def unread(
        cls, sign: str, mode: int, size: int | None = None, *, set_aside: bool = False
    ) -> Revision:
        """A state whose bytes were not read.

        Args:
            sign: Distinguishes it from other such states.
            mode: As everywhere.
            size: How many bytes there were, if that is known.
            set_aside: Whether the file is found by it, since it was set aside.
        """
        sized = _SET_ASIDE if set_aside else _SIZED
        begins = _UNREAD if size is None else f"{_UNREAD}{sized}{size:012x}"
        return cls(begins + content_id(sign.encode("utf-8", "surrogatepass"))[len(begins) :], mode)

    @property
    def is_link(self) -> bool:
        """Whether this is the state of a symbolic link."""
        return self.mode == LINK

    @property
    def is_protected(self) -> bool:
        """Whether this is the state of a file that nobody may write to."""
        return not (self.is_link or self.is_folder or self.mode & 0o222)

    @property
    def is_folder(self) -> bool:
        """Whether this is the state of a folder. A folder has no bytes; its entries have their own states."""
        return self.mode & _KIND == _FOLDER_MODE

    @property
    def is_whole(self) -> bool:
        """Whether this is the state of a folder that moves with all its entries, whatever they are."""
        return self.is_folder and self.attributes is not None and bool(self.attributes.linked)

    def as_whole(self, folder: Revision | str) -> Revision:
        """The same, where the folder is moved with all that lies in it: which one, or a state that says so."""
        if isinstance(folder, Revision):
            folder = "" if folder.attributes is None else folder.attributes.linked
        return replace(self, attributes=self.attributes and replace(self.attributes, linked=folder))

    @property
    def of_another_file(self) -> Revision:
        """The same, where the file takes the name of one that is there, and is no other name (hard link) of it."""
        had = self.attributes
        return self if had is None or had.linked else self.as_whole(ANOTHER_FILE)

    @property
    def was_read(self) -> bool:
        """Whether the bytes were read, so that ``content`` is their SHA-256."""
        return not self.content.startswith(_UNREAD)

    @property
    def unread_size(self) -> int | None:
        """How many bytes there were where they were not read, if that is known."""
        sized = len(_UNREAD) + len(_SIZED)
        if self.content[:sized] not in (_UNREAD + _SIZED, _UNREAD + _SET_ASIDE):
            return None
        return int(self.content[sized : sized + 12], 16)

    @property
    def is_set_aside(self) -> bool:
        """Whether the file itself was kept, since it is too large for the journal."""
        return self.content.startswith(_UNREAD + _SET_ASIDE)

    @property
    def aside(self) -> Revision:
        """This state, marked so that nobody is told whether a later state differs from it."""
        return Revision(self.content, self.mode | _ASIDE, self.attributes)

    @property
    def compared(self) -> Revision:
        """The state without the mark of `aside`; any other as it is."""
        if not self.mode & _ASIDE:
            return self
        return Revision(self.content, self.mode & ~_ASIDE, self.attributes)

    def with_bytes(self, data: bytes) -> Revision:
        """The state of the same file with other bytes."""
        content, attributes = content_id(data), self.attributes
        if attributes is not None and content != self.content:
            attributes = attributes.of_other_bytes
        return Revision(content, self.mode & ~_ASIDE, attributes)

    @property
    def bare(self) -> Revision:
        """This state without attributes."""
        return self if self.attributes is None else Revision(self.content, self.mode)

    @property
    def short(self) -> str:
        """Twelve hexadecimal digits that change with the bytes and with the mode."""
        return _short(self.content, self.mode & ~_ASIDE)


@lru_cache(maxsize=4_096)
def _short(content: str, mode: int) -> str:
    return content_id(f"{content}:{mode:o}".encode())[:12]


FOLDER: Final = Revision(_NO_BYTES, _FOLDER_MODE)
"""The state of a folder of which nothing is known."""
UNSEEN: Final = Revision(_UNREAD.ljust(64, "1"), 0o600)
"""What a file was before it came from where nobody looks; it has the mode with which it came."""
OVER: Final = Revision(_UNREAD.ljust(64, "2"), 0o600)
"""The same of one that came in the place of another file, which goes back."""


def same_state(one: Revision | None, other: Revision | None) -> bool:
    """Whether two states of a name are one; folders are told apart only where the rights of both are known."""
    if one == other or one is None or other is None:
        return one == other
    unknown = any(side.attributes is None and side.mode == _FOLDER_MODE for side in (one, other))
    return one.is_folder and other.is_folder and unknown


def same_bytes(one: Revision | None, other: Revision | None) -> bool:
    """Whether two states hold the same, in a file, a link or a folder, whatever rights they have."""
    if one is None or other is None:
        return one is other
    kinds = {(side.is_link, side.is_folder) for side in (one, other)}
    return len(kinds) == 1 and one.content == other.content


@dataclass(frozen=True)
class Document:
    """A file as it is seen now.

    Attributes:
        path: Its true name.
        data: All its bytes.
        revision: What exactly was seen.
        named_encoding: What was said about its encoding outside the file.
    """

    path: WorkspacePath
    data: bytes
    revision: Revision
    named_encoding: NamedEncoding | None = None

    def given(self, mode: int, attributes: Attributes | None) -> Document:
        """This document with other rights; decoded text and digest are kept."""
        was = self.revision.attributes
        same = self.revision.mode == mode and was == attributes
        if same and (was and was.modified) == (attributes and attributes.modified):
            return self
        again = object.__new__(Document)
        revision = Revision(self.revision.content, mode, attributes)
        vars(again).update(vars(self), revision=revision)
        return again

    @property
    def size(self) -> int:
        """Bytes that it has."""
        return len(self.data)

    @cached_property
    def source(self) -> SourceText:
        """The decoded text with what is needed to encode it back.

        Raises:
            BinaryFileError: The bytes are not text.
        """
        return decode(self.data, name=self.path.path, given=self.named_encoding)

    @cached_property
    def text(self) -> str:
        """The text, line ends as they stand, without a byte-order mark."""
        return self.source.text

    @cached_property
    def raw_bytes(self) -> str:
        """How many bytes of it are no text, and in which lines; empty for none."""
        encoding = self.source.encoding
        odd = encoding.damaged or encoding.name in UNIT or "\0" in self.text
        return describe_raw_bytes(self.text) if odd else ""

    @cached_property
    def marks(self) -> LineCounts:
        """Where its lines are."""
        return LineCounts(self.text)


class SecretSearch:
    """Searches contents of files for private keys, each content once; for all threads."""

    def __init__(self) -> None:
        # Contents without any word of a private key, by their ids, which no other bytes ever have.
        self._clean: set[str] = set()

    def holds_key(self, held: bytes | Document, like: Document | None = None) -> bool:
        """Whether a file holds a private key.

        Args:
            held: The file, or its bytes.
            like: What it was made from: what both have alike was searched there.
        """
        if not isinstance(held, Document):
            return holds_private_key(held)
        content = held.revision.content
        if content in self._clean:
            return False
        before = None
        if like is not None and like.revision.content in self._clean:
            before = like.data
        if mentions_private_key(held.data, before):
            return holds_private_key(held.data)
        if held.revision.was_read:
            if len(self._clean) >= _MOST_CLEAN:
                self._clean.clear()
            self._clean.add(content)
        return False


@dataclass(frozen=True, slots=True)
class KnownTextRecord:
    """A session's stored knowledge of a file.

    Attributes:
        text: The text that it takes the file to have.
        revision: The state of the file that it was told last.
        shown: The characters ``[start, end)`` of the text that it was shown; None for all.
        read: Whether a reading tool has shown any of them.
    """

    text: str
    revision: Revision
    shown: tuple[tuple[int, int], ...] | None
    read: bool


class SnapshotFile(NamedTuple):
    """A file of a stored snapshot.

    A named tuple, because there are many thousands of them.

    Attributes:
        stamp: Inode, size, time of writing, time of change, mode; None where only the journal
            tells of the file.
        revision: None where it was not read.
        packed: Its bytes, compressed, to be stored; None where they are not to be.
        held: How many bytes the stored ones take; 0 where they are not stored.
        racy: Whether it may have changed again and kept its stamp.
    """

    stamp: tuple[int, int, int, int, int] | None
    revision: Revision | None
    packed: bytes | None
    held: int
    racy: bool


class SnapshotRecord(NamedTuple):
    """A stored snapshot of some roots.

    Attributes:
        seq: The place in the journal up to which its operations are in it.
        inodes: Those of the roots themselves, with their births: another folder at the same path is another root.
        folders: The folders that were there at the last scan with their states, by root; `FOLDER` where
            that is not known.
        hidden: What was there and was not looked at or into, by root.
        ends: The last path that was looked at, of the roots that have too many files.
        looked: When the last look began that it knows of, nanoseconds since the epoch; 0 where that is not known.
        unwatched: How many files there are behind these, when they were counted.
        files: All files.
    """

    seq: int
    inodes: Mapping[RootId, int]
    folders: Mapping[RootId, Mapping[str, Revision]]
    hidden: Mapping[RootId, Iterable[str]]
    ends: Mapping[RootId, str | None]
    looked: Mapping[RootId, int]
    unwatched: int
    files: Iterable[tuple[WorkspacePath, SnapshotFile]]

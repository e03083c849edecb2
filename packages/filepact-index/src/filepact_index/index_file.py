"""A search index in the state folder: what one server knows of a root's texts, for those that come later.

Nothing in it has to survive a power cut, and nobody relies on it: what is damaged, of another version, of another
user or of another root counts as nothing, and of each file in it the stamp is compared before it is believed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from mmap import ACCESS_COPY, mmap
from struct import Struct
from struct import error as invalid_struct
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.fs.kernel import reserve
from filepact.fs.trigrams import LIBRARY_VERSION, TrigramImage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from filepact.fs.locks import FileLocks
    from filepact.fs.root import Root

__all__ = ["IndexFile", "IndexRecord"]

_FORMAT: Final = 1
_HEAD: Final = Struct("=16s32sQQQQQQQ")
_MAGIC: Final = b"filepact index\n\0"
_LARGEST: Final = 512 << 20
_UNUSED_SECONDS: Final = 30 * 86_400
_CUT_OFF_SECONDS: Final = 3_600
_PART: Final = ".part"
STAMP: Final = Struct("=Qqqq")
"""A file's inode, size and both times."""


class IndexRecord(NamedTuple):
    """The index of a root's texts.

    Attributes:
        image: Their trigrams.
        paths: The file of each number; None for a number that stands for nothing.
        stamps: That of each number, as `STAMP` packs it, one behind the other.
        wide: Those of the files whose text is not ASCII.
        recoded: Those whose text is not what their bytes are.
        binary: The stamps of files that hold no text.
        said: For each file of which it was asked what is said about its encoding elsewhere, what that was.
    """

    image: TrigramImage
    paths: Sequence[str | None]
    stamps: bytes
    wide: frozenset[str]
    recoded: frozenset[str]
    binary: Mapping[str, bytes]
    said: Mapping[str, str]


class IndexFile:
    """The file in which the index of one root is kept.

    Args:
        folder: Where such files are; made when one is written.
        root: The root.
        locks: By which processes agree on who writes.
        version: Of the program: what it reads from a file depends on it.
    """

    def __init__(self, folder: str, root: Root, locks: FileLocks, version: str) -> None:
        # Each version has a file of its own: two that are in use at once would replace each other's all the time.
        named = f"{root.path}\0{_FORMAT}\0{LIBRARY_VERSION}\0{version}"
        name = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._folder = folder
        self._name = name
        self._path = os.path.join(folder, name)
        self._root = root
        self._locks = locks

    @property
    def stamp(self) -> bytes | None:
        """A stamp that differs once another index is kept; None where there is none."""
        try:
            descriptor = self._open()
        except OSError:
            return None
        try:
            return os.read(descriptor, _HEAD.size)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        return os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)

    def turn(self) -> AbstractContextManager[object] | None:
        """The right to build and write it, for a while; None while another process has it."""
        return self._locks.try_hold([f"search index {self._name}"])

    def load(self) -> IndexRecord | None:
        """The kept index, its trigrams mapped so that processes share them; None where there is none."""
        try:
            descriptor = self._open()
        except OSError:
            return None
        try:
            found = os.fstat(descriptor)
            if (
                not stat.S_ISREG(found.st_mode)
                or found.st_uid != os.geteuid()
                or found.st_mode & 0o077
                or not _HEAD.size < found.st_size <= _LARGEST
            ):
                return None
            if time.time() - found.st_mtime > _CUT_OFF_SECONDS:
                with suppress(OSError):
                    os.utime(descriptor)  # it is in use
            record = _read(descriptor, found.st_size, self._root.identity)
        except (OSError, ValueError, OverflowError, invalid_struct):
            return None
        finally:
            os.close(descriptor)
        return record

    def save(self, record: IndexRecord) -> bool:
        """Keep this instead, whole or not at all; whether that went well."""
        part = f"{self._path}.{os.urandom(8).hex()}{_PART}"
        try:
            with suppress(FileExistsError):
                os.mkdir(self._folder, 0o700)
            self._prune()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(part, flags, 0o600), "wb") as stream:
                _write(stream.fileno(), record, self._root.identity)
            os.replace(part, self._path)
        except (OSError, ValueError):
            with suppress(OSError):
                os.unlink(part)
            return False
        return True

    def _prune(self) -> None:
        """Remove what nobody has used for long, and what was cut off while it was written."""
        now = time.time()
        for name in os.listdir(self._folder):
            other = os.path.join(self._folder, name)
            with suppress(OSError):
                age = now - os.lstat(other).st_mtime
                if age > (_CUT_OFF_SECONDS if name.endswith(_PART) else _UNUSED_SECONDS):
                    os.unlink(other)


def _names(paths: Sequence[str | None]) -> bytes:
    """Names, which hold no zero byte, as bytes."""
    return "\0".join(path or "" for path in paths).encode("utf-8", "surrogateescape")


def _listed(names: bytes) -> list[str]:
    return names.decode("utf-8", "surrogateescape").split("\0")


def _write(descriptor: int, record: IndexRecord, identity: tuple[int, int]) -> None:
    binary = list(record.binary)
    asked = list(record.said)
    parts = [
        record.stamps,
        b"".join(record.binary.values()),
        _names(record.paths),
        _names(binary),
        _names([*record.wide]),
        _names([*record.recoded]),
        _names(asked),
        _names([record.said[path] for path in asked]),
    ]
    sizes = [len(part) for part in parts]
    table = Struct(f"={len(parts)}Q").pack(*sizes)
    block = record.image.view
    facts = (*identity, len(record.paths), len(binary), len(table), sum(sizes), len(block))
    # The trigrams come last, and are mapped where they are: they need no place of their own.
    body: list[bytes | memoryview] = [table, *parts, block]
    size = _HEAD.size + sum(map(len, body))
    if size > _LARGEST:
        raise ValueError("too large to be kept")
    # A full disk is noticed now, and not through the map.
    reserve(descriptor, 0, size)
    head = _HEAD.pack(_MAGIC, bytes(32), *facts)
    digest = _digest([head, *body])
    os.lseek(descriptor, 0, os.SEEK_SET)
    for one in (_HEAD.pack(_MAGIC, digest, *facts), *body):
        view, at = memoryview(one), 0
        while at < len(view):
            at += os.write(descriptor, view[at:])


def _digest(parts: Sequence[bytes | memoryview]) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _read(descriptor: int, size: int, identity: tuple[int, int]) -> IndexRecord | None:
    # Read and not looked at through the map, which would make all of it this process's pages.
    data = _whole(descriptor, size)
    magic, digest, *facts = _HEAD.unpack_from(data)
    device, inode, many, binaries, table_size, table_bytes, block = facts
    head = _HEAD.pack(_MAGIC, bytes(32), *facts)
    if magic != _MAGIC or (device, inode) != identity or len(data) != size:
        return None
    body = memoryview(data)[_HEAD.size :]
    if table_size + table_bytes + block != len(body) or digest != _digest([head, body]):
        return None
    sizes = Struct(f"={table_size // 8}Q").unpack_from(body)
    at, parts = table_size, []
    for one in sizes:
        parts.append(bytes(body[at : at + one]))
        at += one
    stamps, binary_stamps, *names = parts
    paths, binary, wide, recoded, asked, said = map(_listed, names)
    if len(paths) != max(many, 1) or len(stamps) != many * STAMP.size:
        return None
    start = size - block
    image = TrigramImage(mmap(descriptor, size, access=ACCESS_COPY), start)
    if image.size != many:
        return None
    each = STAMP.size
    stamped = {
        path: binary_stamps[number * each : (number + 1) * each]
        for number, path in enumerate(binary[:binaries])
    }
    return IndexRecord(
        image,
        [path or None for path in paths[:many]],
        stamps,
        frozenset(wide),
        frozenset(recoded),
        stamped,
        dict(zip(asked, said, strict=True)),
    )


def _whole(descriptor: int, size: int) -> bytes:
    with open(os.dup(descriptor), "rb", buffering=0) as stream:
        return stream.read(size + 1)

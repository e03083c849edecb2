"""A file that is held open while its name is taken from it, and what it must hold."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Final

from filepact.fs.reading import open_named

__all__ = ["LARGEST", "Displaced", "Expected", "Pristine", "digest"]

_BLOCK = 1 << 20

LARGEST: Final = 1 << 26
"""Bytes of a file beyond which it cannot be one that we have read or written: far above the limit
of what is edited, far below what a program could put in its place to keep us reading."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The state a file must be in: SHA-256 of its bytes, and its permission bits."""

    content: str
    mode: int


class Displaced:
    """The file that was replaced, kept open after it lost its name.

    Args:
        descriptor: Open for reading.
        content: SHA-256 of what it holds, if nobody writes to it.
    """

    def __init__(self, descriptor: int, content: str) -> None:
        self._descriptor = descriptor
        self._content = content

    def status(self) -> os.stat_result:
        """What the system says of it."""
        return os.fstat(self._descriptor)

    def is_as_it_was(self) -> bool:
        """Whether it still holds what it is known to hold."""
        return digest(self._descriptor) == self._content

    def late_write(self) -> bytes | None:
        """What a program wrote to it after it was replaced.

        Returns:
            All it holds now; None when it is as it was, or cannot be read any more.
        """
        # All bytes, every time: a write within one tick of the clock leaves the times alone.
        try:
            data = b"".join(_blocks(self._descriptor))
        except OSError:
            return None
        return None if hashlib.sha256(data).hexdigest() == self._content else data

    def known_as(self, data: bytes) -> None:
        """Take what was read for what it is known to hold, so that only later writes are late."""
        self._content = hashlib.sha256(data).hexdigest()

    def has_writer(self) -> bool:
        """Whether a program has it open for writing; False where the system does not tell.

        A lease for reading is refused then.  It is not asked for where the file still has a name:
        whoever opened it just then would have us signalled.
        """
        try:
            import fcntl  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

            if os.fstat(self._descriptor).st_nlink:
                return False
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            return True
        except (ImportError, AttributeError, OSError):
            return False
        return False

    def close(self) -> None:
        """Let go of it; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(frozen=True, slots=True)
class Pristine:
    """A file of ours as we left it: nobody else has written to it.

    Attributes:
        status: What the system said of it when it was written.
        content: SHA-256 of what we wrote.
    """

    status: os.stat_result
    content: str

    @property
    def inode(self) -> tuple[int, int]:
        """Device and inode."""
        return self.status.st_dev, self.status.st_ino

    def still(self, parent: int, name: str) -> bool:
        """Whether a name leads to it and it is as we left it.

        The time counts too: a program that has just emptied the file is about to write to it.
        """
        try:
            descriptor = open_named(parent, name)
        except OSError:
            return False
        try:
            now = os.fstat(descriptor)
            return (
                (now.st_dev, now.st_ino) == self.inode
                and now.st_mtime_ns == self.status.st_mtime_ns
                and digest(descriptor) == self.content
            )
        except OSError:
            return False
        finally:
            os.close(descriptor)


def _blocks(descriptor: int) -> list[bytes]:
    blocks = []
    offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        blocks.append(block)
        offset += len(block)
    return blocks


def digest(descriptor: int) -> str:
    """SHA-256 of all bytes of an open file; empty for one that is larger than any of ours."""
    found = hashlib.sha256()
    offset = 0
    if os.fstat(descriptor).st_size > LARGEST:
        return ""
    while block := os.pread(descriptor, _BLOCK, offset):
        found.update(block)
        offset += len(block)
        if offset > LARGEST:
            return ""  # It grows as we read.
    return found.hexdigest()

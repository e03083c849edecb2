"""A file that is held open while its name is taken from it, and what it must hold."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Final

__all__ = ["LARGEST", "Displaced", "Expected", "Pristine", "digest", "holds_name", "is_unchanged"]

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
    """The file that was replaced, kept open after it lost its name."""

    def __init__(self, descriptor: int, content: str) -> None:
        self._descriptor = descriptor
        self._content = content

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

    def still(self, parent: int, name: str, descriptor: int) -> bool:
        """Whether a name leads to it and it is as we left it.

        The time counts too: a program that has just emptied the file is about to write to it.
        """
        try:
            now = os.fstat(descriptor)
            return (
                now.st_mtime_ns == self.status.st_mtime_ns
                and holds_name(parent, name, descriptor)
                and digest(descriptor) == self.content
            )
        except OSError:
            return False


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


def holds_name(parent: int, name: str, descriptor: int) -> bool:
    """Whether a name in a folder leads to the open file."""
    try:
        named = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


def is_unchanged(parent: int, name: str, descriptor: int, expected: Expected) -> bool:
    """Whether a name leads to the open file and that still is in the expected state.

    What cannot be read cannot be trusted to be in it.
    """
    try:
        return (
            holds_name(parent, name, descriptor)
            and stat.S_IMODE(os.fstat(descriptor).st_mode) == expected.mode
            and digest(descriptor) == expected.content
        )
    except OSError:
        return False

"""One name that a walk found, whether it may be seen, and the bytes behind it."""

from __future__ import annotations

import errno
import os
import stat
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from filepact.errors import ReadFailedError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.fs.root import Root

__all__ = ["Entry", "Kind", "Question", "read_regular"]

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Kind = Literal["file", "folder", "link", "other"]
"""``link`` is any symbolic link, wherever it leads; ``other`` a device, pipe or socket."""


class Question:
    """Whether entries may be seen: the guard's word on every one, before it is shown or entered.

    Args:
        allow: The question about one: a root-relative path, and whether it is a folder.

    Attributes:
        refused: How many names rules have refused so far.
    """

    refused = 0

    def __init__(self, allow: Callable[[str, bool], bool]) -> None:
        self._allow = allow

    def __call__(self, path: str, is_dir: bool) -> bool:
        return self._allow(path, is_dir)

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        """Those of the names in one folder that may be seen.

        Args:
            prefix: The folder's path with a slash behind it; empty for the root.
            keys: Names; those of folders with a slash behind them.
        """
        allow = self._allow
        kept = [
            key
            for key in keys
            if (allow(prefix + key[:-1], True) if key[-1] == "/" else allow(prefix + key, False))
        ]
        self.refused += len(keys) - len(kept)
        return kept

    def quietly(self, prefix: str, keys: list[str]) -> list[str]:
        """The same for names that would not be seen anyway, so that nobody counts them."""
        before = self.refused
        try:
            return self.among(prefix, keys)
        finally:
            self.refused = before


class Entry(NamedTuple):
    """One name that the walk found.

    A named tuple, because a walk makes thousands and frozen dataclasses cost three times as much.

    Attributes:
        path: Relative to the root.
        depth: 1 for what lies directly in the base.
        folder: Descriptor of the folder it lies in, open until the walk is asked for the next.
        root: Where the walk began.
    """

    path: str
    name: str
    kind: Kind
    depth: int
    folder: int
    root: Root

    def read(self, *, limit: int) -> bytes:
        """The bytes of a file.

        Args:
            limit: Most bytes.

        Raises:
            TooLargeError: It is longer.
            ReadFailedError: It is gone, no regular file any more, or the system refused.
            PathBlockedError: It is another name of a secret.
        """
        try:
            data = read_regular(
                self.folder, self.name, limit, partial(self.root.check_file, self.path)
            )
        except OSError as error:
            raise ReadFailedError(
                f"{self.path}: cannot be read: {os.strerror(error.errno or 0)}", path=self.path
            ) from None
        if data is None:
            raise TooLargeError(f"{self.path}: over {limit:,} bytes", path=self.path)
        return data


def read_regular(
    folder: int,
    name: str,
    limit: int,
    check: Callable[[int, os.stat_result], None] = lambda _descriptor, _status: None,
) -> bytes | None:
    """All bytes of a regular file that passes a check, or None when there are more than the limit.

    Raises:
        OSError: The system refused, or it is no regular file.
    """
    descriptor = os.open(name, _FLAGS, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        check(descriptor, status)
        if status.st_size > limit:
            return None
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:
            return data
        # The file changes, or the system has no true size for it, or gives it in pieces.
        pieces = [data]
        got = len(data)
        while got <= limit and (piece := os.read(descriptor, min(limit + 1 - got, 1 << 20))):
            pieces.append(piece)
            got += len(piece)
        return None if got > limit else b"".join(pieces)
    finally:
        os.close(descriptor)

"""A file at one moment: its stamp, and its bytes as far as they are kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.compression import compress, decompress, packed_size
from filepact.domain.document import LINK, Revision
from filepact.errors import FilepactError, PathBlockedError, ReadFailedError
from filepact.fs.watch import stamp_at
from filepact.text.secrets import holds_private_key
from filepact.workspace.file_snapshot import is_racy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.domain.document import WorkspacePath
    from filepact.fs.root import Root
    from filepact.fs.watch import Stamp
    from filepact.workspace.guard import Guard

__all__ = ["FileState", "KnownContents", "read_state", "unread"]

_TRIES: Final = 3
_LEVEL: Final = 1  # of compression: somebody waits until the files are known


class FileState(NamedTuple):
    """A file at one moment.

    A named tuple, because there are many thousands of them.

    Attributes:
        stamp: Another one once the file has changed; None where only the journal tells of it.
        revision: None where it was not read.
        packed: Its bytes, compressed; None where the store or the journal has them, or nobody.
        racy: Whether it may have changed again and kept its stamp.
        held: What its bytes take in the store; 0 where they are not there.
        secret: Whether they are not to be stored, since they hold a private key.
    """

    stamp: Stamp | None
    revision: Revision | None = None
    packed: bytes | None = None
    racy: bool = False
    held: int = 0
    secret: bool = False

    @property
    def size(self) -> int:
        """What its bytes take, in memory or in the store."""
        return self.held if self.packed is None else len(self.packed)


class KnownContents(Mapping[str, bytes]):
    """Contents by id, unpacked one at a time."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self.size = 0

    def add(self, name: str, packed: bytes) -> None:
        if name not in self._packed:
            self._packed[name] = packed
            self.size += len(packed)

    def __getitem__(self, name: str) -> bytes:
        return decompress(self._packed[name])

    def size_of(self, name: str) -> int:
        """The bytes of one, which is not unpacked for it."""
        return packed_size(self._packed[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def read_state(
    guard: Guard, path: WorkspacePath, stamp: Stamp, *, limit: int, secret: bool
) -> FileState | None:
    """A file in one state; None while it changes.

    Args:
        guard: Its roots.
        path: The file.
        stamp: Its stamp.
        limit: Most bytes; a larger file is not read, nor one that may not be kept.
        secret: Whether it is looked for a private key.
    """
    root = guard.root_of(path.root)
    if stamp.is_link:
        return _read_link(guard, root, path, stamp)
    for _ in range(_TRIES):
        if stamp.size > limit or not guard.keeps(path):
            return FileState(stamp)
        now = time.time_ns()
        try:
            contents = root.read(path.path, limit=limit, follow=False)
        except (PathBlockedError, ReadFailedError):
            return FileState(stamp) if stamp_at(root, path.path) == stamp else None
        except FilepactError:
            return None
        if contents.inode == stamp.inode and root.glance(path.path) == stamp[:4]:
            return FileState(
                stamp,
                contents.revision,
                compress(contents.data, _LEVEL),
                racy=is_racy(stamp, now),
                secret=secret and holds_private_key(contents.data),
            )
        again = stamp_at(root, path.path)
        if again is None:
            return None
        stamp = again
    return None


def _read_link(guard: Guard, root: Root, path: WorkspacePath, stamp: Stamp) -> FileState | None:
    """A link, which holds the name that it leads to; nothing is looked at there."""
    if not guard.keeps(path):
        return FileState(stamp)
    now = time.time_ns()
    try:
        data = root.read_link(path.path)
    except FilepactError:
        return None
    if stamp_at(root, path.path) != stamp:
        return None
    packed = compress(data, _LEVEL)
    return FileState(stamp, Revision.of(data, LINK), packed, racy=is_racy(stamp, now))


def unread(state: FileState | None) -> Revision | None:
    """A file of which only the stamp counts, since its bytes are not kept."""
    if state is None:
        return None
    if state.stamp is None:
        return Revision.unread("reported", 0o600)
    sign = " ".join(map(str, state.stamp))
    return Revision.unread(sign, state.stamp.permissions, state.stamp.size)

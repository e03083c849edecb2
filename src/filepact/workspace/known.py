"""The files of some roots as they were when they were last looked at, and what is different now.

Contents are kept in memory, compressed and within limits, so that what somebody writes behind our
back can be taken back.  What agents may not read is not read here either.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import zstandard

from filepact.domain.document import Revision, WorkspacePath
from filepact.errors import FilepactError, PathBlockedError, ReadFailedError
from filepact.fs.stamp import scan, stamp_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.document import RootId
    from filepact.fs.root import Root
    from filepact.fs.stamp import Scan, Stamp
    from filepact.workspace.guard import Guard

__all__ = ["Known", "Limits", "State"]

_JUST_NOW: Final = 2 * 10**9
"""Nanoseconds in which a file may change twice under one stamp, on some file systems."""

_TRIES: Final = 3
_LEVEL: Final = 1  # of compression: somebody waits until the files are known


class Limits(NamedTuple):
    """How much is kept.

    Attributes:
        file: Most bytes of a file whose contents are kept before anything has happened to it.
        changed: Most bytes of a file that has changed.
        memory: Most bytes that all contents may take, compressed.
        files: Most files of a root that are known.
    """

    file: int = 1_048_576
    changed: int = 10_000_000
    memory: int = 128 * 1_048_576
    files: int = 100_000


class State(NamedTuple):
    """A file at one moment.

    A named tuple, because there are many thousands of them.

    Attributes:
        stamp: Another one once the file has changed; None where only the journal tells of it.
        revision: None where it was not read.
        packed: Its bytes, compressed; None where the journal has them, or nobody.
        fresh: It had changed so lately that it might have changed again under the same stamp.
    """

    stamp: Stamp | None
    revision: Revision | None = None
    packed: bytes | None = None
    fresh: bool = False


class Known:
    """What is known of the files of some roots.

    Not for several threads at once; whoever holds it has the lock.
    """

    def __init__(self, guard: Guard, limits: Limits) -> None:
        self._guard = guard
        self.limits = limits
        self.begun = False
        self.held = 0
        self.folders: set[tuple[RootId, str]] = set()
        self._states: dict[WorkspacePath, State] = {}
        self._ends: dict[RootId, str | None] = {}
        self._skip = {
            root.path: frozenset(
                other.path[len(root.path) :].lstrip("/")
                for other in guard.roots
                if other is not root and other.path.startswith(f"{root.path.rstrip('/')}/")
            )
            for root in guard.roots
        }

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[tuple[WorkspacePath, State]]:
        return iter(self._states.items())

    @property
    def cut(self) -> bool:
        """Whether a root has more files than are known of it."""
        return any(self._ends.values())

    def get(self, path: WorkspacePath) -> State | None:
        return self._states.get(path)

    def put(self, path: WorkspacePath, state: State) -> None:
        """Know a file as this from now on; its bytes are kept as far as there is room."""
        self.drop(path)
        size = len(state.packed or b"")
        large = state.stamp is not None and state.stamp.size > self.limits.file
        if large or self.held + size > self.limits.memory:
            state = state._replace(packed=None)
        else:
            self.held += size
        self._states[path] = state

    def drop(self, path: WorkspacePath) -> None:
        """Know of no such file."""
        old = self._states.pop(path, None)
        if old is not None and old.packed is not None:
            self.held -= len(old.packed)

    # -- all of them ----------------------------------------------------------------------

    def begin(self, cancelled: Callable[[], bool]) -> list[tuple[WorkspacePath, Stamp]] | None:
        """Take all stamps as they are now; which files have to be read then.

        None when it was cancelled before all stamps were taken.
        """
        unread: list[tuple[WorkspacePath, Stamp]] = []
        scans = [(root, self._scan(root, cancelled)) for root in self._guard.roots]
        if any(found.cancelled for _, found in scans):
            return None
        for root, found in scans:
            for name, stamp in found.stamps.items():
                path = WorkspacePath(root.path, name)
                old = self._states.get(path)
                if old is None or old.stamp != stamp or old.fresh:
                    self.put(path, State(stamp))
                    unread.append((path, stamp))
            for path in self._missing(root, found):
                self.drop(path)
            self._note(root, found)
        self.begun = True
        unread.reverse()  # They are taken from the end.
        return unread

    def differences(self) -> Iterator[tuple[WorkspacePath, Stamp | None]]:
        """Files that may have changed, with their stamps; None for one that is gone."""
        for root in self._guard.roots:
            end = self._ends.get(root.path)
            found = self._scan(root, lambda: False)
            for name, stamp in found.stamps.items():
                path = WorkspacePath(root.path, name)
                old = self._states.get(path)
                if old is None:
                    # What comes behind the last known file was there before, for all we know.
                    if end is None or name <= end:
                        yield path, stamp
                elif old.stamp != stamp or old.fresh:
                    yield path, stamp
            for path in self._missing(root, found):
                # Perhaps it is only ignored from now on.
                stamp_now = stamp_at(root, path.path)
                if stamp_now is None or stamp_now != self._states[path].stamp:
                    yield path, stamp_now
            self._note(root, found)

    def _scan(self, root: Root, cancelled: Callable[[], bool]) -> Scan:
        return scan(root, skip=self._skip[root.path], most=self.limits.files, cancelled=cancelled)

    def _missing(self, root: Root, found: Scan) -> list[WorkspacePath]:
        """Known files that were looked for and not seen."""
        dark = tuple(f"{folder}/" for folder in found.unreadable)
        return [
            path
            for path in self._states
            if path.root == root.path
            and path.path not in found.stamps
            and (found.end is None or path.path <= found.end)
            and not path.path.startswith(dark)
        ]

    def _note(self, root: Root, found: Scan) -> None:
        self._ends[root.path] = found.end
        self.folders = {one for one in self.folders if one[0] != root.path}
        self.folders |= {(root.path, folder) for folder in found.folders}

    # -- one of them ----------------------------------------------------------------------

    def present(self, path: WorkspacePath) -> Stamp | None:
        """The stamp of a file now."""
        return stamp_at(self._guard.root_of(path.root), path.path)

    def read(self, path: WorkspacePath, stamp: Stamp, *, limit: int) -> State | None:
        """A file in one state; None while it changes.

        Args:
            path: The file.
            stamp: Its stamp.
            limit: Most bytes; a larger file is not read, nor one that agents may not read.
        """
        root = self._guard.root_of(path.root)
        for _ in range(_TRIES):
            if stamp.is_link or stamp.size > limit or self._guard.hides(path, ""):
                return State(stamp)
            now = time.time_ns()
            try:
                contents = root.read(path.path, limit=limit, follow=False)
            except (PathBlockedError, ReadFailedError):
                return State(stamp) if stamp_at(root, path.path) == stamp else None
            except FilepactError:
                return None
            if contents.inode == stamp.inode and root.glance(path.path) == stamp[:4]:
                return State(
                    stamp,
                    Revision.of(contents.data, contents.mode),
                    zstandard.compress(contents.data, _LEVEL),
                    fresh=now - stamp.modified < _JUST_NOW,
                )
            again = stamp_at(root, path.path)
            if again is None:
                return None
            stamp = again
        return None

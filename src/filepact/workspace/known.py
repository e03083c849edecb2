"""The files of some roots as they were when they were last looked at, and what is different now.

Contents are kept in memory, compressed and within limits, so that what somebody writes behind our
back can be taken back.  What agents may not read is not read here either.
"""

from __future__ import annotations

import time
from collections import deque
from posixpath import dirname
from typing import TYPE_CHECKING, Final, NamedTuple

import zstandard

from filepact.domain.agent_logs import is_agent_log
from filepact.domain.document import Revision, WorkspacePath
from filepact.errors import FilepactError, PathBlockedError, ReadFailedError
from filepact.fs.stamp import Stamp, is_gone, moment, stamp_at
from filepact.workspace.lookout import Lookout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.domain.document import RootId
    from filepact.fs.root import Root
    from filepact.fs.stamp import Scan
    from filepact.workspace.guard import Guard
    from filepact.workspace.lookout import Glance

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


class _Look(NamedTuple):
    """What a look at one root found.

    Attributes:
        differing: Files that may be other than they are known, with their stamps; None for gone.
        hidden: Known files that are there, and ignored from now on.
    """

    glance: Glance
    differing: dict[WorkspacePath, Stamp | None]
    hidden: tuple[WorkspacePath, ...] = ()


class Known:
    """What is known of the files of some roots.

    Not for several threads at once, but for marks; whoever holds it has the lock.
    """

    def __init__(self, guard: Guard, limits: Limits) -> None:
        self._guard = guard
        self.limits = limits
        self.begun = False
        self.held = 0
        self.folders: set[tuple[RootId, str]] = set()
        self._states: dict[WorkspacePath, State] = {}
        self._doubtful: set[WorkspacePath] = set()
        self._marks: deque[int] = deque()
        self._since: int | None = None
        self._ends: dict[RootId, str | None] = {}
        self._lookouts = {
            root.path: Lookout(root, _within(root, guard), most=limits.files)
            for root in guard.roots
        }

    def close(self) -> None:
        """Look no more."""
        for lookout in self._lookouts.values():
            lookout.close()

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[tuple[WorkspacePath, State]]:
        return iter(self._states.items())

    @property
    def cut(self) -> bool:
        """Whether a root has more files than are known of it."""
        return any(self._ends.values())

    @property
    def is_marked(self) -> bool:
        """Whether a mark was made that has not served its purpose."""
        return bool(self._marks)

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
        if state.fresh or state.stamp is None:
            self._doubtful.add(path)

    def drop(self, path: WorkspacePath) -> None:
        """Know of no such file."""
        self._doubtful.discard(path)
        old = self._states.pop(path, None)
        if old is not None and old.packed is not None:
            self.held -= len(old.packed)

    def doubt(self, path: WorkspacePath) -> None:
        """Have a file looked at the next time, whatever has happened to it."""
        self._doubtful.add(path)

    # -- all of them ----------------------------------------------------------------------

    def mark(self) -> None:
        """What is changed from now on is left by one `begin` anew, to be found as different.

        From any thread, within milliseconds; several marks wait for as many of these.
        """
        marked = [lookout.mark() for lookout in self._lookouts.values()]
        self._marks.append(time.time_ns() if all(marked) else moment())

    def begin(
        self, cancelled: Callable[[], bool], *, anew: bool
    ) -> list[tuple[WorkspacePath, Stamp]] | None:
        """Take all files as they are now for known, or as they were at the oldest mark.

        Args:
            cancelled: Asked for every folder.
            anew: Whether that mark has served its purpose then.

        Returns:
            Which files have to be read then; None when it was cancelled too early.
        """
        since = self._marks.popleft() if anew and self._marks else None
        looks = [(root, self._look(root, cancelled, keep=not anew)) for root in self._guard.roots]
        # A mark that is made while they are looked at counts as well.
        self._since = self._marks[0] if since is None and self._marks else since
        if any(look.glance.scan is not None and look.glance.scan.cancelled for _, look in looks):
            return None
        unread: list[tuple[WorkspacePath, Stamp]] = []
        for root, look in looks:
            for path, stamp in look.differing.items():
                if self._is_late(root, path, stamp, look.glance):
                    self._leave(path, stamp, look.glance)
                elif stamp is None:
                    self.drop(path)
                else:
                    self.put(path, State(stamp))
                    unread.append((path, stamp))
            for path in look.hidden:
                self.drop(path)
        self.begun = True
        unread.reverse()  # They are taken from the end.
        return unread

    def differences(self) -> Iterator[tuple[WorkspacePath, Stamp | None]]:
        """Files that may have changed, with their stamps; None for one that is gone."""
        for root in self._guard.roots:
            end = self._ends.get(root.path)
            for path, stamp in self._look(root, lambda: False, keep=True).differing.items():
                # What comes behind the last known file was there before, for all we know.
                if end is None or path.path <= end or path in self._states:
                    yield path, stamp

    def _look(self, root: Root, cancelled: Callable[[], bool], *, keep: bool) -> _Look:
        """Look at what may be different in a root; it stays in doubt until it is known again."""
        lookout = self._lookouts[root.path]
        glance = lookout.glance(
            lambda name: is_agent_log(name) or WorkspacePath(root.path, name) in self._states,
            cancelled,
            keep=keep,
        )
        found = glance.scan
        differing: dict[WorkspacePath, Stamp | None] = {}
        if found is None:
            self._doubtful |= {WorkspacePath(root.path, name) for name in glance.names}
            for path in sorted(one for one in self._doubtful if one.root == root.path):
                stamp = stamp_at(root, path.path)
                if self._differs(path, stamp):
                    if stamp is not None or is_gone(root, path.path):
                        differing[path] = stamp
                else:
                    self._doubtful.discard(path)
            return _Look(glance, differing)
        if found.cancelled:
            return _Look(glance, {})
        for name, stamp in found.stamps.items():
            path = WorkspacePath(root.path, name)
            if self._differs(path, stamp):
                differing[path] = stamp
        hidden: list[WorkspacePath] = []
        for path in self._missing(root, found):
            stamp = stamp_at(root, path.path)
            if self._differs(path, stamp):
                differing[path] = stamp
            if stamp is not None:
                hidden.append(path)
        if glance.sure and any(
            path.path not in glance.names and path not in self._doubtful for path in differing
        ):
            lookout.distrust()
        self._doubtful |= differing.keys()
        self._note(root, found)
        return _Look(glance, differing, tuple(hidden))

    def _differs(self, path: WorkspacePath, stamp: Stamp | None) -> bool:
        old = self._states.get(path)
        if old is None:
            return stamp is not None and not is_agent_log(path.path)
        return old.stamp != stamp or old.fresh

    def _is_late(
        self, root: Root, path: WorkspacePath, stamp: Stamp | None, glance: Glance
    ) -> bool:
        """Whether a file has become different after the last mark."""
        if self._since is None:
            return False
        if glance.late is not None and path.path in glance.names:
            return path.path in glance.late
        if stamp is not None:
            return stamp.changed > self._since
        above = path.path
        while above:
            above = dirname(above)
            folder = root.glance(above or ".")
            if folder:
                return folder[3] > self._since
        return False

    def _leave(self, path: WorkspacePath, stamp: Stamp | None, glance: Glance) -> None:
        """Have a file found as different, of which it may not be known what it was before."""
        old = self._states.get(path)
        made = self.begun and glance.late is not None and path.path in glance.late
        changed_before = path.path in (glance.early or ())
        if changed_before or (old is None and not made):
            mode = stamp.mode if stamp is not None else 0o100600
            self.put(path, State(Stamp(0, 0, 0, 0, mode)))
        self._doubtful.add(path)

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


def _within(root: Root, guard: Guard) -> frozenset[str]:
    """The folders of a root that are roots of their own."""
    return frozenset(
        other.path[len(root.path) :].lstrip("/")
        for other in guard.roots
        if other is not root and other.path.startswith(f"{root.path.rstrip('/')}/")
    )

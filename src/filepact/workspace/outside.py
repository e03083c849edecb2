"""What was written past all doors: seen, put into the journal, and so undone like anything else.

A program with a shell needs no door.  So the files are known as they were before it began, and
compared afterwards; what is different then, and is not in the journal, was done by somebody else.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import zstandard

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, WorkspacePath
from filepact.domain.operation import Operation
from filepact.errors import FilepactError, NotFoundError
from filepact.fs.walk import walk
from filepact.workspace.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from filepact.domain.operation import Session
    from filepact.fs.lock import FileLocks
    from filepact.fs.root import Root
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import Store

__all__ = ["Looked", "Outside"]

LARGEST: Final = 1_048_576
"""Most bytes of a file that is kept."""

BUDGET: Final = 128 * 1_048_576
"""Most bytes that all that is kept may take, compressed."""

_JUST_NOW: Final = 2 * 10**9
"""Nanoseconds in which a file may change twice under one stamp, on some file systems."""

_LEVEL: Final = 1  # of compression; a baseline is made while somebody waits to begin


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look has found.

    Attributes:
        operation: What was put into the journal; None where nothing was.
        unkept: Files that changed and of which it is not known what they were, as they are shown.
    """

    operation: Operation | None = None
    unkept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was.

    Attributes:
        stamp: Another one once the file has changed.
        revision: None where it was not read.
        packed: Its bytes, compressed; None where the journal has them, or nobody.
        fresh: It changed so lately that it may change again under the same stamp.
    """

    stamp: tuple[int, ...]
    revision: Revision | None = None
    packed: bytes | None = None
    fresh: bool = False


@dataclass(slots=True)
class _Seen:
    """What one look came upon."""

    changes: list[FileChange]
    contents: dict[str, bytes]
    unkept: list[str]


class Outside:
    """The files of some roots, as they were when they were last looked at.

    What ignore files name is left out, and what agents may not read is neither read nor kept: that
    such a file changed is said, and no more.

    Args:
        guard: The roots and the rules.
        store: The journal.
        locks: The locks that every change of a file holds.
    """

    def __init__(self, guard: Guard, store: Store, locks: FileLocks) -> None:
        self._guard = guard
        self._store = store
        self._locks = locks
        self._lock = threading.Lock()
        self._known: dict[WorkspacePath, _Known] | None = None
        self._held = 0
        self._seq = 0

    def learn(self, *, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Learn all files, unless they are known."""
        if self._known is None:
            self.refresh(cancelled=cancelled)

    def refresh(self, *, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Take the files as they are now for known."""
        with self._lock:
            self._catch_up()
            known = self._known or {}
            found: dict[WorkspacePath, _Known] = {}
            for root, path, stamp in self._files(cancelled):
                old = known.get(path)
                same = old is not None and old.stamp == stamp and not old.fresh
                found[path] = old if old is not None and same else self._learn(root, path, stamp)
            self._known = found
            self._held = sum(len(one.packed or b"") for one in found.values())

    def look(self, session: Session, *, tool: str = "outside") -> Looked:
        """Put into the journal what others have changed since the last look.

        Args:
            session: Whose turn it was.
            tool: What the journal calls it.
        """
        with self._lock:
            if self._known is None:
                return Looked()
            busy, _ = self._catch_up()
            seen = _Seen([], {}, [])
            there: set[WorkspacePath] = set()
            for root, path, stamp in self._files():
                there.add(path)
                if path not in busy:
                    self._compare(root, path, stamp, seen)
            gone = self._known.keys() - there - busy
            for path in sorted(gone):
                self._miss(path, seen)
            # What was done through the doors meanwhile is not somebody else's.
            late = frozenset().union(*self._catch_up())
            changes = tuple(one for one in seen.changes if one.path not in late)
            operation = self._adopt(session, tool, changes, seen) if changes else None
            return Looked(operation, tuple(seen.unkept))

    # -- what is there --------------------------------------------------------------------

    def _files(
        self, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterable[tuple[Root, WorkspacePath, tuple[int, ...]]]:
        """Every regular file with its stamp."""
        for root in self._guard.roots:
            with walk(root, allow=lambda _path, _is_dir: True, cancelled=cancelled) as entries:
                for entry in entries:
                    stamp = root.glance(entry.path) if entry.kind == "file" else None
                    if stamp:
                        yield root, WorkspacePath(root.path, entry.path), stamp

    def _learn(self, root: Root, path: WorkspacePath, stamp: tuple[int, ...]) -> _Known:
        """A file as it is now."""
        now = time.time_ns()
        fresh = now - max(stamp[2:]) < _JUST_NOW
        if self._guard.hides(path, "") or stamp[1] > LARGEST:
            return _Known(stamp, fresh=fresh)
        read = _read(root, path, stamp)
        if read is None:
            return _Known((), fresh=True)
        revision, data = read
        packed = zstandard.compress(data, _LEVEL)
        if self._held + len(packed) > BUDGET:
            return _Known(stamp, revision, fresh=fresh)
        self._held += len(packed)
        return _Known(stamp, revision, packed, fresh)

    # -- what is different ----------------------------------------------------------------

    def _compare(
        self, root: Root, path: WorkspacePath, stamp: tuple[int, ...], seen: _Seen
    ) -> None:
        known = self._known or {}
        old = known.get(path)
        if old is not None and old.stamp == stamp and not old.fresh:
            return
        if self._guard.hides(path, "") or stamp[1] > LARGEST:
            if old is None or old.stamp != stamp:
                known[path] = _Known(stamp)
                seen.unkept.append(self._show(path))
            return
        read = _read(root, path, stamp)
        if read is None:
            return  # It is being written to: the next look will find it still.
        revision, data = read
        before = None if old is None else old.revision
        if old is not None and before is None:
            seen.unkept.append(self._show(path))
        elif before != revision:
            if before is not None and not self._keep(old, before, seen):
                seen.unkept.append(self._show(path))
            else:
                seen.contents[revision.content] = data
                seen.changes.append(FileChange(path, before, revision))
        # The journal has the bytes now, or somebody has said that they are not kept.
        fresh = time.time_ns() - max(stamp[2:]) < _JUST_NOW
        same = old is not None and before == revision
        packed = old.packed if same and old is not None else zstandard.compress(data, _LEVEL)
        known[path] = _Known(stamp, revision, packed, fresh)

    def _miss(self, path: WorkspacePath, seen: _Seen) -> None:
        """A file that is not there any more, or that is ignored now."""
        known = self._known or {}
        with suppress(FilepactError):
            stamp = self._guard.root_of(path.root).glance(path.path)
            if stamp is not None:
                # Ignored from now on, or a link stands in its place.
                del known[path]
                if not stamp:
                    seen.unkept.append(self._show(path))
                return
        old = known.pop(path)
        if old.revision is not None and self._keep(old, old.revision, seen):
            seen.changes.append(FileChange(path, old.revision, None))
        else:
            seen.unkept.append(self._show(path))

    def _keep(self, old: _Known | None, revision: Revision, seen: _Seen) -> bool:
        """Have the bytes of a state at hand; whether somebody has them."""
        if old is not None and old.packed is not None:
            seen.contents[revision.content] = zstandard.decompress(old.packed)
            return True
        try:
            seen.contents[revision.content] = self._store.content(revision.content)
        except NotFoundError:
            return False
        return True

    def _show(self, path: WorkspacePath) -> str:
        return self._guard.show(path.root, path.path)

    # -- the journal ----------------------------------------------------------------------

    def _catch_up(self) -> tuple[frozenset[WorkspacePath], frozenset[WorkspacePath]]:
        """Learn what was done through the doors: the files of what is being done, and of that."""
        # In this order: what ends in between is in the second, if it is not in the first.
        busy = {path for one in self._store.unfinished() for path in one.changes.paths}
        done: set[WorkspacePath] = set()
        for operation in self._store.operations(
            after_seq=self._seq, limit=None, newest_first=False
        ):
            self._seq = max(self._seq, operation.seq)
            for change in operation.changes.changes:
                done.add(change.path)
                if self._known is None or operation.state not in ("applied", "interrupted"):
                    continue
                if change.after is None:
                    self._known.pop(change.path, None)
                else:
                    self._known[change.path] = _Known((), change.after, fresh=True)
        return frozenset(busy), frozenset(done)

    def _adopt(
        self, session: Session, tool: str, changes: tuple[FileChange, ...], seen: _Seen
    ) -> Operation:
        """Put changes into the journal that are on the disk already."""
        noun = "file" if len(changes) == 1 else "files"
        note = "written past the doors; only the last state was seen"
        if seen.unkept:
            note += f"; changed as well, and not kept: {_some(seen.unkept)}"
        operation = Operation(
            id=new_id(),
            seq=0,
            kind="change",
            session=session,
            tool=tool,
            summary=f"{len(changes)} {noun} changed past the doors",
            changes=ChangeSet(changes),
            created=time.time(),
            state="intended",
            note=note,
        )
        keys = {
            self._guard.root_of(change.path.root).place(change.path.path).lock_key
            for change in changes
        }
        named = {
            side.content: seen.contents[side.content]
            for change in changes
            for side in (change.before, change.after)
            if side is not None
        }
        # Who repairs after a crash leaves alone what is locked.
        with self._locks.hold(keys):
            begun = self._store.begin(operation, named)
            self._store.finish(begun.id, state="applied", note=note)
        self._seq = max(self._seq, begun.seq)
        return self._store.operation(begun.id)


def _read(root: Root, path: WorkspacePath, stamp: tuple[int, ...]) -> tuple[Revision, bytes] | None:
    """A file's state and bytes; None when it changes meanwhile, or may not be read."""
    with suppress(FilepactError):
        contents = root.read(path.path, limit=LARGEST, follow=False)
        if root.glance(path.path) == stamp:
            return Revision.of(contents.data, contents.mode), contents.data
    return None


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown

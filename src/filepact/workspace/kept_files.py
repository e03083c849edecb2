"""The files of all roots as they were when they were last looked at, with their contents.

Contents are kept, compressed and within limits, so that what is written past the workspace can be taken back: in memory,
or in a store that outlasts the process.  What agents may not read is not read here either.
"""

from __future__ import annotations

import time
from collections import deque
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from filepact.compression import decompress
from filepact.domain.document import FOLDER, SnapshotFile, SnapshotRecord, WorkspacePath
from filepact.domain.protected import has_agent_logs, is_agent_log, is_in_git
from filepact.fs.atomic import LARGEST
from filepact.fs.kernel import place_of, same_places
from filepact.fs.path_form import folders_above
from filepact.fs.watch import EntryMoves, Stamp, files_behind, is_later, moment, stamp_at
from filepact.workspace.file_snapshot import PIPE, FileSnapshot, RacyFiles, nested_roots
from filepact.workspace.file_states import (
    ALWAYS,
    CallNames,
    CallRange,
    FileState,
    IgnoredStamps,
    KnownFileLimits,
    SnapshotStore,
    claimed_by,
    free_among,
    keep_copy,
    kept_state,
    made_before,
    named_below,
    packed_bytes,
    read_state,
    renamed_state,
    turned_in,
    unread,
)
from filepact.workspace.folder_steps import FolderChange, folder_at, same_rights

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

    from filepact.domain.change import FileChange
    from filepact.domain.document import Revision, RootId
    from filepact.fs.kept_copies import KeptCopies
    from filepact.fs.root import Root
    from filepact.workspace.file_snapshot import CallFiles
    from filepact.workspace.guard import Guard
    from filepact.workspace.observe import RootEvents

__all__ = ["KnownFiles"]

_FEW: Final = 20  # new files of which one by one is asked whether they are ignored
_LONGEST_READ: Final = 2.0  # seconds that a call waits at most until files are kept
_MADE: Final = (".class", ".log", ".o", ".obj", ".pid", ".pyc", ".swp", ".tmp", ".coverage")
"""How names of ignored files end that programs write all the time."""


class KnownFiles:
    """The known state of every file; for one thread at a time, but for marks.

    Args:
        guard: The roots and the rules.
        limits: How much is kept.
        store: Keeps it beyond the end of the process; None keeps it in memory.

    Attributes:
        unwatched: How many files there are behind the most that are known, when they were last counted.
        marks: When marks were made that have not served their purpose.
        newly: Files that were there before they were seen; what they hold has to be read.
        ends: What was moved, each name with the other one, as of the last look at differences.
        others: The same of files alone, those among them that are in the place of others; itself for one from elsewhere there.
    """

    def __init__(
        self, guard: Guard, limits: KnownFileLimits, store: SnapshotStore | None = None
    ) -> None:
        self._guard = guard
        self.store = store
        self.unwatched = 0
        self.newly: list[tuple[WorkspacePath, Stamp]] = []
        self.ends: dict[WorkspacePath, WorkspacePath] = {}
        self.others: dict[WorkspacePath, WorkspacePath] = {}
        self._went: dict[RootId, set[str]] = {}
        self._moves: dict[RootId, EntryMoves] = {}
        self._former: dict[tuple[RootId, Stamp], WorkspacePath] = {}
        self._attended: dict[Hashable, CallNames] = {}
        self._unsaved: set[WorkspacePath] = set()
        self._told: set[WorkspacePath] = set()
        self._ignored = IgnoredStamps(guard)
        self._saved: list[tuple[object, ...]] = []
        self.limits = limits
        self.started, self.held = False, 0
        self._states: dict[WorkspacePath, FileState] = {}
        self.marks: deque[int] = deque()
        self._since: int | None = None
        made = partial(FileSnapshot, most=limits.files, overlooks=is_agent_log, few=_FEW, git=True)
        self._snapshots = {one.path: made(one, nested_roots(one, guard)) for one in guard.roots}

    def close(self) -> None:
        """Stop watching the roots."""
        for snapshot in self._snapshots.values():
            snapshot.close()
        self.let_go(())
        if self.store is not None:
            self.store.close()

    def __iter__(self) -> Iterator[tuple[WorkspacePath, FileState]]:
        return iter(self._states.items())

    def collect(self) -> bool:
        """Take in what was touched, for the next look; whether anything was that may matter."""
        return sum(one.watcher.collect() for one in self._snapshots.values()) > 0  # each does it

    @property
    def descriptors(self) -> tuple[int, ...] | None:
        """The descriptors that become readable once an entry is touched; None where a root has to be scanned."""
        found = [snapshot.watcher.descriptor for snapshot in self._snapshots.values()]
        return None if None in found else tuple(one for one in found if one is not None)

    @property
    def folders(self) -> dict[RootId, Mapping[str, Revision]]:
        """The folders that were there when all files were last looked at, or before a call, with their states."""
        some = self._snapshots.items()
        return {x: {**y.lent, **y.folders} if y.lent else y.folders for x, y in some}

    def was_free(self, span: CallRange) -> Callable[[WorkspacePath], bool]:
        """Tells of a file or folder whether there was none at the last look by now, nor before a time, for certain."""
        free = {root: snapshot.was_free for root, snapshot in self._snapshots.items()}
        return lambda path: free[path.root](path.path) and not made_before(self._guard, path, span)

    def note_folders(self, changes: Iterable[FileChange], span: CallRange = ALWAYS) -> None:
        """Know of the folders that came, and of none that went; of one that may be older than a time a later look tells."""
        folders: dict[RootId, dict[str, Revision]] = {}
        asked: set[tuple[RootId, str]] = set()
        for change in changes:
            (root, path), after = change.path, change.after
            known = folders.setdefault(root, dict(self._snapshots[root].folders))
            self._snapshots[root].tell(path, after)
            if change.of_file is not change:
                self._snapshots[root].lent.pop(path, None)
                known.pop(path, None)
                if after is not None and after.is_folder and after.was_read:
                    # Of one whose rights nobody knew, later changes would never be told.
                    known[path] = (after == FOLDER and folder_at(self._guard, change.path)) or after
            for above in folders_above(path) if change.before is None or after is None else ():
                if (root, above) in asked:
                    break
                asked.add((root, above))
                at = WorkspacePath(root, above)
                place = folder_at(self._guard, at)
                older = made_before(self._guard, at, span) and self._snapshots[root].was_free(above)
                if (place is None) == (above in known) and not (place and older):
                    known.pop(above, None)
                    known |= {} if place is None else {above: place}
        for root, known in folders.items():
            self._snapshots[root].folders = known

    def folder_differences(self, span: CallRange, *, made: bool = False) -> Iterator[FolderChange]:
        """Folders that have come or gone, or have other permissions, and nobody has told of; arguments as of `differences`."""
        for root, snapshot in self._snapshots.items():
            of = self._guard.root_of(root)
            unkept = snapshot.unkept(span.since)
            told = {name: (was, now) for name, was, now in unkept if made or was == PIPE}
            for name, (was, now) in told.items():
                yield FolderChange(WorkspacePath(root, name), was, now, made=True)
            lent, there = snapshot.lent if made else {}, snapshot.there
            known = {**lent, **snapshot.folders} if lent else snapshot.folders
            if known is there and not snapshot.came:
                continue
            moves = self._moves.get(root) or EntryMoves(of, {}, {}, known, there)
            for name in sorted((known.keys() | there.keys() | snapshot.came.keys()) - told.keys()):
                was, now = known.get(name), snapshot.folder_now(name)
                same = was and now and same_rights(was, now)
                if same or is_in_git(name) or has_agent_logs(name):
                    continue
                path = WorkspacePath(root, name)
                other = (*moves.sources(name)[-1:], moves.target(None if now else was) or name)
                own = claimed_by(span, path, *(WorkspacePath(root, one) for one in other))
                went = span.since and now is None and self.has_gone(path)
                before = went or (was is None and made_before(self._guard, path, own))
                if not before and turned_in(of, path, was, now, own, moves):
                    yield FolderChange(path, was, now)

    def has_gone(self, path: WorkspacePath) -> bool:
        """Whether a folder went before the time of the last look, or something came in its place that is told of later."""
        return path.path in self._went.get(path.root, ())

    def get(self, path: WorkspacePath) -> FileState | None:
        stamp = self._ignored.get(path)
        return self._states.get(path) if stamp is None else FileState(stamp)

    @cached_property
    def _copies(self) -> KeptCopies:
        """Of what is too large to be read before a call."""
        from filepact.fs.kept_copies import KeptCopies  # noqa: PLC0415 - hooks alone need it

        return KeptCopies(*((self.store.folder, self.store.aside) if self.store else ("",)))

    def before(self, path: WorkspacePath, now: FileState | None) -> FileState | None:
        """A file as it is known, with its bytes if it was kept for a call and is different now."""
        state, stamp = self.get(path), now and now.stamp
        if state is None or state.size or (state.stamp and state.stamp.is_of_same(stamp)):
            return state
        return kept_state(self._guard, path, state, self._copies)

    def let_go(self, under_way: Collection[Hashable]) -> None:
        """Let go of the copies for calls that are over."""
        known = [one.names for call, one in self._attended.items() if call in under_way]
        if self._attended:
            self._copies.release(frozenset[object]().union(*known))

    def put(self, path: WorkspacePath, state: FileState, *, large: bool = False) -> None:
        """Know a file as this from now on; its bytes are kept as far as there is room, if it is not large."""
        if path in self._ignored and state.revision is None and state.stamp is not None:
            self._ignored[path] = state.stamp
            return
        self.drop(path)
        size = state.size
        small = state.stamp is None or large or state.stamp.size <= self.limits.file
        if not small or self.held + size > self.limits.memory:
            state = state._replace(packed=None, held=0)
        else:
            self.held += size
        self._states[path] = state
        self._unsaved.add(path)
        self._snapshots[path.root].put(path.path, state.stamp, racy=state.racy)

    def learn(self, states: Mapping[WorkspacePath, FileState | None]) -> None:
        """Know some files as they are now; None for one that is gone."""
        for path, state in states.items():
            if state is None:
                self.drop(path)
            else:
                self.put(path, state)

    def passes(self, path: WorkspacePath, old: FileState | None, now: FileState | None) -> bool:
        """Whether nobody is told of a change: of what is ignored, and programs write all the time, if it stays with its rights."""
        was, stamp = old and old.stamp, now and now.stamp
        kept = stamp and (not was or was.permissions == stamp.permissions)
        return bool(kept) and path in self._ignored and path.path.endswith(_MADE)

    def drop(self, path: WorkspacePath) -> None:
        """Know of no such file."""
        self._snapshots[path.root].drop(path.path)
        self._ignored.pop(path, None)
        old = self._states.pop(path, None)
        if old is not None:
            self.held -= old.size
            self._unsaved.add(path)

    def shown(self, path: WorkspacePath) -> str:
        """A file with its size, if that is known, in a sentence."""
        state, name = unread(self._states.get(path)), self._guard.show(path.root, path.path)
        size = state and state.unread_size
        return name if size is None else f"{name} ({size:,} bytes)"

    def doubt(self, path: WorkspacePath) -> None:
        """Suspect a file the next time, whatever has happened to it."""
        self._snapshots[path.root].doubt(path.path)

    # -- beyond the process ---------------------------------------------------------------

    def restore(self) -> tuple[int, list[tuple[WorkspacePath, Stamp]]] | None:
        """Take the stored snapshot for known.

        Returns:
            The place in the journal up to which it knows of operations, and the files that have
            still to be read; None where there is no snapshot of these very folders.
        """
        if self.store is None or (found := self.store.load()) is None:
            return None
        if not same_places(found.inodes, self._inodes()):
            self.store.clear()
            return None
        unread: list[tuple[WorkspacePath, Stamp]] = []
        for path, file in found.files:
            stamp = None if file.stamp is None else Stamp(*file.stamp)
            self.put(path, FileState(stamp, file.revision, None, file.racy, file.held))
            unread += [(path, stamp)] if stamp and not file.revision else []
        for root, snapshot in self._snapshots.items():
            folders = found.folders.get(root, {})
            top = self._guard.root_of(root).folder_state(".") or FOLDER
            snapshot.folders = snapshot.there = {".": top, **folders}
            snapshot.hidden = frozenset(found.hidden.get(root, ()))
            snapshot.watcher.expected = snapshot.folders
            snapshot.end, snapshot.looked = found.ends.get(root), found.looked.get(root, 0)
        self.unwatched = found.unwatched
        self._unsaved.clear()
        self._saved = self._view
        self.started = True
        return found.seq, unread

    def save(self, seq: int) -> None:
        """Store what has become different, if there is a store.

        Args:
            seq: The place in the journal up to which it knows of operations.
        """
        view = self._view
        if self.store is None or not self.started or not (self._unsaved or view != self._saved):
            self._unsaved.clear()
            return
        files: list[tuple[WorkspacePath, SnapshotFile]] = []
        for path in self._unsaved & self._states.keys():
            state = self._states[path]
            packed = None if state.secret else state.packed
            held = state.held if packed is None else len(packed)
            kept = SnapshotFile(state.stamp, state.revision, packed, held, state.racy)
            files += [(path, kept)]
        ends = {root: snapshot.end for root, snapshot in self._snapshots.items()}
        hidden = {root: snapshot.hidden for root, snapshot in self._snapshots.items()}
        folders = {root: snapshot.folders for root, snapshot in self._snapshots.items()}
        looked = {root: snapshot.looked for root, snapshot in self._snapshots.items()}
        record = SnapshotRecord(
            seq, self._inodes(), folders, hidden, ends, looked, self.unwatched, files=files
        )
        if not self.store.save(record, tuple(self._unsaved - self._states.keys())):
            # It may be gone as a whole: then all of it has to be written again.
            self._unsaved.update(self._states)
            return
        self._saved = view
        self._unsaved.clear()
        for path, file in files:
            if file.packed is not None:
                self._states[path] = self._states[path]._replace(packed=None, held=file.held)

    @property
    def _view(self) -> list[tuple[object, ...]]:
        """The watched and the unwatched parts, by root."""
        return [(one.folders, one.hidden, one.end) for one in self._snapshots.values()]

    def packed(self, state: FileState) -> bytes | None:
        """The bytes of a file in a state, compressed, if they are kept."""
        return packed_bytes(state, self.store)

    def _held(self, root: RootId, name: str) -> bytes | None:
        """The bytes of a file as it is known, if they are kept; none of a link, which is not followed."""
        state = self._states.get(WorkspacePath(root, name))
        if state and state.stamp and state.stamp.is_link:
            return b""
        packed = state and self.packed(state)
        return decompress(packed) if packed is not None else None

    def _inodes(self) -> dict[RootId, int]:
        """Which folders the roots are, as of `place_of`."""
        return {root.path: place_of(root.path) for root in self._guard.roots}

    # -- all of them ----------------------------------------------------------------------

    def mark(self) -> None:
        """Have changes from now on left by one `begin` anew, to be found as differences.

        From any thread, within milliseconds; several marks wait for as many of these.
        """
        for snapshot in self._snapshots.values():
            snapshot.watcher.mark()
        self.marks.append(moment())

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
        since = self.marks.popleft() if anew and self.marks else None
        looks = [(root, *self._look(root, cancelled, keep=not anew)) for root in self._guard.roots]
        # A mark that is made while they are looked at counts as well.
        self._since = self.marks[0] if since is None and self.marks else since
        if any(seen.scan is not None and seen.scan.cancelled for _, seen, _ in looks):
            return None
        unread: list[tuple[WorkspacePath, Stamp]] = []
        for root, seen, suspects in looks:
            for name, stamp in suspects.stamps.items():
                path = WorkspacePath(root.path, name)
                if self._is_late(path, stamp, seen):
                    self._leave(path, stamp, seen)
                elif stamp is None:
                    self.drop(path)
                else:
                    self.put(path, FileState(stamp))
                    unread.append((path, stamp))
        late = self._since if self.started else None
        differs = [] if late is None else [*self.folder_differences(CallRange(late))]
        for name, snapshot in self._snapshots.items():
            told = {folder: was for (of, folder), was, _, _ in differs if of == name}
            known = {**snapshot.there, **told}
            snapshot.folders = {x: state for x, state in known.items() if state is not None}
        self._count_unwatched()
        self.started = True
        unread.reverse()  # They are taken from the end.
        return unread

    def differences(
        self, span: CallRange, *, ignored: bool
    ) -> Iterator[tuple[WorkspacePath, Stamp | None]]:
        """Files that may have changed, with their stamps; None for one that is gone.

        Args:
            span: Only those that changed then.
            ignored: Whether those count that are ignored, and known by their stamps alone.
        """
        since, until, _, claims, made = *span, CallRange(*span[:3])
        for some in (self.newly, self.ends, self.others, self._former, self._moves):
            some.clear()
        for root in self._guard.roots:
            looked = (snapshot := self._snapshots[root.path]).looked
            _, suspects = self._look(root, lambda: False, keep=True, hidden=True)
            known, found = snapshot.stamps, suspects.stamps.items()
            # Another name of the same file that stays is none that it got.
            there = {one.inode: (x, one) for x, one in found if one and one != known.get(x)}
            given = suspects.stamps, self.folders[root.path], snapshot.there, looked
            self._moves[root.path] = moves = EntryMoves(root, known, *given)
            arrivals, at = moves.arrivals, partial(WorkspacePath, root.path)
            self.ends |= {at(x): at(y) for x, y in moves.ends.items()}
            self.others |= {at(y): at(x) for x, y in arrivals.items()}
            self.others |= {at(x): at(y) for x, y in arrivals.items()}
            self._former |= {(root.path, known[x]): at(x) for x, y in found if known.get(x, y) != y}
            later, before, left, moved = set[str](), set[str](), set[str](), dict[str, Stamp]()
            for name, stamp in suspects.stamps.items():
                old = known.get(name)
                other = old is not None and (stamp is None or stamp.inode != old.inode)
                again = there.get(old.inode) if old and other else None
                by_folder = again is not None and again[1] == old
                # One that is there by another name, which it got before, went before.
                path, names = at(name), (name, *moves.sources(name)[-1:], *(again or ())[:1])
                mine = any(map(claims, map(at, names)))
                if other and stamp and ignored and snapshot.is_from_elsewhere(name, stamp, looked):
                    self.others[path] = path
                went = again and since and not moves.later(again[0], since, sure=mine)
                if stamp is None:
                    (before if went and by_folder else left).update(folders_above(name))
                gone = went if stamp is None else not old and made_before(self._guard, path, made)
                later_than = (by_folder and stamp is None) or moves.later(name, since, sure=mine)
                if not gone and (not since or later_than):
                    later.add(name)
                    moved |= {name: old} if old and other and not went else {}
            # Who has not taken it from where it was has not made it, whatever they did to it since: it may be the only copy.
            while apart := {x for x, y in arrivals.items() if x in later and y not in later}:
                later -= apart
            from_there = {old for name, old in moved.items() if name in later}
            later |= {name for name, stamp in suspects.stamps.items() if stamp in from_there}
            self._went[root.path] = (before - left) | (suspects.stamps.keys() - later)
            hidden = {y.inode for y in self._ignored.values()} if ignored else set()
            for name, stamp in suspects.stamps.items():
                path, goes = at(name), name in snapshot.hidden and stamp and stamp.inode in hidden
                if name in suspects.newly and stamp and (path in self._ignored or not goes):
                    was, new = self.get(path), FileState(stamp)
                    was = new if self.passes(path, was, new) else was or new
                    if self._ignored.pop(path, None) is None and name in suspects.came:
                        was = FileState(stamp._replace(inode=-1))
                        later |= {name} if moves.later(name, since, sure=claims(path)) else set()
                    self.put(path, was)
                    if was.stamp == stamp:
                        self.newly.append((path, stamp))
                        continue
                if name in later and not (until and moves.later(name, until, sure=claims(path))):
                    yield path, stamp
        came = {x: y.hidden - (y.passed or y.hidden) for x, y in self._snapshots.items()}
        yield from self._ignored.differences(came, span) if ignored else ()

    def _look(
        self, root: Root, cancelled: Callable[[], bool], *, keep: bool, hidden: bool = False
    ) -> tuple[RootEvents, RacyFiles]:
        """The touched entries of a root, and those that may differ; none if the look was cancelled."""
        root.place(".")  # Of one that is not there, nothing is told from what was removed.
        end = (snapshot := self._snapshots[root.path]).end
        seen = snapshot.check(cancelled, keep=keep)
        if seen.scan is not None and seen.scan.cancelled:
            return seen, RacyFiles({})
        suspects = snapshot.compare(seen, held=partial(self._held, root.path) if hidden else None)
        if snapshot.end != end:
            self._count_unwatched()
        if seen.complete and suspects.unexpected:
            snapshot.watcher.distrust()
        return seen, suspects

    def count_beyond(self) -> int:
        """How many files are there now beyond the most that are known."""
        roots, most = self._guard.roots, self.limits.files
        return sum(files_behind(one, nested_roots(one, self._guard), most=most) for one in roots)

    def _count_unwatched(self) -> None:
        ends = ((root, self._snapshots[root.path].end) for root in self._guard.roots)
        some = ((root, nested_roots(root, self._guard), end) for root, end in ends if end)
        self.unwatched = sum(files_behind(root, skip, after=end) for root, skip, end in some)

    def _is_late(self, path: WorkspacePath, stamp: Stamp | None, seen: RootEvents) -> bool:
        """Whether a file has become different after the last mark."""
        if self._since is None:
            return False
        if seen.late is not None and path.path in seen.names:
            return path.path in seen.late
        return is_later(self._guard.root_of(path.root), path.path, stamp, self._since)

    def _leave(self, path: WorkspacePath, stamp: Stamp | None, seen: RootEvents) -> None:
        """Have a file found as different, of which it may not be known what it was before."""
        made = self.started and seen.late is not None and path.path in seen.late
        changed_before = path.path in (seen.early or ())
        if changed_before or (path not in self._states and not made):
            self.put(path, FileState(Stamp(0, 0, 0, 0, stamp.mode if stamp else 0o100600)))
        self.doubt(path)

    # -- before a call --------------------------------------------------------------------

    def attend(self, call: Hashable, may: CallFiles, under_way: Collection[Hashable]) -> list[str]:
        """Know what a call may change as it is before it, whatever ignore rules and limits say.

        Args:
            call: The call, by any name.
            may: What it may change.
            under_way: All calls that are; what others named is left to ignore rules again.

        Returns:
            The files, as they are shown, that could not be kept, with their sizes.
        """
        for ended in [one for one in self._attended if one not in under_way]:
            for path in self._attended.pop(ended).added:
                if not self._snapshots[path.root].listed(path.path):
                    self.drop(path)
        until, left = time.monotonic() + _LONGEST_READ, self.limits.call
        given = self._snapshots, self._guard
        found, unkept = named_below(*given, may.folders, self.limits.file, may.files)
        # Git writes over what it ignores where another commit has it, and removes what only searches leave out.
        named = may.files | found
        tops = [(root, ".") for root in self._snapshots] if may.sweeping else ()
        swept, beyond = named_below(*given, tops, self.limits.file)
        added: set[WorkspacePath] = set()
        if len(under_way) < 2:
            self._ignored.clear()
        for path in (*sorted(named), *sorted(swept - named)):
            self._ignored.pop(path, None)
            known = self._states.get(path)
            stamp = self.present(path) if known is None or known.stamp is None else known.stamp
            if stamp is None or (known is not None and known.revision is not None):
                continue
            if known is None or known.stamp is None:
                self.put(path, FileState(stamp))
                added |= {path} if known is None else set()
            if not self._guard.keeps(path):
                continue
            if stamp.size <= min(left, self.limits.changed) and time.monotonic() < until:
                left -= stamp.size
                if state := self.read(path, stamp, limit=self.limits.changed):
                    self.put(path, state, large=True)
            # What lies in a folder that goes, and what Git writes over, is not overwritten in place.
            when = path in (may.files if stamp.size <= LARGEST else may.written), until
            limit = keep_copy(self._guard, path, self._states[path], self._copies, *when)
            if limit is not None and path not in self._told:
                unkept.append(self.shown(path) + limit)
                if path in swept:
                    self._told.add(path)
        for root, snapshot in self._snapshots.items() if may.open_ended else ():
            snapshot.passed = snapshot.hidden
            snapshot.made, snapshot.lent = self._ignored.take(root, snapshot.hidden, self._states)
        names = {*named, *swept, *(WorkspacePath(*one) for one in may.folders)}
        # Of a link to a folder both are named; what lies in the folder was there before.
        free = free_among(self._guard, may.files, self._states)
        whole = {x: frozenset() if beyond else self._snapshots[x].hidden for x, _ in tops}
        self._attended[call] = CallNames(names, free, added - may.files, whole)
        for root, snapshot in self._snapshots.items():
            some = self._attended.values()
            walked = [one.swept[root] for one in some if root in one.swept]
            snapshot.attend(
                {x.path for one in some for x in one.names if x.root == root},
                {x.path for one in some for x in one.free if x.root == root},
                frozenset[str]().union(*walked) if walked else None,
            )
        return unkept

    # -- one of them ----------------------------------------------------------------------

    def present(self, path: WorkspacePath) -> Stamp | None:
        """The stamp of a file now."""
        return stamp_at(self._guard.root_of(path.root), path.path)

    def read(self, path: WorkspacePath, stamp: Stamp, *, limit: int = -1) -> FileState | None:
        """As of `read_state`, by default as much as of one that has changed; of an ignored file, nothing is read."""
        if path in self._ignored:
            return FileState(stamp)
        if limit < 0:  # What was kept for a call can be written back.
            kept = self._attended and self._copies.is_kept(path, stamp)
            limit = LARGEST if kept else self.limits.changed
        if old := self._former.get((path.root, stamp)):
            known = renamed_state(self._guard, path, stamp, self._states.get(old), self.store)
            if known is not None:
                return known
        secret = self.store is not None and self._guard.net
        return read_state(self._guard, path, stamp, limit=limit, secret=secret)

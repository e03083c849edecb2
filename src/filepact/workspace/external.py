"""Changes that were not made through the workspace: detected and put into the journal, to be undone.

A program with a shell needs no tool of ours.  So a snapshot is taken before it begins, and compared
afterwards: what differs then, and is not in the journal, was written by somebody else.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Final, Literal

from filepact.compression import compress, decompress
from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, OVER, UNSEEN, Revision, WorkspacePath
from filepact.domain.operation import BY_SEVERAL, PAST_THE_DOORS, SEEN, UNASKED, WAYS
from filepact.domain.policy import AccessRequest
from filepact.domain.protected import is_bookkeeping, steers_git
from filepact.errors import FilepactError
from filepact.fs.inotify import wait_for
from filepact.values import dataclass, field, replace
from filepact.workspace.file_snapshot import some_names, unwatched_said
from filepact.workspace.file_states import (
    ALWAYS,
    CallRange,
    FileState,
    KnownContents,
    KnownFileLimits,
    SnapshotStatus,
    both_ends,
    by_any_name,
    either_end,
    repositories,
    stamps_of,
    unread,
)
from filepact.workspace.folder_steps import folders_alone, made_folders, turning_above, with_folders
from filepact.workspace.journal import new_operation
from filepact.workspace.kept_files import KnownFiles
from filepact.workspace.moves import as_moved, carry, of_repository, renamed, with_repositories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

    from filepact.domain.document import RootId
    from filepact.domain.operation import ChangeId, Operation, Session
    from filepact.domain.policy import Rule
    from filepact.fs.locks import FileLocks
    from filepact.fs.watch import Stamp
    from filepact.workspace.file_snapshot import CallFiles
    from filepact.workspace.file_states import SnapshotStore
    from filepact.workspace.folder_steps import FolderChange
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore

__all__ = ["ChangeList", "ExternalChanges", "KnownFileLimits"]

_SAVED_TOGETHER: Final = 256  # files that are read, with a store


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The changes that a look has found.

    Attributes:
        operation: What can be taken back, as it was put into the journal.
        inner: What steers Git, and is other in a repository that it moved: by the names before, to go back after it.
        lost: What cannot be: also in the journal, without contents.
        unkept: The files of the latter, as they are shown.
        missed: What was written before a change of ours, which has covered it by now.
        touched: The files that may have been written, whatever they hold now.
        unasked: The files that rules let nobody change without a person's word, or at all, each with the rule.
    """

    operation: Operation | None = None
    lost: Operation | None = None
    unkept: tuple[str, ...] = ()
    missed: tuple[Operation, ...] = ()
    inner: Operation | None = None
    touched: Collection[WorkspacePath] = field(default=frozenset(), compare=False)
    unasked: Mapping[WorkspacePath, Rule] = field(default_factory=dict)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All of them, in the order of the journal."""
        return (*self.missed, *filter(None, (self.lost, self.inner, self.operation)))


@dataclass(slots=True)
class _Seen:
    """The states of suspect files, and how they differ from the known ones."""

    states: dict[WorkspacePath, FileState | None] = field(default_factory=dict)
    changes: list[FileChange] = field(default_factory=list)
    lost: list[FileChange] = field(default_factory=list)
    contents: KnownContents = field(default_factory=KnownContents)
    was_free: Callable[[WorkspacePath], bool] = lambda _path: True
    wanted: Callable[[WorkspacePath], bool] = lambda _path: True
    folders: Mapping[RootId, Mapping[str, Revision]] = field(default_factory=dict)
    alone: list[FolderChange] = field(default_factory=list)
    by_stamp: dict[tuple[int, ...], Revision] = field(default_factory=dict)
    judged: bool = False
    span: CallRange = ALWAYS
    touched: set[WorkspacePath] = field(default_factory=set)
    moved: dict[WorkspacePath, WorkspacePath] = field(default_factory=dict)
    unasked: dict[WorkspacePath, Rule] = field(default_factory=dict)


class ExternalChanges:
    """Detects changes that others make to files; for all threads.

    What ignore files name is left out, and so are repositories, but for what steers Git.  What agents may
    not read is neither read nor kept, but for these settings: that it changed is said, and no more.

    Args:
        guard: The roots and the rules.
        store: The journal.
        locks: Locks of this machine, so that two processes do not report the same change.
        limits: How much is kept.
    """

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        locks: FileLocks,
        limits: KnownFileLimits | None = None,
    ) -> None:
        self._guard = guard
        self._store = store
        self._locks = locks
        self._roots = frozenset(root.path for root in guard.roots)
        self._lock = threading.RLock()
        self._files = KnownFiles(guard, limits or KnownFileLimits())
        self._unread: list[tuple[WorkspacePath, Stamp]] = []
        self._in_hand: list[WorkspacePath] = []
        self._has_read = threading.Condition(self._lock)
        self._seq = 0
        self._applied: dict[ChangeId, int] = {}
        self._missed: list[tuple[FileState, FileChange]] = []

    def close(self) -> None:
        """Stop watching the roots."""
        with self._lock:
            self._files.save(self._seq)
            self._files.close()

    # -- what is known --------------------------------------------------------------------

    def keep(self, snapshots: SnapshotStore, limits: KnownFileLimits | None = None) -> None:
        """Keep the snapshot for the next process, which finds what happened in between.

        Args:
            snapshots: Where it is kept.
            limits: How much of it; None for as much as in memory.
        """
        self._files = KnownFiles(self._guard, limits or self._files.limits, snapshots)

    @property
    def unwatched(self) -> int:
        """How many files there are that are not looked at, when they were last counted."""
        return self._files.unwatched

    def count_beyond(self) -> int:
        """How many files are there now beyond the most that are looked at."""
        return self._files.count_beyond()

    @property
    def is_watched(self) -> bool:
        """Whether the system tells of every change; else only a look finds them."""
        return self._files.descriptors is not None

    def wait(self, stop: int, seconds: float | None) -> Literal["touched", "quiet", "stopped"]:
        """Wait until somebody may have changed something.

        Args:
            stop: A descriptor that can be read when it is time to end.
            seconds: How long; None for as long as it takes.
        """
        found = wait_for((stop, *(self._files.descriptors or ())), seconds)
        if stop in found:
            return "stopped"
        return "touched" if found and self._files.collect() else "quiet"

    @property
    def has_read(self) -> bool:
        """Whether the contents of all known files were read that are to be."""
        return not self._unread

    def was_touched(self) -> bool:
        """Whether somebody may have changed something since this was last asked: always where only a scan tells."""
        watched = self._files.descriptors
        return watched is None or (bool(wait_for(watched, 0.0)) and self._files.collect())

    def mark(self) -> None:
        """Mark that an agent begins: what is changed from now on is not the person's.

        From any thread, and without waiting for one that looks; it takes milliseconds.
        """
        self._files.mark()

    def snapshot(
        self, *, contents: bool = True, cancelled: Callable[[], bool] = lambda: False
    ) -> SnapshotStatus:
        """Take a snapshot of all files, unless there is one, of this process or a stored one.

        What has changed since a stored one is found by the next look.
        Their stamps are taken first and their contents after that, so that a look in another
        thread may come in between: what changed before it was read is then seen, and not kept.
        So is what is changed after a mark, if it was made before the stamps were taken.

        Args:
            contents: Whether they are read, too, and not only by the next `read_contents`.
            cancelled: Asked for every folder and file; true ends it with what is known.

        Raises:
            PathBlockedError: A root is no longer there.
        """
        with self._lock:
            if not self._files.started:
                stored = self._files.restore()
                if stored is None:
                    self._begin(cancelled, anew=False)
                else:
                    self._seq, self._unread = stored
                    self._catch_up()  # What was done meanwhile came before what is seen now.
        if contents:
            self.read_contents(cancelled=cancelled)
        with self._lock:
            some, complete = self._files, self._files.started and self.has_read
            files, kept = len([*some]), sum(state.size > 0 for _, state in some)
            return SnapshotStatus(files, kept, files - kept, some.held, some.unwatched, complete)

    def resnapshot(self, *, contents: bool = True) -> None:
        """Take the snapshot anew: what has changed since was changed by a person, and by no agent.

        Where marks were made, as they were at the oldest; the next time counts the next.  The argument and errors
        are those of `snapshot`.
        """
        with self._lock:
            self._begin(lambda: False, anew=True)
        if contents:
            self.read_contents()

    def _begin(self, cancelled: Callable[[], bool], *, anew: bool) -> None:
        self._catch_up()
        self._missed.clear()  # whoever begins anew takes all until now for a person's
        found = self._files.begin(cancelled, anew=anew)
        if found is not None:
            self._unread += found
            self._files.save(self._seq)

    def read_contents(self, *, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Read the contents of a snapshot, file by file, so that nobody waits for long.

        Args:
            cancelled: Asked for every file.

        Returns:
            Whether nothing is left to be read.
        """
        for number in count():
            with self._lock:
                if not self._unread or number % _SAVED_TOGETHER == 0:
                    self._files.save(self._seq)
                if not self._unread:
                    return True
                if cancelled():
                    return False
                path, stamp = self._unread.pop()
                self._in_hand.append(path)
            state = None
            try:
                state = self._files.read(path, stamp, limit=self._files.limits.file)
            finally:
                with self._lock:
                    now = self._files.get(path)
                    if state and now and now.stamp == state.stamp and not now.size:
                        self._files.put(path, state)
                    self._in_hand.remove(path)
                    self._has_read.notify_all()
        return True

    def read_first(self, paths: Collection[WorkspacePath]) -> None:
        """Read the contents of some files before those of the others, or wait for whoever has them in hand."""
        with self._lock:
            self._unread.sort(key=lambda one: one[0] in paths)
            ahead = sum(path in paths for path, _ in self._unread)
        self.read_contents(cancelled=chain(repeat(False, ahead), repeat(True)).__next__)
        with self._has_read:
            self._has_read.wait_for(lambda: not any(one in paths for one in self._in_hand))

    def attend(self, call: Hashable, may: CallFiles, under_way: Collection[Hashable]) -> list[str]:
        """Keep what a call may change, as `KnownFiles.attend` has it; call it after a look."""
        with self._lock:
            unkept = self._files.attend(call, may, under_way)
            self._files.save(self._seq)
            return unkept

    def let_go(self, under_way: Collection[Hashable]) -> None:
        """Let go of what is kept for calls that are over; arguments as of `attend`."""
        with self._lock:
            self._files.let_go(under_way)

    def known(self, path: WorkspacePath) -> tuple[Stamp, Revision | None, bytes | None] | None:
        """A file as the snapshot has it: its stamp, its state if it was read, its bytes if kept."""
        with self._lock:
            state = self._files.get(path)
        if state is None or state.stamp is None:
            return None
        return state.stamp, state.revision, state.packed and decompress(state.packed)

    def known_folder(self, path: WorkspacePath) -> Revision | None:
        return self._files.folders.get(path.root, {}).get(path.path)

    # -- what is different ----------------------------------------------------------------

    def detect(
        self,
        session: Session,
        *,
        tool: str = PAST_THE_DOORS,
        wanted: Callable[[WorkspacePath], bool] = lambda _path: True,
        span: CallRange = ALWAYS,
        approved: bool = False,
    ) -> ChangeList:
        """Put into the journal what others have changed since this was last called.

        Args:
            session: Whose turn it was.
            tool: What the journal calls it; the log has its own word for the usual one.
            wanted: Whether a file is looked at, others later; of what was moved, either name will do if it is no agent's.
            span: When; others are left as well.
            approved: Whether a person was asked about what was done.

        Raises:
            PathBlockedError: A root is no longer there.
            TimedOutError: Another process looks at the same files for too long.
        """
        with self._lock, self._locks.hold(self._keys):
            if not self._files.started:
                return ChangeList()
            some = self._files.differences(span, ignored=bool(session.agent))
            if session.agent and tool != BY_SEVERAL:
                wanted = both_ends(wanted, self._files.others)
            else:
                wanted = either_end(wanted, self._files.ends)
            differing = by_any_name(some, wanted, self._files.get)
            folders = self._files.folder_differences(span, made=bool(session.agent))
            alone = (one for one in folders if wanted(one.path))
            found = self._find(session, tool, differing, alone, wanted, span, approved=approved)
            self._unread += self._files.newly
            self._files.save(self._seq)
            return found

    def detect_in(self, path: WorkspacePath, session: Session) -> ChangeList:
        """Put into the journal what others have changed in one known file, if no other thread looks or learns."""
        if not self._lock.acquire(blocking=False):
            return ChangeList()
        try:
            if self._files.marks or self._files.get(path) is None:
                return ChangeList()
            self._files.others.clear()  # They are of the last look at all.
            with self._locks.hold(self._keys):
                return self._find(session, PAST_THE_DOORS, [(path, self._files.present(path))])
        finally:
            self._lock.release()

    @property
    def _keys(self) -> set[str]:
        return {f"outside {root.path}" for root in self._guard.roots}

    def _find(
        self,
        session: Session,
        tool: str,
        differing: Iterable[tuple[WorkspacePath, Stamp | None]],
        alone: Iterable[FolderChange] = (),
        wanted: Callable[[WorkspacePath], bool] = lambda _path: True,
        span: CallRange = ALWAYS,
        *,
        approved: bool = False,
    ) -> ChangeList:
        """Put differences of some files and folders into the journal, and into the snapshot."""
        judged = not approved and (session.actor.kind == "agent" or tool == PAST_THE_DOORS)
        seen = _Seen(was_free=self._files.was_free(span), wanted=wanted, judged=judged, span=span)
        for path, stamp in differing:
            state = None
            if stamp is not None:
                state = self._files.read(path, stamp)
                if state is None:
                    continue  # It is being written to: the next look will find it still.
                if seen.contents.size > self._files.limits.memory:
                    state = state._replace(packed=None)
                if state.packed and state.revision and state.stamp:
                    seen.contents.add(state.revision.content, state.packed)
                    seen.by_stamp[state.stamp[:3]] = state.revision
            seen.states[path] = state
        # The journal is asked after the files were read, and the files' stamps after that:
        # so whatever comes through a door in between is known for what it is.
        busy, seen.folders = self._catch_up(), self._files.folders
        seen.alone = [] if busy else [*alone]  # Those of what is being done are told of later.
        present = stamps_of(self._guard, seen.states)
        for path, state in list(seen.states.items()):
            now, stamp = present[path], state and state.stamp
            under_way = path in busy or turning_above(path, busy) is not None
            if under_way or not (stamp.is_of_same(now) if stamp else now is None):
                del seen.states[path]
            else:
                self._compare(path, state, seen, session.agent)
        lost, came = {one.path for one in seen.lost}, self._files.others
        for one in [x for x in seen.changes if x.after and came.get(x.path) in {*lost, x.path}]:
            # It may be the only copy of what another file held; what it has replaced comes back.
            seen.changes = [x for x in seen.changes if x is not one or x.before]
            after = unread(seen.states[one.path])
            seen.lost.append(replace(one, before=OVER if one.before else UNSEEN, after=after))
        missed = tuple(self._adopt_missed(session, tool, seen))
        looked = replace(self._adopt(session, tool, seen), missed=missed, touched=seen.touched)
        self._files.note_folders(repositories(self._guard, () if session.agent else seen.touched))
        self._files.learn(seen.states)
        return looked

    def _compare(self, path: WorkspacePath, now: FileState | None, seen: _Seen, agent: str) -> None:
        """Record how a file has changed, if it has."""
        old = self._files.before(path, now)
        seen.touched |= {path} if (old and old.stamp) != (now and now.stamp) else set()
        if (old or now) is None or self._files.passes(path, old, now):
            return
        if old is not None and now is not None:
            # What only the journal tells of, and may not be read, is what the journal says.
            same = old.stamp is None or old.stamp.is_of_same(now.stamp)
            if same and None in (old.revision, now.revision):
                return
        before = old and (old.revision or self._renamed(old, seen))
        after = None if now is None else now.revision
        if before == after and after is not None:
            return
        read = (old is None) == (before is None) and (now is None) == (after is None)
        returns = read and self._may_return(path, old, before, after, seen)
        if returns and steers_git(path.path):
            held = [None if one is None else seen.contents[one.content] for one in (before, after)]
            about = path, old, now, seen.folders.get(path.root, {})
            counts = of_repository(self._guard, about, seen.states, self._files.get, seen.moved)
            if is_bookkeeping(path.root, path.path, *held):
                seen.changes += [FileChange(path, before, after)] if counts else []
                return
        change = FileChange(path, *((before, after) if returns else (unread(old), unread(now))))
        (seen.changes if returns else seen.lost).append(change)
        if seen.judged:
            kept = seen.contents.__getitem__
            signs = self._guard.signs_of(change, kept, agent=agent) if returns else frozenset()
            decision = self._guard.policy.decide(AccessRequest(*path, change.action, agent, signs))
            if decision.verdict != "allow":
                seen.unasked[path] = decision.rule

    def _renamed(self, old: FileState, seen: _Seen) -> Revision | None:
        """The state of a file that was not read, if the same file is there, by this name or another."""
        if old.stamp is None or old.stamp.is_link:
            return None
        found = seen.by_stamp.get(old.stamp[:3])
        return found and Revision(found.content, old.stamp.permissions, found.attributes)

    def _may_return(
        self,
        path: WorkspacePath,
        old: FileState | None,
        before: Revision | None,
        after: Revision | None,
        seen: _Seen,
    ) -> bool:
        """Whether the bytes before are kept, and a person may have them back."""
        try:
            self._guard.permit(path, "delete" if before is None else "write", back=True)
            if before is not None and not before.is_set_aside:
                packed = None if old is None else self._files.packed(old)
                if packed is not None:
                    seen.contents.add(before.content, packed)
                elif before.content not in seen.contents:
                    data = self._store.content(before.content)
                    seen.contents.add(before.content, compress(data, 1))
        except FilepactError:
            return False
        return not self._guard.net or not any(
            side is not None and seen.contents.is_private(side.content) for side in (before, after)
        )

    # -- the journal ----------------------------------------------------------------------

    def _catch_up(self) -> frozenset[WorkspacePath]:
        """Take over what the journal has as done; returns the files of what is being done."""
        # In this order: what is begun or ends in between is not missed.
        last = self._store.last_seq()
        some = self._store.unfinished()
        open_ = [x for x in some if any(path.root in self._roots for path in x.changes.paths)]
        # What is not finished may stand before what is, and is asked for again.
        settled = min([last, *(one.seq - 1 for one in open_)])
        after = self._seq if self._files.started else settled
        for operation in self._store.operations(after_seq=after, limit=None, newest_first=False):
            if operation.id not in self._applied:
                self._applied[operation.id] = operation.seq
                if operation.state in ("applied", "interrupted"):
                    self._take_in(operation)
        self._seq = settled
        self._applied = {id_: seq for id_, seq in self._applied.items() if seq > settled}
        return frozenset(path for one in open_ for path in one.changes.paths)

    def _take_in(self, operation: Operation) -> None:
        inside = [one for one in operation.changes.changes if one.path.root in self._roots]
        self._files.note_folders(carry(self._files, inside, self._guard))
        for change in filter(None, (one.of_file for one in inside)):
            old = self._files.get(change.path)
            if operation.state == "applied":
                self._compare_with_door(old, change)
            if change.after is None:
                self._files.drop(change.path)
                self._files.doubt(change.path)
            elif old is None or old.revision != change.after:
                # What the system has refused to set is no change of somebody else's.
                after = change.after.bare if change.after.was_read else None
                stamp = None if after else self._files.present(change.path)
                self._files.put(change.path, FileState(stamp, after))

    def _compare_with_door(self, old: FileState | None, change: FileChange) -> None:
        """Note what was written before a change of ours began, and nobody has looked at."""
        before = change.before and change.before.compared
        known = old and old.revision
        # One that is known already may be told of once more, by a snapshot that was stored before it.
        read = before is None or before.was_read
        if old and known and read and known not in (before, change.after):
            self._missed.append((old, FileChange(change.path, known, before)))

    def _adopt_missed(self, session: Session, tool: str, of: _Seen) -> Iterator[Operation]:
        """Put into the journal what later changes of ours have covered, as far as this look is at it."""
        missed = [x for x in self._missed if of.wanted(x[1].path)]
        self._missed = [x for x in self._missed if x not in missed]
        while missed:
            seen = _Seen()
            # Of one file as often as we changed it: an operation holds a file once.
            once = {change.path: (old, change) for old, change in reversed(missed)}
            missed = [one for one in missed if once[one[1].path] != one]
            for path, (old, change) in once.items():
                with suppress(FilepactError):
                    if change.after is not None:
                        data = self._store.content(change.after.content)
                        seen.contents.add(change.after.content, compress(data, 1))
                    if self._may_return(path, old, change.before, change.after, seen):
                        seen.changes.append(change)
            if seen.changes:
                note = "found when the same files had been changed once more"
                yield self._put_down(session, tool, seen.changes, note, seen)

    def _adopt(self, session: Session, tool: str, seen: _Seen) -> ChangeList:
        """Put changes into the journal that are on the disk already."""
        lost = operation = first = None
        inner: Mapping[WorkspacePath, FileChange] = {}
        if seen.changes or seen.alone:
            known = self._guard, seen.changes, seen.folders, seen.was_free
            seen.changes = with_folders(
                *known, lambda path: seen.wanted(path) and not self._files.has_gone(path)
            )
            found = self._guard, seen.changes, seen.alone
            whole, kept, along = folders_alone(*found, renamed(*found))
            given = seen.moved, seen.states, self._files.get, seen.contents
            seen.changes, inner = with_repositories(self._guard, whole, *given)
            kept = [one for one in kept if one.path not in seen.moved]
            seen.lost, seen.unasked = seen.lost + kept, as_moved(seen.unasked, seen.changes, inner)
            self._files.note_folders([*whole, *seen.changes, *kept, *along], seen.span)
            seen.contents.add(FOLDER.content, compress(b"", 1))
        seen.lost.sort(key=lambda one: one.path)
        names = tuple(self._guard.show(*one.path) for one in seen.lost)
        sized = some_names([self._files.shown(one.path) for one in seen.lost])
        asked = some_names([self._guard.show(*path) for path in seen.unasked])
        beyond = f"{unwatched_said(self._files.unwatched)}; " if self._files.unwatched else ""
        lead = f"{UNASKED} {asked}; {beyond}" if asked else beyond
        if seen.lost:
            note = f"{lead}what it held was not kept, or came from elsewhere, so that cannot be taken back: {sized}"
            lost = self._put_down(session, tool, seen.lost, note, seen)
        if inner:
            first = self._put_down(session, tool, [*{*inner.values()}], f"{lead}{SEEN}", seen)
        if seen.changes:
            note = f"{lead}{SEEN}; what came before the last state is not known"
            if names:
                note += f"; changed as well, and not kept: {sized}"
            operation = self._put_down(session, tool, seen.changes, note, seen)
        return ChangeList(operation, lost, names, inner=first, unasked=seen.unasked)

    def _put_down(
        self, session: Session, tool: str, changes: list[FileChange], note: str, seen: _Seen
    ) -> Operation:
        files = sum(one.of_file is not None for one in changes)
        count, what = files or len(changes), "file" if files else "folder"
        said = f"{count:,} {what}{'s' * (count != 1)} changed {WAYS.get(tool) or f'by {tool}'}"
        done = ChangeSet(tuple(sorted(changes, key=lambda change: change.path)))
        made = made_folders(changes, seen.folders, seen.was_free)
        operation = replace(new_operation(session, tool, said, done), directories=made, note=note)
        adopted = self._store.adopt(operation, {} if changes is seen.lost else seen.contents)
        self._applied[adopted.id] = adopted.seq
        return adopted

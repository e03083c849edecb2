"""A file at one moment: its stamp, and its bytes as far as they are kept; how many are, and where."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import groupby
from operator import attrgetter
from posixpath import dirname
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from filepact.compression import compress, decompress, packed_size
from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, UNSEEN, Revision, WorkspacePath, content_id
from filepact.domain.protected import is_agent_log
from filepact.errors import FilepactError, PathBlockedError, ReadFailedError
from filepact.fs.path_form import is_beneath
from filepact.fs.watch import (
    folder_sign,
    gone_among,
    is_later,
    is_odd,
    is_same_file,
    stamp_at,
    stamps_at,
)
from filepact.text.secrets import holds_private_key
from filepact.workspace.file_snapshot import COARSE, files_below, is_free, is_racy, unkept_state

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator

    from filepact.domain.document import Document, RootId, SnapshotRecord
    from filepact.fs.kept_copies import KeptCopies
    from filepact.fs.root import Root
    from filepact.fs.watch import EntryMoves, Stamp
    from filepact.workspace.file_snapshot import FileSnapshot, Folder
    from filepact.workspace.guard import Guard

__all__ = [
    "ALWAYS",
    "CallNames",
    "CallRange",
    "FileState",
    "IgnoredStamps",
    "KnownContents",
    "KnownFileLimits",
    "SnapshotStatus",
    "SnapshotStore",
    "both_ends",
    "by_any_name",
    "claimed_by",
    "either_end",
    "free_among",
    "keep_copy",
    "kept_state",
    "made_before",
    "named_below",
    "packed_bytes",
    "read_state",
    "renamed_state",
    "repositories",
    "stamps_of",
    "turned_in",
    "unread",
    "with_rights",
]

_MOST_STAMPED: Final = 3_000  # ignored files that are known by their stamps alone
_MOST_NAMED: Final = 20_000  # files below the folders that a call may remove
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
        """The size of the bytes, in memory or in the store."""
        return self.held if self.packed is None else len(self.packed)


class KnownFileLimits(NamedTuple):
    """How much is kept.

    Attributes:
        file: Most bytes of a file whose contents are kept before anything has happened to it.
        changed: Most bytes of a file that has changed.
        memory: Most bytes that all contents may take, compressed, in memory or in the store.
        files: Most files of a root that are known.
        call: Most bytes that are read before a call that may change them, of files that are not kept otherwise.
    """

    file: int = 1_048_576
    changed: int = 10_000_000
    memory: int = 128 * 1_048_576
    files: int = 100_000
    call: int = 64 * 1_048_576


class CallRange(NamedTuple):
    """The time in which changes count, in nanoseconds since the epoch.

    Attributes:
        since: Those that came before are left to be found by a later look.
        until: And those that came later; 0 for no end.
        begun: What was made between that and `since` was made before, whatever else has become of it by now.
        claims: Whether those of a name count of which nobody can tell whether they came before.
    """

    since: int = 0
    until: int = 0
    begun: int = 0
    claims: Callable[[WorkspacePath], bool] = lambda _path: True


ALWAYS: Final = CallRange()


def claimed_by(span: CallRange, *names: WorkspacePath) -> CallRange:
    """The time for one entry: it is of who names it by any of some names."""
    sure = any(map(span.claims, names))
    return span._replace(claims=lambda _path: sure)


class CallNames(NamedTuple):
    """The files that a call may change, those that were not there or are known for its sake alone, and folders as of `swept`."""

    names: set[WorkspacePath]
    free: set[WorkspacePath]
    added: set[WorkspacePath]
    swept: dict[RootId, frozenset[str]]


class SnapshotStore(Protocol):
    """Where a snapshot outlasts the process; a failure only means that it does not.

    Attributes:
        folder: On whose disk copies are made of what is too large to be read before a call.
        aside: By which such files are told from those of other roots.
    """

    folder: str
    aside: str

    def load(self) -> SnapshotRecord | None:
        """The snapshot as it was saved last; None for none."""

    def save(self, snapshot: SnapshotRecord, gone: tuple[WorkspacePath, ...]) -> bool:
        """Store the files of a snapshot and forget others, all or nothing; whether it was done."""

    def content(self, name: str) -> bytes | None:
        """The compressed bytes that were stored under a content id."""

    def clear(self) -> None:
        """Forget the snapshot."""

    def close(self) -> None:
        """Let go of the store."""


class SnapshotStatus(NamedTuple):
    """How much a snapshot holds.

    Attributes:
        files: Files and links that are known.
        kept: Those whose contents are kept.
        unkept: Those of which a change is seen, and cannot be taken back.
        bytes_held: What the contents take in memory.
        unwatched: How many files there are that are not looked at, when they were last counted.
        complete: Whether it was not cancelled.
    """

    files: int
    kept: int
    unkept: int
    bytes_held: int
    unwatched: int
    complete: bool


class IgnoredStamps(dict["WorkspacePath", "Stamp"]):
    """Ignored files that are known by their stamps alone while a call is under way that may change any file.

    Args:
        guard: The roots.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def take(
        self, root: RootId, hidden: Iterable[str], besides: Container[WorkspacePath]
    ) -> tuple[dict[str, Revision], dict[str, Revision]]:
        """Know what is ignored as it is now, up to a few thousand files.

        Args:
            root: Where.
            hidden: The files and folders there that searches leave out.
            besides: Files that are known anyway.

        Returns:
            Folders that programs have made for themselves, pipes and the like; and folders of which all is known.
        """
        made, lent, of = dict[str, Revision](), dict[str, Revision](), self._guard.root_of(root)
        for top in sorted(hidden):
            below = files_below(of, top, _MOST_STAMPED - len(self))
            for name, stamp in below.stamps.items():
                path = WorkspacePath(root, name)
                if path not in besides and not is_agent_log(name):
                    self[path] = stamp
            if state := None if below.stamps else unkept_state(of, top, known=below.folders):
                made[top] = state.as_whole(folder_sign(of, top))
            elif state := of.folder_state(top):
                lent |= {top: state, **below.folders}
        return made, lent

    def differences(
        self, came: Mapping[RootId, Iterable[str]], span: CallRange
    ) -> Iterator[tuple[WorkspacePath, Stamp | None]]:
        """The files that differ since a time, with their stamps, as of what has `came` that searches leave out.

        One that is gone and there by a new name comes with that.
        """
        since, until, _, claims = span
        for root in self._guard.roots:
            known = {path.path: one for path, one in self.items() if path.root == root.path}
            stamps = stamps_at(root, known)
            gone = gone_among(root, (name for name, stamp in stamps.items() if stamp is None))
            below = [files_below(root, x, _MOST_STAMPED) for x in came[root.path] if gone]
            there = {one.inode: (x, one) for each in below for x, one in each.stamps.items()}
            for name, stamp in stamps.items():
                if stamp == (was := known[name]) or (stamp is None and name not in gone):
                    continue
                new = None if stamp else there.get(was.inode)
                moved = [new] if new and is_same_file(root, *new, was) else []
                ends = [(WorkspacePath(root.path, x), y) for x, y in [(name, stamp), *moved]]
                # One that is there by another name may have been moved by a person, unless it is named.
                mine = not (moved and since) or any(claims(path) for path, _ in ends)
                after = not since or is_later(root, name, stamp, since)
                if mine and after and not (until and is_later(root, name, stamp, until)):
                    yield from ends


class KnownContents(Mapping[str, bytes]):
    """Contents by id, unpacked one at a time."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._private: dict[str, bool] = {}
        self.size = 0

    def add(self, name: str, packed: bytes) -> None:
        if name not in self._packed:
            self._packed[name] = packed
            self.size += len(packed)

    def __contains__(self, name: object) -> bool:
        return name in self._packed

    def __getitem__(self, name: str) -> bytes:
        return decompress(self._packed[name])

    def is_private(self, name: str) -> bool:
        """Whether one is among these, and holds a private key."""
        if name in self._packed and name not in self._private:
            self._private[name] = holds_private_key(self[name])
        return self._private.get(name, False)

    def size_of(self, name: str) -> int:
        """The bytes of one, which is not unpacked for it."""
        return packed_size(self._packed[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def named_below(
    snapshots: Mapping[RootId, FileSnapshot],
    guard: Guard,
    folders: Collection[Folder],
    large: int,
    files: Collection[WorkspacePath] = (),
) -> tuple[set[WorkspacePath], list[str]]:
    """The files below folders that no scan sees, or that are large.

    Args:
        snapshots: What is known of each root.
        guard: The roots.
        folders: The folders.
        large: Most bytes of a file that is not.
        files: Names of which it is wanted whether pipes and the like are there.

    Returns:
        They; and in words the folders in which there are too many, and what is no file.
    """
    found: set[WorkspacePath] = set()
    hidden = (WorkspacePath(x, y) for x, one in snapshots.items() for y in sorted(one.hidden))
    some = (
        x
        for x in hidden
        if x in files or any(x.root == at and is_beneath(x.path, top) for at, top in folders)
    )
    more = [f"{guard.show(*x)} (no file)" for x in some if is_odd(guard.root_of(x.root), x.path)]
    for root, name in files:
        snapshots[root].know_folders(name, ())
    for root, folder in folders:
        snapshot = snapshots[root]
        prefix = "" if folder == "." else f"{folder}/"
        tops = {name for name in snapshot.hidden if name.startswith(prefix)}
        if prefix and not is_free(snapshot.hidden, snapshot.end, folder):
            tops = {folder}
        for top in sorted(tops):
            below = files_below(guard.root_of(root), top, _MOST_NAMED - len(found))
            found.update(WorkspacePath(root, name) for name in below.stamps)
            snapshot.know_folders(top, below.folders)
            if below.end is not None:
                more.append(f"more than {_MOST_NAMED:,} files below {guard.show(root, top)}")
        found.update(
            WorkspacePath(root, name)
            for name, stamp in snapshot.stamps.items()
            if stamp.size > large and name.startswith(prefix)
        )
    return found, more


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


def packed_bytes(state: FileState, store: SnapshotStore | None) -> bytes | None:
    """The bytes of a file in a state, compressed, if they are kept, in memory or in a store."""
    if state.packed is not None or store is None or state.revision is None:
        return state.packed
    name = state.revision.content
    packed = store.content(name) if state.held else None
    try:
        sound = packed is not None and content_id(decompress(packed)) == name
    except ValueError:
        sound = False
    return packed if sound else None


def renamed_state(
    guard: Guard,
    path: WorkspacePath,
    stamp: Stamp,
    old: FileState | None,
    store: SnapshotStore | None,
) -> FileState | None:
    """The state of a file that was known by another name; None where it has to be read.

    Args:
        guard: Its roots.
        path: The name that it has now.
        stamp: Its stamp.
        old: What was known under the other name.
        store: Where its bytes may be kept.
    """
    if old is None or old.stamp != stamp or old.racy or not guard.keeps(path):
        return None
    data = packed_bytes(old, store)
    return None if data is None else old._replace(packed=data, held=0)


def stamps_of(guard: Guard, paths: Iterable[WorkspacePath]) -> dict[WorkspacePath, Stamp | None]:
    """The stamps of files now."""
    found: dict[WorkspacePath, Stamp | None] = {}
    for root, some in groupby(paths, attrgetter("root")):
        stamps = stamps_at(guard.root_of(root), (one.path for one in some))
        found |= {WorkspacePath(root, name): stamp for name, stamp in stamps.items()}
    return found


def keep_copy(
    guard: Guard,
    path: WorkspacePath,
    state: FileState,
    copies: KeptCopies,
    in_place: bool,
    until: float,
) -> str | None:
    """Copy a file before a call if its bytes are not kept otherwise; arguments as of `KeptCopies.keep`.

    Returns:
        When they are lost, in words; empty for always, None for never.
    """
    stamp = state.stamp
    if stamp is None or not stamp.size or state.size:
        return None
    way = copies.keep(
        path,
        guard.root_of(path.root),
        path.path,
        stamp,
        in_place=in_place,
        racy=is_racy(stamp, time.time_ns()),
        until=until,
    )
    if way == "open" and in_place:
        return " if it is overwritten in place"
    return None if way else ""


def kept_state(
    guard: Guard, path: WorkspacePath, state: FileState, copies: KeptCopies
) -> FileState:
    """A file in a state in which it was kept for a call, with its bytes; the state alone where it was not."""
    stamp = state.stamp
    if stamp and copies.is_aside(stamp):
        return state._replace(revision=stamp.set_aside)
    contents = copies.read(path, stamp) if stamp and guard.keeps(path) else None
    if contents is None:
        return state
    packed = compress(contents.data, _LEVEL)
    return state._replace(revision=contents.revision, packed=packed, held=0)


def made_before(guard: Guard, path: WorkspacePath, span: CallRange) -> bool:
    """Whether a file or folder was made before a time, or may have got its name before, and a name in it since."""
    (since, _, begun, claims), root = span, guard.root_of(path.root)
    born = (root.born(path.path) or 0) if since > begun else 0
    if not 0 < born <= since - COARSE or born > begun or claims(path):
        return begun < born <= since - COARSE
    held = root.glance(path.path)
    return bool(held and held[2] == held[3] > begun)


def turned_in(
    root: Root,
    path: WorkspacePath,
    was: Revision | None,
    now: Revision | None,
    span: CallRange,
    moves: EntryMoves,
) -> bool:
    """Whether a folder has come, gone or got other rights in a time."""
    held = root.glance(path.path) if now is not None else ()
    sure = span.claims(path)
    if held and span.since > span.begun and not sure:
        # It may have got its rights before a name came or went in it last, and is no other one; or come before it got them.
        doubt = held[2] == held[3] if was else moves.may_be_older(path.path, held, span.since)
        if doubt and (root.born(path.path) or 0) <= span.since:
            return False
    # One that is there by another name went when it got that.
    name = (not now and moves.target(was)) or path.path
    later, late = (bool(one) and moves.later(name, one, sure=sure) for one in span[:2])
    return (later or not span.since) and not late


def repositories(guard: Guard, steering: Iterable[WorkspacePath]) -> Iterator[FileChange]:
    """Each `.git` folder in which something that steers Git has changed, as one that has come."""
    ends = [(path, f"/{path.path}/".find("/.git/")) for path in steering]
    for top in {path._replace(path=path.path[: at + 4]) for path, at in ends if at >= 0}:
        if state := guard.root_of(top.root).folder_state(top.path):
            yield FileChange(top, None, state)


def either_end(
    wanted: Callable[[WorkspacePath], bool], ends: Mapping[WorkspacePath, WorkspacePath]
) -> Callable[[WorkspacePath], bool]:
    """Tell whether a file is wanted, by its own name or the other one that it had; those may be filled in meanwhile."""
    return lambda path: wanted(path) or (path in ends and wanted(ends[path]))


def both_ends(
    wanted: Callable[[WorkspacePath], bool], ends: Mapping[WorkspacePath, WorkspacePath]
) -> Callable[[WorkspacePath], bool]:
    """Tell whether a file is wanted, and by its other name as well if it was moved; as of `either_end`."""
    return lambda path: wanted(path) and (path not in ends or wanted(ends[path]))


def by_any_name(
    some: Iterable[tuple[WorkspacePath, Stamp | None]],
    wanted: Callable[[WorkspacePath], bool],
    known: Callable[[WorkspacePath], FileState | None],
) -> Iterator[tuple[WorkspacePath, Stamp | None]]:
    """Of files that differ, those that are wanted, with the other names (hard links) of what was written in its place."""
    some = [*some]
    states = ((path, stamp, known(path)) for path, stamp in some if stamp)
    held = {path: now for path, now, old in states if old and old.stamp and old.stamp[0] == now[0]}
    written = {held.get(path) for path, _ in some if wanted(path)} - {None}
    yield from (one for one in some if wanted(one[0]) or held.get(one[0]) in written)


def free_among(
    guard: Guard, files: Iterable[WorkspacePath], known: Container[WorkspacePath]
) -> set[WorkspacePath]:
    """The paths without an entry, known or there, and the missing folders above them."""
    free: set[WorkspacePath] = set()
    for root, path in files:
        above = path
        while above and not ((root, above) in known or guard.root_of(root).glance(above)):
            free.add(WorkspacePath(root, above))
            above = dirname(above)
    return free


def with_rights(
    guard: Guard, changes: ChangeSet, current: Callable[[WorkspacePath], Document | None]
) -> ChangeSet:
    """The changes, with those of folders of which it is not known how they were made fitted to what is there.

    One that is as every new folder gets its rights.  Any other stays as somebody has made it.
    """
    kept: list[FileChange] = []
    for one in changes.changes:
        if one.before is not FOLDER or one.after is None or not one.after.is_folder:
            kept.append(one)
            continue
        there, root = current(one.path), guard.root_of(one.path.root)
        now = there and there.revision
        if now and now.is_folder and now != one.after and root.makes(one.path.path, now):
            kept.append(FileChange(one.path, now, one.after))
    return ChangeSet(tuple(kept))


def _read_link(guard: Guard, root: Root, path: WorkspacePath, stamp: Stamp) -> FileState | None:
    """A link, which holds the name that it leads to; nothing is looked at there."""
    if not guard.keeps(path):
        return FileState(stamp)
    now = time.time_ns()
    try:
        link = root.read_link(path.path)
    except FilepactError:
        return None
    if stamp_at(root, path.path) != stamp:
        return None
    return FileState(stamp, link.revision, compress(link.data, _LEVEL), racy=is_racy(stamp, now))


def unread(state: FileState | None) -> Revision | None:
    """A file of which only the stamp counts, since its bytes are not kept."""
    if state is None or state.stamp is None:
        return state and Revision.unread("reported", 0o600)
    if state.stamp.inode < 0:
        return Revision(UNSEEN.content, state.stamp.permissions)
    sign = " ".join(map(str, state.stamp))
    # Of what somebody has changed before anybody looked, it is not known.
    size = state.stamp.size if state.stamp.inode else None
    return Revision.unread(sign, state.stamp.permissions, size)

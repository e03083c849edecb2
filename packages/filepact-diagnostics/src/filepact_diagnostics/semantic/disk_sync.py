"""Servers of one root kept in step with the disk: told of what is done, and of what others do."""

from __future__ import annotations

import threading
import time
from collections import deque
from posixpath import basename, dirname, splitext
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.document import WorkspacePath
from filepact.text.gitignore import MACHINE_FOLDERS
from filepact.values import dataclass, replace
from filepact.workspace.file_snapshot import is_racy
from filepact_diagnostics.lsp.documents import DiskChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.document import RootId
    from filepact.workspace.external_files import ExternalFile, ExternalFiles
    from filepact.workspace.observe import RootEvents, Stamp
    from filepact_diagnostics.lsp.pool import ServerPool
    from filepact_diagnostics.semantic.updates import TextChange

__all__ = ["DiskSync"]

_MOST_TEXTS: Final = 500
_MOST_SHOWN: Final = 200
_MOST_LATEST: Final = 2_000
_MOST_RECENT: Final = 1_000
_NEVER_READ: Final = ""
_MOST_IGNORED: Final = 5_000
_MOST_FOLDERS: Final = 500
"""Up to so many ignored files, in so many folders, are looked at for those that servers may have read."""
_LOOKS: Final = 3
_INSTALLED: Final = frozenset({".tox", ".nox", "Pods", "bower_components", "vendor"})
"""Folders that installers fill with packages; of these, as of `MACHINE_FOLDERS`, servers are not told."""
_OVERLOOKED: Final = (
    "{}/ is ignored and has too many files to be watched; what servers read there may be old"
)
_LINKED: Final = "{} is a link; what servers read through it may be old"
_GENERATED: Final = {"node_modules": ".prisma"}
"""Where generators put sources into a folder of packages."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """A file of which the servers know something else.

    Attributes:
        path: The file.
        known: Whether they know of it at all.
        stamp: Its present stamp; None when it is gone.
        passing: Whether it was otherwise for a time: it was there, and is gone again, or was gone,
            and is there again, perhaps under its old stamp.  Servers that looked then are wrong.
    """

    path: WorkspacePath
    known: bool
    stamp: Stamp | None
    passing: bool = False


class DiskSync:
    """Keeps the servers of a root in step with its files; for all threads.

    Servers read the disk themselves when they start: whatever was there when this was begun is known
    to them, and what comes later has to be told.

    Attributes:
        lock: While it is held, the servers are told of nothing by others.

    Args:
        root: The root.
        files: Reads the disk.
        pool: The servers.
        claimed: Whether one of them knows a file, by its absolute path.
    """

    def __init__(
        self, root: RootId, files: ExternalFiles, pool: ServerPool, claimed: Callable[[str], bool]
    ) -> None:
        self.lock = threading.RLock()
        self._looking = threading.RLock()
        self._root = root
        self._files = files
        self._pool = pool
        self._claimed = claimed
        self._snapshot = files.snapshot(root, lambda name: dirname(name) in self._ignored_folders)
        self._snapshot.watcher.besides = self._besides
        self._ignored: dict[str, Stamp] = {}
        self._ignored_folders: set[str] = set()
        self._racy_contents: dict[str, str | None] = {}
        self._recent: deque[tuple[int, int]] = deque(maxlen=_MOST_RECENT)
        self._shown: dict[str, None] = {}
        self._latest: dict[str, tuple[int | None, int]] = {}
        self.started = False
        """Whether servers may have read something of the root."""
        self.turn = 0
        """Rises with each file that the servers are told of, and with each beginning."""
        self.moment = 0
        """Rises with each text that the servers are given for the first time, or a question is."""
        self.overlooked = ""
        """Why sources may have changed that nobody told of, as a sentence; empty where all are looked at."""

    @property
    def complete(self) -> bool:
        """Whether all files are known; not where there are too many."""
        return self._snapshot.end is None

    @property
    def files(self) -> list[tuple[str, Stamp]]:
        """The files that there are, by path beneath the root, as far as they are not ignored."""
        with self.lock:
            stamps = self._snapshot.stamps.items()
            return [one for one in stamps if one[0] not in self._ignored]

    @property
    def ignored(self) -> list[WorkspacePath]:
        """The ignored files of kinds that servers know: generated sources, most often."""
        with self.lock:
            return [WorkspacePath(self._root, name) for name in self._ignored]

    @property
    def linked(self) -> str:
        """Why what servers read through a link may be old: none is bound to look where it hears of a link's name."""
        for name, (kind, _) in self._links().items():
            counts = basename(name) not in _INSTALLED | MACHINE_FOLDERS
            if counts and (kind == "directory" or self._claimed(f"{self._root}/{name}")):
                return _LINKED.format(name)
        return ""

    def _links(self) -> dict[str, tuple[str, str]]:
        """The links beneath the root, and what each leads to, and where."""
        with self.lock:
            names = [name for name, stamp in self._snapshot.stamps.items() if stamp.is_link]
        return {one: self._files.leads_to(WorkspacePath(self._root, one)) for one in names}

    def aliases(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Files beneath the root, and each name that they have through a link to them or to a folder around them."""
        links = [(one, f"{to}/".removeprefix("./")) for one, (_, to) in self._links().items() if to]
        for path in paths if links else ():
            found = (one for one in links if f"{path}/".startswith(one[1]))
            yield from ((path, f"{name}/{path[len(to) :]}".rstrip("/")) for name, to in found)

    def _tell(self, changes: Sequence[DiskChange]) -> None:
        """Tell the servers of changes, and of the same by the names that files have through links."""
        start = f"{self._root.rstrip('/')}/"
        own: dict[str, DiskChange] = {}
        for one in changes:
            if one.old_path:
                own[one.old_path.removeprefix(start)] = DiskChange(one.old_path, "deleted")
            come = replace(one, kind="created", old_path="") if one.kind == "renamed" else one
            own[one.path.removeprefix(start)] = replace(come, same_date=True)
        more = (replace(own[path], path=start + also) for path, also in self.aliases(own))
        self._pool.tell([*changes, *more])

    @property
    def shown(self) -> tuple[str, ...]:
        """Files that servers were asked about, absolute, the last ones at the end."""
        with self.lock:
            return tuple(self._shown)

    def witness(self, gone: str) -> list[WorkspacePath]:
        """A file by which servers can show that they have heard of another's end, if there is one.

        Args:
            gone: The other, beneath the root.
        """
        shown = (one[len(self._root.rstrip("/")) + 1 :] for one in reversed(self.shown))
        names = (*shown, *(name for name, _ in self.files))
        fit = (name for name in names if splitext(name)[1] == splitext(gone)[1])
        paths = (WorkspacePath(self._root, name) for name in fit)
        return [path for path in paths if self._files.stamp(path) is not None][:1]

    def knows(self, path: WorkspacePath) -> bool:
        """Whether a server knows a file, which need not exist."""
        return self._claimed(path.absolute)

    def knows_below(self, folder: WorkspacePath) -> bool:
        """Whether a server knows a file in a folder, as it is now."""
        self.catch_up()
        names = (name for name, _ in self.files if name.startswith(f"{folder.path}/"))
        return any(self.knows(WorkspacePath(self._root, name)) for name in names)

    def listed(self, path: WorkspacePath) -> bool:
        """Whether a file was there, and not ignored, at the last scan."""
        return self._snapshot.listed(path.path)

    def begin(self) -> None:
        """Take the disk as it is for known; call it before a server is started."""
        if not self.started:
            with self._looking:
                if not self.started:
                    self.begin_anew()

    def begin_anew(self) -> None:
        """All servers are going to be ended; the next ones read the disk as it is then."""
        with self._looking:
            self._snapshot.watcher.close()
            seen = self._snapshot.check(lambda: False)
            with self.lock:
                self.turn += 1
                self._snapshot.begin(seen)
                self._racy_contents.clear()
                self._look_aside(seen)
                now = time.time_ns()
                for name, stamp in self._ignored.items():
                    racy = not seen.watched and is_racy(stamp, now)
                    self._snapshot.put(name, stamp, racy=racy)
                self.started = True

    def close(self) -> None:
        """Look at the disk no more."""
        with self._looking:
            self._snapshot.watcher.close()

    # -- telling --------------------------------------------------------------------------

    def tell(self, steps: Iterable[TextChange]) -> int:
        """Tell the servers of what was done, with what the files hold by now.

        Returns:
            How many files they were told of.
        """
        with self.lock:
            changes: list[DiskChange] = []
            for step in steps:
                old = "" if step.old is None else step.old.absolute
                if step.old is not None:
                    self._note(step.old, None)
                sample = self._files.take(step.path)
                same = self._note(step.path, sample)
                if sample is None:
                    # Gone again; what it was renamed from has gone as well.
                    changes += [DiskChange(one, "deleted") for one in (old, step.absolute) if one]
                elif step.kind == "deleted":
                    changes.append(
                        DiskChange(step.absolute, "created", sample.text, same_date=same)
                    )
                else:
                    changes.append(DiskChange(step.absolute, step.kind, sample.text, old, same))
            self._tell(changes)
            return len(changes)

    def catch_up(self, cancelled: Callable[[], bool] = lambda: False) -> tuple[DiskChange, ...]:
        """Tell the servers of what others have written since they were last told.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        if not self.started:
            self.begin()
            return ()
        # One after the other: what one has seen, and not told yet, the next would not see.
        with self._looking:
            seen = self._snapshot.check(cancelled)
            if seen.scan is not None and seen.scan.cancelled:
                return ()
            with self.lock:
                differences = self._differences(seen)
                few = len(differences) <= _MOST_TEXTS
                changes = tuple(
                    change for one in differences for change in self._changes(one, with_text=few)
                )
                if changes:
                    self._tell(changes)
            return changes

    def tell_anew(self, paths: Iterable[WorkspacePath]) -> int:
        """Tell the servers of files once more, whatever they know of them."""
        with self.lock:
            changes: list[DiskChange] = []
            for path in paths:
                sample = self._files.take(path)
                kind: Literal["changed", "created"] = (
                    "changed" if path.path in self._snapshot.stamps else "created"
                )
                self._note(path, sample, again=True)
                changes.append(
                    DiskChange(path.absolute, "deleted")
                    if sample is None
                    else DiskChange(path.absolute, kind, sample.text, same_date=True)
                )
            self._tell(changes)
            return len(changes)

    def _differences(self, seen: RootEvents) -> list[_Difference]:
        """The differences between disk and servers; the caller holds the lock.

        Each file is looked at once more: others may have told of it since.
        """
        snapshot, scan = self._snapshot, seen.scan
        # Where every change is noticed, a racy file has changed only if it was noticed.
        suspects = snapshot.compare(seen, racy=False)
        aside = () if scan is None else self._look_aside(seen)
        found: list[_Difference] = []
        for name in dict.fromkeys([*suspects.stamps, *seen.names, *aside]):
            path, was = WorkspacePath(self._root, name), snapshot.stamps.get(name)
            stamp = self._files.stamp(path)
            if stamp is not None and was is None:
                if dirname(name) in self._ignored_folders and self._claimed(path.absolute):
                    self._ignored[name] = stamp
                hides = dirname(name) in self._ignored_folders or (
                    scan is not None and name not in scan.stamps
                )
                if hides and name not in self._ignored:
                    continue  # It is ignored, and none that servers read.
            passing = name in (seen.added if stamp is None else seen.removed)
            if passing or stamp != was or (snapshot.racy(name) and not self._kept(path, stamp)):
                found.append(_Difference(path, was is not None, stamp, passing))
        # What is written to one name of a file (hard link), the others hold as well, and nobody tells of these.
        files = {one.stamp.inode for one in found if one.stamp is not None}
        looked = {one.path.path for one in found}
        for name, was in snapshot.stamps.items():
            if was.inode in files and name not in looked:
                path = WorkspacePath(self._root, name)
                if (stamp := self._files.stamp(path)) != was:
                    found.append(_Difference(path, True, stamp))
        if seen.complete and any(one.path.path in suspects.unexpected for one in found):
            snapshot.watcher.distrust()
        return found

    def _look_aside(self, seen: RootEvents) -> list[str]:
        """Look at the files that a scan has left out, for those of kinds that servers know.

        Returns:
            Those that differ from what is known of them.
        """
        hidden = () if seen.scan is None else seen.scan.hidden
        names = {one: False for one in hidden if basename(one) not in _INSTALLED}
        names |= {
            f"{one}/{_GENERATED[basename(one)]}": True
            for one in names
            if basename(one) in _GENERATED
        }
        stamps, folders = self._left_out(names)
        for _ in range(_LOOKS):
            new = folders - self._ignored_folders
            self._ignored_folders = folders
            if not new:
                break
            self._snapshot.watcher.watch(new)  # What changed before that is seen by another look.
            stamps, folders = self._left_out(names)
        start = f"{self._root.rstrip('/')}/"
        self._ignored = {
            name: stamp for name, stamp in stamps.items() if self._claimed(f"{start}{name}")
        }
        known = self._snapshot.stamps
        return [name for name, stamp in self._ignored.items() if known.get(name) != stamp]

    def _left_out(self, names: Mapping[str, bool]) -> tuple[dict[str, Stamp], set[str]]:
        """The ignored files and the folders around them, as far as there are not too many.

        Args:
            names: The files and folders that a scan left out, and whether those are looked into that
                programs have made for themselves.
        """
        stamps: dict[str, Stamp] = {}
        folders: set[str] = set()
        self.overlooked = ""
        for name in sorted(names):
            below = self._files.below(
                WorkspacePath(self._root, name), _MOST_IGNORED, made=names[name]
            )
            inner = {name, *below.folders} if name not in below.stamps else set()
            count = len(stamps) + len(below.stamps)
            many = count > _MOST_IGNORED or len(folders | inner) > _MOST_FOLDERS
            if many or below.end is not None:
                self.overlooked = self.overlooked or _OVERLOOKED.format(name)
                continue
            stamps |= below.stamps
            if names[name] or basename(name) not in MACHINE_FOLDERS:
                folders |= inner
        return stamps, folders

    def _besides(self) -> set[str]:
        """The folders that are watched though no scan looks into them."""
        return self._ignored_folders | {dirname(name) or "." for name in self._snapshot.stamps}

    def _kept(self, path: WorkspacePath, stamp: Stamp | None) -> bool:
        """Whether a racy file still has the bytes that the servers were told of."""
        content = self._racy_contents.get(path.path, _NEVER_READ)
        sample = None if stamp is None or content == _NEVER_READ else self._files.take(path)
        if sample is None or sample.content != content:
            return False
        racy = is_racy(sample.stamp, time.time_ns())
        self._snapshot.settle(path.path, racy=racy)
        if not racy:
            del self._racy_contents[path.path]
        return True

    def _changes(self, one: _Difference, *, with_text: bool) -> Iterator[DiskChange]:
        """The changes that tell servers of a difference.

        One that looked while the file was not there has to hear that it has come, and one that
        looked while it was there, that it has gone.
        """
        path = one.path.absolute
        if one.stamp is None and not one.known and not self._claimed(path):
            return  # Some program's temporary file.
        sample = None if one.stamp is None else self._files.take(one.path)
        same = self._note(one.path, sample) or one.passing
        if sample is None or one.passing:
            yield DiskChange(path, "deleted")
        if sample is not None:
            wanted = path in self._shown or (with_text and self._claimed(path))
            kind: Literal["changed", "created"] = (
                "changed" if one.known and not one.passing else "created"
            )
            yield DiskChange(path, kind, sample.text if wanted else None, same_date=same)

    def _note(
        self, path: WorkspacePath, sample: ExternalFile | None, *, again: bool = False
    ) -> bool:
        """Keep what the servers are told of a file.

        Args:
            path: The file.
            sample: As it is now; None for no file.
            again: Whether they were told of that before.

        Returns:
            Whether its date is that of the file that they knew.
        """
        name = path.path
        self._keep_latest(path.absolute, None if sample is None else sample.text)
        self.turn += 1
        if not again:
            self._recent.append((self.turn, 0 if sample is None else sample.stamp.changed))
        self._racy_contents.pop(name, None)
        was = self._snapshot.stamps.get(name)
        if sample is None:
            self._snapshot.drop(name)
            return False
        racy = is_racy(sample.stamp, time.time_ns())
        self._snapshot.put(name, sample.stamp, racy=racy)
        if racy:
            self._racy_contents[name] = sample.content
        return was is not None and was.modified == sample.stamp.modified

    # -- asking ---------------------------------------------------------------------------

    def texts(self, paths: Iterable[WorkspacePath]) -> dict[str, str]:
        """The texts of files by absolute path; those that are missing or no text are left out.

        Whoever shows them to servers does so before the lock is given back.
        """
        found: dict[str, str] = {}
        with self.lock:
            for path in paths:
                sample = self._files.take(path)
                text = None if sample is None else sample.text
                self._keep_latest(path.absolute, text)
                if text is not None:
                    found[path.absolute] = text
                    self._shown.pop(path.absolute, None)
                    self._shown[path.absolute] = None
            while len(self._shown) > _MOST_SHOWN:
                del self._shown[next(iter(self._shown))]
        return found

    def is_outdated(self, texts: Mapping[str, str]) -> bool:
        """Whether the servers, or a question, were given the text of a file anew since these were read."""
        return any(
            self._latest.get(path, (None, 0))[0] != hash(text) for path, text in texts.items()
        )

    def given(self, steps: Iterable[TextChange]) -> int | None:
        """The moment of the first text of changes that were done; None if none was given.

        What servers found up to then is without the changes, whoever asked.
        """
        paths = (one.absolute for one in steps if one.before != one.after or one.old is not None)
        with self.lock:
            return min(
                (self._latest[path][1] for path in paths if path in self._latest), default=None
            )

    def moved(self, turn: int, start: int) -> bool:
        """Whether the servers were told after a turn of what had happened before a moment.

        When a file has gone is not known, so that counts as before.

        Args:
            turn: A turn.
            start: The moment, in nanoseconds since the epoch.
        """
        oldest = self._recent[0][0] if self._recent else 0
        forgotten = len(self._recent) == _MOST_RECENT and oldest > turn
        return forgotten or any(at > turn and when < start for at, when in self._recent)

    def _keep_latest(self, path: str, text: str | None) -> None:
        value = None if text is None else hash(text)
        was = self._latest.pop(path, None)
        if was is None or was[0] != value:
            self.moment += 1
            was = (value, self.moment)
        self._latest[path] = was
        while len(self._latest) > _MOST_LATEST:
            del self._latest[next(iter(self._latest))]

"""Observation of the disk: which files of a root have changed, with as little reading as possible.

`RootWatcher` drains the kernel's notices (inotify) at the start of a call, and scans the whole root
where these do not suffice: at first, when folders come or go, when notices were lost, and on file
systems that others write to.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from posixpath import dirname
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.document import FOLDER
from filepact.domain.protected import is_in_git, steers_git
from filepact.errors import FilepactError
from filepact.fs.inotify import FileEvents, InotifyWatcher
from filepact.fs.walk import is_ignored
from filepact.fs.watch import (
    IGNORE_FILES,
    MOST_FILES,
    RootStamps,
    Stamp,
    is_odd,
    is_temporary,
    scan,
    stamp_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from filepact.domain.document import Revision
    from filepact.fs.root import Root

__all__ = ["RootEvents", "RootStamps", "RootWatcher", "Stamp"]

_SCAN_EVERY: Final = 60.0
_TRIES: Final = 3
_NOTHING: Final = FileEvents(frozenset(), frozenset(), frozenset(), folders=False)


class RootEvents(NamedTuple):
    """The result of a check by a `RootWatcher`.

    Attributes:
        names: Files that were touched.  Without a scan, all others are unchanged.
        scan: The stamps of all files, where everything had to be looked at.
        watched: Whether every later change will be among the names of later results.
        complete: Whether every change before has to be among the names.
        removed: Names that were free for a time, whatever is there now.
        added: Names that a file was made under, or moved to, whatever is there now.
        early: The names that were touched before the last mark; None where no mark was made, or it
            is not known.
        late: The names that were touched after it; the same.
        folders: Folders that came since the last scan, as of `RootStamps`; their files are among the names.
        hidden: Files and folders that were touched, or came, and are ignored; only without a scan.
        turned: Folders that were touched themselves, and may have other rights, or be gone.
    """

    names: frozenset[str]
    scan: RootStamps | None = None
    watched: bool = False
    complete: bool = False
    removed: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    early: frozenset[str] | None = None
    late: frozenset[str] | None = None
    folders: Mapping[str, Revision] = MappingProxyType({})
    turned: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()


class RootWatcher:
    """Reports what was touched in a root since the last time; for one thread at a time, but for marks.

    Args:
        root: The root.
        skip: Folders in it that are roots of their own.
        clock: A steady clock, in seconds.
        most: Most files that a scan looks at.
        few: So many unknown files are looked up one by one, if ignored; for more there is a scan.  With
            any, folders that came are looked into without a scan of the others.
        git: Whether what steers Git is watched as well.

    Attributes:
        expected: Folders that are probably there: watched before a scan, they need no second one.
        besides: Gives the folders of known files; those that a scan leaves out are watched as well.
    """

    def __init__(
        self,
        root: Root,
        skip: Collection[str],
        clock: Callable[[], float] = time.monotonic,
        *,
        most: int = MOST_FILES,
        few: int = 0,
        git: bool = False,
    ) -> None:
        self._root = root
        self._skip = skip
        self._clock = clock
        self._most = most
        self._few = few
        self._git = git
        self.expected: Collection[str] = ()
        self.besides: Callable[[], set[str]] = set
        self._beside: set[str] = set()
        self._marking = threading.Lock()
        self._before = _NOTHING
        self._marked: InotifyWatcher | None = None
        self._kept = False
        self._notices: InotifyWatcher | None = None
        self._ignored: set[str] = set()
        self._again = _NOTHING
        self._last = 0.0
        self._trusted = True

    def close(self) -> None:
        """Stop watching; the next check scans."""
        notices, self._notices = self._notices, None
        if notices is not None:
            notices.close()

    @property
    def descriptor(self) -> int | None:
        """The descriptor that becomes readable once an entry is touched; None where scans alone find changes."""
        notices = self._notices
        return None if notices is None else notices.fileno()

    def collect(self) -> bool:
        """Take in what was touched, for the next check.

        Returns:
            Whether anything was that may matter.
        """
        with self._marking:
            if self._notices is None:
                return False
            noticed = self._notices.drain()
            self._before = _joined(self._before, noticed)
        return noticed.folders or any(
            not _is_ours(name) and name not in self._ignored
            for name in noticed.names | noticed.moved
        )

    def distrust(self) -> None:
        """Stop relying on events, since one was missed: from now on every check scans."""
        self._trusted = False
        self.close()

    def mark(self) -> None:
        """Mark this moment: the next check separates the files touched before it from those touched after it.

        From any thread, and without waiting for a scan; not if an earlier mark still waits for that.
        """
        with self._marking:
            if self._marked is None or self._marked is not self._notices:
                self._marked = self._notices
                if self._notices is not None:
                    self._before = _joined(self._before, self._notices.drain())

    def check(
        self, knows: Callable[[str], bool], cancelled: Callable[[], bool], *, keep: bool = False
    ) -> RootEvents:
        """Report the files touched since the last check.

        Args:
            knows: Whether the caller knows of a file, by its path beneath the root; others may be
                ignored ones.
            cancelled: Asked before each folder of a scan.
            keep: Whether a mark is left for the next check, for which all names are late then.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        with self._marking:
            before, self._before = self._before, _NOTHING
            after = None if self._notices is None else self._notices.drain()
            known = self._marked is not None and self._marked is self._notices
            kept, self._kept = known and self._kept, known and keep
            if not self._kept:
                self._marked = None
        if after is None:
            return self._scanned(frozenset(), cancelled)
        noticed, again = _joined(before, after), self._again
        names = frozenset(name for name in noticed.names if not _is_ours(name)) | again.names
        self._again = _NOTHING
        if self._few:
            self._ignored -= noticed.removed  # One that comes again may be tracked by then.
        # Which files of a folder came before a mark, and which after it, only their stamps tell.
        came = self._came(noticed, cancelled) if self._few and not known else None
        anew = noticed.folders and came is None
        found = self._result(names, knows, cancelled, came=came, anew=anew)
        made = (noticed.added | again.added) & names
        early = before.names | (frozenset() if kept else again.names)
        # What was touched while everything was looked at was touched after the mark.
        late = after.names | self._again.names | (again.names if kept else frozenset())
        return found._replace(
            turned=noticed.moved,
            removed=(noticed.removed | again.removed) & names,
            added=made if came is None else made | came.stamps.keys(),
            early=early & names if known else None,
            late=late & found.names if known else None,
        )

    def _result(
        self,
        names: frozenset[str],
        knows: Callable[[str], bool],
        cancelled: Callable[[], bool],
        *,
        came: RootStamps | None,
        anew: bool,
    ) -> RootEvents:
        """Return the touched names, and those in folders that came, or a scan if they are not enough."""
        if anew:
            self.close()
            return self._scanned(names, cancelled)
        if any(name.endswith(IGNORE_FILES) for name in names):
            self._ignored.clear()
            return self._scanned(names, cancelled)
        new = frozenset() if came is None else frozenset(came.stamps)
        unknown = {name for name in names - self._ignored - new if not knows(name)}
        strange = {name for name in unknown if stamp_at(self._root, name) is not None}
        odd = {name for name in unknown - strange if is_odd(self._root, name)}
        if self._git:
            strange = {name for name in strange if not steers_git(name)}
        ignored: set[str] = set()
        if len(strange) <= self._few:
            ignored = {name for name in strange if is_ignored(self._root, name)}
            self._ignored |= ignored
        else:
            seen = self._scanned(names, cancelled)
            # Only what is there, and was not touched meanwhile, is known to be ignored.
            late = self._drain_later()
            unseen = strange - seen.scan.stamps.keys() if seen.scan is not None else set()
            self._ignored |= {
                name for name in unseen - late if stamp_at(self._root, name) is not None
            }
            return seen
        if self._clock() - self._last > _SCAN_EVERY:
            seen = self._scanned(names, cancelled)
            # The scan may have seen these before or after they were touched.
            late = self._drain_later()
            return seen._replace(names=names | late, complete=self._notices is not None)
        folders = {} if came is None else came.folders
        hidden = odd | ignored if came is None else odd | came.hidden | ignored
        names = (names - self._ignored) | new
        return RootEvents(
            names, watched=True, complete=True, folders=folders, hidden=frozenset(hidden)
        )

    def _came(self, noticed: FileEvents, cancelled: Callable[[], bool]) -> RootStamps | None:
        """Look into folders that came, and watch them; None where everything has to be looked at."""
        known = any(not noticed.moved.isdisjoint(some) for some in (self.expected, self._beside))
        if noticed.lost or self._notices is None or known:
            return None
        stamps: dict[str, Stamp] = {}
        folders: dict[str, Revision] = {}
        hidden: set[str] = set()
        for folder in sorted(noticed.moved):
            if self._git and is_in_git(folder):
                return None  # a repository came, or is another one
            # It has gone again, or is none of ours.
            if not self._root.glance(folder) or folder in self._skip:
                continue
            if is_ignored(self._root, folder):
                hidden.add(folder)
                continue
            found = self._looked_into(folder, self._notices, cancelled)
            if found is None:
                return None
            stamps |= found.stamps
            folders |= {folder: self._root.folder_state(folder) or FOLDER, **found.folders}
            hidden |= found.hidden
        self._ignored -= stamps.keys()
        self.expected = frozenset(self.expected) | folders.keys()
        return RootStamps(stamps, folders, (), None, False, frozenset(hidden))

    def _looked_into(
        self, folder: str, notices: InotifyWatcher, cancelled: Callable[[], bool]
    ) -> RootStamps | None:
        """The entries of a new folder; each folder is watched before its last listing."""
        watched = {folder}
        try:
            notices.forget(watched)
            notices.watch(watched)
            for _ in range(_TRIES):
                found = self._scan(cancelled, folder)
                new = found.folders.keys() - watched
                if found.cancelled or found.end is not None:
                    return None
                if not new:
                    return found
                notices.forget(new)
                notices.watch(new)
                watched |= new
        except (FilepactError, OSError):
            return None  # It has gone meanwhile, or there cannot be so many.
        return None  # folders come faster than they can be watched

    def _scanned(self, names: frozenset[str], cancelled: Callable[[], bool]) -> RootEvents:
        """Scan, with every folder watched before it is looked into."""
        if self._notices is None and self._trusted:
            self._notices = InotifyWatcher.open(self._root)
            with suppress(OSError):  # that there cannot be so many is found below
                _ = self._notices and self._notices.watch([".", *self.expected])
        try:
            found = self._scan(cancelled)
        except FilepactError:
            self.close()  # nothing is watched yet
            raise
        for _ in range(_TRIES):
            if self._notices is None or found.cancelled:
                break
            try:
                if not self._notices.watch([".", *found.folders]):
                    break
            except OSError:
                self.distrust()
                break
            found = self._scan(cancelled)
        else:
            self.close()  # folders come faster than they can be watched
        if found.cancelled or found.end is not None:
            self.close()
        self._beside.clear()
        self.watch(self.besides() - found.folders.keys())
        self.expected = found.folders
        # What is not there now may come under other rules.
        self._ignored &= found.hidden
        self._last = self._clock()
        return RootEvents(names, found, watched=self._notices is not None)

    def mind(self, name: str) -> None:
        """Report a file from now on, though it is ignored, or lies where no scan looks."""
        self._ignored.discard(name)
        folder = dirname(name) or "."
        if folder not in self.expected and folder not in self._beside:
            self.watch((folder,))

    def watch(self, folders: Iterable[str]) -> None:
        """Watch folders as well that no scan looks into, and those above, if they are there and notices are to be had."""
        if self._notices is not None:
            for folder in folders:
                above = folder
                while above and above not in self._beside:
                    self._beside.add(above)
                    above = dirname(above)
            try:
                self._notices.watch(one for one in self._beside if self._root.glance(one))
            except OSError:
                self.distrust()

    def _drain_later(self) -> frozenset[str]:
        """Keep what was touched during a scan for the next check; its names."""
        if self._notices is not None:
            with self._marking:
                noticed = self._notices.drain()
                if not self._kept:
                    # A mark that was made meanwhile lies somewhere among these.
                    self._marked = None
            if noticed.folders:
                self.close()
            names = frozenset(name for name in noticed.names if not _is_ours(name))
            self._again = noticed._replace(names=names)
        return self._again.names

    def _scan(self, cancelled: Callable[[], bool], base: str = ".") -> RootStamps:
        skip, most = self._skip, self._most
        return scan(self._root, base, skip=skip, most=most, cancelled=cancelled, git=self._git)


def _joined(one: FileEvents, then: FileEvents) -> FileEvents:
    return FileEvents(
        one.names | then.names,
        one.removed | then.removed,
        one.added | then.added,
        one.folders or then.folders,
        one.moved | then.moved,
        one.lost or then.lost,
    )


def _is_ours(name: str) -> bool:
    return is_temporary(name.rpartition("/")[2])

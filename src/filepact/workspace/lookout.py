"""What happens to the files of a root, with as little looking as the system permits."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.errors import FilepactError
from filepact.fs.notice import Noticed, Notices
from filepact.fs.stamp import is_temporary, scan, stamp_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from filepact.fs.root import Root
    from filepact.fs.stamp import Scan

__all__ = ["Glance", "Lookout"]

_MOST_FILES: Final = 100_000
_EVERYTHING_EVERY: Final = 60.0
_TRIES: Final = 3
_IGNORE_FILES: Final = frozenset({".gitignore", ".ignore"})
_NOTHING: Final = Noticed(frozenset(), frozenset(), frozenset(), folders=False)


class Glance(NamedTuple):
    """What was seen.

    Attributes:
        names: Files that something has happened to; all others are as they were at the last glance,
            where there is no scan.
        scan: All files, where it had to be looked at all of them.
        watched: Whether all that happens from now on will show among the names of later glances.
        sure: Whether all that happened before it has to show among the names.
        gone: Files of which it is known that they were not there for a time, now or no more.
        come: Files of which it is known that they were there for a time, and new, now or no more.
        early: Those of the names that something has happened to before the last mark; None where
            no mark was made, or it is not known.
        late: Those that something has happened to since; the same.
    """

    names: frozenset[str]
    scan: Scan | None = None
    watched: bool = False
    sure: bool = False
    gone: frozenset[str] = frozenset()
    come: frozenset[str] = frozenset()
    early: frozenset[str] | None = None
    late: frozenset[str] | None = None


class Lookout:
    """Looks at a root again and again.  Not for several threads at once, but for marks.

    Args:
        root: The root.
        skip: Folders in it that are roots of their own.
        clock: Seconds that only grow.
        most: Most files that are looked at.
    """

    def __init__(
        self,
        root: Root,
        skip: Collection[str],
        clock: Callable[[], float] = time.monotonic,
        *,
        most: int = _MOST_FILES,
    ) -> None:
        self._root = root
        self._skip = skip
        self._clock = clock
        self._most = most
        self._marking = threading.Lock()
        self._before = _NOTHING
        self._marked: Notices | None = None
        self._kept = False
        self._notices: Notices | None = None
        self._left_out: set[str] = set()
        self._again = _NOTHING
        self._last = 0.0
        self._trusted = True

    def close(self) -> None:
        """Look no more."""
        notices, self._notices = self._notices, None
        if notices is not None:
            notices.close()

    def distrust(self) -> None:
        """A change has gone unnoticed: from now on everything is looked at each time."""
        self._trusted = False
        self.close()

    def mark(self) -> bool:
        """Have the next glance tell what happens from now on from what has happened before.

        From any thread, and without waiting for a glance that looks at everything.

        Returns:
            Whether it may be able to; not where it has to tell so of an earlier mark.
        """
        with self._marking:
            if self._marked is not None and self._marked is self._notices:
                return False
            notices = self._marked = self._notices
            if notices is not None:
                self._before = _joined(self._before, notices.drain())
            return notices is not None

    def glance(
        self,
        knows: Callable[[str], bool],
        cancelled: Callable[[], bool],
        *,
        keep: bool = False,
    ) -> Glance:
        """What has happened since the last glance.

        Args:
            knows: Whether the caller knows of a file, by its path beneath the root; others may be
                ignored ones.
            cancelled: Asked before each folder that is looked into.
            keep: Whether a mark is left for the next glance, to which all is late then.

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
            return self._everything(frozenset(), cancelled)
        noticed, again = _joined(before, after), self._again
        names = frozenset(name for name in noticed.names if not _is_ours(name)) | again.names
        self._again = _NOTHING
        return self._seen(names, knows, cancelled, anew=noticed.folders)._replace(
            gone=(noticed.gone | again.gone) & names,
            come=(noticed.come | again.come) & names,
            early=(before.names | (frozenset() if kept else again.names)) & names
            if known
            else None,
            late=(after.names | (again.names if kept else frozenset())) & names if known else None,
        )

    def _seen(
        self,
        names: frozenset[str],
        knows: Callable[[str], bool],
        cancelled: Callable[[], bool],
        *,
        anew: bool,
    ) -> Glance:
        """The glance at names that were touched, or at everything if they do not tell enough."""
        if anew:
            self.close()
            return self._everything(names, cancelled)
        if any(name.rpartition("/")[2] in _IGNORE_FILES for name in names):
            self._left_out.clear()
            return self._everything(names, cancelled)
        strange = {
            name
            for name in names - self._left_out
            if not knows(name) and stamp_at(self._root, name) is not None
        }
        if strange:
            seen = self._everything(names, cancelled)
            # Only what is there, and was not touched meanwhile, is known to be ignored.
            late = self._look_later()
            unseen = strange - seen.scan.stamps.keys() if seen.scan is not None else set()
            self._left_out |= {
                name for name in unseen - late if stamp_at(self._root, name) is not None
            }
            return seen
        if self._clock() - self._last > _EVERYTHING_EVERY:
            seen = self._everything(names, cancelled)
            # What happened just now may be seen in both ways, and has to be looked at again.
            late = self._look_later()
            return seen._replace(names=names | late, sure=self._notices is not None)
        return Glance(names - self._left_out, watched=True, sure=True)

    def _everything(self, names: frozenset[str], cancelled: Callable[[], bool]) -> Glance:
        """Look at all files, with every folder watched before it is looked into."""
        if self._notices is None and self._trusted:
            self._notices = Notices.open(self._root)
        try:
            found = self._scan(cancelled)
        except FilepactError:
            self.close()  # Nothing is watched yet.
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
            self.close()  # Folders come faster than they can be watched.
        if found.cancelled or found.end is not None:
            self.close()
        self._last = self._clock()
        return Glance(names, found, watched=self._notices is not None)

    def _look_later(self) -> frozenset[str]:
        """Have what was touched while everything was looked at looked at the next time; its names."""
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

    def _scan(self, cancelled: Callable[[], bool]) -> Scan:
        return scan(self._root, skip=self._skip, most=self._most, cancelled=cancelled)


def _joined(one: Noticed, then: Noticed) -> Noticed:
    return Noticed(
        one.names | then.names,
        one.gone | then.gone,
        one.come | then.come,
        one.folders or then.folders,
    )


def _is_ours(name: str) -> bool:
    return is_temporary(name.rpartition("/")[2])

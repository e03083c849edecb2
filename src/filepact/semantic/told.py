"""What the servers of one root were told of its files, and what is different on the disk by now."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.domain.document import WorkspacePath

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from filepact.domain.document import RootId
    from filepact.workspace.surroundings import Glance, Scan, Stamp, Surroundings, Taken

__all__ = ["Difference", "Told"]

_JUST_NOW: Final = 2 * 10**9
"""Nanoseconds in which a file may change twice under one stamp, on some file systems."""


_NEVER_READ: Final = ""
_MOST_RECENT: Final = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A file of which the servers know something else.

    Attributes:
        path: The file.
        known: Whether they know of it at all.
        stamp: What the system says of it now; None when it is gone.
        passing: Whether it was otherwise for a time: there, and is not, or not there, and is
            there again, maybe with the stamp that it had.  Servers that looked then are wrong now.
    """

    path: WorkspacePath
    known: bool
    stamp: Stamp | None
    passing: bool = False


class Told:
    """The files of a root as its servers know them.

    Servers read the disk themselves when they start, so that whatever was there when this was
    begun is known to them, and what comes later has to be told.  Not for several threads at once.

    Args:
        root: The root.
        surroundings: Looks at the disk.
    """

    def __init__(self, root: RootId, surroundings: Surroundings) -> None:
        self._root = root
        self._surroundings = surroundings
        self._stamps: dict[str, Stamp] = {}
        self._listed: Collection[str] = ()
        self._young: dict[str, str | None] = {}
        self._recent: deque[tuple[int, int]] = deque(maxlen=_MOST_RECENT)
        self.begun = False
        self.whole = True
        """Whether all files of the root are known."""
        self.turn = 0
        """Rises with each file that is told of, and with each beginning."""

    def __len__(self) -> int:
        return len(self._stamps)

    def __iter__(self) -> Iterator[tuple[str, Stamp]]:
        """Paths beneath the root, with stamps."""
        return iter(self._stamps.items())

    def begin(self, found: Scan, *, watched: bool) -> None:
        """Take the disk as it is for known.

        Args:
            found: All files.
            watched: Whether whatever is done to them from now on is noticed.
        """
        now = time.time_ns()
        self.turn += 1
        self._stamps = dict(found.stamps)
        self._listed = found.stamps.keys()
        self._young = {
            name: _NEVER_READ
            for name, one in ({} if watched else found.stamps).items()
            if _is_young(one, now)
        }
        self.whole = found.end is None
        self.begun = True

    def knows(self, name: str) -> bool:
        """Whether the servers know of a file, by its path beneath the root."""
        return name in self._stamps

    def listed(self, name: str) -> bool:
        """Whether a file was there, and not ignored, when everything was last looked at."""
        return name in self._listed

    def differences(self, seen: Glance) -> list[Difference]:
        """What is different from what the servers know; each is looked at once more.

        Args:
            seen: What was seen of the root, which others may have overtaken meanwhile.
        """
        differences = []
        suspects: Iterable[str] = seen.names
        if seen.scan is not None:
            self.whole = seen.scan.end is None
            self._listed = seen.scan.stamps.keys()
            suspects = {**dict.fromkeys(self._suspects(seen.scan)), **dict.fromkeys(seen.names)}
        for name in suspects:
            path = WorkspacePath(self._root, name)
            stamp, was = self._surroundings.stamp(path), self._stamps.get(name)
            listed = seen.scan is None or name in seen.scan.stamps or was is not None
            if stamp is not None and not listed:
                continue  # It is ignored.
            passing = name in (seen.come if stamp is None else seen.gone)
            if passing or stamp != was or (name in self._young and not self._same(path, stamp)):
                differences.append(Difference(path, was is not None, stamp, passing))
        return differences

    def note(self, path: WorkspacePath, taken: Taken | None, *, again: bool = False) -> bool:
        """The servers are told of a file.

        Args:
            path: The file.
            taken: As it is now; None for no file.
            again: Whether they were told of that before.

        Returns:
            Whether its date is that of the file that they knew.
        """
        name = path.path
        self.turn += 1
        if not again:
            self._recent.append((self.turn, 0 if taken is None else taken.stamp.changed))
        self._young.pop(name, None)
        was = self._stamps.get(name)
        if taken is None:
            self._stamps.pop(name, None)
            return False
        self._stamps[name] = taken.stamp
        if _is_young(taken.stamp, time.time_ns()):
            self._young[name] = taken.content
        return was is not None and was.modified == taken.stamp.modified

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

    def _suspects(self, found: Scan) -> Iterator[str]:
        """Files that may have changed."""
        stamps, known, end = found.stamps, self._stamps, found.end
        for name, stamp in stamps.items():
            if known.get(name) != stamp and (name in known or end is None or name <= end):
                yield name
        yield from [name for name in self._young if stamps.get(name) == known.get(name)]
        if len(known) > len(stamps) or not known.keys() <= stamps.keys():
            dark = tuple(f"{folder}/" for folder in found.unreadable)
            for name in known.keys() - stamps.keys():
                # What is ignored from now on is looked at by name.
                if not name.startswith(dark) and not found.cancelled:
                    yield name

    def _same(self, path: WorkspacePath, stamp: Stamp | None) -> bool:
        """Whether a file that was young when it was told still has the same bytes."""
        if stamp is None:
            return False
        content = self._young[path.path]
        taken = None if content == _NEVER_READ else self._surroundings.take(path)
        if taken is None or taken.content != content:
            return False
        if not _is_young(taken.stamp, time.time_ns()):
            del self._young[path.path]
        return True


def _is_young(stamp: Stamp, now: int) -> bool:
    return now - stamp.changed < _JUST_NOW

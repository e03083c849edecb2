"""Servers of one root kept abreast of the disk: told of what is done, and of what others do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Literal

from filepact.lsp.changes import Change
from filepact.semantic.told import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.lsp.pool import Pool
    from filepact.semantic.texts import Step
    from filepact.semantic.told import Difference
    from filepact.workspace.surroundings import Stamp, Surroundings, Taken

__all__ = ["Abreast"]

_MOST_TEXTS: Final = 500
_MOST_SHOWN: Final = 200
_MOST_LATEST: Final = 2_000


def _never() -> bool:
    return False


class Abreast:
    """What the servers of a root know of its files; for all threads.

    Attributes:
        lock: Whoever holds it sees the servers told of nothing meanwhile.

    Args:
        root: The root.
        surroundings: Looks at the disk.
        pool: The servers.
        claimed: Whether one of them knows a file, by its absolute path.
    """

    def __init__(
        self,
        root: RootId,
        surroundings: Surroundings,
        pool: Pool,
        claimed: Callable[[str], bool],
    ) -> None:
        self.lock = threading.RLock()
        self._root = root
        self._surroundings = surroundings
        self._pool = pool
        self._claimed = claimed
        self._told = Told(root, surroundings)
        self._lookout = surroundings.lookout(root)
        self._looking = threading.RLock()
        self._shown: dict[str, None] = {}
        self._latest: dict[str, int] = {}

    @property
    def begun(self) -> bool:
        """Whether servers may have read something of the root."""
        return self._told.begun

    @property
    def turn(self) -> int:
        """How many changes of files they were told of."""
        return self._told.turn

    @property
    def whole(self) -> bool:
        """Whether no change of a file can be missed for there being too many files."""
        return self._told.whole

    @property
    def files(self) -> list[tuple[str, Stamp]]:
        """The files that there are, beneath the root, as far as they are not ignored."""
        with self.lock:
            return list(self._told)

    @property
    def shown(self) -> tuple[str, ...]:
        """Files that servers were asked about, absolute, the last ones at the end."""
        with self.lock:
            return tuple(self._shown)

    def listed(self, path: WorkspacePath) -> bool:
        """Whether a file was there, and not ignored, when everything was last looked at."""
        return self._told.listed(path.path)

    def begin(self) -> None:
        """Take the disk as it is for known; call it before a server is started."""
        if not self._told.begun:
            with self._looking:
                if not self._told.begun:
                    self.begin_anew()

    def begin_anew(self) -> None:
        """All servers are going to be ended; the next ones read the disk as it is then."""
        with self._looking:
            self._lookout.close()
            seen = self._lookout.glance(self._told.knows, _never)
            if seen.scan is not None:
                with self.lock:
                    self._told.begin(seen.scan, watched=seen.watched)

    def close(self) -> None:
        """Look at the disk no more."""
        with self._looking:
            self._lookout.close()

    # -- telling --------------------------------------------------------------------------

    def tell(self, steps: Iterable[Step]) -> int:
        """Tell the servers of what was done, with what the files hold by now.

        Returns:
            How many files they were told of.
        """
        with self.lock:
            changes: list[Change] = []
            for step in steps:
                old = "" if step.old is None else step.old.absolute
                if step.old is not None:
                    self._note(step.old, None)
                taken = self._surroundings.take(step.path)
                same = self._note(step.path, taken)
                if taken is None:
                    # Gone again; what it was renamed from has gone as well.
                    changes += [Change(one, "deleted") for one in (old, step.absolute) if one]
                elif step.kind == "deleted":
                    changes.append(Change(step.absolute, "created", taken.text, same_date=same))
                else:
                    changes.append(Change(step.absolute, step.kind, taken.text, old, same))
            self._pool.tell(self._root, changes)
            return len(changes)

    def catch_up(self, cancelled: Callable[[], bool] = _never) -> tuple[Change, ...]:
        """Tell the servers of what others have written since they were last told.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        if not self.begun:
            self.begin()
            return ()
        # One after the other: what one has seen, and not told yet, the next would not see.
        with self._looking:
            seen = self._lookout.glance(self._told.knows, cancelled)
            if seen.scan is not None and seen.scan.cancelled:
                return ()
            with self.lock:
                differences = self._told.differences(seen)
                few = len(differences) <= _MOST_TEXTS
                changes = tuple(
                    change for one in differences for change in self._changes(one, with_text=few)
                )
                if changes:
                    self._pool.tell(self._root, changes)
            if seen.sure and any(one.path.path not in seen.names for one in differences):
                self._lookout.distrust()
            return changes

    def tell_anew(self, paths: Iterable[WorkspacePath]) -> int:
        """Tell the servers of files once more, whatever they know of them."""
        with self.lock:
            changes: list[Change] = []
            for path in paths:
                taken = self._surroundings.take(path)
                kind: Literal["changed", "created"] = (
                    "changed" if self._told.knows(path.path) else "created"
                )
                self._note(path, taken, again=True)
                changes.append(
                    Change(path.absolute, "deleted")
                    if taken is None
                    else Change(path.absolute, kind, taken.text, same_date=True)
                )
            self._pool.tell(self._root, changes)
            return len(changes)

    def _changes(self, one: Difference, *, with_text: bool) -> Iterator[Change]:
        """What servers are told of a difference.

        One that looked while the file was not there has to hear that it has come, and one that
        looked while it was there, that it has gone.
        """
        path = one.path.absolute
        if one.stamp is None and not one.known and not self._claimed(path):
            return  # Some program's file of a moment.
        taken = None if one.stamp is None else self._surroundings.take(one.path)
        same = self._note(one.path, taken) or one.passing
        if taken is None or one.passing:
            yield Change(path, "deleted")
        if taken is not None:
            wanted = path in self._shown or (with_text and self._claimed(path))
            kind: Literal["changed", "created"] = (
                "changed" if one.known and not one.passing else "created"
            )
            yield Change(path, kind, taken.text if wanted else None, same_date=same)

    def _note(self, path: WorkspacePath, taken: Taken | None, *, again: bool = False) -> bool:
        self._keep(path.absolute, None if taken is None else taken.text)
        return self._told.note(path, taken, again=again)

    # -- asking ---------------------------------------------------------------------------

    def texts(self, paths: Iterable[WorkspacePath]) -> dict[str, str]:
        """What files hold, by absolute path, as far as they are there and are text.

        Whoever shows them to servers does so before the lock is given back.
        """
        found: dict[str, str] = {}
        with self.lock:
            for path in paths:
                taken = self._surroundings.take(path)
                text = None if taken is None else taken.text
                self._keep(path.absolute, text)
                if text is not None:
                    found[path.absolute] = text
                    self._shown.pop(path.absolute, None)
                    self._shown[path.absolute] = None
            while len(self._shown) > _MOST_SHOWN:
                del self._shown[next(iter(self._shown))]
        return found

    def overtaken(self, texts: Mapping[str, str]) -> set[str]:
        """The files of which the servers were told another text than one that they were shown."""
        return {path for path, text in texts.items() if self._latest.get(path) != hash(text)}

    def moved(self, turn: int, start: int) -> bool:
        """Whether the servers were told after a turn of what had happened before a moment.

        Args:
            turn: A turn.
            start: The moment, in nanoseconds since the epoch.
        """
        return self._told.moved(turn, start)

    def _keep(self, path: str, text: str | None) -> None:
        self._latest.pop(path, None)
        if text is not None:
            self._latest[path] = hash(text)
        while len(self._latest) > _MOST_LATEST:
            del self._latest[next(iter(self._latest))]

"""The index of a root's names: what a walk has listed, kept right by what the kernel notices.

A walk of thousands of folders costs more than all that searches do with the names.  So its listings are
kept, and before each search the kernel's notices are drained: a notice is there before the call returns
that caused it.  Where there are no notices, or too many, there is no index, and the disk is walked.
"""

from __future__ import annotations

import errno
import math
import threading
import time
from collections import OrderedDict
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from filepact.errors import FilepactError
from filepact.fs.folder_entries import MAX_ENTRIES, list_folder, opened_folder
from filepact.fs.inotify import InotifyWatcher, WatcherLimit
from filepact.fs.walk import MAX_DEPTH, TreeReader
from filepact.text.gitignore import IgnoreRuleSet
from filepact_index.name_views import NameSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from filepact.domain.policy import EntryFilter
    from filepact.fs.folder_entries import FolderEntries, Unlisted
    from filepact.fs.inotify import FileEvents
    from filepact.fs.root import Root
    from filepact.fs.work_trees import WorkTreeIndex
    from filepact_index.name_views import FileList

T = TypeVar("T")
_TreeStamp = tuple[tuple[int, ...] | None, ...]

__all__ = ["IndexChanges", "NameIndex"]

_IGNORE_FILES: Final = frozenset({".git", ".gitignore", ".ignore"})
"""Names that say what is ignored below the folder that they stand in."""

_MOST_VIEWS: Final = 8
_MOST_ANSWERS: Final = 16
_SETTLING: Final = 20
"""How often it is looked again for changes that came while the index was being brought up to date."""

_MOST_MOVED: Final = 200
"""Folders that come and go at once; to list everything anew is quicker for more."""

_RETRY_SECONDS: Final = 60.0
"""Where too many folders are watched already, it is tried again after so long."""


class IndexChanges(NamedTuple):
    """The changes since the last look.

    Attributes:
        names: Files that were touched, made or removed, by path beneath the root.
        folders: Folders of which everything may have changed.
    """

    names: frozenset[str]
    folders: frozenset[str]


class _TooManyError(Exception):
    """There are more folders or names than an index takes."""


class _LostError(Exception):
    """Too much happens at once, nothing was built, or the caller gave up; another time it may go well."""


class NameIndex:
    """The names beneath one root; for all threads.

    Args:
        root: The root.
        most: Most names that it takes, ignored ones included.
        share: How many folders it may watch.

    Attributes:
        changed: How often names have changed.
    """

    def __init__(
        self, root: Root, *, most: int = MAX_ENTRIES, share: WatcherLimit | None = None
    ) -> None:
        self._not_before = 0.0
        self._root = root
        self._most = most
        self._share = share or WatcherLimit(None)
        self._lock = threading.RLock()
        self._watcher: InotifyWatcher | None = None
        self._built = False
        self._listings: dict[str, FolderEntries | Unlisted] = {}
        self._names = 0
        # What Git tracks in each work tree at one stamp, which is older than what is read for it.
        self._trees: dict[str, tuple[_TreeStamp, Callable[[], WorkTreeIndex | None]]] = {}
        self._views: OrderedDict[Hashable, NameSelection] = OrderedDict()
        self._answers: OrderedDict[Hashable, tuple[int, Any, EntryFilter]] = OrderedDict()
        self.changed = 0
        self._cancelled: Callable[[], bool] = lambda: False

    @property
    def unusable(self) -> bool:
        """Whether this root can have no index, for a while at least; then nobody needs to try."""
        return time.monotonic() < self._not_before

    @property
    def ready(self) -> bool:
        """Whether all names are in it; while they are listed nobody waits for that."""
        return self._built

    def close(self) -> None:
        """Forget everything; the index can be built again."""
        with self._lock:
            self._built = False
            watcher, self._watcher = self._watcher, None
            if watcher is not None:
                watcher.close()
            self._share.close()
            self._listings = {}
            self._names = 0
            self._trees.clear()
            self._forget_views()

    def build(self, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """List everything, each folder watched before it is looked into; whether that went well.

        Args:
            cancelled: Asked before each folder.
        """
        with self._lock:
            self.close()
            watcher = InotifyWatcher.open(self._root)
            if watcher is None:
                self._not_before = math.inf
                return False
            self._watcher, self._cancelled = watcher, cancelled
            try:
                self._list(".", IgnoreRuleSet(), deep=True)
                self._settle()
                self._built = True
            except (OSError, _TooManyError) as error:
                # Neither a tree that is too large nor a foreign file system in it will be another soon.
                foreign = isinstance(error, OSError) and error.errno == errno.ENOSYS
                lasts = foreign or self._names > self._most
                self._not_before = math.inf if lasts else time.monotonic() + _RETRY_SECONDS
                self.close()
            except (FilepactError, _LostError):
                self.close()
            return self.ready

    def refresh(self) -> IndexChanges | None:
        """Bring the index up to date with everything that has happened before the call.

        Returns:
            What has changed since the last time; None where the index cannot be relied on any more,
            and is empty now.
        """
        with self._lock:
            try:
                return self._settle()
            except (FilepactError, OSError, _TooManyError, _LostError):
                self.close()
                return None

    def walk(
        self,
        base: str,
        allow: EntryFilter,
        *,
        max_depth: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> TreeReader | None:
        """A walk through what is known; None where the disk has to be walked.

        Args:
            base: A folder, as a canonical path.
            allow: The guard's question.
            max_depth: Deepest entries wanted, as for `TreeReader`.
            cancelled: Asked before each folder.
        """
        with self._lock:
            listings = self._listings
            if not self.ready or not self._holds(base):
                return None
            key = (base, allow.key)
            whole = max_depth is None and allow.key is not None
            view = None if allow.key is None else self._views.get(key)
            if view is not None and max_depth is not None and view.deepest > max_depth:
                if view.walked.complete:
                    return view.walked.replay(view.batches, most_deep=max_depth)
                view = None
            if view is None:
                walked = TreeReader(
                    self._root,
                    base,
                    allow=allow,
                    max_depth=max_depth,
                    known=listings.__getitem__,
                    cancelled=cancelled,
                )
                if not whole:
                    return walked
                view = NameSelection(base, walked, list(walked.batches()))
                self._unite(view)
                if not walked.cancelled:
                    self._views[key] = view
                    while len(self._views) > _MOST_VIEWS:
                        self._views.popitem(last=False)
            else:
                self._views.move_to_end(key)
            return view.walked.replay(view.batches, view.flat)

    def files(self, base: str, allow: EntryFilter, glob: str) -> FileList | None:
        """The files that a walk has just found, as far as a glob selects them; None once names change.

        Args:
            base: As of the walk.
            allow: As of the walk.
            glob: Compared with paths below the base; ``!`` before it turns it round.
        """
        with self._lock:
            view = self._views.get((base, allow.key))
            if view is None:
                return None
            if glob not in view.chosen:
                self._unite(view)
            return view.files(glob)

    def _unite(self, view: NameSelection) -> None:
        """Have a view take up no memory for what another has found as well: most readers may see the same."""
        for other in self._views.values():
            if other is not view and other.base == view.base and view.unite(other):
                return

    def answer(
        self,
        base: str,
        allow: EntryFilter,
        asked: Hashable,
        make: Callable[[], T],
        lasts: Callable[[T], bool],
    ) -> T:
        """An answer about the names below a folder, made anew only after a name has changed.

        Args:
            base: The folder.
            allow: The guard's question.
            asked: All else that the answer depends on.
            make: Makes it.
            lasts: Whether it depends on nothing more.
        """
        key = (base, allow.key, asked)
        with self._lock:
            changed, made, _ = self._answers.get(key, (-1, None, allow))
            if changed == self.changed:
                return cast("T", made)
            changed = self.changed
            known = self._built and allow.key is not None and self._holds(base)
        fresh = make()
        with self._lock:
            if known and changed == self.changed and lasts(fresh):
                self._answers[key] = changed, fresh, allow
                while len(self._answers) > _MOST_ANSWERS:
                    self._answers.popitem(last=False)
        return fresh

    def _change_views(
        self, path: str, before: FolderEntries | Unlisted | None, now: FolderEntries | Unlisted
    ) -> None:
        """Take in a folder that was listed anew."""
        if before is None or isinstance(before, str) or isinstance(now, str):
            self._forget_views()
            return
        same = _folders_in(before) == _folders_in(now) and all(
            getattr(before, what) == getattr(now, what)
            for what in ("bare", "left_out", "ignored", "unreadable")
        )
        views = [view for view in self._views.values() if same and view.change(path, before, now)]
        if len(views) < len(self._views):
            self._forget_views()
        for view in views[1:]:
            self._unite(view)
        self.changed += 1

    def _forget_views(self) -> None:
        self._views.clear()
        self._answers.clear()
        self.changed += 1

    def _holds(self, base: str) -> bool:
        """Whether a walk from a folder would find what the index has below it.

        Rules that would hide the folder say nothing once it was named, nor does Git of one in which
        it tracks nothing.
        """
        listing = self._listings.get(base)
        if listing is None or isinstance(listing, str):
            return False
        if base == ".":
            return True
        here, names = ".", base.split("/")
        for name in names:
            above = self._listings[here]
            if isinstance(above, str) or name in above.bare:
                return False
            here = name if here == "." else f"{here}/{name}"
        tracked = None if listing.stack is None else listing.stack.tracked()
        return tracked is None or tracked(base)

    # -- listing --------------------------------------------------------------------------

    def _settle(self) -> IndexChanges:
        """Take in what was noticed, until nothing more is."""
        names: set[str] = set()
        folders: set[str] = set()
        for _ in range(_SETTLING):
            noticed = self._drain()
            if not noticed.names and not noticed.moved and not self._git_moved(folders):
                return IndexChanges(frozenset(names), frozenset(folders))
            names |= noticed.names
            self._take(noticed, folders)
        raise _LostError

    @property
    def _notices(self) -> InotifyWatcher:
        if self._watcher is None:
            raise _LostError
        return self._watcher

    def _drain(self) -> FileEvents:
        noticed = self._notices.drain()
        if noticed.lost or len(noticed.moved) > _MOST_MOVED:
            raise _LostError
        return noticed

    def _git_moved(self, folders: set[str]) -> bool:
        """Whether what Git tracks or excludes has changed; the names that depend on it are listed anew."""
        moved = False
        for top, (known, _) in list(self._trees.items()):
            stamp = self._root.trees.stamp(top)
            if stamp != known:
                moved = True
                self._trees[top] = stamp, cache(partial(self._root.trees.at, top))
                if known[1:] == stamp[1:]:
                    self._relist(self._asking(top), folders)
                else:
                    self._relist_all(top, folders)
        return moved

    def _asking(self, top: str) -> list[str]:
        """The folders of a work tree of which the names depend on what Git tracks."""
        inside = "" if top == "." else f"{top}/"
        return [
            path
            for path, listing in self._listings.items()
            if not isinstance(listing, str)
            and listing.asks_git
            and (path == top or path.startswith(inside))
        ]

    def _take(self, noticed: FileEvents, folders: set[str]) -> None:
        """List those folders anew in which something came or went."""
        for path in noticed.moved:
            self._drop(path)
        stale = {_above(path) for path in noticed.moved}
        stale |= {_above(path) for path in noticed.added | noticed.removed}
        touched = noticed.names | noticed.moved
        rules = {_above(path) for path in touched if _name(path) in _IGNORE_FILES}
        folders |= noticed.moved
        for path in sorted(rules):
            self._relist_all(path, folders)
        self._relist(sorted(stale - rules), folders)

    def _relist(self, paths: Collection[str], folders: set[str]) -> None:
        for path in paths:
            listing = self._listings.get(path)
            if listing is not None:
                self._list(path, self._stack(path), deep=False, folders=folders)

    def _relist_all(self, path: str, folders: set[str]) -> None:
        """List a folder and all below it, after its rules have changed."""
        if path in self._listings:
            folders.add(path)
            self._list(path, self._stack(path), deep=True)

    def _stack(self, path: str) -> IgnoreRuleSet | None:
        """The ignore rules that reach a folder from above."""
        if path == ".":
            return IgnoreRuleSet()
        above = self._listings.get(_above(path))
        return None if above is None or isinstance(above, str) else above.below(_name(path))

    def _list(
        self, path: str, stack: IgnoreRuleSet | None, *, deep: bool, folders: set[str] | None = None
    ) -> None:
        """List a folder, and those below it that are new.

        Args:
            path: The folder.
            stack: The ignore rules that reach it from above.
            deep: Whether all below it are listed anew.
            folders: Takes the folders that are new.
        """
        if deep:
            self._forget_views()
        self._listings = dict(self._listings)  # walks may still use the old ones
        pending = [(path, stack)]
        while pending:
            path, stack = pending.pop()
            if self._cancelled():
                raise _LostError
            listing = self._read(path, stack)
            before = self._listings.get(path)
            self._put(path, listing)
            self._change_views(path, before, listing)
            inside = _folders_in(listing)
            prefix = "" if path == "." else f"{path}/"
            for name in _folders_in(before) - inside:
                self._drop(prefix + name)
            if isinstance(listing, str) or path.count("/") >= MAX_DEPTH:
                continue
            for name in inside:
                below, known = listing.below(name), self._listings.get(prefix + name)
                same = known is not None and _bare(before, name) == _bare(listing, name)
                if deep or not same:
                    pending.append((prefix + name, below))
                    if folders is not None:
                        folders.add(prefix + name)

    def _read(self, path: str, stack: IgnoreRuleSet | None) -> FolderEntries | Unlisted:
        """Watch a folder, then list it."""
        try:
            with opened_folder(self._root, path) as folder:
                if isinstance(folder, str):
                    return folder
                if not self._share.covers(len(self._listings) + 1):
                    raise _TooManyError
                self._notices.watch_open(path, folder)
                return list_folder(self._root, folder, path, stack, tracking=self._tracking)
        except FilepactError:
            if path == ".":
                raise
            return "unreadable"

    def _tracking(self, top: str) -> Callable[[], WorkTreeIndex | None]:
        """A function that tells what Git tracks in a work tree.

        A tree that is known stays as it is known, whoever lists its top: only `_git_moved` renews it, and
        with it all names that depend on it.
        """
        if top not in self._trees:
            stamp = self._root.trees.stamp(top)
            self._trees[top] = stamp, cache(partial(self._root.trees.at, top))
        return partial(self._tracked_at, top)

    def _tracked_at(self, top: str) -> WorkTreeIndex | None:
        known = self._trees.get(top)  # gone where a walk goes on in a folder that is
        return self._root.trees.at(top) if known is None else known[1]()

    def _put(self, path: str, listing: FolderEntries | Unlisted) -> None:
        self._names += _size(listing) - _size(self._listings.get(path))
        if self._names > self._most:
            raise _TooManyError
        self._listings[path] = listing

    def _drop(self, path: str) -> None:
        """Know nothing of a folder any more, nor of what lay in it."""
        inside = f"{path}/"
        gone = [one for one in self._listings if one == path or one.startswith(inside)]
        if gone:
            self._forget_views()
            self._listings = dict(self._listings)
        for one in gone:
            self._names -= _size(self._listings.pop(one))
            self._trees.pop(one, None)
        self._notices.forget(gone)


def _folders_in(listing: FolderEntries | Unlisted | None) -> set[str]:
    if listing is None or isinstance(listing, str):
        return set()
    return {name[:-1] for name in listing.names if name[-1] == "/"}


def _bare(listing: FolderEntries | Unlisted | None, name: str) -> bool:
    """Whether only what is tracked is kept of a folder in another."""
    below = None if listing is None or isinstance(listing, str) else listing.below(name)
    return below is not None and below.bare


def _size(listing: FolderEntries | Unlisted | None) -> int:
    return 0 if listing is None or isinstance(listing, str) else listing.size


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _name(path: str) -> str:
    return path.rpartition("/")[2]

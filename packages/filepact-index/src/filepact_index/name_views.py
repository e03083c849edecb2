"""One reader's view of a root's names: a finished walk, and the files that globs select from it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from filepact.fs.walk import NameList
from filepact.text.glob import compile_selection, select_paths

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from filepact.fs.folder_entries import FolderEntries
    from filepact.fs.walk import EntryList, TreeReader

__all__ = ["FileList", "NameSelection"]

_MOST_GLOBS: Final = 4


class FileList:
    """The files that one reader may see and a glob selects, while no name changes.

    Attributes:
        paths: In path order.
        among: The same.
        binary: Those that are no text; as are the next, kept by who knows the texts.
        unknown: Those of which it is not known what they hold.
        noted: How far changes of texts are taken in.
        come: Those of which nothing was asked yet.
    """

    __slots__ = ("among", "binary", "come", "noted", "paths", "unknown")

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.among = frozenset(paths)
        self.binary: set[str] = set()
        self.unknown: set[str] = set()
        self.noted: tuple[int, int] | None = None
        self.come: set[str] = set()

    def changed(self, gone: Collection[str], come: Collection[str]) -> FileList:
        """This view after files were removed and added."""
        paths = self.paths.copy()
        for path in gone:
            del paths[bisect_left(paths, path)]
        for path in come:
            insort(paths, path)
        after = FileList(paths)
        # First how far changes were taken in: taking one in twice does no harm.
        after.noted, after.come = self.noted, self.come.difference(gone).union(come)
        after.binary, after.unknown = self.binary.difference(gone), self.unknown.difference(gone)
        return after


class NameSelection:
    """The names that one reader may see below a folder: a finished walk, and what it has found.

    Attributes:
        chosen: The files that a few globs select, by glob.
    """

    def __init__(self, base: str, walked: TreeReader, batches: list[EntryList]) -> None:
        self.base = base
        self.walked = walked
        self.batches = batches
        self.chosen: OrderedDict[str, FileList] = OrderedDict()
        self._skip = 0 if base == "." else len(base) + 1
        self._places: dict[str, list[int]] = {}
        self._flat: NameList | None = None
        self._deepest = 0

    def files(self, glob: str) -> FileList:
        """The files that a glob selects."""
        chosen = self.chosen.get(glob)
        if chosen is None:
            flat = self.flat
            paths = select_paths(glob, flat.paths, flat.names, self._skip)
            files = [path for path in paths if path not in flat.links]
            chosen = self.chosen[glob] = FileList(files)
            while len(self.chosen) > _MOST_GLOBS:
                self.chosen.popitem(last=False)
        return chosen

    @property
    def deepest(self) -> int:
        """The depth of the deepest entries, as for `TreeReader`."""
        self._deepest = self._deepest or max((batch.depth for batch in self.batches), default=1)
        return self._deepest

    @property
    def flat(self) -> NameList:
        """All that was found, as one list."""
        if self._flat is None:
            self._flat = NameList.of(self.batches)
        return self._flat

    def unite(self, other: NameSelection) -> bool:
        """Have in common with another view what is found, if that is the same; whether it is."""
        if self.batches != other.batches:
            return False
        # Each has a list of its own, which it changes in place.
        self.batches, self._flat = other.batches.copy(), other.flat
        self.chosen = OrderedDict({**self.chosen, **other.chosen})
        return True

    def _select(self, glob: str, batches: Iterable[EntryList]) -> list[str]:
        select, paths = compile_selection(glob), list[str]()
        for prefix, names, odd, *_ in batches:
            files = [name for name in names if name not in odd] if odd else names
            paths += [prefix + name for name in select(prefix[self._skip :], files)]
        return paths

    def change(self, path: str, before: FolderEntries, now: FolderEntries) -> bool:
        """Take in that only files came or went in a folder; whether that was possible."""
        if not self._places:
            for at, batch in enumerate(self.batches):
                self._places.setdefault(batch.prefix, []).append(at)
        places = self._places.get("" if path == "." else f"{path}/")
        if places is None:
            return True  # It does not lie below the base, or may not be seen.
        old = [self.batches[at] for at in places]
        new = self.walked.changed(path, before, now, old[0].depth)
        if new is None or [one.folder for one in new] != [one.folder for one in old]:
            return False
        for at, batch in zip(places, new, strict=True):
            self.batches[at] = batch
        if self._flat is not None:
            self._flat = self._flat.changed(old, new)
        for glob, files in self.chosen.items():
            was, will = set(self._select(glob, old)), set(self._select(glob, new))
            self.chosen[glob] = files.changed(was - will, will - was)
        return True

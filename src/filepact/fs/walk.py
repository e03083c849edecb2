"""Walks everything below a folder, in path order, without following a link.

Each folder is opened relative to the descriptor of the folder it lies in, and each file can be
opened the same way, so a name that is exchanged for a link during the walk leads nowhere.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from filepact.domain.policy import EntryFilter
from filepact.errors import FilepactError, ReadFailedError, TooLargeError
from filepact.fs.folder_entries import (
    IGNORE_FILES,
    MAX_ENTRIES,
    FolderReader,
    list_folder,
    open_folder,
    opened_folder,
    with_ignore_files,
)
from filepact.fs.read import read_regular
from filepact.text.gitignore import IgnoreRules, IgnoreRuleSet

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator, Iterator

    from filepact.fs.folder_entries import FolderEntries, Kind, Unlisted
    from filepact.fs.root import Root
    from filepact.text.gitignore import IgnoredFolder, Layer

__all__ = [
    "MAX_DEPTH",
    "Entry",
    "EntryList",
    "FileRecord",
    "NameList",
    "TreeReader",
    "is_ignored",
    "open_batch",
    "was_ignored",
]

_LAYERS: Final[dict[str, Layer]] = {
    ".gitignore": "gitignore",
    ".ignore": "ignore",
    ".git/info/exclude": "exclude",
}


class Entry(NamedTuple):
    """One name that the walk found.

    A named tuple, because a walk makes thousands and frozen dataclasses cost three times as much.

    Attributes:
        path: Relative to the root.
        depth: 1 for what lies directly in the base.
        folder: Descriptor of the folder it lies in, open until the walk is asked for the next; -1
            where the folder was known and not opened.
        root: Where the walk began.
    """

    path: str
    name: str
    kind: Kind
    depth: int
    folder: int
    root: Root

    def read(self, *, limit: int) -> bytes:
        """The bytes of a file.

        Args:
            limit: Most bytes.

        Raises:
            TooLargeError: It is longer.
            ReadFailedError: It is gone, no regular file any more, or the system refused.
            PathBlockedError: It is another name of a secret.
        """
        if self.folder < 0:
            return self.root.read(self.path, limit=limit, follow=False).data
        return self.sample(limit=limit).data

    def sample(self, *, limit: int) -> FileRecord:
        """The bytes of a file whose folder is open, and what the system says of it; errors as `read`."""
        found: list[os.stat_result] = []

        def check(descriptor: int, status: os.stat_result) -> None:
            self.root.check_file(self.path, descriptor, status)
            found.append(status)

        try:
            data = read_regular(self.folder, self.name, limit, check)
        except OSError as error:
            raise ReadFailedError(
                f"{self.path}: cannot be read: {os.strerror(error.errno or 0)}", path=self.path
            ) from None
        if data is None:
            raise TooLargeError(f"{self.path}: over {limit:,} bytes", path=self.path)
        (status,) = found
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return FileRecord(data, stamp, status.st_nlink)


class FileRecord(NamedTuple):
    """A file as it was read.

    Attributes:
        stamp: Inode, size in bytes, and both times, as `Root.glance` has them.
        links: How many names it has.
    """

    data: bytes
    stamp: tuple[int, ...]
    links: int


MAX_DEPTH: Final = 400
"""Deepest folder that is entered, counted from the base."""


class EntryList(NamedTuple):
    """Consecutive names of one folder, up to the next subfolder.

    Attributes:
        prefix: The folder's path with a slash behind it; empty for the root.
        names: Files, links and others, in order.
        other_kinds: Which names of the folder are no files, and what they are.
        folder: The name of the folder that follows them; empty at the end.
        depth: 1 for what lies directly in the base.
        descriptor: The folder, open until the walk is asked for the next batch; -1 if it was known.
    """

    prefix: str
    names: list[str]
    other_kinds: dict[str, Kind]
    folder: str
    depth: int
    descriptor: int


class NameList(NamedTuple):
    """All files and links that a walk finds, in path order.

    Attributes:
        paths: They.
        names: Their names, in the same order.
        links: Those that are links.
        looked_at: How many names the walk looks at, folders as well.
    """

    paths: list[str]
    names: list[str]
    links: frozenset[str]
    looked_at: int

    @classmethod
    def of(cls, batches: list[EntryList]) -> Self:
        paths: list[str] = []
        names: list[str] = []
        links: set[str] = set()
        looked_at = 0
        for prefix, here, odd, folder, *_ in batches:
            looked_at += len(here) + bool(folder)
            files = [name for name in here if odd.get(name) != "other"] if odd else here
            paths += [prefix + name for name in files]
            names += files
            if odd:
                links.update(prefix + name for name in files if name in odd)
        return cls(paths, names, frozenset(links), looked_at)

    def changed(self, old: list[EntryList], new: list[EntryList]) -> Self:
        """This tree after some batches were replaced by others of the same folders."""
        was, will = self.of(old), self.of(new)
        before, after = set(was.paths), set(will.paths)
        paths, names = self.paths.copy(), self.names.copy()
        for path in before - after:
            at = bisect_left(paths, path)
            del paths[at], names[at]
        for path in after - before:
            at = bisect_left(paths, path)
            paths.insert(at, path)
            names.insert(at, path.rpartition("/")[2])
        links = self.links.difference(was.links).union(will.links)
        looked_at = self.looked_at + will.looked_at - was.looked_at
        return self._replace(paths=paths, names=names, links=links, looked_at=looked_at)


class _Frame(NamedTuple):
    descriptor: int
    batches: Iterator[EntryList]
    listing: FolderEntries


class TreeReader:
    """One walk through everything below a folder; iterate over it once.

    The order is that of the paths compared by code point, so a folder stands before its contents.
    The base is always entered, even when rules above it ignore it; hidden files are included.  A
    context manager, so that stopping early closes all descriptors.

    Args:
        root: Where the names begin.
        base: A folder, as a canonical path relative to the root.
        allow: The guard's question, asked with a root-relative path and "is it a folder" before
            an entry is yielded or entered; a `EntryFilter` is asked for a whole folder at once.
        ignore: Whether ignore files and the default names leave entries out.
        max_depth: Deepest entries wanted; 1 is what lies directly in the base.
        most: Most names that are looked at, if fewer than ``MAX_ENTRIES``.
        known: Gives the listings of folders that are known, so that the disk is not asked.
        ahead: Whether folders may be listed before they are entered, many at once; then none stays open.
        cancelled: Asked before each folder; true ends the walk.
        progress: Told at each folder how many entries were seen, and its path.

    Raises:
        NotFoundError: The base is not there (on the first entry).

    Attributes:
        unreadable: Folders and ignore files that could not be read, relative to the root.
        too_deep: Folders left out because they lie deeper than ``MAX_DEPTH``.
        beyond: Folders left out because another file system is mounted there.
        closed: Folders that were found and not looked into, whatever the reason.
        left_out: Folders that were ignored, as far as somebody may miss what is in them.
        ignored: Paths of files that were ignored.
        flat: All files and links that it finds, where somebody knows them before it begins.
        cut: Whether the walk ended at ``MAX_ENTRIES``.
        cancelled: Whether it ended because the caller said so.
    """

    def __init__(  # noqa: PLR0913 - a walk has many sides
        self,
        root: Root,
        base: str = ".",
        *,
        allow: Callable[[str, bool], bool],
        ignore: bool = True,
        max_depth: int | None = None,
        most: int | None = None,
        known: Callable[[str], FolderEntries | Unlisted] | None = None,
        ahead: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, str], None] = lambda _seen, _path: None,
    ) -> None:
        self.unreadable: list[str] = []
        self.too_deep = 0
        self.beyond = 0
        self.closed: list[str] = []
        self.left_out: list[IgnoredFolder] = []
        self.ignored: list[str] = []
        self.flat: NameList | None = None
        self.cut = False
        self.cancelled = False
        self._most = self._left = MAX_ENTRIES if most is None else most
        self._root = root
        self._base = base
        self._ignore = ignore
        self._allow = allow if isinstance(allow, EntryFilter) else EntryFilter(allow)
        self._max_depth = max_depth
        self._known = known
        self._ahead = ahead
        self._asked = cancelled
        self._tell = progress
        self._batches = self._run()

    @property
    def complete(self) -> bool:
        """Whether everything below the base was seen."""
        return not (self.cut or self.cancelled or self.too_deep or self.unreadable)

    @property
    def looked_at(self) -> int:
        """The number of names looked at so far."""
        return self._most - self._left

    @property
    def refused(self) -> int:
        """The number of names that the guard's rules hid."""
        return self._allow.refused

    def __iter__(self) -> Iterator[Entry]:
        for prefix, names, odd, folder, depth, descriptor in self._batches:
            for name in names:
                kind = odd.get(name, "file") if odd else "file"
                yield Entry(prefix + name, name, kind, depth, descriptor, self._root)
            if folder:
                yield Entry(prefix + folder, folder, "folder", depth, descriptor, self._root)

    def batches(self) -> Iterator[EntryList]:
        """Yield the entries in batches, much faster, for callers that look at names only."""
        return self._batches

    def replay(
        self,
        batches: list[EntryList],
        flat: NameList | None = None,
        *,
        most_deep: int | None = None,
    ) -> Self:
        """The finished walk, to be iterated over once more.

        Args:
            batches: What it has found.
            flat: The same.
            most_deep: Deepest entries wanted now, of a walk that was complete.
        """
        from copy import copy  # noqa: PLC0415 - a server answers before it needs it

        again = copy(self)
        again.flat = flat
        if most_deep is not None:
            skip = 0 if self._base == "." else len(self._base) + 1
            batches = [batch for batch in batches if batch.depth <= most_deep]
            again.left_out = [one for one in self.left_out if one.path.count("/", skip) < most_deep]
            again.ignored = [path for path in self.ignored if path.count("/", skip) < most_deep]
        again._batches = (batch for batch in batches)  # noqa: SLF001 - its own
        return again

    def changed(
        self, path: str, before: FolderEntries, now: FolderEntries, depth: int
    ) -> list[EntryList] | None:
        """The batches of a folder in which only files came or went since the walk, which takes that in.

        Args:
            path: The folder.
            before: What it held.
            now: What it holds.
            depth: That of its entries.

        Returns:
            They; None where the walk would have ended now.
        """
        prefix = "" if path == "." else f"{path}/"
        self._left += before.size - now.size
        self._allow.refused -= len(before.names) - len(self._allow.quietly(prefix, before.names))
        names = self._allow.among(prefix, now.names)
        return None if self._left <= 0 else list(_cut(prefix, names, now.other_kinds, depth, -1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._batches.close()

    def _run(self) -> Generator[EntryList, None, None]:
        frames: list[_Frame] = []
        try:
            frame = self._first()
            if frame is None:
                return
            frames.append(frame)
            while frames:
                descriptor, batches, listing = frames[-1]
                for batch in batches:
                    yield batch
                    if not batch.folder:
                        continue
                    path = batch.prefix + batch.folder
                    inside = self._enter(descriptor, batch, path, listing)
                    if inside is not None:
                        frames.append(inside)
                        break
                    if self.cancelled:
                        return
                else:
                    _close(frames.pop().descriptor)
        finally:
            for frame in frames:
                _close(frame.descriptor)

    def _first(self) -> _Frame | None:
        """The base, which is entered whatever ignore rules say of it."""
        if self._known is not None:
            return self._frame(-1, self._base, self._known(self._base), 1)
        stack = self._inherited() if self._ignore else None
        descriptor = self._root.open_directory(self._base, follow=False)
        first = self._list(descriptor, self._base, stack, 1)
        if self._ahead and first is not None:
            below = 0 if self._base == "." else self._base.count("/") + 1
            most = MAX_DEPTH if self._max_depth is None else self._max_depth - 1
            self._known = FolderReader(self._root, self._base, first.listing, below + most)
        return first

    def _enter(
        self, above: int, batch: EntryList, path: str, listing: FolderEntries
    ) -> _Frame | None:
        """Open and list a folder; None where a limit, the caller or the system forbids it."""
        depth = batch.depth
        if self._max_depth is not None and depth >= self._max_depth:
            return None
        if depth >= MAX_DEPTH:
            self.too_deep += 1
            self.closed.append(path)
            return None
        if self._left <= 0:
            self.cut = True
            return None
        if self._asked():
            self.cancelled = True
            return None
        self._tell(self.looked_at, path)
        if self._known is not None:
            found = self._known(path)
            if self._ahead and not isinstance(found, str) and found.size > self._left:
                with opened_folder(self._root, path) as folder:
                    stack, most = listing.below(batch.folder), self._left
                    if isinstance(folder, int):
                        found = list_folder(self._root, folder, path, stack, most=most)
            return self._frame(-1, path, found, depth + 1)
        descriptor = open_folder(self._root, above, batch.folder)
        if not isinstance(descriptor, int):
            return self._frame(-1, path, descriptor, depth + 1)
        return self._list(descriptor, path, listing.below(batch.folder), depth + 1)

    def _list(
        self, descriptor: int, path: str, stack: IgnoreRuleSet | None, depth: int
    ) -> _Frame | None:
        """Read the names of an open folder; it is closed again when that fails."""
        listing = list_folder(self._root, descriptor, path, stack, most=max(self._left, 1))
        if isinstance(listing, str):
            os.close(descriptor)
        return self._frame(descriptor, path, listing, depth)

    def _frame(
        self, descriptor: int, path: str, listing: FolderEntries | Unlisted, depth: int
    ) -> _Frame | None:
        """Take in a listing: what may be seen of it."""
        if isinstance(listing, str):
            if listing == "beyond":
                self.beyond += 1
            else:
                self.unreadable.append(path)
            self.closed.append(path)
            return None
        self._left -= listing.size
        self.cut = self.cut or self._left <= 0
        self.unreadable += listing.unreadable
        prefix = "" if path == "." else f"{path}/"
        if listing.left_out or listing.ignored:
            self._note(prefix, listing)
        names = self._allow.among(prefix, listing.names)
        return _Frame(
            descriptor, _cut(prefix, names, listing.other_kinds, depth, descriptor), listing
        )

    def _note(self, prefix: str, listing: FolderEntries) -> None:
        """Remember what was ignored, as far as it may be seen at all."""
        folders = {found.path: found for found in listing.left_out}
        keys = [f"{path[len(prefix) :]}/" for path in folders]
        seen = self._allow.quietly(prefix, keys)
        self.left_out += [folders[prefix + key[:-1]] for key in seen]
        names = [path[len(prefix) :] for path in listing.ignored]
        self.ignored += [prefix + name for name in self._allow.quietly(prefix, names)]

    def _inherited(self) -> IgnoreRuleSet:
        """The rules that reach the base from above, but for those that would hide the base."""
        stack = IgnoreRuleSet()
        if self._base == ".":
            return stack
        parts = self._base.split("/")
        for above in (".", *("/".join(parts[:count]) for count in range(1, len(parts)))):
            try:
                descriptor = self._root.open_directory(above)
            except FilepactError:
                continue
            try:
                stack, _ = with_ignore_files(self._root, stack, descriptor, above, IGNORE_FILES)
            finally:
                os.close(descriptor)
        return stack.sparing(self._base)


@contextmanager
def open_batch(root: Root, batch: EntryList) -> Iterator[int]:
    """The open folder of a batch; -1 where it was only known, and cannot be opened any more."""
    if batch.descriptor >= 0:
        yield batch.descriptor
        return
    try:
        descriptor = root.open_directory(batch.prefix[:-1] or ".", follow=False)
    except FilepactError:
        descriptor = -1
    try:
        yield descriptor
    finally:
        _close(descriptor)


def _close(descriptor: int) -> None:
    """Close a folder; one that is only known has no descriptor."""
    if descriptor >= 0:
        os.close(descriptor)


def _cut(
    prefix: str, keys: list[str], odd: dict[str, Kind], depth: int, descriptor: int
) -> Iterator[EntryList]:
    """The sorted names of a folder in batches; those of folders have a slash behind them."""
    start = 0
    for at, key in enumerate(keys):
        if key[-1] == "/":
            yield EntryList(prefix, keys[start:at], odd, key[:-1], depth, descriptor)
            start = at + 1
    # Also where nothing is left, so that what comes there later has its place.
    yield EntryList(prefix, keys[start:] if start else keys, odd, "", depth, descriptor)


def is_ignored(root: Root, path: str) -> bool:
    """Whether ignore files name a file, or a folder above it; it need not be there."""
    above = "."
    for part in path.split("/"):
        here = part if above == "." else f"{above}/{part}"
        with TreeReader(root, above, allow=lambda _path, _is_folder: True, max_depth=1) as entries:
            try:
                seen = any(entry.name == part for entry in entries)
            except FilepactError:
                return False
        if not seen:
            # What is there and is not seen is ignored; what is not there cannot be asked about.
            return root.glance(here) is not None
        above = here
    return False


def was_ignored(
    root: Root,
    path: str,
    files: Container[str],
    folders: Container[str],
    held: Callable[[str], bytes | None],
) -> bool:
    """Whether ignore files named a file by what they held once; also if nobody knows that any more.

    Args:
        root: Where.
        path: The file.
        files: Those that were there then; ignore files, and a ``.git`` that is a file, among them.
        folders: Those that were there, and looked into.
        held: Gives what a file held as an ignore file; None where nobody knows.
    """
    rules, folder, prefix = IgnoreRuleSet(), ".", ""
    for part in path.split("/"):
        git = f"{prefix}.git"
        if git in folders or git in files:
            rules = rules.repository()
        if git in files:  # The list of a linked worktree lies elsewhere.
            text = root.trees.exclude(folder)
            rules = rules.with_rules("exclude", IgnoreRules.parse(text, folder))
        for name, layer in _LAYERS.items():
            if prefix + name in files:
                if (data := held(prefix + name)) is None:
                    return True
                rules = rules.with_rules(layer, IgnoreRules.parse(os.fsdecode(data), folder))
        here = prefix + part
        key, seen = part if here == path else f"{part}/", here in folders
        # A folder that was looked into did not carry the marks of a build.
        if not rules.sift(prefix, [key], {part: not seen}.__getitem__).kept:
            return True
        folder, prefix = here, f"{here}/"
    return False

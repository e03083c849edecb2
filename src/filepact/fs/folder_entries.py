"""The names in one folder, as ignore rules leave them, and how a folder is opened to list it."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from filepact.fs.read import read_regular
from filepact.text.gitignore import IgnoreRules, is_build

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from filepact.fs.root import Root
    from filepact.text.gitignore import IgnoredFolder, IgnoreRuleSet, Layer, Tracking

__all__ = [
    "IGNORE_FILES",
    "MAX_ENTRIES",
    "FolderEntries",
    "FolderReader",
    "Kind",
    "Unlisted",
    "list_folder",
    "open_folder",
    "opened_folder",
    "with_ignore_files",
]

Kind = Literal["file", "folder", "link", "other"]
"""``link`` is any symbolic link, wherever it leads; ``other`` a device, pipe or socket."""

MAX_ENTRIES: Final = 200_000
"""Most names that one walk looks at, ignored ones included."""

_MAX_IGNORE_BYTES = 262_144
_MOST_MARKS = 1_000
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LAYERS: dict[str, Layer] = {".gitignore": "gitignore", ".ignore": "ignore"}
IGNORE_FILES: Final = (".git/", *_LAYERS)
"""Names in a folder that say what is ignored below it."""

_SPECIAL = frozenset({".git", ".git/", *_LAYERS})


class FolderEntries(NamedTuple):
    """The names in one folder that ignore rules leave, before anybody's rules about them.

    Attributes:
        names: In path order; those of folders with a slash behind them.
        other_kinds: Which names are neither files nor folders, and what they are.
        size: How many names the folder has, ignored ones included.
        stack: The ignore rules in force in it; None where nothing is ignored.
        bare: Folders in it of which only what is tracked is kept.
        left_out: Folders that are ignored, as far as somebody may miss what is in them.
        ignored: Paths of files that are ignored.
        unreadable: Ignore files that could not be read.
        asks_git: Whether it may depend on what Git tracks.
    """

    names: list[str]
    other_kinds: dict[str, Kind]
    size: int
    stack: IgnoreRuleSet | None = None
    bare: frozenset[str] = frozenset()
    left_out: tuple[IgnoredFolder, ...] = ()
    ignored: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    asks_git: bool = False

    def below(self, folder: str) -> IgnoreRuleSet | None:
        """The ignore rules for a folder in it."""
        stack, bare = self.stack, self.bare
        return stack.within(folder, bare) if stack and bare else stack


Unlisted = Literal["unreadable", "beyond"]
"""Why a folder is not listed: the system refuses, or another file system is mounted there."""


def open_folder(root: Root, above: int, name: str) -> int | Unlisted:
    """A descriptor of a folder in an open one, which the caller closes, or why there is none."""
    try:
        descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=above)
    except OSError:
        return "unreadable"
    if not root.boundary.encloses(descriptor, os.fstat(descriptor)):
        os.close(descriptor)
        return "beyond"
    return descriptor


@contextmanager
def opened_folder(root: Root, path: str) -> Iterator[int | Unlisted]:
    """A folder of a root while it is listed, as a walk would open it.

    Raises:
        PathBlockedError: The root is no longer there.
    """
    above, _, name = path.rpartition("/")
    found: int | Unlisted = root.open_directory(above or ".", follow=False)
    try:
        if path != "." and not isinstance(found, str):
            folder, found = found, "unreadable"
            try:
                found = open_folder(root, folder, name)
            finally:
                os.close(folder)
        yield found
    finally:
        if not isinstance(found, str):
            os.close(found)


def list_folder(
    root: Root,
    descriptor: int,
    path: str,
    stack: IgnoreRuleSet | None,
    *,
    most: int = MAX_ENTRIES,
    tracking: Callable[[str], Tracking] | None = None,
) -> FolderEntries | Unlisted:
    """List an open folder.

    A folder's name is kept with a slash behind it: sorted so, names come in the order of the
    whole paths that begin with them.

    Args:
        root: The root that it lies in.
        descriptor: The folder; it stays open.
        path: Its path.
        stack: The ignore rules that reach it from above; None to ignore nothing.
        most: Most names that are read.
        tracking: What tells what Git tracks in the work tree at a folder; None asks its index once.
    """
    names: list[str] = []
    odd: dict[str, Kind] = {}
    try:
        with os.scandir(descriptor) as listing:
            for found in islice(listing, most):
                if found.is_dir(follow_symlinks=False):
                    names.append(found.name + "/")
                    continue
                names.append(found.name)
                if not found.is_file(follow_symlinks=False):
                    odd[found.name] = "link" if found.is_symlink() else "other"
    except OSError:
        return "unreadable"
    size = len(names)
    if stack is None:
        names.sort()
        return FolderEntries(names, odd, size)
    unreadable: tuple[str, ...] = ()
    if not _SPECIAL.isdisjoint(names):
        stack, unreadable = with_ignore_files(root, stack, descriptor, path, names, tracking)
    return _sifted(path, names, odd, stack, lambda name: _is_build(descriptor, name), unreadable)


def _sifted(
    path: str,
    names: list[str],
    odd: dict[str, Kind],
    stack: IgnoreRuleSet,
    built: Callable[[str], bool],
    unreadable: tuple[str, ...] = (),
) -> FolderEntries:
    """The names in a folder that ignore rules leave."""
    sifted = stack.sift("" if path == "." else f"{path}/", names, built)
    sifted.kept.sort()
    return FolderEntries(
        sifted.kept,
        odd,
        len(names),
        stack,
        sifted.bare,
        sifted.folders,
        sifted.files,
        unreadable=unreadable,
        asks_git=sifted.doubtful,
    )


class FolderReader:
    """Lists the folders of a walk by their paths, with each that is asked for some of those that come next.

    It lists what `list_folder` would, whoever may see it.

    Args:
        root: The root that they lie in.
        base: The folder that the walk begins with.
        listing: What is in it.
        deepest: Up to so many folders below the root some are listed before they are asked for.
    """

    def __init__(self, root: Root, base: str, listing: FolderEntries, deepest: int) -> None:
        self._root = root
        self._deepest = deepest
        self._waiting: dict[str, IgnoreRuleSet | None] = {}
        self._listed: dict[str, FolderEntries | Unlisted] = {}
        self._step = 1
        self._add(base, listing)

    def __call__(self, path: str) -> FolderEntries | Unlisted:
        """The names in a folder; its own folder was asked for before."""
        if path not in self._listed:
            self._list_some(path)
        return self._listed.pop(path)

    def _add(self, path: str, listing: FolderEntries) -> None:
        prefix = "" if path == "." else f"{path}/"
        for key in reversed(listing.names):
            if key[-1] == "/":
                self._waiting[prefix + key[:-1]] = listing.below(key[:-1])

    def _list_some(self, path: str) -> None:
        some = {path: self._waiting.pop(path)}
        deep: dict[str, IgnoreRuleSet | None] = {}
        while self._waiting and len(some) < self._step:
            found, stack = self._waiting.popitem()
            (some if found.count("/") < self._deepest else deep)[found] = stack
        self._waiting.update(deep)
        self._step = min(self._step * _FASTER, _MOST_AHEAD)
        names = list(self._root.list_some(list(some)))
        # What was added last is listed next.
        for (found, stack), here in zip(reversed(some.items()), reversed(names), strict=True):
            listing = self._entries(found, stack, here)
            self._listed[found] = listing
            if not isinstance(listing, str):
                self._add(found, listing)

    def _entries(
        self, path: str, stack: IgnoreRuleSet | None, names: list[str] | None
    ) -> FolderEntries | Unlisted:
        if names is None or stack is None or not _SPECIAL_SIGNED.isdisjoint(names):
            with opened_folder(self._root, path) as folder:
                if isinstance(folder, str):
                    return folder
                return list_folder(self._root, folder, path, stack)
        odd: dict[str, Kind] = {}
        for at, name in enumerate(names):
            if name[-2:] in _SIGNS:
                names[at] = name[:-2]
                odd[name[:-2]] = _SIGNS[name[-2:]]
        return _sifted(path, names, odd, stack, partial(self._is_build, path))

    def _is_build(self, path: str, name: str) -> bool:
        with opened_folder(self._root, path) as folder:
            return not isinstance(folder, str) and _is_build(folder, name)


_FASTER: Final = 4
_MOST_AHEAD: Final = 256
_SIGNS: Final[dict[str, Kind]] = {"/@": "link", "/?": "other"}
"""What stands behind names that are neither files nor folders."""
_SPECIAL_SIGNED: Final = _SPECIAL | {name + sign for name in _SPECIAL for sign in _SIGNS}


def with_ignore_files(
    root: Root,
    stack: IgnoreRuleSet,
    folder: int,
    path: str,
    names: Collection[str],
    tracking: Callable[[str], Tracking] | None = None,
) -> tuple[IgnoreRuleSet, tuple[str, ...]]:
    """The stack with the ignore files of one folder, and those of them that cannot be read."""
    unreadable: list[str] = []
    if (".git/" in names or ".git" in names) and _is_top(folder):
        tracked = cache(partial(root.trees.at, path)) if tracking is None else tracking(path)
        stack = stack.repository(tracked)
        stack = stack.with_rules("exclude", IgnoreRules.parse(root.trees.exclude(path), path))
    for name, layer in _LAYERS.items():
        if name not in names:
            continue
        try:
            data = read_regular(folder, name, _MAX_IGNORE_BYTES)
        except FileNotFoundError:
            continue
        except OSError:
            data = None
        if data is None:
            unreadable.append(name if path == "." else f"{path}/{name}")
        elif data:
            stack = stack.with_rules(layer, IgnoreRules.parse(os.fsdecode(data), path))
    return stack, tuple(unreadable)


def _is_build(above: int, name: str) -> bool:
    """Whether a folder carries the marks of a build; what cannot be looked into carries none."""
    try:
        folder = os.open(name, _FOLDER_FLAGS, dir_fd=above)
    except OSError:
        return False
    try:
        with os.scandir(folder) as listing:
            return is_build({found.name for found in islice(listing, _MOST_MARKS)})
    except OSError:
        return False
    finally:
        os.close(folder)


def _is_top(folder: int) -> bool:
    """Whether a folder is the top of a repository; a link to Git's folder is not followed."""
    try:
        return not stat.S_ISLNK(os.stat(".git", dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False

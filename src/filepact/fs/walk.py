"""Walks everything below a folder, in path order, without following a link.

Each folder is opened relative to the descriptor of the folder it lies in, and each file can be
opened the same way, so a name that is exchanged for a link during the walk leads nowhere.
"""

from __future__ import annotations

import os
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

from filepact.errors import FilepactError, ReadFailedError, TooLargeError
from filepact.fs.read import read_regular
from filepact.text.gitignore import IgnoreRules, IgnoreRuleSet, is_build

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator

    from filepact.fs.root import Root
    from filepact.text.gitignore import IgnoredFolder, IgnoreResult, Layer

__all__ = [
    "MAX_DEPTH",
    "MAX_ENTRIES",
    "Entry",
    "EntryFilter",
    "EntryList",
    "Kind",
    "TreeReader",
]

Kind = Literal["file", "folder", "link", "other"]
"""``link`` is any symbolic link, wherever it leads; ``other`` a device, pipe or socket."""


class EntryFilter:
    """Filters the entries of a walk by the guard's rules, before they are shown or entered.

    Args:
        allow: The question about one: a root-relative path, and whether it is a folder.

    Attributes:
        refused: How many names rules have refused so far.
    """

    refused = 0

    def __init__(self, allow: Callable[[str, bool], bool]) -> None:
        self._allow = allow

    def __call__(self, path: str, is_dir: bool) -> bool:
        return self._allow(path, is_dir)

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        """Select the names in one folder that may be seen.

        Args:
            prefix: The folder's path with a slash behind it; empty for the root.
            keys: Names; those of folders with a slash behind them.
        """
        allow = self._allow
        kept = [
            key
            for key in keys
            if (allow(prefix + key[:-1], True) if key[-1] == "/" else allow(prefix + key, False))
        ]
        self.refused += len(keys) - len(kept)
        return kept

    def quietly(self, prefix: str, keys: list[str]) -> list[str]:
        """As `among`, without counting: for names that would not be shown anyway."""
        before = self.refused
        try:
            return self.among(prefix, keys)
        finally:
            self.refused = before


class Entry(NamedTuple):
    """One name that the walk found.

    A named tuple, because a walk makes thousands and frozen dataclasses cost three times as much.

    Attributes:
        path: Relative to the root.
        depth: 1 for what lies directly in the base.
        folder: Descriptor of the folder it lies in, open until the walk is asked for the next.
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
        try:
            data = read_regular(
                self.folder, self.name, limit, partial(self.root.check_file, self.path)
            )
        except OSError as error:
            raise ReadFailedError(
                f"{self.path}: cannot be read: {os.strerror(error.errno or 0)}", path=self.path
            ) from None
        if data is None:
            raise TooLargeError(f"{self.path}: over {limit:,} bytes", path=self.path)
        return data


MAX_DEPTH: Final = 400
"""Deepest folder that is entered, counted from the base."""

MAX_ENTRIES: Final = 200_000
"""Most names that one walk looks at, ignored ones included."""

_MAX_IGNORE_BYTES = 262_144
_MOST_MARKS = 1_000
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LAYERS: dict[str, Layer] = {".gitignore": "gitignore", ".ignore": "ignore"}
_SPECIAL = frozenset({".git", ".git/", *_LAYERS})


class EntryList(NamedTuple):
    """Consecutive names of one folder, up to the next subfolder.

    Attributes:
        prefix: The folder's path with a slash behind it; empty for the root.
        names: Files, links and others, in order.
        other_kinds: Which names of the folder are no files, and what they are.
        folder: The name of the folder that follows them; empty at the end.
        depth: 1 for what lies directly in the base.
        descriptor: The folder, open until the walk is asked for the next batch.
    """

    prefix: str
    names: list[str]
    other_kinds: dict[str, Kind]
    folder: str
    depth: int
    descriptor: int


class _Frame(NamedTuple):
    descriptor: int
    batches: Iterator[EntryList]
    stack: IgnoreRuleSet | None
    bare: frozenset[str]


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
        cancelled: Asked before each folder; true ends the walk.
        progress: Told at each folder how many entries were seen, and its path.

    Raises:
        NotFoundError: The base is not there (on the first entry).

    Attributes:
        unreadable: Folders and ignore files that could not be read, relative to the root.
        too_deep: Folders left out because they lie deeper than ``MAX_DEPTH``.
        beyond: Folders left out because another file system is mounted there.
        left_out: Folders that were ignored, as far as somebody may miss what is in them.
        ignored: Paths of files that were ignored.
        cut: Whether the walk ended at ``MAX_ENTRIES``.
        cancelled: Whether it ended because the caller said so.
    """

    def __init__(
        self,
        root: Root,
        base: str = ".",
        *,
        allow: Callable[[str, bool], bool],
        ignore: bool = True,
        max_depth: int | None = None,
        most: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, str], None] = lambda _seen, _path: None,
    ) -> None:
        self.unreadable: list[str] = []
        self.too_deep = 0
        self.beyond = 0
        self.left_out: list[IgnoredFolder] = []
        self.ignored: list[str] = []
        self.cut = False
        self.cancelled = False
        self._most = self._left = MAX_ENTRIES if most is None else most
        self._root = root
        self._base = base
        self._ignore = ignore
        self._allow = allow if isinstance(allow, EntryFilter) else EntryFilter(allow)
        self._max_depth = max_depth
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._batches.close()

    def _run(self) -> Generator[EntryList, None, None]:
        stack = self._inherited() if self._ignore else None
        frames: list[_Frame] = []
        try:
            descriptor = self._root.open_directory(self._base, follow=False)
            frame = self._list(descriptor, self._base, stack, 1)
            if frame is None:
                return
            frames.append(frame)
            while frames:
                descriptor, batches, stack, bare = frames[-1]
                for batch in batches:
                    yield batch
                    if not batch.folder:
                        continue
                    path = batch.prefix + batch.folder
                    below = stack.within(batch.folder, bare) if stack and bare else stack
                    inside = self._enter(descriptor, batch.folder, path, below, batch.depth)
                    if inside is not None:
                        frames.append(inside)
                        break
                    if self.cancelled:
                        return
                else:
                    os.close(frames.pop().descriptor)
        finally:
            for frame in frames:
                os.close(frame.descriptor)

    def _enter(
        self, above: int, name: str, path: str, stack: IgnoreRuleSet | None, depth: int
    ) -> _Frame | None:
        """Open and list a folder; None where a limit, the caller or the system forbids it."""
        if self._max_depth is not None and depth >= self._max_depth:
            return None
        if depth >= MAX_DEPTH:
            self.too_deep += 1
            return None
        if self._left <= 0:
            self.cut = True
            return None
        if self._asked():
            self.cancelled = True
            return None
        self._tell(self.looked_at, path)
        try:
            descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=above)
        except OSError:
            self.unreadable.append(path)
            return None
        if not self._root.boundary.encloses(descriptor, os.fstat(descriptor)):
            os.close(descriptor)
            self.beyond += 1
            return None
        return self._list(descriptor, path, stack, depth + 1)

    def _list(
        self, descriptor: int, path: str, stack: IgnoreRuleSet | None, depth: int
    ) -> _Frame | None:
        """Read the names of an open folder; it is closed again when that fails.

        A folder's name is kept with a slash behind it: sorted so, names come in the order of the
        whole paths that begin with them.
        """
        names: list[str] = []
        odd: dict[str, Kind] = {}
        try:
            with os.scandir(descriptor) as listing:
                for found in islice(listing, max(self._left, 1)):
                    if found.is_dir(follow_symlinks=False):
                        names.append(found.name + "/")
                        continue
                    names.append(found.name)
                    if not found.is_file(follow_symlinks=False):
                        odd[found.name] = "link" if found.is_symlink() else "other"
        except OSError:
            os.close(descriptor)
            self.unreadable.append(path)
            return None
        self._left -= len(names)
        self.cut = self.cut or self._left <= 0
        prefix = "" if path == "." else f"{path}/"
        bare: frozenset[str] = frozenset()
        if stack is not None:
            if not _SPECIAL.isdisjoint(names):
                stack = self._with_files(stack, descriptor, path, names)
            sifted = stack.sift(prefix, names, lambda name: _is_build(descriptor, name))
            names, bare = sifted.kept, sifted.bare
            if sifted.folders or sifted.files:
                self._note(prefix, sifted)
        names = self._allow.among(prefix, names)
        names.sort()
        return _Frame(descriptor, _cut(prefix, names, odd, depth, descriptor), stack, bare)

    def _note(self, prefix: str, sifted: IgnoreResult) -> None:
        """Remember what was ignored, as far as it may be seen at all."""
        folders = {found.path: found for found in sifted.folders}
        keys = [f"{path[len(prefix) :]}/" for path in folders]
        seen = self._allow.quietly(prefix, keys)
        self.left_out += [folders[prefix + key[:-1]] for key in seen]
        names = [path[len(prefix) :] for path in sifted.files]
        self.ignored += [prefix + name for name in self._allow.quietly(prefix, names)]

    # -- ignore files -------------------------------------------------------------------------

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
                stack = self._with_files(stack, descriptor, above, (".git/", *_LAYERS))
            finally:
                os.close(descriptor)
        return stack.sparing(self._base)

    def _with_files(
        self, stack: IgnoreRuleSet, folder: int, path: str, names: Collection[str]
    ) -> IgnoreRuleSet:
        """The stack with the ignore files of one folder, as far as they are among the names."""
        if ".git/" in names or ".git" in names:
            exclude = _exclude_file(folder)
            if exclude is not None:
                stack = stack.repository(cache(partial(self._root.trees.at, path)))
                stack = stack.with_rules("exclude", IgnoreRules.parse(exclude, path))
        for name, layer in _LAYERS.items():
            if name in names:
                text = self._text(folder, name, path)
                if text:
                    stack = stack.with_rules(layer, IgnoreRules.parse(text, path))
        return stack

    def _text(self, folder: int, name: str, path: str) -> str:
        try:
            data = read_regular(folder, name, _MAX_IGNORE_BYTES)
        except FileNotFoundError:
            return ""
        except OSError:
            data = None
        if data is None:
            self.unreadable.append(name if path == "." else f"{path}/{name}")
            return ""
        return os.fsdecode(data)


def _cut(
    prefix: str, keys: list[str], odd: dict[str, Kind], depth: int, descriptor: int
) -> Iterator[EntryList]:
    """The sorted names of a folder in batches; those of folders have a slash behind them."""
    start = 0
    for at, key in enumerate(keys):
        if key[-1] == "/":
            yield EntryList(prefix, keys[start:at], odd, key[:-1], depth, descriptor)
            start = at + 1
    if start < len(keys):
        yield EntryList(prefix, keys[start:] if start else keys, odd, "", depth, descriptor)


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


def _exclude_file(folder: int) -> str | None:
    """The text of ``.git/info/exclude``, or None when the folder is no repository's top."""
    try:
        descriptor = os.open(".git", _FOLDER_FLAGS, dir_fd=folder)
    except NotADirectoryError:
        return ""  # the .git file of a worktree or a submodule
    except OSError:
        return None
    try:
        info = os.open("info", _FOLDER_FLAGS, dir_fd=descriptor)
        try:
            return os.fsdecode(read_regular(info, "exclude", _MAX_IGNORE_BYTES) or b"")
        finally:
            os.close(info)
    except OSError:
        return ""
    finally:
        os.close(descriptor)

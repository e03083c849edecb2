"""Names of files: found by a glob on their path, drawn as a tree of folders, or meant by a similar name.

Where there is not room for a whole tree, its upper levels go first.  For a name that leads to nothing
only names that may be seen are looked at, and only so many that nobody waits for it.
"""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.deadline import FOREVER, Deadline
from filepact.errors import FilepactError
from filepact.fs.walk import TreeReader
from filepact.text.compare import edit_distance
from filepact.text.confusables import folded_name, shown_name, without_escapes
from filepact.text.glob import Glob, compile_filter, compile_selection, literal_forms, select_paths
from filepact.text.page import PAGE, size_of
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from filepact.domain.deadline import Stopped
    from filepact.fs.folder_entries import Kind
    from filepact.fs.root import Root
    from filepact.text.gitignore import Why

__all__ = [
    "ALL_SEARCHED",
    "FolderTree",
    "NameSearchResult",
    "SkippedFiles",
    "SkippedFolder",
    "find_files",
    "near_names",
    "tree",
    "unsearched",
]

_MOST_LOOKED_AT = 1_000
_MOST_COUNTED = 5


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """Files and folders that a search left out.

    Attributes:
        folders: Ignored folders that hold something, those first that are more often meant.
        files: How many ignored files there are beside them that would have been looked at.
        protected: How many names the rules keep from being seen, whatever was looked for: else it would tell names.
        mounted: How many folders lie on other file systems.
        more_rules: Whether ignore files above the root might name more to leave out.
    """

    folders: tuple[SkippedFolder, ...] = ()
    files: int = 0
    protected: int = 0
    mounted: int = 0
    more_rules: bool = False


@dataclass(frozen=True, slots=True)
class SkippedFolder:
    """A folder that was not searched.

    Attributes:
        files: How many files in it would have been looked at; None where they were not counted.
        floor: Whether there may be more.
    """

    path: str
    why: Why
    files: int | None = None
    floor: bool = False


ALL_SEARCHED: Final = SkippedFiles()


@dataclass(frozen=True, slots=True)
class NameSearchResult:
    """The answer to one search for names.

    Attributes:
        paths: What was found, in path order, relative to the root; folders end with a slash.
        total: How many there are, shown or not.
        total_is_floor: Whether there may be more than ``total``.
        unreadable: Folders that could not be read.
        stopped: Why the search ended early.
        looked_at: Files and folders that were compared.
        unsearched: What was left out.
        lasts: Whether it is right as long as no name changes: what is in folders that are left out may.
    """

    pattern: str
    paths: tuple[str, ...]
    total: int
    total_is_floor: bool
    unreadable: tuple[str, ...] = ()
    stopped: Stopped = ""
    looked_at: int = 0
    unsearched: SkippedFiles = ALL_SEARCHED
    lasts: bool = False


def find_files(  # noqa: PLR0913 - as of the tool
    root: Root,
    base: str,
    pattern: str,
    *,
    allow: Callable[[str, bool], bool],
    more: Collection[str] = (),
    deadline: Deadline = FOREVER,
    progress: Callable[[int, str], None] = lambda _seen, _path: None,
    limit: int = 100,
    walk: Callable[..., TreeReader] = TreeReader,
) -> NameSearchResult:
    """Files and links below a folder whose path matches; ignored entries are left out.

    Args:
        root: Where the names begin.
        base: A folder, as a canonical path.
        pattern: A glob, compared with paths below the base.  With a slash at its end it finds
            folders; with ``!`` before it everything that it does not match.  One that is the name of
            something is that: brackets may be plain characters, letters composed or decomposed.
        allow: The guard's question.
        more: Files that count as being there, though the disk does not have them.
        deadline: Asked before each folder; ends the search with what it has.
        progress: Told now and then how many entries were seen, and where.
        limit: Most paths to return; the rest is only counted.
        walk: Walks through the folder; takes what `TreeReader` takes.

    Raises:
        SearchFailedError: The pattern cannot be understood.
    """

    def ask(form: str) -> NameSearchResult:
        return _find(root, base, form, limit, allow, more, deadline, progress, walk)

    found = _find_named(ask, pattern)
    if found.total or found.stopped or pattern.isascii() or pattern.startswith("!"):
        return found
    others = {unicodedata.normalize(form, pattern) for form in ("NFC", "NFD")} - {pattern}
    return next((one for form in others if (one := _find_named(ask, form)).total), found)


def _find_named(ask: Callable[[str], NameSearchResult], pattern: str) -> NameSearchResult:
    literal, folder = literal_forms(pattern)
    for form in filter(None, (literal, folder if literal else "")):
        found = ask(form)
        if found.total or found.stopped:
            return found
    found = ask(pattern)
    if found.total or literal or not folder or found.stopped:
        return found
    named = ask(folder)
    return named if named.total else found


def _find(  # noqa: PLR0913 - as of `find_files`
    root: Root,
    base: str,
    pattern: str,
    limit: int,
    allow: Callable[[str, bool], bool],
    more: Collection[str],
    deadline: Deadline,
    progress: Callable[[int, str], None],
    walk: Callable[..., TreeReader],
) -> NameSearchResult:
    inverted = pattern.startswith("!")
    glob = Glob.parse_unwanted(pattern[1:]) if inverted else Glob.parse(pattern, braces=True)
    folders = glob.finds_folders and not inverted
    accepts = (lambda _path: True) if folders else compile_filter(pattern)
    select = compile_selection(pattern)
    skip = 0 if base == "." else len(base) + 1
    paths: list[str] = []
    total = looked_at = 0
    come = [path for path in more if not folders and accepts(path[skip:])]
    if root.place(base).kind == "missing":
        return NameSearchResult(pattern, tuple(sorted(come)[:limit]), len(come), False)
    with walk(root, base, allow=allow, cancelled=deadline.passed, progress=progress) as entries:
        flat = None if folders else entries.flat
        if flat is not None:
            found = select_paths(pattern, flat.paths, flat.names, skip)
            total, looked_at, paths = len(found), flat.looked_at, found[:limit]
        else:
            for prefix, names, odd, folder, _depth, _descriptor in entries.batches():
                looked_at += len(names)
                files = [name for name in names if odd.get(name) != "other"] if odd else names
                found = select(prefix[skip:], files)
                total += len(found)
                paths += [prefix + name for name in found[: limit - len(paths)]]
                if folder:
                    looked_at += 1
                    if folders and glob.matches_folder(f"{prefix}{folder}"[skip:]):
                        total += 1
                        if len(paths) < limit:
                            paths.append(f"{prefix}{folder}/")
        if come:
            total += len(come)
            paths = sorted([*paths, *come])[:limit]
        return NameSearchResult(
            pattern,
            tuple(paths),
            total,
            not entries.complete,
            tuple(entries.unreadable),
            deadline.why if entries.cancelled else "",
            looked_at,
            unsearched(entries, root, base, allow, accepts),
            lasts=entries.complete and not entries.left_out,
        )


def unsearched(
    walked: TreeReader,
    root: Root,
    base: str,
    allow: Callable[[str, bool], bool],
    accepts: Callable[[str], bool],
) -> SkippedFiles:
    """Count what a finished walk left out, up to a small bound.

    Args:
        walked: The walk.
        root: Its root.
        base: Its base.
        allow: Its question.
        accepts: Whether the search is about a file, by its path below the base.
    """
    skip = 0 if base == "." else len(base) + 1
    protected, left = walked.refused, _MOST_LOOKED_AT
    folders: list[SkippedFolder] = []
    # What programs fill comes last: people hardly ever mean it.
    for path, why in sorted(walked.left_out, key=lambda one: (not one.why, one.path.count("/"))):
        if left <= 0 or len(folders) >= _MOST_COUNTED or walked.cancelled:
            folders.append(SkippedFolder(path, why))
            continue
        files = 0
        with TreeReader(root, path, allow=allow, most=left) as inside, suppress(FilepactError):
            for prefix, names, *_ in inside.batches():
                files += sum(accepts(f"{prefix}{name}"[skip:]) for name in names)
        left -= inside.looked_at
        if files or not inside.complete:
            folders.append(SkippedFolder(path, why, files, floor=not inside.complete))
    files, more = sum(accepts(path[skip:]) for path in walked.ignored), root.trees.begin_above
    return SkippedFiles(tuple(folders), files, protected, walked.beyond, more_rules=more)


_SUFFIX: dict[Kind, str] = {"folder": "/", "file": "", "link": " -> (link)", "other": " (no file)"}


_NAMED = 5


@dataclass(frozen=True, slots=True)
class FolderTree:
    """A drawn folder.

    Attributes:
        text: The drawing; its last line says how many folders and files there are.
        directories: Folders within the depth, drawn or not.
        files: Files and links within the depth, drawn or not.
        hidden: Entries that were not drawn for want of room.
        totals_are_floor: Whether something could not be counted.
    """

    text: str
    directories: int
    files: int
    hidden: int
    totals_are_floor: bool


class _Node:
    """A folder or file while the tree is built.

    Attributes:
        children: Of a folder; of its files only the first, no more than can ever be drawn.
        files: How many files it holds.
        left_out: How many of them are not among the children.
        room: How many children are drawn.
    """

    __slots__ = ("children", "files", "kind", "left_out", "name", "room")

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.kind: Kind = kind
        self.children: list[_Node] = []
        self.files = 0
        self.left_out = 0
        self.room = 0

    @property
    def size(self) -> int:
        return len(self.children) + self.left_out

    def add_files(self, names: list[str], kinds: Mapping[str, Kind], most: int) -> None:
        """Add files in path order, the order in which they are drawn."""
        kept = names[: max(most - self.files, 0)]
        self.children += [_Node(name, kinds.get(name, "file")) for name in kept]
        self.files += len(names)
        self.left_out += len(names) - len(kept)


def tree(  # noqa: PLR0913 - as of the tool
    root: Root,
    base: str,
    *,
    name: str = "",
    allow: Callable[[str, bool], bool],
    more: Collection[str] = (),
    deadline: Deadline = FOREVER,
    progress: Callable[[int, str], None] = lambda _seen, _path: None,
    depth: int = 3,
    include_files: bool = True,
    pattern: str | None = None,
    budget: int = 1_000,
    page: int = PAGE,
    walk: Callable[..., TreeReader] = TreeReader,
) -> FolderTree:
    """Draw what lies below a folder; ignored entries are left out.

    Args:
        root: Where the names begin.
        base: A folder, as a canonical path.
        name: How it is called, if not by that.
        allow: The guard's question.
        more: Files that count as being there, though the disk does not have them.
        deadline: Asked before each folder; ends the walk with what it has.
        progress: Told now and then how many entries were seen, and where.
        depth: Levels to descend; 1 is what lies directly in the folder.
        include_files: Whether files are drawn; they are counted in any case.
        pattern: Only files whose name (or path, for a pattern with a slash) matches; folders
            that hold none within the depth are left out.
        budget: Most entries drawn.
        page: What the drawing may take; entries are left out until it fits.
        walk: Walks through the folder; takes what `TreeReader` takes.

    Raises:
        SearchFailedError: The pattern cannot be understood.
    """
    glob = None if pattern is None else Glob.parse(pattern, braces=True)
    skip = 0 if base == "." else len(base) + 1
    top = _Node(name or base, "folder")
    chain = [top]
    files = 0
    floor = False
    stopped: Stopped = ""
    left_out: list[str] = []
    if root.place(base).kind != "missing":
        with walk(
            root, base, allow=allow, max_depth=depth, cancelled=deadline.passed, progress=progress
        ) as entries:
            for prefix, names, odd, folder, level, _descriptor in entries.batches():
                del chain[level:]
                shown = names if glob is None else glob.among(prefix[skip:], names)
                files += len(shown)
                # One is kept in any case: by it a folder is known to hold some.
                chain[-1].add_files(shown, odd, max(budget, 1))
                if folder:
                    node = _Node(folder, "folder")
                    chain[-1].children.append(node)
                    chain.append(node)
            floor = not entries.complete
            stopped = deadline.why if entries.cancelled else ""
            left_out = sorted(found.path for found in entries.left_out)
    for path in more:
        if glob is None or glob.matches(path[skip:]):
            files += _add(top, path[skip:].split("/"), depth, max(budget, 1))
    if glob is not None:
        _prune(top)
    directories = sum(len(level) for level in _levels(top)) - 1
    if not include_files:
        _drop_files(top)
    counted = (
        f"{_number(directories, 'directory', 'directories')}, {_number(files, 'file', 'files')}"
    )
    ends = ["", f"at least {counted}" if floor else counted]
    if stopped:
        ends[-1] += f"; {'out of time' if stopped == 'time' else stopped}, so this is not all"
    if left_out:
        named = ", ".join(f"{shown_name(path[skip:])}/" for path in left_out[:_NAMED])
        more = f" (+{len(left_out) - _NAMED:,} more)" if len(left_out) > _NAMED else ""
        ends[-1] += f"; left out: {named}{more}"
    while True:
        drawn = _share(top, budget)
        lines = [_label(top) if top.name != "." else ".", *_draw(top)]
        text = "\n".join([*lines, *ends])
        taken = size_of(text)
        if taken <= page or drawn <= 1:
            break
        budget = max(drawn * page * 9 // (taken * 10), 1)
    hidden = (directories + (files if include_files else 0)) - drawn
    return FolderTree(text, directories, files, hidden, floor)


def _add(top: _Node, parts: list[str], depth: int, most: int) -> int:
    """Put in a file that the walk did not meet, with its folders; how many files that makes."""
    here = top
    for name in parts[:-1][:depth]:
        inside = next(
            (one for one in here.children if (one.name, one.kind) == (name, "folder")), None
        )
        if inside is None:
            inside = _Node(name, "folder")
            here.children.append(inside)
        here = inside
    if len(parts) > depth:
        return 0
    here.add_files(parts[-1:], {}, most)
    return 1


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


# -- which entries are drawn ------------------------------------------------------------------


def _levels(top: _Node) -> Iterator[list[_Node]]:
    """The folders of each level, from the top down."""
    level = [top]
    while level:
        yield level
        level = [child for node in level for child in node.children if child.kind == "folder"]


def _prune(top: _Node) -> None:
    """Leave out folders without a file, from the bottom up."""
    for level in reversed(list(_levels(top))):
        for node in level:
            node.children = [c for c in node.children if c.kind != "folder" or c.children]


def _drop_files(top: _Node) -> None:
    for level in _levels(top):
        for node in level:
            node.children = [child for child in node.children if child.kind == "folder"]
            node.left_out = 0


def _share(top: _Node, budget: int) -> int:
    """Give each folder room for children, level by level; returns how many are drawn in all.

    When a level does not fit, small folders are drawn whole and large ones share the rest.
    """
    left = budget
    for level in _levels(top):
        for node in level:
            node.room = 0
    level = [top]
    while level and left:
        waiting = sorted(level, key=lambda node: node.size)
        for position, node in enumerate(waiting):
            node.children.sort(key=lambda child: (child.kind != "folder", child.name))
            node.room = min(node.size, -(-left // (len(waiting) - position)))
            left -= node.room
        level = [
            child
            for node in level
            for child in node.children[: node.room]
            if child.kind == "folder"
        ]
    return budget - left


# -- drawing ----------------------------------------------------------------------------------


def _label(node: _Node) -> str:
    return shown_name(node.name) + _SUFFIX[node.kind]


def _draw(top: _Node) -> Iterator[str]:
    """The lines below the top, each with the branches that lead to it."""
    waiting: list[tuple[str, Iterator[tuple[str, _Node | None, bool]]]] = [("", _rows(top))]
    while waiting:
        indent, rows = waiting[-1]
        row = next(rows, None)
        if row is None:
            waiting.pop()
            continue
        label, node, last = row
        yield f"{indent}{'└── ' if last else '├── '}{label}"
        if node is not None and node.children:
            waiting.append((indent + ("    " if last else "│   "), _rows(node)))


def _rows(folder: _Node) -> Iterator[tuple[str, _Node | None, bool]]:
    cut = folder.size - folder.room
    for position, child in enumerate(folder.children[: folder.room], start=1):
        yield _label(child), child, not cut and position == folder.room
    if cut:
        yield f"... (+{cut:,} more)", None, True


_LINE = late_regex(r"(?::\d+){1,2}:?\Z")
_TOLD: Final = 3
_MOST_NAMES: Final = 2_000
_MOST_FOLDERS: Final = 8
_BRANCHES: Final = 2


def near_names(root: Root, path: str, allow: Callable[[str, bool], bool]) -> tuple[str, ...]:
    """Names of what is there, most likely first; folders end with a slash.

    Those that are written nearly the same come first, then those of the same last part elsewhere.

    Args:
        root: Where names begin.
        path: A canonical path at which nothing is.
        allow: The guard's question.
    """
    search = _Search(root, allow)
    # A name from another system, or with the line that a compiler or a search names behind it.
    path = _LINE.sub("", without_escapes(path).replace("\\", "/").strip())
    try:
        found = [name for _, name in sorted(search.descend(".", path.split("/"), 0))]
        found += search.elsewhere(path)
    except FilepactError:  # The tree changes: no advice is better than another error.
        return ()
    return tuple(dict.fromkeys(found))[:_TOLD]


class _Search:
    def __init__(self, root: Root, allow: Callable[[str, bool], bool]) -> None:
        self._root = root
        self._allow = allow
        self._folders = _MOST_FOLDERS

    def descend(self, folder: str, parts: list[str], worse: int) -> Iterator[tuple[int, str]]:
        """Paths below a folder whose parts are nearly these, and how far from them each is."""
        if self._folders <= 0:
            return
        self._folders -= 1
        wanted, *rest = parts
        near: list[tuple[int, str]] = []
        with TreeReader(
            self._root, folder, allow=self._allow, ignore=False, max_depth=1, most=_MOST_NAMES
        ) as entries:
            for entry in entries:
                if rest and entry.kind != "folder":
                    continue
                distance = _distance(wanted, entry.name)
                if distance is not None:
                    slash = "/" if entry.kind == "folder" and not rest else ""
                    near.append((worse + distance, f"{entry.path}{slash}"))
        near.sort()
        if not rest:
            yield from near
            return
        for distance, path in near[:_BRANCHES]:
            yield from self.descend(path, rest, distance)

    def elsewhere(self, path: str) -> list[str]:
        """Paths with the same last part, those first that have more parts in common."""
        *above, last = path.split("/")
        wanted = folded_name(last)
        found: list[tuple[int, int, str]] = []
        with TreeReader(self._root, allow=self._allow, most=_MOST_NAMES) as entries:
            for prefix, names, _odd, folder, *_ in entries.batches():
                here = [prefix + name for name in names if folded_name(name) == wanted]
                if folded_name(folder) == wanted:
                    here.append(f"{prefix}{folder}/")
                parts = prefix.split("/")
                common = len(set(parts) & set(above))
                found += [(-common, len(parts), one) for one in here]
        return [one for *_, one in sorted(found)]


def _distance(wanted: str, name: str) -> int | None:
    """The distance of a name from the one wanted; None if it is too far."""
    if name == wanted:
        return 0
    one, other = folded_name(wanted), folded_name(name)
    if one == other:
        return 1
    if _bare(one) == _bare(other) != "":
        return 2
    # An ending is the same for many, so it makes no name more like another.
    most = min(len(one.rpartition(".")[0] or one), len(other.rpartition(".")[0] or other)) // 3
    if not most or abs(len(one) - len(other)) > min(most, 2):
        return None
    distance = edit_distance(one, other, min(most, 2))
    return None if distance is None else 2 + distance


def _bare(name: str) -> str:
    return "".join(char for char in name if char.isalnum())

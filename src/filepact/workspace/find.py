"""Find files by a glob on their path."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.domain.deadline import FOREVER, Deadline
from filepact.errors import FilepactError
from filepact.fs.walk import walk
from filepact.text.glob import Glob, compile_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from filepact.domain.deadline import Stopped
    from filepact.fs.root import Root
    from filepact.fs.walk import Walk
    from filepact.text.ignore import Why

__all__ = ["ALL_SEARCHED", "Found", "Skipped", "Unsearched", "find_files", "unsearched"]

_MOST_LOOKED_AT = 1_000
_MOST_COUNTED = 5


@dataclass(frozen=True, slots=True)
class Unsearched:
    """What a search did not look at, because nobody mostly wants it.

    Attributes:
        folders: Ignored folders that hold something, those first that are more often meant.
        files: How many ignored files there are beside them that would have been looked at.
        protected: How many names the rules keep from being seen, whatever was looked for: a count
            by name would tell the names.
        mounted: How many folders lie on other file systems.
    """

    folders: tuple[Skipped, ...] = ()
    files: int = 0
    protected: int = 0
    mounted: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder that was not searched.

    Attributes:
        files: How many files in it would have been looked at; None where they were not counted.
        floor: Whether there may be more.
    """

    path: str
    why: Why
    files: int | None = None
    floor: bool = False


ALL_SEARCHED: Final = Unsearched()


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to one search for names.

    Attributes:
        paths: What was found, in path order, relative to the root; folders end with a slash.
        total: How many there are, shown or not.
        total_is_floor: Whether there may be more than ``total``.
        unreadable: Folders that could not be read.
        stopped: Why the search ended early.
        looked_at: Files and folders that were compared.
        unsearched: What was left out.
    """

    pattern: str
    paths: tuple[str, ...]
    total: int
    total_is_floor: bool
    unreadable: tuple[str, ...] = ()
    stopped: Stopped = ""
    looked_at: int = 0
    unsearched: Unsearched = ALL_SEARCHED


def find_files(
    root: Root,
    base: str,
    pattern: str,
    *,
    allow: Callable[[str, bool], bool],
    more: Collection[str] = (),
    deadline: Deadline = FOREVER,
    progress: Callable[[int, str], None] = lambda _seen, _path: None,
    limit: int = 100,
) -> Found:
    """Files and links below a folder whose path matches; ignored entries are left out.

    Args:
        root: Where the names begin.
        base: A folder, as a canonical path.
        pattern: A glob, compared with paths below the base.  With a slash at its end it finds
            folders; with ``!`` before it everything that it does not match.
        allow: The guard's question.
        more: Files that count as being there, though the disk does not have them.
        deadline: Asked before each folder; ends the search with what it has.
        progress: Told now and then how many entries were seen, and where.
        limit: Most paths to return; the rest is only counted.

    Raises:
        SearchFailedError: The pattern cannot be understood.
    """
    inverted = pattern.startswith("!")
    glob = Glob.parse_unwanted(pattern[1:]) if inverted else Glob.parse(pattern, braces=True)
    folders = glob.finds_folders and not inverted
    accepts = (lambda _path: True) if folders else compile_filter(pattern)
    skip = 0 if base == "." else len(base) + 1
    paths: list[str] = []
    total = looked_at = 0
    come = [path for path in more if not folders and glob.matches(path[skip:]) != inverted]
    if root.place(base).kind == "missing":
        return Found(pattern, tuple(sorted(come)[:limit]), len(come), False)
    with walk(root, base, allow=allow, cancelled=deadline.passed, progress=progress) as entries:
        for prefix, names, odd, folder, _depth, _descriptor in entries.batches():
            looked_at += len(names)
            files = [name for name in names if odd.get(name) != "other"] if odd else names
            found = glob.among(prefix[skip:], files)
            if inverted:
                unwanted = frozenset(found)
                found = [name for name in files if name not in unwanted]
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
        return Found(
            pattern,
            tuple(paths),
            total,
            not entries.complete,
            tuple(entries.unreadable),
            deadline.why if entries.cancelled else "",
            looked_at,
            unsearched(entries, root, base, allow, accepts),
        )


def unsearched(
    walked: Walk,
    root: Root,
    base: str,
    allow: Callable[[str, bool], bool],
    accepts: Callable[[str], bool],
) -> Unsearched:
    """What a finished walk has left out; only so much of it is counted as takes no time.

    Args:
        walked: The walk.
        root: Its root.
        base: Its base.
        allow: Its question.
        accepts: Whether the search is about a file, by its path below the base.
    """
    skip = 0 if base == "." else len(base) + 1
    protected = walked.refused
    left = _MOST_LOOKED_AT
    folders: list[Skipped] = []
    # What programs fill comes last: people hardly ever mean it.
    for path, why in sorted(walked.left_out, key=lambda one: (not one.why, one.path.count("/"))):
        if left <= 0 or len(folders) >= _MOST_COUNTED or walked.cancelled:
            folders.append(Skipped(path, why))
            continue
        files = 0
        with walk(root, path, allow=allow, most=left) as inside, suppress(FilepactError):
            for prefix, names, *_ in inside.batches():
                files += sum(accepts(f"{prefix}{name}"[skip:]) for name in names)
        left -= inside.looked_at
        if files or not inside.complete:
            folders.append(Skipped(path, why, files, floor=not inside.complete))
    files = sum(accepts(path[skip:]) for path in walked.ignored)
    return Unsearched(tuple(folders), files, protected, walked.beyond)

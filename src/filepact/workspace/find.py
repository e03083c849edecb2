"""Find files by a glob on their path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.fs.walk import walk
from filepact.text.glob import Glob

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.fs.root import Root

__all__ = ["Found", "find_files"]


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to one search for names.

    Attributes:
        paths: What was found, in path order, relative to the root; folders end with a slash.
        total: How many there are, shown or not.
        total_is_floor: Whether there may be more than ``total``.
        unreadable: Folders that could not be read.
        cancelled: Whether the search ended because the caller said so.
        looked_at: Files and folders that were compared.
    """

    pattern: str
    paths: tuple[str, ...]
    total: int
    total_is_floor: bool
    unreadable: tuple[str, ...] = ()
    cancelled: bool = False
    looked_at: int = 0


def find_files(
    root: Root,
    base: str,
    pattern: str,
    *,
    allow: Callable[[str, bool], bool],
    cancelled: Callable[[], bool] = lambda: False,
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
        cancelled: Asked before each folder; true ends the search.
        progress: Told now and then how many entries were seen, and where.
        limit: Most paths to return; the rest is only counted.

    Raises:
        SearchFailedError: The pattern cannot be understood.
    """
    inverted = pattern.startswith("!")
    glob = Glob.parse_unwanted(pattern[1:]) if inverted else Glob.parse(pattern, braces=True)
    folders = glob.finds_folders and not inverted
    skip = 0 if base == "." else len(base) + 1
    paths: list[str] = []
    total = looked_at = 0
    with walk(root, base, allow=allow, cancelled=cancelled, progress=progress) as entries:
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
        return Found(
            pattern,
            tuple(paths),
            total,
            not entries.complete,
            tuple(entries.unreadable),
            entries.cancelled,
            looked_at,
        )

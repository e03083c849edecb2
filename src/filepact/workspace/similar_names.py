"""Suggests existing names for a name that leads to nothing.

Only names that may be seen are looked at, and only so many that nobody waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError
from filepact.fs.walk import TreeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.fs.root import Root

__all__ = ["near_names"]

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
        wanted = last.casefold()
        found: list[tuple[int, int, str]] = []
        with TreeReader(self._root, allow=self._allow, most=_MOST_NAMES) as entries:
            for prefix, names, _odd, folder, *_ in entries.batches():
                here = [prefix + name for name in names if name.casefold() == wanted]
                if folder.casefold() == wanted:
                    here.append(f"{prefix}{folder}/")
                parts = prefix.split("/")
                common = len(set(parts) & set(above))
                found += [(-common, len(parts), one) for one in here]
        return [one for *_, one in sorted(found)]


def _distance(wanted: str, name: str) -> int | None:
    """The distance of a name from the one wanted; None if it is too far."""
    if name == wanted:
        return 0
    one, other = wanted.casefold(), name.casefold()
    if one == other:
        return 1
    if _bare(one) == _bare(other) != "":
        return 2
    # An ending is the same for many, so it makes no name more like another.
    most = min(len(one.rpartition(".")[0] or one), len(other.rpartition(".")[0] or other)) // 3
    if not most or abs(len(one) - len(other)) > min(most, 2):
        return None
    distance = _edits(one, other, min(most, 2))
    return None if distance is None else 2 + distance


def _edits(one: str, other: str, most: int) -> int | None:
    """The number of characters to insert, delete, replace or swap with the next; None for more than a bound."""
    if len(set(one) ^ set(other)) > 2 * most:
        return None
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, char in enumerate(one, start=1):
        row = [at]
        for to, char_there in enumerate(other, start=1):
            best = min(last[to] + 1, row[-1] + 1, last[to - 1] + (char != char_there))
            if at > 1 and to > 1 and char == other[to - 2] and one[at - 2] == char_there:
                best = min(best, before[to - 2] + 1)
            row.append(best)
        if min(row) > most:
            return None
        before, last = last, row
    return last[-1] if last[-1] <= most else None


def _bare(name: str) -> str:
    return "".join(char for char in name if char.isalnum())

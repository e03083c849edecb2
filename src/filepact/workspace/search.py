"""The port of searches: how a search walks a root and what is known of its files, and that nothing is by itself.

A server hands the workspace what keeps an index (`filepact-index`); without one every byte is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from filepact.fs.walk import TreeReader

if TYPE_CHECKING:
    from collections.abc import Hashable
    from contextlib import AbstractContextManager

    from filepact.domain.policy import EntryFilter
    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact.text.codec import NamedEncoding
    from filepact.text.literals import Needs
    from filepact.workspace.guard import Guard

T = TypeVar("T")

__all__ = ["FILE_LIMIT", "NO_INDEX", "KnownTexts", "OpenIndexes", "RootSearch", "SearchIndexes"]

FILE_LIMIT: Final = 64 << 20
"""Largest file that is searched, in bytes."""

_Stamp = tuple[int, ...]
"""Inode, size and both times of a file, as `Root.glance` has them."""


class KnownTexts(NamedTuple):
    """The index of texts for one search.

    Attributes:
        look: The files that may match, in path order.
        sure: Whether the text of a file is known.
        recoded: Those whose text is not what their bytes are.
        same: Whether it is of a file with this stamp.
        passed: How many of the others are texts.
        binary: How many of them are none.
    """

    look: list[str]
    sure: Callable[[str], bool]
    recoded: Collection[str]
    same: Callable[[str, _Stamp], bool]
    passed: int
    binary: int


class RootSearch:
    """The view of a root that one search has, from the moment it began; here of one of which nothing is known."""

    def walk(
        self,
        root: Root,
        base: str,
        *,
        allow: EntryFilter,
        max_depth: int | None = None,
        cancelled: Callable[[], bool],
        progress: Callable[[int, str], None] = lambda _seen, _path: None,
    ) -> TreeReader:
        """A walk through a folder; arguments as for `TreeReader`."""
        return TreeReader(
            root,
            base,
            allow=allow,
            max_depth=max_depth,
            ahead=True,
            cancelled=cancelled,
            progress=progress,
        )

    def answer(
        self,
        _base: str,
        _allow: EntryFilter,
        _asked: Hashable,
        make: Callable[[], T],
        _lasts: Callable[[T], bool],
    ) -> T:
        """An answer about names, if something is ``asked`` that can be compared one that was made before.

        Args:
            make: Makes it.
        """
        return make()

    def known(
        self, _base: str, _allow: EntryFilter, _glob: str, _needs: Needs, _held: Collection[str]
    ) -> KnownTexts | None:
        """The index of texts; None where there is none.

        Its arguments are the base and the filter of the walk, the glob of the files below the base that are searched,
        the literals that a text must hold to match, and the files of which something else than the disk is searched.
        """
        return None


NO_INDEX: Final = RootSearch()
"""What is known where nothing is."""


class SearchIndexes(Protocol):
    """The search indexes of all roots of a workspace; for all threads."""

    def search(self, root: Root, /) -> AbstractContextManager[RootSearch]:
        """The view of a root for one search."""

    def close(self) -> None:
        """End the work in the background, and give all memory back."""


OpenIndexes = Callable[
    ["Guard", "Callable[[Root], Callable[[str], NamedEncoding | None]]", "StateFolder"],
    SearchIndexes,
]
"""Opens them with the first search: is told the guard, what is said about files' encodings outside them by root, and the
state folder."""

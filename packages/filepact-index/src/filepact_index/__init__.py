"""The search index: what a server knows of its roots' files, so that the second search opens only those that may match."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact.text.codec import NamedEncoding
    from filepact.workspace.guard import Guard
    from filepact_index.index_file import IndexFile
    from filepact_index.search_index import RootIndexes

__all__ = ["open_indexes"]


def open_indexes(
    guard: Guard,
    given: Callable[[Root], Callable[[str], NamedEncoding | None]],
    state: StateFolder,
    *,
    shared_by: str = "",
) -> RootIndexes:
    """Open the indexes of a workspace, which `Workspace.keep_search_index` wants.

    Args:
        guard: As of `OpenIndexes`.
        given: The same.
        state: The same.
        shared_by: Version of the servers to which they are left in the state folder; empty to leave them to none.
    """
    from filepact_index.search_index import RootIndexes  # noqa: PLC0415 - a server starts without

    keep = partial(_index_file, state, shared_by) if shared_by else None
    return RootIndexes(guard, given, state.locks, keep)


def _index_file(state: StateFolder, version: str, root: Root) -> IndexFile:
    """The file in which servers of one version leave the search index of a root to others."""
    from filepact_index.index_file import IndexFile  # noqa: PLC0415 - as above

    return IndexFile(f"{state.path}/indexes", root, state.locks, version)

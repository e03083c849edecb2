"""Folders that Git takes for a repository though nothing in their names says so.

Git looks for `HEAD`, `objects` and `refs` beside each other (`is_git_directory` in its `setup.c`; with
`commondir`, which names another folder for both, two files are enough).  Whoever stands in such a
folder and says ``git status``, as a prompt of a shell does, runs what its `config` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.domain.names import key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["is_repository", "may_be_inside"]

_PARTS: Final = frozenset(
    {
        *("head", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "info"),
        *("modules", "worktrees", "packed-refs", "index", "gitdir", "reftable"),
    }
)


def may_be_inside(path: str) -> Iterator[str]:
    """The folders above a path that it would be a part of, if they were repositories.

    Args:
        path: Relative to a root; ``.`` stands for the root in the answer.
    """
    parts = path.split("/")
    for at, part in enumerate(parts):
        if key(part) in _PARTS:
            yield "/".join(parts[:at]) or "."


def is_repository(folder: str, there: Callable[[str], bool]) -> bool:
    """Whether Git would take a folder for a repository.

    Args:
        folder: Its path; ``.`` for the root.
        there: Whether something is at a path, or is to be.
    """
    inside = "" if folder == "." else f"{folder}/"
    return there(f"{inside}HEAD") and (
        there(f"{inside}commondir") or (there(f"{inside}objects") and there(f"{inside}refs"))
    )

"""Serving a solution: which folder that is, and what an agent is told of it first."""

from __future__ import annotations

from posixpath import basename, dirname
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.workspace.workspace import Workspace

__all__ = ["solution_instructions", "solution_place"]

_ENDS = (".sln", ".slnx", ".csproj")


def solution_place(paths: Sequence[str]) -> tuple[list[str], str]:
    """The folders in use, that of the solution first, and the solution's file in it.

    Args:
        paths: As they were typed: a solution, a project or a folder, then further folders.

    Returns:
        The folders, and the name of the file in the first; empty where a folder was named.

    Raises:
        InvalidParamsError: A file stands where only folders can.
    """
    first, *others = paths
    if any(map(_is_solution, others)):
        raise InvalidParamsError(
            "several solutions were named",
            hint="Start one server for each; what follows the solution are further folders.",
        )
    if not _is_solution(first):
        return [first, *others], ""
    return [dirname(first) or ".", *others], basename(first)


def _is_solution(path: str) -> bool:
    # The end of the name decides: nothing is opened before the roots are.
    return path.lower().endswith(_ENDS)


def solution_instructions(workspace: Workspace, name: str, *, changes: bool) -> str:
    """What an agent should know before its first call.

    Args:
        workspace: What it will work in.
        name: The solution's file; empty for a folder.
        changes: Whether files can be changed.
    """
    first, *others = (root.path for root in workspace.guard.roots)
    what = f"The solution {_short(name, 60)} in" if name else "The folder"
    said = [f"{what} {_short(first)}; relative paths start there."]
    if others:
        shown = ", ".join(_short(one, 80) for one in others[:2])
        more = ", ..." if len(others) > 2 else ""
        said.append(f"Also {shown}{more}, by absolute path.")
    said.append(
        "Every answer is {success, data, meta, error}. Diagnostics of language servers count only "
        "where fresh is true."
    )
    if changes:
        said.append(
            "write_file previews, with the diagnostics that the text would add and remove; send "
            "applyChanges: true to write. applied: on the disk; workspaceUpdate.updated: taken up by "
            "the servers. With kind pending or stale call sync or get_diagnostics, and do not write "
            "again. Every change is recorded and the person can undo it."
        )
        if workspace.mode == "preview":
            said.append(
                "Changes here wait for the person: with data.pending nothing is changed yet."
            )
    else:
        said.append("Nothing can be changed here.")
    return " ".join(said)


def _short(path: str, room: int = 120) -> str:
    """A path that leaves room for the rest."""
    return path if len(path) <= room else f"...{path[3 - room :]}"

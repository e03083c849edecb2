"""The folders that came and went with files that others changed, as the disk and what was known of it tell."""

from __future__ import annotations

from posixpath import dirname
from typing import TYPE_CHECKING

from filepact.domain.change import FileChange
from filepact.domain.document import Revision, WorkspacePath
from filepact.errors import FilepactError
from filepact.workspace.folder_steps import turning_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.domain.document import RootId
    from filepact.workspace.guard import Guard

    KnownFolders = Mapping[RootId, Mapping[str, int]]

__all__ = ["made_folders", "with_folders"]


def with_folders(
    guard: Guard, changes: Iterable[FileChange], known: KnownFolders
) -> list[FileChange]:
    """Changes of files with the folders that went with them, and that took or left the name of one.

    Of the folders that came with them only those with permission bits of their own are among these: others are made
    where they are needed.  A folder that comes or goes by itself is not seen: nothing lies in it.

    Args:
        guard: The roots.
        changes: What was found.
        known: The folders that were there before, with their permission bits, by root.
    """
    found: dict[WorkspacePath, FileChange] = {}
    tops: set[WorkspacePath] = set()
    still: set[WorkspacePath] = set()

    def is_gone(folder: WorkspacePath) -> bool:
        """Asked of each folder once, and of none below one that has gone."""
        above = dirname(folder.path)
        if above in known.get(folder.root, {}) and is_gone(WorkspacePath(folder.root, above)):
            tops.add(folder)
        if folder not in tops and folder not in still:
            (tops if _folder_at(guard, folder) is None else still).add(folder)
        return folder in tops

    for change in changes:
        root, path = change.path
        before, after, there = change.before, change.after, known.get(root, {})
        if before is None and path in there:
            before = Revision.folder(there[path])
        elif after is None:
            above = dirname(path)
            if above not in there or not is_gone(WorkspacePath(root, above)):
                after = _folder_at(guard, change.path)
        found[change.path] = FileChange(change.path, before, after)
    for root, path in made_folders(found.values(), known):
        where = WorkspacePath(root, path)
        state = _folder_at(guard, where)
        if state and state.mode & 0o777 != guard.root_of(root).new_folder_mode:
            found.setdefault(where, FileChange(where, None, state))
    found |= {
        path: FileChange(path, Revision.folder(mode), None)
        for root, there in (known.items() if tops else ())
        for path, mode in ((WorkspacePath(root, name), mode) for name, mode in there.items())
        if path not in found and (path in tops or turning_above(path, tops))
    }
    return [*found.values()]


def _folder_at(guard: Guard, path: WorkspacePath) -> Revision | None:
    """The state of a folder; None where none is."""
    try:
        place = guard.root_of(path.root).place(path.path, follow=False)
    except FilepactError:
        return None
    return Revision.folder(place.mode) if place.kind == "directory" else None


def made_folders(
    changes: Iterable[FileChange], known: KnownFolders
) -> tuple[tuple[RootId, str], ...]:
    """Folders that came with new files, outermost first."""
    made: set[tuple[RootId, str]] = set()
    for change in changes:
        above = dirname(change.path.path) if change.before is None else ""
        while above and above not in known.get(change.path.root, ()):
            made.add((change.path.root, above))
            above = dirname(above)
    return tuple(sorted(made))

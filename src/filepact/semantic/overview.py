"""A workspace as a whole: what was opened, who serves it, what is wrong in it, what was missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.semantic.project import Loaded, Provider, Surveyed, Synced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from filepact.domain.document import WorkspacePath
    from filepact.lsp.diagnostics import Report
    from filepact.lsp.pool import Pool
    from filepact.semantic.asked import Limit
    from filepact.semantic.ground import Ground
    from filepact.semantic.membership import Members
    from filepact.semantic.project import LoadedKind

__all__ = ["describe_opened", "is_solution", "providers_of", "survey_all", "sync_all"]

_EVERY_FILE: Final = 300
_SOLUTIONS: Final = (".sln", ".slnx")


def is_solution(path: str) -> bool:
    """Whether a path is a solution file's, by its name."""
    return path.lower().endswith(_SOLUTIONS)


def describe_opened(
    path: str, ground: Ground, members: Members, show: Callable[[str], str]
) -> Loaded:
    """What was opened.

    Args:
        path: The file or folder, absolute.
        ground: The root that it lies in.
        members: The projects there.
        show: A file's absolute path as a reader knows it.
    """
    kind: LoadedKind = "folder" if path == ground.root else "project"
    kind = "solution" if is_solution(path) else kind
    files = len(ground.members())
    read = members.solution()
    if read is None:
        return Loaded(kind, path, (), files)
    said = dict.fromkeys(
        f"{show(one.path)}{f':{one.line}' if one.line else ''}: {one.text}"
        for one in read.all_messages()
    )
    names = tuple(one.name for one in read.projects)
    return Loaded(kind, path, names, files, read.approximate, tuple(said))


def providers_of(pool: Pool) -> tuple[Provider, ...]:
    """All servers that may be used, installed or not."""
    running = pool.status()
    return tuple(
        Provider(
            one.name,
            one.role,
            tuple(glob for glob, _ in one.files),
            pool.program(one),
            one.install,
            tuple(each for each in running if each.server == one.name),
        )
        for one in pool.servers
    )


def survey_all(
    grounds: Iterable[Ground], may_see: Callable[[WorkspacePath], bool], limit: Limit
) -> Surveyed:
    """What servers find in everything.

    Of a large root only files are looked at that a server names, or was asked about before.

    Args:
        grounds: The roots.
        may_see: Whether whoever asks may be told what is in a file.
        limit: How long to wait.
    """
    reports: list[Report] = []
    messages: dict[str, None] = {}
    for ground in grounds:
        members = ground.members()
        if len(members) > _EVERY_FILE:
            members = ground.affected(members, limit)[:_EVERY_FILE]
            messages["not all files could be looked at"] = None
        seen = [path for path in members if may_see(path) and ground.claimed(path.absolute)]
        reports += ground.report(seen, limit) if seen else ()
    messages |= dict.fromkeys(f"{one.server}: {one.reason}" for one in reports if not one.fresh)
    complete = not messages and all(one.complete for one in reports)
    return Surveyed(tuple(reports), complete, tuple(messages))


def sync_all(
    grounds: Iterable[Ground], *, force: bool, restart: Callable[[Ground], None]
) -> Synced:
    """Tell servers of what others have written.

    Args:
        grounds: The roots.
        force: Whether to tell them of every file, changed or not.
        restart: Ends the servers of a root that has too many files for that.

    Raises:
        PathBlockedError: A root is no longer there.
    """
    grounds = list(grounds)
    before, reason = sum(one.disk.turn for one in grounds), ""
    known: dict[str, bool] = {}
    for ground in grounds:
        if force and ground.disk.begun:
            members = ground.members()
            if len(members) > _EVERY_FILE:
                reason = "there are too many files to tell of each"
                restart(ground)
                continue
            ground.disk.tell_anew(members)
            known |= {path.absolute: True for path in members}
        known |= {one.path: ground.claimed(one.path) for one in ground.disk.catch_up()}
    updated = tuple(path for path, claimed in known.items() if claimed)
    skipped = tuple(path for path, claimed in known.items() if not claimed)
    after = sum(one.disk.turn for one in grounds)
    return Synced(updated, skipped, len(known), before, after, bool(reason), reason)

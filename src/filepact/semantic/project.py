"""What a workspace is for its servers: what was opened, who is there, what they were told; as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from filepact.lsp.diagnostics import Report
    from filepact.lsp.outcome import Status
    from filepact.lsp.servers import Role

__all__ = ["Loaded", "LoadedKind", "Provider", "Surveyed", "Synced"]

LoadedKind = Literal["solution", "project", "folder"]


@dataclass(frozen=True, slots=True)
class Synced:
    """What others had written, and the servers were told of.

    Attributes:
        updated: Files that a server knows, absolute.
        skipped: Files that none knows; they were told of all the same, for settings lie in such.
        total: How many these are.
        revision_before: How many changes the servers had been told of before.
        revision_after: The same, after.
        reloaded: Whether all servers were ended instead, to start with the disk as it is.
        reason: Why; else empty.
    """

    updated: tuple[str, ...]
    skipped: tuple[str, ...]
    total: int
    revision_before: int
    revision_after: int
    reloaded: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was opened for the servers.

    Attributes:
        kind: What it is.
        path: The file or folder, absolute.
        projects: The names of its projects.
        files: How many files there are that a server knows.
        approximate: Whether what belongs to a project is not known for sure.
        messages: What a reader should know.
    """

    kind: LoadedKind
    path: str
    projects: tuple[str, ...]
    files: int
    approximate: bool = False
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that may be used.

    Attributes:
        name: Its name.
        role: What it is for.
        files: Globs of the files that it knows.
        program: Where it is; None if it, or what it needs, is not installed.
        install: How a person gets it.
        running: What it is doing on each root where it was started.
    """

    name: str
    role: Role
    files: tuple[str, ...]
    program: str | None
    install: str
    running: tuple[Status, ...] = ()


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What servers find in a whole workspace.

    Attributes:
        reports: Of each server and each file that was looked at.
        complete: Whether that is all.
        messages: Why it is not.
    """

    reports: tuple[Report, ...]
    complete: bool
    messages: tuple[str, ...] = ()

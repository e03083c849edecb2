"""How the semantic workspace took a change, or would take it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from filepact.lsp.diagnostics import Confirmation, Diagnostic

__all__ = ["Findings", "Kind", "Scope", "Took", "WorkspaceUpdate"]

Kind = Literal[
    "none",
    "preview",
    "updated",
    "added",
    "removed",
    "renamed",
    "reloaded",
    "pending",
    "stale",
    "failed",
]
"""What became of a change.

``none``: no server claims the files.  ``preview``: nothing was done.  ``pending``: the servers were
told and have not answered in time.  ``stale``: a server is known not to have taken it.  ``failed``: no
server is there to take it.
"""

Scope = Literal["file", "dependents", "project"]
"""What was asked about: the changed files alone, those that depend on them too, or everything."""


@dataclass(frozen=True, slots=True)
class Took:
    """How one server took it.

    Attributes:
        server: Its name.
        kind: What became of it there.
        event: What the server was told, in the protocol's words, such as ``didChange``; may be empty.
        confirmed_by: How that is known.
        revision_before: How many changes the server had been told of before.
        revision_after: The same, after.
        seconds: From the change to the answer.
        message: Why it is not confirmed; else empty.
    """

    server: str
    kind: Kind
    event: str
    confirmed_by: Confirmation
    revision_before: int
    revision_after: int
    seconds: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the servers find, of all that were asked.

    Attributes:
        scope: What was asked about.
        fresh: Whether all of it is about the present, or the proposed, texts.
        complete: Whether nothing is missing within the scope.
        new: What was not found before.
        fixed: What is not found any more.
        total: How many there are; None where only differences mean something.
        compared: Whether it is known of all of it what was found before; what is not is neither
            new nor fixed.
    """

    scope: Scope
    fresh: bool
    complete: bool
    new: tuple[Diagnostic, ...] = ()
    fixed: tuple[Diagnostic, ...] = ()
    total: int | None = None
    compared: bool = True


@dataclass(frozen=True, slots=True)
class WorkspaceUpdate:
    """How all servers took a change, or would take it.

    Attributes:
        kind: The worst of what became of it at any server.
        updated: Whether every server that claims the files is proven to have it.
        in_workspace_before: Whether a project included the file before; a file on the disk that no
            project includes is not in the workspace.
        in_workspace_after: The same, after; of a preview, if it were done.
        message: What a reader should know; None when there is nothing.
        servers: One by one.
        findings: What they find; None where nothing is known.
    """

    kind: Kind
    updated: bool
    in_workspace_before: bool
    in_workspace_after: bool
    message: str | None = None
    servers: tuple[Took, ...] = ()
    findings: Findings | None = None

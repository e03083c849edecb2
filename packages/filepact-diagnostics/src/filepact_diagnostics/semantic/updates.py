"""Changes as language servers see them, and how they took them, as values."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from filepact.errors import BinaryFileError, NotFoundError
from filepact.values import dataclass, field
from filepact_diagnostics.lsp.diagnostics import compare, is_proof, notes_of, weakest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Revision, WorkspacePath
    from filepact.text.lines import Position
    from filepact.workspace.documents import DocumentCache
    from filepact_diagnostics.lsp.diagnostics import (
        Confirmation,
        Diagnostic,
        FileDiagnostics,
        ServerDiagnostics,
        ServerStatus,
    )
    from filepact_diagnostics.lsp.spec import Role

__all__ = [
    "DiagnosticsSummary",
    "FreshDiagnostics",
    "Kind",
    "LoadResult",
    "LoadedKind",
    "Reference",
    "ReferenceList",
    "Scope",
    "ServerAction",
    "ServerEntry",
    "ServerUpdate",
    "SyncResult",
    "TextChange",
    "UpdateDiagnostics",
    "WorkspaceDiagnostics",
    "WorkspaceUpdate",
    "combine",
    "kind_of",
    "merge_changes",
    "preview_of",
    "text_changes",
    "update_of",
]

TextChangeKind = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True, slots=True)
class TextChange:
    """The change of one file, as texts before and after.

    Attributes:
        path: The file; of a renamed one its new name.
        kind: What becomes of it.
        before: What it held; None for no file, and where that was no text.
        after: What it is to hold; the same.
        old: Where a renamed file was.
    """

    path: WorkspacePath
    kind: TextChangeKind
    before: str | None = None
    after: str | None = None
    old: WorkspacePath | None = None

    @property
    def absolute(self) -> str:
        """The path on the host."""
        return self.path.absolute


def merge_changes(
    earlier: Iterable[TextChange], later: Iterable[TextChange]
) -> tuple[TextChange, ...]:
    """Join two sequences of changes that follow each other."""
    found = {one.path: one for one in earlier}
    for one in later:
        was = found.pop(one.old or one.path, None)
        if was is None:
            found[one.path] = one
            continue
        new = was.kind == "created" and one.kind != "deleted"
        if was.kind == "created" and one.kind == "deleted":
            continue
        kind = "created" if new else "changed" if was.kind == "deleted" else one.kind
        if kind == "changed" and was.kind == "renamed":
            kind = "renamed"
        old = None if kind in ("created", "changed", "deleted") else was.old or one.old
        found[one.path] = TextChange(one.path, kind, was.before, one.after, old)
    return tuple(found.values())


def text_changes(changes: ChangeSet, versions: DocumentCache) -> tuple[TextChange, ...]:
    """The text changes of a change set.

    A deletion and a creation of the same bytes are a rename.  Folders, links and changes of permission
    bits alone are left out.

    Args:
        changes: The change set.
        versions: The states that it names; one that is missing counts as no text.
    """
    files = [
        one
        for one in changes.changes
        if not any(side and (side.is_folder or side.is_link) for side in (one.before, one.after))
    ]
    gone = {one.before.content: one for one in files if one.before and not one.after}
    steps: list[TextChange] = []
    moved: set[WorkspacePath] = set()

    def text_of(path: WorkspacePath, side: Revision | None) -> str | None:
        try:
            return None if side is None else versions.of(path, side).text
        except (BinaryFileError, KeyError, NotFoundError):
            return None

    def step(change: FileChange) -> TextChange:
        path, kind = change.path, _TEXT_CHANGE_KINDS[change.kind]
        after = text_of(path, change.after)
        source = gone.get(change.after.content) if change.after and kind == "created" else None
        if source is not None and source.path not in moved and source.path.root == path.root:
            moved.add(source.path)
            return TextChange(
                path, "renamed", text_of(source.path, source.before), after, source.path
            )
        return TextChange(path, kind, text_of(path, change.before), after)

    for change in files:
        if change.before and change.after and change.before.content == change.after.content:
            continue
        steps.append(step(change))
    return tuple(one for one in steps if one.kind != "deleted" or one.path not in moved)


_TEXT_CHANGE_KINDS: dict[str, TextChangeKind] = {
    "create": "created",
    "modify": "changed",
    "delete": "deleted",
}


# -- how servers took it -----------------------------------------------------------------


Kind = Literal[
    "none", "preview", "updated", "added", "removed", "renamed", "reloaded", "pending", "stale",
    "failed",
]  # fmt: skip
"""What became of a change.

``none``: no server claims the files, or no project includes them.  ``preview``: nothing was done.
``pending``: the servers were told and have not answered in time.  ``stale``: a server is known not to
have taken it.  ``failed``: no server is there to take it.
"""

Scope = Literal["file", "dependents", "project"]
"""What was asked about: the changed files alone, those that depend on them too, or everything."""


@dataclass(frozen=True, slots=True)
class ServerUpdate:
    """The update of one server by a change.

    Attributes:
        server: Its name.
        kind: What became of it there.
        event: What the server was told, in the protocol's words, such as ``didChange``; may be empty.
        confirmed_by: How that is known.
        revision_before: How many changes the server had been told of before.
        revision_after: The same, after.
        seconds: From the change to the answer.
        message: Why it is not confirmed, else how far the server's answer goes; may be empty.
    """

    server: str
    kind: Kind
    event: str
    confirmed_by: Confirmation
    revision_before: int
    revision_after: int
    seconds: float
    message: str = ""

    @property
    def proven(self) -> bool:
        return is_proof(self.confirmed_by)


@dataclass(frozen=True, slots=True)
class UpdateDiagnostics:
    """The diagnostics of all servers that were asked.

    Attributes:
        scope: What was asked about.
        fresh: Whether all of it is about the present, or the proposed, texts.
        complete: Whether nothing is missing within the scope.
        new: What was not found before.
        fixed: What is not found any more.
        total: How many there are; None where only differences mean something, or some are unknown.
        compared: Whether it is known of all of it what was found before; what is not is neither
            new nor fixed.
        files: How many files they have looked at.
        pending: How many they are still to be asked about, of which a later answer tells.
        doubtful: Files that may use what comes, of which a server sees nothing before it is there.
    """

    scope: Scope
    fresh: bool
    complete: bool
    new: tuple[Diagnostic, ...] = ()
    fixed: tuple[Diagnostic, ...] = ()
    total: int | None = None
    compared: bool = True
    files: int = 0
    pending: int = 0
    doubtful: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WorkspaceUpdate:
    """The update of all servers by a change, done or previewed.

    Attributes:
        kind: The worst of what became of it at any server; ``none`` where no project includes the file.
        updated: Whether every server that claims the files is proven to have it.
        in_workspace_before: Whether a project included the file before; a file on the disk that no
            project includes is not in the workspace.
        in_workspace_after: The same, after; of a preview, if it were done.
        message: What a reader should know; None when there is nothing.
        servers: One by one.
        findings: What they find; None where nothing is known.
        turn: How much they had been told when they were asked, of a preview.
        before: What they find by now in files that see it on the disk alone, by server and file.
    """

    kind: Kind
    updated: bool
    in_workspace_before: bool
    in_workspace_after: bool
    message: str | None = None
    servers: tuple[ServerUpdate, ...] = ()
    findings: UpdateDiagnostics | None = None
    turn: int = 0
    before: Mapping[tuple[str, str], tuple[Diagnostic, ...]] | None = None


@dataclass(frozen=True, slots=True)
class FreshDiagnostics:
    """Diagnostics of servers, and whether they are proven to be about present texts.

    Attributes:
        answers: One of each server; none if nothing came in time.
        reason: Why they may be about other texts than those on the disk; empty if that is
            excluded.
        texts: What the files held on the disk, by absolute path.
        moment: The moment of the disk's texts when the answers were there.
    """

    answers: tuple[ServerDiagnostics, ...] = ()
    reason: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    moment: int = 0


# -- from answers to an update -----------------------------------------------------------


_WORST: Final[tuple[Kind, ...]] = (
    *("failed", "stale", "pending", "reloaded", "renamed"),
    *("removed", "added", "updated", "preview", "none"),
)
_UPDATE_KINDS: Final[dict[str, Kind]] = {
    "created": "added",
    "changed": "updated",
    "deleted": "removed",
    "renamed": "renamed",
}
_OUTSIDE: Final = "no project includes the file, so the workspace is without it"
_EVENTS: Final[dict[Kind, str]] = {
    "added": "didOpen",
    "updated": "didChange",
    "preview": "didChange",
    "removed": "didChangeWatchedFiles",
    "renamed": "didChangeWatchedFiles",
}


class DiagnosticsSummary:
    """Adds up what several servers find in several files of a scope, and what they found before."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._complete = True
        self._compared = True
        self._known = False
        self._counted = False
        self._unknown = False
        self._totals: dict[tuple[str, str], int] = {}
        self._files: set[str] = set()
        self.doubtful: set[str] = set()
        self._pending = 0
        self._before: dict[tuple[str, str], Iterable[Diagnostic]] = {}
        self._after: dict[tuple[str, str], Iterable[Diagnostic]] = {}
        self._gone: list[Diagnostic] = []

    def miss(self) -> None:
        """Record that something within the scope is not known."""
        self._complete = False

    def leave(self, files: int) -> None:
        """Record that files within the scope are still to be asked about."""
        self._pending += files
        self._complete &= not files

    def add(
        self,
        report: FileDiagnostics,
        before: Iterable[Diagnostic] | None,
        *,
        only_new: bool = False,
    ) -> None:
        """Add a server's report about a file; the last one about it counts.

        Args:
            report: What it says.
            before: What it found before; None if that is not known.
            only_new: Whether only the difference means something.
        """
        if not report.fresh:
            self._complete = False
            return
        self._complete &= report.complete
        self._unknown |= not report.known
        if not (report.known or report.diagnostics):
            return
        self._known = True
        self._files.add(report.path)
        if not only_new:
            self._counted = True
            self._totals[report.server, report.path] = len(report.diagnostics)
        if before is None:
            self._compared = False
            return
        self._before[report.server, report.path] = tuple(before)
        self._after[report.server, report.path] = report.diagnostics

    def gone(self, before: Iterable[Diagnostic]) -> None:
        """Add what was found in a file that is not there any more."""
        self._known = self._counted = True
        self._gone += before

    def findings(self) -> UpdateDiagnostics | None:
        """The sum; None where nothing is known."""
        if not self._known and not self.doubtful:
            return None
        before, after = self._before.values(), self._after.values()
        delta = compare([*self._gone, *chain(*before)], [*chain(*after)])
        total = sum(self._totals.values()) if self._counted and not self._unknown else None
        return UpdateDiagnostics(
            self._scope,
            True,
            self._complete,
            delta.new,
            delta.fixed,
            total,
            self._compared,
            len(self._files),
            self._pending,
            frozenset(self.doubtful),
        )


def kind_of(steps: Iterable[TextChange]) -> Kind:
    """The kind of an update if the servers take the change."""
    kinds = {_UPDATE_KINDS[one.kind] for one in steps}
    return kinds.pop() if len(kinds) == 1 else "updated"


def update_of(
    answer: ServerDiagnostics, wanted: Kind, changed: Collection[str], told: int
) -> ServerUpdate:
    """The update of a server by a change."""
    reports = [one for one in answer.reports if one.path in changed] or answer.reports
    confirmed = weakest(reports)
    kind = wanted
    message = "; ".join(notes_of(answer.reports))
    if answer.state in ("failed", "stale"):
        kind, message = answer.state, answer.message
    elif not is_proof(confirmed) and (reports or answer.state == "pending"):
        kind = "pending"
        message = next((one.reason for one in reports if not one.fresh), answer.message)
    before = max(answer.changes - told, 0)
    return ServerUpdate(
        answer.server,
        kind,
        answer.event or _EVENTS.get(wanted, ""),
        confirmed,
        before,
        answer.changes,
        answer.seconds,
        message,
    )


def preview_of(answer: ServerDiagnostics, changed: Collection[str], told: int) -> ServerUpdate:
    """The update of a server by a change that is only previewed."""
    confirmed = weakest(one for one in answer.reports if one.path in changed)
    if any(one.confirmed_by == "quiet window" for one in answer.before):
        confirmed = "quiet window"  # It can prove nothing, however long it is asked.
    message = "; ".join(notes_of(answer.reports)) if is_proof(confirmed) else answer.message
    return ServerUpdate(
        answer.server, "preview", "didChange", confirmed, told, told, answer.seconds, message
    )


def combine(
    servers: Iterable[ServerUpdate],
    findings: UpdateDiagnostics | None,
    members: tuple[bool, bool],
    message: str = "",
) -> WorkspaceUpdate:
    """The update of the workspace by a change; of several servers the worst counts.

    A server that was given a file's text has a file, and its workspace may still not.

    Args:
        servers: One by one.
        findings: What they find.
        members: Whether the file belonged to the workspace before, and afterwards.
        message: What a reader should know besides.
    """
    servers = tuple(servers)
    kind: Kind = min((one.kind for one in servers), key=_WORST.index, default="none")
    proven = kind not in ("none", "preview", "failed", "stale", "pending")
    read = kind != "preview" and findings is not None and findings.doubtful
    outside = bool(servers) and kind != "removed" and not members[1] and not read
    updated = proven and not outside and all(one.proven for one in servers)
    if outside:
        message = "; ".join(filter(None, (message, _OUTSIDE)))
    kind = "none" if outside and proven else kind
    told = [f"{one.server}: {one.message}" for one in servers if one.message]
    if findings is not None and not findings.complete and not (message or told):
        some = "1 file was" if findings.files == 1 else f"{findings.files} files were"
        message = f"{some} looked at, not all that may be concerned"
        if findings.pending:
            message += f"; {findings.pending} are still to be asked about"
    text = "; ".join(dict.fromkeys([message, *told] if message else told)) or None
    return WorkspaceUpdate(kind, updated, *members, text, servers, findings)


# -- the workspace as a whole ------------------------------------------------------------


LoadedKind = Literal["solution", "project", "folder"]


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The external changes of which the servers were told now.

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
class LoadResult:
    """The result of opening projects for the servers.

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
class ServerEntry:
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
    running: tuple[ServerStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceDiagnostics:
    """The diagnostics of a whole workspace.

    Attributes:
        reports: Of each server and each file that was looked at.
        complete: Whether that is all.
        messages: Why it is not.
    """

    reports: tuple[FileDiagnostics, ...]
    complete: bool
    messages: tuple[str, ...] = ()


# -- what servers know of places ---------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One place where a name is used; lines and columns in characters, from 0, the end outside.

    Attributes:
        path: The file, absolute.
        text: The line, without the blanks around it, and cut where it is long.
    """

    path: str
    start: Position
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class ReferenceList:
    """Where a name is used, and declared.

    Attributes:
        server: Which says so.
        name: The name.
        found: The places, in order.
        hidden: How many more there are in files that may not be read.
        outside: How many more there are outside of all roots.
    """

    server: str
    name: str
    found: tuple[Reference, ...]
    hidden: int
    outside: int


@dataclass(frozen=True, slots=True)
class ServerAction:
    """A code action of a server, by its title."""

    title: str
    kind: str
    server: str
    disabled: str

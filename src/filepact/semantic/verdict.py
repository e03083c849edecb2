"""From what servers answered to how the workspace took a change; no effect and no waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.lsp.diagnostics import compare
from filepact.lsp.outcome import weakest
from filepact.semantic.update import Findings, Took, WorkspaceUpdate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from filepact.lsp.diagnostics import Diagnostic, Report
    from filepact.lsp.outcome import Preview, Update
    from filepact.semantic.texts import Step
    from filepact.semantic.update import Kind, Scope

__all__ = ["Tally", "kind_of", "put_together", "took", "took_preview"]

_WORST: Final[tuple[Kind, ...]] = (
    "failed",
    "stale",
    "pending",
    "reloaded",
    "renamed",
    "removed",
    "added",
    "updated",
    "preview",
    "none",
)
_KINDS: Final[dict[str, Kind]] = {
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


class Tally:
    """Counts what several servers find in several files, and what they found before.

    Args:
        scope: What is asked about.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._complete = True
        self._compared = True
        self._known = False
        self._counted = False
        self._total = 0
        self._before: list[Diagnostic] = []
        self._after: list[Diagnostic] = []

    def miss(self) -> None:
        """Something within the scope is not known."""
        self._complete = False

    def add(
        self, report: Report, before: Iterable[Diagnostic] | None, *, only_new: bool = False
    ) -> None:
        """Count what a server says about a file.

        Args:
            report: What it says.
            before: What it found before; None if that is not known.
            only_new: Whether only the difference means something.
        """
        if not report.fresh:
            self._complete = False
            return
        self._known = True
        self._complete &= report.complete
        if not only_new:
            self._counted = True
            self._total += len(report.diagnostics)
        if before is None:
            self._compared = False
            return
        self._before += before
        self._after += report.diagnostics

    def gone(self, before: Iterable[Diagnostic]) -> None:
        """What was found in a file that is not there any more."""
        self._known = self._counted = True
        self._before += before

    def findings(self) -> Findings | None:
        """All of it; None where nothing is known."""
        if not self._known:
            return None
        delta = compare(self._before, self._after)
        total = self._total if self._counted else None
        return Findings(
            self._scope, True, self._complete, delta.new, delta.fixed, total, self._compared
        )


def kind_of(steps: Iterable[Step]) -> Kind:
    """What becomes of the workspace when all goes well."""
    kinds = {_KINDS[one.kind] for one in steps}
    return kinds.pop() if len(kinds) == 1 else "updated"


def took(answer: Update, wanted: Kind, changed: Collection[str], told: int) -> Took:
    """How a server took a change.

    Args:
        answer: What it answered.
        wanted: What becomes of it when all goes well.
        changed: The files that changed, absolute.
        told: Of how many changes it was told.
    """
    reports = [one for one in answer.reports if one.path in changed] or answer.reports
    confirmed = weakest(reports)
    kind = wanted
    message = ""
    if answer.kind in ("failed", "stale"):
        kind, message = answer.kind, answer.message
    elif confirmed == "none" and (reports or answer.kind == "pending"):
        kind = "pending"
        message = next((one.reason for one in reports if not one.fresh), answer.message)
    before = max(answer.revision_after - told, 0)
    return Took(
        answer.server,
        kind,
        answer.event or _EVENTS.get(wanted, ""),
        confirmed,
        before,
        answer.revision_after,
        answer.seconds,
        message,
    )


def took_preview(answer: Preview, told: int) -> Took:
    """How a server would take a change.

    Args:
        answer: What it answered.
        told: Of how many changes it was told before.
    """
    confirmed = weakest(answer.after)
    message = "" if confirmed != "none" and answer.withdrawn else answer.message
    return Took(
        answer.server, "preview", "didChange", confirmed, told, told, answer.seconds, message
    )


def put_together(
    servers: Iterable[Took],
    findings: Findings | None,
    members: tuple[bool, bool],
    message: str = "",
) -> WorkspaceUpdate:
    """How all of them took it; the worst counts.

    Args:
        servers: One by one.
        findings: What they find.
        members: Whether the file belonged to the workspace before, and afterwards.
        message: What a reader should know besides.
    """
    servers = tuple(servers)
    kind: Kind = min((one.kind for one in servers), key=_WORST.index, default="none")
    proven = kind not in ("none", "preview", "failed", "stale", "pending")
    # A server that was given a file's text has a file, and its workspace may still not.
    outside = bool(servers) and kind != "removed" and not members[1]
    updated = proven and not outside and all(one.confirmed_by != "none" for one in servers)
    if outside:
        message = "; ".join(filter(None, (message, _OUTSIDE)))
    told = [f"{one.server}: {one.message}" for one in servers if one.message]
    text = "; ".join(dict.fromkeys([message, *told] if message else told)) or None
    return WorkspaceUpdate(kind, updated, *members, text, servers, findings)

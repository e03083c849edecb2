"""What servers made of a change or of a proposed one, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from filepact.lsp.diagnostics import Confirmation, Delta, Report, compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.lsp.changes import Change
    from filepact.lsp.diagnostics import Diagnostic

__all__ = ["Preview", "State", "Status", "Update", "UpdateKind", "make_update", "weakest"]

State = Literal["stopped", "starting", "ready", "waiting", "broken"]
"""``waiting``: it ended and is started again when its pause is over.  ``broken``: it ended too often."""

UpdateKind = Literal["updated", "added", "removed", "renamed", "pending", "stale", "failed"]

_STRENGTH: tuple[Confirmation, ...] = ("none", "quiet window", "probe", "version", "pull")


@dataclass(frozen=True, slots=True)
class Update:
    """How one server took a change.

    Attributes:
        server: Its name.
        kind: What became of it; ``pending``: told, but not confirmed in time; ``stale``: it is
            known not to see the files as they are; ``failed``: the server is not there.
        confirmed_by: How that is known; the weakest of all files.
        revision_before: How many changes it had been told of before.
        revision_after: The same, after.
        reports: What it says about each file that was asked about.
        delta: New and fixed since it was last asked; None where nothing was known before.
        seconds: From the change to the answer.
        message: Why it is not confirmed; else empty.
        event: What it was sent for this, in the protocol's words without the part before the
            slash, such as ``didChange, didSave``; ``restart`` if it had to be started anew.
    """

    server: str
    kind: UpdateKind
    confirmed_by: Confirmation
    revision_before: int
    revision_after: int
    reports: tuple[Report, ...]
    delta: Delta | None
    seconds: float
    message: str = ""
    event: str = ""

    @property
    def fresh(self) -> bool:
        """Whether all that it says is about the present texts."""
        return self.confirmed_by != "none"

    @property
    def complete(self) -> bool:
        """Whether no list was cut."""
        return self.fresh and all(report.complete for report in self.reports)


@dataclass(frozen=True, slots=True)
class Preview:
    """What one server would find if files held other texts.

    Attributes:
        server: Its name.
        before: What it finds now, each file that was asked about.
        after: What it would find.
        delta: The difference; None unless both are fresh.
        withdrawn: Whether it is proven that the server has the present texts again; if not, it
            was stopped.
        complete: Whether other files saw the proposed texts, as far as they were asked about.
        seconds: In all.
        message: Why something is missing; else empty.
    """

    server: str
    before: tuple[Report, ...]
    after: tuple[Report, ...]
    delta: Delta | None
    withdrawn: bool
    complete: bool
    seconds: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """One server on one root.

    Attributes:
        server: Its name.
        root: The folder that it serves, absolute.
        state: What it is doing.
        pid: Its process; 0 when there is none.
        version: As it says itself.
        open_documents: How many texts it holds.
        starts: How often it was started.
        started_in: Seconds of the last start.
        first_report_in: Seconds from the last start to the first fresh list; None before.
        message: Why it is not there, or what it last complained of.
    """

    server: str
    root: str
    state: State
    pid: int
    version: str
    open_documents: int
    starts: int
    started_in: float
    first_report_in: float | None
    message: str


def weakest(reports: Iterable[Report]) -> Confirmation:
    """The confirmation that holds for all of them; ``none`` for no reports."""
    return min((one.confirmed_by for one in reports), key=_STRENGTH.index, default="none")


def make_update(
    server: str,
    changes: Iterable[Change],
    reports: tuple[Report, ...],
    known: Mapping[str, tuple[Diagnostic, ...]],
    revisions: tuple[int, int],
    seconds: float,
    message: str,
    *,
    event: str = "",
    blind: str = "",
) -> Update:
    """Put together how a server took changes.

    Args:
        server: Its name.
        changes: What it was told.
        reports: What it says since.
        known: What it said before, by path.
        revisions: Before and after.
        seconds: How long all took.
        message: Why there is no server; else empty.
        event: What it was sent.
        blind: Why it is known not to see the files as they are; else empty.
    """
    confirmed = weakest(reports)
    kinds = {one.kind for one in changes}
    if message:
        kind: UpdateKind = "failed"
    elif blind:
        kind, message = "stale", blind
    elif confirmed == "none" and reports:
        kind = "pending"
        message = next(one.reason for one in reports if not one.fresh)
    elif kinds == {"created"}:
        kind = "added"
    elif kinds == {"deleted"}:
        kind = "removed"
    elif kinds == {"renamed"}:
        kind = "renamed"
    else:
        kind = "updated"
    delta = None
    if confirmed != "none" and all(one.path in known for one in reports):
        gone = [one.path for one in changes if one.kind == "deleted"]
        paths = {*(one.path for one in reports), *gone}
        delta = compare(
            (found for path in paths for found in known.get(path, ())),
            (found for report in reports for found in report.diagnostics),
        )
    return Update(server, kind, confirmed, *revisions, reports, delta, seconds, message, event)

"""Questions to a pool that are waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact_diagnostics.lsp.diagnostics import DiagnosticsDiff, compare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact_diagnostics.lsp.diagnostics import FileDiagnostics, ServerDiagnostics
    from filepact_diagnostics.lsp.documents import DiskChange
    from filepact_diagnostics.lsp.pool import ServerPool
    from filepact_diagnostics.semantic.updates import UpdateDiagnostics


@dataclass(frozen=True, slots=True)
class Preview:
    """What came of a proposed text, whoever was asked: a pool, or the door above it."""

    withdrawn: bool
    delta: DiagnosticsDiff | UpdateDiagnostics | None
    message: str | None


def report_of(
    pool: ServerPool, root: str, files: Mapping[str, str], seconds: float = 2.0
) -> tuple[FileDiagnostics, ...]:
    """What all servers find in files."""
    answers = pool.ask(root, files, {}, seconds, patient=True).result()
    return tuple(one for answer in answers for one in answer.reports)


def update_of(
    pool: ServerPool,
    root: str,
    changes: Sequence[DiskChange],
    files: Mapping[str, str],
    seconds: float = 2.0,
) -> tuple[ServerDiagnostics, ...]:
    """What all servers find in files after they were told of changes."""
    pool.tell(changes)
    return pool.ask(root, files, {}, seconds, patient=True).result()


def preview_of(
    pool: ServerPool,
    root: str,
    proposed: Mapping[str, str],
    files: Mapping[str, str],
    seconds: float = 2.0,
) -> tuple[ServerDiagnostics, ...]:
    """What all servers would find if some files held other texts."""
    return pool.propose(root, proposed, files, seconds, patient=True).result()


def delta_of(seen: ServerDiagnostics) -> DiagnosticsDiff | None:
    """The difference that a proposal makes; None if it is not known."""
    if not seen.fresh:
        return None
    return compare(
        (found for one in seen.before for found in one.diagnostics),
        (found for one in seen.reports for found in one.diagnostics),
    )

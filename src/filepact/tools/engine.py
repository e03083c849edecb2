"""The workspace as the tools' engine: ports for reading and for changing."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.tools.answer import receipt_facts, render_receipt
from filepact.tools.diagnostics_gate import follow, foresee, remember
from filepact.tools.registry import ChangeAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.semantic.service import SemanticWorkspace
    from filepact.semantic.updates import WorkspaceUpdate
    from filepact.tools.registry import CallContext
    from filepact.workspace.draft import Draft
    from filepact.workspace.history import SessionHistory
    from filepact.workspace.pending import SessionEvent
    from filepact.workspace.reader import Reader
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

__all__ = ["DraftResult", "EngineEvents", "WorkspaceEngine"]


@dataclass(frozen=True, slots=True)
class DraftResult:
    """A change that was done, stored or shown.

    Attributes:
        receipt: What came of it.
        foreseen: What servers would find in it, where they were asked before.
        rest: Seconds that are left for asking them afterwards; None for all that are allowed.
    """

    receipt: Receipt
    foreseen: WorkspaceUpdate | None = None
    rest: float | None = None


class EngineEvents:
    """The part of an engine that knows what its callers should hear besides.

    Args:
        workspace: The files.
        semantics: What language servers make of changes; None for none.
    """

    def __init__(self, workspace: Workspace, semantics: SemanticWorkspace | None = None) -> None:
        self._workspace = workspace
        self._semantics = semantics

    def news(self, call: CallContext) -> tuple[SessionEvent, ...]:
        """The notices about people's decisions and servers' late findings; empty mostly."""
        late = () if self._semantics is None else self._semantics.news(call.session.id)
        return (*self._workspace.news(call.session), *late)

    def heard(self, call: CallContext, news: Sequence[SessionEvent]) -> None:
        """The caller was told these."""
        self._workspace.heard(call.session, news)
        if self._semantics is not None:
            self._semantics.heard(call.session.id, news)


class WorkspaceEngine(EngineEvents):
    """Carries out tool calls on a workspace."""

    @contextmanager
    def port(self, call: CallContext, name: str) -> Iterator[Reader | SessionHistory]:
        """The port of a tool that looks at files, or at what its caller has done."""
        if name == "past":
            yield self._workspace.past(
                call.session, cancelled=call.cancelled, deadline=call.deadline, page=call.page
            )
        else:
            yield self._workspace.reader(
                call.session, deadline=call.deadline, progress=call.progress, page=call.page
            )

    def draft(self, call: CallContext, tool: str) -> Draft:
        """The port of a tool that changes files."""
        return self._workspace.draft(call.session, tool, call.deadline)

    def submit(self, call: CallContext, draft: Draft, summary: str) -> DraftResult:
        """Do, store or only show what a draft holds; servers are asked what only they know before."""
        semantics = self._semantics
        if semantics is None:
            return DraftResult(self._workspace.submit(draft, summary))
        foreseen = foresee(semantics, draft, call)
        rest = remember(semantics, draft, call)
        return DraftResult(self._workspace.submit(draft, summary), foreseen, rest)

    def written(self, call: CallContext, draft: Draft, submitted: DraftResult) -> ChangeAnswer:
        """The answer, with what servers find in the change."""
        receipt, said = submitted.receipt, ""
        if self._semantics is not None:
            foreseen, rest = submitted.foreseen, submitted.rest
            said = follow(self._semantics, draft, receipt, call, foreseen, rest)
        text = render_receipt(receipt, page=call.page, diagnostics=said)
        return ChangeAnswer(text, receipt_facts(receipt))

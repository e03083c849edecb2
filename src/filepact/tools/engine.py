"""The workspace as the tools' engine: ports for reading and for changing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filepact.tools.answer import receipt_facts, render_receipt
from filepact.tools.checked import follow, foresee, remember
from filepact.tools.registry import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.semantic.insight import Insight
    from filepact.tools.registry import Call
    from filepact.workspace.draft import Draft
    from filepact.workspace.reader import Reader
    from filepact.workspace.workspace import Workspace

__all__ = ["WorkspaceEngine"]


class WorkspaceEngine:
    """Carries out tool calls on a workspace.

    Args:
        workspace: The files.
        insight: What language servers make of changes; None for none.
    """

    def __init__(self, workspace: Workspace, insight: Insight | None = None) -> None:
        self._workspace = workspace
        self._insight = insight

    @contextmanager
    def reader(self, call: Call) -> Iterator[Reader]:
        """The port of a reading tool."""
        yield self._workspace.reader(
            call.session, cancelled=call.cancelled, progress=call.progress, page=call.page
        )

    def write(self, call: Call, tool: str, action: Callable[[Draft], str]) -> Written:
        """Let a tool fill a draft, then do, store or only show what it holds."""
        insight = self._insight
        with self._workspace.draft(call.session, tool) as draft:
            summary = action(draft)
            foreseen = None if insight is None else foresee(insight, draft, call)
            rest = None if insight is None else remember(insight, draft, call)
            receipt = self._workspace.submit(draft, summary)
        # The locks are given back: nobody else has to wait for the servers.
        said = "" if insight is None else follow(insight, draft, receipt, call, foreseen, rest)
        return Written(render_receipt(receipt, diagnostics=said), receipt_facts(receipt))

    def news(self, call: Call) -> str:
        """What people said to proposals and servers to changes meanwhile; empty mostly."""
        late = "" if self._insight is None else self._insight.news(call.session.id)
        return "\n".join(filter(None, [*self._workspace.answers(call.session), late]))

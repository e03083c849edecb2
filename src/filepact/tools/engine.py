"""The workspace as the tools' engine: ports for reading and for changing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filepact.tools.answer import receipt_facts, render_receipt
from filepact.tools.checked import follow, foresee, remember
from filepact.tools.registry import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.semantic.insight import Insight
    from filepact.tools.registry import Call
    from filepact.workspace.draft import Draft
    from filepact.workspace.news import News
    from filepact.workspace.past import Past
    from filepact.workspace.reader import Reader
    from filepact.workspace.workspace import Workspace

__all__ = ["Telling", "WorkspaceEngine"]


class Telling:
    """The part of an engine that knows what its callers should hear besides.

    Args:
        workspace: The files.
        insight: What language servers make of changes; None for none.
    """

    def __init__(self, workspace: Workspace, insight: Insight | None = None) -> None:
        self._workspace = workspace
        self._insight = insight

    def news(self, call: Call) -> tuple[News, ...]:
        """What people said to proposals and servers to changes meanwhile; empty mostly."""
        late = () if self._insight is None else self._insight.news(call.session.id)
        return (*self._workspace.news(call.session), *late)

    def heard(self, call: Call, news: Sequence[News]) -> None:
        """The caller was told these."""
        self._workspace.heard(call.session, news)
        if self._insight is not None:
            self._insight.heard(call.session.id, news)


class WorkspaceEngine(Telling):
    """Carries out tool calls on a workspace."""

    @contextmanager
    def port(self, call: Call, name: str) -> Iterator[Reader | Past]:
        """The port of a tool that looks at files, or at what its caller has done."""
        if name == "past":
            yield self._workspace.past(
                call.session, cancelled=call.cancelled, deadline=call.deadline, page=call.page
            )
        else:
            yield self._workspace.reader(
                call.session, deadline=call.deadline, progress=call.progress, page=call.page
            )

    def write(self, call: Call, tool: str, action: Callable[[Draft], str]) -> Written:
        """Let a tool fill a draft, then do, store or only show what it holds."""
        insight = self._insight
        with self._workspace.draft(call.session, tool, call.deadline) as draft:
            summary = action(draft)
            foreseen = None if insight is None else foresee(insight, draft, call)
            rest = None if insight is None else remember(insight, draft, call)
            receipt = self._workspace.submit(draft, summary)
        # The locks are given back: nobody else has to wait for the servers.
        said = "" if insight is None else follow(insight, draft, receipt, call, foreseen, rest)
        text = render_receipt(receipt, page=call.page, diagnostics=said)
        return Written(text, receipt_facts(receipt))

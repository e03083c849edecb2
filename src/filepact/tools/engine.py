"""The workspace as the tools' engine: ports for reading and for changing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filepact.tools.answer import receipt_facts, render_receipt
from filepact.tools.registry import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.tools.registry import Call
    from filepact.workspace.draft import Draft
    from filepact.workspace.reader import Reader
    from filepact.workspace.workspace import Workspace

__all__ = ["WorkspaceEngine"]


class WorkspaceEngine:
    """Carries out tool calls on a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @contextmanager
    def reader(self, call: Call) -> Iterator[Reader]:
        """The port of a reading tool."""
        yield self._workspace.reader(call.session, cancelled=call.cancelled, progress=call.progress)

    def write(self, call: Call, tool: str, action: Callable[[Draft], str]) -> Written:
        """Let a tool fill a draft, then do, store or only show what it holds."""
        with self._workspace.draft(call.session, tool) as draft:
            summary = action(draft)
            receipt = self._workspace.submit(draft, summary)
        return Written(render_receipt(receipt), receipt_facts(receipt))

    def news(self, call: Call) -> str:
        """What a person has said meanwhile to what the session proposed; empty mostly."""
        return "\n".join(self._workspace.answers(call.session))

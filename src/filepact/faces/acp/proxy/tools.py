"""The seven tools for agents that do not ask their client for files, over what the editor shows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError, UserDeniedError
from filepact.faces.acp.errors import Refusal
from filepact.faces.acp.proxy.dialog import settle
from filepact.text.patch import parse
from filepact.tools.answer import receipt_facts, render_receipt
from filepact.tools.catalogue import TOOLS
from filepact.tools.checked import follow, foresee
from filepact.tools.engine import WorkspaceEngine
from filepact.tools.registry import Toolbox, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.faces.acp.proxy.links import Links
    from filepact.faces.acp.proxy.texts import Texts
    from filepact.faces.acp.sessions import Bound
    from filepact.semantic.insight import Insight
    from filepact.tools.registry import Call, Outcome
    from filepact.workspace.draft import Draft

__all__ = ["EditorTools"]

_PATIENCE: Final = 45.0
"""Seconds that a call waits for a person; hosts give a call up after a minute, and what is
answered later is told with the next call."""


class EditorTools(Toolbox):
    """The tools of one session.

    Args:
        bound: The session.
        texts: What the editor shows.
        links: The ways to both sides.
        insight: What language servers make of changes; None for none.
    """

    def __init__(
        self, bound: Bound, texts: Texts, links: Links, insight: Insight | None = None
    ) -> None:
        super().__init__(TOOLS, _Engine(bound, texts, links, insight))
        self._bound = bound
        self._texts = texts
        self._doors = links.doors

    def call(self, name: str, arguments: Mapping[str, object], call: Call) -> Outcome:
        """Call a tool, once the editor has said what it shows of the files that are named."""
        self._doors.count("calls")
        for path in _named(arguments):
            # What cannot be had here is refused by the tool itself, in its own words.
            with suppress(FilepactError, Refusal):
                self._texts.fetch(self._bound, call.session, path)
        return super().call(name, arguments, call)


class _Engine(WorkspaceEngine):
    def __init__(self, bound: Bound, texts: Texts, links: Links, insight: Insight | None) -> None:
        super().__init__(bound.workspace, insight)
        self._bound = bound
        self._texts = texts
        self._links = links

    def write(self, call: Call, tool: str, action: Callable[[Draft], str]) -> Written:
        insight = self._insight
        with self._bound.workspace.draft(call.session, tool) as draft:
            summary = action(draft)
            foreseen = None if insight is None else foresee(insight, draft, call)
            receipt = self._bound.workspace.submit(draft, summary)
        try:
            if receipt.status == "pending":
                questions, facts = self._links.questions, self._links.facts
                receipt = settle(questions, facts, self._bound, receipt, patience=_PATIENCE)
            self._texts.deliver(self._bound, call.session, receipt)
        except Refusal as refusal:
            raise UserDeniedError(refusal.message) from None
        said = "" if insight is None else follow(insight, draft, receipt, call, foreseen)
        text = render_receipt(receipt, page=call.page, diagnostics=said)
        return Written(text, receipt_facts(receipt))


def _named(arguments: Mapping[str, object]) -> Iterator[str]:
    """The files that a call names, as it names them."""
    path, patch = arguments.get("path"), arguments.get("patch")
    paths = arguments.get("paths")
    if isinstance(path, str):
        yield path
    elif isinstance(paths, list):
        yield from (name for name in paths if isinstance(name, str))
    elif isinstance(patch, str):
        with suppress(FilepactError):
            for file in parse(patch):
                yield from {name for name in (file.old_path, file.new_path) if name}

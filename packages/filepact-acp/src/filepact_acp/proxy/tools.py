"""The seven tools for agents that do not ask their client for files, over what the editor shows."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError, TimedOutError, UserDeniedError
from filepact.tools.answers import failure
from filepact.tools.engine import TOOLS, DraftResult, WorkspaceEngine
from filepact.tools.registry import CallResult, Toolset
from filepact.values import replace
from filepact_acp.client_buffers import named_files
from filepact_acp.errors import ClientRequestError, error_of_kind
from filepact_acp.files import key
from filepact_acp.proxy.files import settle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.domain.operation import Approval
    from filepact.tools.engine import ChangeJudge
    from filepact.tools.registry import CallContext
    from filepact.workspace.draft import Draft
    from filepact.workspace.receipt import Receipt
    from filepact_acp.proxy.editor_buffers import EditorTexts
    from filepact_acp.proxy.editor_requests import ProxyContext
    from filepact_acp.sessions import AcpSession

__all__ = ["EditorTools"]

_LOOKING: Final = frozenset(tool.name for tool in TOOLS if tool.kind == "reads")

_AT_THE_END: Final = 1.0
"""Seconds that the end of a turn waits for what servers have not answered yet."""
_PATIENCE: Final = 45.0
"""Seconds that a call waits for a person; hosts give a call up after a minute, and what is
answered later is told with the next call."""


class EditorTools(Toolset):
    """The tools of one session.

    Args:
        bound: The session.
        texts: What the editor shows.
        links: The ways to both sides.
        semantics: What language servers make of changes; None for none.
        seconds: How long one call may take.
    """

    def __init__(
        self,
        bound: AcpSession,
        texts: EditorTexts,
        links: ProxyContext,
        semantics: ChangeJudge | None,
        *,
        seconds: float,
    ) -> None:
        engine = _Engine(bound, texts, links, semantics)
        super().__init__(TOOLS, engine, seconds=seconds)
        self._bound = bound
        self._semantics = semantics
        self._texts = texts
        self._doors = links.access_counts

    def call(self, name: str, arguments: Mapping[str, object], call: CallContext) -> CallResult:
        """Call a tool, once the editor has said what it shows of the files that are named."""
        self._doors.count("calls")
        call = replace(
            call, session=replace(call.session, turn=self._bound.turn_name or call.session.turn)
        )
        if name in _LOOKING:
            return self._call(name, arguments, call)
        names = named_files(name, arguments)
        try:
            keys = {key(self._bound, call.session, str(path)) for path in names}
            with self._texts.alone(self._bound, keys):
                return self._call(name, arguments, call)
        except TimedOutError as error:
            return failure(error)

    def _call(self, name: str, arguments: Mapping[str, object], call: CallContext) -> CallResult:
        for path in named_files(name, arguments):
            try:
                self._texts.fetch(self._bound, call.session, path, to_write=name not in _LOOKING)
            except FilepactError:
                # It is refused by the tool itself, in its own words.
                continue
            except ClientRequestError as refusal:
                return failure(_error(refusal))
        if self._semantics is not None and name not in _LOOKING:
            self._bound.turn_errors = partial(
                self._semantics.turn_summary, session=call.session, seconds=_AT_THE_END, ends=True
            )
        return super().call(name, arguments, call)


class _Engine(WorkspaceEngine):
    def __init__(
        self,
        bound: AcpSession,
        texts: EditorTexts,
        links: ProxyContext,
        semantics: ChangeJudge | None,
    ) -> None:
        super().__init__(bound.workspace, semantics)
        self._bound = bound
        self._texts = texts
        self._links = links

    def draft(self, call: CallContext, tool: str) -> Draft:
        draft = super().draft(call, tool)
        draft.mode = self._bound.mode
        return draft

    def submit(self, call: CallContext, draft: Draft, summary: str) -> DraftResult:
        semantics, previewed, rest = self._semantics, None, None
        if semantics is not None:
            previewed, rest = semantics.check(draft, call), semantics.note_before(draft, call)
        return DraftResult(self._bound.workspace.submit(draft, summary), previewed, rest)

    def answer(self, call: CallContext, draft: Draft, submitted: DraftResult) -> CallResult:
        receipt = submitted.receipt
        try:
            if receipt.status == "pending":
                receipt = self._settle(call, receipt)
            notes = self._texts.deliver(self._bound, call.session, receipt)
        except ClientRequestError as refusal:
            raise _error(refusal) from None
        receipt = replace(receipt, notes=(*receipt.notes, *notes))
        return super().answer(call, draft, replace(submitted, receipt=receipt))

    def _settle(self, call: CallContext, receipt: Receipt) -> Receipt:
        workspace = self._bound.workspace

        def approve(change: str, person: Approval) -> Receipt:
            # They may have typed meanwhile.
            self._texts.go_on()
            for path in workspace.proposal(change).changes.paths:
                with suppress(FilepactError):
                    self._texts.fetch(self._bound, call.session, path, to_write=True)
            return workspace.approve(change, person, to_agent=True)

        questions, facts = self._links.questions, self._links.connection
        try:
            self._texts.let_others()
            return settle(questions, facts, self._bound, receipt, approve, patience=_PATIENCE)
        finally:
            # What was said to this change is in the answer to it, and is not told again.
            workspace.acknowledge_answer(call.session, str(receipt.operation))


def _error(refusal: ClientRequestError) -> FilepactError:
    """A refusal of the protocol's as an answer of a tool."""
    kind = refusal.data.get("errorKind")
    return error_of_kind(str(kind), UserDeniedError)(refusal.message)

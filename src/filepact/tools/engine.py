"""The workspace as the tools' engine, with its tools, and the port of what language servers find in a change."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from filepact.domain.operation import Proposal, moment
from filepact.errors import FilepactError, NoChangeError, NotFoundError
from filepact.tools.answers import CallResult, receipt_facts, render_receipt, repeated
from filepact.tools.edit import edit_file, history, manage_files, write_file
from filepact.tools.patch import patch_apply
from filepact.tools.read import directory_tree, grep, read_file, search_files
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.change import ChangeSet
    from filepact.domain.operation import Operation, Session
    from filepact.tools.answers import CallContext
    from filepact.tools.registry import TakenBack
    from filepact.workspace.documents import DocumentCache
    from filepact.workspace.draft import Draft
    from filepact.workspace.history import SessionHistory
    from filepact.workspace.pending import SessionEvent
    from filepact.workspace.reader import Reader
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

__all__ = [
    "SERVER_TOOLS",
    "TOOLS",
    "ChangeJudge",
    "DraftResult",
    "EngineEvents",
    "WorkspaceEngine",
]

TOOLS = (
    read_file,
    write_file,
    edit_file,
    search_files,
    grep,
    directory_tree,
    patch_apply,
)
"""The seven tools over files, which every face offers."""

SERVER_TOOLS = (*TOOLS, manage_files, history)
"""The toolset `files` of a server: with folders, and what an agent can do about its own changes."""


_LOOK: Final = 0.05  # seconds between two looks at what another process does


@dataclass(frozen=True, slots=True)
class DraftResult:
    """A change that was done, stored or shown.

    Attributes:
        receipt: What came of it.
        previewed: What servers would find in it, where they were asked before.
        seconds_left: Seconds that are left for asking them afterwards; None for all that are allowed.
        unclaimed: No server knows its files or has to be told of them.
    """

    receipt: Receipt
    previewed: Any = None
    seconds_left: float | None = None
    unclaimed: bool = False


class ChangeJudge(Protocol):
    """The judgement of language servers on changes; an extension has it."""

    @property
    def mode(self) -> str:
        """When servers are asked: ``off`` for never."""

    def concerns(self, changes: ChangeSet) -> bool:
        """Whether a server knows its files, or has to be told of them."""

    def check(self, draft: Draft, call: CallContext) -> Any:
        """Ask about a change that is only shown, or that servers may cause to be refused; None where they were not asked.

        Raises:
            NewErrorsError: The change would bring errors, and these are refused.
        """

    def check_undo(
        self, past: SessionHistory, call: CallContext, changes: ChangeSet, versions: DocumentCache
    ) -> str:
        """As `check` of what an agent takes back; the rule by which a person is asked, empty for none."""

    def note_before(self, draft: Draft, call: CallContext) -> float | None:
        """Keep what cannot be asked after a change; seconds that are left for asking then, or None for all."""

    def report(
        self, draft: Draft, receipt: Receipt, call: CallContext, checked: Any, seconds: float | None
    ) -> str:
        """The receipt's line about diagnostics; empty where no server knows the files."""

    def follow(self, changes: ChangeSet, versions: DocumentCache, session: Session) -> None:
        """Have what servers find in a session's change, which others have done for it, told to it later."""

    def turn_summary(
        self,
        *,
        session: Session,
        seconds: float = ...,
        cancelled: Callable[[], bool] = ...,
        ends: bool = False,
    ) -> str:
        """The lines about errors that a session's turn has brought and left; empty for none."""

    def events(self, session_id: str) -> tuple[SessionEvent, ...]:
        """Return the findings that came too late for a receipt."""

    def acknowledge(self, session_id: str, news: Sequence[SessionEvent]) -> None:
        """A session was told these."""

    def close(self) -> None:
        """End it."""


class EngineEvents:
    """The part of an engine that knows what its callers should hear besides.

    Args:
        workspace: The files.
        semantics: What language servers make of changes, or what opens it with the first change;
            None for none.
    """

    def __init__(
        self,
        workspace: Workspace,
        semantics: ChangeJudge | Callable[[], ChangeJudge | None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._judged = Lock()
        self._opening = semantics if callable(semantics) else None
        self._semantics = None if callable(semantics) else semantics

    def _judging(self) -> ChangeJudge | None:
        with self._judged:
            if self._opening is not None:
                self._semantics, self._opening = self._opening(), None
            return self._semantics

    def events(self, call: CallContext) -> tuple[SessionEvent, ...]:
        """The notices about people's decisions and servers' late findings; empty mostly."""
        late = () if self._semantics is None else self._semantics.events(call.session.id)
        return (*self._workspace.events(call.session), *late)

    def acknowledge(self, call: CallContext, news: Sequence[SessionEvent]) -> None:
        """The caller was told these, and is told later what servers find in what was approved."""
        self._workspace.acknowledge(call.session, news)
        if self._semantics is None:
            return
        self._semantics.acknowledge(call.session.id, news)
        for one in news:
            with suppress(FilepactError):
                done = self._workspace.operation(one.key)
                if done.state == "applied":
                    versions = self._workspace.versions()
                    self._semantics.follow(done.changes, versions, call.session)

    def _begin(self) -> None:
        """Have everything that a call reads from now on recorded when the call ends."""
        if self._workspace.audit is not None:
            self._workspace.audit.hold()

    def done_before(
        self, call: CallContext, change: str, *, settle: bool
    ) -> CallResult | TakenBack | None:
        """The answer to what was done, or waits, under the id of a change; None for nothing."""
        found: Operation | Proposal
        elsewhere = CallResult(repeated(None, "Done at another machine."))
        publisher, request = self._workspace.publisher, call.session.request
        try:
            found = self._workspace.operation(change)
            while found.state == "intended":
                call.deadline.check()
                # Whoever began it may be gone.
                self._workspace.recovery.run()
                found = self._workspace.operation(change)
                if found.state == "intended":
                    time.sleep(_LOOK)
            if found.state == "rolled_back":
                if request and publisher is not None and publisher.made(request, settle=settle):
                    return elsewhere
                return "taken back"
        except NotFoundError:
            try:
                found = self._workspace.newest(change)
            except NotFoundError:
                if request and publisher is not None and publisher.made(request, settle=settle):
                    return elsewhere
                return None
            if found.state == "committed":
                found = self._workspace.operation(found.id)
        if isinstance(found, Proposal):
            found.check_waits()
        elif found.undone_by is not None:
            raise NoChangeError(
                f"this request came before, as {found.id} at {moment(found.created)}, and what it "
                f"did was undone by {found.undone_by}; nothing is done now",
                hint="If it is still wanted, call the tool anew.",
            )
        try:
            receipt = self._workspace.receipt(found)
            past = self._workspace.past(found.session, page=call.page, deadline=call.deadline)
            told = replace(receipt, diff=past.diff(found))
        except NotFoundError:
            # What it was is not kept any more.
            return CallResult(repeated(found.created, f"{found.id}: {found.summary}."))
        first = repeated(found.created, "")
        text = first + render_receipt(told, page=call.page - len(first))
        return CallResult(text, receipt=receipt_facts(told))

    def record(self, call: CallContext, tool: str, asked: str, code: str, seconds: float) -> None:
        """A call is over."""
        if self._workspace.audit is not None:
            self._workspace.audit.called(call.session, tool, asked, code, seconds)

    def gather_records(self) -> Callable[[], None]:
        """As of `Toolset`."""
        audit = self._workspace.audit
        return (lambda: None) if audit is None else audit.gather()


class WorkspaceEngine(EngineEvents):
    """Carries out tool calls on a workspace."""

    def port(self, call: CallContext, name: str) -> Reader | SessionHistory:
        """The port of a tool that looks at files, or at what its caller has done."""
        if name == "past":
            past = self._workspace.past(
                call.session, cancelled=call.cancelled, deadline=call.deadline, page=call.page
            )
            if self._semantics is not None and self._semantics.mode != "off":
                summary = self._semantics.turn_summary
                past.errors = lambda: summary(session=call.session, cancelled=call.cancelled)
            past.judge = partial(self._judge_undo, past, call)
            return past
        if self._workspace.audit is not None:
            self._workspace.audit.hold()
        return self._workspace.reader(
            call.session, deadline=call.deadline, progress=call.progress, page=call.page
        )

    def _judge_undo(
        self, past: SessionHistory, call: CallContext, changes: ChangeSet, versions: DocumentCache
    ) -> str:
        judge = self._judging()
        known = judge is not None and judge.concerns(changes)
        return judge.check_undo(past, call, changes, versions) if judge and known else ""

    def draft(self, call: CallContext, tool: str) -> Draft:
        """The port of a tool that changes files."""
        self._begin()
        return self._workspace.draft(call.session, tool, call.deadline)

    def submit(self, call: CallContext, draft: Draft, summary: str) -> DraftResult:
        """Do, store or only show what a draft holds; servers are asked what only they know before."""
        semantics = self._judging()
        if semantics is None or not semantics.concerns(draft.changes):
            receipt = self._workspace.submit(draft, summary)
            return DraftResult(receipt, unclaimed=True)
        previewed = semantics.check(draft, call)
        rest = semantics.note_before(draft, call)
        return DraftResult(self._workspace.submit(draft, summary), previewed, rest)

    def answer(self, call: CallContext, draft: Draft, submitted: DraftResult) -> CallResult:
        """The answer, with what servers find in the change."""
        receipt, said = submitted.receipt, ""
        if self._semantics is not None and not submitted.unclaimed:
            previewed, rest = submitted.previewed, submitted.seconds_left
            said = self._semantics.report(draft, receipt, call, previewed, rest)
        text = render_receipt(receipt, page=call.page, diagnostics=said)
        return CallResult(text, receipt=receipt_facts(receipt))

"""The engine of the solution toolset: previews, writes, and how language servers took them."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filepact.errors import (
    CallCancelledError,
    FilepactError,
    NamesLeftError,
    NewErrorsError,
    NotAFileError,
    NotFoundError,
    StaleFileError,
)
from filepact.text.diff_lines import cut_diff
from filepact.tools.answers import CallResult
from filepact.tools.engine import DraftResult, EngineEvents
from filepact.values import late_logger, replace
from filepact.workspace.file_snapshot import some_names
from filepact.workspace.receipt import Receipt
from filepact_diagnostics.semantic.edited_files import carry_out, count_places, no_servers
from filepact_diagnostics.semantic.updates import ServerAction, WorkspaceUpdate
from filepact_diagnostics.solution_answers import (
    ActionAnswer,
    ActionItem,
    AnswerFormat,
    AnswerHints,
    ChangedFile,
    PendingProposal,
    WriteAnswer,
    facts,
)
from filepact_diagnostics.solution_port import SolutionCall

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from filepact.domain.document import WorkspacePath
    from filepact.tools.registry import CallContext
    from filepact.workspace.draft import Draft
    from filepact.workspace.reader import Reader
    from filepact.workspace.receipt import Status
    from filepact.workspace.target import Target
    from filepact.workspace.workspace import Workspace
    from filepact_diagnostics.judging import ServerJudge
    from filepact_diagnostics.semantic.edited_files import ServerEdits
    from filepact_diagnostics.semantic.server_edits import ServerQueries
    from filepact_diagnostics.solution_answers import PathStyle

__all__ = ["SolutionChange", "SolutionEngine"]

_log = late_logger(__name__)

_BROKEN = "the language servers could not be asked; the server's log has the details"
_OFF = "language servers are switched off, so no server was told"
_SAME = "the file holds this text already, so no server had to be told"
_OTHER = (
    "the file holds another text: what was sent differs from it only where somebody has changed the file "
    "since, and that was kept, so there is nothing to write"
)
_STALE = (
    "Make the text for what the file holds now. If all of this is to go, preview the same text, which shows "
    "what it would take back, and then send it with applyChanges: true."
)
_UNKNOWN = "no installed language server knows this file"


class SolutionChange:
    """One call's change, and the view of its answer.

    Attributes:
        draft: The change.
        view: How the answer shows it.
        path: The file that the caller has named; empty before.
        actions: What servers offer instead of a change; None if that was not asked.
        counts: How many places of each file differ, by its name, where servers made the change.
    """

    def __init__(
        self,
        draft: Draft,
        root: str,
        reader: Reader,
        refused: Collection[str] = (),
        *,
        semantics: ServerJudge | None,
        call: CallContext,
    ) -> None:
        self.draft = draft
        self.path = ""
        self._reader = reader
        self._refused = refused
        self.view = AnswerFormat(root)
        self.actions: list[ActionItem] | None = None
        self.counts: dict[str, int] = {}
        self._target: Target | None = None
        self._sent = ""
        self._semantics = semantics
        self._call = call

    @property
    def target(self) -> Target:
        """The file that is to be written."""
        if self._target is None:
            raise RuntimeError("nothing was written yet")
        return self._target

    @property
    def kept(self) -> bool:
        """Whether the file holds another text than was sent, apart from the ends of its lines."""
        document = self.target.document
        there = None if document is None or self.target.hidden else document.text
        return there is not None and there.split() != self._sent.split()

    def show(self, style: PathStyle, *, diff: bool, most: int) -> None:
        """Say how the answer is to show paths and differences."""
        self.view = AnswerFormat(self.view.root, style, diff, most)

    def write(self, path: str, text: str, *, apply: bool, create: bool) -> str:
        """Give a file a whole new text.

        Args:
            path: The file.
            text: What it is to hold.
            apply: Whether to do it.
            create: Whether there need not be such a file.

        Raises:
            NotFoundError: There is no such file, and none is to be made.
            NotAFileError: It is a folder.
        """
        self.draft.dry_run = not apply
        self.path = path
        if not apply and path in self._refused:
            with suppress(FilepactError):
                self._reader.document(path)
        try:
            target = self.draft.open(path)
        except (NotAFileError, NotFoundError) as error:
            # What the engine advises takes tools that are not there.
            raise type(error)(
                error.message, hint="Name a file beneath the solution's root.", **error.details
            ) from None
        if target.document is None and not create:
            hint = "Correct the path, or send createIfMissing: true to make the file."
            if "\\" in path:
                hint = "Between folders stands / here; a backslash is a character of a name."
            raise NotFoundError(f"{path}: no such file", hint=hint, path=path)
        self._target, self._sent = target, text
        self.draft.write(target, text)
        self._say_who_asks(apply=apply)
        return f"{'write' if target.document else 'create'} {target.location.shown}"

    def queries(self, path: str, seconds: float) -> tuple[ServerQueries, WorkspacePath]:
        """The questions that servers can answer about a file, and the file.

        Args:
            path: The file.
            seconds: How long they have.

        Raises:
            NoServerError: There are none.
            FilepactError: The path may not be used, or leads to no file.
        """
        if self._semantics is None:
            raise no_servers()
        call = self._call
        return self._semantics.queries(
            path, session=call.session, seconds=seconds, cancelled=call.cancelled
        )

    def carry_out(
        self, path: WorkspacePath, edits: ServerEdits, *, apply: bool, leave: bool = True
    ) -> str:
        """Put a change that a server would make into the draft.

        Args:
            path: The file that it was asked about.
            edits: The change.
            apply: Whether to do it.
            leave: Whether uses that a rename leaves may keep the old name.

        Raises:
            NamesLeftError: They may not, and there are some.
            StaleFileError: A file is not what the server was shown.
        """
        if edits.left and not leave:
            count = len(edits.left)
            uses = f"{count} {'use' if count == 1 else 'uses'} of the old name"
            listed = f"{uses} in code would be left: {some_names(edits.left)}"
            if apply:
                raise NamesLeftError(
                    f"{listed}; nothing was changed",
                    hint="Look at these places. Send leaveUses: true to rename the rest, and change "
                    "with write_file which of them are meant.",
                )
            self.draft.notes.append(f"{listed}; leaveUses: true renames the rest")
        self.draft.dry_run = not apply
        self.draft.notes.extend(edits.notes)
        targets = carry_out(self.draft, edits)
        self._target = targets.get(path.absolute) or next(iter(targets.values()))
        held = self._target.document
        self._sent = "" if held is None else held.text
        self.counts = {
            targets[one.path].location.shown: count_places(one)
            for one in edits.files
            if one.path in targets
        }
        self._say_who_asks(apply=apply)
        return edits.summary

    def offer(self, actions: Iterable[ServerAction]) -> None:
        """Answer with what servers offer, and change nothing."""
        self.actions = [
            ActionItem(one.title, one.kind, one.server, one.disabled or None) for one in actions
        ]

    def _say_who_asks(self, *, apply: bool) -> None:
        if not apply and self.draft.asks:
            self.draft.notes.append(
                f"A person has to approve this before it is written ({self.draft.asks})."
            )


class SolutionEngine(EngineEvents):
    """Carries out the calls of a solution's tools on a workspace.

    Args:
        workspace: Whose first root is the solution's.
        semantics: Its servers; None asks nobody.
        name: The solution's file in that root; empty for the root itself.
        only_new: The servers of which only differences mean something.
    """

    def __init__(
        self,
        workspace: Workspace,
        semantics: ServerJudge | None,
        name: str = "",
        only_new: AbstractSet[str] = frozenset(),
    ) -> None:
        super().__init__(workspace, semantics)
        self._judge = semantics
        self._root = workspace.guard.roots[0].path
        self._name = name or "."
        self._only_new = only_new
        self._lock = threading.Lock()
        self._opened = False
        self._refused: dict[str, set[str]] = {}

    def port(self, call: CallContext, _name: str) -> SolutionCall:
        """The port of a tool that looks."""
        self._open()
        return SolutionCall(self._workspace, self._judge, self._name, call, self._only_new)

    @contextmanager
    def draft(self, call: CallContext, tool: str) -> Iterator[SolutionChange]:
        """The port of a tool that plans a change.

        A text that was refused because the file had changed can be previewed: the caller sees what it
        would take back, and then may do it.
        """
        self._open()
        reader = self._workspace.reader(call.session)
        with self._workspace.draft(call.session, tool, call.deadline) as draft:
            planned = SolutionChange(
                draft,
                self._root,
                reader,
                self._refused.get(call.session.id, ()),
                semantics=self._judge,
                call=call,
            )
            try:
                yield planned
            except StaleFileError as error:
                if planned.path:
                    self._refused.setdefault(call.session.id, set()).add(planned.path)
                raise StaleFileError(error.message, hint=_STALE, **error.details) from None

    def submit(self, call: CallContext, planned: SolutionChange, summary: str) -> DraftResult:
        """Do, store or only show what was planned.

        Raises:
            CallCancelledError: The caller gave up before anything was written.
        """
        draft = planned.draft
        if planned.actions is not None:
            return DraftResult(Receipt(None, "unchanged", summary))
        previewed = self._check(draft, call)
        seconds = None if self._judge is None else self._judge.note_before(draft, call)
        if call.cancelled():
            raise CallCancelledError(
                f"{planned.target.location.shown}: the call was cancelled before anything was written",
                hint="Send it again if it is still wanted.",
            )
        receipt = self._workspace.submit(draft, summary)
        if receipt.status in ("preview", "unchanged"):
            self._remember(call, planned)
        return DraftResult(receipt, previewed, seconds)

    def answer(
        self, call: CallContext, planned: SolutionChange, submitted: DraftResult
    ) -> CallResult:
        """The answer; what servers say comes after the change, and cannot make it fail."""
        if planned.actions is not None:
            return CallResult("", receipt=facts(ActionAnswer(planned.actions, False, None, None)))
        receipt = submitted.receipt
        if self._judge is not None:
            made, checked = planned.draft, submitted.previewed
            with _with_a_preview():
                self._judge.confirm(made.changes, made.versions, call, receipt, checked)
        answer = _answer(planned, receipt, self._update(call, planned, submitted))
        if planned.draft.tool != "code_action":
            return CallResult("", receipt=facts(answer))
        return CallResult(
            "", receipt=facts(ActionAnswer([], answer.applied, answer.operation, answer))
        )

    def _open(self) -> None:
        """Tell the servers, before the first of them starts, which solution this is."""
        with self._lock:
            opened, self._opened = self._opened, True
            if not opened and self._judge is not None:
                try:
                    self._judge.load(self._name)
                except FilepactError:
                    pass  # said by load; a write does not fail for it
                except Exception:  # noqa: BLE001 - the same, and it is logged
                    _log.exception("the solution could not be opened")

    def _check(self, draft: Draft, call: CallContext) -> WorkspaceUpdate | None:
        """The servers' findings for a change that they may cause to be refused; else None."""
        if self._judge is None or draft.dry_run:
            return None
        with _with_a_preview():
            return self._judge.check(draft, call)

    def _remember(self, call: CallContext, planned: SolutionChange) -> None:
        """Note the compared text as shown: a later call must not undo what others do until then."""
        if planned.target.document is not None:
            with suppress(FilepactError):
                self._workspace.reader(call.session).document(planned.target.location.path)

    def _update(
        self, call: CallContext, planned: SolutionChange, submitted: DraftResult
    ) -> WorkspaceUpdate:
        """How the servers took a change, or would take one that is not done."""
        draft, receipt, previewed = planned.draft, submitted.receipt, submitted.previewed
        done = receipt.status == "applied"
        if self._judge is None:
            update = WorkspaceUpdate("none", False, False, False, _OFF)
        elif receipt.status == "unchanged":
            there = self._judge.includes(planned.target.location.path.absolute)
            same = _OTHER if planned.kept else _SAME
            update = WorkspaceUpdate("none", False, there, there, same)
        elif previewed is not None and not done:
            update = previewed
        else:
            update = self._ask(self._judge, call, draft, submitted.seconds_left, done=done)
            if update.kind == "none":
                update = replace(update, message=update.message or _UNKNOWN)
        shown = receipt.status in ("preview", "pending") or draft.dry_run
        return replace(update, kind="preview", updated=False) if shown else update

    @staticmethod
    def _ask(
        semantics: ServerJudge,
        call: CallContext,
        draft: Draft,
        seconds: float | None,
        *,
        done: bool,
    ) -> WorkspaceUpdate:
        ask = semantics.verify if done else semantics.preview
        try:
            return ask(
                draft.changes,
                draft.versions,
                session=call.session,
                seconds=seconds,
                cancelled=call.cancelled,
            )
        except Exception:  # noqa: BLE001 - what is on the disk has to be said, whatever fails here
            _log.exception("the language servers could not be asked")
            return WorkspaceUpdate("failed", False, False, False, _BROKEN)


@contextmanager
def _with_a_preview() -> Iterator[None]:
    """Name the way on that these tools have, where new errors are refused."""
    try:
        yield
    except NewErrorsError as error:
        hint = "Send a text that brings none; a preview lists what servers would find."
        raise NewErrorsError(error.message, hint=hint, **error.details) from None


def _answer(planned: SolutionChange, receipt: Receipt, update: WorkspaceUpdate) -> WriteAnswer:
    view, target = planned.view, planned.target
    files = [
        ChangedFile(
            file_path=view.path(one.path),
            change_count=planned.counts.get(one.path) or max(receipt.diff.count("\n@@ "), 1),
            diff=view.difference(receipt.diff, one.path) if len(receipt.files) == 1 else None,
        )
        for one in receipt.files
    ]
    whole = cut_diff(receipt.diff, view.most) if view.diff and files else ""
    diff = whole if len(files) > 1 else "".join(str(one.diff) for one in files)
    created = target.document is None
    return WriteAnswer(
        file_path=view.path(target.location.shown),
        changed=bool(files),
        applied=receipt.status == "applied",
        created=bool(files) and created,
        files_changed=len(files),
        unified_diff=diff if view.diff else None,
        changed_files=files,
        workspace_update=view.update(update),
        operation=receipt.operation if receipt.status == "applied" else None,
        pending=_waiting(receipt) if receipt.status == "pending" else None,
        notes=list(receipt.notes),
        hints=AnswerHints(next_steps(receipt.status, update, created=created, kept=planned.kept)),
    )


def _waiting(receipt: Receipt) -> PendingProposal:
    message = (
        "Nothing is written yet: a person has to approve it, who finds it as "
        f"{receipt.operation} with `filepact review --list`. A later answer tells what was said. Do not "
        "send it again. Builds and tests do not see it yet."
    )
    return PendingProposal(str(receipt.operation), receipt.rule, message)


# -- what a caller can do next ---------------------------------------------------------------------


_AGAIN = "The notes show what somebody else has changed, and a preview of the same text what it would take back."
_AFTER = {
    "pending": "The file is written, so do not write it again: get_diagnostics waits for the servers.",
    "stale": "The file is written, and a server still has the old text: call reload, then "
    "get_diagnostics.",
    "failed": "The file is written, and a server is not there: server_status says why, reload "
    "restarts it.",
}


def next_steps(
    status: Status, update: WorkspaceUpdate, *, created: bool, kept: bool = False
) -> list[str]:
    """Sentences for whoever sent a change, the most important one first; none if all is well.

    Args:
        status: What came of the change.
        update: How the servers took it, or would take it.
        created: Whether the file is new.
        kept: Whether the file holds another text than was sent.
    """
    if status == "unchanged":
        return [_AGAIN] if kept else []
    if status == "pending":
        return ["Go on with other work; a later answer tells in meta.news what the person said."]
    steps: list[str] = []
    if status == "preview":
        steps.append("Send the same with applyChanges: true to write it.")
        if any(not one.proven for one in update.servers):
            steps.append(
                "Not every server has answered: preview again later to know what the text would break; "
                "get_diagnostics waits for servers that are still starting."
            )
    elif update.kind in _AFTER:
        steps.append(_AFTER[update.kind])
    if update.servers and created and not update.in_workspace_after:
        steps.append("No project includes this file: add it to one, or move it into its folder.")
    if update.kind == "none" and not update.servers:
        steps.append(
            "No server has looked at it: server_status with includeMissing: true names those that "
            "can be installed; `filepact trust` tells the person which are installed and wait for trust."
        )
    return steps

"""A solution as its tools see it: changes that are shown before they are done, and what servers say."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from filepact.errors import (
    CallCancelledError,
    FilepactError,
    NewErrorsError,
    NotAFileError,
    NotFoundError,
)
from filepact.semantic.update import WorkspaceUpdate
from filepact.tools.advice import next_steps
from filepact.tools.checked import foresee, remember
from filepact.tools.engine import Telling
from filepact.tools.registry import Written
from filepact.tools.solution_port import Solution
from filepact.tools.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from filepact.semantic.insight import Insight
    from filepact.tools.registry import Call
    from filepact.tools.view import PathStyle
    from filepact.workspace.draft import Draft
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.target import Target
    from filepact.workspace.workspace import Workspace

__all__ = ["Planned", "SolutionEngine"]

_log = logging.getLogger(__name__)

_BROKEN = "the language servers could not be asked; the server's log has the details"
_OFF = "language servers are switched off, so nobody was told"
_SAME = "the file holds this text already, so nobody had to be told"
_UNKNOWN = "no installed language server knows this file"


class Planned:
    """What one call wants to change, and how it wants to see that.

    Attributes:
        view: How the answer shows it.
    """

    def __init__(self, draft: Draft, root: str) -> None:
        self._draft = draft
        self.view = View(root)
        self._target: Target | None = None

    @property
    def target(self) -> Target:
        """The file that is to be written."""
        if self._target is None:
            raise RuntimeError("nothing was written yet")
        return self._target

    def show(self, style: PathStyle, *, diff: bool, most: int) -> None:
        """Say how the answer is to show paths and differences."""
        self.view = View(self.view.root, style, diff, most)

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
        self._draft.dry_run = not apply
        try:
            target = self._draft.open(path)
        except (NotAFileError, NotFoundError) as error:
            # What the engine advises takes tools that are not there.
            raise type(error)(
                error.message, hint="Name a file beneath the solution's root.", **error.details
            ) from None
        if target.document is None and not create:
            raise NotFoundError(
                f"{path}: no such file",
                hint="Correct the path, or send createIfMissing: true to make the file.",
                path=path,
            )
        self._target = target
        self._draft.write(target, text)
        if not apply and self._draft.asks:
            self._draft.notes.append(
                f"A person has to approve this before it is written ({self._draft.asks})."
            )
        return f"{'write' if target.document else 'create'} {target.spot.shown}"


class SolutionEngine(Telling):
    """Carries out the calls of a solution's tools on a workspace.

    Args:
        workspace: Whose first root is the solution's.
        insight: Its servers; None asks nobody.
        name: The solution's file in that root; empty for the root itself.
        only_new: The servers of which only differences mean something.
    """

    def __init__(
        self,
        workspace: Workspace,
        insight: Insight | None,
        name: str = "",
        only_new: AbstractSet[str] = frozenset(),
    ) -> None:
        super().__init__(workspace, insight)
        self._root = workspace.guard.roots[0].path
        self._name = name or "."
        self._only_new = only_new
        self._lock = threading.Lock()
        self._opened = False

    @contextmanager
    def port(self, call: Call, _name: str) -> Iterator[Solution]:
        """The port of a tool that looks."""
        self._open()
        yield Solution(self._workspace, self._insight, self._name, call, self._only_new)

    def write(self, call: Call, tool: str, action: Callable[[Planned], str]) -> Written:
        """Let a tool plan a change, then do, store or only show it.

        What servers say comes after the change, and cannot make it fail.

        Raises:
            CallCancelledError: The caller gave up before anything was written.
        """
        self._open()
        with self._workspace.draft(call.session, tool, call.deadline) as draft:
            planned = Planned(draft, self._root)
            summary = action(planned)
            foreseen = self._check(draft, call)
            seconds = self._ask_before(draft, call)
            if call.cancelled():
                raise CallCancelledError(
                    f"{planned.target.spot.shown}: given up before anything was written",
                    hint="Send it again if it is still wanted.",
                )
            receipt = self._workspace.submit(draft, summary)
            if receipt.status == "preview":
                self._remember(call, planned)
        # The lock is given back: nobody else has to wait for the servers.
        update = self._update(call, planned, draft, receipt, foreseen, seconds)
        return Written("", _facts(planned, receipt, update))

    def _open(self) -> None:
        """Tell the servers, before the first of them starts, which solution this is."""
        with self._lock:
            opened, self._opened = self._opened, True
            if not opened and self._insight is not None:
                try:
                    self._insight.load(self._name)
                except FilepactError:
                    pass  # said by load; a write does not fail for it
                except Exception:  # noqa: BLE001 - the same, and it is logged
                    _log.exception("the solution could not be opened")

    def _check(self, draft: Draft, call: Call) -> WorkspaceUpdate | None:
        """What servers would find in a change that may be refused for it; None if it may not.

        Raises:
            NewErrorsError: It would bring errors, and these are refused.
        """
        if self._insight is None or draft.dry_run:
            return None
        try:
            return foresee(self._insight, draft, call)
        except NewErrorsError as error:
            raise NewErrorsError(
                error.message,
                hint="Send a text that brings none; a preview lists what servers would find.",
                **error.details,
            ) from None

    def _ask_before(self, draft: Draft, call: Call) -> float | None:
        """Ask what could not be asked later; the seconds that are left, None for all."""
        return None if self._insight is None else remember(self._insight, draft, call)

    def _remember(self, call: Call, planned: Planned) -> None:
        """What was compared with was shown: a later call must not undo what somebody does until then."""
        if planned.target.document is not None:
            with suppress(FilepactError):
                self._workspace.reader(call.session).document(planned.target.spot.shown)

    def _update(
        self,
        call: Call,
        planned: Planned,
        draft: Draft,
        receipt: Receipt,
        foreseen: WorkspaceUpdate | None,
        seconds: float | None,
    ) -> WorkspaceUpdate:
        """How the servers took a change, or would take one that is not done."""
        done = receipt.status == "applied"
        if self._insight is None:
            update = WorkspaceUpdate("none", False, False, False, _OFF)
        elif receipt.status == "unchanged":
            there = self._insight.includes(planned.target.spot.path.absolute)
            update = WorkspaceUpdate("none", False, there, there, _SAME)
        elif foreseen is not None and not done:
            update = foreseen
        else:
            update = self._ask(self._insight, call, draft, seconds, done=done)
            if update.kind == "none":
                update = replace(update, message=update.message or _UNKNOWN)
        shown = receipt.status in ("preview", "pending") or draft.dry_run
        return replace(update, kind="preview", updated=False) if shown else update

    @staticmethod
    def _ask(
        insight: Insight, call: Call, draft: Draft, seconds: float | None, *, done: bool
    ) -> WorkspaceUpdate:
        ask = insight.follow if done else insight.foresee
        try:
            return ask(
                draft.changes,
                draft.contents,
                session=call.session,
                seconds=seconds,
                cancelled=call.cancelled,
            )
        except Exception:  # noqa: BLE001 - what is on the disk has to be said, whatever fails here
            _log.exception("the language servers could not be asked")
            return WorkspaceUpdate("failed", False, False, False, _BROKEN)


def _facts(planned: Planned, receipt: Receipt, update: WorkspaceUpdate) -> dict[str, Any]:
    """The answer's data."""
    view, target = planned.view, planned.target
    files = [
        {
            "filePath": view.path(one.path),
            "changeCount": max(receipt.diff.count("\n@@ "), 1),
            "diff": view.difference(receipt.diff, one.path),
        }
        for one in receipt.files
    ]
    waits = receipt.status == "pending"
    return {
        "filePath": view.path(target.spot.shown),
        "changed": bool(files),
        "applied": receipt.status == "applied",
        "created": bool(files) and target.document is None,
        "filesChanged": len(files),
        "unifiedDiff": "".join(str(one["diff"]) for one in files) if view.diff else None,
        "changedFiles": files,
        "workspaceUpdate": view.update(update),
        "operation": receipt.operation if receipt.status == "applied" else None,
        "pending": _waiting(receipt) if waits else None,
        "notes": list(receipt.notes),
        "hints": {"nextSteps": next_steps(receipt.status, update, created=target.document is None)},
    }


def _waiting(receipt: Receipt) -> dict[str, str]:
    return {
        "id": str(receipt.operation),
        "rule": receipt.rule,
        "message": "Nothing is written yet: a person has to approve it, who finds it as "
        f"{receipt.operation} with `filepact pending`. A later answer tells what was said. Do not send it again.",
    }

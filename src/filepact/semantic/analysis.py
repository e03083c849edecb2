"""One change on one root: previewed by its servers, or verified after it was done, at once or later."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from filepact.semantic.receipt_lines import describe_late
from filepact.semantic.root_servers import Deadline
from filepact.semantic.updates import ServerUpdate, Tally, kind_of, preview_of, update_of
from filepact.workspace.pending import Unheard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.lsp.diagnostics import Diagnostic
    from filepact.semantic.root_servers import Answers, RootServers
    from filepact.semantic.updates import Kind, TextChange

__all__ = ["ChangeAnalysis", "DeferredResults"]

_MOST_DEPENDENTS: Final = 40
_PAST_COSTS: Final = 3
_PAUSE: Final = 0.2
_SLICE: Final = 0.3
_LAST_QUESTION: Final = 5.0
_PATIENCE: Final = 180.0
_MOST_DEFERRED: Final = 20

_Found = dict[tuple[str, str], "tuple[Diagnostic, ...]"]


@dataclass(frozen=True, slots=True)
class ChangeAnalysis:
    """What the servers of one root make of one change.

    Attributes:
        servers: The root's servers.
        changes: What becomes of files.
        may_see: Whether the caller may be told what is in a file.
    """

    servers: RootServers
    changes: Sequence[TextChange]
    may_see: Callable[[WorkspacePath], bool]

    @property
    def concerns_servers(self) -> bool:
        """Whether a server knows one of the files."""
        return any(
            self.servers.claimed(path.absolute)
            for one in self.changes
            for path in (one.path, one.old)
            if path is not None
        )

    @property
    def is_current(self) -> bool:
        """Whether the files still hold what the change has made of them."""
        texts = self.servers.disk.texts(one.path for one in self.changes)
        return all(texts.get(one.absolute) == one.after for one in self.changes)

    # -- before it is done -----------------------------------------------------------------

    def preview(self, tally: Tally, deadline: Deadline) -> list[ServerUpdate]:
        """How the servers would take it."""
        proposed = {
            one.absolute: one.after
            for one in self.changes
            if one.after is not None and self.may_see(one.path)
        }
        if not proposed:
            return []
        there = [
            one.path for one in self.changes if one.kind == "changed" and one.absolute in proposed
        ]
        asked = self.servers.propose(proposed, [*there, *self._dependents(tally)], deadline)
        if not asked.answers:
            tally.miss()
            return self._unanswered("preview", asked.reason)
        new = {one.absolute for one in self.changes if one.kind in ("created", "renamed")}
        for answer in asked.answers:
            before = {one.path: one for one in answer.before if one.fresh and one.path not in new}
            for path, one in before.items():
                self.servers.learn(answer.server, path, asked.texts[path], one.diagnostics)
            if not answer.withdrawn:
                tally.miss()
                continue
            if not answer.complete:
                tally.miss()
            for report in answer.reports:
                known = before.get(report.path)
                was = known.diagnostics if known else () if report.path in new else None
                tally.add(report, was, only_new=self.servers.only_new(answer.server))
        return [preview_of(one, self.servers.disk.turn) for one in asked.answers]

    def baseline(self, deadline: Deadline) -> None:
        """Record diagnostics before the change if files appear or disappear.

        Afterwards they could not be obtained: an earlier text can be shown to servers again, a file
        that is not on the disk cannot.
        """
        if all(one.kind == "changed" for one in self.changes) or not self.concerns_servers:
            return
        there = [
            path
            for one in self.changes
            for path in ((one.old or one.path),)
            if one.before is not None and self.may_see(path)
        ]
        if self.servers.disk.begun:
            self.servers.baseline([*there, *self._dependents(Tally("dependents"))], deadline)

    # -- afterwards -----------------------------------------------------------------------

    def verify(self, tally: Tally, deadline: Deadline, told: int = 0) -> list[ServerUpdate]:
        """How the servers took it.

        Args:
            tally: Counts what they find.
            deadline: How long to wait.
            told: Of how many files they were told.
        """
        paths = [
            one.path for one in self.changes if one.after is not None and self.may_see(one.path)
        ]
        also = self._dependents(tally)
        gone = [one.path for one in self.changes if one.kind == "deleted"]
        witness = self.servers.witness(gone[0].path) if gone and not paths else []
        wanted = kind_of(self.changes)
        if not paths and not also and not witness:
            return self._unanswered(wanted, "")
        asked = self.servers.ask(paths or witness, also, deadline)
        if not asked.answers:
            tally.miss()
            return self._unanswered("pending", asked.reason)
        before = self._known_before(asked)
        self._ask_for_past(before, asked, [*paths, *also], deadline)
        for answer in asked.answers:
            only_new = self.servers.only_new(answer.server)
            for report in answer.reports:
                if any(report.path == one.absolute for one in witness if one not in also):
                    continue
                tally.add(report, before.get((answer.server, report.path)), only_new=only_new)
                if report.fresh:
                    text = asked.texts[report.path]
                    self.servers.learn(answer.server, report.path, text, report.diagnostics)
        for step in self.changes if gone else ():
            for server in self.servers.servers(step.absolute) if step.kind == "deleted" else ():
                tally.gone(self.servers.known(server, step.absolute, step.before) or ())
        changed = {one.absolute for one in self.changes}
        return [update_of(one, wanted, changed, told) for one in asked.answers]

    def is_answered(self, deadline: Deadline) -> bool:
        """Whether every server that is there has an answer about the changed files by now."""
        paths = [
            one.path for one in self.changes if one.after is not None and self.may_see(one.path)
        ]
        asked = self.servers.ask(paths, (), deadline)
        return bool(asked.answers) and all(
            one.state == "failed" or one.fresh for one in asked.answers
        )

    def _known_before(self, asked: Answers) -> _Found:
        """What servers had found before, as far as it is known."""
        steps = {one.absolute: one for one in self.changes}
        found: _Found = {}
        for report in (one for each in asked.answers for one in each.reports):
            step = steps.get(report.path)
            if step is None:
                known = self.servers.known(report.server, report.path, asked.texts[report.path])
            elif step.kind == "created":
                known = ()
            else:
                old = (step.old or step.path).absolute
                known = self.servers.known(report.server, old, step.before)
                known = known and tuple(replace(one, path=report.path) for one in known)
            if known is not None:
                found[report.server, report.path] = known
        return found

    def _ask_for_past(
        self,
        before: _Found,
        asked: Answers,
        paths: Sequence[WorkspacePath],
        deadline: Deadline,
    ) -> None:
        """Ask what was found before the change, where nobody had asked then."""
        fresh = [
            (one.server, report) for one in asked.answers for report in one.reports if report.fresh
        ]
        spent = max((one.seconds for one in asked.answers), default=0.0)
        if all((server, report.path) in before for server, report in fresh):
            return
        past = {one.absolute: one.before for one in self.changes if one.before is not None}
        exact = all(one.kind == "changed" and one.absolute in past for one in self.changes)
        if not exact or deadline.rest < spent * _PAST_COSTS:
            return
        earlier = self.servers.propose(past, paths, deadline)
        for answer in earlier.answers:
            for report in answer.reports if answer.withdrawn else ():
                key, own = (answer.server, report.path), report.path in past
                same = own or earlier.texts.get(report.path) == asked.texts.get(report.path)
                if report.fresh and same and (answer.complete or own):
                    before.setdefault(key, report.diagnostics)

    # -- both -----------------------------------------------------------------------------

    def _dependents(self, tally: Tally) -> list[WorkspacePath]:
        """Files in which the change may cause diagnostics, the likeliest first."""
        found, whole = self.servers.dependents(self.changes, _MOST_DEPENDENTS)
        seen = [path for path in found if self.may_see(path)]
        if not whole or len(seen) < len(found):
            tally.miss()
        return seen

    def _unanswered(self, kind: Kind, reason: str) -> list[ServerUpdate]:
        """The updates of the files' servers if none of them has answered."""
        names = dict.fromkeys(
            server for one in self.changes for server in self.servers.servers(one.absolute)
        )
        turn = self.servers.disk.turn
        return [ServerUpdate(name, kind, "", "none", turn, turn, 0.0, reason) for name in names]


@dataclass(frozen=True, slots=True)
class _Waiting:
    session: str
    analysis: ChangeAnalysis
    patience: Deadline


class DeferredResults:
    """Asks about changes in the background until servers answer, for a later receipt.

    Args:
        show: A file's absolute path as a reader knows it.

    Attributes:
        unheard: What has come for each session, and was not told yet.
    """

    def __init__(self, show: Callable[[str], str]) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self.unheard = Unheard()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, session: str, analysis: ChangeAnalysis) -> None:
        """Tell a session, once it is known, what servers find after a change."""
        patience = Deadline.after(_PATIENCE, self._over.is_set, patient=True)
        with self._lock:
            self._waiting = [*self._waiting, _Waiting(session, analysis, patience)][
                -_MOST_DEFERRED:
            ]
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(
                    target=self._work, name="deferred diagnostics", daemon=True
                )
                self._thread.start()

    def supersede(self, session: str, analysis: ChangeAnalysis) -> None:
        """Forget what a session waits for where it changes the same files again."""
        paths = {one.path for one in analysis.changes}
        with self._lock:
            self._waiting = [
                one
                for one in self._waiting
                if one.session != session
                or not paths >= {step.path for step in one.analysis.changes}
            ]

    def close(self) -> None:
        """Ask no more."""
        self._over.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_LAST_QUESTION)

    def _work(self) -> None:
        while not self._over.wait(_PAUSE):
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                waiting = list(self._waiting)
            for one in waiting:
                text = self._answer(one)
                if text is None:
                    continue
                with self._lock:
                    if one in self._waiting:
                        self._waiting.remove(one)
                        if text:
                            self.unheard.add(one.session, text)

    def _answer(self, one: _Waiting) -> str | None:
        """The lines for a later receipt; empty if there are none any more, None if not yet."""
        if not one.analysis.is_current or not one.patience.rest:
            return ""
        never = self._over.is_set
        if not one.analysis.is_answered(Deadline.after(_SLICE, never, patient=True)):
            return None
        tally = Tally("dependents")
        servers = one.analysis.verify(tally, Deadline.after(_LAST_QUESTION, never, patient=True))
        findings = tally.findings()
        if findings is None or any(each.kind == "pending" for each in servers):
            return None
        names = [each.server for each in servers if each.confirmed_by != "none"]
        paths = [step.absolute for step in one.analysis.changes]
        return describe_late(names, findings, paths, self._show)

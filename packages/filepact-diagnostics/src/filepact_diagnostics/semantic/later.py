"""Questions that servers had no time for when a change was done: asked in the background, told later."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Final

from filepact.values import dataclass, field, replace
from filepact.workspace.pending import SessionEvents
from filepact_diagnostics.semantic.analysis import PROMPT, FoundDiagnostics
from filepact_diagnostics.semantic.deadline import CallDeadline
from filepact_diagnostics.semantic.updates import DiagnosticsSummary, merge_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Session
    from filepact_diagnostics.lsp.diagnostics import Diagnostic, FileDiagnostics
    from filepact_diagnostics.semantic.analysis import ChangeDiagnostics, UpdateResult
    from filepact_diagnostics.semantic.updates import FreshDiagnostics, UpdateDiagnostics

__all__ = ["PendingDiagnostics"]

_PAUSE: Final = 0.2
_SLICE: Final = 0.3
_LAST_QUESTION: Final = 5.0
_PATIENCE: Final = 180.0
_ENOUGH: Final = 60.0
"""Seconds after which no further files are asked about, and what was found is told."""
_MOST_DEFERRED: Final = 20
_MOST_LEFT: Final = 200
_TELLING: Final = 7.5
_MOST_TRIES: Final = 6
_PART: Final = 8
_PART_SECONDS: Final = 3.0
_MOST_OUTDATED: Final = 50
_MOST_BROUGHT: Final = 2_000
_MOST_TURNS: Final = 1_000


@dataclass(slots=True)
class _Waiting:
    """The diagnostics that a session has not been told yet, of changes in one root.

    Attributes:
        analysis: The changes, one after the other.
        patience: Until when to ask.
        own: Whether servers have not answered about the changed files.
        unsure: Whether files that depend on these may still be found.
        left: Files that they have not been asked about.
        told: What was found new and told meanwhile.
        answered: The files that were answered about after the last of the changes, absolute.
        before: What was found before the first of the changes.
        found: What is found now.
        outdated: How often the files held something else than the last of the changes made of them.
        tries: How often a server was asked which files the changes concern.
        asked: Whether servers were asked since the last of the changes.
        partial: Whether other files may be concerned that were not asked about.
        done: The moment when servers were first given something of the first of the changes.
    """

    session: str
    analysis: ChangeDiagnostics
    patience: CallDeadline
    own: bool
    unsure: bool
    left: dict[WorkspacePath, None]
    told: list[Diagnostic]
    answered: frozenset[str] = frozenset()
    before: FoundDiagnostics = field(default_factory=dict)
    found: dict[tuple[str, str], FileDiagnostics] = field(default_factory=dict)
    outdated: int = 0
    tries: int = 0
    asked: bool = False
    partial: bool = False
    done: int | None = None


class PendingDiagnostics:
    """Asks about changes in the background until servers answer, for a later receipt.

    What a session waits for is never given up for a later change of its own: both are told as one.

    Args:
        describe: The lines of a receipt: of servers, what they find, and the changed files.

    Attributes:
        unheard: What has come for each session, and was not told yet.
    """

    def __init__(
        self, describe: Callable[[Iterable[str], UpdateDiagnostics, Iterable[str]], str]
    ) -> None:
        self._describe = describe
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._turns: dict[str, tuple[str, list[Diagnostic]]] = {}
        self.unheard = SessionEvents()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(
        self,
        session: str,
        analysis: ChangeDiagnostics,
        verified: UpdateResult,
        told: UpdateDiagnostics | None,
    ) -> None:
        """Tell a session, once it is known, what servers find after a change.

        Args:
            session: Its id.
            analysis: The change.
            verified: What they found so far.
            told: The same, as the session is told it now.
        """
        own = any(one.kind == "pending" for one in verified.servers)
        with self._lock:
            one = self._of(session, analysis)
        # What was found since the first of them came of it, also in files that none of them changed.
        before = analysis.diagnostics_before((), verified.done if one is None else one.done)
        with self._lock:
            one = self._of(session, analysis)
            if one is not None:
                steps = merge_changes(one.analysis.changes, analysis.changes)
                one.analysis = replace(one.analysis, changes=steps)
            elif own or verified.left or verified.unsure:
                patience = CallDeadline(_PATIENCE, self._over.is_set, patient=True)
                one = _Waiting(session, analysis, patience, own, False, {}, [], done=verified.done)
                self._waiting = [*self._waiting, one][-_MOST_DEFERRED:]
            else:
                return
            one.own |= own
            one.asked, one.outdated = False, 0
            one.told += told.new if told is not None else ()
            one.unsure |= verified.unsure
            one.answered = verified.answered
            one.before = {**before, **one.before}
            one.left |= dict.fromkeys(verified.left)
            while len(one.left) > _MOST_LEFT:
                one.left.popitem()
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(
                    target=self._work, name="deferred diagnostics", daemon=True
                )
                self._thread.start()

    def record(
        self, session: str, findings: UpdateDiagnostics | None, turn: str | None = None
    ) -> None:
        """Keep the new errors of a session's turn.

        Args:
            session: Its id.
            findings: What servers find.
            turn: Its name; None for the last.
        """
        with self._lock:
            last, some = self._turns.pop(session, ("", []))
            if turn not in (None, last):
                last, some = turn or "", []
            errors = (one for one in (findings.new if findings else ()) if one.severity == "error")
            self._turns[session] = last, [*some, *errors][-_MOST_BROUGHT:]
            while len(self._turns) > _MOST_TURNS:
                del self._turns[next(iter(self._turns))]

    def brought(self, session: Session) -> dict[str, list[Diagnostic]] | None:
        """The new errors that a session's turn has brought, by file, also those that are mended.

        None where no server knows a file that it changed.
        """
        with self._lock:
            turn, some = self._turns.get(session.id, (None, []))
        if turn != session.turn:
            return None
        found: dict[str, list[Diagnostic]] = {}
        for one in some:
            found.setdefault(one.path, []).append(one)
        return found

    def settle(self, session: str, deadline: CallDeadline) -> None:
        """Wait until nothing is left to be found out for a session."""
        while self.pending(session) and deadline.left and not deadline.cancelled():
            self._over.wait(_PAUSE / 4)

    def pending(self, session: str) -> frozenset[str]:
        """The files, absolute, of which is still to be found out what changes of a session did to them."""
        with self._lock:
            of = [one for one in self._waiting if one.session == session]
        changed = {each.absolute for one in of for each in one.analysis.changes}
        return frozenset(changed.union(path.absolute for one in of for path in tuple(one.left)))

    def close(self) -> None:
        """Ask no more."""
        self._over.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_LAST_QUESTION)

    def _of(self, session: str, analysis: ChangeDiagnostics) -> _Waiting | None:
        return next(
            (
                one
                for one in self._waiting
                if one.session == session and one.analysis.servers is analysis.servers
            ),
            None,
        )

    def _work(self) -> None:
        pause = _PAUSE
        while not self._over.wait(pause):
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                waiting = list(self._waiting)
            pause = _PAUSE
            for one in waiting:
                analysis, left = one.analysis, len(one.left)
                text = self._go_on(one, analysis)
                pause = 0.0 if len(one.left) < left else pause
                if text is None:
                    continue
                with self._lock:
                    # Where there was another change meanwhile, this goes on with it.
                    if one in self._waiting and one.analysis is analysis:
                        self._waiting.remove(one)
                        if text:
                            self.unheard.add(one.session, text)

    def _go_on(self, one: _Waiting, analysis: ChangeDiagnostics) -> str | None:
        """The lines for a later receipt; empty if there are none any more, None if not yet."""
        if not one.patience.left:
            return ""
        if not analysis.is_current:
            # The session itself may be at its next change, which will be told together with this one.
            one.outdated += 1
            return "" if one.outdated > _MOST_OUTDATED else None
        never, servers = self._over.is_set, analysis.servers
        if one.unsure:
            if not servers.indexed:
                return None
            wait = CallDeadline(_TELLING, never, patient=True)
            found, whole = servers.dependents(analysis.changes, wait)
            one.tries += 1
            if not whole and one.tries < _MOST_TRIES and servers.teller(analysis.changes):
                return None  # The server goes on from where it was.
            more = [
                path
                for path in found
                if path.absolute not in one.answered and analysis.may_see(path)
            ]
            with self._lock:
                one.unsure, one.partial = False, one.partial or not whole
                one.left |= dict.fromkeys(more)
        wait = CallDeadline(_SLICE, never, patient=True)
        first, one.asked = not one.asked, True
        own = servers.ask(analysis.asked_paths, (), wait, background=True)
        failed = {
            each.server for each in own.answers if each.state == "failed" or each.cannot_prove
        }
        if not own.answers or any(
            not each.fresh for each in own.answers if each.server not in failed and each.reports
        ):
            return None
        for each in own.answers if first else ():
            if each.reports and each.server not in failed:
                in_time = all(report.seconds <= PROMPT for report in each.reports)
                servers.record_timeliness(each.server, in_time=in_time, waited=False)
        with self._lock:
            if one.left and one.patience.left < _PATIENCE - _ENOUGH:
                one.partial, one.left = True, {}
            part = list(islice(one.left, _PART))
        if part:
            wait = CallDeadline(_PART_SECONDS, never, patient=True)
            before = analysis.diagnostics_before(part, one.done)
            rest = servers.ask((), part, wait, background=True)
            done = {
                path
                for path in part
                if all(
                    report.fresh or each.server in failed
                    for each in rest.answers
                    for report in each.reports
                    if report.path == path.absolute
                )
                and rest.answers
            }
            servers.index.pace(rest.answers)
            with self._lock:
                self._keep(one, rest)
                one.before = {**before, **one.before}
                for path in done:
                    one.left.pop(path, None)
            return None
        with self._lock:
            self._keep(one, own)
        return self._said(one, analysis)

    @staticmethod
    def _keep(one: _Waiting, asked: FreshDiagnostics) -> None:
        for report in (each for answer in asked.answers for each in answer.reports):
            if report.fresh:
                one.found[report.server, report.path] = report

    def _said(self, one: _Waiting, analysis: ChangeDiagnostics) -> str | None:
        """The final diagnostics, once those still present are confirmed."""
        servers, changed = analysis.servers, {each.absolute for each in analysis.changes}
        wrong = {path for (_, path), each in one.found.items() if each.diagnostics}
        paths = [path for path in servers.paths(wrong - changed) if analysis.may_see(path)]
        wait = CallDeadline(_LAST_QUESTION, self._over.is_set, patient=True)
        asked = servers.ask(analysis.asked_paths, paths, wait)
        if not asked.answers:
            return None
        wait = CallDeadline(_LAST_QUESTION, self._over.is_set, patient=True)
        before = analysis.earlier(
            one.before, asked, [*analysis.visible_paths, *paths], wait, one.done
        )
        tally = DiagnosticsSummary("dependents")
        if one.partial:
            tally.miss()
        names: dict[str, None] = {}
        heard = list(one.told)
        for answer in asked.answers:
            for report in answer.reports:
                if not report.fresh:
                    return "" if answer.state == "failed" or answer.cannot_prove else None
                names[answer.server] = None
                was = before.get((answer.server, report.path))
                # One of the servers has said it, whichever; so it counts once.
                told = [each for each in heard if each.path == report.path and was is not None]
                heard = [each for each in heard if each not in told]
                tally.add(report, None if was is None else [*was, *told])
                servers.learn(asked, report)
        findings = tally.findings()
        if findings is None or not (one.own or findings.new):
            return ""
        self.record(one.session, findings)
        return self._describe(names, findings, changed)

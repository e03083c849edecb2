"""One change on one root: shown to its servers before it is done, or told to them afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from filepact.semantic.update import Took
from filepact.semantic.verdict import Tally, kind_of, took, took_preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.lsp.diagnostics import Diagnostic
    from filepact.lsp.outcome import Update
    from filepact.semantic.asked import Limit
    from filepact.semantic.ground import Ground
    from filepact.semantic.texts import Step
    from filepact.semantic.update import Kind

__all__ = ["Case"]

_MOST_DEPENDENTS: Final = 20
_PAST_COSTS: Final = 3

_Found = dict[tuple[str, str], "tuple[Diagnostic, ...]"]


@dataclass(frozen=True, slots=True)
class Case:
    """A change on one root.

    Attributes:
        ground: The root and its servers.
        steps: What becomes of its files.
        may_see: Whether whoever asks may be told what is in a file.
    """

    ground: Ground
    steps: Sequence[Step]
    may_see: Callable[[WorkspacePath], bool]

    @property
    def concerns_servers(self) -> bool:
        """Whether a server knows one of the files."""
        return any(
            self.ground.claimed(path.absolute)
            for one in self.steps
            for path in (one.path, one.old)
            if path is not None
        )

    @property
    def stands(self) -> bool:
        """Whether the files hold what the change has made of them."""
        texts = self.ground.disk.texts(one.path for one in self.steps)
        return all(texts.get(one.absolute) == one.after for one in self.steps)

    # -- before ---------------------------------------------------------------------------

    def foresee(self, tally: Tally, limit: Limit) -> list[Took]:
        """How the servers would take it."""
        proposed = {
            one.absolute: one.after
            for one in self.steps
            if one.after is not None and self.may_see(one.path)
        }
        if not proposed:
            return []
        there = [
            one.path for one in self.steps if one.kind == "changed" and one.absolute in proposed
        ]
        asked = self.ground.propose(proposed, [*there, *self._dependents(tally)], limit)
        if not asked.answers:
            tally.miss()
            return self._silent("preview", asked.reason)
        new = {one.absolute for one in self.steps if one.kind in ("created", "renamed")}
        for answer in asked.answers:
            before = {one.path: one for one in answer.before if one.fresh and one.path not in new}
            for path, one in before.items():
                self.ground.learn(answer.server, path, one.diagnostics)
            if not answer.withdrawn:
                tally.miss()
                continue
            if not answer.complete:
                tally.miss()
            for report in answer.after:
                known = before.get(report.path)
                was = known.diagnostics if known else () if report.path in new else None
                tally.add(report, was, only_new=self.ground.only_new(answer.server))
        return [took_preview(one, self.ground.disk.turn) for one in asked.answers]

    def remember(self, limit: Limit) -> None:
        """Have it known what servers find before it is done, where that cannot be asked later.

        Texts that were there can be shown to servers again; a file that was not, or is not any
        more, cannot.
        """
        if all(one.kind == "changed" for one in self.steps) or not self.concerns_servers:
            return
        there = [
            path
            for one in self.steps
            for path in ((one.old or one.path),)
            if one.before is not None and self.may_see(path)
        ]
        if self.ground.disk.begun:
            self.ground.remember([*there, *self._dependents(Tally("dependents"))], limit)

    # -- afterwards -----------------------------------------------------------------------

    def follow(self, tally: Tally, limit: Limit, told: int = 0) -> list[Took]:
        """How the servers have taken it.

        Args:
            tally: Counts what they find.
            limit: How long to wait.
            told: Of how many files they were told.
        """
        paths = [one.path for one in self.steps if one.after is not None and self.may_see(one.path)]
        also = self._dependents(tally)
        gone = [one.path for one in self.steps if one.kind == "deleted"]
        witness = self.ground.witness(gone[0].path) if gone and not paths else []
        wanted = kind_of(self.steps)
        if not paths and not also and not witness:
            return self._silent(wanted, "")
        asked = self.ground.ask(paths or witness, also, limit)
        if not asked.answers:
            tally.miss()
            return self._silent("pending", asked.reason)
        before = self._known_before(asked.answers)
        self._ask_for_past(before, asked.answers, [*paths, *also], limit)
        for answer in asked.answers:
            only_new = self.ground.only_new(answer.server)
            for report in answer.reports:
                if any(report.path == one.absolute for one in witness if one not in also):
                    continue
                tally.add(report, before.get((answer.server, report.path)), only_new=only_new)
                if report.fresh:
                    self.ground.learn(answer.server, report.path, report.diagnostics)
        for path in gone:
            for server in self.ground.servers(path.absolute):
                known = self.ground.known(server, path.absolute)
                if known is not None:
                    tally.gone(known)
                    self.ground.learn(server, path.absolute, None)
        changed = {one.absolute for one in self.steps}
        return [took(one, wanted, changed, told) for one in asked.answers]

    def answered(self, limit: Limit) -> bool:
        """Whether every server that can answers about the changed files by now."""
        paths = [one.path for one in self.steps if one.after is not None and self.may_see(one.path)]
        asked = self.ground.ask(paths, (), limit)
        return bool(asked.answers) and all(
            one.kind == "failed" or one.fresh for one in asked.answers
        )

    def _known_before(self, answers: Iterable[Update]) -> _Found:
        """What servers had found before, as far as it is known."""
        olds = {one.absolute: one for one in self.steps if one.kind in ("created", "renamed")}
        found: _Found = {}
        for answer in answers:
            for report in answer.reports:
                step = olds.get(report.path)
                known = self.ground.known(answer.server, report.path)
                if step is not None:
                    known = ()
                    if step.old is not None:
                        known = self.ground.known(answer.server, step.old.absolute)
                        known = known and tuple(replace(one, path=report.path) for one in known)
                if known is not None:
                    found[answer.server, report.path] = known
        return found

    def _ask_for_past(
        self,
        before: _Found,
        answers: Sequence[Update],
        paths: Sequence[WorkspacePath],
        limit: Limit,
    ) -> None:
        """Ask what was found before the change, where nobody had asked then."""
        fresh = [(one.server, report) for one in answers for report in one.reports if report.fresh]
        spent = max((one.seconds for one in answers), default=0.0)
        if all((server, report.path) in before for server, report in fresh):
            return
        past = {one.absolute: one.before for one in self.steps if one.before is not None}
        exact = all(one.kind == "changed" and one.absolute in past for one in self.steps)
        if not exact or limit.rest < spent * _PAST_COSTS:
            return
        for answer in self.ground.propose(past, paths, limit).answers:
            for report in answer.after if answer.withdrawn else ():
                key = (answer.server, report.path)
                if report.fresh and (answer.complete or report.path in past):
                    before.setdefault(key, report.diagnostics)

    # -- both -----------------------------------------------------------------------------

    def _dependents(self, tally: Tally) -> list[WorkspacePath]:
        """Files that may be found fault with because of the change, the likeliest first."""
        names = [
            path.path for one in self.steps for path in (one.path, one.old) if path is not None
        ]
        found, whole = self.ground.depending(names, 2 * _MOST_DEPENDENTS)
        seen = [path for path in found if self.may_see(path)]
        whole = whole and self.ground.disk.whole
        if not whole or len(seen) < len(found) or len(seen) > _MOST_DEPENDENTS:
            tally.miss()
        return seen[:_MOST_DEPENDENTS]

    def _silent(self, kind: Kind, reason: str) -> list[Took]:
        """All servers of the files, if none of them has answered."""
        names = dict.fromkeys(
            server for one in self.steps for server in self.ground.servers(one.absolute)
        )
        turn = self.ground.disk.turn
        return [Took(name, kind, "", "none", turn, turn, 0.0, reason) for name in names]

"""What language servers make of a workspace and of changes to it.

Nothing here stands in the way of a change: whatever a server does or fails to do is part of an
answer, and no answer takes longer than its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from filepact.domain.document import WorkspacePath
from filepact.lsp.inquiry import Inquiry
from filepact.semantic.asked import Limit
from filepact.semantic.case import Case
from filepact.semantic.ground import Ground
from filepact.semantic.summary import describe
from filepact.semantic.texts import steps_of
from filepact.semantic.update import Took
from filepact.semantic.verdict import Tally, put_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId
    from filepact.domain.operation import Session
    from filepact.lsp.diagnostics import Report
    from filepact.lsp.pool import Pool
    from filepact.semantic.texts import Step
    from filepact.semantic.update import WorkspaceUpdate
    from filepact.workspace.workspace import Workspace

__all__ = ["Insight", "InsightMode", "NewErrors"]

InsightMode = Literal["auto", "off", "always"]
NewErrors = Literal["allow", "ask", "deny"]

_GOES: str = "what becomes of other files when one goes cannot be foreseen"


def _never() -> bool:
    return False


class Insight:
    """The servers of a workspace; for all threads.

    Args:
        workspace: The files.
        pool: The servers; closed with this.
        mode: ``auto`` starts an installed server with the first change of a file that it knows, and
            waits only for those that run; ``always`` waits for them to start as well; ``off``
            asks none.
        budget: Seconds that a question may take in all, if it does not say otherwise.
        new_errors: What becomes of a change that would bring new errors.
    """

    def __init__(
        self,
        workspace: Workspace,
        pool: Pool,
        *,
        mode: InsightMode = "auto",
        budget: float = 2.0,
        new_errors: NewErrors = "allow",
    ) -> None:
        self.mode = mode
        self.budget = budget
        self.new_errors = new_errors
        self._workspace = workspace
        self._surroundings = workspace.surroundings
        self._pool = pool
        inquiry = Inquiry(pool)
        self._grounds: dict[RootId, Ground] = {
            root.path: Ground(root.path, self._surroundings, pool, inquiry)
            for root in workspace.guard.roots
        }

    def close(self) -> None:
        """End all servers."""
        self._pool.close()

    def claims(self, path: str) -> bool:
        """Whether an installed server knows a file.

        Args:
            path: Absolute.
        """
        place = self._place(path)
        return self.mode != "off" and place is not None and self._grounds[place.root].claimed(path)

    # -- changes --------------------------------------------------------------------------

    def foresee(
        self,
        changes: ChangeSet,
        contents: Mapping[str, bytes],
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> WorkspaceUpdate:
        """How the workspace would take a change; the disk stays as it is.

        Args:
            changes: What would be done.
            contents: The bytes of the states that it names, by content id.
            session: Who asks, and is told nothing of files that it may not read.
            seconds: How long it may take in all.
            cancelled: Asked now and then; true ends it.
        """
        limit = self._limit(seconds, cancelled)
        tally, servers, message = Tally("dependents"), list[Took](), ""
        for case in self._cases(changes, contents, session):
            if not case.concerns_servers:
                continue
            if any(one.kind in ("deleted", "renamed") for one in case.steps):
                tally.miss()
                message = _GOES
            servers += case.foresee(tally, limit)
        members = self._members(changes)
        return put_together(servers, tally.findings(), members, message)

    def follow(
        self,
        changes: ChangeSet,
        contents: Mapping[str, bytes],
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> WorkspaceUpdate:
        """How the workspace takes a change that was just done.

        Arguments as for `foresee`; what the files hold by now counts.
        """
        limit = self._limit(seconds, cancelled)
        tally, servers = Tally("dependents"), list[Took]()
        for case in self._cases(changes, contents, session):
            told = case.ground.tell(case.steps) if case.ground.begun else 0
            if case.concerns_servers:
                servers += case.follow(tally, limit, told)
        return put_together(servers, tally.findings(), self._members(changes))

    def line(self, update: WorkspaceUpdate) -> str:
        """What a receipt says of an update; empty where no server knows the files."""
        return describe(update, self._show)

    # -- looking --------------------------------------------------------------------------

    def look(
        self,
        paths: Sequence[str],
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> tuple[Report, ...]:
        """What the servers find in files; servers that do not run are started and waited for.

        Args:
            paths: Files, as an agent names them.
            session: Who asks.
            seconds: How long it may take in all.
            cancelled: Asked now and then; true ends it.

        Raises:
            FilepactError: A path may not be used, or leads to no file.
        """
        limit = self._limit(seconds, cancelled, patient=True)
        wanted: dict[RootId, list[WorkspacePath]] = {}
        for path in paths:
            spot = self._workspace.guard.find_file(path, "read", agent=session.agent)
            wanted.setdefault(spot.path.root, []).append(spot.path)
        reports: list[Report] = []
        for root, some in wanted.items():
            ground = self._grounds[root]
            known = [path for path in some if ground.claimed(path.absolute)]
            if self.mode != "off" and known:
                reports += ground.report(known, limit)
        return tuple(reports)

    # -- parts ----------------------------------------------------------------------------

    def _limit(
        self, seconds: float | None, cancelled: Callable[[], bool], *, patient: bool = False
    ) -> Limit:
        wait = self.budget if seconds is None else seconds
        return Limit.after(wait, cancelled, patient=patient or self.mode == "always")

    def _cases(
        self, changes: ChangeSet, contents: Mapping[str, bytes], session: Session
    ) -> Iterator[Case]:
        """A change by root."""
        if self.mode == "off":
            return
        by_root: dict[RootId, list[Step]] = {}
        for step in steps_of(changes, contents, self._surroundings.text):
            by_root.setdefault(step.path.root, []).append(step)
        hides = self._workspace.guard.hides

        def may_see(path: WorkspacePath) -> bool:
            return not hides(path, session.agent)

        for root, steps in by_root.items():
            if root in self._grounds:
                yield Case(self._grounds[root], steps, may_see)

    def _members(self, changes: ChangeSet) -> tuple[bool, bool]:
        """Whether the first file of a change belongs to the workspace, before and afterwards."""
        if not changes:
            return False, False
        first = changes.changes[0]
        claimed = self.claims(first.path.absolute)
        return claimed and first.before is not None, claimed and first.after is not None

    def _place(self, path: str) -> WorkspacePath | None:
        """The root of an absolute path, the innermost of several, and the path beneath it."""
        for root in sorted(self._grounds, key=len, reverse=True):
            start = f"{root.rstrip('/')}/"
            if path.startswith(start) and path != start:
                return WorkspacePath(root, path[len(start) :])
        return None

    def _show(self, path: str) -> str:
        place = self._place(path)
        return path if place is None else self._workspace.show(place)

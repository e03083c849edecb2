"""What language servers make of a workspace and of changes to it.

Nothing here stands in the way of a change: whatever a server does or fails to do is part of an
answer, and no answer takes longer than its time.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError, NotFoundError
from filepact.lsp.inquiry import Inquiry
from filepact.semantic.asked import Limit
from filepact.semantic.case import Case
from filepact.semantic.ground import Ground
from filepact.semantic.late import Late
from filepact.semantic.membership import Members
from filepact.semantic.overview import (
    describe_opened,
    is_solution,
    providers_of,
    survey_all,
    sync_all,
)
from filepact.semantic.summary import describe, list_found
from filepact.semantic.texts import steps_of
from filepact.semantic.update import Took, WorkspaceUpdate
from filepact.semantic.verdict import Tally, put_together
from filepact.wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId
    from filepact.domain.operation import Session
    from filepact.lsp.diagnostics import Diagnostic, Report
    from filepact.lsp.pool import Pool
    from filepact.semantic.project import Loaded, Provider, Surveyed, Synced
    from filepact.semantic.texts import Step
    from filepact.workspace.news import News
    from filepact.workspace.workspace import Workspace

__all__ = ["Insight", "InsightMode", "NewErrors"]

InsightMode = Literal["auto", "off", "always"]
NewErrors = Literal["allow", "ask", "deny"]

_log = logging.getLogger(__name__)

_OURS: Final = "a mistake of filepact's own, of which its log has the details"
_GOES: Final = "what becomes of other files when one goes cannot be foreseen"


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
        self._members = {
            root: Members(ground, self._surroundings) for root, ground in self._grounds.items()
        }
        self._late = Late(self._show)

    def close(self) -> None:
        """End all servers."""
        self._late.close()
        for ground in self._grounds.values():
            ground.close()
        self._pool.close()

    def claims(self, path: str) -> bool:
        """Whether an installed server knows a file.

        Args:
            path: Absolute.
        """
        place = self._place(path)
        return self.mode != "off" and place is not None and self._grounds[place.root].claimed(path)

    def includes(self, path: str) -> bool:
        """Whether a project includes a file that a server knows; it need not be there.

        Args:
            path: Absolute.
        """
        place = self._place(path)
        return place is not None and self._includes([place])

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
        try:
            for case in self._cases(changes, contents, session):
                if not case.concerns_servers:
                    continue
                if any(one.kind in ("deleted", "renamed") for one in case.steps):
                    tally.miss()
                    message = _GOES
                servers += case.foresee(tally, limit)
        except Exception as error:  # noqa: BLE001 - nothing here may end a change
            return self._lost(error)
        members = self._membership(changes)
        return put_together(servers, tally.findings(), members, message)

    def remember(
        self,
        changes: ChangeSet,
        contents: Mapping[str, bytes],
        *,
        session: Session,
        cancelled: Callable[[], bool] = _never,
    ) -> float:
        """Ask what is found before files come or go; later it could not be asked any more.

        What they find afterwards is compared with that.  Without it, some of what a first such
        change brings cannot be told from what was there.  Other arguments as for `foresee`.

        Returns:
            How many seconds of the budget are left for following the change; half of it at least.
        """
        began = time.monotonic()
        limit = self._limit(self.budget / 2, cancelled)
        try:
            for case in self._cases(changes, contents, session):
                case.remember(limit)
        except Exception as error:  # noqa: BLE001 - nothing here may end a change
            self._lost(error)
        return max(self.budget - (time.monotonic() - began), self.budget / 2)

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
        try:
            for case in self._cases(changes, contents, session):
                told = case.ground.disk.tell(case.steps) if case.ground.disk.begun else 0
                if not case.concerns_servers:
                    continue
                took = case.follow(tally, limit, told)
                self._late.supersede(session.id, case)
                if any(one.kind == "pending" for one in took):
                    self._late.add(session.id, case)
                servers += took
        except Exception as error:  # noqa: BLE001 - nothing here may end a change
            return self._lost(error)
        return put_together(servers, tally.findings(), self._membership(changes))

    def line(self, update: WorkspaceUpdate) -> str:
        """What a receipt says of an update; empty where no server knows the files."""
        return describe(update, self._show)

    def listed(self, found: Iterable[Diagnostic]) -> str:
        """The first of some diagnostics, one on each line."""
        return "\n".join(list_found(found, self._show))

    def news(self, session_id: str) -> tuple[News, ...]:
        """What was found since of changes whose receipts could not tell, until it was `heard`."""
        return self._late.unheard.news(session_id)

    def heard(self, session_id: str, news: Sequence[News]) -> None:
        """The session was told these; what is not about servers is left out."""
        self._late.unheard.heard(session_id, news)

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
        return tuple(
            report
            for root, some in wanted.items()
            for report in self._reports(self._grounds[root], some, limit)
        )

    def survey(
        self,
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> Surveyed:
        """What the servers find in everything; arguments as for `look`.

        Of a large root only files are looked at that a server names, or was asked about before.
        """
        limit = self._limit(seconds, cancelled, patient=True)
        grounds = self._grounds.values() if self.mode != "off" else ()
        return survey_all(grounds, self._eyes(session), limit)

    def sync(self, *, force: bool = False) -> Synced:
        """Tell the servers of what others have written.

        Args:
            force: Tell them of every file, whether it has changed or not.

        Raises:
            PathBlockedError: A root is no longer there.
        """
        grounds = self._grounds.values() if self.mode != "off" else ()
        return sync_all(grounds, force=force, restart=self._restart)

    # -- the workspace --------------------------------------------------------------------

    def load(self, path: str) -> Loaded:
        """Open a solution, a project or a folder for the servers; those that run begin anew.

        Args:
            path: The file or folder, as a person or an agent names it.

        Raises:
            NotFoundError: There is none.
            PathBlockedError: It may not be used.
        """
        spot = self._workspace.guard.find(path, "list")
        if spot.place.kind == "missing":
            raise NotFoundError(
                f"{path}: no such file or folder",
                hint="Name a solution, a project or a folder.",
                path=path,
            )
        root = spot.root.path
        absolute = root if spot.place.path == "." else spot.path.absolute
        ground = self._grounds[root]
        self._members[root].opened = "" if absolute == root else absolute
        if is_solution(absolute):
            self._pool.know(root, solution_uri=uri_of(absolute))
        if ground.disk.begun:
            self._restart(ground)
        return describe_opened(absolute, ground, self._members[root], self._show)

    def reload(self) -> Loaded:
        """End all servers, so that they begin with the disk as it is; they start when needed."""
        for ground in self._grounds.values():
            self._restart(ground)
        first = next(iter(self._grounds.values()))
        members = self._members[first.root]
        return describe_opened(members.opened or first.root, first, members, self._show)

    def status(self) -> tuple[Provider, ...]:
        """All servers that may be used, installed or not."""
        return providers_of(self._pool)

    def _restart(self, ground: Ground) -> None:
        # In this order: what is written while they end is seen by those that follow.
        ground.forget()
        self._pool.restart(ground.root)

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
        may_see = self._eyes(session)
        for root, steps in by_root.items():
            if root in self._grounds:
                yield Case(self._grounds[root], steps, may_see)

    def _eyes(self, session: Session) -> Callable[[WorkspacePath], bool]:
        """Whether a session may be told what is in a file."""
        hides = self._workspace.guard.hides
        return lambda path: not hides(path, session.agent)

    def _reports(
        self, ground: Ground, paths: Sequence[WorkspacePath], limit: Limit
    ) -> tuple[Report, ...]:
        known = [path for path in paths if ground.claimed(path.absolute)]
        return ground.report(known, limit) if known and self.mode != "off" else ()

    def _lost(self, error: Exception) -> WorkspaceUpdate:
        """The root itself cannot be looked at any more, or we have made a mistake."""
        message = _OURS
        if isinstance(error, FilepactError):
            message = error.message
        else:
            _log.error("the language servers could not be asked", exc_info=error)
        return WorkspaceUpdate("failed", False, False, False, message)

    def _membership(self, changes: ChangeSet) -> tuple[bool, bool]:
        """Whether a project includes the first file of a change, before and afterwards.

        Of a file that gets another name, that is first the old one and then the new.
        """
        before = [one.path for one in changes.changes if one.before is not None]
        after = [one.path for one in changes.changes if one.after is not None]
        return self._includes(before[:1]), self._includes(after[:1])

    def _includes(self, paths: Sequence[WorkspacePath]) -> bool:
        return any(
            self.mode != "off"
            and one.root in self._members
            and self._members[one.root].include(one)
            for one in paths
        )

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

"""The language servers of a workspace: what they find in files, and in changes before and after.

Nothing here stands in the way of a change: whatever a server does or fails to do is part of an
answer, and no answer takes longer than its time.
"""

from __future__ import annotations

import math
import time
from threading import Lock
from typing import TYPE_CHECKING, Final

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError, NotFoundError
from filepact.values import late_logger, replace
from filepact_diagnostics.semantic import receipt_lines
from filepact_diagnostics.semantic.analysis import (
    ChangeDiagnostics,
    UpdateResult,
    by_every_name,
    changes_link,
    dependents_on_disk,
)
from filepact_diagnostics.semantic.deadline import CallDeadline
from filepact_diagnostics.semantic.later import PendingDiagnostics
from filepact_diagnostics.semantic.membership import RootProjects
from filepact_diagnostics.semantic.root_servers import RootServers
from filepact_diagnostics.semantic.server_edits import ServerQueries
from filepact_diagnostics.semantic.updates import (
    DiagnosticsSummary,
    LoadResult,
    ServerEntry,
    ServerUpdate,
    SyncResult,
    WorkspaceDiagnostics,
    WorkspaceUpdate,
    combine,
    text_changes,
)
from filepact_wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId
    from filepact.domain.operation import Session
    from filepact.workspace.documents import DocumentCache
    from filepact.workspace.workspace import Workspace
    from filepact_diagnostics.lsp.diagnostics import Diagnostic, FileDiagnostics
    from filepact_diagnostics.lsp.pool import ServerPool
    from filepact_diagnostics.semantic.analysis import DependentFiles, FoundDiagnostics
    from filepact_diagnostics.semantic.updates import LoadedKind, TextChange, UpdateDiagnostics
    from filepact_diagnostics.settings import NewErrors, Using

__all__ = ["SemanticWorkspace"]

_log = late_logger(__name__)

_OURS: Final = "a mistake of filepact's own, of which its log has the details"
_GOES: Final = "what becomes of other files when one goes cannot be foreseen"
_ON_DISK: Final = "files that may use it from another root or through a link were not looked at"
_EVERY_FILE: Final = 300
_OWN_SHARE: Final = 0.25
_REST_SHARE: Final = 0.05
"""Of the time that a question may take, what a receipt waits for the changed files and for others."""
_SUMMARY_SECONDS: Final = 15.0
_GO_ON: Final = "another call of get_diagnostics goes on with the rest"
_SOLUTIONS: Final = (".sln", ".slnx")


class SemanticWorkspace:
    """The servers of a workspace; for all threads.

    Args:
        workspace: The files.
        pool: The servers; closed with this.
        mode: Which servers are started, and waited for, as the settings say it.
        budget: Seconds that a question may take in all, if it does not say otherwise.
        new_errors: What becomes of a change that would bring new errors.
        warnings: Whether receipts tell warnings as well.
    """

    def __init__(
        self,
        workspace: Workspace,
        pool: ServerPool,
        *,
        mode: Using = "auto",
        budget: float = 2.0,
        new_errors: NewErrors = "allow",
        warnings: bool = False,
    ) -> None:
        self.mode = mode
        self.budget = budget
        self.new_errors = new_errors
        self._warnings = warnings
        self._workspace = workspace
        self._files = workspace.raw_files
        self._pool = pool
        self._servers: dict[RootId, RootServers] = {
            root.path: RootServers(root.path, self._files, pool) for root in workspace.guard.roots
        }
        self._members = {
            root: RootProjects(servers, self._files, pool, budget)
            for root, servers in self._servers.items()
        }
        for one in (each := self._servers.values()):
            one.others = tuple(other.disk for other in each if other is not one)
        self._deferred = PendingDiagnostics(self._late)
        self._told: dict[str, set[str]] = {}
        self._confirming = Lock()

    def close(self) -> None:
        """End all servers."""
        self._deferred.close()
        for servers in self._servers.values():
            servers.close()
        self._pool.close()

    def claims(self, path: str) -> bool:
        """Whether an installed server knows a file, by its absolute path."""
        place = self._place(path)
        return self.mode != "off" and place is not None and self._servers[place.root].claimed(path)

    def includes(self, path: str) -> bool:
        """Whether a project includes a file, absolute, that a server knows; it need not be there."""
        place = self._place(path)
        return place is not None and self._includes([place])

    # -- changes --------------------------------------------------------------------------

    def preview(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        patient: bool = False,
    ) -> WorkspaceUpdate:
        """Preview a change: its diagnostics if it were done; the disk stays as it is.

        Args:
            changes: What would be done.
            versions: The states that it names.
            session: Who asks, and is told nothing of files that it may not read.
            seconds: How long it may take in all.
            cancelled: Asked now and then; true ends it.
            patient: Whether servers that are starting are waited for.
        """
        deadline, turn = self._deadline(seconds, cancelled, patient=patient), self._turn
        tally, servers, message = DiagnosticsSummary("dependents"), list[ServerUpdate](), ""
        try:
            for analysis in self._analyses(changes, versions, session):
                if not analysis.concerns_servers:
                    continue
                if any(one.kind in ("deleted", "renamed") for one in analysis.changes):
                    tally.miss()
                    message = _GOES
                servers += analysis.preview(tally, deadline)
            before: FoundDiagnostics = {}
            others, said = self._dependents(changes, session, tally, asks=True)
            for one in others:
                servers += one.look(tally, deadline, before, False)
            message = (_ON_DISK if others else said) or message
        except Exception as error:  # noqa: BLE001 - nothing here may end a change
            return self._failed(error)
        update = combine(servers, tally.findings(), self._membership(changes), message)
        return replace(update, turn=turn, before=before)

    def moved(self, changes: ChangeSet, turn: int) -> bool:
        """Whether others have written since a turn of servers, besides these changes; they are told."""
        if self._turn != turn:
            return True
        own = {one.path.absolute for one in changes.changes}
        told = (one.path for each in self._servers.values() for one in each.disk.catch_up())
        return any(self.claims(path) for path in told if path not in own)

    @property
    def _turn(self) -> int:
        return sum(one.disk.turn for one in self._servers.values())

    def baseline(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        *,
        session: Session,
        seconds: float = math.inf,
        cancelled: Callable[[], bool] = lambda: False,
        patient: bool = False,
    ) -> float:
        """Record what is found before files come or go; afterwards it could not be asked.

        `verify` compares with that.  Without it, some of what a first such change brings cannot be
        told from what was there.  Other arguments as for `preview`.

        Returns:
            How many seconds of the budget are left for verifying the change; half of it at least.
        """
        began = time.monotonic()
        deadline = self._deadline(
            seconds if patient else min(self.budget / 2, seconds), cancelled, patient=patient
        )
        try:
            for analysis in self._analyses(changes, versions, session):
                analysis.baseline(deadline)
        except Exception as error:  # noqa: BLE001 - nothing here may end a change
            self._failed(error)
        return max(self.budget - (time.monotonic() - began), self.budget / 2)

    def concerns(self, changes: ChangeSet) -> bool:
        """Whether servers know a file of a change, or run and have to be told of it."""
        return self.mode != "off" and any(
            self.new_errors != "allow"
            or servers.disk.started
            or servers.claimed(change.path.absolute)
            for change in changes.changes
            if (servers := self._servers.get(change.path.root)) is not None
        )

    def verify(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        brief: bool = False,
        patient: bool = False,
        before: Mapping[tuple[str, str], tuple[Diagnostic, ...]] | None = None,
    ) -> WorkspaceUpdate:
        """Verify a change that was just done: its diagnostics.

        Other arguments as for `preview`; what the files hold by now counts.  With `brief` the answer
        is for a receipt, which waits for a part of the time only, for less of it where files depend
        on the changed ones, and not at all for a server that was too late twice: the rest is told
        later.
        """
        wait = self.budget if seconds is None else seconds
        brief = brief and self.mode != "always"
        deadline = self._deadline(wait * _OWN_SHARE if brief else wait, cancelled, patient=patient)
        rest = wait * _REST_SHARE if brief else None
        tally, servers = DiagnosticsSummary("dependents"), list[ServerUpdate]()
        pending: list[tuple[ChangeDiagnostics, UpdateResult]] = []
        try:
            self.renew(changes)
            for analysis in self._analyses(changes, versions, session):
                disk = analysis.servers.disk
                told = disk.tell(analysis.changes) if disk.started else 0
                if not analysis.concerns_servers:
                    continue
                verified = analysis.verify(tally, deadline, told, rest=rest)
                pending.append((analysis, verified))
                servers += verified.servers
            others, message = self._dependents(changes, session, tally, asks=before is not None)
            for one in others:
                servers += one.look(tally, deadline, dict(before or {}), True)
            findings = tally.findings()
            if pending or others:
                self._deferred.record(session.id, findings, session.turn)
            for analysis, verified in pending:
                self._deferred.add(session.id, analysis, verified, findings)
        except Exception as error:  # noqa: BLE001 - nothing here may end a change
            return self._failed(error)
        return combine(servers, findings, self._membership(changes), message)

    def _dependents(
        self, changes: ChangeSet, session: Session, tally: DiagnosticsSummary, *, asks: bool
    ) -> tuple[list[DependentFiles], str]:
        """Files that see a change on the disk alone, as far as they are asked about; else that they are not."""
        asks = asks and self.new_errors == "deny"
        every = self._servers.values() if self.mode != "off" else ()
        found, whole = dependents_on_disk(changes, every, self._may_see(session), waits=asks)
        if not whole or (found and not asks):
            tally.miss()
        return (found, "") if asks else ([], _ON_DISK if found else "")

    def renew(self, changes: ChangeSet) -> None:
        """End the servers that may have followed links which have changed: they hear nothing of that."""
        for root in {one.path.root for one in changes.changes if changes_link(one)}:
            servers = self._servers.get(root)
            if servers is not None and servers.disk.started:
                servers.disk.begin_anew()
                self._pool.restart(root)

    def _late(
        self, servers: Iterable[str], findings: UpdateDiagnostics, paths: Iterable[str]
    ) -> str:
        return receipt_lines.describe_late(
            servers, findings, paths, self._show, warnings=self._warnings
        )

    def turn_summary(
        self,
        *,
        session: Session,
        seconds: float = _SUMMARY_SECONDS,
        cancelled: Callable[[], bool] = lambda: False,
        ends: bool = False,
    ) -> str:
        """The new errors of a session's turn that are still found; of all its turns if none is known.

        What is pending is waited for.

        Args:
            session: Whose.
            seconds: How long it may take.
            cancelled: Asked now and then; true ends it.
            ends: Whether the turn is over and nobody has asked: no server is started, and it is empty
                where nothing is to be told.
        """
        deadline = self._deadline(seconds, cancelled, patient=not ends)
        # What is known has to be asked about once more.
        wait = seconds / 2 if self._deferred.brought(session) else seconds
        self._deferred.settle(session.id, self._deadline(wait, cancelled))
        brought, may_see = self._deferred.brought(session), self._may_see(session)
        if brought is None:
            return "" if ends else "No language server knows what you changed."
        running = {one.root for one in self._pool.status() if one.state == "ready"}
        places = [one for path in brought if (one := self._place(path)) and may_see(one)]
        asked = [one for one in places if not ends or one.root in running]
        reports: list[FileDiagnostics] = []
        for root, servers in self._servers.items():
            reports += self._reports(servers, [one for one in asked if one.root == root], deadline)
        still = {one.identity for some in brought.values() for one in some}
        proven = [one for one in reports if one.fresh]
        found = [one for each in proven for one in each.diagnostics if one.identity in still]
        unknown = {one.absolute for one in places} - {one.path for one in proven}
        unknown |= {one.path for one in reports if not one.fresh} | self._deferred.pending(
            session.id
        )
        return receipt_lines.describe_turn(found, len(unknown), self._show, ends=ends)

    # -- looking --------------------------------------------------------------------------

    def look(
        self,
        paths: Sequence[str],
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[FileDiagnostics, ...]:
        """The diagnostics of files; starts servers that do not run, and waits for them.

        Args:
            paths: Files, as an agent names them.
            session: Who asks.
            seconds: How long it may take in all.
            cancelled: Asked now and then; true ends it.

        Raises:
            FilepactError: A path may not be used, or leads to no file.
        """
        deadline = self._deadline(seconds, cancelled, patient=True)
        wanted: dict[RootId, list[WorkspacePath]] = {}
        for path in paths:
            location = self._workspace.guard.find_file(path, "read", agent=session.agent)
            wanted.setdefault(location.path.root, []).append(location.path)
        return tuple(
            report
            for root, some in wanted.items()
            for report in self._reports(self._servers[root], some, deadline)
        )

    def survey(
        self,
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, str], None] = lambda _done, _said: None,
        most: int | None = None,
    ) -> WorkspaceDiagnostics:
        """The diagnostics of whole projects; other arguments as for `look`.

        Where the time is not enough, another call goes on, unless a file has changed meanwhile.

        Args:
            session: Who asks.
            seconds: How long it may take in all.
            cancelled: Asked now and then; true ends it.
            progress: Is told how many files were looked at, and of how many.
            most: How many files to look at; None for all.
        """
        deadline = self._deadline(seconds, cancelled, patient=True)
        reports: list[FileDiagnostics] = []
        messages: dict[str, None] = {}
        may_see = self._may_see(session)
        for servers in self._servers.values() if self.mode != "off" else ():
            files = servers.files()
            seen = [path for path in files if may_see(path) and servers.claimed(path.absolute)]
            found, left = servers.sweep(seen[:most], deadline, progress) if seen else ([], 0)
            left += len(seen) - len(seen[:most])
            reports += found
            if left:
                done = len(seen) - left
                messages[f"{done:,} of {len(seen):,} files were looked at; {_GO_ON}"] = None
        messages |= dict.fromkeys(f"{one.server}: {one.reason}" for one in reports if not one.fresh)
        complete = not messages and all(one.complete for one in reports)
        return WorkspaceDiagnostics(tuple(reports), complete, tuple(messages))

    def queries(
        self,
        path: str,
        *,
        session: Session,
        seconds: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[ServerQueries, WorkspacePath]:
        """The questions possible about places in a file, and the file; arguments as for `look`.

        Raises:
            FilepactError: The path may not be used, or leads to no file.
            NoServerError: Servers are switched off.
        """
        location = self._workspace.guard.find_file(path, "read", agent=session.agent)
        if self.mode == "off":
            from filepact_diagnostics.semantic.edited_files import no_servers  # noqa: PLC0415 - few ask

            raise no_servers()
        queries = ServerQueries(
            self._servers[location.path.root],
            self._workspace.reader(session),
            place=self._place,
            may_see=self._may_see(session),
            show=self._show,
            deadline=self._deadline(seconds, cancelled, patient=True),
        )
        return queries, location.path

    def sync(self, *, force: bool = False) -> SyncResult:
        """Tell the servers of what others have written; if forced, of every file.

        Raises:
            PathBlockedError: A root is no longer there.
        """
        roots = list(self._servers.values()) if self.mode != "off" else []
        before, reason = self._turn, ""
        known: dict[str, bool] = {}
        for servers in roots:
            if force and servers.disk.started:
                files = [*servers.files(), *servers.disk.ignored]
                if len(files) > _EVERY_FILE or servers.disk.overlooked:
                    reason = "there are too many files to tell of each"
                    self._restart(servers)
                    continue
                servers.disk.tell_anew(files)
                known |= {path.absolute: True for path in files}
            known |= {one.path: servers.claimed(one.path) for one in servers.disk.catch_up()}
        updated = tuple(path for path, claimed in known.items() if claimed)
        skipped = tuple(path for path, claimed in known.items() if not claimed)
        return SyncResult(updated, skipped, len(known), before, self._turn, bool(reason), reason)

    # -- the workspace --------------------------------------------------------------------

    def load(self, path: str) -> LoadResult:
        """Open a solution, a project or a folder, as it is named, for the servers.

        Those that run begin anew where that is another one than before, and they are told which.

        Raises:
            NotFoundError: There is none.
            PathBlockedError: It may not be used.
        """
        location = self._workspace.guard.find(path, "list")
        if location.place.kind == "missing":
            raise NotFoundError(
                f"{path}: no such file or folder",
                hint="Name a solution, a project or a folder.",
                path=path,
            )
        root = location.root.path
        absolute = root if location.place.path == "." else location.path.absolute
        servers, members = self._servers[root], self._members[root]
        opened = "" if absolute == root else absolute
        other = opened != members.opened
        members.opened = opened
        if absolute.lower().endswith(_SOLUTIONS):
            self._pool.know(root, solution_uri=uri_of(absolute))
        if servers.disk.started and other:
            servers.unlearn()
            self._pool.restart(root, announced=True)
        return self._loaded(absolute, servers)

    def reload(self) -> LoadResult:
        """End all servers, so that they begin with the disk as it is; they start when needed."""
        for servers in self._servers.values():
            self._restart(servers)
        first = next(iter(self._servers.values()))
        return self._loaded(self._members[first.root].opened or first.root, first)

    def status(self) -> tuple[ServerEntry, ...]:
        """All servers that may be used, installed or not."""
        running = self._pool.status()
        return tuple(
            ServerEntry(
                one.name,
                one.role,
                tuple(glob for glob, _ in one.files),
                self._pool.program(one),
                one.install,
                tuple(each for each in running if each.server == one.name),
            )
            for one in self._pool.servers
        )

    def _loaded(self, path: str, servers: RootServers) -> LoadResult:
        """The result of opening projects."""
        kind: LoadedKind = "folder" if path == servers.root else "project"
        kind = "solution" if path.lower().endswith(_SOLUTIONS) else kind
        files = len(servers.files())
        read = self._members[servers.root].solution()
        if read is None:
            return LoadResult(kind, path, (), files)
        said = dict.fromkeys(
            f"{self._show(one['path'])}{':' + str(one['line']) if one['line'] else ''}: {one['text']}"
            for one in read["messages"]
        )
        return LoadResult(
            kind, path, tuple(read["projects"]), files, read["approximate"], tuple(said)
        )

    def _restart(self, servers: RootServers) -> None:
        # In this order: what is written while they end is seen by those that follow.
        servers.forget()
        self._pool.restart(servers.root)

    # -- parts ----------------------------------------------------------------------------

    def _deadline(
        self, seconds: float | None, cancelled: Callable[[], bool], *, patient: bool = False
    ) -> CallDeadline:
        wait = self.budget if seconds is None else seconds
        return CallDeadline(wait, cancelled, patient=patient or self.mode == "always")

    def _analyses(
        self, changes: ChangeSet, versions: DocumentCache, session: Session
    ) -> Iterator[ChangeDiagnostics]:
        """A change by root."""
        if self.mode == "off":
            return
        by_root: dict[RootId, list[TextChange]] = {}
        for step in text_changes(changes, versions):
            by_root.setdefault(step.path.root, []).append(step)
        may_see = self._may_see(session)
        for root, steps in by_root.items():
            if root in self._servers:
                every = by_every_name(steps, self._workspace.guard)
                yield ChangeDiagnostics(self._servers[root], every, may_see)

    def _may_see(self, session: Session) -> Callable[[WorkspacePath], bool]:
        """Whether a session may be told what is in a file."""
        hides = self._workspace.guard.hides
        return lambda path: not hides(path, session.agent)

    def _reports(
        self, servers: RootServers, paths: Sequence[WorkspacePath], deadline: CallDeadline
    ) -> tuple[FileDiagnostics, ...]:
        known = [path for path in paths if servers.claimed(path.absolute)]
        return servers.report(known, deadline) if known and self.mode != "off" else ()

    def _failed(self, error: Exception) -> WorkspaceUpdate:
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
        members = self._members if self.mode != "off" else {}
        return any(one.root in members and members[one.root].include(one) for one in paths)

    def _place(self, path: str) -> WorkspacePath | None:
        """The root of an absolute path, the innermost of several, and the path beneath it."""
        for root in sorted(self._servers, key=len, reverse=True):
            start = f"{root.rstrip('/')}/"
            if path.startswith(start) and path != start:
                return WorkspacePath(root, path[len(start) :])
        return None

    def _show(self, path: str) -> str:
        place = self._place(path)
        return path if place is None else self._workspace.show(place)

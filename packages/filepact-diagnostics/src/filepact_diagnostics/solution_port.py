"""The port of the solution's tools that change nothing: its servers and their diagnostics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, get_args

from filepact.errors import FilepactError, NotAFileError
from filepact_diagnostics.lsp.diagnostics import Severity, notes_of, weakest
from filepact_diagnostics.semantic.edited_files import no_servers
from filepact_diagnostics.semantic.updates import LoadResult, SyncResult, WorkspaceDiagnostics
from filepact_diagnostics.solution_answers import (
    DiagnosticCounts,
    DiagnosticsAnswer,
    LoadAnswer,
    ProcessAnswer,
    ServerPackage,
    ServerSummary,
    StatusAnswer,
    SyncAnswer,
    by_weight,
    milliseconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from filepact.tools.registry import CallContext
    from filepact.workspace.workspace import Workspace
    from filepact_diagnostics.lsp.diagnostics import Diagnostic, FileDiagnostics
    from filepact_diagnostics.semantic.server_edits import NamePosition
    from filepact_diagnostics.semantic.service import SemanticWorkspace
    from filepact_diagnostics.semantic.updates import ServerEntry
    from filepact_diagnostics.solution_answers import AnswerFormat, AnswerPage, ReferencesAnswer

__all__ = ["SolutionCall"]

_SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
_MOST_LOADED: Final = 100
_MOST_NAMES: Final = 5_000
_OFF: Final = "language servers are switched off, or none is installed"
_UNKNOWN: Final = "no installed language server knows the file"


class SolutionCall:
    """A solution for one call.

    Args:
        workspace: Whose first root is the solution's.
        semantics: Its servers; None where there are none.
        name: The solution's file in that root; ``.`` for the root itself.
        call: Who calls.
        only_new: The servers of which only differences mean something.
    """

    def __init__(
        self,
        workspace: Workspace,
        semantics: SemanticWorkspace | None,
        name: str,
        call: CallContext,
        only_new: AbstractSet[str],
    ) -> None:
        self.root = workspace.guard.roots[0].path
        self._workspace = workspace
        self._semantics = semantics
        self._name = name
        self._call = call
        self._only_new = only_new

    # -- the solution ---------------------------------------------------------------------

    def load(
        self, path: str, *, view: AnswerFormat, page: AnswerPage, seconds: float
    ) -> LoadAnswer:
        """Open a solution, and wait until its servers answer.

        Args:
            path: A solution, a project or a folder; empty for what was opened last.
            view: How it is shown.
            page: Which part of the list of projects.
            seconds: How long servers have to start.

        Raises:
            FilepactError: There is none, or it may not be used.
        """
        if self._semantics is None:
            self._workspace.guard.find(path or self._name, "list", agent=self._agent)
        servers = self._semantics
        loaded = servers.load(path or self._name) if servers else _nothing(path or self._name)
        return self._loaded(loaded, view=view, page=page, seconds=seconds)

    def reload(self, *, view: AnswerFormat, page: AnswerPage, seconds: float) -> LoadAnswer:
        """Start all servers anew, and wait until they answer; arguments as for `load`."""
        loaded = self._semantics.reload() if self._semantics else _nothing(self._name)
        return self._loaded(loaded, view=view, page=page, seconds=seconds)

    def _loaded(
        self, loaded: LoadResult, *, view: AnswerFormat, page: AnswerPage, seconds: float
    ) -> LoadAnswer:
        surveyed = WorkspaceDiagnostics((), complete=False)
        if self._semantics is not None:
            surveyed = self._semantics.survey(
                session=self._call.session,
                seconds=seconds,
                cancelled=self._call.cancelled,
                progress=self._call.progress,
                most=_MOST_LOADED,
            )
        projects, paging = page.of(loaded.projects)
        servers = _by_server(surveyed.reports, whole=surveyed.complete)
        return LoadAnswer(
            loaded_kind=loaded.kind,
            loaded_path=view.path(loaded.path),
            root=view.path(self.root),
            ready=bool(servers) and all(one.fresh for one in servers),
            projects=projects,
            paging=paging,
            files=loaded.files,
            approximate=loaded.approximate or any(one.notes for one in surveyed.reports),
            servers=servers,
            messages=[*loaded.messages, *surveyed.messages, *notes_of(surveyed.reports)],
        )

    def sync(self, *, force: bool, view: AnswerFormat, page: AnswerPage) -> SyncAnswer:
        """Tell the servers of what others have written.

        Args:
            force: Tell them of every file.
            view: How paths are shown.
            page: Which part of the lists.
        """
        done = SyncResult((), (), 0, 0, 0, reason=_OFF)
        if self._semantics is not None:
            done = self._semantics.sync(force=force)
        updated, paging = page.of(self._visible(done.updated, view))
        skipped, _ = page.of(self._visible(done.skipped, view))
        return SyncAnswer(
            updated=updated,
            skipped=skipped,
            paging=paging,
            total_synced=done.total,
            revision_before=done.revision_before,
            revision_after=done.revision_after,
            fallback_to_reload=done.reloaded,
            fallback_reason=done.reason or None,
        )

    def status(self, *, missing: bool, view: AnswerFormat, page: AnswerPage) -> StatusAnswer:
        """The servers, and what they are doing.

        Args:
            missing: Those that are not installed, too.
            view: How paths are shown.
            page: Which part of the list.
        """
        providers: Sequence[ServerEntry] = (
            () if self._semantics is None else self._semantics.status()
        )
        shown = [one for one in providers if missing or one.program is not None or one.running]
        part, paging = page.of(shown)
        return StatusAnswer(
            root=view.path(self.root),
            solution=view.path(self._name),
            mode="off" if self._semantics is None else self._semantics.mode,
            budget_ms=0 if self._semantics is None else round(self._semantics.budget * 1000),
            servers=[_provided(one, view) for one in part],
            paging=paging,
            message=_OFF if self._semantics is None else None,
        )

    # -- diagnostics ----------------------------------------------------------------------

    def diagnostics(
        self,
        path: str,
        *,
        view: AnswerFormat,
        page: AnswerPage,
        least: Severity,
        prefix: str,
        seconds: float,
    ) -> DiagnosticsAnswer:
        """The servers' current diagnostics.

        Args:
            path: The file; empty for the whole solution.
            view: How it is shown.
            page: Which part of the list.
            least: Nothing that is less bad.
            prefix: Only what is called so, or begins so; empty for all.
            seconds: How long the servers have.

        Raises:
            FilepactError: The path may not be used, or leads to no file.
        """
        every, whole, messages = self._reports(path, seconds)
        reports = [one for one in every if one.server not in self._only_new]
        if len(reports) < len(every):
            names = sorted({one.server for one in every} & self._only_new)
            messages.append(f"of {', '.join(names)} only what a change adds means something")
        fresh = bool(reports) and all(one.fresh and one.known for one in reports)
        messages += [one for one in notes_of(reports) if one not in messages]
        found = [each for one in reports for each in one.diagnostics]
        part, paging = page.of(sorted(_filtered(found, least, prefix), key=by_weight))
        counts = Counter(one.severity for one in found)
        return DiagnosticsAnswer(
            scope="file" if path else "project",
            fresh=fresh,
            complete=whole and fresh and all(one.complete for one in reports),
            counts=DiagnosticCounts(**{severity: counts[severity] for severity in _SEVERITIES}),
            diagnostics=view.found(part),
            paging=paging,
            servers=_by_server(reports, whole=whole),
            message="; ".join(messages) or None,
        )

    def _reports(
        self, path: str, seconds: float
    ) -> tuple[Sequence[FileDiagnostics], bool, list[str]]:
        """The servers' reports, whether they are complete, and why not."""
        guard, ask = self._workspace.guard, self._semantics
        if path:
            try:
                guard.find_file(path, "read", agent=self._agent)
            except NotAFileError as error:
                raise NotAFileError(
                    error.message, hint="Leave filePath out for the whole solution."
                ) from None
        if ask is None:
            return (), False, [_OFF]
        session, cancelled = self._call.session, self._call.cancelled
        if path:
            reports = ask.look([path], session=session, seconds=seconds, cancelled=cancelled)
            return reports, True, [] if reports else [_UNKNOWN]
        surveyed = ask.survey(
            session=session, seconds=seconds, cancelled=cancelled, progress=self._call.progress
        )
        return surveyed.reports, surveyed.complete, list(surveyed.messages)

    def references(
        self,
        path: str,
        place: NamePosition,
        *,
        view: AnswerFormat,
        page: AnswerPage,
        seconds: float,
    ) -> ReferencesAnswer:
        """Where a name is used.

        Args:
            path: The file that it stands in.
            place: Where.
            view: How paths are shown.
            page: Which part of the list.
            seconds: How long the servers have.

        Raises:
            NoServerError: There is none that could say it.
            FilepactError: The path may not be used, or the name is not clear.
        """
        if self._semantics is None:
            raise no_servers()
        queries, file = self._semantics.queries(
            path, session=self._call.session, seconds=seconds, cancelled=self._call.cancelled
        )
        return view.references(queries.references(file, place), page)

    # -- parts ----------------------------------------------------------------------------

    @property
    def _agent(self) -> str:
        return self._call.session.agent

    def _visible(self, paths: Iterable[str], view: AnswerFormat) -> list[str]:
        """Names that the caller may see."""
        shown: list[str] = []
        for path in paths:
            if len(shown) == _MOST_NAMES:
                break
            try:
                self._workspace.guard.find(path, "list", agent=self._agent)
            except FilepactError:
                continue
            shown.append(view.path(path))
        return shown


def _nothing(path: str) -> LoadResult:
    """The answer to loading a file where there are no servers."""
    return LoadResult("folder", path, (), 0, approximate=True, messages=(_OFF,))


def _provided(one: ServerEntry, view: AnswerFormat) -> ServerPackage:
    return ServerPackage(
        name=one.name,
        role=one.role,
        files=list(one.files),
        installed=one.program is not None,
        install=one.install,
        running=[
            ProcessAnswer(
                root=view.path(each.root),
                state=each.state,
                pid=each.pid,
                version=each.version,
                open_documents=each.open_documents,
                starts=each.starts,
                started_in_ms=milliseconds(each.started_in),
                first_report_in_ms=None
                if each.first_report_in is None
                else milliseconds(each.first_report_in),
                message=each.message or None,
            )
            for each in one.running
        ],
    )


def _filtered(found: Iterable[Diagnostic], least: Severity, prefix: str) -> Iterable[Diagnostic]:
    wanted = _SEVERITIES[: _SEVERITIES.index(least) + 1]
    start = prefix.lower()
    return (one for one in found if one.severity in wanted and one.code.lower().startswith(start))


def _by_server(reports: Sequence[FileDiagnostics], *, whole: bool) -> list[ServerSummary]:
    """The state of each server's answer.

    Args:
        reports: Of each server and file.
        whole: Whether these are all files.
    """
    told: list[ServerSummary] = []
    for name in dict.fromkeys(one.server for one in reports):
        its = [one for one in reports if one.server == name]
        told.append(
            ServerSummary(
                name=name,
                files=len(its),
                fresh=all(one.fresh for one in its),
                complete=whole and all(one.fresh and one.complete for one in its),
                confirmed_by=weakest(its),
                ms=milliseconds(max(one.seconds for one in its)),
                message=next((one.reason for one in its if one.reason), "; ".join(notes_of(its)))
                or None,
            )
        )
    return told

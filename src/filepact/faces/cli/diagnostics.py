"""What language servers find in files, for a person: the servers are started, asked, and ended."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, get_args

from filepact.app import open_semantic_workspace
from filepact.config.person import read_settings
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.faces.cli.place import here, opened, person
from filepact.faces.cli.programs import Programs
from filepact.faces.cli.render import count
from filepact.faces.cli.screen import DONE, FAILED, NOTHING, CommandAnswer, TerminalText
from filepact.lsp.diagnostics import Severity

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Sequence

    from filepact.domain.operation import Session
    from filepact.faces.cli.screen import Style, Terminal
    from filepact.lsp.diagnostics import Diagnostic, FileDiagnostics
    from filepact.semantic.service import SemanticWorkspace
    from filepact.workspace.workspace import Workspace

__all__ = ["diagnostics"]

_MOST_FILES: Final = 20_000
_AT_ONCE: Final = 50
"""Files that are asked about together: a server holds the texts of all of them."""

_SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
_STYLES: Final[dict[Severity, Style]] = {
    "error": "bad",
    "warning": "warn",
    "information": "plain",
    "hint": "dim",
}


def diagnostics(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """List what the servers find; status 1 if there are errors, or a file got no answer."""
    settings = read_settings(arguments.config)
    if settings.diagnosing.mode == "off":
        raise InvalidParamsError(
            "language servers are switched off",
            hint='`diagnostics = "off"` stands in a settings file; `filepact doctor` names them.',
        )
    with opened(arguments) as workspace:
        programs = Programs(workspace.changeable)
        semantics = open_semantic_workspace(
            workspace,
            diagnosing=settings.diagnosing,
            servers=settings.peoples_servers,
            environment=programs.environment,
            locate=programs,
        )
        if semantics is None:
            return _nothing("no language server is installed")
        with closing(semantics):
            session = person()
            paths = _chosen(workspace, arguments.paths, session, semantics)
            if not paths:
                return _nothing("no language server that is installed knows any of these files")
            reports = _ask(semantics, paths, session, arguments.seconds, screen)
    differing = {one.name for one in settings.servers if one.only_new}
    listing = [one for one in reports if one.server not in differing]
    if not listing:
        return _nothing("what knows these files tells only what a change adds")
    return _answer(workspace, listing, arguments.severity)


def _nothing(said: str) -> CommandAnswer:
    hint = "`filepact doctor` lists those that are known, and how to install them."
    facts = {"diagnostics": [], "unanswered": [], "files": 0, "message": said}
    return CommandAnswer((TerminalText(f"{said}; {hint}\n"),), facts, NOTHING)


def _chosen(
    workspace: Workspace, named: Sequence[str], session: Session, semantics: SemanticWorkspace
) -> list[str]:
    """The files that were named, or lie in folders that were, as far as a server knows them."""
    guard, agent = workspace.guard, session.agent
    found: dict[str, None] = {}
    for name in [here(workspace, one) for one in named] or [root.path for root in guard.roots]:
        spot = guard.find(name, "read", agent=agent)
        if spot.place.kind == "missing":
            raise NotFoundError(f"{name}: no such file or folder", path=name)
        if spot.place.kind != "directory":
            found[spot.path.absolute] = None
            continue
        names = workspace.reader(session).find(name, "**/*", limit=_MOST_FILES).paths
        for path in (f"{spot.root.path.rstrip('/')}/{one}" for one in names):
            # A link that leads out, or a file that went: nobody named it.
            with suppress(FilepactError):
                if semantics.claims(path):
                    found[guard.find_file(path, "read", agent=agent).path.absolute] = None
    return [path for path in found if semantics.claims(path)]


def _ask(
    semantics: SemanticWorkspace,
    paths: Sequence[str],
    session: Session,
    seconds: float,
    screen: Terminal,
) -> list[FileDiagnostics]:
    """Ask about some files after the other, as long as there is time."""
    end = time.monotonic() + seconds
    reports: list[FileDiagnostics] = []
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        of = f", {start} of {len(paths)} done" if len(paths) > _AT_ONCE else ""
        screen.progress(f"asking language servers about {count(len(some), 'file')}{of} ...")
        rest = max(end - time.monotonic(), 0.0)
        reports += semantics.look(some, session=session, seconds=rest)
    return reports


def _answer(
    workspace: Workspace, reports: Sequence[FileDiagnostics], least: Severity
) -> CommandAnswer:
    shown = {one.path: _shown(workspace, one.path) for one in reports}
    found = [each for one in reports for each in one.diagnostics]
    wanted = _SEVERITIES[: _SEVERITIES.index(least) + 1]
    listed = sorted(
        ((one, each) for one in reports for each in one.diagnostics if each.severity in wanted),
        key=lambda pair: (shown[pair[0].path], pair[1].start, pair[1].end),
    )
    unanswered = [one for one in reports if not one.fresh]
    cut = [one for one in reports if one.fresh and not one.complete]
    spans: list[TerminalText] = []
    for report, each in listed:
        spans += _line(shown[report.path], each, report.server)
    for one in unanswered:
        spans.append(
            TerminalText(f"{shown[one.path]}: not known, {one.server}: {one.reason}\n", "warn")
        )
    for one in cut:
        spans.append(
            TerminalText(f"{shown[one.path]}: {one.server} found more than can be told\n", "warn")
        )
    counts = Counter(each.severity for each in found)
    spans.append(TerminalText(_summary(counts, reports, unanswered)))
    facts = {
        "diagnostics": [_facts(shown[report.path], each, report.server) for report, each in listed],
        "unanswered": [
            {"path": shown[one.path], "server": one.server, "reason": one.reason}
            for one in unanswered
        ],
        "counts": {severity: counts[severity] for severity in _SEVERITIES},
        "files": len(shown),
        "complete": not unanswered and not cut,
    }
    return CommandAnswer(tuple(spans), facts, FAILED if counts["error"] or unanswered else DONE)


def _shown(workspace: Workspace, absolute: str) -> str:
    """A file as a reader knows it."""
    for root in sorted(workspace.guard.roots, key=lambda one: len(one.path), reverse=True):
        start = f"{root.path.rstrip('/')}/"
        if absolute.startswith(start):
            return workspace.guard.show(root.path, absolute[len(start) :])
    return absolute


def _line(name: str, one: Diagnostic, server: str) -> list[TerminalText]:
    words = " ".join(one.message.split())
    code = f" {one.code}" if one.code else ""
    return [
        TerminalText(f"{name}:{one.start.line + 1}:{one.start.column + 1} ", "place"),
        TerminalText(one.severity, _STYLES[one.severity]),
        TerminalText(f"{code} {words}"),
        TerminalText(f" ({server})\n", "dim"),
    ]


def _facts(name: str, one: Diagnostic, server: str) -> dict[str, object]:
    return {
        "path": name,
        "line": one.start.line + 1,
        "column": one.start.column + 1,
        "end_line": one.end.line + 1,
        "end_column": one.end.column + 1,
        "severity": one.severity,
        "code": one.code,
        "source": one.source,
        "server": server,
        "message": one.message,
    }


def _summary(
    counts: Counter[Severity],
    reports: Iterable[FileDiagnostics],
    unanswered: Sequence[FileDiagnostics],
) -> str:
    files = {one.path for one in reports}
    servers = sorted({one.server for one in reports if one.fresh})
    by = f" ({', '.join(servers)})" if servers else ""
    said = f"{count(counts['error'], 'error')}, {count(counts['warning'], 'warning')}"
    open_ = len({one.path for one in unanswered})
    late = f"; {count(open_, 'file')} without a whole answer, --seconds gives more time"
    return f"{said} in {count(len(files), 'file')}{by}{late if open_ else ''}.\n"

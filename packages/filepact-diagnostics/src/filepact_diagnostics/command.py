"""Commands `diagnostics` and `trust`, and what `doctor` says of each language server."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, get_args

from filepact.config.person import read_settings
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError, UnattendedError
from filepact.values import asdict, dataclass, replace
from filepact_cli.context import find_context, here, opened, person
from filepact_cli.history import agrees, at_terminal
from filepact_cli.render import CheckResult, count
from filepact_cli.screen import DONE, FAILED, NOTHING, CommandAnswer, TerminalText, plain
from filepact_cli.wording import fitted, with_install_line
from filepact_diagnostics.lsp.diagnostics import Severity
from filepact_diagnostics.lsp.spec import is_within
from filepact_diagnostics.opening import confines_servers, open_for_person, try_server, write_trust
from filepact_diagnostics.programs import Programs
from filepact_diagnostics.settings import options_of, read_trust

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact.config.settings import Settings
    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace
    from filepact_cli.screen import Style, Terminal
    from filepact_diagnostics.lsp.diagnostics import Diagnostic, FileDiagnostics, ServerStatus
    from filepact_diagnostics.lsp.spec import Risk, ServerSpec
    from filepact_diagnostics.semantic.service import SemanticWorkspace
    from filepact_diagnostics.settings import ServerTrust

__all__ = ["RISKS", "check_servers", "diagnostics", "trust"]

RISKS: Final[dict[Risk, str]] = {
    "runs": "it runs what a project's build files say, which agents may write",
    "discloses": "it tells what is in any file that a text names, protected or outside",
}
"""Why a server does not work for agents as it is, unasked."""

_UNASKED: Final[dict[Risk, str]] = {"runs": "not used", "discloses": "confined, or else not used,"}
_CONFINED: Final = "confined to these folders and its toolchain, without network"
_MOST_FILES: Final = 20_000
_LARGEST: Final = 200_000
_FACTOR: Final = 3
"""How many times as long as usual a server is waited for."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """A file by which a server can be tried.

    Attributes:
        root: The folder that it lies in, absolute.
        path: The file, absolute.
        text: Its text.
    """

    root: str
    path: str
    text: str


def check_servers(
    workspace: Workspace,
    settings: Settings,
    trust: ServerTrust,
    *,
    start: bool,
    tell: Callable[[str], None],
) -> Iterator[CheckResult]:
    """Each language server that is known: found or how to install it, and which files it serves.

    Args:
        workspace: Its roots hold the files by which servers are tried; programs in them are not
            started.
        settings: The person's and the administrator's.
        trust: In which folders the person trusts servers.
        start: Whether those that are found, and have files here, are started and asked, unless they
            are switched off.
        tell: Is told what takes its time.
    """
    diagnosing = options_of(settings).diagnosing
    errors = f'new_errors = "{diagnosing.new_errors}", budget = {diagnosing.budget:g} s'
    said = f'mode = "{diagnosing.mode}", {errors}'
    yield CheckResult("diagnostics", "ok", said, facts=asdict(diagnosing))
    # Where they are switched off, perhaps by an administrator, nothing starts any.
    start &= diagnosing.mode != "off"
    programs = Programs(workspace.changeable)
    servers = options_of(settings).servers
    present = [one for one in servers if programs.place(one) is not None]
    folder = workspace.guard.roots[0].path
    chosen = options_of(settings).agents_servers(trust, confines=confines_servers(settings))
    allowed = {one.name: one for one in chosen if one.allowed_in(folder)}
    trusted = [allowed[one.name] for one in present if one.name in allowed]
    names = _names(workspace)
    # One name of each kind: servers go by endings, and some by whole names.
    kinds = {name.rpartition("/")[2].rpartition(".")[2]: name for _, name in names}
    judged = _csharp(trusted, programs)
    yield replace(judged, facts={**judged.facts, "here": "cs" in kinds})
    for server in servers:
        place = programs.place(server)
        if place is None:
            here = any(server.language(name) is not None for name in kinds.values())
            found = _missing(server, programs)
            yield replace(found, facts={**found.facts, "missing": True, "here": here})
            continue
        if server.name not in allowed:
            yield _untrusted(server, place)
            continue
        server = allowed[server.name]  # noqa: PLW2901 - with where it may work
        rival = _rival(server, trusted)
        globs = ", ".join(glob for glob, _ in server.files)
        told = programs.facts(server.needs)
        shown, facts = told.get("said", place), {"program": place, "used": not rival, **told}
        facts.pop("said", None)
        said = f"{shown}; " + (f"not used, {rival} goes before it" if rival else f"for {globs}")
        if server.is_confined(folder):
            said, facts["confined"] = f"{said}; {_CONFINED}", True
        sample = None if server.role == "projects" else _sample(workspace, server, names)
        if start and sample is not None:
            tell(f"starting {server.name} ...")
            status = _try(server, workspace, sample, programs, settings)
            yield _tried(server, said, facts, status)
        else:
            idle = "; not started, no file here is for it" if start else ""
            idle = "" if server.role == "projects" else idle
            yield CheckResult(server.name, "ok", f"{said}{idle}", facts=facts)


def _csharp(present: Sequence[ServerSpec], programs: Programs) -> CheckResult:
    """Report which server checks C# files."""
    known = (one for one in present if one.role != "projects")
    used = next((one for one in known if one.language("a.cs")), None)
    if used is None:
        return CheckResult("C#", "none", "judged by nothing: none of its servers is installed")
    said = "by a language server"
    if "said" in (told := programs.facts(used.needs)):
        said = f"by the compiler itself: {told['said']}"
    elif used.only_new:
        said = "by the form of each file alone; only what a change adds is told"
    return CheckResult("C#", "ok", f"judged {said} ({used.name})", facts={"server": used.name})


def _untrusted(server: ServerSpec, place: str) -> CheckResult:
    """A server that is there and is not used for agents before the person says so."""
    return CheckResult(
        server.name,
        "none",
        f"{place}; waits for your trust: {RISKS[server.risk]}",
        f"To use it for agents in this folder: filepact trust {server.name}",
        facts={"program": place, "used": False, "risk": server.risk},
    )


def _missing(server: ServerSpec, programs: Programs) -> CheckResult:
    wanted = (server.command[0], *server.needs)
    inside = next((programs.refused[name] for name in wanted if name in programs.refused), None)
    if inside is not None:
        return CheckResult(
            server.name,
            "warn",
            f"{inside} is not started: it lies in a folder that agents may change",
            f"Install it outside: {server.install}" if server.install else "",
        )
    missing = [name for name in wanted if programs(name) is None]
    fault = "fails" if any(" " in name for name in missing) else "is not there"
    said = programs.facts(server.needs).get("said") or f"{', '.join(missing)} {fault}"
    also = f" ({said})" if missing != [wanted[0]] else ""
    how = f"To install: {with_install_line(server.install)}" if server.install else ""
    return CheckResult(server.name, "none", f"not installed{also}", how)


def _rival(server: ServerSpec, present: Sequence[ServerSpec]) -> str:
    """The server that serves its files in its place; empty if there is none."""
    mine = {glob for glob, _ in server.files}
    for one in present[: present.index(server)]:
        if one.role == server.role and mine & {glob for glob, _ in one.files}:
            return one.name
    return ""


def _names(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """The files beneath the roots, each as its root and its path in it."""
    reader = workspace.reader(person())
    found: list[tuple[str, str]] = []
    for root in workspace.guard.roots:
        paths = reader.find(root.path, "**/*", limit=_MOST_FILES).paths
        found += [(root.path, path) for path in paths]
    return tuple(found)


def _sample(
    workspace: Workspace, server: ServerSpec, names: Sequence[tuple[str, str]]
) -> _Sample | None:
    """The first file that a server knows and that can be read."""
    reader = workspace.reader(person())
    for root, name in names:
        if server.language(name) is None:
            continue
        path = f"{root.rstrip('/')}/{name}"
        try:
            text = reader.document(path).text
        except FilepactError:
            continue
        if len(text) <= _LARGEST:
            return _Sample(root, path, text)
    return None


def _try(
    server: ServerSpec,
    workspace: Workspace,
    sample: _Sample,
    programs: Programs,
    settings: Settings,
) -> ServerStatus:
    return try_server(
        server,
        workspace,
        sample.root,
        {sample.path: sample.text},
        environment=programs.environment,
        locate=programs,
        seconds=server.first * _FACTOR,
        memory=options_of(settings).diagnosing.memory,
    )


def _tried(
    server: ServerSpec, said: str, facts: Mapping[str, object], status: ServerStatus
) -> CheckResult:
    facts = {
        **facts,
        "version": status.version,
        "started_in": status.started_in,
        "first_report_in": status.first_report_in,
    }
    version = f"; version {status.version}" if status.version else ""
    if status.first_report_in is not None:
        times = f"started in {status.started_in:.2f} s, first diagnostics after"
        said = f"{said}{version}; {times} {status.first_report_in:.2f} s"
        return CheckResult(server.name, "ok", said, facts=facts)
    why = status.message or "it did not answer in time"
    tries = f" after {count(status.starts, 'start')}" if status.starts > 1 else ""
    return CheckResult(
        server.name,
        "warn",
        f"{said}{version}; no diagnostics{tries}: {why}",
        "Start it by hand to see what it says; `enabled = false` in its table switches it off.",
        facts,
    )


# -- trust -------------------------------------------------------------------------------------


def trust(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Show which servers wait for trust in this folder, or give or withdraw it."""
    context = find_context(arguments)
    settings = read_settings(arguments.config)
    risky = {one.name: one for one in options_of(settings).servers if one.risk in RISKS}
    with opened(arguments, context) as workspace:
        folder = workspace.guard.roots[0].path
        programs = Programs(workspace.changeable)
    known = read_trust(context.state)
    if arguments.server is None:
        if arguments.withdraw:
            raise InvalidParamsError(
                "no server was named", hint="`filepact trust --withdraw SERVER`."
            )
        chosen = options_of(settings).agents_servers(known, confines=confines_servers(settings))
        return _listed(risky, chosen, folder, programs)
    server = risky.get(arguments.server)
    if server is None:
        raise InvalidParamsError(
            f"there is no server {arguments.server} that needs your trust",
            hint=f"Those that do: {', '.join(risky)}.",
        )
    if arguments.withdraw:
        return _withdrawn(server, known, folder, context.state)
    if server.serves_agents or is_within(folder, known.of(server.name)):
        said = f"{server.name} is trusted in {folder} already.\n"
        return CommandAnswer(plain(said), _trust_facts(server, folder, trusted=True), NOTHING)
    _ask_for(server, folder, screen)
    if not agrees(f"Let {server.name} work for agents in this folder?", screen):
        facts = _trust_facts(server, folder, trusted=False)
        return CommandAnswer(plain("Nothing is changed.\n"), facts, NOTHING)
    write_trust(context.state, known.with_folder(server.name, folder))
    said = (
        f"{server.name} is trusted in {folder}. Servers that run learn of it when they are started "
        "anew.\n"
    )
    return CommandAnswer((TerminalText(said, "good"),), _trust_facts(server, folder, trusted=True))


def _ask_for(server: ServerSpec, folder: str, screen: Terminal) -> None:
    """Tell what trust in a server means.

    Raises:
        UnattendedError: There is no person to be asked.
    """
    if not at_terminal(screen):
        raise UnattendedError(
            "`filepact trust` needs a person at a terminal, and there is none",
            hint="A person types it in a terminal of their own.",
        )
    screen.write(
        plain(
            f"{server.name} in {folder}\n\n"
            f"For agents it is {_UNASKED[server.risk]} unasked: {RISKS[server.risk]}.\n"
            f"filepact's rules do not hold for what {server.name} itself does.\n\n"
        )
    )


def _withdrawn(server: ServerSpec, known: ServerTrust, folder: str, state: str) -> CommandAnswer:
    facts = _trust_facts(server, folder, trusted=False)
    if folder not in known.of(server.name):
        return CommandAnswer(plain(f"{server.name} was not trusted in {folder}.\n"), facts, NOTHING)
    write_trust(state, known.without_folder(server.name, folder))
    said = f"{server.name} is not trusted in {folder} any more.\n"
    return CommandAnswer((TerminalText(said, "warn"),), facts, DONE)


def _listed(
    risky: dict[str, ServerSpec], chosen: Iterable[ServerSpec], folder: str, programs: Programs
) -> CommandAnswer:
    allowed = {one.name: one for one in chosen if one.allowed_in(folder)}
    held = {one.name for one in programs.waiting(risky.values(), chosen, folder)}
    spans: list[TerminalText] = []
    rows: list[dict[str, object]] = []
    for name, server in risky.items():
        confined = name in allowed and allowed[name].is_confined(folder)
        trusted = name in allowed and not confined
        if not trusted and name not in held and programs.place(server) is None:
            continue
        word: tuple[str, Style] = ("trusted", "good") if trusted else ("waits", "warn")
        spans.append(TerminalText(f"{'confined' if confined else word[0]:<9}", word[1]))
        spans.append(TerminalText(f"{name}: {_CONFINED if confined else RISKS[server.risk]}\n"))
        facts = _trust_facts(server, folder, trusted=trusted)
        rows.append({**facts, "confined": confined})
    if held:
        spans.append(
            TerminalText(f"\nfilepact trust {min(held)}   lets it work for agents here\n", "dim")
        )
    if not rows:
        spans.append(TerminalText("No installed server needs your trust.\n"))
    return CommandAnswer(tuple(spans), {"folder": folder, "servers": rows})


def _trust_facts(server: ServerSpec, folder: str, *, trusted: bool) -> dict[str, object]:
    return {"server": server.name, "folder": folder, "risk": server.risk, "trusted": trusted}


# -- diagnostics ------------------------------------------------------------------------------


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
    if options_of(settings).diagnosing.mode == "off":
        raise InvalidParamsError(
            "language servers are switched off",
            hint='`diagnostics = "off"` stands in a settings file; `filepact doctor` names them.',
        )
    with opened(arguments) as workspace:
        semantics = open_for_person(workspace, settings)
        if semantics is None:
            return _nothing("no language server is installed", screen)
        with closing(semantics):
            session = person()
            paths = _chosen(workspace, arguments.paths, session, semantics)
            if not paths:
                return _nothing("no installed language server knows any of these files", screen)
            reports = _ask(semantics, paths, session, arguments.seconds, screen)
    differing = {one.name for one in options_of(settings).servers if one.only_new}
    listing = [one for one in reports if one.server not in differing]
    if not listing:
        return _nothing("what knows these files tells only what a change adds", screen)
    return _answer(workspace, listing, arguments.severity)


def _nothing(said: str, screen: Terminal) -> CommandAnswer:
    hint = "`filepact doctor --all` lists those that are known, and how to install them."
    facts = {"diagnostics": [], "unanswered": [], "files": 0, "message": said}
    return CommandAnswer(
        (TerminalText(fitted(f"{said}; {hint}\n", screen.columns)),), facts, NOTHING
    )


def _chosen(
    workspace: Workspace, named: Sequence[str], session: Session, semantics: SemanticWorkspace
) -> list[str]:
    """The files that were named, or lie in folders that were, as far as a server knows them."""
    guard, agent = workspace.guard, session.agent
    found: dict[str, None] = {}
    for name in [here(workspace, one) for one in named] or [root.path for root in guard.roots]:
        location = guard.find(name, "read", agent=agent)
        if location.place.kind == "missing":
            hint = "`filepact tree` shows what is there."
            raise NotFoundError(f"{name}: no such file or folder", hint=hint, path=name)
        if location.place.kind != "directory":
            found[location.path.absolute] = None
            continue
        names = workspace.reader(session).find(name, "**/*", limit=_MOST_FILES).paths
        for path in (f"{location.root.path.rstrip('/')}/{one}" for one in names):
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

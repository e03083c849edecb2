"""What the doctor says of language servers: which are there, which would be used, and how they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.app import try_server
from filepact.errors import FilepactError
from filepact.faces.cli.checks import Finding
from filepact.faces.cli.place import person
from filepact.faces.cli.programs import Programs
from filepact.faces.cli.render import count
from filepact.faces.cli.trust import RISKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from filepact.config.settings import Settings
    from filepact.config.trust import ServerTrust
    from filepact.lsp.diagnostics import ServerStatus
    from filepact.lsp.spec import ServerSpec
    from filepact.workspace.workspace import Workspace

__all__ = ["check_servers"]

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
) -> Iterator[Finding]:
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
    diagnosing = settings.diagnosing
    errors = f'new_errors = "{diagnosing.new_errors}", budget = {diagnosing.budget:g} s'
    yield Finding("diagnostics", "ok", f'mode = "{diagnosing.mode}", {errors}')
    # Where they are switched off, perhaps by an administrator, nothing starts any.
    start &= diagnosing.mode != "off"
    programs = Programs(workspace.changeable)
    servers = settings.servers
    present = [one for one in servers if _place(one, programs) is not None]
    folder = workspace.guard.roots[0].path
    allowed = {one.name for one in settings.agents_servers(trust) if one.allowed_in(folder)}
    trusted = [one for one in present if one.name in allowed]
    yield _csharp(trusted, programs)
    names = _names(workspace) if start else ()
    for server in servers:
        place = _place(server, programs)
        if place is None:
            yield _missing(server, programs)
            continue
        if server.name not in allowed:
            yield _untrusted(server, place)
            continue
        rival = _rival(server, trusted)
        globs = ", ".join(glob for glob, _ in server.files)
        told = programs.facts(server.needs)
        shown, facts = told.get("said", place), {"program": place, "used": not rival, **told}
        facts.pop("said", None)
        said = f"{shown}; " + (f"not used, {rival} goes before it" if rival else f"for {globs}")
        sample = None if server.role == "projects" else _sample(workspace, server, names)
        if start and sample is not None:
            tell(f"starting {server.name} ...")
            status = _try(server, sample, programs, settings)
            yield _tried(server, said, facts, status)
        else:
            idle = "; not started, no file here is for it" if start else ""
            idle = "" if server.role == "projects" else idle
            yield Finding(server.name, "ok", f"{said}{idle}", facts=facts)


def _csharp(present: Sequence[ServerSpec], programs: Programs) -> Finding:
    """By which of the ways that there are a C# file is judged."""
    known = (one for one in present if one.role != "projects")
    used = next((one for one in known if one.language("a.cs")), None)
    if used is None:
        return Finding("C#", "none", "judged by nothing: none of its servers is installed")
    said = "by a language server"
    if "said" in (told := programs.facts(used.needs)):
        said = f"by the compiler itself: {told['said']}"
    elif used.only_new:
        said = "by the form of each file alone; only what a change adds is told"
    return Finding("C#", "ok", f"judged {said} ({used.name})", facts={"server": used.name})


def _place(server: ServerSpec, programs: Programs) -> str | None:
    """Where a server's program is; None if anything that it needs is missing."""
    places = [programs(name) for name in (server.command[0], *server.needs)]
    return None if None in places else places[0]


def _untrusted(server: ServerSpec, place: str) -> Finding:
    """A server that is there and is not used for agents before the person says so."""
    return Finding(
        server.name,
        "none",
        f"{place}; waits for your trust: {RISKS[server.risk]}",
        f"To use it for agents in this folder: filepact trust {server.name}",
        facts={"program": place, "used": False, "risk": server.risk},
    )


def _missing(server: ServerSpec, programs: Programs) -> Finding:
    wanted = (server.command[0], *server.needs)
    inside = next((programs.refused[name] for name in wanted if name in programs.refused), None)
    if inside is not None:
        return Finding(
            server.name,
            "warn",
            f"{inside} is not started: it lies in a folder that agents may change",
            f"Install it outside: {server.install}" if server.install else "",
        )
    missing = [name for name in wanted if programs(name) is None]
    said = programs.facts(server.needs).get("said") or f"{', '.join(missing)} is not there"
    also = f" ({said})" if missing != [wanted[0]] else ""
    how = f"To install: {server.install}" if server.install else ""
    return Finding(server.name, "none", f"not installed{also}", how)


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
    server: ServerSpec, sample: _Sample, programs: Programs, settings: Settings
) -> ServerStatus:
    return try_server(
        server,
        sample.root,
        {sample.path: sample.text},
        environment=programs.environment,
        locate=programs,
        seconds=server.first * _FACTOR,
        memory=settings.diagnosing.memory,
    )


def _tried(
    server: ServerSpec, said: str, facts: Mapping[str, object], status: ServerStatus
) -> Finding:
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
        return Finding(server.name, "ok", said, facts=facts)
    why = status.message or "it did not answer in time"
    tries = f" after {count(status.starts, 'start')}" if status.starts > 1 else ""
    return Finding(
        server.name,
        "warn",
        f"{said}{version}; no diagnostics{tries}: {why}",
        "Start it by hand to see what it says; `enabled = false` in its table switches it off.",
        facts,
    )

"""Command `trust`: lets a language server work for agents in this folder, or no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.config.person import read_settings
from filepact.config.trust import read_trust, write_trust
from filepact.errors import InvalidParamsError, UnattendedError
from filepact.faces.cli.history import agrees, at_terminal
from filepact.faces.cli.place import find_place, opened
from filepact.faces.cli.programs import Programs
from filepact.faces.cli.screen import DONE, NOTHING, Answer, Span, plain
from filepact.lsp.spec import is_within

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from filepact.config.trust import ServerTrust
    from filepact.faces.cli.screen import Screen
    from filepact.lsp.spec import Risk, ServerSpec

__all__ = ["RISKS", "trust", "waiting"]

RISKS: Final[dict[Risk, str]] = {
    "runs": "it runs what a project's build files say, which agents may write",
    "discloses": "it tells what is in any file that a text names, protected or outside",
}
"""Why a server does not work for agents unasked."""


def waiting(
    servers: Iterable[ServerSpec], trust: ServerTrust, folder: str, programs: Programs
) -> list[ServerSpec]:
    """The installed servers that work for agents in a folder only once a person trusts them."""
    return [
        one
        for one in servers
        if not one.serves_agents
        and not is_within(folder, trust.of(one.name))
        and all(programs(name) is not None for name in (one.command[0], *one.needs))
    ]


def trust(arguments: Namespace, screen: Screen) -> Answer:
    """Show which servers wait for trust in this folder, or give or withdraw it."""
    place = find_place(arguments)
    risky = {one.name: one for one in read_settings(arguments.config).servers if one.risk}
    with opened(arguments, place) as workspace:
        folder = workspace.guard.roots[0].path
        programs = Programs(workspace.changeable)
    known = read_trust(place.state)
    if arguments.server is None:
        if arguments.withdraw:
            raise InvalidParamsError(
                "no server was named", hint="`filepact trust --withdraw SERVER`."
            )
        return _listed(risky, known, folder, programs)
    server = risky.get(arguments.server)
    if server is None:
        raise InvalidParamsError(
            f"there is no server {arguments.server} that needs your trust",
            hint=f"Those that do: {', '.join(risky)}.",
        )
    if arguments.withdraw:
        return _withdrawn(server, known, folder, place.state)
    if server.serves_agents or is_within(folder, known.of(server.name)):
        said = f"{server.name} is trusted in {folder} already.\n"
        return Answer(plain(said), _facts(server, folder, trusted=True), NOTHING)
    _ask_for(server, folder, screen)
    if not agrees(f"Let {server.name} work for agents in this folder?", screen):
        facts = _facts(server, folder, trusted=False)
        return Answer(plain("Nothing is changed.\n"), facts, NOTHING)
    write_trust(place.state, known.given(server.name, folder))
    said = (
        f"{server.name} is trusted in {folder}. Servers that run learn of it when they are started "
        "anew.\n"
    )
    return Answer((Span(said, "good"),), _facts(server, folder, trusted=True))


def _ask_for(server: ServerSpec, folder: str, screen: Screen) -> None:
    """Tell what trust in a server means.

    Raises:
        UnattendedError: There is no person to be asked.
    """
    if not at_terminal(screen):
        raise UnattendedError(
            "`filepact trust` is for a person at a terminal, and no terminal is here",
            hint="Type it in a terminal, or put `trusted = true` under "
            f"`[servers.{server.name}]` in your settings.",
        )
    screen.write(
        plain(
            f"{server.name} in {folder}\n\n"
            f"It is not used for agents unasked: {RISKS[server.risk]}.\n"
            f"filepact's rules do not hold for what {server.name} itself does.\n\n"
        )
    )


def _withdrawn(server: ServerSpec, known: ServerTrust, folder: str, state: str) -> Answer:
    facts = _facts(server, folder, trusted=False)
    if folder not in known.of(server.name):
        return Answer(plain(f"{server.name} was not trusted in {folder}.\n"), facts, NOTHING)
    write_trust(state, known.withdrawn(server.name, folder))
    said = f"{server.name} is not trusted in {folder} any more.\n"
    return Answer((Span(said, "warn"),), facts, DONE)


def _listed(
    risky: dict[str, ServerSpec], known: ServerTrust, folder: str, programs: Programs
) -> Answer:
    held = {one.name for one in waiting(risky.values(), known, folder, programs)}
    spans: list[Span] = []
    rows: list[dict[str, object]] = []
    for name, server in risky.items():
        trusted = server.serves_agents or is_within(folder, known.of(name))
        if not trusted and name not in held:
            continue
        spans.append(Span(f"{'trusted' if trusted else 'waits':<8}", "good" if trusted else "warn"))
        spans.append(Span(f"{name}: {RISKS[server.risk]}\n"))
        rows.append(_facts(server, folder, trusted=trusted))
    if held:
        spans.append(Span(f"\nfilepact trust {min(held)}   lets it work for agents here\n", "dim"))
    if not rows:
        spans.append(Span("No installed server needs your trust.\n"))
    return Answer(tuple(spans), {"folder": folder, "servers": rows})


def _facts(server: ServerSpec, folder: str, *, trusted: bool) -> dict[str, object]:
    return {"server": server.name, "folder": folder, "risk": server.risk, "trusted": trusted}

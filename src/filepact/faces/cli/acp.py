"""The command that editors start in an agent's place: the proxy between the two."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError
from filepact.faces.cli.screen import Answer, plain

# What is not needed to start the agent is loaded while it starts.
if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.operation import Actor, Session
    from filepact.faces.acp.proxy.traffic import Facts
    from filepact.faces.acp.sessions import Bound, Sessions
    from filepact.faces.cli.screen import Screen
    from filepact.semantic.insight import Insight
    from filepact.tools.registry import Toolbox
    from filepact.workspace.workspace import Workspace

__all__ = ["acp"]


def acp(arguments: Namespace, _screen: Screen) -> Answer | None:
    """Serve one editor until it, or the agent, ends."""
    from filepact.faces.acp.proxy.start import run  # noqa: PLC0415 - only this command needs it

    if arguments.explain:
        from filepact.faces.cli.acp_doors import explain  # noqa: PLC0415 - only for this

        return explain(arguments.agent)
    if not arguments.agent and sys.stdin.isatty():
        raise InvalidParamsError(
            "no agent was named", hint="Give its command after `--`: filepact acp -- gemini --acp"
        )
    # What is learnt of the files beside must not hold up what passes.
    sys.setswitchinterval(0.001)
    status = run(
        arguments.agent,
        partial(_sessions, arguments),
        roots=tuple(map(_absolute, arguments.root)),
        serve=None if arguments.no_tools else _serve,
        watch=not arguments.no_watch,
        patience=arguments.patience,
        begun=_listen_to_remarks,
    )
    return Answer(plain(""), {}, code=status) if status else None


def _absolute(root: str) -> str:
    from pathlib import Path  # noqa: PLC0415 - few name roots

    return str(Path(root).absolute())


def _listen_to_remarks() -> None:
    from filepact.faces.cli.remarks import log_to_standard_error  # noqa: PLC0415 - see above

    log_to_standard_error()


def _sessions(arguments: Namespace) -> Sessions:
    from filepact.config.person import (  # noqa: PLC0415 - with the next
        read_settings,
        state_folder,
    )
    from filepact.faces.acp.sessions import Sessions  # noqa: PLC0415 - loads the database

    settings = read_settings(arguments.config)

    def look(workspace: Workspace) -> Insight | None:
        from filepact.app import open_insight  # noqa: PLC0415 - not before it is needed
        from filepact.faces.cli.programs import Programs  # noqa: PLC0415 - the same

        programs = Programs(workspace.changeable)
        return open_insight(
            workspace,
            diagnosing=settings.diagnosing,
            servers=settings.agents_servers,
            environment=programs.environment,
            locate=programs,
        )

    return Sessions(
        state_folder(arguments.state),
        mode=arguments.mode,
        settings=settings,
        look=None if settings.diagnosing.mode == "off" else look,
    )


def _serve(toolbox: Toolbox, bound: Bound, facts: Facts, descriptor: int) -> None:
    """Serve an agent's own connection for tools, as the agent that it is."""
    import secrets  # noqa: PLC0415 - not before it is needed

    from filepact.domain.operation import Actor, Session  # noqa: PLC0415 - the same
    from filepact.faces.cli.hosts import own_version  # noqa: PLC0415 - the same
    from filepact.faces.cli.serve import instructions  # noqa: PLC0415 - the same
    from filepact.faces.mcp import serve  # noqa: PLC0415 - the same

    def session_of(_actor: Actor) -> Session:
        name = f"acp-{secrets.token_hex(4)}"
        return Session(name, Actor("agent", facts.agent, facts.version))

    serve(
        toolbox,
        name="filepact",
        version=own_version(),
        instructions=instructions(bound.workspace, changes=True, moves=False),
        session_factory=session_of,
        narrow=lambda _folders: None,
        pipes=(descriptor, descriptor),
    )

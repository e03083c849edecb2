"""The command that agents' programs start: folders over MCP on standard input and output."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from filepact.domain.operation import Session
from filepact.faces.cli.hosts import own_version
from filepact.faces.cli.screen import remark
from filepact.faces.cli.solution import solution_instructions, solution_place
from filepact.faces.mcp.talks import conversation_of_server

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.operation import Actor
    from filepact.faces.cli.screen import Screen
    from filepact.workspace.workspace import Workspace

__all__ = ["instructions", "mcp"]


def mcp(arguments: Namespace, _screen: Screen) -> None:
    """Serve one client until it closes its end."""
    from filepact.app import (  # noqa: PLC0415 - loads the database
        journal_roots,
        open_insight,
        open_solution,
        open_toolbox,
        open_workspace,
        start_nursery,
    )
    from filepact.config.person import (  # noqa: PLC0415 - with it
        read_settings,
        state_folder,
    )
    from filepact.faces.cli.programs import Programs  # noqa: PLC0415 - with the next
    from filepact.faces.mcp import serve  # noqa: PLC0415 - only this command needs it

    settings = read_settings(arguments.config)
    of_solution = arguments.toolset == "solution"
    roots, solution = solution_place(arguments.roots) if of_solution else (arguments.roots, "")
    only_looks = arguments.read_only or arguments.max_level == "safe"
    # The seven tools have diagnostics for changes alone.
    diagnosing = settings.diagnosing
    if only_looks and not of_solution:
        diagnosing = replace(diagnosing, mode="off")
    elif of_solution and diagnosing.mode == "auto":
        # Who asks for a solution asks for its servers.
        diagnosing = replace(diagnosing, mode="always")
    servers = () if diagnosing.mode == "off" else settings.agents_servers
    with ExitStack() as stack:
        programs = Programs(
            (*roots, *(journal_roots(state_folder(arguments.state)) if servers else ()))
        )
        nursery = None
        if settings.guard.landlock != "off":
            # What is behind the wall starts no programs any more.
            nursery = start_nursery(diagnosing, servers, programs)
        if nursery is not None:
            stack.callback(nursery.close)
        workspace = open_workspace(
            roots,
            state_dir=state_folder(arguments.state),
            mode=arguments.mode,
            settings=settings,
            landlock=settings.guard.landlock,
        )
        stack.callback(workspace.close)
        if sys.stdin.isatty():
            remark(
                "filepact: waiting for an agent's program on standard input; `filepact setup` "
                "prints how to connect one; Ctrl-C ends this\n"
            )
        if solution:
            workspace.guard.find_file(solution, "read")
        insight = open_insight(
            workspace,
            diagnosing=diagnosing,
            servers=servers,
            environment=programs.environment,
            locate=programs,
            nursery=nursery,
        )
        if insight is not None:
            stack.callback(insight.close)
        shown = {
            "insight": insight,
            "tier": arguments.tier,
            "max_level": arguments.max_level,
            "read_only": arguments.read_only,
        }
        only_new = {one.name for one in servers if one.only_new}
        toolbox = (
            open_solution(workspace, name=solution, only_new=only_new, **shown)
            if of_solution
            else open_toolbox(workspace, own=True, seconds=settings.serving.timeout, **shown)
        )
        changes = any(tool.kind == "writes" for tool in toolbox.tools)
        own = any(tool.port == "past" for tool in toolbox.tools)
        serve(
            toolbox,
            name="filepact",
            version=own_version(),
            instructions=solution_instructions(workspace, solution, changes=changes)
            if of_solution
            else instructions(workspace, changes=changes, own=own),
            session_factory=_session,
            # The paths of a solution count from its own folder, wherever the client works.
            narrow=partial(workspace.guard.narrow, moves=not of_solution),
            page=settings.serving.page,
        )


def instructions(
    workspace: Workspace, *, changes: bool, own: bool = False, moves: bool = True
) -> str:
    """What an agent should know before its first call.

    Args:
        workspace: What it will work in.
        changes: Whether any tool that changes files is shown.
        own: Whether one is shown by which it takes its own changes back.
        moves: Whether relative paths start at a folder that the client shares.
    """
    first, *others = (root.path for root in workspace.guard.roots)
    start = "Relative paths start there"
    start += ", or in the folder below it that your client shares." if moves else "."
    said = [f"Files beneath {_short(first)}.", start]
    if others:
        said.append(f"Also {', '.join(map(_short, others[:3]))}, by absolute path.")
    said.append("Paths outside, and files that hold secrets, are refused; do not try other ways.")
    if changes:
        said.append(
            "Read a file before you change it, and prefer edit_file to write_file. Encoding and "
            "line ends are kept. Every change is recorded and the person can undo it."
            + (" history undoes your own." if own else "")
        )
        if workspace.mode == "preview":
            said.append(
                "Changes are pending until the person agrees; these tools show you the files as if "
                "they were done. Go on from there, do not send them again."
            )
    else:
        said.append("Nothing can be changed here.")
    return " ".join(said)


def _short(path: str) -> str:
    """A path that leaves room for the rest."""
    return path if len(path) <= 110 else f"...{path[-107:]}"


def _session(actor: Actor) -> Session:
    conversation = conversation_of_server(actor.name, os.environ)
    return Session(f"mcp-{secrets.token_hex(4)}", actor, conversation)

"""Command `mcp`: serves folders, or a solution, to one client over standard input and output."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import ExitStack, closing, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

import filepact
from filepact import VERSION
from filepact.domain.operation import Session
from filepact.errors import StateFailedError
from filepact_cli.screen import remark
from filepact_mcp.clients import ClientHooks, agent_with_hooks, conversation_of_server

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from filepact.app import OpenFolders
    from filepact.config.settings import Settings
    from filepact.domain.operation import Actor
    from filepact.domain.person import Ancestor
    from filepact.tools.engine import ChangeJudge
    from filepact.tools.registry import ToolEngine, Toolset
    from filepact.workspace.workspace import Mode, Workspace
    from filepact_cli.screen import Terminal
    from filepact_mcp.calls import ElicitationHandler, FrameHandler

__all__ = ["instructions", "mcp", "shortened"]

_LATER: Final = (
    *("re2", "regex", "pydantic", "logging", "concurrent.futures.thread", "filepact.compression"),
    *("filepact.workspace.workspace", "filepact.store.known_texts", "filepact.tools.engine"),
    *("filepact.text.locate", "filepact.text.patch", "filepact_index.search_index"),
    *(() if sys.version_info >= (3, 14) else ("backports.zstd",)),
    "filepact.fs.audit_file",
)
_LAST: Final = "filepact.workspace.external_files"
"""What a server may load after its first answer; the last one is compiled last."""

_MODES: Final[dict[str, Mode]] = {
    "auto": "auto",
    "read-only": "auto",
    "review": "preview",
    "preview": "preview",
}

_AT_THE_END: Final = 1.0
"""Seconds that the end of a turn waits for what language servers have not answered yet."""


def mcp(arguments: Namespace, _screen: Terminal) -> None:
    """Serve one client until it closes its end."""
    gc.disable()  # what is loaded stays to the end, and is a tenth of the start to look through
    from filepact.app import (  # noqa: PLC0415 - loads the database
        ancestors,
        journal_roots,
        open_toolbox,
    )
    from filepact.config.person import read_settings, state_folder  # noqa: PLC0415 - with it
    from filepact.extension import open_diagnostics  # noqa: PLC0415 - with the next
    from filepact.opening import turn_noted, use_few_arenas  # noqa: PLC0415 - as above
    from filepact_mcp import serve  # noqa: PLC0415 - only this command needs it

    use_few_arenas()
    settings = read_settings(arguments.config)
    of_solution = arguments.toolset == "solution"
    state = state_folder(arguments.state)
    diagnostics = open_diagnostics(settings, state)
    roots, solution = arguments.roots, ""
    if of_solution:
        roots, solution = diagnostics.solution_place(roots)
    arguments.read_only = arguments.read_only or arguments.mode == "read-only"
    only_looks = arguments.read_only or arguments.max_level == "safe"
    with ExitStack() as stack:
        diagnostics.prepare(
            stack,
            lambda: (*roots, *journal_roots(state, settings.store)),
            looks=only_looks,
            solution=of_solution,
        )
        stack.callback(compile_ahead(diagnostics.later))
        chat = _chat(arguments, settings, stack) if not only_looks else None
        above, _ = ancestors()  # of which a sandbox does not tell
        folders = _opened(roots, _MODES[arguments.mode], state, settings)
        if folders is None:
            return
        stack.callback(folders.close)
        _greet()
        if solution:
            folders.guard.find_file(solution, "read")
        diagnostics.open(stack, folders)
        turns: list[Any] = []
        shown: dict[str, Any] = {
            "tier": arguments.tier,
            "max_level": arguments.max_level,
            "read_only": arguments.read_only,
        }

        def judge() -> ChangeJudge | None:
            found: ChangeJudge | None = diagnostics.judge(stack, folders.workspace())
            if found is not None:
                turns.append(stack.enter_context(_turn_errors(found)))
            return found

        def open_tools() -> Toolset:
            from filepact_index import open_indexes  # noqa: PLC0415 - not for the first answer

            workspace = folders.workspace()
            shared_by = VERSION if settings.server.shared_index else ""
            workspace.keep_search_index(partial(open_indexes, shared_by=shared_by))
            if of_solution:
                tools: Toolset = diagnostics.solution(workspace, judge(), name=solution, **shown)
            else:
                # Who only reads needs no servers.
                semantics = judge() if diagnostics.mode == "always" else judge
                seconds = settings.server.timeout
                tools = open_toolbox(
                    workspace, semantics=semantics, own=True, seconds=seconds, **shown
                )
            gc.freeze()
            gc.enable()
            return tools

        asking = chat and chat(folders.workspace())
        framed = settings.server.app and not (only_looks or of_solution)
        # Said before any tool is loaded, so not read off them.
        if of_solution:
            said = diagnostics.instructions(folders, solution, changes=not only_looks)
        else:
            own = not only_looks and arguments.tier != "essential"
            said = instructions(folders, changes=not only_looks, own=own)
        serve(
            open_tools,
            name="filepact",
            version=VERSION,
            instructions=said,
            session_factory=_session,
            # The paths of a solution count from its own folder, wherever the client works.
            narrow=partial(folders.guard.narrow, moves=not of_solution),
            patience=settings.server.timeout,
            page=settings.server.page,
            chat=asking,
            app=_app(folders, asking) if framed else None,
            hooks=ClientHooks(
                partial(_unheard, state, above, [one.path for one in folders.guard.roots]),
                partial(turn_noted, state, above),
                partial(_changed, turns),
            ),
        )


def compile_ahead(more: Sequence[str]) -> Callable[[], int | None]:
    """Have what a server loads later compiled, once for all starts, if nobody has done that yet.

    Inside the sandbox a server could not keep what Python compiles, and some installers compile nothing.
    So another process does it, of which nobody waits for the end.

    Args:
        more: Modules of extensions.

    Returns:
        Its exit status when it has ended; to be asked once more at the end.
    """
    package = os.path.dirname(filepact.__file__)
    folder, _, last = _LAST.removeprefix("filepact.").partition(".")
    place, prefix = os.path.join(package, folder), sys.pycache_prefix
    kept = f"{prefix}{place}" if prefix else os.path.join(place, "__pycache__")
    done = os.path.join(kept, f"{last}.{sys.implementation.cache_tag}.pyc")
    if sys.dont_write_bytecode or os.path.exists(done) or not (prefix or os.access(place, os.W_OK)):
        return lambda: 0
    import subprocess  # noqa: PLC0415 - done once

    command = [sys.executable, "-I", "-c", f"import {', '.join((*_LATER, *more, _LAST))}"]
    if prefix:
        command[2:2] = ["-X", f"pycache_prefix={prefix}"]
    nowhere = subprocess.DEVNULL
    with suppress(OSError):
        return subprocess.Popen(  # noqa: S603 - this very program
            command, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True
        ).poll
    return lambda: 0


def _turn_errors(semantics: ChangeJudge) -> closing[Any]:
    """Return the service that tells hooks, at the end of a turn, which errors it has left."""
    from filepact.extension import open_turn_errors  # noqa: PLC0415 - where there are servers

    summary = partial(semantics.turn_summary, seconds=_AT_THE_END, ends=True)
    return closing(open_turn_errors(summary))


def _changed(turns: Sequence[Any], session: Session) -> None:
    for one in turns:
        one.note(session)


def _unheard(state: str, above: Sequence[Ancestor], roots: Sequence[str], client: str) -> str:
    """Return the note beside the first answer to a program that should have called a hook before and has not.

    Where `filepact setup` has written hooks for it, somebody relies on them: it is said in every session.
    Where it has not, somebody may want the server alone: it is said once for these folders.
    """
    agent = agent_with_hooks(client)
    if not agent:
        return ""
    from filepact.app import calls_no_hook  # noqa: PLC0415 - loads the database
    from filepact.extension import has_hooks  # noqa: PLC0415 - few programs have hooks

    set_up = has_hooks(agent, state)
    if not calls_no_hook(state, above, "" if set_up else "\0".join((agent, *roots))):
        return ""
    return (
        "Note, for the person too: this program has called no hook of filepact's, so filepact neither checks "
        "nor records what its own tools do here. `filepact doctor` says what to do."
    )


def _app(folders: OpenFolders, chat: ElicitationHandler | None) -> Callable[[], FrameHandler]:
    """Makes the review as a frame in the person's chat, once a client shows such."""

    @cache
    def made() -> FrameHandler:
        from filepact.extension import open_frame  # noqa: PLC0415 - as said

        frame: FrameHandler = open_frame(folders.workspace(), chat)
        return frame

    return made


def _chat(
    arguments: Namespace, settings: Settings, stack: ExitStack
) -> Callable[[Workspace], ElicitationHandler] | None:
    """Return the maker of the review in a person's chat, by their settings; None where nobody is asked there."""
    if settings.server.elicitation == "off":
        return None
    from filepact_cli.context import called_by  # noqa: PLC0415 - with the next

    caller = called_by(arguments, serves=True)
    if caller.agent:
        return None  # Who has started the client is an agent, and would answer for the person.
    from filepact.extension import open_chat  # noqa: PLC0415 - few want it

    return open_chat(settings.server, stack, str(caller))


def _opened(roots: Sequence[str], mode: Mode, state: str, settings: Settings) -> OpenFolders | None:
    """The folders, opened; None where nothing can be served, and that has been done."""
    from filepact.app import open_folders  # noqa: PLC0415 - loads the database

    landlock = settings.guard.landlock
    try:
        return open_folders(roots, state_dir=state, mode=mode, settings=settings, landlock=landlock)
    except StateFailedError as error:
        if [*roots] != ["."] or "holds" not in error.details:
            raise
        _serve_nothing(error)
    return None


def _greet() -> None:
    """Tell a person who has started a server by hand what it waits for."""
    if sys.stdin.isatty():
        remark(
            "filepact: waiting for an agent's program on standard input; `filepact setup` "
            "prints how to connect one; Ctrl-C ends this\n"
        )


def _serve_nothing(error: StateFailedError) -> None:
    """Serve no tools, in whatever folder a host has started the server that it has for all projects.

    Some hosts do not start at all without a server of theirs, and a home folder cannot be served.
    """
    from filepact.tools.registry import Toolset  # noqa: PLC0415 - the same
    from filepact_mcp import serve  # noqa: PLC0415 - only this command needs it

    remark(f"filepact: nothing is served: {error.message}\n")
    serve(
        lambda: Toolset((), cast("ToolEngine", None)),  # which nobody asks, as there is no tool
        name="filepact",
        version=VERSION,
        instructions="There are no tools of filepact in this folder, since it holds filepact's own "
        "state. They are there when you are started in a project's folder.",
        session_factory=_session,
    )


def instructions(
    folders: OpenFolders | Workspace, *, changes: bool, own: bool = False, moves: bool = True
) -> str:
    """Write the instructions of a server for folders.

    Args:
        folders: What the agent will work in.
        changes: Whether any tool that changes files is shown.
        own: Whether one is shown by which it takes its own changes back.
        moves: Whether relative paths start at a folder that the client shares.
    """
    first, *others = (root.path for root in folders.guard.roots)
    start = "Relative paths start there"
    start += ", or in the folder below it that your client shares." if moves else "."
    said = [f"Files beneath {shortened(first, 110)}.", start]
    if others:
        said.append(
            f"Also {', '.join(shortened(one, 110) for one in others[:3])}, by absolute path."
        )
    said.append("Paths outside, and files that hold secrets, are refused; do not try other ways.")
    if changes:
        said.append(
            "Read a file before you change it, and prefer edit_file to write_file. Encoding and "
            "line ends are kept. Every change is recorded and the person can undo it."
            + (" history undoes your own." if own else "")
        )
        if folders.mode == "preview":
            said.append(
                "Changes are pending until the person agrees; these tools show you the files as if "
                "they were done. Go on from there, do not send them again."
            )
    else:
        said.append("Nothing can be changed here.")
    return " ".join(said)


def shortened(path: str, room: int) -> str:
    """Keep the end of a long path, at most `room` characters of it."""
    return path if len(path) <= room else f"...{path[3 - room :]}"


def _session(actor: Actor) -> Session:
    conversation = conversation_of_server(actor.name, os.environ)
    return Session(f"mcp-{os.urandom(4).hex()}", actor, conversation)

"""Commands `acp` and `acp-check`: the proxy before an agent, and the conformance suite."""

from __future__ import annotations

import json
import os
import selectors
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import InvalidParamsError, NotFoundError, ReadFailedError
from filepact_acp.proxy.start import AgentProcess
from filepact_cli.context import agent_of
from filepact_cli.screen import CommandAnswer, plain
from filepact_wire.framing import ByteLineReader
from filepact_wire.pipes import read_some, write_all, write_at_once

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from filepact.domain.operation import Actor, Session
    from filepact.tools.registry import Toolset
    from filepact_acp.agents import AgentRecord, ConnectionInfo
    from filepact_acp.sessions import AcpSession, Sessions
    from filepact_cli.screen import Terminal

__all__ = ["acp", "acp_check"]


def acp(arguments: Namespace, _screen: Terminal) -> CommandAnswer | None:
    """Serve one editor until it, or the agent, ends."""
    from filepact_acp.proxy.start import run  # noqa: PLC0415 - only this command needs it

    if arguments.explain:
        return _explain(arguments.agent)
    if not arguments.agent and sys.stdin.isatty():
        raise InvalidParamsError(
            "no agent was named", hint="Give its command after `--`: filepact acp -- gemini --acp"
        )
    # What is learnt of the files beside must not hold up what passes.
    sys.setswitchinterval(0.001)
    status = run(
        arguments.agent,
        partial(_sessions, arguments),
        roots=tuple(map(_true_name, arguments.root)),
        true_name=_true_name,
        serve=None if arguments.no_tools else _serve,
        watch=not arguments.no_watch,
        files=not arguments.no_editor_files,
        patience=arguments.patience,
        begun=_log_to_standard_error,
    )
    return CommandAnswer(plain(""), {}, code=status) if status else None


def _true_name(folder: str) -> str:
    try:
        return str(Path(folder).resolve())
    except (OSError, RuntimeError):  # links that lead in a circle
        return str(Path(folder).absolute())


def _log_to_standard_error() -> None:
    """Log to standard error, and drop the lines that an editor does not read at once."""
    import logging  # noqa: PLC0415 - not before the agent is started

    class LogHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            write_at_once(2, f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))

    logging.basicConfig(handlers=[LogHandler()], level=logging.INFO, format="filepact: %(message)s")


def _sessions(arguments: Namespace) -> Sessions:
    from filepact.app import ancestors, note_host  # noqa: PLC0415 - loads the database
    from filepact.config.person import (  # noqa: PLC0415 - with the next
        read_settings,
        state_folder,
    )
    from filepact.extension import open_diagnostics  # noqa: PLC0415 - the same
    from filepact_acp.sessions import Sessions  # noqa: PLC0415 - loads the database

    settings = read_settings(arguments.config)
    state = state_folder(arguments.state)
    if arguments.agent:
        # Whatever runs below us is the agent's, and decides nothing.
        note_host(state, ancestors(os.getpid())[0], agent_of(arguments.agent))

    diagnostics = open_diagnostics(settings, state)
    return Sessions(
        state,
        mode=arguments.mode,
        settings=settings,
        look=None if diagnostics.mode == "off" else diagnostics.for_agents,
    )


def _serve(toolbox: Toolset, bound: AcpSession, facts: ConnectionInfo, descriptor: int) -> None:
    """Serve an agent's own connection for tools, as the agent that it is."""
    import secrets  # noqa: PLC0415 - not before it is needed

    from filepact import VERSION  # noqa: PLC0415 - the same
    from filepact.domain.operation import Actor, Session  # noqa: PLC0415 - the same
    from filepact_cli.serve import instructions  # noqa: PLC0415 - the same
    from filepact_mcp import serve  # noqa: PLC0415 - the same

    def session_of(_actor: Actor) -> Session:
        name = f"acp-{secrets.token_hex(4)}"
        return Session(name, Actor("agent", facts.agent, facts.version))

    serve(
        lambda: toolbox,
        name="filepact",
        version=VERSION,
        instructions=instructions(bound.workspace, changes=True, moves=False),
        session_factory=session_of,
        pipes=(descriptor, descriptor),
    )


_PATIENCE: Final = 60.0  # seconds for an agent to say who it is; some install themselves first
_TABLE: Final = "{:<18} {:<9} {:<8} {:<8} {:<12} {:<6}  {}\n"


def _explain(command: Sequence[str]) -> CommandAnswer:
    """All agents that are known, or one that is started and asked who it is.

    Raises:
        InvalidParamsError: It cannot be started.
        ReadFailedError: It does not say who it is.
    """
    from filepact.values import asdict  # noqa: PLC0415
    from filepact_acp.agents import AGENTS, habits_of  # noqa: PLC0415 - only for this

    if not command:
        heads = ("agent", "seen in", "reads", "writes", "permission", "tools", "")
        rows = [_row(name, habits) for name, habits in sorted(AGENTS.items())]
        text = _TABLE.format(*heads) + "".join(rows) + _LEGEND
        return CommandAnswer(
            plain(text), {"agents": {name: asdict(one) for name, one in AGENTS.items()}}
        )
    told = _introduced(command)
    info = told.get("agentInfo") or told.get("info") or {}
    name, version = str(info.get("name") or "?"), str(info.get("version") or "?")
    habits = habits_of(name)
    protocol = told.get("protocolVersion")
    facts = {
        "agent": name,
        "version": version,
        "protocol": protocol,
        "known": asdict(habits) if habits else None,
    }
    return CommandAnswer(plain("".join(_about(name, version, protocol, habits))), facts)


_LEGEND: Final = """
reads, writes   it asks its client for files: guarded, unsaved text first, recorded
permission      it asks before it changes a file: the rules answer what they deny
tools           it uses the seven tools that it is offered: guarded, recorded
What an agent writes by itself is seen at the end of its turn, recorded, and can be undone; what
it reads by itself is not seen, and nothing here keeps it from doing either.
"""


def _row(name: str, one: AgentRecord) -> str:
    row = _TABLE.format(name, one.version, one.reads, one.writes, one.asks, one.tools, one.note)
    return f"{row.rstrip()}\n"


def _about(name: str, version: str, protocol: object, habits: AgentRecord | None) -> Iterator[str]:
    yield f"{name} {version}, protocol version {protocol}\n\n"
    if protocol == 1:
        yield "files       offered to it by filepact, whether or not the editor has them\n"
    else:
        yield "files       its version of the protocol has none; it gets them by the tools\n"
    yield "permission  what the rules deny is refused, the rest is for the person\n"
    yield "tools       the seven tools are added to each of its sessions\n"
    yield "watch       what it writes by itself is recorded at the end of its turn\n\n"
    if habits is None:
        yield "It is not known which of these it uses; `filepact log` will show it.\n"
        return
    yield (
        f"Version {habits.version} was seen to read by its client: {habits.reads}, write by it: "
        f"{habits.writes}, ask for permission: {habits.asks}, use tools: {habits.tools}"
    )
    yield f" ({habits.note}).\n" if habits.note else ".\n"


def _introduced(command: Sequence[str]) -> dict[str, Any]:
    """The name and version that an agent gives itself."""
    child = AgentProcess(command)
    try:
        child.wait_until_started()
        source, sink = child.pipes
        able = {"fs": {"readTextFile": True, "writeTextFile": True}}
        asked = {"protocolVersion": 1, "clientCapabilities": able}
        request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}
        write_all(sink, json.dumps(request).encode() + b"\n")
        for line in _lines(source):
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == 0 and "method" not in message:
                result = message.get("result")
                return result if isinstance(result, dict) else {}
    finally:
        child.end()
    raise ReadFailedError(
        f"{command[0]} did not say who it is within {_PATIENCE:.0f} s",
        hint="Check that an editor would start it with this command, with its option for the protocol.",
    )


def _lines(source: int) -> Iterator[bytes]:
    cutter, until = ByteLineReader(), time.monotonic() + _PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0 and selector.select(left):
            data = read_some(source)
            if not data:
                return
            yield from (line for line in cutter.feed(data) if line is not None)


def acp_check(arguments: Namespace, screen: Terminal) -> None:
    """Do what `acp-conformance` does with the same words, and end as it does.

    Raises:
        NotFoundError: It is not installed.
        SystemExit: The suite has run.
    """
    words = [*(["--json"] if arguments.json else []), *arguments.words]
    try:
        from acp_conformance.cli import main  # noqa: PLC0415 - it may not be there
    except ImportError:
        screen.json = "--json" in words
        raise NotFoundError(
            "the conformance suite acp-conformance is not installed",
            hint="Install it from filepact's repository: pip install ./packages/acp-conformance",
        ) from None
    sys.exit(main(words, "filepact acp-check"))

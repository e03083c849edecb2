"""The face for agents: an MCP server over standard input and output, both protocol eras."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.operation import Actor, Session
    from filepact.tools.registry import Toolbox

__all__ = ["INSTRUCTIONS_LIMIT", "serve"]

INSTRUCTIONS_LIMIT = 1_000
"""Most characters of the instructions; hosts put them into every conversation."""

_GRACE = 1.5  # seconds for calls in flight when the client closes its end


def serve(
    toolbox: Toolbox,
    *,
    name: str,
    version: str,
    instructions: str,
    session_factory: Callable[[Actor], Session],
    narrow: Callable[[Sequence[str]], str | None],
    page: int | None = None,
    pipes: tuple[int, int] | None = None,
    direct: bool = True,
) -> None:
    """Serve one client until it closes its end or the process gets SIGTERM or SIGINT.

    Calls in flight are told that they are cancelled and waited for, so that the engine behind the
    toolbox can be closed when this returns.

    Args:
        toolbox: The tools; called from several worker threads at once.
        name: The server's name as hosts show it.
        version: The program's version.
        instructions: What an agent should know before its first call.
        session_factory: Makes the session of an actor; called once for each in the connection.
        narrow: Told the folders of a client that has some, as absolute paths; may only narrow what
            was configured.  Answers a sentence for the log, or None.
        page: What one answer may take, in bytes as UTF-8; None for what is known of the client.
        pipes: Descriptors to read from and write to; standard input and output if None.
        direct: Whether ordinary requests are dealt with directly; if not, the protocol package
            has them all, which is slower and must make no other difference.

    Raises:
        ValueError: The instructions are too long.
    """
    if len(instructions) > INSTRUCTIONS_LIMIT:
        raise ValueError(f"instructions of {len(instructions)} characters are too long")
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="filepact: %(levelname)s: %(message)s"
    )
    from filepact.faces.mcp.connection import Connection  # noqa: PLC0415
    from filepact.faces.mcp.ordinary import ServerFacts, describe_tool  # noqa: PLC0415
    from filepact.faces.wire.pipes import (  # noqa: PLC0415
        Wire,
        standard_pipes,
        stopped_by_signals,
    )

    facts = ServerFacts(
        name=name,
        version=version,
        instructions=instructions,
        tools=[describe_tool(tool) for tool in toolbox.tools],
    )
    over: SimpleQueue[None] = SimpleQueue()  # which a signal's handler may use at any moment
    with ExitStack() as stack:
        source, sink = pipes or stack.enter_context(standard_pipes())
        stack.enter_context(stopped_by_signals(lambda: over.put(None)))
        wire = Wire(source, sink)
        stack.callback(wire.close)
        connection = Connection(
            toolbox,
            facts,
            wire.send,
            session_factory=session_factory,
            narrow=narrow,
            page=page,
            direct=direct,
        )

        def ended() -> None:
            connection.settle(_GRACE)
            over.put(None)

        wire.start(connection.receive, ended=ended, lost=lambda: over.put(None))
        over.get()
        connection.finish()

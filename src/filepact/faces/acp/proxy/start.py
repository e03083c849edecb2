"""A proxy from its parts: the agent started, both sides joined, and everything ended with them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from filepact.faces.acp.client_buffers import PATIENCE
from filepact.faces.acp.proxy.child import Child
from filepact.wire.pipes import standard_pipes, stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.faces.acp.proxy.proxy import Neighbour
    from filepact.faces.acp.proxy.questions import Questions
    from filepact.faces.acp.proxy.service import Service
    from filepact.faces.acp.proxy.traffic import Facts
    from filepact.faces.acp.sessions import Bound, Sessions
    from filepact.tools.registry import Toolbox

__all__ = ["run"]


def run(
    command: Sequence[str],
    sessions: Callable[[], Sessions],
    *,
    roots: tuple[str, ...] = (),
    serve: Callable[[Toolbox, Bound, Facts, int], None] | None = None,
    watch: bool = True,
    patience: float = PATIENCE,
    begun: Callable[[], None] = lambda: None,
) -> int:
    """Stand between an editor on standard input and output and an agent, until one ends.

    Args:
        command: The agent's program and its arguments; none where a conductor of a chain of
            proxies has the agent.
        sessions: Binds sessions to folders; made once the agent has been started.
        roots: The folders in which sessions may be; none for wherever the editor says.
        serve: Serves the tools over a descriptor; None leaves the agent without them.
        watch: Whether it is looked for what is written past the doors.
        patience: Seconds in which the editor has to say what it shows of a file.
        begun: Called once the agent has been started.

    Returns:
        The agent's exit status.

    Raises:
        InvalidParamsError: The agent cannot be started.
    """

    def make(
        to_editor: Callable[[bytes], None],
        to_agent: Callable[[bytes], None],
        questions: Questions,
        facts: Facts,
    ) -> Service:
        from filepact.faces.acp.proxy.doors import Links  # noqa: PLC0415 - with the next
        from filepact.faces.acp.proxy.service import Service  # noqa: PLC0415 - takes long

        links = Links(to_editor, to_agent, questions, facts)
        return Service(links, sessions(), serve, watch=watch, patience=patience)

    with ExitStack() as stack:
        pipes = stack.enter_context(standard_pipes())
        child = Child(command) if command else None
        # While the agent starts.
        begun()
        from filepact.faces.acp.proxy.chain import Chain  # noqa: PLC0415 - see above
        from filepact.faces.acp.proxy.proxy import Proxy  # noqa: PLC0415 - see above
        from filepact.faces.acp.proxy.side import Side  # noqa: PLC0415 - see above

        near = Side("editor", *pipes)
        editor: Neighbour = near
        if child is not None:
            stack.callback(child.end)
            child.begun()
            agent: Neighbour = Side("agent", *child.pipes)
        else:
            chain = Chain(near)
            editor, agent = chain.editor, chain.agent
        proxy = Proxy(editor, agent, make, roots=roots, tools=serve is not None)
        stack.enter_context(stopped_by_signals(proxy.stop))
        proxy.run()
        agent.close()
        status = 0 if child is None else child.end()
        proxy.close()
        editor.close()
    return status

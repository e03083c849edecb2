"""The start of the proxy: the agent's process, both peers joined, and everything ended with them."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

import filepact_supervisor
from filepact.errors import InvalidParamsError
from filepact_acp.client_buffers import PATIENCE
from filepact_wire.pipes import read_some, standard_pipes, stopped_by_signals, write_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.tools.registry import Toolset
    from filepact_acp.agents import ConnectionInfo
    from filepact_acp.proxy.editor_requests import EditorRequests
    from filepact_acp.proxy.proxy import ProxySide
    from filepact_acp.proxy.service import ProxyExecutor
    from filepact_acp.sessions import AcpSession, Sessions

__all__ = ["AgentProcess", "run"]

_PATIENCE: Final = 3.0  # seconds to end by itself when its input ends
_AFTER_TERM: Final = 2.0
_STDERR: Final = 2
_KILLED: Final = 128 + signal.SIGKILL


class AgentProcess:
    """The agent's program.

    Args:
        command: The program and its arguments.

    It is started at once, and `wait_until_started` waits for that.
    """

    def __init__(self, command: Sequence[str]) -> None:
        # Behind a process that ends all that the agent starts, be it that we are killed: the
        # system closes our end of the line to it then.
        self._line, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - the person's own command
                [
                    sys.executable,
                    "-I",
                    "-S",
                    f"{filepact_supervisor.__path__[0]}/supervisor.py",
                    "run",
                    str(end),
                    "0",  # of memory as much as it likes
                    "",  # in no sandbox
                    *command,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(end,),
                start_new_session=True,
            )
        self._command = command
        self._status: int | None = None
        self._said = b""
        self._agent = 0

    def wait_until_started(self) -> None:
        """Wait until it has begun, and begin to listen to its standard error.

        Raises:
            InvalidParamsError: It cannot be started.
        """
        heard = self._receive(None)
        if heard is not None and heard[0] == "supervisor":
            heard = self._receive(None)
        word, number = heard or ("failed", 0)
        if word != "started":
            self._status = _KILLED
            self._line.close()
            self._process.communicate()
            raise InvalidParamsError(
                f"the agent cannot be started: {self._command[0]}: {os.strerror(number)}",
                hint="Give its command after `--`, as the editor has it.",
                command=self._command[0],
            )
        self._agent = number
        self._listener = threading.Thread(target=self._listen, name="agent-words", daemon=True)
        self._listener.start()

    @property
    def pipes(self) -> tuple[int, int]:
        """Descriptors to read what it says, and to write what it is to hear."""
        if self._process.stdout is None or self._process.stdin is None:
            raise AssertionError
        return self._process.stdout.fileno(), self._process.stdin.fileno()

    def end(self) -> int:
        """Let it end, or end it, with everything that it started; its exit status.

        A second call does nothing.
        """
        if self._status is not None:
            return self._status
        self._status = _KILLED
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        ended = self._receive(_PATIENCE)
        if ended is None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._agent, signal.SIGTERM)
            ended = self._receive(_AFTER_TERM)
        if ended is not None and ended[0] == "ended":
            # As a shell says it of one that was ended by a signal.
            self._status = ended[1] if ended[1] >= 0 else 128 - ended[1]
        self._line.close()
        self._process.wait()
        return self._status

    def _receive(self, patience: float | None) -> tuple[str, int] | None:
        """Wait for the supervisor's next word on the agent: how it began, or how it ended."""
        until = None if patience is None else time.monotonic() + patience
        while b"\n" not in self._said:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._line], [], [], left)[0]:
                return None
            data = self._line.recv(256)
            if not data:
                return None
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        word, _, number = line.decode("ascii", "replace").partition(" ")
        return word, int(number)

    def _listen(self) -> None:
        """Pass on what it writes to its standard error, so that its pipe never fills up."""
        if self._process.stderr is None:
            return
        while data := read_some(self._process.stderr.fileno()):
            # An editor may not read it, and the agent must not have to wait for that.
            write_at_once(_STDERR, data)


def run(  # noqa: PLR0913 - options of a command, by name
    command: Sequence[str],
    sessions: Callable[[], Sessions],
    *,
    roots: tuple[str, ...] = (),
    true_name: Callable[[str], str] = str,
    serve: Callable[[Toolset, AcpSession, ConnectionInfo, int], None] | None = None,
    watch: bool = True,
    files: bool = True,
    patience: float = PATIENCE,
    begun: Callable[[], None] = lambda: None,
) -> int:
    """Stand between an editor on standard input and output and an agent, until one ends.

    Args:
        command: The agent's program and its arguments; none where a conductor of a chain of
            proxies has the agent.
        sessions: Binds sessions to folders; made once the agent has been started.
        roots: The folders in which sessions may be, by their true names; none for wherever the editor says.
        true_name: Follows the links in the name of a folder.
        serve: Serves the tools over a descriptor; None leaves the agent without them.
        watch: Whether it is looked for what is written past the doors.
        files: Whether the editor is asked for files, where it offers any.
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
        questions: EditorRequests,
        facts: ConnectionInfo,
    ) -> ProxyExecutor:
        from filepact_acp.proxy.editor_requests import ProxyContext  # noqa: PLC0415 - with the next
        from filepact_acp.proxy.service import ProxyExecutor  # noqa: PLC0415 - takes long

        links = ProxyContext(to_editor, to_agent, questions, facts)
        return ProxyExecutor(links, sessions(), serve, watch=watch, patience=patience)

    with ExitStack() as stack:
        pipes = stack.enter_context(standard_pipes())
        child = AgentProcess(command) if command else None
        # While the agent starts.
        begun()
        from filepact_acp.proxy.peers import ConductorConnection, PipeConnection  # noqa: PLC0415 - see above
        from filepact_acp.proxy.proxy import Proxy  # noqa: PLC0415 - see above

        near = PipeConnection("editor", *pipes)
        editor: ProxySide = near
        if child is not None:
            stack.callback(child.end)
            child.wait_until_started()
            agent: ProxySide = PipeConnection("agent", *child.pipes)
        else:
            chain = ConductorConnection(near)
            editor, agent = chain.editor, chain.agent
        proxy = Proxy(
            *(editor, agent, make),
            roots=roots,
            true_name=true_name,
            tools=serve is not None,
            files=files,
        )
        stack.enter_context(stopped_by_signals(proxy.stop))
        proxy.run()
        agent.close()
        status = 0 if child is None else child.end()
        proxy.close()
        editor.close()
    return status

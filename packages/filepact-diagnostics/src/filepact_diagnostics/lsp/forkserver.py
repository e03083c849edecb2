"""The fork server: starts language servers for a process that confines itself.

What a confined process starts is confined as well, and could not even be run.  So a small process is
started before: it starts the supervisors of servers outside the sandbox, but only those that were
agreed upon before anybody was served.  Whoever takes over the confined process gains no way to run
anything else.  Pipes and lines are made by the confined process and handed over, so that it talks to
servers, and ends them, as always.  `filepact_supervisor.supervisor` is the program.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from _socket import SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socketpair
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import filepact_supervisor
from filepact import values
from filepact.values import dataclass, field
from filepact_diagnostics.lsp.failures import ServerExitedError

if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable

__all__ = [
    "GIBIBYTE",
    "Descriptors",
    "ForkServer",
    "ProcessOptions",
    "Starter",
    "supervisor_command",
]

GIBIBYTE: Final = 1024**3

_HERE: Final = filepact_supervisor.__path__[0]
_PLACES: Final = [*dict.fromkeys(map(os.path.dirname, (os.path.dirname(values.__file__), _HERE)))]
_PROGRAM: Final = (
    f"import sys; sys.path.append({_HERE!r}); import supervisor; sys.path[-1:] = {_PLACES!r}; "
    "supervisor.main()"
)
"""Imported, since Python compiles a script anew each time that it is run; what confines a server is imported later."""
_SEND_SECONDS: Final = 5.0

Descriptors = tuple[int, int, int, int]
"""A server's standard input, output and error, and its supervisor's end of the line to us."""


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The options with which a server's process is started.

    Attributes:
        command: The program, absolute or found on the environment's path, and its arguments;
            `{root}` in these stands for the folder.
        folder: The working folder, absolute.
        environment: All variables that it sees.
        memory: Bytes that it may use with all that it starts; 0 for any number.
        sandbox: The sandbox that it is confined in, as JSON; empty for none.
        starter: Starts its supervisor; None for this process itself.
    """

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    memory: int = 0
    sandbox: str = ""
    starter: Starter | None = field(default=None, compare=False, repr=False)

    @property
    def words(self) -> tuple[str, ...]:
        """The command line for this folder."""
        program, *others = self.command
        return (program, *(word.replace("{root}", self.folder) for word in others))


Starter = Callable[[ProcessOptions, Descriptors], Callable[[], object]]
"""Starts a supervisor with its descriptors, which stay the caller's to close.

Returns a function to be called once it has ended; raises `ServerExitedError` if it cannot be started.
"""


def supervisor_command(line: int | str, memory: int, sandbox: str) -> list[str]:
    """The command line of a supervisor, to be followed by the server's.

    Args:
        line: The descriptor of its end of the line to us, or what stands for that.
        memory: Bytes that the server may use; 0 for any number.
        sandbox: What it is confined in, as JSON; empty for nothing.
    """
    return [*_program("run"), str(line), str(memory), sandbox]


def _program(role: str) -> list[str]:
    options = ["-B"] if sys.dont_write_bytecode else []
    if sys.pycache_prefix:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return [sys.executable, "-I", "-S", *options, "-c", _PROGRAM, role]


class ForkServer:
    """A process that starts supervisors of servers; for all threads.

    Make one with `start`, then `agree` upon what may be started.  It ends with this process, however
    that ends; servers that run then are ended by their supervisors.
    """

    def __init__(self, line: socket, pid: int) -> None:
        self._line = line
        self.pid = pid
        """The process id."""
        self._guard = threading.Lock()
        self._agreed: dict[tuple[tuple[str, ...], int, str], int] | None = None
        self._over = ""

    @classmethod
    def start(cls) -> ForkServer:
        """Start the process; it inherits neither open files nor environment nor memory.

        Raises:
            ServerExitedError: It cannot be started.
        """
        ours, theirs = socketpair()  # of Python's own module, whose wrapping takes its time to load
        ours.settimeout(_SEND_SECONDS)
        with closing(theirs):
            os.set_inheritable(theirs.fileno(), True)
            words = [*_program("serve"), str(theirs.fileno())]
            nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
            try:
                pid = os.posix_spawn(words[0], words, {}, file_actions=nowhere)
            except OSError as error:
                ours.close()
                raise ServerExitedError(f"cannot start: {os.strerror(error.errno or 0)}") from error
        return cls(ours, pid)

    def agree(
        self,
        launches: Iterable[ProcessOptions],
        roots: Iterable[str],
        environment: Mapping[str, str],
    ) -> None:
        """Fix what may be started, once and for all.

        Args:
            launches: Servers; only their commands, memory limits and sandboxes count.
            roots: Folders in which, and beneath which, they may be started.
            environment: All variables that they see.

        Raises:
            ValueError: There is an agreement already.
        """
        if self._agreed is not None:
            raise ValueError("a fork server agrees only once")
        kinds = dict.fromkeys((one.command, one.memory, one.sandbox) for one in launches)
        self._agreed = {kind: number for number, kind in enumerate(kinds)}
        agreement = {
            "supervisors": [
                supervisor_command("{line}", memory, sandbox) for _, memory, sandbox in kinds
            ],
            "commands": [command for command, _, _ in kinds],
            "roots": list(roots),
            "environment": dict(environment),
        }
        self._send(json.dumps(agreement).encode(), ())

    def start_supervisor(
        self, launch: ProcessOptions, descriptors: Descriptors
    ) -> Callable[[], object]:
        """Start a supervisor; it reports a failure on its own pipe.

        Raises:
            ServerExitedError: The fork server is gone, or the launch is not in the agreement.
        """
        number = (self._agreed or {}).get((launch.command, launch.memory, launch.sandbox))
        if number is None:
            raise ServerExitedError(
                "cannot start: it was not known when this process confined itself"
            )
        self._send(number.to_bytes(4) + os.fsencode(launch.folder), descriptors)
        return _nothing

    def close(self) -> None:
        """End the process; servers that it has started go on."""
        ended = False
        with self._guard:
            self._over = self._over or "it was ended"
            with suppress(OSError):
                self._line.shutdown(SHUT_WR)
                ended = not self._line.recv(1)
            self._line.close()
        with suppress(OSError):
            if not ended:
                # Refused where this process has confined itself; then nobody waits either.
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _send(self, message: bytes, descriptors: tuple[int, ...]) -> None:
        with self._guard:
            if not self._over:
                try:
                    data = len(message).to_bytes(4) + message
                    sent = self._line.sendmsg([data], _passing(descriptors))
                    self._line.sendall(data[sent:])
                except OSError:
                    # Half a message may have been sent; nothing behind it would be understood.
                    self._over = "it has ended"
                    self._line.close()
            if self._over:
                raise ServerExitedError(
                    f"cannot start: another process has to do it, and {self._over}"
                )


def _passing(descriptors: tuple[int, ...]) -> list[tuple[int, int, bytes]]:
    """The ancillary data by which a message passes file descriptors."""
    numbers = b"".join(one.to_bytes(4, sys.byteorder) for one in descriptors)
    return [(SOL_SOCKET, SCM_RIGHTS, numbers)] if descriptors else []


def _nothing() -> None:
    """There is no child of this process to wait for."""

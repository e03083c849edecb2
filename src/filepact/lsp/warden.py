"""A process between us and one language server, so that the server never outlives us.

It starts the server with its own input and output and holds one end of a line to us.  When the
line breaks, for whatever reason, or the server ends, it kills the server, everything that the
server has started, and the rest of its own process group.  It runs by itself and imports nothing
of the project: started with ``python -I -S warden.py LINE MEMORY COMMAND...``, where MEMORY is how
many bytes the server may use with all that it has started, 0 for any number.

On the line it says ``warden PID`` of itself, then ``started PID`` of the server, or ``failed NUMBER``
(it could not be started, with the system's error number).  In the end it says ``ended STATUS``
(negative for a signal), or ``heavy BYTES`` when it has to end a server that uses too much.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from typing import NoReturn

_SET_CHILD_SUBREAPER = 36
_SWEEPS = 1_000
_WEIGH_SECONDS = 3.0


def main(line: int, memory: int, command: list[str]) -> NoReturn:
    """Start the command, wait for its end or ours, and leave nothing behind."""
    _say(line, f"warden {os.getpid()}")
    adopting = _adopt_orphans()
    os.set_inheritable(line, False)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # A handler that does nothing: without one the signal would not wake anybody.
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    try:
        server = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        _say(line, f"failed {error.errno}")
        os._exit(1)
    _say(line, f"started {server}")
    # The pipes belong to the server alone: its end has to be seen at the other side.
    for number in (0, 1):
        os.close(number)
    while True:
        ready, _, _ = select.select([reader, line], [], [], _WEIGH_SECONDS if memory else None)
        if not ready and (used := _weigh(os.getpid())) > memory:
            _say(line, f"heavy {used}")
            break
        if line in ready and not _alive(line):
            break
        if reader in ready:
            os.read(reader, 512)
            done, status = os.waitpid(server, os.WNOHANG)
            if done:
                _say(line, f"ended {os.waitstatus_to_exitcode(status)}")
                break
    if adopting:
        _sweep()
    os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _alive(line: int) -> bool:
    try:
        return bool(os.read(line, 64))
    except OSError:
        return False


def _say(line: int, text: str) -> None:
    try:
        os.write(line, text.encode() + b"\n")
    except OSError:
        return  # nobody listens; the sweep comes all the same


def _adopt_orphans() -> bool:
    """Have processes whose parent has died become our children, where the system can do it."""
    if not sys.platform.startswith("linux"):
        return False
    answer: int = ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return answer == 0


def _sweep() -> None:
    """Kill all descendants: whoever dies leaves its children to us, until there are none."""
    for _ in range(_SWEEPS):
        try:
            children = _children(os.getpid(), os.getpid())
        except OSError:
            os.killpg(0, signal.SIGKILL)
            return
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children(process: int, task: int) -> list[int]:
    """What one thread of a process has started; OSError if that cannot be known."""
    with open(f"/proc/{process}/task/{task}/children", "rb") as listing:  # noqa: PTH123 - starts faster
        return [int(word) for word in listing.read().split()]


def _weigh(process: int) -> int:
    """Bytes of memory that the descendants of a process hold, as far as that can be known."""
    found = 0
    try:
        children = [
            child
            for task in os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - starts faster
            for child in _children(process, int(task))
        ]
    except OSError:
        return 0
    for child in children:
        try:
            with open(f"/proc/{child}/statm", "rb") as sizes:  # noqa: PTH123 - starts faster
                found += int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
        found += _weigh(child)
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])

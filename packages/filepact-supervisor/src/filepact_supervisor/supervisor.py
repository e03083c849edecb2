"""A script that supervises one language server, or is the fork server that starts such supervisors.

It runs by itself, ``python -I -S supervisor.py ROLE ...``, and imports nothing of the project unless
the server is confined.  Of Python's own modules it loads few, each when it is needed: a fork server rests
beside every server for agents, and mostly nothing is ever started.  Both roles hold one end of a socket to
filepact, the *line*, and end when it breaks, however filepact ended.

``run LINE MEMORY SANDBOX COMMAND...`` starts the command as a child, with the standard input and output
that this process was given, and adopts orphans (it is a subreaper).  When the line breaks or the server
ends, it kills every descendant and its own process group.  MEMORY is how many bytes the server may
use with all that it has started; 0 for any number.  SANDBOX is empty, or a `ServerSandbox` as JSON in
which the server is confined; whatever file it then opens this process is asked about.  It writes lines
of text: ``supervisor PID``, then ``started PID`` or ``failed ERRNO``, and at the end ``ended STATUS``
(negative for a signal) or ``heavy BYTES`` when the server used too much memory.  Whatever it is sent it answers with ``worked
TICKS``: how long the server, with all that it has started, has used the processor, -1 if it does now.

``serve LINE`` starts supervisors for a process that has confined itself and could start only
processes as confined as itself.  It reads messages, each behind its length in four bytes.  The first
is the agreement, in JSON: ``supervisors`` and ``commands`` are command lines, one of each for every
server; ``roots`` are the folders that may be worked in, ``environment`` is what servers see.
``{line}`` in a supervisor's command line stands for the number of its line, ``{root}`` in a server's
for the folder.  Every later message is the number of a server, four bytes, and the name of a folder,
and comes with four descriptors: standard input, output and error, and the supervisor's end of its
line, on which a failure is reported.  Nothing outside the agreement is ever started.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False  # `typing` takes more memory than all else here
if TYPE_CHECKING:
    import socket
    from typing import Any, NoReturn

    from filepact_supervisor.sandbox_process import SandboxProcess

_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
_KILL = 9  # SIGKILL, without the module that names it
_SWEEPS = 1_000
_MEMORY_SECONDS = 3.0

_DESCRIPTORS = 4
_DESCRIPTORS_KNOWN = 1 << 16  # up to which they are closed where the system has no bound
_LONGEST_AGREEMENT = 16 * 1024 * 1024
_LONGEST_REQUEST = 16 * 1024
_NOT_AGREED = 1  # EPERM
_LEFT = getattr(select, "POLLRDHUP", 0)  # the other end has nothing more to say


# -- one server ---------------------------------------------------------------------------


def run(line: int, memory: int, sandbox: str, command: list[str]) -> NoReturn:
    """Start the command, wait until it ends or the line breaks, and kill what is left of it."""
    import signal  # noqa: PLC0415 - a fork server rests without it

    _say(line, f"supervisor {os.getpid()}")
    adopting = _adopt_orphans()
    os.set_inheritable(line, False)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # A handler that does nothing: without one the signal would not wake anybody.
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    confined: SandboxProcess | None = None
    try:
        if sandbox:
            confined = _confined(sandbox)
            server = confined.start(command)
        else:
            server = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        _say(line, f"failed {error.errno}")
        if confined is not None:
            confined.close()
        os._exit(1)
    _say(line, f"started {server}")
    # Only the server may hold the pipes: filepact has to see the end of file when it closes them.
    for number in (0, 1):
        os.close(number)
    _follow(line, memory, server, reader, confined)
    if adopting:
        _sweep()
    if confined is not None:
        confined.close()
    os.killpg(0, _KILL)
    os._exit(1)


def _confined(sandbox: str) -> SandboxProcess:
    """A process in a sandbox, to be started."""
    from filepact_supervisor.sandbox_process import SandboxProcess, ServerSandbox  # noqa: PLC0415 - on the path that whoever starts us has set

    return SandboxProcess(ServerSandbox.from_json(sandbox), os.environ)


def _follow(
    line: int, memory: int, server: int, reader: int, confined: SandboxProcess | None
) -> None:
    """Wait until the server ends, uses too much memory or nobody wants it any more."""
    import time  # noqa: PLC0415 - a fork server rests without it

    checked = time.monotonic()
    while True:
        listener = [] if confined is None or confined.listener < 0 else [confined.listener]
        ready, _, _ = select.select(
            [reader, line, *listener], [], [], _MEMORY_SECONDS if memory else None
        )
        if confined is not None and listener and listener[0] in ready:
            confined.answer()
        if memory and time.monotonic() - checked >= _MEMORY_SECONDS:
            checked = time.monotonic()
            if (used := _memory_of_descendants(os.getpid())) > memory:
                _say(line, f"heavy {used}")
                return
        if line in ready:
            if not _alive(line):
                return
            _say(line, f"worked {_work_of_descendants(os.getpid())}")
        if reader in ready:
            os.read(reader, 512)
            done, status = os.waitpid(server, os.WNOHANG)
            if done:
                _say(line, f"ended {os.waitstatus_to_exitcode(status)}")
                return


def _alive(line: int) -> bool:
    try:
        return bool(os.read(line, 64))
    except OSError:
        return False


def _say(line: int, text: str) -> None:
    try:
        os.write(line, text.encode() + b"\n")
    except OSError:
        return  # Nobody listens any more; the descendants are killed all the same.


def _adopt_orphans() -> bool:
    """Become a subreaper, so that orphaned descendants become children of this process."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # noqa: PLC0415 - a fork server rests without it

    answer: int = ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return answer == 0


def _sweep() -> None:
    """Kill all descendants: the children of a killed one become ours, until there are none."""
    for _ in range(_SWEEPS):
        try:
            children = _children(os.getpid())
        except OSError:
            os.killpg(0, _KILL)
            return
        for child in children:
            try:
                os.kill(child, _KILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children(process: int) -> list[int]:
    """The processes that the threads of a process have started; OSError if that cannot be known."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children", "rb") as listing:
            found += map(int, listing.read().split())
    return found


def _memory_of_descendants(process: int) -> int:
    """Bytes of memory that the descendants of a process hold, as far as that can be known."""
    found = 0
    try:
        children = _children(process)
    except OSError:
        return 0
    for child in children:
        try:
            with open(f"/proc/{child}/statm", "rb") as sizes:
                found += int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
        found += _memory_of_descendants(child)
    return found


def _work_of_descendants(process: int) -> int:
    """Clock ticks for which the descendants of a process have worked; -1 if one does, or nobody knows."""
    found = 0
    try:
        for child in _children(process):
            for task in os.listdir(f"/proc/{child}/task"):
                with open(f"/proc/{child}/task/{task}/stat", "rb") as said:
                    words = said.read().rpartition(b")")[2].split()
                if words[0] in (b"R", b"D"):
                    return -1
                found += int(words[11]) + int(words[12])
            below = _work_of_descendants(child)
            if below < 0:
                return -1
            found += below
    except (OSError, ValueError, IndexError):
        return -1
    return found


# -- the fork server ----------------------------------------------------------------------


def serve(number: int) -> NoReturn:
    """Start supervisors as agreed, until the line breaks."""
    # Whoever starts this may have files open that every program inherits.
    os.closerange(3, number)
    os.closerange(number + 1, max(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_KNOWN))
    os.setsid()
    os.chdir("/")
    try:
        agreement = _agreement(number)
    except (OSError, ValueError):
        os._exit(1)
    resting = select.poll()
    resting.register(number, select.POLLIN | _LEFT)
    ((_, happened),) = resting.poll()
    if happened & (_LEFT | select.POLLHUP):
        os._exit(0)
    _start_supervisors(number, agreement)


def _agreement(number: int) -> bytes:
    """The first message, as it is.

    Raises:
        ValueError: It is none.
    """
    size = int.from_bytes(_read_exactly(number, 4))
    if size > _LONGEST_AGREEMENT:
        raise ValueError
    return _read_exactly(number, size)


def _read_exactly(number: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = os.read(number, size - len(data))
        if not more:
            raise ValueError
        data += more
    return bytes(data)


def _start_supervisors(number: int, agreement: bytes) -> NoReturn:
    """Start supervisors, from the first request on."""
    import contextlib  # noqa: PLC0415 - a fork server rests without these
    import json  # noqa: PLC0415
    import signal  # noqa: PLC0415
    import socket  # noqa: PLC0415

    # Supervisors that have ended need nobody to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=number) as line, contextlib.suppress(ConnectionError, ValueError):
        agreed = json.loads(agreement)
        while True:
            message, descriptors = _receive(line, _LONGEST_REQUEST)
            if len(descriptors) == _DESCRIPTORS:
                _begin(agreed, int.from_bytes(message[:4]), message[4:], descriptors)
            for one in descriptors:
                os.close(one)
    os._exit(0)


def _receive(line: socket.socket, longest: int) -> tuple[bytes, list[int]]:
    """The next message and its descriptors; ConnectionError when there is none any more."""
    import array  # noqa: PLC0415 - a supervisor starts faster without these
    import socket  # noqa: PLC0415

    descriptors = array.array("i")
    room = socket.CMSG_SPACE(_DESCRIPTORS * descriptors.itemsize)
    # Not `recv_fds`: it drops its flags, and the descriptors would be inherited.
    closed = 0
    if sys.platform.startswith("linux"):
        closed = socket.MSG_CMSG_CLOEXEC
    head, extras, _flags, _sender = line.recvmsg(4, room, closed)
    for level, kind, data in extras:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    for one in () if closed else descriptors:  # macOS has no such flag
        os.set_inheritable(one, False)
    head += _exactly(line, 4 - len(head)) if head else b""
    size = int.from_bytes(head)
    if not head or size > longest:
        raise ConnectionError
    return _exactly(line, size), list(descriptors)


def _exactly(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = line.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return bytes(data)


def _begin(agreed: dict[str, Any], number: int, folder: bytes, descriptors: list[int]) -> None:
    """Start a supervisor as a child, if the agreement has the server and the folder."""
    import signal  # noqa: PLC0415 - loaded by now

    place, roots, line = os.fsdecode(folder), agreed["roots"], descriptors[3]
    within = any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)
    if number >= len(agreed["commands"]) or not within or ".." in place.split("/"):
        _say(line, f"failed {_NOT_AGREED}")
        return
    if os.fork():
        return
    try:
        os.setsid()
        os.chdir(folder)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, target)
        os.set_inheritable(line, True)
        supervisor = [word.replace("{line}", str(line)) for word in agreed["supervisors"][number]]
        program, *others = agreed["commands"][number]
        words = [*supervisor, program, *(word.replace("{root}", place) for word in others)]
        os.execve(words[0], words, agreed["environment"])  # noqa: S606 - as agreed
    except OSError as error:
        _say(line, f"failed {error.errno or _NOT_AGREED}")
    finally:
        os._exit(1)


def main() -> NoReturn:
    """Be what the command line says."""
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    run(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])


if __name__ == "__main__":
    main()

"""A program in namespaces of its own: every change of some folders goes into layers, the rest is read-only.

Linux only, and without an administrator: a user namespace lets anybody mount within a mount
namespace that nobody else sees.  Over each root lies an overlay at the root's own path, whose upper
folder takes all changes.  Everything else is read-only or hidden; temporary folders, devices and
processes are the program's own.

Three processes: ours; a *keeper*, which enters the namespaces and waits; and an *init*, the first
process inside, which mounts, starts the program and reaps.  Each dies with the one above it, and with
the init the kernel ends every process inside and takes down every mount, however we ended.

The program itself can mount nothing: it has no capability, can make no user namespace (their number
is 0 inside), and where the kernel has Landlock and seccomp both refuse it as well.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from filepact.fs.kernel import capset
from filepact.fs.sandbox import forbid_mounts
from filepact_run.inside import (
    NamespaceMounts,
    go_on,
    hold,
    is_stopped,
    put,
    put_in_front,
    release,
    write_through,
)
from filepact_run.kernel import forbid_calls, prctl, unshare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from filepact_run.inside import NamespaceSettings

__all__ = ["NamespaceProgram", "ProgramFailed"]

# Of <linux/sched.h>.
_NEW_MOUNTS, _NEW_USER, _NEW_IPC, _NEW_PROCESSES = 0x2_0000, 0x1000_0000, 0x800_0000, 0x2000_0000

# Of <linux/prctl.h>.
_DEATH_SIGNAL, _DUMPABLE, _DROP_BOUND, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 4, 24, 38, 47
_CLEAR_ALL = 4
_MOST_CAPABILITIES: Final = 64

_ADMINISTRATORS_FILES: Final = 0b1111_1011
"""What an administrator keeps inside: to use and give away files whoever owns them, to become another
user, to end processes.  CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID."""

# Without namespaces, as on macOS, they are never asked for.
_next_signal: Any = getattr(signal, "sigtimedwait", None)
_memory_file: Any = getattr(os, "memfd_create", None)
_HANDLE: Final = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_LONGEST: Final = 4096
_HANDED: Final[tuple[int, ...]] = (
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
"""Signals that the program gets from us, and that may be sent to our whole group of processes."""
_WAITING: Final = (*_HANDED, signal.SIGCHLD)


class ProgramFailed(Exception):  # noqa: N818 - no error of a caller: there is another way then
    """The program was not started.

    Attributes:
        number: The system's error number.
        namespaces: Whether it is the namespaces that are refused here; else it is the program.
    """

    def __init__(self, step: str, number: int, *, namespaces: bool) -> None:
        super().__init__(f"{step}: {os.strerror(number)}")
        self.number, self.namespaces = number, namespaces


# -- our side ---------------------------------------------------------------------------------


class NamespaceProgram:
    """A program that runs in namespaces; close it when it has ended, or to end it.

    Until then signals to us wait for `attend`.
    """

    def __init__(self, keeper: int, line: socket.socket, gone: int, masked: Iterable[int]) -> None:
        self._keeper = keeper
        self._line = line
        self._gone = gone
        self._masked = masked
        self._status: int | None = None
        self._said: bytes | None = None
        self._stands = False

    @classmethod
    def start(
        cls,
        plan: NamespaceSettings,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
    ) -> Self:
        """Start a program; standard input, output and error are ours.

        Args:
            plan: What it sees.
            command: Its words; the first is looked for on its own ``PATH``.
            environment: All its variables.
            folder: Where it begins.

        Raises:
            ProgramFailed: The system refused a step, or there is no such program.
        """
        if sys.platform != "linux":
            raise ProgramFailed("namespaces", errno.ENOSYS, namespaces=True)
        sys.stdout.flush()
        sys.stderr.flush()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        user, group, us = os.geteuid(), os.getegid(), os.getpid()
        gone, until = os.pipe()
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
        keeper = os.fork()
        if not keeper:
            ours.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            _keep(theirs, us, until, lambda: _begin(theirs, plan, command, environment, folder))
        theirs.close()
        os.close(until)
        program = cls(keeper, ours, gone, masked)
        try:
            program._expect(b"entered")
            _write_maps(keeper, user, group)
            ours.send(b"mapped")
            program._expect(b"mounted")
            program._expect(b"started")
            while (came := _next_signal(_HANDED, 0)) is not None:
                program.send(came.si_signo, b"key")  # It was typed before there was a program.
            # What the init says by itself wakes us as the end of a process does.
            fcntl.fcntl(ours, fcntl.F_SETOWN, us)
            fcntl.fcntl(ours, fcntl.F_SETSIG, signal.SIGCHLD)
            fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
        except OSError as error:
            program.close()
            raise ProgramFailed("user namespace", error.errno or 0, namespaces=True) from None
        except BaseException:
            program.close()
            raise
        return program

    def _expect(self, word: bytes) -> None:
        said = self._line.recv(_LONGEST)
        if said == word:
            return
        kind, _, rest = said.partition(b" ")
        number, _, step = rest.partition(b" ")
        if kind not in (b"refused", b"failed"):
            raise ProgramFailed("the namespaces", errno.EPERM, namespaces=True)
        raise ProgramFailed(os.fsdecode(step), int(number), namespaces=kind == b"refused")

    def attend(
        self,
        begin: Callable[[], None] = lambda: None,
        over: Callable[[], bool] = lambda: False,
        *,
        every: float,
    ) -> int:
        """Wait until it has ended, and hand on the signals that other programs send us.

        What a terminal sends reaches it by itself.  Where it is stopped, so are we, but not before: a shell that sees
        us stopped goes on, and what is typed for it must not be read by the program.  Call it in the main thread.

        Args:
            begin: Called first: threads that it starts leave signals to us.
            over: Asked now and then; true ends the program.
            every: Seconds between two times.

        Returns:
            As `ended`.
        """
        begin()
        while (status := self.ended()) is None:
            came = _next_signal(_WAITING, every)
            if came is None and over():
                self.close()
            elif came is not None and came.si_signo in _HANDED and came.si_code <= 0:
                self.send(came.si_signo)
            if self._stands:
                self._stands = False
                if self._ask(b"stopped"):
                    self._stop()
        return status

    def _stop(self) -> None:
        """Be stopped, and let the program go on when we do; at once where nobody is there to continue us."""
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
        self._ask(b"continue front" if _in_front() else b"continue")

    def send(self, number: int, word: bytes = b"signal") -> None:
        """Send the program a signal; one of a key to all that runs inside, as a terminal does."""
        with suppress(OSError):
            self._line.send(b"%s %d" % (word, number))

    def hold(self) -> bool:
        """Have everything inside stand still, until `release`; false where that cannot be had now."""
        return self._ask(b"hold")

    def release(self) -> None:
        """Let everything inside go on, and look again at what others may have changed in the roots."""
        self._ask(b"release")

    def write_through(self, files: Sequence[tuple[str, str, str, int, bytes]]) -> None:
        """Write files as the program could, while it stands still; what cannot be written is left.

        Args:
            files: For each its root, its path in that, what it is to be (``file``, ``link``, ``folder`` or
                ``none``), its permission bits, and its bytes.
        """
        with os.fdopen(_memory_file("filepact"), "r+b") as note:
            said = [(*one[:4], len(one[4])) for one in files]
            note.write(json.dumps(said).encode() + b"\n")
            note.writelines(one[4] for one in files)
            note.flush()
            self._ask(b"write", note.fileno())

    def _ask(self, word: bytes, *descriptors: int) -> bool:
        """Ask the init for something, and wait for its answer: whether it is done."""
        if self._status is not None or self._said is not None:
            return False
        try:
            socket.send_fds(self._line, [word], descriptors)
        except BrokenPipeError:
            pass  # it has ended, and has said so before
        except OSError:
            return False
        while (said := self._hear()) == b"stands":
            self._stands = True
        if said in (b"done", b"not done"):
            return said == b"done"
        self._said = said  # that it has ended
        return False

    def _hear(self) -> bytes:
        """The next message of the init process; empty where it ended without one."""
        for _ in range(2):
            # Where it has ended before it had read everything, that is told once, and then its last words.
            with suppress(ConnectionResetError):
                return self._line.recv(_LONGEST)
        return b""

    def ended(self) -> int | None:
        """How it ended, as shells tell it: its status, or 128 and the signal; None if it runs.

        Waits for nothing but the end of what it has left behind.
        """
        if self._status is None and (
            self._said is not None or select.select([self._line], [], [], 0)[0]
        ):
            said = self._hear() if self._said is None else self._said
            if said == b"stands":
                self._stands = True
                return None
            status = int(said.split()[1]) if said.startswith(b"ended ") else -signal.SIGKILL
            self._finish(128 - status if status < 0 else status)
        return self._status

    def close(self) -> None:
        """End it, with all that it has started."""
        if self._status is None:
            self._finish(128 + signal.SIGKILL)

    def wait_for_mounts(self) -> None:
        """Wait until its mounts are gone as well, after its end: before that no other may have its layers."""
        with suppress(ChildProcessError):
            os.waitpid(self._keeper, 0)

    def _finish(self, status: int) -> None:
        self._status = status
        # Without its line the init ends, and the keeper says when everything inside has.
        self._line.close()
        os.read(self._gone, 1)
        os.close(self._gone)
        while _next_signal(_WAITING, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masked)
        _come_to_front()


def _in_front() -> bool:
    """Whether our terminal, if there is one, is ours at the moment."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _come_to_front() -> None:
    """Take the terminal back from a shell that has ended in namespaces, where it knew of no owner."""
    with suppress(OSError):
        try:
            os.killpg(os.tcgetpgrp(0), 0)
        except ProcessLookupError:
            put_in_front(os.getpgrp())


def _write_maps(keeper: int, user: int, group: int) -> None:
    """Give the namespace its users: an administrator's all, of anybody else only they themselves."""
    all_ = user == 0
    maps = {"uid_map": user, "gid_map": group}
    if not all_:
        put(f"/proc/{keeper}/setgroups", "deny")
    for name, one in maps.items():
        if all_:
            with suppress(OSError):
                put(f"/proc/{keeper}/{name}", _known_ids(name))
                continue
        put(f"/proc/{keeper}/{name}", f"{one} {one} 1")


def _known_ids(name: str) -> str:
    """The identity over all the ids that this process's own namespace has."""
    with open(f"/proc/self/{name}", encoding="ascii") as listing:
        lines = [line.split() for line in listing]
    return "\n".join(f"{inside} {inside} {count}" for inside, _outside, count in lines) + "\n"


# -- the keeper -------------------------------------------------------------------------------


def _keep(line: socket.socket, above: int, until: int, begin: Callable[[], NoReturn]) -> NoReturn:
    """Enter the namespaces, start the init, and wait until it has ended.

    At our own end the kernel takes down the mounts, and writes all of the disk's file system out before that. So
    whoever waits is told before, by the end of ``until``.
    """
    try:
        for number in _HANDED:
            signal.signal(number, signal.SIG_IGN)
        _keep_only(line.fileno(), until)
        unshare(_NEW_USER | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_IPC)
        line.send(b"entered")
        if line.recv(_LONGEST) != b"mapped":
            os._exit(1)
        # After the step into the namespace, which takes this away again.
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != above:
            os._exit(1)
        child = os.fork()
        if not child:
            os.close(until)
            begin()
        line.close()
        for standard in range(3):
            with suppress(OSError):
                os.close(standard)  # who reads what the program prints does not wait for the mounts
        os.waitpid(child, 0)
        os.kill(above, signal.SIGCHLD)
        os.close(until)
    except OSError as error:
        with suppress(OSError):
            line.send(b"refused %d user namespace" % (error.errno or errno.EPERM))
    finally:
        os._exit(0)


def _keep_only(*kept: int) -> None:
    """Close every descriptor but the standard ones and some."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in kept:
            with suppress(OSError):
                os.close(number)


# -- the init ---------------------------------------------------------------------------------


def _begin(
    line: socket.socket,
    plan: NamespaceSettings,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
) -> NoReturn:
    """Mount everything, start the program and wait for its end."""
    steps = NamespaceMounts(plan)
    try:
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        prctl(_DUMPABLE, 0)
        for number in _HANDED:
            # The first process of a namespace is not reached by what it has no handler for.
            signal.signal(number, signal.SIG_DFL)
        os.umask(0o022)
        steps.do()
        line.send(b"mounted")
    except OSError as error:
        with suppress(OSError):
            line.send(b"refused %d %s" % (error.errno or errno.EPERM, steps.at.encode()))
        os._exit(1)
    os.umask(steps.mask)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    said, says = os.pipe()
    program = os.fork()
    if not program:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _become(command, environment, folder, says)
    os.close(says)
    failed = os.read(said, 16)
    with suppress(OSError):
        if failed:
            line.send(b"failed %d %s" % (int(failed), os.fsencode(command[0])))
            os._exit(1)
        line.send(b"started")
        _wait(line, program, reader, steps)
    os._exit(1)


def _wait(line: socket.socket, program: int, reader: int, seen: NamespaceMounts) -> None:
    """Do what we are asked and reap, until the program or our line ends."""
    held: list[int] = []
    while True:
        ready, _, _ = select.select([reader, line.fileno()], [], [])
        if line.fileno() in ready:
            said, notes, _, _ = socket.recv_fds(line, _LONGEST, 1)
            word, _, number = said.partition(b" ")
            done = True
            if word == b"hold":
                found = hold()
                held, done = found or [], found is not None
            elif word == b"write":
                write_through(*notes)
            elif word == b"release":
                seen.forget()
                release(held)
                held = []
            elif word == b"stopped":
                done = is_stopped(program)
            elif word == b"continue":
                go_on(program, front=bool(number))
            elif word in (b"signal", b"key"):
                with suppress(ProcessLookupError):
                    os.kill(program if word == b"signal" else -1, int(number))
            else:
                return
            if word not in (b"signal", b"key"):
                line.send(b"done" if done else b"not done")
        if reader in ready:
            os.read(reader, 512)
            for status in _reap(program):
                if not os.WIFSTOPPED(status):
                    line.send(b"ended %d" % os.waitstatus_to_exitcode(status))
                    return
                if not held:
                    line.send(b"stands")


def _reap(program: int) -> Iterator[int]:
    """Reap what has ended; what has become of the program."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
            if found[0] == program:
                yield found[1]


# -- the program ------------------------------------------------------------------------------


def _become(
    command: Sequence[str], environment: Mapping[str, str], folder: str, says: int
) -> NoReturn:
    """Give up everything that the program must not have, and become it."""
    try:
        # Only now: before, the folder itself would have been meant, and not what lies over it.
        os.chdir(folder)
        _give_up()
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - what the person named
    except OSError as error:
        os.write(says, b"%d" % (error.errno or errno.EPERM))
    finally:
        os._exit(127)


def _give_up() -> None:
    prctl(_DEATH_SIGNAL, 0)
    kept = _ADMINISTRATORS_FILES if os.geteuid() == 0 else 0
    for number in range(_MOST_CAPABILITIES):
        if not kept >> number & 1:
            with suppress(OSError):  # there are fewer
                prctl(_DROP_BOUND, number)
    with suppress(OSError):
        prctl(_AMBIENT, _CLEAR_ALL)
    capset(kept)
    prctl(_NO_NEW_PRIVILEGES, 1)
    top = os.open("/", _HANDLE)
    forbid_mounts(top)
    os.close(top)
    forbid_calls()
    for number in range(1, signal.NSIG):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)

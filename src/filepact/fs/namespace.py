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
import os
import select
import signal
import socket
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from filepact.fs.kernel import capset, mount, prctl, set_mount, unshare
from filepact.fs.path_form import is_beneath
from filepact.fs.sandbox import forbid_calls, forbid_mounts
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

__all__ = [
    "LayerMount",
    "NamespaceProgram",
    "NamespaceSettings",
    "ProgramFailed",
]

# Of <linux/sched.h>.
_NEW_MOUNTS, _NEW_USER, _NEW_IPC, _NEW_PROCESSES = 0x2_0000, 0x1000_0000, 0x800_0000, 0x2000_0000

# Of <linux/mount.h>.
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_BIND, _BELOW, _PRIVATE = 4096, 16384, 1 << 18

# Of <linux/prctl.h>.
_DEATH_SIGNAL, _DUMPABLE, _DROP_BOUND, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 4, 24, 38, 47
_CLEAR_ALL = 4
_MOST_CAPABILITIES: Final = 64

_ADMINISTRATORS_FILES: Final = 0b1111_1011
"""What an administrator keeps inside: to use and give away files whoever owns them, to become another
user, to end processes.  CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID."""

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_TEMPORARY: Final = {"/tmp": "tmp", "/var/tmp": "var-tmp"}  # noqa: S108 - what they stand for
_FOR_ALL: Final = (*_TEMPORARY.values(), "shm")
_HANDLE: Final = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_LONGEST: Final = 4096
_HANDED: Final[tuple[int, ...]] = (
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
)
_WAITING: Final = (*_HANDED, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class LayerMount:
    """A root with the folders that take its changes.

    Attributes:
        root: The root's true path.
        upper: Where changes go; absolute, on a file system that has what an overlay needs.
        work: An empty folder beside it, for the kernel.
    """

    root: str
    upper: str
    work: str


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """What a program sees.

    Attributes:
        layers: The roots, one that lies in another after that.
        writable: Files and folders that are used as they are.
        fixed: Files and folders in those, or in roots, that are read-only all the same.
        hidden: Files and folders that are shown empty.
        temporary: Existing folders that are shown empty and take files, besides those of the system.
        private: An existing folder of ours for temporary files; nobody else may reach it.
    """

    layers: tuple[LayerMount, ...]
    writable: tuple[str, ...]
    fixed: tuple[str, ...]
    hidden: tuple[str, ...]
    temporary: tuple[str, ...]
    private: str


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

    def __init__(self, keeper: int, line: socket.socket, masked: Iterable[int]) -> None:
        self._keeper = keeper
        self._line = line
        self._masked = masked
        self._front = _in_front()
        self._status: int | None = None

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
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
        keeper = os.fork()
        if not keeper:
            ours.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            _keep(theirs, us, lambda: _begin(theirs, plan, command, environment, folder))
        theirs.close()
        program = cls(keeper, ours, masked)
        try:
            program._expect(b"entered")
            _write_maps(keeper, user, group)
            ours.send(b"mapped")
            program._expect(b"mounted")
            program._expect(b"started")
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

        What a terminal sends reaches it by itself.  Call it in the main thread.

        Args:
            begin: Called first: threads that it starts leave signals to us.
            over: Asked now and then; true ends the program.
            every: Seconds between two times.

        Returns:
            As `ended`.
        """
        begin()
        while (status := self.ended()) is None:
            came = signal.sigtimedwait(_WAITING, every)
            if came is None and over():
                self.close()
            elif came is not None and came.si_signo in _HANDED and came.si_code <= 0:
                self.send(came.si_signo)
        return status

    def send(self, number: int) -> None:
        """Send the program a signal."""
        with suppress(OSError):
            self._line.send(b"signal %d" % number)

    def ended(self) -> int | None:
        """How it ended, as shells tell it: its status, or 128 and the signal; None if it runs.

        Waits for nothing but the end of what it has left behind.
        """
        if self._status is None and select.select([self._line], [], [], 0)[0]:
            said = self._line.recv(_LONGEST)
            status = int(said.split()[1]) if said.startswith(b"ended ") else -signal.SIGKILL
            self._finish(128 - status if status < 0 else status)
        return self._status

    def close(self) -> None:
        """End it, with all that it has started."""
        if self._status is None:
            self._finish(128 + signal.SIGKILL)

    def _finish(self, status: int) -> None:
        self._status = status
        # Without its line the init ends, and the keeper when everything inside has.
        self._line.close()
        with suppress(ChildProcessError):
            os.waitpid(self._keeper, 0)
        while signal.sigtimedwait(_WAITING, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masked)
        if self._front:
            _come_to_front()


def _in_front() -> bool:
    """Whether our terminal, if there is one, is ours at the moment."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _come_to_front() -> None:
    """Take the terminal back from a shell that has ended in namespaces, where it knew of no owner."""
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    with suppress(OSError):
        os.tcsetpgrp(0, os.getpgrp())
    signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _write_maps(keeper: int, user: int, group: int) -> None:
    """Give the namespace its users: an administrator's all, of anybody else only they themselves."""
    all_ = user == 0
    maps = {"uid_map": user, "gid_map": group}
    if not all_:
        _put(f"/proc/{keeper}/setgroups", "deny")
    for name, one in maps.items():
        if all_:
            with suppress(OSError):
                _put(f"/proc/{keeper}/{name}", _known_ids(name))
                continue
        _put(f"/proc/{keeper}/{name}", f"{one} {one} 1")


def _known_ids(name: str) -> str:
    """The identity over all the ids that this process's own namespace has."""
    with open(f"/proc/self/{name}", encoding="ascii") as listing:
        lines = [line.split() for line in listing]
    return "\n".join(f"{inside} {inside} {count}" for inside, _outside, count in lines) + "\n"


def _put(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# -- the keeper -------------------------------------------------------------------------------


def _keep(line: socket.socket, above: int, begin: Callable[[], NoReturn]) -> NoReturn:
    """Enter the namespaces, start the init, and wait until it has ended."""
    try:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _keep_only(line.fileno())
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
            begin()
        line.close()
        os.waitpid(child, 0)
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
    steps = _Mounts(plan)
    try:
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        prctl(_DUMPABLE, 0)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
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
        _wait(line, program, reader)
    os._exit(1)


def _wait(line: socket.socket, program: int, reader: int) -> None:
    """Hand signals on and reap, until the program or our line ends."""
    while True:
        ready, _, _ = select.select([reader, line.fileno()], [], [])
        if line.fileno() in ready:
            word, _, number = line.recv(_LONGEST).partition(b" ")
            if word != b"signal":
                return
            with suppress(ProcessLookupError):
                os.kill(program, int(number))
        if reader in ready:
            os.read(reader, 512)
            while True:
                try:
                    one, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if not one:
                    break
                if one == program:
                    line.send(b"ended %d" % os.waitstatus_to_exitcode(status))
                    return


class _Mounts:
    """The steps by which an init arranges what is seen.

    Attributes:
        at: The step that is being done, for a message.
        mask: The umask of the program.
    """

    def __init__(self, plan: NamespaceSettings) -> None:
        self._plan = plan
        self._opened: dict[str, str] = {}
        self._write: list[str] = []
        self.at = ""
        self.mask = os.umask(0o077)
        os.umask(self.mask)

    def do(self) -> None:
        plan = self._plan
        self.at = "no more namespaces"
        _put("/proc/sys/user/max_user_namespaces", "0")
        self.at = "private mounts"
        mount("", "/", "", _PRIVATE | _BELOW)
        self._open_all()
        self._mount_temporary()
        for layer in plan.layers:
            self._mount_layer(layer)
        for number, path in enumerate(plan.temporary):
            self._bind(os.path.join(plan.private, f"t{number}"), path)
            self._write.append(path)
        for path in plan.writable:
            if self._bind(path, path):
                self._write.append(path)
        for path in plan.fixed:
            self._bind(path, path)
        self._hide()
        self.at = "the rest read-only"
        set_mount("/", _READ_ONLY | _NO_SETUID | _NO_DEVICES, below=True)
        for path in self._write:
            self.at = f"writable: {path}"
            set_mount(path, 0, _READ_ONLY)
        self._mount_devices()
        self.at = "/proc"
        # Read-only: an administrator's settings of the kernel are files in there.
        mount("proc", "/proc", "proc", _READ_ONLY | _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS)

    def _open_all(self) -> None:
        """Hold everything that is mounted somewhere, before anything is mounted over it."""
        plan = self._plan
        for layer in plan.layers:
            for path in (layer.root, layer.upper, layer.work):
                self.at = path
                self._open(path)
        self.at = plan.private
        some = (f"t{number}" for number in range(len(plan.temporary)))
        for name in ("tmp", "var-tmp", "shm", "run", "nothing", *some):
            path = os.path.join(plan.private, name)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            os.chmod(path, 0o1777 if name in _FOR_ALL else 0o755)
            self._open(path)
        empty = os.path.join(plan.private, "empty")
        os.close(os.open(empty, os.O_WRONLY | os.O_CREAT, 0o000))
        self._open(empty)
        devices = [f"/dev/{name}" for name in _DEVICES]
        for path in (*plan.writable, *plan.fixed, *devices, os.path.realpath("/etc/resolv.conf")):
            with suppress(OSError):
                self._open(path)

    def _open(self, path: str) -> None:
        if path not in self._opened:
            self._opened[path] = f"/proc/self/fd/{os.open(path, _HANDLE)}"

    def _mount_temporary(self) -> None:
        private = self._plan.private
        for path, name in {**_TEMPORARY, "/run": "run"}.items():
            self.at = path
            if os.path.isdir(path) and not os.path.islink(path):
                mount(self._opened[os.path.join(private, name)], path, "", _BIND)
                if path != "/run":
                    self._write.append(path)
        names = os.path.realpath("/etc/resolv.conf")
        if is_beneath(names, "/run") and names in self._opened:
            with suppress(OSError):
                os.makedirs(os.path.dirname(names), 0o755, exist_ok=True)
                os.close(os.open(names, os.O_WRONLY | os.O_CREAT, 0o644))
                mount(self._opened[names], names, "", _BIND)

    def _mount_layer(self, layer: LayerMount) -> None:
        self.at = f"overlay over {layer.root}"
        self._make_target(layer.root, folder=True)
        opened = self._opened
        lower, upper, work = opened[layer.root], opened[layer.upper], opened[layer.work]
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        mount("filepact", layer.root, "overlay", _NO_SETUID | _NO_DEVICES, options)
        self._write.append(layer.root)

    def _bind(self, source: str, target: str) -> bool:
        """Mount what was opened under a path; whether it was."""
        self.at = target
        held = self._opened.get(source)
        if held is None:
            return False
        folder = os.path.isdir(held)
        try:
            self._make_target(target, folder=folder)
            mount(held, target, "", _BIND | (_BELOW if folder else 0))
        except FileNotFoundError:
            return False
        return True

    def _make_target(self, path: str, *, folder: bool) -> None:
        """Make what something is mounted on, where our own temporary folders lie there by now."""
        ours = (*_TEMPORARY, *self._plan.temporary)
        if os.path.lexists(path) or not any(is_beneath(path, one) for one in ours):
            return
        os.makedirs(path if folder else os.path.dirname(path), 0o755, exist_ok=True)
        if not folder:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))

    def _hide(self) -> None:
        private = self._plan.private
        for path in self._plan.hidden:
            self.at = f"hidden: {path}"
            try:
                kind = os.lstat(path).st_mode
            except OSError:
                continue
            if stat.S_ISLNK(kind):
                continue  # Where it leads is hidden by its own name.
            name = "nothing" if stat.S_ISDIR(kind) else "empty"
            mount(self._opened[os.path.join(private, name)], path, "", _BIND)

    def _mount_devices(self) -> None:
        self.at = "/dev"
        mount("tmpfs", "/dev", "tmpfs", _NO_SETUID, "mode=755,size=64k")
        for name in _DEVICES:
            target = f"/dev/{name}"
            held = self._opened.get(target)
            if held is not None:
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o644))
                mount(held, target, "", _BIND)
                set_mount(target, 0, _READ_ONLY | _NO_DEVICES)
        for name, leads in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
            os.symlink(f"/proc/self/fd{leads}", f"/dev/{name}")
        os.mkdir("/dev/shm", 0o1777)  # noqa: S108 - its own
        mount(self._opened[os.path.join(self._plan.private, "shm")], "/dev/shm", "", _BIND)  # noqa: S108 - its own
        set_mount("/dev/shm", _NO_SETUID | _NO_DEVICES, _READ_ONLY)  # noqa: S108 - its own
        os.mkdir("/dev/pts", 0o755)
        with suppress(OSError):
            mount(
                *("devpts", "/dev/pts", "devpts", _NO_SETUID | _NO_PROGRAMS),
                "newinstance,ptmxmode=0666,mode=0620",
            )
        os.symlink("pts/ptmx", "/dev/ptmx")
        set_mount("/dev", _READ_ONLY)


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

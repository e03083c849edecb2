"""What the first process of a namespace does for the program in it: mounts, and moments of rest.

It arranges what is seen.  Later, while the program works, it can *hold* everything inside, so that
nothing changes while the layers are read; write files *through* the overlay, as any process inside
could, so that the program finds what somebody else wrote; and have the overlay forget what it had
looked up, since the kernel never looks again at a folder below of its own accord.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.fs.kernel import reserve
from filepact.fs.path_form import is_beneath
from filepact.values import dataclass
from filepact_run.kernel import mount, pin_link, set_mount
from filepact_run.overlay import kind_at

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from filepact_run.overlay import LayerMount

__all__ = [
    "NamespaceMounts",
    "NamespaceSettings",
    "go_on",
    "hold",
    "is_stopped",
    "put",
    "put_in_front",
    "release",
    "write_through",
]

# Of <linux/mount.h>.
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_AGAIN, _BIND, _BELOW, _PRIVATE = 32, 4096, 16384, 1 << 18

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_TEMPORARY: Final = {"/tmp": "tmp", "/var/tmp": "var-tmp"}  # noqa: S108 - what they stand for
_FOR_ALL: Final = (*_TEMPORARY.values(), "shm")
_HANDLE: Final = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE: Final = 1.0
"""Seconds within which all processes inside have to stand still."""
_NAP: Final = 0.0005
_STILL: Final = frozenset("TtZX")


def put(path: str, text: str) -> None:
    """Write a text into an existing file, such as one of the kernel's."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """The folders and mounts that a program in a namespace sees.

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


class NamespaceMounts:
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
        put("/proc/sys/user/max_user_namespaces", "0")
        self.at = "private mounts"
        mount("", "/", "", _PRIVATE | _BELOW)
        self._open_all()
        self._mount_temporary()
        for layer in plan.layers:
            self._mount_layer(layer)
        # One may lie in the other, either way.
        within = {one for one in plan.temporary if any(is_beneath(one, w) for w in plan.writable)}
        self._empty(frozenset(plan.temporary) - within)
        for path in plan.writable:
            if self._bind(path, path):
                self._write.append(path)
        self._empty(within)
        for path in plan.fixed:
            self._bind(path, path)
            if os.path.islink(path):
                pin_link(path)
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

    def _empty(self, paths: AbstractSet[str]) -> None:
        """Have folders of the program's own at some of the temporary places."""
        for number, path in enumerate(self._plan.temporary):
            if path in paths:
                self._bind(os.path.join(self._plan.private, f"t{number}"), path)
                self._write.append(path)

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
        if is_beneath(layer.root, "/dev"):
            self.at = f"{layer.root} lies in /dev, of which a program behind layers has its own"
            raise OSError(errno.EOPNOTSUPP, "")
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
        ours = (*_TEMPORARY, "/run", *self._plan.temporary)
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
                "devpts",
                "/dev/pts",
                "devpts",
                _NO_SETUID | _NO_PROGRAMS,
                "newinstance,ptmxmode=0666,mode=0620",
            )
        os.symlink("pts/ptmx", "/dev/ptmx")
        set_mount("/dev", _READ_ONLY)

    def forget(self) -> None:
        """Have the overlays look again at what nobody holds open."""
        for layer in self._plan.layers:
            with suppress(OSError):
                mount("filepact", layer.root, "overlay", _AGAIN | _NO_SETUID | _NO_DEVICES, "")


# -- moments of rest --------------------------------------------------------------------------


def hold() -> list[int] | None:
    """Stop every process of this namespace but the first one, which calls it.

    Whoever started a process is stopped before it, and goes on after it, so that no shell sees one
    of its jobs stopped.  What stands still already, for a shell or a debugger, is left alone.

    Returns:
        What was stopped, in that order; None where it was not done in time, and all goes on.
    """
    until = time.monotonic() + _PATIENCE
    stopped: list[int] = []
    known = {os.getpid()}
    while fresh := [one for one in _processes() if one not in known]:
        for process in fresh:
            known.add(process)
            states = _states(process)
            if not states or states <= _STILL:
                continue
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                stopped.append(process)
            while not _states(process) <= _STILL:
                if time.monotonic() > until:
                    release(stopped)
                    return None
                time.sleep(_NAP)
    return stopped


def release(stopped: list[int]) -> None:
    """Let go on what was stopped."""
    for process in reversed(stopped):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def is_stopped(program: int) -> bool:
    """Whether a program is stopped as shells stop jobs; the others of its group, to whom that was said too, come first.

    One of them that has not had its turn yet would read what is typed for the shell by then.
    """
    until = time.monotonic() + _PATIENCE
    while _states(program) == {"T"}:
        group = os.getpgid(program)
        if time.monotonic() > until or not any(_is_stopping(one, group) for one in _processes()):
            return True
        time.sleep(_NAP)
    return False


def _is_stopping(process: int, group: int) -> bool:
    """Whether a process of a group was told to stop, and has not done so yet with all of its threads."""
    states = _states(process)
    if "T" in states:
        return not states <= _STILL
    with suppress(OSError):
        if os.getpgid(process) == group:
            with open(f"/proc/{process}/status", "rb") as lines:
                waiting = next(line for line in lines if line.startswith(b"ShdPnd"))
            return bool(int(waiting.split()[1], 16) >> (signal.SIGTSTP - 1) & 1)
    return False


def go_on(program: int, *, front: bool) -> None:
    """Let a stopped program go on; a shell that has a group of its own gets the terminal where we have it."""
    with suppress(OSError):
        group = os.getpgid(program)
        if group and front:
            put_in_front(group)
        # 0 stands for the group that we are in ourselves, which is continued by its shell.
        os.kill(-group or program, signal.SIGCONT)


def put_in_front(group: int) -> None:
    """Give our terminal, if there is one, to a group of processes."""
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    with suppress(OSError):
        os.tcsetpgrp(0, group)
    signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _processes() -> list[int]:
    """The processes of this namespace, each after the one that started it."""
    above: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, IndexError):
                above[int(name)] = int(_stat(f"/proc/{name}/stat")[1])
    depth = {0: 0, 1: 0}

    def deep(process: int) -> int:
        if process not in depth:
            depth[process] = 0  # should it have become its own by a number used again
            depth[process] = deep(above.get(process, 0)) + 1
        return depth[process]

    return sorted(above, key=lambda one: (deep(one), one))


def _states(process: int) -> frozenset[str]:
    """The states of a process's threads; none of one that has ended."""
    found = set()
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError, IndexError):
                found.add(_stat(f"/proc/{process}/task/{thread}/stat")[0])
    except OSError:
        return frozenset()
    return frozenset(found)


def _stat(path: str) -> list[str]:
    """The state, the starter and so on: what stands behind the name, which may hold anything."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read().rpartition(")")[2].split()


def write_through(note: int) -> None:
    """Write files beneath overlays as a note says: what is there is written over in place.

    So whoever has a file open goes on with the same file.  What cannot be written is left; whoever asked looks.

    Args:
        note: A file of one line of JSON, a list of ``[root, path, kind, mode, bytes]``, and then of the
            bytes one after the other.  ``kind`` is ``file``, ``link``, ``folder`` or ``none``.
    """
    with os.fdopen(note, "rb") as stream:
        stream.seek(0)
        entries: list[tuple[str, str, str, int, int]] = json.loads(stream.readline())
        for root, path, kind, mode, size in entries:
            data = stream.read(size)
            with suppress(OSError):
                _write_one(root, path, kind, mode, data)


def _write_one(root: str, path: str, kind: str, mode: int, data: bytes) -> None:
    *above, name = path.split("/")
    folder = os.open(root, _FOLDER)
    try:
        for part in above:
            if kind != "none":
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        there = kind_at(folder, name)
        if there not in (None, kind) or (there == "link" and kind == "link"):
            _take_away(folder, name, there)
            there = None
        if kind == "folder":
            if there is None:
                os.mkdir(name, 0o755, dir_fd=folder)
            if mode:
                os.chmod(name, mode, dir_fd=folder)
        elif kind == "link":
            os.symlink(data, os.fsencode(name), dir_fd=folder)
        elif kind == "file":
            _write_file(folder, name, mode, data)
    finally:
        os.close(folder)


def _take_away(folder: int, name: str, kind: str | None) -> None:
    if kind == "folder":
        os.rmdir(name, dir_fd=folder)  # only an empty one: others have files of the program's
    else:
        os.unlink(name, dir_fd=folder)


def _write_file(folder: int, name: str, mode: int, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, mode, dir_fd=folder)
    try:
        if data and len(data) > os.fstat(descriptor).st_size:
            # Where there is no room, nothing is changed.
            reserve(descriptor, 0, len(data))
        at = 0
        while at < len(data):
            at += os.pwrite(descriptor, data[at:], at)
        os.ftruncate(descriptor, len(data))
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)

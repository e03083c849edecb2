"""The sandbox of a language server: it reads the roots and its toolchain, and what the rules let be read.

A language server reads whatever file a text names, and its messages tell what is in it.  So one that
nobody vouched for is confined before it starts: of all files it keeps the roots and the toolchain, to
read them, and a cache of its own; it has no network.  What the rules keep from agents within the roots
is refused when it is opened, by the name that it really has then, however it was spelt, linked or put
together.  The supervisor holds this object and answers; when it ends, nothing can be opened any more.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, NoReturn

from filepact.domain.policy import AccessRequest, Policy
from filepact.domain.protected import BUILT_IN_RULES
from filepact.fs.home_secrets import SecretIndex
from filepact.fs.sandbox import CHANGE, READ, RUN, USE, landlock_abi, restrict
from filepact.text.secrets import holds_private_key
from filepact.values import dataclass, replace
from filepact_supervisor.server_sandbox import ServerSandbox

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from filepact.domain.policy import Rule

__all__ = ["SandboxProcess", "ServerSandbox", "can_confine_servers"]

_HANDLE = getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store", "/snap"),
)
_SETTINGS: Final = (
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/ssl/openssl.cnf"),
    *("/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/version", "/proc/filesystems"),
    *("/proc/sys/vm", "/proc/sys/net/core/somaxconn", "/sys/devices/system/cpu"),
)
_ITS_OWN: Final = frozenset({"/proc/self/maps"})
"""What tells a process only of itself.  The .NET runtime looks there for its stack, and does not start without."""
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_BESIDE: Final = ("lib", "lib64", "libexec", "include", "pyvenv.cfg")
"""What belongs to a program that lies in a folder `bin`, beside that folder."""
_PACKAGES: Final = "node_modules"
_MOST_LINKS: Final = 40
_LARGEST: Final = 8 * 1024 * 1024
_FOLDERS_OF_ITS_OWN: Final = ("XDG_CACHE_HOME", "GOCACHE", "TMPDIR", "TEMP", "TMP")


def can_confine_servers() -> bool:
    """Whether the system has what the sandbox of a language server needs."""
    return bool(landlock_abi()) and _is_supported()


class SandboxProcess:
    """A language server in its sandbox, started and answered by this process.

    Args:
        sandbox: What it may reach.
        environment: All variables that it sees; those that name its caches are replaced.
    """

    def __init__(self, sandbox: ServerSandbox, environment: Mapping[str, str]) -> None:
        self._sandbox = sandbox
        self._environment = dict(environment)
        self._roots = [os.path.realpath(one) for one in sandbox.roots]
        self._policy = Policy(*(_for_every_agent(some) for some in sandbox.rules))
        self._suspicion = self._policy.suspicion("read")
        self._temporary, self._hold = "", -1
        self.listener = -1

    def start(self, command: Sequence[str]) -> int:
        """Start it; from then on `answer` has to be called when `listener` can be read.

        Returns:
            Its process id.

        Raises:
            OSError: It cannot be confined or started.
        """
        cache = self._make_folders()
        grants = list(self._grants(command, cache))
        import socket  # noqa: PLC0415 - only where a server is started

        ours, theirs = socket.socketpair()
        child = os.fork()
        if not child:
            ours.close()
            self._become(command, grants, theirs)
        theirs.close()
        with ours:
            _data, descriptors, _flags, _sender = socket.recv_fds(ours, 1, 1)
            if descriptors:
                (self.listener,) = descriptors
                os.set_inheritable(self.listener, False)
            failed = ours.recv(4)  # ends where the program has begun
        if failed or not descriptors:
            os.waitpid(child, 0)
            number = int.from_bytes(failed) or errno.EPERM
            raise OSError(number, os.strerror(number))
        return child

    def answer(self) -> None:
        """Let a file be opened, or refuse it."""
        try:
            request = _next_request(self.listener)
        except OSError:
            os.close(self.listener)
            self.listener = -1
            return
        if request is not None:
            refused = 0 if self._permits(request.path) else errno.EACCES
            _answer(self.listener, request.number, refused=refused)

    def close(self) -> None:
        """Remove its temporary files, once it has ended with all that it has started."""
        import shutil  # noqa: PLC0415 - rarely needed

        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
        if self._hold >= 0:
            os.close(self._hold)

    # -- starting -------------------------------------------------------------------------

    def _become(
        self, command: Sequence[str], grants: Iterable[tuple[str, int]], line: socket.socket
    ) -> NoReturn:
        """Confine this process, which has just been forked, and become the server."""
        try:
            opened = []
            for path, rights in grants:
                with suppress(OSError):
                    opened.append((os.open(path, _HANDLE), rights))
            restrict(opened)
            words, environment = list(command), self._environment
            listener = _filter_calls()
            import socket  # noqa: PLC0415 - loaded by now

            socket.send_fds(line, [b"!"], [listener])
            os.close(listener)
            os.execve(words[0], words, environment)  # noqa: S606 - as agreed
        except OSError as error:
            line.send((error.errno or errno.EPERM).to_bytes(4))
        finally:
            os._exit(1)

    def _make_folders(self) -> str:
        """Make the folders that it may write to, and name them in its environment; the cache.

        Raises:
            OSError: They cannot be made.
        """
        home = self._environment.get("HOME") or "/nonexistent"
        caches = self._environment.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
        own = os.path.join(caches, "filepact", "servers", self._sandbox.name)
        cache, temporary = os.path.join(own, "cache"), os.path.join(own, "temporary")
        for folder in (cache, temporary):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        for name in os.listdir(temporary):
            _remove_unheld(os.path.join(temporary, name))
        self._temporary = os.path.join(temporary, str(os.getpid()))
        os.makedirs(self._temporary, mode=0o700, exist_ok=True)
        self._hold = os.open(self._temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for variable in _FOLDERS_OF_ITS_OWN:
            self._environment.pop(variable, None)
        self._environment |= {"XDG_CACHE_HOME": cache, "TMPDIR": self._temporary}
        return cache

    def _grants(self, command: Sequence[str], cache: str) -> Iterator[tuple[str, int]]:
        """The folders that the server may use, each with its rights."""
        yield from ((path, READ) for path in (*self._roots, *_SETTINGS, *_ITS_OWN))
        yield from ((path, RUN) for path in _SYSTEM)
        yield from ((path, USE) for path in _DEVICES)
        for path in self._sandbox.toolchain:
            # A program stands for its folder; where it is only linked, its files are elsewhere.
            real = os.path.realpath(path)
            yield os.path.dirname(real) if os.path.isfile(real) else real, RUN
        yield from ((path, CHANGE) for path in (cache, self._temporary))
        found: set[str] = set()
        # Of an interpreter's arguments, the script.
        files = [word for word in command[1:] if word.startswith("/") and os.path.isfile(word)]
        for program in (command[0], *files, *self._sandbox.programs):
            found |= self._belongs_to(program)
        found |= {one for path in list(found) for one in _linked(path)}
        yield from ((path, RUN) for path in found)
        for root in self._roots:
            # Packages that lie above a root, as in a folder of several projects.
            while (root := os.path.dirname(root)) != "/":
                yield os.path.join(root, _PACKAGES), READ

    def _belongs_to(self, program: str, depth: int = 0) -> set[str]:
        """The files and folders of a program: each link on the way to it, its libraries, its interpreter."""
        found: set[str] = set()
        here = program
        for _ in range(_MOST_LINKS):
            found.add(here)
            folder = os.path.dirname(here)
            if os.path.basename(folder) == "bin":
                above = os.path.dirname(folder)
                found |= {folder, *(os.path.join(above, name) for name in _BESIDE)}
            head, packages, _rest = here.partition(f"/{_PACKAGES}/")
            if packages:
                found.add(f"{head}/{_PACKAGES}")
            try:
                here = os.path.normpath(os.path.join(folder, os.readlink(here)))
            except OSError:
                break
        real = os.path.realpath(program)
        if real not in found:  # by links of folders on the way
            found |= self._belongs_to(real, depth + 1)
        if depth < 4 and (interpreter := self._interpreter(real)):
            found |= self._belongs_to(interpreter, depth + 1)
        return found

    def _interpreter(self, program: str) -> str:
        """The absolute path of the program that runs a script; empty for no script."""
        import shutil  # noqa: PLC0415 - rarely needed

        try:
            with open(program, "rb") as script:
                first = os.fsdecode(script.readline(512)).strip()
        except OSError:
            return ""
        words = first[2:].split() if first.startswith("#!") else []
        if words and os.path.basename(words[0]) == "env":
            words = [shutil.which(words[-1], path=self._environment.get("PATH")) or ""]
        return words[0] if words else ""

    # -- judging --------------------------------------------------------------------------

    def _permits(self, path: str) -> bool:
        """Whether the rules let a file be read; what lies outside the roots is for the kernel."""
        if path in _ITS_OWN:
            return True
        real = _resolved(path)
        if real is None:
            return False
        for root in self._roots:
            if real == root or not real.startswith(f"{root.rstrip('/')}/"):
                continue
            inside = real[len(root.rstrip("/")) + 1 :]
            if any(map(self._suspicion, inside.split("/"))):
                request = AccessRequest(root, inside, "read")
                if self._policy.decide(request).verdict != "allow":
                    return False
            if self._hides(real):
                return False
        return True

    def _hides(self, path: str) -> bool:
        """Whether a file holds a private key, or is a secret of the person's under another name."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return False
            if status.st_nlink > 1 and self._secrets.holds(status.st_dev, status.st_ino):
                return True
            return self._sandbox.content and holds_private_key(os.pread(descriptor, _LARGEST, 0))
        except OSError:
            return True
        finally:
            os.close(descriptor)

    @cached_property
    def _secrets(self) -> SecretIndex:
        policy, home = Policy(BUILT_IN_RULES), self._environment.get("HOME")

        def is_secret(path: str) -> bool:
            return policy.decide(AccessRequest(home or "/", path, "read")).verdict == "deny"

        return SecretIndex(home, is_secret)


def _linked(folder: str) -> Iterator[str]:
    """The folders that a Python's libraries name beside their own: packages that somebody works on."""
    if os.path.basename(folder) != "lib":
        return
    import glob  # noqa: PLC0415 - only where a server is started

    for place in glob.glob(f"{glob.escape(folder)}/python3*/site-packages/*.pth"):
        with suppress(OSError, UnicodeDecodeError), open(place, encoding="utf-8") as lines:
            yield from (line.strip() for line in lines if line.startswith("/"))


def _for_every_agent(rules: Iterable[Rule]) -> list[Rule]:
    """Rules as they count where nobody knows which agent asks: what is kept from one is kept from all."""
    return [
        replace(one, agents=("*",))
        for one in rules
        if one.verdict != "allow" or one.agents == ("*",)
    ]


def _resolved(path: str) -> str | None:
    """Where a path leads once every link is resolved; it need not exist.

    Returns:
        None where that depends on who asks, or cannot be found out.
    """
    left, here, links = path.split("/")[::-1], "", 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        if here == "/proc" and (part.isdigit() or part in ("self", "thread-self")):
            return None
        here = f"{here}/{part}"
        try:
            target = os.readlink(here)
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        here = "" if target.startswith("/") else here.rpartition("/")[0]
        left += target.split("/")[::-1]
    return here or "/"


def _remove_unheld(folder: str) -> None:
    """Remove temporary files of a server whose supervisor was killed."""
    import shutil  # noqa: PLC0415 - rarely needed

    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


# -- seccomp ----------------------------------------------------------------------------------
#
# System calls that the kernel refuses, and openings of files that another process judges.  Numbers are
# those of ``<linux/seccomp.h>`` and of the two architectures.

_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_ALLOW, _NOTIFY, _REFUSE, _KILL = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000

# Statements of the filter: load a word, compare it, end.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _END = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in what a filter is given

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_GO_ON = 1
_WORKING_FOLDER = -100  # AT_FDCWD
_LONGEST_PATH = 4096
_X32 = 0x40000000  # numbers of another way to call the same kernel begin here


@dataclass(frozen=True, slots=True)
class _Calls:
    """An architecture's numbers.

    Attributes:
        architecture: Its own.
        seccomp: The call by which a filter is set.
        opens: Calls that open a file, each with the index of the argument that is its path; before
            that comes the folder's descriptor, unless the path is the first.
        refused: Calls that are refused: other ways to a file, sockets, and other processes' memory.
    """

    architecture: int
    seccomp: int
    opens: dict[int, int]
    refused: tuple[int, ...]


# creat, socket, truncate, io_uring_setup, open_by_handle_at, ptrace, process_vm_readv and _writev,
# mount, fsopen, open_tree, move_mount, unshare, setns, chroot: whoever has rights of its own namespace
# could put a file under another name.
_BY_MACHINE: Final = {
    "x86_64": _Calls(
        0xC000003E,
        317,
        {2: 0, 257: 1, 437: 1},
        (85, 41, 76, 425, 304, 101, 310, 311, 165, 430, 428, 429, 272, 308, 161),
    ),
    "aarch64": _Calls(
        0xC00000B7,
        277,
        {56: 1, 437: 1},
        (198, 45, 425, 265, 117, 270, 271, 40, 430, 428, 429, 97, 268, 51),
    ),
}

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    """A file that a filtered process is about to open, and waits to.

    Attributes:
        number: Its number, for the answer.
        path: Absolute, and as the process has it: nothing in it is resolved.
    """

    number: int
    path: str


def _is_supported() -> bool:
    """Whether the kernel puts calls to another process, as far as it says so."""
    calls = _BY_MACHINE.get(os.uname().machine)
    if calls is None or _libc is None:
        return False
    asked = ctypes.c_uint32(_NOTIFY)
    available: int = _libc.syscall(calls.seccomp, _GET_ACTION_AVAILABLE, 0, ctypes.byref(asked))
    return available == 0


def _filter_calls() -> int:
    """Filter the calls of this process and of all that it starts, for good.

    No file can be opened any more unless somebody answers at the descriptor; when that is closed
    everywhere, none can at all.

    Returns:
        The descriptor, for `_next_request` and `_answer`.

    Raises:
        OSError: The system refused; ``EBUSY`` where another program filters this one likewise.
    """
    calls = _BY_MACHINE.get(os.uname().machine)
    if calls is None or _libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    ends = dict.fromkeys(calls.opens, _NOTIFY)
    ends |= dict.fromkeys(calls.refused, _REFUSE | errno.EACCES)
    statements = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, calls.architecture),
        (_END, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32),
        (_END, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    for number, end in ends.items():
        statements += [(_IF_EQUAL, 0, 1, number), (_END, 0, 0, end)]
    statements.append((_END, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in statements))
    program = ctypes.create_string_buffer(
        struct.pack("@HP", len(statements), ctypes.addressof(code))
    )
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener: int = _libc.syscall(calls.seccomp, _SET_MODE_FILTER, flags, program)
        if listener >= 0:
            return listener
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _next_request(listener: int) -> _OpenRequest | None:
    """The next file that somebody is about to open.

    Returns:
        None where there is none after all: who asked has ended, or its request cannot be read and
        was refused.

    Raises:
        OSError: Nobody is left who could ask.
    """
    data = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, data)
    except InterruptedError:
        return None
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    number, process, _flags, call, _architecture, _pointer, *arguments = _REQUEST.unpack(data)
    at = _BY_MACHINE[os.uname().machine].opens[call]
    try:
        path = _text_at(process, arguments[at])
        if not path.startswith("/"):
            folder = ctypes.c_int32(arguments[0] & 0xFFFFFFFF).value if at else _WORKING_FOLDER
            name = "cwd" if folder == _WORKING_FOLDER else f"fd/{folder}"
            path = f"{os.readlink(f'/proc/{process}/{name}')}/{path}"
        # What was read is about this process only if it still waits.
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", number))
    except OSError:
        _answer(listener, number, refused=errno.EACCES)
        return None
    return _OpenRequest(number, path)


def _answer(listener: int, number: int, *, refused: int = 0) -> None:
    """Let a file be opened, as far as the kernel lets it, or refuse it with an error's number."""
    data = bytearray(_RESPONSE.pack(number, 0, -refused, 0 if refused else _GO_ON))
    with suppress(OSError):  # who asked has ended, or was interrupted and asks again
        fcntl.ioctl(listener, _SEND, data)


def _text_at(process: int, address: int) -> str:
    """The text, up to a zero byte, that is in another process's memory.

    Raises:
        OSError: It cannot be read, or has no end.
    """
    memory = os.open(f"/proc/{process}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(memory, _LONGEST_PATH, address)
    finally:
        os.close(memory)
    text, end, _rest = data.partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return os.fsdecode(text)

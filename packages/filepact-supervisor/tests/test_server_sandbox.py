"""What a program reaches in the sandbox of language servers: real programs, real files, a real kernel."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.policy import READS, Rule
from filepact.domain.protected import BUILT_IN_RULES
from filepact_supervisor.sandbox_process import (
    _BY_MACHINE,
    SandboxProcess,
    ServerSandbox,
    can_confine_servers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not can_confine_servers(), reason="this system lacks what it takes")

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
BEGINNING = """\
import json, os, socket, sys
def tried(act, *arguments):
    try:
        found = act(*arguments)
        return found if isinstance(found, str) else "done"
    except OSError as error:
        return type(error).__name__
def read(path, folder=None):
    number = os.open(path, os.O_RDONLY, dir_fd=folder)
    try:
        return os.read(number, 100).decode()
    finally:
        os.close(number)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("home/.ssh", "root/src", "root/.aws", "outside"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in {
        "home/.ssh/id_rsa": "SECRET",
        "root/.env": "SECRET",
        "root/.aws/credentials": "SECRET",
        "root/src/a.txt": "open",
        "root/src/notes.txt": KEY,
        "root/mine.txt": "SECRET",
        "outside/a.txt": "SECRET",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "root/src/link").symlink_to("../.env")
    (tmp_path / "root/src/hard").hardlink_to(tmp_path / "home/.ssh/id_rsa")
    return tmp_path


def run(home: Path, script: str, beside: Callable[[], Any] | None = None, **more: Any) -> Any:
    """What a script prints that runs in the sandbox; `beside` is done when it asks for it."""
    sandbox = ServerSandbox("test", (str(home / "root"),), (), **more)
    environment = {"HOME": str(home / "home"), "PATH": "/usr/bin:/bin"}
    confined = SandboxProcess(ServerSandbox.from_json(sandbox.to_json()), environment)
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    beginning = f"{BEGINNING}WRITER = {writer}\nos.chdir({str(home / 'root')!r})\n"
    end = "\nos.write(WRITER, json.dumps(said).encode())\n"
    words = [sys.executable, "-I", "-S", "-c", beginning + script + end]
    child = confined.start(words)
    os.close(writer)
    found = b""
    try:
        while ready := select.select([reader, *_open(confined)], [], [], 30)[0]:
            if reader not in ready:
                confined.answer()
            elif data := os.read(reader, 65_536):
                found += data
                if data == b"beside":
                    assert beside is not None
                    beside()
                    found = b""
                    os.kill(child, 18)
            else:
                break
    finally:
        os.close(reader)
        os.waitpid(child, 0)
        confined.close()
    return json.loads(found)


def _open(confined: SandboxProcess) -> list[int]:
    return [confined.listener] if confined.listener >= 0 else []


def test_a_server_reads_its_roots_and_nothing_outside(home: Path) -> None:
    said = run(
        home,
        "import glob\n"
        "said = [tried(read, 'src/a.txt'), tried(os.listdir, '.'), tried(read, '../outside/a.txt'),"
        " tried(read, '/etc/passwd'), tried(read, '/proc/1/environ'), tried(read, '/dev/null'),"
        " tried(os.listdir, os.environ['HOME'])]",
    )
    assert said == ["open", "done", *["PermissionError"] * 3, "", "PermissionError"]


WAYS = [
    ".env",
    "src/../.env",
    "./src/./link",
    ".aws/credentials",
    "/proc/self/cwd/.env",
    "/usr/../proc/self/cwd/.env",
    "/proc/thread-self/cwd/.env",
    "/dev/fd/../cwd/.env",
    "src/notes.txt",
    "src/hard",
]


def test_a_process_sees_where_its_own_memory_lies_and_nothing_else_of_a_process(home: Path) -> None:
    script = (
        "said = [tried(read, '/proc/self/maps') > '', tried(read, '/proc/self/environ'),"
        " tried(read, '/proc/self/../self/maps'), tried(read, f'/proc/{os.getpid()}/maps'),"
        " tried(read, f'/proc/{os.getppid()}/maps')]\n"
    )
    assert run(home, script) == [True, *["PermissionError"] * 4]


def test_a_process_cannot_take_another_folder_for_the_whole_system(home: Path) -> None:
    script = "said = [tried(os.chroot, 'src'), tried(read, 'src/a.txt')]"
    assert run(home, script) == ["PermissionError", "open"]


# Of <asm/unistd_64.h> and <asm-generic/unistd.h>, in the order: calls that open a file, and calls
# that are refused.
_NUMBERS = {
    "x86_64": (
        {"open": 2, "openat": 257, "openat2": 437},
        {
            "creat": 85,
            "socket": 41,
            "truncate": 76,
            "io_uring_setup": 425,
            "open_by_handle_at": 304,
            "ptrace": 101,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "mount": 165,
            "fsopen": 430,
            "open_tree": 428,
            "move_mount": 429,
            "unshare": 272,
            "setns": 308,
            "chroot": 161,
        },
    ),
    "aarch64": (
        {"openat": 56, "openat2": 437},
        {
            "socket": 198,
            "truncate": 45,
            "io_uring_setup": 425,
            "open_by_handle_at": 265,
            "ptrace": 117,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "mount": 40,
            "fsopen": 430,
            "open_tree": 428,
            "move_mount": 429,
            "unshare": 97,
            "setns": 268,
            "chroot": 51,
        },
    ),
}


@pytest.mark.parametrize("machine", _NUMBERS)
def test_each_architecture_has_the_numbers_that_its_kernel_has(machine: str) -> None:
    """Of one that is not this machine's, nothing more than the table can be looked at."""
    calls = _BY_MACHINE[machine]
    opens, refused = _NUMBERS[machine]
    assert set(calls.opens) == set(opens.values())
    # What is made relative to a folder has the path behind that folder.
    assert {number for number, at in calls.opens.items() if not at} == {opens.get("open")} - {None}
    assert set(calls.refused) == set(refused.values())
    assert not set(calls.opens) & set(calls.refused)
    assert (calls.architecture, calls.seccomp) == {
        "x86_64": (0xC000003E, 317),
        "aarch64": (0xC00000B7, 277),
    }[machine]


def test_every_architecture_refuses_the_same_calls_but_for_one_that_only_the_older_has() -> None:
    """A number that was forgotten in one table shows in the other."""
    names = {machine: set(refused) for machine, (_opens, refused) in _NUMBERS.items()}
    assert names["x86_64"] - names["aarch64"] == {"creat"}
    assert names["aarch64"] <= names["x86_64"]


def test_what_the_rules_protect_is_not_read_however_it_is_spelt(home: Path) -> None:
    script = (
        f"said = [tried(read, one) for one in {WAYS!r} + [os.path.abspath('.env')]]\n"
        "src = os.open('src', os.O_RDONLY)\n"
        "said += [tried(read, '../.env', src), tried(os.listdir, '.aws')]\n"
        "said += [tried(os.open, '.env', os.O_PATH), tried(os.open, 'src/link', os.O_PATH)]\n"
    )
    assert run(home, script) == ["PermissionError"] * (len(WAYS) + 5)


def test_a_file_counts_by_the_name_that_it_has_when_it_is_opened(home: Path) -> None:
    def come() -> None:
        (home / "root" / "src" / ".env").write_text("SECRET")
        os.replace(home / "root" / "src" / "a.txt", home / "root" / "src" / "key.pem")

    script = (
        "import signal\n"
        "said = [tried(read, 'src/.env'), tried(read, 'src/a.txt')]\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])\n"
        "os.write(WRITER, b'beside')\n"
        "signal.sigwait([signal.SIGCONT])\n"
        "said += [tried(read, 'src/.env'), tried(read, 'src/key.pem')]\n"
    )
    # Whether a file of such a name is there does not show either.
    assert run(home, script, come) == ["PermissionError", "open", *["PermissionError"] * 2]


def test_a_persons_rules_count_and_those_that_spare_a_name(home: Path) -> None:
    mine = Rule("mine", "deny", ("mine.txt",), "it is mine", READS, layer="person")
    agents = Rule("one", "deny", ("a.txt",), "not for one", READS, agents=("one",), layer="person")
    spared = Rule(
        "fine", "allow", (".env",), "harmless", READS, lifts=frozenset({"project secrets"})
    )
    spared = Rule(**{**{n: getattr(spared, n) for n in spared.__slots__}, "layer": "person"})
    rules = ((*BUILT_IN_RULES, mine, agents, spared), ())
    script = "said = [tried(read, one) for one in ('mine.txt', 'src/a.txt', '.env')]"
    assert run(home, script, rules=rules) == ["PermissionError", "PermissionError", "SECRET"]


def test_a_server_writes_only_to_its_own_cache_and_what_is_temporary_goes(home: Path) -> None:
    script = (
        "def write(path): os.close(os.open(path, os.O_WRONLY | os.O_CREAT)); return path\n"
        "places = ['new', 'src/a.txt', os.environ['HOME'] + '/new', '/tmp/filepact-new',"
        " os.environ['TMPDIR'] + '/new', os.environ['XDG_CACHE_HOME'] + '/new']\n"
        "said = [tried(write, one) for one in places] + [tried(os.truncate, 'src/a.txt', 1),"
        " tried(os.unlink, 'src/a.txt'), tried(os.rename, 'src/a.txt', 'b'), tried(os.mkdir, 'd')]"
    )
    *_, temporary, cached, cut, gone, moved, made = said = run(home, script)
    assert said[:4] == ["PermissionError"] * 4
    assert (cut, gone, moved, made) == ("PermissionError",) * 4
    assert not Path(temporary).exists()
    assert Path(cached).is_relative_to(home / "home" / ".cache" / "filepact" / "servers" / "test")
    assert (home / "root" / "src" / "a.txt").read_text() == "open"


def test_a_server_has_no_network(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        script = (
            "kinds = [(socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET6, socket.SOCK_STREAM),"
            " (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM),"
            " (socket.AF_NETLINK, socket.SOCK_RAW)]\n"
            "said = [tried(socket.socket, *one) for one in kinds]\n"
            f"said += [tried(socket.create_connection, ('127.0.0.1', {port}))]\n"
            "said += [tried(socket.socketpair)]\n"
        )
        assert run(home, script) == [*["PermissionError"] * 6, "done"]
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_server_runs_its_toolchain_and_nothing_that_lies_in_a_root(home: Path) -> None:
    program = home / "root" / "program"
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)
    script = (
        "import subprocess\n"
        "def ran(*words): return subprocess.run(words, capture_output=True, text=True).stdout\n"
        "said = [tried(ran, '/bin/echo', 'a'), tried(ran, './program'), tried(ran, '/bin/cat', '.env')]"
    )
    assert run(home, script) == ["a\n", "PermissionError", ""]


def test_nothing_is_opened_once_nobody_answers(home: Path) -> None:
    sandbox = ServerSandbox("test", (str(home / "root"),), ())
    confined = SandboxProcess(sandbox, {"HOME": str(home / "home"), "PATH": "/usr/bin:/bin"})
    child = confined.start(["/bin/cat", str(home / "root" / "src" / "a.txt")])
    os.close(confined.listener)
    _child, status = os.waitpid(child, 0)
    confined.close()
    assert status


def test_a_program_that_is_not_there_is_no_server(home: Path) -> None:
    sandbox = ServerSandbox("test", (str(home / "root"),), ())
    confined = SandboxProcess(sandbox, {"HOME": str(home / "home")})
    with pytest.raises(FileNotFoundError):
        confined.start([str(home / "nothing")])
    confined.close()
    assert not list((home / "home" / ".cache" / "filepact" / "servers" / "test").glob("temp*/*"))

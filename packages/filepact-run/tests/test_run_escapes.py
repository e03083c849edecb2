"""Ways out of `filepact run`, tried from inside: nothing outside the roots changes, no secret is read.

Each is a program in Python that prints ``ESCAPED`` where it got what it was after.  What lies outside
is compared afterwards as well, whatever was printed.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from run_place import AS_NOBODY, Place
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.slow,
]

PRELUDE = """
import ctypes, errno, os, signal, socket, stat, struct, subprocess, sys
O, H, S, R = {outside!r}, {home!r}, {state!r}, {root!r}
L = ctypes.CDLL(None, use_errno=True)
def put(path, text="PWNED"):
    with open(path, "w") as f: f.write(text)
    print("ESCAPED")
def read(path):
    if "SECRET" in open(path, errors="replace").read(): print("ESCAPED")
def call(*words): return L.syscall(*words) >= 0
def mount(source, target, kind=None, flags=0, data=None):
    e = [x if x is None else x.encode() for x in (source, target, kind, data)]
    if L.mount(e[0], e[1], e[2], flags, e[3]) == 0: print("ESCAPED"); return True
def run(*words): return subprocess.run(words, capture_output=True, text=True)
"""

ESCAPES = {
    # writing elsewhere
    "write outside": "put(O + '/new')",
    "write over a file outside": "put(O + '/kept')",
    "append outside": "open(O + '/kept', 'a').write('PWNED')",
    "truncate outside": "os.truncate(O + '/kept', 0)",
    "chmod outside": "os.chmod(O + '/kept', 0o777)",
    "chown outside": "os.chown(O + '/kept', os.getuid(), os.getgid()); os.utime(O + '/kept', (1, 1))",
    "utime outside": "os.utime(O + '/kept', (1, 1))",
    "xattr outside": "os.setxattr(O + '/kept', 'user.x', b'1')",
    "remove outside": "os.unlink(O + '/kept')",
    "rename out": "open('mine', 'w').write('PWNED'); os.rename('mine', O + '/new')",
    "rename in": "os.rename(O + '/kept', 'stolen')",
    "link out": "open('mine', 'w').write('PWNED'); os.link('mine', O + '/new')",
    "link in and write": "os.link(O + '/kept', 'alias'); put('alias')",
    "symbolic link and write": "os.symlink(O + '/kept', 'way'); put('way')",
    "symbolic link to a folder": "os.symlink(O, 'way'); put('way/new')",
    "dots": "put('../outside/new')",
    "dots through a folder of the root": "os.makedirs('a/b', exist_ok=True); put('a/b/../../../outside/new')",
    "descriptor of the folder above": "fd = os.open('..', os.O_RDONLY); os.open('outside/new', os.O_CREAT | os.O_WRONLY, dir_fd=fd)",
    "folder of the process": "put('/proc/self/cwd/../outside/new')",
    "root of the process": "put('/proc/self/root' + O + '/new')",
    "root of the first process": "put('/proc/1/root' + O + '/new')",
    "descriptors of the first process": "[put(f'/proc/1/fd/{n}') for n in range(3, 40)]",
    "folder of the first process": "put('/proc/1/cwd/../outside/new')",
    "memory of the first process": "open('/proc/1/mem', 'r+b').read(1); print('ESCAPED')",
    "home": "put(H + '/.profile')",
    "home's bin": "os.makedirs(H + '/bin'); put(H + '/bin/ls')",
    "system": "put('/etc/filepact-escaped')",
    "crontab": "put('/var/spool/cron/filepact'); put('/etc/cron.d/filepact')",
    "profile of all": "put('/etc/profile.d/filepact.sh')",
    "usr": "put('/usr/local/bin/filepact-escaped')",
    "opt": "put('/opt/filepact-escaped')",
    "temporary folder of all": "open('/tmp/filepact-escaped', 'w').write('x')",
    "shared memory": "open('/dev/shm/filepact-escaped', 'w').write('x')",
    "other shared memory": "fd = os.open('/proc/self/root/dev/shm/../../tmp/filepact-escaped', os.O_CREAT | os.O_WRONLY)",
    "a root that is renamed": "os.rename(R, R + '2')",
    "a root that is removed": "os.rmdir(R)",
    "a folder in the root's place": "os.rename('.', '../outside/root')",
    # the state folder and the layer
    "journal": "put(S + '/journal.db')",
    "journal's folder": "print('ESCAPED' if os.listdir(S) else '')",
    "layer": "[put(p) for p in __import__('glob').glob(S + '/runs/*/0/upper/x')]",
    "marks of the overlay": "os.makedirs('o', exist_ok=True); os.setxattr('o', 'user.overlay.redirect', b'/etc'); print(os.listdir('o'))",
    "trusted marks": "os.setxattr('.', 'trusted.overlay.redirect', b'/etc'); print('ESCAPED')",
    # reading secrets
    "secret of the root": "read('.env')",
    "secret by a link": "os.symlink('.env', 'e'); read('e')",
    "secret by a hard link": "os.link('.env', 'e'); read('e')",
    "secret by rename": "os.rename('.env', 'e'); read('e')",
    "secret of home": "read(H + '/.ssh/id_ed25519')",
    "secret of home by dots": "read(H + '/.ssh/../.ssh/id_ed25519')",
    "secret by the first process": "read('/proc/1/root' + H + '/.ssh/id_ed25519')",
    "remove what hides": "os.unlink('.env'); read('.env')",
    "secret by handle": "print('ESCAPED' if call(304, -100, ctypes.create_string_buffer(64), 0) else '')",
    "accounts": "print('ESCAPED' if open('/etc/shadow').read() else '')",
    # mounts and namespaces
    "unmount the root": "print('ESCAPED' if L.umount2(R.encode(), 0) == 0 else '')",
    "unmount lazily": "print('ESCAPED' if L.umount2(R.encode(), 2) == 0 else '')",
    "unmount what hides": "print('ESCAPED' if L.umount2((R + '/.env').encode(), 2) == 0 else ''); read('.env')",
    "unmount temporary": "print('ESCAPED' if L.umount2(b'/tmp', 2) == 0 else '')",
    "unmount proc": "print('ESCAPED' if L.umount2(b'/proc', 2) == 0 else '')",
    "mount memory": "mount('x', R, 'tmpfs')",
    "bind": "os.makedirs('m', exist_ok=True); mount('/etc', R + '/m', None, 4096)",
    "make writable": "mount('x', '/', None, 32 | 4096) and put(O + '/new')",
    "move a mount": "mount(R, '/mnt', None, 8192)",
    "overlay once more": "mount('x', R, 'overlay', 0, 'lowerdir=/etc')",
    "proc once more": "mount('proc', '/mnt', 'proc')",
    "new mount calls": "print('ESCAPED' if call(428, -100, b'/etc', 1) else '')",
    "attributes of a mount": "print('ESCAPED' if call(442, -100, b'/', 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32) else '')",
    "fsopen": "print('ESCAPED' if call(430, b'tmpfs', 0) else '')",
    "change the root": "os.chroot(O); print('ESCAPED')",
    "pivot": "print('ESCAPED' if call(155, b'/', b'/') else '')",
    "user namespace": "print('ESCAPED' if L.unshare(0x10000000) == 0 else '')",
    "user and mount namespace": "print('ESCAPED' if L.unshare(0x10020000) == 0 else '')",
    "mount namespace": "print('ESCAPED' if L.unshare(0x20000) == 0 else '')",
    "more namespaces again": "put('/proc/sys/user/max_user_namespaces', '100')",
    "join the first process": "fd = os.open('/proc/1/ns/mnt', os.O_RDONLY); print('ESCAPED' if L.setns(fd, 0) == 0 else '')",
    "clone": "print('ESCAPED' if run('unshare', '-Urm', 'true').returncode == 0 else '')",
    # devices, the kernel, other processes
    "block device": "os.mknod('disk', stat.S_IFBLK | 0o666, os.makedev(8, 0)); print('ESCAPED')",
    "character device": "os.mknod('mem', stat.S_IFCHR | 0o666, os.makedev(1, 1)); open('mem', 'rb').read(1); print('ESCAPED')",
    "whiteout by hand": "os.mknod('w', stat.S_IFCHR | 0o666, 0); print(os.listdir('.'))",
    "devices of the machine": "print('ESCAPED' if [n for n in os.listdir('/dev') if n[:2] in ('sd', 'vd', 'nv', 'me', 'km')] else '')",
    "core pattern": "put('/proc/sys/kernel/core_pattern', '|/bin/false')",
    "hotplug": "put('/sys/kernel/uevent_helper', '/bin/false')",
    "sysrq": "put('/proc/sysrq-trigger', 'h')",
    "modules": "print('ESCAPED' if call(175, None, 0, b'') else '')",
    "settings of the kernel": "put('/proc/sys/vm/swappiness', '60')",
    "control groups": "[put(f'/sys/fs/cgroup/{n}/release_agent', '/bin/false') for n in ('memory', 'cpu', 'pids')]",
    "signal outside": "os.kill({pid}, 0); print('ESCAPED')",
    "signal all": "os.kill(-1, signal.SIGCONT); print()",
    "kill the first process": "os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGTERM); os.kill(1, signal.SIGINT)",
    "stop the first process": "os.kill(1, signal.SIGSTOP)",
    "trace the first process": "print('ESCAPED' if L.ptrace(16, 1, 0, 0) == 0 else '')",
    "processes outside": "print('ESCAPED' if os.path.exists('/proc/{pid}') and {pid} > 500 else '')",
    "type for the person": "import fcntl, termios; fcntl.ioctl(0, 0x5412, b'x'); print('ESCAPED')",
    "keys of the person": "print('ESCAPED' if call(250, 0, -3, 0) else '')",
    "keys in proc": "L.syscall(248, b'user', b'x', b'y', 1, -3) > 0 and print('ESCAPED')",
    "program of an administrator": "os.path.exists('/usr/bin/su') and print('ESCAPED' if run('sudo', '-n', 'true').returncode == 0 else '')",
    "privileges again": "print('ESCAPED' if L.prctl(39, 0, 0, 0, 0) == 0 else '')",
    "capabilities again": "print('ESCAPED' if L.prctl(47, 2, 21, 0, 0) == 0 else '')",
    "bus of the system": "s = socket.socket(socket.AF_UNIX); s.connect('/run/dbus/system_bus_socket'); print('ESCAPED')",
    "Docker": "s = socket.socket(socket.AF_UNIX); s.connect('/var/run/docker.sock'); print('ESCAPED')",
    "a socket outside": "s = socket.socket(socket.AF_UNIX); s.connect('/tmp/filepact-listens'); print('ESCAPED')",
    "an abstract socket outside": "s = socket.socket(socket.AF_UNIX); s.connect('\\0filepact-{pid}'); print('ESCAPED')",
    "a descriptor that was left open": "[print('ESCAPED') for n in range(3, 100) if os.path.exists(f'/proc/self/fd/{n}') and os.path.isdir(f'/proc/self/fd/{n}')]",
}

assert len(ESCAPES) >= 60
TOGETHER = often(8, 1)
"""So many are tried behind one start of the program."""


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that is no temporary one: those are the program's own, and nothing of ours is in them."""
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    above = next(one for one in (Path("/srv"), home) if os.access(one, os.W_OK))
    with tempfile.TemporaryDirectory(prefix="filepact-", dir=above) as folder:
        yield Path(folder)


def outside_of(place: Place) -> Path:
    folder = place.root.parent / "outside"
    folder.mkdir(exist_ok=True)
    (folder / "kept").write_text("kept")
    place.file(".env", "SECRET")
    (place.home / ".ssh").mkdir(exist_ok=True)
    (place.home / ".ssh" / "id_ed25519").write_text("SECRET")
    return folder


def program_of(place: Place, name: str) -> str:
    values = {
        "outside": str(place.root.parent / "outside"),
        "home": str(place.home),
        "state": place.environment["FILEPACT_STATE_DIR"],
        "root": str(place.root),
    }
    code = ESCAPES[name].replace("{pid}", str(os.getpid()))
    return f"{PRELUDE.format(**values)}\n{code}\n"


def seen(place: Place) -> dict[str, object]:
    """Everything outside that an escape is after."""
    base = place.root.parent
    found: dict[str, object] = {
        str(path.relative_to(base)): (
            os.lstat(path).st_mode,
            os.lstat(path).st_mtime_ns if path.is_file() else 0,
            path.read_bytes() if path.is_file() else b"",
        )
        for folder in (base / "outside", place.home)
        for path in sorted(folder.rglob("*"))
    }
    found["secret"] = (place.root / ".env").read_bytes()
    found["strays"] = [
        path
        for path in (
            *("/tmp/filepact-escaped", "/dev/shm/filepact-escaped", "/etc/filepact-escaped"),
            *("/usr/local/bin/filepact-escaped", "/opt/filepact-escaped"),
            *("/etc/profile.d/filepact.sh", "/etc/cron.d/filepact", "/var/spool/cron/filepact"),
        )
        if os.path.lexists(path)
    ]
    return found


def in_turn(place: Place, names: Iterable[str]) -> str:
    """A program that tries some ways, each in a process of its own, and says which it has tried."""
    return (
        "import subprocess, sys\n"
        f"for name, code in {[(name, program_of(place, name)) for name in names]!r}:\n"
        "    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "    print(name, ':', done.stdout)\n"
    )


@pytest.mark.parametrize("first", range(0, len(ESCAPES), TOGETHER))
def test_no_way_leads_out(base: Path, first: int) -> None:
    place, names = Place(base), [*ESCAPES][first : first + TOGETHER]
    outside_of(place)
    before, program = seen(place), in_turn(place, names)
    place.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = place.command(*("run", "--layers", "required", "--", "/usr/bin/python3", "-c", program))
    assert "INVALID_PARAMS" not in done.stderr
    assert [name for name in names if f"{name} :" not in done.stdout] == []
    assert [line for line in done.stdout.splitlines() if "ESCAPED" in line] == []
    assert seen(place) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only an administrator can become somebody else")
def test_no_way_leads_out_for_somebody_who_is_no_administrator(base: Path) -> None:
    place = Place(base)
    outside_of(place)
    script = place.root / "escapes.py"
    script.write_text(in_turn(place, ESCAPES))
    subprocess.run(["chown", "-R", "nobody:", base], check=True)
    before = seen(place)
    code = AS_NOBODY.replace('"sh", "-c", script', '"/usr/bin/python3", "escapes.py"')
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **{key: one for key, one in place.environment.items() if key[:4] != "XDG_"},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert "INVALID_PARAMS" not in done.stderr
    assert "write outside" in done.stdout
    assert [line for line in done.stdout.splitlines() if "ESCAPED" in line] == []
    assert seen(place) == before

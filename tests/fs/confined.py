"""A program that confines itself to a root and then tries everything; its report is JSON.

Arguments: a folder that holds ``root``, ``state`` and ``outside``.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import sys
import time
from pathlib import Path

from filepact.fs.kernel import EXCHANGE, renameat2
from filepact.fs.root import Root
from filepact.fs.sandbox import confine


def attempt(action) -> str:
    """What became of it: the error's name, or ``done``."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return "done"


def read(path, **where) -> None:
    descriptor = os.open(path, os.O_RDONLY, **where)
    os.read(descriptor, 100)
    os.close(descriptor)


def make(path, **where) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, **where))


def run() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)


def connect(family, address) -> None:
    with socket.socket(family) as end:
        end.settimeout(5)
        end.connect(address)


def bind() -> None:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))


def main(base: Path) -> None:
    root, outside = base / "root", base / "outside"
    secret = outside / "secret.txt"
    os.chdir(root)
    handle = os.open(outside, os.O_PATH)
    listed = os.open(outside, os.O_RDONLY)
    kept = os.open(secret, os.O_RDONLY)
    mortal = os.open(secret, os.O_PATH)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    local = time.localtime(1_700_000_000).tm_hour
    refused_before = {
        "read it": attempt(lambda: read(secret)),
        "signal": attempt(lambda: os.kill(os.getppid(), 0)),
    }

    confined = confine("required", [Root.open(root)], str(base / "state"))

    report = {
        # Outside
        "read outside": lambda: read(secret),
        "read outside upwards": lambda: read("../outside/secret.txt"),
        "read outside through a link": lambda: read("out/secret.txt"),
        "read outside through a folder's handle": lambda: read("secret.txt", dir_fd=handle),
        "read outside through an open folder": lambda: read("secret.txt", dir_fd=listed),
        "read outside through a file's handle": lambda: read(f"/proc/self/fd/{mortal}"),
        "read outside through /proc/self/root": lambda: read(f"/proc/self/root{secret}"),
        "read outside through /proc/self/cwd": lambda: read("/proc/self/cwd/../outside/secret.txt"),
        "read the environment": lambda: read("/proc/self/environ"),
        "read the memory": lambda: read("/proc/self/mem"),
        "read the accounts": lambda: read("/etc/passwd"),
        "list outside": lambda: os.listdir(outside),
        "list the top": lambda: os.listdir("/"),
        "write outside": lambda: os.open(secret, os.O_WRONLY),
        "append outside": lambda: os.open("out/secret.txt", os.O_WRONLY | os.O_APPEND),
        "truncate outside": lambda: os.truncate(secret, 0),
        "truncate outside while opening": lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC),
        "create outside": lambda: make(outside / "new"),
        "create outside through a handle": lambda: make("new", dir_fd=handle),
        "create through a dangling link": lambda: os.open("dangling", os.O_WRONLY | os.O_CREAT),
        "remove outside": secret.unlink,
        "make a folder outside": lambda: os.mkdir(outside / "folder"),
        "remove a folder outside": lambda: os.rmdir(outside / "empty"),
        "link in": lambda: os.link(secret, "stolen.txt"),
        "link out": lambda: os.link("a.txt", outside / "a.txt"),
        "move in": lambda: os.rename(secret, "stolen.txt"),
        "move out": lambda: os.rename("a.txt", outside / "a.txt"),
        "move into the state of somebody else": lambda: os.rename("a.txt", base / "a.txt"),
        # Inside, but nothing that a server does
        "make a character device": lambda: os.mknod("dev", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
        "make a block device": lambda: os.mknod("dev", stat.S_IFBLK | 0o600, os.makedev(7, 0)),
        "make a pipe": lambda: os.mkfifo("pipe"),
        "make a socket": lambda: socket.socket(socket.AF_UNIX).bind("socket"),
        "make a link": lambda: os.symlink("/etc", "link"),
        "run a program": run,
        "run a program of the root": lambda: os.execv("a.txt", ["a.txt"]),  # noqa: S606 - the point
        "change a library": lambda: os.open(os.__file__, os.O_WRONLY),
        "connect": lambda: connect(socket.AF_INET, ("127.0.0.1", port)),
        "listen": bind,
        "signal": lambda: os.kill(os.getppid(), 0),
        "signal ourselves": lambda: os.kill(os.getpid(), 0),
        "terminate": lambda: os.kill(os.getppid(), signal.SIGCONT),
        # Inside
        "read": lambda: read("a.txt"),
        "read through a link": lambda: read("inner"),
        "read through a file's handle": lambda: read(
            f"/proc/self/fd/{os.open('a.txt', os.O_PATH)}"
        ),
        "list": lambda: os.listdir("."),
        "create": lambda: make("new.txt"),
        "write": lambda: os.write(os.open("new.txt", os.O_WRONLY | os.O_TRUNC), b"x"),
        "truncate": lambda: os.truncate("new.txt", 0),
        "make a folder": lambda: os.makedirs("deep/folder"),
        "move between folders": lambda: os.rename("new.txt", "deep/folder/new.txt"),
        "link between folders": lambda: os.link("a.txt", "deep/a.txt"),
        "exchange": lambda: renameat2(os.open("deep", os.O_PATH), "a.txt", "folder", EXCHANGE),
        "remove": lambda: os.unlink("deep/folder"),
        "remove a folder": lambda: os.rmdir("src"),
        "write the state": lambda: make(base / "state" / "new"),
        "use /dev/null": lambda: os.write(os.open(os.devnull, os.O_RDWR), b"x"),
        "use /dev/urandom": lambda: read("/dev/urandom"),
        # What this wall lets through
        "stat outside": secret.stat,
        "chmod outside": lambda: secret.chmod(0o640),
        "read what was open": lambda: os.read(kept, 100),
    }
    done = {name: attempt(action) for name, action in report.items()}

    import ssl  # noqa: F401, PLC0415

    import pydantic  # noqa: F401, PLC0415
    import re2  # noqa: PLC0415 - the point is that these are loaded late
    import regex  # noqa: PLC0415

    from filepact.compression import compress, decompress  # noqa: PLC0415

    loaded = [re2.search("b", "abc").start(), regex.search("b", "abc").start()]
    loaded.append(len(decompress(compress(b"abc"))))
    same_hour = time.localtime(1_700_000_000).tm_hour == local
    print(
        json.dumps(
            {
                "confined": confined,
                "before": refused_before,
                "done": done,
                "loaded": loaded,
                "same hour": same_hour,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

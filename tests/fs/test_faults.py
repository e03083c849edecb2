"""A system that fails or kills at every call, and a tree that is exchanged under it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import Revision, content_id
from filepact.errors import FilepactError
from filepact.fs.root import Root

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fs.conftest import Grounds

MARK = "c0123456789-0"
TEMP = f".filepact-{MARK}.tmp"
CALLS = "openat,write,fchmod,fchmodat,fsync,renameat2,unlinkat,renameat,linkat,flistxattr,openat2"

# What the changing program prints is how the call ended; strace's own lines go to a file.
CHANGER = """
import hashlib, os, sys
from filepact.domain.document import Revision
from filepact.errors import FilepactError
from filepact.fs.root import Root
root = Root.open(sys.argv[1])
old = Revision(hashlib.sha256(b"old" * 1000).hexdigest(), 0o644)
os.stat("/filepact-starts-here") if os.path.exists("/filepact-starts-here") else None
try:
    if sys.argv[2] == "replace":
        done = root.replace("f", b"new" * 1000, mode=0o644, expected=old, token="{mark}")
    elif sys.argv[2] == "create":
        done = root.replace("n", b"new" * 1000, mode=0o644, expected=None, token="{mark}")
    else:
        done = root.remove("f", expected=old, token="{mark}")
    print(done.outcome)
except FilepactError as error:
    print(error.code)
""".replace("{mark}", MARK)

STARTS = "/filepact-starts-here"


def strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(
        ["strace", "-o", "/dev/null", "-e", "inject=getpid:error=EIO:when=99", "true"],
        check=False,
        capture_output=True,
    )
    return tried.returncode == 0


needs_strace = pytest.mark.skipif(not strace_works(), reason="strace cannot be used here")


def fresh(top: Path) -> Path:
    if top.exists():
        shutil.rmtree(top)
    top.mkdir()
    (top / "f").write_bytes(b"old" * 1_000)
    (top / "f").chmod(0o644)
    return top


def run(top: Path, what: str, *options: str) -> subprocess.CompletedProcess[str]:
    log = top.parent / "log"
    return subprocess.run(
        ["strace", "-o", str(log), *options, sys.executable, "-S", "-c", CHANGER, str(top), what],
        check=False,
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PATH": os.environ["PATH"],
            "LC_ALL": "C",
            # Else the first run makes other calls than those after it, which find what it compiled.
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )


def points(top: Path, what: str) -> list[tuple[str, int]]:
    """Every call of one change: its name, and which of its name it is in the whole program."""
    run(fresh(top), what, "-e", f"trace={CALLS},newfstatat,stat,openat2")
    seen: dict[str, int] = {}
    begun = False
    found = []
    for line in (top.parent / "log").read_text().splitlines():
        begun = begun or STARTS in line
        if (name := re.match(r"(\w+)\(", line)) is None:
            continue
        seen[name[1]] = seen.get(name[1], 0) + 1
        if begun and name[1] in CALLS.split(","):
            found.append((name[1], seen[name[1]]))
    return found


def bytes_of(top: Path, name: str) -> bytes | None:
    return (top / name).read_bytes() if (top / name).exists() else None


ALLOWED = {
    "replace": ("f", {b"old" * 1_000, b"new" * 1_000}),
    "create": ("n", {None, b"new" * 1_000}),
    "remove": ("f", {b"old" * 1_000, None}),
}


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize("what", ALLOWED)
def test_a_kill_before_any_call_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, what: str
) -> None:
    top = tmp_path / "top"
    name, allowed = ALLOWED[what]
    killed = 0
    for call, number in points(top, what):
        ended = run(fresh(top), what, "-e", f"inject={call}:signal=KILL:when={number}")
        assert ended.returncode == -signal.SIGKILL, (call, number)
        assert bytes_of(top, name) in allowed, (call, number)
        with Root.open(top) as root:
            found = root.leftover(".", MARK)
            left = None if found is None else found.data
            whole = {b"old" * 1_000, b"new" * 1_000}
            assert left is None or left in whole or (b"new" * 1_000).startswith(left)
            # What was removed or replaced is not gone before the change is whole.
            assert bytes_of(top, name) is not None or left is not None or what != "replace"
            root.discard_leftover(".", MARK)
        assert not (top / TEMP).exists()
        killed += 1
    assert killed >= 5


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize("what", ALLOWED)
def test_an_error_at_any_call_is_told_as_it_is(tmp_path: Path, what: str) -> None:
    """One of two errors by turns: no call is judged by which of them it was."""
    top = tmp_path / "top"
    name, _ = ALLOWED[what]
    before = b"old" * 1_000 if name == "f" else None
    after = None if what == "remove" else b"new" * 1_000
    told = set()
    for (call, number), errno in zip(points(top, what), cycle(("ENOSPC", "EIO")), strict=False):
        ended = run(fresh(top), what, "-e", f"inject={call}:error={errno}:when={number}")
        said = ended.stdout.strip()
        told.add(said)
        where = (call, number, errno, said, ended.stderr[-300:])
        now = bytes_of(top, name)
        if said.startswith("applied"):
            assert now == after, where
        else:
            assert said == "WRITE_ERROR", where
            assert now == before, where
            assert not (top / TEMP).exists(), where
    assert told == {"applied", "applied_not_durable", "WRITE_ERROR"}


SWAPPER = """
import ctypes, os, sys
call = ctypes.CDLL(None).renameat2
a, b = (name.encode() for name in sys.argv[1:3])
print("ready", flush=True)
while os.getppid() == int(sys.argv[3]):
    call(-100, a, -100, b, 2)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the exchange is Linux's")
def test_a_folder_exchanged_with_a_link_never_leads_out(grounds: Grounds, root: Root) -> None:
    folder, link = grounds.root / "d", grounds.root / "l"
    folder.mkdir()
    link.symlink_to("../outside")
    for place, text in ((folder, b"inside"), (grounds.outside, b"SECRET")):
        (place / "f.txt").write_bytes(text)
        (place / "f.txt").chmod(0o644)
    swapper = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(folder), str(link), str(os.getpid())],
        stdout=subprocess.PIPE,
    )
    assert swapper.stdout is not None
    swapper.stdout.readline()
    reached = refused = 0
    try:
        for number in range(5_000):
            try:
                match number % 4:
                    case 0:
                        assert root.read("d/f.txt", limit=99).data != b"SECRET"
                    case 1:
                        descriptor = root.open_directory("d")
                        names = os.listdir(descriptor)
                        os.close(descriptor)
                        assert "secret.txt" not in names
                    case 2:
                        written = root.replace(
                            root.place("d/f.txt").path,
                            b"inside",
                            mode=0o644,
                            expected=Revision(content_id(b"inside"), 0o644),
                            token=f"mark-{number}",
                        )
                        if written.displaced:
                            written.displaced.close()
                    case _:
                        root.make_directories("d/made")
                reached += 1
            except FilepactError:
                refused += 1
    finally:
        swapper.kill()
        swapper.communicate()
    assert sorted(os.listdir(grounds.outside)) == ["f.txt", "secret.txt"]
    assert (grounds.outside / "f.txt").read_bytes() == b"SECRET"
    assert reached
    assert refused

"""Names that are exchanged for ever while files are used: nothing outside is reached.

Another process swaps what a path leads to as fast as it can.  Each try uses the root as the
workspace does.  The oracle is the disk: the word SECRET is never read, and the tree outside holds
what it held.  A try that is refused is right, whatever it is refused for.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filepact.domain.document import Revision, content_id
from filepact.errors import FilepactError
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.fs.in_place import WriteResult

Operation = Literal["read", "write", "create", "delete", "list", "walk"]
Shape = Literal["folder and link", "file and link", "folder and folder of links"]
Resolver = Literal["openat2", "walk"]

OPERATIONS: tuple[Operation, ...] = ("read", "write", "create", "delete", "list", "walk")
RESOLVERS: tuple[Resolver, ...] = ("openat2", "walk")
SHAPES: tuple[Shape, ...] = ("folder and link", "file and link", "folder and folder of links")

_SWAPPER = """
import os, sys
from filepact.fs.kernel import EXCHANGE, renameat2
folder = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
while True:
    for _ in range(200):
        try:
            renameat2(folder, sys.argv[2], sys.argv[3], EXCHANGE)
        except OSError:
            pass
    if os.getppid() == 1:
        break
"""


@dataclass(frozen=True, slots=True)
class RaceResult:
    """How many tries there were, how many reached a file, and how many one outside."""

    operation: Operation
    shape: Shape
    resolver: Resolver
    tries: int
    done: int
    escapes: int


def make(base: Path, shape: Shape) -> tuple[Path, str, str, str]:
    """A root to race in.

    Returns:
        The folder in which names are swapped, the two names, and the path to use.
    """
    root, outside = base / "root", base / "outside"
    (root / "d").mkdir(parents=True)
    (root / "d" / "f.txt").write_text("inside")
    (outside / "g").mkdir(parents=True)
    for name in ("f.txt", "g/other.txt", "new.txt.keep"):
        (outside / name).write_text("SECRET")
    match shape:
        case "folder and link":
            (root / "l").symlink_to("../outside")
            return root, "d", "l", "d/f.txt"
        case "file and link":
            (root / "d" / "l").symlink_to("../../outside/f.txt")
            return root / "d", "f.txt", "l", "d/f.txt"
        case "folder and folder of links":
            (root / "e").mkdir()
            (root / "e" / "f.txt").symlink_to("../../outside/f.txt")
            (root / "e" / "new.txt").symlink_to("../../outside/new.txt")
            return root, "d", "e", "d/f.txt"


def state(folder: Path) -> str:
    """All names and contents of a tree, as one digest."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def swapping(folder: Path, one: str, other: str) -> Iterator[None]:
    words = [sys.executable, "-c", _SWAPPER, str(folder), one, other]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
            assert process.poll() is None, "names were not exchanged any more"
        finally:
            process.kill()


def run(
    operation: Operation, shape: Shape, tries: int, *, resolver: Resolver = "openat2"
) -> RaceResult:
    """Race one operation against one kind of exchange."""
    done = escapes = 0
    # In memory, where a flush costs nothing: it is the names that race here.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        base = Path(name)
        folder, one, other, path = make(base, shape)
        before = state(base / "outside")
        with Root.open(base / "root", resolver=resolver) as root, swapping(folder, one, other):
            act = _ACTS[operation]
            for number in range(tries):
                try:
                    got = act(root, path, number)
                except FilepactError as error:
                    got = b""
                    escapes += "SECRET" in error.report()
                else:
                    done += 1
                escapes += b"SECRET" in got or b"other.txt" in got
        escapes += state(base / "outside") != before
    return RaceResult(operation, shape, resolver, tries, done, escapes)


def _read(root: Root, path: str, number: int) -> bytes:
    if number % 2:
        return root.read(path, limit=99).data
    place = root.place(path)
    return root.read(place.path, limit=99, follow=False).data


def _write(root: Root, path: str, number: int) -> bytes:
    place = root.place(path)
    now = root.read(place.path, limit=99, follow=False)
    data = b"inside %d" % number
    _settle(
        root.replace(
            place.path,
            data,
            mode=0o644,
            expected=Revision(content_id(now.data), now.mode),
            token="race",
        )
    )
    return now.data


def _create(root: Root, path: str, number: int) -> bytes:
    name = path.replace("f.txt", "new.txt")
    place = root.place(name)
    if place.kind == "missing":
        _settle(root.replace(place.path, b"made", mode=0o644, expected=None, token="race"))
    else:
        _settle(
            root.remove(place.path, expected=Revision(content_id(b"made"), 0o644), token="race")
        )
    return b""


def _delete(root: Root, path: str, number: int) -> bytes:
    place = root.place(path)
    if place.kind == "missing":
        _settle(root.replace(place.path, b"inside", mode=0o644, expected=None, token="race"))
        return b""
    now = root.read(place.path, limit=99, follow=False)
    _settle(
        root.remove(place.path, expected=Revision(content_id(now.data), now.mode), token="race")
    )
    return now.data


def _settle(written: WriteResult) -> None:
    """Let go of a file that lost its name, which the caller is to look after."""
    if written.displaced is not None:
        written.displaced.close()


def _list(root: Root, path: str, number: int) -> bytes:
    folder = path.rpartition("/")[0]
    return "\0".join(root.names(root.place(folder).path)).encode()


def _walk(root: Root, path: str, number: int) -> bytes:
    seen: list[bytes] = []
    with TreeReader(root, allow=lambda _path, _is_dir: True) as entries:
        for entry in entries:
            seen.append(entry.path.encode())
            if entry.kind == "file":
                try:
                    seen.append(entry.read(limit=99))
                except FilepactError:
                    continue
    return b"\0".join(seen)


_ACTS: dict[Operation, Callable[[Root, str, int], bytes]] = {
    "read": _read,
    "write": _write,
    "create": _create,
    "delete": _delete,
    "list": _list,
    "walk": _walk,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20_000, help="tries of each race")
    tries = parser.parse_args().tries
    escapes = 0
    print("| operation | exchanged | resolver | tries | reached a file | outside |")
    print("| --- | --- | --- | --- | --- | --- |")
    for operation in OPERATIONS:
        for shape in SHAPES:
            for resolver in RESOLVERS:
                result = run(operation, shape, tries, resolver=resolver)
                escapes += result.escapes
                row = (operation, shape, resolver, result.tries, result.done, result.escapes)
                print("|", " | ".join(map(str, row)), "|", flush=True)
    return int(escapes > 0)


if __name__ == "__main__":
    sys.exit(main())

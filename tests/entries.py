"""Entries of a folder with every property that one can have, and all that is to be said of each.

`tests/kinds.py` has what a name can turn into; this has what an entry is besides its bytes.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from filepact.fs.kernel import getxattr, listxattr

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ENTRIES", "OLD", "Entry", "access_list", "facts", "made"]

OLD = 1_000_000_000
"""A time of writing long ago, in seconds."""

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_TAGS = {"u": 0x01, "user": 0x02, "g": 0x04, "group": 0x08, "mask": 0x10, "o": 0x20}
_NOBODY = 0xFFFF_FFFF
_SOMEBODY = 1234
_OTHERS_GROUP = 1235


def access_list(*listed: tuple[str, int] | tuple[str, int, int]) -> bytes:
    """An access list as the system keeps it, of pairs such as ``("g", 5)`` and triples such as ``("user", 1234, 6)``."""
    entries = [(_TAGS[one[0]], one[-1], one[1] if len(one) > 2 else _NOBODY) for one in listed]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in sorted(entries))


def facts(place: Path) -> dict[str, object]:
    """All that is to be said of an entry and of what lies in it, by its name there.

    Two names of one file are told as such, whatever the number of the file is.  What this user may not look at is not told.
    """
    found: dict[str, object] = {}
    first: dict[tuple[int, int], str] = {}
    todo = [(".", place)]
    closed: list[tuple[Path, int]] = []
    while todo:
        name, path = todo.pop(0)
        try:
            status = path.lstat()
        except PermissionError:
            continue
        kind = stat.S_IFMT(status.st_mode)
        readable = os.R_OK | os.X_OK * stat.S_ISDIR(kind)
        if not stat.S_ISLNK(kind) and not os.access(path, readable):
            closed.append((path, stat.S_IMODE(status.st_mode)))
            path.chmod(0o700)  # for the moment
        held: object = None
        if stat.S_ISLNK(kind):
            held = os.readlink(os.fsencode(path))
        elif stat.S_ISREG(kind):
            with suppress(PermissionError):
                held = path.read_bytes()
        elif stat.S_ISDIR(kind):
            with suppress(PermissionError):
                held = sorted(os.listdir(path))
                todo += [(f"{name}/{one}", path / one) for one in held]
        elif kind in (stat.S_IFCHR, stat.S_IFBLK):
            held = status.st_rdev
        attributes: dict[str, bytes] = {}
        if not stat.S_ISLNK(kind):
            with suppress(OSError):
                attributes = {one: getxattr(str(path), one) for one in listxattr(str(path))}
        inode = status.st_dev, status.st_ino
        one = first.setdefault(inode, name)
        found[name] = {
            "kind": kind,
            "held": held,
            "mode": 0 if stat.S_ISLNK(kind) else stat.S_IMODE(status.st_mode),
            "owner": (status.st_uid, status.st_gid),
            "attributes": attributes,
            "written": None if stat.S_ISDIR(kind) and name == "." else status.st_mtime_ns,
            "same as": one if one != name else None,
        }
    for path, mode in reversed(closed):
        path.chmod(mode)
    return found


@dataclass(frozen=True)
class Entry:
    """One kind of entry.

    Attributes:
        make: Makes it at a free name.
        root: Whether only root can make it.
        tags: What is special about it; `SPECIAL` for what is neither file nor folder nor link.
    """

    name: str
    make: Callable[[Path], object]
    root: bool = False
    tags: frozenset[str] = field(default_factory=frozenset)


def made(entry: Entry, place: Path) -> bool:
    """Make an entry; whether this system and this user can."""
    if entry.root and os.geteuid():
        return False
    try:
        entry.make(place)
    except OSError as error:
        if error.errno not in (
            errno.EPERM,
            errno.EACCES,
            errno.ENOTSUP,
            errno.ENOSYS,
            errno.EIO,
            errno.EINVAL,
            errno.EILSEQ,
        ):
            raise
        return False
    return True


def _file(mode: int = 0o644, data: bytes = b"one\ntwo\n") -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        place.write_bytes(data)
        place.chmod(mode)
        return place

    return make


def _folder(mode: int = 0o755, inside: int | None = 0o644) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        place.mkdir()
        if inside is not None:
            _file(inside, b"in it\n")(place / "k")
        place.chmod(mode)
        return place

    return make


def _then(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    def make(place: Path) -> None:
        for step in steps:
            step(place)

    return make


def _owned(place: Path) -> None:
    mode = stat.S_IMODE(place.lstat().st_mode)
    os.chown(place, _SOMEBODY, _OTHERS_GROUP, follow_symlinks=False)
    if not place.is_symlink():
        place.chmod(mode)  # Which a change of the owner takes set-id bits from.


def _listed(place: Path) -> None:
    listed = access_list(("u", 6), ("user", _SOMEBODY, 4), ("g", 0), ("mask", 4), ("o", 0))
    os.setxattr(place, ACCESS, listed)


def _with_default(place: Path) -> None:
    listed = access_list(("u", 7), ("user", _SOMEBODY, 7), ("g", 7), ("mask", 7), ("o", 5))
    os.setxattr(place, DEFAULT, listed)


def _tagged(place: Path) -> None:
    os.setxattr(place, "user.tag", b"value \0 of it")


def _noted(place: Path) -> None:
    os.setxattr(place, "security.note", b"of a program")


def _old(place: Path) -> None:
    os.utime(place, (OLD, OLD), follow_symlinks=False)


def _link(target: str) -> Callable[[Path], None]:
    return lambda place: place.symlink_to(target)


def _nested(place: Path) -> None:
    (place / "x/y/z").mkdir(parents=True)
    _file(0o600)(place / "x/y/k")
    (place / "x").chmod(0o700)
    (place / "x/y").chmod(0o2750)
    (place / "l").symlink_to("x/y/k")
    _old(place / "x/y/k")


def _joined(place: Path) -> None:
    """A folder of two names for one file."""
    place.mkdir()
    _file(0o640)(place / "a")
    os.link(place / "a", place / "b")


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            one.bind(f"/proc/self/fd/{folder}/{place.name}")
        finally:
            os.close(folder)


def _device(place: Path) -> None:
    os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 3))


def _sealed(how: str) -> Callable[[Path], None]:
    def seal(place: Path) -> None:
        done = subprocess.run(["chattr", how, place], capture_output=True, check=False)
        if done.returncode:
            shutil.rmtree(place) if place.is_dir() else place.unlink()
            raise OSError(errno.EPERM, "nothing can be made immutable here")

    return seal


def _odd(place: Path) -> None:
    place.mkdir()
    _file()(place / os.fsdecode(b"lat\xe9.txt"))
    (place / os.fsdecode(b"d\xff")).mkdir()
    _file()(place / os.fsdecode(b"d\xff") / "k")


SPECIAL = frozenset({"special"})
"""Neither file nor folder nor link: filepact leaves such entries to people, and says so."""

ENTRIES = (
    Entry("file", _file()),
    Entry("empty file", _file(data=b"")),
    Entry("binary file", _file(data=bytes(range(256)))),
    Entry("file 0600", _file(0o600)),
    Entry("file 0640", _file(0o640)),
    Entry("file 0666", _file(0o666)),
    Entry("file 0755", _file(0o755)),
    Entry("file 0444", _file(0o444)),
    Entry("file 0000", _file(0o000)),
    Entry("file 4755", _file(0o4755)),
    Entry("file 2755", _file(0o2755)),
    Entry("file 1644", _file(0o1644)),
    Entry("file of another", _then(_file(), _owned), root=True),
    Entry("file 6664 of another", _then(_file(0o6664), _owned), root=True),
    Entry("file with access list", _then(_file(), _listed)),
    Entry("file with attribute", _then(_file(), _tagged)),
    Entry("file with security attribute", _then(_file(), _noted), root=True),
    Entry("old file", _then(_file(), _old)),
    Entry("old file with all", _then(_file(0o640), _owned, _listed, _tagged, _old), root=True),
    Entry("folder", _folder()),
    Entry("empty folder", _folder(inside=None)),
    Entry("folder 0700", _folder(0o700)),
    Entry("folder 0750", _folder(0o750)),
    Entry("folder 0555", _folder(0o555)),
    Entry("folder 0000", _folder(0o000)),
    Entry("folder 2770", _folder(0o2770)),
    Entry("folder 1777", _folder(0o1777)),
    Entry("empty folder 0700", _folder(0o700, None)),
    Entry("folder of another", _then(_folder(0o2770), _owned), root=True),
    Entry("folder with access list", _then(_folder(), _listed)),
    Entry("folder with default list", _then(_folder(), _with_default)),
    Entry("folder with attribute", _then(_folder(), _tagged)),
    Entry("old folder", _then(_folder(), _old)),
    Entry("nested folder", _nested),
    Entry("folder of joined names", _joined),
    Entry("folder of odd names", _odd),
    Entry("relative link", _link("beside.txt")),
    Entry("link into a folder", _link("place/k")),
    Entry("dangling link", _link("nothere")),
    Entry("link of another", _then(_link("nothere"), _owned), root=True),
    Entry("old link", _then(_link("nothere"), _old)),
    Entry("pipe", os.mkfifo, tags=SPECIAL),
    Entry("socket", _socket, tags=SPECIAL),
    Entry("device", _device, root=True, tags=SPECIAL),
    Entry("immutable file", _then(_file(), _sealed("+i")), root=True),
    Entry("immutable folder", _then(_folder(), _sealed("+i")), root=True),
    Entry("immutable, as it is only added to: file", _then(_file(), _sealed("+a")), root=True),
    Entry("immutable, as it is only added to: folder", _then(_folder(), _sealed("+a")), root=True),
)

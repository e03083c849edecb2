"""A folder that an agent may use, its surroundings, and everything hostile that a case puts there.

Every secret outside and inside holds the word SECRET.  What a case needs is really built; what this
system or this user cannot build is said, never passed over in silence.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Step = Sequence[str | int]

__all__ = ["CannotBuildError", "Fingerprint", "World"]

Fingerprint = dict[str, tuple[object, ...]]
"""What is at each path: kind and mode, and contents, target or size."""

_HASHED = 1 << 24
_PARTS = "abcdefghijklmnop"


class CannotBuildError(Exception):
    """This system, or this user, cannot make what a case needs."""


@dataclass(frozen=True, slots=True)
class World:
    """The folder in use and what lies around it."""

    base: Path

    @classmethod
    def make(cls, base: Path) -> World:
        """Make the surroundings that every case begins with."""
        world = cls(base)
        for folder in ("src", "docs", ".git/hooks"):
            (world.root / folder).mkdir(parents=True)
        (world.root / "src" / "main.py").write_text("x = 1\n")
        (world.root / "README.md").write_text("hello\n")
        (world.root / "docs" / "guide.md").write_text("# Guide\n")
        (world.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (world.root / ".git" / "config").write_text("[core]\n\tbare = false\n")
        for folder in (world.beside, world.outside, world.home / ".ssh"):
            folder.mkdir(parents=True)
        (world.beside / "secret.txt").write_text("SECRET\n")
        (world.outside / "secret.txt").write_text("SECRET\n")
        (world.home / ".ssh" / "id_ed25519").write_text("SECRET\n")
        return world

    @property
    def root(self) -> Path:
        return self.base / "project"

    @property
    def beside(self) -> Path:
        """A folder whose name begins with the root's."""
        return self.base / "project-evil"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def state(self) -> Path:
        return self.base / "state"

    def fill(self, text: str) -> str:
        """A text of a case with its placeholders replaced."""
        places = {"root": self.root, "outside": self.outside, "home": self.home}
        for name, path in {**places, "host": socket.gethostname()}.items():
            text = text.replace(f"{{{name}}}", str(path))
        return text

    def build(self, step: Step) -> None:
        """Make one thing.

        Raises:
            CannotBuildError: Not here, or not by this user.
        """
        verb, name, *rest = (self.fill(word) if isinstance(word, str) else word for word in step)
        make = _STEPS[str(verb)]
        try:
            make(self.root / os.fsdecode(str(name)), *rest)
        except PermissionError as error:
            raise CannotBuildError(f"{verb} needs a privilege") from error
        except (OSError, UnicodeError) as error:
            raise CannotBuildError(f"{verb}: {error}") from error

    def fingerprint(self) -> Fingerprint:
        """Everything beneath the base but the state folder, as it is now."""
        found: Fingerprint = {}
        for folder, folders, files in os.walk(self.base):
            if folder == str(self.base):
                folders.remove(self.state.name) if self.state.name in folders else None
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                # A race exchanges names while we look.
                with suppress(FileNotFoundError, NotADirectoryError):
                    found[os.path.relpath(path, self.base)] = _look(path)
        return found


def _look(path: str) -> tuple[object, ...]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        return ("other", status.st_mode)
    if status.st_size > _HASHED:
        return ("large", status.st_mode, status.st_size, status.st_blocks)
    return ("file", status.st_mode, hashlib.sha256(Path(path).read_bytes()).hexdigest())


# -- steps ----------------------------------------------------------------------------------------


def _folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)


def _file(path: Path, text: str = "", times: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape") * times)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _hard_link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.hardlink_to(path.parent / target)


def _socket(path: Path) -> None:
    # The name of a socket has to be short, so it is made from inside its folder.
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(path.parent)
        try:
            listener.bind(path.name)
        finally:
            os.chdir(before)


def _device(path: Path, kind: str, major: int, minor: int) -> None:
    mode = {"character": stat.S_IFCHR, "block": stat.S_IFBLK}[kind]
    os.mknod(path, mode | 0o666, os.makedev(major, minor))


def _sparse(path: Path, size: int) -> None:
    path.touch()
    os.truncate(path, size)


def _mode(path: Path, octal: str) -> None:
    path.chmod(int(octal, 8))


def _chain(path: Path, count: int, target: str) -> None:
    """Links c0 -> c1 -> ... -> the target."""
    for number in range(count):
        after = f"{path.name}{number + 1}" if number + 1 < count else target
        path.with_name(f"{path.name}{number}").symlink_to(after)


def _long(path: Path, target: str) -> None:
    """A short link whose expansion is longer than any path may be."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        for letter in _PARTS:
            os.mkdir(letter * 247, dir_fd=folder)
            os.symlink(letter * 247, letter, dir_fd=folder)
            below = os.open(letter * 247, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        os.symlink("/".join([*[".."] * len(_PARTS), target]), "z", dir_fd=folder)
    finally:
        os.close(folder)
    path.symlink_to("/".join([*_PARTS, "z"]))


def _deep(path: Path, levels: int) -> None:
    """Folders within folders, longer together than a path may be."""
    path.mkdir()
    folder = os.open(path, os.O_RDONLY)
    try:
        for _ in range(levels):
            os.mkdir("d", dir_fd=folder)
            below = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
    finally:
        os.close(folder)


def _bytes(path: Path, digits: str) -> None:
    path.write_bytes(bytes.fromhex(digits))


def _many(path: Path, count: int) -> None:
    path.mkdir()
    for number in range(count):
        (path / f"f{number}.txt").touch()


def _gone(path: Path) -> None:
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def _moved(path: Path, target: str) -> None:
    path.rename(path.parent / target)


_STEPS: dict[str, Callable[..., None]] = {
    "folder": _folder,
    "file": _file,
    "link": _link,
    "hard link": _hard_link,
    "fifo": os.mkfifo,
    "socket": _socket,
    "device": _device,
    "sparse": _sparse,
    "mode": _mode,
    "chain": _chain,
    "long link": _long,
    "deep": _deep,
    "bytes": _bytes,
    "many": _many,
    "gone": _gone,
    "moved": _moved,
}

"""The project of the tour: a small made-up one, or a copy of one of the person's folders."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.domain.policy import AccessRequest, Policy, decide
from filepact.domain.protected import BUILT_IN_RULES
from filepact.errors import NotAFileError, ReadFailedError
from filepact.text.gitignore import DEFAULT_IGNORED
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FolderSnapshot", "TourEdit", "choose", "copy_folder", "fingerprint", "make_project"]

MOST_FILES = 20_000
MOST_BYTES = 200_000_000

_TELLING = (".py", ".ts", ".js", ".go", ".rs", ".java", ".c", ".cs", ".rb", ".md", ".txt")
_LARGEST = 200_000
_MARK = "  (edited on the tour)"

_PROJECT: dict[str, bytes] = {
    "README.md": b"""# Corner shop

A small shop that adds up carts. Prices are in cents.

- `shop/cart.py` adds up
- `settings.json` holds the rates
""",
    "shop/cart.py": b'''"""Adding up a cart."""

from filepact.values import dataclass


@dataclass(frozen=True)
class Item:
    name: str
    cents: int
    count: int = 1


def total(items: list[Item], tax: float) -> int:
    net = sum(item.cents for item in items)
    return round(net * (1 + tax))


def receipt(items: list[Item], tax: float) -> str:
    lines = [f"{item.count} x {item.name}: {item.cents}" for item in items]
    return "\\n".join([*lines, f"total {total(items, tax)}"])
''',
    "settings.json": b"""{
  "currency": "EUR",
  "tax": 0.19,
  "open": ["Mon", "Tue", "Wed"]
}
""",
    "docs/opening-hours.txt": (
        b"Opening hours\r\n"
        b"=============\r\n"
        b"\r\n"
        b"Monday     9 to 18\r\n"
        b"Tuesday    9 to 18\r\n"
        b"Wednesday  9 to 13\r\n"
        b"\r\n"
        b"The caf\xc3\xa9 opens an hour earlier.\r\n"
    ),
    ".env": b"SHOP_TOKEN=made-up-for-the-tour\n",
}


@dataclass(frozen=True, slots=True)
class TourEdit:
    """One replacement to make: where, the text that stands there once, and the new text."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
    """The result of copying a folder; sizes in bytes.

    Attributes:
        whole: Whether all of it fitted into the limits.
    """

    files: int
    size: int
    whole: bool


def make_project(root: Path) -> tuple[TourEdit, TourEdit]:
    """Write the made-up project; the answer is an edit and a change to send as a patch."""
    for name, data in _PROJECT.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return (
        TourEdit(
            "shop/cart.py",
            "net = sum(item.cents for item in items)",
            "net = sum(item.cents * item.count for item in items)",
        ),
        TourEdit("docs/opening-hours.txt", "Wednesday  9 to 13", "Wednesday  9 to 18"),
    )


def copy_folder(source: Path, root: Path) -> FolderSnapshot:
    """Copy regular files, without links, secrets and what tools ignore.

    Raises:
        NotAFileError: The source is not a folder.
        ReadFailedError: A file of it could not be read.
    """
    if not source.is_dir():
        raise NotAFileError(f"{source}: is not a folder", hint="Name a folder to copy.")
    files = size = 0
    try:
        for file in _copied_files(source):
            length = file.stat().st_size
            if files >= MOST_FILES or size + length > MOST_BYTES:
                return FolderSnapshot(files, size, whole=False)
            target = root / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target, follow_symlinks=False)
            files, size = files + 1, size + length
    except OSError as error:
        raise ReadFailedError(f"{error.filename}: {error.strerror}") from error
    return FolderSnapshot(files, size, whole=True)


def _copied_files(source: Path) -> Iterator[Path]:
    policy = Policy(BUILT_IN_RULES)
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(set(folders) - DEFAULT_IGNORED)
        for name in sorted(names):
            file = Path(folder, name)
            # The tour shows that secrets are refused with one of its own, not with a real one.
            request = AccessRequest(str(source), file.relative_to(source).as_posix(), "read")
            allowed = decide(request, policy).verdict == "allow"
            if allowed and file.is_file() and not file.is_symlink():
                yield file


def choose(root: Path) -> tuple[TourEdit, TourEdit] | None:
    """An edit and a change to send as a patch for a copied folder; None if nothing fits."""
    policy = Policy(BUILT_IN_RULES)
    found: list[TourEdit] = []
    files = sorted(path for path in root.rglob("*") if path.is_file())
    files.sort(key=lambda path: (path.suffix not in _TELLING, len(path.parts)))
    for file in files[:500]:
        relative = file.relative_to(root).as_posix()
        request = AccessRequest(str(root), relative, "write")
        if file.stat().st_size <= _LARGEST and decide(request, policy).verdict == "allow":
            found += [TourEdit(relative, line, line + _MARK) for line in _lone_lines(file)]
        if len({change.path for change in found}) == 2 or len(found) >= 40:
            break
    if len(found) < 2:
        return None
    first = found[0]
    return first, next((one for one in found if one.path != first.path), found[-1])


def _lone_lines(file: Path) -> list[str]:
    """Return at most 40 lines of a text that stand in it only once."""
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return []
    lines = [line.rstrip("\r") for line in text.split("\n")]
    lone = [line for line in lines if re.search(r"\w{3}", line) and len(line) < 200]
    return [line for line in lone if line.isprintable() and text.count(line) == 1][:40]


def fingerprint(root: Path) -> str:
    """One name for every file's name, mode and bytes."""
    digest = hashlib.sha256()
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        name = os.fsencode(file.relative_to(root))
        digest.update(b"%s\0%o\0%s\n" % (name, file.stat().st_mode, content.encode()))
    return digest.hexdigest()

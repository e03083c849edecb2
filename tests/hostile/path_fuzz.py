"""Random paths over a tree full of links: whatever is found has to be one of the root's inodes."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.errors import FilepactError
from filepact.fs.path_form import check_form
from filepact.fs.root import Root

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("a", "b", "c", "f.txt", "g.txt")
_LINKS = {
    "up": "..",
    "self": ".",
    "out": "../outside",
    "far": "../../outside",
    "abs": "{outside}",
    "home": "{root}",
    "deep": "a/b",
    "back": "a/../b/./c",
    "file": "f.txt",
    "secret": "{outside}/f.txt",
    "dangling": "nowhere/x",
    "loop": "loop",
    "odd": "a//b/",
    "twice": "up/up",
}
_PIECES = (
    *(5 * _NAMES), *(2 * tuple(_LINKS)), ".", ".", "..", "..", "..", "...", "", " ", "~", "%2e%2e", "..%2f", "\u2025", "A", "root",
    "outside", "root-evil", "x" * 300, "\0", "\n", "a ", "a.", "f.txt:x", "CON", "\\..", "-", "*",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FuzzResult:
    """How random paths ended.

    Attributes:
        found: Paths that led to something inside.
        refused: Paths that were refused.
        escapes: Paths that led to something else.
    """

    tries: int
    found: int
    refused: int
    escapes: tuple[str, ...]


def make(base: Path) -> Path:
    """A root with folders three deep, every kind of link in each, and secrets around it."""
    root, outside = base / "root", base / "outside"
    for folder in (outside, base / "root-evil", outside / "a"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "f.txt").write_text("SECRET")
    words = {"outside": str(outside), "root": str(root)}
    for depth in range(4):
        for parts in _product(depth):
            folder = root.joinpath(*parts)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "f.txt").write_text("inside")
            (folder / "g.txt").write_text("inside")
            for name, target in _LINKS.items():
                (folder / name).symlink_to(target.format(**words))
    return root


def _product(depth: int) -> Iterator[tuple[str, ...]]:
    if depth == 0:
        yield ()
        return
    for above in _product(depth - 1):
        for name in ("a", "b", "c"):
            yield (*above, name)


def inodes(root: Path) -> set[tuple[int, int]]:
    """The root and all that lies in it, no link followed."""
    found = {(root.stat().st_dev, root.stat().st_ino)}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(folder, name))
            found.add((status.st_dev, status.st_ino))
    return found


def run(tries: int, *, seed: int) -> FuzzResult:
    """Follow random paths with both resolvers by turns, and read what is a file."""
    chance = random.Random(seed)
    found = refused = 0
    escapes: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        root = make(Path(name).resolve())
        inside = inodes(root)
        with Root.open(root, resolver="openat2") as one, Root.open(root, resolver="walk") as other:
            for number in range(tries):
                view = one if number % 2 else other
                path = "/".join(chance.choices(_PIECES, k=chance.randint(1, 9)))
                try:
                    place = view.place(check_form(path))
                    data = view.read(path, limit=99).data if place.kind == "file" else b""
                except FilepactError as error:
                    refused += 1
                    if "SECRET" in error.report():
                        escapes.append(path)
                    continue
                if place.kind == "missing":
                    continue
                found += 1
                if (place.device, place.inode) not in inside or b"SECRET" in data:
                    escapes.append(path)
    return FuzzResult(tries, found, refused, tuple(escapes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=200_000, help="paths to follow")
    parser.add_argument("--seed", type=int, default=1, help="which random paths")
    arguments = parser.parse_args()
    result = run(arguments.tries, seed=arguments.seed)
    print(
        f"{result.tries:,} paths: {result.found:,} inside, {result.refused:,} refused, "
        f"{len(result.escapes)} outside"
    )
    return int(bool(result.escapes))


if __name__ == "__main__":
    sys.exit(main())

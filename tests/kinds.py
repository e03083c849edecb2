"""Every kind of entry that a name can be, before and after a change; also a program that makes the changes."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import permutations
from pathlib import Path

KINDS = ("nothing", "file", "other", "link", "elsewhere", "empty", "deep")
PAIRS = [*permutations(KINDS, 2)]


def put(place: Path, kind: str) -> None:
    """Make a name one of the kinds."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if kind in ("file", "other"):
        place.write_text(f"{kind}\n")
        place.chmod(0o644 if kind == "file" else 0o600)
    elif kind in ("link", "elsewhere"):
        place.symlink_to(f"../{kind}")
    elif kind != "nothing":
        place.mkdir(mode=0o700)
        if kind == "folder":
            (place / "k").write_text("in it\n")
            (place / "l").symlink_to("k")
        if kind == "deep":
            (place / "x" / "y").mkdir(parents=True)
            (place / "x" / "y" / "k").write_text("deep in it\n")
            (place / "k").symlink_to("x")


def tree(place: Path) -> dict[str, object]:
    """All that lies there, with permission bits; of links, where they lead."""
    found: dict[str, object] = {}
    for path in sorted(place.rglob("*")):
        mode = path.lstat().st_mode
        held = (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        )
        found[str(path.relative_to(place))] = (mode, held)
    return found


def seen(pair: tuple[str, str]) -> bool:
    """Whether who looks at files sees the change: an empty folder that comes or goes by itself is none."""
    before, after = pair
    return "nothing" not in pair if "empty" in pair and after != "deep" else before != "empty"


def name_of(pair: tuple[str, str]) -> str:
    return "-".join(pair)


SEEN = [pair for pair in PAIRS if seen(pair)]


def make(root: Path, side: int, pairs: list[tuple[str, str]] = SEEN) -> None:
    """Make every name what it is before (0) or after (1)."""
    for pair in pairs:
        put(root / name_of(pair), pair[side])


if __name__ == "__main__":
    make(Path(sys.argv[1]), 1)

"""The project as its own tests look at it: modules, trees of syntax, documents."""

from __future__ import annotations

import ast
import gc
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "filepact"
REFERENCE = ROOT / "docs" / "reference"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WHEEL: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

WINGS = tuple(sorted((ROOT / one).resolve() for one in WHEEL if one != "src/filepact"))
"""The packages that the wheel has besides: each stands in a folder of its own, and the core finds it by an entry point."""

HOUSE = tuple(sorted(PACKAGE.rglob("*.py")))
MODULES = (*HOUSE, *(path for wing in WINGS for path in sorted(wing.rglob("*.py"))))
"""Those of the core and of the wings."""
DOCUMENTS = tuple(
    sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/*.md")]),
)


def dotted(path: Path) -> str:
    """The module's name below the package: ``fs.root``; that of a wing's is whole, a package's own is its folder's."""
    wing = next((wing.parent for wing in WINGS if path.is_relative_to(wing)), None)
    parts = path.relative_to(wing or PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def syntax(path: Path) -> ast.Module:
    """A module's tree, kept until the tests of this folder are over (conftest.py)."""
    # A tree has no cycles; to look for them while it grows takes twice the time of parsing.
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    finally:
        if collects:
            gc.enable()


def headings(document: Path, level: int = 2) -> dict[str, str]:
    """The sections of a document of ours: what stands in backquotes in the heading, and the body."""
    text = document.read_text(encoding="utf-8")
    mark = "#" * level
    parts = re.split(rf"^{mark} `([^`]+)`.*$", text, flags=re.MULTILINE)
    bodies = [re.split(rf"^#{{1,{level}}} ", body, flags=re.MULTILINE)[0] for body in parts[2::2]]
    return dict(zip(parts[1::2], bodies, strict=True))

"""How large the core is, and each wing, and that a room of its own has a reason.

The bounds only go down. Whoever has to raise one says for what in the design note 0014 first.
"""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.project import HOUSE, MODULES, WINGS, dotted, syntax

MOST_MODULES = 159
MOST_LINES = 60_999
CORE = ("text", "domain", "fs", "store", "workspace")
MOST_CORE_LINES = 52_077
MOST_WING_LINES = {
    "filepact_acp": 10_450,
    "filepact_cli": 7_305,
    "filepact_diagnostics": 15_290,
    "filepact_fleet": 6_760,
    "filepact_gateway": 4_915,
    "filepact_hooks": 5_058,
    "filepact_index": 1_820,
    "filepact_mcp": 2_405,
    "filepact_run": 4_710,
    "filepact_setup": 3_780,
    "filepact_supervisor": 960,
    "filepact_windows": 5_585,
    "filepact_wire": 1_100,
}
MOST_CHAPTERS = 3
"""Modules under ``CHAPTER`` lines that one module alone imports, of the core or of a wing, and that in its own folder."""
CHAPTER = 200


def imported(path_name: str, tree: ast.Module, names: frozenset[str]) -> set[str]:
    """The modules of ours that one imports, by their names below the package."""
    spelt: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            spelt |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            spelt |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    ours = {name.removeprefix("filepact.") for name in spelt if name.startswith("filepact.")}
    return (ours & names) - {path_name}


def chapters() -> dict[str, str]:
    """Modules that one neighbour alone imports and that would fit into it, with that neighbour."""
    names = frozenset(map(dotted, HOUSE))
    importers: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for name in imported(dotted(path), syntax(path), names):
            importers[name].add(dotted(path))
    found = {}
    for path in HOUSE:
        name, lines = dotted(path), len(path.read_text(encoding="utf-8").splitlines())
        if path.name == "__init__.py" or lines >= CHAPTER or len(importers[name]) != 1:
            continue
        (importer,) = importers[name]
        if importer.rpartition(".")[0] == name.rpartition(".")[0]:
            found[name] = importer
    return found


def test_the_house_has_no_more_rooms_than_it_needs() -> None:
    rooms = [path for path in HOUSE if path.name != "__init__.py"]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in rooms)
    assert len(rooms) <= MOST_MODULES
    assert lines <= MOST_LINES
    core = [path for path in rooms if dotted(path).partition(".")[0] in CORE]
    assert sum(len(one.read_text(encoding="utf-8").splitlines()) for one in core) <= MOST_CORE_LINES


def test_a_wing_has_no_more_lines_than_it_needs() -> None:
    found = {
        wing.name: sum(
            len(path.read_text(encoding="utf-8").splitlines()) for path in wing.rglob("*.py")
        )
        for wing in WINGS
    }
    assert found.keys() == MOST_WING_LINES.keys()
    assert {name: lines for name, lines in found.items() if lines > MOST_WING_LINES[name]} == {}


def test_a_chapter_is_in_its_book() -> None:
    found = chapters()
    assert len(found) <= MOST_CHAPTERS, found

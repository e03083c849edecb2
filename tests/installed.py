"""What an installation of filepact without extras consists of, from the metadata of what is installed here."""

from __future__ import annotations

import shutil
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import filepact
import filepact_acp
import filepact_cli
import filepact_diagnostics
import filepact_fleet
import filepact_gateway
import filepact_hooks
import filepact_index
import filepact_mcp
import filepact_run
import filepact_setup
import filepact_supervisor
import filepact_windows
import filepact_wire

SOURCE = Path(filepact.__file__).parent
WINGS = tuple(
    Path(one.__file__).parent
    for one in (
        filepact_acp,
        filepact_cli,
        filepact_diagnostics,
        filepact_fleet,
        filepact_gateway,
        filepact_hooks,
        filepact_index,
        filepact_mcp,
        filepact_run,
        filepact_setup,
        filepact_supervisor,
        filepact_windows,
        filepact_wire,
    )
)
"""The packages that come in the same wheel."""
_OURS = "filepact"
_COMPILED = (".pyc", ".pyo")


def needed_to_run() -> list[Distribution]:
    """filepact, and all that it needs without any of its extras."""
    found: dict[str, Distribution] = {}
    waiting = [_OURS]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found[name] = distribution(name)
        for line in found[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return list(found.values())


def installed_size(one: Distribution) -> int:
    """The bytes of its files as a wheel brings them; ours are counted where they are."""
    if one.name == _OURS:
        files = [path for place in (SOURCE, *WINGS) for path in place.rglob("*") if path.is_file()]
    else:
        files = [Path(str(one.locate_file(file))) for file in one.files or ()]
    return sum(
        path.stat().st_size for path in files if path.suffix not in _COMPILED and path.exists()
    )


def copy_into(folder: Path) -> None:
    """Copy the modules of all of them into a folder, which has nothing else then.

    Links would not do: a server that confines itself keeps the folders that modules are looked for in.
    """
    for place in (SOURCE, *WINGS):
        shutil.copytree(place, folder / place.name)
    for one in needed_to_run():
        if one.name == _OURS:
            # What it says of itself: wings are found by it.
            told = Path(str(one.locate_file(""))) / f"filepact-{one.version}.dist-info"
            (folder / told.name).mkdir()
            for file in ("METADATA", "entry_points.txt"):
                shutil.copy2(told / file, folder / told.name)
            continue
        for file in one.files or ():
            found, made = Path(str(one.locate_file(file))), folder / file
            if file.parts[0] != ".." and found.exists():
                made.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found, made)

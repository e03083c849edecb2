"""What a restore has left in `obj/project.assets.json`: the DLLs of a project's packages."""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.csharp.frameworks import Framework
    from filepact.csharp.projects import Files

__all__ = ["MAX_BYTES", "Assets", "AssetsError", "read_assets"]

MAX_BYTES: Final = 64_000_000
"""Largest file that is read."""


class AssetsError(Exception):
    """The file is not what a restore writes."""


@dataclass(frozen=True, slots=True)
class Assets:
    """What was restored for one target framework.

    Attributes:
        packages: Names of the packages, in lower case.
        references: The absolute paths of their DLLs, sorted.
        generators: Names of packages that bring analyzers or generators of sources.
        projects: The project files of all projects that are referred to, also through others.
    """

    packages: frozenset[str]
    references: tuple[str, ...]
    generators: tuple[str, ...]
    projects: tuple[str, ...]


def read_assets(text: str, framework: Framework, folder: str, files: Files) -> Assets:
    """The packages of a project.

    Args:
        text: The file's text.
        framework: The target framework that is wanted.
        folder: The project's folder.
        files: Where the DLLs may be.

    Raises:
        AssetsError: It is no such file, or has nothing for this framework.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AssetsError("it is no JSON") from error
    target = _target(_table(whole, "targets"), framework)
    libraries = _table(whole, "libraries")
    folders = [one.replace("\\", "/").rstrip("/") for one in _table(whole, "packageFolders")]
    packages: set[str] = set()
    references: list[str] = []
    generators: list[str] = []
    projects: list[str] = []
    for key, entry in target.items():
        library = libraries.get(key)
        if not isinstance(entry, dict) or not isinstance(library, dict):
            continue
        name = key.split("/")[0]
        if entry.get("type") == "project":
            if isinstance(path := library.get("msbuildProject"), str):
                place = posixpath.join(folder, path.replace("\\", "/"))
                projects.append(posixpath.normpath(place))
            continue
        packages.add(name.lower())
        if any(_generates(one) for one in library.get("files") or () if isinstance(one, str)):
            generators.append(name)
        path = library.get("path")
        if isinstance(path, str) and _plain(path):
            references += _dlls(entry, path, folders, files)
    return Assets(
        frozenset(packages), tuple(sorted(set(references))), tuple(generators), tuple(projects)
    )


def _target(targets: dict[str, Any], framework: Framework) -> dict[str, Any]:
    """What was restored for a framework, not for one kind of machine."""
    wanted = {name.lower() for name in framework.names}
    for name, target in targets.items():
        if name.lower() in wanted and isinstance(target, dict):
            return target
    raise AssetsError(
        f"it has nothing for {framework.moniker or 'a project without target framework'}"
    )


def _dlls(entry: dict[str, Any], path: str, folders: list[str], files: Files) -> Iterator[str]:
    compiled = entry.get("compile")
    for name in compiled if isinstance(compiled, dict) else ():
        if isinstance(name, str) and name.lower().endswith(".dll") and _plain(name):
            places = [posixpath.join(folder, path, name) for folder in folders]
            if places:
                yield next(filter(files.has, places), places[0])


def _generates(file: str) -> bool:
    return file.startswith("analyzers/") and file.endswith(".dll") and "/vb/" not in file


def _plain(path: str) -> bool:
    """Whether a path stays in the folder of its package."""
    return not path.startswith("/") and ".." not in path.replace("\\", "/").split("/")


def _table(whole: object, key: str) -> dict[str, Any]:
    table = whole.get(key) if isinstance(whole, dict) else None
    if not isinstance(table, dict):
        raise AssetsError(f"it has no table {key!r}")
    return table

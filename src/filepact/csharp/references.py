"""The libraries that a project's code sees besides projects: those of the framework, and packages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact.csharp.projects import Project
    from filepact.csharp.runtime import Roslyn

__all__ = ["Libraries"]

_USUAL: Final = "Microsoft.NETCore.App"
_NUMBERS: Final = re.compile(r"\d+")
_MODERN: Final = re.compile(r"net(?:coreapp)?(\d+)\.(\d+)")


class Libraries:
    """Libraries as the compiler refers to them; each is read once.

    Args:
        roslyn: The compiler.
    """

    def __init__(self, roslyn: Roslyn) -> None:
        self._roslyn = roslyn
        self._known: dict[str, tuple[tuple[int, int], Any]] = {}
        self._folders: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, project: Project) -> tuple[list[Any], list[str]]:
        """References of a project, and what should be known of them, as sentences."""
        paths: list[str] = []
        notes: list[str] = []
        for name in dict.fromkeys((_USUAL, *project.frameworks)):
            found = self._framework(name, project.target_framework)
            paths += found
            if not found:
                notes.append(f"the framework {name} is not installed; its types are not known")
        notes += self._differing(project.target_framework)
        references = [one for path in paths if (one := self._reference(path)) is not None]
        for path in project.packages:
            one = self._reference(path)
            if one is None:
                notes.append(f"the library {Path(path).name[:80]} is not there or cannot be read")
            else:
                references.append(one)
        return references, notes

    def _framework(self, name: str, target: str) -> tuple[str, ...]:
        """The DLLs of a framework: of its targeting pack if there is one, else of the runtime."""
        key = (name, target)
        if key not in self._folders:
            folder = self._pack(name, target) or self._shared(name)
            names = sorted(Path(folder).glob("*.dll")) if folder else []
            self._folders[key] = tuple(str(one) for one in names)
        return self._folders[key]

    def _pack(self, name: str, target: str) -> str:
        packs = Path(self._roslyn.dotnet, "packs", f"{name}.Ref")
        for version in _newest(packs):
            folder = version / "ref" / target.partition("-")[0]
            if target and folder.is_dir():
                return str(folder)
        return ""

    def _shared(self, name: str) -> str:
        if name == _USUAL:
            return self._roslyn.shared
        folder = Path(self._roslyn.dotnet, "shared", name)
        running = Path(self._roslyn.shared).name.partition(".")[0]
        for version in _newest(folder):
            if version.name.partition(".")[0] == running:
                return str(version)
        return ""

    def _differing(self, target: str) -> Iterator[str]:
        """Says so where a project is checked against another framework than its own."""
        if not target or self._pack(_USUAL, target):
            return
        version = Path(self._roslyn.shared).name
        modern = _MODERN.match(target)
        if modern is None:
            yield f"{target} is checked against the libraries of .NET {version}, which has more"
        elif modern[1] != version.partition(".")[0]:
            yield f"{target} is checked against the libraries of .NET {version}"

    def _reference(self, path: str) -> Any:
        """One library; None if it is not there or is none of .NET's."""
        try:
            stat = os.stat(path)  # noqa: PTH116 - one call for time and size
        except OSError:
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        if path not in self._known or self._known[path][0] != stamp:
            reference = None
            if self._is_managed(path):
                reference = self._roslyn.core.MetadataReference.CreateFromFile(path)
            self._known[path] = (stamp, reference)
        return self._known[path][1]

    def _is_managed(self, path: str) -> bool:
        try:
            self._roslyn.reflection.AssemblyName.GetAssemblyName(path)
        except self._roslyn.system.Exception:
            return False
        return True


def _newest(folder: Path) -> Iterable[Path]:
    """The versions in a folder, the newest first."""
    found = [one for one in folder.glob("*") if one.name[:1].isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda one: [int(part) for part in _NUMBERS.findall(one.name)])[::-1]

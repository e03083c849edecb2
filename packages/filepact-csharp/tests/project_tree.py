"""A throw-away folder of projects, read from the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact_csharp.files import DiskTree
from filepact_csharp.solution import read_solution

if TYPE_CHECKING:
    from pathlib import Path

    from filepact_csharp.projects import Project, Solution

__all__ = ["ProjectTree", "sdk"]


def sdk(body: str = "", *, framework: str = "net8.0", name: str = "Microsoft.NET.Sdk") -> str:
    """A project of the SDK's style."""
    target = f"<PropertyGroup><TargetFramework>{framework}</TargetFramework></PropertyGroup>"
    return f'<Project Sdk="{name}">\n{target if framework else ""}\n{body}\n</Project>\n'


class ProjectTree:
    """A root with files below it.

    Args:
        root: An empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, text: str = "") -> str:
        """Write a file; the answer is its path."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return str(place)

    def read(self, name: str = "") -> Solution:
        """Read a solution, a project or a folder."""
        return read_solution(str(self.root / name), str(self.root), DiskTree(str(self.root)))

    def project(self, name: str = "App.csproj", *, quiet: bool = False) -> Project:
        """Read one project; if `quiet`, there must be nothing to say about it."""
        solution = self.read(name)
        found = next(one for one in solution.projects if one.path == str(self.root / name))
        if quiet:
            assert found.messages == ()
            assert not found.approximate
        return found

    def sources(self, project: Project) -> list[str]:
        """The sources of a project, relative to the root."""
        return [one.removeprefix(f"{self.root}/") for one in project.sources]

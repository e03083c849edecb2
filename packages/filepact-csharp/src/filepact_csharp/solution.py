"""Reads a solution, a project or a folder with all its projects."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError
from filepact_csharp.project_file import read_project
from filepact_csharp.projects import (
    FilePattern,
    Kind,
    Project,
    ProjectFiles,
    ProjectItem,
    ProjectMessage,
    Solution,
)
from filepact_csharp.safe_xml import XmlError, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from filepact_csharp.evaluation import Evaluate, Parsed
    from filepact_csharp.projects import FileTree

__all__ = ["read_solution"]

MAX_PROJECTS: Final = 500
"""Most projects that are read."""

_SKIPPED: Final = frozenset({"bin", "obj", "node_modules", "packages"})


def read_solution(
    path: str, root: str, files: FileTree, newest: int = 0, evaluate: Evaluate | None = None
) -> Solution:
    """All projects of a solution file, of one project and what it refers to, or below a folder.

    Of a folder: of the solution file that lies in it, or of several; else all projects at any depth; where
    there is none, its sources are taken for one project.  Whatever is wrong with a file becomes a message.

    Args:
        path: The file or folder, absolute, at or below the root.
        root: The folder that is not left.
        files: Where files are.
        newest: The latest version of .NET whose libraries are there, for projects with several target
            frameworks; 0 if that does not matter.
        evaluate: Evaluates projects in place of the rules here, as far as it can; None for nothing.
    """
    reader = _SolutionReader(root.rstrip("/") or "/", files, newest, evaluate)
    path = path.rstrip("/") or "/"
    if is_solution(path):
        return reader.solutions("solution", path, [path])
    if path.lower().endswith(".csproj"):
        return reader.solution("project", path, [(path, path, 0)], {})
    return reader.folder(path)


class _SolutionReader:
    """Collects projects, each once."""

    def __init__(self, root: str, files: FileTree, newest: int, evaluate: Evaluate | None) -> None:
        self.root, self.files, self.newest, self.evaluate = root, files, newest, evaluate
        self.parsed: Parsed = {}
        self.inputs: list[str] = []
        self.messages: list[ProjectMessage] = []

    def folder(self, folder: str) -> Solution:
        names = sorted(self.files.below(folder, ".sln")) + sorted(self.files.below(folder, ".slnx"))
        here = [one for one in names if posixpath.dirname(one) == folder]
        if here:
            return self.solutions("solution" if len(here) == 1 else "folder", folder, here)
        projects = [
            one
            for one in sorted(self.files.below(folder, ".csproj"))
            if not _SKIPPED.intersection(one[len(folder) :].lower().split("/"))
        ]
        if not projects:
            return self._loose(folder)
        return self.solution("folder", folder, [(one, one, 0) for one in projects], {})

    def solutions(self, kind: Kind, path: str, solutions: list[str]) -> Solution:
        """The projects of some solution files."""
        named: list[tuple[str, str, int]] = []
        for one in solutions:
            self.inputs.append(one)
            try:
                text = self.files.text(one, MAX_BYTES)
            except FilepactError as error:
                self.messages.append(ProjectMessage(one, 0, error.message))
                continue
            if text is None:
                self.messages.append(ProjectMessage(one, 0, "the file is not there"))
                continue
            entries, messages = projects_of(one, text)
            named += [(place, one, line) for place, line in entries]
            self.messages += messages
        fixed = {}
        if len(solutions) == 1:
            name = posixpath.basename(solutions[0])
            fixed = {
                "SolutionDir": posixpath.dirname(solutions[0]).rstrip("/") + "/",
                "SolutionPath": solutions[0],
                "SolutionFileName": name,
                "SolutionName": posixpath.splitext(name)[0],
            }
        return self.solution(kind, path, named, fixed)

    def solution(
        self, kind: Kind, path: str, named: list[tuple[str, str, int]], fixed: Mapping[str, str]
    ) -> Solution:
        """Some projects and all that they refer to.

        Args:
            kind: What was asked for.
            path: The same.
            named: Project files, each with the file and the line that names it.
            fixed: Properties that no project can change.
        """
        found: dict[str, Project] = {}
        waiting = list(reversed(named))
        above = "/" if self.root == "/" else f"{self.root}/"
        while waiting:
            project_path, by, line = waiting.pop()
            if project_path in found:
                continue
            if not project_path.startswith(above):
                name = posixpath.basename(project_path)[:80]
                self.messages.append(
                    ProjectMessage(
                        by, line, f"the project {name} lies outside of the root and is not read"
                    )
                )
                continue
            if not self.files.has(project_path):
                self.inputs.append(project_path)
                name = posixpath.basename(project_path)[:80]
                self.messages.append(
                    ProjectMessage(by, line, f"the project {name} is not there", "MSB3202")
                )
                continue
            if len(found) >= MAX_PROJECTS:
                self.messages.append(
                    ProjectMessage(path, 0, f"only the first {MAX_PROJECTS} projects are read")
                )
                break
            project, inputs = read_project(
                project_path,
                self.root,
                self.files,
                fixed,
                self.parsed,
                self.newest,
                self.evaluate,
            )
            found[project_path] = project
            self.inputs += inputs
            # What is only referred to comes after all that is named.
            waiting = [(one, project_path, 0) for one in project.references] + waiting
        projects = tuple(_with_all_references(one, found) for one in found.values())
        return Solution(
            kind,
            path,
            projects,
            tuple(dict.fromkeys(self.inputs)),
            any(one.approximate for one in projects) or bool(self.messages),
            tuple(dict.fromkeys(self.messages)),
        )

    def _loose(self, folder: str) -> Solution:
        """Sources that no project names, as if one named them all."""
        pattern = FilePattern(folder, ("**", "*.cs"))
        nowhere = tuple(
            FilePattern(folder, ("**", name, "**", "*")) for name in ("bin", "obj", ".*")
        )
        membership = ProjectFiles((ProjectItem(True, (pattern,), nowhere),))
        sources = sorted(one for one in self.files.below(folder, ".cs") if membership.includes(one))
        why = ProjectMessage(
            folder, 0, "there is no project here, so all sources are taken for one"
        )
        project = Project(
            folder,
            posixpath.basename(folder) or "sources",
            assembly="sources",
            sources=tuple(sources),
            membership=membership,
            nullable="enable",
            approximate=True,
            messages=(why,),
        )
        return Solution("loose", folder, (project,) if sources else (), (), True)


def _with_all_references(project: Project, known: Mapping[str, Project]) -> Project:
    """A project that also sees what those see to which it refers."""
    found: dict[str, None] = {}
    waiting = list(reversed(project.references))
    while waiting:
        one = waiting.pop()
        if one in found or one == project.path or one not in known:
            continue
        found[one] = None
        waiting += reversed(known[one].references)
    return replace(project, references=tuple(found))


# -- solution files, in both forms -----------------------------------------------------------------

MAX_BYTES: Final = 10_000_000
"""Largest solution file that is read."""

_ENTRY = re.compile(
    r'\s*Project\("\{[0-9A-Fa-f-]{36}\}"\)\s*=\s*"(?P<name>[^"]*)"\s*,\s*"(?P<path>[^"]*)"'
)
_PROJECT: Final = ".csproj"
_HEADER: Final = "Microsoft Visual Studio Solution File"


def is_solution(path: str) -> bool:
    """Whether a path is a solution file's, by its name."""
    return path.lower().endswith((".sln", ".slnx"))


def projects_of(path: str, text: str) -> tuple[list[tuple[str, int]], list[ProjectMessage]]:
    """The C# projects that a solution file names, and what is wrong with it.

    Args:
        path: The file, absolute.
        text: What it holds.

    Returns:
        The absolute paths of project files with the lines that name them, in order, each once.
    """
    messages: list[ProjectMessage] = []
    try:
        entries = list(_elements(text) if path.lower().endswith(".slnx") else _lines(text))
    except XmlError as error:
        return [], [ProjectMessage(path, error.line, str(error), error.code)]
    found: dict[str, int] = {}
    folder = posixpath.dirname(path)
    for name, line in entries:
        if name.lower().endswith(_PROJECT):
            place = posixpath.normpath(posixpath.join(folder, name.replace("\\", "/")))
            found.setdefault(place, line)
    if not found:
        headed = path.lower().endswith(".slnx") or _HEADER in text
        code = "" if headed else "MSB5010"
        messages.append(ProjectMessage(path, 0, "the solution names no C# project", code))
    return list(found.items()), messages


def _lines(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        if found := _ENTRY.match(line):
            yield found["path"], number


def _elements(text: str) -> Iterator[tuple[str, int]]:
    for element in parse(text).all():
        if element.name == "Project" and element.get("Path"):
            yield element.get("Path"), element.line
